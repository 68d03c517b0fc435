"""Lab 22, project A: what its two exercises ask. Correctness 40, score 40; the written report has 20.

| exercise | asks for | counted | naive | good | bound | points |
|---|---|---|---|---|---|---|
| forward | forward(q, k, v, out, lse, causal) | right | | | | 20 |
| | heads that share keys; the diagonal | loaded bytes, causal | 0.34 MB | 0.147 | 0.098 | 8 |
| | rows of several heads in a program | loaded bytes, few queries | 0.41 MB | 0.055 | 0.055 | 5 |
| | masks where they are needed | instructions, causal | 55,600 | 33,100 | 3,500 | 6 |
| | tiles that fit | spilled bytes | – | 0 | 0 | 1 |
| backward | backward(q, k, v, out, lse, dout, causal, …) | right | | | | 20 |
| | sums over heads and queries in order | global atomics | – | 0 | 0 | 2 |
| | two loops over tiles | loaded bytes, causal | 0.90 MB | 0.67 | 0.25 | 9 |
| | visits of tiles | instructions, causal | 111,600 | 83,400 | 6,900 | 9 |

Derivations; H query heads of n queries, G heads of m keys and values, D = 64, g = H/G, float16.

**Pairs.** Causal, query i sees keys j ≤ i + m − n: H · Σ (i + 1 + m − n) pairs; 37,056 at H = 2, n = m =
192.

**forward.** A program of R rows loads each row of q once and the keys that its last row sees: 2 · D · (H·n +
Σ 2 · seen). Naive: 64 queries of one head, all keys: 2 · D · (H·n + H · ⌈n/64⌉ · 2·m). Good: R = 128 rows of
the g heads that share keys, position by position, so that keys end at the diagonal for all of them. With few
queries, 4 of 8 heads, all 32 rows are one program, and keys are loaded once in place of eight times.
Everything once is the bound. Instructions: naive 1.54 a pair (64 × 32 tiles, masks everywhere, all keys),
ours 0.89, both counted; 1.5 has no points, the budget is 1. Bound: an `mma` has 2,048 multiply-adds and
a pair 2·D, 1/16; and an exponential a pair, 1/32.

**backward.** shares = Σ out · dout are 6·D·H·n bytes. dk and dv: a program has 64 keys and loads q, dout (4·D
bytes a row), lse and shares (8) of all rows that see one of them. dq: 64 rows, the keys that the last one
sees. Seven products of tiles where atomics would do with five; atomics add in any order, and the last bits
then differ from run to run. Instructions: 1,856 for each visit of a 64 × 32 tile in ours. Bound: every input
once; five products, and an exponential a pair.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from gpulab.checks.builders import prediction
from gpulab.checks.evidence import LaunchTrace
from gpulab.checks.spec import Array, Budget, Case, Exercise, Fill, Prediction, Scalar, Sizes
from gpulab.content.lab_12_flash_attention.attention import scaled_queries

LAB = "22"
D = 64  # numbers of a head
MARGIN = 1.1  # of a budget over what ours costs


def _n(sizes: Sizes, *names: str) -> tuple[int, ...]:
    return tuple(int(sizes[name]) for name in names)


def heads_case(
    heads: int, shared: int, n: int, m: int, causal: bool, name: str = "", scale: float = 1
) -> Case:
    """`heads` of n queries on `shared` heads of m keys; logits of about ±`scale`."""
    said = f"{heads} and {shared} heads, {n} × {m}" + (", causal" if causal else "")
    said += f", logits of ±{scale:,.0f}" if scale > 1 else ""
    sizes = {"heads": heads, "shared": shared, "n": n, "m": m, "causal": int(causal), "scale": scale}
    return Case(name or said, sizes)


# ---------------------------------------------------------------- arguments


def _inputs(sizes: Sizes) -> tuple[Array, ...]:
    heads, shared, n, m = _n(sizes, "heads", "shared", "n", "m")
    keys = (Array(name, (shared, m, D), "float16") for name in "kv")
    return (Array("q", (heads, n, D), "float16", fill=scaled_queries), *keys)


def forward_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    heads, n, causal = _n(sizes, "heads", "n", "causal")
    return (
        *_inputs(sizes),
        Array("out", (heads, n, D), role="out"),
        Array("lse", (heads, n), role="out"),
        Scalar("causal", causal),
    )


def seen(n: int, m: int, causal: int) -> np.ndarray:
    """(n, m): which query sees which key."""
    return (np.arange(m) <= np.arange(n)[:, None] + m - n) | (not causal)


def attend(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: int) -> tuple[np.ndarray, ...]:
    """Output, log-sum-exps and weights of all heads, in the type of the inputs."""
    group = len(q) // len(k)
    keys, values = k.repeat(group, axis=0), v.repeat(group, axis=0)
    scores = np.where(seen(q.shape[1], k.shape[1], causal), q @ keys.swapaxes(1, 2), -np.inf)
    largest = scores.max(axis=2, keepdims=True)
    lse = largest + np.log(np.exp(scores - largest).sum(axis=2, keepdims=True))
    weights = np.exp(scores - lse)
    return weights @ values, lse[..., 0], weights


def backward_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    """out and lse are those of q, k and v, whose contents are made first."""
    heads, shared, n, m, causal = _n(sizes, "heads", "shared", "n", "m", "causal")
    there: dict[str, np.ndarray] = {}

    def kept(name: str, fill: Callable[..., np.ndarray]) -> Fill:
        def made(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
            there[name] = fill(numbers, shape, sizes).astype(np.float16).astype(np.float64)
            return there[name]

        return made

    def normal(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
        return numbers.standard_normal(shape)

    def result(which: int) -> Fill:
        return lambda numbers, shape, sizes: attend(there["q"], there["k"], there["v"], causal)[which]

    return (
        Array("q", (heads, n, D), "float16", fill=kept("q", scaled_queries)),
        Array("k", (shared, m, D), "float16", fill=kept("k", normal)),
        Array("v", (shared, m, D), "float16", fill=kept("v", normal)),
        Array("out", (heads, n, D), fill=result(0)),
        Array("lse", (heads, n), fill=result(1)),
        Array("dout", (heads, n, D), "float16"),
        Scalar("causal", causal),
        Array("shares", (heads, n), role="out"),
        Array("dq", (heads, n, D), role="out"),
        Array("dk", (shared, m, D), role="out"),
        Array("dv", (shared, m, D), role="out"),
    )


# ---------------------------------------------------------------- counts


def pairs(sizes: Sizes) -> int:
    """Queries times the keys that they see, of all heads."""
    heads, n, m, causal = _n(sizes, "heads", "n", "m", "causal")
    return heads * int(seen(n, m, causal).sum())


def _ends(sizes: Sizes, rows: int) -> list[int]:
    """For each program of so many rows of a group of heads: the keys that its last row sees."""
    heads, shared, n, m, causal = _n(sizes, "heads", "shared", "n", "m", "causal")
    group = heads // shared
    last = [min((first + rows - 1) // group, n - 1) for first in range(0, group * n, rows)]
    return [position + 1 + m - n if causal else m for position in last]


def forward_bytes(sizes: Sizes, rows: int = 128) -> int:
    """Loaded by programs whose rows are of all heads that share keys."""
    heads, shared, n = _n(sizes, "heads", "shared", "n")
    return 2 * D * (heads * n + shared * 2 * sum(_ends(sizes, rows)))


def forward_bytes_by_head(sizes: Sizes) -> int:
    """Loaded by programs of 64 queries of one head, each of which loads all keys."""
    heads, n, m = _n(sizes, "heads", "n", "m")
    return 2 * D * (heads * n + heads * -(-n // 64) * 2 * m)


def inputs_once(sizes: Sizes) -> int:
    """Bytes of q, k and v."""
    heads, shared, n, m = _n(sizes, "heads", "shared", "n", "m")
    return 2 * D * (heads * n + 2 * shared * m)


def _starts(sizes: Sizes) -> list[int]:
    """For each tile of 64 keys: the first row of a group of heads that sees one of them."""
    heads, shared, n, m, causal = _n(sizes, "heads", "shared", "n", "m", "causal")
    return [max(first + n - m, 0) * (heads // shared) * causal for first in range(0, m, 64)]


def backward_bytes(sizes: Sizes) -> int:
    """Loaded for shares, for dk and dv, and for dq, in tiles of 64."""
    heads, shared, n, m = _n(sizes, "heads", "shared", "n", "m")
    rows = heads // shared * n
    by_keys = 4 * D * m + sum((rows - start) * (4 * D + 8) for start in _starts(sizes))
    by_rows = rows * (4 * D + 8) + 4 * D * sum(_ends(sizes, 64))
    return 6 * D * heads * n + shared * (by_keys + by_rows)


def backward_once(sizes: Sizes) -> int:
    """Bytes of q, k, v, dout, out and lse."""
    heads, n = _n(sizes, "heads", "n")
    return inputs_once(sizes) + heads * n * (6 * D + 4)


def visits(sizes: Sizes) -> int:
    """Tiles of 64 × 32 that both loops of backward visit."""
    heads, shared, n = _n(sizes, "heads", "shared", "n")
    by_keys = sum(-(-heads // shared * n // 32) - start // 32 for start in _starts(sizes))
    return shared * (by_keys + sum(-(-end // 32) for end in _ends(sizes, 64)))


def everything(sizes: Sizes) -> Sizes:
    """The same sizes where every query sees every key."""
    return {**sizes, "causal": 0}


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="attention_project.forward",
        lab=LAB,
        correct_points=20,
        cases=(
            heads_case(2, 1, 10, 17, True),
            heads_case(4, 2, 70, 33, False),
            heads_case(3, 3, 1, 40, True),
            heads_case(8, 1, 4, 200, True, name="few queries", scale=100),
            heads_case(2, 1, 192, 192, True, name="causal"),
        ),
        evidence=LaunchTrace(arguments=forward_arguments, race_case="2 and 1 heads, 10 × 17, causal"),
        budgets=(
            Budget(
                "global_load_bytes",
                lambda s: round(MARGIN * forward_bytes(s)),
                8,
                "loaded bytes, causal",
                naive=forward_bytes_by_head,
                bound=inputs_once,
                why="a tenth more than with 128 rows a program and keys up to the last row",
                advice="Which rows of a program need the last keys that it loads? And which programs load "
                "the same keys?",
            ),
            Budget(
                "global_load_bytes",
                lambda s: round(MARGIN * forward_bytes(s)),
                5,
                "loaded bytes, few queries",
                naive=forward_bytes_by_head,
                bound=inputs_once,
                why="keys once for the heads that share them",
                advice="Eight heads with four queries each share their keys. How often are those loaded?",
                case="few queries",
            ),
            Budget(
                "instructions",
                pairs,
                6,
                "instructions, causal",
                naive=lambda s: round(1.5 * pairs(s)),
                bound=lambda s: (1 / 16 + 1 / 32) * pairs(s),
                why="one for each pair of a query and a key that it sees",
                advice="Only the tiles on the diagonal and the last tile need masks. Which other "
                "instructions in the loop are not products?",
            ),
            Budget(
                "spill_bytes",
                0,
                1,
                "spilled registers",
                bound=0,
                why="a tile has to fit into registers",
                advice="ptxas found no room for your tiles in registers. Use more warps, or fewer rows.",
            ),
        ),
        rtol=2e-3,  # weights are rounded to float16
        atol=2e-3,
        hints=(
            "Start from `blocks` of lab 12 B. Use a second program index for the head of keys. The query "
            "heads that share key head h are h · g to h · g + g − 1.",
            "Let row `index` of a group be position index // g of the group's head index % g. Then 128 rows "
            "of g heads end at nearly the same key. Such a row is row (head · g + index % g) · n + index // "
            "g of q.",
            "Write two loops: first the keys that all rows see, without a mask, and then the rest, with a "
            "mask. exp2(scores · log₂e − m) is one multiply-add and one more instruction.",
        ),
        section="2 · Milestone 1: forward",
    ),
    Exercise(
        name="attention_project.backward",
        lab=LAB,
        correct_points=20,
        cases=(
            heads_case(2, 1, 10, 17, True),
            heads_case(4, 2, 37, 33, False, scale=20),
            heads_case(3, 3, 1, 40, True),
            heads_case(2, 1, 192, 192, True, name="causal"),
        ),
        evidence=LaunchTrace(arguments=backward_arguments, race_case="2 and 1 heads, 10 × 17, causal"),
        budgets=(
            Budget(
                "global_atomics",
                0,
                2,
                "atomics",
                bound=0,
                why="the same bits in every run",
                advice="Let one program add up each element of a result.",
            ),
            Budget(
                "global_load_bytes",
                lambda s: round(MARGIN * backward_bytes(s)),
                9,
                "loaded bytes, causal",
                naive=lambda s: backward_bytes(everything(s)),
                bound=backward_once,
                why="a tenth more than with tiles of 64, none beyond the diagonal",
                advice="Which is the first query that sees a tile of keys? And which is the last key that a "
                "tile of queries sees?",
            ),
            Budget(
                "instructions",
                lambda s: 2000 * visits(s),
                9,
                "instructions, causal",
                naive=lambda s: 1550 * visits(everything(s)),
                bound=lambda s: (5 / 32 + 1 / 32) * pairs(s),
                why="2,000 for each visit of a 64 × 32 tile",
                advice="How many tiles do your loops visit, and how many have a pair that counts?",
            ),
        ),
        rtol=5e-3,
        atol=2e-2,  # slopes are rounded to float16, and up to 192 of them are added
        hints=(
            "Write three kernels. The first computes shares[row] = Σ out · dout. The second keeps a tile of "
            "keys and loops over rows. The third keeps a tile of rows and loops over keys.",
            "In the second kernel, everything is transposed: weightsᵀ = exp(k · qᵀ − lse), dv += weightsᵀ · "
            "dout, slopesᵀ = weightsᵀ · (v · doutᵀ − shares), dk += slopesᵀ · q. One loop covers the rows of "
            "all heads that share these keys.",
            "Position max(first + n − m, 0) is the first that sees key `first`. Start the loop there: times "
            "g, rounded down to a tile. For rows beyond the end, load lse with other=float('inf'), so that "
            "their weights are 0.",
        ),
        section="3 · Milestone 2: backward",
    ),
)


_prediction = partial(prediction, "attention_project", LAB)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "shared",
        "8 query heads with 4 queries each share one head of 200 keys, with a program for each query head. "
        "Bytes of keys and values that are loaded",
        "bytes",
        8 * 200 * 2 * 64 * 2,
        "8 programs · 200 keys · 2 arrays · 64 numbers · 2 bytes = 409,600. One program for all heads loads "
        "an eighth.",
    ),
    _prediction(
        "wasted",
        "4 query heads, 2 key heads, n = m = 256, causal, 128 rows of a group in each program. Share of the "
        "visited pairs that counts",
        "%",
        100 * 131_584 / (2 * 128 * (64 + 128 + 192 + 256)),
        "A group has 512 rows, so it has 4 programs of 64 positions each. They visit 128 · (64 + 128 + 192 + "
        "256) = 81,920 pairs for each of the two key heads, 163,840 together, and 131,584 of them count.",
        0.02,
    ),
    _prediction(
        "products",
        "Without atomics, with dk and dv in one kernel and dq in another. Products of tiles, instead of five",
        "products",
        7,
        "The scores and dP = dout · Vᵀ are computed twice: there are 4 products for dk and dv, and 3 for dq.",
    ),
)
