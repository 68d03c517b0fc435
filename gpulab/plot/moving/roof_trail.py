"""The roofline with a GPU and a number format to choose, and attempts at a kernel as a trail below it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from gpulab.plot.records import Point
from gpulab.simulator import hardware

from .figure import Figured, Moving
from .frames import Drawing

GPUS = ("T4", "V100", "A100", "L4", "H100", "H200", "B200")
FORMATS = ("float64", "float32", "tf32", "float16", "bfloat16", "fp8", "int8")
HEIGHT = 330.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 14.0, 16.0, 46.0  # margins


@dataclass(frozen=True)
class RoofTrail(Figured):
    """Kernels at their intensity (FLOP per byte of DRAM traffic), in the order in which they were written. A
    kernel whose rate is not known is a hollow mark on the roof: the most that it can reach.

    `gpus` and `formats` can be chosen, `gpu` and `dtype` are chosen at first; a GPU has the formats for which
    its maker states a rate. Raises ValueError for a point without an intensity, and without a point.

    >>> RoofTrail([Point("saxpy", 1 / 6)]).told(0)
    '1, saxpy: 0.167 FLOP/B. There the roof of A100 for float32 is 0.259 TFLOP/s, set by memory.'
    """

    points: Sequence[Point]
    gpu: str = "A100"
    dtype: str = "float32"
    gpus: Sequence[str] = GPUS
    formats: Sequence[str] = FORMATS

    def __post_init__(self) -> None:
        if not self.points:
            raise ValueError("a trail needs at least one attempt")
        if missing := [p.label for p in self.points if not p.intensity or p.intensity < 0]:
            raise ValueError(
                f"there is no intensity for {' and '.join(missing)}: the run did no floating-point operation "
                "or touched no memory"
            )
        if self.dtype not in self.roofs().get(self.gpu, {}):
            raise ValueError(
                f"no rate is stated for {self.dtype} on {self.gpu}; choose another format or GPU"
            )

    def roofs(self) -> dict[str, dict[str, tuple[float, float]]]:
        """(peak in FLOP/s, bandwidth in B/s) for each GPU and format."""
        found: dict[str, dict[str, tuple[float, float]]] = {}
        for gpu in dict.fromkeys([*self.gpus, self.gpu]):
            for dtype in dict.fromkeys([*self.formats, self.dtype]):
                try:
                    roof = hardware.roofline(gpu, dtype)
                except ValueError:
                    continue
                found.setdefault(gpu, {})[dtype] = (roof.peak, roof.bandwidth)
        return found

    def told(self, index: int) -> str:
        """The caption of an attempt on the chosen roof; the script says the same of any other."""
        point, (peak, bandwidth) = self.points[index], self.roofs()[self.gpu][self.dtype]
        limit = min(peak, point.intensity * bandwidth)
        by = "memory" if point.intensity < peak / bandwidth else "arithmetic"
        said = (
            f"{index + 1}, {point.label}: {_three(point.intensity)} FLOP/B. There the roof of {self.gpu} for "
        )
        said += f"{self.dtype} is {_three(limit / 1e12)} TFLOP/s, set by {by}."
        if point.rate:
            said += f" The kernel reaches {_three(point.rate / 1e12)} TFLOP/s."
        return said

    def _range(self) -> tuple[float, float, float, float]:
        """Ends of both axes, wide enough for all roofs, so that the scale stays when another is chosen."""
        roofs = [roof for formats in self.roofs().values() for roof in formats.values()]
        left = min(0.125, *(p.intensity / 2 for p in self.points))
        right = max(
            2 * max(peak / bandwidth for peak, bandwidth in roofs), *(2 * p.intensity for p in self.points)
        )
        low = min([left * min(b for _, b in roofs), *(p.rate / 2 for p in self.points if p.rate)])
        return left, right, low, 2 * max(peak for peak, _ in roofs)

    def record(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "gpu": self.gpu,
            "dtype": self.dtype,
            "roofs": {
                gpu: {d: list(roof) for d, roof in formats.items()} for gpu, formats in self.roofs().items()
            },
            "points": [{"label": p.label, "intensity": p.intensity, "rate": p.rate} for p in self.points],
            "range": list(self._range()),
        }

    def figure(self) -> Moving:
        """The figure, on the last attempt."""
        last = len(self.points) - 1
        return Moving("roof trail", self.record(), self._picture(), f"Roofline. {self.told(last)}")

    def _picture(self) -> str:
        from .frames import Frame, Frames

        drawing, (left, right, low, high) = Drawing(640), self._range()
        (peak, bandwidth), width = self.roofs()[self.gpu][self.dtype], 640.0

        def x(intensity: float) -> float:
            return LEFT + (width - LEFT - RIGHT) * math.log(intensity / left) / math.log(right / left)

        def y(rate: float) -> float:
            return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * math.log(rate / low) / math.log(high / low)

        for exponent in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1):
            drawing.text(LEFT - 8, y(10**exponent) + 4, _si(10**exponent), "soft small end")
            drawing.path(f"M{LEFT} {y(10**exponent):.1f}H{width - RIGHT}", "grid")
        for exponent in range(math.ceil(math.log2(left)), math.floor(math.log2(right)) + 1, 2):
            drawing.text(x(2**exponent), HEIGHT - BOTTOM + 18, f"{2.0**exponent:g}", "soft small middle")
        drawing.text((LEFT + width) / 2, HEIGHT - 8, "FLOP per byte of DRAM traffic", "soft small middle")
        ridge = peak / bandwidth
        drawing.path(
            f"M{x(left):.1f} {y(left * bandwidth):.1f}L{x(ridge):.1f} {y(peak):.1f}H{width - RIGHT}", "roof"
        )
        drawing.text(
            width - RIGHT, y(peak) - 8, f"{self.gpu}, {self.dtype}: {_si(peak)}FLOP/s", "small end strong"
        )
        places = [(x(p.intensity), y(p.rate or min(peak, p.intensity * bandwidth))) for p in self.points]
        for (x1, y1), (x2, y2) in pairwise(places):
            drawing.path(f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}", "wire")
        for number, ((at, height), point) in enumerate(zip(places, self.points, strict=True), 1):
            drawing.dot(at, height, 9, "tried" if point.rate else "tried hollow")
            drawing.text(at, height + 4, str(number), f"small middle {'onfull' if point.rate else 'strong'}")
        drawing.text(0, HEIGHT + 2, "", "")
        return Frames(drawing, [Frame(self.told(len(self.points) - 1))], "Roofline")._picture()


def _three(value: float) -> str:
    """Three significant digits, never in powers of ten."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{float(f'{value:.3g}'):.10f}".rstrip("0").rstrip(".")


def _si(value: float) -> str:
    for size, sign in ((1e15, "P"), (1e12, "T"), (1e9, "G")):
        if value >= size:
            return f"{value / size:.3g} {sign}"
    return f"{value:g} "
