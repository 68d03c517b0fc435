"""Lab 00: the expected results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from statistics import fmean, median
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes

Arrays = Mapping[str, np.ndarray]


def double(inputs: Arrays, sizes: Sizes) -> dict[str, np.ndarray]:
    return {"out": 2.0 * inputs["a"]}


def _worst(lines: list[list[int]]) -> list[int]:
    return max(lines, key=lambda row: row[2])


@usual_slips(
    (
        lambda lines: [*worst_line(lines)[:2], 100.0 * _worst(lines)[3] / (128 * _worst(lines)[1])],
        "This is a share of 128 bytes per request. Divide by the bytes of the sectors, 32 for each.",
    ),
    (
        lambda lines: [*worst_line(lines)[:2], _worst(lines)[3] / (32 * _worst(lines)[2])],
        "The last number is asked for as a percentage, so multiply the share by 100.",
    ),
)
def worst_line(lines: list[list[int]]) -> list[float]:
    line, requests, sectors, asked = _worst(lines)
    return [line, sectors / requests, 100.0 * asked / (32 * sectors)]


def _by(middle_of: Callable[[Any], float], log: Mapping[str, Any], first: int) -> list[float] | None:
    middle = middle_of(log["times_us"][first:])
    return [middle, log["bytes"] / (middle * 1e-6)]


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
    (
        lambda log: _by(median, log, 0),
        "This includes the first call, which also compiles the kernel. Leave it out.",
    ),
    (
        lambda log: _by(fmean, log, 0),
        "This is a mean, and it includes the first call, which also compiles. Take the median of the others.",
    ),
    (
        lambda log: _by(fmean, log, 1),
        "This is a mean, which a single disturbed run moves. Take the median.",
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
