"""One warp alone: the cycles of its instructions in order, each waiting for what it reads.

A scheduler issues one instruction of a warp per cycle, in order. One that reads a register waits until the
instruction that writes it is done. Predicates and the registers of a whole warp count as registers do.

A warpgroup's products are made one after the other while the warp goes on; it waits where it says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from gpulab.simulator.compile.machine_code import MachineInstruction
from gpulab.simulator.hardware import pipelines

from .basic_blocks import guarded, opcode, split
from .pipes import pipe_of

REGISTER = re.compile(r"\b(U?R\d+|U?P\d+)(\.64)?")
# How many registers an opcode's suffix makes the destination.
WIDE = {"64": 2, "128": 4, "WIDE": 2}
PRODUCTS = ("HGMMA", "IGMMA", "QGMMA")  # of a warpgroup
COLUMNS = re.compile(r"\.64x(\d+)x")
WAIT = re.compile(r"WARPGROUP\.DEPBAR\.LE gsb0, (0x[0-9a-f]+)")

Latency = Callable[[MachineInstruction], float]


def latency_of(shared: float, memory: Callable[[int], float], warps: int = 1, column: float = 0) -> Latency:
    """The latency of an instruction, in cycles: of `shared` memory; of global `memory` by the line of the PTX
    that loads; of a barrier that so many `warps` come to; of a warpgroup's product, so much for each
    `column`, and no less than of any other."""

    def latency(instruction: MachineInstruction) -> float:
        name = opcode(instruction)
        base = name.partition(".")[0]
        if base in ("LDS", "LDSM", "ATOMS"):
            return shared
        if base in ("LD", "LDG", "ATOM", "ATOMG", "LDL", "LDGSTS"):
            return memory(instruction.line)
        if base == "SHFL":
            return float(pipelines.SHUFFLE)
        if base == "BAR":
            return float(pipelines.BARRIER) + warps * float(pipelines.BARRIER_WARP)
        if base in ("S2R", "S2UR"):
            return float(pipelines.SPECIAL_REGISTER)
        if base in PRODUCTS and (found := COLUMNS.search(name)):
            return max(int(found[1]) * column, float(pipelines.LATENCY["tensor"]))
        pipe = pipe_of(name)
        return float(pipelines.LATENCY[pipe]) if pipe in pipelines.LATENCY else shared

    return latency


def cycles(instructions: Sequence[MachineInstruction], latency: Latency, rounds: int = 1) -> float:
    """The cycles of a sequence; of several rounds, as of a loop, the last one's."""
    ready: dict[str, float] = {}
    groups: list[float] = []  # when each group of a warpgroup's products is done
    now = before = made = 0.0
    for _ in range(rounds):
        before = now
        for instruction in instructions:
            name = opcode(instruction)
            if name.startswith(PRODUCTS):
                now += 1
                made = max(now, made) + latency(instruction)
                if "gsb0" in instruction.text:
                    groups.append(made)
                continue
            if wait := WAIT.search(instruction.text):
                over = groups[: max(len(groups) - int(wait[1], 16), 0)]
                now = max(now + 1, *over, 0)
                del groups[: len(over)]
                continue
            written, read = registers(instruction)
            now = max(now + 1, *(ready.get(register, 0) for register in read), 0)
            done = now + latency(instruction)
            if name.startswith(("BAR", "DEPBAR", "WARPSYNC")):
                now = done
            for register in written:
                ready[register] = done
    return now - before


def registers(instruction: MachineInstruction) -> tuple[list[str], list[str]]:
    """What an instruction writes and reads."""
    name = opcode(instruction)
    text = instruction.text
    guard = [text[1:].split()[0].lstrip("!")] if guarded(instruction) else []
    operands = text.partition(name)[2].split(",")
    base, *suffixes = name.split(".")
    width = max((WIDE.get(suffix, 1) for suffix in suffixes), default=1)
    stores = base.startswith(("ST", "RED", "BRA", "EXIT", "BAR", "BSSY", "BSYNC", "DEPBAR"))
    written: list[str] = []
    if not stores and (match := re.match(r"\s*(U?R\d+|U?RZ)\b", operands[0])):
        written += _several(match[1], width)
        operands.pop(0)
    while not stores and operands and (match := re.fullmatch(r"\s*(U?P\d|U?PT)\s*", operands[0])):
        written.append(match[1])
        operands.pop(0)
    read = [
        register
        for operand in operands
        for match in REGISTER.finditer(operand)
        for register in _several(match[1], 2 if match[2] else width if stores else 1)
    ]
    return written, guard + read


def _several(register: str, count: int) -> list[str]:
    """The register and those behind it that belong to a wide value."""
    match = re.fullmatch(r"(U?R)(\d+)", register)
    return [f"{match[1]}{int(match[2]) + i}" for i in range(count)] if match else [register]


def one_warp(
    instructions: Sequence[MachineInstruction], warps: Iterable[int], all_warps: int, latency: Latency
) -> float:
    """The cycles of an average warp: `warps` says how many warps run each instruction, of `all_warps`."""
    times = list(warps)
    total, first = 0.0, 0
    for block in split(instructions):
        runs = times[first] / max(all_warps, 1)
        first += len(block.instructions)
        if runs:
            total += runs * cycles(block.instructions, latency, rounds=3 if runs > 1 else 1)
    return total
