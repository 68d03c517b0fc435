"""Who answers in lab 28's dialogues, and what its plans cost: see the exercises for the rules."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from gpulab.checks import branches
from gpulab.checks.spec import WrongAnswer
from gpulab.subjects.serving import replicas

Ask = Callable[..., Any]
Numbers = Mapping[str, float]
MOST_GPUS = 2000  # of a plan that is looked for


# ---------------------------------------------------------------- pools


def _waits(rate: float, seconds: float, gpus: int) -> tuple[float, float]:
    """The share of time that each GPU is busy with prompts, and the mean wait of one (M/D/1)."""
    busy = rate * seconds / gpus
    return busy, busy / (2 * (1 - busy)) * seconds if busy < 1 else float("inf")


def _step(load: Numbers, times: Numbers, gpus: float) -> float:
    """Seconds of a decode step on so many GPUs, each with as many requests as Little's law says."""
    share = load["rate"] * load["output"] * times["request"] / gpus
    return times["step"] / (1 - share) if share < 1 else float("inf")


def together(load: Numbers, times: Numbers, gpus: int) -> tuple[float, float]:
    """Seconds to the first token and between tokens, where each GPU does both."""
    seconds = load["prompt"] * times["prefill"]
    busy, wait = _waits(load["rate"], seconds, gpus)
    step = _step(load, times, gpus * (1 - busy)) if busy < 1 else float("inf")
    return wait + seconds, step + seconds


def prefilled(load: Numbers, times: Numbers, gpus: int) -> float:
    """Seconds to the first token from a pool that only prefills: waiting, computing, sending the cache."""
    seconds = load["prompt"] * times["prefill"]
    return _waits(load["rate"], seconds, gpus)[1] + seconds + load["prompt"] * times["transfer"]


def _least(holds: Callable[[int], bool]) -> int | None:
    """The smallest number that holds, where larger ones do if any does; None for none."""
    if not holds(MOST_GPUS):
        return None
    low, high = 1, MOST_GPUS
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def best_plan(load: Numbers, times: Numbers, limits: Numbers) -> list[Any]:
    """The plan with the fewest GPUs; together where both need as many. Raises ValueError if there is none."""

    def both(n: int) -> bool:
        first, between = together(load, times, n)
        return first <= limits["first"] and between <= limits["between"]

    n = _least(both)
    p = _least(lambda gpus: prefilled(load, times, gpus) <= limits["first"])
    d = _least(lambda gpus: _step(load, times, gpus) <= limits["between"])
    if n is None and (p is None or d is None):
        raise ValueError("no number of GPUs holds these limits")
    if p is None or d is None or (n is not None and n <= p + d):
        return ["together", n]
    return ["apart", p, d]


def pools(plan: Any, load: Numbers, times: Numbers, limits: Numbers) -> dict[str, float]:
    form = {"together": 2, "apart": 3}
    if not isinstance(plan, list) or not plan or len(plan) != form.get(str(plan[0])):
        raise WrongAnswer('the plan is ["together", GPUs] or ["apart", prefill GPUs, decode GPUs].')
    if not all(type(n) is int and n > 0 for n in plan[1:]):
        raise WrongAnswer("numbers of GPUs are whole and at least 1.")
    if plan[0] == "together":
        first, between = together(load, times, plan[1])
    else:
        first, between = prefilled(load, times, plan[1]), _step(load, times, plan[2])
    for name, seconds, words in (
        ("first", first, "the first token takes"),
        ("between", between, "between two tokens there are"),
    ):
        if not seconds <= limits[name] * (1 + 1e-9):
            raise WrongAnswer(f"{words} {seconds:.4g} s, and the limit is {limits[name]:.4g} s.")
    return {"surplus": float(sum(plan[1:]) - sum(best_plan(load, times, limits)[1:]))}


# ---------------------------------------------------------------- the router


def cheapest(blocks: list[int], state: list[dict[str, Any]]) -> int:
    """The replica with the least work until the prompt is computed."""
    costs = [each["queued"] + len(blocks) - replicas.leading(blocks, set(each["cached"])) for each in state]
    return costs.index(min(costs))


def route(ask: Ask, requests: list[Any]) -> dict[str, float]:
    def asked(blocks: list[int], state: list[dict[str, Any]]) -> int:
        answer = ask(blocks, state)
        if type(answer) is not int or not 0 <= answer < len(state):
            raise WrongAnswer(f"it returns {answer!r}; there are replicas 0 to {len(state) - 1}")
        return answer

    return {"first token": replicas.run(requests, asked).mean / replicas.run(requests, cheapest).mean}


# ---------------------------------------------------------------- a tree of guesses

TOKENS = 3  # of the vocabulary
PARTS = 1000  # all probabilities are whole numbers of these
Rule = Callable[[tuple[int, ...]], tuple[float, ...]]


