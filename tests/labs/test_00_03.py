"""Labs 00 and 03: naive kernels cost what the tables derive, texts say what is counted."""

from __future__ import annotations

import numpy as np
import pytest

import gpulab
from tests.labs import notebooks

LABS = ("00_start_here", "03_cuda_with_numba")
WRONG = [(lab, path) for lab in LABS for path in notebooks.wrong_files(lab)]


@pytest.fixture(scope="module")
def solutions():
    return {lab: notebooks.answers(lab) for lab in LABS}


# ---------------------------------------------------------------- what the tables were derived to say


@pytest.mark.parametrize(
    "stem, label, derived",
    [
        ("saxpy_chunks", "load sectors", 2 * 98_304),
        ("brighten_down_the_columns", "load sectors", 96 * 256),
        ("two_paths_by_lane", "divergent branches", 512),
        ("two_paths_select", "warp instructions", 424 * 512),  # both paths and 40 others, in 512 warps
        ("matmul_down_the_columns", "load sectors", 33 * 64 * 128 * 96 / 32),
        ("matmul_sum_in_memory", "bytes stored", 4 * 64 * 128 * (96 + 1)),  # once more to clear it
        ("block_sum_every_second_thread", "divergent branches", 32 * (47 + 1)),
        ("block_sum_strided", "bank conflicts", 32 * 105),
        ("diffuse_copies_back", "bytes stored", 4 * 4096 * (2 * 8 + 1)),
    ],
)
def test_a_naive_kernel_costs_what_was_derived_and_earns_nothing_for_it(stem, label, derived):
    lab = next(lab for lab, path in WRONG if path.stem == stem)
    part = notebooks.part_of_wrong(lab, stem, label)
    assert part.measured == pytest.approx(derived, rel=1e-3)
    assert part.points == 0


# ---------------------------------------------------------------- numbers that the texts state


def text(lab: str) -> str:
    return " ".join("\n".join(c.source for c in notebooks.cells(lab)).split())


def run_cells(lab: str, *starts: str) -> dict:
    """The names after running the cells that hold these words."""
    names: dict = {"np": np, "gpulab": gpulab, "cuda": gpulab.cuda}
    for words in starts:
        sources = [c.source for c in notebooks.cells(lab, "code")]
        exec(next(source for source in sources if words in source), names)
    return names


def test_the_sample_answer_on_the_copy_twice_as_fast_cites_the_counts():
    names = run_cells("00_start_here", "def quick(", "half = gpulab.profile(")
    assert names["whole"]["global_store_bytes"] == 400_000
    assert names["half"]["global_store_bytes"] == 200_000
    target = gpulab.cuda.to_device(np.full(names["n"], np.nan, np.float32))
    names["quick"][names["blocks"], 256](names["source"], target)
    assert np.isnan(target.copy_to_host()).sum() == 50_000
    assert "200,000 bytes stored" in text("00_start_here") and "50,000 elements stay NaN" in text(
        "00_start_here"
    )


@gpulab.cuda.jit
def sixteen_each(a, out):
    i = gpulab.cuda.blockIdx.x * 4096 + gpulab.cuda.threadIdx.x
    if i + 15 * 256 < a.size:
        for k in range(16):
            out[i + k * 256] = a[i + k * 256]
    else:
        for j in range(i, a.size, 256):
            out[j] = a[j]


def test_the_open_task_on_the_cheapest_copy_can_be_done_for_what_it_says():
    a, out = np.ones(2**20, np.float32), np.zeros(2**20, np.float32)
    report = gpulab.profile(sixteen_each[256, 256], a, out)
    assert out.all()
    assert f"{report['instructions'] / 2**15:.1f}" == "12.1"
    assert "| ours, sixteen elements per thread | 12.1 (" in text("00_start_here")


def test_the_sample_answer_on_divergence_cites_the_counts(solutions):
    names = solutions["03_cuda_with_numba"]
    a, out = np.full(16_384, 0.5, np.float32), np.zeros(16_384, np.float32)
    per_warp = [
        gpulab.profile(names[kernel][64, 256], a, out)["instructions"] / 512
        for kernel in ("two_paths_by_lane", "two_paths")
    ]
    assert per_warp == [428, 260]
    said = text("03_cuda_with_numba")
    assert "428 instructions per warp" in said and "and 260 instructions" in said
