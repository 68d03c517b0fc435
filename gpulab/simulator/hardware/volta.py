"""Volta (2017): the first tensor cores, float16 only."""

from __future__ import annotations

from .figure import KIB, MIB, Figure
from .gpu import GPU
from .sources import JIA_2018, RRZE, VOLTA_PAPER

_P = VOLTA_PAPER

V100 = GPU(
    name="V100",
    product="Tesla V100 SXM2 16 GB",
    architecture="Volta",
    cc=(7, 0),
    year=Figure(2017, "year", _P),
    sms=Figure(80, "SMs", _P),
    fp32_lanes=Figure(64, "lanes/SM", _P),
    fp64_lanes=Figure(32, "lanes/SM", _P),
    int32_lanes=Figure(64, "lanes/SM", _P),
    tensor_cores=Figure(8, "tensor cores/SM", _P),
    boost_clock=Figure(1530e6, "Hz", _P),
    tensor_clock=Figure(1530e6, "Hz", _P),
    l1_bytes=Figure(128 * KIB, "B", _P),
    l2_bytes=Figure(6 * MIB, "B", _P),
    dram_bytes=Figure(16e9, "B", _P),
    dram_bandwidth=Figure(900e9, "B/s", _P),
    dram_seen=Figure(809e9, "B/s", RRZE),
    l2_seen=Figure(2155e9, "B/s", JIA_2018, "of a card at 1.38 GHz, as others quote it"),
    tdp=Figure(300, "W", _P),
    tensor_fma={"float16": Figure(512, "FMA/clock/SM", _P)},
    tensor_dense={"float16": Figure(125e12, "FLOP/s", _P)},
    stated={"float32": Figure(15.7e12, "FLOP/s", _P), "float64": Figure(7.8e12, "FLOP/s", _P)},
    shared_latency=Figure(19, "cycles", JIA_2018),
    l1_latency=Figure(28, "cycles", RRZE),
    l2_latency=Figure(212, "cycles", RRZE),
    dram_latency=Figure(434, "cycles", RRZE),
    gpcs=Figure(6, "GPCs", _P),
    tpcs=Figure(40, "TPCs", _P),
    bus_bits=Figure(4096, "bit", _P),
    die_area=Figure(815, "mm²", _P),
    transistors=Figure(21.1e9, "transistors", _P),
    host_link="PCIe 3.0 ×16",
    gpu_link="NVLink 2",
    aliases=("tesla v100", "v100-sxm2", "v100-16gb"),
)
