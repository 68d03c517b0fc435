# ---
# jupyter:
#   gpulab:
#     lab: "25"
#     hours: 3.5
#     topics: [C25.14, C25.15, C25.16, C25.17]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 25B · Tiles in three languages
#
# **2.5 to 4.5 hours.** You have done part A, and labs 11 (Triton), 12B (attention) and 24A (wgmma). You need no GPU:
# kernels run on a simulated **A100**, and one on a simulated **H100**.
#
# The fastest kernels of 2020 use other instructions than those of 2023 or 2025. Rewriting each kernel for each
# generation takes months, so the languages of today try to keep apart what a kernel computes and how it does it.
# They draw the line in different places. In CuTe DSL you choose every instruction and thread, in Gluon the layouts, in
# cuTile and Triton only tiles.
#
# By the end you can
#
# 1. write a matrix product with copy and MMA atoms in CuTe DSL;
# 2. bring it to Hopper by changing atoms, and say which lines must change with them;
# 3. write softmax and attention in cuTile;
# 4. count the changes of layout in a Gluon kernel, and remove those that are not needed;
# 5. say what each of six languages decides for you, and check it in the counts of a run.

# %%
import numpy as np
import triton.language as tl

import gpulab
from gpulab import cuda, cutlass, triton
from gpulab import cupy as cp
from gpulab import tile as ct
from gpulab.cutlass import cute
from gpulab.cutlass.cute.nvgpu import cpasync, warp, warpgroup
from gpulab.cutlass.cute.runtime import from_dlpack
from gpulab.triton.experimental import gluon
from gpulab.triton.experimental.gluon import language as gl

HALF, FLOAT = cutlass.Float16, cutlass.Float32
gpulab.start("25", gpu="A100")

# %% [markdown]
# ## 7 · Atoms that multiply
#
# In lab 06B a warp multiplied with tensor cores through `wmma` fragments, whose contents you could not see. The
# instruction below them, `mma.sync.m16n8k16`, says exactly which lane holds which elements of A, B and C. An **MMA atom**
# is this instruction together with the three layouts. Like a copy atom it is repeated over warps and values: a **tiled
# MMA**.
#
# **Predict.** How many halves of A does each lane hold for one product of 16 × 8 × 16?

# %%
gpulab.predict("tiles.values", ...)

# %% [markdown]
# | write | meaning |
# |---|---|
# | `warp.MmaF16BF16Op(half, float, (16, 8, 16))` | the atom: one `mma.sync` of a warp |
# | `cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))` | 2 × 2 warps, repeated to 32 × 32 × 16 |
# | `mine = mma.get_slice(t)` | what thread t does in it |
# | `mine.partition_A(x)`, `_B`, `_C` | its elements of a tile of A, B or C |
# | `mma.make_fragment_A(part)`, `_B` | registers for them |
# | `cute.make_rmem_tensor(mine.partition_shape_C((64, 64)), float)` | registers for its sums |
# | `cute.gemm(mma, sums, held_a, held_b, sums)` | sums += A · Bᵀ, atom by atom |
#
# The next cell is a complete matrix product in these terms. Each thread loads its elements straight from global memory.
# `cute.local_tile(a, (64, 64), (row, None))` has all steps of k as its third mode.


# %%
@cute.kernel
def direct_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma):
    row, column, _ = cute.arch.block_idx()
    mine = mma.get_slice(cute.arch.thread_idx()[0])
    of_a = mine.partition_A(cute.local_tile(a, (64, 64), (row, None)))
    of_b = mine.partition_B(cute.local_tile(b, (64, 64), (column, None)))
    held_a = mma.make_fragment_A(of_a[None, None, None, 0])
    held_b = mma.make_fragment_B(of_b[None, None, None, 0])
    sums = cute.make_rmem_tensor(mine.partition_shape_C((64, 64)), FLOAT)
    sums.fill(0.0)
    for k in range(a.shape[1] // 64):
        cute.autovec_copy(of_a[None, None, None, k], held_a)
        cute.autovec_copy(of_b[None, None, None, k], held_b)
        cute.gemm(mma, sums, held_a, held_b, sums)
    cute.autovec_copy(sums, mine.partition_C(cute.local_tile(c, (64, 64), (row, column))))


@cute.jit
def launch_direct(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    op = warp.MmaF16BF16Op(HALF, FLOAT, (16, 8, 16))
    mma = cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))
    grid = (a.shape[0] // 64, b.shape[0] // 64, 1)
    direct_kernel(a, b, c, mma).launch(grid=grid, block=(128, 1, 1))


def direct(a, b, c):
    launch_direct(*(from_dlpack(x, assumed_align=16) for x in (a, b, c)))


numbers = np.random.default_rng(25)
a, b = (cp.asarray(numbers.standard_normal((64, 128)).astype(np.float16)) for _ in range(2))
c = cp.empty((64, 64), cp.float32)
direct(a, b, c)
wanted = a.get().astype(np.float64) @ b.get().astype(np.float64).T
print("right:", np.allclose(c.get(), wanted, atol=1e-2))
report = gpulab.profile(direct, a, b, c)
print(f"{report['global_load_bytes']:,} bytes loaded by {report['global_load_requests']:,} requests")

# %% [markdown]
# **See.** Which thread holds which sum of a tile of 64 × 64. Every thread writes its own number through `partition_C`.


# %%
@cute.kernel
def owners_kernel(c: cute.Tensor, mma: cute.TiledMma):
    part = mma.get_slice(cute.arch.thread_idx()[0]).partition_C(c)
    for i in cutlass.range_constexpr(cute.size(part)):
        part[i] = FLOAT(cute.arch.thread_idx()[0])


@cute.jit
def launch_owners(c: cute.Tensor):
    op = warp.MmaF16BF16Op(HALF, FLOAT, (16, 8, 16))
    mma = cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))
    owners_kernel(c, mma).launch(grid=(1, 1, 1), block=(128, 1, 1))


