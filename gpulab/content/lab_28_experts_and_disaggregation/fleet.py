"""Lab 28, part B: what its six exercises ask.

| exercise | asks for | teaches | counted | naive | good | points |
|---|---|---|---|---|---|---|
| pools | pools(load, times, limits) → plan | pools, with the transfer | GPUs over the least | 1 | 0 | 5 |
| route | route(blocks, replicas), a mend | hits against queues | first token / best | 3 | 1.1 | 5 |
| verify | verify(tree, q, p, choose) → tokens | siblings from what is left | distribution | – | exact | 6 |
| | | | tokens | 81 to 92 % | 100 % | |
| rollouts | rollouts(batches, times, stale) | generating ahead | above the least | 12 % | 0 | 4 |
| mend | mend(c, tolerance) → a product | checksums that find and mend | answers | – | – | 4 |
| reads | reads(saved, wanted) → pieces | boxes that meet | numbers read | – | exact | 4 |

Derivations:

**pools**: a prompt of n tokens computes T = n · prefill seconds. Of P prefill GPUs each is busy for the share
u = rate · T / P and makes a request wait u / (2 (1 − u)) · T on average (M/D/1, lab 20); then T, then n ·
transfer. A decode step with b requests takes s = step + b · request, and by Little's law b = rate / D ·
output · s, so s = step / (1 − rate · output · request / D). Together on N GPUs prompts come first, decoding
has 1 − u of the time, s = step / (1 − rate · output · request / (N (1 − u))), and between two tokens there
may be a whole prompt: s + T. The least is found by trying all numbers. A prompt that just fits between two
tokens leaves little time for a step, so together is possible and takes more GPUs than apart.

**route**: the wait at a replica is what is queued, the work is what is not cached, and the sum of both is the
time to the first token. With one popular start of 40 blocks in 80 % of the requests, the longest match sends
them all to one replica of four: 0.8 of the work to a quarter of the machines. The shortest queue computes a
conversation's history anew on every replica.

**verify**: with siblings drawn independently from q, the first is kept with min(1, p/q). If it is not, what
is left to be given is max(0, p − q), normalised, and the next sibling is judged against that in the place of
p. This is multi-step speculative sampling (X. Miao et al., "SpecInfer", 2023). Drawing from p and looking
whether the token is in the tree is right as well, and keeps fewer: for one guess Σ p q instead of Σ min(p,
q).

**rollouts**: batch k is generated with the weights of version v, after v trainings; k − v is at most `stale`.
In turn, every batch takes generate + reward + train + sync. Generating ahead, the slower of both sides
decides. A sync stops both sides, so with `stale` of 2 not every version needs to be sent. Mostly the newest
version that nobody waits for is best; where a sync takes longer than a training, waiting for a newer one
saves a sync. The least is found by trying all lists of versions.

**mend**: (m + 1)(n + 1)/(m n) of the product's work: 2/4096 = 0.05 % for 4,096 × 4,096. One flipped element
is off in exactly one row sum and one column sum. Its value is the checksum minus the others: the flipped
number minus the difference of sums is not, because beside 10³⁰ a difference keeps no digit of the true value.

**reads**: a saved chunk is a box (start, size); what a new rank needs from it is the intersection of two
boxes, axis by axis from max of the starts to min of the ends. That is one piece for each chunk.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from gpulab.checks.builders import answered, prediction
from gpulab.checks.cases import of_kinds
from gpulab.checks.evidence import Dialogues
from gpulab.checks.spec import EVERY, Budget, Case, Exercise, Prediction, Sizes
from gpulab.subjects.serving import replicas

LAB = "28"
TOPIC = "fleet"

Numbers = np.random.Generator
_answered = partial(answered, TOPIC, LAB)


# ---------------------------------------------------------------- pools

POOLS: dict[str, dict[str, tuple[float, float]]] = {  # ranges of what differs
    "long prompts": {"prompt": (6000, 9000), "between": (0.03, 0.04)},
    "short prompts": {"prompt": (200, 400), "output": (300, 500), "between": (0.04, 0.05)},
    "a slow link": {"prompt": (6000, 9000), "transfer": (6e-5, 8e-5), "first": (1.0, 1.3)},
    "just fitting": {  # between two tokens
        "prompt": (1050, 1100),
        "prefill": (3.1e-5, 3.2e-5),
        "output": (300, 500),
        "step": (0.006, 0.007),
        "between": (0.045, 0.046),
    },
    "a little traffic": {"rate": (0.5, 1.0), "prompt": (3000, 5000)},
    "any": {"prompt": (300, 6000), "rate": (3, 60)},
}


def pools_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(load, times, limits), in seconds, tokens and requests a second."""
    asked = []
    for _ in range(4):
        ranges = {
            "rate": (20.0, 40.0),
            "prompt": (1000, 3000),
            "output": (100, 300),
            "prefill": (3e-5, 4e-5),
            "step": (0.006, 0.009),
            "request": (1e-4, 2e-4),
            "transfer": (3e-6, 2e-5),
            "first": (0.7, 1.0),
            "between": (0.03, 0.06),
        } | POOLS[str(sizes["kind"])]
        drawn = {name: float(f"{numbers.uniform(*span):.3g}") for name, span in ranges.items()}
        load = {"rate": drawn["rate"], "prompt": int(drawn["prompt"]), "output": int(drawn["output"])}
        times = {name: drawn[name] for name in ("prefill", "step", "request", "transfer")}
        asked.append((load, times, {name: drawn[name] for name in ("first", "between")}))
    return asked


