"""How all figures look, and how they are shown.

Colours stay apart for colour-blind eyes (from M. Okabe and K. Ito, "Color Universal Design", 2008, with the
lightness spread further); in grey print a hatch marks what is wrong. No grey reads well on a white and
on a dark
page, so a figure in a notebook brings its own paper and its ink is that paper's (`on_paper`); text inside a
coloured cell is black or white, whichever reads better.
"""

from __future__ import annotations

import io
import sys
import textwrap
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from gpulab.foundation.errors import Message

from . import on_paper, readings
from .on_paper import INK as INK  # by this name for all figures

FAINT = "#9b9b9b55"
DEEP = on_paper.BLUE
AMBER = "#e69f00"
LEAF = "#009e73"
ROSE = "#dd9fc4"
ALARM = "#d55e00"

SERIES = (DEEP, AMBER, LEAF, ROSE)
GOOD, BAD = DEEP, ALARM
HATCH = "////"

CELL = 0.25  # inches: one square of a grid of lanes, banks or elements
TEXT = 9
DPI = 110
READABLE = 480  # pixels of the page: the least width at which the letters of a figure are read
DENSITY = 2  # dots of an image in a notebook for each pixel of the page: most screens have about so many
LARGE = (
    60  # square inches from which on one dot has to do, or a grid of a thousand cells would weigh too much
)


class NothingToDraw(Message, ValueError):
    """The data hold nothing that this figure could show."""


class Picture:
    """A figure with its caption. In a notebook it shows itself as an image whose alt text is the caption."""

    def __init__(self, axes: Axes, caption: str, shown: bool) -> None:
        self.axes = axes
        self.caption = caption
        self._shown = shown  # drawn on somebody else's axes: they show it

    @property
    def figure(self) -> Figure:
        figure = self.axes.get_figure(root=True)
        assert figure is not None
        return figure

    def say_first(self, words: str) -> None:
        """Put words before the caption of a figure that has one only."""
        self.caption = f"{words} {self.caption}"
        _write(self.figure, [self.caption])

    def png(self, dpi: int = DPI) -> bytes:
        """The image, with the caption in its metadata."""
        buffer = io.BytesIO()
        self.figure.savefig(
            buffer, format="png", dpi=dpi, transparent=True, metadata={"Description": self.caption}
        )
        return buffer.getvalue()

    def save(self, path: str | Path, dpi: int = DPI) -> None:
        """Write the image as PNG."""
        Path(path).write_bytes(self.png(dpi))

    def html(self) -> str:
        """The figure on paper that is light or dark as the page is, and its caption as text below it."""
        width, height = self.figure.get_size_inches()
        density = DENSITY if width * height < LARGE else 1
        image = on_paper.svg(self._without_caption(density * DPI), density)
        data = quote(image, safe=" :/=,;'<>()")
        said = escape(self.caption)
        # Narrower than that, its letters could not be read: it is pushed sideways instead.
        look = f"max-width:100%;min-width:{min(width * DPI, READABLE):.0f}px;border-radius:6px"
        image = f'<img alt="{said}" src="data:image/svg+xml,{escape(data)}" style="{look}">'
        return (
            '<figure class="gpulab-figure" style="margin:.4em 0;overflow-x:auto">'
            f'{readings.over(image, self.figure)}<figcaption aria-hidden="true" style="font-size:13px;'
            f'max-width:44rem;margin:.3em 0;position:sticky;left:0">{said}</figcaption></figure>'
        )

    def _without_caption(self, dpi: int) -> bytes:
        """The image alone; its words stand below it where they can be broken and enlarged."""
        written = getattr(self.figure, "captions", None)
        self.figure.supxlabel("")
        words = [text for text in self.figure.findobj(Text) if isinstance(text, Text)]
        asked = [(text, colour) for text in words if (colour := str(text.get_color())) in on_paper.TEXTS]
        for text, colour in asked:
            text.set_color(on_paper.TEXTS[colour])
        try:
            return self.png(dpi)
        finally:
            for text, colour in asked:
                text.set_color(colour)
            if written is not None:
                _write(self.figure, written)

    def _repr_html_(self) -> str | None:
        return None if self._shown else self.html()

    def __repr__(self) -> str:
        return f"Picture: {self.caption}"


def begin(ax: Axes | None, width: float, height: float) -> tuple[Axes, bool]:
    """The axes to draw on, and whether they were given; new ones have that size in inches."""
    given = ax is not None
    if ax is None:
        return axes(width, height), given
    ax.patch.set_alpha(0)
    ax.set_anchor("W")  # pictures with square cells start where the caption starts
    ax.tick_params(which="both", colors=INK, labelsize=TEXT)
    for side, spine in ax.spines.items():
        spine.set_color(INK)
        spine.set_visible(side in ("left", "bottom"))
    for label in (ax.xaxis.label, ax.yaxis.label, ax.title):
        label.set_color(INK)
        label.set_fontsize(TEXT + 1)
    return ax, given


