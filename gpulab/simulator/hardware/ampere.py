"""Ampere (2020): bfloat16, tfloat32 and float64 on the tensor cores, and 2:4 sparsity.

The chips for graphics (8.6) and for robots (8.7) have twice the float32 lanes per SM and hardly any for
float64.
"""

from __future__ import annotations

from dataclasses import replace

from .figure import KIB, MIB, Figure
from .gpu import GPU
from .sources import (
    A10_BRIEF,
    A10_SHEET,
    A100_40_SHEET,
    A100_SHEET,
    ABDELKHALIK_2022,
    AMPERE_PAPER,
    GA102_PAPER,
    GUIDE,
    ORIN_BRIEF,
    RRZE,
)

_P = AMPERE_PAPER
_S = A100_SHEET
_FROM_RATE = "from the stated rate and the clock"

A100 = GPU(
    name="A100",
    product="A100 SXM4 80 GB",
    architecture="Ampere",
    cc=(8, 0),
    year=Figure(2020, "year", _P, "the 80 GB board followed in November 2020"),
    sms=Figure(108, "SMs", _P),
    fp32_lanes=Figure(64, "lanes/SM", _P),
    fp64_lanes=Figure(32, "lanes/SM", _P),
    int32_lanes=Figure(64, "lanes/SM", _P),
    tensor_cores=Figure(4, "tensor cores/SM", _P),
    boost_clock=Figure(1410e6, "Hz", _P),
    tensor_clock=Figure(1410e6, "Hz", _P),
    l1_bytes=Figure(192 * KIB, "B", _P),
    l2_bytes=Figure(40 * MIB, "B", _P),
    dram_bytes=Figure(80e9, "B", _S),
    dram_bandwidth=Figure(2039e9, "B/s", _S),
    dram_seen=Figure(1737e9, "B/s", RRZE),
    l2_seen=Figure(5.4e12, "B/s", RRZE),
    tdp=Figure(400, "W", _S),
    tensor_fma={
        "float64": Figure(64, "FMA/clock/SM", _P),
        "tfloat32": Figure(512, "FMA/clock/SM", _P),
        "float16": Figure(1024, "FMA/clock/SM", _P),
        "bfloat16": Figure(1024, "FMA/clock/SM", _P),
        "int8": Figure(2048, "FMA/clock/SM", _P),
        "int4": Figure(4096, "FMA/clock/SM", _P),
    },
    tensor_dense={
        "float64": Figure(19.5e12, "FLOP/s", _S),
        "tfloat32": Figure(156e12, "FLOP/s", _S),
        "float16": Figure(312e12, "FLOP/s", _S),
        "bfloat16": Figure(312e12, "FLOP/s", _S),
        "int8": Figure(624e12, "OP/s", _S),
        "int4": Figure(1248e12, "OP/s", _P),
    },
    tensor_sparse={
        "tfloat32": Figure(312e12, "FLOP/s", _S),
        "float16": Figure(624e12, "FLOP/s", _S),
        "bfloat16": Figure(624e12, "FLOP/s", _S),
        "int8": Figure(1248e12, "OP/s", _S),
        "int4": Figure(2496e12, "OP/s", _P),
    },
    stated={
        "float32": Figure(19.5e12, "FLOP/s", _S),
        "float64": Figure(9.7e12, "FLOP/s", _S),
        "int32": Figure(19.5e12, "OP/s", _P),
    },
    shared_latency=Figure(23, "cycles", ABDELKHALIK_2022),
    l1_latency=Figure(33, "cycles", RRZE),
    l2_latency=Figure(206, "cycles", RRZE, "the near half of the L2; about twice as long in the far half"),
    dram_latency=Figure(552, "cycles", RRZE),
    gpcs=Figure(7, "GPCs", _P),
    tpcs=Figure(54, "TPCs", _P),
    bus_bits=Figure(5120, "bit", _P),
    die_area=Figure(826, "mm²", _P),
    transistors=Figure(54.2e9, "transistors", _P),
    host_link="PCIe 4.0 ×16",
    gpu_link="NVLink 3",
    aliases=("a100-80gb", "a100-80", "a100-sxm4-80gb", "a100-sxm"),
)

