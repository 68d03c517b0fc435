# ---
# jupyter:
#   gpulab:
#     lab: "06"
#     hours: 4
#     topics: [C5.4, C5.10, C6.4, C7.1]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 06A · Matrix multiplication, step by step
#
# **About four hours.** You need lab 04 (sectors, tiles, banks) and the roofline of lab 02 A. Part B takes
# the product to the tensor cores.
#
# Training and inference are matrix products, with some other work between them. The plain product of lab 03
# can reach a tenth of an A100's float32 peak at most, as section 8 models it. Here you write it again and
# again. Each step changes one thing, and each time you see in the counts which unit of the SM it relieves,
# and which one holds it up next.
#
# When you are through, you can
#
# 1. say for a product's shape whether arithmetic or memory limits it, before anything runs;
# 2. derive from a tile's size what crosses each level of memory per multiply-add;
# 3. keep a square of outputs in registers, and say why that is what makes a product fast;
# 4. load two numbers at a time, and load the next tile while this one is in use;
# 5. choose for thin, small and long products what a square one does not need.

# %%
import numpy as np

import gpulab
from gpulab import cuda

gpulab.start("06")

# %% [markdown]
# ## 1 · Three levels of work
#
# ![Three levels of a product: a block has a tile of C, a warp a part of that tile, and a thread a small square of the warp's part.](drawings/three_levels.svg)
#
# The **BLAS** (basic linear algebra subprograms) sorts its routines by what they do with n numbers in a
# row:
#
# | level | examples | operations | numbers | operations per byte, float32 |
# |---|---|---|---|---|
# | 1, vectors | `dot` xᵀy, `axpy` αx + y, `scal` αx | n or 2n | 2n or 3n | 1/8 to 1/4 |
# | 2, matrix and vector | `gemv` A·x | 2n² | n² | 1/2 |
# | 3, matrix and matrix | `gemm` A·B | 2n³ | 3n² | n/6 |
#
# **Arithmetic intensity** is operations over bytes. In levels 1 and 2 it is a constant: every number is
# used once or twice, and the time is that of moving it. Only in level 3 does it grow with n, because each
# number is used n times. So only there can arithmetic be the limit. But it is a promise: an element must
# come from far away once, and be used n times while it is near. That is what this lab is about.
#
# **Predict.** What is the intensity of a product of two 1,024 × 1,024 matrices in float32?

# %%
gpulab.predict("gemm.intensity", ...)

# %% [markdown]
# **See.** The levels under the roof of an A100, every element moved once.

# %% jupyter={"source_hidden": true}
from gpulab.plot import Point, bars, roofline, units

roofline(
    [
        Point("axpy", 2 / 12),
        Point("gemv", 2 / 4),
        Point("gemm, n = 16", 16 / 6),
        Point("gemm, n = 1,024", 1024 / 6),
    ],
    "A100",
)

# %% [markdown]
# The same on this computer's CPU, measured: NumPy calls a BLAS, too.

# %%
from time import perf_counter

numbers = np.random.default_rng(6)
left, right = numbers.standard_normal((2, 1024, 1024), np.float32)
tall, x = numbers.standard_normal((4096, 4096), np.float32), numbers.standard_normal(4096, np.float32)


def seconds(run, times=7):
    """The median time of a call, after one that is not counted."""
    run()
    taken = []
    for _ in range(times):
        start = perf_counter()
        run()
        taken.append(perf_counter() - start)
    return np.median(taken)


for name, run, operations, read in (
    ("level 2, 4,096 × 4,096", lambda: tall @ x, 2 * tall.size, tall.nbytes),
    ("level 3, 1,024³", lambda: left @ right, 2 * 1024**3, 2 * left.nbytes),
):
    time = seconds(run)
    print(f"{name:24}{operations / time / 1e9:7.1f} GFLOP/s   {read / time / 1e9:6.2f} GB/s of factors")

# %% [markdown]
# **Why.** The matrix-vector product runs at the speed of memory, the matrix product at the speed of
# arithmetic, on a CPU as on a GPU. The gap between the two rates is what reuse is worth. A GPU's is larger.
#
# ## 2 · Where the plain product stands
#
# This is the product of lab 03: one thread per element of C, x on the columns.
#
# ![A warp's 32 lanes on C. Along a row they share the row of A and read 32 neighbours of B. Down a column they share the column of B and read 32 elements of A, each in another row.](drawings/lanes_on_c.svg)


# %%
@cuda.jit
def naive(a, b, c):
    col, row = cuda.grid(2)
    if row < c.shape[0] and col < c.shape[1]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, col]
        c[row, col] = total


# %% [markdown]
# And the same with x on the rows: neighbouring lanes take elements below each other. The sums are the same.


# %%
@cuda.jit
def down_the_columns(a, b, c):
    row, col = cuda.grid(2)
    if row < c.shape[0] and col < c.shape[1]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, col]
        c[row, col] = total


# %% [markdown]
# **Predict.** The matrices are 256 × 256. In one of its 256 steps a warp of `naive` loads one element of A,
# the same for all lanes, and 32 neighbours of B. How many sectors do all loads of the whole run move?

# %%
gpulab.predict("gemm.naive_sectors", ...)

# %%
N = 256
a = cuda.to_device(numbers.standard_normal((N, N), np.float32))
b = cuda.to_device(numbers.standard_normal((N, N), np.float32))
c = cuda.device_array((N, N), np.float32)
steps = {}


def step(name, kernel, grid, block):
    """Run a kernel on the 256 × 256 product, see that it is right, keep its report."""
    c.copy_to_device(np.full((N, N), np.nan, np.float32))
    steps[name] = gpulab.profile(kernel[grid, block], a, b, c)
    expected = a.copy_to_host().astype(np.float64) @ b.copy_to_host()
    print(f"{name}: {'right' if np.allclose(c.copy_to_host(), expected, atol=1e-3) else 'WRONG'}")


