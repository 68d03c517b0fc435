"""Verbs of a notebook that show at once: of several in one cell all must be seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpulab.profile.display import present

from . import predictions, showing


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
