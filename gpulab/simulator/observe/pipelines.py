"""Which warps load and which store, how often mbarriers are reused, and how far ahead copies are sent."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from gpulab.simulator.simt import Access, Chunk, Observer, Transfer
from gpulab.simulator.simt.warps import WARP

from .bulk_ends import at_mbarriers
from .warpgroup_hazards import all_lanes, lanes_of

Array = np.ndarray
Phase = tuple[int, int, int]  # block, address of the mbarrier in its shared memory, parity

BEFORE_THE_FIRST = 1  # the parity of the phase before phase 0


@dataclass(frozen=True)
class PipelineCounts:
    """What a launch did to have work on its way while it waits.

    `mixed_warps` is the number of warps that have both loaded from global memory and stored to it; a warp
    that sends a copy counts as if it loaded or stored, and an atomic does both. `mbarrier_phases` is the
    number of phases, seen to be over, of the mbarrier that has most. `bulk_bytes_arrived` is the number of
    bytes that bulk copies brought before a thread waited for them at an mbarrier. `bulk_bytes_behind` adds
    up, over these bytes, how many bytes the same block was still waiting for at that moment.
    `warpgroup_products_made` and `warpgroup_products_behind` are the same for the products of ``wgmma``;
    `warpgroup_products_most` is how many the warpgroup that has most asked for. `idle_arrivals` are arrivals
    at mbarriers by threads whose warpgroup has multiplied and has no product in flight.
    """

    mixed_warps: int = 0
    mbarrier_phases: int = 0
    bulk_bytes_arrived: int = 0
    bulk_bytes_behind: int = 0
    warpgroup_products_made: int = 0
    warpgroup_products_behind: int = 0
    warpgroup_products_most: int = 0
    idle_arrivals: int = 0


LOADED, STORED = 0, 1  # what a warp has done to global memory
IN_FLIGHT, MADE, ASKED = 0, 1, 2  # where a warpgroup's products are, and all of them


class Pipelines(Observer):
    """Follows the data of a launch; read `counts` after the launch."""

    wants_values = False

    def __init__(self) -> None:
        self._bytes_arrived = 0
        self._bytes_behind = 0
        self._products_made = 0
        self._products_behind = 0
        self._idle_arrivals = 0
        # By the first block of a chunk: what its warps did, (2, B, warps), and products, (3, B, groups).
        self._warps: dict[int, Array] = {}
        self._products: dict[int, Array] = {}
        self._over: dict[tuple[int, int], tuple[int, int]] = {}  # mbarrier → last parity, phases
        self._sent: dict[int, dict[Phase, int]] = defaultdict(dict)  # block → bytes on their way

    @property
    def counts(self) -> PipelineCounts:
        return PipelineCounts(
            mixed_warps=sum(int(warps.all(axis=0).sum()) for warps in self._warps.values()),
            mbarrier_phases=max((phases for _, phases in self._over.values()), default=0),
            bulk_bytes_arrived=self._bytes_arrived,
            bulk_bytes_behind=self._bytes_behind,
            warpgroup_products_made=self._products_made,
            warpgroup_products_behind=self._products_behind,
            warpgroup_products_most=max((int(p[ASKED].max()) for p in self._products.values()), default=0),
            idle_arrivals=self._idle_arrivals,
        )

    def access(self, access: Access) -> None:
        if access.space != "global":
            return
        done = {"load": [LOADED], "atomic": [LOADED, STORED]}.get(access.kind, [STORED])
        for what in done:
            self._moved(self._of(access.chunk)[what], access)

    def _moved(self, moved: Array, access: Access) -> None:
        """Mark the warps of an access."""
        if moved.all():  # as it soon is in nearly all kernels
            return
        if access.lanes is None:
            moved[:] = True
        else:
            shape = moved.shape[0], access.chunk.lanes_per_block
            moved |= np.broadcast_to(access.lanes, shape).reshape(*moved.shape, WARP).any(axis=2)

    def bulk(self, transfer: Transfer) -> None:
        if transfer.address is None or transfer.kind == "prefetch":
            return
        what = LOADED if transfer.kind == "load" else STORED
        self._of(transfer.chunk)[what, transfer.row, transfer.lane // WARP] = True
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
                self._bytes_arrived += nbytes
                self._bytes_behind += nbytes * sum(sent.values())

    def arrive(
        self,
        index: int,
        address: Array,
        phase: Array,
        lanes: Array | None,
        chunk: Chunk,
        rows: Array | None = None,
    ) -> None:
        products = self._products.get(int(chunk.blocks[0]))
        if products is None:
            return
        idle = (products[ASKED] > 0) & (products[IN_FLIGHT] == 0)
        threads = lanes_of(idle, chunk) & all_lanes(lanes, chunk)
        arriving = threads & (address >= 0)  # and not at a barrier of the hardware
        self._idle_arrivals += int(arriving.sum())

    def product(self, index: int, warpgroups: Array, made: bool, chunk: Chunk) -> None:
        first = int(chunk.blocks[0])
        if first not in self._products:
            self._products[first] = np.zeros((3, *warpgroups.shape), np.int64)
        products = self._products[first]
        products[IN_FLIGHT] += -1 * warpgroups if made else warpgroups
        products[MADE] += warpgroups * made
        products[ASKED] += warpgroups * (not made)

    def warp_sync(self, index: int, lanes: Array | None, masks: Array | None, chunk: Chunk) -> None:
        """At the end of a wait for products: what it was for is made, and the others are in flight."""
        products = self._products.get(int(chunk.blocks[0]))
        if products is not None and products[MADE].any():
            self._products_made += int(products[MADE].sum())
            self._products_behind += int((products[IN_FLIGHT] * products[MADE]).sum())
            products[MADE] = 0

    def _of(self, chunk: Chunk) -> Array:
        first = int(chunk.blocks[0])
        if first not in self._warps:
            self._warps[first] = np.zeros((2, chunk.blocks.size, chunk.warps_per_block), bool)
        return self._warps[first]
