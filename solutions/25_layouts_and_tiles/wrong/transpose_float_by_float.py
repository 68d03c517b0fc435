# exercise: layout.transpose  fails: stores to shared memory  says: how many bits
from gpulab import cutlass
from gpulab.cutlass import cute
from gpulab.cutlass.cute.runtime import from_dlpack


@cute.kernel
def transpose_kernel(x: cute.Tensor, y: cute.Tensor, layout: cute.ComposedLayout, move: cute.TiledCopy):
    row, column, _ = cute.arch.block_idx()
    mine = move.get_slice(cute.arch.thread_idx()[0])
    tile = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, layout, 128)
    turned = cute.composition(tile, cute.make_layout((32, 32), stride=(32, 1)))
    source = mine.partition_S(cute.local_tile(x, (32, 32), (row, column)))
    held = cute.make_rmem_tensor_like(source)
    cute.copy(move, source, held)
    cute.autovec_copy(held, mine.partition_D(tile))
    cute.arch.sync_threads()
    cute.autovec_copy(mine.partition_S(turned), held)
    cute.copy(move, held, mine.partition_D(cute.local_tile(y, (32, 32), (column, row))))


@cute.jit
def launch_transpose(x: cute.Tensor, y: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=128)
    plain = cute.make_layout((32, 32), stride=(32, 1))
    layout = cute.make_composed_layout(cute.make_swizzle(5, 0, 5), 0, plain)
    move = cute.make_tiled_copy_tv(atom, cute.make_layout((32, 8), stride=(8, 1)), cute.make_layout((1, 4)))
    grid = (x.shape[0] // 32, x.shape[1] // 32, 1)
    transpose_kernel(x, y, layout, move).launch(grid=grid, block=(256, 1, 1))


def transpose(x, y):
    launch_transpose(from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16))
