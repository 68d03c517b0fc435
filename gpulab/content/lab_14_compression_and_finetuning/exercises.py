"""Lab 14: what its nine exercises ask.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| ticket | ticket(initial, trained, sparsity) | one threshold for all, rewinding | answers | – | – | 3 |
| amounts | amounts(sparsities), a detective's answer | shares of what remains | answers | – | – | 3 |
| shrink | shrink(x, up, …, count) | a mask saves nothing | matrix FLOPs | 4·n·w·h | 4·n·w·count | 4 |
| pack24 | pack24(weights) | 2:4: mask search, storage | magnitude | 0.7 | 1 | 5 |
| sparse24 | kernel sparse24(values, meta, x, out) | half the bytes, gather | load sectors | 1,408 | 512 | 5 |
| distill | distill(student, teacher, labels, T, alpha) | T², KL(teacher ‖ student) | answers | – | – | 3 |
| serve | serve(x, weight, a, b, adapter, scale) | many adapters, one base | launches | 3·n | 7 | 5 |
| | | | matrix FLOPs | 2·n·d²·k | 2·n·d·(d + 2·r) | |
| merge | merge(weight, a, b, scale, magnitude) | DoRA: length and direction | answers | – | – | 2 |
| workload | workload(layers, width, rank, way) | what fine-tuning costs | answers | – | – | 3 |

Derivations:

**shrink**: two products, n × w by w × h and back: 2 · 2 · n · w · h FLOPs. A mask multiplies by zeros and
costs the same; matrices that hold only the `count` neurons that stay cost count / h of it.

**pack24**: four FP16 numbers are 8 bytes. Two of them and two indices of 2 bits are 4 + 0.5 bytes: 4.5 / 8
= 0.5625. A kernel reads what was packed, so any other form, such as a byte for each group's two indices (5 /
8 = 0.625), is not right. The two largest of four are the best of the six masks; the first two keep 0.68 of
their magnitude on normal numbers (2 · 0.798 / (2 · 1.171), by order statistics).

**sparse24**: a block of 8 warps makes 8 rows. Per row of c columns: c/2 values of 2 bytes are c/32 sectors.
If neighbouring lanes take neighbouring values, 32 of them share 8 bytes of metadata: a sector for every 32
values, c/64. x is c · 4/32 = c/8 sectors, once per block if it is staged in shared memory. For c = 1,024: 8
· (32 + 16) + 128 = 512 sectors a block. Some sizes join a block of few rows with many columns (13 × 264: 5
warps have a row, 160 threads for 264 columns): there a warp without a row must help to stage. Races are
looked for where several warps stage and several read. Read from global memory where it is needed, x costs
32 lanes' 64 columns, 8 sectors, for every 32 values: 128 a row, and the block 8 · (32 + 16 + 128) = 1,408.
A dense FP16 product with x staged would move 8 · 64 + 128 = 640.

**serve**: n rows, each with one of k adapters of rank r. Two gathers, three products, a factor and a sum
are 7 launches for any n. A loop over rows has three products a row. A merged matrix for each adapter and
all rows through each costs k times the base; all adapters for all rows cost k times the adapters.

**workload**: a layer has four w × w matrices and two w × 4w: 12 · w². An adapter of rank r at a matrix i ×
o has r · (i + o): 4 · 2 · w · r + 2 · 5 · w · r = 18 · w · r a layer. Trained numbers take 16 bytes (BF16
weight and gradient 2 + 2, FP32 master copy 4, two FP32 moments 8), frozen ones 2, or in NF4 with double
quantisation 4 bits, a byte for 64, 4 bytes for 64 · 256 (T. Dettmers et al., "QLoRA", 2023, section 3).
FLOPs per token: 2 per number forward, 2 for the gradient of the activations, 2 for that of the weight,
which frozen ones do not need.
"""

from __future__ import annotations

from functools import partial
from math import ceil
from typing import Any

import numpy as np

from gpulab.checks.builders import prediction
from gpulab.checks.evidence import AnsweredCases, LaunchTrace, TensorGraph
from gpulab.checks.operators import COMMON
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Shape, Sizes

