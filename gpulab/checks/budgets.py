"""The parts of a verdict that say what a right answer costs, one a budget, whatever the evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpulab.analysis.profile import METRICS

from . import messages
from .parts import Detail, Part
from .scoring import Score, score
from .spec import EVERY, Budget, Case, Exercise

# The value of a budget's metric at a case; None where there was nothing to count.
ValueAt = Callable[[Budget, Case], float | None]
# What to say about a budget that is missed.
Advice = Callable[[Budget, Case, Score], tuple[Detail, ...]]


def case_of(exercise: Exercise, budget: Budget) -> Case:
    """The case that a budget is counted at; the last of several.

    Raises ValueError for a name that is none: a mistake in the lab.
    """
    return cases_of(exercise, budget)[-1]


def cases_of(exercise: Exercise, budget: Budget) -> tuple[Case, ...]:
    """All cases that a budget is counted at. Raises ValueError for a name that is none."""
    if budget.case == EVERY:
        return exercise.cases
    if budget.case is None:
        return exercise.cases[-1:]
    for case in exercise.cases:
        if case.name == budget.case:
            return (case,)
    raise ValueError(f"{exercise.name}: the budget on {budget.metric} names no case: {budget.case!r}")


def parts(exercise: Exercise, value_at: ValueAt, advice: Advice) -> tuple[Part, ...]:
    """One part per budget.

    One that earns nothing keeps the later ones waiting: its cure changes them anyway.
    """
    found: list[Part] = []
    until = ""
    for budget in exercise.budgets:
        if until:
            why = messages.not_looked_at(messages.until_met(until))
            found.append(Part(budget.label, "wait", 0.0, budget.points, why, metric=budget.metric))
            continue
        # Of cases that earn the same the last, the largest, is shown.
        scores = [
            (score(budget, value_at(budget, case), case.sizes), case) for case in cases_of(exercise, budget)
        ]
        got, case = min(reversed(scores), key=lambda each: round(each[0].share, 9))
        details = () if got.met or got.value is None else advice(budget, case, got)
        if details and len(scores) > 1:
            details = (Detail(messages.counted_at(case.name)), *details)
        found.append(_part(budget, case, got, details))
        until = budget.label if got.share == 0 else ""
    return tuple(found)


def keep_worst(exercise: Exercise, counts: dict[str, float], found: Mapping[str, float]) -> None:
    """Take what was counted at one question into the counts of its case: the worst of each."""
    senses = {budget.metric: budget.sense for budget in exercise.budgets}
    for name, value in found.items():
        worst = min if senses.get(name) == ">=" else max
        counts[name] = worst(counts[name], value) if name in counts else value


def of_counts(exercise: Exercise, counts: Mapping[str, Mapping[str, float]]) -> tuple[Part, ...]:
    """One part per budget, from counts by case and name."""
    return parts(
        exercise,
        lambda budget, case: counts[case.name].get(budget.metric),
        lambda budget, _, got: (Detail(question(budget, got)),) if budget.advice else (),
    )


def _part(budget: Budget, case: Case, got: Score, details: tuple[Detail, ...]) -> Part:
    return Part(
        label=budget.label,
        state="pass" if got.met else "part" if got.share > 0 else "fail",
        points=round(budget.points * got.share, 2),
        of=budget.points,
        summary=messages.budget(budget, got.value, got.limit, got.naive),
        details=details,
        metric=budget.metric,
        case=case.name,
        measured=got.value,
        budget=got.limit,
        naive=got.naive,
    )


def question(budget: Budget, got: Score) -> str:
    """The question that a missed budget asks. Next to the limit a difference says more than a ratio."""
    first, stop, rest = budget.advice.partition(". ")
    if "{times}" in first and got.value and got.limit < got.value < 1.05 * got.limit:
        unit = METRICS[budget.metric].unit if budget.metric in METRICS else budget.unit
        return messages.beyond(got.value - got.limit, unit) + stop[1:] + rest
    return budget.advice.replace("{times}", messages.times(got.value, got.limit))
