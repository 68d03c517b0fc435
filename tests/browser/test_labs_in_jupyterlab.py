"""The labs in JupyterLab in Chromium: what a learner does, what they see, and that they can read it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser.driving import ROOT, Notebook, contrasts

if TYPE_CHECKING:
    from playwright.sync_api import Locator

pytestmark = pytest.mark.browser

LABS = sorted(path.stem for path in (ROOT / "labs").glob("*/*.ipynb"))
# Those that `make test` opens, of all kinds; each takes ten seconds, and `make test-all` opens all.
OPENED = {"00_start_here", "08_pytorch_performance", "12_flash_attention_a", "17_model_parallelism_b"}
START = "gpulab.start("
TOO_FAR = "np.arange(1000, dtype"
DOUBLE, CHECK = "def double", 'gpulab.check("start.double"'
REPORT, COMPARISON = "slow = gpulab.profile", "slow.compare(fast)"
STUB = 'gpulab.check("start.worst_line"'
FIGURES = ('gpulab.show("start.double"', "gpulab.show(slow)", "gpulab.plot.bars(")
THEMES = ("JupyterLab Light", "JupyterLab Dark")
SHOWN = {
    "error": TOO_FAR,
    "verdict": CHECK,
    "failed verdict": STUB,
    "report": REPORT,
    "comparison": COMPARISON,
    "grid": FIGURES[0],
    "sectors": FIGURES[1],
    "bars": FIGURES[2],
}
READABLE = 4.5  # WCAG 2.2, level AA
Photograph = Callable[["Locator", str], None]


def double(body: str) -> str:
    return f"@cuda.jit\ndef double(a, out):\ni = cuda.grid(1)\n{body}"


@pytest.fixture(scope="module")
def lesson(opened: Callable[[str], Notebook]) -> Iterator[Notebook]:
    """Lab 00 done up to its third section, by clicking and typing."""
    notebook = opened("00_start_here")
    for cell in (START, "def twice", TOO_FAR):
        notebook.run(cell)
    notebook.type(DOUBLE, double("if i < a.size:\nout[i] = a[i] + a[i]"))
    for cell in (DOUBLE, CHECK, "def chunks", REPORT, COMPARISON, "def worst_line", STUB, *FIGURES):
        notebook.run(cell)
    yield notebook
    notebook.page.close()


@pytest.mark.parametrize(
    "lab", [pytest.param(lab, marks=[] if lab in OPENED else [pytest.mark.slow]) for lab in LABS]
)
def test_a_lab_opens_and_greets(lab: str, opened: Callable[[str], Notebook]) -> None:
    notebook = opened(lab)
    said = notebook.run(START).inner_text()
    assert f"lab {lab[:2]}, " in said and "Traceback" not in said
    assert notebook.page.locator(".jp-Dialog").count() == 0
    assert notebook.errors == []
    notebook.page.close()


def test_a_kernel_that_reads_too_far_fails_with_our_message_alone(lesson: Notebook) -> None:
    said = lesson.output(TOO_FAR).inner_text().strip()
    assert said.startswith("OutOfBounds in kernel twice, line 4\n")
    assert "read a[1000]; a has 1000 elements" in said
    assert len(said.splitlines()) == 5


def test_a_kernel_is_told_what_is_wrong_until_it_is_mended(lesson: Notebook, labs: Path) -> None:
    lesson.type(DOUBLE, double("out[i] = a[i] + a[i]"))
    lesson.run(DOUBLE)
    verdict = lesson.run(CHECK).locator(".gpulab-card").inner_text()
    assert "0 of 2.0 points" in verdict
    assert "Does a guard keep every index inside the array?" in verdict
    lesson.type(DOUBLE, double("if i < a.size:\nout[i] = a[i] + a[i]"))
    lesson.run(DOUBLE)
    assert "2.0 of 2.0 points" in lesson.run(CHECK).locator(".gpulab-card").inner_text()
    progress = json.loads((labs / "progress.json").read_text())
    assert progress["exercises"]["start.double"]["passed"]
    assert "1 of 3 done" in lesson.run(START).inner_text()


def test_a_report_and_a_comparison_are_shown_as_html(lesson: Notebook) -> None:
    report = lesson.output(REPORT).locator(".gpulab-card").inner_text()
    assert "8 × the traffic" in report and "costliest line" in report
    assert lesson.output(COMPARISON).locator(".gpulab-card table").is_visible()


def test_every_figure_says_in_words_what_it_shows(lesson: Notebook) -> None:
    for cell in FIGURES:
        images = lesson.output(cell).locator("img")
        assert images.count() >= 1
        for image in images.all():
            assert len(image.get_attribute("alt") or "") > 30, cell
            assert image.evaluate("image => image.naturalWidth") > 100


@pytest.mark.parametrize("theme", THEMES)
def test_what_we_show_can_be_read(theme: str, lesson: Notebook, photograph: Photograph) -> None:
    lesson.theme(theme)
    for name, cell in SHOWN.items():
        output = lesson.output(cell)
        shown = output.locator(".gpulab-card, img, .jp-RenderedText")
        photograph(shown.first, f"{name} {theme.split()[-1].lower()}")
        texts = contrasts(shown)  # a figure has none: tests/plot looks at its colours
        faint = [f"{ratio:.1f}: {text}" for ratio, text in texts if ratio < READABLE]
        assert not faint, name


def test_the_browsers_console_was_told_of_no_error(lesson: Notebook) -> None:
    assert lesson.errors == []


def test_a_kernel_that_is_interrupted_says_so_in_one_line_and_the_next_one_runs(
    opened: Callable[[str], Notebook],
) -> None:
    notebook = opened("00_start_here")
    notebook.run(START)
    notebook.type("def twice", "@cuda.jit\ndef count(a, n):\nfor k in range(n):\na[cuda.grid(1)] += 1")
    notebook.run("def count")
    notebook.type(
        TOO_FAR, 'a = np.zeros(4096)\ncount[16, 256](a, 1)\nprint("running")\ncount[16, 256](a, 10_000_000)'
    )
    notebook.start("print(")
    notebook.cell("print(").get_by_text("running", exact=True).wait_for()
    notebook.click("notebook:interrupt-kernel")
    said = notebook.output("print(").inner_text().splitlines()
    assert said[-1] == "Kernel count was stopped before its end: its results are incomplete."
    notebook.type("print(", "a[:] = 0\ncount[16, 256](a, 3)\na.sum()")
    assert "12288.0" in notebook.run("a.sum()").inner_text()
    assert notebook.errors == []
    notebook.page.close()
