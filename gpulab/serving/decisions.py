"""Policies whose decisions can be written down, sent, and carried out again elsewhere.

The decorators make an exercise's answer of a policy: called with a machine and requests as data, it lets the
engine ask the policy and returns all its decisions, a plan. The judge gives the plan to an engine of its own,
which refuses what cannot be, and counts. A policy sees states; how long an output will get it is not told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from typing import Any

from . import messages
from .engine import PARTS, Decision, InvalidDecision, NotADecision, Policy, Run, State, as_decision, run
from .machine import Machine
from .requests import from_data

LIMIT = 20_000  # decisions in a plan


class Nothing(NotADecision):
    """A policy returned None."""


class Planned:
    """A policy: `decide` is what an engine asks; called with data it returns a plan."""

    def __init__(self, function: Callable[..., Any], ask: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.function, self._ask = function, ask
        self.__code__ = function.__code__  # where others look for what is written in it

    def decide(self, state: State) -> Decision | None:
        """The policy's decision; None where it returns None, which is none. Raises NotADecision."""
        told = self._ask(self.function, state)
        return None if told is None else as_decision(told)

    def __call__(self, machine: Mapping[str, Any], requests: Sequence[Mapping[str, Any]]) -> Any:
        """All decisions as data, the last one perhaps one that the engine refuses; None without any."""
        plan: list[dict[str, Any]] = []

        def note(state: State) -> Decision:
            decision = self.decide(state)
            if decision is None:
                raise Nothing(messages.at(state.step, messages.not_a_decision("nothing")))
            plan.append(to_data(decision))
            return decision

        try:
            run(Machine.from_data(machine), from_data(requests), note, limit=LIMIT)
        except Nothing:
            if plan:
                raise
            return None
        except NotADecision:
            raise
        except InvalidDecision:
            pass  # the last decision says it to whoever carries the plan out
        return plan


def policy(function: Callable[[State], Any]) -> Planned:
    """Decorates a policy state → Decision (or a dictionary of its parts)."""
    return Planned(function, lambda function, state: function(state))


def admission(function: Callable[..., Any]) -> Planned:
    """Decorates a policy (queue, running, free blocks, free slots) → the numbers of the requests to admit."""

    def ask(function: Callable[..., Any], state: State) -> Any:
        numbers = function(list(state.waiting), list(state.running), state.free_blocks, state.free_slots)
        return None if numbers is None else {"admit": numbers}

    return Planned(function, ask)


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


def replay(plan: Sequence[Mapping[str, Any]]) -> Policy:
    """The policy that says again what a plan says. Raises InvalidDecision where the plan is at its end."""
    rest = iter(plan)

    def decide(state: State) -> Decision:
        try:
            return as_decision(next(rest))
        except StopIteration:
            raise InvalidDecision(messages.plan_ends(len(plan))) from None

    return decide


def carry_out(
    plan: Sequence[Mapping[str, Any]], machine: Mapping[str, Any], requests: Sequence[Mapping[str, Any]]
) -> Run:
    """What comes of a plan. Raises InvalidDecision with what is wrong with it."""
    return run(Machine.from_data(machine), from_data(requests), replay(plan), limit=LIMIT)
