"""The host's side of numba.cuda: allocation, streams and events, contexts, devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from gpulab.simulator import device as devices
from gpulab.simulator.hardware import GPU, amount

from .arrays import DeviceArray, MappedArray
from .arrays import mapped as mapped_view
from .streams import Event, Stream

# Arrays


def device_array(
    shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", stream: Stream | int = 0
) -> DeviceArray:
    """A new device array. Its elements are NaN (floats) or -1 (integers) until something is written."""
    return DeviceArray(shape, dtype, strides, order, stream)


def device_array_like(ary: Any, stream: Stream | int = 0) -> DeviceArray:
    """A new device array of the shape, dtype and order of another array."""
    return DeviceArray(ary.shape, ary.dtype, None, _order_of(ary), stream)


def pinned_array(shape: Any, dtype: Any = np.float64, strides: Any = None, order: Any = "C") -> np.ndarray:
    """An ordinary NumPy array: page-locked memory only matters to the speed of real copies."""
    return np.ndarray(shape, dtype, strides=strides, order=order)


def pinned_array_like(ary: np.ndarray) -> np.ndarray:
    """A pinned array of the shape, dtype and order of another array."""
    return pinned_array(ary.shape, ary.dtype, order=_order_of(ary))


def mapped_array(
    shape: Any,
    dtype: Any = np.float64,
    strides: Any = None,
    order: str = "C",
    stream: Stream | int = 0,
    portable: bool = False,
    wc: bool = False,
) -> MappedArray:
    """A NumPy array that kernels read and write directly, without copies."""
    return mapped_view(DeviceArray(shape, dtype, strides, order, stream))


def mapped_array_like(
    ary: Any, stream: Stream | int = 0, portable: bool = False, wc: bool = False
) -> MappedArray:
    """A mapped array of the shape, dtype and order of another array."""
    return mapped_array(ary.shape, ary.dtype, order=_order_of(ary), stream=stream)


def managed_array(
    shape: Any,
    dtype: Any = np.float64,
    strides: Any = None,
    order: str = "C",
    stream: Stream | int = 0,
    attach_global: bool = True,
) -> MappedArray:
    """A NumPy array that kernels read and write directly, without copies."""
    return mapped_array(shape, dtype, strides, order, stream)


@contextmanager
def pinned(*arylist: np.ndarray) -> Iterator[None]:
    """Page-locks host arrays; without effect on the simulated device."""
    yield


@contextmanager
def mapped(*arylist: np.ndarray, **kws: Any) -> Iterator[Any]:
    """The device's side of host arrays, for use inside ``with``; kernels' writes arrive at its end."""
    from .transfers import host_copy

    arrays = [host_copy(ary) for ary in arylist]
    try:
        yield arrays[0] if len(arrays) == 1 else arrays
    finally:
        for array, ary in zip(arrays, arylist, strict=True):
            array.copy_to_host(ary)


def _order_of(ary: Any) -> str:
    flags = ary.flags
    return "F" if flags["F_CONTIGUOUS"] and not flags["C_CONTIGUOUS"] else "C"


# Streams and events

_DEFAULT_STREAM = Stream()


def stream() -> Stream:
    """A new stream. Simulated work is done when the call returns, so streams only keep order."""
    stream.count += 1  # type: ignore[attr-defined]
    return Stream(stream.count)  # type: ignore[attr-defined]


stream.count = 2  # type: ignore[attr-defined]  # CUDA keeps 1 and 2 for the two default streams


def default_stream() -> Stream:
    """The default stream."""
    return _DEFAULT_STREAM


legacy_default_stream = per_thread_default_stream = default_stream


def external_stream(ptr: int) -> Stream:
    """A stream of another library."""
    return Stream(ptr)


def event(timing: bool = True) -> Event:
    """A new event. It orders work, but the simulated device has no clock: see `Event.elapsed_time`."""
    return Event(timing)


def event_elapsed_time(evtstart: Event, evtend: Event) -> float:
    """Raises NoClock: simulated events cannot measure."""
    return evtstart.elapsed_time(evtend)


def synchronize() -> None:
    """Wait for all work on the device, which is done already."""


@contextmanager
def defer_cleanup() -> Iterator[None]:
    """Without effect on the simulated device."""
    yield


@contextmanager
def profiling() -> Iterator[None]:
    """Without effect on the simulated device; see gpulab.profile."""
    yield


def profile_start() -> None:
    """Without effect on the simulated device; see gpulab.profile."""


def profile_stop() -> None:
    """Without effect on the simulated device; see gpulab.profile."""


# Devices


class ComputeCapability(NamedTuple):
    major: int
    minor: int


class MemoryInfo(NamedTuple):
    """Bytes of device memory."""

    free: int
    total: int


# CUDA's names of device attributes → the data sheet.
ATTRIBUTES: dict[str, Callable[[GPU], int]] = {
    "WARP_SIZE": lambda gpu: gpu.capability.warp,
    "MULTIPROCESSOR_COUNT": lambda gpu: int(gpu.sms),
    "COMPUTE_CAPABILITY_MAJOR": lambda gpu: gpu.cc[0],
    "COMPUTE_CAPABILITY_MINOR": lambda gpu: gpu.cc[1],
    "MAX_THREADS_PER_BLOCK": lambda gpu: gpu.capability.max_threads_per_block,
    "MAX_THREADS_PER_MULTIPROCESSOR": lambda gpu: gpu.capability.max_threads,
    "MAX_BLOCKS_PER_MULTIPROCESSOR": lambda gpu: gpu.capability.max_blocks,
    "MAX_BLOCK_DIM_X": lambda gpu: gpu.capability.max_block[0],
    "MAX_BLOCK_DIM_Y": lambda gpu: gpu.capability.max_block[1],
    "MAX_BLOCK_DIM_Z": lambda gpu: gpu.capability.max_block[2],
    "MAX_GRID_DIM_X": lambda gpu: gpu.capability.max_grid[0],
    "MAX_GRID_DIM_Y": lambda gpu: gpu.capability.max_grid[1],
    "MAX_GRID_DIM_Z": lambda gpu: gpu.capability.max_grid[2],
    "MAX_REGISTERS_PER_BLOCK": lambda gpu: gpu.capability.registers_per_block,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": lambda gpu: gpu.capability.registers_per_sm,
    "MAX_SHARED_MEMORY_PER_BLOCK": lambda gpu: gpu.capability.shared_per_block_static,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": lambda gpu: gpu.capability.shared_per_block_optin,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": lambda gpu: gpu.capability.shared_per_sm,
    "RESERVED_SHARED_MEMORY_PER_BLOCK": lambda gpu: gpu.capability.shared_reserved,
    "TOTAL_CONSTANT_MEMORY": lambda gpu: gpu.capability.constant_bytes,
    "L2_CACHE_SIZE": lambda gpu: int(gpu.l2_bytes),
    "CLOCK_RATE": lambda gpu: int(gpu.boost_clock) // 1000,
    "SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO": lambda gpu: int(gpu.fp32_lanes) // int(gpu.fp64_lanes),
    "UNIFIED_ADDRESSING": lambda gpu: 1,
    "MANAGED_MEMORY": lambda gpu: 1,
    "CAN_MAP_HOST_MEMORY": lambda gpu: 1,
    "CONCURRENT_KERNELS": lambda gpu: 0,
    "ASYNC_ENGINE_COUNT": lambda gpu: 0,
    "KERNEL_EXEC_TIMEOUT": lambda gpu: 0,
    "TCC_DRIVER": lambda gpu: 0,
    "PCI_DOMAIN_ID": lambda gpu: 0,
    "PCI_BUS_ID": lambda gpu: 0,
    "PCI_DEVICE_ID": lambda gpu: 0,
}


class Device:
    """The simulated GPU as numba describes one: CUDA's attributes by name, from the data sheet.

    ``device.name`` is a name, ``device.compute_capability`` a pair; CLOCK_RATE is in kHz, sizes in bytes.
    """

    id = 0
    uuid = "GPU-simulated"

    @property
    def name(self) -> str:
        return f"{devices.current().gpu.product} (simulated)"

    @property
    def compute_capability(self) -> ComputeCapability:
        return ComputeCapability(*devices.current().cc)

    def __getattr__(self, name: str) -> int:
        if name not in ATTRIBUTES:
            raise AttributeError(f"the simulated device has no attribute {name!r}")
        return ATTRIBUTES[name](devices.current().gpu)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *ATTRIBUTES})

    @property
    def supports_float16(self) -> bool:
        return True

    @property
    def supports_bfloat16(self) -> bool:
        return self.compute_capability >= (8, 0)

    @property
    def supports_fp8(self) -> bool:
        return self.compute_capability >= (8, 9)

    def get_device_identity(self) -> dict[str, int]:
        return {"pci_domain_id": 0, "pci_bus_id": 0, "pci_device_id": 0}

    def get_primary_context(self) -> Context:
        return _CONTEXT

    def reset(self) -> None:
        """Forget nothing: arrays free their memory when they go out of use."""

    def __repr__(self) -> str:
        return f"<CUDA device 0 '{self.name}'>"


class Context:
    """The only context of the simulated device."""

    device = Device()

    def get_memory_info(self) -> MemoryInfo:
        """(free, total) bytes of the GPU's memory, by the data sheet and by what arrays use."""
        device = devices.current()
        total = int(device.gpu.dram_bytes)
        return MemoryInfo(max(total - device.memory.used, 0), total)

    def synchronize(self) -> None:
        """Wait for all work on the device, which is done already."""

    def reset(self) -> None:
        """Forget nothing: arrays free their memory when they go out of use."""

    def create_stream(self) -> Stream:
        return stream()

    def get_default_stream(self) -> Stream:
        return _DEFAULT_STREAM

    def create_event(self, timing: bool = True) -> Event:
        return Event(timing)

    def defer_cleanup(self) -> Any:
        return defer_cleanup()

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *error: object) -> None:
        pass


