"""Lab 10: its rules are PyTorch's, and what its table and texts state is so."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from gpulab import numerics
from gpulab.exercises.lab_10_mixed_precision import LONG, SAME, SHORT, STEPS, WIDEST
from gpulab.exercises.references.lab_10_mixed_precision import dtypes, recipe, states, static
from gpulab.models.emulate import emulate, rounded
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


def test_only_orders_that_unscale_check_and_clip_in_time_are_right(solved):
    assert recipe(solved["recipe"]())["wrong updates"] == 0
    order = list(STEPS)
    early = [*order[:4], "check", "unscale", "clip", *order[7:]]  # infinities are there before unscaling, too
    assert recipe(early)["wrong updates"] == 0
    clipped = [*order[:4], "clip", "unscale", "check", *order[7:]]
    assert recipe(clipped)["wrong updates"] >= 57  # all but those that are skipped
    late = [*order[:5], "clip", "update weights", "check", "update scale"]
    assert recipe(late)["wrong updates"] > 0


def test_the_best_static_scale_loses_least():
    gradients = [3.0, 2.0**-30, 2.0**-41]
    assert static(2.0**14, gradients)["lost beyond the least"] == 0
    assert static(2.0**4, gradients)["lost beyond the least"] == 1  # 2^-41 is lost at best, too
    assert float(np.float16(3.0 * 2.0**15)) == np.inf


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


def operation(name: str, inputs: list[torch.Tensor]) -> torch.Tensor:
    """Runs an operation of the lab's lists on square matrices."""
    x, y = inputs[0], inputs[-1]
    functions = {
        "linear": lambda: F.linear(x, y),
        "bmm": lambda: torch.bmm(x[None], y[None]),
        "conv2d": lambda: F.conv2d(x[None, None], y[None, None]),
        "addmm": lambda: torch.addmm(x, x, y),
        "softmax": lambda: F.softmax(x, -1),
        "log_softmax": lambda: F.log_softmax(x, -1),
        "layer_norm": lambda: F.layer_norm(x, x.shape[-1:]),
        "cross_entropy": lambda: F.cross_entropy(x, torch.zeros(len(x), dtype=torch.long, device=x.device)),
        "pow": lambda: torch.pow(x, 2.0),
        "cat": lambda: torch.cat([x, y]),
        "gelu": lambda: F.gelu(x),
        "dropout": lambda: F.dropout(x),
        "reshape": lambda: x.reshape(-1),
    }
    return functions.get(name, lambda: getattr(torch, name)(*inputs))()


@pytest.mark.gpu
@pytest.mark.parametrize("name", (*SHORT, *LONG, *WIDEST, *SAME))
@pytest.mark.parametrize("given", [("float16", "float16"), ("float32", "float16"), ("float16", "float32")])
def test_autocast_runs_each_operation_in_the_type_that_the_lab_says(name, given):
    inputs = [torch.ones(4, 4, device="cuda", dtype=getattr(torch, g)) for g in given]
    if name not in (*SHORT, *WIDEST):
        inputs = inputs[:1]
    with torch.amp.autocast("cuda", dtype=torch.float16):
        result = operation(name, inputs)
    assert str(result.dtype) == f"torch.{dtypes([[name, list(given[: len(inputs)])]])[0]}"
