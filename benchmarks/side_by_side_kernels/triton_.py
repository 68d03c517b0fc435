"""The kernels in Triton."""

import triton.language as tl

from gpulab import triton


@triton.jit
def add_kernel(a, b, c, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(c + i, tl.load(a + i, i < n) + tl.load(b + i, i < n), i < n)


def add(a, b, c):
    add_kernel[(triton.cdiv(c.size, 1024),)](a, b, c, c.size, BLOCK=1024)


@triton.jit
def transpose_kernel(x, y, rows, columns, B: tl.constexpr):
    i = tl.program_id(1) * B + tl.arange(0, B)
    j = tl.program_id(0) * B + tl.arange(0, B)
    tile = tl.load(x + i[:, None] * columns + j[None, :])
    tl.store(y + j[:, None] * rows + i[None, :], tl.trans(tile))


def transpose(x, y):
    rows, columns = x.shape
    transpose_kernel[(columns // 32, rows // 32)](x, y, rows, columns, B=32)


@triton.jit
def softmax_kernel(x, y, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    row = tl.load(x + i)
    e = tl.exp(row - tl.max(row, 0))
    tl.store(y + i, e / tl.sum(e, 0))


def softmax(x, y):
    softmax_kernel[(x.shape[0],)](x, y, N=x.shape[1])


@triton.jit
def matmul_kernel(a, b, c, n, k, B: tl.constexpr, K: tl.constexpr):
    i = tl.program_id(1) * B + tl.arange(0, B)
    j = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.zeros((B, B), tl.float32)
    for at in range(0, k, K):
        depth = at + tl.arange(0, K)
        left = tl.load(a + i[:, None] * k + depth[None, :])
        right = tl.load(b + depth[:, None] * n + j[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + i[:, None] * n + j[None, :], total)


def matmul(a, b, c):
    n, k = c.shape[1], a.shape[1]
    matmul_kernel[(n // 64, c.shape[0] // 64)](a, b, c, n, k, B=64, K=32)


@triton.jit
def attention_kernel(q, k, v, out, n, D: tl.constexpr, B: tl.constexpr):
    rows, d = tl.program_id(0) * B + tl.arange(0, B), tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + d[None, :])
    top = tl.full((B,), -float("inf"), tl.float32)
    total = tl.zeros((B,), tl.float32)
    mixed = tl.zeros((B, D), tl.float32)
    for at in range(0, n, B):
        place = (at + tl.arange(0, B))[:, None] * D + d[None, :]
        scores = tl.dot(query, tl.trans(tl.load(k + place))) * 0.125
        new_top = tl.maximum(top, tl.max(scores, 1))
        weights, shrink = tl.exp(scores - new_top[:, None]), tl.exp(top - new_top)
        total = total * shrink + tl.sum(weights, 1)
        mixed = tl.dot(weights.to(tl.float16), tl.load(v + place), mixed * shrink[:, None])
        top = new_top
    tl.store(out + rows[:, None] * D + d[None, :], mixed / total[:, None])


def attention(q, k, v, out):
    attention_kernel[(q.shape[0] // 64,)](q, k, v, out, q.shape[0], D=64, B=64)
