"""One flat body out of a kernel and the device functions that it calls.

Most calls are replaced by the callee's blocks with registers renamed; parameters become moves between
registers. Functions that call themselves, or that are called by their address, are there once, before the
kernel (`call_graph` says which). A call of theirs has two ends: ``call.push`` keeps what the caller will need
of its registers and hands over the arguments, ``call.pop`` gets all that back when the callee has gone to the
`Site` whose number it was given. So the executor has one program counter, and a stack only in such kernels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gpulab.simulator.ptx import (
    Address,
    Arguments,
    BasicBlock,
    Function,
    Immediate,
    Instruction,
    Module,
    Negated,
    Operand,
    Pair,
    Register,
    Symbol,
    Variable,
    Vector,
    live_registers,
)

from .call_graph import CallGraph, taken_apart
from .errors import UnsupportedInstruction
from .types import size_of

HOST_CALLS = frozenset({"vprintf", "__assertfail", "__assert_fail", "malloc", "free"})
EXITS = frozenset({"ret", "exit"})
FRAMES = "[frames]"  # the local variable that frames are made in, behind those of the kernel
FIRST_FRAMES = 8  # for how many of them there is room at first


@dataclass(slots=True, eq=False)
class Kept:
    """A function that has its blocks to itself. Each time that it runs it has `frame_bytes` of local memory;
    `places` are the registers that hold addresses there, with the bytes from the frame's start."""

    function: Function
    prefix: str
    first: int = -1  # block
    places: dict[str, int] = field(default_factory=dict)
    frame_bytes: int = 0

    @property
    def back(self) -> str:
        """The register with the number of the site that it returns to."""
        return f"{self.prefix}[return]"


class Move(NamedTuple):
    """What a call hands over: a register's new content."""

    target: str
    source: Operand


@dataclass(slots=True, eq=False)
class Site:
    """A call of one of `callees`: its `block` ends there, and `after` goes on. `pointer` is the register with
    the function's address, empty where there is only one. `saved` are registers of the `caller`, if that may
    run again meanwhile."""

    number: int
    block: int
    after: int
    call: Instruction
    caller: Kept | None
    callees: tuple[Kept, ...]
    pointer: str
    given: list[list[Move]]  # for each callee
    results: list[Move]
    saved: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """The register with the callee's place in `callees`."""
        return f"[target {self.number}]"


@dataclass(slots=True)
class Body:
    """Blocks in execution order; `successors[i]` as in `ptx.BasicBlock`, indices into `blocks`.

    The kernel begins at block `entry`, behind the functions in `kept`. Registers and local variables of an
    inlined copy have its prefix before their names.
    """

    blocks: list[list[Instruction]] = field(default_factory=list)
    successors: list[list[int]] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)
    variables: list[Variable] = field(default_factory=list)
    prefixes: list[str] = field(default_factory=list)  # of the copy that each block belongs to
    entry: int = 0
    kept: dict[str, Kept] = field(default_factory=dict)
    sites: list[Site] = field(default_factory=list)

    def open_block(self, prefix: str) -> int:
        self.prefixes.append(prefix)
        self.blocks.append([])
        self.successors.append([])
        return len(self.blocks) - 1


class _Whole(NamedTuple):
    """What the parts of one kernel's body share."""

    module: Module
    entry: str
    graph: CallGraph
    body: Body


def flatten(module: Module, entry: str) -> Body:
    """The body of kernel `entry` with every call inlined or made a site."""
    body, graph = Body(), CallGraph(module)
    whole = _Whole(module, entry, graph, body)
    for name in graph.keeping_their_bodies(entry):
        body.kept[name] = Kept(module.functions[name], f"{name}#0:")
    for kept in body.kept.values():
        body.registers[kept.back] = "b32"
        kept.first = _emit(whole, kept.function, kept.prefix, kept).first
    body.entry = _emit(whole, module.functions[entry], "", None).first
    if body.sites:
        _finish(body)
    return body


