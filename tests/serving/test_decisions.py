"""Policies as answers: they decide in one place, another carries it out and tells them no more than they may know."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab.subjects import serving
from gpulab.subjects.serving import InvalidDecision, Machine, Request, decisions

MACHINE = Machine(2, 50, block_tokens=2, step_tokens=30)
TRACE = [Request(n, 0.7 * n, 5, 4, most=6) for n in range(6)]


@serving.admission
def first_come(queue, running, blocks, slots):
    """Everybody in turn."""
    return [seen.number for seen in queue[:slots]]


def through_json(policy):
    """The policy in another process, as far as it can tell: only JSON goes back and forth."""

    def answer(tell, machine):
        def told(decision):
            return json.loads(json.dumps(tell(json.loads(json.dumps(decision)))))

        return policy(told, json.loads(json.dumps(machine)))

    return answer


def elsewhere(trace, machine, policy):
    return serving.decided_by(through_json(policy), machine.to_data(), trace)


def test_a_policy_elsewhere_serves_as_it_does_here():
    there, here = elsewhere(TRACE, MACHINE, first_come), serving.run(MACHINE, TRACE, first_come.decide)
    assert [step.gave for step in here.steps] == [step.gave for step in there.steps]
    assert [life.tokens for life in here.lives] == [life.tokens for life in there.lives]


REQUESTS = st.builds(
    lambda number, arrival, prompt, output, more, priority, cached: Request(
        number, arrival, prompt, output, output + more, priority, min(cached, prompt - 1)
    ),
    number=st.just(0),
    arrival=st.floats(0, 9),
    prompt=st.integers(1, 9),
    output=st.integers(1, 6),
    more=st.integers(0, 4),
    priority=st.integers(0, 1),
    cached=st.integers(0, 3),
)


@settings(max_examples=30)
@given(
    trace=st.lists(REQUESTS, min_size=1, max_size=7),
    slots=st.integers(1, 4),
    reserve=st.booleans(),
    seed=st.integers(0, 9),
)
def test_the_states_that_it_is_asked_about_are_those_of_the_engine(trace, slots, reserve, seed):
    trace = [replace(request, number=number) for number, request in enumerate(trace)]
    machine = Machine(slots, 1000, 2, reserve=reserve, host=1000, times=serving.times("Llama 3 8B", "L4"))
    states: list[list] = []
    runs = []

    def restless(numbers):
        """Admits, splits prompts, swaps, preempts and sleeps, all by chance."""

        @serving.policy
        def decide(state):
            states[-1].append(state)
            if not state.running and numbers.random() < 0.3:
                return {"sleep": state.now + 0.5}
            out = [r for r in state.running if numbers.random() < 0.2]
            swap = [r for r in out if numbers.random() < 0.5]
            stay = [r for r in state.running if r not in out]
            new = state.waiting[: slots - len(stay)]
            return {
                "admit": [r.number for r in new],
                "swap": [r.number for r in swap],
                "preempt": [r.number for r in out if r not in swap],
                "prefill": {r.number: numbers.randint(1, r.left) for r in (*stay, *new) if r.left},
            }

        return decide

    for serve in (
        lambda policy: serving.run(machine, trace, policy.decide),
        partial(elsewhere, trace, machine),
    ):
        states.append([])
        runs.append(serve(restless(random.Random(seed))))
    assert states[0] == states[1]
    assert [life.tokens for life in runs[0].lives] == [life.tokens for life in runs[1].lives]


def test_it_learns_nothing_of_an_output_before_it_ends():
    short = [Request(n, 0.0, 5, 2, most=6) for n in range(4)]
    long = [Request(n, 0.0, 5, 6, most=6) for n in range(4)]
    heard = []

    def listens(tell, machine):
        news = tell(None)
        heard[-1].append(news)
        for decision in ({"admit": [0, 1]}, {}):
            heard[-1].append(tell(decision))

    for trace in (short, long):
        heard.append([])
        with pytest.raises(InvalidDecision, match="it stops after 2 decisions, and"):
            serving.decided_by(listens, MACHINE.to_data(), trace)
    assert heard[0][:2] == heard[1][:2]
    assert (heard[0][2]["through"], heard[1][2]["through"]) == ([0, 1], [])
    assert "output" not in json.dumps(heard)


def test_a_decision_that_cannot_be_is_refused_where_the_engine_is():
    @serving.admission
    def greedy(queue, running, blocks, slots):
        return [seen.number for seen in queue[: slots + 1]]

    with pytest.raises(InvalidDecision, match="3 requests would run in 2 slots"):
        elsewhere(TRACE, MACHINE, greedy)


def test_an_empty_policy_decides_nothing():
    told = []

    def tell(decision):
        told.append(decision)
        return {"over": False, "now": 0.0, "through": [], "come": []}

    assert serving.policy(lambda state: None)(tell, MACHINE.to_data()) is None and told == [None]


def test_a_policy_that_returns_something_else_later_is_told_in_which_step():
    @serving.admission
    def forgetful(queue, running, blocks, slots):
        return [queue[0].number] if queue and not running else None

    with pytest.raises(InvalidDecision, match="in step 1 the policy returned nothing"):
        elsewhere(TRACE, MACHINE, forgetful)


def test_decisions_without_end_are_refused(monkeypatch):
    monkeypatch.setattr(decisions, "LIMIT", 5)
    with pytest.raises(InvalidDecision, match=r"after 5 decisions \d requests have still not finished"):
        elsewhere(TRACE, MACHINE, serving.policy(lambda state: {"sleep": state.now + 1e-3}))


def test_stays_fill_slots_one_after_the_other_and_nobody_overlaps():
    run = serving.run(MACHINE, TRACE, first_come.decide)
    found = serving.stays(run)
    assert sorted(stay.request.number for stay in found) == list(range(6))
    for slot in (0, 1):
        inside = [stay for stay in found if stay.slot == slot]
        assert all(a.stop <= b.start for a, b in pairwise(inside))
    assert sum(stay.stop - stay.start for stay in found) == sum(len(step.gave) for step in run.steps)


def test_a_policy_keeps_its_name_and_what_it_says_of_itself():
    assert (first_come.__name__, first_come.__doc__) == ("first_come", "Everybody in turn.")
