"""The engine: what a policy may decide, what a step costs, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab.subjects import serving
from gpulab.subjects.serving import Engine, InvalidDecision, Machine, Request, Units, policies, traces


def first_come(state):
    return {"admit": [seen.number for seen in state.waiting[: state.free_slots]]}


def requests(*outputs, prompt=4, **more):
    return [Request(number, 0.0, prompt, output, **more) for number, output in enumerate(outputs)]


# ---------------------------------------------------------------- what the lab is remembered by


def test_static_batches_of_16_and_256_tokens_take_2048_steps_and_continuous_ones_1152():
    machine, trace = Machine(8, 10_000, reserve=True), traces.alternating(64)
    assert len(serving.run(machine, trace, policies.static).steps) == 64 // 8 * 256 == 2048
    assert len(serving.run(machine, trace, first_come).steps) == 1152
    assert sum(request.output for request in trace) / 8 == 1088


def test_who_knows_the_lengths_reaches_the_bound():
    trace = traces.alternating(64)
    length = {request.number: request.output for request in trace}

    def longest_first(state):
        order = sorted(state.waiting, key=lambda seen: -length[seen.number])
        return {"admit": [seen.number for seen in order[: state.free_slots]]}

    assert len(serving.run(Machine(8, 10_000), trace, longest_first).steps) == 1088


# ---------------------------------------------------------------- steps


def test_the_last_piece_of_a_prompt_gives_the_first_token():
    run = serving.run(Machine(1, 10), requests(3), first_come)
    assert [step.gave for step in run.steps] == [(0,), (0,), (0,)]
    assert [step.tokens for step in run.steps] == [4, 1, 1]
    assert run.lives[0].tokens == [1.0, 2.0, 3.0]


def test_a_prompt_in_pieces_gives_its_first_token_with_the_last_piece():
    def two_at_a_time(state):
        chunks = {seen.number: min(2, seen.left) for seen in state.running if seen.left}
        return {"admit": [0], "prefill": {0: 2}} if state.waiting else {"prefill": chunks}

    run = serving.run(Machine(1, 10), requests(2, prompt=5), two_at_a_time)
    assert [step.tokens for step in run.steps] == [2, 2, 1, 1]
    assert [len(step.gave) for step in run.steps] == [0, 0, 1, 1]


def test_tokens_that_come_along_need_no_work():
    run = serving.run(Machine(1, 10), [Request(0, 0.0, 5, 2, cached=5)], first_come)
    assert [step.tokens for step in run.steps] == [1, 1]
    assert run.steps[0].work.read == 5


def test_blocks_grow_with_the_tokens_and_come_free_at_the_end():
    machine = Machine(2, 10, block_tokens=2)
    run = serving.run(machine, requests(4, 2, prompt=3), first_come)
    # Cached after each step: 3, 4, 5, 6 and 3, 4.
    assert [step.blocks for step in run.steps] == [2 + 2, 2 + 2, 3, 3]


def test_with_reserve_the_longest_output_is_held_from_the_start():
    machine = Machine(2, 10, block_tokens=2, reserve=True)
    run = serving.run(machine, requests(1, prompt=3, most=8), first_come)
    assert run.steps[0].blocks == 6


def test_recomputing_takes_the_tokens_so_far_through_the_model_again():
    decisions = iter([{"admit": [0]}, {}, {"preempt": [0], "admit": [1]}, {"admit": [0]}, {}])
    run = serving.run(Machine(1, 10), requests(4, 1), lambda state: next(decisions))
    assert [step.tokens for step in run.steps] == [4, 1, 4, 4 + 2, 1]
    first = run.lives[0]
    assert (first.preempted, first.recomputed, len(first.tokens)) == (1, 5, 4)


@pytest.mark.parametrize("how", ["preempt", "swap"])
def test_who_is_thrown_out_waits_before_those_who_have_not_run(how):
    decisions = iter([{"admit": [0]}, {how: [0], "admit": [1]}, {}, {"admit": [0]}, {}, {"admit": [2]}])
    waiting = []

    def policy(state):
        waiting.append([seen.number for seen in state.waiting])
        return next(decisions, {})

    serving.run(Machine(1, 10, block_tokens=4, host=2), requests(3, 2, 1), policy)
    assert waiting[:3] == [[0, 1, 2], [1, 2], [0, 2]]


def test_swapping_moves_what_is_cached_out_and_back_and_computes_nothing_twice():
    decisions = iter([{"admit": [0]}, {}, {"swap": [0], "admit": [1]}, {"admit": [0]}, {}])
    machine = Machine(1, 10, block_tokens=4, host=2)
    run = serving.run(machine, requests(4, 1), lambda state: next(decisions))
    assert [step.tokens for step in run.steps] == [4, 1, 4, 1, 1]
    assert [step.work.moved for step in run.steps] == [0, 0, 5, 5, 0]
    assert run.lives[0].recomputed == 0


def test_the_clock_jumps_to_the_next_arrival_when_nothing_is_to_do():
    run = serving.run(Machine(1, 10), [Request(0, 0.0, 1, 1), Request(1, 7.5, 1, 1)], first_come)
    assert [step.start for step in run.steps] == [0.0, 7.5]


def test_dynamic_batches_wait_for_company_and_not_for_ever():
    trace = [Request(n, arrival, 1, 1) for n, arrival in enumerate((0.0, 1.0, 1.5, 20.0))]
    run = serving.run(Machine(8, 10), trace, policies.dynamic(3, 5.0))
    assert [(step.start, len(step.gave)) for step in run.steps] == [(1.5, 3), (25.0, 1)]


# ---------------------------------------------------------------- what is refused

REFUSED = [
    ({"admit": [9]}, "request 9, which has not arrived"),
    ({"admit": [2]}, "request 2, which has finished"),
    ({"admit": [0]}, "request 0, which is running already"),
    ({"admit": [1, 1]}, "request 1 twice"),
    ({"admit": [1, 3, 4]}, "5 requests would run in 3 slots"),
    ({"preempt": [1]}, "request 1, which is waiting"),
    ({"preempt": [0], "swap": [0]}, "both preempted and swapped"),
    ({"swap": [0]}, "2 swapped blocks would be on the host, which has space for 1"),
    ({"admit": [3]}, "need after this step 8 blocks, but there are 7"),
    ({"prefill": {5: 3}}, "request 5 3 tokens, but only 2 of its prompt are left"),
    ({"prefill": {1: 3}}, "`prefill` names request 1, which is waiting"),
    ({"prefill": {5: -1}}, "request 5 -1 tokens"),
    ({"admit": [1]}, "would process 9 tokens, but its limit is 8"),
    ({"admit": "all"}, "`admit` is 'all'"),
    ({"start": [1]}, "'start'"),
    (None, "the policy returned NoneType"),
    ({"sleep": "a while"}, "`sleep` is 'a while'"),
]


@pytest.mark.parametrize("decision, said", REFUSED, ids=[said for _, said in REFUSED])
def test_what_cannot_be_is_refused_with_a_sentence_and_changes_nothing(decision, said):
    engine = Engine(Machine(3, 7, block_tokens=2, step_tokens=8, host=1))
    for request in (
        Request(0, 0.0, 2, 4), Request(1, 0.0, 6, 2), Request(2, 0.0, 1, 1),
        Request(3, 0.0, 8, 2), Request(4, 0.0, 2, 2), Request(5, 0.0, 4, 2),
    ):  # fmt: skip
        engine.add(request)
    engine.step({"admit": [0, 2, 5], "prefill": {0: 2, 2: 1, 5: 2}})
    engine.step({"prefill": {}})
    before = engine.state()
    with pytest.raises(InvalidDecision) as refused:
        engine.step(decision)
    assert said in str(refused.value)
    assert "in step 2" in str(refused.value)
    assert engine.state() == before


def test_who_never_admits_is_told_so():
    with pytest.raises(InvalidDecision, match="no request runs or is admitted"):
        serving.run(Machine(1, 4), requests(1), lambda state: {})


def test_who_admits_and_preempts_for_ever_is_stopped():
    def restless(state):
        return {"preempt": [0]} if state.running else {"admit": [0], "prefill": {0: 1}}

    with pytest.raises(InvalidDecision, match="after 50 decisions 1 requests"):
        serving.run(Machine(1, 4), requests(5), restless, limit=50)


def test_who_sleeps_for_moments_only_is_stopped_too():
    def sleepless(state):
        return {"sleep": state.now + 1e-6}

    trace = [Request(0, 0.0, 1, 1), Request(1, 9.0, 1, 1)]
    with pytest.raises(InvalidDecision, match="after 50 decisions 2 requests"):
        serving.run(Machine(1, 4), trace, sleepless, limit=50)


def test_a_request_that_never_fits_is_refused_when_it_comes():
    with pytest.raises(ValueError, match="can never be served"):
        Engine(Machine(1, 2, block_tokens=2)).add(Request(0, 0.0, 4, 2))


# ---------------------------------------------------------------- whatever the trace


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=12),
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
def test_every_request_gets_its_tokens_whatever_a_policy_does(told, slots, chance):
    trace = [Request(n, float(a), p, o) for n, (a, p, o) in enumerate(told)]
    machine = Machine(slots, 9 * slots, block_tokens=2, step_tokens=20, host=99)

    def careless(state):
        """Admits, preempts, swaps and cuts prompts at random, within what is allowed."""
        out = {seen.number for seen in state.running if chance.random() < 0.1}
        swap = {number for number in out if chance.random() < 0.5}
        stays = [seen for seen in state.running if seen.number not in out]
        admit = [seen.number for seen in state.waiting][: slots - len(stays)]
        room, chunks = 20 - slots, {}
        for seen in [*stays, *(s for s in state.waiting if s.number in admit)]:
            if seen.left:
                chunks[seen.number] = min(room, chance.randint(1, seen.left))
                room -= chunks[seen.number]
        if not chunks and not any(s.left == 0 for s in (*stays, *state.waiting) if s.number not in out):
            return {}
        return {"admit": admit, "preempt": out - swap, "swap": swap, "prefill": chunks}

    run = serving.run(machine, trace, careless, limit=5000)
    for life, request in zip(sorted(run.lives, key=lambda life: life.request.number), trace, strict=True):
        assert life.made == request.output
        assert life.tokens == sorted(life.tokens)
        assert life.tokens[0] >= request.arrival + 1
    assert all(step.blocks <= machine.blocks and step.tokens <= 20 for step in run.steps)
    tokens = sum(request.prompt + request.output - 1 for request in trace)
    assert sum(step.tokens for step in run.steps) == tokens + sum(life.recomputed for life in run.lives)


def test_units_and_times_survive_the_way_through_data():
    for times in (Units(2.0), serving.times("Llama 3 8B")):
        machine = Machine(3, 5, step_tokens=7, host=2, reserve=True, times=times)
        assert Machine.from_data(machine.to_data()) == machine
