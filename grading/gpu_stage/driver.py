"""The few calls of NVIDIA's driver that timing needs, by ctypes: no context is made before `Driver(index)`.

The calls are those of the CUDA Driver API, https://docs.nvidia.com/cuda/cuda-driver-api/; numbers of
attributes and flags are from its `cuda.h`.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from typing import Any

from gpulab.simulator.device.choice import DRIVERS

MAJOR, MINOR, L2_BYTES = 75, 76, 38  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_…, …_L2_CACHE_SIZE
MOST_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
WITHOUT_ASKING = 48 << 10  # bytes of shared memory that a launch gets without that attribute
BUFFER, BUFFER_SIZE, END = 1, 2, 0  # CU_LAUNCH_PARAM_BUFFER_POINTER, …_BUFFER_SIZE, …_END

CALLS: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (c_void_p,),
    "cuDeviceGetCount": (c_void_p,),
    "cuDeviceGet": (c_void_p, c_int),
    "cuDeviceGetName": (c_char_p, c_int, c_int),
    "cuDeviceGetAttribute": (c_void_p, c_int, c_int),
    "cuDeviceGetPCIBusId": (c_char_p, c_int, c_int),
    "cuDevicePrimaryCtxRetain": (c_void_p, c_int),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxSynchronize": (),
    "cuMemAlloc_v2": (c_void_p, c_size_t),
    "cuMemcpyHtoD_v2": (c_uint64, c_char_p, c_size_t),
    "cuMemcpyDtoH_v2": (c_void_p, c_uint64, c_size_t),
    "cuMemsetD8_v2": (c_uint64, c_ubyte, c_size_t),
    "cuMemsetD8Async": (c_uint64, c_ubyte, c_size_t, c_void_p),
    "cuModuleLoadData": (c_void_p, c_char_p),
    "cuModuleUnload": (c_void_p,),
    "cuModuleGetFunction": (c_void_p, c_void_p, c_char_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuLaunchKernel": (c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p),
    "cuEventCreate": (c_void_p, c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventElapsedTime": (c_void_p, c_void_p, c_void_p),
}


class DriverError(Exception):
    """A call of the driver failed; the text names it and the error."""


class Driver:
    """One device with a context of its own process. Sizes in bytes, times in seconds."""

    def __init__(self, index: int = 0) -> None:
        self._library = _library()
        self._call("cuInit", 0)
        self._device = c_int()
        self._call("cuDeviceGet", byref(self._device), index)
        context = c_void_p()
        self._call("cuDevicePrimaryCtxRetain", byref(context), self._device)
        self._call("cuCtxSetCurrent", context)

    def about(self) -> dict[str, Any]:
        """Name, place on the bus, compute capability, size of the second-level cache, the driver."""
        name, place, version = ctypes.create_string_buffer(256), ctypes.create_string_buffer(64), c_int()
        self._call("cuDeviceGetName", name, len(name), self._device)
        self._call("cuDeviceGetPCIBusId", place, len(place), self._device)
        self._call("cuDriverGetVersion", byref(version))
        major, minor, cache = map(self._attribute, (MAJOR, MINOR, L2_BYTES))
        return {
            "name": name.value.decode(), "place": place.value.decode(), "cc": [major, minor],
            "l2_bytes": cache, "driver": version.value,
        }  # fmt: skip

    def _attribute(self, number: int) -> int:
        value = c_int()
        self._call("cuDeviceGetAttribute", byref(value), number, self._device)
        return value.value

    def allocate(self, nbytes: int) -> int:
        """The address of new memory."""
        address = c_uint64()
        self._call("cuMemAlloc_v2", byref(address), max(nbytes, 1))
        return address.value

    def write(self, address: int, data: bytes) -> None:
        if data:
            self._call("cuMemcpyHtoD_v2", address, data, len(data))

    def read(self, address: int, nbytes: int) -> bytes:
        data = ctypes.create_string_buffer(max(nbytes, 1))
        if nbytes:
            self._call("cuMemcpyDtoH_v2", data, address, nbytes)
        return data.raw[:nbytes]

    def fill(self, address: int, value: int, nbytes: int) -> None:
        if nbytes:
            self._call("cuMemsetD8_v2", address, value, nbytes)

    def start_filling(self, address: int, value: int, nbytes: int) -> None:
        """The same, without waiting for it: launches that follow are queued behind."""
        self._call("cuMemsetD8Async", address, value, nbytes, None)

    def load(self, code: bytes) -> Any:
        """A module, with variables as the code sets them."""
        module = c_void_p()
        self._call("cuModuleLoadData", byref(module), code)
        return module

    def unload(self, module: Any) -> None:
        self._call("cuModuleUnload", module)

    def function(self, module: Any, entry: str, shared_bytes: int) -> Any:
        """A kernel, which may take so much dynamic shared memory."""
        function = c_void_p()
        self._call("cuModuleGetFunction", byref(function), module, entry.encode())
        if shared_bytes > WITHOUT_ASKING:
            self._call("cuFuncSetAttribute", function, MOST_DYNAMIC_SHARED, shared_bytes)
        return function

    def launch(
        self, function: Any, grid: list[int], block: list[int], shared_bytes: int, arguments: bytes
    ) -> None:
        """Launch on the default stream; `arguments` is the packed parameter buffer."""
        buffer, size = (
            ctypes.create_string_buffer(arguments, max(len(arguments), 1)),
            c_size_t(len(arguments)),
        )
        extra = (c_void_p * 5)(BUFFER, ctypes.addressof(buffer), BUFFER_SIZE, ctypes.addressof(size), END)
        self._call("cuLaunchKernel", function, *grid, *block, shared_bytes, None, None, extra)

    def event(self) -> Any:
        event = c_void_p()
        self._call("cuEventCreate", byref(event), 0)
        return event

    def record(self, event: Any) -> None:
        self._call("cuEventRecord", event, None)

    def elapsed(self, first: Any, second: Any) -> float:
        """Seconds between two recorded events."""
        milliseconds = c_float()
        self._call("cuEventElapsedTime", byref(milliseconds), first, second)
        return milliseconds.value / 1e3

    def wait(self) -> None:
        """Until the device has nothing left to do."""
        self._call("cuCtxSynchronize")

    def forget_persisting(self) -> None:
        """Give back what accesses may have set aside of the second-level cache."""
        reset = getattr(self._library, "cuCtxResetPersistingL2Cache", None)  # since CUDA 11
        if reset is not None and (error := reset()) not in (0, 801):  # 801: CUDA_ERROR_NOT_SUPPORTED
            raise DriverError(f"cuCtxResetPersistingL2Cache: error {error}")

    def _call(self, name: str, *arguments: Any) -> None:
        _checked(self._library, name, *arguments)


def count() -> int:
    """How many devices there are. Raises DriverError where there is no driver."""
    library, found = _library(), c_int()
    _checked(library, "cuInit", 0)
    _checked(library, "cuDeviceGetCount", byref(found))
    return found.value


def _library() -> Any:
    for name in DRIVERS:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        for call, types in CALLS.items():
            getattr(library, call).argtypes = types
        return library
    raise DriverError(f"{DRIVERS[0]} is not there")


def _checked(library: Any, name: str, *arguments: Any) -> None:
    error = getattr(library, name)(*arguments)
    if error:
        text = c_char_p()
        library.cuGetErrorName(error, byref(text))
        raise DriverError(f"{name}: {(text.value or b'').decode() or error}")
