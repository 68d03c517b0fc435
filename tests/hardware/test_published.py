"""Lanes and rates of the model are those that NVIDIA publishes for each compute capability: CUDA C++ Best Practices
Guide, table "Throughput of Native Arithmetic Instructions", results per clock and SM."""

from __future__ import annotations

import pytest

from gpulab.simulator import hardware
from gpulab.simulator.hardware import pipelines

# float32 and float64 products and sums, int32 sums, int32 products, pairs of float16 (two results each),
# reciprocals and other special functions, warp shuffles.
PUBLISHED = {
    (7, 0): (64, 32, 64, 64, 128, 16, 32),
    (7, 5): (64, 2, 64, 64, 128, 16, 32),
    (8, 0): (64, 32, 64, 64, 256, 16, 32),
    (8, 6): (128, 2, 64, 64, 128, 16, 32),
    (8, 9): (128, 2, 64, 64, 128, 16, 32),
    (9, 0): (128, 64, 64, 64, 256, 16, 32),
    (12, 0): (128, 2, 128, 64, 128, 16, 32),
    (12, 1): (128, 2, 128, 64, 128, 16, 32),
}


@pytest.mark.parametrize("gpu", [gpu for gpu in hardware.ALL if gpu.cc in PUBLISHED], ids=str)
def test_results_per_cycle_are_the_published_ones(gpu: hardware.GPU) -> None:
    model = (
        int(gpu.fp32_lanes),
        int(gpu.fp64_lanes),
        int(gpu.int32_lanes),
        int(pipelines.PRODUCT_LANES),
        2 * int(pipelines.pair_lanes(gpu.cc)),
        int(pipelines.XU_LANES),
        int(pipelines.LSU_LANES),
    )
    assert model == PUBLISHED[gpu.cc]


@pytest.mark.parametrize(
    ("name", "teraflops"),
    # Rates of float16 without tensor cores, as white papers state them beside those with.
    [("V100", 31.4), ("A100", 78), ("H100", 133.8), ("H100 PCIe", 102.4), ("A10", 31.2), ("RTX 4090", 82.6)],
)
def test_pairs_of_float16_make_the_stated_rate_of_the_ordinary_lanes(name: str, teraflops: float) -> None:
    gpu = hardware.find(name)
    rate = int(gpu.sms) * 2 * int(pipelines.pair_lanes(gpu.cc)) * 2 * float(gpu.boost_clock)
    assert rate == pytest.approx(teraflops * 1e12, rel=0.02)


@pytest.mark.parametrize("gpu", hardware.ALL, ids=str)
def test_an_l1_delivers_64_bytes_a_cycle_on_turing_and_128_elsewhere(gpu: hardware.GPU) -> None:
    """GA102 white paper: 128 B per clock and SM, against 64 in Turing; Jia et al. measured Volta's."""
    assert float(pipelines.l1_rate(gpu.cc)) == (64 if gpu.architecture == "Turing" else 128)
