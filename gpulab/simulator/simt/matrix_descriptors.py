"""The 64-bit descriptor by which ``wgmma`` finds an operand in shared memory, and where its elements are.

Bits 0 to 13 hold the start address, 16 to 29 the leading and 32 to 45 the stride byte offset, each in units
of 16 bytes; 49 to 51 hold the base offset and 62 to 63 the swizzle (PTX ISA, "Matrix-descriptor format").
All other bits are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from .swizzles import CHUNK, LINE, NO_SWIZZLE, ROWS, SPANS, canonical_offsets, swizzled

Array = np.ndarray

FIELD = (1 << 14) - 1
LIMIT = (FIELD + 1) * CHUNK  # bytes that a field of 14 bits reaches: 256 KB
LEADING, STRIDE, BASE, MODE = 16, 32, 49, 62  # first bits of the fields
SPAN_OF_MODE = (NO_SWIZZLE, 128, 64, 32)


@dataclass(frozen=True)
class MatrixDescriptor:
    """What a descriptor says. `start` is an offset into shared memory; `start`, `leading` and `stride` are
    bytes. `base` is the number of the 128-byte line, counted from a multiple of 1024 bytes, at which the
    swizzle's pattern begins; `span` is its width in bytes (16: no swizzle), and `atom` the bytes that it
    moves as one piece."""

    start: int
    leading: int
    stride: int
    base: int = 0
    span: int = NO_SWIZZLE
    atom: int = CHUNK


def decode(word: int) -> MatrixDescriptor:
    """The fields of a descriptor, given as an integer of 64 bits, signed or not."""

    def field(first: int) -> int:
        return (word >> first & FIELD) * CHUNK

    return MatrixDescriptor(
        field(0), field(LEADING), field(STRIDE), word >> BASE & 7, SPAN_OF_MODE[word >> MODE & 3]
    )


def encode(descriptor: MatrixDescriptor) -> int:
    """The descriptor as an unsigned integer of 64 bits.

    Raises ValueError for a field that the descriptor cannot hold.
    """
    words = 0
    for name, first in (("start", 0), ("leading", LEADING), ("stride", STRIDE)):
        value = getattr(descriptor, name)
        what = "start address" if name == "start" else f"{name} byte offset"
        if value % CHUNK:
            raise ValueError(f"The {what} of a matrix descriptor must be a multiple of 16, but is {value}.")
        if not 0 <= value < LIMIT:
            raise ValueError(
                f"The {what} of a matrix descriptor must be at least 0 and less than {LIMIT:,}, "
                f"but is {value:,}."
            )
        words |= value // CHUNK << first
    if not 0 <= descriptor.base <= 7:
        raise ValueError(f"The base offset of a matrix descriptor must be 0 to 7, but is {descriptor.base}.")
    if descriptor.span not in SPANS:
        raise ValueError(
            f"A matrix descriptor knows swizzles of 32, 64 and 128 bytes and none (16), "
            f"but not of {descriptor.span}."
        )
    return words | descriptor.base << BASE | SPAN_OF_MODE.index(descriptor.span) << MODE


def element_addresses(
    descriptor: MatrixDescriptor,
    mn: int,
    k: int,
    itemsize: int,
    k_major: bool = True,
    start: Array | None = None,
) -> Array:
    """Offsets into shared memory of the elements of an operand, shape (mn, k): rows of A or columns of B.

    `start`, of any shape S, replaces the descriptor's start address where several warpgroups differ in
    nothing else; the result then has the shape (*S, mn, k).

    Raises ValueError where no such operand exists: an MN-major one whose elements are not of 2 bytes, or a
    K-major one whose rows are wider than the swizzle.

    >>> element_addresses(MatrixDescriptor(0, 0, 1024, span=128), 64, 16, 2)[1, :9]
    array([144, 146, 148, 150, 152, 154, 156, 158, 128])
    """
    if not k_major and itemsize != 2:
        raise ValueError(
            "wgmma transposes only operands with elements of 2 bytes (f16, bf16), "
            f"but an MN-major operand has elements of {itemsize} byte{'s' if itemsize > 1 else ''}."
        )
    return operand_addresses(descriptor, mn, k, itemsize, k_major, start)


def operand_addresses(
    descriptor: MatrixDescriptor, mn: int, k: int, itemsize: int, k_major: bool, start: Array | None = None
) -> Array:
    """As `element_addresses`, for tensor cores that transpose elements of every size.

    Raises ValueError for a K-major operand whose rows are wider than the swizzle, or that is swizzled in
    pieces of more than 16 bytes.
    """
    atom = descriptor.atom
    if k_major and atom > CHUNK:
        raise ValueError(
            f"Only MN-major operands are swizzled in pieces of {atom} bytes, but this is K-major."
        )
    layout = _layout(descriptor.leading, descriptor.stride, descriptor.span, mn, k, itemsize, k_major, atom)
    first = np.asarray(descriptor.start if start is None else start, np.int64)
    return swizzled(first[..., None, None] + layout, descriptor.span, descriptor.base * LINE, atom)


@cache
def _layout(
    leading: int, stride: int, span: int, mn: int, k: int, itemsize: int, k_major: bool, atom: int
) -> Array:
    if k_major and NO_SWIZZLE < span < k * itemsize:
        raise ValueError(
            f"A row of a K-major operand must fit the swizzle of {span} bytes, "
            f"but {k} elements of {itemsize} bytes take {k * itemsize}."
        )
    rows, columns = np.arange(mn, dtype=np.int64)[:, None], np.arange(k, dtype=np.int64)
    repeats = ROWS * CHUNK // atom
    return canonical_offsets(rows, columns, itemsize, span, k_major, leading, stride, repeats)
