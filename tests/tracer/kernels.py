"""Kernels to step through. Those of numba run as plain Python, too, with what `plain` puts in the place of
`cuda`."""

from __future__ import annotations

from gpulab import cuda


@cuda.jit(device=True)
def twice(v):
    w = v + v
    return w


@cuda.jit
def sums(a, out, n):
    i = cuda.grid(1)
    total = 0.0
    for j in range(n):
        term = a[i] * j
        if i % 2 == 0:
            total += term
        else:
            total -= 1
    out[i] = total


@cuda.jit
def collatz(a, out, n):
    i = cuda.grid(1)
    x = a[i]
    steps = 0
    while x > 1 and steps < n:
        if x % 2 == 0:
            x = x // 2
        else:
            x = 3 * x + 1
        steps += 1
    out[i] = steps


@cuda.jit
def calls(a, out, n):
    i = cuda.grid(1)
    first = twice(a[i])
    second = twice(first + n)
    out[i] = second


@cuda.jit
def kinds(a, out, n):
    i = cuda.grid(1)
    even = i % 2 == 0
    half = a[i] / 2
    pair = (i, i + 1)
    left, right = pair
    found = n if even else left + right
    out[i] = found + half


@cuda.jit
def leaves(a, out, n):
    i = cuda.grid(1)
    if i >= n:
        return
    limit = n - i
    if limit < 2:
        out[i] = 0
        return
    out[i] = limit
