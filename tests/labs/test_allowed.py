"""A task on several ranks names each collective that its check lets pass, so that nobody has to find out."""

from __future__ import annotations

import pytest

from gpulab.checks import registry
from gpulab.checks.evidence import Communication
from tests.labs import notebooks

WITH_CALLS = [
    (exercise, exercise.evidence.calls)
    for exercise in registry.exercises()
    if isinstance(exercise.evidence, Communication) and exercise.evidence.calls
]


def task(lab: str, function: str) -> str:
    """The text that asks for a function."""
    asks = [cell.source for cell in notebooks.cells(lab, "markdown") if f"rite `{function}(" in cell.source]
    assert len(asks) == 1, f"{len(asks)} cells of {lab} ask for {function}"
    return asks[0]


@pytest.mark.parametrize(("exercise", "calls"), WITH_CALLS, ids=[each.name for each, _ in WITH_CALLS])
def test_a_task_names_the_collectives_that_its_check_allows(exercise, calls) -> None:
    lab = next(name for name in notebooks.labs() if name.startswith(f"{registry.lab_number(exercise.lab)}_"))
    said = task(lab, exercise.name.partition(".")[2])
    assert {call for call in calls if f"{call}`" not in said and f"{call}(" not in said} == set()
