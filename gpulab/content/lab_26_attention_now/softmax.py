"""Lab 26, part A: what its three exercises ask, all kernels in CUDA C++ on the H100.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| modern.exp2 | kernel, 2^x | exponentials on FMA units | special functions | n | 0 | 5 |
| | | | operations | 12·n | 10·n | |
| | | | requests | – | 2 for 32 numbers | |
| modern.lazy | kernel, a warp for 32 rows | seldom rescaling | exponentials | n·m + n·T | n·m + n·T/8 | 5 |
| | | | operations | T rescales | T/8 rescales | |
| | | | loads | two passes | one pass | |
| | | | divergent branches | – | 0 | |
| modern.roles | host, 288 threads | FlashAttention-3's roles | copied bytes | 4·m·d a block | 2·m·d | 7 |
| | | | barriers | 1 a tile | 1 | |
| | | | loads by threads | – | 0 | |
| | | | shuffles | – | 4 a tile and warp | |
| | | | exponentials | – | n·m + 4·n·m/64 | |

Derivations:

**exp2**: x = i + f with a whole i and f from −½ to ½. Adding 1.5 · 2²³ rounds x to i in the last bits, and
taking it away again gives i as a float: with the difference 3 operations. A polynomial of degree 3 is 3
fused multiply-adds, 6 operations, and a maximum keeps x at −126 or above: 10. The best polynomial of degree
3 has a relative error of 7.5e-5. Taylor's has (ln 2 / 2)⁴ / 24 = 6.0e-4 of 1 and √2 times that of 2^(−½),
about 8e-4, and needs degree 4, 2 operations more, to be below 2e-4: √2 · (ln 2 / 2)⁵ / 120 = 5.9e-5. A
table would be read from global or constant memory.

**lazy**: scores are in base 2, and come in T = m / 8 tiles of 8 keys. A score takes one exponential, a
rescale one for each row. In the counted case tile t holds t + u, u from 0 to ½. A warp that rescaled at t
has a maximum of at least t in each row; another tile is more than 8 above it if t′ + u′ > t + u + 8, so t′
− t > 7.5: eight tiles later at the earliest. That is at most ⌈T / 8⌉ rescales, the first included, where a
kernel that rescales whenever the maximum grows has T. A score costs 2 · 16 operations for its value, and a
difference, a maximum and an addition to s: 35. A rescale takes 20 (16 + 1 products, a maximum, two
differences), a tile 4 besides, and the end 210 of a row (16 divisions, a logarithm). The budget lies
half-way between ⌈T / 8⌉ and T rescales. Scores are loaded once, 4·n·m bytes, and each thread asks for 4 ·
16 · m bytes of values; a pass that finds the maximum first loads 4·n·m more.

**roles**: a block has 128 queries, 64 for each of two warpgroups, which share each tile of 64 keys and
values. Q is copied once, 128 · n bytes; K and V once for each block, n / 128 · 256 · m. If each warpgroup
had its own copies it would be twice that. A tile takes 4 + 4 products of a warpgroup, which each of its 4
warps counts. A thread has 2 rows of a tile and rescales each once: 128 threads · 2 · (n / 64) · (m / 64) =
4·n·m / 64 exponentials beside the n·m of the scores. Four lanes share a row, so a maximum takes two
shuffles, 4 for both rows of a tile, and the sum as many once at the end. Budgets count a shuffle as the
shared load that it can replace.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gpulab.checks.builders import count, prediction
from gpulab.checks.evidence import LaunchTrace
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Shape, Sizes
from gpulab.simulator import hardware

LAB = "26"
GPU = "H100"
D = 64  # numbers of a head in roles
VALUES = 16  # numbers of a value in lazy
TILE = 8  # keys of a tile in lazy
THREADS = 128  # of a block of exp2
QUERIES = 128  # of a block of roles
B200 = hardware.find("B200")


def numbers_case(n: int) -> Case:
    return Case(f"{n:,} numbers", {"n": n})


def scores_case(rows: int, keys: int, kind: str) -> Case:
    return Case(f"{rows} rows, {keys} keys, {kind}", {"n": rows, "m": keys, "kind": kind})


def heads_case(n: int, m: int, scale: float = 1) -> Case:
    name = f"{n} queries, {m} keys" + (f", scores of ±{scale:g}" if scale != 1 else "")
    return Case(name, {"n": n, "m": m, "scale": scale})


# ---------------------------------------------------------------- arguments


def below_zero(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Numbers from −150 to 0, with whole and half ones and both ends among them."""
    made = numbers.uniform(-150, 0, shape)
    special = np.array([0.0, -0.5, -1.0, -1.5, -125.5, -126.0, -126.5, -150.0])[: shape[0]]
    made[: len(special)] = special
    made[len(special) :: 2] /= 16
    return made


