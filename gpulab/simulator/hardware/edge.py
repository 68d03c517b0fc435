"""Chips of small devices: boards for robots, phones, laptops. CPU, GPU and others share one DRAM there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import sources
from .ampere import AGX_ORIN
from .blackwell import AGX_THOR, GB10
from .figure import Figure, Source


@dataclass(frozen=True)
class PowerMode:
    """A mode that caps clocks so that the module stays below `watts`, which is no measured draw.

    `watts` is None where the mode has no cap. `sms` are those that stay on.
    """

    name: str
    watts: Figure | None
    gpu_clock: Figure
    sms: Figure
    dram_bandwidth: Figure

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, eq=False)
class EdgeDevice:
    """One device, or the chip in it. What its maker does not state is None.

    `kind` is board, phone, laptop or desktop. `advertised` is the rate in the headline, whose note says what
    it counts; `dense` the rate of the same dtype without sparsity, where the maker states it or says that the
    headline is with 2:4 sparsity, which doubles. `tdp` is the highest that the maker allows, W.
    """

    name: str
    maker: str
    kind: str
    year: Figure
    dram_bytes: Figure
    dram_bandwidth: Figure
    advertised: Figure | None = None
    dense: Figure | None = None
    tdp: Figure | None = None
    modes: tuple[PowerMode, ...] = ()

    def __str__(self) -> str:
        return self.name


def _memory(bus_bits: int, transfers: float, source: Source) -> Figure:
    """Bytes per second of a bus: bits ÷ 8 × transfers per second."""
    note = f"computed: {bus_bits} bits at {transfers / 1e6:,.0f} MT/s"
    return Figure(bus_bits / 8 * transfers, "B/s", source, note)


def _mode(
    name: str, watts: float | None, clock: float, sms: int, bus_bits: int, memory_clock: float, source: Source
) -> PowerMode:
    return PowerMode(
        name,
        None if watts is None else Figure(watts, "W", source, "a cap on the module"),
        Figure(clock, "Hz", source),
        Figure(sms, "SMs", source),
        _memory(bus_bits, 2 * memory_clock, source),  # double data rate
    )


_NANO = sources.ORIN_NANO_SHEET
_SUPER = sources.ORIN_SUPER
_NX = sources.ORIN_NX_SHEET
_MODES = sources.NVPMODEL
_X = sources.X_ELITE_BRIEF
_PHONE = sources.ELITE_8_BRIEF
_MAX = sources.RYZEN_MAX_PAGE
_LUNAR = sources.CORE_258V_ARK
_M4 = sources.M4_NEWS
_PI = sources.BCM2712
_HALF = "half of the rate with sparsity"

EDGE: dict[str, EdgeDevice] = {
    each.name: each
    for each in (
        EdgeDevice(
            "Orin Nano",
            "NVIDIA",
            "board",
            Figure(2023, "year", _NANO),
            Figure(8e9, "B", _NANO),
            Figure(68e9, "B/s", _NANO),
            Figure(40e12, "OP/s", _NANO, "int8, 2:4 sparse, GPU"),
            Figure(20e12, "OP/s", _NANO, "int8"),
            Figure(15, "W", _NANO),
        ),
        EdgeDevice(
            "Orin Nano Super",
            "NVIDIA",
            "board",
            Figure(2024, "year", _SUPER, "the same module with other clocks"),
            Figure(8e9, "B", _SUPER),
            Figure(102e9, "B/s", _SUPER),
            Figure(67e12, "OP/s", _SUPER, "int8, 2:4 sparse, GPU"),
            Figure(33e12, "OP/s", _SUPER, "int8"),
            Figure(25, "W", _SUPER),
            modes=(
                _mode("15W", 15, 612e6, 8, 128, 2133e6, _MODES),
                _mode("25W", 25, 918e6, 8, 128, 3199e6, _MODES),
                _mode("MAXN_SUPER", None, 1020e6, 8, 128, 3199e6, _MODES),
            ),
        ),
        EdgeDevice(
            "Orin NX 16 GB",
            "NVIDIA",
            "board",
            Figure(2023, "year", _NX),
            Figure(16e9, "B", _NX),
            Figure(102.4e9, "B/s", _NX),
            Figure(100e12, "OP/s", _NX, "int8, 2:4 sparse, GPU and DLA"),
            Figure(50e12, "OP/s", _NX, f"int8; {_HALF}"),
            Figure(25, "W", _NX),
        ),
        EdgeDevice(
            "AGX Orin 64 GB",
            "NVIDIA",
            "board",
            AGX_ORIN.year,
            AGX_ORIN.dram_bytes,
            AGX_ORIN.dram_bandwidth,
            Figure(275e12, "OP/s", sources.ORIN_BRIEF, "int8, 2:4 sparse, GPU and DLA"),
            Figure(137.5e12, "OP/s", sources.ORIN_BRIEF, f"int8; {_HALF}; 85 of it on the GPU"),
            AGX_ORIN.tdp,
            modes=(
                _mode("15W", 15, 408e6, 6, 256, 2133e6, _MODES),
                _mode("30W", 30, 612e6, 8, 256, 3199e6, _MODES),
                _mode("50W", 50, 816e6, 16, 256, 3199e6, _MODES),
                _mode("MAXN", None, 1300.5e6, 16, 256, 3199e6, _MODES),
            ),
        ),
        EdgeDevice(
            "Thor T5000",
            "NVIDIA",
            "board",
            AGX_THOR.year,
            AGX_THOR.dram_bytes,
            AGX_THOR.dram_bandwidth,
            replace(AGX_THOR.tensor_sparse["float4"], note="float4, 2:4 sparse, GPU"),
            replace(AGX_THOR.tensor_dense["float4"], note=f"float4; {_HALF}"),
            AGX_THOR.tdp,
        ),
        EdgeDevice(
            "DGX Spark",
            "NVIDIA",
            "desktop",
            GB10.year,
            GB10.dram_bytes,
            GB10.dram_bandwidth,
            replace(GB10.tensor_sparse["float4"], note="float4, 2:4 sparse, GPU"),
            replace(GB10.tensor_dense["float4"], note=f"float4; {_HALF}"),
            GB10.tdp,
        ),
        EdgeDevice(
            "Snapdragon 8 Elite",
            "Qualcomm",
            "phone",
            Figure(2024, "year", _PHONE),
            Figure(24e9, "B", _PHONE, "at most; the phone's maker chooses"),
            replace(
                _memory(64, 2 * 5300e6, _PHONE),
                note="computed: the brief's 10,600 MT/s; it states no width, 64 bits are usual in phones",
            ),
        ),
        EdgeDevice(
            "Snapdragon X Elite",
            "Qualcomm",
            "laptop",
            Figure(2024, "year", _X),
            Figure(64e9, "B", _X, "at most"),
            Figure(135e9, "B/s", _X),
            Figure(45e12, "OP/s", _X, "NPU; sparsity not stated"),
        ),
        EdgeDevice(
            "Core Ultra 7 258V",
            "Intel",
            "laptop",
            Figure(2024, "year", _LUNAR),
            Figure(32e9, "B", _LUNAR),
            _memory(128, 8533e6, _LUNAR),
            Figure(47e12, "OP/s", _LUNAR, "int8, NPU; sparsity supported, share not stated"),
            tdp=Figure(37, "W", _LUNAR, "maximum turbo power; 17 at the base"),
        ),
        EdgeDevice(
            "Ryzen AI Max+ 395",
            "AMD",
            "laptop",
            Figure(2025, "year", _MAX),
            Figure(128e9, "B", _MAX, "at most"),
            _memory(256, 8000e6, _MAX),
            Figure(50e12, "OP/s", _MAX, "NPU; sparsity not stated"),
            tdp=Figure(120, "W", _MAX, "configurable from 45"),
        ),
        EdgeDevice(
            "M4",
            "Apple",
            "laptop",
            Figure(2024, "year", _M4),
            Figure(32e9, "B", _M4, "at most"),
            Figure(120e9, "B/s", _M4),
            Figure(38e12, "OP/s", _M4, "Neural Engine; dtype and sparsity not stated"),
        ),
        EdgeDevice(
            "M4 Max",
            "Apple",
            "laptop",
            Figure(2024, "year", sources.M4_MAX),
            Figure(128e9, "B", sources.M4_MAX, "at most"),
            Figure(546e9, "B/s", sources.M4_MAX),
        ),
        EdgeDevice(
            "Raspberry Pi 5",
            "Raspberry Pi",
            "board",
            Figure(2023, "year", _PI),
            Figure(16e9, "B", _PI, "at most, since 2025"),
            Figure(17e9, "B/s", _PI, "at most; 32 bits of LPDDR4X"),
        ),
    )
}


def edge(name: str) -> EdgeDevice:
    """The device of that name. Raises LookupError, in one line that lists the known ones.

    >>> edge("Orin Nano").name
    'Orin Nano'
    """
    if name not in EDGE:
        raise LookupError(f"no edge device is named {name!r}; known are {', '.join(EDGE)}")
    return EDGE[name]
