"""The course's site: links that lead somewhere, no solution, and pages that everybody can read."""

from __future__ import annotations

import functools
import io
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urlparse

import jupytext
import pytest
from bs4 import BeautifulSoup
from matplotlib.text import Text
from nbformat.v4 import new_code_cell, new_notebook
from PIL import Image

from gpulab.app.course import catalogue
from gpulab.plot.moving import KernelSteps, Moving, Step, Warp
from tests.browser import axe
from tests.browser.driving import ROOT, contrasts
from tests.conftest import find_browser
from tools.site import figures, masks, runs
from tools.site.pages import Notebook, notebooks

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PHONE = {"width": 390, "height": 844}
READABLE = 4.5  # WCAG 2.2, level AA
SOLUTION = re.compile(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", re.DOTALL)
OWN_PAGES = (
    "index", "labs/index", "glossary", "docs/index", "docs/topics", "grading/README", "docs/instructors/quick-start",
    "docs/instructors/threat-model", "CONTRIBUTING",
)  # fmt: skip


class Built:
    """A site in its folder, of some labs or of all."""

    def __init__(self, html: Path, labs: list[str]) -> None:
        self.html, self.notebooks = html, notebooks(labs)

    @property
    def pages(self) -> list[Path]:
        return sorted(path for path in self.html.rglob("*.html") if "_static" not in path.parts)

    def soup(self, page: str) -> BeautifulSoup:
        return _soup(self.html / f"{page}.html")


@functools.cache
def _soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


@pytest.fixture(
    scope="module",
    params=[pytest.param(["00"], id="lab 00"), pytest.param([], id="all labs", marks=pytest.mark.slow)],
)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("site")
    made = subprocess.run(
        [sys.executable, "-m", "tools.site", "--into", folder, *request.param],
        cwd=ROOT,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    return Built(folder / "html", request.param)


pytestmark = pytest.mark.timeout(7200)  # all labs are run, if they were not before


# ---------------------------------------------------------------- links


def _addresses(page: Path) -> Iterator[str]:
    for element in _soup(page).find_all(["a", "img", "link", "script"]):
        address = element.get("href") or element.get("src")
        if address and not (element.name == "link" and "preconnect" in element.get("rel", [])):
            yield str(address)


def _resolves(page: Path, address: str) -> bool:
    place, anchor = urldefrag(address)
    target = (page.parent / unquote(urlparse(place).path)).resolve() if place else page
    if not target.is_file():
        return False
    return not anchor or _soup(target).find(id=unquote(anchor)) is not None


def test_every_link_within_the_site_leads_somewhere(site: Built) -> None:
    inside = {
        (page, address) for page in site.pages for address in _addresses(page) if not urlparse(address).scheme
    }
    assert len(inside) > 100
    assert [f"{page.name}: {address}" for page, address in inside if not _resolves(page, address)] == []


def test_links_to_elsewhere_are_well_formed_and_listed(site: Built) -> None:
    outside = {a for page in site.pages for a in _addresses(page) if urlparse(a).scheme not in ("", "data")}
    assert outside
    wrong = [
        a for a in outside if urlparse(a).scheme not in ("http", "https") or "." not in urlparse(a).netloc
    ]
    assert not wrong
    (ROOT / "build" / "external-links.txt").write_text("".join(f"{a}\n" for a in sorted(outside)))


def test_nothing_that_a_page_needs_comes_from_elsewhere(site: Built) -> None:
    for page in site.pages:
        loaded = [*_soup(page).find_all(src=True), *_soup(page).find_all("link", rel="stylesheet")]
        elsewhere = [e for e in loaded if urlparse(e.get("src") or e["href"]).scheme not in ("", "data")]
        assert elsewhere == [], page.name


# ---------------------------------------------------------------- labs without their solutions


def _solved_cells(notebook: Notebook) -> Iterator[Any]:
    yield from jupytext.read(notebook.source).cells


def _plain(text: str) -> str:
    """As it reads: without breaks, blanks and marks of code in prose."""
    return " ".join(text.replace("`", "").split())


def test_no_line_of_a_solution_is_on_a_page(site: Built) -> None:
    looked_for = 0
    for notebook in site.notebooks:
        page = site.soup(notebook.page)
        alts = (str(image.get("alt")) for image in page.find_all("img"))
        words = _plain(page.get_text() + " ".join(alts))
        cells = list(_solved_cells(notebook))
        kept = _plain(SOLUTION.sub("", "\n".join(cell.source for cell in cells)))
        solutions = [part for cell in cells for part in SOLUTION.findall(cell.source)]
        lines = {_plain(line) for part in solutions for line in part.splitlines()}
        secret = {line for line in lines if len(line) >= 12 and " " in line and line not in kept}
        assert sorted(line for line in secret if line in words) == [], notebook.page
        looked_for += len(secret)
    assert looked_for >= 5


def test_no_answer_of_a_written_question_is_on_a_page(site: Built) -> None:
    for notebook in site.notebooks:
        words = " ".join(site.soup(notebook.page).get_text().split())
        for cell in _solved_cells(notebook):
            if cell.cell_type == "markdown" and cell.metadata.get("nbgrader", {}).get("solution"):
                told = [word for word in re.split(r"[*`\n]+", cell.source) if len(word) >= 30]
                assert told and not [word for word in told if word in words], notebook.page


def test_stubs_outputs_and_folded_answers_are_all_there(site: Built) -> None:
    for notebook in site.notebooks:
        page = site.soup(notebook.page)
        cells = list(_solved_cells(notebook))
        source = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        assert len(page.find_all("details")) == source.count("<details>"), notebook.page
        assert not [summary for summary in page.find_all("summary") if "`" in summary.get_text()]
        stubs = sum("BEGIN SOLUTION" in cell.source for cell in cells)
        words = page.get_text()
        assert words.count("raise NotImplementedError()") + words.count("YOUR CODE HERE") >= stubs
        assert "Traceback" not in words
        checks = sum("gpulab.check(" in cell.source for cell in cells if cell.cell_type == "code")
        assert len(page.select(".gpulab-card")) >= checks, notebook.page
        assert len(page.select(".cell_output img")) >= 3, notebook.page


def test_no_page_tells_of_the_machine_that_built_it(site: Built) -> None:
    for path in site.pages:
        words = _soup(path).get_text()
        assert [
            place for place in (str(ROOT), str(Path.home()) + "/", "/tmp/ipykernel") if place in words
        ] == []


@pytest.mark.parametrize("text", ["7  out[i] = a[i] * 2.5", "out[i] = a[i] * 2.5", "(out[i] = a[i] * 2.5)"])
def test_a_secret_line_is_hidden_wherever_it_stands(text: str) -> None:
    shown = masks.Mask(["out[i] = a[i] * 2.5"]).hide(text)
    assert masks.HIDDEN in shown and "2.5" not in shown


def test_a_secret_line_is_hidden_where_it_is_escaped_or_cut_off() -> None:
    mask = masks.Mask(["if i < a.size and a[i] > 0 and not done[i]:", "x = 'a' < b"])
    assert mask.hide("<code>if i &lt; a.size and a[i] &gt; 0 and…</code>") == f"<code>{masks.HIDDEN}</code>"
    assert mask.hide("x = &#x27;a&#x27; &lt; b") == masks.HIDDEN
    assert mask.hide("max = 'a' < b") == "max = 'a' < b"


def test_figures_draw_no_secret_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Text, "set_text", Text.set_text)  # and back again
    figures.hide(["out[i] = a[i] * 2.5"])
    assert Text(0, 0, "load of a · out[i] = a[i] * 2.5").get_text() == f"load of a · {masks.HIDDEN}"


def test_figures_that_move_hold_no_secret_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Text, "set_text", Text.set_text)
    monkeypatch.setattr(Moving, "__init__", Moving.__init__)
    figures.hide(["out[i] = a[i] * 2.875 if a[i] < 3 else 0"])
    source = [(1, "def f(a, out):"), (2, "    out[i] = a[i] * 2.875 if a[i] < 3 else 0")]
    steps = KernelSteps("f", source, [Warp("warp 0")], [], [Step(2, [True] * 32)])
    figure = steps.figure()
    assert figure.record["source"] == [[1, "def f(a, out):"], [2, f"    {masks.HIDDEN}"]]
    assert masks.HIDDEN in figure.picture and "2.875" not in figure.picture


