"""Examines exercises that several ranks compute together: each rank's results, then what the network counted.

In a notebook the ranks are processes of this machine; the judge has run its own in sandboxes and hands their
outcomes in. Either way a rank has its part of the inputs, and the network of `gpulab.distributed` counts.
"""

from __future__ import annotations

import itertools
import linecache
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from gpulab.checks import budgets, cases, messages, pictures
from gpulab.checks.cases import Argument
from gpulab.checks.compare import index_words, mismatch, value_words, where
from gpulab.checks.every_case import Failure, parts
from gpulab.checks.on_ranks import TYPES, file_of
from gpulab.checks.parts import Detail, Part, Unwritten
from gpulab.checks.run import name_of
from gpulab.checks.scoring import Score
from gpulab.checks.slips import array_slip_of
from gpulab.checks.spec import Answer, Array, Budget, Case, Exercise, OnArrays, Scalar, Sizes
from gpulab.checks.verdict import no_points
from gpulab.foundation.errors import Message
from gpulab.subjects.distributed.network import Outcome, Task, Trouble
from gpulab.subjects.distributed.traffic import Traffic

from .tensor_graph import NoTorch, version

# How the ranks fared at a case.
Source = Callable[[Case, Sequence[Argument]], Outcome]
SECONDS = 60.0  # of one case in a notebook
MOST_ADDENDS = 4  # of a wrong sum that is explained: three ways for each
SHOWN = 3  # links that a missed budget names


class CannotTravel(Message):
    """The learner's function uses something that stays in its process."""


class NotAResult(Exception):
    """What a rank returned is not what was asked for; the text says why."""


def ranks_of(case: Case) -> int:
    """How many ranks a case has."""
    return int(case.sizes["ranks"])


@dataclass(frozen=True)
class Communication(OnArrays):
    """Every rank of a small world runs the function, which computes with PyTorch and talks through
    torch.distributed.

    `arguments(sizes)` as for a tensor graph, each with its placement; ``sizes["ranks"]`` is how many ranks
    there are. Sends and receives are allowed, and the collectives in `calls`
    (`gpulab.distributed.collectives.NAMES`). Budgets limit what `gpulab.distributed.traffic.COUNTS` names,
    ``calls of COLLECTIVE``, ``bytes of COLLECTIVE``, or one of the exercise's own `counts`, each of which
    maps (`Traffic`, sizes) to a number. A lower limit (``>=``) counts what carries contents, because empty
    messages are cheap.
    """

    kind = "communication"
    live = True

    calls: frozenset[str] = frozenset()
    counts: Mapping[str, Callable[[Any, Sizes], float]] = field(default_factory=dict, hash=False)

    def counted_with(self) -> str:
        """Whose collectives are called."""
        return version()

    def examine(self, answer: Answer) -> tuple[Part, ...]:
        """All parts; the function runs on this machine. Raises NoTorch."""
        try:
            source = on_this_machine(answer.exercise, answer.fn)
        except CannotTravel as error:
            return no_points(answer.exercise, messages.no_result(), (Detail(str(error)),))
        return self._examine(answer, source)

    def _examine(self, answer: Answer, source: Source) -> tuple[Part, ...]:
        traffic: dict[str, Traffic] = {}
        return parts(
            answer.exercise,
            answer.fn,
            lambda case: _at(answer, case, source, traffic),
            lambda: _budgets(answer.exercise, self.counts, traffic),
        )

    def step(self, exercise: Exercise, case: Case, seed: int) -> dict[str, Any]:
        """How many ranks there are; they get their tasks from the network."""
        return {"name": case.name, "ranks": ranks_of(case)}

    @staticmethod
    def serving(connection: Any) -> Callable[[Any, str], None]:
        """As one rank: compute what the network asks for, until it goes on to the next exercise."""
        from gpulab.checks.on_ranks import work_of
        from gpulab.subjects.distributed.member import serve
        from gpulab.subjects.distributed.wired import Wire

        wire = Wire(connection)

        def serve_exercise(function: Any, exercise: str) -> None:
            file = file_of(function)
            wire.say({"op": "ready", "exercise": exercise, "absent": function is None, "file": file})
            serve(wire, work_of(function), file)

        return serve_exercise

    def replay(self, answer: Answer, recorded: Mapping[str, Any]) -> tuple[Part, ...]:
        """As `examine`, on what the ranks did in their sandboxes."""
        return self._examine(answer, lambda case, made: recorded[case.name])


