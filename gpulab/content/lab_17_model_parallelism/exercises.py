"""Lab 17: what its ten exercises ask.

On real ranks (communication; at four ranks, S bytes of activations, N of tokens):

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| mlp | mlp(x, a, b, slope) | one all-reduce a direction | busiest sender | 6 S | 3 S | 4 |
| loss | loss(hidden, table, labels) | no logits travel | busiest sender | 3,072 B a token | 24 | 5 |
| ring | ring(q, k, v) | keys and values go round | steps | 6 | 3 | 5 |
| | | softmax online | busiest sender | 4 blocks | 3 blocks | |
| biased | biased(x, a, a_bias, b, b_bias) | a bias is added once | busiest sender | 3 S | 1.5 S | 3 |
| dispatch | dispatch(x, choice, weight, expert) | tokens travel to experts | bytes | 6 N | 2 N | 5 |

Plans (answered cases; p devices, m micro-batches, at p = 4 and m = 8):

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| schedule | schedule(devices, batches) | 1F1B: same bubble, less memory | peak, steps | 8, 64 | 4, 22 | 4 |
| stages | stages(times, devices) | the slowest stage is the pace | time above the least | 10 | 0 | 3 |
| zero_bubble | zero_bubble(devices, batches) | a backward in halves | steps, peak | 30, 8 | 27, 4 | 5 |
| layout | layout(model, cluster) | what to cut, and the rank map | % above the best | 50 | 1 | 4 |
| cut | cut(modules, ranks) | columns, then rows; a search | % of weights over the least | 300 | 0 | 4 |

Derivations of part A (p ranks): a ring all-reduce of S bytes makes each rank send 2 (p − 1)/p · S, 1.5 S at
four; an all-gather of what each has, B bytes, (p − 1) B.

**mlp**: y and dx are summed over the ranks: two all-reduces, 3 S. All-gathering the partial sums and adding
them up takes (p − 1) S each, 6 S. da and db stay where they are.

**loss**: the maximum, the sum of exponentials and the label's logit, 4 bytes a token each: 3 · 1.5 · 4 ·
tokens = 18 bytes a token. (Gathering a logsumexp and a logit from each rank: 3 · 8 = 24. The budget is the
larger of the two.) Gathering logits: a rank sends its quarter of 1,024 words to three
others, 3 · 4 · 256 = 3,072 bytes a token.

**ring**: p − 1 rounds in which each rank sends a block of keys and values on. Sends that wait for their
receiver, even ranks first, take 2 (p − 1) steps; a round too many sends p blocks.

**biased**: as mlp's forward, 1.5 S; a second all-reduce for the bias, 3 S in all.

**dispatch**: N bytes of tokens go to their experts and back, 2 N at most, and a table of counts. All tokens
to all experts and a sum back is (p − 1) N + (p − 1) N = 6 N. Cases with a budget have no more tokens than an
expert has columns, so that experts that come to the tokens cost more still: p (p − 1) weights of w² are
12 N where w = tokens.

What is not counted in whole numbers is held to a few times the error of float32's own arithmetic, so that
floats cut to three bytes fail. Fixed-point numbers of three bytes may pass, so naive costs are three quarters
of what the obvious solution sends: it earns nothing for shorter numbers.

Derivations of part B (p devices, m micro-batches, each operation one step; figures at p = 4, m = 8):

**schedule**: the last device starts after p − 1 forwards, and its last gradient travels back through p − 1
backwards: 2 m + 2 (p − 1) = 22 steps. One micro-batch after the other takes 2 p m = 64. Device 0 has p
micro-batches under way before the first gradient is back, so p is the least peak at that pace; GPipe holds
all m.

**stages**: at the last case (an embedding of 2, 22 layers of 4, a head of 18 on 4 stages, 108 together) 27
each would be even; stages of 26, 28, 28, 26 are the best, because 28 is the next sum of layers. Equal
counts give the last stage 5 · 4 + 18 = 38, 10 more.

**zero_bubble**: the last device starts after p − 1 steps and has 3 m to do, so 3 m + p − 1 = 27 is the
least. With W of a micro-batch right behind its B the last gradient still travels back through p − 1 devices
that have nothing else left: 3 m + 2 (p − 1) = 30. ZB-H1 (P. Qi et al., 2023) delays W on device d by d
micro-batches; every device then holds p.

**layout**: the reference tries all layouts. The naive one has tensor parallelism over the whole node, the
rest of the memory's need by pipeline, micro-batches of one sequence: 59 % above the best for the large
model. The last case has several clusters, and its worst answer counts: on one of them each shorter search
loses (micro-batches of one sequence 127 %, one fixed order 28 to 31 %).

**cut**: a linear layer whose input is split must be cut by rows; one whose input is whole may be cut by
columns if nothing that reads the result needs whole rows. At most eight are in a question, so 256 plans
decide what is least. Leaving all layers whole holds 4 times as much on 4 ranks: 300 %. In a chain of three
layers of which the last feeds a norm, cutting the first two is the first idea; as the last one is the
largest, cutting the last two is right.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from gpulab.checks.builders import prediction
from gpulab.checks.evidence import AnsweredCases, Communication
from gpulab.checks.spec import EVERY, Array, Budget, Case, Exercise, Prediction, Scalar, Sizes

LAB = "17"
CUT = 0.75  # naive bytes of numbers that are cut to three bytes, which a tolerance may let pass
Numbers = np.random.Generator


# ---------------------------------------------------------------- on real ranks


def ranks_case(ranks: int, **sizes: int) -> Case:
    said = ", ".join(
        f"{value} tokens" if name == "tokens" else f"{name.replace('_', ' ')} {value}"
        for name, value in sizes.items()
    )
    return Case(f"{ranks} rank{'s' * (ranks > 1)}, {said}", {"ranks": ranks, **sizes})


def _scaled(numbers: Numbers, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Weights whose products stay of the size of their inputs."""
    return numbers.standard_normal(shape) / np.sqrt(shape[-2])


