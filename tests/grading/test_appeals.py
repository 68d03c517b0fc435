"""What a student writes with `gpulab appeal` is what the instructor's `regrades` reads."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gpulab
from gpulab.app import appeal as appeals
from gpulab.app import cli
from gpulab.app.appeal import CannotAppeal
from grading.__main__ import main
from grading.core.course import ROOT, Course
from grading.lms import regrades
from tests.grading.conftest import Class
from tests.grading.test_bad_input import no_sandbox_needed

__all__ = ["no_sandbox_needed"]
WHY = 'At 31 my kernel\n\twrites "all" of them: \\ # = [x] 🚀 \x7f \x00'


@pytest.fixture
def home(tmp_path: Path) -> Course:
    return Course(ROOT, tmp_path / "home")


def test_a_request_from_the_command_line_is_read_word_for_word(
    home: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["appeal", "memory.copy", "Look", "at", "line 4.", "--as", "ada@b.org"]) == 0
    said = capsys.readouterr().out
    assert "wrote appeal-ada@b.org-memory.copy.toml" in said and "Nothing was sent." in said
    (found,), problems = regrades.requests(home, tmp_path)
    assert problems == {} and (found.student, found.exercise) == ("ada@b.org", "memory.copy")
    assert (found.lab, found.why) == ("04_memory_hierarchy", "Look at line 4.")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(min_size=1, max_size=300))
def test_whatever_a_student_writes_is_read_back(home: Course, tmp_path: Path, why: str) -> None:
    with contextlib.suppress(CannotAppeal):  # nothing but blanks
        found = regrades.request(home, gpulab.appeal("memory.copy", why, "ada", tmp_path).path)
        assert found.why == why.strip().encode("utf-8", "replace").decode()


def test_every_character_that_toml_or_json_treats_in_a_special_way_survives(
    home: Course, tmp_path: Path
) -> None:
    assert regrades.request(home, gpulab.appeal("04", WHY, "ada", tmp_path).path).why == WHY
    longest = gpulab.appeal("04", "\x01" * appeals.LONGEST, "ada", tmp_path)
    assert len(regrades.request(home, longest.path).why) == appeals.LONGEST
    assert longest.replaced and longest.exercise == ""


def test_on_a_jupyterhub_the_name_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_USER", "grace")
    assert gpulab.appeal("memory.copy", "Look again.", folder=tmp_path).student == "grace"


@pytest.mark.parametrize(
    ("student", "why", "said"),
    [
        ("", "x", "who asks"),
        ("a b", "x", "no name of a student"),
        (".ada", "x", "no name of a student"),
        ("ada", " \n", "why was it judged wrongly"),
        ("ada", "x" * 2001, "2,001 characters; at most 2,000 are read"),
    ],
)
def test_what_is_missing_is_said_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, student: str, why: str, said: str
) -> None:
    monkeypatch.delenv("JUPYTERHUB_USER", raising=False)
    with pytest.raises(CannotAppeal, match=said):
        gpulab.appeal("memory.copy", why, student, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("about", ["4", "04", "04b", "04_memory_hierarchy", " 04 "])
def test_a_lab_may_be_named_in_any_way_that_the_course_writes_it(
    home: Course, tmp_path: Path, about: str
) -> None:
    written = gpulab.appeal(about, "Look again.", "ada", tmp_path)
    assert written.path.name == "appeal-ada-04.toml"
    assert regrades.request(home, written.path).lab == "04_memory_hierarchy"


def test_a_lab_that_there_is_not_is_no_exercise_and_those_that_there_are_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["appeal", "99", "Look again.", "--as", "ada"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "there is no lab 99; labs are 00, 01" in said and "exercise" not in said


def test_requests_in_the_folders_of_an_lms_are_answered(
    school: Class, capsys: pytest.CaptureFixture[str]
) -> None:
    course = school.course
    for name in ("Ann Doe_11_assignsubmission_file_", "Bob Roe_12_assignsubmission_file_"):
        (course.regrades / name).mkdir(parents=True)
        gpulab.appeal("memory.copy", "Look again.", name.split()[0].lower(), course.regrades / name)
    assert main(["regrades", "--unsafe"], course) == 0
    said = capsys.readouterr().out
    assert "2 requests" in said and "ann · 04 · memory.copy" in said and "bob · 04" in said
