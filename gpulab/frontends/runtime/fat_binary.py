"""The PTX that nvcc puts into a program: a "fat binary", which has a text for each architecture."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from typing import NamedTuple

MAGIC = 0xBA55ED50
PTX = 1  # the kind of an entry whose content is a text of PTX
HEADER = struct.Struct("<IHHQ")  # the magic number, the version, the header's bytes, those of all entries
ENTRY = struct.Struct("<HHIQ")  # the kind, the version, the header's bytes, those of the content
WRAPPER_DATA = 8  # where a wrapper, which programs register, has the address of the fat binary
# Further fields of an entry, by where they are in its header.
COMPRESSED_BYTES, ARCHITECTURE, FLAGS, WHOLE_BYTES = 16, 28, 40, 56
BY_LZ4, BY_ZSTD = 0x2000, 0x8000  # flags


class Text(NamedTuple):
    """A text of PTX: the architecture that it is for, and the text."""

    architecture: int
    ptx: str


class NoDecompressor(RuntimeError):
    """The PTX is compressed in a way that nothing here can undo."""


def ptx_at(wrapper: int, newest: int) -> str:
    """The PTX of a fat binary by its wrapper's address; empty if there is none.

    It is that for the latest architecture up to `newest`, such as 80. Raises NoDecompressor.
    """
    (address,) = struct.unpack("<Q", ctypes.string_at(wrapper + WRAPPER_DATA, 8))
    magic, _, header, size = HEADER.unpack(ctypes.string_at(address, HEADER.size))
    if magic != MAGIC:
        return ""
    fitting = [text for text in texts_in(ctypes.string_at(address + header, size)) if text[0] <= newest]
    return max(fitting, key=lambda text: text.architecture).ptx if fitting else ""


def texts_in(entries: bytes) -> Iterator[Text]:
    """The texts of PTX among the entries of a fat binary."""
    at = 0
    while at + ENTRY.size <= len(entries):
        kind, _, header, size = ENTRY.unpack_from(entries, at)
        if kind == PTX:
            content = entries[at + header : at + header + size]
            yield Text(_field(entries, at + ARCHITECTURE, 4), _whole(entries, at, content))
        at += header + size


def _whole(entries: bytes, at: int, content: bytes) -> str:
    flags, nbytes = _field(entries, at + FLAGS, 8), _field(entries, at + COMPRESSED_BYTES, 4)
    if flags & BY_ZSTD:
        content = _from_zstd(content[:nbytes], _field(entries, at + WHOLE_BYTES, 8))
    elif flags & BY_LZ4:
        content = from_lz4(content[:nbytes])
    return content.rstrip(b"\0").decode()


def _field(entries: bytes, at: int, nbytes: int) -> int:
    return int.from_bytes(entries[at : at + nbytes], "little")


def _from_zstd(content: bytes, nbytes: int) -> bytes:
    """By the library that g++ needs as well."""
    try:
        library = ctypes.CDLL("libzstd.so.1")
    except OSError:
        raise NoDecompressor(
            "Its PTX is compressed, and the library libzstd.so.1 is not here. Install it (apt install "
            "libzstd1), or build the program with nvcc --no-compress."
        ) from None
    library.ZSTD_decompress.restype = ctypes.c_size_t
    whole = ctypes.create_string_buffer(nbytes)
    done = library.ZSTD_decompress(whole, ctypes.c_size_t(nbytes), content, ctypes.c_size_t(len(content)))
    if done != nbytes:
        raise NoDecompressor("Its compressed PTX is damaged: build the program again.")
    return whole.raw


def from_lz4(block: bytes) -> bytes:
    """What a block of LZ4 holds: in turn some bytes, and a copy of what came before.

    >>> from_lz4(b"\x32abc\x03\x00\x10d")
    b'abcabcabcd'
    """
    whole = bytearray()
    at = 0

    def count(nibble: int) -> int:
        nonlocal at
        found = nibble
        more = 255 if nibble == 15 else 0
        while more == 255:
            more, at = block[at], at + 1
            found += more
        return found

    while at < len(block):
        token, at = block[at], at + 1
        literals = count(token >> 4)
        whole += block[at : at + literals]
        at += literals
        if at >= len(block):
            break
        back, at = int.from_bytes(block[at : at + 2], "little"), at + 2
        for _ in range(count(token & 15) + 4):
            whole.append(whole[-back])
    return bytes(whole)
