"""Lab 25, part B: what its five exercises ask, tiles.hopper on the H100 and the others on the A100.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| tiles.gemm | host code in CuTe DSL | copy and MMA atoms | loaded bytes | m·n·k/8 | m·n·k/16 | 6 |
| | | | shared requests | 288 a step | 96 a step | |
| | | | bank conflicts | – | 0 | |
| | | | instructions | m·n·k/32 | m·n·k/128 | |
| tiles.hopper | the same on the H100 | other atoms | instructions | m·n·k/32 | m·n·k/128 | 6 |
| | | | products | – | 1 for 16 of k | |
| | | | copies | – | 2 a step | |
| | | | loads by threads | – | 0 | |
| tiles.softmax | host code in cuTile | a row is a tile | loaded bytes | 8·m·n | 4·m·n | 4 |
| | | | exponentials | – | m·n to m·tile | |
| tiles.attention | host code in cuTile | tiles in a loop | loaded bytes | all pairs | half of them | 5 |
| | | | instructions | n·n·64/32 | half of them | |
| tiles.convert | host code in Gluon | where a layout changes | shared stores | 12·m·n | 4·m·n | 4 |
| | | | sectors | 3·m·n/8 | 2·m·n/8 | |

Derivations:

**gemm**: blocks make 64 × 64 of C, in steps of 64 of k: two tiles of 64 × 64 halves, 16,384 bytes a
step, and m·n·k / 64³ steps: m·n·k / 16 bytes. Without shared memory, four warps as 2 × 2 each load
their halves of both tiles: twice as much. From shared memory each warp needs 32 × 64 halves of both,
8,192 bytes, and `ldmatrix` of four matrices brings 512: 16 a warp, 64 a step. Loads of 32 bits bring
128 bytes: 256 a step. Copying both tiles in takes 16,384 / 512 = 32 besides. A product of m16n8k16
takes one instruction for 2,048 multiply-adds, a multiply-add on the float32 lanes one for 32: a quarter
of m·n·k / 32 instructions leaves room for everything that is no product.

**hopper**: as tensor.tile of lab 24: two copies a step, four products of m64n64k16, each counted by
four warps. Instructions come first: products can be asked for and never be used, beside threads that
multiply. Then come products: the A100's kernel runs here, too, and sends no copy at all.

**softmax**: a tile as wide as the next power of two holds a row, so each number is loaded once and has
one exponential, the padding included. With two passes each number is loaded twice. Rows lie around +200
and −200: without the maximum, exp of them is infinite or 0 in float32.

**attention**: q once, and K and V of tiles up to the diagonal, 2 · 64 · 64 · 2 bytes a pair of tiles. A
pair of tiles on the float32 lanes takes 2 · 64³ / 32 = 16,384 instructions for its multiply-adds; on
tensor cores cuTile needs about 2,900 with its softmax. The budget is half of the former. Every second query
has scores with a standard deviation of 24, and with a thousand of them some are far above 16: weights that
are not taken relative to the largest score do not fit into float16.

**convert**: one change of the layout stores every float to shared memory and loads it again: 4·m·n
bytes stored. Three of them take three times as many. Without any, a warp that loads along rows of x
also stores along them, 16 bytes of a column at a time: half sectors, so twice as many of them. So the count
must be met exactly: a kernel that stores less did not turn the matrix in shared memory.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gpulab.checks.builders import count, prediction
from gpulab.checks.evidence import LaunchTrace
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Sizes
from gpulab.content.pipelines import lanes_budget

LAB = "25"
TILE = 64  # rows and columns of C that a block makes, and halves of k in a step
D = 64  # numbers of a head


def product_case(m: int, n: int, k: int) -> Case:
    return Case(f"{m} × {n} × {k}", {"m": m, "n": n, "k": k})


def matrix_case(m: int, n: int) -> Case:
    return Case(f"{m} × {n}", {"m": m, "n": n})


def tokens_case(n: int) -> Case:
    return Case(f"{n} tokens", {"n": n})


# ---------------------------------------------------------------- arguments


def halves(sizes: Sizes) -> tuple[Array, ...]:
    m, n, k = (count(sizes, name) for name in "mnk")
    return (
        Array("a", (m, k), "float16"),
        Array("b", (n, k), "float16"),
        Array("c", (m, n), role="out"),
    )


def far_from_zero(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Rows around +200 and −200 in turn: exp of such numbers is infinite or 0 in float32."""
    return numbers.standard_normal(shape) + 200 * (-1.0) ** np.arange(shape[0])[:, None]


