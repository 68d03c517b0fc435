"""Runs on a GPU what the simulated device is given: the same machine code that is counted and modelled here.

CUDA C and numba are compiled as for the simulator; the linker turns their PTX into the machine code of the
GPU, the driver loads that and launches it with the same arguments. So what is measured and what is modelled
differ in nothing but who runs it. Needs NVIDIA's driver and `cuda.bindings`, which numba-cuda brings along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from statistics import median, quantiles
from typing import Any

import numpy as np

from gpulab import device as devices
from gpulab.compile import CompiledKernel, ptxas
from gpulab.messages import Message
from gpulab.simt import Allocation

WARM_UP, RUNS = 3, 50  # launches
# Keys of CUDA's `extra` array for launches with a packed buffer (cuda.h: CU_LAUNCH_PARAM_…).
END, BUFFER, BUFFER_SIZE = 0, 1, 2


class DriverError(Message):
    """A call of the driver failed: which, and what CUDA calls it."""


CURES = {
    "CUDA_ERROR_NO_BINARY_FOR_GPU": "The machine code is for another GPU than this one.",
    "CUDA_ERROR_UNSUPPORTED_PTX_VERSION": "The driver is older than the compiler: make setup CUDA=12.",
    "CUDA_ERROR_INVALID_IMAGE": "The driver is older than the compiler: make setup CUDA=12.",
    "CUDA_ERROR_OUT_OF_MEMORY": "Another program holds the GPU's memory: nvidia-smi lists them.",
    "CUDA_ERROR_DEVICE_UNAVAILABLE": "Another program holds the GPU alone: nvidia-smi lists them.",
}


@cache
def _driver() -> Any:
    """`cuda.bindings.driver`, initialised, with the first GPU in use."""
    from cuda.bindings import driver

    _checked(driver, "cuInit", driver.cuInit(0))
    (gpu,) = _checked(driver, "cuDeviceGet", driver.cuDeviceGet(0))
    (context,) = _checked(driver, "cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain(gpu))
    _checked(driver, "cuCtxSetCurrent", driver.cuCtxSetCurrent(context))
    return driver


def _checked(driver: Any, name: str, answer: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a call gave besides its error. Raises DriverError."""
    error, *rest = answer
    if int(error):
        called = getattr(error, "name", str(error))
        raise DriverError(f"{name}: {called}. {CURES.get(called, '')}".rstrip(" "))
    return tuple(rest)


def call(name: str, *arguments: Any) -> tuple[Any, ...]:
    """Call a function of the driver and return what it gave. Raises DriverError."""
    driver = _driver()
    return _checked(driver, name, getattr(driver, name)(*arguments))


@dataclass(frozen=True)
class Identity:
    """What the driver says of the GPU. `driver_cuda` is the newest CUDA that it knows, as in 13.0."""

    name: str
    cc: tuple[int, int]
    l2_bytes: int
    driver_cuda: str


