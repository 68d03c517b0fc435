"""Basic blocks of a machine-code listing, and which of them a kernel can reach without a call."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gpulab.simulator.compile.machine_code import MachineInstruction

TEXT = re.compile(r"^(?:@(!?U?P\w+)\s+)?(\S+)")
TARGET = re.compile(r"`\((\.L_\w+)\)")
RARELY = ("BRA.DIV", "BRA.CONV")  # taken where a warp's lanes are apart although they should be together
CONDITION = re.compile(r"\s!?U?P\d,")  # as in BRA.U !UP0, `(.L_x_0)
LEAVES = frozenset(("EXIT", "RET", "KILL"))  # opcodes at which a thread leaves the kernel
ENDS = LEAVES | {"BRA", "BRX", "BRXU", "JMP"}


def opcode(instruction: MachineInstruction) -> str:
    """The whole opcode, as in ``LDG.E.64``."""
    match = TEXT.match(instruction.text)
    return match[2] if match else ""


def base(name: str) -> str:
    """An opcode up to its first dot: ``LDG`` of ``LDG.E.64``."""
    return name.partition(".")[0]


def guarded(instruction: MachineInstruction) -> bool:
    """Whether it runs under a predicate."""
    return instruction.text.startswith("@")


@dataclass(frozen=True)
class Block:
    """Instructions that always run one after the other; `reached` is False where only a call leads there, as
    to the slow paths of a division. `ways` are the numbers of the blocks that may follow, and `ends` says
    whether a thread may leave the kernel at its end."""

    instructions: tuple[MachineInstruction, ...]
    reached: bool = True
    ways: tuple[int, ...] = ()
    ends: bool = False


def split(listing: Sequence[MachineInstruction]) -> list[Block]:
    """The blocks of a kernel in the order of its listing."""
    pieces: list[list[MachineInstruction]] = [[]]
    for instruction in listing:
        if instruction.label and pieces[-1]:
            pieces.append([])
        pieces[-1].append(instruction)
        if base(opcode(instruction)) in ENDS:
            pieces.append([])
    pieces = [piece for piece in pieces if piece]
    ways = _ways(pieces)
    reached = _reached(pieces, ways)
    return [
        Block(
            tuple(piece),
            number in reached,
            tuple(way for way in ways[number] if way in reached) if number in reached else (),
            base(opcode(piece[-1])) in LEAVES or number == len(pieces) - 1,
        )
        for number, piece in enumerate(pieces)
    ]


def _ways(pieces: list[list[MachineInstruction]]) -> list[list[int]]:
    """For each block the blocks that may follow it."""
    at = {piece[0].label: number for number, piece in enumerate(pieces) if piece[0].label}
    found = []
    for number, piece in enumerate(pieces):
        ways = [at[target] for instruction in piece for target in _targets(instruction) if target in at]
        if _goes_on(piece[-1]) and number + 1 < len(pieces):
            ways.append(number + 1)
        found.append(list(dict.fromkeys(ways)))
    return found


def _reached(pieces: list[list[MachineInstruction]], ways: list[list[int]]) -> set[int]:
    """The blocks to which branches lead from the first one. A block that calls a function is left out, unless
    the kernel cannot go around it: its result is needed in rare cases only."""
    calls = {n for n, piece in enumerate(pieces) if any(map(_calls, piece))}
    found: set[int] = set()
    todo = [0]
    while todo:
        number = todo.pop()
        if number not in found:
            found.add(number)
            todo += [way for way in ways[number] if way not in calls] or ways[number]
    return found


def _goes_on(last: MachineInstruction) -> bool:
    """Whether the next block may follow this one's last instruction."""
    ends = base(opcode(last)) in ENDS
    depends = guarded(last) or CONDITION.search(last.text) or opcode(last).startswith(RARELY)
    return bool(not ends or depends)


def _calls(instruction: MachineInstruction) -> bool:
    """Whether it calls a function. (A call of a label is a long jump.)"""
    return opcode(instruction).startswith("CALL") and not TARGET.search(instruction.text)


def _targets(instruction: MachineInstruction) -> list[str]:
    jumps = opcode(instruction).startswith(("BRA", "JMP", "CALL"))
    return TARGET.findall(instruction.text) if jumps and not opcode(instruction).startswith(RARELY) else []
