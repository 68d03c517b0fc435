"""Ada (2022): float8 on the tensor cores and a large L2; float64 only for compatibility."""

from __future__ import annotations

from dataclasses import replace

from .figure import KIB, MIB, Figure
from .gpu import GPU
from .sources import ADA_PAPER, GUIDE, L4_BRIEF, L4_SHEET, L40_SHEET, L40S_SHEET, LUO_2025, RRZE

_P = ADA_PAPER
_S = L4_SHEET
_BOARD = "measured on an L40, the same architecture at 2.49 GHz"
_FROM_RATE = "from the stated rate and the clock"
_L2 = Figure(5.2e12, "B/s", RRZE, "measured on an L40, the same chip at 2.49 GHz")

L4 = GPU(
    name="L4",
    product="L4 24 GB",
    architecture="Ada",
    cc=(8, 9),
    year=Figure(2023, "year", _S),
    sms=Figure(58, "SMs", L4_BRIEF, "7,424 FP32 lanes at 128 per SM"),
    fp32_lanes=Figure(128, "lanes/SM", GUIDE),
    fp64_lanes=Figure(2, "lanes/SM", GUIDE),
    int32_lanes=Figure(64, "lanes/SM", GUIDE),
    tensor_cores=Figure(4, "tensor cores/SM", GUIDE),
    boost_clock=Figure(2040e6, "Hz", L4_BRIEF),
    tensor_clock=Figure(2040e6, "Hz", L4_BRIEF),
    l1_bytes=Figure(128 * KIB, "B", _P),
    l2_bytes=Figure(48 * MIB, "B", _P, "of the AD104 chip"),
    dram_bytes=Figure(24e9, "B", _S),
    dram_bandwidth=Figure(300e9, "B/s", _S),
    tdp=Figure(72, "W", _S),
    tensor_fma={
        "tfloat32": Figure(256, "FMA/clock/SM", _P),
        "float16": Figure(512, "FMA/clock/SM", _P),
        "bfloat16": Figure(512, "FMA/clock/SM", _P),
        "float8": Figure(1024, "FMA/clock/SM", _P),
        "int8": Figure(1024, "FMA/clock/SM", _P),
    },
    tensor_dense={
        "tfloat32": Figure(60e12, "FLOP/s", _S, "half of the sheet's figure, which is with sparsity"),
        "float16": Figure(121e12, "FLOP/s", _S, "half of the sheet's figure, which is with sparsity"),
        "bfloat16": Figure(121e12, "FLOP/s", _S, "half of the sheet's figure, which is with sparsity"),
        "float8": Figure(242.5e12, "FLOP/s", _S, "half of the sheet's figure, which is with sparsity"),
        "int8": Figure(242.5e12, "OP/s", _S, "half of the sheet's figure, which is with sparsity"),
    },
    tensor_sparse={
        "tfloat32": Figure(120e12, "FLOP/s", _S),
        "float16": Figure(242e12, "FLOP/s", _S),
        "bfloat16": Figure(242e12, "FLOP/s", _S),
        "float8": Figure(485e12, "FLOP/s", _S),
        "int8": Figure(485e12, "OP/s", _S),
    },
    stated={"float32": Figure(30.3e12, "FLOP/s", _S)},
    l1_latency=Figure(34, "cycles", RRZE, _BOARD),
    l2_latency=Figure(274, "cycles", RRZE, _BOARD),
    dram_latency=Figure(624, "cycles", RRZE, _BOARD),
    bus_bits=Figure(192, "bit", L4_BRIEF),
    host_link="PCIe 4.0 ×16",
)

_L = L40S_SHEET

