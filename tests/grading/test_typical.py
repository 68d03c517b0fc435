"""What goes wrong in a lab, from `wrong/` and from a class: counted, and nobody named."""

from __future__ import annotations

from pathlib import Path

import pytest

from grading.__main__ import main
from grading.authoring.prove import prove, wrong_files
from grading.authoring.typical import Typical, fails_alike, general, typical
from grading.core.course import Course
from grading.core.verdicts import ExerciseVerdict, Line, NotebookVerdict, Store
from tests.grading.conftest import LAB


def handed_in(course: Course, student: str, *verdicts: ExerciseVerdict, ungraded: str = "") -> None:
    Store(course.verdicts).put(student, LAB, LAB, NotebookVerdict("key", "digest", verdicts, ungraded))


def copy(points: float, short: str = "", label: str = "right", reason: str = "") -> ExerciseVerdict:
    return ExerciseVerdict("memory.copy", "copy-check", (Line(label, points, 4, "", reason, short),))


def of(course: Course, exercise: str = "memory.copy") -> Typical:
    return next(found for found in typical(course, LAB) if found.exercise == exercise)


def test_reasons_are_told_apart_by_words_and_not_by_numbers() -> None:
    first = "`b[1,024]` was never written, should be -1.22e-5 at 2,048"
    other = "`out[7]` was never written, should be 3.5 at 31"
    assert general(first) == general(other) == "`…` was never written, should be … at …"
    assert general("it is nan, should be 1") == general("it is 2, should be 1")
    assert general("the kernel failed") != general(first)


def test_the_most_frequent_error_comes_first_and_nobody_is_named(
    course: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    for i in range(3):
        handed_in(course, f"student{i}", copy(0, f"`b[{i}]` was never written, at {i * 31}"))
    handed_in(course, "odd", copy(2, "32.0 instead of 4.0", "load sectors"))
    handed_in(course, "fine", copy(4))
    handed_in(course, "broken", copy(0, "no JSON"), ungraded="notebook is not JSON")
    found = of(course)
    assert (found.students, found.passed) == (5, 1)
    assert [(k.students, k.labels) for k in found.kinds] == [(3, ("right",)), (1, ("load sectors",))]
    assert main(["errors", LAB], course) == 0
    out = capsys.readouterr().out
    assert "memory.copy: 1 of 5 passed" in out
    assert "**3** lose right: `…` was never written, at …" in out
    assert not [name for name in ("student", "odd", "fine", "broken") if name in out]


def test_every_wrong_submission_is_known_before_a_class_and_found_again_in_one(course: Course) -> None:
    wrong = wrong_files(course.solutions / LAB)
    assert {w.path for found in typical(course, LAB) for w in found.unseen} == {w.path for w in wrong}
    proofs = {proof.variant: proof.verdict for proof in prove(course, LAB)}
    for each in wrong:
        assert fails_alike(each, proofs[each.path.stem]), each
        handed_in(course, each.path.stem, proofs[each.path.stem])
    for found in typical(course, LAB):
        assert found.unseen == ()
        assert sum(kind.students for kind in found.kinds) == sum(w.exercise == found.exercise for w in wrong)
        assert all(kind.like for kind in found.kinds)


def test_a_damaged_verdict_is_passed_over(course: Course) -> None:
    handed_in(course, "ann", copy(4))
    (Path(course.verdicts) / LAB / f"bob@{LAB}.json").write_text('{"key":')
    assert of(course).students == 1


def test_a_lab_that_is_not_there_is_one_line(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["errors", "99_none"], course) == 1
    assert f"no released lab '99_none' in {course.labs}; there are: {LAB}" in " ".join(
        capsys.readouterr().out.split()
    )
