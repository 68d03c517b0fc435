"""How often each instruction of a kernel's machine code runs.

PTX is what is simulated and counted; ptxas makes other instructions of it. Each of those comes from a line of
the PTX, which the machine code names when every instruction of the PTX is marked with its own line. So a
basic block of machine code runs as often as the lines say that it holds. Where ptxas has unrolled a loop, a
line is part of several blocks, and occurs several times in one of them. Loads, stores and other instructions
that it neither doubles nor moves show how often. What they leave open follows from the branches: as many
threads leave a block as come to it (`flow`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import Any

import numpy as np

from gpulab.foundation.display import Card, Heading, Note, Shown, Span, Table
from gpulab.simulator import ptx
from gpulab.simulator.compile.kernel import CompiledKernel
from gpulab.simulator.compile.machine_code import MachineInstruction
from gpulab.simulator.compile.machine_code import sass as listing_of
from gpulab.simulator.observe import Counts

from .basic_blocks import Block, base, guarded, opcode, split
from .least_squares import nonnegative
from .pipes import PIPES, opcodes, pipe_of
from .watching import Seen, watched

# Instructions of which ptxas makes one for one of PTX, and which it leaves in their loop.
KEPT = opcodes("LD LDG LDS LDL LDSM LDGSTS ST STG STS STL ATOM ATOMG ATOMS RED REDG SHFL BAR")
# … and those that are mostly so.
MOSTLY = opcodes("FFMA FMUL FADD DFMA DMUL DADD HFMA2 HADD2 HMUL2 IADD3 IMAD LOP3 LEA SHF MUFU")
MANY = 2  # kinds of machine instructions for one of PTX: where there are more, it is a whole calculation

Array = np.ndarray


@dataclass(frozen=True, repr=False)
class Executed(Shown):
    """What launches execute on a GPU of compute capability `cc`.

    `instructions` is the machine code of the kernels that ran, whose `line` counts in the PTX; `warps` says
    how many warps execute each; `ptx_warps` is how many warp instructions the PTX has. The machine code is
    exact; how often it runs is estimated from exact counts.

    Where only some blocks were simulated (`simulated` of `blocks`), the counts are estimates, too; `error` is
    the standard error of `total`.
    """

    kernel: str
    cc: tuple[int, int]
    instructions: tuple[MachineInstruction, ...]
    warps: tuple[int, ...]
    ptx_warps: int
    simulated: int = 0
    blocks: int = 0
    error: float = 0.0

    @property
    def total(self) -> int:
        """Warp instructions, as ``smsp__inst_executed.sum`` of Nsight Compute."""
        return sum(self.warps)

    @property
    def pipes(self) -> dict[str, int]:
        """Warp instructions of each pipe that has any."""
        found = Counter[str]()
        for instruction, n in zip(self.instructions, self.warps, strict=True):
            found[pipe_of(opcode(instruction))] += n
        return {pipe: found[pipe] for pipe in PIPES if found[pipe]}

    @property
    def by_opcode(self) -> dict[str, int]:
        """Warp instructions of each opcode, up to its first dot, the most frequent first."""
        found = Counter[str]()
        for instruction, n in zip(self.instructions, self.warps, strict=True):
            found[base(opcode(instruction))] += n
        return {name: n for name, n in found.most_common() if n}

    def card(self) -> Card:
        whole = self.total or 1
        rows = tuple(
            (pipe, PIPES[pipe][0], f"{n:,}", f"{100 * n / whole:.1f} %") for pipe, n in self.pipes.items()
        )
        header = ("pipe", "for", "warp instructions", "share")
        ratio = f"{self.total / self.ptx_warps:.2f} of a machine instruction for one of PTX"
        notes = [f"{self.total:,} machine instructions, {self.ptx_warps:,} of PTX: {ratio}."]
        if self.simulated < self.blocks:
            percent = f"{100 * self.error / whole:.2g} %"
            notes.append(
                f"From {self.simulated:,} of {self.blocks:,} blocks; standard error of the draw {percent}."
            )
        notes.append("The code is the compiler's; how often it runs is estimated from counts.")
        return Card(
            (
                Heading(Span(self.kernel, "strong"), f"machine code {self.cc[0]}.{self.cc[1]}"),
                Table(header, rows, frozenset({0, 1})),
                *(Note(Span(note, "dim")) for note in notes),
            )
        )


def sass(
    run: Any, *args: Any, cc: tuple[int, int] | None = None, sample: int | None = None, **named: Any
) -> Executed:
    """Run ``run(*args, **named)`` and say which machine instructions that takes.

    `run` is a kernel with its launch shape, ``kernel[grid, block]``, or host code that launches kernels. `cc`
    is the compute capability of the GPU, the device's by default; `sample` about how many blocks of each
    launch to simulate, as in `gpulab.machine.modelled`. Raises NothingLaunched, NoDisassembler without
    nvdisasm, CompileError where `cc` cannot run the PTX, ValueError for a sample of nothing.

    >>> @cuda.jit
    ... def fill(out):
    ...     i = cuda.grid(1)
    ...     if i < out.size:
    ...         out[i] = 1
    >>> executed = sass(fill[4, 32], np.zeros(100, np.float32))
    >>> executed.kernel
    'fill'
    >>> any(opcode.startswith("STG") for opcode in executed.by_opcode)
    True
    """
    seen = watched("gpulab.sass", run, args, named, sample=sample)
    parts, squared = [], 0.0
    for digest in dict.fromkeys(each.launch.kernel.digest for each in seen):
        mine = [each for each in seen if each.launch.kernel.digest == digest]
        kernel = mine[0].launch.kernel
        parts.append(of_kernel(kernel, [each.counts() for each in mine], cc or kernel.cc))
        for each in mine:

            def total(weights: Array, each: Seen = each, kernel: CompiledKernel = kernel) -> float:
                return of_kernel(kernel, [each.counts(weights)], cc or kernel.cc).total

            squared += each.sample.error(total) ** 2
    return Executed(
        ", ".join(dict.fromkeys(part.kernel for part in parts)),
        parts[0].cc,
        tuple(i for part in parts for i in part.instructions),
        tuple(n for part in parts for n in part.warps),
        sum(part.ptx_warps for part in parts),
        sum(each.sample.simulated for each in seen),
        sum(each.sample.blocks for each in seen),
        squared**0.5,
    )


def of_kernel(kernel: CompiledKernel, counts: Sequence[Counts], cc: tuple[int, int]) -> Executed:
    """What launches of one kernel execute; `counts` are theirs."""
    listing = machine_code(kernel, cc)
    lines = by_line(counts)
    threads = sum(_threads(count) for count in counts)
    warps = executed(listing, lines, threads)
    return Executed(kernel.name, cc, listing, tuple(warps), sum(c.total("warps") for c in counts))


def machine_code(kernel: CompiledKernel, cc: tuple[int, int]) -> tuple[MachineInstruction, ...]:
    """The machine code of a kernel, whose instructions name lines of its PTX."""
    return listing_of(marked(kernel.ptx), cc, kernel.entry)


def added_up(listing: Sequence[MachineInstruction]) -> frozenset[int]:
    """Lines of the PTX whose atomics a warp adds up first: where all lanes update one address, ptxas lets
    them vote and one of them act."""
    votes = {i.line for i in listing if opcode(i).startswith("VOTE")}
    return frozenset(
        i.line
        for i in listing
        if guarded(i) and opcode(i).startswith(("ATOM", "RED.", "REDG")) and i.line in votes
    )


# What says of PTX where it comes from.
PLACES = (".loc ", ".loc\t", ".loc_intermediate", ".file ", ".file\t")
INTERMEDIATE = ".nv_intermediate_source_section"


@lru_cache(maxsize=64)
def marked(text: str) -> str:
    """The same PTX, each instruction of which says that it comes from its own line of `text`.

    All else stays as it is, word for word: another word on a loop, and ptxas makes other machine code.
    """
    functions = ptx.parse(text).functions.values()
    starts = {i.line for function in functions for block in function.blocks for i in block.instructions}
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        if number in starts:
            lines.append(f"\t.loc 1 {number} 0")
        if line.startswith(INTERMEDIATE):  # cuTile's, at the end of the text
            break
        if not line.lstrip().startswith(PLACES):
            lines.append(line)
    return "\n".join([*lines, '\t.file 1 "kernel.ptx"', ""])


@dataclass(frozen=True)
class Line:
    """How many warps ran a line of the PTX, and how many threads."""

    warps: int
    threads: int


def by_line(counts: Sequence[Counts]) -> dict[int, Line]:
    """How often each line of the PTX was run."""
    warps, threads = Counter[int](), Counter[int]()
    for count in counts:
        for instruction, *both in zip(
            count.instructions, count.table["warps"], count.table["threads"], strict=True
        ):
            warps[instruction.line] += int(both[0])
            threads[instruction.line] += int(both[1])
    return {line: Line(warps[line], threads[line]) for line in warps}


def _threads(counts: Counts) -> int:
    x, y, z = counts.grid
    a, b, c = counts.block
    return x * y * z * a * b * c


SURE = 1e3  # the weight of what must hold: what comes to a block leaves it
OUT = -1  # an edge that leaves the kernel
# How much a block's own estimate weighs, by what it comes from: instructions of KEPT, of MOSTLY, lines that
# are in no other block, any other lines.
WEIGHTS = (1.0, 0.3, 0.1, 0.01)


def executed(listing: Sequence[MachineInstruction], lines: Mapping[int, Line], threads: int) -> list[int]:
    """How many warps run each instruction of a listing: `lines` says it of the lines of the PTX, `threads` is
    how many threads there are."""
    blocks = split(listing)
    counted = {line: n.threads for line, n in lines.items()}
    every = {(i.line, base(opcode(i))) for block in blocks for i in block.instructions}
    kinds = Counter(line for line, _ in every)
    one_for_one = {line: n for line, n in counted.items() if kinds[line] <= MANY}
    sure = _votes(blocks, one_for_one, threads, KEPT)
    likely = _votes(blocks, one_for_one, threads, KEPT | MOSTLY)
    holders = Counter(
        line for block in blocks if block.reached for line in {i.line for i in block.instructions}
    )
    guesses: list[tuple[float, float]] = []  # of threads, and how much it weighs
    for number, block in enumerate(blocks):
        known = [i.line for i in block.instructions if tells(i, lines)]
        alone: list[float] = [counted[line] for line in known if holders[line] == 1]
        votes: tuple[list[float], ...] = (
            sure[number],
            likely[number],
            alone,
            [counted[line] for line in known],
        )
        guess = next(((median(of), weight) for of, weight in zip(votes, WEIGHTS, strict=True) if of), None)
        guesses.append(guess or (0.0, 0.0))
    found: list[int] = []
    for block, n in zip(blocks, flow(blocks, guesses, threads), strict=True):
        mine = [lines[i.line] for i in block.instructions if tells(i, lines) and lines[i.line].threads]
        nearest = min(mine, key=lambda line: abs(line.threads - n), default=Line(1, 32))
        times = round(n * nearest.warps / nearest.threads)
        found += [times] * len(block.instructions)
    return found


def tells(instruction: MachineInstruction, lines: Mapping[int, Line]) -> bool:
    """Whether it runs as often as its line. BSYNC, where lanes meet again, has the line before that."""
    return instruction.line in lines and not guarded(instruction) and opcode(instruction) != "BSYNC"


def flow(blocks: Sequence[Block], guesses: Sequence[tuple[float, float]], threads: int) -> list[float]:
    """How many threads run each block: as near to the guesses (value, weight) as can be, with as many threads
    coming to a block as leave it. `threads` begin at the first block.

    That is a problem of least squares in the threads on each edge between two blocks, none of which is
    negative.
    """
    edges = [(n, way) for n, block in enumerate(blocks) for way in block.ways]
    edges += [(n, OUT) for n, block in enumerate(blocks) if block.reached and (block.ends or not block.ways)]
    comes, leaves = np.zeros((2, len(blocks), len(edges)))
    for edge, (start, end) in enumerate(edges):
        leaves[start, edge] = 1
        if end != OUT:
            comes[end, edge] = 1
    begin = np.zeros(len(blocks))
    begin[0] = 1.0
    values, weights = np.array(guesses).T
    rows = np.concatenate([SURE * (leaves - comes), weights[:, None] * leaves])
    flows = nonnegative(rows, np.concatenate([SURE * begin, weights * values / max(threads, 1)]))
    return list(leaves @ flows * threads)


def _votes(
    blocks: Sequence[Block], lines: Mapping[int, int], threads: int, telling: Set[str]
) -> list[list[float]]:
    """For each block how often it runs, by each line of which it has `telling` opcodes."""
    copies: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for number, block in enumerate(blocks):
        if not block.reached:
            continue
        names = Counter((i.line, opcode(i)) for i in block.instructions if not guarded(i))
        for (line, name), n in names.items():
            if line in lines and base(name) in telling:
                copies[line][number] = max(n, copies[line].get(number, 0))
    votes: list[list[float]] = [[] for _ in blocks]
    for line, of in copies.items():
        for number, times in _shared(lines[line], of, threads).items():
            votes[number].append(times)
    return votes


def _shared(count: int, copies: Mapping[int, int], threads: int) -> dict[int, float]:
    """How often each block runs, if together they run a line `count` times and hold `copies` of it each.

    The block with the most copies is an unrolled loop: all warps run it as often as its copies fit. What
    is left is for the next. Blocks with the same number of copies share alike.
    """
    found: dict[int, float] = {}
    left = float(count)
    sizes = sorted(set(copies.values()), reverse=True)
    for size in sizes:
        alike = [number for number, n in copies.items() if n == size]
        times = left / size
        if size != sizes[-1] and threads:
            times = left // (size * threads) * threads
        for number in alike:
            found[number] = times / len(alike)
        left -= times * size
    return found