class Emitted(NamedTuple):
    """Where a function is in the body: its first block, and the blocks that end in a return (of an inlined
    copy; a kernel has none)."""

    first: int
    returns: list[int]


def _emit(whole: _Whole, function: Function, prefix: str, kept: Kept | None) -> Emitted:
    """Append `function` to the body, as a part of `kept` or of the kernel."""
    body = whole.body
    body.registers.update({prefix + name: type_ for name, type_ in function.registers.items()})
    names = _Names(prefix, *_declare(body, function, prefix, kept), kept)
    copy = _Copy(function, names, kept)
    starts: list[int] = []
    ends: list[int] = []
    returns: list[int] = []
    for block in function.blocks:
        current = body.open_block(prefix)
        starts.append(current)
        for instruction in block.instructions:
            if instruction.parts[0] == "call":
                current = _call(whole, copy, instruction, current)
            elif prefix and instruction.parts[0] == "ret":
                body.blocks[current].append(
                    names.instruction(replace(instruction, opcode="bra.uni", operands=()))
                )
                returns.append(current)
            else:
                renamed = names.instruction(instruction)
                moved = _parameter_moves(renamed, copy, body) if _is_parameter(instruction) else None
                body.blocks[current].extend(moved if moved is not None else [renamed])
        ends.append(current)
    for block, end in zip(function.blocks, ends, strict=True):
        body.successors[end] = [starts[i] for i in block.successors if i < len(starts)]
        fell_off = not block.successors and not (
            block.instructions and block.instructions[-1].parts[0] in EXITS
        )
        if prefix and fell_off and not (block.instructions and block.instructions[-1].parts[0] == "trap"):
            returns.append(end)
    if kept is not None and kept.prefix == prefix:
        _return_to_site(body, kept, returns)
    return Emitted(starts[0], returns)


def _declare(
    body: Body, function: Function, prefix: str, kept: Kept | None
) -> tuple[set[str], dict[str, int]]:
    """Give the function's variables a place: names of those that are there once, and where those lie that
    each activation has in its frame."""
    fixed: set[str] = set()
    framed: dict[str, int] = {}
    for variable in function.variables:
        if variable.space == "local" and kept is not None:
            align = max(variable.align, 16)
            framed[variable.name] = (kept.frame_bytes + align - 1) // align * align
            kept.frame_bytes = framed[variable.name] + size_of(variable.type) * variable.count
        elif variable.space in ("local", "shared"):
            fixed.add(variable.name)
            body.variables.append(replace(variable, name=prefix + variable.name))
    return fixed, framed


def _return_to_site(body: Body, kept: Kept, returns: list[int]) -> None:
    """Let a kept function's returns, which are branches by now, go to where the function was called."""
    shared: list[int] = []
    for block in returns:
        last = body.blocks[block][-1] if body.blocks[block] else None
        if last is not None and last.opcode == "bra.uni" and not last.operands and last.guard is None:
            back = replace(last, opcode="brx.idx", operands=(Register(kept.back), Symbol("[sites]")))
            body.blocks[block][-1] = back
        else:  # under a predicate: it takes a block that only returns
            shared.append(block)
    if shared:
        block = body.open_block(kept.prefix)
        origin = next((i for b in shared for i in reversed(body.blocks[b])), Instruction("ret", ()))
        operands = (Register(kept.back), Symbol("[sites]"))
        body.blocks[block] = [
            replace(origin, opcode="brx.idx", operands=operands, guard=None, guard_negated=False)
        ]
        for before in shared:
            body.successors[before] = [block, *body.successors[before]]


class _Copy(NamedTuple):
    """A function as it is emitted: how its names change, and whose part it is."""

    function: Function
    names: _Names
    kept: Kept | None