def test_the_alt_text_of_a_figure_tells_no_secret_line_either(tmp_path: Path) -> None:
    draw = """import gpulab; gpulab.start()
import matplotlib.pyplot as plt
fig, ax = plt.subplots()
ax.plot([1, 2], [3, 4], label="A100")
ax.set(xlabel="bytes", ylabel="cycles", title="Latency of load(a)")
ax.legend()
plt.show()"""
    ran = runs.run("one", new_notebook(cells=[new_code_cell(draw)]), ["load(a)"], tmp_path, keep=False)
    shown = ran.cells[0].outputs[-1].data["text/html"]
    assert f"Latency of {masks.HIDDEN}; across: bytes; up: cycles; shown: A100" in shown
    again = runs.run("one", new_notebook(cells=[new_code_cell(draw)]), ["load(a)"], tmp_path, keep=False)
    assert again == ran, "it was run before"


def test_what_the_released_notebook_says_is_no_secret() -> None:
    solution = "@cuda.jit\ndef f(a):\n    i = cuda.grid(1)\n    continue\n"
    assert masks.secret_lines(solution, "@cuda.jit\ndef f(a):\n    raise NotImplementedError()") == {
        "i = cuda.grid(1)"
    }


# ---------------------------------------------------------------- in a browser


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        quiet = ("--disable-background-networking", "--disable-component-update", "--disable-sync")
        yield playwright.chromium.launch(executable_path=find_browser(), args=quiet)


