"""`cupyx.jit`: kernels in Python, translated by CuPy and run here, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import gpulab
from gpulab import cupy, cupyx

pytest.importorskip("cupyx")
jit = cupyx.jit


@jit.rawkernel()
def column_sums(x, out):
    column = jit.grid(1)
    total = cupy.float32(0)
    if column < x.shape[1]:
        for row in range(x.shape[0]):
            total += x[row, column]
        out[column] = total


@jit.rawkernel()
def block_sums(x, out, n):
    tile = jit.shared_memory(cupy.float32, 128)
    t = jit.threadIdx.x
    i = jit.blockIdx.x * jit.blockDim.x + t
    tile[t] = x[i] if i < n else cupy.float32(0)
    jit.syncthreads()
    step = jit.blockDim.x // 2
    while step > 0:
        if t < step:
            tile[t] += tile[t + step]
        jit.syncthreads()
        step = step // 2
    if t == 0:
        jit.atomic_add(out, 0, tile[0])


@jit.rawkernel(device=True)
def blend(a, b, weight):
    return a * weight + b * (1 - weight)


@jit.rawkernel()
def mix(a, b, out):
    for i in range(jit.grid(1), a.size, jit.gridsize(1)):
        out[i] = cupy.sqrt(blend(a[i], b[i], 0.25))


@jit.rawkernel()
def rotate(x, out):
    i = jit.threadIdx.x
    out[i] = jit.shfl_sync(0xFFFFFFFF, x[i], (i + 1) % 32)


@jit.rawkernel()
def beyond(x):
    x[jit.threadIdx.x + 1] = 1


def test_an_array_of_two_axes_is_indexed_and_asked_for_its_shape():
    x = np.random.default_rng(1).random((7, 50), np.float32)
    for given in (cupy.asarray(x), cupy.asarray(np.ascontiguousarray(x.T)).T):
        out = cupy.zeros(50, cupy.float32)
        column_sums((2,), (32,), (given, out))
        np.testing.assert_allclose(out.get(), x.sum(0), rtol=1e-6)


def test_shared_memory_barriers_and_atomics():
    x = np.random.default_rng(2).integers(0, 100, 1000).astype(np.float32)
    out = cupy.zeros(1, cupy.float32)
    block_sums[8, 128](cupy.asarray(x), out, 1000)
    assert out.get()[0] == x.sum()


def test_device_functions_ufuncs_and_loops_with_a_stride():
    a, b = np.random.default_rng(3).random((2, 777))
    out = cupy.zeros(777)
    mix((3,), (64,), (cupy.asarray(a), cupy.asarray(b), out))
    np.testing.assert_allclose(out.get(), np.sqrt(a * 0.25 + b * 0.75), rtol=1e-7)
    half = cupy.zeros(777, cupy.float16)
    mix((3,), (64,), (cupy.asarray(a), cupy.asarray(b), half))
    np.testing.assert_array_equal(half.get(), out.get().astype(np.float16))


def test_lanes_of_a_warp_pass_values_to_each_other():
    x = cupy.arange(32)
    out = cupy.zeros_like(x)
    rotate((1,), (32,), (x, out))
    np.testing.assert_array_equal(out.get(), np.roll(x.get(), -1))


def test_a_kernel_is_counted_and_an_index_out_of_bounds_names_the_array():
    x = cupy.zeros(32, cupy.int32)
    with pytest.raises(gpulab.simulator.simt.OutOfBounds, match=r"wrote x\[32\]; x has 32 elements"):
        beyond((1,), (32,), (x,))
    with pytest.raises(TypeError, match="takes numbers and device arrays: copy others with"):
        beyond((1,), (32,), (np.zeros(32),))
