"""Lab 09: what its table and its texts state is so."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gpulab
from gpulab.checks import registry
from gpulab.content.lab_09_number_formats.references.exercises import order
from gpulab.subjects import numerics
from tests.labs import notebooks

LAB = "09_number_formats"


@pytest.fixture(scope="module")
def solved():
    return notebooks.answers(LAB)


def wrong(stem: str):
    path = next(path for path in notebooks.wrong_files(LAB) if path.stem == stem)
    return notebooks.wrong_answer(path)


def test_a_decoder_without_subnormals_gets_2046_codes_of_fp16_wrong(solved):
    naive, right = wrong("decode_no_subnormals")["decode"], solved["decode"]
    differing = [
        code
        for code in range(1 << 16)
        if naive(code, 5, 10) != right(code, 5, 10) and not math.isnan(right(code, 5, 10))
    ]
    assert len(differing) == 2046 == registry.predictions()["formats.subnormals"].answer


def test_the_whole_number_that_fp16_has_not_is_the_first():
    whole = np.arange(1, 3000)
    assert (
        whole[numerics.quantize(whole, "FP16") != whole][0] == registry.predictions()["formats.whole"].answer
    )


def test_e4m3_has_as_many_numbers_as_the_prediction_says():
    assert numerics.representable("E4M3").size == registry.predictions()["formats.e4m3_numbers"].answer


def test_sums_one_by_one_lose_half_and_as_a_tree_next_to_nothing(solved):
    one_by_one = order(wrong("order_one_by_one")["order"](8192), 8192)
    tree = order(solved["order"](8192), 8192)
    assert one_by_one["steps"] == 8191 and one_by_one["error"] == pytest.approx(50, abs=2)
    assert tree["steps"] == 13 and tree["error"] < 0.1


@pytest.mark.parametrize("n", [3000, 6000, 8192])
def test_a_tree_keeps_the_budget_of_errors_at_every_size(n, solved):
    assert order(solved["order"](n), n)["error"] < 0.15


@pytest.mark.parametrize(
    ("stem", "label", "derived"),
    [
        ("dequantize_two_stores", "store sectors", 65536 // 4),
        ("dequantize_compares_and_multiplies", "instructions", 205 * 1024),
    ],
)
def test_a_naive_kernel_costs_what_the_table_says(stem, label, derived):
    verdict = gpulab.check("formats.dequantize", wrong(stem)["dequantize"])
    part = next(part for part in verdict.parts if part.label == label)
    assert part.measured == pytest.approx(derived, rel=0.03)
    assert part.points == 0


def test_the_table_of_sixteen_values_comes_from_lloyds_algorithm():
    blocks = np.random.default_rng(8).standard_normal((4000, 32))
    scale = np.abs(blocks).max(axis=1, keepdims=True)
    x, weight = (blocks / scale).ravel(), np.repeat(scale.ravel() ** 2, 32)

    def nearest(table):
        return np.abs(x[:, None] - table).argmin(axis=1)

    def error(table):
        off = (table[nearest(table)] - x) ** 2 * weight
        return 100 * math.sqrt(off.mean() / (blocks**2).mean())

    table = np.quantile(x, (np.arange(16) + 0.5) / 16)
    for _ in range(60):
        place = nearest(table)
        table = np.array([np.average(x[place == k], weights=weight[place == k]) for k in range(16)])
    assert error(table) == pytest.approx(8.1, abs=0.1)
    text = "".join(c.source for c in notebooks.cells(LAB, "markdown"))
    assert "Lloyd's algorithm | 8.1 %" in text


def test_the_answer_for_graders_names_the_share_that_the_lab_prints():
    numbers = 2.0 ** np.random.default_rng(1).uniform(-32, 20, 6000)  # as in section 3
    share = f"{(numbers < 2.0**-14).mean():.0%}".replace("%", " %")
    text = " ".join("".join(c.source for c in notebooks.cells(LAB, "markdown")).split())
    assert f"powers of two, {share} lay below the normal ones" in text
