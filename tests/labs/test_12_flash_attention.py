"""Lab 12: the numbers that its tables derive by hand, and those that its texts state."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import float32

torch = pytest.importorskip("torch")

import gpulab  # noqa: E402
from gpulab import cuda  # noqa: E402
from gpulab.checks import cases, find, registry  # noqa: E402
from gpulab.checks.tensor_graphs import record, replay  # noqa: E402
from gpulab.content.lab_12_flash_attention.attention import (  # noqa: E402
    all_pairs_flops,
    eager_bytes,
    flash_bytes,
    seen,
    visited_flops,
)
from gpulab.content.lab_12_flash_attention.references import attention as references  # noqa: E402
from gpulab.simulator import hardware  # noqa: E402
from grading.authoring.prove import wrong_file  # noqa: E402
from tests.labs import notebooks  # noqa: E402

LAB = "12_flash_attention"


@pytest.fixture(scope="module")
def answers():
    return notebooks.answers(LAB)


def report(name, fn):
    """What a function costs at the exercise's last case."""
    exercise = find(name)
    made = cases.arguments(exercise, exercise.cases[-1])
    return replay(
        record(fn, made, exercise.evidence.operators), made, exercise.evidence.operators, "fn"
    ).report


def wrong(stem):
    path = notebooks.ROOT / "solutions" / LAB / "wrong" / f"{stem}.py"
    return notebooks.wrong_answer(path)[wrong_file(path).exercise.partition(".")[2]]


def eager(q, k, v):
    return torch.softmax(q @ k.t(), dim=1) @ v


def inputs(n, m, d, seed=0):
    numbers = torch.Generator().manual_seed(seed)
    shapes = ((n, d), (m, d), (m, d))
    return [torch.randn(shape, generator=numbers) for shape in shapes]


# ---------------------------------------------------------------- bytes and memory


def test_three_operations_move_17_8_mb_and_hold_8_4_mb_beyond_the_output():
    q, k, v = inputs(1024, 1024, 64)
    counted = gpulab.profile(eager, q, k, v)
    assert counted.bytes == eager_bytes(1024, 1024, 64) == 17_825_792
    assert counted.peak == 8 * 1024 * 1024  # S and P; the output comes when S is gone
    assert round(counted.bytes - 4 * 4 * 64 * 1024, -5) == 16_800_000  # S and P


def test_one_launch_with_128_queries_a_block_moves_4_7_mb():
    assert flash_bytes(1024, 1024, 64, 128) == 4_722_688
    assert flash_bytes(1024, 1024, 64, 32) / eager_bytes(1024, 1024, 64) == pytest.approx(1, abs=0.03)
    assert "With d = 64 blocks of 32 queries would save nothing: 2·d/R = 4" in notebooks.text(LAB)


def test_tiles_ask_for_the_keys_as_often_as_there_are_tiles_of_queries(answers):
    """What the notebook's `streamed` counts, at another size: the products' second factors."""
    counted = gpulab.profile(answers["tiled"], *inputs(96, 64, 16), 32)
    second = sum(np.prod(e.shapes[-1]) for e in counted.entries if e.matrix_flops)
    assert 4 * (second + 2 * 96 * 16 + 96) == flash_bytes(96, 64, 16, 32)


def test_memory_of_tiles_doubles_with_the_length_and_that_of_three_operations_quadruples(answers):
    short, long = (inputs(n, n, 64) for n in (512, 1024))
    with_tiles = [gpulab.profile(answers["tiled"], *x, 64).peak for x in (short, long)]
    without = [gpulab.profile(eager, *x).peak for x in (short, long)]
    assert with_tiles[1] / with_tiles[0] < 2.05
    assert without[1] / without[0] > 3.9


def test_merging_by_a_product_reads_each_part_once(answers):
    parts, n, d = 8, 256, 128
    one_read = 4 * (parts + 1) * n * d
    assert one_read < report("attention.merge", answers["merge"]).bytes < 4 / 3 * one_read
    weighted = report("attention.merge", wrong("merge_weights_every_part")).bytes
    assert 4 * (3 * parts + 1) * n * d < weighted


