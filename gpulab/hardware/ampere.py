"""Ampere (2020): bfloat16, tfloat32 and float64 on the tensor cores, and 2:4 sparsity."""

from __future__ import annotations

from .figure import KIB, MIB, Figure
from .gpu import GPU
from .sources import A100_SHEET, ABDELKHALIK_2022, AMPERE_PAPER, RRZE

_P = AMPERE_PAPER
_S = A100_SHEET

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
    aliases=("a100-80gb", "a100-80", "a100-sxm4-80gb", "a100-sxm"),
)
