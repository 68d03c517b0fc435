"""Lab 24: naive kernels cost what the tables derive, and numbers in the text are those of the machine."""

from __future__ import annotations

import numpy as np
import pytest

import gpulab
from gpulab import cupy as cp
from gpulab import numerics
from gpulab.checks import find
from gpulab.checks.run import reference_device
from gpulab.content.lab_24_tensor_cores.blackwell import few_strips, least_waves
from gpulab.content.lab_24_tensor_cores.references.blackwell import order as measured
from gpulab.content.lab_24_tensor_cores.references.hopper import describe
from gpulab.simulator.simt.matrix_descriptors import MatrixDescriptor, encode
from tests.labs import notebooks
from tests.simt.tensor_core_kernels import instruction_descriptor

LAB = "24_tensor_cores"


@pytest.mark.parametrize(
    "stem, label",
    [
        ("overlap_waits_for_what_it_asked_for", "products in flight"),
        ("pingpong_by_one_warpgroup", "products of one warpgroup"),
        ("pingpong_leaves_a_slot_empty", "phases of an mbarrier"),
        ("pingpong_hands_over_late", "arrivals without products in flight"),
        ("promote_after_every_product", "waits for products"),
        ("pair_copies_all_of_b", "bytes copied in"),
        ("order_row_by_row", "strips"),
    ],
)
def test_a_naive_answer_costs_what_was_derived_and_earns_nothing_for_it(stem: str, label: str) -> None:
    part = notebooks.part_of_wrong(LAB, stem, label)
    assert part.measured == part.naive
    assert part.points == 0


@pytest.mark.parametrize("span", [16, 32, 64, 128])
def test_the_descriptor_of_the_exercise_is_the_one_that_the_engine_reads(span: int) -> None:
    made = MatrixDescriptor(4096, 128, 1024, 0, span)
    assert describe(4096, 128, 1024, 0 if span == 16 else span) == encode(made)


def test_the_instruction_descriptors_of_part_b_are_those_of_the_manual() -> None:
    head = notebooks.cell_with(LAB, "constexpr u32 ONE")
    assert f"ONE = 0x{instruction_descriptor(128, 64, 1, 0, 0):08x}" in head
    assert f"PAIR = 0x{instruction_descriptor(256, 64, 1, 0, 0):08x}" in head
    assert f"FOUR_BITS = 0x{instruction_descriptor(128, 128, 0, 1, 1):08x}" in head


@pytest.mark.parametrize("all_in_one, error", [(True, 0.037), (False, 0.00023)])
def test_sums_of_2048_fp8_products_lose_what_the_table_says(all_in_one: bool, error: float) -> None:
    codes = [np.random.default_rng(seed).integers(48, 64, (64, 2048)).astype(np.uint8) for seed in (1, 2)]
    left, right = (numerics.decode(c, "E4M3").astype(np.float64) for c in codes)
    exact = left @ right.T
    x, y, z = *map(cp.asarray, codes), cp.empty((64, 64), cp.float32)
    answers = notebooks.answers(LAB)
    with reference_device("H100"):
        if all_in_one:
            names = {"HEAD": answers["promoting"].code.split("extern")[0]}
            exec(
                notebooks.cell_with(LAB, "ALL_IN_ONE = ").split("all_in_one = ")[0].partition("\n")[2], names
            )
            maps = [gpulab.tensor_map(v, (64, 128), swizzle=128) for v in (x, y)]
            cp.RawKernel(names["ALL_IN_ONE"], "all_in_one")((1,), (128,), (*maps, z, cp.int32(2048)))
        else:
            answers["promote"](x, y, z)
    assert np.abs(z.get() / exact - 1).max() == pytest.approx(error, rel=0.25)


def test_the_order_of_the_solution_is_within_its_budget_at_every_case() -> None:
    order = notebooks.answers(LAB)["order"]
    for case in find("tensor.order").cases:
        asked = tuple(int(case.sizes[name]) for name in ("rows", "cols", "blocks"))
        found = measured(order(*asked), *asked)
        assert found["waves"] == least_waves(case.sizes)
        assert found["strips"] <= few_strips(case.sizes)


def test_the_pipelined_product_takes_the_instructions_that_the_text_compares_with_cutlass() -> None:
    a, b = (cp.asarray(np.ones((256, 256), np.float16)) for _ in range(2))
    with reference_device("H100"):
        report = gpulab.profile(notebooks.answers(LAB)["overlap"], a, b, cp.empty((256, 256), cp.float32))
    assert report["instructions"] < 40_416  # CUTLASS's dense_gemm_persistent.py with tiles of 64 × 64
    assert f"`overlap` as we wrote it executes {report['instructions']:,}" in notebooks.text(LAB)


def test_the_open_tasks_print_what_their_tables_say() -> None:
    answers = notebooks.answers(LAB)
    sources = [c.source for c in notebooks.cells(LAB, "code") if "def merit(" in c.source]
    for source, gpu, printed in zip(
        sources, ("H100", "B200"), ({"product": "64"}, {"by_one_thread": "48", "pair": "40"}), strict=True
    ):
        names = {"np": np, "gpulab": gpulab, "cp": cp, "numbers": np.random.default_rng(0), **answers}
        with reference_device(gpu):
            exec(source, names)
            assert {name: names["merit"](answers[name]) for name in printed} == printed
