"""Lab 22, project C: what its two exercises ask. Correctness 40, score 40, texts 20.

| exercise | asks for | counted | naive | good | bound | points |
|---|---|---|---|---|---|---|
| batch | batch(state), a policy | everybody is served | | | | 16 |
| | slots that are refilled, blocks when needed | time, % of ours | 300 | 120 | 65 | 10 |
| serve | serve(state), a policy | everybody is served | | | | 24 |
| | bursts | goodput, % of ours | 30 | 95 | 200 | 10 |
| | heavy tails | goodput, % of ours | 30 | 95 | 115 | 10 |
| | waves of long requests before short ones | goodput, % of ours | 30 | 95 | 115 | 10 |

A policy is asked in each step of an engine that is the judge's, on traces of its own seeds: lengths of
outputs are nowhere else, and what has ended is told step by step (`gpulab.serving.decisions`).

Derivations, Llama 3 8B on an A100, modelled: the weights are read in 7.4 ms; 153 tokens take as long to
compute.

**batch**: all requests are there at the start, with Pareto lengths: a static batch lasts as long as its
longest output, up to 1,024 steps, and reserving blocks for 1,024 tokens leaves few slots in use. Over four
seeds static batches take 300 to 720 % of our time, reserving 130 to 270 %. Ours admits while blocks are left
and sends somebody back when they are not. The longest output of the public trace, weights read once a token,
takes 67 % of our time.

**serve**: a request counts if its first token comes within a second and later ones within 40 ms each on
average. First come, first served, with blocks reserved, keeps it for 5 to 40 % of what ours keeps, static
batches for fewer still. Ours: prompts in pieces of 256 tokens a step, short ones first, those whose first
token is too late anyway last; blocks as tokens come. Bound: all requests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from gpulab.checks.builders import prediction
from gpulab.checks.evidence import Dialogues
from gpulab.checks.spec import Budget, Case, Exercise, Prediction, Sizes
from gpulab.content.lab_20_serving.engine import Question, as_question
from gpulab.subjects import serving
from gpulab.subjects.serving import traces

LAB = "22"
SLO = serving.SLO(ttft=1.0, tpot=0.04)
TIMES = serving.times("Llama 3 8B", "A100", overhead=0.001)
OFFLINE = serving.Machine(slots=32, blocks=400, times=TIMES)
ONLINE = serving.Machine(slots=32, blocks=2000, step_tokens=1024, times=TIMES)

SHORT = traces.Lengths(prompt=120, prompt_limit=600, output=80, output_limit=400)


def _with_bursts(seed: int) -> list[serving.Request]:
    """Eight seconds, at 20 a second on average; those of the next seed that has a burst."""
    while True:
        trace = traces.bursty(20, 8, seed, peak=3.0, burst=2.0, share=0.25)
        if len(trace) >= 160:
            return trace
        seed += 1


TRACES: dict[str, Callable[[int], list[serving.Request]]] = {
    "bursts": lambda seed: _with_bursts(seed),
    "heavy tails": lambda seed: traces.heavy_tailed(60, 7, seed),
    "adversary": lambda seed: traces.adversarial(15, 10, seed, long_prompt=8192),
}


def _named(*kinds: str) -> tuple[Case, ...]:
    return tuple(Case(kind, {"kind": kind}) for kind in kinds)


def _seed(generator: np.random.Generator) -> int:
    return int(generator.integers(1 << 30))


def batch_questions(sizes: Sizes, generator: np.random.Generator) -> list[Question]:
    kind = str(sizes["kind"])
    if kind == "one request":
        return [as_question(OFFLINE, [serving.Request(0, 0.0, 20, 5, 40)])]
    if kind == "two that grow":  # 3 blocks each at the start, 7 each at the end
        return [
            as_question(replace(OFFLINE, blocks=8), [serving.Request(n, 0.0, 40, 70, 80) for n in range(2)])
        ]
    if kind == "over time":
        return [as_question(replace(OFFLINE, blocks=150), traces.poisson(8, 4, _seed(generator), SHORT))]
    drawn = traces.heavy_tailed(40, 4, _seed(generator), prompt_limit=2048, most=1024)
    return [as_question(OFFLINE, [replace(request, arrival=0.0) for request in drawn])]


def serve_questions(sizes: Sizes, generator: np.random.Generator) -> list[Question]:
    kind = str(sizes["kind"])
    if kind == "little memory":
        machine = replace(ONLINE, blocks=150, step_tokens=200)
        return [as_question(machine, traces.poisson(8, 3, _seed(generator), SHORT))]
    return [as_question(ONLINE, TRACES[kind](_seed(generator)))]


def _goodput(kind: str, bound: float, advice: str) -> Budget:
    return Budget(
        "goodput",
        95,
        10,
        f"goodput, {kind}",
        naive=30,
        bound=bound,
        sense=">=",
        unit="%",
        why="of the requests that our policy serves in time",
        advice=advice,
        case=kind,
    )


EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        name="serving_project.batch",
        lab=LAB,
        evidence=Dialogues(questions=batch_questions, decorator="@serving.policy"),
        correct_points=16,
        cases=_named("one request", "two that grow", "over time", "all at once"),
        budgets=(
            Budget(
                "time",
                120,
                10,
                "time",
                naive=300,
                bound=65,
                unit="%",
                why="of what our policy takes",
                advice="How many of the 32 slots are in use on average? Are the others empty because no "
                "request waits, or because blocks are held for tokens that never come?",
            ),
        ),
        hints=(
            "Whenever a slot is free, admit requests from the front of the queue, as in lab 20 A.",
            "A request needs blocks for the tokens that it has after the step, not for `most`. Keep some "
            "blocks free, because running requests grow.",
            "If the next tokens of the running requests do not fit, `preempt` one that arrived late, and "
            "admit none in that step.",
        ),
        section="2 · Milestone 1: keep the machine busy",
    ),
    Exercise(
        name="serving_project.serve",
        lab=LAB,
        evidence=Dialogues(questions=serve_questions, decorator="@serving.policy"),
        correct_points=24,
        cases=_named("little memory", "bursts", "heavy tails", "adversary"),
        budgets=(
            _goodput(
                "adversary",
                115,
                "A wave of long prompts arrives immediately before short ones. Whose first token can still "
                "be in time?",
            ),
            _goodput(
                "heavy tails",
                115,
                "Few requests are long. How many short ones wait behind one of them for a slot, for blocks, "
                "or for their part of a step?",
            ),
            _goodput(
                "bursts",
                200,
                "In a burst, not all requests can be served in time. Do you spend steps on those that are "
                "late anyway?",
            ),
        ),
        hints=(
            "You have three levers: which request is admitted, which prompt gets the tokens of a step, and "
            "which request is preempted. A step with 1,024 tokens of prompts delays every next token by "
            "50 ms, so give prompts 256.",
            "A request is hopeless if its first token can no longer come within a second. Serve such "
            "requests last, because they count nothing.",
            "Of the others, take those with the shortest remaining prompt first. Each is one request in "
            "time, and they cost the least.",
        ),
        section="3 · Milestone 2: goodput",
    ),
)


_prediction = partial(prediction, "serving_project", LAB)


PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "tokens",
        "An A100 reads the weights of Llama 3 8B in 7.4 ms. Tokens in a step that take as long to compute at "
        "its peak",
        "tokens",
        round(TIMES.weights / TIMES.bandwidth * TIMES.peak / TIMES.per_token),
        "A token takes two operations for each parameter, and a parameter has two bytes. So the number is "
        "peak ÷ bandwidth = 312e12 / 2.039e12.",
        0.05,
    ),
    _prediction(
        "reserved",
        "400 blocks of 16 tokens, reserved for prompts of 96 and outputs of at most 1,024 tokens. Slots of "
        "32 that can be used",
        "slots",
        5,
        "Each request reserves (96 + 1,024) / 16 = 70 blocks, and 5 · 70 = 350 fit into 400.",
    ),
    _prediction(
        "late",
        "Bursts, served first come, first served with reserved blocks. Share of the requests for which the "
        "limits are kept",
        "%",
        None,
        "A request that arrives in a burst waits for all before it, and later ones wait as long. Once the "
        "queue is longer than a second, no request is in time any more.",
        0.5,
    ),
)