step("down the columns", down_the_columns, (8, 32), (32, 8))
step("naive", naive, (8, 32), (32, 8))
steps["down the columns"].compare(steps["naive"])

# %% [markdown]
# Both ask for 8 bytes per **multiply-add** (`FMA`, fused multiply-add: one instruction, two operations).
# With x on the rows the 32 lanes touch 32 rows of A, a sector in each. `naive` asks in good order, and
# still for far too much. An SM of an A100 has 64 lanes for float32, so it can do two multiply-adds of a
# warp in a cycle; the plain product wants four loads for them.
#
# ## 3 · A tile of each
#
# C is cut into **tiles** of T × T, one for each block. A block walks along k in steps of T. In each step it
# copies T × T elements of A and of B to shared memory, waits, and adds T products to each of its T² sums.
#
# ![A product in tiles: a tile of A and a tile of B are brought into shared memory, every thread adds their product to its element, then the next pair of tiles along k follows.](drawings/tiles.svg)
#
# **Predict.** T = 32. How many words does the block load from global memory per multiply-add?

# %%
gpulab.predict("gemm.tile_words", ...)

# %% [markdown]
# In general: 2·T² words for T³ multiply-adds, 2/T each. So A is loaded once for every column of tiles, B
# once for every row of tiles, and doubling T halves the traffic.
#
# **Do.** Write `tiled(a, b, c)`. Blocks are (32, 32), x along the columns of C. Outside of a matrix put
# zeros into the tile. **Budget:** the bytes that tiles of 32 need, 4 sectors for 32 words, no bank
# conflicts. About 15 lines. Sizes include 33 × 70 × 65 (C is 33 × 65), 40 × 5 × 33,
# and 70 × 0 × 9, whose C is all zeros.


