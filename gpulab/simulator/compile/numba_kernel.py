"""A Python function → PTX through numba-cuda, with gpulab's stand-ins replaced and no driver needed."""

from __future__ import annotations

import inspect
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

from .driverless import compiles_with_variables, compiling_for, exceptions_compiled
from .kernel import Capability, CompiledKernel, CompileError
from .lines import with_learners_lines
from .linking import link
from .numba_errors import in_words
from .stand_ins import with_real_names
from .versions import no_code_for, supported_capabilities, version_in

if TYPE_CHECKING:
    from numba.cuda.dispatcher import CUDADispatcher

# Options of cuda.jit that reach the compiler of a kernel, and of a device function.
KERNEL_OPTIONS = ("fastmath", "opt", "launch_bounds")
DEVICE_OPTIONS = ("fastmath", "opt", "inline", "forceinline")


@contextmanager
def without_driver(fn: FunctionType, cc: Capability, variables: bool = False) -> Iterator[FunctionType]:
    """A context in which numba-cuda compiles for `cc` on any machine; its value is `fn` as numba understands
    it.

    With `variables`, device functions are compiled so that the places of their variables are known.

    >>> def fill(out):
    ...     out[0] = 1.0
    >>> with without_driver(fill, (8, 0)) as function:
    ...     function.__name__
    'fill'
    """
    with compiling_for(cc, variables), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Could not find source")  # a function made by exec
        yield with_real_names(fn, cc)


class NumbaFunction:
    """A learner's function with the options of its `cuda.jit`: a kernel or a device function.

    Compiled once per argument types and compute capability. As with numba, globals and closure cells are
    constants from then on. All options of `numba.cuda.jit` are taken; those that change no PTX change
    nothing. A device function with `signatures` (argument types, return type) converts its arguments to one
    of them.
    """

    def __init__(self, fn: FunctionType, **options: Any):
        self.fn = fn
        self.options = options
        self.signatures: list[tuple[tuple[Any, ...], Any]] = []
        self._kernels: dict[tuple[Any, ...], CompiledKernel] = {}
        self._dispatchers: dict[tuple[Capability, bool], CUDADispatcher] = {}
        self._lock = threading.RLock()

    def kernel(self, argument_types: tuple[Any, ...], cc: Capability = (8, 0)) -> CompiledKernel:
        """The kernel for arguments of these numba types. Raises CompileError."""
        key = (tuple(argument_types), cc)
        with self._lock:
            if key not in self._kernels:
                self._kernels[key] = _compile(self.fn, key[0], cc, self.options)
            return self._kernels[key]

    def dispatcher(self, cc: Capability) -> CUDADispatcher:
        """numba's own device function, which kernels compiled for `cc` can call."""
        from numba import cuda

        def remember(copy: FunctionType) -> None:
            chosen = {
                name: self.options[name] for name in DEVICE_OPTIONS if self.options.get(name) is not None
            }
            chosen |= {"debug": True, "opt": False} if key[1] else {"lineinfo": True}
            self._dispatchers[key] = cuda.jit(copy, device=True, **chosen)

        key = cc, compiles_with_variables()
        with self._lock:
            if key not in self._dispatchers:
                with_real_names(self.fn, cc, on_copy=remember)
                with compiling_for(cc, key[1]):
                    for argument_types, result in self.signatures:
                        self._dispatchers[key].compile_device(argument_types, result)
                self._dispatchers[key].disable_compile(bool(self.signatures))
            return self._dispatchers[key]


def numba_kernel(
    fn: FunctionType, argument_types: tuple[Any, ...], cc: Capability = (8, 0), **options: Any
) -> CompiledKernel:
    """Compile `fn` as a kernel for arguments of the numba types `argument_types`.

    `cc` is the compute capability; `options` are those of `numba.cuda.jit`. Where the same function is
    compiled again and again, keep a `NumbaFunction` instead. Raises CompileError.

    >>> from numba.cuda import types
    >>> def fill(out):
    ...     out[0] = 1.0
    >>> numba_kernel(fill, (types.float32[:],)).name
    'fill'
    """
    return NumbaFunction(fn, **options).kernel(argument_types, cc)


def _compile(
    fn: FunctionType,
    argument_types: tuple[Any, ...],
    cc: Capability,
    options: dict[str, Any],
    variables: bool = False,
) -> CompiledKernel:
    from numba import cuda

    if cc not in supported_capabilities():
        raise CompileError(fn.__name__, no_code_for(cc))
    chosen = {name: options[name] for name in KERNEL_OPTIONS if options.get(name) is not None}
    raises = bool(options.get("debug"))
    if variables or raises:
        chosen |= {"debug": True, "opt": False}
    else:
        chosen |= {"lineinfo": True}

    def compiled(**more: Any) -> list[Any]:
        with without_driver(fn, cc, variables) as copy:
            return cuda.compile_all(
                copy, argument_types, device=False, abi="numba", output="ptx", cc=cc, **chosen | more
            )[0]

    try:
        try:
            ptx, *called = compiled()
        except (ZeroDivisionError, IndexError):
            # numba's own, over lines: of a kernel whose argument has no bytes, or that is a docstring only.
            ptx, *called = compiled(lineinfo=False)
    except Exception as error:
        raise in_words(error, fn) from None
    exceptions = exceptions_compiled() if raises else {}
    ptx = link(fn.__name__, with_learners_lines(ptx), [*called, *options.get("link", ())], cc)
    entry = re.search(r"\.entry\s+([\w$]+)", ptx)
    assert entry, "numba made PTX without a kernel"
    limit = options.get("max_registers")
    again = None if variables else cache(partial(_compile, fn, argument_types, cc, options, variables=True))
    numbers = _numbers_named(fn) if variables else {}
    return CompiledKernel(fn.__name__, entry[1], ptx, cc, version_in(ptx), limit, again, exceptions, numbers)


def _numbers_named(fn: FunctionType) -> dict[str, int]:
    """The whole numbers that a function knows by a name from around it."""
    named = inspect.getclosurevars(fn)
    return {n: v for n, v in {**named.globals, **named.nonlocals}.items() if isinstance(v, int)}
