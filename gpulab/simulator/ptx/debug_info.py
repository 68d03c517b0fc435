"""Where a kernel's named variables are: the debug information that a compiler writes behind its PTX.

It is DWARF (http://dwarfstd.org, version 2) whose bytes stand as numbers, labels and names in sections of the
text. A register is named in a location by the characters of its name, packed into one integer. Read here:
the variables of each function, their scalar types, and over which lines of the PTX each lies where.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .ir import Register, Symbol

_SECTION = re.compile(r"\.section\s+\.(\w+)\s*\{(.*?)\n\s*\}", re.DOTALL)
_LABEL = re.compile(r"^\s*(\$\w+):", re.MULTILINE)
_WIDTH = {"b8": 1, "b16": 2, "b32": 4, "b64": 8}
_HEADER = 11  # bytes of a unit's header: length, version, offset of the abbreviations, size of an address

# Tags, attributes, and operations of locations that are read; all others are passed over.
_BASE, _STRUCTURE, _MEMBER, _ENUMERATION, _ARRAY, _RANGE = 0x24, 0x13, 0x0D, 0x04, 0x01, 0x21
_WRAPPERS = {0x16, 0x26, 0x35}  # typedef, const, volatile
_FUNCTION, _PARAMETER, _VARIABLE, _BLOCK, _INLINED = 0x2E, 0x05, 0x34, 0x0B, 0x1D
_LOCATION, _NAME, _SIZE, _LOW, _HIGH, _ORIGIN = 0x02, 0x03, 0x0B, 0x11, 0x12, 0x31
_CONSTANT, _COUNT, _UPPER, _PLACE, _LINE, _ENCODING, _TYPE = 0x1C, 0x37, 0x2F, 0x38, 0x3B, 0x3E, 0x49
_LINKAGE = 0x2007
_KINDS = {2: "b", 4: "f", 5: "i", 6: "i", 7: "u", 8: "u"}  # encodings → NumPy's kinds
_MOST_PARTS = 4  # of a tuple or structure that is still a value to be looked at


@dataclass(frozen=True)
class Scalar:
    """A number at `offset` bytes in a variable; `dtype` is NumPy's name, such as ``f4``."""

    dtype: str
    offset: int = 0


# A register of the function, a symbol of memory (local, or a parameter), or the value itself.
Where = Register | Symbol | int


@dataclass(frozen=True)
class SourceVariable:
    """A variable that the source names, declared at its `line`. `parts` are its numbers, one unless it is a
    tuple or structure.

    It can be named on the lines `first` … `stop` - 1 of the PTX text (`stop` None: to the end). Either it is
    in one `place` all the time, or `moves` says, in the order of the text, on which of its lines it comes to
    be where: it is there when a thread has come past that line, whatever way it took.
    """

    name: str
    line: int
    parts: tuple[Scalar, ...]
    first: int = 0
    stop: int | None = None
    place: Where | None = None
    moves: tuple[tuple[int, Where], ...] = ()
    is_parameter: bool = False

    def is_in_scope(self, line: int) -> bool:
        """Whether it can be named on a line of the PTX text."""
        return self.first <= line and (self.stop is None or line < self.stop)

    @property
    def size(self) -> int:
        """Bytes that its numbers take."""
        return max(part.offset + int(part.dtype[1:]) for part in self.parts)


def source_variables(text: str) -> dict[str, tuple[SourceVariable, ...]]:
    """The variables of each function of a PTX text that was compiled with debug information, by its name.

    Empty where there is none. Variables of other types than numbers and small tuples of them are left out.

    >>> source_variables(".version 8.0 .target sm_80 .address_size 64 .visible .entry stop() { ret; }")
    {}
    """
    found: dict[str, tuple[SourceVariable, ...]] = {}
    sections: dict[str, str] = {}
    start = 0
    for match in _SECTION.finditer(text):
        sections[match[1]] = match[2]
        if match[1] == "debug_info":  # of the code before it: texts that were joined have one each
            lines = label_lines(text[start : match.end()])
            above = text.count("\n", 0, start)
            found |= _variables(sections, {label: above + at[0] for label, at in lines.items()})
            sections, start = {}, match.end()
    return found


