"""`cupy.cuda.runtime`: the calls of CUDA's runtime that a course makes, answered by the simulated device."""

from __future__ import annotations

from typing import Any

from gpulab.frontends.cuda.host import ATTRIBUTES
from gpulab.simulator import device as devices

from . import memory
from .devices import CUDARuntimeError, Device, attribute_name

is_hip = False
memcpyHostToHost, memcpyHostToDevice, memcpyDeviceToHost, memcpyDeviceToDevice, memcpyDefault = range(5)
memoryTypeHost, memoryTypeDevice, memoryTypeManaged = 1, 2, 3

# Fields of the device's properties → where the data sheet has them.
PROPERTIES = {
    "multiProcessorCount": "MULTIPROCESSOR_COUNT",
    "warpSize": "WARP_SIZE",
    "maxThreadsPerBlock": "MAX_THREADS_PER_BLOCK",
    "maxThreadsPerMultiProcessor": "MAX_THREADS_PER_MULTIPROCESSOR",
    "sharedMemPerBlock": "MAX_SHARED_MEMORY_PER_BLOCK",
    "sharedMemPerBlockOptin": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "sharedMemPerMultiprocessor": "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR",
    "regsPerBlock": "MAX_REGISTERS_PER_BLOCK",
    "regsPerMultiprocessor": "MAX_REGISTERS_PER_MULTIPROCESSOR",
    "l2CacheSize": "L2_CACHE_SIZE",
    "totalConstMem": "TOTAL_CONSTANT_MEMORY",
    "clockRate": "CLOCK_RATE",
    "major": "COMPUTE_CAPABILITY_MAJOR",
    "minor": "COMPUTE_CAPABILITY_MINOR",
    "managedMemory": "MANAGED_MEMORY",
    "unifiedAddressing": "UNIFIED_ADDRESSING",
}


def getDeviceCount() -> int:
    return 1


def getDevice() -> int:
    return 0


def setDevice(device: int) -> None:
    Device(device)


def getDeviceProperties(device: int) -> dict[str, Any]:
    """What the data sheet says, under the names of CUDA's structure."""
    Device(device)
    gpu = devices.current().gpu
    limits = gpu.capability
    return {
        "name": f"{gpu.product} (simulated)".encode(),
        "totalGlobalMem": int(gpu.dram_bytes),
        "maxThreadsDim": tuple(limits.max_block),
        "maxGridSize": tuple(limits.max_grid),
        **{field: ATTRIBUTES[name](gpu) for field, name in PROPERTIES.items()},
    }


def deviceGetAttribute(attrib: str, device: int = 0) -> int:
    """An attribute by its name (``cudaDevAttrWarpSize`` is one here)."""
    Device(device)
    return Device().attributes[attrib]


def memGetInfo() -> tuple[int, int]:
    """(free, total) bytes of the GPU's memory."""
    return Device().mem_info


cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder = range(4)
cudaFilterModePoint, cudaFilterModeLinear = range(2)
cudaReadModeElementType, cudaReadModeNormalizedFloat = range(2)
cudaChannelFormatKindSigned, cudaChannelFormatKindUnsigned, cudaChannelFormatKindFloat = range(3)
cudaResourceTypeArray, cudaResourceTypeLinear, cudaResourceTypePitch2D = 0, 2, 3
cudaArrayDefault, cudaArrayLayered, cudaArraySurfaceLoadStore = 0, 1, 2
cudaLimitStackSize, cudaLimitMallocHeapSize = 0, 2
LIMITS = {cudaLimitStackSize: "stack_bytes", cudaLimitMallocHeapSize: "heap_bytes"}


def deviceSetLimit(limit: int, value: int) -> None:
    if limit in LIMITS:
        devices.current().limits[LIMITS[limit]] = value


def deviceGetLimit(limit: int) -> int:
    if limit not in LIMITS:
        raise CUDARuntimeError(f"limit {limit} of the device is not simulated.")
    return devices.current().limits[LIMITS[limit]]


def deviceSynchronize() -> None:
    """Wait for all work on the device, which is done already."""


def streamSynchronize(stream: int) -> None:
    """Wait for nothing."""


def runtimeGetVersion() -> int:
    """The version of CUDA whose compiler is installed: 13050 for 13.5."""
    from gpulab.simulator.compile.cuda_c import nvrtc_version

    major, minor = nvrtc_version().split()[1].split(".")
    return int(major) * 1000 + int(minor) * 10


def driverGetVersion() -> int:
    """The same: there is no driver."""
    return runtimeGetVersion()


def malloc(size: int) -> int:
    """The address of new device memory."""
    allocation = devices.current().allocate(size)
    return allocation.address


def free(ptr: int) -> None:
    """Give device memory back."""
    device = devices.current()
    allocation = device.memory.find(ptr)
    if ptr and (allocation is None or allocation.address != ptr):
        raise CUDARuntimeError(f"cudaErrorInvalidValue: 0x{ptr:x} is no address of device memory.")
    if allocation is not None:
        device.free(allocation)


def _side(address: int, size: int, on_device: bool, writes: bool) -> Any:
    if not on_device:
        return memory.host_bytes(address, size)
    device = devices.current()
    allocation = device.memory.find(address)
    if allocation is None or address + size > allocation.address + allocation.nbytes:
        raise CUDARuntimeError(
            f"cudaErrorInvalidValue: {size:,} bytes at 0x{address:x} are not device memory."
        )
    start = address - allocation.address
    return device.host_view(allocation, writes)[start : start + size]


def memcpy(dst: int, src: int, size: int, kind: int) -> None:
    """Copy bytes between addresses of the host and the device."""
    to_device = kind in (memcpyHostToDevice, memcpyDeviceToDevice)
    from_device = kind in (memcpyDeviceToHost, memcpyDeviceToDevice)
    _side(dst, size, to_device, True)[:] = _side(src, size, from_device, False)


def memcpyAsync(dst: int, src: int, size: int, kind: int, stream: int = 0) -> None:
    memcpy(dst, src, size, kind)


def memset(ptr: int, value: int, size: int) -> None:
    """Set bytes of device memory."""
    _side(ptr, size, True, True)[:] = value


def profilerStart() -> None:
    """Without effect on the simulated device; see gpulab.profile."""


def profilerStop() -> None:
    """Without effect on the simulated device; see gpulab.profile."""


def __getattr__(name: str) -> Any:
    prefix = "cudaDevAttr"
    if name.startswith(prefix):
        wanted = name.removeprefix(prefix)
        if wanted in map(attribute_name, ATTRIBUTES):
            return wanted
    raise AttributeError(f"the simulated cupy.cuda.runtime has no {name!r}", name=name)
