"""A PyTorch function as data: the operators that it dispatches, recorded without contents, replayed with
them.

`record` runs a function on fake tensors, which have shapes and no data, under the ledger's recorder. What it
hears is a `Graph`: operators with their arguments, each tensor a number. `to_data` and `from_data` are its
way through JSON; what comes back is checked. `replay` runs a graph on real arrays, drops each tensor after
its last use, and gives the ledger's report. Nothing of the function is needed for that.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import logging
import math
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from gpulab.messages import Message
from gpulab.profile.ledger import ledger, tensors_in
from gpulab.profile.tensors import TensorReport, tensor_report

from . import messages, operators
from .cases import Argument
from .spec import Array

if TYPE_CHECKING:
    import torch

MOST_NODES = 20_000
MOST_ITEMS = 4_096  # of one list among the arguments
MOST_CONSTANT = 4_096  # bytes of data that a function may bring along, in all
MOST_MEMORY = 2 << 30  # bytes that a replay may hold at once beyond its inputs
DEEPEST = 4  # lists in lists among the arguments
UNINITIALISED = ("empty", "new_empty")
GRAD = ".grad"  # an output of this name is what the backward pass left in an argument


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


# ---------------------------------------------------------------- recording


def record(fn: Callable[..., Any], made: Sequence[Argument], allowed: frozenset[str]) -> Graph:
    """Call `fn` on fake tensors in the place of the arguments.

    `made` lists all arguments of the exercise: ``in`` and ``inout`` arrays are handed in, ``a[0]``, ``a[1]``
    … as one list, scalars as numbers; ``out`` arrays must come back, in order, or as the ``.grad`` of an
    argument. Raises NotAGraph, and whatever `fn` raises.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    with _torch_logs_nothing(), FakeTensorMode() as fake:
        given = {a.name: _fake(a) for a in made if a.role in ("in", "inout")}
        recorder = _Recorder(fake, list(given.values()), allowed, file_of(fn))
        try:
            with ledger(recorder):
                returned = fn(*arguments_of(made, given))
        except (NotAGraph, NotImplementedError):
            raise
        except Exception as error:
            if said := _said_about_fakes(error):
                raise NotAGraph(said, _line_in(error, file_of(fn))) from error
            raise
        results = tuple(recorder.known(t) for t in outputs_of(made, given, returned))
    return Graph(len(given), tuple(recorder.constants), tuple(recorder.finished()), results)


def arguments_of(made: Sequence[Argument], tensors: dict[str, Any]) -> list[Any]:
    """What the function is called with: ``a[0]``, ``a[1]`` … become one list."""
    given: dict[str, Any] = {}
    for argument in made:
        group, bracket, _ = argument.name.partition("[")
        if argument.role == "scalar":
            given[argument.name] = argument.value.item()
        elif argument.role != "out" and bracket:
            given.setdefault(group, []).append(tensors[argument.name])
        elif argument.role != "out":
            given[argument.name] = tensors[argument.name]
    return list(given.values())


def outputs_of(made: Sequence[Argument], given: dict[str, Any], returned: Any) -> list[torch.Tensor]:
    """The tensors that stand for the ``out`` arrays, in order. Raises NotAGraph where one is missing."""
    import torch

    asked = [a for a in made if a.role == "out"]
    by_grad = {a.name: given[a.name.removesuffix(GRAD)].grad for a in asked if a.name.endswith(GRAD)}
    wanted = [a for a in asked if a.name not in by_grad]
    flat = list(_flat(returned)) if wanted else []
    if len(flat) != len(wanted):
        raise NotAGraph(messages.other_results(len(flat), [a.name for a in wanted]))
    found = by_grad | {a.name: value for a, value in zip(wanted, flat, strict=True)}
    for argument in asked:
        tensor = found[argument.name]
        if tensor is None and argument.name in by_grad:
            raise NotAGraph(messages.no_gradient(argument.name.removesuffix(GRAD)))
        if not isinstance(tensor, torch.Tensor):
            raise NotAGraph(messages.not_a_tensor(argument.name, type(tensor).__name__))
        shape, dtype = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
        if (shape, dtype) != (argument.value.shape, str(argument.value.dtype)):
            should = messages.tensor_words(argument.value.shape, str(argument.value.dtype))
            raise NotAGraph(messages.other_result(argument.name, messages.tensor_words(shape, dtype), should))
    return [found[a.name] for a in asked]


def _flat(values: Any) -> Any:
    if isinstance(values, list | tuple):
        for value in values:
            yield from _flat(value)
    elif values is not None:
        yield values


