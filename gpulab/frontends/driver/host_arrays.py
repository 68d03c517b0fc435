"""Arrays as DLPack hands them to a launcher, and the host's arrays on the simulated device.

A launcher takes arrays on a CUDA device only, and what it compiles depends on that. So an array of the host
says of itself, through DLPack, that it is on one. Its address is still the host's, which code on the host
may read; a kernel gets the address at which the device has the same memory, or a copy of it.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpulab.simulator import device as devices
from gpulab.simulator.device import LaunchError
from gpulab.simulator.simt import Allocation, ArrayLabel

from . import tensors

CPU, CUDA = 1, 2  # DLPack's kDLCPU and kDLCUDA
_KINDS = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # DLPack's codes of types, by NumPy's


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _DLManagedTensor(ctypes.Structure):
    _fields_ = (("tensor", _DLTensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


_pointer_in = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_in.restype, _pointer_in.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
NAME = b"dltensor"


@dataclass(frozen=True)
class Region:
    """Memory of the host that holds one array, or several that share it. `owner` keeps it alive."""

    address: int
    nbytes: int
    owner: Any = field(compare=False, repr=False)

    def bytes(self) -> np.ndarray:
        """Its bytes, live."""
        if not self.nbytes:
            return np.empty(0, np.uint8)
        return np.ctypeslib.as_array((ctypes.c_uint8 * self.nbytes).from_address(self.address))


def is_on_device(array: Any) -> bool:
    """Whether an array is in the simulated device's memory: `gpulab.cupy`'s and `gpulab.cuda`'s are."""
    return not hasattr(array, "untyped_storage") and hasattr(array, "__cuda_array_interface__")


def region_of(array: Any) -> Region | None:
    """The host's memory that a NumPy array or a torch tensor is in; None for anything else."""
    if isinstance(array, np.ndarray):
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        low, high = np.lib.array_utils.byte_bounds(owner)
        return Region(low, high - low, array)
    if hasattr(array, "untyped_storage"):
        if str(array.layout) != "torch.strided":
            raise LaunchError("a kernel cannot take a sparse torch tensor. Pass x.to_dense(), or its parts.")
        storage = array.untyped_storage()
        return Region(storage.data_ptr(), storage.nbytes(), storage)
    return None


@dataclass
class HostCopies:
    """Regions of the host on the device: torch's where they are, copies of others, made when asked for."""

    device: devices.SimulatedDevice
    made: dict[Region, Allocation] = field(default_factory=dict)

    def address(self, region: Region) -> int:
        """Where a region begins for kernels."""
        is_storage = hasattr(region.owner, "data_ptr") and self.device.runs_kernels
        if is_storage and (there := tensors.adopted(self.device, region.owner)):
            return there.address
        if region not in self.made:
            allocation = self.device.allocate(region.nbytes)
            self.device.host_view(allocation, writes=True)[:] = region.bytes()
            self.made[region] = allocation
        return self.made[region].address

    def back(self) -> None:
        """Copy all copies back, and free them; also after a fault, so that what a kernel wrote shows."""
        for region, allocation in self.made.items():
            region.bytes()[:] = allocation.data
            self.device.free(allocation)
        self.made.clear()


def say_device(capsule: Any, kind: int) -> None:
    """Let a DLPack capsule say that its array is on a device of this kind, `CUDA` or `CPU`."""
    tensor = _DLManagedTensor.from_address(_pointer_in(capsule, NAME)).tensor
    tensor.device_type, tensor.device_id = kind, 0


def _why_not(array: Any, error: BufferError) -> str:
    """Why NumPy does not hand over an array of its own."""
    flags = getattr(array, "flags", None)
    if flags is not None and not flags.writeable:
        return "this array is read-only, as what np.broadcast_to makes. A kernel takes a copy: x.copy()."
    return f"a kernel cannot take an array of {array.dtype}: {error}"


class exported:
    """An array whose ``__dlpack__`` says that it is on a CUDA device.

    `address` is what the launcher sees as the place of its first element; None: where the array says it is.
    Raises LaunchError for what is no array.
    """

    def __init__(self, array: Any, address: int | None = None):
        self.array, self.moved_to = array, address

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, 0

    def __dlpack__(self, **_: Any) -> Any:
        if is_on_device(self.array):
            return _capsule_of_device_array(self.array)
        array = self.array
        if getattr(array, "requires_grad", False):
            array = array.detach()
        try:
            capsule = array.__dlpack__()
        except AttributeError:
            raise LaunchError(
                f"a {type(array).__name__} is no array that a kernel can take. Pass a NumPy array, a torch "
                "tensor, or an array of gpulab.cupy."
            ) from None
        except BufferError as error:
            raise LaunchError(_why_not(array, error)) from None
        say_device(capsule, CUDA)
        tensor = _DLManagedTensor.from_address(_pointer_in(capsule, NAME)).tensor
        if self.moved_to is not None:
            tensor.data, tensor.byte_offset = self.moved_to, 0
        return capsule


_alive: dict[int, tuple[Any, ...]] = {}  # what a capsule points at, until its deleter is called


def _delete(address: int) -> None:
    _alive.pop(address, None)


_deleter = _Deleter(_delete)


def _capsule_of_device_array(array: Any) -> Any:
    """A DLPack capsule on the memory of an array of the simulated device."""
    interface = array.__cuda_array_interface__
    dtype, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    strides = interface.get("strides")
    steps = tuple(s // dtype.itemsize for s in strides) if strides is not None else _dense(shape, 1)
    if dtype.kind not in _KINDS:
        raise LaunchError(f"an array of {dtype} cannot be passed: this language has no such type.")
    numbers = (ctypes.c_int64 * (2 * len(shape)))(*shape, *steps)
    first = ctypes.cast(numbers, ctypes.POINTER(ctypes.c_int64))
    second = ctypes.cast(
        ctypes.addressof(numbers) + ctypes.sizeof(ctypes.c_int64) * len(shape), ctypes.POINTER(ctypes.c_int64)
    )
    made = _DLManagedTensor()
    made.tensor = _DLTensor(
        interface["data"][0], CUDA, 0, len(shape), _KINDS[dtype.kind], 8 * dtype.itemsize, 1, first, second, 0
    )
    made.deleter = _deleter
    address = ctypes.addressof(made)
    _alive[address] = made, numbers, array
    return _new_capsule(address, NAME, None)


def label_of(name: str, array: Any, address: int | None = None) -> ArrayLabel | None:
    """What the array is called, for messages; None for what is no array.

    Its address is the host's for an array of the host, unless another `address` is given.
    """
    if is_on_device(array):
        interface = array.__cuda_array_interface__
        dtype, shape, where = np.dtype(interface["typestr"]), tuple(interface["shape"]), interface["data"][0]
        strides = interface.get("strides") or _dense(shape, dtype.itemsize)
        kind, size = dtype.name, dtype.itemsize
    elif isinstance(array, np.ndarray):
        shape, strides, where = array.shape, array.strides, array.ctypes.data
        kind, size = array.dtype.name, array.dtype.itemsize
    elif hasattr(array, "untyped_storage"):
        size, where = array.element_size(), array.data_ptr()
        shape, strides = tuple(array.shape), tuple(s * size for s in array.stride())
        kind = str(array.dtype).removeprefix("torch.")
    else:
        return None
    return ArrayLabel(name, where if address is None else address, shape, tuple(strides), kind, size)


def _dense(shape: tuple[int, ...], step: int) -> tuple[int, ...]:
    """Strides of an array without gaps whose neighbours in the last axis are `step` apart."""
    return tuple(step * int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape)))
