"""The kernels in CuTe DSL."""

from gpulab import cutlass
from gpulab.cutlass import cute
from gpulab.cutlass.cute.nvgpu import warp
from gpulab.cutlass.cute.runtime import from_dlpack


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    i = cute.arch.block_idx()[0] * 256 + cute.arch.thread_idx()[0]
    if i < cute.size(c):
        c[i] = a[i] + b[i]


@cute.jit
def launch_add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    blocks = (cute.size(c) + 255) // 256
    add_kernel(a, b, c).launch(grid=(blocks, 1, 1), block=(256, 1, 1))


def add(a, b, c):
    launch_add(*map(from_dlpack, (a, b, c)))


@cute.kernel
def transpose_kernel(x: cute.Tensor, y: cute.Tensor):
    layout = cute.make_layout((32, 32), stride=(33, 1))
    tile = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, layout)
    i, j, _ = cute.arch.thread_idx()
    column, row, _ = cute.arch.block_idx()
    source = cute.local_tile(x, (32, 32), (row, column))
    target = cute.local_tile(y, (32, 32), (column, row))
    for k in cutlass.range_constexpr(0, 32, 8):
        tile[j + k, i] = source[j + k, i]
    cute.arch.sync_threads()
    for k in cutlass.range_constexpr(0, 32, 8):
        target[j + k, i] = tile[i, j + k]


@cute.jit
def launch_transpose(x: cute.Tensor, y: cute.Tensor):
    grid = (x.shape[1] // 32, x.shape[0] // 32, 1)
    transpose_kernel(x, y).launch(grid=grid, block=(32, 8, 1))


def transpose(x, y):
    launch_transpose(from_dlpack(x), from_dlpack(y))


@cute.kernel
def softmax_kernel(x: cute.Tensor, y: cute.Tensor):
    row, lane, n = cute.arch.block_idx()[0], cute.arch.thread_idx()[0], x.shape[1]
    top = cutlass.Float32(-float("inf"))
    for i in range(lane, n, 32):
        top = cute.arch.fmax(top, x[row, i])
    top = cute.arch.warp_reduction_max(top)
    total = cutlass.Float32(0)
    for i in range(lane, n, 32):
        total += cute.math.exp(x[row, i] - top)
    total = cute.arch.warp_reduction_sum(total)
    for i in range(lane, n, 32):
        y[row, i] = cute.math.exp(x[row, i] - top) / total


@cute.jit
def launch_softmax(x: cute.Tensor, y: cute.Tensor):
    softmax_kernel(x, y).launch(grid=(x.shape[0], 1, 1), block=(32, 1, 1))


def softmax(x, y):
    launch_softmax(from_dlpack(x), from_dlpack(y))


@cute.kernel
def matmul_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma):
    column, row, _ = cute.arch.block_idx()
    mine = mma.get_slice(cute.arch.thread_idx()[0])
    left = mine.partition_A(cute.local_tile(a, (64, 64), (row, None)))
    right = mine.partition_B(cute.local_tile(b, (64, 64), (column, None)))
    held_left = mma.make_fragment_A(left[None, None, None, 0])
    held_right = mma.make_fragment_B(right[None, None, None, 0])
    total = cute.make_rmem_tensor(mine.partition_shape_C((64, 64)), cutlass.Float32)
    total.fill(0.0)
    for k in range(a.shape[1] // 64):
        cute.autovec_copy(left[None, None, None, k], held_left)
        cute.autovec_copy(right[None, None, None, k], held_right)
        cute.gemm(mma, total, held_left, held_right, total)
    cute.autovec_copy(total, mine.partition_C(cute.local_tile(c, (64, 64), (row, column))))


@cute.jit
def launch_matmul(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    op = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))
    k, n = b.shape
    columns = cute.make_tensor(b.iterator, cute.make_layout((n, k), stride=(1, n)))  # CuTe's B is (n, k)
    matmul_kernel(a, columns, c, mma).launch(grid=(n // 64, a.shape[0] // 64, 1), block=(128, 1, 1))


def matmul(a, b, c):
    launch_matmul(*(from_dlpack(x, assumed_align=16) for x in (a, b, c)))


@cute.kernel
def attention_kernel(q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, out: cute.Tensor):
    row, lane = cute.arch.block_idx()[0], cute.arch.thread_idx()[0]
    q0, q1 = cutlass.Float32(q[row, lane]), cutlass.Float32(q[row, lane + 32])
    top, total = cutlass.Float32(-float("inf")), cutlass.Float32(0)
    mixed0, mixed1 = cutlass.Float32(0), cutlass.Float32(0)
    for j in range(k.shape[0]):
        score = q0 * cutlass.Float32(k[j, lane]) + q1 * cutlass.Float32(k[j, lane + 32])
        score = cute.arch.warp_reduction_sum(score) * 0.125
        new_top = cute.arch.fmax(top, score)
        weight, shrink = cute.math.exp(score - new_top), cute.math.exp(top - new_top)
        total = total * shrink + weight
        mixed0 = mixed0 * shrink + weight * cutlass.Float32(v[j, lane])
        mixed1 = mixed1 * shrink + weight * cutlass.Float32(v[j, lane + 32])
        top = new_top
    out[row, lane] = mixed0 / total
    out[row, lane + 32] = mixed1 / total


@cute.jit
def launch_attention(q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, out: cute.Tensor):
    attention_kernel(q, k, v, out).launch(grid=(q.shape[0], 1, 1), block=(32, 1, 1))


def attention(q, k, v, out):
    launch_attention(*map(from_dlpack, (q, k, v, out)))
