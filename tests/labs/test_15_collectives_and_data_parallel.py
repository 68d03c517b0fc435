"""Lab 15: the figures of its table, and that its plans are walked as networks and samplers work."""

from __future__ import annotations

import inspect
import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DistributedSampler

import gpulab
from gpulab.checks import find
from gpulab.checks.spec import WrongAnswer
from gpulab.content.lab_15_collectives_and_data_parallel.exercises import (
    backward,
    bucket_questions,
    longest_share,
)
from gpulab.content.lab_15_collectives_and_data_parallel.references import exercises as expected
from tests.labs import notebooks

LAB = "15_collectives_and_data_parallel"


@pytest.fixture(scope="module")
def solved():
    return notebooks.answers(LAB)


@pytest.fixture(scope="module")
def wrong():
    return {path.stem: notebooks.wrong_answer(path) for path in notebooks.wrong_files(LAB)}


def part(verdict, label):
    return next(part for part in verdict.parts if part.label == label)


# ---------------------------------------------------------------- collectives


def test_the_busiest_sender_of_four_sends_a_half_more_than_an_array_instead_of_three(solved, wrong):
    array = 4 * 1023
    ring = part(gpulab.check("collective.all_reduce", solved["all_reduce"]), "busiest sender")
    naive = wrong["all_reduce_to_everybody"]["all_reduce"]
    everybody = part(gpulab.check("collective.all_reduce", naive), "busiest sender")
    assert (ring.measured, everybody.measured) == (6140, 3 * array)
    assert ring.measured / array == pytest.approx(1.5, rel=1e-3)
    half = part(gpulab.check("collective.reduce_scatter", solved["reduce_scatter"]), "busiest sender")
    assert half.measured == 3 * 4 * 256


@given(st.integers(1, 9), st.integers(1, 2000))
def test_the_longest_share_is_that_of_tensor_split(ranks, count):
    sizes = {"ranks": ranks, "numbers": count}
    assert longest_share(sizes) == max(len(s) for s in torch.empty(count).tensor_split(ranks))


@given(st.integers(1, 70), st.data())
def test_a_broadcast_takes_as_few_rounds_as_doubling_allows(solved, ranks, data):
    root = data.draw(st.integers(0, ranks - 1))
    rounds = expected.broadcast(solved["broadcast"](ranks, root), ranks, root)["rounds"]
    assert 2**rounds >= ranks > 2**rounds / 2


@pytest.mark.parametrize("ranks", [1, 2, 4, 8, 16, 32])
def test_halving_has_the_rings_shares_in_the_trees_rounds(ranks, solved, wrong):
    steps = ranks.bit_length() - 1
    assert expected.halving(solved["halving"](ranks), ranks) == {
        "rounds": 2 * steps,
        "shares sent": 2 * (ranks - 1),
    }
    ring = expected.halving(wrong["halving_ring"]["halving"](ranks), ranks)
    assert ring == {"rounds": 2 * (ranks - 1), "shares sent": 2 * (ranks - 1)}
    whole = expected.halving(wrong["halving_whole_arrays"]["halving"](ranks), ranks)
    assert whole == {"rounds": steps, "shares sent": ranks * steps}


@given(st.sampled_from([2, 4, 8]), st.data())
def test_what_the_walk_accepts_is_an_all_reduce(solved, ranks, data):
    """The schedule run on numbers, beside the walk over addends, with a message left out or not."""
    rounds = [list(messages) for messages in solved["halving"](ranks)]
    if data.draw(st.booleans()):
        messages = data.draw(st.sampled_from(rounds))
        messages.pop(data.draw(st.integers(0, len(messages) - 1)))
    numbers = np.random.default_rng(3).integers(0, 1000, (ranks, ranks))
    held = numbers.copy()
    for messages in rounds:
        before = held.copy()
        for a, b, shares, how in messages:
            held[b, shares] = before[a, shares] + (before[b, shares] if how == "add" else 0)
    right = bool((held == numbers.sum(axis=0)).all())
    try:
        expected.halving(rounds, ranks)
        accepted = True
    except WrongAnswer:
        accepted = False
    assert accepted == right


