"""The Hadamard transform: a rotation that spreads an outlier evenly over its block."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def hadamard(x: Any, signs: Any = None) -> Array:
    """The orthonormal Walsh-Hadamard transform of `x` along its last axis, float64. It is its own inverse.

    For the *random* transform, `signs` (±1, as many as the last axis is long) are multiplied on first; its
    inverse is ``hadamard(y) * signs``. It takes n·log2 n additions instead of n². Raises ValueError unless
    the length is a power of two.

    >>> hadamard([1.0, 1.0, 1.0, 1.0]).tolist()
    [2.0, 0.0, 0.0, 0.0]
    """
    y = np.array(x, dtype=np.float64)
    n = y.shape[-1]
    if n < 1 or n & (n - 1):
        raise ValueError(f"the Hadamard transform takes a length that is a power of two, not {n}")
    if signs is not None:
        y *= np.asarray(signs)
    step = 1
    while step < n:
        pairs = y.reshape(*y.shape[:-1], n // (2 * step), 2, step)
        first, second = pairs[..., 0, :].copy(), pairs[..., 1, :].copy()
        pairs[..., 0, :], pairs[..., 1, :] = first + second, first - second
        step *= 2
    return y / np.sqrt(n)
