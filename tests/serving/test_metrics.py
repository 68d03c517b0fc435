"""Metrics and queues: by hand, and against theory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.subjects import serving
from gpulab.subjects.serving import SLO, Life, Machine, Request, metrics, queues


def life(*tokens, arrival=1.0, output=None):
    return Life(Request(0, arrival, 1, output or len(tokens)), tokens=list(tokens))


def test_a_life_by_hand():
    one = life(3.0, 3.5, 5.0)
    assert (metrics.ttft(one), metrics.latency(one)) == (2.0, 4.0)
    assert (metrics.tpot(one), metrics.gaps(one)) == (1.0, [0.5, 1.5])
    assert metrics.tpot(life(2.0)) == 0


def test_an_objective_is_kept_when_all_its_limits_are():
    one = life(3.0, 3.5, 5.0)
    assert SLO(ttft=2, tpot=1, latency=4, gap=1.5).kept(one)
    for tight in (SLO(ttft=1.9), SLO(tpot=0.9), SLO(latency=3.9), SLO(gap=1.4)):
        assert not tight.kept(one)
    assert not SLO().kept(life(3.0, output=2))


def test_goodput_counts_who_kept_the_objective_per_second_of_the_run():
    trace = [Request(n, 0.0, 1, 2) for n in range(4)]
    run = serving.run(
        Machine(1, 9), trace, lambda state: {"admit": [s.number for s in state.waiting[: state.free_slots]]}
    )
    assert metrics.goodput(run, SLO(ttft=3)) == 2 / 8  # first tokens at 1, 3, 5, 7
    assert metrics.attainment(run, SLO(ttft=3)) == 0.5
    assert metrics.throughput(run) == 1
    assert metrics.summary(run, SLO(ttft=3))["TTFT p99"] == 7


def test_percentiles_are_values_that_occurred():
    values = [15, 20, 35, 40, 50]
    assert [metrics.percentile(values, p) for p in (5, 30, 40, 50, 100)] == [15, 20, 20, 35, 50]
    assert metrics.percentile(range(1, 1001), 99.9) == 999
    assert metrics.percentile([7], 99) == 7
    for wrong in (0, 101):
        with pytest.raises(ValueError, match="percentile"):
            metrics.percentile(values, wrong)


@given(st.lists(st.floats(0, 9), min_size=1, max_size=40), st.integers(1, 100))
def test_a_percentile_is_the_smallest_value_that_enough_do_not_exceed(values, percent):
    found = metrics.percentile(values, percent)
    assert 100 * sum(v <= found for v in values) >= percent * len(values)
    assert 100 * sum(v < found for v in values) < percent * len(values)


def test_a_queue_waits_as_pollaczek_and_khinchine_say():
    numbers = np.random.default_rng(0)
    arrivals = np.cumsum(numbers.exponential(1.0, 200_000))
    for services, spread in ((numbers.exponential(0.7, 200_000), 1), (np.full(200_000, 0.7), 0)):
        served = queues.first_come_first_served(arrivals, services)
        mean = np.mean([each.wait for each in served])
        assert mean == pytest.approx(0.7 * 0.7 / 0.3 * (1 + spread) / 2, rel=0.08)


def test_customers_there_are_their_rate_times_their_stay():
    numbers = np.random.default_rng(1)
    arrivals = np.cumsum(numbers.exponential(1.0, 5000))
    served = queues.first_come_first_served(arrivals, numbers.exponential(1.5, 5000), servers=2)
    end = max(each.stop for each in served)
    stay = np.mean([each.latency for each in served])
    assert queues.in_system(served) == pytest.approx(len(served) / end * stay)


def test_several_servers_take_the_next_customer_each():
    served = queues.first_come_first_served([0, 0, 0, 5], [4, 2, 3, 1], servers=2)
    assert [(each.start, each.stop) for each in served] == [(0, 4), (0, 2), (2, 5), (5, 6)]


def test_in_a_closed_loop_nobody_sends_while_waiting():
    served = queues.closed_loop(2, [1, 5, 1, 1], thinking=1)
    assert [(each.arrival, each.start, each.stop) for each in served] == [
        (0, 0, 1), (0, 1, 6), (2, 6, 7), (7, 7, 8),
    ]  # fmt: skip
