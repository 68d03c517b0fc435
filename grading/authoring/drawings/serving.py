"""Labs 19 to 22: inference, serving, edge, projects."""

from __future__ import annotations

from gpulab.plot.drawing import (
    Edge,
    bars,
    box,
    column,
    flow,
    graph,
    label,
    note,
    row,
    strip,
    timeline,
    titled,
    wires,
)  # fmt: skip

from .drawing import Drawing

INFERENCE, SERVING, EDGE, PROJECTS = "19_llm_inference", "20_serving", "21_edge", "22_capstones"

DRAWINGS = (
    Drawing(
        INFERENCE,
        "two_phases",
        "An answer has two phases. Prefill reads the whole prompt in one pass and is bound by arithmetic. Decoding makes a token in each pass, reads all weights for it, and is bound by memory.",
        timeline(
            [
                (
                    "one request",
                    [(0, 2, "prefill", "write"), *[(2 + 0.7 * k, 0.65, "tok", "read") for k in range(8)]],
                )
            ],
            width=420,
        ),
    ),
    Drawing(
        INFERENCE,
        "cache",
        "With a cache, a new token computes its own key and value only, writes them after those of earlier tokens, and its query looks at all of them.",
        column(
            row(label("keys", 70), strip(["k0", "k1", "k2", "k3", "k4"], "rrrrw", 52)),
            row(label("values", 70), strip(["v0", "v1", "v2", "v3", "v4"], "rrrrw", 52)),
            row(label("query", 70), strip(["", "", "", "", "q4"], "oooog", 52)),
            note("only the last column is computed in this step"),
            gap=8,
        ),
    ),
    Drawing(
        INFERENCE,
        "cache_bytes",
        "The bytes of a cache: 2, for keys and values, × layers × key heads × head size × bytes a number, for every token of every user.",
        flow(
            box("2", sub="K and V"),
            box("layers"),
            box("heads"),
            box("head size"),
            box("bytes"),
            box("tokens", "write"),
            labels=["×"] * 5,
            length=18,
        ),
    ),
    Drawing(
        INFERENCE,
        "page_table",
        "A kernel behind a table: the positions of a sequence are cut into blocks of 16, and a table says where in the pool each block lies. Neighbouring positions may lie far apart.",
        wires(
            3,
            [[4], [1], [6]],
            "oroororo",
            width=460,
            depth=50,
            above=["0–15", "16–31", "32–47"],
            below=[str(i) for i in range(8)],
            upper_cells="rrr",
        ),
    ),
    Drawing(
        INFERENCE,
        "generate",
        "Generating: the model gives a probability for each word, one is chosen and appended, and the model is asked again, until the end token comes.",
        flow(
            box("text so far"),
            box("model", "read"),
            box("probabilities"),
            box("choose", "write"),
            box("one more token", "good"),
            length=18,
        ),
    ),
    Drawing(
        INFERENCE,
        "guess_ahead",
        "A draft guesses four tokens one after the other. The target checks all four in one pass, keeps those up to the first that it would not have chosen, and puts its own token there.",
        column(
            row(label("draft guesses", 110), strip(["the", "cat", "sat", "in"], "rrrr", 62)),
            row(label("target checks", 110), strip(["✔", "✔", "✔", "✘"], "gggx", 62)),
            row(label("kept", 110), strip(["the", "cat", "sat", "on"], "gggw", 62)),
            note("one pass of the target, four tokens"),
            gap=8,
        ),
    ),
    Drawing(
        INFERENCE,
        "continuous",
        "Continuous batching: when a sequence ends, the next request takes its place at once. In a fixed batch, the place stays empty until the longest sequence has ended.",
        column(
            titled(
                "fixed batch",
                timeline(
                    [
                        ("place 0", [(0, 2, "A", "read"), (2, 4, "empty", "off"), (6, 3, "D", "good")]),
                        ("place 1", [(0, 6, "B", "read"), (6, 2, "E", "good")]),
                    ],
                    width=400,
                    across="",
                ),
            ),
            titled(
                "continuous",
                timeline(
                    [
                        ("place 0", [(0, 2, "A", "read"), (2, 3, "D", "good"), (5, 3, "F", "write")]),
                        ("place 1", [(0, 6, "B", "read"), (6, 2, "E", "good")]),
                    ],
                    width=400,
                    end=9,
                ),
            ),
            gap=4,
        ),
    ),
    Drawing(
        INFERENCE,
        "measures",
        "What a user notices: the time to the first token, then the time from token to token. The whole answer takes both.",
        timeline(
            [
                (
                    "request",
                    [
                        (0, 3, "time to first token", "wait"),
                        *[(3 + 0.9 * k, 0.85, "", "read") for k in range(6)],
                    ],
                )
            ],
            across="time between tokens",
        ),
    ),
    Drawing(
        INFERENCE,
        "streamed_layers",
        "Weights that do not fit are fetched layer by layer. While layer 1 computes, layer 2 travels; the link decides how long a step takes.",
        timeline(
            [
                ("link", [(k * 2.0, 1.9, f"layer {k}", "wait") for k in range(4)]),
                ("GPU", [(k * 2.0 + 2, 0.6, str(k), "read") for k in range(4)]),
            ]
        ),
    ),
    Drawing(
        SERVING,
        "service",
        "Requests wait in a queue. In each step the engine's policy decides who is admitted, who computes, and who has to give back its blocks.",
        flow(
            box("requests"),
            box("queue", "wait"),
            box("policy", "write", sub="admit, run, preempt"),
            box("engine", "read", sub="a step"),
            box("tokens", "good"),
            length=18,
        ),
    ),
    Drawing(
        SERVING,
        "life",
        "The life of a request. TTFT is the time from when it was due until its first token. TPOT is the mean time between its later tokens.",
        timeline(
            [
                (
                    "request",
                    [
                        (0, 1.4, "queue", "wait"),
                        (1.4, 2, "prefill", "write"),
                        *[(3.4 + 0.9 * k, 0.85, "decode", "read") for k in range(4)],
                    ],
                ),
                (
                    "client sees",
                    [(0, 3.35, "TTFT", "good"), *[(3.4 + 0.9 * k, 0.85, "TPOT", "good") for k in range(4)]],
                ),
            ],
            width=430,
        ),
    ),
    Drawing(
        SERVING,
        "scheduler",
        "The scheduler takes a pod that waits. A filter removes the nodes that cannot run it, a score ranks those that remain, and the pod is assigned to the best node.",
        flow(
            box("pod", "wait", sub="4 GPUs"),
            box("filter", "write", sub="resources, labels,\ntaints"),
            box("score", "read", sub="rank the rest"),
            box("best node", "good", sub="runs the pod"),
            length=20,
        ),
    ),
    Drawing(
        SERVING,
        "servers",
        "Four layers. A router such as Dynamo or Ray Serve sends each request to one of several servers. A server speaks HTTP in OpenAI's format. In it, an engine such as vLLM or SGLang batches and runs the model on a GPU. A package is a container with server, engine and model.",
        column(
            graph(
                {
                    "users": (0, 1, box("users")),
                    "router": (1.15, 1, box("router", "write", sub="Dynamo, Ray Serve")),
                    "a": (2.5, 0.4, box("server", "read", sub="HTTP")),
                    "b": (2.5, 1.6, box("server", "read", sub="HTTP")),
                    "x": (3.5, 0.4, box("engine", "good", sub="runs the model")),
                    "y": (3.5, 1.6, box("engine", "good", sub="runs the model")),
                },
                [
                    Edge("users", "router"),
                    Edge("router", "a"),
                    Edge("router", "b"),
                    Edge("a", "x"),
                    Edge("b", "y"),
                ],
                step=(128, 62),
            ),
            note("an engine is, for example, vLLM or SGLang"),
            note("a package is a container with server, engine and model"),
            gap=8,
        ),
    ),
    Drawing(
        SERVING,
        "replicas",
        "A manifest states how many replicas there should be. The cluster starts that many pods, each with its own GPU, and replaces a pod that dies.",
        graph(
            {
                "m": (0, 1, box("manifest", "write", sub="replicas: 3")),
                "a": (1.8, 0.1, box("pod", "good", sub="1 GPU")),
                "b": (1.8, 1, box("pod", "good", sub="1 GPU")),
                "c": (1.8, 1.9, box("pod", "bad", sub="died: replaced")),
            },
            [Edge("m", "a"), Edge("m", "b"), Edge("m", "c", dashed=True)],
            step=(140, 68),
        ),
    ),
    Drawing(
        EDGE,
        "tops",
        "What TOPS count: a multiply-add is two operations. 1,000 multiply-adds a cycle at 1 GHz are 2 · 10¹² operations a second: 2 TOPS, if all units are busy all the time.",
        flow(
            box("units", sub="1,000"),
            box("× 2", "write", sub="multiply, add"),
            box("clock", sub="10⁹ a second"),
            box("2 TOPS", "good", sub="at the very most"),
            length=24,
        ),
    ),
    Drawing(
        EDGE,
        "interfaces",
        "One GPU, many interfaces: CUDA, OpenCL, Vulkan, Metal and WebGPU end in the same hardware. Which are there depends on the device.",
        graph(
            {
                "cuda": (0, 0, box("CUDA", "good")),
                "ocl": (1, 0, box("OpenCL")),
                "vk": (2, 0, box("Vulkan")),
                "mtl": (3, 0, box("Metal")),
                "web": (4, 0, box("WebGPU")),
                "drv": (2, 1, box("driver", "write", width=380)),
                "gpu": (2, 2, box("GPU", "read", width=380)),
            },
            [
                Edge("cuda", "drv"),
                Edge("ocl", "drv"),
                Edge("vk", "drv"),
                Edge("mtl", "drv"),
                Edge("web", "drv"),
                Edge("drv", "gpu"),
            ],
            step=(102, 62),
        ),
    ),
    Drawing(
        EDGE,
        "eight_gigabytes",
        "Eight billion weights: 16 GB at 16 bits, 8 GB at eight, 4.5 GB at four bits with scales. A device with 8 GB has room for the last one only, and for a cache.",
        bars(
            [
                ("16 bits", 16, "16 GB", "bad"),
                ("8 bits", 8, "8 GB, nothing left", "bad"),
                ("4 bits + scales", 4.5, "4.5 GB", "good"),
            ],
            width=220,
        ),
    ),
    Drawing(
        EDGE,
        "watts",
        "Watts are joules a second. A faster device at more watts may need fewer joules for an answer, because it is done sooner: energy is the area.",
        row(
            titled("30 W for 4 s: 120 J", strip([""], "r", 200, 36)),
            titled("60 W for 1.5 s: 90 J", strip([""], "g", 75, 72)),
            gap=50,
            align="bottom",
        ),
    ),
    Drawing(
        EDGE,
        "two_processors",
        "Two processors, one model: each change of sides sends the activations over the link and costs its latency. Few changes are better than the best processor for every layer.",
        column(
            row(
                label("many changes", 110),
                flow(box("CPU"), box("NPU", "read"), box("CPU"), box("NPU", "read"), length=30),
            ),
            row(
                label("one change", 110),
                flow(box("CPU", width=110), box("NPU", "read", width=190), length=30),
            ),
            gap=14,
        ),
    ),
    Drawing(
        EDGE,
        "pruned_packed",
        "Pruned and packed: units that matter little are taken out, and the rest is stored in four bits instead of 32. The two multiply: half of the units at an eighth of the bytes is a sixteenth.",
        bars(
            [
                ("float32", 16, "1", "bad"),
                ("half the units", 8, "1/2", "wait"),
                ("and 4 bits", 1, "1/16", "good"),
            ],
            width=280,
        ),
    ),
    Drawing(
        INFERENCE,
        "write_then_read",
        "The order in a step: compute the new token's key and value, write them into the cache after the others, and only then let the query look at all that is there, itself included.",
        flow(
            box("k, v, q", sub="of the new token"),
            box("write", "write", sub="after the others"),
            box("attend", "read", sub="to all, itself too"),
            box("output", "good"),
            length=26,
        ),
    ),
    Drawing(
        INFERENCE,
        "left_over",
        "A GPU of 80 GB with weights of 16 GB: what is left, less a reserve, is shared by the caches of all users.",
        strip(["weights 16", "caches of all users", "reserve 8"], "rwo", 180, 40),
    ),
    Drawing(
        INFERENCE,
        "layers_of_cache",
        "Every layer of the model has keys and values of its own: a cache is as many pairs of arrays as the model has layers, and all grow by one token in each step.",
        column(
            *[row(label(f"layer {k}", 60), strip(["K, V"] * 4 + ["new"], "rrrrw", 64)) for k in range(3)],
            gap=6,
        ),
    ),
    Drawing(
        PROJECTS,
        "grouped",
        "Grouped-query attention with 4 query heads and 2 key heads. Query heads 0 and 1 use key head 0, and query heads 2 and 3 use key head 1. The rows of a program are taken from all heads of a group, sorted by position.",
        column(
            row(label("query heads", 110), strip(["0", "1", "2", "3"], "rrgg", 60)),
            row(label("key heads", 110), strip(["0", "1"], "rg", 120)),
            row(
                label("rows of key head 0", 160),
                strip(["0 of 0", "0 of 1", "1 of 0", "1 of 1", "2 of 0"], "rrrrr", 70),
            ),
            note('"2 of 0" is position 2 of query head 0'),
            gap=8,
        ),
    ),
    Drawing(
        SERVING,
        "spares",
        "A service needs four replicas. With none to spare, one failure is enough to stop it. With two to spare, two may fail and four are still there.",
        column(
            row(
                label("no spare", 90),
                strip(["1", "2", "3", "4", "", ""], "gxgg  ", 48),
                note("3 of 4: down", 110),
            ),
            row(
                label("two spare", 90),
                strip(["1", "2", "3", "4", "5", "6"], "gxggxg", 48),
                note("4 of 6: up", 110),
            ),
            gap=10,
        ),
    ),
    Drawing(
        PROJECTS,
        "beyond_text",
        "Applications by what their GPUs wait for: images and video for arithmetic; proteins, weather and simulation for memory; robots for a deadline at batch 1.",
        row(
            titled("arithmetic", box("images, video", "write", sub="many steps,\nno causal mask")),
            titled("memory", box("proteins, weather,\nsimulation", "read", sub="pairs, gathers,\nstencils")),
            titled("a deadline", box("robots", "good", sub="batches of 1")),
            gap=24,
            align="top",
        ),
    ),
    Drawing(
        PROJECTS,
        "way_of_work",
        "How all labs work: count the bytes and operations, predict from them, measure, explain the difference, and change one thing.",
        flow(
            box("count", "read", sub="bytes, FLOPs"),
            box("predict", sub="a limit"),
            box("measure", "write", sub="or model"),
            box("explain", sub="the gap"),
            box("change", "good", sub="one thing"),
            length=24,
        ),
    ),
)
