"""Lab 06: what its exercises ask.

| exercise | asks for a kernel in blocks of | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| tiled | (32, 32): tiled(a, b, c) | a tile of each factor | load bytes | 8·m·n·k | tiles of 32 | 4 |
| | | | load sectors | – | tiles of 32 | |
| | | | shared wavefronts/FMA | – | 2.06/32 | |
| column | (64, 8): column(a, b, c) | eight outputs a thread | load bytes | 8·m·n·k | tiles of 64 | 4 |
| | | | load sectors | 4.5 × good | tiles of 64 | |
| | | | shared loads/FMA | 2 | 1.125 | |
| | | | local bytes | – | 0 | |
| blocked | (8, 8): blocked(a, b, c) | 8 × 8 outputs a thread | load bytes | 8·m·n·k | tiles of 64 | 6 |
| | | | shared loads/FMA | 2 | 0.25 | |
| | | | local bytes | – | 0 | |
| | | | shared wavefronts/warp FMA | 0.66 | 0.28 | |
| wide | (8, 8): wide(a, b, c) | two floats at a time | load requests | with 4 B | half | 5 |
| | | | shared requests/warp FMA | 0.25 | 0.125 | |
| staged | (32, 32): staged(a, b, c), mended | two buffers | hand-overs of a block | 2·k | k + 32 | 3 |
| | | | load bytes | 8·m·n·k | tiles of 32 | |
| matvec | (32, 8): matvec(a, x, y) | the matrix is read once | load sectors | m·k | m·k/4 | 5 |
| | | | load bytes | 8·m·k | 4.5·m·k | |
| batched | (16, 16): batched(a, b, c) | many small products | load bytes | 8·n³ each | 8·n² each | 3 |
| split_k | (16, 16): split_k(a, b, c) | slices of a long sum | busiest block | k columns | its slice | 4 |
| | | | atomic additions | m·n·k | m·n·slices | |

Part B, in CUDA C++; factors are float16, sums float32:

| exercise | asks for a kernel in blocks of | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| fragments | (32,): fragments(a, b, c, m, k, n) | wmma | load bytes | 4·m·n·k | m·n·k/4 | 4 |
| | | | instructions/warp FMA | 1 | 1/4 | |
| lanes | (32,): lanes(x, w, y, m, k, n) | who holds what in mma.sync | load requests/mma | 12 | 6 | 5 |
| | | | instructions | – | m·n·k/32 | |
| tiles | (32, 4): tiles(a, b, c, m, k, n) | fragments from tiles | load bytes | m·n·k/4 | m·n·k/16 | 6 |
| | | | shared bytes/FMA | 1/4 | 1/8 | |
| | | | shared wavefronts/16³ FMA | 14 | 8 | |
| steady | (32,): steady(a, b, c, m, k, n), mended | wide sums | instructions/warp FMA | 1 | 1/4 | 3 |

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

**Sectors and wavefronts** have budgets on their sums. A mean over requests falls with each cheap one that
is added, and when the lanes of a warp take turns.

**column, sectors**: 32 lanes down a column of a touch 32 sectors, along a row of b 4: (32 + 4) / (4 + 4) =
4.5 times as many.

**tiled, wavefronts**: a warp stores a word of each tile a round and loads 2 for each of 32 steps: 66 for
32² · 32 multiply-adds of 32 warps.

**blocked, wavefronts**: a warp is 8 threads wide and 4 high. A tile of a with rows of 8 words: if thread
row ty has rows ty, ty + 8, … the four words that a warp reads are 8 words apart: 4 banks. If it has 8·ty …
8·ty + 7, they are 64 words apart: one bank, 4-way. A round of 8 steps has 64 requests for a, 64 for b and
16 stores of a warp: 144 wavefronts, or 4 · 64 + 64 + 16 = 336, for 1,024 multiply-adds of a warp twice.

**wide**: 8 bytes a lane instead of 4 halve the requests that move the same bytes: load bytes / (8 · 32), and
m·n·k/32 · 0.125 from shared memory. Wavefronts stay: 32 lanes with 8 bytes are served in two halves.

**staged**: one barrier before the loop and one in each of ⌈k/32⌉ rounds; with one buffer two in each. A block
has 32 warps. Hand-overs are barriers and atomics, by which warps can wait, too.

**matvec**: a thread per row: lanes are rows apart, 32 sectors, one for each element of a. A warp along a
row: 4 and 4. It loads a and, for each row, x again: 8·m·k bytes. Eight rows share a word of x: 4·m·k·(1 +
1/8).

**batched**: n × n products in a block each. Each element once is 2 · 4 · n² bytes; from global memory n
times as much.

**split_k**: slices of k by blockIdx.z, one atomic addition for each output and slice; one for each FMA when
the sum is kept in c. The busiest block loads two tiles for each round of its slice; one that does all
slices, while the others add zeros, loads 16 times as much.

**fragments**: a warp's product of 16 × 16 × 16 loads 2 · 512 bytes for 16³ multiply-adds: m·n·k/4 bytes. If
each multiply-add loaded its factors it would be 4·m·n·k. One multiply-add for each lane is one instruction
of a warp for 32 of them, m·n·k/32, and no kernel on the ordinary lanes can do with less. Here one
instruction does 128 times as much; with the loads and the loop it is 0.18 of that at k = 64, and 1/4 leaves
room.

**lanes**: an m16n8k16 takes 4 registers of two halves of A and 2 of B from each lane: 6 requests of 4 bytes a
lane, or 12 of 2 bytes.

**tiles**: tiles of 64 × 64 outputs: 2 · 64 halves of each step along k for 64² multiply-adds. A warp has 32
× 32 of them, so four fragments of 512 bytes serve 32 · 32 · 16 multiply-adds: 1/8 byte each; loaded anew
for each product it is 1/4. Rows of 64 halves are 32 words, so 16 rows of 8 words lie in banks 0 to 7: 16
passes where 4 would do. A step of 16 has 8 fragments of each factor and 64 requests to fill the tiles: (8 ·
16 + 8 · 4 + 64) / (16 · 4 + 64) = 7/4.

**steady**: as fragments; with float16 sums the relative error passes 0.1 % at k = 256.

Where a count is provably the least for the tile asked for, the budget is that count; matvec has 10 % room.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gpulab.checks.builders import count, prediction
from gpulab.checks.evidence import LaunchTrace
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Shape, Sizes
from gpulab.simulator import hardware

LAB = "06"

TILE = 32  # of tiled and staged
LARGE = 64  # of column, blocked and wide
DEPTH = 8  # of their tiles
SLICES = 16  # of split_k, but for one case
SMALL = 16  # of split_k; also the largest product of batched
MATVEC_ROWS = 64  # of a block of matvec
A100 = hardware.find("A100")
FRAGMENT = 16  # rows, columns and depth of a fragment
A_BLOCK = 96  # instructions that a block of one warp may have, whatever it does


def tiles(n: int, size: int) -> int:
    """Tiles that cover n elements."""
    return -(-n // size)


def product_case(m: int, k: int, n: int) -> Case:
    return Case(f"{m} × {k} × {n}", {"m": m, "k": k, "n": n})


def split_case(m: int, k: int, n: int, slices: int = SLICES) -> Case:
    """A product whose k is cut for so many blocks; named with it where it is not the usual number."""
    name = f"{m} × {k} × {n}" + (f", gridDim.z {slices}" if slices != SLICES else "")
    return Case(name, {"m": m, "k": k, "n": n, "slices": slices})


def _products(*sizes: tuple[int, int, int]) -> tuple[Case, ...]:
    return tuple(product_case(*size) for size in sizes)


def matvec_case(m: int, k: int) -> Case:
    return Case(f"{m} × {k}", {"m": m, "k": k})


def batch_case(batch: int, n: int) -> Case:
    return Case(f"{batch} of {n} × {n}", {"batch": batch, "n": n})


# ---------------------------------------------------------------- arguments and launches


def product_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    m, k, n = (count(sizes, name) for name in "mkn")
    return (Array("a", (m, k)), Array("b", (k, n)), Array("c", (m, n), role="out"))


def sum_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    """As a product's, but c comes with zeros in it, to be added to."""
    a, b, _ = product_arguments(sizes)
    return (a, b, Array("c", (count(sizes, "m"), count(sizes, "n")), role="inout", fill="zeros"))


