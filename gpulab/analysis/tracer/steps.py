"""The observer that writes down what chosen threads do, source line by source line."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpulab.simulator.ptx import Location, Register, SourceVariable, Symbol, Where, writes
from gpulab.simulator.simt import Access, Chunk, Observer, Program
from gpulab.simulator.simt.errors import source_text
from gpulab.simulator.simt.events import State

from .arrays import Arrays, Touched
from .stops import LEAVE, Move, Stops, is_python, sets
from .threads import Chosen

WARP = 32
MOST = 4000  # steps of all threads of the warps that are followed

Value = bool | int | np.floating | tuple[Any, ...]  # of a variable: a number, or a tuple of them
Name = tuple[str, str]  # of a device function (empty: the kernel) and of a variable in it


@dataclass
class Step:
    """One source line, executed once by lanes of a warp among which were chosen threads.

    `lanes` are those that took part. `values` holds, for each chosen thread that did, the variables that have
    a value when the line is done. `touches` are the elements that lanes read and wrote there, in order, and
    `waits` is true where they came to a barrier of the block.
    """

    location: Location
    block: int
    warp: int
    lanes: tuple[bool, ...]
    values: dict[Chosen, dict[Name, Value]] = field(default_factory=dict)
    touches: list[Touched] = field(default_factory=list)
    waits: bool = False

    @property
    def text(self) -> str:
        return source_text(self.location)

    @property
    def mask(self) -> int:
        """The lanes as the bits of a number, lane 0 the lowest."""
        return sum(1 << lane for lane, on in enumerate(self.lanes) if on)


class Steps(Observer):
    """Follows the chosen threads; read `steps` after the launch, or after a fault: those of the chosen
    threads. `every` holds those of all threads of their warps. The program must have been loaded with the
    lines of `stops`.

    `variables` are those of each function of the PTX; `is_learners` tells the learner's source files from the
    compiler's. At most `limit` steps are kept; `dropped` counts the others. `arrays` are those in memory.
    """

    def __init__(
        self,
        chosen: Sequence[Chosen],
        variables: Mapping[str, Sequence[SourceVariable]],
        stops: Stops,
        is_learners: Callable[[str], bool],
        limit: int,
        arrays: Arrays,
    ) -> None:
        self.steps: list[Step] = []
        self.every: list[Step] = []
        self.dropped = 0
        self._arrays = arrays
        self.order: list[Name] = []  # of the variables, as they were declared
        self._variables, self._stops = variables, stops
        self._is_learners, self._limit = is_learners, limit
        self._chosen: dict[tuple[int, int], list[_Followed]] = defaultdict(list)  # by block and warp
        for thread in chosen:
            self._chosen[thread.block, thread.warp].append(_Followed(thread))
        self._states: dict[int, State] = {}  # by the chunk
        # Of a warp, with what it has run of it; apart for the chosen threads and for those beside them.
        self._last: dict[tuple[int, int, bool], tuple[Step, set[int]]] = {}
        self._now: dict[tuple[int, int], Step] = {}  # the step that a warp is in

    def start(self, program: Program, grid: object, block: object) -> None:
        self._program = program
        self._arrays.start(program)
        self._ends = {segment.first: segment.stop for segment in program.segments}
        self._writers: dict[str, set[int]] = defaultdict(set)  # register → segments that write it
        files: dict[str, str] = {}  # of the learner, by the prefix of each function's copy
        for segment in program.segments:
            for index in range(segment.first, segment.stop):
                instruction, prefix = program.instructions[index], program.prefixes[index]
                for register in writes(instruction):
                    self._writers[register].add(segment.first)
                if (place := instruction.location) and self._is_learners(place.file):
                    files.setdefault(prefix, place.file)
        # What a segment gives a new value, and variables in memory that are looked at only then: numba clears
        # them behind their last use.
        self._sets: dict[int, list[Move]] = defaultdict(list)
        self._set_by_name: set[SourceVariable] = set()
        for segment in program.segments:
            for index in range(segment.first, segment.stop):
                instruction, prefix = program.instructions[index], program.prefixes[index]
                for variable in self._of(prefix):
                    if isinstance(variable.place, Symbol) and _is_cleared(variable, files.get(prefix, "")):
                        self._set_by_name.add(variable)
                    elif not variable.moves:
                        continue
                    if (where := sets(instruction, variable)) is not None:
                        self._sets[segment.first].append((variable, where))
        for prefix, file in files.items():
            for variable in sorted(self._of(prefix), key=lambda v: (not v.is_parameter, v.line)):
                name = _label(prefix), variable.name
                if name not in self.order and _is_named(variable, file):
                    self.order.append(name)

    def begin(self, state: State) -> None:
        self._states[id(state.chunk)] = state

    def executed(self, first: int, stop: int, lanes: np.ndarray | None, chunk: Chunk) -> None:
        for row, block in enumerate(chunk.blocks):
            for (its_block, warp), threads in self._chosen.items():
                if its_block == block:
                    on = self._lanes(lanes, chunk, row, warp)
                    here = [f for f in threads if on[f.thread.thread % WARP]]
                    for followed in here:
                        self._look(followed, first, row, self._states[id(chunk)])
                    if on.any():
                        self._step(first, (int(block), warp), tuple(map(bool, on)), here)
                        self._wait(first, stop, (int(block), warp))

    def access(self, access: Access) -> None:
        if access.space not in ("global", "shared"):
            return
        for row, block in enumerate(access.chunk.blocks):
            for place in self._chosen:
                if place[0] == block and place in self._now:
                    on = self._lanes(access.lanes, access.chunk, row, place[1])
                    if on.any():
                        lanes = np.flatnonzero(on)
                        touched = self._arrays.touched(access, row, lanes + place[1] * WARP)
                        self._now[place].touches += touched

    def _wait(self, first: int, stop: int, place: tuple[int, int]) -> None:
        """Mark the step in which a warp arrives at a barrier of its block."""
        parts = (self._program.instructions[index].parts for index in range(first, stop))
        if place in self._now and any(p[0] in ("bar", "barrier") and "warp" not in p for p in parts):
            self._now[place].waits = True

    @staticmethod
    def _lanes(lanes: np.ndarray | None, chunk: Chunk, row: int, warp: int) -> np.ndarray:
        real = np.arange(chunk.lanes_per_block) < chunk.threads_per_block
        on = real if lanes is None else np.broadcast_to(lanes, (len(chunk.blocks), len(real)))[row] & real
        return on[warp * WARP : (warp + 1) * WARP]

    # ---- steps -----------------------------------------------------------------------------------

    def _step(self, first: int, place: tuple[int, int], on: tuple[bool, ...], here: list[_Followed]) -> None:
        """Threads of one warp are about to run the segment that begins with `first`."""
        program = self._program
        instruction, prefix = program.instructions[first], program.prefixes[first]
        location, leaves = instruction.location, instruction.parts[0] in LEAVE
        step = None
        if location is not None and self._is_learners(location.file) and not leaves:
            step = self._at(location, first, place, on, bool(here))
            self._now[place] = step
            for followed in here:
                followed.step, followed.prefix = step, prefix
                followed.passed.add((prefix, location.line))
                step.values.setdefault(followed.thread, followed.values())
        for followed in here:
            followed.ran.add(first)
            followed.before = first
            if leaves and instruction.guard is None:
                followed.step = None

    def _at(
        self, location: Location, first: int, place: tuple[int, int], lanes: tuple[bool, ...], chosen: bool
    ) -> Step:
        """The step that this stretch of code belongs to.

        A line goes on as long as its lanes stay the same and it runs nothing for a second time.
        """
        key = *place, chosen
        if key in self._last:
            step, ran = self._last[key]
            if step.location == location and step.lanes == lanes and first not in ran:
                ran.add(first)
                return step
        step = Step(location, *place, lanes)
        if len(self.every) < MOST:
            self.every.append(step)
        if chosen and len(self.steps) < self._limit:
            self.steps.append(step)
        elif chosen:
            self.dropped += 1
        self._last[key] = step, {first}
        return step

    # ---- variables -------------------------------------------------------------------------------

    def _look(self, followed: _Followed, first: int, row: int, state: State) -> None:
        """Note what the variables of a thread hold before instruction `first`: the end of its last step."""
        program = self._program
        if followed.before is not None:
            last = self._ends[followed.before] - 1
            self._move(self._sets[followed.before], followed, program.prefixes[last], row, state)
            moves = self._stops.after.get(program.instructions[last].line, ())
            self._move(moves, followed, program.prefixes[last], row, state)
        prefix, line = program.prefixes[first], program.instructions[first].line
        if followed.before is not None and len(prefix) > len(program.prefixes[followed.before]):
            own = _label(prefix)  # a call: what an earlier one left is no longer there
            followed.held = {name: value for name, value in followed.held.items() if name[0] != own}
        self._move(self._stops.before.get(line, ()), followed, prefix, row, state)
        for variable in reversed(self._of(prefix)):  # the innermost last: they hide the others
            name = _label(prefix), variable.name
            if not variable.is_in_scope(line):
                followed.held.pop(name, None)
            elif variable.place is not None and variable not in self._set_by_name:
                value = self._value(variable, variable.place, followed, prefix, row, state)
                if value is not None:
                    followed.held[name] = value
        if followed.step is not None:
            followed.step.values[followed.thread] = followed.values()

    def _move(self, moves: Sequence[Move], followed: _Followed, prefix: str, row: int, state: State) -> None:
        """Variables have moved to other places: read them there, once."""
        for variable, where in moves:
            value = self._value(variable, where, followed, prefix, row, state)
            if value is not None:
                followed.held[_label(prefix), variable.name] = value

    def _value(
        self,
        variable: SourceVariable,
        where: Where,
        followed: _Followed,
        prefix: str,
        row: int,
        state: State,
    ) -> Value | None:
        """What is in a variable's place; None where the thread has put nothing there yet."""
        octets = b""
        declared = variable.is_parameter or (prefix, variable.line) in followed.passed
        if isinstance(where, Register):
            octets = self._register(prefix + where.name, followed, row, state)
        elif isinstance(where, Symbol) and declared:
            thread = followed.thread.thread
            octets = state.stored(prefix + where.name, where.offset, variable.size, row, thread)
            if not octets:  # a device function's parameter: a register where its call is inlined
                octets = self._register(f"{prefix}[{where.name}+{where.offset}]", followed, row, state)
        elif isinstance(where, int) and (declared or variable.moves):
            octets = where.to_bytes(8, "little", signed=where < 0)
        if len(octets) < variable.size:
            return None
        numbers = [np.frombuffer(octets, f"<{p.dtype}", 1, p.offset)[0] for p in variable.parts]
        values = [number if isinstance(number, np.floating) else number.item() for number in numbers]
        return values[0] if len(values) == 1 else tuple(values)

    def _register(self, name: str, followed: _Followed, row: int, state: State) -> bytes:
        """What a register holds, if the thread has run an instruction that writes it."""
        if not self._writers.get(name, set()) & followed.ran:
            return b""
        return state.register(name, row, followed.thread.thread).tobytes()

    def _of(self, prefix: str) -> Sequence[SourceVariable]:
        """The variables of the function whose copy has this prefix."""
        return self._variables.get(_function(prefix) or self._program.name, ())


