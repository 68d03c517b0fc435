"""Every figure has a unit and a source, and the figures of a GPU agree with each other."""

import dataclasses
from collections.abc import Iterator

import pytest

from gpulab.simulator import hardware
from gpulab.simulator.hardware import GPU, Figure, Source, pipelines
from gpulab.simulator.hardware.sources import GUIDE, VOLTA_PAPER

# Vendors round their rates to two or three digits; H200's 34 TFLOP/s of float64 are 33.45.
ROUNDING = 0.02

each_gpu = pytest.mark.parametrize("gpu", hardware.ALL, ids=str)


def figures(gpu: GPU) -> Iterator[tuple[str, Figure]]:
    for field in dataclasses.fields(gpu):
        value = getattr(gpu, field.name)
        if isinstance(value, Figure):
            yield field.name, value
        elif isinstance(value, dict):
            yield from ((f"{field.name}[{key}]", figure) for key, figure in value.items())


def test_a_figure_without_a_source_is_refused() -> None:
    with pytest.raises(ValueError, match="has no source"):
        Figure(80, "SMs", None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="has no source"):
        Figure(80, "SMs", Source("", "NVIDIA", 2017))


def test_a_figure_without_a_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="has no unit"):
        Figure(80, "", VOLTA_PAPER)


@each_gpu
def test_all_figures_are_positive_and_come_from_a_dated_document(gpu: GPU) -> None:
    for name, figure in figures(gpu):
        assert figure.value > 0, name
        assert figure.source.title and figure.source.publisher and figure.source.year >= 2017, name


@each_gpu
def test_computed_peaks_of_the_lanes_are_what_the_vendor_states(gpu: GPU) -> None:
    """SMs × lanes × 2 × boost clock; for example A100 float32: 108 × 64 × 2 × 1.41 GHz = 19.49 TFLOP/s."""
    assert gpu.stated or gpu.tensor_dense, "no rate of which the arithmetic can be held to anything"
    for dtype, stated in gpu.stated.items():
        peak = gpu.peak(dtype)
        assert peak.value == pytest.approx(stated.value, rel=ROUNDING), dtype
        assert peak.unit == stated.unit


@each_gpu
def test_computed_peaks_of_the_tensor_cores_are_what_the_vendor_states(gpu: GPU) -> None:
    """SMs × FMA × 2 × tensor clock; for example H100 float16: 132 × 2,048 × 2 × 1.83 GHz = 989.4 TFLOP/s."""
    assert gpu.tensor_dense.keys() == gpu.tensor_fma.keys()
    for dtype, stated in gpu.tensor_dense.items():
        peak = gpu.peak(dtype, tensor=True)
        assert peak.value == pytest.approx(stated.value, rel=ROUNDING), dtype
        assert peak.unit == stated.unit


@each_gpu
def test_sparse_rates_are_twice_the_dense_ones(gpu: GPU) -> None:
    for dtype, stated in gpu.tensor_sparse.items():
        assert stated.value == pytest.approx(2 * gpu.tensor_dense[dtype].value, rel=ROUNDING), dtype
        assert gpu.peak(dtype, tensor=True, sparse=True).value == 2 * gpu.peak(dtype, tensor=True).value


@each_gpu
def test_seen_bandwidth_stays_below_the_peak(gpu: GPU) -> None:
    if gpu.dram_seen is not None:
        assert gpu.dram_seen.value < gpu.dram_bandwidth.value


@each_gpu
def test_an_l2_is_faster_than_dram_and_slower_than_all_l1s_together(gpu: GPU) -> None:
    """What passes an SM's L1 on the way from the L2 cannot be more than the L1 delivers."""
    if gpu.l2_seen is not None:
        per_cycle = float(gpu.l2_seen) / float(gpu.boost_clock) / int(gpu.sms)
        assert float(gpu.dram_bandwidth) < float(gpu.l2_seen)
        assert per_cycle < float(pipelines.l1_rate(gpu.cc))


@each_gpu
def test_memory_further_away_takes_longer(gpu: GPU) -> None:
    known = [
        level.value
        for level in (gpu.shared_latency, gpu.l1_latency, gpu.l2_latency, gpu.dram_latency)
        if level is not None
    ]
    assert known == sorted(known)