def test_all_but_one_part_cost_less_than_taking_it_away(answers):
    last = find("attention.steady").cases[-1].sizes
    parts_once = 4 * last["parts"] * last["n"] * last["d"]
    assert 2 * parts_once < report("attention.steady", answers["steady"]).bytes < 3 * parts_once
    budget = find("attention.steady").budgets[0]
    subtracts = report("attention.steady", wrong("steady_subtracts")).bytes
    assert 7 * parts_once < subtracts < budget.limit_for(last) == 8 * parts_once
    assert report("attention.steady", wrong("steady_part_by_part")).bytes == pytest.approx(
        budget.naive_for(last), rel=0.1
    )


def test_repeated_keys_cost_what_was_derived():
    last = find("attention.grouped").cases[-1].sizes
    naive = find("attention.grouped").budgets[0].naive_for(last)
    assert report("attention.grouped", wrong("grouped_repeats")).bytes == naive


# ---------------------------------------------------------------- tiles


def test_a_causal_mask_leaves_36_of_64_tiles_and_a_window_a_stripe():
    sizes = {"n": 64, "m": 64, "d": 1, "tile": 8, "window": 64}
    assert visited_flops(sizes) / all_pairs_flops(sizes) == 36 / 64
    assert registry.predictions()["attention.tiles"].answer == 36
    sizes = {"n": 16384 // 16, "m": 16384 // 16, "d": 1, "tile": 8, "window": 64}
    last_row = seen(1024, 1024, 64)[-8:].reshape(8, 128, 8).any(axis=(0, 2))
    assert last_row.sum() == 9 and "9 of 128 in a row of tiles: 7 %" in notebooks.text(LAB)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 20),
    m=st.integers(1, 20),
    window=st.integers(1, 25),
    tile=st.integers(1, 9),
    scale=st.sampled_from([0.1, 1.0, 100.0]),
)
def test_causal_attention_is_right_for_any_lengths_windows_and_tiles(n, m, window, tile, scale, answers):
    q, k, v = inputs(n, m, 4, seed=n)
    out, lse = answers["causal"](scale * q, k, v, window, tile)
    there = seen(n, m, window)
    expected = references.attend(*(x.double().numpy() for x in (scale * q, k, v)), there)
    np.testing.assert_allclose(out.numpy(), expected["out"], rtol=1e-4, atol=1e-4 * max(scale, 1))
    np.testing.assert_allclose(lse.numpy(), expected["lse"], rtol=1e-4, atol=1e-4)


# ---------------------------------------------------------------- figures of the text


def test_the_detectives_program_loses_the_rest_where_one_part_outweighs_it(answers):
    source = next(c.source for c in notebooks.cells(LAB, "code") if "def steady_first_try" in c.source)
    q, k, v = inputs(64, 1024, 16)
    names = {"torch": torch, "math": math, "q": q / 4, "k": k, "v": v}
    exec(source.partition("\n\n\ndef error")[0], names)

    def errors(fn, raised):
        outs, lses, exact = names["documents"](raised=raised)
        return (fn(outs, lses)[0] - exact).abs().amax((1, 2))

    first_try, steady = names["steady_first_try"], answers["steady"]
    assert errors(first_try, 0).max() < 1e-5  # its test passes
    lost = errors(first_try, 10)
    assert lost[0] > 1000 * lost[1:].max() and lost[1:].max() < 1e-5  # only the result without the heavy part
    assert errors(first_try, 30)[0].isnan()
    for raised in (0, 10, 30, 900):
        assert errors(steady, raised).max() < 1e-5
    assert round(math.log(2**24), 1) == 16.6 and round(math.log(2**53), 1) == 36.7


def test_what_the_text_says_of_lengths_and_sizes():
    assert round(4 * 65_536**2 / 1e9) == 17  # S of one head
    assert round(32 * 8192**2 * 2 / 1e9, 1) == 4.3
    assert 88.7 < np.log(np.finfo(np.float32).max) < 88.8  # from here on exp is infinite
    assert np.spacing(np.float32(1000)) == pytest.approx(6e-5, abs=0.2e-5)


def test_pytorch_gives_0_for_a_row_that_sees_nothing():
    there = torch.tensor([[False, False], [True, True]])
    q, k, v = (torch.ones(1, 1, 2, 4) for _ in range(3))
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=there)
    assert out[0, 0].tolist() == [[0] * 4, [1] * 4]


