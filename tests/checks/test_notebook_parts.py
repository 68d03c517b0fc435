"""The end of a notebook, and a hint that knows the last failure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpulab.checks import hints, notebook_parts, progress
from gpulab.checks.checking import _part_done, record
from gpulab.checks.parts import Part
from gpulab.checks.registry import find
from gpulab.checks.verdict import Verdict

ROOT = Path(__file__).resolve().parents[2]
PART_A = ROOT / "labs" / "06_matrix_multiplication" / "06_matrix_multiplication_a.ipynb"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPULAB_PROGRESS", str(tmp_path / "progress.json"))
    return tmp_path / "progress.json"


def passed(place: Path, *names: str) -> None:
    exercises = {name: {"attempts": 1, "best": 1.0, "passed": True} for name in names}
    place.write_text(json.dumps({"format": 1, "exercises": exercises, "predictions": {}}))


def test_every_exercise_of_a_lab_is_in_one_of_its_notebooks() -> None:
    part = notebook_parts.read(PART_A)
    assert part and "Matrix multiplication" in part.title
    later = notebook_parts.following(part)
    assert later and later.path.stem.endswith("_b") and not set(part.exercises) & set(later.exercises)
    assert notebook_parts.following(later) is None


def test_the_last_exercise_of_part_a_says_what_is_done_and_what_waits(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JPY_SESSION_NAME", str(PART_A))
    part = notebook_parts.running()
    assert part
    passed(place, *part.exercises[:-1])
    assert _part_done(find(part.exercises[0])) == []
    passed(place, *part.exercises)
    done, waits = _part_done(find(part.exercises[0]))
    assert done == f"You have passed all {len(part.exercises)} exercises of this notebook."
    assert waits.startswith("Next: 06B · Tensor cores, with ") and waits.endswith(
        "06_matrix_multiplication_b.ipynb."
    )


@pytest.mark.parametrize("content", ["no notebook", "{}", '{"cells": [{}]}', '{"cells": 3}'])
def test_a_notebook_that_cannot_be_read_ends_nothing(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.ipynb").write_text(content)
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "x.ipynb"))
    assert notebook_parts.running() is None and _part_done(find("start.double")) == []


def test_a_hint_says_what_the_last_check_found() -> None:
    assert hints.hint("start.double").last == ""
    parts = (
        Part("right", "fail", 0, 1, "4 of 5 sizes; first wrong at 1000"),
        Part("stores", "wait", 0, 1, ""),
    )
    record(find("start.double"), Verdict("start.double", parts))
    said = str(hints.hint("start.double"))
    assert (
        "Your last check: 0 of 2.0 points. Not right yet: right (4 of 5 sizes; first wrong at 1000)"
        in " ".join(said.split())
    )
    with progress.change() as data:
        data["exercises"]["start.double"]["passed"] = True
    assert hints.hint("start.double").last == ""