def _fake(argument: Argument) -> torch.Tensor:
    """A tensor of the argument's shape and type, made inside a fake mode."""
    import torch

    tensor = torch.empty(argument.value.shape, dtype=getattr(torch, str(argument.value.dtype)))
    wants = isinstance(argument.spec, Array) and argument.spec.grad
    return tensor.requires_grad_() if wants else tensor


class _Recorder:
    """Hears every operator through the ledger and writes it down."""

    def __init__(self, fake: Any, inputs: list[Any], allowed: frozenset[str], file: str) -> None:
        from torch.utils.weak import WeakTensorKeyDictionary

        self.fake, self.allowed, self.file = fake, allowed, file
        self.constants: list[Constant] = []
        self.nodes: list[Node] = []
        self._stand_ins = WeakTensorKeyDictionary()  # fake tensors by the real ones that they stand for
        self._numbers = WeakTensorKeyDictionary()  # of tensors: ("input" | "constant" | "node", count)
        self._inputs = inputs
        self._count = 0
        for i, tensor in enumerate(inputs):
            self._numbers[tensor] = ("input", i)

    def before(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """Refuse what is not on the list; real tensors become constants."""
        namespace, _, name = func._schema.name.partition("::")
        if name in ("_local_scalar_dense", "is_nonzero", "equal"):
            whole = name == "_local_scalar_dense" and _holds_whole_numbers(args[0])
            raise NotAGraph(messages.needs_a_place() if whole else messages.needs_a_value(), self._line())
        if name in ("nonzero", "masked_select", "unique"):
            raise NotAGraph(messages.shape_needs_values(name), self._line())
        if namespace != "aten" or not operators.allowed(name, self.allowed):
            raise NotAGraph(messages.operator_not_listed(name), self._line())
        if name == "lift_fresh":  # a tensor from Python's numbers, on its way in
            self._bring(args[0])
            return args, kwargs
        return tuple(self._bring(a) for a in args), {key: self._bring(v) for key, v in kwargs.items()}

    def after(self, func: Any, args: tuple, kwargs: dict[str, Any], out: Any) -> None:
        """Write the operator down and number what came out."""
        if len(self.nodes) == MOST_NODES:
            raise NotAGraph(messages.too_many_operators(MOST_NODES))
        line = self._line()
        encoded = [self._encode(a, line) for a in args]
        named = {key: self._encode(value, line) for key, value in kwargs.items()}
        self.nodes.append(
            Node(str(func).removeprefix("aten."), encoded, named, tuple(self._number(out)), line)
        )

    def finished(self) -> list[Node]:
        """The nodes with plain numbers for tensors, now that all constants are known."""

        def plain(value: Any) -> Any:
            if isinstance(value, tuple):
                return {"tensor": self._plain(value)}
            return [plain(v) for v in value] if isinstance(value, list) else value

        return [
            Node(
                n.operator,
                [plain(a) for a in n.args],
                {key: plain(v) for key, v in n.named.items()},
                tuple(None if m is None else self._plain(("node", m)) for m in n.made),
                n.line,
            )
            for n in self.nodes
        ]

    def known(self, tensor: Any) -> int:
        """The number of a tensor that was given or made. Raises NotAGraph for a stranger."""
        self._bring(tensor)
        if (place := self._numbers.get(tensor)) is None:
            raise NotAGraph(messages.strange_tensor())
        return self._plain(place)

    def _plain(self, place: tuple[str, int]) -> int:
        kind, count = place
        first = {"input": 0, "constant": len(self._inputs), "node": len(self._inputs) + len(self.constants)}
        return first[kind] + count

    def _number(self, out: Any) -> list[int | None]:
        made: list[int | None] = []
        for item in out if isinstance(out, list | tuple) else [out]:
            for tensor in tensors_in(item) if isinstance(item, list | tuple) else [item]:
                if not list(tensors_in(tensor)):
                    made.append(None)
                    continue
                if tensor not in self._numbers:
                    self._numbers[tensor] = ("node", self._count)
                    self._count += 1
                kind, count = self._numbers[tensor]
                made.append(count if kind == "node" else None)  # in place on an argument: it has its number
        return made

    def _bring(self, value: Any) -> Any:
        """The value with fake tensors in the place of real ones, which are noted as constants."""
        import torch
        from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily

        if isinstance(value, list | tuple):
            return type(value)(self._bring(v) for v in value)
        if not isinstance(value, torch.Tensor) or isinstance(value, FakeTensor):
            return value
        if value in self._numbers:
            return self._stand_ins[value]
        size = sum(len(c.data) for c in self.constants) + value.numel() * value.element_size()
        if size > MOST_CONSTANT:
            raise NotAGraph(messages.brings_too_much(size, MOST_CONSTANT), self._line())
        with unset_fake_temporarily():
            data = value.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        self._numbers[value] = ("constant", len(self.constants))
        dtype = str(value.dtype).removeprefix("torch.")
        self.constants.append(Constant(dtype, tuple(value.shape), data))
        stand_in = self.fake.from_tensor(value)
        self._numbers[stand_in] = self._numbers[value]
        self._stand_ins[value] = stand_in
        return stand_in

    def _encode(self, value: Any, line: int) -> Any:
        """An argument as data. A tensor is (kind, count) until `finished`."""
        import torch

        if isinstance(value, torch.Tensor):
            if (place := self._numbers.get(value)) is None:
                raise NotAGraph(messages.strange_tensor(), line)
            return place
        if isinstance(value, list | tuple):
            return [self._encode(v, line) for v in value]
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        for kind in ("dtype", "layout", "memory_format", "device"):
            if isinstance(value, getattr(torch, kind)):
                return {kind: str(value).removeprefix("torch.")}
        raise NotAGraph(messages.odd_argument(type(value).__name__), line)

    def _line(self) -> int:
        """The line of the learner's code that runs at the moment, the innermost."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self.file:
                return frame.f_lineno
            frame = frame.f_back
        return 0


def _line_in(error: Exception, file: str) -> int:
    """The innermost line of a file that an error came through; 0 if there is none."""
    lines = [
        line for frame, line in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == file
    ]
    return lines[-1] if lines else 0


def _holds_whole_numbers(tensor: torch.Tensor) -> bool:
    return not (tensor.is_floating_point() or tensor.is_complex() or str(tensor.dtype) == "torch.bool")


@contextlib.contextmanager
def _torch_logs_nothing() -> Iterator[None]:
    """What PyTorch logs about an operator that fails on fake tensors is raised as well, and told in words."""
    known = dict(logging.root.manager.loggerDict)
    torchs = [log for name, log in known.items() if name.partition(".")[0] == "torch"]
    silenced = [log for log in torchs if isinstance(log, logging.Logger) and not log.disabled]
    for log in silenced:
        log.disabled = True
    try:
        yield
    finally:
        for log in silenced:
            log.disabled = False


def file_of(fn: Any) -> str:
    """The file of a function's code; empty where it has none."""
    return str(getattr(getattr(fn, "__code__", None), "co_filename", ""))


def _said_about_fakes(error: Exception) -> str:
    """What PyTorch's own complaint about a tensor without data means to a learner; empty for other errors."""
    kind, text = type(error).__name__, str(error)
    if ".numpy()" in text or "tensor subclasses" in text:
        return messages.needs_a_value()
    if kind in ("DataDependentOutputException", "GuardOnDataDependentSymNode"):
        return messages.needs_a_value()
    if kind == "DynamicOutputShapeException":
        return messages.shape_needs_values(text.removeprefix("aten.").partition(".")[0])
    if "Mixing fake modes" in text or "fake mode" in text.lower():
        return messages.strange_tensor()
    return ""


# ---------------------------------------------------------------- data that came from elsewhere

_OPERATOR = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,60}\.[A-Za-z_][A-Za-z0-9_]{0,60}")
_SPECIAL = {
    "dtype": re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)|bfloat16|float8_e[458]m[0-3][a-z]*"),
    "layout": re.compile(r"strided"),
    "memory_format": re.compile(r"(contiguous|preserve)_format|channels_last"),
    "device": re.compile(r"cpu"),
    "float": re.compile(r"-?inf|nan"),
}


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


# ---------------------------------------------------------------- replaying


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
    graph: Graph, made: Sequence[Argument], allowed: frozenset[str], name: str, pattern: int = 0xFF
) -> Replay:
    """Run a graph on the arguments' contents. Each byte of uninitialised memory is `pattern`; 0xFF makes NaN.

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
            _step(node, tensors, book, allowed, pattern)
            for number in dies.get(place, ()):
                tensors.pop(number, None)
    results = [_array(tensors.get(number)) for number in graph.results]
    return Replay({key: _array(t) for key, t in given.items()}, results, tensor_report(_named(name), book))


def _step(node: Node, tensors: dict[int, Any], book: Any, allowed: frozenset[str], pattern: int) -> None:
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
            torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage()).fill_(pattern)
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
