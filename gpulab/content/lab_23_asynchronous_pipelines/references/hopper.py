"""Expected results of the exercises of lab 23, part B."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes
from gpulab.content.lab_23_asynchronous_pipelines.ampere import RING_TILE
from gpulab.content.lab_23_asynchronous_pipelines.hopper import BULK_TILE

from .ampere import turned

Arrays = Mapping[str, np.ndarray]
Expected = dict[str, np.ndarray]


def bulk(inputs: Arrays, sizes: Sizes) -> Expected:
    return turned(BULK_TILE, inputs)


def tile(inputs: Arrays, sizes: Sizes) -> Expected:
    return {"out": inputs["a"].transpose(1, 0, 2)}


def _box_without_the_border(inputs: Arrays, sizes: Sizes) -> Expected:
    return _blurred(np.pad(inputs["a"].astype(np.float64), (0, 2)))


@usual_slips(
    (
        _box_without_the_border,
        "The same happens if the box begins at the block's first element. Its border begins a row "
        "and a column before.",
    ),
)
def edge(inputs: Arrays, sizes: Sizes) -> Expected:
    return _blurred(np.pad(inputs["a"].astype(np.float64), 1))


def _blurred(a: np.ndarray) -> Expected:
    """The inner elements of `a`, each with a share of its four neighbours."""
    around = a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]
    return {"out": 0.5 * a[1:-1, 1:-1] + 0.125 * around}


def roles(inputs: Arrays, sizes: Sizes) -> Expected:
    return turned(RING_TILE, inputs)


def share(inputs: Arrays, sizes: Sizes) -> Expected:
    return {"out": inputs["a"].astype(np.float64) * inputs["v"]}


def gather(inputs: Arrays, sizes: Sizes) -> Expected:
    x = inputs["x"].astype(np.float64)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return {"out": e / e.sum(axis=1, keepdims=True)}


REFERENCES: dict[str, Callable[..., Any]] = {
    "async.bulk": bulk,
    "async.tile": tile,
    "async.edge": edge,
    "async.roles": roles,
    "async.share": share,
    "async.gather": gather,
}
