"""The modelled times: the roofline of a step, by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.simulator import hardware
from gpulab.subjects import serving
from gpulab.subjects.models import known
from gpulab.subjects.serving import Work
from gpulab.subjects.serving.machine import matrix_parameters


def test_a_token_meets_all_parameters_but_the_embedding_and_the_norms():
    config = known.find("Llama 3 8B").config
    # Published: 8.03e9 parameters; the embedding is 128,256 × 4,096, the norms 65 × 4,096.
    assert matrix_parameters(config) + 128_256 * 4096 + 65 * 4096 == 8_030_261_248


def test_decoding_one_token_takes_the_time_of_reading_all_weights():
    times = serving.times("Llama 3 8B", "H100")
    roof = hardware.roofline("H100", "bfloat16")
    weights = 2 * matrix_parameters(known.find("Llama 3 8B").config)
    assert times.seconds(Work(1, 1, 0)) == pytest.approx(weights / roof.bandwidth, rel=1e-4)


def test_one_token_of_llama_3_8b_caches_128_kib():
    assert serving.times("Llama 3 8B").token_bytes == 2 * 32 * 8 * 128 * 2 == 131_072


def test_prompts_become_compute_bound_at_the_ridge():
    times = serving.times("Llama 3 8B", "H100")
    ridge = hardware.roofline("H100", "bfloat16").ridge  # FLOP per byte; two per weight of two bytes
    few, many = Work(int(0.9 * ridge)), Work(int(1.1 * ridge))
    assert times.compute(few) < times.memory(few)
    assert times.compute(many) > times.memory(many)


def test_moving_to_the_host_takes_the_links_time_and_nothing_else():
    times = serving.times("Llama 3 8B")
    assert times.seconds(Work(moved=1000)) == pytest.approx(1000 * 131_072 / times.link)


def test_each_gpu_moves_over_its_own_link_to_the_host():
    for gpu in ("H100", "A100", "L4"):
        link = hardware.link(hardware.find(gpu).host_link)
        assert serving.times("Llama 3 8B", gpu).link == float(link.per_direction)
    assert serving.times("Llama 3 8B", "H100").link == 2 * serving.times("Llama 3 8B", "L4").link


@given(st.integers(1, 4000), st.integers(0, 10_000_000), st.integers(0, 1_000_000), st.integers(1, 500))
def test_more_work_never_takes_less_time(new, pairs, read, more):
    times = serving.times("Llama 3 8B")
    least = times.seconds(Work(new, pairs, read))
    for work in (Work(new + more, pairs, read), Work(new, pairs + more, read), Work(new, pairs, read + more)):
        assert times.seconds(work) >= least


def test_what_the_weights_leave_free_is_the_cache():
    machine = serving.fitting("Llama 3 8B", "H100", memory=0.9)
    free = 0.9 * float(hardware.find("H100").dram_bytes) - machine.times.weights
    assert machine.blocks == int(free // (16 * 131_072))
    with pytest.raises(ValueError, match="leaves no room"):
        serving.fitting("Llama 3 70B", "H100")
