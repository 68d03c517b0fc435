"""The judge's own sizes for lab 05. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_05_reductions_scans_softmax.exercises import crowded, masked


def _sizes(*sizes: int) -> tuple[Case, ...]:
    return tuple(Case(f"{n:,}", {"n": n}) for n in sizes)


def _matrices(*sizes: tuple[int, int]) -> tuple[Case, ...]:
    return tuple(Case(f"{rows} × {cols}", {"rows": rows, "cols": cols}) for rows, cols in sizes)


ROWS = _matrices((9, 160), (1, 3), (17, 31), (7, 97), (0, 4), (2, 255), (72, 256))

CASES: dict[str, tuple[Case, ...]] = {
    "parallel.warp_sum": _sizes(300, 31, 2, 1025, 0, 6144),
    "parallel.total": _sizes(2500, 33, 2, 0, 50_001, 49_152),
    "parallel.kahan": _matrices((90, 50), (2, 1), (777, 129), (0, 3), (1200, 64)),
    "parallel.scan": _sizes(300, 31, 255, 1025, 0, 5120),
    "parallel.compact": (*_sizes(700, 255, 2, 0, 40_001), crowded(36_001), *_sizes(49_152)),
    "parallel.histogram": _sizes(1500, 2, 257, 0, 7003, 24_576),
    "parallel.logsumexp": (
        *_matrices((9, 65), (2, 2), (17, 31)),
        masked(12, 70),
        *_matrices((0, 4), (3, 1500), (40, 1024)),
    ),
    "parallel.row_softmax": ROWS,
    "parallel.add_norm": ROWS,
}
