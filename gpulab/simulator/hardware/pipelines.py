"""What the time model takes for all GPUs alike, because data sheets leave it out; some of it is
assumed, and what is measured was measured on one H100.

Latencies are cycles from the issue of an instruction to that of one that reads its result, by the pipe as
Nsight Compute calls it; those of memory are in the data sheets. `docs/time_model.md` shows these figures as a
table.
"""

from __future__ import annotations

from .figure import Figure
from .sources import (
    ABDELKHALIK_2022,
    ACCEL_SIM,
    AMPERE_PAPER,
    ARAFA_2019,
    ASSUMED,
    GA102_PAPER,
    JIA_2018,
    LUO_2025,
    MEASURED,
    PPT_GPU,
    RRZE,
    SYNC_PERFORMANCE,
    THROUGHPUTS,
)

LATENCY: dict[str, Figure] = {
    "fma": Figure(4, "cycles", ABDELKHALIK_2022, "a chain of float32 additions on an A100"),
    "alu": Figure(4, "cycles", ARAFA_2019, "integers on Volta and Turing"),
    "fp16": Figure(4, "cycles", PPT_GPU, "Ampere"),
    "fp64": Figure(8, "cycles", ACCEL_SIM, "H100; 6 in the A100's"),
    "xu": Figure(23, "cycles", ACCEL_SIM, "A100 and H100"),
    "tensor": Figure(32, "cycles", PPT_GPU, "Ampere, summed in float32; 16 in float16"),
    "uniform": Figure(4, "cycles", ACCEL_SIM, "A100 and H100"),
    "control": Figure(4, "cycles", ACCEL_SIM, "ends, waiting of warps"),
    "adu": Figure(20, "cycles", ASSUMED, "constants that the cache has"),
    "other": Figure(20, "cycles", ASSUMED, "clocks"),
}
SPECIAL_REGISTER = Figure(20, "cycles", ASSUMED, "the number of a thread or block")
SHUFFLE = Figure(25, "cycles", SYNC_PERFORMANCE, "A100 and RTX 2070 SUPER; 26 on an RTX 4090")
BARRIER = Figure(
    21, "cycles", SYNC_PERFORMANCE, "A100: 21 and 2 for each warp of the block; 20 and 22 on Turing and Ada"
)
BARRIER_WARP = Figure(2, "cycles/warp", SYNC_PERFORMANCE, "what each warp of the block adds to its barrier")

SCHEDULERS = Figure(4, "instructions/cycle/SM", AMPERE_PAPER, "one scheduler in each quarter of an SM")
LSU_LANES = Figure(
    32, "lanes/SM", THROUGHPUTS, "warp shuffles from 7.0 on; the A100 has 32 load and store units"
)
XU_LANES = Figure(
    16, "lanes/SM", THROUGHPUTS, "reciprocals, roots, 2ˣ, log₂, sines and population counts, from 7.0 on"
)
PRODUCT_LANES = Figure(
    64, "lanes/SM", THROUGHPUTS, "32-bit integer products, from 7.0 on, whatever the float32 lanes"
)
PAIR_LANES = Figure(64, "lanes/SM", THROUGHPUTS, "pairs of 16-bit floats, 128 results a cycle; from 7.0 on")
PAIR_LANES_WIDE = Figure(128, "lanes/SM", THROUGHPUTS, "pairs of float16, 256 results a cycle; 8.0 and 9.0")
WIDE_PAIRS = frozenset({(8, 0), (9, 0)})
L1_RATE = Figure(128, "B/cycle/SM", JIA_2018, "V100; shared memory likewise")
L1_RATE_TURING = Figure(64, "B/cycle/SM", GA102_PAPER, "7.5; shared memory likewise")
L2_RATE = Figure(
    20,
    "B/cycle/SM",
    ASSUMED,
    "where no benchmark of the GPU is known; seen were 15 on an L40, 18 on a V100, 22 on an A40",
)
DRAM_SHARE = Figure(
    0.9, "of the peak", RRZE, "where nobody has measured the GPU: 0.85 on an A100, 0.90 on an L40"
)
L2_FETCH = Figure(32, "B", ASSUMED, "what a miss in the L2 brings from DRAM: one sector")
L2_FETCH_HOPPER = Figure(
    64,
    "B",
    MEASURED,
    "9.0: a load of every 32nd float brings twice as many bytes from DRAM as it has sectors",
)
MMA_SHARE = Figure(
    0.629,
    "of the peak",
    LUO_2025,
    "mma.sync and wmma on an H800 PCIe, the mean of table 7 as others quote it; wgmma came to 0.96",
)
ATOMIC_RATE = Figure(
    0.5,
    "passes/cycle",
    MEASURED,
    "in one line of the L2: a pass updates different words of a sector for a warp",
)
L2_REQUEST = Figure(
    80,
    "B",
    MEASURED,
    "what a warp's request for part of a line costs the L2 at least; twice that to write part of a sector",
)
WAIT = Figure(
    1.2,
    "of the latency",
    MEASURED,
    "a warp waits for the last of its sectors; data sheets have one load's time",
)
LAUNCH = Figure(
    2.7e-6,
    "s",
    MEASURED,
    "the part of Nsight Compute's duration that is not the kernel's own work; from one small kernel to "
    "the next, in a full queue, gpu-benches has 1.6 on an L40, 2.5 on an H200, 2.7 on an A100",
)
LAUNCH_BYTES = Figure(
    2500,
    "B",
    MEASURED,
    "what a launch reads from DRAM beside its arrays and its code, the caches being empty",
)
OVERLAP = Figure(2, "(exponent)", MEASURED, "how far parts that are busy at once hide each other")

FIGURES: dict[str, Figure] = {
    **{f"latency, {pipe}": figure for pipe, figure in LATENCY.items()},
    "latency, special register": SPECIAL_REGISTER,
    "latency, shuffle": SHUFFLE,
    "latency, barrier": BARRIER,
    "latency, barrier, by warp": BARRIER_WARP,
    "issue": SCHEDULERS,
    "lsu": LSU_LANES,
    "xu": XU_LANES,
    "integer products": PRODUCT_LANES,
    "fp16": PAIR_LANES,
    "fp16, wide": PAIR_LANES_WIDE,
    "L1": L1_RATE,
    "L1, Turing": L1_RATE_TURING,
    "L2": L2_RATE,
    "DRAM": DRAM_SHARE,
    "DRAM, for a miss": L2_FETCH,
    "DRAM, for a miss, Hopper": L2_FETCH_HOPPER,
    "tensor cores, mma on Hopper": MMA_SHARE,
    "atomics": ATOMIC_RATE,
    "L2, for a request": L2_REQUEST,
    "wait": WAIT,
    "launch": LAUNCH,
    "DRAM, for a launch": LAUNCH_BYTES,
    "overlap": OVERLAP,
}


def pair_lanes(cc: tuple[int, int]) -> Figure:
    """Lanes of an SM for instructions on pairs of 16-bit floats."""
    return PAIR_LANES_WIDE if cc in WIDE_PAIRS else PAIR_LANES


def l1_rate(cc: tuple[int, int]) -> Figure:
    """Bytes that the L1 or shared memory of an SM delivers per cycle."""
    return L1_RATE_TURING if cc == (7, 5) else L1_RATE


def l2_fetch(cc: tuple[int, int]) -> Figure:
    """Bytes that a miss in the L2 brings from DRAM."""
    return L2_FETCH_HOPPER if cc == (9, 0) else L2_FETCH
