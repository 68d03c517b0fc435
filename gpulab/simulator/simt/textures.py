"""Textures and surfaces: elements in device memory, read by coordinates, as functions of whole arrays.

The rules are those of the CUDA C++ Programming Guide, "Texture Fetching". Two texels in a row are mixed with
weights of 8 fractional bits. The guide says neither how a weight is rounded to them nor how the products are
added: here a weight goes to the nearest, and products of 32-bit floats are added from the lowest corner on.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

Array = np.ndarray

WEIGHT = 256.0  # steps of a weight
FAR = 1 << 30  # no coordinate means a texel farther away than this
NARROWEST = {"s": "i", "u": "u", "f": "f"}  # kinds of channels as NumPy calls them


class Mode(IntEnum):
    """Which texel a coordinate means that lies outside, by CUDA's numbers (``cudaAddressMode``)."""

    WRAP = 0
    CLAMP = 1
    MIRROR = 2
    BORDER = 3


@dataclass(frozen=True)
class Texels:
    """Elements of `channels` numbers each, of `dtype`, at `address` in device memory.

    Along an axis that is not there the size is 0. Rows start `pitch` bytes apart; slices of a volume, and
    layers, follow each other. `is_line` means memory that only ``tex1Dfetch`` reads, without any filter.
    """

    address: int
    dtype: np.dtype
    channels: int
    width: int
    height: int = 0
    depth: int = 0
    pitch: int = 0
    layered: bool = False
    is_line: bool = False

    @property
    def texel_bytes(self) -> int:
        return self.dtype.itemsize * self.channels

    @property
    def nbytes(self) -> int:
        """From the first byte to behind the last."""
        rows = max(self.height, 1) * max(self.depth, 1)
        return (rows - 1) * self.pitch + self.width * self.texel_bytes

    @property
    def slice_bytes(self) -> int:
        return self.pitch * max(self.height, 1)

    def seen_in(self, data: Array, offset: int) -> Array:
        """The elements as an array (depth, height, width, channels), if they begin at byte `offset` of
        `data`."""
        strides = (self.slice_bytes, self.pitch, self.texel_bytes, self.dtype.itemsize)
        shape = (max(self.depth, 1), max(self.height, 1), self.width, self.channels)
        return np.ndarray(shape, self.dtype, data, offset, strides)


@dataclass(frozen=True)
class Texture:
    """How texels are read: the `modes` of the axes, whether neighbours are mixed (`linear`), whether
    coordinates run from 0 to 1 (`normalized`), and whether integers become floats up to 1 (`as_floats`)."""

    texels: Texels
    modes: tuple[Mode, Mode, Mode] = (Mode.CLAMP, Mode.CLAMP, Mode.CLAMP)
    linear: bool = False
    normalized: bool = False
    as_floats: bool = False
    border: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)


def channel_type(kind: str, bits: int) -> np.dtype:
    """NumPy's type of a channel: `kind` is ``s``, ``u`` or ``f``. Raises ValueError where there is none."""
    if kind not in NARROWEST or bits not in (8, 16, 32) or (kind, bits) == ("f", 8):
        raise ValueError(f"channels of {bits} bits")
    return np.dtype(f"{NARROWEST[kind]}{bits // 8}")


def fetch(texture: Texture, there: Array, place: Sequence[Array], layer: Array | None = None) -> list[Array]:
    """What each lane reads: four arrays of numbers, 0 where the texels have fewer channels.

    `there` are the texels as `Texels.seen_in` gives them. `place` are the coordinates, x first, floats or
    whole numbers. `layer` chooses among layers.
    """
    texels = texture.texels
    sizes = (texels.width, texels.height, texels.depth)[: len(place)]
    top = np.zeros((1, 1), np.int64)
    if layer is not None:
        top = layer.astype(np.int64).clip(0, there.shape[0] - 1)
    if place[0].dtype.kind == "f" and texture.linear:
        found = _mixed(texture, there, place, sizes, top)
    else:
        scaled = [_scaled(texture, x, n) for x, n in zip(place, sizes, strict=True)]
        found = _gathered(texture, there, [_whole(x) for x in scaled], sizes, top)
    missing = np.zeros(found.shape[:-1], found.dtype)
    return [found[..., i] if i < texels.channels else missing for i in range(4)]