def identity() -> Identity:
    """The first GPU of this machine. Raises DriverError."""
    driver = _driver()
    kinds = driver.CUdevice_attribute
    (gpu,) = call("cuDeviceGet", 0)
    (name,) = call("cuDeviceGetName", 128, gpu)

    def attribute(kind: Any) -> int:
        return int(call("cuDeviceGetAttribute", kind, gpu)[0])

    (version,) = call("cuDriverGetVersion")
    return Identity(
        bytes(name).split(b"\0")[0].decode(),
        (
            attribute(kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
            attribute(kinds.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        ),
        attribute(kinds.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
        f"{int(version) // 1000}.{int(version) % 1000 // 10}",
    )


class OnGPU:
    """An executor for `SimulatedDevice.executed_by`: carries every launch out on the GPU.

    Arrays that a launch names go there before it and come back behind it. Memory that nobody has written
    stays so on the GPU, where tools look for that. `kernels` are those that ran; `times` holds the seconds of
    each launch if it is `timed`.
    """

    def __init__(self, cc: tuple[int, int], timed: bool = False) -> None:
        self.cc, self.timed = cc, timed
        self.kernels: list[CompiledKernel] = []
        self.times: list[list[float]] = []

    def host_access(self, device: devices.SimulatedDevice, allocation: Allocation, writes: bool) -> None:
        pass

    def launch(self, device: devices.SimulatedDevice, launch: devices.Launch) -> None:
        if launch.kernel.cooperative:
            raise DriverError(f"{launch.kernel.name} waits for its whole grid, which is not launched here.")
        self.kernels.append(launch.kernel)
        arguments = bytearray(launch.arguments)
        with _memory() as at:
            for place in launch.pointers:
                address = int.from_bytes(arguments[place : place + 8], "little")
                allocation = device.memory.find(address)
                if allocation is not None:
                    there = at(allocation) + address - allocation.address
                    arguments[place : place + 8] = there.to_bytes(8, "little")
            with _loaded(launch, self.cc) as function:
                start = _starter(function, launch, arguments)
                start()
                call("cuCtxSynchronize")
                at.bring_back()
                if self.timed:
                    self.times.append(_times(start))


class _Mirror:
    """Memory of the GPU that stands for allocations of the simulated device."""

    def __init__(self) -> None:
        self._there: dict[int, tuple[Allocation, Any]] = {}

    def __call__(self, allocation: Allocation) -> int:
        """Its address there, with the same bytes."""
        if allocation.address not in self._there:
            (pointer,) = call("cuMemAlloc", max(allocation.nbytes, 1))
            self._there[allocation.address] = allocation, pointer
            if allocation.written and allocation.nbytes:
                call("cuMemcpyHtoD", pointer, allocation.data.ctypes.data, allocation.nbytes)
        return int(self._there[allocation.address][1])

    def bring_back(self) -> None:
        for allocation, pointer in self._there.values():
            if allocation.nbytes:
                call("cuMemcpyDtoH", allocation.data.ctypes.data, pointer, allocation.nbytes)
                allocation.written = True

    def free(self) -> None:
        for _, pointer in self._there.values():
            call("cuMemFree", pointer)


@contextmanager
def _memory() -> Iterator[_Mirror]:
    mirror = _Mirror()
    yield mirror
    mirror.free()  # not after an error: then the driver frees all when the process ends


@contextmanager
def _loaded(launch: devices.Launch, cc: tuple[int, int]) -> Iterator[Any]:
    """The kernel of a launch as a function of the driver."""
    kernel = launch.kernel
    _, code = ptxas.link(kernel.ptx, cc, kernel.max_registers)
    (module,) = call("cuModuleLoadData", code)
    (function,) = call("cuModuleGetFunction", module, kernel.entry.encode())
    if launch.shared_bytes:
        kind = _driver().CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        call("cuFuncSetAttribute", function, kind, launch.shared_bytes)
    yield function
    call("cuModuleUnload", module)


def _starter(function: Any, launch: devices.Launch, arguments: bytearray) -> Callable[[], None]:
    packed = np.frombuffer(bytes(arguments), np.uint8).copy()
    size = np.array([packed.size], np.uint64)
    extra = np.array([BUFFER, packed.ctypes.data, BUFFER_SIZE, size.ctypes.data, END], np.uint64)

    def start() -> None:
        assert packed.size and size.size  # alive as long as `extra` points to them
        shape = (*launch.grid, *launch.block, launch.shared_bytes, 0)
        call("cuLaunchKernel", function, *shape, 0, extra.ctypes.data)

    return start


def _times(start: Callable[[], None]) -> list[float]:
    """Seconds of `RUNS` launches by CUDA's events, each with an L2 that holds something else before."""
    bigger = 2 * identity().l2_bytes
    (other,) = call("cuMemAlloc", bigger)
    for _ in range(WARM_UP):
        start()
    pairs = []
    for turn in range(RUNS):
        call("cuMemsetD8Async", other, turn % 256, bigger, 0)
        before, after = call("cuEventCreate", 0)[0], call("cuEventCreate", 0)[0]
        call("cuEventRecord", before, 0)
        start()
        call("cuEventRecord", after, 0)
        pairs.append((before, after))
    call("cuCtxSynchronize")
    seconds = [float(call("cuEventElapsedTime", *pair)[0]) / 1e3 for pair in pairs]
    for event in (event for pair in pairs for event in pair):
        call("cuEventDestroy", event)
    call("cuMemFree", other)
    return seconds


def summary(seconds: list[float]) -> dict[str, float | int]:
    """Median, and where the middle four fifths of all runs begin and end."""
    tenths = quantiles(seconds, n=10, method="inclusive")
    return {"median": median(seconds), "low": tenths[0], "high": tenths[-1], "runs": len(seconds)}
