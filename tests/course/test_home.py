"""The home page: there before anything runs, in order, with links and with what has been done."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from gpulab.app.course import catalogue, home, lab_map, quiz
from gpulab.app.course.home import hero
from gpulab.app.course.lab_map import LabMap
from gpulab.checks import progress, registry

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "labs" / "index.ipynb"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPULAB_PROGRESS", str(tmp_path / "progress.json"))
    return tmp_path / "progress.json"


def soup(thing: object) -> BeautifulSoup:
    return BeautifulSoup(thing._repr_mimebundle_()["text/html"], "html.parser")  # type: ignore[attr-defined]


def committed() -> list[BeautifulSoup]:
    cells = json.loads(PAGE.read_text(encoding="utf-8"))["cells"]
    shown = [o["data"]["text/html"] for c in cells for o in c.get("outputs", ()) if c["cell_type"] == "code"]
    return [BeautifulSoup("".join(html), "html.parser") for html in shown]


def test_the_page_is_released_with_all_that_it_shows() -> None:
    front, labs, *paths, questions, words = committed()
    assert front.select_one("a.gpulab-start")["href"] == "00_start_here/00_start_here.ipynb"  # type: ignore[index]
    assert front.img and len(str(front.img["alt"])) > 80
    assert len(labs.select(".gpulab-lab")) == len(catalogue.labs())
    assert len(paths) == len(catalogue.paths())
    assert len(questions.select("details")) == 30
    assert "warp" in words.get_text()


def test_every_link_of_the_page_leads_to_a_notebook() -> None:
    links = [str(a["href"]) for part in committed() for a in part.select("a")]
    assert len(links) > 80
    assert [link for link in links if not (PAGE.parent / link).is_file()] == []


def test_nothing_of_the_page_needs_a_script_or_a_style_sheet() -> None:
    for part in committed():
        assert part.select("script, style, svg, link") == []


def test_a_ring_shows_what_has_been_passed() -> None:
    half = BeautifulSoup(LabMap({"04": 0.5}).html(), "html.parser").select_one(".gpulab-lab-04 img")
    none = BeautifulSoup(LabMap({"04": 0.0}).html(), "html.parser").select_one(".gpulab-lab-04 img")
    assert half and none and half["src"] != none["src"]
    assert "◐ 04" in LabMap({"04": 0.5}).card().text() and "✔ 04" in LabMap({"04": 1.0}).card().text()


def test_the_page_goes_on_where_somebody_was(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    assert "Continue" not in soup(home()).get_text() and "Start with" in str(home())
    names = tuple(e.name for e in registry.of_lab("06"))
    monkeypatch.setenv(
        "JPY_SESSION_NAME", "/home/me/labs/06_matrix_multiplication/06_matrix_multiplication_b.ipynb"
    )
    progress.remember("06", names)
    link = soup(home()).select_one(".gpulab-continue a")
    assert link and link["href"] == "06_matrix_multiplication/06_matrix_multiplication_b.ipynb"
    assert link.get_text() == "Continue: lab 06, Matrix multiplication"
    assert json.loads(place.read_text())["labs"] == {"06": {"passed": 0, "of": len(names)}}


def test_outside_jupyter_the_labs_first_notebook_is_meant() -> None:
    progress.remember("04", ("memory.copy",))
    assert "04_memory_hierarchy/04_memory_hierarchy.ipynb" in str(home())


def test_a_recent_lab_that_the_course_no_longer_has_is_passed_over() -> None:
    progress.remember("99", ())
    assert "Continue" not in str(home())


def test_a_click_on_an_answer_says_whether_it_is_right_and_which_lab_teaches_it() -> None:
    for question, shown in zip(catalogue.questions(), soup(quiz()).select(".gpulab-quiz > div"), strict=True):
        answers = [each.div.get_text() for each in shown.select("details") if each.div]
        assert [text.startswith("✔ Right.") for text in answers].index(True) == question.right
        assert question.reason in answers[question.right]
        assert sum(f"Lab {question.lab}," in text for text in answers) == 2


def test_the_map_marks_no_path_that_does_not_exist() -> None:
    assert "30 hours" in str(lab_map("The short one"))
    with pytest.raises(ValueError, match="paths are The short one, Kernel engineer, LLM systems"):
        lab_map("Gamer")


def test_the_picture_is_valid_svg_with_words() -> None:
    assert len(ET.fromstring(hero()).attrib["aria-label"]) > 80
