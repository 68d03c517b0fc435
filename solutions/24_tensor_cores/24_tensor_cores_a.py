# ---
# jupyter:
#   gpulab:
#     lab: "24"
#     hours: 4
#     topics: [C25.6, C25.7]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 24A · Tensor cores that read by themselves: Hopper
#
# **3 to 5 hours.** You have done lab 23 (copies by the tile, mbarriers, warps with roles) and lab 06B, where a warp loaded
# fragments into registers and multiplied them. You need no GPU: the kernels run on a simulated **H100**.
#
# Lab 06B's kernel spent most of its instructions on moving operands from shared memory to registers. Hopper's
# tensor cores read both operands from shared memory by themselves, and they work while your threads do
# something else. This is the only way to reach an H100's advertised rate.
#
# By the end you can
#
# 1. write the 64 bits that tell a tensor core where its operand lies;
# 2. let 128 threads multiply tiles that the copy engine has brought, and know which thread holds which sum;
# 3. copy the next tile while this one is multiplied, and multiply the next one while this one is finished;
# 4. say what a sum of eight-bit products loses on Hopper, and avoid it;
# 5. find a missing proxy fence, which no test of the result can show.

# %%
import numpy as np

import gpulab
from gpulab import cupy as cp
from gpulab import numerics

gpulab.start("24", gpu="H100")

# %% [markdown]
# ## 1 · An operand is an address and two steps
#
# A **warpgroup** is four warps, 128 threads. Together they issue one instruction, `wgmma.mma_async`, which
# multiplies a 64 × k matrix A by a k × n matrix. For float16, k is 16. Both operands may lie in shared
# memory. The instruction finds each of them through a 64-bit **matrix descriptor**, which says where the
# operand starts and how it is laid out.
#
# The tensor cores read an operand in pieces of 8 rows × 16 bytes. A row runs along k: A has 64 rows, and the
# second operand is stored as n rows of k numbers, which is why this lab calls it Bᵀ. A descriptor holds the
# address of the first piece and two distances: the **leading** offset from a piece to the next one along k,
# and the **stride** offset from one group of 8 rows to the next group. It also names the swizzle with which
# the tile was copied. Without a swizzle, the 8 rows of a piece follow one another in memory, so a piece is
# 128 contiguous bytes.
#
# ![An operand in pieces of 8 rows of 16 bytes. The leading offset leads to the next piece along k, the stride offset to the next 8 rows.](drawings/pieces.svg)
#
# | bits | field | unit |
# |---|---|---|
# | 0–13 | start address in shared memory | 16 bytes |
# | 16–29 | leading offset | 16 bytes |
# | 32–45 | stride offset | 16 bytes |
# | 62–63 | swizzle: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes | |
#
# (Bits 49–51 hold a base offset, which is 0 for a tile that starts at a multiple of 1,024 bytes.)
#
# **Predict.** How many bytes of shared memory do the tensor cores read for a product of 64 × 16 and 16 × 64 in float16?

# %%
gpulab.predict("tensor.bytes", ...)

# %% [markdown]
# **Do.** Write `describe(start, leading, stride, swizzle)`, which returns the descriptor as a Python integer.
#
# - `start`, `leading` and `stride` are in bytes, and multiples of 16; `start` is below 2¹⁸ = 262,144.
# - `swizzle` is 0, 32, 64 or 128, in bytes.
# - A failing check prints the numbers in hexadecimal, and their fields as they are stored.
#
# About 3 lines.


# %% nbgrader={"grade": false, "grade_id": "describe", "locked": false, "schema_version": 3, "solution": true, "task": false}
def describe(start, leading, stride, swizzle):
    ### BEGIN SOLUTION
    code = {0: 0, 128: 1, 64: 2, 32: 3}[swizzle]
    return start // 16 | leading // 16 << 16 | stride // 16 << 32 | code << 62
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "describe-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("tensor.describe", describe)

# %% [markdown]
# **Why.** A tile that was copied with the 128-byte swizzle has the simplest descriptor. Its rows are 128
# bytes long, which is 64 halves or 8 pieces, and follow each other without a gap. Eight rows take 1,024
# bytes, so the stride is 1,024. The leading offset is not used, because the swizzle determines where the
# pieces of a row are; by convention it is set to 16.
#
# To multiply the next 16 halves of k, add 32 bytes to the start address, which is 2 in the descriptor's units. The
# hardware applies the swizzle to the address that it computes.
#
# ## 2 · A warpgroup multiplies
#
# The sums stay in registers. For a tile of 64 × 64, each of the 128 threads holds a part of them.
#
# **Predict.** How many sums does each thread hold?

# %%
gpulab.predict("tensor.registers", ...)

