"""The list of topics and the labs say the same: what is said to be taught is found where it is said to be."""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from docs import make_topics
from tests.labs.test_something_to_look_at import DRAWING, SHOWS

ROOT = Path(__file__).resolve().parent.parent

# How many topics each theme has, numbered from 1 without gaps. A new topic is counted here too.
THEMES = {
    **{1: 16, 2: 13, 3: 14, 4: 13, 5: 14, 6: 11, 7: 8, 8: 13, 9: 9, 10: 11, 11: 7, 12: 9},
    **{13: 14, 14: 10, 15: 9, 16: 8, 17: 10, 18: 10, 19: 4, 20: 8, 21: 7, 22: 10, 23: 10, 24: 8, 25: 17},
    **{26: 5, 27: 7, 28: 11},
}


@cache
def topics() -> dict[str, dict[str, Any]]:
    return tomllib.loads((ROOT / "docs" / "topics.toml").read_text(encoding="utf-8"))


@cache
def notebooks(lab: str) -> list[dict[str, Any]]:
    return [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "labs" / lab).glob("*.ipynb"))
    ]


def listed(lab: str) -> set[str]:
    """The topics that a lab's notebooks list in their metadata."""
    return {topic for nb in notebooks(lab) for topic in nb["metadata"].get("gpulab", {}).get("topics", [])}


def headings(lab: str) -> set[str]:
    cells = [c for nb in notebooks(lab) for c in nb["cells"] if c["cell_type"] == "markdown"]
    return {h.strip() for c in cells for h in re.findall(r"^#+ +(.+)$", "".join(c["source"]), re.MULTILINE)}


def labs() -> list[str]:
    return sorted(p.name for p in (ROOT / "labs").glob("[0-9][0-9]_*") if p.is_dir())


def test_every_topic_of_every_theme_is_in_the_list() -> None:
    wanted = [f"C{theme}.{n}" for theme, count in THEMES.items() for n in range(1, count + 1)]
    assert list(topics()) == wanted


def test_every_topic_names_its_lab_and_its_state() -> None:
    for topic, row in topics().items():
        assert set(row) - {"also", "exercises"} == {"lab", "section", "status", "words"}, topic
        assert row["status"] in ("planned", "done"), topic
        assert len(row["words"]) >= 10, topic
        homes = [row["lab"], *row.get("also", [])]
        assert all(re.fullmatch(r"\d\d_[a-z_]+", lab) for lab in homes), topic
        assert len(set(homes)) == len(homes), topic


def test_every_topic_that_is_done_is_found_in_its_lab() -> None:
    wrong = []
    for topic, row in topics().items():
        if row["status"] != "done":
            continue
        if topic not in listed(row["lab"]):
            wrong.append(
                f"{topic}: no notebook of labs/{row['lab']} lists it in its metadata (gpulab: topics)"
            )
        if row["section"] not in headings(row["lab"]):
            wrong.append(f"{topic}: labs/{row['lab']} has no heading {row['section']!r}")
    assert not wrong, "\n".join(wrong)


def test_every_topic_that_a_lab_lists_is_at_home_there() -> None:
    wrong = []
    for lab in labs():
        for topic in sorted(listed(lab)):
            row = topics().get(topic)
            if row is None or lab not in (row["lab"], *row.get("also", [])):
                wrong.append(f"{lab} lists {topic}; docs/topics.toml has it elsewhere or not at all")
            elif row["lab"] == lab and row["status"] != "done":
                wrong.append(f"{lab} teaches {topic}; docs/topics.toml has it as planned: give its section")
    assert not wrong, "\n".join(wrong)


def test_the_readme_says_which_labs_are_there() -> None:
    rows = re.findall(
        r"^\| (\d\d) \| (.+?) \| (.+?) \|$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {number for number, _, _ in rows} == {row["lab"][:2] for row in topics().values()} | {"00"}
    there = {name[:2]: name for name in labs() if notebooks(name)}
    for number, title, state in rows:
        if number in there:
            assert f"(labs/{there[number]}/" in title, f"README: link lab {number}, which is there"
            hours = sum(nb["metadata"]["gpulab"]["hours"] for nb in notebooks(there[number]))
            assert state == f"{hours:g} hour{'s' * (hours != 1)}", (
                f"README: lab {number} says {hours:g} hours itself"
            )
        else:
            assert "(" not in title and state == "planned", f"README: lab {number} is not there yet"


def test_every_exercise_of_a_topic_is_checked_in_a_notebook() -> None:
    checked = {
        name
        for lab in labs()
        for nb in notebooks(lab)
        for cell in nb["cells"]
        for name in re.findall(r'gpulab\.check\(\s*"([\w.]+)"', "".join(cell["source"]))
    }
    named = {name for row in topics().values() for name in row.get("exercises", [])}
    assert named - checked == set()


def test_two_hundred_topics_have_an_exercise() -> None:
    assert sum(bool(row.get("exercises")) for row in topics().values()) >= 200


def chapter(lab: str, heading: str) -> list[dict[str, Any]]:
    """The cells from the `##` heading above a heading to the next one."""
    for nb in notebooks(lab):
        cells: list[dict[str, Any]] = []
        found = False
        for cell in nb["cells"]:
            text = "".join(cell["source"]) if cell["cell_type"] == "markdown" else ""
            if re.search(r"^## ", text, re.MULTILINE):
                if found:
                    return cells
                cells = []
            cells.append(cell)
            found = found or re.search(rf"^#+ +{re.escape(heading)}\s*$", text, re.MULTILINE) is not None
        if found:
            return cells
    return []


def section(lab: str, heading: str) -> list[dict[str, Any]]:
    """The cells from a heading to the next one of its level or above."""
    for nb in notebooks(lab):
        cells: list[dict[str, Any]] = []
        level = 0
        for cell in nb["cells"]:
            text = "".join(cell["source"]) if cell["cell_type"] == "markdown" else ""
            for marks, words in re.findall(r"^(#+) +(.+)$", text, re.MULTILINE):
                if level and len(marks) <= level:
                    return cells
                if words.strip() == heading:
                    level = len(marks)
            if level:
                cells.append(cell)
        if level:
            return cells
    return []


# Names of kinds of machines, a table of applications, and what to read and to do next: nothing of these runs.
ONLY_TOLD = {"C2.6", "C24.3", "C24.7", "C24.8"}
# A cell that only asks, checks, or waits for an answer shows nothing by itself.
ASKS = re.compile(r"\s*gpulab\.(predict|check|hint|need)\([^)]*\)\s*")


def test_every_topic_has_an_exercise_or_an_example_that_runs_in_its_section() -> None:
    without = {
        topic
        for topic, row in topics().items()
        if not row.get("exercises")
        and not any(
            cell["cell_type"] == "code" and not ASKS.fullmatch("".join(cell["source"]))
            for cell in section(row["lab"], row["section"])
        )
    }
    assert without == ONLY_TOLD


def test_every_topic_has_a_picture_in_its_chapter() -> None:
    without = {
        topic
        for topic, row in topics().items()
        if not any(
            (DRAWING if cell["cell_type"] == "markdown" else SHOWS).search("".join(cell["source"]))
            for cell in chapter(row["lab"], row["section"])
        )
    }
    assert without == set()


def test_every_topic_is_taught_in_a_section_of_a_lab_that_is_there() -> None:
    assert make_topics.untaught() == []
    assert all(row["status"] == "done" for row in topics().values())


def test_the_page_of_topics_is_current() -> None:
    assert make_topics.TARGET.read_text(encoding="utf-8") == make_topics.page(), (
        "run python docs/make_topics.py"
    )