def _variables(sections: dict[str, str], lines: dict[str, int]) -> dict[str, tuple[SourceVariable, ...]]:
    """The variables of the functions of one compilation."""
    info, abbreviations = _Tape(sections["debug_info"]), _Tape(sections.get("debug_abbrev", ""))
    locations = _Tape(sections.get("debug_loc", ""))
    found: dict[str, tuple[SourceVariable, ...]] = {}
    start = 0
    while start < info.end:  # a unit: the bytes that follow, version, place of its abbreviations …
        length, at = info.number(start, 4)
        kinds, _ = info.read(at + 2)
        unit = _Unit(
            info, start, at + length, _abbreviations(abbreviations, _offset(kinds)), locations, lines
        )
        found |= unit.functions()
        start = at + length
    return found


def _offset(place: int | str) -> int:
    """``.debug_loc+133`` → 133."""
    return place if isinstance(place, int) else int(place.partition("+")[2] or 0)


def label_lines(text: str) -> dict[str, list[int]]:
    r"""The line numbers on which each label of `text` is defined: functions may use the same names.

    >>> label_lines("$L__BB0_1:\n    ret;\n$L__BB0_2:\n    exit;")
    {'$L__BB0_1': [1], '$L__BB0_2': [3]}
    """
    found: dict[str, list[int]] = {}
    line, at = 1, 0
    for match in _LABEL.finditer(text):
        line += text.count("\n", at, match.start(1))
        at = match.start(1)
        found.setdefault(match[1], []).append(line)
    return found


class _Tape:
    """Items of a section by the offset of their first byte: (bytes, a number or the name of a symbol)."""

    def __init__(self, body: str):
        self.items: dict[int, tuple[int, int | str]] = {}
        self.end = 0
        for line in body.splitlines():
            kind, _, values = line.partition("//")[0].strip().partition(" ")
            width = _WIDTH.get(kind.removeprefix("."))
            if width is None:
                continue
            for word in map(str.strip, values.split(",")):
                self.items[self.end] = width, int(word, 0) if word.lstrip("-")[:1].isdigit() else word
                self.end += width

    def read(self, at: int) -> tuple[int | str, int]:
        """The item at an offset, and the offset behind it."""
        width, value = self.items[at]
        return value, at + width

    def number(self, at: int, size: int) -> tuple[int, int]:
        """An unsigned number of so many bytes, in one item or byte by byte."""
        total, shift, end = 0, 0, at + size
        while at < end:
            width, value = self.items[at]
            assert isinstance(value, int)
            total |= (value & ((1 << 8 * width) - 1)) << shift
            shift, at = shift + 8 * width, at + width
        return total, at

    def variable_length(self, at: int, signed: bool = False) -> tuple[int, int]:
        """A number in base 128, the lowest digits first (LEB128)."""
        total, shift = 0, 0
        while True:
            octet, at = self.number(at, 1)
            total, shift = total | (octet & 127) << shift, shift + 7
            if octet < 128:
                return total - (1 << shift) if signed and octet & 64 else total, at

    def text(self, at: int) -> tuple[str, int]:
        octets = bytearray()
        while True:
            octet, at = self.number(at, 1)
            if not octet:
                return octets.decode(errors="replace"), at
            octets.append(octet)


@dataclass
class _Entry:
    """A debugging information entry: its tag, attributes by number, and what it holds."""

    tag: int
    values: dict[int, int | str | list[Any]]
    children: list[_Entry] = field(default_factory=list)

    def number(self, attribute: int, default: int = 0) -> int:
        value = self.values.get(attribute, default)
        return value if isinstance(value, int) else default

    def name(self) -> str:
        return str(self.values.get(_NAME, ""))


_Abbreviation = tuple[int, bool, list[tuple[int, int]]]  # tag, has children, (attribute, form)


def _abbreviations(tape: _Tape, at: int) -> dict[int, _Abbreviation]:
    found: dict[int, _Abbreviation] = {}
    while at < tape.end:
        code, at = tape.variable_length(at)
        if not code:
            break
        tag, at = tape.variable_length(at)
        children, at = tape.number(at, 1)
        pairs = []
        while True:
            attribute, at = tape.variable_length(at)
            form, at = tape.variable_length(at)
            if not attribute:
                break
            pairs.append((attribute, form))
        found[code] = tag, bool(children), pairs
    return found


