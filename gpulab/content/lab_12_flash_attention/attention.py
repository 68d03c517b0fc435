"""Lab 12, part A: what its five exercises ask. All are PyTorch functions of float32 tensors.

| exercise | asks for | teaches | counted | naive | good | pts |
|---|---|---|---|---|---|---|
| merge | merge(outs, lses): out, lse | parts of the keys merge | bytes | (3·p + 1)·n·d | (p + 1)·n·d | 4 |
| tiled | tiled(q, k, v, tile): out, lse | online softmax | peak memory | 2·n·m | n·d + n + tiles | 6 |
| causal | causal(q, k, v, window, tile): out, lse | empty tiles | FLOPs | all tiles | see below | 6 |
| grouped | grouped(q, k, v): out | heads that share keys | bytes | keys per query head | keys once | 4 |
| steady | steady(outs, lses): out, lse, mended | sums have no safe inverse | bytes | 3·p²·n·d | 2·p·n·d | 3 |

Part B has `lab_12_flash_attention`. "Remembered by" is flash there; its figures are derived here, because
part A counts the naive side. n queries, m keys, heads of d numbers; 4 bytes a number.

**In three launches** (product, softmax, product; q comes scaled): S = q·kᵀ is written and read, P =
softmax(S) is written and read: 4·n·m numbers, and q, k, v and the output once: 4 · (4·n·m + 2·n·d + 2·m·d)
bytes. At n = m = 1,024 and d = 64 that is 17,825,792, 17.8 MB, of which S and P are 16.8 MB; held beyond
inputs and output are S and P, 2 · 4 · n·m = 8.4 MB.

**One launch, a block for each R queries**: q and the output once, the log-sum-exp of each row, and k and v
once for each block: 4 · (2·n·d + n + ⌈n / R⌉ · 2·m·d). With R = 128: 8 · 2 · 65,536 + 131,072 + 1,024
numbers are 4,722,688 bytes, 4.7 MB; extra memory is the log-sum-exp, 4,096 bytes.

**merge**: p parts with an output (n, d) each. Weighting them in an operation of its own reads p·n·d, writes
as much, and the sum reads it again. As a product of (1, p) with (p, d) for each row they are read once.
Operations on (p, n) numbers come on top: less than a third of it at p = 8, d = 128.

**tiled**: scores of all pairs and their softmax are 2·n·m numbers. With tiles of t × t the scores of a tile
are there a few times over, with the rows of q's tile, and beyond that the output and the log-sum-exp, and
once more where tiles are put together. The budget is 2·n·d + 2·n + 4·t·(t + d) numbers. One case has so many
keys for its few queries that the scores of a single query are too much: tiles of queries alone do not do.

**causal**: query i stands at position i + m − n and sees keys j with position − window < j ≤ position. A
tile that holds a pair that is seen costs two products, 4·rows·columns·d FLOPs; all others cost nothing. 8 ×
8 tiles without a window have 36 of 64.

**grouped**: k and v of one head serve h_q / h_kv query heads. Repeated, they are read once, written and read
as often as there are query heads; shared, they are read once. Scores and weights, 4 · h_q·n·m numbers, come
on top.

**steady**: for each part the merge of all others. Taking the part away from the merge of all is right in
exact arithmetic; in float32 it loses what weighs less than 2⁻²⁴ of the part, and leaves 0 / 0. Products of
(p, p) weights with a zero diagonal and (p, d) outputs read the parts once and write p·n·d; the first try
moves 7·p·n·d and more. The budget is 8·p·n·d. A merge of the others for each part on its own copies p − 1
parts (read and written), and reads them again: with putting the results together 3·p·(p − 1) + 3·p = 3·p².
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from gpulab.checks.builders import count, prediction
from gpulab.checks.evidence import TensorGraph
from gpulab.checks.operators import COMMON
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Sizes

LAB = "12"
FLOAT = 4  # bytes
FULL = 1_000_000  # a window that leaves nothing out


def pairs_case(n: int, m: int, d: int, tile: int, scale: float = 1, name: str = "") -> Case:
    """n queries, m keys of width d; logits of about ±`scale`, far from each other where it is large."""
    said = name or f"{n} queries, {m} keys" + (f", logits of ±{scale:,.0f}" if scale > 1 else "")
    return Case(said, {"n": n, "m": m, "d": d, "tile": tile, "scale": scale})


def window_case(n: int, m: int, d: int, tile: int, window: int = FULL) -> Case:
    name = f"{n} queries, {m} keys" + ("" if window == FULL else f", window {window}")
    return Case(name, {"n": n, "m": m, "d": d, "tile": tile, "window": window, "scale": 1})


def merge_case(parts: int, n: int, d: int, kind: str = "") -> Case:
    name = f"{parts} part{'s' * (parts != 1)} of {n} × {d}" + (f", {kind}" if kind else "")
    return Case(name, {"parts": parts, "n": n, "d": d, "kind": kind})


def others_case(parts: int, n: int, d: int, kind: str = "") -> Case:
    """As `merge_case`; the name does not say what the contents are like, for they are to be found out."""
    return Case(f"{parts} parts of {n} × {d}", {"parts": parts, "n": n, "d": d, "kind": kind})


def heads_case(queries: int, keys: int, n: int, m: int, d: int) -> Case:
    name = f"{queries} and {keys} heads, {n} quer{'ies' if n != 1 else 'y'}, {m} keys"
    return Case(name, {"query_heads": queries, "key_heads": keys, "n": n, "m": m, "d": d})


# ---------------------------------------------------------------- arguments


def scaled_queries(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Queries whose products with normal keys have the standard deviation `scale`."""
    return float(sizes.get("scale", 1)) / np.sqrt(shape[-1]) * numbers.standard_normal(shape)


