"""The home page in JupyterLab in Chromium: there at once, in both themes and at three widths, and it leads on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpulab.app.course import catalogue
from tests.browser import axe
from tests.browser.driving import ROOT, Notebook

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

SHOTS = ROOT / "build" / "screenshots"
LAST = "04_memory_hierarchy/04_memory_hierarchy.ipynb"
OUTPUTS = ".jp-Notebook .jp-RenderedHTMLCommon"


@pytest.fixture(scope="module")
def home(chromium: Browser, address: str, labs: Path) -> Iterator[Notebook]:
    """The page of somebody who has done lab 00 and begun lab 04. Nothing runs."""
    known = {"00": {"passed": 3, "of": 3}, "04": {"passed": 2, "of": 8}}
    recent = {"notebook": {"lab": "04", "name": LAST}}
    (labs / "progress.json").write_text(
        json.dumps({"format": 1, "exercises": {}, "predictions": {}, "labs": known, "recent": recent})
    )
    notebook = Notebook(chromium.new_page(viewport={"width": 1400, "height": 1000}), address, "index.ipynb")
    yield notebook
    notebook.page.close()


def test_it_is_there_before_anything_runs(home: Notebook) -> None:
    page = home.page
    assert page.locator(".gpulab-home img").is_visible()
    assert page.get_by_role("link", name="Start", exact=True).is_visible()
    assert page.locator(".gpulab-lab").count() == len(catalogue.labs())
    assert page.locator(".jp-InputPrompt", has_text="[1]").count() == 0


def test_the_rings_and_the_way_on_come_from_the_learners_own_file(home: Notebook) -> None:
    page = home.page
    page.locator(".gpulab-continue a").wait_for()
    assert page.locator(".gpulab-continue").inner_text() == "Continue: lab 04, The memory hierarchy"
    assert page.locator(".gpulab-lab-00").get_attribute("title") == "3 of 3 exercises passed"
    assert page.locator(".gpulab-lab-04").get_attribute("title") == "2 of 8 exercises passed"


def test_the_file_browser_is_closed_nothing_is_unsaved_and_there_is_no_news(home: Notebook) -> None:
    page = home.page
    assert page.evaluate("jupyterapp.shell.leftCollapsed")
    assert not page.evaluate("jupyterapp.shell.currentWidget.context.model.dirty")
    assert page.locator(".Toastify__toast, .jp-Notification-Toast").count() == 0
    assert home.errors == []


@pytest.mark.parametrize("theme", ["Light", "Dark"])
@pytest.mark.parametrize("width", [1400, 768, 390])
def test_it_fits_and_axe_finds_nothing_serious(home: Notebook, theme: str, width: int) -> None:
    page = home.page
    home.theme(f"JupyterLab {theme}")
    page.set_viewport_size({"width": width, "height": 1000})
    page.wait_for_timeout(500)
    page.screenshot(path=SHOTS / f"home {theme.lower()} {width}.png")
    for card in page.locator(".gpulab-lab").all()[:6]:
        box = card.bounding_box()
        assert box and box["width"] >= 200 - 60 * (width < 400)
    wide = page.locator(".gpulab-home").evaluate("e => [e.scrollWidth, e.clientWidth]")
    assert wide[0] <= wide[1] + 1
    assert axe.grave(page, ".jp-Notebook .jp-RenderedHTMLCommon") == []


def test_a_click_on_an_answer_says_whether_it_is_right(home: Notebook) -> None:
    home.page.set_viewport_size({"width": 1400, "height": 1000})
    answer = home.page.locator(".gpulab-quiz details").nth(1)
    answer.scroll_into_view_if_needed()
    answer.locator("summary").click()
    assert answer.get_by_text("Right.").is_visible()


def test_start_and_the_last_notebook_are_a_click_away(home: Notebook) -> None:
    page, path = home.page, "jupyterapp.shell.currentWidget.context.path"
    page.locator(".gpulab-continue a").click()
    page.wait_for_function(f"{path} == '{LAST}'")
    page.evaluate("jupyterapp.commands.execute('docmanager:open', {path: 'index.ipynb'}).then(() => null)")
    page.wait_for_function(f"{path} == 'index.ipynb'")
    page.get_by_role("link", name="Start", exact=True).click()
    page.wait_for_function(f"{path} == '00_start_here/00_start_here.ipynb'")


@pytest.mark.parametrize("lab", ["00_start_here", "04_memory_hierarchy"])
def test_a_lab_has_line_numbers_lines_that_can_be_read_and_its_drawings(
    lab: str, opened: Callable[[str], Notebook]
) -> None:
    notebook = opened(lab)
    page = notebook.page
    assert page.locator(".jp-CodeCell .cm-lineNumbers").count() > 0
    longest = page.evaluate(
        """() => Math.max(...[...document.querySelectorAll(".jp-MarkdownOutput > p")].map(p => {
            const letter = document.createElement("canvas").getContext("2d")
            letter.font = getComputedStyle(p).font
            return p.clientWidth / letter.measureText("abcdefghijklmnopqrstuvwxyz ").width * 27
        }))"""
    )
    assert longest < 100
    drawings = page.locator('.jp-MarkdownOutput img[src*="drawings"]')
    drawings.first.scroll_into_view_if_needed()
    assert drawings.first.evaluate("async i => (await i.decode(), i.naturalWidth)") == 600
    assert not page.evaluate("jupyterapp.shell.currentWidget.context.model.dirty")
    assert (
        axe.grave(page, ".jp-Notebook", (".cm-editor", ".jp-Toolbar", ".jp-Collapser", ".jp-InputPrompt"))
        == []
    )
    assert notebook.errors == []
    page.close()


def test_a_failed_check_has_a_button_that_gives_a_hint(opened: Callable[[str], Notebook]) -> None:
    notebook = opened("00_start_here")
    for cell in ("gpulab.start(", "def double"):
        notebook.run(cell)
    notebook.type("def double", "@cuda.jit\ndef double(a, out):\ni = cuda.grid(1)\nout[i] = a[i] + a[i]")
    notebook.run("def double")
    button = notebook.run('gpulab.check("start.double"').locator(".gpulab-hint")
    button.click()
    said = notebook.output('gpulab.hint("start.double")').inner_text()
    assert "hint 1 of 3" in said and "Your last check: 0 of 2.0 points" in said
    notebook.page.close()
