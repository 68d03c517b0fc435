"""Exercises whose function asks back: what the judge finds out, live, about honest ones and those that cheat."""

from __future__ import annotations

import inspect
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from gpulab.checks import Case, Exercise, registry
from grading.core import dialogues, sandbox
from grading.core.judge import asked_together, exercise_step, job_bytes
from grading.core.notebooks import Question
from grading.core.ranks import Asked
from grading.core.replay import ReplayJob, verdicts
from grading.core.sandbox import Limits
from grading.core.verdicts import ExerciseVerdict
from tests.checks import guessing
from tests.checks.guessing import DRAW, GUESS, draw_reference, guess_reference

pytestmark = pytest.mark.usefixtures("needs_sandbox")
LIMITS = Limits(seconds=100, patience=2)
SEED = 77
IMPORTS = "import os, sys, time, random, signal"
HALVES = inspect.getsource(guessing.halves)
WITHOUT = inspect.getsource(guessing.without)


class Played:
    """Answers to exercises, each under a name of its own."""

    def __init__(self, answers: dict[str, tuple[Exercise, str, str]], unsafe: bool = False) -> None:
        self.asked = {
            name: Question("check", f"{exercise.name}@{name}", function, 0)
            for name, (exercise, function, _) in answers.items()
        }
        self.chosen = {self.asked[n].exercise: e.cases for n, (e, *_) in answers.items()}
        self.seeds = {(name, case.name): SEED for name, cases in self.chosen.items() for case in cases}
        steps: list[dict[str, Any]] = [{"cell": "imports", "source": IMPORTS}]
        for name, (exercise, _, source) in answers.items():
            steps.append({"cell": name, "source": source})
            numbers = [SEED] * len(exercise.cases)
            steps.append(exercise_step(self.asked[name], exercise, exercise.cases, numbers))
        self.sources = {step["cell"]: step["source"] for step in steps if "source" in step}
        asked = asked_together(self.asked.values(), self.chosen, self.seeds, "dialogue")
        self.outcomes = dialogues.outcomes(steps, asked, job_bytes, LIMITS, unsafe=unsafe, apart=False)

    def verdict(self, name: str) -> ExerciseVerdict:
        question = (self.asked[name],)
        job = ReplayJob(b"", "", question, self.chosen, self.seeds, self.sources, {}, self.outcomes)
        return next(iter(verdicts(job)))


def text(verdict: ExerciseVerdict) -> str:
    return " ".join(" ".join(f"{x.label}: {x.summary} {x.reason}" for x in verdict.lines).split())


def cheat(body: str) -> tuple[Exercise, str, str]:
    return (
        GUESS,
        "cheat",
        f"{HALVES}\n\ndef cheat(is_below, high):\n    {body}\n    return halves(is_below, high)\n",
    )


WIRE = (
    "import socket, struct, gc; "
    "wire = [x for x in gc.get_objects() if type(x) is socket.socket and x.fileno() > 2][0]; "
)
# By name: the exercise, the function that is asked for, its cell; and words of the verdict.
ANSWERS: dict[str, tuple[tuple[Exercise, str, str], str]] = {
    "one by one": ((GUESS, "one_by_one", inspect.getsource(guessing.one_by_one)), "questions · budget 10"),
    "draws again": (
        (DRAW, "again_until_another", inspect.getsource(guessing.again_until_another)),
        "again_until_another(choose, [0.5, 0.25, 0.25])`: it gives [0, 0] with probability 0.0625",
    ),
    "not normalised": ((DRAW, "not_normalised", inspect.getsource(guessing.not_normalised)), "sum to 0.5"),
    "chance of its own": (
        (DRAW, "own", "def own(choose, weights):\n    x = random.random()\n    return [choose([x, 1 - x]), 2]"),
        "draws from other probabilities",
    ),
    "stub": ((GUESS, "guess", "def guess(is_below, high):\n    raise NotImplementedError()"), "not answered"),
    "missing": ((GUESS, "nothing_of_this_name", ""), "`nothing_of_this_name` is not defined"),
    "fails": (
        (GUESS, "fails", "def fails(is_below, high):\n    return [][high]"),
        "IndexError in line 2: list index out of range line 2: return [][high]",
    ),
    "never asks": ((GUESS, "never", "def never(is_below, high):\n    return 3"), "it finds 3, should be"),
    "asks without end": (cheat("while True: is_below(1)"), "more than 2,000 times"),
    "asks what is no question": (cheat("is_below([[]] * 50)"), "which is no whole number"),
    "catches all": (
        cheat("\n    for _ in range(5):\n        try: is_below('x')\n        except BaseException: pass"),
        "it asks `is_below('x')`",
    ),
    "no such function": (
        cheat(
            "import gpulab.checks.dialogue_member as m; p = is_below.__closure__;"
            " r = [c.cell_contents for c in p if callable(c.cell_contents)][0]; r(7, [1])"
        ),
        "not of the form that is asked for",
    ),
    "patches who counts": (
        (
            GUESS,
            "cheat",
            "import gpulab.checks.evidence.dialogue as d, gpulab.checks.budgets as b, gpulab.checks.branches as n\n"
            "d.examine = d.hold = b.keep_worst = n.compare = lambda *a, **k: None\n"
            + inspect.getsource(guessing.one_by_one).replace("one_by_one", "cheat"),
        ),
        "questions · budget 10",
    ),
    "looks for the number": (
        cheat(
            "\n    import gc\n    from gpulab.checks import cases, registry\n"
            "    exercise = type('E', (), {'name': 'toy.guess'})\n"
            "    from gpulab.checks.spec import Case\n"
            "    n = cases.generator(exercise, Case('up to 8', {}), cases.PUBLIC_SEED).integers(0, high, 3)[0]\n"
            "    return int(n) if high == 8 else halves(is_below, high)"
        ),
        "it finds ",
    ),
    "answers beforehand": (
        cheat(WIRE + "t = b'{\"op\":\"answer\",\"value\":0}'; wire.sendall(struct.pack('!IQ', len(t), 0) + t)"),
        "it finds 0, should be",
    ),
    "talks much": (cheat("print('x' * 10**6, flush=True); os.write(2, b'y' * 10**6)"), ""),
    "an answer without end": (
        (GUESS, "long", "def long(is_below, high):\n    return ['x' * 1000] * 1000"),
        "BadFrame",
    ),
}  # fmt: skip

