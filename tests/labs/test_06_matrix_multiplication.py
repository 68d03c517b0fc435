"""Lab 06: the ladder counts what the table derives, texts say what is counted."""

from __future__ import annotations

import numpy as np
import pytest

import gpulab
from gpulab import cuda
from gpulab import cupy as cp
from gpulab.checks import find, registry
from gpulab.simulator import hardware
from grading.authoring.prove import wrong_file
from tests.labs import notebooks

LAB = "06_matrix_multiplication"
WRONG = notebooks.wrong_files(LAB)
N = 256


@pytest.fixture(scope="module")
def solutions():
    return notebooks.answers(LAB)


def code_with(*words: str) -> str:
    """The code cells that hold these words, in the order of the words."""
    sources = [c.source for c in notebooks.cells(LAB, "code")]
    return "\n".join(next(source for source in sources if w in source) for w in words)


def square(kernel, grid, block):
    """The report of a 256³ product."""
    numbers = np.random.default_rng(6)
    a, b = numbers.standard_normal((2, N, N), np.float32)
    c = np.zeros((N, N), np.float32)
    report = gpulab.profile(kernel[grid, block], a, b, c)
    assert np.allclose(c, a.astype(np.float64) @ b, atol=1e-3)
    return report


# ---------------------------------------------------------------- what the table was derived to say


@pytest.mark.parametrize(
    "stem, label",
    [
        ("tiled_without_tiles", "loaded bytes"),
        ("column_reads_b_again", "shared loads"),
        ("blocked_neighbouring_rows", "bank conflicts"),
        ("wide_one_float_at_a_time", "load requests"),
        ("wide_narrow_reads_of_the_tiles", "shared requests"),
        ("matvec_thread_per_row", "load sectors"),
        ("matvec_row_after_row", "loaded bytes"),
        ("batched_without_tiles", "loaded bytes"),
        ("split_k_adds_each_product", "atomic additions"),
        ("fragments_on_the_lanes", "loaded bytes"),
        ("lanes_half_by_half", "load requests"),
        ("tiles_from_global_memory", "loaded bytes"),
        ("tiles_one_product_a_load", "shared loads"),
        ("tiles_without_padding", "bank conflicts"),
    ],
)
def test_a_naive_kernel_costs_what_was_derived(stem, label):
    """A wrong submission's verdict must say what its first line says: here that is what was derived."""
    header = wrong_file(next(path for path in WRONG if path.stem == stem))
    exercise = find(header.exercise)
    budget = next(budget for budget in exercise.budgets if budget.label == label)
    naive = budget.naive_for(exercise.cases[-1].sizes)
    assert header.says.split()[0] == (f"{naive:,.0f}" if naive > 100 else f"{naive:.3g}")


def test_what_the_lab_is_remembered_by(solutions):
    plain = {"np": np, "cuda": cuda}
    exec(code_with("def naive("), plain)
    naive = square(plain["naive"], (8, 32), (32, 8))
    tiled = square(solutions["tiled"], (8, 8), (32, 32))
    blocked = square(solutions["blocked"], (4, 4), (8, 8))
    assert (naive["global_load_sectors"], blocked["global_load_sectors"]) == (2_621_440, 65_536)
    loads = [report["shared_load_bytes"] / 4 / N**3 for report in (tiled, blocked)]
    assert loads == [2, 0.25]
    assert [f"{32 * report['instructions'] / N**3:.1f}" for report in (naive, blocked)] == ["22.0", "3.0"]
    assert "| naive | 22.0 |" in notebooks.text(LAB) and "| blocked | 3.0 |" in notebooks.text(LAB)


# ---------------------------------------------------------------- numbers that the texts state


