"""`cupy.ndarray` in the memory of the simulated device: its place, its views, the ways to the host and back.

What is computed lies in `functions` and `operators`. A *layout* is a NumPy array over the same bytes: views
are worked out with it, and its elements are only looked at after `open` asked the device.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from gpulab.simulator import device as devices
from gpulab.simulator.simt import host_address

from .memory import MemoryPointer, UnownedMemory, alloc

Shape = tuple[int, ...]

NO_CONVERSION = (
    "Implicit conversion to a NumPy array is not allowed. Copy the array to the host explicitly: "
    "array.get() or cupy.asnumpy(array)."
)


class ndarray:
    """An array on the device. Views share its memory; the host reads it with ``.get()``.

    New memory holds NaN (floats) or -1 (integers), so that an element that no thread wrote shows.
    """

    __array_priority__ = 100

    def __init__(
        self,
        shape: Any,
        dtype: Any = float,
        memptr: MemoryPointer | None = None,
        strides: Any = None,
        order: str = "C",
    ):
        dtype = check_dtype(dtype)
        shape = _shape(shape)
        if strides is None:
            strides = _contiguous_strides(shape, dtype.itemsize, order)
        elif memptr is None:
            raise ValueError("memptr is required if strides is given.")
        if memptr is None:
            memptr = alloc(math.prod(shape) * dtype.itemsize)
        self._place(memptr, tuple(shape), dtype, tuple(strides), None)

    def _place(
        self, data: MemoryPointer, shape: Shape, dtype: np.dtype, strides: Shape, base: ndarray | None
    ) -> None:
        self.data, self._shape, self.dtype, self.strides, self.base = data, shape, dtype, strides, base

    # ---- what it is ------------------------------------------------------------------------------

    @property
    def shape(self) -> Shape:
        return self._shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        layout = self.layout()
        layout.shape = shape  # raises where a copy would be needed
        self._shape, self.strides = layout.shape, layout.strides

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def size(self) -> int:
        return math.prod(self._shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def device(self) -> Any:
        return self.data.device

    @property
    def flags(self) -> Flags:
        return Flags(self)

    @property
    def T(self) -> ndarray:
        return self.part(self.layout().T)

    @property
    def mT(self) -> ndarray:
        return self.part(self.layout().mT)

    @property
    def real(self) -> ndarray:
        return self.part(self.layout().real) if self.dtype.kind == "c" else self

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> ndarray:
        if self.dtype.kind == "c":
            return self.part(self.layout().imag)
        return to_device(np.zeros(self._shape, self.dtype))

    @imag.setter
    def imag(self, value: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError(f"an array of dtype {self.dtype} has no imaginary part to set.")
        self.imag[...] = value

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self._shape,
            "strides": None if self.flags.c_contiguous else self.strides,
            "data": (self.data.ptr, False),
            "typestr": self.dtype.str,
            "descr": self.dtype.descr,
            "stream": None,
            "version": 3,
        }

    # ---- the host's side -------------------------------------------------------------------------

    def layout(self) -> np.ndarray:
        """A NumPy array over the same bytes, to work out views with: its elements must not be looked at."""
        allocation = self.data.mem.allocation
        if allocation is None or not self.size:
            return np.ndarray(self._shape, self.dtype, bytes(0), 0, self.strides if self.size else None)
        return np.ndarray(self._shape, self.dtype, allocation.data, self.data.offset, self.strides)

    def open(self, writes: bool = False) -> np.ndarray:
        """The elements for the host, live. Whoever carries out launches may refuse."""
        self.data.mem.host_bytes(writes)
        return self.layout()

    def part(self, view: np.ndarray) -> ndarray:
        """The array that lies where `view`, a view of this array's layout, lies."""
        base = self if self.base is None else self.base
        data = self.data + (
            host_address(view) - host_address(self.layout()) if view.size and self.size else 0
        )
        result = ndarray.__new__(type(self))
        result._place(data, view.shape, view.dtype, view.strides, base)
        return result

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> np.ndarray:
        """The elements as a NumPy array, or copied into `out`."""
        if out is None:
            return np.array(self.open(), order=order, copy=True)  # type: ignore[call-overload]
        if not isinstance(out, np.ndarray):
            raise TypeError(f"out must be a NumPy array, not {type(out).__name__}.")
        if out.shape != self._shape or out.dtype != self.dtype:
            raise ValueError(
                f"out has shape {out.shape} and dtype {out.dtype}; the array has {self._shape} and "
                f"{self.dtype}."
            )
        out[...] = self.open()
        return out

    def set(self, arr: Any, stream: Any = None) -> None:
        """Copy a NumPy array of the same shape and dtype into this array."""
        if not isinstance(arr, np.ndarray):
            raise TypeError(f"only a NumPy array can be set to a device array, not {type(arr).__name__}.")
        if arr.dtype != self.dtype:
            raise TypeError(
                f"{arr.dtype} array cannot be set to {self.dtype} array; convert it with .astype()."
            )
        if arr.shape != self._shape:
            raise ValueError(f"Shape mismatch. Old shape: {self._shape}, new shape: {arr.shape}")
        self.open(writes=True)[...] = arr

    def item(self, *index: Any) -> Any:
        """One element as a Python number."""
        return self.open().item(*index)

    def tolist(self) -> Any:
        return self.open().tolist()

    def tobytes(self, order: str = "C") -> bytes:
        return self.open().tobytes(order)  # type: ignore[arg-type]

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        raise TypeError(NO_CONVERSION)

    def __reduce__(self) -> tuple[Any, ...]:
        return to_device, (self.get(),)

    def __copy__(self) -> ndarray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> ndarray:
        return self.copy()

    def __repr__(self) -> str:
        return repr(self.open())

    def __str__(self) -> str:
        return str(self.open())

    def __format__(self, spec: str) -> str:
        return format(self.open()[()] if not self.ndim else self.open(), spec)

    # ---- numbers and iteration -------------------------------------------------------------------

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
            )
        return bool(self.size and self.item())

    def __int__(self) -> int:
        return int(self._only())

    def __float__(self) -> float:
        return float(self._only())

    def __complex__(self) -> complex:
        return complex(self._only())

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return int(self.item())

    def _only(self) -> Any:
        if self.size != 1:
            raise TypeError("only size-1 arrays can be converted to Python scalars")
        return self.item()

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of unsized object")
        return self._shape[0]

    def __iter__(self) -> Iterator[ndarray]:
        if not self._shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self._shape[0]))

    __hash__ = None  # type: ignore[assignment]

    # ---- elements and views ----------------------------------------------------------------------

    def __getitem__(self, index: Any) -> ndarray:
        if _is_basic(index):
            layout = self.layout()
            found = layout[index]
            # One element is an array without dimensions, not a number.
            return self.part(found if isinstance(found, np.ndarray) else layout[(*_items(index), ...)])
        return to_device(self._at(lambda: self.open()[_on_host(index)]))

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.ndim:
            self._set_from_host(index, value)
            return
        if isinstance(value, list | tuple | range):
            raise TypeError(f"Unsupported type {type(value)}: store a device array, cupy.array(…).")
        source = value.open() if isinstance(value, ndarray) else value

        def store() -> None:
            with np.errstate(all="ignore"):
                self.open(writes=True)[_on_host(index)] = source

        self._at(store)

    def _set_from_host(self, index: Any, value: np.ndarray) -> None:
        """``a[:] = numpy_array``, the only assignment that copies from the host."""
        if index != slice(None):
            raise TypeError(
                f"Unsupported type {type(value)}: copy it to the device first, a[…] = cupy.asarray(…)."
            )
        if value.dtype != self.dtype or value.shape != self._shape:
            raise ValueError(
                "copying a numpy.ndarray to a cupy.ndarray by empty slice assignment must ensure arrays have "
                f"same shape and dtype: {value.shape} {value.dtype} to {self._shape} {self.dtype}."
            )
        self.open(writes=True)[...] = value

    def _at(self, access: Any) -> Any:
        try:
            return access()
        except IndexError as error:
            if "out of bounds" not in str(error):
                raise
            raise IndexError(f"{error}; on a GPU, CuPy would wrap around without a word.") from None

    def view(self, dtype: Any = None, array_class: Any = None) -> ndarray:
        """The same bytes as another dtype."""
        layout = self.layout()
        return self.part(layout if dtype is None else layout.view(check_dtype(dtype)))

    def copy(self, order: str = "C") -> ndarray:
        """A new array with the same elements."""
        return to_device(self.open(), order)

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: Any = None, copy: bool = True
    ) -> ndarray:
        """The elements as another dtype."""
        dtype = check_dtype(dtype)
        if not copy and dtype == self.dtype:
            return self
        if self.dtype.kind == "c" and dtype.kind not in "bc":
            import warnings

            warnings.warn(
                "Casting complex values to real discards the imaginary part",
                np.exceptions.ComplexWarning,
                stacklevel=2,
            )
            return self.real.astype(dtype, order, casting)
        with np.errstate(all="ignore"):
            return to_device(self.open().astype(dtype, order, casting))  # type: ignore[call-overload]

    def fill(self, value: Any) -> None:
        """Set every element."""
        if isinstance(value, np.ndarray) and value.ndim:
            raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
        self[...] = value

    def reduced_view(self, dtype: Any = None) -> ndarray:
        """A view with as few dimensions as its strides allow."""
        from .layouts import joined

        shape, (strides,) = joined(self._shape, [self.strides])
        result = ndarray.__new__(type(self))
        result._place(self.data, shape, self.dtype, strides, self)
        return result

    def scatter_add(self, slices: Any, value: Any) -> None:
        """Add `value` at an index, each time that it occurs."""
        np.add.at(self.open(writes=True), _on_host(slices), _on_host(value))

    def scatter_max(self, slices: Any, value: Any) -> None:
        """Take the maximum at an index, each time that it occurs."""
        np.maximum.at(self.open(writes=True), _on_host(slices), _on_host(value))

    def scatter_min(self, slices: Any, value: Any) -> None:
        """Take the minimum at an index, each time that it occurs."""
        np.minimum.at(self.open(writes=True), _on_host(slices), _on_host(value))


