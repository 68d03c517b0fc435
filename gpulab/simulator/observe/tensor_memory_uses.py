"""Who used which lanes and columns of Tensor Memory, and when: warps that load and store, and products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpulab.simulator.simt import Chunk, Observer, Program, TensorProduct
from gpulab.simulator.simt.warps import WARP

Array = np.ndarray

MOST = 5_000  # uses that are kept
QUARTERS = 4  # of the lanes, one for each warp of a warpgroup
LANES = WARP * QUARTERS


@dataclass
class Use:
    """One use by the first block of a launch. `kind` is ``store``, ``load`` or ``product``.

    `warps` used the `columns` (first and last) of the `lanes` (first and last). `start` and `stop` count
    uses: a product has its place from when it was asked for to when it was done, all others take one place.
    `line` is the source line, 0 where it is unknown.
    """

    kind: str
    warps: tuple[int, ...]
    lanes: tuple[int, int]
    columns: tuple[int, int]
    start: int
    stop: int
    line: int
    index: int


class TensorMemoryUses(Observer):
    """Read `uses` after the launch, in their order. `dropped` says whether there were more than are kept."""

    def __init__(self) -> None:
        self.uses: list[Use] = []
        self.dropped = False
        self._now = 0
        self._pending: list[tuple[TensorProduct, Use]] = []
        self._warp = 0  # whose instructions run: that of the thread that asks for products

    def start(self, program: Program, grid: object, block: object) -> None:
        self._program = program

    def executed(self, first: int, stop: int, lanes: Array | None, chunk: Chunk) -> None:
        if lanes is not None and not chunk.blocks[0]:
            self._warp = (
                int(np.broadcast_to(lanes, (chunk.blocks.size, chunk.lanes_per_block))[0].argmax()) // WARP
            )

    def tensor_memory(self, index: int, lanes: Array | None, first: Array, last: Array, chunk: Chunk) -> None:
        if chunk.blocks[0]:
            return
        shape = (chunk.blocks.size, chunk.lanes_per_block)
        there = np.broadcast_to(True if lanes is None else lanes, shape)[0]
        begin, end = (np.broadcast_to(column, shape)[0] for column in (first, last))
        kind = "load" if self._program.instructions[index].parts[1] == "ld" else "store"
        for warp in np.unique(np.flatnonzero(there) // WARP).tolist():
            mine = slice(warp * WARP, (warp + 1) * WARP)
            columns = int(begin[mine].min()), int(end[mine].max())
            quarter = warp % QUARTERS * WARP
            self._add(kind, warp, (quarter, quarter + WARP - 1), columns, index)

    def tensor_product(self, product: TensorProduct) -> None:
        if product.chunk.blocks[0] or 0 not in product.rows:
            return
        use = self._add("product", self._warp, (0, LANES - 1), product.columns, product.index)
        if use is not None:
            self._pending.append((product, use))

    def tensor_done(self, product: TensorProduct) -> None:
        for each, use in self._pending:
            if each is product:
                use.stop = max(self._now, use.start + 1)
        self._pending = [pair for pair in self._pending if pair[0] is not product]

    def _add(
        self, kind: str, warp: int, lanes: tuple[int, int], columns: tuple[int, int], index: int
    ) -> Use | None:
        last = self.uses[-1] if self.uses and kind != "product" else None
        if (
            last is not None
            and (last.index, last.columns) == (index, columns)
            and (warp not in last.warps and lanes[0] == last.lanes[1] + 1)  # the same by the next warp
        ):
            last.warps, last.lanes = (*last.warps, warp), (last.lanes[0], lanes[1])
            return last
        if len(self.uses) == MOST:
            self.dropped = True
            return None
        place = self._program.instructions[index].location
        line = place.line if place is not None else 0
        self.uses.append(Use(kind, (warp,), lanes, columns, self._now, self._now + 1, line, index))
        self._now += 1
        return self.uses[-1]
