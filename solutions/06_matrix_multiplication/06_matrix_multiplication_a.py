# ---
# jupyter:
#   gpulab:
#     lab: "06"
#     hours: 5
#     topics: [C5.4, C5.10, C6.4, C7.1]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 06A · Matrix multiplication, step by step
#
# **4.5 to 7.5 hours.** You need lab 04 (sectors, tiles, banks) and the roofline of lab 02 A. Part B moves the product
# to the tensor cores.
#
# Most of the time that a GPU spends on training or inference goes into matrix products. The plain product of lab 03
# is a slow one: by the model in section 8 it reaches at most a tenth of an A100's float32 peak. In this lab you write
# the product again and again. Each version changes one thing. After each change you read in the counts which unit of
# the SM now has less to do, and which unit has become the next limit.
#
# By the end of this lab, you can
#
# 1. say from a product's shape whether arithmetic or memory limits it, before anything runs;
# 2. derive from a tile's size how many words cross each level of memory per multiply-add;
# 3. keep a square of outputs in registers, and explain why this is what makes a product fast;
# 4. load two numbers with one instruction, and load the next tile while the current one is in use;
# 5. choose a suitable method for thin, small and long products, which need something other than a square one does.
#
# | sitting | sections | hours | what it is about |
# |---|---|---|---|
# | 1 | 1 to 6 | 2.5 to 4 | the square product, from a tile of each input to eight outputs a thread and loads of two floats |
# | 2 | 7 to 12, detective, recap | 2 to 3.5 | loading ahead, the ladder of all versions, and products that are not square |

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
# Before you make a product fast, find out what could limit it. The **BLAS** (basic linear algebra subprograms), a
# standard set of routines, sorts them by how much work they do on vectors of length n and matrices of n × n:
#
# | level | examples | operations | numbers moved | operations per byte, float32 |
# |---|---|---|---|---|
# | 1, vectors | `dot` xᵀy, `axpy` αx + y, `scal` αx | n or 2n | 2n or 3n | 1/8 to 1/4 |
# | 2, matrix and vector | `gemv` A·x | 2n² | n² | 1/2 |
# | 3, matrix and matrix | `gemm` A·B | 2n³ | 3n² | n/6 |
#
# **Arithmetic intensity** is the number of operations divided by the number of bytes moved. In levels 1 and 2 it does
# not depend on n, because every number is used only once or twice. So the time is the time to move the numbers. In
# level 3 each number is used n times, so the intensity grows with n: 2n³ operations on 3n² numbers of 4 bytes are 2n³
# / 12n² = n/6 operations per byte.
#
# Only in level 3, therefore, can arithmetic become the limit. The n/6 holds on one condition: each element is fetched
# from far away once, and then used n times while it is near. This lab is about meeting that condition.
#
# **Predict.** What is the intensity of a product of two 1,024 × 1,024 matrices in float32?

# %%
gpulab.predict("gemm.intensity", ...)

# %% [markdown]
# **See.** The roofline of an A100, with the three levels of BLAS as points. Each point assumes that every element is
# moved once.

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
# The next cell measures levels 2 and 3 on this computer's CPU. NumPy calls a BLAS too.

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
# **Why.** The matrix-vector product runs at the speed of memory, and the matrix product runs at the speed of
# arithmetic. This is true on a CPU and on a GPU. The distance between the two speeds is what reuse can gain you, and
# on a GPU it is larger.
#
# ## 2 · Where the plain product stands
#
# This is the product of lab 03. Each thread computes one element of C, and x runs along a row of C.
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
# The second version lets x run down a column of C, so neighbouring lanes compute elements that lie below each other.
# The sums are the same.


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
# **Predict.** The matrices are 256 × 256. At each of its 256 steps along k, a warp of `naive` loads one element of A,
# the same for all lanes, and 32 neighbouring elements of B. How many sectors do all loads of the whole run move?

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
# Both kernels ask for two words of 4 bytes, so 8 bytes, per **multiply-add** (`FMA`, fused multiply-add: one
# instruction, two operations). They differ in how many sectors these bytes lie in. In one step a warp of `naive`
# moves 1 sector of A and 4 of B. A warp of `down_the_columns` moves 32 sectors of A, because its lanes touch 32 rows,
# and 1 sector of B. That is 33 instead of 5, or 6.6 times as many.
#
# `naive` therefore loads in a good order, but it still loads far too much. An SM of an A100 has 64 lanes for float32,
# which is enough for two multiply-adds of a whole warp (2 · 32) in one cycle. Each multiply-add needs two load
# instructions, so in every cycle the warps would have to issue 2 · 2 = 4 loads.
#
# ## 3 · A tile of each
#
# All threads in a row of C need the same row of A, but each of them loads it from global memory for itself. A block
# can load it once for all of them.
#
# C is cut into **tiles** of T × T elements, one for each block. The block walks along k in steps of T. In each step
# it copies a tile of T × T elements of A and one of B into shared memory, waits at a barrier, and adds T products to
# each of its T² sums.
#
# ![A product in tiles: a tile of A and a tile of B are brought into shared memory, every thread adds their product to its element, then the next pair of tiles along k follows.](drawings/tiles.svg)
#
# **Predict.** T = 32. How many words does the block load from global memory per multiply-add?

