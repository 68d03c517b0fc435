"""Matrix products, in numba."""

from __future__ import annotations

import numpy as np

from gpulab.frontends import cuda as cuda


@cuda.jit
def matmul_naive(a, b, c, n):
    x, y = cuda.grid(2)
    total = np.float32(0)
    for k in range(n):
        total += a[y * n + k] * b[k * n + x]
    c[y * n + x] = total


@cuda.jit
def matmul_tiled(a, b, c, n):
    left = cuda.shared.array((16, 16), np.float32)
    right = cuda.shared.array((16, 16), np.float32)
    i, j = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    total = np.float32(0)
    for start in range(0, n, 16):
        left[j, i] = a[y * n + start + i]
        right[j, i] = b[(start + j) * n + x]
        cuda.syncthreads()
        for k in range(16):
            total += left[j, k] * right[k, i]
        cuda.syncthreads()
    c[y * n + x] = total


@cuda.jit
def matmul_tiled_f64(a, b, c, n):
    left = cuda.shared.array((16, 16), np.float64)
    right = cuda.shared.array((16, 16), np.float64)
    i, j = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    total = 0.0
    for start in range(0, n, 16):
        left[j, i] = a[y * n + start + i]
        right[j, i] = b[(start + j) * n + x]
        cuda.syncthreads()
        for k in range(16):
            total += left[j, k] * right[k, i]
        cuda.syncthreads()
    c[y * n + x] = total
