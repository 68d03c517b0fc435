"""Operands as slots of the register file.

Registers, literals, special registers, addresses of variables and parameters all become slots, so that a step
only ever reads and writes a list of arrays.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpulab.simulator.ptx import (
    Address,
    Immediate,
    Module,
    Negated,
    Operand,
    Pair,
    Register,
    Special,
    Symbol,
    reads,
    writes,
)

from .errors import UnsupportedInstruction
from .floats import canonical as canonical_nans
from .inline import Body, flatten
from .layouts import local_layout, parameter_layout, shared_layout
from .opcodes import Opcode
from .operations import makes_float
from .program import Constant, Source
from .types import BOOL, I32, I64, REGISTER_DTYPES, UNSIGNED

Array = np.ndarray

CARRY = "%cc"
CLOCKS = ("%clock", "%globaltimer")


class Decoder:
    """Gives slots to one kernel's operands while its instructions become steps; gone when they are ready."""

    def __init__(self, module: Module, entry: str, display_name: str):
        self.module, self.entry, self.display_name = module, entry, display_name
        try:
            self.body: Body = flatten(module, entry)
        except UnsupportedInstruction as error:  # in which the kernel has its name in the PTX
            raise UnsupportedInstruction(
                error.opcode, display_name, error.location, error.line, error.hint
            ) from None
        self.slots: dict[str, int] = {}
        self.dtypes: list[np.dtype] = []
        self.constants: dict[tuple[str, bytes], int] = {}
        self.constant_values: list[Constant] = []
        self.specials: dict[str, int] = {}
        self.symbol_slots: dict[tuple[str, int], int] = {}
        self.shared_slots: dict[int, int] = {}  # by the offset into shared memory
        self.sums: dict[
            tuple[int, int], Callable[[list[Array]], Array]
        ] = {}  # addresses in a slot, by offset
        self.parameter_slots: dict[tuple[int, np.dtype], int] = {}
        self.parameters = parameter_layout(module.functions[entry].parameters)
        self.kernel_parameters = {parameter.name: parameter.offset for parameter in self.parameters}
        self.shared = shared_layout(module, self.body)
        self.local = local_layout(self.body)
        for register, type_ in self.body.registers.items():
            self.slots[register] = self._new_slot(REGISTER_DTYPES.get(type_, I64))
        self.computed = _computed_floats(self.body)
        self.accumulators = _accumulators(self.body)
        self.read = {
            name for block in self.body.blocks for instruction in block for name in reads(instruction)
        }

    def unsupported(self, op: Opcode, hint: str = "") -> UnsupportedInstruction:
        """The fault of an instruction that the simulator cannot run."""
        instruction = op.instruction
        return UnsupportedInstruction(
            instruction.opcode, self.display_name, instruction.location, instruction.line, hint
        )

    # ---- slots -----------------------------------------------------------------------------------

    def _new_slot(self, dtype: np.dtype) -> int:
        self.dtypes.append(dtype)
        return len(self.dtypes) - 1

    def slot(self, register: str) -> int:
        if register not in self.slots:  # the carry flag, or a register that was never declared
            self.slots[register] = self._new_slot(BOOL if register == CARRY else I64)
        return self.slots[register]

    def constant(self, value: Array) -> int:
        key = (value.dtype.str, value.tobytes())
        if key not in self.constants:
            self.constants[key] = self._new_slot(value.dtype)
            self.constant_values.append(Constant(self.constants[key], value.reshape(1, 1)))
        return self.constants[key]

    def special(self, name: str) -> int:
        if name not in self.specials:
            wide = name in ("%clock64", "%globaltimer", "%gridid")
            self.specials[name] = self._new_slot(
                BOOL if name == "%is_explicit_cluster" else I64 if wide else I32
            )
        return self.specials[name]

    def symbol(self, name: str, offset: int) -> int:
        """The slot with the address of a variable plus `offset`."""
        if name in self.shared.variables:
            place = self.shared.variables[name].offset + offset
            if place not in self.shared_slots:
                self.shared_slots[place] = self._new_slot(I64)
            return self.shared_slots[place]
        if name in self.local.offsets:
            return self.constant(np.array(self.local.offsets[name] + offset, np.int64))
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

    def source(self, operand: Operand, dtype: np.dtype, canonical: bool = False) -> Source:
        """Where `operand` is read from as `dtype`.

        `canonical` makes every NaN that arithmetic may have left in a float register PTX's own; so does
        reading the register's bits as an integer.
        """
        match operand:
            case Immediate():
                return Source(self.constant(_immediate(operand, dtype)))
            case Register(name):
                slot = self.slot(name)
            case Negated(Register(name)):
                return Source(self.slot(name), np.logical_not)
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
            if have == dtype:
                return Source(slot, canonical_nans)
            return Source(slot, lambda x: _viewed(canonical_nans(x), dtype))
        if have == dtype:
            return Source(slot)
        return Source(slot, lambda x: _viewed(x, dtype))

    def address(self, operand: Operand) -> Callable[[list[Array]], Array]:
        """A function of the registers: the int64 addresses that ``[base+offset]`` means.

        Addresses that are alike in all blocks remain the same array as long as their base register does. So
        what is known about them need not be worked out again in each iteration of a loop.
        """
        assert isinstance(operand, Address)
        offset = np.int64(operand.offset)
        if isinstance(operand.base, Symbol):
            slot = self.symbol(operand.base.name, operand.base.offset + operand.offset)
            return lambda registers: registers[slot]
        if operand.base is None:
            value = np.full((1, 1), offset)
            return lambda registers: value
        slot = self.slot(operand.base.name)
        if (slot, operand.offset) not in self.sums:
            self.sums[slot, operand.offset] = self._sum(slot, offset)
        return self.sums[slot, operand.offset]

    def _sum(self, slot: int, offset: np.int64) -> Callable[[list[Array]], Array]:
        """A function of the registers: the addresses in a register plus an offset."""
        narrow = self.dtypes[slot].itemsize == 4
        if offset == 0 and not narrow:
            return lambda registers: registers[slot]
        last: tuple[Array | None, Array] = None, np.empty(0, np.int64)

        def moved(registers: list[Array]) -> Array:
            nonlocal last
            base = registers[slot]
            known, address = last  # once, for another thread may launch the same kernel
            if base is not known:
                address = _narrow_sum(base, offset) if narrow else base + offset
                if len(base) == 1:
                    last = base, address
            return address

        return moved

    def destination(self, operand: Operand) -> int | None:
        """The slot to write, None for the sink."""
        if not isinstance(operand, Register):
            raise UnsupportedInstruction(f"destination {operand}", self.display_name)
        return None if operand.name == "_" else self.slot(operand.name)


