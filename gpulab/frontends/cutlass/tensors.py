"""Arrays of the host as CuTe DSL sees them: on a CUDA device, so that it compiles what it would for one."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from typing import Any

from gpulab.frontends import driver
from gpulab.frontends.driver import Region
from gpulab.simulator.simt import ArrayLabel

ARRAY = "_gpulab_array"  # the attribute of a CuTe tensor that holds what it was made of
_regions: dict[int, tuple[weakref.ref[Any], Region]] = {}  # of tensors that are alive, by their ids


def region_at(address: int) -> Region | None:
    """The host's memory that holds `address` and belongs to a tensor that CuTe DSL knows."""
    for _, region in tuple(_regions.values()):
        if region.address <= address < region.address + region.nbytes:
            return region
    return None


class _Given(threading.local):
    labels: tuple[ArrayLabel, ...] = ()


_given = _Given()


def labels() -> tuple[ArrayLabel, ...]:
    """What the arrays are called that this thread's call was given."""
    return _given.labels


def _name(names: Iterable[str], arguments: Iterable[Any]) -> None:
    """Note that a function of these parameters is about to be called with these arguments."""
    arrays = ((name, getattr(value, ARRAY, value)) for name, value in zip(names, arguments, strict=False))
    found = (driver.label_of(name, array) for name, array in arrays)
    _given.labels = tuple(label for label in found if label is not None)


def install() -> None:
    """Make ``from_dlpack``, and with it every call with an array, take arrays of host and device."""
    from cutlass.base_dsl.dsl import BaseDSL
    from cutlass.base_dsl.jit_executor import ExecutionArgs
    from cutlass.base_dsl.runtime.jit_arg_adapters import JitArgAdapterRegistry
    from cutlass.cute import runtime

    made = runtime._Tensor.__init__

    def __init__(self: Any, tensor: Any, *args: Any, **options: Any) -> None:
        array = tensor.array if isinstance(tensor, driver.exported) else tensor
        made(self, driver.exported(array), *args, **options)
        setattr(self, ARRAY, array)
        region = None if driver.is_on_device(array) else driver.region_of(array)
        if region is not None:
            key = id(self)
            _regions[key] = weakref.ref(self, lambda _: _regions.pop(key, None)), region

    arguments_of = ExecutionArgs.generate_execution_args
    types_of = BaseDSL.generate_mlir_function_types

    def generate_execution_args(self: Any, args: Any, kwargs: Any) -> Any:
        _name((*self.signature.parameters, *kwargs), (*args, *kwargs.values()))
        return arguments_of(self, args, kwargs)

    def generate_mlir_function_types(self: Any, body: Any, name: str, args: Any, *more: Any) -> Any:
        made = types_of(self, body, name, args, *more)
        _name(body.__code__.co_varnames, args)
        return made

    runtime._Tensor.__init__ = __init__
    ExecutionArgs.generate_execution_args = generate_execution_args
    BaseDSL.generate_mlir_function_types = generate_mlir_function_types
    for kind in ("gpulab.frontends.cupy.arrays.ndarray", "gpulab.frontends.cuda.arrays.DeviceArray"):
        JitArgAdapterRegistry.register_jit_arg_adapter(kind, lazy=True)(runtime.TensorAdapter)
