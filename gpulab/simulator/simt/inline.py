"""One flat body out of a kernel and the device functions that it calls.

Calls are replaced by the callee's blocks with registers renamed; parameters become moves between registers.
So the executor has one program counter and no stack. Recursion is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gpulab.simulator.ptx import (
    Address,
    Arguments,
    Function,
    Instruction,
    Module,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Variable,
    Vector,
)

from .errors import UnsupportedInstruction
from .types import size_of

HOST_CALLS = frozenset({"vprintf", "__assertfail", "__assert_fail"})
EXITS = frozenset({"ret", "exit"})


@dataclass(slots=True)
class Body:
    """Blocks in execution order; `successors[i]` as in `ptx.BasicBlock`, indices into `blocks`.

    Registers and local variables of an inlined copy have its prefix before their names.
    """

    blocks: list[list[Instruction]] = field(default_factory=list)
    successors: list[list[int]] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    prefixes: list[str] = field(default_factory=list)  # of the copy that each block belongs to

    def open_block(self, prefix: str) -> int:
        self.prefixes.append(prefix)
        self.blocks.append([])
        self.successors.append([])
        return len(self.blocks) - 1


def flatten(module: Module, entry: str) -> Body:
    """The body of kernel `entry` with every call inlined."""
    body = Body()
    _emit(module, module.functions[entry], "", body, (entry,))
    return body


class Emitted(NamedTuple):
    """Where a function is in the body: its first block, and the blocks that end in a return (of an inlined
    copy; a kernel has none)."""

    first: int
    returns: list[int]


def _emit(module: Module, function: Function, prefix: str, body: Body, path: tuple[str, ...]) -> Emitted:
    """Append `function` to the body."""
    body.registers.update({prefix + name: type_ for name, type_ in function.registers.items()})
    local = {v.name for v in function.variables if v.space in ("local", "shared")}
    body.variables += [
        replace(v, name=prefix + v.name) for v in function.variables if v.space in ("local", "shared")
    ]
    names = _Names(prefix, local)
    starts: list[int] = []
    ends: list[int] = []
    returns: list[int] = []
    for block in function.blocks:
        current = body.open_block(prefix)
        starts.append(current)
        for instruction in block.instructions:
            if instruction.parts[0] == "call":
                current = _call(module, function, instruction, names, body, current, path)
            elif prefix and instruction.parts[0] == "ret":
                body.blocks[current].append(
                    names.instruction(replace(instruction, opcode="bra.uni", operands=()))
                )
                returns.append(current)
            else:
                renamed = names.instruction(instruction)
                moved = (
                    _parameter_moves(renamed, function, prefix, body) if _is_parameter(instruction) else None
                )
                body.blocks[current].extend(moved if moved is not None else [renamed])
        ends.append(current)
    for block, end in zip(function.blocks, ends, strict=True):
        body.successors[end] = [starts[i] for i in block.successors if i < len(starts)]
        fell_off = not block.successors and not (
            block.instructions and block.instructions[-1].parts[0] in EXITS
        )
        if prefix and fell_off and not (block.instructions and block.instructions[-1].parts[0] == "trap"):
            returns.append(end)
    return Emitted(starts[0], returns)


@dataclass(slots=True)
class _Names:
    """Renames one inlined copy's registers and local variables."""

    prefix: str
    local: set[str]

    def instruction(self, instruction: Instruction) -> Instruction:
        if not self.prefix:
            return instruction
        guard = Register(self.prefix + instruction.guard.name) if instruction.guard else None
        return replace(instruction, operands=tuple(map(self.operand, instruction.operands)), guard=guard)

    def operand(self, operand: Operand) -> Operand:
        if not self.prefix:
            return operand
        match operand:
            case Register(name):
                return operand if name == "_" else Register(self.prefix + name)
            case Symbol(name, offset):
                return Symbol(self.prefix + name, offset) if name in self.local else operand
            case Address(base, offset, coordinates):
                return Address(
                    None if base is None else self.operand(base),  # type: ignore[arg-type]
                    offset,
                    tuple(map(self.operand, coordinates)),
                )
            case Vector(items):
                return Vector(tuple(map(self.operand, items)))
            case Arguments(items):
                return Arguments(tuple(map(self.operand, items)))
            case Pair(first, second):
                return Pair(self.operand(first), self.operand(second))
            case Negated(register):
                return Negated(Register(self.prefix + register.name))
        return operand


def _is_parameter(instruction: Instruction) -> bool:
    return instruction.parts[0] in ("ld", "st") and "param" in instruction.parts


def _place(prefix: str, name: str, offset: int) -> str:
    """The register that stands for `offset` of a call's parameter."""
    return f"{prefix}[{name}+{offset}]"


def _parameter_moves(
    instruction: Instruction, function: Function, prefix: str, body: Body
) -> list[Instruction] | None:
    """``ld.param``/``st.param`` of a call's parameter as moves; None for the kernel's own parameters."""
    is_load = instruction.parts[0] == "ld"
    address = instruction.operands[1 if is_load else 0]
    assert isinstance(address, Address)
    if not isinstance(address.base, Symbol):
        return None
    name = address.base.name
    if not prefix and any(p.name == name for p in function.parameters):
        return None
    type_ = instruction.parts[-1]
    value = instruction.operands[0 if is_load else 1]
    items = value.items if isinstance(value, Vector) else (value,)
    moves = []
    for i, item in enumerate(items):
        place = _place(prefix, name, address.base.offset + address.offset + i * size_of(type_))
        body.registers.setdefault(place, type_)
        target, source = (item, Register(place)) if is_load else (Register(place), item)
        moves.append(replace(instruction, opcode=f"mov.{_bits(type_)}", operands=(target, source)))
    return moves