def _narrow_sum(base: Array, offset: np.int64) -> Array:
    """A 32-bit address plus an offset. With a positive one the sum has 32 bits as well: compilers rely on its
    wrapping around from below 0."""
    unsigned = base.view(np.uint32)
    if offset > 0:
        return (unsigned + np.uint32(offset)).astype(np.int64)
    return unsigned.astype(np.int64) + offset


def targets_of(destination: Operand) -> list[Operand]:
    """The one or two registers of a destination."""
    return [destination.first, destination.second] if isinstance(destination, Pair) else [destination]


def _immediate(operand: Immediate, dtype: np.dtype) -> Array:
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


def _viewed(x: Array, dtype: np.dtype) -> Array:
    if x.dtype.itemsize == dtype.itemsize and dtype.kind != "b" and x.dtype.kind != "b":
        return x.view(dtype)
    if dtype.kind == "f":  # a 16-bit float in a wider register
        return x.astype(UNSIGNED[dtype.itemsize]).view(dtype)
    return x.astype(dtype)


def _accumulators(body: Body) -> frozenset[str]:
    """Registers to which ``wgmma`` adds, and those to which a compiler copies them before they are there."""
    instructions = [instruction for block in body.blocks for instruction in block]
    found = {name for i in instructions if i.opcode.startswith("wgmma.mma_async") for name in writes(i)}
    copies = [(writes(i), reads(i)) for i in instructions if found and i.parts[0] == "mov"]
    grown = bool(found)
    while grown:
        more = {name for written, read in copies if not found.isdisjoint(read) for name in written} - found
        grown = bool(more)
        found |= more
    return frozenset(found)


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