# %% [markdown]
# ![A product takes four steps: begin, multiply, commit, wait. Between commit and wait the tensor cores work by themselves, and the registers of the sums must not be touched.](drawings/four_steps.svg)
#
# A product is **asynchronous**: the instruction returns before the tensor cores have finished. Three more
# instructions put products in order with what the threads do. The next cell wraps all four in functions,
# because `wgmma.mma_async` has to name each of its 32 registers.
#
# | function | instruction | meaning |
# |---|---|---|
# | `begin_products()` | `wgmma.fence` | products that follow see what threads have done to the registers of the sums |
# | `multiply(d, a, b, adds)` | `wgmma.mma_async` | starts d = A · Bᵀ, plus d if `adds`; `a` and `b` are descriptors |
# | `end_products()` | `wgmma.commit_group` | the products since the last commit form a **group** |
# | `wait_products<n>()` | `wgmma.wait_group` | waits until all but the n most recent groups are complete |
#
# Until that wait, the tensor cores own the sums in `d` and may still be reading the tiles. Your threads must
# neither touch `d` nor overwrite the tiles. `descriptor(tile)` makes the descriptor of a tile that was copied
# with the 128-byte swizzle.

# %%
HEAD = r"""
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

__device__ u64 descriptor(const void* tile) {           // rows of 128 bytes with the 128-byte swizzle
    u64 at = __cvta_generic_to_shared(tile);
    return at >> 4 | u64(1) << 16 | u64(1024 >> 4) << 32 | u64(1) << 62;
}
__device__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ void wait_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
__device__ void multiply(float (&d)[32], u64 a, u64 b, bool adds) {          // 64 × 64 × 16, float16
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %34, 0;"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]) : "l"(a), "l"(b), "r"(int(adds)));
}
__device__ void multiply8(float (&d)[32], u64 a, u64 b, bool adds) {         // 64 × 64 × 32, e4m3
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %34, 0;"
        "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e4m3 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]) : "l"(a), "l"(b), "r"(int(adds)));
}
__device__ void store(const float (&d)[32], float* c, int n) {               // c: the first element of the tile
    int t = threadIdx.x % 128, row = t / 32 * 16 + t % 32 / 4, col = t % 4 * 2;
    for (int j = 0; j < 8; j++)
        for (int below = 0; below < 2; below++)
            *reinterpret_cast<float2*>(&c[(row + 8 * below) * n + 8 * j + col]) =
                make_float2(d[4 * j + 2 * below], d[4 * j + 2 * below + 1]);
}
"""

# %% [markdown]
# Which thread holds which sum? Warp w has the rows 16·w to 16·w + 15, and within them each lane holds pairs
# of neighbouring columns. `store` writes the sums to their places in `c`. In the next cell each thread stores
# its own number instead of sums, so the printed matrix names the owner of each element.

# %%
OWNERS = (
    HEAD
    + r"""
extern "C" __global__ void owners(float* c) {
    float d[32];
    for (int i = 0; i < 32; i++) d[i] = threadIdx.x;
    store(d, c, 64);
}
"""
)
owner = cp.empty((64, 64), cp.float32)
cp.RawKernel(OWNERS, "owners")((1,), (128,), (owner,))
print(owner.get()[:9, :10].astype(int))

# %% [markdown]
# **Do.** Write `product(a, b, c)`: `c` = a · bᵀ. Two cells: the kernel, then the host function.
#
# - `a` is (m, k), `b` is (n, k), both float16, and `c` is (m, n) in float32. All sizes are multiples of 64.
# - One block of 128 threads for each tile of 64 × 64 of `c`; `blockIdx.x` counts tiles along n, `blockIdx.y`
#   along m.
# - A step is 64 of k: two copies, boxes of 64 × 64 with the 128-byte swizzle, then four products of 16 of k
#   each.
# - `copy(tile, &a, column, row, &full)` brings a box. For both operands, the column is the position along k.
# - `d` is not initialised. The very first product must not add to it.
# - The host makes the maps with `gpulab.tensor_map(array, box, swizzle)` and passes n and k as `cp.int32`.
# - **Budget:** at most a quarter of the instructions that the float32 lanes would need, one for 32 products of
#   two numbers; two copies a step; no loads by threads, neither from global nor from shared memory; one
#   product for every 16 of k.
#
# About 16 and 4 lines.


