"""The judge's own sizes for lab 07, part A. A budget that names no case is taken from the last one."""

from __future__ import annotations

from gpulab.checks.spec import Case
from gpulab.content.lab_07_cuda_cpp_and_cupy.cuda_cpp import MIX_CASES, WAY_CASES, image, typed


def _sizes(*sizes: int) -> tuple[Case, ...]:
    return tuple(Case(f"{n:,}", {"n": n}) for n in sizes)


CASES: dict[str, tuple[Case, ...]] = {
    "cpp.invert": (
        image(7, 40, 64),
        image(1, 31, 32),
        image(41, 130, 160),
        image(3, 1, 96),
        image(96, 192, 320),
    ),
    "cpp.scale": (
        typed(640, "int32"),
        typed(1023, "float64"),
        typed(0, "float32"),
        typed(31, "float32"),
        typed(1, "int32"),
        typed(70_001, "float64"),
    ),
    "cpp.copy4": _sizes(2048, 2, 1027, 4, 31, 98_765, 40_001),
    "cpp.mix": MIX_CASES,
    "cpp.way": WAY_CASES,
    "cpp.two_product": _sizes(500, 2, 255, 0, 3000),
    "cpp.shuffle": _sizes(777, 60_013, 2, 120_011),
}
