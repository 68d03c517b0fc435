"""The CPU at hand is measured: what is worked out from the times is right. No time itself is asserted."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gpulab.simulator.hardware import Roofline
from gpulab.subjects import bench
from gpulab.subjects.bench import Measured
from gpulab.subjects.bench.cpu import _stepper, copy


def test_the_rate_is_of_the_fastest_run_and_the_spread_says_how_far_the_others_are() -> None:
    seen = Measured(work=12e9, unit="B", seconds=(2.0, 1.0, 4.0))
    assert seen.rate == 12e9
    assert seen.spread == 2.0
    assert str(seen) == "12 GB/s, best of 3, spread 2.00"


def test_the_first_run_is_not_among_the_times() -> None:
    runs: list[int] = []
    seen = bench.timed(lambda: runs.append(1), work=1, unit="B", repeats=3)
    assert len(runs) == 4 and len(seen.seconds) == 3
    assert all(second >= 0 for second in seen.seconds)


def test_nothing_can_be_said_without_a_run() -> None:
    with pytest.raises(ValueError, match="at least 1 repeat; got 0"):
        bench.timed(lambda: None, 1, "B", 0)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_copy_counts_what_it_reads_and_writes(threads: int) -> None:
    seen = bench.bandwidth(megabytes=8, threads=threads, repeats=2)
    assert (seen.work, seen.unit) == (16e6, "B")


@pytest.mark.parametrize(("size", "parts"), [(0, 1), (1, 3), (1000, 1), (1001, 3)])
def test_all_of_an_array_is_copied_in_parts(size: int, parts: int) -> None:
    source, target = np.arange(size, dtype=np.float64), np.full(size, -1.0)
    with ThreadPoolExecutor(parts) as pool:
        copy(target, source, pool, parts)
    assert (target == source).all()


def test_a_product_counts_two_operations_for_each_multiply_add() -> None:
    assert bench.flops(n=64, repeats=1).work == 2 * 64**3


def test_steps_count_two_operations_for_each_number() -> None:
    assert bench.steps(8, megabytes=4, threads=2, repeats=1).work == 2 * 8 * 10**6


@pytest.mark.parametrize("count", [0, 3, 6, -4])
def test_steps_come_in_fours(count: int) -> None:
    with pytest.raises(ValueError, match=f"multiple of 4, at least 4; got {count}"):
        bench.steps(count)


@pytest.mark.parametrize("size", [0, 5, 1024, 2500])
def test_every_number_is_taken_through_all_steps(size: int) -> None:
    x = np.linspace(0, 1, size, dtype=np.float32)
    y = np.zeros_like(x)
    _stepper()(y, x, 2)
    expected = x.astype(np.float64)
    for _ in range(8):
        expected = expected * x + 0.25
    assert np.allclose(y, expected, rtol=1e-5)


def test_the_roofline_of_this_machine_is_plausible() -> None:
    """Between a slow core of the nineties and ten of the fastest GPUs: a unit that is wrong shows."""
    roof = bench.roofline()
    assert isinstance(roof, Roofline) and roof.gpu == "this CPU"
    assert 1e8 < roof.bandwidth < 1e14
    assert 1e8 < roof.peak < 1e16
