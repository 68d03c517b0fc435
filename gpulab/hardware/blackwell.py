"""Blackwell (2024): four-bit floats on the tensor cores; in the large ones two dies that act as one GPU.

NVIDIA publishes rates for servers of eight or 72 of them; SMs, L2 and clocks are known from devices. int4 has
no rate. Blackwell Ultra (B300) gives up float64 for more of float4.
"""

from __future__ import annotations

from dataclasses import replace

from .figure import KIB, MIB, Figure
from .gpu import GPU
from .sources import (
    ARITHMETIC,
    B200_DRIVER,
    B200_SEEN,
    B300_SHEET,
    BLACKWELL_SHEET,
    CLUSTER_QUERY,
    GB200_SHEET,
    GB202_PAPER,
    GUIDE,
    THOR_PAGE,
    THOR_QUERY,
    ULTRA_BLOG,
)

_S = BLACKWELL_SHEET
_HALF = "half of the sheet's figure, which is with sparsity"
_FROM_RATE = "from the stated rate of float16 and the clock"

B200 = GPU(
    name="B200",
    product="B200 SXM 180 GB",
    architecture="Blackwell",
    cc=(10, 0),
    year=Figure(2024, "year", _S),
    sms=Figure(148, "SMs", B200_DRIVER),
    fp32_lanes=Figure(128, "lanes/SM", GUIDE),
    fp64_lanes=Figure(64, "lanes/SM", GUIDE),
    int32_lanes=Figure(64, "lanes/SM", GUIDE),
    tensor_cores=Figure(4, "tensor cores/SM", B200_SEEN),
    boost_clock=Figure(1965e6, "Hz", B200_SEEN),
    tensor_clock=Figure(1856e6, "Hz", ARITHMETIC, "2.25 PFLOP/s ÷ (148 × 4,096 × 2); not stated by NVIDIA"),
    l1_bytes=Figure(256 * KIB, "B", B200_SEEN),
    l2_bytes=Figure(126.5 * MIB, "B", B200_DRIVER),
    dram_bytes=Figure(180e9, "B", _S),
    dram_bandwidth=Figure(8e12, "B/s", _S, "a device reports 7,680 bits at 7.99 Gbit/s, 7.67 TB/s"),
    tdp=Figure(1000, "W", _S),
    tensor_fma={
        "float64": Figure(64, "FMA/clock/SM", _S, "from the stated rate"),
        "tfloat32": Figure(2048, "FMA/clock/SM", _S, _FROM_RATE),
        "float16": Figure(4096, "FMA/clock/SM", _S, "twice the H100's"),
        "bfloat16": Figure(4096, "FMA/clock/SM", _S, _FROM_RATE),
        "float8": Figure(8192, "FMA/clock/SM", _S, _FROM_RATE),
        "float4": Figure(16384, "FMA/clock/SM", _S, _FROM_RATE),
        "int8": Figure(8192, "FMA/clock/SM", _S, _FROM_RATE),
    },
    tensor_dense={
        "float64": Figure(37e12, "FLOP/s", _S),
        "tfloat32": Figure(1.125e15, "FLOP/s", _S, _HALF),
        "float16": Figure(2.25e15, "FLOP/s", _S, _HALF),
        "bfloat16": Figure(2.25e15, "FLOP/s", _S, _HALF),
        "float8": Figure(4.5e15, "FLOP/s", _S, _HALF),
        "float4": Figure(9e15, "FLOP/s", _S),
        "int8": Figure(4.5e15, "OP/s", _S, _HALF),
    },
    tensor_sparse={
        "tfloat32": Figure(2.25e15, "FLOP/s", _S),
        "float16": Figure(4.5e15, "FLOP/s", _S),
        "bfloat16": Figure(4.5e15, "FLOP/s", _S),
        "float8": Figure(9e15, "FLOP/s", _S),
        "float4": Figure(18e15, "FLOP/s", _S),
        "int8": Figure(9e15, "OP/s", _S),
    },
    stated={"float32": Figure(75e12, "FLOP/s", _S), "float64": Figure(37e12, "FLOP/s", _S)},
    bus_bits=Figure(7680, "bit", B200_DRIVER),
    transistors=Figure(208e9, "transistors", _S, "two dies"),
    host_link="PCIe 5.0 ×16",
    gpu_link="NVLink 5",
    aliases=("b200-sxm",),
)

_N = GB200_SHEET
_SAME = "of the B200, the same chip"

