"""Lab 11: what its nine exercises ask.

| exercise | signature | teaches | counted | naive | good | budget |
|---|---|---|---|---|---|---|
| momentum | momentum(p, g, m, lr, mu) | programs, blocks, masks | loaded bytes/element | 20 | 12 | 12 |
| | | | launches | 3 | 1 | 1 |
| softmax | softmax(x, out) | a row in a program | bytes moved/element | 32 | 8 | 8 |
| | | | launches | 5 | 1 | 1 |
| softmax_columns | softmax_columns(x, out) | order of access, 2-D blocks | sectors | 2·n | n/4 | n/4 |
| layer_norm | layer_norm(x, weight, bias, out) | rows that share | loaded bytes/element | 12 | 6 | 6 |
| gelu_dropout | gelu_dropout(x, bias, out, p, seed) | seeded numbers | bytes moved/element | 42 | 12 | 12 |
| | | | launches | 6 | 1 | 1 |
| gelu_dropout_back | with grad as first argument | computing again | bytes moved/element | 29 | 16 | 16 |
| order | order(tiles_m, tiles_n, wave), a plan | sharing in L2 | panels | 2,531 | 887 | 916 |
| linear | linear(x, w, bias, out) | tiles, epilogue | loaded bytes | 2mnk/8 | 2mnk/32 | 1.1 · good |
| | | | launches | 3 | 1 | 1 |
| fuse | fuse(operations, outputs), a plan | what a compiler decides | bytes over fewest | 4.00 | 1 | 1 |
| | | | launches over fewest | 5 | 1 | 1 |

Derivations; n elements of 4 bytes, a sector has 32 bytes, rows × columns = M × N.

**momentum**: m = mu·m + g and p = p − lr·m read p, g and m, 12 B, and write p and m, 8 B. As three array
operations: m *= mu reads 4, m += g reads 8, p −= lr·m reads 8: 20. A block of fewer elements than its program
has threads loads more, too: Triton lets all threads load, some the same element. With 32 elements and 128
threads each is loaded 4 times, 48 B.

**softmax**: five operations. amax reads MN and writes M; the difference reads MN + M, writes MN; exp reads
MN, writes MN; the sum reads MN, writes M; the quotient reads MN + M, writes MN. Together 5MN + 2M read and
3MN + 2M written: 8MN + 4M elements; fused 2MN.

**softmax_columns**: a program per column asks, with each of its 4-byte elements, for another sector: n loaded
and n stored. Eight or more neighbouring columns in a program: n/8 and n/8.

**layer_norm**: a program per row loads x, weight and bias, 12 B for each element. With R rows in a program
weight and bias serve R rows: 4 + 8/R; four rows are asked for: 6.

**gelu_dropout**: x + bias reads and writes 4 each (the bias is small), gelu 4 and 4, the random numbers are
written, 4, the comparison reads 4 and writes 1, the product with it reads 4 + 1 and writes 4, the division
by 1 − p reads 4 and writes 4: 8 + 8 + 4 + 5 + 9 + 8 = 42 in six launches. Fused: x, bias and out, 12.

**gelu_dropout_back**: with what forward kept, grad · mask reads 4 + 1 and writes 4, the division 4 and 4,
gelu's derivative reads grad and x + bias, 8, and writes 4: 9 + 8 + 12 = 29. Fused: grad, x, bias, out: 16;
nothing was kept but x.

**order**: programs run in waves of 108. A wave reads each panel (a row of tiles of A, a column of tiles of B)
that its tiles need once. Row after row on 64 × 64 tiles a wave has all 64 columns and 2 or 3 rows: 2,531 in
38 waves. h × w tiles need h + w panels, so 108 tiles at least 21 (10 × 11) and the last 100 at least 20: 37 ·
21 + 20 = 797, which no order quite reaches; in groups of 8 rows it is 887. The budget is 1.15 · 797.

**linear**: each tile of BM × BN loads its rows of x and columns of w: 2 B · mnk · (1/BM + 1/BN). Tiles of 64
× 64 load a quarter of those of 16 × 16. The product, the bias and the ReLU are three launches.

**fuse**: by exhaustive search over all legal groupings (`tests/labs/test_11_triton_and_fusion.py`).

Where a count is provably the least possible the budget is that count; elsewhere it leaves 10 %.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from gpulab.checks.builders import prediction
from gpulab.checks.evidence import AnsweredCases, LaunchTrace
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Sizes

LAB = "11"
EPSILON = 1e-5  # that layer norms add to the variance
THREADS = 128  # of a program, as Triton starts it unless told otherwise
WAVE = 108  # programs that run at once: one on each SM of an A100
ROOM = 1.15  # of the least panels that one can hope for
Arguments = tuple[Array | Scalar, ...]


def _vector(n: int) -> Case:
    return Case(f"{n:,}", {"n": n})


def _matrix(rows: int, cols: int, seed: int = 7) -> Case:
    return Case(f"{rows} × {cols}", {"rows": rows, "cols": cols, "seed": seed})


def masked(rows: int, cols: int) -> Case:
    """A matrix of logits in which some entries are −∞."""
    return Case(f"{rows} × {cols}, masked", {"rows": rows, "cols": cols, "masked": 1})


def _product(m: int, n: int, k: int) -> Case:
    return Case(f"{m} × {n} × {k}", {"m": m, "n": n, "k": k})


def cancelling(m: int, n: int, k: int) -> Case:
    """Products whose first half is large and whose second half takes it off again: sums in 16 bits show."""
    return Case(f"{m} × {n} × {k}, cancelling", {"m": m, "n": n, "k": k, "cancelling": 1})


def tiles(m: int, n: int, wave: int) -> Case:
    """A grid of m × n tiles, of which `wave` are computed at once."""
    return Case(f"{m} × {n} in waves of {wave}", {"m": m, "n": n, "wave": wave})


def _elements(sizes: Sizes) -> int:
    return int(sizes["n"]) if "rows" not in sizes else int(sizes["rows"]) * int(sizes["cols"])


# ---------------------------------------------------------------- contents


def logits(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Rows around a centre below 0, down to −1,000. Where the sizes say masked, a tenth is −∞, never a whole
    row or column."""
    values = numbers.uniform(-900, -100, (shape[0], 1)) + 10 * numbers.standard_normal(shape)
    if sizes.get("masked"):
        gone = numbers.random(shape) < 0.1
        gone[:, 0], gone[0] = False, False
        values[gone] = -np.inf
    return values