@each_gpu
def test_the_l1_holds_the_largest_shared_memory_of_its_capability(gpu: GPU) -> None:
    assert gpu.capability.shared_per_sm <= gpu.l1_bytes.value


def test_ampere_was_the_first_with_sparsity_and_float64_tensor_cores() -> None:
    for name in ("V100", "T4"):
        assert not hardware.find(name).tensor_sparse
        assert "float64" not in hardware.find(name).tensor_fma


@each_gpu
def test_a_pin_of_the_memory_carries_a_rate_that_its_kind_can(gpu: GPU) -> None:
    """Bandwidth × 8 over the width of the bus: HBM2 1.6 … GDDR7 30 Gbit/s."""
    if gpu.bus_bits is not None:
        assert 1.5e9 < float(gpu.dram_bandwidth) * 8 / int(gpu.bus_bits) <= 30e9


@each_gpu
def test_clusters_and_pairs_hold_all_sms(gpu: GPU) -> None:
    if gpu.tpcs is not None:
        assert int(gpu.sms) == 2 * int(gpu.tpcs)
    if gpu.gpcs is not None and gpu.tpcs is not None:
        assert int(gpu.tpcs) <= 9 * int(gpu.gpcs)


@each_gpu
def test_the_links_of_a_gpu_are_known(gpu: GPU) -> None:
    for name in filter(None, (gpu.host_link, gpu.gpu_link)):
        assert float(hardware.link(name).per_direction) < float(gpu.dram_bandwidth)


def test_the_gpus_that_the_course_names_are_all_there() -> None:
    names = ["V100", "T4", "A100", "H100", "H200", "B200", "GB200", "B300", "L4", "L40S", "A10"]
    names += ["RTX 3090", "RTX 4090", "RTX 5090", "AGX Orin", "AGX Thor"]
    names += [
        "A100 PCIe",
        "A100 PCIe 40GB",
        "H100 NVL",
        "H200 NVL",
        "GB300",
        "L40",
        "RTX 5080",
        "RTX PRO 6000",
        "GB10",
    ]
    assert set(names) <= set(hardware.names())
    assert {"MI300X", "MI325X", "M4 Max"} <= set(hardware.ACCELERATORS)


def test_a_b300_has_the_memory_of_its_board_and_a_gb300_that_of_the_chip() -> None:
    """2.1 TB for eight, and 288 GB; the watts that NVIDIA states are those of the GB300."""
    b300, gb300 = hardware.find("B300"), hardware.find("GB300")
    assert (float(b300.dram_bytes), float(gb300.dram_bytes)) == (262.5e9, 288e9)
    assert float(b300.tdp) == float(gb300.tdp) == 1400
    assert "GB300" in b300.tdp.note and "allows less" in b300.tdp.note


def test_no_int4_rate_is_claimed_from_hopper_on() -> None:
    for name in ("H100", "H200", "B200", "RTX 5090"):
        with pytest.raises(ValueError, match="no rate for 'int4'"):
            hardware.find(name).peak("int4", tensor=True)


def test_sparsity_must_be_asked_for_on_the_tensor_cores() -> None:
    a100 = hardware.find("A100")
    with pytest.raises(ValueError, match="feature of the tensor cores"):
        a100.peak("float32", sparse=True)
    with pytest.raises(ValueError, match="no sparse tensor rate for 'float64'"):
        a100.peak("float64", tensor=True, sparse=True)


def test_a_dtype_without_lanes_is_named() -> None:
    with pytest.raises(ValueError, match="A100 has no lanes listed for 'float16'"):
        hardware.find("A100").peak("float16")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (19.49184e12, "FLOP/s", "19.49 TFLOP/s"),
        (2039e9, "B/s", "2.039 TB/s"),
        (40 * 2**20, "B", "40 MiB"),
        (100, "B", "100 B"),
        (1410e6, "Hz", "1.41 GHz"),
        (108, "SMs", "108 SMs"),
        (12, "FLOP/s", "12 FLOP/s"),
    ],
)
def test_amounts_are_shown_with_a_short_prefix(value: float, unit: str, text: str) -> None:
    assert str(Figure(value, unit, GUIDE)) == text
