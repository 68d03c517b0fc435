"""The roofline: two roofs and the ridge between them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulab.simulator import hardware
from gpulab.simulator.hardware import roofline


def test_the_ridge_of_an_a100_is_where_the_roofs_meet() -> None:
    """108 × 64 × 2 × 1.41 GHz = 19.49 TFLOP/s over 2.039 TB/s are 9.56 FLOP/B."""
    roof = roofline("A100")
    assert roof.peak == pytest.approx(19.49184e12)
    assert roof.bandwidth == 2.039e12
    assert roof.ridge == pytest.approx(9.5595, rel=1e-4)
    assert roof.attainable(roof.ridge) == pytest.approx(roof.peak)


def test_saxpy_is_bound_by_memory() -> None:
    """Two FLOP for 12 B, read x and y, write y: 1/6 FLOP/B; 2.039e12 / 6 = 0.34 TFLOP/s of 19.5."""
    roof = roofline("A100")
    assert roof.bound(1 / 6) == "memory"
    assert roof.attainable(1 / 6) == pytest.approx(2.039e12 / 6)


def test_float16_is_computed_by_the_tensor_cores_without_sparsity() -> None:
    assert roofline("H100", "float16").peak == pytest.approx(989.4e12, rel=1e-4)
    assert roofline("H100", "float64").peak == pytest.approx(33.45e12, rel=1e-3)
    assert roofline("H100", "float64", tensor=True).peak == pytest.approx(66.9e12, rel=1e-3)


@given(st.sampled_from(hardware.ALL), st.floats(0, 1e6))
def test_nothing_is_attainable_above_either_roof(gpu: hardware.GPU, intensity: float) -> None:
    roof = roofline(gpu)
    rate = roof.attainable(intensity)
    assert rate <= roof.peak and rate <= intensity * roof.bandwidth
    assert math.isclose(rate, roof.peak if roof.bound(intensity) == "compute" else intensity * roof.bandwidth)


def test_a_negative_intensity_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be negative; got -1"):
        roofline("A100").attainable(-1)


def test_a_rate_that_the_gpu_lacks_is_named() -> None:
    with pytest.raises(ValueError, match="tensor cores of T4 have no rate for 'bfloat16'; they have float16"):
        roofline("T4", "bfloat16")
