"""Expected results of lab 13's exercises."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpulab.checks.spec import Sizes, WrongAnswer
from gpulab.content.lab_13_quantization.exercises import ALLOCATE_BITS, CHUNK, GROUP

Rows = Sequence[Sequence[float]]


def grid(values: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Scale and zero point along the last axis, which is kept with length 1."""
    low = np.minimum(values.min(axis=-1, keepdims=True), 0)
    high = np.maximum(values.max(axis=-1, keepdims=True), 0)
    scale = (high - low) / (2**bits - 1)
    scale = np.where(scale == 0, 1.0, scale)
    return scale, np.round(-low / scale)


def codes_of(values: np.ndarray, scale: np.ndarray, zero: np.ndarray, bits: int) -> np.ndarray:
    return np.clip(np.round(values / scale) + zero, 0, 2**bits - 1)


def affine(values: Sequence[float], bits: int) -> list[Any]:
    x = np.array(values)
    scale, zero = grid(x, bits)
    return [float(scale[0]), int(zero[0]), codes_of(x, scale, zero, bits).astype(int).tolist()]


def _rounded(values: np.ndarray, bits: int) -> np.ndarray:
    scale, zero = grid(values, bits)
    return (codes_of(values, scale, zero, bits) - zero) * scale


def grouped(weights: Rows, bits: int, group: int) -> list[Any]:
    w = np.array(weights)
    return [bits + 32 / group, _rounded(w.reshape(-1, group), bits).reshape(w.shape).tolist()]


# ---------------------------------------------------------------- clipping


def clipped(values: np.ndarray, limit: float, bits: int) -> np.ndarray:
    last = 2 ** (bits - 1) - 1
    scale = limit / last
    return np.clip(np.round(values / scale), -last, last) * scale


def clip(limit: float, values: Sequence[float], bits: int) -> dict[str, float]:
    """The mean square error over that of the best of 1,000 limits."""
    if not _number(limit) or not 0 < limit < np.inf:
        raise WrongAnswer("the answer is one number, the limit, and it is positive.")
    x = np.array(values)
    largest = np.abs(x).max()

    def error(at: float) -> float:
        return float(np.mean((clipped(x, at, bits) - x) ** 2))

    best = min(error(at) for at in largest * np.arange(1, 1001) / 1000)
    nothing = 1e-12 * float(np.mean(x**2))  # where all values can be kept exactly
    return {"error over the best": (error(limit) + nothing) / (best + nothing)}


