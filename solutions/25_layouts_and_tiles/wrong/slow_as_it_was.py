# exercise: layout.slow  fails: sectors  says: lanes of a warp
from gpulab import cutlass
from gpulab.cutlass import cute
from gpulab.cutlass.cute.runtime import from_dlpack


@cute.kernel
def double_kernel(x: cute.Tensor, y: cute.Tensor, move: cute.TiledCopy):
    row, column, _ = cute.arch.block_idx()
    mine = move.get_slice(cute.arch.thread_idx()[0])
    source = mine.partition_S(cute.local_tile(x, (32, 32), (row, column)))
    held = cute.make_rmem_tensor_like(source)
    cute.copy(move, source, held)
    held.store(2.0 * held.load())
    cute.copy(move, held, mine.partition_D(cute.local_tile(y, (32, 32), (row, column))))


@cute.jit
def launch_slow(x: cute.Tensor, y: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32)
    move = cute.make_tiled_copy_tv(atom, cute.make_layout((32, 4)), cute.make_layout((1, 1)))
    grid = (x.shape[0] // 32, x.shape[1] // 32, 1)
    double_kernel(x, y, move).launch(grid=grid, block=(128, 1, 1))


def slow(x, y):
    launch_slow(from_dlpack(x), from_dlpack(y))
