"""Lab 24: operands, sums and scales of the tensor cores of Hopper and Blackwell."""

from __future__ import annotations

from gpulab.plot.drawing import (
    bits,
    box,
    cells,
    column,
    matrix,
    note,
    row,
    strip,
    timeline,
    titled,
)

from .drawing import Drawing

TENSOR = "24_tensor_cores"

DRAWINGS = (
    Drawing(
        TENSOR,
        "pieces",
        "An operand in pieces of 8 rows of 16 bytes. The leading offset leads to the next piece along k, the stride offset to the next 8 rows.",
        cells(
            ["rw..", "g...", "...."],
            [["start", "+ leading", "", ""], ["+ stride", "", "", ""], ["", "", "", ""]],
            size=105,
            height=44,
            left=["rows 0–7", "rows 8–15", "rows 16–23"],
            above=["k 0–7", "k 8–15", "k 16–23", "k 24–31"],
        ),
    ),
    Drawing(
        TENSOR,
        "four_steps",
        "A product takes four steps: begin, multiply, commit, wait. Between commit and wait the tensor cores work by themselves, and the registers of the sums must not be touched.",
        timeline(
            [
                (
                    "threads",
                    [
                        (0, 1, "begin", "plain"),
                        (1, 1, "multiply", "read"),
                        (2, 1, "commit", "plain"),
                        (3, 3, "something else", "good"),
                        (6, 1, "wait", "wait"),
                        (7, 1, "use d", "good"),
                    ],
                ),
                ("tensor cores", [(2, 4.6, "make the product", "write")]),
            ],
            width=440,
        ),
    ),
    Drawing(
        TENSOR,
        "overlap",
        "Above: copy and product take turns. Below: while the tensor cores multiply tile k, the engine copies tile k + 1.",
        column(
            titled(
                "in turn",
                timeline(
                    [
                        (
                            "engine",
                            [(0, 2, "copy 0", "read"), (4, 2, "copy 1", "read"), (8, 2, "copy 2", "read")],
                        ),
                        ("tensor cores", [(2, 2, "0", "write"), (6, 2, "1", "write"), (10, 2, "2", "write")]),
                    ],
                    width=420,
                    across="",
                    end=12,
                ),
            ),
            titled(
                "overlapped",
                timeline(
                    [
                        (
                            "engine",
                            [(0, 2, "copy 0", "read"), (2, 2, "copy 1", "read"), (4, 2, "copy 2", "read")],
                        ),
                        ("tensor cores", [(2, 2, "0", "write"), (4, 2, "1", "write"), (6, 2, "2", "write")]),
                    ],
                    width=420,
                    end=12,
                ),
            ),
            gap=14,
        ),
    ),
    Drawing(
        TENSOR,
        "pingpong",
        "Two warpgroups in turn: while one multiplies its tile, the other applies gelu to the tile before and stores it. The tensor cores always have a tile to multiply.",
        timeline(
            [
                (
                    "warpgroup 0",
                    [
                        (0, 2, "multiply 0", "write"),
                        (2, 2, "gelu 0", "good"),
                        (4, 2, "multiply 2", "write"),
                        (6, 2, "gelu 2", "good"),
                    ],
                ),
                (
                    "warpgroup 1",
                    [
                        (2, 2, "multiply 1", "write"),
                        (4, 2, "gelu 1", "good"),
                        (6, 2, "multiply 3", "write"),
                        (8, 2, "gelu 3", "good"),
                    ],
                ),
                (
                    "tensor cores",
                    [(0, 2, "0", "read"), (2, 2, "1", "read"), (4, 2, "2", "read"), (6, 2, "3", "read")],
                ),
            ],
            width=520,
            end=10,
        ),
    ),
    Drawing(
        TENSOR,
        "cut_bits",
        "When a small term is added to a large sum, the bits below the sum's 13th fraction bit are cut off.",
        column(
            bits([("the sum", 14, "read"), ("", 6, "off")], size=20),
            bits([("", 6, "plain"), ("kept", 8, "good"), ("cut off", 6, "bad")], size=20),
            note("The small term begins six bits further to the right, so that its last six bits are lost."),
            gap=14,
        ),
    ),
    Drawing(
        TENSOR,
        "tensor_memory",
        "Tensor Memory: 128 lanes and 512 columns. A tile of 128 by 64 sums takes 64 columns. Warp w reaches lanes 32 w to 32 w + 31.",
        cells(
            ["rooooooo"] * 4,
            above=[f"{64 * i}" for i in range(8)],
            size=54,
            height=30,
            left=["warp 0: lanes 0–31", "warp 1: lanes 32–63", "warp 2: lanes 64–95", "warp 3: lanes 96–127"],
        ),
    ),
    Drawing(
        TENSOR,
        "one_thread",
        "One thread starts copies, issues products and commits. The other threads wait at one mbarrier until all is done, then read Tensor Memory.",
        timeline(
            [
                (
                    "thread 0",
                    [
                        (0, 1, "copy", "read"),
                        (1, 1, "ask", "write"),
                        (2, 1, "copy", "read"),
                        (3, 1, "ask", "write"),
                        (4, 1, "commit", "plain"),
                        (5, 2, "read sums", "good"),
                    ],
                ),
                ("the others", [(0, 5, "wait at over", "wait"), (5, 2, "read sums", "good")]),
            ],
            width=440,
        ),
    ),
    Drawing(
        TENSOR,
        "pair",
        "Two blocks make 256 by 64 sums. Each brings its own 128 rows of A and half of the 64 rows of B. The tensor cores read both halves of B.",
        row(
            titled(
                "block 0",
                column(
                    box("A: rows 0–127", "read"),
                    box("B: rows 0–31", "write"),
                    box("sums: rows 0–127", "good"),
                    gap=6,
                ),
            ),
            titled(
                "block 1",
                column(
                    box("A: rows 128–255", "read"),
                    box("B: rows 32–63", "write"),
                    box("sums: rows 128–255", "good"),
                    gap=6,
                ),
            ),
            gap=40,
        ),
    ),
    Drawing(
        TENSOR,
        "nvfp4",
        "Sixteen numbers of four bits and one scale of eight bits: 72 bits for sixteen numbers.",
        column(
            strip([f"{i}" for i in range(16)], "r" * 16, 30),
            row(strip(["scale"], "w", 62), note("8 bits for the 16 numbers above, 4 bits each", 330), gap=14),
            gap=8,
        ),
    ),
    Drawing(
        TENSOR,
        "waves",
        "Twelve tiles of a wave. Taken row by row they touch one row and twelve columns, thirteen strips. Taken as three by four they touch seven strips.",
        row(
            matrix("1 row, 12 columns", 4, 12, marked={(0, j): "r" for j in range(12)}, size=18),
            matrix(
                "3 rows, 4 columns", 4, 12, marked={(i, j): "g" for i in range(3) for j in range(4)}, size=18
            ),
            gap=30,
        ),
    ),
    Drawing(
        TENSOR,
        "instruction",
        "The 32 bits of an instruction descriptor: the type of the sums at bit 4, of A at bit 7, of B at bit 10, n divided by 8 at bit 17, m divided by 16 at bit 24.",
        bits(
            [
                ("", 3, "off"),
                ("m / 16", 5, "good"),
                ("", 1, "off"),
                ("n / 8", 6, "good"),
                ("", 4, "off"),
                ("B", 3, "write"),
                ("A", 3, "read"),
                ("", 1, "off"),
                ("sums", 2, "wait"),
                ("", 4, "off"),
            ],
            size=15,
        ),
    ),
    Drawing(
        TENSOR,
        "scales",
        "A row of 16 bytes of scales: four each of the rows r, r + 32, r + 64 and r + 96 of the tile. They go to lane r of four columns.",
        column(
            strip(["row r", "row r + 32", "row r + 64", "row r + 96"], "rwgs", 105),
            note("16 bytes of shared memory: four scales of each row"),
            strip(["column 0", "column 1", "column 2", "column 3"], "rwgs", 105),
            note("lane r of Tensor Memory"),
            gap=8,
        ),
    ),
)
