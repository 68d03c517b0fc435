"""Lab 06: what its exercises ask.

| exercise | asks for a kernel in blocks of | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| tiled | (32, 32): tiled(a, b, c) | a tile of each factor | load bytes | 8·m·n·k | tiles of 32 | 4 |
| column | (64, 8): column(a, b, c) | eight outputs a thread | load bytes | 8·m·n·k | tiles of 64 | 4 |
| | | | shared loads/FMA | 2 | 1.125 | |
| | | | local bytes | – | 0 | |
| blocked | (8, 8): blocked(a, b, c) | 8 × 8 outputs a thread | load bytes | 8·m·n·k | tiles of 64 | 6 |
| | | | shared loads/FMA | 2 | 0.25 | |
| | | | local bytes | – | 0 | |
| | | | bank conflicts (ways) | 7/3 | 1 | |
| wide | (8, 8): wide(a, b, c) | two floats at a time | load requests | with 4 B | half | 5 |
| | | | shared requests/warp FMA | 0.25 | 0.125 | |
| staged | (32, 32): staged(a, b, c), mended | two buffers | barriers/warp | k/16 | k/32 + 1 | 3 |
| | | | load bytes | 8·m·n·k | tiles of 32 | |
| matvec | (32, 8): matvec(a, x, y) | the matrix is read once | load sectors/req. | 16.5 | 4 | 5 |
| | | | load bytes | 8·m·k | 4.5·m·k | |
| batched | (16, 16): batched(a, b, c) | many small products | load bytes | 8·n³ each | 8·n² each | 3 |
| split_k | (16, 16): split_k(a, b, c) | slices of a long sum | load bytes | 8·m·n·k | tiles of 16 | 4 |
| | | | atomic additions | m·n·k | m·n·slices | |

"Remembered by" is blocked at 256³: shared loads per FMA 2 → 0.25, global load sectors 2.62 M → 65.5 K.

Derivations; a is m × k, b is k × n, c is m × n, all float32, a warp has 32 lanes, a sector 32 bytes. There
are m·n·k fused multiply-adds (FMA), whoever does them.

**naive**, one thread per element, x on the columns: in each of the k steps a warp loads one word of a
(1 sector) and 32 neighbours of b (4). m·n/32 warps: 5·m·n·k/32 sectors, 2,621,440 at 256³; bytes asked
8·m·n·k.

**Tiles of T × T outputs**: a block loads T rows of a and T columns of b, each element once. So a is loaded
⌈n/T⌉ times and b ⌈m/T⌉ times: 4·k·(m·⌈n/T⌉ + n·⌈m/T⌉) bytes. At 256³: T = 32 gives 4 MiB or 131,072
sectors, T = 64 half of that, 65,536.

**Shared loads per FMA**: one output per thread reads one word of each tile for each FMA: 2. Eight outputs
of a column share the word of b: (1 + 8) / 8 = 1.125. 8 × 8 outputs share 8 words of each: 16 / 64 = 0.25.
The budgets are on bytes: 4 · that · m·n·k.

**blocked, bank conflicts**: a warp is 8 threads wide and 4 high. A tile of a with rows of 8 words: if
thread row ty has rows ty, ty + 8, … the four words that a warp reads are 8 words apart: 4 banks. If it has
8·ty … 8·ty + 7, they are 64 words apart: one bank, 4-way. A round of 8 steps has 64 requests for a, 64 for b
and 16 stores of a warp: (4 · 64 + 64 + 16) / 144 = 7/3.

**wide**: 8 bytes a lane instead of 4 halve the requests that move the same bytes: load bytes / (8 · 32), and
m·n·k/32 · 0.125 from shared memory. Wavefronts stay: 32 lanes with 8 bytes are served in two halves.

**staged**: one barrier before the loop and one in each of ⌈k/32⌉ rounds; with one buffer two in each.

**matvec**: a thread per row: lanes are rows apart, 32 sectors, and x one: 16.5. A warp along a row: 4 and 4.
It loads a and, for each row, x again: 8·m·k bytes. Eight rows share a word of x: 4·m·k·(1 + 1/8).

**batched**: n × n products in a block each. Each element once is 2 · 4 · n² bytes; from global memory n
times as much.

**split_k**: slices of k by blockIdx.z, one atomic addition for each output and slice; one for each FMA when
the sum is kept in c.

Where a count is provably the least for the tile asked for, the budget is that count; matvec has 10 % room.
"""

from __future__ import annotations

from collections.abc import Callable

