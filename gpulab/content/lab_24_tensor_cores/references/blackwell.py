"""Expected results of the exercises of lab 24, part B."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import Any

import numpy as np

from gpulab.checks.spec import Sizes, WrongAnswer
from gpulab.subjects import numerics

from .hopper import product

Arrays = Mapping[str, np.ndarray]
Expected = dict[str, np.ndarray]


def _numbers(packed: np.ndarray) -> np.ndarray:
    """Two numbers of e2m1 in each byte, the lower half first."""
    octets = packed.astype(np.uint8)
    codes = np.stack([octets & 15, octets >> 4], axis=-1).reshape(octets.shape[0], -1)
    return numerics.decode(codes, "E2M1").astype(np.float64)


def _factors(scales: np.ndarray, rows: int) -> np.ndarray:
    """One factor for each number (rows, k) from tiles of 128 rows × 4 scales, rows 32 apart side by side."""
    tiles = numerics.decode(scales.astype(np.uint8), "E4M3").astype(np.float64)
    plain = tiles.reshape(rows // 128, -1, 32, 4, 4).transpose(0, 3, 2, 1, 4)
    return plain.reshape(rows, -1).repeat(16, axis=1)


def scaled(inputs: Arrays, sizes: Sizes) -> Expected:
    a = _numbers(inputs["a"]) * _factors(inputs["scales_a"], int(sizes["m"]))
    b = _numbers(inputs["b"]) * _factors(inputs["scales_b"], int(sizes["n"]))
    return {"c": a @ b.T}


def order(answer: Any, rows: int, cols: int, blocks: int) -> dict[str, float]:
    """The waves and the strips of a schedule: a list of (row, column) for each block."""
    if len(answer) != blocks:
        raise WrongAnswer(f"there are lists for {len(answer)} blocks, should be {blocks}")
    given = Counter((int(row), int(col)) for mine in answer for row, col in mine)
    wanted = {(row, col) for row in range(rows) for col in range(cols)}
    if missing := wanted - set(given):
        raise WrongAnswer(f"nobody makes tile {min(missing)}")
    if extra := set(given) - wanted:
        raise WrongAnswer(f"there is no tile {min(extra)}")
    if twice := [tile for tile, times in given.items() if times > 1]:
        raise WrongAnswer(f"tile {min(twice)} is made {given[min(twice)]} times")
    strips = 0
    for wave in zip_longest(*answer):
        there = [tile for tile in wave if tile is not None]
        strips += len({row for row, _ in there}) + len({col for _, col in there})
    return {"waves": max(map(len, answer)), "strips": strips}


REFERENCES: dict[str, Callable[..., Any]] = {
    "tensor.memory": product,
    "tensor.pair": product,
    "tensor.scaled": scaled,
    "tensor.order": order,
}
