"""Expected results of lab 04's exercises, in float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes
from gpulab.content.lab_04_memory_hierarchy.exercises import TILE, WINDOW

Arrays = Mapping[str, np.ndarray]
Expected = dict[str, np.ndarray]


def sectors(addresses: Sequence[int], size: int) -> int:
    return len({byte // 32 for address in addresses for byte in range(address, address + size)})


def compressed(words: Sequence[int]) -> int:
    differences = [word - words[0] for word in words]
    for bits, taken in ((0, 0), (8, 32), (16, 64)):
        half = 1 << bits >> 1
        if all(-half <= d <= max(half - 1, 0) for d in differences):
            return -(-(4 + taken) // 32)
    return 4


def _first_words(addresses: Sequence[int | None], size: int) -> int:
    return ways(addresses, 4)


@usual_slips(
    (
        _first_words,
        "This looks at the first word of each lane only, and serves all lanes together. A lane that accesses "
        "8 or 16 bytes takes 2 or 4 banks, so only 16 or 8 lanes are served in one pass.",
    ),
)
def ways(addresses: Sequence[int | None], size: int) -> int:
    together = 128 // size  # lanes that the 32 banks can serve at best in one pass
    passes = 0
    for first in range(0, 32, together):
        words = {
            word
            for address in addresses[first : first + together]
            if address is not None
            for word in range(address // 4, (address + size) // 4)
        }
        banks = [word % 32 for word in words]
        passes += max((banks.count(bank) for bank in banks), default=0)
    return passes


def copy(inputs: Arrays, sizes: Sizes) -> Expected:
    return {"b": inputs["a"]}


def transpose(inputs: Arrays, sizes: Sizes) -> Expected:
    return {"out": inputs["a"].T}


def _divided_by_whole_tiles(inputs: Arrays, sizes: Sizes) -> Expected:
    a = inputs["a"].astype(np.float64)
    tiles = [a[first : first + TILE] for first in range(0, a.size, TILE)]
    return {"out": np.concatenate([tile - tile.sum() / TILE for tile in tiles] or [a])}


@usual_slips(
    (
        _divided_by_whole_tiles,
        f"The same happens if every sum is divided by {TILE}. The last tile can have fewer elements.",
    ),
)
def centre(inputs: Arrays, sizes: Sizes) -> Expected:
    a = inputs["a"].astype(np.float64)
    tiles = [a[first : first + TILE] for first in range(0, a.size, TILE)]
    return {"out": np.concatenate([tile - tile.mean() for tile in tiles] or [a])}


def unpack(inputs: Arrays, sizes: Sizes) -> Expected:
    x, y, z = inputs["points"].reshape(-1, 3).T
    return {"xs": x, "ys": y, "zs": z}


def blur(inputs: Arrays, sizes: Sizes) -> Expected:
    a = inputs["a"].astype(np.float64)
    rows, cols = a.shape
    framed = np.pad(a, 1)
    shifted = [framed[y : y + rows, x : x + cols] for y in range(3) for x in range(3)]
    return {"out": np.mean(shifted, axis=0)}


def smooth(inputs: Arrays, sizes: Sizes) -> Expected:
    a = inputs["a"].astype(np.float64)
    framed = np.pad(a, ((WINDOW - 1, 0), (0, 0)))
    return {"out": np.mean([framed[k : k + a.shape[0]] for k in range(WINDOW)], axis=0)}


REFERENCES: dict[str, Callable[..., Any]] = {
    "memory.sectors": sectors,
    "memory.copy": copy,
    "memory.transpose": transpose,
    "memory.centre": centre,
    "memory.unpack": unpack,
    "memory.ways": ways,
    "memory.compressed": compressed,
    "memory.padded": transpose,
    "memory.blur": blur,
    "memory.smooth": smooth,
}
