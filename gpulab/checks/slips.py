"""Usual wrong answers, told in their own words below what the right answer would be."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from gpulab.checks.compare import same_answer
from gpulab.checks.registry import STUMBLES, Reference

# What the mistake answers to the same arguments, and a sentence for a learner who made it.
Slip = tuple[Callable[..., Any], str]

_OF: dict[Reference, tuple[Slip, ...]] = {}


def usual_slips(*slips: Slip) -> Callable[[Reference], Reference]:
    """Says of a reference which mistakes are usual: each computes its wrong answer, and has its sentence.

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
