"""Which functions a kernel calls, and which of them keep a body of their own.

Most functions are copied to where they are called (`inline`). Two kinds cannot be: those that call
themselves, perhaps through others, and those that are called by their address, as virtual functions are.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from gpulab.simulator.ptx import (
    Arguments,
    Function,
    Instruction,
    Module,
    Operand,
    Register,
    Symbol,
    Variable,
    parse_prototype,
)

from .types import size_of


class Call(NamedTuple):
    """A call taken apart. `target` names a function or is a register that holds the address of one; then
    `prototype` is the name of what the function says about that."""

    results: tuple[Operand, ...]
    target: Operand
    arguments: tuple[Operand, ...]
    prototype: str


def taken_apart(call: Instruction) -> Call:
    """``call (results), target, (arguments), prototype``: all but the target may be missing."""
    operands = list(call.operands)
    first = operands.pop(0)
    results = first.items if isinstance(first, Arguments) else ()
    target = operands.pop(0) if isinstance(first, Arguments) else first
    given = operands.pop(0) if operands and isinstance(operands[0], Arguments) else Arguments(())
    assert isinstance(given, Arguments)
    prototype = operands[0].name if operands and isinstance(operands[0], Symbol) else ""
    return Call(results, target, given.items, prototype)


class CallGraph:
    """Who calls whom in a module."""

    def __init__(self, module: Module):
        self.module = module

    @cached_property
    def with_address(self) -> tuple[str, ...]:
        """Functions whose address is taken, by a variable or by an instruction that does not call them."""
        functions = self.module.functions
        named = [symbol.name for v in self.module.variables.values() for _, symbol in v.pointers]
        for function in functions.values():
            for block in function.blocks:
                for instruction in block.instructions:
                    if instruction.parts[0] != "call":
                        named += [o.name for o in instruction.operands if isinstance(o, Symbol)]
        return tuple(name for name in dict.fromkeys(named) if name in functions and functions[name].blocks)

    def callees(self, function: Function, call: Instruction) -> tuple[str, ...]:
        """Names of the functions that a call may reach, as far as the module has them.

        A call on an address reaches those of its ``.calltargets``, or else all whose address the module takes
        and whose results and parameters take as many bytes as the prototype says.
        """
        _, target, _, prototype = taken_apart(call)
        if isinstance(target, Symbol):
            return (target.name,) if target.name in self.module.functions else ()
        text = function.prototypes.get(prototype, "")
        if text.startswith(".calltargets"):
            return tuple(name.strip() for name in text.removeprefix(".calltargets").split(","))
        wanted = tuple(map(_sizes, parse_prototype(text)))
        found = map(self.module.functions.__getitem__, self.with_address)
        return tuple(f.name for f in found if (_sizes(f.returns), _sizes(f.parameters)) == wanted)

    def keeping_their_bodies(self, entry: str) -> list[str]:
        """The functions that kernel `entry` may reach and that cannot be copied to where they are called."""
        edges: dict[str, set[str]] = {}
        by_address: set[str] = set()
        waiting = [entry]
        while waiting:
            function = self.module.functions[waiting.pop()]
            if function.name in edges:
                continue
            edges[function.name] = set()
            for call in _calls_of(function):
                reached = self.callees(function, call)
                edges[function.name].update(reached)
                if isinstance(taken_apart(call).target, Register):
                    by_address.update(reached)
            waiting += edges[function.name]
        kept = by_address | _on_circles(edges)
        return [name for name in self.module.functions if name in kept]


def _calls_of(function: Function) -> Iterator[Instruction]:
    for block in function.blocks:
        for instruction in block.instructions:
            if instruction.opcode.startswith("call") and instruction.parts[0] == "call":
                yield instruction


def _on_circles(edges: dict[str, set[str]]) -> set[str]:
    """The functions on a circle of calls, and those on a way from one circle to another."""
    left = set(edges)
    while without := {name for name in left if edges[name].isdisjoint(left)}:
        left -= without
    while without := left - set().union(*(edges[name] for name in left)):
        left -= without
    return left


def _sizes(variables: tuple[Variable, ...]) -> list[int]:
    return [size_of(variable.type) * variable.count for variable in variables]
