"""Lab 26, part B: what its five exercises ask. Kernels are in Triton on the H100, the rest is PyTorch.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| modern.blocks | host code, Triton | a block mask | loaded bytes | all blocks | blocks listed | 5 |
| | | | operations | all blocks | blocks listed | |
| modern.select | select(…) → out | sparse decoding | bytes | 2·m·d + scores | 6·keep·64·d | 5 |
| modern.absorb | absorb(…) → out | latent attention | bytes | 4·h·m·d | 2·m·r | 6 |
| | | | matrix FLOPs | 4·h·m·r·d | 4·h·m·r | |
| modern.chunk | chunk(…) → out | the gated delta rule | bytes | 8·d² a token | 8·d² a chunk | 7 |
| | | | matrix FLOPs | 6·d·(d + n) a token | 6·d·(d + C) a token | |
| modern.mask | host code, Triton, mended | a loaded mask | loaded bytes | as without a mask | half | 3 |

Derivations (numbers of 4 bytes, in kernels of 2; heads of D = 64 numbers):

**blocks**: a program has 64 queries and visits the blocks of 64 keys on its list: 2 · 64 · D · 2 = 16,384
bytes each, and q once. Counts and lists are scalars that each of 128 threads loads: 512 bytes for each
block, 3 %, of the budget's 10. All blocks would be (n / 64)² · 16,384.

**select**: h queries share m keys. Means of 64 keys are given: m / 64 · d numbers. `keep` blocks are
gathered, which reads and writes 2 · keep · 64 · d, and multiplied, which reads them again: 6 · keep · 64 ·
d. Scores of the kept keys are written, read and written by softmax, and read: 4 · h · keep · 64, twice that
with margin; those of the means are few. All keys and values are 2·m·d, and their scores are written, masked
(read and written), softmaxed (the same) and read: 6·h·m.

**absorb**: a cache of m latent vectors of r numbers and m shared keys of e numbers. q · W_kᵀ and W_v ·
latent read each weight once, 2·h·d·r. Latents are read twice, as keys and as values: 2·m·r, and m·e. Eight
passes over h·m scores: two products written, their sum, softmax, and one read. Keys and values of all heads
would be written and read, 4·h·m·d. Products: 2·h·m·r for the scores, as many for the values, 2·h·m·e, and
4·h·d·r for the queries and the outputs; expanding costs 4·h·m·r·d.

**chunk**: of each token or chunk the state, d × d, is read for k and for q, decayed (2), updated (the
product written, the sum 3): 8·d². A chunk has C × C and C × d arrays besides, which pass 24 and 27 times.
Matrix products of a chunk: S with k and q and the update are 3 · 2·C·d², K·Kᵀ, Q·Kᵀ and the last one 3 ·
2·C²·d: 6·C·d·(d + C). One chunk for all has C = n. The triangular system, which takes C²·d, counts as a
matrix product, because any product can be written as one. The budget leaves 15 %, enough for an inverse
made of products.

**mask**: of a block of 64 × 64 pairs, K and V are 16,384 bytes, and the mask in int32 is 64 · 64 · 4 =
16,384 bytes as well. Of b² blocks b·(b + 1)/2 are visited, each for twice the bytes: b·(b + 1) · 16,384, a
little more than the b² · 16,384 of a kernel that masks nothing. Without the mask's bytes it is half.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from gpulab.checks.builders import count, prediction
from gpulab.checks.evidence import LaunchTrace, TensorGraph
from gpulab.checks.operators import COMMON
from gpulab.checks.spec import Array, Budget, Case, Exercise, Fill, Prediction, Scalar, Sizes

from .softmax import GPU, LAB, D

BLOCK = 64  # queries and keys of a block
PAIR = 2 * BLOCK * D * 2  # bytes of a block of K and V in float16
PAIR_FLOPS = 4 * BLOCK * BLOCK * D  # of the two products of a block of queries and a block of keys
OPERATORS = COMMON | {"topk", "sort", "argsort", "softmax", "_softmax"}
SOLVES = COMMON | {"linalg_solve_triangular"}


def blocks_case(n: int, every: int) -> Case:
    return Case(f"{n} queries, one block in {every}", {"n": n, "every": every})


def causal_case(n: int) -> Case:
    return Case(f"{n} queries", {"n": n})


def cache_case(heads: int, m: int, d: int, keep: int) -> Case:
    name = f"{heads} heads, {m:,} keys, {keep} block{'s' * (keep != 1)}"
    return Case(name, {"h": heads, "m": m, "d": d, "keep": keep})


def latent_case(heads: int, d: int, r: int, e: int, m: int) -> Case:
    return Case(f"{heads} heads, {m:,} keys", {"h": heads, "d": d, "r": r, "e": e, "m": m})


def tokens_case(n: int, d: int, size: int, kind: str = "") -> Case:
    name = f"{n} tokens, chunks of {size}" + (f", {kind}" if kind else "")
    return Case(name, {"n": n, "d": d, "size": size, "kind": kind})


# ---------------------------------------------------------------- arguments


def lists(sizes: Sizes) -> list[list[int]]:
    """What each block of queries visits: the first block, its own, and every `every`-th before it."""
    every = count(sizes, "every")
    return [sorted({0, row, *range(row, -1, -every)}) for row in range(count(sizes, "n") // BLOCK)]


def filled(array: np.ndarray) -> Fill:
    return lambda numbers, shape, sizes: array


def scaled(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    return 2 / np.sqrt(shape[-1]) * numbers.standard_normal(shape)


def halves(sizes: Sizes) -> tuple[Array, ...]:
    n = count(sizes, "n")
    return (
        Array("q", (n, D), "float16", fill=scaled),
        Array("k", (n, D), "float16"),
        Array("v", (n, D), "float16"),
    )


def blocks_arguments(sizes: Sizes) -> tuple[Array, ...]:
    wanted = lists(sizes)
    most = max(map(len, wanted))
    padded = np.array([each + [-1] * (most - len(each)) for each in wanted])
    return (
        *halves(sizes),
        Array("counts", (len(wanted),), "int32", fill=filled(np.array(list(map(len, wanted))))),
        Array("lists", (len(wanted), most), "int32", fill=filled(padded)),
        Array("out", (count(sizes, "n"), D), role="out"),
    )


def mask_arguments(sizes: Sizes) -> tuple[Array, ...]:
    n = count(sizes, "n")
    return (
        *halves(sizes),
        Array("mask", (n, n), "int32", fill=filled(np.tril(np.ones((n, n))))),
        Array("out", (n, D), role="out"),
    )


def select_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    h, m, d = (count(sizes, name) for name in "hmd")
    there: dict[str, np.ndarray] = {}

    def keys(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
        """Keys whose blocks have means far from each other, so that no two blocks weigh the same."""
        made = numbers.standard_normal(shape) + np.repeat(numbers.standard_normal((m // BLOCK, d)), BLOCK, 0)
        there["k"] = made.astype(np.float32)
        return made

    def means(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
        return there["k"].reshape(-1, BLOCK, d).mean(1)

    return (
        Array("q", (h, d), fill=scaled),
        Array("k", (m, d), fill=keys),
        Array("v", (m, d)),
        Array("means", (m // BLOCK, d), fill=means),
        Scalar("keep", count(sizes, "keep")),
        Array("out", (h, d), role="out"),
    )


def absorb_arguments(sizes: Sizes) -> tuple[Array, ...]:
    h, d, r, e, m = (count(sizes, name) for name in ("h", "d", "r", "e", "m"))
    return (
        Array("q", (h, d), fill=scaled),
        Array("q_place", (h, e), fill=scaled),
        Array("latent", (m, r)),
        Array("k_place", (m, e)),
        Array("w_k", (h, d, r), fill=scaled),
        Array("w_v", (h, d, r), fill=scaled),
        Array("out", (h, d), role="out"),
    )


def unit(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    made = numbers.standard_normal(shape)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def decays(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """From 0.8 to 1; of a forgetful layer between 1e-5 and 1."""
    lowest = 5 if sizes["kind"] == "forgetful" else 0.1
    return 10 ** -(lowest * numbers.uniform(0, 1, shape))


def chunk_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n, d = count(sizes, "n"), count(sizes, "d")
    return (
        Array("q", (n, d), fill=scaled),
        Array("k", (n, d), fill=unit),
        Array("v", (n, d)),
        Array("alpha", (n,), fill=decays),
        Array("beta", (n,), fill="uniform"),
        Scalar("size", count(sizes, "size")),
        Array("out", (n, d), role="out"),
    )


# ---------------------------------------------------------------- counts


def listed_bytes(sizes: Sizes) -> float:
    return 1.1 * (2 * count(sizes, "n") * D + PAIR * sum(map(len, lists(sizes))))


def all_bytes(sizes: Sizes) -> int:
    """q once, and every block of K and V for each program."""
    n = count(sizes, "n")
    return 2 * n * D + PAIR * (n // BLOCK) ** 2


def causal_pairs(rows: int) -> int:
    """Blocks up to the diagonal."""
    return rows * (rows + 1) // 2


def causal_bytes(sizes: Sizes) -> float:
    n = count(sizes, "n")
    rows = n // BLOCK
    return 1.05 * (2 * n * D + PAIR * causal_pairs(rows))


def masked_bytes(sizes: Sizes) -> int:
    """As `causal_bytes` with a mask in int32, which is as large as K and V."""
    n = count(sizes, "n")
    rows = n // BLOCK
    return 2 * n * D + (PAIR + 4 * BLOCK**2) * causal_pairs(rows)


def select_bytes(sizes: Sizes) -> int:
    h, m, d, keep = (count(sizes, name) for name in ("h", "m", "d", "keep"))
    return 4 * (6 * keep * BLOCK * d + 2 * (m // BLOCK) * d + 8 * h * (keep * BLOCK + m // BLOCK) + 4 * h * d)


def whole_cache_bytes(sizes: Sizes) -> int:
    h, m, d = (count(sizes, name) for name in "hmd")
    return 4 * (2 * m * d + 6 * h * m)


def absorb_bytes(sizes: Sizes) -> float:
    h, d, r, e, m = (count(sizes, name) for name in ("h", "d", "r", "e", "m"))
    return 1.1 * 4 * (2 * m * r + m * e + 2 * h * d * r + 8 * h * m + 4 * h * (r + d))


def expand_bytes(sizes: Sizes) -> float:
    """Keys and values of all heads, written and read; weights, latents, eight passes over scores."""
    h, d, r, e, m = (count(sizes, name) for name in ("h", "d", "r", "e", "m"))
    return 4 * (4 * h * m * d + 2 * m * r + m * e + 2 * h * d * r + 8 * h * m)


def absorb_flops(sizes: Sizes) -> float:
    h, d, r, e, m = (count(sizes, name) for name in ("h", "d", "r", "e", "m"))
    return 1.02 * (2 * h * m * (2 * r + e) + 4 * h * d * r)


def expand_flops(sizes: Sizes) -> int:
    h, d, r, m = (count(sizes, name) for name in ("h", "d", "r", "m"))
    return 4 * h * m * r * d


def chunk_bytes(sizes: Sizes) -> float:
    n, d, size = (count(sizes, name) for name in ("n", "d", "size"))
    return 1.1 * 4 * -(-n // size) * (8 * d * d + 27 * size * d + 24 * size * size)


def step_bytes(sizes: Sizes) -> int:
    n, d = count(sizes, "n"), count(sizes, "d")
    return 4 * 8 * n * d * d


def chunk_flops(sizes: Sizes) -> float:
    n, d, size = (count(sizes, name) for name in ("n", "d", "size"))
    return 1.15 * 6 * n * d * (d + size)


def one_chunk_flops(sizes: Sizes) -> int:
    n, d = count(sizes, "n"), count(sizes, "d")
    return 6 * n * d * (d + n)


def _bytes(
    points: float,
    limit: Callable[[Sizes], float],
    naive: Callable[[Sizes], float],
    why: str,
    advice: str,
    metric: str = "bytes",
) -> Budget:
    label = "loaded bytes" if metric == "global_load_bytes" else "bytes"
    return Budget(metric, limit, points, label, naive=naive, why=why, advice=advice, unit="B")


def _operations(
    points: float, listed: Callable[[Sizes], int], everything: Callable[[Sizes], int], advice: str
) -> Budget:
    """Of the blocks that queries see: a load behind a mask has no bytes, but its block is multiplied."""
    return Budget(
        "flops",
        lambda sizes: 1.1 * PAIR_FLOPS * listed(sizes),
        points,
        "operations",
        naive=lambda sizes: PAIR_FLOPS * everything(sizes),
        why="two products for each block, and a tenth for the softmax",
        advice=advice,
        unit="FLOP",
    )


def _flops(
    points: float, limit: Callable[[Sizes], float], naive: Callable[[Sizes], float], advice: str
) -> Budget:
    return Budget(
        "matrix_flops",
        limit,
        points,
        "matrix FLOPs",
        naive=naive,
        why="products of small matrices",
        advice=advice,
        unit="FLOP",
    )


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="modern.blocks",
        lab=LAB,
        gpu=GPU,
        correct_points=2,
        evidence=LaunchTrace(arguments=blocks_arguments),
        cases=(blocks_case(128, 1), blocks_case(192, 3), blocks_case(512, 4)),
        rtol=3e-3,
        atol=3e-3,
        budgets=(
            _operations(
                1.5,
                lambda sizes: sum(map(len, lists(sizes))),
                lambda sizes: (count(sizes, "n") // BLOCK) ** 2,
                "Does the loop run over the list, or over all blocks?",
            ),
            _bytes(
                1.5,
                listed_bytes,
                all_bytes,
                "q, and the blocks on the lists",
                "Does the loop run over the list, or over all blocks?",
                "global_load_bytes",
            ),
        ),
        hints=(
            "The loop runs `tl.load(counts + program)` times. Turn i takes the block "
            "`tl.load(lists + program * most + i)`, which has the keys from 64 times that number on.",
            "Only the block with the program's own number is cut by the diagonal. In all others "
            "every query sees "
            "every key.",
            "The rest is `blocks` of lab 12: larger, old, weights, s, total. Scores are in base 2, "
            "so take tl.exp2.",
        ),
        section="4 · A list of blocks",
    ),
    Exercise(
        name="modern.select",
        lab=LAB,
        correct_points=2,
        evidence=TensorGraph(arguments=select_arguments, operators=OPERATORS),
        cases=(
            cache_case(2, 256, 8, 2),
            cache_case(1, 128, 4, 1),
            cache_case(4, 512, 16, 8),
            cache_case(8, 4096, 64, 8),
        ),
        rtol=1e-4,
        atol=1e-5,
        budgets=(
            _bytes(
                3,
                select_bytes,
                whole_cache_bytes,
                "means, and the blocks that were chosen",
                "Which operation reads all keys?",
            ),
        ),
        hints=(
            "Softmax of q · meansᵀ says how much each head wants each block. The sum over heads is "
            "one number "
            "for a block.",
            "`topk(keep).indices` are the blocks. A view of k as (blocks, 64, d), indexed with them, "
            "is a copy of "
            "these blocks alone.",
            "The rest is attention over keep · 64 keys. The order of keys does not matter to it.",
        ),
        section="5 · Choose blocks, then read them",
    ),
    Exercise(
        name="modern.absorb",
        lab=LAB,
        correct_points=2,
        evidence=TensorGraph(arguments=absorb_arguments, operators=OPERATORS),
        cases=(latent_case(2, 4, 6, 2, 5), latent_case(3, 8, 16, 4, 1), latent_case(16, 32, 64, 16, 1024)),
        rtol=1e-4,
        atol=1e-5,
        budgets=(
            _bytes(
                3,
                absorb_bytes,
                expand_bytes,
                "the cache twice, the weights once",
                "Which of your tensors has a row for each key and each head, and d columns?",
            ),
            _flops(
                1,
                absorb_flops,
                expand_flops,
                "Multiply the weights with what is small: one query or one sum, and not m latents.",
            ),
        ),
        hints=(
            "q · (W_k c) = (W_kᵀ q) · c. The right-hand side needs no key, only a query of r numbers "
            "for each head.",
            "torch.bmm on q as (h, 1, d) and w_k (h, d, r) gives these queries. Their scores are one product "
            "with latentᵀ, for all heads together.",
            "Σ weight · (W_v c) = W_v (Σ weight · c): first sum latents, weights @ latent, then "
            "multiply each "
            "head's sum by its own w_v.",
        ),
        section="6 · A cache that is never expanded",
    ),
    Exercise(
        name="modern.chunk",
        lab=LAB,
        correct_points=2,
        evidence=TensorGraph(arguments=chunk_arguments, operators=SOLVES),
        cases=(
            tokens_case(12, 4, 4),
            tokens_case(7, 4, 4),
            tokens_case(64, 8, 16, "forgetful"),
            tokens_case(256, 64, 16),
        ),
        rtol=1e-3,
        atol=1e-4,
        budgets=(
            _bytes(
                2,
                chunk_bytes,
                step_bytes,
                "the state once for each chunk",
                "How often is the d × d state read and written?",
            ),
            _flops(
                3,
                chunk_flops,
                one_chunk_flops,
                "How large are your chunks? The products of pairs grow with the chunk.",
            ),
        ),
        hints=(
            "Let g be the running sum of log α in the chunk. What token j wrote has decayed by "
            "exp(gᵢ − gⱼ) when "
            "token i reads; what the state held at the start, by exp(gᵢ).",
            "The written vectors x solve (I + L)·X = β·(V − exp(g)·K·S), where L is β·(K·Kᵀ)·decay "
            "strictly below "
            "the diagonal: torch.linalg.solve_triangular.",
            "out = exp(g)·Q·S + ((Q·Kᵀ)·decay on and below the diagonal)·X, and S ← exp(g_last)·S + "
            "(K·exp(g_last − "
            "g))ᵀ·X, with S as (d of k) × (d of v). Take exp of differences, not quotients of exps.",
        ),
        section="7 · A state instead of a cache",
    ),
    Exercise(
        name="modern.mask",
        lab=LAB,
        gpu=GPU,
        correct_points=1,
        evidence=LaunchTrace(arguments=mask_arguments),
        cases=(causal_case(64), causal_case(192), causal_case(384)),
        rtol=3e-3,
        atol=3e-3,
        budgets=(
            _bytes(
                1,
                causal_bytes,
                masked_bytes,
                "q, and K and V up to the diagonal",
                "Which arrays does the loop load, and how many bytes of each?",
                "global_load_bytes",
            ),
            _operations(
                1,
                lambda sizes: causal_pairs(count(sizes, "n") // BLOCK),
                lambda sizes: (count(sizes, "n") // BLOCK) ** 2,
                "Where does the loop end?",
            ),
        ),
        hints=(
            "Count the bytes of one turn of the loop, array by array.",
            "What does an element of the mask say that the numbers of its row and column do not?",
            "Compare the positions instead: columns[None, :] <= rows[:, None].",
        ),
        section="Detective · A mask that costs what it saves",
        detective=True,
    ),
)


_prediction = partial(prediction, "", LAB)

PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "modern.visited",
        "4,096 tokens, blocks of 64, causal, and only the 512 keys before a query (its own among "
        "them): blocks visited of 4,096",
        "blocks",
        540,
        "A row of blocks visits its own and the 8 before it, 9; the first eight rows have 1 to 8: 36 "
        "+ 56 · 9 = 540.",
    ),
    _prediction(
        "modern.chosen",
        "Of 65,536 keys, a step reads the means of blocks of 64, and 16 of the blocks with their "
        "values; of all keys and "
        "values that is",
        "%",
        100 * (1024 + 2 * 16 * 64) / (2 * 65536),
        "1,024 means and 2 · 16 · 64 keys and values, of 131,072: 2.3 %.",
        0.03,
    ),
    _prediction(
        "modern.latent",
        "DeepSeek-V3: 128 heads with keys and values of 128 numbers, or a latent of 512 and a shared "
        "key of 64. The "
        "cache is smaller by a factor of",
        "×",
        2 * 128 * 128 / 576,
        "2 · 128 · 128 = 32,768 numbers against 576: 56.9.",
        0.02,
    ),
    _prediction(
        "modern.state",
        "The state of a head with keys and values of 128 numbers is as large as its cache of how "
        "many tokens?",
        "tokens",
        64,
        "128 · 128 numbers against 2 · 128 a token.",
    ),
)
