"""Replicas behind a router, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab.serving import replicas


def always(replica):
    return lambda blocks, state: replica


def test_a_request_waits_for_the_queue_and_then_for_what_is_not_cached():
    requests = [(0.0, [1, 2, 3, 4]), (0.01, [1, 2, 9]), (1.0, [1, 2, 9])]
    ran = replicas.run(requests, always(1), rate=100.0)
    assert ran.found == (0, 2, 3)
    assert ran.first == pytest.approx((0.04, 0.04, 0.0))  # 0.03 s of queue and one block; then nothing
    assert ran.hits == 5 / 10
    assert ran.mean == pytest.approx(0.08 / 3)


def test_a_block_counts_only_if_all_before_it_are_cached():
    assert replicas.leading([1, 2, 3], {1, 3}) == 1
    assert replicas.leading([], {1}) == 0


def test_of_a_prompt_the_last_blocks_are_forgotten_first():
    seen = []

    def route(blocks, state):
        seen.append(state[0]["cached"])
        return 0

    replicas.run([(0.0, [1, 2, 3]), (1.0, [7, 8]), (2.0, [5])], route, capacity=4)
    assert seen == [[], [1, 2, 3], [1, 2, 7, 8]]


def test_the_router_sees_what_is_still_to_be_computed():
    queued = []

    def route(blocks, state):
        queued.append([each["queued"] for each in state])
        return len(queued) % 2

    replicas.run([(0.0, [1, 2, 3]), (0.01, [4, 5])], route, replicas=2, rate=100.0)
    assert queued == [[0.0, 0.0], [0.0, pytest.approx(2.0)]]


@pytest.mark.parametrize("answer", [4, -1, "0", None])
def test_a_replica_that_does_not_exist_is_named(answer):
    with pytest.raises(ValueError, match="there are replicas 0 to 3"):
        replicas.run([(0.0, [1])], always(answer))


@pytest.mark.parametrize("kind", ["a popular start", "conversations", "both", "all new"])
def test_traffic_is_in_order_of_arrival_and_the_same_for_one_seed(kind):
    one, two = (replicas.traffic(kind, np.random.default_rng(3), 50) for _ in range(2))
    assert one == two and len(one) == 50
    assert [now for now, _ in one] == sorted(now for now, _ in one)
    assert all(blocks for _, blocks in one)
