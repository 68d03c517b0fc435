"""Lab 05: what its nine exercises ask.

| exercise | signature | teaches | counted | naive | good | budget |
|---|---|---|---|---|---|---|
| warp_sum | warp_sum(a, sums) | shuffles instead of shared memory | load sectors | n | n/8 | n/8 |
| | | | shared requests | – | 0 | 0 |
| | | | warp operations/warp | 31 | 5 | 5 |
| total | total(a, out), 8 × 256 threads | grid-stride, tree, atomic | load sectors | n | n/8 | n/8 |
| | | | global atomics | n | 8 | 8 |
| | | | loaded by the busiest block | 4·n | n/2 | n/2 + 1,024 |
| | | | hand-overs of the busiest block | 73 | 9 | 9 |
| kahan | kahan(a, sums), float64 | the lost digits, carried on | right to 3.4e-16 | – | – | – |
| | | | loaded bytes/element | – | 8 | 8 |
| | | | operations/element | 7 | 4 | 4.4 |
| scan | scan(a, out), blocks of 256 | warp scans, one barrier | loaded bytes/element | 514 | 4 | 4 |
| | | | hand-overs of the busiest block | 72 | 8 | 8 |
| | | | shared wavefronts/block | 201 | 36 | 40 |
| compact | compact(a, out, count), host | votes, scan, scatter | loaded bytes/element | 16 | 8.02 | 8.8 |
| | | | stored bytes/element | 10 | 2.02 | 2.3 |
| | | | loaded by the busiest block | 4·n | 1,024 + n/64 | 4,096 + n/32 |
| histogram | histogram(values, counts) | private bins, a copy per lane | loaded bytes/element | – | 4 | 4 |
| | | | global atomics | n | 512 | 512 |
| | | | loaded by the busiest block | 4·n | n/2 | n/2 + 1,024 |
| | | | shared atomic passes | – | n/32 | n/32 + 64 |
| | | | shared wavefronts | – | 1,024 + n/32 | 1,344 + n/32 |
| logsumexp | logsumexp(x, out) | running maximum and sum, merging | load sectors | n/4 | n/8 | n/8 |
| | | | thread instructions/element | 84 | 49 | 72 |
| | | | operations/row | 27·c + 4,506 | 13·c + 4,630 | 1.2 · good |
| row_softmax | row_softmax(x, out) | a row in registers | loaded bytes/element | 12 | 4 | 4 |
| | | | hand-overs of the busiest block | 160 | 0 | 0 |
| | | | sectors in all | 2·n | n/4 | n/4 |
| | | | local bytes | – | 0 | 0 |
| add_norm | add_norm(x, residual, weight, summed, out) | fusing | loaded bytes/element | 24 | 12 | 12 |
| | | | stored bytes/element | – | 8 | 8 |

Derivations; a warp has 32 lanes, a sector 32 bytes, a float 4, n elements, rows of c.

**warp_sum**: 32 neighbours are 128 B, 4 sectors, so n/8 in all; one lane that adds the 32 numbers asks for
each by itself, a sector every time: n. A sum of 32 values in registers takes log₂ 32 = 5 shuffles, because
each can at most double how many values a lane knows of. Handing all of them to one lane takes 31.

**total**: n/8 sectors as above. One atomic for each of 8 blocks; every element by an atomic: n. Barriers:
the 8 warps of a block must hand over once, and one barrier does it: 8. A tree in shared memory over 256
values has one before it and one in each of 8 rounds: 72. Hand-overs are barriers and atomics, because a
warp can wait for others by an atomic as well; the block's own addition to `out` is one more. The busiest
block counts, because blocks that do nothing would lower a mean. Nor may one block do the work of all: an
eighth of n elements is n/2 bytes, and the last turn of 256 threads is 1,024 more.

**kahan**: for each element a subtraction, an addition and two subtractions for what was lost: 4. An exact
two-sum takes 6 and one more to collect its error: 7. The error is at most 2·2⁻⁵³ (N. Higham, "The Accuracy of
Floating Point Summation", 1993), the reference's own rounding 2⁻⁵³: together 3.34e-16. The plain loop over
1,000 numbers loses about ten times as much.

**scan**: a thread that adds up all elements before it in its block loads 1 … 256 of them, 128.5 on average,
4 B each: 514. Hillis and Steele's scan over 256 with two buffers has 1 + 8 barriers of 8 warps. Its
wavefronts: 8 to fill, in round k 8 loads of the own value, 8 stores, and a load by the warps that have a
thread t ≥ 2ᵏ: 8 in rounds 0–5 (2⁵ = 32: 7), so 8·5 + 7 + 6 + 4 = 57; 8 at the end: 8 + 128 + 57 + 8 = 201.
With warp scans: 8 stores, and warp w reads w totals: 28; 36.

**compact**: a flag and a place for every element: 4 (read a) + 4 (scan the flags) + 8 (read a and its place)
= 16 loaded, 4 + 4 + about 2 stored. Counting per block and ranking by votes reads a twice and the counts of
256 elements twice: 8 + 4/256 + 4/256. Half of the numbers are positive: 2 stored, and 2 · 4/256.

**histogram**: 64 bins · 8 blocks = 512. With a copy of the bins for each lane no two lanes of a warp meet
at an address, and with the lane as last index none meet in a bank. A pass is an instruction of a warp, or a
lane that meets another at its address: lanes that take turns meet nobody and pass 32 times. Wavefronts: 64
of a block to zero the bins, 64 to add them, one for each pass.

**logsumexp**: one pass, 4 sectors per request of 128 B. Rescaling the sum and adding the new term takes 2
exponentials; one of them is always e⁰. The merge of 32 lanes: 5 rounds · 32 lanes · 2 = 320 per row. In
float32 an exponential is 10 operations around one special function, with a difference before and a product
and a sum after it 13 or 14. Operations are counted, because an exponential in float64 is a sequence of 30
of them and no special function. In integers it is none at all, so instructions are counted as well: at rows
of 1,024 the solution takes 49 of a thread for each element, 44 with a branch, and 57 with two exponentials;
an exponential in float64 or in 64-bit integers makes it more than 90.

**row_softmax**: three passes load 3 · 4 B. A tree over 256 threads has 1 + 8 barriers, and one more before
the array is used again: 10, twice, for 8 warps. One copy of all elements is n/8 sectors loaded and n/8
stored; lanes that each take a row of their own touch a sector for each element, 2 · n.

**add_norm**: the addition loads 8 B; a layer norm in three passes 3 · 4 and the weight 4. Fused: x, residual,
weight: 12. Stored: the sum and the result, 8.

Where a count is provably the least possible the budget is that count; elsewhere it leaves 10 %.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from gpulab.checks.builders import prediction, sectors_of_neighbours, sectors_of_rows
from gpulab.checks.evidence import LaunchTrace
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Shape, Sizes

LAB = "05"
THREADS = 256  # of a block
BLOCKS = 8  # of parallel.total and parallel.histogram, whatever the size
BINS = 64
EPSILON = 1e-5  # that layer norms add to the variance
COLUMNS_PER_BLOCK = 64  # threads of a block of parallel.kahan
BLOCK_SUMS = Shape((BLOCKS,), (THREADS,))


def blocks(n: int, size: int = THREADS) -> int:
    """Blocks of `size` that cover n elements; at least one, because a grid of none cannot be launched."""
    return max(1, -(-n // size))


def _size(n: int, name: str = "") -> Case:
    return Case(name or f"{n:,}", {"n": n})


def _matrix(rows: int, cols: int, name: str = "") -> Case:
    return Case(name or f"{rows} × {cols}", {"rows": rows, "cols": cols})


def masked(rows: int, cols: int) -> Case:
    """A matrix in which some entries, and in one row all of them, are −∞."""
    return Case(f"{rows} × {cols}, masked", {"rows": rows, "cols": cols, "masked": 1})


def crowded(n: int) -> Case:
    """Numbers that are all above 0, so that all are kept: more than an int16 can count."""
    return Case(f"{n:,}, all kept", {"n": n, "all kept": 1})


def _n(sizes: Sizes) -> int:
    return int(sizes["n"]) if "n" in sizes else int(sizes["rows"]) * int(sizes["cols"])


def _cover(sizes: Sizes) -> Shape:
    """A thread for each element."""
    return Shape((blocks(_n(sizes)),), (THREADS,))


def _warp_per_row(sizes: Sizes) -> Shape:
    return Shape((blocks(32 * int(sizes["rows"])),), (THREADS,))


# ---------------------------------------------------------------- contents


def skewed_bins(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Bin numbers of which the first are by far the most frequent."""
    return np.minimum(BINS - 1, numbers.geometric(0.2, shape) - 1)


