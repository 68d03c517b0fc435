"""Expected results of lab 25, part B."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes
from gpulab.content.lab_25_layouts_and_tiles.tiles import TILE

Arrays = Mapping[str, np.ndarray]
Expected = dict[str, np.ndarray]


def normalised(x: np.ndarray, axis: int) -> np.ndarray:
    """exp(x) over its sum along an axis."""
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def product(inputs: Arrays, sizes: Sizes) -> Expected:
    return {"c": inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64).T}


def softmax(inputs: Arrays, sizes: Sizes) -> Expected:
    return {"y": normalised(inputs["x"].astype(np.float64), 1)}


def _whole_tiles(inputs: Arrays, sizes: Sizes) -> Expected:
    tile = np.arange(len(inputs["q"])) // TILE
    return _attended(inputs, tile <= tile[:, None])


@usual_slips(
    (
        _whole_tiles,
        "The same happens if queries see the whole tile on the diagonal. There the keys after a "
        "query's own place "
        "must be masked.",
    ),
    (
        lambda inputs, sizes: _attended(inputs, np.True_),
        "The same happens if queries see all keys. They may see those up to their own place.",
    ),
)
def attention(inputs: Arrays, sizes: Sizes) -> Expected:
    return _attended(inputs, np.tri(len(inputs["q"]), dtype=bool))


def _attended(inputs: Arrays, seen: Any) -> Expected:
    q, k, v = (inputs[name].astype(np.float64) for name in "qkv")
    return {"out": normalised(np.where(seen, q @ k.T, -np.inf) * np.log(2), 1) @ v}


def convert(inputs: Arrays, sizes: Sizes) -> Expected:
    return {"y": normalised(inputs["x"].astype(np.float64), 0).T}


REFERENCES: dict[str, Callable[..., Any]] = {
    "tiles.gemm": product,
    "tiles.hopper": product,
    "tiles.softmax": softmax,
    "tiles.attention": attention,
    "tiles.convert": convert,
}
