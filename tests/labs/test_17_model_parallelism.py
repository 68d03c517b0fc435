"""Lab 17: what its tables, texts and sample answer state is so, by the simulator, by models and on real ranks."""

from __future__ import annotations

import ast
import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab.checks import registry
from gpulab.checks.spec import WrongAnswer
from gpulab.content.lab_17_model_parallelism.exercises import (
    CLUSTER,
    MODELS,
    OTHERS,
    SEVERAL,
    block,
    cut_questions,
)
from gpulab.content.lab_17_model_parallelism.references.exercises import (
    best,
    cut,
    gelu,
    least,
    least_held,
    mlp,
    schedule,
    weights_held,
    zero_bubble,
)
from gpulab.content.lab_17_model_parallelism.references.exercises import layout as judged
from gpulab.simulator import hardware
from gpulab.subjects import distributed
from gpulab.subjects.distributed import costs
from gpulab.subjects.distributed.layouts import WAYS, NoLayout, cost
from gpulab.subjects.distributed.pipelines import Run, Work, simulate
from tests.labs import notebooks

LAB = "17_model_parallelism"


@pytest.fixture(scope="module")
def solved():
    return notebooks.answers(LAB)


def given_in_the_notebook(*names: str) -> dict[str, Any]:
    """Functions of the notebooks that learners are given, by name, and the constants beside them."""
    found = dict(itertools=itertools, math=math, torch=torch, Work=Work, simulate=simulate)
    found |= {"dist": torch.distributed, "F": torch.nn.functional, "costs": costs, "hardware": hardware}
    for cell in notebooks.cells(LAB, "code"):
        if any(f"def {name}(" in cell.source for name in names) or "TOKENS, WIDTH, HIDDEN" in cell.source:
            exec("".join(_definitions(cell.source)), found)
    return found


def _definitions(source: str) -> list[str]:
    """Constants and functions of a cell, without what it runs."""
    kept = []
    for node in ast.parse(source).body:
        constant = isinstance(node, ast.Assign) and all(n.id.isupper() for n in _names(node))
        if isinstance(node, ast.FunctionDef) or constant:
            kept.append(ast.get_source_segment(source, node) + "\n\n")
    return kept


def _names(node):
    return [n for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)]


def carried_out(orders: list[list[str]], **times: float) -> Run:
    return simulate([[Work(word[0], int(word[1:])) for word in order] for order in orders], times)


# ---------------------------------------------------------------- pipelines


def test_it_is_remembered_by_half_the_memory_at_the_same_steps(solved):
    gpipe = given_in_the_notebook("gpipe")["gpipe"]
    assert schedule(gpipe(4, 8), 4, 8) == {"steps": 22, "peak micro-batches": 8}
    assert schedule(solved["schedule"](4, 8), 4, 8) == {"steps": 22, "peak micro-batches": 4}


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 8), st.integers(0, 12))
def test_the_bounds_are_met_for_any_number_of_devices(devices, more):
    solved = notebooks.answers(LAB)
    batches = devices + more
    plain = schedule(solved["schedule"](devices, batches), devices, batches)
    assert plain == {"steps": 2 * (batches + devices - 1), "peak micro-batches": devices}
    split = zero_bubble(solved["zero_bubble"](devices, batches), devices, batches)
    assert split == {"steps": 3 * batches + devices - 1, "peak micro-batches": devices}


def test_the_table_of_schedules_is_what_the_simulator_says(solved):
    interleaved = given_in_the_notebook("interleaved")["interleaved"]
    one = carried_out(solved["schedule"](4, 8), F=1, B=2)
    chunks = simulate(interleaved(4, 8, 2), {"F": 0.5, "B": 1})
    halves = carried_out(solved["zero_bubble"](4, 8))
    assert (one.makespan, chunks.makespan, halves.makespan) == (33, 28.5, 27)
    assert [round(100 * run.bubble, 1) for run in (one, chunks, halves)] == [27.3, 15.8, 11.1]
    assert (max(one.peak), max(chunks.peak) / 2, max(halves.peak)) == (4, 5.5, 4)


def test_interleaving_divides_the_bubble():
    interleaved = given_in_the_notebook("interleaved")["interleaved"]
    for p, m, v in ((4, 8, 2), (2, 8, 3), (4, 8, 4), (3, 6, 1)):
        assert simulate(interleaved(p, m, v)).bubble == pytest.approx((p - 1) / (v * m + p - 1))


def test_so_many_micro_batches_are_enough_for_five_percent():
    assert 7 / (133 + 7) <= 0.05 < 7 / (132 + 7)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=9), st.integers(1, 9))
def test_the_least_slowest_stage_is_that_of_all_cuts(times, devices):
    devices = min(devices, len(times))
    cuts = itertools.combinations(range(1, len(times)), devices - 1)
    tried = [[0, *cut, len(times)] for cut in cuts]
    slowest = [max(sum(times[a:b]) for a, b in itertools.pairwise(cut)) for cut in tried]
    assert least(times, devices) == min(slowest)