def logits(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Rows around a centre between −1,000 and 1,000, with a narrow or a very wide spread.

    Where the sizes say masked, a tenth of the entries are −∞, and so is all of the second row.
    """
    rows = shape[0]
    centre = numbers.uniform(-1000, 1000, (rows, 1))
    spread = numbers.choice([1.0, 300.0], (rows, 1))
    values = np.clip(centre + spread * numbers.standard_normal(shape), -1000, 1000)
    if sizes.get("masked"):
        values[numbers.random(shape) < 0.1] = -np.inf
        values[1:2] = -np.inf
    return values


def columns_of_any_size(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Numbers between 0 and a power of two that is each column's own: no fixed point suits all."""
    return np.ldexp(numbers.random(shape), numbers.integers(-200, 200, shape[1]))


def about_zero(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Half of the numbers are above 0, or all."""
    values = numbers.standard_normal(shape)
    return np.abs(values) if "all kept" in sizes else values


def far_from_zero(numbers: np.random.Generator, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Numbers that differ by about one and lie around a thousand."""
    return 1000 + numbers.standard_normal(shape)


# ---------------------------------------------------------------- arguments


def warp_sum_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n = _n(sizes)
    return (Array("a", (n,), fill="uniform"), Array("sums", (-(-n // 32),), role="out"))


def total_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    """Whole numbers: their float32 sum is the same in any order."""
    return (Array("a", (_n(sizes),), fill="integers:0:100"), Array("out", (1,), role="inout", fill="zeros"))


def kahan_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    rows, cols = int(sizes["rows"]), int(sizes["cols"])
    return (
        Array("a", (rows, cols), "float64", fill=columns_of_any_size),
        Array("sums", (cols,), "float64", role="out"),
    )


def scan_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n = _n(sizes)
    return (Array("a", (n,), "int32", fill="integers:0:100"), Array("out", (n,), "int32", role="out"))


def compact_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n = _n(sizes)
    return (
        Array("a", (n,), fill=about_zero),
        Array("out", (n,), role="inout", fill="zeros"),
        Array("count", (1,), "int32", role="inout", fill="zeros"),
    )


def histogram_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    return (
        Array("values", (_n(sizes),), "int32", fill=skewed_bins),
        Array("counts", (BINS,), "int32", role="inout", fill="zeros"),
    )


def logsumexp_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    rows, cols = int(sizes["rows"]), int(sizes["cols"])
    return (Array("x", (rows, cols), fill=logits), Array("out", (rows,), role="out"))


def softmax_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    rows, cols = int(sizes["rows"]), int(sizes["cols"])
    return (Array("x", (rows, cols), fill=logits), Array("out", (rows, cols), role="out"))


def add_norm_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    rows, cols = int(sizes["rows"]), int(sizes["cols"])
    return (
        Array("x", (rows, cols), fill=far_from_zero),
        Array("residual", (rows, cols)),
        Array("weight", (cols,)),
        Array("summed", (rows, cols), role="out"),
        Array("out", (rows, cols), role="out"),
    )


# ---------------------------------------------------------------- budgets that return


def _load_sectors(points: float, limit: Callable[[Sizes], int], advice: str, naive: int = 8) -> Budget:
    """Each element loaded once, 32 neighbours at a time. `naive` is in eighths of n."""
    return Budget(
        "global_load_sectors",
        limit,
        points,
        "load sectors",
        naive=lambda sizes: naive * _n(sizes) // 8,
        why="each element once, 8 in a sector",
        advice=advice,
        case=EVERY,
    )


def _share(points: float) -> Budget:
    """Of 8 blocks none loads more than an eighth, rounded up by one turn of its 256 threads."""
    return Budget(
        "block_load_bytes",
        lambda sizes: 4 * (_n(sizes) // BLOCKS + THREADS),
        points,
        "loaded by a block",
        naive=lambda sizes: 4 * max(_n(sizes), 2 * THREADS),
        why="an eighth of the array, and 256 elements",
        advice="One block runs on one SM. What do the other blocks do in the meantime?",
        case=EVERY,
    )


def _loaded(
    bytes_each: float,
    points: float,
    advice: str,
    naive: float | None = None,
    why: str = "",
    more: int = 0,
) -> Budget:
    """So many bytes for each element, and `more` whatever their number."""
    return Budget(
        "global_load_bytes",
        lambda sizes: int(bytes_each * _n(sizes)) + more,
        points,
        "loaded bytes",
        naive=None if naive is None else lambda sizes: naive * _n(sizes),
        why=why or "each element once",
        advice=advice,
        case=EVERY,
    )


def _sectors(sizes: Sizes) -> int:
    """Of the elements that the warps take in order."""
    return sectors_of_rows(1, _n(sizes))


def _row_sectors(sizes: Sizes) -> int:
    """Of a matrix that warps take row by row.

    Where a row is no whole number of rounds, the compiler's unrolled loop sets some lanes a round behind: a
    request then has a sector more.
    """
    rows, cols = int(sizes["rows"]), int(sizes["cols"])
    return sectors_of_rows(rows, cols) + (rows * blocks(cols, 32) if cols % 32 else 0)


def kept_bytes(sizes: Sizes) -> int:
    """All are kept, or half of them give or take four standard deviations; and a number or two a block."""
    n = _n(sizes)
    return int(4.3 * n if "all kept" in sizes else 2.3 * n + 8 * n**0.5) + 32


def block_bytes(sizes: Sizes) -> int:
    """What a block may load that takes 512 elements, or scans the counts of all blocks."""
    return 8 * 512 + 8 * blocks(_n(sizes))


def exponentials(a_step: int) -> Callable[[Sizes], int]:
    """Operations of so many for each element, and of the 5 rounds in which 32 lanes merge."""
    return lambda sizes: int(sizes["rows"]) * (a_step * int(sizes["cols"]) + 4506)


def atomic_passes(sizes: Sizes) -> int:
    """One for 32 neighbours; each of 64 warps may begin and end in the middle."""
    return blocks(_n(sizes), 32) + BLOCKS * THREADS // 32


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="parallel.warp_sum",
        lab=LAB,
        varies=("n",),
        correct_points=1.2,
        cases=(_size(512), _size(32), _size(100), _size(1), _size(1023), _size(0, "empty"), _size(8192)),
        evidence=LaunchTrace(arguments=warp_sum_arguments, shape=_cover),
        budgets=(
            _load_sectors(
                0.4,
                _sectors,
                "Which lanes load? A lane that loads alone moves 32 bytes for the 4 that it wants.",
            ),
            Budget(
                "shared_requests",
                0,
                0.7,
                "shared memory",
                why="registers only",
                case=EVERY,
                advice="A lane can read another lane's register. Which function of `cuda` does that?",
            ),
            Budget(
                "warp_syncs",
                lambda sizes: 5 * 8 * blocks(_n(sizes)),
                0.7,
                "warp operations",
                naive=lambda sizes: 31 * 8 * blocks(_n(sizes)),
                why="5 per warp: each doubles what a lane has summed",
                case=EVERY,
                advice="After one shuffle a lane can know the sum of two values. Of how many after two? If "
                "you count 10 per warp, your value is float64, which takes two shuffles each: `else 0` "
                "makes it so.",
            ),
        ),
        rtol=1e-5,
        hints=(
            "`cuda.shfl_down_sync(0xFFFFFFFF, value, 16)` gives lane i the `value` of lane i + 16. What "
            "does lane 0 hold after adding it?",
            "Halve the distance: 16, 8, 4, 2, 1. All 32 lanes take part each time, even those whose element "
            "does not exist. Which value should these lanes contribute?",
            "A lane without an element contributes `float32(0)`. Only the store is inside a condition: lane "
            "0 stores, and only if its element exists.",
        ),
        section="2 · Shuffles: from register to register",
    ),
    Exercise(
        name="parallel.total",
        lab=LAB,
        varies=("n",),
        correct_points=1.6,
        cases=(
            _size(3000),
            _size(256),
            _size(1),
            _size(1023),
            _size(0, "empty"),
            _size(65_539),
            _size(65_536),
        ),
        evidence=LaunchTrace(arguments=total_arguments, shape=lambda sizes: BLOCK_SUMS),
        budgets=(
            _load_sectors(
                0.4,
                lambda sizes: sectors_of_neighbours(_n(sizes), BLOCKS),
                "Neighbouring lanes should load neighbouring elements, and no element twice.",
            ),
            Budget(
                "global_atomics",
                BLOCKS,
                0.8,
                "global atomics",
                naive=lambda sizes: max(_n(sizes), THREADS * BLOCKS),
                why="one for each block",
                case=EVERY,
                advice="Which other parts of the sum could be added to yours before it leaves the block?",
            ),
            _share(0.4),
            Budget(
                "block_hand_overs",
                9,
                0.8,
                "barriers",
                naive=9 * 8 + 1,
                why="in the busiest block: 8 warps at one barrier, and one atomic",
                case=EVERY,
                advice="Inside a warp the sum needs no barrier. How many values are left when every warp has "
                "summed its own?",
            ),
        ),
        hints=(
            "There are four stages: each thread adds many elements, then the lanes of a warp are added, then "
            "the warps of a block, then the blocks.",
            "The second stage is your `warp_sum`. For the third, each warp stores one number in shared "
            "memory. After a barrier one warp adds these numbers.",
            "In the third stage lanes 0 to 7 of warp 0 hold the eight sums, and the other lanes hold 0. Then "
            "lane 0 calls `cuda.atomic.add(out, 0, value)`.",
        ),
        section="3 · The whole array in one launch",
    ),
    Exercise(
        name="parallel.kahan",
        lab=LAB,
        varies=("rows", "cols"),
        correct_points=1.8,
        cases=(
            _matrix(100, 64),
            _matrix(1, 3),
            _matrix(1000, 65),
            _matrix(33, 1),
            _matrix(0, 5, "no rows"),
            _matrix(1000, 64),
        ),
        evidence=LaunchTrace(
            arguments=kahan_arguments,
            shape=lambda sizes: Shape((blocks(int(sizes["cols"]), COLUMNS_PER_BLOCK),), (COLUMNS_PER_BLOCK,)),
        ),
        budgets=(
            _loaded(8, 0.4, "Keep the element in a variable. How often do you read `a`?"),
            Budget(
                "flops",
                lambda sizes: int(4.4 * _n(sizes)) + 2 * int(sizes["cols"]),
                0.8,
                "operations",
                naive=lambda sizes: 7 * _n(sizes),
                why="4 for each element",
                advice="Correct the next number by what was lost (one operation), add it (one), and compute "
                "what is lost now (two).",
                case=EVERY,
            ),
        ),
        rtol=3.4e-16,
        hints=(
            "Keep two numbers: the sum, and how much too large it has become by rounding.",
            "Before you add the next element, subtract the second number from it. After adding, compute what "
            "was really added: the new sum minus the old sum.",
            "Write `y = a[row, column] - lost`, `t = s + y`, `lost = (t - s) - y` and `s = t`, in this "
            "order. The parentheses matter.",
        ),
        section="5 · The order of a sum",
    ),
    Exercise(
        name="parallel.scan",
        lab=LAB,
        varies=("n",),
        correct_points=1.6,
        cases=(_size(256), _size(100), _size(1), _size(257), _size(1000), _size(0, "empty"), _size(4096)),
        evidence=LaunchTrace(arguments=scan_arguments, shape=_cover, race_case="257"),
        budgets=(
            _loaded(
                4,
                0.6,
                "Together, the threads of a block have loaded all its elements. From which threads can a "
                "thread learn the sum of the elements before its own?",
                naive=514,
            ),
            Budget(
                "block_hand_overs",
                8,
                1.0,
                "barriers",
                naive=9 * 8,
                why="8 warps at one barrier",
                case=EVERY,
                advice="Lanes of one warp pass values by shuffles, without a barrier. What does a warp have "
                "to know about the other warps?",
            ),
            Budget(
                "shared_wavefronts",
                lambda sizes: 40 * blocks(_n(sizes)),
                0.8,
                "shared wavefronts",
                naive=lambda sizes: 201 * blocks(_n(sizes)),
                why="40 per block, 10 % more than ours",
                case=EVERY,
                advice="Eight warps have eight totals. Does anything else need shared memory?",
            ),
        ),
        hints=(
            "`cuda.shfl_up_sync(0xFFFFFFFF, value, 1)` gives lane i the `value` of lane i − 1. Lane 0 gets "
            "its own value back, and must not add it.",
            "Use the distances 1, 2, 4, 8, 16. A lane below the distance adds nothing, but it takes part in "
            "the shuffle. At the end lane 31 has the total of its warp.",
            "Lane 31 of every warp stores its total in shared memory. After a barrier each thread adds the "
            "totals of the warps before its own.",
        ),
        section="6 · Scans",
    ),
    Exercise(
        name="parallel.compact",
        lab=LAB,
        correct_points=2,
        cases=(
            _size(1000),
            _size(256),
            _size(33),
            _size(1),
            _size(0, "empty"),
            crowded(40_000),
            _size(65_535),
            _size(65_536),
        ),
        evidence=LaunchTrace(arguments=compact_arguments),
        budgets=(
            _loaded(
                8.8,
                1.3,
                "A block needs one number from outside: how many elements are kept before it. What else do "
                "your threads load?",
                naive=16,
                why="`a` twice, and a little",
                more=64,
            ),
            Budget(
                "global_store_bytes",
                kept_bytes,
                1.3,
                "stored bytes",
                naive=lambda sizes: 10 * _n(sizes),
                why="what is kept, half of the array, and a little",
                case=EVERY,
                advice="You store {times} × as much as is needed. Could a thread compute its place again "
                "instead of reading it?",
            ),
            Budget(
                "block_load_bytes",
                block_bytes,
                0.4,
                "loaded by a block",
                naive=lambda sizes: max(4 * _n(sizes), block_bytes(sizes)),
                why="512 elements twice, and the number of each block",
                case=EVERY,
                advice="One block runs on one SM. What keeps the others from working at the same time?",
            ),
        ),
        hints=(
            "Use three launches: count what each block keeps, scan these counts with your `scan` in one "
            "block, then write the kept elements.",
            "`cuda.syncthreads_count(1 if … else 0)` gives every thread the number of threads in its block "
            "that passed 1. In the last kernel, a thread's place is the number kept in the blocks before its "
            "own, plus in the warps before its own, plus in the lanes before it.",
            "`votes = cuda.ballot_sync(0xFFFFFFFF, keep)` has a bit for each lane, and `cuda.popc(votes & "
            "cuda.lanemask_lt())` counts the ones below the calling lane. Each warp stores its count in "
            "shared memory, and one thread loads the number kept in the blocks before.",
        ),
        section="7 · Compaction",
    ),
    Exercise(
        name="parallel.histogram",
        lab=LAB,
        varies=("n",),
        correct_points=1.6,
        cases=(_size(2048), _size(1), _size(255), _size(0, "empty"), _size(5001), _size(32_768)),
        evidence=LaunchTrace(arguments=histogram_arguments, shape=lambda sizes: BLOCK_SUMS),
        budgets=(
            _loaded(4, 0.4, "Each value falls into one bin. Which loop reads it {times} times?"),
            Budget(
                "global_atomics",
                BINS * BLOCKS,
                1.0,
                "global atomics",
                naive=_n,
                why="64 bins × 8 blocks",
                advice="Let each block count in its own bins, in shared memory, and add these to `counts` "
                "once.",
                case=EVERY,
            ),
            _share(0.4),
            Budget(
                "shared_atomic_passes",
                atomic_passes,
                0.8,
                "atomic conflicts",
                why="a warp counts 32 values at once",
                advice="Most values fall into few bins, so the lanes of a warp meet there. Give each lane "
                "its own copy of the bins.",
                case=EVERY,
            ),
            Budget(
                "shared_wavefronts",
                lambda sizes: BLOCKS * 5 * BINS // 2 + atomic_passes(sizes),
                0.8,
                "bank conflicts",
                why="as many as without a conflict, and a quarter",
                advice="Lane i should use bank i, both when it counts and when the copies are added. Which "
                "index of your bins is the last one, and which index differs between lanes?",
                case=EVERY,
            ),
        ),
        hints=(
            "There are three stages with a barrier between them: set the block's bins to zero, count, and "
            "add the bins to `counts`.",
            "Use shared bins of shape (64, 32), with a row for each bin and a column for each lane. Count "
            "with `cuda.atomic.add(bins, (b, lane), 1)`.",
            "In the last stage a warp takes one bin at a time: lane i reads copy i, and a sum as in your "
            "`warp_sum` adds the 32 copies. There are 8 warps and 64 bins, so each warp takes 8 bins.",
        ),
        section="8 · Histograms",
    ),
    Exercise(
        name="parallel.logsumexp",
        lab=LAB,
        varies=("rows", "cols"),
        correct_points=1.6,
        cases=(
            _matrix(8, 256),
            _matrix(3, 1),
            _matrix(10, 33),
            masked(9, 50),
            _matrix(0, 7, "no rows"),
            _matrix(5, 1000),
            _matrix(64, 1024),
        ),
        evidence=LaunchTrace(arguments=logsumexp_arguments, shape=_warp_per_row, race_case="10 × 33"),
        budgets=(
            _load_sectors(
                1.4,
                _row_sectors,
                "You read the row {times} times. How could you begin the sum before the maximum is known, "
                "and correct it later?",
                naive=2,
            ),
            Budget(
                "guarded_thread_instructions",
                lambda sizes: 72 * _n(sizes),
                0.3,
                "instructions",
                naive=lambda sizes: 84 * _n(sizes),
                why="72 of a thread for each element",
                advice="An exponential in float64 or in integers costs many instructions. `m = -math.inf` "
                "is float64.",
            ),
            Budget(
                "flops",
                lambda sizes: int(1.2 * exponentials(13)(sizes)),
                0.7,
                "exponentials",
                naive=exponentials(27),
                why="one in float32 for each element, 13 operations, and the merging",
                case=EVERY,
                advice="Of the two exponentials of a step one is always e⁰. Which one, and when? An "
                "exponential in float64 costs three times as much, and `m = -math.inf` makes it so.",
            ),
        ),
        rtol=1e-6,
        atol=1e-5,
        hints=(
            "Each lane keeps m, the largest logit so far, and s, the sum of exp(x − m). What happens to s "
            "when a larger logit comes?",
            "Multiply s by exp(old m − new m). Two lanes merge in the same way: rescale both sums to the "
            "larger m, then add them.",
            "Start with m = −∞ and s = 0. Beware of −∞ − (−∞), which is NaN: skip elements that are −∞, and "
            "do not rescale when both maxima are −∞.",
        ),
        section="9 · Softmax",
    ),
    Exercise(
        name="parallel.row_softmax",
        lab=LAB,
        varies=("rows", "cols"),
        correct_points=2,
        cases=(
            _matrix(8, 256),
            _matrix(1, 1),
            _matrix(10, 5),
            _matrix(9, 33),
            _matrix(3, 200),
            _matrix(0, 7, "no rows"),
            _matrix(64, 256),
        ),
        evidence=LaunchTrace(arguments=softmax_arguments, shape=_warp_per_row, race_case="9 × 33"),
        budgets=(
            _loaded(
                4,
                1.2,
                "You read each logit {times} times. A row of 256 is 8 numbers for each lane. Where could a "
                "lane keep 8 numbers?",
                naive=12,
            ),
            Budget(
                "block_hand_overs",
                0,
                0.8,
                "barriers",
                naive=20 * 8,
                why="a warp needs none",
                case=EVERY,
                advice="All threads that work on a row are lanes of one warp. What do they need instead of a "
                "barrier?",
            ),
            Budget(
                "global_sectors",
                lambda sizes: 2 * _row_sectors(sizes),
                0.5,
                "sectors in all",
                naive=lambda sizes: 2 * _n(sizes),
                why="each loaded once, stored once",
                case=EVERY,
                advice="That is {times} × what one copy of all elements needs. Do neighbouring lanes take "
                "neighbouring columns?",
            ),
            Budget(
                "local_bytes",
                0,
                0.5,
                "local memory",
                why="the row is in registers",
                case=EVERY,
                advice="A register cannot be chosen by an index that is known only at run time. Does your "
                "loop over the 8 numbers have bounds that the compiler knows?",
            ),
        ),
        rtol=1e-5,
        atol=1e-7,
        hints=(
            "Lane i takes the columns i, i + 32, … i + 224, as far as they exist, and keeps these 8 numbers. "
            "Which shuffle gives the maximum to all lanes?",
            "`cuda.local.array(8, float32)` stays in registers if you loop with `for k in range(8)`, because "
            "the compiler unrolls the loop. Use −∞ for columns that do not exist.",
            "Find the maximum of the 8, then that of the warp with `cuda.shfl_xor_sync`, so that all lanes "
            "have it. Replace the 8 by their exponentials, and sum them in the same way. Divide and store.",
        ),
        section="9 · Softmax",
    ),
    Exercise(
        name="parallel.add_norm",
        lab=LAB,
        varies=("rows", "cols"),
        correct_points=2,
        cases=(
            _matrix(8, 256),
            _matrix(1, 2),
            _matrix(10, 5),
            _matrix(9, 33),
            _matrix(3, 200),
            _matrix(0, 7, "no rows"),
            _matrix(64, 256),
        ),
        evidence=LaunchTrace(arguments=add_norm_arguments, shape=_warp_per_row, race_case="9 × 33"),
        budgets=(
            _loaded(
                12,
                2,
                "x, residual and weight are 12 bytes for each element. What do you load a second time?",
                naive=24,
                why="x, residual and weight once",
            ),
            Budget(
                "global_store_bytes",
                lambda sizes: 8 * _n(sizes),
                1,
                "stored bytes",
                why="two results",
                case=EVERY,
                advice="Each element of `summed` and of `out` is stored once. What else do you store?",
            ),
        ),
        rtol=1e-4,
        atol=2e-3,
        hints=(
            "Start from your `row_softmax`: one warp for each row, 8 numbers for each lane, and two sums "
            "over the warp.",
            "The mean of the squares minus the square of the mean loses all digits when the numbers are near "
            "1,000. The row is in registers, so subtract the mean first, and then square.",
            "A column that does not exist adds 0 to the first sum, but it would add (0 − mean)² to the "
            "second. Leave it out there. Divide both sums by the number of columns.",
        ),
        section="10 · Norms, and fusing with the neighbours",
    ),
)


_prediction = partial(prediction, "parallel", LAB)


# Those without an answer are measured in the lab, from the run or from data sheets.
PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "rounds",
        "Rounds in which a tree adds up 65,536 numbers, if each round adds every pair at the same time",
        "rounds",
        16,
        "Each round halves how many numbers are left, and log₂ 65,536 = 16.",
    ),
    _prediction(
        "tree_barriers",
        "Barriers that a warp passes in `interleaved`",
        "barriers",
        9,
        "One after the shared array is filled, and one in each of log₂ 256 = 8 rounds.",
    ),
    _prediction(
        "warp_atomics",
        "Atomics of a sum on 8 blocks of 256 threads, one for each warp",
        "atomics",
        64,
        "Each of the 8 blocks has 256 / 32 = 8 warps.",
    ),
    _prediction(
        "warps_in_flight",
        "Warps on each SM of an A100 that keep its DRAM busy with one 4-byte load per lane",
        "warps",
        reason="The bytes under way are the bandwidth per SM times the latency, and one load of a warp is "
        "128 bytes.",
        tolerance=0.1,
    ),
    _prediction(
        "ones",
        "A float32 sum to which 1.0 is added 20 million times ends at",
        "",
        16_777_216,
        "From 2²⁴ upwards neighbouring float32 numbers are 2 apart, so 2²⁴ + 1 is rounded back to 2²⁴.",
    ),
    _prediction(
        "hillis_steele",
        "Additions of the scan of Hillis and Steele over 256 elements",
        "additions",
        1793,
        "In round k, the 256 − 2ᵏ threads with a partner add. Over 8 rounds that is 8 · 256 − 255.",
        0.001,
    ),
    _prediction(
        "rank",
        "Lanes 1, 2 and 4 vote to keep their element. The place of lane 4's element among those of its warp",
        "",
        2,
        "Two lanes below lane 4 keep their element, and places count from 0.",
    ),
    _prediction(
        "copies",
        "Shared memory of a block for 64 int32 bins with a copy for each lane",
        "bytes",
        8192,
        "64 bins · 32 copies · 4 bytes.",
    ),
    _prediction(
        "overflow",
        "The smallest logit whose exponential is too large for float32",
        "",
        88.72,
        "The largest float32 is 3.4 · 10³⁸, and its natural logarithm is 88.72.",
        0.01,
    ),
    _prediction(
        "merge",
        "The sum s of the merged row, for (m = 3, s = 2) and (m = 5, s = 1)",
        "",
        1.2707,
        "The larger maximum is 5, so s = 2 · e^(3 − 5) + 1 · e⁰.",
        0.01,
    ),
    _prediction(
        "gate",
        "Bytes that one kernel for silu(a) · b loads and stores for each element",
        "bytes",
        12,
        "a and b are loaded, the product is stored: 3 · 4.",
    ),
    _prediction(
        "unfused",
        "Bytes loaded for each element by an addition and then a layer norm in three passes with a weight",
        "bytes",
        24,
        "The two summands are 8 bytes, the passes 3 · 4, and the weight 4.",
    ),
)
