"""Proofs of a lab: stubs fail with a message, solutions pass, wrong files fail as they say.

All variants of a notebook are recorded in one process, without a sandbox, because they are ours, and replayed
in this one. Wrong files are judged at the public cases on the public contents, as learners would see it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jupytext
from nbformat import NotebookNode

from gpulab.checks import cases as contents
from gpulab.checks.spec import Case
from grading.authoring.release import released_notebook
from grading.core import sandbox, texts
from grading.core.course import Course, sources
from grading.core.environment import seed
from grading.core.errors import ReleaseError
from grading.core.judge import exercise_step, job_bytes, judge_cases, live, steps_of
from grading.core.notebooks import Question, questions
from grading.core.replay import ReplayJob, exercise_of, verdicts
from grading.core.sandbox import Limits
from grading.core.verdicts import ExerciseVerdict
from grading.lms.preprocessors import StableIds

HEADER = re.compile(r"# exercise: (?P<exercise>\S+)(?:  fails: (?P<fails>.+?))?(?:  says: (?P<says>.+))?")
# By the clock, so they only end what hangs: on a busy machine a step may take ten times as long.
LIMITS = Limits.of(3600)
TOLERANCE = 0.5  # of the exercises': a solution passes with margin


@dataclass(frozen=True)
class Wrong:
    """A wrong submission: the exercise that it answers, the labels that it misses, what the verdict says."""

    path: Path
    exercise: str
    fails: str
    says: str

    @property
    def source(self) -> str:
        return self.path.read_text(encoding="utf-8")


@dataclass(frozen=True)
class Proof:
    """One row of the table: what was tried, and what is wrong with the outcome (nothing, if all is well)."""

    exercise: str
    variant: str
    verdict: ExerciseVerdict
    problem: str = ""


def wrong_file(path: Path) -> Wrong:
    """A wrong submission, by what its first line says. Raises ReleaseError for one that cannot be read."""
    first = path.read_text(encoding="utf-8").partition("\n")[0].rstrip()
    match = HEADER.fullmatch(first)
    if match is None:
        raise ReleaseError(
            f"wrong/{path.name}: line 1 must read '# exercise: NAME  fails: LABEL  says: WORDS'"
        )
    return Wrong(path, match["exercise"], match["fails"] or "", match["says"] or "")


def wrong_files(folder: Path) -> list[Wrong]:
    """The named wrong submissions of a lab. Raises ReleaseError as `wrong_file` does."""
    return [wrong_file(path) for path in sorted((folder / "wrong").glob("*.py"))]


def prove(course: Course, lab: str) -> list[Proof]:
    """All proofs of a lab, in the order of its exercises."""
    notebooks = {source: released_notebook(source) for source in sources(course.solutions / lab)}
    wrong = wrong_files(course.solutions / lab)
    asked = {q.exercise for notebook in notebooks.values() for q in questions(notebook)}
    strangers = [f"wrong/{w.path.name} is for {w.exercise}" for w in wrong if w.exercise not in asked]
    if strangers:
        raise ReleaseError(f"{lab}: {'; '.join(strangers)}, which the lab does not ask")
    return [
        proof for source, released in notebooks.items() for proof in _prove_notebook(source, released, wrong)
    ]


def _prove_notebook(source: Path, released: NotebookNode, wrong: list[Wrong]) -> list[Proof]:
    solved, _ = StableIds()(jupytext.read(source), {"unique_key": source.stem})
    asked = questions(released)
    _check_points(source, asked)
    job, variants = _job(released, solved, asked, wrong)
    outcome = sandbox.record(job_bytes(job), LIMITS, unsafe=True)
    chosen = {v.question.exercise: v.cases for v in variants}
    seeds = {(v.question.exercise, case.name): v.seed(case) for v in variants for case in v.cases}
    asked_here = tuple(v.question for v in variants)
    replayed = ReplayJob(
        outcome.content,
        "" if outcome.end == "done" else f"the recording {outcome.end} {outcome.how}".strip(),
        asked_here,
        chosen,
        seeds,
        {step["cell"]: step["source"] for step in job["steps"] if "source" in step},
        {},
        live(job["steps"], asked_here, chosen, seeds, LIMITS, unsafe=True),
        TOLERANCE,
    )
    order = [q.exercise for q in asked]
    found = [v.proof(verdict) for v, verdict in zip(variants, verdicts(replayed), strict=True)]
    return sorted(found, key=lambda proof: order.index(proof.exercise))


def _check_points(source: Path, asked: tuple[Question, ...]) -> None:
    for question in asked:
        exercise = exercise_of(question.exercise)
        if abs(exercise.points - question.points) > 1e-9:
            raise ReleaseError(
                f"{source.name}: test cell '{question.cell}' has {question.points:g} points, "
                f"but {exercise.name} has {exercise.points:g}"
            )


@dataclass(frozen=True)
class _Variant:
    """One answer to one exercise: stub, solution (at the judge's or the public cases), or a wrong file."""

    question: Question  # under the name of the variant
    cases: tuple[Case, ...]
    wrong: Wrong | None = None

    @property
    def name(self) -> str:
        return self.question.exercise.partition("@")[2]

    def seed(self, case: Case) -> int:
        if self.name == "solution":
            return seed(b"proof", "solution", self.question.exercise, case.name)
        return contents.PUBLIC_SEED

    def proof(self, verdict: ExerciseVerdict) -> Proof:
        exercise = self.question.exercise.partition("@")[0]
        return Proof(exercise, self.name, replace(verdict, exercise=exercise), self._problem(verdict))

    def _problem(self, verdict: ExerciseVerdict) -> str:
        text = " ".join(f"{line.label} {line.summary} {line.reason}" for line in verdict.lines)
        missed = [line.label for line in verdict.lines if line.short]
        if self.name in ("solution", "public"):
            return "" if verdict.passed else f"does not pass: {verdict.reason}"
        if self.wrong is None:
            said = verdict.reason and "Traceback" not in text
            return (
                ("" if said else "fails without a message")
                if not verdict.points
                else "earns points as released"
            )
        if not missed:
            return "passes"
        if self.wrong.fails and ", ".join(missed) != self.wrong.fails:
            return f"fails {', '.join(missed)} instead of {self.wrong.fails}: {verdict.reason}"
        if self.wrong.says.lower() not in " ".join(text.lower().split()):
            return f"does not say '{self.wrong.says}': {texts.clean(text)}"
        return ""


def _job(
    released: NotebookNode, solved: NotebookNode, asked: tuple[Question, ...], wrong: list[Wrong]
) -> tuple[dict[str, Any], list[_Variant]]:
    """One recording of all variants: the stubs, then the solutions, each followed by its wrong answers."""
    steps: list[dict[str, Any]] = []
    variants: list[_Variant] = []
    by_cell = {q.cell: q for q in asked}

    def record(question: Question, name: str, chosen: tuple[Case, ...], why: Wrong | None = None) -> None:
        variant = _Variant(replace(question, exercise=f"{question.exercise}@{name}"), chosen, why)
        variants.append(variant)
        exercise = exercise_of(question.exercise)
        steps.append(exercise_step(variant.question, exercise, chosen, map(variant.seed, chosen)))

    for step in steps_of(released):
        if "cell" in step:
            steps.append({**step, "cell": f"{step['cell']}@stub"})
        else:
            question = by_cell[step["test"]]
            record(question, "stub", exercise_of(question.exercise).cases)
    since: list[dict[str, Any]] = []  # the cells since the last test, which undo a wrong answer
    for step in steps_of(solved):
        if "cell" in step:
            steps.append(step)
            since.append(step)
            continue
        question = by_cell[step["test"]]
        exercise = exercise_of(question.exercise)
        record(question, "solution", judge_cases(exercise))
        record(question, "public", exercise.cases)
        for each in (w for w in wrong if w.exercise == question.exercise):
            steps.append({"cell": f"wrong/{each.path.name}", "source": each.source})
            record(question, each.path.stem, exercise.cases, each)
            steps += since
        since = []
    return {"patience": LIMITS.patience, "steps": steps}, variants