L40S = GPU(
    name="L40S",
    product="L40S 48 GB",
    architecture="Ada",
    cc=(8, 9),
    year=Figure(2023, "year", _L),
    sms=Figure(142, "SMs", _L, "18,176 FP32 lanes at 128 per SM"),
    fp32_lanes=Figure(128, "lanes/SM", GUIDE),
    fp64_lanes=Figure(2, "lanes/SM", GUIDE),
    int32_lanes=Figure(64, "lanes/SM", GUIDE),
    tensor_cores=Figure(4, "tensor cores/SM", _L, "568 in all"),
    boost_clock=Figure(2520e6, "Hz", _L, "from 91.6 TFLOP/s; the sheet states no clock"),
    tensor_clock=Figure(2520e6, "Hz", _L, "as above"),
    l1_bytes=Figure(128 * KIB, "B", _P),
    l2_bytes=Figure(96 * MIB, "B", _P, "of the AD102 chip"),
    dram_bytes=Figure(48e9, "B", _L),
    dram_bandwidth=Figure(864e9, "B/s", _L),
    dram_seen=Figure(776e9, "B/s", RRZE, "measured on an L40, which has the same memory"),
    l2_seen=_L2,
    tdp=Figure(350, "W", _L),
    tensor_fma={
        "tfloat32": Figure(256, "FMA/clock/SM", _P),
        "float16": Figure(512, "FMA/clock/SM", _P),
        "bfloat16": Figure(512, "FMA/clock/SM", _P),
        "float8": Figure(1024, "FMA/clock/SM", _P),
        "int8": Figure(1024, "FMA/clock/SM", _P),
    },
    tensor_dense={
        "tfloat32": Figure(183e12, "FLOP/s", _L),
        "float16": Figure(362.05e12, "FLOP/s", _L),
        "bfloat16": Figure(362.05e12, "FLOP/s", _L),
        "float8": Figure(733e12, "FLOP/s", _L),
        "int8": Figure(733e12, "OP/s", _L),
    },
    tensor_sparse={
        "tfloat32": Figure(366e12, "FLOP/s", _L),
        "float16": Figure(733e12, "FLOP/s", _L),
        "bfloat16": Figure(733e12, "FLOP/s", _L),
        "float8": Figure(1466e12, "FLOP/s", _L),
        "int8": Figure(1466e12, "OP/s", _L),
    },
    stated={"float32": Figure(91.6e12, "FLOP/s", _L)},
    l1_latency=Figure(34, "cycles", RRZE, _BOARD),
    l2_latency=Figure(274, "cycles", RRZE, _BOARD),
    dram_latency=Figure(624, "cycles", RRZE, _BOARD),
    bus_bits=Figure(384, "bit", _P, "of the AD102 chip"),
    die_area=Figure(608.5, "mm²", _P, "of the AD102 chip"),
    transistors=Figure(76.3e9, "transistors", _P, "of the AD102 chip"),
    host_link="PCIe 4.0 ×16",
)

# The card before: the same chip and memory, tensor cores at half the rate.
L40 = replace(
    L40S,
    name="L40",
    product="L40 48 GB",
    year=Figure(2022, "year", L40_SHEET),
    boost_clock=Figure(2490e6, "Hz", RRZE, "as the benchmark reports it; the sheet states no clock"),
    tensor_clock=Figure(2490e6, "Hz", RRZE, "as above"),
    dram_seen=Figure(776e9, "B/s", RRZE),
    tdp=Figure(300, "W", L40_SHEET),
    tensor_fma={
        "tfloat32": Figure(128, "FMA/clock/SM", L40_SHEET, _FROM_RATE),
        "float16": Figure(256, "FMA/clock/SM", L40_SHEET, _FROM_RATE),
        "bfloat16": Figure(256, "FMA/clock/SM", L40_SHEET, _FROM_RATE),
        "float8": Figure(512, "FMA/clock/SM", L40_SHEET, _FROM_RATE),
        "int8": Figure(512, "FMA/clock/SM", L40_SHEET, _FROM_RATE),
        "int4": Figure(1024, "FMA/clock/SM", L40_SHEET, _FROM_RATE),
    },
    tensor_dense={
        "tfloat32": Figure(90.5e12, "FLOP/s", L40_SHEET),
        "float16": Figure(181.05e12, "FLOP/s", L40_SHEET),
        "bfloat16": Figure(181.05e12, "FLOP/s", L40_SHEET),
        "float8": Figure(362e12, "FLOP/s", L40_SHEET),
        "int8": Figure(362e12, "OP/s", L40_SHEET),
        "int4": Figure(724e12, "OP/s", L40_SHEET),
    },
    tensor_sparse={
        "tfloat32": Figure(181e12, "FLOP/s", L40_SHEET),
        "float16": Figure(362.1e12, "FLOP/s", L40_SHEET),
        "bfloat16": Figure(362.1e12, "FLOP/s", L40_SHEET),
        "float8": Figure(724e12, "FLOP/s", L40_SHEET),
        "int8": Figure(724e12, "OP/s", L40_SHEET),
        "int4": Figure(1448e12, "OP/s", L40_SHEET),
    },
    stated={"float32": Figure(90.5e12, "FLOP/s", L40_SHEET)},
)

