"""Arrays in the memory of the simulated device, with the API of numba's device arrays."""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gpulab.foundation.errors import Message
from gpulab.simulator import device as devices
from gpulab.simulator.simt import Allocation, host_address

from .streams import Stream

Shape = tuple[int, ...]


class ArrayError(Message, ValueError):
    """Something that device arrays cannot do, in one line."""


class NeedsCopy(ArrayError, NotImplementedError):
    """A view was asked for that does not exist; numba says so with the second of these classes."""


class Buffer:
    """A piece of device memory that is given back when no array uses it any more.

    Not `fresh` means that it is about to be filled as a whole: then it need not show what nobody wrote.
    """

    def __init__(self, nbytes: int, fresh: bool = True):
        self.device = devices.current()
        self.allocation: Allocation = self.device.allocate(nbytes, fresh)
        self._finalizer = weakref.finalize(self, self.device.free, self.allocation)
        self._finalizer.atexit = False

    def host_view(self, writes: bool = False) -> np.ndarray:
        """Its bytes for the host, live."""
        return self.device.host_view(self.allocation, writes)


class DevicePointer(NamedTuple):
    """A place in device memory, `size` bytes long."""

    device_pointer: int
    size: int


class DeviceArray:
    """An array on the device. `shape` in elements, `strides` in bytes; views share memory.

    A record (a structured scalar) is an array without dimensions whose fields are read by name. Host code
    reads with `copy_to_host()`; new arrays hold NaN (floats) or -1 (integers), not zeros.
    """

    __cuda_memory__ = True
    __cuda_ndarray__ = True

    def __init__(
        self,
        shape: Any,
        dtype: Any = np.float64,
        strides: Shape | None = None,
        order: str = "C",
        stream: Stream | int = 0,
        buffer: Buffer | None = None,
        offset: int = 0,
    ):
        self.shape = _shape(shape)
        self.dtype = np.dtype(dtype)
        if self.dtype.hasobject:
            raise ArrayError(f"a device array cannot hold Python objects (dtype {self.dtype}).")
        self.strides = (
            tuple(strides) if strides is not None else contiguous_strides(self.shape, self.dtype, order)
        )
        self.stream = stream
        self.ndim = len(self.shape)
        self.size = math.prod(self.shape)
        self.nbytes = self.size * self.dtype.itemsize
        self._buffer = buffer or Buffer(extent(self.shape, self.strides, self.dtype.itemsize))
        self._offset = offset

    @property
    def address(self) -> int:
        """Where the first element lies in device memory; 0 for an empty array, as in CUDA."""
        return self._buffer.allocation.address + self._offset if self.size else 0

    @property
    def gpu_data(self) -> DevicePointer:
        """Where its memory is, for kernels that take an address (``types.CPointer``)."""
        return DevicePointer(self.address, self.alloc_size)

    @property
    def alloc_size(self) -> int:
        """Bytes from its first to behind its last element."""
        return extent(self.shape, self.strides, self.dtype.itemsize)

    @property
    def device_ctypes_pointer(self) -> ctypes.c_void_p:
        """The address for foreign functions."""
        return ctypes.c_void_p(self.address)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "strides": None if self.is_c_contiguous() else self.strides,
            "data": (self.address, False),
            "typestr": self.dtype.str,
            "stream": None,
            "version": 3,
        }

    @property
    def _numba_type_(self) -> Any:
        from numba.cuda import types
        from numba.cuda.np import numpy_support

        dtype = numpy_support.from_dtype(self.dtype)
        if self.ndim == 0 and self.dtype.names:
            return dtype
        return types.Array(dtype, self.ndim, self._layout())

    def _layout(self) -> str:
        # As numba: a broadcast array must not be typed C or F, whose strides the compiler makes up itself.
        if self.size and 0 in self.strides:
            return "A"
        return "C" if self.is_c_contiguous() else "F" if self.is_f_contiguous() else "A"

    @property
    def flags(self) -> dict[str, bool]:
        return {"C_CONTIGUOUS": self.is_c_contiguous(), "F_CONTIGUOUS": self.is_f_contiguous()}

    def is_c_contiguous(self) -> bool:
        return _is_contiguous(self.shape, self.strides, self.dtype.itemsize)

    def is_f_contiguous(self) -> bool:
        return _is_contiguous(self.shape[::-1], self.strides[::-1], self.dtype.itemsize)

    def _has_gaps(self) -> bool:
        # As numba: dimensions that only repeat (stride 0) do not count.
        shape = tuple(1 if s == 0 else n for n, s in zip(self.shape, self.strides, strict=True))
        itemsize = self.dtype.itemsize
        forwards = _is_contiguous(shape, self.strides, itemsize)
        return not (forwards or _is_contiguous(shape[::-1], self.strides[::-1], itemsize))

    def bind(self, stream: Stream | int = 0) -> DeviceArray:
        """The same array, bound to a stream."""
        return DeviceArray(self.shape, self.dtype, self.strides, "C", stream, self._buffer, self._offset)

    # To and from the host

    def copy_to_host(self, ary: np.ndarray | None = None, stream: Stream | int = 0) -> np.ndarray:
        """The elements as a NumPy array, or copied into `ary`, which must have the same shape and dtype."""
        if ary is None:
            ary = np.empty_like(self._view())
        else:
            self._check_match(ary, "copy to")
        ary[...] = self._view()
        return ary

    def copy_to_device(self, ary: Any, stream: Stream | int = 0) -> None:
        """Copy `ary`, a host or device array of the same shape and dtype, into this array.

        Raises ArrayError for device arrays with gaps: a GPU copies one piece of memory.
        """
        source = ary._view() if isinstance(ary, DeviceArray) else np.asanyarray(ary)
        for array in (self, ary):
            if isinstance(array, DeviceArray) and array._has_gaps():
                raise ArrayError(
                    f"a device array with gaps (shape {array.shape}, strides {array.strides}) cannot be "
                    "copied in one piece; assign with a[…] = b, or use a kernel."
                )
        self._check_match(source, "copy from")
        self._view(writes=True)[...] = source.reshape(self.shape)

    def _check_match(self, other: Any, doing: str) -> None:
        if other.dtype != self.dtype:
            raise ArrayError(
                f"cannot {doing} an array of dtype {other.dtype}: the device array has {self.dtype}."
            )
        # As numba: dimensions of size 1 do not count.
        if _squeezed(other.shape) != _squeezed(self.shape):
            raise ArrayError(
                f"cannot {doing} an array of shape {other.shape}: the device array has {self.shape}."
            )

    def _view(self, writes: bool = False) -> np.ndarray:
        """The elements as a live NumPy array."""
        data = self._buffer.host_view(writes)
        return (
            np.ndarray(self.shape, self.dtype, data, self._offset, self.strides)
            if self.size
            else self._empty()
        )

    def _empty(self) -> np.ndarray:
        return np.empty(self.shape, self.dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ArrayError("a device array cannot become a NumPy array without a copy.")
        host = self.copy_to_host()
        return host if dtype is None else host.astype(dtype)

    # Elements and views

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a device array without dimensions has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, item: Any) -> Any:
        if self.ndim == 0 and self.dtype.names and isinstance(item, str):
            return self._field(item)
        _check_index(item)
        layout = self._layout_of()
        part = layout[item]
        if isinstance(part, np.ndarray):
            return self._like(layout, part)
        if self.dtype.names:  # one record: an array without dimensions
            return self._like(layout, layout[(*_tuple(item), ...)])
        return self._view()[item]

    def __setitem__(self, item: Any, value: Any) -> None:
        if not (self.dtype.names and isinstance(item, str)):
            _check_index(item)
        source = value._view() if isinstance(value, DeviceArray) else np.asarray(value)
        try:
            self._view(writes=True)[item] = source
        except ValueError as error:
            raise ArrayError(f"cannot store an array of shape {source.shape} here: {error}.") from None

    def getitem(self, item: Any, stream: Stream | int = 0) -> Any:
        """``self[item]`` on a stream."""
        return self[item]

    def setitem(self, key: Any, value: Any, stream: Stream | int = 0) -> None:
        """``self[key] = value`` on a stream."""
        self[key] = value

    def _field(self, name: str) -> Any:
        field_dtype, offset = self.dtype.fields[name][:2]
        base, shape = field_dtype.subdtype or (field_dtype, ())
        field = DeviceArray(shape, base, None, "C", self.stream, self._buffer, self._offset + offset)
        return field if shape or base.names else field._view()[()]

    def reshape(self, *newshape: Any, order: Any = "C") -> DeviceArray:
        """A view with another shape. Raises ArrayError where that would need a copy."""
        shape = newshape[0] if len(newshape) == 1 and isinstance(newshape[0], tuple | list) else newshape
        layout = self._layout_of()
        try:
            return self._like(layout, np.reshape(layout, shape, order=order, copy=False))
        except ValueError as error:
            raise NeedsCopy(f"cannot reshape {self.shape} to {tuple(shape)}: {error}.") from None

    def ravel(self, order: str = "C", stream: Stream | int = 0) -> DeviceArray:
        """A 1-D view of a contiguous array."""
        return self.reshape(
            self.size, order="C" if order == "A" and self.is_c_contiguous() else order.replace("A", "F")
        )

    def squeeze(self, axis: Any = None, stream: Stream | int = 0) -> DeviceArray:
        """A view without the dimensions of size 1."""
        layout = self._layout_of()
        return self._like(layout, layout.squeeze(axis))

    def view(self, dtype: Any) -> DeviceArray:
        """The same bytes as another dtype."""
        layout = self._layout_of()
        return self._like(layout, layout.view(dtype))

    def transpose(self, axes: Any = None) -> DeviceArray:
        """The transpose of a 2-D array: a new array, as in numba, where a kernel makes it."""
        if axes is not None and tuple(axes) == tuple(range(self.ndim)):
            return self
        if axes is not None and set(axes) != set(range(self.ndim)):
            raise ArrayError(f"the axes {tuple(axes)} are not those of a {self.ndim}-D array.")
        if self.ndim != 2:
            raise ArrayError(
                f"only 2-D device arrays can be transposed; this one has {self.ndim} dimensions."
            )
        result = DeviceArray(self.shape[::-1], self.dtype)
        result._view(writes=True)[...] = self._view().T
        return result

    @property
    def T(self) -> DeviceArray:
        return self.transpose()

    def split(self, section: int, stream: Stream | int = 0) -> Iterator[DeviceArray]:
        """Views of `section` elements each; the last one may be shorter."""
        if self.ndim != 1:
            raise ArrayError(f"only 1-D device arrays can be split; this one has {self.ndim} dimensions.")
        return (self[i : i + section] for i in range(0, self.size, section))

    def _layout_of(self) -> np.ndarray:
        """A NumPy array of this layout to work out views with: its elements must not be looked at."""
        return (
            np.ndarray(self.shape, self.dtype, self._buffer.allocation.data, self._offset, self.strides)
            if self.size
            else self._empty()
        )

    def _like(self, whole: np.ndarray, part: np.ndarray) -> DeviceArray:
        """The device array that lies in this one as `part` lies in `whole`."""
        shift = host_address(part) - host_address(whole) if part.size else 0
        return DeviceArray(
            part.shape, part.dtype, part.strides, "C", self.stream, self._buffer, self._offset + shift
        )

    def __repr__(self) -> str:
        size = " × ".join(map(str, self.shape)) or "scalar"
        return f"<device array {size} {self.dtype} at 0x{self.address:x}; read it with .copy_to_host()>"


