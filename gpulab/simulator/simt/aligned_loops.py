"""Compiled code that adds as tensor cores do. Import it only to compile it: it imports the compiler."""

from __future__ import annotations

from typing import Any

import numpy as np

from .llvm import OCTET, add_cut_products, keep_largest_products


def cut_and_add(
    a: Any, b: Any, c: Any, a_powers: Any, b_powers: Any, tops: Any, steps: float, out: Any
) -> None:
    """The sums of `compiled.aligned_sum`, one row of a product after the other.

    B is turned first, so that eight numbers of a row can be handled together. A row is filled up with zeros.
    """
    count, rows, depth = a.shape
    columns = b.shape[1]
    width = (columns + OCTET - 1) // OCTET * OCTET
    turned, turned_powers = np.zeros((depth, width)), np.zeros((depth, width))
    top, scale, sums = np.ones(width), np.zeros(width), np.zeros(width)
    size = sums.itemsize
    row = width * size
    for n in range(count):
        for k in range(depth):
            for j in range(columns):
                turned[k, j], turned_powers[k, j] = b[n, j, k], b_powers[n, j, k]
        for i in range(rows):
            for j in range(columns):
                top[j] = tops[n, i, j]
            x = a_powers.ctypes.data + n * a_powers.strides[0] + i * a_powers.strides[1]
            for at in range(0, row, OCTET * size):
                to, factors = top.ctypes.data + at, turned_powers.ctypes.data + at
                keep_largest_products(to, top, depth, x, a_powers.strides[2], factors, row)
            for j in range(columns):
                scale[j] = steps / top[j]
                sums[j] = np.trunc(c[n, i, j] * scale[j])
            x = a.ctypes.data + n * a.strides[0] + i * a.strides[1]
            for at in range(0, row, OCTET * size):
                to, scales, factors = sums.ctypes.data + at, scale.ctypes.data + at, turned.ctypes.data + at
                add_cut_products(to, top, depth, x, a.strides[2], factors, row, scales)
            for j in range(columns):
                out[n, i, j] = sums[j] * top[j] / steps
