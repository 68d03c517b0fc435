"""How a learner's kernel is launched, and which arrays it gets: by numba's manners or by CuPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpulab.frontends.cupy.creation import asarray
from gpulab.frontends.cupy.raw import RawKernel

from .spec import Face


def is_kernel(fn: Any) -> bool:
    """Whether it runs on the device, so that somebody has to say with how many threads.

    On a machine with a GPU it may be CuPy's own.
    """
    return hasattr(fn, "py_func") or type(fn).__name__ == "RawKernel"


def given(array: Any, face: Face) -> Any:
    """A device array as the learner's code knows arrays; the memory is the same."""
    return asarray(array) if face == "cupy" else array


def scalar(value: np.generic, face: Face) -> Any:
    """A scalar as host code gets it: Python's own number, as no other may be a ``tl.constexpr``.

    CuPy's kernels, and arguments of 4 bytes, get their type from NumPy's.
    """
    return value.item() if face == "cuda" and value.dtype in ("int64", "float64", "bool") else value


def launch(
    fn: Any, grid: tuple[int, ...], block: tuple[int, ...], shared_bytes: int, arguments: list[Any]
) -> None:
    """Launch a kernel: ``fn[grid, block](…)``, or ``fn(grid, block, (…))`` for one of CuPy's."""
    if isinstance(fn, RawKernel):
        fn(grid, block, tuple(arguments), shared_mem=shared_bytes)
    else:
        fn[grid, block, 0, shared_bytes](*arguments)
