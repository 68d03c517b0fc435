"""What threads ask Blackwell's tensor cores for, and how mbarriers tell that it is done.

Until a thread waits at the mbarrier of a commit, nothing that came before the commit is done: operands in
shared memory are read at the wait, and until then Tensor Memory holds what it held before. So a kernel that
overwrites an operand or reads a sum too early goes wrong here every time, and not only now and then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpulab.simulator.ptx import Operand

from . import atomics
from .clusters import locate
from .errors import OutOfBounds, WrongBarrier, WrongMatrix
from .executable import Step
from .mbarrier_words import NONE, after, parity
from .memory import SHARED_WINDOW
from .opcodes import Opcode
from .operands import Decoder
from .program import Source
from .run import Run
from .tensor_memory_steps import only
from .tensor_work import Signal, Task, TensorWork
from .types import I64

Array = np.ndarray


def ask(run: Run, row: int, lane: int, do: Callable[[], None] | None, signal: Signal | None = None) -> None:
    """Put work of the thread (`row`, `lane`) at the end of the tensor cores' list.

    `do` computes, None for a commit alone; `signal` says which mbarriers learn that the work is done.
    """
    if run.tensor_work is None:
        run.tensor_work = TensorWork()
    run.tensor_work.tasks.append(Task(row, lane, do, signal))


def blocks_of(run: Run, index: int, row: int, lane: int, group: int) -> list[int]:
    """The rows of the blocks that take part in what a thread asks for: its own, or the pair's."""
    if group == 1:
        return [row]
    rank = int(run.ranks[row, 0])
    if run.cluster_size % 2 or rank % 2:
        why = (
            f"a cluster of {run.cluster_size} block{'s' if run.cluster_size > 1 else ''} has no pairs"
            if run.cluster_size % 2
            else f"it is in block {rank} of its cluster, the second of a pair"
        )
        raise WrongMatrix(
            **run.blame(index, only(run, row, lane)),
            what=f"asks the tensor cores of a pair of blocks for something (cta_group::2), but {why}.",
            advice="Launch clusters of an even number of blocks, and let the even one of each pair ask.",
        )
    return [row, row + 1]


def askers(run: Run) -> list[tuple[int, int]]:
    """(row, lane) of each thread in the group, each of which asks once."""
    return [(int(row), int(lane)) for row, lane in np.argwhere(run.mask())]


class Given(NamedTuple):
    """An unsigned value that each thread gives: `mask` keeps the bits of its type."""

    source: Source
    mask: int

    def of(self, run: Run, row: int, lane: int) -> int:
        value = self.source.value(run.registers)
        return int(np.broadcast_to(value, run.shape)[row, lane]) & self.mask


def word(decoder: Decoder, operand: Operand, dtype: np.dtype) -> Given:
    """The operand as an unsigned value of `dtype`'s size."""
    return Given(decoder.source(operand, dtype), (1 << 8 * dtype.itemsize) - 1)


def address_of(decoder: Decoder, operand: Operand) -> Callable[[Run, int, int], int]:
    """The address in an operand ``[a + offset]``, as a function of a run and a thread's row and lane."""
    address = decoder.address(operand)
    return lambda run, row, lane: int(np.broadcast_to(address(run.registers), run.shape)[row, lane])


def commit(decoder: Decoder, op: Opcode, index: int) -> Step:
    """``tcgen05.commit``: an mbarrier (with a mask, one in each block) learns when the work is done."""
    parts = op.instruction.parts
    operand, *more = op.instruction.operands
    address = decoder.address(operand)
    start = 0 if any(part.startswith("shared::cluster") for part in parts) else SHARED_WINDOW
    mask = word(decoder, more[0], np.dtype(np.uint16)) if more else None

    def step(run: Run) -> None:
        place = address(run.registers) - start
        offsets, owners = (np.broadcast_to(x, run.shape) for x in locate(run, index, place))
        for row, lane in askers(run):
            rows = np.array([owners[row, lane]])
            if mask is not None:
                chosen = mask.of(run, row, lane)
                ranks = np.flatnonzero(chosen >> np.arange(16) & 1)
                if not ranks.size:  # as cuTile's second block of a pair commits, whose work is the first's
                    continue
                if ranks[-1] >= run.cluster_size:
                    raise OutOfBounds(
                        **run.blame(index, only(run, row, lane)),
                        what=f"commits to the blocks {chosen:#b} of its cluster (a bit for each), which has "
                        f"{run.cluster_size} blocks.",
                        advice="The mask has one bit for each block of the cluster: bit r for rank r.",
                    )
                rows = row - int(run.ranks[row, 0]) + ranks
            signal = Signal(int(offsets[row, lane]), rows)
            _check_barriers(run, index, row, lane, signal)
            ask(run, row, lane, None, signal)

    return step


def _check_barriers(run: Run, index: int, row: int, lane: int, signal: Signal) -> None:
    offset = signal.offset
    if offset % 8 or not 0 <= offset <= run.shared_bytes - 8:
        raise OutOfBounds(
            **run.blame(index, only(run, row, lane)),
            what=f"commits to an mbarrier at byte {offset} of shared memory; the block has "
            f"{run.shared_bytes:,}.",
            advice="Is the address the one that mbarrier.init got?",
        )
    if np.isin(run.shared.view(I64)[signal.rows, offset // 8], NONE).any():
        raise WrongBarrier(
            **run.blame(index, only(run, row, lane)),
            what="commits to an mbarrier that is not initialised.",
            advice="One thread initialises it, before anybody commits to it.",
        )


def look(run: Run, row: Array, address: Array) -> None:
    """Threads test the mbarriers at `address` of the blocks in `row`, both (n,): do what was committed to
    them, as much as it takes to end the phase."""
    work = run.tensor_work
    if work is None or not work.tasks:
        return
    looked = {(int(r), int(a)) for r, a in zip(row, address, strict=True)}
    words = run.shared.view(I64)
    phases = {place: parity(words[place[0], place[1] // 8]) for place in looked}
    for task in [task for task in work.tasks if task.signal is not None]:
        signal = task.signal
        assert signal is not None
        places = {(int(r), signal.offset) for r in signal.rows} & looked
        if any(parity(words[r, a // 8]) == phases[r, a] for r, a in places):
            _do_up_to(run, work, task)


def _do_up_to(run: Run, work: TensorWork, last: Task) -> None:
    """All that the thread of a commit asked for before it, then its arrivals."""
    rest = []
    over = False
    for task in work.tasks:
        if over or (task.row, task.lane) != (last.row, last.lane):
            rest.append(task)
            continue
        over = task is last
        if task.do is not None:
            task.do()
        if task.signal is not None:
            _arrive(run, task, task.signal)
    work.tasks = rest
    run.changed()


def _arrive(run: Run, task: Task, signal: Signal) -> None:
    view = run.shared.view(I64)
    for hear in run.on_commit:
        phase = parity(view[signal.rows, signal.offset // 8])
        hear(task.row, task.lane, signal.offset, phase, signal.rows, run.chunk)
    places = signal.rows * view.shape[1] + signal.offset // 8
    one, zero = np.ones(places.size, np.int64), np.zeros(places.size, np.int64)
    atomics.apply(after, view.reshape(-1), places, (one, zero, zero))
