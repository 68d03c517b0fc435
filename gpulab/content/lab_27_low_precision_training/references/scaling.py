"""Expected results of lab 27, part B."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpulab.checks.spec import Sizes, WrongAnswer
from gpulab.content.lab_27_low_precision_training.scaling import QUINTIC, STEPS, polar_flops

Arrays = dict[str, np.ndarray]
Law = Sequence[float]


def polar(inputs: Arrays, sizes: Sizes) -> Arrays:
    x = inputs["g"].astype(np.float64)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    x = x / np.linalg.norm(x)
    a, b, c = QUINTIC
    for _ in range(STEPS):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return {"out": x.T if tall else x}


def shard(answer: Sequence[int], shapes: Sequence[Sequence[int]], ranks: int) -> dict[str, float]:
    """The busiest rank's FLOPs, over the mean of all ranks or the largest matrix, whichever is more."""
    if not isinstance(answer, list) or len(answer) != len(shapes):
        raise WrongAnswer(f"the answer is a list of {len(shapes)} ranks, one for each matrix.")
    cost = [polar_flops(*sorted(shape)) for shape in shapes]
    busy = [0.0] * ranks
    for place, rank in enumerate(answer):
        if type(rank) is not int or not 0 <= rank < ranks:
            raise WrongAnswer(
                f"matrix {place} goes to rank {rank!r}; ranks are whole numbers from 0 to {ranks - 1}."
            )
        busy[rank] += cost[place]
    return {"busiest rank": max(busy) / max(sum(cost) / ranks, max(cost))}


# ---------------------------------------------------------------- laws


def loss(law: Law, parameters: Any, tokens: Any) -> Any:
    """Nats of a model with so many parameters after so many tokens."""
    e, a_factor, a, b_factor, b = law
    return e + a_factor * parameters**-a + b_factor * tokens**-b


def best(law: Law, flops: float, served: float = 0.0) -> tuple[float, float]:
    """The number of parameters with the least loss, and that loss, to 1 part in 10⁴ of the former."""
    top = flops / (2 * served) if served else 1e18
    n = np.geomspace(1e4, top, 200_001)[:-1]
    losses = loss(law, n, (flops - 2 * n * served) / (6 * n))
    at = int(np.argmin(losses))
    return float(n[at]), float(losses[at])


LARGEST = 1e60  # more than any answer needs, and few enough for products of two
LEAST = 1e4  # parameters and tokens of a run: with less the law is not one of models


def _positive(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < LARGEST:
        said = f"{value:.3g}" if isinstance(value, float) else str(value)[:20]
        raise WrongAnswer(f"{what} is {said}; it should be a positive number below {LARGEST:g}.")
    return float(value)


def forecast(ask: Callable[..., Any], law: Law, seed: int, budget: float, target: float) -> dict[str, float]:
    """Runs small models by a law that only this side knows; the noise of a run is 0.03 % of its loss."""
    noise, spent = np.random.default_rng(seed), 0.0

    def train(parameters: Any, tokens: Any) -> float:
        nonlocal spent
        n, d = _positive(parameters, "the number of parameters"), _positive(tokens, "the number of tokens")
        if min(n, d) < LEAST:
            raise WrongAnswer(
                f"a run of {n:.3g} parameters and {d:.3g} tokens; both are at least {LEAST:,.0f}."
            )
        spent += 6 * n * d
        return float(loss(law, n, d) * (1 + 0.0003 * noise.standard_normal()))

    answer = ask(train, budget, target)
    if not isinstance(answer, list) or len(answer) != 3:
        raise WrongAnswer("the answer is [parameters, tokens, loss].")
    n, d, said = (
        _positive(answer[0], "parameters"),
        _positive(answer[1], "tokens"),
        _positive(answer[2], "loss"),
    )
    if 6 * n * d > 1.001 * target:
        raise WrongAnswer(
            f"{n:.3g} parameters and {d:.3g} tokens take {6 * n * d:.3g} FLOPs, more than {target:.3g}."
        )
    real = float(loss(law, n, d))
    return {"FLOPs": spent / budget, "regret": real - best(law, target)[1], "miss": abs(said - real)}


def split(answer: float, law: Law, flops: float, served: float) -> dict[str, float]:
    n = _positive(answer, "the number of parameters")
    left = flops - 2 * n * served
    if left <= 0:
        raise WrongAnswer(f"{n:.3g} parameters spend all FLOPs on serving; none are left to train with.")
    return {"regret": max(0.0, float(loss(law, n, left / (6 * n))) - best(law, flops, served)[1])}


REFERENCES: dict[str, Callable[..., Any]] = {
    "scaling.polar": polar,
    "scaling.shard": shard,
    "scaling.forecast": forecast,
    "scaling.split": split,
}
