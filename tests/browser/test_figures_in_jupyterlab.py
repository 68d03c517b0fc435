"""Figures that move, where a learner meets them: in JupyterLab, in a notebook that it trusts and in one it does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest

from gpulab.plot import bars
from gpulab.plot.moving import Moving
from tests.browser.driving import Notebook
from tests.plot.moving_samples import neighbours

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

pytestmark = pytest.mark.browser

STEPPER, WRONG, WATCH = "gpulab.trace(", "gpulab.check(", "gpulab.watch()"
BARS = 'gpulab.plot.bars({"naive": 32, "yours": 4}, "sectors")'
SOURCES = (
    "import numpy as np\nimport gpulab\nfrom gpulab import cuda",
    "@cuda.jit\ndef double(a, out):\n    i = cuda.grid(1)\n    if i < a.size:\n        out[i] = 2 * a[i] + (i == 40)",
    "gpulab.trace(double[1, 64], np.ones(48, np.float32), np.zeros(48, np.float32), threads=[0, 40])",
    'gpulab.check("start.double", double)',
    "gpulab.watch()",
    BARS,
)


@pytest.fixture(scope="module")
def notebook(labs: Path, chromium: Browser, address: str) -> Iterator[Notebook]:
    """A notebook from elsewhere: its one output was shown on another machine, so JupyterLab does not trust it."""
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in SOURCES])
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    data = neighbours().figure()._repr_mimebundle_()
    made.cells[2].outputs = [nbformat.v4.new_output("execute_result", data, execution_count=3)]
    made.cells[2].execution_count = 3
    still = {"text/html": bars({"naive": 32, "yours": 4}, "sectors").html(), "text/plain": ""}
    made.cells[5].outputs = [nbformat.v4.new_output("execute_result", still, execution_count=6)]
    nbformat.write(made, labs / "figures.ipynb")
    opened = Notebook(chromium.new_page(viewport={"width": 1280, "height": 1300}), address, "figures.ipynb")
    yield opened
    opened.page.close()


def player(output: Locator) -> Locator:
    found = output.locator(".player").first
    found.wait_for()
    return found


def test_an_untrusted_notebook_shows_the_first_frame_and_then_the_figure(
    notebook: Notebook, photograph: Callable[[Locator, str], None]
) -> None:
    picture = notebook.cell(STEPPER).locator(".jp-Cell-outputWrapper img")
    picture.wait_for()
    assert picture.get_attribute("alt") == neighbours().figure().caption
    assert picture.evaluate("img => img.complete && img.naturalWidth") == 560
    assert notebook.cell(STEPPER).locator(".player").count() == 0

    for words in ("import numpy", "def double", STEPPER):
        notebook.run(words)
    output = notebook.output(STEPPER)
    shown = player(output)
    assert shown.locator(".caption").inner_text().startswith("Line 3: threads 0–31 set i.")
    shown.get_by_label("one step forward").click()
    before = shown.locator(".place").inner_text()
    notebook.page.keyboard.press("ArrowRight")  # steps the figure, and moves nobody to another cell
    assert shown.locator(".place").inner_text() != before
    assert shown.locator(".lane").count() >= 64
    photograph(shown, "stepper in JupyterLab")
    notebook.theme("JupyterLab Dark")
    photograph(shown, "stepper in JupyterLab, dark")
    notebook.theme("JupyterLab Light")


def test_a_failed_check_shows_its_picture_and_opens_the_stepper_at_that_thread(
    notebook: Notebook, photograph: Callable[[Locator, str], None]
) -> None:
    card = notebook.run(WRONG).locator(".gpulab-card")
    assert "out[40] is" in player(card).locator(".caption").inner_text()
    assert "gpulab.watch() steps through thread 40 of block 0" in card.inner_text()
    photograph(card, "failed check in JupyterLab")
    shown = player(notebook.run(WATCH))
    assert "thread 40 of block 0" in shown.locator(".variables").inner_text()
    assert [error for error in notebook.errors if "gpulab" in error] == []


def test_a_still_figure_answers_the_arrow_keys_once_it_is_trusted(notebook: Notebook) -> None:
    figure = notebook.cell(BARS).locator(".jp-Cell-outputWrapper figure")
    figure.locator("img").wait_for()
    assert [button for button in figure.locator("input").all() if button.is_visible()] == []
    notebook.run(BARS)
    readings = notebook.output(BARS).locator(".gpulab-read input")
    readings.first.click()
    notebook.page.keyboard.press("ArrowDown")  # and moves nobody to another cell
    assert readings.nth(1).evaluate("b => b.matches(':focus') && b.ariaLabel") == "yours\n4 sectors"
    assert readings.nth(1).evaluate("b => getComputedStyle(b, '::after').visibility") == "visible"


def test_what_a_saved_notebook_holds_is_the_whole_figure(notebook: Notebook) -> None:
    """So it works again where it is opened later, without a kernel."""
    html = notebook.page.evaluate(
        """() => JSON.stringify(jupyterapp.shell.currentWidget.content.model.toJSON().cells
            .flatMap(cell => cell.outputs ?? []).map(output => output.data?.["text/html"] ?? ""))"""
    )
    figures = [text for text in map("".join, json.loads(html)) if "gpulab-moving" in text]
    assert len(figures) == 3
    assert all("customElements.define" in text and "data:image/svg+xml" in text for text in figures)
    assert all(len(text) < 2 * Moving("frames", {}, "", "").weight + 100_000 for text in figures)