DOWN = ("w_tile[ty, tx] = w[left + ty, first + tx]", "w_tile[ty, tx] = w[left + tx, first + ty]")
CURES = {
    "as it is": ((), 33.06, 131_072),
    "down the columns": ((DOWN, ("w_tile[tx, k]", "w_tile[k, tx]")), 2.06, 589_824),
    "rows of 33": (
        (("w_tile = cuda.shared.array((32, 32)", "w_tile = cuda.shared.array((32, 33)"),),
        2.06,
        131_072,
    ),
}


@pytest.mark.parametrize("cure", CURES)
def test_the_sample_answer_on_the_layer_cites_the_counts(cure, solutions):
    changes, wavefronts, sectors = CURES[cure]
    source = code_with("def linear(").partition("\n\n\ngpulab.need")[0]
    for before, after in changes:
        assert before in source
        source = source.replace(before, after)
    names = {"np": np, "cuda": cuda}
    exec(source, names)
    numbers = np.random.default_rng(6)
    x, w = numbers.standard_normal((2, N, N), np.float32)
    y = np.zeros((N, N), np.float32)
    report = gpulab.profile(names["linear"][(8, 8), (32, 32)], x, w, y)
    assert np.allclose(y, x.astype(np.float64) @ w.T, atol=1e-3)
    assert round(32 * report["shared_wavefronts"] / N**3, 2) == wavefronts
    assert report["global_load_sectors"] == sectors
    assert f"{wavefronts}" in notebooks.text(LAB) and f"{sectors:,}" in notebooks.text(LAB)


BEST = """
u = np.uint32


@cuda.jit
def best(a, b, c):
    a_tile = cuda.shared.array((16, 68), np.float32, alignment=16)
    b_tile = cuda.shared.array((16, 64), np.float32, alignment=16)
    sums = cuda.local.array((8, 8), np.float32)
    mine = cuda.local.array(8, np.float32)
    tx, ty = u(cuda.threadIdx.x), u(cuda.threadIdx.y)
    top, left = u(cuda.blockIdx.y) * u(64), u(cuda.blockIdx.x) * u(64)
    for i in range(8):
        for j in range(8):
            sums[i, j] = 0
    t = ty * u(8) + tx
    for first in range(u(0), u(a.shape[1]), u(16)):
        for i in range(8):
            row = ty + u(8 * i)
            a_tile[tx, row] = a[top + row, first + tx]
            a_tile[tx + u(8), row] = a[top + row, first + tx + u(8)]
        for i in range(16):
            b_tile[u(i), t] = b[first + u(i), left + t]
        cuda.syncthreads()
        for k in range(16):
            for i in range(4):
                mine[i] = a_tile[u(k), ty * u(4) + u(i)]
                mine[i + 4] = a_tile[u(k), ty * u(4) + u(32 + i)]
            for j in range(4):
                near = b_tile[u(k), tx * u(4) + u(j)]
                far = b_tile[u(k), tx * u(4) + u(32 + j)]
                for i in range(8):
                    sums[i, j] += mine[i] * near
                    sums[i, j + 4] += mine[i] * far
        cuda.syncthreads()
    for i in range(8):
        for j in range(8):
            row, col = ty * u(4) + u(i % 4 + 32 * (i // 4)), tx * u(4) + u(j % 4 + 32 * (j // 4))
            c[top + row, left + col] = sums[i, j]
"""


def test_the_open_task_can_be_done_for_what_it_says():
    names = {"np": np, "cuda": cuda}
    exec(BEST, names)
    report = square(names["best"], (4, 4), (8, 8))
    assert f"{report['instructions'] * 32 / N**3:.2f}" == "1.57"
    assert report["shared_load_requests"] * 32 / N**3 == 4 / 64  # of 16 bytes: the bound's
    assert "| ours: 8 × 8 outputs, tiles 16 deep, unsigned indices, 16-byte reads | 1.57 |" in notebooks.text(
        LAB
    )
    assert f"| {1 + 4 / 64:.2f} |" in notebooks.text(LAB)


