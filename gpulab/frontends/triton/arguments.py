"""Arguments of a Triton kernel: their types, as Triton specialises on them, and their bytes in the buffer."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from triton._utils import canonicalize_dtype
from triton.language.core import constexpr
from triton.language.core import dtype as triton_dtype
from triton.runtime.jit import JITCallable, MockTensor, TensorWrapper

from gpulab.frontends.driver import tensors
from gpulab.simulator import device as devices
from gpulab.simulator.device import LaunchError
from gpulab.simulator.simt import Allocation, ArrayLabel

from .descriptors import MAP_ALIGNMENT, Described, Piece, described, is_descriptor, pieces, type_of

# Element types as NumPy or torch name them → as Triton does.
ELEMENTS = {
    "bool": "i1",
    **{f"int{n}": f"i{n}" for n in (8, 16, 32, 64)},
    **{f"uint{n}": f"u{n}" for n in (8, 16, 32, 64)},
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
}
SCALARS = {
    **{"i1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q"},
    **{"u1": "?", "u8": "B", "u16": "H", "u32": "I", "u64": "Q"},
    **{"fp16": "e", "fp32": "f", "fp64": "d"},
}
INTEGERS = "bhiqBHIQ"
ALIGNMENT = 16
Path = tuple[int, ...]


class TooLarge(LaunchError, OverflowError):
    """A number that no integer of a kernel can hold."""


@dataclass(frozen=True)
class Argument:
    """One argument: Triton's type name, its value or device address, and whether it is divisible by 16.

    One of type "tuple" has its `parts`, and as its value the kind of tuple that was given.
    """

    type: str
    value: Any
    aligned: bool
    label: ArrayLabel | None = None
    parts: tuple[Argument, ...] = ()

    @property
    def signature(self) -> Any:
        """The type as Triton's compiler wants it: a tuple of types for a tuple."""
        if self.type != "tuple":
            return self.type
        types = [part.signature for part in self.parts]
        return self.value(*types) if hasattr(self.value, "_fields") else tuple(types)

    @property
    def key(self) -> Any:
        """What decides how a kernel is compiled for it."""
        if self.type == "tuple":
            return self.value, tuple(part.key for part in self.parts)
        if self.type != "constexpr":
            return self.type, self.aligned
        return getattr(self.value, "cache_key", None) or repr(self.value)

    def specialised(self) -> Argument:
        """As Triton compiles for it: the number 1 is a constant."""
        if self.type == "tuple":
            return replace(self, parts=tuple(part.specialised() for part in self.parts))
        if self.type in ("i32", "i64", "u64") and self.value == 1:
            return constant(1)
        return self

    def plain(self) -> Argument:
        """The same for all values."""
        return replace(self, aligned=False, parts=tuple(part.plain() for part in self.parts))

    def annotated(self, type_: str) -> Argument:
        """A number or a pointer with the type that its parameter's annotation names, and then no constant."""
        if self.type in ("constexpr", "tuple"):
            return self
        whole = type_.startswith(("i", "u", "*")) and type_ not in ("i1", "u1")
        return replace(self, type=type_, aligned=self.aligned and whole)

    @property
    def is_pointer(self) -> bool:
        return self.type.startswith("*")

    @property
    def is_descriptor(self) -> bool:
        return isinstance(self.value, Described)


@dataclass
class Transfers:
    """Torch tensors of the host that a launch uses. Kernels reach their memory where it is; that of a launch
    which is recorded, and that at an odd address, is copied to the device, each storage once."""

    device: devices.SimulatedDevice
    storages: dict[int, tuple[Allocation, Any]] = field(default_factory=dict)

    def address(self, tensor: Any) -> int:
        """Where the tensor's first element is on the device."""
        storage = tensor.untyped_storage()
        where = storage.data_ptr()
        if self.device.runs_kernels and (there := tensors.adopted(self.device, storage)):
            return int(there.address + tensor.data_ptr() - where)
        if where not in self.storages:
            allocation = self.device.allocate(storage.nbytes())
            self.device.host_view(allocation, writes=True)[:] = _bytes_of(storage)
            self.storages[where] = allocation, storage
        return int(self.storages[where][0].address + tensor.data_ptr() - where)

    def back(self) -> None:
        """Copy everything back and free the device's copies."""
        for allocation, storage in self.storages.values():
            _bytes_of(storage)[:] = allocation.data
            self.device.free(allocation)


def _bytes_of(storage: Any) -> np.ndarray:
    """The bytes of a torch storage, live."""
    size = storage.nbytes()
    if not size:
        return np.empty(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(storage.data_ptr()))


@contextmanager
def transfers(device: devices.SimulatedDevice) -> Iterator[Transfers]:
    """Tensors used inside come back when it ends, also after a fault: what a kernel wrote shows."""
    moved = Transfers(device)
    try:
        yield moved
    finally:
        moved.back()


def constant(value: Any) -> Argument:
    """What is compiled into the kernel."""
    return Argument("constexpr", value, False)


def leaves(arguments: Iterable[Argument], path: Path = ()) -> list[tuple[Path, Argument]]:
    """The arguments in the order in which they are passed, those in tuples too, and where each is."""
    found: list[tuple[Path, Argument]] = []
    for i, argument in enumerate(arguments):
        inside = argument.type == "tuple"
        found += leaves(argument.parts, (*path, i)) if inside else [((*path, i), argument)]
    return found


