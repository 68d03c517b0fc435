"""Block formats: a few elements of few bits share one scale.

Sources: OCP Microscaling Formats (MX) Specification v1.0, 2023, section 6.3 (MXFP8, MXFP6, MXFP4);
NVIDIA, "Pretraining Large Language Models with NVFP4", 2025, arXiv:2509.25149 (NVFP4: E4M3 scales of 16
elements, one float32 for the tensor).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .codecs import Rounding, decode, encode
from .formats import Format, UnknownFormat, find
from .packing import pack

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class BlockFormat:
    """`size` elements of the format `element` share a scale of the format `scale`.

    `tensor_scale`: whether one float32 more scales the whole tensor.
    """

    name: str
    element: Format
    scale: Format
    size: int
    tensor_scale: bool = False

    @property
    def bits_per_element(self) -> float:
        """Bits of an element with its share of the block's scale; the tensor's scale left out."""
        return self.element.bits + self.scale.bits / self.size


BLOCK_FORMATS: dict[str, BlockFormat] = {
    b.name: b
    for b in (
        BlockFormat("MXFP8", find("E4M3"), find("E8M0"), 32),
        BlockFormat("MXFP8-E5M2", find("E5M2"), find("E8M0"), 32),
        BlockFormat("MXFP6", find("E2M3"), find("E8M0"), 32),
        BlockFormat("MXFP6-E3M2", find("E3M2"), find("E8M0"), 32),
        BlockFormat("MXFP4", find("E2M1"), find("E8M0"), 32),
        BlockFormat("NVFP4", find("E2M1"), find("E4M3"), 16, tensor_scale=True),
    )
}


@dataclass(frozen=True)
class Blocks:
    """A tensor in a block format.

    `codes` (…, blocks, size) are the elements' codes, `scales` (…, blocks) the scales' codes; `shape` is
    that of the tensor. Blocks lie along the last axis; a last one that is not full is filled up with
    zeros.
    """

    format: BlockFormat
    codes: Array
    scales: Array
    shape: tuple[int, ...]
    tensor_scale: float = 1.0

    def decode(self) -> Array:
        """The numbers, float32, of the tensor's shape."""
        scales = decode(self.scales, self.format.scale).astype(np.float64) * self.tensor_scale
        values = decode(self.codes, self.format.element) * scales[..., None]
        flat = values.reshape(*self.codes.shape[:-2], -1)[..., : self.shape[-1]]
        return flat.astype(np.float32).reshape(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the packed codes and the scales (and 4 for the tensor's scale)."""
        return (
            pack(self.codes, self.format.element.bits).nbytes
            + self.scales.nbytes
            + 4 * self.format.tensor_scale
        )


def encode_blocks(
    values: Any,
    format: str | BlockFormat,
    rounding: Rounding = "nearest",
    *,
    generator: np.random.Generator | None = None,
) -> Blocks:
    """The tensor `values` (…, n), float32, in the block format `format`; elements beyond the largest
    saturate.

    `rounding` and `generator` are those of `encode`. MX formats: a block's scale is 2^(⌊log2 max|v|⌋ − emax),
    where emax is the largest exponent of the element format. NVFP4: the tensor's scale brings the largest
    block scale to 448, and a block's scale brings its largest element to 6. A block of zeros gets the
    smallest scale (MX) or 0 (NVFP4). Raises UnknownFormat, and ValueError for infinities and NaN.

    >>> blocks = encode_blocks(np.ones(32, np.float32), "MXFP4")
    >>> blocks.nbytes, float(blocks.decode().max())
    (17, 1.0)
    """
    form = _find(format)
    numbers = np.asarray(values, dtype=np.float32)
    if not np.isfinite(numbers).all():
        raise ValueError(f"{form.name} has no infinity and no NaN among its elements; the tensor has")
    n = numbers.shape[-1]
    count = -(-n // form.size)
    padded = np.zeros((*numbers.shape[:-1], count * form.size), np.float64)
    padded[..., :n] = numbers
    blocks = padded.reshape(*numbers.shape[:-1], count, form.size)
    largest = np.abs(blocks).max(axis=-1, initial=0.0)
    tensor_scale = 1.0
    if form.tensor_scale:
        top = float(largest.max(initial=0.0))
        tensor_scale = float(np.float32(top / (form.element.largest * form.scale.largest))) or 1.0
        scales = encode(largest / form.element.largest / tensor_scale, form.scale, saturate=True)
    else:
        _, power = np.frexp(largest)
        emax = int(np.frexp(form.element.largest)[1]) - 1
        power = np.where(largest > 0, power - 1 - emax, -form.scale.bias)
        scales = (np.clip(power, -form.scale.bias, form.scale.bias) + form.scale.bias).astype(np.uint8)
    scale = decode(scales, form.scale).astype(np.float64) * tensor_scale
    scaled = np.divide(blocks, scale[..., None], out=np.zeros_like(blocks), where=scale[..., None] > 0)
    codes = encode(scaled, form.element, rounding, saturate=True, generator=generator)
    return Blocks(form, codes, scales, numbers.shape, tensor_scale)


def _find(name: str | BlockFormat) -> BlockFormat:
    if isinstance(name, BlockFormat):
        return name
    if str(name).upper() in BLOCK_FORMATS:
        return BLOCK_FORMATS[str(name).upper()]
    raise UnknownFormat(f"there is no block format {name!r}; there is {', '.join(BLOCK_FORMATS)}")
