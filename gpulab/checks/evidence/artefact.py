"""Examines exercises whose answer is data: weights, a codebook, a packed model.

The learner's function gets arrays with contents and returns arrays under names of the exercise's choice. The
reference of such an exercise is their reader: it uses them on data that the function never saw.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpulab.checks import budgets, cases, messages, patience
from gpulab.checks.cases import Argument
from gpulab.checks.every_case import Failure, parts
from gpulab.checks.parts import Detail, Part
from gpulab.checks.refusals import Refused
from gpulab.checks.registry import STUMBLES
from gpulab.checks.run import explain, name_of
from gpulab.checks.spec import Answer, Case, Exercise, OnArrays, WrongAnswer

from .answered_cases import giving

Artefact = dict[str, np.ndarray]

TYPES = tuple(
    map(
        np.dtype,
        ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
         "float16", "float32", "float64"),
    )
)  # fmt: skip
MOST_ARRAYS = 64
MOST_AXES = 8
LONGEST_NAME = 64  # characters
MOST_BYTES = 16 << 20
PER_AXIS = 8  # bytes: a length tells something, too


class NotAnArtefact(Exception):
    """What was returned is no artefact; the text says why."""


def packed(returned: Any) -> Artefact:
    """What a learner's function returned, as plain arrays by name; PyTorch's tensors become NumPy's arrays.

    Raises NotAnArtefact.
    """
    if not isinstance(returned, Mapping):
        raise NotAnArtefact(messages.no_artefact(messages.a(type(returned).__name__)))
    found: Artefact = {}
    for name, value in returned.items():
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
            raise NotAnArtefact(messages.artefact_name(repr(name)[:80], LONGEST_NAME))
        found[name] = _plain(name, value)
    if len(found) > MOST_ARRAYS:
        raise NotAnArtefact(messages.artefact_too_many(len(found), MOST_ARRAYS))
    if (size := bytes_of(found)) > MOST_BYTES:
        raise NotAnArtefact(messages.artefact_too_large(size, MOST_BYTES))
    return found


def _plain(name: str, value: Any) -> np.ndarray:
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    try:
        array = np.asarray(value)
    except Exception as error:  # bfloat16, ragged lists, things of all kinds
        raise NotAnArtefact(messages.artefact_type(name, type(value).__name__)) from error
    if array.dtype not in TYPES or array.ndim > MOST_AXES:
        raise NotAnArtefact(messages.artefact_type(name, str(array.dtype)))
    return np.ascontiguousarray(array).reshape(array.shape)  # a number stays one, without axes


def bytes_of(artefact: Artefact) -> int:
    """What an artefact contains: its arrays, their names and shapes."""
    return sum(a.nbytes + len(name.encode()) + PER_AXIS * a.ndim for name, a in artefact.items())


def to_data(artefact: Artefact) -> list[dict[str, Any]]:
    """An artefact as JSON."""
    return [
        {
            "name": name,
            "dtype": str(array.dtype),
            "shape": array.shape,
            "data": base64.b64encode(array.tobytes()).decode(),
        }
        for name, array in artefact.items()
    ]


def from_data(data: Any) -> Artefact:
    """The inverse of `to_data`, for data of unknown origin. Raises ValueError, KeyError or TypeError."""
    if not isinstance(data, list):
        raise TypeError("an artefact is no list")
    if len(data) > MOST_ARRAYS:
        raise ValueError(f"more than {MOST_ARRAYS} arrays")
    found: Artefact = {}
    for item in data:
        name, shape, dtype = item["name"], item["shape"], np.dtype(str(item["dtype"]))
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or name in found:
            raise ValueError("the name of an array")
        if dtype not in TYPES or dtype.byteorder == ">":
            raise ValueError("the type of an array")
        if len(shape) > MOST_AXES or not all(type(n) is int and 0 <= n <= MOST_BYTES for n in shape):
            raise ValueError("the shape of an array")
        raw = base64.b64decode(item["data"], validate=True)
        if len(raw) != math.prod(shape) * dtype.itemsize:
            raise ValueError("an array with another size than its shape says")
        if dtype.kind == "b" and raw.strip(b"\0\1"):
            raise ValueError("a truth value that is neither")
        found[name] = np.frombuffer(raw, dtype).reshape(shape)
    if bytes_of(found) > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES:,} bytes")
    return found


def given(made: Sequence[Argument]) -> list[Any]:
    """What the learner's function gets: all but what is held out, in order."""
    return [a.value.copy() if a.role == "in" else a.value for a in made if a.role in ("in", "scalar")]