def _bits(type_: str) -> str:
    """The type that a move of a parameter's bytes uses: a byte travels in a 16-bit register."""
    return "b16" if type_.endswith("8") and size_of(type_) == 1 else type_


def _call(
    module: Module,
    caller: Function,
    call: Instruction,
    names: _Names,
    body: Body,
    current: int,
    path: tuple[str, ...],
) -> int:
    """Append a call to block `current`; returns the block that goes on after it."""
    lists = [o for o in call.operands if isinstance(o, Arguments)]
    target = next((o for o in call.operands if isinstance(o, Symbol)), None)
    if target is None or target.name not in module.functions:
        raise UnsupportedInstruction(
            call.opcode,
            path[0],
            call.location,
            call.line,
            "Calls through a function pointer are not simulated.",
        )
    callee = module.functions[target.name]
    position = call.operands.index(target)
    results = lists[0].items if lists and position > 0 else ()
    arguments = (
        lists[-1].items
        if lists and isinstance(call.operands[-1], Arguments) and position < len(call.operands) - 1
        else ()
    )
    if callee.name in HOST_CALLS:
        places = [Register(_place(names.prefix, a.name, 0)) for a in arguments if isinstance(a, Symbol)]
        body.blocks[current].append(
            names.instruction(replace(call, opcode=f"call.{callee.name}", operands=()))
        )
        body.blocks[current][-1] = replace(body.blocks[current][-1], operands=tuple(places))
        _leave_unset(results, names.prefix, body)
        return current
    if callee.extern or not callee.blocks:
        raise UnsupportedInstruction(
            f"call {callee.name}",
            path[0],
            call.location,
            call.line,
            "This device function has no PTX of its own.",
        )
    if callee.name in path:
        raise UnsupportedInstruction(
            f"call {callee.name}",
            path[0],
            call.location,
            call.line,
            "Recursion is not simulated: write it as a loop.",
        )
    if call.guard is not None:
        raise UnsupportedInstruction(
            call.opcode, path[0], call.location, call.line, "A call under a predicate."
        )
    inner = f"{names.prefix}{callee.name}#{len(body.blocks)}:"
    for argument, parameter in zip(arguments, callee.parameters, strict=True):
        _pass(argument, names.prefix, parameter, inner, call, body, current)
    first, returns = _emit(module, callee, inner, body, (*path, callee.name))
    body.successors[current] = [first]
    after = body.open_block(names.prefix)
    for block in returns:
        body.successors[block] = [after, *body.successors[block]]
    if not callee.returns:  # numba expects a status even of a void C function, and looks at none
        _leave_unset(results, names.prefix, body)
    for result, returned in zip(results, callee.returns, strict=bool(callee.returns)):
        _hand_back(result, names.prefix, returned, inner, call, body, after)
    return after


def _leave_unset(results: Sequence[Operand], prefix: str, body: Body) -> None:
    for result in results:
        if isinstance(result, Symbol):
            body.registers.setdefault(_place(prefix, result.name, 0), "b32")


def _offsets(body: Body, prefix: str, name: str) -> list[int]:
    start = f"{prefix}[{name}+"
    return sorted(int(r[len(start) : -1]) for r in body.registers if r.startswith(start))


def _pass(
    argument: Operand, prefix: str, parameter: Variable, inner: str, call: Instruction, body: Body, block: int
) -> None:
    if isinstance(argument, Symbol):
        for offset in _offsets(body, prefix, argument.name):
            source = _place(prefix, argument.name, offset)
            _move(
                body,
                block,
                call,
                _place(inner, parameter.name, offset),
                Register(source),
                body.registers[source],
            )
    else:
        renamed = Register(prefix + argument.name) if isinstance(argument, Register) else argument
        _move(body, block, call, _place(inner, parameter.name, 0), renamed, parameter.type)


def _hand_back(
    result: Operand, prefix: str, returned: Variable, inner: str, call: Instruction, body: Body, block: int
) -> None:
    if isinstance(result, Symbol):
        for offset in _offsets(body, inner, returned.name):
            source = _place(inner, returned.name, offset)
            _move(
                body,
                block,
                call,
                _place(prefix, result.name, offset),
                Register(source),
                body.registers[source],
            )
    elif isinstance(result, Register):
        body.registers.setdefault(_place(inner, returned.name, 0), returned.type)
        move = replace(
            call,
            opcode=f"mov.{_bits(returned.type)}",
            operands=(Register(prefix + result.name), Register(_place(inner, returned.name, 0))),
        )
        body.blocks[block].append(move)


def _move(body: Body, block: int, call: Instruction, target: str, source: Operand, type_: str) -> None:
    body.registers.setdefault(target, type_)
    body.blocks[block].append(
        replace(call, opcode=f"mov.{_bits(type_)}", operands=(Register(target), source))
    )
