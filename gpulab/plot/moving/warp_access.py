"""What one load of a warp costs: the 32-byte sectors that it moves, or the passes of shared memory's banks.

Sliders set stride, shift, element size and padding. Two patterns stand below each other on one scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gpulab.plot.records import BANKS, LANES, SECTOR, Request

from . import svg
from .figure import Figured, Moving

SIZES = (1, 2, 4, 8, 16)  # bytes of an element
MOST = 64  # of stride and shift, in elements
PADDED = 4  # elements at most


@dataclass(frozen=True)
class Pattern:
    """Lane k reads element ``shift + k * (stride + padding)`` of `size` bytes. The array begins where a
    sector begins, and in bank 0.

    Raises ValueError for a stride or shift outside 0 … 64, a padding outside 0 … 4 and a size that no lane
    reads at once.
    """

    stride: int = 1
    shift: int = 0
    size: int = 4
    padding: int = 0
    title: str = ""

    def __post_init__(self) -> None:
        fits = 0 <= self.stride <= MOST and 0 <= self.shift <= MOST and 0 <= self.padding <= PADDED
        if not fits or self.size not in SIZES:
            raise ValueError(
                f"stride and shift go from 0 to {MOST}, padding from 0 to {PADDED}, and an element has "
                f"{', '.join(map(str, SIZES))} bytes; got stride {self.stride}, shift {self.shift}, "
                f"padding {self.padding}, size {self.size}"
            )

    @property
    def step(self) -> int:
        """Elements from one lane's to the next lane's."""
        return self.stride + self.padding

    def request(self) -> Request:
        """The load, as figures take it."""
        return Request((self.shift + self.step * np.arange(LANES)) * self.size, size=self.size)

    def told(self, banks: bool) -> str:
        """What the request costs, in a sentence; the script says the same."""
        request = self.request()
        what = {0: "all the same element", 1: "neighbouring elements"}
        step = what.get(self.step, f"every {_ordinal(self.step)} element")
        each = f"{self.size} byte{'' if self.size == 1 else 's'} each"
        if banks:
            passes, least = request.wavefronts, max(self.size // 4, 1)
            fronts = f"{passes} wavefront{'' if passes == 1 else 's'}"
            why = "because one bank delivers one word at a time" if passes > least else "no conflict"
            return f"32 lanes read {each}, {step}: {fronts}, {why}."
        count = len(request.sectors)
        moved = "1 sector of 32 bytes moves" if count == 1 else f"{count} sectors of 32 bytes move"
        which = "its" if count == 1 else "their"
        used = f"{request.useful_bytes} of {which} {SECTOR * count} bytes are used"
        return f"32 lanes read {each}, {step}: {moved}, {used}."


@dataclass(frozen=True)
class WarpAccess(Figured):
    """One or two patterns, in global memory or with `banks` in shared memory.

    >>> WarpAccess([Pattern(shift=1)]).told().partition(": ")[2]
    '5 sectors of 32 bytes move, 128 of their 160 bytes are used.'
    """

    patterns: Sequence[Pattern] = (Pattern(),)
    banks: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.patterns) <= 2:
            raise ValueError(f"one or two patterns fit on one scale; got {len(self.patterns)}")

    def told(self) -> str:
        """What the requests cost."""
        said = []
        for pattern in self.patterns:
            words = pattern.told(self.banks)
            said.append(f"{pattern.title}: {words}" if pattern.title else words)
        return " ".join(said)

    def record(self) -> dict[str, Any]:
        """JSON-able."""
        return {"banks": self.banks, "patterns": [asdict(pattern) for pattern in self.patterns]}

    def figure(self) -> Moving:
        """The figure, with all lanes of the warp."""
        what = "Lanes to banks" if self.banks else "Lanes to sectors"
        return Moving("warp access", self.record(), self._picture(), f"{what}. {self.told()}")

    # ---- the first frame -------------------------------------------------------------------------

    def _picture(self) -> str:
        parts: list[str] = []
        y = 8.0
        most = max(len(p.request().sectors) for p in self.patterns)
        for pattern in self.patterns:
            words = pattern.told(self.banks)
            for line in filter(None, [pattern.title, words[: words.index(": ") + 1]]):
                y += 20
                parts.append(svg.text(14, y, line, "strong" if line == pattern.title else ""))
            y += 18
            parts.append(svg.text(14, y, words[words.index(": ") + 2 :], "soft"))
            y = (
                self._banks(parts, pattern, y + 22)
                if self.banks
                else self._sectors(parts, pattern, most, y + 22)
            )
            y += 16
        return svg.page(parts, y)

    @staticmethod
    def _lane(lane: int) -> float:
        return 14 + (lane + 0.5) * (svg.WIDTH - 28) / LANES

    def _sectors(self, parts: list[str], pattern: Pattern, most: int, y: float) -> float:
        request = pattern.request()
        order = {int(sector): i for i, sector in enumerate(request.sectors)}
        room = (svg.WIDTH - 28) / max(most, len(order))
        width, left, low = min(room, 130.0) - 3, 14.0, y + 72
        parts += [svg.box(left + room * i, low, width, 22, "cell") for i in range(len(order))]
        for lane, offset in enumerate(map(int, np.asarray(request.addresses))):
            byte = left + room * order[offset // SECTOR] + width * (offset % SECTOR) / SECTOR
            span = width * pattern.size / SECTOR
            parts.append(svg.box(byte, low, span, 22, "byte"))
            parts.append(svg.wire(self._lane(lane), y + 6, byte + span / 2, low))
            parts.append(svg.lane(self._lane(lane), y, "active"))
        return low + 22

    def _banks(self, parts: list[str], pattern: Pattern, y: float) -> float:
        cells = pattern.request().bank_cells
        rows = 1 + max(row for row, _ in cells)
        low, tall = y + 60, min(16.0, 200 / rows)
        wide = (svg.WIDTH - 28) / BANKS
        for (row, bank), lanes in cells.items():
            x, top = 14 + bank * wide, low + row * tall
            for lane in lanes:
                parts.append(svg.wire(self._lane(lane), y + 6, x + wide / 2, top))
            parts.append(svg.box(x + 1, top + 0.5, wide - 2, tall - 1, "byte"))
        parts += [svg.lane(self._lane(lane), y, "active") for lane in range(LANES)]
        for bank in (0, 7, 15, 23, 31):
            parts.append(
                svg.text(14 + (bank + 0.5) * wide, low + rows * tall + 14, f"{bank}", "soft tiny middle")
            )
        return low + rows * tall + 18


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"
