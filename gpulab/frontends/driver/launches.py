"""Libraries, kernels and launches: what a launcher loads, asks for and starts."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

from gpulab.simulator import device as devices
from gpulab.simulator.compile import CompiledKernel
from gpulab.simulator.device import Launch
from gpulab.simulator.simt import ArrayLabel

from .host_arrays import HostCopies, Region

POINTER = 8  # bytes
ATTRIBUTE = 72  # bytes of a CUlaunchAttribute: its number, and 64 bytes of value behind 8
COOPERATIVE = 2  # CU_LAUNCH_ATTRIBUTE_COOPERATIVE
CLUSTER = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
TOO_LARGE = 720  # CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE

_objects: dict[int, Any] = {}
_handles = count(0x1000, 0x10)


def handle(thing: Any) -> int:
    """A number by which C names `thing`, until it is `taken_out`."""
    number = next(_handles)
    _objects[number] = thing
    return number


def named(number: int) -> Any:
    """What a handle names."""
    return _objects[number]


def taken_out(number: int) -> None:
    """A handle that names nothing any more."""
    _objects.pop(number, None)


@dataclass(frozen=True)
class Library:
    """PTX as a launcher loads it. `kernel` makes what the device launches, by the name of an entry."""

    kernel: Callable[[str], CompiledKernel]


@dataclass
class _Calls(threading.local):
    """The launcher's calls that are under way in this thread."""

    host: HostCopies | None = None
    finder: Callable[[int], Region | None] | None = None
    labels: tuple[ArrayLabel, ...] = ()


_calls = _Calls()


@contextmanager
def enter(
    finder: Callable[[int], Region | None] | None = None, labels: tuple[ArrayLabel, ...] = ()
) -> Iterator[HostCopies]:
    """While it is entered, a launcher may be called; the host's arrays that kernels got come back at its end.

    `finder` gives the region of the host that an address is in. `labels` name arrays, by their addresses
    as the launcher knows them.
    """
    before = _calls.host, _calls.finder, _calls.labels
    copies = HostCopies(devices.current())
    _calls.host, _calls.finder, _calls.labels = copies, finder, labels
    try:
        yield copies
    finally:
        _calls.host, _calls.finder, _calls.labels = before
        copies.back()


@contextmanager
def labelled(labels: tuple[ArrayLabel, ...]) -> Iterator[None]:
    """While it is entered, these are the names of arrays, by their addresses on the device."""
    before, _calls.labels = _calls.labels, labels
    try:
        yield
    finally:
        _calls.labels = before


@dataclass(frozen=True)
class Config:
    """A ``CUlaunchConfig``, which a ``cudaLaunchConfig_t`` equals where both have a field.

    With `cooperative` the kernel may wait for all its blocks, so the GPU must hold them at once.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    cluster: tuple[int, int, int] = (1, 1, 1)
    cooperative: bool = False


def read_config(address: int) -> Config:
    """The launch configuration at an address of the host."""
    *sizes, shared_bytes = struct.unpack("7I", ctypes.string_at(address, 28))
    attributes, number = struct.unpack("QI", ctypes.string_at(address + 40, 12))
    cluster, cooperative = (1, 1, 1), False
    for index in range(number):
        kind, *value = struct.unpack("I4x3I", ctypes.string_at(attributes + ATTRIBUTE * index, 20))
        if kind == CLUSTER:
            cluster = (value[0], value[1], value[2])
        elif kind == COOPERATIVE:
            cooperative = bool(value[0])
    grid, block = (sizes[0], sizes[1], sizes[2]), (sizes[3], sizes[4], sizes[5])
    return Config(grid, block, shared_bytes, cluster, cooperative)


def launch(config: Config, kernel: CompiledKernel, arguments: int) -> int:
    """Launch on the simulated device. `arguments` is the address of an array of pointers to the arguments.

    Returns CUDA's error code: 0, or `TOO_LARGE` for a cooperative launch that the GPU does not hold at once.
    """
    device = devices.current()
    if config.cooperative:
        asked = Launch(kernel, config.grid, config.block, b"", config.shared_bytes)
        if asked.blocks > device.resident_blocks(asked):
            return TOO_LARGE
    buffer, pointers, labels = _packed(device, kernel, arguments)
    device.launch(
        kernel,
        config.grid,
        config.block,
        buffer,
        shared_bytes=config.shared_bytes,
        pointers=pointers,
        arrays=labels,
        cluster=None if config.cluster == (1, 1, 1) else config.cluster,
    )
    return 0


def _packed(
    device: devices.SimulatedDevice, kernel: CompiledKernel, arguments: int
) -> tuple[bytes, tuple[int, ...], tuple[ArrayLabel, ...]]:
    """(the parameter buffer with addresses of the device, where these are in it, what the arrays are called).

    An argument that holds pointers, alone or in a structure, has them at multiples of 8 bytes.
    """
    parameters = device.program(kernel).parameters
    buffer = bytearray(device.program(kernel).parameter_bytes)
    given = (ctypes.c_void_p * len(parameters)).from_address(arguments) if parameters else ()
    pointers: list[int] = []
    moved: dict[int, int] = {}  # from a region's address on the host to that of its copy
    for parameter, source in zip(parameters, given, strict=True):
        end = parameter.offset + parameter.nbytes
        buffer[parameter.offset : end] = ctypes.string_at(source, parameter.nbytes)
        for offset in range(-(-parameter.offset // POINTER) * POINTER, end - POINTER + 1, POINTER):
            (word,) = struct.unpack_from("Q", buffer, offset)
            if device.memory.find(word) is not None:
                pointers.append(offset)
            elif _calls.host is not None and _calls.finder and (region := _calls.finder(word)) is not None:
                moved[region.address] = _calls.host.address(region)
                struct.pack_into("Q", buffer, offset, word - region.address + moved[region.address])
                pointers.append(offset)
    return bytes(buffer), tuple(pointers), tuple(_relabelled(moved))


def _relabelled(moved: dict[int, int]) -> Iterator[ArrayLabel]:
    """The names of arrays, those of the host at the addresses of their copies."""
    for label in _calls.labels:
        region = _calls.finder(label.address) if _calls.finder else None
        if region is None:
            yield label
        elif region.address in moved:
            address = label.address - region.address + moved[region.address]
            yield ArrayLabel(label.name, address, label.shape, label.strides, label.dtype, label.itemsize)
