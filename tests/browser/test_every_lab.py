"""The index and every lab, solved, in JupyterLab in Chromium: from top to bottom, with all that they show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import jupytext
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from grading.lms.preprocessors import StableIds
from tests.browser.driving import ROOT, Notebook, Output

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

pytestmark = pytest.mark.browser

SOURCES = {path.stem: path for path in sorted((ROOT / "solutions").glob("*/*.py"))}
READABLE = 4.5  # WCAG 2.2, level AA
THEMES = ("JupyterLab Dark", "JupyterLab Light")
# What gpulab.sanitize shows of one kernel, a cell each.
DOCTOR = (
    """import numpy as np
import gpulab
from gpulab import cuda

@cuda.jit
def shift(a):
    tile = cuda.shared.array(64, np.float32)
    i = cuda.threadIdx.x
    tile[i] = a[i]
    a[i] = tile[63 - i]

a = np.zeros(64, np.float32)""",
    "gpulab.sanitize(shift[1, 64], a)",
    "gpulab.trace(shift[1, 64], a, threads=[0, 33])",
    "gpulab.show(shift[1, 64], a, view='accesses', line=9)",
    "gpulab.show(shift[1, 64], a, view='banks')",
    "gpulab.show(shift[1, 64], a, view='divergence')",
    "gpulab.show(shift[1, 64], a, view='threads')",
)


@pytest.fixture
def open_notebook(chromium: Browser, address: str) -> Iterator[Callable[[str], Notebook]]:
    """Opens a notebook of the copied labs, by its path in them; it is closed after the test."""
    context = chromium.new_context(viewport={"width": 1280, "height": 1300})
    yield lambda path: Notebook(context.new_page(), address, path)
    context.close()


def assert_all_is_well(notebook: Notebook, outputs: list[Output]) -> None:
    """Every cell ran without an error; what is shown has words for those who do not see it, and can be read."""
    assert [output.error for output in outputs if output.error] == []
    assert [output.source for output in outputs if not output.ran] == []
    for output in outputs:
        assert all(len(alt) > 30 for alt in output.alts), output.source
        assert all(width > 100 for width in output.widths), output.source
        assert all(output.plain), f"nothing for a terminal: {output.source}"
        faint = [f"{ratio:.1f}: {text}" for ratio, text in output.texts if ratio < READABLE]
        assert not faint, output.source
    assert notebook.errors == []


def figures(outputs: list[Output]) -> int:
    return sum(len(output.widths) for output in outputs)


def cards(outputs: list[Output]) -> int:
    return sum(bool(output.texts) for output in outputs)


@pytest.mark.timeout(600)
def test_the_index_runs_and_shows_the_map_the_quiz_progress_and_words_in_both_themes(
    open_notebook: Callable[[str], Notebook], photograph: Callable[[Locator, str], None]
) -> None:
    notebook = open_notebook("index.ipynb")
    notebook.run_all()
    outputs = notebook.outputs()
    assert_all_is_well(notebook, outputs)
    for theme in THEMES:
        notebook.theme(theme)
        again = notebook.outputs()
        assert_all_is_well(notebook, again)
        assert figures(again) == figures(outputs) and cards(again) == cards(outputs)
        photograph(notebook.page.locator(".jp-Notebook"), f"home {theme.split()[-1].lower()}")
    notebook.page.close()


def test_the_command_opens_the_index_first(open_notebook: Callable[[str], Notebook]) -> None:
    notebook = open_notebook("")
    assert notebook.page.evaluate("() => jupyterapp.shell.currentWidget.context.path") == "index.ipynb"
    notebook.page.close()


@pytest.mark.timeout(600)
def test_findings_traces_and_pictures_of_accesses_can_be_read_in_both_themes(
    open_notebook: Callable[[str], Notebook], labs: Path, photograph: Callable[[Locator, str], None]
) -> None:
    made = new_notebook(
        cells=[new_code_cell(source) for source in DOCTOR],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    nbformat.write(made, labs / "sanitizer.ipynb")
    notebook = open_notebook("sanitizer.ipynb")
    notebook.run_all()
    for theme in THEMES:
        notebook.theme(theme)
        outputs = notebook.outputs()
        assert_all_is_well(notebook, outputs)
        _, findings, trace, *pictures = outputs
        assert "race" in findings.plain[0].lower() and "tile[i] = a[i]" in findings.plain[0]
        assert "63 - i" in trace.plain[0]  # the figure itself has tests of its own
        assert cards([findings]) == 1 and [bool(p.widths) for p in pictures] == [True] * 4
        for cell in DOCTOR[1:]:
            name = cell.partition("view='")[2].partition("'")[0] or cell.partition("(")[0]
            photograph(notebook.output(cell), f"sanitizer {name} {theme.split()[-1].lower()}")
    notebook.page.close()


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", SOURCES)
def test_a_solved_lab_runs_from_top_to_bottom_and_keeps_its_figures_in_the_dark(
    name: str, open_notebook: Callable[[str], Notebook], labs: Path
) -> None:
    source = SOURCES[name]
    solved, _ = StableIds().preprocess(jupytext.read(source), {"unique_key": name})
    nbformat.write(solved, labs / source.parent.name / f"{name}.solved.ipynb")
    notebook = open_notebook(f"{source.parent.name}/{name}.solved.ipynb")
    notebook.run_all()
    outputs = notebook.outputs()
    assert_all_is_well(notebook, outputs)
    assert figures(outputs) >= 3
    notebook.theme(THEMES[0])
    dark = notebook.outputs()
    assert_all_is_well(notebook, dark)
    assert figures(dark) == figures(outputs) and cards(dark) == cards(outputs)
    notebook.theme(THEMES[1])
    notebook.page.close()