# After these the sandbox is started anew.
ENDS: dict[str, tuple[tuple[Exercise, str, str], str]] = {
    "hangs": (cheat("while True: pass"), "no answer after 2 s"),
    "sleeps through an end": (
        cheat("\n    try: is_below('x')\n    except BaseException: time.sleep(50)"),
        "it asks `is_below('x')`",
    ),
    "dies": (cheat("os._exit(0)"), "ended before it had answered"),
    "garbage": (cheat(WIRE + "wire.sendall(b'\\xff' * 40)"), "has not the form of calls and answers"),
    "raw bytes": (
        cheat(WIRE + "t = b'{\"op\":\"answer\"}'; wire.sendall(struct.pack('!IQ', len(t), 9) + t + b'x' * 9)"),
        "has not the form of calls and answers",
    ),
    "an op of its own": (
        cheat(WIRE + "t = b'{\"op\":\"counts\",\"questions\":0}'; wire.sendall(struct.pack('!IQ', len(t), 0) + t)"),
        "has not the form of calls and answers",
    ),
    "drips": (
        cheat(WIRE + "\n    while True: wire.sendall(b'\\x00'); time.sleep(0.2)"),
        "no answer after 2 s",
    ),
}  # fmt: skip


def played(answers: dict[str, tuple[tuple[Exercise, str, str], str]]) -> Iterator[Played]:
    if why := sandbox.obstacle():
        pytest.skip(why)
    registry.add(GUESS, guess_reference)
    registry.add(DRAW, draw_reference)
    given = {name: answer for name, (answer, _) in answers.items()}
    honest = {"halves": (GUESS, "halves", HALVES), "without": (DRAW, "without", WITHOUT)}
    again = {f"{name} again": answer for name, answer in honest.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gpulab.checks.evidence.dialogue.MOST_CALLS", 2000)
        patch.setattr(dialogues, "GRACE", 1.0)
        found = Played({**honest, **given, **again})
    yield found
    registry.remove(GUESS.name)
    registry.remove(DRAW.name)


@pytest.fixture(scope="module")
def lasting() -> Iterator[Played]:
    yield from played(ANSWERS)


@pytest.fixture(scope="module")
def ending() -> Iterator[Played]:
    yield from played(ENDS)


def test_honest_answers_pass_also_after_all_others(lasting: Played) -> None:
    for name in ("halves", "without", "halves again", "without again", "talks much"):
        found = lasting.verdict(name)
        assert found.passed, (name, text(found))


@pytest.mark.parametrize("name", [n for n, (_, words) in ANSWERS.items() if words])
def test_each_gets_what_it_deserves_with_the_reason(lasting: Played, name: str) -> None:
    found = lasting.verdict(name)
    assert ANSWERS[name][1] in text(found), text(found)
    assert not found.passed and not found.ungraded
    assert (found.lines[0].points == 1.0) == ("budget" in ANSWERS[name][1])


def test_what_ends_or_hangs_costs_its_own_exercise_only(ending: Played) -> None:
    for name, (_, words) in ENDS.items():
        found = ending.verdict(name)
        assert found.points == 0 and words in text(found), (name, text(found))
    for name in ("halves", "without", "halves again", "without again"):
        assert ending.verdict(name).passed, (name, text(ending.verdict(name)))
    assert not sandbox._running


def test_once_the_judge_is_stopped_no_sandbox_is_started() -> None:
    question = Question("check", GUESS.name, "halves", 0)
    chosen, seeds = {GUESS.name: GUESS.cases}, {(GUESS.name, c.name): 1 for c in GUESS.cases}
    registry.add(GUESS, guess_reference)
    try:
        asked = asked_together([question], chosen, seeds, "dialogue")
    finally:
        registry.remove(GUESS.name)
    assert len(asked) == 1 and asked[0].cases == GUESS.cases
    step = exercise_step(question, GUESS, GUESS.cases, [1, 1])
    assert step["cases"] == [{"name": c.name} for c in GUESS.cases], "no number leaves"
    assert dialogues.outcomes([step], asked, job_bytes, LIMITS, stopped=lambda: True) == {}


@pytest.mark.parametrize(("seconds", "words"), [(20.0, "no answer after 2 s"), (0.01, "no result after 0 s")])
def test_a_reference_works_in_a_child_that_is_ended_with_its_limit(seconds: float, words: str) -> None:
    exercise = registry.find("decode.generate")
    asked = Asked("decode.generate@mine", exercise, exercise.cases[:1], (SEED,))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        limits = replace(LIMITS, seconds=seconds)
        found, goes_on = dialogues._held_apart(asked, ours, time.monotonic() + 2, limits)
    (outcome,) = found.values()
    assert found.keys() == {("decode.generate@mine", exercise.cases[0].name)} and not goes_on
    assert outcome.trouble is not None and outcome.trouble.kind == "too long"
    assert words in outcome.trouble.text


def test_nothing_of_a_question_stands_in_the_job_that_a_sandbox_gets() -> None:
    case = Case("secret 123456", {"high": 123457})
    assert "123457" not in str(exercise_step(Question("c", GUESS.name, "f", 0), GUESS, (case,), [9]))
