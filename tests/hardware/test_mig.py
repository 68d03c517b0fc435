"""MIG's geometry: instances lie inside the GPU, and as many of each fit as the maker says."""

from __future__ import annotations

import pytest

from gpulab.simulator import hardware
from gpulab.simulator.hardware import MIG_PROFILES
from gpulab.simulator.hardware.mig import COMPUTE_SLICES, MEMORY_SLICES


def most(name: str) -> int:
    """How many of one kind lie side by side."""
    taken, size = -1, int(MIG_PROFILES[name].memory)
    count = 0
    for start in MIG_PROFILES[name].starts:
        if start > taken:
            count, taken = count + 1, start + size - 1
    return count


# "Number of instances available" in the user guide's table.
@pytest.mark.parametrize(
    "name, instances",
    [("1g.10gb", 7), ("1g.20gb", 4), ("2g.20gb", 3), ("3g.40gb", 2), ("4g.40gb", 1), ("7g.80gb", 1)],
)
def test_as_many_instances_fit_as_the_guide_says(name, instances):
    assert most(name) == instances


@pytest.mark.parametrize("profile", MIG_PROFILES.values(), ids=lambda p: p.name)
def test_an_instance_lies_inside_the_gpu(profile):
    assert all(start + int(profile.memory) <= int(MEMORY_SLICES) for start in profile.starts)
    assert profile.name == f"{int(profile.compute)}g.{10 * int(profile.memory)}gb"
    assert int(profile.compute) <= int(COMPUTE_SLICES)
    for gpu, sms in profile.sms.items():
        assert int(sms) <= int(hardware.find(gpu).sms)


def test_an_a100_in_slices_never_uses_all_its_sms():
    assert int(MIG_PROFILES["7g.80gb"].sms["A100"]) == 98 == 7 * int(MIG_PROFILES["1g.10gb"].sms["A100"])
    assert int(hardware.find("A100").sms) == 108
