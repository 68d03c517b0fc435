"""Codes of less than a byte, side by side in bytes as memory holds them."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def pack(codes: Any, bits: int) -> Array:
    """Codes of 1 to 8 bits (last axis n) as bytes (last axis ⌈n·bits/8⌉), the first code in the lowest bits.

    Two 4-bit codes fill a byte, four 6-bit codes three. Raises ValueError for other widths and for codes that
    are too large.

    >>> pack([1, 2, 3], bits=4).tolist()
    [33, 3]
    """
    given = np.asarray(codes)
    if not 1 <= bits <= 8:
        raise ValueError(f"codes of 1 to 8 bits can be packed, not of {bits}")
    if given.size and int(given.max()) >> bits:
        raise ValueError(f"{int(given.max())} has more than {bits} bits")
    if bits == 4 and given.shape[-1] % 2 == 0:
        return (given[..., ::2] | (given[..., 1::2] << 4)).astype(np.uint8)
    single = np.unpackbits(given.astype(np.uint8)[..., None], axis=-1, count=bits, bitorder="little")
    return np.packbits(single.reshape(*given.shape[:-1], -1), axis=-1, bitorder="little")


def unpack(packed: Any, bits: int, count: int) -> Array:
    """The first `count` codes of `bits` bits along the last axis of `packed`: the inverse of `pack`.

    >>> unpack(pack([1, 2, 3], bits=4), bits=4, count=3).tolist()
    [1, 2, 3]
    """
    data = np.asarray(packed, dtype=np.uint8)
    if bits == 4:
        both = np.stack([data & 15, data >> 4], axis=-1)
        return both.reshape(*data.shape[:-1], -1)[..., :count]
    single = np.unpackbits(data, axis=-1, count=count * bits, bitorder="little")
    return np.packbits(single.reshape(*data.shape[:-1], count, bits), axis=-1, bitorder="little")[..., 0]
