"""Multiply-add rounded once, over whole arrays: the one operation that NumPy has no function for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

# Lanes that are computed without the compiler before it is imported, which takes about as long as these do.
WORTH_COMPILING = 1 << 22

_lanes = 0


def is_worth_compiling(lanes: int) -> bool:
    """Whether `fma` pays: the compiler is there already, or more lanes have come than in a small kernel."""
    global _lanes
    _lanes += lanes
    return _lanes > WORTH_COMPILING or "numba" in sys.modules


@cache
def fma() -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """A NumPy ufunc (a, b, c) → a·b + c for float32 and float64.

    LLVM's fma becomes the processor's own instruction, or a call of libm's where there is none. Made at first
    use, because importing the compiler takes longer than most kernels run, and kept on disk where there is
    one.
    """
    import numba
    from numba.extending import intrinsic

    @intrinsic
    def llvm_fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.fma(*arguments)

        return a(a, b, c), build

    def multiply_add(a: Any, b: Any, c: Any) -> Any:
        return llvm_fma(a, b, c)

    signatures = ["float32(float32, float32, float32)", "float64(float64, float64, float64)"]
    try:
        return numba.vectorize(signatures, cache=True)(multiply_add)
    except (RuntimeError, OSError):  # no folder to keep the machine code in
        return numba.vectorize(signatures)(multiply_add)
