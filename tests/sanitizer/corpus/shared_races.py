"""Races in shared memory."""

from __future__ import annotations

import numpy as np
from numba import float32, int8, int32

from gpulab import cuda

from ..pairs import Corpus
from .data import bins, ramp, ramp2, zeros

PAIRS = Corpus()
pair = PAIRS.pair


@pair("race", lambda: (ramp(128), zeros(128)), grid=2, says="cuda.syncthreads() after line")
def a_tile_is_read_before_it_is_full(mended):
    @cuda.jit
    def reverse(x, y):
        tile = cuda.shared.array(64, float32)
        t, i = cuda.threadIdx.x, cuda.grid(1)
        tile[t] = x[i]  # first
        if mended:
            cuda.syncthreads()
        y[i] = tile[63 - t]  # second

    return reverse


@pair("race", lambda: (ramp(256), zeros(64)), says="of the next pass through the loop")
def a_tile_is_overwritten_in_the_next_pass(mended):
    @cuda.jit
    def sums(x, y):
        tile = cuda.shared.array(64, float32)
        t = cuda.threadIdx.x
        total = float32(0)
        for start in range(0, x.size, 64):
            tile[t] = x[start + t]  # second
            cuda.syncthreads()
            total += tile[63 - t]  # first
            if mended:
                cuda.syncthreads()
        y[t] = total

    return sums


