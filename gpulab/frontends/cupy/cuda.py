"""`cupy.cuda`: devices, streams, events and memory of the simulated device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

from . import compiler, memory, runtime, texture
from . import devices as device
from . import streams as stream
from .devices import Device, get_device_id
from .driver import driver
from .graphs import Graph
from .memory import (
    BaseMemory,
    Memory,
    MemoryHook,
    MemoryPointer,
    MemoryPool,
    PinnedMemory,
    PinnedMemoryPool,
    UnownedMemory,
    alloc,
    alloc_pinned_memory,
    get_allocator,
    set_allocator,
    using_allocator,
)
from .streams import Event, ExternalStream, Stream, get_current_stream, get_elapsed_time

PinnedMemoryPointer = PinnedMemory

__all__ = [
    "BaseMemory",
    "Device",
    "Event",
    "ExternalStream",
    "Graph",
    "Memory",
    "MemoryHook",
    "MemoryPointer",
    "MemoryPool",
    "PinnedMemory",
    "PinnedMemoryPointer",
    "PinnedMemoryPool",
    "Stream",
    "UnownedMemory",
    "alloc",
    "alloc_pinned_memory",
    "compiler",
    "device",
    "driver",
    "get_allocator",
    "get_current_stream",
    "get_device_id",
    "get_elapsed_time",
    "is_available",
    "memory",
    "nvtx",
    "profile",
    "profiler",
    "runtime",
    "set_allocator",
    "stream",
    "texture",
    "using_allocator",
]


def is_available() -> bool:
    """True: kernels can run. `gpulab.simulator.device.has_gpu` asks for a real GPU."""
    return True


@contextmanager
def profile() -> Iterator[None]:
    """Without effect on the simulated device; see gpulab.profile."""
    yield


def _nothing(*args: object, **kwargs: object) -> None:
    """Without effect on the simulated device."""


profiler = SimpleNamespace(start=_nothing, stop=_nothing, profile=profile)
nvtx = SimpleNamespace(RangePush=_nothing, RangePop=_nothing, Mark=_nothing)
