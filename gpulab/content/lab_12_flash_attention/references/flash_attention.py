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


def _maximum_of_a_lane(inputs: Arrays, sizes: Sizes) -> Expected:
    """Of the first sixteen keys: lane t of four has columns 2t, 2t + 1, 2t + 8 and 2t + 9 of its row."""
    scores = inputs["q"] @ inputs["k"].T
    lane = np.arange(scores.shape[1]) % 8 // 2
    largest = np.stack([scores[:, lane == t].max(axis=1) for t in range(4)])
    weights = np.exp(scores - largest[lane].T)
    return {"out": weights @ inputs["v"] / weights.sum(axis=1, keepdims=True)}


@usual_slips(
    *usual_mistakes(tiles=(1, 16, 32)),
    (
        _maximum_of_a_lane,
        "The same happens if each lane subtracts the largest of its own scores. Four lanes have a "
        "row together, so "
        "they must exchange their maxima, as they exchange their sums.",
    ),
)
def cores(inputs: Arrays, sizes: Sizes) -> Expected:
    return forward(inputs, sizes)


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
    "attention.cores": cores,
    "attention.blocks": causal,
    "attention.backward": backward,
}