def matvec_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    m, k = count(sizes, "m"), count(sizes, "k")
    return (Array("a", (m, k)), Array("x", (k,)), Array("y", (m,), role="out"))


def batch_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    shape = (count(sizes, "batch"), count(sizes, "n"), count(sizes, "n"))
    return (Array("a", shape), Array("b", shape), Array("c", shape, role="out"))


def half_arguments(sizes: Sizes, fill: str = "normal") -> tuple[Array | Scalar, ...]:
    """Factors in float16, the product in float32, and m, k, n, as kernels in CUDA C++ get them."""
    m, k, n = (count(sizes, name) for name in "mkn")
    return (
        Array("a", (m, k), "float16", fill=fill),
        Array("b", (k, n), "float16", fill=fill),
        Array("c", (m, n), role="out"),
        *(Scalar(name, count(sizes, name), "int32") for name in "mkn"),
    )


def positive_half_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    return half_arguments(sizes, "uniform")


def layer_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    """As `half_arguments`, with the weights as a layer stores them: (outputs, inputs)."""
    m, k, n = (count(sizes, name) for name in "mkn")
    x, w, y = Array("x", (m, k), "float16"), Array("w", (n, k), "float16"), Array("y", (m, n), role="out")
    return (x, w, y, *(Scalar(name, count(sizes, name), "int32") for name in "mkn"))


