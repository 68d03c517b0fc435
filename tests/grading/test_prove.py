"""Proofs of a lab find what is wrong with its exercises, and hold for the one that is right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from grading.__main__ import main
from grading.authoring.prove import prove
from grading.core.course import Course
from grading.core.errors import ReleaseError
from tests.grading.conftest import LAB


def problems(course: Course) -> dict[str, str]:
    return {f"{p.exercise} {p.variant}": p.problem for p in prove(course, LAB) if p.problem}


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_all_proofs_of_a_good_lab_hold_and_are_shown(
    course: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["release", LAB, "--prove"], course) == 0
    out = capsys.readouterr().out
    assert "11 of 11 proofs hold" in out
    rows = [line.split()[:2] for line in out.splitlines() if line.startswith("  memory.")]
    assert rows.count(["memory.copy", "copy_blocked"]) == 1
    assert {variant for _, variant in rows} >= {"stub", "solution", "public"}


def test_each_kind_of_mistake_in_a_lab_is_found(course: Course) -> None:
    source = course.solutions / LAB / f"{LAB}.py"
    wrong = course.solutions / LAB / "wrong"
    replace_in(source, "return len({byte", "return 1 + len({byte")
    replace_in(wrong / "copy_blocked.py", "fails: load sectors  says: 65,536 sectors", "fails: right")
    replace_in(wrong / "copy_drops_the_rest.py", "never written", "out of bounds")
    (wrong / "copy_right.py").write_text(
        "# exercise: memory.copy  fails: right\n@cuda.jit\ndef copy(a, b):\n"
        "    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):\n        b[i] = a[i]\n"
    )
    found = problems(course)
    assert "does not pass" in found.pop("memory.sectors solution")
    assert "does not pass" in found.pop("memory.sectors public")
    assert "instead of right" in found.pop("memory.copy copy_blocked")
    assert "does not say 'out of bounds'" in found.pop("memory.copy copy_drops_the_rest")
    assert found == {"memory.copy copy_right": "passes"}


def header(course: Course) -> None:
    (course.solutions / LAB / "wrong" / "new.py").write_text("# memory.copy is wrong\n")


def stranger(course: Course) -> None:
    (course.solutions / LAB / "wrong" / "new.py").write_text("# exercise: memory.blur\n")


def points(course: Course) -> None:
    replace_in(course.solutions / LAB / f"{LAB}.py", '"points": 3', '"points": 5')


def checking_cell(course: Course) -> None:
    replace_in(
        course.solutions / LAB / f"{LAB}.py", 'check("memory.copy", copy)', 'check("memory.copy", copy); 1'
    )


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (header, "line 1 must read"),
        (stranger, "new.py is for memory.blur, which the lab does not ask"),
        (points, "has 5 points, but memory.sectors has 3"),
        (checking_cell, "must be the one statement"),
    ],
)
def test_a_lab_that_does_not_fit_its_exercises_is_one_message(
    course: Course, spoil: Callable[[Course], None], words: str
) -> None:
    spoil(course)
    with pytest.raises(ReleaseError, match=words):
        prove(course, LAB)
