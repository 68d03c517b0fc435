"""Labs 00 to 03."""

from __future__ import annotations

from gpulab.plot.drawing import (
    Edge,
    bars,
    box,
    cells,
    column,
    curve,
    flow,
    graph,
    label,
    lanes,
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

START, NETS, GPU, CUDA = "00_start_here", "01_neural_networks", "02_gpu_architecture", "03_cuda_with_numba"

_ROUND = column(
    flow(
        box("predict", sub="a number"), box("do", "write", sub="a puzzle cell"), box("check", "read", sub="what, where, why"),
        box("see", "good", sub="the run's picture"), length=26,
    ),
    note("a check that fails leads back to the puzzle, as often as you like"),
)  # fmt: skip
_STEP = {
    "h": (1, 4.2, box("h")),
    "norm1": (1, 3.4, box("norm")),
    "attention": (1, 2.6, box("attention", "read", sub="looks at other places")),
    "add1": (1, 1.8, box("+", "good")),
    "norm2": (1, 1.0, box("norm")),
    "mlp": (1, 0.2, box("MLP", "write", sub="each place on its own")),
    "add2": (1, -0.6, box("+", "good")),
}

DRAWINGS = (
    Drawing(
        START,
        "round",
        "The round of a lab: predict a number, do the puzzle, check it, see what the run did. A failed check leads back to the puzzle.",
        _ROUND,
    ),
    Drawing(
        START,
        "chunks_and_stripes",
        "Two ways to share 16 elements among 4 threads. In chunks, thread 0 takes elements 0 to 3, so in one step the four threads read elements that lie 4 apart. In stripes, the four threads read four neighbours in each step.",
        column(
            titled(
                "chunks: in step 0 the threads read 0, 4, 8, 12",
                wires(
                    4,
                    [[0], [4], [8], [12]],
                    "xoooxoooxoooxooo",
                    width=500,
                    depth=44,
                    above=["t 0", "t 1", "t 2", "t 3"],
                ),
            ),
            titled(
                "stripes: in step 0 the threads read 0, 1, 2, 3",
                wires(
                    4,
                    [[0], [1], [2], [3]],
                    "rrrroooooooooooo",
                    width=500,
                    depth=44,
                    above=["t 0", "t 1", "t 2", "t 3"],
                ),
            ),
            gap=22,
        ),
    ),
    Drawing(
        START,
        "clock",
        "A launch returns at once while the kernel still runs on the GPU. A clock that is stopped when the launch returns measures only the launch; one that is stopped after waiting for the GPU measures the kernel.",
        timeline(
            [
                ("CPU", [(0, 1.2, "launch", "plain"), (6, 1.2, "wait over", "plain")]),
                ("GPU", [(1, 5, "the kernel runs", "read")]),
                ("clock A", [(0, 1.2, "stops", "bad")]),
                ("clock B", [(0, 7.2, "waits for the GPU first", "good")]),
            ],
        ),
    ),
    Drawing(
        NETS,
        "model",
        "A model is a function with numbers in it. Data goes in, a prediction comes out, a loss compares it with what is right, and the slope of the loss changes the numbers.",
        graph(
            {
                "x": (0, 0, box("data")),
                "model": (1.1, 0, box("model", "read", sub="its weights")),
                "y": (2.3, 0, box("prediction")),
                "loss": (3.4, 0, box("loss", "bad")),
                "right": (3.4, 1, box("what is right")),
                "slope": (1.7, 1, box("slope", "write", sub="which way is down")),
            },
            [
                Edge("x", "model"),
                Edge("model", "y"),
                Edge("y", "loss"),
                Edge("right", "loss"),
                Edge("loss", "slope"),
                Edge("slope", "model"),
            ],
            step=(140, 86),
        ),
    ),
    Drawing(
        NETS,
        "neuron",
        "A neuron multiplies each of three inputs by a weight of its own, adds the three products and a bias, and bends the sum with a function.",
        graph(
            {
                "x0": (0, 0, box("x₀", "read")),
                "x1": (0, 1, box("x₁", "read")),
                "x2": (0, 2, box("x₂", "read")),
                "sum": (1.5, 1, box("Σ", "plain", sub="sum + bias")),
                "bend": (2.6, 1, box("bend", "write", sub="such as max(0, s)")),
                "y": (3.6, 1, box("y", "good")),
            },
            [
                Edge("x0", "sum", "× w₀"),
                Edge("x1", "sum", "× w₁"),
                Edge("x2", "sum", "× w₂"),
                Edge("sum", "bend"),
                Edge("bend", "y"),
            ],
            step=(130, 56),
        ),
    ),
    Drawing(
        NETS,
        "shapes",
        "Four shapes side by side: a number has no axis, a vector has one, a matrix has two, and a batch of matrices has three.",
        row(
            under(cells(["r"], size=26), "number, shape ()", 90),
            under(cells(["rrrr"], size=26), "vector, (4)", 90),
            under(cells(["rrrr"] * 3, size=26), "matrix, (3, 4)", 110),
            under(row(*[cells(["rrrr"] * 3, size=18)] * 2, gap=8), "tensor, (2, 3, 4)", 150),
            gap=30,
        ),
    ),
    Drawing(
        NETS,
        "descent",
        "The loss over one weight is a valley. A step goes against the slope: a small step comes closer to the lowest point, and one that is too large jumps over it to the other side.",
        curve(
            [("loss", [(i / 40, 0.15 + 2.6 * (i / 40 - 0.55) ** 2) for i in range(2, 40)], "read")],
            "one weight",
            "loss",
            width=380,
            height=150,
            points=[(0.1, 0.68, "here"), (0.28, 0.34, "a small step"), (0.93, 0.53, "too large")],
        ),
    ),
    Drawing(
        NETS,
        "shared_value",
        "A value that two others use gets a slope from each. A walk back along every use visits it twice; a walk that waits for both slopes visits it once.",
        graph(
            {
                "x": (0, 1, box("x", "read")),
                "a": (1.3, 0.3, box("a = 2x")),
                "b": (1.3, 1.7, box("b = x²")),
                "y": (2.6, 1, box("y = a · b", "good")),
            },
            [
                Edge("y", "a", "slope × b", "write"),
                Edge("y", "b", "slope × a", "write"),
                Edge("a", "x", "first slope", "write"),
                Edge("b", "x", "second slope", "write"),
            ],
            step=(180, 66),
        ),
    ),
    Drawing(
        NETS,
        "pieces",
        "A batch of eight examples is worked through in four pieces of two. Each piece adds its slopes to a sum that stays, and one step of the optimizer follows after the last piece.",
        flow(
            column(*[strip(["", ""], "rr", 26, 22)] * 4, gap=6),
            box("forward,\nbackward"),
            box("sum of\nslopes", "write"),
            box("one step", "good"),
            labels=["a piece", "add", "after the last"],
        ),
    ),
    Drawing(
        NETS,
        "block",
        "A block of a transformer from bottom to top: norm, attention, plus; norm, MLP, plus. Each plus adds what was there before the norm.",
        graph(
            _STEP,
            [
                Edge("h", "norm1"),
                Edge("norm1", "attention"),
                Edge("attention", "add1"),
                Edge("add1", "norm2"),
                Edge("norm2", "mlp"),
                Edge("mlp", "add2"),
                Edge("h", "add1", "as it was", bend=-290, dashed=True),
                Edge("add1", "add2", "as it was", bend=-290, dashed=True),
            ],
            step=(150, 66),
        ),
    ),
    Drawing(
        NETS,
        "shift_and_mask",
        "Left: the label of each token is the token after it, and the last place has none. Right: the causal mask of five tokens; each row may look at itself and at what comes before it.",
        row(
            titled(
                "labels are shifted",
                cells(
                    ["rrrrr", "wwwwx"],
                    [["the", "cat", "sat", "on", "it"], ["cat", "sat", "on", "it", "–"]],
                    size=42,
                    height=30,
                    left=["token", "label"],
                ),
            ),
            titled("who looks where", cells(["goooo", "ggooo", "gggoo", "ggggo", "ggggg"], size=22)),
            gap=46,
        ),
    ),
    Drawing(
        GPU,
        "two_answers",
        "A CPU core gives most of its room to caches and to guessing what comes next, so that one thread waits little. A GPU's SM gives it to lanes and registers, so that another warp runs while one waits.",
        row(
            titled(
                "a CPU core: wait less",
                stack(
                    [
                        ("prediction, reordering", "wait", ""),
                        ("caches", "write", "much"),
                        ("arithmetic", "read", "little"),
                    ],
                    250,
                ),
            ),
            titled(
                "an SM: do something else",
                stack(
                    [
                        ("schedulers", "wait", ""),
                        ("registers of 64 warps", "write", "much"),
                        ("arithmetic: 128 lanes", "read", "much"),
                    ],
                    270,
                ),
            ),
            gap=30,
        ),
    ),
    Drawing(
        GPU,
        "instruction",
        "An instruction of a warp: a scheduler picks a warp whose operands are ready, issues one instruction a cycle for its 32 lanes, and the lanes of a pipe carry it out.",
        flow(
            column(
                *[
                    box(f"warp {w}", tone, width=90)
                    for w, tone in enumerate(("wait", "read", "wait", "wait"))
                ],
                gap=5,
            ),
            box("scheduler", sub="picks one that is ready"),
            box("pipe", "write", sub="32 lanes"),
            box("registers", "good", sub="the result"),
        ),
    ),
    Drawing(
        GPU,
        "two_of_four",
        "Structured sparsity keeps two of every four weights. Half as many values are stored, and two bits for each give its position among the four.",
        flow(
            under(cells(["roorrroooorr"], size=26), "12 weights, 2 of 4 kept"),
            under(cells(["rrrrrr", "ssssss"], size=26), "6 values, and their positions"),
        ),
    ),
    Drawing(
        GPU,
        "little",
        "Little's law as a pipe: the bytes that are under way are the bandwidth, its width, times the latency, its length.",
        column(
            row(
                box("asked for", "read", height=60),
                box("bytes under way", "write", width=300, height=60),
                box("arrived", "good", height=60),
                gap=2,
            ),
            note("latency is how long the pipe is, bandwidth how wide; all of it must be full"),
            gap=10,
        ),
    ),
    Drawing(
        GPU,
        "queue",
        "Waiting time over utilisation: flat for a long time, then steep. At 50 % nobody waits long, and near 100 % the line grows without end.",
        curve(
            [("waiting", [(u / 100, min(0.045 / (1.02 - u / 100), 1)) for u in range(0, 98, 3)], "bad")],
            "utilisation, 0 to 100 %",
            "waiting time",
            width=380,
            height=150,
        ),
    ),
    Drawing(
        GPU,
        "weights_shared",
        "16 GB of weights, read once for every token at 2 TB/s: 8 ms on one GPU. Two GPUs read half each, in 4 ms, and four a quarter each, in 2 ms.",
        bars(
            [
                ("1 GPU", 8, "16 GB: 8 ms", "read"),
                ("2 GPUs", 4, "8 GB each: 4 ms", "read"),
                ("4 GPUs", 2, "4 GB each: 2 ms", "good"),
            ],
            width=280,
        ),
    ),
    Drawing(
        GPU,
        "other_names",
        "The same parts under two names: a streaming multiprocessor is AMD's compute unit, a warp of 32 is a wavefront of 64 or 32, shared memory is the local data share, and CUDA is HIP.",
        cells(
            ["rrrr", "wwww"],
            [["SM", "warp", "shared memory", "CUDA"], ["CU", "wavefront", "LDS", "HIP"]],
            size=118,
            height=34,
            left=["NVIDIA", "AMD"],
        ),
    ),
    Drawing(
        GPU,
        "pocket",
        "Three places for a GPU: a card with memory of its own behind PCIe, a laptop's chip that shares memory with the CPU, and a phone's with a few watts.",
        row(
            under(flow(box("CPU"), box("GPU", "read", sub="its own memory"), labels=["PCIe"]), "card"),
            under(
                column(
                    row(box("CPU"), box("GPU", "read"), gap=6), box("one memory", "write", width=110), gap=4
                ),
                "laptop",
            ),
            under(
                column(
                    row(box("CPU"), box("GPU", "read"), box("NPU", "good"), gap=6),
                    box("one memory, a few watts", "write", width=190),
                    gap=4,
                ),
                "phone",
            ),
            gap=20,
        ),
    ),
    Drawing(
        CUDA,
        "grid",
        "A grid of four blocks, a block of eight warps, and a warp of 32 lanes, each smaller one drawn out of the larger one.",
        flow(
            under(cells(["rooo"], [["0", "1", "2", "3"]], size=34), "grid: 4 blocks"),
            under(
                cells(["rooo", "oooo"], [["0", "1", "2", "3"], ["4", "5", "6", "7"]], size=30),
                "block: 8 warps",
            ),
            under(lanes(size=5, gap=1.2), "warp: 32 lanes"),
        ),
    ),
    Drawing(
        CUDA,
        "divergence",
        "A warp at a branch: first the lanes that take it run and the others wait, then the other way round. Both paths take their time although each lane needs one.",
        column(
            row(label("before", 70), lanes(size=11)),
            row(label("if", 70), lanes("10" * 16, size=11)),
            row(label("else", 70), lanes("01" * 16, size=11)),
            row(label("after", 70), lanes(size=11)),
            gap=10,
        ),
    ),
    Drawing(
        CUDA,
        "product",
        "An element of the product C is a row of A times a column of B: all neighbours in C's row read the same row of A.",
        row(
            matrix("A", 6, 6, marked={(2, j): "r" for j in range(6)}, size=20),
            note("×", 14, "", 18),
            matrix("B", 6, 6, marked={(i, 3): "r" for i in range(6)}, size=20),
            note("=", 14, "", 18),
            matrix("C", 6, 6, marked={(2, 3): "w"}, size=20),
            gap=16,
        ),
    ),
    Drawing(
        CUDA,
        "two_launches",
        "Cells of a rod are computed from their neighbours. Within one launch some threads would already read new values; between two launches all threads are done, so each step reads one array and writes the other.",
        flow(
            under(strip(["", "", "", "", ""], "rrrrr", 30), "old: read"),
            under(strip(["", "", "", "", ""], "wwwww", 30), "new: written"),
            under(strip(["", "", "", "", ""], "rrrrr", 30), "now read"),
            labels=["launch 1", "launch 2"],
        ),
    ),
    Drawing(
        CUDA,
        "tree",
        "A sum of eight numbers as a tree: four additions, then two, then one. There is a barrier between the levels, because each level reads what other threads wrote.",
        levels(
            ["rrrrrrrr", "wwww", "ww", "g"],
            [[(i, i // 2) for i in range(n)] for n in (8, 4, 2)],
            [list("31704162"), ["4", "7", "5", "8"], ["11", "13"], ["24"]],
        ),
    ),
    Drawing(
        CUDA,
        "copies",
        "A program's time: copy in, kernel, copy out. With one kernel the copies take most of it; with many kernels on the same data they are paid once.",
        timeline(
            [
                ("1 kernel", [(0, 3, "copy in", "wait"), (3, 0.8, "", "read"), (3.8, 3, "copy out", "wait")]),
                (
                    "5 kernels",
                    [
                        (0, 3, "copy in", "wait"),
                        *[(3 + 0.8 * k, 0.8, "", "read") for k in range(5)],
                        (7, 3, "copy out", "wait"),
                    ],
                ),
            ],
        ),
    ),
    Drawing(
        CUDA,
        "to_machine",
        "From a line of Python to the machine: numba types it, NVVM makes PTX, which the driver of the same or a newer GPU can compile, and ptxas makes SASS, the code of one architecture.",
        flow(
            box("Python", sub="c[i] = a[i] + b[i]"),
            box("PTX", "read", sub="for newer GPUs, too"),
            box("SASS", "write", sub="for one"),
            labels=["NVVM", "ptxas"],
            length=60,
        ),
    ),
    Drawing(
        CUDA,
        "warp_shapes",
        "A warp is 32 threads in the order of x first. In a block of (32, 8) a warp is one row; in a block of (8, 32) it is four rows of eight.",
        row(
            under(cells(["r" * 32, *["o" * 32] * 3], size=8, gap=1), "block (32, 8): a warp is one row"),
            under(
                cells([*["r" * 8] * 4, *["o" * 8] * 3], size=12, gap=1), "block (8, 32): four rows of 8", 150
            ),
            gap=40,
        ),
    ),
    Drawing(
        NETS,
        "composed",
        "The lines f and g, and what becomes of them: their sum and f of g are straight again, and only their product is curved.",
        curve(
            [
                ("f", [(0.02, 0.36), (0.55, 0.96)], "read"),
                ("g", [(0.02, 0.6), (0.98, 0.25)], "read"),
                ("f(g(x))", [(0.02, 0.95), (0.94, 0.08)], "good"),
                ("f · g", [(i / 50, 0.75 - 1.6 * (i / 50 - 0.55) ** 2) for i in range(1, 48)], "write"),
            ],
            "x",
            "value",
            width=380,
            height=150,
        ),
    ),
)