# %%
gpulab.predict("gemm.tile_words", ...)

# %% [markdown]
# In general, one step loads T² words of A and T² words of B, and does T² · T multiply-adds. That is 2T² / T³ = 2/T
# words per multiply-add. Doubling T halves the traffic, because all of A is loaded once for every column of tiles,
# and all of B once for every row of tiles.
#
# **Do.** Write the kernel `tiled(a, b, c)`, which computes c = a·b. About 15 lines.
#
# - Input: `a` of shape (m, k) and `b` of shape (k, n), both float32. Output: `c` of shape (m, n), float32, not
#   initialised.
# - Launch: blocks of (32, 32) threads, one thread for each element of `c`; x runs along a row of `c`. The grid is
#   rounded up, so some threads have no element.
# - Where a tile reaches beyond its matrix, store zeros in it.
# - **Budget:** as many bytes loaded as tiles of 32 need, 4 sectors for 32 words, and no bank conflicts.
# - Full marks need the right result and all three parts of this budget, at every size.
# - Sizes (m × k × n) include 33 × 70 × 65, 40 × 5 × 33, and 70 × 0 × 9, whose `c` is all zeros.


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
# **Walk along k.** The figure shows one block with tiles of 16. Press play. Watch which numbers are in shared memory,
# which of them one thread reads for each multiply-add, and when the number of bytes loaded from global memory grows.

# %%
from gpulab.plot.moving import ProductWalk

ProductWalk(64, 64, 64, tile=(16, 16, 16))

# %% [markdown]
# **Why.** The sectors fall from 2,621,440 to 131,072, a twentieth. Each byte loaded now serves 32 times as many
# operations. (The table says 30 times, because it also counts the stores of C.)
#
# But each multiply-add still reads two words, now from shared memory. For a warp these are two wavefronts, and shared
# memory serves one per cycle. The lanes could do two multiply-adds of a warp per cycle, which need 2 · 2 = 4
# wavefronts, so 4 cycles. A tile alone can therefore reach a quarter of the peak at most.
#
# ## 4 · Eight outputs a thread
#
# The remedy is the same as before, one level closer to the lanes: a word that has been read into a register should be
# used several times. Let each thread compute eight outputs of one column (**register blocking**, also called thread
# coarsening). For each k it reads one word of B's tile, which serves all eight multiply-adds, and eight words of A's
# tile. That is (1 + 8) / 8 = 9/8 words per multiply-add instead of 2.
#
# ![A thread with eight outputs below one another: it reads one number of B and uses it eight times, with eight numbers of A that all lanes of the warp share.](drawings/column_of_outputs.svg)
#
# The next cell computes this for other numbers of outputs.

# %%
for outputs in (1, 2, 4, 8, 16):
    print(f"{outputs:2} outputs in a column: {(1 + outputs) / outputs:.3f} shared loads per multiply-add")

