"""Expected results of lab 12, part A, in float64: all scores at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np

from gpulab.checks.slips import Slip, usual_slips
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


def usual_mistakes(
    mask: Callable[[Sizes], np.ndarray | None] = lambda sizes: None, tiles: Sequence[int | None] = (None,)
) -> tuple[Slip, ...]:
    """Four mistakes in attention by tiles, each with the sentence that a learner reads.

    `mask` says which query sees which key, None that each sees all. `tiles` are numbers of keys after which a
    solution may look for a larger score, None the exercise's own.
    """

    def scaled_again(inputs: Arrays, sizes: Sizes) -> Expected:
        q = inputs["q"]
        return attend(q / sqrt(q.shape[-1]), inputs["k"], inputs["v"], mask(sizes))

    def scores_of(inputs: Arrays, sizes: Sizes) -> np.ndarray:
        scores, there = inputs["q"] @ inputs["k"].T, mask(sizes)
        return scores if there is None else np.where(there, scores, -np.inf)

    def not_divided(inputs: Arrays, sizes: Sizes) -> Expected:
        scores = scores_of(inputs, sizes)
        return {"out": np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf)) @ inputs["v"]}

    def over_queries(inputs: Arrays, sizes: Sizes) -> Expected:
        scores = scores_of(inputs, sizes)
        weights = np.exp(scores - np.maximum(scores.max(axis=0, initial=-np.inf), -1e30))
        return {"out": weights / np.maximum(weights.sum(axis=0), 1e-30) @ inputs["v"]}

    def not_rescaled(tile: int | None) -> Callable[[Arrays, Sizes], Expected]:
        def slip(inputs: Arrays, sizes: Sizes) -> Expected:
            scores, v = scores_of(inputs, sizes), inputs["v"]
            out, m, step = np.zeros((len(scores), v.shape[1])), -np.inf, tile or int(sizes["tile"])
            for first in range(0, len(v), step):
                some = scores[:, first : first + step]
                m = np.maximum(m, some.max(axis=1, keepdims=True, initial=-np.inf))
                out += np.exp(some - m) @ v[first : first + step]
            return {"out": out / np.exp(log_sum_exp(scores)[:, None] - m)}

        return slip

    return (
        (scaled_again, "The same happens if q is divided by √d twice. It already comes divided."),
        (
            not_divided,
            "The same happens if the sums of weighted values are not divided by the sum of the weights.",
        ),
        (
            over_queries,
            "The same happens if the softmax is taken down the columns. It belongs to a query, so to a row.",
        ),
        *(
            (
                not_rescaled(tile),
                "The same happens if the output is not rescaled when a later key has a larger score.",
            )
            for tile in tiles
        ),
    )


@usual_slips(*usual_mistakes())
def tiled(inputs: Arrays, sizes: Sizes) -> Expected:
    return attend(inputs["q"], inputs["k"], inputs["v"])


def _window(sizes: Sizes) -> np.ndarray:
    return seen(int(sizes["n"]), int(sizes["m"]), int(sizes["window"]))


@usual_slips(*usual_mistakes(_window))
def causal(inputs: Arrays, sizes: Sizes) -> Expected:
    return attend(inputs["q"], inputs["k"], inputs["v"], _window(sizes))


@usual_slips(
    (
        lambda inputs, sizes: {"out": inputs["outs"].mean(axis=0)},
        "The same happens if all parts weigh alike. A part weighs exp(its lse − the lse of all).",
    ),
)
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
