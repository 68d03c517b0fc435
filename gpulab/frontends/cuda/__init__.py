"""numba.cuda's API on the simulated device.

What runs on the host is implemented here. Names for kernels (`grid`, `shared`, `atomic` …) stand for
numba's own, and all else that numba.cuda has, such as its types, is handed through. numba itself is loaded
when it is first needed.

What differs from a GPU: all work is done when a call returns, so streams and events only keep order and
measure nothing; new memory holds NaN or -1; every access is checked, with or without ``debug=True``, while
exceptions that a kernel raises end the thread silently, as they do in numba without debug. Missing, and
refused in words: sharing between processes, memory managers, and looking at LLVM or machine code.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from .arrays import ArrayError, DeviceArray, MappedArray
from .compiling import (
    compile,
    compile_all,
    compile_for_current_device,
    compile_ptx,
    compile_ptx_for_current_device,
)
from .device_only import DeviceOnly, OnlyInKernel, is_device_only
from .host import (
    Device,
    MemoryInfo,
    close,
    cuda_error,
    current_context,
    default_stream,
    defer_cleanup,
    detect,
    device_array,
    device_array_like,
    event,
    event_elapsed_time,
    external_stream,
    get_current_device,
    gpus,
    is_available,
    is_bfloat16_supported,
    is_float16_supported,
    is_fp8_supported,
    is_supported_version,
    legacy_default_stream,
    list_devices,
    managed_array,
    mapped,
    mapped_array,
    mapped_array_like,
    per_thread_default_stream,
    pinned,
    pinned_array,
    pinned_array_like,
    profile_start,
    profile_stop,
    profiling,
    select_device,
    stream,
    synchronize,
)
from .kernels import ForAll, Kernel, LaunchConfiguration, jit
from .not_simulated import NOT_SIMULATED, NotSimulated
from .streams import Event, NoClock, Stream
from .transfers import (
    In,
    InOut,
    Out,
    as_cuda_array,
    auto_device,
    from_cuda_array_interface,
    is_cuda_array,
    to_device,
)
from .ufuncs import Reduce, guvectorize, vectorize

__all__ = [
    "ArrayError",
    "Device",
    "DeviceArray",
    "Event",
    "ForAll",
    "In",
    "InOut",
    "Kernel",
    "LaunchConfiguration",
    "MappedArray",
    "MemoryInfo",
    "NoClock",
    "OnlyInKernel",
    "Out",
    "Reduce",
    "Stream",
    "as_cuda_array",
    "auto_device",
    "close",
    "compile",
    "compile_all",
    "compile_for_current_device",
    "compile_ptx",
    "compile_ptx_for_current_device",
    "cuda_error",
    "current_context",
    "default_stream",
    "defer_cleanup",
    "detect",
    "device_array",
    "device_array_like",
    "event",
    "event_elapsed_time",
    "external_stream",
    "from_cuda_array_interface",
    "get_current_device",
    "gpus",
    "guvectorize",
    "is_available",
    "is_bfloat16_supported",
    "is_cuda_array",
    "is_float16_supported",
    "is_fp8_supported",
    "is_supported_version",
    "jit",
    "legacy_default_stream",
    "list_devices",
    "managed_array",
    "mapped",
    "mapped_array",
    "mapped_array_like",
    "per_thread_default_stream",
    "pinned",
    "pinned_array",
    "pinned_array_like",
    "profile_start",
    "profile_stop",
    "profiling",
    "reduce",
    "select_device",
    "stream",
    "synchronize",
    "to_device",
    "vectorize",
]

implementation = "gpulab"
reduce = Reduce  # numba has both names


def __stands_for__(cc: tuple[int, int]) -> Any:
    """numba.cuda, for kernels in which this module is called `cuda`."""
    from numba import cuda

    return cuda


def __getattr__(name: str) -> Any:
    """What else numba.cuda has: names for kernels, types, submodules such as `libdevice`."""
    if name.startswith("_"):
        raise AttributeError(f"module 'gpulab.cuda' has no attribute {name!r}")
    if name in NOT_SIMULATED:
        return NotSimulated(name)
    from numba import cuda

    if name == "random":  # ours, also where numba's is loaded already
        thing: Any = importlib.import_module(f"{__name__}.{name}")
    elif hasattr(cuda, name):
        thing = getattr(cuda, name)
        thing = DeviceOnly(name) if is_device_only(thing) else thing
    else:
        try:
            thing = importlib.import_module(f"numba.cuda.{name}")
        except ImportError:
            # With its name and module Python adds "Did you mean".
            raise AttributeError(
                f"gpulab.cuda has no {name!r}, and numba.cuda neither", name=name, obj=sys.modules[__name__]
            ) from None
    globals()[name] = thing
    return thing


def __dir__() -> list[str]:
    from numba import cuda

    return sorted({*globals(), *(name for name in dir(cuda) if not name.startswith("_"))})