class Flags:
    """How an array lies in memory: by attribute or by NumPy's name."""

    def __init__(self, array: ndarray):
        flags = array.layout().flags
        self.c_contiguous, self.f_contiguous = flags.c_contiguous, flags.f_contiguous
        self.forc, self.fnc = flags.forc, flags.fnc
        self.owndata = array.base is None

    def __getitem__(self, name: str) -> bool:
        try:
            return bool(getattr(self, name.lower()))
        except AttributeError:
            raise KeyError(f"Unknown flag {name!r}") from None

    def __repr__(self) -> str:
        return "\n".join(f"  {name.upper()} : {value}" for name, value in vars(self).items())


# ---- to the device -------------------------------------------------------------------------------


def to_device(host: Any, order: str = "K") -> ndarray:
    """A new device array with the elements of a NumPy array or scalar."""
    host = np.asarray(host)
    check_dtype(host.dtype)
    layout = np.empty_like(host, order=order) if host.size else host  # type: ignore[call-overload]
    strides = layout.strides if host.size else None
    array = ndarray.__new__(ndarray)
    if strides is None:
        strides = _contiguous_strides(host.shape, host.dtype.itemsize, "C")
    array._place(alloc(host.nbytes), host.shape, host.dtype, strides, None)
    if host.size:
        array.open(writes=True)[...] = host
    return array


