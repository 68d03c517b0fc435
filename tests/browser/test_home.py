"""The home page in JupyterLab in Chromium: there at once, in both themes and at three widths, and it leads on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpulab.app.course import catalogue
from tests.browser import axe
from tests.browser.driving import PATIENCE, ROOT, Notebook

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

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


def test_code_in_a_question_is_set_as_code(home: Notebook) -> None:
    quiz = home.page.locator(".gpulab-quiz")
    assert quiz.locator("code").all_text_contents() == ["y = model(x)", "time.time()"]
    assert "`" not in (quiz.text_content() or "`")


def test_it_looks_like_a_page_and_not_like_a_cell_that_is_selected(home: Notebook) -> None:
    page = home.page
    first = page.locator(".jp-Notebook .jp-MarkdownCell").first
    page.evaluate("jupyterapp.shell.currentWidget.content.activeCellIndex = 0")
    assert not first.locator(".jp-Collapser").first.is_visible()
    assert first.evaluate("e => getComputedStyle(e).outlineStyle") == "none"
    edges = page.evaluate(
        """() => [".jp-MarkdownOutput h1", ".gpulab-home", ".gpulab-map"].map(
            one => Math.round(document.querySelector(`.jp-Notebook ${one}`).getBoundingClientRect().left))"""
    )
    assert max(edges) - min(edges) <= 1


def test_start_and_the_last_notebook_are_a_click_away(home: Notebook) -> None:
    page, path = home.page, "jupyterapp.shell.currentWidget.context.path"
    page.locator(".gpulab-continue a").click()
    page.wait_for_function(f"{path} == '{LAST}'")
    page.evaluate("jupyterapp.commands.execute('docmanager:open', {path: 'index.ipynb'}).then(() => null)")
    page.wait_for_function(f"{path} == 'index.ipynb'")
    page.get_by_role("link", name="Start", exact=True).click()
    page.wait_for_function(f"{path} == '00_start_here/00_start_here.ipynb'")


def processor_seconds(process: int) -> float:
    """What a process has taken so far, with the processes that it waited for."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def kernel_process(page: Page) -> tuple[int, int]:
    """The process of the notebook's kernel, and the server's, which started it."""
    kernel = page.evaluate("jupyterapp.shell.currentWidget.sessionContext.session.kernel.id")
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if kernel.encode() in place.read_bytes():
                fields = (place.parent / "stat").read_text().rpartition(")")[2].split()
                return int(place.parent.name), int(fields[1])
    raise AssertionError(f"no process runs the kernel {kernel}")


def test_ten_seconds_after_the_page_the_first_kernel_has_run(chromium: Browser, address: str) -> None:
    """Counted in processor time of page, server and kernel, which does not depend on what else the machine does."""
    notebook = Notebook(chromium.new_page(viewport={"width": 1400, "height": 1000}), address, "index.ipynb")
    page = notebook.page
    counter = page.context.new_cdp_session(page)
    counter.send("Performance.enable", {"timeDomain": "threadTicks"})

    def page_seconds() -> float:
        found = counter.send("Performance.getMetrics")["metrics"]
        return float(next(m["value"] for m in found if m["name"] == "TaskDuration"))

    _, server = kernel_process(page)
    before = page_seconds() + processor_seconds(server)
    page.get_by_role("link", name="Start", exact=True).click()
    shown = "jupyterapp.shell.currentWidget"
    page.wait_for_function(f"{shown}.context.path == '00_start_here/00_start_here.ipynb'")
    page.wait_for_function(f"{shown}.sessionContext?.session?.kernel?.status == 'idle'", timeout=PATIENCE)
    page.evaluate(
        "[...jupyterapp.shell.widgets('main')].find(one => one.context.path == 'index.ipynb').close()"
    )
    notebook.run("gpulab.start(")
    assert "2046." in notebook.run("def twice").inner_text()
    kernel, _ = kernel_process(page)
    taken = page_seconds() + processor_seconds(server) - before + processor_seconds(kernel)
    page.close()
    assert taken < 10


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


def test_a_drawing_on_a_phone_keeps_its_size_and_the_page_its_width(
    opened: Callable[[str], Notebook],
) -> None:
    notebook = opened("00_start_here")
    page = notebook.page
    page.set_viewport_size({"width": 390, "height": 900})
    drawing = page.locator('.jp-MarkdownOutput img[src*="drawings"]').first
    page.wait_for_function("jupyterapp.shell.leftCollapsed")
    drawing.scroll_into_view_if_needed()
    assert drawing.bounding_box()["width"] >= 400  # type: ignore[index]
    around = drawing.locator("xpath=..")
    assert around.evaluate("e => e.scrollWidth > e.clientWidth && getComputedStyle(e).overflowX == 'auto'")
    assert around.bounding_box()["width"] <= 390  # type: ignore[index]
    page.screenshot(path=SHOTS / "lab 390.png")
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
