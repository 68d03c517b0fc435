"""Lab 10: its rules are PyTorch's, and what its table and texts state is so."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

import gpulab
from gpulab.checks import registry
from gpulab.checks.spec import WrongAnswer
from gpulab.content.lab_10_mixed_precision.exercises import STEPS, packed
from gpulab.content.lab_10_mixed_precision.references.exercises import recipe, scaler, states, static
from gpulab.subjects import numerics
from gpulab.subjects.models.emulate import emulate, rounded
from tests.labs import notebooks

LAB = "10_mixed_precision"


@pytest.fixture(scope="module")
def solved():
    return notebooks.answers(LAB)


@settings(deadline=None, max_examples=20)
@given(
    st.lists(st.booleans(), min_size=1, max_size=60),
    st.sampled_from([1.0, 8.0, 65536.0]),
    st.sampled_from([(2.0, 0.5), (4.0, 0.25), (1.5, 0.75)]),
    st.integers(1, 9),
)
def test_the_states_of_a_scaler_are_those_of_torch(overflows, scale, factors, interval):
    growth, backoff = factors
    theirs = torch.amp.GradScaler(
        "cpu", init_scale=scale, growth_factor=growth, backoff_factor=backoff, growth_interval=interval
    )
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.0)
    found = []
    for overflow in overflows:
        optimizer.zero_grad()
        theirs.scale((weight * (float("inf") if overflow else 1.0)).sum()).backward()
        theirs.step(optimizer)
        theirs.update()
        found.append([theirs.get_scale(), theirs._get_growth_tracker()])
    assert states(overflows, scale, growth, backoff, interval) == found


def test_a_scaler_keeps_its_scale_at_the_largest_float32_and_no_question_comes_near_it():
    theirs = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_factor=2.0, growth_interval=1)
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.0)
    theirs.scale((weight * 1.0).sum()).backward()
    theirs.step(optimizer)
    theirs.update()
    assert theirs.get_scale() == 2.0**127
    exercise = registry.find("mixed.scaler")
    for case in exercise.cases:
        for question in exercise.evidence.questions(case.sizes, np.random.default_rng(0)):
            assert max(scale for scale, _ in states(*question)) < 2.0**100


START, END = list(STEPS[:4]), list(STEPS[7:])  # zero, forward, scale, backward; both updates


@pytest.mark.parametrize(
    "order",
    [
        STEPS,
        [*START, "check", "unscale", "clip", *END],  # infinities are there before unscaling, too
        [*START, "unscale", "check", "update scale", "clip", "update weights"],
        [*START[:2], "update scale", *START[2:], "unscale", "check", "clip", "update weights"],
    ],
)
def test_an_order_whose_weights_are_right_is_accepted(order):
    assert recipe(order) == {}


@pytest.mark.parametrize(
    ("order", "first"),
    [
        ([*START, "clip", "unscale", "check", *END], 0),
        ([*START, "check", "update scale", "unscale", "clip", "update weights"], 4),
        ([*START, "unscale", "clip", "update weights", "check", "update scale"], 11),
        ([*START, "unscale", "update scale", "check", "clip", "update weights"], 31),
    ],
)
def test_a_wrong_order_is_told_its_first_wrong_iteration(order, first):
    with pytest.raises(WrongAnswer, match=f"iteration {first}, counted from 0"):
        recipe(order)


def test_a_wrong_scaler_is_told_its_first_wrong_state():
    script = [False, False, True, False], 8.0, 2.0, 0.5, 2
    assert scaler(states(*script), *script) == {}
    with pytest.raises(WrongAnswer, match=r"after iteration 1.*\[8\.0, 2\].*\[16\.0, 0\].*a good step"):
        scaler([[8.0, 1], [8.0, 2], [4.0, 0], [4.0, 1]], *script)


@pytest.mark.parametrize(("times", "lost"), [(1, 0), (2, 100), (4, 200), (32, 400)])
def test_every_power_of_two_below_the_best_static_scale_loses_a_quarter(times, lost):
    for largest in (65519.0 * 2.0**-12, 3.0):
        gradients = packed(np.random.default_rng(0), largest)
        best = next(2.0**k for k in range(40, -40, -1) if np.isfinite(np.float16(largest * 2.0**k)))
        assert static(best / times, gradients)["lost beyond the least"] == lost


@pytest.mark.parametrize("name", ["mixed.clip", "mixed.delayed"])
def test_results_in_float32_are_accepted(name, solved):
    def short(*arguments):
        found = solved[name.removeprefix("mixed.")](*arguments)
        return None if found is None else np.array(found, np.float32)

    assert gpulab.check(name, short).passed


def test_fp16_rounds_to_zero_and_infinity_where_the_lab_says():
    assert np.float16(2.0**-25) == 0 and np.float16(np.nextafter(2.0**-25, 1)) > 0
    assert np.isinf(np.float16(65520.0)) and np.float16(np.nextafter(65520.0, 0)) == 65504


@pytest.mark.parametrize("name", ["FP16", "BF16", "E5M2", "E4M3", "E2M1"])
def test_rounding_tensors_is_the_codecs_rounding(name):
    x = torch.randn(1000, generator=torch.Generator().manual_seed(1)) * 10
    assert np.array_equal(rounded(x, name).numpy(), numerics.quantize(x.numpy(), name), equal_nan=True)


def test_an_emulated_model_rounds_weights_outputs_and_gradients_and_keeps_master_weights():
    torch.manual_seed(0)
    layer = torch.nn.Linear(8, 4)
    master = layer.weight.detach().clone()
    x = torch.randn(3, 8)
    expected = rounded(F.linear(x, rounded(master, "E5M2"), layer.bias), "E5M2").detach()
    seen = []
    emulate(layer, "E5M2", watch=lambda name, gradient: seen.append(gradient))
    y = layer(x)
    assert torch.equal(y, expected)
    (y * torch.tensor([1.1, 1e-9, 3.0, 0.7])).sum().backward()
    assert torch.equal(layer.parametrizations.weight.original, master)
    assert len(seen) == 1 and seen[0][0, 1] == torch.tensor(1e-9)
    gradient = layer.parametrizations.weight.original.grad
    assert torch.equal(gradient, rounded(gradient, "E5M2")) and not gradient[1].any()
