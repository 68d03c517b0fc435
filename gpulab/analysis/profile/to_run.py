"""What a verb such as `sanitize` or `trace` is given to run, and what is wrong with it."""

from __future__ import annotations

import inspect
from typing import Any

OWN = {"sanitize": "cures=", "trace": "threads= and rows="}  # what a verb takes by name for itself


def misuse(verb: str, run: Any, args: tuple[Any, ...] = (), named: dict[str, Any] | None = None) -> str:
    """What is wrong with the thing to be run, or with calling it so, in one line that begins with the verb;
    empty if it can be called."""
    if hasattr(run, "py_func"):
        name = run.__name__
        return (
            f"{verb}: {name} is a kernel; say how many blocks and threads, as in "
            f"gpulab.{verb}({name}[blocks, threads_per_block], …)."
        )
    if run is None:
        return (
            f"{verb}: got None, which is what a launch returns; give the kernel and its arguments apart, "
            f"as in gpulab.{verb}(kernel[blocks, threads_per_block], x, y)."
        )
    if not callable(run):
        return (
            f"{verb}: {type(run).__name__} is nothing that launches kernels; give kernel[blocks, "
            "threads_per_block] and its arguments, or a function that launches kernels and its arguments."
        )
    return _misfit(verb, run, args, named or {})


def _misfit(verb: str, run: Any, args: tuple[Any, ...], named: dict[str, Any]) -> str:
    """Why something cannot be called with these arguments; empty if it can."""
    try:
        signature = inspect.signature(run)
    except (TypeError, ValueError):  # nobody knows what it takes
        return ""
    try:
        signature.bind(*args, **named)
    except TypeError as error:
        called = getattr(run, "__name__", "") or getattr(
            getattr(run, "kernel", None), "__name__", "the launch"
        )
        hint = f"gpulab.{verb} itself takes {OWN[verb]} by name." if named else ""
        if type(run).__name__ == "RawKernel":
            hint = f"CuPy's kernels are given as gpulab.{verb}({called}, (blocks,), (threads,), (x, y, n))."
        return f"{verb}: {called} cannot be called so: {error}. {hint}".rstrip()
    return ""
