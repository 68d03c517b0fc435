"""Expected results of lab 10's exercises."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpulab.exercises.lab_10_mixed_precision import ITERATIONS, LONG, SHORT, STEPS, WIDEST
from gpulab.exercises.spec import WrongAnswer

ZERO = 2.0**-25  # FP16 rounds magnitudes up to here to zero
BEYOND = 65520.0  # and from here on to infinity


def static(factor: float, gradients: Sequence[float]) -> dict[str, float]:
    """How many more gradients become zero than with the best power of two."""
    if not isinstance(factor, int | float) or isinstance(factor, bool):
        raise WrongAnswer("the answer is one number.")
    if factor <= 0 or math.frexp(factor)[0] != 0.5:
        raise WrongAnswer(f"{factor:g} is no power of two.")
    sizes = [abs(g) for g in gradients]
    largest = max(sizes)
    if largest * factor >= BEYOND:
        raise WrongAnswer(f"{factor:g} · {largest:g} becomes infinite.")
    best = 2.0 ** math.floor(math.log2(65504 / largest)) if largest else 1.0
    while largest and 2 * best * largest < BEYOND:
        best *= 2

    def lost(times: float) -> int:
        return sum(0 < size * times <= ZERO for size in sizes)

    return {"lost beyond the least": float(lost(factor) - lost(best))}


# ---------------------------------------------------------------- an iteration, as a recipe


@dataclass
class Training:
    """Two weights of a quadratic, gradients in FP16, and all that a mixed-precision iteration has in hand."""

    weights: np.ndarray = field(default_factory=lambda: np.array([3.0, -2.0]))
    scale: float = 1024.0
    good: int = 0
    iteration: int = 0
    slope: np.ndarray | None = None
    factor: float = 1.0
    gradients: np.ndarray = field(default_factory=lambda: np.zeros(2))
    overflow: bool = False

    def do(self, step: str) -> None:
        """One step. Raises WrongAnswer where it has nothing to work on."""
        match step:
            case "zero":
                self.gradients = np.zeros(2)
            case "forward":
                noise = np.random.default_rng(self.iteration).standard_normal(2)
                steep = 4e4 if self.iteration % 17 == 11 else 1.0  # now and then a batch that overflows
                self.slope = steep * (np.array([1.0, 0.1]) * self.weights + 0.1 * noise)
                self.factor = 1.0
            case "scale":
                if self.slope is None:
                    raise WrongAnswer("`scale` comes before there is a loss.")
                self.factor = self.scale
            case "backward":
                if self.slope is None:
                    raise WrongAnswer("`backward` comes before there is a loss.")
                with np.errstate(over="ignore", invalid="ignore"):
                    short = (self.slope * self.factor).astype(np.float16)
                    self.gradients = self.gradients + short.astype(np.float64)
            case "unscale":
                self.gradients = self.gradients / self.scale
            case "check":
                self.overflow = not np.isfinite(self.gradients).all()
            case "clip":
                with np.errstate(invalid="ignore"):
                    norm = np.sqrt((self.gradients**2).sum())
                    if not norm <= 1:
                        self.gradients = self.gradients / norm
            case "update weights":
                if not self.overflow:
                    self.weights = self.weights - 0.05 * self.gradients
            case "update scale":
                self.good = 0 if self.overflow else self.good + 1
                if self.overflow:
                    self.scale *= 0.5
                elif self.good == 20:
                    self.scale, self.good = 2 * self.scale, 0


ORDER = STEPS


def recipe(order: Sequence[str]) -> dict[str, float]:
    """In how many iterations the weights change otherwise than with the right order."""
    for step in STEPS:
        if list(order).count(step) != 1:
            raise WrongAnswer(f"`{step}` is there {list(order).count(step)} times; each step is needed once.")
    if len(order) != len(STEPS):
        raise WrongAnswer(f"it has {len(order)} steps, {len(STEPS)} are known.")
    mine, wrong = Training(), 0
    for iteration in range(ITERATIONS):
        right = Training(mine.weights, mine.scale, mine.good, iteration)
        for step in ORDER:
            right.do(step)
        before = mine.scale, mine.good
        mine.iteration, mine.slope = iteration, None
        for step in order:
            mine.do(step)
        same = np.allclose(mine.weights, right.weights, rtol=1e-9, atol=0)
        wrong += not (same and (mine.scale, mine.good) == (right.scale, right.good))
        if not np.isfinite(mine.weights).all():
            return {"wrong updates": float(ITERATIONS)}
        if (right.scale, right.good) != (mine.scale, mine.good):
            mine.scale, mine.good = before[0], right.good
    return {"wrong updates": float(wrong)}


def states(
    overflows: Sequence[bool], scale: float, growth: float, backoff: float, interval: int
) -> list[list[float]]:
    """[scale, good steps in a row] after each iteration, by the rules of torch.amp.GradScaler."""
    found, good = [], 0
    for overflow in overflows:
        if overflow:
            scale, good = scale * backoff, 0
        else:
            good += 1
            if good == interval:
                scale, good = scale * growth, 0
        found.append([scale, good])
    return found


def scaler(answer: Sequence[Sequence[float]], *script: Any) -> dict[str, float]:
    right = states(*script)
    if len(answer) != len(right):
        raise WrongAnswer(f"it has {len(answer)} states; there are {len(right)} iterations.")
    for state in answer:
        if len(state) != 2:
            raise WrongAnswer("each state is two numbers: the scale and the counter.")
    differing = [
        a for a, b in zip(answer, right, strict=True) if [float(x) for x in a] != [float(x) for x in b]
    ]
    return {"differing states": float(len(differing))}


def clip(gradients: Sequence[float], scale: float, limit: float) -> list[float] | None:
    unscaled = [g / scale for g in gradients]
    if not all(map(math.isfinite, unscaled)):
        return None
    norm = math.sqrt(math.fsum(g * g for g in unscaled))
    return [g * limit / norm for g in unscaled] if norm > limit else unscaled


def dtypes(program: Sequence[Sequence[Any]]) -> list[str]:
    found: list[str] = []
    for op, inputs in program:
        given = [found[i] if isinstance(i, int) else i for i in inputs]
        if op in SHORT:
            found.append("float16")
        elif op in LONG:
            found.append("float32")
        elif op in WIDEST:
            found.append("float32" if "float32" in given else "float16")
        else:
            found.append(given[0])
    return found


def master(weight: float, update: float, count: int) -> list[float]:
    alone, copy = np.float16(weight), weight
    for _ in range(count):
        alone = np.float16(float(alone) + update)
        copy += update
    return [float(alone), float(np.float16(copy))]


def footprint(parameters: int, choice: str) -> int:
    return parameters * {"FP32": 16, "AMP": 18, "BF16 pure": 8, "BF16 + 8-bit Adam": 6}[choice]


def delayed(amaxes: Sequence[float], length: int, largest: float) -> list[float]:
    scales = []
    for k in range(len(amaxes)):
        known = amaxes[max(0, k - length) : k]
        usable = bool(known) and all(map(math.isfinite, known)) and max(known) > 0
        scales.append(largest / max(known) if usable else 1.0)
    return scales


REFERENCES: dict[str, Callable[..., Any]] = {
    "mixed.static": static,
    "mixed.recipe": recipe,
    "mixed.scaler": scaler,
    "mixed.clip": clip,
    "mixed.dtypes": dtypes,
    "mixed.master": master,
    "mixed.footprint": footprint,
    "mixed.delayed": delayed,
}
