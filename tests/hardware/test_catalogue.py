"""GPUs are found by any sensible spelling, and a wrong name gets one line that helps."""

import pytest

from gpulab.simulator import hardware
from gpulab.simulator.hardware import UnknownGPU


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("A100", "A100"),
        ("a100", "A100"),
        (" A100-80GB ", "A100"),
        ("NVIDIA A100 SXM4 80 GB", "A100"),
        ("h100_sxm5", "H100"),
        ("Tesla T4", "T4"),
        ("rtx4090", "RTX 4090"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("v100", "V100"),
        ("H200", "H200"),
        ("A100-SXM4-40GB", "A100 40GB"),
        ("H100 PCIe", "H100 PCIe"),
        ("nvidia b200", "B200"),
        ("GeForce RTX 5090", "RTX 5090"),
        ("Jetson AGX Orin", "AGX Orin"),
        ("NVIDIA A10", "A10"),
        ("NVIDIA GB200", "GB200"),
        ("NVIDIA B300 SXM6 AC", "B300"),
        ("NVIDIA Thor", "AGX Thor"),
    ],
)
def test_a_gpu_is_found_however_it_is_spelled(spelling: str, name: str) -> None:
    assert hardware.find(spelling).name == name


# What cuDeviceGetName and nvidia-smi call the boards of our data sheets; older drivers leave "NVIDIA" out.
DRIVERS = {
    "Tesla V100-SXM2-16GB": "V100",
    "Tesla T4": "T4",
    "NVIDIA A100-SXM4-40GB": "A100 40GB",
    "NVIDIA A100-SXM4-80GB": "A100",
    "NVIDIA A100-PCIE-40GB": "A100 PCIe 40GB",
    "NVIDIA A100 80GB PCIe": "A100 PCIe",
    "NVIDIA H100 PCIe": "H100 PCIe",
    "NVIDIA H100 NVL": "H100 NVL",
    "NVIDIA H100 80GB HBM3": "H100",
    "NVIDIA H200 NVL": "H200 NVL",
    "NVIDIA H200": "H200",
    "NVIDIA B200": "B200",
    "NVIDIA GB200": "GB200",
    "NVIDIA B300 SXM6 AC": "B300",
    "NVIDIA GB300": "GB300",
    "NVIDIA A10": "A10",
    "NVIDIA L4": "L4",
    "NVIDIA L40": "L40",
    "NVIDIA L40S": "L40S",
    "NVIDIA GeForce RTX 3090": "RTX 3090",
    "NVIDIA GeForce RTX 4090": "RTX 4090",
    "NVIDIA GeForce RTX 5080": "RTX 5080",
    "NVIDIA GeForce RTX 5090": "RTX 5090",
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": "RTX PRO 6000",
    "NVIDIA GB10": "GB10",
    "Orin": "AGX Orin",
    "NVIDIA Thor": "AGX Thor",
}


@pytest.mark.parametrize(("reported", "name"), DRIVERS.items())
def test_a_gpu_is_found_by_the_name_that_its_driver_reports(reported: str, name: str) -> None:
    assert hardware.find(reported).name == name
    assert hardware.find(reported.removeprefix("NVIDIA ")).name == name


def test_the_driver_of_every_gpu_has_a_name_for_it() -> None:
    assert set(DRIVERS.values()) == set(hardware.names())


@pytest.mark.parametrize(
    "other",
    [
        "NVIDIA GH200 480GB", "NVIDIA H20", "NVIDIA A10G", "NVIDIA A40", "NVIDIA L20", "Tesla V100-SXM2-32GB",
        "NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 5080 Laptop GPU",
        "NVIDIA RTX PRO 6000 Blackwell Server Edition",
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
    ],
)  # fmt: skip
def test_a_board_with_other_figures_is_not_taken_for_one_of_ours(other: str) -> None:
    with pytest.raises(UnknownGPU):
        hardware.find(other)


def test_a_gpu_is_found_by_itself() -> None:
    a100 = hardware.find("A100")
    assert hardware.find(a100) is a100


def test_an_unknown_name_gets_one_line_with_the_closest_and_all_names() -> None:
    with pytest.raises(UnknownGPU) as fault:
        hardware.find("A1000")
    known = ", ".join(hardware.names())
    assert str(fault.value) == f"no GPU is named 'A1000'; did you mean A100? known are {known}"


@pytest.mark.parametrize("name", ["", "banana", "é", "  "])
def test_a_name_like_no_other_gets_the_list_alone(name: str) -> None:
    with pytest.raises(UnknownGPU, match="known are V100, T4") as fault:
        hardware.find(name)
    assert "\n" not in str(fault.value) and "mean" not in str(fault.value)


def test_no_two_gpus_answer_to_one_name() -> None:
    spellings = [alias for gpu in hardware.ALL for alias in {gpu.name.lower(), *gpu.aliases}]
    assert len(spellings) == len(set(spellings))
    assert hardware.names() == [gpu.name for gpu in hardware.ALL]


def test_a_gpu_can_be_a_key() -> None:
    assert {gpu: gpu.name for gpu in hardware.ALL}[hardware.find("T4")] == "T4"
