"""`python -m grading doctor` says what would stop a run before one is started."""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata

import pytest

from gpulab.simulator import compile
from grading.__main__ import main
from grading.core import container, sandbox
from grading.core.course import Course
from grading.lms import doctor


def rows(course: Course) -> dict[str, tuple[bool, str]]:
    return {what: (good, words) for what, good, words in doctor.checks(course)}


def test_a_class_that_can_be_graded_is_well(course: Course) -> None:
    found = rows(course)
    assert found["course.toml"] == (True, "none: no due dates, and no rules")
    assert found["gradebook"] == (True, str(course.gradebook))


def test_a_rule_that_cannot_be_read_and_a_database_that_does_not_answer_are_told(course: Course) -> None:
    course.home.mkdir(exist_ok=True)
    course.settings.write_text("[lat]")
    elsewhere = replace(course, database="postgresql://t:s3cret@127.0.0.1:1/x")
    found = rows(elsewhere)
    good, words = found["course.toml"]
    assert not good and "the file has no 'lat'" in words
    good, words = found["gradebook"]
    assert not good and "refused" in words and "Fix this before you grade" in words and "s3cret" not in words
    good, words = rows(replace(course, database="no url"))["gradebook"]
    assert not good and "cannot be read" in words


def test_what_a_machine_lacks_is_named_with_what_to_install(
    course: Course, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def version(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "version", version)
    monkeypatch.setattr(compile, "compiler_version", lambda: "")
    monkeypatch.setattr(
        sandbox, "no_bubblewrap", lambda: "bubblewrap is not installed: apt install bubblewrap"
    )
    monkeypatch.setattr(container, "engine", lambda: ("", "neither podman nor Docker is installed"))
    assert main(["doctor"], course) == 1
    said = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert said["nbgrader"] == "no   missing: pip install 'gpulab[grading]'"
    assert said["schemas"] == "no   missing: pip install 'gpulab[serving]'"
    assert said["compiler"] == "no   no NVVM: install the extra cu12 or cu13"
    assert said["sandbox"] == "no   bubblewrap is not installed: apt install bubblewrap"
    assert said["container"] == "no   neither podman nor Docker is installed"
