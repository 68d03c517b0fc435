"""Calls a function on fake tensors, which have shapes and no data, and writes down what the ledger hears."""

from __future__ import annotations

import contextlib
import logging
import math
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gpulab.analysis.profile.ledger import ledger, tensors_in
from gpulab.checks import messages, operators
from gpulab.checks.cases import Argument
from gpulab.checks.spec import Array
from gpulab.subjects.distributed.lines import running_line

from .graph import MOST_CONSTANT, MOST_NODES, Constant, Graph, Node, NotAGraph

if TYPE_CHECKING:
    import torch

GRAD = ".grad"  # an output of this name is what the backward pass left in an argument


def record(fn: Callable[..., Any], made: Sequence[Argument], allowed: frozenset[str]) -> Graph:
    """Call `fn` on fake tensors in the place of the arguments.

    `made` lists all arguments of the exercise: ``in`` and ``inout`` arrays are handed in, ``a[0]``, ``a[1]``
    … as one list, scalars as numbers; ``out`` arrays must come back, in order, or as the ``.grad`` of an
    argument. Raises NotAGraph, and whatever `fn` raises.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    with _torch_logs_nothing(), _printed_as_shapes(), FakeTensorMode() as fake:
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


@contextlib.contextmanager
def _printed_as_shapes() -> Iterator[None]:
    """What a learner's `print` of a tensor shows meanwhile: its shape, and why it has no values."""
    from torch._subclasses.fake_tensor import FakeTensor

    def shown(tensor: torch.Tensor, **_: Any) -> str:
        return messages.tensor_without_values(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))

    FakeTensor.__repr__ = shown
    try:
        yield
    finally:
        del FakeTensor.__repr__


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

    def before(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
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

    def after(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
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
        return running_line(self.file)


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
    """What PyTorch logs about an operator that fails on fake tensors is raised as well, in words."""
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