LAB = "14"
ROWS_A_BLOCK = 8  # of sparse24: one warp for each
THREADS = 32 * ROWS_A_BLOCK
WIDEST = 1024  # columns of sparse24 at most: what fits into the shared array
PAIRS = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))  # the six masks of 2:4
WAYS = ("full", "LoRA", "QLoRA")


def _case(name: str = "", **sizes: int | float | str) -> Case:
    return Case(name or ", ".join(f"{key} {value}" for key, value in sizes.items()), sizes)


# ---------------------------------------------------------------- questions


def ticket_questions(sizes: Sizes, numbers: np.random.Generator) -> list[tuple[Any, ...]]:
    """Layers of different length and scale; a whole number of weights goes."""
    match sizes["kind"]:
        case "by hand":
            return [([[1.0, 2.0], [3.0, 4.0]], [[0.5, -6.0], [-0.1, 0.2]], 0.5)]
        case "nothing, everything":
            start, end = _layers((3, 5), (1, 1), numbers), _layers((3, 5), (1, 1), numbers)
            return [(start, end, 0.0), (start, end, 1.0)]
        case "equal layers":
            lengths, scales = (20, 20, 20), (1.0, 1.0, 1.0)
        case _:  # a threshold for each layer gives another ticket
            lengths, scales = (10, 40, 50), (5.0, 1.0, 0.2)
    return [
        (_layers(lengths, (1, 1, 1), numbers), _layers(lengths, scales, numbers), s) for s in (0.2, 0.5, 0.9)
    ]


def _layers(
    lengths: tuple[int, ...], scales: tuple[Any, ...], numbers: np.random.Generator
) -> list[list[float]]:
    return [
        [float(round(x, 6)) for x in scale * numbers.standard_normal(n)]
        for n, scale in zip(lengths, scales, strict=True)
    ]


def amounts_questions(sizes: Sizes, numbers: np.random.Generator) -> list[tuple[Any, ...]]:
    """Total sparsities wanted after each round; they do not fall."""
    match sizes["kind"]:
        case "one round":
            return [([0.5],), ([0.0],), ([],)]
        case "to the end":
            return [([0.5, 1.0],), ([0.5, 1.0, 1.0],)]
        case "even steps":
            return [([final * (i + 1) / n for i in range(n)],) for final, n in ((0.5, 10), (0.9, 3))]
        case "a round that rests":
            return [([0.25, 0.25, 0.75],)]
    return [
        (sorted(float(round(x, 4)) for x in numbers.random(int(numbers.integers(2, 12)))),) for _ in range(6)
    ]


