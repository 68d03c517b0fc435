"""Traces: the same seed gives the same requests, and each kind is what its name says."""

from __future__ import annotations

import numpy as np
import pytest

from gpulab.subjects.serving import Request, traces

KINDS = [traces.poisson, traces.bursty, traces.heavy_tailed, traces.adversarial]


def gaps(trace):
    return np.diff([request.arrival for request in trace])


@pytest.mark.parametrize("kind", KINDS)
def test_a_trace_depends_on_its_seed_alone(kind):
    assert kind(5, 40, 7) == kind(5, 40, 7) != kind(5, 40, 8)


@pytest.mark.parametrize("kind", KINDS)
def test_requests_come_in_order_within_the_time_and_are_numbered(kind):
    trace = kind(6, 60, 3)
    assert [request.number for request in trace] == list(range(len(trace)))
    assert (gaps(trace) >= 0).all()
    assert trace[0].arrival >= 0 and trace[-1].arrival < 60


@pytest.mark.parametrize("kind", [traces.poisson, traces.bursty, traces.heavy_tailed])
def test_the_rate_is_what_is_asked_for(kind):
    counts = [len(kind(5, 200, seed)) for seed in range(30)]
    assert np.mean(counts) == pytest.approx(1000, rel=0.1)


def test_gaps_of_a_poisson_process_spread_as_much_as_they_last_and_those_of_bursts_more():
    def spread(kind):
        found = np.concatenate([gaps(kind(5, 300, seed)) for seed in range(5)])
        return found.std() / found.mean()

    assert spread(traces.poisson) == pytest.approx(1, abs=0.05)
    assert spread(traces.bursty) > 1.3


def test_few_requests_bring_most_of_the_tokens_of_a_heavy_tail():
    def of_the_longest_tenth(trace):
        outputs = sorted((request.output for request in trace), reverse=True)
        return sum(outputs[: len(outputs) // 10]) / sum(outputs)

    assert of_the_longest_tenth(traces.heavy_tailed(10, 300, 1)) > 0.4
    assert of_the_longest_tenth(traces.poisson(10, 300, 1)) < 0.4


def test_no_output_says_how_long_it_gets():
    for kind in KINDS:
        assert len({request.most for request in kind(5, 40, 1)}) == 1


def test_bursts_that_bring_more_than_the_rate_are_refused():
    with pytest.raises(ValueError, match="more than the rate"):
        traces.bursty(5, 40, 1, peak=8, share=0.2)


@pytest.mark.parametrize("sizes", [{"prompt": 0}, {"output": 0}, {"most": 2}, {"cached": 6}])
def test_requests_that_make_no_sense_are_refused(sizes):
    with pytest.raises(ValueError, match="request 0"):
        Request(**({"number": 0, "arrival": 0.0, "prompt": 5, "output": 3} | sizes))