# ---------------------------------------------------------------- layouts


def test_the_naive_layout_is_as_slow_as_the_table_says():
    naive = {"tensor": 8, "pipeline": 2, "data": 2, "micro": 1, "order": ["tensor", "data", "pipeline"]}
    assert judged(naive, MODELS["large"], CLUSTER)["slower than the best"] == pytest.approx(59, abs=0.5)


def test_the_best_layout_depends_on_memory_and_model():
    found = {
        (name, memory): best(MODELS[name], CLUSTER | {"memory": memory})
        for name in MODELS
        for memory in (40e9, 80e9)
    }
    assert found["small", 40e9] > found["small", 80e9] and found["large", 40e9] > found["large", 80e9]


@pytest.mark.parametrize("clusters", [SEVERAL, OTHERS])
def test_no_shorter_search_finds_all_of_the_best_layouts(clusters):
    def worst(**fixed):
        return max(100 * (searched(*asked, **fixed) / searched(*asked) - 1) for asked in clusters)

    assert worst(micros=(1,)) > 50
    for order in itertools.permutations(WAYS):
        assert worst(orders=(order,)) > 20, order


def searched(name, changes, micros=None, orders=None):
    """The least seconds of a step among layouts with these micro-batches and orders only."""
    model, cluster = MODELS[name], CLUSTER | changes
    gpus, found = cluster["nodes"] * cluster["per_node"], []
    parts = [n for n in range(1, gpus + 1) if gpus % n == 0]
    powers = tuple(2**k for k in range(9))
    for t, p, micro in itertools.product(parts, parts, micros or powers):
        for order in orders or itertools.permutations(WAYS):
            choice = {"tensor": t, "pipeline": p, "data": gpus // (t * p), "micro": micro, "order": order}
            try:
                costs = cost(model, cluster, choice)
            except NoLayout:
                continue
            if costs.memory <= cluster["memory"]:
                found.append(costs.seconds)
    return min(found)


@pytest.fixture
def real_cluster():
    h100, between = hardware.find("H100"), hardware.link("InfiniBand NDR")
    return CLUSTER | {
        "memory": float(h100.dram_bytes),
        "rate": 0.6 * float(h100.peak("float16", tensor=True)),
        "inside": float(hardware.link("NVLink 4").per_direction),
        "between": float(between.per_direction),
    }


def test_what_the_text_says_of_other_clusters_is_what_the_search_finds(solved, real_cluster):
    def found(model=MODELS["large"], **changes):
        best_one = solved["layout"](model, real_cluster | changes)
        return tuple(best_one[key] for key in (*WAYS, "micro")), best_one["order"]

    data_first = ("tensor", "data", "pipeline")
    assert found() == found(nodes=8, per_node=4) == ((2, 8, 2, 1), data_first)
    assert found(memory=40e9)[0] == (4, 8, 1, 1)
    assert found(memory=float(hardware.find("H200").dram_bytes))[0] == (1, 8, 4, 1)
    assert found(between=5e9) == ((4, 4, 2, 2), data_first)
    assert found(MODELS["long"], between=5e9) == ((1, 8, 4, 1), ("tensor", "pipeline", "data"))


def test_stages_of_the_good_layout_send_fewer_bytes_than_replicas_and_take_longer(real_cluster):
    good = {"tensor": 4, "pipeline": 4, "data": 2, "micro": 1, "order": ("tensor", "data", "pipeline")}
    parts = cost(MODELS["large"], real_cluster | {"latency": 0.0}, good).parts
    stages = parts["pipeline"] * real_cluster["between"]
    replicas = parts["data"] * real_cluster["inside"]
    assert stages / replicas == pytest.approx(0.5, abs=0.05) and parts["pipeline"] > parts["data"]


# ---------------------------------------------------------------- inside a layer


def test_the_references_of_a_cut_layer_are_those_of_autograd():
    numbers = np.random.default_rng(1)
    x, slope = numbers.standard_normal((2, 5, 8))
    a, b = numbers.standard_normal((3, 8, 4)), numbers.standard_normal((3, 4, 8))
    leaves = [torch.tensor(v, requires_grad=True) for v in (x, a, b)]
    tx, ta, tb = leaves
    y = torch.nn.functional.gelu(tx @ torch.cat(list(ta), 1)) @ torch.cat(list(tb), 0)
    y.backward(torch.tensor(slope))
    found = mlp({"x": x, "a": a, "b": b, "slope": slope}, {})
    for name, right in zip(
        ("y", "dx", "da", "db"), (y.detach(), *(leaf.grad for leaf in leaves)), strict=True
    ):
        assert np.allclose(found[name], right.numpy())
    assert np.allclose(gelu(x)[0], torch.nn.functional.gelu(torch.tensor(x)).numpy())


def test_gathering_logits_takes_a_sixth_of_the_vocabulary_as_many_bytes():
    free, words = costs.Network(0.0, 1.0), 50_304
    for ranks in (2, 4, 8):
        gathered = costs.ring_all_gather(free, ranks, 4 * words)
        assert gathered / (3 * costs.ring_all_reduce(free, ranks, 4)) == pytest.approx(8384)


def test_all_reduces_overtake_products_where_a_layer_leaves_its_node():
    inside = costs.Network(5e-6, float(hardware.link("NVLink 4").per_direction))
    between = costs.Network(5e-6, float(hardware.link("InfiniBand NDR").per_direction))
    names = given_in_the_notebook("layer_times")
    names.update(inside=inside, between=between)  # its own globals
    layer_times = names["layer_times"]
    products, reduces = layer_times(8)
    assert 0.4 < reduces / products < 0.5
    assert products / (products + reduces) == pytest.approx(2 / 3, abs=0.02)
    more_products, more_reduces = layer_times(16)
    assert more_products / (more_products + more_reduces) == pytest.approx(2 / 5, abs=0.02)
    assert (products + reduces) / (more_products + more_reduces) == pytest.approx(1.2, abs=0.05)


def test_an_all_reduce_in_levels_over_two_nodes_takes_the_time_that_the_reason_says():
    inside = costs.Network(5e-6, float(hardware.link("NVLink 4").per_direction))
    between = costs.Network(5e-6, float(hardware.link("InfiniBand NDR").per_direction))
    one = costs.ring_all_reduce(inside, 8, 100e6)
    levels = costs.hierarchical_all_reduce(inside, between, per_node=8, nodes=2, size=100e6)
    assert (round(1e3 * one, 2), round(1e3 * (levels - one), 2)) == (0.46, 0.26)
    reason = registry.predictions()["parallel.across"].reason
    assert "0.46 ms" in reason and "0.26 ms" in reason


def test_the_colleagues_layer_is_off_by_the_bias_of_the_other_ranks():
    names = given_in_the_notebook("whole_layer", "theirs", "their_test")
    fresh = [distributed.run(names["their_test"], ranks, 0.0, show=None)[0] for ranks in (1, 4)]
    assert torch.allclose(*fresh, atol=1e-5)
    one, four = (distributed.run(names["their_test"], ranks, 1.0, show=None)[0] for ranks in (1, 4))
    numbers = torch.Generator().manual_seed(2)
    torch.randn(512, generator=numbers)
    bias = torch.randn(128, generator=numbers)
    assert torch.allclose(four - one, 3 * bias.expand(64, -1), atol=1e-4)
    assert round(float((four - one).abs().max()), 1) == 8.2


# ---------------------------------------------------------------- what to cut


def test_leaving_a_block_whole_on_four_ranks_holds_three_times_more_than_the_least():
    [(modules, ranks), *_] = cut_questions({"kind": "a block"}, np.random.default_rng(1))
    whole = {name: "whole" for name, kind, *_ in modules if kind == "linear"}
    assert ranks == 4
    assert cut(whole, modules, ranks) == {"above the least": 300.0}
    assert least_held(modules, ranks) == (4 * 512 * 512 + 3 * 512 * 2048) / 4


def test_of_three_layers_in_a_row_the_last_two_are_cut_because_the_last_is_the_largest(solved):
    modules = block("chain", 64, 128, 1)
    first = {"first": "column", "second": "row", "third": "whole"}
    last = {"first": "whole", "second": "column", "third": "row"}
    assert solved["cut"](modules, 2) == last
    assert weights_held(last, modules, 2) < weights_held(first, modules, 2)


@pytest.mark.parametrize(
    ("ways", "said"),
    [
        ({"up": "row", "down": "row"}, "its input x is whole"),
        ({"up": "column", "down": "whole"}, "its input gelu is split"),
        ({"up": "whole", "down": "column"}, "needs whole rows"),
        ({"up": "column"}, "for each of up, down"),
        ({"up": "column", "down": "rows"}, "a way is"),
    ],
)
def test_a_plan_that_gives_a_module_what_it_cannot_take_is_refused(ways, said):
    with pytest.raises(WrongAnswer, match=said):
        cut(ways, block("plain", 64, 128, 1), 2)


def test_a_rule_by_order_and_names_cuts_what_it_was_made_for_and_a_router_wrongly(solved):
    def by_name(modules):
        linears = [name for name, kind, *_ in modules if kind == "linear"]
        return {name: "row" if name in ("o", "down") else "column" for name in linears}

    for kind in ("attention", "gated"):
        modules = block(kind, 512, 1024, 8)
        assert by_name(modules) == solved["cut"](modules, 4)
    with pytest.raises(WrongAnswer, match="softmax needs whole rows"):
        cut(by_name(block("routed", 512, 1024, 8)), block("routed", 512, 1024, 8), 4)