@dataclass(slots=True)
class _Names:
    """Renames one copy's registers and local variables; those in `framed` lie in the frame of `kept`."""

    prefix: str
    local: set[str]
    framed: dict[str, int]
    kept: Kept | None

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
            case Symbol(name, offset) if name in self.framed:
                return self.in_frame(name, offset)
            case Symbol(name, offset):
                return Symbol(self.prefix + name, offset) if name in self.local else operand
            case Address(Symbol(name, start), offset, _) if name in self.framed:
                return Address(self.in_frame(name, 0), start + offset)
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

    def in_frame(self, name: str, offset: int) -> Register:
        """The register that holds the address of a variable of this activation, plus `offset`."""
        assert self.kept is not None, "Only kept functions have frames."
        register = f"{self.prefix}[&{name}+{offset}]"
        self.kept.places[register] = self.framed[name] + offset
        return Register(register)


def _is_parameter(instruction: Instruction) -> bool:
    return instruction.parts[0] in ("ld", "st") and "param" in instruction.parts


def _place(prefix: str, name: str, offset: int) -> str:
    """The register that stands for `offset` of a call's parameter."""
    return f"{prefix}[{name}+{offset}]"


def _returned(number: int, offset: int, size: int) -> str:
    """The register in which kept functions leave `size` bytes at `offset` of a result."""
    return f"[returned {number}+{offset}:{size}]"


def _parameter_moves(instruction: Instruction, copy: _Copy, body: Body) -> list[Instruction] | None:
    """``ld.param``/``st.param`` of a call's parameter as moves; None for the kernel's own parameters."""
    is_load = instruction.parts[0] == "ld"
    address = instruction.operands[1 if is_load else 0]
    assert isinstance(address, Address)
    if not isinstance(address.base, Symbol):
        return None
    name, prefix = address.base.name, copy.names.prefix
    if not prefix and any(p.name == name for p in copy.function.parameters):
        return None
    is_own = copy.kept is not None and copy.kept.prefix == prefix
    returns = [v.name for v in copy.function.returns] if is_own and not is_load else []
    type_ = instruction.parts[-1]
    value = instruction.operands[0 if is_load else 1]
    items = value.items if isinstance(value, Vector) else (value,)
    moves = []
    for i, item in enumerate(items):
        offset = address.base.offset + address.offset + i * size_of(type_)
        place = _place(prefix, name, offset)
        if name in returns:
            place = _returned(returns.index(name), offset, size_of(type_))
        body.registers.setdefault(place, type_)
        target, source = (item, Register(place)) if is_load else (Register(place), item)
        moves.append(replace(instruction, opcode=f"mov.{_bits(type_)}", operands=(target, source)))
    return moves


def _bits(type_: str) -> str:
    """The type that a move of a parameter's bytes uses: a byte travels in a 16-bit register."""
    return "b16" if type_.endswith("8") and size_of(type_) == 1 else type_


# ---- calls ---------------------------------------------------------------------------------------

LAUNCH = ("cudaLaunchDevice", "cudaGetParameterBuffer", "__cudaCDP2")  # how a kernel launches another one


def _why_not(name: str) -> str:
    """Why a function that a module only declares cannot be called."""
    if name.startswith(LAUNCH):
        return "Kernels that launch kernels do not run here: launch them from the host."
    return "This device function has no PTX of its own."