def _inputs(sizes: Sizes) -> tuple[Array, Array, Array]:
    n, m, d = (count(sizes, name) for name in ("n", "m", "d"))
    return (Array("q", (n, d), fill=scaled_queries), Array("k", (m, d)), Array("v", (m, d)))


def _outputs(sizes: Sizes) -> tuple[Array, Array]:
    n, d = count(sizes, "n"), count(sizes, "d")
    return (Array("out", (n, d), role="out"), Array("lse", (n,), role="out"))


def tiled_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    return (*_inputs(sizes), Scalar("tile", count(sizes, "tile")), *_outputs(sizes))


def causal_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    more = Scalar("window", count(sizes, "window")), Scalar("tile", count(sizes, "tile"))
    return (*_inputs(sizes), *more, *_outputs(sizes))


def merge_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    parts, n, d = (count(sizes, name) for name in ("parts", "n", "d"))
    return (
        Array("outs", (parts, n, d), fill=_part_outs),
        Array("lses", (parts, n), fill=_part_lses),
        *_outputs(sizes),
    )


def _masked(shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Which rows of which parts have no key: (parts, n)."""
    parts, n = shape
    part, row = np.mgrid[:parts, :n]
    return (
        ((part + row) % 3 == 0) | (row % 4 == 1)
        if sizes["kind"] == "some without keys"
        else np.zeros(shape, bool)
    )


def _part_outs(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    return np.where(_masked(shape[:2], sizes)[:, :, None], 0, numbers.standard_normal(shape))


def _part_lses(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    scale = 1000 if sizes["kind"] == "±1,000" else 2
    made = scale * numbers.uniform(-1, 1, shape)
    if sizes["kind"] == "one outweighs":
        part, row = np.mgrid[: shape[0], : shape[1]]
        made += np.where(part == row % shape[0], 9, 0)
    return np.where(_masked(shape, sizes), -np.inf, made)


def others_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    parts, n, d = (count(sizes, name) for name in ("parts", "n", "d"))
    outs, lses = merge_arguments(sizes)[:2]
    return (outs, lses, Array("out", (parts, n, d), role="out"), Array("lse", (parts, n), role="out"))


def heads_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    queries, keys, n, m, d = (count(sizes, name) for name in ("query_heads", "key_heads", "n", "m", "d"))
    return (
        Array("q", (queries, n, d), fill=scaled_queries),
        Array("k", (keys, m, d)),
        Array("v", (keys, m, d)),
        Array("out", (queries, n, d), role="out"),
    )


# ---------------------------------------------------------------- counts


def eager_bytes(n: int, m: int, d: int) -> int:
    """Bytes that product, softmax and product move in three launches."""
    return FLOAT * (4 * n * m + 2 * n * d + 2 * m * d)


def flash_bytes(n: int, m: int, d: int, rows: int) -> int:
    """Bytes that one launch moves, a block for each `rows` queries; the log-sum-exp is stored, too."""
    return FLOAT * (2 * n * d + n + -(-n // rows) * 2 * m * d)


def merge_bytes(passes: int) -> Callable[[Sizes], int]:
    """Bytes when the parts are moved `passes` times and the result is written once."""

    def total(sizes: Sizes) -> int:
        parts, n, d = (count(sizes, name) for name in ("parts", "n", "d"))
        return FLOAT * (passes * parts + 1) * n * d

    return total


def others_bytes(passes: int) -> Callable[[Sizes], int]:
    """Bytes when all parts are moved `passes` times."""
    return lambda sizes: FLOAT * passes * count(sizes, "parts") * count(sizes, "n") * count(sizes, "d")


def tiled_peak(sizes: Sizes) -> int:
    n, d, tile = (count(sizes, name) for name in ("n", "d", "tile"))
    return FLOAT * (2 * n * d + 2 * n + 4 * tile * (tile + d))


def untiled_peak(sizes: Sizes) -> int:
    """Scores of all pairs and their softmax; of many keys, the scores of one query."""
    of_one = FLOAT * count(sizes, "m")
    return of_one if of_one > tiled_peak(sizes) else 2 * count(sizes, "n") * of_one


def all_pairs_flops(sizes: Sizes) -> int:
    """FLOPs of both products over all pairs."""
    return 4 * count(sizes, "n") * count(sizes, "m") * count(sizes, "d")


def seen(n: int, m: int, window: int = FULL) -> np.ndarray:
    """Which query (row) sees which key: the last query stands at the last key."""
    behind = np.arange(n)[:, None] + m - n - np.arange(m)
    return (behind >= 0) & (behind < window)


def visited_flops(sizes: Sizes) -> int:
    """FLOPs of both products over the tiles that hold a pair that is seen."""
    n, m, d, tile, window = (count(sizes, name) for name in ("n", "m", "d", "tile", "window"))
    there = seen(n, m, window)
    tiles = (there[i : i + tile, j : j + tile] for i in range(0, n, tile) for j in range(0, m, tile))
    return sum(4 * t.size * d for t in tiles if t.any())


def shared_keys_bytes(sizes: Sizes) -> int:
    """Keys and values once; scores and weights written and read; queries and output once."""
    queries, keys, n, m, d = (count(sizes, name) for name in ("query_heads", "key_heads", "n", "m", "d"))
    return FLOAT * (2 * keys * m * d + 4 * queries * n * m + 2 * queries * n * d)


def copied_queries_bytes(sizes: Sizes) -> int:
    """Queries and output put into another order: few bytes where they are few, as in decoding."""
    return 4 * FLOAT * count(sizes, "query_heads") * count(sizes, "n") * count(sizes, "d")


def repeated_keys_bytes(sizes: Sizes) -> int:
    """As `shared_keys_bytes` with keys and values written and read once more for each query head."""
    queries, m, d = (count(sizes, name) for name in ("query_heads", "m", "d"))
    return shared_keys_bytes(sizes) + FLOAT * 4 * queries * m * d


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="attention.merge",
        lab=LAB,
        evidence=TensorGraph(arguments=merge_arguments, operators=COMMON),
        correct_points=2,
        cases=(
            merge_case(2, 3, 4),
            merge_case(1, 5, 8),
            merge_case(3, 9, 4, "±1,000"),
            merge_case(4, 12, 8, "some without keys"),
            merge_case(8, 256, 128),
        ),
        rtol=1e-5,
        atol=1e-5,
        budgets=(
            Budget(
                "bytes",
                lambda s: int(4 / 3 * merge_bytes(1)(s)),
                2,
                "bytes",
                naive=merge_bytes(3),
                why="each part read once",
                advice="Is there a tensor as large as all parts together that you write? A weighted sum "
                "over the "
                "parts is a matrix product.",
                unit="B",
            ),
        ),
        hints=(
            "A part counts as much as its sum of exponentials, exp(lse). What do you subtract from all lses "
            "of a "
            "row first, so that nothing overflows?",
            "w = exp(lses − largest) has the shape (parts, n). The merged lse is largest + log of the sum "
            "of w "
            "over parts. Where all lses of a row are −∞, −∞ − (−∞) is NaN: put another number in the place "
            "of "
            "that largest.",
            "For each row, (1 × parts) times (parts × d): torch.bmm on w / sum with the axes exchanged, and "
            "outs.transpose(0, 1). A sum is at least 1 unless no part has a key, so clamp(min=1) "
            "changes nothing else.",
        ),
        section="3 · Parts that merge",
    ),
    Exercise(
        name="attention.tiled",
        lab=LAB,
        evidence=TensorGraph(arguments=tiled_arguments, operators=COMMON),
        correct_points=3,
        cases=(
            pairs_case(4, 6, 4, 2),
            pairs_case(7, 1, 4, 4),
            pairs_case(10, 23, 8, 8),
            pairs_case(20, 40, 8, 16, 1000),
            pairs_case(3, 0, 4, 2),
            pairs_case(16, 4096, 4, 16),
            pairs_case(320, 128, 32, 64),
        ),
        rtol=1e-3,  # a logit of 1,000 is known to 6e-5, and so is its weight
        atol=5e-4,
        budgets=(
            Budget(
                "peak_bytes",
                tiled_peak,
                3,
                "peak memory",
                naive=untiled_peak,
                why="the results, and tiles",
                advice="Which of your tensors has a row for each query and is no result, or a column for "
                "each key?",
                unit="B",
                case=EVERY,
            ),
        ),
        hints=(
            "Two loops: over tiles of queries, and inside over tiles of keys. A tile of queries carries "
            "three "
            "things along: m, s and the unfinished output.",
            "When the maximum grows from m to larger, both s and the unfinished output shrink by exp(m − "
            "larger). "
            "Then the tile's weights, exp(scores − larger), are added to s and, times the values, to the "
            "output.",
            "Start with m = −∞, s = 0, output 0; after the last tile divide once. With no key at all s "
            "stays 0: "
            "0 / 0 is NaN, and s.clamp(min=1) is not, because s is at least 1 where there is a key.",
        ),
        section="4 · A tile at a time",
    ),
    Exercise(
        name="attention.steady",
        lab=LAB,
        evidence=TensorGraph(arguments=others_arguments, operators=COMMON),
        correct_points=2,
        cases=(
            others_case(2, 3, 4),
            others_case(5, 12, 8, "one outweighs"),
            others_case(4, 9, 8, "±1,000"),
            others_case(8, 32, 128),
        ),
        rtol=1e-4,  # a log-sum-exp of 1,000 is known to 6e-5, and so is its weight
        atol=1e-4,
        budgets=(
            Budget(
                "bytes",
                others_bytes(8),
                1,
                "bytes",
                naive=lambda s: others_bytes(3 * count(s, "parts"))(s),
                why="what the first try moves",
                advice="How often is each part read? For a row, all results together are one matrix product.",
                unit="B",
            ),
        ),
        hints=(
            "Of the results for one row, which are wrong? What is special about the lse of that part?",
            "Print all weights and `rest` for such a row: how many digits of the other weights are left in "
            "it?",
            "A difference cannot give back what a sum has rounded away. Which weights does result p need? "
            "Write them as row p of a table: what stands where it meets itself?",
        ),
        detective=True,
        section="Detective · One part less",
    ),
    Exercise(
        name="attention.causal",
        lab=LAB,
        evidence=TensorGraph(arguments=causal_arguments, operators=COMMON),
        correct_points=2,
        cases=(
            window_case(6, 6, 4, 2),
            window_case(3, 11, 4, 4),
            window_case(11, 3, 4, 4),
            window_case(25, 25, 8, 8, 5),
            window_case(12, 30, 8, 8, 1),
            window_case(96, 96, 32, 32),
            window_case(96, 96, 32, 32, 20),
        ),
        rtol=1e-4,
        atol=1e-5,
        budgets=(
            Budget(
                "matrix_flops",
                visited_flops,
                2,
                "causal FLOPs",
                naive=all_pairs_flops,
                why="tiles that hold a visible pair",
                advice="For the tile of queries that starts at `first`: where is the last key that any of "
                "them sees?",
                case="96 queries, 96 keys",
                unit="FLOP",
            ),
            Budget(
                "matrix_flops",
                visited_flops,
                2,
                "window FLOPs",
                naive=all_pairs_flops,
                why="tiles that hold a visible pair",
                advice="Which is the first key that any query of the tile sees? In which tile does it lie?",
                case="96 queries, 96 keys, window 20",
                unit="FLOP",
            ),
        ),
        hints=(
            "The queries first … first + rows − 1 stand at the positions first + m − n and so on. Together "
            "they "
            "see the keys from (first position − window + 1) to the last position.",
            "Start the inner loop at the tile of the first such key, no less than 0, and end it behind the "
            "last. "
            "In a tile, put −∞ where a pair is not seen: torch.where on a comparison of two torch.arange.",
            "In a visited tile a row may see nothing, and nothing before it either: then m is −∞ and so is "
            "larger, and −∞ − (−∞) is NaN. Subtract a larger in which −∞ has been replaced by 0.",
        ),
        section="7 · Tiles that need no visit",
    ),
    Exercise(
        name="attention.grouped",
        lab=LAB,
        evidence=TensorGraph(arguments=heads_arguments, operators=COMMON | {"_softmax"}),
        correct_points=1.6,
        cases=(
            heads_case(4, 2, 3, 5, 4),
            heads_case(6, 1, 2, 7, 4),
            heads_case(3, 3, 4, 4, 8),
            heads_case(16, 2, 1, 512, 64),
        ),
        rtol=1e-4,
        atol=1e-5,
        budgets=(
            Budget(
                "bytes",
                lambda s: int(1.02 * shared_keys_bytes(s)) + copied_queries_bytes(s),
                2.4,
                "bytes",
                naive=repeated_keys_bytes,
                why="keys and values once",
                advice="Is a key copied for each query head that uses it? Queries can be put together, too.",
                unit="B",
                case=EVERY,
            ),
        ),
        hints=(
            "Query heads 0 … g − 1 use key head 0, the next g key head 1, and so on; g is query heads over "
            "key heads.",
            "To a head of keys it does not matter from which head a query comes. So g heads of n queries "
            "are one "
            "head of g · n queries.",
            "q.reshape(key heads, g * n, d), two batched products with a softmax between them, and back to "
            "q's shape.",
        ),
        section="8 · Fewer heads of keys",
    ),
)


_prediction = partial(prediction, "attention", LAB)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "eager_bytes",
        "For 1,024 queries and keys of 64 numbers, product, softmax and product move",
        "MB",
        eager_bytes(1024, 1024, 64) / 1e6,
        "S is written and read, and P is: 4 · 1,024² numbers. q, k, v and the output are 4 · 65,536 more.",
        0.03,
    ),
    _prediction(
        "crossover",
        "With a width of 768, the scores and their use pass the linear layers in FLOPs from a length of",
        "tokens",
        6 * 768,
        "4·n·H FLOPs for each token against 24·H²: they are equal at n = 6·H.",
        0.01,
    ),
    _prediction(
        "merge",
        "One part has lse 2 and out 1, another lse 2 + log 3 and out 5. Merged, out is",
        "",
        4,
        "The second counts three times as much: (1 · 1 + 3 · 5) / 4.",
    ),
    _prediction(
        "flash_bytes",
        "In one launch with 128 queries to a block, the same attention moves",
        "MB",
        flash_bytes(1024, 1024, 64, 128) / 1e6,
        "8 blocks load k and v, 0.52 MB, each; q and the output are 0.52 MB together, and the log-sum-exps "
        "4 KB.",
        0.03,
    ),
    _prediction(
        "tiles",
        "Of the 64 tiles of a map of 8 by 8 tiles, a causal mask leaves to be visited",
        "tiles",
        36,
        "1 + 2 + … + 8: those below the diagonal and those on it.",
    ),
    _prediction(
        "cache",
        "To make one token after 8,192 others, Llama 3 8B reads of its cache (32 layers, 8 key heads of 128, "
        "16 bits a number)",
        "GB",
        2 * 32 * 8 * 128 * 8192 * 2 / 1e9,
        "Keys and values: 2 · 32 · 8 · 128 numbers of 2 bytes for each of 8,192 tokens. That is 1 GiB, "
        "1.07 GB.",
        0.03,
    ),
    _prediction(
        "packed",
        "Three sequences of 1,024, 256 and 64 tokens, padded to the longest, compute of all pairs in vain",
        "%",
        100 * (1 - (1024**2 + 256**2 + 64**2) / (3 * 1024**2)),
        "3 · 1,024² pairs are computed, 1,024² + 256² + 64² are wanted.",
        0.02,
    ),
)
