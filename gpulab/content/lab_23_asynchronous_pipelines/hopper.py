"""Lab 23, part B: what its six exercises ask, all on the H100.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| async.bulk | kernel, 256 threads, 2 slots | bulk copies | copies | – | 1 a tile | 4 |
| | | | loads by threads | 8 a tile | 0 | |
| | | | barriers | 2 a tile | 1 a tile, 1 before | |
| | | | bytes in flight | 0 | 4,096 but at the last | |
| | | | bytes copied in | – | 4,096 a tile | |
| async.tile | host code, transpose | tensor maps, swizzle | wavefronts | 32 a warp | 4 | 5 |
| | | | copies | – | 1 a tile | |
| | | | loads by threads | – | 0 | |
| | | | shared memory | – | 4 KiB and a barrier | |
| | | | sectors written | 3 for 4 pixels | 17 for 32 pixels | |
| async.edge | host code, stencil | out-of-bound fill | requests by threads | – | 0 | 4 |
| | | | copies | – | 1 a tile and way | |
| async.roles | kernel, 4 + 1 warps | warp specialisation | barriers | 1 a tile | 1 in all | 5 |
| | | | loads by threads | 4 a tile | 0 | |
| | | | copies | – | 1 a tile | |
| | | | mixed warps | – | 0 | |
| | | | phases | 1 a tile | 1 for 4 tiles | |
| async.share | kernel, clusters of 4 | multicast | bytes | 12·rows·n | 9·rows·n | 4 |
| | | | loads by threads | – | 0 | |
| async.gather | kernel, clusters of 4 | distributed shared memory | bytes a block loads | 4·n | 4,096 | 5 |
| | | | bytes | 16·rows·n | 8·rows·n | |

Derivations:

**bulk**: a copy of 4 KiB is one instruction of one thread. 256 threads that load a float4 each need 8
requests a tile. One barrier a tile says that its slot has been read by all; one before the loop that the
mbarriers are initialised: 8 warps · (tiles + 1). With two slots, tile k + 1 is on its way when the block
waits for tile k, 4,096 bytes; behind the last tile is nothing: 4,096 · (tiles − 1) / tiles on average. A
kernel that sends each tile when it needs it has 0.

**tile**: a tile is 32 rows of 8 pixels of 16 bytes, so its rows are 128 bytes and begin in the same bank. A
warp reads one pixel of each row: four passes of 8 lanes each, if those 8 pieces of 16 bytes are in
different banks, and 32 passes if they are not. Passes are limited, and not conflicts, which are gone if
lanes take turns. A box of one column of pixels needs no swizzle, but eight copies a tile. The swizzle puts
the pixel c of row r where pixel c xor (r mod 8) would be, so that the same column of 8 rows lies in 8
different places. Without a swizzle a warp can read 4 rows of 8 pixels without a conflict, but then it
writes pieces of 4 pixels, 64 bytes, which touch 3 sectors where they begin in the middle of one. 32
neighbouring pixels touch at most 17.

**edge**: a tile of 8 × 32 needs its border, 10 × 34. Rows of a box are a multiple of 16 bytes, so 10 × 36.
What is outside the image comes as 0, and a copy to the image leaves out what is outside of it.

**roles**: the five warps meet once, behind the initialisation. A consumer that sends copies and writes `out`
is mixed. Four slots: ⌈tiles / 4⌉ phases.

**share**: four rows at a time need the same piece of v: 4·rows·n bytes of a and of out, and a quarter as many
of v, however they are brought.

**gather**: four blocks keep a row in registers, so it is read and written once: 8 bytes an element. Three
passes (maximum, sum, result) read it three times: 16. Each block loads at most 1,024 floats of it.
"""

from __future__ import annotations

from functools import partial

from gpulab.checks.builders import count, prediction
from gpulab.checks.evidence import LaunchTrace
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Shape, Sizes
from gpulab.content.pipelines import phases_budget, roles_apart

from .ampere import LAB, RING_TILE, all_tiles, streamed, tiled, tiles

GPU = "H100"
BULK_TILE = 1024  # floats: one float4 for each of 256 threads
PIXELS = (32, 8)  # rows and columns of a tile of async.tile
STENCIL = (8, 32)  # … of async.edge
CLUSTER = 4  # blocks
ROW = 4096  # floats that the blocks of a cluster hold at most: 4 blocks · 256 threads · 4


def image(rows: int, cols: int) -> Case:
    return Case(f"{rows} × {cols}", {"rows": rows, "cols": cols})


