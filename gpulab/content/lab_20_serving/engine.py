"""Lab 20, part A: what the six exercises on the engine of an inference service ask.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| queue | queue(rate, service, cv, limit) | utilisation, variation, Little | answers | – | – | 4 |
| measure | measure(log, ttft, tpot) | what a client sees | answers | – | – | 4 |
| admit | admit(queue, running, blocks, slots), a policy | continuous batching | steps | 2,048 | 1,270 | 6 |
| | | | steps/first come, first served | 1.5 | 1 | |
| chunk | chunk(state), a policy | tokens that cost no time | longest gap/weights | 5 | 1.5 | 5 |
| | | | time/whole prompts | 1.5 (64 tokens) | 0.9 | |
| preempt | preempt(state), a policy | optimism, and a way back | computed twice, % | 25 … 33 | 4 | 6 |
| | | | mean latency/reserving | 1 | 0.35 | |
| | | | slowest urgent TTFT, s | 10 … 18 | 2 | |
| prefix | prefix(prompts, capacity, size) | keys and values used again | answers | – | – | 4 |

A policy is asked in each step of an engine that is the judge's: lengths of outputs are nowhere else, and what
has ended is told step by step (`gpulab.serving.decisions`).

Derivations:

**admit**: 64 outputs of alternately 16 and 256 tokens, all there at the start, 8 slots, a token per request
and step. Static batches of 8 hold 4 of each and last 256 steps: 8 × 256 = 2,048. All tokens are 32 · 16 +
32 · 256 = 8,704; 8 slots make no more than 8 a step: 1,088 steps at least. First come, first served, a slot
refilled as soon as it is free: 1,152, because at the end slots stand empty while the last long ones run.
1,152 · 1.1 = 1,267, rounded to 1,270. Nobody overtakes; who starts all that fit makes the steps of first
come, first served, exactly. Who rounds the blocks of prompt and output each by itself serves fewer at a time:
8 + 40 tokens are 3 blocks, not 4.

**chunk**: a step lasts max(FLOPs ÷ peak, bytes ÷ bandwidth). Reading P weights of b bytes takes P b/B,
computing n tokens 2 P n/R: up to n = R b/(2 B), 295 tokens on an H100, the tokens of a prompt add nothing
but attention. So with that many a step, decoding included, the gaps between tokens stay near P b/B, and
prompts use the arithmetic that decoding leaves idle. Whole prompts of 4,096 to 8,192 tokens stop everybody
for 20 reads of the weights and more. Weights of 4 bits are read in a quarter of the time, in which an H100
computes 73 tokens: no constant suits that and the L4, whose ridge is at 403, and who forgets the bits of a
weight is at four times the gap and more, the naive 5. Pieces up to the ridge: at most 1.4 reads, and 0.60
(A100) to 0.84 (L4) of the time, over 8 seeds.

**preempt**: outputs of 160 tokens on average, of which 1,024 might come; 800 blocks. Who reserves serves 10
at a time, who takes what is needed now about 50: 0.29 to 0.31 of the mean latency, over 8 seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gpulab.checks.builders import answered, prediction
from gpulab.checks.cases import of_kinds
from gpulab.checks.evidence import Dialogues
from gpulab.checks.spec import EVERY, Budget, Exercise, Prediction, Sizes
from gpulab.subjects import serving
from gpulab.subjects.serving import requests, traces

LAB = "20"

Question = tuple[dict[str, Any], list[dict[str, Any]]]


def as_question(machine: serving.Machine, trace: list[serving.Request]) -> Question:
    return machine.to_data(), requests.to_data(trace)


# ---------------------------------------------------------------- queues and measures


def queue_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(rate per second, mean service in seconds, its coefficient of variation, limit in seconds)."""
    kind, asked = str(sizes["kind"]), list[tuple[Any, ...]]()
    for _ in range(5):
        service = round(float(generator.uniform(0.01, 2.0)), 4)
        load = float(generator.uniform(0.3, 0.95))
        cv = {"M/M/1": 1.0, "M/D/1": 0.0}.get(kind, round(float(generator.uniform(1.2, 4.0)), 2))
        limit = round(service * float(generator.uniform(1.5, 10)), 4)
        if kind == "too many":
            load = float(generator.uniform(1.0, 2.0)) if asked else 1.0
            service = round(service, 2)
        if kind == "a limit that nothing keeps":
            limit = round(service * float(generator.uniform(0.2, 1.0)), 4)
        rate = 1 / service if load == 1.0 else round(load / service, 4)
        asked.append((rate, service, cv, limit))
    if kind == "too many":  # 1/0.5 · 0.5 is exactly 1
        asked[0] = (2.0, 0.5, 1.0, 3.0)
    return asked