from gpulab.exercises.spec import Array, Budget, Case, Exercise, Prediction, Scalar, Shape, Sizes

LAB = "06"

TILE = 32  # of tiled and staged
LARGE = 64  # of column, blocked and wide
SLICES = 16  # of split_k
SMALL = 16  # of split_k; also the largest product of batched
MATVEC_ROWS = 64  # of a block of matvec


def _n(sizes: Sizes, name: str) -> int:
    return int(sizes[name])


def tiles(n: int, size: int) -> int:
    """Tiles that cover n elements."""
    return -(-n // size)


def product_case(m: int, k: int, n: int) -> Case:
    return Case(f"{m} × {k} × {n}", {"m": m, "k": k, "n": n})


def matvec_case(m: int, k: int) -> Case:
    return Case(f"{m} × {k}", {"m": m, "k": k})


def batch_case(batch: int, n: int) -> Case:
    return Case(f"{batch} of {n} × {n}", {"batch": batch, "n": n})


# ---------------------------------------------------------------- arguments and launches


def product_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    m, k, n = (_n(sizes, name) for name in "mkn")
    return (Array("a", (m, k)), Array("b", (k, n)), Array("c", (m, n), role="out"))


def sum_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    """As a product's, but c comes with zeros in it, to be added to."""
    a, b, _ = product_arguments(sizes)
    return (a, b, Array("c", (_n(sizes, "m"), _n(sizes, "n")), role="inout", fill="zeros"))


def matvec_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    m, k = _n(sizes, "m"), _n(sizes, "k")
    return (Array("a", (m, k)), Array("x", (k,)), Array("y", (m,), role="out"))


def batch_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    shape = (_n(sizes, "batch"), _n(sizes, "n"), _n(sizes, "n"))
    return (Array("a", shape), Array("b", shape), Array("c", shape, role="out"))


def _over_tiles(tile: int, block: tuple[int, int], slices: int = 0) -> Callable[[Sizes], Shape]:
    """Blocks over the tiles of c, x along its columns; at least one, as no launch has none."""

    def shape(sizes: Sizes) -> Shape:
        grid = tuple(max(1, tiles(_n(sizes, name), tile)) for name in "nm")
        return Shape((*grid, slices) if slices else grid, block)

    return shape


# ---------------------------------------------------------------- counts


def multiply_adds(sizes: Sizes) -> int:
    return _n(sizes, "m") * _n(sizes, "k") * _n(sizes, "n")


def untiled_bytes(sizes: Sizes) -> int:
    """Bytes loaded when each multiply-add loads both of its factors."""
    return 8 * multiply_adds(sizes)


def tile_bytes(tile: int) -> Callable[[Sizes], int]:
    """Bytes loaded when each block of tile × tile outputs loads its rows of a and columns of b once."""

    def count(sizes: Sizes) -> int:
        m, k, n = (_n(sizes, name) for name in "mkn")
        return 4 * k * (m * tiles(n, tile) + n * tiles(m, tile))

    return count


def shared_bytes(per_fma: float) -> Callable[[Sizes], float]:
    """Bytes of that many 4-byte loads for each multiply-add."""
    return lambda sizes: 4 * per_fma * multiply_adds(sizes)


def requests(of: Callable[[Sizes], float], size: int) -> Callable[[Sizes], float]:
    """Warp requests that move so many bytes with `size` bytes a lane."""
    return lambda sizes: of(sizes) / (32 * size)


def barriers(a_round: int, more: int = 0) -> Callable[[Sizes], int]:
    return lambda sizes: a_round * tiles(_n(sizes, "k"), TILE) + more


def _loaded(tile: int, points: float, advice: str) -> Budget:
    return Budget(
        "global_load_bytes",
        tile_bytes(tile),
        points,
        "loaded bytes",
        naive=untiled_bytes,
        why=f"tiles of {tile} × {tile}, each element of a tile once",
        advice=f"That is {{times}} × what tiles of {tile} need. {advice}",
    )


def _no_local(points: float) -> Budget:
    return Budget(
        "local_bytes",
        0,
        points,
        "local memory",
        why="sums in registers",
        advice="Registers have no addresses. Does every loop over your own array run to a constant?",
    )


def _no_conflicts(points: float, advice: str, naive: float | None = None) -> Budget:
    return Budget(
        "bank_conflict_ways",
        1,
        points,
        "bank conflicts",
        naive=naive,
        why="1 is none",
        advice=advice,
    )


RAGGED = tuple(
    product_case(*size) for size in ((64, 64, 64), (33, 70, 65), (1, 100, 1), (70, 0, 9), (0, 5, 3))
)

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="gemm.tiled",
        lab=LAB,
        correct_points=1.6,
        cases=(*RAGGED, product_case(96, 128, 160)),
        arguments=product_arguments,
        shape=_over_tiles(TILE, (TILE, TILE)),
        budgets=(
            _loaded(TILE, 1.6, "How many threads of a block load the same element of a?"),
            Budget(
                "global_load_sectors_per_request",
                4,
                0.4,
                "load sectors",
                why="32 lanes × 4 B",
                advice="Which index of the array changes from lane to lane? It should be the last one.",
            ),
            _no_conflicts(
                0.4,
                "In the loop over the tile, which words do the 32 lanes of a warp read, and in which banks?",
            ),
        ),
        rtol=1e-4,
        atol=1e-4,
        hints=(
            "The block walks along k in steps of 32. In each step it needs 32 × 32 elements of a and as many "
            "of b, and has 32 × 32 threads.",
            "Four things happen in a round: each thread loads one element of each tile, all wait, each adds "
            "up 32 products, all wait.",
            "a_tile[ty, tx] takes a[row, first + tx], b_tile[ty, tx] takes b[first + ty, col]; outside the "
            "matrices a zero. The sum runs over a_tile[ty, k] * b_tile[k, tx].",
        ),
        section="3 · A tile of each",
    ),
    Exercise(
        name="gemm.column",
        lab=LAB,
        correct_points=1.4,
        cases=(*RAGGED, product_case(128, 64, 192)),
        arguments=product_arguments,
        shape=_over_tiles(LARGE, (LARGE, 8)),
        budgets=(
            _loaded(LARGE, 0.8, "Is a tile 64 rows of a and 64 columns of b?"),
            Budget(
                "shared_load_bytes",
                shared_bytes(1.125),
                1.4,
                "shared loads",
                naive=shared_bytes(2),
                why="9 words for 8 multiply-adds",
                advice="Eight outputs of one column need the same word of b. How often do you read it?",
            ),
            _no_local(0.4),
        ),
        rtol=1e-4,
        atol=1e-4,
        hints=(
            "A block has 64 × 8 threads and 64 × 64 outputs: eight rows for each thread, all in its column.",
            "Keep eight sums in `cuda.local.array(8, np.float32)`. With tiles of 64 × 8 and 8 × 64 each "
            "thread loads one element of each; number the threads 0–511 for the tile of a.",
            "In the loop over the tile's depth read `b_tile[k, tx]` once into a variable, then add its "
            "product with `a_tile[ty + 8 * i, k]` to sum i, for i in range(8).",
        ),
        section="4 · Eight outputs a thread",
    ),
    Exercise(
        name="gemm.blocked",
        lab=LAB,
        correct_points=2,
        cases=(*RAGGED, product_case(128, 64, 192)),
        arguments=product_arguments,
        shape=_over_tiles(LARGE, (8, 8)),
        budgets=(
            _loaded(LARGE, 0.8, "Do 64 threads share the loading of 64 × 8 and 8 × 64 elements?"),
            Budget(
                "shared_load_bytes",
                shared_bytes(0.25),
                1.8,
                "shared loads",
                naive=shared_bytes(2),
                why="16 words for 64 multiply-adds",
                advice="For one k a thread needs 8 words of a and 8 of b. How often does it read each?",
            ),
            _no_local(0.6),
            _no_conflicts(
                0.8,
                "A warp is 8 threads wide and 4 high. Which rows of the tile of a do its four thread rows "
                "read together, and how many words lie between them?",
                naive=7 / 3,
            ),
        ),
        rtol=1e-4,
        atol=1e-4,
        hints=(
            "Thread (tx, ty) has the outputs at rows ty + 8·i and columns tx + 8·j of the tile, i and j in "
            "range(8).",
            "64 threads fill 64 × 8 and 8 × 64 elements: eight of each tile by each thread, in a loop. "
            "Neighbouring threads take neighbours in a row.",
            "For each k of the tile: copy a_tile[ty + 8 * i, k] into a local array of 8; then for each j "
            "read b_tile[k, tx + 8 * j] once and add its products to eight sums.",
        ),
        section="5 · A square of outputs",
    ),
    Exercise(
        name="gemm.wide",
        lab=LAB,
        correct_points=1.6,
        cases=tuple(
            product_case(*size)
            for size in ((64, 32, 64), (33, 18, 66), (1, 100, 2), (65, 2, 130), (0, 4, 6), (128, 64, 192))
        ),
        arguments=product_arguments,
        shape=_over_tiles(LARGE, (8, 8)),
        budgets=(
            Budget(
                "global_load_requests",
                requests(tile_bytes(LARGE), 8),
                1.2,
                "load requests",
                naive=requests(tile_bytes(LARGE), 4),
                why="8 bytes a lane",
                advice="How many bytes does one lane load from a, and how many from b, in one instruction?",
            ),
            Budget(
                "shared_load_requests",
                requests(shared_bytes(0.25), 8),
                1.6,
                "shared requests",
                naive=requests(shared_bytes(0.25), 4),
                why="8 requests for 64 multiply-adds of a warp",
                advice="A pair read from a tile holds two numbers. Do you use both?",
            ),
            _no_local(0.2),
            _no_conflicts(
                0.4,
                "Take 16 lanes at a time: how many words lie between the pairs that they read together?",
            ),
        ),
        rtol=1e-4,
        atol=1e-4,
        hints=(
            "Start from `blocked`. Both tiles hold pairs now: 64 × 4 pairs of a, neighbours along k, and "
            "8 × 32 pairs of b, neighbours along a row.",
            "The loop over the tile goes over four pairs of k. A pair of a, at (row, p), serves k = 2·p and "
            "2·p + 1; for these two k there are two rows of pairs of b.",
            "One pair of a and two pairs of b make four products, for two sums: first · first and second · "
            "first go to the left column, first · second and second · second to the right one.",
        ),
        section="6 · Two floats at a time",
    ),
    Exercise(
        name="gemm.staged",
        lab=LAB,
        correct_points=1.6,
        cases=(*RAGGED, product_case(64, 256, 96)),
        arguments=product_arguments,
        shape=_over_tiles(TILE, (TILE, TILE)),
        budgets=(
            Budget(
                "barriers_per_warp",
                barriers(1, 1),
                1,
                "barriers",
                naive=barriers(2),
                why="one a round and one before",
                advice="With two buffers nobody writes what others still read. Which barrier is left over?",
            ),
            _loaded(TILE, 0.4, "Does the last round load tiles that nobody needs?"),
        ),
        rtol=1e-4,
        atol=1e-4,
        hints=(
            "Follow warp 0 and warp 1 from one round into the next. Which buffer does each of them touch?",
            "A warp may read the new buffer when all warps have written it. Where must they meet, then?",
            "The one barrier of a round stands after the two stores into the other buffer, not before them.",
        ),
        detective=True,
        section="Detective · The buffer that was not ready",
    ),
    Exercise(
        name="gemm.matvec",
        lab=LAB,
        correct_points=1.6,
        cases=tuple(
            matvec_case(*size) for size in ((64, 64), (70, 33), (1, 1000), (9, 1), (5, 0), (0, 8), (256, 512))
        ),
        arguments=matvec_arguments,
        shape=lambda sizes: Shape((max(1, tiles(_n(sizes, "m"), MATVEC_ROWS)),), (32, 8)),
        budgets=(
            Budget(
                "global_load_sectors_per_request",
                4,
                1.8,
                "load sectors",
                naive=16.5,
                why="32 lanes × 4 B",
                advice="Lanes 0 and 1 load at the same moment. How far apart are their elements of a?",
            ),
            Budget(
                "global_load_bytes",
                lambda sizes: int(1.1 * 4.5 * _n(sizes, "m") * _n(sizes, "k")),
                1.6,
                "loaded bytes",
                naive=lambda sizes: 8 * _n(sizes, "m") * _n(sizes, "k"),
                why="a once; x once for eight rows",
                advice="How often does a warp load the same element of x?",
            ),
        ),
        rtol=1e-4,
        atol=1e-4,
        hints=(
            "The 32 lanes of a warp walk along a row together and each keeps a partial sum.",
            "A block has eight warps and 64 rows. Let warp w take rows w, w + 8, … at the same time, with "
            "eight partial sums in each lane: one word of x serves eight rows.",
            "Put the partial sums into a shared array of 64 × 33 and wait. Then 64 threads add a row each.",
        ),
        section="9 · A matrix times a vector",
        race_case="70 × 33",
    ),
    Exercise(
        name="gemm.batched",
        lab=LAB,
        correct_points=1.4,
        cases=tuple(batch_case(*size) for size in ((4, 16), (3, 7), (5, 1), (2, 13), (0, 4), (64, 16))),
        arguments=batch_arguments,
        shape=lambda sizes: Shape((max(1, _n(sizes, "batch")),), (SMALL, SMALL)),
        budgets=(
            Budget(
                "global_load_bytes",
                lambda sizes: 8 * _n(sizes, "batch") * _n(sizes, "n") ** 2,
                1.6,
                "loaded bytes",
                naive=lambda sizes: 8 * _n(sizes, "batch") * _n(sizes, "n") ** 3,
                why="each element once",
                advice="How many threads of the block load the same element of a?",
            ),
        ),
        rtol=1e-4,
        atol=1e-4,
        hints=(
            "`blockIdx.x` is the number of the product, the thread's x and y its column and row.",
            "A whole factor fits into shared memory: no loop over tiles, one barrier.",
            "Threads outside n × n load nothing and compute nothing, but the barrier is for all of them.",
        ),
        section="10 · Many small products",
        race_case="3 of 7 × 7",
    ),
    Exercise(
        name="gemm.split_k",
        lab=LAB,
        correct_points=1.6,
        cases=tuple(
            product_case(*size)
            for size in ((12, 290, 9), (33, 100, 17), (1, 1000, 1), (40, 0, 9), (0, 64, 3), (64, 1024, 64))
        ),
        arguments=sum_arguments,
        shape=_over_tiles(SMALL, (SMALL, SMALL), SLICES),
        budgets=(
            _loaded(SMALL, 1.2, "Does a block load the slice of another block, too?"),
            Budget(
                "global_atomics",
                lambda sizes: SLICES * _n(sizes, "m") * _n(sizes, "n"),
                1.2,
                "atomic additions",
                sense="==",
                naive=multiply_adds,
                why="one for each output and slice",
                advice="Keep the sum of a slice in a register. When is it added to c?",
            ),
        ),
        rtol=1e-4,
        atol=1e-3,
        hints=(
            "`tiled` walks through all tiles along k. Here a block takes some of them only: which, when "
            "blockIdx.z is 0, 1, …?",
            "Let the block start at tile blockIdx.z and step on by gridDim.z tiles.",
            "At the end `cuda.atomic.add(c, (row, col), total)` adds the block's share; c comes as zeros.",
        ),
        section="11 · A long sum, few outputs",
    ),
)


