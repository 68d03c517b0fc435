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
    return _kept(lambda **kept: numba.njit([signature], nogil=True, **kept)(function))


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
    """A NumPy ufunc (a, b, c, exponents of a, of b, of c, bits) → c + Σ a·b, of which each term is cut to
    `bits` fraction bits below the largest exponent among them.

    a (m, k), b (k, n) and c (m, n) are float64, their exponents int32, the result (m, n) is float64. Further
    axes before these are broadcast.
    """
    import numba

    powers, zeroth = np.ldexp(1.0, np.arange(-1022, 1024)), 1022

    def cut_and_add(a: Any, b: Any, c: Any, of_a: Any, of_b: Any, of_c: Any, bits: Any, out: Any) -> None:
        depth, columns = b.shape
        top, scale = np.empty(columns, np.int32), np.empty(columns)
        for i in range(a.shape[0]):  # the innermost loops go along a row, of which several fit a register
            for j in range(columns):
                top[j] = of_c[i, j]
            for k in range(depth):
                exponent = of_a[i, k]
                for j in range(columns):
                    top[j] = max(top[j], exponent + of_b[k, j])
            for j in range(columns):
                scale[j] = powers[zeroth + bits - top[j]]
                out[i, j] = np.trunc(c[i, j] * scale[j])
            for k in range(depth):
                x = a[i, k]
                for j in range(columns):
                    out[i, j] += np.trunc(x * b[k, j] * scale[j])
            for j in range(columns):
                out[i, j] *= powers[zeroth - bits + top[j]]

    matrix, whole = "float64[:, ::1]", "int32[:, ::1]"
    signature = f"void({', '.join([matrix] * 3 + [whole] * 3)}, int64, {matrix})"
    layout = "(m,k),(k,n),(m,n),(m,k),(k,n),(m,n),()->(m,n)"
    return _kept(lambda **kept: numba.guvectorize([signature], layout, **kept)(cut_and_add))


def _kept(build: Callable[..., Any]) -> Any:
    """What `build` makes, kept on disk where there is a folder for it."""
    try:
        return build(cache=True)
    except (RuntimeError, OSError):
        return build()
