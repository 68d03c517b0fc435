"""``cp.async``: copies from global into shared memory that arrive only when they are waited for.

Until its wait a copy has not happened: shared memory still holds what was there. A kernel that reads too
early therefore goes wrong here, every time, and not only now and then.
"""

from __future__ import annotations

import numpy as np

from gpulab.simulator.ptx import Immediate

from . import accesses
from .clusters import own_offsets
from .copies import Copies, Pending
from .executable import Step
from .opcodes import Opcode
from .operands import Decoder
from .run import Run
from .types import I32, U32

Array = np.ndarray


def copies_of(run: Run) -> Copies:
    """The copies of a chunk, which begin with the first one that asks for them."""
    if run.copies is None:
        run.copies = Copies(np.zeros(run.shape, np.int64))
    return run.copies


def _wait(index: int, allowed: int) -> Step:
    """Carry out the copies of the group's lanes, except the last `allowed` groups of each lane."""

    def step(run: Run) -> None:
        copies = copies_of(run)
        waiting = run.mask()
        done = [(copy, waiting & (copy.group < copies.group - allowed)) for copy in copies.pending]
        if run.on_wait:
            _tell(run, index, waiting, done)
        for copy, lanes in done:
            deliver(run, [copy], lanes)

    return step


def _tell(run: Run, index: int, waiting: Array, done: list[tuple[Pending, Array]]) -> None:
    """Tell observers that lanes wait; `done` has each copy with the lanes whose wait for it is over.

    Bytes that are filled with zeros come from nowhere, so that nobody waits for them.
    """
    arrived, left = np.zeros(run.shape, np.int64), np.zeros(run.shape, np.int64)
    for copy, over in done:
        arrived += copy.brought * (copy.lanes & over)
        left += copy.brought * (copy.lanes & waiting & ~over)
    for hear in run.on_wait:
        hear(index, arrived, left, run.chunk)


def deliver(run: Run, some: list[Pending], lanes: Array) -> None:
    """Carry out `some` copies, those of `lanes` (B, T)."""
    for copy in some:
        ready = copy.lanes & lanes
        if ready.any():
            with run.only(ready):
                accesses.store_window(run, -1, "shared", copy.address, copy.values)
            copy.lanes = copy.lanes & ~ready
    copies = copies_of(run)
    copies.pending = [copy for copy in copies.pending if copy.lanes.any()]


def _copy(decoder: Decoder, op: Opcode, index: int) -> Step:
    target, source, size, *rest = op.instruction.operands
    assert isinstance(size, Immediate)
    nbytes = int(size.value)
    to, of = decoder.address(target), decoder.address(source)
    taken = decoder.source(rest[0], I32) if rest else None

    def step(run: Run) -> None:
        given = taken.value(run.registers) if taken is not None else None
        lanes = run.mask()
        address = own_offsets(run, index, to(run.registers))
        reading = lanes if given is None else lanes & (given > 0)
        zero = np.zeros((1, 1), U32)
        values = [zero] * (nbytes // 4)
        if reading.any():
            with run.only(reading):
                values = accesses.load(run, index, "global", of(run.registers), U32, nbytes // 4)
        if given is not None:
            values = [np.where(given > 4 * i, v, zero) for i, v in enumerate(values)]
        accesses.in_window(run, index, "shared", address, nbytes)
        accesses.tell(run, index, "shared", "store", address, nbytes, values)
        copies = copies_of(run)
        brought = np.array([[nbytes]]) if given is None else np.clip(given, 0, nbytes)
        copies.pending.append(Pending(index, address, values, np.array(lanes), copies.group.copy(), brought))

    return step


def _commit(run: Run) -> None:
    copies = copies_of(run)
    copies.group = copies.group + run.mask()


def copy(decoder: Decoder, op: Opcode, index: int) -> Step:
    """``cp.async``: a copy, the end of a group of them, or a wait."""
    if "async" not in op.modifiers:
        raise decoder.unsupported(op)
    if "commit_group" in op.modifiers:
        return _commit
    if "wait_all" in op.modifiers:  # those of no group, too
        return _wait(index, -1)
    if "wait_group" in op.modifiers:
        operand = op.instruction.operands[0]
        assert isinstance(operand, Immediate)
        return _wait(index, int(operand.value))
    return _copy(decoder, op, index)