def covering(shape: tuple[int, int], sizes: Sizes) -> int:
    """Tiles of a shape that cover the image."""
    rows, cols = count(sizes, "rows"), count(sizes, "cols")
    return -(-rows // shape[0]) * -(-cols // shape[1])


def pixels(sizes: Sizes) -> tuple[Array, ...]:
    rows, cols = count(sizes, "rows"), count(sizes, "cols")
    return Array("a", (rows, cols, 4)), Array("out", (cols, rows, 4), role="out")


def in_line(wavefronts: int, sizes: Sizes) -> int:
    """Those of a transpose in which each warp of each tile needs so many to read: 32 without a swizzle."""
    return wavefronts * PIXELS[1] * covering(PIXELS, sizes)


def written(pixels: int, sizes: Sizes) -> int:
    """Sectors that are touched if every store writes up to `pixels` neighbouring pixels of the transpose."""
    rows, cols = count(sizes, "rows"), count(sizes, "cols")
    pieces = [
        (16 * (col * rows + first), 16 * (col * rows + min(first + pixels, rows)))
        for col in range(cols)
        for first in range(0, rows, pixels)
    ]
    return sum(-(-end // 32) - start // 32 for start, end in pieces)


def whole_image(sizes: Sizes) -> tuple[Array, ...]:
    shape = count(sizes, "rows"), count(sizes, "cols")
    return Array("a", shape), Array("out", shape, role="out")


def scaled(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    rows, n = count(sizes, "rows"), count(sizes, "cols")
    return (
        Array("a", (rows, n)),
        Array("v", (n,)),
        Array("out", (rows, n), role="out"),
        Scalar("n", n, "int32"),
    )


def elements(sizes: Sizes) -> int:
    return count(sizes, "rows") * count(sizes, "cols")


def scores(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    rows, n = count(sizes, "rows"), count(sizes, "cols")
    return Array("x", (rows, n)), Array("out", (rows, n), role="out"), Scalar("n", n, "int32")


def _by_threads(
    points: float, label: str = "loads by threads", metric: str = "global_load_requests"
) -> Budget:
    return Budget(
        metric,
        0,
        points,
        label,
        why="the copies bring everything",
        advice="Some line still reads or writes global memory thread by thread. Which one?",
        case=EVERY,
    )


def _copies(points: float, metric: str = "bulk_load_requests", label: str = "copies") -> Budget:
    return Budget(
        metric,
        all_tiles,
        points,
        label,
        why="one a tile",
        advice="That is {times} × as many. How many threads send the copy of one tile?",
        case=EVERY,
    )


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="async.bulk",
        lab=LAB,
        gpu=GPU,
        correct_points=1.5,
        evidence=LaunchTrace(
            arguments=partial(streamed, BULK_TILE),
            shape=lambda sizes: Shape((count(sizes, "blocks"),), (256,)),
            face="cupy",
        ),
        cases=tuple(tiled(*each) for each in ((2, 5), (1, 1), (1, 2), (3, 3), (4, 8))),
        budgets=(
            _by_threads(0.5),
            Budget(
                "bulk_load_bytes",
                lambda sizes: 4 * BULK_TILE * all_tiles(sizes),
                0.25,
                "bytes copied in",
                why="each tile once",
                advice="That is {times} × as many. Which tile is copied a second time, or never used?",
                case=EVERY,
            ),
            Budget(
                "bulk_bytes_in_flight",
                lambda sizes: 4 * BULK_TILE * (1 - 1 / count(sizes, "tiles")),
                1,
                "bytes in flight",
                naive=0,
                sense=">=",
                why="the next tile, whenever there is one",
                advice="Which tiles have been sent when the block waits for tile k?",
                case=EVERY,
            ),
            _copies(0.25),
            Budget(
                "barriers",
                lambda sizes: 8 * count(sizes, "blocks") * (count(sizes, "tiles") + 1),
                0.5,
                "block barriers",
                naive=lambda sizes: 8 * count(sizes, "blocks") * 2 * count(sizes, "tiles"),
                why="one a tile and one before, for each of 8 warps",
                advice="All threads see at the mbarrier that a tile is there. What else do they have to "
                "agree on before its slot is filled again?",
                case=EVERY,
            ),
        ),
        hints=(
            "One thread says how many bytes will come (`mbarrier_arrive_expect_tx`) and sends the copy; all "
            "threads wait for the phase.",
            "Tile k is in slot k % 2, for the (k / 2)-th time: wait for parity `k / 2 & 1`.",
            "Read your element into a register, meet at a barrier, and only then let one thread refill the "
            "slot with tile k + 2.",
        ),
        section="6 · One instruction for a tile",
    ),
    Exercise(
        name="async.tile",
        lab=LAB,
        gpu=GPU,
        correct_points=1,
        evidence=LaunchTrace(arguments=pixels, face="cupy"),
        cases=tuple(image(*each) for each in ((32, 8), (64, 24), (1, 1), (33, 9), (70, 30), (96, 40))),
        budgets=(
            Budget(
                "global_store_sectors",
                partial(written, PIXELS[0]),
                1,
                "sectors written",
                naive=partial(written, 4),
                why="a warp writes neighbouring pixels",
                advice="Which pixels of `out` does one warp write with one instruction?",
                case=EVERY,
            ),
            _by_threads(0.4),
            Budget(
                "bulk_load_requests",
                partial(covering, PIXELS),
                0.5,
                "copies",
                why="one a tile",
                advice="That is {times} × as many. How many threads send the copy of one tile?",
                case=EVERY,
            ),
            Budget(
                "shared_load_wavefronts",
                partial(in_line, 4),
                1.9,
                "bank conflicts",
                naive=partial(in_line, 32),
                why="4 for each warp: 8 lanes, 8 places",
                advice="With the 128-byte swizzle, pixel c of row r lies at place `c ^ r % 8` of its row.",
                case=EVERY,
            ),
            Budget(
                "shared_bytes",
                4096 + 64,
                0.2,
                "shared memory",
                why="the tile and an mbarrier",
                advice="The swizzle needs no padding.",
            ),
        ),
        hints=(
            "As an array of floats the image has rows of 4 · cols. A box of 32 rows × 32 floats is 32 rows "
            "of 8 pixels.",
            "A copy's coordinates are in elements, the innermost first: `{32 * tile column, 32 * tile row}`.",
            "Let a warp write one row of `out`: its lanes read the same column of 32 rows, at "
            "`tile[row][col ^ row % 8]`.",
        ),
        section="7 · Tiles of two dimensions",
    ),
    Exercise(
        name="async.edge",
        lab=LAB,
        gpu=GPU,
        correct_points=2,
        evidence=LaunchTrace(arguments=whole_image, face="cupy"),
        cases=tuple(image(*each) for each in ((8, 32), (16, 64), (1, 4), (9, 36), (37, 100), (40, 128))),
        rtol=1e-5,
        atol=1e-6,
        budgets=(
            _by_threads(1, "requests by threads", "global_requests"),
            Budget(
                "bulk_load_requests",
                partial(covering, STENCIL),
                0.5,
                "copies in",
                why="one a tile",
                advice="That is {times} × as many. One box can hold a tile together with its border.",
                case=EVERY,
            ),
            Budget(
                "bulk_store_requests",
                partial(covering, STENCIL),
                0.5,
                "copies out",
                why="one a tile",
                advice="That is {times} × as many. How many threads send a tile away?",
                case=EVERY,
            ),
        ),
        hints=(
            "The box for the tile at (row, col) begins at (row − 1, col − 1): coordinates may be negative.",
            "Rows of a box are a multiple of 16 bytes: 10 × 36 floats hold the 10 × 34 that you need.",
            "Before one thread sends the results away, all threads make their stores visible to the copy "
            "engine (`fence_proxy_async`) and meet at a barrier.",
        ),
        section="8 · The border comes for free",
    ),
    Exercise(
        name="async.roles",
        lab=LAB,
        gpu=GPU,
        correct_points=1.5,
        evidence=LaunchTrace(
            arguments=partial(streamed, RING_TILE),
            shape=lambda sizes: Shape((count(sizes, "blocks"),), (160,)),
            face="cupy",
        ),
        cases=tuple(tiled(*each) for each in ((2, 6), (1, 1), (1, 4), (3, 5), (2, 17))),
        budgets=(
            Budget(
                "barriers",
                lambda sizes: 5 * count(sizes, "blocks"),
                1,
                "block barriers",
                naive=lambda sizes: 5 * count(sizes, "blocks") * (count(sizes, "tiles") + 1),
                why="one for each of 5 warps: the mbarriers are initialised",
                advice="The producer waits at `empty`, the consumers at `full`. No wait needs all 5 warps.",
                case=EVERY,
            ),
            roles_apart(1),
            phases_budget(4, tiles, 0.5),
            _by_threads(0.5),
            _copies(0.5),
        ),
        hints=(
            "`if (warp == 4)` is the producer: one lane of it waits for `empty[s]`, expects the bytes, sends "
            "the copy.",
            "A consumer warp arrives at `empty[s]` once, by one lane, after `__syncwarp()`. So `empty` is "
            "initialised for 4 arrivals and `full` for 1.",
            "Round r of slot s: consumers wait for parity r & 1 of `full[s]`, the producer for the other "
            "parity of `empty[s]`.",
        ),
        section="9 · A warp that only copies",
    ),
    Exercise(
        name="async.share",
        lab=LAB,
        gpu=GPU,
        correct_points=2,
        evidence=LaunchTrace(
            arguments=scaled,
            shape=lambda sizes: Shape((count(sizes, "rows"),), (256,)),
            face="cupy",
        ),
        cases=tuple(image(*each) for each in ((4, 512), (4, 256), (8, 768), (12, 1024))),
        rtol=1e-6,
        budgets=(
            Budget(
                "global_bytes",
                lambda sizes: 9 * elements(sizes),
                1.5,
                "bytes",
                naive=lambda sizes: 12 * elements(sizes),
                why="a and out once, and v once for four rows",
                advice="Each block copies its own row. Which one copies the piece of v that all four need?",
                case=EVERY,
            ),
            _by_threads(0.5),
        ),
        hints=(
            "Every block expects both pieces at its own mbarrier, but only the block of rank 0 sends v.",
            "With a mask as its last argument `cp_async_bulk` writes to the same place of every block in the "
            "mask, and completes at the mbarrier at the same place.",
            "Before the first copy every block's mbarrier must be initialised, and before the next one "
            "every block must have read its tile: a barrier of the cluster, not of the block.",
        ),
        section="10 · Four blocks share a copy",
    ),
    Exercise(
        name="async.gather",
        lab=LAB,
        gpu=GPU,
        correct_points=2,
        evidence=LaunchTrace(
            arguments=scores,
            shape=lambda sizes: Shape((CLUSTER * count(sizes, "rows"),), (256,)),
            face="cupy",
        ),
        cases=tuple(image(*each) for each in ((2, 2048), (1, 1), (1, 1000), (2, 3333), (3, 4096))),
        rtol=1e-4,
        atol=1e-6,
        budgets=(
            Budget(
                "block_load_bytes",
                lambda sizes: 4 * min(count(sizes, "cols"), ROW // CLUSTER),
                2,
                "bytes of the busiest block",
                naive=lambda sizes: 4 * count(sizes, "cols"),
                why="each block loads at most 1,024 floats",
                advice="That is {times} × a quarter. Do all four blocks of the cluster load, each its "
                "part once?",
                case=EVERY,
            ),
            Budget(
                "global_bytes",
                lambda sizes: 8 * elements(sizes),
                1,
                "bytes",
                naive=lambda sizes: 16 * elements(sizes),
                why="each element read once, written once",
                advice="That is {times} × one pass. Four blocks have room in registers for the whole row.",
                case=EVERY,
            ),
        ),
        hints=(
            "Each thread keeps four elements in registers. Find the block's maximum first, as in lab 05.",
            "One thread writes the block's maximum to shared memory. After `cluster.sync()` all threads read "
            "those of all blocks through `cluster.map_shared_rank(&value, rank)`. Do the same with the sum.",
            "A block that returns takes its shared memory along. What must happen before the end?",
        ),
        section="11 · Shared memory of other blocks",
    ),
)


_prediction = partial(prediction, "", LAB)

PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "async.requests",
        "Load requests that one bulk copy of 4 KiB replaces, if each lane loads 16 bytes",
        "requests",
        8,
        "A warp moves 32 · 16 = 512 bytes with one request, and 4,096 / 512 = 8.",
    ),
    _prediction(
        "async.column",
        "Wavefronts of a warp that reads one 16-byte pixel from each of 32 rows of 128 bytes, unswizzled",
        "wavefronts",
        32,
        "All 32 pieces lie in the same four banks, so they take turns.",
    ),
    _prediction(
        "async.multicast",
        "Bytes of v that are read for 8 rows of 1,024 floats, by clusters of 4",
        "bytes",
        8192,
        "Two clusters read v once each: 2 · 4,096 bytes.",
    ),
)