# The first A100: the same chip, with half the memory at a lower pin rate.
A100_40 = replace(
    A100,
    name="A100 40GB",
    product="A100 SXM4 40 GB",
    year=Figure(2020, "year", _P),
    dram_bytes=Figure(40e9, "B", _P),
    dram_bandwidth=Figure(1555e9, "B/s", _P),
    dram_seen=Figure(1382e9, "B/s", RRZE),
    aliases=("a100-40", "a100-sxm4-40gb"),
)

# The cards: the chip of the modules at the same clock, with less power and slower memory.
A100_PCIE = replace(
    A100,
    name="A100 PCIe",
    product="A100 PCIe 80 GB",
    year=Figure(2021, "year", _S),
    dram_bandwidth=Figure(1935e9, "B/s", _S),
    dram_seen=None,  # seen on modules
    tdp=Figure(300, "W", _S),
    l1_latency=None,
    l2_latency=None,
    dram_latency=None,
    gpu_link="",  # bridges between cards are an option
    aliases=("a100-80gb-pcie", "a100-pcie-80gb"),
)
A100_PCIE_40 = replace(
    A100_PCIE,
    name="A100 PCIe 40GB",
    product="A100 PCIe 40 GB",
    year=A100_40.year,
    dram_bytes=A100_40.dram_bytes,
    dram_bandwidth=A100_40.dram_bandwidth,
    tdp=Figure(250, "W", A100_40_SHEET),
    aliases=("a100-pcie-40gb",),
)

_G = GA102_PAPER

RTX3090 = GPU(
    name="RTX 3090",
    product="GeForce RTX 3090 24 GB",
    architecture="Ampere",
    cc=(8, 6),
    year=Figure(2020, "year", _G),
    sms=Figure(82, "SMs", _G),
    fp32_lanes=Figure(128, "lanes/SM", _G),
    fp64_lanes=Figure(2, "lanes/SM", _G),
    int32_lanes=Figure(64, "lanes/SM", _G),
    tensor_cores=Figure(4, "tensor cores/SM", _G),
    boost_clock=Figure(1695e6, "Hz", _G),
    tensor_clock=Figure(1695e6, "Hz", _G),
    l1_bytes=Figure(128 * KIB, "B", _G),
    l2_bytes=Figure(6 * MIB, "B", _G),
    dram_bytes=Figure(24e9, "B", _G),
    dram_bandwidth=Figure(936e9, "B/s", _G),
    l2_seen=Figure(3.2e12, "B/s", RRZE, "measured on an A40, the same chip at 1.74 GHz"),
    tdp=Figure(350, "W", _G),
    # GeForce halves the rate of the tensor cores when they accumulate in float32.
    tensor_fma={
        "tfloat32": Figure(128, "FMA/clock/SM", _G),
        "float16": Figure(256, "FMA/clock/SM", _G, "512 when accumulated in float16"),
        "bfloat16": Figure(256, "FMA/clock/SM", _G),
        "int8": Figure(1024, "FMA/clock/SM", _G),
        "int4": Figure(2048, "FMA/clock/SM", _G),
    },
    tensor_dense={
        "tfloat32": Figure(35.6e12, "FLOP/s", _G),
        "float16": Figure(71e12, "FLOP/s", _G, "142 TFLOP/s when accumulated in float16"),
        "bfloat16": Figure(71e12, "FLOP/s", _G),
        "int8": Figure(284e12, "OP/s", _G),
        "int4": Figure(568e12, "OP/s", _G),
    },
    tensor_sparse={
        "tfloat32": Figure(71e12, "FLOP/s", _G),
        "float16": Figure(142e12, "FLOP/s", _G),
        "bfloat16": Figure(142e12, "FLOP/s", _G),
        "int8": Figure(568e12, "OP/s", _G),
        "int4": Figure(1136e12, "OP/s", _G),
    },
    stated={"float32": Figure(35.6e12, "FLOP/s", _G), "int32": Figure(17.8e12, "OP/s", _G)},
    gpcs=Figure(7, "GPCs", _G),
    tpcs=Figure(41, "TPCs", _G),
    bus_bits=Figure(384, "bit", _G),
    die_area=Figure(628.4, "mm²", _G),
    transistors=Figure(28.3e9, "transistors", _G),
    host_link="PCIe 4.0 ×16",
    aliases=("rtx3090", "3090", "geforce rtx 3090"),
)

_T = A10_SHEET

