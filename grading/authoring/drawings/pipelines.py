"""Lab 23: copies on their way, mbarriers, tensor copies and clusters."""

from __future__ import annotations

from gpulab.plot.drawing import (
    Part,
    box,
    cells,
    column,
    flow,
    matrix,
    note,
    row,
    strip,
    timeline,
    titled,
    under,
)

from .drawing import Drawing

PIPELINES = "23_asynchronous_pipelines"

_ONE_PARCEL = [(0.0, 3.0, "order, then wait", "wait"), (3.0, 3.0, "order, then wait", "wait")]


def _blocks(tone: str) -> list[Part]:
    return [box(f"block {i}", tone) for i in range(4)]


def _reads() -> Part:
    """Each block with a copy of its own."""
    return column(*(flow(box("v", "read"), block) for block in _blocks("plain")), gap=4)


_BOX = ["oooooo", "oorrrr", "oorrrr", "oorrrr"]

DRAWINGS = (
    Drawing(
        PIPELINES,
        "parcels",
        "If one parcel is ordered at a time, one arrives a minute. With sixty on the road, one arrives every second.",
        column(
            titled("one at a time", timeline([("on the road", _ONE_PARCEL)], width=400, across="")),
            titled(
                "the next one is ordered before the last has come",
                timeline(
                    [(f"parcel {i}", [(0.5 * i, 3.0, "on the road", "read")]) for i in range(4)],
                    width=400,
                    end=6.0,
                    height=20,
                ),
            ),
            gap=16,
        ),
    ),
    Drawing(
        PIPELINES,
        "without_registers",
        "An ordinary load passes through a register and the thread waits for it. A cp.async goes from global to shared memory by itself, and the thread goes on.",
        column(
            titled(
                "load and store",
                flow(
                    box("global memory", "read"),
                    box("a register", "wait", "the thread waits"),
                    box("shared memory", "write"),
                ),
            ),
            titled(
                "cp.async",
                flow(
                    box("global memory", "read"),
                    box("shared memory", "write", "the thread goes on"),
                    length=150,
                ),
            ),
            gap=16,
        ),
    ),
    Drawing(
        PIPELINES,
        "ring",
        "Four slots in a ring. While tile 4 is read in slot 0, the tiles 5 and 6 are on their way into slots 1 and 2, and tile 7 is sent into slot 3, which tile 3 has left.",
        row(
            under(strip(["tile 4"], "r", 110), "slot 0: being read", 120),
            under(strip(["tile 5"], "w", 110), "slot 1: on its way", 120),
            under(strip(["tile 6"], "w", 110), "slot 2: on its way", 120),
            under(strip(["3 → 7"], "g", 110), "slot 3: free, sent again", 130),
            gap=12,
        ),
    ),
    Drawing(
        PIPELINES,
        "full_and_empty",
        "The producer waits until a slot is empty, fills it and arrives at its full barrier. The consumer waits for full, reads the slot and arrives at its empty barrier.",
        column(
            flow(
                box("producer", "read", "fills the slot"),
                box("full", "plain", "an mbarrier"),
                box("consumer", "write", "reads the slot"),
                labels=("arrives", "wait is over"),
                length=110,
            ),
            flow(
                box("consumer", "write", "has read it"),
                box("empty", "plain", "an mbarrier"),
                box("producer", "read", "fills it again"),
                labels=("arrives", "wait is over"),
                length=110,
            ),
            gap=16,
        ),
    ),
    Drawing(
        PIPELINES,
        "phases",
        "Phases of an mbarrier in time: 0, 1, 2, 3. A wait for parity 0 during phase 0 goes on; during phase 1 it is over. A wait for parity 1 during phase 0 is over at once.",
        timeline(
            [
                ("the barrier", [(i, 1.0, f"phase {i}", "plain") for i in range(4)]),
                (
                    "wait, parity 0",
                    [
                        (0, 1, "goes on", "wait"),
                        (1, 1, "over", "good"),
                        (2, 1, "goes on", "wait"),
                        (3, 1, "over", "good"),
                    ],
                ),
                (
                    "wait, parity 1",
                    [
                        (0, 1, "over", "good"),
                        (1, 1, "goes on", "wait"),
                        (2, 1, "over", "good"),
                        (3, 1, "goes on", "wait"),
                    ],
                ),
            ],
            width=400,
        ),
    ),
    Drawing(
        PIPELINES,
        "bulk",
        "With ordinary loads, 256 threads of a block compute 256 addresses and send 8 requests. With a bulk copy one thread sends one instruction, and the copy engine moves 4 KiB.",
        column(
            titled(
                "loads",
                flow(
                    box("256 threads", "wait", "256 addresses"),
                    box("8 requests", "plain", "512 bytes each"),
                    box("shared memory", "write"),
                ),
            ),
            titled(
                "a bulk copy",
                flow(
                    box("1 thread", "read", "1 instruction"),
                    box("copy engine", "good", "4 KiB"),
                    box("shared memory", "write"),
                ),
            ),
            gap=16,
        ),
    ),
    Drawing(
        PIPELINES,
        "transaction",
        "The phase of the mbarrier ends when its arrival has come and all announced bytes have come. At first one arrival and 4,096 bytes are missing; the copy brings the bytes piece by piece.",
        timeline(
            [
                ("arrivals missing", [(0, 1, "1", "wait"), (1, 5, "0", "good")]),
                (
                    "bytes missing",
                    [
                        (0, 1, "0", "good"),
                        (1, 2, "4,096", "wait"),
                        (3, 2, "2,048", "wait"),
                        (5, 1, "0", "good"),
                    ],
                ),
                ("the phase", [(0, 5, "goes on", "plain"), (5, 1, "over", "good")]),
            ],
            width=380,
        ),
    ),
    Drawing(
        PIPELINES,
        "tensor_map",
        "A tensor map describes an array in global memory: address, sizes, strides, and the shape of a box. A copy names the map and the coordinates of one box, which arrives in shared memory.",
        flow(
            matrix("the array", 6, 8, marked={(i, j): "r" for i in (2, 3) for j in (4, 5, 6)}, size=18),
            box("a copy", "plain", "map, {column, row}"),
            matrix("the box", 2, 3, tone="w", size=24),
        ),
    ),
    Drawing(
        PIPELINES,
        "swizzle",
        "Eight rows of eight pieces. Without a swizzle, piece 2 of every row lies in the third place. With the swizzle it lies in a different place in each of the eight rows.",
        row(
            titled(
                "without",
                matrix("piece 2 of each row", 8, 8, marked={(i, 2): "x" for i in range(8)}, size=18),
            ),
            titled(
                "with",
                matrix("piece 2 of each row", 8, 8, marked={(i, 2 ^ i): "g" for i in range(8)}, size=18),
            ),
            gap=60,
        ),
    ),
    Drawing(
        PIPELINES,
        "border",
        "A box of 10 by 34 elements reaches beyond the upper left corner of the image. Its elements outside of the image arrive as zeros.",
        row(
            titled("the box in global memory", cells(_BOX, size=22)),
            titled(
                "in shared memory",
                cells(
                    ["wwwwww"] * 4,
                    [[("0" if c == "o" else "a") for c in codes] for codes in _BOX],
                    size=26,
                ),
            ),
            gap=50,
        ),
    ),
    Drawing(
        PIPELINES,
        "roles",
        "Warp 4 waits for an empty slot, announces bytes and sends a copy. Warps 0 to 3 wait for the slot to be full, compute, and arrive at empty, one lane each.",
        timeline(
            [
                (
                    "warp 4",
                    [
                        (0, 1, "send 0", "read"),
                        (1, 1, "send 1", "read"),
                        (2, 1, "send 2", "read"),
                        (3, 1, "send 3", "read"),
                        (4, 2, "wait", "wait"),
                        (6, 1, "send 4", "read"),
                    ],
                ),
                (
                    "warps 0–3",
                    [
                        (0, 3, "wait for full", "wait"),
                        (3, 3, "compute 0", "write"),
                        (6, 3, "compute 1", "write"),
                    ],
                ),
            ],
            width=420,
        ),
    ),
    Drawing(
        PIPELINES,
        "multicast",
        "Without a cluster, four blocks read the same piece of v four times. With a multicast it is read once and arrives in all four blocks.",
        row(
            titled("v is read four times", _reads()),
            titled("a multicast", flow(box("v", "read"), column(*_blocks("good"), gap=4))),
            gap=50,
        ),
    ),
    Drawing(
        PIPELINES,
        "distributed",
        "Four blocks keep a quarter of a row each. Every block writes its maximum to its own shared memory, and after a barrier of the cluster every block reads all four.",
        column(
            strip(["block 0", "block 1", "block 2", "block 3"], "rrrr", 110),
            strip(["max 0", "max 1", "max 2", "max 3"], "wwww", 110),
            note("cluster.sync()"),
            strip(["all 4", "all 4", "all 4", "all 4"], "gggg", 110),
            gap=8,
        ),
    ),
)
