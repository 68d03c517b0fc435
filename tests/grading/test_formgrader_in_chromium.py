"""A lab from the exchange to the feedback, as people do it: nbgrader's commands, JupyterLab and formgrader in Chromium."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from nbgrader.api import Gradebook

from grading.core.course import ROOT, Course
from grading.core.sandbox import Limits
from grading.lms import classroom
from tests.browser.driving import Notebook, lab_server
from tests.conftest import find_browser
from tests.grading.conftest import LAB, Class

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ANSWER = "Each row starts one bank further on, so a column lies in 32 banks."
COMMENT = "Right, and which count shows it?"
# As it is typed: the editor indents by itself after a colon.
COPY = "@cuda.jit\ndef copy(a, b):\n"
TOO_FAR = COPY + "i = cuda.grid(1)\nb[i] = a[i]"
RIGHT = COPY + "for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):\nb[i] = a[i]"
TOO_FEW = "def sectors(addresses, size):\nreturn len(addresses)"
WRITE = """text => {
    const cells = jupyterapp.shell.currentWidget.content.widgets
    const why = cells.find(cell => cell.model.getMetadata("nbgrader")?.grade_id == "why")
    why.model.sharedModel.source = text
    return jupyterapp.commands.execute("docmanager:save")
}"""


@pytest.fixture
def chromium() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    quiet = (
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--no-first-run",
    )
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=find_browser(), args=quiet)


def configuration(course: Course) -> str:
    """The beginning of an `nbgrader_config.py`, with the course and `c`."""
    return (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from pathlib import Path\n"
        "from grading.core.course import Course\n"
        "from grading.lms.nbgrader import nbgrader_config\n"
        f"course = Course(Path({str(course.root)!r}), Path({str(course.home)!r}))\n"
        "c = get_config()\n"
    )


def nbgrader(course: Course, exchange: Path, *arguments: str, student: str = "") -> None:
    """A command of nbgrader's: the instructor's in the course's folder, or a student's at home."""
    home = exchange.parent / (student or "instructor")
    home.mkdir(exist_ok=True)
    place = home / "labs" if student else course.root
    place.mkdir(exist_ok=True)
    (place / "nbgrader_config.py").write_text(
        configuration(course)
        + (
            f"c.CourseDirectory.student_id = {student!r}\n"
            if student
            else "c.merge(nbgrader_config(course))\n"
        )
        + f"c.Exchange.root = {str(exchange)!r}\nc.CourseDirectory.course_id = 'gpu'\n"
        + "c.ExchangeCollect.check_owner = False\n"  # here all files have one owner
        + f"c.Exchange.cache = {str(home / 'cache')!r}\n"
    )
    known = {"HOME": str(home), "USER": student or "teacher", "LOGNAME": student or "teacher"}
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        cwd=place, env={**os.environ, **known}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@contextmanager
def formgrader(course: Course) -> Iterator[str]:
    """nbgrader's screens for the course; gives their address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [
            sys.executable, "-m", "jupyter_server", f"--port={port}", "--no-browser", "--allow-root",
            "--IdentityProvider.token=", "--ServerApp.password=", f"--ServerApp.root_dir={course.root}",
            "--ServerApp.jpserver_extensions={'nbgrader.server_extensions.formgrader': True}",
        ],
        cwd=course.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "JUPYTER_CONFIG_DIR": str(course.root / "none")},
    )  # fmt: skip
    try:
        yield f"http://127.0.0.1:{port}/formgrader"
    finally:
        server.terminate()
        server.wait(20)


def visit(page: Page, address: str) -> None:
    """Open an address of a server that may still be starting."""
    for attempt in range(60):
        try:
            page.goto(address, timeout=60_000)
            return
        except Exception as error:
            if "ERR_CONNECTION_REFUSED" not in str(error) or attempt == 59:
                raise
            page.wait_for_timeout(1000)


@pytest.fixture
def photograph(record_property: Callable[[str, object], None]) -> Callable[[Page, str], None]:
    def save(page: Page, name: str) -> None:
        path = ROOT / "build" / "screenshots" / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        page.set_viewport_size({"width": 1280, "height": 1300})  # not as high as the picture before
        # As high as the page: bars that stick to an edge stay there.
        height = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size({"width": 1280, "height": height})
        page.screenshot(path=path)
        record_property("screenshot", str(path.relative_to(ROOT)))

    return save


