"""Expected results of lab 15's exercises."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes, WrongAnswer, grouped

# ---------------------------------------------------------------- schedules of messages


def _whole(value: Any, below: int, what: str, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise WrongAnswer(f"{where}: {what} {value!r} is no whole number.")
    if not 0 <= value < below:
        raise WrongAnswer(f"{where}: there is no {what} {value}; they go from 0 to {below - 1}.")
    return value


def _one_each(pairs: Sequence[tuple[int, int]], where: str) -> None:
    """In a round a rank sends at most one message and receives at most one, and none to itself."""
    for side, does in ((0, "sends"), (1, "receives")):
        ranks = [pair[side] for pair in pairs]
        twice = next((rank for n, rank in enumerate(ranks) if rank in ranks[:n]), None)
        if twice is not None:
            raise WrongAnswer(f"{where}: rank {twice} {does} {ranks.count(twice)} messages; one is allowed.")
    alone = next((a for a, b in pairs if a == b), None)
    if alone is not None:
        raise WrongAnswer(f"{where}: rank {alone} sends to itself.")


def broadcast(answer: Sequence[Sequence[Sequence[int]]], ranks: int, root: int) -> dict[str, float]:
    """Walk the rounds: only who has the data at the start of a round can send it."""
    have = {root}
    for number, messages in enumerate(answer, 1):
        where = f"round {number}"
        pairs = []
        for message in messages:
            if len(message) != 2:
                raise WrongAnswer(f"{where}: a message is [from, to], not {message!r}.")
            a, b = (_whole(rank, ranks, "rank", where) for rank in message)
            pairs.append((a, b))
        _one_each(pairs, where)
        for a, b in pairs:
            if a not in have:
                raise WrongAnswer(f"{where}: rank {a} sends to rank {b} but does not have the data yet.")
            if b in have:
                raise WrongAnswer(f"{where}: rank {a} sends to rank {b}, which has the data already.")
        have |= {b for _, b in pairs}
    missing = sorted(set(range(ranks)) - have)
    if missing:
        raise WrongAnswer(
            f"after the last round rank {missing[0]} has nothing"
            + (f", nor have {len(missing) - 1} more." if len(missing) > 1 else ".")
        )
    return {"rounds": len(answer)}


def halving(answer: Sequence[Sequence[Sequence[Any]]], ranks: int) -> dict[str, float]:
    """Walk the rounds: for each rank and share, whose addends are in what it holds."""
    held = [[frozenset({rank})] * ranks for rank in range(ranks)]
    sent = [0] * ranks
    for number, messages in enumerate(answer, 1):
        where = f"round {number}"
        before = [list(row) for row in held]
        pairs = []
        for message in messages:
            if len(message) != 4:
                raise WrongAnswer(f'{where}: a message is [from, to, shares, "add" or "copy"].')
            a, b, shares, how = message
            a, b = _whole(a, ranks, "rank", where), _whole(b, ranks, "rank", where)
            pairs.append((a, b))
            if how not in ("add", "copy"):
                raise WrongAnswer(f'{where}: {how!r} is neither "add" nor "copy".')
            if len(set(shares)) != len(shares):
                raise WrongAnswer(f"{where}: rank {a} sends a share twice in one message.")
            for share in shares:
                _whole(share, ranks, "share", where)
                incoming, own = before[a][share], before[b][share]
                both = incoming & own
                if how == "copy":
                    held[b][share] = incoming
                elif both:
                    raise WrongAnswer(
                        f"{where}: rank {b} adds what rank {a} has of share {share}, and both hold the "
                        f"addend of rank {min(both)} already: it would count twice."
                    )
                else:
                    held[b][share] = own | incoming
            sent[a] += len(shares)
        _one_each(pairs, where)
    for rank, row in enumerate(held):
        for share, addends in enumerate(row):
            if len(addends) < ranks:
                lacks = min(set(range(ranks)) - addends)
                raise WrongAnswer(
                    f"at the end share {share} of rank {rank} holds {len(addends)} of {ranks} addends; "
                    f"that of rank {lacks} is missing."
                )
    return {"rounds": len(answer), "shares sent": max(sent)}


# ---------------------------------------------------------------- what ranks compute together


def total(inputs: Mapping[str, np.ndarray], sizes: Sizes) -> dict[str, np.ndarray]:
    """The sum over ranks, in one piece: each rank's part of it is cut by the check."""
    return {"out": inputs["x"].sum(axis=0)}


