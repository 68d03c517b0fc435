"""Lab 25: layouts, tiles, atoms, and what a language decides."""

from __future__ import annotations

from gpulab.plot.drawing import (
    bits,
    box,
    cells,
    column,
    flow,
    note,
    row,
    strip,
    titled,
)

from .drawing import Drawing

LAYOUTS = "25_layouts_and_tiles"

DRAWINGS = (
    Drawing(
        LAYOUTS,
        "composition",
        "A layout B takes an index to an index of A, and A takes that to an offset. The composition goes there directly.",
        column(
            flow(
                box("index", "plain", "0 … 7"),
                box("index of A", "read", "0, 2, 4 … 14"),
                box("offset", "write", "0, 16, 1, 17 …"),
                labels=("B = (8):(2)", "A = (4, 8):(8, 1)"),
            ),
            flow(
                box("index", "plain", "0 … 7"),
                box("offset", "write", "0, 16, 1, 17 …"),
                labels=("A ∘ B = (2, 4):(16, 1)",),
                length=260,
            ),
        ),
    ),
    Drawing(
        LAYOUTS,
        "complement",
        "24 offsets. The tile takes 0, 2, 4, 6; its copy at 1 takes the odd ones; both are repeated at 8 and at 16.",
        column(
            cells(
                ["rwrwrwrw" + "g" * 16],
                [[str(i) for i in range(24)]],
                size=24,
            ),
            row(
                box("tile", "read", "(4):(2)"),
                box("its copy", "write", "at 1"),
                box("copies of both", "good", "at 8 and 16"),
            ),
        ),
    ),
    Drawing(
        LAYOUTS,
        "swizzle",
        "An address in bits: 4 bits within an access, 3 bits that choose a group of banks, then the row. The row's low bits are XORed into the three.",
        column(
            bits(
                [
                    ("other bits of the row", 6, "plain"),
                    ("row % 8", 3, "write"),
                    ("piece", 3, "read"),
                    ("byte", 4, "plain"),
                ],
                size=30,
            ),
            note("new piece = piece XOR row % 8", 300),
            bits(
                [
                    ("other bits of the row", 6, "plain"),
                    ("row % 8", 3, "write"),
                    ("new", 3, "good"),
                    ("byte", 4, "plain"),
                ],
                size=30,
            ),
        ),
    ),
    Drawing(
        LAYOUTS,
        "thread_value",
        "Threads 0, 1, 2 … with four values each: thread t has the elements 4·t to 4·t + 3.",
        cells(
            ["rrrrwwwwggggssss"],
            [["0", "1", "2", "3"] * 4],
            size=30,
            above=[
                "",
                "thread 0",
                "",
                "",
                "",
                "thread 1",
                "",
                "",
                "",
                "thread 2",
                "",
                "",
                "",
                "thread 3",
                "",
                "",
            ],
        ),
    ),
    Drawing(
        LAYOUTS,
        "turning",
        "A tile of 32 × 32. Thread t loads four elements of a row and stores them as one piece. Then it reads four elements of a column, one by one, and stores them as a row of y.",
        row(
            titled("a row of x", strip(["0", "1", "2", "3"], "rrrr", 34, 28)),
            titled(
                "tile in shared memory",
                cells(["rrrr....", "......g.", "......g.", "......g.", "......g."], size=26),
            ),
            titled("a row of y", strip(["0", "1", "2", "3"], "gggg", 34, 28)),
            gap=30,
        ),
    ),
    Drawing(
        LAYOUTS,
        "atoms",
        "On an A100 three atoms move and multiply: cp.async to shared memory, ldmatrix to registers, mma.sync. On an H100 two: TMA to shared memory, wgmma.",
        column(
            titled(
                "A100",
                flow(
                    box("global", "plain", "memory"),
                    box("shared", "read", "memory"),
                    box("registers", "write"),
                    box("sums", "good"),
                    labels=("cp.async", "ldmatrix", "mma.sync"),
                ),
            ),
            titled(
                "H100",
                flow(
                    box("global", "plain", "memory"),
                    box("shared", "read", "memory"),
                    box("sums", "good"),
                    labels=("TMA", "wgmma"),
                    length=110,
                ),
            ),
        ),
    ),
    Drawing(
        LAYOUTS,
        "tile_program",
        "A program of tiles: load a tile, compute with whole tiles, store one. The compiler chooses threads, layouts, copies and barriers.",
        flow(
            box("load", "read", "a tile by its index"),
            box("compute", "write", "max, exp, mma"),
            box("store", "good", "a tile by its index"),
        ),
    ),
    Drawing(
        LAYOUTS,
        "two_layouts",
        "The same 4 × 8 numbers in two layouts. Left, a warp goes along rows. Right, it goes down columns.",
        row(
            titled("along rows", cells(["rrrrrrrr", "wwwwwwww", "gggggggg", "ssssssss"], size=26)),
            titled("down columns", cells(["rrwwggss"] * 4, size=26)),
            gap=60,
        ),
    ),
)
