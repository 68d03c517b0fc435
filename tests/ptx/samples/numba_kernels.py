"""Kernels for numba, in KERNELS with the types of their arguments: compiled by make_samples.py, never run."""

from __future__ import annotations

import math

import numpy as np
from numba import cuda, float32, float64, int32, int64, uint8, uint32

TABLE = np.arange(24, dtype=np.float32).reshape(4, 6)
TILE = 8


@cuda.jit(device=True, inline="never")
def clamp(value, low, high):
    return min(max(value, low), high)


@cuda.jit(device=True, inline="never")
def divide(number, by):
    return number // by, number % by


def scale(out, x, a):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = a * x[i] + out[i]


def matrix_product(c, a, b):
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    column, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for start in range(0, a.shape[1], TILE):
        left[y, x] = a[row, start + x] if row < a.shape[0] and start + x < a.shape[1] else float32(0)
        right[y, x] = b[start + y, column] if column < b.shape[1] and start + y < b.shape[0] else float32(0)
        cuda.syncthreads()
        for k in range(TILE):
            total += left[y, k] * right[k, x]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


def warp_sum(out, x):
    i = cuda.grid(1)
    value = x[i] if i < x.size else 0
    step = 16
    while step:
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
        step //= 2
    if cuda.laneid == 0:
        cuda.atomic.add(out, 0, value)


def histogram(bins, data):
    own = cuda.shared.array(256, int32)
    own[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), data.size, cuda.gridsize(1)):
        cuda.atomic.add(own, data[i], 1)
    cuda.syncthreads()
    cuda.atomic.add(bins, cuda.threadIdx.x, own[cuda.threadIdx.x])


def largest(out, x):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.max(out, 0, x[i])


def clamped(out, x, low, high):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = clamp(x[i], low, high)


def coordinates(rows, columns, index, width):
    i = cuda.grid(1)
    if i < index.size:
        rows[i], columns[i] = divide(index[i], width)


def mandelbrot(image, limit):
    x, y = cuda.grid(2)
    if x >= image.shape[1] or y >= image.shape[0]:
        return
    c = complex(-2.0 + 3.0 * x / image.shape[1], -1.0 + 2.0 * y / image.shape[0])
    z = 0j
    for step in range(limit):
        z = z * z + c
        if z.real * z.real + z.imag * z.imag > 4.0:
            image[y, x] = step
            break
    else:
        image[y, x] = limit


def median_of_five(out, x):
    i = cuda.grid(1)
    window = cuda.local.array(5, float64)
    if i + 5 > x.size:
        return
    for k in range(5):
        window[k] = x[i + k]
    for end in range(4, 0, -1):
        for k in range(end):
            if window[k] > window[k + 1]:
                window[k], window[k + 1] = window[k + 1], window[k]
    out[i] = window[2]


def looked_up(out, x):
    table = cuda.const.array_like(TABLE)
    i = cuda.grid(1)
    if i < x.size:
        out[i] = table[x[i] % 4, x[i] % 6]


def told(x):
    i = cuda.grid(1)
    if i < x.size and x[i] < 0:
        print("negative", i, x[i])


def votes(out, x):
    i = cuda.grid(1)
    holds = x[i] > 0
    mask = cuda.ballot_sync(0xFFFFFFFF, holds)
    if cuda.all_sync(0xFFFFFFFF, holds):
        mask |= cuda.match_any_sync(0xFFFFFFFF, x[i])
    out[i] = cuda.popc(mask) + cuda.ffs(mask) + cuda.activemask()


def reversed_block(x):
    tile = cuda.shared.array(0, float32)
    i = cuda.grid(1)
    tile[cuda.threadIdx.x] = x[i]
    cuda.syncthreads()
    x[i] = tile[cuda.blockDim.x - 1 - cuda.threadIdx.x]


def waves(out, x):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = math.sin(x[i]) + math.exp(x[i]) / math.sqrt(x[i])


VECTOR = float32[::1]
MATRIX = float32[:, ::1]

KERNELS = {
    scale: (VECTOR, VECTOR, float32),
    matrix_product: (MATRIX, MATRIX, MATRIX),
    warp_sum: (int32[::1], int32[::1]),
    histogram: (int32[::1], uint8[::1]),
    largest: (float64[::1], float64[::1]),
    clamped: (float32[:], float32[:], float32, float32),
    coordinates: (int64[::1], int64[::1], int64[::1], int64),
    mandelbrot: (uint8[:, ::1], int32),
    median_of_five: (float64[::1], float64[::1]),
    looked_up: (VECTOR, int32[::1]),
    told: (int64[::1],),
    votes: (uint32[::1], int32[::1]),
    reversed_block: (VECTOR,),
    waves: (VECTOR, VECTOR),
}
