"""Operations over whole arrays that are compiled, because NumPy has no function for them or is slow at them.

Where NumPy can do the same, the results are equal bit for bit. With ``GPULAB_ENGINE=numpy`` in the
environment NumPy always does it, and with ``GPULAB_ENGINE=compiled`` never. A function is compiled at its
first use, because importing the compiler takes longer than most kernels run, and is kept on disk if there is
a folder for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray

# How many lanes are computed without the compiler before it is imported: that takes about as long as they do.
WORTH_COMPILING = 1 << 22
# The same for products in the sums of tensor cores, each of which takes NumPy several passes.
SUMS_WORTH_COMPILING = 1 << 20
# And the same for lanes that load, store or are counted: if what they need was compiled by an earlier process
# and only has to be loaded, and if it was not.
ACCESSES_WORTH_LOADING = 1 << 25
ACCESSES_WORTH_COMPILING = 1 << 28

ENGINE = os.environ.get("GPULAB_ENGINE")
BY_NUMPY = ENGINE == "numpy" or os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"

# What has come so far; more than enough where everything is to be compiled.
_lanes = _products = _accesses = sys.maxsize if ENGINE == "compiled" else 0


def is_worth_compiling(lanes: int) -> bool:
    """Whether `fma` pays: the compiler is there already, or more lanes have come than in a small kernel."""
    global _lanes
    _lanes += lanes
    return (_lanes > WORTH_COMPILING or "numba" in sys.modules) and not BY_NUMPY


def are_sums_worth_compiling(products: int) -> bool:
    """Whether `aligned_sum` pays: more products have come than in a small kernel."""
    global _products
    _products += products
    return _products > SUMS_WORTH_COMPILING and not BY_NUMPY


def are_accesses_worth_compiling(lanes: int) -> bool:
    """Whether compiled loads, stores and counts pay: more lanes have come than in a small kernel."""
    global _accesses
    _accesses += lanes
    if _accesses <= ACCESSES_WORTH_LOADING or BY_NUMPY:
        return False
    return _accesses > ACCESSES_WORTH_COMPILING or _are_accesses_at_hand()


@cache
def _are_accesses_at_hand() -> bool:
    """Whether an earlier process has compiled `moves`, and numba will look where it was kept."""
    folder = Path(__file__).with_name("__pycache__")
    return os.access(folder, os.W_OK) and any(folder.glob("moves.*.nbi"))


def kept(function: Callable[..., Any], result: str, *parameters: str) -> Callable[..., Any]:
    """A plain function over arrays, compiled for parameters of these types, which have numba's names."""
    import numba

    signature = f"{result}({', '.join(parameters)})"
    return _kept(lambda **kept: numba.njit([signature], nogil=True, error_model="numpy", **kept)(function))


@cache
def fma() -> Callable[[Array, Array, Array], Array]:
    """A NumPy ufunc (a, b, c) → a·b + c, rounded once, for float32 and float64.

    LLVM's fma becomes the processor's own instruction, or a call of libm's where there is none.
    """
    import numba

    from .llvm import multiply_add

    signatures = ["float32(float32, float32, float32)", "float64(float64, float64, float64)"]
    return _kept(lambda **kept: numba.vectorize(signatures, **kept)(multiply_add))


@cache
def aligned_sum() -> Callable[..., Array]:
    """A function (a, b, c, powers of a, of b, of c, steps) → c + Σ a·b, of which each term is cut to whole
    multiples of the largest power among them, divided by `steps`.

    a (…, m, k), b (…, n, k) and c (…, m, n) are float64, and so are their powers of two. The result has the
    shape of c. The axes before these are broadcast. Where an operand is infinite or NaN, the sum is, too.
    """
    from .aligned_loops import cut_and_add

    parts, whole = (f"Array(float64, 3, {layout!r}, readonly=True)" for layout in "AC")
    loops = kept(
        cut_and_add, "void", parts, parts, whole, parts, parts, whole, "float64", "float64[:, :, ::1]"
    )

    def add(a: Array, b: Array, c: Array, *powers: Array, steps: float) -> Array:
        outer = np.broadcast_shapes(*(x.shape[:-2] for x in (a, b, c)))
        a, b, c, of_a, of_b, of_c = (
            np.broadcast_to(x, outer + x.shape[-2:]).reshape(-1, *x.shape[-2:]) for x in (a, b, c, *powers)
        )
        total = np.empty(c.shape)
        loops(a, b, np.ascontiguousarray(c), of_a, of_b, np.ascontiguousarray(of_c), steps, total)
        return total.reshape(*outer, *total.shape[1:])

    return add


@cache
def power() -> Callable[[Array, Array, Array], Array]:
    """A NumPy ufunc over bits of float64 (x, smallest, of_zero) → the largest power of two that x reaches,
    at least `smallest`, and `of_zero` where x is 0."""
    import numba

    def found(x: Any, smallest: Any, of_zero: Any) -> Any:
        return max(x & (2047 << 52), smallest) if x & (2**63 - 1) else of_zero

    return _kept(lambda **kept: numba.vectorize(["int64(int64, int64, int64)"], **kept)(found))


@cache
def toward_zero() -> Callable[[Array, Array, Array], Array]:
    """A NumPy ufunc (bits of a float32, that float32, a float64 that was rounded to it) → the bits of the
    next float32 toward zero where rounding has made the number larger."""
    import numba

    largest = np.finfo(np.float32).max

    def cut(bits: Any, nearest: Any, exact: Any) -> Any:
        return bits - np.int32(abs(exact) < abs(nearest) <= largest)

    return _kept(lambda **kept: numba.vectorize(["int32(int32, float32, float64)"], **kept)(cut))


def _kept(build: Callable[..., Any]) -> Any:
    """What `build` makes, kept on disk where there is a folder for it."""
    try:
        return build(cache=True)
    except (RuntimeError, OSError):
        return build()
