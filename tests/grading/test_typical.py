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
    assert "**3** fail at right: `…` was never written, at …" in out
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


def wrong_copy(course: Course, name: str, header: str) -> None:
    path = course.solutions / LAB / "wrong" / f"{name}.py"
    path.write_text(f"# exercise: memory.copy  {header}\npass\n")


def test_a_wrong_submission_known_by_a_number_or_as_wrong_alone_is_no_label_of_other_errors(
    course: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong_copy(course, "copy_no_guard", "fails: right  says: 1,000")
    wrong_copy(course, "copy_off_by_one", "fails: right  says: should be")
    wrong_copy(course, "copy_other_order", "fails: right  says: 2,047 more")
    wrong_copy(course, "copy_races", "fails: right  says: Race in kernel")
    wrong_copy(course, "copy_top", "fails: right  says: top")
    for student, reason in {
        "ann": "`b[0]` is 1, should be 2 · 9 more, from index 1 on",
        "cy": "stopped after 10 s",
    }.items():
        handed_in(course, student, copy(0, reason, reason=reason))
    found = of(course)
    assert [kind.like for kind in found.kinds] == [(), ()]
    assert {w.path.stem for w in found.untold} == {"copy_no_guard", "copy_off_by_one", "copy_other_order"}
    assert {"copy_races", "copy_top"} <= {w.path.stem for w in found.unseen}
    assert main(["errors", LAB], course) == 0
    out = capsys.readouterr().out
    assert "known, and not to be told from other wrong results:\n    - copy no guard" in out


def test_what_was_no_answer_is_not_called_missing_in_wrong(
    course: Course, capsys: pytest.CaptureFixture[str]
) -> None:
    reasons = {
        "a": "stopped after 10 s",
        "b": "not reached: the process ended (exit status 3) in copy",
        "c": "`copy` is not defined, because the cell 'copy' failed: stopped after 10 s",
        "d": "`copy` is still empty: no thread writes anything",
        "e": "not answered: the cell still says NotImplementedError",
    }
    for student, reason in reasons.items():
        handed_in(course, student, copy(0, reason))
    assert main(["errors", LAB], course) == 0
    assert "file of wrong/" not in capsys.readouterr().out
    handed_in(course, "f", copy(0, "Race in kernel copy"))
    assert main(["errors", LAB], course) == 0
    assert "**1** fails at right: Race in kernel copy (like no file of wrong/)" in capsys.readouterr().out


def test_the_same_error_at_another_line_or_of_more_elements_is_the_same() -> None:
    one = "TypeError: list indices must be integers (line 2: return addresses['x'])"
    assert general(one) == general(one.replace("2: return addresses['x']", "14: x = a['y']"))
    assert general("`b[1]` was never written, should be 2 · 1,023 more, from index 7 on") == general(
        "`b[1]` was never written, should be 2"
    )


def test_a_damaged_verdict_is_passed_over(course: Course) -> None:
    handed_in(course, "ann", copy(4))
    (Path(course.verdicts) / LAB / f"bob@{LAB}.json").write_text('{"key":')
    assert of(course).students == 1


def test_a_lab_that_is_not_there_is_one_line(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["errors", "99_none"], course) == 1
    assert f"no released lab '99_none' in {course.labs}; there are: {LAB}" in " ".join(
        capsys.readouterr().out.split()
    )
