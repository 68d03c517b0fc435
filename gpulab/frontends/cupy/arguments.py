"""Python arguments of a launch → the parameter buffer of a kernel, as the PTX lays it out.

CuPy checks nothing: what does not match the signature becomes garbage on a GPU. Here it is said. A value
passes if its bytes mean the same to the kernel as to the caller.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpulab.simulator import device as devices
from gpulab.simulator.device import LaunchError
from gpulab.simulator.ptx import Variable
from gpulab.simulator.simt import ArrayLabel, tensor_maps

from .arrays import ndarray
from .c_types import fits
from .cuda_text import Parameter, Signature
from .memory import MemoryPointer
from .tensor_maps import content, is_tensor_map
from .texture import SurfaceObject, TextureObject

POINTER_BYTES = 8
# How NumPy calls the element types of tensor maps; all others are 32-bit floats.
OF_TENSOR_MAPS = {
    **{f"u{n}": f"uint{n}" for n in (8, 16, 32, 64)},
    **{"s32": "int32", "s64": "int64", "f16": "float16", "bf16": "uint16", "f64": "float64"},
}


class ArgumentError(LaunchError, TypeError):
    """Arguments that a kernel cannot be launched with: which parameter, what came, what to pass."""


@dataclass
class Packed:
    """A parameter buffer: `pointers` are offsets of device addresses in it, `arrays` what they are called."""

    data: bytearray
    pointers: list[int] = field(default_factory=list)
    arrays: list[ArrayLabel] = field(default_factory=list)


def pack(
    kernel: str,
    variables: tuple[Variable, ...],
    layout: tuple[tuple[str, int, int], ...],
    signature: Signature | None,
    values: tuple[Any, ...],
) -> Packed:
    """Pack `values` for the parameters `variables` of the PTX, which lie at `layout` (name, offset, bytes).

    `signature` is the one of the CUDA text, if it was found. Raises ArgumentError.
    """
    known = signature is not None and len(signature.parameters) == len(variables)
    declared = signature.parameters if signature is not None and known else ()
    if len(values) != len(variables):
        raise ArgumentError(_wrong_count(kernel, [p.text for p in declared], len(variables), len(values)))
    packed = Packed(bytearray(layout[-1][1] + layout[-1][2] if layout else 0))
    for i, (variable, (name, offset, size), value) in enumerate(zip(variables, layout, values, strict=True)):
        parameter = declared[i] if declared else Parameter("", "", name)
        place = _Place(kernel, i + 1, parameter, variable, size)
        content, label = place.convert(value)
        packed.data[offset : offset + size] = content
        packed.pointers += [offset + at for at in _addresses(content, label is not None)]
        if label is not None and label.extent:
            packed.arrays.append(label)
    return packed


def _wrong_count(kernel: str, parameters: list[str], wanted: int, given: int) -> str:
    takes = f"{wanted} argument{'' if wanted == 1 else 's'}"
    if parameters:
        takes += f" ({', '.join(parameters)})"
    lacking = ", ".join(f"`{p}`" for p in parameters[given:])
    return (
        f"{kernel} takes {takes}, but was launched with {given}{f': {lacking} missing' if lacking else ''}."
    )


def _addresses(content: bytes, certain: bool) -> list[int]:
    """Where in a parameter device addresses lie: also inside structures."""
    if certain:
        return [0]
    if len(content) <= POINTER_BYTES or len(content) % POINTER_BYTES:
        return []
    find = devices.current().memory.find
    words = np.frombuffer(content, np.uint64)
    return [POINTER_BYTES * i for i, word in enumerate(words.tolist()) if word and find(word) is not None]


@dataclass(frozen=True)
class _Place:
    """One parameter of one launch."""

    kernel: str
    number: int
    parameter: Parameter
    variable: Variable
    size: int

    def convert(self, value: Any) -> tuple[bytes, ArrayLabel | None]:
        """The bytes of a value, and what the array behind it is called."""
        if isinstance(value, np.ndarray):
            value = self._one_element(value)
        if isinstance(value, ndarray):
            self._check_array(value)
            return value.data.ptr.to_bytes(POINTER_BYTES, "little"), _label(value, self.parameter.name)
        if isinstance(value, Structure):
            return value.content, value.label
        if is_tensor_map(value):
            return self._tensor_map(value)
        if isinstance(value, MemoryPointer):
            self._check_takes_pointer("a device pointer")
            return value.ptr.to_bytes(POINTER_BYTES, "little"), None
        if isinstance(value, TextureObject | SurfaceObject):
            if self.size != POINTER_BYTES or self.variable.type.startswith("f"):
                raise self._error("is no cudaTextureObject_t or cudaSurfaceObject_t, but got one.")
            return value.ptr.to_bytes(POINTER_BYTES, "little"), None
        if value is None:
            self._check_takes_pointer("None")
            return bytes(POINTER_BYTES), None
        if not isinstance(value, bool | int | float | complex | np.generic):
            raise self._error(
                f"got {_a(type(value).__name__)}; a kernel takes numbers, device arrays and structures"
                + (": copy it to the device with cupy.array(…)." if isinstance(value, list | tuple) else ".")
            )
        if self.variable.is_array or self.variable.type.startswith("b8"):
            return self._structure(value), None
        if self.variable.type.startswith("f"):
            return self._float(value), None
        return self._integer(value), None

    def _tensor_map(self, value: Any) -> tuple[bytes, ArrayLabel]:
        """A tensor map is passed by value; what it describes is called as its parameter is."""
        if self.size != tensor_maps.BYTES:
            raise self._error(
                "got a tensor map, which a kernel takes by value: declare the parameter as "
                "const __grid_constant__ CUtensorMap."
            )
        data = content(value)
        map_ = tensor_maps.decode(data)
        strides = (*reversed(map_.strides), map_.type.itemsize)
        shape, type_ = map_.dimensions[::-1], map_.type
        dtype = OF_TENSOR_MAPS.get(type_.name, "float32")
        return data, ArrayLabel(self.parameter.name, map_.address, shape, strides, dtype, type_.itemsize)

    # ---- arrays ----------------------------------------------------------------------------------

    def _one_element(self, value: np.ndarray) -> Any:
        if value.size != 1:
            raise self._error(
                f"got a NumPy array of shape {value.shape}. Only one of size 1 is passed, by value; the "
                "kernel reads device memory: pass a device array, cupy.asarray(…)."
            )
        return value.reshape(-1)[0]

    def _check_array(self, array: ndarray) -> None:
        self._check_takes_pointer("an array")
        wanted = fits(self.parameter.pointee) if self.parameter.is_pointer else None
        if wanted is not None and not wanted(array.dtype):
            raise self._error(
                f"points to {self.parameter.pointee}, which is {wanted.dtype}, but got an array of "
                f"{array.dtype}. Convert it with .astype(cupy.{wanted.dtype}), or pass "
                f".view(cupy.{wanted.dtype}) if the kernel means its bytes."
            )

    def _check_takes_pointer(self, given: str) -> None:
        by_value = self.parameter.type and not self.parameter.is_pointer and fits(self.parameter.type)
        if self.size != POINTER_BYTES or self.variable.type.startswith("f") or by_value:
            raise self._error(f"is passed by value, but got {given}.")

    # ---- numbers ---------------------------------------------------------------------------------

    def _integer(self, value: Any) -> bytes:
        bits = 8 * self.size
        if isinstance(value, float | complex | np.inexact):
            raise self._error(f"is an integer, but got {_said(value)}. Write int(…).")
        if isinstance(value, np.generic) and value.itemsize < self.size and not isinstance(value, np.bool):
            raise self._error(
                f"has {self.size} bytes, but got {_said(value)} with {value.itemsize}: a GPU would read what "
                f"lies behind it. Write int(…) or cupy.{self._integer_name(bits)}(…)."
            )
        number = int(value)
        if not -(1 << bits - 1) <= number < 1 << bits:
            raise self._error(
                f"has {bits} bits, in which {number:,} has no room. Use a larger type in the kernel."
            )
        if self.parameter.is_pointer and number and devices.current().memory.find(number) is None:
            raise self._error(
                f"is a pointer, but got the number {number:,}, which is no address of device memory. "
                "Are the arguments in the kernel's order?"
            )
        return (number & (1 << bits) - 1).to_bytes(self.size, "little")

    def _float(self, value: Any) -> bytes:
        wanted = np.dtype(f"f{self.size}")
        if isinstance(value, np.generic) and value.dtype == wanted:
            return value.tobytes()
        if isinstance(value, float) and wanted == np.float64:
            return np.float64(value).tobytes()
        passed = {float: ", which is passed as double", int: ", which is passed as long long"}.get(
            type(value), ""
        )
        raise self._error(
            f"is a {'float' if self.size == 4 else 'double'}, but got {_said(value)}{passed}. "
            f"Write cupy.{wanted}(…)."
        )

    def _structure(self, value: Any) -> bytes:
        if isinstance(value, complex) and not isinstance(value, np.generic):
            value = np.complex128(value)
        if isinstance(value, np.generic) and value.itemsize == self.size:
            return value.tobytes()
        size = f" of {value.itemsize} bytes" if isinstance(value, np.generic) else ""
        raise self._error(
            f"is a structure of {self.size} bytes, but got {_said(value)}{size}. Pass a NumPy scalar of a "
            "dtype with the same fields and padding."
        )

    def _integer_name(self, bits: int) -> str:
        known = fits(self.parameter.type)
        return known.dtype if known else f"{'u' if self.variable.type.startswith('u') else ''}int{bits}"

    def _error(self, what: str) -> ArgumentError:
        name = f", `{self.parameter.text}`," if self.parameter.text else ""
        return ArgumentError(f"{self.kernel}: argument {self.number}{name} {what}")


@dataclass(frozen=True)
class Structure:
    """A parameter that is packed already; `label` is the array that it describes."""

    content: bytes
    label: ArrayLabel | None = None


def _label(array: ndarray, name: str) -> ArrayLabel:
    shape, strides = array.shape, array.strides
    if any(stride < 0 for stride in strides):  # a kernel counts from the first element on
        shape, strides = (array.size,), (array.itemsize,)
    return ArrayLabel(name, array.data.ptr, shape, strides, array.dtype.name, array.itemsize)


def label_of(array: ndarray, name: str) -> ArrayLabel:
    """What faults call an array."""
    return _label(array, name)


def _said(value: Any) -> str:
    kind = f"cupy.{value.dtype}" if isinstance(value, np.generic) and value.dtype.names is None else ""
    if isinstance(value, np.void):
        return f"a record of dtype {value.dtype}"
    return f"the {kind or type(value).__name__} {value!s}"


def _a(noun: str) -> str:
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"
