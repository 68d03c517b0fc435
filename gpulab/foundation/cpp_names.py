"""Names of C++ functions as people write them."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache
from typing import Any


def readable(name: str) -> str:
    """A function's name in C++ by that in the PTX, without its parameters; other names stay as they are.

    >>> readable("_Z4copyPf"), readable("scale")
    ('copy', 'scale')
    """
    found = _demangle()(name.encode(), None, None, None) if name.startswith("_Z") and _demangle() else None
    if not found:
        return name
    text = ctypes.string_at(found).decode().removeprefix("void ")
    ctypes.CDLL(None).free(ctypes.c_void_p(found))
    depth = 0
    for i, character in enumerate(text):
        depth += (character == "<") - (character == ">")
        if character == "(" and not depth and not text.startswith("(anonymous namespace)", i):
            return text[:i]
    return text


@cache
def _demangle() -> Any:
    """The C++ library's own function that makes names readable; None where there is no such library."""
    pointer = ctypes.c_void_p
    with suppress(OSError, AttributeError):
        found = ctypes.CDLL("libstdc++.so.6").__cxa_demangle
        found.restype, found.argtypes = pointer, (ctypes.c_char_p, pointer, pointer, pointer)
        return found
    return None