def exchange(inputs: Mapping[str, Any], sizes: Sizes) -> dict[str, np.ndarray]:
    """The mean over ranks of the gradients of `loss` in notebook B, worked out by hand."""
    given, ranks = grouped(inputs), int(sizes["ranks"])
    weights = given["weights"]
    sums = [np.zeros_like(w) for w in weights]
    for rank, x in enumerate(np.array_split(given["x"], ranks)):
        tied, branch, between = weights[0], 1 + rank % 2, range(3, len(weights))
        states = [np.tanh(x @ tied)]
        for i in between:
            states.append(np.tanh(states[-1] @ weights[i]))
        inner = states[-1] @ weights[branch]
        out = inner @ tied.T
        slope = 2 * out / out.size
        sums[0] += slope.T @ inner
        slope = slope @ tied
        sums[branch] += states[-1].T @ slope
        slope = slope @ weights[branch].T
        for i in reversed(between):
            slope = slope * (1 - states.pop() ** 2)
            sums[i] += states[-1].T @ slope
            slope = slope @ weights[i].T
        sums[0] += x.T @ (slope * (1 - states[0] ** 2))
    return {f"weights[{i}].grad": total / ranks for i, total in enumerate(sums)}


# ---------------------------------------------------------------- data parallel


@usual_slips(
    (
        lambda counts: [n / sum(counts) for n in counts],
        "These are shares of all labels. The average divides by the number of ranks once more.",
    ),
    (
        lambda counts: [sum(counts) / (len(counts) * max(n, 1)) for n in counts],
        "These are the reciprocals. A rank with few labels must count less, and not more.",
    ),
    (
        lambda counts: [sum(n > 0 for n in counts) * n / sum(counts) for n in counts],
        "The average divides by the number of all ranks, those without labels among them.",
    ),
)
def factors(counts: Sequence[int]) -> list[float]:
    return [len(counts) * n / sum(counts) for n in counts]


def _order(length: int, seed: int) -> list[int]:
    return [int(n) for n in np.random.default_rng(seed).permutation(length)]