def exp2_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n = count(sizes, "n")
    return (Array("x", (n,), fill=below_zero), Array("out", (n,), role="out"), Scalar("n", n, "int32"))


def scores(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """(m, n): normal scores, or one tile after the other higher by 1, or once by 6,000, more than the
    exponents of float64 reach."""
    tile = np.arange(shape[0])[:, None] // TILE
    if sizes["kind"] == "rising":
        return tile + numbers.uniform(0, 0.5, shape)
    if sizes["kind"] == "a leap":
        return np.where(tile > 0, 3000.0, -3000.0) + numbers.standard_normal(shape)
    if sizes["kind"] == "falling":
        return -100.0 * tile + numbers.standard_normal(shape)
    return 6 * numbers.standard_normal(shape)


def lazy_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n, m = count(sizes, "n"), count(sizes, "m")
    return (
        Array("scores", (m, n), fill=scores),
        Array("v", (m, VALUES)),
        Array("out", (n, VALUES), role="out"),
        Array("lse", (n,), role="out"),
        Scalar("n", n, "int32"),
        Scalar("m", m, "int32"),
    )


def scaled_queries(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Queries whose products with normal keys have the standard deviation `scale`."""
    return float(sizes["scale"]) / np.sqrt(shape[-1]) * numbers.standard_normal(shape)


def roles_arguments(sizes: Sizes) -> tuple[Array, ...]:
    n, m = count(sizes, "n"), count(sizes, "m")
    return (
        Array("q", (n, D), "float16", fill=scaled_queries),
        Array("k", (m, D), "float16"),
        Array("vt", (D, m), "float16"),
        Array("out", (n, D), role="out"),
    )


# ---------------------------------------------------------------- counts


def tiles(sizes: Sizes) -> int:
    return count(sizes, "m") // TILE


def seldom(sizes: Sizes) -> int:
    return -(-tiles(sizes) // 8)


def lazy_exponentials(sizes: Sizes, rescales: int) -> int:
    return count(sizes, "n") * (count(sizes, "m") + rescales)


def lazy_operations(sizes: Sizes) -> int:
    rescales = (seldom(sizes) + tiles(sizes)) // 2
    row = count(sizes, "m") * (2 * VALUES + 3) + 4 * tiles(sizes) + 20 * rescales + 210
    return count(sizes, "n") * row


def lazy_bytes(sizes: Sizes, passes: int) -> int:
    return 4 * count(sizes, "n") * count(sizes, "m") * (passes + VALUES)


def blocks(sizes: Sizes) -> int:
    return count(sizes, "n") // QUERIES


def copied_bytes(sizes: Sizes, times: int) -> int:
    """Q once, and K and V `times` times for each block."""
    return 2 * D * (count(sizes, "n") + times * blocks(sizes) * 2 * count(sizes, "m"))


def barriers(sizes: Sizes, each: int) -> int:
    return 9 * blocks(sizes) * each


def products(sizes: Sizes) -> int:
    """Four of the scores and four of the values for each 64 × 64 pairs, counted by four warps."""
    return 4 * 8 * (count(sizes, "n") // 64) * (count(sizes, "m") // 64)


def shuffles(sizes: Sizes) -> int:
    """Of eight warps: two rows of a lane, two shuffles, for each tile and once at the end."""
    return blocks(sizes) * 8 * 2 * 2 * (count(sizes, "m") // 64 + 1)


def exponentials(sizes: Sizes) -> int:
    """One for each pair, and one for each row and tile of each of the four lanes that hold the row."""
    pairs = count(sizes, "n") * count(sizes, "m")
    return pairs + 4 * pairs // 64


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="modern.exp2",
        lab=LAB,
        gpu=GPU,
        correct_points=1.5,
        evidence=LaunchTrace(
            arguments=exp2_arguments,
            shape=lambda s: Shape((-(-count(s, "n") // THREADS),), (THREADS,)),
            face="cupy",
        ),
        cases=tuple(numbers_case(n) for n in (100, 1, 1023, 4096)),
        rtol=2e-4,
        atol=2.4e-38,
        budgets=(
            Budget(
                "special_functions",
                0,
                1,
                "special functions",
                naive=lambda s: count(s, "n"),
                why="a polynomial needs only multiply-adds",
                advice="Which call still goes to the special-function units?",
                case=EVERY,
            ),
            Budget(
                "memory_requests",
                lambda s: 2 * -(-count(s, "n") // 32),
                1.25,
                "requests to memory",
                why="a warp loads x once and stores out once",
                advice="What do you load in addition to x? A table is not a polynomial, wherever it is.",
                case=EVERY,
            ),
            Budget(
                "flops",
                lambda s: 10 * count(s, "n"),
                1.25,
                "operations",
                naive=lambda s: 12 * count(s, "n"),
                why="10 for a number, a multiply-add counted as two",
                advice="Which degree has your polynomial? Fitted to −½ … ½, degree 3 is good enough.",
            ),
        ),
        hints=(
            "Add 1.5 · 2²³ = 12,582,912 to x and look at the bits: the last ones are x rounded to a whole "
            "number. Subtract 12,582,912 again, and you have that number as a float.",
            "f = x minus the whole number is between −½ and ½. Fit a polynomial of degree 3 to 2^f such that "
            "the relative error is small, for example by least squares on the rows f⁰ … f³, each "
            "divided by 2^f.",
            "Whole powers of two are added to the exponent: __int_as_float(__float_as_int(p) + (bits "
            "<< 23)), "
            "where bits are those of x + 12,582,912. Keep x at −126 or above with fmaxf.",
        ),
        section="1 · An exponential without its unit",
    ),
    Exercise(
        name="modern.lazy",
        lab=LAB,
        gpu=GPU,
        correct_points=1,
        evidence=LaunchTrace(
            arguments=lazy_arguments, shape=lambda s: Shape((count(s, "n") // 32,), (32,)), face="cupy"
        ),
        cases=(
            scores_case(32, 16, "normal"),
            scores_case(32, 8, "normal"),
            scores_case(64, 40, "a leap"),
            scores_case(32, 48, "falling"),
            scores_case(64, 256, "rising"),
        ),
        rtol=1e-4,
        atol=1e-4,
        budgets=(
            Budget(
                "global_load_bytes",
                lambda s: lazy_bytes(s, 1),
                0.5,
                "loaded bytes",
                naive=lambda s: lazy_bytes(s, 2),
                why="every score once, every value once for each row",
                advice="Do you go through the scores twice?",
                case=EVERY,
            ),
            Budget(
                "special_functions",
                lambda s: lazy_exponentials(s, seldom(s)),
                1,
                "exponentials",
                naive=lambda s: lazy_exponentials(s, tiles(s)),
                why="one a score, and one a row for each rescale",
                advice="How far may a score lie above the number that you subtract before you have "
                "to rescale?",
            ),
            Budget(
                "flops",
                lazy_operations,
                2,
                "operations",
                why="few rescales",
                advice="Do you multiply the unfinished output where that could wait?",
            ),
            Budget(
                "divergent_branches",
                0,
                0.5,
                "divergent branches",
                why="the warp decides together",
                advice="Let the warp vote: __any_sync returns the same for all of its lanes.",
                case=EVERY,
            ),
        ),
        hints=(
            "The number that is subtracted need not be the maximum. If it is at most 8 below it, "
            "weights are at "
            "most 2⁸ = 256, and the division at the end takes the factor out again.",
            "For each tile: its largest score `top`. If any lane of the warp has top > largest + 8, "
            "all lanes "
            "rescale: larger = fmaxf(largest, top), old = power(largest − larger), then s and total.",
            "`__any_sync(0xffffffff, top > largest + 8)` is the vote. Start with largest = −∞, so "
            "that the first "
            "tile always rescales; power(−∞) is 0. lse is largest + log2f(s).",
        ),
        section="2 · Rescale when it matters",
    ),
    Exercise(
        name="modern.roles",
        lab=LAB,
        gpu=GPU,
        correct_points=3,
        evidence=LaunchTrace(arguments=roles_arguments, face="cupy"),
        cases=(
            heads_case(128, 192),
            heads_case(128, 64),
            heads_case(128, 128, 60),
            heads_case(256, 256),
        ),
        rtol=3e-3,
        atol=3e-3,
        budgets=(
            Budget(
                "global_load_requests",
                0,
                0.5,
                "loads from global memory",
                why="the copy engine brings tiles",
                advice="Which line loads thread by thread?",
                case=EVERY,
            ),
            Budget(
                "bulk_load_bytes",
                partial(copied_bytes, times=1),
                1,
                "bytes copied in",
                naive=partial(copied_bytes, times=2),
                why="Q once, K and V once for each block",
                advice="Both warpgroups read the same tile of K and V. Is it copied for each?",
                case=EVERY,
            ),
            Budget(
                "barriers",
                partial(barriers, each=1),
                1,
                "block barriers",
                naive=lambda s: barriers(s, 1 + count(s, "m") // 64),
                why="one, after the initialisation",
                advice="The producer waits at `empty`, the warpgroups at `full`. No wait needs all "
                "nine warps.",
                case=EVERY,
            ),
            Budget(
                "shared_load_requests",
                shuffles,
                0.5,
                "shared loads and shuffles",
                why="two shuffles for the maximum of a row and tile, two for its sum at the end",
                advice="Which line brings operands through registers, or adds up a row in every tile?",
                case=EVERY,
            ),
            Budget(
                "warpgroup_products",
                products,
                0.5,
                "products",
                why="8 for 64 queries and 64 keys, counted by 4 warps",
                advice="That is {times} × as many. Does each warpgroup multiply only its own 64 queries?",
                case=EVERY,
            ),
            Budget(
                "special_functions",
                exponentials,
                0.5,
                "exponentials",
                why="one a pair, and one for each row of a lane and tile",
                advice="Which exponential is taken more than once?",
                case=EVERY,
            ),
        ),
        hints=(
            "The producer is that of `overlap` in lab 24 with two slots, one copy of K and one of V "
            "in each. A "
            "slot is free when eight warps have arrived at `empty`.",
            "A thread has two rows, r = 0 and 1: scores 4j + 2r and 4j + 2r + 1 for j = 0 … 7. Row maximum: "
            "over its own 16 scores, then `of_row(…, false)`. Do that before any weight.",
            "The weights of accumulator columns 8j and 8j + 1 are weights[2j + r]; the i-th product "
            "with V takes "
            "weights + 4i and values + 2i. Wait for it before the arrival at `empty`, and sum s over the "
            "lanes of a row only at the end.",
        ),
        section="3 · Warps that load, multiply and exponentiate",
    ),
)


_prediction = partial(prediction, "", LAB)

PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "modern.balance",
        "On a B200, heads of 128 in float16: the exponential of a score takes, in percent of the "
        "time of its products,",
        "%",
        100 * (1 / 16) / (2 * 128 / int(B200.tensor_fma["float16"])),
        "16 exponentials a clock and SM; 256 multiply-adds at 4,096 a clock take 1/16 of a clock.",
    ),
    _prediction(
        "modern.share",
        "With 6 instructions a polynomial on 128 lanes: both units finish together if the "
        "polynomials are, of all exponentials,",
        "%",
        400 / 7,
        "A share p takes p · 6/128 clocks on the lanes, the rest (1 − p)/16 on the special units: "
        "6·p = 8·(1 − p), p = 4/7.",
        0.03,
    ),
    _prediction(
        "modern.weights",
        "With a threshold of 8 in base 2, the largest weight can be",
        "",
        256,
        "2⁸ = 256, far below float16's 65,504.",
    ),
    _prediction(
        "modern.registers",
        "A warpgroup has 64 queries. Scores of 64 keys and the unfinished output of 64 numbers are, "
        "in each thread,",
        "registers",
        64,
        "64 · 64 / 128 = 32 of each.",
    ),
)
