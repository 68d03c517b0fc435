"""Chains of dependent operations and branches that diverge, in numba."""

from __future__ import annotations

import numpy as np

from gpulab.frontends import cuda as cuda


@cuda.jit
def chain_f32(x, y, a, rounds):
    i = cuda.grid(1)
    v = x[i]
    for _ in range(rounds):
        v = v * a + np.float32(1)
    y[i] = v


@cuda.jit
def chain_f64(x, y, a, rounds):
    i = cuda.grid(1)
    v = x[i]
    for _ in range(rounds):
        v = v * a + 1.0
    y[i] = v


@cuda.jit
def chain_divide(x, y, a, rounds):
    i = cuda.grid(1)
    v = x[i]
    for _ in range(rounds):
        v = a / (v + np.float32(1))
    y[i] = v


@cuda.jit
def chain_shuffle(x, y, rounds):
    i = cuda.grid(1)
    v = x[i]
    for _ in range(rounds):
        v = cuda.shfl_sync(0xFFFFFFFF, v, (cuda.threadIdx.x + v) % 32)
    y[i] = v


@cuda.jit
def diverge(x, y, ways, rounds):
    i = cuda.grid(1)
    v = x[i]
    for way in range(ways):
        if cuda.threadIdx.x % ways == way:
            for _ in range(rounds):
                v = v * np.float32(0.5) + np.float32(way)
    y[i] = v


@cuda.jit
def uneven(lengths, y):
    i = cuda.grid(1)
    v = np.int32(1)
    for k in range(lengths[i]):
        v = np.int32(v * 3 + k)
    y[i] = v
