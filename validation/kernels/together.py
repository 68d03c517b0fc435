"""Reductions, scans, histograms and softmax, in numba."""

from __future__ import annotations

import math

import numpy as np

from gpulab.frontends import cuda as cuda

ALL = 0xFFFFFFFF


@cuda.jit
def sum_tree(x, y):
    s = cuda.shared.array(256, np.float32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    reach = 128
    while reach > 0:
        cuda.syncthreads()
        if t < reach:
            s[t] += s[t + reach]
        reach //= 2
    if t == 0:
        y[cuda.blockIdx.x] = s[0]


@cuda.jit
def sum_shuffles(x, y, n):
    of_warps = cuda.shared.array(32, np.float32)
    t = cuda.threadIdx.x
    total = np.float32(0)
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        total += x[i]
    reach = 16
    while reach > 0:
        total += cuda.shfl_xor_sync(ALL, total, reach)
        reach //= 2
    if t % 32 == 0:
        of_warps[t // 32] = total
    cuda.syncthreads()
    if t < 32:
        total = of_warps[t] if t < cuda.blockDim.x // 32 else np.float32(0)
        reach = 16
        while reach > 0:
            total += cuda.shfl_xor_sync(ALL, total, reach)
            reach //= 2
        if t == 0:
            y[cuda.blockIdx.x] = total


@cuda.jit
def sum_atomic(x, y, n):
    i = cuda.grid(1)
    if i < n:
        cuda.atomic.add(y, i % 64, x[i])


@cuda.jit
def scan_block(x, y):
    s = cuda.shared.array((2, 256), np.float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    now, reach = 0, 1
    s[0, t] = x[i]
    while reach < 256:
        cuda.syncthreads()
        s[1 - now, t] = s[now, t] + (s[now, t - reach] if t >= reach else np.float32(0))
        now = 1 - now
        reach *= 2
    y[i] = s[now, t]


@cuda.jit
def histogram_global(x, counts, n):
    i = cuda.grid(1)
    if i < n:
        cuda.atomic.add(counts, x[i], 1)


@cuda.jit
def histogram_shared(x, counts, n):
    mine = cuda.shared.array(256, np.int32)
    t = cuda.threadIdx.x
    mine[t] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        cuda.atomic.add(mine, x[i], 1)
    cuda.syncthreads()
    cuda.atomic.add(counts, t, mine[t])


@cuda.jit
def softmax_of_warps(x, y):
    i = cuda.grid(1)
    v = x[i]
    most = v
    reach = 16
    while reach > 0:
        most = max(most, cuda.shfl_xor_sync(ALL, most, reach))
        reach //= 2
    v = math.exp(v - most)
    total = v
    reach = 16
    while reach > 0:
        total += cuda.shfl_xor_sync(ALL, total, reach)
        reach //= 2
    y[i] = v / total
