"""Lab 05: naive kernels cost what the table derives, texts say what is counted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import float32, int32

import gpulab
from gpulab import cuda
from gpulab.analysis.profile.watch import Watch
from gpulab.checks import registry, showing
from gpulab.simulator import device as devices
from grading.authoring.prove import wrong_file
from tests.labs import notebooks

LAB = "05_reductions_scans_softmax"
WRONG = notebooks.wrong_files(LAB)


@pytest.fixture(scope="module")
def solutions():
    return notebooks.answers(LAB)


def kernels_of(text: str) -> dict:
    """The kernels of one cell, without what the cell does with them."""
    source = notebooks.cell_with(LAB, text)
    kernels = "\n\n\n".join(part for part in source.split("\n\n\n") if part.startswith("@cuda.jit"))
    names = {"np": np, "math": math, "cuda": cuda, "float32": float32, "int32": int32}
    exec(kernels, names)
    return names


# ---------------------------------------------------------------- what the table was derived to say


@pytest.mark.parametrize(
    "stem, label",
    [
        ("warp_sum_one_lane_adds", "load sectors"),
        ("warp_sum_lane_by_lane", "warp operations"),
        ("total_atomic_for_every_element", "global atomics"),
        ("total_chunks", "load sectors"),
        ("total_tree_with_barriers", "barriers"),
        ("scan_adds_all_before", "loaded bytes"),
        ("scan_hillis_steele", "barriers"),
        ("histogram_plain", "global atomics"),
        ("logsumexp_two_passes", "load sectors"),
        ("logsumexp_two_exponentials", "exponentials"),
        ("row_softmax_three_passes", "loaded bytes"),
        ("row_softmax_neighbours_for_a_lane", "sectors in all"),
        ("add_norm_in_passes", "loaded bytes"),
    ],
)
def test_a_naive_kernel_costs_what_was_derived(stem, label):
    path = next(path for path in WRONG if path.stem == stem)
    exercise = registry.find(wrong_file(path).exercise)
    kernel = notebooks.wrong_answer(path)[notebooks.checks(LAB)[exercise.name][0]]
    budget = next(budget for budget in exercise.budgets if budget.label == label)
    case, watch = exercise.cases[-1], Watch(devices.current())
    outcome = notebooks.launched(exercise, kernel).run(case, watch.standing())
    assert not outcome.trouble
    assert watch.report()[budget.metric] == budget.naive_for(case.sizes)


def test_a_softmax_goes_from_three_loads_and_twenty_barriers_to_one_and_none(solutions):
    three = kernels_of("def softmax_three_passes(")["softmax_three_passes"]
    x = np.random.default_rng(1).uniform(-1000, 1000, (64, 256)).astype(np.float32)
    before, after = np.empty_like(x), np.empty_like(x)
    naive = gpulab.profile(three[64, 256], x, before)
    good = gpulab.profile(solutions["row_softmax"][8, 256], x, after)
    assert np.allclose(before, after, rtol=1e-5, atol=1e-7) and np.isfinite(after).all()
    assert [r["global_load_bytes"] / x.nbytes for r in (naive, good)] == [3, 1]
    assert [r["barriers_per_warp"] for r in (naive, good)] == [20, 0]
    assert good["local_bytes"] == 0


def test_hillis_and_steele_have_the_wavefronts_that_the_budget_of_scan_calls_naive():
    scans = kernels_of("def hillis_steele(")
    whole = np.arange(4096, dtype=np.float32) % 7
    out = np.empty_like(whole)
    report = gpulab.profile(scans["hillis_steele"][16, 256], whole, out)
    assert report["shared_wavefronts"] == 16 * 201
    budgets = {b.metric: b for b in registry.find("parallel.scan").budgets}
    assert budgets["shared_wavefronts"].naive({"n": 4096}) == 16 * 201


# ---------------------------------------------------------------- numbers that the text states


def answer_of(prediction: str) -> float:
    return registry.predictions()[f"parallel.{prediction}"].answer


def test_predictions_are_what_the_kernels_do(solutions):
    scans, ladder = kernels_of("def hillis_steele("), kernels_of("def interleaved(")
    a = np.ones(256, np.float32)
    report = gpulab.profile(scans["hillis_steele"][1, 256], a, np.empty_like(a))
    assert report["flops"] == answer_of("hillis_steele")
    report = gpulab.profile(ladder["interleaved"][1, 256], a, np.empty(1, np.float32))
    assert report["barriers_per_warp"] == answer_of("tree_barriers")
    values = np.zeros(256, np.int32)
    report = gpulab.profile(solutions["histogram"][8, 256], values, np.zeros(64, np.int32))
    assert report["shared_bytes"] == answer_of("copies")
    with np.errstate(over="ignore"):
        assert np.isinf(np.exp(np.float32(answer_of("overflow") + 0.01)))
        assert np.isfinite(np.exp(np.float32(answer_of("overflow") - 0.01)))
    end = np.float32(answer_of("ones"))
    assert end + np.float32(1) == end and np.nextafter(end, np.float32(0)) + np.float32(1) == end
    assert answer_of("merge") == pytest.approx(2 * math.exp(-2) + 1, abs=1e-4)


def test_the_shuffled_rung_costs_more_instructions_and_fewer_barriers():
    """The text says that shuffles alone do not save instructions."""
    ladder, shuffled = kernels_of("def interleaved("), kernels_of("def shuffled(")["shuffled"]
    a, sums = np.ones(4096, np.float32), np.empty(8, np.float32)
    tree = gpulab.profile(ladder["unrolled"][8, 256], a, sums)
    registers = gpulab.profile(shuffled[8, 256], a, sums)
    assert (sums == 512).all()
    assert registers["instructions"] > tree["instructions"]
    assert registers["barriers"] < tree["barriers"]
    assert registers["shared_wavefronts"] < tree["shared_wavefronts"]


# ---------------------------------------------------------------- detectives


def test_the_warp_in_step_is_a_race_and_syncwarp_mends_it():
    source = notebooks.cell_with(LAB, "def warp_sum_in_step(")
    kernel = source[: source.index("\n\n\n")]
    mended = kernel.replace("float32(0)\n", "float32(0)\n    cuda.syncwarp()\n").replace(
        "s[t + distance]\n", "s[t + distance]\n        cuda.syncwarp()\n"
    )
    assert mended.count("cuda.syncwarp()") == 2
    for text, found in ((kernel, {"race"}), (mended, set())):
        names = {"cuda": cuda, "float32": float32}
        exec(text, names)
        findings = gpulab.sanitize(
            names["warp_sum_in_step"][4, 256], np.ones(1024, np.float32), np.zeros(32, np.float32)
        )
        assert {finding.kind for finding in findings} == found


def test_the_last_block_is_one_race_and_a_fence_on_each_side_mends_it():
    source = notebooks.cell_with(LAB, "def total_by_last_block(")
    kernel = source[: source.index("\n\n\n")]
    store = "        partial[cuda.blockIdx.x] = s[0]\n"
    draw = "        if cuda.atomic.add(tickets, 0, 1) == cuda.gridDim.x - 1:\n"
    written = kernel.replace(store, f"{store}        cuda.threadfence()\n")
    mended = written.replace(draw, f"{draw}            cuda.threadfence()\n")
    assert len({kernel, written, mended}) == 3
    for text, found in ((kernel, ["race"]), (written, ["race"]), (mended, [])):
        names = {"cuda": cuda, "float32": float32}
        exec(text, names)
        findings = gpulab.sanitize(
            names["total_by_last_block"][8, 256],
            np.ones(4096, np.float32),
            np.zeros(8, np.float32),
            np.zeros(1, np.int32),
            np.zeros(1, np.float32),
        )
        assert [finding.kind for finding in findings] == found


@pytest.mark.parametrize("last", ["warp", "thread"])
def test_atomics_on_floats_depend_on_the_order_and_on_nothing_else(last, solutions):
    """However a block ends its sum, the numbers that the notebook takes show it."""
    names = {"np": np, "N": 65_536, "numbers": np.random.default_rng(5).random(65_536, dtype=np.float32)}
    exec(
        next(
            line for line in notebooks.cell_with(LAB, "pairs = ").splitlines() if line.startswith("pairs = ")
        ),
        names,
    )
    total = solutions["total"] if last == "warp" else total_by_one_thread
    findings = gpulab.sanitize(total[8, 256], names["pairs"], np.zeros(1, np.float32))
    assert [finding.kind for finding in findings] == ["order"]


@cuda.jit
def total_by_one_thread(a, out):
    of_warps = cuda.shared.array(8, float32)
    t = cuda.threadIdx.x
    value = float32(0)
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        value += a[i]
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, distance)
    if t % 32 == 0:
        of_warps[t // 32] = value
    cuda.syncthreads()
    if t == 0:
        value = float32(0)
        for w in range(8):
            value += of_warps[w]
        cuda.atomic.add(out, 0, value)


def test_the_picture_of_a_compaction_is_that_of_the_result_alone(solutions):
    (picture,) = showing.pictures("parallel.compact", solutions["compact"], view="threads")
    assert "1,000" in picture.caption


def test_the_gate_moves_what_its_prediction_says():
    gates = kernels_of("def gate(")
    a, out = np.ones(256, np.float32), np.empty(256, np.float32)
    fused = gpulab.profile(gates["gate"][1, 256], a, a.copy(), out)
    first = gpulab.profile(gates["silu"][1, 256], a, out)
    second = gpulab.profile(gates["multiply"][1, 256], a, a.copy(), out)
    assert fused["global_bytes"] / 256 == answer_of("gate")
    assert (first["global_bytes"] + second["global_bytes"]) / 256 == 20


# ---------------------------------------------------------------- the open task

LOOK_BACK = """
@cuda.jit
def look_back(a, out, tickets, states, sums):
    mine = cuda.shared.array(2, int32)
    of_warps = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    if t == 0:
        mine[0] = cuda.atomic.add(tickets, 0, 1)
    cuda.syncthreads()
    block = mine[0]
    i = 256 * block + t
    value = a[i]
    for distance in (1, 2, 4, 8, 16):
        left = cuda.shfl_up_sync(0xFFFFFFFF, value, distance)
        if t % 32 >= distance:
            value += left
    if t % 32 == 31:
        of_warps[t // 32] = value
    cuda.syncthreads()
    for w in range(t // 32):
        value += of_warps[w]
    if t == 255:
        before = int32(0)
        if block > 0:
            sums[0, block] = value
            cuda.threadfence()
            cuda.atomic.exch(states, block, 1)
            other = block - 1
            state = 0
            while state < 2:
                state = cuda.atomic.add(states, other, 0)
                if state > 0:
                    cuda.threadfence()
                    before += sums[state - 1, other]
                    other -= 1
        sums[1, block] = before + value
        cuda.threadfence()
        cuda.atomic.exch(states, block, 2)
        mine[1] = before
    cuda.syncthreads()
    out[i] = mine[1] + value


@cuda.jit
def nothing(a, out):
    pass


def run_look_back(a, out):
    blocks = a.size // 256
    tickets, states = cuda.to_device(np.zeros(1, np.int32)), cuda.to_device(np.zeros(blocks, np.int32))
    look_back[blocks, 256](a, out, tickets, states, cuda.device_array((2, blocks), np.int32))


ours = merit(run_look_back)
three = merit(scan_in_three_launches)
idle = merit(lambda a, out: nothing[1, 32](a, out))
findings = gpulab.sanitize(run_look_back, to_scan[:4096], result[:4096])
"""


def test_the_open_task_can_be_done_for_what_it_says_and_not_for_nothing(solutions):
    names = {"np": np, "gpulab": gpulab, "cuda": cuda, "int32": int32, "scan": solutions["scan"], "N": 65_536}
    names["rng"] = np.random.default_rng(7)
    exec(notebooks.cell_with(LAB, "def scan_in_three_launches("), names)
    exec(LOOK_BACK, names)
    assert names["ours"] == "9.5" and not list(names["findings"])
    assert names["idle"] == "wrong" and float(names["three"]) >= 16
    text = "".join(c.source for c in notebooks.cells(LAB))
    assert "| ours, blocks of 256, one element per thread | 9.5 |" in text


# ---------------------------------------------------------------- figures of data sheets in the text


def test_figures_in_the_text_are_those_of_the_data_sheet():
    a100 = gpulab.hardware.find("A100")
    text = " ".join("".join(c.source for c in notebooks.cells(LAB, "markdown")).split())
    asked = (
        f"An A100 moves {float(a100.dram_bandwidth) / 1e9:,.0f} GB/s into {int(a100.sms)} SMs at "
        f"{float(a100.boost_clock) / 1e9:.2f} GHz, and a load from DRAM takes {int(a100.dram_latency)} cycles."
    )
    assert asked in text
    assert int(a100.fp32_lanes) == 4 * 16  # special functions have a quarter of the float32 lanes
