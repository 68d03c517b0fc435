"""Which registers an instruction reads and which it writes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .ir import Address, Arguments, Instruction, Negated, Operand, Pair, Register, Vector

_SINK = "_"
# Opcodes whose first operand is a source although it may be a register. Where the first operand is an address
# or a symbol (stores, reductions, copies, branches) there is no destination in any case.
_FIRST_IS_SOURCE = frozenset({"bar", "barrier", "brx", "nanosleep", "stackrestore"})
_FIRST_IS_SOURCE_OF = ("tcgen05.dealloc",)
# The accumulator of a warpgroup's matrix operation is its first operand, read and written.
_FIRST_IS_BOTH = ("wgmma.mma_async",)


def split_operands(instruction: Instruction) -> tuple[Operand | None, tuple[Operand, ...]]:
    """The destination of `instruction` and its sources, in the order of the text.

    The destination may be a register, a pair, a vector, or the returned parameters of a call; it is None for
    stores, branches, barriers and the like.

    >>> text = ".version 8.0 .target sm_80 .address_size 64 .visible .entry k() { .reg .b32 %r<3>; "
    >>> text += ""
    >>> text += "add.u32 %r2, %r1, 1; ret; }"
    >>> destination, sources = split_operands(parse(text).functions["k"].blocks[0].instructions[0])
    >>> destination.name, len(sources)
    ('%r2', 2)
    """
    operands = instruction.operands
    if operands and _writes_first(instruction.opcode, operands[0]):
        return operands[0], operands if instruction.opcode.startswith(_FIRST_IS_BOTH) else operands[1:]
    return None, operands


def reads(instruction: Instruction) -> tuple[str, ...]:
    """Names of the registers that `instruction` reads, each once: sources, bases of addresses, its guard.

    >>> text = ".version 8.0 .target sm_80 .address_size 64 .visible .entry k() { .reg .b32 %r<3>; "
    >>> text += "add.u32 %r2, %r1, 1; ret; }"
    >>> reads(parse(text).functions["k"].blocks[0].instructions[0])
    ('%r1',)
    """
    _, sources = split_operands(instruction)
    names = dict.fromkeys(_names(sources))
    if instruction.guard is not None:
        names[instruction.guard.name] = None
    return tuple(names)


def writes(instruction: Instruction) -> tuple[str, ...]:
    """Names of the registers that `instruction` writes, each once; a sink ``_`` is none.

    A guarded instruction writes only where its guard holds, so it does not end the life of the old value.

    >>> text = ".version 8.0 .target sm_80 .address_size 64 .visible .entry k() { .reg .b32 %r<3>; "
    >>> text += "add.u32 %r2, %r1, 1; ret; }"
    >>> writes(parse(text).functions["k"].blocks[0].instructions[0])
    ('%r2',)
    """
    destination, _ = split_operands(instruction)
    return () if destination is None else tuple(dict.fromkeys(_names((destination,))))


def _writes_first(opcode: str, first: Operand) -> bool:
    kind, _, rest = opcode.partition(".")
    if kind == "call":
        # `call (result), name, (arguments)`, but also `call name, (arguments)` and a call through a register.
        return isinstance(first, Arguments)
    if kind in _FIRST_IS_SOURCE:
        # A barrier that reduces is the only one that has a result.
        return kind.startswith("bar") and "red" in rest.split(".")
    return isinstance(first, Register | Pair | Vector) and not opcode.startswith(_FIRST_IS_SOURCE_OF)


def _names(operands: Sequence[Operand]) -> Iterator[str]:
    for operand in operands:
        if isinstance(operand, Register):
            if operand.name != _SINK:
                yield operand.name
        elif isinstance(operand, Address):
            if isinstance(operand.base, Register):
                yield operand.base.name
            if operand.coordinates:
                yield from _names(operand.coordinates)
        elif isinstance(operand, Vector | Arguments):
            yield from _names(operand.items)
        elif isinstance(operand, Negated):
            yield operand.register.name
        elif isinstance(operand, Pair):
            yield from _names((operand.first, operand.second))
