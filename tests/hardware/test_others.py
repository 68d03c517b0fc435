"""CPUs, links and accelerators of other makers: figures that agree with each other, one direction of a link."""

import dataclasses
from pathlib import Path

import pytest

from gpulab.simulator import hardware
from gpulab.simulator.hardware import (
    ACCELERATORS,
    CPU,
    CPUS,
    EDGE,
    LINKS,
    SUPERCHIPS,
    SWITCHES,
    Accelerator,
    EdgeDevice,
    Figure,
    Link,
)

MODES = [mode for device in EDGE.values() for mode in device.modes]


def figures(record: object) -> list[Figure]:
    values = [getattr(record, field.name) for field in dataclasses.fields(record)]  # type: ignore[arg-type]
    return [
        figure
        for value in values
        for figure in (value.values() if isinstance(value, dict) else [value])
        if isinstance(figure, Figure)
    ]


@pytest.mark.parametrize(
    "record",
    [
        *CPUS.values(),
        *ACCELERATORS.values(),
        *LINKS.values(),
        *SWITCHES.values(),
        *SUPERCHIPS.values(),
        *EDGE.values(),
        *MODES,
    ],
    ids=str,
)
def test_all_figures_are_positive_and_come_from_a_dated_document(record: object) -> None:
    assert figures(record)
    for figure in figures(record):
        assert figure.value > 0 and figure.source.title and figure.source.year >= 2010


# ---------------------------------------------------------------- links


@pytest.mark.parametrize(
    ("name", "gigabytes"),
    [
        # 16 lanes × 8, 16, 32 GT/s × 128/130 ÷ 8
        ("PCIe 3.0 ×16", 15.75),
        ("PCIe 4.0 ×16", 31.51),
        ("PCIe 5.0 ×16", 63.02),
        # 6, 12, 18 links of 25 GB/s, 18 of 50 GB/s, in one direction
        ("NVLink 2", 150),
        ("NVLink 3", 300),
        ("NVLink 4", 450),
        ("NVLink 5", 900),
        # 36 links of 50 GB/s
        ("NVLink 6", 1800),
        ("NVLink-C2C", 450),
        # 200 and 400 Gbit/s ÷ 8
        ("InfiniBand HDR", 25),
        ("InfiniBand NDR", 50),
        ("InfiniBand XDR", 100),
        # 16 lanes × 64 GT/s ÷ 8
        ("PCIe 6.0 ×16", 128),
        ("Ethernet 100G", 12.5),
        ("Ethernet 400G", 50),
        ("Ethernet 800G", 100),
    ],
)
def test_a_link_carries_this_much_in_one_direction(name: str, gigabytes: float) -> None:
    assert float(hardware.link(name).per_direction) == pytest.approx(gigabytes * 1e9, rel=1e-3)


@pytest.mark.parametrize("link", LINKS.values(), ids=str)
def test_what_a_maker_states_is_one_direction_or_said_to_be_both(link: Link) -> None:
    directions = 2 if link.both_directions else 1
    stated = float(link.stated)
    carried = directions * float(link.per_direction)
    assert stated == pytest.approx(carried, rel=0.02)  # PCIe's raw rate has the 130/128 of its code in it
    assert carried <= stated


@pytest.mark.parametrize("switch", SWITCHES.values(), ids=str)
def test_what_a_switch_carries_is_its_ports_in_both_directions(switch: Link) -> None:
    assert switch.both_directions
    assert float(switch.stated) == 2 * float(switch.per_direction)


def test_a_rack_of_72_is_connected_by_18_switches_at_the_full_rate_of_each_gpu() -> None:
    """72 × 1.8 TB/s = 18 × 7.2 TB/s = 130 TB/s, both directions."""
    gpus = 72 * float(hardware.link("NVLink 5").stated)
    assert gpus == 18 * float(hardware.switch("NVLink Switch").stated) == pytest.approx(130e12, rel=0.01)


def test_eight_gpus_reach_each_other_at_full_rate_through_their_switches() -> None:
    """DGX-2: 16 V100, 12 NVSwitches; DGX A100: 8, 6; DGX H100: 8, 4. No GPU has more links than they have
    ports."""
    for generation, gpus, switches in ((1, 16, 12), (2, 8, 6), (3, 8, 4)):
        ports = switches * int(hardware.switch(f"NVSwitch {generation}").lanes)
        assert gpus * int(hardware.link(f"NVLink {generation + 1}").lanes) <= ports