def _over_tiles(tile: int, block: tuple[int, int], sliced: bool = False) -> Callable[[Sizes], Shape]:
    """Blocks over the tiles of c, x along its columns; at least one, as no launch has none. Where the sum is
    sliced, z counts the case's slices."""

    def shape(sizes: Sizes) -> Shape:
        grid = tuple(max(1, tiles(count(sizes, name), tile)) for name in "nm")
        return Shape((*grid, count(sizes, "slices")) if sliced else grid, block)

    return shape


# ---------------------------------------------------------------- counts


def multiply_adds(sizes: Sizes) -> int:
    return count(sizes, "m") * count(sizes, "k") * count(sizes, "n")


def untiled_bytes(sizes: Sizes) -> int:
    """Bytes loaded when each multiply-add loads both of its factors."""
    return 8 * multiply_adds(sizes)


def tile_bytes(tile: int) -> Callable[[Sizes], int]:
    """Bytes loaded when each block of tile × tile outputs loads its rows of a and columns of b once.

    A block is launched for a product without rows or columns, too.
    """

    def total(sizes: Sizes) -> int:
        m, k, n = (count(sizes, name) for name in "mkn")
        return 4 * k * (m * max(1, tiles(n, tile)) + n * max(1, tiles(m, tile)))

    return total


def whole_tiles(of: Callable[[Sizes], float], depth: int = DEPTH) -> Callable[[Sizes], float]:
    """A count for matrices filled up to tiles of 64 × 64 outputs: beyond the edge zeros are multiplied.

    Where k is no multiple of the tiles' depth they may be twice as deep.
    """

    def total(sizes: Sizes) -> float:
        m, k, n = (count(sizes, name) for name in "mkn")
        deep = depth if k % depth == 0 else 2 * depth
        rows, cols = (LARGE * max(1, tiles(length, LARGE)) for length in (m, n))
        return of({"m": rows, "k": deep * tiles(k, deep), "n": cols})

    return total


def shared_bytes(per_fma: float) -> Callable[[Sizes], float]:
    """Bytes of that many 4-byte loads for each multiply-add."""
    return lambda sizes: 4 * per_fma * multiply_adds(sizes)


def requests(of: Callable[[Sizes], float], size: int) -> Callable[[Sizes], float]:
    """Warp requests that move so many bytes with `size` bytes a lane."""
    return lambda sizes: of(sizes) / (32 * size)


def warp_multiply_adds(share: float, least: int = 0) -> Callable[[Sizes], float]:
    """So many instructions for each multiply-add of a warp, 32 of them; at `least` so many a block."""

    def total(sizes: Sizes) -> float:
        fragments = tiles(count(sizes, "m"), FRAGMENT) * tiles(count(sizes, "n"), FRAGMENT)
        return max(share * multiply_adds(sizes) / 32, least * fragments)

    return total


def matvec_bytes(sizes: Sizes) -> int:
    """a once, and x once for each of the eight warps of a block; a tenth more."""
    m, k = count(sizes, "m"), count(sizes, "k")
    return int(1.1 * 4 * k * (m + 8 * max(1, tiles(m, MATVEC_ROWS))))


def sectors(count: int) -> int:
    """The most of so many neighbours, eight at a time; where a row is not whole they begin within one."""
    return tiles(count, 8) * (1 if count % 8 == 0 else 2)


def tile_sectors(tile: int) -> Callable[[Sizes], int]:
    """As `tile_bytes`, in sectors."""

    def total(sizes: Sizes) -> int:
        m, k, n = (count(sizes, name) for name in "mkn")
        return m * sectors(k) * max(1, tiles(n, tile)) + k * sectors(n) * max(1, tiles(m, tile))

    return total


def column_naive(sizes: Sizes) -> float:
    """A tile of a filled down its columns: 32 sectors where 4 would do."""
    return 4.5 * tile_sectors(LARGE)(sizes)


def tile_rounds(sizes: Sizes) -> int:
    """Rounds of all blocks that go along k in tiles of 32."""
    m, k, n = (count(sizes, name) for name in "mkn")
    return max(1, tiles(m, TILE)) * max(1, tiles(n, TILE)) * tiles(k, TILE)


def matvec_sectors(sizes: Sizes) -> int:
    """A row of a and x for each row, or x for each of the eight warps of a block."""
    m, k = count(sizes, "m"), count(sizes, "k")
    return m * sectors(k) + max(m, 8 * max(1, tiles(m, MATVEC_ROWS))) * sectors(k)


def slice_bytes(sizes: Sizes) -> int:
    """Bytes of the tiles of 16 × 16 in one of the slices."""
    return 8 * SMALL**2 * tiles(tiles(count(sizes, "k"), SMALL), count(sizes, "slices"))


def whole_bytes(sizes: Sizes) -> int:
    """As `slice_bytes`, where a block does all slices."""
    return 8 * SMALL**2 * tiles(count(sizes, "k"), SMALL)


def half_tile_bytes(tile: int) -> Callable[[Sizes], int]:
    """As `tile_bytes`, for float16."""
    return lambda sizes: tile_bytes(tile)(sizes) // 2