def do_the_lab(page: Page, home: Path, photograph: Callable[[Page, str], None]) -> None:
    """What a learner does in JupyterLab: one kernel wrong and then right, one answer wrong, one left out."""
    (home / "gpulab").symlink_to(ROOT / "gpulab")  # a checkout, whose labs `gpulab lab` opens
    with lab_server(home) as address:
        notebook = Notebook(page, address, f"{LAB}/{LAB}.ipynb")
        notebook.run("import gpulab")
        notebook.type("def copy", TOO_FAR)
        notebook.run("def copy")
        assert "0 of 4.0 points" in notebook.run('check("memory.copy"').inner_text()
        photograph(page, "lab_check_fails")
        notebook.type("def copy", RIGHT)
        notebook.run("def copy")
        assert "4.0 of 4.0 points" in notebook.run('check("memory.copy"').inner_text()
        photograph(page, "lab_check_passes")
        notebook.type("def sectors", TOO_FEW)
        notebook.run("def sectors")
        assert "0 of 3.0 points" in notebook.run('check("memory.sectors"').inner_text()
        page.evaluate(WRITE, ANSWER)
        assert notebook.errors == []


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_lab_goes_through_exchange_jupyterlab_judge_formgrader_and_feedback(
    needs_sandbox: None,
    school: Class,
    tmp_path: Path,
    chromium: Browser,
    photograph: Callable[[Page, str], None],
) -> None:
    course, exchange = school.course, tmp_path / "exchange"
    exchange.mkdir(mode=0o777)
    exchange.chmod(0o777)
    nbgrader(course, exchange, "release_assignment", LAB)
    nbgrader(course, exchange, "fetch_assignment", LAB, student="ada")
    page = chromium.new_page(viewport={"width": 1280, "height": 1300})
    do_the_lab(page, tmp_path / "ada", photograph)
    page.close()
    nbgrader(course, exchange, "submit", LAB, student="ada")
    nbgrader(course, exchange, "collect", LAB)
    assert (course.submitted / "ada" / LAB / "timestamp.txt").is_file()
    result = classroom.grade(course, LAB, course.submitted, limits=Limits(seconds=60, patience=20))
    automatic = result.points("ada")
    assert automatic == 4  # the kernel that was mended

    with Gradebook(course.db_url) as book:
        (submitted,) = book.find_assignment(LAB).submissions
        assert submitted.needs_manual_grade
        number = submitted.notebooks[0].id
    page = chromium.new_page(viewport={"width": 1280, "height": 1300})
    with formgrader(course) as address:
        visit(page, f"{address}/submissions/{number}/")
        shown = page.locator("body")
        shown.get_by_text(ANSWER).wait_for()
        shown.get_by_text("A column lies in one bank.").wait_for()  # the rubric
        shown.get_by_text(
            "Padding makes the tile larger, and larger is faster."
        ).wait_for()  # a sample answer
        assert re.search(r"memory\.sectors\s+0 of 3.*`sectors\(", shown.inner_text(), re.S)  # and the reason
        assert "NotImplementedError" in shown.inner_text()
        points = page.locator("input#why")
        comment_field = page.locator("textarea#why-comment")
        for attempt in range(200):  # the page says nothing that lasts: when it listens, and when it has saved
            if attempt % 20 == 0:
                for field, text in ((points, "1.5"), (comment_field, COMMENT)):
                    field.fill("")
                    field.fill(text)
                    field.press("Tab")
            page.wait_for_timeout(300)
            with Gradebook(course.db_url) as book:
                comment = book.find_comment("why", LAB, LAB, "ada").comment
                if book.find_grade("why", LAB, LAB, "ada").manual_score == 1.5 and comment == COMMENT:
                    break
        page.locator("textarea#why-comment").scroll_into_view_if_needed()
        photograph(page, "formgrader_written_answer")

    with Gradebook(course.db_url) as book:
        grade = book.find_grade("why", LAB, LAB, "ada")
        assert grade.manual_score == 1.5 and not grade.needs_manual_grade
        assert book.find_submission(LAB, "ada").score == pytest.approx(automatic + 1.5)
    nbgrader(course, exchange, "generate_feedback", LAB, "--force")
    visit(page, (course.feedback / "ada" / LAB / f"{LAB}.html").as_uri())
    said = page.locator("body").inner_text()
    assert COMMENT in said and ANSWER in said
    assert "`sectors(" in said and "NotImplementedError" in said
    for hidden in ("For the grader", "A column lies in one bank", "larger is faster"):
        assert hidden not in said
    photograph(page, "feedback_page")
    nbgrader(course, exchange, "release_feedback", LAB)
    nbgrader(course, exchange, "fetch_feedback", LAB, student="ada")
    pages = list((tmp_path / "ada" / "labs" / LAB / "feedback").rglob("*.html"))
    assert pages and COMMENT in pages[0].read_text()