def _large(numbers: Numbers, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Activations; where sizes say `times`, so much larger."""
    return numbers.standard_normal(shape) * int(sizes.get("times", 1))


def _sharp(numbers: Numbers, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Queries and keys; where sizes say `times`, so much larger, and whole: 16 columns give exact scores."""
    large = _large(numbers, shape, sizes)
    return np.rint(large) if "times" in sizes else large


def _labels(numbers: Numbers, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    return numbers.integers(0, int(sizes["vocabulary"]), shape)


def _choices(numbers: Numbers, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """Of an even router, or of one that sends all tokens to one expert (`favourite`, counted from 0)."""
    even = numbers.integers(0, int(sizes["ranks"]), shape)
    return np.full(shape, int(sizes["favourite"])) if "favourite" in sizes else even


def mlp_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    tokens, width = int(sizes["tokens"]), int(sizes["width"])
    columns = int(sizes["hidden"]) // int(sizes["ranks"])
    return (
        Array("x", (tokens, width), placement="replicated", grad=True),
        Array("a", (width, columns), fill=_scaled, grad=True),
        Array("b", (columns, width), fill=_scaled, grad=True),
        Array("slope", (tokens, width), placement="replicated"),
        Array("y", (tokens, width), role="out", placement="replicated"),
        Array("dx", (tokens, width), role="out", placement="replicated"),
        Array("da", (width, columns), role="out"),
        Array("db", (columns, width), role="out"),
    )


def biased_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    tokens, width = int(sizes["tokens"]), int(sizes["width"])
    columns = int(sizes["hidden"]) // int(sizes["ranks"])
    return (
        Array("x", (tokens, width), placement="replicated"),
        Array("a", (width, columns), fill=_scaled),
        Array("a_bias", (columns,)),
        Array("b", (columns, width), fill=_scaled),
        Array("b_bias", (width,), placement="replicated"),
        Array("y", (tokens, width), role="out", placement="replicated"),
    )


def loss_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    tokens, width = int(sizes["tokens"]), int(sizes["width"])
    return (
        Array("hidden", (tokens, width), fill=_large, placement="replicated"),
        Array("table", (int(sizes["vocabulary"]) // int(sizes["ranks"]), width), fill=_scaled),
        Array("labels", (tokens,), "int64", fill=_labels, placement="replicated"),
        Array("losses", (tokens,), role="out", placement="replicated"),
    )


def ring_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    shape = int(sizes["tokens"]), int(sizes["width"])
    inputs = tuple(
        Array(name, shape, fill=fill, placement="sharded")
        for name, fill in zip("qkv", (_sharp, _sharp, _large), strict=True)
    )
    return (*inputs, Array("out", shape, role="out", placement="sharded"))


def dispatch_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    tokens, width = int(sizes["tokens"]), int(sizes["width"])
    return (
        Array("x", (tokens, width), placement="sharded"),
        Array("choice", (tokens,), "int64", fill=_choices, placement="sharded"),
        Array("weight", (tokens,), fill="uniform", placement="sharded"),
        Array("expert", (width, width), fill=_scaled),
        Array("y", (tokens, width), role="out", placement="sharded"),
    )


def activations(sizes: Sizes) -> float:
    """Bytes of all tokens in float32."""
    return 4.0 * int(sizes["tokens"]) * int(sizes["width"])


def ring(sizes: Sizes, numbers: int) -> float:
    """Bytes that the busiest rank sends for a ring all-reduce of numbers in float32.

    In both halves a rank sends all pieces but one; where they are not equally long, one of the shorter ones.
    """
    return 2 * 4.0 * (numbers - numbers // int(sizes["ranks"]))


def all_reduce(sizes: Sizes) -> float:
    """Bytes that the busiest rank sends for a ring all-reduce of the activations."""
    return ring(sizes, int(sizes["tokens"]) * int(sizes["width"]))


def _block(sizes: Sizes) -> float:
    """Bytes of one rank's keys and values."""
    return 2 * activations(sizes) / int(sizes["ranks"])


def _others(sizes: Sizes) -> int:
    return int(sizes["ranks"]) - 1


# ---------------------------------------------------------------- pipelines


def _p_m(sizes: Sizes) -> tuple[int, int]:
    return int(sizes["devices"]), int(sizes["batches"])


def pipeline_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    return [_p_m(sizes)]


def peak(sizes: Sizes) -> int:
    """Micro-batches under way when nobody waits without need."""
    return min(_p_m(sizes))


def steps(sizes: Sizes) -> int:
    """Of any schedule that fills and drains the pipeline once."""
    p, m = _p_m(sizes)
    return 2 * (m + p - 1)


def steps_in_three(sizes: Sizes) -> int:
    """The least with backward in two parts."""
    p, m = _p_m(sizes)
    return 3 * m + p - 1


def pipeline_case(devices: int, batches: int) -> Case:
    return Case(
        f"{devices} device{'s' * (devices > 1)}, {batches} micro-batch{'es' * (batches > 1)}",
        {"devices": devices, "batches": batches},
    )


def stage_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """Times of an embedding, layers and a head, in whole units; and how many stages there are."""
    match sizes["what"]:
        case "one layer each":
            return [([3, 1, 2], 3)]
        case "one stage":
            return [([2, 5, 5], 1)]
        case "all alike":
            return [([4] * 16, 4), ([4] * 18, 4)]
        case "any":
            return [
                ([int(n) for n in numbers.integers(1, 30, int(numbers.integers(9, 30)))], int(devices))
                for devices in numbers.integers(2, 9, 6)
            ]
        case _:
            return [([2, *[4] * 22, 18], 4)]


def named_cases(*names: str) -> tuple[Case, ...]:
    return tuple(Case(name, {"what": name}) for name in names)


# ---------------------------------------------------------------- what to cut

ATTENTION, GATED, PLAIN, ROUTED, LATENT, CHAIN = "attention", "gated", "plain", "routed", "latent", "chain"


def block(kind: str, width: int, hidden: int, heads: int, name: str = "x", by: str = "") -> list[list[Any]]:
    """Modules that read the whole tensor `name` and end in one that gives a whole tensor."""

    def linear(own: str, source: str, rows: int, columns: int) -> list[Any]:
        return [own + by, "linear", [source], [rows, columns]]

    match kind:
        case "attention":
            made = [linear(each, name, width, width) for each in "qkv"]
            made += [["attend" + by, "heads", [each + by for each in "qkv"], heads]]
            made += [linear("o", "attend" + by, width, width)]
        case "gated":
            made = [linear("gate", name, width, hidden), linear("up", name, width, hidden)]
            made += [["times" + by, "each", ["gate" + by, "up" + by], 0]]
            made += [linear("down", "times" + by, hidden, width)]
        case "plain":
            made = [linear("up", name, width, hidden), ["gelu" + by, "each", ["up" + by], 0]]
            made += [linear("down", "gelu" + by, hidden, width)]
        case "routed":  # the router's probabilities need all of its row
            made = [linear("router", name, width, 8), ["softmax" + by, "rows", ["router" + by], 0]]
            made += block("plain", width, hidden, heads, name, by)
        case "latent":  # a low rank with a norm in between, as in latent attention
            made = [linear("a", name, width, hidden), ["small" + by, "rows", ["a" + by], 0]]
            made += [linear("b", "small" + by, hidden, width), ["attend" + by, "heads", ["b" + by], heads]]
            made += [linear("o", "attend" + by, width, width)]
        case _:  # three linear layers in a row; the last one is the largest
            made = [linear("first", name, width, width), linear("second", "first" + by, width, hidden)]
            made += [linear("third", "second" + by, hidden, 4 * hidden)]
    return [*made, ["norm" + by, "rows", [made[-1][0]], 0]]


def cut_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(modules, ranks)."""
    kind, asked = str(sizes["kind"]), []
    for _ in range(3):
        ranks = 2 ** int(numbers.integers(1, 4))
        heads = ranks * int(numbers.integers(1, 4))
        width, hidden = 64 * heads, 64 * ranks * int(numbers.integers(3, 9))
        if kind == "heads that do not divide":
            asked.append((block(ATTENTION, 64 * ranks, hidden, ranks - 1), ranks))
        elif kind == "columns that do not divide":
            asked.append((block(str(numbers.choice((GATED, PLAIN))), width, hidden + 1, heads), ranks))
        elif kind == "one reader needs all":
            modules = block(PLAIN, width, hidden, heads)
            asked.append(([*modules, ["sum", "rows", ["gelu"], 0]], ranks))
        elif kind == "a product with the input":
            modules = block(PLAIN, width, hidden, heads)[1:]
            asked.append(
                (
                    [["up", "linear", ["x"], [width, hidden]], ["both", "each", ["x", "up"], 0], *modules],
                    ranks,
                )
            )
        elif kind == "a block":
            modules = block(ATTENTION, 512, 2048, 8, by=" 1")
            asked.append((modules + block(GATED, 512, 2048, 8, "norm 1", " 2"), 4))
        elif kind == "any":
            first, second = (
                str(each) for each in numbers.choice((ATTENTION, GATED, ROUTED, LATENT, CHAIN), 2)
            )
            modules = block(first, width, hidden, heads, by=" 1")
            asked.append((modules + block(second, width, hidden, heads, "norm 1", " 2"), ranks))
        else:
            asked.append((block(kind, width, hidden, heads), ranks))
    return asked


CUT_KINDS = (
    PLAIN,
    GATED,
    ATTENTION,
    ROUTED,
    LATENT,
    CHAIN,
    "heads that do not divide",
    "columns that do not divide",
    "one reader needs all",
    "a product with the input",
    "any",
    "a block",
)


def cut_cases(*names: str, suffix: str = "") -> tuple[Case, ...]:
    return tuple(Case(name + suffix, {"kind": name}) for name in names)


# ---------------------------------------------------------------- layouts

# Toys: round numbers of no GPU. Rates in FLOP/s, links in B/s, memory in B, latency in s.
MODELS = {
    "small": {"layers": 32, "width": 4096, "heads": 32, "sequence": 2048, "batch": 128},
    "middle": {"layers": 40, "width": 5120, "heads": 40, "sequence": 2048, "batch": 64},
    "large": {"layers": 48, "width": 8192, "heads": 64, "sequence": 4096, "batch": 128},
    "long": {"layers": 24, "width": 2048, "heads": 16, "sequence": 8192, "batch": 256},
}
CLUSTER = {
    "nodes": 4,
    "per_node": 8,
    "memory": 80e9,
    "rate": 400e12,
    "half": 500,
    "inside": 400e9,
    "between": 40e9,
    "latency": 5e-6,
}


# On each of these clusters another shorter search loses: tensor parallelism over the node, micro-batches of
# one sequence, data always before pipeline, pipeline always before data.
SEVERAL: tuple[tuple[str, dict[str, float]], ...] = (
    ("large", {}),
    ("small", {"nodes": 1, "memory": 160e9, "half": 4000}),
    ("long", {"nodes": 2, "memory": 24e9, "between": 2e9}),
    ("small", {"nodes": 2, "between": 2e9}),
)
OTHERS: tuple[tuple[str, dict[str, float]], ...] = (
    ("large", {}),
    ("small", {"half": 4000}),
    ("long", {"memory": 24e9, "between": 2e9}),
    ("small", {"nodes": 2, "between": 3e9}),
)


def layout_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """Models and clusters; the speeds differ from call to call where sizes say so."""
    if "clusters" in sizes:
        several = OTHERS if sizes["clusters"] == "others" else SEVERAL
        return [(dict(MODELS[model]), CLUSTER | changes) for model, changes in several]
    changed = {
        key: float(value)
        for key, value in CLUSTER.items()
        if key not in ("nodes", "per_node") and sizes.get("vary")
        for value in [CLUSTER[key] * float(numbers.uniform(0.8, 1.25))]
    }
    counts = {"nodes": int(sizes["nodes"]), "per_node": int(sizes["per_node"])}
    cluster = CLUSTER | changed | counts | {"memory": float(sizes["GB"]) * 1e9}
    return [(dict(MODELS[str(sizes["model"])]), cluster)]


def layout_case(model: str, nodes: int, per_node: int, gigabytes: int, vary: bool = False) -> Case:
    return Case(
        f"{model}, {nodes} × {per_node} GPUs of {gigabytes} GB",
        {"model": model, "nodes": nodes, "per_node": per_node, "GB": gigabytes, "vary": int(vary)},
    )


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="parallel.mlp",
        lab=LAB,
        evidence=Communication(
            arguments=mlp_arguments,
            calls=frozenset({"all_reduce", "all_gather", "reduce_scatter"}),
        ),
        correct_points=2,
        cases=(
            ranks_case(1, tokens=3, width=8, hidden=16),
            ranks_case(3, tokens=5, width=8, hidden=12),
            ranks_case(2, tokens=16, width=16, hidden=64),
            ranks_case(4, tokens=24, width=32, hidden=128),
        ),
        budgets=(
            Budget(
                "busiest sender",
                lambda sizes: 2 * all_reduce(sizes),
                2,
                "busiest sender",
                naive=lambda sizes: CUT * 2 * _others(sizes) * activations(sizes),
                unit="B",
                why="one all-reduce forward, one backward",
                advice="Which of y, dx, da and db are sums over the ranks? Only these must be sent. Which "
                "collective adds up and leaves the sum on every rank?",
                case=EVERY,
            ),
        ),
        rtol=1.2e-5,
        atol=1.2e-5,
        hints=(
            "`part = F.gelu(x @ a) @ b` is this rank's term of y. The terms of all ranks add up to y.",
            "`part.backward(slope)` leaves gradients in x.grad, a.grad and b.grad. Which of them are "
            "complete, and which is only one rank's term of a sum?",
            "All-reduce y and x.grad, and nothing else. Reduce a copy of the term, `part.detach().clone()`, "
            "because backward still needs the original.",
        ),
        section="2 · Columns, then rows",
    ),
    Exercise(
        name="parallel.loss",
        lab=LAB,
        evidence=Communication(arguments=loss_arguments, calls=frozenset({"all_reduce", "all_gather"})),
        correct_points=2,
        cases=(
            ranks_case(1, tokens=3, width=8, vocabulary=12),
            ranks_case(3, tokens=5, width=8, vocabulary=30),
            ranks_case(2, tokens=16, width=16, vocabulary=64, times=400),
            ranks_case(4, tokens=64, width=16, vocabulary=1024),
        ),
        budgets=(
            Budget(
                "busiest sender",
                lambda sizes: max(
                    8 * _others(sizes) * int(sizes["tokens"]), 3 * ring(sizes, int(sizes["tokens"]))
                ),
                3,
                "busiest sender",
                naive=lambda sizes: (
                    CUT
                    * _others(sizes)
                    * 4
                    * int(sizes["tokens"])
                    * int(sizes["vocabulary"])
                    / int(sizes["ranks"])
                ),
                unit="B",
                why="a few numbers per token",
                advice="A softmax needs the maximum and the sum of a whole row of logits. Which numbers "
                "must a rank send for that, if not its logits?",
                case=EVERY,
            ),
        ),
        rtol=1e-4,
        atol=1e-3,
        hints=(
            "The loss of a token is log Σ exp(logit) − logit of its label. Both terms are sums over ranks.",
            "First find the maximum over all ranks (`op=dist.ReduceOp.MAX`), because all ranks must "
            "subtract the same one. Then add up exp(logit − maximum) over all ranks. The loss is log(sum) + "
            "maximum − the label's logit.",
            "Rank r has the words that begin at r · rows. A rank that does not have the label contributes 0 "
            "for the label's logit. `clamp` keeps its index in range, and `torch.where` replaces what it "
            "read there.",
        ),
        section="4 · A vocabulary in pieces",
    ),
    Exercise(
        name="parallel.ring",
        lab=LAB,
        evidence=Communication(arguments=ring_arguments),
        correct_points=2,
        cases=(
            ranks_case(1, tokens=5, width=4),
            ranks_case(2, tokens=6, width=4),
            ranks_case(3, tokens=9, width=16, times=10),
            ranks_case(4, tokens=64, width=16),
        ),
        budgets=(
            Budget(
                "busiest sender",
                lambda sizes: int(1.05 * _others(sizes) * _block(sizes)),  # tags are counted, too
                1,
                "busiest sender",
                naive=lambda sizes: int(sizes["ranks"]) * _block(sizes),
                unit="B",
                why="a block of keys and values in each of p − 1 rounds",
                advice="Does any rank still need the block that you send in the last round?",
                case=EVERY,
            ),
            Budget(
                "steps",
                _others,
                2,
                "steps",
                naive=lambda sizes: 2 * _others(sizes),
                unit="steps",
                why="all ranks send at once",
                advice="With `dist.isend` a rank can receive while it sends. Keys and values that are "
                "received one after the other take two steps.",
                case=EVERY,
            ),
        ),
        rtol=4e-6,
        atol=4e-6,
        hints=(
            "Keep three things for each query: the largest score so far, the sum of the exponentials "
            "relative to it, and the weighted sum of values.",
            "If a block raises the maximum, first multiply the old sum and the old output by exp(old "
            "maximum − new maximum).",
            "In each round, `isend` the block to (rank + 1) % ranks, compute with it, `recv` the next block "
            "from (rank − 1) % ranks, and wait for the send. `torch.stack([k, v])` makes one message of "
            "both. In the last round nothing is sent.",
        ),
        section="6 · Keys and values go round",
    ),
    Exercise(
        name="parallel.biased",
        lab=LAB,
        evidence=Communication(
            arguments=biased_arguments,
            calls=frozenset({"all_reduce", "all_gather", "broadcast"}),
        ),
        correct_points=2,
        cases=(
            ranks_case(1, tokens=3, width=8, hidden=16),
            ranks_case(3, tokens=5, width=8, hidden=12),
            ranks_case(4, tokens=24, width=32, hidden=128),
        ),
        budgets=(
            Budget(
                "busiest sender",
                all_reduce,
                1,
                "busiest sender",
                naive=lambda sizes: CUT * 2 * all_reduce(sizes),
                unit="B",
                why="one all-reduce",
                advice="Every rank has the whole `b_bias`. Does it have to be sent at all?",
                case=EVERY,
            ),
        ),
        rtol=8e-6,
        atol=8e-6,
        hints=(
            "Print the output of the colleague's layer with all weights 0 and a bias of 1, on one, two and "
            "four ranks.",
            "Whatever each rank adds before an all-reduce is in the sum once for each rank.",
            "`a_bias` belongs to this rank's columns, so add it before GELU. Add `b_bias` after the "
            "all-reduce.",
        ),
        section="Detective · The layer that grows with the ranks",
    ),
    Exercise(
        name="parallel.schedule",
        lab=LAB,
        evidence=AnsweredCases(questions=pipeline_questions, measured=True),
        correct_points=1,
        cases=tuple(pipeline_case(*pm) for pm in ((1, 3), (2, 5), (3, 3), (6, 3), (4, 8))),
        budgets=(
            Budget(
                "steps",
                steps,
                1,
                "steps",
                naive=lambda sizes: 2 * math.prod(_p_m(sizes)),
                unit="steps",
                why="2 (m + p − 1)",
                advice="Draw your schedule. Which device waits although the input of some other operation "
                "of its own is there?",
                case=EVERY,
            ),
            Budget(
                "peak micro-batches",
                peak,
                2,
                "peak micro-batches",
                naive=lambda sizes: _p_m(sizes)[1],
                unit="micro-batches",
                why="the number of devices",
                advice="A backward frees what its forward kept. When is a device's first backward possible, "
                "and how many forwards does it need before?",
                case=EVERY,
            ),
        ),
        hints=(
            "The last device can run F0 B0 F1 B1 F2 B2 … as soon as its first input arrives. Which forwards "
            "must device d have run before its first gradient arrives?",
            "Device d starts with p − 1 − d forwards, or with all m if there are fewer. After that, one "
            "forward and one backward alternate.",
            "When no forward is left, the remaining backwards follow in the order of the micro-batches.",
        ),
        section="3 · The same bubble with less memory",
    ),
    Exercise(
        name="parallel.stages",
        lab=LAB,
        evidence=AnsweredCases(questions=stage_questions, measured=True),
        correct_points=1,
        cases=named_cases("one layer each", "one stage", "all alike", "any", "a large head"),
        budgets=(
            Budget(
                "above the least",
                0,
                2,
                "slowest stage",
                naive=10,
                unit="units",
                why="above the least possible",
                advice="Print the time of each of your stages. Which is the slowest, and which other stage "
                "could take one of its layers?",
                case=EVERY,
            ),
        ),
        hints=(
            "Ask the opposite question: given a limit, how many stages are needed if each takes layers until "
            "the next one would exceed the limit?",
            "Try limits, starting with the time of the longest layer, until that number of stages is at most "
            "`devices`.",
            "If fewer stages are needed than there are devices, end a stage early, so that every later stage "
            "still gets a layer.",
        ),
        section="4 · The slowest stage",
    ),
    Exercise(
        name="parallel.zero_bubble",
        lab=LAB,
        evidence=AnsweredCases(questions=pipeline_questions, measured=True),
        correct_points=1,
        cases=tuple(pipeline_case(*pm) for pm in ((1, 2), (2, 2), (3, 7), (6, 8), (4, 8))),
        budgets=(
            Budget(
                "steps",
                steps_in_three,
                2,
                "steps",
                naive=lambda sizes: steps_in_three(sizes) + _p_m(sizes)[0] - 1,
                unit="steps",
                why="3 m + p − 1",
                advice="Draw your schedule. Where does a device idle although one of its W is still open? "
                "Which device waits for a B while another device computes a W?",
                case=EVERY,
            ),
            Budget(
                "peak micro-batches",
                peak,
                2,
                "peak micro-batches",
                naive=lambda sizes: _p_m(sizes)[1],
                unit="micro-batches",
                why="as with 1F1B",
                advice="Activations are held until W. How many micro-batches of device d may wait for their "
                "W?",
                case=EVERY,
            ),
        ),
        hints=(
            "Start from 1F1B. There, device 0 holds p micro-batches and the last device only one. So the "
            "last device has room for p − 1 micro-batches whose B is done and whose W is not.",
            "If device d delays W by d micro-batches, gradients leave it earlier, and every device holds at "
            "most p micro-batches.",
            "After B of micro-batch i, device d runs W of micro-batch i − d, if there is one. The remaining "
            "W come at the end.",
        ),
        section="7 · A backward in two halves",
    ),
    Exercise(
        name="parallel.dispatch",
        lab=LAB,
        evidence=Communication(
            arguments=dispatch_arguments,
            calls=frozenset({"all_to_all", "all_gather", "all_reduce", "reduce_scatter"}),
        ),
        correct_points=2,
        cases=(
            ranks_case(1, tokens=4, width=8),
            ranks_case(3, tokens=12, width=8),
            Case(
                "4 ranks, all tokens to one expert",
                {"ranks": 4, "tokens": 16, "width": 8, "favourite": 2},
            ),
            ranks_case(4, tokens=64, width=64),
        ),
        budgets=(
            Budget(
                "bytes",
                lambda sizes: int(2.1 * activations(sizes)),
                3,
                "bytes of all ranks",
                naive=lambda sizes: CUT * 2 * _others(sizes) * activations(sizes),
                unit="B",
                why="each token there and back, and counts",
                advice="How many ranks need a given token? Which collective sends different rows to each "
                "rank? (Sending experts is no way out, because an expert is larger than a rank's tokens.)",
                case=EVERY,
            ),
        ),
        rtol=5e-6,
        atol=5e-6,
        hints=(
            "Sort the tokens by their expert (`torch.argsort`), so that the rows for each rank are "
            "consecutive. `torch.bincount(choice, minlength=ranks)` gives their counts.",
            "A receiver must know how many rows come. So exchange the counts first, with "
            "`all_to_all_single` on the tensor of counts.",
            "Then call `dist.all_to_all_single(got, rows, coming, leaving)`, with lists of numbers "
            "(`tolist()`). On the way back, the two lists change places. Finally, `y[order] = …` undoes the "
            "sorting.",
        ),
        section="8 · Experts",
    ),
    Exercise(
        name="parallel.layout",
        lab=LAB,
        evidence=AnsweredCases(questions=layout_questions, measured=True),
        correct_points=1,
        cases=(
            layout_case("small", 1, 8, 80),
            layout_case("small", 4, 8, 40, vary=True),
            layout_case("middle", 16, 4, 80, vary=True),
            Case("four clusters", {"clusters": "several"}),
        ),
        budgets=(
            Budget(
                "slower than the best",
                1,
                3,
                "time of a step",
                naive=50,
                unit="%",
                why="more than with the best layout",
                advice="If this is the case with four clusters, the worst of them counts. Print the parts "
                "of your layout's cost where a link is slow and where `half` is large. Which part is "
                "largest, and what would shrink it? Have you tried every `micro` and all six orders?",
                case=EVERY,
            ),
        ),
        hints=(
            "Two loops choose `tensor` and `pipeline` among the divisors of the number of GPUs, which gives "
            "`data`. Two more loops are for `micro` and for the six orders.",
            "`layouts.cost` raises `layouts.NoLayout` if one number does not divide another. Catch it with "
            "`try` and `except`, and `continue`.",
            "Skip layouts whose `memory` exceeds `cluster['memory']`. Of the others, keep the one with the "
            "fewest `seconds`.",
        ),
        section="9 · Three dimensions at once",
    ),
    Exercise(
        name="parallel.cut",
        lab=LAB,
        evidence=AnsweredCases(questions=cut_questions, measured=True),
        correct_points=1,
        cases=cut_cases(*CUT_KINDS),
        budgets=(
            Budget(
                "above the least",
                0,
                3,
                "weights held",
                naive=300,
                unit="%",
                why="over the least that a rank can hold",
                advice="Which linear layers does your plan leave whole? Would what reads them take a split "
                "tensor?",
                case=EVERY,
            ),
        ),
        hints=(
            "Walk through the modules in order, and keep for each name whether its tensor is whole or split.",
            "A linear layer with a split input has no choice: it is cut by rows, and gives a whole tensor. "
            "One with a whole input may be cut by columns or stay whole.",
            "There are few layers with a choice. Try all combinations, drop those in which a module gets "
            "what it cannot take, and keep the one that holds the fewest weights.",
        ),
        section="10 · Where the names belong",
    ),
)


_prediction = partial(prediction, "parallel", LAB)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "reduces",
        "All-reduces of one transformer layer, forward and backward together",
        "all-reduces",
        4,
        "Attention needs one forward and one backward, and so does the MLP. Q, K and V are products with the "
        "same X, so a rank adds up their three gradients of X before a single all-reduce.",
    ),
    _prediction(
        "across",
        "Time of an all-reduce of 100 MB in levels over 16 GPUs on two nodes, over its time on one node of 8",
        "×",
        None,
        "The part inside a node takes equally long in both cases: 2 · 7/8 · 100 MB at 450 GB/s and 14 "
        "messages of 5 µs are 0.46 ms. Between the nodes each link carries an eighth, and 12.5 MB at 50 "
        "GB/s and two messages take 0.26 ms more.",
        0.15,
    ),
    _prediction(
        "logits",
        "Bytes of gathering the logits of 50,304 words, over bytes of all-reducing three numbers per token",
        "×",
        8384,
        "For each token a rank sends (p − 1)/p · 50,304 logits in one case, and three numbers at 2 (p − 1)/p "
        "each in the other. The factor is 50,304 / 6.",
        0.1,
    ),
    _prediction(
        "causal",
        "Work of the last of four ranks over work of the first, with consecutive tokens and a causal mask",
        "×",
        None,
        "Rank r has r whole blocks below the diagonal and half a block on it. That is 3.5 blocks for the "
        "last rank and 0.5 for the first.",
        0.1,
    ),
    _prediction(
        "idle",
        "Share of the time for which four devices idle with 8 micro-batches",
        "%",
        None,
        "Each device works for 2 · 8 of 2 · (8 + 4 − 1) steps, so it idles for 3 of 11.",
        0.02,
    ),
    _prediction(
        "enough",
        "Least number of micro-batches with which 8 devices idle for at most 5 % of the time",
        "micro-batches",
        133,
        "7 / (m + 7) is at most 0.05 if m + 7 is at least 7 / 0.05 = 140.",
    ),
    _prediction(
        "chunks",
        "Share of the time for which four devices idle with 8 micro-batches and two chunks per device",
        "%",
        None,
        "A step is half as long, and there are 16 instead of 8 in each direction. Filling still takes 3 "
        "steps, so devices idle for 3 of 19.",
        0.02,
    ),
    _prediction(
        "load",
        "Load of the busiest of 8 experts over the mean load, with a fresh router",
        "×",
        None,
        "A fresh router sends nearly all tokens of a direction to the same expert. The most common of twelve "
        "directions has 1 / (1 + 1/2 + … + 1/12) = 0.32 of the tokens, which is 2.6 times an eighth. Some "
        "other directions go to the same expert.",
        0.3,
    ),
    _prediction(
        "rank_map",
        "Time of a step with a bad order of the ranks, over its time with the good order",
        "×",
        None,
        "In the bad order, tensor groups have neighbours on other nodes, and a ring is as slow as its "
        "slowest link. So the tensor part of the line above takes about 450 / 50 = 9 times as long (a "
        "little less, because the latency stays the same). The rest hardly changes, so the step grows by "
        "about eight times that part.",
        0.25,
    ),
    _prediction(
        "megatron",
        "Share of the dense 16-bit peak of 3,072 A100 that 502 PFLOP/s are",
        "%",
        None,
        "502 PFLOP/s / 3,072 are 163 TFLOP/s per GPU, and the peak of an A100 is 312 TFLOP/s.",
        0.03,
    ),
    _prediction(
        "domino",
        "Time of a layer with two products of 4 ms and two all-reduces of 2 ms, in two halves of the batch",
        "ms",
        None,
        "Products of half the batch take 2 ms each, the four of them 8 ms with nothing in between: while one "
        "half is computed, the other is reduced. Only the last half's all-reduce, 1 ms, has nothing to hide "
        "behind.",
        0.02,
    ),
)
