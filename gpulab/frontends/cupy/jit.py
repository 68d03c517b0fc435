"""`cupyx.jit` on the simulated device: CuPy translates Python to CUDA C++, and all else happens here.

The translation is CuPy's own, which needs neither a GPU nor a driver, but CuPy must be installed.
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

FACE = __package__  # what programs know as cupy


class Untranslated(Message):
    """A function of Python that does not become a kernel here."""


@functools.cache
def module() -> types.ModuleType:
    """CuPy's module, with a `rawkernel` whose kernels run here. Raises ImportError without CuPy."""
    try:
        import cupy
        import cupyx.jit
        from cupyx.jit import _interface
    except ImportError as error:
        raise ImportError(
            "cupyx.jit translates Python with CuPy itself, which is not installed here. It needs no GPU for "
            "that: pip install cupy-cuda13x",
            name="cupyx",
        ) from error
    # What the translation asks the driver, of which there is none.
    cupy._core._get_warpsize = lambda: 32
    cupy._core._full_mask = lambda: 0xFFFF_FFFF

    class JitRawKernel(_Launched, _interface._JitRawKernel):
        """What CuPy's translation knows as a kernel, or as a function that kernels call."""

    def rawkernel(*, mode: str = "cuda", device: bool = False) -> Callable[[Callable[..., Any]], Any]:
        """A decorator that makes a kernel of a function. `mode` is whose rules types follow, ``cuda`` or
        ``numpy``; a `device` function is called by kernels."""

        def wrapper(func: Callable[..., Any]) -> Any:
            made = JitRawKernel(_with_the_real_cupy(func, cupy), mode, device)
            functools.update_wrapper(made, func)
            return made

        return wrapper

    made = types.ModuleType("cupyx.jit", cupyx.jit.__doc__)
    made.__dict__.update({name: value for name, value in vars(cupyx.jit).items() if name[0] != "_"})
    made.__dict__["rawkernel"] = rawkernel
    return made


class _Launched:
    """The part of a kernel of cupyx.jit that meets arguments."""

    _func: Callable[..., Any]
    _mode: str
    _cached_codes: dict[tuple[Any, ...], Any]

    def __call__(
        self, grid: Any, block: Any, args: Any, shared_mem: int = 0, stream: Stream | None = None
    ) -> None:
        """Launch: `grid` blocks of `block` threads, both tuples; `shared_mem` is in bytes per block."""
        kinds = tuple(_type_of(value, self._mode, self._func.__name__) for value in args)
        names = inspect.signature(self._func).parameters
        packed = [
            generated.described(value, name) if isinstance(value, arrays.ndarray) else _as(kind, value)
            for value, kind, name in zip(args, kinds, names, strict=True)
        ]
        kernel = self._translated(kinds)
        kernel(grid, block, tuple(packed), shared_mem=shared_mem, stream=stream)

    @functools.cached_property
    def _kernels(self) -> dict[tuple[Any, ...], RawKernel]:
        return {}

    def _translated(self, kinds: tuple[Any, ...]) -> RawKernel:
        """The kernel for arguments of these types."""
        if kinds not in self._kernels:
            import cupy
            from cupyx.jit import _compile, _cuda_types

            attributes = ['extern "C"', "__global__"]
            made = _compile.transpile(self._func, attributes, self._mode, kinds, _cuda_types.void)
            self._cached_codes[kinds] = made
            if made.backend != "nvrtc":
                name = self._func.__name__
                raise Untranslated(f"{name}: functions of Thrust take nvcc, and NVRTC compiles here.")
            headers = Path(cupy.__file__).parent / "_core" / "include"
            self._kernels[kinds] = RawKernel(
                f'#include "{headers}/cupy/carray.cuh"\n{made.code}',
                made.func_name,
                (*made.options, f"-I{headers}"),
                enable_cooperative_groups=made.enable_cooperative_groups,
            )
        return self._kernels[kinds]


def _type_of(value: Any, mode: str, kernel: str) -> Any:
    """CuPy's type of an argument. Raises TypeError for what no kernel takes."""
    from cupyx.jit import _cuda_typerules, _cuda_types

    if isinstance(value, arrays.ndarray):
        kind = generated.kind_of(value, value.dtype)
        return _cuda_types.CArray(kind.dtype, kind.ndim, kind.contiguous, kind.narrow)
    if np.isscalar(value):
        return _cuda_typerules.get_ctype_from_scalar(mode, value)
    raise TypeError(
        f"{kernel}: got an argument of type {type(value).__name__}. A kernel of cupyx.jit takes numbers and "
        "device arrays: copy others with cupy.array(…)."
    )


def _as(kind: Any, value: Any) -> Any:
    """A number as the kernel takes it; 16-bit floats come as 32."""
    return np.float32(value) if kind.dtype.char == "e" else kind.dtype.type(value)


def _with_the_real_cupy(func: Callable[..., Any], cupy: types.ModuleType) -> Callable[..., Any]:
    """The function with CuPy itself under the names of our face: the translation looks at its ufuncs."""
    names = {
        name: cupy
        for name, value in func.__globals__.items()
        if isinstance(value, types.ModuleType) and value.__name__ in (FACE, "gpulab.cupy")
    }
    made = types.FunctionType(
        func.__code__, func.__globals__ | names, func.__name__, func.__defaults__, func.__closure__
    )
    return functools.update_wrapper(made, func)
