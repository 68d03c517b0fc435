"""What a process of the judge leaves alone when it starts."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from grading.__main__ import main
from grading.lms import classroom, gradebook
from tests.grading.conftest import LAB, Class
from tests.grading.test_bad_input import FakeJudge
from tests.grading.test_terms import NoPages


def test_no_grammar_of_internet_addresses_is_built_and_notebooks_are_still_checked():
    code = """
import grading, nbformat, sys
assert "lark" not in sys.modules
try:
    nbformat.validate({"cells": [], "metadata": 3, "nbformat": 4, "nbformat_minor": 5})
except nbformat.ValidationError:
    print("checked")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "checked", done.stderr


SECONDS = 5.0  # of processor time, for a run with nothing new; half of it is used
ALONE = """
import sys
from pathlib import Path
from grading.__main__ import main
from grading.core.course import Course
root, home, *arguments = sys.argv[1:]
assert main(arguments, Course(Path(root), Path(home))) == 0
needless = ("torch", "numba", "jupytext", "grading.gpu_stage", "grading.lms.preprocessors", "grading.lms.similar")
print(*(name for name in needless if name in sys.modules), "needless")
"""


def test_a_run_with_nothing_new_takes_seconds_and_imports_nothing_that_only_judging_or_writing_needs(
    school: Class, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of its own processor time and its children's, because other work on the machine is no fault of it."""
    for number in range(20):
        school.hand_in(f"s{number}")
    arguments = ["grade", LAB, str(school.folder), "--unsafe"]
    monkeypatch.setattr(classroom, "Judge", FakeJudge)
    monkeypatch.setattr(gradebook, "FeedbackExporter", NoPages)
    assert main(arguments, school.course) == 0
    command = [sys.executable, "-c", ALONE, str(school.course.root), str(school.course.home), *arguments]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "unchanged 20" in done.stdout, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "needless"
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < SECONDS
