"""A figure of pyplot has an alt text of its own words, in any notebook that has called gpulab.start."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

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


def test_a_figure_of_a_notebook_has_them_from_start_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MPLBACKEND")  # the tests' own would keep figures out of the notebook
    cells = (
        "import gpulab; gpulab.start()",
        "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.title('Time'); plt.xlabel('bytes'); plt.show()",
    )
    notebook = new_notebook(cells=[new_code_cell(cell) for cell in cells])
    ran = NotebookClient(notebook, resources={"metadata": {"path": tmp_path}}).execute()
    (figure,) = ran.cells[1].outputs
    assert figure.data["text/html"].startswith(
        '<img alt="A figure · Time; across: bytes" src="data:image/png'
    )
