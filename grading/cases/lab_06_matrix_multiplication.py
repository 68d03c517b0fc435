"""The judge's own sizes for lab 06. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_06_matrix_multiplication.exercises import (
    batch_case,
    matvec_case,
    product_case,
    split_case,
)


def _products(*sizes: tuple[int, int, int]) -> tuple[Case, ...]:
    return tuple(product_case(*size) for size in sizes)


RAGGED = ((21, 45, 26), (34, 45, 98), (35, 3, 40), (2, 3, 1), (65, 0, 2), (4, 6, 0))

CASES: dict[str, tuple[Case, ...]] = {
    "gemm.tiled": _products(*RAGGED, (128, 96, 192)),
    "gemm.column": _products(*RAGGED, (192, 72, 128)),
    "gemm.blocked": _products(*RAGGED, (192, 72, 128)),
    "gemm.wide": _products(
        (20, 24, 48), (31, 46, 98), (37, 4, 50), (2, 4, 2), (67, 20, 70), (4, 6, 0), (192, 72, 128)
    ),
    "gemm.staged": _products(*RAGGED, (96, 224, 64)),
    "gemm.matvec": tuple(
        matvec_case(*size) for size in ((64, 40), (66, 97), (3, 1), (1, 300), (0, 5), (5, 0), (192, 640))
    ),
    "gemm.batched": tuple(batch_case(*size) for size in ((2, 12), (7, 3), (1, 15), (0, 2), (48, 16))),
    "gemm.split_k": tuple(
        split_case(*size)
        for size in (
            (10, 280, 13),
            (30, 77, 35),
            (1, 31, 2),
            (19, 170, 33, 5),
            (3, 0, 3),
            (0, 5, 2),
            (96, 1536, 32),
        )
    ),
    "gemm.fragments": _products((32, 32, 16), (16, 80, 64), (32, 0, 16), (48, 96, 64)),
    "gemm.lanes": _products((16, 32, 16), (48, 16, 8), (16, 0, 24), (32, 96, 48)),
    "gemm.tiles": _products((64, 32, 64), (128, 45, 64), (64, 2, 128), (128, 0, 64), (192, 48, 128)),
    "gemm.steady": _products((16, 48, 32), (16, 512, 16), (32, 0, 16), (16, 1536, 16)),
}
