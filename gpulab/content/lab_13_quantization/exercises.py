"""Lab 13: what its ten exercises ask.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| affine | affine(values, bits) → scale, zero point, codes | integers for reals | answers | – | – | 3 |
| grouped | grouped(weights, bits, group) → bits, weights | who shares a scale | answers | – | – | 2 |
| clip | clip(values, bits) → a limit, a plan | calibration | error over the best | 1.5 | 1.03 | 4 |
| fake | fake(values, gradients, …) | straight-through gradients | answers | – | – | 2 |
| smooth | smooth(activations, weights) → factors, a plan | SmoothQuant | error over none | 1 | 0.15 | 3 |
| gptq | gptq(weights, hessian, …) → codes, a plan | GPTQ | error over nearest | 1 | 0.5 | 6 |
| awq | awq(weights, activations, bits) → factors, a plan | AWQ | error over none | 1 | 0.5 | 3 |
| multiply | kernel multiply(packed, scales, x, out) | int4 weights | load sectors | 176/row | 24/row | 6 |
| allocate | allocate(sizes, errors, budget) → bits | bits by layer | error over the best | 1.5 | 1.02 | 4 |
| size | size(entries) → bytes, a detective's answer | what a file holds | answers | – | – | 2 |

Derivations:

**grouped**: a group keeps a scale and a zero point, each in 16 bits: bits + 32/group. With 3 bits and rows
of 128, one group a row, that is 3.25.

**clip**: a limit that is too high wastes codes, one that is too low cuts. For normal numbers in 4 bits the
largest magnitude costs about 1.6 times the least error, for heavy tails in 3 bits 2 to 3 times. With a few
numbers far out and 8 bits the largest is the best limit, and a percentile costs hundreds of times as much. So
the error has to be looked at.

**smooth**: with a channel 50 times as large as the others, the others have 127/50 = 2 to 3 codes on each
side. After division by (max of x)^½ / (max of w)^½ both matrices have channels that differ by √50 = 7.

That leaves 0.04 to 0.11 of the error (150 seeds); all of the outlier moved to the weights 0.18 to 0.46.

**gptq**: the solution leaves 0.21 to 0.33 of the error of rounding to nearest, with activations in which 128
channels mix 32 sources and noise of 0.3. The limit of 0.5 leaves room for other orders and damping.

**awq**: with two channels of 96 at 24 times the mean, the best of the exponents 0, 0.1 … 1 leaves 0.19 to
0.41 of the error (40 seeds), an exponent of 1 between 0.95 and 1.9.

**multiply**, at 1,024 columns: a row has 512 B of weights (16 sectors) and 16 scales of 4 B (2 sectors). x
is 128 sectors: read for each row it is most of the traffic, read once for the 32 rows of a block it is 4 a
row. 16 + 2 + 4 = 22; the limit is 24. Words read by the warp together and all else read where it is needed:
16 + 32 (a sector for each of 8 places of 4 chunks, although two share a scale) + 128 = 176.

**allocate**: a knapsack. Step by step the upgrade with the most gain per bit is at most 4 % off for most sets
of 48 layers, and up to 2.6 times off for sets of 3 (200 sets each). The same bits for all layers usually cost
2 to 5 times the least. Sums over the bits spent so far find the least exactly.

**size**: each storage counts once, whoever shows it, with all its buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil
from typing import Any

import numpy as np

from gpulab.checks.builders import prediction
from gpulab.checks.evidence import AnsweredCases, LaunchTrace
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Shape, Sizes

LAB = "13"
CHUNK = 256  # columns whose packed weights a warp reads at once: 32 lanes with 8 codes each
GROUP = 64  # columns that share a scale in `multiply`
BLOCK_ROWS, THREADS = 32, 256

Numbers = np.random.Generator


def _cases(*names: str) -> tuple[Case, ...]:
    return tuple(Case(name, {"what": name}) for name in names)


def _floats(values: np.ndarray) -> list[Any]:
    return list(values.tolist())


# ---------------------------------------------------------------- questions


def clear(values: np.ndarray, bits: int) -> np.ndarray:
    """Values moved so that nothing lies where two codes are equally near: there a last bit would decide.

    Along the last axis, whose smallest and largest set the grid.
    """
    x = np.array(values, dtype=np.float64)
    for _ in range(100):
        low = np.minimum(x.min(axis=-1, keepdims=True), 0)
        high = np.maximum(x.max(axis=-1, keepdims=True), 0)
        scale = (high - low) / (2**bits - 1)
        scale[scale == 0] = 1
        unclear_zero = np.abs(np.abs(-low / scale % 1) - 0.5) < 1e-3
        unclear = (np.abs(x / scale % 1 - 0.5) < 1e-3) & ((x != low) & (x != high) | unclear_zero)
        edges = (x == low) & unclear_zero
        if not (unclear | edges).any():
            return x
        x = np.where(unclear | edges, 0.987 * x, x)
    raise ValueError("no clear values were found")


def affine_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    match sizes["what"]:
        case "easy numbers":
            return [([-1.0, -0.3, 0.0, 0.9, 3.0], 8), ([-1.0, -0.45, 0.1, 0.5], 2), ([-1.5, 0.3, 1.5], 2)]
        case "one sign":
            x = np.abs(numbers.standard_normal((2, 12))) + 2
            return [(_floats(clear(row * sign, 4)), 4) for row, sign in zip(x, (1, -1), strict=True)]
        case "zeros":
            return [([0.0] * 5, 8), ([0.0], 3)]
        case "one number":
            return [([2.5], 4), ([-0.125], 8)]
        case _:
            return [
                (_floats(clear(numbers.standard_normal(24) * 10.0 ** numbers.integers(-4, 4), bits)), bits)
                for bits in (2, 3, 4, 8, 8, 4)
            ]


GROUPS: dict[str, Callable[[int, int], int]] = {
    "one scale for 4 × 32": lambda rows, columns: rows * columns,
    "a scale per row": lambda rows, columns: columns,
    "groups of 8": lambda rows, columns: 8,
    "groups of 16": lambda rows, columns: 16,
}


def grouped_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    rows, columns = 4, 32
    group = GROUPS[str(sizes["what"])](rows, columns)
    w = numbers.standard_normal((rows, columns)) * 2.0 ** numbers.integers(-3, 3, (rows, 1))
    return [
        (_floats(clear(w.reshape(-1, group), bits).reshape(rows, columns)), bits, group) for bits in (2, 3, 4)
    ]


def clip_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    normal = numbers.standard_normal(1500)
    heavy = numbers.standard_t(3, 1500)
    far = np.concatenate([numbers.standard_normal(1490), numbers.uniform(25, 60, 10)])
    match sizes["what"]:
        case "normal":
            return [(_floats(normal), 4), (_floats(1e-4 * normal), 3)]
        case "a few far out":
            return [(_floats(far), 4), (_floats(far), 8)]
        case "one magnitude":
            return [([0.5, -0.5, 0.5], 4)]
        case _:
            return [(_floats(normal), 4), (_floats(heavy), 3), (_floats(far), 8), (_floats(normal), 8)]


ALLOCATE_BITS = (2, 3, 4, 8)


def allocate_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """Layers whose errors fall with the square of the step, more or less, and a budget."""
    found, layers = [], int(sizes["layers"])
    for _ in range(20 if layers < 10 else 2):
        weights = 1024 * numbers.choice([1, 2, 4, 8, 16], layers)
        sensitivity = np.exp(numbers.normal(0, 1.5, layers))
        noise = np.exp(numbers.normal(0, 0.3, (layers, len(ALLOCATE_BITS))))
        errors = sensitivity[:, None] * 4.0 ** -np.array(ALLOCATE_BITS) * noise
        budget = int(weights.sum() * numbers.uniform(2.3, 4.5)) // 1024 * 1024
        found.append((weights.tolist(), errors.round(9).tolist(), budget))
    return found


def fake_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    gradients = _floats(numbers.standard_normal(16))
    match sizes["what"]:
        case "numbers inside the range":
            return [(_floats(_off_ties(numbers, 16, -7, 7) * 0.25), gradients, 0.25, 8, 4)]
        case "numbers beyond the range":
            return [(_floats(_off_ties(numbers, 16, -30, 30) * 0.1), gradients, 0.1, 2, 3)]
        case _:  # what rounds to the last code is inside, what rounds to the one after it is not
            x = np.array([-4.4, -4.6, -5.4, -5.6, 10.4, 10.6, 11.4, 0.0, -5.0, 10.0, 11.0, -6.0])
            return [(_floats(x * 0.5), gradients[:12], 0.5, 5, 4)]


def _off_ties(numbers: Numbers, count: int, low: int, high: int) -> np.ndarray:
    """Numbers at most 0.4 away from whole ones."""
    return numbers.integers(low, high, count) + numbers.uniform(-0.4, 0.4, count)


def activations(numbers: Numbers, rows: int, channels: int, noise: float = 0.3) -> np.ndarray:
    """(rows, channels): a quarter as many sources as channels, mixed, and noise; so channels go together."""
    sources = channels // 4
    mix = numbers.standard_normal((sources, channels)) / np.sqrt(sources)
    values: np.ndarray = numbers.standard_normal((rows, sources)) @ mix
    values += noise * numbers.standard_normal((rows, channels))
    return values


def smooth_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    x, w = activations(numbers, 32, 64), numbers.standard_normal((48, 64)) / 6
    large = numbers.choice(64, 3, replace=False)
    match sizes["what"]:
        case "no outliers":
            pass
        case "weights made up for it":
            x[:, large] *= 50
            w[:, large] /= 50
        case "a silent channel":
            x[:, large] *= 50
            silent = [c for c in range(64) if c not in large]
            x[:, silent[0]] = 0
            w[:, silent[1]] = 0
        case _:
            x[:, large] *= 50
    return [(_floats(x), _floats(w))]


def gptq_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    rows, columns, bits = (int(sizes[name]) for name in ("rows", "columns", "bits"))
    x = activations(numbers, 4 * columns, columns)
    if sizes.get("dead"):  # channels that are always 0: the matrix has no inverse
        x[:, numbers.choice(columns, 3, replace=False)] = 0
    w = clear(numbers.standard_normal((rows, columns)), bits)
    low, high = np.minimum(w.min(axis=1), 0), np.maximum(w.max(axis=1), 0)
    scales = (high - low) / (2**bits - 1)
    zeros = np.round(-low / scales).astype(int)
    return [(_floats(w), _floats(x.T @ x), _floats(scales), zeros.tolist(), bits)]


def awq_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    x, w = activations(numbers, 96, 96), numbers.standard_normal((32, 96))
    if sizes["what"] == "no outliers":
        return [(_floats(w), _floats(x), 4)]
    large = numbers.choice(96, 2, replace=False)
    x[:, large] *= 24 * np.abs(x).mean() / np.abs(x[:, large]).mean(axis=0)
    if sizes["what"] == "a silent channel":
        x[:, next(c for c in range(96) if c not in large)] = 0
    return [(_floats(w), _floats(x), 3)]


def size_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """Entries of a state: [name, shape, dtype, number of its storage]."""
    wide, tall = (int(n) for n in numbers.integers(2, 9, 2) * 8)
    match sizes["what"]:
        case "a plain model":
            return [([["a.weight", [tall, wide], "float32", 0], ["a.bias", [tall], "float32", 1]],)]
        case "tied weights":
            entries: list[Any] = [
                ["embed.weight", [tall, wide], "float16", 4],
                ["norm.weight", [wide], "float32", 2],
            ]
            return [([*entries, ["head.weight", [tall, wide], "float16", 4]],)]
        case "nothing":
            return [([],), ([["step", [], "int32", 0]],)]
        case _:
            return [
                (
                    [
                        ["embed.weight", [26, wide], "bfloat16", 9],
                        ["up.packed", [tall, wide // 2], "uint8", 0],
                        ["up.scales", [tall, wide // 8], "float16", 1],
                        ["up.zeros", [tall, wide // 8], "int8", 7],
                        ["mask", [wide, wide], "bool", 3],
                        ["head.weight", [26, wide], "bfloat16", 9],
                    ],
                )
            ]


# ---------------------------------------------------------------- a kernel


def multiply_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    rows, columns = int(sizes["rows"]), int(sizes["columns"])
    return (
        Array("packed", (rows, columns // 8), "uint32", fill=_words),
        Array("scales", (rows, columns // GROUP), fill="uniform"),
        Array("x", (columns,)),
        Array("out", (rows,), role="out"),
    )


def _words(numbers: Numbers, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    return numbers.integers(0, 1 << 32, shape, dtype=np.uint32)


def multiply_shape(sizes: Sizes) -> Shape:
    return Shape((max(1, ceil(int(sizes["rows"]) / BLOCK_ROWS)),), (THREADS,))


def _matrix(rows: int, columns: int) -> Case:
    return Case(f"{rows} × {columns:,}", {"rows": rows, "columns": columns})


def gptq_case(rows: int, columns: int, bits: int, dead: int = 0) -> Case:
    name = f"{rows} × {columns}, {bits} bits" + (", silent channels" if dead else "")
    return Case(name, {"rows": rows, "columns": columns, "bits": bits, "dead": dead})


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="quant.affine",
        lab=LAB,
        evidence=AnsweredCases(questions=affine_questions),
        correct_points=3,
        cases=_cases("easy numbers", "numbers", "one sign", "zeros", "one number"),
        rtol=1e-9,
        hints=(
            "The range starts at the smallest value or at 0, whichever is lower. It ends at the largest "
            "value or at 0, whichever is higher.",
            "2^bits codes have 2^bits − 1 steps between them. The zero point is the code of 0: "
            "`round(-low / scale)`.",
            "The two roundings together can lead to one more than the last code, so keep every code within 0 "
            "and 2^bits − 1. If all values are 0, the range is empty, and the scale is 1.",
        ),
        section="1 · Integers for reals",
    ),
    Exercise(
        name="quant.grouped",
        lab=LAB,
        evidence=AnsweredCases(questions=grouped_questions),
        correct_points=2,
        cases=_cases(*GROUPS),
        rtol=1e-9,
        atol=1e-12,
        hints=(
            "Put all rows one after the other, and cut the result into pieces of `group` numbers. In NumPy "
            "this is `reshape(-1, group)`.",
            "Each piece has its own scale and zero point, and `affine` gives both. Restore with "
            "`scale * (code - zero)`.",
            "Besides the codes a group has 16 + 16 bits, which its `group` numbers share.",
        ),
        section="2 · Which numbers share a scale",
    ),
    Exercise(
        name="quant.clip",
        lab=LAB,
        evidence=AnsweredCases(questions=clip_questions, measured=True),
        correct_points=1,
        cases=_cases("one magnitude", "normal", "a few far out", "all shapes"),
        budgets=(
            Budget(
                "error over the best",
                1.03,
                3,
                "error",
                naive=1.5,
                unit="times the least",
                why="at the worst of four sets of values",
                advice="Compare the errors of several limits between 0 and the largest magnitude, on these "
                "values and with the codes −(2^(bits − 1) − 1) … 2^(bits − 1) − 1. How far is yours from the "
                "best?",
                case=EVERY,
            ),
        ),
        hints=(
            "Write the round trip first: scale = limit / (2^(bits − 1) − 1), divide, round, cut, multiply by "
            "the scale. Then compute the mean square error of one limit.",
            "Try many limits between 0 and the largest magnitude, and keep the best.",
            "A hundred limits, evenly spaced up to the largest magnitude, are enough.",
        ),
        section="3 · Calibration",
    ),
    Exercise(
        name="quant.fake",
        lab=LAB,
        evidence=AnsweredCases(questions=fake_questions),
        correct_points=2,
        cases=_cases("numbers inside the range", "numbers beyond the range", "the edges"),
        rtol=1e-9,
        atol=1e-12,
        hints=(
            "The first list is the round trip of section 1, with the given scale and zero point.",
            "For the gradient, act as if there were no rounding. But a value that was cut stays the same "
            "when it changes a little, so its gradient is 0.",
            "A gradient passes where `round(value / scale) + zero` is from 0 to 2^bits − 1, both included. "
            "Elsewhere it is 0.",
        ),
        section="4 · Training with rounded weights",
    ),
    Exercise(
        name="quant.smooth",
        lab=LAB,
        evidence=AnsweredCases(questions=smooth_questions, measured=True),
        correct_points=1,
        cases=_cases("no outliers", "weights made up for it", "a silent channel", "outliers"),
        budgets=(
            Budget(
                "error over none",
                0.15,
                2,
                "error",
                naive=1,
                unit="times that without factors",
                why="three channels of 64 are 50 times as large",
                advice="After your factors are applied, what is the largest magnitude of each channel, in "
                "the activations and in the weights?",
            ),
        ),
        hints=(
            "A channel is a column of both matrices. Take the largest magnitude of each column of "
            "`activations` and of `weights`.",
            "If the factor were the activations' largest magnitude, all the trouble would move into the "
            "weights. Exponents of ½ share it.",
            "Use (largest of x)^½ / (largest of w)^½. Where one of the two is 0, use 1.",
        ),
        section="5 · Outliers",
    ),
    Exercise(
        name="quant.gptq",
        lab=LAB,
        evidence=AnsweredCases(questions=gptq_questions, measured=True),
        correct_points=2,
        cases=(
            gptq_case(2, 8, 4),
            gptq_case(4, 32, 2),
            gptq_case(4, 32, 3, dead=1),
            gptq_case(8, 128, 3),
        ),
        budgets=(
            Budget(
                "error over nearest",
                0.5,
                4,
                "error",
                naive=1,
                unit="times that of rounding to nearest",
                why="at 3.25 bits",
                advice="If this is near 1: do the columns behind a rounded one move at all (is U upper "
                "triangular)? If it is above 1, worse than rounding to nearest: do they move in the right "
                "direction (the sign)? Otherwise: is each column rounded as it is after all moves before?",
            ),
        ),
        hints=(
            "Go through the columns from the left. Round column j as it is *now*. Its error is its value "
            "just before rounding minus its restored value.",
            "U is upper triangular, and UᵀU is the inverse of the Hessian: `np.linalg.cholesky(inverse).T`. "
            "Divide the error by U[j, j], and subtract it times U[j, j + 1:] from the columns behind.",
            "Before you invert, add 1 % of the mean of the diagonal to the diagonal, because with channels "
            "that are always 0 there is no inverse. `np.outer` gives the update of all rows at once.",
        ),
        section="6 · GPTQ: errors that cancel",
    ),
    Exercise(
        name="quant.awq",
        lab=LAB,
        evidence=AnsweredCases(questions=awq_questions, measured=True),
        correct_points=1,
        cases=_cases("no outliers", "a silent channel", "outliers"),
        budgets=(
            Budget(
                "error over none",
                0.5,
                2,
                "error",
                naive=1,
                unit="times that without factors",
                why="two channels of 96 are 24 times as large",
                advice="Which exponent did you use? Compare the errors of several. If this is far above 1: a "
                "column with large activations must be made larger before it is rounded.",
            ),
        ),
        hints=(
            "Large activations multiply the errors of their weights. Which weights should be rounded more "
            "finely?",
            "The factors are the mean magnitude of each channel of the activations, to the power α. α = 0 "
            "changes nothing, and α = 1 is too much.",
            "For each α of 0, 0.05, … 1 restore the weights (multiply, round by row, divide), and compare "
            "`activations @ (restored − weights).T`. A channel that is always 0 needs a positive factor as "
            "well.",
        ),
        section="7 · AWQ: a finer grid where it counts",
    ),
    Exercise(
        name="quant.multiply",
        lab=LAB,
        correct_points=2,
        cases=tuple(
            _matrix(*shape) for shape in ((32, 256), (1, 2048), (40, 512), (0, 256), (33, 768), (64, 1024))
        ),
        evidence=LaunchTrace(arguments=multiply_arguments, shape=multiply_shape),
        budgets=(
            Budget(
                "global_load_sectors",
                lambda sizes: 24 * int(sizes["rows"]),
                4,
                "load sectors",
                naive=lambda sizes: 176 * int(sizes["rows"]),
                why="24 a row: 16 of weights, 2 of scales, and x shared by 32 rows",
                advice="Which array causes most of the sectors, and how often is each of its elements read?",
            ),
        ),
        hints=(
            "A warp takes one row at a time, four in all. Lane l reads word `32 * chunk + l`. That is all "
            "the traffic of the weights.",
            "x is the same for all rows. So the block copies it to shared memory once, and a barrier "
            "follows. A row has at most 32 scales: lane l reads scale l once, and `cuda.shfl_sync` passes "
            "it to all lanes.",
            "Code j of lane l in chunk c is column 256c + 32j + l. Its group is 4c + j // 2, which is the "
            "same for all lanes. At the end add up over the lanes with `cuda.shfl_down_sync`.",
        ),
        section="8 · Four bits in a kernel",
        rtol=1e-4,
        atol=1e-3,
    ),
    Exercise(
        name="quant.allocate",
        lab=LAB,
        evidence=AnsweredCases(questions=allocate_questions, measured=True),
        correct_points=1,
        cases=tuple(Case(f"{n} layers", {"layers": n}) for n in (4, 12, 32)),
        budgets=(
            Budget(
                "error over the best",
                1.02,
                3,
                "error",
                naive=1.5,
                unit="times the least",
                why="sums over the bits spent so far find the least",
                advice="The best step now may leave bits over that nobody can use. Keep the best choice for "
                "each number of bits spent, layer by layer.",
                case=EVERY,
            ),
        ),
        hints=(
            "Sizes are multiples of 1,024, so there are not many different sums of bits, however many "
            "choices there are.",
            "Go through the layers. For each number of bits spent so far, remember only the choice with the "
            "least error.",
            "A dictionary from bits spent to (error, choice) starts as {0: (0, [])}. For each layer make a "
            "new one from all entries and the four choices.",
        ),
        section="10 · What is shipped",
    ),
    Exercise(
        name="quant.size",
        lab=LAB,
        evidence=AnsweredCases(questions=size_questions),
        correct_points=2,
        cases=_cases("a plain model", "tied weights", "nothing", "a quantised model"),
        detective=True,
        hints=(
            "List the names that the report counts, and the names in the state. Which are missing?",
            "The bytes of an entry are its elements times the bytes per element. An empty shape is one "
            "element.",
            "Two entries with the same storage number are the same memory, so count them once.",
        ),
        section="Detective · The bytes that were not there",
    ),
)


_prediction = partial(prediction, "quant", LAB)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "trits",
        "Bits per ternary weight if five are in a byte",
        "bits",
        reason="8 / 5. The least possible is log₂ 3 = 1.58.",
    ),
    _prediction(
        "zero_point",
        "Zero point of values from −1 to 3 in 8 bits",
        "",
        64,
        "The scale is 4/255, and 1 / (4/255) = 63.75, which is rounded to a whole code.",
    ),
    _prediction(
        "bits",
        "Bits per weight of 3-bit codes, 128 to a group",
        "bits",
        3.25,
        "Each weight has 3 bits and a share of two 16-bit numbers: 3 + 32/128.",
    ),
    _prediction(
        "limit",
        "Best limit for normal numbers in 4 bits",
        "standard deviations",
        None,
        "A lower limit makes all steps finer, but it cuts a few numbers. With 15 codes the finer steps are "
        "worth it far below the largest of 1,500 numbers, which is above 3.",
        0.1,
    ),
    _prediction(
        "codes_left",
        "Different 8-bit codes that a channel can use at most when another is 50 times as large",
        "codes",
        7,
        "127/50 = 2.54, which is rounded to 3, so the codes are −3 … 3. Most of the channel's numbers are "
        "smaller and have codes from −2 to 2.",
    ),
    _prediction(
        "gptq_error",
        "Error of GPTQ over that of rounding to nearest, in this layer at 3 bits",
        "",
        None,
        "A quarter of the directions hold 90 % of the inputs. GPTQ pushes errors into the other directions, "
        "where they cost little.",
        0.3,
    ),
    _prediction(
        "kernel_bytes",
        "How many times fewer bytes than in FP16 the weights of `multiply` take",
        "×",
        32 / 9,
        "4 bits and a share of a 32-bit scale for 64 weights are 4.5 bits, and 16/4.5 = 3.56.",
        0.02,
    ),
)