# %% [markdown]
# The eight sums live in `cuda.local.array(8, np.float32)`. The compiler keeps it in registers if it knows every index
# (lab 04). It does, because it unrolls `for i in range(8)`.
#
# **Do.** Write the kernel `column(a, b, c)`, which computes the same product. About 25 lines.
#
# - Input, output and edges: as for `tiled`. Sizes again include 70 × 0 × 9.
# - Launch: blocks of (64, 8) threads. Each block computes 64 × 64 outputs, and thread (tx, ty) computes column tx in
#   rows ty, ty + 8, …, ty + 56.
# - The tiles have a depth of 8: 64 × 8 elements of A and 8 × 64 of B. To fill A's tile, number the threads t = 64 ·
#   ty + tx; thread t loads row t // 8, column t % 8.
# - **Budget:** as many bytes loaded as tiles of 64 need, 4 sectors for 32 words, 1.125 shared loads per multiply-add,
#   and no local memory. Full marks need all four.


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
# With R outputs in a column, a thread reads 1 + R words for R multiply-adds. That is always more than one word each,
# however large R is. With a square of R × R outputs it reads R words of A and R words of B, and combines each with
# each in R² multiply-adds (an **outer product**). That is 2R / R² = 2/R words per multiply-add.
#
# ![A thread with a square of 4 × 4 outputs reads four numbers of A and four of B for 16 multiply-adds. One with a single output reads two numbers for one.](drawings/register_square.svg)
#
# **Predict.** A thread has 4 × 8 outputs, not a square. How many words does it read per multiply-add?

# %%
gpulab.predict("gemm.square", ...)

# %% [markdown]
# **Do.** Write the kernel `blocked(a, b, c)`, which computes the same product with 8 × 8 outputs per thread. About 30
# lines.
#
# - Input, output and edges: as for `tiled`. Sizes again include 70 × 0 × 9.
# - Launch: blocks of (8, 8) threads. The 64 threads of a block compute 64 × 64 outputs. Thread (tx, ty) computes rows
#   ty + 8·i and columns tx + 8·j, for i and j from 0 to 7.
# - Keep the 64 sums in one `cuda.local.array`, and the 8 words of A in another.
# - The tiles have a depth of 8 again. Each thread loads eight elements of each: of A column tx in its eight rows ty +
#   8·i, and of B column t = 8 · ty + tx in all eight rows.
# - **Budget:** as many bytes loaded as tiles of 64 need, 0.25 shared loads per multiply-add, no local memory, and no
#   bank conflicts. Full marks need all four.


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
# **See.** The number of words that each kernel reads from shared memory per multiply-add, for the 256³ product.

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
# **Why.** The same rule holds at each level: the larger the square, the fewer words cross into it per multiply-add,
# and the more values must be kept. Between L2 and shared memory the square is the tile. Between shared memory and
# registers it is the 8 × 8 outputs.
#
# The 64 sums of each thread take so many registers that few warps fit into an SM. That is no disadvantage here. A
# thread with 64 independent multiply-adds does not need other warps to hide its waiting. CUBLAS became 1.6 times as
# fast when the occupancy of its products was halved (V. Volkov, GTC 2010).
#
# ## 6 · Two floats at a time
#
# A lane can load 8 bytes with one instruction (lab 04, section 5). This moves the same sectors with half the
# requests. To do it, view the arrays as float64: `a.view(np.float64)[row, p]` holds columns 2p and 2p + 1 of A. A
# tile of such pairs is a shared array of float64. The two functions below take a pair apart into its floats, without
# any arithmetic:


# %%
@cuda.jit(device=True)
def first_of(pair):
    return np.int32(pair.view(np.int64)).view(np.float32)


@cuda.jit(device=True)
def second_of(pair):
    return np.int32(pair.view(np.int64) >> 32).view(np.float32)


# %% [markdown]
# A pair must start at a multiple of 8 bytes. If the rows have an even length, every row starts with a whole pair. If
# their length is odd, every second row starts in the middle of one. So in this exercise k and n are always even. Such
# a condition is called an **alignment rule**. Libraries have similar rules, and part B returns to them.
#
# ![Pairs of floats lie at multiples of 8 bytes. In rows of even length every row begins with a pair; in rows of seven the second row begins in the middle of one.](drawings/aligned_pairs.svg)
#
# For two steps along k, a thread reads 8 pairs of A (one for each of its rows) and 2 · 4 pairs of B (four in each of
# two rows). That is 16 loads for 2 · 64 multiply-adds, or 16/128 = 0.125 each.
#
# **Do.** Write the kernel `wide(a, b, c)`: `blocked`, but with pairs from global to shared memory and from shared
# memory to registers. About 35 lines.
#
# - Input, output, launch and edges: as for `blocked`, with k and n even.
# - The tiles are 64 × 4 pairs of A and 8 × 32 pairs of B. A thread's columns become pairs: tx + 8·j for j from 0 to
#   3.
# - Add each product with a `+=` of its own, so that each becomes one FMA.
# - **Budget:** half the load requests of `blocked`, 0.125 shared requests per multiply-add of a warp, no local
#   memory, and no bank conflicts. Full marks need all four.
# - Sizes include 33 × 18 × 66.


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
# **Why.** The requests halve, but the wavefronts stay the same: 32 lanes that read 8 bytes each want 64 words, and
# shared memory delivers 32 words per wavefront. What you save are instructions, and section 8 shows that issuing
# instructions is what limits this kernel. CUDA C++ loads 16 bytes the same way, as a `float4` (lab 07).

