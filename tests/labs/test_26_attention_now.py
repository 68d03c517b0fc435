"""Lab 26: naive answers cost what the tables derive, and numbers in the text are those of the machine."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gpulab
from gpulab import cupy as cp
from gpulab.checks import find
from gpulab.checks.run import reference_device
from gpulab.content.lab_26_attention_now import savings, softmax
from gpulab.simulator import hardware
from tests.labs import notebooks

LAB = "26_attention_now"


@pytest.mark.parametrize(
    "stem, label",
    [
        ("exp2_special_function", "special functions"),
        ("lazy_whenever_the_maximum_grows", "exponentials"),
        ("lazy_in_two_passes", "loaded bytes"),
        ("roles_copies_for_each_group", "bytes copied in"),
        ("mask_as_it_was", "loaded bytes"),
    ],
)
def test_a_naive_answer_costs_what_was_derived_and_earns_nothing_for_it(stem: str, label: str) -> None:
    part = notebooks.part_of_wrong(LAB, stem, label)
    assert part.measured == part.naive
    assert part.points == 0


@pytest.mark.parametrize("degree, error", [(3, 8e-4), (4, 5.9e-5)])
def test_the_error_of_taylors_polynomial_is_the_one_of_the_table(degree: int, error: float) -> None:
    f = np.linspace(-0.5, 0.5, 1001)
    series = sum((f * math.log(2)) ** i / math.factorial(i) for i in range(degree + 1))
    assert np.abs(series * 2.0**-f - 1).max() == pytest.approx(error, rel=0.1)


def test_no_polynomial_of_degree_2_is_within_the_bound_of_exp2() -> None:
    # Between points where the error of a best polynomial changes sign it has one size, so a fit at
    # Chebyshev's points is at most a little worse than the best.
    f = 0.5 * np.cos(np.pi * (np.arange(64) + 0.5) / 64)
    rows = np.vander(f, 3) * 2.0 ** -f[:, None]
    found = np.linalg.lstsq(rows, np.ones_like(f), rcond=None)[0]
    assert np.abs(rows @ found - 1).max() > 5 * find("modern.exp2").rtol


def test_the_prediction_of_the_share_of_polynomials_lets_both_units_finish_together() -> None:
    share = next(p.answer for p in softmax.PREDICTIONS if p.name == "modern.share")
    assert share is not None
    assert share / 100 * 6 / 128 == pytest.approx((1 - share / 100) / 16)


def test_exponentials_take_as_long_as_the_products_of_a_b200() -> None:
    balance = next(p.answer for p in softmax.PREDICTIONS if p.name == "modern.balance")
    assert balance == pytest.approx(100)
    assert int(hardware.find("B200").tensor_fma["float16"]) == 4096


def test_the_threshold_spares_most_of_the_rescales_that_the_text_shows() -> None:
    kernel = notebooks.answers(LAB)["lazy"]
    numbers = np.random.default_rng(26)
    scores = cp.asarray((4 * numbers.standard_normal((256, 32))).astype(np.float32))
    values = cp.asarray(numbers.standard_normal((256, 16)).astype(np.float32))
    made = scores, values, cp.empty((32, 16), cp.float32), cp.empty(32, cp.float32)
    with reference_device("H100"):
        report = gpulab.profile(kernel, (1,), (32,), (*made, cp.int32(32), cp.int32(256)))
    assert 1 <= report["special_functions"] / 32 - 256 <= 3


def test_a_window_of_512_visits_the_blocks_that_its_prediction_says() -> None:
    row, column = np.mgrid[:4096, :4096]
    seen = (column <= row) & (column > row - 512)
    visited = seen.reshape(64, 64, 64, 64).any(axis=(1, 3)).sum()
    assert next(p.answer for p in savings.PREDICTIONS if p.name == "modern.visited") == visited


@pytest.mark.parametrize("n", [64, 384, 4096])
def test_a_mask_of_int32_costs_more_than_skipping_half_of_the_blocks_saves(n: int) -> None:
    without = savings.all_bytes({"n": n})
    assert savings.masked_bytes({"n": n}) >= without
    assert savings.masked_bytes({"n": n}) <= without * (1 + 64 / n)


def test_the_lists_of_the_last_case_have_gaps() -> None:
    wanted = savings.lists({"n": 512, "every": 4})
    assert any(np.diff(row).max() > 1 for row in wanted if len(row) > 2)
    assert wanted[7] == [0, 3, 7]


def test_latent_attention_in_the_text_has_the_sizes_of_deepseek_v3() -> None:
    assert next(p.answer for p in savings.PREDICTIONS if p.name == "modern.latent") == pytest.approx(
        56.9, abs=0.05
    )


def test_attend_takes_the_instructions_that_the_text_compares_with_cutlass() -> None:
    attend = notebooks.answers(LAB)["attend"]
    numbers = np.random.default_rng(0)
    shapes = (256, 64), (256, 64), (64, 256)
    given = [cp.asarray(numbers.standard_normal(shape).astype(np.float16)) for shape in shapes]
    with reference_device("H100"):
        report = gpulab.profile(attend, *given, cp.empty((256, 64), cp.float32))
    assert report["instructions"] < 24_426  # CUTLASS's fmha.py with tiles of 64 × 128
    said = f"`attend` as we wrote it executes {report['instructions']:,}"
    assert said in " ".join(notebooks.text(LAB).split())
