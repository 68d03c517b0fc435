"""Holds what a run left behind against what it should have left."""

from __future__ import annotations

from . import cases
from .compare import Mismatch, mismatch
from .registry import Reference
from .run import Outcome
from .spec import Case, Exercise


def first_mismatch(exercise: Exercise, case: Case, outcome: Outcome, reference: Reference) -> Mismatch | None:
    """The first output that is wrong, in the order of the arguments."""
    expected = cases.expected(reference, outcome.before, case)
    for argument in outcome.before:
        if argument.role in ("out", "inout"):
            should = expected.get(argument.name, argument.value)
            got = outcome.after[argument.name]
            if found := mismatch(argument.name, got, should, exercise.rtol, exercise.atol):
                return found
    return None


def changed_input(outcome: Outcome) -> str:
    """The name of the first input that is not as it was, byte for byte; empty if all are."""
    for argument in outcome.before:
        if argument.role == "in" and argument.value.tobytes() != outcome.after[argument.name].tobytes():
            return argument.name
    return ""