@pytest.mark.parametrize(
    ("name", "terabits"), [("Trident 5-X12", 16), ("Tomahawk 5", 51.2), ("Tomahawk 6", 102.4)]
)
def test_a_switch_chip_of_broadcom_carries_its_stated_rate_in_one_direction(
    name: str, terabits: float
) -> None:
    """20 and 64 ports of 800 Gbit/s, and 64 of 1.6 Tbit/s."""
    assert float(hardware.switch(name).per_direction) * 8 == pytest.approx(terabits * 1e12)


def test_an_unknown_switch_gets_one_line_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match=r"no switch is named 'hub'; known are NVSwitch 1.*NVLink Switch"):
        hardware.switch("hub")


def test_an_unknown_link_gets_one_line_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match=r"no link is named 'NVLink 9'; known are PCIe 3\.0 ×16.*HDR"):
        hardware.link("NVLink 9")


# ---------------------------------------------------------------- CPUs


def test_the_peak_of_a_cpu_is_cores_times_flop_times_base_clock() -> None:
    """64 × 16 × 2.25 GHz = 2.3 TFLOP/s of float64; 40 × 32 × 2.3 GHz = 2.9."""
    assert float(hardware.cpu("EPYC 7742").peak("float64")) == pytest.approx(2.304e12)
    assert float(hardware.cpu("Xeon 8380").peak("float64")) == pytest.approx(2.944e12)
    assert float(hardware.cpu("EPYC 9654").peak("float32")) == pytest.approx(7.3728e12)


def test_the_bandwidth_of_a_cpu_is_channels_times_eight_bytes_times_transfers() -> None:
    assert float(hardware.cpu("EPYC 7742").dram_bandwidth) == pytest.approx(204.8e9)
    assert float(hardware.cpu("EPYC 9654").dram_bandwidth) == pytest.approx(460.8e9)


@pytest.mark.parametrize("cpu", CPUS.values(), ids=str)
def test_float32_is_twice_as_fast_as_float64_and_boost_faster_than_base(cpu: CPU) -> None:
    assert float(cpu.peak("float32")) == 2 * float(cpu.peak("float64"))
    assert float(cpu.base_clock) < float(cpu.boost_clock)
    with pytest.raises(ValueError, match="has no rate for 'float8'; it has float64, float32"):
        cpu.peak("float8")


def test_an_unknown_cpu_gets_one_line_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match="known are EPYC 7742, Xeon 8380, EPYC 9654"):
        hardware.cpu("Z80")


# ---------------------------------------------------------------- accelerators


def test_the_rates_of_an_mi300x_are_its_units_and_clock() -> None:
    """304 CUs × 2.1 GHz × 256 FLOP of float32 and 2,048 of dense float16 per cycle and CU."""
    mi300x = hardware.accelerator("MI300X")
    cycles = int(mi300x.units) * float(mi300x.clock)  # type: ignore[arg-type]
    assert float(mi300x.vector["float32"]) == pytest.approx(cycles * 256, rel=1e-3)
    assert float(mi300x.dense["float16"]) == pytest.approx(cycles * 2048, rel=1e-3)


def test_the_rates_of_an_mi355x_are_its_units_and_clock() -> None:
    """256 CUs × 2.4 GHz × 256 FLOP of float32, and 4,096, 8,192 and 16,384 of dense float16, float8 and float4."""
    mi355x = hardware.accelerator("MI355X")
    cycles = int(mi355x.units) * float(mi355x.clock)  # type: ignore[arg-type]
    assert float(mi355x.vector["float32"]) == pytest.approx(cycles * 256, rel=1e-3)
    for dtype, flops in (("float16", 4096), ("float8", 8192), ("float4", 16384)):
        assert float(mi355x.dense[dtype]) == pytest.approx(cycles * flops, rel=1e-3)


def test_the_matrix_units_of_a_tpu_are_256_wide_since_the_v6e() -> None:
    assert hardware.accelerator("TPU v6e").units.note == "of 256 × 256, in one TensorCore"
    lab = Path(__file__).parents[2] / "solutions" / "02_gpu_architecture" / "02_gpu_architecture_a.py"
    assert "128 × 128 up to the v5p, and 256 × 256 since the v6e" in lab.read_text(encoding="utf-8")


