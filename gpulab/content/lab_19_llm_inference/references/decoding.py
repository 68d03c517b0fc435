"""Who answers in lab 19's dialogues, and what plans cost: see the exercises for the rules."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from itertools import product
from math import exp
from typing import Any

import numpy as np

from gpulab.checks import branches
from gpulab.checks.spec import WrongAnswer

Ask = Callable[..., Any]
Rule = Callable[[tuple[int, ...]], tuple[float, ...]]  # probabilities of the token behind some tokens
PARTS = 1000  # all probabilities are whole numbers of these
NEAR = 1e-6


# ---------------------------------------------------------------- models that count what they are fed


class Model:
    """A model with one cache of keys and values: what it gives depends on all tokens that stand there."""

    def __init__(self, name: str, rule: Rule, vocabulary: int, seen: list[int]) -> None:
        self.name, self.rule, self.vocabulary = name, rule, vocabulary
        self.seen = list(seen)
        self.passes, self.tokens = 0, 0

        def forward(tokens: list[int], start: int) -> list[tuple[float, ...]]:
            return self._forward(tokens, start)

        forward.__name__ = name
        self.forward = forward

    def _forward(self, tokens: list[int], start: int) -> list[tuple[float, ...]]:
        called = f"it calls `{self.name}({tokens}, {start})`"
        if not (isinstance(tokens, list) and tokens and all(map(self._known, tokens))):
            raise WrongAnswer(f"{called}: the tokens are a list of numbers from 0 to {self.vocabulary - 1}")
        if type(start) is not int or start < 0:
            raise WrongAnswer(f"{called}: the place of the first token is a number from 0 on")
        if start > len(self.seen):
            raise WrongAnswer(
                f"{called}, and the cache holds {len(self.seen)} tokens: its first free place is "
                f"{len(self.seen)}"
            )
        self.passes += 1
        self.tokens += len(tokens)
        del self.seen[start:]
        rows = []
        for token in tokens:
            self.seen.append(token)
            rows.append(self.rule(tuple(self.seen)))
        return rows

    def _known(self, token: Any) -> bool:
        return type(token) is int and 0 <= token < self.vocabulary


def language(secret: int, vocabulary: int, spread: float = 1.0) -> Rule:
    """Probabilities that nobody foresees without the secret, different behind different tokens."""

    @cache
    def rule(tokens: tuple[int, ...]) -> tuple[float, ...]:
        numbers = np.random.default_rng([secret, len(tokens), *tokens])
        parts = numbers.multinomial(PARTS, numbers.dirichlet(np.full(vocabulary, spread)))
        return tuple(int(n) / PARTS for n in parts)

    return rule


def generate(ask: Ask, prompt: list[int], count: int, end: int, stops: int, secret: int) -> dict[str, float]:
    rule = language(secret, 8, 3.0)
    model = Model("forward", rule, 8, [])
    numbers = np.random.default_rng([secret, 1])
    drawn: list[int] = []

    def choose(probabilities: list[float]) -> int:
        if len(drawn) == count:
            raise WrongAnswer(f"it draws once more than the {count} tokens that are asked for")
        if end in drawn:
            raise WrongAnswer(f"it goes on after the end token {end} was drawn")
        p = branches.checked(probabilities)
        should = rule((*prompt, *drawn))
        if len(p) != len(should) or any(abs(a - b) > NEAR for a, b in zip(p, should, strict=True)):
            raise WrongAnswer(
                f"draw {len(drawn) + 1} is from {p}. The model gives {list(should)} there, if each token of "
                f"the prompt and of the draws so far, the last ones {[*prompt, *drawn][-4:]}, stands in the "
                "cache once, at its place"
            )
        weights = np.array([p for token, p in enumerate(should) if token != end])
        others = [token for token in range(8) if token != end]
        token = end if len(drawn) == stops else int(numbers.choice(others, p=weights / weights.sum()))
        drawn.append(token)
        return token

    answer = ask(model.forward, choose, prompt, count, end)
    if answer != drawn:
        raise WrongAnswer(f"it returns {answer}, and what `choose` gave is {drawn}")
    if len(drawn) < count and end not in drawn:
        raise WrongAnswer(
            f"it stops after {len(drawn)} of {count} tokens, and the end token {end} was not drawn"
        )
    return {"tokens": float(model.tokens), "passes": float(model.passes)}


# ---------------------------------------------------------------- sampling


def cut(logits: list[float], temperature: float, top_k: int, top_p: float) -> dict[Hashable, float]:
    """The probability of each token that can be drawn."""
    order = sorted(range(len(logits)), key=lambda token: -logits[token])
    if temperature == 0:
        return {order[0]: 1.0}
    order = order[: top_k or None]
    weights = {token: exp((logits[token] - logits[order[0]]) / temperature) for token in order}
    whole, reached = sum(weights.values()), 0.0
    kept: list[int] = []
    for token in order:
        kept.append(token)
        reached += weights[token] / whole
        if reached >= top_p:
            break
    left = sum(weights[token] for token in kept)
    return {token: weights[token] / left for token in kept}


PLACE_FOR_TOKEN = (
    "`choose` returns a place in the list that it was given. Return the token that stands at this place."
)


def sample(ask: Ask, logits: list[float], temperature: float, top_k: int, top_p: float) -> dict[str, float]:
    def play(choose: branches.Choose) -> int:
        token = ask(choose, logits, temperature, top_k, top_p)
        if type(token) is not int or not 0 <= token < len(logits):
            raise WrongAnswer(f"it returns {token}, which is no token from 0 to {len(logits) - 1}")
        return token

    found, should = branches.distribution(play), cut(logits, temperature, top_k, top_p)
    try:
        branches.compare(found, should, "it returns token {answer}")
    except WrongAnswer as wrong:
        places: dict[Hashable, float] = dict(enumerate(should.values()))  # the likeliest token first
        if all(abs(found.get(place, 0.0) - p) < 1e-6 for place, p in places.items()):
            raise WrongAnswer(f"{wrong}. {PLACE_FOR_TOKEN}") from None
        raise
    return {}


# ---------------------------------------------------------------- speculation

TOKENS = 4  # of the vocabulary


def pair(kind: str, secret: int) -> tuple[Rule, Rule]:
    """The target's and the draft's probabilities."""
    target, noise = language(secret, TOKENS), language(secret + 1, TOKENS)

    def halves(rule: Rule, low: int) -> Rule:
        def shifted(tokens: tuple[int, ...]) -> tuple[float, ...]:
            a, b = round(PARTS * rule(tokens)[0]) / PARTS, 1.0
            row = [0.0] * TOKENS
            row[low], row[low + 1] = a, round(b - a, 3)
            return tuple(row)

        return shifted

    def mixed(tokens: tuple[int, ...]) -> tuple[float, ...]:
        return tuple(round(0.5 * a + 0.5 * b, 4) for a, b in zip(target(tokens), noise(tokens), strict=True))

    def sure(tokens: tuple[int, ...]) -> tuple[float, ...]:
        best = max(range(TOKENS), key=lambda token: target(tokens)[token])
        return tuple(float(token == best) for token in range(TOKENS))

    match kind:
        case "the same":
            return target, target
        case "nothing in common":
            return halves(target, 0), halves(noise, 2)
        case "a sure draft":
            return target, sure
    return target, mixed


def expected_tokens(target: Rule, draft: Rule, text: tuple[int, ...], ahead: int) -> float:
    """New tokens of a round by the rule: one, and more where a drafted one is kept."""
    if ahead == 0:
        return 1.0
    p, q = target(text), draft(text)
    return 1.0 + sum(
        min(p[t], q[t]) * expected_tokens(target, draft, (*text, t), ahead - 1) for t in range(TOKENS) if q[t]
    )


def behind(rule: Rule, text: tuple[int, ...], tokens: tuple[int, ...]) -> float:
    """The probability of these tokens behind a text."""
    found = 1.0
    for place, token in enumerate(tokens):
        found *= rule((*text, *tokens[:place]))[token]
    return found


def speculate(ask: Ask, text: list[int], ahead: int, kind: str, secret: int) -> dict[str, float]:
    target_rule, draft_rule = pair(kind, secret)
    passes = drafted = 0

    def play(choose: branches.Choose) -> list[int]:
        nonlocal passes, drafted
        target = Model("target", target_rule, TOKENS, text[:-1])
        draft = Model("draft", draft_rule, TOKENS, text[:-1])
        answer = ask(draft.forward, target.forward, choose, text, ahead)
        if not (isinstance(answer, list) and all(type(t) is int and 0 <= t < TOKENS for t in answer)):
            raise WrongAnswer(f"it returns {answer}, which is no list of tokens from 0 to {TOKENS - 1}")
        if not 1 <= len(answer) <= ahead + 1:
            raise WrongAnswer(f"it returns {len(answer)} tokens; a round brings 1 to {ahead + 1}")
        passes, drafted = max(passes, target.passes), max(drafted, draft.tokens)
        return answer

    found = branches.distribution(play)
    start = tuple(text)
    first: dict[Hashable, float] = {}
    whole: dict[Hashable, float] = {}
    for answer, weight in found.items():
        assert isinstance(answer, tuple)
        first[answer[0]] = first.get(answer[0], 0.0) + weight
        for rest in product(range(TOKENS), repeat=ahead + 1 - len(answer)):
            more = weight * behind(target_rule, (*start, *answer), rest)
            whole[answer + rest] = whole.get(answer + rest, 0.0) + more
    branches.compare(
        first, dict(enumerate(target_rule(start))), "the first token that it returns is {answer}"
    )
    branches.compare(
        whole,
        {tokens: behind(target_rule, start, tokens) for tokens in product(range(TOKENS), repeat=ahead + 1)},
        "what it returns, with the target's own tokens behind it, begins with {answer}",
    )
    got = sum(weight * len(answer) for answer, weight in found.items() if isinstance(answer, tuple))
    return {
        "passes": float(passes),
        "drafted": float(drafted),
        "tokens": 100 * got / expected_tokens(target_rule, draft_rule, start, ahead),
    }


# ---------------------------------------------------------------- what it costs


def draft_length(acceptance: float, draft: float, batch: int, ridge: int, most: int) -> list[float]:
    def reads(tokens: int) -> float:
        return max(1.0, tokens / ridge)

    best = [0.0, 1.0]
    for ahead in range(most + 1):
        tokens = sum(acceptance**i for i in range(ahead + 1))
        time = ahead * draft * reads(batch) + reads(batch * (ahead + 1))
        speed = tokens * reads(batch) / time
        if speed > best[1] * (1 + 1e-12):
            best = [ahead, speed]
    return best


def rows_of(steps: list[int], captured: list[int]) -> int:
    """Rows that all steps compute, each in the smallest captured size that holds it."""
    return sum(count * next(size for size in captured if size >= n) for n, count in enumerate(steps) if count)


def least_rows(steps: list[int], most: int) -> int:
    """The least rows with at most so many sizes; by dynamic programming."""
    last = max(n for n, count in enumerate(steps) if count)
    best = {0: 0}
    found = float("inf")
    for _ in range(most):
        best = {
            n: min(rows + n * sum(steps[j + 1 : n + 1]) for j, rows in best.items() if j < n)
            for n in range(1, last + 1)
            if any(j < n for j in best)
        }
        found = min(found, best.get(last, float("inf")))
    return int(found)


def buckets(plan: list[int], steps: list[int], most: int) -> dict[str, float]:
    if not (isinstance(plan, list) and plan and all(type(size) is int and size > 0 for size in plan)):
        raise WrongAnswer("that is no list of batch sizes, whole numbers from 1 on")
    if len(plan) > most:
        raise WrongAnswer(f"it captures {len(plan)} graphs, and {most} are allowed")
    last = max(n for n, count in enumerate(steps) if count)
    if max(plan) < last:
        raise WrongAnswer(
            f"{steps[last]} steps have {last} requests, and the largest graph holds {max(plan)}"
        )
    return {"padding": 100 * (rows_of(steps, sorted(plan)) / least_rows(steps, most) - 1)}


def held_bytes(model: dict[str, Any], resident: int, batch: int) -> float:
    """Memory for resident layers, two buffers if any layer is streamed, and caches."""
    buffers = 2 if resident < model["layers"] else 0
    return float((resident + buffers) * model["layer_bytes"] + batch * model["cache_bytes"])


def sweep(model: dict[str, Any], gpu: dict[str, Any], resident: int, batch: int) -> float:
    """Seconds for a pass over all layers: the link and the GPU work at the same time."""
    moved = model["layer_bytes"] + batch * model["cache_bytes"] / model["layers"]
    work = max(moved / gpu["bandwidth"], batch * model["layer_flop"] / gpu["rate"])
    return float(max(fetches(model, gpu, resident), model["layers"] * work))


def fetches(model: dict[str, Any], gpu: dict[str, Any], resident: int) -> float:
    """Seconds of a sweep in which the link is busy."""
    return float((model["layers"] - resident) * model["layer_bytes"] / gpu["link"])


def best_stream(model: dict[str, Any], gpu: dict[str, Any], patience: float) -> tuple[float, int, int]:
    """(tokens/s, resident, batch) of the best plan. For each batch all memory left is for layers: none the
    slower for it."""
    found = (0.0, 0, 0)
    for batch in range(1, int(gpu["memory"] // model["cache_bytes"]) + 1):
        room = int((gpu["memory"] - batch * model["cache_bytes"]) // model["layer_bytes"])
        resident = model["layers"] if room >= model["layers"] else room - 2
        if resident >= 0 and (time := sweep(model, gpu, resident, batch)) <= patience:
            found = max(found, (batch / time, resident, batch))
    return found


def stream(plan: list[int], model: dict[str, Any], gpu: dict[str, Any], patience: float) -> dict[str, float]:
    if plan is None:
        raise WrongAnswer("there is no plan, and one exists: every sweep is shorter with fewer requests")
    resident, batch = plan
    if type(resident) is not int or type(batch) is not int or batch < 1 or resident < 0:
        raise WrongAnswer("the plan is [resident layers, requests], whole numbers, at least one request")
    if resident > model["layers"]:
        raise WrongAnswer(f"the model has {model['layers']} layers")
    needed = held_bytes(model, resident, batch)
    if needed > gpu["memory"]:
        raise WrongAnswer(
            f"{resident} resident layers, {2 if resident < model['layers'] else 0} buffers of a layer and "
            f"the caches of {batch} requests take {needed / 1e9:.2f} GB, and {gpu['memory'] / 1e9:.2f} GB "
            "are there"
        )
    time = sweep(model, gpu, resident, batch)
    if time > patience:
        link = fetches(model, gpu, resident)
        longer = "work" if time > link else "fetches"
        raise WrongAnswer(
            f"a sweep takes {time:.5g} s, its {longer} do{'es' * (longer == 'work')}, and a user waits "
            f"{patience} s for a token at most"
        )
    return {"slower": 100 * (best_stream(model, gpu, patience)[0] * time / batch - 1)}


REFERENCES: dict[str, Callable[..., Any]] = {
    "decode.generate": generate,
    "decode.sample": sample,
    "decode.speculate": speculate,
    "decode.draft_length": draft_length,
    "decode.buckets": buckets,
    "decode.stream": stream,
}
