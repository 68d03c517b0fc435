"""Lab 28: experts on several nodes, puts, pools of GPUs, checksums."""

from __future__ import annotations

from gpulab.plot.drawing import box, cells, column, flow, note, row, timeline, titled

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
                flow(box("token", "read", "rank 0"), box("experts", "write", "node 1"), labels=("4 rows",), length=130),
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
        "One shot: four ranks each send their whole array to the three others, one step. Two shots: each sends a quarter to each other, adds, and sends its quarter of the sum: two steps and half of the bytes.",
        row(
            titled("one shot: 4 slots of S", cells(["rrrr", "wwww", "gggg", "rrrr"], size=24)),
            titled("two shots: 4 slots of S/4, then 4 sums", cells(["r.", "w.", "g.", "r.", ".r", ".w", ".g", ".r"], size=14)),
            gap=40,
        ),
    ),
)
