"""Labs 07 to 11, 13 and 14: CUDA C++, CuPy, PyTorch, formats, Triton, small models."""

from __future__ import annotations

from gpulab.plot.drawing import (
    Edge,
    bits,
    box,
    cells,
    column,
    curve,
    flow,
    graph,
    label,
    matrix,
    note,
    row,
    strip,
    timeline,
    titled,
    under,
)  # fmt: skip

from .drawing import Drawing

CPP, TORCH, FORMATS, MIXED = (
    "07_cuda_cpp_and_cupy",
    "08_pytorch_performance",
    "09_number_formats",
    "10_mixed_precision",
)
TRITON, QUANT, SMALL = "11_triton_and_fusion", "13_quantization", "14_compression_and_finetuning"

DRAWINGS = (
    Drawing(
        CPP,
        "rows_in_memory",
        "An array of three rows and four columns is stored in memory row after row. The pointer knows only where it begins; element (1, 2) is at 1 · 4 + 2 = 6.",
        flow(
            under(
                cells(
                    ["oooo", "ooro", "oooo"],
                    [["0", "1", "2", "3"], ["4", "5", "6", "7"], ["8", "9", "10", "11"]],
                    size=32,
                ),
                "3 rows × 4 columns",
            ),
            under(strip([str(i) for i in range(12)], "oooooorooooo", 26), "in memory: row · 4 + column"),
        ),
    ),
    Drawing(
        CPP,
        "late_error",
        "A launch returns before the kernel has run. A kernel that fails is noticed only by a later call, so the error is reported at a line that is not to blame.",
        timeline(
            [
                (
                    "host",
                    [
                        (0, 1, "launch", "plain"),
                        (1, 1.4, "other work", "plain"),
                        (4.4, 1.8, "copy: error!", "bad"),
                    ],
                ),
                ("GPU", [(0.8, 2.2, "kernel", "read"), (3, 0.8, "fault", "bad")]),
            ],
        ),
    ),
    Drawing(
        CPP,
        "template",
        "One text with a type T in it becomes a kernel for each type that is asked for.",
        graph(
            {
                "text": (0, 1, box("template <class T>", sub="T s = a[i] + b[i];")),
                "float": (2, 0.1, box("float", "read")),
                "double": (2, 1, box("double", "read")),
                "half": (2, 1.9, box("half", "read")),
            },
            [Edge("text", "float"), Edge("text", "double"), Edge("text", "half")],
            step=(130, 48),
        ),
    ),
    Drawing(
        CPP,
        "wide_load",
        "A float4 load brings four floats with one instruction. The warp asks for 512 bytes at once, in 16 sectors, and issues a quarter of the instructions.",
        column(
            titled("float: 4 requests of 128 bytes", strip(["128 B"] * 4, "rrrr", 110)),
            titled("float4: 1 request of 512 bytes", strip(["512 B"], "g", 446)),
            gap=16,
        ),
    ),
    Drawing(
        CPP,
        "fat_binary",
        "A program with machine code for 8.0 and 9.0 and with PTX. An A100 and an H100 take the machine code. For a GPU that came later the driver compiles the PTX.",
        graph(
            {
                "80": (0, 0, box("sm_80", "read", sub="machine code")),
                "90": (0, 1, box("sm_90a", "read", sub="machine code")),
                "p": (0, 2, box("compute_80", "write", sub="PTX")),
                "a": (3, 0, box("A100, 8.0")),
                "h": (3, 1, box("H100, 9.0")),
                "b": (3, 2, box("a later GPU, 12.0")),
            },
            [Edge("80", "a", "as it is"), Edge("90", "h", "as it is"), Edge("p", "b", "compiled first")],
            step=(120, 62),
        ),
    ),
    Drawing(
        CPP,
        "column_order",
        "The numbers 1 to 6 in memory. Stored row by row they are a matrix of two rows and three columns. Read in columns the same memory is the transposed matrix.",
        flow(
            under(strip([str(i) for i in range(1, 7)], "rrrwww", 30), "in memory"),
            under(cells(["rrr", "www"], [["1", "2", "3"], ["4", "5", "6"]], size=32), "NumPy: row by row"),
            under(
                cells(["rw", "rw", "rw"], [["1", "4"], ["2", "5"], ["3", "6"]], size=32),
                "cuBLAS: columns, ld = 3",
            ),
            labels=["", "or"],
            length=40,
        ),
    ),
    Drawing(
        CPP,
        "shared_pointer",
        "A tensor of PyTorch and an array of CuPy look at the same memory: only the address is handed over, and nothing is copied.",
        graph(
            {
                "t": (0, 0, box("torch.Tensor")),
                "c": (2.6, 0, box("cupy.ndarray")),
                "m": (1.3, 1, box("one block of device memory", "read")),
            },
            [Edge("t", "m"), Edge("c", "m")],
            step=(130, 80),
        ),
    ),
    Drawing(
        CPP,
        "device_arrays",
        "NumPy's names work on two memories. A call on CuPy's arrays stays on the device; only asnumpy and asarray cross the bus.",
        flow(
            box("numpy", sub="host memory"),
            box("cupy", "read", sub="device memory"),
            labels=["asarray →"],
            length=110,
        ),
    ),
    Drawing(
        CPP,
        "elementwise",
        "Written with operators, z = (x − y)² is two kernels with an array between them. As one ElementwiseKernel it reads x and y once and writes z once.",
        column(
            row(
                label("operators", 90),
                flow(
                    box("x − y"), box("temporary", "bad"), box("square"), labels=["write", "read"], length=50
                ),
            ),
            row(label("one kernel", 90), flow(box("x, y", "read"), box("(x − y)²"), box("z", "write"))),
            gap=14,
        ),
    ),
    Drawing(
        CPP,
        "graph",
        "Without a graph each of five small kernels waits for its launch. A graph is launched once and its kernels follow one another at once.",
        timeline(
            [
                (
                    "launches",
                    [
                        (k * 1.5 + d, w, t, c)
                        for k in range(5)
                        for d, w, t, c in ((0, 1.1, "launch", "wait"), (1.1, 0.4, "", "read"))
                    ],
                ),
                (
                    "a graph",
                    [(0, 1.6, "launch", "wait"), *[(1.6 + 0.45 * k, 0.4, "", "read") for k in range(5)]],
                ),
            ],
        ),
    ),
    Drawing(
        CPP,
        "pool",
        "A pool keeps freed blocks. A new array takes a kept block that is large enough. The pool asks the device only when there is none.",
        flow(
            box("free", sub="array goes"),
            box("pool", "write", sub="block stays"),
            box("new array", "good", sub="takes it"),
            labels=["keep", "again"],
            length=60,
        ),
    ),
    Drawing(
        CPP,
        "convolution",
        "Three ways to compute a convolution: a sum at each position of the filter, one large product after the patches have been laid out as rows, and fewer products by Winograd's trick.",
        row(
            titled("direct", cells(["rrro", "rrro", "rrro", "oooo"], size=20)),
            titled("patches as rows", cells(["rrrrrrrrr", "sssssssss", "rrrrrrrrr", "sssssssss"], size=15)),
            titled("Winograd", note("6 products → 4 for two outputs", 120, "small", 13)),
            gap=34,
        ),
    ),
    Drawing(
        TORCH,
        "fake",
        "A fake tensor has shape, type and device but no numbers. Operators work out the shapes of their results, and code that asks for a number stops the trace.",
        flow(
            box("x", "read", sub="(64, 256) float16"),
            box("x @ w"),
            box("y", "read", sub="(64, 512) float16"),
            box("y.item()", "bad", sub="which number?"),
            length=26,
        ),
    ),
    Drawing(
        TORCH,
        "graph_break",
        "A print in the middle of a function breaks the graph in two: compiled, then Python, then compiled. Without the print one graph has all of it.",
        column(
            flow(box("graph 1", "read"), box("print", "bad", sub="Python"), box("graph 2", "read")),
            flow(box("one graph", "good", width=240)),
            gap=14,
        ),
    ),
    Drawing(
        TORCH,
        "guards",
        "A call looks for a version whose guards hold. Version 1 is for 8 rows only, version 2 for any number of rows from 2 on. If none fits, a new version is compiled.",
        graph(
            {
                "call": (0, 1, box("a call", sub="x: 11 rows")),
                "one": (2, 0, box("version 1", "bad", sub="rows = 8: no")),
                "two": (2, 1, box("version 2", "good", sub="rows ≥ 2: yes")),
                "new": (2, 2, box("compile version 3", sub="only if none fits")),
            },
            [Edge("call", "one"), Edge("call", "two"), Edge("call", "new")],
            step=(150, 58),
        ),
    ),
    Drawing(
        TORCH,
        "segments",
        "The allocator cuts a segment into blocks. A freed block between two that are in use can serve a smaller tensor, and two free neighbours become one.",
        column(
            titled("reserved: one segment", strip(["A", "free", "B", "free", "free"], "roroo", 90)),
            note("allocated: A and B. Reserved: everything, until the cache is emptied"),
            gap=8,
        ),
    ),
    Drawing(
        TORCH,
        "which_limit",
        "Which limit is it? First whether the GPU is idle between kernels: then it is the host. Else whether bytes or operations are near the peak: then it is memory or arithmetic. If neither is, it is latency.",
        graph(
            {
                "idle": (0, 0, box("gaps between kernels?")),
                "host": (2.2, -0.55, box("the host", "bad", sub="launches, data, Python")),
                "near": (0, 1.3, box("which is near its peak?")),
                "memory": (2.2, 0.55, box("memory: bytes", "read")),
                "math": (2.2, 1.3, box("arithmetic", "write")),
                "latency": (2.2, 2.05, box("neither: latency", "wait")),
            },
            [
                Edge("idle", "host", "yes"),
                Edge("idle", "near", "no"),
                Edge("near", "memory"),
                Edge("near", "math"),
                Edge("near", "latency"),
            ],
            step=(150, 62),
        ),
    ),
    Drawing(
        FORMATS,
        "ways_to_load",
        "Three ways to load one file of four-bit weights. A GPU with units for FP4 multiplies them as they are. An older one unpacks them in the kernel. A loader without such a kernel unpacks all to BF16, which takes 3.8 times the memory.",
        graph(
            {
                "file": (0, 1, box("MXFP4 file", "read", sub="4.25 bits a weight")),
                "units": (2.2, 0, box("units for FP4", "good", sub="4.25 bits in memory")),
                "kernel": (2.2, 1, box("unpacks in the kernel", "good", sub="4.25 bits in memory")),
                "all": (2.2, 2, box("unpacks when it loads", "bad", sub="16 bits in memory")),
            },
            [Edge("file", "units"), Edge("file", "kernel"), Edge("file", "all")],
            step=(150, 62),
        ),
    ),
    Drawing(
        FORMATS,
        "formats",
        "Formats to scale: float32 has 1 sign bit, 8 exponent bits and 23 fraction bits; float16 has 1, 5 and 10; bfloat16 has 1, 8 and 7; E4M3 has 1, 4 and 3; E2M1 has 1, 2 and 1.",
        column(
            *[
                row(
                    label(name, 76),
                    bits([("", 1, "bad"), ("", e, "read"), ("", m, "write")], 14, named=False),
                    align="middle",
                )
                for name, e, m in (
                    ("float32", 8, 23),
                    ("float16", 5, 10),
                    ("bfloat16", 8, 7),
                    ("E4M3", 4, 3),
                    ("E2M1", 2, 1),
                )
            ],
            note("sign, exponent (range), fraction (precision)"),
            gap=6,
            align="left",
        ),
    ),
    Drawing(
        FORMATS,
        "same_byte",
        "The same eight bits, 0100 1000, read in two formats: in E4M3 four bits are the exponent, in E5M2 five. The numbers differ.",
        row(
            titled(
                "E4M3: 4.0", bits([("sign", 1, "bad"), ("exponent", 4, "read"), ("fraction", 3, "write")], 26)
            ),
            titled(
                "E5M2: 8.0", bits([("sign", 1, "bad"), ("exponent", 5, "read"), ("fraction", 2, "write")], 26)
            ),
            gap=40,
        ),
    ),
    Drawing(
        MIXED,
        "policies",
        "PyTorch's autocast: linear runs in float16, softmax in float32. A Keras layer under mixed_float16: product and softmax both run in float16, unless the softmax is a layer of its own with dtype float32.",
        column(
            row(
                label("autocast", 110),
                flow(box("linear", "write", sub="float16"), box("softmax", "read", sub="float32")),
            ),
            row(
                label("one layer", 110),
                flow(box("product", "write", sub="float16"), box("softmax", "write", sub="float16")),
            ),
            row(
                label("two layers", 110),
                flow(box("product", "write", sub="float16"), box("softmax", "read", sub="dtype float32")),
            ),
            gap=14,
        ),
    ),
    Drawing(
        MIXED,
        "clipping",
        "Clipping: a gradient longer than the limit is shortened to the limit, and its direction stays.",
        flow(strip(["gradient, too long"], "x", 300), strip(["limit"], "g", 150), labels=["same direction"]),
    ),
    Drawing(
        MIXED,
        "autocast",
        "Autocast chooses for each operation: products in 16 bits, sums and exponentials in 32, and additions in the wider type of their inputs.",
        flow(
            box("matmul", "read", sub="16 bits"),
            box("softmax", "write", sub="32 bits"),
            box("matmul", "read", sub="16 bits"),
            box("loss", "write", sub="32 bits"),
            length=34,
        ),
    ),
    Drawing(
        MIXED,
        "delayed_scale",
        "Delayed scaling: the scale of this step comes from the largest values of the last steps, so the tensor is written in eight bits at once, without a first pass for its own maximum.",
        flow(
            under(strip(["3.1", "2.8", "3.4", "3.0"], "rrrr", 44), "amax of the last steps"),
            box("scale", "write", sub="448 ÷ 3.4"),
            box("this tensor", "good", sub="to FP8 in one pass"),
            length=30,
        ),
    ),
    Drawing(
        TRITON,
        "row_program",
        "Layer norm in Triton: a program has one row. It loads the row, takes its mean and variance, and writes the result; the weights are the same for all rows.",
        flow(
            under(cells(["oooooo", "rrrrrr", "oooooo", "oooooo"], size=22), "x: a program has a row"),
            box("mean,\nvariance"),
            under(cells(["oooooo", "wwwwww", "oooooo", "oooooo"], size=22), "y"),
        ),
    ),
    Drawing(
        TRITON,
        "counter_random",
        "A counter-based generator is a function of seed and index. Every element works out its own number, in any order, and the backward pass works it out again.",
        flow(
            box("seed, i"),
            box("Philox", "write"),
            box("random number", "good", sub="of element i"),
            labels=["no state"],
            length=56,
        ),
    ),
    Drawing(
        TRITON,
        "recompute",
        "Kept: the forward pass writes the mask and the backward pass reads it. Computed again: only the seed is kept, and the backward pass makes the mask again.",
        column(
            row(
                label("keep", 96),
                flow(
                    box("forward"),
                    box("mask in DRAM", "bad"),
                    box("backward"),
                    labels=["write", "read"],
                    length=50,
                ),
            ),
            row(
                label("compute again", 96),
                flow(box("forward"), box("a seed", "good"), box("backward"), length=50),
            ),
            gap=14,
        ),
    ),
    Drawing(
        TRITON,
        "kinds_of_fusion",
        "Two kinds of fusion. Vertical: what one operation writes, the next reads, and both become one kernel. Horizontal: two operations without a common value share a launch.",
        row(
            titled(
                "vertical",
                graph(
                    {"a": (0, 0, box("multiply")), "b": (0, 1, box("add")), "c": (0, 2, box("gelu"))},
                    [Edge("a", "b"), Edge("b", "c")],
                    step=(100, 58),
                ),
            ),
            titled(
                "horizontal",
                row(box("scale q", "read"), box("scale k", "read"), box("scale v", "read"), gap=6),
            ),
            gap=70,
        ),
    ),
    Drawing(
        QUANT,
        "who_shares",
        "Which numbers share a scale? One for the whole matrix, one for each row, or one for each group of a row. More scales, smaller errors, more bits.",
        row(
            under(cells(["rrrrrrrr"] * 4, size=15), "per tensor: 1 scale", 130),
            under(cells(["rrrrrrrr", "wwwwwwww", "gggggggg", "ssssssss"], size=15), "per row: 4", 130),
            under(cells(["rrrrwwww", "ggggssss", "wwwwrrrr", "ssssgggg"], size=15), "per group of 4: 8", 130),
            gap=36,
        ),
    ),
    Drawing(
        QUANT,
        "rounding",
        "Absmax quantisation: the largest value is mapped to 127, all others to the nearest step. One outlier makes the steps wide for all values.",
        column(
            titled("without an outlier", strip(["-0.9", "0.2", "0.5", "1.0"], "rrrr", 90)),
            titled("with one: steps 20 times as wide", strip(["-0.9", "0.2", "0.5", "20"], "rrrx", 90)),
            gap=14,
        ),
    ),
    Drawing(
        QUANT,
        "packed_file",
        "What a packed file holds for a group of 32 weights of four bits: 16 bytes of weights, two in each byte, and a scale of two bytes. Together 4.5 bits for each weight.",
        row(
            strip(["w0 w1", "w2 w3", "…", "w30 w31"], "rrrr", 80, 34),
            strip(["scale"], "w", 70, 34),
            note("18 B for 32 weights", 120, "small", 13),
            gap=8,
        ),
    ),
    Drawing(
        SMALL,
        "compressed",
        "A 2:4 kernel reads half of the weights and, for each of them, two bits that say where it was. With these it picks the two of every four inputs that it needs.",
        flow(
            under(cells(["rrrr"], [["w0", "w3", "w5", "w6"]], size=36), "kept weights"),
            under(cells(["ssss"], [["0", "3", "1", "2"]], size=36), "their places"),
            under(cells(["gxxgxggx"], size=26), "inputs picked"),
            length=30,
        ),
    ),
    Drawing(
        SMALL,
        "teacher",
        "Distillation: teacher and student see the same text. The student learns from the teacher's probabilities for all words, not only from the word that came.",
        graph(
            {
                "x": (0, 1, box("text")),
                "t": (1.3, 0.2, box("teacher", "write", sub="large, fixed")),
                "s": (1.3, 1.8, box("student", "read", sub="small, learns")),
                "l": (2.9, 1, box("loss", "bad", sub="how far apart?")),
            },
            [
                Edge("x", "t"),
                Edge("x", "s"),
                Edge("t", "l", "probabilities"),
                Edge("s", "l", "probabilities"),
            ],
            step=(140, 60),
        ),
    ),
    Drawing(
        SMALL,
        "lora",
        "LoRA: the weight W is frozen. Two thin matrices, B and A of rank r, are learnt and their product is added. For 4096 × 4096 and r = 8 that is 65,536 numbers instead of 16.8 million.",
        row(
            matrix("W, frozen", 8, 8, ".", size=15),
            note("+", 14, "", 18),
            matrix("B", 8, 2, "w", size=15),
            note("×", 14, "", 18),
            matrix("A", 2, 8, "w", size=15),
            gap=14,
        ),
    ),
    Drawing(
        SMALL,
        "sharded_base",
        "A sharded base with an adapter: the frozen weights are stored in four bits, a part on each rank, and are gathered layer by layer; the thin matrices are learnt in 16 bits, and only their gradients are exchanged.",
        flow(
            box("W, frozen", sub="4 bits, a part each"),
            box("a layer", "read", sub="gathered"),
            box("+ B·A", "write", sub="learnt, 16 bits"),
            box("gradients", "good", sub="of B and A only"),
            length=24,
        ),
    ),
    Drawing(
        SMALL,
        "many_adapters",
        "Many adapters, one model: requests of three customers are in one batch. All go through the same frozen weights, and each adds its own pair of thin matrices.",
        graph(
            {
                "a": (0, 0, box("request 1", "read")),
                "b": (0, 1, box("request 2", "write")),
                "c": (0, 2, box("request 3", "good")),
                "w": (1.5, 1, box("W", sub="one for all")),
                "la": (2.9, 0, box("+ B₁A₁", "read")),
                "lb": (2.9, 1, box("+ B₂A₂", "write")),
                "lc": (2.9, 2, box("+ B₃A₃", "good")),
            },
            [
                Edge("a", "w"),
                Edge("b", "w"),
                Edge("c", "w"),
                Edge("w", "la"),
                Edge("w", "lb"),
                Edge("w", "lc"),
            ],
            step=(130, 52),
        ),
    ),
    Drawing(
        TORCH,
        "tail",
        "Times of many requests: the median says what half of them take at most, and says nothing about the slow end, where the 99th percentile is.",
        curve(
            [
                (
                    "requests",
                    [(x / 40, 0.92 * (x / 9) * 2.718 ** (1 - x / 9) if x else 0) for x in range(41)],
                    "read",
                )
            ],
            "time of a request",
            "how many",
            width=380,
            height=130,
            points=[(0.378, 0.784, "median"), (0.93, 0.169, "99 %")],
        ),
    ),
    Drawing(
        MIXED,
        "bytes_of_a_parameter",
        "What a parameter takes with Adam. In float32: 4 bytes each of weight, gradient and two averages, 16 in all. In mixed precision: a weight and a gradient of 2 bytes, and the optimizer's 12.",
        column(
            row(label("float32", 70), strip(["w 4", "g 4", "m 4", "v 4"], "rwss", 90)),
            row(
                label("mixed", 70),
                cells(["rwrss"], [["w 2", "g 2", "master 4", "m 4", "v 4"]], size=71, height=30),
            ),
            note("both 16 bytes: what shrinks are the activations"),
            gap=8,
        ),
    ),
    Drawing(
        QUANT,
        "ternary",
        "Weights of −1, 0 and 1: a product becomes an addition, a subtraction or nothing. Three values are log₂ 3 = 1.58 bits of information.",
        flow(
            strip(["−1", "0", "1", "1"], "xogg", 44),
            strip(["− x₀", "", "+ x₂", "+ x₃"], "xogg", 52),
            labels=["no product"],
            length=80,
        ),
    ),
    Drawing(
        "08_pytorch_performance",
        "two_layouts",
        "Two channels of six pixels in memory. Contiguous, all pixels of channel 0 come first and then those of channel 1. Channels last, each pixel has its two channels next to each other.",
        column(
            row(label("contiguous", 110), strip(list("000000111111"), "rrrrrrwwwwww", 32, 26)),
            row(label("channels last", 110), strip(list("010101010101"), "rwrwrwrwrwrw", 32, 26)),
            note("one image in memory; the digit in a cell is its channel"),
            gap=8,
        ),
    ),
    Drawing(
        "08_pytorch_performance",
        "launch_returns",
        "The host launches in 5 µs and goes on, while the GPU works for 200 µs. A clock that is read when the launch returns measures the launch. One that is read after synchronize measures the call.",
        column(
            timeline(
                [
                    ("host", [(0, 5, "", "write"), (5, 200, "waits in synchronize", "wait")]),
                    ("GPU", [(5, 200, "the kernel", "read")]),
                ],
                width=440,
            ),
            note("without synchronize, the clock is read again behind the narrow bar"),
        ),
    ),
)