def borrow(interface: dict[str, Any], owner: Any) -> ndarray:
    """The array that another object describes (``__cuda_array_interface__``), without a copy.

    Raises ValueError for memory that is not the simulated device's.
    """
    shape, dtype = tuple(interface["shape"]), np.dtype(interface["typestr"])
    address = interface["data"][0]
    strides = interface.get("strides") or _contiguous_strides(shape, dtype.itemsize, "C")
    if not math.prod(shape):
        return ndarray(shape, dtype)
    allocation = devices.current().memory.find(address)
    if allocation is None:
        raise ValueError(
            f"address 0x{address:x} is not in the memory of the simulated device: the array lives on a real "
            "GPU, or was freed. Copy it to the host first."
        )
    pointer = MemoryPointer(UnownedMemory(allocation, owner), address - allocation.address)
    array = ndarray.__new__(ndarray)
    array._place(pointer, shape, dtype, tuple(strides), None)
    return array


# ---- small helpers -------------------------------------------------------------------------------


def check_dtype(dtype: Any) -> np.dtype:
    """The dtype, if a device array can hold it. Raises ValueError."""
    found: np.dtype = np.dtype(dtype)
    if found.kind not in "biufcV" or found.hasobject or found.char in "gG":
        raise ValueError(f"Unsupported dtype {found}: a device array holds numbers and bools.")
    return found


def _shape(shape: Any) -> Shape:
    sizes = tuple(shape) if isinstance(shape, tuple | list | np.ndarray) else (shape,)
    for size in sizes:
        if isinstance(size, float | np.floating):
            raise TypeError(f"the shape {shape!r} is not made of whole numbers; divide with //.")
        if size < 0:
            raise ValueError(f"Negative dimensions are not allowed: {shape!r}")
    return tuple(int(size) for size in sizes)


def _contiguous_strides(shape: Shape, itemsize: int, order: str) -> Shape:
    if order not in ("C", "F", None):
        raise ValueError(f"order must be 'C' or 'F', not {order!r}.")
    return devices.contiguous_strides(shape, itemsize, order or "C")


def _items(index: Any) -> tuple[Any, ...]:
    items = index if isinstance(index, tuple) else (index,)
    return tuple(item for item in items if item is not Ellipsis)


def _is_basic(index: Any) -> bool:
    """Whether an index is made of numbers and slices, which makes a view."""
    items = index if isinstance(index, tuple) else (index,)
    return all(
        item is None
        or item is Ellipsis
        or isinstance(item, slice | str)
        or (isinstance(item, int | np.integer) and not isinstance(item, bool))
        for item in items
    )


def _on_host(value: Any) -> Any:
    """Device arrays in an index or a value as NumPy arrays."""
    if isinstance(value, ndarray):
        return value.open()
    if isinstance(value, tuple):
        return tuple(map(_on_host, value))
    if isinstance(value, list) and any(isinstance(item, ndarray | list) for item in value):
        return [_on_host(item) for item in value]
    if isinstance(value, slice):
        return slice(
            *(int(p) if isinstance(p, ndarray) else p for p in (value.start, value.stop, value.step))
        )
    return value
