"""The counters once more: loops over blocks, warps and lanes in plain Python, with sets. Slow, and hard to
get wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from gpulab.simulator.ptx import Instruction
from gpulab.simulator.simt import Access, Chunk, Observer

WARP = 32
Row = int | tuple[int, str]


class PlainCounts(Observer):
    """`table[column][instruction]`, as `Counts.table` without the operations."""

    def __init__(self) -> None:
        self.table: dict[str, dict[Row, int]] = defaultdict(lambda: defaultdict(int))
        self.guards: dict[int, int] = defaultdict(int)
        self.loaded: dict[int, int] = defaultdict(int)  # bytes of global loads, by block
        self.asked: dict[int, int] = defaultdict(int)  # … of loads and atomics
        self.passed: dict[tuple[int, int], int] = defaultdict(int)  # warps, by instruction and block

    def executed(self, first: int, stop: int, lanes: np.ndarray | None, chunk: Chunk) -> None:
        for block, on in warps(lanes, chunk):
            for index in range(first, stop):
                self.passed[index, int(chunk.blocks[block])] += 1
                self.table["warps"][index] += 1
                self.table["threads"][index] += len(on)

    def guarded(self, index: int, lanes: np.ndarray, chunk: Chunk) -> None:
        self.guards[index] += sum(len(on) for _, on in warps(lanes, chunk))

    def branch(self, index: int, lanes: np.ndarray | None, taken: np.ndarray, chunk: Chunk) -> None:
        ways = np.broadcast_to(taken, (len(chunk.blocks), chunk.lanes_per_block))
        for block, on in warps(lanes, chunk):
            self.table["uniform"][index] += len({int(ways[block, lane]) for lane in on}) == 1

    def access(self, access: Access) -> None:
        index, size = row_of(access), access.size
        shape = (len(access.chunk.blocks), access.chunk.lanes_per_block)
        places = np.broadcast_to(access.address, shape)
        for block, on in warps(access.lanes, access.chunk):
            addresses = {lane % WARP: int(places[block, lane]) for lane in on}
            self.add(index, "requests", 1)
            self.add(index, "bytes", size * len(on))
            if access.space == "global" and access.kind != "store":
                self.asked[int(access.chunk.blocks[block])] += size * len(on)
                self.loaded[int(access.chunk.blocks[block])] += size * len(on) * (access.kind == "load")
            if access.kind in ("atomic", "reduction"):
                self.add(index, "conflicts", len(on) - len(set(addresses.values())))
            if access.space == "shared":
                self.banks(index, addresses, size)
            elif access.space == "const":
                self.add(index, "wavefronts", len({a // 4 for a in addresses.values()}))
                self.add(index, "ideal_wavefronts", 1)
            elif access.space == "local":
                words = {
                    (a + 4 * w) // 4 * 4 + lane // 8
                    for lane, a in addresses.items()
                    for w in range(max(size // 4, 1))
                }
                self.add(index, "sectors", len(words))
                self.add(index, "ideal_sectors", -(-len(on) * max(size, 4) // 32))
            else:
                octets = {a + i for a in addresses.values() for i in range(size)}
                self.add(index, "sectors", len({o // 32 for o in octets}))
                self.add(index, "ideal_sectors", -(-len(octets) // 32))

    def most_handed(self, instructions: tuple[Instruction, ...]) -> int:
        """Warps at barriers, mbarriers, atomics and strong loads, of the block that has most."""
        by_block: dict[int, int] = defaultdict(int)
        for (index, block), passes in self.passed.items():
            name, *rest = instructions[index].parts
            waits = name in ("atom", "red", "mbarrier") or (name in ("bar", "barrier") and "warp" not in rest)
            if waits or (name == "ld" and {"acquire", "relaxed", "volatile"} & set(rest)):
                by_block[block] += passes
        return max(by_block.values(), default=0)

    def banks(self, index: Row, addresses: dict[int, int], size: int) -> None:
        together = WARP * 4 // max(size, 4)
        for first in range(0, WARP, together):
            words = {
                (addresses[lane] + 4 * w) // 4
                for lane in range(first, first + together)
                if lane in addresses
                for w in range(max(size // 4, 1))
            }
            in_bank: dict[int, int] = defaultdict(int)
            for word in words:
                in_bank[word % 32] += 1
            self.add(index, "wavefronts", max(in_bank.values(), default=0))
            self.add(index, "ideal_wavefronts", bool(words))

    def add(self, index: Row, column: str, value: int) -> None:
        self.table[column][index] += value

    def column(self, name: str, instructions: tuple[Instruction, ...]) -> np.ndarray:
        """A column of the table as an array; a program's generic accesses have rows of their own at its end."""
        values: dict[Row, int] = dict(self.table[name])
        if name == "active":
            values = dict(self.table["threads"]) | dict(self.guards)
        rows: list[Row] = list(range(len(instructions)))
        rows += [
            (index, space)
            for index, instruction in enumerate(instructions)
            if generic(instruction)
            for space in ("shared", "local")
        ]
        return np.array([values.get(row, 0) for row in rows], np.int64)


def generic(instruction: Instruction) -> bool:
    """A load, a store or an atomic that names no space."""
    memory = instruction.parts[0] in ("ld", "st", "atom", "red")
    return memory and not {"global", "shared", "local", "const", "param"} & set(instruction.parts)


def row_of(access: Access) -> Row:
    """By instruction, or by instruction and space where a generic address went elsewhere than to global memory."""
    elsewhere = generic(access.instruction) and access.space != "global"
    return (access.index, access.space) if elsewhere else access.index


def warps(lanes: np.ndarray | None, chunk: Chunk) -> Iterator[tuple[int, list[int]]]:
    """(row of the block, the lanes that take part) for each warp with such lanes."""
    shape = (len(chunk.blocks), chunk.lanes_per_block)
    there = np.broadcast_to(True if lanes is None else lanes, shape)
    for block in range(shape[0]):
        for first in range(0, shape[1], WARP):
            on = [lane for lane in range(first, first + WARP) if there[block, lane]]
            if on:
                yield block, on
