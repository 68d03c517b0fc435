"""Expected results of lab 12, part A, in float64: all scores at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpulab.checks.spec import Sizes
from gpulab.content.lab_12_flash_attention.attention import seen

Arrays = Mapping[str, np.ndarray]
Expected = dict[str, np.ndarray]


def log_sum_exp(x: np.ndarray) -> np.ndarray:
    """Over the last axis; −∞ where nothing but −∞ is there, or nothing."""
    largest = x.max(axis=-1, initial=-np.inf)
    shift = np.where(np.isfinite(largest), largest, 0)
    with np.errstate(divide="ignore"):
        return shift + np.log(np.exp(x - shift[..., None]).sum(axis=-1))


def attend(q: np.ndarray, k: np.ndarray, v: np.ndarray, there: np.ndarray | None = None) -> Expected:
    """Output and log-sum-exp of queries that come scaled; rows that see no key have 0 and −∞."""
    scores = q @ np.swapaxes(k, -1, -2)
    if there is not None:
        scores = np.where(there, scores, -np.inf)
    lse = log_sum_exp(scores)
    weights = np.exp(scores - np.where(np.isfinite(lse), lse, 0)[..., None])
    return {"out": weights @ v, "lse": lse}


def tiled(inputs: Arrays, sizes: Sizes) -> Expected:
    return attend(inputs["q"], inputs["k"], inputs["v"])


def causal(inputs: Arrays, sizes: Sizes) -> Expected:
    there = seen(int(sizes["n"]), int(sizes["m"]), int(sizes["window"]))
    return attend(inputs["q"], inputs["k"], inputs["v"], there)


def merge(inputs: Arrays, sizes: Sizes) -> Expected:
    lse = log_sum_exp(inputs["lses"].T)
    weights = np.exp(inputs["lses"] - np.where(np.isfinite(lse), lse, 0))
    return {"out": (weights[:, :, None] * inputs["outs"]).sum(axis=0), "lse": lse}


def steady(inputs: Arrays, sizes: Sizes) -> Expected:
    """Each part's others merged, one part after the other."""
    outs, lses = inputs["outs"], inputs["lses"]
    rest = [
        merge({"outs": np.delete(outs, p, axis=0), "lses": np.delete(lses, p, axis=0)}, sizes)
        for p in range(len(outs))
    ]
    return {name: np.stack([r[name] for r in rest]) for name in ("out", "lse")}


def grouped(inputs: Arrays, sizes: Sizes) -> Expected:
    each = int(sizes["query_heads"]) // int(sizes["key_heads"])
    k, v = (np.repeat(inputs[name], each, axis=0) for name in ("k", "v"))
    return {"out": attend(inputs["q"], k, v)["out"]}


REFERENCES: dict[str, Callable[..., Any]] = {
    "attention.merge": merge,
    "attention.tiled": tiled,
    "attention.steady": steady,
    "attention.causal": causal,
    "attention.grouped": grouped,
}
