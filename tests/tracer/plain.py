"""Runs a numba kernel as plain Python, one thread at a time, and writes down its variables line by line."""

from __future__ import annotations

import inspect
import sys
from types import SimpleNamespace
from typing import Any

from gpulab.frontends.cuda.kernels import Kernel


def python_steps(kernel: Kernel, thread: int, arguments: tuple[Any, ...]) -> list[tuple[int, dict[str, Any]]]:
    """(line, variables after it) of each line that one thread executes, in the kernel's own function."""
    scope = dict(kernel.py_func.__globals__)
    scope["cuda"] = SimpleNamespace(grid=lambda axes: thread)
    for name, value in scope.items():
        if isinstance(value, Kernel) and value.is_device_function:
            scope[name] = value.py_func
    fn = type(kernel.py_func)(kernel.py_func.__code__, scope)
    found: list[tuple[int, dict[str, Any]]] = []

    def follow(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code is not fn.__code__:
            return None
        if event in ("line", "return") and found:
            found[-1][1].update(frame.f_locals)
        if event == "line":
            found.append((frame.f_lineno, {}))
        return follow

    before = sys.gettrace()
    sys.settrace(follow)
    try:
        fn(*arguments)
    finally:
        sys.settrace(before)
    names = set(inspect.signature(fn).parameters)
    return [(line, {n: v for n, v in values.items() if n not in names}) for line, values in found]
