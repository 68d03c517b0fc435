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
    """Check a learner's function against an exercise, and show the verdict.

    `exercise` is a name such as ``"start.double"``, `fn` the kernel or function. With ``attempt=False``
    nothing is recorded, which suits functions that the lab hands out. A notebook shows the verdict once,
    wherever in its cell the call is. Whatever `fn` does wrong, raises or breaks is part of the verdict.

    Raises UnknownExercise for a name that does not exist, NoReference where the expected results are not
    installed, and Stopped on Ctrl-C; nothing is recorded then.

    >>> @cuda.jit
    ... def double(a, out):
    ...     i = cuda.grid(1)
    ...     if i < a.size:
    ...         out[i] = a[i]  # not doubled
    >>> gpulab.check("start.double", double, attempt=False).points
    0.0
    """
    verdict = checking.check(exercise, fn, attempt)
    if notebook() is not None:
        if attempt and (said := unread.warning(fn)):
            verdict = replace(verdict, notes=(said, *verdict.notes))
        present(verdict)
    return verdict


def watch() -> Trace:
    """Step through the thread at which the last failed check went wrong.

    A notebook shows a figure to step through, once, wherever in its cell the call is. Raises NothingToWatch
    where the last check did not fail at a thread, CannotTrace where its kernel cannot be stepped through.

    >>> figure = gpulab.watch()  # doctest: +SKIP
    """
    trace = watching.watch()
    if notebook() is not None:
        present(trace)
    return trace


def hint(name: str) -> Hint:
    """Show the hints of the exercise called `name`: the first at once, and one more after each failed check.

    After the last hint, the next call names the section to read again. Once the exercise is passed, all hints
    are shown. Raises UnknownExercise.

    >>> hints = gpulab.hint("start.double")
    """
    steps = hints.hint(name)
    if notebook() is not None:
        present(steps)
    return steps


def predict(name: str, value: Any = None, *, measured: float | None = None) -> None:
    """Write a number down before the run, and set the run's own number beside it afterwards.

    `name` is that of the prediction, `value` the number that you expect, `measured` the number that the run
    gave; either may be left out. Predictions are kept with your progress and never graded. ``...`` as the
    value stands for a number still to be written. Raises NotAPrediction for a value that is not a finite
    number.

    >>> gpulab.predict("memory.column", ...)
    ○ memory.column  One store request of `transpose_plain` moves
                     write your number in the place of the three dots
    """
    present(predictions.predict(name, value, measured=measured))


def show(
    what: Any, *args: Any, view: str = "", line: int | None = None, save: str | Path | None = None
) -> None:
    """Draw what a run does to memory, from the run's own record.

    `what` is a report of `gpulab.profile`, a kernel with its launch shape (``show(kernel[grid, block],
    *args)`` runs and draws it), or the name of an exercise (``show("memory.copy", copy)`` runs it at a size
    that can be drawn). `view` asks for one kind of picture: ``accesses``, ``banks``, ``lanes``,
    ``divergence`` or ``threads``; `line` for the pictures of one source line. `save` also writes them to
    files: ``x.png`` (several: ``x-2.png`` …), or ``x.html`` with all of them. Raises CannotShow, in one line.

    >>> @cuda.jit
    ... def fill(out):
    ...     i = cuda.grid(1)
    ...     if i < out.size:
    ...         out[i] = 1
    >>> gpulab.show(fill[4, 32], np.zeros(100, np.float32), view="accesses")  # doctest: +ELLIPSIS
    Picture: This store of 'out' in fill moves 4 sectors of 32 bytes ...
    """
    pictures = showing.pictures(what, *args, view=view, line=line)
    if save is not None:
        showing.save(pictures, save)
    for picture in pictures:
        present(picture)
