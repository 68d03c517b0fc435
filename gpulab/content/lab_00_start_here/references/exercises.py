"""Lab 00: the expected results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from statistics import median
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes

Arrays = Mapping[str, np.ndarray]


def double(inputs: Arrays, sizes: Sizes) -> dict[str, np.ndarray]:
    return {"out": 2.0 * inputs["a"]}


def worst_line(lines: list[list[int]]) -> list[float]:
    line, requests, sectors, asked = max(lines, key=lambda row: row[2])
    return [line, sectors / requests, 100.0 * asked / (32 * sectors)]


def _at_any_bandwidth(log: Mapping[str, Any]) -> list[float] | None:
    return honest_time({**log, "peak_bytes_per_s": inf})


@usual_slips(
    (
        _at_any_bandwidth,
        "No GPU is faster than its peak bandwidth, so this log cannot be right. The answer is None.",
    ),
    (
        lambda log: _at_any_bandwidth({**log, "synchronised": True}),
        "Nothing waited for the kernel, so these are the times of launches. The answer is None.",
    ),
)
def honest_time(log: Mapping[str, Any]) -> list[float] | None:
    times = log["times_us"][1:]
    if len(times) < 3 or not log["synchronised"]:
        return None
    middle = median(times)
    bandwidth = log["bytes"] / (middle * 1e-6)
    return None if bandwidth > log["peak_bytes_per_s"] else [middle, bandwidth]


REFERENCES: dict[str, Callable[..., Any]] = {
    "start.double": double,
    "start.worst_line": worst_line,
    "start.honest_time": honest_time,
}
