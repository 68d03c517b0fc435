"""Operators as data, each tensor a number, and their way through JSON; what comes back is checked."""

from __future__ import annotations

import base64
import binascii
import math
import re
from dataclasses import dataclass
from typing import Any

from gpulab.foundation.errors import Message

MOST_NODES = 20_000
MOST_ITEMS = 4_096  # of one list among the arguments
MOST_CONSTANT = 4_096  # bytes of data that a function may bring along, in all
DEEPEST = 4  # lists in lists among the arguments
UNINITIALISED = ("empty", "new_empty")

_OPERATOR = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,60}\.[A-Za-z_][A-Za-z0-9_]{0,60}")
_SPECIAL = {
    "dtype": re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)|bfloat16|float8_e[458]m[0-3][a-z]*"),
    "layout": re.compile(r"strided"),
    "memory_format": re.compile(r"(contiguous|preserve)_format|channels_last"),
    "device": re.compile(r"cpu"),
    "float": re.compile(r"-?inf|nan"),
}


class NotAGraph(Message):
    """A function cannot be recorded, or a graph not be replayed; the text says why, `line` where (or 0)."""

    def __init__(self, text: str, line: int = 0) -> None:
        super().__init__(text)
        self.line = line


@dataclass(frozen=True)
class Node:
    """One operator. In `args` and `named` a tensor is ``{"tensor": number}``; `made` numbers what comes out.

    `line` is the line of the learner's code that asked for it, 0 where that is not known.
    """

    operator: str
    args: list[Any]
    named: dict[str, Any]
    made: tuple[int | None, ...]
    line: int = 0

    @property
    def name(self) -> str:
        """Without the overload: ``add`` of ``add.Tensor``."""
        return self.operator.partition(".")[0]


@dataclass(frozen=True)
class Constant:
    """A small tensor that the function brought along."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


@dataclass(frozen=True)
class Graph:
    """Tensors are numbered: the arguments in order, the constants, then what the nodes make.

    `results` are the numbers of the outputs.
    """

    inputs: int
    constants: tuple[Constant, ...]
    nodes: tuple[Node, ...]
    results: tuple[int, ...]

    @property
    def uninitialised(self) -> bool:
        """Whether it makes memory that holds what was there before."""
        return any(node.name.startswith(UNINITIALISED) for node in self.nodes)

    def to_data(self) -> dict[str, Any]:
        """As JSON takes it."""
        return {
            "inputs": self.inputs,
            "constants": [[c.dtype, c.shape, base64.b64encode(c.data).decode()] for c in self.constants],
            "nodes": [[n.operator, n.args, n.named, n.made, n.line] for n in self.nodes],
            "results": self.results,
        }

    @classmethod
    def from_data(cls, data: Any) -> Graph:
        """The graph that `to_data` wrote, whoever had it in between. Raises ValueError for any other."""
        try:
            return _read(data)
        except (KeyError, TypeError, AttributeError, binascii.Error) as error:
            raise ValueError(f"no tensor graph: {type(error).__name__}") from None


def _read(data: dict[str, Any]) -> Graph:
    inputs = _whole(data["inputs"], 0, MOST_ITEMS)
    constants = tuple(_read_constant(item) for item in _items(data["constants"]))
    if sum(len(c.data) for c in constants) > MOST_CONSTANT:
        raise ValueError(f"constants of more than {MOST_CONSTANT:,} bytes")
    known = inputs + len(constants)
    nodes = []
    for operator, args, named, made, line in _items(data["nodes"], MOST_NODES):
        if not isinstance(operator, str) or not _OPERATOR.fullmatch(operator):
            raise ValueError("an operator's name")
        _check(args, known, 0)
        for key, value in named.items():
            if not isinstance(key, str) or not key.isidentifier():
                raise ValueError("an argument's name")
            _check(value, known, 0)
        for number in _items(made):
            if number is not None and _whole(number, 0, known) == known:
                known += 1
        nodes.append(Node(operator, args, named, tuple(made), _whole(line, 0, 10**6)))
    results = tuple(_whole(n, 0, known - 1) for n in _items(data["results"]))
    return Graph(inputs, constants, tuple(nodes), results)


def _read_constant(item: Any) -> Constant:
    dtype, shape, text = item
    if not isinstance(dtype, str) or not _SPECIAL["dtype"].fullmatch(dtype):
        raise ValueError("a constant's type")
    sizes = tuple(_whole(n, 0, MOST_CONSTANT) for n in _items(shape))
    data = base64.b64decode(text, validate=True)
    bits = re.search(r"\d+", dtype)
    if math.prod(sizes) * (int(bits[0]) // 8 if bits else 1) != len(data):
        raise ValueError("a constant of another size than its shape")
    return Constant(dtype, sizes, data)


def _items(value: Any, most: int = MOST_ITEMS) -> list[Any]:
    if not isinstance(value, list | tuple) or len(value) > most:
        raise ValueError(f"no list of at most {most:,} items")
    return list(value)


def _whole(value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"a number is {value!r:.40}, not from {least} to {most:,}")
    return value


def _check(value: Any, known: int, depth: int) -> None:
    """Raise ValueError for an argument that no recorder writes."""
    if isinstance(value, list) and depth < DEEPEST:
        for item in _items(value):
            _check(item, known, depth + 1)
    elif isinstance(value, dict) and len(value) == 1:
        ((kind, what),) = value.items()
        if kind == "tensor":
            _whole(what, 0, known - 1)
        elif kind not in _SPECIAL or not isinstance(what, str) or not _SPECIAL[kind].fullmatch(what):
            raise ValueError("an argument of no known kind")
    elif isinstance(value, int) and not isinstance(value, bool):
        _whole(value, -(2**63), 2**63 - 1)
    elif not (
        value is None or isinstance(value, bool | float) or (isinstance(value, str) and len(value) < 40)
    ):
        raise ValueError("an argument of no known kind")
