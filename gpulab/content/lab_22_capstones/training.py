"""Lab 22, project B: what its three exercises ask. Correctness 40, score 40; the written report has 20.

| exercise | asks for | counted | naive | good | bound | points |
|---|---|---|---|---|---|---|
| plan | plan(model, cluster) | runs, and fits | | | | 10 |
| | all dimensions, recomputation, checkpoints | longer than the best, % | 100 | 1 | 0 | 12 |
| timetable | timetable(devices, batches, times, message, room) | right | | | | 10 |
| | more room than devices | above the bound, slow links, % | 32.3 | 5.8 | 0 | 4 |
| | a little more room | above the bound, six devices, % | 32.0 | 25 | 0 | 4 |
| | less room than devices | above the bound, little room, % | 90.4 | 35.5 | 0 | 4 |
| train | train(table, weight, tokens, …), on 4 ranks | as one process | | | | 20 |
| | micro-batches | messages, at least | – | 96 | – | 2 |
| | activations and one table | bytes | 393,216 | 196,608 | 98,304 | 7 |
| | a pipeline that is full | steps | 98 | 44 | 14 | 7 |

Derivations:

**plan**: `distributed.runs.days` is the judge's clock, its best found by trying every layout, with the fewest
recomputed layers that fit, and the interval that wastes least. The last case has several clusters, on each of
which another shorter search loses.

**timetable**: the last device starts after p − 1 forwards and messages, then has m · (F + B + W) to do: no
schedule ends earlier. Naive is 1F1B with W right behind B, with no more under way than there is room for.
Good: the best of list schedules with different numbers of forwards in advance, 10 % added.

**train** at 4 ranks, a batch of 16 tokens, width 128, 48 words, 2 steps: activations cross 3 links forth
and back, 6 · 16 · 128 · 4 = 49,152 B a step; the table lies on the first and on the last rank, which
exchange their gradients, 2 · 48 · 128 · 4 = 49,152 B. An all-reduce over four ranks is 6 tables, 147,456 B,
and naive is what is left of them where each number is cut to three bytes. Bound: activations alone: a
layer's gradient needs its inputs and its outputs' gradients. To be that, tokens are all different (equal
ones could share a message), only messages of whole micro-batches in float32 count as such (shorter numbers
would make the bytes fewer, and empty messages their number larger), and weights are wide: to bring them to
one rank and back takes 6 · 128 · 128 · 4 B and a table, 417,792 B, more than naive. Each micro-batch is a
message on each link, forth and back: 8 · 6 a step. Steps are messages that wait for one another: one
micro-batch after the other 8 · 6 + 1 a step, and the two that exchange.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gpulab.checks.builders import prediction
from gpulab.checks.evidence import AnsweredCases, Communication
from gpulab.checks.spec import Array, Budget, Case, Exercise, Prediction, Scalar, Sizes
from gpulab.simulator import hardware
from gpulab.subjects.distributed.traffic import Traffic
from gpulab.subjects.models import known

LAB = "22"
Numbers = np.random.Generator
H100 = hardware.find("H100")
CUT = 0.75  # of the bytes of numbers that are cut to three bytes, which the tolerance lets pass

# ---------------------------------------------------------------- plans


def model(name: str, sequence: int, batch: int, tokens: float) -> dict[str, Any]:
    """A published model as the cost model takes it; `batch` in sequences, `tokens` of the whole run."""
    config = known.find(name).config
    sizes = {"layers": config.layers, "width": config.width, "heads": config.heads}
    return {**sizes, "sequence": sequence, "batch": batch, "tokens": tokens}


# Links and memory of data sheets. Of their peak H100s reach 60 %, half of that at 500 tokens: stand-ins. One
# GPU fails every 54 days · 16,384 / 419 (A. Grattafiori et al., "The Llama 3 Herd of Models", 2024, 3.3.4).
CLUSTER: dict[str, Any] = {
    "nodes": 16,
    "per_node": 8,
    "memory": float(H100.dram_bytes),
    "rate": 0.6 * float(H100.peak("float16", tensor=True)),
    "half": 500,
    "inside": float(hardware.link("NVLink 4").per_direction),
    "between": float(hardware.link("InfiniBand NDR").per_direction),
    "latency": 5e-6,
    "storage": 20e9,
    "mtbf": 54 * 86_400 * 16_384 / 419,
    "restart": 600.0,
}
_LITTLE = {"nodes": 1, "memory": 40e9, "inside": float(hardware.link("PCIe 5.0 ×16").per_direction)}
_LARGE = {"half": 4000, "between": 12.5e9, "storage": 1e9}
SEVERAL = (
    (("Llama 3 8B", 8192, 512, 1e12), _LITTLE),
    (("Llama 2 7B", 4096, 512, 1e12), _LARGE),
    (("GPT-3", 2048, 512, 300e9), {"nodes": 8}),
)
OTHERS = (
    (("Llama 3 8B", 8192, 256, 1e12), _LITTLE | {"memory": 36e9}),
    (("Llama 2 7B", 4096, 512, 2e12), _LARGE | {"half": 3000}),
    (("GPT-3", 2048, 256, 300e9), {"nodes": 8, "storage": 5e9}),
)
SINGLE = {
    "GPT-3": ("GPT-3", 2048, 512, 300e9),
    "Llama 3 8B": ("Llama 3 8B", 8192, 256, 1e12),
    "Llama 2 70B": ("Llama 2 70B", 4096, 256, 2e12),
}


def plan_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    if "clusters" in sizes:
        several = OTHERS if sizes["clusters"] == "others" else SEVERAL
        return [(model(*asked), CLUSTER | changes) for asked, changes in several]
    memory = 1e9 * float(sizes["GB"])
    return [(model(*SINGLE[str(sizes["model"])]), CLUSTER | {"nodes": int(sizes["nodes"]), "memory": memory})]


def plan_case(name: str, nodes: int, gigabytes: int) -> Case:
    said = f"{name}, {nodes} node{'s' * (nodes > 1)} with {gigabytes} GB a GPU"
    return Case(said, {"model": name, "nodes": nodes, "GB": gigabytes})


# ---------------------------------------------------------------- timetables


def table_case(
    name: str, devices: int, batches: int, times: tuple[int, int, int], message: float, room: int
) -> Case:
    f, b, w = times
    sizes = {"devices": devices, "batches": batches, "F": f, "B": b, "W": w, "message": message, "room": room}
    return Case(name, sizes)


def table_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    times = {kind: int(sizes[kind]) for kind in "FBW"}
    return [
        (int(sizes["devices"]), int(sizes["batches"]), times, float(sizes["message"]), int(sizes["room"]))
    ]


TABLES = (
    table_case("one device", 1, 3, (1, 1, 1), 0, 3),
    table_case("two devices, room for one", 2, 3, (1, 2, 1), 0.5, 1),
    table_case("more room than work", 3, 2, (1, 1, 1), 0, 9),
    table_case("slow links", 4, 12, (2, 3, 2), 2, 8),
    table_case("six devices", 6, 12, (2, 2, 1), 1, 7),
    table_case("little room", 6, 12, (3, 2, 3), 0.5, 4),
)


def _table_budget(case: str, limit: float, naive: float, advice: str) -> Budget:
    return Budget(
        "above the bound",
        limit,
        4,
        f"time, {case}",
        naive=naive,
        bound=0,
        unit="%",
        why="more than the last device must take",
        advice=advice,
        case=case,
    )


# ---------------------------------------------------------------- training


def _labels(numbers: Numbers, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    return numbers.integers(0, int(sizes["words"]), shape)


def _tokens(numbers: Numbers, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    """All different, where there are as many words."""
    words = int(sizes["words"])
    return numbers.permutation(words)[: shape[0]] if shape[0] <= words else _labels(numbers, shape, sizes)


def _scaled(numbers: Numbers, shape: tuple[int, ...], sizes: Sizes) -> np.ndarray:
    return numbers.standard_normal(shape) / np.sqrt(shape[-1])


def train_arguments(sizes: Sizes) -> tuple[Array | Scalar, ...]:
    width, words, tokens = (int(sizes[name]) for name in ("width", "words", "tokens"))
    return (
        Array("table", (words, width), fill=_scaled, placement="replicated"),
        Array("weight", (width, width), fill=_scaled),
        Array("tokens", (tokens,), "int64", fill=_tokens, placement="replicated"),
        Array("labels", (tokens,), "int64", fill=_labels, placement="replicated"),
        Scalar("batches", int(sizes["batches"])),
        Scalar("steps", int(sizes["steps"])),
        Scalar("rate", float(sizes["rate"]), "float64"),
        Array("new_table", (words, width), role="out"),
        Array("new_weight", (width, width), role="out"),
    )


def train_case(
    ranks: int, tokens: int, width: int, words: int, batches: int, steps: int, rate: float = 2
) -> Case:
    name = f"{ranks} rank{'s' * (ranks > 1)}, {tokens} tokens in {batches}, {steps} step{'s' * (steps > 1)}"
    sizes = {"ranks": ranks, "tokens": tokens, "width": width, "words": words}
    return Case(name, {**sizes, "batches": batches, "steps": steps, "rate": rate})


def activations(sizes: Sizes) -> int:
    """Bytes over all links in the whole training, forth and back."""
    steps, ranks, tokens, width = (int(sizes[name]) for name in ("steps", "ranks", "tokens", "width"))
    return steps * 2 * (ranks - 1) * 4 * tokens * width


def tables(sizes: Sizes, each_step: int) -> int:
    """Bytes of so many tables in each step."""
    return int(sizes["steps"]) * each_step * 4 * int(sizes["words"]) * int(sizes["width"])


def micro_batches(sizes: Sizes) -> int:
    """Messages of micro-batches, each on every link forth and back, in the whole training."""
    return int(sizes["steps"]) * int(sizes["batches"]) * 2 * (int(sizes["ranks"]) - 1)


def sent_micro_batches(traffic: Traffic, sizes: Sizes) -> int:
    """Messages that hold a micro-batch's activations in float32, or more: shorter ones are none."""
    steps, batches, ranks = (int(sizes[name]) for name in ("steps", "batches", "ranks"))
    whole = activations(sizes) / max(1, steps * batches * 2 * (ranks - 1))
    return sum(count for (_, size), count in traffic.sizes.items() if size >= whole)


