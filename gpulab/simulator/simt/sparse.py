"""Sparse matrices of the tensor cores: of every four columns of A two are stored, of tf32 one of every two.

Registers of metadata say which ones, four bits for each such chunk of a row (PTX ISA, "Sparse matrix
storage"). Each of the four threads that share a row of the fragments holds some of them.
"""

from __future__ import annotations

import numpy as np

from .matrix import ELEMENTS

Array = np.ndarray

ROWS = 16  # of a warp
BITS_OF_CODE = 4


def _chunks(bits: int, stored: int) -> int:
    """Chunks of a row: a chunk of tf32 has one stored element, all others two."""
    return stored if bits == 32 else stored // 2


def _holders(bits: int, stored: int) -> int:
    """How many threads hold the metadata of a row and of the one that is eight further down."""
    rows = 2 if bits > 8 else 1  # of which a register tells
    return max(1, _chunks(bits, stored) * BITS_OF_CODE * rows // 32) * (2 if bits == 8 else 1)


def selectors(bits: int, stored: int) -> int:
    """How many values a sparsity selector has, for rows of `stored` elements: whose metadata counts.

    >>> selectors(16, 8), selectors(16, 16), selectors(8, 32)
    (4, 2, 1)
    """
    return 4 // _holders(bits, stored)


def kept_columns(metadata: Array, type_: str, rows: int, stored: int, selector: int = 0) -> Array:
    """Which columns of the full A the stored elements of a sparse one have, shape (…, rows, stored).

    `metadata` (…, threads) is each thread's register, of one warp for every 16 rows. The selector says which
    of the four threads of a row hold its bits.
    """
    row, bits = np.arange(rows)[:, None], ELEMENTS[type_].bits
    lower_half = row % ROWS // 8
    chunk = np.arange(_chunks(bits, stored))
    first_holder = selector * _holders(bits, stored)
    if bits == 8:
        holder, first = first_holder + lower_half + chunk // 8 * 2, chunk % 8 * BITS_OF_CODE
    else:
        holder, first = first_holder + chunk // 4, lower_half * 16 + chunk % 4 * BITS_OF_CODE
    thread = row // ROWS * 32 + row % 8 * 4 + holder
    code = metadata[..., thread].view(np.uint32) >> first & 15
    if bits == 32:  # one of two, named by the halves of it: 0 and 1, or 2 and 3
        return chunk * 2 + (code & 3) // 2
    pair = chunk[:, None] * 4 + np.stack([code & 3, code >> 2], axis=-1)
    return pair.reshape(*pair.shape[:-2], -1)


def spread(a: Array, columns: Array) -> Array:
    """The full A (…, m, k) of a sparse one: stored elements (…, m, k / 2) and their `kept_columns`."""
    full = np.zeros((*columns.shape[:-1], 2 * columns.shape[-1]), a.dtype)
    np.put_along_axis(full, columns, np.broadcast_to(a, columns.shape), axis=-1)
    return full