def rows(sizes: Sizes) -> tuple[Array, ...]:
    m, n = count(sizes, "m"), count(sizes, "n")
    return Array("x", (m, n), fill=far_from_zero), Array("y", (m, n), role="out")


def turned(sizes: Sizes) -> tuple[Array, ...]:
    m, n = count(sizes, "m"), count(sizes, "n")
    return Array("x", (m, n)), Array("y", (n, m), role="out")


def scaled(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Queries whose products with normal keys have a standard deviation of 3 and 24 in turn."""
    deviation = np.where(np.arange(shape[0]) % 2, 24, 3)[:, None]
    return deviation / np.sqrt(shape[-1]) * numbers.standard_normal(shape)


def heads(sizes: Sizes) -> tuple[Array, ...]:
    n = count(sizes, "n")
    return (
        Array("q", (n, D), "float16", fill=scaled),
        Array("k", (n, D), "float16"),
        Array("v", (n, D), "float16"),
        Array("out", (n, D), role="out"),
    )


# ---------------------------------------------------------------- counts


def steps(sizes: Sizes) -> int:
    """Steps of all blocks of a matrix product."""
    return count(sizes, "m") * count(sizes, "n") * count(sizes, "k") // TILE**3


def multiply_adds(sizes: Sizes) -> int:
    """Instructions of warps if each multiply-add of a product ran on the float32 lanes."""
    return steps(sizes) * TILE**3 // 32


def numbers_in(sizes: Sizes) -> int:
    return count(sizes, "m") * count(sizes, "n")


def padded(sizes: Sizes) -> int:
    """Numbers of x, each row filled up to the next power of two."""
    return count(sizes, "m") * (1 << (count(sizes, "n") - 1).bit_length())


def pairs(sizes: Sizes) -> int:
    """Pairs of tiles up to the diagonal."""
    tiles = count(sizes, "n") // TILE
    return tiles * (tiles + 1) // 2


def attention_bytes(sizes: Sizes, visited: int) -> int:
    return 2 * D * count(sizes, "n") + visited * 2 * 2 * TILE * D


def _by_threads(metric: str, label: str) -> Budget:
    return Budget(
        metric,
        0,
        0.75,
        label,
        why="the copy engine brings tiles, the tensor cores read them",
        advice="Which atom still copies through registers?",
        case=EVERY,
    )


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="tiles.gemm",
        lab=LAB,
        correct_points=2,
        evidence=LaunchTrace(arguments=halves, face="cupy"),
        cases=tuple(product_case(*each) for each in ((64, 64, 128), (64, 64, 64), (128, 64, 192))),
        rtol=1e-3,
        atol=2e-2,
        budgets=(
            Budget(
                "global_load_bytes",
                lambda sizes: steps(sizes) * 4 * TILE * TILE,
                1,
                "loaded bytes",
                naive=lambda sizes: steps(sizes) * 8 * TILE * TILE,
                why="each tile once for a block",
                advice="Do several warps load the same elements from global memory?",
                case=EVERY,
            ),
            Budget(
                "shared_requests",
                lambda sizes: 96 * steps(sizes),
                1,
                "requests to shared memory",
                naive=lambda sizes: 288 * steps(sizes),
                why="512 bytes each: copied in, and read by ldmatrix",
                advice="Which atom copies from shared memory to the fragments?",
                case=EVERY,
            ),
            Budget(
                "bank_conflicts",
                0,
                1,
                "bank conflicts",
                sense="==",
                why="rows of 128 bytes, swizzled",
                advice="Which swizzle separates 8 rows of 128 bytes that are read 16 bytes at a time? "
                "Count in "
                "halves.",
                case=EVERY,
            ),
            Budget(
                "instructions",
                lambda sizes: multiply_adds(sizes) // 4,
                1,
                "instructions",
                naive=multiply_adds,
                why="a quarter of what the float32 lanes would need at least",
                advice="Do the tensor cores multiply?",
                case=EVERY,
            ),
        ),
        hints=(
            "In a step: copy both tiles with `move`, commit, wait, synchronise; copy both fragments with "
            "their "
            "ldmatrix copies; `cute.gemm`; synchronise.",
            "A source of `move` has the modes (values, rows, columns, steps): `of_a[None, None, None, k]`. "
            "The fragments of ldmatrix are `left.retile(held_a)`, the sources `left.partition_S(tile_a)`.",
            "The swizzle of rows of 128 bytes and accesses of 16 is (3, 4, 3) in bytes. A half has two "
            "bytes: "
            "one bit less at the base, so (3, 3, 3).",
        ),
        section="7 · Atoms that multiply",
    ),
    Exercise(
        name="tiles.hopper",
        lab=LAB,
        gpu="H100",
        correct_points=2,
        evidence=LaunchTrace(arguments=halves, face="cupy"),
        cases=tuple(product_case(*each) for each in ((64, 64, 128), (64, 64, 64), (128, 64, 192))),
        rtol=1e-3,
        atol=2e-2,
        budgets=(
            lanes_budget(0.25),
            Budget(
                "warpgroup_products",
                lambda sizes: 16 * steps(sizes),
                1.25,
                "products",
                sense="==",
                why="one for 16 of k, counted by each of 4 warps",
                advice="Does the warpgroup's atom multiply each part of a step's tiles once?",
                case=EVERY,
            ),
            Budget(
                "bulk_load_requests",
                lambda sizes: 2 * steps(sizes),
                1,
                "copies",
                sense="==",
                why="one of A and one of B a step",
                advice="How many threads or warps send a copy, and does each step send both?",
                case=EVERY,
            ),
            _by_threads("shared_requests", "requests to shared memory"),
            _by_threads("global_load_requests", "loads from global memory"),
        ),
        hints=(
            "One warp: `cute.arch.elect_one()` expects 16,384 bytes; then both copies with "
            "`tma_bar_ptr=full`. "
            "All threads wait for phase `k % 2`.",
            "fence, four times cute.gemm on `held_a[None, None, i]` and `held_b[None, None, i]`, "
            "commit_group, "
            "wait_group(0), and a barrier before the tiles are copied over.",
            "The first product must not add to what was in the registers. Either fill the sums with 0 and "
            "set `mma.set(warpgroup.Field.ACCUMULATE, True)` before the loop, or set it to False there and "
            "to True behind the first `cute.gemm`.",
        ),
        section="8 · The same loop with other atoms",
    ),
    Exercise(
        name="tiles.softmax",
        lab=LAB,
        correct_points=2,
        evidence=LaunchTrace(arguments=rows, face="cupy"),
        cases=tuple(matrix_case(*each) for each in ((4, 100), (3, 256), (2, 1025), (8, 1024))),
        rtol=1e-4,
        atol=1e-7,
        budgets=(
            Budget(
                "global_load_bytes",
                lambda sizes: 4 * numbers_in(sizes),
                1,
                "loaded bytes",
                naive=lambda sizes: 8 * numbers_in(sizes),
                why="each number once",
                advice="Is a row loaded a second time?",
                case=EVERY,
            ),
            Budget(
                "special_functions",
                numbers_in,
                0.25,
                "exponentials taken",
                sense=">=",
                why="one for each number",
                advice="A polynomial takes more instructions than `ct.exp`. Where does your kernel take the "
                "exponential?",
                case=EVERY,
            ),
            Budget(
                "special_functions",
                lambda sizes: padded(sizes) + count(sizes, "m") * 128,
                0.75,
                "exponentials",
                naive=lambda sizes: 2 * padded(sizes),
                why="one for each number of the tile",
                advice="Is the exponential of a number taken twice?",
                case=EVERY,
            ),
        ),
        hints=(
            "A block loads a tile of shape (1, N) at index (block, 0), N the next power of two.",
            "What lies outside must not change the maximum or the sum: padding_mode=ct.PaddingMode.NEG_INF.",
            "e = ct.exp(row − ct.max(row, axis=1, keepdims=True)); store e / ct.sum(e, axis=1, "
            "keepdims=True). "
            "What lies outside is not stored.",
        ),
        section="9 · Tiles without threads",
    ),
    Exercise(
        name="tiles.attention",
        lab=LAB,
        correct_points=2,
        evidence=LaunchTrace(arguments=heads, face="cupy"),
        cases=tuple(tokens_case(n) for n in (128, 64, 192)),
        rtol=3e-3,
        atol=3e-3,
        budgets=(
            Budget(
                "global_load_bytes",
                lambda sizes: attention_bytes(sizes, pairs(sizes)),
                1.5,
                "loaded bytes",
                naive=lambda sizes: attention_bytes(sizes, (count(sizes, "n") // TILE) ** 2),
                why="q, and K and V up to the diagonal",
                advice="Which tiles of keys does a block of queries need?",
            ),
            Budget(
                "instructions",
                lambda sizes: 8192 * pairs(sizes),
                1.5,
                "instructions",
                naive=lambda sizes: 16384 * pairs(sizes),
                why="half of what the float32 lanes would need",
                advice="Do both products run on tensor cores? `ct.mma` takes float16.",
                case=EVERY,
            ),
        ),
        hints=(
            "Start with top = −∞ as (64, 1), s = 0 as (64, 1) and total = 0 as (64, D), all float32. The "
            "loop is "
            "`for j in range(ct.bid(0) + 1)`.",
            "scores = ct.mma(mine, ct.transpose(keys), zeros). In tile j = i, column ≤ row: two "
            "`ct.arange(64)` "
            "as (1, 64) and (64, 1), and ct.where.",
            "larger = ct.maximum(top, row maximum); w = ct.exp2(scores − larger); old = ct.exp2(top − "
            "larger); "
            "s = s · old + row sum of w; total = ct.mma(w as float16, values, total · old).",
        ),
        section="10 · Attention in thirty lines",
    ),
    Exercise(
        name="tiles.convert",
        lab=LAB,
        correct_points=1,
        evidence=LaunchTrace(arguments=turned),
        cases=tuple(matrix_case(*each) for each in ((128, 32), (128, 96), (256, 64))),
        rtol=1e-4,
        atol=1e-7,
        budgets=(
            Budget(
                "global_sectors",
                lambda sizes: numbers_in(sizes) // 4,
                1,
                "sectors",
                naive=lambda sizes: 3 * numbers_in(sizes) // 8,
                why="each sector of x and y once",
                advice="Along which axis do lanes lie when they load, along which when they store?",
                case=EVERY,
            ),
            Budget(
                "shared_store_bytes",
                lambda sizes: 4 * numbers_in(sizes),
                2,
                "bytes stored to shared memory",
                sense="==",
                why="one change of layout",
                advice="Which layouts does a number have on its way? And do warps share a column?",
                case=EVERY,
            ),
        ),
        hints=(
            "Loading wants lanes along the rows of x, storing wants them along the rows of y, which are "
            "columns "
            "of x. In which of these two layouts are maximum and sum free of shared memory?",
            "With all 32 lanes of a warp in one column, ([4, 1], [32, 1], [1, num_warps], [0, 1]), a column "
            "never leaves its warp.",
            "Convert once, directly behind the load. Maximum, exponential, sum and store all use the second "
            "layout.",
        ),
        section="11 · A layout that changes once",
    ),
)


_prediction = partial(prediction, "tiles", LAB)

PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "values",
        "Halves of A that each lane of a warp holds for one product of m16n8k16",
        "halves",
        8,
        "16 · 16 = 256 elements, and 256 / 32 = 8.",
    ),
    _prediction(
        "through",
        "Bytes that a change of layout of 128 × 32 floats stores to shared memory",
        "bytes",
        16384,
        "Each float once: 128 · 32 · 4.",
    ),
    _prediction(
        "ratio",
        "Load requests of the numba transpose over those of the Triton one",
        "times",
        4,
        "32 bits for each lane against 128.",
    ),
)