class _Unit:
    """One compilation unit."""

    def __init__(
        self,
        info: _Tape,
        base: int,
        end: int,
        abbreviations: dict[int, _Abbreviation],
        locations: _Tape,
        lines: dict[str, int],
    ):
        self.locations, self.lines = locations, lines
        self.entries: dict[int, _Entry] = {}  # by the offset in the unit
        self.roots: list[_Entry] = []
        at, open_entries = base + _HEADER, [self.roots]
        while at < end and open_entries:
            start = at - base
            code, at = info.variable_length(at)
            if not code:
                open_entries.pop()
                continue
            tag, has_children, pairs = abbreviations[code]
            entry = _Entry(tag, {})
            for attribute, form in pairs:
                entry.values[attribute], at = _value(info, at, form)
            self.entries[start] = entry
            open_entries[-1].append(entry)
            if has_children:
                open_entries.append(entry.children)

    def functions(self) -> dict[str, tuple[SourceVariable, ...]]:
        found = {}
        for entry in _all(self.roots):
            if entry.tag == _FUNCTION and _LOW in entry.values:
                linkage = entry.values.get(_LINKAGE) or entry.name()
                found[str(linkage)] = tuple(self._variables(entry, 0, None))
        return found

    def _variables(self, scope: _Entry, first: int, stop: int | None) -> Iterator[SourceVariable]:
        """Of a scope and those inside it; the innermost come first, for they hide the others."""
        low, high = (self.lines.get(str(scope.values.get(at))) for at in (_LOW, _HIGH))
        first, stop = first if low is None else low, stop if high is None else high
        for entry in scope.children:
            if entry.tag in (_BLOCK, _INLINED):
                yield from self._variables(entry, first, stop)
        for entry in scope.children:
            if entry.tag in (_VARIABLE, _PARAMETER):
                origin = self.entries.get(entry.number(_ORIGIN, -1), entry)
                parts = self._parts(origin.number(_TYPE, -1), 0)
                name = origin.name()
                if parts and name:
                    yield SourceVariable(
                        name,
                        origin.number(_LINE),
                        parts,
                        first,
                        stop,
                        *self._places(entry),
                        entry.tag == _PARAMETER,
                    )

    # ---- types -----------------------------------------------------------------------------------

    def _parts(self, at: int, offset: int) -> tuple[Scalar, ...]:
        """The numbers of which a type consists; none for a pointer, a large array or structure."""
        entry = self.entries.get(at)
        if entry is None:
            return ()
        size, inner = entry.number(_SIZE), entry.number(_TYPE, -1)
        if entry.tag in _WRAPPERS:
            return self._parts(inner, offset)
        if entry.tag == _BASE:
            kind = _KINDS.get(entry.number(_ENCODING))
            return (Scalar(f"{kind}{size}", offset),) if kind and size in (1, 2, 4, 8) else ()
        if entry.tag == _ENUMERATION:
            return (Scalar(f"i{size}", offset),)
        found: list[tuple[Scalar, ...]] = []
        if entry.tag == _ARRAY:
            count = next((_count(c) for c in entry.children if c.tag == _RANGE), 0)
            one = self._parts(inner, 0)
            step = self._size(inner)
            if count <= _MOST_PARTS:
                found = [
                    tuple(Scalar(p.dtype, offset + i * step + p.offset) for p in one) for i in range(count)
                ]
        elif entry.tag == _STRUCTURE:
            members = [child for child in entry.children if child.tag == _MEMBER]
            found = [self._parts(m.number(_TYPE, -1), offset + _member_offset(m)) for m in members]
        if not all(found) or sum(map(len, found)) > _MOST_PARTS:
            return ()
        return tuple(part for parts in found for part in parts)

    def _size(self, at: int) -> int:
        entry = self.entries[at]
        return self._size(entry.number(_TYPE)) if entry.tag in _WRAPPERS else entry.number(_SIZE)

    # ---- places ----------------------------------------------------------------------------------

    def _places(self, entry: _Entry) -> tuple[Where | None, tuple[tuple[int, Where], ...]]:
        """Its place, or its moves from one to the other."""
        location, constant = entry.values.get(_LOCATION), entry.values.get(_CONSTANT)
        if isinstance(location, list):
            return _where(location), ()
        if isinstance(location, str):
            return None, tuple(self._moves(_offset(location)))
        return (constant if isinstance(constant, int) else None), ()

    def _moves(self, at: int) -> Iterator[tuple[int, Where]]:
        """A list of stretches of code, each with a place. Their ends follow the text and not the way of a
        thread, so they are not used."""
        while at < self.locations.end:
            start, at = self.locations.read(at)
            end, at = self.locations.read(at)
            if start == 0 and end == 0:
                return
            length, at = self.locations.number(at, 2)
            where = _where([value for _, value in _stretch(self.locations, at, length)])
            at += length
            if where is not None:
                yield self.lines.get(str(start), 0), where


