# ---
# jupyter:
#   gpulab:
#     lab: "26"
#     hours: 3
#     topics: [C26.1, C26.2]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 26A · A softmax that keeps up with the tensor cores
#
# **2 to 3.5 hours.** You have done lab 12 (attention tile by tile) and lab 24A (`wgmma`, warps with roles). You need no
# GPU: the kernels run on a simulated **H100**.
#
# From the A100 to the H100 and on to the B200, each generation of tensor cores makes products about twice as
# fast in a clock. The number of exponentials that an SM computes in a clock has stayed the same. On a B200
# the exponentials of attention therefore take as long as its products. FlashAttention-3 and FlashAttention-4
# are two answers to this problem, and here you write the central parts of both.
#
# By the end you can
#
# 1. say how long the exponentials of attention take on a given GPU, beside its products;
# 2. compute 2ˣ without the special-function units, to an accuracy that you choose;
# 3. rescale the output of online softmax only when it matters, and show that the result stays exact;
# 4. divide attention among a warp that copies and two warpgroups that take turns on the tensor cores.

# %%
import numpy as np

import gpulab
from gpulab import cupy as cp
from gpulab import hardware

gpulab.start("26", gpu="H100")

# %% [markdown]
# ## 1 · An exponential without its unit
#
# An SM has 16 **special-function units**. Together they compute 16 values of 2ˣ in a clock, or as many logarithms,
# sines or reciprocals. Attention needs one exponential for each score. With heads of 128 numbers, computing a score
# and using it takes 2 · 128 = 256 multiply-adds.
#
# **Predict.** How long does the exponential of a score take on a B200, as a percentage of the time of its 256
# multiply-adds in float16? An SM of a B200 makes 4,096 of these in a clock.

# %%
gpulab.predict("modern.balance", ...)

# %%
share = {}
for name in ("A100", "H100", "B200"):
    rate = int(hardware.find(name).tensor_fma["float16"])
    share[name] = 100 * (1 / 16) / (256 / rate)
gpulab.plot.bars(
    share,
    "% of the products' time that exponentials take",
    caption="The same 16 exponentials a clock weigh more with every generation (from the data sheets; heads of 128).",
)

# %% [markdown]
# An SM also has 128 lanes for float32 multiply-adds, and attention leaves most of them idle. FlashAttention-4 lets
# them compute a part of the exponentials.
#
# How does one compute 2ˣ with multiply-adds? Split x into a whole number i and a rest f between −½ and ½. Then
# 2ˣ = 2ⁱ · 2ᶠ. The factor 2ᶠ is a polynomial of low degree, because f is small. The factor 2ⁱ needs no arithmetic at
# all: it is added to the exponent bits of the result.
#
# ![A float32 number: sign, eight bits of exponent, 23 bits of fraction. The polynomial gives 2 to the f; the whole number i is added to the exponent.](drawings/exponent.svg)
#
# Rounding x to i takes a trick, because conversions between float and int are slow on a GPU as well. Floats
# between 2²³ and 2²⁴ have no room for fractions. If you add 1.5 · 2²³ = 12,582,912 to x, the sum is therefore
# rounded to a whole number, and its lowest bits are those of i. If you subtract 12,582,912 again, you have i
# as a float. An example with x = −3.3:
#
# | step | value |
# |---|---|
# | x + 12,582,912 | 12,582,909, whose bits end in those of −3 |
# | − 12,582,912 | −3, which is i |
# | f = x − i | −0.3 |
# | 2ᶠ · 2ⁱ | 0.8123 / 8 = 0.1015 |
#
# The coefficients must be good on the whole interval. Taylor's series is exact at f = 0 and worst at the
# ends; a least-squares fit to points of the interval spreads the error evenly. The next cell draws the
# relative error of Taylor's polynomial.


# %%
def relative_error(coefficients, f):
    """Of the polynomial c₀ + c₁ f + c₂ f² + … as an approximation of 2 to the f."""
    return np.polyval(list(coefficients)[::-1], f) * 2.0**-f - 1


f = np.linspace(-0.5, 0.5, 201)
taylor = [1, np.log(2), np.log(2) ** 2 / 2, np.log(2) ** 3 / 6]
gpulab.plot.lines(
    {"Taylor, degree 3": list(zip(f, 1e4 * relative_error(taylor, f), strict=True))},
    "f",
    "relative error, in units of 1e-4",
    "Taylor's polynomial is exact in the middle and is off by eight units of 1e-4 at the left end.",
)

