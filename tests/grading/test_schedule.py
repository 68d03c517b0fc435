"""Learners get the labs that are named, or those whose date has come, and nothing leads to the others."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest

from grading.__main__ import main
from grading.authoring import own_course, schedule
from grading.core.course import ROOT, Course
from grading.core.errors import GradingError
from grading.lms import settings
from grading.lms.settings import Settings

START, NUMBA, MEMORY = "00_start_here", "03_cuda_with_numba", "04_memory_hierarchy"
DATES = f"""
timezone = "Europe/Berlin"
[release]
{START} = 2027-01-04T08:00:00
{NUMBA} = 2027-01-11T08:00:00
{MEMORY} = 2027-01-18T08:00:00
[due]
{NUMBA} = 2027-01-17T23:59:00
{MEMORY} = 2027-01-24T23:59:00
"""


@pytest.fixture
def course(tmp_path: Path) -> Course:
    made = Course(ROOT, tmp_path / "home")
    made.home.mkdir()
    return made


def labs(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "labs").iterdir() if path.is_dir())


def dead_links(folder: Path) -> list[str]:
    """Links of the README and of the page that opens first that lead nowhere."""
    found = []
    for page, base in (("README.md", folder), ("labs/index.ipynb", folder / "labs")):
        links = re.findall(r"\]\(([^)\s]+)\)", (folder / page).read_text())
        found += [link for link in links if not link.startswith("http") and not (base / link).exists()]
    return found


def test_labs_that_are_named_are_there_and_those_of_last_week_stay(
    course: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "made"
    assert main(["course", str(made), "--labs", f"00, {NUMBA}"], course) == 0
    assert labs(made) == [START, NUMBA] and dead_links(made) == []
    assert "2 labs for made" in capsys.readouterr().out
    assert main(["course", str(made), "--labs", "04"], course) == 0
    assert labs(made) == [START, NUMBA, MEMORY] and dead_links(made) == []
    text = (made / "README.md").read_text()
    assert f"[The memory hierarchy](labs/{MEMORY}" in text and "| 05 | Reductions, scans, softmax |" in text


def test_the_schedule_hands_a_lab_out_when_its_date_has_come(course: Course, tmp_path: Path) -> None:
    course.settings.write_text(DATES)

    def make(when: str) -> own_course.Made:
        return own_course.make(course, tmp_path / "made", now=datetime.fromisoformat(when))

    first = make("2027-01-11T06:59:59")  # a second before eight in Berlin
    assert labs(first.folder) == [START]
    assert first.notes == (f"next: {NUMBA} at 2027-01-11 08:00 Europe/Berlin; run the same command then",)
    second = make("2027-01-11T07:00:00")
    assert labs(second.folder) == [START, NUMBA] and dead_links(second.folder) == []
    dates = (second.folder / "README.md").read_text().partition("## Dates\n")[2].partition("##")[0]
    assert "| 03 cuda with numba | 2027-01-11 08:00 Europe/Berlin | 2027-01-17 23:59 Europe/Berlin |" in dates
    assert "| 00 start here | 2027-01-04 08:00 Europe/Berlin |  |" in dates
    assert not [line for line in make("2027-02-01T00:00:00").notes if "next" in line]


@pytest.mark.parametrize(
    ("more", "folder", "named", "said"),
    [
        ("", [], [MEMORY], f"{MEMORY} is out before its date, 2027-01-18 08:00 Europe/Berlin, because --labs"),
        ("", [MEMORY], [], f"{MEMORY} stays, because the folder has it, although its date is 2027-01-18"),
        ('05_reductions_scans_softmax = 2027-02-01T08:00:00', [], [], "due, but without a date in [release]"),
        (None, [], [], f"{NUMBA} was due at 2027-01-17 23:59 Europe/Berlin, before learners get it"),
    ],
)  # fmt: skip
def test_dates_that_look_wrong_are_said(
    course: Course, tmp_path: Path, more: str | None, folder: list[str], named: list[str], said: str
) -> None:
    course.settings.write_text(DATES + (more or ""))
    for lab in folder:
        (tmp_path / "made" / "labs" / lab).mkdir(parents=True)
        (tmp_path / "made" / "labs" / lab / f"{lab}.ipynb").write_text("{}")
    now = datetime(2027, 1, 5) if more is not None else datetime(2028, 1, 5)
    _, notes = schedule.choose(course, settings.read(course), tmp_path / "made", named, now)
    assert [note for note in notes if said in note], notes


@pytest.mark.parametrize("text", ["99", "start", "../labs", "03;04"])
def test_a_lab_that_there_is_not_is_named_before_anything_is_written(
    course: Course, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    assert main(["course", str(tmp_path / "made"), "--labs", text], course) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert f"there is no lab '{text}'. Write numbers such as 03,04; there are 00_start_here" in said
    assert not (tmp_path / "made").exists()


def test_without_a_name_the_option_says_what_to_write(course: Course) -> None:
    with pytest.raises(GradingError, match="names no lab: write numbers such as 03,04"):
        schedule.named(course, " , ")


def test_without_dates_and_names_all_labs_are_there(course: Course, tmp_path: Path) -> None:
    out, notes = schedule.choose(course, Settings(), tmp_path, (), datetime(2027, 1, 1))
    assert out == course.lab_names() and notes == []
    assert schedule.table(Settings(), out) == ""
