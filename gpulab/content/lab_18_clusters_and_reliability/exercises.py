"""Lab 18: what its ten exercises ask. The first six are in part A, the others in part B.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| max_flow | max_flow(links, source, sink) | cuts, bisection | answers | – | – | 4 |
| switches | switches(hosts, ports) | radix, levels, equal cables | answers | – | – | 3 |
| all_reduce | all_reduce(nodes, per_node), a plan | levels spare slow links | steps, 4 × 4 | 30 | 12 | 5 |
| | | | chunks through a NIC, 4 × 4 | 30 | 6 | |
| spread | spread(flows, spines), a plan | full bisection collides | flows on a link/least | 3 | 1 | 4 |
| serve | serve(model, memory, users, context) | weights, cache, whole heads | answers | – | – | 3 |
| train | train(model, gpu, days, lost) | memory or time, whole nodes | answers | – | – | 3 |
| interval | interval(cost, restart, mtbf) | Young, Daly | % above the least, 24 h | 173 | 0 | 4 |
| | | | % above the least, often | 4 … 7 | 0 | |
| replay | replay(work, interval, cost, restart, failures) | what a failure costs | answers | – | – | 4 |
| save | save(step, there, shards, keep), a plan | atomic, durable | copies | keep + 2 | keep + 1 | 5 |
| | | | synchronisations | – | shards + 1 | |
| reshard | reshard(elements, old, new) | elastic: who reads what | answers | – | – | 3 |

Derivations:

**switches**: with k ports a leaf has k/2 hosts and k/2 cables up, and a spine has at most k leaves: k²/2
hosts in two levels. Every leaf has the same number of cables to each of the s spines, so s divides k/2, and
s ≥ leaves/2 because a spine has k ports. 8,192 hosts on switches of 128 ports: 128 leaves and 64 spines.
1,050 hosts on 64: 33 leaves; 17 spines have enough ports and do not divide 32, so there are 32. In three
levels a pod has k switches and k²/4 hosts, and behind each of its k/2 upper switches the pods share spines by
the same rule: k pods, 5k²/4 switches and k³/4 hosts when full.

**all_reduce**: p = N·G ranks, p chunks. A flat ring takes 2(p − 1) steps, and the rank at the end of a node
sends one chunk through its NIC in each. In levels: reduce-scatter inside a node G − 1 steps, all-reduce of
each GPU's share over its rail 2(N − 1) steps of one chunk, all-gather G − 1 steps. A node has to get what
the others add and to give what it adds: 2(N − 1)/N of the array, over G NICs 2(N − 1) chunks each. No plan
sends less. For N = G = 4: 30 and 30 against 12 and 6.

**spread**: with at most d flows from each leaf and to each leaf, some link carries at least ⌈d/s⌉ of them
over s spines, and that can be reached: a bipartite multigraph of degree d has an edge colouring
with d colours (D. König, 1916).

**interval**: failures at rate 1/M, work τ between checkpoints of C seconds, restart R: a stretch takes
M e^(R/M) (e^((τ + C)/M) − 1) on average (J. Daly, 2006). C = 60 s, M = 24 h, R = 0: τ = 600 s loses 10.4 % of
the work time (first order: C/τ + τ/2M = 10.3 %), √(2CM) = 3,220 s loses 3.8 % (3.7 %). Where M is 2 to 3 C,
√(2CM) loses 4 to 7 % more than the least.

**save**: names are journalled in order, so one synchronisation of the folder after the last rename or
deletion makes them all durable; each shard needs one of its own before the rename. While the new checkpoint
is written, `keep` old ones are there.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from gpulab.checks.builders import answered, prediction
from gpulab.checks.cases import of_kinds
from gpulab.checks.evidence import AnsweredCases
from gpulab.checks.spec import EVERY, Budget, Case, Exercise, Prediction, Sizes
from gpulab.simulator import hardware
from gpulab.subjects.distributed import topologies

LAB = "18"

DAY = 86_400.0


# ---------------------------------------------------------------- clusters


def flow_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(links, source, sink): links are [from, to, rate], one way, rates whole numbers."""
    return [_network(str(sizes["kind"]), generator) for _ in range(5)]