# %% nbgrader={"grade": false, "grade_id": "tiled", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def tiled(a, b, c):
    ### BEGIN SOLUTION
    a_tile = cuda.shared.array((32, 32), np.float32)
    b_tile = cuda.shared.array((32, 32), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    depth = a.shape[1]
    total = np.float32(0)
    for first in range(0, depth, 32):
        a_tile[ty, tx] = a[row, first + tx] if row < a.shape[0] and first + tx < depth else np.float32(0)
        b_tile[ty, tx] = b[first + ty, col] if col < b.shape[1] and first + ty < depth else np.float32(0)
        cuda.syncthreads()
        for k in range(32):
            total += a_tile[ty, k] * b_tile[k, tx]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = total
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "tiled-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("gemm.tiled", tiled)

# %%
gpulab.need(tiled)
step("tiled", tiled, (8, 8), (32, 32))
steps["naive"].compare(steps["tiled"])

# %% [markdown]
# **Walk along k.** One block with tiles of 16. Press play and watch what lies in shared memory, which numbers of it
# a thread reads for each multiply-add, and when the bytes loaded from global memory grow.

# %%
from gpulab.plot.moving import ProductWalk

ProductWalk(64, 64, 64, tile=(16, 16, 16))

# %% [markdown]
# **Why.** Global sectors fall by twenty, and each byte loaded serves 32 times as much arithmetic (30 in the table, which
# counts the stores of C). Yet each multiply-add still reads two words, now from shared memory: one wavefront a cycle. An
# A100's SM could do two warp multiply-adds in it, and wants four wavefronts for them: a tile alone can reach a quarter of
# the peak.
#
# ## 4 · Eight outputs a thread
#
# The cure is the same again, one level up: use what was read more often while it is in a register.
# Let a thread compute eight outputs of one column (**register blocking**, or thread coarsening). For each k it reads one
# word of B's tile, which serves eight multiply-adds, and 8 of A's: 9/8 per multiply-add instead of 2.
#
# ![A thread with eight outputs below one another: it reads one number of B and uses it eight times, with eight numbers of A that all lanes of the warp share.](drawings/column_of_outputs.svg)
#
# Eight sums live in `cuda.local.array(8, np.float32)`, in registers when every index is known at compile time (lab 04).
# `for i in range(8)` is unrolled, so it is.
#
# **Do.** Write `column(a, b, c)`. Blocks are (64, 8) and compute 64 × 64 outputs, x along the columns of C.
# Give the tiles a depth of 8: 64 × 8 of A, 8 × 64 of B. To fill A's, number the threads, t = 64 · ty + tx:
# thread t loads row t // 8, column t % 8. Thread (tx, ty) computes column tx, rows ty, ty + 8, …, ty + 56.
# **Budget:** the bytes that tiles of 64 need, 4 sectors for 32 words, 1.125 shared loads per
# multiply-add, no local memory. About 25 lines.


# %% nbgrader={"grade": false, "grade_id": "column", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def column(a, b, c):
    ### BEGIN SOLUTION
    a_tile = cuda.shared.array((64, 8), np.float32)
    b_tile = cuda.shared.array((8, 64), np.float32)
    sums = cuda.local.array(8, np.float32)
    right = cuda.local.array(8, np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    top, left = cuda.blockIdx.y * 64, cuda.blockIdx.x * 64
    m, n, depth = c.shape[0], c.shape[1], a.shape[1]
    for i in range(8):
        sums[i] = 0
    t = ty * 64 + tx
    for first in range(0, depth, 8):
        row, k = top + t // 8, first + t % 8
        a_tile[t // 8, t % 8] = a[row, k] if row < m and k < depth else np.float32(0)
        k, col = first + ty, left + tx
        b_tile[ty, tx] = b[k, col] if k < depth and col < n else np.float32(0)
        cuda.syncthreads()
        for k in range(8):
            right[k] = b_tile[k, tx]
        for i in range(8):
            for k in range(8):
                sums[i] += a_tile[ty + 8 * i, k] * right[k]
        cuda.syncthreads()
    for i in range(8):
        if top + ty + 8 * i < m and left + tx < n:
            c[top + ty + 8 * i, left + tx] = sums[i]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "column-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("gemm.column", column)

# %%
gpulab.need(column)
step("column", column, (4, 4), (64, 8))

# %% [markdown]
# ## 5 · A square of outputs
#
# With R outputs in a column, a thread reads 1 + R words for R multiply-adds: never below one word each.
# With a square of R × R outputs it reads R words of A and R of B and does R² multiply-adds (an **outer
# product**): 2/R.
#
# ![A thread with a square of 4 × 4 outputs reads four numbers of A and four of B for 16 multiply-adds. One with a single output reads two numbers for one.](drawings/register_square.svg)
#
# **Predict.** A thread has 4 × 8 outputs, not a square. How many words per multiply-add?

# %%
gpulab.predict("gemm.square", ...)

# %% [markdown]
# **Do.** Write `blocked(a, b, c)`. Blocks are (8, 8), so 64 threads have the 64 × 64 outputs between them.
# Thread (tx, ty) has rows ty + 8·i and columns tx + 8·j; its 64 sums and the 8 words of A go into arrays of
# its own. To fill the tiles each thread loads eight elements of each: of A column tx in its own eight rows, of
# B column t = 8 · ty + tx in all eight rows. **Budget:** the bytes that tiles of
# 64 need, 0.25 shared loads per multiply-add, no local memory, no bank conflicts. About 30 lines.


# %% nbgrader={"grade": false, "grade_id": "blocked", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def blocked(a, b, c):
    ### BEGIN SOLUTION
    a_tile = cuda.shared.array((64, 8), np.float32)
    b_tile = cuda.shared.array((8, 64), np.float32)
    sums = cuda.local.array((8, 8), np.float32)
    mine = cuda.local.array(8, np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    top, left = cuda.blockIdx.y * 64, cuda.blockIdx.x * 64
    m, n, depth = c.shape[0], c.shape[1], a.shape[1]
    for i in range(8):
        for j in range(8):
            sums[i, j] = 0
    t = ty * 8 + tx
    for first in range(0, depth, 8):
        for i in range(8):
            row, k = top + ty + 8 * i, first + tx
            a_tile[ty + 8 * i, tx] = a[row, k] if row < m and k < depth else np.float32(0)
            k, col = first + i, left + t
            b_tile[i, t] = b[k, col] if k < depth and col < n else np.float32(0)
        cuda.syncthreads()
        for k in range(8):
            for i in range(8):
                mine[i] = a_tile[ty + 8 * i, k]
            for j in range(8):
                right = b_tile[k, tx + 8 * j]
                for i in range(8):
                    sums[i, j] += mine[i] * right
        cuda.syncthreads()
    for i in range(8):
        for j in range(8):
            row, col = top + ty + 8 * i, left + tx + 8 * j
            if row < m and col < n:
                c[row, col] = sums[i, j]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "blocked-check", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
gpulab.check("gemm.blocked", blocked)

# %% [markdown]
# **See.** Words read from shared memory per multiply-add, at 256³.

# %%
gpulab.need(tiled, column, blocked)
step("blocked", blocked, (4, 4), (8, 8))


def per_fma(report, metric):
    return report[metric] / (report["flops"] / 2)


bars(
    {name: per_fma(steps[name], "shared_load_bytes") / 4 for name in ("tiled", "column", "blocked")},
    "shared loads per multiply-add",
)

# %%
naive_sectors, blocked_sectors = (steps[name]["global_load_sectors"] for name in ("naive", "blocked"))
print(f"global load sectors, 256³: {naive_sectors:,} → {blocked_sectors:,}")
print(
    f"registers per thread {steps['blocked']['registers']}, occupancy {steps['blocked']['occupancy']:.0f} %"
)

# %% [markdown]
# **Why.** Every level plays the same game: from L2 to shared memory the tile is the square, from shared
# memory to registers the 8 × 8 outputs. The larger the square, the less crosses, and the more must be kept.
# 64 sums in registers leave room for few warps. That is no fault: a thread with 64 independent
# multiply-adds under way needs no other warp to wait behind. V. Volkov showed products that run best at an
# eighth to a quarter of full occupancy (GTC 2010).
#
# ## 6 · Two floats at a time
#
# A lane can load 8 bytes with one instruction (lab 04, section 5): the same sectors, half the requests.
# Views of the arrays as float64 do it: `a.view(np.float64)[row, p]` holds columns 2p and 2p + 1 of A. A
# tile of pairs is a shared array of float64. Out of a pair come two floats, without any arithmetic:


# %%
@cuda.jit(device=True)
def first_of(pair):
    return np.int32(pair.view(np.int64)).view(np.float32)


@cuda.jit(device=True)
def second_of(pair):
    return np.int32(pair.view(np.int64) >> 32).view(np.float32)


# %% [markdown]
# A pair must lie at a multiple of 8 bytes. It does if rows have an even length; else every second row
# starts in the middle of a pair. So here k and n are even: an **alignment rule**. Libraries have the like,
# and part B comes back to it.
#
# ![Pairs of floats lie at multiples of 8 bytes. In rows of even length every row begins with a pair; in rows of seven the second row begins in the middle of one.](drawings/aligned_pairs.svg)
#
# **Do.** Write `wide(a, b, c)`: `blocked` with pairs, from global memory to shared and from shared to
# registers. Tiles are 64 × 4 pairs of A and 8 × 32 pairs of B. A thread's columns are now pairs: tx + 8·j,
# j in range(4). **Budget:** half the load requests, 0.125 shared requests per multiply-add of a warp, no
# conflicts. Add each product with its own `+=`, so that each is one FMA. About 35 lines. Sizes include 33 × 18 × 66.


# %% nbgrader={"grade": false, "grade_id": "wide", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def wide(a, b, c):
    ### BEGIN SOLUTION
    a_pairs, b_pairs = a.view(np.float64), b.view(np.float64)
    a_tile = cuda.shared.array((64, 4), np.float64)
    b_tile = cuda.shared.array((8, 32), np.float64)
    sums = cuda.local.array((8, 8), np.float32)
    mine = cuda.local.array(8, np.float64)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    m, n, depth = c.shape[0], c.shape[1], a.shape[1]
    top, left = cuda.blockIdx.y * 64, cuda.blockIdx.x * 64
    for i in range(8):
        for j in range(8):
            sums[i, j] = 0
    t = ty * 8 + tx
    for first in range(0, depth, 8):
        for i in range(4):
            row, p = top + t // 4 + 16 * i, first // 2 + t % 4
            a_tile[t // 4 + 16 * i, t % 4] = a_pairs[row, p] if row < m and 2 * p < depth else 0.0
            k, p = first + t // 32 + 2 * i, left // 2 + t % 32
            b_tile[t // 32 + 2 * i, t % 32] = b_pairs[k, p] if k < depth and 2 * p < n else 0.0
        cuda.syncthreads()
        for p in range(4):
            for i in range(8):
                mine[i] = a_tile[ty + 8 * i, p]
            for j in range(4):
                upper = b_tile[2 * p, tx + 8 * j]
                lower = b_tile[2 * p + 1, tx + 8 * j]
                for i in range(8):
                    sums[i, 2 * j] += first_of(mine[i]) * first_of(upper)
                    sums[i, 2 * j + 1] += first_of(mine[i]) * second_of(upper)
                    sums[i, 2 * j] += second_of(mine[i]) * first_of(lower)
                    sums[i, 2 * j + 1] += second_of(mine[i]) * second_of(lower)
        cuda.syncthreads()
    for i in range(8):
        for j in range(8):
            row, col = top + ty + 8 * i, left + 2 * (tx + 8 * (j // 2)) + j % 2
            if row < m and col < n:
                c[row, col] = sums[i, j]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "wide-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("gemm.wide", wide)

# %%
gpulab.need(blocked, wide)
step("wide", wide, (4, 4), (8, 8))
for metric in ("global_load_requests", "shared_load_requests", "shared_load_wavefronts", "instructions"):
    print(f"{metric:24}{steps['blocked'][metric]:12,}{steps['wide'][metric]:12,}")

# %% [markdown]
# **Why.** Requests halve, wavefronts stay: 32 lanes with 8 bytes each want 64 words, and shared memory
# gives 32 at a time. What is saved are instructions, and these are what holds this kernel up, as section 8
# shows. CUDA C++ loads 16 bytes the same way, as `float4` (lab 07).
#
# ## 7 · The next tile while this one is in use
#
# A block with one buffer takes turns: load a tile, wait, compute, wait. While it waits for memory nobody
# computes, unless another block is there to fill the gap. With two buffers it can ask for the next tile
# first, compute on this one, and then put what has arrived into the other buffer (**double buffering**).
# The loads are under way while the block computes. And because nobody writes into the buffer that is being
# read, one barrier a round is enough.
#
# ![With one buffer, loading and computing take turns. With two, the next tile is loaded into one while the other is in use, and a single barrier separates the steps.](drawings/double_buffer.svg)
#
# **Predict.** How many barriers does a block of `tiled` pass at 256³?

# %%
gpulab.predict("gemm.barriers", ...)

# %% [markdown]
# ## Detective · The buffer that was not ready
#
# Somebody has written it. The sums agree, and there is one barrier in each round.


# %%
@cuda.jit
def staged_first_try(a, b, c):
    a_tile = cuda.shared.array((2, 32, 32), np.float32)
    b_tile = cuda.shared.array((2, 32, 32), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    m, n, depth = c.shape[0], c.shape[1], a.shape[1]
    a_tile[0, ty, tx] = a[row, tx] if row < m and tx < depth else np.float32(0)
    b_tile[0, ty, tx] = b[ty, col] if col < n and ty < depth else np.float32(0)
    cuda.syncthreads()
    total = np.float32(0)
    now = 0
    for first in range(32, depth + 32, 32):
        next_a = a[row, first + tx] if row < m and first + tx < depth else np.float32(0)
        next_b = b[first + ty, col] if col < n and first + ty < depth else np.float32(0)
        for k in range(32):
            total += a_tile[now, ty, k] * b_tile[now, k, tx]
        cuda.syncthreads()
        now = 1 - now
        a_tile[now, ty, tx] = next_a
        b_tile[now, ty, tx] = next_b
    if row < m and col < n:
        c[row, col] = total


step("staged, first try", staged_first_try, (8, 8), (32, 32))
del steps["staged, first try"]  # no step of the ladder
gpulab.sanitize(staged_first_try[(2, 2), (32, 32)], a[:64, :96], b[:96, :64], c[:64, :64], cures=False)

# %% [markdown]
# **Do.** The findings name lines of the loop. Follow two warps, one of them slow, from one round into
# the next. Then write `staged(a, b, c)`, mended. **Budget:** one barrier a round and one before the loop,
# and the bytes that tiles of 32 need.


# %% nbgrader={"grade": false, "grade_id": "staged", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def staged(a, b, c):
    ### BEGIN SOLUTION
    a_tile = cuda.shared.array((2, 32, 32), np.float32)
    b_tile = cuda.shared.array((2, 32, 32), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    m, n, depth = c.shape[0], c.shape[1], a.shape[1]
    a_tile[0, ty, tx] = a[row, tx] if row < m and tx < depth else np.float32(0)
    b_tile[0, ty, tx] = b[ty, col] if col < n and ty < depth else np.float32(0)
    cuda.syncthreads()
    total = np.float32(0)
    now = 0
    for first in range(32, depth + 32, 32):
        next_a = a[row, first + tx] if row < m and first + tx < depth else np.float32(0)
        next_b = b[first + ty, col] if col < n and first + ty < depth else np.float32(0)
        for k in range(32):
            total += a_tile[now, ty, k] * b_tile[now, k, tx]
        now = 1 - now
        a_tile[now, ty, tx] = next_a
        b_tile[now, ty, tx] = next_b
        cuda.syncthreads()
    if row < m and col < n:
        c[row, col] = total
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "staged-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("gemm.staged", staged)

# %%
gpulab.need(staged)
step("staged", staged, (8, 8), (32, 32))
for name in ("tiled", "staged"):
    print(
        f"{name:8}{steps[name]['barriers_per_warp']:4.0f} barriers, {steps[name]['shared_bytes']:,} B shared"
    )

# %% [markdown]
# **Why.** Counts see the barriers, not the waiting: whether loads and arithmetic overlap, only a clock can
# tell. The price is twice the shared memory, and registers for what is on its way. From the A100 on
# `cp.async` copies from global to shared memory without a detour through registers, so several tiles can be
# under way (CUDA Programming Guide, "Asynchronous Data Copies"); the H100's TMA fetches a whole tile with
# one instruction (NVIDIA H100 whitepaper, 2022).
#
# ## 8 · The ladder
#
# First the roofline, counted on the bytes that your kernels ask of global memory. The numbers are your attempts, in
# the order in which you wrote them. Choose another GPU or another format. Which attempts change sides?

# %% jupyter={"source_hidden": true}
from gpulab.plot.moving import RoofTrail

RoofTrail(
    [
        Point(name, steps[name]["arithmetic_intensity"])
        for name in ("naive", "tiled", "column", "blocked", "wide")
        if name in steps
    ]
)

# %% [markdown]
# Four units of an SM work side by side on a product: lanes do the arithmetic, schedulers issue
# instructions, shared memory serves wavefronts, the L2 sends sectors. Each needs some cycles for the work
# of 32 multiply-adds, one of each lane of a warp. The slowest sets the pace. The counts are yours, the
# rates are the A100's (`l2_seen`: L2 bandwidth that tests have seen; as if the L1 caught no repeats); so this is
# **modelled**, and it leaves out waiting. Instructions are those of PTX;
# machine code has somewhat others.
#
# ![The rungs of this lab, each with what it brings near: a tile in shared memory, a column in registers, a square in registers, wider loads, the next tile early.](drawings/ladder.svg)

# %%
from gpulab import hardware

a100 = hardware.find("A100")
L2_BYTES = float(a100.l2_seen) / float(a100.boost_clock) / int(a100.sms)  # per SM and cycle


def cycles(report):
    """Cycles that each unit of an SM needs for 32 multiply-adds (modelled)."""
    work = report["flops"] / 2 / 32
    return {
        "float32 lanes": 32 / int(a100.fp32_lanes),
        "issue": report["instructions"] / work / a100.capability.partitions,
        "shared memory": report["shared_wavefronts"] / work,
        "L2, without the L1's help": 32 * report["global_sectors"] / work / L2_BYTES,
    }


shown = [name for name in ("naive", "tiled", "column", "blocked", "wide") if name in steps]
print(f"{'256³':20}  global load   shared loads  instructions    bank  barriers")
print(f"{'':20}      sectors   per mult.-add per mult.-add    ways  per warp  registers  occupancy")
for name, report in steps.items():
    print(
        f"{name:20}{report['global_load_sectors']:13,}{per_fma(report, 'shared_load_bytes') / 4:16.3f}"
        f"{32 * per_fma(report, 'instructions'):14.2f}{report['bank_conflict_ways'] or 1:8.1f}"
        f"{report['barriers_per_warp']:10.0f}{report['registers']:11}{report['occupancy']:9.0f} %"
    )
units({name: cycles(steps[name]) for name in shown}, "cycles per 32 multiply-adds", least=0.5)

# %% [markdown]
# At 0.5 cycles the lanes are busy all the time: the peak. What holds each of your kernels up:

# %%
for name in shown:
    unit, most = max(cycles(steps[name]).items(), key=lambda item: item[1])
    print(f"{name:10}{unit:27}at most {100 * 0.5 / most:3.0f} % of the float32 peak (modelled)")

# %% [markdown]
# Instructions depend on how you write the loops. `column` with k outside, its word of B read there, and i
# inside takes 7.5 per multiply-add; with i outside and k inside 2.8. Loads and multiply-adds are the same; the
# rest is indices and loops. If yours is high, exchange them.

# %% [markdown]
# On a GPU the next cell measures the same ladder against **cuBLAS**, NVIDIA's library, called through CuPy.
# Without one it says so. It warms up, and between the two events stands nothing but the product: no
# allocation, no copy, no creation of a handle.

# %%
from gpulab import device

if not device.uses_gpu():
    print("No GPU here, so nothing was measured. On a GPU this cell compares your kernels with cuBLAS.")
else:
    gpulab.need(tiled, column, blocked, wide, staged)
    from gpulab import cupy as cp

    size = 2048
    p, q, r = (cp.random.rand(size, size, dtype=cp.float32) for _ in range(3))
    runs = {"cuBLAS": lambda: cp.matmul(p, q, out=r)}
    for name, kernel, tile, block in (
        ("naive", naive, (32, 8), (32, 8)),
        ("tiled", tiled, (32, 32), (32, 32)),
        ("column", column, (64, 64), (64, 8)),
        ("blocked", blocked, (64, 64), (8, 8)),
        ("wide", wide, (64, 64), (8, 8)),
        ("staged", staged, (32, 32), (32, 32)),
    ):
        launch = kernel[(size // tile[0], size // tile[1]), block]
        runs[name] = lambda launch=launch: launch(p, q, r)
    for name, run in runs.items():
        run()  # compiles, and wakes the GPU
        taken = []
        for _ in range(10):
            start, stop = cuda.event(), cuda.event()
            start.record()
            run()
            stop.record()
            stop.synchronize()
            taken.append(cuda.event_elapsed_time(start, stop) / 1e3)
        print(f"{name:8}{2 * size**3 / np.median(taken) / 1e12:7.2f} TFLOP/s, median of {len(taken)}")

# %% [markdown]
# **Why is cuBLAS faster still?** Larger tiles (128 × 128 and more), loads of 16 bytes, several buffers,
# machine code whose registers are chosen so that operands do not collide, and for each shape the kernel
# that fits it best (reference 7). Part B goes on.
#
# ## 9 · A matrix times a vector
#
# With one column in B nothing of this helps. Each element of A is used once, so it comes from DRAM and is
# gone: 2 operations for 4 bytes. Inference of a language model, one token at a time, is this product: its
# speed is the memory's.
#
# ![A matrix times a vector reads every element of the matrix once and uses it once. Nothing can be used again, so the bytes of the matrix decide the time.](drawings/matrix_vector.svg)
#
# So what is left is to read A well, and x seldom. In y = xᵀ·A a thread can have a column, and neighbours
# read neighbours. In y = A·x a thread per row would read down a column. Let a warp walk along a row
# instead: 32 partial sums, put into shared memory at the end, where one thread adds up each row's. And
# register blocking works for x: eight rows at once share each word of it.
#
# **Do.** Write `matvec(a, x, y)`. Blocks are (32, 8), and a block has 64 rows: warp `threadIdx.y` takes
# eight of them. y comes unset. **Budget:** 4 sectors for each 32 words of A and of x, and 4.5 bytes loaded per
# element of A, plus 10 %. About 20 lines. Sizes include 70 × 33, 5 × 0 and 1 × 1000.


# %% nbgrader={"grade": false, "grade_id": "matvec", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def matvec(a, x, y):
    ### BEGIN SOLUTION
    partial = cuda.shared.array((64, 33), np.float32)
    sums = cuda.local.array(8, np.float32)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.x * 64
    for i in range(8):
        sums[i] = 0
    for k in range(lane, a.shape[1], 32):
        factor = x[k]
        for i in range(8):
            row = first + warp + 8 * i
            if row < a.shape[0]:
                sums[i] += a[row, k] * factor
    for i in range(8):
        partial[warp + 8 * i, lane] = sums[i]
    cuda.syncthreads()
    t = warp * 32 + lane
    if t < 64 and first + t < a.shape[0]:
        total = np.float32(0)
        for i in range(32):
            total += partial[t, i]
        y[first + t] = total
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "matvec-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("gemm.matvec", matvec)

# %%
gpulab.need(matvec)
y = cuda.device_array(N, np.float32)
vector = gpulab.profile(matvec[4, (32, 8)], a, cuda.to_device(np.ones(N, np.float32)), y)
roof = hardware.roofline("A100")
reached = roof.attainable(0.5) / roof.peak
print(f"{2 * N * N / vector['global_load_bytes']:.2f} operations per byte loaded")
print(f"at 0.5 the A100's roof is {100 * reached:.1f} % of its peak")

# %% [markdown]
# **Why.** No kernel gets past the roof. To read A once, in whole sectors, is all that can be done. If
# several vectors are there, make a matrix of them: the product of A with 8 vectors moves the same bytes and
# does 8 times the work. That is why servers collect requests into batches.
#
# ## 10 · Many small products
#
# Attention heads, convolutions and graphs bring thousands of small products. One by one they cost a launch
# each, and a tile of 64 × 64 stays mostly empty. A **batched** product takes all of them in one launch.
#
# ![Many small products: launched one by one each pays for a launch and fills a few SMs. In a batch one launch has them all, a block for each.](drawings/batched.svg)
#
# **Do.** Write `batched(a, b, c)`, arrays of shape (batch, n, n) with n up to 16. The launch has a block of
# (16, 16) for each product. **Budget:** each element loaded once. About 14 lines. Sizes include n = 7 and a
# batch of 0, for which one block is launched all the same.


# %% nbgrader={"grade": false, "grade_id": "batched", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def batched(a, b, c):
    ### BEGIN SOLUTION
    a_tile = cuda.shared.array((16, 16), np.float32)
    b_tile = cuda.shared.array((16, 16), np.float32)
    col, row, product = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.x
    n = c.shape[1]
    inside = product < c.shape[0] and row < n and col < n
    if inside:
        a_tile[row, col] = a[product, row, col]
        b_tile[row, col] = b[product, row, col]
    cuda.syncthreads()
    if inside:
        total = np.float32(0)
        for k in range(n):
            total += a_tile[row, k] * b_tile[k, col]
        c[product, row, col] = total
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "batched-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("gemm.batched", batched)

# %% jupyter={"source_hidden": true}
gpulab.need(batched)
many = [cuda.to_device(numbers.standard_normal((64, 16, 16), np.float32)) for _ in range(3)]
small = gpulab.profile(batched[64, (16, 16)], *many)
roofline(
    [
        Point("batched, 16 × 16", small["arithmetic_intensity"]),
        Point("matvec", vector["arithmetic_intensity"]),
    ],
    "A100",
)

# %% [markdown]
# **Why.** Both lie on the slope, and there the roof is a bandwidth: only fewer bytes make them faster, such
# as a smaller number format, or fusing with what comes before. The batch changes nothing for one product's
# intensity; it fills the GPU.
#
# ## 11 · A long sum, few outputs
#
# The gradient of a weight is a product with few outputs and a long k: all tokens of a batch are summed
# over. A block for each tile of C leaves most SMs without work.
#
# **Predict.** C is 64 × 64 and tiles are 16 × 16. How many SMs can work on it at most?

# %%
gpulab.predict("gemm.few_blocks", ...)

# %% [markdown]
# **Split-K** cuts the sum, too: `gridDim.z` blocks share a tile of C, each takes some of the tiles along k,
# and their sums are added. Here they are added to C by atomics. That costs an addition in memory for each
# output and slice, and the order of the additions, so the last bits, may change from run to run. Libraries
# also offer a second kernel that adds the slices in a fixed order, from a **workspace**.
#
# ![A long sum for a small output. Without split-K one block has it and the other SMs are idle; with it four blocks take a quarter of k each, and their partial results are added.](drawings/split_k.svg)
#
# **Do.** Write `split_k(a, b, c)`. Blocks are (16, 16), the grid is (tiles across, tiles down, slices):
# 16 slices, or another number. C comes as zeros. **Budget:** no block loads more than the
# tiles of 16 of its slice, and one atomic addition for each output and slice.
# About 15 lines. Sizes include 33 × 100 × 17: fewer tiles than slices.


# %% nbgrader={"grade": false, "grade_id": "split_k", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def split_k(a, b, c):
    ### BEGIN SOLUTION
    a_tile = cuda.shared.array((16, 16), np.float32)
    b_tile = cuda.shared.array((16, 16), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col = cuda.blockIdx.x * 16 + tx
    row = cuda.blockIdx.y * 16 + ty
    depth = a.shape[1]
    total = np.float32(0)
    for first in range(cuda.blockIdx.z * 16, depth, cuda.gridDim.z * 16):
        a_tile[ty, tx] = a[row, first + tx] if row < a.shape[0] and first + tx < depth else np.float32(0)
        b_tile[ty, tx] = b[first + ty, col] if col < b.shape[1] and first + ty < depth else np.float32(0)
        cuda.syncthreads()
        for k in range(16):
            total += a_tile[ty, k] * b_tile[k, tx]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        cuda.atomic.add(c, (row, col), total)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "split_k-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("gemm.split_k", split_k)

# %%
gpulab.need(split_k)
long_a = cuda.to_device(numbers.standard_normal((64, 4096), np.float32))
long_b = cuda.to_device(numbers.standard_normal((4096, 64), np.float32))
print("slices   blocks   rounds in a block   atomic additions")
for slices in (1, 4, 16, 64):
    few = cuda.to_device(np.zeros((64, 64), np.float32))
    report = gpulab.profile(split_k[(4, 4, slices), (16, 16)], long_a, long_b, few)
    print(
        f"{slices:6}{report['blocks']:9,}{report['barriers_per_warp'] / 2:20.0f}{report['global_atomics']:19,}"
    )

# %% [markdown]
# **Why.** The work stays, and more SMs share it; what is added is the traffic of the additions. More slices
# pay until the GPU is full. Choosing between such variants by the shape is a good part of what a library
# does.
#
# ## 12 · The library's names
#
# ![Libraries for products, from the one call that does everything to the parts to build a kernel from: cuBLAS, cuBLASLt, CUTLASS.](drawings/libraries.svg)
#
# What you have built has names in every BLAS; cuBLAS, from C:
#
# | product | routine |
# |---|---|
# | vectors | `cublasSdot`, `cublasSaxpy`, `cublasSscal` |
# | matrix and vector | `cublasSgemv` |
# | matrix and matrix | `cublasSgemm`, C ← α·A·B + β·C |
# | many small ones | `cublasSgemmStridedBatched` |
#
# Two habits surprise at first. Matrices lie **column after column**. A C program with rows after rows asks
# for Bᵀ·Aᵀ, which is Cᵀ, which in memory is C by rows. And a **handle** holds a stream, a workspace and the
# allowed arithmetic: creating it takes long, so it is made once. `torch.matmul`, `torch.bmm` and
# `cupy.matmul` call these routines for you (cuBLAS documentation, sections 1 and 2).
#
# ## Detective · A layer's weights
#
# A linear layer stores its weights as (outputs, inputs) and computes y = x·Wᵀ. A colleague changed two
# lines of `tiled` for it. "W is read along its rows, so the transposed product costs the same: look, the
# same sums, sectors and barriers."


# %%
@cuda.jit
def linear(x, w, y):
    x_tile = cuda.shared.array((32, 32), np.float32)
    w_tile = cuda.shared.array((32, 32), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    left = cuda.blockIdx.x * 32
    total = np.float32(0)
    for first in range(0, x.shape[1], 32):
        x_tile[ty, tx] = x[row, first + tx]
        w_tile[ty, tx] = w[left + ty, first + tx]
        cuda.syncthreads()
        for k in range(32):
            total += x_tile[ty, k] * w_tile[tx, k]
        cuda.syncthreads()
    y[row, col] = total


gpulab.need(tiled)
w = cuda.to_device(np.ascontiguousarray(b.copy_to_host().T))
product, layer = cuda.device_array((N, N), np.float32), cuda.device_array((N, N), np.float32)
plain = gpulab.profile(tiled[(8, 8), (32, 32)], a, b, product)
transposed = gpulab.profile(linear[(8, 8), (32, 32)], a, w, layer)
print("the same sums:", np.array_equal(product.copy_to_host(), layer.copy_to_host()))
for metric in ("global_load_sectors", "shared_load_bytes", "barriers_per_warp"):
    print(f"{metric:20}{plain[metric]:12,.0f}{transposed[metric]:12,.0f}")

# %% [markdown]
# **Do.** All of it is true. Hand both reports to `cycles` and find the unit that nobody mentioned. Then try
# two cures, in copies of `linear`: (1) read the tile as `w_tile[k, tx]`, and load it so that this is right;
# (2) keep the loads and change one number. Compare the cycles of both. The cell is free.

# %%
# Your experiments.

# %% [markdown]
# ### Your answer
#
# In three to five sentences: what holds `linear` up, which of your own counts proves it, and which cure is
# the better one, by what count? A person reads this: 1 point for the cause, 1 point for counts that you
# measured.

# %% [markdown] nbgrader={"grade": true, "grade_id": "layer-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** The lanes of a warp read `w_tile[tx, k]`, 32 words apart: all in one bank, 32 wavefronts a
# request. Shared memory needs 33.06 cycles per 32 multiply-adds instead of 2.06, sixteen times as many.
# Loading W down its columns cures the conflict (2.06 again), but its loads take 32 sectors per request:
# 589,824 in all instead of 131,072. Rows of 33 words cure it and keep the 131,072 sectors, so that is the
# better one. Sums, sectors and barriers cannot show a conflict.
#
# **1 point** (cause without counts): The column of the tile lies in one bank; pad the rows to 33.
#
# **0 points:** The transposed matrix is not coalesced. Or: transposing takes time.

# %% [markdown]
# ## Beyond · Your own best
#
# Open-ended and ungraded. Write the product for 256³ alone: no guards, any block, any tile. The figure of
# merit is **instructions per multiply-add**: warp instructions times 32, over 256³. One is the least, the
# multiply-add itself.
#
# | kernel | instructions per multiply-add |
# |---|---|
# | naive | 22.0 |
# | blocked | 3.0 |
# | ours: 8 × 8 outputs, tiles 16 deep, unsigned indices, 16-byte reads | 1.57 |
# | bound for 8 × 8 outputs: 64 multiply-adds and four 16-byte reads for each k | 1.06 |
#
# Two things to know. An index of type `np.uint32` cannot be negative, so the instructions that let numba
# count from the end fall away. And `cuda.shared.array(shape, np.float32, alignment=16)` tells the compiler
# that it may read four neighbours at once, if it sees that they are neighbours. The report's lines tell
# where instructions are left.


# %%
def merit(kernel, grid, block):
    c.copy_to_device(np.full((N, N), np.nan, np.float32))
    report = gpulab.profile(kernel[grid, block], a, b, c)
    right = np.allclose(c.copy_to_host(), a.copy_to_host().astype(np.float64) @ b.copy_to_host(), atol=1e-3)
    return f"{report['instructions'] * 32 / N**3:.2f}" if right else "wrong"


merit(naive, (8, 32), (32, 8))


# %%
# Your `best`, then merit(best, …, …).

# %% [markdown]
# ## Recap
#
# <details><summary>1. Which limits a product of 4,096 × 4,096 with 4,096 × 8 in float32 on an A100?</summary>
#
# Memory. The large factor dominates the bytes, and each of its elements does 8 multiply-adds: 16 operations
# for 4 bytes, about 4 per byte. The ridge is at 9.6.
# </details>
#
# <details><summary>2. Tiles grow from 32 to 128. What happens to the bytes from global memory?</summary>
#
# They fall to a quarter: 2/T words per multiply-add.
# </details>
#
# <details><summary>3. A thread has 4 × 16 outputs. How many words does it read from shared memory per multiply-add?</summary>
#
# 20 words for 64 multiply-adds: 0.3125, more than the square's 0.25.
# </details>
#
# <details><summary>4. With two buffers, where does the one barrier of a round stand?</summary>
#
# After the other buffer has been written, before it is read: at the end of the round.
# </details>
#
# <details><summary>5. C is 32 × 32 and k is a million. What do you do?</summary>
#
# Split k over many blocks and add their sums, with atomics or from a workspace.
# </details>

# %%
gpulab.recap("06")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | operations of a product | 2 · m · n · k |
# | intensity, each element once | n/6 FLOP/B for float32 squares; 1/2 for a matrix and a vector |
# | words from global memory per multiply-add | 2/T with tiles of T × T |
# | words from shared memory per multiply-add | (R + S) / (R · S) with R × S outputs a thread |
# | barriers | two a round with one buffer, one with two |
# | wide loads | fewer requests; the same sectors and wavefronts; rows must be aligned |
# | occupancy | low is fine if each thread has enough independent work |
# | few outputs, long k | split-K |
# | many small ones | one launch for all: batched |
#
# ### Claims you will meet, and what is right
#
# - *Higher occupancy is better; aim above half.* What counts is enough independent work under way.
#   `blocked` has a quarter, and nothing above it on the ladder comes as near to the peak; see Volkov.
# - *cuBLAS reaches 3.5 TFLOP/s on an RTX 4090, little more than a naive kernel.* If the clock includes
#   allocation, copies and the creation of a handle. That is 4 % of the card's float32 peak; the product
#   alone, at the peak, takes a twentieth of that time.
# - *Memory-bound kernels need more parallelism.* They need fewer bytes. More parallelism helps where
#   neither memory nor arithmetic is busy.
# - *A roofline has one roof.* Each number format and unit has its own; do not divide float32 bytes into a
#   tensor core's float16 peak.

# %%
rtx = hardware.find("RTX 4090")
operations = 2 * 3620**3
print(
    f"3,620³ on an RTX 4090: at its peak {1e3 * operations / float(rtx.peak('float32')):.2f} ms; claimed were 26.8 ms"
)

# %% [markdown]
# ### References
#
# 1. V. Volkov, J. Demmel, "Benchmarking GPUs to Tune Dense Linear Algebra", SC 2008.
#    https://doi.org/10.1109/SC.2008.5214359
# 2. V. Volkov, "Better Performance at Lower Occupancy", GPU Technology Conference, 2010.
# 3. S. Williams, A. Waterman, D. Patterson, "Roofline", Communications of the ACM 52 (4), 2009.
# 4. K. Goto, R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS 34 (3), 2008.
# 5. C. Lawson, R. Hanson, D. Kincaid, F. Krogh, "Basic Linear Algebra Subprograms for Fortran Usage", ACM
#    TOMS 5 (3), 1979.
# 6. NVIDIA, *cuBLAS*. https://docs.nvidia.com/cuda/cublas/
# 7. NVIDIA, *CUTLASS: Efficient GEMM in CUDA*. https://docs.nvidia.com/cutlass/
