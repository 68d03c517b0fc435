"""Policies that are asked from elsewhere: what they decide is data, and so is what they learn of it.

The decorators make an exercise's answer of a policy. It is called with a function and a machine: the function
takes a decision to an engine elsewhere, the judge's, and brings back what is new there, which is who came and
who is through. That is all that a policy cannot work out by itself, so an engine of its own follows the other
one and has the states to ask it about. Only the judge's engine knows how long an output gets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import update_wrapper
from typing import Any

from . import decision_errors
from .engine import PARTS, Decision, Engine, InvalidDecision, NotADecision, Run, Service, State, as_decision
from .machine import Machine
from .requests import Request

LIMIT = 20_000  # decisions of a policy that is elsewhere

News = dict[str, Any]
# Takes a decision to an engine elsewhere, None before the first, and brings back what is new.
Tell = Callable[[Any], News]


class Decider:
    """A policy: `decide` is what an engine asks; called, it serves on an engine elsewhere."""

    def __init__(self, function: Callable[..., Any], ask: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.function, self._ask = function, ask
        self.__code__ = function.__code__  # where others look for what is written in it

    def decide(self, state: State) -> Decision | None:
        """The policy's decision; None where it returns None, which is none. Raises NotADecision."""
        told = self._ask(self.function, state)
        return None if told is None else as_decision(told)

    def __call__(self, tell: Tell, machine: Mapping[str, Any]) -> int | None:
        """Decide until all requests are through; the number of decisions, None where the first is none.

        Raises NotADecision for what has not the form of one; what cannot be carried out, `tell` refuses.
        """
        engine, decisions = Engine(Machine.from_data(machine)), 0
        news = tell(None)
        while _follow(engine, news):
            decision = self.decide(engine.state())
            if decision is None and not decisions:
                return None
            if decision is None:
                raise NotADecision(
                    decision_errors.at(len(engine.steps), decision_errors.not_a_decision("nothing"))
                )
            news, decisions = tell(to_data(decision)), decisions + 1
            engine.step(decision)
        return decisions


def policy(function: Callable[[State], Any]) -> Decider:
    """Decorates a policy `function` that takes a State and returns a Decision, or a dictionary of its parts.

    >>> @policy
    ... def one_at_a_time(state):
    ...     return {"admit": [r.number for r in state.waiting[:1]] if not state.running else []}
    >>> type(one_at_a_time).__name__
    'Decider'
    """
    return Decider(function, lambda function, state: function(state))


def admission(function: Callable[..., Any]) -> Decider:
    """Decorates a policy `function` (queue, running, free blocks, free slots) → the numbers of requests to
    admit.

    >>> @admission
    ... def first_come(queue, running, free_blocks, free_slots):
    ...     return [request.number for request in queue[:free_slots]]
    >>> type(first_come).__name__
    'Decider'
    """

    def ask(function: Callable[..., Any], state: State) -> Any:
        numbers = function(list(state.waiting), list(state.running), state.free_blocks, state.free_slots)
        return None if numbers is None else {"admit": numbers}

    return Decider(function, ask)


def to_data(decision: Decision) -> dict[str, Any]:
    """A decision as JSON's types, without the parts that say nothing."""
    said: dict[str, Any] = {}
    for part in PARTS:
        value = getattr(decision, part)
        if value is None or value == ():
            continue
        said[part] = {str(k): v for k, v in value.items()} if part == "prefill" else value
        said[part] = list(value) if isinstance(value, tuple) else said[part]
    return said


# ---------------------------------------------------------------- the two ends of the conversation


def decided_by(
    policy: Callable[[Tell, Mapping[str, Any]], Any], machine: Mapping[str, Any], requests: Iterable[Request]
) -> Run:
    """Serve `requests` on `machine` by the decisions of `policy`, which may run in another process.

    `policy` is a Decider, `machine` what `Machine.to_data` gives. Raises InvalidDecision for a decision that
    cannot be carried out, and if the policy stops before all requests have finished.

    >>> @admission
    ... def first_come(queue, running, free_blocks, free_slots):
    ...     return [request.number for request in queue[:free_slots]]
    >>> machine = Machine(slots=8, blocks=1000, reserve=True).to_data()
    >>> len(decided_by(first_come, machine, traces.alternating(2)).lives)
    2
    """
    service = Service(Machine.from_data(machine), requests, limit=LIMIT)
    engine = service.engine
    told = 0  # requests that the policy knows

    def decide(decision: Any) -> News:
        nonlocal told
        ended = service.decide(decision) if told else ()
        over = not service.due()
        come = [life.request for life in list(engine.lives.values())[told:]]
        told += len(come)
        return {"over": over, "now": engine.now, "through": list(ended), "come": list(map(_public, come))}

    policy(decide, machine)
    if service.left:
        raise InvalidDecision(decision_errors.stops_early(service.decisions, service.left))
    return engine.result()


def _public(request: Request) -> dict[str, Any]:
    """What a client sends: all of a request but the length of its output."""
    parts = ("number", "arrival", "prompt", "most", "priority", "cached")
    return {part: getattr(request, part) for part in parts}


def _follow(engine: Engine, news: News) -> bool:
    """Let happen here what happened elsewhere; False where all requests are through there."""
    engine.now = news["now"]
    for number in news["through"]:
        if engine.lives[number] in engine.running:  # its output did not get as long as it might
            engine.lives[number].stopped = True
            engine.drop(number)
    for request in news["come"]:
        engine.add(Request(**request, output=request["most"]))
    return not news["over"]