def describe(name: str, kernel: str, value: Any, moved: Transfers) -> Argument:
    """What Triton makes of one argument. Raises LaunchError for what no kernel can take."""
    if value is None or isinstance(value, JITCallable | constexpr | triton_dtype):
        return constant(value)
    if isinstance(value, tuple):
        parts = tuple(describe(f"{name}[{i}]", kernel, each, moved) for i, each in enumerate(value))
        return Argument("tuple", type(value), False, parts=parts)
    if isinstance(value, MockTensor):
        return Argument(f"*{canonicalize_dtype(value.dtype)}", 0, True)
    if isinstance(value, bool | np.bool_):
        return Argument("i1", bool(value), False)
    if isinstance(value, int | np.integer):
        number = int(value)
        if not -(2**63) <= number < 2**64:
            raise TooLarge(f"{kernel}: {name} is {number}, which fits no 64-bit integer.")
        type_ = "i32" if -(2**31) <= number < 2**31 else "i64" if number < 2**63 else "u64"
        return Argument(type_, number, number % ALIGNMENT == 0)
    if isinstance(value, float | np.floating):
        return Argument("fp32", float(value), False)
    if is_descriptor(value):
        base = _pointer(name, kernel, value.base, moved)
        given = described(name, kernel, value, base.value, base.type.removeprefix("*"))
        return Argument(type_of(value), given, False, base.label)
    if isinstance(value, TensorWrapper):  # of `triton.reinterpret`: the same memory as another type
        base = _pointer(name, kernel, value.base, moved)
        return replace(base, type=f"*{canonicalize_dtype(value.dtype)}")
    return _pointer(name, kernel, value, moved)


def _pointer(name: str, kernel: str, value: Any, moved: Transfers) -> Argument:
    interface = (
        getattr(value, "__cuda_array_interface__", None) if not hasattr(value, "untyped_storage") else None
    )
    if interface is not None:
        dtype = np.dtype(interface["typestr"])
        address, shape = interface["data"][0], tuple(interface["shape"])
        strides = interface.get("strides") or devices.contiguous_strides(shape, dtype.itemsize)
        label = ArrayLabel(name, address, shape, tuple(strides), dtype.name, dtype.itemsize)
        return Argument(f"*{_element(name, kernel, dtype.name)}", address, address % ALIGNMENT == 0, label)
    if hasattr(value, "untyped_storage"):
        if value.requires_grad and not value.is_leaf:
            value = value.detach()
        address, size = moved.address(value), value.element_size()
        dtype_name = str(value.dtype).removeprefix("torch.")
        strides = tuple(s * size for s in value.stride())
        label = ArrayLabel(name, address, tuple(value.shape), strides, dtype_name, size)
        return Argument(f"*{_element(name, kernel, dtype_name)}", address, address % ALIGNMENT == 0, label)
    hint = "Pass a torch tensor or a device array" + (
        ": torch.from_numpy(…) shares its memory." if isinstance(value, np.ndarray) else "."
    )
    raise LaunchError(
        f"{kernel}: {name} is a {type(value).__name__}, which a Triton kernel cannot take. {hint}"
    )


def _element(name: str, kernel: str, dtype: str) -> str:
    if dtype not in ELEMENTS:
        raise LaunchError(f"{kernel}: {name} holds {dtype}, a type that Triton has no pointers for.")
    return ELEMENTS[dtype]


def pack(
    kernel: str, arguments: Iterable[tuple[str, Argument]], room: int, boxes: Sequence[Mapping[str, Any]] = ()
) -> tuple[bytes, tuple[int, ...]]:
    """(the argument buffer of `room` bytes, where pointers are in it). Triton's scratch pointers stay null.

    `boxes` say of each descriptor in turn what TMA is to move; none where the kernel works out addresses.
    """
    buffer = b""
    pointers = []
    of_descriptors = iter(boxes)
    for name, argument in arguments:
        if argument.is_descriptor:
            parts = pieces(name, kernel, argument.value, next(of_descriptors, None))
        else:
            parts = [_scalar(name, kernel, argument)]
        for form, value in parts:
            piece = value if form == "map" else struct.pack(form, value)
            buffer += bytes(-len(buffer) % (MAP_ALIGNMENT if form == "map" else len(piece)))
            if form in ("Q", "map") and (argument.is_pointer or argument.is_descriptor):
                pointers.append(len(buffer))  # a map begins with its address
            buffer += piece
    return buffer.ljust(room, b"\0"), tuple(pointers)


def _scalar(name: str, kernel: str, argument: Argument) -> Piece:
    """A pointer or a number as `struct` packs it."""
    if argument.is_pointer:
        return Piece("Q", argument.value)
    if argument.type == "bf16":
        return Piece("H", struct.unpack("<I", struct.pack("<f", argument.value))[0] >> 16)
    form = SCALARS.get(argument.type)
    if form is None:
        raise LaunchError(f"{kernel}: {name} is to be of type {argument.type}, which no argument can have.")
    if form in INTEGERS:  # of which as many bits are passed as the type has
        width = 8 * struct.calcsize(form)
        wrapped = int(argument.value) & ((1 << width) - 1)
        return Piece(form, wrapped - (1 << width) if form.islower() and wrapped >> (width - 1) else wrapped)
    return Piece(form, argument.value)
