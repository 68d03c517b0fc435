"""How Hopper lays tiles out in shared memory: swizzles, and the canonical layouts of wgmma's operands.

A swizzle exchanges the 16-byte chunks of a row so that the same column of eight rows falls into different
banks. It is a function of the byte address alone: the number of the chunk within its span is XORed with the
number of the 128-byte line (PTX ISA, "Swizzling modes"). All functions take and return arrays of offsets.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray

CHUNK = 16  # bytes that a swizzle moves as one piece
LINE = 128  # bytes of shared memory behind which the pattern changes: all 32 banks
ROWS = 8  # of a core matrix, each one chunk wide
# Bytes within which chunks change places. A span of one chunk leaves everything where it is.
NO_SWIZZLE = CHUNK
SPANS = (NO_SWIZZLE, 32, 64, 128)


def pattern_bytes(span: int) -> int:
    """Bytes after which the pattern of a swizzle repeats: 256, 512 and 1024; 128 without a swizzle."""
    return span * ROWS


def swizzled(offset: Array, span: int, start: int = 0, atom: int = CHUNK, flips: bool = False) -> Array:
    """Where the bytes at `offset` lie in swizzled shared memory. Applied twice, it leads back.

    `offset` and the result count bytes from the beginning of shared memory. `span` is one of `SPANS`; the
    pattern begins at `start`, a multiple of 128. Blackwell also moves pieces of 32 or 64 bytes as one
    (`atom`), and with `flips` exchanges the halves of each 16 bytes in every second line.

    >>> swizzled(np.array([0, 128, 256, 272]), 128)
    array([  0, 144, 288, 304])
    """
    line = (offset - start) // LINE
    moved = offset ^ ((line % max(span // atom, 1)) * atom)
    return moved ^ line % 2 * (CHUNK // 2) if flips else moved


def canonical_offsets(
    mn: Array,
    k: Array,
    itemsize: int,
    span: int,
    k_major: bool,
    leading: int,
    stride: int,
    rows: int = ROWS,
) -> Array:
    """Byte offsets of elements (mn, k) of an operand from its start, before the swizzle.

    `mn` is the row of A or the column of B. `leading` and `stride` are the two offsets of the matrix
    descriptor, in bytes. Which direction each of them leads depends on the layout:

    ========  ===========  ==================================  ==================================
    major     swizzle      leading                             stride
    ========  ===========  ==================================  ==================================
    K         none         to the next 16 bytes along k        to the next 8 rows (or columns)
    K         32 to 128    not used                            to the next 8 rows (or columns)
    MN        none         to the next 8 along k               to the next 16 bytes along mn
    MN        32 to 128    to the next span of bytes along mn  to the next 8 along k
    ========  ===========  ==================================  ==================================

    Where a swizzle moves pieces of 32 bytes, its pattern has 4 `rows` in place of 8.
    """
    # Without a swizzle the two offsets of an MN-major operand change their roles.
    exchanged = not k_major and span == NO_SWIZZLE
    next_span, next_rows = (stride, leading) if exchanged else (leading, stride)
    along, across = (k, mn) if k_major else (mn, k)
    chunk, byte = np.divmod(along * itemsize, CHUNK)
    group, row = np.divmod(across, rows)
    beyond, within = np.divmod(chunk, span // CHUNK)
    return group * next_rows + row * span + beyond * next_span + within * CHUNK + byte
