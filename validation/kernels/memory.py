"""Streams, strides, gathers, transposes, stencils and a chain of loads, in numba."""

from __future__ import annotations

import numpy as np

from gpulab.frontends import cuda as cuda


@cuda.jit
def copy(x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[i]


@cuda.jit
def saxpy(x, y, a, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = a * x[i] + y[i]


@cuda.jit
def triad(x, y, z, a, n):
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        z[i] = x[i] + a * y[i]


@cuda.jit
def bytes(x, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[i] ^ 0x5A


@cuda.jit
def strided(x, y, stride, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[i * stride]


@cuda.jit
def shifted(x, y, by, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[i + by]


@cuda.jit
def gather(x, places, y, n):
    i = cuda.grid(1)
    if i < n:
        y[i] = x[places[i]]


@cuda.jit
def transpose_naive(a, b, n):
    column = cuda.blockIdx.x * 32 + cuda.threadIdx.x
    top = cuda.blockIdx.y * 32
    for row in range(top + cuda.threadIdx.y, top + 32, 8):
        b[column * n + row] = a[row * n + column]


@cuda.jit
def transpose_tiled(a, b, n):
    tile = cuda.shared.array((32, 32), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = cuda.blockIdx.x * 32, cuda.blockIdx.y * 32
    for row in range(y, 32, 8):
        tile[row, x] = a[(top + row) * n + left + x]
    cuda.syncthreads()
    for row in range(y, 32, 8):
        b[(left + row) * n + top + x] = tile[x, row]


@cuda.jit
def transpose_padded(a, b, n):
    tile = cuda.shared.array((32, 33), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = cuda.blockIdx.x * 32, cuda.blockIdx.y * 32
    for row in range(y, 32, 8):
        tile[row, x] = a[(top + row) * n + left + x]
    cuda.syncthreads()
    for row in range(y, 32, 8):
        b[(left + row) * n + top + x] = tile[x, row]


@cuda.jit
def stencil_line(x, y, n):
    near = cuda.shared.array(264, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    near[t + 4] = x[i] if i < n else np.float32(0)
    if t < 4:
        near[t] = x[i - 4] if i >= 4 else np.float32(0)
        near[t + 260] = x[i + 256] if i + 256 < n else np.float32(0)
    cuda.syncthreads()
    total = np.float32(0)
    for k in range(9):
        total += near[t + k]
    if i < n:
        y[i] = total


@cuda.jit
def stencil_plane(a, b, n):
    x, y = cuda.grid(2)
    if 0 < x < n - 1 and 0 < y < n - 1:
        i = y * n + x
        b[i] = np.float32(0.25) * (a[i - 1] + a[i + 1] + a[i - n] + a[i + n])


@cuda.jit
def chase(following, end, steps):
    at = cuda.threadIdx.x
    for _ in range(steps):
        at = following[at]
    end[cuda.threadIdx.x] = at
