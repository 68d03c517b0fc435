"""On a machine with a GPU a learner's `cp` is CuPy itself. Here its kernels become simulated ones.

Made again from what they were made of, because a compiled kernel of CuPy's cannot be run elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from gpulab.foundation.errors import Message
from gpulab.frontends import cupy as simulated_cupy


class NoText(Message):
    """A kernel of CuPy's whose CUDA C++ is not known any more."""


def is_cupys(thing: Any) -> bool:
    """Whether it is CuPy itself, or one of its kernels or modules."""
    if isinstance(thing, ModuleType):
        return thing.__name__ == "cupy"
    return type(thing).__module__.startswith("cupy.") and type(thing).__name__ in _MAKERS


def simulated(thing: Any, moved: Callable[[Any], Any]) -> Any:
    """The same on the simulated device. `moved` takes learner's functions there, for `cupy.fuse`.

    Raises NoText for a kernel that was taken out of a module.
    """
    if isinstance(thing, ModuleType):
        return simulated_cupy
    return _MAKERS[type(thing).__name__](thing, moved)


def is_array(thing: Any) -> bool:
    """Whether it is an array of CuPy's on a GPU."""
    return hasattr(thing, "__cuda_array_interface__") and type(thing).__module__.partition(".")[0] == "cupy"


def _kernel(kernel: Any, moved: Callable[[Any], Any]) -> Any:
    if kernel.code is None:
        raise NoText(
            f"{kernel.name} was taken out of a RawModule, so its text is not known. Call "
            f'module.get_function("{kernel.name}") inside the function that launches it.'
        )
    return simulated_cupy.RawKernel(
        kernel.code,
        kernel.name,
        kernel.options,
        kernel.backend,
        enable_cooperative_groups=kernel.enable_cooperative_groups,
    )


def _module(module: Any, moved: Callable[[Any], Any]) -> Any:
    return simulated_cupy.RawModule(
        code=module.code,
        path=module.file_path,
        options=module.options,
        backend=module.backend,
        enable_cooperative_groups=module.enable_cooperative_groups,
        name_expressions=module.name_expressions or None,
    )


def _elementwise(kernel: Any, moved: Callable[[Any], Any]) -> Any:
    return simulated_cupy.ElementwiseKernel(
        _parameters(kernel.in_params),
        _parameters(kernel.out_params),
        kernel.operation,
        kernel.name,
        kernel.reduce_dims,
        kernel.preamble,
        kernel.no_return,
        kernel.return_tuple,
        **kernel.kwargs,
    )


def _reduction(kernel: Any, moved: Callable[[Any], Any]) -> Any:
    return simulated_cupy.ReductionKernel(
        _parameters(kernel.in_params),
        _parameters(kernel.out_params),
        kernel.map_expr,
        kernel.reduce_expr,
        kernel.post_map_expr,
        kernel.identity,
        kernel.name,
        kernel.reduce_type,
        kernel.reduce_dims,
        kernel.preamble,
        kernel.options,
    )


def _fused(fused: Any, moved: Callable[[Any], Any]) -> Any:
    return simulated_cupy.fuse(kernel_name=fused.name)(moved(fused.func))


def _parameters(parameters: Any) -> str:
    return ", ".join(
        f"{'raw ' if p.raw else ''}{p.ctype if p.dtype is None else p.dtype.name} {p.name}"
        for p in parameters
    )


_MAKERS: dict[str, Callable[[Any, Callable[[Any], Any]], Any]] = {
    "RawKernel": _kernel,
    "RawModule": _module,
    "ElementwiseKernel": _elementwise,
    "ReductionKernel": _reduction,
    "Fusion": _fused,
}
