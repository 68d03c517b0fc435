"""Lab 23: naive kernels cost what the tables derive, and texts say what the notebook's own cells print."""

from __future__ import annotations

import numpy as np
import pytest

import gpulab
from gpulab import cupy as cp
from gpulab import hardware
from gpulab.checks import find
from gpulab.checks.run import reference_device
from gpulab.content.lab_23_asynchronous_pipelines import ampere
from gpulab.content.lab_23_asynchronous_pipelines.ampere import behind, depth_questions, tiled
from gpulab.content.lab_23_asynchronous_pipelines.references.ampere import depth
from gpulab.simulator import simt
from tests.labs import notebooks

LAB = "23_asynchronous_pipelines"


@pytest.mark.parametrize(
    "stem, label",
    [
        ("ring_waits_for_all", "bytes in flight"),
        ("ring_meets_twice", "block barriers"),
        ("handshake_with_block_barriers", "block barriers"),
        ("handshake_with_one_slot", "phases of an mbarrier"),
        ("bulk_sends_what_it_waits_for", "bytes in flight"),
        ("tile_without_a_swizzle", "bank conflicts"),
        ("tile_written_by_four_pixels", "sectors written"),
        ("roles_with_one_slot", "phases of an mbarrier"),
        ("gather_by_one_block", "bytes of the busiest block"),
        ("share_copies_v_in_every_block", "bytes"),
    ],
)
def test_a_naive_kernel_costs_what_was_derived_and_earns_nothing_for_it(stem: str, label: str) -> None:
    part = notebooks.part_of_wrong(LAB, stem, label)
    assert part.measured == part.naive
    assert part.points == 0


def test_sixteen_tiles_in_four_slots_leave_29_bytes_behind_a_wait() -> None:
    assert behind(tiled(4, 16).sizes) == 29
    derived = " ".join(str(ampere.__doc__).split())
    assert "16 tiles and S = 4 that is 29/16 tiles or 29 bytes" in derived


@pytest.mark.parametrize("kind", ["small", "large", "whole"])
def test_the_questions_about_slots_are_what_their_case_says(kind: str) -> None:
    case = next(case for case in find("async.depth").cases if case.name == f"{kind} tiles")
    for seed in range(20):
        for question in depth_questions(case.sizes, np.random.default_rng(seed)):
            bandwidth, latency, sms, blocks, tile = question
            assert tile % 16 == 0
            assert depth(*question) >= 2
            if kind == "whole":
                assert bandwidth * latency % (sms * blocks * tile) == 0
            if kind == "large":
                assert depth(*question) == 2


def test_an_a100_needs_the_bytes_in_flight_that_the_text_works_out() -> None:
    gpu = hardware.find("A100")
    assert gpu.dram_latency is not None
    nanoseconds = 1e9 * float(gpu.dram_latency) / float(gpu.boost_clock)
    assert (round(float(gpu.dram_bandwidth) / 1e9), round(nanoseconds), int(gpu.sms)) == (2039, 391, 108)
    assert 2039 * 391 == 797_249 and round(797_249 / 108) == 7_382
    assert 2 * 2 * 2048 >= 7_382  # two blocks with two tiles of 2 KiB in flight, as section 2 says


def test_the_colleagues_kernel_is_right_with_three_tiles_and_stops_with_four() -> None:
    names = {"np": np, "gpulab": gpulab, "cp": cp}
    exec(notebooks.cell_with(LAB, "COLLEAGUE = "), names)
    for tiles in (1, 2, 3):
        assert names["right"](names["running"], tiles)
    with pytest.raises(simt.SimulationError, match="32 of 32 arrivals"):
        names["right"](names["running"], 4)


def test_a_fresh_mbarrier_answers_as_the_text_says() -> None:
    names = {"np": np, "gpulab": gpulab, "cp": cp}
    exec(notebooks.cell_with(LAB, "ASK = "), names)
    assert names["over"].get().tolist() == [[False, True], [True, False], [False, True]]


def test_the_open_tasks_print_what_their_tables_say() -> None:
    answers = notebooks.answers(LAB)
    cells = [c.source for c in notebooks.cells(LAB, "code") if "def merit(" in c.source]
    for source, exercise, printed in zip(cells, ("ring", "bulk"), ("0.49", "271"), strict=True):
        names = {"np": np, "gpulab": gpulab, "cp": cp, **answers}
        exec(notebooks.cell_with(LAB, "def expected"), names)
        with reference_device(find(f"async.{exercise}").gpu):
            exec(source, names)
            assert names["merit"](answers[exercise]) == printed


def test_the_border_arrives_as_zeros() -> None:
    names = {"np": np, "gpulab": gpulab, "cp": cp, "HEAD": notebooks.answers(LAB)["HEAD"]}
    with reference_device("H100"):
        exec(notebooks.cell_with(LAB, "CORNER = "), names)
    found = names["found"].get()
    assert not found[0].any() and not found[:, :2].any() and (found[1:, 2:] == 1).all()


def test_a_ring_without_its_barrier_is_told_to_wait_and_then_to_meet() -> None:
    ring = notebooks.answers(LAB)["ring"]
    code = ring.code.replace("        __syncthreads();\n", "")
    assert code != ring.code
    said = " ".join(str(gpulab.check("async.ring", cp.RawKernel(code, "ring"))).split())
    read = 1 + code.splitlines().index(
        "        out[k * 128 + t] = sum(slot[k % 4][t], slot[k % 4][(t + 1) % 128]);"
    )
    assert "A thread waits only for the copies that it sent itself." in said
    assert (
        "waits for its own copies (__pipeline_wait_prior or cp.async.wait_group), then comes __syncthreads()"
        in said
    )
    assert f"and then line {read}." in said


def test_the_cell_that_leaves_a_barrier_out_says_so_if_there_is_none(capsys) -> None:
    cell = notebooks.cell_with(LAB, "hasty = cp.RawKernel").replace("gpulab.need(gather)", "")
    exec(cell, {"np": np, "gpulab": gpulab, "cp": cp, "gather": cp.RawKernel("void gather() {}", "gather")})
    assert "contains no `cluster.sync();` that this cell could leave out" in capsys.readouterr().out