# %% [markdown]
# **Do.** Write the kernel `powers(x, out, n)`: out[i] = 2^x[i].
#
# - x and out are n numbers in float32; x is between −150 and 0. One thread for each number, blocks of 128 threads.
# - The relative error is at most 2 · 10⁻⁴. Below −126 any result up to 2.4 · 10⁻³⁸ will do.
# - Useful: `__float_as_int(x)` and `__int_as_float(b)` read the same bits as the other type; `fmaf(a, b, c)` is
#   a · b + c; `fmaxf`.
# - **Budget:** no special-function instruction; 10 floating-point operations for each number, where `fmaf`
#   counts as two, `fmaxf` as one, and integer operations as none; x is loaded once, and there is no table.
#
# About 8 lines. Use the first cell to find your coefficients, for example with `np.polyfit`.

# %%
# Your experiment: coefficients whose relative error is small everywhere between −½ and ½.

# %% nbgrader={"grade": false, "grade_id": "exp2", "locked": false, "schema_version": 3, "solution": true, "task": false}
powers = cp.RawKernel(
    r"""
extern "C" __global__ void powers(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    // ### BEGIN SOLUTION
    float kept = fmaxf(x[i], -126.0f), moved = kept + 12582912.0f, f = kept - (moved - 12582912.0f);
    float p = fmaf(0.05508868f, f, 0.24260405f);
    p = fmaf(p, f, 0.69327624f);
    p = fmaf(p, f, 0.99992894f);
    out[i] = __int_as_float(__float_as_int(p) + (__float_as_int(moved) << 23));
    // ### END SOLUTION
}
""",
    "powers",
)

# %% nbgrader={"grade": true, "grade_id": "exp2-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("modern.exp2", powers)

# %% [markdown]
# **See.** The relative error of your kernel, beside that of rounding to float16 and to bfloat16 (half the
# step from one number to the next).

# %%
gpulab.need(powers)
x = np.linspace(-4, 0, 1024).astype(np.float32)
result = cp.empty(1024, cp.float32)
powers((8,), (128,), (cp.asarray(x), result, cp.int32(1024)))
error = np.abs(result.get() / np.exp2(x.astype(np.float64)) - 1)
gpulab.plot.bars(
    {
        "your kernel, at most": 1e4 * error.max(),
        "half a step of float16": 1e4 * 2.0**-11,
        "half a step of bfloat16": 1e4 * 2.0**-8,
    },
    "relative error, in units of 1e-4",
    caption="The weights are rounded to 16 bits before the second product, which costs more than the polynomial does.",
)

# %% [markdown]
# **Why.** Degree 3 is enough because the weights are rounded to 16 bits right afterwards. One degree more
# would cost one multiply-add and make the error 30 times smaller, but the rounding would hide the gain.
#
# A polynomial takes six floating-point instructions: three to round, and three multiply-adds. (The maximum
# and the two integer instructions at the end are left out here.) On 128 lanes that is faster than on the
# special-function units. So should all exponentials be polynomials? No, because both kinds of units can work
# at the same time.
#
# **Predict.** What percentage of the exponentials should be polynomials, so that the lanes and the special-function
# units finish together? A polynomial takes 6/128 of a clock, an exponential 1/16.

# %%
gpulab.predict("modern.share", ...)

# %% [markdown]
# FlashAttention-4 computes only 10 to 25 % of the exponentials as polynomials, because its lanes have other
# work as well: scaling, maxima, sums, and conversions to 16 bits.
#
# ## 2 · Rescale when it matters
#
# Online softmax subtracts the largest score so far. When a tile brings a larger one, the kernel **rescales**:
# it multiplies the sum and the unfinished output by 2 to the power (old maximum − new maximum). On a B200
# that is expensive, because the output is in Tensor Memory and has to be read and written again.
#
# But the maximum is subtracted only to keep numbers in range. Any number c can take its place as long as no
# weight overflows, because the division at the end cancels it:
#
# > Σ 2^(xⱼ − c) · vⱼ / Σ 2^(xⱼ − c) is the same for every c.
#
# So c may lag behind the maximum. FlashAttention-4 rescales, and sets c to the maximum, only when the new
# maximum is more than 8 above c. (Scores are in base 2.)
#
# ![The largest score grows step by step. The number that is subtracted stays until the largest score is more than 8 above it, and then jumps.](drawings/lagging.svg)
#
# **Predict.** How large can a weight become with this threshold?

