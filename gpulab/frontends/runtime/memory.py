"""Device memory, the host's memory that kernels reach, and copies between them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpulab.frontends.driver.functions import nothing, put
from gpulab.simulator import device as devices
from gpulab.simulator.device.cuda_arrays import CudaArray
from gpulab.simulator.simt.memory import FIRST_ADDRESS, GUARD

from .errors import Refused
from .graphs import GraphCalls
from .structures import Copy3D, Extent, PitchedPointer

Array = np.ndarray
P, I, N = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
PITCH = 512  # bytes that the rows of cudaMallocPitch are a multiple of
ENDS = FIRST_ADDRESS << 4  # far above all addresses that the simulated device gives out
OUT_OF_MEMORY, INVALID_POINTER, INVALID_HANDLE = 2, 17, 400
TO_DEVICE, FROM_DEVICE = (1, 3), (2, 3)  # cudaMemcpyKind: the sides that must be device memory
HOST_MEMORY, DEVICE_MEMORY, MANAGED = 1, 2, 3  # cudaMemoryType


@dataclass
class MemoryCalls:
    """The runtime's functions about memory."""

    device: devices.SimulatedDevice
    graphs: GraphCalls
    arrays: dict[int, CudaArray] = field(default_factory=dict)  # by their addresses
    _host: dict[int, tuple[Any, int]] = field(default_factory=dict)  # by address: (its owner, cudaMemoryType)

    # ---- allocating ------------------------------------------------------------------------------

    def malloc(self, where: int, nbytes: int, *_: int) -> None:
        """``cudaMalloc``; as there, 0 bytes are a null pointer."""
        put(where, self._new(nbytes) if nbytes else 0)

    def malloc_pitch(self, where: int, pitch: int, width: int, height: int) -> None:
        """``cudaMallocPitch``: rows of `width` bytes that start at multiples of 512."""
        row = -(-width // PITCH) * PITCH
        put(pitch, row)
        put(where, self._new(row * height))

    def malloc_3d(self, where: int, extent: Extent) -> None:
        """``cudaMalloc3D``: slices of rows that start at multiples of 512."""
        row = -(-extent.width // PITCH) * PITCH
        address = self._new(row * extent.height * extent.depth)
        made = PitchedPointer(address, row, extent.width, extent.height)
        ctypes.memmove(where, ctypes.addressof(made), ctypes.sizeof(made))

    def _new(self, nbytes: int) -> int:
        total = int(self.device.gpu.dram_bytes)
        if self.device.memory.used + nbytes > total:
            raise Refused(
                f"{nbytes:,} bytes do not fit: the {self.device.gpu.name} has {total:,} bytes, of which "
                f"{self.device.memory.used:,} are in use.",
                OUT_OF_MEMORY,
            )
        return self.device.allocate(nbytes).address

    def malloc_host(self, where: int, nbytes: int, *_: int) -> None:
        """``cudaMallocHost``: memory of the host that kernels reach at the same address."""
        put(where, self._shared(nbytes, HOST_MEMORY))

    def malloc_managed(self, where: int, nbytes: int, *_: int) -> None:
        """``cudaMallocManaged``."""
        put(where, self._shared(nbytes, MANAGED))

    def _shared(self, nbytes: int, kind: int) -> int:
        """New memory of the host, with gaps around it in which an index out of bounds is found."""
        owner = np.zeros(nbytes + 2 * GUARD, np.uint8)
        address = -(-(owner.ctypes.data + GUARD) // PITCH) * PITCH
        self._adopt(address, nbytes, owner, kind)
        return address

    def _adopt(self, address: int, nbytes: int, owner: Any, kind: int) -> None:
        self._host[address] = owner, kind
        self.device.host_memory.adopt(address, nbytes, lambda: address in self._host, in_place=True)

    def host_register(self, address: int, nbytes: int, _: int) -> None:
        """``cudaHostRegister``: memory that the program has already, from the 16 bytes on that hold it."""
        start = address - address % 16
        self._adopt(start, nbytes + address - start, None, HOST_MEMORY)

    def host_unregister(self, address: int) -> None:
        """``cudaHostUnregister``."""
        self._host.pop(address - address % 16, None)

    def free(self, address: int, *_: int) -> None:
        """``cudaFree`` and ``cudaFreeHost``. Raises Refused for what is no start of an allocation."""
        if not address:
            return
        if self._host.pop(address, None) is not None:
            self.device.host_memory.sweep()
            return
        found = self.device.memory.find(address)
        if found is None or found.address != address:
            what = "has been freed already, or never was allocated" if found is None else "is inside an array"
            raise Refused(f"{address:#x} {what}.", INVALID_POINTER if found is None else 1)
        self.device.free(found)

    # ---- asking ----------------------------------------------------------------------------------

    def info(self, free: int, total: int) -> None:
        """``cudaMemGetInfo``."""
        capacity = int(self.device.gpu.dram_bytes)
        put(free, max(capacity - self.device.memory.used, 0))
        put(total, capacity)

    def kind_of(self, address: int) -> int:
        """The cudaMemoryType of an address; 0 for memory that the runtime knows nothing of."""
        found = self.device.memory.find(address)
        if found is None:
            return 0
        return self._host[found.address][1] if found.address in self._host else DEVICE_MEMORY

    def pointer_attributes(self, where: int, address: int) -> None:
        """``cudaPointerGetAttributes``: the kind of memory, the device, its addresses there and here."""
        kind = self.kind_of(address)
        put(where, kind, ctypes.c_int)
        put(where + 4, 0 if kind else -1, ctypes.c_int)
        put(where + 8, address if kind else 0)
        put(where + 16, address if kind != DEVICE_MEMORY else 0)

    def device_pointer(self, where: int, address: int, _: int) -> None:
        """``cudaHostGetDevicePointer``: it is the same address."""
        put(where, address)

    # ---- copying ---------------------------------------------------------------------------------

    def bytes_at(
        self, address: int, nbytes: int, *, writes: bool = False, on_device: bool | None = None
    ) -> Array:
        """The bytes at an address of the device or the host, uint8, live.

        `on_device` is what the program says of it, None if it leaves that open. Raises Refused where that is
        wrong, or the bytes are not all in one allocation.
        """
        found = self.device.memory.find(address)
        did = "written to" if writes else "read from"
        if found is None:
            if FIRST_ADDRESS <= address < ENDS:
                raise Refused(
                    f"{nbytes:,} bytes are {did} {address:#x}, which belongs to no array. Was it freed?"
                )
            if on_device and nbytes:
                raise Refused(
                    f"{address:#x} should be device memory, but is the host's. Are both pointers in the "
                    "right order, and does the kind of the copy fit?"
                )
            return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))
        if on_device is False and not found.adopted:
            raise Refused(
                f"{address:#x} should be memory of the host, but is the device's. Are both pointers in "
                "the right order, and does the kind of the copy fit?"
            )
        start = address - found.address
        if start + nbytes > found.nbytes:
            raise Refused(
                f"{nbytes:,} bytes are {did} an array of {found.nbytes:,} bytes"
                f"{f', from byte {start:,} on' if start else ''}: {start + nbytes - found.nbytes:,} too many."
            )
        return self.device.host_view(found, writes)[start : start + nbytes]

    def copy(self, to: int, source: int, nbytes: int, kind: int, *_: int) -> None:
        """``cudaMemcpy``; the kind 4 leaves it to the addresses which side is which."""
        if nbytes:
            there = self.bytes_at(source, nbytes, on_device=_side(kind, FROM_DEVICE))
            self.bytes_at(to, nbytes, writes=True, on_device=_side(kind, TO_DEVICE))[:] = there

    def copy_async(self, to: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        """``cudaMemcpyAsync``."""
        self.graphs.carry_out(stream, lambda: self.copy(to, source, nbytes, kind))

    def set_async(self, address: int, value: int, nbytes: int, stream: int) -> None:
        """``cudaMemsetAsync``."""
        self.graphs.carry_out(stream, lambda: self.set(address, value, nbytes))

    def copy_rows(
        self, to: int, to_pitch: int, source: int, pitch: int, width: int, height: int, kind: int, *_: int
    ) -> None:
        """``cudaMemcpy2D``."""
        for row in range(height):
            self.copy(to + row * to_pitch, source + row * pitch, width, kind)

    def copy_3d(self, described: int, *_: int) -> None:
        """``cudaMemcpy3D`` between memory with pitches and CUDA arrays, where x and width count elements."""
        asked = Copy3D.from_address(described)
        to, (tx, ty, tz), wide = self._side(asked.to_array, asked.to, asked.to_place)
        source, (sx, sy, sz), wide_too = self._side(asked.source_array, asked.source, asked.source_place)
        width = asked.extent.width * max(wide, wide_too)
        for z in range(asked.extent.depth):
            for y in range(asked.extent.height):
                self.copy(to.row(tx, ty + y, tz + z), source.row(sx, sy + y, sz + z), width, asked.kind)

    def _side(self, array: int, memory: PitchedPointer, place: Any) -> tuple[PitchedPointer, list[int], int]:
        """One side of a copy as memory with a pitch, the place in it with x in bytes, and how many bytes an
        element of the array has."""
        x, y, z = place
        if not array:
            return memory, [x, y, z], 1
        texels = self.array(array).texels
        there = PitchedPointer(texels.address, texels.pitch, texels.width, max(texels.height, 1))
        return there, [x * texels.texel_bytes, y, z], texels.texel_bytes

    def array(self, address: int) -> CudaArray:
        """The CUDA array at an address. Raises Refused where there is none."""
        if address not in self.arrays:
            raise Refused(f"{address:#x} is no CUDA array, or was freed.", INVALID_HANDLE)
        return self.arrays[address]

    def set_3d(self, there: PitchedPointer, value: int, extent: Extent, *_: int) -> None:
        """``cudaMemset3D``."""
        for z in range(extent.depth):
            self.set_rows(there.row(0, 0, z), there.pitch, value, extent.width, extent.height)

    def copy_peer(self, to: int, _: int, source: int, __: int, nbytes: int, *___: int) -> None:
        """``cudaMemcpyPeer``: both devices are one."""
        self.copy(to, source, nbytes, 3)

    def set(self, address: int, value: int, nbytes: int, *_: int) -> None:
        """``cudaMemset``."""
        if nbytes:
            self.bytes_at(address, nbytes, writes=True, on_device=True)[:] = value & 0xFF

    def set_rows(self, address: int, pitch: int, value: int, width: int, height: int, *_: int) -> None:
        """``cudaMemset2D``."""
        for row in range(height):
            self.set(address + row * pitch, value, width)

    def answers(self) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
        """(name, what answers it, types of its arguments) of each function."""
        yield "cudaMalloc", self.malloc, (P, N)
        yield "cudaMallocAsync", self.malloc, (P, N, P)
        yield "cudaMallocFromPoolAsync", self.malloc, (P, N, P, P)
        yield "cudaMallocPitch", self.malloc_pitch, (P, P, N, N)
        yield "cudaMalloc3D", self.malloc_3d, (P, Extent)
        yield "cudaMallocManaged", self.malloc_managed, (P, N, I)
        yield "cudaMallocHost", self.malloc_host, (P, N)
        yield "cudaHostAlloc", self.malloc_host, (P, N, I)
        yield "cudaHostRegister", self.host_register, (P, N, I)
        yield "cudaHostUnregister", self.host_unregister, (P,)
        yield "cudaHostGetDevicePointer", self.device_pointer, (P, P, I)
        for name in ("cudaFree", "cudaFreeHost"):
            yield name, self.free, (P,)
        yield "cudaFreeAsync", self.free, (P, P)
        yield "cudaMemGetInfo", self.info, (P, P)
        yield "cudaPointerGetAttributes", self.pointer_attributes, (P, P)
        yield "cudaMemcpy", self.copy, (P, P, N, I)
        yield "cudaMemcpyAsync", self.copy_async, (P, P, N, I, P)
        yield "cudaMemcpy2D", self.copy_rows, (P, N, P, N, N, N, I)
        yield "cudaMemcpy2DAsync", self.copy_rows, (P, N, P, N, N, N, I, P)
        yield "cudaMemcpy3D", self.copy_3d, (P,)
        yield "cudaMemcpy3DAsync", self.copy_3d, (P, P)
        yield "cudaMemset3D", self.set_3d, (PitchedPointer, I, Extent)
        yield "cudaMemset3DAsync", self.set_3d, (PitchedPointer, I, Extent, P)
        yield "cudaMemcpyPeer", self.copy_peer, (P, I, P, I, N)
        yield "cudaMemcpyPeerAsync", self.copy_peer, (P, I, P, I, N, P)
        yield "cudaMemset", self.set, (P, I, N)
        yield "cudaMemsetAsync", self.set_async, (P, I, N, P)
        yield "cudaMemset2D", self.set_rows, (P, N, I, N, N)
        yield "cudaMemset2DAsync", self.set_rows, (P, N, I, N, N, P)
        yield "cudaMemPrefetchAsync", nothing, (P, N, ctypes.c_uint64, I, P)
        yield "cudaMemAdvise", nothing, (P, N, I, ctypes.c_uint64)


def _side(kind: int, of_device: tuple[int, ...]) -> bool | None:
    """Whether a side of a copy is on the device by the copy's kind; None where that is left open."""
    return None if kind == 4 else kind in of_device