def one_by_one(sizes: Sizes) -> int:
    """Messages one after the other: micro-batch by micro-batch forth and back, and the exchange."""
    return micro_batches(sizes) + int(sizes["steps"])


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="training_project.plan",
        lab=LAB,
        evidence=AnsweredCases(questions=plan_questions, measured=True),
        correct_points=10,
        cases=(
            plan_case("Llama 3 8B", 1, 80),
            plan_case("Llama 2 70B", 8, 64),
            Case("three clusters", {"clusters": "several"}),
        ),
        budgets=(
            Budget(
                "longer than the best",
                1,
                12,
                "days of the run",
                naive=100,
                bound=0,
                unit="%",
                why="more than with the best plan",
                advice="The worst of three clusters counts. Which keys of your plan does your search "
                "never vary?",
            ),
        ),
        hints=(
            "Write five loops: over tensor, pipeline (which determine data), micro, order and recompute. For "
            "a combination that is impossible or does not fit, `runs.days` raises NoLayout. Catch it and "
            "continue.",
            "The days are steps · seconds · a factor for failures, and the interval affects only that "
            "factor, so you have to find it only once. Lab 18: it is about √(2 · C · M), with C = "
            "`runs.saving(model, cluster)` and M = mtbf / GPUs.",
            "More recomputation takes longer, so the smallest number of layers that fits is the best for its "
            "layout. If a plan does not fit with all layers recomputed, larger micro-batches do not fit "
            "either.",
        ),
        section="2 · Milestone 1: the plan",
    ),
    Exercise(
        name="training_project.timetable",
        lab=LAB,
        evidence=AnsweredCases(questions=table_questions, measured=True),
        correct_points=10,
        cases=TABLES,
        budgets=(
            _table_budget(
                "slow links",
                5.8,
                32.3,
                "While a message travels, a device could start another micro-batch. Do you use all "
                "of the room?",
            ),
            _table_budget(
                "six devices",
                25,
                32,
                "Draw the run with `plot.schedule`. Where is a device idle although it could do a W?",
            ),
            _table_budget(
                "little room",
                35.5,
                90.4,
                "A W frees room. If there is little room, can W still wait until the end?",
            ),
        ),
        hints=(
            "Simulate while you schedule: store for each device when it is free, and for each piece of work "
            "when the work that it depends on is done. Then let a rule choose the next piece.",
            "A good rule is to take the piece that can start first, and among equals B before F before W. "
            "Take an F only if there is room. A W fills time that would otherwise be idle.",
            "What matters most is how many micro-batches a device starts before its first B. Try all numbers "
            "from 1 to `room`, also smaller ones on later devices, `simulate` each and keep the best.",
        ),
        section="3 · Milestone 2: the timetable",
    ),
    Exercise(
        name="training_project.train",
        lab=LAB,
        evidence=Communication(
            arguments=train_arguments,
            calls=frozenset({"all_reduce", "broadcast"}),
            counts={"micro-batches": sent_micro_batches},
        ),
        correct_points=20,
        cases=(
            train_case(1, 6, 4, 7, 2, 2),
            train_case(3, 12, 8, 10, 3, 3),
            train_case(4, 16, 128, 48, 8, 2),
        ),
        budgets=(
            Budget(
                "micro-batches",
                micro_batches,
                2,
                "messages",
                sense=">=",
                unit="whole micro-batches",
                why="each micro-batch on each link, forward and back",
                advice="Does each rank use only its own weight, and does each micro-batch travel separately?",
            ),
            Budget(
                "bytes",
                lambda s: activations(s) + tables(s, 2),
                7,
                "bytes",
                naive=lambda s: activations(s) + CUT * tables(s, 6),
                bound=activations,
                unit="B",
                why="activations forward, gradients back, and two gradients of the table",
                advice="Which ranks use the table? Which other ranks receive its gradient?",
            ),
            Budget(
                "steps",
                lambda s: 2 * int(s["steps"]) * (int(s["batches"]) + int(s["ranks"]) - 1),
                7,
                "messages in a row",
                naive=one_by_one,
                bound=lambda s: int(s["steps"]) * (2 * (int(s["ranks"]) - 1) + 1),
                unit="steps",
                why="2 (m + p − 1) a step: a pipeline that is kept full",
                advice="Draw the record of the network. Does a rank wait for its send before it continues? "
                "Does the second micro-batch start as soon as the first has moved on?",
            ),
        ),
        rtol=1e-4,
        atol=1e-5,
        hints=(
            "Forward of a micro-batch: receive the input (or look it up), compute, `isend` the output to the "
            "next rank, and keep input and output. Backward: receive the gradient, call "
            "`output.backward(gradient)`, and `isend` the input's gradient.",
            "The loss of a micro-batch counts 1 / batches. Gradients add up in `.grad` over the "
            "micro-batches. Change the weights after the last one, and then set `.grad = None`.",
            "The table has two gradients, one from looking up on the first rank and one from the logits on "
            "the last. Both ranks need the sum: exchange the gradients with `isend` and `recv`, wait, and "
            "add them. Then both ranks make the same step.",
        ),
        section="4 · Milestone 3: the pipeline",
    ),
)


_prediction = partial(prediction, "training_project", LAB)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "states",
        "GPT-3 has 174 billion parameters in its layers, whose states take 16 bytes each. Smallest number of "
        "H100s with 80 GB that they fit on",
        "GPUs",
        35,
        "174e9 · 16 / 80e9 = 34.8, so 35.",
        0.02,
    ),
    _prediction(
        "room",
        "Four devices, 8 micro-batches, F = B = W = 1, no message time. Duration of `plain` with room for 2 "
        "micro-batches, divided by that with room for 4",
        "×",
        None,
        "A device that holds two micro-batches waits until the first comes back before it starts a third. "
        "The way to the last device and back takes 2 · 4 steps, and only two micro-batches share it.",
        0.1,
    ),
    _prediction(
        "table",
        "4 ranks, 16 tokens, width 128, a table of 48 words. Share of a step's bytes that are the table's "
        "two gradients",
        "%",
        50,
        "Activations and their gradients take 6 · 16 · 128 · 4 B, and the table's gradients 2 · 48 · 128 · 4 "
        "B. Both are 49,152 B.",
        0.02,
    ),
)
