"""Arguments of the corpus' kernels: small arrays, the same in every run."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpulab import cuda

Array = np.ndarray


def ramp(n: int, dtype: Any = np.float32) -> Array:
    """1, 2, 3 …: no two elements are equal, and sums of them are exact."""
    return np.arange(1, n + 1, dtype=dtype)


def ramp2(rows: int, columns: int) -> Array:
    return ramp(rows * columns).reshape(rows, columns)


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


def bins(n: int, count: int = 8) -> Array:
    """Bin numbers, neighbours often in the same one."""
    return (np.arange(n) // 3 % count).astype(np.int32)


def fresh(*shape: int, dtype: Any = np.float32) -> Any:
    """A device array that nobody has filled."""
    return cuda.device_array(shape, dtype)


def uneven(n: int) -> Array:
    """Floats whose sum rounds differently in every order."""
    scale = np.float32(1000) ** (np.arange(n) % 3 - 1)
    return (np.random.default_rng(7).normal(size=n) * scale).astype(np.float32)


def views(n: int) -> tuple[Any, Any]:
    """The same device memory as n float32 from its first byte on, and from its second one."""
    octets = cuda.to_device(np.zeros(4 * n + 4, np.uint8))
    even, odd = (octets[start : start + 4 * n].view(np.float32) for start in (0, 1))
    return even, odd
