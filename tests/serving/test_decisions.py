"""Policies as answers: what they decide in one place is carried out in another, and nothing else counts."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from gpulab import serving
from gpulab.serving import InvalidDecision, Machine, Request
from gpulab.serving.requests import to_data

MACHINE = Machine(2, 50, block_tokens=2, step_tokens=30)
TRACE = [Request(n, 0.7 * n, 5, 4, most=6) for n in range(6)]


@serving.admission
def first_come(queue, running, blocks, slots):
    """Everybody in turn."""
    return [seen.number for seen in queue[:slots]]


def planned(policy, trace=TRACE):
    return json.loads(json.dumps(policy(MACHINE.to_data(), to_data(trace))))


def carried_out(plan, trace=TRACE):
    return serving.carry_out(plan, MACHINE.to_data(), to_data(trace))


def test_a_plan_carried_out_is_the_run_that_it_was_written_down_from():
    there = serving.run(MACHINE, TRACE, first_come.decide)
    here = carried_out(planned(first_come))
    assert [step.gave for step in here.steps] == [step.gave for step in there.steps]
    assert [life.tokens for life in here.lives] == [life.tokens for life in there.lives]


def test_chunks_preemptions_and_sleep_survive_the_way_through_json():
    @serving.policy
    def odd(state):
        if not state.running and state.now < 2:
            return {"sleep": 2.0}
        if state.step == 3 and state.running:
            return {"preempt": [state.running[0].number]}
        admit = [seen.number for seen in state.waiting[: state.free_slots]]
        there = [*state.running, *(seen for seen in state.waiting if seen.number in admit)]
        return {"admit": admit, "prefill": {seen.number: min(2, seen.left) for seen in there if seen.left}}

    there = serving.run(MACHINE, TRACE, odd.decide)
    here = carried_out(planned(odd))
    assert [step.work for step in here.steps] == [step.work for step in there.steps]
    assert there.steps[0].start == 2.0 and sum(life.preempted for life in there.lives) == 1


def test_a_decision_that_cannot_be_is_in_the_plan_and_refused_where_it_is_carried_out():
    @serving.admission
    def greedy(queue, running, blocks, slots):
        return [seen.number for seen in queue[: slots + 1]]

    plan = planned(greedy)
    with pytest.raises(InvalidDecision, match="3 requests would run in 2 slots"):
        carried_out(plan)


def test_an_empty_policy_has_no_plan():
    assert serving.policy(lambda state: None)(MACHINE.to_data(), to_data(TRACE)) is None


def test_a_policy_that_returns_something_else_later_is_told_in_which_step():
    @serving.admission
    def forgetful(queue, running, blocks, slots):
        return [queue[0].number] if queue and not running else None

    with pytest.raises(InvalidDecision, match="in step 1 the policy returns nothing"):
        forgetful(MACHINE.to_data(), to_data(TRACE))


def test_a_plan_that_is_cut_short_is_refused():
    with pytest.raises(InvalidDecision, match="the plan ends after 3 decisions, before all requests"):
        carried_out(planned(first_come)[:3])


def test_a_policy_sees_no_length_of_an_output():
    seen = []

    @serving.admission
    def curious(queue, running, blocks, slots):
        seen.extend((*queue, *running))
        return [each.number for each in queue[:slots]]

    short = [Request(n, 0.0, 5, 1, most=6) for n in range(4)]
    long = [Request(n, 0.0, 5, 6, most=6) for n in range(4)]
    first = []
    for trace in (short, long):
        seen.clear()
        planned(curious, trace)
        first.append(list(seen[:4]))
    assert first[0] == first[1]


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