# ---------------------------------------------------------------- part B


def kernel_arrays(n, m, dtype=np.float32):
    numbers = np.random.default_rng(12)
    q, k, v = (numbers.standard_normal((rows, 64)) for rows in (n, m, m))
    inside = [cuda.to_device(x.astype(dtype)) for x in (q / 8, k, v)]
    return [*inside, cuda.to_device(np.zeros((n, 64), np.float32)), cuda.to_device(np.zeros(n, np.float32))]


def test_flash_moves_what_was_derived(answers):
    counted = gpulab.profile(answers["flash"][2, 128], *kernel_arrays(200, 48))
    assert counted["global_bytes"] == flash_bytes(200, 48, 64, 128)


@pytest.mark.slow
def test_what_the_lab_is_remembered_by(answers):
    counted = gpulab.profile(answers["flash"][8, 128], *kernel_arrays(1024, 1024))
    assert counted["global_bytes"] == 4_722_688
    assert 4 * 1024 == 4096  # the log-sum-exps: all that is stored beside the output


BEST = """
u = np.uint32


@cuda.jit
def best(q, k, v, out, lse):
    keys = cuda.shared.array((16, 64), float32, alignment=16)
    values = cuda.shared.array((16, 64), float32, alignment=16)
    mine = cuda.local.array(64, float32)
    total = cuda.local.array(64, float32)
    scores = cuda.local.array(4, float32)
    row, t = cuda.grid(1), u(cuda.threadIdx.x)
    for i in range(64):
        mine[i] = q[row, i]
        total[i] = float32(0)
    m, s = float32(-math.inf), float32(0)
    for first in range(u(0), u(k.shape[0]), u(16)):
        for e in range(8):
            at = t + u(128 * e)
            keys[at // u(64), at % u(64)] = k[first + at // u(64), at % u(64)]
            values[at // u(64), at % u(64)] = v[first + at // u(64), at % u(64)]
        cuda.syncthreads()
        for part in range(u(0), u(16), u(4)):
            larger = m
            for j in range(4):
                score = float32(0)
                for i in range(64):
                    score += mine[i] * keys[part + u(j), i]
                scores[j] = score
                larger = max(larger, score)
            old = math.exp(m - larger)
            m = larger
            s *= old
            for i in range(64):
                total[i] *= old
            for j in range(4):
                weight = math.exp(scores[j] - m)
                s += weight
                for i in range(64):
                    total[i] += weight * values[part + u(j), i]
        cuda.syncthreads()
    for i in range(64):
        out[row, i] = total[i] / s
    lse[row] = m + math.log(s)
"""


@pytest.mark.slow
def test_the_open_task_can_be_done_for_what_it_says(answers):
    names = {"np": np, "cuda": cuda, "math": math, "float32": float32, "D": 64}
    exec(BEST, names)
    source = next(c.source for c in notebooks.cells(LAB, "code") if "def seldom(" in c.source)
    exec(source.partition("\n\n\nn = m")[0], names)
    counted = {}
    for name, kernel in (("flash", answers["flash"]), ("seldom", names["seldom"]), ("best", names["best"])):
        arrays = kernel_arrays(256, 256)
        report = gpulab.profile(kernel[2, 128], *arrays)
        counted[name] = 32 * report["instructions"] / (256**2 * 128)
        q, k, v = (x.copy_to_host().astype(np.float64) for x in arrays[:3])
        assert np.allclose(arrays[3].copy_to_host(), references.attend(q, k, v)["out"], atol=1e-5)
        assert report["local_bytes"] == 0
    assert [f"{counted[name]:.1f}" for name in ("flash", "seldom")] == ["3.1", "2.0"]
    assert f"{counted['best']:.2f}" == "1.65" and (128 + 32) / 128 == 1.25
    for row in ("| flash, as in section 1 | 3.1 |", "| seldom | 2.0 |", "16-byte reads | 1.65 |", "| 1.25 |"):
        assert row in notebooks.text(LAB)


def test_the_first_key_is_a_new_largest_and_the_jth_one_time_in_j():
    expected = sum(1 / j for j in range(1, 1001))
    assert registry.predictions()["attention.growths"].answer == pytest.approx(expected, abs=1e-3)


