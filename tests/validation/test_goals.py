"""The committed measurements and the model of today: the goals, so that agreement cannot decay unseen.

Where nothing has been measured yet, these are skipped and counted with the tests that need a GPU.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gpulab.simulator import hardware
from gpulab.simulator.compile import compiler_version
from gpulab.simulator.device import has_gpu
from validation import measured
from validation.compare import Comparison, compare
from validation.model import model_all
from validation.table import variants

SMALLEST, ALL = 1, 3
# Goals that the model does not reach yet. One that is reached has to leave the list.
ORDER = "time, rank correlation"
MISSED = {"H100": {ALL: {ORDER}}}


@pytest.fixture(
    scope="module", params=measured.files() or [None], ids=lambda path: path.stem if path else "none"
)
def data(request) -> dict:
    path: Path | None = request.param
    if path is None:
        missing = "nothing in validation/measured yet: `make validate` on a machine with a GPU fills it"
        pytest.skip(missing if has_gpu() else f"no NVIDIA GPU here, and {missing}")
    found = measured.load(path)
    if found["machine"]["compilers"] != compiler_version():
        pytest.skip(f"{path.name} is of {found['machine']['compilers']}, here is {compiler_version()}")
    return found


def compared(data: dict, sizes: int) -> Comparison:
    there = [v for v in variants() if v.key in data["kernels"]]
    launches = [(v, size) for v in there for size in v.kernel.sizes[:sizes]]
    gpu = hardware.find(data["machine"]["sheet"])
    modelled = model_all(launches, gpu, measured=data["kernels"])
    return compare(data["machine"]["gpu"], modelled, data["kernels"], measured.start(data))


def missed(data: dict, sizes: int) -> set[str]:
    return MISSED.get(data["machine"]["sheet"], {}).get(sizes, set())


def test_every_kernel_was_measured_and_with_the_machine_code_of_today(data: dict):
    assert not data["failed"]
    assert set(data["kernels"]) == {v.key for v in variants()}
    assert not compared(data, SMALLEST).other_code, "python -m validation measure --again"


def test_counts_reach_their_goals_at_the_smallest_sizes_but_for_those_named(data: dict):
    counts = [goal for goal in compared(data, SMALLEST).goals if not goal.name.startswith("time")]
    found = {goal.name for goal in counts if not goal.met}
    assert found == missed(data, SMALLEST), [(goal.name, goal.words) for goal in counts]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_goals_are_reached_at_all_sizes_but_for_those_named(data: dict):
    found = compared(data, ALL)
    assert {goal.name for goal in found.goals if not goal.met} == missed(data, ALL), str(found)
