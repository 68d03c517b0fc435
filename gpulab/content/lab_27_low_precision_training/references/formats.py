"""Expected results of lab 27, part A."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

import numpy as np

from gpulab.checks.spec import Sizes, WrongAnswer
from gpulab.subjects import numerics

Arrays = dict[str, np.ndarray]


def cast(tensors: Sequence[Sequence[float]], length: int, recipe: str) -> list[list[float]]:
    found: list[list[float]] = []
    amaxes: list[float] = []
    for tensor in tensors:
        x = np.array(tensor, np.float32)
        own = float(np.abs(x).max())
        known = max(amaxes[-length:], default=0.0) if recipe == "delayed" else own
        largest = known or own
        scale = 448 / largest if largest else 1.0
        short = numerics.quantize(np.clip(x * scale, -448, 448), "E4M3")
        found.append((short / scale).tolist())
        amaxes.append(own)
    return found


# ---------------------------------------------------------------- blocks


def _array(artefact: Arrays, name: str, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """An array of the answer. Raises WrongAnswer where it is missing or has another form."""
    if name not in artefact:
        raise WrongAnswer(f"`{name}` is missing.")
    array = artefact[name]
    if array.shape != shape or array.dtype != dtype:
        raise WrongAnswer(
            f"`{name}` has the shape {array.shape} and the type {array.dtype}; it should be {shape}, {dtype}."
        )
    return array


def _only(artefact: Arrays, *names: str) -> None:
    if more := sorted(set(artefact) - set(names)):
        raise WrongAnswer(f"`{more[0]}` is not read; the answer has {', '.join(names)}.")


def _finite(name: str, values: np.ndarray) -> np.ndarray:
    if not np.isfinite(values).all():
        raise WrongAnswer(f"`{name}` has a number that is infinite or NaN.")
    return values


def _largest(x: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """The largest magnitude of each block; blocks at the end may be smaller."""
    m, n = x.shape
    down, across = ceil(m / rows), ceil(n / columns)
    padded = np.zeros((down * rows, across * columns))
    padded[:m, :n] = np.abs(x)
    return padded.reshape(down, rows, across, columns).max((1, 3))


def _spread(blocks: np.ndarray, shape: tuple[int, ...], rows: int, columns: int) -> np.ndarray:
    return np.repeat(np.repeat(blocks, rows, 0), columns, 1)[: shape[0], : shape[1]]


def off(x: np.ndarray, back: np.ndarray, rows: int, columns: int) -> float:
    """Root mean square of the errors, each relative to its block's largest; without blocks of zeros."""
    largest = _spread(_largest(x, rows, columns), x.shape, rows, columns)
    if np.any(back[largest == 0]):
        raise WrongAnswer("a block of zeros does not come back as zeros.")
    part = (back - x)[largest > 0] / largest[largest > 0]
    return float(np.sqrt(np.mean(part**2)))


def _best_tiles(x: np.ndarray, rows: int, columns: int, powers: int) -> np.ndarray:
    """What comes back with scales that bring a block's largest number to 448, or near it from below."""
    scale = _largest(x, rows, columns) / 448
    scale = np.where(scale > 0, scale, 1.0)
    if powers:
        scale = 2.0 ** np.ceil(np.log2(scale))
    wide = _spread(scale, x.shape, rows, columns)
    return numerics.quantize(x / wide, "E4M3").astype(np.float64) * wide


def tiles(artefact: Arrays, given: Arrays, held_out: Arrays, sizes: Sizes) -> dict[str, float]:
    m, n, rows, columns, powers = (int(sizes[k]) for k in ("m", "n", "rows", "columns", "powers"))
    x = given["x"].astype(np.float64)
    _only(artefact, "codes", "scales")
    codes = _array(artefact, "codes", (m, n), "uint8")
    grid = ceil(m / rows), ceil(n / columns)
    stored = _array(artefact, "scales", grid, "uint8" if powers else "float32")
    scales = (
        2.0 ** (stored.astype(np.float64) - 127) if powers else _finite("scales", stored.astype(np.float64))
    )
    values = _finite("codes", numerics.decode(codes, "E4M3").astype(np.float64))
    back = values * _spread(scales, x.shape, rows, columns)
    best = off(x, _best_tiles(x, rows, columns, powers), rows, columns)
    first = np.abs(x) == _spread(_largest(x, rows, columns), x.shape, rows, columns)
    first &= x != 0
    return {
        "error": off(x, back, rows, columns) / best,
        "largest off": 100 * float(np.max(np.abs(back - x)[first] / np.abs(x)[first])),
    }


