# ---
# jupyter:
#   gpulab:
#     lab: "06"
#     hours: 2
#     topics: [C3.5, C3.6, C3.7, C3.8]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 06B · Tensor cores
#
# **2 to 3.5 hours.** You need part A, lab 07 A (kernels in CUDA C++) and lab 09 (what float16 holds).
#
# The product of part A ended near the speed of the float32 lanes. But a GPU has a second set of multipliers, many
# times as fast, which do nothing but small matrix products. In this part you use them, and the difficulty is to feed
# them.
#
# By the end of this lab, you can
#
# 1. read a table of tensor-core rates without being wrong by a factor of two;
# 2. write a product with `wmma` and with `mma.sync`, and say which lane holds what;
# 3. say which sizes suit tensor cores, and pad or stage those that do not;
# 4. choose the type of the sum, and show what a wrong choice costs;
# 5. name what stands between a peak and the rate that a product reaches.

# %%
import numpy as np

import gpulab
from gpulab import cupy as cp
from gpulab import plot

gpulab.start("06")

# %% [markdown]
# ## 1 · A multiplier for matrices
#
# A **tensor core** computes D = A·B + C on small tiles, and a whole warp calls it together. The factors have few
# bits, and the sum has more: float16 products are added in float32. The shapes that you program with, such as
# `m16n8k16` or `16 × 16 × 16`, are those of an *instruction*. How many multiply-adds the hardware does per clock is a
# different number, and it has grown with each generation.

# %%
from gpulab import hardware

names = ("V100", "T4", "A100", "H100")
print(f"{'dense, per clock':24}" + "".join(f"{name:>10}" for name in names))
for dtype in ("float64", "tfloat32", "float16", "bfloat16", "float8", "int8"):
    rates = [hardware.find(name).tensor_fma.get(dtype) for name in names]
    print(f"{dtype + ', of an SM':24}" + "".join(f"{int(rate) if rate else '–':>10}" for rate in rates))
cores = [int(hardware.find(name).tensor_cores) for name in names]
print(f"{'tensor cores in an SM':24}" + "".join(f"{count:10}" for count in cores))
each = [
    int(hardware.find(name).tensor_fma["float16"]) // count for name, count in zip(names, cores, strict=True)
]
print(f"{'float16, of a core':24}" + "".join(f"{rate:10}" for rate in each))
lanes_rate = [int(hardware.find(name).fp32_lanes) for name in names]
print(f"{'float32 lanes of an SM':24}" + "".join(f"{rate:10}" for rate in lanes_rate))

# %% [markdown]
# **Predict.** How many times as many multiply-adds do an A100's tensor cores do in float16 as its lanes do in
# float32?

# %%
gpulab.predict("gemm.tensor_ratio", ...)

# %% [markdown]
# **Dense and sparse.** From the A100 on, tensor cores can skip half of the products if at most two of every four
# numbers of A are not zero (**2:4 sparsity**). On paper this doubles the rate, and advertisements like to print the
# doubled figure. A model whose weights were not pruned to this pattern gets the dense rate. (V100 and T4 have no such
# mode. The H100 has no INT4, although the A100 and the T4 do.)

# %%
for name in ("A100", "H100"):
    gpu = hardware.find(name)
    for dtype in ("tfloat32", "float16", "int8"):
        dense, sparse = (gpu.peak(dtype, tensor=True, sparse=way) for way in (False, True))
        print(
            f"{name:6}{dtype:10} dense {float(dense) / 1e12:7.1f}   with 2:4 sparsity {float(sparse) / 1e12:7.1f}   {dense.unit} · 10¹²"
        )

# %% [markdown]
# **See.** One roof for each format, and a product of two 192 × 192 matrices in three of them.

# %% jupyter={"source_hidden": true}
from gpulab.plot import Point, roofline

roofline(
    [
        Point("192³, float32", 192 / 6, dtype="float32"),
        Point("192³, tfloat32", 192 / 6, dtype="tfloat32"),
        Point("192³, float16", 192 / 3, dtype="float16"),
    ],
    "A100",
)

