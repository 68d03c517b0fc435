"""Lab 28, part A: what its seven exercises ask.

On real ranks (communication; R ranks in nodes of G, T tokens of a rank, w numbers each, k experts for each):

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| dispatch | dispatch(x, choice, …) → y | a row a node, sums there | bytes between nodes | 4 rows | 1 | 7 |
| | | the same place in each node | busiest card | G | 1 | |
| one_shot | one_shot(x) | everybody adds everything | steps | 2 | 1 | 3 |
| two_shot | two_shot(x) | each adds a share | busiest sender | 3 S | 1.5 S | 4 |
| | | | steps | 6 | 2 | |

Plans and answers:

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| limited | limited(scores, nodes, most, k) → experts | node-limited routing | answers | – | – | 3 |
| place | place(load, gpus, slots) → by GPU | copies of the popular | busiest / mean | 1.25 | 1.1 | 4 |
| overlap | overlap(layers, times) → orders | one computes, one sends | above the least | 15 % | 0 | 4 |
| fastest | fastest(ranks, size, latency, rate, switch) | bytes against steps | answers | – | – | 3 |

Derivations:

**dispatch**: a token of the budget's case has 8 experts: 4 in its own node and 4 in one of two others. Sent
once to each node it is one row of w numbers over the network and one row of sums back: 8 w bytes a token.
Sent to each expert it is 4 rows there and 4 back. By rank it is almost 2, because 4 of the node's 8 experts
lie on both of its 2 ranks with a probability of 69/70. Beside the row the other node needs the token's
weights for its experts: 4 G · E bytes for E experts a rank, 32 here; 64 are allowed, and 32 for the counts of
each pair of ranks. A rank sends its tokens to the rank of the same place in the other node, and that one
returns the sums: T rows each, and every card is equally busy. Through one rank of a node, its card carries
those of G. Moving the experts instead costs each node the other's 2 · 4 · w² numbers, which is 8 times the
naive rows for w = 64 and T = 16.

**one_shot**, **two_shot**: an all-reduce of S bytes on p ranks. Everybody puts everything into everybody's
memory: (p − 1) S bytes from each rank, and no message waits for another: 1 step. With shares, (p − 1)/p · S
to reduce and as much to gather, in 2 steps; a ring takes 2 (p − 1) steps for the same bytes.

**limited** (DeepSeek-V3, section 2.1.2): of each node the sum of the k / most largest scores; the `most`
nodes with the largest sums; the k best experts in them.

**place**: an expert with c copies brings 1/c of its load to each. The mean load of a GPU bounds the busiest
from below. Loads fall as 1/rank: with 64 experts the first has 1/4.74 = 21 % of all, which on 8 GPUs is 1.7
times the mean of a GPU. Copies to whoever has the most for each copy, then the largest first to the emptiest.
With several popular experts, copies of the largest alone leave the next one whole: 1.2 to 1.4 times the mean.
With loads of all sizes, dealing the sorted copies out in turn gives the first GPU the largest of each round:
1.16 to 1.21.

**overlap**: per layer and micro-batch attention a, dispatch d, experts e, combine c; two micro-batches and L
layers. One after the other takes 2 L (a + d + e + c). Alternating, the busier of computing and sending
decides: about 2 L max(a + e, d + c). As long as no part is much more than twice as long as another this is
the least. The least is found by going through all orders of both (exact).

**fastest**: with latency α and rate β, one-shot α + (p − 1) S/β, two-shot 2 α + 2 (p − 1)/p · S/β. With a
switch that adds (`multimem.ld_reduce`) and copies (`multimem.st`), a GPU sends each of the p readers the
share of its array that this one asks for, S together, and stores its own sum once, S/p: 2 α + (p + 1)/p ·
S/β.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gpulab.checks.builders import answered, prediction
from gpulab.checks.evidence import Communication
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Sizes
from gpulab.subjects.distributed.traffic import Traffic

LAB = "28"
TOPIC = "experts"
FLOAT = 4  # bytes
CUT = 0.75  # naive bytes of numbers that are cut to three bytes, which a tolerance may let pass
EXPERTS = 4  # of a rank
CHOSEN = 8  # experts of a token

Numbers = np.random.Generator
_answered = partial(answered, TOPIC, LAB)


# ---------------------------------------------------------------- tokens to their experts


def _scaled(numbers: Numbers, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Weights whose products stay of the size of their inputs."""
    return numbers.standard_normal(shape) / np.sqrt(shape[-2])


