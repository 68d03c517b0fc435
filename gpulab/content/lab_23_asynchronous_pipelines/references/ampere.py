"""Expected results of the exercises of lab 23, part A."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpulab.checks.builders import count
from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes
from gpulab.content.lab_23_asynchronous_pipelines.ampere import RING_TILE, WARP_TILE

Arrays = Mapping[str, np.ndarray]
Expected = dict[str, np.ndarray]


def turned(tile: int, inputs: Arrays) -> Expected:
    """Each tile from its last element to its first."""
    return {"out": inputs["x"].reshape(-1, tile)[:, ::-1].reshape(-1)}


@usual_slips(
    (
        lambda *numbers: depth(*numbers) - 1,
        "These are the slots on their way. Add the one that the block is working on.",
    ),
)
def depth(bandwidth: int, latency: int, sms: int, blocks: int, tile: int) -> int:
    return -(-bandwidth * latency // (sms * blocks * tile)) + 1


def ring(inputs: Arrays, sizes: Sizes) -> Expected:
    """Each float4 of a tile and the next one, added; the last one's next is the first."""
    tiles = inputs["x"].astype(np.float64).reshape(-1, RING_TILE // 4, 4)
    return {"out": (tiles + np.roll(tiles, -1, axis=1)).reshape(-1)}


def handshake(inputs: Arrays, sizes: Sizes) -> Expected:
    return turned(WARP_TILE, inputs)


def parity(inputs: Arrays, sizes: Sizes) -> Expected:
    tiles = inputs["x"].astype(np.float64).reshape(count(sizes, "blocks"), count(sizes, "tiles"), WARP_TILE)
    return {"out": tiles.cumsum(axis=1).reshape(-1)}


REFERENCES: dict[str, Callable[..., Any]] = {
    "async.depth": depth,
    "async.ring": ring,
    "async.handshake": handshake,
    "async.parity": parity,
}
