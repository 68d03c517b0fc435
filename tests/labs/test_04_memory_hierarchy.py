"""Lab 04: naive kernels cost what the table derives, texts say what is counted."""

from __future__ import annotations

import numpy as np
import pytest

import gpulab
from gpulab.checks import registry
from gpulab.content.lab_04_memory_hierarchy.references.exercises import compressed, sectors, ways
from gpulab.plot import Request
from tests.labs import notebooks

LAB = "04_memory_hierarchy"


# ---------------------------------------------------------------- what the table was derived to say


@pytest.mark.parametrize(
    "stem, label",
    [
        ("copy_blocked", "load sectors"),
        ("transpose_plain", "store sectors"),
        ("padded_not_padded", "bank conflicts"),
        ("unpack_plain", "load sectors"),
        ("blur_plain", "loaded bytes"),
        ("smooth_reads_again", "loaded bytes"),
    ],
)
def test_a_naive_kernel_costs_what_was_derived_and_earns_nothing_for_it(stem, label):
    part = notebooks.part_of_wrong(LAB, stem, label)
    assert part.measured == part.naive
    assert part.points == 0


@pytest.mark.parametrize("size", [4, 8, 16])
def test_the_references_agree_with_the_geometry_that_is_drawn(size):
    generator = np.random.default_rng(size)
    for spread in (32, 100, 3000):
        addresses = [int(a) * size for a in generator.integers(0, spread, 32)]
        active = generator.random(32) < 0.8
        asked = [a for a, on in zip(addresses, active, strict=True) if on]
        request = Request(addresses, active, size)
        assert sectors(asked, size) == len(request.sectors)
        assert ways([a if on else None for a, on in zip(addresses, active, strict=True)], size) == (
            request.wavefronts
        )


# ---------------------------------------------------------------- numbers that the text states


@pytest.mark.parametrize(
    "difference, wanted",
    [(0, 1), (127, 2), (128, 3), (-128, 2), (-129, 3), (32_767, 3), (32_768, 4), (-32_769, 4)],
)
def test_a_line_takes_the_bytes_of_its_base_and_its_differences(difference, wanted):
    words = [1000] * 31 + [1000 + difference]
    size_of_one = {1: 0, 2: 1, 3: 2}.get(wanted)
    assert compressed(words) == wanted == notebooks.answers(LAB)["compressed"](words)
    assert size_of_one is None or -(-(4 + 32 * size_of_one) // 32) == wanted


def test_the_sample_answer_on_the_row_sums_cites_the_counts():
    names = {"np": np, "gpulab": gpulab, "cuda": gpulab.cuda}
    exec(notebooks.cell_with(LAB, "def row_sums("), names)
    assert names["before"]["global_load_sectors"] == 8 * names["after"]["global_load_sectors"]
    assert names["after"]["shared_wavefronts"] == 67_584
    exec(
        notebooks.cell_with(LAB, "def row_sums(").replace("(32, 32), np.float32", "(32, 33), np.float32"),
        names,
    )
    assert names["after"]["shared_wavefronts"] == 4_096


POOL = """
@cuda.jit
def pool(table, index, out):
    rows = cuda.shared.array(32, np.int32)
    lane, k = cuda.threadIdx.x, cuda.threadIdx.y
    bag = cuda.blockIdx.x * 4 + k
    if k == 0:
        rows[lane] = index[bag + lane // 8, lane % 8]
    cuda.syncthreads()
    left = right = np.float32(0)
    for i in range(8):
        row = rows[8 * k + i]
        left += table[row, lane]
        right += table[row, lane + 32]
    out[bag, lane] = left * np.float32(0.125)
    out[bag, lane + 32] = right * np.float32(0.125)


@cuda.jit
def pool_by_warps(table, index, out):
    bag = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    lane = cuda.threadIdx.x
    if bag < out.shape[0]:
        left = right = np.float32(0)
        for k in range(8):
            row = index[bag, k]
            left += table[row, lane]
            right += table[row, lane + 32]
        out[bag, lane] = left * np.float32(0.125)
        out[bag, lane + 32] = right * np.float32(0.125)


@cuda.jit
def nothing(table, index, out):
    pass


ours = merit(pool[BAGS // 4, (32, 4)])
by_warps = merit(pool_by_warps[BAGS // 4, (32, 4)])
idle = merit(nothing[1, 32])
naive = merit(pool_plain[8, 32])
"""


def test_the_open_task_can_be_done_for_what_it_says_and_not_for_nothing():
    names = {"np": np, "gpulab": gpulab, "cuda": gpulab.cuda}
    exec(notebooks.cell_with(LAB, "def pool_plain("), names)
    exec(POOL, names)
    assert (names["ours"], names["by_warps"], names["idle"]) == ("91.2", "106.0", "wrong")
    assert float(names["naive"]) > 1000
    text = "".join(c.source for c in notebooks.cells(LAB))
    assert "| one warp per bag, 4-byte loads | 106 |" in text
    assert "| ours, 4-byte loads too, each index loaded once | 91.2 |" in text


def test_figures_in_the_questions_are_those_of_the_data_sheet():
    a100 = gpulab.hardware.find("A100")
    asked = " ".join(p.question for p in registry.predictions().values() if p.lab == "04")
    for figure in (f"{int(a100.sms)} SMs", f"{int(a100.l1_bytes) // 1024} KiB"):
        assert figure in asked
    assert f"({float(a100.dram_bandwidth) / 1e9:,.0f} GB/s)" in asked
    assert f"({16 * 16e9 * 128 / 130 / 8 / 1e9:.1f} GB/s)" in asked  # PCIe 4.0: 16 lanes, 128 of 130 bits
