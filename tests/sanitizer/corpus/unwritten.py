"""Reads of memory that nobody has written."""

from __future__ import annotations

import numpy as np
from numba import float32, int32

from gpulab import cuda

from ..pairs import Corpus
from .data import bins, fresh, ramp, zeros

PAIRS = Corpus()
pair = PAIRS.pair


@pair("uninitialised", lambda: (ramp(100), zeros(2)), grid=2, says="of shared memory")
def the_tail_of_a_tile_stays_unwritten(mended):
    @cuda.jit
    def sums(x, y):
        tile = cuda.shared.array(64, float32)
        t, i = cuda.threadIdx.x, cuda.grid(1)
        if i < x.size:
            tile[t] = x[i]
        elif mended:
            tile[t] = 0
        cuda.syncthreads()
        if t == 0:
            total = float32(0)
            for k in range(64):
                total += tile[k]  # here
            y[cuda.blockIdx.x] = total

    return sums


@pair("uninitialised", lambda: (ramp(64), zeros(64)))
def one_side_of_a_halo_is_not_loaded(mended):
    @cuda.jit
    def smooth(x, y):
        tile = cuda.shared.array(66, float32)
        t = cuda.threadIdx.x
        tile[t + 1] = x[t]
        if t == 0:
            tile[0] = 0
        if t == 63 and mended:
            tile[65] = 0
        cuda.syncthreads()
        y[t] = tile[t] + tile[t + 2]  # here

    return smooth


@pair("uninitialised", lambda: (ramp(64), fresh(64)), says="y[0]")
def a_fresh_array_is_added_to(mended):
    @cuda.jit
    def accumulate(x, y):
        i = cuda.grid(1)
        if mended:
            y[i] = x[i]
        else:
            y[i] += x[i]  # here

    return accumulate


@pair("uninitialised", lambda: (ramp(64), fresh(64), zeros(64)), says="y[1]")
def only_every_second_element_is_written(mended):
    @cuda.jit
    def thin(x, y, z):
        i = cuda.grid(1)
        if i % 2 == 0 or mended:
            y[i] = x[i]
        z[i] = y[i]  # here

    return thin


@pair("uninitialised", lambda: (bins(64), zeros(8, dtype=np.int32)))
def shared_counters_are_not_set_to_zero(mended):
    @cuda.jit
    def histogram(x, y):
        counts = cuda.shared.array(8, int32)
        t = cuda.threadIdx.x
        if t < 8 and mended:
            counts[t] = 0
        cuda.syncthreads()
        cuda.atomic.add(counts, x[t], 1)  # here
        cuda.syncthreads()
        if t < 8:
            y[t] = counts[t]

    return histogram


@pair("uninitialised", lambda: (bins(64), fresh(8, dtype=np.int32)), says="y[0]")
def fresh_counters_are_not_set_to_zero(mended):
    @cuda.jit
    def histogram(x, y):
        t = cuda.threadIdx.x
        if t < 8 and mended:
            y[t] = 0
        cuda.syncthreads()
        cuda.atomic.add(y, x[t], 1)  # here

    return histogram


@pair("uninitialised", lambda: (ramp(64), zeros(64)))
def the_first_slot_of_a_pipeline_is_read_empty(mended):
    @cuda.jit
    def delay(x, y):
        slots = cuda.shared.array((2, 64), float32)
        t = cuda.threadIdx.x
        if mended:
            slots[1, t] = 0
        for k in range(2):
            slots[k % 2, t] = x[t]
            y[t] += slots[(k + 1) % 2, t]  # here

    return delay
