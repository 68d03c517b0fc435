"""Lab 07: naive kernels cost what the table derives, texts say what is counted."""

from __future__ import annotations

import numpy as np
import pytest

import gpulab
from gpulab import cupy as cp
from gpulab import plot
from gpulab.analysis.profile.engines import Operation, makespan
from gpulab.checks import find
from gpulab.checks.spec import WrongAnswer
from gpulab.compile import CompileError, cuda_c_module, resources
from gpulab.content.lab_07_cuda_cpp_and_cupy.cuda_cpp import (
    CAPABILITIES,
    LARGE_STEP,
    MIX_CASES,
    STEP,
    WITH_FAMILY,
    WITH_OWN,
    mix_questions,
)
from gpulab.content.lab_07_cuda_cpp_and_cupy.cupy import STAGES, shortest
from gpulab.content.lab_07_cuda_cpp_and_cupy.references.cuda_cpp import mix, way
from gpulab.content.lab_07_cuda_cpp_and_cupy.references.cupy import gemm
from gpulab.content.lab_07_cuda_cpp_and_cupy.references.cupy import pipeline as run_plan
from tests.labs import notebooks

LAB = "07_cuda_cpp_and_cupy"
WRONG = notebooks.wrong_files(LAB)


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
    part = notebooks.part_of_wrong(LAB, stem, label)
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


# Without 12.1, which gpulab compiles for as sm_121, so that its linker refuses what is of sm_121a.
@pytest.mark.parametrize("suffix, known", [("", CAPABILITIES), ("a", WITH_OWN[:-1]), ("f", WITH_FAMILY)])
def test_nvidias_linker_compiles_the_ptx_for_the_gpus_that_the_rules_name(suffix, known):
    """The PTX says whom it is for in its head; nothing else of it depends on that here."""
    ptx = cuda_c_module('extern "C" __global__ void none() {}', (7, 5)).ptx
    for of in known:
        text = ptx.replace(".target sm_75", f".target sm_{of.replace('.', '')}{suffix}")
        for gpu in CAPABILITIES:
            major, minor = map(int, gpu.split("."))
            try:
                resources(text, (major, minor))
                compiled = "PTX"
            except CompileError:
                compiled = "nothing"
            assert way([f"compute_{of.replace('.', '')}{suffix}"], gpu) == compiled, (of, gpu)


def test_a_plan_for_cublas_that_does_not_fit_into_memory_is_refused_in_words():
    right = {"first": "B", "second": "A", "transa": "N", "transb": "N"}
    right |= {"m": 3, "n": 2, "k": 4, "lda": 5, "ldb": 4, "ldc": 3}
    question = (2, 3, 4, 4, 5, 3, False)
    assert gemm(right, *question) == {}
    for change, words in (
        ({"lda": 2}, "cuBLAS refuses it: lda is 2, and first is stored with 3 rows"),
        ({"ldb": 9}, "read behind the end of A"),
        ({"ldc": 9}, "write behind the end of C"),
        ({"k": 10**12}, "read behind the end of B"),
        ({"m": True}, "must be whole numbers"),
        ({"transa": "C"}, '"N" or "T"'),
        ({"k": 3}, "is wrong"),
    ):
        with pytest.raises(WrongAnswer, match=words):
            gemm(right | change, *question)
    with pytest.raises(WrongAnswer, match="a dictionary with the keys"):
        gemm([1], *question)


def test_the_product_of_the_shuffle_outgrows_32_bits_where_the_text_says():
    assert 88_976 * STEP < 2**32 <= 88_977 * STEP == 4_295_008_767


# ---------------------------------------------------------------- numbers that the texts state


def test_the_sample_answer_on_the_shuffle_cites_the_counts():
    names = {"np": np, "gpulab": gpulab, "cp": cp}
    exec(notebooks.cell_with(LAB, "shuffle_tested ="), names)
    wrong = np.flatnonzero(names["epoch"] != np.arange(100_003) * STEP % 100_003)
    assert (wrong[0], wrong.size) == (88_977, 11_026)
    assert "From i = 88,977 on" in notebooks.text(
        LAB
    ) and "11,026 of the 100,003 positions were wrong" in notebooks.text(LAB)


CHEAP = r"""
extern "C" __global__
void saxpy(float a, const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * 4096 + threadIdx.x;
    const float4* x4 = reinterpret_cast<const float4*>(x) + i;
    float4* y4 = reinterpret_cast<float4*>(y) + i;
    if (4 * i + 15363 < n) {
        #pragma unroll
        for (int k = 0; k < 4096; k += 256) {
            float4 p = x4[k], q = y4[k];
            y4[k] = make_float4(a * p.x + q.x, a * p.y + q.y, a * p.z + q.z, a * p.w + q.w);
        }
    } else {
        for (int k = 4 * i; k < 4 * (i + 4096); k += 1024)
            for (int j = k; j < min(k + 4, n); j++) y[j] = a * x[j] + y[j];
    }
}
"""


