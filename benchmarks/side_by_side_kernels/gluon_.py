"""The kernels in Gluon."""

from gpulab import triton
from gpulab.triton.experimental import gluon
from gpulab.triton.experimental.gluon import language as gl
from gpulab.triton.experimental.gluon.language.nvidia.ampere import mma_v2


@gluon.jit
def add_kernel(a, b, c, n, BLOCK: gl.constexpr):
    four: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    i = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, four)
    gl.store(c + i, gl.load(a + i, i < n) + gl.load(b + i, i < n), i < n)


def add(a, b, c):
    add_kernel[(triton.cdiv(c.size, 1024),)](a, b, c, c.size, BLOCK=1024)


@gluon.jit
def transpose_kernel(x, y, rows, columns, B: gl.constexpr):
    along: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])
    down: gl.constexpr = gl.BlockedLayout([4, 1], [8, 4], [1, 4], [0, 1])
    i = gl.program_id(1) * B + gl.arange(0, B, gl.SliceLayout(1, along))
    j = gl.program_id(0) * B + gl.arange(0, B, gl.SliceLayout(0, along))
    tile = gl.convert_layout(gl.load(x + i[:, None] * columns + j[None, :]), down)
    i = gl.program_id(1) * B + gl.arange(0, B, gl.SliceLayout(1, down))
    j = gl.program_id(0) * B + gl.arange(0, B, gl.SliceLayout(0, down))
    gl.store(y + j[None, :] * rows + i[:, None], tile)


def transpose(x, y):
    rows, columns = x.shape
    transpose_kernel[(columns // 32, rows // 32)](x, y, rows, columns, B=32)


@gluon.jit
def softmax_kernel(x, y, N: gl.constexpr):
    four: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    i = gl.program_id(0) * N + gl.arange(0, N, four)
    row = gl.load(x + i)
    e = gl.exp(row - gl.max(row, 0))
    gl.store(y + i, e / gl.sum(e, 0))


def softmax(x, y):
    softmax_kernel[(x.shape[0],)](x, y, N=x.shape[1])


@gluon.jit
def load_tile(x, row, column, width, R: gl.constexpr, C: gl.constexpr):
    """A tile of R rows and C columns, eight halves to a thread at once."""
    eight: gl.constexpr = gl.BlockedLayout([1, 8], [256 // C, C // 8], [4, 1], [1, 0])
    i = row + gl.arange(0, R, gl.SliceLayout(1, eight))
    j = column + gl.arange(0, C, gl.SliceLayout(0, eight))
    return gl.load(x + i[:, None] * width + j[None, :])


@gluon.jit
def store_tile(y, tile, row, column, width, R: gl.constexpr, C: gl.constexpr, layout: gl.constexpr):
    i = row + gl.arange(0, R, gl.SliceLayout(1, layout))
    j = column + gl.arange(0, C, gl.SliceLayout(0, layout))
    gl.store(y + i[:, None] * width + j[None, :], tile)


@gluon.jit
def matmul_kernel(a, b, c, n, k, B: gl.constexpr, K: gl.constexpr):
    sums: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [2, 2], [16, 8])
    row, column = gl.program_id(1) * B, gl.program_id(0) * B
    total = gl.zeros((B, B), gl.float32, sums)
    for at in range(0, k, K):
        left = gl.convert_layout(load_tile(a, row, at, k, B, K), gl.DotOperandLayout(0, sums, 2))
        right = gl.convert_layout(load_tile(b, at, column, n, K, B), gl.DotOperandLayout(1, sums, 2))
        total = mma_v2(left, right, total)
    store_tile(c, total, row, column, n, B, B, sums)


def matmul(a, b, c):
    n, k = c.shape[1], a.shape[1]
    matmul_kernel[(n // 64, c.shape[0] // 64)](a, b, c, n, k, B=64, K=32)


@gluon.jit
def attention_kernel(q, k, v, out, n, D: gl.constexpr, B: gl.constexpr):
    sums: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [4, 1], [16, 8])
    left: gl.constexpr = gl.DotOperandLayout(0, sums, 2)
    right: gl.constexpr = gl.DotOperandLayout(1, sums, 2)
    of_rows: gl.constexpr = gl.SliceLayout(1, sums)
    first = gl.program_id(0) * B
    query = gl.convert_layout(load_tile(q, first, 0, D, B, D), left)
    top = gl.full((B,), -float("inf"), gl.float32, of_rows)
    total = gl.zeros((B,), gl.float32, of_rows)
    mixed = gl.zeros((B, D), gl.float32, sums)
    for at in range(0, n, B):
        keys = gl.convert_layout(gl.permute(load_tile(k, at, 0, D, B, D), (1, 0)), right)
        scores = mma_v2(query, keys, gl.zeros((B, B), gl.float32, sums)) * 0.125
        new_top = gl.maximum(top, gl.max(scores, 1))
        weights, shrink = gl.exp(scores - new_top[:, None]), gl.exp(top - new_top)
        total = total * shrink + gl.sum(weights, 1)
        values = gl.convert_layout(load_tile(v, at, 0, D, B, D), right)
        mixed = mma_v2(gl.convert_layout(weights.to(gl.float16), left), values, mixed * shrink[:, None])
        top = new_top
    store_tile(out, mixed / total[:, None], first, 0, D, B, D, sums)


def attention(q, k, v, out):
    attention_kernel[(q.shape[0] // 64,)](q, k, v, out, q.shape[0], D=64, B=64)
