"""The functions of CUDA's driver that cuTile's launcher calls, by their names there."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from gpulab.frontends import driver
from gpulab.frontends.driver import functions as does
from gpulab.simulator import device as devices
from gpulab.simulator.compile import cutile
from gpulab.simulator.device import LaunchError
from gpulab.simulator.hardware.catalogue import ALL
from gpulab.simulator.simt import Allocation

P, I = ctypes.c_void_p, ctypes.c_int
MAJOR, MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
CAPABILITIES = sorted({gpu.cc for gpu in ALL})
VERSION = 13000  # the oldest driver that cuTile accepts

_device_memory: dict[int, Allocation] = {}
_host_memory: dict[int, Any] = {}
_messages = ctypes.c_char_p(b"the simulated device refused this call")
kernels: dict[str, str] = {}  # the learner's names of kernels, by those in the PTX


def _load_data(library: int, code: int, *_: Any) -> None:
    ptx = ctypes.string_at(code).decode()
    made = driver.Library(lambda entry: cutile.tile_kernel(ptx, entry, kernels.get(entry, entry)))
    does.put(library, driver.handle(made))


def _launch(config: int, kernel: int, arguments: int, _: int) -> None:
    """cuTile's blocks are one tile to its launcher; how many threads work on it is in the PTX."""
    made = driver.named(kernel)
    given = driver.read_config(config)
    directives = devices.current().program(made).module.functions[made.entry].directives
    x, y, z = (*directives["reqntid"], 1, 1)[:3] if given.block == (1, 1, 1) else given.block
    driver.launch(driver.Config(given.grid, (x, y, z), given.shared_bytes, given.cluster), made, arguments)


def _allocate(where: int, nbytes: int) -> None:
    allocation = devices.current().allocate(nbytes)
    _device_memory[allocation.address] = allocation
    does.put(where, allocation.address)


def _free(address: int) -> None:
    devices.current().free(_device_memory.pop(address))


def _allocate_host(where: int, nbytes: int) -> None:
    memory = ctypes.create_string_buffer(nbytes)
    _host_memory[ctypes.addressof(memory)] = memory
    does.put(where, ctypes.addressof(memory))


def _free_host(address: int) -> None:
    _host_memory.pop(address)


def _to_device(to: int, source: int, nbytes: int, _: int) -> None:
    device = devices.current()
    allocation = device.memory.find(to)
    assert allocation is not None
    start = to - allocation.address
    piece = device.host_view(allocation, writes=True)[start : start + nbytes]
    piece[:] = memoryview((ctypes.c_uint8 * nbytes).from_address(source))


def _error_string(_: int, where: int) -> None:
    does.put(where, ctypes.cast(_messages, P).value or 0)


def _context_number(_: int, where: int) -> None:
    does.put(where, 1)


def _stream_number(_: int, where: int) -> None:
    does.put(where, 0)


def _capturing(_: int, status: int) -> None:
    does.put(status, 0, ctypes.c_int)


def _device(where: int, *_: Any) -> None:
    """A device for each compute capability: the launcher asks once for all devices what they are."""
    does.put(where, CAPABILITIES.index(devices.current().cc), I)


def _device_attribute(value: int, which: int, device: int) -> None:
    if which in (MAJOR, MINOR):
        does.put(value, CAPABILITIES[device][which - MAJOR], I)
    else:
        does.device_attribute(value, which, device)


def _pointer(where: int, *_: Any) -> None:
    does.put(where, 1)


ANSWERED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "cuInit": (does.nothing, (I,)),
    "cuDriverGetVersion": (lambda to: does.put(to, VERSION, I), (P,)),
    "cuGetErrorString": (_error_string, (I, P)),
    "cuLibraryLoadData": (_load_data, (P, P, P, P, I, P, P, I)),
    "cuLibraryGetKernel": (does.get_kernel, (P, P, P)),
    "cuKernelGetAttribute": (does.kernel_attribute, (P, I, P, I)),
    "cuKernelSetAttribute": (does.nothing, (I, I, P, I)),
    "cuLaunchKernelEx": (_launch, (P, P, P, P)),
    "cuPointerGetAttribute": (_pointer, (P, I, P)),
    "cuCtxSynchronize": (does.nothing, ()),
    "cuCtxPushCurrent": (does.nothing, (P,)),
    "cuCtxPopCurrent": (_pointer, (P,)),
    "cuCtxGetCurrent": (_pointer, (P,)),
    "cuCtxSetCurrent": (does.nothing, (P,)),
    "cuCtxGetDevice": (_device, (P, P)),
    "cuCtxGetId": (_context_number, (P, P)),
    "cuDeviceGet": (lambda where, ordinal: does.put(where, ordinal, I), (P, I)),
    "cuDeviceGetCount": (lambda where: does.put(where, len(CAPABILITIES), I), (P,)),
    "cuDeviceGetAttribute": (_device_attribute, (P, I, I)),
    "cuDevicePrimaryCtxRetain": (_pointer, (P, I)),
    "cuEventCreate": (does.new, (P, I)),
    "cuEventDestroy": (does.nothing, (P,)),
    "cuEventQuery": (does.nothing, (P,)),
    "cuEventRecord": (does.nothing, (P, P)),
    "cuMemAlloc": (_allocate, (P, ctypes.c_size_t)),
    "cuMemAllocHost": (_allocate_host, (P, ctypes.c_size_t)),
    "cuMemFree": (_free, (P,)),
    "cuMemFreeHost": (_free_host, (P,)),
    "cuMemcpyHtoDAsync": (_to_device, (P, P, ctypes.c_size_t, P)),
    "cuStreamCreate": (does.new, (P, I)),
    "cuStreamDestroy": (does.nothing, (P,)),
    "cuStreamGetCtx": (lambda _, where: does.put(where, 1), (P, P)),
    "cuStreamGetId": (_stream_number, (P, P)),
    "cuStreamIsCapturing": (_capturing, (P, P)),
    "cuStreamSynchronize": (does.nothing, (P,)),
    "cuStreamWaitEvent": (does.nothing, (P, P, I)),
    "cuTensorMapEncodeTiled": (does.tensor_map, (P, I, I, P, P, P, P, P, I, I, I, I)),
}
# Libraries are unloaded when the interpreter ends, too, when no Python function can answer any more: this one
# of C does nothing that matters, and returns 0.
_given: dict[str, Any] = {"cuLibraryUnload": ctypes.CDLL(None).sched_yield}


def _function(name: str) -> int:
    """The address of the C function of this name; one that is not answered says so when it is called."""
    if name not in _given:

        def refuse(*_: Any) -> None:
            raise LaunchError(f"cuTile called {name}, which the simulated device does not have.")

        answer, types = ANSWERED.get(name, (refuse, (P,) * 6))
        _given[name] = driver.c_function(answer, *types)
    return ctypes.cast(_given[name], P).value or 0


def _get_proc_address(name: int, where: int, *_: Any) -> None:
    does.put(where, _function(ctypes.string_at(name).decode()))


_getter = driver.c_function(_get_proc_address, P, P, I, ctypes.c_uint64, P)
_cell = ctypes.c_void_p(ctypes.cast(_getter, P).value)
# The address of a pointer to ``cuGetProcAddress``: what cuTile asks its own `_load_libcuda` for.
GET_PROC_ADDRESS = ctypes.addressof(_cell)
