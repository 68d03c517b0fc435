"""Runs launch traces on a GPU: the same machine code that is counted and modelled, with the same arguments.

So what is measured and what is modelled differ in nothing but who runs it. Needs NVIDIA's driver and
`cuda.bindings`, and no compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from statistics import median, quantiles
from typing import Any

import numpy as np

from gpulab.foundation.errors import Message
from gpulab.simulator import device as devices
from gpulab.simulator.compile import ptxas
from gpulab.simulator.simt import Allocation

from .case import Array, Case
from .traces import CLOCK, arguments_of, code_of

WARM_UP, RUNS = 3, 50  # launches
AHEAD = 40  # times that memory is overwritten before the first launch, which takes longer than to queue all
SPIN = 1 << 20  # cycles for which the clock is watched
STEADY, TRIES = 0.01, 200  # the clock has settled when it changes by less, from one look to the next
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
    sms: int
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
        attribute(kinds.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        attribute(kinds.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
        f"{int(version) // 1000}.{int(version) % 1000 // 10}",
    )


@dataclass(frozen=True)
class Times:
    """Seconds of one launch after the other by CUDA's events, and the SMs' clock in Hz meanwhile."""

    seconds: list[float]
    clock: float

    def summary(self) -> dict[str, float | int]:
        """Median, where the middle four fifths of all runs begin and end, and the clock."""
        tenths = quantiles(self.seconds, n=10, method="inclusive")
        return {
            "median": median(self.seconds),
            "low": tenths[0],
            "high": tenths[-1],
            "runs": len(self.seconds),
            "clock": self.clock,
        }


def run(
    code: str, entry: str, launch: Mapping[str, Any], case: Case, clock: str = ""
) -> tuple[list[Any], Times | None]:
    """Carry out a launch of a file of launch traces: the arguments afterwards, and its times if `clock`, the
    code of the kernel that watches the clock, is given. Raises DriverError."""
    arrays = {number: a for number, a in enumerate(case.arguments) if isinstance(a, np.ndarray)}
    there = {number: _filled(array) for number, array in arrays.items()}
    after, times = list(case.arguments), None
    with _loaded(code_of(code), entry, launch["shared"]) as function:
        start = _starter(function, launch, arguments_of(launch, there))
        start()
        call("cuCtxSynchronize")
        for number, array in arrays.items():
            after[number] = np.empty_like(array)
            call("cuMemcpyDtoH", after[number].ctypes.data, there[number], array.nbytes)
        if clock:
            with _clock(clock) as look:
                before = _settled(look)
                seconds = _times(start)
                times = Times(seconds, (before + look()) / 2)
    for pointer in there.values():  # not after an error: then the driver frees all when the process ends
        call("cuMemFree", pointer)
    return after, times


def beginning(clock: str) -> Times:
    """The times of a kernel that does nothing. Raises DriverError."""
    with _clock(clock) as look, _watching(clock, 0) as (start, _):
        before = _settled(look)
        seconds = _times(start)
        return Times(seconds, (before + look()) / 2)


def _filled(array: Array) -> int:
    """Memory of the GPU with the bytes of an array."""
    given = np.ascontiguousarray(array)
    (pointer,) = call("cuMemAlloc", max(given.nbytes, 1))
    call("cuMemcpyHtoD", pointer, given.ctypes.data, given.nbytes)
    return int(pointer)


@contextmanager
def _loaded(code: bytes, entry: str, shared: int = 0) -> Iterator[Any]:
    """A kernel as a function of the driver."""
    (module,) = call("cuModuleLoadData", code)
    (function,) = call("cuModuleGetFunction", module, entry.encode())
    if shared:
        kind = _driver().CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        call("cuFuncSetAttribute", function, kind, shared)
    yield function
    call("cuModuleUnload", module)


def _starter(function: Any, launch: Mapping[str, Any], packed: Array) -> Callable[[], None]:
    size = np.array([packed.size], np.uint64)
    extra = np.array([BUFFER, packed.ctypes.data, BUFFER_SIZE, size.ctypes.data, END], np.uint64)

    def start() -> None:
        assert packed.size and size.size  # alive as long as `extra` points to them
        shape = (*launch["grid"], *launch["block"], launch["shared"], 0)
        call("cuLaunchKernel", function, *shape, 0, extra.ctypes.data)

    return start


@contextmanager
def _watching(clock: str, cycles: int) -> Iterator[tuple[Callable[[], None], int]]:
    """What starts the kernel that waits for so many cycles, and where it writes how long it has."""
    (waited,) = call("cuMemAlloc", 16)
    one = {"grid": (1, 1, 1), "block": (1, 1, 1), "shared": 0}
    with _loaded(code_of(clock), CLOCK) as function:
        yield _starter(function, one, np.array([cycles, int(waited)], np.int64).view(np.uint8)), int(waited)
    call("cuMemFree", waited)


@contextmanager
def _clock(clock: str) -> Iterator[Callable[[], float]]:
    """What looks at the SMs' clock, in Hz: cycles over nanoseconds, both as a kernel sees them."""
    with _watching(clock, SPIN) as (start, waited):

        def look() -> float:
            start()
            call("cuCtxSynchronize")
            counts = np.zeros(2, np.uint64)
            call("cuMemcpyDtoH", counts.ctypes.data, waited, counts.nbytes)
            return float(counts[0]) / max(float(counts[1]), 1.0) * 1e9

        yield look