def _prediction(
    key: str, question: str, unit: str, answer: float | None = None, reason: str = "", tolerance: float = 0.0
) -> Prediction:
    return Prediction(f"gemm.{key}", LAB, question, unit, answer, tolerance, reason)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "intensity",
        "The product of two 1,024 × 1,024 float32 matrices, each element moved once, does per byte",
        "FLOP",
        1024 / 6,
        "2·n³ operations over 3 · 4 · n² bytes: n / 6.",
        0.02,
    ),
    _prediction(
        "naive_sectors",
        "Loads of the plain 256 × 256 × 256 product move in all",
        "sectors",
        2_621_440,
        "2,048 warps, 256 steps, and 1 + 4 sectors in each.",
        0.02,
    ),
    _prediction(
        "tile_words",
        "With tiles of 32 × 32, the factors' elements that a block loads per multiply-add are",
        "words",
        1 / 16,
        "In a step of 32 along k a block loads 2 · 32² words and does 32³ multiply-adds: 2 / 32.",
        0.02,
    ),
    _prediction(
        "square",
        "A thread that computes 8 × 8 outputs reads from shared memory, per multiply-add,",
        "words",
        0.25,
        "For each k it reads 8 words of one tile and 8 of the other, and does 64 multiply-adds.",
        0.01,
    ),
    _prediction(
        "barriers",
        "With one buffer a block passes, in 256 steps along k with tiles of 32,",
        "barriers",
        16,
        "8 rounds with two barriers each.",
    ),
    _prediction(
        "matvec_intensity",
        "A matrix-vector product in float32, per byte of the matrix, does",
        "FLOP",
        0.5,
        "Each element of 4 bytes takes part in one multiplication and one addition.",
        0.01,
    ),
    _prediction(
        "batched_intensity",
        "A product of 16 × 16 matrices, each element moved once, does per byte",
        "FLOP",
        16 / 6,
        "2·n³ operations over 3 · 4 · n² bytes are n / 6.",
        0.02,
    ),
    _prediction(
        "few_blocks",
        "The SMs that work on a product with 64 × 64 outputs in tiles of 16 are at most",
        "SMs",
        16,
        "There are 4 · 4 tiles, one block each, and a block runs on one SM.",
    ),
)