# %% [markdown]
# ## End of sitting 1
#
# Each of your four kernels asks memory less often than the one before it, because more values stay in registers and
# each load fetches more of them. The second sitting hides the loads behind the arithmetic, compares all versions,
# and then turns to products of other shapes, for which a square of outputs is the wrong choice.
#
# To go on another day, select this cell and choose *Run → Run All Above Selected Cell* first, because a new kernel
# does not know your functions yet.

# %%
gpulab.course.progress("06")

# %% [markdown]
# ## 7 · The next tile while this one is in use
#
# A block with one buffer alternates: load a tile, wait, compute, wait. While the tile is on its way, the block cannot
# compute, and the SM is idle unless another block can fill the gap. With two buffers the block can ask for the next
# tile first, then compute on the current one, and then store what has arrived in the other buffer (**double
# buffering**). The loads are under way while the block computes. One barrier per round is enough, because no warp
# writes into the buffer that the others are reading.
#
# ![With one buffer, loading and computing take turns. With two, the next tile is loaded into one while the other is in use, and a single barrier separates the steps.](drawings/double_buffer.svg)
#
# **Predict.** How many barriers does a block of `tiled` pass in the 256³ product?

# %%
gpulab.predict("gemm.barriers", ...)

# %% [markdown]
# ## Detective · The buffer that was not ready
#
# A colleague has written the double-buffered product. Its sums are right, and it has one barrier in each round.


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
# **Do.** The findings name lines of the loop. Follow two warps, a fast one and a slow one, from one round into
# the next, and find the moment at which they collide. Then write the corrected kernel `staged(a, b, c)`.
#
# - Input, output, launch and edges: as for `tiled`. Sizes again include 70 × 0 × 9.
# - **Budget:** one barrier per round and one before the loop, and as many bytes loaded as tiles of 32 need.
# - Full marks need both, and the right result without a race.


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
# **Why.** Counts show how many barriers there are, but not how long warps wait at them. Whether loads and arithmetic
# overlap can only be seen with a clock. The price of the second buffer is twice the shared memory, and registers for
# the numbers that are on their way.
#
# From the A100 on, `cp.async` copies from global to shared memory without a detour through registers, so several
# tiles can be under way at once (CUDA Programming Guide, "Asynchronous Data Copies"). The TMA of the H100 fetches a
# whole tile with one instruction (NVIDIA H100 whitepaper, 2022).
#
# ## 8 · The ladder
#
# First look at the roofline. Its intensities are counted from the bytes that your kernels ask of global memory, and
# the numbers are your attempts in the order in which you wrote them. Choose another GPU or another number format.
# Which attempts change sides?

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
# The roofline knows only arithmetic and global memory. A product keeps four units of an SM busy at the same time: the
# lanes do the arithmetic, the schedulers issue instructions, shared memory serves wavefronts, and the L2 sends
# sectors. The next cell computes how many cycles each unit needs for 32 multiply-adds, one for each lane of a warp.
# The slowest unit sets the pace.
#
# The counts are yours, and the rates are those of an A100. `l2_seen` is the L2 bandwidth that published tests have
# measured; the cell assumes that the L1 catches no repeated loads. So the result is **modelled**, and it leaves out
# waiting. It counts PTX instructions, and the machine code has somewhat different ones.
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
# At 0.5 cycles per 32 multiply-adds the lanes are always busy, because 64 lanes do 64 multiply-adds per cycle. That
# is the peak. The next cell names the unit that limits each of your kernels:

