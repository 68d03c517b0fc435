"""`cupyx.jit` on the simulated device: CuPy translates Python to CUDA C++, and all else happens here.

The translation is CuPy's own, which needs neither a GPU nor a driver, but CuPy must be installed. All names
of its module are here as well.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gpulab.foundation.errors import Message

from . import arrays, generated
from .raw import RawKernel
from .streams import Stream

try:
    import cupy as _cupy
    import cupyx.jit as _jit
    from cupyx.jit import _compile, _cuda_typerules, _cuda_types, _interface
except ImportError as error:
    raise ImportError(
        "cupyx.jit translates Python with CuPy itself, which is not installed here. It needs no GPU for "
        "that: pip install cupy-cuda13x",
        name="cupyx",
    ) from error

HEADERS = Path(_cupy.__file__).parent / "_core" / "include"
FACE = __package__  # what programs know as cupy

# What the translation asks the driver, of which there is none.
_cupy._core._get_warpsize = lambda: 32
_cupy._core._full_mask = lambda: 0xFFFF_FFFF

globals().update({name: value for name, value in vars(_jit).items() if not name.startswith("_")})


class Untranslated(Message):
    """A function of Python that does not become a kernel here."""


class JitRawKernel(_interface._JitRawKernel):
    """A function of Python that becomes a kernel when it is first launched with arguments of some types."""

    def __init__(self, func: Callable[..., Any], mode: str, device: bool):
        super().__init__(_with_the_real_cupy(func), mode, device)
        self._names = list(inspect.signature(func).parameters)
        self._kernels: dict[tuple[Any, ...], RawKernel] = {}

    def __call__(
        self, grid: Any, block: Any, args: Any, shared_mem: int = 0, stream: Stream | None = None
    ) -> None:
        """Launch: `grid` blocks of `block` threads, both tuples; `shared_mem` is in bytes per block."""
        kinds = tuple(self._type_of(value) for value in args)
        if kinds not in self._kernels:
            self._kernels[kinds] = self._translated(kinds)
        packed = [
            generated.described(value, name) if isinstance(value, arrays.ndarray) else _as(kind, value)
            for value, kind, name in zip(args, kinds, self._names, strict=True)
        ]
        self._kernels[kinds](grid, block, tuple(packed), shared_mem=shared_mem, stream=stream)

    def _type_of(self, value: Any) -> Any:
        """CuPy's type of an argument."""
        if isinstance(value, arrays.ndarray):
            kind = generated.kind_of(value, value.dtype)
            return _cuda_types.CArray(kind.dtype, kind.ndim, kind.contiguous, kind.narrow)
        if np.isscalar(value):
            return _cuda_typerules.get_ctype_from_scalar(self._mode, value)
        raise TypeError(
            f"{self._func.__name__}: got an argument of type {type(value).__name__}. A kernel of cupyx.jit "
            "takes numbers and device arrays: copy others with cupy.array(…)."
        )

    def _translated(self, kinds: tuple[Any, ...]) -> RawKernel:
        attributes = ['extern "C"', "__global__"]
        made = _compile.transpile(self._func, attributes, self._mode, kinds, _cuda_types.void)
        self._cached_codes[kinds] = made
        if made.backend != "nvrtc":
            raise Untranslated(
                f"{self._func.__name__}: functions of Thrust take nvcc, and NVRTC compiles here."
            )
        code = f'#include "{HEADERS}/cupy/carray.cuh"\n{made.code}'
        options = (*made.options, f"-I{HEADERS}")
        return RawKernel(
            code, made.func_name, options, enable_cooperative_groups=made.enable_cooperative_groups
        )


def rawkernel(*, mode: str = "cuda", device: bool = False) -> Callable[[Callable[..., Any]], JitRawKernel]:
    """A decorator that makes a kernel of a function. `mode` is whose rules types follow, ``cuda`` or
    ``numpy``; a `device` function is called by kernels."""

    def wrapper(func: Callable[..., Any]) -> JitRawKernel:
        made = JitRawKernel(func, mode, device)
        functools.update_wrapper(made, func)
        return made

    return wrapper


def _as(kind: Any, value: Any) -> Any:
    """A number as the kernel takes it; 16-bit floats come as 32."""
    return np.float32(value) if kind.dtype.char == "e" else kind.dtype.type(value)


def _with_the_real_cupy(func: Callable[..., Any]) -> Callable[..., Any]:
    """The function with CuPy itself under the names of our face: the translation looks at its ufuncs."""
    names = {
        name: _cupy
        for name, value in func.__globals__.items()
        if isinstance(value, types.ModuleType) and value.__name__ in (FACE, "gpulab.cupy")
    }
    made = types.FunctionType(
        func.__code__, func.__globals__ | names, func.__name__, func.__defaults__, func.__closure__
    )
    return functools.update_wrapper(made, func)
