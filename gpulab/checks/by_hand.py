"""Functions of gpulab that do what an exercise asks for: while an answer is asked they refuse it.

The labs use them, and so may an answer to any other exercise. It is a reminder and no wall, for they run in
the learner's own process: whoever copies their lines has copied them, from us as from a friend.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

from gpulab.foundation.errors import Message

from . import messages

ASKS = f"{__package__}.evidence.answered_cases"  # calls the answer, which may be such a function itself


class NotByHand(Message):
    """An answer called what it should have written."""


@contextmanager
def refused(names: Iterable[str]) -> Iterator[None]:
    """While it is entered, functions such as ``gpulab.numerics.decode`` raise NotByHand.

    Only gpulab itself may go on calling them. Their code is exchanged: no other name for one of them helps.
    """
    found = [_exchanged(name) for name in names]
    for each, _, asking in found:
        each.__code__ = asking
    try:
        yield
    finally:
        for each, meant, _ in found:
            each.__code__ = meant.__code__


@cache  # an exercise may ask its answer a hundred thousand times
def _exchanged(name: str) -> tuple[FunctionType, FunctionType, CodeType]:
    """A function, a copy of it that goes on doing what it does, and the code that refuses."""
    found = function(name)
    return found, _copy(found), _asking(name)


def function(name: str) -> FunctionType:
    """The function of that full name. Raises LookupError where there is none."""
    module, _, last = name.rpartition(".")
    found = inspect.unwrap(getattr(import_module(module), last, None))  # type: ignore[arg-type]
    if not isinstance(found, FunctionType):
        raise LookupError(f"{name} is no function")
    return found


def called(name: str, arguments: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """A placeholder for a refused function."""
    caller = str(sys._getframe(2).f_globals.get("__name__"))
    if caller.startswith("gpulab.") and caller != ASKS:
        return _exchanged(name)[1](*arguments, **named)
    raise NotByHand(messages.by_hand(name))


def _asking(name: str) -> CodeType:
    """The code of a function that leaves everything to `called`."""
    made: dict[str, Any] = {}
    exec(
        f"def asking(*arguments, **named):\n"
        f"    from {__name__} import called\n"
        f"    return called({name!r}, arguments, named)",
        made,
    )
    code: CodeType = made["asking"].__code__
    return code


def _copy(original: FunctionType) -> FunctionType:
    copied = FunctionType(
        original.__code__,
        original.__globals__,
        original.__name__,
        original.__defaults__,
        original.__closure__,
    )
    copied.__kwdefaults__ = original.__kwdefaults__
    return copied