# The same chip for servers: tensor cores at their full rate, and slower memory.
A10 = GPU(
    name="A10",
    product="A10 24 GB",
    architecture="Ampere",
    cc=(8, 6),
    year=Figure(2021, "year", _T),
    sms=Figure(72, "SMs", A10_BRIEF, "9,216 FP32 lanes at 128 per SM"),
    fp32_lanes=Figure(128, "lanes/SM", _G),
    fp64_lanes=Figure(2, "lanes/SM", _G),
    int32_lanes=Figure(64, "lanes/SM", _G),
    tensor_cores=Figure(4, "tensor cores/SM", _G),
    boost_clock=Figure(1695e6, "Hz", A10_BRIEF),
    tensor_clock=Figure(1695e6, "Hz", A10_BRIEF),
    l1_bytes=Figure(128 * KIB, "B", _G),
    l2_bytes=Figure(6 * MIB, "B", _G, "of the GA102 chip"),
    dram_bytes=Figure(24e9, "B", _T),
    dram_bandwidth=Figure(600e9, "B/s", _T),
    l2_seen=Figure(3.2e12, "B/s", RRZE, "measured on an A40, the same chip at 1.74 GHz"),
    tdp=Figure(150, "W", _T),
    tensor_fma={
        "tfloat32": Figure(256, "FMA/clock/SM", _T, _FROM_RATE),
        "float16": Figure(512, "FMA/clock/SM", _T, _FROM_RATE),
        "bfloat16": Figure(512, "FMA/clock/SM", _T, _FROM_RATE),
        "int8": Figure(1024, "FMA/clock/SM", _T, _FROM_RATE),
        "int4": Figure(2048, "FMA/clock/SM", _T, _FROM_RATE),
    },
    tensor_dense={
        "tfloat32": Figure(62.5e12, "FLOP/s", _T),
        "float16": Figure(125e12, "FLOP/s", _T),
        "bfloat16": Figure(125e12, "FLOP/s", _T),
        "int8": Figure(250e12, "OP/s", _T),
        "int4": Figure(500e12, "OP/s", _T),
    },
    tensor_sparse={
        "tfloat32": Figure(125e12, "FLOP/s", _T),
        "float16": Figure(250e12, "FLOP/s", _T),
        "bfloat16": Figure(250e12, "FLOP/s", _T),
        "int8": Figure(500e12, "OP/s", _T),
        "int4": Figure(1000e12, "OP/s", _T),
    },
    stated={"float32": Figure(31.2e12, "FLOP/s", _T)},
    bus_bits=Figure(384, "bit", A10_BRIEF),
    die_area=Figure(628.4, "mm²", _G, "of the GA102 chip"),
    transistors=Figure(28.3e9, "transistors", _G, "of the GA102 chip"),
    host_link="PCIe 4.0 ×16",
)

_O = ORIN_BRIEF

AGX_ORIN = GPU(
    name="AGX Orin",
    product="Jetson AGX Orin 64 GB",
    architecture="Ampere",
    cc=(8, 7),
    year=Figure(2022, "year", _O),
    sms=Figure(16, "SMs", _O),
    fp32_lanes=Figure(128, "lanes/SM", _O),
    fp64_lanes=Figure(2, "lanes/SM", GUIDE),
    int32_lanes=Figure(64, "lanes/SM", GUIDE),
    tensor_cores=Figure(4, "tensor cores/SM", _O),
    boost_clock=Figure(1300e6, "Hz", _O),
    tensor_clock=Figure(1300e6, "Hz", _O),
    l1_bytes=Figure(192 * KIB, "B", _O),
    l2_bytes=Figure(4 * MIB, "B", _O),
    dram_bytes=Figure(64e9, "B", _O, "shared with the CPU"),
    dram_bandwidth=Figure(204.8e9, "B/s", _O, "shared with the CPU"),
    tdp=Figure(60, "W", _O, "the whole module, in its mode of highest power"),
    tensor_fma={"int8": Figure(2048, "FMA/clock/SM", _O, "64 tensor cores at 512")},
    tensor_dense={
        "int8": Figure(85e12, "OP/s", _O, "half of the brief's figure, which is with sparsity; the GPU alone")
    },
    tensor_sparse={"int8": Figure(170e12, "OP/s", _O, "the GPU; 105 more are of the module's DLA units")},
    stated={"float32": Figure(5.3e12, "FLOP/s", _O)},
    gpcs=Figure(2, "GPCs", _O),
    tpcs=Figure(8, "TPCs", _O),
    bus_bits=Figure(256, "bit", _O),
    aliases=("jetson agx orin", "orin", "jetson orin"),
)
