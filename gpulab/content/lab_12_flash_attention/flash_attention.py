"""Lab 12, part B: what its four exercises ask. Part A has `lab_12_attention`, with the derivation of bytes.

| exercise | asks for | teaches | counted | naive | good | pts |
|---|---|---|---|---|---|---|
| flash | flash(q, k, v, out, lse), numba | one launch | load bytes | keys per query | per block | 7 |
| | | | store bytes | scores, too | results | |
| | | | local bytes | – | 0 | |
| cores | cores(q, k, v, out, lse, n, m), CUDA C++ | registers of mma | load bytes | 3/2 | 1 | 6 |
| | | | instructions/warp FMA | 1 | 0.25 | |
| blocks | blocks(q, k, v, out, lse), Triton | causal tiles | load bytes | all keys | keys up to here | 5 |
| backward | backward(q, k, v, out, lse, dout, tile) | compute it again | peak memory | 3·n·m | tiles | 5 |
| | | | matrix FLOPs | – | 10·n·m·d | |

"Remembered by" is flash at n = m = 1,024, d = 64: extra memory 8.4 MB → 4 KB, bytes 17.8 → 4.7 MB.

Derivations; n queries, m keys, heads of D = 64 numbers.

**flash** (float32): a thread for each query, 128 to a block. q once, k and v once for each block: 4 · (n·d +
⌈n / 128⌉ · 2·m·d) bytes. If each thread loads every key for itself it is 4 · (n·d + 2·n·m·d). Stored are out
and lse, 4 · (n·d + n); a kernel that stores its scores adds 4·n·m. The query and the unfinished output are 2
· 64 registers.

**cores** (float16, float32 sums): a warp has 16 queries: 2 · (n·d + n/16 · 2·m·d) bytes. Loaded anew for
each tile of 16 keys, q is as much again as k: 3/2. 32 scores and their use are 2·d warp-wide multiply-adds,
n·m·2·d / 32 for all, and no kernel on the float32 lanes does with fewer instructions. A tile of 16 keys is
1,024 of them and takes 230 instructions.

**blocks** (float16): 64 queries to a program; query i is at position i + m − n and sees what is not behind
it. A program needs keys up to its last query's position: 2 · (n·d + Σ 2·d·min(m, last + 1)).

**backward**: scores, dP = dO·Vᵀ, and three products for dQ, dK and dV: 5 of 2·n·m·d FLOPs, where forward has
2. With scores, weights and dP of all pairs 3·n·m numbers are there at once. In tiles: three results, and the
tiles.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from gpulab.checks.builders import count, prediction
from gpulab.checks.evidence import LaunchTrace, TensorGraph
from gpulab.checks.operators import COMMON
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Fill, Prediction, Scalar, Shape, Sizes
from gpulab.content.lab_12_flash_attention.attention import LAB, all_pairs_flops, pairs_case, scaled_queries
from gpulab.simulator import hardware

D = 64  # numbers of a head in the kernels
BLOCK = 128  # queries of a block of flash
FRAGMENT = 16  # queries of a warp of cores
PROGRAM = 64  # queries of a program of blocks
A100, H100 = hardware.find("A100"), hardware.find("H100")


def kernel_case(n: int, m: int, scale: float = 1) -> Case:
    return pairs_case(n, m, D, 0, scale)


def backward_case(n: int, m: int, d: int, tile: int) -> Case:
    return pairs_case(n, m, d, tile)


# ---------------------------------------------------------------- arguments


def kernel_arguments(sizes: Sizes, dtype: str = "float32") -> tuple[Array | Scalar, ...]:
    n, m = count(sizes, "n"), count(sizes, "m")
    return (
        Array("q", (n, D), dtype, fill=scaled_queries),
        Array("k", (m, D), dtype),
        Array("v", (m, D), dtype),
        Array("out", (n, D), role="out"),
        Array("lse", (n,), role="out"),
    )


def half_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    return kernel_arguments(sizes, "float16")


def cores_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    more = (Scalar(name, count(sizes, name), "int32") for name in "nm")
    return (*half_arguments(sizes), *more)


def backward_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    """Inputs of the backward pass; out and lse are those of q, k and v, whose contents are made first."""
    n, m, d = (count(sizes, name) for name in ("n", "m", "d"))
    there: dict[str, np.ndarray] = {}

    def kept(name: str, scaled: bool = False) -> Fill:
        def fill(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
            made = scaled_queries(numbers, shape, sizes) if scaled else numbers.standard_normal(shape)
            there[name] = made.astype(np.float32).astype(np.float64)
            return made

        return fill

    def lse(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
        return np.log(np.exp(there["q"] @ there["k"].T).sum(axis=1))

    def out(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
        weights = np.exp(there["q"] @ there["k"].T)
        return weights @ there["v"] / weights.sum(axis=1, keepdims=True)

    return (
        Array("q", (n, d), fill=kept("q", scaled=True)),
        Array("k", (m, d), fill=kept("k")),
        Array("v", (m, d), fill=kept("v")),
        Array("out", (n, d), fill=out),
        Array("lse", (n,), fill=lse),
        Array("dout", (n, d)),
        Scalar("tile", count(sizes, "tile")),
        Array("dq", (n, d), role="out"),
        Array("dk", (m, d), role="out"),
        Array("dv", (m, d), role="out"),
    )


# ---------------------------------------------------------------- counts


def loaded_bytes(sizes: Sizes, rows: int, itemsize: int) -> int:
    """q once, k and v once for each block of so many rows."""
    n, m = count(sizes, "n"), count(sizes, "m")
    return itemsize * (n * D + -(-n // rows) * 2 * m * D)


def stored_bytes(sizes: Sizes) -> int:
    return 4 * (count(sizes, "n") * D + count(sizes, "n"))


def warp_multiply_adds(sizes: Sizes) -> float:
    """Of both products, 32 in one."""
    return count(sizes, "n") * count(sizes, "m") * 2 * D / 32


def causal_bytes(sizes: Sizes) -> int:
    """q once; for each program the keys and values up to the position of its last query."""
    n, m = count(sizes, "n"), count(sizes, "m")
    needed = sum(min(m, first + PROGRAM + m - n) for first in range(0, n, PROGRAM))
    return 2 * (n * D + 2 * D * needed)


def backward_peak(sizes: Sizes) -> int:
    n, m, d, tile = (count(sizes, name) for name in ("n", "m", "d", "tile"))
    return 4 * (2 * n * d + 2 * m * d + 2 * n + 4 * tile * (tile + d))


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="attention.flash",
        lab=LAB,
        correct_points=3,
        cases=(
            kernel_case(20, 17),
            kernel_case(130, 19),
            kernel_case(3, 1),
            kernel_case(9, 20, 1000),
            kernel_case(5, 0),
            kernel_case(256, 32),
        ),
        evidence=LaunchTrace(
            arguments=kernel_arguments,
            shape=lambda sizes: Shape((-(-count(sizes, "n") // BLOCK),), (BLOCK,)),
            race_case="20 queries, 17 keys",
        ),
        budgets=(
            Budget(
                "global_load_bytes",
                lambda s: loaded_bytes(s, BLOCK, 4),
                2.5,
                "loaded bytes",
                naive=lambda s: loaded_bytes(s, 1, 4),
                why="q once, k and v once for each block",
                advice="How many threads of a block load the same key from global memory?",
            ),
            Budget(
                "global_store_bytes",
                stored_bytes,
                1,
                "stored bytes",
                naive=lambda s: stored_bytes(s) + 4 * count(s, "n") * count(s, "m"),
                why="out and lse",
                advice="What do you store besides the results, or more than once?",
            ),
            Budget(
                "local_bytes",
                0,
                0.5,
                "local memory",
                why="64 + 64 numbers in registers",
                advice="Registers have no addresses. Does each loop over a local array run to a constant?",
            ),
        ),
        rtol=1e-3,  # a logit of 1,000 is known to 6e-5, and so is its weight
        atol=5e-4,
        hints=(
            "A thread keeps its query and its unfinished output in two `cuda.local.array(D, float32)`, and "
            "m and "
            "s. All 128 threads fill a tile of 16 keys and 16 values together, wait, use it, wait.",
            "For each key of the tile: the score; larger = max(m, score); old = exp(m − larger); weight = "
            "exp(score − larger). Then s and each number of the output: times old, plus weight (times the "
            "value).",
            "Threads without a query fill tiles and wait with the others; give them zeros for a query. The "
            "last "
            "tile may be short: loop over min(16, k.shape[0] − first). At the end divide by max(s, 1).",
        ),
        section="1 · A thread for each query",
    ),
    Exercise(
        name="attention.cores",
        lab=LAB,
        correct_points=2.4,
        cases=(
            kernel_case(16, 16),
            kernel_case(32, 48),
            kernel_case(16, 64, 100),
            kernel_case(32, 96),
        ),
        evidence=LaunchTrace(
            arguments=cores_arguments,
            shape=lambda sizes: Shape((count(sizes, "n") // FRAGMENT,), (32,)),
            face="cupy",
        ),
        budgets=(
            Budget(
                "global_load_bytes",
                lambda s: loaded_bytes(s, FRAGMENT, 2),
                1.2,
                "loaded bytes",
                naive=lambda s: 1.5 * loaded_bytes(s, FRAGMENT, 2),
                why="q once, k and v once for each 16 queries",
                advice="The queries of a warp stay the same. Do their registers?",
            ),
            Budget(
                "instructions",
                lambda s: 0.3 * warp_multiply_adds(s),
                2.4,
                "instructions",
                naive=warp_multiply_adds,
                why="three tenths of what the float32 lanes would need at least",
                advice="Do both products run on the tensor cores? The weights are in the right lanes "
                "already.",
            ),
        ),
        rtol=2e-3,  # weights are rounded to float16
        atol=2e-3,
        hints=(
            "Before the loop: the queries of the warp as D / 16 = 4 fragments of four registers, as in lab "
            "06. For "
            "16 keys: two accumulators of 16 × 8 scores, each the sum of four mma.",
            "A lane has two rows, g and g + 8. Of a row it has four scores of 16: two in each accumulator. "
            "The "
            "largest of the row is the largest over four lanes: __shfl_xor_sync with 1 and with 2.",
            "weights[0] and [1] are the pairs of the first accumulator in rows g and g + 8, weights[2] and "
            "[3] those "
            "of the second. For output columns 8i …: b[0] = stacked(p, p + D) with p = v + (first + 2t) * D "
            "+ 8i + "
            "g, and b[1] the same eight keys further down. Sum s over the four lanes only at the end.",
        ),
        section="3 · On tensor cores",
    ),
    Exercise(
        name="attention.blocks",
        lab=LAB,
        correct_points=2,
        cases=(kernel_case(20, 40), kernel_case(70, 100, 100), kernel_case(128, 128)),
        evidence=LaunchTrace(arguments=half_arguments, race_case="20 queries, 40 keys"),
        budgets=(
            Budget(
                "global_load_bytes",
                causal_bytes,
                3,
                "loaded bytes",
                naive=lambda s: loaded_bytes(s, PROGRAM, 2),
                why="keys up to each program's last query",
                advice="Which is the last key that the 64 queries of a program see? Does the loop end there?",
            ),
        ),
        rtol=2e-3,
        atol=2e-3,
        hints=(
            "One program for 64 queries: `tl.load` with a 2-D block of addresses, rows[:, None] * D + "
            "across. The "
            "loop takes 32 keys at a time; masked rows get other=0.0.",
            "m and s are blocks of 64 float32, the output 64 × 64. Start m at −inf: tl.full((64,), "
            "-float('inf'), "
            "tl.float32). tl.max(scores, 1) and tl.sum(weights, 1) reduce rows.",
            "Query i stands at i + keys − queries. End the loop at min(keys, (program + 1) * 64 + keys − "
            "queries), "
            "and put −inf where columns[None, :] > position[:, None]. The second tl.dot wants "
            "weights.to(tl.float16).",
        ),
        section="4 · In Triton, and causal",
    ),
    Exercise(
        name="attention.backward",
        lab=LAB,
        evidence=TensorGraph(arguments=backward_arguments, operators=COMMON),
        correct_points=2,
        cases=(backward_case(5, 7, 4, 4), backward_case(12, 5, 8, 8), backward_case(192, 128, 32, 64)),
        rtol=1e-3,
        atol=1e-4,
        budgets=(
            Budget(
                "peak_bytes",
                backward_peak,
                2,
                "peak memory",
                naive=lambda s: 12 * count(s, "n") * count(s, "m"),
                why="three results, and tiles",
                advice="Which of your tensors has queries × keys elements?",
                unit="B",
                case=EVERY,
            ),
            Budget(
                "matrix_flops",
                lambda s: 2.5 * all_pairs_flops(s),
                1,
                "matrix FLOPs",
                naive=lambda s: 3.5 * all_pairs_flops(s),
                why="five products for each tile",
                advice="Is a product computed once for dq and again for dk?",
                unit="FLOP",
                case=EVERY,
            ),
        ),
        hints=(
            "Two loops over tiles, as forward; in each tile the weights come from exp(scores − lse) at "
            "once: no "
            "maximum, no sum.",
            "shares = (dout * out).sum(1), once, before the loops. slopes = weights * (dout · vᵀ − shares): "
            "what a "
            "score's change does to the loss.",
            "For a tile: dv[keys] += weightsᵀ · dout[rows], dq[rows] += slopes · k[keys], dk[keys] += "
            "slopesᵀ · "
            "q[rows]. Start all three with zeros.",
        ),
        section="5 · Backward, computed again",
    ),
)


_prediction = partial(prediction, "attention", LAB)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "wave",
        "A warp of flash has 32 different queries and reads one number of a key: the wavefronts are",
        "",
        1,
        "All 32 lanes read the same word: it is broadcast.",
    ),
    _prediction(
        "growths",
        "Scores in random order: among 1,000 keys the largest so far grows about",
        "times",
        7.485,
        "Key j is a new largest with probability 1/j: 1 + 1/2 + … + 1/1,000.",
        0.15,
    ),
    _prediction(
        "registers",
        "The unfinished output of 16 queries with 64 numbers each is, in each lane of a warp,",
        "registers",
        32,
        "16 · 64 float32 over 32 lanes.",
    ),
    _prediction(
        "saved",
        "For its backward pass, a head with 1,024 queries and keys of 64 float32 numbers has to keep, "
        "beyond q, k, "
        "v and out,",
        "bytes",
        4096,
        "A log-sum-exp for each query.",
    ),
    _prediction(
        "programs",
        "16 heads of 4,096 queries, 128 to a block: cut along the sequence, too, they make",
        "blocks",
        512,
        "16 · 32.",
    ),
    _prediction(
        "exponentials",
        "On an H100, heads of 128: the exponential of a score takes, in percent of the time of its 256 "
        "multiply-adds "
        "on the tensor cores in float16,",
        "%",
        100 * (1 / 16) / (2 * 128 / int(H100.tensor_fma["float16"])),
        "16 exponentials a clock and SM: one takes 1/16 clock. An H100's SM makes 2,048 float16 "
        "multiply-adds a clock: 256 of them take 1/8.",
        0.05,
    ),
)
