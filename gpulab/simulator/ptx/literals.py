"""Numbers as PTX writes them: decimal, hexadecimal, octal, binary, and floats by value or by bit pattern."""

from __future__ import annotations

import re
import struct

from .ir import Immediate
from .text import error_at, found_at

# More digits than any PTX type holds are a mistake; without the limit they would cost much to convert.
_NUMBER = re.compile(
    r"""(?P<f32>-?0[fF][0-9a-fA-F]{8})
      | (?P<f64>-?0[dD][0-9a-fA-F]{16})
      | (?P<hex>-?0[xX][0-9a-fA-F]{1,32})U?
      | (?P<bin>-?0[bB][01]{1,128})U?
      | (?P<real>-?(?:\d{1,400}\.\d{0,400}(?:[eE][+-]?\d{1,4})?|\d{1,400}[eE][+-]?\d{1,4}))
      | (?P<oct>-?0[0-7]{1,43})U?
      | (?P<dec>-?\d{1,40})U?""",
    re.VERBOSE | re.ASCII,
)
_NEXT_IS_NO_NUMBER = re.compile(r"(?![\w.$%])", re.ASCII)
_BASES = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}


def starts_number(text: str, position: int) -> bool:
    character = text[position : position + 1]
    return character.isdigit() or (character == "-" and text[position + 1 : position + 2].isdigit())


def parse_number(text: str, position: int) -> tuple[int, Immediate]:
    """The literal at `position`. Raises PtxError where there is none."""
    match = _NUMBER.match(text, position)
    if match is None or match.lastgroup is None or not _NEXT_IS_NO_NUMBER.match(text, match.end()):
        raise error_at(text, position, f"expected a number but found {found_at(text, position)}")
    kind = match.lastgroup
    digits = match.group(kind)
    if kind == "f32":
        return match.end(), _float_from_bits(digits, "f32", "<I", "<f")
    if kind == "f64":
        return match.end(), _float_from_bits(digits, "f64", "<Q", "<d")
    if kind == "real":
        value = float(digits)
        return match.end(), Immediate(value, "f64", _bits_of_double(value))
    return match.end(), Immediate(int(digits, _BASES[kind]))


def _float_from_bits(digits: str, kind: str, integer: str, real: str) -> Immediate:
    bits = int(digits.lstrip("-")[2:], 16)
    if digits[0] == "-":
        bits ^= 1 << (8 * struct.calcsize(real) - 1)
    return Immediate(struct.unpack(real, struct.pack(integer, bits))[0], kind, bits)


def _bits_of_double(value: float) -> int:
    bits: int = struct.unpack("<Q", struct.pack("<d", value))[0]
    return bits
