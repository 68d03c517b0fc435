"""``vprintf``: what print() in a kernel becomes. C's format, the arguments packed in local memory."""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

SPECIFIER = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\d*)(?P<precision>\.\d+)?"
    r"(?P<length>hh|h|ll|l|z)?(?P<kind>[%diouxXeEfFgGcsp])"
)


class Argument(NamedTuple):
    """What the packed buffer holds of an argument: its code in `struct`, its bytes."""

    code: str
    nbytes: int


def arguments_of(text: str) -> list[Argument]:
    """The arguments that the format takes from the packed buffer."""
    result = []
    for match in SPECIFIER.finditer(text):
        kind, length = match["kind"], match["length"] or ""
        if kind == "%":
            continue
        if kind in "eEfFgG":
            result.append(Argument("d", 8))
        elif kind in "sp":
            result.append(Argument("Q", 8))
        elif "l" in length or length == "z":
            result.append(Argument("q" if kind in "di" else "Q", 8))
        else:
            result.append(Argument("i" if kind in "di" else "I", 4))
    return result


def unpack_arguments(text: str, buffer: bytes) -> list[int | float]:
    """The values behind a format; each is aligned to its size."""
    values: list[int | float] = []
    at = 0
    for code, size in arguments_of(text):
        at = (at + size - 1) // size * size
        values.append(struct.unpack_from(f"<{code}", buffer, at)[0])
        at += size
    return values


def render(text: str, values: list[int | float | str]) -> str:
    """printf's result. `values` holds text where the format says %s."""
    queue = iter(values)

    def one(match: re.Match[str]) -> str:
        kind = match["kind"]
        if kind == "%":
            return "%"
        value = next(queue)
        if kind == "p":
            return f"0x{int(value):x}"
        if kind == "c":
            return chr(int(value) & 0xFF)
        kind = {"i": "d", "u": "d"}.get(kind, kind)
        return f"%{match['flags']}{match['width']}{match['precision'] or ''}{kind}" % value

    return SPECIFIER.sub(one, text)
