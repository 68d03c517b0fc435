"""Examines exercises that launch kernels: right at every size, right in any order of warps, what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from gpulab.analysis.profile import METRICS, Report
from gpulab.analysis.profile.report import Line
from gpulab.analysis.profile.watch import Watch
from gpulab.simulator import device as devices
from gpulab.simulator.observe.recorder import Index, Recorder, Request
from gpulab.simulator.observe.writers import Writers

from . import budgets, cases, diagnose, doctor, messages, orders, patterns
from .compare import Mismatch
from .every_case import walk
from .registry import Reference
from .results import changed_input, first_mismatch
from .run import Outcome, name_of, run
from .scoring import Score
from .spec import Budget, Case, Exercise
from .verdict import Detail, Part, no_points

Fn = Callable[..., Any]


def examine(exercise: Exercise, fn: Fn, reference: Reference) -> tuple[Part, ...]:
    """All parts: right at every size and under another schedule, then the budgets in order."""
    reports: dict[str, Report] = {}
    counted = {case.name for budget in exercise.budgets for case in budgets.cases_of(exercise, budget)}
    found = walk(
        exercise,
        lambda case: _at(exercise, case, fn, reference, reports if case.name in counted else None),
    )
    if found.first is not None:
        details, nothing_done = found.first.explain(exercise, fn)
        # An empty array is right without any work: not worth a mention.
        return no_points(exercise, messages.no_result() if nothing_done else found.summary(), details)
    race, remarks = orders.examine(exercise, fn, reference)
    if race:
        return no_points(exercise, messages.right_by_luck(len(exercise.cases)), race)
    of = exercise.correct_points
    first = Part("right", "pass", of, of, messages.all_right([c.name for c in exercise.cases]), remarks)
    return (first, *_budgets(exercise, fn, reports))


# ---------------------------------------------------------------- right?


@dataclass(frozen=True)
class _Failure:
    """What is wrong at one case: `trouble` in words, or an input that changed, or a wrong output."""

    case: Case
    outcome: Outcome
    changed: str = ""
    wrong: Mismatch | None = None

    @property
    def stopped(self) -> bool:
        return bool(self.outcome.trouble)

    def explain(self, exercise: Exercise, fn: Fn) -> tuple[tuple[Detail, ...], bool]:
        """Sentences, and whether nothing was done at all.

        The case runs once more, with somebody who notes who writes what.
        """
        if self.stopped:
            return self.outcome.trouble, self.outcome.trouble[0].text == messages.empty(name_of(fn))
        before = cases.arguments(exercise, self.case)
        writers = Writers()
        again = run(exercise, self.case, fn, before, writers=writers)
        watcher = None if again.trouble else writers
        if self.changed:
            old = next(a.value for a in before if a.name == self.changed)
            now = self.outcome.after[self.changed]
            return diagnose.changed_input(self.changed, old, now, watcher), False
        assert self.wrong is not None
        if self.outcome.launches == 0:
            return (Detail(messages.no_launch(name_of(fn))),), True
        outputs = [a.name for a in before if a.role in ("out", "inout")]
        given = exercise.shape is not None
        if watcher and (said := diagnose.without_output(watcher, outputs, name_of(fn), given)):
            return (Detail(said),), not any(launch.stores for launch in watcher.launches)
        source = diagnose.unwritten(exercise, self.case, fn, self.wrong)
        wrong = diagnose.wrong_result(self.wrong, watcher, given, source)
        return (*wrong, *doctor.seen(exercise, self.case, fn)), False


def _at(
    exercise: Exercise, case: Case, fn: Fn, reference: Reference, reports: dict[str, Report] | None
) -> _Failure | None:
    """Run one case and compare. Where `reports` is given the launches are counted into it."""
    before = cases.arguments(exercise, case)
    watch = Watch(devices.current())
    outcome = run(exercise, case, fn, before, watch.standing() if reports is not None else None)
    if outcome.trouble:
        return _Failure(case, outcome)
    if changed := changed_input(outcome):
        return _Failure(case, outcome, changed=changed)
    if wrong := first_mismatch(exercise, case, outcome, reference):
        return _Failure(case, outcome, wrong=wrong)
    if reports is not None and watch.launches:
        reports[case.name] = _to_be_counted(exercise, watch.report(name_of(fn)))
    return None


def _to_be_counted(exercise: Exercise, report: Report) -> Report:
    """The report that budgets are held against.

    An atomic loads and stores, and counts as both, or one that exchanges would store for nothing. Where an
    exercise wants atomics a budget limits them, and loads and stores are those of other instructions.
    """
    if any(budget.metric == "global_atomics" for budget in exercise.budgets):
        return report
    launches = [
        replace(each, tally=each.tally.with_atomics_as_accesses(), most_loaded=each.most_asked)
        for each in report.launches
    ]
    return replace(report, launches=tuple(launches))


# ---------------------------------------------------------------- what does it cost?

SMALL = 0.05  # of a count: so much too much may be any line's


def _budgets(exercise: Exercise, fn: Fn, reports: dict[str, Report]) -> tuple[Part, ...]:
    def value(budget: Budget, case: Case) -> float | None:
        report = reports.get(case.name)
        return report[budget.metric] if report else None

    def advice(budget: Budget, case: Case, got: Score) -> tuple[Detail, ...]:
        return _advice(exercise, case, fn, budget, got, reports[case.name])

    return budgets.parts(exercise, value, advice)


def _advice(
    exercise: Exercise, case: Case, fn: Fn, budget: Budget, got: Score, report: Report
) -> tuple[Detail, ...]:
    """The line that costs most, how its threads lie in memory, and the question that leads on."""
    details: list[Detail] = []
    cause = METRICS[budget.metric].cause
    line = _blamed(report, budget.metric, cause.name, (got.value or 0) - got.limit) if cause else None
    sentences = []
    if cause and line and line.text:
        details.append(Detail(line.text, line.line))
        if line.share(cause.name) < 0.95:
            sentences.append(messages.share_of_line(100 * line.share(cause.name)) + ".")
        accesses = {(term.kind, term.space) for term in cause.terms if term.space is not None}
        alike = cause.terms[0].column == "requests"  # each costs the same
        bytes_only = cause.terms[0].column == "bytes"  # where they lie costs none
        seen = [] if not accesses else _more_recorded(exercise, case, fn) if alike else _recorded(report)
        if said := _pattern(seen, line.line, accesses, alike, bytes_only):
            sentences.append((said[:1].upper() + said[1:] if sentences else said) + ".")
    sentences.append(budgets.question(budget, got))
    details += [Detail(" ".join(s for s in sentences if s))] if any(sentences) else []
    return tuple(details)


def _blamed(report: Report, metric: str, cause: str, excess: float) -> Line | None:
    """The line to look at: the costliest, or None where the excess is so small that it may be any line's.

    Requests tell more: it is the line that moves fewest bytes with each, among those that have enough of them
    to cause the whole excess.
    """
    moved = cause.replace("requests", "bytes")
    able = [line for line in report.lines if (line.metrics[cause] or 0) >= max(excess, 1)]
    if metric == cause != moved and moved in METRICS and able:
        return min(able, key=lambda line: (line.metrics[moved] or 0) / (line.metrics[cause] or 1))
    line = report.lines.costliest(cause)
    small = metric == cause and len(able) > 1 and 0 < excess < SMALL * (report[cause] or 0)
    return None if small else line


Seen = tuple[Request, Index]  # and the shape of its block


def _recorded(report: Report) -> list[Seen]:
    """The first two requests of each instruction, from the run that was counted."""
    return [(request, launch.block) for launch in report.launches for request in launch.recording.requests]


def _more_recorded(exercise: Exercise, case: Case, fn: Fn) -> list[Seen]:
    """The first 32 of each, from one more run."""
    recorders: list[Recorder] = []

    def record(launch: devices.Launch) -> Recorder:
        recorders.append(Recorder(limit=32, arrays=launch.arrays))
        return recorders[-1]

    run(exercise, case, fn, cases.arguments(exercise, case), devices.current().observed(record))
    return [(request, recorder.block) for recorder in recorders for request in recorder.requests]


def _pattern(
    seen: Iterable[Seen],
    line: int,
    accesses: set[tuple[str | None, str]],
    alike: bool,
    bytes_only: bool,
) -> str:
    """What the costliest request of a source line looks like, or a typical one where all cost alike.

    Empty if there is nothing to say, as of numbers side by side where only their bytes count.
    """
    fitting = [
        (request, block)
        for request, block in seen
        if request.line == line
        and any(s == request.space and k in (None, _kind(request.kind)) for k, s in accesses)
    ]
    choose = patterns.typical if alike else patterns.worst
    found = choose(request for request, _ in fitting)
    if found is None or (bytes_only and patterns.side_by_side(found)):
        return ""
    return patterns.describe(found, next(block for request, block in fitting if request is found))


def _kind(kind: str) -> str:
    """The kind as the counts call it."""
    return "atomic" if kind == "reduction" else kind