def test_gradients_are_those_of_autograd(answers):
    q, k, v = (x.requires_grad_() for x in inputs(40, 56, 16))
    scores = q @ k.t() / 4
    out = torch.softmax(scores, dim=1) @ v
    slope = torch.randn(40, 16, generator=torch.Generator().manual_seed(1))
    out.backward(slope)
    with torch.no_grad():
        got = answers["backward"](q / 4, k, v, out, torch.logsumexp(scores, 1), slope, 16)
    for gradient, leaf, factor in zip(got, (q, k, v), (1 / 4, 1, 1), strict=True):
        assert torch.allclose(gradient * factor, leaf.grad, atol=1e-4)


def test_published_shares_are_of_the_dense_peak():
    for name, reached, share in (("A100", 225, 72), ("H100", 740, 75)):
        peak = float(hardware.find(name).peak("float16", tensor=True)) / 1e12
        assert round(100 * reached / peak) == share
    a100 = hardware.find("A100")
    assert float(a100.peak("float16", tensor=True)) / float(a100.peak("float32")) == pytest.approx(
        16, abs=0.1
    )
    assert registry.predictions()["attention.exponentials"].answer == 50
    rates = [int(hardware.find(name).tensor_fma["float16"]) for name in ("A100", "H100")]
    assert rates == [1024, 2048]
    assert "2,048 float16 multiply-adds in a clock where an A100's make 1,024" in notebooks.text(LAB)


# ---------------------------------------------------------------- who holds what

BY_TABLES = r"""
#include <cuda_fp16.h>
extern "C" __global__ void product(const __half* a, const __half* b, float* d, const int* at_a, const int* at_b,
                                   const int* at_d) {
    __half left[8], right[4];
    for (int i = 0; i < 8; i++) left[i] = a[at_a[8 * threadIdx.x + i]];
    for (int i = 0; i < 4; i++) right[i] = b[at_b[4 * threadIdx.x + i]];
    const unsigned *l = (const unsigned*)left, *r = (const unsigned*)right;
    float sum[4] = {};
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(l[0]), "r"(l[1]), "r"(l[2]), "r"(l[3]), "r"(r[0]), "r"(r[1]));
    for (int i = 0; i < 4; i++) d[at_d[4 * threadIdx.x + i]] = sum[i];
}
"""


def places(held):
    """For each lane the places of its elements, register after register, in the order of rows and columns."""
    lanes, registers = (np.asarray(x).ravel() for x in held)
    order = np.lexsort((np.arange(lanes.size), registers, lanes))
    return order.astype(np.int32)


def test_the_picture_of_lanes_and_registers_is_that_of_the_machine():
    from gpulab import cupy as cp

    (source,) = (c.source for c in notebooks.cells(LAB, "code") if "plot.fragments(" in c.source)
    tables = {"np": np}
    exec(source.partition("plot.fragments(")[0], tables)
    numbers = np.random.default_rng(0)
    a, b = (numbers.integers(-4, 5, shape).astype(np.float16) for shape in ((16, 16), (16, 8)))
    lanes, registers = tables["scores_of"]
    one = lanes[:, :8], registers[:, :8]  # one accumulator is 16 × 8
    d = cp.zeros((16, 8), cp.float32)
    at = [cp.asarray(places(held)) for held in (tables["left_factor"], tables["right_factor"], one)]
    cp.RawKernel(BY_TABLES, "product")((1,), (32,), (cp.asarray(a), cp.asarray(b), d, *at))
    np.testing.assert_array_equal(cp.asnumpy(d), a.astype(np.float32) @ b.astype(np.float32))
    assert all(map(np.array_equal, tables["scores_of"], tables["left_factor"]))


def test_only_the_side_that_two_blocks_share_must_be_16_for_a_dot_in_triton():
    """The table of functions of part B says so; m and n were tied to 16, too, before version 3.5."""
    compiler = pytest.importorskip("triton.backends.nvidia.compiler")
    core = pytest.importorskip("triton.language").core
    block = core.block_type(core.float16, [16, 16])
    assert compiler.min_dot_size(None)(block, block) == (1, 1, 16)
    (row,) = (
        line
        for c in notebooks.cells(LAB, "markdown")
        for line in c.source.splitlines()
        if "`tl.dot(a, b)`" in line
    )
    assert row.endswith("the side that they share is at least 16 |")
