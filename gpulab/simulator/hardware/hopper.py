"""Hopper (2022): float8, asynchronous copies of whole tiles, clusters of blocks.

The tensor cores run at a lower clock than the ordinary lanes: 989.4 TFLOP/s is 132 × 2,048 × 2 × 1.83 GHz,
66.9 TFLOP/s of float32 is 132 × 128 × 2 × 1.98 GHz. INT4 has no published rate from Hopper on.
"""

from __future__ import annotations

from dataclasses import replace

from .figure import KIB, MIB, Figure
from .gpu import GPU
from .sources import ARITHMETIC, H100_NVL_BRIEF, H100_SHEET, H200_SHEET, HOPPER_PAPER, LUO_2025, RRZE

_P = HOPPER_PAPER
_S = H100_SHEET
_HALF = "half of the sheet's figure, which is with sparsity"
_NAMED = "in the file h200.txt, whose DRAM rate of 3.89 TB/s is rather a GH200's; the same architecture"
_WHOLE_L2 = Figure(
    60 * MIB,
    "B",
    RRZE,
    "as devices report it; in h200.txt the rate holds up to 44 MB, in h100_pcie.txt to 37 MB",
)
_CARD = "measured on an H800 PCIe, the same chip with as many SMs; as others quote it"
_BOARD = "measured on a GH200, the same architecture at 1.98 GHz"

H100 = GPU(
    name="H100",
    product="H100 SXM5 80 GB",
    architecture="Hopper",
    cc=(9, 0),
    year=Figure(2022, "year", _P),
    sms=Figure(132, "SMs", _P),
    fp32_lanes=Figure(128, "lanes/SM", _P),
    fp64_lanes=Figure(64, "lanes/SM", _P),
    int32_lanes=Figure(64, "lanes/SM", _P),
    tensor_cores=Figure(4, "tensor cores/SM", _P),
    boost_clock=Figure(1980e6, "Hz", _P),
    tensor_clock=Figure(1830e6, "Hz", _P),
    l1_bytes=Figure(256 * KIB, "B", _P),
    l2_bytes=Figure(50 * MIB, "B", _P),
    dram_bytes=Figure(80e9, "B", _S),
    dram_bandwidth=Figure(3350e9, "B/s", _S),
    l2_seen=Figure(9.8e12, "B/s", RRZE, _NAMED),
    tdp=Figure(700, "W", _S),
    tensor_fma={
        "float64": Figure(128, "FMA/clock/SM", _P),
        "tfloat32": Figure(1024, "FMA/clock/SM", _P),
        "float16": Figure(2048, "FMA/clock/SM", _P),
        "bfloat16": Figure(2048, "FMA/clock/SM", _P),
        "float8": Figure(4096, "FMA/clock/SM", _P),
        "int8": Figure(4096, "FMA/clock/SM", _P),
    },
    tensor_dense={
        "float64": Figure(66.9e12, "FLOP/s", _P),
        "tfloat32": Figure(494.7e12, "FLOP/s", _P),
        "float16": Figure(989.4e12, "FLOP/s", _P),
        "bfloat16": Figure(989.4e12, "FLOP/s", _P),
        "float8": Figure(1978.9e12, "FLOP/s", _P),
        "int8": Figure(1978.9e12, "OP/s", _P),
    },
    tensor_sparse={
        "tfloat32": Figure(989.4e12, "FLOP/s", _P),
        "float16": Figure(1978.9e12, "FLOP/s", _P),
        "bfloat16": Figure(1978.9e12, "FLOP/s", _P),
        "float8": Figure(3957.8e12, "FLOP/s", _P),
        "int8": Figure(3957.8e12, "OP/s", _P),
    },
    stated={
        "float32": Figure(66.9e12, "FLOP/s", _P),
        "float64": Figure(33.5e12, "FLOP/s", _P),
        "int32": Figure(33.5e12, "OP/s", _P),
    },
    shared_latency=Figure(29, "cycles", LUO_2025, "measured on an H800 PCIe, the same architecture"),
    l1_latency=Figure(32, "cycles", RRZE, _BOARD),
    l2_latency=Figure(280, "cycles", RRZE, f"the near half of the L2; {_BOARD}"),
    dram_latency=Figure(688, "cycles", RRZE, _BOARD),
    gpcs=Figure(8, "GPCs", _P),
    tpcs=Figure(66, "TPCs", _P),
    bus_bits=Figure(5120, "bit", _P),
    die_area=Figure(814, "mm²", _P),
    transistors=Figure(80e9, "transistors", _P),
    host_link="PCIe 5.0 ×16",
    gpu_link="NVLink 4",
    aliases=("h100-sxm", "h100-sxm5", "h100-80gb", "h100-80gb-hbm3"),
)