# %% nbgrader={"grade": false, "grade_id": "tile-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
multiplying = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void multiplying(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c, int n, int k) {
    __shared__ alignas(1024) __half of_a[64][64], of_b[64][64];
    __shared__ u64 full;
    int t = threadIdx.x, row = blockIdx.y * 64, col = blockIdx.x * 64;
    float d[32];
    // ### BEGIN SOLUTION
    if (t == 0) initialise(&full, 1);
    __syncthreads();
    for (int step = 0; step < k / 64; step++) {
        if (t == 0) {
            expect(&full, sizeof of_a + sizeof of_b);
            copy(of_a, &a, step * 64, row, &full);
            copy(of_b, &b, step * 64, col, &full);
        }
        wait(&full, step & 1);
        begin_products();
        for (int i = 0; i < 4; i++)
            multiply(d, descriptor(of_a) + 2 * i, descriptor(of_b) + 2 * i, step + i > 0);
        end_products();
        wait_products<0>();
        __syncthreads();
    }
    // ### END SOLUTION
    store(d, c + row * n + col, n);
}
""",
    "multiplying",
)


# %% nbgrader={"grade": false, "grade_id": "tile", "locked": false, "schema_version": 3, "solution": true, "task": false}
def product(a, b, c):
    (m, k), n = a.shape, b.shape[0]
    ### BEGIN SOLUTION
    maps = [gpulab.tensor_map(x, (64, 64), swizzle=128) for x in (a, b)]
    multiplying((n // 64, m // 64), (128,), (*maps, c, cp.int32(n), cp.int32(k)))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "tile-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("tensor.tile", product)

# %% [markdown]
# **See.** The bytes that the operands moved for m = n = 128 and k = 256, by the path that they took.

# %%
gpulab.need(product)
numbers = np.random.default_rng(0)
a, b = (cp.asarray(numbers.standard_normal((128, 256)).astype(np.float16)) for _ in range(2))
c = cp.empty((128, 128), cp.float32)
report = gpulab.profile(product, a, b, c)
gpulab.plot.bars(
    {
        "global memory to shared memory": report["bulk_load_bytes"],
        "shared memory to tensor cores": report["warpgroup_bytes"],
        "shared memory to registers": report["shared_load_bytes"],
    },
    "bytes",
)

# %% [markdown]
# **Why.** In lab 06B each byte of an operand passed through a register on its way to the tensor cores. Here none does.
# That leaves the registers for sums, so tiles can be larger and need fewer bytes for each product.
#
# ## 3 · Copy the next tile while this one is multiplied
#
# While your kernel copies, its tensor cores are idle. You know the remedy from lab 23: slots, a warp that only copies, full
# and empty mbarriers.
#
# ![Above: copy and product take turns. Below: while the tensor cores multiply tile k, the engine copies tile k + 1.](drawings/overlap.svg)
#
# When may a slot be filled again? The products of its step read it until they are complete, so it is not
# enough that they have been issued. If you call `wait_products<0>()` after every step, the tensor cores run
# out of work at each wait. After `wait_products<1>()`, the products of this step may still be in flight, but
# those of the step before are complete. Therefore the slot of the *previous* step is free.
#
# **Do.** Write `overlap(a, b, c)`, the same product with five warps.
#
# - 160 threads a block. Warps 0 to 3 are the warpgroup that multiplies; warp 4 copies.
# - `slots` is dynamic shared memory for three slots of 8,192 halves: 64 × 64 of A, then 64 × 64 of B. The host passes
#   `shared_mem=3 * 16384`.
# - `full` is initialised for one arrival, `empty` for four: one lane of each warp of the warpgroup calls
#   `ptx::mbarrier_arrive(&empty[s])`.
# - `k` may be 64: a single step.
# - **Budget:** while a warp waits for the products of one step, those of the next step are in flight; no warp
#   both copies and writes `c`; one block barrier; three slots used in turn; two copies a step; no loads from
#   shared memory; instructions and products as for `product`.
#
# About 26 and 4 lines.


# %% nbgrader={"grade": false, "grade_id": "overlap-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
overlapping = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void overlapping(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c, int n, int k) {
    extern __shared__ __align__(1024) __half slots[];
    __shared__ u64 full[3], empty[3];
    int t = threadIdx.x, row = blockIdx.y * 64, col = blockIdx.x * 64;
    // ### BEGIN SOLUTION
    if (t < 3) {
        initialise(&full[t], 1);
        initialise(&empty[t], 4);
    }
    __syncthreads();
    if (t >= 128) {
        if (t == 128)
            for (int step = 0; step < k / 64; step++) {
                int s = step % 3;
                wait(&empty[s], (step / 3 & 1) ^ 1);
                expect(&full[s], 16384);
                copy(slots + s * 8192, &a, step * 64, row, &full[s]);
                copy(slots + s * 8192 + 4096, &b, step * 64, col, &full[s]);
            }
        return;
    }
    float d[32];
    for (int step = 0; step < k / 64; step++) {
        int s = step % 3;
        wait(&full[s], step / 3 & 1);
        u64 left = descriptor(slots + s * 8192), right = descriptor(slots + s * 8192 + 4096);
        begin_products();
        for (int i = 0; i < 4; i++) multiply(d, left + 2 * i, right + 2 * i, step + i > 0);
        end_products();
        wait_products<1>();
        if (t % 32 == 0 && step > 0) ptx::mbarrier_arrive(&empty[(step - 1) % 3]);
    }
    wait_products<0>();
    store(d, c + row * n + col, n);
    // ### END SOLUTION
}
""",
    "overlapping",
)