def stored(tokens: int, width: int, bits: int, rows: int, columns: int, scale: int) -> int:
    def copy(down: int, across: int) -> int:
        return tokens * width * bits // 8 + ceil(tokens / down) * ceil(width / across) * scale

    return copy(rows, columns) + (copy(columns, rows) if rows != columns else 0)


# ---------------------------------------------------------------- four bits


GRID = numerics.decode(np.arange(8, dtype=np.uint8), "E2M1").astype(np.float64)


def in_four(x: np.ndarray, draws: np.ndarray) -> Arrays:
    """NVFP4, rounded by chance."""
    scale = np.float32(np.abs(x).max() / (6 * 448))
    blocks = np.abs(x).reshape(len(x), -1, 16).max(2)
    scales = numerics.encode(blocks / 6 / float(scale), "E4M3", saturate=True)
    wide = np.repeat(numerics.decode(scales, "E4M3").astype(np.float64), 16, 1) * float(scale)
    v = np.minimum(np.divide(np.abs(x), wide, out=np.zeros_like(x), where=wide > 0), 6)
    low = np.searchsorted(GRID, v, side="right") - 1
    high = np.minimum(low + 1, 7)
    gap = np.where(high > low, GRID[high] - GRID[low], 1)
    codes = np.where(draws < (v - GRID[low]) / gap, high, low) | (x < 0) * 8
    return {"codes": (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8), "scales": scales, "scale": scale}


def from_four(artefact: Arrays, m: int, n: int) -> np.ndarray:
    codes = _array(artefact, "codes", (m, n // 2), "uint8")
    scales = _array(artefact, "scales", (m, n // 16), "uint8")
    scale = _finite("scale", _array(artefact, "scale", (), "float32").astype(np.float64))
    both = np.stack([codes & 15, codes >> 4], 2).reshape(m, n)
    values = numerics.decode(both, "E2M1").astype(np.float64)
    wide = _finite("scales", numerics.decode(scales, "E4M3").astype(np.float64))
    return values * np.repeat(wide, 16, 1) * float(scale)


def four(artefact: Arrays, given: Arrays, held_out: Arrays, sizes: Sizes) -> dict[str, float]:
    m, n = int(sizes["m"]), int(sizes["n"])
    x, draws = given["x"].astype(np.float64), given["draws"].astype(np.float64)
    _only(artefact, "codes", "scales", "scale")
    back = from_four(artefact, m, n)
    best = {name: np.asarray(value) for name, value in in_four(x, draws).items()}
    bias = 100 * abs(float((back - x).mean())) / float(np.abs(x).mean()) if sizes["kind"] == "equal" else 0.0
    return {"error": off(x, back, 1, 16) / off(x, from_four(best, m, n), 1, 16), "bias": bias}


def rotate(inputs: Arrays, sizes: Sizes) -> Arrays:
    turn = inputs["matrix"].astype(np.float64) * inputs["signs"]
    x, dy = (
        (turn @ inputs[name].astype(np.float64).reshape(-1, 16, inputs[name].shape[1])).reshape(
            inputs[name].shape
        )
        for name in ("x", "dy")
    )
    return {"turned_x": x, "turned_dy": dy, "dw": dy.T @ x}


REFERENCES: dict[str, Callable[..., Any]] = {
    "bits.cast": cast,
    "bits.tiles": tiles,
    "bits.stored": stored,
    "bits.four": four,
    "bits.rotate": rotate,
}
