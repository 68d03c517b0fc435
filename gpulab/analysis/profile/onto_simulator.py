"""On a machine with a GPU a learner's kernels are numba's, CuPy's or Triton's own. Here they become simulated
ones.

Counts are the simulator's on every machine. Where there is no GPU nothing of this is needed: kernels are
simulated from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CellType, FunctionType
from typing import Any

from gpulab.frontends import cuda as simulated_cuda
from gpulab.frontends.cuda.arrays import DeviceArray
from gpulab.frontends.cuda.kernels import Kernel
from gpulab.frontends.cuda.transfers import has_gaps, to_device
from gpulab.frontends.cupy import asarray

from . import cupy_onto_simulator, triton_onto_simulator

OPTIONS = ("device", "fastmath", "max_registers", "launch_bounds", "inline", "forceinline", "opt")


def onto_simulator(fn: Any) -> Any:
    """The same code on the simulated device: a kernel of numba, with or without its shape, one of CuPy's, or
    host code.

    Host code is copied with its globals, so that the learner's own names stay as they are. Anything else is
    returned as it is.
    """
    return _Moved().value(fn)


class _Moved:
    """What has been moved so far: kernels call each other, functions of a notebook share their globals."""

    def __init__(self) -> None:
        self._kernels: dict[int, Kernel] = {}
        self._cupys: dict[int, Any] = {}
        self._tritons: dict[int, Any] = {}
        self._functions: dict[int, FunctionType] = {}
        self._globals: dict[int, dict[str, Any]] = {}

    def value(self, thing: Any) -> Any:
        from numba import cuda
        from numba.cuda.dispatcher import CUDADispatcher, _LaunchConfiguration

        if thing is cuda:
            return simulated_cuda
        if isinstance(thing, CUDADispatcher):
            return self._kernel(thing)
        if isinstance(thing, _LaunchConfiguration):
            kernel = self._kernel(thing.dispatcher)
            return kernel[thing.griddim, thing.blockdim, 0, thing.sharedmem]
        if cupy_onto_simulator.is_cupys(thing):
            if id(thing) not in self._cupys:
                self._cupys[id(thing)] = cupy_onto_simulator.simulated(thing, self.value)
            return self._cupys[id(thing)]
        if triton_onto_simulator.is_tritons(thing):
            if id(thing) not in self._tritons:
                self._tritons[id(thing)] = triton_onto_simulator.simulated(thing)
            return self._tritons[id(thing)]
        return self._function(thing) if type(thing) is FunctionType else thing

    def _kernel(self, dispatcher: Any) -> Kernel:
        if id(dispatcher) not in self._kernels:
            options = {name: dispatcher.targetoptions.get(name) for name in OPTIONS}
            kept = {name: value for name, value in options.items() if value is not None}
            self._kernels[id(dispatcher)] = simulated_cuda.jit(**kept)(dispatcher.py_func)
        return self._kernels[id(dispatcher)]

    def _function(self, fn: FunctionType) -> FunctionType:
        if not (_is_learners(fn) and self._launches(fn, set())):
            return fn
        if id(fn) not in self._functions:
            names = self._globals.setdefault(id(fn.__globals__), dict(fn.__globals__))
            cells = tuple(CellType() for _ in fn.__closure__ or ())
            copy = FunctionType(fn.__code__, names, fn.__name__, fn.__defaults__, cells or None)
            copy.__kwdefaults__ = fn.__kwdefaults__
            self._functions[id(fn)] = copy  # before what it reaches, which may reach back
            for name in _names(fn) & fn.__globals__.keys():
                names[name] = self.value(fn.__globals__[name])
            for cell, old in zip(cells, fn.__closure__ or (), strict=True):
                cell.cell_contents = self.value(old.cell_contents)
        return self._functions[id(fn)]

    def _launches(self, fn: FunctionType, seen: set[int]) -> bool:
        """Does it reach a kernel of numba, CuPy or Triton, itself or through functions that it calls?"""
        from numba import cuda
        from numba.cuda.dispatcher import CUDADispatcher

        seen.add(id(fn))
        for thing in _reached(fn):
            if thing is cuda or isinstance(thing, CUDADispatcher):
                return True
            if cupy_onto_simulator.is_cupys(thing) or triton_onto_simulator.is_tritons(thing):
                return True
            more = type(thing) is FunctionType and id(thing) not in seen and _is_learners(thing)
            if more and self._launches(thing, seen):
                return True
        return False


def _is_learners(fn: FunctionType) -> bool:
    return not fn.__module__ or fn.__module__.partition(".")[0] not in ("numba", "numpy", "cupy", "gpulab")


def _names(fn: FunctionType) -> set[str]:
    """The global names that a function and the functions inside it mention."""
    found, codes = set(), [fn.__code__]
    while codes:
        code = codes.pop()
        found |= set(code.co_names)
        codes += [c for c in code.co_consts if isinstance(c, type(fn.__code__))]
    return found


def _reached(fn: FunctionType) -> Iterator[Any]:
    yield from (fn.__globals__[name] for name in _names(fn) if name in fn.__globals__)
    yield from (cell.cell_contents for cell in fn.__closure__ or ())


@contextmanager
def arrays_there(args: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Arguments for the simulated device: arrays on a GPU are copied over, and back at the end."""
    back: list[Callable[[], None]] = []
    yield _there(args, back)
    for bring in back:
        bring()


def _there(args: tuple[Any, ...], back: list[Callable[[], None]]) -> tuple[Any, ...]:
    """`args` with arrays of the simulated device; CuPy's kernels take theirs in a tuple of its own. `back`
    gets what brings each array back."""
    found = []
    for arg in args:
        new = arg
        if isinstance(arg, tuple):
            new = _there(arg, back)
        elif hasattr(arg, "copy_to_host") and not isinstance(arg, DeviceArray):
            new = _numbas(arg, back)
        elif cupy_onto_simulator.is_array(arg):
            new = _cupys(arg, back)
        found.append(new)
    return tuple(found)


def _numbas(old: Any, back: list[Callable[[], None]]) -> DeviceArray:
    """A copy of an array of numba's. A slice comes with the gaps that it has on the GPU; its elements alone
    are copied, and assigned to it at the end, since numba copies into one piece of memory only."""
    host = old.copy_to_host()
    gaps = has_gaps(host)
    new = to_device(host.copy() if gaps else host)

    def bring() -> None:
        if gaps:
            old[:] = new.copy_to_host()
        else:
            old.copy_to_device(new.copy_to_host())

    back.append(bring)
    return new


def _cupys(old: Any, back: list[Callable[[], None]]) -> Any:
    """A copy of an array of CuPy's."""
    new = asarray(old.get())
    back.append(lambda: old.set(new.get()))
    return new