launch_owners(from_dlpack(c))
owner = c.get().astype(int)[:16, :24]
gpulab.plot.fragments(
    {"rows 0 to 15, columns 0 to 23": (owner % 32, owner // 32)},
    "A number is the lane, a colour the warp. Four lanes share a row of 8 sums.",
)

# %% [markdown]
# In `direct` two warps load each element of A from global memory, and two each element of B, in pieces of 4 bytes.
# The remedy is the one of lab 06: bring tiles to shared memory once. An A100 has two more atoms for this.
#
# ![On an A100 three atoms move and multiply: cp.async to shared memory, ldmatrix to registers, mma.sync. On an H100 two: TMA to shared memory, wgmma.](drawings/atoms.svg)
#
# | write | meaning |
# |---|---|
# | `cute.make_copy_atom(cpasync.CopyG2SOp(), HALF, num_bits_per_copy=128)` | `cp.async`: global to shared memory, 8 halves |
# | `cute.arch.cp_async_commit_group()`, `cp_async_wait_group(0)` | wait for the copies of this thread |
# | `cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), HALF)` | `ldmatrix`: four 8 × 8 matrices to the registers of a warp |
# | `cute.make_tiled_copy_A(atom, mma)`, `_B` | a tiled copy that delivers what the MMA atom wants |
# | `load.get_slice(t).retile(held)` | for such a tiled copy `load`: registers of the MMA in the shape that it copies |
#
# Each `ldmatrix` reads rows of 16 bytes, so the tile needs a swizzle. You derived it in part A, but it counts elements
# here: a half has two bytes, so bit 4 of the address in bytes is bit 3 of the number of the element.
#
# **Do.** Write `gemm(a, b, c)`: c = a · bᵀ.
#
# - `a` is (m, k) and `b` is (n, k), both float16; `c` is (m, n) in float32. All sizes are multiples of 64.
# - A block of 128 threads, 2 × 2 warps, makes 64 × 64 of `c`. A step is 64 of k.
# - `move` is a tiled copy with the threads (16, 8):(8, 1) and the values (1, 8): 16 rows of 64 halves at a time.
# - All threads must have copied before any warp reads the tiles, and all must have read them before they are
#   copied over.
# - **Budget:** each tile loaded once; shared memory written by copies of 128 bits and read by `ldmatrix` of four matrices;
#   no bank conflict; a quarter of the instructions that the float32 lanes would need.
#
# About 20, 8 and 1 lines. `direct_kernel` shows which lines you can keep.


# %% nbgrader={"grade": false, "grade_id": "gemm-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
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
    ### BEGIN SOLUTION
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
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "gemm-host", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cute.jit
def launch_gemm(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    op = warp.MmaF16BF16Op(HALF, FLOAT, (16, 8, 16))
    mma = cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)), permutation_mnk=(32, 32, 16))
    ### BEGIN SOLUTION
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), HALF, num_bits_per_copy=128)
    move = cute.make_tiled_copy_tv(atom, cute.make_layout((16, 8), stride=(8, 1)), cute.make_layout((1, 8)))
    plain = cute.make_layout((64, 64), stride=(64, 1))
    layout = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, plain)
    grid = (a.shape[0] // 64, b.shape[0] // 64, 1)
    gemm_kernel(a, b, c, mma, move, layout).launch(grid=grid, block=(128, 1, 1))
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "gemm", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gemm(a, b, c):
    ### BEGIN SOLUTION
    launch_gemm(*(from_dlpack(x, assumed_align=16) for x in (a, b, c)))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "gemm-check", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
gpulab.check("tiles.gemm", gemm)

# %% [markdown]
# **See.** Instructions of warps, requests and bytes: `direct` beside your kernel, for 64 × 64 × 128.

# %% jupyter={"source_hidden": true}
gpulab.need(gemm)
reports = {name: gpulab.profile(function, a, b, c) for name, function in (("direct", direct), ("gemm", gemm))}
gpulab.plot.panels(
    {
        "instructions of warps": {name: report["instructions"] for name, report in reports.items()},
        "load requests": {name: report["global_load_requests"] for name, report in reports.items()},
        "KB loaded": {name: report["global_load_bytes"] / 1024 for name, report in reports.items()},
    },
    "Tiles in shared memory halve the bytes, and copies of 128 bits take an eighth of the requests.",
)

# %% [markdown]
# **Why.** Nothing in the loop says how many threads there are, how wide a copy is or which lane holds what. That is in
# the atoms and layouts of the host function, and the kernel's code follows from them.
#
# ## 8 · The same loop with other atoms
#
# Hopper's copy engine and tensor cores need neither threads that copy nor registers for operands (labs 23B and 24A). In
# CUDA C++ lab 24A took inline assembly with 35 operands, a descriptor in bits and tensor maps. Here they are atoms again.
#
# | | A100 | H100 |
# |---|---|---|
# | MMA atom | `warp.MmaF16BF16Op(HALF, FLOAT, (16, 8, 16))` | `warpgroup.MmaF16BF16Op(HALF, FLOAT, (64, 64, 16), warpgroup.OperandSource.SMEM, K, K)` with `K = cute.nvgpu.OperandMajorMode.K` |
# | tiled MMA | 2 × 2 warps | `cute.make_tiled_mma(op)`: one warpgroup |
# | layout | your swizzle, rows of 64 | `atom = warpgroup.make_smem_layout_atom(kind, HALF)` with `kind = warpgroup.SmemLayoutAtomKind.K_SW128`, repeated by `cute.tile_to_shape(atom, (64, 64), (0, 1))`: the same swizzle |
# | copy | `cp.async`, tiled over threads | `load, at = cpasync.make_tiled_tma_atom(op, a, layout, (64, 64))` with `op = cpasync.CopyBulkTensorTileG2SOp()`: pass both to the kernel, and `at` instead of `a` |
# | who copies what | `mover.partition_S`, `partition_D` | `to, of = cpasync.tma_partition(load, 0, cute.make_layout(1), target, source)` with `target = cute.group_modes(tile, 0, 2)` and `source = cute.group_modes(steps, 0, 2)`; step k is `of[None, k]` |
# | wait for the copy | commit, wait, barrier | an mbarrier: `cute.arch.mbarrier_wait(full, phase)` |
# | to registers | `ldmatrix` | nothing: fragments describe shared memory |
# | multiply | `cute.gemm` | `warpgroup.fence()`, `cute.gemm` for each 16 of k, `warpgroup.commit_group()`, `warpgroup.wait_group(0)` |
#
# One warp sends both copies: `cute.copy(load_a, of_a[None, k], to_a, tma_bar_ptr=full)`. Before that one of its threads,
# inside `with cute.arch.elect_one():`, announces the bytes of both with
# `cute.arch.mbarrier_arrive_and_expect_tx(full, bytes)`. In `tma_partition`, 0 and `cute.make_layout(1)` say that there
# is no cluster: this block is number 0 of one. Whether a product adds to the sums or replaces them is a field of the
# atom: set it with `mma.set(warpgroup.Field.ACCUMULATE, True)` or `False`. If you never set it, products replace.
#
# **Do.** Write `hopper(a, b, c)`, the same product as `gemm`, on an H100.
#
# - Same sizes, same blocks of 128 threads, same steps. A step is four products of 64 × 64 × 16:
#   `held_a[None, None, i]` is the i-th 16 of k.
# - The mbarrier `full` is given. Its phase in step k is k % 2.
# - **Budget:** one product for 16 of k; two copies a step; no access of threads to shared memory and no loads from
#   global memory; a quarter of the instructions that the float32 lanes would need.
#
# About 22, 10 and 1 lines.


# %% nbgrader={"grade": false, "grade_id": "hopper-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
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
    ### BEGIN SOLUTION
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
            cute.gemm(mma, sums, held_a[None, None, i], held_b[None, None, i], sums)
            mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        cute.arch.sync_threads()
    cute.autovec_copy(sums, mine.partition_C(cute.local_tile(c, (64, 64), (row, column))))
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "hopper-host", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cute.jit
def launch_hopper(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    K = cute.nvgpu.OperandMajorMode.K
    ### BEGIN SOLUTION
    source = warpgroup.OperandSource.SMEM
    mma = cute.make_tiled_mma(warpgroup.MmaF16BF16Op(HALF, FLOAT, (64, 64, 16), source, K, K))
    swizzled = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, HALF)
    layout = cute.tile_to_shape(swizzled, (64, 64), (0, 1))
    tma = cpasync.CopyBulkTensorTileG2SOp()
    load_a, at_a = cpasync.make_tiled_tma_atom(tma, a, layout, (64, 64))
    load_b, at_b = cpasync.make_tiled_tma_atom(tma, b, layout, (64, 64))
    grid = (a.shape[0] // 64, b.shape[0] // 64, 1)
    hopper_kernel(at_a, at_b, c, mma, load_a, load_b, layout).launch(grid=grid, block=(128, 1, 1))
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "hopper", "locked": false, "schema_version": 3, "solution": true, "task": false}
def hopper(a, b, c):
    ### BEGIN SOLUTION
    launch_hopper(*(from_dlpack(x, assumed_align=16) for x in (a, b, c)))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "hopper-check", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
gpulab.check("tiles.hopper", hopper)

# %% [markdown]
# **See.** Your two products for 64 × 64 × 256, each on its own GPU: where warps work and wait, and what is on its way.

# %%
gpulab.need(gemm)
deep_a, deep_b = (cp.asarray(numbers.standard_normal((64, 256)).astype(np.float16)) for _ in range(2))
gpulab.timeline(gemm, deep_a, deep_b, c)

# %%
gpulab.need(hopper)
gpulab.start("25", gpu="H100")
gpulab.timeline(hopper, deep_a, deep_b, c)

# %%
gpulab.need(hopper)
on_h100 = gpulab.profile(hopper, deep_a, deep_b, c)
gpulab.start("25", gpu="A100")
gpulab.need(gemm)
on_a100 = gpulab.profile(gemm, deep_a, deep_b, c)
gpulab.plot.bars(
    {"A100, three atoms": on_a100["instructions"], "H100, two atoms": on_h100["instructions"]},
    "instructions of warps",
    caption="With TMA and wgmma, warps issue a fraction of the instructions for the same product.",
)

# %% [markdown]
# **Why.** The loop kept its three steps: copy, wait, multiply. What changed with the atoms is *how to wait*, because copies
# and products became asynchronous. No layout algebra hides that, and it is where most mistakes in such kernels are.
#
# The H100 has far less work here, and yet it needs about as many cycles. In both of your kernels copies and products
# take turns, so each step waits for a whole copy, and its latency in cycles is no shorter on the H100. A pipeline with
# several tiles in flight hides it: that is lab 24A's `overlap`.
#
# ## 9 · Tiles without threads
#
# **cuTile** is NVIDIA's language at the other end. A kernel has blocks but no threads. It loads tiles, computes
# with whole tiles, and stores tiles. The compiler decides which thread holds what, how wide a load is, what goes
# through shared memory, where barriers are, and whether tensor cores are used.
#
# ![A program of tiles: load a tile, compute with whole tiles, store one. The compiler chooses threads, layouts, copies and barriers.](drawings/tile_program.svg)
#
# | write | meaning |
# |---|---|
# | `@ct.kernel`, `N: ct.Constant[int]` | a kernel; a number that is known when it is compiled |
# | `ct.bid(0)` | the number of the block |
# | `ct.load(x, index=(i, j), shape=(r, s), padding_mode=…)` | tile (i, j) of x; the index counts *tiles* |
# | `ct.store(x, index=(i, j), tile=t)` | store a tile; what lies outside of x is not stored |
# | `ct.PaddingMode.NEG_INF` | −∞ for what lies outside |
# | `ct.max(t, axis=1, keepdims=True)`, `ct.sum`, `ct.exp`, `ct.exp2`, `ct.maximum`, `ct.where` | as in NumPy |
# | `ct.launch(0, (blocks,), kernel, (arguments …))` | launch; 0 is the stream |
#
# Sizes of tiles are powers of two. Unlike Triton, a kernel takes arrays and not pointers, so it knows their shapes and can
# leave out what lies outside.
#
# **Do.** Write `softmax(x, y)`: each row of y is exp(x) of the row, divided by its sum.
#
# - `x` and `y` are (m, n) in float32; n is from 100 to 4,096 and no power of two in general. One block for each row.
# - Subtract the maximum of the row first. Numbers may be as large as 200, and exp(89) is more than a float32 holds.
# - **Budget:** each number loaded once, one exponential for each number of a tile.
#
# About 3 and 4 lines.


# %% nbgrader={"grade": false, "grade_id": "softmax-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
@ct.kernel
def softmax_kernel(x, y, N: ct.Constant[int]):
    ### BEGIN SOLUTION
    at = (ct.bid(0), 0)
    row = ct.load(x, index=at, shape=(1, N), padding_mode=ct.PaddingMode.NEG_INF)
    e = ct.exp(row - ct.max(row, axis=1, keepdims=True))
    ct.store(y, index=at, tile=e / ct.sum(e, axis=1, keepdims=True))
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "softmax", "locked": false, "schema_version": 3, "solution": true, "task": false}
def softmax(x, y):
    ### BEGIN SOLUTION
    width = 1 << (x.shape[1] - 1).bit_length()
    ct.launch(0, (x.shape[0],), softmax_kernel, (x, y, width))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "softmax-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("tiles.softmax", softmax)

