"""The file of a program that nvcc and g++ have built: what it calls, and a copy of it that can be loaded.

Only little of ELF is read: symbols, needed libraries, where the address of `exit` is kept. A program that is
linked with CUDA's static runtime has its functions inside; in the copy each begins with a jump to our answer.
The copy also no longer says that it is a program, because the loader takes libraries only.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

MAGIC = b"\x7fELF"
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SEGMENT = struct.Struct("<IIQQQQQQ")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
RELOCATION = struct.Struct("<QQq")
DYNAMIC = struct.Struct("<qQ")
X86_64, POSITION_INDEPENDENT = 62, 3
LOAD, DYNAMIC_SEGMENT, INTERPRETER = 1, 2, 3
SYMBOLS, RELOCATIONS, DYNAMIC_SYMBOLS = 2, 4, 11
FUNCTION, THREAD_LOCAL = 2, 6  # types of symbols
NEEDED, FLAGS = 1, 0x6FFFFFFB  # entries of the dynamic segment
IS_A_PROGRAM = 0x08000000  # among the flags
JUMP = struct.Struct("<6sQ")  # jmp *0(%rip), and where to
JUMP_CODE = b"\xff\x25\0\0\0\0"
ROOM = 16  # bytes that compilers give even the shortest function
RUNTIME = "libcudart"  # how the names of its shared library, and of what is thread-local in it, begin
NOT_OF_THE_RUNTIME = ("__cudaRegisterLinkedBinary", "__cudaUnregisterBinaryUtil")  # what nvcc writes


class CannotLoad(ValueError):
    """The file is no program that can be loaded; the message says why, and what would help."""


@dataclass(frozen=True)
class Symbol:
    """A name in the program: its type, where it is in memory, its bytes; `defined` if it is in the file."""

    name: str
    type: int
    address: int
    nbytes: int
    defined: bool


class Binary:
    """A program of machine code. Raises CannotLoad."""

    def __init__(self, path: Path):
        self.data = path.read_bytes()
        self.name = path.name
        if self.data[:6] != MAGIC + b"\x02\x01" or len(self.data) < HEADER.size:
            raise CannotLoad(f"{self.name} is not a program for 64-bit Linux.")
        found = HEADER.unpack_from(self.data)
        kind, machine, segments, sections = found[1], found[2], found[5], found[6]
        if machine != X86_64:
            raise CannotLoad(f"{self.name} was built for another processor; only x86-64 is supported.")
        self.segments = [
            SEGMENT.unpack_from(self.data, segments + i * SEGMENT.size) for i in range(found[10])
        ]
        self.sections = [
            SECTION.unpack_from(self.data, sections + i * SECTION.size) for i in range(found[12])
        ]
        if INTERPRETER not in {segment[0] for segment in self.segments}:
            raise CannotLoad(f"{self.name} is not a program that the loader of Linux starts.")
        if kind != POSITION_INDEPENDENT:
            raise CannotLoad(
                f"{self.name} can only be loaded at a fixed address. Link it as a position-independent "
                "program, which g++ does unless it is given -no-pie."
            )
        if "main" not in self.symbols:
            raise CannotLoad(
                f"{self.name} has no table of symbols, so its main function cannot be found. Build it "
                "without -s, and do not strip it."
            )
        own = [s for s in self.symbols.values() if s.type == THREAD_LOCAL and s.defined]
        if theirs := [s.name for s in own if not s.name.startswith(RUNTIME)]:
            raise CannotLoad(
                f"{self.name} has thread-local variables ({', '.join(theirs[:3])}), which are out of reach "
                "when it is loaded here. Give gpulab run its source: gpulab run program.cu."
            )

    @cached_property
    def symbols(self) -> dict[str, Symbol]:
        """By name, those of the table for linkers before those for the loader."""
        return self._symbols_of(DYNAMIC_SYMBOLS) | self._symbols_of(SYMBOLS)

    def called(self) -> list[str]:
        """The functions of CUDA's shared runtime that it calls."""
        found = self._symbols_of(DYNAMIC_SYMBOLS).values()
        return [s.name for s in found if not s.defined and _is_cudas(s.name)]

    def inside(self) -> dict[str, Symbol]:
        """The functions of CUDA's static runtime that are in the file."""
        found = self.symbols.values()
        return {s.name: s for s in found if s.defined and s.type == FUNCTION and _is_cudas(s.name)}

    def runtime(self) -> str:
        """The name of the shared library of CUDA's runtime that it needs; empty if it needs none."""
        names = self._text(DYNAMIC_SYMBOLS)
        needed = [_name(names, value) for _, tag, value in self._dynamic() if tag == NEEDED]
        return next((name for name in needed if name.startswith(RUNTIME)), "")

    def place_of_call(self, name: str) -> int:
        """Where in memory it has the address of a function of a library; 0 if it never calls that."""
        symbols = [SYMBOL.unpack_from(each) for each in self._entries(DYNAMIC_SYMBOLS)]
        names = self._text(DYNAMIC_SYMBOLS)
        for each in self._entries(RELOCATIONS):
            place, about, _ = RELOCATION.unpack(each)
            if about >> 32 and _name(names, symbols[about >> 32][0]) == name:
                return int(place)
        return 0

    def loadable(self, answers: Mapping[str, int]) -> bytes:
        """The copy, in which functions that are inside lead to the addresses in `answers`."""
        data = bytearray(self.data)
        for at, tag, value in self._dynamic():
            if tag == FLAGS:
                DYNAMIC.pack_into(data, at, tag, value & ~IS_A_PROGRAM)
        for name, symbol in self.inside().items():
            if symbol.address % ROOM == 0:
                JUMP.pack_into(data, self._offset(symbol.address), JUMP_CODE, answers[name])
        return bytes(data)

    def _dynamic(self) -> list[tuple[int, int, int]]:
        """(where in the file, tag, value) of each entry."""
        places = [
            at
            for segment in self.segments
            if segment[0] == DYNAMIC_SEGMENT
            for at in range(segment[2], segment[2] + segment[5], DYNAMIC.size)
        ]
        return [(at, *DYNAMIC.unpack_from(self.data, at)) for at in places]

    def _symbols_of(self, kind: int) -> dict[str, Symbol]:
        names = self._text(kind)
        found = (SYMBOL.unpack(each) for each in self._entries(kind))
        made = (Symbol(_name(names, s[0]), s[1] & 15, s[4], s[5], bool(s[3])) for s in found)
        return {symbol.name: symbol for symbol in made}

    def _entries(self, kind: int) -> list[bytes]:
        return [
            self.data[at : at + section[9]]
            for section in self.sections
            if section[1] == kind
            for at in range(section[4], section[4] + section[5], section[9])
        ]

    def _text(self, kind: int) -> bytes:
        """The names that a table of symbols refers to."""
        linked = next((section[6] for section in self.sections if section[1] == kind), None)
        if linked is None:
            return b""
        section = self.sections[linked]
        return self.data[section[4] : section[4] + section[5]]

    def _offset(self, address: int) -> int:
        """Where in the file is what is at this place in memory."""
        for kind, _, offset, start, _, nbytes, *_ in self.segments:
            if kind == LOAD and start <= address < start + nbytes:
                return int(address - start + offset)
        raise CannotLoad(f"{self.name} is damaged: {address:#x} is in none of its segments.")


def is_machine_code(path: Path) -> bool:
    """Whether a file is a program or library of machine code."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _is_cudas(name: str) -> bool:
    prefix = name.removeprefix("__")
    return prefix.startswith("cuda") and prefix[4:5].isupper() and not name.startswith(NOT_OF_THE_RUNTIME)


def _name(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode(errors="replace") if names else ""
