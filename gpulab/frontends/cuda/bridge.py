"""From a machine with a GPU to the simulator: what was made with numba.cuda, counted on the simulated device.

There a learner's `cuda` is numba.cuda itself and nothing goes through our door. `simulated` makes copies
that do.
"""

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import Any

from gpulab.simulator import compile

from . import kernels
from .kernels import Kernel, LaunchConfiguration


def simulated(thing: Any) -> Any:
    """A numba kernel, one with its launch shape, or host code that launches numba kernels, made simulated.

    What is simulated already, and everything else, is returned as it is.
    """
    return _Bridge()(thing)


class _Bridge:
    """Remembers what it made, so that the same kernel is compiled once and recursion ends."""

    def __init__(self) -> None:
        self.made: dict[int, Any] = {}

    def __call__(self, thing: Any) -> Any:
        if id(thing) in self.made:
            return self.made[id(thing)]
        kind = type(thing).__name__
        if kind == "CUDADispatcher":
            new: Any = _kernel(thing)
        elif kind == "_LaunchConfiguration":
            new = LaunchConfiguration(
                self(thing.dispatcher), thing.griddim, thing.blockdim, 0, int(thing.sharedmem)
            )
        elif isinstance(thing, ModuleType) and thing.__name__ == "numba.cuda":
            from gpulab.frontends import cuda as new
        elif isinstance(thing, FunctionType) and not _is_installed(thing):
            return compile.copy_with(thing, self, lambda copy: self.made.__setitem__(id(thing), copy))
        else:
            return thing
        self.made[id(thing)] = new
        return new


def _kernel(dispatcher: Any) -> Kernel:
    found = getattr(dispatcher, "__gpulab_kernel__", None)
    if found is None:
        options = {k: v for k, v in dispatcher.targetoptions.items() if k != "extensions"}
        found = Kernel(dispatcher.py_func, options)
        dispatcher.__gpulab_kernel__ = found
    return found


def _is_installed(fn: FunctionType) -> bool:
    """Whether a function belongs to a library, which launches no kernels of the learner's."""
    return "site-packages" in fn.__code__.co_filename or fn.__module__ in ("builtins", kernels.__name__)
