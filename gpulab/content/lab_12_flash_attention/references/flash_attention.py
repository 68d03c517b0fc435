"""Expected results of lab 12, part B, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes
from gpulab.content.lab_12_flash_attention.attention import seen
from gpulab.content.lab_12_flash_attention.references.attention import (
    Arrays,
    Expected,
    attend,
    log_sum_exp,
    usual_mistakes,
)


@usual_slips(*usual_mistakes(tiles=(1, 16, 32)))
def forward(inputs: Arrays, sizes: Sizes) -> Expected:
    return attend(inputs["q"], inputs["k"], inputs["v"])


def _behind(sizes: Sizes) -> np.ndarray:
    return seen(int(sizes["n"]), int(sizes["m"]))


@usual_slips(*usual_mistakes(_behind, (16, 32, 64)))
def causal(inputs: Arrays, sizes: Sizes) -> Expected:
    return attend(inputs["q"], inputs["k"], inputs["v"], _behind(sizes))


def backward(inputs: Arrays, sizes: Sizes) -> Expected:
    """The gradients of sum(out · dout), all pairs at once."""
    q, k, v, dout = (inputs[name] for name in ("q", "k", "v", "dout"))
    scores = q @ k.T
    weights = np.exp(scores - log_sum_exp(scores)[:, None])
    slopes = weights * (dout @ v.T - (dout * (weights @ v)).sum(axis=1, keepdims=True))
    return {"dq": slopes @ k, "dk": slopes.T @ q, "dv": weights.T @ dout}


REFERENCES: dict[str, Callable[..., Any]] = {
    "attention.flash": forward,
    "attention.cores": forward,
    "attention.blocks": causal,
    "attention.backward": backward,
}
