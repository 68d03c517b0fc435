"""A parsed kernel made ready to run: registers numbered, operands bound, blocks cut where lanes may have to
wait.

Decoding happens once per kernel. What a run changes lives in `run.Run`; a program is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpulab.simulator.ptx import (
    Address,
    Immediate,
    Instruction,
    Module,
    Negated,
    Operand,
    Register,
    Special,
    Symbol,
    Variable,
    Vector,
    reads,
    writes,
)

from .errors import UnsupportedInstruction
from .inline import Body, flatten
from .operations import flops, makes_float, opcode
from .types import BOOL, I64, REGISTER_DTYPES, UNSIGNED, size_of

if TYPE_CHECKING:
    from .run import Run

Step = Callable[["Run"], None]
Getter = Callable[[list[np.ndarray]], np.ndarray]

# Where lanes may have to wait for others a segment of its own begins.
MEETING = frozenset({"bar", "barrier", "shfl", "vote", "match", "redux", "elect"})
JUMPS = frozenset({"bra", "brx", "ret", "exit", "trap"})
CARRY = "%cc"
CLOCKS = ("%clock", "%globaltimer")


@dataclass(slots=True)
class Segment:
    """Instructions first … stop-1, always run together. `kind` is plain, barrier or warp.

    `end` says what follows: ("next", s), ("branch", slot, negated, taken, other), ("exit",), ("trap",),
    ("table", slot, targets), ("endless",). `live` has a bit for each register slot that
    a lane waiting here still needs.
    """

    first: int
    stop: int
    kind: str = "plain"
    steps: list[Step] = field(default_factory=list)
    end: tuple = ("exit",)
    live: int = 0
    looks: bool = False  # may wait here for what another thread does to memory
    meet: Any = None  # what a barrier or warp operation does; see engine and meetings


@dataclass(slots=True)
class Program:
    """A kernel that `simt.launch` runs.

    `instructions` is the inlined body in order; events and counts use its indices. `slots` are the initial
    contents of the register file, `parameters` the layout of the argument buffer as (name, offset, bytes).
    """

    name: str
    display_name: str
    module: Module
    instructions: tuple[Instruction, ...]
    segments: list[Segment]
    dtypes: list[np.dtype]
    constants: list[tuple[int, np.ndarray]]
    specials: list[tuple[int, str]]
    symbols: list[tuple[int, str, int]]
    parameter_slots: list[tuple[int, int, np.dtype]]
    parameters: tuple[tuple[str, int, int], ...]
    parameter_bytes: int
    shared_bytes: int
    local_bytes: int
    shared_variables: dict[str, tuple[int, int]]  # offset and bytes (0 for dynamic shared memory)
    dynamic_shared: bool
    contended: bool  # has compare-and-swap loops: run fewer lanes at once
    timed: bool  # reads a clock
    flops: tuple[float, ...]  # floating-point operations of one lane, for each instruction
    ordered: bool  # blocks may talk to each other: run chunks in order
    slots: dict[str, int]  # of the registers, by name
    local_variables: dict[str, int]  # offset in a thread's local memory
    prefixes: tuple[str, ...]  # what stands before the names in each instruction's function

    @property
    def syncs_grid(self) -> bool:
        """Whether it waits for the whole grid, at a barrier that the driver keeps for it."""
        return any(name in ("%envreg1", "%envreg2") for _, name in self.specials)

    def is_load(self, index: int) -> bool:
        return self.instructions[index].parts[0] in ("ld", "ldu")


def load(
    module: Module,
    entry: str | None = None,
    display_name: str = "",
    stops: Collection[int] | None = None,
) -> Program:
    """Make kernel `entry` of `module` ready (the only kernel by default).

    With `stops` a segment begins at the instructions on these lines of the PTX text, and no register is ever
    left with garbage, so that an observer can look there at a thread's registers. Raises
    `UnsupportedInstruction` for an instruction that the simulator does not know, KeyError for an unknown
    entry.
    """
    name = entry or module.entries[0]
    return _Decoder(module, name, display_name or name).decode(stops)


class _Decoder:
    """Collects slots while the body is translated; gone when the program is ready."""

    def __init__(self, module: Module, entry: str, display_name: str):
        self.module, self.entry, self.display_name = module, entry, display_name
        self.body: Body = flatten(module, entry)
        self.slots: dict[str, int] = {}
        self.dtypes: list[np.dtype] = []
        self.constants: dict[tuple[str, bytes], int] = {}
        self.constant_values: list[tuple[int, np.ndarray]] = []
        self.specials: dict[str, int] = {}
        self.symbol_slots: dict[tuple[str, int], int] = {}
        self.parameter_slots: dict[tuple[int, np.dtype], int] = {}
        self.parameters = _parameter_layout(module.functions[entry].parameters)
        self.kernel_parameters = {name: offset for name, offset, _ in self.parameters}
        self.shared_variables, self.shared_bytes, self.dynamic_shared = _shared_layout(module, self.body)
        self.shared = {name: offset for name, (offset, _) in self.shared_variables.items()}
        self.local, self.local_bytes = _local_layout(self.body)
        for register, type_ in self.body.registers.items():
            self.slots[register] = self._new_slot(REGISTER_DTYPES.get(type_, I64))
        self.computed = _computed_floats(self.body)
        self.read = {
            name for block in self.body.blocks for instruction in block for name in reads(instruction)
        }

    # ---- slots -----------------------------------------------------------------------------------

    def _new_slot(self, dtype: np.dtype) -> int:
        self.dtypes.append(dtype)
        return len(self.dtypes) - 1

    def slot(self, register: str) -> int:
        if register not in self.slots:  # the carry flag, or a register that was never declared
            self.slots[register] = self._new_slot(BOOL if register == CARRY else I64)
        return self.slots[register]

    def constant(self, value: np.ndarray) -> int:
        key = (value.dtype.str, value.tobytes())
        if key not in self.constants:
            self.constants[key] = self._new_slot(value.dtype)
            self.constant_values.append((self.constants[key], value.reshape(1, 1)))
        return self.constants[key]

    def special(self, name: str) -> int:
        if name not in self.specials:
            wide = name in ("%clock64", "%globaltimer", "%gridid")
            self.specials[name] = self._new_slot(
                BOOL if name == "%is_explicit_cluster" else I64 if wide else np.dtype("i4")
            )
        return self.specials[name]

    def symbol(self, name: str, offset: int) -> int:
        """The slot with the address of a variable plus `offset`."""
        if name in self.shared:
            return self.constant(np.array(self.shared[name] + offset, np.int64))
        if name in self.local:
            return self.constant(np.array(self.local[name] + offset, np.int64))
        key = (name, offset)
        if key not in self.symbol_slots:
            self.symbol_slots[key] = self._new_slot(I64)
        return self.symbol_slots[key]

    def parameter(self, offset: int, dtype: np.dtype) -> int:
        key = (offset, dtype)
        if key not in self.parameter_slots:
            self.parameter_slots[key] = self._new_slot(dtype)
        return self.parameter_slots[key]

    # ---- operands --------------------------------------------------------------------------------

    def source(
        self, operand: Operand, dtype: np.dtype, canonical: bool = False
    ) -> tuple[int, Callable | None]:
        """(slot, function that turns its content into `dtype`, or None where it has that type already).

        `canonical` makes every NaN that arithmetic may have left in a float register PTX's own; so does
        reading the register's bits as an integer.
        """
        match operand:
            case Immediate():
                return self.constant(immediate(operand, dtype)), None
            case Register(name):
                slot = self.slot(name)
            case Negated(Register(name)):
                return self.slot(name), np.logical_not
            case Special(name):
                slot = self.special(name)
            case Symbol(name, offset):
                slot = self.symbol(name, offset)
            case _:
                raise UnsupportedInstruction(f"operand {operand}", self.display_name)
        have = self.dtypes[slot]
        nans = (
            isinstance(operand, Register)
            and operand.name in self.computed
            and have.kind == "f"
            and have.itemsize < 8
        )
        if nans and (canonical or dtype.kind != "f"):
            from .floats import canonical as clean

            if have == dtype:
                return slot, clean
            return slot, lambda x: _viewed(clean(x), dtype)
        if have == dtype:
            return slot, None
        return slot, lambda x: _viewed(x, dtype)

    def address(self, operand: Operand, space: str) -> Callable[[list[np.ndarray]], np.ndarray]:
        """A function of the registers: the int64 addresses that ``[base+offset]`` means in `space`."""
        assert isinstance(operand, Address)
        offset = np.int64(operand.offset)
        if isinstance(operand.base, Symbol):
            slot = self.symbol(operand.base.name, operand.base.offset + operand.offset)
            return lambda registers: registers[slot]
        if operand.base is None:
            value = np.full((1, 1), offset)
            return lambda registers: value
        slot = self.slot(operand.base.name)
        narrow = self.dtypes[slot].itemsize == 4
        if narrow:
            return lambda registers: registers[slot].view(np.uint32).astype(np.int64) + offset
        if operand.offset == 0:
            return lambda registers: registers[slot]
        return lambda registers: registers[slot] + offset

    def destination(self, operand: Operand) -> int | None:
        """The slot to write, None for the sink."""
        if not isinstance(operand, Register):
            raise UnsupportedInstruction(f"destination {operand}", self.display_name)
        return None if operand.name == "_" else self.slot(operand.name)

    # ---- the whole -------------------------------------------------------------------------------

    def decode(self, stops: Collection[int] | None) -> Program:
        from .table import make_step  # which imports this module

        instructions: list[Instruction] = []
        segments: list[Segment] = []
        starts: list[int] = []  # segment in which each block of the body begins
        lasts: list[int] = []  # segment in which it ends
        prefixes: list[str] = []
        for block, prefix in zip(self.body.blocks, self.body.prefixes, strict=True):
            starts.append(len(segments))
            for piece in _pieces(block, stops or ()):
                first = len(instructions)
                prefixes += [prefix] * len(piece)
                segments.append(Segment(first, first + len(piece), _kind(piece)))
                instructions.extend(piece)
            lasts.append(len(segments) - 1)
        for segment in segments:
            segment.looks = any(map(_looks, instructions[segment.first : segment.stop]))
            for index in range(segment.first, segment.stop):
                instruction = instructions[index]
                op = opcode(instruction)
                if op.name in JUMPS:
                    continue
                step = make_step(self, op, index, segment)
                if step is not None:
                    segment.steps.append(step)
        for number, segment in enumerate(segments):
            segment.end = ("next", number + 1) if number + 1 < len(segments) else ("exit",)
        for number, last in enumerate(lasts):
            segment = segments[last]
            targets = [starts[s] for s in self.body.successors[number]]
            final = instructions[segment.stop - 1] if segment.stop > segment.first else None
            segment.end = self._end(final, targets)
            if segment.end == ("next", last) and not segment.steps:  # an empty loop: nobody ever leaves it
                segment.end = ("endless",)
        _find_live(self, instructions, segments)
        if stops is not None:
            for segment in segments:
                segment.live = (1 << len(self.dtypes)) - 1
        return Program(
            name=self.entry,
            display_name=self.display_name,
            module=self.module,
            instructions=tuple(instructions),
            segments=segments,
            dtypes=self.dtypes,
            constants=self.constant_values,
            specials=[(slot, name) for name, slot in self.specials.items()],
            symbols=[(slot, name, offset) for (name, offset), slot in self.symbol_slots.items()],
            parameter_slots=[(slot, offset, dtype) for (offset, dtype), slot in self.parameter_slots.items()],
            parameters=self.parameters,
            parameter_bytes=self.parameters[-1][1] + self.parameters[-1][2] if self.parameters else 0,
            shared_bytes=self.shared_bytes,
            local_bytes=self.local_bytes,
            shared_variables=self.shared_variables,
            dynamic_shared=self.dynamic_shared,
            contended=any("cas" in i.parts for i in instructions if i.parts[0] == "atom"),
            flops=tuple(map(flops, instructions)),
            timed=any(
                isinstance(o, Special) and o.name.startswith(CLOCKS) for i in instructions for o in i.operands
            ),
            ordered=any(segment.looks for segment in segments),
            slots=self.slots,
            local_variables=self.local,
            prefixes=tuple(prefixes),
        )

    def _end(self, final: Instruction | None, targets: list[int]) -> tuple:
        if final is None or final.parts[0] not in JUMPS:
            return ("next", targets[0]) if targets else ("exit",)
        kind = final.parts[0]
        if kind == "brx":
            slot, _ = self.source(final.operands[0], np.dtype("i4"))
            return ("table", slot, tuple(targets))
        if kind == "bra" and final.guard is None:
            return ("next", targets[0])
        if final.guard is None:
            return ("trap",) if kind == "trap" else ("exit",)
        guard = self.slot(final.guard.name)
        if kind == "bra":
            other = targets[1] if len(targets) > 1 else None
            return ("branch", guard, final.guard_negated, targets[0], other)
        return (
            "branch",
            guard,
            final.guard_negated,
            "trap" if kind == "trap" else None,
            targets[0] if targets else None,
        )


def _viewed(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if x.dtype.itemsize == dtype.itemsize and dtype.kind != "b" and x.dtype.kind != "b":
        return x.view(dtype)
    if dtype.kind == "f":  # a 16-bit float in a wider register
        return x.astype(UNSIGNED[dtype.itemsize]).view(dtype)
    return x.astype(dtype)


def immediate(operand: Immediate, dtype: np.dtype) -> np.ndarray:
    """A literal as a 0-d array of `dtype`, bit for bit."""
    if dtype.kind == "b":
        return np.array(bool(operand.value))
    if dtype.kind == "f" and operand.bits is None:
        return np.array(operand.value, dtype)
    if operand.bits is not None:
        bits = operand.bits
        literal = {"f32": 4, "f64": 8}.get(operand.kind, 8)
        if dtype.kind == "f" and literal != dtype.itemsize:
            return np.array(operand.value, dtype)
    else:
        bits = int(operand.value)
    kept = bits & ((1 << dtype.itemsize * 8) - 1)
    return np.array(kept, UNSIGNED[dtype.itemsize]).view(dtype)


LOOKING = frozenset({"atom", "red", "membar", "fence", "nanosleep", "mbarrier"})


def is_volatile(instruction: Instruction) -> bool:
    """Whether another thread may change what this load sees, by the kernel's own word."""
    if instruction.parts[0] == "mbarrier":
        return instruction.parts[1] in ("test_wait", "try_wait")
    return instruction.parts[0] == "ld" and bool({"volatile", "acquire", "relaxed"} & set(instruction.parts))