@dataclass
class _Followed:
    """A chosen thread on its way.

    The step it is in and the prefix of its function, the segments that it has run (by their first
    instruction) and the last of them, the lines of functions that it has passed, what its variables hold.
    """

    thread: Chosen
    step: Step | None = None
    prefix: str = ""
    before: int | None = None
    ran: set[int] = field(default_factory=set)
    passed: set[tuple[str, int]] = field(default_factory=set)
    held: dict[Name, Value] = field(default_factory=dict)

    def values(self) -> dict[Name, Value]:
        """What it holds in the function in which it is, and in the kernel."""
        inside = {"", *(_plain(name) for name in re.split(r"#\d+:", self.prefix)[:-1])}
        return {name: value for name, value in self.held.items() if name[0] in inside}


def _function(prefix: str) -> str:
    """The name in the PTX of the function whose copy has this prefix; empty for the kernel."""
    return re.split(r"#\d+:", prefix)[-2] if prefix else ""


def _label(prefix: str) -> str:
    return _plain(_function(prefix)) if prefix else ""


def _is_cleared(variable: SourceVariable, file: str) -> bool:
    return not variable.is_parameter and is_python(Location(file, variable.line))


def _is_named(variable: SourceVariable, file: str) -> bool:
    """Whether the learner wrote the name: a compiler adds variables of its own."""
    text = source_text(Location(file, variable.line)) if file else ""
    return (
        variable.is_parameter or not text or re.search(rf"\b{re.escape(variable.name)}\b", text) is not None
    )


def _plain(name: str) -> str:
    """A function's name without what C++ or numba adds to it: ``_Z5twicef`` → ``twice``."""
    parts, rest = [], re.match(r"_ZN?(.*)", name)
    text = rest[1] if rest else ""
    while digits := re.match(r"\d+", text):
        start, length = digits.end(), int(digits[0])
        parts.append(text[start : start + length])
        text = text[start + length :]
    return parts[-1] if parts else name
