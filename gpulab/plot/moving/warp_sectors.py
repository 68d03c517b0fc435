"""One load of a warp and the 32-byte sectors that it moves; sliders set stride, shift and element size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpulab.plot.records import LANES, SECTOR, Request

from . import svg
from .figure import Moving

SIZES = (1, 2, 4, 8, 16)  # bytes of an element
MOST = 32  # of stride and shift, in elements


@dataclass(frozen=True)
class WarpSectors:
    """Lane k reads element ``shift + k * stride`` of `size` bytes. The array begins where a sector begins.

    Raises ValueError for a stride or shift outside 0 … 32 and a size that no lane reads at once.

    >>> WarpSectors(shift=1).told().partition(": ")[2]
    '5 sectors of 32 bytes move, 128 of their 160 bytes are used.'
    """

    stride: int = 1
    shift: int = 0
    size: int = 4

    def __post_init__(self) -> None:
        if not (0 <= self.stride <= MOST and 0 <= self.shift <= MOST) or self.size not in SIZES:
            raise ValueError(
                f"stride and shift go from 0 to {MOST}, and an element has {', '.join(map(str, SIZES))}"
                f" bytes; got stride {self.stride}, shift {self.shift}, size {self.size}"
            )

    def request(self) -> Request:
        return Request((self.shift + self.stride * np.arange(LANES)) * self.size, size=self.size)

    def told(self) -> str:
        """What the request moves, in a sentence; the script says the same."""
        request = self.request()
        count = len(request.sectors)
        what = {
            0: "all the same element",
            1: "neighbouring elements",
            2: "every 2nd element",
            3: "every 3rd element",
        }
        step = what.get(self.stride, f"every {_ordinal(self.stride)} element")
        moved = "1 sector of 32 bytes moves" if count == 1 else f"{count} sectors of 32 bytes move"
        which = "its" if count == 1 else "their"
        each = f"{self.size} byte{'' if self.size == 1 else 's'} each"
        return (
            f"32 lanes read {each}, {step}: {moved}, "
            f"{request.useful_bytes} of {which} {SECTOR * count} bytes are used."
        )  # fmt: skip

    def figure(self) -> Moving:
        record = {"stride": self.stride, "shift": self.shift, "size": self.size}
        return Moving("warp sectors", record, self._picture(), f"Lanes to sectors. {self.told()}")

    def _picture(self) -> str:
        request = self.request()
        order = {int(sector): i for i, sector in enumerate(request.sectors)}
        room = (svg.WIDTH - 28) / len(order)
        width, left = min(room, 130.0) - 3, 14.0
        parts = [svg.text(14, 24, "lanes", "soft"), svg.text(14, 158, "sectors of 32 bytes", "soft")]
        parts += [svg.box(left + room * i, 118, width, 22, "cell") for i in range(len(order))]
        for lane, offset in enumerate(map(int, np.asarray(request.addresses))):
            x = 14 + (lane + 0.5) * (svg.WIDTH - 28) / LANES
            byte = left + room * order[offset // SECTOR] + width * (offset % SECTOR) / SECTOR
            span = width * self.size / SECTOR
            parts.append(svg.box(byte, 118, span, 22, "byte"))
            parts.append(svg.wire(x, 46, byte + span / 2, 118))
            parts.append(svg.lane(x, 40, "active"))
        words, break_at = self.told(), self.told().index(": ") + 1
        parts += [svg.text(14, 184, words[:break_at]), svg.text(14, 202, words[break_at + 1 :])]
        return svg.page(parts, 216)


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"
