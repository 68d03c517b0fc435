"""Usual mistakes, each with a sentence that a failed check shows below the right answer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from gpulab.checks.cases import Argument, expected
from gpulab.checks.compare import Mismatch, mismatch, same_answer
from gpulab.checks.registry import STUMBLES, Reference
from gpulab.checks.spec import Case

# A function that makes the mistake, and what a learner who made it should read.
Slip = tuple[Callable[..., Any], str]

_OF: dict[Reference, tuple[Slip, ...]] = {}


def usual_slips(*slips: Slip) -> Callable[[Reference], Reference]:
    """A decorator that gives a reference its usual mistakes.

    >>> @usual_slips((lambda a, b: a - b, "This is the difference of the two."))
    ... def add(a, b):
    ...     return a + b
    >>> slip_of(add, -1, [1, 2])
    'This is the difference of the two.'
    """

    def remember(reference: Reference) -> Reference:
        _OF[reference] = slips
        return reference

    return remember


def slip_of(
    reference: Reference, got: Any, arguments: Sequence[Any], rtol: float = 0.0, atol: float = 0.0
) -> str:
    """The sentence of the first usual slip that answers `got` to these `arguments`, or "" if none does.

    Numbers count as the same within `atol` + `rtol` · |number|.
    """
    for slip, sentence in _OF.get(reference, ()):
        with contextlib.suppress(*STUMBLES):
            if same_answer(got, slip(*deepcopy(list(arguments))), rtol, atol):
                return sentence
    return ""


def array_slip_of(
    reference: Reference,
    wrong: Mismatch,
    made: Sequence[Argument],
    case: Case,
    part: Callable[[Any], Any] = lambda whole: whole,
) -> str:
    """The sentence of the first usual slip that computes exactly this wrong array, or "" if none does.

    A slip of a reference to arrays takes what the reference takes, ``(inputs, sizes)``, and returns the
    arrays that the mistake leads to. `part` takes from a whole array what a rank has of it.
    """
    for slip, sentence in _OF.get(reference, ()):
        with contextlib.suppress(*STUMBLES):
            array = part(expected(slip, tuple(made), case)[wrong.array])
            if mismatch(wrong.array, wrong.got, array, wrong.rtol, wrong.atol) is None:
                return sentence
    return ""
