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
# **About two hours.** You need part A, lab 07 A (kernels in CUDA C++) and lab 09 (what float16 holds).
#
# Part A ended near the speed of the float32 lanes. A GPU has a second set of multipliers, many times as
# fast, that do nothing but small matrix products. Here you feed them.
#
# When you are through, you can
#
# 1. read a table of tensor-core rates without falling for a factor of two;
# 2. write a product with `wmma` and with `mma.sync`, and say which lane holds what;
# 3. say which sizes suit tensor cores, and pad or stage those that do not;
# 4. choose the type of the sum, and show what a wrong choice costs;
# 5. name what stands between a peak and what a product reaches.

# %%
import numpy as np

import gpulab
from gpulab import cupy as cp
from gpulab import plot

gpulab.start("06")

# %% [markdown]
# ## 1 · A multiplier for matrices
#
# A **tensor core** does D = A·B + C on small tiles, with a whole warp as its caller. The factors have few
# bits, the sum C more: float16 times float16 is added in float32. What you program, `m16n8k16` or `16 × 16
# × 16`, is the shape of an *instruction*. How many multiply-adds the hardware does in a clock is another
# number, and it has grown with each generation.

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
# **Predict.** How many times as many multiply-adds do an A100's tensor cores do in float16 as its lanes in
# float32?

# %%
gpulab.predict("gemm.tensor_ratio", ...)

# %% [markdown]
# **Dense and sparse.** From the A100 on, tensor cores can skip half of the products if A has at most two
# numbers that are not zero in every four (**2:4 sparsity**). The rate doubles, on paper. Advertisements
# like to print that figure. A model whose weights were not pruned to this pattern gets the dense one. (V100
# and T4 have no such mode; the H100 has no INT4, which the A100 and the T4 have.)

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
# **Why.** The higher the roof, the further right its ridge: what arithmetic limits on the lanes, memory
# limits on the tensor cores. float16 halves the bytes as well. TF32 reads float32 and keeps 10 bits of
# fraction, so it saves no bytes. PyTorch leaves it off for matrix products until you ask for it with
# `torch.backends.cuda.matmul.fp32_precision = "tf32"` (PyTorch documentation, "CUDA semantics"; before version 2.9
# the switch was called `allow_tf32`).
#
# ## 2 · Fragments
#
# ![mma.m16n8k16: a warp multiplies a 16 × 16 piece of A by a 16 × 8 piece of B. Each of the 32 lanes holds 8 numbers of A, 4 of B and 4 of the result.](drawings/fragments.svg)
#
# `wmma` (warp matrix multiply-accumulate) is CUDA C++'s portable way. A **fragment** is a small matrix
# spread over the registers of a warp; who holds which element is not said. All 32 lanes call together:
#
#     wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;   // or matrix_b
#     wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
#     wmma::fill_fragment(sum, 0.0f);
#     wmma::load_matrix_sync(left, address, lead);    // rows are `lead` elements apart
#     wmma::mma_sync(sum, left, right, sum);          // sum += left · right
#     wmma::store_matrix_sync(address, sum, lead, wmma::mem_row_major);
#
# A shape has three numbers, m, n and k: 16 × 16 × 16, 32 × 8 × 16 or 8 × 32 × 16 for float16 and INT8, 16 ×
# 16 × 8 for TF32, 8 × 8 × 4 for float64 (CUDA Programming Guide, "Element Types and Matrix Sizes").
#
# **Do.** Complete `fragments`: C = A·B, A is m × k, B k × n, all multiples of 16, rows after rows. A block
# is one warp and has the 16 × 16 outputs at row 16 · `blockIdx.y`, column 16 · `blockIdx.x`. **Budget:**
# each fragment loaded once, and a quarter of the instructions that the float32 lanes would need at least,
# one for each 32 multiply-adds. About 12 lines.


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
# The same product on the ordinary lanes, one output a thread:

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
# **Why.** One instruction stands for 128 multiply-adds of a warp, so issuing is no limit any more. Feeding
# is. A fragment loaded from global memory is used once here, at 1/4 byte for each multiply-add. An A100's
# SM does 1,024 of them in a clock and would want 256 bytes; its share of the DRAM bandwidth is 13 (2,039
# GB/s over 108 SMs and 1.41 GHz). Tiles and register blocks are needed more than before. (PTX leaves open
# which lane loads what. A fragment's load counts as one request that moves its bytes once.)
#
# ## 3 · Who holds what
#
# Below `wmma` lies the instruction itself, `mma.sync`, and there the layout is fixed. For m16n8k16 a lane l
# with g = l / 4 and t = l % 4 holds (PTX ISA, "Matrix Fragments for mma.m16n8k16"):
#
# | register | of | row | columns |
# |---|---|---|---|
# | a[0], a[1] | A, 16 × 16 | g, g + 8 | 2t and 2t + 1 |
# | a[2], a[3] | A | g, g + 8 | the same, 8 further on |
# | b[0] | B, 16 × 8 | 2t and 2t + 1 | g |
# | b[1] | B | the same, 8 further down | g |
# | d[0], d[1] | D, 16 × 8 | g | 2t and 2t + 1 |
# | d[2], d[3] | D | g + 8 | 2t and 2t + 1 |
#
# A register of A or B holds two halves, the lower first.
#
# **Predict.** Lane 13, register a[3], the lower half: which column of A?

