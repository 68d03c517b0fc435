"""Progress, hints, predictions: what is kept between two cells and two days."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path

import pytest

from gpulab import cuda
from gpulab.checks import Prediction, check, hints, messages, predictions, progress, registry
from gpulab.checks.predictions import NotAPrediction, UnknownPrediction
from gpulab.checks.start import UnknownLab, start


@cuda.jit
def wrong(a, out):
    pass


@cuda.jit
def right(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = 2 * a[i]


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, text: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(progress, "_write", refuse)
    monkeypatch.setattr(progress, "_unsaved", {})


def test_the_file_lies_beside_the_labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPULAB_PROGRESS")
    lab = tmp_path / "labs" / "03_cuda_with_numba"
    lab.mkdir(parents=True)
    for folder, place in ((lab, "labs"), (tmp_path, "labs")):
        monkeypatch.chdir(folder)
        assert progress.place() == tmp_path / place / "progress.json"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert progress.place() == elsewhere / "progress.json"


def test_attempts_are_counted_and_the_best_is_kept(own_progress: Path) -> None:
    assert check("toy.double", wrong).attempt == 1
    assert check("toy.double", right).attempt == 2
    assert check("toy.double", wrong).attempt == 3
    record = json.loads(own_progress.read_text())["exercises"]["toy.double"]
    assert (record["attempts"], record["failed"], record["passed"], record["best"]) == (3, 2, True, 2.0)
    assert record["last"]["passed"] is False


def test_a_failure_after_a_pass_says_that_the_pass_stays(own_progress: Path) -> None:
    said = "You passed this exercise before, and that stays. What is graded is the cell that you hand in."
    assert said not in check("toy.double", wrong).notes
    check("toy.double", right)
    assert check("toy.double", wrong).notes[-1] == said


def test_a_folder_that_cannot_be_written_costs_one_line_and_nothing_else(read_only: None) -> None:
    first, second = check("toy.double", wrong), check("toy.double", right)
    assert second.attempt == 2
    assert second.passed
    assert [note for note in first.notes if "progress is kept until this kernel stops" in note]
    assert [note for note in second.notes if "cannot be written" in note]


def test_a_damaged_file_is_kept_aside_and_starts_anew(own_progress: Path) -> None:
    own_progress.write_text("{ no json")
    assert progress.load()["exercises"] == {}
    assert own_progress.with_suffix(".damaged.json").read_text() == "{ no json"
    assert check("toy.double", right).passed


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        '{"format": 7}',
        '{"format": 1, "exercises": 3}',
        '{"format": 1, "exercises": {"toy.double": 3}}',
        '{"format": 1, "predictions": {"start.idle": [24]}}',
    ],
)
def test_a_file_of_another_form_counts_as_empty_and_is_kept_aside(content: str, own_progress: Path) -> None:
    own_progress.write_text(content)
    assert progress.load()["exercises"] == {}
    assert check("toy.double", right).passed
    assert own_progress.with_suffix(".damaged.json").read_text() == content


def test_what_was_kept_aside_once_is_not_written_over(own_progress: Path) -> None:
    for content in ("{ once", "{ twice", "{ thrice"):
        own_progress.write_text(content)
        progress.load()
    kept = {file.read_text() for file in own_progress.parent.glob("*.damaged*.json")}
    assert kept == {"{ once", "{ twice", "{ thrice"}


def test_two_notebooks_at_once_lose_no_attempt(own_progress: Path) -> None:
    def count_up() -> None:
        for _ in range(50):
            with progress.change() as data:
                progress.of_exercise(data, "a.b")["attempts"] += 1

    there = multiprocessing.get_context("fork").Process(target=count_up)
    there.start()
    count_up()
    there.join()
    assert json.loads(own_progress.read_text())["exercises"]["a.b"]["attempts"] == 100


def test_a_crash_while_writing_leaves_the_old_file(
    own_progress: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check("toy.double", right)
    before = own_progress.read_text()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        progress._write(own_progress, "half")
    assert own_progress.read_text() == before
    assert list(own_progress.parent.iterdir()) == [own_progress]


def test_the_first_hint_is_free_and_each_further_one_costs_a_failed_check() -> None:
    assert hints.hint("toy.double").steps == ("How many threads are there?",)
    again = hints.hint("toy.double")
    assert len(again.steps) == 1
    assert again.next == "The next step comes after another failed check."
    check("toy.double", wrong)
    assert len(hints.hint("toy.double").steps) == 2
    check("toy.double", wrong)
    check("toy.double", wrong)
    assert len(hints.hint("toy.double").steps) == 3
    last = hints.hint("toy.double")
    assert len(last.steps) == 3
    assert last.next == "These were all hints. Read again: 1 · Guards"


def test_a_hint_shows_all_steps_so_far() -> None:
    hints.hint("toy.double")
    check("toy.double", wrong)
    assert (
        str(hints.hint("toy.double"))
        == """\
