"""What a learner sees of the course as a whole: progress, the quiz's result, words, the map."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpulab.app import course
from gpulab.app.course import UnknownTerm, catalogue, glossary, home, lab_map, progress, quiz
from gpulab.app.course.progress import UnknownLab
from gpulab.app.course.quiz import LETTERS, NotAnswers
from gpulab.checks import registry

RIGHT = "".join(LETTERS[q.right] for q in catalogue.questions())


@pytest.fixture(autouse=True)
def done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A learner who has passed one of two tries."""
    names = [e.name for e in registry.of_lab("00")]
    records = {
        names[0]: {"attempts": 3, "best": 2.0, "passed": True},
        names[1]: {"attempts": 1, "best": 0.5, "passed": False},
    }
    place = tmp_path / "progress.json"
    place.write_text(json.dumps({"format": 1, "exercises": records, "predictions": {}}))
    monkeypatch.setenv("GPULAB_PROGRESS", str(place))
    return place


def test_progress_counts_what_was_passed_in_each_lab() -> None:
    said = str(progress())
    assert f"1 of {len(registry.exercises())} exercises" in said or "1 of" in said.splitlines()[0]
    assert "◐ 00  Start here" in said
    assert "○ 04  The memory hierarchy" in said
    assert {lab.number for lab in progress().labs} == {lab.number for lab in catalogue.labs().values()}


def test_progress_of_one_lab_shows_its_exercises_with_best_points_and_checks() -> None:
    found = progress("00_start_here")
    assert [e.attempts for e in found.labs[0].exercises][:2] == [3, 1]
    assert found.labs[0].share == pytest.approx(1 / len(registry.of_lab("00")))
    assert registry.of_lab("00")[1].name in str(found)


def test_progress_as_json_has_all_labs(done: Path) -> None:
    data = json.loads(json.dumps(progress().to_dict()))
    assert data["place"] == str(done)
    assert data["labs"][0]["exercises"][0]["passed"] is True


def test_a_lab_that_does_not_exist_is_told_so() -> None:
    with pytest.raises(UnknownLab, match="there is no lab '99'; labs are 00, 01"):
        progress("99")


def test_the_quiz_asks_and_keeps_its_answers_to_itself() -> None:
    asked = str(quiz())
    assert all(q.question.split()[0] in asked for q in catalogue.questions())
    assert not any(q.reason in " ".join(asked.split()) for q in catalogue.questions())


def test_all_right_sends_to_the_capstones() -> None:
    assert quiz(RIGHT).to_do == ()
    assert "capstone" not in str(quiz("-" * 10))
    assert "10 of 10 right" in str(quiz(RIGHT)) and "open tasks" in str(quiz(RIGHT))


def test_nothing_known_sends_to_the_start() -> None:
    said = " ".join(str(quiz("----------")).split())
    assert "0 of 10 right" in said and "Begin with lab 00" in said


def test_a_question_without_an_answer_tells_none() -> None:
    said = " ".join(str(quiz("-" * 9 + LETTERS[catalogue.questions()[9].right])).split())
    assert said.count("not answered") == 9 and catalogue.questions()[9].reason[:15] in said
    assert not any(q.reason[:15] in said for q in catalogue.questions()[:9])


def test_what_is_not_known_names_its_labs() -> None:
    answers = [*RIGHT]
    for index in (5, 8):  # labs 08 and 15
        answers[index] = "-"
    assert quiz("".join(answers)).to_do == ("08", "15")
    said = " ".join(str(quiz("".join(answers))).split())
    assert "begin with lab 08, PyTorch performance. Do not skip 15." in said


@pytest.mark.parametrize("answers", ["abc", "abcabcabcd", "a" * 11, "1234567890"])
def test_what_are_no_answers_are_refused_with_an_example(answers: str) -> None:
    with pytest.raises(NotAnswers, match="ten of a, b, c and -"):
        quiz(answers)


def test_a_word_is_found_in_its_forms_and_inside_others() -> None:
    assert [t.name for t in glossary("Bank Conflicts").terms] == ["bank conflict"]
    assert [t.name for t in glossary("round-to-nearest-even").terms] == ["round to nearest even"]
    assert {"cache line", "KV cache"} <= {t.name for t in glossary("cache").terms}
    assert len(glossary().terms) == len(catalogue.terms())


def test_an_unknown_word_gets_the_closest() -> None:
    with pytest.raises(UnknownTerm, match="did you mean occupancy"):
        glossary("ocupancy")


def test_all_show_themselves_as_html_too() -> None:
    for thing in (progress(), quiz(), quiz(RIGHT), glossary("warp"), home(), lab_map()):
        assert "<" in thing._repr_mimebundle_()["text/html"]
        assert thing._repr_mimebundle_()["text/plain"]
    assert course.__all__
