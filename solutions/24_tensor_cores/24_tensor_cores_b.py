# ---
# jupyter:
#   gpulab:
#     lab: "24"
#     hours: 3.5
#     topics: [C25.8, C25.9, C25.10]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 24B · Tensor cores with a memory of their own: Blackwell
#
# **2 to 3.5 hours.** You have done part A. You need no GPU: the kernels run on a simulated **B200**.
#
# On Hopper, the 128 threads of a warpgroup had to issue each product together, and their registers held the
# sums. Blackwell removes both requirements. One thread issues a product, and its sums are kept in **Tensor
# Memory**, 256 KB in each SM that only the tensor cores and their own load and store instructions use. Two
# blocks can share one product. For four-bit numbers, the tensor cores apply the block scales themselves.
#
# By the end you can
#
# 1. allocate columns of Tensor Memory, multiply into them, and read sums back;
# 2. say which threads have to wait for what when a single thread issues all products;
# 3. let two blocks share the operands of one product;
# 4. multiply NVFP4 numbers with their block scales;
# 5. choose the order in which persistent blocks work through the tiles of a large product.

# %%
import math

import numpy as np

import gpulab
from gpulab import cupy as cp
from gpulab import numerics

gpulab.start("24", gpu="B200")

# %% [markdown]
# ## 6 · Sums with a memory of their own
#
# Tensor Memory has 128 **lanes** and 512 **columns** of 32 bits, which the blocks on an SM share. A tile of sums of
# 128 × n takes n columns: row i of the tile is lane i.
#
# ![Tensor Memory: 128 lanes and 512 columns. A tile of 128 by 64 sums takes 64 columns. Warp w reaches lanes 32 w to 32 w + 31.](drawings/tensor_memory.svg)
#
# **Predict.** How many columns do the sums of a tile of 128 × 256 take, in float32?

# %%
gpulab.predict("tensor.columns", ...)

# %% [markdown]
# A kernel allocates the columns that it needs. One warp does it for the whole block, and one warp must free
# them before the block ends. An address in Tensor Memory has 32 bits: the low 16 are the column, the high 16
# the lane. Warp w of a block can read only the lanes 32·w to 32·w + 31. It therefore reads the sums at
# `sums + (32 * w << 16)`.
#
# | call | called by | meaning |
# |---|---|---|
# | `ptx::tcgen05_alloc(ptx::cta_group_1, &place, n)` | one warp | n columns (32, 64, …, 512); the address is in `place` |
# | `ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1)` | the same warp | this block allocates no more |
# | `multiply<1>(sums, a, b, how, adds)` | one thread | starts sums = A · Bᵀ, plus sums if `adds` |
# | `ptx::tcgen05_commit(ptx::cta_group_1, &bar)` | the same thread | arrives once at `bar` when all products that it has issued are complete |
# | `ptx::tcgen05_ld_32x32b(bits, address)` | each warp | loads 64 columns of 32 lanes; each thread gets one lane in `bits[64]` |
# | `ptx::tcgen05_wait_ld()` | each warp | waits until its loads have arrived |
# | `ptx::tcgen05_dealloc(ptx::cta_group_1, sums, n)` | one warp | frees n columns |
#
# ![One thread starts copies, issues products and commits. The other threads wait at one mbarrier until all is done, then read Tensor Memory.](drawings/one_thread.svg)
#
# The shape and the types of the operands are no longer part of the instruction's name. They are in an
# **instruction descriptor** of 32 bits, the argument `how` of `multiply`. It holds the type of the sums at
# bit 4 (1 is float32), of A at bit 7 and of B at bit 10 (0 is float16), n / 8 at bit 17 and m / 16 at bit 24.
#
# ![The 32 bits of an instruction descriptor: the type of the sums at bit 4, of A at bit 7, of B at bit 10, n divided by 8 at bit 17, m divided by 16 at bit 24.](drawings/instruction.svg)


# %%
def how(m, n, sums=1, a=0, b=0):
    return sums << 4 | a << 7 | b << 10 | n // 8 << 17 | m // 16 << 24


print(f"128 × 64 in float16: 0x{how(128, 64):08x}   256 × 64: 0x{how(256, 64):08x}")

