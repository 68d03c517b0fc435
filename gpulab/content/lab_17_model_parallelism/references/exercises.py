"""Expected results of lab 17's exercises: plans are carried out and counted, layouts are held to the best."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gpulab.checks.spec import Sizes, WrongAnswer
from gpulab.subjects.distributed.layouts import WAYS, NoLayout, cost
from gpulab.subjects.distributed.pipelines import CannotRun, Work, simulate

Arrays = Mapping[str, np.ndarray]

# ---------------------------------------------------------------- on real ranks: arrays of a rank in front


def gelu(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """GELU with the error function, and its slope."""
    below = 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    return x * below, below + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def mlp(inputs: Arrays, sizes: Sizes) -> dict[str, np.ndarray]:
    x, slope = inputs["x"], inputs["slope"]
    a, b = np.concatenate(inputs["a"], axis=1), np.concatenate(inputs["b"], axis=0)
    ranks = len(inputs["a"])
    inner, steep = gelu(x @ a)
    back = (slope @ b.T) * steep
    return {
        "y": inner @ b,
        "dx": back @ a.T,
        "da": np.stack(np.split(x.T @ back, ranks, axis=1)),
        "db": np.stack(np.split(inner.T @ slope, ranks, axis=0)),
    }


def biased(inputs: Arrays, sizes: Sizes) -> dict[str, np.ndarray]:
    a, b = np.concatenate(inputs["a"], axis=1), np.concatenate(inputs["b"], axis=0)
    inner, _ = gelu(inputs["x"] @ a + np.concatenate(inputs["a_bias"]))
    return {"y": inner @ b + inputs["b_bias"]}


def loss(inputs: Arrays, sizes: Sizes) -> dict[str, np.ndarray]:
    logits = inputs["hidden"] @ np.concatenate(inputs["table"]).T
    top = logits.max(axis=1)
    total = np.log(np.exp(logits - top[:, None]).sum(axis=1)) + top
    return {"losses": total - logits[np.arange(len(logits)), inputs["labels"]]}


def ring(inputs: Arrays, sizes: Sizes) -> dict[str, np.ndarray]:
    q, k, v = inputs["q"], inputs["k"], inputs["v"]
    scores = q @ k.T / math.sqrt(q.shape[1])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return {"out": weights / weights.sum(axis=1, keepdims=True) @ v}


def dispatch(inputs: Arrays, sizes: Sizes) -> dict[str, np.ndarray]:
    """Each token through its expert, a linear layer with ReLU, times its weight."""
    chosen = inputs["expert"][inputs["choice"]]
    return {"y": inputs["weight"][:, None] * np.maximum(np.einsum("tw,twv->tv", inputs["x"], chosen), 0)}


# ---------------------------------------------------------------- pipelines


def parse_schedule(answer: Any, devices: int, batches: int, kinds: str) -> list[list[Work]]:
    """A schedule in words as the simulator takes it. Raises WrongAnswer for what is none."""
    if not isinstance(answer, list) or not all(isinstance(order, list) for order in answer):
        raise WrongAnswer("a schedule must be a list that holds one list of words for each device.")
    if len(answer) != devices:
        raise WrongAnswer(f"the number of lists is {len(answer)}, but the number of devices is {devices}.")
    orders = [[_work(word, device, batches, kinds) for word in order] for device, order in enumerate(answer)]
    for device, order in enumerate(orders):
        for work in (Work(kind, batch) for batch in range(batches) for kind in kinds):
            if work not in order:
                raise WrongAnswer(
                    f"device {device} never does {work.kind}{work.batch}, so the step is incomplete."
                )
    return orders


def _work(word: Any, device: int, batches: int, kinds: str) -> Work:
    ok = isinstance(word, str) and word[:1] in tuple(kinds) and word[1:].isascii() and word[1:].isdigit()
    if not ok or int(word[1:]) >= batches:
        raise WrongAnswer(
            f"device {device} has {word!r}, but a word is one of {', '.join(kinds)} followed by a "
            f"micro-batch from 0 to {batches - 1}, as in '{kinds[0]}0'."
        )
    return Work(word[0], int(word[1:]))


def _carried_out(orders: list[list[Work]]) -> dict[str, float]:
    try:
        run = simulate(orders)
    except CannotRun as stuck:
        raise WrongAnswer(f"{stuck}.") from None
    return {"steps": run.makespan, "peak micro-batches": float(max(run.peak))}


def schedule(answer: Any, devices: int, batches: int) -> dict[str, float]:
    """Steps until the last backward, and the most micro-batches whose activations a device holds."""
    return _carried_out(parse_schedule(answer, devices, batches, "FB"))


def zero_bubble(answer: Any, devices: int, batches: int) -> dict[str, float]:
    """The same where backward is in two parts; activations are held until W."""
    return _carried_out(parse_schedule(answer, devices, batches, "FBW"))


def least(times: Sequence[int], devices: int) -> int:
    """The least time of the slowest stage over all ways to cut the layers."""

    def stages(limit: int) -> int:
        count, filled = 1, 0
        for time in times:
            if filled + time > limit:
                count, filled = count + 1, 0
            filled += time
        return count

    low, high = max(times), sum(times)
    while low < high:
        middle = (low + high) // 2
        if stages(middle) <= devices:
            high = middle
        else:
            low = middle + 1
    return low


def stages(answer: Any, times: Sequence[int], devices: int) -> dict[str, float]:
    """How much longer the slowest stage takes than it must."""
    whole = isinstance(answer, list) and all(isinstance(n, int) and not isinstance(n, bool) for n in answer)
    if not whole or len(answer) != devices:
        raise WrongAnswer(
            f"the answer must be a list of {devices} whole numbers, which say how many layers each stage has."
        )
    if min(answer) < 1:
        raise WrongAnswer(f"stage {answer.index(min(answer))} has no layer, but each stage needs one.")
    if sum(answer) != len(times):
        raise WrongAnswer(f"the stages have {sum(answer)} layers together, but there are {len(times)}.")
    ends = list(itertools.accumulate(answer))
    slowest = max(sum(times[end - n : end]) for n, end in zip(answer, ends, strict=True))
    return {"above the least": float(slowest - least(times, devices))}


# ---------------------------------------------------------------- what to cut

WAYS_TO_CUT = ("column", "row", "whole")


def weights_held(ways: Mapping[str, str], modules: Sequence[Any], ranks: int) -> float:
    """Numbers that a rank holds. Raises WrongAnswer where a module gets what it cannot take."""
    split, held = {"x": False}, 0.0
    for name, kind, inputs, size in modules:
        split_inputs = [each for each in inputs if split[each]]
        if kind == "linear":
            way = ways[name]
            if (way == "row") != bool(split_inputs):
                state = "split" if split_inputs else "whole"
                raise WrongAnswer(f"{name} is {way!r}, but its input {inputs[0]} is {state}.")
            if way == "column" and size[1] % ranks:
                raise WrongAnswer(f"{name} is 'column', but {size[1]} columns cannot be divided by {ranks}.")
            split[name] = way == "column"
            held += size[0] * size[1] / (1 if way == "whole" else ranks)
            continue
        if split_inputs and kind == "rows":
            raise WrongAnswer(f"{name} needs whole rows, but {split_inputs[0]} is split.")
        if split_inputs and len(split_inputs) < len(inputs):
            whole = next(each for each in inputs if not split[each])
            raise WrongAnswer(f"{name} gets {split_inputs[0]}, which is split, and {whole}, which is whole.")
        if split_inputs and kind == "heads" and size % ranks:
            raise WrongAnswer(f"{name} has {size} heads, which cannot be divided by {ranks}.")
        split[name] = bool(split_inputs)
    return held


def least_held(modules: Sequence[Any], ranks: int) -> float:
    """The fewest numbers that a rank can hold, over all plans."""
    linears = [name for name, kind, *_ in modules if kind == "linear"]
    found = []
    for ways in itertools.product(WAYS_TO_CUT, repeat=len(linears)):
        with contextlib.suppress(WrongAnswer):
            found.append(weights_held(dict(zip(linears, ways, strict=True)), modules, ranks))
    return min(found)


def cut(answer: Any, modules: Sequence[Any], ranks: int) -> dict[str, float]:
    """How much more a rank holds than it must."""
    linears = [name for name, kind, *_ in modules if kind == "linear"]
    if not isinstance(answer, dict) or sorted(answer) != sorted(linears):
        raise WrongAnswer(f"the answer must be a dictionary with a way for each of {', '.join(linears)}.")
    for name, way in answer.items():
        if way not in WAYS_TO_CUT:
            raise WrongAnswer(f"{name} is {way!r}, but a way is 'column', 'row' or 'whole'.")
    held = weights_held(answer, modules, ranks)
    return {"above the least": 100 * (held / least_held(modules, ranks) - 1)}


# ---------------------------------------------------------------- layouts


def best(model: Mapping[str, Any], cluster: Mapping[str, Any]) -> float:
    """The least seconds of a step over all layouts that fit into memory."""
    gpus = cluster["nodes"] * cluster["per_node"]
    parts = [n for n in range(1, gpus + 1) if gpus % n == 0]
    found = []
    for tensor, pipeline in itertools.product(parts, parts):
        if gpus % (tensor * pipeline):
            continue
        for micro, order in itertools.product(range(1, model["batch"] + 1), itertools.permutations(WAYS)):
            if model["batch"] % micro:
                continue
            try:
                costs = cost(
                    model,
                    cluster,
                    {
                        "tensor": tensor,
                        "pipeline": pipeline,
                        "data": gpus // (tensor * pipeline),
                        "micro": micro,
                        "order": order,
                    },
                )
            except NoLayout:
                continue
            if costs.memory <= cluster["memory"]:
                found.append(costs.seconds)
    return min(found)


def layout(answer: Any, model: Mapping[str, Any], cluster: Mapping[str, Any]) -> dict[str, float]:
    """By how many percent a step takes longer than with the best layout."""
    if not isinstance(answer, dict):
        raise WrongAnswer(
            "a layout must be a dictionary with the keys tensor, pipeline, data, micro and order."
        )
    try:
        costs = cost(model, cluster, answer)
    except NoLayout as no:
        raise WrongAnswer(f"{no}.") from None
    if costs.memory > cluster["memory"]:
        raise WrongAnswer(
            f"it needs {costs.memory / 1e9:.1f} GB on a GPU that has {cluster['memory'] / 1e9:.1f} GB. "
            "Compare `memory` of the cost with the cluster's."
        )
    return {"slower than the best": 100 * (costs.seconds / best(model, cluster) - 1)}


REFERENCES: dict[str, Callable[..., Any]] = {
    "parallel.mlp": mlp,
    "parallel.loss": loss,
    "parallel.ring": ring,
    "parallel.biased": biased,
    "parallel.dispatch": dispatch,
    "parallel.schedule": schedule,
    "parallel.zero_bubble": zero_bubble,
    "parallel.stages": stages,
    "parallel.layout": layout,
    "parallel.cut": cut,
}