def columns_of_logits(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """The same, with a centre for each column."""
    return logits(numbers, shape[::-1], sizes).T


def far_from_zero(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Numbers that differ by about one and lie around a thousand."""
    return 1000 + numbers.standard_normal(shape)


def small(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Weights whose sums over `k` terms stay near one, or come back to it from about a hundred."""
    weights = numbers.standard_normal(shape) / max(1, shape[0]) ** 0.5
    if "cancelling" in sizes:
        half = shape[0] // 2
        large = 100 * weights[:half]
        weights[:half] += large
        weights[half : 2 * half] -= large
    return weights


def rows_of_x(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Normal numbers; where the weights cancel, those of both halves of a row are alike."""
    values = numbers.standard_normal(shape)
    if "cancelling" in sizes:
        half = shape[1] // 2
        values[:, half : 2 * half] = values[:, :half]
    return values


# ---------------------------------------------------------------- arguments


def momentum_arguments(sizes: Sizes) -> Arguments:
    n = int(sizes["n"])
    return (
        Array("p", (n,), role="inout"),
        Array("g", (n,)),
        Array("m", (n,), role="inout"),
        Scalar("lr", 0.125, "float64"),
        Scalar("mu", 0.75, "float64"),
    )


def softmax_arguments(sizes: Sizes) -> Arguments:
    shape = int(sizes["rows"]), int(sizes["cols"])
    return (Array("x", shape, fill=logits), Array("out", shape, role="out"))


def columns_arguments(sizes: Sizes) -> Arguments:
    shape = int(sizes["rows"]), int(sizes["cols"])
    return (Array("x", shape, fill=columns_of_logits), Array("out", shape, role="out"))


def norm_arguments(sizes: Sizes) -> Arguments:
    rows, cols = int(sizes["rows"]), int(sizes["cols"])
    return (
        Array("x", (rows, cols), fill=far_from_zero),
        Array("weight", (cols,)),
        Array("bias", (cols,)),
        Array("out", (rows, cols), role="out"),
    )


def dropout_arguments(sizes: Sizes) -> Arguments:
    rows, cols = int(sizes["rows"]), int(sizes["cols"])
    return (
        Array("x", (rows, cols)),
        Array("bias", (cols,)),
        Array("out", (rows, cols), role="out"),
        Scalar("p", 0.25, "float64"),
        Scalar("seed", int(sizes["seed"])),
    )


def back_arguments(sizes: Sizes) -> Arguments:
    grad = Array("grad", (int(sizes["rows"]), int(sizes["cols"])))
    return (grad, *dropout_arguments(sizes))


def linear_arguments(sizes: Sizes) -> Arguments:
    m, n, k = (int(sizes[name]) for name in "mnk")
    return (
        Array("x", (m, k), "float16", fill=rows_of_x),
        Array("w", (k, n), "float16", fill=small),
        Array("bias", (n,), "float16"),
        Array("out", (m, n), "float16", role="out"),
    )


# ---------------------------------------------------------------- panels


def panels(order: list[tuple[int, int]], wave: int) -> int:
    """Rows and columns of tiles that are read: by each `wave` programs of the order, those that they need."""
    waves = [order[first : first + wave] for first in range(0, len(order), wave)]
    return sum(len({m for m, _ in now}) + len({n for _, n in now}) for now in waves)


def row_after_row(sizes: Sizes) -> int:
    """Panels of the order that a grid of two dimensions has by itself."""
    order = [(m, n) for m in range(int(sizes["m"])) for n in range(int(sizes["n"]))]
    return panels(order, int(sizes["wave"]))


def least_panels(sizes: Sizes) -> int:
    """No order reads fewer: each wave as if it could be the best rectangle by itself."""
    m, n, wave = (int(sizes[name]) for name in ("m", "n", "wave"))

    def best(count: int) -> int:
        shapes = ((h, -(-count // h)) for h in range(1, min(m, count) + 1))
        return min(h + w for h, w in shapes if w <= n)

    whole, rest = divmod(m * n, wave)
    return whole * best(min(wave, m * n)) + (best(rest) if rest else 0)


# ---------------------------------------------------------------- graphs of operations

MB = 1_000_000
Operation = tuple[str, str, list[str], int]  # name, kind, inputs, bytes of the result

# What a program computes, operation by operation, with the bytes of each result. An "input" is there already.
GRAPHS: Mapping[str, tuple[tuple[Operation, ...], tuple[str, ...]]] = {
    "softmax": (
        (
            ("x", "input", [], 4 * MB),
            ("largest", "rows", ["x"], 4_000),
            ("shifted", "pointwise", ["x", "largest"], 4 * MB),
            ("powers", "pointwise", ["shifted"], 4 * MB),
            ("sum", "rows", ["powers"], 4_000),
            ("out", "pointwise", ["powers", "sum"], 4 * MB),
        ),
        ("out",),
    ),
    "three biases": (
        (
            ("x", "input", [], 2 * MB),
            ("a", "pointwise", ["x"], 2 * MB),
            ("b", "pointwise", ["x"], 2 * MB),
            ("c", "pointwise", ["x"], 2 * MB),
        ),
        ("a", "b", "c"),
    ),
    "around a product": (
        (
            ("x", "input", [], 2 * MB),
            ("w", "input", [], 1 * MB),
            ("a", "pointwise", ["x"], 2 * MB),
            ("product", "matmul", ["a", "w"], 2 * MB),
            ("out", "pointwise", ["a", "product"], 2 * MB),
        ),
        ("out",),
    ),
    "backward": (
        (
            ("grad", "input", [], 4 * MB),
            ("z", "input", [], 4 * MB),
            ("w", "input", [], 1 * MB),
            ("slope", "pointwise", ["z"], 4 * MB),
            ("dz", "pointwise", ["grad", "slope"], 4 * MB),
            ("dbias", "columns", ["dz"], 4_000),
            ("dx", "matmul", ["dz", "w"], 4 * MB),
        ),
        ("dbias", "dx"),
    ),
    "centre columns": (
        (
            ("x", "input", [], 4 * MB),
            ("squares", "pointwise", ["x"], 4 * MB),
            ("total", "columns", ["squares"], 4_000),
            ("scale", "pointwise", ["total"], 4_000),
            ("out", "pointwise", ["x", "scale"], 4 * MB),
        ),
        ("out",),
    ),
    "layer": (
        (
            ("x", "input", [], 1 * MB),
            ("w1", "input", [], 1 * MB),
            ("w2", "input", [], 1 * MB),
            ("h", "matmul", ["x", "w1"], 2 * MB),
            ("gelu", "pointwise", ["h"], 2 * MB),
            ("dropped", "pointwise", ["gelu"], 2 * MB),
            ("y", "matmul", ["dropped", "w2"], 1 * MB),
            ("summed", "pointwise", ["x", "y"], 1 * MB),
            ("mean", "rows", ["summed"], 1_000),
            ("centred", "pointwise", ["summed", "mean"], 1 * MB),
            ("variance", "rows", ["centred"], 1_000),
            ("normed", "pointwise", ["centred", "variance"], 1 * MB),
        ),
        ("summed", "normed"),
    ),
    "rows beside a product": (
        (
            ("x", "input", [], 8 * MB),
            ("u", "input", [], MB // 2),
            ("w", "input", [], MB // 2),
            ("sum", "rows", ["x"], 8_000),
            ("product", "matmul", ["u", "w"], MB // 2),
            ("largest", "rows", ["x"], 8_000),
        ),
        ("sum", "product", "largest"),
    ),
    "rows after a product": (
        (
            ("x", "input", [], 8 * MB),
            ("u", "input", [], MB // 2),
            ("w", "input", [], MB // 2),
            ("product", "matmul", ["u", "w"], MB // 2),
            ("sum", "rows", ["x"], 8_000),
            ("totals", "columns", ["x"], 8_000),
        ),
        ("product", "sum", "totals"),
    ),
    # The judge's own.
    "log-softmax": (
        (
            ("x", "input", [], 3 * MB),
            ("t", "pointwise", ["x"], 3 * MB),
            ("largest", "rows", ["t"], 3_000),
            ("shifted", "pointwise", ["t", "largest"], 3 * MB),
            ("powers", "pointwise", ["shifted"], 3 * MB),
            ("sum", "rows", ["powers"], 3_000),
            ("log", "pointwise", ["sum"], 3_000),
            ("out", "pointwise", ["shifted", "log"], 3 * MB),
        ),
        ("out",),
    ),
    "two results": (
        (
            ("x", "input", [], 2 * MB),
            ("y", "input", [], 2 * MB),
            ("a", "pointwise", ["x"], 2 * MB),
            ("b", "pointwise", ["y", "x"], 2 * MB),
        ),
        ("a", "b"),
    ),
    "gated": (
        (
            ("x", "input", [], 1 * MB),
            ("w", "input", [], 1 * MB),
            ("v", "input", [], 1 * MB),
            ("normed", "pointwise", ["x"], 1 * MB),
            ("a", "matmul", ["normed", "w"], 2 * MB),
            ("s", "pointwise", ["a"], 2 * MB),
            ("b", "matmul", ["normed", "v"], 2 * MB),
            ("gated", "pointwise", ["s", "b"], 2 * MB),
            ("out", "pointwise", ["gated"], 2 * MB),
        ),
        ("out",),
    ),
    "norm before a product": (
        (
            ("x", "input", [], 1 * MB),
            ("w", "input", [], 1 * MB),
            ("r", "input", [], 1 * MB),
            ("sum", "pointwise", ["x", "r"], 1 * MB),
            ("mean", "rows", ["sum"], 1_000),
            ("centred", "pointwise", ["sum", "mean"], 1 * MB),
            ("product", "matmul", ["centred", "w"], 2 * MB),
            ("act", "pointwise", ["product"], 2 * MB),
            ("largest", "rows", ["act"], 1_000),
            ("shifted", "pointwise", ["act", "largest"], 2 * MB),
            ("powers", "pointwise", ["shifted"], 2 * MB),
            ("total", "columns", ["powers"], 2_000),
            ("out", "pointwise", ["powers", "total"], 2 * MB),
        ),
        ("sum", "out"),
    ),
    "rows between products": (
        (
            ("x", "input", [], 8 * MB),
            ("u", "input", [], MB // 2),
            ("v", "input", [], MB // 2),
            ("w", "input", [], MB // 2),
            ("p", "matmul", ["u", "v"], MB // 2),
            ("mean", "rows", ["x"], 8_000),
            ("totals", "columns", ["x"], 8_000),
            ("q", "matmul", ["u", "w"], MB // 2),
            ("spread", "rows", ["x", "mean"], 8_000),
        ),
        ("p", "totals", "q", "spread"),
    ),
    "a gate beside a norm": (
        (
            ("x", "input", [], 3 * MB),
            ("y", "input", [], 1 * MB),
            ("w", "input", [], 1 * MB),
            ("largest", "rows", ["x"], 3_000),
            ("product", "matmul", ["y", "w"], 1 * MB),
            ("gate", "pointwise", ["product"], 1 * MB),
            ("shifted", "pointwise", ["x", "largest"], 3 * MB),
            ("gated", "pointwise", ["gate", "y"], 1 * MB),
            ("out", "pointwise", ["shifted"], 3 * MB),
        ),
        ("gated", "out"),
    ),
}

# Fewest bytes and fewest launches of any legal grouping: found by trying all, in the lab's tests.
FEWEST: Mapping[str, tuple[int, int]] = {
    "softmax": (8_000_000, 1),
    "three biases": (8_000_000, 1),
    "around a product": (9_000_000, 2),
    "backward": (21_004_000, 2),
    "centre columns": (12_008_000, 2),
    "layer": (11_000_000, 3),
    "rows beside a product": (9_516_000, 2),
    "rows after a product": (9_516_000, 2),
    "log-softmax": (6_000_000, 1),
    "two results": (8_000_000, 1),
    "gated": (12_000_000, 3),
    "norm before a product": (16_004_000, 4),
    "rows between products": (11_016_000, 3),
    "a gate beside a norm": (9_000_000, 2),
}

PUBLIC = (
    "softmax",
    "three biases",
    "around a product",
    "backward",
    "centre columns",
    "rows beside a product",
    "rows after a product",
    "layer",
)


def graphs(*names: str) -> Case:
    """Graphs of operations, each a question."""
    return Case(names[0] if len(names) == 1 else "all of them", {"graphs": ", ".join(names)})


def _names(sizes: Sizes) -> list[str]:
    return str(sizes["graphs"]).split(", ")


def questions_of_graphs(sizes: Sizes, numbers: np.random.Generator) -> list[tuple[Any, ...]]:
    asked = (GRAPHS[name] for name in _names(sizes))
    return [([list(operation) for operation in operations], list(outputs)) for operations, outputs in asked]


def one_by_one(name: str) -> tuple[int, int]:
    """Bytes and launches of a graph that is not fused at all."""
    operations, _ = GRAPHS[name]
    size = {result: moved for result, _, _, moved in operations}
    work = [(inputs, moved) for _, kind, inputs, moved in operations if kind != "input"]
    return sum(moved + sum(size[need] for need in inputs) for inputs, moved in work), len(work)


def unfused(sizes: Sizes) -> tuple[float, float]:
    """The worst of a case's graphs, not fused at all: bytes and launches over the fewest."""
    ratios = [
        [cost / least for cost, least in zip(one_by_one(name), FEWEST[name], strict=True)]
        for name in _names(sizes)
    ]
    return max(r[0] for r in ratios), max(r[1] for r in ratios)


# ---------------------------------------------------------------- budgets that return


def _launches(points: float, naive: int, why: str) -> Budget:
    return Budget(
        "launches",
        1,
        points,
        "launches",
        naive=naive,
        why=why,
        advice="Which results are written to memory only for the next kernel to read?",
        case=EVERY,
    )


def _per_element(
    metric: str, bytes_each: float, points: float, label: str, naive: float, why: str, advice: str
) -> Budget:
    """A budget of so many bytes for each element.

    A program for each row is as good as any where a row is shorter than it has threads, and several of them
    load the same element.
    """
    return Budget(
        metric,
        lambda sizes: int(bytes_each * max(_elements(sizes), THREADS * int(sizes.get("rows", 1)))),
        points,
        label,
        naive=lambda sizes: int(naive * _elements(sizes)),
        why=why,
        advice=advice,
        case=EVERY,
    )


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="triton.momentum",
        lab=LAB,
        varies=("n",),
        correct_points=1.0,
        cases=tuple(map(_vector, (1000, 1, 1023, 1025, 8192))),
        evidence=LaunchTrace(arguments=momentum_arguments),
        budgets=(
            _per_element(
                "global_load_bytes",
                12,
                1.0,
                "loaded bytes",
                naive=20,
                why="p, g and m once each",
                advice="Is an element loaded twice, or a block so small that several threads load the same "
                "element? How many threads does a program have?",
            ),
            _launches(1.0, 3, "one kernel does all"),
        ),
        rtol=1e-5,
        atol=1e-6,
        hints=(
            "One kernel: load a block of g and of m, compute the new m, store it, and use it for p.",
            "`i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)`. Which of these numbers are elements?",
            "All loads and stores get `mask=i < n`. The host function launches "
            "`kernel[(triton.cdiv(p.size, 1024),)](…, BLOCK=1024)`.",
        ),
        section="1 · Programs on blocks",
    ),
    Exercise(
        name="triton.softmax",
        lab=LAB,
        correct_points=1.6,
        cases=(
            _matrix(3, 5),
            _matrix(64, 781),
            _matrix(5, 1),
            masked(33, 1000),
            _matrix(7, 1025),
            _matrix(128, 1024),
        ),
        evidence=LaunchTrace(arguments=softmax_arguments),
        budgets=(
            _per_element(
                "global_bytes",
                8,
                1.4,
                "bytes moved",
                naive=32,
                why="x read once, out written once",
                advice="Does the row stay in the program between the maximum, the sum and the quotient?",
            ),
            _launches(1.0, 5, "one kernel does all five operations"),
        ),
        rtol=1e-4,
        atol=1e-7,
        hints=(
            "A program for each row: `row = tl.program_id(0)`. The whole row is one block.",
            "The block is longer than the row. What must the elements beyond the end be, so that neither the "
            "maximum nor the sum sees them? The logits may all be negative.",
            'Load with `mask=i < columns, other=-float("inf")`: e^(−∞) is 0. '
            "`BLOCK=triton.next_power_of_2(columns)`.",
        ),
        section="2 · A row in a program: softmax",
    ),
    Exercise(
        name="triton.softmax_columns",
        lab=LAB,
        correct_points=1.6,
        cases=(_matrix(5, 3), _matrix(100, 37), masked(65, 50), _matrix(1, 9), _matrix(256, 128)),
        evidence=LaunchTrace(arguments=columns_arguments),
        budgets=(
            Budget(
                "global_sectors",
                lambda sizes: _elements(sizes) // 4,
                2.4,
                "sectors",
                naive=lambda sizes: 2 * _elements(sizes),
                why="8 elements in each, loaded and stored once",
                advice="Which elements share a sector of 32 bytes with the one that you load? Which program "
                "uses them?",
            ),
        ),
        rtol=1e-4,
        atol=1e-7,
        hints=(
            "Neighbours in memory are neighbours in a row. A program that has several columns uses them.",
            "`i[:, None]` and `j[None, :]` make a block of two dimensions: `x + i[:, None] * columns + "
            "j[None, :]`. Along which axis go maximum and sum?",
            "`tl.max(values, 0)` has one number per column; `[None, :]` puts it beside the block again. "
            "Eight columns of 4 bytes fill a sector; 16 are good, too.",
        ),
        section="3 · The order of access",
    ),
    Exercise(
        name="triton.layer_norm",
        lab=LAB,
        correct_points=2.0,
        cases=(_matrix(4, 33), _matrix(9, 300), _matrix(1, 1), _matrix(7, 129), _matrix(64, 512)),
        evidence=LaunchTrace(arguments=norm_arguments),
        budgets=(
            Budget(
                "global_load_bytes",
                lambda sizes: 6 * _elements(sizes),
                2.0,
                "loaded bytes",
                naive=lambda sizes: 12 * _elements(sizes),
                why="weight and bias once for four rows",
                advice="How often is each element of weight loaded? Which other rows could use it?",
            ),
        ),
        rtol=1e-3,
        atol=2e-3,
        hints=(
            "Four rows in a program: a block of two dimensions, as in section 3, but with reductions along "
            "axis 1.",
            "Weight and bias are a block of one row, `[None, :]`. What is in the columns that do not exist, "
            "and what becomes of it when the mean is subtracted?",
            "`centred = tl.where(j < columns, x - mean, 0.0)`. The last program may have fewer rows: the "
            "mask is `(i < rows) & (j < columns)`.",
        ),
        section="4 · Rows that share: layer norm",
    ),
    Exercise(
        name="triton.gelu_dropout",
        lab=LAB,
        correct_points=1.6,
        cases=(
            _matrix(3, 5),
            _matrix(9, 100, 11),
            _matrix(1, 1, 3),
            _matrix(33, 129, 2026),
            _matrix(64, 256),
        ),
        evidence=LaunchTrace(arguments=dropout_arguments),
        budgets=(
            _per_element(
                "global_bytes",
                12,
                1.2,
                "bytes moved",
                naive=42,
                why="x, bias and out",
                advice="Which of the numbers in between go to memory and come back?",
            ),
            _launches(1.2, 6, "one kernel does all six operations"),
        ),
        rtol=1e-4,
        atol=1e-6,
        hints=(
            "One block of elements by their number i, whatever their row. The column of element i is "
            "`i % columns`.",
            "`tl.rand(seed, i)` needs no memory: each element's number is computed from its own i.",
            "`tl.where(tl.rand(seed, i) >= p, gelu / (1 - p), 0.0)`, gelu with `tl.erf`; n = rows · columns "
            "elements.",
        ),
        section="5 · Fusing with a random number",
    ),
    Exercise(
        name="triton.gelu_dropout_back",
        lab=LAB,
        correct_points=1.6,
        cases=(
            _matrix(3, 5),
            _matrix(9, 100, 11),
            _matrix(1, 1, 3),
            _matrix(33, 129, 2026),
            _matrix(64, 256),
        ),
        evidence=LaunchTrace(arguments=back_arguments),
        budgets=(
            _per_element(
                "global_bytes",
                16,
                1.4,
                "bytes moved",
                naive=29,
                why="grad, x, bias and out",
                advice="What does your kernel read that it could compute again?",
            ),
        ),
        rtol=1e-4,
        atol=1e-6,
        hints=(
            "The same seed and the same i give the same random number. So the same elements are kept.",
            "Try the pieces apart. With p = 0 and grad = 1 the result is the derivative alone: 0.5 at z = 0, "
            "near 1 for a large z, near 0 for a very negative one.",
            "Compute z = x + bias again, multiply grad by the derivative, by 1 / (1 − p) where kept, by 0 "
            "elsewhere.",
        ),
        section="6 · Computing again instead of keeping",
    ),
    Exercise(
        name="triton.linear",
        lab=LAB,
        correct_points=2.0,
        cases=(
            _product(64, 64, 32),
            _product(70, 45, 33),
            _product(1, 3, 2),
            cancelling(48, 32, 96),
            _product(128, 128, 128),
        ),
        evidence=LaunchTrace(arguments=linear_arguments),
        budgets=(
            Budget(
                "global_load_bytes",
                lambda sizes: int(1.1 * 2 * sizes["m"] * sizes["n"] * sizes["k"] / 32),  # type: ignore[operator]
                2.0,
                "loaded bytes",
                naive=lambda sizes: 2 * sizes["m"] * sizes["n"] * sizes["k"] / 8,  # type: ignore[operator]
                why="as tiles of 64 × 64 load",
                advice="How many columns of the result does one element of x serve, once loaded?",
            ),
            _launches(1.0, 3, "product, bias and ReLU in one kernel"),
        ),
        rtol=2e-3,
        atol=4e-3,
        hints=(
            "A program for each tile of out: `tl.program_id(0)` is its row of tiles, `tl.program_id(1)` its "
            "column. A loop over k adds `tl.dot` of two blocks to a block of float32 zeros.",
            "Every load has a mask in both directions, and `other=0.0`: zeros add nothing to a product.",
            "After the loop the tile is still in registers: add the bias, then `tl.maximum(…, 0.0)`, and "
            "store it `.to(tl.float16)`.",
        ),
        section="7 · Products of tiles",
    ),
    Exercise(
        name="triton.order",
        lab=LAB,
        correct_points=1.0,
        cases=tuple(
            tiles(*grid) for grid in ((4, 4, 4), (10, 7, 6), (5, 1, 3), (16, 16, 16), (64, 64, WAVE))
        ),
        evidence=AnsweredCases(
            questions=lambda sizes, numbers: [(int(sizes["m"]), int(sizes["n"]), int(sizes["wave"]))],
            measured=True,
        ),
        budgets=(
            Budget(
                "panels",
                lambda sizes: int(ROOM * least_panels(sizes)),
                3.0,
                "panels",
                naive=row_after_row,
                why="nearly as square as a wave can be",
                unit="panels",
                advice="Which tiles does one wave have? How many rows and columns do they span?",
            ),
        ),
        hints=(
            "A wave of 108 tiles in two rows needs 2 + 54 panels. In how many rows would it need the fewest?",
            "Cut the rows of tiles into groups of h. Within a group, go down the h tiles of a column first, "
            "then to the next column.",
            "In the last group there may be fewer than h rows: go down as many as there are. h near the root "
            "of `wave` is good.",
        ),
        section="8 · Which programs run together",
    ),
    Exercise(
        name="triton.fuse",
        lab=LAB,
        correct_points=1.0,
        cases=(*map(graphs, PUBLIC), graphs(*PUBLIC)),
        evidence=AnsweredCases(questions=questions_of_graphs, measured=True),
        budgets=(
            Budget(
                "bytes over fewest",
                1.0,
                2.0,
                "bytes",
                naive=lambda sizes: unfused(sizes)[0],
                why="of the fewest that a legal grouping moves",
                unit="×",
                advice="Which result is written by one kernel and read by the next, and which input is read "
                "by two? Could they be one kernel?",
            ),
            Budget(
                "launches over fewest",
                1.0,
                1.0,
                "launches",
                naive=lambda sizes: unfused(sizes)[1],
                why="of the fewest that a legal grouping needs",
                unit="×",
                advice="Which two of your kernels could be one without breaking a rule?",
            ),
        ),
        hints=(
            "Go through the operations in their order. Each joins a kernel that is there already, if the "
            "rules allow it, or begins a new one at the end. That need not be the last kernel.",
            "It may join no kernel before the last one that computes one of its inputs. Write the rules as "
            "one function: may this operation join that kernel?",
            "Of the kernels that it may join, take one that has a tensor in common with it: computes or "
            "reads one of its inputs.",
        ),
        section="10 · What to fuse: write the planner",
    ),
)


_prediction = partial(prediction, "triton", LAB)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "small_block",
        "A program has 128 threads and a block of 32 float32 elements. Bytes loaded for each element of one "
        "array",
        "B per element",
        16,
        "Four threads for each element, and every thread loads: 4 · 4 B. A block should have at least as "
        "many elements as its program has threads.",
    ),
    _prediction(
        "requests",
        "Load requests for 8,193 elements, over those for 8,192",
        "×",
        None,
        "8,193 does not divide by 16, so every element is loaded by itself: 4 requests for each one before. "
        "The last element takes one request more.",
        0.02,
    ),
    _prediction(
        "softmax_elements",
        "Elements that a softmax of five array operations reads and writes, for each element of a wide "
        "matrix",
        "elements",
        8,
        "Read: amax 1, difference 1, exp 1, sum 1, quotient 1. Written: difference, exp, quotient. The "
        "columns of maxima and sums are small beside them.",
        0.02,
    ),
    _prediction(
        "columns",
        "Bytes of sectors moved for each byte loaded, with one column in a program",
        "×",
        8,
        "The next element of the column is a row further. Each load of 4 bytes moves a sector of 32.",
    ),
    _prediction(
        "norm_bytes",
        "Bytes loaded for each element of x by a layer norm with one row in a program",
        "B per element",
        12,
        "4 of x, 4 of weight, 4 of bias: every program loads both again.",
    ),
    _prediction(
        "dropout_bytes",
        "Bytes moved for each element by the six operations of bias, GELU and dropout",
        "B per element",
        42,
        "Add 4 + 4, gelu 4 + 4, numbers 4, comparison 4 + 1, product 4 + 1 + 4, division 4 + 4.",
    ),
    _prediction(
        "tile_bytes",
        "Loads with tiles of 16 × 16 over those with tiles of 64 × 64",
        "×",
        4,
        "An element of x serves as many columns as the tile is wide, one of w as many rows as it is high.",
    ),
    _prediction(
        "panels",
        "Panels that the first 108 tiles need, row after row, in a result of 64 × 64 tiles",
        "panels",
        66,
        "All 64 columns, and 2 rows: 64 tiles of the first and 44 of the second.",
    ),
    _prediction(
        "compiled",
        "Launches that torch.compile's program for relu(x @ w + b) has",
        "launches",
        None,
        "The library multiplies and adds the bias in one call; the ReLU is a kernel of Triton.",
    ),
    _prediction(
        "xla",
        "Pieces, each a launch or a loop of its own, that XLA makes of softmax on a CPU",
        "pieces",
        None,
        "Maximum, difference and exponential are one piece, and the sum is another. XLA then takes one "
        "reciprocal for each row and multiplies, because a product is cheaper than a quotient.",
    ),
    _prediction(
        "traced",
        "Times that Python runs the body of a Pallas kernel whose grid has eight programs",
        "times",
        None,
        "Python only traces the body, to learn which operations it has. The eight programs run what was "
        "traced.",
    ),
    _prediction(
        "votes",
        "Votes counted of 64 lanes that all vote yes, if they are kept in an `unsigned` of 32 bits",
        "votes",
        None,
        "The upper 32 votes do not fit and are cut off, without a word from the compiler.",
    ),
    _prediction(
        "view",
        "Sectors that a kernel with a thread for each row reads in LayoutRight, over those in LayoutLeft",
        "×",
        None,
        "Thirty-two threads read 32 rows. In LayoutRight their elements are 256 bytes apart and take 32 "
        "sectors. In LayoutLeft they are neighbours and take four.",
        0.02,
    ),
)