# %%
BLACKWELL = r"""
#include <cuda/ptx>
#include <cuda_fp16.h>
namespace ptx = cuda::ptx;
typedef unsigned int u32;
typedef unsigned long long u64;
struct alignas(64) CUtensorMap { u64 opaque[16]; };

__device__ void expect(u64* full, u32 bytes) {
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, full, bytes);
}
__device__ void wait(u64* bar, int parity) {
    while (!ptx::mbarrier_try_wait_parity(bar, parity)) {}
}
__device__ void initialise(u64* bar, int arrivals) {
    ptx::mbarrier_init(bar, arrivals);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
}
__device__ void copy(void* to, const CUtensorMap* map, int column, int row, u64* full) {
    int at[2] = {column, row};
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, to, map, at, full);
}

constexpr u32 ONE = 0x08100010, PAIR = 0x10100010;      // 128 × 64 and 256 × 64, float16 to float32
constexpr u32 FOUR_BITS = 0x08200480;                   // 128 × 128, e2m1 with scales of e4m3

__device__ u64 descriptor(const void* tile) {           // rows of 128 bytes with the 128-byte swizzle
    u64 at = __cvta_generic_to_shared(tile);
    return at >> 4 | u64(1) << 16 | u64(1024 >> 4) << 32 | u64(1) << 46 | u64(2) << 61;
}
template <int BLOCKS> __device__ void multiply(u32 sums, u64 a, u64 b, u32 how, bool adds) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::%5.kind::f16 [%0], %1, %2, %3, p; }"
        ::"r"(sums), "l"(a), "l"(b), "r"(how), "r"(int(adds)), "n"(BLOCKS) : "memory");
}
__device__ void store_row(const u32 (&bits)[64], float* row) {
    for (int j = 0; j < 64; j += 4)
        *reinterpret_cast<float4*>(row + j) = make_float4(
            __uint_as_float(bits[j]), __uint_as_float(bits[j + 1]), __uint_as_float(bits[j + 2]),
            __uint_as_float(bits[j + 3]));
}
"""

# %% [markdown]
# A barrier alone does not put the tcgen05 instructions of different threads in order. Call
# `ptx::tcgen05_fence_before_thread_sync()` before a barrier after which another thread uses tcgen05. Call
# `ptx::tcgen05_fence_after_thread_sync()` after that barrier, and also after the wait for a commit.
#
# **Do.** Write `by_one_thread(a, b, c)`: `c` = a · bᵀ. Two cells.
#
# - `a` is (m, k), `b` is (n, k), float16; `c` is (m, n), float32. m is a multiple of 128, n and k of 64.
# - One block of 128 threads for each tile of 128 × 64; `blockIdx.x` counts tiles along n, `blockIdx.y` along
#   m.
# - A step is 64 of k: a box of 128 × 64 of A and one of 64 × 64 of B, both with the 128-byte swizzle, then
#   four products of 16 of k each. `how` is the constant `ONE`.
# - Thread 0 does all the work of the loop. It commits each step's products to `read` and waits there before
#   it overwrites the tiles. After the last step it commits to `over`, where all threads wait once.
# - `store_row(bits, row)` stores the 64 sums of a thread, from the address `row` on. Thread t has row t of
#   the tile.
# - The beginning and the end of the kernel are given: columns are allocated, and freed.
# - **Budget:** a quarter of the instructions that the float32 lanes would need, one for 32 products of two
#   numbers; two copies a step; one product for every 16 of k; every sum read once from Tensor Memory.
#
# About 22 and 4 lines.