def gather(texture: Texture, there: Array, place: Sequence[Array], channel: int) -> list[Array]:
    """``tld4``: one channel of the four texels that a linear filter would mix, against the clock from the
    corner with the lowest x and the highest y."""
    sizes = (texture.texels.width, texture.texels.height)
    x, y = (_whole(_scaled(texture, c, n) - np.float32(0.5)) for c, n in zip(place, sizes, strict=True))
    top = np.zeros((1, 1), np.int64)
    corners = ((x, y + 1), (x + 1, y + 1), (x + 1, y), (x, y))
    found = [_gathered(texture, there, corner, sizes, top) for corner in corners]
    if channel < texture.texels.channels:
        return [each[..., channel] for each in found]
    return [np.zeros(each.shape[:-1], each.dtype) for each in found]


def _mixed(texture: Texture, there: Array, place: Sequence[Array], sizes: Sequence[int], top: Array) -> Array:
    """The weighted mean of the nearest two texels along each axis, in 32-bit floats."""
    low, weights = [], []
    for x, n in zip(place, sizes, strict=True):
        shifted = _scaled(texture, x, n) - np.float32(0.5)
        below = np.floor(shifted)
        low.append(_whole(below))
        weights.append(
            np.floor((shifted - below) * np.float32(WEIGHT) + np.float32(0.5)) / np.float32(WEIGHT)
        )
    total: Array | None = None
    for corner in itertools.product((0, 1), repeat=len(place)):
        steps = corner[::-1]  # x counts fastest
        weight = np.ones((1, 1), np.float32)
        for step, w in zip(steps, weights, strict=True):
            weight = weight * (w if step else np.float32(1) - w)
        index = [at + step for at, step in zip(low, steps, strict=True)]
        part = weight[..., None] * _gathered(texture, there, index, sizes, top).astype(np.float32)
        total = part if total is None else total + part
    assert total is not None
    return total


def _scaled(texture: Texture, x: Array, size: int) -> Array:
    """A coordinate in texels."""
    if x.dtype.kind != "f":
        return x
    finite = np.nan_to_num(x, nan=0.0, posinf=FAR, neginf=-FAR)
    return finite * np.float32(size) if texture.normalized else finite


def _whole(x: Array) -> Array:
    """The number of the texel in which a coordinate lies."""
    return np.floor(x).clip(-FAR, FAR).astype(np.int64) if x.dtype.kind == "f" else x.astype(np.int64)


def _gathered(
    texture: Texture, there: Array, index: Sequence[Array], sizes: Sequence[int], top: Array
) -> Array:
    """The texels at whole numbers, which may lie outside: (…, channels)."""
    inside: list[Array] = []
    outside: Array = np.zeros((1, 1), bool)
    for at, size, mode in zip(index, sizes, texture.modes, strict=False):
        mode = Mode.BORDER if texture.texels.is_line else mode
        inside.append(_wrapped(at, size, mode if texture.normalized or mode is Mode.BORDER else Mode.CLAMP))
        if mode is Mode.BORDER:
            outside = outside | (at < 0) | (at >= size)
    x, y, z = (*inside, *[np.zeros((1, 1), np.int64)] * 2)[:3]
    found = there[z if len(index) == 3 else top, y, x]
    if texture.as_floats and found.dtype.kind != "f":
        top_value = np.float32(np.iinfo(found.dtype).max)
        found = np.maximum(found.astype(np.float32) / top_value, np.float32(-1))
    elif found.dtype == np.float16:
        found = found.astype(np.float32)
    if outside.any():
        border = np.array(texture.border[: texture.texels.channels]).astype(found.dtype)
        found = np.where(outside[..., None], border, found)
    return found


def _wrapped(at: Array, size: int, mode: Mode) -> Array:
    """A number of a texel from 0 to `size` − 1."""
    if mode is Mode.WRAP:
        return at % size
    if mode is Mode.MIRROR:
        turned = at % (2 * size)
        return np.minimum(turned, 2 * size - 1 - turned)
    return at.clip(0, size - 1)
