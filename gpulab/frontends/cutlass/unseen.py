"""Functions of ours between a learner's line and CuTe DSL, which its messages must not point at.

The package shows a learner the nearest line that is neither its own nor the interpreter's. It takes a file
whose name begins with ``<`` for one of the interpreter's.
"""

from __future__ import annotations

from types import FunctionType
from typing import TypeVar, cast

Function = TypeVar("Function")


def unseen(function: Function) -> Function:
    """The same function; messages of CuTe DSL look past it."""
    code = cast(FunctionType, function).__code__
    cast(FunctionType, function).__code__ = code.replace(co_filename="<gpulab>")
    return function
