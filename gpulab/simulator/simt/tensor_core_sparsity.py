"""Sparse A of ``tcgen05.mma.sp``: metadata in Tensor Memory says which columns its stored elements have.

Four bits describe a chunk of a row, as in `sparse`. For 16- and 32-bit types a word describes two rows, 8
apart, and half of their columns; the other half is in the lane 8 further on. For 8-bit types the lane of
a row holds two words. CUTLASS lays metadata out this way (``tmem_e_frg``), for 128 rows of a block and no
fewer.
"""

from __future__ import annotations

import numpy as np

from .tensor_core_products import itemsize

Array = np.ndarray

ROWS = 128  # of a block
BITS_OF_CODE = 4
CODES = 32 // BITS_OF_CODE  # in a word


def selected(column: int, selector: int) -> int:
    """The first column of the metadata, of which the address names an even one and the selector which of the
    two."""
    return (column & ~1) + selector


def kept_columns(words: Array, type_: str, k: int) -> Array:
    """The columns of the full A that the stored elements have, (128, k / 2). `words` (128, 2) are the
    lanes of Tensor Memory from the metadata's column on."""
    size = itemsize(type_)
    row = np.arange(ROWS)[:, None]
    chunk = np.arange(k // (2 if size == 4 else 4))
    if size == 1:
        held, bit = words[row, chunk // CODES], chunk % CODES * BITS_OF_CODE
    else:
        lane = row % 8 + row // 16 * 16 + chunk // (CODES // 2) * 8
        held, bit = words[lane, 0], row // 8 % 2 * 16 + chunk % (CODES // 2) * BITS_OF_CODE
    code = held >> bit.astype(np.uint32) & np.uint32(15)
    if size == 4:  # one of two, named by its halves
        return chunk * 2 + (code & 3) // 2
    pair = chunk[:, None] * 4 + np.stack([code & 3, code >> 2], axis=-1)
    return pair.reshape(ROWS, -1)
