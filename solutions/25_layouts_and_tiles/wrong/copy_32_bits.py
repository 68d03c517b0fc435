# exercise: layout.copy  fails: load requests  says: how many bits
from gpulab import cutlass
from gpulab.cutlass import cute
from gpulab.cutlass.cute.runtime import from_dlpack


@cute.kernel
def copy_kernel(x: cute.Tensor, y: cute.Tensor, move: cute.TiledCopy):
    thread, block = cute.arch.thread_idx()[0], cute.arch.block_idx()[0]
    mine = move.get_slice(thread)
    source = mine.partition_S(x[None, block])
    held = cute.make_rmem_tensor_like(source)
    cute.copy(move, source, held)
    cute.copy(move, held, mine.partition_D(y[None, block]))


@cute.jit
def launch_copy(x: cute.Tensor, y: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=32)
    move = cute.make_tiled_copy_tv(atom, cute.make_layout(128), cute.make_layout(4))
    x, y = cute.zipped_divide(x, (512,)), cute.zipped_divide(y, (512,))
    copy_kernel(x, y, move).launch(grid=(x.shape[1][0], 1, 1), block=(128, 1, 1))


def copy(x, y):
    launch_copy(from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16))
