"""A sample of blocks says what all of them would, and how far off it may be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulab import cuda
from gpulab.analysis.machine import modelled, sass
from gpulab.analysis.machine.sampling import DRAWN, draw
from gpulab.simulator import device, hardware
from gpulab.simulator.hardware.figure import Figure

A100 = hardware.find("A100")
# The same with an L2 of half a megabyte, which small arrays overflow.
SMALL = replace(A100, l2_bytes=Figure(1 << 19, "B", A100.l2_bytes.source))


@cuda.jit
def copy(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i]


@cuda.jit
def as_often_as_told(times, out):
    i = cuda.grid(1)
    v = np.float32(1)
    for _ in range(times[cuda.blockIdx.x]):
        v = v * np.float32(0.5) + np.float32(1)
    out[i] = v


@cuda.jit
def product(a, b, c):
    x, y = cuda.grid(2)
    s = np.float32(0)
    for k in range(a.shape[1]):
        s += a[y, k] * b[k, x]
    c[y, x] = s


@cuda.jit
def count(bins):
    cuda.atomic.add(bins, cuda.threadIdx.x % 4, 1)


@cuda.jit
def everybody_waits(out):
    grid = cuda.cg.this_grid()
    out[cuda.grid(1)] = 1
    grid.sync()


@given(st.integers(1, 5000), st.integers(1, 500))
def test_drawn_blocks_differ_and_weights_make_the_whole_grid_of_them(blocks, most):
    sample = draw(blocks, most)
    chosen = np.concatenate(sample.stretches)
    assert len(set(chosen.tolist())) == len(chosen) == sample.simulated
    assert chosen.min() == 0 and chosen.max() < blocks
    assert sample.simulated <= max(most, DRAWN + 1)
    assert sample.weights() @ [len(s) for s in sample.stretches] == pytest.approx(blocks)
    for without in range(1, len(sample.stretches)):
        weights = sample.weights(without)
        assert weights[without] == 0
        if len(sample.stretches) > 2:
            assert weights @ [len(s) for s in sample.stretches] == pytest.approx(blocks)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 1000))
def test_the_error_is_that_of_a_mean_of_equal_stretches(seed):
    """For stretches of one size the jackknife gives s ÷ √n × √(1 - n/N), as books on sampling have it."""
    blocks, sample = 900, draw(900, 90, seed)
    values = np.random.default_rng(seed).random(len(sample.stretches))
    said = sample.error(lambda weights: float(weights @ values))
    of = sample.of - 1  # the first stands for itself
    assert said == pytest.approx(
        of * values[1:].std(ddof=1) / np.sqrt(DRAWN) * np.sqrt(1 - DRAWN / of), rel=1e-9
    )
    assert blocks == 10 * sample.of


def test_blocks_that_are_not_drawn_do_not_run():
    n = 64 * 256
    x, out = cuda.to_device(np.ones(n, np.float32)), cuda.to_device(np.zeros(n, np.float32))
    found = modelled(copy[256, 64], x, out, sample=32)
    ran = np.concatenate(draw(256, 32).stretches)
    assert sorted(set(np.flatnonzero(out.copy_to_host()) // 64)) == sorted(ran)
    assert (found.simulated, found.blocks) == (len(ran), 256)


def test_alike_blocks_are_estimated_without_any_error():
    n = 512 * 128
    given = [cuda.to_device(np.ones(n, np.float32)), cuda.device_array(n, np.float32)]
    full, part = (modelled(copy[512, 128], *given, gpu="A100", sample=most) for most in (None, 64))
    assert part.pipes == full.pipes
    assert part.terms == full.terms and part.seconds == full.seconds
    assert set(full.errors.values()) == set(part.errors.values()) == {0.0}
    assert "Estimated" in str(part) and "Estimated" not in str(full)


def test_what_does_not_fit_the_l2_goes_to_dram_in_an_estimate_too():
    n = 1 << 19
    given = [cuda.to_device(np.ones(n, np.float32)), cuda.device_array(n, np.float32)]
    full, part = (modelled(copy[n // 256, 256], *given, gpu=SMALL, sample=most) for most in (None, 128))
    assert full.all_traffic.dram_writes > 0.8 * n * 4 // 32
    assert part.all_traffic.dram_writes == pytest.approx(full.all_traffic.dram_writes, rel=0.1)
    assert part.all_traffic.dram_reads == full.all_traffic.dram_reads


@pytest.mark.parametrize("seed", range(5))
def test_the_full_run_lies_within_a_few_standard_errors(seed):
    times = np.random.default_rng(seed).integers(1, 200, 1000).astype(np.int32)
    given = [cuda.to_device(times), cuda.device_array(1000 * 64, np.float32)]
    full, part = (sass(as_often_as_told[1000, 64], *given, sample=most) for most in (None, 180))
    assert part.error > 0.005 * full.total
    assert abs(part.total - full.total) < 4 * part.error
    assert "standard error" in str(part)
    times = modelled(as_often_as_told[1000, 64], *given, sample=180)
    assert times.errors["instructions"] == pytest.approx(part.error)
    assert times.errors["seconds"] > 0


def test_blocks_that_share_rows_are_estimated_well():
    n = 256
    a = cuda.to_device(np.ones((n, n), np.float32))
    c = cuda.device_array((n, n), np.float32)
    full, part = (
        modelled(product[(n // 16, n // 16), (16, 16)], a, a, c, gpu="A100", sample=most)
        for most in (None, 72)
    )
    assert part.simulated < 80 < full.simulated == 256
    assert part.instructions == full.instructions
    assert part.all_traffic.l2_bytes == pytest.approx(full.all_traffic.l2_bytes, rel=0.1)
    assert part.seconds == pytest.approx(full.seconds, rel=0.15), (
        "stretches find in the L2 what others fetched"
    )


def test_the_hottest_address_is_estimated():
    full, part = (
        modelled(count[400, 64], cuda.to_device(np.zeros(4, np.int32)), sample=most) for most in (None, 40)
    )
    assert full.all_traffic.hottest == part.all_traffic.hottest == 400 * 64 // 4


def test_blocks_that_wait_for_each_other_all_run():
    out = cuda.to_device(np.zeros(40 * 32, np.int32))
    found = modelled(everybody_waits[40, 32], out, sample=9)
    assert found.simulated == found.blocks == 40
    assert out.copy_to_host().all()


def test_a_sample_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least 1; it got 0"):
        modelled(copy[4, 32], np.ones(128, np.float32), np.ones(128, np.float32), sample=0)


def test_the_device_is_as_before_after_a_sample():
    n = 64 * 64
    x, out = cuda.to_device(np.ones(n, np.float32)), cuda.to_device(np.zeros(n, np.float32))
    modelled(copy[64, 64], x, out, sample=9)
    assert not device.current().options
    copy[64, 64](x, out)
    assert out.copy_to_host().all()
