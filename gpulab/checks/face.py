"""Verbs of a notebook that show at once: of several in one cell all must be seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpulab.foundation.display import notebook, present

from . import checking, hints, predictions, showing, unread, watching
from .hints import Hint
from .spec import Exercise
from .verdict import Verdict

if TYPE_CHECKING:
    from gpulab.analysis.tracer import Trace


def check(exercise: str | Exercise, fn: Callable[..., Any], attempt: bool = True) -> Verdict:
    """Check a learner's function against an exercise: ``gpulab.check("basics.saxpy", saxpy)``.

    A notebook shows the verdict at once, once, wherever the call stands in its cell. ``attempt=False`` is for
    a function that the lab gives: nothing is recorded. Whatever the function does wrong, raises or breaks is
    said in the verdict. Raises UnknownExercise for a name that does not exist, NoReference where the expected
    results are not installed, Stopped on Ctrl-C; then nothing is recorded.
    """
    verdict = checking.check(exercise, fn, attempt)
    if notebook() is not None:
        if attempt and (said := unread.warning(fn)):
            verdict = replace(verdict, notes=(said, *verdict.notes))
        present(verdict)
    return verdict


def watch() -> Trace:
    """Step through the thread at which the last failed check went wrong: ``gpulab.watch()``.

    A notebook shows a figure to step through, once, wherever the call stands in its cell. Raises
    NothingToWatch where the last check did not fail at a thread, CannotTrace where its kernel cannot be
    stepped through.
    """
    trace = watching.watch()
    if notebook() is not None:
        present(trace)
    return trace


def hint(name: str) -> Hint:
    """The hints of an exercise: the first at once, each later one after another failed check.

    A notebook shows them at once. After the last one the next call names the section to read again; so does
    any call once the exercise is passed, with all steps. Raises UnknownExercise.
    """
    steps = hints.hint(name)
    if notebook() is not None:
        present(steps)
    return steps


def predict(name: str, value: Any = None, *, measured: float | None = None) -> None:
    """Write a number down before the run: ``gpulab.predict("memory.column", 32)``.

    ``gpulab.predict("memory.column", measured=…)`` sets the run's own number beside it. Kept with the
    progress, never graded. Raises NotAPrediction for what is no finite number; ``...`` stands for a number
    still to be written.
    """
    present(predictions.predict(name, value, measured=measured))


def show(
    what: Any, *args: Any, view: str = "", line: int | None = None, save: str | Path | None = None
) -> None:
    """Draw what a run does to memory, from the run's own record.

    ``show(report)`` draws what `gpulab.profile` recorded, ``show(kernel[grid, block], *args)`` runs and
    draws, ``show("memory.copy", copy)`` runs an exercise at a size that can be drawn. `view` asks for one
    kind of picture: ``accesses``, ``banks``, ``lanes``, ``divergence`` or ``threads``; `line` for those of
    one source line. `save` also writes them: ``x.png`` (several: ``x-2.png`` …), or ``x.html`` with all of
    them. Raises CannotShow, in one line.
    """
    pictures = showing.pictures(what, *args, view=view, line=line)
    if save is not None:
        showing.save(pictures, save)
    for picture in pictures:
        present(picture)
