"""Global memory: one address space of separate allocations with guard gaps between them."""

from __future__ import annotations

import itertools
import threading
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from gpulab.simulator.ptx import Module

from .textures import Texels, Texture

FIRST_ADDRESS = 0x7_0000_0000  # far above any sum of sizes that a kernel might mistake for a pointer
GUARD = 1 << 20  # bytes between allocations: an index that is off by less than this hits no other array
ALIGNMENT = 512  # as cudaMalloc's
# Where generic addresses of local and of shared memory start: above all addresses of the host, at which its
# memory may be, too.
LOCAL_WINDOW = 1 << 48
SHARED_WINDOW = 1 << 49
WINDOW = 0x100_0000_0000
HEAP_PIECE = 16  # bytes of the kernels' heap that belong to one block or to none
FRESH = 0xFF  # unwritten bytes: NaN as a float, -1 as an integer, so that a forgotten write shows


def host_address(array: np.ndarray) -> int:
    """Where an array begins in the host's memory, in bytes.

    >>> four = np.zeros(4, np.int32)
    >>> host_address(four[1:]) - host_address(four)
    4
    """
    return int(array.__array_interface__["data"][0])


def _fresh(nbytes: int) -> np.ndarray:
    return np.full(nbytes, FRESH, np.uint8)


@dataclass(eq=False)
class Allocation:
    """A piece of global memory. `data` is its bytes (uint8, length `nbytes`); views of it are live."""

    address: int
    nbytes: int
    data: np.ndarray
    name: str = ""
    writable: bool = True
    written: bool = False  # by the host or by a kernel, since it was allocated
    mapped: bool = False  # the host has a view of it for good and may write at any time
    adopted: bool = False  # it is the host's, who may take it away between two launches
    book: np.ndarray | None = None  # of the kernels' heap: which of its pieces are in use, see `heap`
    _padded: np.ndarray = field(default_factory=lambda: np.empty(0, np.uint8), repr=False)
    _views: dict[np.dtype, np.ndarray] = field(default_factory=dict, repr=False)

    def view(self, dtype: np.dtype) -> np.ndarray:
        """All whole elements of `dtype`, 1-D, live."""
        found = self._views.get(dtype)
        if found is None:
            found = self._views[dtype] = self._padded[: len(self._padded) // 16 * 16].view(dtype)
        return found


class Listener(Protocol):
    """Whoever wants to hear of every write before it happens, such as a `Journal`."""

    def keep(self, allocation: Allocation, offset: np.ndarray | None = None) -> None:
        """Somebody is about to write to an allocation, at these bytes (None: anywhere)."""


class Variables(NamedTuple):
    """The variables of a loaded module: addresses by name. The module is kept beside them, so that its id is
    not given to another one."""

    module: Module
    addresses: dict[str, int]


class HeapMemory(NamedTuple):
    """The heap of kernels: what their blocks lie in, and the book that `heap` keeps about them."""

    blocks: Allocation
    book: Allocation


class Memory:
    """The global memory of a device. Addresses are bytes; nothing is ever given out twice.

    Arrays are given back when Python collects them, which may be in another thread: the two lists change
    together, under a lock, and nothing that is done under it makes Python collect.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._starts: list[int] = []
        self._allocations: list[Allocation] = []
        self._next = FIRST_ADDRESS
        self.modules: dict[int, Variables] = {}  # by the id of the module
        self.unwritten: Callable[[int], np.ndarray] = _fresh  # what so many new bytes hold
        self.journal: Listener | None = None
        self.heap: HeapMemory | None = None
        self.textures: dict[int, Texture | Texels] = {}  # by handle; a surface is its texels
        self._handles = itertools.count(1)

    def allocate(self, nbytes: int, name: str = "", fill: int | None = FRESH) -> Allocation:
        """`nbytes` of new memory, every byte `fill` (None: zeros, and faster for big arrays). Memory that is
        `FRESH` holds what `unwritten` says."""
        padded = max(16, (nbytes + 15) // 16 * 16)
        if fill == FRESH:
            data = self.unwritten(padded)
        else:
            data = np.zeros(padded, np.uint8) if fill is None else np.full(padded, fill, np.uint8)
        return self._place(Allocation(0, nbytes, data[:nbytes], name, _padded=data))

    def adopt(self, data: np.ndarray, nbytes: int, address: int = 0) -> Allocation:
        """Memory whose bytes are the first `nbytes` of `data` (uint8, whole pieces of 16 bytes), which is the
        host's: what a kernel writes is there at once.

        `address` is where kernels find it; with 0 that is chosen as for other memory, far from all of it.
        """
        adopted = Allocation(address, nbytes, data[:nbytes], written=True, adopted=True, _padded=data)
        return self._place(adopted)

    def _place(self, allocation: Allocation) -> Allocation:
        with self._lock:
            if not allocation.address:
                allocation.address = self._next
                room = len(allocation._padded) + GUARD + ALIGNMENT - 1
                self._next += room // ALIGNMENT * ALIGNMENT
            position = bisect_right(self._starts, allocation.address)
            self._starts.insert(position, allocation.address)
            self._allocations.insert(position, allocation)
        return allocation

    def add_texture(self, made: Texture | Texels) -> int:
        """The handle of a new texture, or of a new surface."""
        handle = next(self._handles)
        self.textures[handle] = made
        return handle

    def free(self, allocation: Allocation) -> None:
        """Give memory back: later accesses to its addresses are faults. Freeing twice does nothing."""
        with self._lock:
            position = bisect_right(self._starts, allocation.address) - 1
            if position >= 0 and self._allocations[position] is allocation:
                del self._starts[position]
                del self._allocations[position]

    def writes(self, allocation: Allocation, offset: np.ndarray | None = None) -> None:
        """The door that every write goes through: somebody is about to write at these bytes (None:
        anywhere)."""
        allocation.written = True
        if self.journal is not None:
            self.journal.keep(allocation, offset)

    def find(self, address: int) -> Allocation | None:
        """The allocation that holds the byte at `address`."""
        nearest = self.nearest(address)
        if nearest is not None and nearest.address <= address < nearest.address + max(nearest.nbytes, 1):
            return nearest
        return None

    def nearest(self, address: int) -> Allocation | None:
        """The last allocation that starts at or before `address`, else the first one."""
        with self._lock:
            if not self._allocations:
                return None
            return self._allocations[max(bisect_right(self._starts, address) - 1, 0)]

    @property
    def allocations(self) -> tuple[Allocation, ...]:
        return tuple(self._allocations)

    @property
    def used(self) -> int:
        """Bytes in use."""
        return sum(a.nbytes for a in self._allocations)
