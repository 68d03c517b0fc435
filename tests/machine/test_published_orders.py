"""Kernels that others have measured and published are put in their order of speed by the model, but for pairs that
docs/time_model.md names. What is compared is the order alone: the figures are of other GPUs, sizes and years, and
none was measured here."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from gpulab import cupy as cp
from gpulab.analysis.machine import modelled
from gpulab.simulator import hardware
from gpulab.simulator.hardware import Figure

# S. Boehm, How to Optimize a CUDA Matmul Kernel for cuBLAS-like Performance, 2022,
# siboehm.com/articles/22/CUDA-MMM: float32, 4,096², on an RTX A6000 (GA102, as the RTX 3090), GFLOP/s.
LADDER = {"scattered": 309.0, "coalesced": 1986.5, "tiled": 2980.3, "column": 8474.7, "square": 15971.7}
PRODUCTS = r"""
// Neighbouring threads take neighbouring rows.
extern "C" __global__ void scattered(const float* a, const float* b, float* c, int n) {
    int row = blockIdx.y * 32 + threadIdx.x % 32, column = blockIdx.x * 32 + threadIdx.x / 32;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}
// Neighbouring threads take neighbouring columns.
extern "C" __global__ void coalesced(const float* a, const float* b, float* c, int n) {
    int row = blockIdx.y * 32 + threadIdx.x / 32, column = blockIdx.x * 32 + threadIdx.x % 32;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}