# The same chip with more SMs at a higher clock, beside a Grace CPU. NVIDIA's table has rates with sparsity.
GB200 = replace(
    B200,
    name="GB200",
    product="GB200 186 GB, one of the two GPUs of a superchip",
    sms=Figure(152, "SMs", CLUSTER_QUERY),
    boost_clock=Figure(2056e6, "Hz", ARITHMETIC, "80 TFLOP/s ÷ (152 × 128 × 2); not stated by NVIDIA"),
    tensor_clock=Figure(2008e6, "Hz", ARITHMETIC, "2.5 PFLOP/s ÷ (152 × 4,096 × 2); not stated by NVIDIA"),
    l2_bytes=Figure(126.5 * MIB, "B", B200_DRIVER, _SAME),
    dram_bytes=Figure(186e9, "B", _N, "13.4 TB ÷ 72"),
    dram_bandwidth=Figure(8e12, "B/s", _N, "576 TB/s ÷ 72"),
    bus_bits=None,
    tdp=Figure(1200, "W", _N, "at most, the GPU alone"),
    tensor_dense={
        "float64": Figure(40e12, "FLOP/s", _N, "2,880 TFLOP/s ÷ 72"),
        "tfloat32": Figure(1.25e15, "FLOP/s", _N, _HALF),
        "float16": Figure(2.5e15, "FLOP/s", _N, _HALF),
        "bfloat16": Figure(2.5e15, "FLOP/s", _N, _HALF),
        "float8": Figure(5e15, "FLOP/s", _N, _HALF),
        "float4": Figure(10e15, "FLOP/s", _N, _HALF),
        "int8": Figure(5e15, "OP/s", _N, _HALF),
    },
    tensor_sparse={
        "tfloat32": Figure(2.5e15, "FLOP/s", _N),
        "float16": Figure(5e15, "FLOP/s", _N),
        "bfloat16": Figure(5e15, "FLOP/s", _N),
        "float8": Figure(10e15, "FLOP/s", _N),
        "float4": Figure(20e15, "FLOP/s", _N),
        "int8": Figure(10e15, "OP/s", _N),
    },
    stated={
        "float32": Figure(80e12, "FLOP/s", _N, "5,760 TFLOP/s ÷ 72"),
        "float64": Figure(40e12, "FLOP/s", _N, "2,880 TFLOP/s ÷ 72"),
    },
    host_link="NVLink-C2C",
    aliases=("gb200-nvl72",),
)

_U = B300_SHEET

# Blackwell Ultra. Its sparse float4 rate is 18 PFLOP/s, which is not twice the dense one, and stands nowhere
# here; nor does int8, of which NVIDIA states one rounded digit for eight.
B300 = GPU(
    name="B300",
    product="B300 SXM 288 GB",
    architecture="Blackwell",
    cc=(10, 3),
    year=Figure(2025, "year", ULTRA_BLOG),
    sms=Figure(148, "SMs", CLUSTER_QUERY, "the chip has 160"),
    fp32_lanes=Figure(128, "lanes/SM", ULTRA_BLOG),
    fp64_lanes=Figure(2, "lanes/SM", GUIDE, "NVIDIA states 10 TFLOP/s for eight GPUs"),
    int32_lanes=Figure(64, "lanes/SM", GUIDE),
    tensor_cores=Figure(4, "tensor cores/SM", ULTRA_BLOG),
    boost_clock=Figure(
        1980e6, "Hz", ARITHMETIC, "75 TFLOP/s ÷ (148 × 128 × 2); devices report 2,032 MHz at most"
    ),
    tensor_clock=Figure(1856e6, "Hz", ARITHMETIC, "2.25 PFLOP/s ÷ (148 × 4,096 × 2); not stated by NVIDIA"),
    l1_bytes=Figure(256 * KIB, "B", B200_SEEN, _SAME.replace("same chip", "generation before")),
    l2_bytes=Figure(126.5 * MIB, "B", B200_DRIVER, _SAME.replace("same chip", "generation before")),
    dram_bytes=Figure(288e9, "B", ULTRA_BLOG, "the HGX board states 2.1 TB for eight"),
    dram_bandwidth=Figure(8e12, "B/s", ULTRA_BLOG),
    tdp=Figure(1400, "W", ULTRA_BLOG, "at most"),
    tensor_fma={
        "tfloat32": Figure(2048, "FMA/clock/SM", _U, _FROM_RATE),
        "float16": Figure(4096, "FMA/clock/SM", _U, _FROM_RATE),
        "bfloat16": Figure(4096, "FMA/clock/SM", _U, _FROM_RATE),
        "float8": Figure(8192, "FMA/clock/SM", _U, _FROM_RATE),
        "float4": Figure(24576, "FMA/clock/SM", _U, _FROM_RATE),
    },
    tensor_dense={
        "tfloat32": Figure(1.125e15, "FLOP/s", _U, _HALF),
        "float16": Figure(2.25e15, "FLOP/s", _U, _HALF),
        "bfloat16": Figure(2.25e15, "FLOP/s", _U, _HALF),
        "float8": Figure(4.5e15, "FLOP/s", _U, _HALF),
        "float4": Figure(13.5e15, "FLOP/s", _U, "108 PFLOP/s ÷ 8"),
    },
    tensor_sparse={
        "tfloat32": Figure(2.25e15, "FLOP/s", _U),
        "float16": Figure(4.5e15, "FLOP/s", _U),
        "bfloat16": Figure(4.5e15, "FLOP/s", _U),
        "float8": Figure(9e15, "FLOP/s", _U),
    },
    stated={"float32": Figure(75e12, "FLOP/s", _U, "600 TFLOP/s ÷ 8")},
    bus_bits=Figure(8192, "bit", ULTRA_BLOG, "16 controllers of 512"),
    transistors=Figure(208e9, "transistors", ULTRA_BLOG, "two dies"),
    gpu_link="NVLink 5",
    aliases=("b300-sxm", "b300 sxm6 ac"),
)

