"""Memory of the host that kernels reach where it is: nothing is copied, and addresses stay what they are."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from gpulab.simulator import simt

PIECE = 16  # bytes of the widest access; memory of the host is adopted in whole ones


@dataclass
class _Adopted:
    allocation: simt.Allocation
    is_alive: Callable[[], bool]


@dataclass
class HostMemory:
    """The host's memory that a device has adopted, by its address on the host and for kernels."""

    memory: simt.Memory
    _adopted: dict[tuple[int, bool], _Adopted] = field(default_factory=dict)

    def adopt(
        self, start: int, nbytes: int, is_alive: Callable[[], bool], *, in_place: bool = False
    ) -> simt.Allocation | None:
        """The allocation whose bytes are the `nbytes` of the host from address `start` on; made once.

        `is_alive` says whether they still belong to their owner, who is asked before each launch. With
        `in_place` kernels find them at the host's own address, as in tables of pointers; otherwise at an
        address of their own, with a gap on both sides, so that an index outside the array is found. None
        for memory that no whole piece of 16 bytes begins with.

        >>> data = np.arange(8, dtype=np.float32)
        >>> device = gpulab.simulator.device.current()
        >>> there = device.host_memory.adopt(data.ctypes.data, data.nbytes, lambda: True, in_place=True)
        >>> there.address == data.ctypes.data
        True
        >>> device.host_memory.forget(lambda allocation: allocation is there)
        """
        if start % PIECE or not nbytes:
            return None
        found = self._adopted.get((start, in_place))
        if found is not None:
            if found.allocation.nbytes == nbytes and found.is_alive():
                return found.allocation
            self.memory.free(found.allocation)
        room = (nbytes + PIECE - 1) // PIECE * PIECE  # what follows in a piece is in the same page
        data = np.ctypeslib.as_array((ctypes.c_uint8 * room).from_address(start))
        made = self.memory.adopt(data, nbytes, start if in_place else 0)
        self._adopted[start, in_place] = _Adopted(made, is_alive)
        return made

    def sweep(self) -> None:
        """Give back what no longer belongs to its owner: a kernel that still uses it faults."""
        if self._adopted:
            dead = {id(a.allocation) for a in self._adopted.values() if not a.is_alive()}
            self.forget(lambda allocation: id(allocation) in dead)

    def forget(self, which: Callable[[simt.Allocation], bool]) -> None:
        """Give back the allocations for which `which` is true."""
        for key, adopted in list(self._adopted.items()):
            if which(adopted.allocation):
                self.memory.free(adopted.allocation)
                del self._adopted[key]