@pytest.fixture(scope="module")
def address(site: Built) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(site.html)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def _listen(page: Page, errors: list[str]) -> None:
    """Writes down what the browser's console is told of errors."""
    page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))


@pytest.fixture
def visit(chromium: Browser, address: str) -> Iterator[Callable[..., Page]]:
    """Opens a page in a window of its own; at the end no console was told of an error."""
    errors: list[str] = []
    contexts = []

    def open_page(page: str, theme: str = "light", size: dict[str, int] = PHONE) -> Page:
        contexts.append(chromium.new_context(viewport=size, color_scheme=theme))  # type: ignore[arg-type]
        found = contexts[-1].new_page()
        _listen(found, errors)
        found.goto(f"{address}/{page}.html")
        found.locator(f'html[data-theme="{theme}"]').wait_for()
        return found

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page", ["index", "labs/index", "labs/00_start_here/00_start_here"])
def test_axe_finds_nothing_serious(page: str, theme: str, visit: Callable[..., Page]) -> None:
    found = visit(page, theme, {"width": 1280, "height": 900})
    assert axe.grave(found, "main") == []


def test_the_map_leads_to_the_labs_that_are_on_the_site(site: Built) -> None:
    cards = site.soup("labs/index").select(".gpulab-lab")
    assert len(cards) == len(catalogue.labs())
    here = {notebook.page.removeprefix("labs/") + ".html" for notebook in site.notebooks}
    assert {str(link["href"]) for card in cards for link in card.select("a")} == here


def test_the_first_page_has_a_button_and_a_figure_that_answers(visit: Callable[..., Page]) -> None:
    page = visit("index")
    stride = page.locator(".sliders input").first
    counts = page.locator(".counts").first
    assert "4 sectors" in " ".join(counts.inner_text().split())
    for _ in range(7):
        stride.press("ArrowRight")
    assert "32 sectors" in " ".join(counts.inner_text().split())
    page.locator(".begin a").click()
    page.get_by_role("heading", name="00 · Start here").wait_for()


