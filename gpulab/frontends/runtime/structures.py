"""CUDA's structures in the program's memory, by the places that its own headers give each field."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpulab.simulator.device import cuda_arrays


class _Field(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("offset", ctypes.c_int), ("size", ctypes.c_int))


class Dim3(ctypes.Structure):
    """``dim3``, which calls take by value."""

    _fields_ = (("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32))

    def __iter__(self) -> Iterator[int]:
        return iter((self.x, self.y, self.z))


class Extent(ctypes.Structure):
    """``cudaExtent``: the width in bytes, or in elements where a CUDA array takes part; height and depth."""

    _fields_ = (("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("depth", ctypes.c_size_t))


class PitchedPointer(ctypes.Structure):
    """``cudaPitchedPtr``: rows that start `pitch` bytes apart, `height` of them in a slice."""

    _fields_ = (
        ("address", ctypes.c_size_t),
        ("pitch", ctypes.c_size_t),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
    )

    def row(self, x: int, y: int, z: int) -> int:
        """The address of byte `x` of row `y` of slice `z`."""
        return int(self.address + (z * self.height + y) * self.pitch + x)


class Channels(ctypes.Structure):
    """``cudaChannelFormatDesc``: bits of the channels, and what they hold."""

    _fields_ = (("bits", ctypes.c_int * 4), ("kind", ctypes.c_int))

    def format(self) -> tuple[np.dtype, int]:
        """The type and the number of channels. Raises WrongDescription."""
        return cuda_arrays.channels(self.bits[:], self.kind)


class Resource(ctypes.Structure):
    """``cudaResourceDesc``. `first` are the bytes of linear memory, or the width of pitched memory in
    elements; of an array only the address counts."""

    _fields_ = (
        ("kind", ctypes.c_int),
        ("address", ctypes.c_size_t),
        ("channels", Channels),
        ("first", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
        ("pitch", ctypes.c_size_t),
    )


class TextureDescription(ctypes.Structure):
    """The beginning of ``cudaTextureDesc``."""

    _fields_ = (
        ("modes", ctypes.c_int * 3),
        ("filter", ctypes.c_int),
        ("read_mode", ctypes.c_int),
        ("srgb", ctypes.c_int),
        ("border", ctypes.c_float * 4),
        ("normalized", ctypes.c_int),
    )


class Copy3D(ctypes.Structure):
    """``cudaMemcpy3DParms``."""

    _fields_ = (
        ("source_array", ctypes.c_size_t),
        ("source_place", ctypes.c_size_t * 3),
        ("source", PitchedPointer),
        ("to_array", ctypes.c_size_t),
        ("to_place", ctypes.c_size_t * 3),
        ("to", PitchedPointer),
        ("extent", Extent),
        ("kind", ctypes.c_int),
    )


@dataclass(frozen=True)
class Layouts:
    """Where the fields of structures are: (offset, bytes) by ``structure.field``, and a structure's bytes."""

    places: Mapping[str, tuple[int, int]]

    @classmethod
    def of(cls, library: ctypes.CDLL) -> Layouts:
        """Those that the library lists as ``gpulab_fields``, up to one without a name."""
        first = ctypes.addressof(_Field.in_dll(library, "gpulab_fields"))
        places: dict[str, tuple[int, int]] = {}
        while (each := _Field.from_address(first + len(places) * ctypes.sizeof(_Field))).name:
            places[each.name.decode()] = each.offset, each.size
        return cls(places)

    def write(self, structure: str, address: int, values: Mapping[str, Any]) -> None:
        """Fill the structure at `address`: 0 where no value is given, and no more than a field holds."""
        ctypes.memset(address, 0, self.places[structure][1])
        for name, value in values.items():
            if f"{structure}.{name}" in self.places:
                offset, size = self.places[f"{structure}.{name}"]
                data = _bytes_of(value, size)
                ctypes.memmove(address + offset, data, min(len(data), size))


def _bytes_of(value: Any, size: int) -> bytes:
    if isinstance(value, str):
        return value.encode()[: size - 1] + b"\0"
    if isinstance(value, tuple):
        return b"".join(_bytes_of(each, size // len(value)) for each in value)
    return int(value).to_bytes(size, "little", signed=value < 0)
