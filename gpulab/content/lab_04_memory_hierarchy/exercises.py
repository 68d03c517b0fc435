"""Lab 04: what its ten exercises ask.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| sectors | sectors(addresses, size) | whole 32-byte sectors move | answers | – | – | 3 |
| copy | kernel copy(a, b), 1,024 threads | blocked → striped | load, store sectors | n | n/8 | 4 |
| | | | sectors in all | – | n/4 | |
| transpose | kernel transpose(a, out) | a tile turns the walk | load, store sectors | n | n/8 | 4 |
| | | | sectors in all | – | n/4 | |
| centre | kernel centre(a, out), mended | both barriers of a tiled loop | load bytes/element | 256 | 4 | 2 |
| | | | store bytes/element | – | 4 | |
| unpack | kernel unpack(points, xs, ys, zs) | records → columns | load sectors | 9·n/8 | 3·n/8 | 4 |
| | | | sectors in all | 27·n/8 | 3·n/4 | |
| ways | ways(addresses, size) | 32 banks, words, groups of lanes | answers | – | – | 3 |
| padded | kernel transpose(a, out) again | a column of padding | sectors in all | 9·n/8 | n/4 | 4 |
| | | | shared wavefronts/block | 1,056 | 64 | |
| blur | kernel blur(a, out), 3 × 3 | a tile with its halo | load bytes/element | 36 | 5.2 | 5 |
| | | | store bytes/element | – | 4 | |
| smooth | kernel smooth(a, out), mean of 4 | registers, not local memory | load bytes/element | 16 | 4 | 3 |
| | | | local bytes/element | 20 | 0 | |
| | | | store bytes/element | – | 4 | |
| compressed | compressed(words) | what a line's words have in common | answers | – | – | 2 |

Derivations, for 4-byte elements and warps of 32:

**copy**: with n elements over 1,024 threads, blocked gives each thread n / 1,024 neighbours; from 8 on
every lane has a sector of its own: 32 a request, n in all. Striped: 32 lanes · 4 B = 128 B = 4 sectors, and
4-byte loads cannot do with less: n · 4 B / 32 B loaded and as many stored. Budgets are on the sum and not on
sectors a request: that falls with each cheap request that is added, and when the lanes of a warp take turns.
Loads and stores by themselves may earn a part, the sectors in all everything or nothing. Where n is no
multiple of 1,024 a warp's 32 neighbours may begin within a sector: 5 a request. The same budgets stand in
transpose, unpack and padded; the others count bytes in all.

**transpose**: `out[x, y] = a[y, x]` loads along rows (4) and stores down a column, 32 lanes in 32 sectors.
Through a tile both walk along rows.

**padded**: a tile of 32 × 32 words reads a column with stride 32: all lanes in one bank, 32 wavefronts. The
write into the tile takes 1: 33 for each of a block's 32 warps. With rows of 33 words it is 2. Without a tile
the loads move n/8 sectors and the stores n.

**centre**: without a tile each thread loads all 64 elements of its tile, 256 B per element. With it, 4 B.

**unpack**: the loads of x are 12 B apart, so 32 · 12 B = 384 B = 12 sectors, and three times as many for
all of x, y and z. Staged: 4 for 32 numbers. Points and columns have n · 12 B / 32 B sectors each; a budget
on all of them keeps the stores from being scattered to save the loads. Scattered, every number is stored
into a sector of its own: 3·n/8 + 3·n.

**blur**: 9 loads of 4 B against (34 · 10) / (32 · 8) = 1.33 of 4 B for a block of 32 × 8, fewer at the
edges.

**smooth**: reading four rows again is 16 B per element; a ring in an array of the thread's own, with a
running index, lies in local memory: 4 B written and 16 B read per element. In registers: 4 B loaded, no
local byte.

**compressed**: a base of 4 B and 32 differences of 1 or 2 B are 36 and 68 B, so 2 and 3 sectors instead of 4;
a line of equal words is its base, 1 sector. If 90 % of the numbers are 0 at random, all 32 of a line are with
a probability of 0.9^32 = 3.4 %.

Where a count is provably the least possible the budget is that count; elsewhere it leaves 10 %.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gpulab.checks.builders import prediction, sectors_of_neighbours, sectors_of_rows
from gpulab.checks.evidence import AnsweredCases, LaunchTrace
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Shape, Sizes

LAB = "04"

COPY_SHAPE = Shape(grid=(4,), block=(256,))
TILE = 64  # elements of a tile of memory.centre
UNPACK_BLOCK = 256
SIDE = 32  # of the square tiles and blocks of the transpositions
BLUR_BLOCK = (32, 8)
SMOOTH_BLOCK = 128
WINDOW = 4  # rows that memory.smooth takes the mean of
STRIPED = "32 lanes × 4 B = 4 sectors"


def blocks(n: int, size: int) -> int:
    """Blocks of `size` that cover n elements; at least one, because a grid of none cannot be launched."""
    return max(1, -(-n // size))


def _size(n: int, name: str = "") -> Case:
    return Case(name or f"{n:,}", {"n": n})


def _matrix(rows: int, cols: int) -> Case:
    return Case(f"{rows} × {cols}", {"rows": rows, "cols": cols})


def _grid_2d(block: tuple[int, int]) -> Callable[[Sizes], Shape]:
    def shape(sizes: Sizes) -> Shape:
        rows, cols = int(sizes["rows"]), int(sizes["cols"])
        return Shape((blocks(cols, block[0]), blocks(rows, block[1])), block)

    return shape


# ---------------------------------------------------------------- answered cases


def sector_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """Requests of one warp as (byte addresses of the lanes that ask, bytes per lane)."""
    base = 256 * int(generator.integers(1, 1000))
    lanes = np.arange(32)
    match sizes["pattern"]:
        case "in order":
            asked = [(base + lanes * size, size) for size in (4, 8, 16)]
        case "strided":
            asked = [(base + lanes * 4 * int(k), 4) for k in (2, 3, 7, 8, 9, 32)]
        case "shifted":
            asked = [(base + 4 * int(k) + lanes * 4, 4) for k in generator.integers(1, 8, 4)]
        case "same and shuffled":
            asked = [(np.full(32, base + 4), 4), (base + 4 * generator.permutation(32), 4)]
            asked.append((base + 4 * generator.integers(0, 400, 32), 4))
        case "some lanes":
            asked = [(base + 4 * np.flatnonzero(generator.random(32) < p), 4) for p in (0.1, 0.5)]
            asked.append((np.array([], dtype=int), 4))
        case _:  # records that cross from one sector into the next
            asked = [(base + lanes * size, size) for size in (12, 20)]
            asked.append((base + 28 + lanes * 100, 12))
    return [([int(a) for a in addresses], size) for addresses, size in asked]


def line_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(words,): the 32 words of a line of 128 bytes, as signed whole numbers."""
    asked = []
    for _ in range(6):
        base = int(generator.integers(-(10**8), 10**8))
        match sizes["pattern"]:
            case "equal":
                differences = np.zeros(32, dtype=int)
            case "close":  # around the first word
                most = int(generator.choice((3, 100, 127)))
                differences = generator.integers(-most, most + 1, 32)
            case "on the edge":  # one word decides; it may be the last
                edge = int(generator.choice((-129, -128, 127, 128, -32_769, -32_768, 32_767, 32_768)))
                differences = np.zeros(32, dtype=int)
                differences[int(generator.integers(1, 32))] = edge
            case "ramp":  # neighbours are close, the ends are not
                differences = np.arange(32) * int(generator.choice((-2000, -100, -5, 1, 5, 100, 1000, 2000)))
            case _:  # any
                differences = generator.integers(-(10**9), 10**9, 32)
        differences[0] = 0  # the first word is the base
        asked.append(((base + differences).tolist(),))
    return asked