_J = THOR_PAGE

AGX_THOR = GPU(
    name="AGX Thor",
    product="Jetson AGX Thor 128 GB",
    architecture="Blackwell",
    cc=(11, 0),
    year=Figure(2025, "year", _J),
    sms=Figure(20, "SMs", THOR_QUERY, "2,560 FP32 lanes at 128 per SM"),
    fp32_lanes=Figure(128, "lanes/SM", GUIDE),
    fp64_lanes=Figure(2, "lanes/SM", GUIDE),
    int32_lanes=Figure(64, "lanes/SM", GUIDE),
    tensor_cores=Figure(
        4, "tensor cores/SM", THOR_QUERY, "NVIDIA states 96, those of the whole chip's 24 SMs"
    ),
    boost_clock=Figure(1575e6, "Hz", _J, "stated as 1.57 GHz"),
    tensor_clock=Figure(1575e6, "Hz", _J, "as above"),
    l1_bytes=Figure(256 * KIB, "B", GUIDE),
    l2_bytes=Figure(32 * MIB, "B", THOR_QUERY),
    dram_bytes=Figure(128e9, "B", _J, "shared with the CPU"),
    dram_bandwidth=Figure(273e9, "B/s", _J, "shared with the CPU"),
    tdp=Figure(130, "W", _J, "the whole module, in its mode of highest power"),
    tensor_fma={"float4": Figure(16384, "FMA/clock/SM", _J, "from the stated rate and the clock")},
    tensor_dense={"float4": Figure(1035e12, "FLOP/s", _J, "half of the stated rate, which is with sparsity")},
    tensor_sparse={"float4": Figure(2070e12, "FLOP/s", _J)},
    bus_bits=Figure(256, "bit", _J),
    aliases=("jetson agx thor", "thor", "jetson thor", "jetson t5000"),
)

_P = GB202_PAPER

RTX5090 = GPU(
    name="RTX 5090",
    product="GeForce RTX 5090 32 GB",
    architecture="Blackwell",
    cc=(12, 0),
    year=Figure(2025, "year", _P),
    sms=Figure(170, "SMs", _P),
    fp32_lanes=Figure(128, "lanes/SM", _P),
    fp64_lanes=Figure(2, "lanes/SM", _P),
    int32_lanes=Figure(128, "lanes/SM", _P, "the same lanes as for float32"),
    tensor_cores=Figure(4, "tensor cores/SM", _P),
    boost_clock=Figure(2407e6, "Hz", _P),
    tensor_clock=Figure(2407e6, "Hz", _P),
    l1_bytes=Figure(128 * KIB, "B", _P),
    l2_bytes=Figure(96 * MIB, "B", _P),
    dram_bytes=Figure(32e9, "B", _P),
    dram_bandwidth=Figure(1792e9, "B/s", _P),
    tdp=Figure(575, "W", _P),
    # GeForce halves the rate of the tensor cores when they accumulate in float32.
    tensor_fma={
        "tfloat32": Figure(128, "FMA/clock/SM", _P),
        "float16": Figure(256, "FMA/clock/SM", _P, "512 when accumulated in float16"),
        "bfloat16": Figure(256, "FMA/clock/SM", _P),
        "float8": Figure(512, "FMA/clock/SM", _P, "1,024 when accumulated in float16"),
        "float4": Figure(2048, "FMA/clock/SM", _P),
        "int8": Figure(1024, "FMA/clock/SM", _P),
    },
    tensor_dense={
        "tfloat32": Figure(104.8e12, "FLOP/s", _P),
        "float16": Figure(209.5e12, "FLOP/s", _P, "419 TFLOP/s when accumulated in float16"),
        "bfloat16": Figure(209.5e12, "FLOP/s", _P),
        "float8": Figure(419e12, "FLOP/s", _P, "838 TFLOP/s when accumulated in float16"),
        "float4": Figure(1676e12, "FLOP/s", _P),
        "int8": Figure(838e12, "OP/s", _P),
    },
    tensor_sparse={
        "tfloat32": Figure(209.5e12, "FLOP/s", _P),
        "float16": Figure(419e12, "FLOP/s", _P),
        "bfloat16": Figure(419e12, "FLOP/s", _P),
        "float8": Figure(838e12, "FLOP/s", _P),
        "float4": Figure(3352e12, "FLOP/s", _P),
        "int8": Figure(1676e12, "OP/s", _P),
    },
    stated={"float32": Figure(104.8e12, "FLOP/s", _P), "int32": Figure(104.8e12, "OP/s", _P)},
    gpcs=Figure(11, "GPCs", _P),
    tpcs=Figure(85, "TPCs", _P),
    bus_bits=Figure(512, "bit", _P),
    die_area=Figure(750, "mm²", _P),
    transistors=Figure(92.2e9, "transistors", _P),
    host_link="PCIe 5.0 ×16",
    aliases=("rtx5090", "5090", "geforce rtx 5090"),
)