toy.double                                                                   hint 2 of 3
Your last check: 0 of 2.0 points. Not right yet: right (no result yet)
1  How many threads are there?
2  Which have no element?
Try it, then check again: gpulab.check("toy.double", …)"""
    )


def test_all_hints_are_open_once_an_exercise_is_passed() -> None:
    check("toy.double", right)
    seen = hints.hint("toy.double")
    assert len(seen.steps) == seen.total == 3
    assert seen.next == "These were all hints. Read again: 1 · Guards"


def test_an_exercise_without_hints_says_so() -> None:
    assert str(hints.hint("toy.scale")).endswith("toy.scale has no hints.")


def test_a_failed_check_points_to_the_next_hint() -> None:
    assert check("toy.double", wrong).notes == ('attempt 1 · gpulab.hint("toy.double") has a first step',)
    hints.hint("toy.double")
    assert check("toy.double", wrong).notes == ('attempt 2 · gpulab.hint("toy.double") has a next step',)


@pytest.fixture
def toy_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    toys = {name: Prediction(name, "99", "") for name in ("toy.sectors", "toy.other")}
    real = registry.predictions()
    monkeypatch.setattr(registry, "predictions", lambda: real | toys)


@pytest.mark.usefixtures("toy_questions")
def test_a_prediction_is_noted_and_meets_the_measured_number_later() -> None:
    assert str(predictions.predict("toy.sectors", 32)) == "○ toy.sectors  noted: 32"
    assert str(predictions.predict("toy.sectors", measured=4)) == "◐ toy.sectors  you wrote 32; it is 4"
    assert "you wrote 32; it is 4" in str(predictions.recap("toy"))


def test_a_prediction_that_the_lab_knows_is_answered_at_once_with_the_reason() -> None:
    off = predictions.predict("start.idle", 25)
    assert off.right is False
    assert "you wrote 25 threads; it is 24 threads" in str(off)
    assert "4 · 256 = 1,024 threads" in str(off)
    again = predictions.predict("start.idle", 24)
    assert again.right and "before the run: 25 threads; that one stays in the recap" in str(again)
    assert "you wrote 25 threads; it is 24 threads" in str(predictions.recap("00_start_here"))


@pytest.mark.parametrize(
    ("value", "measured", "tolerance", "right"),
    [
        (104, 100, 0.05, True),
        (106, 100, 0.05, False),
        (-96, -100, 0.05, True),
        (12, 12.000001, 0.0, False),
        (1 / 3, 0.3333333333, 0.0, True),
        (0, 0, 0.0, True),
        (None, 3, 0.0, None),
        (3, None, 0.0, None),
    ],
)
def test_a_prediction_is_right_within_its_tolerance_of_what_came_out(value, measured, tolerance, right):
    assert predictions.Guess("toy.guess", value, measured, tolerance=tolerance).right is right


def test_one_is_one_sector_and_a_rate_keeps_its_s() -> None:
    assert "; it is 1 sector\n" in str(predictions.predict("memory.same_word", 32))
    assert messages.quantity(1, "Gbit/s") == "1 Gbit/s"


def test_a_question_that_no_lab_asks_is_answered_with_the_closest() -> None:
    with pytest.raises(
        UnknownPrediction, match=r"no question 'memory.same_wrd'; did you mean memory.same_word"
    ):
        predictions.predict("memory.same_wrd", 3)


@pytest.mark.usefixtures("toy_questions")
def test_three_dots_ask_for_a_number_and_lose_nothing() -> None:
    predictions.predict("toy.sectors", 32)
    assert predictions.predict("toy.sectors", ...).value == 32
    assert "write your number in the place of the three dots" in str(predictions.predict("toy.other", ...))


@pytest.mark.usefixtures("toy_questions")
@pytest.mark.parametrize("value", [float("nan"), float("inf"), "32", True, [1]])
def test_what_is_no_number_is_refused_in_one_line(value: object) -> None:
    with pytest.raises(NotAPrediction, match="takes one finite number; it got") as caught:
        predictions.predict("toy.sectors", value)
    assert "\n" not in str(caught.value)


def test_an_empty_recap_says_so() -> None:
    assert "Nothing is written down for 99 yet." in str(predictions.recap("99"))


def test_the_import_cell_prints_one_line() -> None:
    check("toy.double", right)
    line = str(start("99_toys"))
    assert line.startswith("gpulab 0.1")
    assert "A100" in line
    assert line.endswith("lab 99, 1 of 6 done")
    assert "\n" not in line


def test_an_unknown_lab_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownLab, match=r"there is no lab '98'; there are 00, .*03, 04"):
        start("98")


@pytest.mark.parametrize(
    ("value", "told"), [(1280, "1,280"), (4, "4"), (1.5, "1.5"), (2.6666, "2.67"), (0, "?")]
)
def test_how_many_times_a_limit_has_no_exponent(value, told):
    assert messages.times(value, 1) == told


def test_a_check_of_what_the_lab_left_empty_is_no_attempt() -> None:
    def worst_line(lines):
        raise NotImplementedError

    @cuda.jit
    def double(a, out):
        raise NotImplementedError

    for name, fn in (("start.worst_line", worst_line), ("start.double", double)):
        assert "not counted as an attempt" in str(check(name, fn))
    assert progress.load()["exercises"] == {}
