"""Accesses outside arrays, misaligned, or through nothing."""

from __future__ import annotations

import numpy as np
from numba import float32, int32

from gpulab import cuda

from ..pairs import Corpus
from .data import ramp, ramp2, views, zeros

PAIRS = Corpus()
pair = PAIRS.pair


@pair("memory", lambda: (ramp(100), zeros(100)), grid=2, says="x[100]")
def the_last_block_has_no_guard(mended):
    @cuda.jit
    def double(x, y):
        i = cuda.grid(1)
        if i < x.size or not mended:
            y[i] = 2 * x[i]  # here

    return double


@pair("memory", lambda: (ramp(128), zeros(128)), grid=2, says="x[128]")
def a_stencil_reaches_one_too_far(mended):
    @cuda.jit
    def smooth(x, y):
        i = cuda.grid(1)
        if 0 < i < (x.size - 1 if mended else x.size):
            y[i] = x[i - 1] + x[i + 1]  # here

    return smooth


@pair("memory", lambda: (ramp(64), zeros(64), 100), says="x[-36]")
def an_index_is_negative(mended):
    @cuda.jit
    def shift(x, y, by):
        t = cuda.threadIdx.x
        source = t - by
        if source >= 0 or not mended:
            y[t] = x[source]  # here

    return shift


@pair("memory", lambda: (ramp(64), zeros(64)), says="tile")
def a_shared_tile_is_too_small(mended):
    size = 64 if mended else 32

    @cuda.jit
    def through_a_tile(x, y):
        tile = cuda.shared.array(size, float32)
        t = cuda.threadIdx.x
        tile[t] = x[t]  # here
        y[t] = tile[t]

    return through_a_tile


@pair("memory", lambda: (ramp(64), zeros(64)), shared=128, says="tile")
def dynamic_shared_memory_is_overrun(mended):
    @cuda.jit
    def through_a_tile(x, y):
        tile = cuda.shared.array(0, float32)
        t = cuda.threadIdx.x
        if t < 32 or not mended:
            tile[t] = x[t]  # here
            y[t] = tile[t]

    return through_a_tile


@pair("memory", lambda: (zeros(0), zeros(64)))
def an_array_is_empty(mended):
    @cuda.jit
    def fill(x, y):
        if x.size or not mended:
            y[cuda.grid(1)] = x[0]  # here

    return fill


@pair("memory", lambda: (ramp2(16, 8), zeros(8, 16)), block=(8, 16), says="y is 8 × 16")
def rows_and_columns_are_exchanged(mended):
    @cuda.jit
    def transpose(x, y):
        column, row = cuda.grid(2)
        if mended:
            y[column, row] = x[row, column]
        else:
            y[row, column] = x[row, column]  # here

    return transpose


@pair("memory", lambda: (ramp(64, np.int32), zeros(64, dtype=np.int32), 5000), says="local")
def a_local_array_is_overrun(mended):
    @cuda.jit
    def turn(x, y, n):
        mine = cuda.local.array(4, int32)
        t = cuda.threadIdx.x
        for k in range(4):
            mine[k] = x[(t + k) % 64]
        y[t] = mine[n % 4 if mended else n]  # here

    return turn


@pair("memory", lambda: (ramp(16), np.array([3, 5, 90, 2], np.int32), zeros(4)), block=4, says="x[90]")
def an_index_from_memory_is_not_checked(mended):
    @cuda.jit
    def gather(x, where, y):
        t = cuda.threadIdx.x
        if where[t] < x.size or not mended:
            y[t] = x[where[t]]  # here

    return gather


@pair("memory", lambda: (ramp2(8, 16), zeros(8)), block=8, says="x[8, 0]")
def a_loop_over_rows_runs_once_too_often(mended):
    @cuda.jit
    def sums(x, y):
        t = cuda.threadIdx.x
        total = float32(0)
        for row in range(x.shape[0] if mended else x.shape[0] + 1):
            total += x[row, 0]  # here
        y[t] = total

    return sums


@pair("memory", lambda: (*views(64), zeros(64)), says="no multiple of 4")
def a_view_begins_inside_an_element(mended):
    @cuda.jit
    def copy(even, odd, y):
        i = cuda.grid(1)
        if mended:
            y[i] = even[i]
        else:
            y[i] = odd[i]  # here

    return copy


@pair("memory", lambda: (ramp2(8, 6), zeros(8, 6)), block=(8, 8))
def a_guard_says_or_instead_of_and(mended):
    @cuda.jit
    def copy(x, y):
        i, j = cuda.grid(2)
        inside = (i < x.shape[0] and j < x.shape[1]) if mended else (i < x.shape[0] or j < x.shape[1])
        if inside:
            y[i, j] = x[i, j]  # here

    return copy
