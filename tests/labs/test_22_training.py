"""Lab 22, project B: plans against a plain search, timetables against their bound, training against autograd."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from gpulab.checks import find  # noqa: E402
from gpulab.checks.spec import WrongAnswer  # noqa: E402
from gpulab.content.lab_22_capstones.references.training import interval, search, timetable, train  # noqa: E402
from gpulab.content.lab_22_capstones.training import (  # noqa: E402
    CLUSTER,
    SEVERAL,
    activations,
    micro_batches,
    model,
    one_by_one,
    tables,
    train_case,
)
from gpulab.simulator import hardware  # noqa: E402
from gpulab.subjects.distributed import runs  # noqa: E402
from gpulab.subjects.distributed.layouts import WAYS, NoLayout, cost  # noqa: E402
from gpulab.subjects.distributed.runs import days, saving  # noqa: E402
from gpulab.subjects.models import known  # noqa: E402
from grading.cases.lab_22_training import CASES  # noqa: E402
from tests.labs import notebooks  # noqa: E402

LAB = "22_capstones"
LITTLE = {"layers": 4, "width": 1024, "heads": 4, "sequence": 512, "batch": 8, "tokens": 1e9}


@pytest.fixture(scope="module")
def solved():
    return notebooks.answers(LAB)


@settings(max_examples=15, deadline=None)
@given(
    nodes=st.sampled_from([1, 2]),
    memory=st.floats(0.3e9, 3e9),
    half=st.sampled_from([100, 4000]),
    between=st.sampled_from([1e9, 50e9]),
)
def test_the_best_plan_is_the_best_of_all_plans(nodes, memory, half, between):
    cluster = CLUSTER | {"nodes": nodes, "per_node": 2, "memory": memory, "half": half, "between": between}
    gpus, found = 2 * nodes, []
    for t, p, d, micro in itertools.product(*[(1, 2, 4, 8)] * 4):
        for order, again in itertools.product(itertools.permutations(WAYS), range(5)):
            made = {"tensor": t, "pipeline": p, "data": d, "micro": micro, "order": order, "recompute": again}
            try:
                costs = cost(LITTLE, cluster, made)
            except NoLayout:
                continue
            if t * p * d == gpus and costs.memory <= memory:
                found.append(costs.seconds)
    best = search(LITTLE, cluster)
    assert ("tensor" in best) == bool(found)
    if found:
        assert cost(LITTLE, cluster, best).seconds == pytest.approx(min(found))


def test_recomputation_costs_a_third_of_the_compute_and_frees_all_but_the_inputs():
    layout = {"tensor": 1, "pipeline": 1, "data": 1, "micro": 1, "order": WAYS}
    cluster = CLUSTER | {"nodes": 1, "per_node": 1}
    none, every = (cost(LITTLE, cluster, layout | {"recompute": n}) for n in (0, 4))
    assert every.parts["compute"] == pytest.approx(none.parts["compute"] * 4 / 3)
    unit = LITTLE["sequence"] * LITTLE["width"]
    assert none.memory - every.memory == (34 * 4 - 2 * 4 - 34) * unit
    with pytest.raises(NoLayout, match="recompute"):
        cost(LITTLE, cluster, layout | {"recompute": 5})


def test_the_interval_wastes_least_and_the_square_root_hardly_more():
    asked, changes = SEVERAL[1]
    one, cluster = model(*asked), CLUSTER | changes
    plan = search(one, cluster)
    best = days(one, cluster, plan)
    assert interval(one, cluster) == plan["interval"]
    for factor in (0.9, 1.1):
        assert days(one, cluster, plan | {"interval": factor * plan["interval"]}) > best
    root = math.sqrt(2 * saving(one, cluster) * cluster["mtbf"] / 128)
    assert days(one, cluster, plan | {"interval": root}) < 1.001 * best


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 5), st.sampled_from([0, 0.5, 3]))
def test_timetables_keep_to_the_room_and_above_the_bound(devices, batches, room, message):
    times = {"F": 1, "B": 2, "W": 1}
    orders = notebooks.answers(LAB)["timetable"](devices, batches, times, message, room)
    assert timetable(orders, devices, batches, times, message, room)["above the bound"] >= 0
    with pytest.raises(WrongAnswer, match="there is room for"):
        timetable(orders, devices, batches, times, message, 0)


def test_the_plans_of_the_reports_are_those_of_the_search(solved):
    code = next(c.source for c in notebooks.cells(LAB, "code") if c.source.startswith("h100 ="))
    names = {"hardware": hardware, "known": known, "runs": runs}
    exec(code, names)
    gpt3, cluster = names["MODEL"], names["CLUSTER"]
    first = solved["plan"](gpt3, cluster)

    def found(**changes):
        here = cluster | changes
        plan = solved["plan"](gpt3, here)
        layout = tuple(plan[name] for name in ("tensor", "pipeline", "data", "micro", "recompute"))
        return (*layout, round(days(gpt3, here, plan)), round(cost(gpt3, here, plan).memory / 1e9, 1))

    assert found() == (4, 16, 1, 2, 1, 170, 78.5) and round(first["interval"]) == 26_347
    assert found(between=5e9) == (4, 16, 1, 2, 1, 178, 78.5)
    assert found(between=5e8) == (8, 8, 1, 4, 2, 225, 78.5)
    assert found(memory=64e9) == (4, 16, 1, 4, 5, 183, 62.1)
    assert found(rate=cluster["rate"] * 2 / 3)[-2] == 250
    slow = cluster | {"between": 5e8}
    assert round(days(gpt3, slow, first)) == 260
    parts = [cost(gpt3, slow, plan).parts for plan in (first, solved["plan"](gpt3, slow))]
    assert [round(each["pipeline"], 1) for each in parts] == [27.3, 13.6]
    assert round(parts[1]["tensor"] - parts[0]["tensor"], 1) == 3.4


def test_training_in_numpy_is_training_with_autograd():
    case = train_case(3, 12, 8, 10, 2, 2)
    numbers = np.random.default_rng(1)
    table, weight = numbers.standard_normal((10, 8)), numbers.standard_normal((3, 8, 8)) / 3
    tokens, labels = numbers.integers(0, 10, (2, 12))
    found = train({"table": table, "weight": weight, "tokens": tokens, "labels": labels}, case.sizes)
    leaves = [torch.tensor(x, requires_grad=True) for x in (table, weight)]
    for _ in range(2):
        h = leaves[0][torch.tensor(tokens)]
        for w in leaves[1]:
            h = h + torch.tanh(h @ w)
        torch.nn.functional.cross_entropy(h @ leaves[0].T, torch.tensor(labels)).backward()
        with torch.no_grad():
            for leaf in leaves:
                leaf -= 2 * leaf.grad
                leaf.grad = None
    np.testing.assert_allclose(found["new_table"][0], leaves[0].detach(), rtol=1e-8)
    np.testing.assert_allclose(found["new_table"][1], table)
    np.testing.assert_allclose(found["new_weight"], leaves[1].detach(), rtol=1e-8)


def test_the_table_of_bytes_and_messages():
    sizes = find("training_project.train").cases[-1].sizes
    assert activations(sizes) == tables(sizes, 2) == 98_304 and one_by_one(sizes) == 98
    assert micro_batches(sizes) == 96
    points = [find(f"training_project.{name}") for name in ("plan", "timetable", "train")]
    assert sum(e.correct_points for e in points) == 40 and sum(e.points for e in points) == 80


def test_to_carry_the_weights_to_one_rank_and_back_is_dearer_than_naive():
    for sizes in (find("training_project.train").cases[-1].sizes, CASES["training_project.train"][-1].sizes):
        width, words, ranks = (int(sizes[name]) for name in ("width", "words", "ranks"))
        carried = 4 * width * (2 * (ranks - 1) * width + words)
        assert carried > activations(sizes) + tables(sizes, 6)
        assert int(sizes["tokens"]) * int(sizes["steps"]) < width, "a link costs less than moving a weight"
