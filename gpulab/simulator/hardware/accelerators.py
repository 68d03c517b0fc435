"""Accelerators of other makers, as far as figures are public. They have no SMs and are not simulated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from . import sources
from .figure import KIB, MIB, Figure, Source


@dataclass(frozen=True, eq=False)
class Accelerator:
    """One accelerator. What no source states is None or missing.

    `units` are what its maker counts (compute units, Xe-cores, …), `width` the lanes that run one instruction
    together. `vector` and `dense` are the maker's rates of the ordinary and of the matrix units, or follow
    from its operations per clock, without sparsity, in FLOP/s (OP/s for integers); `local_bytes` is the store
    that a program manages, per unit; `cache_bytes` the last cache before DRAM; `link` all ports together, one
    direction, B/s. `dram_seen` and `dram_latency` (cycles) were measured.
    """

    name: str
    maker: str
    year: Figure
    units: Figure
    dram_bytes: Figure
    dram_bandwidth: Figure
    clock: Figure | None = None
    width: Figure | None = None
    vector: Mapping[str, Figure] = field(default_factory=dict)
    dense: Mapping[str, Figure] = field(default_factory=dict)
    local_bytes: Figure | None = None
    cache_bytes: Figure | None = None
    link: Figure | None = None
    dram_seen: Figure | None = None
    dram_latency: Figure | None = None
    tdp: Figure | None = None

    def __str__(self) -> str:
        return self.name


def _rates(source: Source, **tera: float) -> dict[str, Figure]:
    return {
        dtype: Figure(rate * 1e12, "OP/s" if dtype.startswith("int") else "FLOP/s", source)
        for dtype, rate in tera.items()
    }


_MI = sources.MI300X_SHEET
_RX = sources.RX7900_PAGE
_MAX = sources.MAX_ARK
_XE = sources.MAX_OVERVIEW
_ARC = sources.ARC_B580_ARK
_GAUDI = sources.GAUDI_PAPER
_V5E = sources.TPU_V5E
_V5P = sources.TPU_V5P
_V6E = sources.TPU_V6E
_7X = sources.TPU_7X
_M3 = sources.M3_ULTRA
_M4 = sources.M4_MAX
_BOTH = "half of the stated sum of both directions"


def _xe_hpc(**per_core: int) -> dict[str, Figure]:
    """Rates of a Max 1550 from the operations of an Xe-core per clock: 128 cores at 1.6 GHz."""
    return {
        dtype: Figure(
            128 * operations * 1.6e9,
            "OP/s" if dtype.startswith("int") else "FLOP/s",
            sources.XE_HPC_TALK,
            f"computed: 128 Xe-cores × {operations:,} operations per clock × 1.6 GHz",
        )
        for dtype, operations in per_core.items()
    }


_MI300X = Accelerator(
    "MI300X",
    "AMD",
    Figure(2023, "year", _MI),
    Figure(304, "compute units", _MI),
    Figure(192e9, "B", _MI),
    Figure(5.3e12, "B/s", _MI),
    clock=Figure(2100e6, "Hz", _MI),
    width=Figure(64, "lanes", sources.ROCM_SPECS),
    vector=_rates(_MI, float64=81.7, float32=163.4),
    dense=_rates(
        _MI,
        float64=163.4,
        float32=163.4,
        tfloat32=653.7,
        float16=1307.4,
        bfloat16=1307.4,
        float8=2614.9,
        int8=2614.9,
    ),
    local_bytes=Figure(64 * KIB, "B", sources.ROCM_SPECS),
    cache_bytes=Figure(256 * MIB, "B", _MI),
    link=Figure(448e9, "B/s", _MI, f"7 links; {_BOTH}"),
    dram_seen=Figure(3997e9, "B/s", sources.RRZE),
    dram_latency=Figure(890, "cycles", sources.RRZE, "behind the Infinity Cache, at 2.09 GHz"),
    tdp=Figure(750, "W", _MI),
)
_MI325 = sources.MI325X_SHEET
_MI355 = sources.MI355X_SHEET

ACCELERATORS: dict[str, Accelerator] = {
    each.name: each
    for each in (
        _MI300X,
        replace(  # the same chip with more and faster memory
            _MI300X,
            name="MI325X",
            year=Figure(2024, "year", _MI325),
            dram_bytes=Figure(256e9, "B", _MI325),
            dram_bandwidth=Figure(6e12, "B/s", _MI325),
            dram_seen=None,
            dram_latency=None,
            tdp=Figure(1000, "W", _MI325),
        ),
        Accelerator(
            "MI355X",
            "AMD",
            Figure(2025, "year", _MI355),
            Figure(256, "compute units", _MI355),
            Figure(288e9, "B", _MI355),
            Figure(8e12, "B/s", _MI355),
            clock=Figure(2400e6, "Hz", _MI355),
            width=Figure(64, "lanes", sources.ROCM_SPECS),
            vector=_rates(_MI355, float64=78.6, float32=157.3),
            dense=_rates(
                _MI355,
                float64=78.6,
                float16=2516.6,
                bfloat16=2516.6,
                float8=5033.2,
                float4=10066.3,
                int8=5033.2,
            ),
            local_bytes=Figure(160 * KIB, "B", sources.ROCM_SPECS),
            cache_bytes=Figure(256 * MIB, "B", sources.ROCM_SPECS),
            tdp=Figure(1400, "W", _MI355),
        ),
        Accelerator(
            "RX 7900 XTX",
            "AMD",
            Figure(2022, "year", _RX),
            Figure(96, "compute units", _RX),
            Figure(24e9, "B", _RX),
            Figure(960e9, "B/s", _RX),
            clock=Figure(2500e6, "Hz", _RX),
            width=Figure(32, "lanes", sources.ROCM_SPECS, "64 as an option"),
            vector=_rates(_RX, float32=61.4),
            dense=_rates(_RX, float16=122.8),
            local_bytes=Figure(128 * KIB, "B", sources.ROCM_SPECS, "per pair of compute units"),
            cache_bytes=Figure(96 * MIB, "B", _RX),
            tdp=Figure(355, "W", _RX),
        ),
        Accelerator(
            "Max 1550",
            "Intel",
            Figure(2023, "year", _MAX),
            Figure(128, "Xe-cores", _XE),
            Figure(128e9, "B", _MAX),
            Figure(3276.8e9, "B/s", _MAX),
            clock=Figure(1600e6, "Hz", _MAX),
            width=Figure(16, "lanes", _XE, "a vector engine of 512 bits"),
            vector=_xe_hpc(float64=256, float32=256),
            dense=_xe_hpc(tfloat32=2048, float16=4096, bfloat16=4096, int8=8192),
            local_bytes=Figure(512 * KIB, "B", _XE, "one store with the L1"),
            cache_bytes=Figure(408 * MIB, "B", _XE),
            tdp=Figure(600, "W", _MAX),
        ),
        Accelerator(
            "Arc B580",
            "Intel",
            Figure(2024, "year", _ARC),
            Figure(20, "Xe-cores", _ARC, "each with a ray-tracing unit"),
            Figure(12e9, "B", _ARC),
            Figure(456e9, "B/s", _ARC),
            clock=Figure(2670e6, "Hz", _ARC),
            dense=_rates(_ARC, int8=233),
            tdp=Figure(190, "W", _ARC),
        ),
        Accelerator(
            "Gaudi 3",
            "Intel",
            Figure(2024, "year", _GAUDI),
            Figure(64, "tensor processor cores", _GAUDI, "and 8 matrix engines"),
            Figure(128e9, "B", _GAUDI),
            Figure(3.7e12, "B/s", _GAUDI),
            dense=_rates(_GAUDI, bfloat16=1835, float8=1835),
            cache_bytes=Figure(96 * MIB, "B", _GAUDI, "SRAM"),
            link=Figure(600e9, "B/s", _GAUDI, "24 ports of 200 Gbit/s Ethernet"),
            tdp=Figure(900, "W", _GAUDI),
        ),
        Accelerator(
            "TPU v5e",
            "Google",
            Figure(2023, "year", _V5E),
            Figure(4, "matrix units", _V5E, "in one TensorCore"),
            Figure(16e9, "B", _V5E),
            Figure(819e9, "B/s", _V5E),
            dense=_rates(_V5E, bfloat16=197, int8=393),
            link=Figure(200e9, "B/s", _V5E, _BOTH),
        ),
        Accelerator(
            "TPU v5p",
            "Google",
            Figure(2023, "year", _V5P),
            Figure(8, "matrix units", _V5P, "in two TensorCores"),
            Figure(95e9, "B", _V5P),
            Figure(2765e9, "B/s", _V5P),
            dense=_rates(_V5P, bfloat16=459),
            link=Figure(600e9, "B/s", _V5P, _BOTH),
        ),
        Accelerator(
            "TPU v6e",
            "Google",
            Figure(2024, "year", _V6E),
            Figure(2, "matrix units", _V6E, "of 256 × 256, in one TensorCore"),
            Figure(32e9, "B", _V6E),
            Figure(1638e9, "B/s", _V6E),
            dense=_rates(_V6E, bfloat16=918, int8=1836),
            link=Figure(400e9, "B/s", _V6E, _BOTH),
        ),
        Accelerator(
            "TPU7x",
            "Google",
            Figure(2025, "year", _7X),
            Figure(2, "TensorCores", _7X),
            Figure(192 * 1024 * MIB, "B", _7X),
            Figure(7380e9, "B/s", _7X),
            dense=_rates(_7X, bfloat16=2307, float8=4614),
            link=Figure(600e9, "B/s", _7X, _BOTH),
        ),
        Accelerator(
            "M3 Ultra",
            "Apple",
            Figure(2025, "year", _M3),
            Figure(80, "GPU cores", _M3, "at most"),
            Figure(512e9, "B", _M3, "at most; shared with the CPU"),
            Figure(819e9, "B/s", _M3, "shared with the CPU"),
        ),
        Accelerator(
            "M4 Max",
            "Apple",
            Figure(2024, "year", _M4),
            Figure(40, "GPU cores", _M4),
            Figure(128e9, "B", _M4, "at most; shared with the CPU"),
            Figure(546e9, "B/s", _M4, "shared with the CPU"),
        ),
    )
}


def accelerator(name: str) -> Accelerator:
    """The accelerator of that name. Raises LookupError, in one line that lists the known ones.

    >>> accelerator("MI300X").name
    'MI300X'
    """
    if name not in ACCELERATORS:
        raise LookupError(f"no accelerator is named {name!r}; known are {', '.join(ACCELERATORS)}")
    return ACCELERATORS[name]
