"""Holds what a run left behind against what it should have left."""

from __future__ import annotations

from dataclasses import replace

from . import cases
from .compare import Mismatch, mismatch
from .registry import Reference
from .run import Outcome
from .spec import Case, Exercise


def first_mismatch(exercise: Exercise, case: Case, outcome: Outcome, reference: Reference) -> Mismatch | None:
    """The first output that is wrong, in the order of the arguments, and which others are right."""
    expected = cases.expected(reference, outcome.before, case)
    compared: dict[str, Mismatch | None] = {}
    for argument in outcome.before:
        if argument.role in ("out", "inout"):
            should = expected.get(argument.name, argument.value)
            got = outcome.after[argument.name]
            compared[argument.name] = mismatch(argument.name, got, should, exercise.rtol, exercise.atol)
    first = next((found for found in compared.values() if found), None)
    return first and replace(first, right=tuple(name for name, found in compared.items() if not found))


def changed_input(outcome: Outcome) -> str:
    """The name of the first input that is not as it was, byte for byte; empty if all are."""
    for argument in outcome.before:
        if argument.role == "in" and argument.value.tobytes() != outcome.after[argument.name].tobytes():
            return argument.name
    return ""
