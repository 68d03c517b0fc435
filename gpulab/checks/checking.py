"""`gpulab.check`: is it right, does it stay right when warps run in another order, and what does it cost?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gpulab.analysis.profile.onto_simulator import onto_simulator
from gpulab.foundation.errors import Message
from gpulab.simulator import compile
from gpulab.simulator import device as devices

from . import (
    answers,
    artefacts,
    communication,
    dialogues,
    launching,
    messages,
    programs,
    progress,
    registry,
    traces,
)
from .need import is_empty
from .run import GPU, name_of, reference_device
from .spec import Exercise
from .verdict import Detail, Part, Verdict, no_points


class Stopped(Message):
    """The learner stopped a check; nothing was recorded."""


def check(exercise: str | Exercise, fn: Callable[..., Any], attempt: bool = True) -> Verdict:
    """Check a learner's function against an exercise: ``gpulab.check("basics.saxpy", saxpy)``.

    ``attempt=False`` is for a function that the lab gives: nothing is recorded. Nor is a check of one that is
    still as the lab left it.

    Returns a verdict that shows itself. Whatever the function does wrong, raises or breaks is said in the
    verdict. Raises UnknownExercise for a name that does not exist, NoReference where the expected results
    are not installed, Stopped on Ctrl-C; then nothing is recorded.
    """
    exercise = exercise if isinstance(exercise, Exercise) else registry.find(exercise)
    reference = registry.reference(exercise.name)
    try:
        parts = examine(exercise, fn, reference)
    except KeyboardInterrupt:
        raise Stopped(messages.interrupted(exercise.name)) from None
    verdict = Verdict(exercise.name, parts, device=f"{GPU} simulated", compiler=_counted_with(exercise))
    said = parts[0].details[0].text if parts[0].details else ""
    if said == messages.empty(name_of(fn)) or (said == messages.not_written(name_of(fn)) and is_empty(fn)):
        return replace(verdict, notes=(messages.nothing_to_count(exercise.name),))
    return record(exercise, verdict) if attempt else replace(verdict, notes=(messages.not_counted(),))


def _counted_with(exercise: Exercise) -> str:
    if exercise.evidence in ("tensor graph", "communication"):
        return programs.version()
    return compile.compiler_version()


def examine(exercise: Exercise, fn: Any, reference: registry.Reference) -> tuple[Part, ...]:
    """The parts of a verdict. Records nothing."""
    if problem := hand_in_problem(exercise, fn):
        return no_points(exercise, messages.not_checked(), (Detail(problem),))
    if exercise.evidence == "answered cases":
        return answers.examine(exercise, fn, reference)
    if exercise.evidence == "tensor graph":
        return programs.examine(exercise, fn, reference)
    if exercise.evidence == "communication":
        return communication.examine(exercise, fn, reference)
    if exercise.evidence == "artefact":
        return artefacts.examine(exercise, fn, reference)
    if exercise.evidence == "dialogue":
        return dialogues.examine(exercise, fn, reference)
    if devices.uses_gpu():
        fn = onto_simulator(fn)
    with reference_device():
        return traces.examine(exercise, fn, reference)


def hand_in_problem(exercise: Exercise, fn: Any) -> str:
    """What is wrong with the thing itself that was handed in; empty if it can be run."""
    if hasattr(fn, "griddim"):  # kernel[grid, block]
        return messages.launched_already(exercise.name)
    if not callable(fn):
        return messages.not_a_function(
            exercise.name, messages.a(type(fn).__name__) if fn is not None else "None"
        )
    kernel, name = launching.is_kernel(fn), name_of(fn)
    if exercise.evidence != "launch trace":
        return messages.a_kernel_for_answers(name) if kernel else ""
    if exercise.shape is not None:
        return "" if kernel else messages.not_a_kernel(name, exercise.face)
    return messages.a_kernel(name, exercise.face) if kernel else ""


def record(exercise: Exercise, verdict: Verdict) -> Verdict:
    """Count the attempt, keep the best, and say at the foot what to do next."""
    with progress.change() as data:
        mine = progress.of_exercise(data, exercise.name)
        mine["attempts"] += 1
        verdict = replace(verdict, attempt=mine["attempts"])
        mine["failed"] += not verdict.passed
        mine["passed"] = mine["passed"] or verdict.passed
        mine["best"] = max(mine["best"], verdict.points)
        mine["last"] = verdict.to_dict()
        attempt, hints_shown = verdict.attempt, mine["hints"]
    if verdict.passed:
        lab = registry.of_lab(exercise.lab)
        done = progress.done(tuple(e.name for e in lab))
        notes = [messages.passed(attempt, registry.lab_number(exercise.lab), done, len(lab))]
    else:
        left = any(exercise.hints) and hints_shown < len(exercise.hints)
        notes = [messages.attempt(attempt, exercise.name, left, hints_shown)]
    if not progress.saved():
        notes.append(messages.not_saved(str(progress.place())))
    return replace(verdict, notes=tuple(notes))
