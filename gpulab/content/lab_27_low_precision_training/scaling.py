"""Lab 27, part B: what its four exercises ask.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| polar | polar(g) → a matrix | the short side | matrix FLOPs | 5·(6·n²·m + 2·n³) | 5·(4·m²·n + 2·m³) | 5 |
| shard | shard(shapes, ranks) → ranks | whole matrices, balanced by FLOPs | busiest rank | 1.15 | 1 | 4 |
| forecast | forecast(train, budget, target) | runs, a fit, an extrapolation | FLOPs | – | the budget | 6 |
| | | | regret | 0.015 | 0 | |
| | | | miss | 0.1 | 0 | |
| split | split(law, flops, served) → parameters | the optimum with serving | regret | 0.05 | 0 | 3 |

Derivations:

**polar**: with m ≤ n, a step is A = X Xᵀ (2·m²·n), A² (2·m³) and (b·A + c·A²) X (2·m²·n); five steps are
5 · (4·m²·n + 2·m³). A tall matrix is transposed first: 32 columns and 512 rows cost 5 · (4·512²·32 + 2·512³)
= 1.5 · 10⁹ FLOPs as they are, and 5 · (4·32²·512 + 2·32³) = 10.8 · 10⁶ transposed: 140 times less. A
polynomial as a X + b A X + c A (A X) has three products with X instead of one with A and one with X:
6·m²·n instead of 4·m²·n + 2·m³, which is never less, as m ≤ n. The iteration can also run on m × m
matrices alone (Gram Newton–Schulz), which is cheaper still and passes.

**shard**: Newton–Schulz needs a whole matrix, so a matrix is one rank's. The busiest rank can have no less
than the mean of all, and no less than the largest matrix. By falling cost, each to the rank with least so
far (R. Graham, 1969) is at most a third above the optimum, and with many matrices close to it. Numbers of
elements mislead: 64 × 1,024 and 256 × 256 both have 65,536, and a step costs 17.3 and 100.7 million FLOPs.
In the order in which matrices are given, where the large ones come last, the busiest rank has 1.25 to 1.5
times the least.

**forecast**: the loss of a run with N parameters and D tokens is E + A / N^a + B / D^b, with a relative noise
of 0.03 %. Given a and b, E, A and B are a linear least-squares problem, so a grid over two exponents
suffices. A power law without E, drawn as a straight line in logarithms, misses by 0.7 nats. The laws'
optima lie near 1 and 200 tokens per parameter, so the rule of 20 costs 0.04 to 0.06 nats.

**split**: 6·N·D to train, 2·N for each token served. With S tokens served D = (C − 2·N·S) / (6·N), and the
loss is a function of N with one minimum. Without S it is N = G · (C/6)^(b/(a+b)) with
G = (a·A / (b·B))^(1/(a+b)).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gpulab.checks.builders import answered, prediction
from gpulab.checks.cases import of_kinds
from gpulab.checks.evidence import Dialogues, TensorGraph
from gpulab.checks.operators import COMMON
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Sizes

LAB = "27"
TOPIC = "scaling"
STEPS = 5
QUINTIC = (3.4445, -4.7750, 2.0315)  # K. Jordan, "Muon", 2024

Numbers = np.random.Generator
_answered = partial(answered, TOPIC, LAB)


def polar_flops(m: int, n: int) -> int:
    """FLOPs of five Newton–Schulz steps whose square matrices are m × m."""
    return STEPS * (4 * m * m * n + 2 * m**3)


def polar_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    shape = int(sizes["m"]), int(sizes["n"])
    return Array("g", shape), Array("out", shape, role="out")


def polar_case(m: int, n: int) -> Case:
    return Case(f"{m} × {n}", {"m": m, "n": n})


def _short_first(sizes: Sizes) -> int:
    return polar_flops(*sorted((int(sizes["m"]), int(sizes["n"]))))


def _long_first(sizes: Sizes) -> int:
    """Square matrices of the long side, and X Xᵀ made again for each of the two terms that need it."""
    short, long = sorted((int(sizes["m"]), int(sizes["n"])))
    return polar_flops(long, short) + STEPS * 2 * long * long * short


# ---------------------------------------------------------------- questions


def shard_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """Shapes of matrices, and how many ranks there are."""
    match sizes["kind"]:
        case "one matrix is most":
            return [([[64, 64], [1024, 1024], [64, 256], [128, 128]], 3)]
        case "fewer than ranks":
            return [([[128, 128], [64, 512]], 4)]
        case "as many elements each":  # experts and attention: the same elements, up to six times the FLOPs
            shapes = [[64, 1024], [1024, 64], [128, 512], [256, 256], [256, 256], [512, 128]] * 12
            return [([shapes[i] for i in numbers.permutation(len(shapes))], int(r)) for r in (4, 8)]
        case _:  # a transformer: attention, then up and down; a few large matrices come last
            w = 64 * int(numbers.integers(4, 12))
            layer = [[w, w], [w, w // 4], [w, w // 4], [w, w], [4 * w, w], [w, 4 * w]]
            return [
                (layer * layers + [[4 * w, 4 * w]] * (ranks // 2), ranks)
                for layers, ranks in ((24, 6), (32, 12), (24, 2))
            ]


def laws(numbers: Numbers, count: int) -> list[list[float]]:
    """Laws [E, A, a, B, b] whose best ratio of tokens to parameters lies far from 20, on either side."""
    found = []
    for k in range(count):
        a, b = (0.42, 0.30) if k % 2 else (0.30, 0.42)
        a, b = a + float(numbers.uniform(-0.02, 0.02)), b + float(numbers.uniform(-0.02, 0.02))
        e = float(numbers.uniform(1.5, 1.9))
        found.append([e, 0.6 * 1e8**a, a, 0.6 * (3e10 if k % 2 else 1e8) ** b, b])
    return found


TARGET, BUDGET = 1e21, 5e18  # FLOPs of the large run, and of all small ones together


def forecast_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """A law, a seed for the noise, and the two amounts of FLOPs."""
    law = laws(numbers, 2)[1 if sizes["kind"] == "parameters saturate first" else 0]
    return [(law, int(numbers.integers(1 << 30)), BUDGET, TARGET)]


def split_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """[E, A, a, B, b], the FLOPs of training and serving together, and the tokens served."""
    match sizes["kind"]:
        case "nothing served":
            served, flops = (0.0, 0.0, 0.0, 0.0), (1e19, 1e21, 1e23, 1e25)
        case "little served":
            served, flops = (1e10, 1e9, 1e11, 1e12), (1e21, 1e19, 1e23, 1e25)
        case _:
            served, flops = (1e12, 5e10, 1e13, 1e14), (1e21, 1e19, 1e23, 1e25)
    return [(law, c, s) for law, c, s in zip(laws(numbers, 4), flops, served, strict=True)]


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="scaling.polar",
        lab=LAB,
        evidence=TensorGraph(arguments=polar_arguments, operators=COMMON),
        correct_points=2,
        cases=tuple(polar_case(*each) for each in ((3, 5), (24, 24), (32, 128), (512, 32))),
        rtol=2e-3,
        atol=2e-3,
        budgets=(
            Budget(
                "matrix_flops",
                _short_first,
                3,
                "matrix FLOPs",
                naive=_long_first,
                unit="FLOP",
                why="three products a step, the square ones of the short side",
                advice="How large is X Xᵀ where X has more rows than columns? And how often do you multiply "
                "by X in a step?",
                case=EVERY,
            ),
        ),
        hints=(
            "Transpose a tall matrix before the first step and the result after the last; the polynomial "
            "does not mind.",
            "In each step first A = X Xᵀ, then P = b · A + c · A A, which is small, and at the end "
            "a · X + P X.",
            "`x = g.t() if g.shape[0] > g.shape[1] else g`, then `x = x / x.norm()`, then the step, "
            "five times.",
        ),
        section="2 · What an orthogonal update costs",
    ),
    _answered(
        "shard",
        1,
        ("fewer than ranks", "one matrix is most", "as many elements each", "a transformer"),
        shard_questions,
        (
            "What does each matrix cost? With m the shorter side, 4·m²·n + 2·m³ for a step.",
            "No rank can have less than the mean as its maximum, and none can have less than the largest "
            "matrix. Who takes the largest first?",
            "Go through the matrices by falling cost and give each to the rank that has least so far.",
        ),
        "3 · Which rank computes which matrix",
        Budget(
            "busiest rank",
            1.05,
            3,
            "busiest rank",
            naive=1.15,
            unit="× the least that is possible",
            why="balanced by FLOPs",
            advice="Did you balance the number of matrices, of elements, or of FLOPs? If of FLOPs, in which "
            "order did you give out the matrices?",
            case=EVERY,
        ),
        measured=True,
    ),
    Exercise(
        name="scaling.forecast",
        lab=LAB,
        evidence=Dialogues(questions=forecast_questions),
        correct_points=1,
        cases=of_kinds("tokens saturate first", "parameters saturate first"),
        budgets=(
            Budget(
                "FLOPs",
                1.0,
                1,
                "FLOPs spent",
                naive=200,
                unit="× the budget",
                why="all runs together",
                advice="A run costs 6 · parameters · tokens. What do your runs cost together?",
                case=EVERY,
            ),
            Budget(
                "regret",
                0.005,
                3,
                "regret",
                naive=0.015,
                unit="nats",
                why="close to the best split",
                advice="Do your runs vary parameters and tokens independently, over a wide range? Does your "
                "law have a floor that no model gets below?",
                case=EVERY,
            ),
            Budget(
                "miss",
                0.04,
                1,
                "error of the forecast",
                naive=0.1,
                unit="nats",
                why="what the noise allows",
                advice="Does your law have a floor that no model gets below?",
                case=EVERY,
            ),
        ),
        hints=(
            "Choose a grid: some numbers of parameters, for each some numbers of tokens, so that both vary "
            "by a factor of 100 or more and no run takes most of the budget.",
            "For given exponents a and b, loss = E + A · N^−a + B · D^−b is linear in E, A and B: "
            "`np.linalg.lstsq` on the columns 1, N^−a, D^−b. Try all a and b on a fine grid.",
            "With the law in hand look for the best of 2,000 values of N, D = target / (6 · N). Divide "
            "N and D by 10⁸ and 10⁹ before you raise them to powers: the columns then have similar sizes.",
        ),
        section="5 · A law from runs of your own",
    ),
    _answered(
        "split",
        1,
        ("nothing served", "little served", "much served"),
        split_questions,
        (
            "First the tokens as a function of the parameters: what is left of the FLOPs after serving, "
            "divided by 6 · N?",
            "More parameters than flops / (2 · served) leave nothing to train with. Between 10⁵ and that, "
            "the loss falls and then rises.",
            "Try 20,000 values of N, evenly spaced in logarithms, and take the one with the least loss.",
        ),
        "6 · The split",
        Budget(
            "regret",
            1e-4,
            2,
            "regret",
            naive=0.05,
            unit="nats",
            why="the best number of parameters",
            advice="Is the loss at your N the lowest, with the D that is left after the FLOPs of serving? "
            "Compare it with the losses at a larger and a smaller N.",
            case=EVERY,
        ),
        measured=True,
    ),
)


_prediction = partial(prediction, TOPIC, LAB)

PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "overhead",
        "FLOPs of Muon's five steps, as a share of forward and backward (width 4,096, a million tokens)",
        "%",
        100 * polar_flops(4096, 4096) / (6 * 4096**2 * 2**20),
        "5 · 6 · 4,096³ against 6 · 4,096² · 2^20: 5 · 4,096 / 2^20 = 2 %.",
        0.1,
    ),
    _prediction(
        "ratio",
        "Tokens per parameter at the optimum of 10^24 FLOPs: exponents are equal, and it is 20 at 10^21",
        "",
        20,
        "With a = b both grow as the root of the FLOPs, so their ratio stays.",
    ),
)