def communication_of(exercise: Exercise) -> Communication:
    """The evidence of an exercise for several ranks. Raises TypeError for another exercise."""
    if not isinstance(exercise.evidence, Communication):
        raise TypeError(f"{exercise.name} is not for several ranks")
    return exercise.evidence


def whole(exercise: Exercise) -> Exercise:
    """The exercise with its arrays as the reference sees them.

    An ``own`` one has an axis of ranks in front.
    """
    evidence = communication_of(exercise)

    def arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
        ranks = int(sizes["ranks"])
        return tuple(
            replace(a, shape=(ranks, *a.shape)) if isinstance(a, Array) and a.placement == "own" else a
            for a in evidence.arguments(sizes)
        )

    return replace(exercise, evidence=replace(evidence, arguments=arguments))


def part(argument: Argument, value: np.ndarray, rank: int, ranks: int) -> np.ndarray:
    """What one rank has of a whole array."""
    spec = argument.spec
    assert isinstance(spec, Array)
    if spec.placement == "own":
        return value[rank]
    return np.array_split(value, ranks)[rank] if spec.placement == "sharded" else value


def task(exercise: Exercise, made: Sequence[Argument], ranks: int) -> Task:
    """What each rank is given: its part of the inputs, and which shapes its outputs have."""
    given = []
    most = 0  # bytes of a right result
    for rank in range(ranks):
        returned = 0
        heads: list[dict[str, Any]] = []
        contents: list[bytes] = []
        for argument in made:
            if isinstance(argument.spec, Scalar):
                heads.append({"name": argument.name, "value": argument.value.item()})
                continue
            mine = part(argument, argument.value, rank, ranks)
            returned += mine.nbytes if argument.role in ("out", "inout") else 0
            heads.append(
                {
                    "name": argument.name,
                    "dtype": str(mine.dtype),
                    "shape": mine.shape,
                    "role": argument.role,
                    "grad": argument.spec.grad,
                }
            )
            contents += [] if argument.role == "out" else [np.ascontiguousarray(mine).tobytes()]
        given.append(({"arguments": heads}, b"".join(contents)))
        most = max(most, returned)
    return Task(tuple(given), communication_of(exercise).calls, most)


def on_this_machine(exercise: Exercise, fn: Callable[..., Any]) -> Source:
    """Runs `fn` in a process a rank. Raises NoTorch, and CannotTravel if `fn` cannot be copied there."""
    try:
        import cloudpickle
        import torch  # noqa: F401
    except ModuleNotFoundError as missing:
        raise NoTorch(messages.no_torch(exercise.name)) from missing
    from gpulab.checks import on_ranks
    from gpulab.subjects.distributed.local import joined

    try:
        job = cloudpickle.dumps(fn)
    except Exception as error:  # pickling raises all kinds
        raise CannotTravel(messages.cannot_travel(name_of(fn), str(error))) from error

    def at(case: Case, made: Sequence[Argument]) -> Outcome:
        ranks = ranks_of(case)
        with joined(on_ranks.main, ranks, job) as (network, clock):
            return network.run(
                task(exercise, made, ranks),
                SECONDS,
                lambda rank, text: print(f"[rank {rank}] {text}"),
                clock,
            )

    return at


def _at(answer: Answer, case: Case, source: Source, traffic: dict[str, Traffic]) -> Failure | None:
    """What is wrong at one case; None if nothing is."""
    exercise, fn = answer.exercise, answer.fn
    made = cases.of(replace(answer, exercise=whole(exercise)), case)
    outcome = source(case, made)
    if outcome.trouble:
        return Failure(case, _trouble(outcome.trouble, fn), True)
    ranks = ranks_of(case)
    try:
        got = [results(made, rank, ranks, *outcome.returned[rank]) for rank in range(ranks)]
    except NotAResult as wrong:
        return Failure(case, (Detail(str(wrong)),), True)
    slip = partial(array_slip_of, answer.reference, made=made, case=case)
    if details := _wrong(exercise, made, got, cases.expected(answer.reference, made, case), slip):
        return Failure(case, details)
    traffic[case.name] = outcome.traffic
    return None


