"""`cupy.cuda.texture`: CUDA arrays, textures and surfaces of the simulated device."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from gpulab.simulator import device as devices
from gpulab.simulator.device import cuda_arrays
from gpulab.simulator.simt.textures import Texels

from .arrays import ndarray
from .devices import CUDARuntimeError

ARRAY, LINEAR, PITCHED = 0, 2, 3  # cudaResourceType


class ChannelFormatDescriptor:
    """Bits of the channels `x`, `y`, `z` and `w`, and what they hold: `f` is a ``cudaChannelFormatKind``."""

    def __init__(self, x: int, y: int, z: int, w: int, f: int):
        self.bits, self.kind = (x, y, z, w), f

    def get_channel_format(self) -> dict[str, int]:
        """The bits and the kind under the names of CUDA's structure."""
        return {**dict(zip("xyzw", self.bits, strict=True)), "f": self.kind}

    def format(self) -> tuple[np.dtype, int]:
        """The type and the number of channels."""
        return _checked(lambda: cuda_arrays.channels(self.bits, self.kind))


class CUDAarray:
    """An array for textures and surfaces, filled by `copy_from`."""

    def __init__(
        self, desc: ChannelFormatDescriptor, width: int, height: int = 0, depth: int = 0, flags: int = 0
    ):
        self.desc, self.width, self.height, self.depth, self.flags = desc, width, height, depth, flags
        self.ndim = 3 if depth else 2 if height else 1
        device, sizes = devices.current(), (width, height, depth)
        self.made = _checked(lambda: cuda_arrays.new_array(device, desc.format(), sizes, flags))
        self.ptr = self.made.allocation.address

    def __del__(self) -> None:
        with suppress(AttributeError):  # it was never made
            devices.current().free(self.made.allocation)

    def copy_from(self, in_arr: Any, stream: Any = None) -> None:
        """Copy from an array of the device or the host, whose last axis holds the channels one by one."""
        given = in_arr.get() if isinstance(in_arr, ndarray) else np.asarray(in_arr)
        there = self.made.elements(devices.current(), writes=True)
        self._check(given.shape, given.dtype, there)
        there[:] = given.reshape(there.shape)

    def copy_to(self, out_arr: Any, stream: Any = None) -> None:
        """Copy to an array of the device or the host, of the shape that `copy_from` takes."""
        there = self.made.elements(devices.current(), writes=False)
        self._check(out_arr.shape, out_arr.dtype, there)
        found = np.ascontiguousarray(there).reshape(out_arr.shape)
        if isinstance(out_arr, ndarray):
            out_arr.set(found)
        else:
            out_arr[...] = found

    def _check(self, shape: tuple[int, ...], dtype: np.dtype, there: np.ndarray) -> None:
        depth, height, width, count = there.shape
        wanted = (depth, height, count * width)[3 - self.ndim :]
        if shape != wanted or dtype != there.dtype:
            raise ValueError(
                f"This CUDA array takes arrays of shape {wanted} and dtype {there.dtype}, but got shape "
                f"{shape} and dtype {dtype}. The last axis has {count} "
                f"channel{'s' if count > 1 else ''} per element."
            )


class ResourceDescriptor:
    """What a texture or surface sees: a CUDA array (`cuArr`), or the memory of `arr` as elements of `chDesc`.

    Linear memory has `sizeInBytes`; pitched memory has `width` and `height` in elements, its rows start
    `pitchInBytes` apart.
    """

    def __init__(
        self,
        restype: int,
        cuArr: CUDAarray | None = None,
        arr: ndarray | None = None,
        chDesc: ChannelFormatDescriptor | None = None,
        sizeInBytes: int = 0,
        width: int = 0,
        height: int = 0,
        pitchInBytes: int = 0,
    ):
        self.cuArr, self.arr, self.chDesc = cuArr, arr, chDesc
        if restype == ARRAY and cuArr is not None:
            self.texels = cuArr.made.texels
        elif restype in (LINEAR, PITCHED) and arr is not None and chDesc is not None:
            dtype, count = chDesc.format()
            if restype == LINEAR:
                elements = sizeInBytes // (dtype.itemsize * count)
                self.texels = Texels(arr.data.ptr, dtype, count, elements, is_line=True)
            else:
                self.texels = Texels(arr.data.ptr, dtype, count, width, height, pitch=pitchInBytes)
            if self.texels.nbytes > arr.nbytes:
                raise ValueError(
                    f"The texture sees {self.texels.nbytes:,} bytes; the array has {arr.nbytes:,}."
                )
        else:
            raise ValueError(
                "A resource is a CUDA array (cudaResourceTypeArray, cuArr=…), or device memory "
                "(cudaResourceTypeLinear or cudaResourceTypePitch2D, arr=… and chDesc=…)."
            )


class TextureDescriptor:
    """How a texture is read, in CUDA's numbers, such as ``cupy.cuda.runtime.cudaAddressModeClamp``."""

    def __init__(
        self,
        addressModes: Sequence[int] | None = None,
        filterMode: int = 0,
        readMode: int = 0,
        sRGB: int | None = None,
        borderColors: Sequence[float] | None = None,
        normalizedCoords: int | None = None,
        maxAnisotropy: int | None = None,
    ):
        if sRGB:
            raise NotImplementedError("sRGB textures are not simulated: convert the colours in the kernel.")
        self.modes, self.linear, self.read_mode = addressModes or (0, 0, 0), bool(filterMode), readMode
        self.border, self.normalized = borderColors or (), bool(normalizedCoords)


class TextureObject:
    """A texture to hand to a kernel as ``cudaTextureObject_t``."""

    def __init__(self, ResDesc: ResourceDescriptor, TexDesc: TextureDescriptor):
        self.ResDesc, self.TexDesc = ResDesc, TexDesc
        self.ptr = _checked(
            lambda: cuda_arrays.new_texture(
                devices.current(),
                ResDesc.texels,
                modes=TexDesc.modes,
                linear=TexDesc.linear,
                read_mode=TexDesc.read_mode,
                normalized=TexDesc.normalized,
                border=TexDesc.border,
            )
        )

    def __del__(self) -> None:
        with suppress(AttributeError):
            devices.current().memory.textures.pop(self.ptr, None)


class SurfaceObject:
    """A surface to hand to a kernel as ``cudaSurfaceObject_t``."""

    def __init__(self, ResDesc: ResourceDescriptor):
        if ResDesc.cuArr is None:
            raise ValueError(
                "A surface sees a CUDA array: ResourceDescriptor(cudaResourceTypeArray, cuArr=…)."
            )
        self.ResDesc = ResDesc
        self.ptr = devices.current().memory.add_texture(ResDesc.texels)

    def __del__(self) -> None:
        with suppress(AttributeError):
            devices.current().memory.textures.pop(self.ptr, None)


def _checked(make: Any) -> Any:
    """What `make` makes. Raises CUDARuntimeError for a description that CUDA refuses."""
    try:
        return make()
    except cuda_arrays.WrongDescription as error:
        raise CUDARuntimeError(f"cudaErrorInvalidValue: {error}") from None