_CONTEXT = Context()


class DeviceList:
    """All devices: one."""

    current = _CONTEXT

    def __getitem__(self, number: int) -> Context:
        _check_device(number)
        return _CONTEXT

    def __iter__(self) -> Iterator[Context]:
        return iter([_CONTEXT])

    def __len__(self) -> int:
        return 1


gpus = DeviceList()


def _check_device(number: int) -> None:
    if number != 0:
        raise IndexError(f"there is one simulated device, number 0; {number} does not exist")


def current_context(devnum: int | None = None) -> Context:
    """The context of the simulated device."""
    _check_device(devnum or 0)
    return _CONTEXT


def get_current_device() -> Device:
    """The simulated device."""
    return _CONTEXT.device


def select_device(device_id: int) -> Device:
    """The simulated device; there is only number 0."""
    _check_device(device_id)
    return _CONTEXT.device


def list_devices() -> DeviceList:
    """All devices: one."""
    return gpus


def close() -> None:
    """Without effect: arrays free their memory when they go out of use."""


def is_available() -> bool:
    """True: kernels can run, as under numba's own simulator. `gpulab.device.has_gpu` asks for a real one."""
    return True


def is_supported_version() -> bool:
    """True: no driver is involved."""
    return True


def cuda_error() -> None:
    """None: nothing went wrong."""


def is_float16_supported() -> bool:
    """Whether the simulated GPU computes in float16."""
    return _CONTEXT.device.supports_float16


def is_bfloat16_supported() -> bool:
    """Whether the simulated GPU computes in bfloat16."""
    return _CONTEXT.device.supports_bfloat16


def is_fp8_supported() -> bool:
    """Whether the simulated GPU computes in float8."""
    return _CONTEXT.device.supports_fp8


def detect() -> bool:
    """Print what there is: one simulated device."""
    gpu = devices.current().gpu
    print("Found 1 CUDA device (simulated; set GPULAB_GPU to choose another)")
    for label, value in (
        ("id 0", gpu.product),
        ("compute capability", f"{gpu.cc[0]}.{gpu.cc[1]}"),
        ("multiprocessors", int(gpu.sms)),
        ("memory", amount(float(gpu.dram_bytes), "B")),
    ):
        print(f"{label:>24}: {value}")
    return True