# %%
gpulab.predict("modern.weights", ...)

# %% [markdown]
# Float16 holds numbers up to 65,504, so such a weight does not overflow. Its relative error is that of any
# other float16 number, so no accuracy is lost either.
#
# **Do.** Write the kernel `lazy(scores, v, out, lse, n, m)`, which computes the softmax of given scores and
# applies it to values. Here n is the number of queries and m the number of keys.
#
# - `scores` is (m, n) in float32: row j has the scores of key j, in base 2 (already multiplied by log₂ e). `v` is (m,
#   16).
# - `out` is (n, 16): the weighted mean of the values. `lse` is (n): log₂ Σ 2^score.
# - A block is one warp, and each of its 32 threads has one query. n is a multiple of 32, m a multiple of 8. A tile
#   is 8 keys. Keep c, the number that is subtracted, in `largest`.
# - `power(x)` is 2ˣ on the special-function units. `__any_sync(0xffffffff, condition)` is true in all lanes if the
#   condition holds in any of them.
# - A warp rescales all of its rows when the maximum of any of them is more than 8 above the number that this
#   row subtracts. The first tile counts as a rescale.
# - Scores may jump by 1,000 from one tile to the next.
# - **Budget:** one exponential for each score, and one more for each row when its warp rescales. Every score
#   is loaded once. No branch is divergent.
#
# About 24 lines.


# %% nbgrader={"grade": false, "grade_id": "lazy", "locked": false, "schema_version": 3, "solution": true, "task": false}
lazy = cp.RawKernel(
    r"""
#include <math_constants.h>

__device__ float power(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

extern "C" __global__ void lazy(const float* scores, const float* v, float* out, float* lse, int n, int m) {
    int row = blockIdx.x * 32 + threadIdx.x;
    float total[16] = {}, s = 0, largest = -CUDART_INF_F;
    // ### BEGIN SOLUTION
    for (int first = 0; first < m; first += 8) {
        float score[8], top = -CUDART_INF_F;
        for (int j = 0; j < 8; j++) {
            score[j] = scores[(first + j) * n + row];
            top = fmaxf(top, score[j]);
        }
        if (__any_sync(0xffffffff, top > largest + 8)) {
            float larger = fmaxf(largest, top), old = power(largest - larger);
            largest = larger;
            s *= old;
            for (int i = 0; i < 16; i++) total[i] *= old;
        }
        for (int j = 0; j < 8; j++) {
            float weight = power(score[j] - largest);
            s += weight;
            for (int i = 0; i < 16; i++) total[i] += weight * v[(first + j) * 16 + i];
        }
    }
    for (int i = 0; i < 16; i++) out[row * 16 + i] = total[i] / s;
    lse[row] = largest + log2f(s);
    // ### END SOLUTION
}
""",
    "lazy",
)

# %% nbgrader={"grade": true, "grade_id": "lazy-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("modern.lazy", lazy)

# %% [markdown]
# **See.** How often do warps rescale in your kernel if scores are normally distributed, in random order? The
# cell counts the exponentials beyond one for each score, for larger and larger standard deviations.

# %%
gpulab.need(lazy)
numbers = np.random.default_rng(26)


def growths(scores):
    """The tiles of 8 keys in which the largest score so far grows in any of the rows; scores are (keys, rows)."""
    largest = np.maximum.accumulate(scores.reshape(-1, 8, scores.shape[1]).max(axis=1))
    return 1 + (largest[1:] > largest[:-1]).any(axis=1).sum()


values = cp.asarray(numbers.standard_normal((256, 16)).astype(np.float32))
rescales = {"whenever a maximum grows": [], "with your threshold": []}
for width in (1, 2, 4, 8):
    some = (width * numbers.standard_normal((256, 32))).astype(np.float32)
    made = cp.asarray(some), values, cp.empty((32, 16), cp.float32), cp.empty(32, cp.float32)
    report = gpulab.profile(lazy, (1,), (32,), (*made, cp.int32(32), cp.int32(256)))
    rescales["whenever a maximum grows"].append((width, growths(some)))
    rescales["with your threshold"].append((width, report["special_functions"] / 32 - 256))
