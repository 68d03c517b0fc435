# exercise: tiles.hopper  fails: right  says: should be
from gpulab import cutlass
from gpulab.cutlass import cute
from gpulab.cutlass.cute.nvgpu import cpasync, warpgroup
from gpulab.cutlass.cute.runtime import from_dlpack

HALF, FLOAT = cutlass.Float16, cutlass.Float32


@cute.kernel
def hopper_kernel(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    mma: cute.TiledMma,
    load_a: cute.CopyAtom,
    load_b: cute.CopyAtom,
    layout: cute.ComposedLayout,
):
    t = cute.arch.thread_idx()[0]
    row, column, _ = cute.arch.block_idx()
    memory = cutlass.memory.SmemAllocator()
    tile_a = memory.allocate_tensor(HALF, layout.outer, 1024, layout.inner)
    tile_b = memory.allocate_tensor(HALF, layout.outer, 1024, layout.inner)
    full = memory.allocate_array(cutlass.Int64, 1)
    if t == 0:
        cute.arch.mbarrier_init(full, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    a_steps, b_steps = cute.local_tile(a, (64, 64), (row, None)), cute.local_tile(b, (64, 64), (column, None))
    one = cute.make_layout(1)
    to_a, of_a = cpasync.tma_partition(
        load_a, 0, one, cute.group_modes(tile_a, 0, 2), cute.group_modes(a_steps, 0, 2)
    )
    to_b, of_b = cpasync.tma_partition(
        load_b, 0, one, cute.group_modes(tile_b, 0, 2), cute.group_modes(b_steps, 0, 2)
    )
    mine = mma.get_slice(t)
    held_a, held_b = (
        mma.make_fragment_A(mine.partition_A(tile_a)),
        mma.make_fragment_B(mine.partition_B(tile_b)),
    )
    sums = cute.make_rmem_tensor(mine.partition_shape_C((64, 64)), FLOAT)
    mma.set(warpgroup.Field.ACCUMULATE, False)
    for k in range(cute.size(a_steps, mode=[2])):
        if cute.arch.warp_idx() == 0:
            with cute.arch.elect_one():
                cute.arch.mbarrier_arrive_and_expect_tx(full, 2 * 64 * 64 * 2)
            cute.copy(load_a, of_a[None, k], to_a, tma_bar_ptr=full)
            cute.copy(load_b, of_b[None, k], to_b, tma_bar_ptr=full)
        cute.arch.mbarrier_wait(full, k % 2)
        warpgroup.fence()
        for i in cutlass.range_constexpr(4):
            cute.gemm(mma, sums, held_a[None, None, 0], held_b[None, None, 0], sums)
            mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        cute.arch.sync_threads()
    cute.autovec_copy(sums, mine.partition_C(cute.local_tile(c, (64, 64), (row, column))))


@cute.jit
def launch_hopper(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    K = cute.nvgpu.OperandMajorMode.K
    source = warpgroup.OperandSource.SMEM
    mma = cute.make_tiled_mma(warpgroup.MmaF16BF16Op(HALF, FLOAT, (64, 64, 16), source, K, K))
    swizzled = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, HALF)
    layout = cute.tile_to_shape(swizzled, (64, 64), (0, 1))
    tma = cpasync.CopyBulkTensorTileG2SOp()
    load_a, at_a = cpasync.make_tiled_tma_atom(tma, a, layout, (64, 64))
    load_b, at_b = cpasync.make_tiled_tma_atom(tma, b, layout, (64, 64))
    grid = (a.shape[0] // 64, b.shape[0] // 64, 1)
    hopper_kernel(at_a, at_b, c, mma, load_a, load_b, layout).launch(grid=grid, block=(128, 1, 1))


def hopper(a, b, c):
    launch_hopper(*(from_dlpack(x, assumed_align=16) for x in (a, b, c)))
