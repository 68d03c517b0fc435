"""Lab 10: what its eight exercises ask.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| static | static(gradients) → a factor | a loss scale that fits | lost values | 200 | 0 | 3 |
| recipe | recipe() → the steps of an iteration | unscale, check, clip, step | answers | – | – | 4 |
| scaler | scaler(overflows, …) → states | dynamic loss scaling | answers | – | – | 4 |
| clip | clip(gradients, scale, limit) | the norm of unscaled gradients | answers | – | – | 2 |
| dtypes | dtypes(program) → dtypes | autocast's three lists | answers | – | – | 3 |
| master | master(weight, update, count) | where updates vanish | answers | – | – | 2 |
| footprint | footprint(parameters, choice) | what is kept per parameter | answers | – | – | 2 |
| delayed | delayed(amaxes, length, largest) | FP8 scales from the past | answers | – | – | 3 |

Derivations:

**static**: a power of two moves every gradient by as many powers. FP16 ends at 65,504 and rounds
magnitudes of at most 2⁻²⁵ to zero, so of the powers of two without an overflow the largest loses least.
The budget is what is lost beyond that. It is counted on 400 magnitudes
that lie, at the best factor, evenly between 2⁻²⁵ and 2⁻²¹: a factor of 2 too small loses 100 of them, of 4
too small 200 (naive).

**recipe**: the judge trains two weights of a noisy quadratic for 60 iterations, with gradients in FP16, and
holds the weights after each against those of the right order. Clipping before unscaling clips the scaled
norm, which is 1,024 times too large: the first update is wrong already. The scale grows after 5 good steps,
in iteration 4 first, where nothing is clipped: an update of the scale before unscaling halves the step. In
iterations 30 to 33 overflows depend on the scale: a check after the scale's update is told late and skips
one step more.

**scaler**: a state is (scale, good steps in a row) after each of 300 iterations of scripted overflows; the
rules are those of ``torch.amp.GradScaler`` (tests/labs/test_10 holds ours to it): on an overflow scale ·
backoff, counter 0, step skipped; else counter + 1, and at `interval` scale · growth and counter 0.

**footprint**: with AdamW in FP32 a parameter is 4 bytes of weight, 4 of gradient and 8 of moments. AMP keeps
all that and a float16 copy of the weight: 18. All in BF16: 2 + 2 + 4; with moments of 8 bits 2 + 2 + 2.

**delayed**: scale = largest / max(amax of the last `length` steps), before the step's own amax is known;
1 at first, and unchanged where the history is empty or its maximum is 0 or not finite. NVIDIA's Transformer
Engine keeps its scale, too, where that maximum is 0 or infinite (transformer_engine/common/recipe/
delayed_scaling.cu); it can leave a margin besides, and its maximum passes over NaN.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from gpulab.checks.builders import prediction
from gpulab.checks.evidence import AnsweredCases
from gpulab.checks.spec import EVERY, Budget, Case, Exercise, Prediction, Sizes

LAB = "10"
STEPS = ("zero", "forward", "scale", "backward", "unscale", "check", "clip", "update weights", "update scale")
ITERATIONS = 60
CHOICES = ("FP32", "AMP", "BF16 pure", "BF16 + 8-bit Adam")
# Autocast's lists for CUDA (PyTorch, "Automatic Mixed Precision package", Autocast Op Reference).
SHORT = ("linear", "matmul", "bmm", "conv2d", "addmm")
LONG = ("softmax", "log_softmax", "layer_norm", "cross_entropy", "exp", "log", "pow", "sum", "norm")
WIDEST = ("add", "mul", "cat")
SAME = ("relu", "gelu", "dropout", "reshape", "max", "tanh")
IN_PLACE = ("add_", "mul_")  # two inputs; the result is written into the first

Numbers = np.random.Generator


def _cases(*names: str) -> tuple[Case, ...]:
    return tuple(Case(name, {"what": name}) for name in names)


def gradients(
    numbers: Numbers, count: int, middle: float, spread: float, largest: float = 0.0
) -> list[float]:
    """Magnitudes of gradients as networks have them: log-normal, `middle` and `spread` in powers of two."""
    values = 2.0 ** (middle + spread * numbers.standard_normal(count))
    signs = numbers.choice([-1.0, 1.0], count)
    out = [float(v) for v in values * signs]
    return [*out, largest] if largest else out


def packed(numbers: Numbers, largest: float) -> list[float]:
    """One gradient that decides, and 400 that the best factor just keeps: a quarter within a factor of 2."""
    best = 2.0 ** math.floor(math.log2(65519 / largest))
    kept = 2.0 ** np.linspace(-25, -21, 401)[1:] / best
    signs = numbers.choice([-1.0, 1.0], kept.size)
    return [float(v) for v in numbers.permutation([*(kept * signs), largest])]


# ---------------------------------------------------------------- questions


def static_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    match sizes["what"]:
        case "packed":
            return [(packed(numbers, largest),) for largest in (65519.0 * 2.0**-12, 2.0**-9, 3.0, 2.0**17)]
        case "one large":
            return [(gradients(numbers, 400, -22, 3, 3.0),)]
        case "too large already":
            return [(gradients(numbers, 50, -4, 2, 2.0**18),)]
        case "exactly at the end":
            return [
                ([65504.0 * 2.0**-12, 2.0**-30],),
                ([65519.0 * 2.0**-12, 2.0**-30],),
                ([1.0, 65520.0 * 2.0**-9],),
            ]
        case _:
            return [([0.0, 0.0],), ([0.0, 3.0],)]


def recipe_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    return [()]


def scaler_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """Where the gradients of 300 iterations overflow, the first scale, and the three settings."""
    match sizes["what"]:
        case "never":
            return [([False] * 300, 1024.0, 2.0, 0.5, 20)]
        case "always":
            return [([True] * 40, 65536.0, 2.0, 0.5, 10)]
        case "above a limit":  # overflows are where the script says, whatever the scale
            return [([bool(k % 21 == 20) for k in range(300)], 2.0**16, 2.0, 0.5, 20)]
        case "other settings":
            return [([bool(b) for b in numbers.random(300) < 0.05], 8.0, 4.0, 0.25, 7)]
        case "interval 1":
            return [([bool(b) for b in numbers.random(60) < 0.4], 1.0, 2.0, 0.5, 1)]
        case _:
            return [([bool(b) for b in numbers.random(300) < 0.03], 2.0**15, 2.0, 0.5, 25)]


def clip_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    match sizes["what"]:
        case "long":
            return [(gradients(numbers, 20, 2, 2), 1024.0, 1e-3)]
        case "short enough":
            return [
                ([3.0 * 64, 4.0 * 64], 64.0, 5.0),
                (gradients(numbers, 5, -8, 1), 8.0, 10.0),
                ([0.0, 0.0], 2.0, 1.0),
            ]
        case _:
            return [
                ([1.0, float("inf")], 2.0, 1.0),
                ([float("nan"), 1.0], 2.0, 1.0),
                ([-float("inf")], 4.0, 9.0),
            ]


def dtype_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """Programs: lists of [operation, inputs]; an input is a dtype, or the number of an earlier line."""
    full, half = "float32", "float16"
    match sizes["what"]:
        case "a layer":
            return [([["linear", [full, full]], ["gelu", [0]], ["linear", [1, full]], ["layer_norm", [2]]],)]
        case "attention":
            return [
                (
                    [
                        ["linear", [full, full]],
                        ["matmul", [0, 0]],
                        ["softmax", [1]],
                        ["matmul", [2, 0]],
                        ["add", [3, full]],
                    ],
                )
            ]
        case "a loss":
            return [
                ([["linear", [full, full]], ["reshape", [0]], ["cross_entropy", [1]], ["mul", [2, full]]],)
            ]
        case "mixed inputs":
            return [
                (
                    [
                        ["add", [half, full]],
                        ["add", [half, half]],
                        ["cat", [1, 0]],
                        ["max", [1]],
                        ["sum", [1]],
                        ["add_", [0, half]],
                        ["mul_", [1, full]],
                    ],
                ),
                (
                    [
                        ["relu", [full]],
                        ["matmul", [0, half]],
                        ["pow", [1]],
                        ["mul", [1, 2]],
                        ["conv2d", [3, full]],
                    ],
                ),
            ]
        case _:
            return [(_program(numbers),) for _ in range(4)]


def _program(numbers: Numbers) -> list[list[Any]]:
    lines: list[list[Any]] = []
    for k in range(12):
        kind = (SHORT, LONG, WIDEST, SAME, IN_PLACE)[numbers.integers(5)]
        op = str(numbers.choice(kind))
        count = 2 if kind in (SHORT, WIDEST, IN_PLACE) else 1
        inputs = [
            int(numbers.integers(k))
            if k and numbers.random() < 0.8
            else str(numbers.choice(["float32", "float16"]))
            for _ in range(count)
        ]
        lines.append([op, inputs])
    return lines


def master_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """A weight, an update and how often it is added."""
    match sizes["what"]:
        case "vanishes":
            return [(1.0, 2.0**-12, 1000), (256.0, 0.1, 50), (-3.0, -1e-4, 100)]
        case "arrives":
            return [(1.0, 2.0**-9, 500), (0.25, 2.0**-12, 100)]
        case _:
            return [
                (float(np.float16(w)), float(u), int(n))
                for w, u, n in zip(
                    numbers.standard_normal(6),
                    2.0 ** numbers.uniform(-14, -6, 6),
                    numbers.integers(10, 300, 6),
                    strict=True,
                )
            ]


def footprint_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    count = 10 ** int(numbers.integers(6, 11))
    return [(count, str(sizes["what"]))]


def delayed_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    amaxes = [float(v) for v in 2.0 ** numbers.uniform(-6, 8, 12)]
    match sizes["what"]:
        case "zeros":
            return [([0.0, 0.0, 3.5, 0.0, 0.0, 0.0], 2, 448.0)]
        case "not finite":
            inf, nan = float("inf"), float("nan")
            return [
                ([1.0, inf, 2.0, 4.0, nan, 1.0, 1.0], 2, 448.0),
                ([1.0, nan, 2.0, 4.0, 8.0], 4, 448.0),  # max([1, nan, 2]) is 2
            ]
        case "length 1":
            return [(amaxes, 1, 57344.0)]
        case _:
            return [(amaxes, 4, 448.0), ([], 4, 448.0), (amaxes[:2], 16, 448.0)]


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="mixed.static",
        lab=LAB,
        evidence=AnsweredCases(questions=static_questions, measured=True),
        correct_points=1,
        cases=_cases("one large", "packed", "exactly at the end", "too large already", "zeros"),
        budgets=(
            Budget(
                "lost beyond the least",
                0,
                2,
                "lost values",
                naive=200,
                unit="values",
                why="more than with the best power of two",
                advice="Which is the largest gradient after scaling? FP16 rounds to infinity only from "
                "65,520 on.",
                case=EVERY,
            ),
        ),
        hints=(
            "Only the largest magnitude decides: times the factor it must not become infinite.",
            "FP16 rounds to infinity from 65,520 on. A power of two changes no mantissa.",
            "Start from 2^⌊log2(65504 / largest)⌋, and look whether twice that still fits. For zeros "
            "any factor will do; 1 is one.",
        ),
        section="3 · One factor for the loss",
    ),
    Exercise(
        name="mixed.recipe",
        lab=LAB,
        evidence=AnsweredCases(questions=recipe_questions, measured=True),
        detective=True,
        correct_points=4,
        cases=_cases("60 iterations"),
        hints=(
            "Which of the nine numbers or lists does each step read, and which does it change? Print the "
            "norm of the gradients before and after each step, in one iteration.",
            "The loss is scaled, so that the gradients are. Which steps need them as they really are?",
            "What is divided by must be what was multiplied by; what is compared with a limit of 1 must be "
            "real; what is infinite must be known before weights or scale change.",
        ),
        section="Detective · The run that hardly learns",
    ),
    Exercise(
        name="mixed.scaler",
        lab=LAB,
        evidence=AnsweredCases(questions=scaler_questions, measured=True),
        correct_points=4,
        cases=_cases("never", "always", "interval 1", "other settings", "above a limit", "now and then"),
        hints=(
            "Two numbers are the whole state: the scale, and how many good steps came since it last changed.",
            "An overflow sets the counter to 0, too.",
            "The state is appended after the update: at the step that fills the interval the scale has "
            "grown already and the counter is 0.",
        ),
        section="4 · A factor that finds its size",
    ),
    Exercise(
        name="mixed.clip",
        lab=LAB,
        evidence=AnsweredCases(questions=clip_questions),
        correct_points=2,
        cases=_cases("long", "short enough", "not finite"),
        rtol=2e-6,
        hints=(
            "First divide by the scale. Then look whether all are finite.",
            "The norm is the root of the sum of squares of all gradients together.",
            "Above the limit multiply all by limit / norm. `None` says that the step is to be skipped.",
        ),
        section="5 · Clipping",
    ),
    Exercise(
        name="mixed.dtypes",
        lab=LAB,
        evidence=AnsweredCases(questions=dtype_questions),
        correct_points=3,
        cases=_cases("a layer", "attention", "a loss", "mixed inputs", "any"),
        hints=(
            "Keep the dtype of each line's result in a list; an input that is a number looks it up there.",
            "Four kinds of operations: to float16, to float32, to the widest input, and as the input is.",
            "The widest of float16 and float32 is float32.",
        ),
        section="6 · Autocast",
    ),
    Exercise(
        name="mixed.master",
        lab=LAB,
        evidence=AnsweredCases(questions=master_questions),
        correct_points=2,
        cases=_cases("vanishes", "arrives", "any"),
        hints=(
            "`np.float16(x)` rounds to FP16. Where does each of the two ways round?",
            "Without a master copy every sum is rounded and kept rounded.",
            "With a master copy a Python float is added up, and only the result is rounded.",
        ),
        section="2 · Weights that do not move",
    ),
    Exercise(
        name="mixed.footprint",
        lab=LAB,
        evidence=AnsweredCases(questions=footprint_questions),
        correct_points=2,
        cases=_cases(*CHOICES),
        hints=(
            "Per parameter: weight, gradient, AdamW's two moments, and perhaps a master copy.",
            "With AMP as in the text the master copy *is* the FP32 parameter, and gradients are FP32.",
            "FP32: 4 + 4 + 8. AMP adds the short copy of the weights. Which of these become 2, or 1, "
            "in the others?",
        ),
        section="7 · What it buys",
    ),
    Exercise(
        name="mixed.delayed",
        lab=LAB,
        evidence=AnsweredCases(questions=delayed_questions),
        correct_points=3,
        cases=_cases("any", "zeros", "not finite", "length 1"),
        rtol=2e-6,
        hints=(
            "The scale of a step is made before its own amax is known. Which amaxes does step k know?",
            "`amaxes[max(0, k - length) : k]`.",
            "Keep the scale in a variable that starts at 1, and change it only where the window can be used. "
            "Python's `max` does not see NaN reliably: look at each.",
        ),
        section="8 · Eight bits: scales from the past",
    ),
)


_prediction = partial(prediction, "mixed", LAB)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "vanished",
        "Gradients that are not zero but become zero in FP16, without scaling",
        "%",
        None,
        "FP16 rounds magnitudes up to 2^-25 = 3.0e-8 to zero. Where does that lie between the two powers "
        "that hold the middle 80 %?",
        0.3,
    ),
    _prediction(
        "stuck",
        "How large an update must be, at least, to move a weight of 1 in FP16",
        "",
        None,
        "Half the spacing above 1 is 2^-11 = 0.00049, and exactly half is a tie that stays at 1: a "
        "little more.",
        0.05,
    ),
    _prediction(
        "growth",
        "Scale after 100 good steps, from 1,024, doubling every 20",
        "",
        2**15,
        "Five times 20: 1,024 · 2^5.",
    ),
    _prediction(
        "loss_type",
        "Bits of the loss under autocast to float16",
        "bits",
        32,
        "cross_entropy is on the list of operations that run in float32.",
    ),
    _prediction(
        "keras_bits",
        "Bits of each probability that the Keras model returns",
        "bits",
        None,
        "The softmax is part of a layer whose compute dtype is float16.",
    ),
    _prediction(
        "fused_bytes",
        "Bytes that the fused kernel moves for each parameter",
        "bytes",
        None,
        "It reads 2 (gradient) + 4 (master) + 4 + 4 (moments), and writes 4 + 4 + 4 and the copy of 2.",
    ),
    _prediction(
        "amp_bytes",
        "Bytes per parameter that training with AdamW and AMP keeps",
        "B",
        18,
        "FP32 parameter, gradient and two moments are 16; the float16 copy of the weights is 2 more.",
    ),
    _prediction(
        "fp8_without",
        "Share of these activations that E4M3 without a scale gets wrong by more than 12.5 %",
        "%",
        None,
        "Below 2^-6 E4M3's spacing stays 2^-9, so errors reach 2^-10. That is more than 12.5 % only below "
        "2^-7, half a spread: 38 % of a normal distribution, and about half of these are hit.",
        0.3,
    ),
)