# %%
gpulab.predict("gemm.held", ...)

# %% [markdown]
# The two halves of b[0] lie below each other in B. In memory they are neighbours if B lies column after
# column. That is how a layer keeps its weights: W is (outputs, inputs), y = x·Wᵀ, so B = Wᵀ, and a column
# of B is a row of W.
#
# **Do.** Complete `lanes`: y = x·Wᵀ; x is m × k, w n × k, y m × n; m and k are multiples of 16, n of 8. A
# block is one warp and has the 16 × 8 outputs at row 16 · `blockIdx.y`, column 8 · `blockIdx.x`. `mma(d, a,
# b)` is given. **Budget:** 6 load requests for each `mma`: two halves at a time. About 12 lines. A pointer
# to pairs is `(const unsigned*)x`.


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
# **See.** One load of a register of A by a warp, and one store of D: which element belongs to which lane.

# %%
gpulab.need(lanes)
gpulab.show("gemm.lanes", lanes, view="accesses")

# %% [markdown]
# **Why.** Eight rows, four lanes in each: a request touches 8 rows with 16 bytes each, so half of every
# sector it moves is for the next register. Libraries take the tile through shared memory instead and fetch
# registers with `ldmatrix`, which hands four 8 × 8 tiles of halves to a warp, each lane naming one row of
# 16 bytes. Its rows lie in different banks if their places are **swizzled**: exchanged in a pattern, in
# place of padding.
#
# ## 4 · Sizes that fit
#
# `load_matrix_sync` wants its address at a multiple of 32 bytes and rows a multiple of 16 bytes apart: 8
# halves (CUDA Programming Guide, "Warp Matrix Functions"). With k = 37 every row starts somewhere else. Two
# ways out:
#
# **Pad the data.** Zeros along k add nothing to a sum. cuBLAS takes any size since version 11 and uses
# tensor cores for it; sizes decide how well. In float16 rows should be multiples of 16 bytes at least, 8
# elements; multiples of 128 bytes are best on an A100 (NVIDIA, *Matrix Multiplication Background*). GPT-2's
# vocabulary has 50,257 entries.
#
# **Predict.** What is the least multiple of 64 that holds it?

# %%
gpulab.predict("gemm.padded", ...)

# %% [markdown]
# **Stage the tile.** A block copies its tile to shared memory, element by element, with zeros where k ends;
# in there the rows have whatever length you give them, by the rules above (`__shared__ __align__(32)
# __half tile[64][16]`; pad by 8). And the tile serves several warps, each fragment
# several products.
#
# **Do.** Complete `tiles`: C = A·B with m and n multiples of 64, and any k, also odd ones and 0. A block
# has (32, 4) threads, four warps, and 64 × 64 outputs at row 64 · `blockIdx.y`, column 64 · `blockIdx.x`.
# Each warp has a quarter of them, 32 × 32, in four accumulators. **Budget:** the bytes that tiles of 64
# need; 1/8 byte from shared memory for each multiply-add; no bank conflicts. About 30 lines.


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
# **Why.** A tile of T moves 4/T bytes per multiply-add in float16. To keep an A100's tensor cores busy from
# DRAM alone, with 13.4 bytes for 1,024 multiply-adds, T would have to be 306; the L2 catches most repeats, so
# libraries manage with 128 × 256. The 16 × 16 fragment is a register block like that of part A, owned by a
# warp in place of a thread.
#
# ## 5 · Sums that are wide enough
#
# A float16 has 11 significant bits. A product of two of them has 22 and fits into a float32. A tensor core
# multiplies exactly, lines the products of one instruction up with the sum so far, cuts off what is too
# small, and adds (measured by M. Fasi et al., 2021). The sum is kept in the accumulator's type: float32, or
# float16 if you ask for it, which takes half the registers.
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
# **Do.** Look at how the error depends on k (the next cell is free), then mend `steady`. The factors stay
# float16 and the tensor cores do the adding. **Budget:** as for `fragments`. A result is right within 0.1
# %.

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
# **See.** The error of both over k, with positive factors (uniform, 0 to 1). Both axes are logarithmic.

