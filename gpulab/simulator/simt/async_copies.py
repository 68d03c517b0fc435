"""``cp.async``: copies from global into shared memory that arrive only when they are waited for.

Until its wait a copy has not happened: shared memory still holds what was there. A kernel that reads too
early therefore goes wrong here, every time, and not only now and then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpulab.simulator.ptx import Immediate

from . import accesses
from .operations import Opcode
from .program import Step
from .steps import unsupported
from .types import I32, U32

if TYPE_CHECKING:
    from .mbarriers import Arrival
    from .program import _Decoder
    from .run import Run

Array = np.ndarray


@dataclass
class Pending:
    """Words on their way, sent by instruction `index`: `lanes` (B, T) are those whose copy has not arrived;
    `group` is the lane's own count."""

    index: int
    address: Array
    values: list[Array]
    lanes: Array
    group: Array


@dataclass
class Copies:
    """The copies of one chunk. `group` (B, T) is the number of groups that each lane has committed;
    `arrivals` are to come at mbarriers when their copies are there."""

    group: Array
    pending: list[Pending]
    arrivals: list[Arrival] = field(default_factory=list)

    def tell_early(self, run: Run, index: int, address: Array, size: int) -> None:
        """Tell observers of lanes that touch shared memory to which a copy is still on its way."""
        rows, lanes = np.nonzero(run.mask())
        touched = np.broadcast_to(address, run.shape)[rows, lanes, None] + np.arange(size)
        touched = touched.clip(0, run.shared.shape[1] - 1)  # bounds are checked elsewhere
        for copy in self.pending:
            coming = np.zeros(run.shared.shape, bool)
            row, lane = np.nonzero(copy.lanes)
            start = np.broadcast_to(copy.address, run.shape)[row, lane, None]
            coming[row[:, None], start + np.arange(4 * len(copy.values))] = True
            early = np.zeros(run.shape, bool)
            early[rows, lanes] = coming[rows[:, None], touched].any(axis=1)
            if early.any():
                for hear in run.on_early:
                    hear(index, copy.index, early, run.chunk)


def copies_of(run: Run) -> Copies:
    if run.copies is None:
        run.copies = Copies(np.zeros(run.shape, np.int64), [])
    return run.copies


def _arrive(run: Run, which: Array) -> None:
    """Carry out the copies of the group's lanes whose group number is below `which` (B, T)."""
    copies = copies_of(run)
    for copy in copies.pending:
        deliver(run, [copy], run.mask() & (copy.group < which))


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


def _copy(decoder: _Decoder, op: Opcode, index: int) -> Step:
    target, source, size, *rest = op.instruction.operands
    assert isinstance(size, Immediate)
    nbytes = int(size.value)
    to, of = decoder.address(target, "shared"), decoder.address(source, "global")
    taken = decoder.source(rest[0], I32) if rest else None

    def step(run: Run) -> None:
        given = None
        if taken is not None:
            given = run.registers[taken[0]] if taken[1] is None else taken[1](run.registers[taken[0]])
        lanes = run.mask()
        address = to(run.registers)
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
        copies.pending.append(Pending(index, address, values, np.array(lanes), copies.group.copy()))

    return step


def _commit(run: Run) -> None:
    copies = copies_of(run)
    copies.group = copies.group + run.mask()


def _async(decoder: _Decoder, op: Opcode, index: int) -> Step | None:
    if "mbarrier" in op.modifiers and "arrive" in op.modifiers:
        from .mbarriers import arrive_with_copies  # which imports this module

        return arrive_with_copies(decoder, op, index)
    if "async" not in op.modifiers or "bulk" in op.modifiers:
        raise unsupported(decoder, op, "Compile for a capability from 8.0 to 8.9, which has no bulk copies.")
    if "commit_group" in op.modifiers:
        return _commit
    if "wait_all" in op.modifiers:
        return lambda run: _arrive(run, copies_of(run).group + 1)
    if "wait_group" in op.modifiers:
        operand = op.instruction.operands[0]
        assert isinstance(operand, Immediate)
        allowed = int(operand.value)
        return lambda run: _arrive(run, copies_of(run).group - allowed)
    return _copy(decoder, op, index)


BUILDERS = {"cp": _async}