def _looks(instruction: Instruction) -> bool:
    """Whether what another thread has done to memory may show here."""
    return instruction.parts[0] in LOOKING or is_volatile(instruction)


def _pieces(block: list[Instruction], stops: Collection[int]) -> Iterable[list[Instruction]]:
    """Cut before and after every instruction at which lanes meet, and before those on the lines `stops`."""
    piece: list[Instruction] = []
    for instruction in block:
        if piece and instruction.line in stops:
            yield piece
            piece = []
        if instruction.parts[0] in MEETING:
            if piece:
                yield piece
            yield [instruction]
            piece = []
        else:
            piece.append(instruction)
    if piece or not block or block[-1].parts[0] in MEETING:
        yield piece


def _kind(piece: list[Instruction]) -> str:
    if not piece or piece[0].parts[0] not in MEETING:
        return "plain"
    if piece[0].parts[0] in ("bar", "barrier"):
        return "warp" if "warp" in piece[0].parts else "barrier"
    return "warp"


def _find_live(decoder: _Decoder, instructions: list[Instruction], segments: list[Segment]) -> None:
    """Backward data flow over segments; bit r of `live` belongs to register slot r."""
    uses, kills = [], []
    for segment in segments:
        used = killed = 0
        for index in range(segment.first, segment.stop):
            instruction = instructions[index]
            for name in reads(instruction):
                bit = 1 << decoder.slot(name)
                if not killed & bit:
                    used |= bit
            if instruction.guard is None:
                for name in writes(instruction):
                    killed |= 1 << decoder.slot(name)
            else:
                for name in writes(instruction):  # lanes without the guard keep the old value
                    if not killed & (1 << decoder.slot(name)):
                        used |= 1 << decoder.slot(name)
        uses.append(used)
        kills.append(killed)
    changed = True
    while changed:
        changed = False
        for number in range(len(segments) - 1, -1, -1):
            after = 0
            for target in successors(segments[number]):
                after |= segments[target].live
            live = uses[number] | (after & ~kills[number])
            if live != segments[number].live:
                segments[number].live = live
                changed = True