def _call(whole: _Whole, copy: _Copy, call: Instruction, current: int) -> int:
    """Append a call to block `current`; returns the block that goes on after it."""
    body, names = whole.body, copy.names
    if call.guard is not None:
        raise _refused(whole, call, "A call under a predicate.")
    results, target, arguments, _ = taken_apart(call)
    reached = whole.graph.callees(copy.function, call)
    if isinstance(target, Register) or any(name in body.kept for name in reached):
        return _call_kept(body, copy, call, [body.kept[name] for name in reached], current)
    if not reached:
        raise _refused(whole, call, "This device function has no PTX of its own.")
    callee = whole.module.functions[reached[0]]
    if callee.name in HOST_CALLS:
        body.blocks[current].append(_host_call(body, names.prefix, callee, call, results, arguments))
        return current
    if callee.extern or not callee.blocks:
        named = replace(call, opcode=f"call {callee.name}")
        raise _refused(whole, named, _why_not(callee.name))
    inner = f"{names.prefix}{callee.name}#{len(body.blocks)}:"
    for argument, parameter in zip(arguments, callee.parameters, strict=True):
        _pass(argument, names.prefix, parameter, inner, call, body, current)
    first, returns = _emit(whole, callee, inner, copy.kept)
    body.successors[current] = [first]
    after = body.open_block(names.prefix)
    for block in returns:
        body.successors[block] = [after, *body.successors[block]]
    if not callee.returns:  # numba expects a status even of a void C function, and looks at none
        _leave_unset(results, names.prefix, body)
    for result, returned in zip(results, callee.returns, strict=bool(callee.returns)):
        _hand_back(result, names.prefix, returned, inner, call, body, after)
    return after


def _refused(whole: _Whole, call: Instruction, hint: str) -> UnsupportedInstruction:
    return UnsupportedInstruction(call.opcode, whole.entry, call.location, call.line, hint)


def _host_call(
    body: Body,
    prefix: str,
    callee: Function,
    call: Instruction,
    results: Sequence[Operand],
    arguments: Sequence[Operand],
) -> Instruction:
    """``call.NAME`` of what the simulator does itself; its operands are registers."""
    places: list[Operand] = [Register(_place(prefix, a.name, 0)) for a in arguments if isinstance(a, Symbol)]
    if callee.name == "malloc":
        (pointer,) = (_place(prefix, r.name, 0) for r in results if isinstance(r, Symbol))
        body.registers[pointer] = "b64"
        places.insert(0, Arguments((Register(pointer),)))
    else:
        _leave_unset(results, prefix, body)
    return replace(call, opcode=f"call.{callee.name}", operands=tuple(places))


def _call_kept(body: Body, copy: _Copy, call: Instruction, callees: list[Kept], current: int) -> int:
    """Make a site of a call of functions that keep their bodies."""
    results, target, arguments, _ = taken_apart(call)
    prefix = copy.names.prefix
    given = [list(_handed_over(body, prefix, arguments, kept)) for kept in callees]
    returned = list(_handed_back(body, copy, results))
    pointer = prefix + target.name if isinstance(target, Register) else ""
    after = body.open_block(prefix)
    site = Site(len(body.sites), current, after, call, copy.kept, tuple(callees), pointer, given, returned)
    body.sites.append(site)
    if pointer:
        body.registers[site.target] = "b32"
    body.successors[current] = [after]  # until all are known
    return after


def _handed_over(body: Body, prefix: str, arguments: Sequence[Operand], kept: Kept) -> Iterator[Move]:
    for argument, parameter in zip(arguments, kept.function.parameters, strict=True):
        if isinstance(argument, Symbol):
            for offset in _offsets(body, prefix, argument.name):
                source = _place(prefix, argument.name, offset)
                target = _place(kept.prefix, parameter.name, offset)
                body.registers.setdefault(target, body.registers[source])
                yield Move(target, Register(source))
        else:
            target = _place(kept.prefix, parameter.name, 0)
            body.registers.setdefault(target, parameter.type)
            is_register = isinstance(argument, Register)
            yield Move(target, Register(prefix + argument.name) if is_register else argument)  # type: ignore[union-attr]


def _handed_back(body: Body, copy: _Copy, results: Sequence[Operand]) -> Iterator[Move]:
    """What a site gets from the registers in which kept functions leave their results."""
    prefix = copy.names.prefix
    for number, result in enumerate(results):
        if isinstance(result, Register):
            type_ = body.registers[prefix + result.name]
            source = _returned(number, 0, size_of(type_))
            body.registers.setdefault(source, type_)
            yield Move(prefix + result.name, Register(source))
            continue
        assert isinstance(result, Symbol)
        for offset, type_ in _loaded(copy.function, result.name).items():
            source, target = _returned(number, offset, size_of(type_)), _place(prefix, result.name, offset)
            body.registers.setdefault(source, type_)
            body.registers.setdefault(target, type_)
            yield Move(target, Register(source))


