"""From times to a speed with an interval, and what no time may be. Pure: knows no GPU and no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpulab.checks.spec import Sizes
from gpulab.checks.speeds import Speed
from gpulab.simulator.hardware import GPU, roofline

LEVEL = 0.95  # of the interval
RESAMPLES = 2000
SLACK = 1e-3  # of the least time: clocks and data sheets are rounded


@dataclass(frozen=True)
class Interval:
    """A speed (the reference's time over the submission's) and the ends of its confidence interval."""

    low: float
    middle: float
    high: float

    @property
    def width(self) -> float:
        """Relative: 0.05 says that the high end is 5 % above the low one."""
        return self.high / self.low - 1


Pair = tuple[float, float]  # seconds of the submission, and of the reference right before or after it


def speed(samples: Mapping[str, Sequence[Pair]], seed: int = 0) -> Interval:
    """The speed over all cases: the geometric mean of the ratios of medians, with its bootstrap interval.

    `samples` are pairs by case. Whole pairs are drawn again, each case for itself: what slows both down for
    a while, such as heat, stays together (B. Efron, R. Tibshirani, "An Introduction to the Bootstrap", 1993,
    chapter 13, percentile intervals). Raises ValueError where a case has no pair.
    """
    if not samples or not all(samples.values()):
        raise ValueError("no pairs to take a speed from")
    generator = np.random.default_rng(seed)
    logs = np.zeros(RESAMPLES)
    middle = 0.0
    for pairs in samples.values():
        times = np.asarray(pairs, float)  # (pairs, 2)
        drawn = times[generator.integers(0, len(times), (RESAMPLES, len(times)))]  # (resamples, pairs, 2)
        logs += _log_ratio(np.median(drawn, axis=1))
        middle += float(_log_ratio(np.median(times, axis=0)))
    low, high = np.quantile(logs, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(*(float(np.exp(x / len(samples))) for x in (low, middle, high)))


def _log_ratio(medians: np.ndarray) -> np.ndarray:
    return np.log(medians[..., 1] / medians[..., 0])


def least_seconds(gpu: GPU, wanted: Speed, sizes: Sizes) -> float:
    """The time that nothing on this GPU can beat, by its data sheet: the roofline of the case.

    What is written may stay in the second-level cache, so that many bytes need not reach the memory. Raises
    ValueError where the data sheet has no rate for the operations.
    """
    moved = max(0.0, float(wanted.least_bytes(sizes)) - float(gpu.l2_bytes))
    least = moved / float(gpu.dram_bandwidth)
    if wanted.least_flops is not None:
        least = max(least, float(wanted.least_flops(sizes)) / roofline(gpu, wanted.dtype).peak)
    return least * (1 - SLACK)
