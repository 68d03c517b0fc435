"""`gpulab.check`: is it right, does it stay right when warps run in another order, and what does it cost?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gpulab.foundation.display import notebook
from gpulab.foundation.errors import Message
from gpulab.simulator import compile

from . import kernel_prints, launching, messages, notebook_parts, progress, registry, watching
from .parts import Detail, Part, Unwritten
from .run import name_of
from .spec import Answer, Exercise
from .verdict import Verdict, no_points


class Stopped(Message):
    """The learner stopped a check; nothing was recorded."""


def check(exercise: str | Exercise, fn: Callable[..., Any], attempt: bool = True) -> Verdict:
    """Check a learner's function against an exercise and return the verdict. `gpulab.check` also shows it.

    `exercise` is an exercise or its name, `fn` the kernel or function. With ``attempt=False``, which suits
    functions that the lab hands out, nothing is recorded. Nor is anything recorded while `fn` is still as the
    lab left it. Whatever `fn` does wrong, raises or breaks is part of the verdict.

    Raises UnknownExercise for a name that does not exist, NoReference where the expected results are not
    installed, and Stopped on Ctrl-C; nothing is recorded then.

    >>> @cuda.jit
    ... def double(a, out):
    ...     i = cuda.grid(1)
    ...     if i < a.size:
    ...         out[i] = a[i]  # not doubled
    >>> check("start.double", double, attempt=False).parts[0].state
    'fail'
    """
    exercise = exercise if isinstance(exercise, Exercise) else registry.find(exercise)
    reference = registry.reference(exercise.name)
    try:
        with kernel_prints.limited() as printed:
            parts = examine(Answer(exercise, fn, reference))
    except KeyboardInterrupt:
        raise Stopped(messages.interrupted(exercise.name)) from None
    watching.remember(Answer(exercise, fn, reference), parts)
    compiler = exercise.evidence.counted_with() or compile.compiler_version()
    verdict = Verdict(exercise.name, parts, device=f"{exercise.gpu} simulated", compiler=compiler)
    if any(isinstance(detail, Unwritten) for detail in parts[0].details[:1]):
        return replace(verdict, notes=(messages.nothing_to_count(exercise.name),))
    verdict = record(exercise, verdict) if attempt else replace(verdict, notes=(messages.not_counted(),))
    if printed.left_out:
        verdict = replace(verdict, notes=(*verdict.notes, messages.prints_left_out(printed.left_out)))
    return verdict


def examine(answer: Answer) -> tuple[Part, ...]:
    """The parts of a verdict. Records nothing."""
    if problem := hand_in_problem(answer.exercise, answer.fn):
        return no_points(answer.exercise, messages.not_checked(), (Detail(problem),))
    return answer.exercise.evidence.examine(answer)


def hand_in_problem(exercise: Exercise, fn: Any) -> str:
    """What is wrong with the thing itself that was handed in; empty if it can be run."""
    if hasattr(fn, "griddim"):  # kernel[grid, block]
        return messages.launched_already(exercise.name)
    if not callable(fn):
        return messages.not_a_function(
            exercise.name, messages.a(type(fn).__name__) if fn is not None else "None"
        )
    if launching.is_kernel(fn) and not exercise.evidence.launches:
        return messages.a_kernel_for_answers(name_of(fn))
    return exercise.evidence.problem(exercise, fn)


def record(exercise: Exercise, verdict: Verdict) -> Verdict:
    """Count the attempt, keep the best, and say at the foot what to do next."""
    with progress.change() as data:
        mine = progress.of_exercise(data, exercise.name)
        mine["attempts"] += 1
        before = bool(mine["passed"])
        verdict = replace(verdict, attempt=mine["attempts"])
        mine["failed"] += not verdict.passed
        mine["passed"] = mine["passed"] or verdict.passed
        mine["best"] = max(mine["best"], verdict.points)
        mine["last"] = verdict.to_dict()
        attempt, hints_shown = verdict.attempt, mine["hints"]
    lab = registry.of_lab(exercise.lab)
    if notebook() is not None:
        progress.remember(registry.lab_number(exercise.lab), tuple(e.name for e in lab))
    if verdict.passed:
        done = progress.done(tuple(e.name for e in lab))
        notes = [
            messages.passed(attempt, registry.lab_number(exercise.lab), done, len(lab)),
            *_part_done(exercise),
        ]
    else:
        left = any(exercise.hints) and hints_shown < len(exercise.hints)
        notes = [messages.attempt(attempt, exercise.name, left, hints_shown)]
        notes += [messages.passed_before()] if before else []
    if not progress.saved():
        notes.append(messages.not_saved(str(progress.place())))
    return replace(verdict, notes=tuple(notes))


def _part_done(exercise: Exercise) -> list[str]:
    """A sentence once all exercises of this notebook are passed: what is done, and what waits in the next."""
    here = notebook_parts.running()
    if (
        here is None
        or exercise.name not in here.exercises
        or progress.done(here.exercises) < len(here.exercises)
    ):
        return []
    later = notebook_parts.following(here)
    waiting = len(later.exercises) - progress.done(later.exercises) if later else 0
    if later is None or not waiting:
        return [messages.part_done(len(here.exercises))]
    return [
        messages.part_done(len(here.exercises)),
        messages.part_waits(later.title, later.path.name, waiting),
    ]
