"""Runs a graph on real arrays, drops each tensor after its last use, and gives the ledger's report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpulab.analysis.profile.ledger import ledger, tensors_in
from gpulab.analysis.profile.tensors import TensorReport, tensor_report
from gpulab.checks import messages, operators
from gpulab.checks.cases import POISON, Argument, random_bytes

from .graph import UNINITIALISED, Graph, Node, NotAGraph

MOST_MEMORY = 2 << 30  # bytes that a replay may hold at once beyond its inputs


@dataclass(frozen=True)
class Replay:
    """What a graph left behind: the arguments, the results in order, and what it cost."""

    after: dict[str, np.ndarray]
    results: list[np.ndarray]
    report: TensorReport


def prepare() -> None:
    """Load what PyTorch loads late. Some of it reads its own sources, which a judge keeps shut."""
    import torch
    import torch.utils.flop_counter

    with ledger():
        torch.ones(1) + 1


def replay(
    graph: Graph,
    made: Sequence[Argument],
    allowed: frozenset[str],
    name: str,
    garbage: np.random.Generator | None = None,
) -> Replay:
    """Run a graph on the arguments' contents. `garbage` draws what uninitialised memory holds (None: NaN).

    Raises NotAGraph where an operator is not `allowed`, does not take what it is given, or takes too much
    memory.
    """
    import torch

    given = {a.name: torch.from_numpy(a.value.copy()) for a in made if a.role in ("in", "inout")}
    if len(given) != graph.inputs:
        raise NotAGraph(messages.other_inputs())
    tensors: dict[int, Any] = dict(enumerate(given.values()))
    for constant in graph.constants:
        data = torch.tensor(list(constant.data), dtype=torch.uint8)
        tensors[len(tensors)] = data.view(getattr(torch, constant.dtype)).reshape(constant.shape)
    dies = _last_uses(graph)
    book = ledger()
    with torch.no_grad():
        for place, node in enumerate(graph.nodes):
            _step(node, tensors, book, allowed, garbage)
            for number in dies.get(place, ()):
                tensors.pop(number, None)
    results = [_array(tensors.get(number)) for number in graph.results]
    return Replay({key: _array(t) for key, t in given.items()}, results, tensor_report(_named(name), book))


def _step(
    node: Node,
    tensors: dict[int, Any],
    book: Any,
    allowed: frozenset[str],
    garbage: np.random.Generator | None,
) -> None:
    import torch

    if not operators.allowed(node.name, allowed):
        raise NotAGraph(messages.operator_not_listed(node.name), node.line)
    try:
        func = getattr(getattr(torch.ops.aten, node.name), node.operator.partition(".")[2])
        args = [_decode(a, tensors) for a in node.args]
        named = {key: _decode(value, tensors) for key, value in node.named.items()}
        with book:
            out = func(*args, **named)
    except Exception as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise NotAGraph(messages.operator_failed(node.name, said), node.line) from error
    if book.peak > MOST_MEMORY:
        raise NotAGraph(messages.too_much_memory(book.peak, MOST_MEMORY), node.line)
    flat = [
        tensor
        for item in (out if isinstance(out, list | tuple) else [out])
        for tensor in (item if isinstance(item, list | tuple) else [item])
    ]
    if node.name.startswith(UNINITIALISED):
        for tensor in tensors_in(flat):
            raw = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
            if garbage is None:
                raw.fill_(POISON)
            else:
                raw.copy_(torch.from_numpy(random_bytes(garbage, raw.numel())))
    for number, tensor in zip(node.made, flat, strict=False):
        if number is not None:
            tensors[number] = tensor


def _last_uses(graph: Graph) -> dict[int, list[int]]:
    """The tensors that are needed no longer after each node. Arguments and results live on."""
    last: dict[int, int] = {}
    for place, node in enumerate(graph.nodes):
        used = [*_numbers([node.args, list(node.named.values())]), *(m for m in node.made if m is not None)]
        last |= dict.fromkeys(used, place)
    kept = {*range(graph.inputs), *graph.results}
    dies: dict[int, list[int]] = {}
    for number, place in last.items():
        if number not in kept:
            dies.setdefault(place, []).append(number)
    return dies


def _numbers(value: Any) -> list[int]:
    if isinstance(value, list):
        return [number for item in value for number in _numbers(item)]
    return [value["tensor"]] if isinstance(value, dict) and "tensor" in value else []


def _decode(value: Any, tensors: dict[int, Any]) -> Any:
    import torch

    if isinstance(value, list):
        return [_decode(item, tensors) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, what),) = value.items()
    if kind == "tensor":
        return tensors[what]
    if kind == "float":
        return float(what)
    return torch.device(what) if kind == "device" else getattr(torch, what)


def _array(tensor: Any) -> np.ndarray:
    """A copy of a tensor's elements, in the order of its axes."""
    return np.ascontiguousarray(tensor.detach().numpy()).copy().reshape(tuple(tensor.shape))


def _named(name: str) -> Callable[..., Any]:
    """Something that a report can be called after."""

    def stand_in() -> None: ...

    stand_in.__name__ = name
    return stand_in
