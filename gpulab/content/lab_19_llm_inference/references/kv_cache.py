"""Expected results of lab 19, part A; plans are carried out, and what they cost is counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any

import numpy as np

from gpulab.checks.slips import usual_slips
from gpulab.checks.spec import Sizes, WrongAnswer
from gpulab.content.lab_19_llm_inference.kv_cache import GROUP, SIZE, lengths_of

Arrays = Mapping[str, np.ndarray]
Expected = dict[str, np.ndarray]


def count(
    model: Mapping[str, Any], gpu: Mapping[str, float], batch: int, new: int, there: int
) -> list[float]:
    """[FLOP, bytes, least seconds] of a pass over `new` tokens of each sequence after `there` cached ones."""
    heads, kv, d, layers = (model[name] for name in ("heads", "kv_heads", "head_dim", "layers"))
    layer = model["width"] * (2 * d * (heads + kv) + 3 * model["hidden"])
    head = model["vocabulary"] * model["width"]
    pairs = sum(there + i for i in range(1, new + 1))
    flops = batch * (2 * layers * layer * new + 2 * head + 4 * layers * heads * d * pairs)
    cache = 2 * layers * kv * d * model["cache_bytes"]
    moved = model["weight_bytes"] * (layers * layer + head) + batch * cache * (there + new)
    return [flops, moved, max(flops / gpu["peak"], moved / gpu["bandwidth"])]


def per_gpu(model: Mapping[str, Any], ranks: int) -> float:
    """Bytes of a token on each of `ranks` GPUs: at least one head of keys, or the whole latent."""
    if "latent" in model:
        numbers = model["latent"] + model["place"]
    else:
        numbers = 2 * max(1, model["kv_heads"] // ranks) * model["head_dim"]
    return float(model["layers"] * numbers * model["bytes"])


def runs(
    layout: str, table: list[int], size: int, heads: int, d: int, tokens: int, head: int
) -> list[list[int]]:
    """[first number, how many] of each stretch that holds keys of the head, in the order of the tokens."""
    vectors = np.arange((max(table) + 1) * size * heads)
    shape = (-1, size, heads) if layout == "NHD" else (-1, heads, size)
    pool = vectors.reshape(shape)
    pool = pool if layout == "NHD" else pool.swapaxes(1, 2)  # block, slot, head
    own = pool[table, :, head].reshape(-1)[:tokens]
    cuts = np.flatnonzero(np.diff(own) != 1) + 1
    return [[int(part[0]) * d, len(part) * d] for part in np.split(own, cuts)]


# ---------------------------------------------------------------- attention


def turned(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Rotary positions on the last two axes, (tokens, d); the pair (i, i + d/2) turns by position ·
    10,000^(−2i/d)."""
    half = x.shape[-1] // 2
    angles = positions[:, None] * 10_000.0 ** (-np.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate(
        (a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)), -1
    )


def _softmax(scores: np.ndarray) -> np.ndarray:
    weights: np.ndarray = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def _attend(q: np.ndarray, k: np.ndarray, v: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """q (heads, n, d), k and v (heads of keys, m, d), allowed (n, m)."""
    sharing = len(q) // len(k)
    k, v = np.repeat(k, sharing, 0), np.repeat(v, sharing, 0)
    scores = q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1])
    out: np.ndarray = _softmax(np.where(allowed, scores, -np.inf)) @ v
    return out


def step(inputs: Arrays, sizes: Sizes) -> Expected:
    there, new, window = (int(sizes[name]) for name in ("there", "new", "window"))
    at, end = np.arange(there, there + new), there + new
    keys, values = inputs["keys"].copy(), inputs["values"].copy()
    keys[:, there:end], values[:, there:end] = turned(inputs["k"], at), inputs["v"]
    behind = at[:, None] - np.arange(end)
    allowed = (behind >= 0) & (behind < window)
    out = _attend(turned(inputs["q"], at), keys[:, :end], values[:, :end], allowed)
    return {"keys": keys, "values": values, "out": out}


def _keys_turned(inputs: Arrays, sizes: Sizes) -> Expected:
    there, keys = int(sizes["there"]), inputs["keys"].copy()
    keys[:, there % int(sizes["room"])] = turned(inputs["k"], np.array([there]))[:, 0]
    return {"keys": keys}


@usual_slips(
    (
        _keys_turned,
        "This key was turned before it was stored. Store keys as they come, and turn those that you read.",
    ),
)
def rolled(inputs: Arrays, sizes: Sizes) -> Expected:
    """The cache holds keys that are not turned, token t in slot t mod room."""
    there, room = int(sizes["there"]), int(sizes["room"])
    keys, values = inputs["keys"].copy(), inputs["values"].copy()
    keys[:, there % room], values[:, there % room] = inputs["k"][:, 0], inputs["v"][:, 0]
    tokens = np.arange(max(0, there + 1 - room), there + 1)
    slots = tokens % room
    query = turned(inputs["q"], np.array([there]))
    out = _attend(query, turned(keys[:, slots], tokens), values[:, slots], np.ones((1, len(slots)), bool))
    return {"keys": keys, "values": values, "out": out}


