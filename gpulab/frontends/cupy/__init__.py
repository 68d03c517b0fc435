"""CuPy's API on the simulated device.

Arrays lie in simulated device memory, their functions are NumPy's. Kernels written in CUDA C++ are compiled
by NVRTC and run by the simulator. Names are made when they are first asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

from . import names, operators
from .arrays import ndarray
from .creation import (
    array,
    asanyarray,
    asarray,
    ascontiguousarray,
    asfortranarray,
    asnumpy,
    astype,
    clear_memo,
    copy,
    einsum,
    empty,
    empty_like,
    get_array_module,
    load,
    may_share_memory,
    memoize,
    save,
    savez,
    show_config,
)
from .memory import get_default_memory_pool, get_default_pinned_memory_pool
from .ufuncs import ufunc

operators.install()

# Name → the module here that has it, loaded when it is asked for.
_LATER = {
    "RawKernel": "raw",
    "RawModule": "raw",
    "ElementwiseKernel": "elementwise",
    "ReductionKernel": "reduction",
    "fuse": "fusion",
    "vectorize": "fusion",
    "mgrid": "grids",
    "ogrid": "grids",
    "r_": "grids",
    "c_": "grids",
}
_MODULES = ("cuda", "fft", "linalg", "random", "testing")

__version__ = "14.2.0"  # of the CuPy whose manners these are

__all__ = [
    "array",
    "asanyarray",
    "asarray",
    "ascontiguousarray",
    "asfortranarray",
    "asnumpy",
    "astype",
    "clear_memo",
    "copy",
    "einsum",
    "empty",
    "empty_like",
    "get_array_module",
    "get_default_memory_pool",
    "get_default_pinned_memory_pool",
    "is_available",
    "load",
    "may_share_memory",
    "memoize",
    "ndarray",
    "save",
    "savez",
    "show_config",
    "ufunc",
]


def is_available() -> bool:
    """True: kernels can run. `gpulab.simulator.device.has_gpu` asks for a real GPU."""
    return True


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        found = importlib.import_module(f"{__name__}.{name}")
    elif name in _LATER:
        found = getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    else:
        found = names.find(name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_MODULES, *names.SUBMODULES[""], *names.SHARED})