# %%
for name in shown:
    unit, most = max(cycles(steps[name]).items(), key=lambda item: item[1])
    print(f"{name:10}{unit:27}at most {100 * 0.5 / most:3.0f} % of the float32 peak (modelled)")

# %% [markdown]
# The number of instructions depends on how you order the loops. Suppose that in `column` the loop over k is outside,
# reads its word of B, and contains the loop over i. This order takes 7.5 instructions per multiply-add. With i
# outside and k inside, it takes 2.8. The loads and the multiply-adds are the same; the rest is spent on indices and
# loops. If your number is high, exchange the two loops.

# %% [markdown]
# On a GPU, the next cell measures the same ladder against **cuBLAS**, NVIDIA's library, called through CuPy. Without
# a GPU it only says so. Each kernel is run once to warm up, and between the two events there is nothing but the
# product: no allocation, no copy and no creation of a handle.

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
# **Why is cuBLAS faster still?** It uses larger tiles (128 × 128 and more), 16-byte loads and several buffers. Its
# machine code assigns registers so that operands do not collide, and it picks the kernel that fits each shape best
# (reference 7). Part B takes the next step.
#
# ## 9 · A matrix times a vector
#
# A language model that generates one token at a time multiplies each of its weight matrices by a single vector. For
# this product nothing so far helps. Each element of A is used once, so it comes from DRAM for a single multiply-add:
# 2 operations for 4 bytes. Its speed is the speed of memory.
#
# ![A matrix times a vector reads every element of the matrix once and uses it once. Nothing can be used again, so the bytes of the matrix decide the time.](drawings/matrix_vector.svg)

# %%
size = 4096
print(f"A matrix of {size:,} × {size:,} in float32 times a vector, on an A100 (modelled):")
print(f"{1e6 * 4 * size**2 / float(a100.dram_bandwidth):5.1f} µs to read the matrix from DRAM")
print(f"{1e6 * 2 * size**2 / float(a100.peak('float32')):5.1f} µs to do the multiply-adds")

# %% [markdown]
# What remains is to read A in a good order, and x seldom. If each thread computed one row of y = A·x, the lanes of a
# warp would read down a column of A. Let a warp walk along a row instead. Its 32 lanes keep 32 partial sums and put
# them into shared memory at the end, where one thread adds up those of each row. Register blocking works for x: a
# warp that walks along eight rows at once reads each word of x once for all eight. That is 4 bytes of A and 4/8 bytes
# of x, so 4.5 bytes per element of A.
#
# **Do.** Write the kernel `matvec(a, x, y)`, which computes y = a·x. About 20 lines.
#
# - Input: `a` of shape (m, k) and `x` of length k, float32. Output: `y` of length m, float32, not initialised.
# - Launch: blocks of (32, 8) threads. A block has 64 rows, and warp `threadIdx.y` takes eight of them.
# - **Budget:** 4 sectors for each 32 words of A and of x, and 4.5 bytes loaded per element of A, plus 10 %. Full
#   marks need both.
# - Sizes (m × k) include 70 × 33, 5 × 0 (`y` is all zeros) and 1 × 1000.


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
# **Why.** No kernel can get past the roof. The best that can be done is to read A once, in whole sectors. If there
# are several vectors, put them together into a matrix: the product of A with 8 vectors moves almost the same bytes
# and does 8 times the work. That is why servers collect requests into batches.
#
# ## 10 · Many small products
#
# Attention heads, convolutions and graphs need thousands of small products. Launched one by one, each pays for a
# launch of its own, and a tile of 64 × 64 stays mostly empty. A **batched** product computes all of them in one
# launch.
#
# ![Many small products: launched one by one each pays for a launch and fills a few SMs. In a batch one launch has them all, a block for each.](drawings/batched.svg)
#
# **Do.** Write the kernel `batched(a, b, c)`, which multiplies each matrix of `a` by the matrix of `b` with the same
# number. About 14 lines.
#
# - Input: `a` and `b` of shape (batch, n, n), float32, with n up to 16. Output: `c` of the same shape, not
#   initialised.
# - Launch: one block of (16, 16) threads for each product.
# - **Budget:** each element loaded once. Full marks need it at every size, and the right result without a race.
# - Sizes include n = 7, and a batch of 0, for which one block is launched all the same.


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
# **Why.** Both points lie on the slope, where the bandwidth is the roof. Only fewer bytes can make these products
# faster: a smaller number format, for example, or fusing them with the work before them. Batching does not change the
# intensity of one product. It fills the GPU.
#
# ## 11 · A long sum, few outputs
#
# In training, the gradient of a weight matrix is a product that sums over all tokens of a batch. It has few outputs
# and a very long k. With one block for each tile of C, most SMs have nothing to do.
#
# **Predict.** C is 64 × 64 and tiles are 16 × 16. How many SMs can work on this product at most?

