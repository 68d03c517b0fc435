"""Where a kernel's parameters and variables lie: in the argument buffer, in shared and in local memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gpulab.simulator.ptx import Address, Module, Operand, Symbol, Variable, Vector

from .inline import Body
from .program import Parameter, SharedVariable
from .types import size_of


class SharedLayout(NamedTuple):
    """The shared memory of a block: its variables, static bytes, whether it has dynamic shared memory."""

    variables: dict[str, SharedVariable]
    nbytes: int
    dynamic: bool


class LocalLayout(NamedTuple):
    """The local memory of a thread: the offset of each variable, bytes."""

    offsets: dict[str, int]
    nbytes: int


def parameter_layout(parameters: tuple[Variable, ...]) -> tuple[Parameter, ...]:
    """The kernel's parameters as the launch packs them."""
    layout, at = [], 0
    for parameter in parameters:
        at = _round_up(at, max(parameter.align, size_of(parameter.type)))
        layout.append(Parameter(parameter.name, at, bytes_of(parameter)))
        at += bytes_of(parameter)
    return tuple(layout)


def shared_layout(module: Module, body: Body) -> SharedLayout:
    """The shared variables that the body names, where ptxas puts them.

    It begins with the largest alignment, and of one alignment with the smallest variable; of two alike the
    one that is declared last comes first (seen in its machine code). Dynamic shared memory comes last.
    """
    named = {
        symbol for block in body.blocks for instruction in block for symbol in _symbols(instruction.operands)
    }
    variables = [v for v in module.variables.values() if v.space == "shared" and v.name in named]
    variables += [v for v in body.variables if v.space == "shared"]
    places: dict[str, SharedVariable] = {}
    at = 0
    fixed = [v for v in reversed(variables) if v.count]
    for variable in sorted(fixed, key=lambda v: (-_alignment(v), bytes_of(v))):
        at = _round_up(at, _alignment(variable))
        places[variable.name] = SharedVariable(at, bytes_of(variable))
        at += bytes_of(variable)
    dynamic = [v for v in variables if not v.count]
    start = _round_up(at, max((max(v.align, 1) for v in dynamic), default=1))
    for variable in dynamic:
        places[variable.name] = SharedVariable(start, 0)
    return SharedLayout(places, start if dynamic else at, bool(dynamic))


def _alignment(variable: Variable) -> int:
    return max(variable.align, size_of(variable.type))


def local_layout(body: Body) -> LocalLayout:
    """The local variables of the kernel and of everything that is inlined in it."""
    places: dict[str, int] = {}
    at = 0
    for variable in body.variables:
        if variable.space == "local":
            at = _round_up(at, max(variable.align, 16))
            places[variable.name] = at
            at += bytes_of(variable)
    return LocalLayout(places, at)


def bytes_of(variable: Variable) -> int:
    """Bytes that a variable takes; 0 for an array without a size."""
    return size_of(variable.type) * variable.count


def _round_up(n: int, align: int) -> int:
    return (n + align - 1) // max(align, 1) * max(align, 1)


def _symbols(operands: Iterable[Operand]) -> Iterable[str]:
    for operand in operands:
        if isinstance(operand, Symbol):
            yield operand.name
        elif isinstance(operand, Address) and isinstance(operand.base, Symbol):
            yield operand.base.name
        elif isinstance(operand, Vector):
            yield from _symbols(operand.items)
