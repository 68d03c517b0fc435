"""What each warp of one block, or of one cluster, does in turn: work, wait, hand over, send."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpulab.simulator.ptx import Instruction
from gpulab.simulator.simt import Access, Chunk, Observer, Program, TensorProduct, Transfer
from gpulab.simulator.simt.opcodes import matrix_shape
from gpulab.simulator.simt.warps import WARP

from .bulk_ends import arrivals
from .counters import is_copy

Array = np.ndarray
Warp = tuple[int, int]  # rank of the block in its cluster, warp of the block
Event = tuple[str, int, int, int]  # of what kind, block, address or number, phase

MOST = 20_000  # actions of all warps that are kept
WARPS_OF_A_GROUP = 4  # that ask for a product of wgmma together


@dataclass(frozen=True)
class Action:
    """Something that a warp does. `kind` is

    work     `amount` instructions
    load     global memory, `amount` bytes, and waits for them
    copy     sends a copy of `amount` bytes, which brings about `events` when it has come
    store    sends a copy of `amount` bytes to global memory
    product  asks the tensor cores for a product of `amount` multiplications, which brings about `events`
    arrive   brings about its part of `events`
    wait     for `events`
    """

    kind: str
    amount: int = 0
    events: tuple[Event, ...] = ()
    index: int = -1  # of the instruction


def waits_at_mbarrier(instruction: Instruction) -> bool:
    """``mbarrier.test_wait`` and ``try_wait``."""
    return instruction.parts[0] == "mbarrier" and instruction.parts[1] in ("test_wait", "try_wait")


class WarpRoles(Observer):
    """Read `actions` after the launch: by warp, in their order. Looking again and again at an mbarrier is one
    wait. `dropped` says whether there were more than are kept."""

    wants_values = False

    def __init__(self) -> None:
        self.actions: dict[Warp, list[Action]] = defaultdict(list)
        self.dropped = False
        self._begins: int | None = None
        self._kept = 0
        self._work: dict[Warp, int] = defaultdict(int)  # instructions since the last action
        self._looked: dict[Warp, int] = {}  # … when it looked at an mbarrier, and after that look
        self._phase: dict[tuple[int, int], int] = defaultdict(int)  # of each mbarrier, the current one
        self._meetings: dict[int, int] = defaultdict(int)
        self._copies: dict[Warp, deque[tuple[int, Event]]] = defaultdict(deque)  # of cp.async, on their way
        self._products: dict[Warp, deque[Event]] = defaultdict(deque)
        self._asked: dict[int, list[Event]] = defaultdict(list)  # products of tcgen05, by block
        self._brought: set[Event] = set()  # about by an action
        self._numbers: dict[str, int] = defaultdict(int)
        self._running: list[Warp] = []

    def start(self, program: Program, grid: object, block: object) -> None:
        self._looks = [waits_at_mbarrier(i) for i in program.instructions]
        self._program = program

    # ---- what warps do ---------------------------------------------------------------------------------

    def executed(self, first: int, stop: int, lanes: Array | None, chunk: Chunk) -> None:
        self._running = list(self._warps(lanes, chunk))
        look = next((i for i in range(first, stop) if self._looks[i]), None)
        for warp in self._running:
            if look is not None and warp not in self._looked:
                self._looked[warp] = self._work[warp] + look - first + 1
            self._work[warp] += stop - first

    def access(self, access: Access) -> None:
        if access.space != "global" or access.kind != "load":
            return
        for warp, lanes in self._lanes(access.lanes, access.chunk):
            nbytes = access.size * lanes.size
            if is_copy(access.instruction):
                event = self._new("copy", warp)
                self._copies[warp].append((nbytes, event))
                self._add(warp, Action("copy", nbytes, (event,), access.index))
            elif (done := self.actions[warp]) and done[-1].kind == "load" and not self._work[warp]:
                done[-1] = Action("load", done[-1].amount + nbytes, index=done[-1].index)
            else:
                self._add(warp, Action("load", nbytes, index=access.index))

    def waited(self, index: int, arrived: Array, left: Array, chunk: Chunk) -> None:
        for warp, lanes in self._lanes(None, chunk):
            missing, events = int(arrived[warp[0], lanes].sum()), []
            while missing > 0 and self._copies[warp]:
                nbytes, event = self._copies[warp].popleft()
                missing -= nbytes
                events.append(event)
            if events:
                self._add(warp, Action("wait", events=tuple(events), index=index))

    def bulk(self, transfer: Transfer) -> None:
        if not self._first(transfer.chunk) or transfer.kind not in ("load", "store", "reduction"):
            return
        ranks = {
            block: rank
            for rank, block in enumerate(transfer.chunk.blocks[: transfer.chunk.cluster_size].tolist())
        }
        events = [
            self._event(ranks[block], address, parity)
            for block, address, parity, _ in arrivals(transfer)
            if block in ranks
        ]
        kind = "copy" if transfer.kind == "load" else "store"
        elements = transfer.address if transfer.address is not None else transfer.offset
        assert elements is not None
        for row, lane in zip(transfer.row.tolist(), transfer.lane.tolist(), strict=True):
            if row < transfer.chunk.cluster_size:
                nbytes = elements.shape[1] * transfer.size
                self._add((row, lane // WARP), Action(kind, nbytes, tuple(events), transfer.index))

    def barrier(self, index: int, lanes: Array | None, chunk: Chunk) -> None:
        warps = list(self._warps(lanes, chunk))
        for block in sorted({block for block, _ in warps}):
            event = ("meeting", block, 0, self._meetings[block])
            self._meetings[block] += 1
            for warp in (warp for warp in warps if warp[0] == block):
                self._add(warp, Action("arrive", events=(event,), index=index))
                self._add(warp, Action("wait", events=(event,), index=index))

    def arrive(
        self,
        index: int,
        address: Array,
        phase: Array,
        lanes: Array | None,
        chunk: Chunk,
        rows: Array | None = None,
    ) -> None:
        for warp, *mbarrier in self._mbarriers(address, phase, lanes, chunk, rows):
            self._add(warp, Action("arrive", events=(self._event(*mbarrier),), index=index))

    def passed(
        self,
        index: int,
        address: Array,
        phase: Array,
        lanes: Array,
        chunk: Chunk,
        rows: Array | None = None,
    ) -> None:
        for warp, *mbarrier in self._mbarriers(address, phase, lanes, chunk, rows):
            self._sees(warp, self._last(*mbarrier), index)

    def product(self, index: int, warpgroups: Array, made: bool, chunk: Chunk) -> None:
        if not self._first(chunk):
            return
        shape = matrix_shape(self._program.instructions[index])
        assert shape is not None
        for block, group in np.argwhere(warpgroups[: chunk.cluster_size]).tolist():
            first = (block, WARPS_OF_A_GROUP * group)
            if not made:
                event = self._new("product", first)
                self._products[first].append(event)
                self._add(first, Action("product", shape.m * shape.n * shape.k, (event,), index))
            elif self._products[first]:
                event = self._products[first].popleft()
                for member in range(WARPS_OF_A_GROUP):
                    self._wait_too((block, first[1] + member), event)

    def tensor_product(self, product: TensorProduct) -> None:
        block = product.rows[0]
        if not self._first(product.chunk) or block >= product.chunk.cluster_size:
            return
        warp = next((warp for warp in self._running if warp[0] == block), (block, 0))
        event = self._new("product", warp)
        self._asked[block].append(event)
        amount = product.m * product.n * product.k
        self._add(warp, Action("product", amount, (event,), product.index))

    # ---- how it is written down ------------------------------------------------------------------------

    def _first(self, chunk: Chunk) -> bool:
        """Whether it has the cluster that is followed: the first that begins."""
        if self._begins is None:
            self._begins = int(chunk.blocks[0])
        return int(chunk.blocks[0]) == self._begins and not self.dropped

    def _warps(self, lanes: Array | None, chunk: Chunk) -> Iterator[Warp]:
        return (warp for warp, _ in self._lanes(lanes, chunk))

    def _lanes(self, lanes: Array | None, chunk: Chunk) -> Iterator[tuple[Warp, Array]]:
        """The warps of the first cluster with lanes that take part, and those lanes."""
        if not self._first(chunk):
            return
        shape = chunk.cluster_size, chunk.threads_per_block
        there = np.ones(shape, bool)
        if lanes is not None:
            whole = np.broadcast_to(lanes, (chunk.blocks.size, chunk.lanes_per_block))
            there = whole[: shape[0], : shape[1]]
        for block in range(shape[0]):
            lane = np.flatnonzero(there[block])
            for warp in np.unique(lane // WARP).tolist():
                yield (block, warp), lane[lane // WARP == warp]

    def _new(self, kind: str, warp: Warp) -> Event:
        self._numbers[kind] += 1
        return (kind, *warp, self._numbers[kind])

    def _event(self, block: int, address: int, parity: int) -> Event:
        """The end of the phase of this parity, in which something arrives."""
        if self._phase[block, address] % 2 != parity:
            self._phase[block, address] += 1
        return ("phase", block, address, self._phase[block, address])

    def _last(self, block: int, address: int, parity: int) -> Event:
        """The end of the last phase of this parity: the current one, unless somebody arrived in the next."""
        now = self._phase[block, address]
        if now % 2 == parity:
            self._phase[block, address] = now + 1
            return ("phase", block, address, now)
        return ("phase", block, address, now - 1)

    def _mbarriers(
        self, address: Array, phase: Array, lanes: Array | None, chunk: Chunk, rows: Array | None
    ) -> Iterator[tuple[Warp, int, int, int]]:
        """(warp, block of the mbarrier, its address, parity), once for each of those that a warp names."""
        shape = chunk.blocks.size, chunk.lanes_per_block
        owner = np.arange(shape[0])[:, None] if rows is None else rows
        named = [np.broadcast_to(x, shape) for x in (owner, address, phase)]
        for warp, lane in self._lanes(lanes, chunk):
            for mbarrier in dict.fromkeys(zip(*(x[warp[0], lane].tolist() for x in named), strict=True)):
                yield warp, *mbarrier

    def _sees(self, warp: Warp, event: Event, index: int) -> None:
        """It looked until the phase was over: what it ran in between was nothing but looking."""
        if warp in self._looked:
            self._work[warp] = self._looked.pop(warp)
        if event[3] < 0:  # the phase before the first
            return
        if event in self._brought:
            self._add(warp, Action("wait", events=(event,), index=index))
        elif asked := self._asked.pop(warp[0], ()):  # what a commit of the tensor cores signals
            self._add(warp, Action("wait", events=tuple(asked), index=index))

    def _wait_too(self, warp: Warp, event: Event) -> None:
        done = self.actions[warp]
        last = done[-1] if done and not self._work.get(warp) else Action("work")
        if last.kind == "wait" and last.events[0][0] == "product":  # the same wait
            done[-1] = Action("wait", events=(*done[-1].events, event), index=done[-1].index)
        else:
            self._add(warp, Action("wait", events=(event,)))

    def _add(self, warp: Warp, action: Action) -> None:
        self._looked.pop(warp, None)
        if self._kept >= MOST:
            self.dropped = True
            return
        if work := self._work.pop(warp, 0):
            self.actions[warp].append(Action("work", work))
            self._kept += 1
        self.actions[warp].append(action)
        self._kept += 1
        if action.kind != "wait":
            self._brought.update(action.events)

    def end(self) -> None:
        for warp, work in list(self._work.items()):
            if work:
                self.actions[warp].append(Action("work", work))
