"""Lets numba-cuda compile on a machine without a GPU or driver.

numba-cuda asks the driver twice while it compiles: for the device's compute capability, when a kernel calls
device functions, and for the driver's version, when it compiles CUDA C++. `compiling_for` answers instead,
in this thread and for its own duration only: a GPU that is there is asked as ever by everyone else.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from .cuda_c import RELOCATABLE, cuda_c_ptx

_this_thread = threading.local()


@contextmanager
def compiling_for(cc: tuple[int, int], variables: bool = False) -> Iterator[None]:
    """While it is entered, numba-cuda believes that this thread's device has compute capability `cc`.

    With `variables` it compiles so that one can say where the named variables are.
    """
    _install()
    before = getattr(_this_thread, "device", None), compiles_with_variables()
    _this_thread.device, _this_thread.variables = SimpleNamespace(compute_capability=cc), variables
    try:
        yield
    finally:
        _this_thread.device, _this_thread.variables = before


def compiles_with_variables() -> bool:
    """Whether this thread compiles so that one can say where the named variables are."""
    return bool(getattr(_this_thread, "variables", False))


def exceptions_compiled() -> dict[int, Any]:
    """What the kernel that this thread compiled last may raise: (class, arguments, place) by number."""
    return dict(getattr(_this_thread, "exceptions", {}))


def numbas_includes() -> list[str]:
    """Folders of headers that numba was told of, by NUMBA_CUDA_NVRTC_EXTRA_SEARCH_PATHS."""
    from numba.cuda import config

    paths = getattr(config, "CUDA_NVRTC_EXTRA_SEARCH_PATHS", "")
    return [f"-I{path}" for path in paths.split(os.pathsep) if path]


def _install() -> None:
    from numba.cuda import compiler, dispatcher
    from numba.cuda.cudadrv import nvrtc

    compile_function = compiler.compile_cuda
    ask_the_driver, compile_with_driver = dispatcher.get_current_device, nvrtc.compile
    if getattr(ask_the_driver, "is_ours", False):
        return

    def get_current_device() -> Any:
        return getattr(_this_thread, "device", None) or ask_the_driver()

    def compile(
        src: str | bytes,
        name: str,
        cc: tuple[Any, ...],
        ltoir: bool = False,
        lineinfo: bool = False,
        debug: bool = False,
    ) -> tuple[Any, Any]:
        if ltoir or getattr(_this_thread, "device", None) is None:
            return compile_with_driver(src, name, cc, ltoir=ltoir, lineinfo=lineinfo, debug=debug)
        text = src.decode() if isinstance(src, bytes) else src
        return cuda_c_ptx(text, cc[:2], name, (*RELOCATABLE, *numbas_includes())), ""

    def compile_cuda(*args: Any, **named: Any) -> Any:
        result = compile_function(*args, **named)
        # A device function for callers in C has none.
        _this_thread.exceptions = getattr(result.call_helper, "exceptions", {})
        return result

    compiler.compile_cuda = compile_cuda
    get_current_device.is_ours = True  # type: ignore[attr-defined]
    dispatcher.get_current_device, nvrtc.compile = get_current_device, compile
