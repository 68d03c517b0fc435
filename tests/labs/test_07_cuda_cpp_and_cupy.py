"""Lab 07: naive kernels cost what the table derives, texts say what is counted."""

from __future__ import annotations

import numpy as np
import pytest

import gpulab
from gpulab import cupy as cp
from gpulab.exercises.lab_07_cuda_cpp_and_cupy import MIX_CASES, STEP, mix_questions
from gpulab.exercises.references.lab_07_cuda_cpp_and_cupy import mix
from tests.labs import notebooks

LAB = "07_cuda_cpp_and_cupy"
WRONG = notebooks.wrong_files(LAB)


@pytest.fixture(autouse=True)
def progress(tmp_path, monkeypatch):
    monkeypatch.setenv("GPULAB_PROGRESS", str(tmp_path / "progress.json"))


def cell_with(text: str) -> str:
    return next(c.source for c in notebooks.cells(LAB, "code") if text in c.source)


def text() -> str:
    return " ".join("\n".join(c.source for c in notebooks.cells(LAB)).split())


# ---------------------------------------------------------------- what the table was derived to say


@pytest.mark.parametrize(
    "stem, label",
    [
        ("invert_column_by_column", "load sectors"),
        ("copy4_one_at_a_time", "requests"),
        ("two_product_after_dekker", "operations"),
        ("two_product_loads_again", "bytes loaded"),
    ],
)
def test_a_naive_kernel_costs_what_was_derived_and_earns_nothing_for_it(stem, label):
    path = next(path for path in WRONG if path.stem == stem)
    exercise = notebooks.wrong_header(path)["exercise"]
    verdict = gpulab.check(exercise, notebooks.wrong_answer(path)[notebooks.checks(LAB)[exercise][0]])
    part = next(part for part in verdict.parts if part.label == label)
    assert part.measured == part.naive
    assert part.points == 0


def test_the_listings_that_are_read_have_what_their_names_say():
    numbers = np.random.default_rng(3)
    asked = {case.name: [q[0] for q in mix_questions(case.sizes, numbers)] for case in MIX_CASES}
    assert all(".v4.f32" in q or ".v2.f64" in q for q in asked["wide"])
    assert all("mad.lo" in q and mix(q)["fused"] == 0 for q in asked["integers"])
    assert all(4 <= mix(q)["loads"] / 2 + 1 <= 8 for q in asked["unrolled"])
    for q in asked["other memories"]:
        assert "ld.shared" in q and "ld.const" in q and "ld.global.nc" in q and mix(q)["loads"] == 2
    assert all(q.startswith(".visible .entry ") and "ld.param" in q for qs in asked.values() for q in qs)


def test_the_product_of_the_shuffle_outgrows_32_bits_where_the_text_says():
    assert 88_976 * STEP < 2**32 <= 88_977 * STEP == 4_295_008_767


# ---------------------------------------------------------------- numbers that the texts state


def test_the_sample_answer_on_the_shuffle_cites_the_counts():
    names = {"np": np, "gpulab": gpulab, "cp": cp}
    exec(cell_with("shuffle_tested ="), names)
    wrong = np.flatnonzero(names["epoch"] != np.arange(100_003) * STEP % 100_003)
    assert (wrong[0], wrong.size) == (88_977, 11_026)
    assert "From i = 88,977 on" in text() and "11,026 of the 100,003 positions were wrong" in text()


CHEAP = r"""
extern "C" __global__
void saxpy(float a, const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * 1024 + threadIdx.x;
    const float4* x4 = reinterpret_cast<const float4*>(x) + i;
    float4* y4 = reinterpret_cast<float4*>(y) + i;
    if (i + 768 < n / 4) {
        #pragma unroll
        for (int k = 0; k < 1024; k += 256) {
            float4 p = x4[k], q = y4[k];
            y4[k] = make_float4(a * p.x + q.x, a * p.y + q.y, a * p.z + q.z, a * p.w + q.w);
        }
    }
}
"""


def test_the_open_task_can_be_done_for_what_it_says():
    names = {"np": np, "gpulab": gpulab, "cp": cp}
    exec(cell_with("SAXPY = "), names)
    exec(cell_with("def merit(kernel"), names)
    assert names["merit"](names["saxpy"], (2**12,), (256,)) == "20.00"
    assert names["merit"](cp.RawKernel(CHEAP, "saxpy"), (256,), (256,)) == "3.06"
    assert names["merit"](cp.RawKernel(CHEAP, "saxpy"), (1,), (256,)) == "wrong"
    assert "| ours: float4, four of them for each thread | 3.06 |" in text()


def test_the_squares_are_rounded_as_the_text_says():
    names = {"np": np, "gpulab": gpulab, "cp": cp}
    exec(cell_with("SQUARES = ").split("for options")[0], names)
    exec(cell_with("fused = cp.RawKernel"), names)
    assert names["zeros"] == 0 and not names["out_separate"].get().any()
    a = np.random.default_rng(7).random(1000, dtype=np.float32) + np.float32(1)
    exact = a.astype(np.float64) ** 2 - (a * a).astype(np.float64)  # 48 bits fit into a double
    assert np.array_equal(names["out_fused"].get(), exact)
    below = a * a < 2
    assert np.abs(exact[below]).max() <= 2**-24 < np.abs(exact[~below]).max() <= 2**-23