def split(inputs: Arrays, sizes: Sizes) -> Expected:
    q, k, v = (inputs[name] for name in ("q", "k", "v"))
    kv, m, parts = (int(sizes[name]) for name in ("kv", "m", "parts"))
    scores = np.einsum("kgd,kmd->kgm", q.reshape(kv, GROUP, -1), k)
    outs, lses = np.zeros((kv, GROUP, parts, q.shape[1])), np.full((kv, GROUP, parts), -np.inf)
    each = -(-m // parts)
    for part in range(parts):
        some = slice(part * each, min(m, (part + 1) * each))
        if some.start < some.stop:
            outs[:, :, part] = _softmax(scores[:, :, some]) @ v[:, some]
            largest = scores[:, :, some].max(-1, keepdims=True)
            lses[:, :, part] = largest[..., 0] + np.log(np.exp(scores[:, :, some] - largest).sum(-1))
    out = (_softmax(scores) @ v).reshape(q.shape)
    return {"outs": outs.reshape(len(q), parts, -1), "lses": lses.reshape(len(q), parts), "out": out}


def paged(inputs: Arrays, sizes: Sizes) -> Expected:
    outs = []
    for q, table, length in zip(inputs["q"], inputs["tables"], lengths_of(sizes), strict=True):
        mine = table[: -(-length // SIZE)]
        k, v = (inputs[name][mine].reshape(-1, q.shape[1])[:length] for name in ("k", "v"))
        outs.append(_softmax(q @ k.T) @ v)
    return {"out": np.array(outs)}


# ---------------------------------------------------------------- quantised


def _by_scale(x: np.ndarray, axis: int) -> np.ndarray:
    """x after a way through eight bits, with one scale along an axis."""
    largest = np.abs(x).max(axis=axis, keepdims=True)
    scales = np.where(largest > 0, largest, 1) / 127
    back: np.ndarray = np.round(x / scales) * scales
    return back


def _restored(name: str, array: Any, scales: Any, shape: tuple[int, int]) -> tuple[np.ndarray, int]:
    """Codes times scales, and how many scales there are."""
    codes = np.asarray(array, dtype=float)
    factors = np.asarray(scales, dtype=float)
    if codes.shape != shape:
        raise WrongAnswer(f"the codes of {name} have the shape {codes.shape}, not {shape}.")
    odd = np.argwhere(~((codes == np.round(codes)) & (np.abs(codes) <= 127)))
    if len(odd):
        row, column = odd[0]
        raise WrongAnswer(
            f"the code of {name}[{row}, {column}] is {codes[row, column]:g}; codes are whole numbers from "
            "−127 to 127."
        )
    if factors.ndim != 2 or any(have not in (1, of) for have, of in zip(factors.shape, shape, strict=True)):
        raise WrongAnswer(
            f"the scales of {name} have the shape {factors.shape}; allowed are 1 × 1, 1 × {shape[1]}, "
            f"{shape[0]} × 1 and {shape[0]} × {shape[1]}."
        )
    if not np.isfinite(factors).all():
        raise WrongAnswer(f"a scale of {name} is {factors[~np.isfinite(factors)][0]}.")
    return codes * factors, factors.size


def quantise(answer: Any, k: list[Any], v: list[Any]) -> dict[str, float]:
    keys, values = np.array(k), np.array(v)
    if not isinstance(answer, list) or len(answer) != 4:
        raise WrongAnswer("four lists are asked for: codes of K, scales of K, codes of V, scales of V.")
    restored_k, scales_k = _restored("K", answer[0], answer[1], keys.shape)
    restored_v, scales_v = _restored("V", answer[2], answer[3], values.shape)
    queries = 2 * np.random.default_rng(19).standard_normal((64, keys.shape[1])) / np.sqrt(keys.shape[1])

    def error(some_keys: np.ndarray, some_values: np.ndarray) -> float:
        """The outputs' relative error, mean over queries."""
        exact = _softmax(queries @ keys.T) @ values
        got = _softmax(queries @ some_keys.T) @ some_values
        return float(np.mean(np.linalg.norm(got - exact, axis=1) / np.linalg.norm(exact, axis=1)))

    found = {
        "bytes": float(keys.size + values.size + 2 * (scales_k + scales_v)),
        "key error": 100 * error(restored_k, values) / error(_by_scale(keys, 0), values),
        "value error": 100 * error(keys, restored_v) / error(keys, _by_scale(values, 1)),
    }
    return {name: value if isfinite(value) else 1e9 for name, value in found.items()}


# ---------------------------------------------------------------- blocks


class Pool:
    """Sequences in blocks: who holds which block, what an operation needs, and what a plan does."""

    def __init__(self, blocks: int, size: int) -> None:
        self.size = size
        self.holders: list[list[str]] = [[] for _ in range(blocks)]
        self.tables: dict[str, list[int]] = {}
        self.lengths: dict[str, int] = {}
        self.copies = self.most = 0

    @property
    def free(self) -> int:
        return sum(not names for names in self.holders)

    def written(self, operation: list[Any]) -> range:
        """The places in a sequence that an operation writes."""
        if operation[0] == "start":
            return range(operation[2])
        length = self.lengths.get(operation[1], 0)
        return range(length, length + (operation[0] == "append"))

    def needs(self, operation: list[Any]) -> list[list[Any]]:
        """The least actions of an operation, without the blocks' numbers."""
        places, name = self.written(operation), operation[1]
        if operation[0] in ("fork", "free"):
            return []
        table = self.tables.get(name, [])
        wanted = sorted({place // self.size for place in places})
        copies = [["copy", i] for i in wanted if i < len(table) and len(self.holders[table[i]]) > 1]
        return copies + [["take"] for i in wanted if i >= len(table)]

    def apply(self, operation: list[Any], actions: list[Any], said: str) -> None:
        """Carry out an operation; raises WrongAnswer where its actions do not allow it."""
        kind, name = operation[:2]
        places = self.written(operation)
        if kind == "start":
            self.tables[name], self.lengths[name] = [], 0
        if kind == "fork":
            name = operation[2]
            self.tables[name] = list(self.tables[operation[1]])
            self.lengths[name] = self.lengths[operation[1]]
            for block in self.tables[name]:
                self.holders[block].append(name)
        if kind == "free":
            for block in self.tables.pop(name):
                self.holders[block].remove(name)
            del self.lengths[name]
        for action in actions:
            self._act(name, action, said)
        for place in places:
            index = place // self.size
            if index >= len(self.tables[name]):
                raise WrongAnswer(f"{said}: token {place} of {name!r} has no block.")
            block = self.tables[name][index]
            others = [other for other in self.holders[block] if other != name]
            if others:
                raise WrongAnswer(
                    f"{said}: token {place} of {name!r} is written into block {block}, which "
                    f"{others[0]!r} holds, too."
                )
        if places:
            self.lengths[name] = places.stop
        self.most = max(self.most, len(self.holders) - self.free)

    def _act(self, name: str, action: Any, said: str) -> None:
        form = f'{said}: an action is ["take", block] or ["copy", index, block], not {action!r}.'
        if not isinstance(action, list) or not action or name not in self.tables:
            raise WrongAnswer(form)
        if (action[0], len(action)) not in (("take", 2), ("copy", 3)):
            raise WrongAnswer(form)
        *index, block = action[1:]
        if any(type(number) is not int for number in (*index, block)):
            raise WrongAnswer(form)
        if not 0 <= block < len(self.holders):
            raise WrongAnswer(f"{said}: block {block} does not exist; they are 0 to {len(self.holders) - 1}.")
        if self.holders[block]:
            raise WrongAnswer(f"{said}: block {block} is not free, {self.holders[block][0]!r} holds it.")
        table = self.tables[name]
        if not index:
            table.append(block)
        else:
            if not 0 <= index[0] < len(table):
                raise WrongAnswer(f"{said}: the table of {name!r} has no index {index[0]}.")
            self.holders[table[index[0]]].remove(name)
            table[index[0]] = block
            self.copies += 1
        self.holders[block].append(name)


def allocate(answer: Any, operations: list[Any], size: int, blocks: int) -> dict[str, float]:
    """Beside the plan runs one with the least: what it has no room for is "full", and nothing else is."""
    if not isinstance(answer, list) or len(answer) != len(operations):
        raise WrongAnswer(f"a list of {len(operations)} items is asked for, one for each operation.")
    plan, least = Pool(blocks, size), Pool(blocks, size)
    for number, (operation, actions) in enumerate(zip(operations, answer, strict=True)):
        said = f"operation {number}, {operation}"
        needed = least.needs(operation)
        wants = f"{len(needed)} block{'s' * (len(needed) != 1)}"
        if len(needed) > least.free:
            if actions != "full":
                raise WrongAnswer(
                    f'{said}: it needs {wants} and {least.free} are free, so the item is "full".'
                )
            continue
        if actions == "full":
            raise WrongAnswer(
                f"{said}: it is refused, but needs {wants}, and {least.free} can be free by now."
            )
        if not isinstance(actions, list):
            raise WrongAnswer(f'{said}: an item is a list of actions or "full", not {actions!r}.')
        numbers = [block for block, names in enumerate(least.holders) if not names]
        least.apply(operation, [[*act, numbers[i]] for i, act in enumerate(needed)], said)
        plan.apply(operation, actions, said)
    return {"blocks": plan.most, "copies": plan.copies}


REFERENCES: dict[str, Callable[..., Any]] = {
    "kv.count": count,
    "kv.step": step,
    "kv.per_gpu": per_gpu,
    "kv.quantise": quantise,
    "kv.split": split,
    "kv.allocate": allocate,
    "kv.paged": paged,
    "kv.runs": runs,
    "kv.rolled": rolled,
}
