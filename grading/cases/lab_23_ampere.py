"""The judge's own sizes for lab 23, part A."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_23_asynchronous_pipelines.ampere import tiled


def _tiles(*sizes: tuple[int, int]) -> tuple[Case, ...]:
    return tuple(tiled(*each) for each in sizes)


CASES: dict[str, tuple[Case, ...]] = {
    "async.depth": tuple(
        Case(f"{kind} tiles", {"kind": kind, "questions": 12}) for kind in ("small", "large", "whole")
    ),
    "async.ring": _tiles((2, 7), (1, 1), (1, 3), (2, 2), (3, 13)),
    "async.handshake": _tiles((2, 5), (1, 1), (2, 2), (1, 4), (3, 11)),
    "async.parity": _tiles((2, 9), (1, 2), (1, 3), (1, 5), (2, 14)),
}
