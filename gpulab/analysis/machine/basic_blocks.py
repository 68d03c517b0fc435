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
ENDS = frozenset(("BRA", "BRX", "BRXU", "JMP", "EXIT", "RET", "KILL"))


def opcode(instruction: MachineInstruction) -> str:
    """The whole opcode, as in ``LDG.E.64``."""
    match = TEXT.match(instruction.text)
    return match[2] if match else ""


def guarded(instruction: MachineInstruction) -> bool:
    """Whether it runs under a predicate."""
    return instruction.text.startswith("@")


@dataclass(frozen=True)
class Block:
    """Instructions that always run one after the other; `reached` is False where only a call leads there, as
    to the slow paths of a division."""

    instructions: tuple[MachineInstruction, ...]
    reached: bool = True


def split(listing: Sequence[MachineInstruction]) -> list[Block]:
    """The blocks of a kernel in the order of its listing."""
    pieces: list[list[MachineInstruction]] = [[]]
    for instruction in listing:
        if instruction.label and pieces[-1]:
            pieces.append([])
        pieces[-1].append(instruction)
        if opcode(instruction).partition(".")[0] in ENDS:
            pieces.append([])
    pieces = [piece for piece in pieces if piece]
    reached = _reached(pieces)
    return [Block(tuple(piece), number in reached) for number, piece in enumerate(pieces)]


def _reached(pieces: list[list[MachineInstruction]]) -> set[int]:
    """The blocks to which branches lead from the first one. A block that calls a function is left out, unless
    the kernel cannot go around it: its result is needed in rare cases only."""
    at = {piece[0].label: number for number, piece in enumerate(pieces) if piece[0].label}
    calls = {n for n, piece in enumerate(pieces) if any(map(_calls, piece))}
    found: set[int] = set()
    todo = [0]
    while todo:
        number = todo.pop()
        if number in found or number >= len(pieces):
            continue
        found.add(number)
        ways = [
            at[target] for instruction in pieces[number] for target in _targets(instruction) if target in at
        ]
        last = pieces[number][-1]
        if _goes_on(last):
            ways.append(number + 1)
        todo += [way for way in ways if way not in calls] or ways
    return found


def _goes_on(last: MachineInstruction) -> bool:
    """Whether the next block may follow this one's last instruction."""
    ends = opcode(last).partition(".")[0] in ENDS
    depends = guarded(last) or CONDITION.search(last.text) or opcode(last).startswith(RARELY)
    return bool(not ends or depends)


def _calls(instruction: MachineInstruction) -> bool:
    """Whether it calls a function. (A call of a label is a long jump.)"""
    return opcode(instruction).startswith("CALL") and not TARGET.search(instruction.text)


def _targets(instruction: MachineInstruction) -> list[str]:
    jumps = opcode(instruction).startswith(("BRA", "JMP", "CALL"))
    return TARGET.findall(instruction.text) if jumps and not opcode(instruction).startswith(RARELY) else []
