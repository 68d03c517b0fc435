"""Bank conflicts, a chain through shared memory and barriers, in numba."""

from __future__ import annotations

import numpy as np

from gpulab.frontends import cuda as cuda


@cuda.jit
def banks_4(y, stride, rounds):
    words = cuda.shared.array(2048, np.float32)
    t = cuda.threadIdx.x
    for i in range(t, 2048, cuda.blockDim.x):
        words[i] = 0
    cuda.syncthreads()
    for k in range(rounds):
        words[(t * stride + k) % 2048] += np.float32(1)
        cuda.syncthreads()
    total = np.float32(0)
    for i in range(t, 2048, cuda.blockDim.x):
        total += words[i]
    y[cuda.grid(1)] = total


@cuda.jit
def banks_8(y, stride, rounds):
    words = cuda.shared.array(2048, np.float64)
    t = cuda.threadIdx.x
    for i in range(t, 2048, cuda.blockDim.x):
        words[i] = 0
    cuda.syncthreads()
    for k in range(rounds):
        words[(t * stride + k) % 2048] += 1.0
        cuda.syncthreads()
    total = 0.0
    for i in range(t, 2048, cuda.blockDim.x):
        total += words[i]
    y[cuda.grid(1)] = total


@cuda.jit
def shared_chase(following, end, steps):
    jumps = cuda.shared.array(1024, np.int32)
    for i in range(cuda.threadIdx.x, 1024, cuda.blockDim.x):
        jumps[i] = following[i]
    cuda.syncthreads()
    at = cuda.threadIdx.x
    for _ in range(steps):
        at = jumps[at]
    end[cuda.grid(1)] = at


@cuda.jit
def barriers(x, y, rounds):
    ring = cuda.shared.array((2, 256), np.float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    ring[0, t] = x[i]
    for k in range(rounds):
        cuda.syncthreads()
        ring[(k + 1) % 2, t] = ring[k % 2, (t + 1) % 256]
    y[i] = ring[rounds % 2, t]
