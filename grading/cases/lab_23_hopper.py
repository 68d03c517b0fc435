"""The judge's own sizes for lab 23, part B. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_23_asynchronous_pipelines.ampere import tiled
from gpulab.content.lab_23_asynchronous_pipelines.hopper import image


def _tiles(*sizes: tuple[int, int]) -> tuple[Case, ...]:
    return tuple(tiled(*each) for each in sizes)


def _images(*sizes: tuple[int, int]) -> tuple[Case, ...]:
    return tuple(image(*each) for each in sizes)


CASES: dict[str, tuple[Case, ...]] = {
    "async.bulk": _tiles((2, 4), (1, 1), (1, 3), (2, 2), (3, 9)),
    "async.tile": _images((32, 16), (31, 7), (1, 8), (64, 33), (100, 24)),
    "async.edge": _images((8, 64), (7, 32), (1, 8), (33, 68), (50, 96)),
    "async.roles": _tiles((2, 7), (1, 1), (1, 5), (2, 4), (3, 14)),
    "async.share": _images((4, 768), (8, 256), (8, 1280), (16, 512)),
    "async.gather": _images((2, 1024), (1, 2), (1, 999), (2, 4095), (4, 3000)),
}