extern "C" __global__ void tiled(const float* a, const float* b, float* c, int n) {
    __shared__ float left[32][32], right[32][32];
    int y = threadIdx.x / 32, x = threadIdx.x % 32, row = blockIdx.y * 32 + y, column = blockIdx.x * 32 + x;
    float sum = 0;
    for (int first = 0; first < n; first += 32) {
        left[y][x] = a[row * n + first + x];
        right[y][x] = b[(first + y) * n + column];
        __syncthreads();
        for (int k = 0; k < 32; ++k) sum += left[y][k] * right[k][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}
// A block of 64 × 64, a thread of 8 × 1.
extern "C" __global__ void column(const float* a, const float* b, float* c, int n) {
    __shared__ float left[64][8], right[8][64];
    int t = threadIdx.x, x = t % 64, y = t / 64;
    float sum[8] = {};
    for (int first = 0; first < n; first += 8) {
        left[t / 8][t % 8] = a[(blockIdx.y * 64 + t / 8) * n + first + t % 8];
        right[y][x] = b[(first + y) * n + blockIdx.x * 64 + x];
        __syncthreads();
        for (int k = 0; k < 8; ++k) {
            float factor = right[k][x];
            for (int i = 0; i < 8; ++i) sum[i] += left[y * 8 + i][k] * factor;
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; ++i) c[(blockIdx.y * 64 + y * 8 + i) * n + blockIdx.x * 64 + x] = sum[i];
}
// A block of 128 × 128, a thread of 8 × 8.
extern "C" __global__ void square(const float* a, const float* b, float* c, int n) {
    __shared__ float left[128][8], right[8][128];
    int t = threadIdx.x, x = t % 16, y = t / 16;
    float sum[8][8] = {};
    for (int first = 0; first < n; first += 8) {
        for (int i = t; i < 1024; i += 256) {
            left[i / 8][i % 8] = a[(blockIdx.y * 128 + i / 8) * n + first + i % 8];
            right[i / 128][i % 128] = b[(first + i / 128) * n + blockIdx.x * 128 + i % 128];
        }
        __syncthreads();
        for (int k = 0; k < 8; ++k) {
            float row[8], column[8];
            for (int i = 0; i < 8; ++i) { row[i] = left[y * 8 + i][k]; column[i] = right[k][x * 8 + i]; }
            for (int i = 0; i < 8; ++i)
                for (int j = 0; j < 8; ++j) sum[i][j] += row[i] * column[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j)
            c[(blockIdx.y * 128 + y * 8 + i) * n + blockIdx.x * 128 + x * 8 + j] = sum[i][j];
}"""
TILES = {
    "scattered": (32, 1024),
    "coalesced": (32, 1024),
    "tiled": (32, 1024),
    "column": (64, 512),
    "square": (128, 256),
}

# M. Harris, An Efficient Matrix Transpose in CUDA C/C++, NVIDIA, 2013,
# developer.nvidia.com/blog/efficient-matrix-transpose-cuda-cc: float32, 1,024², Tesla K20c, GB/s.
TRANSPOSES = {"naive": 55.3, "in_tiles": 97.6, "in_padded_tiles": 144.3}
PLANES = r"""
#define COLUMNS 32
#define ROWS 8
extern "C" __global__ void naive(const float* a, float* b, int n) {
    int x = blockIdx.x * COLUMNS + threadIdx.x, y = blockIdx.y * COLUMNS + threadIdx.y;
    for (int j = 0; j < COLUMNS; j += ROWS) b[x * n + y + j] = a[(y + j) * n + x];
}
template <int width> __device__ void through_shared(const float* a, float* b, int n) {
    __shared__ float tile[COLUMNS][width];
    int x = blockIdx.x * COLUMNS + threadIdx.x, y = blockIdx.y * COLUMNS + threadIdx.y;
    for (int j = 0; j < COLUMNS; j += ROWS) tile[threadIdx.y + j][threadIdx.x] = a[(y + j) * n + x];
    __syncthreads();
    x = blockIdx.y * COLUMNS + threadIdx.x, y = blockIdx.x * COLUMNS + threadIdx.y;
    for (int j = 0; j < COLUMNS; j += ROWS) b[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
extern "C" __global__ void in_tiles(const float* a, float* b, int n) { through_shared<32>(a, b, n); }
extern "C" __global__ void in_padded_tiles(const float* a, float* b, int n) { through_shared<33>(a, b, n); }
"""


def alone(result) -> float:
    """Seconds without the start of the launch."""
    return result.seconds - result.parts["launch"]


def in_another_order(seconds: dict[str, float], rates: dict[str, float]) -> set[tuple[str, str]]:
    """Pairs (slower, faster) of published rates that the model has the other way around."""
    pairs = [(slow, fast) for slow in rates for fast in rates if rates[slow] < rates[fast]]
    return {(slow, fast) for slow, fast in pairs if seconds[slow] <= seconds[fast]}


def with_sms(name: str, sms: int) -> hardware.GPU:
    """A GPU with fewer SMs and as much less bandwidth, so that small matrices fill it."""
    gpu = hardware.find(name)
    less = sms / int(gpu.sms)
    figure = gpu.dram_bandwidth
    return replace(
        gpu,
        sms=Figure(sms, "SMs", gpu.sms.source),
        dram_bandwidth=Figure(figure.value * less, figure.unit, figure.source),
    )


@pytest.mark.slow  # half a minute
def test_the_ladder_of_matrix_products_has_its_published_order():
    n, gpu, found = 512, with_sms("RTX 3090", 8), {}
    a = cp.ones(n * n, cp.float32)
    for name, (tile, threads) in TILES.items():
        kernel, grid, c = cp.RawKernel(PRODUCTS, name), (n // tile, n // tile), cp.zeros(n * n, cp.float32)
        run = partial(kernel, grid, (threads,), (a, a, c, n))
        found[name] = alone(modelled(run, gpu=gpu, sample=9))
    assert not in_another_order(found, LADDER)


@pytest.mark.parametrize("gpu", ["V100", "A100", "H100"])
def test_transposes_have_their_published_order(gpu):
    n = 1024
    a, found = cp.ones(n * n, cp.float32), {}
    for name in TRANSPOSES:
        kernel, grid, b = cp.RawKernel(PLANES, name), (n // 32, n // 32), cp.zeros(n * n, cp.float32)
        found[name] = alone(modelled(partial(kernel, grid, (32, 8), (a, b, n)), gpu=gpu, sample=72))
    assert not in_another_order(found, TRANSPOSES)


def test_the_kernels_of_the_ladder_compute_the_product():
    n = 128
    rng = np.random.default_rng(1)
    a, b = (rng.integers(0, 4, (n, n)).astype(np.float32) for _ in range(2))
    for name, (tile, threads) in TILES.items():
        c, given = cp.zeros((n, n), cp.float32), (cp.asarray(a), cp.asarray(b))
        cp.RawKernel(PRODUCTS, name)((n // tile, n // tile), (threads,), (*given, c, n))
        assert np.array_equal(c.get(), a @ b), name
