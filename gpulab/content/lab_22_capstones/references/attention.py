"""Expected results of lab 22's project A, in float64: all pairs at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpulab.checks.spec import Sizes
from gpulab.content.lab_22_capstones.attention import attend

Arrays = Mapping[str, np.ndarray]


def forward(inputs: Arrays, sizes: Sizes) -> dict[str, np.ndarray]:
    out, lse, _ = attend(inputs["q"], inputs["k"], inputs["v"], int(sizes["causal"]))
    return {"out": out, "lse": lse}


def backward(inputs: Arrays, sizes: Sizes) -> dict[str, np.ndarray]:
    """The gradients of Σ out · dout. Key heads get those of all query heads that share them."""
    q, k, v, dout = (inputs[name] for name in ("q", "k", "v", "dout"))
    group = len(q) // len(k)
    out, _, weights = attend(q, k, v, int(sizes["causal"]))
    shares = (out * dout).sum(axis=2)
    slopes = weights * (dout @ v.repeat(group, axis=0).swapaxes(1, 2) - shares[..., None])

    def summed(each: np.ndarray) -> np.ndarray:
        return each.reshape(len(k), group, *each.shape[1:]).sum(axis=1)

    return {
        "shares": shares,
        "dq": slopes @ k.repeat(group, axis=0),
        "dk": summed(slopes.swapaxes(1, 2) @ q),
        "dv": summed(weights.swapaxes(1, 2) @ dout),
    }


REFERENCES: dict[str, Callable[..., Any]] = {
    "attention_project.forward": forward,
    "attention_project.backward": backward,
}
