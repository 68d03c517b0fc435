"""How long a whole training run takes: steps by a layout's cost, checkpoints, and what failures cost."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp, expm1
from typing import Any

from .layouts import NoLayout, cost

SAVED = 14  # bytes per parameter in a checkpoint: weight in 16 bits, master weight and two moments in 32


def days(model: Mapping[str, Any], cluster: Mapping[str, Any], plan: Mapping[str, Any]) -> float:
    """Days until so many tokens are trained on, on average. Modelled, not measured.

    `model` and `cluster` as for `layouts.cost`, with ``tokens`` (of the whole run), ``storage`` (B/s to where
    checkpoints go, all GPUs together), ``mtbf`` (seconds of one GPU between failures) and ``restart``
    (seconds). `plan` is a layout with ``interval``, the seconds of work between two checkpoints.

    The work is tokens / (sequence · batch) steps. With M = mtbf / GPUs, a checkpoint of C seconds and a
    restart of R, a stretch of τ seconds of work takes M · e^(R/M) · (e^((τ + C)/M) − 1) on average (J. Daly,
    "A Higher Order Estimate of the Optimum Checkpoint Interval for Restart Dumps", 2006).

    Raises NoLayout for what is no plan, or one that needs more than the GPUs' memory.
    """
    costs = cost(model, cluster, plan)
    if costs.memory > cluster["memory"]:
        raise NoLayout(
            f"it needs {costs.memory / 1e9:.1f} GB on a GPU; there are {cluster['memory'] / 1e9:.1f}"
        )
    interval = plan.get("interval")
    if isinstance(interval, bool) or not isinstance(interval, int | float) or not 1 <= interval <= 1e9:
        raise NoLayout(f"`interval` must be a number of seconds of at least 1, not {interval!r}")
    work = model["tokens"] / (model["sequence"] * model["batch"]) * costs.seconds
    between = cluster["mtbf"] / (cluster["nodes"] * cluster["per_node"])
    if (interval + saving(model, cluster)) / between > 500:
        return float("inf")
    stretch = (
        between * exp(cluster["restart"] / between) * expm1((interval + saving(model, cluster)) / between)
    )
    return float(work / interval * stretch / 86_400)


def saving(model: Mapping[str, Any], cluster: Mapping[str, Any]) -> float:
    """Seconds that a checkpoint takes: 14 bytes for each of 12 · layers · width² parameters."""
    return float(SAVED * 12 * model["layers"] * model["width"] ** 2 / cluster["storage"])