gpulab.plot.lines(
    rescales,
    "standard deviation of the scores, in base 2",
    "rescales in 32 tiles",
    "A warp rescales in most tiles if it does so for every new maximum, and a few times with a threshold of 8.",
    log_x=True,
)

# %% [markdown]
# **Why.** A warp rescales when any of its 32 rows needs to, and among 32 rows there is nearly always one
# whose maximum grows. The threshold changes that. A maximum that grows by less than 8 makes weights at most
# 2⁸ = 256 times as large, which is not worth a pass over the output. FlashAttention-4's authors report that
# nine of ten rescales disappear.
#
# ## 3 · Warps that load, multiply and exponentiate
#
# Now you write a whole kernel. In lab 12 each warp did everything in turn: it loaded, multiplied, computed
# exponentials, and multiplied again. While it computed exponentials, it left the tensor cores idle.
#
# FlashAttention-3 gives these jobs to different warps. One **producer** warp does nothing but issue copies. Two
# **consumer** warpgroups have 64 queries each, and both use the same tiles of keys and values. While one of them is
# busy with its softmax, the products of the other keep the tensor cores busy.
#
# ![One warp copies tiles of K and V. Two warpgroups use each tile: while one takes exponentials, the other multiplies.](drawings/three_roles.svg)
#
# **Predict.** How many registers of each thread hold the scores of a tile of 64 keys and the unfinished output, of 64
# numbers for each query, together?

# %%
gpulab.predict("modern.registers", ...)

# %% [markdown]
# Three details make this work on Hopper.
#
# - Both products are `wgmma`, which can take its left operand from registers. The first product leaves its
#   scores in registers, two neighbouring columns of a row in one thread. That is also the layout of a left
#   operand. So once the weights are rounded to float16, each thread already holds its part of the left
#   operand of the second product.
# - The right operand of the second product is V. Its rows must run along the keys, so the kernel gets `vt`,
#   the transpose of V. (For float16, `wgmma` could also read V as it is. For FP8 it cannot, and kernels
#   transpose V as you do here.)
# - A slot is free when both warpgroups have finished their second product with it. Therefore eight warps
#   arrive at `empty`.

# %%
HEAD = r"""
#include <math_constants.h>
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
__device__ void store(const float (&d)[32], float* c, int n) {               // c: the first element of the tile
    int t = threadIdx.x % 128, row = t / 32 * 16 + t % 32 / 4, col = t % 4 * 2;
    for (int j = 0; j < 8; j++)
        for (int below = 0; below < 2; below++)
            *reinterpret_cast<float2*>(&c[(row + 8 * below) * n + 8 * j + col]) =
                make_float2(d[4 * j + 2 * below], d[4 * j + 2 * below + 1]);
}
__device__ float power(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ void multiply_weights(float (&d)[32], const u32* a, u64 b) {       // d += A · Bᵀ, A in registers
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, 1, 1, 1, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
__device__ u32 pack(float low, float high) {
    __half2 both = __floats2half2_rn(low, high);
    return *(u32*)&both;
}
__device__ float of_row(float x, bool adds) {     // sum or maximum over the four lanes that share a row
    for (int lane = 1; lane < 4; lane *= 2) {
        float other = __shfl_xor_sync(0xffffffff, x, lane);
        x = adds ? x + other : fmaxf(x, other);
    }
    return x;
}
"""

# %% [markdown]
# New in this head are four functions.
#
# | function | meaning |
# |---|---|
# | `multiply_weights(d, a, b)` | d += A · Bᵀ; `a` points to four registers with the left operand, 16 of k |
# | `power(x)` | 2ˣ on the special-function units |
# | `pack(low, high)` | rounds two floats to float16 in one register |
# | `of_row(x, adds)` | the sum (`true`) or the maximum (`false`) of x over the four lanes that share a row |
#
# Which scores does a thread hold? It has parts of two rows, r = 0 and r = 1, which are eight rows apart in
# the tile. Its numbers of row r are score[4j + 2r] and score[4j + 2r + 1], for j = 0 to 7. The weights that
# you compute from these two are packed into the register `weights[2j + r]`, and the i-th product of 16 keys
# takes the four registers from `weights + 4 * i` on. The output of a thread is laid out like its scores.
#
# **See.** The picture has 16 of the 64 rows, those of warp 0, and 16 of the 64 columns.

