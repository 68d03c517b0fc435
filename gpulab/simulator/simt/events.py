"""What the simulator tells its observers. Observers never change a run.

Shapes: a chunk of B blocks runs at once, each of T lanes (threads per block rounded up to whole warps).
Arrays of events are broadcastable to (B, T): an address that is the same pattern in every block
has shape (1, T), a uniform one (1, 1). `lanes` is None when every lane of the chunk takes part, else a
boolean array broadcastable to (B, T).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from gpulab.simulator.ptx import Instruction

from .errors import Index
from .program import Program

CLUSTER_BARRIER = -1000  # stands for the address of the barrier of a cluster


@dataclass(slots=True)
class Chunk:
    """The blocks that run together. `blocks` holds their linear indices, shape (B,): whole clusters, each in
    the order of its ranks."""

    blocks: np.ndarray
    lanes_per_block: int  # T: threads per block rounded up to a multiple of 32
    threads_per_block: int
    cluster_size: int = 1  # blocks of a cluster

    @property
    def warps_per_block(self) -> int:
        return self.lanes_per_block // 32


@dataclass(slots=True)
class Access:
    """One memory instruction of one group of lanes.

    `index` is the instruction's index in the program. `space` is global, shared, cluster, local or const;
    `kind` is load, store, atomic or reduction. `address` is in bytes: an address of the global space, or an
    offset into the block's shared / the thread's local window. `size` is bytes per lane (a vector access
    counts whole).
    `values` is what was loaded or stored (None where an observer did not ask), one array per vector element.
    In the space ``cluster``, shared memory of other blocks of the cluster, `rows` are those blocks as rows of
    the chunk.
    """

    index: int
    instruction: Instruction
    space: str
    kind: str
    address: np.ndarray
    size: int
    lanes: np.ndarray | None
    chunk: Chunk
    values: list[np.ndarray] = field(default_factory=list)
    rows: np.ndarray | None = None


@dataclass(slots=True)
class Transfer:
    """Bulk copies that a group of threads sent with one instruction: the n-th by `lane[n]` of row `row[n]`.

    `kind` is load (into shared memory), store, reduction (both into global memory), exchange (between blocks
    of a cluster) or prefetch. Elements have `size` bytes. `address` (n, E) is where they are in global memory
    (None: nowhere), `inside` which of them are there (None: all). `offset` (m, E) is where they are in the
    shared memory of the blocks in `rows` (m,), and `copy` (m,) which of the copies that is: a multicast
    reaches several blocks. An exchange reads them at `origin` (n, E) of the blocks in `origin_rows`. Those
    that an mbarrier counts name it by `barrier` and `barrier_rows`, (m,), in the phase of parity `phase`.
    """

    index: int
    instruction: Instruction
    kind: str
    size: int
    row: np.ndarray
    lane: np.ndarray
    chunk: Chunk
    address: np.ndarray | None = None
    inside: np.ndarray | None = None
    offset: np.ndarray | None = None
    rows: np.ndarray | None = None
    copy: np.ndarray | None = None
    origin: np.ndarray | None = None
    origin_rows: np.ndarray | None = None
    barrier: np.ndarray | None = None
    barrier_rows: np.ndarray | None = None
    phase: np.ndarray | None = None


@dataclass(slots=True)
class TensorProduct:
    """A product of an m × k and a k × n matrix that one thread asked for by ``tcgen05.mma``.

    `rows` are the rows in the chunk of the one or two blocks that take part, the thread's own first. The
    tensor cores will read pieces of `size` bytes of shared memory: `reads` has, for each operand and block
    there, the block's row and the offsets of the pieces. The sum will be in `columns`, from the first to the
    last, of Tensor Memory.
    """

    index: int
    m: int
    n: int
    k: int
    chunk: Chunk
    rows: tuple[int, ...]
    reads: tuple[tuple[int, np.ndarray], ...]
    columns: tuple[int, int]
    held: tuple[int, int] | None = None  # columns of an A in Tensor Memory
    size: int = 16

    @property
    def nbytes(self) -> int:
        """Bytes of shared memory that will be read."""
        return self.size * sum(offsets.size for _, offsets in self.reads)


class State(Protocol):
    """What an observer may ask while a chunk of blocks runs. A thread is a row (of the chunk's blocks) and a
    lane."""

    chunk: Chunk

    def register(self, name: str, row: int, lane: int) -> np.generic:
        """What a register holds for one thread."""

    def stored(self, name: str, offset: int, nbytes: int, row: int, lane: int) -> bytes:
        """Bytes of a thread's local variable or of a kernel's parameter; empty for any other name."""


class Observer:
    """Base of all observers: override what you need. An observer that is not there costs nothing.

    Where no observer wants values, loads may come without what was loaded.
    """

    wants_values = True

    def start(self, program: Program, grid: Index, block: Index) -> None:
        """A launch begins."""

    def begin(self, state: State) -> None:
        """A chunk of blocks begins; `state` tells what its threads hold, as long as the chunk runs."""

    def executed(self, first: int, stop: int, lanes: np.ndarray | None, chunk: Chunk) -> None:
        """The instructions first … stop-1 of the program run once for `lanes`, now."""

    def guarded(self, index: int, lanes: np.ndarray, chunk: Chunk) -> None:
        """Instruction `index` ran under a guard that holds for `lanes` only."""

    def branch(self, index: int, lanes: np.ndarray | None, taken: np.ndarray, chunk: Chunk) -> None:
        """A branch with a choice: `taken` is true where it was taken, or for a table of branches the number
        of the entry (meaningless outside `lanes`)."""

    def access(self, access: Access) -> None:
        """A memory instruction ran."""

    def barrier(self, index: int, lanes: np.ndarray | None, chunk: Chunk) -> None:
        """All threads of the blocks of `lanes` passed a block barrier. Where they came to it by several
        instructions, `mixed` says so before, and each instruction has a call with its own lanes."""

    def mixed(self, parts: Mapping[int, np.ndarray], chunk: Chunk) -> None:
        """Threads of some blocks came to one barrier by several instructions: index → lanes, (B, T)."""

    def warp_sync(self, index: int, lanes: np.ndarray | None, masks: np.ndarray | None, chunk: Chunk) -> None:
        """Warps met at a `*.sync` operation (shuffle, vote, match, bar.warp.sync); `masks`, as uint32 (B, T),
        say for whom each lane waited, None where all waited for all of their warp."""

    def stray(self, index: int, lanes: np.ndarray, why: str, chunk: Chunk) -> None:
        """A warp operation has no defined result for `lanes`: they read a lane that is ``outside`` their mask
        or ``inactive``, or are themselves ``unnamed`` in their mask."""

    def early(self, index: int, copied: int, lanes: np.ndarray, chunk: Chunk) -> None:
        """Instruction `index` touched, for `lanes`, shared memory that the ``cp.async`` of instruction
        `copied` has not reached yet, or wrote what a bulk copy sent by `copied` has not read yet."""

    def waited(self, index: int, arrived: np.ndarray, left: np.ndarray, chunk: Chunk) -> None:
        """Instruction `index` waited for ``cp.async``: `arrived` bytes of each lane came, and `left` bytes
        are still on their way, both (B, T)."""

    def short(self, index: int, copied: int, lanes: np.ndarray, chunk: Chunk) -> None:
        """Instruction `index` saw, for `lanes`, the end of a phase of an mbarrier, although a bulk copy that
        instruction `copied` sent to complete in it has not come: too few bytes were announced."""

    def bulk(self, transfer: Transfer) -> None:
        """Threads sent bulk copies, which will happen between now and the end of the wait for them."""

    def left(self, copied: int, lanes: np.ndarray, chunk: Chunk) -> None:
        """`lanes` have returned, and bulk copies that they sent with instruction `copied` have not read their
        block's shared memory yet."""

    def arrive(
        self,
        index: int,
        address: np.ndarray,
        phase: np.ndarray,
        lanes: np.ndarray | None,
        chunk: Chunk,
        rows: np.ndarray | None = None,
    ) -> None:
        """`lanes` arrived at the mbarriers at `address`, an offset into shared memory, in the phase of parity
        `phase`. A barrier of the hardware for a number of threads has the address -1 - its number; that of
        the cluster is `CLUSTER_BARRIER` of its first block. `rows` are the rows of the chunk whose blocks
        have the barriers (None: each thread's own block)."""

    def committed(
        self, row: int, lane: int, address: int, phase: np.ndarray, rows: np.ndarray, chunk: Chunk
    ) -> None:
        """What the thread at `lane` of the block in `row` asked the tensor cores for is done: its
        ``tcgen05.commit`` arrives at the mbarriers at `address` of the blocks in `rows` (n,), each of them in
        the phase of parity `phase` (n,)."""

    def passed(
        self,
        index: int,
        address: np.ndarray,
        phase: np.ndarray,
        lanes: np.ndarray,
        chunk: Chunk,
        rows: np.ndarray | None = None,
    ) -> None:
        """`lanes` saw that the phase of parity `phase` of the mbarriers at `address` is over."""

    def product(self, index: int, warpgroups: np.ndarray, made: bool, chunk: Chunk) -> None:
        """`warpgroups` (B, G) asked for the product of the ``wgmma.mma_async`` at `index`, or it is `made`.
        What they read of shared memory follows, both times, as accesses of 16 bytes a thread."""

    def tensor_product(self, product: TensorProduct) -> None:
        """A thread asked for a product, which is made between now and the end of the wait for it."""

    def tensor_done(self, product: TensorProduct) -> None:
        """A product that was asked for is made."""

    def tensor_memory(
        self, index: int, lanes: np.ndarray | None, first: np.ndarray, last: np.ndarray, chunk: Chunk
    ) -> None:
        """`lanes` read or wrote the columns of Tensor Memory from `first` to `last`, both (B, T)."""

    def fence(self, index: int, lanes: np.ndarray | None, chunk: Chunk) -> None:
        """Threads passed a memory fence."""

    def end(self) -> None:
        """The launch is over (not called after a fault)."""
