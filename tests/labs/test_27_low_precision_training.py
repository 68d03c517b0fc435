"""Lab 27: what its tables derive is counted, shortcuts do not pass, and the small GPT computes as it says."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import gpulab
from gpulab.checks import find
from gpulab.checks.spec import WrongAnswer
from gpulab.content.lab_27_low_precision_training import scaling
from gpulab.content.lab_27_low_precision_training.references import formats as right
from gpulab.content.lab_27_low_precision_training.references import scaling as laws
from gpulab.subjects import numerics
from gpulab.subjects.models import recipes, text
from tests.labs import notebooks

LAB = "27_low_precision_training"


@pytest.fixture(scope="module")
def solved():
    return notebooks.answers(LAB)


# ---------------------------------------------------------------- formats


def test_an_amax_from_behind_the_cast_never_lets_a_scale_fall():
    tensors = [[1.0, 0.5], [30.0, 1.0], [30.0, 1.0], [30.0, 1.0]]
    assert [step[0] for step in right.cast(tensors, 1, "delayed")] == [1.0, 1.0, 30.0, 30.0]
    assert [step[0] for step in right.cast(tensors, 1, "current")] == [1.0, 30.0, 30.0, 30.0]


def test_a_scale_rounded_down_cuts_off_an_eighth_and_one_rounded_up_does_not(solved):
    x = np.full((1, 32), 511.0, np.float32)
    sizes = {"m": 1, "n": 32, "rows": 1, "columns": 32, "powers": 1}
    up = solved["tiles"](x, 1, 32, 1)
    down = {"codes": numerics.encode(x, "E4M3", saturate=True), "scales": np.array([[127]], np.uint8)}
    assert right.tiles(up, {"x": x}, {}, sizes)["largest off"] < 0.5
    assert right.tiles(down, {"x": x}, {}, sizes)["largest off"] == pytest.approx(100 * 63 / 511)


@pytest.mark.parametrize("missing", ["codes", "scales"])
def test_an_answer_without_its_arrays_is_told_which_is_missing(missing, solved):
    x = np.ones((1, 32), np.float32)
    answer = solved["tiles"](x, 1, 32, 1)
    del answer[missing]
    sizes = {"m": 1, "n": 32, "rows": 1, "columns": 32, "powers": 1}
    with pytest.raises(WrongAnswer, match=f"`{missing}` is missing"):
        right.tiles(answer, {"x": x}, {}, sizes)


def test_bytes_are_those_of_the_table():
    assert right.stored(4096, 4096, 8, 1, 32, 1) == 2 * (2**24 + 2**19) > 2 * 4096 * 4096
    assert right.stored(4096, 4096, 8, 128, 128, 4) == 2**24 + 4 * 32 * 32


def test_four_bits_to_the_nearest_are_eleven_percent_off_where_all_numbers_are_alike():
    x = np.full((64, 64), 0.3)
    x[:, ::16] = 1.0
    sizes = {"m": 64, "n": 64, "kind": "equal"}
    nearest = {k: np.asarray(v) for k, v in right.in_four(x, np.full(x.shape, 0.5)).items()}
    chance = {k: np.asarray(v) for k, v in right.in_four(x, np.random.default_rng(1).random(x.shape)).items()}
    given = {"x": x, "draws": np.random.default_rng(2).random(x.shape)}
    assert 8 < right.four(nearest, given, {}, sizes)["bias"] < 12
    assert right.four(chance, given, {}, sizes)["bias"] < 1


def test_in_four_is_the_codec_of_the_course_where_it_rounds_to_the_nearest():
    x = np.random.default_rng(3).standard_normal((4, 64)).astype(np.float32)
    blocks = numerics.encode_blocks(x, "NVFP4")
    mine = {k: np.asarray(v) for k, v in right.in_four(x.astype(np.float64), np.full(x.shape, 0.5)).items()}
    assert np.abs(right.from_four(mine, 4, 64) - blocks.decode()).max() < 1e-6


# ---------------------------------------------------------------- Muon and laws


def test_flops_of_newton_schulz_are_those_of_the_table():
    assert scaling.polar_flops(32, 512) == 5 * (4 * 32**2 * 512 + 2 * 32**3) == 10_813_440
    assert scaling.polar_flops(64, 1024) / 5 == pytest.approx(17.3e6, rel=0.01)
    assert scaling.polar_flops(256, 256) / 5 == pytest.approx(100.7e6, rel=0.01)


def test_newton_schulz_leaves_singular_values_between_0_7_and_1_2():
    g = np.random.default_rng(0).standard_normal((16, 64))
    values = np.linalg.svd(laws.polar({"g": g}, {})["out"], compute_uv=False)
    assert values.min() > 0.65 and values.max() < 1.25


@pytest.mark.parametrize("seed", range(6))
def test_a_fit_meets_both_budgets_with_any_noise_and_twenty_tokens_never_does(seed, solved):
    for law in scaling.laws(np.random.default_rng(seed), 2):
        counts = laws.forecast(solved["forecast"], law, seed, scaling.BUDGET, scaling.TARGET)
        assert counts["FLOPs"] <= 1 and counts["regret"] <= 0.005 and counts["miss"] <= 0.03
        n = math.sqrt(scaling.TARGET / 120)
        assert laws.loss(law, n, 20 * n) - laws.best(law, scaling.TARGET)[1] > 0.02


def test_a_best_split_without_serving_is_the_formula():
    law = [1.8, 500.0, 0.35, 2000.0, 0.37]
    n = (0.35 * 500 / (0.37 * 2000)) ** (1 / 0.72) * (1e21 / 6) ** (0.37 / 0.72)
    assert laws.best(law, 1e21)[0] == pytest.approx(n, rel=1e-3)


@pytest.mark.parametrize("odd", [float("nan"), -1.0, 0, "1e9", None, True])
def test_a_split_that_is_no_positive_number_is_refused(odd):
    with pytest.raises(WrongAnswer, match="positive number"):
        laws.split(odd, [1.8, 500.0, 0.35, 2000.0, 0.37], 1e21, 0.0)


@pytest.mark.parametrize("name", ["scaling.shard", "scaling.split"])
def test_a_plan_without_sense_earns_nothing(name):
    assert find(name) and not gpulab.check(name, lambda *given: 0).passed


# ---------------------------------------------------------------- the small GPT


def test_the_floor_is_the_entropy_of_what_a_window_tells_behind_its_first_letter():
    assert len({name[0] for name in text.NAMES}) == len(text.NAMES)
    longest = text.TEMPLATE.split(" who")[0].format(*(max(words, key=len) for words in text.PICKS))
    assert len(longest) <= 49
    assert math.log(6 * 5 * 8 * 6) == pytest.approx(text.STORY_NATS - math.log(8))


@pytest.mark.parametrize("name", ["E4M3", "E5M2", "E2M1"])
def test_recipes_round_as_the_codecs_do(name):
    x = 3 * torch.randn(1000, generator=torch.Generator().manual_seed(1))
    codes = numerics.encode(x.numpy(), name, saturate=True)
    assert np.array_equal(recipes.to_format(x, name).numpy(), numerics.decode(codes, name))


def test_rounding_by_chance_is_right_on_average_and_stays_on_the_grid():
    found = recipes.to_format(torch.full((20_000,), 4.5), "E2M1", torch.Generator().manual_seed(0))
    assert set(found.tolist()) == {4.0, 6.0} and float(found.mean()) == pytest.approx(4.5, abs=0.03)


def test_a_recipe_without_schemes_is_a_plain_layer_and_one_with_them_is_close():
    torch.manual_seed(0)
    x = torch.randn(2, 32, 64)
    for name, off in (
        ("FP32", 1e-6),
        ("FP8, current", 0.06),
        ("FP8, tiles", 0.06),
        ("MXFP8", 0.06),
        ("NVFP4", 0.4),
    ):
        plain = torch.nn.Sequential(torch.nn.Linear(64, 48))
        expected = F.linear(x, plain[0].weight, plain[0].bias)
        expected.square().sum().backward()
        wanted, plain[0].weight.grad = plain[0].weight.grad.clone(), None
        short = recipes.shorten(plain, name, keep=("head",))
        got = short(x)
        got.square().sum().backward()
        assert (got - expected).norm() <= off * expected.norm()
        assert (short[0].weight.grad - wanted).norm() <= 2 * off * wanted.norm()
        if name != "FP32":
            assert not torch.equal(got, expected)


def test_layers_to_keep_stay_as_they_are():
    model = torch.nn.ModuleDict({"up": torch.nn.Linear(4, 4), "head": torch.nn.Linear(4, 4)})
    recipes.shorten(model, "MXFP8")
    assert isinstance(model["up"], recipes.ShortLinear) and isinstance(model["head"], torch.nn.Linear)
    with pytest.raises(KeyError):
        recipes.shorten(model, "FP3")
