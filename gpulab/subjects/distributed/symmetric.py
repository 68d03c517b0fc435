"""Symmetric memory on the counted network: every rank has the same slots, and others write into them.

A put is one-sided: it names a slot of another rank, and that rank's program takes no part. It travels as a
message whose tag is the slot. Nothing of it can be seen before the slot's flag was waited for, which is the
latest that a real network might deliver it: a program that reads too early reads zeros.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist


class Memory:
    """As many `slots` on each rank, each of `numbers` numbers of one `dtype`; all ranks make it alike.

    `slots` is this rank's own memory, a tensor (slots × numbers) of zeros at first.

    memory = symmetric.Memory(2, len(x))
    memory.put(1, 0, x)          # into slot 0 of rank 1, and raise its flag
    memory.wait((3, 0), (2, 1))  # until rank 3 has put into slot 0 here, and rank 2 into slot 1
    memory.quiet()               # until all puts of this rank have arrived
    """

    def __init__(self, slots: int, numbers: int, dtype: torch.dtype = torch.float32) -> None:
        self.slots = torch.zeros(slots, numbers, dtype=dtype)
        self._puts: list[tuple[Any, torch.Tensor]] = []  # as long as they are under way

    def put(self, peer: int, slot: int, row: torch.Tensor) -> None:
        """Write a whole row into a slot of rank `peer`, then raise the slot's flag there. Does not wait.

        Raises ValueError for a row of another shape or type.
        """
        if row.shape != self.slots[slot].shape or row.dtype != self.slots.dtype:
            raise ValueError(
                f"a slot holds {self.slots.shape[1]} numbers of {self.slots.dtype}; the row has the shape "
                f"{tuple(row.shape)} and the type {row.dtype}"
            )
        copy = row.detach().clone()
        self._puts.append((dist.isend(copy, peer, tag=slot), copy))

    def wait(self, *flags: tuple[int, int]) -> None:
        """Wait for all `flags`, each a pair (peer, slot): the slot here into which `peer` puts."""
        coming = [dist.irecv(self.slots[slot], peer, tag=slot) for peer, slot in flags]
        for each in coming:
            each.wait()

    def quiet(self) -> None:
        """Wait until all puts of this rank have arrived, and been waited for there."""
        for work, _ in self._puts:
            work.wait()
        self._puts.clear()
