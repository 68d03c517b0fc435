"""Lab 07, part B: what its five exercises on CuPy, streams and convolution ask.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| cupy.normalise | host (x, mean, var, gamma, beta, out) | fusing, folding | launches | 6 | 2 | 4 |
| | | | bytes/element | 56 | 16 | |
| cupy.rms | host (x, y, out) | a reduction that maps first | launches | 4 | 1 | 3 |
| | | | bytes/element | 28 | 8 | |
| cupy.pipeline | pipeline(chunks, buffers) → plan | streams, events, engines | makespan | 3 | 1.25 | 4 |
| cupy.winograd | winograd() → three matrices | fewer products | products | 6 | 4 | 3 |
| cupy.gemm | gemm(rows, cols, inner, …) → a call | a library's conventions | – | – | – | 3 |

Derivations, float32, for n rows of c channels:

**normalise**: one kernel for each operator of max((x − mean) · rsqrt(var + eps) · gamma + beta, 0): four of
them read two arrays of the full size or one and a vector, 8 B, and write 4 B; the last reads 4 B and writes
4 B; rsqrt reads and writes the vector. 4 · 12 + 8 = 56 B per element and 8 B per channel, 6 launches.
Folded, one kernel makes scale = gamma · rsqrt(var + eps) and shift = beta − mean · scale of the vectors (16
B read, 8 B written per channel), the other reads x, scale and shift and writes out: 16 B per element, 2
launches. One kernel for all reads five numbers per element: 24 B.

**rms**: the root of the mean square difference of rows. One reduction reads both arrays once, 8 B per
element, and writes 4 B per row. Difference (12 B), square (8 B read twice as a factor, 4 B written: 12 B)
and sum (4 B) as kernels of their own: 28 B, and the root reads and writes 8 B per row, the sum writes 4 B.

**pipeline**: copy in, kernel, copy out take 1 each for all data, 1/c for one of c chunks. In one stream: 3.
With three buffers or more all engines are busy once the pipeline is full: (c + 2) / c, so 1.25 for c = 8.
No plan is shorter: the first chunk's kernel and copy out come after its copy in, and the last chunk's after
the copy in of all. With b < 3 buffers a buffer is busy for 3/c per chunk, and the next one starts 1/c
later: start of chunk k is 3 · ⌊k/b⌋ + k mod b, in units of 1/c.

**winograd**: two outputs of a filter with three taps take 2 · 3 products, or m + r − 1 = 4, which is the
least (S. Winograd, "Arithmetic Complexity of Computations", 1980).

**gemm**: a matrix stored row by row is, read in columns, its transpose, with its pitch as leading dimension.
Cᵀ = Bᵀ · Aᵀ, so B comes first, m = cols and n = rows. B as it is gives Bᵀ (N), Bᵀ as it is gives B (T).

Where a count is provably the least possible the budget is that count; elsewhere it leaves 10 %.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gpulab.checks.builders import prediction
from gpulab.checks.evidence import AnsweredCases, LaunchTrace
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Sizes

LAB = "07"
EPS = 1e-5  # added to the variance in cupy.normalise
STAGES = ("in", "kernel", "out")


def matrix(rows: int, cols: int) -> Case:
    return Case(f"{rows} × {cols}", {"rows": rows, "cols": cols})


def pieces(chunks: int, buffers: int) -> Case:
    """A pipeline of chunks through buffers."""
    name = f"{chunks} chunk{'s' * (chunks > 1)}, {buffers} buffer{'s' * (buffers > 1)}"
    return Case(name, {"chunks": chunks, "buffers": buffers})


def _shape(sizes: Sizes) -> tuple[int, int]:
    return int(sizes["rows"]), int(sizes["cols"])


def _elements(sizes: Sizes) -> int:
    rows, cols = _shape(sizes)
    return rows * cols


def normalise_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    rows, cols = _shape(sizes)
    return (
        Array("x", (rows, cols)),
        Array("mean", (cols,)),
        Array("var", (cols,), fill="uniform"),
        Array("gamma", (cols,)),
        Array("beta", (cols,)),
        Array("out", (rows, cols), role="out"),
    )


def rms_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    rows, cols = _shape(sizes)
    return (Array("x", (rows, cols)), Array("y", (rows, cols)), Array("out", (rows,), role="out"))


def shortest(sizes: Sizes) -> float:
    """The least makespan of a pipeline with equal stages of length 1."""
    chunks, buffers = int(sizes["chunks"]), min(int(sizes["buffers"]), 3)
    last = chunks - 1
    start = 3 * (last // buffers) + last % buffers
    return (start + 3) / chunks


GEMM_CASES = tuple(
    Case(name, {"kind": name})
    for name in ("square", "rectangular", "transposed weights", "with pitches", "any of these")
)


def gemm_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """Sizes, pitches and whether B is stored transposed."""
    kind, found = str(sizes["kind"]), []
    for _ in range(4):
        rows, cols, inner = (int(n) for n in generator.permutation(np.arange(2, 12))[:3])
        if kind == "square":
            rows = cols = inner
        transposed = kind == "transposed weights" or (kind == "any of these" and generator.random() < 0.5)
        wide = kind in ("with pitches", "any of these")
        widths = (inner, inner if transposed else cols, cols)
        pitches = [width + (int(generator.integers(1, 6)) if wide else 0) for width in widths]
        found.append((rows, cols, inner, *pitches, bool(transposed)))
    return found


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="cupy.normalise",
        lab=LAB,
        varies=("rows", "cols"),
        correct_points=1.6,
        evidence=LaunchTrace(arguments=normalise_arguments, face="cupy"),
        cases=tuple(matrix(*size) for size in ((64, 32), (7, 96), (1, 1), (33, 257), (512, 96))),
        budgets=(
            Budget(
                "launches",
                2,
                1.2,
                "launches",
                naive=6,
                why="one for the vectors, one for the matrix",
                advice="Which operations can be one line of one kernel?",
                case=EVERY,
            ),
            Budget(
                "global_bytes",
                lambda sizes: round(1.1 * (16 * _elements(sizes) + 24 * int(sizes["cols"]))),
                1.2,
                "bytes",
                naive=lambda sizes: 56 * _elements(sizes) + 8 * int(sizes["cols"]),
                why="16 B per element, and 10 %",
                advice="Each element loads numbers that are the same for its whole column. Could fewer of "
                "them be enough?",
                case=EVERY,
            ),
        ),
        rtol=1e-5,
        atol=1e-5,
        hints=(
            "(x − mean) · s · gamma + beta is x times a factor plus a shift. What are these two for each "
            "column?",
            "The first kernel computes `scale` and `shift` from the four vectors. An ElementwiseKernel can "
            "have two outputs.",
            "Arrays of shape (n, c) and (c,) broadcast in an ElementwiseKernel as in NumPy. fmaxf(…, 0.0f) "
            "gives the larger of a number and 0.",
        ),
        section="2 · One line for each element",
    ),
    Exercise(
        name="cupy.rms",
        lab=LAB,
        varies=("rows", "cols"),
        correct_points=1.2,
        evidence=LaunchTrace(arguments=rms_arguments, face="cupy"),
        cases=tuple(matrix(*size) for size in ((16, 64), (5, 33), (1, 1), (200, 333))),
        budgets=(
            Budget(
                "launches",
                1,
                0.9,
                "launches",
                naive=4,
                why="a reduction maps before and after",
                advice="What can a ReductionKernel do to each element before it adds, and to the sum after?",
                case=EVERY,
            ),
            Budget(
                "global_bytes",
                lambda sizes: 8 * _elements(sizes) + 4 * int(sizes["rows"]),
                0.9,
                "bytes",
                naive=lambda sizes: 28 * _elements(sizes) + 12 * int(sizes["rows"]),
                why="each element once",
                advice="That is {times} × the two arrays. Which temporary array could be left out?",
                case=EVERY,
            ),
        ),
        rtol=1e-5,
        hints=(
            "A ReductionKernel may have two inputs. Its map expression sees one element of each.",
            "Map `(x - y) * (x - y)`. In the other expressions `a` and `b` are mapped values. What must the "
            "post-map do with the sum?",
            "In the post-map expression, `_in_ind.size() / _out_ind.size()` is the number of elements of a "
            "row. Call the kernel with axis=1 and out=….",
        ),
        section="3 · Many into one",
    ),
    Exercise(
        name="cupy.pipeline",
        lab=LAB,
        evidence=AnsweredCases(
            questions=lambda sizes, generator: [(int(sizes["chunks"]), int(sizes["buffers"]))],
            measured=True,
        ),
        correct_points=1.6,
        cases=(pieces(1, 1), pieces(5, 1), pieces(8, 2), pieces(7, 7), pieces(8, 3)),
        budgets=(
            Budget(
                "makespan",
                shortest,
                2.4,
                "makespan",
                naive=3,
                unit="stages",
                why="two chunks longer than one stage",
                advice="At any moment three chunks could be under way, one in each engine. Which stream or "
                "event of your plan keeps the next copy in waiting?",
                case=EVERY,
            ),
        ),
        hints=(
            "Operations of one stream never overlap. How many streams are needed to keep three engines busy?",
            "Chunk k uses buffer k % buffers, and so does chunk k + buffers. What must have ended before the "
            "copy in of the second one?",
            "Give each buffer its own stream, and put a chunk's three operations into the stream of its "
            "buffer.",
        ),
        section="4 · Streams, events and engines",
    ),
    Exercise(
        name="cupy.gemm",
        lab=LAB,
        evidence=AnsweredCases(questions=gemm_questions, measured=True),
        correct_points=3,
        cases=GEMM_CASES,
        hints=(
            "Your C, read in columns, is Cᵀ. How many rows and columns has Cᵀ? They are m and n.",
            "Cᵀ = Bᵀ · Aᵀ. Your A and B, read in columns, are Aᵀ and Bᵀ already.",
            "If B is stored transposed, cuBLAS reads it as B itself, but Bᵀ is what the product needs.",
        ),
        section="8 · Who has written it already",
    ),
    Exercise(
        name="cupy.winograd",
        lab=LAB,
        evidence=AnsweredCases(questions=lambda sizes, generator: [()], measured=True),
        correct_points=1,
        cases=(Case("2 outputs, 3 taps", {"outputs": 2, "taps": 3}),),
        budgets=(
            Budget(
                "products",
                4,
                2,
                "products",
                naive=6,
                unit="products",
                why="2 + 3 − 1",
                advice="Two of your products have the same sum of inputs, or of weights. Can one product "
                "replace both?",
            ),
        ),
        hints=(
            "(d0 − d2) · g0 and (d1 − d3) · g2 are two of the four: rows [1, 0, −1, 0] with [1, 0, 0] and "
            "[0, 1, 0, −1] with [0, 0, 1].",
            "Left are u = d1 · G1 + d2 · G2 and v = d1 · G2 + d2 · G1. Write u + v and u − v as products.",
            "u + v = (d1 + d2) · (G1 + G2) and u − v = (d1 − d2) · (G1 − G2), and u and v are half their sum "
            "and half their difference. Put the halves into the weights: G1 + G2 = g0 + g1 + g2, "
            "G1 − G2 = g1 − g0 − g2.",
        ),
        section="7 · Convolution three ways",
    ),
)


_prediction = partial(prediction, "cupy", LAB)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "column",
        "The number that cuBLAS finds in row 0 and column 1 if ld = 3 and 1 to 6 lie one after the other",
        "",
        reason="Element (i, j) lies at i + j · ld, so it is element 3 of memory, counted from 0.",
    ),
    _prediction(
        "stride",
        "Distance between neighbouring pixels of one channel in a row of a tensor of shape (8, 3, 224, 224), "
        "stored channels last",
        "elements",
        3,
        "Channels last means that the three channels of a pixel are neighbours, so the next pixel is 3 "
        "elements away.",
    ),
    _prediction(
        "temporaries",
        "With one kernel for each operator, a * x + b with arrays of a million float32 numbers moves",
        "MB",
        24,
        "Two kernels, each of which reads two arrays and writes one: 6 · 4 MB.",
    ),
    _prediction(
        "overlap",
        "Copy in, kernel and copy out take 1 each. In 8 chunks that overlap as well as they can, they take",
        "stages",
        1.25,
        "The copies in take 1. The last chunk's kernel and copy out follow, 1/8 of a stage each.",
    ),
    _prediction(
        "one_copy_engine",
        "With one copy engine for both directions, and a chunk's three operations issued one after the "
        "other, the same takes",
        "stages",
        3,
        "The copy in of chunk 1 is in the queue behind the copy out of chunk 0, which waits for its kernel. "
        "So nothing overlaps.",
    ),
    _prediction(
        "held",
        "After three arrays of 1,000,000 B have been made and freed one after the other, the pool holds",
        "bytes",
        1_000_448,
        "It holds one block, which was used three times: 1,000,000 rounded up to a multiple of 512.",
    ),
    _prediction(
        "tile",
        "Products per output of a 3 × 3 filter if F(2, 3) is used along both axes",
        "products",
        4,
        "4 · 4 products make a tile of 2 · 2 outputs, and 16 / 4 = 4. The direct way takes 9.",
    ),
)
