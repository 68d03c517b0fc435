"""Reads data of unknown origin: types, sizes and numbers are checked before use, and text is made harmless.

Example: ``number(facts["launches"], 2_000)`` is the number, or a ValueError for a text, for -1 and for 10**9.
"""

from __future__ import annotations

import re
from typing import Any

MOST_CHARACTERS = 2_000

_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]"
)


def text(value: Any, most: int = MOST_CHARACTERS) -> str:
    """The first characters of a string. Raises TypeError for anything else."""
    if not isinstance(value, str):
        raise TypeError(f"a text is a {type(value).__name__}")
    return value[:most]


def number(value: Any, most: int, least: int = 0) -> int:
    """An int within limits. Raises ValueError for anything else, truth values included."""
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"a number is {value!r:.40}, not from {least} to {most:,}")
    return value


def items(value: Any, most: int) -> list[Any]:
    """A list that is not too long. Raises ValueError for anything else."""
    if not isinstance(value, list) or len(value) > most:
        raise ValueError(f"no list of at most {most:,} items")
    return value


def uncontrolled(text: object) -> str:
    """Somebody's text without colours and other control characters; its lines stay."""
    return _CONTROL.sub("", str(text))


def clean(text: object, limit: int = 300) -> str:
    """Somebody's text, fit for a terminal and a table: no control characters, one line, not too long."""
    line = " ".join(uncontrolled(text).encode("utf-8", "replace").decode().split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
