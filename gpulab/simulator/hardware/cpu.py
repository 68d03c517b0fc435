"""Server CPUs, for the comparison with GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from . import sources
from .figure import MIB, Figure, Source
from .sources import ARITHMETIC


@dataclass(frozen=True, eq=False)
class CPU:
    """One socket. `flop_per_cycle` is per core and by dtype; an FMA counts as two.

    The peak is at the base clock. A few cores, or all of them for a short while, run faster. A Xeon whose
    cores all execute AVX-512 without a pause may have to run slower, so the peak is a yardstick.
    `channels` of 8 bytes at `transfers` per second make the DRAM's bandwidth.
    """

    name: str
    year: Figure
    cores: Figure
    threads_per_core: Figure
    base_clock: Figure
    boost_clock: Figure
    flop_per_cycle: Mapping[str, Figure]
    l3_bytes: Figure
    channels: Figure
    transfers: Figure
    tdp: Figure

    def peak(self, dtype: str = "float32") -> Figure:
        """Cores × FLOP per cycle × base clock. Raises ValueError for a dtype that is not listed."""
        if dtype not in self.flop_per_cycle:
            known = ", ".join(self.flop_per_cycle)
            raise ValueError(f"{self.name} has no rate for {dtype!r}; it has {known}")
        rate = int(self.cores) * int(self.flop_per_cycle[dtype]) * float(self.base_clock)
        return Figure(rate, "FLOP/s", ARITHMETIC)

    @property
    def dram_bandwidth(self) -> Figure:
        return Figure(int(self.channels) * 8 * float(self.transfers), "B/s", ARITHMETIC)

    def __str__(self) -> str:
        return self.name


def _cpu(
    name: str,
    source: Source,
    rates: Source,
    year: int,
    cores: int,
    clocks: tuple[float, float],
    float64: int,
    l3_mib: int,
    memory: tuple[int, float],
    tdp: int,
) -> CPU:
    unit = "FLOP/cycle/core"
    return CPU(
        name,
        Figure(year, "year", source),
        Figure(cores, "cores", source),
        Figure(2, "threads/core", source),
        Figure(clocks[0], "Hz", source),
        Figure(clocks[1], "Hz", source),
        {"float64": Figure(float64, unit, rates), "float32": Figure(2 * float64, unit, rates)},
        Figure(l3_mib * MIB, "B", source),
        Figure(memory[0], "channels", source),
        Figure(memory[1], "T/s", source),
        Figure(tdp, "W", source),
    )


# Two FMA units of 256 bits: 2 × 4 float64 × 2 = 16 FLOP per cycle; of 512 bits: 32.
CPUS: dict[str, CPU] = {
    cpu.name: cpu
    for cpu in (
        _cpu(
            "EPYC 7742", sources.EPYC_7742_PAGE, sources.ZEN2_GUIDE, 2019, 64, (2.25e9, 3.4e9), 16, 256,
            (8, 3.2e9), 225,
        ),
        _cpu(
            "Xeon 8380", sources.XEON_8380_ARK, sources.INTEL_MANUAL, 2021, 40, (2.3e9, 3.4e9), 32, 60,
            (8, 3.2e9), 270,
        ),
        _cpu(
            "EPYC 9654", sources.EPYC_9654_PAGE, sources.ZEN4_GUIDE, 2022, 96, (2.4e9, 3.7e9), 16, 384,
            (12, 4.8e9), 360,
        ),
    )
}  # fmt: skip


def cpu(name: str) -> CPU:
    """The CPU of that name. Raises LookupError, in one line that lists the known ones.

    >>> int(cpu("EPYC 7742").cores)
    64
    """
    if name not in CPUS:
        raise LookupError(f"no CPU is named {name!r}; known are {', '.join(CPUS)}")
    return CPUS[name]
