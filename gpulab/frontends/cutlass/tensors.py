"""Arrays of the host as CuTe DSL sees them: on a CUDA device, so that it compiles what it would for one.

A function that looks at their elements on the host, as ``cute.print_tensor`` does there, cannot be compiled
so. It is then compiled again with arrays that are on the host; if it launches a kernel, that works as well.
"""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from gpulab.frontends import driver
from gpulab.frontends.driver import Region
from gpulab.frontends.driver.host_arrays import CPU, CUDA, say_device
from gpulab.simulator import device as devices
from gpulab.simulator.compile import cute_errors
from gpulab.simulator.simt import ArrayLabel

from .unseen import unseen

ARRAY = "_gpulab_array"  # the attribute of a CuTe tensor that holds what it was made of
ON_HOST_ONLY = "host memory space"  # in the compiler's words, where it refuses the first
_regions: dict[int, tuple[weakref.ref[Any], Region]] = {}  # of tensors that are alive, by their ids
_pointed_at: dict[int, tuple[weakref.ref[Any], Region]] = {}  # the same of pointers


def region_at(address: int) -> Region | None:
    """The host's memory that holds `address` and belongs to an array that CuTe DSL knows."""
    known = (region for _, region in (*_regions.values(), *_pointed_at.values()))
    return next((r for r in known if r.address <= address < r.address + r.nbytes), None)


def _point_at(pointer: Any, address: int) -> None:
    """A pointer was made from a number, which may be the address of a torch tensor of the host."""
    torch = sys.modules.get("torch")
    if torch is None or not address or devices.current().memory.find(address) or region_at(address):
        return
    tensors = (thing for thing in gc.get_objects() if type(thing) is torch.Tensor)
    regions = (region for tensor in tensors if (region := driver.region_of(tensor)) is not None)
    region = next((r for r in regions if r.address <= address < r.address + r.nbytes), None)
    if region is not None:
        key = id(pointer)
        _pointed_at[key] = weakref.ref(pointer, lambda _: _pointed_at.pop(key, None)), region


class _Given(threading.local):
    labels: tuple[ArrayLabel, ...] = ()
    on_host = False


_given = _Given()


def labels() -> tuple[ArrayLabel, ...]:
    """What the arrays are called that this thread's call was given."""
    return _given.labels


def _name(names: Iterable[str], arguments: Iterable[Any]) -> None:
    """Note that a function of these parameters is about to be called with these arguments."""
    arrays = ((name, getattr(value, ARRAY, value)) for name, value in zip(names, arguments, strict=False))
    found = (driver.label_of(name, array) for name, array in arrays)
    _given.labels = tuple(label for label in found if label is not None)


@contextmanager
def on_host() -> Iterator[None]:
    """While it is entered, arrays of the host say that they are there."""
    kept = [tensor for reference, _ in tuple(_regions.values()) if (tensor := reference()) is not None]
    before, _given.on_host = _given.on_host, True
    for tensor in kept:
        say_device(tensor._dlpack_data, CPU)
    try:
        yield
    finally:
        _given.on_host = before
        for tensor in kept:
            say_device(tensor._dlpack_data, CUDA)


def install() -> None:
    """Make ``from_dlpack``, and with it every call with an array, take arrays of host and device."""
    from cutlass.base_dsl.dsl import BaseDSL
    from cutlass.base_dsl.jit_executor import ExecutionArgs
    from cutlass.base_dsl.runtime.jit_arg_adapters import JitArgAdapterRegistry
    from cutlass.cute import runtime

    made = runtime._Tensor.__init__

    @unseen
    def __init__(self: Any, tensor: Any, *args: Any, **options: Any) -> None:
        array = tensor.array if isinstance(tensor, driver.exported) else tensor
        made(self, driver.exported(array), *args, **{**options, "enable_tvm_ffi": False})
        setattr(self, ARRAY, array)
        if _given.on_host and not driver.is_on_device(array):
            say_device(self._dlpack_data, CPU)
        region = None if driver.is_on_device(array) else driver.region_of(array)
        if region is not None:
            key = id(self)
            _regions[key] = weakref.ref(self, lambda _: _regions.pop(key, None)), region

    pointed = runtime._Pointer.__init__

    @unseen
    def point(self: Any, pointer: int, *args: Any, **options: Any) -> None:
        pointed(self, pointer, *args, **options)
        _point_at(self, pointer)

    arguments_of = ExecutionArgs.generate_execution_args
    types_of, generate = BaseDSL.generate_mlir_function_types, BaseDSL.generate_mlir

    @unseen
    def generate_execution_args(self: Any, args: Any, kwargs: Any) -> Any:
        _name((*self.signature.parameters, *kwargs), (*args, *kwargs.values()))
        return arguments_of(self, args, kwargs)

    @unseen
    def generate_mlir(self: Any, body: Any, *args: Any, **options: Any) -> Any:
        try:
            return generate(self, body, *args, **options)
        except Exception as error:
            if ON_HOST_ONLY not in " ".join(str(error).split()):
                raise cute_errors.in_words(error, body.__code__.co_filename) from None
        with on_host():
            return generate(self, body, *args, **options)

    @unseen
    def generate_mlir_function_types(self: Any, body: Any, name: str, args: Any, *more: Any) -> Any:
        made = types_of(self, body, name, args, *more)
        _name(body.__code__.co_varnames, args)
        return made

    runtime._Tensor.__init__, runtime._Pointer.__init__ = __init__, point
    ExecutionArgs.generate_execution_args = generate_execution_args
    BaseDSL.generate_mlir_function_types = generate_mlir_function_types
    BaseDSL.generate_mlir = generate_mlir
    for kind in ("gpulab.frontends.cupy.arrays.ndarray", "gpulab.frontends.cuda.arrays.DeviceArray"):
        JitArgAdapterRegistry.register_jit_arg_adapter(kind, lazy=True)(runtime.TensorAdapter)
