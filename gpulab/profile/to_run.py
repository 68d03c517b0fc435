"""What a verb such as `sanitize` or `trace` is given to run, and what is wrong with it."""

from __future__ import annotations

from typing import Any


def misuse(verb: str, run: Any) -> str:
    """What is wrong with the thing to be run, in one line that begins with the verb; empty if it can be
    called."""
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
    return ""
