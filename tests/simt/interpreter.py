"""A second simulator, for tests: one thread after the other, one instruction at a time, in dictionaries.

It knows the few opcodes that `test_random_programs` writes and shares no line with the simulator.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field

M32, M64 = 2**32 - 1, 2**64 - 1


def signed(x: int, bits: int = 32) -> int:
    return x - (1 << bits) if x >> (bits - 1) else x


def to_float(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def from_float(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]


ARITHMETIC: dict[str, Callable[..., int]] = {
    "mov.u32": lambda a: a,
    "mov.b32": lambda a: a,
    "add.s32": lambda a, b: a + b,
    "sub.s32": lambda a, b: a - b,
    "mul.lo.s32": lambda a, b: a * b,
    "mad.lo.s32": lambda a, b, c: a * b + c,
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
    "not.b32": lambda a: ~a,
    "shl.b32": lambda a, b: a << b if b < 32 else 0,
    "shr.u32": lambda a, b: a >> min(b, 32),
    "shr.s32": lambda a, b: signed(a) >> min(b, 32),
    "min.s32": lambda a, b: min(signed(a), signed(b)),
    "max.u32": max,
    "popc.b32": lambda a: a.bit_count(),
    "selp.b32": lambda a, b, p: a if p else b,
    "cvt.rn.f32.u32": lambda a: from_float(float(a)),
    "add.f32": lambda a, b: from_float(to_float(a) + to_float(b)),
    "mul.f32": lambda a, b: from_float(to_float(a) * to_float(b)),
    "cvt.rzi.u32.f32": lambda a: int(to_float(a)),
    "cvt.u32.u64": lambda a: a & M32,
}
WIDE: dict[str, Callable[..., int]] = {
    "mul.wide.u32": lambda a, b: a * b,
    "mad.wide.u32": lambda a, b, c: a * b + c,
    "add.s64": lambda a, b: a + b,
    "mov.u64": lambda a: a,
}
COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "ge": lambda a, b: a >= b,
}


@dataclass(frozen=True)
class Line:
    guard: str
    negated: bool
    opcode: str
    operands: list[str]


@dataclass
class Memory:
    """Words by address; an address that was never written reads as all ones."""

    words: dict[int, int] = field(default_factory=dict)

    def load(self, address: int) -> int:
        return self.words.get(address, M32)

    def store(self, address: int, value: int) -> None:
        self.words[address] = value & M32


def parse(body: str) -> tuple[list[Line], dict[str, int]]:
    """Instructions, and where each label points."""
    lines: list[Line] = []
    labels: dict[str, int] = {}
    for text in filter(None, (t.strip() for t in re.split(r"[;\n]", body))):
        if text.endswith(":"):
            labels[text[:-1]] = len(lines)
            continue
        match = re.fullmatch(r"(?:@(!?)(%\w+)\s+)?([\w.]+)\s*(.*)", text)
        assert match, text
        operands = [o.strip() for o in match[4].split(",")] if match[4] else []
        lines.append(Line(match[2] or "", match[1] == "!", match[3], operands))
    return lines, labels


Meeting = tuple[str, bool]


def thread(
    program: tuple[list[Line], dict[str, int]],
    registers: dict[str, int],
    shared: Memory,
    memory: Memory,
) -> Generator[Meeting, int, None]:
    """Run one thread; it stops at barriers and votes, and is sent what the vote was."""
    lines, labels = program
    local = Memory()
    spaces = {"shared": shared, "local": local, "global": memory}
    at = 0

    def value(operand: str) -> int:
        if operand.startswith("%"):
            return registers.get(operand, 0)
        return int(operand, 0)

    def address(operand: str) -> int:
        base, _, offset = operand.strip("[]").partition("+")
        return value(base) + int(offset or 0)

    while at < len(lines):
        line = lines[at]
        at += 1
        if line.guard and bool(registers[line.guard]) == line.negated:
            continue
        name, *parts = line.opcode.split(".")
        target = line.operands[0] if line.operands else ""
        if name == "bra":
            at = labels[target]
        elif name == "ret":
            return
        elif name == "bar":
            yield "barrier", False
        elif name == "vote":
            registers[target] = yield "vote", bool(value(line.operands[1]))
        elif name == "setp":
            a, b = (value(o) & M32 for o in line.operands[1:])
            if parts[1] == "s32":
                a, b = signed(a), signed(b)
            registers[target] = int(COMPARISONS[parts[0]](a, b))
        elif name == "ld":
            registers[target] = spaces[parts[0]].load(address(line.operands[1]))
        elif name == "st":
            spaces[parts[0]].store(address(target), value(line.operands[1]))
        elif name == "red":
            place = address(target)
            memory.store(place, memory.load(place) + value(line.operands[1]))
        elif name == "atom":
            place = address(line.operands[1])
            old, given = spaces[parts[0]].load(place), value(line.operands[2])
            new = {"add": old + given, "max": max(old, given & M32), "exch": given}[parts[1]]
            spaces[parts[0]].store(place, new)
            registers[target] = old
        elif line.opcode in WIDE:
            registers[target] = WIDE[line.opcode](*map(value, line.operands[1:])) & M64
        else:
            given = [value(o) & M32 for o in line.operands[1:]]
            registers[target] = ARITHMETIC[line.opcode](*given) & M32


def run_block(threads: list[Generator[Meeting, int, None]]) -> None:
    """All threads of a block from one meeting to the next; tests write them so that they meet."""
    answers: dict[int, int | None] = dict.fromkeys(range(len(threads)))
    while answers:
        met: dict[int, Meeting] = {}
        for number, answer in answers.items():
            try:
                met[number] = threads[number].send(answer)  # type: ignore[arg-type]
            except StopIteration:
                continue
        assert len({kind for kind, _ in met.values()}) <= 1, "threads meet at different operations"
        answers = {number: _ballot(met, number // 32) for number in met}


def _ballot(met: dict[int, Meeting], warp: int) -> int:
    return sum(told << number % 32 for number, (_, told) in met.items() if number // 32 == warp)


def run_grid(body: str, grid: int, block: int, arrays: dict[str, int], memory: Memory) -> Iterator[None]:
    """Run `body` for each thread; `arrays` are the addresses in the registers of those names."""
    program = parse(body)
    for place in range(grid):
        shared = Memory()
        threads = []
        for number in range(block):
            registers = {"%tid": number, "%at": place * block + number, "%block": place}
            registers |= {f"%{name}": address for name, address in arrays.items()}
            threads.append(thread(program, registers, shared, memory))
        run_block(threads)
        yield