def successors(segment: Segment) -> list[int]:
    """Segments that may follow."""
    match segment.end:
        case ("next", target):
            return [target]
        case ("branch", _, _, taken, other):
            return [t for t in (taken, other) if isinstance(t, int)]
        case ("table", _, targets):
            return list(targets)
    return []


def _computed_floats(body: Body) -> set[str]:
    """Registers in which arithmetic may have left a NaN. Loaded values and their copies keep their bits."""
    computed: set[str] = set()
    copies: list[tuple[str, list[str]]] = []
    for block in body.blocks:
        for instruction in block:
            if instruction.parts[0] in ("mov", "selp", "shfl"):
                copies += [(name, list(reads(instruction))) for name in writes(instruction)]
            elif makes_float(instruction):
                computed.update(writes(instruction))
    grown = True
    while grown:
        grown = False
        for name, sources in copies:
            if name not in computed and any(source in computed for source in sources):
                computed.add(name)
                grown = True
    return computed


def _round_up(n: int, align: int) -> int:
    return (n + align - 1) // max(align, 1) * max(align, 1)


def _bytes_of(variable: Variable) -> int:
    return size_of(variable.type) * variable.count


def _parameter_layout(parameters: tuple[Variable, ...]) -> tuple[tuple[str, int, int], ...]:
    """(name, offset, bytes) of each kernel parameter, as the launch packs them."""
    layout, at = [], 0
    for parameter in parameters:
        at = _round_up(at, max(parameter.align, size_of(parameter.type)))
        layout.append((parameter.name, at, _bytes_of(parameter)))
        at += _bytes_of(parameter)
    return tuple(layout)


