"""Instructions in a row → basic blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .ir import BasicBlock, Instruction, Symbol

_BRANCHES = frozenset({"bra", "brx"})
_EXITS = frozenset({"ret", "exit", "trap"})


def split_blocks(
    instructions: Sequence[Instruction], labels: Mapping[str, int], tables: Mapping[str, Sequence[str]]
) -> tuple[tuple[BasicBlock, ...], dict[str, tuple[str, ...]]]:
    """Basic blocks in the order of the text, and `tables` (``.branchtargets``) with the labels of these.

    `labels` maps a label to the index of the instruction after it; every branch goes to one of them. A label
    that no branch names splits nothing: compilers put some between any two lines for the debugger. Of several
    names for one place the first is kept.
    """
    listed = (label for table in tables.values() for label in table)
    named = {*filter(None, map(branch_target, instructions)), *listed}
    leaders: dict[int, str] = {}
    for label, index in labels.items():
        if label in named:
            leaders.setdefault(index, label)
    kept = {name: tuple(leaders[labels[label]] for label in table) for name, table in tables.items()}
    after_jumps = (index + 1 for index, instruction in enumerate(instructions) if _is_jump(instruction))
    starts = sorted({0, *leaders, *after_jumps} - {len(instructions)})
    block_at = {start: index for index, start in enumerate(starts)}
    block_of = {label: block_at[index] for index, label in leaders.items()}
    blocks = []
    for index, (start, end) in enumerate(zip(starts, [*starts[1:], len(instructions)], strict=True)):
        *body, last = instructions[start:end]
        target = branch_target(last)
        if target is not None:
            last = replace(last, operands=(Symbol(leaders[labels[target]]),))
        successors = [block_of[label] for label in _targets(last, kept)]
        if last.guard is not None or not _is_jump(last):
            successors.append(index + 1)
        blocks.append(BasicBlock(index, leaders.get(start, ""), (*body, last), tuple(successors)))
    return tuple(blocks), kept


def branch_target(instruction: Instruction) -> str | None:
    """The label of a ``bra``, None for all else."""
    if instruction.opcode.startswith("bra") and instruction.parts[0] == "bra":
        return _last_name(instruction)
    return None


def branch_table(instruction: Instruction) -> str | None:
    """The name of the list of labels of a ``brx.idx``, None for all else."""
    if instruction.opcode.startswith("brx"):
        return _last_name(instruction)
    return None


def _last_name(instruction: Instruction) -> str | None:
    operand = instruction.operands[-1] if instruction.operands else None
    return operand.name if isinstance(operand, Symbol) else None


def leaves(instruction: Instruction) -> bool:
    """Whether `instruction` ends the function for the lanes that run it."""
    return instruction.opcode.partition(".")[0] in _EXITS


def ends_control(instruction: Instruction) -> bool:
    """Whether nothing after `instruction` runs unless something branches there."""
    return instruction.guard is None and _is_jump(instruction)


def _is_jump(instruction: Instruction) -> bool:
    return leaves(instruction) or instruction.opcode.partition(".")[0] in _BRANCHES


def _targets(last: Instruction, tables: Mapping[str, Sequence[str]]) -> Sequence[str]:
    target, table = branch_target(last), branch_table(last)
    if target is not None:
        return (target,)
    return tables[table] if table is not None else ()
