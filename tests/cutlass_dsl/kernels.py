"""Kernels and host functions in CuTe DSL that several tests launch."""

from __future__ import annotations

import math

from cuda.bindings.driver import CUstream

from gpulab import cutlass
from gpulab.cutlass import cute
from gpulab.cutlass.cute.nvgpu import cpasync, warp


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, n: cutlass.Int32):
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    if i < n:
        c[i] = a[i] + b[i]


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    n = cute.size(a)
    add_kernel(a, b, c, n).launch(grid=((n + 127) // 128, 1, 1), block=(128, 1, 1))


@cute.kernel
def double_kernel(a: cute.Tensor, c: cute.Tensor):
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    c[i] = a[i] * 2.0


@cute.jit
def double_without_guard(a: cute.Tensor, c: cute.Tensor, blocks: cutlass.Int32):
    double_kernel(a, c).launch(grid=(blocks, 1, 1), block=(128, 1, 1))


@cute.kernel
def racing_kernel(c: cute.Tensor):
    c[0] = cutlass.Float32(cute.arch.thread_idx()[0])


@cute.jit
def racing(c: cute.Tensor):
    racing_kernel(c).launch(grid=(1, 1, 1), block=(64, 1, 1))


@cute.kernel
def printing_kernel(a: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    if i == 2:
        cute.printf("element {} is {}", i, a[i])


@cute.jit
def printing(a: cute.Tensor):
    printing_kernel(a).launch(grid=(1, 1, 1), block=(4, 1, 1))


@cute.kernel
def reversing_kernel(a: cute.Tensor, c: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    tile = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(64))
    tile[i] = a[i]
    cute.arch.sync_threads()
    c[i] = tile[63 - i]


@cute.jit
def reversing(a: cute.Tensor, c: cute.Tensor):
    reversing_kernel(a, c).launch(grid=(1, 1, 1), block=(64, 1, 1))


@cute.kernel
def doubling_rows_kernel(a: cute.Tensor, c: cute.Tensor):
    row, column = cute.arch.block_idx()[0], cute.arch.thread_idx()[0]
    c[row, column] = a[row, column] * 2.0


@cute.jit
def doubling_rows(a: cute.Tensor, c: cute.Tensor):
    doubling_rows_kernel(a, c).launch(grid=(a.shape[0], 1, 1), block=(a.shape[1], 1, 1))


@cute.kernel
def halving_kernel(a: cute.Tensor, c: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    c[i] = (a[i].to(cutlass.Float32) * 0.5).to(c.element_type)


@cute.jit
def halving(a: cute.Tensor, c: cute.Tensor):
    halving_kernel(a, c).launch(grid=(1, 1, 1), block=(64, 1, 1))


@cute.kernel
def wrong_kernel(c: cute.Tensor):
    c[0] = c[1] + "x"


@cute.jit
def wrong(c: cute.Tensor):
    wrong_kernel(c).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.jit
def show_on_host(a: cute.Tensor):
    cute.print_tensor(a)


@cute.kernel
def clustered_kernel(c: cute.Tensor):
    c[cute.arch.block_idx()[0]] = 1.0


@cute.jit
def clustered(c: cute.Tensor):
    clustered_kernel(c).launch(grid=(2, 1, 1), block=(32, 1, 1), cluster=(2, 1, 1))


@cute.kernel
def tiles_kernel(load: cute.CopyAtom, source: cute.Tensor, result: cute.Tensor, box: cutlass.Constexpr):
    """Each block fetches one tile of `source` by TMA and writes it to `result`."""
    memory = cutlass.memory.SmemAllocator()
    tile = memory.allocate_tensor(cutlass.Float32, cute.make_layout(box), 128)
    barrier = memory.allocate_array(cutlass.Int64, 1)
    thread = cute.arch.thread_idx()[0]
    here = cute.arch.block_idx()[0]
    if thread == 0:
        cute.arch.mbarrier_init(barrier, 1)
        cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    pieces = cute.local_tile(source, box, (None, None))
    to, of = cpasync.tma_partition(
        load, 0, cute.make_layout(1), cute.group_modes(tile, 0, 2), cute.group_modes(pieces, 0, 2)
    )
    if thread == 0:
        cute.arch.mbarrier_arrive_and_expect_tx(barrier, 4 * cute.size(tile))
    if cute.arch.warp_idx() == 0:
        cute.copy(load, of[None, 0, here], to, tma_bar_ptr=barrier)
    cute.arch.mbarrier_wait(barrier, 0)
    for i in range(thread, cute.size(tile), 32):
        result[i, here] = tile[i]


@cute.jit
def tiles(source: cute.Tensor, result: cute.Tensor, box: cutlass.Constexpr):
    atom, coordinates = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SOp(), source, cute.make_layout(box), box
    )
    tiles_kernel(atom, coordinates, result, box).launch(
        grid=(cute.ceil_div(source.shape[1], box[1]), 1, 1), block=(32, 1, 1)
    )


@cute.kernel
def nothing_kernel(c: cute.Tensor):
    c[0] = cutlass.Float32(1)


@cute.jit
def cooperative(c: cute.Tensor, blocks: cutlass.Int32):
    nothing_kernel(c).launch(grid=(blocks, 1, 1), block=(1, 1, 1), cooperative=True)


@cute.kernel
def copying_kernel(a: cute.Tensor, c: cute.Tensor, move: cute.TiledCopy):
    mine = move.get_slice(cute.arch.thread_idx()[0])
    source = mine.partition_S(a)
    held = cute.make_rmem_tensor_like(source)
    cute.copy(move, source, held)
    cute.copy(move, held, mine.partition_D(c))


@cute.jit
def copying(a: cute.Tensor, c: cute.Tensor):
    """512 floats in pieces of 128 bits."""
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=128)
    move = cute.make_tiled_copy_tv(atom, cute.make_layout(128), cute.make_layout(4))
    copying_kernel(a, c, move).launch(grid=(1, 1, 1), block=(128, 1, 1))


@cute.jit
def copying_what_lies_apart(a: cute.Tensor, c: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.Float32, num_bits_per_copy=128)
    move = cute.make_tiled_copy_tv(atom, cute.make_layout(128), cute.make_layout(4, stride=128))
    copying_kernel(a, c, move).launch(grid=(1, 1, 1), block=(128, 1, 1))


@cute.kernel
def not_retiled_kernel(a: cute.Tensor, mma: cute.TiledMma):
    t = cute.arch.thread_idx()[0]
    tile = cutlass.memory.SmemAllocator().allocate_tensor(
        cutlass.Float16, cute.make_layout((16, 16), stride=(16, 1)), 128
    )
    held = mma.make_fragment_A(mma.get_slice(t).partition_A(tile))
    move = cute.make_tiled_copy_A(cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cutlass.Float16), mma)
    cute.copy(move, move.get_slice(t).partition_S(tile), held)


@cute.jit
def not_retiled(a: cute.Tensor):
    op = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    not_retiled_kernel(a, cute.make_tiled_mma(op)).launch(grid=(1, 1, 1), block=(32, 1, 1))


@cute.kernel
def racing_in_a_tile_kernel(c: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    tile = cutlass.memory.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(64))
    tile[i] = cutlass.Float32(i)
    c[i] = tile[63 - i]


@cute.jit
def racing_in_a_tile(c: cute.Tensor):
    racing_in_a_tile_kernel(c).launch(grid=(1, 1, 1), block=(64, 1, 1))


@cute.kernel
def adding_when_allowed_kernel(a: cute.Tensor, c: cute.Tensor):
    i = cute.arch.block_idx()[0] * 32 + cute.arch.thread_idx()[0]
    cute.arch.griddepcontrol_wait()
    c[i] = c[i] + a[i]
    cute.arch.griddepcontrol_launch_dependents()


@cute.jit
def adding_one_after_another(a: cute.Tensor, c: cute.Tensor, times: cutlass.Int32, stream: CUstream):
    for _ in range(times):
        adding_when_allowed_kernel(a, c).launch(
            grid=(cute.size(a) // 32, 1, 1), block=(32, 1, 1), stream=stream, use_pdl=True
        )


@cute.kernel
def syncing_clusters_kernel(c: cute.Tensor):
    cute.arch.cluster_arrive()
    cute.arch.cluster_wait()
    c[0] = cutlass.Float32(1)


@cute.jit
def syncing_clusters(c: cute.Tensor):
    syncing_clusters_kernel(c).launch(grid=(1, 1, 1), block=(1, 1, 1))


@cute.kernel
def half_an_index_kernel(c: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    c[i / 2] = cutlass.Float32(1)


@cute.jit
def half_an_index(c: cute.Tensor):
    half_an_index_kernel(c).launch(grid=(1, 1, 1), block=(2, 1, 1))


@cute.kernel
def three_indices_kernel(c: cute.Tensor):
    i = cute.arch.thread_idx()
    c[i] = cutlass.Float32(1)


@cute.jit
def three_indices(c: cute.Tensor):
    three_indices_kernel(c).launch(grid=(1, 1, 1), block=(2, 1, 1))


@cute.kernel
def pythons_math_kernel(c: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    c[i] = math.sqrt(c[i])


@cute.jit
def pythons_math(c: cute.Tensor):
    pythons_math_kernel(c).launch(grid=(1, 1, 1), block=(2, 1, 1))


@cute.kernel
def leaving_early_kernel(c: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    if i > 0:
        return
    c[i] = cutlass.Float32(1)


@cute.jit
def leaving_early(c: cute.Tensor):
    leaving_early_kernel(c).launch(grid=(1, 1, 1), block=(2, 1, 1))


def not_a_kernel(c: cute.Tensor):
    c[0] = cutlass.Float32(1)


@cute.jit
def launching_what_is_no_kernel(c: cute.Tensor):
    not_a_kernel(c).launch(grid=(1, 1, 1), block=(1, 1, 1))
