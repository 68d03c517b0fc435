"""Races in global memory, mostly between blocks."""

from __future__ import annotations

import numpy as np
from numba import float32

from gpulab import cuda

from ..pairs import Corpus
from .data import bins, ramp, ramp2, zeros

PAIRS = Corpus()
pair = PAIRS.pair


@pair("race", lambda: (ramp(128), zeros(128)), grid=2, says="Nothing orders two blocks")
def two_blocks_write_one_element(mended):
    @cuda.jit
    def copy(x, y):
        i = cuda.grid(1)
        y[i if mended else cuda.threadIdx.x] = x[i]  # first, second

    return copy


@pair("race", lambda: (ramp(128), zeros(128), zeros(128)), grid=2)
def a_block_reads_what_another_one_writes(mended):
    @cuda.jit
    def double_and_turn(x, y, z):
        i = cuda.grid(1)
        y[i] = 2 * x[i]  # first
        if mended:
            z[i] = 2 * x[x.size - 1 - i]
        else:
            z[i] = y[x.size - 1 - i]  # second

    return double_and_turn


@pair("race", lambda: (bins(256), zeros(8, dtype=np.int32)), grid=4)
def a_global_histogram_counts_without_atomics(mended):
    @cuda.jit
    def histogram(x, y):
        i = cuda.grid(1)
        if mended:
            cuda.atomic.add(y, x[i], 1)
        else:
            y[x[i]] += 1  # first, second

    return histogram


@pair("race", lambda: (ramp(128), zeros(128)), grid=2)
def a_stencil_works_in_place(mended):
    @cuda.jit
    def smooth(x, y):
        i = cuda.grid(1)
        if 0 < i < x.size - 1:
            if mended:
                y[i] = x[i - 1] + x[i + 1]
            else:
                x[i] = x[i - 1] + x[i + 1]  # first, second

    return smooth


@pair("race", lambda: (ramp(256), zeros(4), zeros(1, dtype=np.int32), zeros(1)), grid=4)
def the_last_block_sums_without_a_fence(mended):
    @cuda.jit
    def total(x, partial, done, y):
        block = cuda.blockIdx.x
        if cuda.threadIdx.x == 0:
            mine = float32(0)
            for k in range(64):
                mine += x[64 * block + k]
            partial[block] = mine  # first
            if mended:
                cuda.threadfence()
            if cuda.atomic.add(done, 0, 1) == cuda.gridDim.x - 1:
                cuda.threadfence()
                whole = float32(0)
                for k in range(cuda.gridDim.x):
                    whole += partial[k]  # second
                y[0] = whole

    return total


@pair("race", lambda: (zeros(1), zeros(1, dtype=np.int32), zeros(1)), grid=2, block=1)
def a_flag_is_raised_without_a_fence(mended):
    @cuda.jit
    def hand_over(data, flag, y):
        if cuda.blockIdx.x == 0:
            data[0] = 42  # first
            if mended:
                cuda.threadfence()
            cuda.atomic.exch(flag, 0, 1)
        else:
            while cuda.atomic.add(flag, 0, 0) == 0:
                pass
            cuda.threadfence()
            y[0] = data[0]  # second

    return hand_over


@pair("race", lambda: (bins(64), zeros(1, dtype=np.int32), zeros(64)), grid=2, block=32)
def a_plain_read_meets_atomics_of_other_blocks(mended):
    @cuda.jit
    def share(x, count, y):
        i = cuda.grid(1)
        cuda.atomic.add(count, 0, x[i])  # first
        y[i] = x[i] if mended else count[0]  # second

    return share


@pair("race", lambda: (ramp(128), zeros(1)), grid=2)
def a_maximum_is_kept_without_an_atomic(mended):
    @cuda.jit
    def highest(x, y):
        i = cuda.grid(1)
        if mended:
            cuda.atomic.max(y, 0, x[i])
        else:
            y[0] = max(y[0], x[i])  # first, second

    return highest


