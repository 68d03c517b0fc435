"""Lab 10: what autocast does to each operation, on a GPU as the lab's rules have it.

It needs PyTorch alone, so that a bare machine with a GPU runs it.
"""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from gpulab.content.lab_10_mixed_precision.exercises import IN_PLACE, LONG, SAME, SHORT, WIDEST
from gpulab.content.lab_10_mixed_precision.references.exercises import dtypes


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
        "add_": lambda: x.clone().add_(y),
        "mul_": lambda: x.clone().mul_(y),
    }
    return functions.get(name, lambda: getattr(torch, name)(*inputs))()


@pytest.mark.gpu
@pytest.mark.parametrize("name", (*SHORT, *LONG, *WIDEST, *SAME, *IN_PLACE))
@pytest.mark.parametrize("given", [("float16", "float16"), ("float32", "float16"), ("float16", "float32")])
def test_autocast_runs_each_operation_in_the_type_that_the_lab_says(name, given):
    inputs = [torch.ones(4, 4, device="cuda", dtype=getattr(torch, g)) for g in given]
    if name not in (*SHORT, *WIDEST, *IN_PLACE):
        inputs = inputs[:1]
    with torch.amp.autocast("cuda", dtype=torch.float16):
        result = operation(name, inputs)
    assert str(result.dtype) == f"torch.{dtypes([[name, list(given[: len(inputs)])]])[0]}"


@pytest.mark.parametrize("name", IN_PLACE)
def test_autocast_leaves_the_type_of_what_is_written_in_place(name):
    x, y = torch.ones(4, 4, dtype=torch.bfloat16), torch.ones(4, 4)
    with torch.amp.autocast("cpu", dtype=torch.bfloat16):
        assert operation(name, [x, y]).dtype == torch.bfloat16
        assert operation(name, [y, x]).dtype == torch.float32