def _network(kind: str, generator: np.random.Generator) -> tuple[Any, ...]:
    def rate() -> int:
        return int(generator.integers(1, 20))

    ends = ("a", "b")
    if kind == "a chain":  # the rates back are others, and say nothing
        names = ["a", *(f"s{i}" for i in range(int(generator.integers(2, 6)))), "b"]
        links = [[x, y, rate()] for x, y in pairwise(names)] + [[y, x, rate()] for x, y in pairwise(names)]
    elif kind == "several cables":
        links = [["a", "s", rate()] for _ in range(3)] + [["s", "b", rate()] for _ in range(3)]
    elif kind == "cut off":
        links = [["a", "s", rate()], ["s", "t", rate()], ["b", "t", rate()], ["u", "b", rate()]]
    elif kind == "a way back":
        # The shortest way takes the link s → t, and the best plan does not: what it took must be sent back.
        links = []
        for i in range(4):
            s, t, u, v, w, x, r = *(f"{name}{i}" for name in "stuvwx"), rate()
            ways = (("a", s, t, "b"), ("a", u, v, t), (s, w, x, "b"))
            links += [[y, z, r] for way in ways for y, z in pairwise(way)]
    elif kind == "two halves":  # of the hosts of a torus; ways that wander are easily found in it
        torus = topologies.torus(2, int(generator.integers(3, 6)), rate())
        halves = list(torus.halves())
        half, others = halves[int(generator.integers(len(halves)))]
        ends = ("from", "to")
        links = _both_ways([list(link) for link in torus.links])
        links += [["from", host, 10**6] for host in half] + [[host, "to", 10**6] for host in others]
    else:  # leaves and spines, some of them broken
        leaves, spines = int(generator.integers(2, 5)), int(generator.integers(2, 4))
        cables = [[f"leaf {i}", f"spine {j}", rate()] for i in range(leaves) for j in range(spines)]
        cables = [cable for cable in cables if generator.random() < 0.8]
        cables += [["a", f"leaf {i}", rate()] for i in range(leaves - 1)]
        cables += [["b", f"leaf {leaves - 1}", 40], ["b", f"leaf {leaves - 2}", rate()]]
        links = _both_ways(cables)
    return [links[i] for i in generator.permutation(len(links))], *ends


def _both_ways(cables: list[list[Any]]) -> list[list[Any]]:
    return [link for a, b, rate in cables for link in ([a, b, rate], [b, a, rate])]


def radix_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(hosts, ports of a switch, which is even)."""

    def between(low: int, high: int) -> int:
        return int(generator.integers(low, high + 1))

    asked = []
    for ports in (4, 20, 40, 64, 96, 128, 512):
        half = ports // 2
        match sizes["kind"]:
            case "full":  # of one, two or three levels
                asked += [(ports, ports), (ports * half, ports), (ports * half * half, ports)]
            case "one switch":
                asked.append((between(1, ports), ports))
            case "two levels":
                asked.append((between(ports + 1, ports * half), ports))
            case "uneven spines":  # half of the leaves, rounded up, does not divide the cables of a leaf
                spines = [s for s in range(2, half) if half % s]
                if spines:
                    leaves = 2 * spines[between(0, len(spines) - 1)]
                    asked.append((leaves * half - between(0, half - 1), ports))
            case "three levels":
                asked.append((between(ports * half + 1, ports * half * half), ports))
            case _:  # too many
                asked.append((ports * half * half + between(1, 99), ports))
    return asked


def cluster_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(nodes, per node)."""
    return [(int(sizes["nodes"]), int(sizes["per_node"]))]


def cluster_cases(*shapes: tuple[int, int]) -> tuple[Case, ...]:
    return tuple(Case(f"{n} × {g}", {"nodes": n, "per_node": g}) for n, g in shapes)