def log_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(log, TTFT limit, TPOT limit), whole milliseconds; the log has rows [number, event, time]."""
    kind = str(sizes["kind"])
    count = {"few": 3, "one": 1}.get(kind, int(generator.integers(30, 120)))
    asked = []
    for _ in range(3):
        log: list[list[Any]] = []
        clock = int(generator.integers(0, 10_000))
        held = 0
        for number in range(count):
            clock += int(generator.exponential(120))
            if kind == "a late sender" and number % 20 == 9:
                held = int(generator.integers(1000, 4000))
            held = max(0, held - 100)
            sent = clock + held
            log += [[number, "due", clock], [number, "sent", sent]]
            now, tokens = sent + int(generator.exponential(150)) + 5, int(generator.integers(1, 40))
            if kind == "single tokens":
                tokens = int(generator.integers(1, 3))
            last = number == count - 1
            fails = kind == "errors" and (last or generator.random() < 0.3)
            if fails:
                tokens = int(generator.integers(0, 5))
                now += 3000 * last  # the error is the last event of all
            for _ in range(tokens):
                log.append([number, "token", now])
                now += int(generator.integers(5, 60))
            log.append([number, "error" if fails else "end", now])
        if kind == "all fail":
            log = [row for row in log if row[1] in ("due", "sent")]
            log += [[number, "error", clock + 50 + number] for number in range(count)]
        log = [log[i] for i in generator.permutation(len(log))]
        asked.append((log, int(generator.integers(80, 400)), int(generator.integers(20, 40))))
    return asked


# ---------------------------------------------------------------- policies


def admit_questions(sizes: Sizes, generator: np.random.Generator) -> list[Question]:
    """A machine and requests, as data; every step lasts a unit."""
    kind = str(sizes["kind"])
    if kind == "64 in 8 slots":
        return [as_question(serving.Machine(8, 10_000, reserve=True), traces.alternating(64))]
    asked = list[Question]()
    for _ in range(2):
        slots, blocks = int(generator.integers(2, 6)), 10_000
        trace = [
            serving.Request(
                n,
                0.0,
                int(generator.integers(1, 60)),
                int(generator.integers(1, 40)),
                int(generator.integers(40, 90)),
            )
            for n in range(int(generator.integers(8, 20)))
        ]
        if kind == "few blocks":  # the longest request alone fills two thirds of them
            blocks = 14
            if asked:  # 3 blocks each; who rounds prompt and output each by itself wants 4 for the fifth
                slots, blocks = 6, 15
                trace = [replace(r, prompt=8, output=min(r.output, 40), most=40) for r in trace]
        if kind == "over time":
            times = sorted(float(t) for t in generator.integers(0, 200, len(trace)))
            trace = [replace(r, arrival=t) for r, t in zip(trace, times, strict=True)]
        if kind == "one slot":
            slots = 1
        asked.append(as_question(serving.Machine(slots, blocks, reserve=True), trace))
    return asked


def chunk_machines(kind: str) -> list[serving.Machine]:
    """The machines of a case: one GPU, or all of them, and the H100 once more with weights of 4 bits."""
    gpus = ("H100", "L4", "A100") if kind == "all" else (kind,)
    machines = [serving.fitting("Llama 3 8B", gpu, slots=32) for gpu in gpus]
    if kind == "all":
        machines.append(replace(machines[0], times=serving.times("Llama 3 8B", "H100", bits=4)))
    return machines


def chunk_questions(sizes: Sizes, generator: np.random.Generator) -> list[Question]:
    """Eight that talk, and six with long prompts that come while they do."""
    kind = str(sizes["kind"])
    asked = []
    for machine in chunk_machines(kind):
        read = machine.times.seconds(serving.Work(1))  # seconds in which the weights are read
        trace = [
            serving.Request(n, 0.0, int(generator.integers(20, 100)), int(generator.integers(200, 400)), 1000)
            for n in range(8)
        ]
        at = 60 * read
        for n in range(8, 14):
            prompt = int(generator.integers(4096, 8192))
            trace.append(serving.Request(n, round(at, 6), prompt, int(generator.integers(5, 30)), 1000))
            at += read * float(generator.uniform(10, 30))
        asked.append(as_question(machine, trace))
    return asked


def preempt_questions(sizes: Sizes, generator: np.random.Generator) -> list[Question]:
    """A crowd that is there from the start, and a few urgent ones that come later."""
    kind = str(sizes["kind"])
    count, urgent, blocks, slots = {
        "two that grow": (2, 0, 8, 4),
        "few slots": (40, 4, 400, 6),
        "a small crowd": (40, 4, 300, 64),
    }.get(kind, (100, 10, 800, 256))
    if kind == "two that grow":  # 3 blocks each at the start, 7 each at the end
        trace = [serving.Request(n, 0.0, 40, 70, 80) for n in range(2)]
        return [as_question(serving.Machine(slots, blocks, times=serving.times("Llama 3 8B", "L4")), trace)]
    crowd = traces.Lengths(200, 0.5, 1024, 120, 0.8, 1024).draw(generator, [0.0] * count)
    span = 20 if count > 50 else 8
    times = sorted(float(t) for t in generator.uniform(1, span, urgent))
    hurried = traces.Lengths(100, 0.5, 1024, 40, 0.5, 1024).draw(generator, times)
    trace = crowd + [replace(r, number=count + n, priority=1) for n, r in enumerate(hurried)]
    return [as_question(serving.Machine(slots, blocks, times=serving.times("Llama 3 8B", "L4")), trace)]


# ---------------------------------------------------------------- prefixes


def prefix_questions(sizes: Sizes, generator: np.random.Generator) -> list[tuple[Any, ...]]:
    """(prompts, capacity in blocks, tokens of a block); a prompt is a list of token numbers."""
    kind, asked = str(sizes["kind"]), []

    def words(count: int) -> list[int]:
        return [int(token) for token in generator.integers(0, 9, count)]

    for _ in range(3):
        size, capacity = int(generator.integers(2, 5)), 1000
        if kind == "a common start":
            start = words(4 * size + 1)
            prompts = [start + words(int(generator.integers(0, 9))) for _ in range(5)]
        elif kind == "conversations":
            talks = [words(6) for _ in range(3)]
            prompts = []
            for turn in generator.integers(0, 3, 10):
                talks[turn] = talks[turn] + words(int(generator.integers(3, 9)))
                prompts.append(list(talks[turn]))
        elif kind == "the same block elsewhere":
            block = words(size)
            prompts = [
                words(size) + block,
                block + words(1),
                words(size) + block + [1],
                block + block + block,
            ]
        elif kind == "asked again":
            first = words(3 * size)
            prompts = [first, first, [*first, 1], first[:-1], first[: 2 * size], first]
        elif kind == "shorter than a block":
            prompts = [[1], [1], [], words(size - 1), words(size)]
        else:  # not all fits
            capacity = int(generator.integers(3, 7))
            starts = [words(2 * size) for _ in range(3)]
            prompts = [
                starts[int(generator.integers(0, 3))] + words(int(generator.integers(0, 3 * size)))
                for _ in range(14)
            ]
            if kind == "longer than the cache":
                long = words((capacity + 2) * size + 1)
                prompts = [starts[0] + [1], long, long, long[: 2 * size + 1], starts[0] + [1], long]
        asked.append((prompts, capacity, size))
    return asked


# ---------------------------------------------------------------- the exercises


_answered = partial(answered, "serve", LAB)


def _policy(
    name: str,
    points: float,
    kinds: tuple[str, ...],
    questions: Callable[[Sizes, np.random.Generator], list[Question]],
    budgets: tuple[Budget, ...],
    hints: tuple[str, str, str],
    section: str,
) -> Exercise:
    return Exercise(
        name=f"serve.{name}",
        lab=LAB,
        evidence=Dialogues(
            questions=questions,
            decorator="@serving.admission" if name == "admit" else "@serving.policy",
        ),
        correct_points=points,
        cases=of_kinds(*kinds),
        budgets=budgets,
        hints=hints,
        section=section,
    )


EXERCISES: tuple[Exercise, ...] = (
    _answered(
        "queue",
        4,
        ("M/M/1", "M/D/1", "long tails", "too many", "a limit that nothing keeps"),
        queue_questions,
        (
            "ρ = rate × service. The formula gives the wait. The latency of a request is its wait plus its "
            "service.",
            "Little's law: the mean number of requests in the system is rate × mean latency.",
            "Set the latency equal to the limit and solve for the rate. With w = limit − service, the "
            "equation is 2 w (1 − rate · s) = rate · s² (1 + cv²). Collect the terms with `rate` on one "
            "side.",
        ),
        "1 · Waiting",
        rtol=1e-6,
    ),
    _answered(
        "measure",
        4,
        ("one", "few", "plain", "a late sender", "single tokens", "errors", "all fail"),
        log_questions,
        (
            "First collect the rows into one record per request: when it was due, the sorted times of its "
            "tokens, and whether it failed.",
            "The p-th percentile of n values is number ⌈p n/100⌉ of the sorted values, counted from 1.",
            "Requests that failed are in no percentile, but their tokens count for tokens per second, and "
            "their last event may end the measured time. Requests with one token have a TTFT but no TPOT, "
            "and they keep the TPOT limit.",
        ),
        "2 · What a client sees",
        rtol=1e-9,
    ),
    _policy(
        "admit",
        2,
        ("few blocks", "over time", "one slot", "64 in 8 slots"),
        admit_questions,
        (
            Budget(
                "steps",
                1270,
                3,
                "steps",
                naive=2048,
                unit="steps",
                why="at least 1,088: 8,704 tokens in 8 slots",
                advice="It takes {times} × the steps. When a short request has finished, which request takes "
                "its slot in the next step?",
            ),
            Budget(
                "started",
                1,
                1,
                "all that fit",
                naive=1.5,
                unit="× the steps of first come, first served",
                why="no request waits that could start",
                advice="In some step, the first request of the queue did not start although a slot and "
                "enough blocks were free. How many blocks do 8 tokens and at most 40 more reserve?",
                case=EVERY,
            ),
        ),
        (
            "The engine calls the function in every step. Look at what is free now. You do not need "
            "`running`.",
            "Go through the queue from its front as long as a slot is free and there are enough blocks. Stop "
            "at the first request that does not fit.",
            "A request of p tokens and at most m more reserves ⌈(p + m)/16⌉ blocks. Subtract them from the "
            "free blocks before you look at the next request.",
        ),
        "4 · Batches",
    ),
    _policy(
        "chunk",
        1,
        ("H100", "L4", "all"),
        chunk_questions,
        (
            Budget(
                "longest gap",
                1.5,
                2,
                "longest gap",
                naive=5,
                unit="reads of the weights",
                why="the time of a token, and a little more",
                advice="A request waited {times} × that long for its next token. How many tokens were in "
                "that step, on the machine that reads its weights in the shortest time?",
            ),
            Budget(
                "time",
                0.9,
                2,
                "time",
                naive=1.4,
                unit="× that of whole prompts",
                why="prompts can use the arithmetic that decoding leaves idle",
                advice="Pieces that are too small read all weights for only a few tokens. How many tokens "
                "can be computed while the weights are read once?",
            ),
        ),
        (
            "Admit as many requests as there are free slots. Then distribute a fixed number of tokens: each "
            "request that decodes takes one, and the prompts get the rest in their order.",
            "A step computes n tokens in n × per_token ÷ peak seconds and reads the weights in weights ÷ "
            "bandwidth seconds. For which n are the two equal?",
            "`prefill` gives each prompt min(left, what is still free). Include the requests that you admit "
            "in this step; they are in `waiting`, not in `running`.",
        ),
        "5 · Long prompts in pieces",
    ),
    _policy(
        "preempt",
        1,
        ("two that grow", "few slots", "a small crowd", "a crowd"),
        preempt_questions,
        (
            Budget(
                "recomputed",
                4,
                1,
                "computed twice",
                naive=20,
                unit="% of all tokens",
                why="a request that runs should finish",
                advice="Which request do you throw out? And how soon does the next admission make another "
                "preemption necessary?",
            ),
            Budget(
                "time",
                0.35,
                2,
                "mean latency",
                naive=1,
                unit="× that of reserving",
                why="most outputs are short",
                advice="How many blocks are free in most steps? Admit requests by what they need in the next "
                "step, not by what they might need later.",
            ),
            Budget(
                "urgent",
                2.0,
                2,
                "urgent requests",
                naive=10,
                unit="s to the slowest first token",
                why="they go first, and replace another request if they have to",
                advice="An urgent request waited {times} × that long. Is it admitted before all others, even "
                "if no block is free?",
            ),
        ),
        (
            "After the next step, a request with t tokens in the cache holds ⌈(t + n)/16⌉ blocks, where n is "
            "1 if it decodes and `left` if it has a prompt to process. Add this up over all requests that "
            "will run.",
            "Sort the running requests: urgent ones first, then by arrival. As long as the sum is too large, "
            "preempt the last one. Include urgent requests that are waiting in the sum from the start.",
            "If no request had to be preempted, admit others from the front of the queue. Leave part of the "
            "blocks free, say a tenth, so that running requests can grow.",
        ),
        "6 · When memory runs out",
    ),
    _answered(
        "prefix",
        4,
        (
            "a common start",
            "conversations",
            "the same block elsewhere",
            "asked again",
            "shorter than a block",
            "not all fits",
            "longer than the cache",
        ),
        prefix_questions,
        (
            "The keys and values of a block also depend on all tokens before it. So what must be part of the "
            "block's name?",
            "Use as a block's name the tuple of all tokens up to its end. Count the names that are in the "
            "cache from the front, and stop at the first that is not. The last token of the prompt is never "
            "a hit, so look at no more than (len(prompt) − 1) // size blocks.",
            "Then enter all len(prompt) // size full blocks into the cache, with the number of this prompt "
            "as the time of use. As long as there are too many, remove the block with the smallest time. If "
            "several have the same time, remove the one with the longest name.",
        ),
        "7 · Prompts that begin alike",
    ),
)


_prediction = partial(prediction, "serve", LAB)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "wait_at_90",
        "Arrivals are random, and so are service times, 1 s on average. At 50 % utilisation the mean wait "
        "is 1 s. The mean wait at 90 %",
        "s",
        9,
        "ρ/(1 − ρ) · 1 s = 0.9/0.1 · 1 s = 9 s. The load is not even twice as high, and the wait is nine "
        "times as long.",
        tolerance=0.1,
    ),
    _prediction(
        "samples_for_p99",
        "The fewest samples with which the 99th percentile (nearest rank) is not the slowest of all",
        "samples",
        100,
        "The rank ⌈0.99 n⌉ is below n if n is at least 100: of 100 samples it is number 99. With fewer "
        "samples, p99 is the maximum under another name.",
    ),
    _prediction(
        "decode_batch",
        "Llama 3 8B in bfloat16 on an H100 with short contexts. The batch size at which the arithmetic of a "
        "decode step takes as long as reading the weights",
        "requests",
        295,
        "Each request takes 2 FLOP per weight, and each weight is 2 bytes, so a batch of n has an intensity "
        "of n FLOP/B. The ridge is at 989 TFLOP/s ÷ 3.35 TB/s = 295 FLOP/B.",
        tolerance=0.1,
    ),
    _prediction(
        "static_steps",
        "Steps of static batches of 8 for 64 requests of alternately 16 and 256 tokens",
        "steps",
        2048,
        "There are eight batches, and in each of them some request needs 256 steps: 8 · 256 = 2,048.",
    ),
    _prediction(
        "stall",
        "Llama 3 8B on an H100. How long all other requests wait while a prompt of 8,192 tokens is processed "
        "in one step",
        "ms",
        140,
        "8,192 tokens × 2 FLOP × 7.5 billion weights (without the table of embeddings) ÷ 989 TFLOP/s = "
        "124 ms. Attention comes on top.",
        tolerance=0.2,
    ),
    _prediction(
        "swap_or_again",
        "Llama 3 8B on an H100 with PCIe 5.0. Time to compute the keys and values of a token again, divided "
        "by the time to move them out and back",
        "times",
        3.6,
        "15 GFLOP ÷ 989 TFLOP/s = 15 µs. Moving 128 KiB out and back is 2 · 131 kB ÷ 63 GB/s = 4 µs.",
        tolerance=0.25,
    ),
    _prediction(
        "transfer",
        "Time to send the keys and values of 2,000 tokens of Llama 3 8B over NDR InfiniBand",
        "ms",
        5.2,
        "2,000 tokens × 128 KiB = 262 MB, and 262 MB ÷ 50 GB/s = 5.2 ms.",
        tolerance=0.2,
    ),
    _prediction(
        "batched",
        "The small GPT on this machine. Tokens per second with 8 slots, divided by those with one slot",
        "times",
        reason="Most of a small step is overhead that all rows share, so the rate grows with the batch, but "
        "more slowly than the batch does.",
        tolerance=0.4,
    ),
    _prediction(
        "engines",
        "Of the nine projects in the table, how many run a language model themselves",
        "projects",
        5,
        "vLLM, SGLang, TensorRT-LLM, TGI and llama.cpp are engines. Triton Inference Server, Dynamo, NIM and "
        "Ray Serve run one of the others.",
        tolerance=0,
    ),
)
