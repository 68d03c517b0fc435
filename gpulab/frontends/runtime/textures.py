"""CUDA arrays, textures and surfaces of a program."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gpulab.frontends.driver.functions import put
from gpulab.simulator import device as devices
from gpulab.simulator.device import cuda_arrays
from gpulab.simulator.simt.textures import Texels

from .errors import NOT_SUPPORTED, Refused
from .memory import MemoryCalls
from .structures import Channels, Extent, Resource, TextureDescription

P, I, N, H = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_uint64
INVALID_VALUE, INVALID_HANDLE = 1, 400
ARRAY, MIPMAPS, LINEAR, PITCHED = range(4)  # cudaResourceType


@dataclass
class TextureCalls:
    """The runtime's functions about textures. An array is known by its address in device memory."""

    device: devices.SimulatedDevice
    memory: MemoryCalls

    # ---- arrays ----------------------------------------------------------------------------------

    def malloc_array(self, where: int, channels: int, width: int, height: int, flags: int) -> None:
        """``cudaMallocArray``."""
        self._new_array(where, channels, (width, height, 0), flags)

    def malloc_3d_array(self, where: int, channels: int, extent: Extent, flags: int) -> None:
        """``cudaMalloc3DArray``."""
        self._new_array(where, channels, (extent.width, extent.height, extent.depth), flags)

    def _new_array(self, where: int, channels: int, sizes: tuple[int, int, int], flags: int) -> None:
        format_ = _checked(lambda: Channels.from_address(channels).format())
        made = _checked(lambda: cuda_arrays.new_array(self.device, format_, sizes, flags))
        self.memory.arrays[made.allocation.address] = made
        put(where, made.allocation.address)

    def free_array(self, address: int) -> None:
        """``cudaFreeArray``."""
        if address:
            self.device.free(self.memory.array(address).allocation)
            del self.memory.arrays[address]

    def channels(self, where: int, address: int) -> None:
        """``cudaGetChannelDesc``."""
        texels = self.memory.array(address).texels
        bits = [8 * texels.dtype.itemsize if i < texels.channels else 0 for i in range(4)]
        kinds = {"i": 0, "u": 1, "f": 2}
        made = Channels((ctypes.c_int * 4)(*bits), kinds[texels.dtype.kind])
        ctypes.memmove(where, ctypes.addressof(made), ctypes.sizeof(made))

    def copy_to_array(
        self, array: int, x: int, y: int, source: int, pitch: int, width: int, height: int, kind: int, *_: int
    ) -> None:
        """``cudaMemcpy2DToArray``: `x` and `width` count bytes."""
        there = self.memory.array(array).texels
        first = there.address + y * there.pitch + x
        self.memory.copy_rows(first, there.pitch, source, pitch, width, height, kind)

    def copy_from_array(
        self, to: int, pitch: int, array: int, x: int, y: int, width: int, height: int, kind: int, *_: int
    ) -> None:
        """``cudaMemcpy2DFromArray``."""
        there = self.memory.array(array).texels
        first = there.address + y * there.pitch + x
        self.memory.copy_rows(to, pitch, first, there.pitch, width, height, kind)

    def copy_line_to_array(
        self, array: int, x: int, y: int, source: int, nbytes: int, kind: int, *_: int
    ) -> None:
        """``cudaMemcpyToArray``: bytes that go on in the next row where one is full."""
        there = self.memory.array(array).texels
        row = there.width * there.texel_bytes
        while nbytes > 0:
            part = min(nbytes, row - x)
            self.memory.copy(there.address + y * there.pitch + x, source, part, kind)
            x, y, source, nbytes = 0, y + 1, source + part, nbytes - part

    # ---- objects ---------------------------------------------------------------------------------

    def create_texture(self, where: int, resource: int, description: int, view: int) -> None:
        """``cudaCreateTextureObject``."""
        how = TextureDescription.from_address(description)
        if view or how.srgb:
            raise Refused("views of resources and sRGB are not simulated.", NOT_SUPPORTED)
        texels = self._texels(Resource.from_address(resource))
        handle = _checked(
            lambda: cuda_arrays.new_texture(
                self.device,
                texels,
                modes=how.modes[:],
                linear=bool(how.filter),
                read_mode=how.read_mode,
                normalized=bool(how.normalized),
                border=how.border[:],
            )
        )
        put(where, handle)

    def create_surface(self, where: int, resource: int) -> None:
        """``cudaCreateSurfaceObject``."""
        given = Resource.from_address(resource)
        if given.kind != ARRAY:
            raise Refused("a surface sees a CUDA array (cudaResourceTypeArray).", INVALID_VALUE)
        put(where, self.device.memory.add_texture(self._texels(given)))

    def _texels(self, resource: Resource) -> Texels:
        """What a resource is. Raises Refused for mipmaps."""
        if resource.kind == ARRAY:
            return self.memory.array(resource.address).texels
        if resource.kind not in (LINEAR, PITCHED):
            raise Refused("mipmaps are not simulated: create a texture of one CUDA array.", NOT_SUPPORTED)
        dtype, count = _checked(resource.channels.format)
        address = resource.address
        if resource.kind == LINEAR:
            made = Texels(address, dtype, count, resource.first // (dtype.itemsize * count), is_line=True)
        else:
            made = Texels(address, dtype, count, resource.first, resource.height, pitch=resource.pitch)
        self.memory.bytes_at(address, made.nbytes, on_device=True)  # says so where that is not all there
        return made

    def destroy(self, handle: int) -> None:
        """``cudaDestroyTextureObject`` and ``cudaDestroySurfaceObject``."""
        if handle and self.device.memory.textures.pop(handle, None) is None:
            raise Refused(f"{handle:#x} is no texture or surface, or no longer one.", INVALID_HANDLE)

    def answers(self) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
        """(name, what answers it, types of its arguments) of each function."""
        yield "cudaMallocArray", self.malloc_array, (P, P, N, N, I)
        yield "cudaMalloc3DArray", self.malloc_3d_array, (P, P, Extent, I)
        yield "cudaFreeArray", self.free_array, (P,)
        yield "cudaGetChannelDesc", self.channels, (P, P)
        yield "cudaMemcpyToArray", self.copy_line_to_array, (P, N, N, P, N, I)
        yield "cudaMemcpyToArrayAsync", self.copy_line_to_array, (P, N, N, P, N, I, P)
        yield "cudaMemcpy2DToArray", self.copy_to_array, (P, N, N, P, N, N, N, I)
        yield "cudaMemcpy2DToArrayAsync", self.copy_to_array, (P, N, N, P, N, N, N, I, P)
        yield "cudaMemcpy2DFromArray", self.copy_from_array, (P, N, P, N, N, N, N, I)
        yield "cudaMemcpy2DFromArrayAsync", self.copy_from_array, (P, N, P, N, N, N, N, I, P)
        yield "cudaCreateTextureObject", self.create_texture, (P, P, P, P)
        yield "cudaCreateSurfaceObject", self.create_surface, (P, P)
        yield "cudaDestroyTextureObject", self.destroy, (H,)
        yield "cudaDestroySurfaceObject", self.destroy, (H,)


def _checked(make: Callable[[], Any]) -> Any:
    """What `make` makes. Raises Refused for a description that CUDA refuses."""
    try:
        return make()
    except cuda_arrays.WrongDescription as error:
        raise Refused(str(error), INVALID_VALUE) from None
