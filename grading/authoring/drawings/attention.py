"""Lab 12: attention."""

from __future__ import annotations

from gpulab.plot.drawing import bars, box, cells, column, flow, label, matrix, note, row, strip, titled, under

from .drawing import Drawing

ATTENTION = "12_flash_attention"

DRAWINGS = (
    Drawing(
        ATTENTION,
        "scores",
        "Attention with all scores in memory: Q times K transposed gives n × n scores, softmax makes weights of them, and weights times V gives the output. The n × n matrices are the large part.",
        row(
            matrix("Q", 6, 2, "r", size=16),
            note("·", 10, "", 18),
            matrix("Kᵀ", 2, 6, "r", size=16),
            note("→", 16, "", 18),
            matrix("scores, n × n", 6, 6, "x", size=16),
            note("→", 16, "", 18),
            matrix("out", 6, 2, "w", size=16),
            gap=14,
        ),
    ),
    Drawing(
        ATTENTION,
        "parts_merge",
        "The keys are cut in two parts. Each part gives an output and the logarithm of its sum of exponentials; the merged output weighs the two by these.",
        flow(
            column(
                box("keys 0–511", "read", sub="out, lse"),
                box("keys 512–1023", "write", sub="out, lse"),
                gap=10,
            ),
            box("weigh by\nexp(lse − max)"),
            box("out", "good", sub="as if never cut"),
        ),
    ),
    Drawing(
        ATTENTION,
        "tiles",
        "A tile at a time: a tile of queries stays, and the tiles of keys and values pass by. Of the scores only one tile exists at any moment, and the running maximum, sum and output are updated after each.",
        row(
            under(cells(["r", "o", "o", "o"], size=34), "queries: one tile stays", 110),
            under(
                cells(["oswo", "    "], [["", "now", "next", ""]], size=44, height=34),
                "keys and values pass by",
                190,
            ),
            under(
                cells(["rrr"], [["m", "s", "out"]], size=50, height=34), "running state, in registers", 150
            ),
            gap=34,
        ),
    ),
    Drawing(
        ATTENTION,
        "causal_tiles",
        "Causal attention in tiles of the score matrix: tiles above the diagonal are skipped, those on it are masked, and those below are computed whole. A little more than half of the work is left.",
        row(
            cells(["sooooo", "gsoooo", "ggsooo", "gggsoo", "ggggso", "gggggs"], size=26),
            column(
                row(cells(["g"], size=18), note("computed whole", 130), gap=8),
                row(cells(["s"], size=18), note("masked", 130), gap=8),
                row(cells(["o"], size=18), note("skipped", 130), gap=8),
                gap=8,
                align="left",
            ),
            gap=50,
        ),
    ),
    Drawing(
        ATTENTION,
        "backward",
        "Backward without stored scores: from q, k and the saved lse of each row, a tile of weights is computed again, used for dq, dk and dv, and dropped.",
        flow(
            box("q, k, lse", "read", sub="kept"),
            box("weights", sub="a tile, computed again"),
            box("dq, dk, dv", "write", sub="added up"),
            length=40,
        ),
    ),
    Drawing(
        ATTENTION,
        "fewer_heads",
        "Keys and values for eight query heads: one pair for each head, one for each group of four heads, or one for all. The cache shrinks from 8 to 2 to 1.",
        row(
            titled("multi-head: 8", strip([""] * 8, "rrrrrrrr", 18, 22)),
            titled("grouped: 2", strip([""] * 2, "ww", 72, 22)),
            titled("multi-query: 1", strip([""], "g", 144, 22)),
            gap=24,
        ),
    ),
    Drawing(
        ATTENTION,
        "masks",
        "The last two of four keys are padding, said three times: to SDPA as true for what takes part, to MultiheadAttention as true for what is ignored, and as numbers that are added to the scores, 0 and minus infinity.",
        column(
            *[
                row(label(name, 170), strip(words, "ggxx", 64, 26))
                for name, words in (
                    ("SDPA, boolean", ["True", "True", "False", "False"]),
                    ("key_padding_mask", ["False", "False", "True", "True"]),
                    ("float, in all of them", ["0", "0", "−∞", "−∞"]),
                )
            ],
            note("green takes part, hatched is hidden"),
            gap=8,
        ),
    ),
    Drawing(
        ATTENTION,
        "parts_of_peaks",
        "What each version reached of the dense peak of its GPU: 72 % on the A100, 75 % on the H100, 71 % on the B200.",
        bars(
            [
                ("FA-2, A100", 225, "225 of 312 TFLOP/s", "read"),
                ("FA-3, H100", 740, "740 of 989 TFLOP/s", "read"),
                ("FA-4, B200", 1613, "1,613 of 2,250 TFLOP/s", "read"),
            ],
            width=240,
        ),
    ),
)
