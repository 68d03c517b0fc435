"""The real package, whose compiled host code launches on the simulated device."""

from __future__ import annotations

import ctypes
import importlib
import threading
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from gpulab.frontends import driver
from gpulab.simulator import device as devices
from gpulab.simulator.compile import cute_dsl
from gpulab.simulator.device import LaunchError

from . import copies, expected, host, tensors, testing
from .runtime import FUNCTIONS
from .unseen import unseen


class _Loading(threading.local):
    function: Any = None


_loading = _Loading()


@cache
def package() -> ModuleType:
    """CuTe DSL's own ``cutlass``, tied to the simulated device. Raises MissingCompiler in one line."""
    cute_dsl.prepare(lambda: devices.current().cc)
    _give_functions()
    _launch_here()
    host.install()
    tensors.install()
    expected.install()
    copies.install()
    testing.install()
    return importlib.import_module("cutlass")


def _give_functions() -> None:
    """Host code finds our functions where it would find those of CUDA's runtime."""
    from cutlass._mlir.execution_engine import ExecutionEngine

    made = ExecutionEngine.__init__
    given = {
        name: ctypes.cast(function, ctypes.c_void_p)
        for name, function in {**FUNCTIONS, "_cudaLibraryLoadData": _load_data}.items()
    }

    def __init__(self: Any, *args: Any, **options: Any) -> None:
        made(self, *args, **options)
        for name, function in given.items():
            self.raw_register_runtime(name, function)

    ExecutionEngine.__init__ = __init__


def _launch_here() -> None:
    """A compiled function brings its PTX along, takes arrays of the host, and raises what went wrong."""
    from cutlass.base_dsl.jit_executor import JitExecutor
    from cutlass.cutlass_dsl.cuda_jit_executor import CudaDialectJitCompiledFunction

    run = JitExecutor.run_compiled_program
    load = CudaDialectJitCompiledFunction._load_cuda_library

    @unseen
    def run_compiled_program(self: Any, exe_args: list[Any]) -> int | None:
        with driver.enter(tensors.region_at, tensors.labels()), driver.errors_raised():
            return run(self, exe_args)

    @unseen
    def _load_cuda_library(self: Any) -> Any:
        before, _loading.function = _loading.function, self
        try:
            with driver.errors_raised():
                return load(self)
        finally:
            _loading.function = before

    JitExecutor.run_compiled_program = run_compiled_program
    CudaDialectJitCompiledFunction._load_cuda_library = _load_cuda_library
    CudaDialectJitCompiledFunction.num_devices = property(lambda self: 1)


def _library_of(function: Any) -> driver.Library:
    ptx = getattr(function.artifacts, "PTX", None)
    if not ptx:
        raise LaunchError(
            f"{function.function_name} was loaded from a file of machine code. The simulator runs PTX: "
            "compile it here, with cute.compile."
        )
    kernel: Callable[[str], Any] = cache(lambda entry: cute_dsl.cute_kernel(ptx, entry))
    return driver.Library(kernel)


def _load(library: int, *_: Any) -> None:
    ctypes.c_uint64.from_address(library).value = driver.handle(_library_of(_loading.function))


_load_data = driver.c_function(_load, *[ctypes.c_void_p] * 4, *[ctypes.c_void_p] * 4)
