"""Lab 28: what its tables derive is counted, shortcuts do not pass, and symmetric memory delivers late."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest
import torch.distributed as dist

import gpulab
from gpulab import distributed
from gpulab.checks import find
from gpulab.checks.spec import WrongAnswer
from gpulab.content.lab_28_experts_and_disaggregation import experts, fleet
from gpulab.content.lab_28_experts_and_disaggregation.references import experts as plans
from gpulab.content.lab_28_experts_and_disaggregation.references import fleet as right
from gpulab.subjects.distributed import symmetric
from gpulab.subjects.serving import replicas
from tests.labs import notebooks

LAB = "28_experts_and_disaggregation"


@pytest.fixture(scope="module")
def solved():
    return notebooks.answers(LAB)


# ---------------------------------------------------------------- experts


@pytest.mark.parametrize("layers", [1, 2, 5])
def test_alternating_is_the_least_with_equal_times_and_layer_by_layer_is_not(layers, solved):
    times = dict.fromkeys(experts.PARTS, 4)
    by_layer = [
        [f"{kind}{n}.{b}" for n in range(layers) for b in (0, 1) for kind in kinds] for kinds in ("AE", "DC")
    ]
    assert plans.least_time(layers, times) == 4 * (4 * layers + 1)
    assert plans.carried_out(solved["overlap"](layers, times), layers, times) == 4 * (4 * layers + 1)
    assert plans.carried_out(by_layer, layers, times) == 4 * (6 * layers + 1)


def test_the_least_time_is_that_of_trying_all_orders():
    times = {"attention": 3, "dispatch": 5, "experts": 2, "combine": 4}
    done = []
    for turns in product((0, 1), repeat=8):
        if sum(turns) == 4:
            at = [0, 0]
            words: list[list[str]] = [[], []]
            for batch in turns:
                words["ADEC"[at[batch]] in "DC"].append(f"{'ADEC'[at[batch]]}0.{batch}")
                at[batch] += 1
            done.append(plans.carried_out(words, 1, times))
    assert min(done) == plans.least_time(1, times)


def test_an_expert_on_no_gpu_is_named():
    with pytest.raises(WrongAnswer, match="expert 2 is on no GPU"):
        plans.place([[0], [1]], [1, 1, 1], 2, 2)


def test_every_budget_of_dispatch_is_below_what_moving_the_experts_costs():
    sizes = find("experts.dispatch").cases[-1].sizes
    moved = 2 * 2 * experts.EXPERTS * 4 * int(sizes["width"]) ** 2
    naive = find("experts.dispatch").budgets[0].naive_for(sizes)
    assert naive is not None and moved > naive > find("experts.dispatch").budgets[0].limit_for(sizes)


def test_nothing_of_a_put_is_there_before_its_flag_was_waited_for():
    def early():
        memory = symmetric.Memory(1, 2)
        if dist.get_rank() == 0:
            memory.put(1, 0, memory.slots[0] + 7)
            memory.quiet()
            return None
        before = memory.slots[0].tolist()
        memory.wait((0, 0))
        return before, memory.slots[0].tolist()

    assert distributed.run(early, 2)[1] == ([0.0, 0.0], [7.0, 7.0])


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="a slot holds 3 numbers"):
        symmetric.Memory(2, 3).put(1, 0, symmetric.Memory(1, 2).slots[0])


# ---------------------------------------------------------------- fleets


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", fleet.POOLS)
def test_there_is_always_a_plan_and_the_other_way_is_never_cheaper(kind, seed):
    for load, times, limits in fleet.pools_questions({"kind": kind}, np.random.default_rng(seed)):
        plan = right.best_plan(load, times, limits)
        assert right.pools(plan, load, times, limits) == {"surplus": 0}
        if sum(plan[1:]) > len(plan) - 1:
            place = plan.index(max(plan[1:]), 1)
            with pytest.raises(WrongAnswer, match="the limit is"):
                right.pools([*plan[:place], plan[place] - 1, *plan[place + 1 :]], load, times, limits)


@pytest.mark.parametrize("seed", range(4))
def test_neither_matches_nor_queues_alone_make_a_good_router(seed):
    def queue(blocks, state):
        return min(range(4), key=lambda r: state[r]["queued"])

    def match(blocks, state):
        found = [replicas.leading(blocks, set(each["cached"])) for each in state]
        return max(range(4), key=lambda r: (found[r], -state[r]["queued"]))

    worst = dict.fromkeys((queue, match), 0.0)
    for kind in ("all new", "conversations", "both", "a popular start"):
        requests = replicas.traffic(kind, np.random.default_rng(seed))
        best = replicas.run(requests, right.cheapest).mean
        for router in worst:
            worst[router] = max(worst[router], replicas.run(requests, router).mean / best)
    assert min(worst.values()) > find("fleet.route").budgets[0].naive


@pytest.mark.parametrize("tree", fleet.TREES)
@pytest.mark.parametrize("secret", range(3))
def test_judging_siblings_keeps_more_than_looking_for_what_was_drawn(tree, secret):
    def drawn(tree, q, p, choose):
        node, kept = -1, []
        while node is not None:
            kept.append(choose(p[node + 1]))
            node = next((i for i, row in enumerate(tree) if row == [node, kept[-1]]), None)
        return kept

    target, draft = right.pair("alike", secret)
    outcomes = [right._outcomes(fleet.TREES[tree], target, draft, rule) for rule in (right.judged, drawn)]
    assert right._mean(outcomes[0]) > 1.02 * right._mean(outcomes[1])


@pytest.mark.parametrize("seed", range(6))
def test_a_fixed_rule_for_versions_is_above_the_budget_where_a_sync_is_dear(seed):
    asked = fleet.rollouts_questions({"kind": "dear sync"}, np.random.default_rng(seed))
    limit = find("fleet.rollouts").budgets[0].naive
    for rule in (
        lambda batches, stale: list(range(batches)),
        lambda batches, stale: [max(0, k - stale) for k in range(batches)],
    ):
        above = [right.rollouts(rule(b, s), b, times, s)["above the least"] for b, times, s in asked]
        assert max(above) > limit


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["a sign", "a high bit", "in the sums of rows", "in the corner"])
def test_one_flip_makes_one_row_and_one_column_wrong(kind, seed):
    for c, tolerance in fleet.mend_questions({"kind": kind}, np.random.default_rng(seed)):
        for lines in (c, list(zip(*c, strict=True))):
            assert sum(abs(sum(line[:-1]) - line[-1]) > tolerance for line in lines) == 1


def test_a_plan_that_misses_a_number_says_which():
    with pytest.raises(WrongAnswer, match=r"the number at \[0, 3\] of the box is read 0 times"):
        right.reads([["a", [0, 0], [2, 3], [0, 0]]], [["a", [0, 0], [2, 8]]], [[0, 0], [2, 4]])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "name", ["fleet.pools", "fleet.rollouts", "fleet.mend", "fleet.reads", "fleet.verify"]
)
def test_solutions_pass_for_other_contents(name, seed, solved):
    exercise = find(name)
    cases = tuple(dataclasses.replace(c, name=f"{c.name}, {seed}") for c in exercise.cases)
    verdict = gpulab.check(dataclasses.replace(exercise, cases=cases), solved[name.split(".")[1]])
    assert verdict.passed, str(verdict)