def _settled(look: Callable[[], float]) -> float:
    """The clock once it no longer changes: an idle GPU is slow and takes a while to speed up."""
    before = look()
    for _ in range(TRIES):
        now = look()
        if abs(now - before) <= STEADY * before:
            return now
        before = now
    return before


def _times(start: Callable[[], None]) -> list[float]:
    """Seconds of `RUNS` launches by CUDA's events, each with an L2 that holds something else before.

    The GPU has other work first, so that it finds launch and events in its queue and waits for neither.
    """
    bigger = 2 * identity().l2_bytes
    (other,) = call("cuMemAlloc", bigger)
    pairs = [(call("cuEventCreate", 0)[0], call("cuEventCreate", 0)[0]) for _ in range(RUNS)]
    for _ in range(WARM_UP):
        start()
    for _ in range(AHEAD):
        call("cuMemsetD8Async", other, 0, bigger, 0)
    for turn, (before, after) in enumerate(pairs):
        call("cuMemsetD8Async", other, turn % 256, bigger, 0)
        call("cuEventRecord", before, 0)
        start()
        call("cuEventRecord", after, 0)
    call("cuCtxSynchronize")
    seconds = [float(call("cuEventElapsedTime", *pair)[0]) / 1e3 for pair in pairs]
    for event in (event for pair in pairs for event in pair):
        call("cuEventDestroy", event)
    call("cuMemFree", other)
    return seconds


class OnGPU:
    """An executor for `SimulatedDevice.executed_by`: carries every launch out on the GPU.

    Arrays that a launch names go there before it and come back behind it. Memory that nobody has written
    stays so on the GPU, where tools look for that.
    """

    def __init__(self, cc: tuple[int, int]) -> None:
        self.cc = cc

    def host_access(self, device: devices.SimulatedDevice, allocation: Allocation, writes: bool) -> None:
        pass

    def launch(self, device: devices.SimulatedDevice, launch: devices.Launch) -> None:
        kernel = launch.kernel
        if kernel.cooperative:
            raise DriverError(f"{kernel.name} waits for its whole grid, which is not launched here.")
        arguments = bytearray(launch.arguments)
        with _memory() as at:
            for place in launch.pointers:
                address = int.from_bytes(arguments[place : place + 8], "little")
                allocation = device.memory.find(address)
                if allocation is not None:
                    there = at(allocation) + address - allocation.address
                    arguments[place : place + 8] = there.to_bytes(8, "little")
            code = ptxas.link(kernel.ptx, self.cc, kernel.max_registers)[1]
            with _loaded(code, kernel.entry, launch.shared_bytes) as function:
                shape = {"grid": launch.grid, "block": launch.block, "shared": launch.shared_bytes}
                _starter(function, shape, np.frombuffer(bytes(arguments), np.uint8).copy())()
                call("cuCtxSynchronize")
                at.bring_back()


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