def _shared_layout(module: Module, body: Body) -> tuple[dict[str, tuple[int, int]], int, bool]:
    """((offset, bytes) of each shared variable, static bytes, whether dynamic shared memory is used)."""
    named = {
        symbol for block in body.blocks for instruction in block for symbol in _symbols(instruction.operands)
    }
    variables = [v for v in module.variables.values() if v.space == "shared" and v.name in named]
    variables += [v for v in body.variables if v.space == "shared"]
    places: dict[str, tuple[int, int]] = {}
    at = 0
    for variable in variables:
        if variable.count:
            at = _round_up(at, max(variable.align, size_of(variable.type)))
            places[variable.name] = at, _bytes_of(variable)
            at += _bytes_of(variable)
    dynamic = [v for v in variables if not v.count]
    start = _round_up(at, max((max(v.align, 1) for v in dynamic), default=1))
    for variable in dynamic:
        places[variable.name] = start, 0
    return places, start if dynamic else at, bool(dynamic)


def _symbols(operands: Iterable[Operand]) -> Iterable[str]:
    for operand in operands:
        if isinstance(operand, Symbol):
            yield operand.name
        elif isinstance(operand, Address) and isinstance(operand.base, Symbol):
            yield operand.base.name
        elif isinstance(operand, Vector):
            yield from _symbols(operand.items)


def _local_layout(body: Body) -> tuple[dict[str, int], int]:
    places: dict[str, int] = {}
    at = 0
    for variable in body.variables:
        if variable.space == "local":
            at = _round_up(at, max(variable.align, 16))
            places[variable.name] = at
            at += _bytes_of(variable)
    return places, at
