"""Lab 28: experts on several nodes, puts, pools of GPUs, checksums."""

from __future__ import annotations

from gpulab.plot.drawing import Edge, box, cells, column, flow, graph, row, timeline, titled

from .drawing import Drawing

EXPERTS = "28_experts_and_disaggregation"

DRAWINGS = (
    Drawing(
        EXPERTS,
        "once_to_a_node",
        "A token of node 0 has four experts on node 1. The plain exchange sends four rows over the network. The other sends one row to the rank of the same place, which passes it on inside the node.",
        column(
            titled(
                "a row for each expert",
                flow(
                    box("token", "read", "rank 0"),
                    box("experts", "write", "node 1"),
                    labels=("4 rows",),
                    length=130,
                ),
            ),
            titled(
                "a row for each node",
                flow(
                    box("token", "read", "rank 0"),
                    box("same place", "good", "node 1"),
                    box("experts", "write", "node 1"),
                    labels=("1 row", "NVLink"),
                    length=90,
                ),
            ),
            gap=18,
        ),
    ),
    Drawing(
        EXPERTS,
        "two_batches",
        "Two rows, computing and sending. One micro-batch alone leaves a gap in one row whenever the other works; with two micro-batches both rows are full.",
        column(
            titled(
                "one micro-batch",
                timeline(
                    [
                        ("computes", [(0, 1, "A", "read"), (2, 1, "E", "read"), (4, 1, "A", "read")]),
                        ("sends", [(1, 1, "D", "read"), (3, 1, "C", "read")]),
                    ],
                    width=400,
                    across="",
                    end=6,
                ),
            ),
            titled(
                "two micro-batches",
                timeline(
                    [
                        (
                            "computes",
                            [
                                (k, 1, word, "write" if k % 2 else "read")
                                for k, word in enumerate(("A", "A", "E", "E", "A", "A"))
                            ],
                        ),
                        (
                            "sends",
                            [
                                (k + 1, 1, word, "write" if k % 2 else "read")
                                for k, word in enumerate(("D", "D", "C", "C", "D"))
                            ],
                        ),
                    ],
                    width=400,
                    end=6,
                ),
            ),
            gap=14,
        ),
    ),
    Drawing(
        EXPERTS,
        "shots",
        "What a rank sends on four ranks. One shot: its whole array of S bytes to each of the three others, in one step. Two shots: a quarter to each, then its quarter of the sum to each: two steps, and half of the bytes.",
        timeline(
            [
                ("one shot", [(k, 1, "S", "write") for k in range(3)]),
                (
                    "two shots",
                    [(k / 4, 1 / 4, "S/4", "read") for k in range(3)]
                    + [(3 / 4 + k / 4, 1 / 4, "S/4", "good") for k in range(3)],
                ),
            ],
            width=440,
            across="bytes that a rank sends",
        ),
    ),
    Drawing(
        EXPERTS,
        "apart",
        "Together, a long prompt stands between two tokens of everybody else. Apart, one GPU computes prompts and sends keys and values; the other decodes without a pause.",
        column(
            titled(
                "together",
                timeline(
                    [
                        (
                            "GPU",
                            [(0, 1, "d", "read"), (1, 1, "d", "read"), (2, 5, "prompt", "write")]
                            + [(k, 1, "d", "read") for k in (7, 8)],
                        )
                    ],
                    width=420,
                    across="",
                    end=9,
                ),
            ),
            titled(
                "apart",
                timeline(
                    [
                        ("prefill", [(2, 5, "prompt", "write"), (7, 1, "send", "good")]),
                        ("decode", [(k, 1, "d", "read") for k in range(9)]),
                    ],
                    width=420,
                    end=9,
                ),
            ),
            gap=14,
        ),
    ),
    Drawing(
        EXPERTS,
        "tree",
        "A tree with two guesses behind the text, and one guess behind each. The first sibling is judged against p; if it is not kept, the second is judged against what is left of p.",
        graph(
            {
                "text": (0, 1, box("text", "plain")),
                "a": (1.6, 0.3, box("guess 0", "read", "against p")),
                "b": (1.6, 1.7, box("guess 1", "write", "against what is left")),
                "c": (3.3, 0.3, box("guess 2", "read")),
                "d": (3.3, 1.7, box("guess 3", "write")),
            },
            [Edge("text", "a"), Edge("text", "b"), Edge("a", "c"), Edge("b", "d")],
        ),
    ),
    Drawing(
        EXPERTS,
        "rollouts",
        "In turn: generate, train and sync follow one another, and one of both rows is always idle. One behind: generation of the next batch and training overlap, and a sync stops both.",
        column(
            titled(
                "in turn",
                timeline(
                    [
                        ("engine", [(0, 2, "0", "read"), (4, 1, "s", "good"), (5, 2, "1", "read")]),
                        ("trainer", [(2, 2, "0", "write"), (4, 1, "s", "good"), (7, 2, "1", "write")]),
                    ],
                    width=420,
                    across="",
                    end=9,
                ),
            ),
            titled(
                "one behind",
                timeline(
                    [
                        (
                            "engine",
                            [
                                (0, 2, "0", "read"),
                                (2, 2, "1", "read"),
                                (4, 1, "s", "good"),
                                (5, 2, "2", "read"),
                            ],
                        ),
                        (
                            "trainer",
                            [
                                (2, 2, "0", "write"),
                                (4, 1, "s", "good"),
                                (5, 2, "1", "write"),
                                (7, 2, "2", "write"),
                            ],
                        ),
                    ],
                    width=420,
                    end=9,
                ),
            ),
            gap=14,
        ),
    ),
    Drawing(
        EXPERTS,
        "checksums",
        "C with a row and a column of checksums. A wrong element makes exactly one row sum and one column sum wrong, and lies where they cross.",
        row(
            titled(
                "C and its checksums", cells(["......g", "......g", "......g", "......g", "ggggggg"], size=26)
            ),
            titled(
                "one wrong element", cells(["......g", "......g", "...x..w", "......g", "gggwggg"], size=26)
            ),
            gap=40,
        ),
    ),
    Drawing(
        EXPERTS,
        "put_and_flag",
        "Rank 0 puts a row into a slot of rank 1's memory and raises its flag. Rank 1 waits for the flag and reads the slot. Nobody calls receive.",
        graph(
            {
                "sender": (0, 0.5, box("rank 0", "write", sub="put(1, slot, row)")),
                "slot": (1.5, 0, box("slot", "read", sub="in rank 1's memory")),
                "flag": (1.5, 1, box("flag", "good", sub="raised behind the row")),
                "reader": (3, 0.5, box("rank 1", sub="wait, then read")),
            },
            [
                Edge("sender", "slot", "1.", "write"),
                Edge("sender", "flag", "2.", "write"),
                Edge("flag", "reader", "3.", "good"),
                Edge("slot", "reader", "4.", "read"),
            ],
            step=(140, 84),
        ),
    ),
)
