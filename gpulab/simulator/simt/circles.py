"""Loops that provably never end: nothing that decides where lanes go changes from one round to the next.

Whether any loop ends cannot be known, but the usual mistakes can be seen: a loop whose index stays as it is
goes on whatever it computes meanwhile. So a chunk that has run for long is watched for some rounds. It goes
in circles when its lanes are again where they were and all registers on which the branches of the round
depend hold what they held. Registers that come from memory or from a clock may change with the next look, so
a round whose branches depend on them proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gpulab.simulator.ptx import Special, reads, writes

from .opcodes import MEETING, opcode
from .operands import CLOCKS
from .operations import ROWS
from .program import Branch, Program, Table
from .run import Place, Run, Watch

Array = np.ndarray

LONGEST = 4_096  # segments of a round that is waited for
ROUNDS = 4  # that are compared with the first
PURE = frozenset(ROWS) - {"addc", "subc", "madc"} | MEETING | {"mov", "cvta", "mapa", "mma"}


def look(run: Run, place: Place) -> bool:
    """A chunk that has run for long is about to run the group at `place`: whether it goes in circles."""
    watch = run.watch
    if watch is None:
        run.watch = Watch(place, _lanes(run), _contents(run, run.needed()))
        run.watch.ran.add(place.segment)
        return False
    if place == watch.place and _lanes(run) == watch.lanes:
        deciding = deciding_registers(run.program, watch.ran)
        if deciding is not None and all(
            _is_same(run.registers[slot], before)
            for slot, before in watch.registers.items()
            if deciding >> slot & 1
        ):
            return True
        watch.rounds += 1
    watch.ran.add(place.segment)
    watch.steps += 1
    if watch.steps > LONGEST or watch.rounds >= ROUNDS:
        run.watch, run.watch_after = None, 2 * run.spent
    return False


def _is_same(one: Array, other: Array) -> bool:
    """Bit for bit, because no number is NaN's equal."""
    return one.shape == other.shape and one.tobytes() == other.tobytes()


def _lanes(run: Run) -> list[tuple[object, bytes]]:
    """Which lanes are where, in a form that can be compared."""
    groups: tuple[dict[Any, Array | None], ...] = (run.ready, run.at_barrier, run.at_warp, run.at_cluster)
    return [
        ((kind, key), np.packbits(run.full(lanes)).tobytes())
        for kind, places in enumerate(groups)
        for key, lanes in sorted(places.items())
    ]


def _contents(run: Run, needed: int) -> dict[int, Array]:
    """Copies of the registers that lanes still need."""
    return {slot: r.copy() for slot, r in enumerate(run.registers) if needed >> slot & 1}


def deciding_registers(program: Program, segments: Iterable[int]) -> int | None:
    """The register slots, as bits, on which the way of lanes through these segments depends.

    None where it also depends on memory, on a clock, or on how many threads have come to a barrier.
    """
    parts = [program.segments[number] for number in segments]
    names = {slot: name for name, slot in program.slots.items()}
    instructions = [i for part in parts for i in program.instructions[part.first : part.stop]]
    wanted: set[str] = set()
    for part in parts:
        if part.meets is not None and part.meets.count is not None:
            return None
        slots = [part.meets.mask.slot] if part.meets is not None else []
        if isinstance(part.end, Branch):
            slots.append(part.end.guard)
        elif isinstance(part.end, Table):
            slots.append(part.end.slot)
        wanted |= {names[slot] for slot in slots if slot in names}
    known = -1
    while len(wanted) != known:
        known = len(wanted)
        for instruction in instructions:
            if wanted.isdisjoint(writes(instruction)):
                continue
            op = opcode(instruction)
            of_launch = op.name == "ld" and bool(op.modifiers & {"param", "const"})
            reads_a_clock = any(
                isinstance(o, Special) and o.name.startswith(CLOCKS) for o in instruction.operands
            )
            if reads_a_clock or not (of_launch or op.name in PURE):
                return None
            wanted |= set(reads(instruction))
    return sum(1 << program.slots[name] for name in wanted)
