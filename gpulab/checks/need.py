"""`gpulab.need`: a cell that builds on a puzzle says so in one line while the puzzle is still empty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpulab.foundation.errors import Message

from . import messages
from .run import name_of

IN_CUDA = "// YOUR CODE HERE"  # the placeholder for a solution in CUDA C++


class NotSolvedYet(Message):
    """A cell needs a function that the learner has not written yet."""


def need(*functions: Callable[..., Any]) -> None:
    """Stop the cell unless all of `functions` have been written.

    A function counts as unwritten while it contains the ``raise NotImplementedError()`` that the lab put
    there, and a kernel in CUDA C++ while its text contains the comment that marks the gap. Raises
    NotSolvedYet.

    >>> @cuda.jit
    ... def double(a, out):
    ...     i = cuda.grid(1)
    ...     if i < a.size:
    ...         out[i] = a[i]  # not doubled
    >>> gpulab.need(double)
    """
    for fn in functions:
        if is_empty(fn):
            raise NotSolvedYet(messages.write_first(name_of(fn)))


def is_empty(fn: Any) -> bool:
    """Whether a function or kernel is still as the lab left it."""
    if IN_CUDA in (getattr(fn, "code", None) or ""):
        return True
    code = getattr(getattr(fn, "py_func", fn), "__code__", None)
    return code is not None and "NotImplementedError" in code.co_names