def _all(entries: list[_Entry]) -> Iterator[_Entry]:
    for entry in entries:
        yield entry
        yield from _all(entry.children)


def _count(entry: _Entry) -> int:
    return entry.number(_COUNT) or entry.number(_UPPER, -1) + 1


def _member_offset(member: _Entry) -> int:
    place = member.values.get(_PLACE, 0)
    if isinstance(place, list):  # 0x23: plus an unsigned number
        return _packed(place[1:])[0] if place[:1] == [0x23] else 0
    return place if isinstance(place, int) else 0


def _stretch(tape: _Tape, at: int, length: int) -> Iterator[tuple[int, int | str]]:
    end = at + length
    while at < end:
        value, after = tape.read(at)
        yield at, value
        at = after


def _value(tape: _Tape, at: int, form: int) -> tuple[int | str | list[Any], int]:
    """An attribute's value in one of DWARF's forms, and the offset behind it."""
    fixed = {0x05: 2, 0x0B: 1, 0x0C: 1, 0x11: 1, 0x12: 2}
    blocks: dict[int, Callable[[int], tuple[int, int]]] = {
        0x0A: lambda at: tape.number(at, 1),
        0x03: lambda at: tape.number(at, 2),
        0x04: lambda at: tape.number(at, 4),
        0x09: tape.variable_length,
    }
    if form == 0x08:
        return tape.text(at)
    if form in fixed:
        return tape.number(at, fixed[form])
    if form in (0x0D, 0x0F, 0x15):
        return tape.variable_length(at, signed=form == 0x0D)
    if form in blocks:
        length, at = blocks[form](at)
        return [value for _, value in _stretch(tape, at, length)], at + length
    size = {0x01: 8, 0x07: 8, 0x06: 4, 0x13: 4, 0x0E: 4, 0x14: 8}[form]
    if isinstance(tape.items[at][1], str):
        return tape.read(at)
    return tape.number(at, size)


def _packed(octets: list[Any]) -> tuple[int, int]:
    """A number in base 128 at the start of a list of bytes, and how many bytes it takes."""
    total = 0
    for used, octet in enumerate(octets):
        total |= (octet & 127) << 7 * used
        if octet < 128:
            return total, used + 1
    return total, len(octets)


def _where(location: list[Any]) -> Where | None:
    """What a location expression means; None for one that is not read here."""
    if not location:
        return None
    operation, *rest = location
    if operation == 0x90:  # a register, by its name
        number, used = _packed(rest)
        name = number.to_bytes((number.bit_length() + 7) // 8, "big").decode("ascii", "replace")
        return Register(name) if used == len(rest) else None
    if operation == 0x03 and rest and isinstance(rest[0], str):  # an address
        offset = 0
        if rest[1:]:
            if rest[1] != 0x23:
                return None
            offset, _ = _packed(rest[2:])
        return Symbol(rest[0], offset)
    if rest[-1:] == [0x9F]:  # a value, not a place
        if 0x30 <= operation <= 0x4F:
            return int(operation) - 0x30
        if operation == 0x10:
            return _packed(rest[:-1])[0]
        if operation == 0x11:
            number, used = _packed(rest[:-1])
            return number - (1 << 7 * used) if rest[used - 1] & 64 else number
    return None
