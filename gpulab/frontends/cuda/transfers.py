"""Getting arrays to the device and back: by hand, or around a launch."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpulab.simulator import device as devices

from .arrays import ArrayError, Buffer, DeviceArray, MappedArray, contiguous_strides, extent
from .streams import Stream


class In:
    """A host array that is copied to the device for a launch, and not back."""

    copies_in, copies_out = True, False

    def __init__(self, value: Any):
        self.value = value

    @property
    def _numba_type_(self) -> Any:
        from numba.cuda.typing.typeof import typeof

        return typeof(self.value)


class Out(In):
    """A host array that is filled by a launch: copied back only."""

    copies_in, copies_out = False, True


class InOut(In):
    """A host array that is copied to the device for a launch and back, like a plain NumPy argument."""

    copies_in, copies_out = True, True


def to_device(
    obj: Any, stream: Stream | int = 0, copy: bool = True, to: DeviceArray | None = None
) -> DeviceArray:
    """A copy of a host array (or list, number, record) on the device; into `to` if that is given."""
    if to is not None:
        if copy:
            to.copy_to_device(obj, stream)
        return to
    found = as_device_array(obj)
    if found is not None:
        return found
    host = obj if isinstance(obj, np.void) else np.asanyarray(obj)
    if not isinstance(host, np.void) and has_gaps(host):
        raise ArrayError(
            f"this array of shape {host.shape} has gaps (strides {host.strides}) and cannot be copied in "
            "one piece; pass np.ascontiguousarray(…)."
        )
    return host_copy(host, contents=copy, stream=stream)


def has_gaps(host: np.ndarray) -> bool:
    """Whether an array is no one piece of memory, which is all that a copy takes. A repeated axis is no gap.

    >>> has_gaps(np.zeros((4, 8))[:, ::2]), has_gaps(np.broadcast_to(np.zeros(8), (4, 8)))
    (True, False)
    """
    if host.flags.c_contiguous or host.flags.f_contiguous:
        return False
    core = host[tuple(0 if stride == 0 else slice(None) for stride in host.strides)]
    return not (core.flags.c_contiguous or core.flags.f_contiguous)


def host_copy(host: Any, contents: bool = True, stream: Stream | int = 0) -> DeviceArray:
    """A device array of the layout of a host array or record, with its elements if `contents`."""
    if not isinstance(host, np.void):
        host = np.asanyarray(host)
    strides = getattr(host, "strides", ())
    before_first = sum((n - 1) * -s for n, s in zip(host.shape, strides, strict=True) if s < 0 < n)
    buffer = Buffer(extent(host.shape, strides, host.dtype.itemsize), fresh=not contents)
    array = DeviceArray(host.shape, host.dtype, strides, "C", stream, buffer, before_first)
    if contents and array.size:
        array._view(writes=True)[...] = host
    return array


def as_device_array(obj: Any) -> DeviceArray | None:
    """`obj` as a device array if it lies on the device already, else None."""
    if isinstance(obj, DeviceArray):
        return obj
    if isinstance(obj, MappedArray):
        return obj.on_device
    if hasattr(obj, "__cuda_array_interface__"):
        return from_cuda_array_interface(obj.__cuda_array_interface__, owner=obj)
    return None


class _Borrowed(Buffer):
    """Memory that another object owns; it lives as long as this does."""

    def __init__(self, allocation: Any, owner: Any):
        self.device, self.allocation, self.owner = devices.current(), allocation, owner


def from_cuda_array_interface(desc: dict[str, Any], owner: Any = None, sync: bool = True) -> DeviceArray:
    """A device array on memory that another object describes. Raises ArrayError for memory elsewhere."""
    if desc.get("mask") is not None:
        raise ArrayError("device arrays with a mask are not supported.")
    shape, dtype = tuple(desc["shape"]), np.dtype(desc["typestr"])
    strides = desc.get("strides") or contiguous_strides(shape, dtype)
    address = desc["data"][0]
    if 0 in shape:
        return DeviceArray(shape, dtype, strides)
    allocation = devices.current().memory.find(address)
    if allocation is None:
        raise ArrayError(
            f"address 0x{address:x} is not in the memory of the simulated device: the array lives on a real "
            "GPU, or was freed. Copy it to the host first."
        )
    return DeviceArray(
        shape, dtype, strides, buffer=_Borrowed(allocation, owner), offset=address - allocation.address
    )


def as_cuda_array(obj: Any, sync: bool = True) -> DeviceArray:
    """A device array on the memory of any object with a ``__cuda_array_interface__``."""
    found = as_device_array(obj)
    if found is None:
        raise TypeError(f"a {type(obj).__name__} is no device array (it has no __cuda_array_interface__)")
    return found


def is_cuda_array(obj: Any) -> bool:
    """Whether an object has a ``__cuda_array_interface__``."""
    return hasattr(obj, "__cuda_array_interface__")


def auto_device(obj: Any, stream: Stream | int = 0, copy: bool = True) -> tuple[DeviceArray, bool]:
    """The device array of `obj`, and whether it had to be made."""
    found = as_device_array(obj)
    return (found, False) if found is not None else (to_device(obj, stream, copy), True)
