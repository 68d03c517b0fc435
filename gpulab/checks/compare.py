"""Is a result right, and if not: where does it differ? Every element counts; nothing here knows a device."""

from __future__ import annotations

import contextlib
import math
import re
from collections import deque
from collections.abc import ItemsView, KeysView, Mapping, ValuesView
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Mismatch:
    """The wrong elements of one array. `wrong` is a boolean array of its shape.

    `rtol` and `atol` are the tolerance that they missed. `right` names the other outputs that are right.
    """

    array: str
    wrong: np.ndarray
    got: np.ndarray
    expected: np.ndarray
    rtol: float = 0.0
    atol: float = 0.0
    right: tuple[str, ...] = ()

    @property
    def relative(self) -> tuple[float, float]:
        """The relative error of the first wrong element and the largest that is allowed; NaN at an
        expected 0."""
        should = complex(self.expected[self.first])
        if not should:
            return math.nan, math.nan
        error = abs(complex(self.got[self.first]) - should) / abs(should)
        return error, self.rtol + self.atol / abs(should)

    @property
    def count(self) -> int:
        return int(self.wrong.sum())

    @property
    def indices(self) -> np.ndarray:
        """Indices of the wrong elements in memory order, shape (count, number of axes)."""
        return np.argwhere(self.wrong)

    @property
    def first(self) -> tuple[int, ...]:
        """The index of the first wrong element."""
        return tuple(int(i) for i in self.indices[0])


def mismatch(
    array: str, got: np.ndarray, expected: np.ndarray, rtol: float = 0.0, atol: float = 0.0
) -> Mismatch | None:
    """None if all elements of `got` are right, within ``atol + rtol · |expected|``.

    Numbers are compared in float64 (integers as they are). NaN and infinity are right only where the
    reference has the same. With both tolerances 0 the reference is rounded once to the dtype of `got`, then
    equal means equal. Raises ValueError if the reference has another shape: that is a mistake in the
    exercise.
    """
    expected = np.asarray(expected)
    if expected.shape != got.shape:
        raise ValueError(f"the reference of `{array}` has shape {expected.shape}, not {got.shape}")
    if rtol == 0 and atol == 0:
        rounded = expected.astype(got.dtype)
        same = (got == rounded) | (_nan(got) & _nan(rounded))
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            g, e = _wide(got), _wide(expected)
            finite = np.isfinite(e)
            near = np.abs(g - np.where(finite, e, 0)) <= atol + rtol * np.abs(np.where(finite, e, 0))
        same = np.where(finite, near & np.isfinite(g), (g == e) | (_nan(g) & _nan(e)))
    return None if same.all() else Mismatch(array, ~same, got, expected, rtol, atol)


def _wide(values: np.ndarray) -> np.ndarray:
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)


def _nan(values: np.ndarray) -> np.ndarray:
    return np.isnan(values) if values.dtype.kind in "fc" else np.zeros(values.shape, bool)


def where(wrong: np.ndarray) -> str:
    """Where the true elements lie, in words: ``all in row 32``, ``from index 1,024 on``.

    Empty if there is at most one.
    """
    count, total = int(wrong.sum()), wrong.size
    if count <= 1:
        return ""
    if count == total:
        return "every element"
    if wrong.ndim == 1:
        return _where_on_a_line(np.flatnonzero(wrong), total)
    return _where_on_axes(wrong)


def _where_on_a_line(places: np.ndarray, total: int) -> str:
    first, last, count = int(places[0]), int(places[-1]), len(places)
    if last - first + 1 == count:
        if last == total - 1:
            return f"from index {first:,} on"
        return f"up to index {last:,}" if first == 0 else f"indices {first:,} to {last:,}"
    step = int(places[1] - places[0])
    if (np.diff(places) == step).all() and count > 2:
        return f"every {ordinal(step)} from index {first:,} on"
    return f"between index {first:,} and {last:,}"


