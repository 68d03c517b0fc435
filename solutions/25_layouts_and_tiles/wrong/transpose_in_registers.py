# exercise: layout.transpose  fails: stores to shared memory  says: through the tile
from gpulab import cutlass
from gpulab.cutlass import cute
from gpulab.cutlass.cute.runtime import from_dlpack


@cute.kernel
def transpose_kernel(x: cute.Tensor, y: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    row = cute.arch.block_idx()[0] * 8 + t % 8
    column = cute.arch.block_idx()[1] * 8 + t // 8
    source, target = cute.local_tile(x, (4, 4), (row, column)), cute.local_tile(y, (4, 4), (column, row))
    held, turned = (
        cute.make_rmem_tensor(cute.make_layout((4, 4), stride=(4, 1)), cutlass.Float32) for _ in range(2)
    )
    for i in cutlass.range_constexpr(4):
        cute.autovec_copy(source[i, None], held[i, None])
    for i in cutlass.range_constexpr(4):
        for j in cutlass.range_constexpr(4):
            turned[j, i] = held[i, j]
    for j in cutlass.range_constexpr(4):
        cute.autovec_copy(turned[j, None], target[j, None])


@cute.jit
def launch_transpose(x: cute.Tensor, y: cute.Tensor):
    grid = (x.shape[0] // 32, x.shape[1] // 32, 1)
    transpose_kernel(x, y).launch(grid=grid, block=(64, 1, 1))


def transpose(x, y):
    launch_transpose(from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16))
