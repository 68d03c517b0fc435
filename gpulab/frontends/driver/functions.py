"""What functions of CUDA do that more than one launcher calls: written to C's pointers, as CUDA writes."""

from __future__ import annotations

import ctypes
from typing import Any

from gpulab.simulator import device as devices
from gpulab.simulator.device import LaunchError
from gpulab.simulator.simt import tensor_maps

from . import launches
from .attributes import attribute
from .launches import handle, named, read_config

STATIC_SHARED = 1  # CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
REGISTERS = 4  # CU_FUNC_ATTRIBUTE_NUM_REGS


def put(where: int | None, value: int, kind: Any = ctypes.c_uint64) -> None:
    """Write `value` to an address of the host, unless that is null."""
    if where:
        kind.from_address(where).value = value


def get_kernel(kernel: int, library: int, name: int) -> None:
    """``cuLibraryGetKernel``."""
    entry = ctypes.string_at(name).decode()
    put(kernel, handle(named(library).kernel(entry)))


def kernel_attribute(value: int, which: int, kernel: int, _: int) -> None:
    """``cuKernelGetAttribute``. Raises LaunchError for an attribute that ptxas does not tell."""
    used = devices.current().resources(named(kernel))
    if which == STATIC_SHARED:
        put(value, used.shared_bytes, ctypes.c_int)
    elif which == REGISTERS:
        put(value, used.registers, ctypes.c_int)
    else:
        raise LaunchError(f"{named(kernel).name}: attribute {which} of a kernel is not simulated.")


def device_attribute(value: int, which: int, _: int) -> None:
    """``cuDeviceGetAttribute``."""
    put(value, attribute(which), ctypes.c_int)


def launch(config: int, kernel: int, arguments: int, *_: int) -> int:
    """``cuLaunchKernelEx``."""
    return launches.launch(read_config(config), named(kernel), arguments)


def tensor_map(
    to: int, kind: int, rank: int, address: int, sizes: int, strides: int, box: int, steps: int,
    interleave: int, swizzle: int, promotion: int, fill: int,
) -> None:  # fmt: skip
    """``cuTensorMapEncodeTiled``. Raises tensor_maps.WrongTensorMap."""

    def numbers(where: int, count: int, type_: Any) -> tuple[int, ...]:
        return tuple((type_ * count).from_address(where)) if count else ()

    span, atomicity = tensor_maps.DRIVER_SWIZZLES[swizzle]
    made = tensor_maps.encode_tiled(
        tensor_maps.DRIVER_TYPES[kind],
        address,
        numbers(sizes, rank, ctypes.c_uint64),
        numbers(strides, rank - 1, ctypes.c_uint64),
        numbers(box, rank, ctypes.c_uint32),
        numbers(steps, rank, ctypes.c_uint32),
        interleave=tensor_maps.INTERLEAVES[interleave],
        span=span,
        atomicity=atomicity,
        promotion=promotion,
        fills_nan=bool(fill),
    )
    ctypes.memmove(to, made, len(made))


def nothing(*_: Any) -> None:
    """All work is done when a launch returns, so there is nothing to wait for."""


def zero(value: int, *_: Any) -> None:
    """A number that is always 0, such as that of the current device."""
    put(value, 0, ctypes.c_int)


def one(value: int, *_: Any) -> None:
    """A number that is always 1, such as that of devices."""
    put(value, 1, ctypes.c_int)


def new(made: int, *_: Any) -> None:
    """A stream or an event, which is but a handle."""
    put(made, handle(object()))
