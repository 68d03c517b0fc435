"""Lab 03: the expected results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes

Arrays = Mapping[str, np.ndarray]
Outputs = dict[str, np.ndarray]


def add_one(inputs: Arrays, sizes: Sizes) -> Outputs:
    return {"out": inputs["a"] + 1.0}


def saxpy(inputs: Arrays, sizes: Sizes) -> Outputs:
    return {"y": float(sizes["alpha"]) * inputs["x"] + inputs["y"]}


def brighten(inputs: Arrays, sizes: Sizes) -> Outputs:
    return {"out": np.minimum(1.0, float(sizes["gain"]) * inputs["image"])}


def two_paths(inputs: Arrays, sizes: Sizes) -> Outputs:
    x = inputs["a"].astype(np.float64)
    grows = np.arange(x.size) % 32 < 16
    for _ in range(64):
        x = np.where(grows, x + x * (1.0 - x) / 64.0, x - x * x / 64.0)
    return {"out": x}


def matmul(inputs: Arrays, sizes: Sizes) -> Outputs:
    return {"c": inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64)}


def block_sum(inputs: Arrays, sizes: Sizes) -> Outputs:
    a = inputs["a"].astype(np.float64)
    blocks = max(1, ceil(a.size / 256))
    return {"sums": np.pad(a, (0, blocks * 256 - a.size)).reshape(blocks, 256).sum(axis=1)}


def diffuse(inputs: Arrays, sizes: Sizes) -> Outputs:
    u = inputs["rod"].astype(np.float64)
    for _ in range(int(sizes["steps"])):
        new = u.copy()
        new[1:-1] = u[1:-1] + 0.25 * (u[:-2] - 2.0 * u[1:-1] + u[2:])
        u = new
    return {"out": u}


@usual_slips(
    (
        lambda rows, cols, block, slots: plan_launch(cols, rows, block, slots),
        "Rows and columns have changed places: x runs along the columns, and y along the rows.",
    ),
)
def plan_launch(rows: int, cols: int, block: list[int], slots: int) -> list[int] | None:
    wide, high = max(1, ceil(cols / block[0])), max(1, ceil(rows / block[1]))
    if block[0] * block[1] > 1024 or high > 65_535:
        return None
    return [wide, high, wide * high * block[0] * block[1] - rows * cols, ceil(wide * high / slots)]


def _both_ways(steps: list[list[Any]], results: list[str]) -> list[list[str]]:
    copies = []
    for where, reads, writes in steps:
        if where == "gpu":
            copies += [["to_device", name] for name in reads] + [["to_host", name] for name in writes]
    return copies


@usual_slips(
    (
        _both_ways,
        "This copies the inputs of every step to the GPU and its outputs back. Copy an array only when the "
        "other side needs it and what it has there is missing or out of date.",
    ),
)
def plan_copies(steps: list[list[Any]], results: list[str]) -> list[list[str]]:
    copies: list[list[str]] = []
    stale: dict[str, set[str]] = {
        "gpu": {name for _, r, w in steps for name in (*r, *w)} | set(results),
        "host": set(),
    }

    def need(where: str, name: str) -> None:
        if name in stale[where]:
            copies.append(["to_device" if where == "gpu" else "to_host", name])
            stale[where].discard(name)

    for where, reads, writes in steps:
        for name in reads:
            need(where, name)
        for name in writes:
            stale[where].discard(name)
            stale["host" if where == "gpu" else "gpu"].add(name)
    for name in results:
        need("host", name)
    return copies


REFERENCES: dict[str, Callable[..., Any]] = {
    f"basics.{function.__name__}": function
    for function in (
        add_one,
        saxpy,
        brighten,
        two_paths,
        matmul,
        block_sum,
        diffuse,
        plan_launch,
        plan_copies,
    )
}
