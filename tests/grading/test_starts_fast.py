"""What a process of the judge leaves alone when it starts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from grading.__main__ import main
from grading.lms import classroom
from tests.grading.conftest import LAB, Class
from tests.grading.test_bad_input import FakeJudge


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


def test_a_run_with_nothing_new_imports_nothing_that_only_judging_or_writing_needs(
    school: Class, monkeypatch: pytest.MonkeyPatch
) -> None:
    for student in ("ann", "bob"):
        school.hand_in(student)
    arguments = ["grade", LAB, str(school.folder), "--unsafe"]
    monkeypatch.setattr(classroom, "Judge", FakeJudge)
    assert main(arguments, school.course) == 0
    code = f"""
import sys
from pathlib import Path
from grading.__main__ import main
from grading.core.course import Course
assert main({arguments!r}, Course(Path({str(school.course.root)!r}), Path({str(school.course.home)!r}))) == 0
needless = ("torch", "numba", "jupytext", "grading.gpu_stage", "grading.lms.preprocessors", "grading.lms.similar")
print(*(name for name in needless if name in sys.modules), "needless")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert "unchanged 2" in done.stdout, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "needless"
