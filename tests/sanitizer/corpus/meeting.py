"""Barriers, shuffles and votes that not all threads come to, and waiting that never ends."""

from __future__ import annotations

import numpy as np
from numba import float32

from gpulab import cuda

from ..pairs import Corpus
from .data import ramp, zeros

PAIRS = Corpus()
pair = PAIRS.pair
ALL_LANES = 0xFFFFFFFF


@pair("barrier", lambda: (ramp(64), zeros(64)))
def a_barrier_stands_in_a_branch(mended):
    @cuda.jit
    def halves(x, y):
        tile = cuda.shared.array(32, float32)
        t = cuda.threadIdx.x
        if t < 32:
            tile[t] = x[t]
            if not mended:
                cuda.syncthreads()  # here
        if mended:
            cuda.syncthreads()
        y[t] = tile[0] if t < 32 else x[t]

    return halves


@pair("barrier", lambda: (ramp(64), zeros(64)), says="another one")
def two_barriers_pair_by_accident(mended):
    @cuda.jit
    def halves(x, y):
        tile = cuda.shared.array(64, float32)
        t = cuda.threadIdx.x
        tile[t] = x[t]
        if mended:
            cuda.syncthreads()
            y[t] = tile[63 - t]
        elif t < 32:
            cuda.syncthreads()  # first
            y[t] = tile[63 - t]
        else:
            tile[t] *= 2
            cuda.syncthreads()  # second
            y[t] = tile[63 - t] / 2

    return halves


@pair("barrier", lambda: (ramp(100), zeros(100)), grid=2, says="had returned")
def threads_return_before_a_barrier(mended):
    @cuda.jit
    def turn(x, y):
        tile = cuda.shared.array(64, float32)
        t, i = cuda.threadIdx.x, cuda.grid(1)
        if not mended and i >= x.size:
            return
        tile[t] = x[i] if i < x.size else float32(0)
        cuda.syncthreads()  # here
        if i < x.size:
            y[i] = tile[t ^ 1]

    return turn


@pair("barrier", lambda: (ramp(64), zeros(64)))
def warps_pass_a_barrier_in_a_loop_unequally_often(mended):
    @cuda.jit
    def steps(x, y):
        tile = cuda.shared.array(64, float32)
        t = cuda.threadIdx.x
        for k in range(2 if mended else t // 32 + 1):
            tile[t] = x[t] + k
            cuda.syncthreads()  # here
            y[t] += tile[t]

    return steps


@pair("barrier", lambda: (ramp(32), zeros(32)), block=32, says="inactive")
def a_shuffle_reads_lanes_that_have_left(mended):
    @cuda.jit
    def shift(x, y):
        t = cuda.threadIdx.x
        if t < 16 or mended:
            y[t] = cuda.shfl_down_sync(ALL_LANES, x[t], 8)  # here

    return shift


@pair("barrier", lambda: (ramp(32), zeros(32)), block=32, says="outside its mask")
def a_shuffle_reads_lanes_outside_its_mask(mended):
    @cuda.jit
    def shift(x, y):
        t = cuda.threadIdx.x
        if t < 16:
            if mended:
                y[t] = cuda.shfl_sync(0xFFFF, x[t], (t + 8) % 16)
            else:
                y[t] = cuda.shfl_sync(0xFFFF, x[t], t + 8)  # here
        else:
            y[t] = cuda.shfl_sync(0xFFFF0000, x[t], t)

    return shift


@pair("barrier", lambda: (ramp(32), zeros(32)), block=32, says="does not name itself")
def a_lane_calls_a_vote_that_does_not_name_it(mended):
    @cuda.jit
    def count(x, y):
        t = cuda.threadIdx.x
        mask = ALL_LANES if mended else 0xFFFF
        y[t] = cuda.popc(cuda.ballot_sync(mask, x[t] > 8))  # here

    return count


@pair("barrier", lambda: (ramp(32), zeros(32)), block=32, says="never come")
def half_a_warp_waits_for_the_other_half(mended):
    @cuda.jit
    def halves(x, y):
        t = cuda.threadIdx.x
        mask = 0xFFFF if mended else ALL_LANES
        if t < 16:
            cuda.syncwarp(mask)  # first
            y[t] = x[t]
        else:
            y[t] = -x[t]
        cuda.syncthreads()  # second

    return halves


@pair("endless", lambda: (zeros(2, dtype=np.int32), zeros(1)), grid=2, block=1, says="no other thread")
def the_wrong_flag_is_raised(mended):
    @cuda.jit
    def wait(flags, y):
        if cuda.blockIdx.x == 0:
            while cuda.atomic.add(flags, 0, 0) == 0:  # here
                pass
            y[0] = 1
        else:
            cuda.atomic.exch(flags, 0 if mended else 1, 1)

    return wait


@pair("race", lambda: (zeros(1, dtype=np.int32), zeros(1)), grid=2, block=1)
def a_flag_is_looked_at_once(mended):
    @cuda.jit
    def wait(flag, y):
        if cuda.blockIdx.x == 0:
            if mended:
                while cuda.atomic.add(flag, 0, 0) == 0:
                    pass
            else:
                while flag[0] == 0:  # first
                    pass
            y[0] = 1
        else:
            cuda.atomic.exch(flag, 0, 1)  # second

    return wait
