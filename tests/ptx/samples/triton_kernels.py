"""Kernels for Triton, in KERNELS with target, types and constants: compiled by make_samples.py, never run."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def scale(out, x, a, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    tl.store(out + places, a * tl.load(x + places, inside), inside)


@triton.jit
def softmax(out, x, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    values = tl.load(x + row * width + columns, columns < width, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * width + columns, powers / tl.sum(powers, 0), columns < width)


@triton.jit
def layer_norm(out, x, gain, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    values = tl.load(x + row * width + columns, inside, other=0.0).to(tl.float32)
    mean = tl.sum(values, 0) / width
    centred = tl.where(inside, values - mean, 0.0)
    spread = tl.rsqrt(tl.sum(centred * centred, 0) / width + 1e-5)
    tl.store(out + row * width + columns, centred * spread * tl.load(gain + columns, inside), inside)


@triton.jit
def matrix_product(c, a, b, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        left = tl.load(a + rows[:, None] * k + start + inner[None, :])
        right = tl.load(b + (start + inner)[:, None] * n + columns[None, :])
        total = tl.dot(left, right, total)
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(c + rows[:, None] * n + columns[None, :], total.to(tl.float16), inside)


@triton.jit
def described_product(c, a, b, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    result = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        total = tl.dot(left.load([row, start]), right.load([start, column]), total)
    result.store([row, column], total.to(tl.float16))


@triton.jit
def histogram(bins, x, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + places, places < n, other=0)
    tl.atomic_add(bins + values, 1, places < n)


@triton.jit
def dropout(out, x, n, seed, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.rand(seed, places) > 0.5
    tl.store(out + places, tl.where(kept, tl.load(x + places, places < n) * 2, 0), places < n)


@triton.jit
def running_sum(out, x, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    tl.store(out + places, tl.cumsum(tl.load(x + places), 0))


@triton.jit
def place_of_largest(out, x, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows = tl.arange(0, ROWS)
    places = rows[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + rows, tl.argmax(tl.load(x + places), 1))


@triton.jit
def transpose(out, x, BLOCK: tl.constexpr):
    line = tl.arange(0, BLOCK)
    tile = tl.load(x + line[:, None] * BLOCK + line[None, :])
    tl.store(out + line[:, None] * BLOCK + line[None, :], tl.trans(tile))


@triton.jit
def narrowed(out, x, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    tl.store(out + places, tl.load(x + places).to(tl.float8e5).to(tl.bfloat16))


@triton.jit
def locked_sum(total, lock, x, BLOCK: tl.constexpr):
    values = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(total, tl.load(total) + tl.sum(values, 0))
    tl.atomic_xchg(lock, 0)


@triton.jit(noinline=True)
def squared(x):
    return x * x


@triton.jit
def called(out, x, BLOCK: tl.constexpr):
    places = tl.arange(0, BLOCK)
    values = tl.load(x + places) * squared(tl.load(x))
    tl.device_print("squared", values)
    tl.device_assert(values >= 0, "a square below zero")
    tl.store(out + places, values)


# Pointers marked with 16 are aligned to 16 bytes, numbers marked with 16 are multiples of 16.
KERNELS = [
    (scale, 80, {"out": "*fp32:16", "x": "*fp32:16", "a": "fp32", "n": "i32:16", "BLOCK": 512}),
    (softmax, 80, {"out": "*fp32", "x": "*fp32", "width": "i32", "BLOCK": 256}),
    (layer_norm, 80, {"out": "*fp16:16", "x": "*fp16:16", "gain": "*fp16:16", "width": "i32", "BLOCK": 512}),
    (
        matrix_product,
        80,
        {"c": "*fp16:16", "a": "*fp16:16", "b": "*fp16:16", "m": "i32:16", "n": "i32:16", "k": "i32:16"}
        | {"M": 32, "N": 32, "K": 32},
    ),
    (
        described_product,
        90,
        {"c": "*fp16:16", "a": "*fp16:16", "b": "*fp16:16", "m": "i32:16", "n": "i32:16", "k": "i32:16"}
        | {"M": 64, "N": 32, "K": 32},
    ),
    (histogram, 80, {"bins": "*i32", "x": "*i32:16", "n": "i32", "BLOCK": 128}),
    (dropout, 80, {"out": "*fp32:16", "x": "*fp32:16", "n": "i32", "seed": "i32", "BLOCK": 128}),
    (running_sum, 80, {"out": "*i64:16", "x": "*i64:16", "BLOCK": 128}),
    (place_of_largest, 80, {"out": "*i32", "x": "*fp32:16", "ROWS": 4, "COLUMNS": 64}),
    (transpose, 80, {"out": "*fp16:16", "x": "*fp16:16", "BLOCK": 32}),
    (narrowed, 80, {"out": "*bf16:16", "x": "*fp32:16", "BLOCK": 128}),
    (locked_sum, 80, {"total": "*fp32", "lock": "*i32", "x": "*fp32", "BLOCK": 128}),
    (called, 80, {"out": "*fp32", "x": "*fp32", "BLOCK": 128}),
]
