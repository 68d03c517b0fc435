"""Examines exercises in PyTorch: the graph of a function is replayed at every size, then its counts are
held against the budgets."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpulab.analysis.profile.tensors import TensorReport
from gpulab.foundation.errors import Message

from . import budgets, cases, messages
from .cases import Argument
from .compare import index_words, mismatch, value_words, where
from .diagnose import changed_input
from .every_case import Failure, parts
from .registry import Reference
from .run import explain, name_of
from .scoring import Score
from .spec import Budget, Case, Exercise
from .tensor_graphs import Graph, NotAGraph, Replay, file_of, record, replay
from .verdict import Detail, Part

# The graph of a function at a case.
Source = Callable[[Case, Sequence[Argument]], Graph]
SHOWN = 3  # operators that a missed budget names


class NoTorch(Message):
    """The exercise is about PyTorch, which is not installed."""


def version() -> str:
    """Whose operators are counted: ``PyTorch 2.13.0``."""
    from importlib import metadata

    return f"PyTorch {metadata.version('torch').partition('+')[0]}"


def recorded(exercise: Exercise, fn: Callable[..., Any]) -> Source:
    """Records `fn` when it is asked for a graph, and hands the graph on as JSON would."""

    def at(case: Case, made: Sequence[Argument]) -> Graph:
        return Graph.from_data(record(fn, made, exercise.operators).to_data())

    return at


def examine(
    exercise: Exercise, fn: Any, reference: Reference, source: Source | None = None
) -> tuple[Part, ...]:
    """All parts. The graphs come from `source`; by default `fn` is recorded. Raises NoTorch."""
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError as missing:
        raise NoTorch(messages.no_torch(exercise.name)) from missing
    source = source or recorded(exercise, fn)
    reports: dict[str, TensorReport] = {}
    return parts(
        exercise,
        fn,
        lambda case: _at(exercise, case, fn, reference, source, reports),
        lambda: _budgets(exercise, reports),
    )


def _at(
    exercise: Exercise,
    case: Case,
    fn: Any,
    reference: Reference,
    source: Source,
    reports: dict[str, TensorReport],
) -> Failure | None:
    """What is wrong at one case; None if nothing is."""
    made = cases.arguments(exercise, case)
    try:
        graph = source(case, made)
        outcome = replay(graph, made, exercise.operators, name_of(fn))
    except Exception as error:
        return Failure(case, (*explain(error, fn), *_source(error, fn)), True)
    if details := _changed(made, outcome):
        return Failure(case, details)
    expected = cases.expected(reference, made, case)
    if details := _wrong(exercise, made, outcome, expected, not graph.uninitialised):
        return Failure(case, details)
    if graph.uninitialised:  # what was never written must not matter
        made = cases.arguments(exercise, case)
        other = replay(graph, made, exercise.operators, name_of(fn), cases.POISON[1])
        if details := _wrong(exercise, made, other, expected):
            return Failure(case, (*details, Detail(messages.reads_unwritten())))
    reports[case.name] = outcome.report
    return None


def _source(error: Exception, fn: Any) -> tuple[Detail, ...]:
    """The line of the learner's code that a graph stopped at, where its text is to be had."""
    line = error.line if isinstance(error, NotAGraph) else 0
    text = linecache.getline(file_of(fn), line).strip() if line else ""
    return (Detail(text, line),) if text else ()


def _changed(made: Sequence[Argument], outcome: Replay) -> tuple[Detail, ...]:
    for argument in made:
        after = outcome.after.get(argument.name)
        if argument.role == "in" and after is not None and argument.value.tobytes() != after.tobytes():
            return changed_input(argument.name, argument.value, after, None)
    return ()


def _wrong(
    exercise: Exercise,
    made: Sequence[Argument],
    outcome: Replay,
    expected: dict[str, Any],
    written: bool = False,
) -> tuple[Detail, ...]:
    """The first output that is not as it should be. Where all memory was `written`, a nan was computed."""
    results = iter(outcome.results)
    for argument in made:
        if argument.role not in ("out", "inout"):
            continue
        got = next(results, None) if argument.role == "out" else outcome.after[argument.name]
        if got is None or (got.shape, got.dtype) != (argument.value.shape, argument.value.dtype):
            return (Detail(messages.other_inputs()),)
        should = expected.get(argument.name, argument.value)
        if found := mismatch(argument.name, got, should, exercise.rtol, exercise.atol):
            value, wanted = found.got[found.first], found.expected[found.first]
            sentence = messages.element(
                index_words(argument.name, found.first),
                value_words(value),
                value_words(wanted.astype(found.got.dtype)),
                False,
            )
            if found.count > 1:
                sentence += f" · {messages.more_elements(found.count - 1, where(found.wrong))}"
            if written and np.isnan(value) and not np.isnan(wanted):
                return (Detail(sentence), Detail(messages.where_nan_comes_from()))
            return (Detail(sentence),)
    return ()


def _budgets(exercise: Exercise, reports: dict[str, TensorReport]) -> tuple[Part, ...]:
    def advice(budget: Budget, case: Case, got: Score) -> tuple[Detail, ...]:
        said = messages.by_operator(_costliest(reports[case.name], budget.metric), budget.unit)
        return tuple(Detail(text) for text in (said, budgets.question(budget, got)) if text)

    def value(budget: Budget, case: Case) -> float | None:
        report = reports[case.name]
        found = report[budget.metric]
        if budget.metric == "matrix_flops" and found < budget.limit_for(case.sizes) / 2:
            return report["flops"]  # most products are written out, as multiplications and sums: all count
        return found

    return budgets.parts(exercise, value, advice)


def _costliest(report: TensorReport, metric: str) -> list[tuple[str, int, int]]:
    """The operators that a count comes from, as (name, calls, count), the largest first."""
    if metric not in ("launches", "bytes", "flops", "syncs"):
        return []
    rows = [(op, total.calls, getattr(total, metric)) for op, total in report.by_op.items()]
    return sorted((row for row in rows if row[2]), key=lambda row: -row[2])[:SHOWN]