def allocate(
    chosen: Any, sizes: Sequence[int], errors: Sequence[Sequence[float]], budget: int
) -> dict[str, float]:
    """The sum of errors over the least possible one, which a sum over thousands of bits finds."""
    if not isinstance(chosen, list) or len(chosen) != len(sizes):
        raise WrongAnswer(f"the answer is a list with a number of bits for each of the {len(sizes)} layers.")
    if any(type(bits) is not int or bits not in ALLOCATE_BITS for bits in chosen):
        raise WrongAnswer("each layer gets 2, 3, 4 or 8 bits.")
    if (spent := sum(bits * size for bits, size in zip(chosen, sizes, strict=True))) > budget:
        raise WrongAnswer(f"it takes {spent:,} bits, and the budget is {budget:,}.")
    least = np.zeros(budget // 1024 + 1)  # by thousands of bits that may be spent
    for size, row in zip(sizes, errors, strict=True):
        ways = [
            np.concatenate([np.full(cost, np.inf), least])[: least.size] + error
            for bits, error in zip(ALLOCATE_BITS, row, strict=True)
            for cost in [size // 1024 * bits]
        ]
        least = np.min(ways, axis=0)
    total = sum(row[ALLOCATE_BITS.index(bits)] for row, bits in zip(errors, chosen, strict=True))
    return {"error over the best": total / float(least[-1])}


def fake(
    values: Sequence[float], gradients: Sequence[float], scale: float, zero: int, bits: int
) -> list[list[float]]:
    place = np.round(np.array(values) / scale) + zero
    inside = (place >= 0) & (place <= 2**bits - 1)
    restored = (np.clip(place, 0, 2**bits - 1) - zero) * scale
    return [restored.tolist(), np.where(inside, gradients, 0.0).tolist()]


# ---------------------------------------------------------------- factors of channels


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _factors(answer: Any, channels: int) -> np.ndarray:
    if not isinstance(answer, list) or len(answer) != channels:
        raise WrongAnswer(f"the answer is a list of {channels} factors, one for each channel.")
    for place, factor in enumerate(answer):
        if not _number(factor) or not 0 < factor < np.inf:
            raise WrongAnswer(f"factor {place} is {factor!r}; each must be a positive number.")
    return np.array(answer, dtype=np.float64)


def _symmetric(values: np.ndarray, bits: int, axis: int | None = None) -> np.ndarray:
    last = 2 ** (bits - 1) - 1
    scale = np.abs(values).max(axis=axis, keepdims=True) / last
    scale = np.where(scale == 0, 1.0, scale)
    return np.round(values / scale) * scale


def smooth(answer: Sequence[float], activations: Rows, weights: Rows) -> dict[str, float]:
    """Mean square error of the outputs at W8A8, over that without factors."""
    x, w = np.array(activations), np.array(weights)
    s = _factors(answer, x.shape[1])

    def error(by: np.ndarray) -> float:
        return float(np.mean((_symmetric(x / by, 8) @ _symmetric(w * by, 8, 1).T - x @ w.T) ** 2))

    return {"error over none": error(s) / error(np.ones_like(s))}


def awq(answer: Sequence[float], weights: Rows, activations: Rows, bits: int) -> dict[str, float]:
    """Mean square error of the outputs with weights of few bits, over that without factors."""
    x, w = np.array(activations), np.array(weights)
    s = _factors(answer, x.shape[1])

    def error(by: np.ndarray) -> float:
        return float(np.mean((x @ (_rounded(w * by, bits) / by - w).T) ** 2))

    return {"error over none": error(s) / error(np.ones_like(s))}


def gptq(
    answer: Sequence[Sequence[int]],
    weights: Rows,
    hessian: Rows,
    scales: Sequence[float],
    zeros: Sequence[int],
    bits: int,
) -> dict[str, float]:
    """tr((Q − W) H (Q − W)ᵀ) of the codes, over that of rounding each weight to the nearest."""
    w, h = np.array(weights), np.array(hessian)
    scale, zero = np.array(scales)[:, None], np.array(zeros)[:, None]
    if len(answer) != len(w) or any(len(row) != w.shape[1] for row in answer):
        raise WrongAnswer(f"the codes are {w.shape[0]} rows of {w.shape[1]}, as the weights are.")
    codes = np.array(answer, dtype=np.float64)
    if wrong := np.argwhere((codes != np.round(codes)) | (codes < 0) | (codes > 2**bits - 1)).tolist():
        row, column = wrong[0]
        raise WrongAnswer(
            f"code [{row}][{column}] is {codes[row, column]:g}; "
            f"codes of {bits} bits are whole numbers from 0 to {2**bits - 1}."
        )

    def error(q: np.ndarray) -> float:
        off = (q - zero) * scale - w
        return float(np.einsum("ij,jk,ik->", off, h, off))

    return {"error over nearest": error(codes) / error(codes_of(w, scale, zero, bits))}


# ---------------------------------------------------------------- bytes


def size(entries: Sequence[Sequence[Any]]) -> int:
    widths = {"float32": 4, "float16": 2, "bfloat16": 2, "int32": 4, "int8": 1, "uint8": 1, "bool": 1}
    seen: dict[int, int] = {}
    for _, shape, dtype, storage in entries:
        seen[storage] = max(seen.get(storage, 0), int(np.prod(shape)) * widths[dtype])
    return sum(seen.values())


def multiply(inputs: Mapping[str, np.ndarray], sizes: Sizes) -> dict[str, np.ndarray]:
    rows, columns = int(sizes["rows"]), int(sizes["columns"])
    words = inputs["packed"].reshape(rows, columns // CHUNK, 32)
    nibbles = (words[..., None] >> (4 * np.arange(8, dtype=np.uint32))) & 15  # row, chunk, lane, place
    codes = nibbles.transpose(0, 1, 3, 2).reshape(rows, columns).astype(np.float64)
    scales = np.repeat(inputs["scales"].reshape(rows, columns // GROUP).astype(np.float64), GROUP, axis=1)
    return {"out": ((codes - 8) * scales) @ inputs["x"].astype(np.float64)}


REFERENCES: dict[str, Callable[..., Any]] = {
    "quant.affine": affine,
    "quant.grouped": grouped,
    "quant.clip": clip,
    "quant.fake": fake,
    "quant.smooth": smooth,
    "quant.gptq": gptq,
    "quant.awq": awq,
    "quant.multiply": multiply,
    "quant.allocate": allocate,
    "quant.size": size,
}