def _loaded(function: Function, name: str) -> dict[int, str]:
    """Where `function` loads from a parameter, and as which types."""
    found: dict[int, str] = {}
    for block in function.blocks:
        for instruction in block.instructions:
            if instruction.parts[0] != "ld" or "param" not in instruction.parts:
                continue
            value, address = instruction.operands[:2]
            base = address.base if isinstance(address, Address) else None
            if isinstance(address, Address) and isinstance(base, Symbol) and base.name == name:
                type_ = instruction.parts[-1]
                start = base.offset + address.offset
                for i in range(len(value.items) if isinstance(value, Vector) else 1):
                    found[start + i * size_of(type_)] = type_
    return found


def _finish(body: Body) -> None:
    """Now that all functions are there: the registers that each site saves, and where lanes go."""
    for kept in body.kept.values():
        body.registers.update(dict.fromkeys(kept.places, "b64"))
    for site in body.sites:
        reads = [move.source for moves in site.given for move in moves if isinstance(move.source, Register)]
        pointer = [Register(site.pointer)] if site.pointer else []
        body.blocks[site.block].append(_end_of_call(site, "push", (), [*pointer, *reads]))
        body.blocks[site.after].insert(0, _end_of_call(site, "pop", _targets(site.results), ()))
    lives = live_registers(
        Function(
            "",
            True,
            registers=body.registers,
            blocks=tuple(
                BasicBlock(index, "", tuple(block), tuple(successors))
                for index, (block, successors) in enumerate(zip(body.blocks, body.successors, strict=True))
            ),
        )
    )
    for site in body.sites:
        if site.caller is not None:
            start = site.caller.prefix
            site.saved = tuple(sorted(name for name in lives[site.after] if name.startswith(start)))
        _complete(body, site)
    for block, instructions in enumerate(body.blocks):
        if instructions and instructions[-1].operands[1:] == (Symbol("[sites]"),):
            body.successors[block] = [site.after for site in body.sites]
    frames = FIRST_FRAMES * max(kept.frame_bytes for kept in body.kept.values()) if body.kept else 0
    if frames:
        body.variables.append(Variable(FRAMES, "local", "b8", frames, 16, is_array=True))


def _complete(body: Body, site: Site) -> None:
    """Give both ends of a call all the registers that they read and write."""
    saved = [Register(name) for name in site.saved]
    writes = [register for moves in site.given for register in _targets(moves)]
    writes += [Register(name) for kept in site.callees for name in (kept.back, *kept.places)]
    writes += [Register(site.target)] if site.pointer else []
    push, pop = body.blocks[site.block][-1], body.blocks[site.after][0]
    body.blocks[site.block][-1] = _end_of_call(site, "push", writes, [*saved, *_items(push)])
    sources = [move.source for move in site.results]
    body.blocks[site.after][0] = _end_of_call(site, "pop", [*saved, *_targets(site.results)], sources)
    assert pop.opcode == "call.pop"
    if site.callees:
        body.successors[site.block] = [kept.first for kept in site.callees]


def _targets(moves: Iterable[Move]) -> list[Register]:
    return [Register(move.target) for move in moves]


def _items(end: Instruction) -> Sequence[Operand]:
    last = end.operands[-1]
    assert isinstance(last, Arguments)
    return last.items


def _end_of_call(site: Site, which: str, writes: Sequence[Operand], reads: Sequence[Operand]) -> Instruction:
    operands = (Arguments(tuple(writes)), Immediate(site.number), Arguments(tuple(reads)))
    return replace(site.call, opcode=f"call.{which}", operands=operands)


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
