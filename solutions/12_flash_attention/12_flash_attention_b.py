# ---
# jupyter:
#   gpulab:
#     lab: "12"
#     hours: 3
#     topics: [C12.5, C12.7, C12.9, C24.4]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 12B · FlashAttention's kernels
#
# **3 to 4.5 hours.** You need part A, lab 06 B (`mma.sync` and who holds what) and lab 11 (Triton).
#
# Part A counted what a single kernel for attention could save. Here you write that kernel three times: in numba, for
# tensor cores, and in Triton. Then you write the backward pass.
#
# By the end, you can
#
# 1. write attention as one kernel whose scores never leave a register;
# 2. say what a score costs besides its products, and how to reduce that cost;
# 3. chain two products on tensor cores without moving a number between lanes;
# 4. write the backward pass from the log-sum-exps, without stored scores;
# 5. say how FlashAttention's versions divide the work, and what their published numbers refer to.

# %%
import math

import numpy as np
import torch
import triton.language as tl
from numba import float32
from torch._subclasses.fake_tensor import FakeTensorMode

import gpulab
from gpulab import cuda, hardware, plot, triton
from gpulab import cupy as cp

D = 64  # numbers of a head
gpulab.start("12")

# %% [markdown]
# ## 1 · A thread for each query
#
# Online softmax can take the keys of a row one by one. Here each query has its own thread, which keeps q, the
# unfinished output, the largest score m and the sum s in **registers**. For a key with score x the thread computes
#
# > larger = max(m, x), old = exp(m − larger), weight = exp(x − larger)
#
# > s ← s · old + weight, out ← out · old + weight · v, m ← larger
#
# All queries need the same keys. So a block of 128 threads, one for each of 128 queries, loads tiles of 16 keys and
# 16 values into shared memory.
#
# **Predict.** A warp reads one number of a key from shared memory, for all of its 32 queries. How many wavefronts
# does that take?

# %%
gpulab.predict("attention.wave", ...)

# %% [markdown]
# **Do.** Write the kernel `flash(q, k, v, out, lse)`, in which each thread handles one query.
#
# - Input: q (n, D), already scaled; k and v (m, D); all float32, with any n and m. D = 64 is a constant that kernels
#   see. Logits reach thousands (±1,000s).
# - Output: `out` (n, D) and `lse` (n), float32. Without a key, out is 0 and lse −∞.
# - Launch: blocks of 128 threads, enough for all queries.
# - **Budget:** q is loaded once, k and v once for each block; only the results are stored; no local memory is used,
#   so loops over `cuda.local.array(D, float32)` must run to the constant D.
# - About 30 lines.
#
# In this and all other tasks, full marks need correct results within the budget.