def ring_messages(sizes: Sizes) -> int:
    """Steps of a ring over all GPUs, and chunks that its busiest NIC sends."""
    return 2 * (int(sizes["nodes"]) * int(sizes["per_node"]) - 1)


def flows_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(flows, spines): flows are [from leaf, to leaf], at most `degree` from each and to each."""
    leaves, degree, spines = (int(sizes[name]) for name in ("leaves", "degree", "spines"))
    asked = []
    for _ in range(3):
        flows: list[list[int]] = []
        for _ in range(degree):
            to = generator.permutation(leaves)
            flows += [[leaf, int(to[leaf])] for leaf in range(leaves) if to[leaf] != leaf]
        order = generator.permutation(len(flows))
        asked.append(([flows[i] for i in order], spines))
    return asked


def fabric_case(name: str, leaves: int, degree: int, spines: int) -> Case:
    return Case(name, {"leaves": leaves, "degree": degree, "spines": spines})


MODELS: dict[str, dict[str, Any]] = {
    # parameters, layers, heads, kv_heads, head_dim from the models' published configurations
    "Llama 2 7B": {"parameters": 6.74e9, "layers": 32, "heads": 32, "kv_heads": 32, "head_dim": 128},
    "Llama 2 70B": {"parameters": 68.98e9, "layers": 80, "heads": 64, "kv_heads": 8, "head_dim": 128},
    "Llama 3 8B": {"parameters": 8.03e9, "layers": 32, "heads": 32, "kv_heads": 8, "head_dim": 128},
    "Llama 3 405B": {"parameters": 405.85e9, "layers": 126, "heads": 128, "kv_heads": 8, "head_dim": 128},
}
CARDS = ("L4", "L40S", "RTX 4090", "A100", "H100", "H200", "B200")
TENSOR_SIZES = (1, 2, 4, 8, 16)


def serve_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(model, memory in bytes, users, context in tokens)."""
    kind, asked = str(sizes["kind"]), list[tuple[Any, ...]]()
    while len(asked) < 6:
        model = dict(MODELS[str(generator.choice(sorted(MODELS)))])
        model["weight_bits"] = float(generator.choice((16, 8)))
        model["cache_bytes"] = int(generator.choice((2, 1)))
        users, context = int(generator.integers(1, 9)), 1024 * int(generator.integers(1, 9))
        if kind == "quantised":
            model["weight_bits"] = float(generator.choice((4.25, 4.5)))
        if kind == "many users":
            users, context = int(generator.integers(16, 129)), 1024 * int(generator.integers(4, 33))
        if kind == "few key heads":
            model |= {"heads": 32, "kv_heads": int(generator.choice((1, 2)))}
            users, context = int(generator.integers(64, 257)), 32_768
        if kind == "odd heads":
            model |= {"heads": 4 * int(generator.choice((3, 5, 7))), "kv_heads": 4}
        if kind == "odd key heads":
            model |= {"heads": 48, "kv_heads": int(generator.choice((6, 12)))}
        memory = float(hardware.find(str(generator.choice(CARDS))).dram_bytes)
        if kind == "odd heads":  # too much for 4 GPUs, and 8 or 16 cannot share the heads
            needed = serve_needs(model, memory, users, context)[4]
            memory = float(round(needed / 0.9 * generator.uniform(0.55, 1.3)))
        if kind == "odd key heads":  # every second time too much for the last number that shares the heads
            needed = list(serve_needs(model, memory, users, context).values())[-1]
            room = generator.uniform(0.7, 0.95) if len(asked) % 2 else generator.uniform(1.05, 1.5)
            memory = float(round(needed / 0.9 * room))
        question = (model, memory, users, context)
        if all(abs(needed / (0.9 * memory) - 1) > 1e-6 for needed in serve_needs(*question).values()):
            asked.append(question)
    return asked