# %% nbgrader={"grade": false, "grade_id": "overlap", "locked": false, "schema_version": 3, "solution": true, "task": false}
def overlap(a, b, c):
    (m, k), n = a.shape, b.shape[0]
    ### BEGIN SOLUTION
    maps = [gpulab.tensor_map(x, (64, 64), swizzle=128) for x in (a, b)]
    grid = (n // 64, m // 64)
    overlapping(grid, (160,), (*maps, c, cp.int32(n), cp.int32(k)), shared_mem=3 * 16384)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "overlap-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("tensor.overlap", overlap)

# %% [markdown]
# **See.** When each warp works and waits, which copies are on their way, and when the tensor cores multiply:
# first in `product`, then in `overlap`.

# %%
gpulab.need(product)
gpulab.timeline(product, a, b, c)

# %%
gpulab.need(overlap)
gpulab.timeline(overlap, a, b, c)

# %% [markdown]
# If a consumer frees a slot one step too early, the copy overwrites operands that are still being read. The
# cell takes the wait out of your kernel and asks the sanitizer:

# %%
gpulab.need(overlap)
early = cp.RawKernel(overlapping.code.replace("wait_products<1>();", ""), "overlapping")
if early.code == overlapping.code:
    print("Your kernel writes wait_products<1>() in another way: take it out by hand.")
maps = [gpulab.tensor_map(x, (64, 64), swizzle=128) for x in (a, b)]
try:
    print(
        gpulab.sanitize(
            lambda: early((2, 2), (160,), (*maps, c, cp.int32(128), cp.int32(256)), shared_mem=49152)
        )
    )
except Exception as error:
    print(error)

# %% [markdown]
# **Why.** This is the loop of every fast matrix product on Hopper. CUTLASS calls it *warp-specialised*. Its own example
# in CuTe DSL (`dense_gemm_persistent.py`) was counted here with the same tiles: for 256 × 256 × 256 it executes 40,416
# warp instructions, and `overlap` as we wrote it executes 21,584. CUTLASS's kernel works for more types, layouts and sizes.
#
# ### Two warpgroups take turns
#
# One gap is left. While the warpgroup stores a tile, or applies an activation to it, the tensor cores have
# nothing to do. Therefore CUTLASS's fastest kernels for Hopper have two warpgroups of consumers. While one
# finishes its tile, the other one multiplies. CUTLASS calls this **pingpong**.
#
# ![Two warpgroups in turn: while one multiplies its tile, the other applies gelu to the tile before and stores it. The tensor cores always have a tile to multiply.](drawings/pingpong.svg)
#
# **Predict.** The products of a tile take 600 cycles, and everything after them takes 500. There are 8 tiles.
# How many times as fast as one warpgroup are two that take turns?

# %%
gpulab.predict("tensor.turns", ...)

# %% [markdown]
# Both warpgroups read from one ring of slots, so each must know when its steps come. Can it just wait at
# `full` of its first step? No. Parity tells only two consecutive phases apart. If a tile has four steps, the first
# step of the second tile is phase 1 of slot 1. At the start, phase 0 has not ended, and `wait(full, 1)` takes
# the phase *before* it for the one that it is waiting for (lab 23). So the warpgroups hand over
# their turn by two more mbarriers, and each looks at the ring only when the other one has gone through its
# part of it.
#
# **Do.** Write `pingpong(a, b, c)`: `c` = gelu(a · bᵀ).
#
# - Shapes and types are those of `overlap`. `gelu` is given; apply it to every sum.
# - 288 threads a block: warpgroups 0 and 1 multiply, warp 8 copies.
# - One block for each 64 rows of `a`. It makes the n / 64 tiles of these rows in order: warpgroup 0 makes the
#   tiles with even numbers, warpgroup 1 those with odd ones.
# - One ring of three slots, as in `overlap`, for all steps of all tiles of a block.
# - `turn[g]` is initialised for four arrivals: one lane of each warp of the other warpgroup arrives, as soon as its
#   last products have been asked for. Warpgroup 0 begins.
# - **Budget:** each warpgroup makes every other tile; the turn is handed over while products are in flight, so
#   each warp arrives once a tile with none in flight, to free the last slot; one block for 64 rows; one block
#   barrier; three slots used in turn; half of the instructions that the float32 lanes would need; otherwise as
#   for `overlap`.
#
# About 35 and 2 lines, many of them from `overlapping`.


# %% nbgrader={"grade": false, "grade_id": "pingpong-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
pingponging = cp.RawKernel(
    HEAD
    + r"""
__device__ float gelu(float x) { return x / 2 * (1 + erff(x * 0.70710678f)); }

extern "C" __global__ void pingponging(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c, int n, int k) {
    extern __shared__ __align__(1024) __half slots[];
    __shared__ u64 full[3], empty[3], turn[2];
    int t = threadIdx.x, group = t / 128, row = blockIdx.x * 64, steps = k / 64, tiles = n / 64;
    // ### BEGIN SOLUTION
    if (t < 3) {
        initialise(&full[t], 1);
        initialise(&empty[t], 4);
    }
    if (t < 2) initialise(&turn[t], 4);
    __syncthreads();
    if (group == 2) {
        if (t == 256)
            for (int p = 0; p < tiles * steps; p++) {
                int s = p % 3;
                wait(&empty[s], (p / 3 & 1) ^ 1);
                expect(&full[s], 16384);
                copy(slots + s * 8192, &a, p % steps * 64, row, &full[s]);
                copy(slots + s * 8192 + 4096, &b, p % steps * 64, p / steps * 64, &full[s]);
            }
        return;
    }
    float d[32];
    for (int tile = group; tile < tiles; tile += 2) {
        wait(&turn[group], (tile / 2 & 1) ^ (group == 0));
        for (int step = 0; step < steps; step++) {
            int p = tile * steps + step, s = p % 3;
            wait(&full[s], p / 3 & 1);
            u64 left = descriptor(slots + s * 8192), right = descriptor(slots + s * 8192 + 4096);
            begin_products();
            for (int i = 0; i < 4; i++) multiply(d, left + 2 * i, right + 2 * i, step + i > 0);
            end_products();
            wait_products<1>();
            if (t % 32 == 0 && step > 0) ptx::mbarrier_arrive(&empty[(p - 1) % 3]);
        }
        if (t % 32 == 0) ptx::mbarrier_arrive(&turn[1 - group]);
        wait_products<0>();
        if (t % 32 == 0) ptx::mbarrier_arrive(&empty[(tile * steps + steps - 1) % 3]);
        for (int i = 0; i < 32; i++) d[i] = gelu(d[i]);
        store(d, c + row * n + tile * 64, n);
    }
    // ### END SOLUTION
}
""",
    "pingponging",
)


# %% nbgrader={"grade": false, "grade_id": "pingpong", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pingpong(a, b, c):
    (m, k), n = a.shape, b.shape[0]
    ### BEGIN SOLUTION
    maps = [gpulab.tensor_map(x, (64, 64), swizzle=128) for x in (a, b)]
    pingponging((m // 64,), (288,), (*maps, c, cp.int32(n), cp.int32(k)), shared_mem=3 * 16384)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "pingpong-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("tensor.pingpong", pingpong)

# %% [markdown]
# **See.** Four tiles of two steps each. Find the moments at which one warpgroup waits for its turn and the
# other one works on its tile.

# %%
gpulab.need(pingpong)
weight = cp.asarray(numbers.standard_normal((256, 128)).astype(np.float16))
activations = cp.empty((64, 256), cp.float32)
gpulab.timeline(pingpong, a[:64, :128].copy(), weight, activations)

# %% [markdown]
# **Why.** The tensor cores get their next tile before the last one has been stored. The price is registers: both
# warpgroups hold sums. With larger tiles, CUTLASS's *cooperative* form instead lets both warpgroups work on
# halves of the same tile.
#
# ## 4 · Sums of eight-bit numbers
#
# With FP8 (e4m3, lab 09) an H100 multiplies twice as fast as with float16. But its tensor cores add the
# products in fewer bits than float32 has. They align all terms with the largest one, keep 13 fraction bits of
# each, and cut off the rest. So every addition to a sum S can lose up to S · 2⁻¹³. Because bits are cut off
# and not rounded, positive terms always lose in the same direction.
#
# ![When a small term is added to a large sum, the bits below the sum's 13th fraction bit are cut off.](drawings/cut_bits.svg)
#
# **Predict.** A sum over k = 2,048 takes 64 products of 32 of k each. If every one of them lost 2⁻¹³ of the
# final sum, what percentage of it would be lost?

# %%
gpulab.predict("tensor.lost", ...)

# %% [markdown]
# DeepSeek met this error when it trained V3 in FP8. Its remedy is to **promote** the sums. After every 128 of k,
# the threads add the tensor cores' sums to a second set of registers in float32, and the tensor cores start again
# at zero.
#
# **Do.** Write `promote(a, b, c)`: `c` = a · bᵀ for numbers of e4m3.
#
# - `a` is (m, k) and `b` is (n, k), as bytes (uint8) that hold codes of e4m3; `c` is (m, n) in float32. m and n are
#   multiples of 64, k is a multiple of 128. All numbers are positive.
# - One block of 128 threads for each tile of 64 × 64. A step is 128 of k, so boxes are 64 × 128 bytes, with
#   the 128-byte swizzle. `multiply8` multiplies 32 of k. Those are 32 bytes again, so its descriptors advance
#   by 2 as before.
# - The relative error must be at most 2 · 10⁻³.
# - **Budget:** a quarter of the instructions that the float32 lanes would need; one wait for products, and one addition for each of a thread's 32 sums, in every 128 of k; one
#   product for every 32 of k.
#
# About 20 and 4 lines, most of them from `multiplying`.


# %% nbgrader={"grade": false, "grade_id": "promote-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
promoting = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void promoting(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c, int n, int k) {
    __shared__ alignas(1024) unsigned char of_a[64][128], of_b[64][128];
    __shared__ u64 full;
    int t = threadIdx.x, row = blockIdx.y * 64, col = blockIdx.x * 64;
    float d[32], total[32] = {};
    // ### BEGIN SOLUTION
    if (t == 0) initialise(&full, 1);
    __syncthreads();
    for (int step = 0; step < k / 128; step++) {
        if (t == 0) {
            expect(&full, sizeof of_a + sizeof of_b);
            copy(of_a, &a, step * 128, row, &full);
            copy(of_b, &b, step * 128, col, &full);
        }
        wait(&full, step & 1);
        begin_products();
        for (int i = 0; i < 4; i++) multiply8(d, descriptor(of_a) + 2 * i, descriptor(of_b) + 2 * i, i > 0);
        end_products();
        wait_products<0>();
        for (int j = 0; j < 32; j++) total[j] += d[j];
        __syncthreads();
    }
    // ### END SOLUTION
    store(total, c + row * n + col, n);
}
""",
    "promoting",
)


# %% nbgrader={"grade": false, "grade_id": "promote", "locked": false, "schema_version": 3, "solution": true, "task": false}
def promote(a, b, c):
    (m, k), n = a.shape, b.shape[0]
    ### BEGIN SOLUTION
    maps = [gpulab.tensor_map(x, (64, 128), swizzle=128) for x in (a, b)]
    promoting((n // 64, m // 64), (128,), (*maps, c, cp.int32(n), cp.int32(k)))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "promote-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("tensor.promote", promote)

# %% [markdown]
# **See.** The error with and without promotion, as k grows. The second kernel lets the tensor cores add everything.

# %%
gpulab.need(promote)
ALL_IN_ONE = (
    HEAD
    + r"""
extern "C" __global__ void all_in_one(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c, int k) {
    __shared__ alignas(1024) unsigned char of_a[64][128], of_b[64][128];
    __shared__ u64 full;
    if (threadIdx.x == 0) initialise(&full, 1);
    __syncthreads();
    float d[32];
    for (int step = 0; step < k / 128; step++) {
        if (threadIdx.x == 0) {
            expect(&full, sizeof of_a + sizeof of_b);
            copy(of_a, &a, step * 128, 0, &full);
            copy(of_b, &b, step * 128, 0, &full);
        }
        wait(&full, step & 1);
        begin_products();
        for (int i = 0; i < 4; i++)
            multiply8(d, descriptor(of_a) + 2 * i, descriptor(of_b) + 2 * i, step + i > 0);
        end_products();
        wait_products<0>();
        __syncthreads();
    }
    store(d, c, 64);
}
"""
)
all_in_one = cp.RawKernel(ALL_IN_ONE, "all_in_one")
lengths, errors = [256, 512, 1024, 2048, 4096], {"in the tensor cores": [], "promoted every 128": []}
for k in lengths:
    codes = [np.random.default_rng(k + i).integers(48, 64, (64, k)).astype(np.uint8) for i in range(2)]
    left, right = (numerics.decode(x, "E4M3").astype(np.float64) for x in codes)
    exact = left @ right.T
    x, y, z = cp.asarray(codes[0]), cp.asarray(codes[1]), cp.empty((64, 64), cp.float32)
    maps = [gpulab.tensor_map(v, (64, 128), swizzle=128) for v in (x, y)]
    all_in_one((1,), (128,), (*maps, z, cp.int32(k)))
    errors["in the tensor cores"].append(100 * np.abs(z.get() / exact - 1).max())
    promote(x, y, z)
    errors["promoted every 128"].append(100 * np.abs(z.get() / exact - 1).max())
gpulab.plot.lines(
    {name: list(zip(lengths, row, strict=True)) for name, row in errors.items()},
    "k",
    "largest relative error, %",
    "The error of sums in the tensor cores grows with k; promoted sums keep theirs.",
    log_x=True,
    log_y=True,
)

# %% [markdown]
# **Why.** The error of `all_in_one` grows with k, because the sum grows and what is cut off grows with it.
# Promotion costs each thread 32 additions for every 128 of k. They do not run on the tensor cores, so these
# can work for a second warpgroup in the meantime. Blackwell's tensor cores keep 25 fraction bits and need no
# promotion.
#
# ## Detective · Right on every run
#
# A colleague's kernel converts a tile from float32 to float16 while it writes the tile to shared memory,
# which the copy engine cannot do. Then the tensor cores multiply it. "I compared it with NumPy a thousand
# times, and it was always right. But once, on the cluster, the loss of a training run jumped for a single
# step."


# %%
COLLEAGUE = (
    HEAD
    + r"""
__device__ u64 plain(const void* tile) {                // pieces of 8 rows × 16 bytes, without a swizzle
    u64 at = __cvta_generic_to_shared(tile);
    return at >> 4 | u64(128 >> 4) << 16 | u64(1024 >> 4) << 32;
}

extern "C" __global__ void convert(const float* a, const __half* b, float* c) {
    __shared__ alignas(128) __half of_a[64 * 64], of_b[64 * 64];
    int t = threadIdx.x;
    a += blockIdx.x * 64 * 64;
    for (int i = t; i < 64 * 64; i += 128) {
        int row = i / 64, k = i % 64;
        int place = row / 8 * 512 + k / 8 * 64 + row % 8 * 8 + k % 8;
        of_a[place] = __float2half(a[i]);
        of_b[place] = b[i];
    }
    __syncthreads();
    float d[32];
    begin_products();
    for (int i = 0; i < 4; i++) multiply(d, plain(of_a) + 16 * i, plain(of_b) + 16 * i, i > 0);
    end_products();
    wait_products<0>();
    store(d, c + blockIdx.x * 64 * 64, 64);
}
"""
)
convert = cp.RawKernel(COLLEAGUE, "convert")
floats = cp.asarray(numbers.standard_normal((128, 64)).astype(np.float32))
weights = cp.asarray(numbers.standard_normal((64, 64)).astype(np.float16))
sums = cp.empty((128, 64), cp.float32)
convert((2,), (128,), (floats, weights, sums))
wanted = floats.get().astype(np.float16).astype(np.float64) @ weights.get().astype(np.float64).T
print("right:", np.allclose(sums.get(), wanted, atol=1e-3))

# %% [markdown]
# **Do.** Find out what can go wrong, and correct the kernel. The first cell is yours: ask the sanitizer, with
# `gpulab.sanitize(kernel, grid, block, arguments)`. The second cell takes the kernel: copy the colleague's
# lines into it and add what is missing. The check launches one block of 128 threads for every 64 rows of `a`.

# %%
# Your experiment.


# %% nbgrader={"grade": false, "grade_id": "fence", "locked": false, "schema_version": 3, "solution": true, "task": false}
fence = cp.RawKernel(
    HEAD
    + r"""
__device__ u64 plain(const void* tile) {
    u64 at = __cvta_generic_to_shared(tile);
    return at >> 4 | u64(128 >> 4) << 16 | u64(1024 >> 4) << 32;
}

extern "C" __global__ void convert(const float* a, const __half* b, float* c) {
    __shared__ alignas(128) __half of_a[64 * 64], of_b[64 * 64];
    int t = threadIdx.x;
    a += blockIdx.x * 64 * 64;
    // ### BEGIN SOLUTION
    for (int i = t; i < 64 * 64; i += 128) {
        int row = i / 64, k = i % 64;
        int place = row / 8 * 512 + k / 8 * 64 + row % 8 * 8 + k % 8;
        of_a[place] = __float2half(a[i]);
        of_b[place] = b[i];
    }
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    float d[32];
    begin_products();
    for (int i = 0; i < 4; i++) multiply(d, plain(of_a) + 16 * i, plain(of_b) + 16 * i, i > 0);
    end_products();
    wait_products<0>();
    store(d, c + blockIdx.x * 64 * 64, 64);
    // ### END SOLUTION
}
""",
    "convert",
)

# %% nbgrader={"grade": true, "grade_id": "fence-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("tensor.fence", fence)

# %% [markdown]
# ### Your answer
#
# In three to five sentences: what is missing, what writes and what reads there, why `__syncthreads()` is not enough, and
# why a thousand comparisons did not show it. Cite the two lines that the sanitizer names. A person reads this: 1 point
# for the cause, 1 point for the two lines and what each does.

# %% [markdown] nbgrader={"grade": true, "grade_id": "fence-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** The threads write of_a and of_b (the line `of_a[place] = __float2half(a[i])`), and the tensor cores read
# them (the line of the product, in `multiply`). Tensor cores reach shared memory by the async proxy, threads by the
# generic one, and a barrier orders only the threads. A `fence_proxy_async` by every thread that wrote is missing before
# the barrier. In nearly every run the writes have arrived long before the product begins, so the result is right; only
# now and then one is late.
#
# **1 point** (cause without the lines): A proxy fence is missing between the writes and wgmma, and the barrier does not
# replace it.
#
# **0 points:** There is a `wgmma.fence` missing. Or: the barrier comes too early.

# %% [markdown]
# ## Beyond · A larger tile
#
# Open-ended and ungraded. Write a product for 128 × 128 × 1,024 whose blocks make larger tiles than 64 × 64, for example
# with two warpgroups, or with n = 128 or 256 in one product. The figure of merit is **bytes copied in for each element
# of C**.
#
# | kernel | bytes for each element of C |
# |---|---|
# | `product`, tiles of 64 × 64 | the cell below |
# | bound: A and B once, for one tile of 128 × 128 | 32 |

# %%
gpulab.need(product)
left, right = (cp.asarray(numbers.standard_normal((128, 1024)).astype(np.float16)) for _ in range(2))


def merit(function):
    found = cp.empty((128, 128), cp.float32)
    report = gpulab.profile(function, left, right, found)
    exact = left.get().astype(np.float64) @ right.get().astype(np.float64).T
    if not np.allclose(found.get(), exact, atol=0.1):
        return "wrong"
    return f"{report['bulk_load_bytes'] / found.size:.0f}"


merit(product)

# %%
# Your function, then merit(…).

# %% [markdown]
# ## Recap
#
# <details><summary>1. A tile of 64 rows × 128 bytes was copied with the 128-byte swizzle. Which stride does its
# descriptor have?</summary>
#
# 1,024 bytes, eight rows: 64 in units of 16.
# </details>
#
# <details><summary>2. Between <code>end_products()</code> and the wait you read <code>d[0]</code>. What do you
# get?</summary>
#
# An undefined value: the registers belong to the tensor cores until the wait.
# </details>
#
# <details><summary>3. After <code>wait_products&lt;1&gt;()</code>, which slot may be filled again?</summary>
#
# The slot of the step before. The products of this step may still be reading theirs.
# </details>
#
# <details><summary>4. Why does an FP8 product on Hopper add its sums to float32 registers every 128 of k?</summary>
#
# The tensor cores keep 13 fraction bits below the largest term, so a sum that grows loses more with every addition.
# </details>
#
# <details><summary>5. Threads wrote a tile, all met at a barrier, then the warpgroup multiplies it. What is
# missing?</summary>
#
# A proxy fence by every thread that wrote, before the barrier.
# </details>

# %%
gpulab.recap("24")

# %% [markdown]
# ### Cheat sheet
#
# | to | write |
# |---|---|
# | describe a swizzled tile | start / 16, stride 1,024 / 16 at bit 32, 1 at bit 62 |
# | go on along k | start + 32 bytes: + 2 in the descriptor |
# | multiply | `wgmma.fence`, `wgmma.mma_async`, `wgmma.commit_group`, `wgmma.wait_group n` |
# | free a slot | wait until its products are complete, then arrive at `empty` |
# | multiply while a tile is finished | two warpgroups that take turns, by an mbarrier for each |
# | sum FP8 | add to float32 registers every 128 of k |
# | multiply what threads wrote | `fence_proxy_async` by each of them, then a barrier |
#
# ### Claims you will meet, and what is right
#
# - *Tensor cores add in float32.* The registers are float32. How the terms are added depends on the generation: Hopper
#   keeps 13 fraction bits for FP8 and 25 for float16, cut and not rounded.
# - *A warp issues wgmma.* A warpgroup does: all four of its warps execute the instruction, and each of them
#   has to wait for the result.
# - *`wgmma.fence` makes shared memory visible.* It orders registers. Shared memory that threads wrote needs the proxy
#   fence.
# - *Deeper pipelines are always faster.* When copies keep up with products, a further slot only takes shared memory.
#
# ### References
#
# 1. NVIDIA, *Parallel Thread Execution ISA*: asynchronous warpgroup level matrix instructions.
#    https://docs.nvidia.com/cuda/parallel-thread-execution/
# 2. NVIDIA, *NVIDIA H100 Tensor Core GPU Architecture*, 2022.
# 3. DeepSeek-AI, *DeepSeek-V3 Technical Report*, 2024, section 3.3. https://arxiv.org/abs/2412.19437
# 4. Microsoft, *MMA-Sim: bit-accurate reference models of tensor cores*, 2025. https://github.com/microsoft/MMA-Sim
# 5. NVIDIA, *CUTLASS*: kernels for Hopper, pingpong and cooperative. https://docs.nvidia.com/cutlass/
