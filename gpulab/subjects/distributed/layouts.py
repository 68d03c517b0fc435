"""What a training step costs when tensor, pipeline and data parallelism are combined. Modelled, not measured.

A layout says into how many parts each of the three cuts, how many sequences a micro-batch has, and in which
order ranks are dealt out. `cost` has the formulas and their sources.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from gpulab.foundation.errors import Message

from .costs import Network, ring_all_reduce

WAYS = ("tensor", "pipeline", "data")
STATE = 16  # bytes per parameter: weight and gradient in 16 bits, master weight and two moments in 32
ACTIVATIONS = 34  # bytes per token and unit of width that a layer keeps, attention's scores computed again
INPUT = 2  # bytes of these that are the layer's input: all that is kept of a layer that is recomputed
ALL_REDUCES = 4  # of a layer's activations over its tensor group: two in forward, two in backward


class NoLayout(Message, ValueError):
    """The numbers do not go together; the message says which."""


@dataclass(frozen=True)
class Cost:
    """`parts` are the seconds of one step by cause, none of them overlapped; `memory` is bytes on the
    fullest GPU."""

    parts: Mapping[str, float]
    memory: float

    @property
    def seconds(self) -> float:
        """All parts, one after the other."""
        return sum(self.parts.values())


@cache
def groups(
    sizes: tuple[int, int, int], order: tuple[str, str, str], along: str
) -> tuple[tuple[int, ...], ...]:
    """The ranks that differ in `along` only. `sizes` are those of WAYS; the first of `order` varies
    fastest."""
    size = dict(zip(WAYS, sizes, strict=True))
    stride, step = {}, 1
    for way in order:
        stride[way] = step
        step *= size[way]
    first = [r for r in range(step) if r // stride[along] % size[along] == 0]
    return tuple(tuple(r + stride[along] * i for i in range(size[along])) for r in first)


@cache
def crosses(sizes: tuple[int, int, int], order: tuple[str, str, str], along: str, per_node: int) -> bool:
    """Has a group along this way neighbours on different nodes, of `per_node` ranks each?"""
    return any(
        a // per_node != b // per_node
        for group in groups(sizes, order, along)
        for a, b in itertools.pairwise(group)
    )


def cost(model: Mapping[str, Any], cluster: Mapping[str, Any], layout: Mapping[str, Any]) -> Cost:
    """One training step of a transformer.

    `model`: ``layers``, ``width``, ``heads``, ``sequence`` (tokens), ``batch`` (sequences in a step).
    `cluster`: ``nodes``, ``per_node`` (GPUs), ``memory`` (B of a GPU), ``rate`` (FLOP/s of a GPU), ``half``
    (tokens per micro-batch and tensor rank at which it reaches half of that), ``inside`` and ``between`` (B/s
    of a GPU's link within its node and to others), ``latency`` (s of a message).
    `layout`: ``tensor``, ``pipeline``, ``data`` (parts), ``micro`` (sequences in a micro-batch), ``order``
    (of these three names, the first varies fastest from rank to rank), ``recompute`` (of how many layers of
    each stage only the input is kept, 0 where it is left out).

    With t, p, d parts, m = batch / (d · micro) micro-batches and x = sequence · micro tokens in each:

    - parameters P = 12 · layers · width²; activations A = 2 · x · width bytes, in 16 bits [1]
    - compute: 6 · P · x · m / (t · p) FLOP at rate · y / (y + half) with y = x / t; this slope for small
      matrices is a stand-in of our own
    - bubble: compute · (p − 1) / m [1]
    - tensor: (m + p − 1) · layers / p · 4 ring all-reduces of A over t ranks [1]
    - pipeline: (m + p − 1) · 2 messages of A / t bytes, none where p is 1 [1]
    - data: one ring all-reduce of 2 · P / (t · p) bytes over d ranks
    - memory: 16 · P / (t · p) bytes [3], and 34 · x · width · layers / (t · p) bytes [2] for each of the
      min(p, m) micro-batches that the first stage has under way
    - of a layer that is recomputed 2 in place of 34 bytes are kept; its forward runs twice, 8 in place of
      6 · P · x of compute and six in place of four all-reduces; while one is recomputed it is there whole

    Left out: embedding and head, the products of attention's scores, any overlap. A group with neighbours on
    two nodes runs at the speed between nodes. Raises NoLayout where a number does not divide another.

    Sources: [1] D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM", 2021. [2] V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer
    Models", 2022. [3] S. Rajbhandari et al., "ZeRO", 2020.
    """
    t, p, d, micro = (_whole(layout, key) for key in (*WAYS, "micro"))
    order: tuple[Any, ...] = tuple(layout.get("order", ()))
    _fits(model, cluster, t, p, d, micro, order)
    width, tokens = model["width"], model["sequence"] * micro
    batches = model["batch"] // (d * micro)
    parameters = 12 * model["layers"] * width**2
    layers = model["layers"] // p

    def network(way: str) -> Network:
        far = crosses((t, p, d), order, way, cluster["per_node"])
        return Network(cluster["latency"], cluster["between" if far else "inside"])

    again = _recomputed(layout, layers)
    activation = 2 * tokens * width  # bytes, in 16 bits
    slots = batches + p - 1  # times that a stage works or waits
    rate = cluster["rate"] * (tokens / t) / (tokens / t + cluster["half"])
    compute = (6 + 2 * again / layers) * parameters * tokens * batches / (t * p) / rate
    parts = {
        "compute": compute,
        "bubble": compute * (p - 1) / batches,
        "tensor": slots
        * (layers + again / 2)
        * ALL_REDUCES
        * ring_all_reduce(network("tensor"), t, activation),
        "pipeline": slots * 2 * network("pipeline").message(activation / t) if p > 1 else 0.0,
        "data": ring_all_reduce(network("data"), d, 2 * parameters / (t * p)),
    }
    each = ACTIVATIONS * (layers - again) + INPUT * again
    kept = each * tokens * width / t * min(p, batches) + (ACTIVATIONS * tokens * width / t if again else 0)
    return Cost(parts, STATE * parameters / (t * p) + kept)


def _recomputed(layout: Mapping[str, Any], layers: int) -> int:
    value = layout.get("recompute", 0)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= layers:
        raise NoLayout(f"`recompute` is a whole number from 0 to a stage's {layers} layers, not {value!r}")
    return value


def _whole(layout: Mapping[str, Any], key: str) -> int:
    value = layout.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise NoLayout(f"`{key}` must be a whole number of at least 1, not {value!r}")
    return value


def _fits(
    model: Mapping[str, Any],
    cluster: Mapping[str, Any],
    t: int,
    p: int,
    d: int,
    micro: int,
    order: Sequence[Any],
) -> None:
    gpus = cluster["nodes"] * cluster["per_node"]
    if t * p * d != gpus:
        raise NoLayout(
            f"tensor × pipeline × data is {t} × {p} × {d} = {t * p * d}, but there are {gpus} GPUs"
        )
    if model["heads"] % t:
        raise NoLayout(f"{model['heads']} heads cannot be divided evenly among {t} ranks of a tensor group")
    if model["layers"] % p:
        raise NoLayout(f"{model['layers']} layers cannot be divided evenly among {p} stages")
    if model["batch"] % (d * micro):
        raise NoLayout(
            f"a batch of {model['batch']} sequences does not make micro-batches of {micro} on {d} replicas"
        )
    if sorted(map(str, order)) != sorted(WAYS):
        raise NoLayout(f"`order` must have each of {', '.join(WAYS)} once, not {list(order)!r}")