@dataclass(frozen=True)
class Artefacts(OnArrays):
    """The function makes data, such as weights, which is scored on other data that it never saw.

    It gets the ``in`` arrays of `arguments(sizes)` with contents, as NumPy's, and the scalars, and returns a
    dictionary of arrays. The reference gets (those arrays by name, the ``in`` arrays by name, the
    ``held out`` ones by name, sizes), raises WrongAnswer with a sentence or returns counts by name. Budgets
    limit these and ``bytes``, the size of all that was returned.
    """

    kind = "artefact"
    line = "artefact"
    case_word = "set"
    seed_kept_back = True

    def examine(self, answer: Answer) -> tuple[Part, ...]:
        """Every artefact is good enough, or what is wrong with the first; then the budgets."""
        counts: dict[str, dict[str, float]] = {}
        return parts(
            answer.exercise,
            answer.fn,
            lambda case: _at(answer, case, counts),
            lambda: budgets.of_counts(answer.exercise, counts),
            self.case_word,
        )

    def step(self, exercise: Exercise, case: Case, seed: int) -> dict[str, Any]:
        """What the artefact is made from, with contents; what is held out stays behind."""
        handed_in: list[dict[str, Any]] = []
        for argument in cases.arguments(exercise, case, seed):
            dtype = str(argument.value.dtype)
            if argument.role == "scalar":
                handed_in.append({"scalar": argument.name, "value": argument.value.item(), "dtype": dtype})
            elif argument.role == "in":
                contents = base64.b64encode(argument.value.tobytes()).decode()
                head = {"array": argument.name, "shape": argument.value.shape, "dtype": dtype}
                handed_in.append(head | {"contents": contents})
        return {"name": case.name, "arguments": handed_in}

    @staticmethod
    def record(function: Any, record: Any, exercise: str, case: dict[str, Any]) -> None:
        """Call the function on arrays with contents; what it returns is written down. Raises Refused."""
        values: list[Any] = []
        for argument in case["arguments"]:
            dtype = np.dtype(argument["dtype"])
            if "scalar" in argument:
                values.append(dtype.type(argument["value"]))
            else:
                contents = np.frombuffer(base64.b64decode(argument["contents"]), dtype)
                values.append(contents.reshape(argument["shape"]).copy())
        try:
            artefact = packed(function(*values))
        except NotAnArtefact as error:
            raise Refused(str(error)) from None
        record.line(Artefacts.line, exercise=exercise, case=case["name"], arrays=to_data(artefact))

    @staticmethod
    def read(facts: Mapping[str, Any], kernels: Mapping[str, Any]) -> Artefact:
        """The arrays by name."""
        return from_data(facts["arrays"])

    def replay(self, answer: Answer, recorded: Mapping[str, Any]) -> tuple[Part, ...]:
        """As `examine`, on a function that gives the recorded artefacts, one a case."""
        made = [recorded[case.name] for case in answer.exercise.cases]
        return self.examine(replace(answer, fn=giving(name_of(answer.fn), made)))


def _at(answer: Answer, case: Case, counts: dict[str, dict[str, float]]) -> Failure | None:
    """What is wrong at one case. What is counted goes into `counts`, under the case's name."""
    fn, made = answer.fn, cases.of(answer, case)
    try:
        with patience.limited():
            returned = fn(*given(made))
    except Exception as error:
        return Failure(case, explain(error, fn), True)
    if returned is None:
        return Failure(case, (Detail(messages.returns_nothing(name_of(fn))),), True)
    try:
        artefact = packed(returned)
    except NotAnArtefact as error:
        return Failure(case, (Detail(str(error)),), True)
    for name, array in artefact.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            return Failure(case, (Detail(messages.artefact_not_finite(name)),))
    inputs, held_out = ({a.name: a.value for a in made if a.role == role} for role in ("in", "held out"))
    try:
        with np.errstate(all="ignore"):
            found = answer.reference(artefact, inputs, held_out, case.sizes)
    except WrongAnswer as wrong:
        return Failure(case, (Detail(str(wrong)),))
    except STUMBLES as error:
        return Failure(case, (Detail(messages.artefact_unreadable(_words(artefact), str(error))),))
    if odd := [name for name, value in found.items() if not math.isfinite(value)]:
        return Failure(case, (Detail(messages.artefact_count(odd[0])),))
    counts[case.name] = {"bytes": bytes_of(artefact), **found}
    return None


def _words(artefact: Artefact) -> str:
    """What was returned, in half a line."""
    shown = [f"{name} {array.dtype} {array.shape}" for name, array in list(artefact.items())[:4]]
    more = len(artefact) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
