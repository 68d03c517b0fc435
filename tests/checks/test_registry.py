"""Exercises are found in the labs' modules by name; what is not there is answered with the closest."""

from __future__ import annotations

import json

import pytest

from gpulab import check, cuda, hint
from gpulab.checks import EVERY, find, registry
from gpulab.checks.registry import NoReference, UnknownExercise


def test_the_labs_modules_are_found_without_a_list() -> None:
    assert {"lab_00_start_here.exercises", "lab_03_cuda_with_numba.exercises"} <= set(registry.lab_modules())
    assert find("start.double").lab == "00"


def test_an_unknown_exercise_is_answered_in_one_line_with_the_closest() -> None:
    with pytest.raises(UnknownExercise) as caught:
        find("toy.transposed")
    assert str(caught.value).startswith("there is no exercise 'toy.transposed'; did you mean toy.transpose")
    assert "\n" not in str(caught.value)


def test_the_topic_may_be_wrong_or_missing() -> None:
    with pytest.raises(UnknownExercise, match=r"did you mean .*start\.worst_line"):
        find("worst_line")


def test_a_name_like_no_other_is_told_where_names_stand() -> None:
    with pytest.raises(UnknownExercise, match="the check's own cell names it"):
        find("???")


@pytest.mark.parametrize("first", [print, lambda a: a, cuda.jit(lambda a: None), 3, None, ["toy.double"]])
def test_a_function_where_the_name_belongs_is_told_what_comes_first(first: object) -> None:
    for call in (lambda: check(first, "toy.double"), lambda: hint(first)):
        with pytest.raises(UnknownExercise, match=r'gpulab.check\("basics.saxpy", saxpy\); it got an? \w+$'):
            call()


@pytest.mark.parametrize("lab", ["99", "99_toys", "lab 99", "lab_99"])
def test_a_lab_is_known_by_its_number_and_by_its_folder(lab: str) -> None:
    assert registry.of_lab(lab)[0].name == "toy.double"


def test_without_references_nothing_can_be_checked_and_that_is_said() -> None:
    registry.add(find("toy.double"), None)
    with pytest.raises(NoReference, match=r"the expected results of toy\.double are not installed here"):
        registry.reference("toy.double")


def test_every_exercise_of_the_labs_has_a_reference_hints_and_valid_budgets() -> None:
    from gpulab.analysis.profile import METRICS
    from gpulab.subjects.distributed.collectives import NAMES
    from gpulab.subjects.distributed.traffic import COUNTS

    for exercise in registry.exercises():
        if exercise.lab == "99":
            continue
        assert callable(registry.reference(exercise.name)), exercise.name
        assert len([h for h in exercise.hints if h]) == 3, exercise.name
        assert exercise.section, exercise.name
        names = [case.name for case in exercise.cases]
        assert len(set(names)) == len(names), exercise.name
        if exercise.evidence.kind == "communication":
            assert exercise.evidence.calls <= set(NAMES), exercise.name
            assert all(int(case.sizes["ranks"]) >= 1 for case in exercise.cases), exercise.name
        assert getattr(exercise.evidence, "race_case", None) in (None, *names), exercise.name
        for budget in exercise.budgets:
            known = budget.metric in METRICS or getattr(exercise.evidence, "measured", False)
            known = known or exercise.evidence.kind in ("tensor graph", "artefact", "dialogue")
            if exercise.evidence.kind == "communication":
                known = budget.metric in COUNTS or budget.metric.removeprefix("calls of ") in NAMES
                known = known or budget.metric in exercise.evidence.counts
            assert known, (exercise.name, budget.metric)
            assert budget.case in (None, EVERY, *names), exercise.name
            assert budget.advice, exercise.name


def test_no_budget_limits_a_ratio_which_cheap_requests_or_idle_blocks_would_lower() -> None:
    from gpulab.analysis.profile import METRICS

    limited = {
        (exercise.name, budget.metric)
        for exercise in registry.exercises()
        if exercise.lab != "99"
        for budget in exercise.budgets
    }
    # Weighted by what is waited for: further waits or threads change nothing, further copies and products are
    # limited themselves.
    weighted = ("async_bytes_in_flight", "bulk_bytes_in_flight", "warpgroup_products_in_flight")
    limited = {each for each in limited if each[1] not in weighted}
    assert [each for each in limited if (metric := METRICS.get(each[1])) and metric.ratio] == []


def test_predictions_belong_to_labs() -> None:
    for name, prediction in registry.predictions().items():
        assert name == prediction.name
        assert prediction.question
        json.dumps(prediction.answer)