# %% jupyter={"source_hidden": true}
row, column = np.mgrid[:16, :16]
lane = 4 * (row % 8) + column % 8 // 2
gpulab.plot.fragments(
    {
        "scores: query × key": (lane, row // 8 + 2 * (column // 8)),
        "weights, left operand: query × key": (lane, row // 8 + 2 * (column // 8)),
    },
    "A number is a lane. A colour is a pair of scores and, in the right picture, one register of weights: blue weights[0], "
    "amber [1], green [2], rose [3]. Each lane already holds what it must hand on.",
)

# %% [markdown]
# **Do.** Write `attend(q, k, vt, out)`. Two cells: the kernel, then the host function.
#
# - `q` is (n, 64), `k` is (m, 64) and `vt` is (64, m), all float16. `out` is (n, 64) in float32. n is a
#   multiple of 128, m of 64.
# - q is already scaled so that scores are in base 2. Do not scale it again. Scores can reach several hundred.
# - A block has 288 threads and 128 queries. Warps 0 to 3 are warpgroup 0 with queries 0 to 63, warps 4 to 7 are
#   warpgroup 1 with queries 64 to 127, and warp 8 is the producer.
# - `tiles` is dynamic shared memory: 8,192 halves of queries, then two slots of 8,192 halves, 64 × 64 of K and 64 × 64
#   of Vᵀ. All boxes are 64 × 64 with the 128-byte swizzle. The host passes `shared_mem=49152`.
# - `ready` is the mbarrier of the queries. `full` is initialised for one arrival, `empty` for eight.
# - **Budget:** Q is copied in once, K and V once for each block; one block barrier, after the initialisation;
#   threads load nothing, neither from global nor from shared memory; 8 products for 64 queries and 64 keys.
# - Counted too, for each thread: two shuffles for the maximum of a row in each tile, and two for the row's
#   sum at the end; one exponential for each score, and one for each row in each tile.
#
# About 60 and 4 lines, a third of them from `overlapping` of lab 24.


# %% nbgrader={"grade": false, "grade_id": "roles-kernel", "locked": false, "schema_version": 3, "solution": true, "task": false}
attending = cp.RawKernel(
    HEAD
    + r"""
extern "C" __global__ void attending(
    const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k, const __grid_constant__ CUtensorMap vt,
    float* out, int m) {
    extern __shared__ __align__(1024) __half tiles[];
    __shared__ u64 ready, full[2], empty[2];
    int t = threadIdx.x, group = t / 128, first = blockIdx.x * 128;
    __half* slots = tiles + 8192;
    // ### BEGIN SOLUTION
    if (t == 0) {
        initialise(&ready, 1);
        for (int s = 0; s < 2; s++) {
            initialise(&full[s], 1);
            initialise(&empty[s], 8);
        }
    }
    __syncthreads();
    if (group == 2) {
        if (t == 256) {
            expect(&ready, 16384);
            copy(tiles, &q, 0, first, &ready);
            copy(tiles + 4096, &q, 0, first + 64, &ready);
            for (int tile = 0; tile < m / 64; tile++) {
                int s = tile % 2;
                wait(&empty[s], (tile / 2 & 1) ^ 1);
                expect(&full[s], 16384);
                copy(slots + s * 8192, &k, 0, tile * 64, &full[s]);
                copy(slots + s * 8192 + 4096, &vt, tile * 64, 0, &full[s]);
            }
        }
        return;
    }
    float total[32] = {}, score[32], largest[2] = {-CUDART_INF_F, -CUDART_INF_F}, sum[2] = {};
    u32 weights[16];
    u64 queries = descriptor(tiles + group * 4096);
    wait(&ready, 0);
    for (int tile = 0; tile < m / 64; tile++) {
        int s = tile % 2;
        u64 keys = descriptor(slots + s * 8192), values = descriptor(slots + s * 8192 + 4096);
        wait(&full[s], tile / 2 & 1);
        begin_products();
        for (int i = 0; i < 4; i++) multiply(score, queries + 2 * i, keys + 2 * i, i > 0);
        end_products();
        wait_products<0>();
        for (int r = 0; r < 2; r++) {
            float larger = largest[r];
            for (int j = 0; j < 8; j++)
                larger = fmaxf(larger, fmaxf(score[4 * j + 2 * r], score[4 * j + 2 * r + 1]));
            larger = of_row(larger, false);
            float old = power(largest[r] - larger);
            largest[r] = larger;
            sum[r] *= old;
            for (int j = 0; j < 8; j++) {
                float left = power(score[4 * j + 2 * r] - larger);
                float right = power(score[4 * j + 2 * r + 1] - larger);
                sum[r] += left + right;
                weights[2 * j + r] = pack(left, right);
                total[4 * j + 2 * r] *= old;
                total[4 * j + 2 * r + 1] *= old;
            }
        }
        begin_products();
        for (int i = 0; i < 4; i++) multiply_weights(total, weights + 4 * i, values + 2 * i);
        end_products();
        wait_products<0>();
        if (t % 32 == 0) ptx::mbarrier_arrive(&empty[s]);
    }
    for (int r = 0; r < 2; r++) {
        sum[r] = of_row(sum[r], true);
        for (int j = 0; j < 8; j++) {
            total[4 * j + 2 * r] /= sum[r];
            total[4 * j + 2 * r + 1] /= sum[r];
        }
    }
    store(total, out + (first + 64 * group) * 64, 64);
    // ### END SOLUTION
}
""",
    "attending",
)


# %% nbgrader={"grade": false, "grade_id": "roles", "locked": false, "schema_version": 3, "solution": true, "task": false}
def attend(q, k, vt, out):
    n, m = len(q), len(k)
    ### BEGIN SOLUTION
    maps = [gpulab.tensor_map(x, (64, 64), swizzle=128) for x in (q, k, vt)]
    attending((n // 128,), (288,), (*maps, out, cp.int32(m)), shared_mem=49152)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "roles-check", "locked": true, "points": 7, "schema_version": 3, "solution": false, "task": false}
gpulab.check("modern.roles", attend)

# %% [markdown]
# **See.** The bytes that the operands moved for 256 queries and 256 keys, by the path that they took.

# %%
gpulab.need(attend)
half = [numbers.standard_normal((256, 64)).astype(np.float16) for _ in range(3)]
q, k, vt = (cp.asarray(np.ascontiguousarray(x)) for x in (half[0] / 8, half[1], half[2].T))
out = cp.empty((256, 64), cp.float32)
report = gpulab.profile(attend, q, k, vt, out)
gpulab.plot.bars(
    {
        "global memory to shared memory": report["bulk_load_bytes"],
        "shared memory to tensor cores": report["warpgroup_bytes"],
        "shared memory to registers": report["shared_load_bytes"],
    },
    "bytes",
    caption="Each tile is copied in once and read by both warpgroups; no thread loads an operand.",
)

# %% [markdown]
# When each warp works and waits, and when the tensor cores multiply. Do the two warpgroups wait at the same time?

# %%
gpulab.need(attend)
gpulab.timeline(attend, q, k, vt, out)

# %% [markdown]
# **See.** What the sanitizer says if warps free a slot before the second product is complete. The cell takes
# the last wait of a tile out of your kernel. So after the last tile the output, too, is used before its
# product is complete, and the sanitizer reports both mistakes.

# %%
gpulab.need(attend)
given_back = "if (t % 32 == 0) ptx::mbarrier_arrive(&empty[s]);"
early = cp.RawKernel(
    attending.code.replace(f"wait_products<0>();\n        {given_back}", given_back), "attending"
)
if early.code == attending.code:
    print("Your kernel ends a tile in other words: take its last wait out by hand.")
maps = [gpulab.tensor_map(x, (64, 64), swizzle=128) for x in (q, k, vt)]
try:
    print(gpulab.sanitize(lambda: early((2,), (288,), (*maps, out, cp.int32(256)), shared_mem=49152)))
except Exception as error:
    print(error)

# %% [markdown]
# **Why.** Nothing in your kernel makes the two warpgroups take turns. They tend to do so once one of them is
# ahead, because the tensor cores work on one product at a time. FlashAttention-3 enforces it with two
# barriers between the warpgroups (*pingpong*). It also overlaps work within a warpgroup: it issues the
# product for the scores of the next tile before the softmax of this one, so that two tiles are in flight.
#
# FlashAttention-4 goes further, because on Blackwell scores and outputs are in Tensor Memory. There, separate
# *correction* warps can rescale the output while the softmax warps go on.
#
# CUTLASS's example for Hopper (`fmha.py`, in CuTe DSL) was counted here for one head, 256 queries and 256 keys: it
# executes 24,426 warp instructions, and `attend` as we wrote it executes 19,640. The example also masks, and
# handles other shapes and types. FlashAttention's and FlashInfer's own kernels were not counted, because they do
# not run here: their packages are extensions of PyTorch for CUDA, and FlashAttention-4 needs further libraries.
#
# ## Beyond · More queries for each tile
#
# Open-ended and ungraded. Write an `attend` whose blocks copy less. The figure of merit is **bytes copied in for each
# query**, at 384 queries and 256 keys. Three warpgroups fit into a block.
#
# | kernel | bytes for each query |
# |---|---|
# | one warpgroup to a block (derived: 64 · 2 + 256 · 256 / 64) | 1,152 |
# | `attend`, two warpgroups | the cell below |
# | bound: K and V once for all 384 queries | 299 |

# %%
gpulab.need(attend)


def merit(function):
    queries = cp.asarray((numbers.standard_normal((384, 64)) / 8).astype(np.float16))
    found = cp.empty((384, 64), cp.float32)
    report = gpulab.profile(function, queries, k, vt, found)
    scores = queries.get().astype(np.float64) @ k.get().astype(np.float64).T
    weights = np.exp2(scores)
    exact = weights @ vt.get().astype(np.float64).T / weights.sum(1, keepdims=True)
    if not np.allclose(found.get(), exact, atol=3e-3):
        return "wrong"
    return f"{report['bulk_load_bytes'] / 384:.0f}"


merit(attend)

# %%
# Your function, then merit(…).

# %% [markdown]
# ## Recap
#
# <details><summary>1. Why do exponentials weigh more on a B200 than on an A100?</summary>
#
# Its tensor cores make four times as many products in a clock, and its special-function units as many exponentials as
# before.
# </details>
#
# <details><summary>2. How is 2 to the power of a whole number computed without arithmetic?</summary>
#
# The number is added to the exponent bits of a float.
# </details>
#
# <details><summary>3. Why is a polynomial of degree 3 enough?</summary>
#
# Its relative error, 7.7 · 10⁻⁵, is smaller than what rounding the weight to 16 bits costs.
# </details>
#
# <details><summary>4. Attention subtracts a number that is not the maximum. When is the result still right?</summary>
#
# Whenever no weight overflows, because the division by the sum of the weights cancels the number.
# </details>
#
# <details><summary>5. When may the producer fill a slot of K and V again?</summary>
#
# When all eight warps of both warpgroups have arrived, each after its wait for the product with V.
# </details>

# %%
gpulab.recap("26")

# %% [markdown]
# ### Cheat sheet
#
# | to | write |
# |---|---|
# | round without a conversion | x + 12,582,912, then − 12,582,912 |
# | compute 2ˣ on the lanes | polynomial of f, then add i << 23 to its bits |
# | rescale seldom | `if (__any_sync(0xffffffff, top > largest + 8))` |
# | keep weights in registers | scores packed to float16 are the left operand of the next `wgmma` |
# | share tiles | one producer, `empty` initialised for all warps that read |
#
# ### Claims you will meet, and what is right
#
# - *FlashAttention-4 uses a less accurate softmax.* It computes the same softmax. The weights are as accurate
#   as 16 bits can hold, and the rescaling that is left out would cancel in the final division.
# - *Softmax must subtract the maximum.* It must subtract something that keeps the weights in range.
# - *Special-function units compute eˣ.* They compute 2ˣ; a compiler puts a multiplication by log₂ e before it. Kernels
#   fold it into the scale of the queries.
# - *Polynomials replace the special-function units.* They take over a part of the work. Both work at the same
#   time.
#
# ### References
#
# 1. J. Shah, G. Bikshandi, Y. Zhang, V. Thakkar, P. Ramani, T. Dao, "FlashAttention-3: Fast and Accurate Attention with
#    Asynchrony and Low-precision", 2024. https://arxiv.org/abs/2407.08608
# 2. T. Zadouri, M. Hoehnerbach, J. Shah, T. Liu, V. Thakkar, T. Dao, "FlashAttention-4: Algorithm and Kernel Pipelining
#    Co-Design for Asymmetric Hardware Scaling", 2026. https://arxiv.org/abs/2603.05451
# 3. M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018. https://arxiv.org/abs/1805.02867
# 4. NVIDIA, *CUDA C++ Best Practices Guide*: throughput of native arithmetic instructions.
#    https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/
