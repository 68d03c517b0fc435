"""What CuTe DSL's Python code, and not its compiled host code, asks CUDA for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpulab.frontends.driver.attributes import attribute
from gpulab.simulator import device as devices

SMS, L2_BYTES = 16, 38  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, _L2_CACHE_SIZE
MOST_BLOCKS = 32  # in a cluster


def _stream(*_: Any) -> Any:
    from cuda.bindings import driver

    return driver.CUstream(0)


def _nothing(*_: Any, **__: Any) -> None:
    """There is one context, and all work is done when a launch returns."""


# By their names in ``cutlass.cuda``.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "initialize_cuda_context": _nothing,
    "context_destroy": _nothing,
    "get_current_device": lambda: 0,
    "get_compute_capability_major_minor": lambda *_: devices.current().cc,
    "stream_create": _stream,
    "stream_destroy": _nothing,
    "stream_sync": _nothing,
    "get_device_attribute": lambda which, *_: attribute(int(which)),
}


# ---- ``cuda.bindings``, by which programs in CuTe DSL look for a GPU and get memory of their own -----------


def _answered(*values: Any) -> tuple[Any, ...]:
    from cuda.bindings import runtime

    return (runtime.cudaError_t.cudaSuccess, *values)


def _driver_answered(*values: Any) -> tuple[Any, ...]:
    from cuda.bindings import driver

    return (driver.CUresult.CUDA_SUCCESS, *values)


def _allocation(address: int) -> Any:
    device = devices.current()
    found = device.memory.find(int(address))
    if found is None:
        raise devices.LaunchError(f"cudaErrorInvalidValue: {int(address):#x} is no address of device memory.")
    return found


def _malloc(size: int) -> tuple[Any, ...]:
    return _answered(devices.current().allocate(int(size)).address)


def _free(address: int) -> tuple[Any, ...]:
    allocation = _allocation(address)
    if allocation.address != int(address):
        raise devices.LaunchError(
            f"cudaErrorInvalidValue: {int(address):#x} is inside an allocation that begins at "
            f"{allocation.address:#x}. Free that address."
        )
    devices.current().free(allocation)
    return _answered()


def _memset(address: int, value: int, count: int) -> tuple[Any, ...]:
    allocation = _allocation(address)
    first = int(address) - allocation.address
    if first + count > allocation.nbytes:
        raise devices.LaunchError(
            f"cudaErrorInvalidValue: cudaMemset of {count:,} bytes at {int(address):#x}, where only "
            f"{allocation.nbytes - first:,} are allocated."
        )
    devices.current().host_view(allocation, writes=True)[first : first + count] = value & 0xFF
    return _answered()


RUNTIME: dict[str, Callable[..., tuple[Any, ...]]] = {
    "cudaMalloc": _malloc,
    "cudaFree": _free,
    "cudaMemset": _memset,
    "cudaDeviceSynchronize": lambda: _answered(),
}
DRIVER: dict[str, Callable[..., tuple[Any, ...]]] = {
    "cuInit": lambda flags: _driver_answered(),
    "cuDeviceGetCount": lambda: _driver_answered(1),
}


class HardwareInfo:
    """``cutlass.utils.HardwareInfo`` of the simulated GPU, from its data sheet."""

    def __init__(self, device_id: int = 0):
        if device_id:
            raise ValueError(f"Device ID {device_id} is out of range for device count 1")
        self.device_id = device_id

    def get_max_active_clusters(self, cluster_size: int, stream: Any = None) -> int:
        """How many clusters of blocks that fill an SM each are resident at once."""
        if not 0 < cluster_size <= MOST_BLOCKS:
            raise ValueError(f"Cluster size must be between 1 and 32, {cluster_size} is not supported")
        return attribute(SMS) // cluster_size

    def get_l2_cache_size_in_bytes(self) -> int:
        return attribute(L2_BYTES)

    def get_device_multiprocessor_count(self) -> int:
        return attribute(SMS)


def install() -> None:
    """Put these where the package has those that ask CUDA's driver."""
    import cutlass
    from cuda.bindings import driver, runtime
    from cutlass import utils
    from cutlass.utils import hardware_info

    for name, function in FUNCTIONS.items():
        setattr(cutlass.cuda, name, function)
    for module, answers in ((runtime, RUNTIME), (driver, DRIVER)):
        for name, answer in answers.items():
            setattr(module, name, answer)
    utils.HardwareInfo = hardware_info.HardwareInfo = HardwareInfo
