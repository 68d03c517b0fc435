"""Results that depend on which thread comes first, though no access races."""

from __future__ import annotations

import numpy as np
from numba import float32

from gpulab import cuda

from ..pairs import Corpus
from .data import ramp, uneven, zeros

PAIRS = Corpus()
pair = PAIRS.pair


@pair("order", lambda: (uneven(256), zeros(1)), grid=4, says="round")
def floats_are_added_in_any_order(mended):
    @cuda.jit
    def total(x, y):
        i = cuda.grid(1)
        if not mended:
            cuda.atomic.add(y, 0, x[i])  # here
        elif i == 0:
            whole = float32(0)
            for k in range(x.size):
                whole += x[k]
            y[0] = whole

    return total


@pair("order", lambda: (ramp(256), zeros(1, dtype=np.int32), zeros(256)), grid=4)
def places_are_taken_first_come_first_served(mended):
    @cuda.jit
    def keep(x, count, y):
        i = cuda.grid(1)
        if mended:
            y[i] = x[i]
        elif x[i] > 10:
            y[cuda.atomic.add(count, 0, 1)] = x[i]  # here

    return keep


@pair("order", lambda: (np.full(1, 10_000, np.int32),), grid=4)
def the_first_thread_wins(mended):
    @cuda.jit
    def race_for_it(winner):
        i = cuda.grid(1)
        if mended:
            cuda.atomic.min(winner, 0, i)
        else:
            cuda.atomic.cas(winner, 0, 10_000, i)  # here

    return race_for_it


@pair("order", lambda: (ramp(64, np.int32), zeros(1, dtype=np.int32)), grid=4, block=16, says="commute")
def two_operations_meet_in_one_element(mended):
    @cuda.jit
    def limit(x, y):
        i = cuda.grid(1)
        if mended or i % 2:
            cuda.atomic.add(y, 0, x[i])  # first
        else:
            cuda.atomic.max(y, 0, 10 * x[i])  # second

    return limit
