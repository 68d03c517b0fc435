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
    GB10_TALK,
    GB200_SHEET,
    GB202_PAPER,
    GB300_SHEET,
    GUIDE,
    PRO_6000_SHEET,
    PRO_PAPER,
    SPARK_GUIDE,
    THOR_PAGE,
    THOR_QUERY,
    ULTRA_BLOG,
    XLA_DEVICES,
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
    l2_seen=Figure(21e12, "B/s", B200_SEEN, "of data on the die that asks for them, as others quote it"),
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
    l1_latency=Figure(39, "cycles", B200_SEEN, "as others quote it"),
    bus_bits=Figure(7680, "bit", B200_DRIVER),
    transistors=Figure(208e9, "transistors", _S, "two dies"),
    host_link="PCIe 5.0 ×16",
    gpu_link="NVLink 5",
    aliases=("b200-sxm",),
)

_N = GB200_SHEET
_L2 = Figure(135528448, "B", XLA_DEVICES)
_SAME = "of the B200, the same chip"

# The same chip with more SMs at a higher clock, beside a Grace CPU. NVIDIA's table has rates with sparsity.
GB200 = replace(
    B200,
    name="GB200",
    product="GB200 186 GB, one of the two GPUs of a superchip",
    sms=Figure(152, "SMs", CLUSTER_QUERY),
    boost_clock=Figure(
        2056e6, "Hz", ARITHMETIC, "80 TFLOP/s ÷ (152 × 128 × 2); devices report 2,062 MHz at most"
    ),
    tensor_clock=Figure(2008e6, "Hz", ARITHMETIC, "2.5 PFLOP/s ÷ (152 × 4,096 × 2); not stated by NVIDIA"),
    l2_bytes=_L2,
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
    product="B300 SXM, one of the eight of an HGX board",
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
    l2_bytes=replace(_L2, note="of a GB300, the same chip"),
    dram_bytes=Figure(262.5e9, "B", _U, "2.1 TB ÷ 8; the chip has 288 GB, as in a GB300"),
    dram_bandwidth=Figure(8e12, "B/s", ULTRA_BLOG),
    tdp=Figure(1400, "W", ULTRA_BLOG, "what the chip takes in a GB300; a board of eight allows less"),
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

_V = GB300_SHEET

# The same chip beside a Grace CPU, as the GB200 is to the B200. INT8 has one rounded figure for 72.
GB300 = replace(
    B300,
    name="GB300",
    product="GB300 288 GB, one of the GPUs of an NVL72",
    sms=Figure(152, "SMs", XLA_DEVICES),
    boost_clock=Figure(
        2056e6, "Hz", ARITHMETIC, "80 TFLOP/s ÷ (152 × 128 × 2); devices report 2,070 MHz at most"
    ),
    tensor_clock=Figure(2008e6, "Hz", ARITHMETIC, "2.5 PFLOP/s ÷ (152 × 4,096 × 2); not stated by NVIDIA"),
    l2_bytes=_L2,
    dram_bytes=Figure(288e9, "B", ULTRA_BLOG),
    dram_bandwidth=Figure(8e12, "B/s", _V, "576 TB/s ÷ 72; a device reports 7.93 TB/s"),
    tensor_dense={
        "tfloat32": Figure(1.25e15, "FLOP/s", _V, _HALF),
        "float16": Figure(2.5e15, "FLOP/s", _V, _HALF),
        "bfloat16": Figure(2.5e15, "FLOP/s", _V, _HALF),
        "float8": Figure(5e15, "FLOP/s", _V, _HALF),
        "float4": Figure(15e15, "FLOP/s", _V, "1,080 PFLOP/s ÷ 72"),
    },
    tensor_sparse={
        "tfloat32": Figure(2.5e15, "FLOP/s", _V),
        "float16": Figure(5e15, "FLOP/s", _V),
        "bfloat16": Figure(5e15, "FLOP/s", _V),
        "float8": Figure(10e15, "FLOP/s", _V, "720 PFLOP/s ÷ 72"),
    },
    stated={"float32": Figure(80e12, "FLOP/s", _V)},
    tdp=Figure(1400, "W", ULTRA_BLOG, "at most"),
    bus_bits=None,  # of the whole chip
    host_link="NVLink-C2C",
    aliases=("gb300-nvl72",),
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

RTX5080 = GPU(
    name="RTX 5080",
    product="GeForce RTX 5080 16 GB",
    architecture="Blackwell",
    cc=(12, 0),
    year=Figure(2025, "year", _P),
    sms=Figure(84, "SMs", _P),
    fp32_lanes=RTX5090.fp32_lanes,
    fp64_lanes=RTX5090.fp64_lanes,
    int32_lanes=RTX5090.int32_lanes,
    tensor_cores=RTX5090.tensor_cores,
    boost_clock=Figure(2617e6, "Hz", _P),
    tensor_clock=Figure(2617e6, "Hz", _P),
    l1_bytes=RTX5090.l1_bytes,
    l2_bytes=Figure(64 * MIB, "B", _P),
    dram_bytes=Figure(16e9, "B", _P),
    dram_bandwidth=Figure(960e9, "B/s", _P),
    tdp=Figure(360, "W", _P),
    tensor_fma=RTX5090.tensor_fma,
    tensor_dense={
        "tfloat32": Figure(56.3e12, "FLOP/s", _P),
        "float16": Figure(112.6e12, "FLOP/s", _P, "225.1 TFLOP/s when accumulated in float16"),
        "bfloat16": Figure(112.6e12, "FLOP/s", _P),
        "float8": Figure(225.1e12, "FLOP/s", _P, "450.2 TFLOP/s when accumulated in float16"),
        "float4": Figure(900.4e12, "FLOP/s", _P),
        "int8": Figure(450.2e12, "OP/s", _P),
    },
    tensor_sparse={
        "tfloat32": Figure(112.6e12, "FLOP/s", _P),
        "float16": Figure(225.1e12, "FLOP/s", _P),
        "bfloat16": Figure(225.1e12, "FLOP/s", _P),
        "float8": Figure(450.2e12, "FLOP/s", _P),
        "float4": Figure(1801e12, "FLOP/s", _P),
        "int8": Figure(900.4e12, "OP/s", _P),
    },
    stated={"float32": Figure(56.3e12, "FLOP/s", _P), "int32": Figure(56.3e12, "OP/s", _P)},
    bus_bits=Figure(256, "bit", _P),
    host_link="PCIe 5.0 ×16",
    aliases=("rtx5080", "5080", "geforce rtx 5080"),
)

_W = PRO_PAPER
_QUOTED = "as others quote the paper"

# The RTX 5090's chip with more of its SMs, and tensor cores at their full rate.
PRO_6000 = replace(
    RTX5090,
    name="RTX PRO 6000",
    product="RTX PRO 6000 Blackwell Workstation Edition 96 GB",
    sms=Figure(188, "SMs", PRO_6000_SHEET, "24,064 FP32 lanes at 128 per SM"),
    boost_clock=Figure(2617e6, "Hz", _W, _QUOTED + ", and what devices report"),
    tensor_clock=Figure(2617e6, "Hz", _W),
    l2_bytes=Figure(128 * MIB, "B", XLA_DEVICES),
    dram_bytes=Figure(96e9, "B", PRO_6000_SHEET),
    dram_bandwidth=Figure(1792e9, "B/s", PRO_6000_SHEET),
    tdp=Figure(600, "W", PRO_6000_SHEET),
    tensor_fma={
        "float16": Figure(512, "FMA/clock/SM", _W),
        "bfloat16": Figure(512, "FMA/clock/SM", _W),
        "float8": Figure(1024, "FMA/clock/SM", _W),
        "float4": Figure(2048, "FMA/clock/SM", _W),
    },
    tensor_dense={
        "float16": Figure(503.8e12, "FLOP/s", _W, _QUOTED),
        "bfloat16": Figure(503.8e12, "FLOP/s", _W, _QUOTED),
        "float8": Figure(1007.6e12, "FLOP/s", _W, _QUOTED),
        "float4": Figure(
            2000e12, "FLOP/s", PRO_6000_SHEET, "half of the stated rate, which is with sparsity"
        ),
    },
    tensor_sparse={"float4": Figure(4000e12, "FLOP/s", PRO_6000_SHEET)},
    stated={"float32": Figure(125e12, "FLOP/s", PRO_6000_SHEET)},
    gpcs=None,
    tpcs=None,
    aliases=("rtx pro 6000 blackwell workstation edition", "rtx pro 6000 blackwell"),
)

# The GPU of DGX Spark, beside twenty Arm cores that share its memory.
GB10 = GPU(
    name="GB10",
    product="GB10, the GPU of a DGX Spark",
    architecture="Blackwell",
    cc=(12, 1),
    year=Figure(2025, "year", SPARK_GUIDE),
    sms=Figure(48, "SMs", SPARK_GUIDE, "6,144 FP32 lanes at 128 per SM"),
    fp32_lanes=Figure(128, "lanes/SM", GUIDE),
    fp64_lanes=Figure(2, "lanes/SM", GUIDE),
    int32_lanes=Figure(128, "lanes/SM", GUIDE),
    tensor_cores=Figure(4, "tensor cores/SM", GUIDE),
    boost_clock=Figure(
        2523e6,
        "Hz",
        ARITHMETIC,
        "31 TFLOP/s ÷ (48 × 128 × 2); devices allow 3,003 MHz and run at about 2,400",
    ),
    tensor_clock=Figure(2523e6, "Hz", ARITHMETIC, "as above"),
    l1_bytes=Figure(128 * KIB, "B", GUIDE),
    l2_bytes=Figure(24 * MIB, "B", GB10_TALK),
    dram_bytes=Figure(128e9, "B", SPARK_GUIDE, "shared with the CPU"),
    dram_bandwidth=Figure(273e9, "B/s", SPARK_GUIDE, "shared with the CPU"),
    tdp=Figure(140, "W", SPARK_GUIDE, "the chip; the power supply has 240"),
    tensor_fma={"float4": Figure(2048, "FMA/clock/SM", SPARK_GUIDE, "from the stated rate and the clock")},
    tensor_dense={
        "float4": Figure(500e12, "FLOP/s", SPARK_GUIDE, "half of the stated rate, which is with sparsity")
    },
    tensor_sparse={"float4": Figure(1000e12, "FLOP/s", SPARK_GUIDE)},
    stated={"float32": Figure(31e12, "FLOP/s", GB10_TALK)},
    bus_bits=Figure(256, "bit", SPARK_GUIDE),
    aliases=("dgx spark", "spark"),
)
