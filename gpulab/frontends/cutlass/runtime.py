"""The functions of CUDA's runtime that compiled host code of CuTe DSL calls, by their names there."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from gpulab.frontends import driver
from gpulab.frontends.driver import functions as does
from gpulab.simulator.device import LaunchError

P, I = ctypes.c_void_p, ctypes.c_int
ANSWERED: dict[str, tuple[Callable[..., int | None], tuple[Any, ...]]] = {
    "_cudaLibraryGetKernel": (does.get_kernel, (P, P, P)),
    "_cudaLibraryUnload": (driver.taken_out, (P,)),
    "_cuKernelGetAttribute": (does.kernel_attribute, (P, I, P, I)),
    "_cudaKernelSetAttributeForDevice": (does.nothing, (P, I, I, I)),
    "_cudaFuncSetAttribute": (does.nothing, (P, I, I)),
    "_cudaLaunchKernelEx": (does.launch, (P, P, P)),
    "_cudaDeviceGetAttribute": (does.device_attribute, (P, I, I)),
    "_cudaGetDevice": (does.zero, (P,)),
    "_cudaGetDeviceCount": (does.one, (P,)),
    "_cudaSetDevice": (does.nothing, (I,)),
    "_cudaDeviceSynchronize": (does.nothing, ()),
    "_cudaStreamCreate": (does.new, (P,)),
    "_cudaStreamDestroy": (does.nothing, (P,)),
    "_cudaStreamSynchronize": (does.nothing, (P,)),
    "_cudaStreamWaitEvent": (does.nothing, (P, P, I)),
    "_cudaEventCreate": (does.new, (P,)),
    "_cudaEventDestroy": (does.nothing, (P,)),
    "_cudaEventRecord": (does.nothing, (P, P)),
    "_cuTensorMapEncodeTiled": (does.tensor_map, (P, I, ctypes.c_uint32, P, P, P, P, P, I, I, I, I)),
}
# What only a GPU has, or what nobody has needed yet.
REFUSED = (
    "_cudaEventElapsedTime", "_cudaGraphInstantiate", "_cudaGraphLaunch", "_cudaLaunchKernel",
    "_cudaLibraryGetGlobal", "_cudaLibraryGetManaged", "_cudaLibraryGetUnifiedFunction",
    "_cudaLibraryLoadFromFile", "_cudaMalloc", "_cudaMallocAsync", "_cudaMallocHost", "_cudaMallocManaged",
    "_cudaMemcpy", "_cudaMemcpyAsync", "_cudaMemset", "_cudaMemsetAsync", "_cudaFree", "_cudaFreeAsync",
    "_cudaFreeHost", "_cudaGetDeviceProperties", "_cudaOccupancyMaxActiveBlocksPerMultiprocessor",
    "_cudaStreamAddCallback", "_cudaStreamBeginCapture", "_cudaStreamEndCapture",
)  # fmt: skip


def _refusing(name: str) -> Callable[..., None]:
    def refuse(*_: Any) -> None:
        raise LaunchError(f"CuTe DSL called {name.lstrip('_')}, which the simulated device does not have.")

    return refuse


FUNCTIONS: dict[str, Any] = {
    **{name: driver.c_function(answer, *types) for name, (answer, types) in ANSWERED.items()},
    **{name: driver.c_function(_refusing(name), *[P] * 6) for name in REFUSED},
}
