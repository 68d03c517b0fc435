"""Lab 02: what the table derives is what comes out, and texts cite what the runs say."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpulab
from gpulab import cuda
from gpulab.checks import registry
from gpulab.content.lab_02_gpu_architecture.exercises import (
    bytes_under_way,
    clear_of_whole_numbers,
    program_questions,
    sm_limits,
)
from gpulab.content.lab_02_gpu_architecture.references.exercises import (
    active_blocks,
    break_even,
    issue,
    split,
    warps_needed,
)
from gpulab.simulator import hardware
from grading.authoring.prove import wrong_file
from tests.labs import notebooks

LAB = "02_gpu_architecture"
WRONG = {path.stem: path for path in notebooks.wrong_files(LAB)}


def verdict_of(stem: str):
    exercise = wrong_file(WRONG[stem]).exercise
    function = notebooks.checks(LAB)[exercise][0]
    return gpulab.check(exercise, notebooks.wrong_answer(WRONG[stem])[function])


# ---------------------------------------------------------------- what the table was derived to say


def test_one_load_in_flight_needs_more_warps_than_an_h100_holds():
    h100 = hardware.find("H100")
    figures = {
        "sms": 132,
        "clock": float(h100.boost_clock),
        "dram_bandwidth": float(h100.dram_bandwidth),
        "dram_latency": float(h100.dram_latency),
    }
    assert [warps_needed(figures, width) for width in (4, 8, 16)] == [69, 35, 18]
    assert h100.capability.max_warps == 64


def test_a_gh200_reads_what_the_lab_says_and_two_memories_are_faster_than_one():
    chip = hardware.superchip("GH200")
    machine = {
        "gpu_memory": float(chip.gpu_bytes),
        "gpu_bandwidth": float(chip.gpu_bandwidth),
        "cpu_memory": float(chip.cpu_bytes),
        "link": float(chip.link.per_direction),
    }
    own, seconds = split(140e9, machine)
    assert own == 96e9 and round(1e3 * seconds, 1) == 97.8
    own, seconds = split(50e9, machine)
    assert (
        round(own / 1e9, 1) == 44.9
        and round(1e3 * seconds, 1) == 11.2 < 1e3 * 50e9 / machine["gpu_bandwidth"]
    )


@given(
    st.floats(1, 600), st.integers(10, 200), st.integers(5, 400), st.integers(300, 8000), st.integers(10, 900)
)
def test_no_other_split_reads_faster(weights, own, other, rate, link):
    machine = {"gpu_memory": own, "gpu_bandwidth": rate, "cpu_memory": other, "link": link}
    found = notebooks.answers(LAB)["split"](weights, machine)
    if weights > own + other:
        assert found is None
        return
    least, most = max(0, weights - other), min(own, weights)
    assert least * (1 - 1e-9) <= found[0] <= most * (1 + 1e-9)
    tried = (max(x / rate, (weights - x) / link) for x in np.linspace(least, most, 50))
    assert found[1] <= min(tried) * (1 + 1e-9)


def test_a_naive_kernel_costs_what_was_derived_and_earns_nothing_for_it():
    for stem, label, cost in (
        ("jumps_loads_twice", "loaded bytes", 8 * 8 * 8191),
        ("jumps_whole_row", "shared memory", 4 * 8192),
    ):
        part = next(part for part in verdict_of(stem).parts if part.label == label)
        assert (part.measured, part.naive, part.points) == (cost, cost, 0)


def test_warp_after_warp_costs_the_sum_of_all_latencies():
    (programs,) = program_questions({"warps": 4}, np.random.default_rng(0))[0]
    order = [warp for warp, program in enumerate(programs) for _ in program]
    together = sum(map(sum, programs))
    # A warp issues its last instruction and the next warp starts a cycle later, not a latency later.
    assert together - 4 * 700 < issue(order, programs)["cycles"] <= together


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 3, 4, 16, 20, 24]))
def test_taking_any_warp_that_is_ready_stays_well_below_the_budget(seed, warps):
    answer = notebooks.answers(LAB)["issue"]
    for (programs,) in program_questions({"warps": warps}, np.random.default_rng(seed)):
        assert 1 <= issue(answer(programs), programs)["slowdown"] < 1.07


@given(
    st.sampled_from(list(hardware.TABLE.values())),
    st.integers(1, 1100),
    st.integers(1, 260),
    st.integers(0, 200_000),
)
def test_the_solution_of_occupancy_is_the_rule_of_the_hardware(cap, threads, registers, shared):
    asked = (sm_limits(cap), threads, registers, shared)
    assert notebooks.answers(LAB)["active_blocks"](*asked) == active_blocks(*asked)


# ---------------------------------------------------------------- questions


@pytest.mark.parametrize(
    "exercise",
    [e for e in registry.of_lab(LAB) if getattr(e.evidence, "questions", None)],
    ids=lambda e: e.name,
)
@pytest.mark.parametrize("seed", range(5))
def test_questions_are_json_and_no_answer_hangs_on_the_last_bit(exercise, seed):
    for case in exercise.cases:
        asked = exercise.evidence.questions(case.sizes, np.random.default_rng(seed))
        assert asked and json.loads(json.dumps(asked)) == [list(arguments) for arguments in asked]
        if exercise.name == "arch.warps_needed" and case.name != "exact fit":
            for gpu, width in asked:
                assert clear_of_whole_numbers(bytes_under_way(gpu) / (32 * width))


@pytest.mark.parametrize("seed", range(5))
def test_questions_on_an_edge_lie_on_it_however_the_formula_is_written(seed):
    def asked(exercise, kind):
        found = registry.find(f"arch.{exercise}")
        case = next(case for case in found.cases if case.name == kind)
        return found.evidence.questions(case.sizes, np.random.default_rng(seed))

    for product, gpu in asked("bound", "on the ridge"):
        n, width, peak = product["n"], product["bytes"], gpu["peak"][product["dtype"]]
        intensity = 2 * n**3 / (width * 3 * n * n)
        assert intensity == peak / gpu["dram_bandwidth"] and intensity * gpu["dram_bandwidth"] == peak
        assert 2 * n**3 / peak == width * 3 * n * n / gpu["dram_bandwidth"]
    for gpu, width in asked("warps_needed", "exact fit"):
        seconds = gpu["dram_latency"] / gpu["clock"]
        needed = gpu["dram_bandwidth"] * seconds / gpu["sms"] / width / 32
        assert needed == bytes_under_way(gpu) / (32 * width) == int(needed)
    for (job,) in asked("break_even", "a tie"):
        moved = job["bytes_in"] / job["link"] + job["bytes_out"] / job["link"]
        items = job["overhead_s"] / (job["cpu_s"] - (job["gpu_s"] + moved))
        assert items == int(items)
        assert items * job["cpu_s"] == job["overhead_s"] + items * (job["gpu_s"] + moved)
        assert break_even(job) == items + 1
    for model, offers in asked("cheapest", "exact fit"):
        weights = model["parameters"] * model["bytes_per_parameter"]
        for offer in offers:
            gpus = weights / (0.8 * offer["memory"])
            assert gpus == int(gpus) == weights / 0.8 / offer["memory"]


def test_a_question_on_offers_is_short_enough_to_be_given_in_full():
    verdict = verdict_of("cheapest_one_gpu_more")
    said = " ".join(str(verdict).split())
    assert "in full: cheapest({" in said


def test_every_kind_of_launch_that_cannot_run_is_asked_for():
    exercise = registry.find("arch.active_blocks")
    case = next(case for case in exercise.cases if case.name == "cannot run")
    answers = [active_blocks(*q) for q in exercise.evidence.questions(case.sizes, np.random.default_rng(0))]
    assert len(answers) == 16 and set(answers) == {0}


# ---------------------------------------------------------------- numbers that the texts state


def test_the_sample_answer_on_the_full_house_cites_the_counts():
    names = {"np": np, "gpulab": gpulab, "cuda": cuda}
    exec(notebooks.cell_with(LAB, "def features("), names)
    half, full = names["half"], names["full"]
    assert (half["registers"], full["registers"]) == (59, 32)
    assert (half["occupancy"], full["occupancy"]) == (50, 100)
    assert (half["spill_bytes"], full["spill_bytes"]) == (0, 552)
    for metric in ("global_sectors", "instructions", "global_bytes"):
        assert half[metric] == full[metric]
    assert half["global_bytes"] / half["threads"] == 8
    assert np.array_equal(names["first"].copy_to_host(), names["second"].copy_to_host())
    assert "from 0 to 552 bytes per thread" in notebooks.text(LAB) and "69 times as much" in notebooks.text(
        LAB
    )


def test_the_row_in_shared_memory_leaves_room_for_16_warps_and_the_tile_for_all():
    names = {"np": np, "gpulab": gpulab, "cuda": cuda, "hardware": hardware}
    exec(notebooks.cell_with(LAB, "def jumps_row("), names)
    signals = cuda.to_device(np.zeros((2, 8192), np.float32))
    out = cuda.device_array((2, 128), np.float32)
    occupied = [
        gpulab.profile(kernel[2, 128], signals, out)["occupancy"]
        for kernel in (names["jumps_row"], notebooks.answers(LAB)["jumps"])
    ]
    assert occupied == [25, 100]


def test_the_mended_roofline_of_the_detective_says_what_the_answer_says():
    names: dict = {}
    exec(notebooks.cell_with(LAB, "def efficiency("), names)
    a100 = hardware.find("A100")
    moved = 8 * 100_000_000 / 0.47e-3
    assert names["efficiency"](100_000_000, 0.47e-3)["of the peak, %"] == pytest.approx(0.068, abs=1e-3)
    assert moved / 1e9 == pytest.approx(1702, abs=1)
    assert moved / float(a100.dram_bandwidth) == pytest.approx(0.83, abs=0.01)
    assert float(a100.dram_seen) == 1737e9


def test_the_open_task_on_two_workers_can_be_done_for_what_it_says():
    names = {"np": np}
    exec(notebooks.cell_with(LAB, "def makespan("), names)
    tasks = names["tasks"]
    by_gain = sorted(range(len(tasks)), key=lambda i: tasks[i][0] / tasks[i][1], reverse=True)
    splits = [[i in set(by_gain[:n]) for i in range(len(tasks))] for n in range(len(tasks) + 1)]
    assert f"{min(names['makespan'](tasks, split) for split in splits):.2f}" == "3.73"
    gpu = 0.0
    for place, i in enumerate(by_gain):  # the bound: one task is cut so that both end together
        cpu = sum(tasks[j][0] for j in by_gain[place:])
        part = (cpu - gpu) / sum(tasks[i])
        if part <= 1:
            break
        gpu += tasks[i][1]
    assert f"{gpu + part * tasks[i][1]:.2f}" == "3.68"
    assert "| ours | 3.73 |" in notebooks.text(LAB) and "3.68 |" in notebooks.text(LAB)


@cuda.jit
def gather(table, index, out):
    rows, target = table.view(np.complex128), out.view(np.complex128)
    i = cuda.grid(1)
    if i < target.size:
        target[i] = rows[16 * index[i // 16] + i % 16]


@cuda.jit
def gather_with_an_index_for_each_lane(table, index, out):
    """A warp takes 32 rows: every lane loads one index, and shuffles hand it on."""
    rows, target = table.view(np.complex128), out.view(np.complex128)
    first, lane = cuda.grid(1) // 32 * 32, cuda.threadIdx.x % 32
    mine = index[first + lane]
    for k in range(0, 32, 2):
        row = cuda.shfl_sync(0xFFFFFFFF, mine, k + lane // 16)
        target[16 * (first + k + lane // 16) + lane % 16] = rows[16 * row + lane % 16]


def test_the_open_task_on_gathered_rows_can_be_done_for_what_it_says():
    names = {"np": np, "gpulab": gpulab, "cuda": cuda}
    exec(notebooks.cell_with(LAB, "def gather_plain("), names)
    assert names["merit"](names["gather_plain"][256, 256]) == "4.00"
    assert names["merit"](gather[64, 256]) == "1.50"
    assert names["merit"](gather_with_an_index_for_each_lane[4, 256]) == "1.03"
    assert "in every lane | 1.50 |" in notebooks.text(LAB) and "| ours | 1.03 |" in notebooks.text(LAB)


def test_what_the_texts_say_of_data_sheets_is_what_the_sheets_say():
    h100, b200, a100 = map(hardware.find, ("H100", "B200", "A100"))
    per_watt = [float(gpu.dram_bandwidth) / float(gpu.tdp) for gpu in (h100, b200)]
    assert f"{per_watt[1] / per_watt[0]:.2f}" == "1.67"
    area = float(h100.peak()) / 1e9 / float(h100.die_area) / float(h100.tdp)
    assert f"{area:.3f}" == "0.117"
    assert f"{float(h100.peak()) / 1e9 / float(h100.tdp):.0f}" == "96"
    copied = float(hardware.link("PCIe 4.0 ×16").per_direction)
    assert round((8 / copied) / (12 / float(a100.dram_bandwidth))) == 43
    c2c, pcie = (float(hardware.link(name).per_direction) for name in ("NVLink-C2C", "PCIe 5.0 ×16"))
    assert round(c2c / pcie) == 7
    epyc = hardware.cpu("EPYC 9654")
    assert round(float(h100.peak("float64")) / float(epyc.peak("float64"))) == 9
    assert round(float(h100.dram_bandwidth) / float(epyc.dram_bandwidth)) == 7
