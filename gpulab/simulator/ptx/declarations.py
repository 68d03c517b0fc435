"""Declarations of variables, parameters and registers, with the bytes that an initialiser gives them."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from math import prod

from .ir import Immediate, Symbol, Variable
from .literals import parse_number, starts_number
from .operands import parse_integer, parse_offset
from .scopes import Scope, declare_register
from .text import error_at, found_at, parse_name, skip_blanks, skip_character, skip_past

SPACES = frozenset({"global", "const", "shared", "local", "param"})
WIDTHS = {
    **{f"{kind}{bits}": bits // 8 for kind in "bus" for bits in (8, 16, 32, 64)},
    **{"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "b128": 16, "f16x2": 4, "bf16x2": 4, "tf32": 4, "pred": 1},
    **{"texref": 8, "samplerref": 8, "surfref": 8},
}

_WORD = re.compile(r"\.(\w+)", re.ASCII)
_RANGE = re.compile(r"<\s*(\d{1,10})\s*>", re.ASCII)
_LARGEST_INITIAL = 1 << 26
_DEEPEST = 8
_PACKS = {"f32": "<f", "f64": "<d"}

# A value of an initialiser, with its place in the nested lists.
_Cell = tuple[tuple[int, ...], Immediate | Symbol]


@dataclass(frozen=True, slots=True)
class _Kind:
    """What stands before the name: ``.align 8 .v2 .f32``."""

    type: str
    lanes: int = 1
    align: int = 0


def parse_variables(
    source: str, position: int, space: str, extern: bool = False
) -> tuple[int, tuple[Variable, ...]]:
    """Variables of one kind, up to and with the semicolon; `position` is after the ``.global``."""
    position, kind = _parse_kind(source, position)
    variables = []
    while True:
        position, variable = _parse_declarator(source, position, space, kind, extern)
        variables.append(variable)
        position = skip_blanks(source, position)
        if not source.startswith(",", position):
            return skip_character(source, position, ";"), tuple(variables)
        position = skip_blanks(source, position + 1)


def parse_parameters(source: str, position: int) -> tuple[int, tuple[Variable, ...]]:
    """``(.param .u64 a, .param .align 8 .b8 b[24])``; `position` is at the opening parenthesis."""
    position = skip_character(source, position, "(")
    parameters: list[Variable] = []
    while not source.startswith(")", position):
        if parameters:
            position = skip_character(source, position, ",")
        start = position
        position, word = parse_word(source, position)
        if word != "param":
            raise error_at(source, start, f"expected `.param` but found `.{word}`")
        position, kind = _parse_kind(source, position)
        position, parameter = _parse_declarator(source, position, "param", kind, False)
        parameters.append(parameter)
        position = skip_blanks(source, position)
    return position + 1, tuple(parameters)


def parse_registers(source: str, position: int, scope: Scope) -> int:
    """``.b32 %r<19>, x;`` into `scope`; `position` is after ``.reg``."""
    position, kind = _parse_kind(source, position)
    if kind.lanes != 1:
        raise error_at(source, position, "registers that are vectors are not supported")
    while True:
        start = position
        position, name = parse_name(source, position)
        match = _RANGE.match(source, skip_blanks(source, position))
        if match:
            if name in scope.ranges:
                raise error_at(source, start, f"`{name}` is declared twice")
            scope.ranges[name] = (int(match.group(1)), kind.type)
            position = match.end()
        elif not declare_register(scope, name, kind.type):
            raise error_at(source, start, f"`{name}` is declared twice")
        position = skip_blanks(source, position)
        if not source.startswith(",", position):
            return skip_character(source, position, ";")
        position = skip_blanks(source, position + 1)


def parse_word(source: str, position: int) -> tuple[int, str]:
    """The ``.word`` at `position`, without its dot, and the place after it and the blanks that follow."""
    position = skip_blanks(source, position)
    match = _WORD.match(source, position)
    if match is None:
        raise error_at(source, position, f"expected a directive but found {found_at(source, position)}")
    return skip_blanks(source, match.end()), match.group(1)


def _parse_kind(source: str, position: int) -> tuple[int, _Kind]:
    type_, lanes, align, pointed_at = "", 1, 0, False
    position = skip_blanks(source, position)
    while source.startswith(".", position):
        start = position
        position, word = parse_word(source, position)
        if word == "align":
            position, number = parse_integer(source, position)
            position = skip_blanks(source, position)
            if number < 1 or number & (number - 1):
                raise error_at(source, start, f"an alignment must be a power of two, not {number}")
            align = align if pointed_at else number
        elif word == "attribute":
            position = skip_blanks(source, skip_past(source, position, ")"))
        elif word in WIDTHS:
            type_ = word
        elif word in ("v2", "v4", "v8"):
            lanes = int(word[1:])
        elif word == "ptr":
            pointed_at = True  # the space and alignment that follow are those of what the parameter points at
        elif word not in SPACES:
            raise error_at(source, start, f"`.{word}` is not a type")
    if not type_:
        raise error_at(source, position, f"expected a type but found {found_at(source, position)}")
    return position, _Kind(type_, lanes, align or WIDTHS[type_] * lanes)


def _parse_declarator(
    source: str, position: int, space: str, kind: _Kind, extern: bool
) -> tuple[int, Variable]:
    position, name = parse_name(source, position)
    position, sizes = _parse_sizes(source, position)
    position = skip_blanks(source, position)
    shape = sizes if kind.lanes == 1 else (*sizes, kind.lanes)
    initial: bytes | None = None
    pointers: tuple[tuple[int, Symbol], ...] = ()
    if source.startswith("=", position):
        position, shape, initial, pointers = _parse_initial(
            source, skip_blanks(source, position + 1), kind, shape
        )
    variable = Variable(
        name, space, kind.type, prod(shape), kind.align, initial, extern, pointers, bool(shape)
    )
    return position, variable


def _parse_sizes(source: str, position: int) -> tuple[int, tuple[int, ...]]:
    sizes: list[int] = []
    while source.startswith("[", skip_blanks(source, position)):
        position = skip_character(source, position, "[")
        size = 0
        if starts_number(source, position):
            position, size = parse_integer(source, position)
        if size < 0:
            raise error_at(source, position, "an array cannot have less than no elements")
        position = skip_character(source, position, "]")
        sizes.append(size)
    return position, tuple(sizes)


def _parse_initial(
    source: str, position: int, kind: _Kind, shape: tuple[int, ...]
) -> tuple[int, tuple[int, ...], bytes, tuple[tuple[int, Symbol], ...]]:
    """The bytes after ``=``; an array without a size gets the size of its list."""
    start = position
    cells: list[_Cell] = []
    position = _parse_cells(source, position, (), cells)
    if shape and shape[0] == 0:
        shape = (max((place[0] for place, _ in cells if place), default=-1) + 1, *shape[1:])
    width = WIDTHS[kind.type]
    if prod(shape) * width > _LARGEST_INITIAL:
        raise error_at(source, start, "an initialised array of more than 64 MiB")
    data = bytearray(prod(shape) * width)
    pointers = []
    for place, value in cells:
        offset = _cell_offset(place, shape) * width
        if not 0 <= offset < len(data):
            raise error_at(source, start, "the initialiser does not fit its variable")
        if isinstance(value, Symbol):
            pointers.append((offset, value))
        else:
            data[offset : offset + width] = _to_bytes(source, start, value, kind.type)
    return position, shape, bytes(data), tuple(pointers)


def _parse_cells(source: str, position: int, place: tuple[int, ...], cells: list[_Cell]) -> int:
    """Collect the values of one initialiser with their places in the nested lists; returns the end."""
    if not source.startswith("{", position):
        return _parse_cell(source, position, place, cells)
    if len(place) == _DEEPEST:
        raise error_at(source, position, "an initialiser with too many nested lists")
    position = skip_blanks(source, position + 1)
    index = 0
    while not source.startswith("}", position):
        if index:
            position = skip_character(source, position, ",")
        position = skip_blanks(source, _parse_cells(source, position, (*place, index), cells))
        index += 1
    return position + 1


def _parse_cell(source: str, position: int, place: tuple[int, ...], cells: list[_Cell]) -> int:
    if not starts_number(source, position):
        position, symbol = _parse_symbol(source, position)
        cells.append((place, symbol))
        return position
    position, number = parse_number(source, position)
    if not source.startswith("(", skip_blanks(source, position)):
        cells.append((place, number))
        return position
    # `0xFF(name)`, `0xFF00(name)` … are the bytes of one address: the lowest stands for all of them.
    position = skip_character(source, position, "(")
    position, symbol = _parse_symbol(source, position)
    cells.append((place, symbol if int(number.value) & 1 else Immediate(0)))
    return skip_character(source, position, ")")


def _parse_symbol(source: str, position: int) -> tuple[int, Symbol]:
    """``name+8`` or ``generic(name)+8``: in one address space for all, both are the same address."""
    position, name = parse_name(source, position)
    if name == "generic":
        position = skip_character(source, position, "(")
        position, name = parse_name(source, position)
        position = skip_character(source, position, ")")
    position, offset = parse_offset(source, position)
    return position, Symbol(name, offset)


def _cell_offset(place: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """The element that a place in nested lists stands for, or -1 if there is none."""
    if len(place) > len(shape) or any(index >= size for index, size in zip(place, shape, strict=False)):
        return -1
    offset = 0
    for level, size in enumerate(shape):
        offset = offset * size + (place[level] if level < len(place) else 0)
    return offset


def _to_bytes(source: str, position: int, value: Immediate, type_: str) -> bytes:
    """The value as memory holds it; an integer is cut to its type, as ptxas does."""
    width = WIDTHS[type_]
    if type_ in _PACKS and value.kind != type_:
        try:
            return struct.pack(_PACKS[type_], value.value)
        except OverflowError:
            raise error_at(source, position, f"{value.value} is too large for `.{type_}`") from None
    if value.bits is None:
        return (int(value.value) & ((1 << 8 * width) - 1)).to_bytes(width, "little")
    if value.bits >> 8 * width:
        raise error_at(source, position, f"{value.value} does not fit `.{type_}`")
    return value.bits.to_bytes(width, "little")


def parse_prototype(text: str) -> tuple[tuple[Variable, ...], tuple[Variable, ...]]:
    """What a function that fits ``.callprototype (results) _ (parameters)`` returns, and what it takes.

    >>> text = ".callprototype (.param .b32 _) _ (.param .b64 _, .param .b8 _[24])"
    >>> returns, parameters = parse_prototype(text)
    >>> [v.type for v in returns], [v.count for v in parameters]
    (['b32'], [1, 24])
    """
    position, _ = parse_word(text, 0)
    returns: tuple[Variable, ...] = ()
    if text.startswith("(", position):
        position, returns = parse_parameters(text, position)
    position = skip_blanks(text, parse_name(text, skip_blanks(text, position))[0])
    if not text.startswith("(", position):
        return returns, ()
    return returns, parse_parameters(text, position)[1]