# The card: fewer SMs, lower clocks, half the power, and the memory of an A100.
H100_PCIE = replace(
    H100,
    name="H100 PCIe",
    product="H100 PCIe 80 GB",
    sms=Figure(114, "SMs", _P),
    boost_clock=Figure(1755e6, "Hz", _P),
    tensor_clock=Figure(1620e6, "Hz", _P),
    dram_bandwidth=Figure(2039e9, "B/s", _P),
    dram_seen=Figure(1704e9, "B/s", RRZE),
    l2_seen=Figure(6.9e12, "B/s", RRZE),
    tdp=Figure(350, "W", _P),
    tensor_dense={
        "float64": Figure(51.2e12, "FLOP/s", _P),
        "tfloat32": Figure(378e12, "FLOP/s", _P),
        "float16": Figure(756e12, "FLOP/s", _P),
        "bfloat16": Figure(756e12, "FLOP/s", _P),
        "float8": Figure(1513e12, "FLOP/s", _P),
        "int8": Figure(1513e12, "OP/s", _P),
    },
    tensor_sparse={
        "tfloat32": Figure(756e12, "FLOP/s", _P),
        "float16": Figure(1513e12, "FLOP/s", _P),
        "bfloat16": Figure(1513e12, "FLOP/s", _P),
        "float8": Figure(3026e12, "FLOP/s", _P),
        "int8": Figure(3026e12, "OP/s", _P),
    },
    stated={
        "float32": Figure(51.2e12, "FLOP/s", _P),
        "float64": Figure(25.6e12, "FLOP/s", _P),
        "int32": Figure(25.6e12, "OP/s", _P),
    },
    gpcs=None,
    tpcs=Figure(57, "TPCs", _P),
    l1_latency=Figure(32, "cycles", LUO_2025, _CARD),
    l2_latency=Figure(258, "cycles", LUO_2025, f"the near half of the L2, 414 in the far half; {_CARD}"),
    dram_latency=Figure(656, "cycles", LUO_2025, _CARD),
    gpu_link="",  # bridges between cards are an option
    aliases=("h100-pcie-80gb",),
)

# The same chip with more and faster memory.
H200 = replace(
    H100,
    name="H200",
    product="H200 SXM5 141 GB",
    year=Figure(2023, "year", H200_SHEET, "announced; shipped in 2024"),
    l2_bytes=_WHOLE_L2,
    dram_bytes=Figure(141e9, "B", H200_SHEET),
    dram_bandwidth=Figure(4800e9, "B/s", H200_SHEET),
    tdp=Figure(700, "W", H200_SHEET),
    stated={"float32": Figure(67e12, "FLOP/s", H200_SHEET), "float64": Figure(34e12, "FLOP/s", H200_SHEET)},
    tensor_dense={
        "float64": Figure(67e12, "FLOP/s", H200_SHEET),
        "tfloat32": Figure(494.5e12, "FLOP/s", H200_SHEET, _HALF),
        "float16": Figure(989.5e12, "FLOP/s", H200_SHEET, _HALF),
        "bfloat16": Figure(989.5e12, "FLOP/s", H200_SHEET, _HALF),
        "float8": Figure(1979e12, "FLOP/s", H200_SHEET, _HALF),
        "int8": Figure(1979e12, "OP/s", H200_SHEET, _HALF),
    },
    tensor_sparse={
        "tfloat32": Figure(989e12, "FLOP/s", H200_SHEET),
        "float16": Figure(1979e12, "FLOP/s", H200_SHEET),
        "bfloat16": Figure(1979e12, "FLOP/s", H200_SHEET),
        "float8": Figure(3958e12, "FLOP/s", H200_SHEET),
        "int8": Figure(3958e12, "OP/s", H200_SHEET),
    },
    bus_bits=None,  # not stated
    aliases=("h200-sxm", "h200-141gb", "h200-141gb-hbm3e"),
)

_N = H100_NVL_BRIEF

# The larger card: as many SMs as the module, at the clock of a card, and more of its memory.
H100_NVL = replace(
    H100,
    name="H100 NVL",
    product="H100 NVL 94 GB",
    year=Figure(2023, "year", _S),
    sms=Figure(132, "SMs", ARITHMETIC, "60 TFLOP/s ÷ (128 × 2 × 1.785 GHz), and what devices report"),
    boost_clock=Figure(1785e6, "Hz", _N),
    tensor_clock=Figure(1545e6, "Hz", ARITHMETIC, "835.5 TFLOP/s ÷ (132 × 2,048 × 2); not stated by NVIDIA"),
    l2_bytes=_WHOLE_L2,
    dram_bytes=Figure(94e9, "B", _S),
    dram_bandwidth=Figure(3938e9, "B/s", _N),
    tdp=Figure(400, "W", _N),
    tensor_dense={
        "float64": Figure(60e12, "FLOP/s", _S),
        "tfloat32": Figure(417.5e12, "FLOP/s", _S, _HALF),
        "float16": Figure(835.5e12, "FLOP/s", _S, _HALF),
        "bfloat16": Figure(835.5e12, "FLOP/s", _S, _HALF),
        "float8": Figure(1670.5e12, "FLOP/s", _S, _HALF),
        "int8": Figure(1670.5e12, "OP/s", _S, _HALF),
    },
    tensor_sparse={
        "tfloat32": Figure(835e12, "FLOP/s", _S),
        "float16": Figure(1671e12, "FLOP/s", _S),
        "bfloat16": Figure(1671e12, "FLOP/s", _S),
        "float8": Figure(3341e12, "FLOP/s", _S),
        "int8": Figure(3341e12, "OP/s", _S),
    },
    stated={"float32": Figure(60e12, "FLOP/s", _S), "float64": Figure(30e12, "FLOP/s", _S)},
    bus_bits=Figure(6016, "bit", _N),
    gpcs=None,
    gpu_link="",  # bridges between cards are an option
    aliases=("h100-nvl-94gb",),
)

# The same rates with the memory of the H200.
H200_NVL = replace(
    H100_NVL,
    name="H200 NVL",
    product="H200 NVL 141 GB",
    year=Figure(2024, "year", H200_SHEET),
    boost_clock=Figure(1785e6, "Hz", _N, "of the H100 NVL, whose rates are the same; devices report it"),
    dram_bytes=Figure(141e9, "B", H200_SHEET),
    dram_bandwidth=Figure(4800e9, "B/s", H200_SHEET),
    tdp=Figure(600, "W", H200_SHEET),
    bus_bits=None,  # not stated
    aliases=("h200-nvl-141gb",),
)
