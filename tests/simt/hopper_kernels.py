"""Triton kernels that are compiled for Hopper, to look at what the compiler writes. Not run."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def product(a, b, c, n, k, transposed: tl.constexpr):
    left = tl.make_tensor_descriptor(a, shape=[64, k], strides=[k, 1], block_shape=[64, 64])
    right = tl.make_tensor_descriptor(
        b,
        shape=[n, k] if transposed else [k, n],
        strides=[k, 1] if transposed else [n, 1],
        block_shape=[128, 64] if transposed else [64, 128],
    )
    result = tl.make_tensor_descriptor(c, shape=[64, n], strides=[n, 1], block_shape=[64, 128])
    column = tl.program_id(0) * 128
    total = tl.zeros((64, 128), tl.float32)
    for i in range(0, k, 64):
        x = left.load([0, i])
        y = right.load([column, i]).T if transposed else right.load([i, column])
        total = tl.dot(x, y, total)
    result.store([0, column], total.to(tl.float16))