def pack_questions(sizes: Sizes, numbers: np.random.Generator) -> list[tuple[Any, ...]]:
    """Matrices as lists of rows; the columns are a multiple of 8."""
    rows, columns = int(sizes["rows"]), int(sizes["columns"])
    match sizes["kind"]:
        case "zeros":
            weights = np.zeros((rows, columns))
        case "all equal":
            weights = np.where(numbers.random((rows, columns)) < 0.5, -1.5, 1.5)
        case "at most two of four":
            weights = numbers.standard_normal((rows, columns // 4, 4))
            weights[..., 2:] = 0
            weights = numbers.permuted(weights, axis=2).reshape(rows, columns)
        case _:
            weights = numbers.standard_normal((rows, columns))
    return [(weights.astype(np.float16).astype(float).tolist(),)]


def workload_questions(sizes: Sizes, numbers: np.random.Generator) -> list[tuple[Any, ...]]:
    """Layers, width (a multiple of 128), rank, and one of WAYS."""
    models = [
        (int(numbers.integers(1, 100)), 128 * int(numbers.integers(1, 80)), int(2 ** numbers.integers(0, 8)))
        for _ in range(4)
    ]
    return [(*model, str(sizes["way"])) for model in (*models, (32, 4096, 16))]


# ---------------------------------------------------------------- tensors


def shrink_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n, w, h = (int(sizes[key]) for key in ("rows", "width", "hidden"))
    return (
        Array("x", (n, w)),
        Array("up", (h, w)),
        Array("up_bias", (h,)),
        Array("down", (w, h)),
        Array("down_bias", (w,)),
        Scalar("count", int(sizes["count"])),
        Array("out", (n, w), role="out"),
    )


def feed_flops(sizes: Sizes, neurons: str) -> int:
    """FLOPs of the two products of a feed-forward layer with so many neurons."""
    return 4 * int(sizes["rows"]) * int(sizes["width"]) * int(sizes[neurons])


def distill_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n, v, scale = int(sizes["rows"]), int(sizes["vocabulary"]), float(sizes["scale"])

    def logits(numbers: np.random.Generator, shape: tuple[int, ...], _: Sizes) -> np.ndarray:
        return scale * numbers.standard_normal(shape)

    return (
        Array("student", (n, v), fill=logits),
        Array("teacher", (n, v), fill=logits),
        Array("labels", (n,), "int64", fill=f"integers:0:{v}"),
        Scalar("temperature", float(sizes["temperature"]), "float64"),
        Scalar("alpha", float(sizes["alpha"]), "float64"),
        Array("loss", (), role="out"),
    )


def serve_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n, d, r, k = (int(sizes[key]) for key in ("rows", "width", "rank", "adapters"))
    return (
        Array("x", (n, d)),
        Array("weight", (d, d), fill=_small),
        Array("a", (k, r, d), fill=_small),
        Array("b", (k, d, r), fill=_small),
        Array("adapter", (n,), "int64", fill=f"integers:0:{k}"),
        Scalar("scale", 2.0, "float64"),
        Array("out", (n, d), role="out"),
    )


def _small(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    return 0.1 * numbers.standard_normal(shape)


def serve_flops(sizes: Sizes) -> int:
    """FLOPs of the base for all rows, and of its own adapter for each."""
    n, d, r = (int(sizes[key]) for key in ("rows", "width", "rank"))
    return 2 * n * d * (d + 2 * r)


def merge_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    o, i, r = (int(sizes[key]) for key in ("outputs", "inputs", "rank"))
    return (
        Array("weight", (o, i)),
        Array("a", (r, i)),
        Array("b", (o, r)),
        Scalar("scale", 0.5, "float64"),
        Array("magnitude", (o,), fill=lambda numbers, shape, _: 0.5 + numbers.random(shape)),
        Array("out", (o, i), role="out"),
    )


# ---------------------------------------------------------------- a kernel


def sparse_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    rows, columns = int(sizes["rows"]), int(sizes["columns"])
    return (
        Array("values", (rows, columns // 2), "float16"),
        Array("meta", (rows, columns // 8), "uint8", fill=_metadata),
        Array("x", (columns,)),
        Array("out", (rows,), role="out"),
    )


def _metadata(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Bytes of two groups each, every group one of the six masks."""
    nibbles = np.array([first | second << 2 for first, second in PAIRS], np.uint8)
    low, high = (nibbles[numbers.integers(0, len(PAIRS), shape)] for _ in range(2))
    return (low | high << 4).astype(np.uint8)


def blocks(sizes: Sizes) -> int:
    """Blocks of the launch of sparse24."""
    return ceil(int(sizes["rows"]) / ROWS_A_BLOCK)


def sparse_shape(sizes: Sizes) -> Shape:
    return Shape((blocks(sizes),), (THREADS,))


def sparse_sectors(sizes: Sizes, staged: bool) -> int:
    """Sectors of all loads, x staged once per block or read by every warp where it needs it."""
    rows, columns = int(sizes["rows"]), int(sizes["columns"])
    packed = rows * (columns // 32 + columns // 64)
    return packed + (blocks(sizes) if staged else rows) * columns // 8


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="compress.ticket",
        lab=LAB,
        evidence=AnsweredCases(questions=ticket_questions),
        correct_points=3,
        cases=tuple(
            _case(kind, kind=kind)
            for kind in ("by hand", "equal layers", "layers of other sizes", "nothing, everything")
        ),
        hints=(
            "Make one list of the magnitudes of all layers' trained weights. It decides which weights go.",
            "Sort pairs of (magnitude, place), where a place is (layer, index). The first round(sparsity · "
            "n) places of that list are the ones that go.",
            "A weight that stays gets its *initial* value, and one that goes gets 0.0. The result has the "
            "same layers as the input.",
        ),
        section="2 · Which weights, and how many at once",
    ),
    Exercise(
        name="compress.amounts",
        lab=LAB,
        evidence=AnsweredCases(questions=amounts_questions),
        correct_points=3,
        cases=tuple(
            _case(kind, kind=kind)
            for kind in ("one round", "even steps", "a round that rests", "to the end", "any")
        ),
        rtol=1e-9,
        atol=1e-12,
        detective=True,
        hints=(
            "Look at the masks (`named_buffers`) after each round. Which share of the weights that were "
            "still there did the round remove?",
            "Before a round the share 1 − s remains, and afterwards 1 − t. The round removes t − s of all "
            "weights.",
            "If nothing remains, you cannot divide by it: the amount is 0.",
        ),
        section="Detective · Half of the weights",
    ),
    Exercise(
        name="compress.shrink",
        lab=LAB,
        evidence=TensorGraph(
            arguments=shrink_arguments,
            operators=COMMON | {"gelu", "sort", "argsort", "topk"},
        ),
        correct_points=1.5,
        cases=(
            _case("1 of 3 neurons", rows=2, width=4, hidden=3, count=1),
            _case("all of 8", rows=5, width=3, hidden=8, count=8),
            _case("64 of 256", rows=32, width=64, hidden=256, count=64),
        ),
        rtol=1e-4,
        atol=1e-4,
        budgets=(
            Budget(
                "matrix_flops",
                lambda s: feed_flops(s, "count"),
                2.5,
                "matrix FLOPs",
                naive=lambda s: feed_flops(s, "hidden"),
                why="only the neurons that stay",
                advice="Which shapes do the matrices have that you multiply? A zero is multiplied like any "
                "other number.",
                unit="FLOP",
                case=EVERY,
            ),
        ),
        hints=(
            "First compute a score for each neuron. `norm(dim=…)` gives all lengths along an axis at once. "
            "Along which axis of `up`, and along which of `down`, are the numbers of one neuron?",
            "`scores.topk(count).indices` are the places of the neurons that stay. They choose rows of `up`, "
            "numbers of `up_bias` and columns of `down`.",
            "If `stay` are these places, `up[stay]` and `down[:, stay]` are smaller matrices. `down_bias` "
            "stays as it is.",
        ),
        section="3 · Whole neurons, whole heads",
    ),
    Exercise(
        name="compress.pack24",
        lab=LAB,
        evidence=AnsweredCases(questions=pack_questions, measured=True),
        correct_points=3,
        cases=(
            _case("two groups of four", kind="any", rows=1, columns=8),
            _case("zeros", kind="zeros", rows=2, columns=8),
            _case("all equal", kind="all equal", rows=2, columns=16),
            _case("sparse already", kind="at most two of four", rows=4, columns=24),
            _case("16 × 64", kind="any", rows=16, columns=64),
        ),
        budgets=(
            Budget(
                "magnitude",
                1,
                2,
                "magnitude kept",
                naive=0.7,
                sense=">=",
                why="1 is the best of the six masks",
                advice="Which two of the four numbers keep the most magnitude?",
                unit="of what the best masks keep",
                case=EVERY,
            ),
        ),
        hints=(
            "For each group of four, find the places of its two largest magnitudes, in rising order.",
            "`sorted(range(4), key=lambda i: -abs(group[i]))[:2]`, sorted again, gives first < second. The "
            "group's four bits are `first | second << 2`.",
            "Two groups share a byte. The even one is in the lower four bits, and the odd one in the upper "
            "four.",
        ),
        section="4 · Two of four",
    ),
    Exercise(
        name="compress.sparse24",
        lab=LAB,
        correct_points=2,
        cases=(
            _case("1 × 8", rows=1, columns=8),
            _case("8 × 264", rows=8, columns=264),
            _case("13 × 264", rows=13, columns=264),
            _case("16 × 1024", rows=16, columns=1024),
        ),
        evidence=LaunchTrace(arguments=sparse_arguments, shape=sparse_shape, race_case="13 × 264"),
        rtol=1e-4,
        atol=1e-4,
        budgets=(
            Budget(
                "global_load_sectors",
                lambda s: int(1.1 * sparse_sectors(s, staged=True)),
                3,
                "load sectors",
                naive=lambda s: sparse_sectors(s, staged=False),
                why="each value once, x once per block",
                advice="Do neighbouring lanes read neighbouring values? How often does a block read the same "
                "element of x?",
            ),
        ),
        hints=(
            "Let neighbouring lanes take neighbouring values. Value v of a row belongs to group v // 2, and "
            "its two bits are in byte v // 4, from bit 2 · (v % 4) on.",
            "All 8 warps of a block need all of x. So first copy x to a shared array of 1,024 float32, with "
            "all 256 threads, including those without a row. Then wait at one barrier.",
            "Each lane adds up its own products. Then `cuda.shfl_down_sync(0xffffffff, total, d)` for d = "
            "16, 8, 4, 2, 1 adds the lanes.",
        ),
        section="5 · A kernel that reads half",
    ),
    Exercise(
        name="compress.distill",
        lab=LAB,
        evidence=TensorGraph(
            arguments=distill_arguments,
            operators=COMMON
            | {
                "_log_softmax",
                "_softmax",
                "nll_loss_forward",
                "xlogy",
                "special_xlogy",
                "kl_div",
                "log_softmax",
            },
        ),
        correct_points=3,
        cases=(
            _case("T = 1", rows=3, vocabulary=5, scale=1.0, temperature=1.0, alpha=0.5),
            _case("T = 4", rows=16, vocabulary=27, scale=2.0, temperature=4.0, alpha=0.3),
            _case("only the teacher", rows=7, vocabulary=9, scale=1.0, temperature=2.0, alpha=0.0),
            _case("only the labels", rows=7, vocabulary=9, scale=1.0, temperature=2.0, alpha=1.0),
            _case("logits of hundreds", rows=8, vocabulary=11, scale=300.0, temperature=1.5, alpha=0.5),
        ),
        rtol=2e-4,
        atol=1e-5,
        hints=(
            "KL is the sum over the vocabulary of p · (log p − log q). Which of the two is the teacher? And "
            "with logits of hundreds, what is the logarithm of a probability that has become 0?",
            "`F.log_softmax` gives logarithms without computing the probabilities first. `F.kl_div` takes "
            "log q first. By default it divides by rows · vocabulary, and with `reduction='batchmean'` by "
            "the rows.",
            "Multiply the KL by temperature² and by 1 − alpha, and the cross-entropy of the student at "
            "temperature 1 by alpha.",
        ),
        section="6 · Learning from a teacher",
    ),
    Exercise(
        name="compress.serve",
        lab=LAB,
        evidence=TensorGraph(arguments=serve_arguments, operators=COMMON),
        correct_points=1.5,
        cases=(
            _case("1 row", rows=1, width=4, rank=1, adapters=3),
            _case("1 adapter", rows=5, width=6, rank=2, adapters=1),
            _case("32 rows, 16 adapters", rows=32, width=128, rank=8, adapters=16),
        ),
        rtol=1e-4,
        atol=1e-4,
        budgets=(
            Budget(
                "launches",
                9,
                2,
                "launches",
                naive=lambda s: 3 * int(s["rows"]),
                why="as many for any number of rows and adapters",
                advice="`a[adapter]` gives the right matrix for each row, all at once. What multiplies n "
                "vectors by n matrices in one launch?",
                unit="launches",
                case=EVERY,
            ),
            Budget(
                "matrix_flops",
                lambda s: int(1.1 * serve_flops(s)),
                1.5,
                "matrix FLOPs",
                naive=lambda s: 2 * serve_flops(s),
                why="the base once, and for each row its own adapter",
                advice="Do you multiply B by A, or apply an adapter to a row that does not use it?",
                unit="FLOP",
                case=EVERY,
            ),
        ),
        hints=(
            "y = W x + scale · B (A x). The parentheses matter: first down to r numbers, then up again.",
            "`a[adapter]` has the shape (n, r, in). `torch.bmm` multiplies n matrices by n matrices, and a "
            "vector is a matrix with one column.",
            "`x[:, :, None]` has the shape (n, in, 1). The product with `a[adapter]` has (n, r, 1), and that "
            "with `b[adapter]` has (n, out, 1). At the end remove the last axis.",
        ),
        section="8 · Many adapters, one model",
    ),
    Exercise(
        name="compress.merge",
        lab=LAB,
        evidence=TensorGraph(arguments=merge_arguments, operators=COMMON),
        correct_points=2,
        cases=(
            _case("3 × 5", outputs=3, inputs=5, rank=1),
            _case("4 × 4", outputs=4, inputs=4, rank=2),
            _case("16 × 24", outputs=16, inputs=24, rank=4),
        ),
        rtol=1e-4,
        atol=1e-5,
        hints=(
            "First compute the sum as for LoRA. Which lengths do its rows have, and which should they have?",
            "`sum.norm(dim=1, keepdim=True)` gives the lengths of the rows.",
            "Divide each row by its length and multiply it by its number of `magnitude`, which needs a "
            "second axis: `magnitude[:, None]`.",
        ),
        section="7 · Low rank",
    ),
    Exercise(
        name="compress.workload",
        lab=LAB,
        evidence=AnsweredCases(questions=workload_questions),
        correct_points=3,
        cases=tuple(_case(way, way=way) for way in WAYS),
        rtol=1e-12,
        hints=(
            "First compute two numbers: how many parameters a layer has, and how many its six adapters have. "
            "An adapter at a matrix of i × o has a pair of matrices with rank · i and o · rank numbers.",
            "A layer has 12 · width² parameters. A number that learns costs 16 bytes and 6 FLOPs per token. "
            "A frozen one costs 2 bytes (NF4: 4 bits, 1 byte for 64, 4 bytes for 16,384) and 4 FLOPs per "
            "token.",
            "With `full` all parameters learn, and there are no adapters.",
        ),
        section="9 · Fine-tuning as a workload",
    ),
)


_prediction = partial(prediction, "compress", LAB)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "free",
        "Sparsity at which the loss per story has risen by 1 nat, without further training",
        "%",
        None,
        "What a weight adds to the variance of an output is proportional to its square. The smaller half of "
        "the weights has only a few percent of all squares.",
        0.25,
    ),
    _prediction(
        "masked_flops",
        "Matrix FLOPs that remain, in percent, when a mask sets three quarters of the neurons to zero",
        "%",
        100,
        "The matrices have the same shapes, and a zero is multiplied like any other number.",
    ),
    _prediction(
        "bytes24",
        "Bytes of a 2:4 matrix, of FP16 numbers with 2-bit indices, in percent of the dense one's",
        "%",
        56.25,
        "Two numbers of 2 bytes and two indices of 2 bits are 4.5 bytes, and four numbers are 8.",
    ),
    _prediction(
        "soft_gradient",
        "How many times smaller the gradient of KL at T = 8 is than at T = 1, without T²",
        "×",
        None,
        "One factor 1/T comes from the softmax's argument, and another because the two softened "
        "distributions differ by about 1/T as much: T² = 64. This holds for logits / T well below 1. At T = "
        "1 they are not, so the ratio is not exactly T².",
        0.25,
    ),
    _prediction(
        "lora_share",
        "Parameters of a rank-8 adapter at a 4,096 × 4,096 matrix, in percent of the matrix's",
        "%",
        100 * 8 * 2 / 4096,
        "8 · (4,096 + 4,096) of 4,096² numbers: 2 · 8 / 4,096.",
        0.03,
    ),
    _prediction(
        "lora_flops",
        "FLOPs of a training step with adapters, in percent of full fine-tuning's, the adapters' own left "
        "out",
        "%",
        200 / 3,
        "Of the forward pass, the gradients of activations and those of weights, only the third is not "
        "needed.",
        0.02,
    ),
    _prediction(
        "recipe",
        "QLoRA of 64 billion parameters with ZeRO-2 on 8 GPUs: on each, without activations",
        "GB",
        None,
        "ZeRO-2 does not divide weights, so each GPU keeps all 33 GB of them. Of each number that learns it "
        "keeps 2 + 14/8 bytes, which are 0.7 GB in all.",
        0.03,
    ),
)