# %% jupyter={"source_hidden": true}
gpulab.need(steady)
depths = [16, 64, 256, 1024]
ax = plot.axes(7, 3.2)
for name, kernel, colour, marker in (
    ("sum in float16", steady_first_try, "#d55e00", "s"),
    ("sum in float32", steady, "#0072b2", "o"),
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
# The float16 sum is hundreds to thousands of times worse, and past k = 64 it is off by more than 0.1 %.
#
# **Why.** A sum of k positive numbers grows like k, the spacing of float16 with it; at 2,048 a 1 is lost
# altogether. Numbers around 0 hide it, because their sums stay small. The float32 sum errs a little with k
# too, since what a tensor core cuts off is cut towards zero. The order of the additions differs between
# kernels, shapes and GPUs; so do the last bits. Compare with a tolerance.
#
# ## 6 · Reached over peak
#
# **Utilisation** is operations per second over the peak *of the format and unit used*, dense. The best
# products measured reach 87 % of it on an A100 and 80 % on an H100 (S. Bekman, *Machine Learning
# Engineering*, table of maximum achievable matmul FLOPS). What eats the rest:
#
# - **tile quantisation**: C's edges do not fill their tiles;
# - **wave quantisation**: the last round of tiles leaves SMs without work;
# - memory, too short a k, starting and ending of kernels;
# - power: a chip at its power limit lowers its clock.
#
# The first two need no GPU to be known.
#
# **Predict.** n = 1,408, tiles of 128 × 128, 108 SMs with a tile each at a time. What share of the SMs'
# time is used?

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
ax.plot(sides, [100 * used(n) for n in sides], color="#0072b2", linewidth=1.2)
for n, offset in ((1280, (-10, 4)), (1408, (10, -10))):
    ax.plot(n, 100 * used(n), "o", color="#d55e00")
    ax.annotate(f"{n:,}: {100 * used(n):.0f} %", (n, 100 * used(n)), xytext=offset, textcoords="offset points",
                ha="right" if n == 1280 else "left", color="#d55e00")  # fmt: skip
ax.set(xlabel="n of an n × n × k product", ylabel="SM time used (%)\nmodelled", ylim=(0, 105), xlim=(0, 6200))
plot.picture(ax, "Each time one tile too many begins a round, the share falls; the larger n, the less.")

# %% [markdown]
# A product a little larger can take nearly twice as long; the larger it is, the less the last round
# matters.
#
# **Why.** 1,280 has 100 tiles, one round; 1,408 has 121, two. A library then takes smaller tiles, or cuts
# some tiles along k so that all SMs end together (**stream-K**; M. Osama et al., 2023). Whole models reach
# less than their products: the rest of their time goes into everything else.
#
# ## 7 · What the library does beyond
#
# | you have | a library has, too |
# |---|---|
# | tiles of 64 × 64 × 16 | 128 × 256 × 64 and dozens of others, chosen by shape |
# | one buffer | three to five, filled by `cp.async` (A100) or TMA (H100) |
# | padding | swizzled tiles and `ldmatrix` |
# | a store of C | an **epilogue**: bias, activation and conversion before the store (cuBLASLt) |
# | a warp's `mma.sync` | `wgmma` for four warps, from shared memory (H100); `tcgen05` (Blackwell) |
# | all warps alike | warps that only load and warps that only multiply |
#
# `mma.sync` runs on an H100 as well, but not at its peak; that takes `wgmma` (NVIDIA H100 whitepaper, 2022;
# PTX ISA). You write kernels with all of these in lab 23 (rings, TMA, swizzles, warps with roles) and lab 24
# (`wgmma`, `tcgen05`). On a GPU the next cell measures your kernels against cuBLAS in float16.

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
# <details><summary>1. A GPU is sold with 1,979 TFLOP/s in float16, an H100. What do you get for a dense product, at most?</summary>
#
# 989: the printed rate is with 2:4 sparsity.
# </details>
#
# <details><summary>2. How many load requests fill the registers for one m16n8k16, at the least with 4-byte loads?</summary>
#
# Six: four registers of A, two of B.
# </details>
#
# <details><summary>3. A layer has 1,000 inputs. Does it run on tensor cores?</summary>
#
# Yes, as any size does. 1,000 float16 are 2,000 bytes, a multiple of 16 and not of 128: 1,024 would suit
# them better.
# </details>
#
# <details><summary>4. Factors in float16, sums in float16: which test shows the fault?</summary>
#
# Long sums of positive numbers.
# </details>
#
# <details><summary>5. A product reaches 400 TFLOP/s in bfloat16 on an H100. Utilisation?</summary>
#
# 400 / 989 = 40 %, of the dense peak.
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
# | `mma` wants B | by columns: as a layer stores W |
# | rows in memory | multiples of 16 bytes; 128 are best |
# | k does not fit | zeros |
# | sums | float32 |
# | peak to compare with | dense, of that format, on that unit |
# | n just above a multiple | look at tiles and rounds |
#
# ### Claims you will meet, and what is right
#
# - *Tensor cores multiply 4 × 4 matrices.* The V100's did, 64 multiply-adds a clock. An A100's does 256, an
#   H100's 512 in float16: the table in section 1.
# - *An H100 does 1,979 TFLOP/s in float16 and 989 in TF32.* With 2:4 sparsity. Dense they are 989 and 495.
# - *It has INT4 tensor cores.* The A100 has. The H100's data sheet ends at INT8.
# - *wmma has the shapes 16 × 16, 32 × 8 and 8 × 32.* A shape has a k as well: section 2.
# - *Dimensions must be multiples of 8 or tensor cores are not used.* Not since cuBLAS 11. It is a matter of
#   speed.
# - *TF32 is automatic and ten times as fast.* PyTorch leaves it off for products. The peaks differ by 8 on
#   an A100, and no memory is saved.
# - *A well-tuned program reaches 80 to 95 %.* The best single products reach 80 to 87 %; programs less.

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