# %% nbgrader={"grade": false, "grade_id": "memory-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
asking = cp.RawKernel(
    BLACKWELL
    + r"""
extern "C" __global__ void asking(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c, int n, int k) {
    __shared__ alignas(1024) __half of_a[128][64], of_b[64][64];
    __shared__ u64 full, read, over;
    __shared__ u32 place;
    int t = threadIdx.x, row = blockIdx.y * 128, col = blockIdx.x * 64;
    if (t == 0) initialise(&full, 1), initialise(&read, 1), initialise(&over, 1);
    if (t < 32) {
        ptx::tcgen05_alloc(ptx::cta_group_1, &place, 64);
        ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1);
    }
    ptx::tcgen05_fence_before_thread_sync();
    __syncthreads();
    ptx::tcgen05_fence_after_thread_sync();
    u32 sums = place, bits[64];
    // ### BEGIN SOLUTION
    if (t == 0) {
        for (int step = 0; step < k / 64; step++) {
            expect(&full, sizeof of_a + sizeof of_b);
            copy(of_a, &a, step * 64, row, &full);
            copy(of_b, &b, step * 64, col, &full);
            wait(&full, step & 1);
            for (int i = 0; i < 4; i++)
                multiply<1>(sums, descriptor(of_a) + 2 * i, descriptor(of_b) + 2 * i, ONE, step + i > 0);
            ptx::tcgen05_commit(ptx::cta_group_1, &read);
            wait(&read, step & 1);
        }
        ptx::tcgen05_commit(ptx::cta_group_1, &over);
    }
    wait(&over, 0);
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_ld_32x32b(bits, sums + (t / 32 * 32 << 16));
    ptx::tcgen05_wait_ld();
    store_row(bits, c + (row + t) * n + col);
    // ### END SOLUTION
    __syncthreads();
    if (t < 32) ptx::tcgen05_dealloc(ptx::cta_group_1, sums, 64);
}
""",
    "asking",
)