def axes(width: float, height: float, rows: int = 1, columns: int = 1, **shared: Any) -> Any:
    """Empty axes for your own figure, in the style of the others, `width` × `height` inches in all.

    Several come as an array (rows, columns), without axes of length 1; `shared` is as in matplotlib's
    ``Figure.subplots``. `picture` shows what was drawn on them.
    """
    # Not pyplot: its figures show themselves at the end of a cell, without an alt text.
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.patch.set_alpha(0)
    made = figure.subplots(rows, columns, **shared)
    for ax in np.ravel(made):
        begin(ax, width, height)
    return made


def picture(ax: Axes, caption: str = "") -> Picture:
    """What was drawn on `axes`, with a caption that is the alt text, too; without one, those of the figures
    that were drawn there. `ax` is any of them."""
    if caption:
        return finish(ax, caption, given=False)
    return Picture(ax, " ".join(getattr(ax.get_figure(root=True), "captions", [])), shown=False)


def finish(ax: Axes, caption: str, given: bool) -> Picture:
    """Set the caption below the figure. Several figures side by side have their captions below each other."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    earlier: list[str] = getattr(figure, "captions", [])
    _write(figure, [*earlier, caption])
    return Picture(ax, caption, given)


def _write(figure: Figure, captions: list[str]) -> None:
    figure.captions = captions  # type: ignore[attr-defined]
    width = int(figure.get_figwidth() * 14)  # about 14 characters of this size to the inch
    lines = "\n".join("\n".join(textwrap.wrap(text, width)) for text in captions)
    figure.supxlabel(lines, x=0.02, ha="left", color=INK, fontsize=TEXT)


def bare(ax: Axes) -> None:
    """No frame and no ticks: for pictures whose cells carry the labels."""
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)


def source_line(ax: Axes, line: int | None, text: str, what: str = "") -> None:
    """The line of the learner's source that the figure is about, as its title; `what` of it stands before."""
    if text or line is not None:
        title = f"{what} · " if what else ""
        title += f"{line}  " if line is not None else ""
        ax.set_title(title + text.strip(), loc="left", family="monospace", fontsize=TEXT, color=INK)


def legend(ax: Axes, kinds: Sequence[tuple[str, str]]) -> None:
    """Above the upper left corner, names with a square in the colour of each."""
    for place, (name, colour) in enumerate(kinds):
        for text, ink, shift in (("■", colour, 0), (name, INK, 12)):
            ax.annotate(
                text, (0, 1), xycoords="axes fraction", xytext=(80 * place + shift, 5),
                textcoords="offset points", fontsize=TEXT, color=ink, va="bottom",
            )  # fmt: skip


def cell(
    ax: Axes,
    x: float,
    y: float,
    text: str = "",
    fill: str | None = None,
    *,
    width: float = 1,
    height: float = 1,
    wrong: bool = False,
    faint: bool = False,
    dashed: bool = False,
    size: float = TEXT - 2,
) -> None:
    """One cell with its upper left corner at (x, y). `wrong` hatches it; without `fill` it is hollow."""
    edge = FAINT if faint else INK
    box = Rectangle((x, y), width, height, facecolor=fill or "none", edgecolor=edge, linewidth=0.7)
    if wrong:  # the edge's colour is the hatch's as well
        box.set_hatch(HATCH)
        box.set_edgecolor((0, 0, 0, 0.45) if fill else BAD)
    if dashed:
        box.set_linestyle("--")
    box.set_in_layout(False)  # nor let it move the limits, as add_patch would: a grid has a thousand cells
    ax.add_artist(box)
    if text:
        middle = (x + width / 2, y + height / 2)
        label = ax.text(*middle, text, ha="center", va="center", fontsize=size, color=on(fill), clip_on=True)
        if wrong and fill:  # the hatch would run through the text
            label.set_bbox({"facecolor": fill, "edgecolor": "none", "pad": 0.6})


def on(fill: str | None) -> str:
    """The colour of text on a fill: black or white by its luminance, ink where there is no fill."""
    if fill is None:
        return INK
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(fill)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.2 else "#ffffff"  # by number: a word in "black" asked for nothing


def lanes_text(lanes: tuple[int, ...]) -> str:
    """A short name of some lanes for a small cell: ``7``, ``3,5``, ``×32``."""
    if len(lanes) <= 1:
        return "".join(map(str, lanes))
    return ",".join(map(str, lanes)) if len(lanes) == 2 and max(lanes) < 10 else f"×{len(lanes)}"


def quoted(name: str) -> str:
    """`` of 'a'`` for an array with a name, nothing for one without."""
    return f" of '{name}'" if name else ""


def number(value: float) -> str:
    """A count without an exponent: ``33,554,432``, ``4``, ``0.125``."""
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.4g}"


def plural(count: float, word: str) -> str:
    """``1 sector``, ``32 sectors``."""
    return f"{number(count)} {word}{'' if count == 1 else 's'}"


def demo(sample: Callable[[], Picture]) -> None:
    """Save a module's sample as PNG, under the path on the command line or the module's name."""
    path = sys.argv[1] if len(sys.argv) > 1 else f"{Path(sys.argv[0]).stem}.png"
    picture = sample()
    picture.save(path)
    print(f"{path}: {picture.caption}")
