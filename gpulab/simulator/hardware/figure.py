"""A number with its unit and its source. Nothing in this package states a figure in any other way."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB

_DECIMAL = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_SCALED = {"FLOP/s", "OP/s", "B/s", "Hz"}


@dataclass(frozen=True)
class Source:
    """A document that states figures: what it is called, who published it, when, and where it can be read."""

    title: str
    publisher: str
    year: int
    where: str = ""

    def __str__(self) -> str:
        place = f", {self.where}" if self.where else ""
        return f"{self.publisher}, {self.title} ({self.year}){place}"


@dataclass(frozen=True)
class Figure:
    """One figure of a data sheet: a value, its unit and its source.

    Values are in base units: B, B/s, FLOP/s, OP/s, Hz, cycles, W. `note` says what the source leaves
    open, for example on which board it was measured.
    Raises ValueError without a unit or a source.
    """

    value: float
    unit: str
    source: Source
    note: str = ""

    def __post_init__(self) -> None:
        if not self.unit:
            raise ValueError(f"the figure {self.value} has no unit")
        if not isinstance(self.source, Source) or not self.source.title:
            raise ValueError(f"the figure {self.value} {self.unit} has no source")

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __str__(self) -> str:
        return amount(self.value, self.unit)


def amount(value: float, unit: str) -> str:
    """`value` in `unit`, with the prefix that keeps it short: 19.5 TFLOP/s, 40 MiB, 1.41 GHz, 108 SMs.

    >>> amount(19.5e12, "FLOP/s")
    '19.5 TFLOP/s'
    >>> amount(40 * 2**20, "B")
    '40 MiB'
    """
    if unit == "B":
        for size, name in _BINARY:
            if value >= size:
                return f"{value / size:.4g} {name}"
        return f"{value:,.0f} B"
    if unit in _SCALED:
        for scale, prefix in _DECIMAL:
            if value >= scale:
                return f"{value / scale:.4g} {prefix}{unit}"
    return f"{value:,g} {unit}"