@pair("race", lambda: (ramp2(8, 32), zeros(8)), grid=(1, 2), block=(32, 4))
def the_columns_of_a_row_add_to_one_element(mended):
    @cuda.jit
    def row_sums(x, y):
        column, row = cuda.grid(2)
        if mended:
            cuda.atomic.add(y, row, x[row, column])
        else:
            y[row] += x[row, column]  # first, second

    return row_sums


@pair("race", lambda: (ramp(128),), grid=2)
def every_thread_of_a_reversal_swaps(mended):
    @cuda.jit
    def reverse(x):
        i = cuda.grid(1)
        j = x.size - 1 - i
        if i < j or not mended:
            x[i], x[j] = x[j], x[i]  # first, second

    return reverse


@pair("race", lambda: (ramp(128), zeros(130)), grid=2)
def blocks_overlap_by_a_halo(mended):
    @cuda.jit
    def with_halo(x, y):
        t, start = cuda.threadIdx.x, 64 * cuda.blockIdx.x
        width = 64 if mended else 66
        for k in range(t, width, 64):
            y[start + k] = x[start + t]  # first, second

    return with_halo


@pair("race", lambda: (np.zeros(64, [("left", np.float32), ("right", np.float32)]), zeros(64)))
def a_field_is_read_that_a_neighbour_writes(mended):
    @cuda.jit
    def fields(points, y):
        t = cuda.threadIdx.x
        points[t].left = t  # first
        other = points[t ^ 1]
        y[t] = other.right if mended else other.left  # second

    return fields


@pair("race", lambda: (zeros(1, dtype=np.int32), zeros(64, dtype=np.int32)), grid=2, block=32)
def tickets_are_drawn_without_an_atomic(mended):
    @cuda.jit
    def draw(next_free, taken):
        if mended:
            ticket = cuda.atomic.add(next_free, 0, 1)
        else:
            ticket = next_free[0]  # first
            next_free[0] = ticket + 1  # second
        taken[ticket] = 1

    return draw


@pair("race", lambda: (ramp(64), zeros(64)), says="cuda.syncthreads()")
def a_block_passes_values_through_global_memory(mended):
    @cuda.jit
    def turn(x, y):
        t = cuda.threadIdx.x
        y[t] = x[t]  # first
        if mended:
            cuda.syncthreads()
        x[t] = y[63 - t]  # second

    return turn


@pair("race", lambda: (zeros(1), zeros(1, dtype=np.int32), zeros(64)), grid=2)
def only_one_thread_has_waited_for_the_flag(mended):
    @cuda.jit
    def hand_over(data, flag, y):
        t = cuda.threadIdx.x
        if cuda.blockIdx.x == 0:
            if t == 0:
                data[0] = 42  # first
                cuda.threadfence()
                cuda.atomic.exch(flag, 0, 1)
        else:
            if t == 0:
                while cuda.atomic.add(flag, 0, 0) == 0:
                    pass
                cuda.threadfence()
            if mended:
                cuda.syncthreads()
            y[t] = data[0]  # second

    return hand_over


@pair("race", lambda: (ramp(256), zeros(256)), grid=2)
def a_stride_loop_steps_too_little(mended):
    @cuda.jit
    def shift(x, y):
        step = cuda.gridDim.x * cuda.blockDim.x if mended else cuda.blockDim.x
        for i in range(cuda.grid(1), x.size, step):
            y[i] = x[i] + cuda.blockIdx.x  # first, second

    return shift


@pair("race", lambda: (ramp2(16, 16), zeros(16, 16)), grid=(2, 2), block=(8, 8))
def a_transpose_works_in_place(mended):
    @cuda.jit
    def transpose(x, y):
        i, j = cuda.grid(2)
        if mended:
            y[j, i] = x[i, j]
        else:
            x[j, i] = x[i, j]  # first, second

    return transpose


@pair("race", lambda: (ramp(64), zeros(2)))
def the_leaders_of_warps_write_one_slot(mended):
    @cuda.jit
    def neighbours(x, y):
        t = cuda.threadIdx.x
        value = cuda.shfl_down_sync(0xFFFFFFFF, x[t], 1)
        if t % 32 == 0:
            y[t // 32 if mended else 0] = value  # first, second

    return neighbours
