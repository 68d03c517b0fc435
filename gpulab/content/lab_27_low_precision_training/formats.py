"""Lab 27, part A: what its five exercises ask.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| cast | cast(tensors, length, recipe), a detective's mend | delayed, current scale | answers | – | – | 5 |
| tiles | tiles(x, rows, columns, powers) → codes, scales | blocks, scales rounded up | error | 20 | 1 | 5 |
| | | | largest off | 12.5 % | 5.9 % | |
| | | | bytes | 5 · n | n + scales | |
| stored | stored(…) → bytes | which blocks survive a transpose | answers | – | – | 3 |
| four | four(x, draws) → codes, scales, scale | NVFP4, rounding by chance | bias | 11 % | 0 | 6 |
| | | | error | 3 | 1 | |
| rotate | rotate(x, dy, signs, matrix) | tiles of 16 tokens | matrix FLOPs | 2·t²·(a+b) | 32·t·(a+b) | 5 |
| | | | launches | 2·t/16 | 5 | |

Derivations:

**cast**: scale = 448 / amax. A delayed scale knows the amaxes of the last steps, so a tensor that is r times
as large as all of them reaches 448 · r and must be cut off. An amax that is taken *behind* the cast never
exceeds 448 / scale: the scale can then rise but never fall, and a tensor that has grown stays cut off.

**tiles**: E4M3 has 3 mantissa bits; the error of a number near the block's largest is at most 2⁻⁴ of it, and
the mean over a block of normal numbers is far below. Blocks of the test differ by powers from 2⁻³⁰ to 1.
With one scale for all, blocks below 2⁻¹⁸ of the largest become zero (E4M3 has 18 powers of two): their
error is 1. An MX scale that is rounded *down*, as 2^(⌊log2 amax⌋ − 8), leaves up to 511 for E4M3's 448:
12.5 % off at the largest, where rounding is off by 1/17 = 5.9 % at most. Rounded up, 2^⌈log2(amax / 448)⌉,
nothing is cut off (A. Mishra et al., 2025).

**stored**: a product reads the blocks of both operands along the axis that it sums over. The activations x
(tokens × width) are summed over the width in the forward pass and over the tokens in the gradient of the
weights. Square blocks serve both; flat ones are needed twice, quantised along each axis.
4,096 × 4,096 in blocks of 1 × 32: 2 · (2²⁴ + 2¹⁹) B = 34.6 MB, which is more than BF16's 33.6 MB.

**four**: E2M1 holds 0, 0.5, 1, 1.5, 2, 3, 4, 6. A block's largest number comes to 6, so 0.3 of it is 1.8,
between 1.5 and 2: to the nearest 2, which is 11 % too much every time. Up with a probability of 0.6 it is
right on average. The mean of 3,840 draws is off by 0.5 · √0.24 / √3,840 / 1.8 = 0.22 % (one standard
deviation).
Without the tensor's own scale a block's scale of E4M3 must itself hold amax / 6: at 10⁻⁶ it becomes zero.

**rotate**: t tokens in t / 16 tiles, each multiplied by a matrix of 16 × 16: 2 · 16 · t · (a + b) FLOPs. A
block-diagonal matrix of t × t gives the same at 2 · t² · (a + b). The product of both is 2 · t · a · b more.
A loop over tiles launches two or three times per tile. The tiles of both operands lie behind one another in
one tensor (t/16, 16, a + b): one product rotates both.
"""

from __future__ import annotations

from functools import partial
from math import ceil
from typing import Any

import numpy as np

from gpulab.checks.builders import answered, prediction
from gpulab.checks.evidence import Artefacts, TensorGraph
from gpulab.checks.operators import COMMON
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Sizes
from gpulab.subjects import numerics

LAB = "27"
TOPIC = "bits"
RECIPES = ("delayed", "current")
LENGTH_OF_ROW = 6  # numbers of a tensor of `cast`
TILE = 16  # tokens that a Hadamard matrix mixes

Numbers = np.random.Generator
_answered = partial(answered, TOPIC, LAB)


# ---------------------------------------------------------------- questions


def cast_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """One small tensor a step, as a list; the length of the history; the recipe."""
    kind = str(sizes["kind"])
    if kind == "current":
        return [(_tensors(numbers, 2.0 ** numbers.uniform(-12, 12, 8)), 3, "current")]
    levels = {
        "steady": np.ones(8),
        "a jump that stays": np.r_[np.ones(3), 24 * np.ones(6)],
        "one large step": np.r_[1, 1, 40, np.ones(6)],
        "falling": 2.0 ** -np.arange(10.0),
        "zeros": np.array([0, 0, 1, 0, 0, 0, 1]),
    }[kind]
    return [(_tensors(numbers, levels), length, "delayed") for length in (1, 3, 16)]


