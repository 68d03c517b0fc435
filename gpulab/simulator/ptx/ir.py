"""The shape of a parsed PTX module: plain frozen records, no behaviour of a machine.

Names follow the PTX ISA document. A module holds functions and module variables; a function
holds basic blocks; a block holds instructions; an instruction holds operands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, wraps
from typing import TypeVar

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Register:
    """A virtual register such as ``%rd4``; its declared type is in ``Function.registers``."""

    name: str


@dataclass(frozen=True, slots=True)
class Special:
    """A special register such as ``%tid.x`` or ``%laneid``."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal. `bits` is set for ``0f…``/``0d…`` literals and holds their exact bit pattern.

    `kind` is ``"int"``, ``"f32"`` or ``"f64"``; `value` is a Python int or float.
    """

    value: int | float
    kind: str = "int"
    bits: int | None = None

    def __eq__(self, other: object) -> bool:
        # By the bits where there are some: they tell -0.0 from 0.0 and find a NaN equal to itself.
        return isinstance(other, Immediate) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, int | float]:
        return self.kind, self.value if self.bits is None else self.bits


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name of a variable, function, parameter or label, with a byte offset (``name+16``)."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """A memory operand ``[base+offset]``; `offset` in bytes. `base` None means absolute.

    `coordinates` is what follows in ``[tensor, {x, y}]`` of texture and tensor operations.
    """

    base: Register | Symbol | None
    offset: int = 0
    coordinates: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Vector:
    """A brace list ``{a, b, c, d}``. The sink ``_`` is ``Register("_")``."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Arguments:
    """A parenthesised list in a call: ``(retval0)`` or ``(param0, param1)``."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two destinations written ``%p1|%p2`` (setp, shfl, match)."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Negated:
    """A predicate operand written ``!%p1``."""

    register: Register


Operand = Register | Special | Immediate | Symbol | Address | Vector | Arguments | Pair | Negated


@dataclass(frozen=True, slots=True)
class Location:
    """A place in the learner's source; `line` counts from 1."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Instruction:
    """One PTX instruction.

    `opcode` is the whole dotted name (``ld.global.v4.f32``); `parts` is it split at the dots.
    `guard` is the predicate register of ``@%p``/``@!%p``; `line` is the line in the PTX text
    (from 1); `location` is what the nearest ``.loc`` before it says, None before the first. A ``.loc`` with
    line 0 ("no line") changes nothing: the instruction keeps the last line that the function named. Nor does
    one within inline assembly: all of it is where the assembly stands.
    """

    opcode: str
    operands: tuple[Operand, ...]
    guard: Register | None = None
    guard_negated: bool = False
    line: int = 0
    location: Location | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        return _split(self.opcode)


@cache
def _split(opcode: str) -> tuple[str, ...]:
    return tuple(opcode.split("."))


def by_opcode(question: Callable[[Instruction], Answer]) -> Callable[[Instruction], Answer]:
    """A function of an instruction whose opcode alone decides: `question` is asked once for each opcode.

    >>> by_opcode(lambda instruction: "f64" in instruction.parts)(Instruction("add.rn.f64", ()))
    True
    """
    answers: dict[str, Answer] = {}

    @wraps(question)
    def answer(instruction: Instruction) -> Answer:
        opcode = instruction.opcode
        if opcode not in answers:
            answers[opcode] = question(instruction)
        return answers[opcode]

    return answer


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable or parameter.

    `space` is ``global``, ``const``, ``shared``, ``local`` or ``param``; `type` the PTX type without the
    dot (``f32``, ``b8``); `count` the number of elements (1 for a scalar, 0 for an unsized ``extern`` array);
    `align` in bytes; `initial` the bytes of the initialiser, or None; `pointers` the places inside it that
    hold the address of another symbol, as (byte offset, symbol).
    """

    name: str
    space: str
    type: str
    count: int = 1
    align: int = 1
    initial: bytes | None = None
    extern: bool = False
    pointers: tuple[tuple[int, Symbol], ...] = ()
    is_array: bool = False


@dataclass(frozen=True, slots=True)
class BasicBlock:
    """Instructions with one entry (the first) and one exit (the last); there is at least one.

    `label` is empty for a block that no branch names.
    `index` is the position in layout order; `successors` are indices of blocks: for a conditional branch
    (taken, fallen through), for an unconditional one (target,), empty after ret/exit/trap.
    """

    index: int
    label: str
    instructions: tuple[Instruction, ...]
    successors: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """An ``.entry`` (kernel) or ``.func``. `registers` maps each register in use to its type without the dot.

    Names are unique within a function: one declared again between inner braces is renamed (``param0$3``);
    `variables` holds these too. Where the text falls off the end of the function there is a ``ret``.
    `branch_targets` holds the label lists declared with ``.branchtargets`` for ``brx.idx``, `prototypes` the
    text of each ``.callprototype`` that a call through a register names.
    `directives` maps e.g. ``maxntid`` to its numbers. A function without a body is `extern`.
    """

    name: str
    entry: bool
    parameters: tuple[Variable, ...] = ()
    returns: tuple[Variable, ...] = ()
    registers: dict[str, str] = field(default_factory=dict)
    variables: tuple[Variable, ...] = ()
    blocks: tuple[BasicBlock, ...] = ()
    directives: dict[str, tuple[int, ...]] = field(default_factory=dict)
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    extern: bool = False
    prototypes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Module:
    """A whole PTX text.

    `target` is the architecture (``sm_80``); `files` maps the numbers of ``.file`` to paths.
    """

    version: str
    target: str
    files: dict[int, str]
    variables: dict[str, Variable]
    functions: dict[str, Function]

    @property
    def entries(self) -> tuple[str, ...]:
        """Names of the kernels, in the order of the text."""
        return tuple(f.name for f in self.functions.values() if f.entry)


class PtxError(Exception):
    """PTX that cannot be read: what, and where (`line` of the PTX text with its `text`)."""

    def __init__(self, message: str, line: int = 0, text: str = ""):
        super().__init__(f"{message} (PTX line {line}: {text.strip()})" if line else message)
        self.message, self.line, self.text = message, line, text
