"""Answers that are plans: carried out by the exercise's own reference, counted, and limited by budgets."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gpulab
from gpulab.checks import EVERY, Case, cases, registry
from gpulab.checks.evidence import AnsweredCases

from .toys import ROUTE, walk


@pytest.fixture(autouse=True)
def route():
    registry.add(ROUTE, walk)
    yield
    registry.remove(ROUTE.name)


def test_a_good_plan_gets_all_points_whatever_its_order():
    for order in (lambda stops: sorted(stops), lambda stops: tuple(sorted(stops))):
        verdict = gpulab.check("toy.route", order)
        assert verdict.passed and verdict.points == 2.5
        assert verdict.parts[1].metric == "steps" and verdict.parts[1].measured <= 99
    assert "99 steps" in str(verdict) or "steps   budget 200" in str(verdict)


def test_the_worst_question_of_a_case_counts():
    worst = gpulab.check("toy.route", lambda stops: sorted(stops)).parts[1].measured
    asked = cases.questions(ROUTE, ROUTE.cases[-1])
    assert worst == max(max(stops) for (stops,) in asked)


def test_a_plan_that_costs_more_gets_a_part_of_the_points_and_the_question():
    def there_and_back(stops):
        return [x for pair in zip(sorted(stops), sorted(stops)[::-1], strict=True) for x in pair][
            : len(stops)
        ]

    verdict = gpulab.check("toy.route", there_and_back)
    right, way, _turns = verdict.parts
    assert right.state == "pass" and way.state in ("part", "fail") and 0 <= way.points < 1
    assert way.measured > 200 and "× as far?" in str(verdict)


def test_a_plan_that_cannot_be_carried_out_says_why_and_earns_nothing():
    verdict = gpulab.check("toy.route", lambda stops: stops[1:])
    assert verdict.points == 0
    assert "visits 2 stops and not each of the 3 once" in " ".join(str(verdict).split())


@pytest.mark.parametrize("answer", [7, "text", [None, "x", 2], {"a": 1}, [[1, 2], [3]], True])
def test_what_has_not_the_form_of_a_plan_is_refused_with_a_message(answer):
    verdict = gpulab.check("toy.route", lambda stops: answer)
    assert verdict.points == 0
    said = " ".join(str(verdict).split())
    assert "not of the form that is asked for" in said or "not each of the 3 once" in said


def test_a_plan_that_holds_nan_is_refused_wherever_it_stands():
    for answer in (float("nan"), [1, float("nan")], {"a": [[float("nan")]]}):
        verdict = gpulab.check("toy.route", lambda stops, answer=answer: answer)
        assert verdict.points == 0 and "it holds nan" in " ".join(str(verdict).split())


def test_a_plan_of_nothing_says_that_a_return_is_missing():
    assert "is a `return` missing?" in " ".join(str(gpulab.check("toy.route", lambda stops: None)).split())


def test_a_plan_of_nothing_at_some_cases_only_names_the_question():
    said = " ".join(str(gpulab.check("toy.route", lambda s: sorted(s) if len(s) > 3 else None)).split())
    assert "gives None" in said and "is a `return` missing?" not in said


def test_a_question_that_was_cut_short_is_given_in_full_to_be_tried_again():
    def stay(stops):
        return stops[:-1]

    assert "in full" not in str(gpulab.check("toy.route", stay)), "a short one stands in the line itself"
    many = replace(ROUTE, name="toy.many_stops", cases=(Case("30 stops", {"stops": 30}),), budgets=())
    (asked,) = cases.questions(many, many.cases[0])[0]
    registry.add(many, walk)
    try:
        assert f"in full: stay({asked})" in " ".join(str(gpulab.check(many.name, stay)).split())
    finally:
        registry.remove(many.name)


def test_a_long_answer_is_told_where_it_first_differs():
    lists = replace(
        ROUTE,
        name="toy.lists",
        budgets=(),
        evidence=AnsweredCases(lambda sizes, numbers: [([0.5] * 40,)]),
    )
    registry.add(lists, lambda values: [values, [0.0] * 40])
    try:
        said = " ".join(str(gpulab.check(lists.name, lambda v: [v, [*[0.0] * 31, 7.5, *[0.0] * 8]])).split())
        assert "`answer[1][31]` is 7.5, should be 0.0" in said
        said = str(gpulab.check(lists.name, lambda v: [v, [0.0] * 39]))
        assert "First difference" not in said and "should be" in said, "lists of other lengths have no place"
    finally:
        registry.remove(lists.name)


def test_a_function_with_other_parameters_is_told_so_and_not_that_the_course_is_broken() -> None:
    def worst_line(lines, more):
        return 0

    said = " ".join(str(gpulab.check("start.worst_line", worst_line)).split())
    assert "worst_line() missing 1 required positional argument: 'more': its parameters are not those" in said
    assert "report it" not in said


def test_a_budget_at_every_case_is_decided_by_the_worst_of_them():
    def good_at_large_ones(stops):
        return sorted(stops) if len(stops) > 3 else sorted(stops, key=lambda stop: (stop % 2, stop))

    everywhere = replace(ROUTE, budgets=(replace(ROUTE.budgets[1], case=EVERY, advice="Why turn?"),))
    for exercise, passes in ((replace(ROUTE, budgets=ROUTE.budgets[1:]), True), (everywhere, False)):
        registry.add(exercise, walk)
        turns = gpulab.check("toy.route", good_at_large_ones).parts[1]
        assert (turns.state == "pass") is passes
    assert turns.case == "3 stops"
    assert "counted at every case; the worst is 3 stops" in turns.details[0].text
    assert gpulab.check("toy.route", sorted).passed
