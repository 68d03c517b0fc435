"""Usual mistakes in plain Python, each with a sentence that a failed check shows below the right answer."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from gpulab.checks.compare import same_answer
from gpulab.checks.registry import STUMBLES, Reference

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