# %%
gpulab.predict("gemm.few_blocks", ...)

# %% [markdown]
# **Split-K** cuts the sum into slices as well. `gridDim.z` blocks share each tile of C, each of them takes some of
# the tiles along k, and their sums are added. Here the blocks add to C with atomics. This costs one addition in
# memory for each output and slice. The order of the additions may change from run to run, and so may the last bits of
# the result. Libraries therefore also offer a second way: each slice writes its sums into a **workspace**, and
# another kernel adds them in a fixed order.
#
# ![A long sum for a small output. Without split-K one block has it and the other SMs are idle; with it four blocks take a quarter of k each, and their partial results are added.](drawings/split_k.svg)
#
# **Do.** Write the kernel `split_k(a, b, c)`, which adds the product a·b to c. About 15 lines.
#
# - Input: `a` and `b` as for `tiled`. Output: `c`, which contains zeros before the launch.
# - Launch: blocks of (16, 16) threads; the grid is (tiles across, tiles down, slices). There are usually 16 slices,
#   but not always. Your kernel reads the number from `cuda.gridDim.z`.
# - **Budget:** no block loads more than the tiles of 16 in its slice, and there is one atomic addition for each
#   output and slice. Full marks need both.
# - Sizes include 33 × 100 × 17, which has fewer tiles along k than slices, and 40 × 0 × 9.


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
# **Why.** The total work stays the same, but more SMs share it. The additions cost extra traffic. So more slices pay
# off until the GPU is full. Choosing between such variants by the shape of the product is a large part of what a
# library does.
#
# ## 12 · The library's names
#
# ![Libraries for products, from the one call that does everything to the parts to build a kernel from: cuBLAS, cuBLASLt, CUTLASS.](drawings/libraries.svg)
#
# What you have built has a name in every BLAS. In cuBLAS, called from C, the names are:
#
# | product | routine |
# |---|---|
# | vectors | `cublasSdot`, `cublasSaxpy`, `cublasSscal` |
# | matrix and vector | `cublasSgemv` |
# | matrix and matrix | `cublasSgemm`, C ← α·A·B + β·C |
# | many small ones | `cublasSgemmStridedBatched` |
#
# Two conventions are surprising at first. cuBLAS stores matrices **column by column**. A C program that stores them
# row by row asks for Bᵀ·Aᵀ instead: that is Cᵀ, which stored by columns is the same memory as C stored by rows. The
# second convention is the **handle**, which holds a stream, a workspace and the kinds of arithmetic that are allowed.
# Creating a handle takes long, so a program creates it once. `torch.matmul`, `torch.bmm` and `cupy.matmul` call these
# routines for you (cuBLAS documentation, sections 1 and 2).
#
# ## Detective · A layer's weights
#
# A linear layer stores its weights as (outputs, inputs) and computes y = x·Wᵀ. A colleague changed two lines of
# `tiled` for it, and says: "W is read along its rows, so the transposed product costs the same. Look, the same sums,
# sectors and barriers."


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
# **Do.** All of that is true. Pass both reports to `cycles`, and find the unit that the colleague did not mention.
# Then try two remedies, in copies of `linear`:
#
# 1. read the tile as `w_tile[k, tx]`, and change the load so that this is right;
# 2. keep the loads as they are, and change one number.
#
# Compare the cycles of both. Use the next cell for experiments.

# %%
# Your experiments.

# %% [markdown]
# ### Your answer
#
# In three to five sentences, say what limits `linear`, which of your own counts proves it, which remedy is better,
# and by which count. A person reads this: 1 point for the cause, 1 point for counts that you measured.

