"""What the time model takes for all GPUs alike, because data sheets leave it out; much of it is assumed.

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
    KEPLER_PAPER,
    LUO_2025,
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
    "control": Figure(4, "cycles", ACCEL_SIM, "branches"),
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
MMA_SHARE = Figure(
    0.629,
    "of the peak",
    LUO_2025,
    "mma.sync and wmma on an H800 PCIe, the mean of table 7 as others quote it; wgmma came to 0.96",
)
ATOMIC_RATE = Figure(1, "operations/cycle", KEPLER_PAPER, "on one address; assumed to hold since")
LAUNCH = Figure(
    2e-6,
    "s",
    RRZE,
    "from one small kernel to the next, the queue full: 1.6 on an L40, 2.5 on an H200, 2.7 on an A100",
)
SHARPNESS = Figure(4, "(exponent)", ASSUMED, "how fast the longer of throughput and latency takes over")

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
    "tensor cores, mma on Hopper": MMA_SHARE,
    "atomics": ATOMIC_RATE,
    "launch": LAUNCH,
    "sharpness": SHARPNESS,
}


def pair_lanes(cc: tuple[int, int]) -> Figure:
    """Lanes of an SM for instructions on pairs of 16-bit floats."""
    return PAIR_LANES_WIDE if cc in WIDE_PAIRS else PAIR_LANES


def l1_rate(cc: tuple[int, int]) -> Figure:
    """Bytes that the L1 or shared memory of an SM delivers per cycle."""
    return L1_RATE_TURING if cc == (7, 5) else L1_RATE