@pair("race", lambda: (ramp(256), zeros(64)))
def a_double_buffer_stays_on_one_side(mended):
    @cuda.jit
    def sums(x, y):
        buffers = cuda.shared.array((2, 64), float32)
        t = cuda.threadIdx.x
        total = float32(0)
        for k in range(x.size // 64):
            side = k % 2 if mended else 0
            buffers[side, t] = x[64 * k + t]  # second
            cuda.syncthreads()
            total += buffers[side, 63 - t]  # first
        y[t] = total

    return sums


@pair("race", lambda: (ramp(64), zeros(1)), block=32, says="cuda.syncwarp()")
def a_warp_sums_without_syncwarp(mended):
    @cuda.jit
    def total(x, y):
        s = cuda.shared.array(64, float32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        s[t + 32] = x[t + 32]
        cuda.syncwarp()
        reach = 32
        while reach > 0:
            if t < reach:
                s[t] += s[t + reach]  # first, second
            if mended:
                cuda.syncwarp()
            reach //= 2
        if t == 0:
            y[0] = s[0]

    return total


@pair("race", lambda: (ramp(128), zeros(1)), block=128)
def a_tree_of_sums_has_no_barrier(mended):
    @cuda.jit
    def total(x, y):
        s = cuda.shared.array(128, float32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncthreads()
        reach = 64
        while reach > 0:
            if t < reach:
                s[t] += s[t + reach]  # first, second
            if mended:
                cuda.syncthreads()
            reach //= 2
        if t == 0:
            y[0] = s[0]

    return total


@pair("race", lambda: (bins(128), zeros(8, dtype=np.int32)), block=128)
def a_shared_histogram_counts_without_atomics(mended):
    @cuda.jit
    def histogram(x, y):
        counts = cuda.shared.array(8, int32)
        t = cuda.threadIdx.x
        if t < 8:
            counts[t] = 0
        cuda.syncthreads()
        if mended:
            cuda.atomic.add(counts, x[t], 1)
        else:
            counts[x[t]] += 1  # first, second
        cuda.syncthreads()
        if t < 8:
            y[t] = counts[t]

    return histogram


@pair("race", lambda: (ramp(64), zeros(64)))
def a_scan_runs_in_one_buffer(mended):
    @cuda.jit
    def scan(x, y):
        s = cuda.shared.array(64, float32)
        t = cuda.threadIdx.x
        s[t] = x[t]
        cuda.syncthreads()
        reach = 1
        while reach < 64:
            if mended:
                left = s[t - reach] if t >= reach else float32(0)
                cuda.syncthreads()
                s[t] += left
            elif t >= reach:
                s[t] += s[t - reach]  # first, second
            cuda.syncthreads()
            reach *= 2
        y[t] = s[t]

    return scan


@pair("race", lambda: (ramp(2), zeros(128)), grid=2)
def a_broadcast_has_no_barrier(mended):
    @cuda.jit
    def fill(x, y):
        value = cuda.shared.array(1, float32)
        if cuda.threadIdx.x == 0:
            value[0] = x[cuda.blockIdx.x]  # first
        if mended:
            cuda.syncthreads()
        y[cuda.grid(1)] = value[0]  # second

    return fill


@pair("race", lambda: (ramp(64), zeros(64)))
def a_warp_barrier_stands_where_the_block_needs_one(mended):
    @cuda.jit
    def shift(x, y):
        tile = cuda.shared.array(64, float32)
        t = cuda.threadIdx.x
        tile[t] = x[t]  # first
        if mended:
            cuda.syncthreads()
        else:
            cuda.syncwarp()
        y[t] = tile[(t + 32) % 64]  # second

    return shift


@pair("race", lambda: (ramp2(16, 16), zeros(16, 16)), block=(16, 16))
def a_transposed_tile_has_no_barrier(mended):
    @cuda.jit
    def transpose(x, y):
        tile = cuda.shared.array((16, 17), float32)
        column, row = cuda.threadIdx.x, cuda.threadIdx.y
        tile[row, column] = x[row, column]  # first
        if mended:
            cuda.syncthreads()
        y[row, column] = tile[column, row]  # second

    return transpose


@pair("race", lambda: (ramp(64), zeros(64)))
def a_plain_read_meets_an_atomic(mended):
    @cuda.jit
    def share(x, y):
        total = cuda.shared.array(1, float32)
        t = cuda.threadIdx.x
        if t == 0:
            total[0] = 0
        cuda.syncthreads()
        cuda.atomic.add(total, 0, x[t])  # first
        if mended:
            cuda.syncthreads()
        y[t] = x[t] / total[0]  # second

    return share


@pair("race", lambda: (bins(64), zeros(1, dtype=np.int32)))
def a_counter_is_reset_without_a_barrier(mended):
    @cuda.jit
    def count(x, y):
        hits = cuda.shared.array(1, int32)
        t = cuda.threadIdx.x
        if t == 0:
            hits[0] = 0  # first
        if mended:
            cuda.syncthreads()
        if x[t] > 2:
            cuda.atomic.add(hits, 0, 1)  # second
        cuda.syncthreads()
        if t == 0:
            y[0] = hits[0]

    return count


@pair("race", lambda: (ramp(64), zeros(64)))
def a_stencil_smooths_its_tile_in_place(mended):
    @cuda.jit
    def smooth(x, y):
        tile = cuda.shared.array(66, float32)
        t = cuda.threadIdx.x
        tile[t + 1] = x[t]
        if t < 2:
            tile[65 * t] = 0
        cuda.syncthreads()
        if mended:
            value = tile[t] + tile[t + 2]
            cuda.syncthreads()
            tile[t + 1] = value
        else:
            tile[t + 1] = tile[t] + tile[t + 2]  # first, second
        y[t] = tile[t + 1]

    return smooth


@pair("race", lambda: (ramp(64), ramp(64), zeros(64)))
def a_tile_is_used_again_too_early(mended):
    @cuda.jit
    def both(x, z, y):
        tile = cuda.shared.array(64, float32)
        t = cuda.threadIdx.x
        tile[t] = x[t]
        cuda.syncthreads()
        left = tile[63 - t]  # first
        if mended:
            cuda.syncthreads()
        tile[t] = z[t]  # second
        cuda.syncthreads()
        y[t] = left * tile[63 - t]

    return both


@pair("race", lambda: (bins(64), zeros(64, dtype=np.int8)))
def two_threads_write_one_byte(mended):
    @cuda.jit
    def flags(x, y):
        seen = cuda.shared.array(64, int8)
        t = cuda.threadIdx.x
        seen[t] = 0
        cuda.syncthreads()
        seen[t if mended else x[t]] = t  # first, second
        cuda.syncthreads()
        y[t] = seen[t]

    return flags


@pair("race", lambda: (ramp(128), zeros(64)))
def a_running_maximum_is_kept_without_a_barrier(mended):
    @cuda.jit
    def running(x, y):
        best = cuda.shared.array(1, float32)
        t = cuda.threadIdx.x
        if t == 0:
            best[0] = 0
        cuda.syncthreads()
        for k in range(2):
            highest = best[0]  # first
            if mended:
                cuda.syncthreads()
            if t == 63:
                best[0] = max(highest, x[64 * k + t])  # second
            cuda.syncthreads()
            y[t] += highest

    return running


@pair("race", lambda: (ramp(64), zeros(64)))
def a_loop_leaves_out_the_barrier_of_its_last_pass(mended):
    @cuda.jit
    def turn(x, y):
        tile = cuda.shared.array(64, float32)
        t = cuda.threadIdx.x
        tile[t] = x[t]
        cuda.syncthreads()
        for k in range(3):
            value = tile[(t + 1) % 64]  # first
            if k < 2 or mended:
                cuda.syncthreads()
            tile[t] = value  # second
            cuda.syncthreads()
        y[t] = tile[t]

    return turn


@pair("race", lambda: (bins(128, 4), zeros(4, dtype=np.int32)), block=128)
def histograms_of_warps_are_merged_too_early(mended):
    @cuda.jit
    def histogram(x, y):
        counts = cuda.shared.array((4, 4), int32)
        t = cuda.threadIdx.x
        if t < 16:
            counts[t // 4, t % 4] = 0
        cuda.syncthreads()
        cuda.atomic.add(counts, (t // 32, int32(x[t])), 1)  # first
        if mended:
            cuda.syncthreads()
        if t < 4:
            total = 0
            for k in range(4):
                total += counts[k, t]  # second
            y[t] = total

    return histogram


@pair("race", lambda: (ramp(64), zeros(64)), says="at which both threads wait")
def only_the_even_lanes_wait(mended):
    @cuda.jit
    def swap(x, y):
        tile = cuda.shared.array(64, float32)
        t = cuda.threadIdx.x
        tile[t] = x[t]  # first
        if mended:
            cuda.syncwarp()
        elif t % 2 == 0:
            cuda.syncwarp(0x55555555)
        y[t] = tile[t ^ 1]  # second

    return swap
