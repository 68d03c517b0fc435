"""From times to a speed: the interval holds what it says, noise that both share cancels, no time beats a data sheet."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.checks import find
from gpulab.checks.spec import Array, Case
from gpulab.checks.speeds import SPEEDS, Speed
from gpulab.simulator import hardware
from grading.gpu_stage.statistics import LEVEL, SLACK, Pair, least_seconds, speed

WANTED = Speed((Case("large", {"n": 1 << 28}),), lambda s: 8 * int(s["n"]))


def pairs(generator: np.random.Generator, ratio: float, noise: float, count: int = 30) -> list[Pair]:
    """Times of a submission that takes 1/ratio of the reference's 1 ms, each with noise of its own."""
    factors = np.exp(noise * generator.standard_normal((count, 2)))
    return [(1e-3 / ratio * a, 1e-3 * b) for a, b in factors]


@given(st.floats(0.1, 10), st.floats(1e-6, 1))
def test_without_noise_the_interval_is_the_ratio(ratio: float, seconds: float) -> None:
    found = speed({"c": [(seconds / ratio, seconds)] * 12})
    assert found.low == pytest.approx(ratio) == found.high
    assert found.width == pytest.approx(0, abs=1e-9)


def test_the_interval_holds_the_true_speed_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(1)
    found = [speed({"c": pairs(generator, 0.8, 0.1)}, seed) for seed in range(200)]
    held = np.mean([each.low <= 0.8 <= each.high for each in found])
    assert abs(held - LEVEL) < 0.05


def test_more_noise_makes_it_wider_and_more_turns_narrower() -> None:
    generator = np.random.default_rng(2)
    calm, noisy = (speed({"c": pairs(generator, 1.0, noise)}) for noise in (0.01, 0.2))
    longer = speed({"c": pairs(generator, 1.0, 0.2, 1000)})
    assert calm.width < longer.width < noisy.width


def test_several_cases_count_as_their_geometric_mean() -> None:
    found = speed({"small": [(1.0, 2.0)] * 12, "large": [(5.0, 40.0)] * 30})
    assert found.middle == pytest.approx(math.sqrt(2.0 * 8.0)) == found.low


def test_a_single_glitch_of_the_machine_changes_nothing() -> None:
    calm = [(1e-3, 1e-3)] * 20
    assert speed({"c": [*calm, (0.5, 1e-3)]}).high == pytest.approx(1.0)


def test_no_pairs_are_no_speed() -> None:
    for nothing in ({}, {"c": []}):
        with pytest.raises(ValueError, match="no pairs"):
            speed(nothing)


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_a_faster_answer_never_loses_more(one: float, other: float) -> None:
    wanted = Speed((), lambda s: 0, ratio=0.8, slow=0.4, costs=2.0)
    slower, faster = sorted((one, other))
    assert 0 <= wanted.lost(faster) <= wanted.lost(slower) <= 2.0
    assert wanted.lost(0.8) == 0 and wanted.lost(0.4) == 2.0


def test_speed_costs_nothing_where_the_course_does_not_say_so() -> None:
    assert all(wanted.costs == 0 and wanted.lost(1e-9) == 0 for wanted in SPEEDS.values())


def test_no_time_beats_the_bytes_over_the_bandwidth_of_the_data_sheet() -> None:
    gpu = hardware.find("A100")
    moved = 8 * (1 << 28) - float(gpu.l2_bytes)  # what was written last may still be on the chip
    assert least_seconds(gpu, WANTED, {"n": 1 << 28}) == pytest.approx(
        moved / float(gpu.dram_bandwidth) * (1 - SLACK)
    )
    assert least_seconds(gpu, WANTED, {"n": 1}) == 0


def test_where_arithmetic_bounds_an_exercise_its_operations_do() -> None:
    gpu = hardware.find("A100")
    product = Speed((), lambda s: 0, least_flops=lambda s: 2 * int(s["n"]) ** 3)
    least = 2 * 4096**3 / float(gpu.peak("float32"))
    assert least_seconds(gpu, product, {"n": 4096}) == pytest.approx(least * (1 - SLACK))


@pytest.mark.parametrize("name", SPEEDS)
def test_each_timed_exercise_moves_at_least_what_it_reads_once_and_writes_once(name: str) -> None:
    exercise = find(name)
    assert exercise.evidence.launches
    for case in SPEEDS[name].cases:
        arrays = [a for a in exercise.evidence.arguments(case.sizes) if isinstance(a, Array)]
        moved = sum(math.prod(a.shape) * np.dtype(a.dtype).itemsize for a in arrays)
        assert SPEEDS[name].least_bytes(case.sizes) == moved
