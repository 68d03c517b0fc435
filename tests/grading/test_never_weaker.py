"""The judge looks for races where they can show, as the learner's check does: in every exercise."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest

from gpulab.checks import orders, registry
from gpulab.checks.evidence import LaunchTrace
from gpulab.checks.run import reference_device
from gpulab.checks.spec import Answer, Case, Exercise
from gpulab.simulator import device as devices
from grading.core.judge import judge_cases
from grading.core.replay import judged
from tests.labs import notebooks

WARP = 32
LABS = {
    lab: [e for e in registry.of_lab(lab) if isinstance(e.evidence, LaunchTrace)] for lab in notebooks.labs()
}


def can_show(exercise: Exercise, solution: object) -> dict[str, int]:
    """What the cases that are watched have, at most: launches, blocks of one, and warps of a block. 2 is many."""
    evidence = exercise.evidence
    assert isinstance(evidence, LaunchTrace)
    answer = evidence.launched(Answer(exercise, solution, registry.reference(exercise.name)))
    watched: dict[str, Case] = {case.name: case for case in (orders.race_case(answer), exercise.cases[-1])}
    most = {"launches": 0, "blocks": 0, "warps": 0}
    for case in watched.values():
        launches: list[devices.Launch] = []
        with reference_device(exercise.gpu) as device:
            outcome = answer.run(case, device.observed(launches.append))
        assert not outcome.trouble, outcome.trouble
        most["launches"] = max(most["launches"], min(len(launches), 2))
        for launch in launches:
            most["blocks"] = max(most["blocks"], min(prod(launch.grid), 2))
            most["warps"] = max(most["warps"], min(-(-prod(launch.block) // WARP), 2))
    return most


@pytest.mark.parametrize("lab", [lab for lab, exercises in LABS.items() if exercises])
def test_what_shows_a_race_to_the_check_shows_it_to_the_judge(lab: str) -> None:
    answers, names = notebooks.answers(lab), notebooks.checks(lab)
    weaker = {}
    for exercise in LABS[lab]:
        solution = answers[names[exercise.name][0]]
        public = can_show(exercise, solution)
        own = can_show(judged(exercise, judge_cases(exercise)), solution)
        if any(own[what] < public[what] for what in public):
            weaker[exercise.name] = (public, own)
    assert weaker == {}


def grown(exercise: Exercise) -> set[str]:
    """The sizes in which the case that runs in several orders is above the smallest of all cases."""
    evidence = exercise.evidence
    assert isinstance(evidence, LaunchTrace)
    raced = orders.race_case(evidence.launched(Answer(exercise, None, registry.reference(exercise.name))))
    return {
        name
        for name, size in raced.sizes.items()
        if name != "seed"
        and isinstance(size, int | float)
        and all(name in case.sizes for case in exercise.cases)
        and size > min(case.sizes[name] for case in exercise.cases)
    }


@pytest.mark.parametrize("lab", [lab for lab, exercises in LABS.items() if exercises])
def test_several_orders_run_through_as_many_steps_at_the_judge_as_in_the_check(lab: str) -> None:
    """Where the check's case has more than one step, one tile of keys or one row, so has the judge's."""
    missing = {e.name: grown(e) - grown(judged(e, judge_cases(e))) for e in LABS[lab]}
    assert {name: sizes for name, sizes in missing.items() if sizes} == {}


def test_a_case_that_shows_races_is_kept_and_others_are_the_judges_own() -> None:
    diffuse = registry.find("basics.diffuse")
    own = judge_cases(diffuse)
    assert isinstance(diffuse.evidence, LaunchTrace)
    assert own[0].name == diffuse.evidence.race_case and own[0] in diffuse.cases
    assert not [case for case in own[1:] if case in diffuse.cases]
    assert judged(diffuse, own).evidence == diffuse.evidence
    without = judged(diffuse, own[1:]).evidence
    assert without == replace(diffuse.evidence, race_case=None)