def way_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """Requests of one warp to shared memory as (32 byte addresses or None for idle lanes, bytes per lane)."""
    lanes = np.arange(32)
    base = 128 * int(generator.integers(0, 8))
    asked: list[tuple[np.ndarray, int, np.ndarray | None]] = []
    match sizes["pattern"]:
        case "strided":
            asked = [(base + 4 * k * lanes, 4, None) for k in (1, 2, 3, 4, 16, 32, 33)]
        case "same word":
            asked = [(np.full(32, base), 4, None), (base + 4 * (lanes // 4), 4, None)]
            asked.append((base + 128 * (lanes // 8), 4, None))
        case "shuffled":
            asked = [(4 * generator.permutation(32), 4, None), (4 * generator.integers(0, 256, 32), 4, None)]
        case "some lanes":
            active = generator.random(32) < 0.4
            asked = [(128 * lanes, 4, active), (4 * lanes, 4, np.zeros(32, dtype=bool))]
            asked.append((128 * lanes, 4, lanes < 3))  # address 0 is an address as any other
            asked += [(size * lanes, size, lanes >= 16) for size in (8, 16)]  # groups in which nobody asks
        case _:  # wide accesses
            asked = [(base + size * lanes, size, None) for size in (8, 16)]
            asked += [(base + 8 * 33 * lanes, 8, None), (base + 8 * 32 * lanes, 8, None)]
            asked += [(np.full(32, base), 16, None), (base + 16 * 3 * lanes, 16, generator.random(32) < 0.7)]
    return [
        ([int(a) if active is None or active[i] else None for i, a in enumerate(addresses)], size)
        for addresses, size, active in asked
    ]


def _patterns(*names: str) -> tuple[Case, ...]:
    return tuple(Case(name, {"pattern": name}) for name in names)


# ---------------------------------------------------------------- launch traces


def copy_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n = int(sizes["n"])
    return (Array("a", (n,)), Array("b", (n,), role="out"))


def centre_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n = int(sizes["n"])
    return (Array("a", (n,), fill="uniform"), Array("out", (n,), role="out"))


def unpack_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    n = int(sizes["n"])
    return (Array("points", (3 * n,)), *(Array(name, (n,), role="out") for name in ("xs", "ys", "zs")))


def transpose_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    rows, cols = int(sizes["rows"]), int(sizes["cols"])
    return (Array("a", (rows, cols)), Array("out", (cols, rows), role="out"))


def same_shape_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    rows, cols = int(sizes["rows"]), int(sizes["cols"])
    return (Array("a", (rows, cols), fill="uniform"), Array("out", (rows, cols), role="out"))


def _elements(sizes: Sizes) -> int:
    return int(sizes["n"]) if "n" in sizes else int(sizes["rows"]) * int(sizes["cols"])


def with_halo(n: int, tile: int) -> int:
    """Elements that tiles with a halo of one load along an axis of n, edges cut off."""
    return sum(min(n, first + tile + 1) - max(0, first - 1) for first in range(0, n, tile))


def blur_bytes(sizes: Sizes) -> int:
    """The bytes that tiles of 32 × 8 with a halo of one load."""
    width, height = BLUR_BLOCK
    return 4 * with_halo(int(sizes["cols"]), width) * with_halo(int(sizes["rows"]), height)


def whole_tiles_bytes(sizes: Sizes) -> int:
    """As `blur_bytes` where tiles beyond the image are loaded whole, from its last rows and columns."""
    width, height = BLUR_BLOCK
    tiles = blocks(int(sizes["cols"]), width) * blocks(int(sizes["rows"]), height)
    return 4 * (width + 2) * (height + 2) * tiles


def nine_loads_bytes(sizes: Sizes) -> int:
    """The bytes of nine loads for each output of a 3 × 3 stencil, less those outside the image."""
    rows, cols = int(sizes["rows"]), int(sizes["cols"])
    return 4 * max(0, 3 * rows - 2) * max(0, 3 * cols - 2)


def reread_bytes(sizes: Sizes) -> int:
    """The bytes that loading every row of each window anew takes; the first windows are shorter."""
    rows = int(sizes["rows"])
    return 4 * int(sizes["cols"]) * sum(min(row + 1, WINDOW) for row in range(rows))


def _elements_sectors(sizes: Sizes) -> int:
    """The sectors of all elements that the blocks of memory.copy touch once."""
    return sectors_of_neighbours(int(sizes["n"]), COPY_SHAPE.grid[0])


def _copied_sectors(sizes: Sizes) -> int:
    """Of all elements, loaded once and stored once."""
    return 2 * _elements_sectors(sizes)


def _points_sectors(sizes: Sizes) -> int:
    """The sectors of three numbers a point, loaded once."""
    n = int(sizes["n"])
    return sectors_of_neighbours(3 * n, blocks(n, UNPACK_BLOCK))


def _unpacked_sectors(sizes: Sizes) -> int:
    """Of the points loaded once, and stored once, each column by itself."""
    n = int(sizes["n"])
    return _points_sectors(sizes) + 3 * sectors_of_neighbours(n, blocks(n, UNPACK_BLOCK))


def _rows_sectors(sizes: Sizes) -> int:
    """The sectors of a matrix that tiles load along its rows."""
    return sectors_of_rows(int(sizes["rows"]), int(sizes["cols"]))


def _turned_rows_sectors(sizes: Sizes) -> int:
    """Those of the result, along its own rows."""
    return sectors_of_rows(int(sizes["cols"]), int(sizes["rows"]))


def _turned_sectors(sizes: Sizes) -> int:
    return _rows_sectors(sizes) + _turned_rows_sectors(sizes)


def _tile_wavefronts(each: int) -> Callable[[Sizes], int]:
    """So many wavefronts for each warp of a block that turns a tile."""
    return lambda sizes: each * SIDE * blocks(int(sizes["rows"]), SIDE) * blocks(int(sizes["cols"]), SIDE)


def _sectors(
    kind: str, limit: Callable[[Sizes], int], points: float, advice: str, naive: int = 8, why: str = ""
) -> Budget:
    """On loads or stores by themselves. `naive` is how many times the limit the obvious kernel moves."""
    return Budget(
        f"global_{kind}_sectors",
        limit,
        points,
        f"{kind} sectors",
        naive=lambda sizes: naive * limit(sizes),
        why=why or STRIPED,
        case=EVERY,
        advice=f"That is {{times}} × what each element once needs. {advice}",
    )


def _sectors_in_all(limit: Callable[[Sizes], int], points: float, advice: str = "") -> Budget:
    """No element loaded or stored twice, and no lane on its own."""
    return Budget(
        "global_sectors",
        limit,
        points,
        "sectors in all",
        why="each loaded once, stored once",
        advice=f"That is {{times}} × what one copy of all elements needs. {advice}",
        case=EVERY,
    )


def _stored_once(points: float) -> Budget:
    """No element stored twice."""
    return Budget(
        "global_store_bytes",
        lambda sizes: 4 * _elements(sizes),
        points,
        "stored bytes",
        why="each element once",
        advice="Each element is stored {times} times. Does the store stand inside a loop that it belongs "
        "behind?",
        case=EVERY,
    )


TRANSPOSE_CASES = tuple(
    _matrix(*size) for size in ((64, 64), (32, 96), (96, 128), (33, 31), (1, 70), (1025, 33), (0, 5))
)

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="memory.sectors",
        lab=LAB,
        evidence=AnsweredCases(
            questions=sector_questions,
            by_hand=("gpulab.simulator.observe.patterns.sectors",),
        ),
        correct_points=3,
        cases=_patterns(
            "in order", "strided", "shifted", "same and shuffled", "some lanes", "across sectors"
        ),
        hints=(
            "Byte 0 to 31 are sector 0, byte 32 to 63 are sector 1. Which sector holds byte `address`?",
            "Lanes that ask for bytes of the same sector share it. Which Python type keeps each value once?",
            "A lane's last byte is `address + size - 1`. It may lie in a later sector than its first byte.",
        ),
        section="3 · Thirty-two bytes at a time",
    ),
    Exercise(
        name="memory.copy",
        lab=LAB,
        varies=("n",),
        correct_points=1.6,
        cases=(
            _size(4096),
            _size(5000),
            _size(100),
            _size(1023),
            _size(1),
            _size(0, "empty"),
            _size(65539),
            _size(65536),
        ),
        evidence=LaunchTrace(arguments=copy_arguments, shape=lambda sizes: COPY_SHAPE),
        budgets=(
            _sectors(
                "load",
                _elements_sectors,
                0.8,
                "Lanes 0 and 1 load at the same moment. How far apart are their elements? Is the step of "
                "your loop the number of all threads?",
            ),
            _sectors(
                "store",
                _elements_sectors,
                0.8,
                "In which order do the 32 lanes of a warp write to `b`?",
            ),
            _sectors_in_all(_copied_sectors, 0.8, "Is the step of your loop the number of all threads?"),
        ),
        hints=(
            "`cuda.grid(1)` is the thread's number in the grid, `cuda.gridsize(1)` how many threads there "
            "are.",
            "All threads stand side by side on the first elements of `a`. Then all step on. By how much?",
            "A loop from the thread's number to `a.size` in steps of `cuda.gridsize(1)` does it.",
        ),
        section="4 · Stride and shift",
    ),
    Exercise(
        name="memory.transpose",
        lab=LAB,
        varies=("rows", "cols"),
        correct_points=1.6,
        cases=(*TRANSPOSE_CASES, _matrix(160, 128)),
        evidence=LaunchTrace(
            arguments=transpose_arguments, shape=_grid_2d((SIDE, SIDE)), race_case="33 × 31"
        ),
        budgets=(
            _sectors(
                "load",
                _rows_sectors,
                0.8,
                "Which index of `a` changes from one lane to the next? It should be the last one.",
            ),
            _sectors(
                "store",
                _turned_rows_sectors,
                1.2,
                "Which index of `out` changes from one lane to the next? It should be the last one.",
                why="as many as a plain copy",
            ),
            _sectors_in_all(_turned_sectors, 0.4, "Does a block move tiles that are another block's?"),
        ),
        hints=(
            "Two steps: the block fills a tile in shared memory, then it empties the tile into `out`.",
            "In both steps `threadIdx.x` walks along a row of global memory. Where is the turn, then?",
            "The tile at block (bx, by) of `a` belongs at block (by, bx) of `out`. So the second step "
            "needs its own "
            "x and y, made from `blockIdx` with its two parts exchanged, and reads the tile as `tile[tx, "
            "ty]`.",
        ),
        section="6 · A tile in shared memory",
    ),
    Exercise(
        name="memory.centre",
        lab=LAB,
        varies=("n",),
        correct_points=1.2,
        cases=(_size(512), _size(4096), _size(64), _size(63), _size(1025), _size(0, "empty"), _size(2048)),
        evidence=LaunchTrace(arguments=centre_arguments, shape=lambda sizes: Shape(grid=(2,), block=(TILE,))),
        budgets=(
            Budget(
                "global_load_bytes",
                lambda sizes: 4 * _elements(sizes),
                0.6,
                "loaded bytes",
                naive=lambda sizes: 4 * TILE * _elements(sizes),
                why="each element once",
                case=EVERY,
                advice="How many threads of the block load the same element of `a`?",
            ),
            _stored_once(0.2),
        ),
        rtol=1e-5,
        atol=1e-6,
        hints=(
            "Follow warp 0 and warp 1 of one block. How far may warp 0 run ahead while warp 1 still adds up?",
            "A barrier after the writes makes the tile complete. What keeps the next tile from coming in "
            "too early?",
            "One more `cuda.syncthreads()`, at the end of the loop's body and outside every `if`.",
        ),
        detective=True,
        section="Detective · The tile that came too early",
    ),
    Exercise(
        name="memory.unpack",
        lab=LAB,
        varies=("n",),
        correct_points=1.6,
        cases=(_size(256), _size(1000), _size(31), _size(1023), _size(0, "empty"), _size(4096)),
        evidence=LaunchTrace(
            arguments=unpack_arguments,
            shape=lambda sizes: Shape((blocks(int(sizes["n"]), UNPACK_BLOCK),), (UNPACK_BLOCK,)),
            race_case="1,000",
        ),
        budgets=(
            _sectors(
                "load",
                _points_sectors,
                1.6,
                "Lane 0 loads x of point 0. What does lane 1 load, and how many bytes further on is that?",
                naive=3,
            ),
            Budget(
                "global_sectors",
                _unpacked_sectors,
                0.8,
                "sectors in all",
                naive=lambda sizes: 27 * _elements(sizes) // 8,
                why="12 B a point, loaded and stored",
                case=EVERY,
                advice="That is {times} × what the points need. Do the 32 lanes of a warp write 32 "
                "neighbours of the same column, each number once?",
            ),
        ),
        hints=(
            "A block owns 256 points, so 768 floats in a row. Forget for a moment which of them is an x.",
            "Load the 768 floats as a plain copy does, three per thread, into a shared array. Then wait.",
            "After the barrier thread t finds its point at `s[3 * t]`, `s[3 * t + 1]` and `s[3 * t + 2]`.",
        ),
        section="7 · Records and columns",
    ),
    Exercise(
        name="memory.ways",
        lab=LAB,
        evidence=AnsweredCases(
            questions=way_questions,
            by_hand=("gpulab.simulator.observe.patterns.wavefronts",),
        ),
        correct_points=3,
        cases=_patterns("strided", "same word", "shuffled", "some lanes", "wide"),
        hints=(
            "A word is 4 bytes, and word w lies in bank w % 32. Start with 4-byte accesses.",
            "Lanes that ask for the same word share it. Collect the different words of each bank; the "
            "fullest bank decides.",
            "With 8 bytes per lane, lanes 0–15 go first and lanes 16–31 after them; with 16 bytes there "
            "are four groups "
            "of 8. Count each group by itself and add up.",
        ),
        section="8 · Thirty-two banks",
    ),
    Exercise(
        name="memory.padded",
        lab=LAB,
        varies=("rows", "cols"),
        correct_points=1.4,
        cases=(*TRANSPOSE_CASES, _matrix(160, 128)),
        evidence=LaunchTrace(
            arguments=transpose_arguments, shape=_grid_2d((SIDE, SIDE)), race_case="33 × 31"
        ),
        budgets=(
            Budget(
                "global_sectors",
                _turned_sectors,
                0.8,
                "sectors in all",
                naive=lambda sizes: 9 * _elements(sizes) // 8,
                why="as many as a plain copy",
                case=EVERY,
                advice="Start from your `transpose`: this exercise is about its tile.",
            ),
            Budget(
                "shared_wavefronts",
                _tile_wavefronts(2),
                1.8,
                "bank conflicts",
                naive=_tile_wavefronts(33),
                why="one for each warp that writes the tile, one for each that reads it",
                case=EVERY,
                advice="32 lanes read 32 words of one column of the tile. How many words apart are they, "
                "and in which banks?",
            ),
        ),
        hints=(
            "Write down the word number of `tile[tx, ty]` for tx = 0, 1, 2 and a tile with rows of 32 "
            "words. Then its bank.",
            "All of them are the same modulo 32. Which length of a row would make neighbours differ by one"
            " bank?",
            "Rows of 33 words: declare the tile as 32 × 33 and leave its last column empty.",
        ),
        section="8 · Thirty-two banks",
    ),
    Exercise(
        name="memory.blur",
        lab=LAB,
        varies=("rows", "cols"),
        correct_points=2,
        cases=tuple(
            _matrix(*size)
            for size in ((16, 64), (8, 32), (7, 31), (1, 1), (33, 70), (1025, 33), (0, 5), (96, 256))
        ),
        evidence=LaunchTrace(arguments=same_shape_arguments, shape=_grid_2d(BLUR_BLOCK), race_case="33 × 70"),
        budgets=(
            Budget(
                "global_load_bytes",
                lambda sizes: max(int(1.1 * blur_bytes(sizes)), whole_tiles_bytes(sizes)),
                2.5,
                "loaded bytes",
                naive=nine_loads_bytes,
                why="tile and halo once",
                case=EVERY,
                advice="Nine threads use each element. How many of them load it from global memory?",
            ),
            _stored_once(0.5),
        ),
        rtol=1e-5,
        atol=1e-6,
        hints=(
            "A block of 32 × 8 outputs needs 34 × 10 inputs. That is the shape of its tile.",
            "340 elements, 256 threads: number the threads 0–255 and let each fill elements k, k + 256, … "
            "of the tile.",
            "Element k of the tile is at row `k // 34`, column `k % 34`; in `a` it is one row and one "
            "column further up "
            "and left than the block's first output. Outside the image put a zero.",
        ),
        section="9 · Neighbours",
    ),
    Exercise(
        name="memory.smooth",
        lab=LAB,
        varies=("rows", "cols"),
        correct_points=1.2,
        cases=tuple(_matrix(*size) for size in ((10, 128), (3, 40), (1, 1), (33, 257), (0, 5), (64, 256))),
        evidence=LaunchTrace(
            arguments=same_shape_arguments,
            shape=lambda sizes: Shape((blocks(int(sizes["cols"]), SMOOTH_BLOCK),), (SMOOTH_BLOCK,)),
        ),
        budgets=(
            Budget(
                "global_load_bytes",
                lambda sizes: 4 * _elements(sizes),
                0.8,
                "loaded bytes",
                naive=reread_bytes,
                why="each element once",
                case=EVERY,
                advice="The thread loaded the last three rows a moment ago. Where could it have kept them?",
            ),
            Budget(
                "local_bytes",
                0,
                0.5,
                "local memory",
                why="registers only",
                case=EVERY,
                advice="Registers have no addresses. Which index of your array is not known when the "
                "kernel is compiled?",
            ),
            _stored_once(0.5),
        ),
        rtol=1e-5,
        atol=1e-6,
        hints=(
            "One thread walks down one column. From row to row three of the four values stay the same.",
            "Give the last four values four names. When a new row comes in, each value moves one name on.",
            "`w3 = w2`, `w2 = w1`, `w1 = w0`, then `w0 = a[row, column]`: moves between registers, no "
            "array at all.",
        ),
        section="10 · Registers, and the memory that is local in name only",
    ),
    Exercise(
        name="memory.compressed",
        lab=LAB,
        evidence=AnsweredCases(questions=line_questions),
        correct_points=2,
        cases=_patterns("equal", "close", "on the edge", "ramp", "any"),
        hints=(
            "Compute the difference of every word and the first one. What are these differences if all words "
            "are equal?",
            "A signed byte holds −128 … 127, and two bytes −32,768 … 32,767. Only the smallest and the "
            "largest difference matter.",
            "Count the bytes: 4 for the base, and 32 times the size of a difference. A sector has 32 bytes, "
            "so round up.",
        ),
        section="Compressed memory and slices",
    ),
)


_prediction = partial(prediction, "memory", LAB)


# Those without an answer are measured in the lab, from the data sheets.
PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "all_registers",
        "All registers of an A100's 108 SMs together",
        "MiB",
        reason="108 SMs, 65,536 registers in each, 4 bytes per register; a MiB is 2²⁰ bytes.",
        tolerance=0.05,
    ),
    _prediction(
        "pin_rate",
        "What one of the 5,120 pins of an H100's memory carries",
        "Gbit/s",
        reason="Bandwidth in bytes per second, times 8 bits, over the number of pins.",
        tolerance=0.05,
    ),
    _prediction(
        "effective",
        "The effective bandwidth of the copy",
        "GB/s",
        reason="Every element is read once and written once: 2 · 4 · 2²⁸ bytes, over the time.",
        tolerance=0.02,
    ),
    _prediction(
        "utilisation",
        "The utilisation of the copy",
        "%",
        reason="Effective bandwidth over the peak of the data sheet.",
        tolerance=0.02,
    ),
    _prediction(
        "same_word",
        "One load request in which all lanes want the same word moves",
        "sectors",
        1,
        "The word lies in one sector; lanes that share a sector pay for it once.",
    ),
    _prediction(
        "stride_2",
        "One load request of 4-byte words with a stride of 2 moves",
        "sectors",
        8,
        "The lanes span 32 · 8 = 256 bytes, and each of the 8 sectors in it holds four words that are "
        "asked for.",
    ),
    _prediction(
        "shift_1",
        "One load request of 32 neighbouring 4-byte words, shifted by one word, moves",
        "sectors",
        5,
        "128 bytes that start at byte 4 end at byte 132: the last word lies in a fifth sector.",
    ),
    _prediction(
        "wide_sectors",
        "One load request of 32 neighbouring 8-byte elements moves",
        "sectors",
        8,
        "32 · 8 = 256 bytes, and no byte of them is wasted: 8 sectors, in half as many requests as with "
        "4-byte elements.",
    ),
    _prediction(
        "column",
        "One store request of `transpose_plain` moves",
        "sectors",
        32,
        "Neighbouring lanes write 96 · 4 = 384 bytes apart, so each has a sector of its own.",
    ),
    _prediction(
        "record",
        "One load request for the x of 32 neighbouring records of three 4-byte numbers moves",
        "sectors",
        12,
        "The lanes span 32 · 12 = 384 bytes, and every sector in it holds some x.",
    ),
    _prediction(
        "rows_of_34",
        "A warp that reads a column of a tile with rows of 34 words needs",
        "wavefronts",
        2,
        "34 · lane modulo 32 is 2 · lane modulo 32: only the 16 even banks are asked, for two words each.",
    ),
    _prediction(
        "halo",
        "A block of 32 × 8 outputs of a 3 × 3 stencil loads, per output,",
        "bytes",
        5.3125,
        "34 · 10 elements of 4 bytes for 256 outputs.",
        0.02,
    ),
    _prediction(
        "ring",
        "Local memory that `smooth_ring` touches per element",
        "bytes",
        20,
        "One entry written and four read, 4 bytes each.",
    ),
    _prediction(
        "constant_parts",
        "A request in which lane i reads entry i % 9 of constant memory is split into",
        "parts",
        9,
        "32 lanes ask for 9 different addresses; each different address is served by itself.",
    ),
    _prediction(
        "warps_that_fit",
        "Warps whose 32 lanes keep one line of 128 bytes each in an A100's L1 of 192 KiB",
        "warps",
        reason="A warp needs 32 · 128 bytes = 4 KiB; 192 KiB hold 48 times that.",
        tolerance=0.05,
    ),
    _prediction(
        "zero_lines",
        "Lines of 32 numbers that are all zero, if 90 % of the numbers of an array are zero at random places",
        "%",
        reason="Each of the 32 numbers must be zero: 0.9 · 0.9 · … = 0.9³² = 3.4 %.",
        tolerance=0.15,
    ),
    _prediction(
        "slices",
        "The bandwidth that seven instances of the profile 1g.10gb have together, of the whole A100's",
        "%",
        reason="Each has one of eight memory slices, so seven have 7/8. One slice remains unused.",
        tolerance=0.02,
    ),
    _prediction(
        "host_link",
        "Bringing the weights over PCIe 4.0 ×16 (31.5 GB/s) takes longer than reading them from an A100's "
        "DRAM (2,039 GB/s) by a factor of",
        "times",
        reason="The size of the model does not matter: it is the ratio of the two bandwidths.",
        tolerance=0.25,
    ),
)