def language(secret: int) -> Rule:
    """Probabilities that nobody foresees without the secret, different behind different tokens."""

    @cache
    def rule(tokens: tuple[int, ...]) -> tuple[float, ...]:
        numbers = np.random.default_rng([secret, len(tokens), *tokens])
        parts = numbers.multinomial(PARTS, numbers.dirichlet(np.full(TOKENS, 1.5)))
        return tuple(int(n) / PARTS for n in parts)

    return rule


def pair(kind: str, secret: int) -> tuple[Rule, Rule]:
    """The target's and the draft's probabilities."""
    target, noise = language(secret), language(secret + 1)
    if kind == "the same":
        return target, target

    def mixed(tokens: tuple[int, ...]) -> tuple[float, ...]:
        return tuple(round(0.4 * a + 0.6 * b, 4) for a, b in zip(target(tokens), noise(tokens), strict=True))

    return target, mixed


def judged(tree: list[list[int]], q: Sequence[Any], p: Sequence[Any], choose: branches.Choose) -> list[int]:
    """The rule."""
    node, kept = -1, list[int]()
    row = list(p[0])
    while True:
        for child, (parent, token) in enumerate(tree):
            if parent != node:
                continue
            guess = q[node + 1]
            keep = min(1.0, row[token] / guess[token])
            if choose([keep, 1 - keep]) == 0:
                kept.append(token)
                node, row = child, list(p[child + 1])
                break
            left = [max(0.0, a - b) for a, b in zip(row, guess, strict=True)]
            row = [x / sum(left) for x in left]
        else:
            return [*kept, choose(row)]


def _outcomes(
    parents: list[int], target: Rule, draft: Rule, verify: Callable[..., Any]
) -> dict[Hashable, float]:
    """The probability of each list of tokens, over all guesses and all draws."""

    def play(choose: branches.Choose) -> Any:
        texts: list[tuple[int, ...]] = []
        for parent in parents:
            before = texts[parent] if parent >= 0 else ()
            texts.append((*before, choose(list(draft(before)))))
        tree = [[parent, text[-1]] for parent, text in zip(parents, texts, strict=True)]
        places = [(), *texts]
        return verify(tree, [list(draft(t)) for t in places], [list(target(t)) for t in places], choose)

    return branches.distribution(play)


def _behind(rule: Rule, text: tuple[int, ...], tokens: tuple[int, ...]) -> float:
    found = 1.0
    for place, token in enumerate(tokens):
        found *= rule((*text, *tokens[:place]))[token]
    return found


def _mean(found: Mapping[Hashable, float]) -> float:
    return sum(weight * len(answer) for answer, weight in found.items() if isinstance(answer, tuple))


def verify(ask: Ask, parents: list[int], kind: str, secret: int) -> dict[str, float]:
    target, draft = pair(kind, secret)
    depth = [0] * len(parents)
    for node, parent in enumerate(parents):
        depth[node] = 1 + (depth[parent] if parent >= 0 else 0)
    longest = max(depth) + 1

    def checked(tree: Any, q: Any, p: Any, choose: branches.Choose) -> Any:
        def draw(probabilities: list[float]) -> int:
            return choose(probabilities)

        draw.__name__ = "choose"
        answer = ask(tree, q, p, draw)
        if not (isinstance(answer, list) and all(type(t) is int and 0 <= t < TOKENS for t in answer)):
            raise WrongAnswer(f"it returns {answer}, which is no list of tokens from 0 to {TOKENS - 1}")
        if not 1 <= len(answer) <= longest:
            raise WrongAnswer(f"it returns {len(answer)} tokens; this tree brings 1 to {longest}")
        return answer

    found = _outcomes(parents, target, draft, checked)
    whole: dict[Hashable, float] = {}
    for answer, weight in found.items():
        assert isinstance(answer, tuple)
        for rest in product(range(TOKENS), repeat=longest - len(answer)):
            more = weight * _behind(target, answer, rest)
            whole[answer + rest] = whole.get(answer + rest, 0.0) + more
    branches.compare(
        whole,
        {tokens: _behind(target, (), tokens) for tokens in product(range(TOKENS), repeat=longest)},
        "what it returns, with the target's own tokens behind it, begins with {answer}",
    )
    return {"tokens": 100 * _mean(found) / _mean(_outcomes(parents, target, draft, judged))}


# ---------------------------------------------------------------- reinforcement learning


