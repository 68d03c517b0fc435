# exercise: tiles.hopper  fails: products  says: atom
from gpulab import cutlass
from gpulab.cutlass import cute
from gpulab.cutlass.cute.nvgpu import cpasync, warp
from gpulab.cutlass.cute.runtime import from_dlpack

HALF, FLOAT = cutlass.Float16, cutlass.Float32


@cute.kernel
def gemm_kernel(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    mma: cute.TiledMma,
    move: cute.TiledCopy,
    layout: cute.ComposedLayout,
):
    t = cute.arch.thread_idx()[0]
    row, column, _ = cute.arch.block_idx()
    memory = cutlass.memory.SmemAllocator()
    tile_a, tile_b = memory.allocate_tensor(HALF, layout, 128), memory.allocate_tensor(HALF, layout, 128)
    a_steps, b_steps = cute.local_tile(a, (64, 64), (row, None)), cute.local_tile(b, (64, 64), (column, None))
    mine, mover = mma.get_slice(t), move.get_slice(t)
    held_a, held_b = (
        mma.make_fragment_A(mine.partition_A(tile_a)),
        mma.make_fragment_B(mine.partition_B(tile_b)),
    )
    sums = cute.make_rmem_tensor(mine.partition_shape_C((64, 64)), FLOAT)
    sums.fill(0.0)
    matrices = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), HALF)
    load_a, load_b = cute.make_tiled_copy_A(matrices, mma), cute.make_tiled_copy_B(matrices, mma)
    left, right = load_a.get_slice(t), load_b.get_slice(t)
    of_a, of_b = mover.partition_S(a_steps), mover.partition_S(b_steps)
    for k in range(a.shape[1] // 64):
        cute.copy(move, of_a[None, None, None, k], mover.partition_D(tile_a))
        cute.copy(move, of_b[None, None, None, k], mover.partition_D(tile_b))
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.arch.sync_threads()
        cute.copy(load_a, left.partition_S(tile_a), left.retile(held_a))
        cute.copy(load_b, right.partition_S(tile_b), right.retile(held_b))
        cute.gemm(mma, sums, held_a, held_b, sums)
        cute.arch.sync_threads()
    cute.autovec_copy(sums, mine.partition_C(cute.local_tile(c, (64, 64), (row, column))))


@cute.jit
def launch_gemm(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    op = warp.MmaF16BF16Op(HALF, FLOAT, (16, 8, 16))
    mma = cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), HALF, num_bits_per_copy=128)
    move = cute.make_tiled_copy_tv(atom, cute.make_layout((16, 8), stride=(8, 1)), cute.make_layout((1, 8)))
    plain = cute.make_layout((64, 64), stride=(64, 1))
    layout = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, plain)
    grid = (a.shape[0] // 64, b.shape[0] // 64, 1)
    gemm_kernel(a, b, c, mma, move, layout).launch(grid=grid, block=(128, 1, 1))


def hopper(a, b, c):
    launch_gemm(*(from_dlpack(x, assumed_align=16) for x in (a, b, c)))
