"""Tables of labs with measured times say what was measured, and what the model says today."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpulab.simulator import hardware
from validation import measured
from validation.model import model_all
from validation.table import chosen

ROOT = Path(__file__).parents[2]
MEMORY = "04_memory_hierarchy/04_memory_hierarchy"
PARALLEL = "05_reductions_scans_softmax/05_reductions_scans_softmax"
ROWS = [  # lab, the row's first cell, kernel, size
    (MEMORY, "from global memory to global memory", "transpose-naive/cuda", 2048),
    (MEMORY, "through a tile of 32 × 32 words", "transpose-tiled/cuda", 2048),
    (MEMORY, "through a tile of 32 × 33 words", "transpose-padded/cuda", 2048),
    (PARALLEL, "in global memory", "histogram-global/cuda", 1 << 20),
    (PARALLEL, "in shared memory, one copy per block", "histogram-shared/cuda", 1 << 21),
]


def cells(lab: str, name: str) -> list[str]:
    text = (ROOT / "solutions" / f"{lab}.py").read_text(encoding="utf-8")
    (row,) = (line for line in text.splitlines() if line.startswith(f"# | {name} |"))
    return [cell.strip() for cell in row.strip("# |").split("|")]


@pytest.fixture(scope="module")
def kernels() -> dict:
    (path,) = (path for path in measured.files() if path.stem == "H100")
    return measured.load(path)["kernels"]


@pytest.mark.parametrize(("lab", "name", "kernel", "size"), ROWS)
def test_a_measured_time_in_a_lab_is_the_measurements(kernels, lab, name, kernel, size):
    seconds = kernels[kernel][str(size)]["counters"]["kernel_seconds"]
    assert cells(lab, name)[-1] == f"{1e6 * seconds:.1f} µs"


@pytest.mark.slow  # millions of threads
@pytest.mark.parametrize(("lab", "name", "kernel", "size"), ROWS)
def test_a_modelled_time_beside_it_is_the_models(kernels, lab, name, kernel, size):
    (variant,) = chosen([kernel])
    found = model_all([(variant, size)], hardware.find("H100"), measured=kernels)[kernel][str(size)]
    assert cells(lab, name)[-2] == f"{1e6 * found['kernel_seconds']:.1f} µs"
    if lab == MEMORY:
        wavefronts = found["counts"]["shared_load_wavefronts"]
        assert cells(lab, name)[1] == f"{found['counts']['global_store_sectors']:,}"
        assert cells(lab, name)[2] == (f"{wavefronts:,}" if wavefronts else "none")