def hand_overs(a_round: int, more: int = 0) -> Callable[[Sizes], int]:
    """Those of a block of TILE × TILE threads that passes so many barriers a round, and `more` outside."""
    warps = TILE * TILE // 32
    return lambda sizes: warps * (a_round * tiles(count(sizes, "k"), TILE) + more)


def _loaded(tile: int, points: float, advice: str) -> Budget:
    return Budget(
        "global_load_bytes",
        tile_bytes(tile),
        points,
        "loaded bytes",
        naive=untiled_bytes,
        why=f"tiles of {tile} × {tile}, each element of a tile once",
        advice=f"That is {{times}} × what tiles of {tile} need. {advice}",
        case=EVERY,
    )


def _in_order(
    points: float,
    of: Callable[[Sizes], float],
    advice: str,
    naive: Callable[[Sizes], float] | None = None,
) -> Budget:
    return Budget(
        "global_load_sectors",
        of,
        points,
        "load sectors",
        naive=naive,
        why="32 lanes × 4 B = 4 sectors",
        advice=f"That is {{times}} × what loads along the rows need. {advice}",
        case=EVERY,
    )


def _no_local(points: float) -> Budget:
    return Budget(
        "local_bytes",
        0,
        points,
        "local memory",
        why="sums in registers",
        case=EVERY,
        advice="Registers have no addresses. Does every loop over your local array run to a constant?",
    )


def _no_conflicts(
    points: float,
    of: Callable[[Sizes], float],
    advice: str,
    naive: Callable[[Sizes], float] | None = None,
) -> Budget:
    """A tenth more wavefronts than `of`, which has no conflict."""
    return Budget(
        "shared_wavefronts",
        lambda sizes: 1.1 * of(sizes),
        points,
        "bank conflicts",
        naive=naive,
        why="as many as without a conflict, and a tenth",
        case=EVERY,
        advice=advice,
    )


