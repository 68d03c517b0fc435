"""Counts written by hand: rows of (opcode, line, kind, space, columns)."""

from __future__ import annotations

import numpy as np

from gpulab.analysis.profile import Launch, Occupancy, Report, Roofline
from gpulab.analysis.profile.tally import Tally
from gpulab.simulator.observe import COLUMNS, Counts
from gpulab.simulator.ptx import Instruction, Location, Register

Row = tuple[str, int, str, str, dict[str, int]]

FILE = "kernel.py"

# 96 × 128 float32 in 12 blocks of 32 × 32 threads: 384 warps, 12,288 threads; 49,152 B each way.
# The loads run along rows: 4 sectors a request. The stores run down columns: 32.
TRANSPOSE: tuple[Row, ...] = (
    ("mov.u32", 7, "arithmetic", "", {"warps": 384, "threads": 12288, "active": 12288}),
    ("bra", 8, "branch", "", {"warps": 384, "threads": 12288, "active": 0, "uniform": 384}),
    (
        "ld.global.f32",
        9,
        "load",
        "global",
        {"warps": 384, "threads": 12288, "active": 12288, "requests": 384}
        | {"bytes": 49152, "sectors": 1536, "ideal_sectors": 1536},
    ),
    (
        "st.global.f32",
        9,
        "store",
        "global",
        {"warps": 384, "threads": 12288, "active": 12288, "requests": 384}
        | {"bytes": 49152, "sectors": 12288, "ideal_sectors": 1536},
    ),
    ("bra.uni", 9, "branch", "", {"warps": 384, "threads": 12288, "active": 12288}),
)

TEXTS = {
    (FILE, 7): "x, y = cuda.grid(2)",
    (FILE, 8): "if x < a.shape[1] and y < a.shape[0]:",
    (FILE, 9): "out[x, y] = a[y, x]",
}


def counts(rows: tuple[Row, ...], grid: tuple[int, int, int] = (4, 3, 1)) -> Counts:
    table = {name: np.zeros(len(rows), np.int64) for name in COLUMNS}
    instructions, kinds = [], []
    for i, (opcode, line, kind, space, columns) in enumerate(rows):
        guard = Register("%p1") if opcode == "bra" else None
        instructions.append(Instruction(opcode, (), guard, location=Location(FILE, line) if line else None))
        kinds.append((kind, space))
        for name, value in columns.items():
            table[name][i] = value
    return Counts("transpose", tuple(instructions), tuple(kinds), table, grid, (32, 32, 1))


def launch(rows: tuple[Row, ...] = TRANSPOSE, kernel: str = "transpose") -> Launch:
    return Launch(
        kernel=kernel,
        grid=(4, 3, 1),
        block=(32, 32, 1),
        tally=Tally.of(counts(rows)),
        seconds=0.04,
        registers=16,
        spill_bytes=0,
        occupancy=Occupancy(64, 64, "warps"),
        most_loaded=4096,
    )


def report(*launches: Launch, name: str = "transpose") -> Report:
    return Report(name, launches or (launch(),), gpu="A100", compiler="NVVM 13.5", texts=TEXTS)


ROOFLINE = Roofline(intensity=0.5, dtype="float32", ridge=9.56, ceiling=1.02e12, bound="memory")