def test_a_float16_sum_is_as_far_off_as_the_text_says(solutions):
    names = {"np": np, "gpulab": gpulab, "cp": cp, "numbers": np.random.default_rng(6)}
    exec(code_with("def error(").partition("\nprint(")[0], names)
    positive, narrow = names["numbers"].random, names["steady_first_try"]
    assert names["error"](narrow, 32, names["numbers"].standard_normal) < 1e-3  # it passes its test
    assert names["error"](narrow, 64, positive) > 5e-4
    assert names["error"](narrow, 256, positive) > 1e-3
    for k in (16, 256):
        wide = names["error"](solutions["steady"], k, positive)
        assert 200 * wide < names["error"](narrow, k, positive)
    assert "hundreds to thousands of times worse" in notebooks.text(LAB)


def test_the_share_of_the_sms_time_is_what_is_asked_for():
    names = {"hardware": hardware}
    exec(code_with("def used(").partition("\n\n\nsides")[0], names)
    assert names["used"](1280) == 100 / 108
    assert 100 * names["used"](1408) == pytest.approx(registry.predictions()["gemm.waves"].answer)


def test_figures_in_the_text_are_those_of_the_data_sheets():
    a100, rtx = hardware.find("A100"), hardware.find("RTX 4090")
    assert int(a100.fp32_lanes) == 64 and "An SM of an A100 has 64 lanes for float32" in notebooks.text(LAB)
    assert round(hardware.roofline("A100").ridge, 1) == 9.6 and "The ridge is at 9.6" in notebooks.text(LAB)
    operations = 2 * 3620**3
    assert round(operations / 26.8e-3 / 1e12, 1) == 3.5 and "3.5 TFLOP/s on an RTX 4090" in notebooks.text(
        LAB
    )
    assert round(100 * operations / 26.8e-3 / float(rtx.peak("float32"))) == 4
    assert 20 < 26.8e-3 / (operations / float(rtx.peak("float32"))) < 25


def test_the_loop_order_of_column_costs_what_the_text_says(solutions):
    source = code_with("def column(")
    loops = """        for k in range(8):
            right[k] = b_tile[k, tx]
        for i in range(8):
            for k in range(8):
                sums[i] += a_tile[ty + 8 * i, k] * right[k]
"""
    exchanged = source.replace(
        loops,
        """        for k in range(8):
            word = b_tile[k, tx]
            for i in range(8):
                sums[i] += a_tile[ty + 8 * i, k] * word
""",
    )
    assert exchanged != source
    names = {"np": np, "cuda": cuda}
    exec(exchanged, names)
    reports = [square(kernel, (4, 4), (64, 8)) for kernel in (names["column"], solutions["column"])]
    assert [f"{32 * report['instructions'] / N**3:.1f}" for report in reports] == ["7.5", "2.8"]
    assert reports[0]["shared_load_requests"] == reports[1]["shared_load_requests"]
    assert reports[0]["flops"] == reports[1]["flops"]
    assert (
        "This order takes 7.5 instructions per multiply-add. With i outside and k inside, it takes 2.8."
        in notebooks.text(LAB)
    )


def test_what_tensor_cores_want_to_be_fed_follows_from_the_data_sheet():
    a100, h100 = hardware.find("A100"), hardware.find("H100")
    share = float(a100.dram_bandwidth) / float(a100.boost_clock) / int(a100.sms)
    rate = int(a100.tensor_fma["float16"])
    assert (round(share), rate, rate // 4) == (13, 1024, 256)
    assert f"does {rate:,} of them in a clock and would want {rate // 4} bytes" in notebooks.text(LAB)
    assert (
        f"with {share:.1f} bytes for 1,024 multiply-adds, T would have to be {round(4 * rate / share)}"
        in notebooks.text(LAB)
    )
    assert round(
        float(h100.peak("float16", tensor=True)) / 1e12
    ) == 989 and "400 / 989 = 40 %" in notebooks.text(LAB)
