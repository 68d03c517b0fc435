"""Shared memory of a cluster: whose window an address means, and which lanes reach out of their own block.

An address of shared memory has the rank of its block in the cluster in its bits from 24 upwards. So do a
block's own addresses, as on the hardware: programs clear a bit of an address to reach the first block of a
pair. Outside clusters all ranks are 0. A chunk's rows are whole clusters, each in the order of its ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .errors import OutOfBounds
from .run import RANK_BIT, Run

Array = np.ndarray

OFFSET = (1 << RANK_BIT) - 1
OWN = {"shared", "shared::cta"}  # spaces in opcodes that mean the block's own shared memory


@dataclass(slots=True)
class Part:
    """Lanes of a group (None: all of it) whose addresses are in one space. In the space ``cluster``, `rows`
    are the rows of the chunk whose shared memory is meant."""

    space: str
    lanes: Array | None
    address: Array
    rows: Array | None = None


def split(run: Run, index: int, address: Array) -> list[Part]:
    """The group's lanes by whether their shared address is one of their own block or of another one.

    Raises OutOfBounds for an address of no block, of one that has left, or that the instruction cannot reach.
    """
    if run.cluster_size == 1:
        return [Part("shared", run.lanes, address)]
    rank = address >> RANK_BIT
    own = rank == run.ranks
    here = own if run.lanes is None else own | ~run.lanes
    if here.all():
        return [Part("shared", run.lanes, _narrow(address & OFFSET))]
    rows = check_rows(run, index, address)
    lanes = run.mask()
    offset = np.broadcast_to(address & OFFSET, run.shape)
    parts = [
        Part("shared", lanes & own, offset),
        Part("cluster", lanes & ~own, offset, np.broadcast_to(rows, run.shape)),
    ]
    return [part for part in parts if part.lanes is not None and part.lanes.any()]


def locate(run: Run, index: int, address: Array) -> tuple[Array, Array]:
    """(offset into shared memory, row of the block that it belongs to) of the group's addresses."""
    if run.cluster_size == 1:
        return address, run.block_rows
    return address & OFFSET, check_rows(run, index, address)


def own_offsets(run: Run, index: int, address: Array) -> Array:
    """Offsets into each lane's own shared memory, for instructions that reach no other."""
    if run.cluster_size == 1:
        return address
    _check_own(run, index, address)
    return _narrow(address & OFFSET)


def _check_own(run: Run, index: int, address: Array) -> None:
    rank = address >> RANK_BIT
    outside = run.mask() & (rank != run.ranks)
    if outside.any():
        raise OutOfBounds(
            **run.blame(index, outside),
            what=f"used an address in shared memory of block {_first(rank, outside)} of its cluster "
            "with an instruction that reaches its own block's memory only.",
            advice="Use an instruction for shared::cluster, or a generic address.",
        )


def check_rows(run: Run, index: int, address: Array) -> Array:
    """The rows of the blocks that shared addresses name; lanes outside the group get their own."""
    rank = address >> RANK_BIT
    own = rank == run.ranks
    lanes = run.mask()
    wrong = lanes & ((rank < 0) | (rank >= run.cluster_size))
    if wrong.any():
        raise OutOfBounds(
            **run.blame(index, wrong),
            what=f"used shared memory of block {_first(rank, wrong)} of its cluster, "
            f"which has {run.cluster_size} blocks, numbered from 0.",
            advice="The rank that is mapped must be smaller than the number of blocks of the cluster.",
        )
    outside = lanes & ~own
    if _is_for_own(run, index):
        _check_own(run, index, address)
    rows = np.where(lanes, run.block_rows - run.ranks + rank, run.block_rows)
    if run.alive is not None:
        there = np.asarray(run.full(run.alive).any(axis=1))
        gone = outside & ~there[rows]
        if gone.any():
            raise OutOfBounds(
                **run.blame(index, gone),
                what=f"used shared memory of block {_first(rank, gone)} of its cluster, "
                "whose threads have all returned: its shared memory is gone.",
                advice="Let the cluster meet once more at its barrier (cluster.sync()) before any block "
                "returns.",
            )
    return rows


def _is_for_own(run: Run, index: int) -> bool:
    parts = run.program.instructions[index].parts
    return parts[0] not in ("mapa", "cp") and bool(OWN & set(parts))


def _first(values: Array, chosen: Array) -> int:
    return int(np.broadcast_to(values, chosen.shape)[chosen][0])


def _narrow(offset: Array) -> Array:
    """The same offsets in one row where all blocks have the same, which is much faster from here on."""
    if offset.shape[0] > 1 and (offset == offset[:1]).all():
        return offset[:1]
    return offset
