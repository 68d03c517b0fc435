"""What a program asks about the device: properties, attributes, versions, limits."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gpulab.frontends.cuda.host import ATTRIBUTES
from gpulab.frontends.driver.attributes import attribute
from gpulab.frontends.driver.functions import nothing, one, put, zero
from gpulab.simulator import device as devices
from gpulab.simulator.device import LaunchError

from .errors import NOT_SUPPORTED, Refused
from .structures import Layouts

P, I = ctypes.c_void_p, ctypes.c_int
INVALID_DEVICE = 101
LIMITS = {0: "stack_bytes", 2: "heap_bytes"}  # by the number of cudaLimit…
# Attributes by CUDA's number that are about how the runtime works, so no data sheet has them.
OF_THE_RUNTIME = {
    11: 512,  # cudaDevAttrMaxPitch is larger on GPUs; nothing here needs it
    19: 0,  # integrated
    20: 1,  # can map the host's memory
    78: 1,  # stream priorities
    83: 1,  # managed memory
    88: 0,  # kernels do not reach all of the host's memory
    89: 1,  # host and device may use managed memory at once
    95: 1,  # cooperative launches
    115: 1,  # memory pools
}
# Fields of cudaDeviceProp → ATTRIBUTES.
FIELDS = {
    "warpSize": "WARP_SIZE",
    "multiProcessorCount": "MULTIPROCESSOR_COUNT",
    "major": "COMPUTE_CAPABILITY_MAJOR",
    "minor": "COMPUTE_CAPABILITY_MINOR",
    "maxThreadsPerBlock": "MAX_THREADS_PER_BLOCK",
    "maxThreadsPerMultiProcessor": "MAX_THREADS_PER_MULTIPROCESSOR",
    "maxBlocksPerMultiProcessor": "MAX_BLOCKS_PER_MULTIPROCESSOR",
    "regsPerBlock": "MAX_REGISTERS_PER_BLOCK",
    "regsPerMultiprocessor": "MAX_REGISTERS_PER_MULTIPROCESSOR",
    "sharedMemPerBlock": "MAX_SHARED_MEMORY_PER_BLOCK",
    "sharedMemPerBlockOptin": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "sharedMemPerMultiprocessor": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "reservedSharedMemPerBlock": "RESERVED_SHARED_MEMORY_PER_BLOCK",
    "totalConstMem": "TOTAL_CONSTANT_MEMORY",
    "l2CacheSize": "L2_CACHE_SIZE",
    "clockRate": "CLOCK_RATE",
    "unifiedAddressing": "UNIFIED_ADDRESSING",
    "managedMemory": "MANAGED_MEMORY",
    "canMapHostMemory": "CAN_MAP_HOST_MEMORY",
}


@dataclass
class DeviceCalls:
    """The runtime's functions about the device, of which there is one, with the number 0."""

    device: devices.SimulatedDevice
    layouts: Layouts

    def set(self, number: int, *_: int) -> None:
        """``cudaSetDevice``. Raises Refused for any other than 0."""
        if number:
            raise Refused(
                f"there is no device {number}: one GPU is simulated, with the number 0.", INVALID_DEVICE
            )

    def properties(self, where: int, number: int) -> None:
        """``cudaGetDeviceProperties``: what the data sheet says, and 0 for what it does not."""
        self.set(number)
        gpu = self.device.gpu
        self.layouts.write(
            "cudaDeviceProp",
            where,
            {
                "name": f"{gpu.product} (simulated)",
                "totalGlobalMem": int(gpu.dram_bytes),
                "maxThreadsDim": tuple(gpu.capability.max_block),
                "maxGridSize": tuple(gpu.capability.max_grid),
                "cooperativeLaunch": 1,
                "concurrentManagedAccess": 1,
                **{name: ATTRIBUTES[which](gpu) for name, which in FIELDS.items()},
            },
        )

    def attribute(self, where: int, which: int, number: int) -> None:
        """``cudaDeviceGetAttribute``."""
        self.set(number)
        if which in OF_THE_RUNTIME:
            put(where, OF_THE_RUNTIME[which], ctypes.c_int)
            return
        try:
            put(where, attribute(which), ctypes.c_int)
        except LaunchError as error:
            raise Refused(str(error)) from None

    def set_limit(self, which: int, nbytes: int) -> None:
        """``cudaDeviceSetLimit``: those that matter here, of the others nobody notices anything."""
        if which in LIMITS:
            self.device.limits[LIMITS[which]] = nbytes

    def limit(self, where: int, which: int) -> None:
        """``cudaDeviceGetLimit``. Raises Refused for a limit that is not simulated."""
        if which not in LIMITS:
            raise Refused(f"limit {which} of the device is not simulated.", NOT_SUPPORTED)
        put(where, self.device.limits[LIMITS[which]], ctypes.c_size_t)

    def version(self, where: int) -> None:
        """``cudaRuntimeGetVersion``: that of the compiler."""
        from gpulab.frontends.cupy.runtime import runtimeGetVersion

        put(where, runtimeGetVersion(), ctypes.c_int)

    def priorities(self, least: int, greatest: int) -> None:
        """``cudaDeviceGetStreamPriorityRange``."""
        put(least, 0, ctypes.c_int)
        put(greatest, -5, ctypes.c_int)

    def answers(self) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
        """(name, what answers it, types of its arguments) of each function."""
        yield "cudaGetDeviceCount", one, (P,)
        yield "cudaGetDevice", zero, (P,)
        yield "cudaChooseDevice", zero, (P, P)
        yield "cudaSetDevice", self.set, (I,)
        yield "cudaInitDevice", self.set, (I, I, I)
        for name in ("cudaGetDeviceProperties", "cudaGetDeviceProperties_v2"):
            yield name, self.properties, (P, I)
        yield "cudaDeviceGetAttribute", self.attribute, (P, I, I)
        yield "cudaDeviceCanAccessPeer", zero, (P, I, I)
        yield "cudaDeviceGetStreamPriorityRange", self.priorities, (P, P)
        yield "cudaDriverGetVersion", self.version, (P,)
        yield "cudaRuntimeGetVersion", self.version, (P,)
        yield "cudaDeviceSynchronize", nothing, ()
        yield "cudaDeviceReset", nothing, ()
        yield "cudaSetDeviceFlags", nothing, (I,)
        yield "cudaDeviceSetLimit", self.set_limit, (I, ctypes.c_size_t)
        yield "cudaDeviceGetLimit", self.limit, (P, I)
        yield "cudaDeviceSetCacheConfig", nothing, (I,)
        yield "cudaProfilerStart", nothing, ()
        yield "cudaProfilerStop", nothing, ()