# %% [markdown]
# **Why.** The higher the roof, the further to the right is its ridge. So a product that is limited by arithmetic on
# the lanes can be limited by memory on the tensor cores. float16 also halves the bytes. TF32 reads float32 and keeps
# only 10 bits of the fraction, so it saves no bytes. PyTorch leaves it off for matrix products until you ask for it
# with `torch.backends.cuda.matmul.fp32_precision = "tf32"` (PyTorch documentation, "CUDA semantics"; before version
# 2.9 the switch was called `allow_tf32`).
#
# ## 2 · Fragments
#
# ![mma.m16n8k16: a warp multiplies a 16 × 16 piece of A by a 16 × 8 piece of B. Each of the 32 lanes holds 8 numbers of A, 4 of B and 4 of the result.](drawings/fragments.svg)
#
# `wmma` (warp matrix multiply-accumulate) is CUDA C++'s portable interface to tensor cores. A **fragment** is a small
# matrix that is spread over the registers of a warp. CUDA does not say which lane holds which element. All 32 lanes
# make these calls together:
#
#     wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;   // or matrix_b
#     wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
#     wmma::fill_fragment(sum, 0.0f);
#     wmma::load_matrix_sync(left, address, lead);    // rows are `lead` elements apart
#     wmma::mma_sync(sum, left, right, sum);          // sum += left · right
#     wmma::store_matrix_sync(address, sum, lead, wmma::mem_row_major);
#
# A shape has three numbers: m, n and k (CUDA Programming Guide, "Element Types and Matrix Sizes").
#
# | factors | shapes, m × n × k |
# |---|---|
# | float16, INT8 | 16 × 16 × 16, 32 × 8 × 16 or 8 × 32 × 16 |
# | TF32 | 16 × 16 × 8 |
# | float64 | 8 × 8 × 4 |
#
# **Do.** Complete the kernel `fragments`, which computes C = A·B. About 12 lines.
#
# - Input: A (m × k) and B (k × n), float16, stored row by row. m, k and n are multiples of 16, and k may be 0.
#   Output: C, float32.
# - Launch: a block is one warp. It computes 16 × 16 outputs, which start at row 16 · `blockIdx.y` and column 16 ·
#   `blockIdx.x`.
# - **Budget:** each fragment loaded once, and at most a quarter of the instructions that the float32 lanes would need
#   at least, which is one for each 32 multiply-adds. Full marks need both.


# %% nbgrader={"grade": false, "grade_id": "fragments", "locked": false, "schema_version": 3, "solution": true, "task": false}
fragments = cp.RawKernel(
    r"""
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void fragments(const __half* a, const __half* b, float* c, int m, int k, int n) {
    // ### BEGIN SOLUTION
    int row = 16 * blockIdx.y, col = 16 * blockIdx.x;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int i = 0; i < k; i += 16) {
        wmma::load_matrix_sync(left, a + row * k + i, k);
        wmma::load_matrix_sync(right, b + i * n + col, n);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(c + row * n + col, sum, n, wmma::mem_row_major);
    // ### END SOLUTION
}
""",
    "fragments",
)

# %% nbgrader={"grade": true, "grade_id": "fragments-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("gemm.fragments", fragments)

# %% [markdown]
# For comparison, the same product on the ordinary lanes, with one output per thread:

# %%
scalar = cp.RawKernel(
    r"""
#include <cuda_fp16.h>
extern "C" __global__ void scalar(const __half* a, const __half* b, float* c, int m, int k, int n) {
    int col = 32 * blockIdx.x + threadIdx.x, row = 8 * blockIdx.y + threadIdx.y;
    float sum = 0;
    for (int i = 0; i < k; i++) sum += __half2float(a[row * k + i]) * __half2float(b[i * n + col]);
    c[row * n + col] = sum;
}
""",
    "scalar",
)

N = 128
numbers = np.random.default_rng(6)
left, right = (cp.asarray(numbers.standard_normal((N, N)).astype(np.float16)) for _ in range(2))
product = cp.zeros((N, N), cp.float32)
sizes = (np.int32(N), np.int32(N), np.int32(N))


def counted(kernel, grid, block, *arrays):
    return gpulab.profile(kernel, grid, block, (*arrays, product, *sizes))