def choices(numbers: Numbers, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Different experts for each token of each rank: half of them in its own node and half in another, which
    goes round, or any (`kind` of ``any``), or all in its own node (``at home``)."""
    ranks, tokens, k = shape
    per_node, kind = int(sizes["per_node"]), str(sizes["kind"])
    nodes, of_node = ranks // per_node, per_node * EXPERTS
    found = np.empty(shape, np.int64)
    for rank in range(ranks):
        home = rank // per_node
        for token in range(tokens):
            if kind == "any" or nodes == 1:
                found[rank, token] = numbers.permutation(ranks * EXPERTS)[:k]
                continue
            other = home if kind == "at home" else (home + 1 + token % (nodes - 1)) % nodes
            if other == home:
                found[rank, token] = home * of_node + numbers.permutation(of_node)[:k]
            else:
                found[rank, token] = np.r_[
                    home * of_node + numbers.permutation(of_node)[: k // 2],
                    other * of_node + numbers.permutation(of_node)[: k // 2],
                ]
            numbers.shuffle(found[rank, token])
    return found


def dispatch_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    tokens, width = int(sizes["tokens"]), int(sizes["width"])
    k = min(CHOSEN, EXPERTS * int(sizes["per_node"]))
    return (
        Array("x", (tokens, width)),
        Array("choice", (tokens, k), "int64", fill=choices),
        Array("weight", (tokens, k), fill="uniform"),
        Array("expert", (EXPERTS, width, width), fill=_scaled),
        Scalar("per_node", int(sizes["per_node"])),
        Array("y", (tokens, width), role="out"),
    )


def dispatch_case(kind: str, ranks: int, per_node: int, tokens: int, width: int) -> Case:
    sizes: Sizes = {"kind": kind, "ranks": ranks, "per_node": per_node, "tokens": tokens, "width": width}
    nodes = ranks // per_node
    return Case(f"{nodes} node{'s' * (nodes > 1)} × {per_node}, {kind}, {tokens} × {width}", sizes)


def row_bytes(sizes: Sizes) -> int:
    """A token's row there and a row of sums back."""
    return 2 * FLOAT * int(sizes["width"])


def card_bytes(sizes: Sizes) -> int:
    """What a rank sends to other nodes: a row for each token, as many sums for others, weights and counts."""
    return int(sizes["tokens"]) * (row_bytes(sizes) + 64) + 32 * int(sizes["ranks"])


def _leaves(link: tuple[int, int], sizes: Sizes) -> bool:
    per_node = int(sizes["per_node"])
    return link[0] // per_node != link[1] // per_node


def between_nodes(traffic: Traffic, sizes: Sizes) -> float:
    """Bytes from one node to another."""
    return float(sum(size for link, size in traffic.links.items() if _leaves(link, sizes)))


def busiest_card(traffic: Traffic, sizes: Sizes) -> float:
    """The most bytes that one rank sends to other nodes."""
    sent = [0.0] * traffic.ranks
    for link, size in traffic.links.items():
        sent[link[0]] += size if _leaves(link, sizes) else 0
    return max(sent)


def limited_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(scores of all experts, nodes, most nodes, experts of a token)."""
    shapes = {
        "one node is enough": [(16, 4, 1, 4)] * 3,
        "two of four": [(32, 4, 2, 4)] * 4,
        "as many as there are": [(24, 3, 3, 6)] * 3,
        "as in DeepSeek-V3": [(256, 8, 4, 8)] * 4,
    }[str(sizes["kind"])]
    return [
        ([round(float(s), 5) for s in numbers.permutation(10**5)[:experts] / 10**5], nodes, most, k)
        for experts, nodes, most, k in shapes
    ]


# ---------------------------------------------------------------- copies of experts


def place_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(load of each expert, GPUs, slots of a GPU)."""
    kind, asked = str(sizes["kind"]), list[tuple[Any, ...]]()
    load: np.ndarray
    for _ in range(3):
        if kind == "no room for copies":
            load, gpus, slots = numbers.integers(400, 600, 32), 4, 8
        elif kind == "one is popular":
            load, gpus, slots = np.r_[numbers.integers(90, 110, 31), 1500], 8, 5
        elif kind == "several are popular":
            load, gpus, slots = np.r_[numbers.integers(90, 110, 28), numbers.integers(500, 600, 4)], 8, 5
        elif kind == "of all sizes":
            load, gpus, slots = np.geomspace(1000, 20, 56), 8, 8
        elif kind == "few slots left":
            load, gpus, slots = 1000 / np.arange(1, 65) ** 0.5, 8, 9
        else:
            load, gpus, slots = 4000 / np.arange(1, 65), 8, 10
        noisy = np.rint(load * numbers.uniform(0.9, 1.1, len(load))).astype(int) + 1
        asked.append(([int(n) for n in numbers.permutation(noisy)], gpus, slots))
    return asked


# ---------------------------------------------------------------- two micro-batches


PARTS = ("attention", "dispatch", "experts", "combine")


def overlap_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(layers, whole times by part)."""
    draws = {
        "equal times": ((4, 4),) * 4,
        "computing takes longer": ((8, 12), (3, 5), (8, 12), (3, 5)),
        "sending takes longer": ((3, 5), (6, 9), (3, 5), (10, 14)),
        "long attention": ((12, 16), (5, 7), (3, 4), (5, 7)),
        "any": ((6, 14),) * 4,
    }[str(sizes["kind"])]
    asked = []
    for layers in (1, 2, 5):
        times = {part: int(numbers.integers(a, b + 1)) for part, (a, b) in zip(PARTS, draws, strict=True)}
        asked.append((layers, times))
    return asked


# ---------------------------------------------------------------- symmetric memory


# Whole numbers, so that every order of additions is exact, in int32 and so large that four of them just fit.
WHOLE = "integers:-536870911:536870912"


def all_reduce_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    count = int(sizes["numbers"])
    return (
        Array("x", (count,), "int32", fill=WHOLE),
        Array("out", (count,), "int32", role="out", placement="replicated"),
    )


def reduce_case(ranks: int, numbers: int) -> Case:
    return Case(f"{ranks} rank{'s' * (ranks > 1)} × {numbers}", {"ranks": ranks, "numbers": numbers})


def _others(sizes: Sizes) -> int:
    return int(sizes["ranks"]) - 1


def two_shot_bytes(sizes: Sizes) -> int:
    """Shares of equal length to all others, twice, each with the tag of its slot."""
    share = -(-int(sizes["numbers"]) // int(sizes["ranks"]))
    return 2 * _others(sizes) * (FLOAT * share + 8)


def everything(sizes: Sizes) -> float:
    """A whole array to all others: 30 bits a number, which it needs."""
    return 30 / 32 * FLOAT * _others(sizes) * int(sizes["numbers"])


def fastest_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(ranks, bytes, seconds of a message, bytes per second, whether the switch adds)."""
    kind, asked = str(sizes["kind"]), list[tuple[Any, ...]]()
    switch = kind.startswith("a switch")
    for size in (2e3, 5e4, 3e5, 2e6, 1e9):
        ranks = int(numbers.choice((2, 4, 8, 16)))
        latency, rate = float(numbers.uniform(1e-6, 5e-6)), float(numbers.uniform(1e11, 9e11))
        asked.append((ranks, float(round(size * numbers.uniform(0.7, 1.4))), latency, rate, switch))
    return asked


EXERCISES: tuple[Exercise, ...] = (
    _answered(
        "limited",
        3,
        ("one node is enough", "two of four", "as many as there are", "as in DeepSeek-V3"),
        limited_questions,
        (
            "Expert i lies on node i // (experts // nodes). First choose nodes, then experts in them.",
            "A node's worth is not its best score: it will give about k // most experts. Which of its scores "
            "does that make count?",
            "Sort each node's scores and add up its k // most largest; keep the `most` nodes with the "
            "largest sums; of all their experts take the k with the largest scores.",
        ),
        "2 · At most so many nodes",
    ),
    Exercise(
        name="experts.dispatch",
        lab=LAB,
        evidence=Communication(
            arguments=dispatch_arguments,
            calls=frozenset({"all_to_all", "all_gather", "all_reduce", "reduce_scatter", "broadcast"}),
            counts={"between nodes": between_nodes, "busiest card": busiest_card},
        ),
        correct_points=2,
        cases=(
            dispatch_case("any", 2, 2, 6, 8),
            dispatch_case("at home", 4, 2, 5, 8),
            dispatch_case("any", 4, 2, 7, 16),
            dispatch_case("two nodes", 4, 2, 8, 16),
            dispatch_case("two nodes", 6, 2, 16, 64),
        ),
        budgets=(
            Budget(
                "between nodes",
                lambda sizes: int(sizes["ranks"]) * card_bytes(sizes),
                3,
                "bytes between nodes",
                naive=lambda sizes: (
                    int(sizes["ranks"]) * int(sizes["tokens"]) * (CHOSEN // 2) * CUT * row_bytes(sizes)
                ),
                unit="B",
                why="a row to each node, and a row of sums back",
                advice="How many rows of one token cross to the same node, and how many come back? Where "
                "could the results of its experts there be added up?",
            ),
            Budget(
                "busiest card",
                card_bytes,
                2,
                "busiest network card",
                naive=lambda sizes: int(sizes["per_node"]) * int(sizes["tokens"]) * CUT * row_bytes(sizes),
                unit="B",
                why="each rank sends its own tokens, and sums for as many",
                advice="Which rank of the other node gets a token first? Do all ranks of a node send equally "
                "much to other nodes?",
            ),
        ),
        rtol=5e-6,
        atol=5e-6,
        hints=(
            "Make a dense table first: `gates = torch.zeros(tokens, ranks * 4).scatter(1, choice, weight)`. "
            "A token goes to the nodes where any of its columns is not zero.",
            "Rank r sends a token for node n to rank n · per_node + r % per_node, with its weights for that "
            "node's experts behind the row. That rank passes it on to the ranks of its node, and adds up "
            "what they return.",
            "With `exchange(parts)` the way is: rows to nodes, rows to ranks of the node, weighted sums "
            "back inside the node, `index_add_` there, sums back to the token's rank, `index_add_` again.",
        ),
        section="3 · Once to each node",
    ),
    _answered(
        "place",
        1,
        (
            "no room for copies",
            "one is popular",
            "several are popular",
            "of all sizes",
            "few slots left",
            "as in text",
        ),
        place_questions,
        (
            "First decide how many copies each expert gets, then where they go.",
            "Each free slot becomes a copy of the expert whose load for each copy is the largest at that "
            "moment. More copies than GPUs are no use.",
            "Then sort all copies by their load, the largest first, and give each to the GPU with the least "
            "load so far that has a free slot and no copy of the same expert.",
        ),
        "5 · Copies of popular experts",
        Budget(
            "busiest",
            1.1,
            3,
            "busiest GPU",
            naive=1.25,
            unit="× the mean",
            why="the mean is the bound",
            advice="Which expert makes the busiest GPU busy? What does a copy of it elsewhere take away?",
            case=EVERY,
        ),
        measured=True,
    ),
    _answered(
        "overlap",
        1,
        ("equal times", "computing takes longer", "sending takes longer", "long attention", "any"),
        overlap_questions,
        (
            "While micro-batch 0 is on the network, micro-batch 1 can compute. Write down both lists for "
            "one layer.",
            "In a layer the computing list has A of 0, A of 1, E of 0, E of 1, and the network list D of 0, "
            "D of 1, C of 0, C of 1. Does it matter how many layers there are?",
            "Both lists are loops over layers, in a layer over the two kinds of work, and inside over the "
            "two micro-batches.",
        ),
        "6 · Two micro-batches",
        Budget(
            "above the least",
            2,
            3,
            "above the least",
            naive=15,
            unit="% of the least time",
            why="of all orders",
            advice="What does the network do while a micro-batch computes? Whose turn could it be?",
            case=EVERY,
        ),
        measured=True,
    ),
    Exercise(
        name="experts.one_shot",
        lab=LAB,
        evidence=Communication(arguments=all_reduce_arguments),
        correct_points=1,
        cases=(reduce_case(2, 6), reduce_case(1, 5), reduce_case(3, 10), reduce_case(4, 257)),
        budgets=(
            Budget(
                "steps",
                1,
                2,
                "steps",
                naive=2,
                unit="messages in a row",
                why="no put waits for another",
                advice="Does any of your puts carry what came with another? Do you wait for all flags at "
                "once, or for one after the other?",
            ),
        ),
        hints=(
            "Each rank needs as many slots as there are ranks, one for each array. Slot r is rank r's.",
            "Put x into slot `rank` of every other rank. Your own array goes into your own slot without a "
            "message.",
            "Then one `memory.wait` with all flags, `(peer, peer)` for each other rank, and "
            "`memory.slots.sum(0, dtype=x.dtype)`.",
        ),
        section="7 · Puts and flags",
    ),
    Exercise(
        name="experts.two_shot",
        lab=LAB,
        evidence=Communication(arguments=all_reduce_arguments),
        correct_points=1,
        cases=(reduce_case(2, 6), reduce_case(1, 5), reduce_case(3, 10), reduce_case(4, 1023)),
        budgets=(
            Budget(
                "busiest sender",
                two_shot_bytes,
                2,
                "busiest sender",
                naive=everything,
                unit="B",
                why="a share to each, twice",
                advice="How many ranks need to see a whole array before anything is added?",
            ),
            Budget(
                "steps",
                2,
                1,
                "steps",
                naive=lambda sizes: 2 * _others(sizes),
                unit="messages in a row",
                why="one to reduce, one to gather",
                advice="Which of your puts waits for more than one message before it?",
            ),
        ),
        hints=(
            "Pad x with zeros to `size` shares of equal length. Rank r adds up share r of all ranks.",
            "Twice as many slots as ranks: slot r for rank r's part of my share, slot size + r for the sum "
            "that rank r has made.",
            "Put share `peer` into slot `rank` of each peer, wait, add the first `size` slots, put the sum "
            "into slot `size + rank` of each peer, wait, and cut the padding off.",
        ),
        section="8 · Two shots",
    ),
    _answered(
        "fastest",
        3,
        ("no switch", "a switch that adds"),
        fastest_questions,
        (
            "For each way, how many messages wait for one another, and how many bytes does a rank send?",
            "One shot: 1 and (p − 1) · S. Two shots: 2 and 2 · (p − 1)/p · S. With the switch, what does a "
            "rank send when all p ranks each load a reduced share?",
            "With the switch it is 2 and S + S/p. Return the name and the time of the least.",
        ),
        "9 · A switch that adds",
        rtol=1e-9,
    ),
)


_prediction = partial(prediction, TOPIC, LAB)

PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "rows",
        "Rows of one token that cross between nodes when each of its 8 experts gets its own copy, with two "
        "experts on each of 4 nodes, one of them the token's own",
        "rows",
        6,
        "Two experts on each of three other nodes. Sent once to each node, 3 rows would cross.",
    ),
    _prediction(
        "tokens",
        "Tokens that an expert gets in a decode step: 256 experts, 8 for each token, 64 GPUs with 32 tokens "
        "each",
        "tokens",
        64,
        "64 · 32 tokens times 8 choices are 16,384, and 256 experts share them.",
    ),
    _prediction(
        "hidden",
        "Time of two alternating micro-batches over their time one after the other, in %, when all four "
        "parts of a layer take equally long and there are many layers",
        "%",
        50,
        "Half of the work computes and half sends. When both always go on at once, half of the time is left.",
        0.05,
    ),
    _prediction(
        "multimem",
        "Bytes that a GPU sends in a two-shot all-reduce over bytes with a switch that adds, for 8 GPUs",
        "times",
        14 / 9,
        "2 · 7/8 of the array without, 1 + 1/8 with the switch: 1.75 / 1.125.",
        0.02,
    ),
)
