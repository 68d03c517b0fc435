"""Turing (2018): tensor cores for int8 and int4 as well; the GPU of free notebook services."""

from __future__ import annotations

from .figure import KIB, MIB, Figure
from .gpu import GPU
from .sources import GUIDE, JIA_2019, T4_SHEET, TURING_PAPER

_P = TURING_PAPER
_S = T4_SHEET

T4 = GPU(
    name="T4",
    product="Tesla T4 16 GB",
    architecture="Turing",
    cc=(7, 5),
    year=Figure(2018, "year", _P),
    sms=Figure(40, "SMs", _P),
    fp32_lanes=Figure(64, "lanes/SM", _P),
    fp64_lanes=Figure(2, "lanes/SM", GUIDE),
    int32_lanes=Figure(64, "lanes/SM", _P),
    tensor_cores=Figure(8, "tensor cores/SM", _P),
    boost_clock=Figure(1590e6, "Hz", _P),
    tensor_clock=Figure(1590e6, "Hz", _P),
    l1_bytes=Figure(96 * KIB, "B", _P),
    l2_bytes=Figure(4 * MIB, "B", _P),
    dram_bytes=Figure(16e9, "B", _S),
    dram_bandwidth=Figure(320e9, "B/s", _S),
    dram_seen=Figure(220e9, "B/s", JIA_2019),
    tdp=Figure(70, "W", _S),
    tensor_fma={
        "float16": Figure(512, "FMA/clock/SM", _P),
        "int8": Figure(1024, "FMA/clock/SM", _P),
        "int4": Figure(2048, "FMA/clock/SM", _P),
    },
    tensor_dense={
        "float16": Figure(65e12, "FLOP/s", _S),
        "int8": Figure(130e12, "OP/s", _S),
        "int4": Figure(260e12, "OP/s", _S),
    },
    stated={"float32": Figure(8.1e12, "FLOP/s", _S)},
    shared_latency=Figure(19, "cycles", JIA_2019),
    l1_latency=Figure(32, "cycles", JIA_2019),
    l2_latency=Figure(188, "cycles", JIA_2019),
    bus_bits=Figure(256, "bit", _P),
    die_area=Figure(545, "mm²", _P, "of the TU104 chip"),
    transistors=Figure(13.6e9, "transistors", _P, "of the TU104 chip"),
    host_link="PCIe 3.0 ×16",
    aliases=("tesla t4",),
)
