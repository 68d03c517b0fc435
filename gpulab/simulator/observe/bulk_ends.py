"""The two ends of bulk copies, element by element, and the mbarriers that count them or that threads use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpulab.simulator.simt import Access, Chunk, Transfer

Array = np.ndarray


@dataclass(frozen=True)
class End:
    """Elements of global or shared memory at `address` (k,) that bulk copies read, write, or both.

    The thread at `row` and `lane` of the chunk sent each; shared memory is that of the block in row `owner`.
    """

    space: str
    reads: bool
    writes: bool
    address: Array
    row: Array
    lane: Array
    owner: Array

    def access(self, transfer: Transfer) -> Access:
        """This end as an access, whose address is no array of lanes."""
        kind = "reduction" if self.reads and self.writes else "load" if self.reads else "store"
        given = transfer.index, transfer.instruction, self.space, kind, self.address, transfer.size
        return Access(*given, None, transfer.chunk)


def ends(transfer: Transfer) -> Iterator[End]:
    """What bulk copies read, then what they write. A prefetch does neither."""
    kind, every = transfer.kind, np.arange(len(transfer.row))
    if kind == "prefetch":
        return
    combines = bool({"red", "reduce"} & set(transfer.instruction.parts[:2]))
    sends = kind in ("store", "reduction")
    if transfer.origin is not None and transfer.origin_rows is not None:
        yield _end(transfer, "shared", True, False, transfer.origin, transfer.origin_rows, every)
    if transfer.address is not None:
        reads, writes = not sends or combines, sends
        yield _end(transfer, "global", reads, writes, transfer.address, None, every)
    if transfer.offset is not None and transfer.rows is not None:
        copy = every if transfer.copy is None else transfer.copy
        reads, writes = sends or combines, not sends
        yield _end(transfer, "shared", reads, writes, transfer.offset, transfer.rows, copy)


def _end(
    transfer: Transfer, space: str, reads: bool, writes: bool, address: Array, rows: Array | None, copy: Array
) -> End:
    number = np.broadcast_to(np.arange(len(address))[:, None], address.shape)
    where = (
        transfer.inside if space == "global" and transfer.inside is not None else np.ones(number.shape, bool)
    )
    number = number[where]
    row = transfer.row[copy][number]
    owner = row if rows is None else rows[number]
    return End(space, reads, writes, address[where], row, transfer.lane[copy][number], owner)


def arrivals(transfer: Transfer) -> Iterator[tuple[int, int, int, Array]]:
    """(its block, address, parity, blocks that sent) for each mbarrier and phase that counts bulk copies."""
    if transfer.barrier is None or transfer.barrier_rows is None or transfer.phase is None:
        return
    blocks = transfer.chunk.blocks
    sender = blocks[transfer.row if transfer.copy is None else transfer.row[transfer.copy]]
    keys = np.stack([transfer.barrier_rows, transfer.barrier, transfer.phase])
    for key in np.unique(keys, axis=1).T:
        senders = sender[(keys == key[:, None]).all(axis=0)]
        yield int(blocks[key[0]]), int(key[1]), int(key[2]), senders


def at_mbarriers(
    address: Array, phase: Array, lanes: Array | None, chunk: Chunk, rows: Array | None
) -> Iterator[tuple[int, int, int, Array]]:
    """(its block, address, parity, threads of the grid) for each mbarrier and phase of a group."""
    shape = (chunk.blocks.size, chunk.lanes_per_block)
    row, lane = np.nonzero(np.broadcast_to(True if lanes is None else lanes, shape))
    threads = chunk.blocks[row] * chunk.lanes_per_block + lane
    owner = np.arange(shape[0])[:, None] if rows is None else rows
    keys = np.stack([np.broadcast_to(x, shape)[row, lane] for x in (owner, address, phase)])
    for key in np.unique(keys, axis=1).T:
        chosen = (keys == key[:, None]).all(axis=0)
        yield int(chunk.blocks[key[0]]), int(key[1]), int(key[2]), threads[chosen]
