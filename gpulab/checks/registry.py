"""Finds exercises: each module in a folder `gpulab/content/lab_NN_name/` lists its own in `EXERCISES`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from gpulab.foundation.errors import Message

from . import cohort, messages
from .spec import Exercise, Prediction

Reference = Callable[..., Any]

CONTENT = "gpulab.content"
_added: dict[str, tuple[Exercise, Reference | None]] = {}  # by `add`, for tests and for labs in the making


class UnknownExercise(Message, LookupError):
    """No exercise has that name; the message names the closest."""


# What a reference stumbles over where an answer has not the form that it takes for granted.
STUMBLES = (TypeError, KeyError, IndexError, AttributeError, ValueError, ArithmeticError, RecursionError)


class NoReference(Message, LookupError):
    """The expected results are not installed here."""


@cache
def lab_modules() -> tuple[str, ...]:
    """The modules that hold exercises, as ``lab_NN_name.module``, sorted."""
    content = Path(__file__).parents[1] / "content"
    found = (path for path in content.glob("lab_*/*.py") if path.stem != "__init__")
    return tuple(sorted(f"{path.parent.name}.{path.stem}" for path in found))


@cache
def _of_modules() -> dict[str, tuple[Exercise, str]]:
    found: dict[str, tuple[Exercise, str]] = {}
    for module in lab_modules():
        for exercise in getattr(import_module(f"{CONTENT}.{module}"), "EXERCISES", ()):
            if exercise.name in found:
                raise ValueError(
                    f"two exercises are called {exercise.name}: in {found[exercise.name][1]}, {module}"
                )
            found[exercise.name] = (cohort.of_cohort(exercise, cohort.HERE), module)
    return found


@cache
def predictions() -> dict[str, Prediction]:
    """All questions of the labs' predict steps by name (`PREDICTIONS` of the labs' modules)."""
    return {
        prediction.name: prediction
        for module in lab_modules()
        for prediction in getattr(import_module(f"{CONTENT}.{module}"), "PREDICTIONS", ())
    }


def add(exercise: Exercise, reference: Reference | None = None) -> None:
    """Make an exercise known that is in no module; it hides one of the same name."""
    _added[exercise.name] = (exercise, reference)


def remove(name: str) -> None:
    """Forget what `add` made known."""
    _added.pop(name, None)


def exercises() -> tuple[Exercise, ...]:
    """All exercises, in the order of labs."""
    found = {name: exercise for name, (exercise, _) in _of_modules().items()}
    return tuple((found | {name: exercise for name, (exercise, _) in _added.items()}).values())


def of_lab(lab: str) -> tuple[Exercise, ...]:
    """The exercises of one lab: ``"03"``, or the name of its folder, ``"03_cuda_with_numba"``."""
    number = lab_number(lab)
    return tuple(e for e in exercises() if lab_number(e.lab) == number)


def lab_number(lab: str) -> str:
    """``03`` of ``03_cuda_with_numba``, ``lab 03`` and ``03``; other names unchanged."""
    match = re.match(r"(?:lab[ _]?)?(\d\d[A-Za-z]?)(?:_|$)", str(lab))
    return match.group(1) if match else str(lab)


def find(name: str) -> Exercise:
    """The exercise of that name. Raises UnknownExercise, which names the closest.

    >>> find("start.double").points
    2.0
    """
    if not isinstance(name, str):  # the function before the name, most often
        raise UnknownExercise(messages.no_exercise_name(name))
    if name in _added:
        return _added[name][0]
    known = _of_modules()
    if name in known:
        return known[name][0]
    raise UnknownExercise(messages.unknown_exercise(name, closest(name, [e.name for e in exercises()])))


def closest(name: object, names: Iterable[str], count: int = 3) -> list[str]:
    """Names that look like `name`, or go on where it ends; the part behind the dot counts on its own, too."""
    names = list(names)
    wanted = str(name)
    close = [n for n in names if wanted and n.startswith(f"{wanted.removesuffix('.')}.")]
    close += get_close_matches(wanted, names, n=count, cutoff=0.6)
    tails = {n.rpartition(".")[2]: n for n in names}
    for tail in get_close_matches(wanted.rpartition(".")[2], tails, n=count, cutoff=0.6):
        if tails[tail] not in close:
            close.append(tails[tail])
    return close[:count]


def reference(name: str) -> Reference:
    """The function that works out the expected results. Raises NoReference where they are not installed."""
    if name in _added:
        found = _added[name][1]
    else:
        lab, _, module = _of_modules()[name][1].partition(".")
        try:
            found = import_module(f"{CONTENT}.{lab}.references.{module}").REFERENCES.get(name)
        except ModuleNotFoundError as missing:
            if missing.name is None or ".references" not in missing.name:
                raise
            found = None
    if found is None:
        raise NoReference(messages.no_reference(name))
    return found
