"""Lab 26: softmax on three kinds of units, and attention that leaves work out."""

from __future__ import annotations

from gpulab.plot.drawing import (
    bits,
    box,
    cells,
    column,
    curve,
    flow,
    note,
    row,
    timeline,
    titled,
)

from .drawing import Drawing

NOW = "26_attention_now"

LISTED = [sorted({0, i, *range(i, -1, -2)}) for i in range(6)]

DRAWINGS = (
    Drawing(
        NOW,
        "exponent",
        "A float32 number: sign, eight bits of exponent, 23 bits of fraction. The polynomial gives 2 to the f; the whole number i is added to the exponent.",
        column(
            bits([("", 1, "plain"), ("exponent", 8, "read"), ("fraction", 23, "write")], size=15),
            row(box("+ i", "read"), box("2ᶠ, from the polynomial", "write"), gap=40),
            gap=10,
        ),
    ),
    Drawing(
        NOW,
        "lagging",
        "The largest score grows step by step. The number that is subtracted stays until the largest score is more than 8 above it, and then jumps.",
        curve(
            [
                (
                    "largest score",
                    [
                        (0, 0.1),
                        (0.15, 0.1),
                        (0.15, 0.25),
                        (0.3, 0.25),
                        (0.3, 0.4),
                        (0.5, 0.4),
                        (0.5, 0.75),
                        (0.7, 0.75),
                        (0.7, 0.9),
                        (1, 0.9),
                    ],
                    "read",
                ),
                ("number subtracted", [(0, 0.07), (0.49, 0.07), (0.49, 0.72), (1, 0.72)], "write"),
            ],
            "tiles",
            "score",
            points=[(0.49, 0.07, "more than 8 apart: rescale")],
        ),
    ),
    Drawing(
        NOW,
        "three_roles",
        "One warp copies tiles of K and V. Two warpgroups use each tile: while one takes exponentials, the other multiplies.",
        timeline(
            [
                (
                    "producer warp",
                    [
                        (0, 2, "copy 0", "read"),
                        (2, 2, "copy 1", "read"),
                        (6, 2, "copy 2", "read"),
                        (10, 2, "copy 3", "read"),
                    ],
                ),
                (
                    "warpgroup 0",
                    [
                        (2, 2, "multiply", "write"),
                        (4, 2, "exp", "good"),
                        (6, 2, "multiply", "write"),
                        (8, 2, "exp", "good"),
                        (10, 2, "multiply", "write"),
                    ],
                ),
                (
                    "warpgroup 1",
                    [
                        (4, 2, "multiply", "write"),
                        (6, 2, "exp", "good"),
                        (8, 2, "multiply", "write"),
                        (10, 2, "exp", "good"),
                        (12, 2, "multiply", "write"),
                    ],
                ),
            ],
            width=500,
        ),
    ),
    Drawing(
        NOW,
        "block_mask",
        "A block mask. Each row of blocks visits its own block, every second block before it, and the first. The list of row 5 is 0, 1, 3, 5.",
        cells(
            ["".join("w" if j == i else "r" if j in LISTED[i] else "o" for j in range(6)) for i in range(6)],
            size=34,
            left=[f"{i}: {', '.join(map(str, LISTED[i]))}" for i in range(6)],
            above=[str(j) for j in range(6)],
        ),
    ),
    Drawing(
        NOW,
        "choose",
        "Four steps: q is compared with the means, softmax and the sum over heads give one number for each block, the best blocks are chosen, and attention reads only these.",
        flow(
            box("q · means", "read", "a number for each\nhead and block"),
            box("softmax, sum", "plain", "a number for\neach block"),
            box("top blocks", "write", "their numbers"),
            box("attention", "good", "over these\nblocks only"),
        ),
    ),
    Drawing(
        NOW,
        "absorbed",
        "Left: every latent is expanded to keys and values of all heads. Right: the query is brought to the space of the latents, attention sums latents, and the sum is brought back.",
        row(
            titled(
                "expanded",
                flow(
                    box("m latents", "read"),
                    box("keys and values", "bad", "m for each head"),
                    box("attention", "plain"),
                    down=True,
                ),
            ),
            titled(
                "absorbed",
                flow(
                    box("Kᵀ q", "write", "one for each head"),
                    box("attention over m latents", "good"),
                    box("V · sum", "write", "one for each head"),
                    down=True,
                ),
            ),
            gap=60,
        ),
    ),
    Drawing(
        NOW,
        "chunks",
        "The state passes from chunk to chunk. Within a chunk, each token reads the state at its start and what earlier tokens of the chunk wrote.",
        column(
            flow(
                box("S = 0"),
                box("chunk 0", "read", "tokens 0 to 15"),
                box("chunk 1", "read", "tokens 16 to 31"),
                box("chunk 2", "read", "tokens 32 to 47"),
                labels=("S", "S", "S"),
            ),
            cells(["gooo", "ggoo", "gggo", "gggg"], size=22, left=["first token", "", "", "last token"]),
            note(
                "Within a chunk, each row is a token, and it reads what the tokens marked in its row wrote."
            ),
            gap=14,
        ),
    ),
)
