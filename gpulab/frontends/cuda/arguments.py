"""Python arguments of a launch → the parameter buffer of the kernel, as numba lays it out.

An array becomes seven or more numbers: two null pointers that only numba's CPU side uses, the number of
elements, the size of one, the address, then the shape and the strides in bytes. Each number lies at a
multiple of its size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpulab.simulator.device import LaunchError
from gpulab.simulator.simt import ArrayLabel

from .arrays import DeviceArray
from .transfers import In, InOut, Out, as_device_array, host_copy


@dataclass
class Packed:
    """A parameter buffer under construction.

    `pointers` are the offsets of device addresses in `data`; `arrays` say what the learner calls them;
    `afterwards` copies results back to the host; `keep` holds temporary arrays until the launch is over.
    """

    data: bytearray = field(default_factory=bytearray)
    pointers: list[int] = field(default_factory=list)
    arrays: list[ArrayLabel] = field(default_factory=list)
    afterwards: list[Callable[[], None]] = field(default_factory=list)
    keep: list[DeviceArray] = field(default_factory=list)

    def number(self, value: Any, dtype: Any) -> None:
        """Append one number at its natural alignment."""
        dtype = np.dtype(dtype)
        self.data += bytes(-len(self.data) % dtype.itemsize)
        self.data += _as_bytes(value, dtype)

    def pointer(self, array: DeviceArray, name: str) -> None:
        """Append the address of an array, and remember what it is called."""
        self.number(array.address, np.uint64)
        if array.size:
            self.pointers.append(len(self.data) - 8)
            self.arrays.append(_label(array, name))


def pack(kernel: str, names: tuple[str, ...], types: tuple[Any, ...], values: tuple[Any, ...]) -> Packed:
    """Pack `values` of the numba types `types` for a kernel whose parameters are called `names`.

    Raises LaunchError for a value that cannot be passed to a kernel.
    """
    packed = Packed()
    for name, numba_type, value in zip(names, types, values, strict=True):
        try:
            _put(packed, name, numba_type, value)
        except (OverflowError, TypeError, ValueError) as error:
            if isinstance(error, LaunchError):
                raise
            raise LaunchError(
                f"{kernel}: argument `{name}` cannot be passed as {numba_type}: {error}."
            ) from None
    return packed


def _put(packed: Packed, name: str, numba_type: Any, value: Any) -> None:
    from numba.cuda import types

    if isinstance(numba_type, types.Array):
        _put_array(packed, name, value)
    elif isinstance(numba_type, types.Record):
        packed.pointer(_on_device(packed, value), name)
    elif isinstance(numba_type, types.Complex):
        half = f"f{numba_type.bitwidth // 16}"
        packed.number(value.real, half)
        packed.number(value.imag, half)
    elif isinstance(numba_type, types.Boolean):
        packed.number(bool(value), np.uint8)
    elif isinstance(numba_type, types.Number):
        packed.number(value, str(getattr(numba_type, "literal_type", numba_type)))
    elif isinstance(numba_type, types.NPDatetime | types.NPTimedelta):
        packed.number(value.view(np.int64), np.int64)
    elif isinstance(numba_type, types.BaseTuple):
        for i, (item_type, item) in enumerate(zip(numba_type, value, strict=True)):
            _put(packed, f"{name}[{i}]", item_type, item)
    elif isinstance(numba_type, types.EnumMember):
        _put(packed, name, numba_type.dtype, value.value)
    elif isinstance(numba_type, types.CPointer):
        packed.number(value, np.uint64)
    else:
        raise TypeError(f"a kernel takes numbers, tuples and arrays, not {type(value).__name__}")


def _put_array(packed: Packed, name: str, value: Any) -> None:
    array = _on_device(packed, value)
    for number in (0, 0, array.size, array.dtype.itemsize):
        packed.number(number, np.int64)
    packed.pointer(array, name)
    for number in (*array.shape, *array.strides):
        packed.number(number, np.int64)


def _on_device(packed: Packed, value: Any) -> DeviceArray:
    """The device array of an argument; a host array is copied there, and back after the launch."""
    hint = value if isinstance(value, In | Out | InOut) else InOut(value)
    array = as_device_array(hint.value)
    if array is None:
        host = hint.value if isinstance(hint.value, np.void) else np.asanyarray(hint.value)
        array = host_copy(host, contents=hint.copies_in)
        if hint.copies_out:
            packed.afterwards.append(lambda: copy_back(array, host))
    packed.keep.append(array)
    return array


def copy_back(array: DeviceArray, host: Any) -> None:
    """Copy the elements of a device array into the host array or record that it was made from."""
    result = array._view()
    if isinstance(host, np.void):
        for field_name in result.dtype.names or ():
            host[field_name] = result[field_name]
    elif host.flags.writeable:
        host[...] = result


def _as_bytes(value: Any, dtype: np.dtype) -> bytes:
    if dtype.kind in "iu":
        if isinstance(value, float | np.floating) and not float(value).is_integer():
            raise TypeError(f"{value} is no whole number")
        bits = dtype.itemsize * 8  # as in C: a number that does not fit wraps around
        return (int(value) & ((1 << bits) - 1)).to_bytes(dtype.itemsize, "little")
    with np.errstate(over="ignore"):
        return np.asarray(value, dtype).tobytes()


def _label(array: DeviceArray, name: str) -> ArrayLabel:
    return ArrayLabel(name, array.address, array.shape, array.strides, array.dtype.name, array.dtype.itemsize)