def ends(versions: Sequence[int], times: Mapping[str, int]) -> int:
    """When the last training is done."""
    generator = trainer = version = 0
    scored: list[int] = []
    trained = 0
    for wanted in versions:
        if wanted > version:
            while trained < wanted:
                trainer = max(trainer, scored[trained]) + times["train"]
                trained += 1
            generator = trainer = max(generator, trainer) + times["sync"]
            version = wanted
        generator += times["generate"]
        scored.append(generator + times["reward"])
    while trained < len(versions):
        trainer = max(trainer, scored[trained]) + times["train"]
        trained += 1
    return trainer


def version_lists(batches: int, stale: int) -> Iterator[list[int]]:
    """All lists of versions that are allowed."""

    def longer(versions: list[int]) -> Iterator[list[int]]:
        batch = len(versions)
        if batch == batches:
            yield versions
            return
        for version in range(max(versions[-1] if versions else 0, batch - stale), batch + 1):
            yield from longer([*versions, version])

    return longer([])


def rollouts(versions: Any, batches: int, times: Mapping[str, int], stale: int) -> dict[str, float]:
    if (
        not isinstance(versions, list)
        or len(versions) != batches
        or any(type(v) is not int for v in versions)
    ):
        raise WrongAnswer(f"the answer is a list of {batches} whole numbers, a version for each batch.")
    before = 0
    for batch, version in enumerate(versions):
        if version > batch:
            raise WrongAnswer(
                f"batch {batch} has version {version}, which needs the training of batch {version - 1}: that "
                "batch is not generated yet."
            )
        if batch - version > stale:
            raise WrongAnswer(
                f"batch {batch} has version {version}: it is {batch - version} behind, and {stale} is "
                "allowed."
            )
        if version < before:
            raise WrongAnswer(f"batch {batch} has version {version}, and the one before has {before}.")
        before = version
    least = min(ends(each, times) for each in version_lists(batches, stale))
    return {"above the least": 100 * (ends(versions, times) / least - 1)}


# ---------------------------------------------------------------- checksums


def mend(c: Sequence[Sequence[float]], tolerance: float) -> list[list[float]]:
    def off(line: Sequence[float]) -> bool:
        return abs(sum(line[:-1]) - line[-1]) > tolerance

    rows = [i for i, row in enumerate(c) if off(row)]
    columns = [j for j, column in enumerate(zip(*c, strict=True)) if off(column)]
    right = [list(row[:-1]) for row in c[:-1]]
    for i, j in zip(rows, columns, strict=False):
        if i < len(right) and j < len(right[0]):
            right[i][j] = c[i][-1] - sum(x for n, x in enumerate(c[i][:-1]) if n != j)
    return right


# ---------------------------------------------------------------- checkpoints


def reads(pieces: Any, saved: list[Any], wanted: list[list[int]]) -> dict[str, float]:
    """Raises WrongAnswer unless each number of the wanted box comes from where it was saved, once, and in one
    piece from each chunk."""
    chunks = {name: (start, size) for name, start, size in saved}
    start, size = wanted
    times = np.zeros(size, int)
    if not isinstance(pieces, list):
        raise WrongAnswer("the answer is a list of pieces.")
    for piece in pieces:
        name, inside, extent, at = piece
        numbers = [*inside, *extent, *at]
        if name not in chunks or len(numbers) != 6 or any(type(n) is not int for n in numbers):
            raise WrongAnswer(f"{piece} is no piece: [file, start in it, size, start in the box].")
        (r, c), (height, width) = chunks[name]
        if (
            min(inside) < 0
            or min(extent) < 1
            or inside[0] + extent[0] > height
            or inside[1] + extent[1] > width
        ):
            raise WrongAnswer(f"{piece} reads beyond {name}, which holds {height} × {width} numbers.")
        if min(at) < 0 or at[0] + extent[0] > size[0] or at[1] + extent[1] > size[1]:
            raise WrongAnswer(f"{piece} writes beyond the box of {size[0]} × {size[1]} numbers.")
        source, goal = (r + inside[0], c + inside[1]), (start[0] + at[0], start[1] + at[1])
        if source != goal:
            raise WrongAnswer(
                f"{piece} brings the number at {list(source)} of the matrix to the place of {list(goal)}."
            )
        times[at[0] : at[0] + extent[0], at[1] : at[1] + extent[1]] += 1
    if (times != 1).any():
        place = tuple(int(i) for i in np.argwhere(times != 1)[0])
        raise WrongAnswer(f"the number at {list(place)} of the box is read {times[place]} times.")
    for name in chunks:
        found = sum(piece[0] == name for piece in pieces)
        if found > 1:
            raise WrongAnswer(
                f"{name} is read in {found} pieces. What a chunk and the box share is one piece."
            )
    return {}


REFERENCES: dict[str, Callable[..., Any]] = {
    "fleet.pools": pools,
    "fleet.route": route,
    "fleet.verify": verify,
    "fleet.rollouts": rollouts,
    "fleet.mend": mend,
    "fleet.reads": reads,
}