@pytest.mark.browser
def test_the_picture_of_the_first_page_is_dark_on_a_dark_page(visit: Callable[..., Page]) -> None:
    image = visit("index", "dark").locator(".map img")
    image.scroll_into_view_if_needed()
    painted = Image.open(io.BytesIO(image.screenshot())).convert("L")
    assert painted.getpixel((painted.width // 2, painted.height - 12)) < 64  # its paper


def test_each_letter_of_the_glossary_leads_to_its_terms(site: Built) -> None:
    page = site.soup("glossary")
    letters = page.select(".letters a")
    assert len(letters) > 20 and len(page.select("dl.glossary dt")) == len(catalogue.terms())
    for letter in letters:
        (section,) = page.select(f"section[id='{str(letter['href'])[1:]}']")
        terms = section.select("dt")
        assert terms and all(term.get_text()[0].upper() == letter.get_text() for term in terms)


def test_drawings_are_on_the_page_and_drawing_code_is_folded(site: Built) -> None:
    page = site.soup("labs/00_start_here/00_start_here")
    drawings = [
        image for image in page.select("img") if "round" in str(image["src"]) or "clock" in str(image["src"])
    ]
    assert len(drawings) == 2 and all(len(str(image["alt"])) > 40 for image in drawings)


def test_messages_are_not_coloured_as_python(site: Built) -> None:
    page = site.soup("labs/00_start_here/00_start_here")
    errors = [block for block in page.select(".cell_output .highlight") if "OutOfBounds" in block.get_text()]
    assert errors and not [
        span for block in errors for span in block.select("span[class]") if span["class"] != ["linenos"]
    ]


def test_a_wide_figure_is_pushed_sideways_on_a_phone_and_its_words_are_not(
    visit: Callable[..., Page],
) -> None:
    page = visit("labs/00_start_here/00_start_here")
    figures = page.locator(".gpulab-figure:has(img.wide)")
    assert figures.count() > 0
    for figure in figures.all():
        wide, there = figure.evaluate(
            "f => [f.querySelector('img').getBoundingClientRect().width, f.clientWidth]"
        )
        assert wide > there  # not squeezed, and not cut off: it can be scrolled
        assert figure.evaluate("f => getComputedStyle(f).overflowX") == "auto"
        assert figure.locator("figcaption").evaluate("c => c.getBoundingClientRect().width") <= there + 1


@dataclass(frozen=True)
class Look:
    """What a reader with a phone has of a page: its width, texts that are too faint, errors in the console."""

    page: str
    theme: str
    width: int
    faint: list[str]
    errors: list[str]


@pytest.fixture(scope="module")
def looks(site: Built, chromium: Browser, address: str) -> list[Look]:
    found = []
    for theme in ("light", "dark"):
        with closing(chromium.new_context(viewport=PHONE, color_scheme=theme)) as context:  # type: ignore[arg-type]
            opened = context.new_page()
            told: list[str] = []
            _listen(opened, told)
            for page in (*OWN_PAGES, *(notebook.page for notebook in site.notebooks)):
                opened.goto(f"{address}/{page}.html")
                opened.locator(f'html[data-theme="{theme}"]').wait_for()
                width = opened.evaluate("document.documentElement.scrollWidth")
                texts = contrasts(opened.locator("body"))
                faint = sorted({f"{ratio:.1f}: {text}" for ratio, text in texts if ratio < READABLE})
                found.append(Look(page, theme, width, faint, told[:]))
                told.clear()
    return found


@pytest.mark.browser
def test_no_page_is_wider_than_a_phone(looks: list[Look]) -> None:
    assert [look for look in looks if look.width > PHONE["width"]] == []


@pytest.mark.browser
def test_all_text_can_be_read_on_light_and_dark_pages(looks: list[Look]) -> None:
    assert [look for look in looks if look.faint] == []


@pytest.mark.browser
def test_no_page_tells_the_browsers_console_of_an_error(looks: list[Look]) -> None:
    assert [look for look in looks if look.errors] == []


def test_every_page_says_what_it_is_to_those_who_do_not_see_it(site: Built) -> None:
    for path in site.pages:
        page = _soup(path)
        assert page.html and page.html["lang"] == "en", path.name
        assert len(page.find_all("main")) == len(page.find_all("h1")) == 1, path.name
        assert page.find("header") and page.find("nav"), path.name
        words = [str(image.get("alt", "")) for image in page.find_all("img")]
        assert [alt for alt in words if len(alt) < 30 or alt.endswith(".png")] == [], path.name
        nameless = [
            a for a in page.find_all("a", href=True) if not (a.get_text(strip=True) or a.get("aria-label"))
        ]
        assert nameless == [], path.name


@pytest.mark.browser
def test_the_first_stop_of_the_keyboard_leads_to_the_content(visit: Callable[..., Page]) -> None:
    page = visit("labs/00_start_here/00_start_here")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText").strip() == "Skip to main content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


@pytest.mark.browser
def test_a_word_is_found_by_its_search(visit: Callable[..., Page]) -> None:
    page = visit("index", "light", {"width": 1280, "height": 900})
    page.keyboard.press("Control+k")
    page.keyboard.type("guard")
    page.keyboard.press("Enter")
    found = page.locator("ul.search li a")
    found.first.wait_for()
    assert any("Start here" in words for words in found.all_inner_texts())


@pytest.mark.browser
def test_a_reader_chooses_light_or_dark_and_it_stays(visit: Callable[..., Page]) -> None:
    page = visit("index", "light", {"width": 1280, "height": 900})
    page.locator(".bd-header .theme-switch-button").first.click()
    page.get_by_text("Dark", exact=True).first.click()
    page.locator('html[data-theme="dark"]').wait_for()
    page.goto(page.url.replace("index", "glossary"))
    page.locator('html[data-theme="dark"]').wait_for()
