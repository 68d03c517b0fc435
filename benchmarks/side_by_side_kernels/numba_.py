"""The kernels in numba."""

import math

import numpy as np
from numba import float32

from gpulab import cuda


@cuda.jit
def add_kernel(a, b, c):
    i = cuda.grid(1)
    if i < c.size:
        c[i] = a[i] + b[i]


def add(a, b, c):
    add_kernel[-(-c.size // 256), 256](a, b, c)


@cuda.jit
def transpose_kernel(x, y):
    tile = cuda.shared.array((32, 33), float32)
    i, j = cuda.threadIdx.x, cuda.threadIdx.y
    row, column = cuda.blockIdx.y * 32, cuda.blockIdx.x * 32
    for k in range(0, 32, 8):
        tile[j + k, i] = x[row + j + k, column + i]
    cuda.syncthreads()
    for k in range(0, 32, 8):
        y[column + j + k, row + i] = tile[i, j + k]


def transpose(x, y):
    transpose_kernel[(x.shape[1] // 32, x.shape[0] // 32), (32, 8)](x, y)


@cuda.jit
def softmax_kernel(x, y):
    """A warp for each row."""
    row, lane, n = cuda.blockIdx.x, cuda.threadIdx.x, x.shape[1]
    top = float32(-np.inf)
    for i in range(lane, n, 32):
        top = max(top, x[row, i])
    for step in (16, 8, 4, 2, 1):
        top = max(top, cuda.shfl_xor_sync(0xFFFFFFFF, top, step))
    total = float32(0)
    for i in range(lane, n, 32):
        total += math.exp(x[row, i] - top)
    for step in (16, 8, 4, 2, 1):
        total += cuda.shfl_xor_sync(0xFFFFFFFF, total, step)
    for i in range(lane, n, 32):
        y[row, i] = math.exp(x[row, i] - top) / total


def softmax(x, y):
    softmax_kernel[x.shape[0], 32](x, y)


@cuda.jit
def attention_kernel(q, k, v, out):
    """A warp for each row: a lane has the elements `lane` and `lane + 32` of 64."""
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    q0, q1 = float32(q[row, lane]), float32(q[row, lane + 32])
    top, total, mixed0, mixed1 = float32(-np.inf), float32(0), float32(0), float32(0)
    for j in range(k.shape[0]):
        score = q0 * float32(k[j, lane]) + q1 * float32(k[j, lane + 32])
        for step in (16, 8, 4, 2, 1):
            score += cuda.shfl_xor_sync(0xFFFFFFFF, score, step)
        new_top = max(top, score * float32(0.125))
        weight, shrink = math.exp(score * float32(0.125) - new_top), math.exp(top - new_top)
        total = total * shrink + weight
        mixed0 = mixed0 * shrink + weight * float32(v[j, lane])
        mixed1 = mixed1 * shrink + weight * float32(v[j, lane + 32])
        top = new_top
    out[row, lane] = mixed0 / total
    out[row, lane + 32] = mixed1 / total


def attention(q, k, v, out):
    attention_kernel[q.shape[0], 32](q, k, v, out)