def serve_needs(model: dict[str, Any], memory: float, users: int, context: int) -> dict[int, float]:
    """Bytes that each GPU holds, by the number of GPUs over which the heads can be shared."""
    weights = model["parameters"] * model["weight_bits"] / 8
    per_head = 2 * model["layers"] * model["head_dim"] * context * users * model["cache_bytes"]
    return {
        g: weights / g + per_head * max(1, model["kv_heads"] // g)
        for g in TENSOR_SIZES
        if model["heads"] % g == 0 and (model["kv_heads"] % g == 0 or g % model["kv_heads"] == 0)
    }


def train_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(model, GPU, days): what is to be trained, on what, and in how much time."""
    kind, asked = str(sizes["kind"]), list[tuple[Any, ...]]()
    while len(asked) < 6:
        gpu = hardware.find(str(generator.choice(("A100", "H100", "B200"))))
        size = float(generator.integers(1, 600)) * 1e9
        tokens = 20 * size
        days = float(generator.integers(20, 120))
        if kind == "fine-tuning":
            tokens = float(generator.integers(1, 100)) * 1e6
        if kind == "long":
            tokens = float(generator.integers(1, 20)) * 1e12
        if kind == "idle experts":  # all are held, few work: memory decides
            size = float(generator.integers(200, 600)) * 1e9
            tokens, days = float(generator.integers(20, 100)) * 1e9, days + 40
        model = {
            "parameters": size,
            "tokens": tokens,
            "bytes_per_parameter": int(generator.choice((16, 18))),
            "active": round(size / int(generator.integers(8, 33)))
            if kind in ("mixture", "idle experts")
            else size,
        }
        data = {
            "memory": float(gpu.dram_bytes),
            "peak": float(hardware.roofline(gpu, "bfloat16").peak),
            "utilisation": float(generator.integers(30, 56)) / 100,
            "per_node": 8,
        }
        lost = float(generator.integers(0, 15)) / 100
        by_memory, by_time = train_needs(model, data, days, lost)
        if all(abs(n / 8 - round(n / 8)) > 1e-6 for n in (by_memory, by_time)):
            asked.append((model, data, days, lost))
    return asked


def train_needs(model: dict[str, Any], gpu: dict[str, Any], days: float, lost: float) -> tuple[float, float]:
    """GPUs by memory and by time, not rounded."""
    by_memory = model["bytes_per_parameter"] * model["parameters"] / (0.8 * gpu["memory"])
    rate = gpu["peak"] * gpu["utilisation"] * (1 - lost)
    return by_memory, 6 * model["active"] * model["tokens"] / (rate * days * DAY)


# ---------------------------------------------------------------- reliability


def interval_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(cost, restart, MTBF), all in seconds."""
    match sizes["kind"]:
        case "24 h":
            return [(60.0, 0.0, DAY)]
        case "rare":
            costs = generator.integers(10, 400, 6)
            return [
                (float(c), float(generator.integers(0, 900)), float(c * generator.integers(300, 3000)))
                for c in costs
            ]
    costs = generator.integers(60, 900, 6)  # often
    return [(float(c), 0.0, round(float(c * generator.uniform(2, 3)), 1)) for c in costs]


def replay_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(work, interval, cost, restart, failures), whole seconds; failures ascend."""
    kind, asked = str(sizes["kind"]), []
    for _ in range(6):
        interval, cost = int(generator.integers(50, 300)), int(generator.integers(5, 40))
        restart, work = int(generator.integers(10, 60)), int(generator.integers(500, 3000))
        stretch = interval + cost
        match kind:
            case "none":
                failures: list[int] = []
                work = interval * int(generator.integers(1, 8)) + int(generator.integers(2)) * 7
            case "one":
                failures = [int(generator.integers(1, work))]
            case "while saving":
                n = int(generator.integers(1, 1 + max(1, work // interval - 1)))
                failures = [n * stretch - int(generator.integers(1, cost))]
            case "while restarting":
                at = int(generator.integers(1, work))
                failures = [at, at + int(generator.integers(1, restart))]
            case "to the second":
                first = stretch * int(generator.integers(1, 3))
                failures = [first, first + restart, first + 2 * restart + stretch]
                work = 6 * interval
            case _:  # many
                times = generator.exponential(3 * stretch, 30).cumsum()
                failures = sorted({int(t) + 1 for t in times})
        asked.append((work, interval, cost, restart, failures))
    return asked


def save_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(step, there, shards, keep): the folders that are there may hold what a crash left behind."""
    kind, shards, keep = str(sizes["kind"]), int(sizes["shards"]), int(sizes["keep"])
    asked = []
    for _ in range(2):
        every = int(generator.integers(1, 30)) * 10
        first = int(generator.integers(1, 9)) * every if kind != "more digits" else 9 * every
        steps = [first + i * every for i in range(keep)]
        if kind == "more digits":
            every = 10
            steps = [10 * (10 - keep + i) for i in range(keep)]  # up to 90, the next is 100
        if kind == "first":
            steps = []
        there = [f"step-{s}" for s in steps]
        step = (steps[-1] if steps else 0) + every
        if kind == "left behind":
            there.append(f"step-{step - every // 2}.tmp")
        if kind == "the same step":
            there.append(f"step-{step}.tmp")
        if kind == "too many":
            there.insert(0, f"step-{max(1, first - every)}")
        asked.append((step, there, shards, keep))
    return asked


def folder_case(name: str, shards: int, keep: int, kind: str = "") -> Case:
    return Case(name, {"kind": kind or name, "shards": shards, "keep": keep})


def reshard_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(elements, old ranks, new ranks)."""
    match sizes["kind"]:
        case "halved":
            return [(int(generator.integers(1, 50)) * 2 * new, 2 * new, new) for new in (1, 2, 4)]
        case "the same":
            return [(int(generator.integers(1, 999)), p, p) for p in (1, 3, 8)]
        case "few elements":
            return [(3, 8, 2), (3, 2, 8), (0, 2, 3), (1, 1, 4), (5, 4, 3)]
    return [
        (int(generator.integers(100, 5000)), int(generator.integers(1, 12)), int(generator.integers(1, 12)))
        for _ in range(6)
    ]


# ---------------------------------------------------------------- the exercises


_answered = partial(answered, "cluster", LAB)


EXERCISES: tuple[Exercise, ...] = (
    _answered(
        "max_flow",
        4,
        ("a chain", "several cables", "cut off", "a way back", "two halves", "leaves and spines"),
        flow_questions,
        (
            "For each ordered pair of nodes, keep the rate that is still left. A second link between the "
            "same nodes adds its rate. The opposite direction of a link starts with 0, because flow may be "
            "sent back there.",
            "Search breadth-first for a path on which every link has some rate left. The smallest of these "
            "rates is what you can add to the flow.",
            "After adding f, subtract f from each link of the path, and add f to the opposite direction of "
            "each link. In this way, what was sent can be sent back. Stop when there is no path.",
        ),
        "2 · What a network lets through",
    ),
    _answered(
        "switches",
        3,
        ("one switch", "full", "two levels", "uneven spines", "three levels", "too many"),
        radix_questions,
        (
            "Begin with the smallest network that is large enough. If the hosts fit on one switch, nothing "
            "else is needed. Otherwise, how many leaves do they fill?",
            "A spine has as many ports as a leaf, but all of them lead down. So s spines have room for 2 · s "
            "leaves. Of the numbers that divide half of the ports, which is the first with enough room?",
            "Three levels repeat two: pods take the place of leaves. A pod has `ports` switches, and there "
            "is a set of spines for each of its ports // 2 upper switches.",
        ),
        "Switch chips",
    ),
    Exercise(
        name="cluster.all_reduce",
        lab=LAB,
        evidence=AnsweredCases(questions=cluster_questions, measured=True),
        correct_points=2,
        cases=cluster_cases((2, 2), (1, 3), (3, 1), (3, 2), (1, 1), (4, 4)),
        budgets=(
            Budget(
                "NIC chunks",
                lambda sizes: 2 * (int(sizes["nodes"]) - 1),
                2,
                "NIC traffic",
                naive=ring_messages,
                unit="chunks through the busiest NIC",
                why="a G-th of what must leave a node",
                advice="The busiest NIC sends {times} × the least. How many of a node's NICs send, and could "
                "each carry a share?",
                case=EVERY,
            ),
            Budget(
                "steps",
                lambda sizes: 2 * (int(sizes["nodes"]) + int(sizes["per_node"]) - 2),
                1,
                "steps",
                naive=ring_messages,
                unit="steps",
                why="two rings inside a node, two between",
                advice="Which messages come one after the other although they use different GPUs? They can "
                "be in the same step.",
                case=EVERY,
            ),
        ),
        hints=(
            "The plan has three parts: a reduce-scatter inside each node, an all-reduce between GPUs of the "
            "same number, and an all-gather inside each node. All nodes do each part at the same time.",
            "After the reduce-scatter, GPU g of each node must hold the node's sum of N chunks, the same N "
            "chunks in all nodes. So cut the p chunks into G groups of N, and let the ring inside a node "
            "move whole groups.",
            "In step t of a ring of n, member i sends group (i − t) mod n to member i + 1 with `add`. After "
            "n − 1 steps, member i holds the sum of group (i + 1) mod n. The all-gather is the same with "
            "`copy`, and begins with that group.",
        ),
        section="4 · All-reduce in levels",
    ),
    Exercise(
        name="cluster.spread",
        lab=LAB,
        evidence=AnsweredCases(questions=flows_questions, measured=True),
        correct_points=1,
        cases=(
            fabric_case("two leaves", 2, 3, 3),
            fabric_case("two of four", 8, 4, 2),
            fabric_case("more spines", 6, 3, 5),
            fabric_case("one spine", 4, 2, 1),
            fabric_case("full", 12, 8, 8),
        ),
        budgets=(
            Budget(
                "share",
                1,
                3,
                "busiest link",
                naive=3,
                unit="× the least",
                why="the least can always be reached",
                advice="The busiest link carries {times} × as many flows as it must. Can an earlier flow "
                "change its spine to make room for a later one?",
                case=EVERY,
            ),
        ),
        hints=(
            "A flow takes one link up, from its leaf to the spine, and one link down. With d flows per leaf "
            "and s spines, the aim is ⌈d/s⌉ flows per link. Think of it as a colouring, where spines are "
            "colours.",
            "First use d colours, so that no leaf has the same colour twice among the flows that start "
            "there, or twice among those that end there. Then colour c becomes spine c mod s.",
            "For a new flow u → v, find a colour a that is free among the flows from u, and a colour b that "
            "is free among the flows to v. If they differ, follow the path of flows that starts at v with "
            "colours a, b, a, b … and swap the two colours on it. Now a is free at both ends.",
        ),
        section="5 · Congestion",
    ),
    _answered(
        "serve",
        3,
        ("plain", "quantised", "many users", "few key heads", "odd heads", "odd key heads"),
        serve_questions,
        (
            "The weights take parameters × bits ÷ 8 bytes. The cache has keys and values, so it has 2 × "
            "layers × KV heads × head_dim numbers for each token of each user.",
            "Try g = 1, 2, 4, 8, 16. It must divide the heads, and it must divide the KV heads or be a "
            "multiple of them.",
            "A GPU holds weights ÷ g and the cache of max(1, KV heads ÷ g) heads, because a head cannot be "
            "cut. Compare the sum with 0.9 × memory. The second number of the answer is the cache without "
            "copies.",
        ),
        "6 · How many GPUs?",
        rtol=1e-9,
        by_hand=(f"{__name__}.serve_needs",),
    ),
    _answered(
        "train",
        3,
        ("20 tokens per parameter", "fine-tuning", "long", "mixture", "idle experts"),
        train_questions,
        (
            "Compute two numbers of GPUs. One holds the state of all parameters in 80 % of its memory, and "
            "the other finishes in time.",
            "The work is 6 × active parameters × tokens. A GPU does peak × utilisation operations of it per "
            "second, but only for the share 1 − `lost` of its time.",
            "Take the larger number, and round it up to whole nodes. Then compute the days from the rounded "
            "number.",
        ),
        "6 · How many GPUs?",
        rtol=1e-9,
        by_hand=(f"{__name__}.train_needs",),
    ),
    Exercise(
        name="cluster.interval",
        lab=LAB,
        evidence=AnsweredCases(questions=interval_questions, measured=True),
        correct_points=1,
        cases=of_kinds("24 h", "rare", "often"),
        budgets=(
            Budget(
                "excess",
                2,
                2,
                "lost time, 24 h",
                naive=172,
                unit="% more loss than the least",
                why="near the best interval the loss hardly changes",
                case="24 h",
                advice="With your interval, which is larger: the time for saving, cost/τ, or the work that "
                "failures destroy, τ/(2 · MTBF)? At the best interval they are equal.",
            ),
            Budget(
                "excess",
                0.5,
                1,
                "failures often",
                unit="% more loss than the least",
                why="Young's formula: 4 to 7",
                advice="Here a second failure often comes before the next checkpoint. Does the derivation "
                "of your formula allow for that? The exact formula does.",
            ),
        ),
        hints=(
            "Per second of work, saving costs cost/τ. Failures cost half an interval per MTBF, which is "
            "τ/(2 · MTBF). At which τ is the sum smallest?",
            "It is smallest at √(2 · cost · MTBF). If failures come nearly as often as checkpoints, take the "
            "expected time of a stretch from the text instead, and divide it by τ.",
            "This quotient first falls with τ and then rises. Find its lowest point by ternary search "
            "between 1 s and 10 · √(2 · cost · MTBF). The factor exp(R/M) does not move that point.",
        ),
        section="B1 · How often to save",
    ),
    _answered(
        "replay",
        4,
        ("none", "one", "while saving", "while restarting", "to the second", "many"),
        replay_questions,
        (
            "Keep the clock and the work that is saved, and go from one event to the next. Events are "
            "stretches of work, saves and failures.",
            "A stretch is the smaller of the interval and the work that is left. A save follows it, unless "
            "all work is done. Does the next failure come before the end of both?",
            "After a failure at t, the clock is t + restart and the saved work stays. The work since then is "
            "lost: t − start of the stretch, but at most the whole stretch. A failure during the restart "
            "destroys no work, but the restart begins again.",
        ),
        "B2 · A failure simulator",
    ),
    Exercise(
        name="cluster.save",
        lab=LAB,
        evidence=AnsweredCases(questions=save_questions, measured=True),
        correct_points=3,
        cases=(
            folder_case("one shard", 1, 1, "plain"),
            folder_case("first", 2, 2),
            folder_case("left behind", 3, 2),
            folder_case("too many", 2, 2),
            folder_case("more digits", 2, 3),
            folder_case("the same step", 2, 2),
            folder_case("eight shards", 8, 2, "plain"),
        ),
        budgets=(
            Budget(
                "copies",
                lambda sizes: int(sizes["keep"]) + 1,
                1,
                "copies on disk",
                naive=lambda sizes: int(sizes["keep"]) + 2,
                unit="folders at most",
                why="those to keep and the new one",
                case="left behind",
                advice="A checkpoint of a large model takes terabytes. Which folders are of no use any "
                "more, and can be deleted before you write?",
            ),
            Budget(
                "synchronisations",
                lambda sizes: int(sizes["shards"]) + 2,
                1,
                "synchronisations",
                naive=lambda sizes: 3 * int(sizes["shards"]),
                unit="synchronisations",
                why="each of them waits for the disk",
                advice="Each file's contents need one synchronisation. How many more are needed for the "
                "names?",
                case=EVERY,
            ),
        ),
        hints=(
            "The loader trusts the newest `step-N`. So a folder may get that name only when everything in "
            "it is on the disk. Until then, write into `step-N.tmp`.",
            "Write all shards, synchronise each of them, rename the folder, synchronise `.`, and only then "
            "delete the checkpoints that you no longer keep.",
            "First of all, delete every `*.tmp` that a crash has left. Sort the names by their number, "
            "because as text `step-100` comes before `step-90`. If there are more than `keep` complete "
            "checkpoints at the start, the oldest can also be deleted first.",
        ),
        section="B3 · A checkpoint that is there or not",
    ),
    _answered(
        "reshard",
        3,
        ("halved", "the same", "uneven", "few elements"),
        reshard_questions,
        (
            "With p ranks, a shard has ⌈n/p⌉ elements. Rank r's shard starts at r · ⌈n/p⌉ and ends before "
            "(r + 1) · ⌈n/p⌉, and never beyond n.",
            "New rank r needs the elements from its own start to its own stop. Which old shards overlap "
            "these?",
            "For each old shard, take the larger of the two starts and the smaller of the two stops, and "
            "subtract the shard's own start from both. Leave out empty pieces.",
        ),
        "B5 · Elastic: other ranks than before",
    ),
)


_prediction = partial(prediction, "cluster", LAB, tolerance=0.05)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "nvlink_pcie",
        "NVLink 4 over PCIe 5.0 ×16, both in one direction",
        "times",
        450 / 63,
        "The stated 900 GB/s count both directions. In one direction it is 450 GB/s over 63 GB/s.",
        tolerance=0.1,
    ),
    _prediction(
        "ring_cut",
        "Links that the narrowest cut through a ring of 8 hosts crosses, 4 hosts on each side",
        "links",
        2,
        "With four neighbours on each side, the ring is cut in two places. That is true for a ring of any "
        "size.",
        tolerance=0,
    ),
    _prediction(
        "two_levels",
        "Hosts with 400 Gbit/s each that two levels of Tomahawk 5 (51.2 Tbit/s) connect at full bisection",
        "hosts",
        8192,
        "51,200 / 400 = 128 ports. A leaf has 64 hosts, and a spine reaches 128 leaves: 64 · 128 = 8,192.",
        tolerance=0,
    ),
    _prediction(
        "hash",
        "Flows on the busiest uplink on average, if the 8 flows of each of 12 leaves choose among 8 spines "
        "at random",
        "flows",
        reason="Random choices are uneven. Some uplinks stay empty, and in two of three draws at least one "
        "of the 96 uplinks has four flows or more.",
        tolerance=0.2,
    ),
    _prediction(
        "h100s",
        "H100s that hold GPT-3's training state, 175 billion parameters with 16 B each, in 80 % of their 80 "
        "GB",
        "GPUs",
        44,
        "The state is 2.8 TB. Each GPU holds 0.8 · 80 = 64 GB of it, and 2,800 / 64 = 43.75.",
        tolerance=0,
    ),
    _prediction(
        "ten_minutes",
        "Time lost by saving every 10 minutes, if a save takes 60 s and a failure comes every 24 h",
        "%",
        10.3,
        "Saving costs 60/600 = 10 %. Failures destroy half of 600 s every 86,400 s, which is 0.3 %.",
        tolerance=0.06,
    ),
    _prediction(
        "mtbf",
        "Hours between failures of 16,384 GPUs, if one GPU with everything that belongs to it fails once in "
        "6 years",
        "hours",
        6 * 8766 / 16384,
        "A year has 8,766 hours, so the MTBF is 6 · 8,766 h / 16,384.",
        tolerance=0.1,
    ),
    _prediction(
        "forgets",
        "Bits of the final weights that differ from the undisturbed run's, after a resumption at step 140 "
        "of 300 without the state of the dropout generator",
        "% of all bits",
        reason="Numbers that are only close to each other share their sign and exponent, but hardly any "
        "bits of the mantissa. About half of its 23 bits differ by chance, and 11.5 of 32 bits are 36 %.",
        tolerance=0.2,
    ),
)
