"""The parts of cupyx that a course uses, on the simulated device."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpulab.analysis.cupyx import profiler
from gpulab.frontends import cupy as cupy
from gpulab.frontends.cupy import jit as _jit

__all__ = [
    "empty_like_pinned",
    "empty_pinned",
    "profiler",
    "rsqrt",
    "scatter_add",
    "scatter_max",
    "scatter_min",
    "zeros_like_pinned",
    "zeros_pinned",
]


def __getattr__(name: str) -> Any:
    if name == "jit":  # which needs CuPy itself, and takes a second to import
        return _jit.module()
    raise AttributeError(f"the simulated cupyx has no {name!r}.", name=name)


def rsqrt(x: Any) -> Any:
    """One over the square root."""
    return cupy.reciprocal(cupy.sqrt(x))


def scatter_add(a: Any, slices: Any, value: Any) -> None:
    """Add `value` to elements of `a`, each time that an index names one."""
    a.scatter_add(slices, value)


def scatter_max(a: Any, slices: Any, value: Any) -> None:
    """Take the maximum at elements of `a`, each time that an index names one."""
    a.scatter_max(slices, value)


def scatter_min(a: Any, slices: Any, value: Any) -> None:
    """Take the minimum at elements of `a`, each time that an index names one."""
    a.scatter_min(slices, value)


def empty_pinned(shape: Any, dtype: Any = float, order: str = "C") -> np.ndarray:
    """A NumPy array in page-locked memory, which on the simulated device is ordinary memory."""
    return np.empty(shape, dtype, order)  # type: ignore[call-overload]


def zeros_pinned(shape: Any, dtype: Any = float, order: str = "C") -> np.ndarray:
    """A NumPy array of zeros in page-locked memory."""
    return np.zeros(shape, dtype, order)  # type: ignore[call-overload]


def empty_like_pinned(a: Any, dtype: Any = None, order: str = "K") -> np.ndarray:
    """A NumPy array of the shape and dtype of another one, in page-locked memory."""
    return empty_pinned(a.shape, dtype or a.dtype)


def zeros_like_pinned(a: Any, dtype: Any = None, order: str = "K") -> np.ndarray:
    """A NumPy array of zeros of the shape and dtype of another one, in page-locked memory."""
    return zeros_pinned(a.shape, dtype or a.dtype)
