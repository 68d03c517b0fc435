"""Cost models of collectives and the simulator of pipelines, against closed formulas and step-by-step accounts."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.subjects.distributed import costs
from gpulab.subjects.distributed.pipelines import CannotRun, Work, simulate

FAST = costs.Network(1e-6, 100e9)


# ---------------------------------------------------------------- collectives


@given(st.integers(1, 64), st.floats(0, 1e9))
def test_a_ring_sends_two_shares_less_one_each(ranks, size):
    free = costs.Network(0.0, 1.0)
    assert costs.ring_all_reduce(free, ranks, size) == pytest.approx(2 * (ranks - 1) / ranks * size)
    only_messages = costs.Network(1.0, float("inf"))
    assert costs.ring_all_reduce(only_messages, ranks, size) == 2 * (ranks - 1)


@given(st.integers(0, 6), st.floats(1, 1e9))
def test_halving_takes_the_rings_bytes_in_the_trees_messages(power, size):
    ranks = 1 << power
    free, only_messages = costs.Network(0.0, 1.0), costs.Network(1.0, float("inf"))
    assert costs.halving_all_reduce(free, ranks, size) == pytest.approx(
        costs.ring_all_reduce(free, ranks, size)
    )
    assert costs.halving_all_reduce(only_messages, ranks, size) == costs.tree_all_reduce(
        only_messages, ranks, size
    )


def test_trees_win_for_small_arrays_and_rings_for_large_ones():
    small, large = 1_000, 1_000_000_000
    assert costs.tree_all_reduce(FAST, 64, small) < costs.ring_all_reduce(FAST, 64, small)
    assert costs.ring_all_reduce(FAST, 64, large) < costs.tree_all_reduce(FAST, 64, large)


def test_a_hierarchy_spares_the_slow_links():
    inside, between = costs.Network(1e-6, 450e9), costs.Network(5e-6, 50e9)
    flat = costs.ring_all_reduce(between, 32, 1e9)  # a ring is as slow as its slowest link
    assert costs.hierarchical_all_reduce(inside, between, 8, 4, 1e9) < flat / 4
    assert costs.hierarchical_all_reduce(inside, between, 8, 1, 1e9) == costs.ring_all_reduce(inside, 8, 1e9)


def test_sizes_that_are_none_are_refused():
    with pytest.raises(ValueError, match="at least one rank"):
        costs.ring_all_reduce(FAST, 0, 1)
    with pytest.raises(ValueError, match="power of two"):
        costs.halving_all_reduce(FAST, 6, 1)


# ---------------------------------------------------------------- pipelines


def all_forward_first(devices: int, batches: int) -> list[list[Work]]:
    return [
        [Work("F", m) for m in range(batches)] + [Work("B", m) for m in range(batches)]
        for _ in range(devices)
    ]


def one_forward_one_backward(devices: int, batches: int) -> list[list[Work]]:
    orders = []
    for device in range(devices):
        warm = min(devices - 1 - device, batches)
        order = [Work("F", m) for m in range(warm)]
        for m in range(batches - warm):
            order += [Work("F", warm + m), Work("B", m)]
        orders.append(order + [Work("B", m) for m in range(batches - warm, batches)])
    return orders


@given(st.integers(1, 6), st.integers(1, 10))
def test_both_classical_schedules_take_as_long_and_hold_differently_much(devices, batches):
    gpipe = simulate(all_forward_first(devices, batches))
    alternating = simulate(one_forward_one_backward(devices, batches))
    assert gpipe.makespan == alternating.makespan == 2 * (batches + devices - 1)
    assert gpipe.peak == (batches,) * devices
    assert alternating.peak == tuple(min(devices - d, batches) for d in range(devices))
    assert gpipe.bubble == pytest.approx((devices - 1) / (batches + devices - 1))


def test_four_stages_and_eight_micro_batches():
    assert (
        simulate(all_forward_first(4, 8)).makespan == 22 and max(simulate(all_forward_first(4, 8)).peak) == 8
    )
    assert max(simulate(one_forward_one_backward(4, 8)).peak) == 4


def test_no_operation_starts_before_what_it_needs():
    run = simulate(one_forward_one_backward(3, 5), {"F": 1.0, "B": 2.0}, message=0.25)
    stop = {(s.device, s.work.kind, s.work.batch): s.stop for s in run.slots}
    for slot in run.slots:
        assert slot.stop - slot.start == {"F": 1.0, "B": 2.0}[slot.work.kind]
        if slot.work.kind == "F" and slot.device > 0:
            assert slot.start >= stop[slot.device - 1, "F", slot.work.batch] + 0.25
        if slot.work.kind == "B" and slot.device < 2:
            assert slot.start >= stop[slot.device + 1, "B", slot.work.batch] + 0.25
    for device in range(3):
        mine = [s for s in run.slots if s.device == device]
        assert all(a.stop <= b.start for a, b in itertools.pairwise(mine))


def test_two_chunks_a_device_shorten_the_bubble():
    plain = simulate(one_forward_one_backward(2, 4), {"F": 2.0, "B": 2.0})
    forward = [Work("F", m, c) for pair in (0, 2) for c in (0, 1) for m in (pair, pair + 1)]
    backward = [Work("B", m, c) for pair in (0, 2) for c in (1, 0) for m in (pair, pair + 1)]
    chunked = simulate([forward + backward] * 2)
    assert chunked.makespan < plain.makespan


def test_backward_in_two_parts_frees_activations_with_the_second():
    order = [Work("F", 0), Work("B", 0), Work("F", 1), Work("B", 1), Work("W", 0), Work("W", 1)]
    run = simulate([order])
    assert run.makespan == 6 and run.peak == (2,)


@pytest.mark.parametrize(
    ("orders", "words"),
    [
        ([[Work("B", 0), Work("F", 0)]], "device 0 waits forever at operation 0, B of micro-batch 0"),
        ([[Work("F", 0), Work("F", 0), Work("B", 0)]], "does F of micro-batch 0 twice"),
        ([[Work("F", 0)], [Work("F", 0), Work("B", 0)]], "device 0 never does B of micro-batch 0"),
        ([[Work("F", 0), Work("B", 0), Work("X", 0)]], "work of kind 'X'"),
    ],
)
def test_schedules_that_cannot_run_are_refused_with_the_place(orders, words):
    with pytest.raises(CannotRun, match=words):
        simulate(orders)