# %% [markdown] nbgrader={"grade": true, "grade_id": "layer-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** The lanes of a warp read `w_tile[tx, k]`, 32 words apart, so all words are in one bank and a request
# takes 32 wavefronts. Shared memory needs 33.06 cycles per 32 multiply-adds instead of 2.06, sixteen times as many.
# Loading W down its columns removes the conflict (2.06 again), but then those loads take 32 sectors per request:
# 589,824 in all instead of 131,072. Rows of 33 words remove the conflict too and keep the 131,072 sectors, so this
# remedy is better. Sums, sectors and barriers cannot show a bank conflict.
#
# **1 point** (cause without counts): A column of the tile lies in one bank, and padding the rows to 33 words helps.
#
# **0 points:** The transposed matrix is not coalesced. Or: transposing takes time.

# %% [markdown]
# ## Beyond · Your own best
#
# Open-ended and ungraded. Write the product for 256³ alone: you need no guards, and you may choose any block and any
# tile. The figure of merit is **instructions per multiply-add**, that is, warp instructions times 32, divided by
# 256³. It cannot be less than one, because the multiply-add itself is an instruction.
#
# | kernel | instructions per multiply-add |
# |---|---|
# | naive | 22.0 |
# | blocked | 3.0 |
# | ours: 8 × 8 outputs, tiles 16 deep, unsigned indices, 16-byte reads | 1.57 |
# | bound for 8 × 8 outputs: 64 multiply-adds and four 16-byte reads for each k, (64 + 4) / 64 | 1.06 |
#
# Two facts help. An index of type `np.uint32` cannot be negative, so the compiler leaves out the instructions with
# which numba makes negative indices count from the end. And `cuda.shared.array(shape, np.float32, alignment=16)` lets
# the compiler read four neighbouring words at once, provided it can see that they are neighbours. The report's lines
# show where instructions are left to save.


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
# <details><summary>1. What limits a product of 4,096 × 4,096 with 4,096 × 8 in float32 on an A100?</summary>
#
# Memory does. Most of the bytes are those of the large factor. Each of its elements does 8 multiply-adds, which is 16
# operations for 4 bytes, or about 4 per byte. The ridge is at 9.6.
# </details>
#
# <details><summary>2. Tiles grow from 32 to 128. What happens to the bytes from global memory?</summary>
#
# They fall to a quarter, because a tile needs 2/T words per multiply-add.
# </details>
#
# <details><summary>3. A thread has 4 × 16 outputs. How many words does it read from shared memory per multiply-add?</summary>
#
# It reads 4 + 16 = 20 words for 64 multiply-adds, so 0.3125. That is more than the 0.25 of a square of 8 × 8.
# </details>
#
# <details><summary>4. With two buffers, where is the one barrier of a round?</summary>
#
# It comes after the other buffer has been written and before that buffer is read, so at the end of the round.
# </details>
#
# <details><summary>5. C is 32 × 32 and k is a million. What do you do?</summary>
#
# Split k over many blocks and add up their sums, with atomics or through a workspace.
# </details>

# %%
gpulab.recap("06")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | operations of a product | 2 · m · n · k |
# | intensity if each element is moved once | n/6 FLOP/B for square float32 matrices; 1/2 for a matrix and a vector |
# | words from global memory per multiply-add | 2/T with tiles of T × T |
# | words from shared memory per multiply-add | (R + S) / (R · S) with R × S outputs per thread |
# | barriers per round | two with one buffer, one with two buffers |
# | wide loads | fewer requests, but the same sectors and wavefronts; rows must be aligned |
# | occupancy | may be low if each thread has enough independent work |
# | few outputs, long k | split-K |
# | many small products | one batched launch for all of them |
#
# ### Claims you will meet, and what is right
#
# - *Higher occupancy is better; aim above half.* What counts is enough independent work under way. `blocked` has a
#   quarter, and nothing above it on the ladder comes as near to the peak. Volkov (reference 2) explains why.
# - *cuBLAS reaches 3.5 TFLOP/s on an RTX 4090, little more than a naive kernel.* It does if the clock includes
#   allocation, copies and the creation of a handle. That is 4 % of the card's float32 peak. At the peak, the product
#   alone takes a twentieth of that time.
# - *Memory-bound kernels need more parallelism.* They need fewer bytes. More parallelism helps where neither memory
#   nor arithmetic is busy.
# - *A roofline has one roof.* Each number format and each unit has its own. Do not compare the bytes of a float32
#   kernel with a tensor core's float16 peak.

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