# ---------------------------------------------------------------- the router


def route_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(requests,)."""
    return [(replicas.traffic(str(sizes["kind"]), numbers),)]


# ---------------------------------------------------------------- a tree of guesses

TREES: dict[str, list[int]] = {  # the parent of each node, −1 for the text
    "one guess": [-1],
    "two guesses": [-1, -1],
    "a chain": [-1, 0],
    "three guesses": [-1, -1, -1],
    "two, and one behind each": [-1, -1, 0, 1],
}


def verify_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(parents, how draft and target are related, a secret)."""
    return [(TREES[str(sizes["tree"])], str(sizes["models"]), int(numbers.integers(2**31)))]


def tree_case(tree: str, models: str) -> Case:
    return Case(f"{tree}, {models}", {"tree": tree, "models": models})


# ---------------------------------------------------------------- reinforcement learning


def rollouts_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(batches, times in whole seconds, the most staleness)."""
    spans, stale = {
        "in turn": (((20, 40), (2, 6), (10, 20), (3, 6)), (0,)),
        "one behind": (((20, 40), (2, 6), (20, 40), (2, 4)), (1,)),
        "slow training": (((10, 15), (2, 6), (30, 50), (4, 9)), (1, 2)),
        "dear sync": (((20, 30), (2, 6), (20, 30), (15, 25)), (1, 2)),
        "a sync longer than training": (((20, 30), (2, 6), (5, 10), (30, 60)), (1, 2)),
        "any": (((5, 50), (1, 10), (5, 50), (1, 20)), (1, 2)),
    }[str(sizes["kind"])]
    names = ("generate", "reward", "train", "sync")
    return [
        (
            batches,
            {n: int(numbers.integers(a, b + 1)) for n, (a, b) in zip(names, spans, strict=True)},
            most,
        )
        for most in stale
        for batches in (2, 7)
    ]


# ---------------------------------------------------------------- checksums


def mend_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(the product of a matrix with a row of sums and one with a column of sums, in float32; a tolerance)."""
    kind, asked = str(sizes["kind"]), list[tuple[Any, ...]]()
    while len(asked) < 4:
        m, n, k = (int(x) for x in numbers.integers(3, 8, 3))
        a, b = (numbers.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
        c = np.vstack([a, a.sum(0)]) @ np.hstack([b, b.sum(1, keepdims=True)])
        i, j = int(numbers.integers(m)), int(numbers.integers(n))
        place = {
            "no flip": None,
            "in the sums of rows": (i, n),
            "in the sums of columns": (m, j),
            "in the corner": (m, n),
        }.get(kind, (i, j))
        if place is not None:
            size = abs(float(c[place]))
            if size < 0.1:  # a flip in it might be as small as rounding
                continue
            if kind == "a high bit" and size >= 1:  # these become tiny
                continue
            # The highest bit of the exponent makes numbers below 1 huge and those from 2 on tiny; between
            # them it would make no number.
            bit = 31 if kind == "a sign" else 29 if 1 <= size < 2 else 30
            c.view(np.uint32)[place] ^= np.uint32(1 << bit)
        asked.append(([[float(x) for x in row] for row in c], 1e-3))
    return asked


# ---------------------------------------------------------------- checkpoints


def _cut(length: int, parts: int) -> list[tuple[int, int]]:
    """(start, size) of consecutive parts of a length, none of them empty."""
    ends = [length * i // parts for i in range(parts + 1)]
    return [(a, b - a) for a, b in pairwise(ends)]


def reads_questions(sizes: Sizes, numbers: Numbers) -> list[tuple[Any, ...]]:
    """(saved chunks [file, start, size], the wanted box [start, size])."""
    kind, asked = str(sizes["kind"]), list[tuple[Any, ...]]()
    for _ in range(4):
        rows, columns = (int(n) for n in numbers.integers(12, 40, 2))
        before, after = {
            "the same layout": ((4, 1), (4, 1)),
            "fewer ranks": ((4, 1), (3, 1)),
            "rows to columns": ((4, 1), (1, 3)),
            "two axes": ((2, 3), (3, 2)),
            "one rank": ((3, 2), (1, 1)),
        }[kind]
        saved = [
            [f"rank{i}.bin", [r, c], [h, w]]
            for i, ((r, h), (c, w)) in enumerate(
                (down, across) for down in _cut(rows, before[0]) for across in _cut(columns, before[1])
            )
        ]
        boxes = [[[r, c], [h, w]] for r, h in _cut(rows, after[0]) for c, w in _cut(columns, after[1])]
        order = [saved[i] for i in numbers.permutation(len(saved))]
        asked.append((order, boxes[int(numbers.integers(len(boxes)))]))
    return asked


EXERCISES: tuple[Exercise, ...] = (
    _answered(
        "pools",
        2,
        ("long prompts", "short prompts", "a slow link", "just fitting", "a little traffic", "any"),
        pools_questions,
        (
            "Write two functions first: do both limits hold for N GPUs together, and do they for P and D "
            "apart? Where a share of time would be 1 or more, they do not.",
            "Apart, prefill and decode do not depend on each other: find the least P for the first limit "
            "and the least D for the second.",
            "Count P, D and N up from 1. Some may not exist however many GPUs there are: a prompt alone can "
            "take longer than a limit. Return the cheaper of both plans.",
        ),
        "1 · Two kinds of work",
        Budget(
            "surplus",
            0,
            3,
            "GPUs",
            naive=1,
            unit="GPUs more than needed",
            case=EVERY,
            advice="Is the other way of dividing the GPUs cheaper here? Are all numbers the least that hold?",
        ),
        measured=True,
    ),
    Exercise(
        name="fleet.route",
        lab=LAB,
        evidence=Dialogues(questions=route_questions),
        detective=True,
        correct_points=1,
        cases=of_kinds("all new", "conversations", "both", "a popular start"),
        budgets=(
            Budget(
                "first token",
                1.1,
                4,
                "time to first token",
                naive=3,
                unit="× the best router's",
                why="on average over all requests",
                advice="What does a request wait for at the replica that you chose, and what is computed "
                "there? Is there a replica where both together take less?",
                case=EVERY,
            ),
        ),
        hints=(
            "How many requests does each replica get? And how long is the queue of the busiest?",
            "A request waits for what is queued, then its blocks that are not cached are computed. Both "
            "are counted in blocks.",
            "Go along the blocks up to the first that is not in `cached`; the rest is computed. Choose the "
            "replica with the least sum of `queued` and that rest.",
        ),
        section="Detective · The router with the best hits",
    ),
    Exercise(
        name="fleet.verify",
        lab=LAB,
        evidence=Dialogues(questions=verify_questions),
        correct_points=2,
        cases=(
            tree_case("one guess", "alike"),
            tree_case("a chain", "alike"),
            tree_case("two guesses", "the same"),
            tree_case("two guesses", "alike"),
            tree_case("three guesses", "alike"),
            tree_case("two, and one behind each", "alike"),
        ),
        budgets=(
            Budget(
                "tokens",
                99.99,
                4,
                "tokens",
                sense=">=",
                unit="% of the rule's tokens",
                why="on average, of what the rule keeps",
                advice="Right, and too few tokens a round. Do you judge all siblings, and each against what "
                "the ones before have left?",
                case=EVERY,
            ),
        ),
        hints=(
            "Start at the text, node −1, with the row p[0]. Its children are the nodes whose parent it is, "
            "in the order of the tree; all were drawn from q[0].",
            "Judge a child as a single guess: keep its token t with min(1, p(t)/q(t)). If it is not kept, "
            "replace p by max(0, p − q), normalised, and judge the next child with that.",
            "A kept child becomes the place where you are, with the rows p[node + 1] and q[node + 1]. Where "
            "no child is kept, or there is none, draw one token from p as it is now and stop.",
        ),
        section="2 · A tree of guesses",
    ),
    _answered(
        "rollouts",
        1,
        ("in turn", "one behind", "slow training", "dear sync", "a sync longer than training", "any"),
        rollouts_questions,
        (
            "With staleness 0 there is one list only: 0, 1, 2, … With more, write a function that gives the "
            "end of a list of versions by the rules.",
            "There are few lists: version k of batch k may lie `stale` below k and never falls. For seven "
            "batches and staleness 2 there are fewer than 3⁷ = 2,187.",
            "Build all lists from left to right, time each, take the best.",
        ),
        "3 · Learning from its own answers",
        Budget(
            "above the least",
            2,
            3,
            "above the least",
            naive=12,
            unit="% of the least time",
            why="of all lists of versions",
            advice="Which side waits, and for what? Does every batch need a sync of its own?",
            case=EVERY,
        ),
        measured=True,
    ),
    _answered(
        "mend",
        4,
        (
            "no flip",
            "a sign",
            "a high bit",
            "in the sums of rows",
            "in the sums of columns",
            "in the corner",
        ),
        mend_questions,
        (
            "The last number of each row should be the sum of the others, and the last row the sum of the "
            "rows above. Which row and which column are off by more than the tolerance?",
            "If row i and column j are both off, element (i, j) is wrong. In the last row or column it is a "
            "checksum, and the product itself is right.",
            "The right value is the last number of the row minus all others of the row but (i, j). Do "
            "not subtract from the wrong number: it may be 10³⁸.",
        ),
        "4 · A flipped bit",
        rtol=1e-3,
    ),
    _answered(
        "reads",
        4,
        ("the same layout", "fewer ranks", "rows to columns", "two axes", "one rank"),
        reads_questions,
        (
            "On one axis, two intervals from a to a + n and from b to b + m meet from max(a, b) to "
            "min(a + n, b + m), if that is more than nothing.",
            "Do that for both axes. If both have something in common, the piece has this start and this size "
            "in the whole matrix.",
            "In the chunk the piece starts at its start minus the chunk's, in the wanted box at its start "
            "minus the box's.",
        ),
        "5 · A checkpoint for another layout",
        measured=True,
    ),
)


_prediction = partial(prediction, TOPIC, LAB)

PREDICTIONS: tuple[Prediction, ...] = (
    _prediction(
        "gap",
        "Longest gap between two tokens of a user when a prompt of 8,000 tokens is computed at 30 µs a token "
        "between two decode steps of 10 ms",
        "ms",
        250,
        "8,000 · 30 µs = 240 ms for the prompt, and 10 ms for the step.",
        0.01,
    ),
    _prediction(
        "kept",
        "Rounds in which one of two independent guesses is kept, in %, for p = (0.5, 0.3, 0.2) and "
        "q = (0.2, 0.3, 0.5)",
        "%",
        76,
        "The first is kept in 70 %. All that is left is then the first token, and the second guess is it in "
        "20 % of the other 30 %: 70 + 6.",
        0.005,
    ),
    _prediction(
        "turns",
        "Time for 6 batches one after the other: 20 s to generate, 3 s for rewards, 24 s to train, 15 s for "
        "each sync between two batches",
        "s",
        357,
        "6 · (20 + 3 + 24) s, and 5 syncs of 15 s.",
    ),
    _prediction(
        "checksums",
        "Extra work for checksums of a product of two matrices of 4,096 × 4,096",
        "%",
        0.0488,
        "(4,097 / 4,096)² − 1 = 2 / 4,096, nearly.",
        0.03,
    ),
)
