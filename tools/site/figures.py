"""Figures in the kernel that runs a notebook: they draw no secret line, and say in words what they show."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from html import escape
from typing import Any

from IPython.core.pylabtools import print_figure
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from .masks import Mask

DPI = 110


def prepare(secrets: Iterable[str]) -> None:
    """For all figures from now on."""
    hide(secrets)
    Figure._repr_html_ = html  # not a formatter of IPython's: pyplot's backend removes those when it starts


def hide(secrets: Iterable[str]) -> None:
    """matplotlib draws none of these lines: in a figure's pixels nobody could find them any more."""
    mask, draw = Mask(secrets), Text.set_text

    def set_text(self: Text, words: Any) -> None:
        draw(self, mask.hide(words) if isinstance(words, str) else words)

    Text.set_text = set_text


def html(figure: Figure) -> str:
    """A figure that a notebook drew with pyplot, as an image with a text; those of gpulab have one."""
    data = base64.b64encode(print_figure(figure, "png", dpi=DPI)).decode()
    return f'<img alt="{escape(describe(figure))}" src="data:image/png;base64,{data}">'


def describe(figure: Figure) -> str:
    """What its axes and their legends say: title, what is drawn over what, names."""
    return "Diagram. " + " ".join(filter(None, map(_axes, figure.axes)))


def _axes(axes: Axes) -> str:
    title = axes.get_title() or axes.get_title(loc="left")
    over = " over ".join(filter(None, (axes.get_ylabel(), axes.get_xlabel())))
    legend = axes.get_legend()
    names = [text.get_text() for text in (legend.get_texts() if legend else axes.texts)]
    said = "; ".join(filter(None, (title, over, ", ".join(filter(None, names)))))
    return " ".join(said.split()) + "." if said else ""
