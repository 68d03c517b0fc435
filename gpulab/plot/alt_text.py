"""Figures that a learner draws with pyplot: in a notebook they get an alt text, made of their own words."""

from __future__ import annotations

import base64
import io
from html import escape

from matplotlib.figure import Figure


def words(figure: Figure) -> str:
    """What a figure says of itself: captions, titles, labels of axes, legends."""
    found = list(getattr(figure, "captions", ()))  # of pictures that were drawn on its axes
    if figure.get_suptitle():
        found.append(figure.get_suptitle())
    for axes in figure.axes:
        legend = axes.get_legend()
        names = ", ".join(text.get_text() for text in legend.get_texts()) if legend else ""
        title = axes.get_title() or axes.get_title(loc="left")
        said = {"": title, "across": axes.get_xlabel(), "up": axes.get_ylabel(), "shown": names}
        found.append("; ".join(f"{what}: {text}" if what else text for what, text in said.items() if text))
    return " · ".join(["A figure", *filter(None, found)]).replace("\n", " ")


def html(figure: Figure) -> str:
    """The figure as an image with its words, as large as Jupyter shows it."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", bbox_inches="tight")
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img alt="{escape(words(figure))}" src="data:image/png;base64,{data}" style="max-width:100%">'