class MappedArray(np.ndarray):
    """A NumPy array that kernels see too: what one side writes, the other reads without a copy."""

    on_device: DeviceArray | None = None

    def __array_finalize__(self, parent: Any) -> None:
        # A view of a mapped array is an ordinary array: it does not know its place on the device.
        self.on_device = None

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.on_device is None:
            raise AttributeError("__cuda_array_interface__")
        return self.on_device.__cuda_array_interface__


def mapped(array: DeviceArray) -> MappedArray:
    """The host's side of a device array."""
    host = array._view(writes=True).view(MappedArray)
    array._buffer.allocation.mapped = True
    host.on_device = array
    return host


def contiguous_strides(shape: Shape, dtype: np.dtype, order: str = "C") -> Shape:
    """Strides in bytes of a C- or F-ordered array without gaps. Raises ArrayError for another order."""
    if order not in ("C", "F"):
        raise ArrayError(f"order {order!r} is neither 'C' (rows first) nor 'F' (columns first).")
    return devices.contiguous_strides(shape, dtype.itemsize, order)


def extent(shape: Shape, strides: Shape, itemsize: int) -> int:
    """Bytes from the first to behind the last element."""
    if 0 in shape:
        return 0
    return sum((n - 1) * abs(s) for n, s in zip(shape, strides, strict=True)) + itemsize


def _shape(shape: Any) -> Shape:
    sizes = tuple(shape) if isinstance(shape, tuple | list | np.ndarray) else (shape,)
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, int | np.integer):
            raise ArrayError(f"the shape {shape!r} is not made of whole numbers; divide with //.")
        if size < 0:
            raise ArrayError(f"the shape {shape!r} is negative.")
    return tuple(int(size) for size in sizes)


def _is_contiguous(shape: Shape, strides: Shape, itemsize: int) -> bool:
    expected = itemsize
    if 0 in shape:
        return True
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1:
            if stride != expected:
                return False
            expected *= size
    return True


def _check_index(item: Any) -> None:
    """Only what is a view: numbers and slices. Arrays and masks as indices would be copies."""
    for part in _tuple(item):
        if not (part is Ellipsis or isinstance(part, int | np.integer | slice)):
            raise ArrayError(
                f"a device array is indexed with numbers and slices only, not with a {type(part).__name__}; "
                "copy_to_host() first."
            )


def _tuple(item: Any) -> tuple[Any, ...]:
    return item if isinstance(item, tuple) else (item,)


def _squeezed(shape: Shape) -> Shape:
    return tuple(size for size in shape if size != 1)
