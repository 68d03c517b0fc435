"""Labs 04 to 06: memory, reductions, products."""

from __future__ import annotations

from gpulab.plot.drawing import (
    Edge,
    box,
    cells,
    column,
    flow,
    graph,
    label,
    levels,
    matrix,
    note,
    row,
    stack,
    strip,
    timeline,
    titled,
    under,
    wires,
)  # fmt: skip

from .drawing import Drawing

MEMORY, SUMS, PRODUCTS = "04_memory_hierarchy", "05_reductions_scans_softmax", "06_matrix_multiplication"

_HALF = {(i, j): "r" for i in range(4) for j in range(4)}

DRAWINGS = (
    Drawing(
        MEMORY,
        "levels",
        "The memories from the nearest to the farthest: registers of a thread, shared memory and L1 of an SM, L2 and DRAM of the GPU. Each is slower than the one before it, and more threads can see it.",
        stack(
            [
                ("registers", "good", "of a thread · no waiting"),
                ("shared memory and L1", "read", "of an SM · tens of cycles"),
                ("L2", "write", "of the whole GPU · hundreds"),
                ("DRAM", "wait", "largest · the longest wait"),
            ]
        ),
    ),
    Drawing(
        MEMORY,
        "sectors",
        "32 neighbouring float32 numbers are 128 bytes: four sectors of 32 bytes, each used by eight lanes. If the first address is moved by one element, five sectors are touched.",
        column(
            titled(
                "from a multiple of 32 bytes: 4 sectors",
                wires(32, [[i // 8] for i in range(32)], "rrrro", width=520, depth=34),
            ),
            titled(
                "moved by one element: 5 sectors",
                wires(32, [[(i + 1) // 8] for i in range(32)], "rrrrx", width=520, depth=34),
            ),
            gap=18,
        ),
    ),
    Drawing(
        MEMORY,
        "turned_tile",
        "A transpose through shared memory: the warp reads a row of the tile from global memory, a barrier follows, the warp reads a column of the tile in shared memory and writes it as a row. Both global accesses run along rows.",
        flow(
            under(matrix("a", 4, 4, marked={(1, j): "r" for j in range(4)}, size=22), "read a row", 110),
            under(
                matrix("tile", 4, 4, marked={(i, 2): "s" for i in range(4)}, size=22),
                "turn in shared memory",
                120,
            ),
            under(matrix("out", 4, 4, marked={(2, j): "w" for j in range(4)}, size=22), "write a row", 110),
            labels=["store, barrier", "load a column"],
        ),
    ),
    Drawing(
        MEMORY,
        "records",
        "Records keep x, y and z of a point side by side, so lanes that want x skip y and z. Columns keep all x together, so lanes that want x read neighbours.",
        column(
            titled("records: x y z x y z …", strip(list("xyzxyzxyzxyz"), "roo" * 4, 34)),
            titled("columns: all x, then all y, then all z", strip(list("xxxxyyyyzzzz"), "rrrroooooooo", 34)),
            gap=20,
        ),
    ),
    Drawing(
        MEMORY,
        "banks",
        "Shared memory has 32 banks, each one word wide; eight of them are drawn. Neighbouring words are in different banks and are served at once. If a row of a tile has as many words as there are banks, a whole column is in one bank; if the row has one word more, the column is spread over all banks.",
        row(
            titled("rows of 8 words", cells(["xooooooo"] * 4, size=20, above=[str(i) for i in range(8)])),
            titled(
                "rows of 9 words",
                cells(
                    ["rooooooo", "oroooooo", "oorooooo", "oooroooo"],
                    size=20,
                    above=[str(i) for i in range(8)],
                ),
            ),
            gap=50,
        ),
    ),
    Drawing(
        MEMORY,
        "ring_or_names",
        "A register has a name and no address. An array whose index is known only at run time needs addresses, so it is kept in local memory, which is a part of DRAM behind the caches. Four named variables stay in registers.",
        row(
            titled("ring[row % 4]", flow(box("thread"), box("local memory", "bad", sub="in DRAM, cached"))),
            titled("r0, r1, r2, r3", flow(box("thread"), box("registers", "good", sub="no waiting"))),
            gap=34,
        ),
    ),
    Drawing(
        MEMORY,
        "line",
        "A cache line of 128 bytes consists of four sectors with a common tag. A miss fetches only the sectors that were asked for.",
        row(
            box("tag", "wait"), strip(["sector 0", "sector 1", "sector 2", "sector 3"], "rroo", 90, 36), gap=4
        ),
    ),
    Drawing(
        MEMORY,
        "links",
        "Memory outside the GPU: another GPU's over NVLink, the host's over PCIe. Each link is narrower than the GPU's own DRAM.",
        graph(
            {
                "a": (0, 0, box("GPU 0", "read", sub="its DRAM")),
                "b": (2.3, 0, box("GPU 1", "read", sub="its DRAM")),
                "host": (1.15, 1.1, box("host", sub="its DRAM")),
            },
            [Edge("a", "b", "NVLink"), Edge("b", "a"), Edge("host", "a", "PCIe"), Edge("host", "b", "PCIe")],
            step=(165, 84),
        ),
    ),
    Drawing(
        MEMORY,
        "pages",
        "One address space: pages are in the host's memory until the GPU touches one. Then that page is moved to the GPU, which waits for it.",
        column(
            titled("host", strip(["p0", "p1", "", "p3", "", "p5"], "rrorox", 54)),
            titled("GPU", strip(["", "", "p2", "", "p4", ""], "oogogo", 54)),
            note("page 5 is touched by a kernel: it fails, and the page travels"),
            gap=10,
        ),
    ),
    Drawing(
        SUMS,
        "ladder",
        "A block adds eight numbers in three levels. On each level half of the threads of the level before take part.",
        levels(
            ["rrrrrrrr", "wwww    ", "ww      ", "g       "],
            [[(i, i % 4) for i in range(8)], [(i, i % 2) for i in range(4)], [(0, 0), (1, 0)]],
            left=["8 threads", "4", "2", "1"],
        ),
    ),
    Drawing(
        SUMS,
        "shuffle",
        "A sum by shuffles: every lane takes the value of the lane four, two and one places further up and adds it. After three steps lane 0 has the sum of eight. No memory is used.",
        levels(
            ["rrrrrrrr", "wwwwoooo", "wwoooooo", "gooooooo"],
            [
                [(i, i) for i in range(4)] + [(i + 4, i) for i in range(4)],
                [(i, i) for i in range(2)] + [(i + 2, i) for i in range(2)],
                [(0, 0), (1, 0)],
            ],
            left=["lanes", "+ 4 up", "+ 2 up", "+ 1 up"],
        ),
    ),
    Drawing(
        SUMS,
        "whole_array",
        "A whole array in one launch: each thread adds many elements, each warp its lanes by shuffles, each block its warps in shared memory, and one atomic addition per block joins the blocks.",
        flow(
            box("thread", "read", sub="many loads"),
            box("warp", sub="shuffles"),
            box("block", sub="shared memory"),
            box("array", "good", sub="an atomic each"),
            length=30,
        ),
    ),
    Drawing(
        SUMS,
        "in_flight",
        "A thread that loads one element waits after each load. A thread with four loads has four under way at a time, so fewer warps keep the memory busy.",
        timeline(
            [
                (
                    "1 load",
                    [
                        (0, 3, "load", "read"),
                        (3, 0.5, "+", "write"),
                        (3.5, 3, "load", "read"),
                        (6.5, 0.5, "+", "write"),
                    ],
                ),
                (
                    "4 loads",
                    [
                        (0, 3, "load", "read"),
                        (3, 0.5, "+", "write"),
                        (3.5, 0.5, "+", "write"),
                        (4, 0.5, "+", "write"),
                        (4.5, 0.5, "+", "write"),
                    ],
                ),
                ("", [(0.3, 3, "load", "read")]),
                ("", [(0.6, 3, "load", "read")]),
                ("", [(0.9, 3, "load", "read")]),
            ],
            height=22,
        ),
    ),
    Drawing(
        SUMS,
        "orders",
        "Four float32 numbers, 2²⁴, 1, 1 and 1, added in two orders. One after the other, every 1 is lost; as a tree two of them are added to each other first, and the sum is larger by 2.",
        row(
            titled("one after the other", note("((2²⁴ + 1) + 1) + 1 = 2²⁴", 230, "", 15)),
            titled("as a tree", note("(2²⁴ + 1) + (1 + 1) = 2²⁴ + 2", 280, "", 15)),
            gap=20,
        ),
    ),
    Drawing(
        SUMS,
        "scan",
        "An inclusive scan of eight numbers by doubling: in the three steps every place adds the value one, two and then four places to its left.",
        levels(
            ["rrrrrrrr", "wwwwwwww", "wwwwwwww", "gggggggg"],
            [
                [(i, i) for i in range(8)] + [(i, i + 1) for i in range(7)],
                [(i, i) for i in range(8)] + [(i, i + 2) for i in range(6)],
                [(i, i) for i in range(8)] + [(i, i + 4) for i in range(4)],
            ],
            [
                list("31704163"),
                ["3", "4", "8", "7", "4", "5", "7", "9"],
                ["3", "4", "11", "11", "12", "12", "11", "14"],
                ["3", "4", "11", "11", "15", "16", "22", "25"],
            ],
            left=["", "+ 1 left", "+ 2 left", "+ 4 left"],
        ),
    ),
    Drawing(
        SUMS,
        "histogram",
        "Left, all threads count in one histogram in global memory, and they queue at popular bins. Right, each block counts in a histogram of its own in shared memory and adds it to the global one at the end.",
        row(
            titled(
                "all in one", wires(8, [[1], [1], [1], [2], [1], [0], [1], [3]], "rxrr", width=220, depth=44)
            ),
            titled(
                "one for each block",
                levels(
                    ["rrrr rrrr", "wwww wwww", " g  g  g  g "],
                    [
                        [(i, i) for i in range(9) if i != 4],
                        [(i, (1, 4, 7, 10)[i % 5]) for i in range(9) if i != 4],
                    ],
                    width=250,
                    depth=30,
                ),
            ),
            gap=40,
        ),
    ),
    Drawing(
        SUMS,
        "online_softmax",
        "Online softmax reads the logits once. It keeps the largest one so far, m, and the sum s of exp(x − m); when a larger one comes, s is scaled down by exp(old m − new m).",
        cells(
            ["rrrrr", "wwwww", "ggggg"],
            [["2", "1", "5", "3", "5"], ["2", "2", "5", "5", "5"], ["1.00", "1.37", "1.07", "1.20", "2.20"]],
            size=62,
            height=30,
            left=["logit x", "m", "s"],
        ),
    ),
    Drawing(
        SUMS,
        "fused",
        "Apart, an addition writes its result to DRAM and a norm reads it again. Fused, the sum stays in registers: one load and one store of everything in between are saved.",
        column(
            row(
                label("apart", 60),
                flow(box("add"), box("DRAM", "bad"), box("norm"), labels=["write", "read"], length=50),
            ),
            row(label("fused", 60), box("add, then norm: in registers", "good")),
            gap=14,
        ),
    ),
    Drawing(
        PRODUCTS,
        "three_levels",
        "Three levels of a product: a block has a tile of C, a warp a part of that tile, and a thread a small square of the warp's part.",
        flow(
            under(matrix("C", 8, 8, marked=_HALF, size=15), "a block's tile", 120),
            under(
                matrix("tile", 8, 8, marked={(i, j): "s" for i in range(4) for j in range(8)}, size=15),
                "a warp's part",
                120,
            ),
            under(
                matrix("part", 8, 8, marked={(i, j): "w" for i in range(2, 4) for j in range(2, 4)}, size=15),
                "a thread's square",
                130,
            ),
        ),
    ),
    Drawing(
        PRODUCTS,
        "tiles",
        "A product in tiles: a tile of A and a tile of B are brought into shared memory, every thread adds their product to its element, then the next pair of tiles along k follows.",
        row(
            matrix(
                "A",
                8,
                8,
                marked={(i, j): "r" if 2 <= j < 4 else "s" for i in range(2, 4) for j in range(8)},
                size=16,
            ),
            note("×", 14, "", 18),
            matrix(
                "B",
                8,
                8,
                marked={(i, j): "r" if 2 <= i < 4 else "s" for i in range(8) for j in range(4, 6)},
                size=16,
            ),
            note("=", 14, "", 18),
            matrix("C", 8, 8, marked={(i, j): "w" for i in range(2, 4) for j in range(4, 6)}, size=16),
            gap=14,
        ),
    ),
    Drawing(
        PRODUCTS,
        "register_square",
        "A thread with a square of 4 × 4 outputs reads four numbers of A and four of B for 16 multiply-adds. One with a single output reads two numbers for one.",
        row(
            titled("1 output: 2 reads, 1 product", cells([" r", "rw"], size=24)),
            titled(
                "16 outputs: 8 reads, 16 products",
                cells([" rrrr", "rwwww", "rwwww", "rwwww", "rwwww"], size=24),
            ),
            gap=60,
        ),
    ),
    Drawing(
        PRODUCTS,
        "double_buffer",
        "With one buffer, loading and computing take turns. With two, the next tile is loaded into one while the other is in use, and a single barrier separates the steps.",
        timeline(
            [
                (
                    "one",
                    [
                        (0, 1.5, "load 0", "wait"),
                        (1.5, 2, "use 0", "read"),
                        (3.5, 1.5, "load 1", "wait"),
                        (5, 2, "use 1", "read"),
                    ],
                ),
                (
                    "two: A",
                    [(0, 1.5, "load 0", "wait"), (1.5, 2, "use 0", "read"), (3.5, 1.5, "load 2", "wait")],
                ),
                ("B", [(1.5, 1.5, "load 1", "wait"), (3.5, 2, "use 1", "read")]),
            ],
        ),
    ),
    Drawing(
        PRODUCTS,
        "matrix_vector",
        "A matrix times a vector reads every element of the matrix once and uses it once. Nothing can be used again, so the bytes of the matrix decide the time.",
        row(
            matrix("A: each element once", 5, 8, "r", size=20),
            note("×", 14, "", 18),
            matrix("x", 8, 1, "s", size=20),
            note("=", 14, "", 18),
            matrix("y", 5, 1, "w", size=20),
            gap=14,
        ),
    ),
    Drawing(
        PRODUCTS,
        "split_k",
        "A long sum for a small output. Without split-K one block has it and the other SMs are idle; with it four blocks take a quarter of k each, and their partial results are added.",
        column(
            titled(
                "one block", row(strip(["k"], "r", 320), note("→", 14, "", 16), cells(["w"], size=30), gap=8)
            ),
            titled(
                "split-K: four blocks",
                row(
                    strip(["k/4"] * 4, "rgsw", 79),
                    note("→", 14, "", 16),
                    cells(["rgsw"], size=24),
                    note("→ +", 30, "", 16),
                    cells(["w"], size=30),
                    gap=8,
                ),
            ),
            gap=18,
        ),
    ),
    Drawing(
        PRODUCTS,
        "batched",
        "Many small products: launched one by one each pays for a launch and fills a few SMs. In a batch one launch has them all, a block for each.",
        timeline(
            [
                (
                    "one by one",
                    [
                        (k * 1.6 + d, w, t, c)
                        for k in range(4)
                        for d, w, t, c in ((0, 1, "launch", "wait"), (1, 0.6, "", "read"))
                    ],
                ),
                ("in a batch", [(0, 1, "launch", "wait"), (1, 1, "all", "good")]),
            ],
        ),
    ),
    Drawing(
        PRODUCTS,
        "fragments",
        "mma.m16n8k16: a warp multiplies a 16 × 16 piece of A by a 16 × 8 piece of B. Each of the 32 lanes holds 8 numbers of A, 4 of B and 4 of the result.",
        row(
            matrix("A: 16 × 16", 8, 8, "r", size=14),
            note("×", 14, "", 18),
            matrix("B: 16 × 8", 8, 4, "s", size=14),
            note("+→", 24, "", 18),
            matrix("D: 16 × 8", 8, 4, "w", size=14),
            gap=16,
        ),
    ),
    Drawing(
        PRODUCTS,
        "ladder",
        "The rungs of this lab, each with what it brings near: a tile in shared memory, a column in registers, a square in registers, wider loads, the next tile early.",
        flow(
            box("plain"),
            box("tile", sub="shared"),
            box("column", sub="registers"),
            box("square", sub="registers"),
            box("pairs,\nbuffers", "good"),
            length=22,
        ),
    ),
    Drawing(
        SUMS,
        "two_stages",
        "A block of eight warps: each warp adds its 32 lanes by shuffles, lane 0 of each stores the sum in shared memory, and after one barrier the first warp adds the eight.",
        flow(
            box("8 warps", "read", sub="shuffles, all at once"),
            strip([""] * 8, "wwwwwwww", 18, 26),
            box("warp 0", "good", sub="shuffles again"),
            labels=["8 sums", "a barrier"],
            length=66,
        ),
    ),
    Drawing(
        SUMS,
        "passes",
        "How often softmax reads its logits. Three passes: one for the maximum, one for the sum, one to divide. With the online sum two: maximum and sum together, then the division.",
        column(
            row(label("three", 60), strip(["maximum", "sum", "divide"], "rrw", 110)),
            row(label("two", 60), strip(["maximum and sum", "divide"], "rw", 168)),
            gap=10,
        ),
    ),
    Drawing(
        PRODUCTS,
        "lanes_on_c",
        "A warp's 32 lanes on C. Along a row they share the row of A and read 32 neighbours of B. Down a column they share the column of B and read 32 elements of A, each in another row.",
        row(
            titled("along a row", cells(["rrrrrrrr", "oooooooo", "oooooooo", "oooooooo"], size=20)),
            titled("down a column", cells(["xooooooo"] * 4, size=20)),
            gap=60,
        ),
    ),
    Drawing(
        PRODUCTS,
        "column_of_outputs",
        "A thread with eight outputs below one another: it reads one number of B and uses it eight times, with eight numbers of A that all lanes of the warp share.",
        row(
            matrix("A", 8, 1, "s", size=18),
            note("×", 14, "", 18),
            matrix("one of B", 1, 1, "r", size=18),
            note("→", 14, "", 18),
            matrix("8 outputs", 8, 1, "w", size=18),
            gap=18,
        ),
    ),
    Drawing(
        PRODUCTS,
        "libraries",
        "Libraries for products, from the one call that does everything to the parts to build a kernel from: cuBLAS, cuBLASLt, CUTLASS.",
        flow(
            box("cuBLAS", "good", sub="one call"),
            box("cuBLASLt", "read", sub="formats, epilogues"),
            box("CUTLASS", "write", sub="parts for kernels"),
            labels=["more to choose", "more to write"],
            length=90,
        ),
    ),
    Drawing(
        PRODUCTS,
        "aligned_pairs",
        "Pairs of floats lie at multiples of 8 bytes. In rows of even length every row begins with a pair; in rows of seven the second row begins in the middle of one.",
        row(
            titled("rows of 8", cells(["rrwwrrww", "rrwwrrww"], size=24)),
            titled("rows of 7", cells(["rrwwrrx", "xwwrrww"], size=24)),
            gap=50,
        ),
    ),
)
