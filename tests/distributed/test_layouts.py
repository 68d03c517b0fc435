"""Layouts of ranks: who stands in which group, and what a step costs, against accounts by hand."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.subjects.distributed.layouts import WAYS, NoLayout, cost, crosses, groups

MODEL = {"layers": 8, "width": 1024, "heads": 16, "sequence": 512, "batch": 32}
CLUSTER = {
    "nodes": 2,
    "per_node": 4,
    "memory": 16e9,
    "rate": 1e14,
    "half": 0,
    "inside": 1e11,
    "between": 1e10,
    "latency": 0.0,
}
PLAIN = {"tensor": 2, "pipeline": 2, "data": 2, "micro": 1, "order": WAYS}


@given(
    st.tuples(*[st.integers(1, 4)] * 3),
    st.sampled_from(list(itertools.permutations(WAYS))),
    st.sampled_from(WAYS),
)
def test_the_groups_along_a_way_hold_every_rank_once(sizes, order, along):
    found = groups(sizes, order, along)
    assert sorted(itertools.chain(*found)) == list(range(sizes[0] * sizes[1] * sizes[2]))
    assert {len(group) for group in found} == {sizes[WAYS.index(along)]}


def test_the_first_way_of_the_order_has_neighbouring_ranks():
    assert groups((2, 2, 2), ("tensor", "pipeline", "data"), "tensor") == ((0, 1), (2, 3), (4, 5), (6, 7))
    assert groups((2, 2, 2), ("data", "pipeline", "tensor"), "tensor") == ((0, 4), (1, 5), (2, 6), (3, 7))
    assert not crosses((2, 2, 2), ("tensor", "pipeline", "data"), "tensor", 4)
    assert crosses((2, 2, 2), ("data", "pipeline", "tensor"), "tensor", 4)
    assert crosses((3, 1, 2), ("tensor", "pipeline", "data"), "tensor", 2)  # 0, 1 | 2 stands alone


def test_the_parts_of_a_step_are_those_of_the_formulas():
    found = cost(MODEL, CLUSTER, PLAIN)
    parameters, batches, activation = 12 * 8 * 1024**2, 16, 2 * 512 * 1024
    compute = 6 * parameters * 512 * batches / 4 / 1e14
    assert found.parts["compute"] == pytest.approx(compute)
    assert found.parts["bubble"] == pytest.approx(compute / 16)
    # 17 slots of 4 layers with 4 all-reduces: a ring of two sends each half twice
    assert found.parts["tensor"] == pytest.approx(17 * 4 * 4 * activation / 1e11)
    assert found.parts["pipeline"] == pytest.approx(17 * 2 * activation / 2 / 1e11)
    assert found.parts["data"] == pytest.approx(2 * parameters / 4 / 1e10)  # the last way crosses
    assert found.seconds == pytest.approx(sum(found.parts.values()))
    assert found.memory == pytest.approx(16 * parameters / 4 + 34 * 512 * 1024 * 4 / 2 * 2)


def test_small_micro_batches_compute_slowly_and_large_ones_need_memory():
    slow = CLUSTER | {"half": 256}
    one, four = cost(MODEL, slow, PLAIN), cost(MODEL, slow, PLAIN | {"micro": 4})
    assert one.parts["compute"] == pytest.approx(2 * cost(MODEL, CLUSTER, PLAIN).parts["compute"])
    assert four.parts["compute"] < one.parts["compute"] and four.memory > one.memory
    assert four.parts["bubble"] > one.parts["bubble"] / 2


def test_one_gpu_alone_talks_to_nobody():
    alone = {"tensor": 1, "pipeline": 1, "data": 1, "micro": 2, "order": WAYS}
    parts = cost(MODEL, CLUSTER | {"nodes": 1, "per_node": 1}, alone).parts
    assert [way for way, seconds in parts.items() if seconds] == ["compute"]


@pytest.mark.parametrize(
    "change, said",
    [
        ({"data": 4}, "there are 8 GPUs"),
        ({"micro": 3}, "micro-batches of 3"),
        ({"micro": 0}, "whole number of at least 1"),
        ({"tensor": True}, "whole number of at least 1"),
        ({"order": ("tensor", "data")}, "each of tensor, pipeline, data once"),
    ],
)
def test_numbers_that_do_not_go_together_are_refused(change, said):
    with pytest.raises(NoLayout, match=said):
        cost(MODEL, CLUSTER, PLAIN | change)


def test_heads_and_layers_are_dealt_out_evenly_or_not_at_all():
    with pytest.raises(NoLayout, match="10 heads"):
        cost(MODEL | {"heads": 10}, CLUSTER, PLAIN | {"tensor": 4, "pipeline": 1})
    with pytest.raises(NoLayout, match="9 layers"):
        cost(MODEL | {"layers": 9}, CLUSTER, PLAIN)