def _tensors(numbers: Numbers, levels: np.ndarray) -> list[list[float]]:
    return [
        [float(np.float32(v)) for v in level * numbers.standard_normal(LENGTH_OF_ROW)] for level in levels
    ]


def stored_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """Tokens, width, bits of an element, rows and columns of a block, bytes of its scale."""
    tokens, width = (64 * int(k) for k in numbers.integers(1, 80, 2))
    block = {
        "1 × 128": (8, 1, 128, 4),
        "128 × 128": (8, 128, 128, 4),
        "1 × 32": (8, 1, 32, 1),
        "1 × 16 of four bits": (4, 1, 16, 1),
        "16 × 16 of four bits": (4, 16, 16, 1),
    }[str(sizes["kind"])]
    return [(tokens, width, *block), (4096, 7168, *block), (200, 72, *block)]


# ---------------------------------------------------------------- arrays


def uneven(numbers: Numbers, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Normal numbers whose blocks differ by up to 30 powers of two; of several, the last block is zero."""
    r, c = int(sizes["rows"]), int(sizes["columns"])
    grid = ceil(shape[0] / r), ceil(shape[1] / c)
    levels = 2.0 ** numbers.uniform(-30, 0, grid)
    levels.flat[0] = 1.0
    if levels.size > 2:
        levels.flat[-1] = 0.0
    wide = np.kron(levels, np.ones((r, c)))[: shape[0], : shape[1]]
    return wide * numbers.standard_normal(shape)


def tiles_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    return (
        Array("x", (int(sizes["m"]), int(sizes["n"])), fill=uneven),
        Scalar("rows", int(sizes["rows"])),
        Scalar("columns", int(sizes["columns"])),
        Scalar("powers", int(sizes["powers"])),
    )


def tiles_case(m: int, n: int, rows: int, columns: int, powers: int) -> Case:
    scales = "powers of two" if powers else "float32"
    sizes = {"m": m, "n": n, "rows": rows, "columns": columns, "powers": powers}
    return Case(f"{m} × {n} in {rows} × {columns}, {scales}", sizes)


def blocks_of(sizes: Sizes) -> int:
    return ceil(int(sizes["m"]) / int(sizes["rows"])) * ceil(int(sizes["n"]) / int(sizes["columns"]))


HEAD = 64  # bytes for the names and the shapes of what is returned


def tiles_bytes(sizes: Sizes) -> int:
    """A byte for each number, and 1 or 4 for each block."""
    return int(sizes["m"]) * int(sizes["n"]) + blocks_of(sizes) * (1 if sizes["powers"] else 4) + HEAD


def four_input(numbers: Numbers, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Normal numbers of uneven rows; or blocks of equal ones, 0.3 of their largest, which comes first."""
    level = float(sizes["level"])
    if sizes["kind"] == "equal":
        x = np.full(shape, 0.3)
        x[:, ::16] = 1.0
        return level * x
    return level * 2.0 ** numbers.uniform(-6, 0, (shape[0], 1)) * numbers.standard_normal(shape)


def four_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    shape = int(sizes["m"]), int(sizes["n"])
    return Array("x", shape, fill=four_input), Array("draws", shape, fill="uniform")


def four_case(kind: str, level: float, m: int = 64, n: int = 64) -> Case:
    return Case(f"{kind}, near {level:g}, {m} × {n}", {"kind": kind, "level": level, "m": m, "n": n})


def four_bytes(sizes: Sizes) -> int:
    n = int(sizes["m"]) * int(sizes["n"])
    return n // 2 + n // 16 + 4 + HEAD


def signs(numbers: Numbers, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    return numbers.choice([-1.0, 1.0], shape)


def sylvester(numbers: Numbers, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """The Hadamard matrix of 16 × 16, divided by 4, so that it is orthogonal."""
    return numerics.hadamard(np.eye(TILE))


def rotate_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    t, a, b = (int(sizes[key]) for key in ("tokens", "a", "b"))
    return (
        Array("x", (t, a)),
        Array("dy", (t, b)),
        Array("signs", (TILE,), fill=signs),
        Array("matrix", (TILE, TILE), fill=sylvester),
        Array("turned_x", (t, a), role="out"),
        Array("turned_dy", (t, b), role="out"),
        Array("dw", (b, a), role="out"),
    )


def rotate_case(tokens: int, a: int, b: int) -> Case:
    return Case(f"{tokens} tokens, {a} → {b}", {"tokens": tokens, "a": a, "b": b})


def rotate_flops(sizes: Sizes, mixed: int = TILE) -> int:
    """FLOPs of a transform that mixes so many tokens, and of the product of what it gives."""
    t, a, b = (int(sizes[key]) for key in ("tokens", "a", "b"))
    return 2 * mixed * t * (a + b) + 2 * t * a * b


EXERCISES: tuple[Exercise, ...] = (
    _answered(
        "cast",
        5,
        ("current", "steady", "a jump that stays", "one large step", "falling", "zeros"),
        cast_questions,
        (
            'Which numbers decide the scale of step k? With "current" it is the tensor itself, with '
            '"delayed" the largest amax of the last `length` steps before k.',
            "Record the amax of the tensor as it came, before it is cut off: after the cast no number "
            "exceeds 448 / scale, so the history would never learn that the tensor has grown.",
            "Without anything known (the first step), and where the largest known amax is 0, take the "
            "tensor's own amax; where that is 0, too, a scale of 1. Cut x · scale off at ±448, round it with "
            '`numerics.quantize(…, "E4M3")`, divide by the scale.',
        ),
        "Detective · The run that dies at step 400",
        rtol=1e-6,
    ),
    Exercise(
        name="bits.tiles",
        lab=LAB,
        evidence=Artefacts(arguments=tiles_arguments),
        correct_points=1,
        cases=(
            tiles_case(3, 40, 1, 32, 1),
            tiles_case(16, 256, 1, 128, 0),
            tiles_case(200, 300, 128, 128, 0),
            tiles_case(64, 256, 1, 32, 1),
        ),
        budgets=(
            Budget(
                "error",
                1.1,
                1.5,
                "error",
                naive=20,
                unit="× that of the best scales",
                why="a scale for each block that uses E4M3's range",
                advice="Is each block's own largest number brought near 448?",
                case=EVERY,
            ),
            Budget(
                "largest off",
                6.0,
                1,
                "error of the largest",
                naive=12.5,
                unit="%",
                why="E4M3's rounding is at most 1/17 of a number",
                advice="Is some block's largest number beyond 448? Which way did you round a scale that must "
                "be a power of two?",
                case=EVERY,
            ),
            Budget(
                "bytes",
                tiles_bytes,
                1.5,
                "bytes",
                naive=lambda s: 5 * int(s["m"]) * int(s["n"]),
                unit="B",
                why="a byte for a number, one scale for a block",
                advice="Which shape and which type does each returned array have?",
                case=EVERY,
            ),
        ),
        hints=(
            "Pad x with zeros to whole blocks. Then `x.reshape(m // rows, rows, n // columns, columns)` has "
            "a block on axes 1 and 3.",
            "The scale is amax / 448 in float32. As a power of two it is 2^⌈log2(amax / 448)⌉, stored as a "
            "byte with 127 added. A block of zeros may have any scale.",
            "`np.frexp(amax / 448)` gives mantissa and exponent; a mantissa of exactly 0.5 is a power of two "
            'itself. Encode x / scale with `numerics.encode(…, "E4M3", saturate=True)`.',
        ),
        section="3 · A scale for each block",
    ),
    _answered(
        "stored",
        3,
        ("128 × 128", "1 × 128", "1 × 32", "1 × 16 of four bits", "16 × 16 of four bits"),
        stored_questions,
        (
            "Along which axis does the forward product sum, and along which does the gradient of the "
            "weights? Blocks must lie along that axis.",
            "A square block is the same block after a transpose: one copy serves both products. A flat one "
            "must be made twice, as rows × columns on x and as columns × rows on x, which is its transpose.",
            "A copy takes tokens · width · bits / 8 bytes, and ⌈tokens / rows⌉ · ⌈width / columns⌉ scales. "
            "The second copy has rows and columns exchanged.",
        ),
        "4 · One tensor, two products",
    ),
    Exercise(
        name="bits.four",
        lab=LAB,
        evidence=Artefacts(arguments=four_arguments),
        correct_points=1,
        cases=(
            four_case("normal", 1.0, 2, 32),
            four_case("normal", 1e-6),
            four_case("normal", 1e6),
            four_case("equal", 1e-3),
        ),
        budgets=(
            Budget(
                "error",
                1.1,
                1.5,
                "error",
                naive=3,
                unit="× that of the reference",
                why="both levels of scales fit, and nothing is cut off",
                advice="Do the blocks' scales fit E4M3? The largest should be 448. If it is, decode your "
                "codes: the even column is in the low four bits, and each is one of the two neighbours.",
                case=EVERY,
            ),
            Budget(
                "bias",
                1.5,
                2.5,
                "bias",
                unit="% of the mean",
                why="right on average",
                advice="A number between two neighbours must go up with the probability of its place between "
                "them. Where do `draws` enter?",
            ),
            Budget(
                "bytes",
                four_bytes,
                1,
                "bytes",
                naive=lambda s: int(s["m"]) * int(s["n"]) * 9 // 8,
                unit="B",
                why="4.5 bits a number",
                advice="Two codes share a byte; a scale is one byte for 16 numbers.",
                case=EVERY,
            ),
        ),
        hints=(
            "From the top down: scale = amax / (6 · 448) in float32. A block's scale is its amax / 6 / "
            "scale, encoded in E4M3. Then decode that byte again, because the reader does, too.",
            "With v = |x| / (block scale · scale), at most 6: find the neighbours low ≤ v < high in "
            "GRID. Go up where draw < (v − low) / (high − low).",
            '`np.searchsorted(GRID, v, side="right") - 1` is the place of low, which is also its code; the '
            "sign is bit 3. The even column is the low half of the byte. Divide nothing by a scale of zero.",
        ),
        section="6 · Four bits, two levels of scales",
    ),
    Exercise(
        name="bits.rotate",
        lab=LAB,
        evidence=TensorGraph(arguments=rotate_arguments, operators=COMMON),
        correct_points=1,
        cases=(rotate_case(16, 3, 5), rotate_case(48, 8, 24), rotate_case(256, 32, 64)),
        rtol=1e-4,
        atol=1e-4,
        budgets=(
            Budget(
                "matrix_flops",
                rotate_flops,
                2,
                "matrix FLOPs",
                naive=lambda s: rotate_flops(s, int(s["tokens"])),
                unit="FLOP",
                why="each token is mixed with the 15 others of its tile",
                advice="Which shapes have the matrices that you multiply? A block-diagonal one "
                "is mostly zeros.",
                case=EVERY,
            ),
            Budget(
                "launches",
                12,
                2,
                "launches",
                naive=lambda s: 2 * int(s["tokens"]) // TILE,
                unit="launches",
                why="as many for any number of tokens",
                advice="One product can take all tiles at once: give the tensor an axis of tiles.",
                case=EVERY,
            ),
        ),
        hints=(
            "Tokens are axis 0. `x.view(-1, 16, a)` has the tiles on axis 0 and the tokens of a tile "
            "on axis 1.",
            "The signs belong to the tokens of a tile: `matrix * signs` multiplies column j by sign j, which "
            "is the same as multiplying token j first.",
            "`(matrix * signs) @ x.view(-1, 16, a)` mixes all tiles in one product. dw is turned_dy "
            "transposed times turned_x.",
        ),
        section="8 · A rotation that cancels",
    ),
)


_prediction = partial(prediction, TOPIC, LAB)

PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "underflow",
        "Share of a tensor that E4M3 rounds to zero if an outlier is 100,000 times its spread",
        "%",
        None,
        "The outlier comes to 448, the spread to 0.0045. Zero is what lies below 2^-10 = 0.00098, which is "
        "0.22 of the spread: 17 % of normal numbers.",
        0.2,
    ),
    _prediction(
        "margin",
        "Powers of two by which a delayed scale has to be smaller to take a tensor that grew 24 times",
        "",
        5,
        "24 lies between 2^4 and 2^5.",
    ),
    _prediction(
        "nvfp4_bits",
        "Bits per number in NVFP4, scales of blocks included",
        "bits",
        4.5,
        "4 for the number, and 8 for a scale that 16 of them share.",
    ),
    _prediction(
        "bf16_rest",
        "Speed-up of linear layers if four bits are 4 times as fast as BF16 and 15 % stays in BF16",
        "×",
        1 / (0.15 + 0.85 / 4),
        "Amdahl's law: 1 / (0.15 + 0.85 / 4) = 2.76.",
        0.03,
    ),
)