def test_the_open_task_can_be_done_for_what_it_says():
    names = {"np": np, "gpulab": gpulab, "cp": cp}
    exec(notebooks.cell_with(LAB, "SAXPY = "), names)
    exec(notebooks.cell_with(LAB, "def merit(kernel"), names)
    assert names["merit"](names["saxpy"], (2**12,), (256,)) == "20.00"
    assert names["merit"](cp.RawKernel(CHEAP, "saxpy"), (64,), (256,)) == "2.05"
    assert names["merit"](cp.RawKernel(CHEAP, "saxpy"), (1,), (256,)) == "wrong for n = 1,048,573"
    assert "| ours | 2.05 |" in notebooks.text(LAB)


def test_the_squares_are_rounded_as_the_text_says():
    names = {"np": np, "gpulab": gpulab, "cp": cp}
    exec(notebooks.cell_with(LAB, "SQUARES = ").split("for options")[0], names)
    exec(notebooks.cell_with(LAB, "fused = cp.RawKernel"), names)
    assert names["zeros"] == 0 and not names["out_separate"].get().any()
    a = np.random.default_rng(7).random(1000, dtype=np.float32) + np.float32(1)
    exact = a.astype(np.float64) ** 2 - (a * a).astype(np.float64)  # 48 bits fit into a double
    assert np.array_equal(names["out_fused"].get(), exact)
    below = a * a < 2
    assert np.abs(exact[below]).max() <= 2**-24 < np.abs(exact[~below]).max() <= 2**-23


# ---------------------------------------------------------------- part B


@pytest.mark.parametrize(
    "stem, label",
    [
        ("normalise_step_by_step", "launches"),
        ("rms_step_by_step", "launches"),
        ("pipeline_in_one_stream", "makespan"),
        ("winograd_six_products", "products"),
    ],
)
def test_a_naive_answer_of_part_b_costs_what_was_derived(stem, label):
    part = notebooks.part_of_wrong(LAB, stem, label)
    assert part.measured == part.naive
    assert part.points == 0


@pytest.mark.parametrize(
    "exercise, stem", [("cupy.normalise", "normalise_step_by_step"), ("cupy.rms", "rms_step_by_step")]
)
def test_step_by_step_moves_the_bytes_that_were_derived(exercise, stem):
    path = next(path for path in WRONG if path.stem == stem)
    function = notebooks.wrong_answer(path)[exercise.partition(".")[2]]
    case = find(exercise).cases[-1]
    given = [cp.ones(a.shape, cp.float32) for a in find(exercise).evidence.arguments(case.sizes)]
    naive = next(b for b in find(exercise).budgets if b.metric == "global_bytes").naive_for(case.sizes)
    assert gpulab.profile(function, *given)["global_bytes"] == naive


def all_plans(chunks: int, buffers: int):
    """Every promise that a plan can leave out, for few chunks: streams by buffer, by engine, all together."""
    for stream in (lambda k, do: k % buffers, lambda k, do: do, lambda k, do: 0):
        plan, places = [], {}
        for k in range(chunks):
            for do in STAGES:
                after = [places[STAGES[STAGES.index(do) - 1], k]] if do != "in" else []
                if do == "in" and k >= buffers:
                    after = [places["out", k - buffers]]
                places[do, k] = len(plan)
                plan.append({"stream": stream(k, do), "do": do, "chunk": k, "after": after})
        yield plan


@pytest.mark.parametrize("chunks, buffers", [(1, 1), (2, 1), (5, 2), (8, 2), (8, 3), (8, 8), (7, 4)])
def test_no_plan_is_shorter_than_the_budget_and_one_is_as_short(chunks, buffers):
    limit = shortest({"chunks": chunks, "buffers": buffers})
    lengths = [run_plan(plan, chunks, buffers)["makespan"] for plan in all_plans(chunks, buffers)]
    assert min(lengths) == limit
    assert max(lengths) == 3


