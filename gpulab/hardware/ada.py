"""Ada (2022): float8 on the tensor cores and a large L2; float64 only for compatibility."""

from __future__ import annotations

from .figure import KIB, MIB, Figure
from .gpu import GPU
from .sources import ADA_PAPER, GUIDE, L4_BRIEF, L4_SHEET, LUO_2025, RRZE

_P = ADA_PAPER
_S = L4_SHEET
_BOARD = "measured on an L40, the same architecture at 2.49 GHz"

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
    aliases=("rtx4090", "4090", "geforce rtx 4090"),
)
