"""The functions of CUDA's runtime that compiled host code of CuTe DSL calls, by their names there."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from gpulab.frontends import driver
from gpulab.frontends.driver.attributes import attribute
from gpulab.simulator import device as devices
from gpulab.simulator.device import LaunchError
from gpulab.simulator.simt import tensor_maps

P, I = ctypes.c_void_p, ctypes.c_int
STATIC_SHARED = 1  # CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
REGISTERS = 4  # CU_FUNC_ATTRIBUTE_NUM_REGS


def _put(where: int | None, value: int, kind: Any = ctypes.c_uint64) -> None:
    if where:
        kind.from_address(where).value = value


def _get_kernel(kernel: int, library: int, name: int) -> None:
    entry = ctypes.string_at(name).decode()
    _put(kernel, driver.handle(driver.named(library).kernel(entry)))


def _kernel_attribute(value: int, which: int, kernel: int, _: int) -> None:
    used = devices.current().resources(driver.named(kernel))
    if which == STATIC_SHARED:
        _put(value, used.shared_bytes, ctypes.c_int)
    elif which == REGISTERS:
        _put(value, used.registers, ctypes.c_int)
    else:
        raise LaunchError(f"{driver.named(kernel).name}: attribute {which} of a kernel is not simulated.")


def _launch(config: int, kernel: int, arguments: int) -> None:
    driver.launch(driver.read_config(config), driver.named(kernel), arguments)


def _tensor_map(
    to: int, kind: int, rank: int, address: int, sizes: int, strides: int, box: int, steps: int,
    interleave: int, swizzle: int, promotion: int, fill: int,
) -> None:  # fmt: skip
    def numbers(where: int, count: int, type_: Any) -> tuple[int, ...]:
        return tuple((type_ * count).from_address(where)) if count else ()

    made = tensor_maps.encode_tiled(
        tensor_maps.DRIVER_TYPES[kind],
        address,
        numbers(sizes, rank, ctypes.c_uint64),
        numbers(strides, rank - 1, ctypes.c_uint64),
        numbers(box, rank, ctypes.c_uint32),
        numbers(steps, rank, ctypes.c_uint32),
        interleave=tensor_maps.INTERLEAVES[interleave],
        span=tensor_maps.SPANS[swizzle],
        promotion=promotion,
        fills_nan=bool(fill),
    )
    ctypes.memmove(to, made, len(made))


def _nothing(*_: Any) -> None:
    """All work is done when a launch returns, so there is nothing to wait for."""


def _zero(value: int, *_: Any) -> None:
    _put(value, 0, ctypes.c_int)


def _one(value: int, *_: Any) -> None:
    _put(value, 1, ctypes.c_int)


def _object(made: int, *_: Any) -> None:
    _put(made, driver.handle(object()))


ANSWERED: dict[str, tuple[Callable[..., None], tuple[Any, ...]]] = {
    "_cudaLibraryGetKernel": (_get_kernel, (P, P, P)),
    "_cudaLibraryUnload": (driver.taken_out, (P,)),
    "_cuKernelGetAttribute": (_kernel_attribute, (P, I, P, I)),
    "_cudaKernelSetAttributeForDevice": (_nothing, (P, I, I, I)),
    "_cudaFuncSetAttribute": (_nothing, (P, I, I)),
    "_cudaLaunchKernelEx": (_launch, (P, P, P)),
    "_cudaDeviceGetAttribute": (lambda to, which, _: _put(to, attribute(which), ctypes.c_int), (P, I, I)),
    "_cudaGetDevice": (_zero, (P,)),
    "_cudaGetDeviceCount": (_one, (P,)),
    "_cudaSetDevice": (_nothing, (I,)),
    "_cudaDeviceSynchronize": (_nothing, ()),
    "_cudaStreamCreate": (_object, (P,)),
    "_cudaStreamDestroy": (_nothing, (P,)),
    "_cudaStreamSynchronize": (_nothing, (P,)),
    "_cudaStreamWaitEvent": (_nothing, (P, P, I)),
    "_cudaEventCreate": (_object, (P,)),
    "_cudaEventDestroy": (_nothing, (P,)),
    "_cudaEventRecord": (_nothing, (P, P)),
    "_cuTensorMapEncodeTiled": (_tensor_map, (P, I, ctypes.c_uint32, P, P, P, P, P, I, I, I, I)),
}
# What only a GPU has, or what nobody has needed yet.
REFUSED = (
    "_cudaEventElapsedTime", "_cudaGraphInstantiate", "_cudaGraphLaunch", "_cudaLaunchKernel",
    "_cudaLibraryGetGlobal", "_cudaLibraryGetManaged", "_cudaLibraryGetUnifiedFunction",
    "_cudaLibraryLoadFromFile", "_cudaMalloc", "_cudaMallocAsync", "_cudaMallocHost", "_cudaMallocManaged",
    "_cudaMemcpy", "_cudaMemcpyAsync", "_cudaMemset", "_cudaMemsetAsync", "_cudaFree", "_cudaFreeAsync",
    "_cudaFreeHost", "_cudaGetDeviceProperties", "_cudaOccupancyMaxActiveBlocksPerMultiprocessor",
    "_cudaStreamAddCallback", "_cudaStreamBeginCapture", "_cudaStreamEndCapture",
)  # fmt: skip


def _refusing(name: str) -> Callable[..., None]:
    def refuse(*_: Any) -> None:
        raise LaunchError(f"CuTe DSL called {name.lstrip('_')}, which the simulated device does not have.")

    return refuse


FUNCTIONS: dict[str, Any] = {
    **{name: driver.c_function(answer, *types) for name, (answer, types) in ANSWERED.items()},
    **{name: driver.c_function(_refusing(name), *[P] * 6) for name in REFUSED},
}
