"""Formgrader and feedback in Chromium: whatever a learner wrote, nothing runs, and nobody is asked for anything.

The same payloads on nbconvert's own pages do both, so that the silence says something. Where MathJax is installed
(Debian: libjs-mathjax; elsewhere MATHJAX=folder), it takes the place of the one that the pages load.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from nbconvert.exporters import HTMLExporter
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook
from nbgrader.api import Gradebook

from tests.grading import pages
from tests.grading.conftest import LAB, Class, cell_of
from tests.grading.payloads import HOST, PAYLOADS
from tests.grading.test_formgrader_in_chromium import chromium, formgrader, visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Dialog, Page, Request, Route

__all__ = ["chromium"]
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1500)]

MATHJAX = Path(os.environ.get("MATHJAX", "/usr/share/javascript/mathjax"))
CDN = re.compile(r"https://cdnjs\.cloudflare\.com/ajax/libs/mathjax/2\.7\.7/([\w./-]+)")
LOADER = """
const loader = document.createElement("script")
loader.src = document.currentScript.src.replace("latest.js", "MathJax.js")
document.head.append(loader)
"""
TOGETHER = 8  # payloads of one answer: a page takes a second or two
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg=="
# What a grader may do to an answer, on each of its elements.
TOUCH = """root => {
    for (const node of root.querySelectorAll("*"))
        for (const kind of ["mouseover", "mouseenter", "focus", "toggle", "click"])
            if (!(kind == "click" && node.closest("a")))
                node.dispatchEvent(new MouseEvent(kind, {bubbles: true, cancelable: true}))
}"""
TYPESET = "() => !window.MathJax?.Hub || MathJax.Hub.queue.pending == 0 && !MathJax.Hub.queue.running"


@dataclass
class Watch:
    """What pages of a browser do: whom they ask, and whether a script of a payload ran in any of them."""

    context: BrowserContext
    asked: list[str] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.context.on("request", lambda request: self._asks(request))
        self.context.on("dialog", lambda dialog: self._speaks(dialog))
        self.context.route(re.compile(r"^https?://(?!127\.0\.0\.1)"), self._answer)

    def _asks(self, request: Request) -> None:
        self.asked.append(request.url[:200])

    def _speaks(self, dialog: Dialog) -> None:
        self.ran.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _answer(self, route: Route) -> None:
        match = CDN.match(route.request.url)
        if match and match[1] == "latest.js" and MATHJAX.is_dir():
            route.fulfill(content_type="text/javascript", body=LOADER)
        elif match and (MATHJAX / match[1]).is_file():
            route.fulfill(path=MATHJAX / match[1])
        else:
            route.abort()

    def look(self, page: Page) -> None:
        """Whether a script ran in a page or in one of its frames."""
        for frame in page.frames:
            if frame.evaluate("() => window.__pwned"):
                self.ran.append(frame.url[:200])

    def open(self, address: str, answer: str) -> list[str]:
        """Open a page, touch and click all of the answer in it; gives the requests of the page itself."""
        self.asked.clear()
        page = self.context.new_page()
        visit(page, address)
        page.wait_for_function(TYPESET)
        shown = page.locator(answer)
        itself = list(self.asked)
        shown.evaluate(TOUCH)
        links = shown.locator("a")
        for number in range(links.count()):
            links.nth(number).click(force=True)
        page.wait_for_timeout(20)
        for each in self.context.pages:
            if each.url.startswith(("javascript:", "data:", "blob:")):
                self.ran.append(each.url[:200])
            self.look(each)
            each.close()
        return itself


@pytest.fixture
def watch(chromium: Browser) -> Iterator[Watch]:
    context = chromium.new_context(viewport={"width": 1280, "height": 4000})  # all of a page can be clicked
    yield Watch(context)
    context.close()


def everyone(school: Class) -> list[str]:
    """Every payload handed in, a few by each student, and one honest answer: the students."""
    names = list(PAYLOADS)
    given = {"honest": "Honest."}
    for first in range(0, len(names), TOGETHER):  # in their order: formulas keep MathJax from a whole answer
        together = names[first : first + TOGETHER]
        given[f"s{first:03}"] = "\n\n".join(f"{PAYLOADS[name]}\n\n---\n" for name in together)
    for student, text in given.items():

        def paste(notebook: NotebookNode) -> None:
            cell_of(notebook, "why").attachments = {"x": {"image/png": PICTURE}}

        school.hand_in(student, {"why": f"Before $x^2$.\n\n{text}\n\nAfter."}, paste)
    pages.write(school, *given)
    return list(given)


def differences(
    watch: Watch, addresses: dict[str, str], answer: str, same: Callable[[str], str]
) -> dict[str, list[str]]:
    """What each page does that the honest one does not."""
    usual = {same(url) for url in watch.open(addresses.pop("honest"), answer)}
    found = {}
    for name, address in addresses.items():
        watch.ran.clear()
        beyond = [url for url in watch.open(address, answer) if same(url) not in usual]
        beyond += [url for url in watch.asked if HOST in url]
        if beyond or watch.ran:
            found[name] = [*beyond, *watch.ran]
    return found


def test_no_payload_does_anything_in_feedback_or_formgrader(school: Class, watch: Watch) -> None:
    students = everyone(school)
    feedback = {s: (school.course.feedback / s / LAB / f"{LAB}.html").as_uri() for s in students}
    answer = "div.rendered_html:has-text('After.')"
    assert differences(watch, feedback, answer, lambda url: re.sub(r"/(s\d+|honest)/", "/", url)) == {}
    with Gradebook(school.course.db_url) as book:
        numbers = {s.student.id: s.notebooks[0].id for s in book.find_assignment(LAB).submissions}
    pages.configure(school.course)
    with formgrader(school.course) as address:
        graded = {s: f"{address}/submissions/{numbers[s]}/" for s in students}
        same = re.compile("|".join(numbers.values()))
        assert differences(watch, graded, answer, lambda url: same.sub("", url)) == {}


def test_the_same_payloads_do_harm_on_pages_that_obey_them(tmp_path: Path, watch: Watch) -> None:
    exporter = HTMLExporter(template_name="classic")
    addresses = {}
    for number, name in enumerate(["honest", *PAYLOADS]):
        cell = new_markdown_cell(f"Before.\n\n{PAYLOADS.get(name, '')}\n\nAfter.")
        cell.attachments = {"x": {"image/png": PICTURE}}
        path = tmp_path / f"{number}.html"
        try:
            path.write_text(exporter.from_notebook_node(new_notebook(cells=[cell]))[0])
        except Exception:
            if "attachment:" not in cell.source:
                raise
            continue  # nbconvert makes no page of an attachment that is not there
        addresses[name] = path.as_uri()
    found = differences(watch, addresses, "body", lambda url: re.sub(r"/\d+\.html", "", url))
    assert {"link", "reference", "script", "picture in HTML", "frame", "style of an element"} <= set(found)
    assert len(found) >= 40
