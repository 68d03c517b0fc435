"""Expected results of lab 28, part A: plans are carried out and counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes, WrongAnswer

Arrays = Mapping[str, np.ndarray]


def limited(scores: Sequence[float], nodes: int, most: int, k: int) -> list[int]:
    each = len(scores) // nodes

    def worth(node: int) -> float:
        return sum(sorted(scores[node * each : (node + 1) * each], reverse=True)[: k // most])

    chosen = set(sorted(range(nodes), key=worth, reverse=True)[:most])
    there = [expert for expert in range(len(scores)) if expert // each in chosen]
    return sorted(sorted(there, key=lambda expert: scores[expert], reverse=True)[:k])


def _last_node_only(inputs: Arrays, sizes: Sizes) -> dict[str, np.ndarray]:
    """Of each token only what the last node adds that has one of its experts."""
    of_node = int(sizes["per_node"]) * inputs["expert"].shape[1]
    node = inputs["choice"] // of_node
    last = node == node.max(axis=-1, keepdims=True)
    return dispatch({**inputs, "weight": np.where(last, inputs["weight"], 0)}, sizes)


@usual_slips(
    (
        lambda inputs, sizes: dispatch({**inputs, "weight": np.ones_like(inputs["weight"])}, sizes),
        "The same happens if the experts' results are added without their weights.",
    ),
    (
        _last_node_only,
        "The same happens if the sum that the last node returns replaces those of the nodes before. "
        "Add them up.",
    ),
)
def dispatch(inputs: Arrays, sizes: Sizes) -> dict[str, np.ndarray]:
    """Each token through all of its experts, each a linear layer with ReLU, weighted and added up."""
    experts = np.concatenate(inputs["expert"])
    y = np.zeros_like(inputs["x"])
    for expert, matrix in enumerate(experts):
        gate = (inputs["weight"] * (inputs["choice"] == expert)).sum(-1)
        y += gate[..., None] * np.maximum(inputs["x"] @ matrix, 0)
    return {"y": y}


def all_reduce(inputs: Arrays, sizes: Sizes) -> dict[str, np.ndarray]:
    return {"out": inputs["x"].sum(0, dtype=np.int32)}


def place(answer: Any, load: Sequence[int], gpus: int, slots: int) -> dict[str, float]:
    """The load of the busiest GPU over the mean. Raises WrongAnswer."""
    if not isinstance(answer, list) or len(answer) != gpus or not all(isinstance(g, list) for g in answer):
        raise WrongAnswer(f"the answer is a list of {gpus} lists, one for each GPU.")
    copies = [0] * len(load)
    for gpu, held in enumerate(answer):
        if len(held) > slots:
            raise WrongAnswer(f"GPU {gpu} holds {len(held)} experts and has {slots} slots.")
        for expert in held:
            if type(expert) is not int or not 0 <= expert < len(load):
                raise WrongAnswer(f"GPU {gpu} holds {expert!r}; experts are 0 to {len(load) - 1}.")
            copies[expert] += 1
        if len(set(held)) < len(held):
            twice = next(e for e in held if held.count(e) > 1)
            raise WrongAnswer(f"GPU {gpu} holds expert {twice} twice, which relieves nobody.")
    if 0 in copies:
        raise WrongAnswer(f"expert {copies.index(0)} is on no GPU.")
    busiest = max(sum(load[expert] / copies[expert] for expert in held) for held in answer)
    return {"busiest": busiest * gpus / sum(load)}


# ---------------------------------------------------------------- two micro-batches


PARTS = {"A": "attention", "D": "dispatch", "E": "experts", "C": "combine"}


def least_time(layers: int, times: Mapping[str, int]) -> int:
    """The least time of two micro-batches over all orders on both resources; exact.

    A state is how far both are, when each is ready, and when computing and sending are free; of those that
    are equally far only the ones stay that none is better than in all four times.
    """
    work = [(n % 2, times[part]) for _ in range(layers) for n, part in enumerate(PARTS.values())]
    front: dict[tuple[int, int], set[tuple[int, ...]]] = {(0, 0): {(0, 0, 0, 0)}}
    for far in range(2 * len(work)):
        for i in range(max(0, far - len(work)), min(far, len(work)) + 1):
            for state in _best(front.pop((i, far - i), set())):
                for batch, at in enumerate((i, far - i)):
                    if at == len(work):
                        continue
                    resource, lasts = work[at]
                    now = list(state)
                    now[batch] = now[2 + resource] = max(state[batch], state[2 + resource]) + lasts
                    front.setdefault((i + (batch == 0), far - i + (batch == 1)), set()).add(tuple(now))
    return min(max(state[:2]) for state in front[len(work), len(work)])


def _best(states: set[tuple[int, ...]]) -> list[tuple[int, ...]]:
    kept: list[tuple[int, ...]] = []
    for state in sorted(states):
        if not any(all(a <= b for a, b in zip(other, state, strict=True)) for other in kept):
            kept.append(state)
    return kept


def carried_out(orders: list[list[str]], layers: int, times: Mapping[str, int]) -> int:
    """The time of two orders of words. Raises WrongAnswer where they wait for each other forever."""
    done: dict[str, int] = {}
    free, at = [0, 0], [0, 0]
    moved = True
    while moved:
        moved = False
        for resource, order in enumerate(orders):
            while at[resource] < len(order):
                word = order[at[resource]]
                before = _before(word)
                if before is not None and before not in done:
                    break
                start = max(free[resource], done.get(before or "", 0))
                done[word] = free[resource] = start + times[PARTS[word[0]]]
                at[resource] += 1
                moved = True
    if at != [len(order) for order in orders]:
        waits = next(order[n] for order, n in zip(orders, at, strict=True) if n < len(order))
        raise WrongAnswer(f"{waits} is never done: it waits for {_before(waits)}, which is behind it.")
    return max(free)


def _before(word: str) -> str | None:
    """What must be done before: the part before of the same micro-batch."""
    layer, batch = word[1:].split(".")
    if word[0] == "A":
        return f"C{int(layer) - 1}.{batch}" if int(layer) else None
    return f"{'ADEC'['ADEC'.index(word[0]) - 1]}{layer}.{batch}"


def overlap(answer: Any, layers: int, times: Mapping[str, int]) -> dict[str, float]:
    """By how many percent the orders take longer than the best. Raises WrongAnswer."""
    if not isinstance(answer, list) or len(answer) != 2 or not all(isinstance(o, list) for o in answer):
        raise WrongAnswer("the answer is two lists of words: what computes, in order, and what sends.")
    for name, order, kinds in zip(("computing", "sending"), answer, ("AE", "DC"), strict=True):
        wanted = {f"{kind}{layer}.{batch}" for kind in kinds for layer in range(layers) for batch in (0, 1)}
        odd = next((word for word in order if word not in wanted), None)
        if odd is not None:
            raise WrongAnswer(
                f"the list of {name} has {odd!r}, which is none of its words, such as {kinds[0]}0.1."
            )
        if missing := sorted(wanted - set(order)):
            raise WrongAnswer(f"the list of {name} lacks {missing[0]}.")
        if len(order) > len(wanted):
            raise WrongAnswer(f"the list of {name} has a word twice.")
    return {"above the least": 100 * (carried_out(answer, layers, times) / least_time(layers, times) - 1)}


def fastest(ranks: int, size: float, latency: float, rate: float, switch: bool) -> list[Any]:
    ways = {
        "one-shot": latency + (ranks - 1) * size / rate,
        "two-shot": 2 * latency + 2 * (ranks - 1) / ranks * size / rate,
    }
    if switch:
        ways["multimem"] = 2 * latency + (ranks + 1) / ranks * size / rate
    best = min(ways, key=lambda way: ways[way])
    return [best, ways[best]]


REFERENCES: dict[str, Callable[..., Any]] = {
    "experts.limited": limited,
    "experts.dispatch": dispatch,
    "experts.place": place,
    "experts.overlap": overlap,
    "experts.one_shot": all_reduce,
    "experts.two_shot": all_reduce,
    "experts.fastest": fastest,
}
