"""Expected results of lab 22's project B: plans are held to the best one, timetables are carried out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import cache
from json import dumps, loads
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes, WrongAnswer
from gpulab.content.lab_17_model_parallelism.references.exercises import parse_schedule
from gpulab.subjects.distributed.layouts import WAYS, NoLayout, cost
from gpulab.subjects.distributed.pipelines import CannotRun, simulate
from gpulab.subjects.distributed.runs import days, saving

Arrays = Mapping[str, np.ndarray]


# ---------------------------------------------------------------- plans


def interval(model: Mapping[str, Any], cluster: Mapping[str, Any]) -> float:
    """The seconds between checkpoints that waste least: where the derivative of the stretch over τ is 0."""
    between = cluster["mtbf"] / (cluster["nodes"] * cluster["per_node"])
    each = saving(model, cluster)
    low, high = 1.0, 10 * between + each
    for _ in range(200):
        middle = (low + high) / 2
        if 1 - middle / between > np.exp(-(middle + each) / between):
            low = middle
        else:
            high = middle
    return max(low, 1.0)


def search(model: Mapping[str, Any], cluster: Mapping[str, Any]) -> dict[str, Any]:
    """The plan with the fewest seconds a step that fits into memory, and the best interval."""
    gpus = cluster["nodes"] * cluster["per_node"]
    parts = [n for n in range(1, gpus + 1) if gpus % n == 0]
    best: tuple[float, dict[str, Any]] = (float("inf"), {})
    for tensor, pipeline in itertools.product(parts, parts):
        if gpus % (tensor * pipeline) or model["layers"] % pipeline:
            continue
        shape = {"tensor": tensor, "pipeline": pipeline, "data": gpus // (tensor * pipeline)}
        for micro in range(1, model["batch"] + 1):
            if model["batch"] % (shape["data"] * micro):
                continue
            least = _recomputed(model, cluster, shape | {"micro": micro})
            if least is None:
                break  # a larger micro-batch needs more
            for order in itertools.permutations(WAYS):
                plan = shape | {"micro": micro, "order": order, "recompute": least}
                seconds = cost(model, cluster, plan).seconds
                if seconds < best[0]:
                    best = seconds, plan
    return best[1] | {"interval": interval(model, cluster)}


def _recomputed(model: Mapping[str, Any], cluster: Mapping[str, Any], plan: Mapping[str, Any]) -> int | None:
    """The fewest layers whose recomputation makes a plan fit; None where not even all do."""
    for count in range(model["layers"] // plan["pipeline"] + 1):
        try:
            if cost(model, cluster, {**plan, "order": WAYS, "recompute": count}).memory <= cluster["memory"]:
                return count
        except NoLayout:
            return None
    return None


@cache
def _best(asked: str) -> float:
    model, cluster = loads(asked)
    return days(model, cluster, search(model, cluster))


def plan(answer: Any, model: Mapping[str, Any], cluster: Mapping[str, Any]) -> dict[str, float]:
    """By how many percent the run takes longer than with the best plan."""
    if not isinstance(answer, dict):
        raise WrongAnswer(
            "a plan is a dictionary with tensor, pipeline, data, micro, order, recompute, interval."
        )
    if "recompute" not in answer:
        raise WrongAnswer(
            "`recompute` is missing. It is the number of layers of each stage for which only "
            "the input is kept."
        )
    try:
        took = days(model, cluster, answer)
    except NoLayout as no:
        raise WrongAnswer(f"{no}.") from None
    found = 100 * (took / _best(dumps([dict(model), dict(cluster)])) - 1)
    return {"longer than the best": round(min(max(found, 0.0), 1e6), 4)}


# ---------------------------------------------------------------- timetables


def timetable(
    answer: Any, devices: int, batches: int, times: Mapping[str, float], message: float, room: int
) -> dict[str, float]:
    """How much longer a schedule takes than the last device must, in percent."""
    orders = parse_schedule(answer, devices, batches, "FBW")
    try:
        run = simulate(orders, times, message)
    except CannotRun as stuck:
        raise WrongAnswer(f"{stuck}.") from None
    fullest = max(range(devices), key=lambda device: run.peak[device])
    if run.peak[fullest] > room:
        raise WrongAnswer(
            f"device {fullest} holds {run.peak[fullest]} micro-batches at once, but there is room for {room}."
        )
    least = (devices - 1) * (times["F"] + message) + batches * sum(times.values())
    return {"above the bound": round(100 * (run.makespan / least - 1), 6)}


# ---------------------------------------------------------------- training


@usual_slips(
    (
        lambda inputs, sizes: train(inputs, {**sizes, "rate": sizes["rate"] * sizes["batches"]}),
        "The same happens if the gradients of the micro-batches' mean losses are added. Divide by "
        "their number.",
    ),
)
def train(inputs: Arrays, sizes: Sizes) -> dict[str, np.ndarray]:
    """The same training in one process, in float64; ranks between the first and the last keep their table."""
    table, weights = inputs["table"].copy(), inputs["weight"].copy()
    tokens, labels, count = inputs["tokens"], inputs["labels"], len(inputs["tokens"])
    for _ in range(int(sizes["steps"])):
        hidden, moved = [table[tokens]], []
        for weight in weights:
            moved.append(np.tanh(hidden[-1] @ weight))
            hidden.append(hidden[-1] + moved[-1])
        logits = hidden[-1] @ table.T
        odds = np.exp(logits - logits.max(axis=1, keepdims=True))
        slope = odds / odds.sum(axis=1, keepdims=True)
        slope[np.arange(count), labels] -= 1
        slope /= count
        table_slope = slope.T @ hidden[-1]
        back = slope @ table
        weight_slopes = np.empty_like(weights)
        for stage in reversed(range(len(weights))):
            inner = back * (1 - moved[stage] ** 2)
            weight_slopes[stage] = hidden[stage].T @ inner
            back = back + inner @ weights[stage].T
        np.add.at(table_slope, tokens, back)
        table -= float(sizes["rate"]) * table_slope
        weights -= float(sizes["rate"]) * weight_slopes
    everywhere = np.stack([inputs["table"]] * len(weights))
    everywhere[0] = everywhere[-1] = table
    return {"new_table": everywhere, "new_weight": weights}


REFERENCES: dict[str, Callable[..., Any]] = {
    "training_project.plan": plan,
    "training_project.timetable": timetable,
    "training_project.train": train,
}
