"""Products of Blackwell's tensor cores whose operands or sums are touched at the wrong time.

Between ``tcgen05.mma`` and the end of a wait at the mbarrier of a commit behind it, the tensor cores read
shared memory and write Tensor Memory when they like.
"""

from __future__ import annotations

import numpy as np

from gpulab.simulator.simt import Access, Chunk, Observer, Program, TensorProduct, Transfer
from gpulab.simulator.simt.errors import Index, index_of

from .warpgroup_hazards import CHUNK, Hazard

Array = np.ndarray


class TensorCoreHazards(Observer):
    """Finds them; read `findings` after the launch, each pair of source lines once."""

    def __init__(self) -> None:
        self.findings: list[Hazard] = []
        self._seen: set[object] = set()
        self._pending: list[TensorProduct] = []

    def start(self, program: Program, grid: Index, block: Index) -> None:
        self._program, self._grid, self._block = program, grid, block

    def tensor_product(self, product: TensorProduct) -> None:
        self._pending.append(product)

    def tensor_done(self, product: TensorProduct) -> None:
        self._pending = [each for each in self._pending if each is not product]

    def tensor_memory(self, index: int, lanes: Array | None, first: Array, last: Array, chunk: Chunk) -> None:
        shape = (chunk.blocks.size, chunk.lanes_per_block)
        there = np.broadcast_to(True if lanes is None else lanes, shape)
        for product in self._pending:
            begin, end = product.columns
            touched = there & (first <= end) & (last >= begin)
            touched &= np.isin(np.arange(shape[0]), product.rows)[:, None]
            self._tell("sum", product, index, touched)

    def access(self, access: Access) -> None:
        if not self._pending or access.space != "shared" or access.kind == "load":
            return
        chunk = access.chunk
        shape = (chunk.blocks.size, chunk.lanes_per_block)
        there = np.broadcast_to(True if access.lanes is None else access.lanes, shape)
        piece = np.broadcast_to(access.address, shape) // CHUNK
        for product in self._pending:
            for row, offsets in product.reads:
                hit = np.zeros(shape, bool)
                hit[row] = there[row] & np.isin(piece[row], offsets // CHUNK)
                self._tell("operand", product, access.index, hit)

    def bulk(self, transfer: Transfer) -> None:
        if transfer.offset is None or transfer.rows is None or transfer.kind not in ("load", "exchange"):
            return
        shape = (transfer.chunk.blocks.size, transfer.chunk.lanes_per_block)
        copy = transfer.copy if transfer.copy is not None else np.arange(transfer.rows.size)
        for product in self._pending:
            for row, offsets in product.reads:
                hit = np.zeros(shape, bool)
                for n in np.flatnonzero(transfer.rows == row):
                    if np.isin(transfer.offset[n] // CHUNK, offsets // CHUNK).any():
                        hit[transfer.row[copy[n]], transfer.lane[copy[n]]] = True
                self._tell("operand", product, transfer.index, hit)

    def _tell(self, kind: str, product: TensorProduct, index: int, lanes: Array) -> None:
        if not lanes.any():
            return
        first, second = (self._program.instructions[i].location for i in (product.index, index))
        key = (kind, first or product.index, second or index)
        if key in self._seen:
            return
        self._seen.add(key)
        row, lane = (int(i) for i in np.argwhere(lanes)[0])
        block = int(product.chunk.blocks[row])
        where = index_of(block, self._grid)
        thread = index_of(lane, self._block)
        self.findings.append(Hazard(kind, self._program.display_name, first, second, where, thread))
