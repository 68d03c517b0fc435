"""Which registers are still needed where."""

from __future__ import annotations

from collections.abc import Sequence

from .dataflow import reads, writes
from .ir import BasicBlock, Function

Live = frozenset[str]


def live_registers(function: Function) -> tuple[Live, ...]:
    """For each block of `function`, the registers that some path from its start reads before writing them.

    >>> text = ".version 8.0 .target sm_80 .address_size 64 .visible .entry k() { .reg .b32 %r<3>; "
    >>> text += "L: add.u32 %r2, %r1, 1; bra L; }"
    >>> [sorted(live) for live in live_registers(parse(text).functions["k"])]
    [['%r1']]
    """
    numbers = {name: number for number, name in enumerate(function.registers)}
    names = tuple(numbers)
    return tuple(_names(bits, names) for bits in _live_in(function.blocks, numbers))


def live_before(block: BasicBlock, live_in: Sequence[Live]) -> tuple[Live, ...]:
    """The registers live before each instruction of `block`; `live_in` is what `live_registers` returns.

    >>> text = ".version 8.0 .target sm_80 .address_size 64 .visible .entry k() { .reg .b32 %r<3>; "
    >>> text += "mov.u32 %r1, 1; add.u32 %r2, %r1, 1; ret; }"
    >>> function = parse(text).functions["k"]
    >>> [sorted(live) for live in live_before(function.blocks[0], live_registers(function))]
    [[], ['%r1'], []]
    """
    live = frozenset[str]().union(*(live_in[successor] for successor in block.successors))
    before = []
    for instruction in reversed(block.instructions):
        if instruction.guard is None:
            live = live.difference(writes(instruction))
        live = live.union(reads(instruction))
        before.append(live)
    return tuple(reversed(before))


def _live_in(blocks: Sequence[BasicBlock], numbers: dict[str, int]) -> list[int]:
    """The least solution of live-in = used ∪ (live-out − killed), each set as the bits of an integer."""
    used, killed = zip(*(_summary(block, numbers) for block in blocks), strict=True) if blocks else ((), ())
    predecessors: list[list[int]] = [[] for _ in blocks]
    for block in blocks:
        for successor in block.successors:
            predecessors[successor].append(block.index)
    live = list(used)
    # Taken from the end: the last blocks first, because what is live flows backwards.
    waiting = dict.fromkeys(range(len(blocks)))
    while waiting:
        index, _ = waiting.popitem()
        out = 0
        for successor in blocks[index].successors:
            out |= live[successor]
        now = used[index] | (out & ~killed[index])
        if now != live[index]:
            live[index] = now
            waiting.update(dict.fromkeys(predecessors[index]))
    return live


def _summary(block: BasicBlock, numbers: dict[str, int]) -> tuple[int, int]:
    """Registers read before any write in `block`, and registers written for certain."""
    used = killed = 0
    for instruction in block.instructions:
        for name in reads(instruction):
            used |= (1 << numbers[name]) & ~killed
        if instruction.guard is None:
            for name in writes(instruction):
                killed |= 1 << numbers[name]
    return used, killed


def _names(bits: int, names: Sequence[str]) -> Live:
    found = []
    while bits:
        lowest = bits & -bits
        found.append(names[lowest.bit_length() - 1])
        bits ^= lowest
    return frozenset(found)
