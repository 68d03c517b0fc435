"""Blackwell (2024): four-bit floats on the tensor cores; in the B200 two dies that act as one GPU.

NVIDIA publishes rates for servers of eight B200; SMs, L2 and clock are known from devices. int4 has no rate.
"""

from __future__ import annotations

from .figure import KIB, MIB, Figure
from .gpu import GPU
from .sources import ARITHMETIC, B200_DRIVER, B200_SEEN, BLACKWELL_SHEET, GB202_PAPER, GUIDE

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
