"""Lab 24, part B: what its four exercises ask, all kernels on the B200.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| tensor.memory | host code | Tensor Memory, tcgen05 | copies | – | 2 a step | 5 |
| | | | Tensor Memory | – | 4·m·n read | |
| | | | products | – | 1 for 16 of k | |
| | | | instructions | m·n·k/32 | m·n·k/128 | |
| tensor.pair | host code | two blocks, one product | bytes in | 384·2·k | 320·2·k a pair | 5 |
| | | | products | – | 1 for 16 of k and pair | |
| | | | instructions | – | as tensor.memory | |
| tensor.scaled | host code, NVFP4 | block scales | products | – | 1 for 64 of k | 5 |
| | | | bytes in | – | 144·k a tile | |
| | | | instructions | – | as tensor.memory | |
| tensor.order | order(rows, cols, blocks) | persistent blocks, waves | waves | – | ⌈tiles / blocks⌉ | 4 |
| | | | strips | row by row | 1.2 × squares | |

Derivations:

**memory**: a block makes 128 × 64 of C in 64 columns of Tensor Memory; a product is 128 × 64 × 16. Every
sum is read from Tensor Memory once. A product can be asked for and never be used, so the first budget limits
instructions: the float32 lanes need at least m·n·k / 32 of them, and tensor cores about a fortieth of that.

**pair**: two blocks make 256 × 64. Each copies its 128 rows of A and half of the 64 rows of B: 2 · (128 +
32) · k · 2 bytes for the two. Alone, each would need all of B: 2 · (128 + 64) · k · 2.

**scaled**: a tile is 128 × 128, and a number of 4 bits is half a byte: 128 · k / 2 bytes of A and as many
of B, and a byte of scales for 16 numbers: 2 · 128 · k / 16. That is 128·k + 16·k = 144·k.

**order**: with P blocks at work at a time, a wave is P tiles. A tile needs a strip of A for its row and one
of B for its column; in a wave those that several tiles share are read once (from L2). Tiles of one row
after the other need about P / cols rows and all columns, a square of tiles 2·√P strips.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from gpulab.checks.builders import count, prediction
from gpulab.checks.evidence import AnsweredCases, LaunchTrace
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Sizes
from gpulab.content.pipelines import lanes_budget

from .hopper import LAB, copies_budget, halves, shape

GPU = "B200"
ROWS, COLUMNS, STEP = 128, 64, 64  # a tile of C of one block, and halves of k in a step
SCALED = 128  # rows and columns of a tile of tensor.scaled
SCALED_STEP = 256  # numbers of 4 bits of k in a step: rows of 128 bytes


def tiles(sizes: Sizes) -> int:
    return count(sizes, "m") * count(sizes, "n") // (ROWS * COLUMNS)


def pair_bytes(rows_of_b: int, sizes: Sizes) -> int:
    """Bytes that are copied in if each of two blocks copies `rows_of_b` rows of B."""
    pairs = tiles(sizes) // 2
    return pairs * 2 * (ROWS + rows_of_b) * count(sizes, "k") * 2


def scaled_tiles(sizes: Sizes) -> int:
    return count(sizes, "m") * count(sizes, "n") // SCALED**2


def four_bits(sizes: Sizes) -> tuple[Array, ...]:
    """NVFP4: two numbers of e2m1 in a byte, and a scale of e4m3 for 16 of them, in tiles of 128 rows × 4."""
    m, n, k = (count(sizes, name) for name in "mnk")
    return (
        Array("a", (m, k // 2), "uint8", fill="integers:0:256"),
        Array("b", (n, k // 2), "uint8", fill="integers:0:256"),
        Array("scales_a", (m * k // 16,), "uint8", fill="integers:48:64"),
        Array("scales_b", (n * k // 16,), "uint8", fill="integers:48:64"),
        Array("c", (m, n), role="out"),
    )


def grid(rows: int, cols: int, blocks: int) -> Case:
    return Case(f"{rows} × {cols} on {blocks}", {"rows": rows, "cols": cols, "blocks": blocks})


def order_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    return [tuple(count(sizes, name) for name in ("rows", "cols", "blocks"))]


def least_waves(sizes: Sizes) -> int:
    return math.ceil(count(sizes, "rows") * count(sizes, "cols") / count(sizes, "blocks"))


def few_strips(sizes: Sizes) -> int:
    """A square of tiles in each wave, and a fifth more."""
    return math.ceil(1.2 * least_waves(sizes) * 2 * math.sqrt(count(sizes, "blocks")))


def row_by_row(sizes: Sizes) -> int:
    """The strips of all waves if the tiles are taken row by row."""
    rows, cols, blocks = (count(sizes, name) for name in ("rows", "cols", "blocks"))
    found = 0
    for first in range(0, rows * cols, blocks):
        wave = range(first, min(first + blocks, rows * cols))
        found += len({tile // cols for tile in wave}) + len({tile % cols for tile in wave})
    return found


def _products(points: float, k: int, of: Any, why: str) -> Budget:
    return Budget(
        "tensor_products",
        lambda sizes: of(sizes) * count(sizes, "k") // k,
        points,
        "products",
        sense="==",
        why=why,
        advice="How many threads issue a product? With no product at all, the tensor cores do nothing.",
        case=EVERY,
    )


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="tensor.memory",
        lab=LAB,
        gpu=GPU,
        correct_points=2,
        evidence=LaunchTrace(arguments=halves, face="cupy"),
        cases=tuple(
            shape(*each) for each in ((128, 64, 128), (128, 64, 64), (256, 64, 192), (256, 128, 256))
        ),
        rtol=1e-3,
        atol=2e-2,
        budgets=(
            lanes_budget(0.5),
            _products(1.5, 16, tiles, "one for 16 of k"),
            copies_budget(0.5, lambda sizes: 2 * tiles(sizes) * count(sizes, "k") // STEP),
            Budget(
                "tensor_memory_load_bytes",
                lambda sizes: 4 * count(sizes, "m") * count(sizes, "n"),
                0.5,
                "bytes read from Tensor Memory",
                why="each sum once",
                advice="That is {times} × as many. Which sums are read before they are complete?",
                case=EVERY,
            ),
        ),
        hints=(
            "One thread does everything in the loop: expect, two copies, wait for `full`, four `multiply`, "
            "`tcgen05_commit` to `read`, wait for `read`. All other threads go straight to the end.",
            "After the loop the same thread commits to `over`, and all threads wait there for parity 0. If "
            "they waited in every step, a slow one could miss a phase.",
            "Warp w reads its 32 lanes at `sums + (32 * w << 16)`: thread t gets row t of the tile. All "
            "threads meet before the first warp frees the columns.",
        ),
        section="6 · Sums with a memory of their own",
    ),
    Exercise(
        name="tensor.pair",
        lab=LAB,
        gpu=GPU,
        correct_points=1.5,
        evidence=LaunchTrace(arguments=halves, face="cupy"),
        cases=tuple(
            shape(*each) for each in ((256, 64, 128), (256, 64, 64), (512, 64, 192), (256, 128, 256))
        ),
        rtol=1e-3,
        atol=2e-2,
        budgets=(
            lanes_budget(0.25),
            _products(0.75, 16, lambda sizes: tiles(sizes) // 2, "one for 16 of k and pair"),
            Budget(
                "bulk_load_bytes",
                partial(pair_bytes, COLUMNS // 2),
                2.5,
                "bytes copied in",
                naive=partial(pair_bytes, COLUMNS),
                why="half of B for each block",
                advice="The tensor cores of a pair read both blocks' shared memory. Which rows of B does "
                "each block need to bring?",
                case=EVERY,
            ),
        ),
        hints=(
            "The map of B has boxes of 32 rows; the block of rank r brings the rows from col + 32 · r on.",
            "Both blocks wait for their own copies; then the cluster meets, and thread 0 of the block of "
            "rank 0 issues the products for both.",
            "`tcgen05_commit_multicast` with the mask 3 arrives at `read` of both blocks, so that both may "
            "copy the next tiles. Allocation and freeing are for `cta_group_2` too.",
        ),
        section="7 · Two blocks, one product",
    ),
    Exercise(
        name="tensor.scaled",
        lab=LAB,
        gpu=GPU,
        correct_points=2,
        evidence=LaunchTrace(arguments=four_bits, face="cupy"),
        cases=tuple(shape(*each) for each in ((128, 128, 512), (128, 128, 256), (256, 128, 768))),
        rtol=1e-4,
        atol=1e-3,
        budgets=(
            lanes_budget(0.5),
            _products(1.5, 64, scaled_tiles, "one for 64 of k"),
            Budget(
                "bulk_load_bytes",
                lambda sizes: 144 * scaled_tiles(sizes) * count(sizes, "k"),
                1,
                "bytes copied in",
                why="numbers and scales, once",
                advice="That is {times} × as many. Is a tile of scales copied more than once?",
                case=EVERY,
            ),
        ),
        hints=(
            "A step is 256 of k: a tile of 128 × 128 bytes of each operand and 2,048 bytes of scales of "
            "each, one after the other in `scales_a`: those of step s of tile row r begin at (r · steps + "
            "s) · 2,048.",
            "The 512 bytes for 64 of k fill four columns: `scales_to(columns + 4 * i, part)`. Those of B go"
            " into other columns, for example 16 further on.",
            "The i-th product of a step takes `descriptor(tile) + 2 * i` of both operands and the scales in "
            "columns + 4 · i and columns + 16 + 4 · i.",
        ),
        section="8 · Four bits and their scales",
    ),
    Exercise(
        name="tensor.order",
        lab=LAB,
        correct_points=1,
        evidence=AnsweredCases(questions=order_questions, measured=True),
        cases=tuple(
            grid(*each) for each in ((8, 8, 16), (1, 5, 4), (16, 32, 64), (24, 24, 148), (32, 48, 148))
        ),
        budgets=(
            Budget(
                "waves",
                least_waves,
                1,
                "waves",
                why="tiles / blocks, rounded up",
                advice="Some block has more tiles than others need to have.",
                case=EVERY,
            ),
            Budget(
                "strips",
                few_strips,
                2,
                "strips",
                naive=row_by_row,
                why="each wave nearly a square",
                advice="Which rows and columns of tiles does a wave touch? A square of tiles touches fewest.",
            ),
        ),
        hints=(
            "Make one list of all tiles first, and deal it out: block b gets the tiles b, b + blocks, … of "
            "it.",
            "A wave is then `blocks` neighbours in your list. Take the tiles in bands of several rows, "
            "column by column within a band.",
            "A band of about √blocks rows makes a wave nearly a square.",
        ),
        section="9 · Blocks that stay",
    ),
)


_prediction = partial(prediction, "", LAB)

PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "tensor.columns",
        "Columns of Tensor Memory for sums of 128 × 256 in float32",
        "columns",
        256,
        "A column has 128 lanes of 32 bits, so each column of the tile takes one.",
    ),
    _prediction(
        "tensor.halved",
        "Bytes of B that a pair of blocks reads for 64 columns and k = 1,024 in float16",
        "bytes",
        131072,
        "64 · 1,024 · 2: each of the two brings half of it.",
    ),
    _prediction(
        "tensor.per_number",
        "Bits of memory for each number of NVFP4, its block scale included",
        "bits",
        4.5,
        "4 bits, and 8 bits of scale for 16 numbers.",
    ),
    _prediction(
        "tensor.tail",
        "Percentage of the block slots of 6 waves that stay empty, for 800 tiles on 148 blocks",
        "%",
        9.9,
        "6 · 148 = 888 slots for 800 tiles: 88 of 888 are empty.",
        0.02,
    ),
)
