"""Kernels that look wrong and are right: nothing may be said of them."""

from __future__ import annotations

import numpy as np
from numba import float32, int8, int16, int32

from gpulab import cuda

from ..pairs import Corpus
from .data import ramp, zeros

PAIRS = Corpus()
harmless = PAIRS.harmless


@harmless(lambda: (zeros(1),), grid=2)
def all_threads_write_the_same_value(mended):
    @cuda.jit
    def raise_flag(y):
        y[0] = 1

    return raise_flag


@harmless(lambda: (zeros(64, dtype=np.int8),))
def neighbouring_bytes_belong_to_different_threads(mended):
    @cuda.jit
    def octets(y):
        tile = cuda.shared.array(64, int8)
        t = cuda.threadIdx.x
        tile[t] = t
        tile[t] += 1
        y[t] = tile[t]

    return octets


@harmless(lambda: (zeros(128, dtype=np.int16),), grid=2)
def neighbouring_halves_of_a_word_belong_to_different_threads(mended):
    @cuda.jit
    def halves(y):
        tile = cuda.shared.array(64, int16)
        t, i = cuda.threadIdx.x, cuda.grid(1)
        tile[t] = i
        y[i] = tile[t]
        y[i] += 1

    return halves


@harmless(lambda: (np.zeros(64, [("left", np.float32), ("count", np.int8), ("flag", np.int8)]),))
def fields_of_one_struct_belong_to_different_threads(mended):
    @cuda.jit
    def fields(points):
        t = cuda.threadIdx.x
        point = points[t // 2]
        if t % 2:
            point.count = t
        else:
            point.flag = t

    return fields


@harmless(lambda: (ramp(256), zeros(4), zeros(1, dtype=np.int32), zeros(256)), grid=4)
def a_grid_barrier_of_atomics(mended):
    @cuda.jit
    def two_phases(x, partial, arrived, y):
        t, i = cuda.threadIdx.x, cuda.grid(1)
        if t == 0:
            partial[cuda.blockIdx.x] = x[i]
            cuda.threadfence()
            cuda.atomic.add(arrived, 0, 1)
            while cuda.atomic.add(arrived, 0, 0) < cuda.gridDim.x:
                pass
            cuda.threadfence()
        cuda.syncthreads()
        y[i] = partial[(cuda.blockIdx.x + 1) % cuda.gridDim.x]

    return two_phases


@harmless(lambda: (ramp(64), zeros(64), zeros(1, dtype=np.int32)), grid=2)
def a_block_hands_over_all_its_elements(mended):
    @cuda.jit
    def hand_over(x, y, flag):
        t = cuda.threadIdx.x
        if cuda.blockIdx.x == 0:
            x[t] *= 2
            cuda.threadfence()
            cuda.syncthreads()
            if t == 0:
                cuda.atomic.exch(flag, 0, 1)
        else:
            if t == 0:
                while cuda.atomic.add(flag, 0, 0) == 0:
                    pass
                cuda.threadfence()
            cuda.syncthreads()
            y[t] = x[63 - t]

    return hand_over


@harmless(lambda: (ramp(256), zeros(64)))
def two_buffers_need_one_barrier(mended):
    @cuda.jit
    def sums(x, y):
        buffers = cuda.shared.array((2, 64), float32)
        t = cuda.threadIdx.x
        for k in range(4):
            buffers[k % 2, t] = x[64 * k + t]
            cuda.syncthreads()
            y[t] += buffers[k % 2, 63 - t]

    return sums


@harmless(lambda: (ramp(64), zeros(64)), block=64)
def each_half_warp_has_its_own_mask(mended):
    @cuda.jit
    def halves(x, y):
        s = cuda.shared.array(64, float32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        if t % 32 < 16:
            cuda.syncwarp(0xFFFF)
            y[t] = s[t ^ 1] + cuda.shfl_xor_sync(0xFFFF, x[t], 1)
        else:
            cuda.syncwarp(0xFFFF0000)
            y[t] = s[t ^ 1] - cuda.shfl_xor_sync(0xFFFF0000, x[t], 1)

    return halves


@harmless(lambda: (ramp(128), zeros(128)), grid=3)
def a_whole_block_returns_before_the_barrier(mended):
    @cuda.jit
    def turn(x, y):
        tile = cuda.shared.array(64, float32)
        t, i = cuda.threadIdx.x, cuda.grid(1)
        if cuda.blockIdx.x >= 2:
            return
        tile[t] = x[i]
        cuda.syncthreads()
        y[i] = tile[63 - t]

    return turn


@harmless(lambda: (ramp(16), zeros(1)), block=16)
def what_a_shuffle_fetches_from_nowhere_is_not_used(mended):
    @cuda.jit
    def total(x, y):
        t = cuda.threadIdx.x
        value = x[t]
        reach = 8
        while reach > 0:
            value += cuda.shfl_down_sync(0xFFFF, value, reach)
            reach //= 2
        if t == 0:
            y[0] = value

    return total


@harmless(lambda: (ramp(256), zeros(1, dtype=np.int32)), grid=4)
def integer_atomics_commute(mended):
    @cuda.jit
    def count(x, y):
        if x[cuda.grid(1)] > 100:
            cuda.atomic.add(y, 0, 1)

    return count


@harmless(lambda: (ramp(64), zeros(64)))
def a_thread_keeps_to_its_own_elements(mended):
    @cuda.jit
    def steps(x, y):
        tile = cuda.shared.array(64, float32)
        mine = cuda.local.array(4, float32)
        t = cuda.threadIdx.x
        tile[t] = x[t]
        for k in range(4):
            mine[k] = tile[t] + k
            tile[t] = mine[k]
        y[t] = tile[t]

    return steps


@harmless(lambda: (zeros(1, dtype=np.int32), zeros(1, dtype=np.int32)), grid=4, block=32)
def a_lock_guards_a_plain_counter(mended):
    @cuda.jit
    def count(lock, counter):
        if cuda.threadIdx.x == 0:
            while cuda.atomic.cas(lock, 0, 0, 1) != 0:
                pass
            cuda.threadfence()
            counter[0] += 1
            cuda.threadfence()
            cuda.atomic.exch(lock, 0, 0)

    return count


@harmless(lambda: (ramp(64), zeros(8, dtype=np.int32)), grid=1)
def counters_are_cleared_between_two_barriers(mended):
    @cuda.jit
    def twice(x, y):
        counts = cuda.shared.array(8, int32)
        t = cuda.threadIdx.x
        for k in range(2):
            if t < 8:
                counts[t] = 0
            cuda.syncthreads()
            cuda.atomic.add(counts, (t + k) % 8, 1)
            cuda.syncthreads()
            if t < 8:
                y[t] += counts[t]

    return twice


@harmless(lambda: (ramp(64, np.int32), zeros(64, dtype=np.int32), 5))
def a_local_array_of_numba_begins_with_zeros(mended):
    @cuda.jit
    def turn(x, y, n):
        mine = cuda.local.array(8, int32)
        t = cuda.threadIdx.x
        for k in range(n):
            mine[(k + t) % 8] = x[t] + k
        y[t] = mine[(n + t) % 8]

    return turn


@harmless(lambda: (ramp(256), zeros(4), zeros(1, dtype=np.int32), zeros(1)), grid=4)
def another_thread_of_the_last_block_sums(mended):
    @cuda.jit
    def total(x, partial, done, y):
        last = cuda.shared.array(1, int32)
        t, block = cuda.threadIdx.x, cuda.blockIdx.x
        if t == 0:
            mine = float32(0)
            for k in range(64):
                mine += x[64 * block + k]
            partial[block] = mine
            cuda.threadfence()
            last[0] = cuda.atomic.add(done, 0, 1) == 3
            cuda.threadfence()
        cuda.syncthreads()
        if last[0] and t == 63:
            y[0] = partial[0] + partial[1] + partial[2] + partial[3]

    return total


@harmless(lambda: (zeros(1, dtype=np.int32),), block=128)
def a_lock_in_shared_memory(mended):
    @cuda.jit
    def count(counter):
        lock = cuda.shared.array(1, int32)
        if cuda.threadIdx.x == 0:
            lock[0] = 0
        cuda.syncthreads()
        if cuda.threadIdx.x % 32 == 0:
            while cuda.atomic.cas(lock, 0, 0, 1) != 0:
                pass
            cuda.threadfence()
            counter[0] += 1
            cuda.threadfence()
            cuda.atomic.exch(lock, 0, 0)

    return count


@harmless(lambda: (ramp(64), zeros(64), zeros(64)))
def a_barrier_of_the_grid(mended):
    @cuda.jit
    def turn(x, y, z):
        i = cuda.grid(1)
        y[i] = x[i]
        cuda.cg.this_grid().sync()
        z[i] = y[x.size - 1 - i]

    return turn