# %% [markdown]
# **See.** What the compiler decided for rows of different lengths: how many bits a lane loads at a time, and how often
# warps meet at a barrier. You wrote neither.

# %%
gpulab.need(softmax)
width, barriers = {}, {}
for n in (128, 256, 512, 1024, 2048):
    x, y = cp.asarray(numbers.standard_normal((4, n)).astype(np.float32)), cp.empty((4, n), cp.float32)
    report = gpulab.profile(softmax, x, y)
    width[f"{n} numbers"] = 8 * report["global_load_bytes"] / report["global_load_requests"] / 32
    barriers[f"{n} numbers"] = report["barriers"] / 16
gpulab.plot.panels(
    {"bits that a lane loads at once": width, "barriers for each warp": barriers},
    "The compiler widens loads as soon as a row has enough numbers for all lanes; the barriers of the two reductions stay.",
)

# %% [markdown]
# **Why.** A row is a tile, so it stays in registers between the maximum and the division, and no number is loaded
# twice. That is the fusion of lab 11. The price is control: if the compiler chooses badly, there is no layout that
# you could change, only the shape of the tile.
#
# ## 10 · Attention in thirty lines
#
# `ct.mma(a, b, c)` computes a · b + c for tiles. It uses tensor cores if a and b are float16 and c is float32. On
# an A100 that becomes `mma.sync`, on an H100 `wgmma` and on a B200 `tcgen05`, from the same source.
#
# **Do.** Write `attention(q, k, v, out)`, causal attention for one head.
#
# - `q`, `k` and `v` are (n, 64) in float16, n a multiple of 64; `out` is (n, 64) in float32. q is already scaled such that
#   the weights are 2 to the power of the scores. Do not scale it again.
# - Query i sees the keys j ≤ i. One block for each 64 queries, tiles of 64 keys.
# - Rescale as in lab 12: keep the largest score, the sum of the weights and the unfinished output. Scores can be above
#   100, and a float16 ends below 2¹⁶.
# - `ct.arange(64, dtype=ct.int32)` is 0 … 63, `ct.reshape(t, (64, 1))` makes it a column, `ct.full(shape, value,
#   dtype=ct.float32)` fills a tile, `ct.astype(t, ct.float16)` converts, `ct.transpose(t)` transposes.
# - **Budget:** q once, K and V up to the diagonal; half of the instructions that the float32 lanes would need.
#
# About 24 and 1 lines.