def test_a_tpu7x_has_five_times_the_float8_rate_of_a_v6e_and_its_memory_four_and_a_half() -> None:
    """4,614 TFLOP/s against 918 (the v6e computes float8 at the rate of bfloat16); 7,380 GB/s against 1,638."""
    old, new = hardware.accelerator("TPU v6e"), hardware.accelerator("TPU7x")
    assert float(new.dense["float8"]) / float(old.dense["bfloat16"]) == pytest.approx(5.03, abs=0.01)
    assert float(new.dram_bandwidth) / float(old.dram_bandwidth) == pytest.approx(4.5, abs=0.01)


def test_an_rx_7900_issues_two_instructions_for_its_64_lanes() -> None:
    """96 CUs × 64 lanes × 2 at once × 2 FLOP × 2.5 GHz = 61.4 TFLOP/s."""
    radeon = hardware.accelerator("RX 7900 XTX")
    assert float(radeon.vector["float32"]) == pytest.approx(96 * 64 * 2 * 2 * 2.5e9, rel=1e-3)


@pytest.mark.parametrize("each", ACCELERATORS.values(), ids=str)
def test_a_link_is_slower_than_the_memory_behind_it(each: Accelerator) -> None:
    if each.link is not None:
        assert float(each.link) < float(each.dram_bandwidth)


@pytest.mark.parametrize("each", ACCELERATORS.values(), ids=str)
def test_seen_bandwidth_stays_below_the_peak(each: Accelerator) -> None:
    if each.dram_seen is not None:
        assert float(each.dram_seen) < float(each.dram_bandwidth)


def test_what_apple_does_not_state_is_not_there() -> None:
    m4 = hardware.accelerator("M4 Max")
    assert not m4.vector and not m4.dense and m4.tdp is None


def test_a_max_1550_multiplies_as_fast_as_intel_says_it_does() -> None:
    """52 TFLOP/s in float64 and 839 in bfloat16, from the operations of an Xe-core per clock."""
    ponte_vecchio = hardware.accelerator("Max 1550")
    assert round(float(ponte_vecchio.vector["float64"]) / 1e12) == 52
    assert round(float(ponte_vecchio.dense["bfloat16"]) / 1e12) == 839


def test_the_gpu_of_a_superchip_reads_its_own_memory_faster_and_the_cpu_s_at_the_rate_of_the_link() -> None:
    for chip in SUPERCHIPS.values():
        link = float(chip.link.per_direction)
        assert link < float(chip.cpu_bandwidth) < float(chip.gpu_bandwidth)
        assert float(chip.gpu_bytes) < float(chip.cpu_bytes)
    with pytest.raises(LookupError, match="no superchip is named 'GB100'; known are GH200"):
        hardware.superchip("GB100")


def test_an_unknown_accelerator_gets_one_line_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match=r"known are MI300X.*TPU v5p.*M4 Max"):
        hardware.accelerator("M4 Ultra")


# ---------------------------------------------------------------- small devices


@pytest.mark.parametrize("each", EDGE.values(), ids=str)
def test_a_headline_with_sparsity_is_twice_the_dense_rate(each: EdgeDevice) -> None:
    if each.advertised is not None and "2:4 sparse" in each.advertised.note:
        assert each.dense is not None
        assert float(each.advertised) == pytest.approx(2 * float(each.dense), rel=0.02)


@pytest.mark.parametrize("name", [each.name for each in EDGE.values() if each.modes])
def test_the_fastest_mode_has_the_bandwidth_of_the_data_sheet(name: str) -> None:
    device = hardware.edge(name)
    fastest = device.modes[-1]
    assert float(fastest.dram_bandwidth) == pytest.approx(float(device.dram_bandwidth), rel=0.01)
    for slower, faster in zip(device.modes, device.modes[1:], strict=False):
        assert float(slower.gpu_clock) < float(faster.gpu_clock)
        assert float(slower.dram_bandwidth) <= float(faster.dram_bandwidth)


def test_the_orin_of_the_small_devices_is_the_orin_among_the_gpus() -> None:
    orin, gpu = hardware.edge("AGX Orin 64 GB"), hardware.find("AGX Orin")
    assert orin.dram_bandwidth is gpu.dram_bandwidth and orin.tdp is gpu.tdp
    assert float(orin.modes[-1].gpu_clock) == pytest.approx(float(gpu.boost_clock), rel=0.01)
    assert int(orin.modes[-1].sms) == int(gpu.sms)


def test_an_unknown_device_gets_one_line_with_the_known_ones() -> None:
    with pytest.raises(LookupError, match=r"known are Orin Nano, .*Raspberry Pi 5"):
        hardware.edge("toaster")
