"""Who brings data and who takes them away, and how far ahead copies are sent: what a pipeline is made of."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from gpulab.simulator.simt import Access, Chunk, Observer, Transfer
from gpulab.simulator.simt.warps import WARP

from .bulk_ends import at_mbarriers

Array = np.ndarray
Phase = tuple[int, int, int]  # block, address of the mbarrier in its shared memory, parity

BEFORE_THE_FIRST = 1  # the parity of the phase before phase 0


@dataclass
class _Warps:
    """By block of a chunk and warp: whether it has loaded from global memory, and stored to it."""

    chunk: Chunk
    load: Array = field(init=False)
    store: Array = field(init=False)

    def __post_init__(self) -> None:
        shape = self.chunk.blocks.size, self.chunk.warps_per_block
        self.load, self.store = np.zeros(shape, bool), np.zeros(shape, bool)


class Pipelines(Observer):
    """Follows the data of a launch; read its attributes after the launch.

    `mixed_warps` have both loaded from global memory and stored to it; a warp that sends a copy counts as if
    it loaded or stored. `phases` is how many phases of the mbarrier that has most were seen to be over.
    `arrived` is the bytes of bulk copies that somebody waited for at an mbarrier, and `behind` the sum of
    those bytes times the bytes which their block had sent for and which were not waited for yet.
    """

    def __init__(self) -> None:
        self.arrived = 0
        self.behind = 0
        self._warps: dict[int, _Warps] = {}  # by the first block of a chunk
        self._over: dict[tuple[int, int], tuple[int, int]] = {}  # mbarrier → last parity, phases
        self._sent: dict[int, dict[Phase, int]] = defaultdict(dict)  # block → bytes on their way

    @property
    def mixed_warps(self) -> int:
        return sum(int((warps.load & warps.store).sum()) for warps in self._warps.values())

    @property
    def phases(self) -> int:
        return max((count for _, count in self._over.values()), default=0)

    def access(self, access: Access) -> None:
        if access.space != "global" or access.kind == "atomic":
            return
        warps = self._of(access.chunk)
        moved = warps.load if access.kind == "load" else warps.store
        if access.lanes is None:
            moved[:] = True
        else:
            shape = moved.shape[0], access.chunk.lanes_per_block
            moved |= np.broadcast_to(access.lanes, shape).reshape(*moved.shape, WARP).any(axis=2)

    def bulk(self, transfer: Transfer) -> None:
        if transfer.address is None or transfer.kind == "prefetch":
            return
        warps = self._of(transfer.chunk)
        moved = warps.load if transfer.kind == "load" else warps.store
        moved[transfer.row, transfer.lane // WARP] = True
        if transfer.barrier is None or transfer.barrier_rows is None or transfer.phase is None:
            return
        assert transfer.offset is not None
        blocks = transfer.chunk.blocks[transfer.barrier_rows]
        nbytes = transfer.offset.shape[1] * transfer.size
        for block, address, parity in zip(blocks, transfer.barrier, transfer.phase, strict=True):
            sent, phase = self._sent[int(block)], (int(block), int(address), int(parity))
            sent[phase] = sent.get(phase, 0) + nbytes

    def passed(
        self,
        index: int,
        address: Array,
        phase: Array,
        lanes: Array,
        chunk: Chunk,
        rows: Array | None = None,
    ) -> None:
        for block, where, parity, _ in at_mbarriers(address, phase, lanes, chunk, rows):
            if where < 0:  # a barrier of the hardware
                continue
            last, count = self._over.get((block, where), (BEFORE_THE_FIRST, 0))
            if parity != last:
                self._over[block, where] = parity, count + 1
            sent = self._sent[block]
            if (nbytes := sent.pop((block, where, parity), 0)) > 0:
                self.arrived += nbytes
                self.behind += nbytes * sum(sent.values())

    def _of(self, chunk: Chunk) -> _Warps:
        return self._warps.setdefault(int(chunk.blocks[0]), _Warps(chunk))