# %% nbgrader={"grade": false, "grade_id": "attention-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
@ct.kernel
def attention_kernel(q, k, v, out):
    ### BEGIN SOLUTION
    i = ct.bid(0)
    mine = ct.load(q, index=(i, 0), shape=(64, 64))
    top = ct.full((64, 1), -float("inf"), dtype=ct.float32)
    s = ct.full((64, 1), 0.0, dtype=ct.float32)
    total = ct.full((64, 64), 0.0, dtype=ct.float32)
    places = ct.arange(64, dtype=ct.int32)
    seen = ct.reshape(places, (1, 64)) <= ct.reshape(places, (64, 1))
    for j in range(i + 1):
        keys = ct.load(k, index=(j, 0), shape=(64, 64))
        values = ct.load(v, index=(j, 0), shape=(64, 64))
        scores = ct.mma(mine, ct.transpose(keys), ct.full((64, 64), 0.0, dtype=ct.float32))
        if j == i:
            scores = ct.where(seen, scores, -float("inf"))
        larger = ct.maximum(top, ct.max(scores, axis=1, keepdims=True))
        weights = ct.exp2(scores - larger)
        old = ct.exp2(top - larger)
        s = s * old + ct.sum(weights, axis=1, keepdims=True)
        total = ct.mma(ct.astype(weights, ct.float16), values, total * old)
        top = larger
    ct.store(out, index=(i, 0), tile=total / s)
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "attention", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attention(q, k, v, out):
    ### BEGIN SOLUTION
    ct.launch(0, (q.shape[0] // 64,), attention_kernel, (q, k, v, out))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "attention-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("tiles.attention", attention)

# %% [markdown]
# **See.** What the compiler made of it: the bytes of your kernel by where they go, for 256 tokens.

# %% jupyter={"source_hidden": true}
gpulab.need(attention)
q, k, v = (cp.asarray((numbers.standard_normal((256, 64)) / 3).astype(np.float16)) for _ in range(3))
out = cp.empty((256, 64), cp.float32)
report = gpulab.profile(attention, q, k, v, out)
gpulab.plot.bars(
    {
        "loaded from global memory": report["global_load_bytes"] / 1024,
        "of these by cp.async": report["async_bytes"] / 1024,
        "loaded from shared memory": report["shared_load_bytes"] / 1024,
        "stored to global memory": report["global_store_bytes"] / 1024,
    },
    "KB",
    caption="The compiler brings tiles by asynchronous copies to shared memory, and reads them there more than once.",
)

# %% [markdown]
# **Why.** The compiler found `cp.async`, shared memory without conflicts and `ldmatrix` by itself. On Hopper,
# FlashAttention-3 gains its speed by letting two warpgroups take turns between exponentials and products (lab 26A).
# In a tile language only the compiler can find such a schedule, because you cannot write it.
#
# ## 11 · A layout that changes once
#
# **Gluon** lies in between. It is Triton with layouts: each tensor of a kernel has a layout in its type that says which
# lane holds which element, and changing it is an operation that you write, `gl.convert_layout`. A value that must go to
# another warp goes through shared memory.
#
# A layout is given by four lists: `gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])` gives each lane 1 × 4
# elements, has 4 × 8 lanes and 4 × 1 warps, and counts axis 1 fastest. A larger tensor repeats this pattern.
#
# ![The same 4 × 8 numbers in two layouts. Left, a warp goes along rows. Right, it goes down columns.](drawings/two_layouts.svg)
#
# **Predict.** A tile of 128 × 32 floats changes its layout once, through shared memory. How many bytes are stored there?

# %%
gpulab.predict("tiles.through", ...)


# %% [markdown]
# The kernel below takes the softmax of each *column* of a matrix and stores the result transposed. Its author gave each
# step the layout that suits it: rows for the load, columns for the maximum, rows for the exponential, columns for the sum
# and the store.


# %%
@gluon.jit
def careful_kernel(x, y, n, M: gl.constexpr, num_warps: gl.constexpr):
    along: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [num_warps, 1], [1, 0])
    down: gl.constexpr = gl.BlockedLayout([4, 1], [32, 1], [1, num_warps], [0, 1])
    row = gl.arange(0, M, gl.SliceLayout(1, along))[:, None]
    column = gl.program_id(0) * 32 + gl.arange(0, 32, gl.SliceLayout(0, along))[None, :]
    tile = gl.convert_layout(gl.load(x + row * n + column), down)
    largest = gl.max(tile, 0)
    tile = gl.convert_layout(tile, along)
    largest = gl.convert_layout(largest, gl.SliceLayout(0, along))
    e = gl.convert_layout(gl.exp(tile - gl.expand_dims(largest, 0)), down)
    row = gl.arange(0, M, gl.SliceLayout(1, down))[:, None]
    column = gl.program_id(0) * 32 + gl.arange(0, 32, gl.SliceLayout(0, down))[None, :]
    gl.store(y + column * M + row, e / gl.expand_dims(gl.sum(e, 0), 0))


def careful(x, y):
    m, n = x.shape
    careful_kernel[n // 32,](x, y, n, M=m, num_warps=4)


x = cuda.to_device(numbers.standard_normal((128, 64)).astype(np.float32))
y = cuda.to_device(np.zeros((64, 128), np.float32))
report = gpulab.profile(careful, x, y)
print(
    f"{report['shared_store_bytes']:,} bytes stored to shared memory, for {4 * 128 * 64:,} bytes of numbers"
)

# %% [markdown]
# **Do.** Write `convert(x, y)`, which does the same with as few changes of layout as possible.
#
# - `x` is (m, n) and `y` is (n, m), both float32; m is 128, 256 or 512, and n is a multiple of 32. Row j
#   of `y` is the softmax of column j of `x`.
# - A program for 32 columns, with all m rows, and four warps.
# - **Budget:** each number stored to shared memory exactly once; full sectors in global memory, for loads and for stores.
#
# About 10 and 2 lines.


# %% nbgrader={"grade": false, "grade_id": "convert-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
@gluon.jit
def convert_kernel(x, y, n, M: gl.constexpr, num_warps: gl.constexpr):
    ### BEGIN SOLUTION
    along: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [num_warps, 1], [1, 0])
    down: gl.constexpr = gl.BlockedLayout([4, 1], [32, 1], [1, num_warps], [0, 1])
    row = gl.arange(0, M, gl.SliceLayout(1, along))[:, None]
    column = gl.program_id(0) * 32 + gl.arange(0, 32, gl.SliceLayout(0, along))[None, :]
    tile = gl.convert_layout(gl.load(x + row * n + column), down)
    e = gl.exp(tile - gl.expand_dims(gl.max(tile, 0), 0))
    row = gl.arange(0, M, gl.SliceLayout(1, down))[:, None]
    column = gl.program_id(0) * 32 + gl.arange(0, 32, gl.SliceLayout(0, down))[None, :]
    gl.store(y + column * M + row, e / gl.expand_dims(gl.sum(e, 0), 0))
    ### END SOLUTION


def convert(x, y):
    ### BEGIN SOLUTION
    m, n = x.shape
    convert_kernel[n // 32,](x, y, n, M=m, num_warps=4)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "convert-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("tiles.convert", convert)

# %% [markdown]
# **See.** Bytes through shared memory, and instructions of warps, before and after.

# %% jupyter={"source_hidden": true}
gpulab.need(convert)
reports = {"careful": gpulab.profile(careful, x, y), "convert": gpulab.profile(convert, x, y)}
gpulab.plot.panels(
    {
        "KB stored to shared memory": {name: r["shared_store_bytes"] / 1024 for name, r in reports.items()},
        "instructions of warps": {name: r["instructions"] for name, r in reports.items()},
    },
    "Two of three changes of layout were not needed. A third of the bytes goes through shared memory.",
)

# %% [markdown]
# **Why.** Arithmetic with single elements costs the same in every layout, so it never needs a change. Reductions are
# cheapest where a row or column stays within a warp, and loads and stores where lanes are neighbours in memory. Here one
# layout suits the maximum, the sum and the store, so one change is left: the transpose itself.
#
# ## 12 · One kernel in six languages
#
# You have now met six languages for kernels. The cell below has one transpose of float32 in each of them, in tiles of
# 32 × 32. The one in CuTe DSL has plain indices; when you have seen the counts, put your `transpose` of part A in its
# place.
#
# **Predict.** numba loads one float for each lane. Triton's compiler finds out that neighbours may be loaded together, 128
# bits at a time. How many times as many load requests does the numba kernel make?

# %%
gpulab.predict("tiles.ratio", ...)


# %%
@cuda.jit
def in_numba_kernel(x, y):
    tile = cuda.shared.array((32, 33), "float32")
    i, j = cuda.threadIdx.x, cuda.threadIdx.y
    row, column = cuda.blockIdx.y * 32, cuda.blockIdx.x * 32
    for k in range(0, 32, 8):
        tile[j + k, i] = x[row + j + k, column + i]
    cuda.syncthreads()
    for k in range(0, 32, 8):
        y[column + j + k, row + i] = tile[i, j + k]


def in_numba(x, y):
    in_numba_kernel[(x.shape[1] // 32, x.shape[0] // 32), (32, 8)](x, y)


in_cuda_kernel = cp.RawKernel(
    r"""
extern "C" __global__ void turn(const float* x, float* y, int m, int n) {
    __shared__ float tile[32][33];
    int i = threadIdx.x, j = threadIdx.y, row = blockIdx.y * 32, column = blockIdx.x * 32;
    for (int k = 0; k < 32; k += 8) tile[j + k][i] = x[(row + j + k) * n + column + i];
    __syncthreads();
    for (int k = 0; k < 32; k += 8) y[(column + j + k) * m + row + i] = tile[i][j + k];
}
""",
    "turn",
)


def in_cuda(x, y):
    m, n = x.shape
    in_cuda_kernel((n // 32, m // 32), (32, 8), (x, y, cp.int32(m), cp.int32(n)))


@triton.jit
def in_triton_kernel(x, y, m, n):
    rows = tl.program_id(0) * 32 + tl.arange(0, 32)
    columns = tl.program_id(1) * 32 + tl.arange(0, 32)
    tile = tl.load(x + rows[:, None] * n + columns[None, :])
    tl.store(y + columns[:, None] * m + rows[None, :], tl.trans(tile))


def in_triton(x, y):
    in_triton_kernel[x.shape[0] // 32, x.shape[1] // 32](x, y, *x.shape)


@gluon.jit
def in_gluon_kernel(x, y, m, n, num_warps: gl.constexpr):
    along: gl.constexpr = gl.BlockedLayout([1, 4], [4, 8], [num_warps, 1], [1, 0])
    down: gl.constexpr = gl.BlockedLayout([4, 1], [8, 4], [1, num_warps], [0, 1])
    row = gl.program_id(0) * 32 + gl.arange(0, 32, gl.SliceLayout(1, along))[:, None]
    column = gl.program_id(1) * 32 + gl.arange(0, 32, gl.SliceLayout(0, along))[None, :]
    tile = gl.convert_layout(gl.load(x + row * n + column), down)
    row = gl.program_id(0) * 32 + gl.arange(0, 32, gl.SliceLayout(1, down))[:, None]
    column = gl.program_id(1) * 32 + gl.arange(0, 32, gl.SliceLayout(0, down))[None, :]
    gl.store(y + column * m + row, tile)


def in_gluon(x, y):
    in_gluon_kernel[x.shape[0] // 32, x.shape[1] // 32](x, y, *x.shape, num_warps=4)


@cute.kernel
def in_cute_kernel(x: cute.Tensor, y: cute.Tensor):
    tile = cutlass.memory.SmemAllocator().allocate_tensor(FLOAT, cute.make_layout((32, 32), stride=(33, 1)))
    i, j, _ = cute.arch.thread_idx()
    column, row, _ = cute.arch.block_idx()
    source, target = cute.local_tile(x, (32, 32), (row, column)), cute.local_tile(y, (32, 32), (column, row))
    for k in cutlass.range_constexpr(0, 32, 8):
        tile[j + k, i] = source[j + k, i]
    cute.arch.sync_threads()
    for k in cutlass.range_constexpr(0, 32, 8):
        target[j + k, i] = tile[i, j + k]


@cute.jit
def launch_in_cute(x: cute.Tensor, y: cute.Tensor):
    grid = (x.shape[1] // 32, x.shape[0] // 32, 1)
    in_cute_kernel(x, y).launch(grid=grid, block=(32, 8, 1))


def in_cute(x, y):
    launch_in_cute(from_dlpack(x), from_dlpack(y))


@ct.kernel
def in_cutile_kernel(x, y):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(y, index=(j, i), tile=ct.transpose(ct.load(x, index=(i, j), shape=(32, 32))))


def in_cutile(x, y):
    ct.launch(0, (x.shape[0] // 32, x.shape[1] // 32), in_cutile_kernel, (x, y))


# %% [markdown]
# **See.** The same counts of all six, for 256 × 256. "Ways" says how many passes shared memory takes where one would do.

# %%
SIX = {
    "numba": in_numba,
    "CUDA C++": in_cuda,
    "Triton": in_triton,
    "Gluon": in_gluon,
    "CuTe DSL": in_cute,
    "cuTile": in_cutile,
}
COUNTS = {
    "instructions": "instructions",
    "load requests": "global_load_requests",
    "store requests": "global_store_requests",
    "sectors": "global_sectors",
    "shared requests": "shared_requests",
    "ways": "bank_conflict_ways",
    "barriers": "barriers",
}
table = {}
x, y = cp.asarray(numbers.standard_normal((256, 256)).astype(np.float32)), cp.empty((256, 256), cp.float32)
print(f"{'':10}" + "".join(f"{name:>17}" for name in COUNTS))
for language, function in SIX.items():
    y[:] = 0
    report = gpulab.profile(function, x, y)
    assert np.array_equal(y.get(), x.get().T), language
    table[language] = {name: report[metric] for name, metric in COUNTS.items()}
    print(f"{language:10}" + "".join(f"{value:>17,.0f}" for value in table[language].values()))

# %% jupyter={"source_hidden": true}
gpulab.plot.panels(
    {
        name: {language: row[name] for language, row in table.items()}
        for name in ("instructions", "load requests", "shared requests")
    },
    "Where the language or the author chose wide copies, load requests fall to a quarter. All six move the same sectors.",
)

# %% [markdown]
# | who decides | numba, CUDA C++ | Triton | Gluon | CuTe DSL | cuTile |
# |---|---|---|---|---|---|
# | which thread has which element | you | compiler | you, by layouts | you, by layouts | compiler |
# | how wide a load is | you (numba: no) | compiler | your layout | your atom | compiler |
# | what lies in shared memory, and how | you | compiler | compiler, or you | you | compiler |
# | barriers and waits | you | compiler | compiler, or you | you | compiler |
# | which tensor core instruction | you (numba: none) | compiler | you, by a layout | your atom | compiler |
# | how many threads | you | you (warps) | you (warps) | you | compiler |
#
# Read the two tables together. All kernels move the same sectors, so on a GPU they will take about the same time;
# the transposes differ in the instructions that they spend for it. Behind each count that differs is a line of the
# first table that was decided differently: behind the load requests the width of a load, behind the shared requests
# the change of layout, and behind the barriers the number of warps that meet there. numba needs many instructions
# because its indices are 64-bit numbers that may be negative. None of the six has a bank conflict. In three of them
# you can see why, because the tile has an additional column. In the others the compiler took care of it.
#
# **Why.** No language is the fastest. In a language that decides more, kernels are shorter, and its compiler brings
# them to the next GPU. One that decides less lets you do what a compiler did not think of. A good habit is to start
# at the right of the table and to move left where a count shows why.
#
# ## Beyond · A product with a pipeline
#
# Open-ended and ungraded. Give `gemm` two or three slots of shared memory, so that the copies of the next step are in
# flight while this one is multiplied (lab 23A's ring, with a third mode of the tiles' layout for the slots). The figure
# of merit is **bytes in flight of a thread when it waits**.
#
# | kernel | bytes in flight |
# |---|---|
# | `gemm` | the cell below |
# | bound for three slots: two steps of 128 bytes | 256 |

# %%
gpulab.need(gemm)


def merit(function):
    report = gpulab.profile(function, deep_a, deep_b, c)
    exact = deep_a.get().astype(np.float64) @ deep_b.get().astype(np.float64).T
    return report["async_bytes_in_flight"] if np.allclose(c.get(), exact, atol=0.05) else "wrong"


merit(gemm)

# %%
# Your function, then merit(…).

# %% [markdown]
# ## Recap
#
# <details><summary>1. What does an MMA atom know besides its instruction?</summary>
#
# Which lane holds which elements of A, B and C: three layouts.
# </details>
#
# <details><summary>2. Which lines of a kernel change with the atoms, although the algebra stays?</summary>
#
# Those that wait: groups and barriers for cp.async, mbarriers for TMA, fence, commit and wait for wgmma.
# </details>
#
# <details><summary>3. A tile of cuTile is wider than the row. What lies outside?</summary>
#
# The value that the padding mode names, when the tile is loaded. Nothing is stored there.
# </details>
#
# <details><summary>4. A Gluon kernel multiplies each element by 2. Which layout is best for that?</summary>
#
# Any: arithmetic with single elements needs no change of layout.
# </details>
#
# <details><summary>5. Where does a language that decides more leave you without a remedy?</summary>
#
# Where its compiler decides badly: there is nothing to change but the shapes of tiles.
# </details>

# %%
gpulab.recap("25")

# %% [markdown]
# ### Cheat sheet
#
# | to | write |
# |---|---|
# | multiply on an A100 | `warp.MmaF16BF16Op`, ldmatrix copies made from the MMA, `cute.gemm` |
# | multiply on an H100 | `warpgroup.MmaF16BF16Op`, fence, `cute.gemm`, commit, wait |
# | copy by TMA | `make_tiled_tma_atom`, `tma_partition`, an mbarrier with the bytes announced |
# | keep a row on the chip | one tile as wide as the next power of two, padded with −∞ |
# | mask in cuTile | `ct.where` with two `ct.arange`, in the diagonal tile only |
# | change a layout once | load along rows, convert, do everything else in the second layout |
#
# ### Claims you will meet, and what is right
#
# - *CuTe kernels are portable between generations.* Loops and layouts are. Atoms, waits and roles of warps are not.
# - *Tile languages cannot use tensor cores well.* `ct.mma` and `tl.dot` become `mma.sync`, `wgmma` or `tcgen05`. What they
#   cannot do is what their compiler does not schedule.
# - *`convert_layout` is free, it only renames.* If elements change their lane it goes through shared memory or shuffles.
# - *Python kernels are slow because Python is.* Python runs once, to compile. Afterwards PTX runs, as from any language.
#
# ### References
#
# 1. NVIDIA, *CUTLASS*: CuTe, and CuTe DSL. https://docs.nvidia.com/cutlass/
# 2. NVIDIA, *cuTile Python*. https://docs.nvidia.com/cuda/cutile-python/
# 3. Triton, *Gluon tutorials*. https://github.com/triton-lang/triton/tree/main/python/tutorials/gluon
# 4. P. Tillet, H. T. Kung, D. Cox, "Triton: An Intermediate Language and Compiler for Tiled Neural Network Computations",
#    MAPL 2019. https://doi.org/10.1145/3315508.3329973
# 5. T. Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", 2023.
#    https://arxiv.org/abs/2307.08691
# 6. B. Hagedorn, B. Fan, H. Chen, C. Cecka, M. Garland, V. Grover, "Graphene: An IR for Optimized Tensor Computations on
#    GPUs", ASPLOS 2023. https://doi.org/10.1145/3582016.3582018
