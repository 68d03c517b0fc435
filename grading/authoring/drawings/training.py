"""Lab 27: scales, blocks and ranks of training in few bits."""

from __future__ import annotations

from gpulab.plot.drawing import box, cells, column, curve, flow, note, row, strip, timeline, titled

from .drawing import Drawing

TRAINING = "27_low_precision_training"

DRAWINGS = (
    Drawing(
        TRAINING,
        "two_scales",
        "Current scaling reads a tensor twice: once for its largest number, once to round it. Delayed scaling rounds at once, with the largest number of earlier steps.",
        timeline(
            [
                ("current", [(0, 2, "make", "write"), (2, 2, "find amax", "read"), (4, 2, "round", "good")]),
                ("delayed", [(0, 2, "make, round", "good")]),
            ],
            width=440,
        ),
    ),
    Drawing(
        TRAINING,
        "blocks",
        "Blocks of a matrix: a row of the first has a scale for each four numbers of a token; a square of the second has one for each four by four.",
        row(
            titled("flat blocks", cells(["rrrrwwww", "ggggrrrr", "wwwwgggg", "rrrrwwww"], size=22)),
            titled("square blocks", cells(["rrrrwwww"] * 4, size=22)),
            gap=30,
        ),
    ),
    Drawing(
        TRAINING,
        "two_sums",
        "Activations of tokens by width: the forward product sums along a row, over the width; the gradient of the weights sums along a column, over the tokens.",
        row(
            titled("over the width", cells(["rrrrrr", "......", "......", "......"], size=26)),
            titled("over the tokens", cells(["w....."] * 4, size=26)),
            gap=30,
        ),
    ),
    Drawing(
        TRAINING,
        "two_levels",
        "Two levels of scales: the tensor's scale in float32 brings the largest block scale to 448; a block's scale in E4M3 brings its largest number to 6.",
        flow(
            box("tensor", "plain", "one scale, float32"),
            box("16 numbers", "read", "one scale, E4M3"),
            box("a number", "good", "four bits, E2M1"),
        ),
    ),
    Drawing(
        TRAINING,
        "rotation",
        "One outlier in a block of 16 numbers; after the transform all 16 have the same magnitude, a quarter of it.",
        column(
            strip(["0"] * 5 + ["8"] + ["0"] * 10, "....." + "x" + "." * 10, size=28, height=26),
            strip(["2", "−2"] * 8, "r" * 16, size=28, height=26),
            note("The signs depend on the place of the outlier and on the random signs."),
            gap=12,
        ),
    ),
    Drawing(
        TRAINING,
        "who_makes_what",
        "Three ranks with whole matrices. Balanced by the number of matrices, one rank has both large ones and ends last; balanced by FLOPs, all end together, in half the time.",
        column(
            titled(
                "by number",
                timeline(
                    [
                        ("rank 0", [(0, 3, "large", "write"), (3, 3, "large", "write")]),
                        ("rank 1", [(0, 1, "s", "read"), (1, 1, "s", "read")]),
                        ("rank 2", [(0, 1, "s", "read")]),
                    ],
                    width=400,
                    across="",
                    end=6.5,
                ),
            ),
            titled(
                "by FLOPs",
                timeline(
                    [
                        ("rank 0", [(0, 3, "large", "write")]),
                        ("rank 1", [(0, 3, "large", "write")]),
                        ("rank 2", [(k, 1, "s", "read") for k in range(3)]),
                    ],
                    width=400,
                    end=6.5,
                ),
            ),
            gap=14,
        ),
    ),
    Drawing(
        TRAINING,
        "budgets",
        "The loss over the number of parameters for three budgets of FLOPs. Each curve has a lowest point: left of it the model is too small, right of it too few tokens are left. A larger budget lowers the curve and moves its lowest point to the right.",
        curve(
            [
                (name, [(x / 50, low + 2.2 * (x / 50 - best) ** 2) for x in range(*over)], "read")
                for name, best, low, over in (
                    ("small budget", 0.3, 0.6, (3, 34)),
                    ("10 times", 0.48, 0.38, (10, 42)),
                    ("100 times", 0.66, 0.2, (18, 49)),
                )
            ],
            "parameters (logarithmic)",
            "loss",
            width=380,
            height=160,
            points=[(0.3, 0.6, ""), (0.48, 0.38, ""), (0.66, 0.2, "")],
        ),
    ),
)
