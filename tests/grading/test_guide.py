"""What the instructor's guide tells to type is what there is, and leads to a graded class."""

from __future__ import annotations

import csv
import re
import shlex
import subprocess

import pytest
from nbgrader.apps.nbgraderapp import NbGraderApp

from grading.__main__ import main, parser
from grading.core.course import ROOT
from grading.lms import settings
from grading.lms.tables import read_grades
from tests.grading.conftest import LAB, Class
from tests.grading.test_nbgrader_stays_stock import nbgrader

PAGES = sorted((ROOT / "docs" / "instructors").glob("*.md"))
ENTRY = (ROOT / "grading" / "README.md").read_text(encoding="utf-8")
START = (ROOT / "docs" / "instructors" / "quick-start.md").read_text(encoding="utf-8")
GUIDE = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
OURS = ".venv/bin/python -m grading "
LAB_OF_THE_GUIDE = "04_memory_hierarchy"


def ten() -> list[str]:
    """The commands from zero to a graded class."""
    section = START.partition("## From zero to a graded class\n")[2]
    lines = section.partition("\n\n")[0].splitlines()
    return [line.partition("#")[0].strip() for line in lines]


def shown() -> list[str]:
    """Every command of ours that the guide names, anywhere."""
    found = re.findall(r"(?:\.venv/bin/)?python -m grading ([^`#\n]+)", GUIDE)
    return [re.sub(r"\s{2,}.*", "", command).strip() for command in found]


def test_there_are_ten() -> None:
    assert len(ten()) == 10
    assert ten()[0] == "make setup"


def test_the_entry_leads_to_every_page_and_a_page_is_read_in_minutes() -> None:
    assert sorted(re.findall(r"docs/instructors/([\w-]+\.md)", ENTRY)) == sorted(
        [page.name for page in PAGES] + ["quick-start.md"] * (ENTRY.count("quick-start.md") - 1)
    )
    words = {page.name: len(page.read_text(encoding="utf-8").split()) for page in PAGES}
    assert max(words[name] for name in words if name not in ("threat-model.md", "writing-labs.md")) < 1000
    assert words["quick-start.md"] < 600 and len(ENTRY.split()) < 500


def test_every_setting_of_the_course_is_in_the_reference() -> None:
    reference = (ROOT / "docs" / "instructors" / "reference.md").read_text(encoding="utf-8")
    for table, keys in settings.KEYS.items():
        for key in keys:
            shown = key if table else ("`timezone`" if key == "timezone" else f"[{key}")
            assert shown in reference, (table, key)


def test_a_week_takes_at_most_three_commands() -> None:
    week = START.partition("## Every week\n")[2].partition("\n\n")[0].splitlines()
    assert 1 <= len(week) <= 3 and all(line.startswith("    ") for line in week)
    assert any("--feedback" in line and "--export" in line for line in week)


@pytest.mark.parametrize("command", sorted(set(shown())))
def test_each_command_is_understood(command: str) -> None:
    words = shlex.split(command.replace("HOST", "host").replace(" LAB", " lab"))
    options = parser().parse_args(words)
    if lab := getattr(options, "lab", None):
        assert lab in ("lab", "04") or (ROOT / "labs" / lab).is_dir(), command


def test_every_command_of_ours_is_in_the_guide() -> None:
    (commands,) = (a for a in parser()._actions if a.dest == "command")
    told = {command.split()[0] for command in shown()}
    assert set(commands.choices or ()) == told


def test_the_others_are_there() -> None:
    assert subprocess.run(["make", "-n", "setup"], cwd=ROOT, capture_output=True).returncode == 0
    for command in ten():
        if found := re.search(r"nbgrader (\w+)", command):
            assert found[1].replace("_", "-") in {name.replace("_", "-") for name in NbGraderApp.subcommands}
    assert "bubblewrap" in ten()[1] and "jupyter lab" in ten()[7]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_typed_one_after_the_other_they_grade_a_class(
    needs_sandbox: None, school: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    course = school.course
    school.hand_in("ada")
    school.hand_in("bob", {"sectors": "def sectors(addresses, size):\n    return 0\n"})
    for command in ten():
        if command.startswith(OURS):
            given = command.removeprefix(OURS).replace(LAB_OF_THE_GUIDE, LAB)
            words = [str(school.folder) if word == "handed_in" else word for word in given.split()]
            assert main(words, course) == 0, (command, capsys.readouterr().out)
        elif found := re.search(r"nbgrader ([^)]+)", command):
            nbgrader(course, *found[1].replace(LAB_OF_THE_GUIDE, LAB).split())
    assert (course.feedback / "bob" / LAB / f"{LAB}.html").is_file()
    rows = {row["student_id"]: float(row["score"]) for row in csv.DictReader(course.exported.open())}
    assert rows == {"ada": 11.0, "bob": 8.0}
    assert {row["student"]: float(row["points"]) for row in read_grades(course)} == rows
    assert main(["grade", LAB, str(school.folder)], course) == 0  # once more, as the guide says
