"""The PTX that nvcc puts into a program: a "fat binary", which has a text for each architecture."""

from __future__ import annotations

import ctypes
import struct

MAGIC = 0xBA55ED50
PTX = 1  # the kind of an entry whose content is a text of PTX
HEADER = struct.Struct("<IHHQ")  # the magic number, the version, the header's bytes, those of all entries
ENTRY = struct.Struct("<HHIQ")  # the kind, the version, the header's bytes, those of the content
WRAPPER_DATA = 8  # where a wrapper, which programs register, has the address of the fat binary


def ptx_at(wrapper: int) -> str:
    """The PTX of a fat binary by its wrapper's address; empty if it holds machine code only."""
    (address,) = struct.unpack("<Q", ctypes.string_at(wrapper + WRAPPER_DATA, 8))
    magic, _, header, size = HEADER.unpack(ctypes.string_at(address, HEADER.size))
    return ptx_in(ctypes.string_at(address + header, size)) if magic == MAGIC else ""


def ptx_in(entries: bytes) -> str:
    """The first text of PTX among the entries of a fat binary.

    >>> ptx_in(ENTRY.pack(2, 1, 16, 4) + b"\\x7fELF" + ENTRY.pack(PTX, 1, 16, 12) + b".version 9\\n\\0")
    '.version 9\\n'
    """
    at = 0
    while at + ENTRY.size <= len(entries):
        kind, _, header, size = ENTRY.unpack_from(entries, at)
        if kind == PTX:
            return entries[at + header : at + header + size].rstrip(b"\0").decode()
        at += header + size
    return ""