def _where_on_axes(wrong: np.ndarray) -> str:
    names = ("row", "column") if wrong.ndim == 2 else tuple(f"index {axis}" for axis in range(wrong.ndim))
    shape = wrong.shape
    for axis, name in enumerate(names):
        others = tuple(a for a in range(wrong.ndim) if a != axis)
        touched = np.flatnonzero(wrong.any(axis=others))
        if len(touched) == 1:
            return (
                f"all in {name} {int(touched[0]):,}"
                if wrong.ndim == 2
                else f"all with {name} = {int(touched[0]):,}"
            )
    for axis, name in enumerate(names):
        others = tuple(a for a in range(wrong.ndim) if a != axis)
        touched = np.flatnonzero(wrong.any(axis=others))
        whole = np.take(wrong, touched, axis=axis).all()
        first, last = int(touched[0]), int(touched[-1])
        run = last - first + 1 == len(touched)
        if run and last == shape[axis] - 1 and first > 0:
            return (
                f"{'all of' if whole else 'all in'} {name}s {first:,} to {last:,}, the last {len(touched):,}"
            )
        if whole and run and len(touched) < shape[axis]:
            return f"all of {name}s {first:,} to {last:,}"
    if wrong.ndim == 2:
        inside = wrong[1:-1, 1:-1]
        if not inside.any() and wrong.size > inside.size:
            return "all on the border"
        if shape[0] == shape[1] and not (wrong & ~np.eye(shape[0], dtype=bool)).any():
            return "all on the diagonal"
        if shape[0] == shape[1] and (wrong | np.eye(shape[0], dtype=bool)).all():
            return "everything but the diagonal"
    return f"{wrong.sum() / wrong.size:.0%} of the array, spread".replace("%", " %")


def ordinal(n: int) -> str:
    """1st, 2nd, 3rd, 4th, … 11th, … 22nd."""
    if n % 100 in (11, 12, 13):
        return f"{n}th"
    return f"{n}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th') }"


def index_words(array: str, index: tuple[int, ...]) -> str:
    """``out[32, 1024]``."""
    return f"{array}[{', '.join(map(str, index))}]" if index else array