@pytest.mark.parametrize(
    ("rounds", "says"),
    [
        ([[[0, 1], [0, 2]]], "rank 0 sends 2 messages"),
        ([[[0, 1]], [[0, 2], [1, 2]]], "rank 2 receives 2 messages"),
        ([[[1, 2]]], "does not have the data yet"),
        ([[[0, 3]]], "there is no rank 3"),
        ([[[0, 0]]], "sends to itself"),
        ([[[0, 1]]], "rank 2 has nothing"),
        ([[[0, 1]], [[1, 0], [0, 2]]], "which has the data already"),
        ([[[0, True]]], "no whole number"),
    ],
)
def test_a_broadcast_that_breaks_a_rule_is_told_which(rounds, says):
    with pytest.raises(WrongAnswer, match=says):
        expected.broadcast(rounds, 3, 0)


def test_the_costs_of_schedules_on_two_machines_are_those_of_the_notebook(solved):
    def cost(rounds, latency=0):
        return sum(
            latency + max(len(s) * (1 if a // 4 == b // 4 else 10) for a, b, s, _ in messages)
            for messages in rounds
        )

    near_first = [2, 1, 0]  # the bits of a rank in the order of distances 4, 2, 1 → 1, 2, 4
    swap = [sum(((r >> bit) & 1) << near_first[bit] for bit in range(3)) for r in range(8)]
    levels = [
        [[swap[a], swap[b], [swap[s] for s in shares], how] for a, b, shares, how in messages]
        for messages in solved["halving"](8)
    ]
    assert expected.halving(levels, 8)["rounds"] == 6
    assert cost(solved["halving"](8)) == 86
    assert [cost(levels, latency) for latency in (0, 10, 100)] == [32, 92, 632]


# ---------------------------------------------------------------- data parallel


@given(st.integers(1, 100), st.integers(1, 9), st.integers(0, 50), st.integers(0, 50))
def test_samples_are_shared_out_as_pytorchs_sampler_does(length, ranks, seed, epoch):
    order = np.random.default_rng(seed + epoch).permutation(length)
    found = []
    for rank in range(ranks):
        theirs = DistributedSampler(range(length), ranks, rank, shuffle=False)
        mine = expected.indices(length, ranks, rank, seed, epoch)
        assert mine == [int(order[i]) for i in theirs]
        found += mine
    assert set(found) == set(range(length)) and len(found) == -(-length // ranks) * ranks


@settings(max_examples=30)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=8).filter(any))
def test_with_the_factors_the_mean_of_means_is_the_mean(counts):
    numbers = np.random.default_rng(0)
    samples = [numbers.standard_normal(count) for count in counts]
    means = [s.mean() if len(s) else 0.0 for s in samples]
    weighted = np.mean([f * m for f, m in zip(expected.factors(counts), means, strict=True)])
    assert weighted == pytest.approx(np.concatenate(samples).mean(), abs=1e-12)


@given(st.integers(0, 10_000), st.sampled_from(["plain", "tied", "unused"]))
@settings(max_examples=15, deadline=None)
def test_the_least_waiting_is_that_of_the_best_of_all_plans(seed, kind):
    numbers = np.random.default_rng(seed)
    sizes, log = backward(numbers, 1, 8, kind == "tied", kind == "unused")
    keep = list(sizes)[:5]
    sizes, log = {name: sizes[name] for name in keep}, [row for row in log if row[1] in keep]
    ready = expected.ready_times(sizes, log)
    latency, rate = float(numbers.uniform(0, 2)), float(numbers.uniform(50, 2000))

    def plans():
        for order in itertools.permutations(sizes):
            for cuts in itertools.product([False, True], repeat=len(order) - 1):
                plan = [[order[0]]]
                for name, cut in zip(order[1:], cuts, strict=True):
                    if cut:
                        plan.append([])
                    plan[-1].append(name)
                yield plan

    best = min(expected.finish(plan, sizes, ready, latency, rate) for plan in plans())
    assert expected.soonest(sizes, ready, latency, rate) == pytest.approx(best)


def test_the_plans_of_the_table_wait_as_it_says(solved, wrong):
    exercise = find("parallel.buckets")

    def worst(plan, case=exercise.cases[-1]):
        return [
            max(
                expected.buckets(plan(*asked), *asked)["waiting over the least"]
                for asked in bucket_questions(case.sizes, np.random.default_rng(seed))
            )
            for seed in range(12)
        ]

    assert 1 <= min(worst(solved["buckets"])) <= max(worst(solved["buckets"])) < 1.5
    one, each = (wrong[f"buckets_one_for_{n}"]["buckets"] for n in ("all", "each"))
    assert 19 < min(worst(one)) <= max(worst(one)) < 20
    assert 8 < min(worst(each)) <= max(worst(each)) < 11.5

    def of_25_mb(sizes, log, latency, rate):
        ready, plan, filled = expected.ready_times(sizes, log), [[]], 0
        for name in sorted(sizes, key=lambda name: ready[name]):
            if plan[-1] and filled + sizes[name] > 25e6:
                plan, filled = [*plan, []], 0
            plan[-1].append(name)
            filled += sizes[name]
        return plan

    assert 2.2 < min(worst(of_25_mb)) <= max(worst(of_25_mb)) < 3.2


def test_pytorch_fills_buckets_as_the_notebook_says():
    assert torch.distributed._DEFAULT_FIRST_BUCKET_BYTES == 1 << 20
    signature = inspect.signature(torch.nn.parallel.DistributedDataParallel)
    assert signature.parameters["bucket_cap_mb"].default in (None, 25)  # None stands for 25


def test_a_tied_gradient_is_ready_with_its_last_addend_and_an_unused_one_at_once():
    assert expected.ready_times({"a": 1, "b": 1}, [[1.0, "a"], [2.5, "a"]]) == {"a": 2.5, "b": 0.0}


@given(st.integers(2, 3), st.integers(0, 3), st.integers(0, 99))
@settings(max_examples=10, deadline=None)
def test_the_gradients_worked_out_by_hand_are_autograds(ranks, layers, seed):
    numbers = np.random.default_rng(seed)
    given_weights = [numbers.standard_normal((5, 5)) / 2 for _ in range(3 + layers)]
    x = numbers.standard_normal((ranks * 2, 5))
    found = expected.exchange(
        {"x": x} | {f"weights[{i}]": w for i, w in enumerate(given_weights)}, {"ranks": ranks}
    )
    weights = [torch.tensor(w, requires_grad=True) for w in given_weights]
    total = 0.0
    for rank, mine in enumerate(torch.from_numpy(x).tensor_split(ranks)):
        h = torch.tanh(mine @ weights[0])
        for weight in weights[3:]:
            h = torch.tanh(h @ weight)
        total = total + (h @ weights[1 + rank % 2] @ weights[0].T).square().mean() / ranks
    total.backward()
    for i, weight in enumerate(weights):
        assert np.allclose(found[f"weights[{i}].grad"], weight.grad.numpy(), atol=1e-12)


@given(st.lists(st.floats(-9, 9), min_size=1, max_size=12), st.integers(1, 14), st.integers(0, 99))
def test_compressing_loses_nothing_and_keeps_the_least(solved, gradient, k, seed):
    memory = np.random.default_rng(seed).standard_normal(len(gradient)).tolist()
    answer = solved["compress"](list(gradient), list(memory), k)
    assert expected.compress(answer, gradient, memory, k) == {
        "lost": pytest.approx(0, abs=1e-9),
        "held over the least": pytest.approx(1),
    }


def test_a_stale_gradient_runs_away_where_the_notebook_says():
    def last(late, rate, steps=10_000):
        path = [1.0] * (late + 1)
        for _ in range(steps):
            path.append(path[-1] - rate * path[-1 - late])
        return max(abs(w) for w in path[-2 * (2 * late + 1) :])

    for late in (0, 3, 7, 15):
        limit = 2 * np.sin(np.pi / (4 * late + 2))
        assert last(late, 0.98 * limit) < 1e-3 < 1e3 < last(late, 1.02 * limit)
    assert [round(2 * np.sin(np.pi / (4 * late + 2)), 3) for late in (0, 7, 15)] == [2.0, 0.209, 0.101]


def test_the_judge_has_other_sizes_than_the_check():
    from grading.core.judge import judge_cases

    for name in ("collective.all_reduce", "collective.halving", "parallel.exchange"):
        exercise = find(name)
        public, own = (
            {tuple(c.sizes.items()) for c in cases} for cases in (exercise.cases, judge_cases(exercise))
        )
        assert own - public, name
        assert replace(exercise, cases=judge_cases(exercise)).points == exercise.points
