"""Labs 15 to 18: collectives, sharding, model parallelism, clusters."""

from __future__ import annotations

from gpulab.plot.drawing import (
    Edge,
    bars,
    box,
    cells,
    column,
    flow,
    graph,
    levels,
    matrix,
    note,
    row,
    stack,
    strip,
    timeline,
    titled,
    under,
)  # fmt: skip

from .drawing import Drawing

DATA, SHARDED, MODEL = "15_collectives_and_data_parallel", "16_sharded_training", "17_model_parallelism"
CLUSTERS = "18_clusters_and_reliability"

_RING = {
    str(r): ((0.0, 1.0, 1.0, 0.0)[r], (0.0, 0.0, 1.0, 1.0)[r], box(f"rank {r}", "read")) for r in range(4)
}

DRAWINGS = (
    Drawing(
        DATA,
        "ranks",
        "Four ranks are four processes that run the same program. They share no memory: what one has, another gets only by a message.",
        row(*[box(f"rank {r}", "read", sub="own memory") for r in range(4)], gap=26),
    ),
    Drawing(
        DATA,
        "one_to_all",
        "One to all among eight ranks: in round 1 rank 0 sends to 4, in round 2 both send on to 2 and 6, in round 3 four send. After three rounds all eight have it.",
        levels(
            ["gooooooo", "gooogooo", "gogogogo", "gggggggg"],
            [[(0, 4)], [(0, 2), (4, 6)], [(0, 1), (2, 3), (4, 5), (6, 7)]],
            [[str(i) for i in range(8)]] * 4,
            left=["", "round 1", "round 2", "round 3"],
        ),
    ),
    Drawing(
        DATA,
        "ring",
        "A ring of four ranks: each sends a quarter of its data to the next one in every step. After three steps each quarter is summed somewhere, and after three more everybody has all sums.",
        row(
            graph(_RING, [Edge("0", "1"), Edge("1", "2"), Edge("2", "3"), Edge("3", "0")], step=(150, 84)),
            titled("step 1 of rank 0", cells(["wrrr"], [["send", "", "", "add"]], size=44, height=30)),
            gap=40,
        ),
    ),
    Drawing(
        DATA,
        "backends",
        "The same call, carried by different libraries: NCCL between GPUs over NVLink and InfiniBand, Gloo between CPUs over TCP, MPI where the cluster has one.",
        graph(
            {
                "call": (0, 1, box("all_reduce(x)")),
                "n": (1.9, 0.1, box("NCCL", "good", sub="GPUs")),
                "g": (1.9, 1, box("Gloo", "read", sub="CPUs, TCP")),
                "m": (1.9, 1.9, box("MPI", "write", sub="the cluster's own")),
            },
            [Edge("call", "n"), Edge("call", "g"), Edge("call", "m")],
            step=(140, 66),
        ),
    ),
    Drawing(
        DATA,
        "data_parallel",
        "Data parallel training: every rank has the whole model and a part of the batch. Gradients are averaged over all ranks, so every rank makes the same step.",
        flow(
            column(*[box(f"rank {r}: part {r} of the batch", "read", width=210) for r in range(3)], gap=6),
            box("average of\nall gradients", "write"),
            box("the same step\non every rank", "good"),
            length=30,
        ),
    ),
    Drawing(
        DATA,
        "sampler",
        "Who gets which sample: the order is shuffled by the epoch's seed, and rank r takes every third place, starting at place r. Places that are missing at the end are filled from the start.",
        cells(
            ["rwgrwgrwgrwg"],
            [["7", "2", "9", "0", "5", "3", "8", "1", "6", "4", "7", "2"]],
            size=36,
            height=30,
            above=["r0", "r1", "r2"] * 4,
        ),
    ),
    Drawing(
        DATA,
        "buckets",
        "Buckets: the backward pass makes gradients from the last layer to the first. As soon as a bucket is full its all-reduce starts, while the backward pass goes on.",
        timeline(
            [
                (
                    "backward",
                    [
                        (0, 2, "layers 8–6", "read"),
                        (2, 2, "layers 5–3", "read"),
                        (4, 2, "layers 2–0", "read"),
                    ],
                ),
                (
                    "network",
                    [
                        (2, 1.7, "bucket 0", "write"),
                        (4, 1.7, "bucket 1", "write"),
                        (6, 1.7, "bucket 2", "write"),
                    ],
                ),
            ],
        ),
    ),
    Drawing(
        DATA,
        "filled",
        "Filling buckets: four gradients of 4, 3, 2 and 5 kB in reverse order, with a capacity of 8 kB. The first two share a bucket. The third would make it 9 kB, so it starts a new one.",
        flow(
            under(strip(["4", "3", "2", "5"], "rrww", 34), "gradients in reverse order, kB", 230),
            column(
                under(strip(["4", "3"], "rr", 34), "bucket 0: 4 + 3 = 7 of 8 kB", 230),
                under(strip(["2", "5"], "ww", 34), "bucket 1: 2 + 5 = 7 of 8 kB", 230),
                gap=12,
            ),
        ),
    ),
    Drawing(
        DATA,
        "rendezvous",
        "How ranks start: a launcher starts the processes and gives each a rank and an address. All meet at that address, and from then on they know each other.",
        flow(
            box("torchrun", sub="starts 4"),
            column(*[box(f"RANK={r}", "read", width=96) for r in range(4)], gap=4),
            box("MASTER_ADDR", "write", sub="all meet here"),
            box("a group", "good"),
            length=28,
        ),
    ),
    Drawing(
        SHARDED,
        "zero",
        "What four ranks hold: weights, gradients and optimizer state on every rank; with ZeRO-1 a quarter of the optimizer state; with ZeRO-2 a quarter of the gradients too; with ZeRO-3 a quarter of everything.",
        bars(
            [
                ("data parallel", 16, "2 + 2 + 12 = 16 B", "bad"),
                ("ZeRO-1", 7, "2 + 2 + 3 = 7 B", "wait"),
                ("ZeRO-2", 5.5, "2 + 0.5 + 3 = 5.5 B", "read"),
                ("ZeRO-3", 4, "16 ÷ 4 = 4 B", "good"),
            ],
            width=230,
        ),
    ),
    Drawing(
        SHARDED,
        "gather_layer",
        "ZeRO-3, a layer when it is needed: before a layer runs, its parts are gathered from all ranks; after it has run, a rank drops all parts except its own. The next layer is gathered while this one runs.",
        timeline(
            [
                (
                    "gather",
                    [
                        (0, 1.5, "layer 0", "wait"),
                        (1.5, 1.5, "layer 1", "wait"),
                        (3.5, 1.5, "layer 2", "wait"),
                    ],
                ),
                (
                    "run",
                    [(1.5, 2, "layer 0", "read"), (3.5, 2, "layer 1", "read"), (5.5, 2, "layer 2", "read")],
                ),
            ],
        ),
    ),
    Drawing(
        SHARDED,
        "dtensor",
        "FSDP2 shards each parameter by rows: every rank has some rows of every matrix, and the parameter still knows its whole shape.",
        row(
            under(
                cells(["rrrrrr", "rrrrrr", "wwwwww", "wwwwww", "gggggg", "gggggg"], size=20),
                "a parameter of (6, 6), Shard(0) over 3 ranks",
                200,
            ),
            column(
                *[
                    row(note(f"rank {r}", 60), cells([c * 6] * 2, size=14), gap=6)
                    for r, c in enumerate("rwg")
                ],
                gap=8,
            ),
            gap=50,
        ),
    ),
    Drawing(
        SHARDED,
        "product_of_sizes",
        "16 GPUs as a box: 2 in tensor parallel, 2 in the pipeline, and what is left, 16 ÷ (2 · 2) = 4, in data parallel. The global batch is micro-batch × accumulation × 4.",
        cells(
            ["rrrr", "rrrr", "wwww", "wwww"],
            [["t0 p0"] * 4, ["t1 p0"] * 4, ["t0 p1"] * 4, ["t1 p1"] * 4],
            size=86,
            height=28,
            above=["data 0", "data 1", "data 2", "data 3"],
        ),
    ),
    Drawing(
        MODEL,
        "capacity",
        "Experts with a capacity: each token is sent to the rank of its expert. The buffer of each expert has room for two tokens, so the third token for expert A is left out.",
        flow(
            under(strip(["A", "B", "A", "A"], "rwrr", 34), "tokens and their experts"),
            column(
                under(strip(["1", "3"], "rr", 34), "expert A: full, token 4 is left out", 230),
                under(strip(["2", ""], "wo", 34), "expert B: room for one more", 230),
                gap=12,
            ),
        ),
    ),
    Drawing(
        MODEL,
        "column_then_row",
        "Two ranks share an MLP. A is cut by columns, so each rank has half of the hidden values; B is cut by rows, so each rank has a part of every sum. One all-reduce adds the parts.",
        row(
            matrix(
                "A, by columns",
                4,
                8,
                marked={(i, j): "r" if j < 4 else "w" for i in range(4) for j in range(8)},
                size=17,
            ),
            note("→", 16, "", 18),
            matrix(
                "B, by rows",
                8,
                4,
                marked={(i, j): "r" if i < 4 else "w" for i in range(8) for j in range(4)},
                size=17,
            ),
            note("→", 16, "", 18),
            box("all-reduce", "good"),
            gap=16,
        ),
    ),
    Drawing(
        MODEL,
        "vocabulary",
        "A vocabulary in pieces: each of two ranks has half of the rows of the table. A word is found by the rank that has it, the other one adds zero, and the sum over ranks is the embedding.",
        row(
            matrix(
                "table",
                6,
                3,
                marked={(i, j): "r" if i < 3 else "w" for i in range(6) for j in range(3)},
                size=20,
            ),
            column(
                row(note("rank 0: words 0–2", 150), strip(["row 1"], "r", 90)),
                row(note("rank 1: words 3–5", 150), strip(["0"], "w", 90)),
                gap=8,
            ),
            note("+ →", 34, "", 16),
            strip(["row 1"], "g", 80),
            gap=18,
        ),
    ),
    Drawing(
        MODEL,
        "sequence",
        "Sequence parallelism: between the tensor-parallel parts each rank keeps the activations of some tokens only. A gather puts the tokens together before a product, and a reduce-scatter takes them apart after it.",
        flow(
            box("norm", "read", sub="own tokens"),
            box("A, B", "write", sub="all tokens, own columns"),
            box("dropout", "read", sub="own tokens"),
            labels=["all-gather", "reduce-scatter"],
            length=96,
        ),
    ),
    Drawing(
        CLUSTERS,
        "fat_tree",
        "Hosts, leaf switches and spine switches. If a leaf has as many links up as down, any half of the hosts can send to the other half at full speed. With half of the links up the network is oversubscribed 2 : 1.",
        levels(
            ["gg", "wwww", "rrrrrrrr"],
            [[(i, j) for i in range(2) for j in range(4)], [(i // 2, i) for i in range(8)]],
            left=["spines", "leaves", "hosts"],
            depth=40,
        ),
    ),
    Drawing(
        CLUSTERS,
        "in_levels",
        "All-reduce in levels: within each node every GPU sums a part, the parts are summed between nodes, and each node shares the result among its GPUs. Only the middle step crosses the network.",
        flow(
            box("in the node", "read", sub="reduce-scatter"),
            box("between nodes", "bad", sub="all-reduce"),
            box("in the node", "read", sub="all-gather"),
            labels=["NVLink → NIC", "NIC → NVLink"],
            length=90,
        ),
    ),
    Drawing(
        CLUSTERS,
        "how_many",
        "How many GPUs? Two questions give two numbers, and the larger one counts: how many until everything fits, and how many until it is done in time.",
        graph(
            {
                "m": (0, 0, box("bytes of everything", "read", sub="÷ memory of a GPU")),
                "t": (0, 1, box("operations", "write", sub="÷ (achieved FLOP/s × time)")),
                "max": (1.9, 0.5, box("the larger\nnumber", "good")),
            },
            [Edge("m", "max"), Edge("t", "max")],
            step=(180, 74),
        ),
    ),
    Drawing(
        CLUSTERS,
        "switch_planes",
        "A board with eight GPUs: each GPU has links to every NVSwitch chip, so any two of them talk at full speed. A network card for each GPU leads out of the node.",
        levels(
            ["ssss", "rrrrrrrr", "wwwwwwww"],
            [[(i, j) for i in range(4) for j in range(8)], [(i, i) for i in range(8)]],
            left=["switches", "GPUs", "NICs"],
            depth=44,
        ),
    ),
    Drawing(
        CLUSTERS,
        "atomic_checkpoint",
        "A checkpoint is written under another name, flushed to disk, and renamed. A reader finds the old one or the new one, but never half of one.",
        flow(
            box("write", sub="step_200.tmp"),
            box("flush", "wait", sub="fsync"),
            box("rename", "write", sub="in one move"),
            box("step_200", "good"),
            length=28,
        ),
    ),
    Drawing(
        CLUSTERS,
        "resume",
        "A trainer that survives: checkpoints at steps 0, 100 and 200. It dies at step 260 and continues from 200, so 60 steps are computed again.",
        timeline(
            [
                (
                    "run 1",
                    [(0, 100, "to 100", "read"), (100, 100, "to 200", "read"), (200, 60, "lost", "bad")],
                ),
                ("run 2", [(270, 60, "again", "wait"), (330, 100, "goes on", "good")]),
            ],
        ),
    ),
    Drawing(
        CLUSTERS,
        "resharded",
        "A checkpoint of four ranks is read by three. The file says which elements each part has, so every new rank reads what it needs from one or two parts.",
        levels(
            ["rrrr", "www"],
            [[(0, 0), (1, 0), (1, 1), (2, 1), (2, 2), (3, 2)]],
            [["0–2", "3–5", "6–8", "9–11"], ["0–3", "4–7", "8–11"]],
            left=["saved by 4", "read by 3"],
            width=400,
            depth=44,
        ),
    ),
    Drawing(
        CLUSTERS,
        "memory_of_serving",
        "What a card holds when it serves: the weights once, and a cache for every user. What is left after the weights, divided by the cache of a user, is the number of users.",
        stack(
            [
                ("weights", "read", "once"),
                ("cache of user 1", "write", "tokens × bytes per token"),
                ("cache of user 2", "write", ""),
                ("free", "off", "the next user?"),
            ],
            460,
        ),
    ),
    Drawing(
        SHARDED,
        "together",
        "Megatron and DeepSpeed together: inside a node the tensors are cut, between some nodes the layers, and over what is left DeepSpeed shards the optimizer's state.",
        flow(
            box("tensor parallel", "read", sub="Megatron, in a node"),
            box("pipeline", "write", sub="Megatron, some nodes"),
            box("ZeRO-1", "good", sub="DeepSpeed, the rest"),
            length=26,
        ),
    ),
    Drawing(
        CLUSTERS,
        "claimed_sizes",
        "GPUs of clusters that companies have described: 16,000 in Meta's RSC, 12,288 in ByteDance's, 24,000 in Meta's cluster for Llama 3, of which a run used up to 16,384.",
        bars(
            [
                ("Meta's RSC, 2022", 16000, "16,000 A100", "read"),
                ("ByteDance, 2024", 12288, "12,288", "read"),
                ("Meta, 2024", 24000, "24,000 H100", "read"),
                ("of these for Llama 3", 16384, "up to 16,384", "write"),
            ],
            width=220,
        ),
    ),
)