def _trouble(trouble: Trouble, fn: Any) -> tuple[Detail, ...]:
    """Why the ranks came to no result, and the line of the learner's code to look at."""
    if trouble.error == "NotImplementedError" and not trouble.text:
        return (Unwritten(messages.empty(name_of(fn))),)
    if trouble.kind == "error":
        first = (trouble.text.strip().splitlines() or [""])[0]
        said = messages.on_rank(trouble.rank, messages.raised(trouble.error, first, trouble.line))
    else:
        said = trouble.text
    file = trouble.file or file_of(fn)
    text = linecache.getline(file, trouble.line).strip() if trouble.line else ""
    return (Detail(said), Detail(text, trouble.line)) if text else (Detail(said),)


# ---------------------------------------------------------------- what ranks returned


def results(
    made: Sequence[Argument], rank: int, ranks: int, head: dict[str, Any], payload: bytes
) -> dict[str, np.ndarray]:
    """A rank's outputs by name: what it returned, and arrays that it changed. Raises NotAResult.

    The head and the payload come from `on_ranks`, or from whoever pretends to be it.
    """
    changed = head.get("changed")
    for argument in made:
        if argument.role == "in" and isinstance(changed, list) and argument.name in changed:
            raise NotAResult(messages.on_rank(rank, messages.changed_input(argument.name)))
    outputs = [a for a in made if a.role == "out"]
    gradients = [a for a in outputs if a.name.endswith(".grad")]
    wanted = [a for a in outputs if a not in gradients]
    returned, named = (_entries(head.get(key)) for key in ("returned", "named"))
    if len(returned) != len(wanted):
        said = messages.other_results(len(returned), [a.name for a in wanted])
        raise NotAResult(messages.on_rank(rank, said))
    asked = [*wanted, *(a for a in made if a.role == "inout"), *gradients]
    if len(returned) + len(named) != len(asked):
        raise NotAResult(messages.on_rank(rank, messages.other_inputs()))
    found: dict[str, np.ndarray] = {}
    at = 0
    for argument, entry in zip(asked, returned + named, strict=True):
        should = part(argument, argument.value, rank, ranks)
        if len(entry) == 1:
            missing = argument in gradients and entry == ["NoneType"]
            said = (
                messages.no_gradient_on_rank(argument.name.removesuffix(".grad"))
                if missing
                else messages.not_a_tensor(argument.name, entry[0])
            )
            raise NotAResult(messages.on_rank(rank, said))
        dtype, shape = entry
        if (tuple(shape), dtype) != (should.shape, str(should.dtype)):
            words = messages.tensor_words(should.shape, str(should.dtype))
            said = messages.other_result(argument.name, messages.tensor_words(tuple(shape), dtype), words)
            raise NotAResult(messages.on_rank(rank, said))
        data = payload[at : at + should.nbytes]
        at += should.nbytes
        if len(data) < should.nbytes:
            raise NotAResult(messages.on_rank(rank, messages.other_inputs()))
        found[argument.name] = np.frombuffer(data, should.dtype).reshape(should.shape)
    return found


def _entries(value: Any) -> list[Any]:
    """What a rank says about its tensors, if it has the form of `on_ranks.Entry`. Raises NotAResult."""
    if not isinstance(value, list) or len(value) > 4096:
        raise NotAResult(messages.other_inputs())
    for entry in value:
        well = isinstance(entry, list) and len(entry) in (1, 2) and isinstance(entry[0], str)
        well = well and len(entry[0]) <= 60
        if well and len(entry) == 2:
            dtype, shape = entry
            well = dtype in TYPES and isinstance(shape, list) and len(shape) <= 16
            well = well and all(type(n) is int and 0 <= n < 2**40 for n in shape) and math.prod(shape) < 2**40
        if not well:
            raise NotAResult(messages.other_inputs())
    return value