RAGGED = tuple(
    product_case(*size)
    for size in ((64, 64, 64), (33, 70, 65), (40, 5, 33), (1, 100, 1), (70, 0, 9), (0, 5, 3))
)

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="gemm.tiled",
        lab=LAB,
        varies=("m", "k", "n"),
        correct_points=1.6,
        cases=(*RAGGED, product_case(96, 128, 160)),
        evidence=LaunchTrace(arguments=product_arguments, shape=_over_tiles(TILE, (TILE, TILE))),
        budgets=(
            _loaded(TILE, 1.6, "How many threads of a block load the same element of a?"),
            _in_order(
                0.4,
                tile_sectors(TILE),
                "Which index of the array changes from lane to lane? It should be the last one.",
            ),
            _no_conflicts(
                0.4,
                lambda sizes: 32 * (2 * TILE + 2) * tile_rounds(sizes),
                "In the loop over the tile, which words do the 32 lanes of a warp read, and in which banks?",
            ),
        ),
        rtol=1e-4,
        atol=1e-4,
        hints=(
            "The block walks along k in steps of 32. In each step it needs 32 × 32 elements of a and as many "
            "of b. It has 32 × 32 threads to load them with.",
            "A round has four parts: each thread loads one element of each tile, all wait at a barrier, each "
            "thread adds 32 products to its sum, and all wait again.",
            "Store a[row, first + tx] in a_tile[ty, tx] and b[first + ty, col] in b_tile[ty, tx], or a zero "
            "where the index is outside the matrix. Then add a_tile[ty, k] * b_tile[k, tx] for k from 0 to "
            "31.",
        ),
        section="3 · A tile of each",
    ),
    Exercise(
        name="gemm.column",
        lab=LAB,
        varies=("m", "k", "n"),
        correct_points=1.4,
        cases=(*RAGGED, product_case(128, 64, 192)),
        evidence=LaunchTrace(arguments=product_arguments, shape=_over_tiles(LARGE, (LARGE, 8))),
        budgets=(
            _loaded(LARGE, 0.6, "Is a tile 64 rows of a and 64 columns of b?"),
            _in_order(
                0.4,
                tile_sectors(LARGE),
                "When a tile is filled, does the last index change from lane to lane?",
                naive=column_naive,
            ),
            Budget(
                "shared_load_bytes",
                whole_tiles(shared_bytes(1.125)),
                1.2,
                "shared loads",
                naive=whole_tiles(shared_bytes(2)),
                why="9 words for 8 multiply-adds",
                case=EVERY,
                advice="Eight outputs of one column need the same word of b. How often do you read it?",
            ),
            _no_local(0.4),
        ),
        rtol=1e-4,
        atol=1e-4,
        hints=(
            "A block has 64 × 8 threads and 64 × 64 outputs, so each thread computes eight rows of its "
            "column.",
            "Keep eight sums in `cuda.local.array(8, np.float32)`. The tiles have 64 × 8 and 8 × 64 "
            "elements, so each thread loads one element of each. For the tile of a, number the threads from "
            "0 to 511.",
            "Copy the thread's column of b's tile, eight words, into a second local array. Then loop over i, "
            "and inside it over k, and add `a_tile[ty + 8 * i, k]` times word k to sum i.",
        ),
        section="4 · Eight outputs a thread",
    ),
    Exercise(
        name="gemm.blocked",
        lab=LAB,
        varies=("m", "k", "n"),
        correct_points=2,
        cases=(*RAGGED, product_case(128, 64, 192)),
        evidence=LaunchTrace(arguments=product_arguments, shape=_over_tiles(LARGE, (8, 8))),
        budgets=(
            _loaded(LARGE, 0.8, "Do 64 threads share the loading of 64 × 8 and 8 × 64 elements?"),
            Budget(
                "shared_load_bytes",
                whole_tiles(shared_bytes(0.25)),
                1.8,
                "shared loads",
                naive=whole_tiles(shared_bytes(2)),
                why="16 words for 64 multiply-adds",
                case=EVERY,
                advice="For one k a thread needs 8 words of a and 8 of b. How often does it read each?",
            ),
            _no_local(0.6),
            _no_conflicts(
                0.8,
                whole_tiles(lambda sizes: 288 / 64**2 / 8 * multiply_adds(sizes)),
                "A warp is 8 threads wide and 4 high. Which words of that tile do its lanes read or write "
                "together, and how many words lie between its four thread rows?",
                naive=whole_tiles(lambda sizes: 672 / 64**2 / 8 * multiply_adds(sizes)),
            ),
        ),
        rtol=1e-4,
        atol=1e-4,
        hints=(
            "Thread (tx, ty) computes the outputs in rows ty + 8·i and columns tx + 8·j of the tile, for i "
            "and j in range(8).",
            "64 threads fill tiles of 64 × 8 and 8 × 64 elements, so each thread loads eight elements of "
            "each in a loop. Let neighbouring threads load neighbours in a row.",
            "For each k of the tile, copy a_tile[ty + 8 * i, k] for all i into a local array of 8. Then, for "
            "each j, read b_tile[k, tx + 8 * j] once and add its products to eight sums.",
        ),
        section="5 · A square of outputs",
    ),
    Exercise(
        name="gemm.wide",
        lab=LAB,
        varies=("m", "k", "n"),
        correct_points=1.6,
        cases=tuple(
            product_case(*size)
            for size in (
                (64, 32, 64),
                (33, 18, 66),
                (40, 6, 34),
                (1, 100, 2),
                (65, 2, 130),
                (0, 4, 6),
                (128, 64, 192),
            )
        ),
        evidence=LaunchTrace(arguments=product_arguments, shape=_over_tiles(LARGE, (8, 8))),
        budgets=(
            Budget(
                "global_load_requests",
                requests(whole_tiles(tile_bytes(LARGE)), 8),
                1.2,
                "load requests",
                naive=requests(whole_tiles(tile_bytes(LARGE)), 4),
                why="8 bytes a lane",
                case=EVERY,
                advice="How many bytes does one lane load from a, and how many from b, with one instruction?",
            ),
            Budget(
                "shared_load_requests",
                requests(whole_tiles(shared_bytes(0.25)), 8),
                1.6,
                "shared requests",
                naive=requests(whole_tiles(shared_bytes(0.25)), 4),
                why="8 requests for 64 multiply-adds of a warp",
                case=EVERY,
                advice="A pair read from a tile holds two numbers. Do you use both?",
            ),
            _no_local(0.2),
            _no_conflicts(
                0.4,
                whole_tiles(lambda sizes: 288 / 64**2 / 8 * multiply_adds(sizes)),
                "Take 16 lanes at a time: how many words lie between the pairs that they read or write "
                "together?",
            ),
        ),
        rtol=1e-4,
        atol=1e-4,
        hints=(
            "Start from `blocked`. Both tiles hold pairs now: 64 × 4 pairs of a, which are neighbours along "
            "k, and 8 × 32 pairs of b, which are neighbours along a row.",
            "The loop over the tile has four steps p. The pair of a at (row, p) holds the elements for k = "
            "2·p and k = 2·p + 1, so a step needs two rows of pairs of b.",
            "One pair of a and two pairs of b make four products, each added with a += of its own. To the "
            "left column's sum add first · first (upper row) and second · first (lower row). To the right "
            "column's sum add first · second (upper row) and second · second (lower row).",
        ),
        section="6 · Two floats at a time",
    ),
    Exercise(
        name="gemm.staged",
        lab=LAB,
        varies=("m", "k", "n"),
        correct_points=1.6,
        cases=(*RAGGED, product_case(64, 256, 96)),
        evidence=LaunchTrace(arguments=product_arguments, shape=_over_tiles(TILE, (TILE, TILE))),
        budgets=(
            Budget(
                "block_hand_overs",
                hand_overs(1, 1),
                1,
                "barriers",
                naive=hand_overs(2),
                why="32 warps at one barrier a round and one before",
                case=EVERY,
                advice="With two buffers no warp writes what others still read. Which barrier is not needed?",
            ),
            _loaded(TILE, 0.4, "Does the last round load tiles that nobody needs?"),
        ),
        rtol=1e-4,
        atol=1e-4,
        hints=(
            "Follow warp 0 and warp 1 from one round into the next. Which buffer does each of them touch?",
            "A warp may read the new buffer only after all warps have written to it. So where must they "
            "meet?",
            "The one barrier of a round belongs after the two stores into the other buffer, not before them.",
        ),
        detective=True,
        section="Detective · The buffer that was not ready",
    ),
    Exercise(
        name="gemm.matvec",
        lab=LAB,
        varies=("m", "k"),
        correct_points=1.6,
        cases=tuple(
            matvec_case(*size) for size in ((64, 64), (70, 33), (1, 1000), (9, 1), (5, 0), (0, 8), (256, 512))
        ),
        evidence=LaunchTrace(
            arguments=matvec_arguments,
            shape=lambda sizes: Shape((max(1, tiles(count(sizes, "m"), MATVEC_ROWS)),), (32, 8)),
            race_case="70 × 33",
        ),
        budgets=(
            _in_order(
                1.8,
                matvec_sectors,
                "Lanes 0 and 1 load at the same moment. How far apart are their elements of a?",
                naive=lambda sizes: count(sizes, "m") * count(sizes, "k"),
            ),
            Budget(
                "global_load_bytes",
                matvec_bytes,
                1.6,
                "loaded bytes",
                naive=lambda sizes: 8 * count(sizes, "m") * count(sizes, "k"),
                why="a once; x once for eight rows",
                case=EVERY,
                advice="How often does a warp load the same element of x?",
            ),
        ),
        rtol=1e-4,
        atol=1e-4,
        hints=(
            "The 32 lanes of a warp walk along a row together, and each lane keeps a partial sum.",
            "A block has eight warps and 64 rows. Let warp w walk along rows w, w + 8, … at the same time, "
            "with eight partial sums in each lane. Then one word of x serves eight rows.",
            "Store the partial sums in a shared array of 64 × 33 and wait at a barrier. Then 64 threads add "
            "up one row of it each.",
        ),
        section="9 · A matrix times a vector",
    ),
    Exercise(
        name="gemm.batched",
        lab=LAB,
        correct_points=1.4,
        cases=tuple(batch_case(*size) for size in ((4, 16), (3, 7), (5, 1), (2, 13), (0, 4), (64, 16))),
        evidence=LaunchTrace(
            arguments=batch_arguments,
            shape=lambda sizes: Shape((max(1, count(sizes, "batch")),), (SMALL, SMALL)),
            race_case="3 of 7 × 7",
        ),
        budgets=(
            Budget(
                "global_load_bytes",
                lambda sizes: 8 * count(sizes, "batch") * count(sizes, "n") ** 2,
                1.6,
                "loaded bytes",
                naive=lambda sizes: 8 * count(sizes, "batch") * count(sizes, "n") ** 3,
                why="each element once",
                case=EVERY,
                advice="How many threads of the block load the same element of a?",
            ),
        ),
        rtol=1e-4,
        atol=1e-4,
        hints=(
            "`blockIdx.x` is the number of the product. The thread's x and y are its column and its row.",
            "A whole matrix fits into shared memory, so there is one barrier and no loop over tiles.",
            "Threads outside n × n load nothing and compute nothing, but they too must reach the barrier.",
        ),
        section="10 · Many small products",
    ),
    Exercise(
        name="gemm.split_k",
        lab=LAB,
        correct_points=1.6,
        cases=tuple(
            split_case(*size)
            for size in (
                (32, 512, 32),
                (12, 290, 9),
                (33, 100, 17),
                (20, 130, 18, 3),
                (1, 1000, 1),
                (40, 0, 9),
                (0, 64, 3),
                (64, 1024, 64),
            )
        ),
        evidence=LaunchTrace(arguments=sum_arguments, shape=_over_tiles(SMALL, (SMALL, SMALL), sliced=True)),
        budgets=(
            Budget(
                "block_load_bytes",
                slice_bytes,
                1.2,
                "loaded by a block",
                naive=whole_bytes,
                why="tiles of 16 × 16 of its slice",
                case=EVERY,
                advice="That is {times} × what a slice needs. Does a block load another block's slice as "
                "well?",
            ),
            Budget(
                "global_atomics",
                lambda sizes: count(sizes, "slices") * count(sizes, "m") * count(sizes, "n"),
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
            "`tiled` walks through all tiles along k. Here a block takes only some of them. Which ones, if "
            "blockIdx.z is 0, 1, …?",
            "Let the block start at tile blockIdx.z and move on by gridDim.z tiles in each step.",
            "After the loop, `cuda.atomic.add(c, (row, col), total)` adds the block's sum. c contains zeros "
            "before the launch.",
        ),
        section="11 · A long sum, few outputs",
    ),
    Exercise(
        name="gemm.fragments",
        lab=LAB,
        correct_points=1.6,
        cases=_products((16, 32, 16), (32, 16, 48), (16, 0, 16), (64, 64, 80)),
        evidence=LaunchTrace(
            arguments=half_arguments,
            shape=lambda sizes: Shape((count(sizes, "n") // FRAGMENT, count(sizes, "m") // FRAGMENT), (32,)),
            face="cupy",
        ),
        budgets=(
            Budget(
                "global_load_bytes",
                half_tile_bytes(FRAGMENT),
                0.8,
                "loaded bytes",
                naive=lambda sizes: 4 * multiply_adds(sizes),
                why="each fragment once",
                case=EVERY,
                advice="A fragment holds 16 × 16 elements. How often does the warp load the same one?",
            ),
            Budget(
                "instructions",
                warp_multiply_adds(0.25, A_BLOCK),
                1.6,
                "instructions",
                naive=warp_multiply_adds(1),
                why="a quarter of what the float32 lanes would need at least",
                case=EVERY,
                advice="Which instruction of your loop does the multiplying, and for how many elements?",
            ),
        ),
        rtol=1e-3,
        atol=1e-3,
        hints=(
            "You need three fragments: matrix_a and matrix_b of __half, both row_major, and an accumulator "
            "of float.",
            "Fill the accumulator with zeros. In each step of 16 along k, load both fragments and call "
            "mma_sync(sum, left, right, sum). After the loop, store it.",
            "The fragment of a starts at a + row * k + i, and its rows are k elements apart. The fragment "
            "of b starts at b + i * n + col, and its rows are n elements apart.",
        ),
        section="2 · Fragments",
    ),
    Exercise(
        name="gemm.lanes",
        lab=LAB,
        correct_points=2.6,
        cases=_products((16, 16, 8), (32, 48, 24), (16, 0, 8), (64, 64, 40)),
        evidence=LaunchTrace(
            arguments=layer_arguments,
            shape=lambda sizes: Shape((count(sizes, "n") // 8, count(sizes, "m") // FRAGMENT), (32,)),
            face="cupy",
        ),
        budgets=(
            Budget(
                "instructions",
                warp_multiply_adds(1),
                0.4,
                "instructions",
                why="fewer than the float32 lanes would need at least",
                advice="Which instruction of your loop does the multiplying, and for how many elements?",
            ),
            Budget(
                "global_load_requests",
                lambda sizes: 6 * multiply_adds(sizes) // (16 * 8 * 16),
                2.0,
                "load requests",
                naive=lambda sizes: 12 * multiply_adds(sizes) // (16 * 8 * 16),
                why="6 registers for each mma",
                advice="A register holds two neighbouring halves. How many loads do you need to fill it?",
                case=EVERY,
            ),
        ),
        rtol=1e-3,
        atol=1e-3,
        hints=(
            "View x and w as arrays of unsigned, so that one element is two halves. A row of k halves is k "
            "/ 2 elements, and columns 2t and 2t + 1 are element t of the row.",
            "Let p = x + (row * k + i) / 2 + t, where row is the lane's row g of the tile. The four "
            "registers are p[0], then the element eight rows further down, the one eight columns further "
            "on, and the one at both distances.",
            "Eight rows are 4 * k elements of unsigned, and eight columns are 4. For w the row is the output "
            "column: q = w + ((col + g) * k + i) / 2 + t, and the registers are q[0] and q[4].",
        ),
        section="3 · Who holds what",
    ),
    Exercise(
        name="gemm.tiles",
        lab=LAB,
        correct_points=1.6,
        cases=_products((64, 16, 64), (64, 37, 128), (128, 1, 64), (64, 0, 64), (128, 64, 192)),
        evidence=LaunchTrace(
            arguments=half_arguments,
            shape=lambda sizes: Shape((count(sizes, "n") // LARGE, count(sizes, "m") // LARGE), (32, 4)),
            face="cupy",
            race_case="64 × 37 × 128",
        ),
        budgets=(
            Budget(
                "global_load_bytes",
                half_tile_bytes(LARGE),
                2.4,
                "loaded bytes",
                naive=half_tile_bytes(FRAGMENT),
                why="tiles of 64 × 64, each element of a tile once",
                case=EVERY,
                advice="How many of the block's four warps load the same element of a?",
            ),
            Budget(
                "shared_load_bytes",
                whole_tiles(lambda sizes: multiply_adds(sizes) / 8, FRAGMENT),
                1.2,
                "shared loads",
                naive=whole_tiles(lambda sizes: multiply_adds(sizes) / 4, FRAGMENT),
                why="four fragments for four products of a warp",
                case=EVERY,
                advice="Two fragments of a and two of b make four products. How many fragments do you load?",
            ),
            _no_conflicts(
                0.8,
                whole_tiles(lambda sizes: 128 / 64**2 / 16 * multiply_adds(sizes), FRAGMENT),
                "How many words long is a row of that tile? Which banks hold 8 words of each of 16 rows, and "
                "to which banks do 32 lanes write when they fill it?",
                naive=whole_tiles(lambda sizes: 224 / 64**2 / 16 * multiply_adds(sizes), FRAGMENT),
            ),
        ),
        rtol=1e-3,
        atol=1e-3,
        hints=(
            "A block has 64 × 64 outputs, and a warp has a quarter of them: 32 × 32, in four accumulators. "
            "threadIdx.y decides which quarter.",
            "128 threads fill tiles of 64 × 16 and 16 × 64 halves, so each thread stores eight elements of "
            "each. Where the index along k is not below k, store __half(0).",
            "Load two fragments of each tile, and multiply each with each. If the rows of the tile of b are "
            "72 long instead of 64, they are in different banks.",
        ),
        section="4 · Sizes that fit",
    ),
    Exercise(
        name="gemm.steady",
        lab=LAB,
        correct_points=2,
        cases=_products((16, 64, 16), (32, 256, 16), (16, 0, 16), (16, 1024, 16)),
        evidence=LaunchTrace(
            arguments=positive_half_arguments,
            shape=lambda sizes: Shape((count(sizes, "n") // FRAGMENT, count(sizes, "m") // FRAGMENT), (32,)),
            face="cupy",
        ),
        budgets=(
            Budget(
                "instructions",
                warp_multiply_adds(0.25, A_BLOCK),
                1,
                "instructions",
                naive=warp_multiply_adds(1),
                why="a quarter of what the float32 lanes would need at least",
                case=EVERY,
                advice="Do the tensor cores still do the adding?",
            ),
        ),
        rtol=1e-3,
        atol=1e-3,
        hints=(
            "The factors are exact, and so are their products. What is rounded, and to how many bits?",
            "Near 256 neighbouring float16 numbers are 1/4 apart. What happens to a product of 0.1?",
            "You can choose the accumulator's type separately: the sum can be float while the factors are "
            "float16.",
        ),
        detective=True,
        section="Detective · The sum that grew too slowly",
    ),
)


_prediction = partial(prediction, "gemm", LAB)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "intensity",
        "For each byte moved, the product of two 1,024 × 1,024 float32 matrices, each element moved once, "
        "does",
        "FLOP",
        1024 / 6,
        "2·n³ operations over 3 · 4 · n² bytes are n / 6, and 1,024 / 6 = 170.7.",
        0.02,
    ),
    _prediction(
        "naive_sectors",
        "All loads of the plain 256 × 256 × 256 product together move",
        "sectors",
        2_621_440,
        "256 · 256 / 32 = 2,048 warps, with 256 steps each, and 1 + 4 sectors in each step.",
        0.02,
    ),
    _prediction(
        "tile_words",
        "With tiles of 32 × 32, a block loads from global memory, per multiply-add,",
        "words",
        1 / 16,
        "In a step of 32 along k a block loads 2 · 32² words and does 32³ multiply-adds: 2 / 32.",
        0.02,
    ),
    _prediction(
        "square",
        "A thread that computes 4 × 8 outputs reads from shared memory, per multiply-add,",
        "words",
        0.375,
        "For each k it reads 4 words of one tile and 8 of the other, and does 32 multiply-adds: 12 / 32.",
        0.01,
    ),
    _prediction(
        "barriers",
        "With one buffer and tiles of 32, a block that takes 256 steps along k passes",
        "barriers",
        16,
        "256 / 32 = 8 rounds, with two barriers each.",
    ),
    _prediction(
        "few_blocks",
        "A product with 64 × 64 outputs in tiles of 16 × 16 can keep busy at most",
        "SMs",
        16,
        "There are 4 · 4 = 16 tiles with one block each, and a block runs on one SM.",
    ),
    _prediction(
        "tensor_ratio",
        "Compared with its float32 lanes, an A100's tensor cores do float16 multiply-adds",
        "times as fast",
        int(A100.tensor_fma["float16"]) / int(A100.fp32_lanes),
        reason="Per clock and SM the tensor cores do 1,024 and the lanes 64.",
        tolerance=0.02,
    ),
    _prediction(
        "held",
        "The lower half of register a[3] of lane 13 holds an element of A from column",
        "",
        10,
        "t = 13 % 4 = 1, so the columns are 2 and 3, plus 8 for registers a[2] and a[3]. (The row is "
        "13 // 4 + 8 = 11.)",
    ),
    _prediction(
        "padded",
        "The least multiple of 64 that holds a vocabulary of 50,257 tokens is",
        "",
        50_304,
        "50,257 / 64 = 785.3 is rounded up to 786, and 786 · 64 = 50,304.",
    ),
    _prediction(
        "waves",
        "Share of the time of 108 SMs that a 1,408 × 1,408 product in tiles of 128 uses, with one tile at a "
        "time on each SM",
        "%",
        100 * 121 / 216,
        "11 · 11 = 121 tiles take two rounds of 108 places, and 121 / 216 = 56 %.",
        0.02,
    ),
)
