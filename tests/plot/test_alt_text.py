"""A figure of pyplot has an alt text of its own words, in any notebook that has called gpulab.start."""

from __future__ import annotations

from IPython.core.interactiveshell import InteractiveShell
from matplotlib.figure import Figure

import gpulab
from gpulab.plot import bars
from gpulab.plot.alt_text import words


def drawn() -> Figure:
    figure = Figure()
    axes = figure.add_subplot()
    axes.plot([1, 2], label="read <twice>")
    axes.set(title="Time", xlabel="bytes", ylabel="seconds")
    axes.legend()
    return figure


def test_titles_labels_and_legends_are_the_words() -> None:
    assert words(drawn()) == "A figure · Time; across: bytes; up: seconds; shown: read <twice>"
    assert words(Figure()) == "A figure"


def test_captions_of_pictures_on_its_axes_are_among_them() -> None:
    figure = Figure()
    picture = bars({"one": 1.0, "two": 2.0}, "things", ax=figure.add_subplot())
    assert picture.caption in words(figure)


def test_start_gives_every_figure_its_alt_text() -> None:
    shell = InteractiveShell.instance()
    try:
        gpulab.start()
        shown, _ = shell.display_formatter.format(drawn())
    finally:
        InteractiveShell.clear_instance()
    assert (
        'alt="A figure · Time; across: bytes; up: seconds; shown: read &lt;twice&gt;"' in shown["text/html"]
    )