# %% nbgrader={"grade": false, "grade_id": "memory", "locked": false, "schema_version": 3, "solution": true, "task": false}
def by_one_thread(a, b, c):
    (m, k), n = a.shape, b.shape[0]
    ### BEGIN SOLUTION
    maps = gpulab.tensor_map(a, (128, 64), swizzle=128), gpulab.tensor_map(b, (64, 64), swizzle=128)
    asking((n // 64, m // 128), (128,), (*maps, c, cp.int32(n), cp.int32(k)))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "memory-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("tensor.memory", by_one_thread)

# %% [markdown]
# **See.** What the simulator says if a block forgets to free its columns, and if a warp reads lanes that are
# not its own. The cell changes the text of your kernel. It expects the lane's address to be written as
# `(t / 32 * 32 << 16)`.

# %%
gpulab.need(by_one_thread)
numbers = np.random.default_rng(1)
a, b = (cp.asarray(numbers.standard_normal((rows, 128)).astype(np.float16)) for rows in (256, 64))
c = cp.empty((256, 64), cp.float32)
maps = gpulab.tensor_map(a, (128, 64), swizzle=128), gpulab.tensor_map(b, (64, 64), swizzle=128)
mistakes = {
    "never freed": asking.code.replace("ptx::tcgen05_dealloc(ptx::cta_group_1, sums, 64)", "0"),
    "other lanes": asking.code.replace("(t / 32 * 32 << 16)", "0"),
}
for name, code in mistakes.items():
    if code == asking.code:
        print(f"{name}: your kernel is written in another way; change that line by hand\n")
        continue
    try:
        cp.RawKernel(code, "asking")((1, 2), (128,), (*maps, c, cp.int32(64), cp.int32(128)))
        print(f"{name}: nothing was said")
    except Exception as error:
        print(f"{name}:\n{error}\n")

# %% [markdown]
# **See.** One block in cycles: which warps work, when copies are on their way, and when the tensor cores multiply.

# %%
gpulab.timeline(asking, (1, 2), (128,), (*maps, c, cp.int32(64), cp.int32(128)))

# %% [markdown]
# **Why.** Why must the other threads not wait at `read` in every step? Thread 0 does not wait for them. If it
# gets two phases ahead of a slow thread, that thread asks about a phase that ended long ago. The parity of
# that phase is the parity of the current one too, so the thread waits for a later phase, and perhaps for
# ever. Wait at an mbarrier only if it cannot get two phases ahead of you.
#
# Threads no longer have to hold sums while products are made. Fast kernels for a B200 have one thread that
# copies, one that issues products, and four warps that read finished tiles while the tensor cores work on the
# next ones.
#
# ## 7 · Two blocks, one product
#
# Two blocks of a cluster can make one product of 256 rows together (`cta_group::2`). Each block holds 128 rows of A
# and the 128 rows of sums that belong to them. Each block holds only half of B's rows: the block of rank 0 has the
# first half, and the other block has the second. The tensor cores of both blocks read both halves.
#
# ![Two blocks make 256 by 64 sums. Each brings its own 128 rows of A and half of the 64 rows of B. The tensor cores read both halves of B.](drawings/pair.svg)
#
# **Predict.** How many bytes of B do the two blocks read together, for 64 columns and k = 1,024 in float16?

# %%
gpulab.predict("tensor.halved", ...)

# %% [markdown]
# **Do.** Write `pair(a, b, c)`, the same product by pairs of blocks.
#
# - m is a multiple of 256. Here `blockIdx.x` counts tiles of 128 rows and `blockIdx.y` tiles of 64 columns.
#   Two blocks that are neighbours along x are a cluster, and `rank` is 0 or 1.
# - In each step, a block brings 128 rows of A and 32 of the 64 rows of B. When both blocks have theirs,
#   thread 0 of the block of rank 0 issues the products for both: `multiply<2>(…, PAIR, …)`.
# - `ptx::tcgen05_commit_multicast(ptx::cta_group_2, &read, mask)` arrives at `read` of each block whose bit
#   is set in `mask`, an unsigned short.
# - `meet()` is the barrier of the cluster: all threads of both blocks must call it.
# - Sums are read and stored as in `by_one_thread`: each block has its own 128 rows.
# - **Budget:** B is copied in once for the two blocks; one product for every 16 of k and pair; a quarter of the
#   instructions that the float32 lanes would need.
#
# About 22 and 4 lines.


# %% nbgrader={"grade": false, "grade_id": "pair-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
pairing = cp.RawKernel(
    BLACKWELL
    + r"""
__device__ void meet() {
    ptx::barrier_cluster_arrive();
    ptx::barrier_cluster_wait();
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) pairing(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c, int n, int k) {
    __shared__ alignas(1024) __half of_a[128][64], of_b[32][64];
    __shared__ u64 full, read;
    __shared__ u32 place;
    int t = threadIdx.x, rank = ptx::get_sreg_cluster_ctarank(), row = blockIdx.x * 128, col = blockIdx.y * 64;
    if (t == 0) initialise(&full, 1), initialise(&read, 1);
    if (t < 32) {
        ptx::tcgen05_alloc(ptx::cta_group_2, &place, 64);
        ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_2);
    }
    ptx::tcgen05_fence_before_thread_sync();
    meet();
    ptx::tcgen05_fence_after_thread_sync();
    u32 sums = place, bits[64];
    // ### BEGIN SOLUTION
    for (int step = 0; step < k / 64; step++) {
        if (t == 0) {
            expect(&full, sizeof of_a + sizeof of_b);
            copy(of_a, &a, step * 64, row, &full);
            copy(of_b, &b, step * 64, col + 32 * rank, &full);
            wait(&full, step & 1);
        }
        meet();
        if (t == 0 && rank == 0) {
            for (int i = 0; i < 4; i++)
                multiply<2>(sums, descriptor(of_a) + 2 * i, descriptor(of_b) + 2 * i, PAIR, step + i > 0);
            ptx::tcgen05_commit_multicast(ptx::cta_group_2, &read, (unsigned short)3);
        }
        wait(&read, step & 1);
    }
    ptx::tcgen05_fence_after_thread_sync();
    ptx::tcgen05_ld_32x32b(bits, sums + (t / 32 * 32 << 16));
    ptx::tcgen05_wait_ld();
    store_row(bits, c + (row + t) * n + col);
    // ### END SOLUTION
    meet();
    if (t < 32) ptx::tcgen05_dealloc(ptx::cta_group_2, sums, 64);
}
""",
    "pairing",
)


# %% nbgrader={"grade": false, "grade_id": "pair", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pair(a, b, c):
    (m, k), n = a.shape, b.shape[0]
    ### BEGIN SOLUTION
    maps = gpulab.tensor_map(a, (128, 64), swizzle=128), gpulab.tensor_map(b, (32, 64), swizzle=128)
    pairing((m // 128, n // 64), (128,), (*maps, c, cp.int32(n), cp.int32(k)))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "pair-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("tensor.pair", pair)

# %% [markdown]
# **See.** The bytes that both kernels copy in for a product of 256 × 64 × 128.

# %% jupyter={"source_hidden": true}
gpulab.need(pair)
gpulab.plot.bars(
    {
        "two blocks, each for itself": gpulab.profile(by_one_thread, a, b, c)["bulk_load_bytes"],
        "a pair": gpulab.profile(pair, a, b, c)["bulk_load_bytes"],
    },
    "bytes copied in",
)

# %% [markdown]
# **Why.** The wider the tile, the larger B's share of the bytes. If each block makes a tile of 128 × 256, B
# is two thirds of all operands, and a pair saves a third of them. Pairs save shared memory as well, which
# leaves room for more slots.
#
# ## 8 · Four bits and their scales
#
# NVFP4 stores numbers of four bits, e2m1: 0, ½, 1, 1½, 2, 3, 4, 6 and their negatives. Sixteen neighbours along k share
# a **block scale** of eight bits, an e4m3. A B200 multiplies them at four times the rate of float16.
#
# ![Sixteen numbers of four bits and one scale of eight bits: 72 bits for sixteen numbers.](drawings/nvfp4.svg)
#
# **Predict.** How many bits of memory does a number take, its share of the scale included?

# %%
gpulab.predict("tensor.per_number", ...)

# %% [markdown]
# A product takes 64 of k at a time, and it takes the scales from Tensor Memory. For 128 rows and 64 of k there are
# 128 × 4 scales, 512 bytes. In memory they form 32 rows of 16 bytes. Row r holds four scales for each of the tile's
# rows r, r + 32, r + 64 and r + 96. A single copy from shared memory puts these 512 bytes into four columns.
#
# | call | meaning |
# |---|---|
# | `scales_to(columns, part)` | copies 512 bytes of scales at `part` in shared memory to four columns of Tensor Memory |
# | `multiply4(sums, a, b, scales_of_a, scales_of_b, adds)` | 128 × 128 sums for 64 of k; the scales are the addresses of their first columns |
#
# One thread calls both. `tiled` puts scales into the order that the kernel wants.
#
# ![A row of 16 bytes of scales: four each of the rows r, r + 32, r + 64 and r + 96 of the tile. They go to lane r of four columns.](drawings/scales.svg)

# %%
SCALES = (
    BLACKWELL
    + r"""
__device__ void scales_to(u32 columns, const void* part) {                   // 512 bytes to four columns
    u64 at = __cvta_generic_to_shared(part);
    u64 rows = at >> 4 | u64(1) << 16 | u64(128 >> 4) << 32 | u64(1) << 46;
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(columns), "l"(rows) : "memory");
}
__device__ void multiply4(u32 sums, u64 a, u64 b, u32 scales_of_a, u32 scales_of_b, bool adds) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %6, 0;"
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 [%0], %1, %2, %3, [%4], [%5], p; }"
        ::"r"(sums), "l"(a), "l"(b), "r"(FOUR_BITS), "r"(scales_of_a), "r"(scales_of_b), "r"(int(adds)) : "memory");
}
"""
)


def tiled(scales):
    """(rows, k / 16) bytes in the order that the kernel wants: tiles of 128 rows × 4, 32 rows of 4 · 4 each."""
    rows, count = scales.shape
    return np.ascontiguousarray(
        scales.reshape(rows // 128, 4, 32, count // 4, 4).transpose(0, 3, 2, 1, 4)
    ).reshape(-1)


print("of one tile, 32 rows of 16 scales; those of the rows 0, 32, 64 and 96 of k block 0 to 3 come first:")
print(tiled(np.arange(128)[:, None] * np.ones((1, 4), int))[:16])

# %% [markdown]
# **Do.** Write `scaled(a, b, scales_a, scales_b, c)`: `c` = a · bᵀ with block scales.
#
# - `a` is (m, k / 2) and `b` is (n, k / 2) in bytes (uint8). A byte holds two numbers, the first in its low
#   four bits. `scales_a` and `scales_b` are in the order of `tiled`. `c` is (m, n) in float32. m and n are
#   multiples of 128, k of 256.
# - One block of 128 threads for each tile of 128 × 128; `blockIdx.x` counts tiles along n, `blockIdx.y` along
#   m.
# - A step is 256 of k: boxes of 128 × 128 bytes with the 128-byte swizzle, and 2,048 bytes of scales of each
#   operand, by `ptx::cp_async_bulk` (lab 23). The scales of step s begin at (r · steps + s) · 2,048, where r
#   counts the operand's tiles of 128 rows.
# - In a step, the i-th product of 64 of k takes `descriptor(tile) + 2 * i` and the i-th 512 bytes of scales.
# - Sums take the first 128 columns, from `sums` on. The 128 columns from `columns` on are for scales.
# - A thread's `scales_to` and the products that it issues afterwards are executed in order. No wait is needed
#   between them.
# - `bits` holds 64 of a row's 128 sums, so read and store the tile in two halves.
# - **Budget:** numbers and scales are copied in once; one product for every 64 of k; a quarter of the
#   instructions that the float32 lanes would need.
#
# About 26 and 4 lines.


# %% nbgrader={"grade": false, "grade_id": "scaled-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
scaling = cp.RawKernel(
    SCALES
    + r"""
extern "C" __global__ void scaling(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, const unsigned char* scales_a,
    const unsigned char* scales_b, float* c, int n, int k) {
    __shared__ alignas(1024) unsigned char of_a[128][128], of_b[128][128];
    __shared__ alignas(128) unsigned char scale_a[4][512], scale_b[4][512];
    __shared__ u64 full, read, over;
    __shared__ u32 place;
    int t = threadIdx.x, row = blockIdx.y * 128, col = blockIdx.x * 128, steps = k / 256;
    if (t == 0) initialise(&full, 1), initialise(&read, 1), initialise(&over, 1);
    if (t < 32) {
        ptx::tcgen05_alloc(ptx::cta_group_1, &place, 256);
        ptx::tcgen05_relinquish_alloc_permit(ptx::cta_group_1);
    }
    ptx::tcgen05_fence_before_thread_sync();
    __syncthreads();
    ptx::tcgen05_fence_after_thread_sync();
    u32 sums = place, columns = place + 128, bits[64];
    // ### BEGIN SOLUTION
    if (t == 0) {
        for (int step = 0; step < steps; step++) {
            expect(&full, sizeof of_a + sizeof of_b + sizeof scale_a + sizeof scale_b);
            copy(of_a, &a, step * 128, row, &full);
            copy(of_b, &b, step * 128, col, &full);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, scale_a,
                               scales_a + (blockIdx.y * steps + step) * 2048, 2048, &full);
            ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, scale_b,
                               scales_b + (blockIdx.x * steps + step) * 2048, 2048, &full);
            wait(&full, step & 1);
            for (int i = 0; i < 4; i++) {
                scales_to(columns + 4 * i, scale_a[i]);
                scales_to(columns + 16 + 4 * i, scale_b[i]);
                multiply4(sums, descriptor(of_a) + 2 * i, descriptor(of_b) + 2 * i, columns + 4 * i,
                          columns + 16 + 4 * i, step + i > 0);
            }
            ptx::tcgen05_commit(ptx::cta_group_1, &read);
            wait(&read, step & 1);
        }
        ptx::tcgen05_commit(ptx::cta_group_1, &over);
    }
    wait(&over, 0);
    ptx::tcgen05_fence_after_thread_sync();
    for (int half = 0; half < 2; half++) {
        ptx::tcgen05_ld_32x32b(bits, sums + 64 * half + (t / 32 * 32 << 16));
        ptx::tcgen05_wait_ld();
        store_row(bits, c + (row + t) * n + col + 64 * half);
    }
    // ### END SOLUTION
    __syncthreads();
    if (t < 32) ptx::tcgen05_dealloc(ptx::cta_group_1, sums, 256);
}
""",
    "scaling",
)


# %% nbgrader={"grade": false, "grade_id": "scaled", "locked": false, "schema_version": 3, "solution": true, "task": false}
def scaled(a, b, scales_a, scales_b, c):
    m, n, k = a.shape[0], b.shape[0], 2 * a.shape[1]
    ### BEGIN SOLUTION
    maps = [gpulab.tensor_map(x, (128, 128), swizzle=128) for x in (a, b)]
    scaling((n // 128, m // 128), (128,), (*maps, scales_a, scales_b, c, cp.int32(n), cp.int32(k)))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "scaled-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("tensor.scaled", scaled)

# %% [markdown]
# **See.** What four bits do to real numbers: a product of normally distributed matrices in NVFP4, beside the exact one.

# %%
gpulab.need(scaled)


def nvfp4(x):
    """Normal numbers as codes of e2m1 in pairs, their scales, and what the two together mean."""
    parts = x.reshape(x.shape[0], -1, 16)
    scales = numerics.encode(np.abs(parts).max(axis=2) / 6, "E4M3")
    factors = numerics.decode(scales, "E4M3")[..., None]
    codes = numerics.encode(parts / factors, "E2M1").reshape(x.shape)
    meant = (numerics.decode(codes, "E2M1").reshape(parts.shape) * factors).reshape(x.shape)
    return (codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8), tiled(scales), meant.astype(np.float64)


x, y = (numbers.standard_normal((128, 512)).astype(np.float32) for _ in range(2))
(x4, x_scales, x_meant), (y4, y_scales, y_meant) = nvfp4(x), nvfp4(y)
z = cp.empty((128, 128), cp.float32)
scaled(*map(cp.asarray, (x4, y4, x_scales, y_scales)), z)
exact = x.astype(np.float64) @ y.T.astype(np.float64)
size, rounded = np.linalg.norm(exact), x_meant @ y_meant.T
gpulab.plot.bars(
    {
        "products and sums": 100 * np.linalg.norm(z.get() - rounded) / size,
        "numbers in four bits": 100 * np.linalg.norm(rounded - exact) / size,
    },
    "error, % of the result",
    caption="The tensor cores lose next to nothing; the error comes from numbers of four bits.",
)

# %% [markdown]
# **Why.** The product itself is almost exact. The 16 products of a block are added without error, scaled, and
# then summed with 35 fraction bits. NVFP4 loses accuracy earlier, when the numbers are rounded to four bits.
#
# ## 9 · Blocks that stay
#
# A product of large matrices has thousands of tiles. If each tile has a block, the kernel pays for the start
# and the end of thousands of blocks. A **persistent** kernel launches only as many blocks as there are SMs.
# Each block works through a list of tiles, and it copies the next tile's operands while it stores the sums of
# the last one.
#
# The tiles that are made at the same time are a **wave**. Two numbers tell how good the lists are: the number
# of waves, and the number of **strips** of A and B that each wave needs. Tiles in one row of C share a strip
# of A, and tiles in one column share a strip of B. After one block has read a strip, the others find it in
# the L2 cache.
#
# ![Twelve tiles of a wave. Taken row by row they touch one row and twelve columns, thirteen strips. Taken as three by four they touch seven strips.](drawings/waves.svg)
#
# **Predict.** 800 tiles on 148 blocks take six waves. What percentage of the places in these waves stays
# empty?

# %%
gpulab.predict("tensor.tail", ...)

# %% [markdown]
# **Do.** Write `order(rows, cols, blocks)`, plain Python. It returns a list of `blocks` lists; each holds the tiles of one
# block as pairs (row, column), in the order in which it makes them.
#
# - Every tile of the `rows` × `cols` grid is made once. The k-th tiles of all lists are wave k.
# - The strips of a wave are its distinct rows plus its distinct columns. A square of P tiles has 2 · √P
#   strips.
# - **Budget:** as few waves as possible; and, summed over all waves, at most 1.2 · waves · 2 · √blocks
#   strips.
#
# About 6 lines.


# %% nbgrader={"grade": false, "grade_id": "order", "locked": false, "schema_version": 3, "solution": true, "task": false}
def order(rows, cols, blocks):
    ### BEGIN SOLUTION
    high = max(1, round(math.sqrt(blocks)))
    bands = math.ceil(rows / high)
    edges = [rows * i // bands for i in range(bands + 1)]
    tiles = []
    for i in range(bands):
        columns = range(cols) if i % 2 == 0 else reversed(range(cols))
        tiles += [(row, col) for col in columns for row in range(edges[i], edges[i + 1])]
    return [tiles[block::blocks] for block in range(blocks)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "order-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("tensor.order", order)

# %% [markdown]
# **See.** The waves of your order for 16 × 24 tiles on 36 blocks, beside those of tiles taken row by row.

# %%
gpulab.need(order)
lists = order(16, 24, 36)
in_turn = [mine[k] for k in range(max(map(len, lists))) for mine in lists if k < len(mine)]
gpulab.plot.tile_order(
    {"row by row": [(row, col) for row in range(16) for col in range(24)], "yours": in_turn},
    (16, 24),
    36,
    "Each colour is a wave of 36 tiles. The more a wave looks like a square, the fewer rows and columns it touches.",
)

# %% [markdown]
# **Why.** The last wave, which is seldom full, is the **tail**. With 800 tiles and 148 blocks a tenth of all
# places is empty, and no order changes that. What helps is smaller tiles, tiles that several blocks share
# along k (*stream-K*), or work from another product in the same launch (*grouped*).
#
# ## Beyond · A larger tile
#
# Open-ended and ungraded. Write a product of 256 × 256 × 1,024 whose blocks or pairs make larger tiles: with n = 128 or
# 256 in one product, or several products beside each other in Tensor Memory, which has 512 columns. The figure of merit
# is **bytes copied in for each element of C**.
#
# | kernel | bytes for each element of C |
# |---|---|
# | `by_one_thread`, tiles of 128 × 64 | 48 |
# | `pair`, tiles of 256 × 64 | the cell below |
# | bound: A and B once, for one tile of 256 × 256 | 16 |

# %%
gpulab.need(pair)
left, right = (cp.asarray(numbers.standard_normal((256, 1024)).astype(np.float16)) for _ in range(2))


def merit(function):
    found = cp.empty((256, 256), cp.float32)
    report = gpulab.profile(function, left, right, found)
    exact = left.get().astype(np.float64) @ right.get().astype(np.float64).T
    if not np.allclose(found.get(), exact, atol=0.1):
        return "wrong"
    return f"{report['bulk_load_bytes'] / found.size:.0f}"


merit(pair)

# %%
# Your function, then merit(…).

# %% [markdown]
# ## Recap
#
# <details><summary>1. Which thread issues a product, and which threads have to wait for it?</summary>
#
# One thread issues it and commits to an mbarrier. A thread that overwrites an operand waits there, and so
# does a thread that reads the sums.
# </details>
#
# <details><summary>2. Which lanes of Tensor Memory does thread 70 read, and which row of the tile is it?</summary>
#
# Warp 2 reaches the lanes 64 to 95; thread 70 gets lane 70, row 70.
# </details>
#
# <details><summary>3. What does a pair of blocks save?</summary>
#
# Each brings half of B, so B is read once for 256 rows instead of twice.
# </details>
#
# <details><summary>4. Where are the scales when an NVFP4 product is made, and how did they get
# there?</summary>
#
# In columns of Tensor Memory, copied from shared memory by `tcgen05.cp`.
# </details>
#
# <details><summary>5. Why does a wave that is nearly a square read least?</summary>
#
# P tiles as p × q touch p + q strips, and p + q is smallest for p = q = √P.
# </details>

# %%
gpulab.recap("24")

# %% [markdown]
# ### Cheat sheet
#
# | to | write |
# |---|---|
# | allocate, free | `tcgen05_alloc`, `tcgen05_relinquish_alloc_permit`, `tcgen05_dealloc`, a whole warp each |
# | address | column in the low bits, lane from bit 16 on |
# | multiply | one thread: `tcgen05.mma`, then `tcgen05_commit` to an mbarrier |
# | read sums | wait, `tcgen05_fence_after_thread_sync`, `tcgen05_ld`, `tcgen05_wait_ld` |
# | two blocks | clusters of 2, `cta_group_2` everywhere, the even rank issues, commit to both |
# | block scales | `tcgen05.cp` to columns, then `kind::mxf4nvf4.block_scale` |
#
# ### Claims you will meet, and what is right
#
# - *Blackwell's tensor cores keep sums in registers.* In Tensor Memory; registers see them when they are read.
# - *All threads of a warpgroup issue a product.* One thread does, for a block or for a pair.
# - *FP4 is four times as fast as FP16, so training is.* Only products are; scales, rounding and everything else are not.
# - *More blocks fill the last wave.* Only if they are smaller or share tiles; the number of tiles decides.
#
# ### References
#
# 1. NVIDIA, *Parallel Thread Execution ISA*: TensorCore 5th generation instructions.
#    https://docs.nvidia.com/cuda/parallel-thread-execution/
# 2. NVIDIA, *NVIDIA Blackwell Architecture Technical Brief*, 2024.
# 3. NVIDIA, *Introducing NVFP4 for Efficient and Accurate Low-Precision Inference*, 2025.
#    https://developer.nvidia.com/blog/introducing-nvfp4-for-efficient-and-accurate-low-precision-inference/
# 4. Microsoft, *MMA-Sim*, 2025. https://github.com/microsoft/MMA-Sim
# 5. M. Osama, D. Merrill, C. Cecka, M. Garland, J. D. Owens, "Stream-K: Work-centric Parallel Decomposition for Dense
#    Matrix-Matrix Multiplication on the GPU", 2023. https://arxiv.org/abs/2301.03598
