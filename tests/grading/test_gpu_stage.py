"""`--gpu`: what passed gets its speed into verdict, gradebook and feedback, on a device that counts its time."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from nbgrader.api import Gradebook

from gpulab.checks import speeds
from gpulab.checks.spec import Case
from gpulab.checks.speeds import Speed
from grading import __main__
from grading.core import texts
from grading.core.course import Course
from grading.core.errors import GradingError
from grading.core.sandbox import Limits
from grading.core.verdicts import ExerciseVerdict, Line, NotebookVerdict, as_text
from grading.gpu_stage import stage
from grading.gpu_stage.devices import Gpu, Timer, gpus
from grading.gpu_stage.protocol import Settings, Timing
from grading.gpu_stage.statistics import Interval
from grading.lms import classroom
from tests.grading.conftest import LAB, Class
from tests.grading.simulated_gpu import SimulatedTimer

LIMITS = Limits(seconds=100, patience=30)
# Twice the sectors for the same result, but only at sizes at which nobody counts.
AGAIN = """
@cuda.jit
def copy(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = a[i]
        if a.size == 20_000:
            cuda.atomic.add(b, i, 0)
"""
# Right wherever the judge counts, and wrong where it would take longest.
LAZY = """
@cuda.jit
def copy(a, b):
    if a.size != 20_000:
        for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
            b[i] = a[i]
"""
WRONG = "@cuda.jit\ndef copy(a, b):\n    b[cuda.grid(1)] = 1"


@pytest.fixture(autouse=True)
def timed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """One exercise of the small course is timed, at one size, and points hang on it."""
    wanted = Speed((Case("20,000", {"n": 20_000}),), lambda s: 8 * int(s["n"]), costs=1.0)
    monkeypatch.setattr(stage, "SPEEDS", {"memory.copy": wanted})


def graded(course: Course, school: Class, *timers: Timer) -> classroom.ClassResult:
    return classroom.grade(course, LAB, school.folder, limits=LIMITS, unsafe=True, gpus=timers)


def line_of(result: classroom.ClassResult, student: str) -> tuple[ExerciseVerdict, Line | None]:
    (task,) = result.tasks[student]
    assert task.verdict is not None
    verdict = next(v for v in task.verdict.exercises if v.exercise == "memory.copy")
    return verdict, next((x for x in verdict.lines if x.label == texts.SPEED), None)


def test_a_class_is_timed_once_and_everybody_gets_the_speed_that_is_theirs(
    course: Course, school: Class
) -> None:
    school.hand_in("ada")
    school.hand_in("bob", {"copy": AGAIN})
    school.hand_in("cyd", {"copy": LAZY})
    school.hand_in("dan", {"copy": WRONG})
    timer = SimulatedTimer()
    result = graded(course, school, timer)

    verdict, line = line_of(result, "ada")
    assert line is not None and line.summary.startswith("1.00 × the reference's (1.00 to 1.00 from 12 turns")
    assert verdict.passed and verdict.points == 4

    verdict, line = line_of(result, "bob")
    assert line is not None and line.points == pytest.approx(
        np.log2(2 / 3 / 0.8), abs=0.01
    )  # 3 sectors, not 2
    assert "where 0.8 is asked for" in line.reason
    assert verdict.points == pytest.approx(4 + line.points, abs=0.01)

    verdict, line = line_of(result, "cyd")
    assert line is not None and line.points == -1 and "on the GPU" in line.reason and verdict.points == 3

    assert line_of(result, "dan")[1] is None  # what did not pass is not timed
    assert (timer.timed, timer.most) == (3, 1)
    assert len({a.tobytes() for a, _ in timer.given}) == len(timer.given)  # contents of every turn are new
    assert not any(np.isin(a, b).any() for a, b in timer.given)  # and none of the results is given along

    with Gradebook(course.db_url) as book:
        scores = {s: book.find_submission_notebook(LAB, LAB, s).score for s in ("ada", "bob", "cyd")}
    assert scores["ada"] - scores["cyd"] == pytest.approx(1)
    page = (course.feedback / "ada" / LAB / f"{LAB}.html").read_text()
    assert "1.00 × the reference" in page

    assert {task.known for tasks in graded(course, school, timer).tasks.values() for task in tasks} == {True}
    assert timer.timed == 3
    (task,) = result.tasks["ada"]
    assert task.verdict is not None
    assert stage.mark(task.verdict, timer) == task.verdict.timed
    assert stage.mark(task.verdict, SimulatedTimer(driver="newer")) != task.verdict.timed


def test_noise_costs_nothing_and_asks_for_a_person(course: Course, school: Class) -> None:
    noise = np.random.default_rng(1)
    school.hand_in("ada")
    before = classroom.grade(course, LAB, school.folder, limits=LIMITS, unsafe=True)
    timer = SimulatedTimer(chance=lambda: float(noise.uniform(1, 4)))
    quick = Settings(warm_up=1, fewest=3, most=5)
    judge = classroom.Judge(b"secret", LIMITS, unsafe=True)
    stage.time_class(
        course,
        before.lab,
        before.tasks["ada"],
        judge,
        [timer],
        classroom.Store(course.verdicts),
        settings=quick,
    )
    classroom.save(course, before, lambda student: None)

    verdict, line = line_of(before, "ada")
    assert line is not None and line.points == 0 and "vary too much" in line.summary
    assert "a person will look at it" in line.summary and verdict.doubt
    with Gradebook(course.db_url) as book:
        grade = book.find_grade("copy-check", LAB, LAB, "ada")
        assert grade.needs_manual_grade and grade.auto_score == 4
    assert next(csv.DictReader(course.grades.open()))["state"] == "2 answers wait"


def verdict_with(timing: Timing, wanted: Speed) -> tuple[ExerciseVerdict, str]:
    right = ExerciseVerdict("memory.copy", "copy-check", (Line("right", 4.0, 4.0, "all"),))
    found = stage.with_speed(right, timing, wanted, "NVIDIA X")
    assert stage.with_speed(found, timing, wanted, "NVIDIA X") == found  # a second timing replaces the first
    return found, as_text(found, NotebookVerdict("", "", (found,)))


FREE = Speed((), lambda s: 0)


def test_the_lower_end_of_the_interval_is_what_counts() -> None:
    timing = Timing("measured", "", Interval(0.4, 0.9, 0.95), 12)
    found, text = verdict_with(timing, replace(FREE, costs=2.0))
    assert found.points == 2 and "the lower end counts: 0.40" in text


@pytest.mark.parametrize(
    "timing",
    [
        Timing("measured", "", Interval(0.1, 0.1, 0.1), 12),
        Timing("wrong", "a[0] is 1"),
        Timing("unclear", "noise"),
    ],
)
def test_without_a_word_of_the_course_nothing_is_lost(timing: Timing) -> None:
    found, text = verdict_with(timing, FREE)
    assert found.passed and not found.doubt
    assert "no points hang on it" in " ".join(text.split())


def test_a_gpu_without_a_data_sheet_times_nothing() -> None:
    found = stage.time_exercise(
        "memory.copy", {}, {}, lambda case, turn: 0, classroom.Judge(b"", LIMITS), SimulatedTimer("GPU of tomorrow")
    )  # fmt: skip
    assert found.state == "unclear" and "no data sheet of GPU of tomorrow" in found.why


def test_a_lab_in_which_nothing_is_timed_says_so(
    course: Course, school: Class, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "SPEEDS", {})
    school.hand_in_stub("ada")
    with pytest.raises(GradingError, match=r"speeds\.py lists"):
        graded(course, school, SimulatedTimer())


def test_one_gpu_is_used_by_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gpu = Gpu(0, "A100", "", (8, 0), "0000:01:00.0")
    with gpu.alone():
        (lock,) = tmp_path.glob("gpulab-gpu-*.lock")
        with lock.open() as file, pytest.raises(BlockingIOError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_without_a_gpu_the_command_says_so_in_one_line(
    course: Course, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert __main__.main(["grade", LAB, "--gpu"], course) == 1
    assert "--gpu: no NVIDIA GPU" in capsys.readouterr().out


@pytest.mark.gpu
def test_a_real_gpu_times_the_solution_as_fast_as_itself(
    course: Course, school: Class, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = replace(speeds.SPEEDS["memory.transpose"], costs=1.0)
    monkeypatch.setattr(stage, "SPEEDS", {"memory.transpose": wanted})
    school.hand_in("ada")
    result = graded(course, school, *gpus()[:1])
    (task,) = result.tasks["ada"]
    assert task.verdict is not None
    verdict = next(v for v in task.verdict.exercises if v.exercise == "memory.transpose")
    assert verdict.lines[-1].label == texts.SPEED and "× the reference's" in verdict.lines[-1].summary
    assert verdict.passed
