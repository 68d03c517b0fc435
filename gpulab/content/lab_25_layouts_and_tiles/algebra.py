"""Lab 25, part A: what its eight exercises ask: five in plain Python, three kernels for the A100.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| layout.coalesce | coalesce(layout) → layout | one function, many layouts | answers | – | – | 2 |
| layout.compose | compose(a, size, stride) → layout | a layout of a layout | answers | – | – | 3 |
| layout.complement | complement(tile, n) → layout | what a tile leaves over | answers | – | – | 3 |
| layout.divide | divide(a, size, stride) → two layouts | tiles and their places | answers | – | – | 2 |
| layout.swizzle | swizzle(row, access) → 3 numbers | bank conflicts | conflicts | – | 0 | 4 |
| | | | spare bits | – | 0 | |
| layout.copy | host code in CuTe DSL | copy atoms | load requests | n/32 | n/128 | 4 |
| | | | store requests | n/32 | n/128 | |
| layout.transpose | host code in CuTe DSL | a swizzled tile | load, store requests | m·n/32 | m·n/128 | 6 |
| | | | bank conflicts | – | 0 | |
| | | | shared stores | m·n/32 | m·n/128 | |
| | | | shared loads | – | m·n/32 | |
| | | | shared memory | – | 4,096 B | |
| layout.slow | host code in CuTe DSL | lanes along rows | sectors | 8·m·n/4 | m·n/4 | 4 |

Derivations:

**coalesce**, **compose**, **complement**: a layout without modes of size 1, in which no mode continues
the one before it, is the only one of its kind that gives its offsets: its first stride is the offset of
index 1, its first size is the first index at which the offset is another than index · stride, and so on
with the rest. So there is one right answer. Sizes go beyond 2⁴⁰, so an answer cannot list offsets.

**swizzle**: shared memory has 32 banks of 4 bytes, which repeat every 128 bytes. Accesses of `access`
bytes are served 128 / access lanes at a time. Down a column of a tile with rows of `row` bytes these
lanes are in different rows. With rows of 128 bytes or more all start in the same bank: a wavefront for
each lane, up to 31 too many. Swizzled by (bits, base, shift), the `bits` bits of an address from bit
`base` are exchanged (XOR) with those `shift` higher up. The lowest log2(access) bits must stay, so base
= log2(access). A row that is shorter than 128 bytes leaves 128 / row rows in different banks as they
are, so bit 7 is the first that repeats: base + shift = max(7, log2(row)). And bits = log2(min(128, row)
/ access) suffice to separate the rows that collide.

**copy**: a 128-bit request of a warp moves 32 · 4 floats.

**transpose**: tiles of 32 × 32, 4,096 bytes without padding. A lane loads four floats of a row in one
request and stores four floats of a column in another: m·n / 128 each. Between them, a warp writes 4
rows with 128-bit stores, 8 lanes of a row a wavefront: no conflict as long as the four floats stay
together (base 2). Read down the columns, in one request lanes have 4 neighbouring columns and rows 4·i
+ e for i = 0 … 7: bits 2 to 4 of the column must be exchanged with bits 2 to 4 of the row, which are
bits 7 to 9 of the element's number: swizzle (3, 2, 5) on elements. Without one, those 8 rows meet in
one bank: 8 wavefronts instead of 1, 7 too many in m·n/32 requests. Full sectors on both sides: m·n / 8
loaded and as many stored. A thread that turns 4 × 4 floats in its registers could store and load them in the
tile 128 bits at a time, without a swizzle. So the loads are counted, too: m·n / 32, of 32 bits.

**slow**: a warp whose lanes are in 32 rows touches 32 sectors a request, and one that is along a row 4.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gpulab.checks.builders import answered, count, prediction
from gpulab.checks.evidence import LaunchTrace
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Sizes

LAB = "25"
TOPIC = "layout"
FEW, MANY = 3, 6  # modes of a layout that is asked about
WIDE = 128  # bits of the widest copy of a thread, and bytes after which the banks repeat

Numbers = np.random.Generator
Mode = tuple[int, int]
Layout = list[Mode]
_answered = partial(answered, TOPIC, LAB)


def floats_case(n: int) -> Case:
    return Case(f"{n:,} numbers", {"n": n})


def matrix_case(m: int, n: int) -> Case:
    return Case(f"{m} × {n}", {"m": m, "n": n})


# ---------------------------------------------------------------- questions


def coalesced(numbers: Numbers, modes: int, powers: bool = False) -> Layout:
    """A layout in which no mode continues the one before it, and none has size 1."""
    found: Layout = []
    while len(found) < modes:
        size = int(2 ** numbers.integers(2, 8)) * (1 if powers else int(numbers.choice((1, 3, 5))))
        stride = int(numbers.integers(1, 4000))
        if not found or stride != found[-1][0] * found[-1][1]:
            found.append((size, stride))
    return found


def coalesce_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """Layouts whose modes are split, and among which there are modes of size 1."""
    kind = sizes["kind"]
    questions: list[tuple[Any, ...]] = []
    for _ in range(6):
        layout: Layout = []
        for size, stride in coalesced(numbers, FEW if kind == "few modes" else MANY):
            stride = 0 if kind == "strides of 0" and numbers.random() < 0.4 and len(layout) < 2 else stride
            if layout and layout[-1][0] * layout[-1][1] == stride:
                continue
            part = int(2 ** numbers.integers(1, 3))
            layout += [(part, stride), (size // part, part * stride)]
            if kind == "sizes of 1":
                layout.insert(int(numbers.integers(len(layout) + 1)), (1, int(numbers.integers(9))))
        questions.append((layout,))
    return [*questions, ([(1, 5), (1, 0)],)] if kind == "sizes of 1" else questions


def compose_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """A layout, a size and a stride that divides it: whole modes are skipped, then a part of one."""
    kind = sizes["kind"]
    questions: list[tuple[Any, ...]] = []
    for _ in range(8):
        layout = coalesced(numbers, FEW if kind == "within a mode" else MANY)
        skipped = 0 if kind == "from the start" else int(numbers.integers(len(layout) - 1))
        stride = int(np.prod([size for size, _ in layout[:skipped]], dtype=np.int64))
        left = layout[skipped][0]
        if kind in ("within a mode", "across modes"):
            part = int(2 ** numbers.integers(1, 3)) if left > 4 else 2
            stride, left = stride * part, left // part
        if kind == "within a mode":
            size = left if left < 4 else left // 2
        else:
            last = int(numbers.integers(skipped + 1, len(layout)))
            size = left * int(np.prod([s for s, _ in layout[skipped + 1 : last]], dtype=np.int64)) * 2
        if size > 1:
            questions.append((layout, size, stride))
    return questions


def complement_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """Tiles that take no offset twice, and how many offsets there are."""
    kind = sizes["kind"]
    questions: list[tuple[Any, ...]] = []
    for _ in range(6):
        tile: Layout = []
        end = 1
        for _ in range(1 if kind == "one mode" else 4):
            gap = 1 if kind == "no gaps" else int(numbers.integers(1, 6))
            size = int(numbers.integers(2, 60))
            tile.append((size, end * gap))
            end *= gap * size
        if kind == "in any order":
            tile = [tile[i] for i in numbers.permutation(len(tile))]
            tile.insert(1, (1, int(numbers.integers(100))))
        rest = 1 if kind == "no gaps" and len(questions) % 2 else int(numbers.integers(2, 50))
        questions.append((tile, end * rest))
    return questions


def divide_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """A layout with sizes that are powers of two, and a tile of 2ᵖ elements with stride 2ᵠ."""
    questions: list[tuple[Any, ...]] = []
    for _ in range(6):
        layout = coalesced(numbers, 1 if sizes["kind"] == "one mode" else 4, powers=True)
        if sizes["kind"] == "one mode":
            layout = [(layout[0][0] * 4096, layout[0][1])]
        bits = sum(size.bit_length() - 1 for size, _ in layout)
        skip = 0 if sizes["kind"] == "neighbours" else int(numbers.integers(1, bits - 2))
        width = int(numbers.integers(1, bits - skip))
        questions.append((layout, 1 << width, 1 << skip))
    return questions


ROWS = {"rows of 128 bytes": (128,), "longer rows": (256, 512, 1024), "shorter rows": (16, 32, 64)}


def swizzle_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """Bytes of a row and of an access."""
    return [(row, access) for row in ROWS[str(sizes["kind"])] for access in (4, 8, 16)]


# ---------------------------------------------------------------- kernels


def copy_arguments(sizes: Sizes) -> tuple[Array, ...]:
    n = count(sizes, "n")
    return Array("x", (n,)), Array("y", (n,), role="out")


def turned_arguments(sizes: Sizes) -> tuple[Array, ...]:
    m, n = count(sizes, "m"), count(sizes, "n")
    return Array("x", (m, n)), Array("y", (n, m), role="out")


def same_shape_arguments(sizes: Sizes) -> tuple[Array, ...]:
    m, n = count(sizes, "m"), count(sizes, "n")
    return Array("x", (m, n)), Array("y", (m, n), role="out")


def elements(sizes: Sizes) -> int:
    return count(sizes, "n") * int(sizes.get("m", 1))


def each(floats: int, sizes: Sizes) -> int:
    """Warp instructions if each lane takes `floats` numbers at once."""
    return elements(sizes) // (32 * floats)


def wide(metric: str, label: str, points: float) -> Budget:
    """At most one request for 128 floats, at every case."""
    return Budget(
        metric,
        partial(each, 4),
        points,
        label,
        naive=partial(each, 1),
        why="128 bits for each lane",
        advice="That is {times} × as many. How many bits does your atom copy, and are they neighbours?",
        case=EVERY,
    )


def sectors(sizes: Sizes) -> int:
    """32-byte sectors of x and of y."""
    return 2 * elements(sizes) // 8


def sectors_budget(points: float, advice: str) -> Budget:
    return Budget(
        "global_sectors",
        sectors,
        points,
        "sectors",
        naive=lambda sizes: 8 * sectors(sizes),
        why="each sector of x and y once",
        advice=advice,
        case=EVERY,
    )


EXERCISES: tuple[Exercise, ...] = (
    _answered(
        "coalesce",
        2,
        ("few modes", "many modes", "sizes of 1", "strides of 0"),
        coalesce_questions,
        (
            "When does a mode continue the one before it? Write down the offsets of (4, 3):(2, 8).",
            "A mode (s, d) behind a mode (S, D) continues it if d = S · D. Both together are (S · s, D).",
            "Go through the modes once: skip those of size 1, merge with the last one kept where it "
            "continues it, else append. If nothing was kept the answer is [(1, 0)].",
        ),
        "1 · A function with few numbers",
    ),
    _answered(
        "compose",
        3,
        ("from the start", "within a mode", "across modes", "whole modes skipped"),
        compose_questions,
        (
            "The tile takes every stride-th index of a. Which of a's modes does a step of `stride` indices "
            "jump over entirely?",
            "While the stride is at least the mode's size, divide it by that size and go to the next mode. "
            "In the mode where it ends, size / stride elements are left, and their stride in memory is "
            "d · stride.",
            "From there on the stride is 1: each next mode gives min(size left, its size) elements with its "
            "own stride, until no size is left.",
        ),
        "2 · A layout of a layout",
    ),
    _answered(
        "complement",
        3,
        ("one mode", "no gaps", "with gaps", "in any order"),
        complement_questions,
        (
            "Sort the modes by stride. What lies between the end of one and the stride of the next?",
            "Behind modes that fill the offsets below `end` without a gap, a mode with stride d leaves room "
            "for d / end copies, at a distance of `end`.",
            "For each mode by stride: if d > end, append (d // end, end); then end = size · d. At last "
            "append (n // end, end) if that is more than one. Skip modes of size 1.",
        ),
        "3 · What a tile leaves over",
    ),
    _answered(
        "divide",
        2,
        ("one mode", "neighbours", "every 2ᵠ-th"),
        divide_questions,
        (
            "A tile is a layout of indices, and so is its complement. What turns indices into offsets?",
            "The first answer is compose(a, size, stride). For the second, compose a with each mode of "
            "complement([(size, stride)], n), where n is the number of a's indices.",
            "The complement has one or two modes. Write the modes of their compositions one after the other.",
        ),
        "3 · What a tile leaves over",
    ),
    _answered(
        "swizzle",
        1,
        tuple(ROWS),
        swizzle_questions,
        (
            "Which bits of an address choose the bank? Which of them are the same for all lanes of a column?",
            "The bytes of one access stay together, so base = log2(access). The bits that differ from row to "
            "row but do not reach the banks begin at bit 7, or at log2(row) for longer rows.",
            "shift = max(7, log2(row)) − base, and bits = log2(min(128, row) / access).",
        ),
        "4 · A permutation without conflicts",
        Budget(
            "conflicts",
            0,
            2,
            "bank conflicts",
            unit="wavefronts too many",
            why="of any access down a column or along a row",
            advice="Which lanes meet in one bank? Print the banks of one column.",
            case=EVERY,
        ),
        Budget(
            "spare bits",
            0,
            1,
            "spare bits",
            unit="bits",
            why="no more than separate the rows that collide",
            advice="How many rows start in the same bank, and how many pieces of `access` bytes has a row?",
            case=EVERY,
        ),
        measured=True,
    ),
    Exercise(
        name="layout.copy",
        lab=LAB,
        correct_points=1.5,
        evidence=LaunchTrace(arguments=copy_arguments, face="cupy"),
        cases=tuple(floats_case(n) for n in (512, 1024, 5120)),
        budgets=(
            wide("global_load_requests", "load requests", 1.25),
            wide("global_store_requests", "store requests", 1.25),
        ),
        hints=(
            "Host code: an atom for 128 bits, and a tiled copy of 128 threads with four values each. "
            "Each block copies 512 numbers.",
            "`cute.zipped_divide(x, (512,))` has the shape (512, blocks). In the kernel `x[None, block]` is "
            "the block's tile, and `move.get_slice(t).partition_S(tile)` the thread's part.",
            "held = cute.make_rmem_tensor_like(source); cute.copy(move, source, held); cute.copy(move, held, "
            "target). Without `assumed_align=16` in from_dlpack the compiler cannot know that 128 bits may "
            "be loaded at once.",
        ),
        section="5 · Atoms that copy",
    ),
    Exercise(
        name="layout.transpose",
        lab=LAB,
        correct_points=1.5,
        evidence=LaunchTrace(arguments=turned_arguments, face="cupy"),
        cases=(matrix_case(32, 64), matrix_case(32, 32), matrix_case(96, 64), matrix_case(128, 128)),
        budgets=(
            wide("global_load_requests", "load requests", 0.5),
            wide("global_store_requests", "store requests", 0.5),
            Budget(
                "shared_store_requests",
                partial(each, 4),
                0.25,
                "stores to shared memory",
                sense="==",
                naive=partial(each, 1),
                why="128 bits for each lane, and each float once",
                advice="Every float goes through the tile once, in stores of 128 bits. How many bits does "
                "your atom copy?",
                case=EVERY,
            ),
            Budget(
                "shared_load_requests",
                partial(each, 1),
                0.25,
                "loads from shared memory",
                sense="==",
                why="32 bits for each lane, down the columns",
                advice="A lane needs four floats of a column, which do not lie together in the tile. What "
                "turns the tile, if no lane reads down a column?",
                case=EVERY,
            ),
            Budget(
                "shared_wavefronts",
                lambda sizes: 2 * each(1, sizes),
                2,
                "bank conflicts",
                why="one for 32 floats that are stored, and one that are loaded: the swizzle separates rows",
                advice="In one request, lanes read four columns of eight rows, 4·i + e. Which bits of the "
                "row "
                "tell these rows apart?",
                case=EVERY,
            ),
            Budget(
                "shared_bytes",
                4096,
                0.5,
                "shared memory",
                why="a tile of 32 × 32 without padding",
                advice="A swizzle needs no additional column.",
                case=EVERY,
            ),
            sectors_budget(0.5, "Which lanes store next to each other? A row of y must be written along."),
        ),
        hints=(
            "The thread layout (32, 8):(8, 1) with values (1, 4) covers a tile of 32 × 32: eight lanes "
            "take a "
            "row. Use it for loading rows of x, and again for storing rows of y.",
            "Reading the tile by `cute.composition(tile, cute.make_layout((32, 32), stride=(32, 1)))` "
            "exchanges rows and columns: then the same partition reads down the columns.",
            "The four floats of a 128-bit store must stay together: base 2. The rows that collide are 4·i "
            "+ e, "
            "so bits 2 to 4 of the row, which are bits 7 to 9 of the element, must change bits 2 to 4.",
        ),
        section="6 · A tile that turns",
    ),
    Exercise(
        name="layout.slow",
        lab=LAB,
        correct_points=1,
        evidence=LaunchTrace(arguments=same_shape_arguments, face="cupy"),
        cases=(matrix_case(32, 64), matrix_case(32, 32), matrix_case(64, 96), matrix_case(128, 64)),
        budgets=(sectors_budget(3, "Which elements do the 32 lanes of a warp take in one request?"),),
        hints=(
            "Profile the kernel: how many sectors does a request touch, and how many would do?",
            "Write down row and column of lanes 0, 1, 2 and 3. The layout of threads says them.",
            "The column must change fastest, and a warp needs at least eight neighbours: for example "
            "(4, 32):(32, 1).",
        ),
        section="Detective · Right, and eight times the sectors",
        detective=True,
    ),
)


_prediction = partial(prediction, TOPIC, LAB)

PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "offset",
        "Offset of index 13 in the layout (4, 8):(8, 1)",
        "elements",
        11,
        "13 = 1 + 4 · 3: coordinate (1, 3), and 1 · 8 + 3 · 1 = 11.",
    ),
    _prediction(
        "colliding",
        "Rows of 64 bytes, lanes that read 16 bytes each down a column: lanes of 8 that meet in one bank",
        "lanes",
        4,
        "Two rows share 128 bytes, so rows 0, 2, 4 and 6 start in the same bank.",
    ),
    _prediction(
        "requests",
        "Load requests for 4,096 floats with 128-bit copies",
        "requests",
        32,
        "A warp loads 32 · 4 = 128 floats at once, and 4,096 / 128 = 32.",
    ),
)
