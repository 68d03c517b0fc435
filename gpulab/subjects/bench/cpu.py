"""Bandwidth and rate of the CPU at hand: a copy on all cores, a matrix product, and what lies between.

They are what a program gets, not what the machine could do at best: a copy counts the bytes that it reads and
writes (a CPU that fetches a line before it overwrites it moves half as many again), and the product runs as
fast as the BLAS library that NumPy has.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from statistics import median
from time import perf_counter

import numpy as np

from gpulab.simulator.hardware import Roofline, amount

MB = 10**6


@dataclass(frozen=True)
class Measured:
    """`work` (in `unit`, for example B) that one run does, and the seconds of each run but the first."""

    work: float
    unit: str
    seconds: tuple[float, ...]

    @property
    def rate(self) -> float:
        """Work per second of the fastest run: what disturbs a run only makes it longer."""
        return self.work / min(self.seconds)

    @property
    def spread(self) -> float:
        """Median time over the smallest; far above 1 the machine had other work to do."""
        return median(self.seconds) / min(self.seconds)

    def __str__(self) -> str:
        return f"{amount(self.rate, f'{self.unit}/s')}, best of {len(self.seconds)}, spread {self.spread:.2f}"


def timed(run: Callable[[], object], work: float, unit: str, repeats: int = 5) -> Measured:
    """Time `run`, once unmeasured and then `repeats` times. Raises ValueError for fewer than one repeat.

    >>> timed(lambda: sum(range(1000)), work=1000, unit="additions", repeats=2).work
    1000
    """
    if repeats < 1:
        raise ValueError(f"a measurement needs at least 1 repeat; got {repeats}")
    run()  # pages are touched, threads started, caches filled
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        run()
        seconds.append(perf_counter() - start)
    return Measured(work, unit, tuple(seconds))


def bandwidth(megabytes: int = 256, threads: int | None = None, repeats: int = 5) -> Measured:
    """Copy an array of `megabytes` (10⁶ B) into another, in equal parts by `threads` (all cores by default).

    The work is the bytes read and written, in B. Arrays that fit into a cache measure the cache.

    >>> bandwidth(megabytes=1, threads=1, repeats=1).unit
    'B'
    """
    source = np.ones(megabytes * MB // 8)
    target = np.zeros_like(source)
    threads = threads or os.cpu_count() or 1
    with ThreadPoolExecutor(threads) as pool:
        return timed(lambda: copy(target, source, pool, threads), source.nbytes + target.nbytes, "B", repeats)


def copy(target: np.ndarray, source: np.ndarray, pool: ThreadPoolExecutor, parts: int) -> None:
    """Copy in `parts`, each by a thread of the pool: NumPy copies without holding the interpreter."""
    pairs = zip(np.array_split(target, parts), np.array_split(source, parts), strict=True)
    list(pool.map(lambda pair: np.copyto(*pair), pairs))


def flops(n: int = 1536, dtype: str = "float32", repeats: int = 5) -> Measured:
    """Multiply two `n` × `n` matrices of `dtype` with NumPy's BLAS, `repeats` times: 2 · n³ FLOP each.

    >>> flops(n=64, repeats=1).work
    524288.0
    """
    numbers = np.random.default_rng(0)
    a, b = (numbers.random((n, n)).astype(dtype) for _ in range(2))
    out = np.empty((n, n), dtype)
    return timed(lambda: np.matmul(a, b, out=out), 2.0 * n**3, "FLOP", repeats)


def steps(count: int, megabytes: int = 64, threads: int | None = None, repeats: int = 5) -> Measured:
    """Do `count` steps y = y · x + c on each float32 number of an array: 2 · `count` FLOP for 8 bytes moved.

    So the intensity is count / 4 FLOP/B. `count` must be a multiple of 4; the work is in FLOP.
    Raises ValueError for another count.

    >>> steps(4, megabytes=1, threads=1, repeats=1).unit
    'FLOP'
    """
    if count < 4 or count % 4:
        raise ValueError(f"the number of steps must be a multiple of 4, at least 4; got {count}")
    source = np.full(megabytes * MB // 4, 0.5, np.float32)
    target = np.zeros_like(source)
    threads = threads or os.cpu_count() or 1
    run = _stepper()
    with ThreadPoolExecutor(threads) as pool:
        pairs = list(zip(np.array_split(target, threads), np.array_split(source, threads), strict=True))
        return timed(
            lambda: list(pool.map(lambda pair: run(pair[0], pair[1], count // 4), pairs)),
            2.0 * count * source.size,
            "FLOP",
            repeats,
        )


@cache
def _stepper() -> Callable[[np.ndarray, np.ndarray, int], None]:
    from numba import njit

    @njit(nogil=True, fastmath=True)
    def stepper(target, source, rounds):  # type: ignore[no-untyped-def]
        block = 1024  # 4 KB of each array stay in the L1 while the steps go over them
        c = np.float32(0.25)
        for first in range(0, source.size, block):
            x, y = source[first : first + block], target[first : first + block]
            y[:] = x
            for _ in range(rounds):
                for i in range(x.size):
                    once = (y[i] * x[i] + c) * x[i] + c
                    y[i] = (once * x[i] + c) * x[i] + c

    return stepper


def roofline(dtype: str = "float32") -> Roofline:
    """The roofline of this CPU for `dtype`, from `bandwidth` and `flops`; its name is ``this CPU``.

    >>> roofline("float32").ridge  # doctest: +SKIP
    41.7
    """
    return Roofline("this CPU", dtype, flops(dtype=dtype).rate, bandwidth().rate)