def _dealt(order: Sequence[int], ranks: int, rank: int) -> list[int]:
    """Every `ranks`-th sample from place `rank` on, round the order until all ranks have equally many."""
    return [order[i % len(order)] for i in range(rank, -(-len(order) // ranks) * ranks, ranks)]


@usual_slips(
    (
        lambda length, ranks, rank, seed, epoch: _dealt(_order(length, seed), ranks, rank),
        "This is the order without the epoch. Its seed is seed + epoch.",
    ),
    (
        lambda length, ranks, rank, seed, epoch: _dealt(_order(length, seed + epoch + rank), ranks, rank),
        "This seed depends on the rank, so ranks shuffle differently and some samples are used twice.",
    ),
    (
        lambda length, ranks, rank, seed, epoch: _order(length, seed + epoch)[: length // ranks * ranks][
            rank::ranks
        ],
        "This leaves the last samples out. Extend the order with its own beginning instead.",
    ),
    (
        lambda length, ranks, rank, seed, epoch: _order(length, seed + epoch)[rank::ranks],
        "Other ranks have more samples. Extend the order with its own beginning before it is divided.",
    ),
)
def indices(length: int, ranks: int, rank: int, seed: int, epoch: int) -> list[int]:
    return _dealt(_order(length, seed + epoch), ranks, rank)


def ready_times(sizes: Mapping[str, int], log: Sequence[Sequence[Any]]) -> dict[str, float]:
    """When the last addend of each gradient is there; 0 for those that get none."""
    ready = dict.fromkeys(sizes, 0.0)
    for ms, name in log:
        ready[name] = max(ready[name], float(ms))
    return ready


def finish(
    plan: Sequence[Sequence[str]],
    sizes: Mapping[str, int],
    ready: Mapping[str, float],
    latency: float,
    rate: float,
) -> float:
    """When the last all-reduce of a plan ends, in ms from the start of backward."""
    now = 0.0
    for bucket in plan:
        now = max([now, *(ready[name] for name in bucket)])
        now += latency + sum(sizes[name] for name in bucket) / rate
    return now


def soonest(sizes: Mapping[str, int], ready: Mapping[str, float], latency: float, rate: float) -> float:
    """The least of `finish` over all plans: buckets are stretches of the gradients in order of readiness."""
    order = sorted(sizes, key=lambda name: ready[name])
    best = [0.0]  # best[i]: the first i gradients are sent
    for i in range(1, len(order) + 1):
        size, found = 0, math.inf
        for j in reversed(range(i)):
            size += sizes[order[j]]
            found = min(found, max(best[j], ready[order[i - 1]]) + latency + size / rate)
        best.append(found)
    return best[-1]


def buckets(
    answer: Sequence[Sequence[str]],
    sizes: Mapping[str, int],
    log: Sequence[Sequence[Any]],
    latency: float,
    rate: float,
) -> dict[str, float]:
    """The time from the end of backward to the last gradient, over the least possible."""
    names = [name for bucket in answer for name in bucket]
    strange = next((name for name in names if name not in sizes), None)
    if strange is not None:
        raise WrongAnswer(f"a bucket has {strange!r}, but no parameter in `sizes` has that name.")
    twice = next((name for n, name in enumerate(names) if name in names[:n]), None)
    if twice is not None:
        used_twice = [name for _, name in log].count(twice) > 1
        tied = " It is tied: it has two entries in the log, but only one gradient." if used_twice else ""
        raise WrongAnswer(f"{twice} is sent twice.{tied}")
    missing = [name for name in sizes if name not in names]
    if missing:
        used = any(name == missing[0] for _, name in log)
        never = "" if used else " It is not in the log, but other ranks may have used it."
        raise WrongAnswer(f"{missing[0]} is in no bucket.{never}")
    if not all(answer):
        raise WrongAnswer(
            "one of the buckets is empty. Leave it out, because even an empty one costs a latency."
        )
    ready = ready_times(sizes, log)
    end = max(float(ms) for ms, _ in log)
    least = soonest(sizes, ready, latency, rate) - end
    return {"waiting over the least": (finish(answer, sizes, ready, latency, rate) - end) / least}


def compress(
    answer: Sequence[Any], gradient: Sequence[float], memory: Sequence[float], k: int
) -> dict[str, float]:
    """What got lost, and the norm of what is still held, over the least that k numbers can leave."""
    if len(answer) != 2:
        raise WrongAnswer("the answer must be a list of two lists: what is sent, and the new memory.")
    sent, kept = answer
    if len(kept) != len(memory):
        raise WrongAnswer(f"the new memory has {len(kept)} elements, but the gradient has {len(gradient)}.")
    if len(sent) > k:
        raise WrongAnswer(f"it sends {len(sent)} pairs, but k is {k}.")
    total = np.add(gradient, memory)
    left = total - np.asarray(kept, float)
    seen: set[int] = set()
    for pair in sent:
        if len(pair) != 2:
            raise WrongAnswer(
                f"what is sent must be a list of pairs [index, value], and {pair!r} is not a pair."
            )
        index = _whole(pair[0], len(gradient), "index", "what is sent")
        if index in seen:
            raise WrongAnswer(f"element {index} is sent twice.")
        seen.add(index)
        left[index] -= float(pair[1])
    if not np.isfinite(left).all():
        raise WrongAnswer("a number is infinite or NaN.")
    least = float(np.linalg.norm(np.sort(np.abs(total))[: max(len(total) - k, 0)]))
    held = float(np.linalg.norm(np.asarray(kept, float)))
    over = held / least if least else 1.0 + held
    return {"lost": float(np.abs(left).sum()), "held over the least": over}


REFERENCES: dict[str, Callable[..., Any]] = {
    "collective.broadcast": broadcast,
    "collective.reduce_scatter": total,
    "collective.all_reduce": total,
    "collective.halving": halving,
    "parallel.exchange": exchange,
    "parallel.factors": factors,
    "parallel.indices": indices,
    "parallel.buckets": buckets,
    "parallel.compress": compress,
}
