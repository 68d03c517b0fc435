"""The kernels in CuTe DSL."""

from gpulab import cutlass
from gpulab.cutlass import cute
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
