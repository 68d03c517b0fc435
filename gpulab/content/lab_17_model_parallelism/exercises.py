"""Lab 17: what its nine exercises ask.

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
    said = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in sizes.items())
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
                why="an all-reduce forward, one backward",
                advice="Which of y, dx, da and db are sums over the ranks? Which collective sums and leaves "
                "the sum everywhere?",
                case=EVERY,
            ),
        ),
        rtol=1.2e-5,
        atol=1.2e-5,
        hints=(
            "`F.gelu(x @ a) @ b` is this rank's part of y. The parts of all ranks add up to it.",
            "`part.backward(slope)` leaves gradients in x.grad, a.grad and b.grad. Which of them is "
            "complete?",
            "All-reduce y and x.grad, and nothing else. Reduce a copy of the part: `part.detach().clone()`.",
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
                why="a few numbers a token",
                advice="A softmax needs the maximum and the sum of a row. Which numbers of a rank are "
                "enough for them?",
                case=EVERY,
            ),
        ),
        rtol=1e-4,
        atol=1e-3,
        hints=(
            "The loss of a token is log Σ exp(logit) − logit of its label. Both terms can be put "
            "together from parts.",
            "First the maximum over all ranks (`op=dist.ReduceOp.MAX`), then the sum of exp(logit − "
            "maximum).",
            "Rank r has the words from r · rows on. A rank that does not have the label adds 0 to the "
            "label's logit; `torch.where` and `clamp` keep its index in range.",
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
                why="each block of keys and values three times",
                advice="Who needs the block that you send in the last round?",
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
                advice="With `dist.isend` a rank can receive while it sends. Two receives one after the "
                "other are two steps.",
                case=EVERY,
            ),
        ),
        rtol=4e-6,
        atol=4e-6,
        hints=(
            "Keep three things for each query: the largest score so far, the sum of exponentials "
            "relative to it, and the weighted sum of values.",
            "When a block raises the maximum, multiply the old sum and the old output by exp(old − "
            "new) first.",
            "In a round: `isend` the block to (rank + 1) % ranks, `recv` the next from (rank − 1) % "
            "ranks, wait for the send. `torch.stack([k, v])` is one message. After the last block "
            "nothing is sent.",
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
                advice="Every rank has the whole of `b_bias`: need it travel at all?",
                case=EVERY,
            ),
        ),
        rtol=8e-6,
        atol=8e-6,
        hints=(
            "Print the output of their layer with all weights 0 and a bias of 1, on one, two and four ranks.",
            "What is added before an all-reduce is added once for each rank.",
            "`a_bias` belongs to this rank's columns and is added before GELU; `b_bias` comes after the sum.",
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
                advice="Which device waits although its next input is there?",
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
                advice="A backward frees what its forward kept. When is the first one possible?",
                case=EVERY,
            ),
        ),
        hints=(
            "The last device can do F0 B0 F1 B1 F2 B2 … from its first input on. What must device d have "
            "done before its first gradient arrives?",
            "Device d starts with p − 1 − d forwards, or with all m if that is less. Then forward and "
            "backward alternate.",
            "When no forward is left, the remaining backwards follow in order.",
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
                why="counted above the least possible",
                advice="The head takes as long as some layers. Which stage should have fewer of them?",
                case=EVERY,
            ),
        ),
        hints=(
            "Turn it round: given a limit, how many stages are needed if each takes layers until the next "
            "one would break the limit?",
            "Try limits from the longest layer upwards until that number of stages is at most `devices`.",
            "If the filling needs fewer stages than there are devices, stop a stage early, so that each "
            "stage still to come has a layer.",
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
                advice="Draw your schedule: where does a device idle although a W of its own is open? Who "
                "waits for a W, and who for a B?",
                case=EVERY,
            ),
            Budget(
                "peak micro-batches",
                peak,
                2,
                "peak micro-batches",
                naive=lambda sizes: _p_m(sizes)[1],
                unit="micro-batches",
                why="as 1F1B",
                advice="Activations are held until W. How many may device d have under way that wait for W?",
                case=EVERY,
            ),
        ),
        hints=(
            "Start from 1F1B. Device 0 holds p micro-batches there, the last device holds one: it has room "
            "for p − 1 that have done B and wait for W.",
            "If device d puts W off by d micro-batches, gradients leave earlier, and all devices hold p.",
            "After B of micro-batch i device d does W of i − d, if there is one. The rest comes at the end.",
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
                advice="How many ranks need a token? Which collective sends other rows to each rank? "
                "An expert is larger than a rank's tokens.",
                case=EVERY,
            ),
        ),
        rtol=5e-6,
        atol=5e-6,
        hints=(
            "Sort the tokens by their expert (`torch.argsort`), then the rows for each rank lie together. "
            "`torch.bincount(choice, minlength=ranks)` says how many they are.",
            "The receiver must know how many rows come: exchange the counts first, with "
            "`all_to_all_single` on the tensor of counts.",
            "`dist.all_to_all_single(got, rows, output_split_sizes, input_split_sizes)`; on the way "
            "back the two lists change places. Then `y[order] = …` undoes the sorting.",
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
                advice="The worst of four clusters counts. Print the parts of your layout's cost where a "
                "link is slow, where `half` is large. Which part is largest, and what would shrink it?",
                case=EVERY,
            ),
        ),
        hints=(
            "Three loops give all (tensor, pipeline, data) whose product is the number of GPUs; two more are "
            "for `micro` and for the six orders.",
            "`layouts.cost` raises `NoLayout` where a number does not divide another: `try`, `continue`.",
            "Leave out what needs more than `cluster['memory']`; keep the layout with the least `seconds`.",
        ),
        section="9 · Three dimensions at once",
    ),
)


_prediction = partial(prediction, "parallel", LAB)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "reduces",
        "All-reduces of one transformer layer, forward and backward together",
        "all-reduces",
        4,
        "Attention has one forward and one backward, and so has the MLP. Q, K and V are products with the "
        "same X: a rank adds their three gradients of X up before one all-reduce.",
    ),
    _prediction(
        "across",
        "How many times as long an all-reduce of 100 MB takes in levels over 16 GPUs on two nodes as over "
        "8 on one",
        "×",
        None,
        "Inside a node both take the same: 2 · 7/8 · 100 MB at 450 GB/s and 14 messages of 5 µs, 0.46 ms. "
        "Between the nodes each link carries an eighth: 12.5 MB at 50 GB/s and two messages, 0.26 ms more.",
        0.15,
    ),
    _prediction(
        "logits",
        "How many times as many bytes gathering the logits of 50,304 words takes",
        "×",
        8384,
        "A rank sends (p − 1)/p · 50,304 logits a token, or three numbers at 2 (p − 1)/p each: 50,304 / 6.",
        0.1,
    ),
    _prediction(
        "causal",
        "How many times the work of the first of four ranks has the last one",
        "×",
        None,
        "Rank r has r whole blocks below the diagonal and half a block on it: 3.5 against 0.5.",
        0.1,
    ),
    _prediction(
        "idle",
        "Share of the time that four devices idle with 8 micro-batches",
        "%",
        None,
        "Each device works 2 · 8 of 2 · (8 + 4 − 1) steps: 3 of 11 are idle.",
        0.02,
    ),
    _prediction(
        "enough",
        "Micro-batches that 8 devices need to idle for at most 5 % of the time",
        "micro-batches",
        133,
        "7 / (m + 7) is at most 0.05 from m + 7 = 140 on.",
    ),
    _prediction(
        "chunks",
        "Idle share with two chunks of layers a device",
        "%",
        None,
        "A step is half as long and there are twice as many, but filling and draining take 3 of them as "
        "before: 3 of 19.",
        0.02,
    ),
    _prediction(
        "load",
        "How many times the mean load has the busiest of 8 experts, by this router",
        "×",
        None,
        "A fresh router sends all tokens of a direction much the same way, and the most common direction of "
        "twelve has a third of them: 1 / (1 + 1/2 + … + 1/12) is 0.32, 2.6 times an eighth. Others join it.",
        0.3,
    ),
    _prediction(
        "rank_map",
        "How many times as long a step takes when only the order of the ranks is a bad one",
        "×",
        None,
        "The tensor groups then have a neighbour on another node, and a ring is as slow as its slowest link: "
        "the tensor part of the line above takes 450 / 50 = 9 times as long, a little less with the latency "
        "that both have. The rest hardly changes, so the step grows by about eight times that part.",
        0.25,
    ),
    _prediction(
        "megatron",
        "502 PFLOP/s on 3,072 A100: what share of their dense 16-bit peak",
        "%",
        None,
        "502e15 / 3,072 is 163 TFLOP/s of 312.",
        0.03,
    ),
)
