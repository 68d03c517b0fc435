"""Columns of operands: random bits, small values, and the edges of the type. Hypothesis draws only the
seed."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

N = 96
seeds = st.integers(0, 2**32 - 1)


def integers(generator: np.random.Generator, bits: int, signed: bool) -> list[int]:
    """N integers of a type."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    edges = [v for v in (low, low + 1, -1, 0, 1, 2, 31, 32, 33, 63, 64, high - 1, high) if low <= v <= high]
    anywhere = [int.from_bytes(generator.bytes(bits // 8), "little", signed=signed) for _ in range(N)]
    small = generator.integers(max(low, -300), min(high, 300), N)
    kind = generator.integers(0, 3, N)
    return [(anywhere[i], int(small[i]), edges[generator.integers(len(edges))])[kind[i]] for i in range(N)]


def floats(generator: np.random.Generator, dtype: str, finite: bool = False) -> np.ndarray:
    """N floats of a type, shape (N,)."""
    info = np.finfo(dtype)
    edges = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, info.smallest_subnormal, -info.smallest_subnormal]
    edges += [info.max, info.tiny, 1 + info.eps] + ([] if finite else [np.inf, -np.inf, np.nan])
    anywhere = np.frombuffer(generator.bytes(N * info.dtype.itemsize), dtype)
    near_one = (generator.standard_normal(N) * 4).astype(dtype)
    halves = (generator.integers(-40, 40, N) / 4).astype(dtype)
    choice = np.stack([anywhere, near_one, halves, generator.choice(np.array(edges, dtype), N)])
    values = choice[generator.integers(0, 4, N), np.arange(N)]
    return np.where(np.isfinite(values), values, 1).astype(dtype) if finite else values