def value_words(value: Any, digits: int = 7) -> str:
    """One element as a person reads it, up to so many significant digits: ``0.73``, ``-12``, ``nan``."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and math.isfinite(value):
        text = f"{value:.{digits}g}"
        return text if set(text) & set(".e") else f"{text}.0"
    return str(value)


def pair_words(got: Any, expected: Any) -> tuple[str, str]:
    """Two elements that differ, with as many digits as it takes to see it."""
    for digits in (7, 9, 17):
        words = value_words(got, digits), value_words(expected, digits)
        if words[0] != words[1]:
            break
    return words


# ---------------------------------------------------------------- answers of plain Python


class NotAnAnswer(Exception):
    """An answer of a type that cannot be compared or sent; the message names the type."""


DEEPEST = 30  # lists within lists
IN_ORDER = (list, tuple, range, deque, KeysView, ValuesView, ItemsView)


def normal(answer: Any, depth: int = 0) -> Any:
    """An answer in JSON's own types, as the check compares it and as the judge's sandbox writes it down.

    NumPy's scalars and arrays become numbers and lists; tuples, ranges and views of dictionaries lists; sets
    sorted lists; keys texts. `depth` says how many lists are around it. Raises NotAnAnswer.
    """
    if depth > DEEPEST:
        raise NotAnAnswer(f"{type(answer).__name__} nested too deep (in more than {DEEPEST} others)")
    if isinstance(answer, np.ndarray):
        return normal(answer.tolist(), depth)
    if isinstance(answer, set | frozenset):
        return _sorted([normal(item, depth + 1) for item in answer])
    if isinstance(answer, IN_ORDER):
        return [normal(item, depth + 1) for item in answer]
    if isinstance(answer, Mapping):
        return {str(_key(key)): normal(item, depth + 1) for key, item in answer.items()}
    return _scalar(answer)


def _scalar(answer: Any) -> Any:
    """A number, a text or None without a class of its own, which a comparison could ask."""
    if answer is None or isinstance(answer, bool):
        return answer
    if isinstance(answer, np.bool_):
        return bool(answer)
    if isinstance(answer, int):
        return int.__index__(answer)
    if isinstance(answer, np.integer):
        return int(answer)
    if isinstance(answer, float):  # np.float64, too
        return float.__float__(answer)
    if isinstance(answer, np.floating):
        return float(answer)
    if isinstance(answer, str):
        return str.__str__(answer)
    raise NotAnAnswer(type(answer).__name__)


def _key(key: Any) -> Any:
    """The key of a dictionary, whose text is that of plain Python: np.int64(1) in a tuple is 1."""
    if isinstance(key, tuple):
        return tuple(map(_key, key))
    return key.item() if isinstance(key, np.integer | np.bool_) else key


def _sorted(items: list[Any]) -> list[Any]:
    """Items in an order that does not depend on where they came from."""
    with contextlib.suppress(TypeError):
        if not holds_nan(items):
            return sorted(items)
    return sorted(items, key=repr)


def holds_nan(answer: Any) -> bool:
    """Is there a NaN anywhere in a normal answer?"""
    if isinstance(answer, list | dict):
        return any(map(holds_nan, answer.values() if isinstance(answer, dict) else answer))
    return isinstance(answer, float) and math.isnan(answer)


def same_answer(got: Any, expected: Any, rtol: float = 0.0, atol: float = 0.0) -> bool:
    """Are two normal answers the same? Numbers within the tolerance; True is not 1; NaN equals NaN."""
    if isinstance(expected, bool) or isinstance(got, bool) or expected is None or isinstance(expected, str):
        return type(got) is type(expected) and got == expected
    if isinstance(expected, int | float):
        if not isinstance(got, int | float):
            return False
        if math.isnan(expected) or math.isinf(expected):
            return (math.isnan(got) and math.isnan(expected)) or got == expected
        with contextlib.suppress(OverflowError):  # a whole number beyond all floats is not near one
            return got == expected or abs(got - expected) <= atol + rtol * abs(expected)
        return False
    if isinstance(expected, list):
        return (
            isinstance(got, list)
            and len(got) == len(expected)
            and all(same_answer(g, e, rtol, atol) for g, e in zip(got, expected, strict=True))
        )
    return (
        isinstance(got, dict)
        and got.keys() == expected.keys()
        and all(same_answer(got[key], expected[key], rtol, atol) for key in expected)
    )


def first_difference(
    got: Any, expected: Any, rtol: float = 0.0, atol: float = 0.0
) -> tuple[tuple[int, ...], Any, Any] | None:
    """Where two lists within lists differ first: the indices, and both items there.

    None where they are of different lengths somewhere before, or no lists.
    """
    if not (isinstance(got, list) and isinstance(expected, list) and len(got) == len(expected)):
        return None
    for place, (g, e) in enumerate(zip(got, expected, strict=True)):
        if not same_answer(g, e, rtol, atol):
            if not isinstance(e, list | dict) and not isinstance(g, list | dict):
                return (place,), g, e
            deeper = first_difference(g, e, rtol, atol)
            return None if deeper is None else ((place, *deeper[0]), *deeper[1:])
    return None


def answer_words(answer: Any, width: int = 60) -> str:
    """An answer or an argument in one short line."""
    text = repr(answer)
    if len(text) <= width:
        return text
    if not isinstance(answer, list | tuple | dict) or ", " not in text:
        return f"{text[: width - 2]} …"
    whole = text[: width - 4].rpartition(", ")[0]
    if not whole.strip("[({"):
        return f"{text[: width - 2]} …"
    return f"{whole}, …{_closing(whole)}"


def _closing(text: str) -> str:
    """The brackets that close those left open in a text, the innermost first."""
    pairs = {"[": "]", "(": ")", "{": "}"}
    left: list[str] = []
    for sign in re.sub(r"'[^']*'|\"[^\"]*\"", "", text):
        if sign in pairs:
            left.insert(0, pairs[sign])
        elif left and sign == left[0]:
            del left[0]
    return "".join(left)