RTX4090 = GPU(
    name="RTX 4090",
    product="GeForce RTX 4090 24 GB",
    architecture="Ada",
    cc=(8, 9),
    year=Figure(2022, "year", _P),
    sms=Figure(128, "SMs", _P),
    fp32_lanes=Figure(128, "lanes/SM", _P),
    fp64_lanes=Figure(2, "lanes/SM", _P),
    int32_lanes=Figure(64, "lanes/SM", _P),
    tensor_cores=Figure(4, "tensor cores/SM", _P),
    boost_clock=Figure(2520e6, "Hz", _P),
    tensor_clock=Figure(2520e6, "Hz", _P),
    l1_bytes=Figure(128 * KIB, "B", _P),
    l2_bytes=Figure(72 * MIB, "B", _P),
    dram_bytes=Figure(24e9, "B", _P),
    dram_bandwidth=Figure(1008e9, "B/s", _P),
    l2_seen=_L2,
    tdp=Figure(450, "W", _P),
    # GeForce halves the rate of the tensor cores when they accumulate in float32.
    tensor_fma={
        "tfloat32": Figure(128, "FMA/clock/SM", _P),
        "float16": Figure(256, "FMA/clock/SM", _P, "512 when accumulated in float16"),
        "bfloat16": Figure(256, "FMA/clock/SM", _P),
        "float8": Figure(512, "FMA/clock/SM", _P, "1,024 when accumulated in float16"),
        "int8": Figure(1024, "FMA/clock/SM", _P),
        "int4": Figure(2048, "FMA/clock/SM", _P),
    },
    tensor_dense={
        "tfloat32": Figure(82.6e12, "FLOP/s", _P),
        "float16": Figure(165.2e12, "FLOP/s", _P, "330.3 TFLOP/s when accumulated in float16"),
        "bfloat16": Figure(165.2e12, "FLOP/s", _P),
        "float8": Figure(330.3e12, "FLOP/s", _P, "660.6 TFLOP/s when accumulated in float16"),
        "int8": Figure(660.6e12, "OP/s", _P),
        "int4": Figure(1321.2e12, "OP/s", _P),
    },
    tensor_sparse={
        "tfloat32": Figure(165.2e12, "FLOP/s", _P),
        "float16": Figure(330.4e12, "FLOP/s", _P),
        "bfloat16": Figure(330.4e12, "FLOP/s", _P),
        "float8": Figure(660.6e12, "FLOP/s", _P),
        "int8": Figure(1321.2e12, "OP/s", _P),
        "int4": Figure(2642.4e12, "OP/s", _P),
    },
    stated={"float32": Figure(82.6e12, "FLOP/s", _P), "int32": Figure(41.3e12, "OP/s", _P)},
    l1_latency=Figure(34, "cycles", RRZE, _BOARD),
    l2_latency=Figure(273, "cycles", LUO_2025),
    dram_latency=Figure(571, "cycles", LUO_2025),
    gpcs=Figure(11, "GPCs", _P),
    tpcs=Figure(64, "TPCs", _P),
    bus_bits=Figure(384, "bit", _P),
    die_area=Figure(608.5, "mm²", _P),
    transistors=Figure(76.3e9, "transistors", _P),
    host_link="PCIe 4.0 ×16",
    aliases=("rtx4090", "4090", "geforce rtx 4090"),
)
