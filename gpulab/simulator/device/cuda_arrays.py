"""Memory that textures and surfaces see: CUDA arrays, and plain device memory described for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpulab.simulator.simt import Allocation
from gpulab.simulator.simt.textures import Mode, Texels, Texture, channel_type

from .simulated import SimulatedDevice

KINDS = {0: "s", 1: "u", 2: "f"}  # CUDA's numbers (cudaChannelFormatKind) → kinds of channels
LAYERED, SURFACE = 1, 2  # flags of CUDA arrays (cudaArrayLayered, cudaArraySurfaceLoadStore)
ELEMENTS, NORMALIZED_FLOATS = 0, 1  # cudaTextureReadMode
ROW = 32  # bytes that rows of a CUDA array are a multiple of


class WrongDescription(ValueError):
    """What a texture, a surface or a CUDA array cannot be, in words."""


@dataclass(frozen=True)
class CudaArray:
    """Elements that only textures, surfaces and copies reach. `flags` are those that it was made with."""

    allocation: Allocation
    texels: Texels
    flags: int = 0

    def elements(self, device: SimulatedDevice, writes: bool) -> np.ndarray:
        """The elements for the host, (depth, height, width, channels), live."""
        return self.texels.seen_in(device.host_view(self.allocation, writes), 0)


def channels(bits: Sequence[int], kind: int) -> tuple[np.dtype, int]:
    """The type and the number of the channels that ``cudaChannelFormatDesc`` describes.

    Raises WrongDescription.
    """
    used = [n for n in bits if n]
    if len(used) not in (1, 2, 4) or len(set(used)) != 1 or list(bits[: len(used)]) != used:
        raise WrongDescription(
            f"channels of {', '.join(map(str, bits))} bits: there are 1, 2 or 4 of the same size, x first."
        )
    try:
        return channel_type(KINDS.get(kind, ""), used[0]), len(used)
    except ValueError:
        raise WrongDescription(
            f"channels of {used[0]} bits and kind {kind}: integers have 8, 16 or 32 bits, floats 16 or 32."
        ) from None


def new_array(
    device: SimulatedDevice, format_: tuple[np.dtype, int], sizes: Sequence[int], flags: int = 0
) -> CudaArray:
    """A CUDA array of (width, height, depth) elements; 0 is an axis that is not there. With the flag
    `LAYERED` the depth counts layers. Raises WrongDescription."""
    dtype, count = format_
    width, height, depth = sizes
    if not width or flags & ~(LAYERED | SURFACE) or (depth and not height and not flags & LAYERED):
        raise WrongDescription(
            f"a CUDA array of {width} × {height} × {depth} elements with flags {flags}: it needs a width; "
            "cube maps, mipmaps and sparse arrays are not simulated."
        )
    pitch = -(-width * count * dtype.itemsize // ROW) * ROW
    allocation = device.allocate(pitch * max(height, 1) * max(depth, 1))
    allocation.name = "a CUDA array"
    layered = bool(flags & LAYERED)
    texels = Texels(allocation.address, dtype, count, width, height, depth, pitch, layered)
    return CudaArray(allocation, texels, flags)


def new_texture(
    device: SimulatedDevice,
    texels: Texels,
    *,
    modes: Sequence[int] = (),
    linear: bool = False,
    read_mode: int = ELEMENTS,
    normalized: bool = False,
    border: Sequence[float] = (),
) -> int:
    """The handle of a new texture object; `modes` are CUDA's numbers. Raises WrongDescription."""
    as_floats = read_mode == NORMALIZED_FLOATS
    if as_floats and texels.dtype.kind != "f" and texels.dtype.itemsize > 2:
        raise WrongDescription("integers of 32 bits are read as they are (cudaReadModeElementType).")
    if linear and texels.dtype.kind != "f" and not as_floats:
        raise WrongDescription(
            "a linear filter mixes floats: read integers as such (cudaReadModeNormalizedFloat)."
        )
    x, y, z = (Mode(mode) for mode in (*modes, *[Mode.CLAMP] * 3)[:3])
    r, g, b, a = (float(value) for value in (*border, *[0.0] * 4)[:4])
    made = Texture(texels, (x, y, z), linear, normalized, as_floats, (r, g, b, a))
    return device.memory.add_texture(made)
