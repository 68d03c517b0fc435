"""Expected results of lab 10's exercises."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import WrongAnswer
from gpulab.content.lab_10_mixed_precision.exercises import ITERATIONS, LONG, SHORT, STEPS, WIDEST

ZERO = 2.0**-25  # FP16 rounds magnitudes up to here to zero
BEYOND = 65520.0  # and from here on to infinity


def static(factor: float, gradients: Sequence[float]) -> dict[str, float]:
    """Counts how many more gradients become zero than with the best power of two."""
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


GROWS_AFTER = 5  # good steps, so that the scale grows a few times in 60 iterations


def steepness(iteration: int) -> float:
    """How much steeper than usual a batch is: some are clipped, single ones and a row of four overflow."""
    if 30 <= iteration < 34:
        return 60.0
    return 4e4 if iteration % 17 == 11 else 5.0 if iteration % 7 == 3 else 1.0


@dataclass
class Training:
    """Two weights of a quadratic, gradients in FP16, and all that a mixed-precision iteration has in hand."""

    weights: np.ndarray = field(default_factory=lambda: np.array([1.2, -2.0]))
    scale: float = 1024.0
    good: int = 0
    slope: np.ndarray | None = None
    factor: float = 1.0
    gradients: np.ndarray = field(default_factory=lambda: np.zeros(2))
    overflow: bool = False

    def iterate(self, order: Sequence[str], iteration: int) -> None:
        """All steps of an iteration. Raises WrongAnswer where one has nothing to work on."""
        self.slope = None
        for step in order:
            self._do(step, iteration)

    def _do(self, step: str, iteration: int) -> None:
        match step:
            case "zero":
                self.gradients = np.zeros(2)
            case "forward":
                noise = np.random.default_rng(iteration).standard_normal(2)
                self.slope = steepness(iteration) * (np.array([1.0, 0.1]) * self.weights + 0.1 * noise)
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
                elif self.good == GROWS_AFTER:
                    self.scale, self.good = 2 * self.scale, 0


def recipe(order: Sequence[str]) -> dict[str, float]:
    """Trains by the learner's order and by the right one side by side; WrongAnswer at the first difference.

    What counts are the weights: an order that gives the same ones is as right.
    """
    for step in STEPS:
        if list(order).count(step) != 1:
            raise WrongAnswer(f"`{step}` is there {list(order).count(step)} times; each step is needed once.")
    if len(order) != len(STEPS):
        raise WrongAnswer(f"it has {len(order)} steps, {len(STEPS)} are known.")
    mine, right = Training(), Training()
    for iteration in range(ITERATIONS):
        before = right.weights
        mine.iterate(order, iteration)
        right.iterate(STEPS, iteration)
        if not np.allclose(mine.weights, right.weights, rtol=1e-9, atol=0):
            said = _first_wrong(iteration, mine.weights - before, right.weights - before, right)
            raise WrongAnswer(" ".join([said, *_out_of_order(order)]))
    return {}


REASONS = (
    ("backward", "unscale", "There is nothing to divide by the scale before the backward pass."),
    ("unscale", "update scale", "Gradients must be divided by the scale that multiplied their loss."),
    ("check", "update scale", "Whether the scale shrinks or may grow depends on the check for overflow."),
    ("unscale", "clip", "A limit for the length of the gradients holds after they are divided by the scale."),
    ("check", "update weights", "Look for inf and nan before the weights change."),
)


def _out_of_order(order: Sequence[str]) -> list[str]:
    """Why the first two steps that come in the wrong order must change places."""
    return [
        f"Your `{later}` comes before `{earlier}`. {reason}"
        for earlier, later, reason in REASONS
        if list(order).index(later) < list(order).index(earlier)
    ][:1]


def _first_wrong(iteration: int, got: np.ndarray, expected: np.ndarray, right: Training) -> str:
    """What happened in the first iteration whose update is wrong: all before it were right."""
    happened = "overflow" if right.overflow else "do not overflow"
    moved, should = (f"({', '.join(f'{v:.3g}' for v in update)})" for update in (got, expected))
    return (
        f"iteration {iteration}, counted from 0, is the first with a wrong update. By the right order its "
        f"gradients {happened}. The weights change by {moved}, "
        f"{f'should by {should}' if expected.any() else 'and should stay'}."
    )


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


def scaler(answer: Sequence[Sequence[float]], overflows: Sequence[bool], *settings: Any) -> dict[str, float]:
    """WrongAnswer at the first state that is not GradScaler's."""
    right = states(overflows, *settings)
    if len(answer) != len(right):
        raise WrongAnswer(f"it has {len(answer)} states; there are {len(right)} iterations.")
    for iteration, (got, expected) in enumerate(zip(answer, right, strict=True)):
        if len(got) != 2:
            raise WrongAnswer("each state is two numbers: the scale and the counter.")
        if [float(x) for x in got] != expected:
            before = right[iteration - 1] if iteration else [settings[0], 0]
            happened = "an overflow" if overflows[iteration] else "a good step"
            raise WrongAnswer(
                f"the state after iteration {iteration}, counted from 0, is {list(got)}; GradScaler's is "
                f"{expected}. Before it was {before}, and the iteration is {happened}."
            )
    return {}


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


def _delayed(
    amaxes: Sequence[float], length: int, largest: float, finite: Callable[[Sequence[float]], bool]
) -> list[float]:
    """The scales, where an amax counts if its window is `finite`."""
    scales, scale = [], 1.0
    for k in range(len(amaxes)):
        known = amaxes[max(0, k - length) : k]
        if known and finite(known) and max(known) > 0:
            scale = largest / max(known)
        scales.append(scale)
    return scales


@usual_slips(
    (
        lambda amaxes, length, largest: _delayed(amaxes, length, largest, lambda w: math.isfinite(max(w))),
        "No comparison with nan is true, so `max` can overlook one. Ask of every amax whether it is finite.",
    ),
    (
        lambda amaxes, length, largest: _delayed(amaxes, 1, largest, lambda w: all(map(math.isfinite, w))),
        "This knows the last amax only. Take the largest of the last `length`.",
    ),
)
def delayed(amaxes: Sequence[float], length: int, largest: float) -> list[float]:
    return _delayed(amaxes, length, largest, lambda window: all(map(math.isfinite, window)))


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