def per_fma(report, metric):
    return report[metric] / (report["flops"] / 2)


gpulab.need(fragments)
on_lanes = counted(scalar, (N // 32, N // 8), (32, 8), left, right)
on_cores = counted(fragments, (N // 16, N // 16), (32,), left, right)
print("                     instructions per warp FMA   bytes loaded per FMA")
for name, report in (("float32 lanes", on_lanes), ("wmma", on_cores)):
    print(
        f"{name:20}{32 * per_fma(report, 'instructions'):26.2f}{per_fma(report, 'global_load_bytes'):23.2f}"
    )

# %% [markdown]
# **Why.** One `mma_sync` does 16³ = 4,096 multiply-adds, which are 4,096 / 32 = 128 for each lane of the warp. So
# issuing instructions is no longer the limit. Feeding the tensor cores is. Here each fragment is loaded from global
# memory and used once, which costs 1/4 byte for each multiply-add. An A100's SM does 1,024 of them in a clock and
# would want 256 bytes. Its share of the DRAM bandwidth is 13 bytes (2,039 GB/s over 108 SMs and 1.41 GHz). So tiles
# and register blocks are even more necessary than before. (PTX does not define which lane loads what. The report
# counts a fragment's load as one request that moves its bytes once.)
#
# ## 3 · Who holds what
#
# Below `wmma` there is the instruction itself, `mma.sync`, and its layout is defined. For m16n8k16, let g = l / 4 and
# t = l % 4 for lane l. Then lane l holds (PTX ISA, "Matrix Fragments for mma.m16n8k16"):
#
# | register | matrix | row | columns |
# |---|---|---|---|
# | a[0], a[1] | A, 16 × 16 | g, g + 8 | 2t and 2t + 1 |
# | a[2], a[3] | A | g, g + 8 | the same, plus 8 |
# | b[0] | B, 16 × 8 | 2t and 2t + 1 | g |
# | b[1] | B | the same, plus 8 | g |
# | d[0], d[1] | D, 16 × 8 | g | 2t and 2t + 1 |
# | d[2], d[3] | D | g + 8 | 2t and 2t + 1 |
#
# A register of A or B holds two halves, the lower one first.
#
# **Predict.** Which column of A is in the lower half of register a[3] of lane 13?

# %%
gpulab.predict("gemm.held", ...)

# %% [markdown]
# The two halves of b[0] are in the same column of B, one below the other. In memory they are neighbours if B is
# stored column by column. That is how a layer stores its weights: W has the shape (outputs, inputs), and y = x·Wᵀ. So
# B is Wᵀ, and a column of B is a row of W.
#
# **Do.** Complete the kernel `lanes`, which computes y = x·Wᵀ. About 12 lines.
#
# - Input: x (m × k) and w (n × k), float16, stored row by row. m and k are multiples of 16, n is a multiple of 8, and
#   k may be 0. Output: y (m × n), float32.
# - Launch: a block is one warp. It computes 16 × 8 outputs, which start at row 16 · `blockIdx.y` and column 8 ·
#   `blockIdx.x`.
# - `mma(d, a, b)` is given. A pointer to pairs of halves is `(const unsigned*)x`.
# - **Budget:** 6 load requests for each `mma`, so two halves at a time; fewer instructions than the multiply-adds
#   alone would take on the float32 lanes. Full marks need both.


# %% nbgrader={"grade": false, "grade_id": "lanes", "locked": false, "schema_version": 3, "solution": true, "task": false}
lanes = cp.RawKernel(
    r"""
#include <cuda_fp16.h>

__device__ void mma(float* d, const unsigned* a, const unsigned* b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void lanes(const __half* x, const __half* w, float* y, int m, int k, int n) {
    int g = threadIdx.x / 4, t = threadIdx.x % 4;
    // ### BEGIN SOLUTION
    int row = 16 * blockIdx.y + g, col = 8 * blockIdx.x;
    float d[4] = {0, 0, 0, 0};
    for (int i = 0; i < k; i += 16) {
        const unsigned* p = (const unsigned*)x + (row * k + i) / 2 + t;
        const unsigned* q = (const unsigned*)w + ((col + g) * k + i) / 2 + t;
        unsigned a[4] = {p[0], p[4 * k], p[4], p[4 * k + 4]};
        unsigned b[2] = {q[0], q[4]};
        mma(d, a, b);
    }
    float* out = y + row * n + col + 2 * t;
    out[0] = d[0];
    out[1] = d[1];
    out[8 * n] = d[2];
    out[8 * n + 1] = d[3];
    // ### END SOLUTION
}
""",
    "lanes",
)

# %% nbgrader={"grade": true, "grade_id": "lanes-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("gemm.lanes", lanes)

# %% [markdown]
# **See.** How one load of a register of A, and one store of D, are distributed over the lanes of a warp: which
# element belongs to which lane?

# %%
gpulab.need(lanes)
gpulab.show("gemm.lanes", lanes, view="accesses")

# %% [markdown]
# **Why.** A request touches eight rows, with four lanes of 4 bytes in each. That is 16 bytes per row, half of a
# sector. The other half of every sector belongs to the next register. Libraries therefore take the tile through
# shared memory, and fetch the registers with `ldmatrix`. This instruction loads four 8 × 8 tiles of halves for a
# warp, and each lane gives the address of one row of 16 bytes. These rows are in different banks if their places are
# **swizzled**, which means exchanged in a pattern. Swizzling replaces padding.
#
# ## 4 · Sizes that fit
#
# `load_matrix_sync` requires an address that is a multiple of 32 bytes, and rows that are a multiple of 16 bytes
# apart, which is 8 halves (CUDA Programming Guide, "Warp Matrix Functions"). With k = 37 every row would start at a
# different offset. There are two solutions.
#
# **Pad the data.** Zeros along k add nothing to a sum. Since version 11, cuBLAS uses tensor cores for any size, but
# how fast they are still depends on the size. In float16 rows should be multiples of at least 16 bytes, or 8
# elements. On an A100 multiples of 128 bytes are best (NVIDIA, *Matrix Multiplication Background*). GPT-2's
# vocabulary has 50,257 entries.
#
# **Predict.** What is the least multiple of 64 that holds this vocabulary?

# %%
gpulab.predict("gemm.padded", ...)

# %% [markdown]
# **Stage the tile.** A block copies its tile to shared memory element by element, with zeros where k ends. There the
# rows have whatever length you give them, provided it follows the rules above. (Declare the tile as `__shared__
# __align__(32) __half tile[64][16]`. Rows that are 8 halves longer avoid conflicts.) The tile also serves several
# warps, and each fragment serves several products.
#
# **Do.** Complete the kernel `tiles`, which computes C = A·B. About 30 lines.
#
# - Input and output: as for `fragments`, but m and n are multiples of 64, and k is any number, including odd ones and
#   0.
# - Launch: blocks of (32, 4) threads, so four warps. A block computes 64 × 64 outputs, which start at row 64 ·
#   `blockIdx.y` and column 64 · `blockIdx.x`. Each warp has a quarter of them, 32 × 32, in four accumulators.
# - **Budget:** as many bytes loaded as tiles of 64 need, 1/8 byte from shared memory for each multiply-add, and no
#   bank conflicts. Full marks need all three.


# %% nbgrader={"grade": false, "grade_id": "tiles", "locked": false, "schema_version": 3, "solution": true, "task": false}
tiles = cp.RawKernel(
    r"""
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void tiles(const __half* a, const __half* b, float* c, int m, int k, int n) {
    // ### BEGIN SOLUTION
    __shared__ __align__(32) __half a_tile[64][16], b_tile[16][72];
    int t = 32 * threadIdx.y + threadIdx.x;
    int top = 64 * blockIdx.y, left = 64 * blockIdx.x;
    int down = 32 * (threadIdx.y / 2), across = 32 * (threadIdx.y % 2);
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[2][2];
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) wmma::fill_fragment(sums[i][j], 0.0f);
    for (int first = 0; first < k; first += 16) {
        for (int e = t; e < 1024; e += 128) {
            int row = e / 16, i = first + e % 16;
            a_tile[row][e % 16] = i < k ? a[(top + row) * k + i] : __half(0);
            int col = e % 64, j = first + e / 64;
            b_tile[e / 64][col] = j < k ? b[j * n + left + col] : __half(0);
        }
        __syncthreads();
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> x[2];
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> y[2];
        for (int i = 0; i < 2; i++) {
            wmma::load_matrix_sync(x[i], &a_tile[down + 16 * i][0], 16);
            wmma::load_matrix_sync(y[i], &b_tile[0][across + 16 * i], 72);
        }
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++) wmma::mma_sync(sums[i][j], x[i], y[j], sums[i][j]);
        __syncthreads();
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) {
            float* out = c + (top + down + 16 * i) * n + left + across + 16 * j;
            wmma::store_matrix_sync(out, sums[i][j], n, wmma::mem_row_major);
        }
    // ### END SOLUTION
}
""",
    "tiles",
)

# %% nbgrader={"grade": true, "grade_id": "tiles-check", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
gpulab.check("gemm.tiles", tiles)

# %%
from gpulab.plot import bars

gpulab.need(fragments, lanes, tiles)
staged = counted(tiles, (N // 64, N // 64), (32, 4), left, right)
by_lanes = counted(lanes, (N // 8, N // 16), (32,), left, right)  # of other sums: right is taken as W
bars(
    {
        "float32 lanes": per_fma(on_lanes, "global_load_bytes"),
        "mma.sync, direct": per_fma(by_lanes, "global_load_bytes"),
        "wmma, direct": per_fma(on_cores, "global_load_bytes"),
        "wmma, tiles of 64": per_fma(staged, "global_load_bytes"),
    },
    "bytes from global memory per multiply-add",
)

# %% [markdown]
# **Why.** A tile of T × T loads 2 · T halves, so 4 · T bytes, for T² multiply-adds in each step along k. That is 4/T
# bytes per multiply-add. To keep an A100's tensor cores busy from DRAM alone, with 13.4 bytes for 1,024
# multiply-adds, T would have to be 306. The L2 catches most repeated loads, so libraries manage with 128 × 256. A 16
# × 16 fragment is a register block like that of part A, but it belongs to a warp instead of a thread.
#
# ## 5 · Sums that are wide enough
#
# A float16 number has 11 significant bits. A product of two of them has 22, and fits into a float32. A tensor core
# multiplies exactly. It then aligns the products of one instruction with the sum so far, cuts off what is too small,
# and adds (measured by M. Fasi et al., 2021). The sum is kept in the type of the accumulator: float32, or float16 if
# you ask for it, which takes half the registers.
#
# ## Detective · The sum that grew too slowly
#
# This kernel passed its test.


# %%
steady_first_try = cp.RawKernel(
    r"""
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void steady(const __half* a, const __half* b, float* c, int m, int k, int n) {
    __shared__ __align__(32) __half out[16 * 16];
    int row = 16 * blockIdx.y, col = 16 * blockIdx.x;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, __half> sum;
    wmma::fill_fragment(sum, __half(0));
    for (int i = 0; i < k; i += 16) {
        wmma::load_matrix_sync(left, a + row * k + i, k);
        wmma::load_matrix_sync(right, b + i * n + col, n);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(out, sum, 16, wmma::mem_row_major);
    __syncwarp();
    for (int e = threadIdx.x; e < 256; e += 32) c[(row + e / 16) * n + col + e % 16] = out[e];
}
""",
    "steady",
)


def error(kernel, k, values):
    """The largest error of a 16 × k times k × 16 product, over its largest element."""
    a, b = (values(shape).astype(np.float16) for shape in ((16, k), (k, 16)))
    c = cp.zeros((16, 16), cp.float32)
    kernel((1, 1), (32,), (cp.asarray(a), cp.asarray(b), c, np.int32(16), np.int32(k), np.int32(16)))
    exact = a.astype(np.float64) @ b.astype(np.float64)
    return np.abs(c.get() - exact).max() / np.abs(exact).max()


print(f"its test, k = 32, numbers around 0: error {error(steady_first_try, 32, numbers.standard_normal):.4f}")
gpulab.check("gemm.steady", steady_first_try, attempt=False)

# %% [markdown]
# **Do.** Find out how the error depends on k. Use the next cell for your measurements. Then write the corrected
# kernel `steady`.
#
# - Input, output and launch: as for `fragments`. The factors stay float16, and the tensor cores do the adding.
# - **Budget:** at most a quarter of the instructions that the float32 lanes would need at least, as for `fragments`.
# - A result is right if it is within 0.1 %. Full marks need this at every k, and the budget.

# %%
# Your experiments: error(steady_first_try, …, numbers.random), for several k.


# %% nbgrader={"grade": false, "grade_id": "steady", "locked": false, "schema_version": 3, "solution": true, "task": false}
steady = cp.RawKernel(
    r"""
#include <mma.h>
using namespace nvcuda;

extern "C" __global__ void steady(const __half* a, const __half* b, float* c, int m, int k, int n) {
    // ### BEGIN SOLUTION
    int row = 16 * blockIdx.y, col = 16 * blockIdx.x;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    for (int i = 0; i < k; i += 16) {
        wmma::load_matrix_sync(left, a + row * k + i, k);
        wmma::load_matrix_sync(right, b + i * n + col, n);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::store_matrix_sync(c + row * n + col, sum, n, wmma::mem_row_major);
    // ### END SOLUTION
}
""",
    "steady",
)

# %% nbgrader={"grade": true, "grade_id": "steady-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("gemm.steady", steady)

# %% [markdown]
# **See.** The error of both kernels for different k, with positive factors (uniform, 0 to 1). Both axes are
# logarithmic.

# %% jupyter={"source_hidden": true}
gpulab.need(steady)
depths = [16, 64, 256, 1024]
ax = plot.axes(7, 3.2)
for name, kernel, colour, marker in (
    ("sum in float16", steady_first_try, plot.ALARM, "s"),
    ("sum in float32", steady, plot.DEEP, "o"),
):
    errors = [error(kernel, k, numbers.random) for k in depths]
    ax.plot(depths, errors, marker + "-", color=colour)
    ax.annotate(name, (depths[-1], errors[-1]), xytext=(8, -3), textcoords="offset points", color=colour)
ax.set(
    xscale="log",
    yscale="log",
    xlabel="k, products in a sum",
    ylabel="largest error\nover largest element",
    xlim=(12, 4000),
)
ax.set_xticks(depths, [f"{k:,}" for k in depths])
ax.set_yticks([1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7], ["10⁻²", "10⁻³ = 0.1 %", "10⁻⁴", "10⁻⁵", "10⁻⁶", "10⁻⁷"])
ax.minorticks_off()
plot.picture(ax, "Both errors grow with k; the one of a sum in float16 soon passes 0.1 %.")

# %% [markdown]
# The float16 sum is hundreds to thousands of times worse, and beyond k = 64 it is off by more than 0.1 %.
#
# **Why.** A sum of k positive numbers grows with k, and the spacing of float16 grows with the sum. At 2,048 the
# spacing is 2, so an added 1 is lost altogether. Numbers around 0 hide this fault, because their sums stay small. The
# error of the float32 sum also grows slightly with k, because a tensor core cuts off towards zero. The order of the
# additions differs between kernels, shapes and GPUs, and so do the last bits. So compare results with a tolerance.
#
# ## 6 · Reached over peak
#
# **Utilisation** is operations per second, divided by the dense peak *of the format and unit used*. The best products
# measured reach 87 % of it on an A100 and 80 % on an H100 (S. Bekman, *Machine Learning Engineering*, table of
# maximum achievable matmul FLOPS). The rest is lost to
#
# - **tile quantisation**: the edges of C do not fill their tiles;
# - **wave quantisation**: the last round of tiles leaves SMs without work;
# - memory, too short a k, and the start and end of kernels;
# - power: a chip at its power limit lowers its clock.
#
# You can compute the first two without a GPU.
#
# **Predict.** n = 1,408, tiles are 128 × 128, and each of 108 SMs has one tile at a time. What share of the SMs' time
# is used?

# %%
gpulab.predict("gemm.waves", ...)


# %%
a100 = hardware.find("A100")


def used(n, tile=128):
    """The share of the SMs' time that goes into outputs of an n × n product (modelled)."""
    tiles_there = (-(-n // tile)) ** 2
    rounds = -(-tiles_there // int(a100.sms))
    return n**2 / (rounds * int(a100.sms) * tile**2)


sides = np.arange(128, 6145, 32)
ax = plot.axes(8, 3)
ax.plot(sides, [100 * used(n) for n in sides], color=plot.DEEP, linewidth=1.2)
for n, offset in ((1280, (-10, 4)), (1408, (10, -10))):
    ax.plot(n, 100 * used(n), "o", color=plot.ALARM)
    ax.annotate(f"{n:,}: {100 * used(n):.0f} %", (n, 100 * used(n)), xytext=offset, textcoords="offset points",
                ha="right" if n == 1280 else "left", color=plot.ALARM)  # fmt: skip
ax.set(xlabel="n of an n × n × k product", ylabel="SM time used (%)\nmodelled", ylim=(0, 105), xlim=(0, 6200))
plot.picture(ax, "Each time one tile too many begins a round, the share falls; the larger n, the less.")

# %% [markdown]
# A product that is only a little larger can take nearly twice as long. The larger the product, the less the last
# round matters.
#
# **Why.** 1,280 / 128 = 10, so 1,280 has 10² = 100 tiles, which are one round on 108 SMs. 1,408 has 11² = 121 tiles,
# which are two rounds. A library then takes smaller tiles, or it cuts some tiles along k so that all SMs finish
# together (**stream-K**; M. Osama et al., 2023). Whole models reach less than their products, because the rest of
# their time goes into everything else.
#
# ## 7 · What the library does beyond
#
# | you have | a library also has |
# |---|---|
# | tiles of 64 × 64 × 16 | 128 × 256 × 64 and dozens of others, chosen by shape |
# | one buffer | three to five, filled by `cp.async` (A100) or TMA (H100) |
# | padding | swizzled tiles and `ldmatrix` |
# | a store of C | an **epilogue**: bias, activation and conversion before the store (cuBLASLt) |
# | a warp's `mma.sync` | `wgmma` for four warps, from shared memory (H100); `tcgen05` (Blackwell) |
# | warps that all do the same | warps that only load, and warps that only multiply |
#
# `mma.sync` runs on an H100 as well, but it does not reach the H100's peak. That takes `wgmma` (NVIDIA H100
# whitepaper, 2022; PTX ISA). You write kernels with all of these in lab 23 (rings, TMA, swizzles, warps with roles)
# and lab 24 (`wgmma`, `tcgen05`). On a GPU the next cell measures your kernels against cuBLAS in float16.

# %% jupyter={"source_hidden": true}
from gpulab import device

if not device.uses_gpu():
    print("No GPU here, so nothing was measured. On a GPU this cell compares your kernels with cuBLAS.")
else:
    gpulab.need(fragments, tiles)
    from gpulab import cuda

    size = 4096
    p, q = (cp.asarray(numbers.standard_normal((size, size)).astype(np.float16)) for _ in range(2))
    r, whole = cp.zeros((size, size), cp.float32), np.int32(size)
    out = cp.zeros((size, size), cp.float16)
    runs = {
        "cuBLAS": lambda: cp.matmul(p, q, out=out),
        "fragments": lambda: fragments((size // 16, size // 16), (32,), (p, q, r, whole, whole, whole)),
        "tiles": lambda: tiles((size // 64, size // 64), (32, 4), (p, q, r, whole, whole, whole)),
    }
    for name, run in runs.items():
        run()
        taken = []
        for _ in range(10):
            start, stop = cuda.event(), cuda.event()
            start.record()
            run()
            stop.record()
            stop.synchronize()
            taken.append(cuda.event_elapsed_time(start, stop) / 1e3)
        print(f"{name:10}{2 * size**3 / np.median(taken) / 1e12:8.1f} TFLOP/s, median of {len(taken)}")

# %% [markdown]
# ## Recap
#
# <details><summary>1. An H100 is sold with 1,979 TFLOP/s in float16. What is the most that a dense product can get?</summary>
#
# 989 TFLOP/s, because the printed rate is with 2:4 sparsity.
# </details>
#
# <details><summary>2. How many 4-byte load requests does it take at least to fill the registers for one m16n8k16?</summary>
#
# Six: four registers of A and two of B.
# </details>
#
# <details><summary>3. A layer has 1,000 inputs. Does it run on tensor cores?</summary>
#
# Yes, as any size does. 1,000 float16 numbers are 2,000 bytes, which is a multiple of 16 but not of 128, so 1,024
# would suit them better.
# </details>
#
# <details><summary>4. Factors and sums are both float16. Which test shows the fault?</summary>
#
# Long sums of positive numbers.
# </details>
#
# <details><summary>5. A product reaches 400 TFLOP/s in bfloat16 on an H100. What is its utilisation?</summary>
#
# 400 / 989 = 40 % of the dense peak.
# </details>

# %%
gpulab.recap("06")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | multiply-adds of an m × n × k instruction | m · n · k for the whole warp |
# | bytes per multiply-add, float16, tiles of T | 4/T |
# | layout of B for `mma` | by columns, as a layer stores W |
# | rows in memory | multiples of 16 bytes; 128 are best |
# | k does not fit | fill up with zeros |
# | type of the sum | float32 |
# | peak to compare with | the dense one, of that format, on that unit |
# | n just above a multiple of the tile | count tiles and rounds |
#
# ### Claims you will meet, and what is right
#
# - *Tensor cores multiply 4 × 4 matrices.* Those of the V100 did, with 64 multiply-adds per clock. One of an A100
#   does 256, and one of an H100 does 512 in float16, as the table in section 1 shows.
# - *An H100 does 1,979 TFLOP/s in float16 and 989 in TF32.* It does with 2:4 sparsity. Dense they are 989 and 495.
# - *It has INT4 tensor cores.* The A100 has. The H100's data sheet ends at INT8.
# - *wmma has the shapes 16 × 16, 32 × 8 and 8 × 32.* A shape also has a k, as in section 2.
# - *Dimensions must be multiples of 8 or tensor cores are not used.* This has not been true since cuBLAS 11. It is a
#   matter of speed.
# - *TF32 is automatic and ten times as fast.* PyTorch leaves it off for products. The peaks differ by a factor of 8
#   on an A100, and no memory is saved.
# - *A well-tuned program reaches 80 to 95 %.* The best single products reach 80 to 87 %, and programs reach less.

# %%
for name in ("A100", "H100"):
    gpu = hardware.find(name)
    ratio = float(gpu.peak("tfloat32", tensor=True)) / float(gpu.peak("float32"))
    print(
        f"{name}: TF32 {float(gpu.peak('tfloat32', tensor=True)) / 1e12:.0f} TFLOP/s dense, {ratio:.1f} × its float32 lanes"
    )

# %% [markdown]
# ### References
#
# 1. NVIDIA, *CUDA Programming Guide*, "Warp Matrix Functions".
#    https://docs.nvidia.com/cuda/cuda-programming-guide/
# 2. NVIDIA, *PTX ISA*, "Warp-Level Matrix Instructions".
#    https://docs.nvidia.com/cuda/parallel-thread-execution/
# 3. M. Fasi, N. Higham, M. Mikaitis, S. Pranesh, "Numerical Behavior of NVIDIA Tensor Cores", PeerJ
#    Computer Science 7, 2021. https://doi.org/10.7717/peerj-cs.330
# 4. NVIDIA, *Matrix Multiplication Background User's Guide*.
#    https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/
# 5. NVIDIA, *A100 Tensor Core GPU Architecture*, 2020, and *H100 Tensor Core GPU Architecture*, 2022,
#    whitepapers.
# 6. M. Osama, D. Merrill, C. Cecka, M. Garland, J. Owens, "Stream-K", PPoPP 2023.
#    https://arxiv.org/abs/2301.03598
# 7. S. Bekman, *Machine Learning Engineering*, "Accelerators". https://github.com/stas00/ml-engineering
