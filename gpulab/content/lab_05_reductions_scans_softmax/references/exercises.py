"""Expected results of lab 05's exercises, in float64; sums of float64 numbers are exact before rounding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import fsum
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes
from gpulab.content.lab_05_reductions_scans_softmax.exercises import BINS, EPSILON, THREADS

Arrays = Mapping[str, np.ndarray]
Expected = dict[str, np.ndarray]


def _groups(a: np.ndarray, size: int) -> list[np.ndarray]:
    return [a[first : first + size] for first in range(0, a.size, size)]


def warp_sum(inputs: Arrays, sizes: Sizes) -> Expected:
    return {"sums": np.array([group.sum() for group in _groups(inputs["a"], 32)])}


def total(inputs: Arrays, sizes: Sizes) -> Expected:
    return {"out": inputs["a"].sum(keepdims=True)}


def kahan(inputs: Arrays, sizes: Sizes) -> Expected:
    return {"sums": np.array([fsum(column) for column in inputs["a"].T])}


def _without_a_guard(inputs: Arrays, sizes: Sizes) -> Expected:
    """Lanes below the distance get their own value back from a shuffle, and add it."""
    scanned = []
    for group in _groups(inputs["a"], THREADS):
        warps = np.pad(group, (0, THREADS - len(group))).reshape(-1, 32)
        for distance in (1, 2, 4, 8, 16):
            warps = warps + np.concatenate([warps[:, :distance], warps[:, :-distance]], axis=1)
        before = np.cumsum(warps[:, -1]) - warps[:, -1]
        scanned.append((warps + before[:, None]).reshape(-1)[: len(group)])
    return {"out": np.concatenate(scanned or [inputs["a"]])}


@usual_slips(
    (
        _without_a_guard,
        "The same happens if lanes below the distance add what the shuffle returns: it is their own value.",
    ),
)
def scan(inputs: Arrays, sizes: Sizes) -> Expected:
    a = inputs["a"]
    return {"out": np.concatenate([np.cumsum(group) for group in _groups(a, THREADS)] or [a])}


def compact(inputs: Arrays, sizes: Sizes) -> Expected:
    a = inputs["a"]
    kept = a[a > 0]
    return {"out": np.pad(kept, (0, a.size - kept.size)), "count": np.array([kept.size])}


def histogram(inputs: Arrays, sizes: Sizes) -> Expected:
    return {"counts": np.bincount(inputs["values"], minlength=BINS)}


def logsumexp(inputs: Arrays, sizes: Sizes) -> Expected:
    x = inputs["x"]
    largest = x.max(axis=1)
    shift = np.where(np.isfinite(largest), largest, 0)  # a row of nothing but −∞ has −∞
    return {"out": shift + np.log(np.exp(x - shift[:, None]).sum(axis=1))}


def row_softmax(inputs: Arrays, sizes: Sizes) -> Expected:
    x = inputs["x"]
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return {"out": powers / powers.sum(axis=1, keepdims=True)}


def add_norm(inputs: Arrays, sizes: Sizes) -> Expected:
    summed = inputs["x"] + inputs["residual"]
    centred = summed - summed.mean(axis=1, keepdims=True)
    variance = (centred**2).mean(axis=1, keepdims=True)
    return {"summed": summed, "out": centred / np.sqrt(variance + EPSILON) * inputs["weight"]}


REFERENCES: dict[str, Callable[..., Any]] = {
    "parallel.warp_sum": warp_sum,
    "parallel.total": total,
    "parallel.kahan": kahan,
    "parallel.scan": scan,
    "parallel.compact": compact,
    "parallel.histogram": histogram,
    "parallel.logsumexp": logsumexp,
    "parallel.row_softmax": row_softmax,
    "parallel.add_norm": add_norm,
}