def _wrong(
    exercise: Exercise,
    made: Sequence[Argument],
    got: list[dict[str, np.ndarray]],
    expected: dict[str, np.ndarray],
    slip: Callable[..., str],
) -> tuple[Detail, ...]:
    """The first output that is not as it should be, and on which other ranks it is wrong, too.

    `slip` names the usual mistake that leads to such an output on that rank, if there is one.
    """
    for argument in made:
        if argument.role not in ("out", "inout"):
            continue
        should = expected.get(argument.name, argument.value)
        if should.shape != argument.value.shape:
            raise ValueError(
                f"the reference of `{argument.name}` has shape {should.shape}, not {argument.value.shape}"
            )
        wrong = {
            rank: found
            for rank, mine in enumerate(got)
            if (
                found := mismatch(
                    argument.name,
                    mine[argument.name],
                    part(argument, should, rank, len(got)),
                    exercise.rtol,
                    exercise.atol,
                )
            )
        }
        if not wrong:
            continue
        rank, first = next(iter(wrong.items()))
        sentence = messages.element(
            index_words(argument.name, first.first),
            value_words(first.got[first.first]),
            value_words(first.expected[first.first].astype(first.got.dtype)),
            False,
        )
        if first.count > 1:
            sentence += f" · {messages.more_elements(first.count - 1, where(first.wrong))}"
        if said := _addends(made, argument, first.got[first.first], first.first, rank, len(got)):
            sentence += f" · {said}"
        details = [Detail(messages.on_rank(rank, sentence))]
        if len(got) > 1:
            details.append(Detail(messages.wrong_on(list(wrong), len(got))))
        if said := slip(first, part=lambda whole, a=argument, r=rank: part(a, whole, r, len(got))):
            details.append(Detail(said))
        details.append(pictures.detail(first))
        return tuple(details)
    return ()


def _addends(
    made: Sequence[Argument],
    output: Argument,
    got: Any,
    index: tuple[int, ...],
    rank: int,
    ranks: int,
) -> str:
    """Of which ranks' elements `got` is the sum, if it is one: where an output is the sum of one whole input.

    Told of whole numbers alone: where sums are rounded, another choice could come as near.
    """
    given = [a for a in made if a.role == "in" and not isinstance(a.spec, Scalar)]
    if len(given) != 1 or ranks > MOST_ADDENDS:
        return ""
    whole, should = given[0].value, output.value
    own = isinstance(output.spec, Array) and output.spec.placement == "own"
    if whole.shape != (should.shape if own else (ranks, *should.shape)) or (whole != np.rint(whole)).any():
        return ""
    each = [float((x if own else part(output, x, rank, ranks))[index]) for x in whole]
    for times in itertools.product((1, 0, 2), repeat=ranks):
        if any(n != 1 for n in times) and sum(map(operator.mul, times, each)) == got:
            missing, twice = ([r for r in range(ranks) if times[r] == n] for n in (0, 2))
            return messages.addends(missing, twice) if len(missing) < ranks else ""
    return ""


# ---------------------------------------------------------------- what it costs


def _budgets(
    exercise: Exercise,
    counts: Mapping[str, Callable[[Any, Sizes], float]],
    traffic: dict[str, Traffic],
) -> tuple[Part, ...]:
    def advice(budget: Budget, case: Case, got: Score) -> tuple[Detail, ...]:
        said = _most(traffic[case.name], budget.metric)
        return tuple(Detail(text) for text in (said, budgets.question(budget, got)) if text)

    def value(budget: Budget, case: Case) -> float:
        found = traffic[case.name]
        own = counts.get(budget.metric)
        return own(found, case.sizes) if own else found[budget.metric]

    return budgets.parts(exercise, value, advice)


def _most(traffic: Traffic, metric: str) -> str:
    """The ranks that send or receive most, and over which links."""
    side = {"busiest sender": 0, "busiest receiver": 1}.get(metric)
    if side is None:
        return ""
    totals = (traffic.sent, traffic.received)[side]
    rank = totals.index(max(totals))
    links = sorted(
        ((link[1 - side], size) for link, size in traffic.links.items() if link[side] == rank),
        key=lambda row: -row[1],
    )
    return messages.busiest(rank, totals, links[:SHOWN], receives=bool(side))