def test_the_exercise_to_remember_goes_from_3_to_a_quarter_more_than_1():
    one_stream = [{"stream": 0, "do": do, "chunk": k} for k in range(8) for do in STAGES]
    assert run_plan(one_stream, 8, 3)["makespan"] == 3.0
    assert run_plan(notebooks.answers(LAB)["pipeline"](8, 3), 8, 3)["makespan"] == 1.25


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda plan: plan[:-1], "the copy out of chunk 3 is missing"),
        (lambda plan: [*plan, plan[0]], "the copy in of chunk 0 is there twice"),
        (lambda plan: [{**plan[0], "do": "copy"}, *plan[1:]], "not one of in, kernel, out"),
        (lambda plan: [{**plan[0], "chunk": 4}, *plan[1:]], "not a number from 0 to 3"),
        (lambda plan: [{**plan[0], "chunk": True}, *plan[1:]], "not a number from 0 to 3"),
        (lambda plan: [{**plan[0], "stream": [1]}, *plan[1:]], "not a number or a name"),
        (lambda plan: [{**plan[0], "after": [0]}, *plan[1:]], "recorded later"),
        (lambda plan: [{**plan[0], "after": ["x"]}, *plan[1:]], "no list of places"),
        (lambda plan: {"plan": plan}, "a list of dictionaries"),
        (lambda plan: [{**each, "stream": k} for k, each in enumerate(plan)], "kernel of chunk 0 may start"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused_with_its_reason(change, words):
    plan = [{"stream": k % 2, "do": do, "chunk": k} for k in range(4) for do in STAGES]
    assert run_plan(plan, 4, 2)
    with pytest.raises(WrongAnswer, match=words):
        run_plan(change(plan), 4, 2)


def test_the_convolutions_of_the_notebook_agree():
    names = {"np": np, "gpulab": gpulab, "winograd": notebooks.answers(LAB)["winograd"]}
    exec(notebooks.cell_with(LAB, "by_winograd = "), names)
    assert all(np.allclose(result, names["direct"]) for result, _, _ in names["ways"].values())
    per_output = {name: count / names["direct"].size for name, (_, count, _) in names["ways"].items()}
    assert per_output == {"im2col": 8 * 9, "Winograd": 8 * 4, "FFT": 4 * 8 * 18 * 10 / 256}


def test_unequal_stages_can_be_done_for_what_the_open_task_says():
    names = {"Operation": Operation, "makespan": makespan}
    exec(notebooks.cell_with(LAB, "def merit(shares)"), names)
    ours = np.array([1, 2, 4, 8, 16, 8, 4, 2, 1])
    assert f"{names['merit']([1]):.2f} {names['merit'](list(ours / ours.sum())):.2f}" == "4.06 2.26"
    assert names["merit"]([0.5, 0.6]) == "no plan"
    assert "| ours | 2.26 |" in notebooks.text(LAB)


def test_the_check_of_the_shuffle_fails_at_a_number_of_its_own():
    path = next(path for path in WRONG if path.stem == "shuffle_as_it_was")
    said = str(gpulab.check("cpp.shuffle", notebooks.wrong_answer(path)["shuffle"]))
    first = -(-(2**32) // LARGE_STEP)
    assert f"`out[{first}]`" in said and "88,977" not in said and "88977" not in said


def test_a_plan_in_the_wrong_order_is_told_the_order():
    plan = [{"stream": k % 2, "do": do, "chunk": k} for do in STAGES for k in range(4)]
    with pytest.raises(WrongAnswer, match="issues the copy in of chunk 2 before the copy out of chunk 0"):
        run_plan(plan, 4, 2)


def test_the_pool_holds_what_the_text_derives():
    names = {"cp": cp, "plot": plot}
    exec(notebooks.cell_with(LAB, "pool = cp.cuda.MemoryPool()"), names)
    held, used = ([round(1e6 * mb) for mb in names[name]] for name in ("held", "used"))
    assert held[10] - held[9] == 200_192 and 1_000_448 - used[8] == 199_680
    assert held[11] - used[11] == 600_064 == held[12] - held[11]


def test_a_serial_tail_is_told_by_how_much_it_misses():
    serial = cp.RawKernel(
        r"""
extern "C" __global__ void copy4(const float* a, float* b, int n) {
    int first = blockIdx.x * blockDim.x + threadIdx.x;
    int step = gridDim.x * blockDim.x;
    for (int i = first; i < n / 4; i += step)
        reinterpret_cast<float4*>(b)[i] = reinterpret_cast<const float4*>(a)[i];
    if (first == 0)
        for (int i = n / 4 * 4; i < n; i++) b[i] = a[i];
}
""",
        "copy4",
    )
    requests = gpulab.check("cpp.copy4", serial).parts[1]
    assert [d.text for d in requests.details] == [
        "for (int i = n / 4 * 4; i < n; i++) b[i] = a[i];",
        "this line causes 1 % of it. That is 4 requests more than the budget. How many bytes does a lane move with one load, and how many "
        "lanes take part in the tail?",
    ]
