"""Where a kernel is stopped to look at its variables, and what there is to look at."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpulab.simulator.ptx import (
    Function,
    Immediate,
    Instruction,
    Location,
    Module,
    Register,
    SourceVariable,
    Symbol,
    Where,
    label_lines,
    writes,
)
from gpulab.simulator.simt.errors import source_text

LEAVE = ("ret", "exit")

Move = tuple[SourceVariable, Where]


@dataclass
class Stops:
    """`lines` of the PTX text before whose instructions a thread is stopped.

    A variable comes to be in a place when a thread arrives `before` an instruction on a line, or, `after` the
    last one of a block, goes on.
    """

    lines: set[int] = field(default_factory=set)
    before: dict[int, list[Move]] = field(default_factory=lambda: defaultdict(list))
    after: dict[int, list[Move]] = field(default_factory=lambda: defaultdict(list))


def stops_of(module: Module, text: str, variables: Mapping[str, Sequence[SourceVariable]]) -> Stops:
    """Where a source line begins, where a variable moves, and where a thread may leave."""
    stops, labels = Stops(), label_lines(text)
    for function in module.functions.values():
        instructions = [i for block in function.blocks for i in block.instructions]
        location = None
        for instruction in instructions:
            if instruction.location != location or instruction.parts[0] in LEAVE:
                stops.lines.add(instruction.line)
            location = instruction.location
        for variable in variables.get(function.name, ()):
            for line, where in variable.moves:
                if not _only_clears(instructions, line, variable, where):
                    _add_move(stops, function, labels, line, (variable, where))
    return stops


def _add_move(
    stops: Stops, function: Function, labels: Mapping[str, Sequence[int]], line: int, move: Move
) -> None:
    """A move stands between two instructions. It happens before the second one, unless that begins a block
    whose label comes after the move: a thread may jump there without having come past it."""
    starts = [block.instructions[0].line for block in function.blocks]
    number = bisect_right(starts, line)  # of the first block that begins behind the move
    earlier = function.blocks[number - 1].instructions if number else ()
    behind = next((instruction.line for instruction in earlier if instruction.line > line), None)
    if behind is None and number < len(starts):
        places = labels.get(function.blocks[number].label, ())
        if not any(line < place < starts[number] for place in places):
            behind = starts[number]
    if behind is not None:
        stops.before[behind].append(move)
        stops.lines.add(behind)
    elif earlier:
        stops.after[earlier[-1].line].append(move)


def _only_clears(
    instructions: Sequence[Instruction], line: int, variable: SourceVariable, where: Where
) -> bool:
    """Whether a variable becomes zero without a word of the source: numba clears variables before they begin
    and after they end."""
    if isinstance(where, Register):
        makers = [i for i in instructions if where.name in writes(i)]
        zero = bool(makers) and all(_is_zero(i) for i in makers)
    else:
        zero = where == 0
    earlier = [i.location for i in instructions if i.line < line and i.location is not None]
    if not zero or not earlier or not is_python(earlier[-1]):
        return False
    return not assigns(earlier[-1], variable.name)


def _is_zero(instruction: Instruction) -> bool:
    source = instruction.operands[-1]
    return instruction.parts[0] == "mov" and isinstance(source, Immediate) and not source.value


def sets(instruction: Instruction, variable: SourceVariable) -> Where | None:
    """The place in which an instruction puts a new value of a variable; None if it does not.

    A place that follows on the same place is not listed as a move, so this looks at what is written on a line
    that names the variable.
    """
    place = instruction.location
    if place is None:
        return None
    if isinstance(variable.place, Symbol):
        return variable.place if instruction.parts[0] == "st" and assigns(place, variable.name) else None
    written = set(writes(instruction))
    found = [where for _, where in variable.moves if isinstance(where, Register) and where.name in written]
    return found[0] if found and _names(place, variable.name) else None


def is_python(place: Location) -> bool:
    """Whether a place is in Python; other sources are CUDA C++."""
    return not place.file.startswith("<cuda ")


def assigns(place: Location, name: str) -> bool:
    """Whether a line of Python gives the name a value."""
    return bool(re.search(rf"^(?!def ).*\b{re.escape(name)}\b[^=]*=(?!=)", source_text(place)))


def _names(place: Location, name: str) -> bool:
    return bool(re.search(rf"\b{re.escape(name)}\b", source_text(place)))
