"""Examines exercises in PyTorch: the graph of a function is replayed at every size, then its counts are
held against the budgets."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from gpulab.analysis.profile.tensors import TensorReport
from gpulab.checks import budgets, cases, messages, pictures, tensor_graphs
from gpulab.checks.cases import Argument
from gpulab.checks.compare import Mismatch, index_words, mismatch, value_words, where
from gpulab.checks.diagnose import changed_input
from gpulab.checks.every_case import Failure, parts
from gpulab.checks.parts import Detail, Part
from gpulab.checks.refusals import Broken, Refused
from gpulab.checks.run import explain, name_of
from gpulab.checks.scoring import Score
from gpulab.checks.slips import array_slip_of
from gpulab.checks.spec import Answer, Array, Budget, Case, Exercise, OnArrays, Scalar
from gpulab.checks.tensor_graphs import Graph, NotAGraph, Replay, file_of, record, replay
from gpulab.foundation.errors import Message

from .arrays import without_contents

# The graph of a function at a case.
Source = Callable[[Case, Sequence[Argument]], Graph]
SHOWN = 3  # operators that a missed budget names
FEW_FLOPS = 4096  # that may be anything


class NoTorch(Message):
    """The exercise is about PyTorch, which is not installed."""


def version() -> str:
    """Whose operators are counted: ``PyTorch 2.13.0``."""
    from importlib import metadata

    return f"PyTorch {metadata.version('torch').partition('+')[0]}"


@dataclass(frozen=True)
class TensorGraph(OnArrays):
    """The function computes with PyTorch.

    `arguments(sizes)` lists what it receives and, as ``out`` arrays, what it returns. It may use the
    `operators` on the list (`gpulab.checks.operators`). Budgets limit what `gpulab.profile.tensors.COUNTS`
    names, or ``calls of OPERATOR``.
    """

    kind = "tensor graph"
    line = "graph"

    operators: frozenset[str] = frozenset()

    def counted_with(self) -> str:
        """Whose operators are counted."""
        return version()

    def examine(self, answer: Answer) -> tuple[Part, ...]:
        """All parts; the function is recorded, and the graph handed on as JSON would. Raises NoTorch."""

        def recorded(case: Case, made: Sequence[Argument]) -> Graph:
            return Graph.from_data(record(answer.fn, made, self.operators).to_data())

        return self._examine(answer, recorded)

    def _examine(self, answer: Answer, source: Source) -> tuple[Part, ...]:
        exercise = answer.exercise
        try:
            import torch  # noqa: F401
        except ModuleNotFoundError as missing:
            raise NoTorch(messages.no_torch(exercise.name)) from missing
        reports: dict[str, TensorReport] = {}
        return parts(
            exercise,
            answer.fn,
            lambda case: _at(answer, self.operators, case, source, reports),
            lambda: _budgets(exercise, reports),
        )

    def step(self, exercise: Exercise, case: Case, seed: int) -> dict[str, Any]:
        """Shapes and types of the arguments, and the operators; the sandbox needs no contents."""
        operators = sorted(self.operators)
        return {"name": case.name, "arguments": without_contents(self, case), "operators": operators}

    @staticmethod
    def record(function: Any, record: Any, exercise: str, case: dict[str, Any]) -> None:
        """Call the function on tensors without contents and write its graph down. Raises Refused."""
        made = []
        for argument in case["arguments"]:
            dtype = np.dtype(argument["dtype"])
            if "scalar" in argument:
                scalar = Scalar(argument["scalar"], argument["value"], argument["dtype"])
                made.append(Argument(scalar, dtype.type(argument["value"])))
                continue
            shape = tuple(argument["shape"])
            array = Array(
                argument["array"], shape, argument["dtype"], argument["role"], grad=argument["grad"]
            )
            made.append(Argument(array, np.broadcast_to(np.zeros((), dtype), shape)))
        try:
            graph = tensor_graphs.record(function, made, frozenset(case["operators"]))
        except NotAGraph as error:
            raise Refused(str(error)).with_traceback(error.__traceback__) from None
        record.line(TensorGraph.line, exercise=exercise, case=case["name"], graph=graph.to_data())

    @staticmethod
    def read(facts: Mapping[str, Any], kernels: Mapping[str, Any]) -> Graph:
        """The graph."""
        return Graph.from_data(facts["graph"])

    @staticmethod
    def prepare() -> None:
        """PyTorch finds its decompositions once."""
        tensor_graphs.prepare()

    def replay(self, answer: Answer, recorded: Mapping[str, Any]) -> tuple[Part, ...]:
        """As `examine`, on the recorded graphs. Raises Broken."""
        try:
            return self._examine(answer, lambda case, made: recorded[case.name])
        except Exception as error:
            raise Broken(f"{type(error).__name__}: {error}") from error


def _at(
    answer: Answer,
    operators: frozenset[str],
    case: Case,
    source: Source,
    reports: dict[str, TensorReport],
) -> Failure | None:
    """What is wrong at one case; None if nothing is."""
    exercise, fn, made = answer.exercise, answer.fn, cases.of(answer, case)
    try:
        graph = source(case, made)
        outcome = replay(graph, made, operators, name_of(fn))
    except Exception as error:
        return Failure(case, (*explain(error, fn), *_source(error, fn)), True)
    if details := _changed(made, outcome):
        return Failure(case, details)
    expected = cases.expected(answer.reference, made, case)
    slip = partial(array_slip_of, answer.reference, made=made, case=case)
    if details := _wrong(exercise, made, outcome, expected, slip, not graph.uninitialised):
        return Failure(case, details)
    if graph.uninitialised:  # what was never written must not matter
        made = cases.of(answer, case)
        garbage = cases.garbage_of(answer.contents, case) or np.random.default_rng(cases.PUBLIC_SEED)
        other = replay(graph, made, operators, name_of(fn), garbage)
        if details := _wrong(exercise, made, other, expected, slip):
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
    slip: Callable[[Mismatch], str],
    written: bool = False,
) -> tuple[Detail, ...]:
    """The first output that is not as it should be. Where all memory was `written`, a nan was computed.

    `slip` names the usual mistake that leads to such an output, if there is one.
    """
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
            drawn = pictures.detail(found)
            if written and np.isnan(value) and not np.isnan(wanted):
                return (Detail(sentence), Detail(messages.where_nan_comes_from()), drawn)
            said = slip(found)
            return (Detail(sentence), *([Detail(said)] if said else []), drawn)
    return ()


def _budgets(exercise: Exercise, reports: dict[str, TensorReport]) -> tuple[Part, ...]:
    def advice(budget: Budget, case: Case, got: Score) -> tuple[Detail, ...]:
        said = messages.by_operator(_costliest(reports[case.name], budget.metric), budget.unit)
        return tuple(Detail(text) for text in (said, budgets.question(budget, got)) if text)

    def value(budget: Budget, case: Case) -> float | None:
        report = reports[case.name]
        found = report[budget.metric]
        if budget.metric != "matrix_flops":
            return found
        limit, naive = budget.limit_for(case.sizes), budget.naive_for(case.sizes)
        saved = limit if naive is None else naive - limit
        # So much more than an answer needs beside its products are products, as multiplications and sums.
        written_out = report["flops"] - found > FEW_FLOPS + saved / 4
        return report["flops"] if written_out or found < limit / 2 else found

    return budgets.parts(exercise, value, advice)


def _costliest(report: TensorReport, metric: str) -> list[tuple[str, int, int]]:
    """The operators that a count comes from, as (name, calls, count), the largest first."""
    if metric not in ("launches", "bytes", "flops", "syncs"):
        return []
    rows = [(op, total.calls, getattr(total, metric)) for op, total in report.by_op.items()]
    return sorted((row for row in rows if row[2]), key=lambda row: -row[2])[:SHOWN]
