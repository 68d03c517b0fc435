"""Operands of an instruction: registers, special registers, literals, symbols, addresses, lists, pairs."""

from __future__ import annotations

import re

from .ir import Address, Arguments, Immediate, Negated, Operand, Pair, Register, Special, Symbol, Vector
from .literals import parse_number, starts_number
from .scopes import Scope, look_up
from .text import NAME, error_at, found_at, parse_name, skip_blanks, skip_character

SINK = Register("_")
WARP_SIZE = Immediate(32)

_VECTORS = "tid ntid ctaid nctaid clusterid nclusterid cluster_ctaid cluster_nctaid"
_SCALARS = """
    laneid warpid nwarpid smid nsmid gridid is_explicit_cluster cluster_ctarank cluster_nctarank
    lanemask_eq lanemask_le lanemask_lt lanemask_ge lanemask_gt
    clock clock_hi clock64 globaltimer globaltimer_lo globaltimer_hi current_graph_exec
    reserved_smem_offset_begin reserved_smem_offset_end reserved_smem_offset_cap
    reserved_smem_offset_0 reserved_smem_offset_1 total_smem_size aggr_smem_size dynamic_smem_size
"""
_SPECIALS = frozenset(
    [f"%{name}.{axis}" for name in _VECTORS.split() for axis in "xyz"]
    + [f"%{name}" for name in _SCALARS.split()]
    + [f"%envreg{number}" for number in range(32)]
    + [f"%pm{number}{part}" for number in range(8) for part in ("", "_64")]
)
_DOTTED = re.compile(NAME + r"(?:\.[a-z]\w*)?", re.ASCII)
_CLOSERS = {"{": "}", "(": ")"}


def parse_operands(text: str, scope: Scope) -> tuple[Operand, ...]:
    """The operands written in `text`, which is what stands between an opcode and its semicolon.

    Raises PtxError, whose line is counted within `text`.
    """
    if "{" not in text and "(" not in text and text:
        known = scope.known
        # Most operands were seen before, so one look into a dictionary is all that they cost.
        return tuple([known.get(piece) or _remember(known, piece, scope) for piece in text.split(",")])
    operands: list[Operand] = []
    position = skip_blanks(text, 0)
    while position < len(text):
        if operands:
            position = skip_character(text, position, ",")
        position, operand = parse_operand(text, position, scope)
        operands.append(operand)
        position = skip_blanks(text, position)
    return tuple(operands)


def _remember(known: dict[str, Operand], piece: str, scope: Scope) -> Operand:
    """Read the operand that is all of `piece`, and keep it."""
    operand: Operand | None = look_up(scope, piece.strip()) if "%" in piece else None
    # Most are registers; what is more than a name is not found like this.
    if not isinstance(operand, Register):
        operand = _parse_whole(piece, scope)
    known[piece] = operand
    return operand


def _parse_whole(piece: str, scope: Scope) -> Operand:
    position = skip_blanks(piece, 0)
    if position == len(piece):
        raise error_at(piece, 0, "an operand is missing")
    position, operand = parse_operand(piece, position, scope)
    position = skip_blanks(piece, position)
    if position != len(piece):
        raise error_at(piece, position, f"expected `,` or `;` but found {found_at(piece, position)}")
    return operand


def parse_operand(text: str, position: int, scope: Scope) -> tuple[int, Operand]:
    character = text[position : position + 1]
    if character == "[":
        return parse_address(text, position, scope)
    if character == "{":
        position, items = _parse_list(text, position, scope)
        return position, Vector(items)
    if character == "(":
        position, items = _parse_list(text, position, scope)
        return position, Arguments(items)
    if character == "!":
        return parse_negated(text, position, scope)
    return _parse_plain(text, position, scope)


def _parse_plain(text: str, position: int, scope: Scope) -> tuple[int, Operand]:
    """An item of a list: a literal, a name, or a pair of names."""
    if starts_number(text, position):
        return parse_number(text, position)
    position, operand = parse_named(text, position, scope)
    bar = skip_blanks(text, position)
    if text.startswith("|", bar):
        position, second = parse_named(text, skip_blanks(text, bar + 1), scope)
        return position, Pair(operand, second)
    return position, operand


def parse_negated(text: str, position: int, scope: Scope) -> tuple[int, Negated]:
    start = skip_blanks(text, position + 1)
    position, operand = parse_named(text, start, scope)
    if not isinstance(operand, Register):
        raise error_at(text, start, f"expected a register after `!` but found {found_at(text, start)}")
    return position, Negated(operand)


def parse_address(text: str, position: int, scope: Scope) -> tuple[int, Address]:
    """``[base+offset]``, or ``[base, {x, y}]`` of the texture and tensor operations."""
    position = skip_character(text, position, "[")
    base: Register | Symbol | None = None
    offset = 0
    if starts_number(text, position):
        position, offset = parse_integer(text, position)
    else:
        start = position
        position, operand = parse_named(text, position, scope)
        if isinstance(operand, Register):
            base = operand
            position, offset = parse_offset(text, position)
        elif isinstance(operand, Symbol):
            base, offset = Symbol(operand.name), operand.offset
        else:
            raise error_at(text, start, f"expected an address but found {found_at(text, start)}")
    coordinates: list[Operand] = []
    position = skip_blanks(text, position)
    while text.startswith(",", position):
        position, operand = parse_operand(text, skip_blanks(text, position + 1), scope)
        coordinates.append(operand)
        position = skip_blanks(text, position)
    return skip_character(text, position, "]"), Address(base, offset, tuple(coordinates))


def parse_named(text: str, position: int, scope: Scope) -> tuple[int, Operand]:
    """A register, special register or symbol with its offset; the sink ``_``; the constant ``WARP_SZ``."""
    match = _DOTTED.match(text, position)
    if match is None:
        position, _ = parse_name(text, position)
        raise AssertionError("a name that is not a name")
    name = match.group()
    found = look_up(scope, name)
    if isinstance(found, Register):
        return match.end(), found
    if name == "_":
        return match.end(), SINK
    if name == "WARP_SZ":
        return match.end(), WARP_SIZE
    if name[0] == "%":
        if name in _SPECIALS:
            return match.end(), Special(name)
        raise error_at(text, position, f"`{name}` is neither a declared register nor a special register")
    if "." in name:
        raise error_at(text, position, f"`{name}` is not a name")
    if found is None:
        scope.registry.outside.add(name)
    end, offset = parse_offset(text, match.end())
    return end, Symbol(found.name if found else name, offset)


def parse_offset(text: str, position: int) -> tuple[int, int]:
    """The ``+16``, ``+-8`` or ``-8`` that may follow a base; 0 where nothing follows."""
    start = skip_blanks(text, position)
    if text.startswith("+", start):
        return parse_integer(text, skip_blanks(text, start + 1))
    if text.startswith("-", start):
        end, offset = parse_integer(text, skip_blanks(text, start + 1))
        return end, -offset
    return position, 0


def parse_integer(text: str, position: int) -> tuple[int, int]:
    end, number = parse_number(text, position)
    if not isinstance(number.value, int):
        raise error_at(text, position, f"expected a whole number but found {found_at(text, position)}")
    return end, number.value


def _parse_list(text: str, position: int, scope: Scope) -> tuple[int, tuple[Operand, ...]]:
    closer = _CLOSERS[text[position]]
    position = skip_blanks(text, position + 1)
    items: list[Operand] = []
    while not text.startswith(closer, position):
        if items:
            position = skip_character(text, position, ",")
        position, item = _parse_plain(text, position, scope)
        items.append(item)
        position = skip_blanks(text, position)
    return position + 1, tuple(items)