# %% nbgrader={"grade": false, "grade_id": "flash", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def flash(q, k, v, out, lse):
    ### BEGIN SOLUTION
    keys = cuda.shared.array((16, D), float32)
    values = cuda.shared.array((16, D), float32)
    mine = cuda.local.array(D, float32)
    total = cuda.local.array(D, float32)
    row, t = cuda.grid(1), cuda.threadIdx.x
    for i in range(D):
        mine[i] = q[row, i] if row < q.shape[0] else float32(0)
        total[i] = float32(0)
    m, s = float32(-math.inf), float32(0)
    for first in range(0, k.shape[0], 16):
        for e in range(t, 16 * D, 128):
            if first + e // D < k.shape[0]:
                keys[e // D, e % D] = k[first + e // D, e % D]
                values[e // D, e % D] = v[first + e // D, e % D]
        cuda.syncthreads()
        for j in range(min(16, k.shape[0] - first)):
            score = float32(0)
            for i in range(D):
                score += mine[i] * keys[j, i]
            larger = max(m, score)
            old = math.exp(m - larger)
            weight = math.exp(score - larger)
            s = s * old + weight
            for i in range(D):
                total[i] = total[i] * old + weight * values[j, i]
            m = larger
        cuda.syncthreads()
    if row < q.shape[0]:
        for i in range(D):
            out[row, i] = total[i] / max(s, float32(1))
        lse[row] = m + math.log(s)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "flash-check", "locked": true, "points": 7, "schema_version": 3, "solution": false, "task": false}
gpulab.check("attention.flash", flash)

# %% [markdown]
# **See.** The same attention runs at three lengths. Compare the bytes that your kernel asks for with those that the
# ledger counts for the three operations of part A.


# %%
def eager(q, k, v):
    return torch.softmax(q @ k.t(), dim=1) @ v


rng = np.random.default_rng(12)
q, k, v = (rng.standard_normal((1024, D)).astype(np.float32) for _ in range(3))
q /= math.sqrt(D)
exact = eager(*(torch.from_numpy(x).double() for x in (q, k, v))).numpy()
fake = FakeTensorMode()

# %%
gpulab.need(flash)
sizes, kernels, operations = [256, 512, 1024], {}, {}
for n in sizes:
    empty = np.zeros((n, D), np.float32), np.zeros(n, np.float32)
    arrays = [cuda.to_device(x) for x in (q[:n], k[:n], v[:n], *empty)]
    kernels[n] = gpulab.profile(flash[-(-n // 128), 128], *arrays)
    with fake:
        operations[n] = gpulab.profile(eager, *(torch.empty(n, D) for _ in range(3)))
print(f"n = 1,024: largest error {np.abs(arrays[3].copy_to_host() - exact).max():.0e}")
print(
    f"bytes moved:  three operations {operations[1024].bytes:>12,}   flash {kernels[1024]['global_bytes']:>10,}"
)
print(f"extra memory: three operations {operations[1024].peak:>12,}   flash {4 * 1024:>10,}  (lse)")
curves = {
    "three operations": [(n, operations[n].bytes / 1e6) for n in sizes],
    "one kernel, 128 queries a block": [
        (n, 4 * (2 * n * D + n + -(-n // 128) * 2 * n * D) / 1e6) for n in sizes
    ],
}
picture = plot.lines(
    curves,
    "n, queries and keys",
    "MB moved",
    "Dots: counted from your kernel. They lie on the line, which is the formula of part A.",
    log_x=True,
    log_y=True,
)
counted = [(n, kernels[n]["global_bytes"] / 1e6) for n in sizes]
picture.axes.plot(*zip(*counted, strict=True), "o", color=plot.INK)
picture.axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
picture.axes.minorticks_off()
picture

# %% [markdown]
# **Why.** Scores and weights live in a register for a few instructions. When all lanes of a warp read the same word
# of shared memory, it is broadcast, so sharing keys causes no bank conflicts. Each thread loads its own row of q, so
# each of these requests touches 32 sectors. But there are few of them: keys and values are loaded n / 128 times as
# often as q.
#
# ## 2 · What else a score costs
#
# A score and its use are 2·D = 128 multiply-adds. Besides these, your loop makes 128 reads from shared memory for
# each score, and online softmax adds 64 multiplications by `old` and two exponentials. Most of the multiplications
# achieve nothing, because `old` is 1 unless the score is a new maximum.
#
# **Predict.** Scores come in random order. How often does the largest score so far grow, among 1,000 keys?

# %%
gpulab.predict("attention.growths", ...)


# %%
@cuda.jit
def seldom(q, k, v, out, lse):
    """As flash, for whole tiles and blocks; rescales only where the largest score grows."""
    keys = cuda.shared.array((16, D), float32, alignment=16)  # so that four neighbours are read at once
    values = cuda.shared.array((16, D), float32, alignment=16)
    mine = cuda.local.array(D, float32)
    total = cuda.local.array(D, float32)
    row, t = cuda.grid(1), cuda.threadIdx.x
    for i in range(D):
        mine[i] = q[row, i]
        total[i] = float32(0)
    m, s = float32(-math.inf), float32(0)
    for first in range(0, k.shape[0], 16):
        for e in range(t, 16 * D, 128):
            keys[e // D, e % D] = k[first + e // D, e % D]
            values[e // D, e % D] = v[first + e // D, e % D]
        cuda.syncthreads()
        for j in range(np.uint32(0), np.uint32(16)):
            score = float32(0)
            for i in range(D):
                score += mine[i] * keys[j, i]
            if score > m:
                old = math.exp(m - score)
                s *= old
                for i in range(D):
                    total[i] *= old
                m = score
            weight = math.exp(score - m)
            s += weight
            for i in range(D):
                total[i] += weight * values[j, i]
        cuda.syncthreads()
    for i in range(D):
        out[row, i] = total[i] / s
    lse[row] = m + math.log(s)


n = m = 256
some = [cuda.to_device(x[:n]) for x in (q, k, v)]
results = [cuda.to_device(np.zeros((n, D), np.float32)), cuda.to_device(np.zeros(n, np.float32))]
steps = {"seldom": gpulab.profile(seldom[2, 128], *some, *results)}

# %% jupyter={"source_hidden": true}
gpulab.need(flash)
steps = {"flash": gpulab.profile(flash[2, 128], *some, *results), "seldom": steps["seldom"]}
plot.panels(
    {
        "instructions per multiply-add": {
            name: 32 * r["instructions"] / (n * m * 2 * D) for name, r in steps.items()
        },
        "exponentials per score": {name: r["special_functions"] / (n * m) for name, r in steps.items()},
        "shared reads per score": {
            name: 32 * r["shared_load_requests"] / (n * m) for name, r in steps.items()
        },
    },
    "Reading four numbers at once and rescaling seldom leave fewer instructions beside the multiply-adds.",
)

# %%
rescaled = steps["seldom"]["special_functions"] / n - m
print(f"seldom: {rescaled:.1f} exponentials beyond one a score, in a row of {m} keys")
print(f"1 + 1/2 + … + 1/{m} = {sum(1 / j for j in range(1, m + 1)):.1f}")

# %% [markdown]
# **Why.** One exponential per score is left, and 1 is the minimum. A warp rescales when the maximum of *any* of its
# 32 rows grows. Real kernels rescale once for a tile of 64 or 128 keys, and divide once at the end. On tensor cores,
# that matters more: every operation that is not part of a product counts sixteen times as much there (312 against
# 19.5 TFLOP/s on an A100). The first aim of FlashAttention-2 was to need fewer such operations.
#
# ## 3 · On tensor cores
#
# The instruction `mma.sync` m16n8k16 (lab 06 B) multiplies a 16 × 16 matrix a by a 16 × 8 matrix b and adds the
# product to d. A warp holds the three matrices together. Lane l, with g = l / 4 (rounded down) and t = l % 4, holds
# these numbers:
#
# | matrix | register | rows | columns |
# |---|---|---|---|
# | d, 16 × 8, float32 | d[0], d[1] | g | 2t, 2t + 1 |
# | d | d[2], d[3] | g + 8 | 2t, 2t + 1 |
# | a, 16 × 16, two float16 in a register | a[0] | g | 2t, 2t + 1 |
# | a | a[1] | g + 8 | 2t, 2t + 1 |
# | a | a[2] | g | 2t + 8, 2t + 9 |
# | a | a[3] | g + 8 | 2t + 8, 2t + 9 |
# | b, 16 × 8, two float16 in a register | b[0] | 2t, 2t + 1 | g |
# | b | b[1] | 2t + 8, 2t + 9 | g |
#
# **See.** The next cell draws the table for the matrices that your kernel `cores` will hold.

# %%
row, column = np.mgrid[:16, :16]
g, pair = row % 8, column % 8 // 2
scores_of = 4 * g + pair, row // 8 + 2 * (column // 8)  # lane; score[0][0], [0][2], [1][0], [1][2]
left_factor = 4 * g + pair, row // 8 + 2 * (column // 8)  # lane; a[0], a[1], a[2], a[3]
row, column = np.mgrid[:16, :8]
right_factor = 4 * column + row % 8 // 2, row // 8  # lane; b[0], b[1]
plot.fragments(
    {
        "scores, two accumulators: query × key": scores_of,
        "weights, a: query × key": left_factor,
        "V, b: key × number": right_factor,
    },
    "A number is a lane, a colour one register of a or b, and two of an accumulator: blue the first, then amber, green, "
    "rose. What a lane has of 16 × 16 scores is what it must hold of the weights.",
)

# %% [markdown]
# For the scores, b is Kᵀ. Its column g is a key, and the two numbers of a pair lie side by side in memory. For the
# output, b is V. Its column g is one number of the output, and the two numbers of a pair come from two keys.
#
# In the picture, scores and weights are in the same lanes: **two accumulators side by side are a left factor**, once
# they are rounded to float16. So the weights of 16 × 16 scores enter the second product without leaving their lanes.
# Only the maximum and the sum of a row cross lanes, among the four lanes that have the same g.
#
# **Predict.** A warp has 16 queries. How many registers does the unfinished output take in each lane?

# %%
gpulab.predict("attention.registers", ...)

# %% [markdown]
# **Do.** Complete the kernel `cores`, non-causal attention on tensor cores.
#
# - Input: q (n, D), already scaled; k and v (m, D); all float16. n and m are multiples of 16. Logits can be several
#   hundred, of either sign.
# - Output: `out` (n, D) and `lse` (n), float32.
# - Launch: a block is one warp, which handles 16 queries.
# - Given: `mma(d, a, b)`; `pack(low, high)`, which rounds two floats into one register; `stacked(upper, lower)`,
#   which makes one register of two halves (float16) from anywhere in memory.
# - Useful: ∞ is `CUDART_INF_F`, and eˣ is `__expf(x)`. `__shfl_xor_sync(0xffffffff, x, 1)` returns the x of the lane
#   whose number differs in bit 0; with 2 in place of 1, in bit 1.
# - **Budget:** q is loaded once. The instructions are at most three tenths of the minimum that the float32 lanes
#   would need.
# - About 45 lines. If lse is right, so are the scores, and any mistake is in the second product.


# %% nbgrader={"grade": false, "grade_id": "cores", "locked": false, "schema_version": 3, "solution": true, "task": false}
cores = cp.RawKernel(
    r"""
#include <cuda_fp16.h>
#include <math_constants.h>

const int D = 64;

__device__ void mma(float* d, const unsigned* a, const unsigned* b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ unsigned pack(float low, float high) {
    __half2 both = __floats2half2_rn(low, high);
    return *(unsigned*)&both;
}

__device__ unsigned stacked(const __half* upper, const __half* lower) {
    __half2 both = __halves2half2(*upper, *lower);
    return *(unsigned*)&both;
}

extern "C" __global__ void cores(const __half* q, const __half* k, const __half* v, float* out, float* lse,
                                 int n, int m) {
    int g = threadIdx.x / 4, t = threadIdx.x % 4, row = 16 * blockIdx.x + g;
    // ### BEGIN SOLUTION
    unsigned queries[D / 16][4];
    for (int i = 0; i < D / 16; i++) {
        const unsigned* p = (const unsigned*)(q + row * D + 16 * i) + t;
        queries[i][0] = p[0];
        queries[i][1] = p[4 * D];
        queries[i][2] = p[4];
        queries[i][3] = p[4 * D + 4];
    }
    float total[D / 8][4] = {};
    float largest[2] = {-CUDART_INF_F, -CUDART_INF_F}, s[2] = {0, 0};
    for (int first = 0; first < m; first += 16) {
        float score[2][4] = {};
        for (int side = 0; side < 2; side++)
            for (int i = 0; i < D / 16; i++) {
                const unsigned* p = (const unsigned*)(k + (first + 8 * side + g) * D + 16 * i) + t;
                unsigned b[2] = {p[0], p[4]};
                mma(score[side], queries[i], b);
            }
        unsigned weights[4];
        for (int r = 0; r < 2; r++) {
            float* a = score[0] + 2 * r;
            float* b = score[1] + 2 * r;
            float larger = fmaxf(fmaxf(a[0], a[1]), fmaxf(b[0], b[1]));
            larger = fmaxf(larger, __shfl_xor_sync(0xffffffff, larger, 1));
            larger = fmaxf(larger, __shfl_xor_sync(0xffffffff, larger, 2));
            larger = fmaxf(larger, largest[r]);
            float old = __expf(largest[r] - larger);
            largest[r] = larger;
            s[r] *= old;
            for (int j = 0; j < 2; j++) {
                a[j] = __expf(a[j] - larger);
                b[j] = __expf(b[j] - larger);
                s[r] += a[j] + b[j];
            }
            weights[r] = pack(a[0], a[1]);
            weights[r + 2] = pack(b[0], b[1]);
            for (int i = 0; i < D / 8; i++) {
                total[i][2 * r] *= old;
                total[i][2 * r + 1] *= old;
            }
        }
        for (int i = 0; i < D / 8; i++) {
            const __half* p = v + (first + 2 * t) * D + 8 * i + g;
            unsigned b[2] = {stacked(p, p + D), stacked(p + 8 * D, p + 9 * D)};
            mma(total[i], weights, b);
        }
    }
    for (int r = 0; r < 2; r++) {
        s[r] += __shfl_xor_sync(0xffffffff, s[r], 1);
        s[r] += __shfl_xor_sync(0xffffffff, s[r], 2);
        float* to = out + (row + 8 * r) * D + 2 * t;
        for (int i = 0; i < D / 8; i++) {
            to[8 * i] = total[i][2 * r] / s[r];
            to[8 * i + 1] = total[i][2 * r + 1] / s[r];
        }
        if (t == 0) lse[row + 8 * r] = largest[r] + logf(s[r]);
    }
    // ### END SOLUTION
}
""",
    "cores",
)

# %% nbgrader={"grade": true, "grade_id": "cores-check", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
gpulab.check("attention.cores", cores)

# %%
gpulab.need(cores)
halves = [cp.asarray(x[:n].astype(np.float16)) for x in (q, k, v)]
out, lse = cp.zeros((n, D), cp.float32), cp.zeros(n, cp.float32)
steps["cores"] = gpulab.profile(cores, (n // 16,), (32,), (*halves, out, lse, np.int32(n), np.int32(m)))
plot.bars(
    {name: 32 * r["instructions"] / (n * m * 2 * D) for name, r in steps.items()},
    "warp instructions per 32 multiply-adds",
    caption="On tensor cores fewer instructions than multiply-adds remain.",
)

# %% [markdown]
# **Why.** One `mma` stands for 64 multiply-adds of each lane. What is left is rescaling, exponentials, and fetching
# b. Here each warp loads all keys for itself, because a block has only 16 queries. Libraries give a block four or
# eight warps that share tiles of keys in shared memory. They fetch them with `ldmatrix`, whose `.trans` form does
# what `stacked` does.
#
# ## 4 · In Triton, and causal
#
# Triton plans lanes, shared memory and `mma` itself. You write what happens to whole blocks of numbers, with these
# functions:
#
# | call | what it does |
# |---|---|
# | `tl.dot(a, b)` | multiplies two blocks of float16 with float32 sums; the side that they share is at least 16 |
# | `tl.trans(b)` | transposes a block |
# | `tl.max(x, 1)` and `tl.sum(x, 1)` | reduce the rows of a block |
# | `tl.full((64,), -float("inf"), tl.float32)` | makes a block, here of 64 numbers that are −∞ |
# | `tl.where`, `tl.maximum`, `tl.minimum`, `tl.exp` and `tl.log` | as in NumPy |
# | `x.to(tl.float16)` | rounds a block |
#
# ![Causal attention in tiles of the score matrix: tiles above the diagonal are skipped, those on it are masked, and those below are computed whole. A little more than half of the work is left.](drawings/causal_tiles.svg)
#
# **Do.** Write `blocks(q, k, v, out, lse)`, which launches your kernel `blocks_kernel` with one program for every 64
# queries.
#
# - Input: q (n, d), already scaled; k and v (m, d); all float16, of any sizes with m ≥ n. You can ask for
#   `q.shape`. The attention is causal: query i sees the keys j ≤ i + m − n. Logits can be several hundred, of
#   either sign.
# - Output: `out` (n, d) and `lse` (n), float32.
# - Parameters: ROWS is the number of queries of a program. COLUMNS is the number of keys in one turn of its loop, a
#   divisor of 64.
# - **Budget:** each program loads keys and values up to the position of its last query and no further, so it visits
#   no masked tile beyond the diagonal.
# - About 30 lines.


# %% nbgrader={"grade": false, "grade_id": "blocks", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def blocks_kernel(q, k, v, out, lse, n, m, D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    ### BEGIN SOLUTION
    first = tl.program_id(0) * ROWS
    rows = first + tl.arange(0, ROWS)
    across = tl.arange(0, D)
    there = (rows < n)[:, None]
    mine = tl.load(q + rows[:, None] * D + across, mask=there, other=0.0)
    largest = tl.full((ROWS,), -float("inf"), tl.float32)
    s = tl.zeros((ROWS,), tl.float32)
    total = tl.zeros((ROWS, D), tl.float32)
    for key in range(0, tl.minimum(m, first + ROWS + m - n), COLUMNS):
        columns = key + tl.arange(0, COLUMNS)
        inside = (columns < m)[:, None]
        keys = tl.load(k + columns[:, None] * D + across, mask=inside, other=0.0)
        values = tl.load(v + columns[:, None] * D + across, mask=inside, other=0.0)
        seen = columns[None, :] <= rows[:, None] + m - n
        scores = tl.where(seen, tl.dot(mine, tl.trans(keys)), -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp(scores - larger[:, None])
        old = tl.exp(largest - larger)
        s = s * old + tl.sum(weights, 1)
        total = total * old[:, None] + tl.dot(weights.to(tl.float16), values)
        largest = larger
    tl.store(out + rows[:, None] * D + across, total / s[:, None], mask=there)
    tl.store(lse + rows, largest + tl.log(s), mask=rows < n)
    ### END SOLUTION


def blocks(q, k, v, out, lse):
    ### BEGIN SOLUTION
    n, m = q.shape[0], k.shape[0]
    blocks_kernel[(triton.cdiv(n, 64),)](q, k, v, out, lse, n, m, D=q.shape[1], ROWS=64, COLUMNS=32)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "blocks-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("attention.blocks", blocks)

# %%
gpulab.need(blocks)
on_device = [cuda.to_device(x[:n].astype(np.float16)) for x in (q, k, v)]
in_triton = gpulab.profile(blocks, *on_device, *results)
all_pairs = 2 * (n * D + n // 64 * 2 * m * D)
print(f"loaded {in_triton['global_load_bytes']:,} bytes; all keys for all programs would be {all_pairs:,}")
pairs = n * (n + 1) // 2
compared = [("cores", steps["cores"], n * m)] if "cores" in steps else []
for name, report, done in (*compared, ("blocks", in_triton, pairs)):
    each = 32 * report["instructions"] / (done * 2 * D)
    print(f"{name:7} {each:.2f} instructions per 32 multiply-adds that count")

# %% [markdown]
# **Why.** With 64 queries to a program, keys are loaded a quarter as often as in `cores`, and none are loaded beyond
# the diagonal. In a tile on the diagonal, half of the computed pairs are wasted. Every row sees a key in its first
# tile here, so nothing needs a guard against −∞ − (−∞). With a window it would.
#
# ## 5 · Backward, computed again
#
# ![Backward without stored scores: from q, k and the saved lse of each row, a tile of weights is computed again, used for dq, dk and dv, and dropped.](drawings/backward.svg)
#
# Training needs dQ, dK and dV. They follow from dO, the slope of the loss with respect to each output. With
# P = exp(S − lse):
#
# > dV = Pᵀ·dO, dP = dO·Vᵀ, dS = P ∘ (dP − δ), dQ = dS·K, dK = dSᵀ·Q
#
# Here ∘ multiplies element by element, and δ is one number for each query. Why is δ there? Each row of P always has
# the sum 1, so a weight that grows takes from the others. Softmax's slope therefore subtracts δᵢ = Σⱼ Pᵢⱼ · dPᵢⱼ.
# That sum seems to need the whole row. But dPᵢⱼ = dOᵢ · vⱼ, and Σⱼ Pᵢⱼ · vⱼ = Oᵢ. So δᵢ = dOᵢ · Oᵢ, which is known
# before the first tile.
#
# Plain attention keeps P from the forward pass. FlashAttention **computes S again**, tile by tile, and so needs five
# products instead of four.
#
# **Predict.** n = m = 1,024, d = 64, float32. How many bytes must be kept for the backward pass, beyond q, k, v and
# out?

# %%
gpulab.predict("attention.saved", ...)

# %% [markdown]
# **Do.** Write `backward(q, k, v, out, lse, dout, tile)` in PyTorch, for attention that is not causal.
#
# - Input: q (already scaled), out and dout (n, d); k and v (m, d); lse (n); all float32.
# - Output: dq, dk and dv. dq is the slope with respect to q as it came, that is, scaled.
# - **Budget:** memory for the three results and a few tiles; five products for each tile.
# - About 14 lines. `dv[a:b] += …` is allowed.


# %% nbgrader={"grade": false, "grade_id": "backward", "locked": false, "schema_version": 3, "solution": true, "task": false}
def backward(q, k, v, out, lse, dout, tile):
    ### BEGIN SOLUTION
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    shares = (dout * out).sum(1)
    for i in range(0, len(q), tile):
        rows = slice(i, i + tile)
        for j in range(0, len(k), tile):
            keys = slice(j, j + tile)
            weights = torch.exp(q[rows] @ k[keys].t() - lse[rows, None])
            dv[keys] += weights.t() @ dout[rows]
            slopes = weights * (dout[rows] @ v[keys].t() - shares[rows, None])
            dq[rows] += slopes @ k[keys]
            dk[keys] += slopes.t() @ q[rows]
    return dq, dk, dv
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "backward-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("attention.backward", backward)

# %%
leaves = [torch.from_numpy(x[:n]).requires_grad_() for x in (q, k, v)]
scores = leaves[0] @ leaves[1].t()
output, sums = torch.softmax(scores, dim=1) @ leaves[2], torch.logsumexp(scores, dim=1)
slope = torch.randn(n, D)
output.backward(slope)

# %%
gpulab.need(backward)
with torch.no_grad():
    mine = gpulab.profile(backward, *leaves, output, sums, slope, 64)
    differences = [
        (got - leaf.grad).abs().max().item()
        for got, leaf in zip(backward(*leaves, output, sums, slope, 64), leaves, strict=True)
    ]
print("largest difference from autograd:", ", ".join(f"{d:.0e}" for d in differences))
print(f"products: {mine['matrix_flops'] / (2 * n * m * D):.0f} of {2 * n * m * D / 1e6:.1f} MFLOP each")

# %% [markdown]
# **Why.** dK and dV are sums over queries, but dQ is a sum over keys. A kernel divides one of the two loops among its
# blocks. Then a sum over that loop has a part in every block, so the parts are added atomically, or the sum is
# computed in a second pass. FlashAttention-2 gives each block a tile of *keys* and adds dQ with atomics, so the last
# bits of dQ differ from run to run.
#
# ## 6 · Other ways to save memory
#
# **Checkpointing** (lab 08) throws a layer's inner results away and runs its forward pass again when they are needed.
# Around plain attention it removes P between the two passes, but while a layer's backward pass runs, its P is there
# again. `xFormers`' `memory_efficient_attention` is a fused kernel like FlashAttention, and lives on in SDPA's
# `EFFICIENT_ATTENTION`. Sharing heads of keys and values (part A, section 8) shrinks the KV cache:
#
# ![Keys and values for eight query heads: one pair for each head, one for each group of four heads, or one for all. The cache shrinks from 8 to 2 to 1.](drawings/fewer_heads.svg)
#
# **See.** Four layers of attention run forward and backward with n = 512. How much memory do they hold at most?

# %%
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint


def plain(x):
    return x + torch.softmax(x @ x.transpose(1, 2) / math.sqrt(D), dim=-1) @ x


def checkpointed(x):
    return checkpoint(plain, x, use_reentrant=False)


def fused(x):
    return x + scaled_dot_product_attention(x[:, None], x[:, None], x[:, None])[:, 0]


def step(layer):
    """One forward and backward pass of four layers."""
    h = torch.randn(1, 512, D, requires_grad=True)
    for _ in range(4):
        h = layer(h)
    h.sum().backward()


held = {f.__name__: gpulab.profile(step, f) for f in (plain, checkpointed, fused)}
for name in ("plain", "checkpointed"):
    print(f"{name:13}{held[name]['matrix_flops'] / 1e6:6.0f} MFLOP of products")
plot.bars(
    {name: r.peak / 1e6 for name, r in held.items()},
    "MB held at most",
    caption="Checkpoints leave the scores of one layer, a fused kernel none.",
)

# %% [markdown]
# (No FLOPs are printed for `fused`, because the ledger has no formula for the fused operator on a CPU.)
#
# **Why.** Checkpointing repeats the whole layer, including the parts that are linear in n, whereas a fused kernel
# repeats only the scores. The two go together: checkpoint the layer, and fuse the attention.
#
# ## 7 · Who does what
#
# **FlashAttention (2022)** gave each head of each sequence to one block. **FlashAttention-2 (2023)** cuts the
# *sequence*, too, so there is a block for every 128 queries of a head. The versions also differ inside a block.
# Version 1 divided the keys among four warps, which then had to add up their outputs through shared memory
# (**split-K**). Version 2 divides the queries (**split-Q**), so the warps need nothing from each other, like those of
# `cores`.
#
# **Predict.** One sequence has 16 heads and 4,096 queries, with 128 queries to a block. How many blocks does
# version 2 have?

# %%
gpulab.predict("attention.programs", ...)

# %%
a100, h100 = hardware.find("A100"), hardware.find("H100")


def busy(blocks):
    """The share of an A100's SMs that work, one block on each at a time, over all rounds (modelled)."""
    rounds = -(-blocks // int(a100.sms))
    return 100 * blocks / (rounds * int(a100.sms))


heads = list(range(1, 129))
plot.lines(
    {
        "a block for each 128 queries (FA-2)": [(h, busy(32 * h)) for h in heads],
        "a block for each head (FA-1)": [(h, busy(h)) for h in heads],
    },
    "heads × sequences, of 4,096 tokens",
    "SMs of an A100 at work, % (modelled)",
    "A block for each head leaves SMs idle; the 109th head needs a second round. Cutting the sequence fills them.",
)

# %% [markdown]
# **FlashAttention-3 (2024)** is for the H100. The tensor cores of its SMs are twice as fast: they make 2,048 float16
# multiply-adds in a clock where an A100's make 1,024 (`gpulab.hardware`). Its exponentials are no faster: an SM makes
# 16 in a clock on both GPUs (CUDA C++ Best Practices Guide, "Throughput of Native Arithmetic Instructions").
#
# **Predict.** On an H100, with heads of 128 numbers in float16, how long does a score's exponential take, in percent
# of the time of its 256 multiply-adds?

# %%
gpulab.predict("attention.exponentials", ...)

# %%
shares = {}
b200 = hardware.find("B200")
for gpu, dtype in ((a100, "float16"), (h100, "float16"), (h100, "float8"), (b200, "float16")):
    products = 2 * 128 / int(gpu.tensor_fma[dtype])  # clocks of an SM for a score
    shares[f"{gpu.name}, {dtype}"] = 100 * (1 / 16) / products
plot.bars(
    shares,
    "% of the products' time that exponentials take",
    caption="The faster the products, the more the exponentials weigh (derived from the data sheets, 16 exponentials a "
    "clock and SM on each).",
)

# %% [markdown]
# **Why.** If a warp waits for its products and then for its exponentials, the two times add up. Version 3 lets two
# groups of four warps take turns (**ping-pong**), so that one group's softmax runs while the other group's products
# are computed. A third group only loads, through TMA (**warp specialisation**; lab 23 has both). For FP8,
# version 3 spreads outliers with a Hadamard transform (lab 09) and scales block by block.
#
# **FlashAttention-4 (2026)** is for the B200, whose products are twice as fast again, while its exponentials are not
# faster (T. Zadouri et al., 2026). A score's exponential now takes as long as its products, so taking turns is no
# longer enough. Version 4 computes some exponentials as polynomials on the float32 lanes. It also rescales only where
# a maximum has grown enough to matter: it does what `seldom` does, but with a threshold. In lab 26 you write both,
# and the division of work of version 3.
#
# ## 8 · What was published
#
# | result | measured with | source |
# |---|---|---|
# | 15 % speed-up end to end | BERT-large, length 512, against MLPerf 1.1's record | FA, abstract |
# | 3 × speed-up | GPT-2, length 1,024 | FA, abstract |
# | 2.4 × speed-up | long-range arena, lengths 1,024 to 4,096 | FA, abstract |
# | handles 64K tokens | Path-256, with **block-sparse** FlashAttention | FA, abstract |
# | memory 10 × less at 2K tokens, 20 × less at 4K | attention alone | README of flash-attention |
# | about 2 × speed-up over version 1, 50 to 73 % of peak | A100, attention alone | FA-2, abstract |
# | 225 TFLOP/s for each A100, 72 % of peak | training GPT end to end | FA-2, abstract |
# | 1.5 to 2 × speed-up over version 2, 740 TFLOP/s, 75 % of peak | H100, float16, attention alone | FA-3, abstract |
# | 1.3 × over cuDNN 9.13, 1,613 TFLOP/s, 71 % of peak | B200, bfloat16, attention alone, at best | FA-4, abstract |
#
# ![What each version reached of the dense peak of its GPU: 72 % on the A100, 75 % on the H100, 71 % on the B200.](drawings/parts_of_peaks.svg)
#
# A kernel that is 3 times as fast does not make a model 3 times as fast (lab 02). The percentages refer to dense
# peaks:

# %%
for name, gpu, reached in (("FA-2, end to end", a100, 225), ("FA-3", h100, 740), ("FA-4", b200, 1613)):
    peak = float(gpu.peak("float16", tensor=True)) / 1e12
    print(f"{name:18}{reached} of {peak:.0f} TFLOP/s: {100 * reached / peak:.1f} %")

# %% [markdown]
# On a GPU, the next cell measures your kernels beside SDPA's flash back end.

# %%
from gpulab import device

if not device.uses_gpu():
    print(
        "No GPU here, so nothing was measured. On a GPU this cell compares your kernels with SDPA's flash back end."
    )
else:
    gpulab.need(flash, cores)
    from torch.nn.attention import SDPBackend, sdpa_kernel

    length = 4096
    long = [rng.standard_normal((length, D)).astype(np.float32) for _ in range(3)]
    long[0] /= math.sqrt(D)
    single = [cuda.to_device(x) for x in (*long, np.zeros_like(long[0]), np.zeros(length, np.float32))]
    half = [cp.asarray(x.astype(np.float16)) for x in long]
    made = cp.zeros((length, D), cp.float32), cp.zeros(length, cp.float32)
    tensors = [torch.from_numpy(x)[None, None].cuda().half() for x in long]

    def library():
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION]):
            scaled_dot_product_attention(*tensors, scale=1.0)

    runs = {
        "SDPA, flash back end, float16": library,
        "cores, float16": lambda: cores(
            (length // 16,), (32,), (*half, *made, np.int32(length), np.int32(length))
        ),
        "flash, float32": lambda: flash[length // 128, 128](*single),
    }
    for name, run in runs.items():
        run()
        torch.cuda.synchronize()
        taken = []
        for _ in range(10):
            start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            cuda.synchronize()
            start.record(torch.cuda.default_stream())
            run()
            cuda.synchronize()
            stop.record(torch.cuda.default_stream())
            stop.synchronize()
            taken.append(start.elapsed_time(stop) / 1e3)
        print(f"{name:32}{4 * length**2 * D / np.median(taken) / 1e12:8.2f} TFLOP/s, median of {len(taken)}")

# %% [markdown]
# ## Beyond · Your own FlashAttention
#
# This task is open-ended and ungraded. The kernel computes one head in float32, with 256 queries and 256 keys of 64
# numbers. The sizes are fixed, so you need no guards. The figure of merit is **instructions per multiply-add** of
# both products: the number of warp instructions times 32, divided by 256² · 128 multiply-adds.
#
# | kernel | instructions per multiply-add |
# |---|---|
# | flash, as in section 1 | 3.1 |
# | seldom | 2.0 |
# | ours: takes four keys at a time, rescales once for the four; unsigned indices; 16-byte reads | 1.65 |
# | bound: 128 multiply-adds and 32 reads of 16 bytes for each score | 1.25 |
#
# Then make a project of it: add a causal mask, a window, several heads in `blockIdx.y`, and the backward pass as a
# kernel. Compare each step with float64, and count its bytes before you write it.


# %%
@cuda.jit
def best(q, k, v, out, lse):
    pass  # your kernel


results = [cuda.to_device(np.zeros((n, D), np.float32)), cuda.to_device(np.zeros(n, np.float32))]
measured = gpulab.profile(best[2, 128], *some, *results)
error = np.abs(results[0].copy_to_host() - output.detach().numpy()).max()
each = 32 * measured["instructions"] / (256**2 * 2 * D)
print(
    f"{each:.2f} instructions per multiply-add" if error < 1e-5 else f"not attention yet: error {error:.0e}"
)
known = {"flash": 3.1, "seldom": 2.0, "ours": 1.65, "bound": 1.25}
plot.bars(
    known | ({"yours": each} if error < 1e-5 else {}),
    "instructions per multiply-add",
    caption="Your kernel appears here as soon as it computes attention.",
)

# %% [markdown]
# ## Recap
#
# <details><summary>1. With 256 queries per block instead of 128, how do the bytes that flash loads
# change?</summary>
#
# k and v are loaded half as often. q is loaded once, as before.
# </details>
#
# <details><summary>2. Why does FlashAttention-2 divide by s at the end and not after each tile?</summary>
#
# It then makes n·d divisions in all, instead of n·d for each tile. Everything that is not a product is slow compared
# with tensor cores.
# </details>
#
# <details><summary>3. Which numbers cross lanes in <code>cores</code>?</summary>
#
# The maxima in each tile, and the sums once at the end.
# </details>
#
# <details><summary>4. By what factor does recomputation raise the FLOPs of attention in a training step?</summary>
#
# 2 + 5 products instead of 2 + 4, which is a factor of 7/6.
# </details>
#
# <details><summary>5. One sequence, 8 heads, 32,768 tokens on an A100: which split keeps its SMs busy?</summary>
#
# A split along the sequence, which makes 8 · 256 blocks. A split by heads uses only 8 of 108 SMs.
# </details>

# %%
gpulab.recap("12")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | bytes moved by one kernel with R queries to a block | itemsize · (2·n·d + ⌈n/R⌉ · 2·m·d), and lse |
# | multiply-adds of a score and its use | 2·d |
# | what a score costs besides them | 1 exponential; rescaling, once a tile; 1 division for each output number, once |
# | two `mma` accumulators side by side | are a left factor |
# | what is kept for the backward pass, beyond q, k and v | out and lse |
# | number of products | 2 forward, 5 backward |
# | how FA-1 and FA-2 divide the work | FA-1: a block for each head; FA-2: a block for each tile of queries, split-Q |
# | what FA-3 and FA-4 add | FA-3: ping-pong, TMA, FP8; FA-4: polynomials for exponentials, rescaling where it matters |
#
# ### Claims you will meet, and what is right
#
# - *FlashAttention-2 parallelises better over heads.* Version 1 already had batch and heads. Version 2 added the
#   sequence, even for a single head, as well as split-Q and fewer operations that are not products.
# - *FlashAttention handles 64K tokens (Path-256).* That was the block-sparse variant, which leaves pairs out.
# - *FlashAttention reaches 72 % of an A100.* That is training end to end, with version 2. Its kernels reach 50 to
#   73 %.
# - *FlashAttention does less arithmetic.* It does more, because its backward pass has a fifth product. What it saves
#   is traffic.
#
# ### References
#
# 1. T. Dao, D. Fu, S. Ermon, A. Rudra, C. Ré, "FlashAttention", NeurIPS 2022. https://arxiv.org/abs/2205.14135
# 2. T. Dao, "FlashAttention-2", 2023. https://arxiv.org/abs/2307.08691
# 3. J. Shah et al., "FlashAttention-3", 2024. https://arxiv.org/abs/2407.08608
# 4. T. Zadouri et al., "FlashAttention-4", 2026.
#    https://github.com/Dao-AILab/flash-attention/blob/main/assets/fa4_paper.pdf
# 5. NVIDIA, *PTX ISA*, "Matrix Fragments for mma.m16n8k16". https://docs.nvidia.com/cuda/parallel-thread-execution/
# 6. T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training Deep Nets with Sublinear Memory Cost", 2016.
#    https://arxiv.org/abs/1604.06174
# 7. README of flash-attention. https://github.com/Dao-AILab/flash-attention
# 8. xFormers, documentation of `memory_efficient_attention`. https://facebookresearch.github.io/xformers/
