"""The judge's own sizes for lab 07, part B. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_07_cuda_cpp_and_cupy.cupy import GEMM_CASES, matrix, pieces


def _matrices(*sizes: tuple[int, int]) -> tuple[Case, ...]:
    return tuple(matrix(*size) for size in sizes)


CASES: dict[str, tuple[Case, ...]] = {
    "cupy.normalise": _matrices((40, 48), (3, 130), (1, 7), (65, 31), (300, 160)),
    "cupy.rms": _matrices((9, 40), (3, 1), (1, 500), (150, 410)),
    "cupy.pipeline": (pieces(1, 3), pieces(4, 1), pieces(9, 2), pieces(5, 9), pieces(8, 8), pieces(12, 3)),
    "cupy.gemm": GEMM_CASES,
}
