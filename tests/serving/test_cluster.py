"""The cluster: gangs that are bound in parts deadlock, replicas come late, an autoscaler asks as Kubernetes does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.subjects.serving import cluster


def test_two_jobs_that_are_bound_in_turn_hold_everything_and_never_begin():
    run = cluster.pod_by_pod([(6, 6), (6, 6)], 8, patience=12)
    assert run.starts == (None, None) and run.busy(8) == 0 and run.end == 12
    assert sorted(h.gpu for h in run.held) == list(range(8))
    assert {job: sum(h.job == job for h in run.held) for job in (0, 1)} == {0: 4, 1: 4}


def test_jobs_that_fit_together_begin_at_once():
    run = cluster.pod_by_pod([(3, 4), (5, 2)], 8, patience=3)
    assert run.starts == (0, 0) and run.end == 4
    assert run.busy(8) == pytest.approx((3 * 4 + 5 * 2) / 32)


def test_one_that_waits_holds_what_it_has_until_the_rest_is_free():
    run = cluster.pod_by_pod([(2, 5), (4, 1)], 4, patience=3)
    assert run.starts == (0, 5)
    assert sum(h.stop - h.start for h in run.held if not h.works) == 2 * 5


def test_a_plan_that_needs_more_than_there_is_is_refused():
    with pytest.raises(ValueError, match="job 1 needs 3 GPUs, and 2 are free"):
        cluster.planned([(2, 3), (3, 1)], [0, 1], 4)


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=30),
    st.integers(0, 4),
    st.lists(st.integers(0, 5), min_size=30, max_size=30),
)
def test_a_replica_serves_when_it_has_existed_for_the_delay(load, delay, wanted):
    run = cluster.scale(load, 10, delay, 2, lambda t, *_: wanted[t])
    assert list(run.paid) == wanted[: len(load)]
    for t, there in enumerate(run.ready):
        before = [2] * max(0, delay - t) + wanted[max(0, t - delay) : t + 1]
        assert there == min(before)


@pytest.mark.parametrize(
    "replicas, metric, target, asked",
    [
        (8, 1.0, 0.7, 12),
        (4, 0.9, 0.5, 8),
        (10, 0.54, 0.5, 10),
        (10, 0.56, 0.5, 12),
        (10, 0.44, 0.5, 9),
        (3, 0.0, 1, 0),
    ],
)
def test_the_autoscaler_rounds_up_and_tolerates_a_tenth(replicas, metric, target, asked):
    assert cluster.desired(replicas, metric, target) == asked


def test_a_metric_that_saturates_takes_several_delays_to_get_there():
    load = [80] * 10 + [800] * 60

    def first(metric, target):
        run = cluster.scale(load, 40, 5, 3, cluster.autoscaler(metric, target))
        return next(t for t, there in enumerate(run.ready) if there >= 20)

    by_load = first(lambda now, n: now / n, 28)
    by_use = first(lambda now, n: min(1.0, now / (40 * n)), 0.7)
    assert by_load == 10 + 1 + 5 and by_use >= by_load + 3 * 5


def test_the_autoscaler_goes_down_after_its_window_only():
    run = cluster.scale(
        [200] * 5 + [40] * 20, 40, 0, 5, cluster.autoscaler(lambda now, n: now / n, 40, window=5)
    )
    assert run.paid[9] == 5 and run.paid[11] == 1


def test_an_unknown_way_to_share_is_refused():
    with pytest.raises(ValueError, match="no way to share"):
        cluster.shared_latency("luck", 1, 1.0, 1.0)
