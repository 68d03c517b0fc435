"""One request of a warp in memory: the sectors that it moves and the bytes of them that it wanted."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from . import readings, style
from .records import LANES, LINE, SECTOR, WORD, Request

ROWS = 12  # lines of 128 bytes shown at most
GAP = 0.35  # between sectors, in words


def accesses(request: Request, ax: Axes | None = None) -> style.Picture:
    """Draw one warp's request. A row is a line of 128 bytes, its four groups are the sectors of 32 bytes.

    A sector that is touched is moved whole: coloured cells are what a lane asked for (the number is the
    lane), hollow ones travel unused. Sectors that do not travel are left out.
    """
    lines = np.unique(request.sectors // (LINE // SECTOR))
    shown = lines[:ROWS]
    ax, given = style.begin(ax, LANES * style.CELL, 1.1 + style.CELL * 1.05 * len(shown))
    style.bare(ax)
    style.source_line(ax, request.line, request.text, f"{request.kind}{_of(request.array)}")
    for row, line in enumerate(shown):
        _draw_line(ax, request, int(line) * LINE, row)
        offset = int(line) * LINE - request.base
        ax.text(-0.4, row + 0.45, f"{offset:+,} B", ha="right", va="center", fontsize=8, color=style.INK)
    more = len(lines) - len(shown)
    if more:
        ax.text(0, len(shown) + 0.6, f"… and {style.plural(more, 'line')} more", fontsize=8, color=style.INK)
    ax.set_xlim(-4.5, LINE / WORD + 3 * GAP + 0.2)
    ax.set_ylim(len(shown) + (0.9 if more else 0.1), -0.2)
    return style.finish(ax, _told(request), given)


def _draw_line(ax: Axes, request: Request, start: int, row: int) -> None:
    """Draw the 128 bytes from the address `start` on. A cell is as wide as what one lane accesses."""
    order = {int(sector): i for i, sector in enumerate(request.sectors)}
    wanted: dict[int, tuple[int, ...]] = {}
    for lane in request.lanes:
        address = int(np.asarray(request.addresses)[lane])
        wanted[address] = (*wanted.get(address, ()), int(lane))
    width = request.size / WORD
    for address in range(start, start + LINE, request.size):
        sector = address // SECTOR
        if sector not in order:
            continue
        x = (address - start) / WORD + GAP * (sector - start // SECTOR)
        lanes = wanted.get(address, ())
        fill = style.SERIES[order[sector] % 2] if lanes else None
        text = style.lanes_text(lanes) if width >= 0.5 else ""  # a byte is too narrow for a number
        style.cell(ax, x, row, text, fill, width=width, height=0.9)
    first = start // SECTOR
    for sector in range(first, first + LINE // SECTOR):
        if sector in order:
            x = (sector - first) * (SECTOR / WORD + GAP)
            asked = {address: lanes for address, lanes in wanted.items() if address // SECTOR == sector}
            readings.say(ax, x, row, SECTOR / WORD, 0.9, _of_sector(request, sector, asked))


def _of_sector(request: Request, sector: int, asked: dict[int, tuple[int, ...]]) -> str:
    """A sector in words: where it lies, which lanes asked for it, and how much of it they wanted."""
    offset = sector * SECTOR - request.base
    lanes = sorted(lane for of_one in asked.values() for lane in of_one)
    some = (
        f"{lanes[0]} to {lanes[-1]}"
        if len(lanes) > 2 and lanes == list(range(lanes[0], lanes[-1] + 1))
        else ""
    )
    who = f"lane{'s' if len(lanes) > 1 else ''} {some or ', '.join(map(str, lanes))}"
    used = min(SECTOR, len(asked) * request.size)
    return (
        f"bytes {offset:,} to {offset + SECTOR - 1:,}\nasked for by {who}\n{used} of {SECTOR} bytes are used"
    )


def _of(array: str) -> str:
    return f" of {array}" if array else ""


def _told(request: Request) -> str:
    count = len(request.sectors)
    moved = SECTOR * count
    lanes = "its 32 lanes" if len(request.lanes) == LANES else style.plural(len(request.lanes), "active lane")
    kernel = f" in {request.kernel}" if request.kernel else ""
    rest = "nothing travels unused" if moved == request.useful_bytes else "hollow cells travel unused"
    return (
        f"This {request.kind}{style.quoted(request.array)}{kernel} moves "
        f"{style.plural(count, 'sector')} of 32 bytes ({moved:,} B) "
        f"for the {request.useful_bytes:,} B that {lanes} asked for; {rest}."
    )


def sample() -> style.Picture:
    """A load with stride 2: half of every sector is wasted."""
    return accesses(Request(4096 + 8 * np.arange(32), base=4096, array="a", line=9, text="out[i] = a[2 * i]"))


if __name__ == "__main__":
    style.demo(sample)
