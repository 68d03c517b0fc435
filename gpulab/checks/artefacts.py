"""Examines exercises whose answer is data: weights, a codebook, a packed model.

The learner's function gets arrays with contents and returns arrays under names of the exercise's choice. The
reference of such an exercise is their reader: it uses them on data that the function never saw.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import budgets, cases, messages
from .cases import Argument
from .every_case import Failure, parts
from .registry import STUMBLES, Reference
from .run import explain, name_of
from .spec import Case, Exercise, WrongAnswer
from .verdict import Detail, Part

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
    """What an artefact tells: its arrays, their names and shapes."""
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


def examine(exercise: Exercise, fn: Callable[..., Any], reference: Reference) -> tuple[Part, ...]:
    """Every artefact can be read and is good enough, or what is wrong with the first; then the budgets."""
    counts: dict[str, dict[str, float]] = {}
    return parts(
        exercise,
        fn,
        lambda case: _at(exercise, case, fn, reference, counts),
        lambda: budgets.of_counts(exercise, counts),
        "set",
    )


def _at(
    exercise: Exercise,
    case: Case,
    fn: Callable[..., Any],
    reference: Reference,
    counts: dict[str, dict[str, float]],
) -> Failure | None:
    """What is wrong at one case. What is counted goes into `counts`, under the case's name."""
    made = cases.arguments(exercise, case)
    try:
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
            found = reference(artefact, inputs, held_out, case.sizes)
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
