# ---
# jupyter:
#   gpulab:
#     lab: "03"
#     hours: 6
#     topics: [C5.1, C5.2, C5.3, C5.4, C5.5, C5.6, C5.7, C5.8, C5.9, C5.13, C5.14]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 03 · CUDA with numba
#
# **About six hours.** You have done lab 00 and know NumPy's arrays and broadcasting. You need no GPU.
#
# When you are through, you can
#
# 1. give every element of an array of any size and shape to a thread, under any launch;
# 2. predict the sectors of an access from the order of the indices, before you run it;
# 3. say what a branch costs, and arrange work so that whole warps go one way;
# 4. choose what waits for what: a barrier in a block, a launch for the whole grid, and nothing where nothing
#    must;
# 5. plan which data must cross between host and device, and when the GPU is worth the trip.

# %%
import numpy as np
from numba import float32, njit

import gpulab
from gpulab import cuda, hardware
from gpulab.plot import Point, axes, bars, occupancy, picture, roofline, style

gpulab.start("03")

# %% [markdown]
# ## 1 · One thread, one element
#
# ![A grid of four blocks, a block of eight warps, and a warp of 32 lanes, each smaller one drawn out of the larger one.](drawings/grid.svg)
#
# A launch starts a **grid** of **blocks** of **threads**. The hardware runs the threads of a block in
# **warps** of 32. A thread finds its place from three numbers:
#
#     i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x      # cuda.grid(1) is the same
#
# which block am I in, how large is a block, which thread of the block am I. The launch `kernel[blocks,
# threads](…)` fixes how many there are. CUDA C++ writes the same launch as `kernel<<<blocks, threads>>>(…);`,
# with three angle brackets and a semicolon.
#
# A thread is not a core. An **SM** (streaming multiprocessor, the part of a GPU that runs blocks) holds many
# warps at once and in each cycle issues instructions of those that are ready.

# %% [markdown]
# **Predict.** How many blocks of 256 threads does it take to cover 1,025 elements?

# %%
gpulab.predict("basics.blocks", ...)

# %% [markdown]
# **Do.** Write `add_one(a, out)`: every element of `out` is the element of `a` plus one. The launch has
# enough blocks for all elements, most with more threads than that. A block has 256 threads, in one case
# another number; `cuda.blockDim.x` says how many. Compute the index yourself, without `cuda.grid`. Write the
# constant as `float32(1.0)`, the type of the arrays; section 6 says what a bare `1.0` costs. Budget: each
# element loaded and stored once. About 3 lines.


# %% nbgrader={"grade": false, "grade_id": "add_one", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def add_one(a, out):
    ### BEGIN SOLUTION
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i < a.size:
        out[i] = a[i] + float32(1.0)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "add_one-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("basics.add_one", add_one)

# %% [markdown]
# **See.** One warp's load and one warp's store. Every thread has its element, and neighbours have neighbours.

# %%
gpulab.need(add_one)
a = np.arange(1025, dtype=np.float32)
out = np.zeros_like(a)
report = gpulab.profile(add_one[5, 256], a, out)
gpulab.show(report)

# %% [markdown]
# **Why.** The four levels are not decoration. Each has its own way to be scheduled, to share and to wait:
#
# | level | size | runs | shares | waits with |
# |---|---|---|---|---|
# | thread | 1 | its own instructions, with its own program counter | registers, its alone | – |
# | warp | 32 threads | together while its threads go one way | registers by shuffle | `cuda.syncwarp()` |
# | block | up to 1,024 threads | on one SM, from start to end | shared memory | `cuda.syncthreads()` |
# | grid | up to 2³¹ − 1 blocks along x | in any order, on all SMs | global memory | the end of the launch |
#
# A **shuffle** hands a value from the register of one lane to another lane (lab 05). **Shared memory** is
# small, fast and the block's own; the detective below uses it. The **compute capability** is the number of
# a GPU's generation, 8.0 for an A100. The limits of a block are the same from 7.0 to 12.0; what an SM can
# hold at once differs (section 4).

# %% [markdown]
# ## 2 · Any number of elements: the grid-stride loop
#
# One thread for one element ties the launch to the size. A kernel that works under **any** launch is easier
# to tune, and one with fewer threads than elements can keep something in registers from one element to the
# next.
#
# A loop does it. In lab 00 you saw which loop not to write: a chunk of neighbours for each thread makes the
# 32 threads of a warp read 32 different sectors. In a **grid-stride loop** all threads of the grid take
# neighbours together and then step on by the number of threads in the grid, `cuda.gridsize(1)`. The end of
# the loop is the guard.
#
# The kernel to write is **SAXPY** (single-precision *a* times *x* plus *y*), one of the routines of **BLAS**,
# the interface that libraries of linear algebra have had in common since 1979.
#
# **Predict.** 98,304 elements on 16 blocks of 128 threads: how many elements does each thread get?

# %%
gpulab.predict("basics.rounds", ...)

# %% [markdown]
# **Do.** Write `saxpy(alpha, x, y)`: `y` becomes `alpha · x + y`, for any size under any launch, even a
# single thread. Budget: 4 sectors for each 32 neighbours, and each element touched once. About 2 lines.


# %% nbgrader={"grade": false, "grade_id": "saxpy", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def saxpy(alpha, x, y):
    ### BEGIN SOLUTION
    for i in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        y[i] = alpha * x[i] + y[i]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "saxpy-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("basics.saxpy", saxpy)

# %% [markdown]
# **See.** One load and one store of a warp in your kernel; then your kernel beside the chunked one, on the
# same data and under the same launch.


# %%
@cuda.jit
def saxpy_chunks(alpha, x, y):
    t = cuda.grid(1)
    share = y.size // cuda.gridsize(1)
    for i in range(t * share, (t + 1) * share):
        y[i] = alpha * x[i] + y[i]


gpulab.need(saxpy)
x, y = np.ones(98_304, np.float32), np.zeros(98_304, np.float32)
chunked = gpulab.profile(saxpy_chunks[16, 128], float32(2.0), x, y)
strided = gpulab.profile(saxpy[16, 128], float32(2.0), x, y)
gpulab.show(strided)

# %%
gpulab.need(saxpy)
chunked.compare(strided)

# %% [markdown]
# **Why.** Both kernels make the same requests and ask for the same bytes. Only the sectors differ, by a
# factor of 8. How much time that costs depends on the GPU's caches, because each sector is needed again in
# the next rounds of the loop. What a **request** moves is the same on every GPU since compute capability 6.0:
# each distinct 32-byte sector once, in whatever order the threads ask.

# %% [markdown]
# ## 3 · Two axes
#
# Grids and blocks may have two or three axes. `cuda.grid(2)` returns **(x, y)**, and x runs fastest: the 32
# threads of a warp differ in x first. A NumPy array is stored row by row, so its **last** index runs fastest.
#
# Put the two together and there is one good way round: x is the column, y is the row, and the element is
# `image[y, x]`. With the same launch, `image[x, y]` is right on square images only. If the launch is turned
# too, with x over the rows, it is right for all of them; but each thread of a warp is in another row.
#
# **Predict.** An image has 96 rows of 256 float32 pixels. A kernel reads `image[x, y]`. How many sectors does
# one load request move?

# %%
gpulab.predict("basics.swapped", ...)

# %% [markdown]
# **Do.** Write `brighten(image, gain, out)`: each pixel times `gain`, but at most 1. Blocks are (32, 8),
# and the grid covers the columns with x and the rows with y. Budget: 4 sectors for each 32 pixels of a row,
# loaded and stored, each pixel once. About 4 lines.


# %% nbgrader={"grade": false, "grade_id": "brighten", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def brighten(image, gain, out):
    ### BEGIN SOLUTION
    x, y = cuda.grid(2)
    if y < image.shape[0] and x < image.shape[1]:
        out[y, x] = min(float32(1.0), gain * image[y, x])
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "brighten-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("basics.brighten", brighten)

# %% [markdown]
# **See.** Which thread writes which pixel of an image of 20 × 37 (the colour is the block); then one load and
# one store of a warp at the size that is counted, 96 × 256.

# %%
gpulab.need(brighten)
gpulab.show("basics.brighten", brighten)

# %% [markdown]
# The other order of the indices gives the same result on a square image, and these counts:


# %%
@cuda.jit
def brighten_swapped(image, gain, out):
    x, y = cuda.grid(2)
    if x < image.shape[0] and y < image.shape[1]:
        out[x, y] = min(float32(1.0), gain * image[x, y])


gpulab.need(brighten)
image = np.random.default_rng(3).random((256, 256), dtype=np.float32)
bright = np.zeros_like(image)
good = gpulab.profile(brighten[(8, 32), (32, 8)], image, float32(1.5), bright)
swapped = gpulab.profile(brighten_swapped[(8, 32), (32, 8)], image, float32(1.5), bright)
metric = "global_sectors_per_request"
bars(
    {"image[y, x]": good[metric], "image[x, y]": swapped[metric]},
    "sectors per request",
    budget=4,
    caption="With x on the rows each of a warp's 32 threads needs a sector of its own.",
)

# %% [markdown]
# **Why.** With x on the columns a warp touches 128 neighbouring bytes. With x on the rows its threads are
# 1,024 bytes apart. A row of 37 pixels is 148 bytes, no whole number of sectors: most
# rows then begin in the middle of a sector, and 32 neighbours touch 5. Lab 04 looks at that.

# %% [markdown]
# ## 4 · Choosing the launch
#
# The number of blocks follows from the problem: divide by the size of a block and round up, on each axis by
# itself.
#
# The size of a block is yours, within limits: at most 1,024 threads, and at most 65,535 blocks along y and z.
# How many blocks an SM holds at once depends on their threads, registers and shared memory; warps per SM over
# the most that fit is the **occupancy**. The places for blocks on the whole GPU, SMs × blocks per SM, are its
# **slots**. A grid with more blocks than slots is worked off in **waves**, and a last wave that is nearly
# empty leaves most SMs idle.
#
# **Predict.** How many blocks of (16, 16) cover a 3620 × 3620 matrix?

# %%
gpulab.predict("basics.blocks_3620", ...)

# %% [markdown]
# **Do.** Write `plan_launch(rows, cols, block, slots)` for a matrix; `block` is `[bx, by]`, with x along the
# columns. Return `[grid_x, grid_y, idle, waves]`: the blocks along x and along y (at least one each), the
# threads of the grid that have no element, and the waves. Return `None` if a block has more than 1,024
# threads or grid_y would be beyond 65,535. About 7 lines.


# %% nbgrader={"grade": false, "grade_id": "plan_launch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def plan_launch(rows, cols, block, slots):
    ### BEGIN SOLUTION
    bx, by = block
    grid_x = max(1, -(-cols // bx))
    grid_y = max(1, -(-rows // by))
    if bx * by > 1024 or grid_y > 65_535:
        return None
    blocks = grid_x * grid_y
    return [grid_x, grid_y, blocks * bx * by - rows * cols, -(-blocks // slots)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "plan_launch-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("basics.plan_launch", plan_launch)

# %% [markdown]
# **See.** What an SM of an A100 holds of blocks of 256 threads of your `brighten`; then, for square matrices
# of growing size, which share of all slots has work, over all waves.

# %%
gpulab.need(brighten)
a100 = hardware.find("A100")
held = hardware.occupancy(a100, 256, registers=good["registers"])
occupancy(held)

# %%
gpulab.need(brighten, plan_launch)
slots = int(a100.sms) * held.active_blocks
sides = np.arange(64, 1600, 16)
plans = [plan_launch(int(n), int(n), [16, 16], slots) for n in sides]
share = [100 * gx * gy / (waves * slots) for gx, gy, _, waves in plans]
ax = axes(7, 3)
ax.plot(sides, share, color=style.DEEP)
ax.set(xlabel="rows = columns", ylabel="slots with work (%)", ylim=(0, 118))
for wave, said in ((1, "1 wave"), (2, "2"), (3, "3")):
    full = 16 * int((wave * slots) ** 0.5)
    ax.annotate(said, (full, 100), xytext=(0, 4), textcoords="offset points", ha="center", color=style.INK)
picture(ax, f"With {slots} slots the share drops by half when one more block starts a second wave.")

# %% [markdown]
# **Why.** Right after a wave is full, a few more blocks start another one and the share drops by half; the
# more waves there are, the less it matters. This picture assumes that all blocks take equally long. Blocks
# are handed to SMs as these become free; the order is not documented, and a kernel must not depend on it.
# Blocks of one wave run at the same time and share the GPU's **L2** cache, so it pays if they read the same
# data. From compute capability 9.0 on a launch may ask for **clusters**: blocks that run at the same time on
# neighbouring SMs.
#
# Threads per block, blocks, registers, shared memory, the order of indices, the number type: these knobs act
# on each other, and no formula sets them all. Start with 128 or 256 threads, a multiple of 32; count; change
# one thing at a time. High occupancy is a means and not an end: enough loads must be under way to hide their
# **latency**, the time from the request to the answer, and kernels that keep much in registers do that with
# few warps. See how few an A100's SM can hold then.

# %%
for registers in (32, 64, 128, 255):
    print(f"{registers:3} registers a thread: {hardware.occupancy(a100, 256, registers=registers)}")


# %% [markdown]
# ## 5 · Branches cost what the warp runs
#
# A warp issues one instruction for all its threads that are at the same place. A branch that parts them is
# **divergent**: the warp runs one path with some of its threads, then the other with the rest, and the cost is the
# **sum of the paths that are taken**. A branch that sends all 32 threads one way is **uniform** and costs that path
# alone, wherever other warps go.
#
# ![A warp at a branch: first the lanes that take it run and the others wait, then the other way round. Both paths take their time although each lane needs one.](drawings/divergence.svg)
#
# The array below holds runs of 16 plants, then 16 animals, then 16 plants again. Plants grow and animals
# starve, 64 steps each.


# %%
@cuda.jit(device=True)
def grow(x):
    for _ in range(64):
        x += x * (float32(1.0) - x) * float32(1 / 64)
    return x


@cuda.jit(device=True)
def decay(x):
    for _ in range(64):
        x -= x * x * float32(1 / 64)
    return x


@cuda.jit
def two_paths_by_lane(a, out):
    i = cuda.grid(1)
    if i < a.size:
        if i % 32 < 16:
            out[i] = grow(a[i])
        else:
            out[i] = decay(a[i])


# %% [markdown]
# `@cuda.jit(device=True)` makes a function that kernels can call.
#
# **Predict.** The kernel has two branches: the guard and the choice of the path. With 16,384 elements, how
# many percent of the branches are uniform?

# %%
gpulab.predict("basics.uniform", ...)

# %%
before = gpulab.profile(
    two_paths_by_lane[64, 256], np.full(16_384, 0.5, np.float32), np.zeros(16_384, np.float32)
)
before

# %% [markdown]
# Loads are whole and stores are halved: both paths need `a[i]`, so the compiler has moved that load in
# front of the branch, where all 32 lanes take part.
#
# **Do.** Write `two_paths(a, out)` with the same result, so that no warp takes both paths. The launch has
# enough blocks of 256 threads for all elements, and the array may end in the middle of a run. Use `grow` and
# `decay` as they are. Budget: a divergent branch in one warp of fifty, or three at a ragged end, and at most
# 285 warp instructions for each warp that is launched, which is 145,920 for the 512 of the last size. About
# 10 lines.


# %% nbgrader={"grade": false, "grade_id": "two_paths", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def two_paths(a, out):
    ### BEGIN SOLUTION
    i = cuda.grid(1)
    warp, lane = i // 32, i % 32
    run = warp // 2 * 4 + lane // 16 * 2 + warp % 2  # even warps take plants, odd warps animals
    j = run * 16 + lane % 16
    if j < a.size:
        if warp % 2 == 0:
            out[j] = grow(a[j])
        else:
            out[j] = decay(a[j])
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "two_paths-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("basics.two_paths", two_paths)

# %%
gpulab.need(two_paths)
after = gpulab.profile(two_paths[64, 256], np.full(16_384, 0.5, np.float32), np.zeros(16_384, np.float32))
before.compare(after)

# %% [markdown]
# **See.** The 32 lanes of one warp from start to end: coloured lanes run, hollow ones wait.

# %%
gpulab.need(two_paths)
gpulab.show(before, view="lanes")
gpulab.show(after, view="lanes")

# %% [markdown]
# **Why.** The work per element is the same, and yet 219,136 warp instructions have become 133,120: 428 and
# 260 for each of the 512 warps, the new index included. A store used to be two requests of 16 lanes with 2
# sectors each; now it is one of 32 lanes with 4. That is 2,048 sectors either way, because a run of 16
# float32 numbers is 64 bytes, two whole sectors. Computing both paths and choosing one would make every
# branch uniform too, and still cost both paths.
#
# Where threads meet again after a branch is up to the compiler and the hardware. Since compute capability 7.0
# every thread has its own program counter, and a warp is **not** guaranteed to run in lockstep: code that
# needs the threads of a warp together says so with `cuda.syncwarp()` or an operation that names the lanes.

# %% [markdown]
# ### Your answer
#
# In three to five sentences: what made `two_paths_by_lane` cost more than `two_paths`, and why would a
# version that computes both paths and selects one not be cheaper, although its branches are all uniform? Use
# at least two counts from your own reports. A person reads this: 1 point for the cause, 1 point for counts of
# your own that fit it.

# %% [markdown] nbgrader={"grade": true, "grade_id": "divergence-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** In `two_paths_by_lane` 16 lanes of every warp grow and 16 decay, so each warp runs both paths
# one after the other with half of its lanes: my report counts 50 % uniform branches and 428 instructions per
# warp. In `two_paths` each warp takes one path with all 32 lanes: 100 % uniform and 260 instructions. A
# version with a select has no divergent branch, but every warp still runs the instructions of both paths, so
# it stays above 410.
#
# **1 point** (cause, no counts): warps execute both sides of a divergent branch one after the other; with
# whole warps on one side each executes only its own. A select executes both.
#
# **0 points:** branches are slow on a GPU, and without them the kernel is faster.

# %% [markdown]
# ## 6 · A matrix product, the plain way
#
# C = A · B with one thread for each element of C: the thread walks along a row of A and down a column of B.
# An m × k matrix times a k × n matrix takes 2 · m · n · k operations, a multiplication and an addition for
# each step of each element.
#
# ![An element of the product C is a row of A times a column of B: all neighbours in C's row read the same row of A.](drawings/product.svg)
#
# The thread keeps its sum in a **register**, a place that belongs to it alone and costs no memory traffic.
# Start it with `float32(0.0)` and not with `0.0`. A Python float is a float64: the result still passes, but
# each step converts its product and adds in float64, which many GPUs do at 1/32 or 1/64 of the float32 rate
# (section 9 shows both).
#
# **Predict.** With x on the columns, a warp computes 32 neighbouring elements of a row of C. In each step it
# reads one element of A, the same for all threads, and 32 neighbours of B. How many sectors per request is
# that on average?

# %%
gpulab.predict("basics.matmul_sectors", ...)

# %% [markdown]
# **Do.** Write `matmul(a, b, c)`. Blocks are (32, 8), and the grid covers the columns of `c` with x and the
# rows with y. Budget: 5 sectors loaded for each round of a warp, one store of 4 bytes for each element of
# `c`, nothing loaded twice by a thread. About 6 lines.


# %% nbgrader={"grade": false, "grade_id": "matmul", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def matmul(a, b, c):
    ### BEGIN SOLUTION
    col, row = cuda.grid(2)
    if row < c.shape[0] and col < c.shape[1]:
        total = float32(0.0)
        for i in range(a.shape[1]):
            total += a[row, i] * b[i, col]
        c[row, col] = total
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "matmul-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("basics.matmul", matmul)

# %%
gpulab.need(matmul)
m = k = n = 128
rng = np.random.default_rng(6)
left, right = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
product = np.zeros((m, n), np.float32)
naive = gpulab.profile(matmul[(4, 16), (32, 8)], left, right, product)
naive

# %% [markdown]
# **See.** Where the kernel lies under the **roofline** of an A100: the line that says how many operations per
# second a GPU can do at most when each byte of memory traffic brings so many of them. Left of its corner, the
# **ridge**, memory sets the limit, right of it arithmetic. **DRAM** is the GPU's large memory.

# %%
gpulab.need(matmul)
once = 2 * m * n * k / (4 * (m * k + k * n + m * n))
points = [Point("as requested", naive["arithmetic_intensity"]), Point("each element once", once)]
roofline(points, "A100")

# %% [markdown]
# **Why.** Each step asks for 8 bytes and does 2 operations: 0.25 operations per byte, however large the
# matrices are. Counted on requested bytes that is far left of the ridge. The second mark is where the product
# would lie if every element crossed from memory once. The traffic to DRAM is smaller, since caches catch most
# repeats, but the requests still have to be served. A block that shares its rows and columns needs far fewer;
# labs 04 and 06 get there.
#
# The rate of a product is its operations over its time. Here is your loop once more, compiled for one core of
# this computer's CPU, beside the library that NumPy calls:

# %%
from time import perf_counter


@njit  # compiled for the CPU
def three_loops(a, b, c):
    for row in range(c.shape[0]):
        for col in range(c.shape[1]):
            total = float32(0.0)
            for i in range(a.shape[1]):
                total += a[row, i] * b[i, col]
            c[row, col] = total


def rate_of(product, size, runs=5):
    """Operations per second of a product of two size × size matrices, in the least disturbed of some runs."""
    p, q = np.random.default_rng(6).standard_normal((2, size, size), np.float32)
    out, times = np.zeros((size, size), np.float32), []
    for _ in range(1 + runs):  # the first run compiles, or starts the library's threads
        start = perf_counter()
        product(p, q, out)
        times.append(perf_counter() - start)
    return 2 * size**3 / min(times[1:])


loops, library = rate_of(three_loops, 384), rate_of(np.matmul, 384)
print(f"this CPU: {loops / 1e9:.1f} GFLOP/s by three loops, {library / 1e9:.0f} by the library", end="")
print(f", {library / loops:.1f} times as many")
for gpu in ("T4", "A100", "H100"):
    peak = hardware.find(gpu).peak("float32")
    print(f"{gpu}: {float(peak) / 1e9:,.0f} GFLOP/s peak in float32 without tensor cores (data sheet)")

# %% [markdown]
# The first line is measured, the others are peaks from data sheets; no kernel reaches a peak. The library does
# the same operations in another order: on pieces that stay in caches and registers, with vector instructions, on all
# cores. Lab 06 does the like for a GPU. To time a product, put `cuda.synchronize()` between the two clock readings,
# and no allocation, copy or creation of a library handle.

# %% [markdown]
# ## 7 · Waiting for each other
#
# Threads of one block can wait for each other with a **barrier**, `cuda.syncthreads()`: none goes on before all
# threads of the block have arrived. An ordinary launch has no such thing between blocks. They run in any order, and
# those that do not fit wait for others to end, so waiting for all of them inside a kernel could last forever.
#
# ![Cells of a rod are computed from their neighbours. Within one launch some threads would already read new values; between two launches everybody is done, so each step reads one array and writes the other.](drawings/two_launches.svg)
#
# What does order the whole grid is the **end of a launch**. Launches on the same **stream**, a queue of
# work for the device, run one after the other (you have used one stream all along), and the next sees all
# that the last has written. Python does not wait: a launch returns at once; a copy back to the host waits.
#
# **Predict.** A rod of n cells cools: in each step a cell moves towards its neighbours. A first program has a
# kernel for the step, from `old` into `new`, and one that copies `new` back into `old`. How many bytes does
# it store per cell and step?

# %%
gpulab.predict("basics.two_writes", ...)

# %% [markdown]
# **Do.** Write the host function `diffuse(rod, out, steps)`. In each step every inner cell becomes
#
#     new[i] = old[i] + 0.25 * (old[i - 1] - 2 * old[i] + old[i + 1])
#
# and the two end cells stay as they are. `rod` and `out` are **device arrays**: they lie in the GPU's
# memory, and a launch takes them as they are, without a copy. `cuda.device_array_like(out)` makes another
# one, still empty. `rod` must not change, and `out` holds the rod after `steps` steps, at least one.
# Budget: each step writes each cell once, 4 bytes. About 18 lines with the kernel.


# %% nbgrader={"grade": false, "grade_id": "diffuse", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def one_step(old, new):
    ### BEGIN SOLUTION
    i = cuda.grid(1)
    if i < old.size:
        if i == 0 or i == old.size - 1:
            new[i] = old[i]
        else:
            new[i] = old[i] + float32(0.25) * (old[i - 1] - float32(2.0) * old[i] + old[i + 1])
    ### END SOLUTION


def diffuse(rod, out, steps):
    ### BEGIN SOLUTION
    blocks = -(-rod.size // 256)
    other = cuda.device_array_like(out)
    source = rod
    for step in range(steps):
        target = out if (steps - step) % 2 == 1 else other  # the last step writes out
        one_step[blocks, 256](source, target)
        source = target
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "diffuse-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("basics.diffuse", diffuse)

# %% [markdown]
# **See.** A hot spot spreads (`cuda.to_device` copies an array in, `copy_to_host` copies it back). Each
# line is the rod after so many steps; the kernel was launched once for each.

# %%
gpulab.need(diffuse)
rod = np.zeros(200, np.float32)
rod[80:120] = 1.0
on_device, after_steps = cuda.to_device(rod), cuda.device_array(200, np.float32)
ax = axes(7, 3)
places = {1: ("1 step", 117), 300: ("300 steps", 116), 2000: ("2000 steps", 140)}
for (steps, (label, cell)), colour in zip(places.items(), (style.INK, style.AMBER, style.ALARM), strict=True):
    diffuse(on_device, after_steps, steps)
    values = after_steps.copy_to_host()
    ax.plot(values, color=colour)
    ax.annotate(label, (cell, values[cell]), xytext=(16, 0), textcoords="offset points", color=style.INK)
ax.set(xlabel="cell", ylabel="temperature", ylim=(0, 1.18))
picture(ax, "The hot cells 80 to 119 cool, and the heat spreads to both sides.")

# %% [markdown]
# **Why.** One array that is read and written in the same launch is a **race**: a cell may read its neighbour
# before or after the neighbour's block has moved on, and nothing fixes which. The same mistake in a sum: each
# block writes its result into the array that other blocks still read, which comes out right as long as one
# block does all. Two arrays that take turns cost memory and no time.

# %% [markdown]
# ## Detective · A sum that is right today
#
# `block_sum` adds the 256 elements of each block in **shared memory**, a small memory that the threads of a
# block have in common. Its author left the barrier out of the loop, "because a warp runs in lockstep anyway".
# The sums are right. See for yourself.
#
# ![A sum of eight numbers as a tree: four additions, then two, then one. A barrier stands between the levels because each reads what others wrote.](drawings/tree.svg)


# %%
@cuda.jit
def suspicious_sum(a, sums):
    s = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    s[t] = a[i] if i < a.size else float32(0.0)
    cuda.syncthreads()
    stride = 1
    while stride < 256:
        if t % (2 * stride) == 0:
            s[t] += s[t + stride]
        stride *= 2
    if t == 0:
        sums[cuda.blockIdx.x] = s[0]


values = np.random.default_rng(7).random(2048, dtype=np.float32)
sums = np.zeros(8, np.float32)
suspicious_sum[8, 256](values, sums)
np.allclose(sums, values.reshape(8, 256).sum(axis=1))

# %% [markdown]
# The simulator runs all warps of a block side by side unless it is asked otherwise, and a GPU may happen to do
# nearly the same. Hand the kernel to the check: it runs one case warp after warp as well, and watches shared
# memory.

# %%
gpulab.check("basics.block_sum", suspicious_sum, attempt=False)

# %% [markdown]
# The check found two threads that touch one element. `gpulab.watch()` runs that case again and lets you step
# through the code with them. Step into the loop: is there any line at which one of the two must wait for the
# other?

# %%
gpulab.watch()

# %% [markdown]
# **Do.** Mend it and make it cheap: `block_sum(a, sums)` with blocks of 256 threads, for any number of
# elements, one sum for each block. Budget: each element of `a` loaded once; for each block at most 8
# divergent branches and 1,000 warp instructions, which is 256 and 32,000 for the 32 blocks of the last size,
# and 8 branches more where the last block is not full; no bank conflicts. (Shared memory has 32 **banks**;
# threads of a warp that want different words of one bank are served one after the other, in as many
# **wavefronts** as there are **ways**. Neighbouring words lie in neighbouring banks.) About 13 lines.


# %% nbgrader={"grade": false, "grade_id": "block_sum", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def block_sum(a, sums):
    ### BEGIN SOLUTION
    s = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    s[t] = a[i] if i < a.size else float32(0.0)
    cuda.syncthreads()
    stride = 128
    while stride > 0:
        if t < stride:
            s[t] += s[t + stride]
        cuda.syncthreads()
        stride //= 2
    if t == 0:
        sums[cuda.blockIdx.x] = s[0]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "block_sum-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("basics.block_sum", block_sum)

# %%
gpulab.need(block_sum)
gpulab.profile(suspicious_sum[8, 256], values, sums).compare(gpulab.profile(block_sum[8, 256], values, sums))

# %% [markdown]
# **Watch it run.** Threads 0 and 64 of your own kernel, which means warps 0 and 2 side by side. Squares are
# lanes that wait at a barrier. From which round on does warp 2 have nothing left to add?

# %%
gpulab.trace(block_sum[8, 256], values, sums, threads=[0, 64])

# %% [markdown]
# **Why.** `t % (2 * stride) == 0` picks every second thread, then every fourth: all eight warps stay in the
# game with fewer and fewer lanes. `t < stride` picks the first half, then the first quarter: whole warps have nothing to
# do, and only the last five rounds split one. One thread that adds all 256 numbers splits a single warp, for 256 rounds
# where yours has 8.
#
# The barrier stands outside the `if`, because CUDA asks all threads of a block to reach the same one. Inside, the
# sum may still come out right, since a barrier does not wait for threads that have returned. Nothing promises it; with
# another barrier behind the loop some would wait there and others here.
#
# Nor is anything promised inside one warp (lab 05).

# %% [markdown]
# ## 8 · Copies
#
# A GPU has its own memory, so a program copies in, launches, copies out. `cuda.to_device` and `copy_to_host` do it on
# your word. A NumPy array handed to a kernel is copied in before the launch **and** back after it, each time, because
# numba cannot know what the kernel changes.
#
# ![A program's time: copy in, kernel, copy out. With one kernel the copies take most of it; with many kernels on the same data they are paid once.](drawings/copies.svg)
#
# Copies are slow: PCIe 4.0 with 16 lanes carries at most 31.5 GB/s each way (16 GT/s · 16 lanes · 128/130),
# and an A100's memory about 65 times that. What stays on the device costs nothing.
#
# **Predict.** Three kernels run one after the other: x → y, y → z, z → w, each with two arrays. You hand
# NumPy arrays to all of them. How many copies is that?

# %%
gpulab.predict("basics.copies", ...)

# %% [markdown]
# **Do.** Write `plan_copies(steps, results)`: which copies does a program need at least? `steps` lists
# `[where, reads, writes]`, with `where` either `"gpu"` or `"host"` and two lists of array names; a step that
# writes an array writes all of it. At first the newest version of every array is on the host. Return the
# copies in order as `["to_device", name]` or `["to_host", name]`: a copy happens right before the step that
# reads the array, in the order of `reads`, and only if the newest version is not there yet. After the last
# step each name of `results` must be on the host, in that order. About 14 lines.


# %% nbgrader={"grade": false, "grade_id": "plan_copies", "locked": false, "schema_version": 3, "solution": true, "task": false}
def plan_copies(steps, results):
    ### BEGIN SOLUTION
    names = {name for _, reads, writes in steps for name in reads + writes} | set(results)
    newest = {"host": names, "gpu": set()}
    direction = {"host": "to_host", "gpu": "to_device"}
    copies = []

    def need(where, name):
        if name not in newest[where]:
            copies.append([direction[where], name])
            newest[where].add(name)

    for where, reads, writes in steps:
        other = "host" if where == "gpu" else "gpu"
        for name in reads:
            need(where, name)
        for name in writes:
            newest[where].add(name)
            newest[other].discard(name)
    for name in results:
        need("host", name)
    return copies
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "plan_copies-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("basics.plan_copies", plan_copies)

# %% [markdown]
# **See.** What the copies do to a whole program. 10 million elements go through `s` kernels, each of which
# reads and writes every element once; the time is that of the bytes alone, on an A100 and over PCIe 4.0
# (modelled: bytes over bandwidth, nothing overlaps). The lowest line is the kernels by themselves.

# %% jupyter={"source_hidden": true}
gpulab.need(plan_copies)
a100 = hardware.find("A100")
pcie = float(hardware.link("PCIe 4.0 ×16").per_direction)
array = 4 * 10_000_000
kernels = np.arange(1, 31)
steps_of = [[["gpu", [f"v{i}"], [f"v{i + 1}"]] for i in range(s)] for s in kernels]
planned = np.array([len(plan_copies(steps, [f"v{s}"])) for s, steps in zip(kernels, steps_of, strict=True)])
on_gpu = kernels * 2 * array / float(a100.dram_bandwidth)
ax = axes(7, 3.2)
for copies, label, colour in (
    (4 * kernels, "NumPy arrays", style.ALARM),
    (planned, "your plan", style.DEEP),
    (0 * kernels, "no copies", style.LEAF),
):
    total = 1e3 * (on_gpu + copies * array / pcie)
    ax.plot(kernels, total, color=colour)
    ax.annotate(
        label,
        (kernels[-1], total[-1]),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        color=style.INK,
    )
ax.set(xlabel="kernels in the program", ylabel="time (ms), modelled", yscale="log", xlim=(0, 37))
picture(
    ax,
    "Copied for each kernel, arrays spend nearly all the time on the way; copied once, ever less of it.",
)

# %% [markdown]
# **Why.** The GPU is worth the trip if what it saves is more than what the trip costs, both as times:
#
# > T(CPU) − T(GPU) > T(copy in) + T(copy out)
#
# A sum of two vectors loses as long as the vectors start and end on the host. It wins when they are on the
# device already, however little arithmetic there is, because the GPU's memory is faster than the CPU's.
# "Little arithmetic per byte belongs on the CPU" holds for data that have to cross, not for data that are
# there. Copies from **pinned** memory (`cuda.pinned_array`) can run beside kernels; lab 07 uses that.

# %% [markdown]
# ## 9 · From your line to the machine
#
# `@cuda.jit` compiles at the first call, for the types of that call. numba turns Python into LLVM's
# intermediate form, NVIDIA's compiler NVVM makes **PTX** of it, the instruction set that all NVIDIA GPUs
# share, and `ptxas` makes **SASS**, the machine code of one generation. The driver can do the last step on a
# GPU that is newer than your compiler. Compilers also drop old ones: CUDA 13 no longer compiles for compute
# capability 7.0 (V100).
#
# ![From a line of Python to the machine: numba types it, NVVM makes PTX, which every GPU's driver can read, and ptxas makes SASS, the code of one architecture.](drawings/to_machine.svg)
#
# Without a GPU the course runs the PTX. It is text; look at it.


# %%
@cuda.jit
def mean(a, out):
    total = 0.0
    for i in range(a.size):
        total += a[i]
    out[0] = total / a.size


@cuda.jit
def mean32(a, out):
    total = float32(0.0)
    for i in range(a.size):
        total += a[i]
    out[0] = total / float32(a.size)


for kernel in (mean, mean32):
    kernel[1, 1](values, sums)
    ptx = next(iter(kernel.inspect_asm().values()))
    lines = [line.strip() for line in ptx.splitlines()]
    doubles = [line for line in lines if ".f64" in line and not line.startswith(".reg")]
    added = next((line for line in doubles if line.startswith("add")), "no addition")
    print(f"{kernel.__name__:<8}{len(doubles):>3} instructions on float64, such as: {added}")

# %% [markdown]
# One `0.0` made every addition a float64 one, and each needs a conversion (`cvt`) too. What that costs
# depends on the GPU: its SMs have fewer lanes for float64 than for float32.

# %%
for name in hardware.names():
    gpu = hardware.find(name)
    single, double = int(gpu.fp32_lanes), int(gpu.fp64_lanes)
    print(
        f"{name:<9}{single:>4} float32 and {double:>2} float64 lanes per SM: 1/{single // double} of the rate"
    )

# %% [markdown]
# **PyTorch sees the same machine.** A tensor lives on a device; `.to("cuda")` is the copy in, `.cpu()` the
# copy out, and operations launch kernels and return at once, so timing needs `torch.cuda.synchronize()`.
# PyTorch keeps freed memory for later: `memory_allocated()` is what tensors use, `memory_reserved()` what
# PyTorch holds, and `empty_cache()` gives back to the driver what no tensor is in. It frees no tensor.
#
# A kernel of your own can become an operator of PyTorch, an **extension**. Below, `torch.library` registers your
# `saxpy` with the types of its arguments and what it changes, which is all that PyTorch needs in order to call
# it from a graph. Lab 07 has the other ways.

# %%
try:
    import torch
except ImportError:
    print("PyTorch is not installed; nothing else in this lab needs it")
else:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(f"{torch.cuda.device_count()} CUDA devices; working on {device}")
    t = torch.arange(1024, dtype=torch.float32).to(device)
    print((t * 2).sum().item(), t.device)
    gpulab.need(saxpy)

    @torch.library.custom_op("lab03::saxpy", mutates_args=("y",))
    def saxpy_operator(alpha: float, x: torch.Tensor, y: torch.Tensor) -> None:
        shared = [cuda.as_cuda_array(t) if t.is_cuda else t.numpy() for t in (x, y)]  # no copies by PyTorch
        saxpy[4, 256](float32(alpha), *shared)

    u = torch.ones_like(t)
    torch.ops.lab03.saxpy(0.5, t, u)
    print("0.5 · t + 1 by your kernel:", u[:4].tolist(), "…")
    if device.type == "cuda":
        torch.cuda.synchronize()
        print(torch.cuda.memory_allocated(), "B allocated,", torch.cuda.memory_reserved(), "B reserved")

# %% [markdown]
# ## Beyond · The shape of a warp
#
# Open-ended and ungraded. The Mandelbrot set asks of each pixel how many steps of z ← z² + c stay within |z|
# ≤ 2. Neighbours need similar numbers of steps, and a warp runs as long as its slowest lane. Which 32 pixels
# should a warp take? You may change the launch and the kernel, but every pixel runs its steps. The figure of
# merit is the number of warp instructions.
#
# ![A warp is 32 threads in the order of x first. In a block of (32, 8) a warp is one row; in a block of (8, 32) it is four rows of eight.](drawings/warp_shapes.svg)


# %%
@cuda.jit
def mandelbrot(out, limit):
    x, y = cuda.grid(2)
    if y < out.shape[0] and x < out.shape[1]:
        cr = float32(-2.2) + float32(3.0) * float32(x) / float32(out.shape[1])
        ci = float32(-1.2) + float32(2.4) * float32(y) / float32(out.shape[0])
        zr = zi = float32(0.0)
        n = 0
        while n < limit and zr * zr + zi * zi <= float32(4.0):
            zr, zi = zr * zr - zi * zi + cr, float32(2.0) * zr * zi + ci
            n += 1
        out[y, x] = n


steps_of_pixel = np.zeros((160, 192), np.int32)
wide = gpulab.profile(mandelbrot[(6, 20), (32, 8)], steps_of_pixel, 100)
tall = gpulab.profile(mandelbrot[(24, 5), (8, 32)], steps_of_pixel, 100)
ax = axes(5, 4.2)
ax.imshow(np.log1p(steps_of_pixel), cmap="cividis")
style.bare(ax)
picture(ax, "The bright pixels run all 100 steps, dark ones leave after a few.")

# %%
wide.compare(tall)

# %% [markdown]
# `mandelbrot (1)` is `wide`, `mandelbrot (2)` is `tall`. Blocks of (32, 8) make warps of 32 × 1 pixels,
# blocks of (8, 32) make warps of 8 × 4. The bound is what a kernel would need in which all lanes of every
# warp end together: the instructions of `wide` times its active lanes over 32.

# %% jupyter={"source_hidden": true}
bound = wide["thread_instructions"] / 32
counts = {"warps of 32 × 1": wide["instructions"], "warps of 8 × 4": tall["instructions"], "bound": bound}
bars(
    counts,
    "warp instructions",
    caption="The pixels of a patch leave at more similar times than those of a line, so fewer lanes wait.",
)

# %% [markdown]
# ## Recap

# %%
gpulab.recap("03")

# %% [markdown]
# Can you do it now? Answer first, then open.
#
# <details><summary>1 · Write the index and the guard for a volume of shape (depth, rows, cols), with a
# three-dimensional launch.</summary>
#
# `x, y, z = cuda.grid(3)`, then `if z < v.shape[0] and y < v.shape[1] and x < v.shape[2]:` and `v[z, y, x]`.
# x is the last index.
# </details>
#
# <details><summary>2 · A warp of 32 threads along x reads <code>a[x, 0]</code> of a float32 array with 100
# columns. Sectors per request?</summary>
#
# The threads are 400 bytes apart, so 32 sectors. `a[0, x]` would take 4, or 5 where the row does not begin at
# a sector.
# </details>
#
# <details><summary>3 · Half of the warps take a path of 100 instructions, half one of 300. What does the
# branch cost on average? What does it cost if half of the lanes of every warp take each?</summary>
#
# 200 instructions per warp, against 400: each warp then runs both paths.
# </details>
#
# <details><summary>4 · Block 7 needs a value that block 2 computes. What do you do?</summary>
#
# Two launches: the first computes the values, the second uses them. A barrier only holds the threads of one
# block.
# </details>
#
# <details><summary>5 · The CPU needs 8 ms for a step, the GPU 1 ms, and copying in and out takes 5 ms each.
# Does the GPU pay?</summary>
#
# Not for one step: 7 ms saved, 10 ms of copies. For two steps on data that stay there it does: 14 ms saved.
# </details>
#
# ### Cheat sheet
#
#     cuda.threadIdx.x  blockIdx.x  blockDim.x  gridDim.x       also .y and .z
#     i = cuda.grid(1)    x, y = cuda.grid(2)    cuda.gridsize(1)
#     blocks = -(-n // threads)                                 round up
#     image[y, x]                                               x is the column
#     for i in range(cuda.grid(1), n, cuda.gridsize(1)):        grid-stride loop
#     total = float32(0.0)                                      not 0.0
#     s = cuda.shared.array(256, float32)                       shared by a block
#     cuda.syncthreads()                                        all threads of a block wait
#     @cuda.jit(device=True)                                    a function for kernels
#     d = cuda.to_device(a)   d.copy_to_host()   cuda.device_array_like(d)
#
#     sectors per request   4 for 32 neighbours of 4 bytes, 1 for one address,
#                           32 for threads 32 bytes or more apart
#     a divergent warp      pays for every path that one of its threads takes
#     order of tuning       algorithm, memory, launch, instructions
#
# ### What common guides get wrong
#
# - *"The threads of a warp run in lockstep, so no barrier is needed among them."* Not since compute
#   capability 7.0 (2017).
# - *"A warp that diverges is twice as slow."* It costs the sum of the paths taken, nothing for a path that
#   nobody takes, and two warps that take one path each run the same instructions as two that diverge would
#   run **each**.
# - *A boolean mask in PyTorch shows warp divergence.* It does not: it gathers the chosen elements, and waits
#   for the device to know how many there are.
# - *"A thread runs on a CUDA core."* Warps are issued to pipelines; a thread has no core of its own.
# - *"Occupancy above 50 %."* Enough work must be under way to hide latency; how many warps that takes depends
#   on each of them.
# - *`kernel<<blocks, threads>>(…)`* in CUDA C++ does not compile: it is three angle brackets.
# - *"Use the GPU if the speed-up is larger than the transfer."* A ratio cannot be compared with a time;
#   section 8 has the rule.
#
# ### References
#
# - NVIDIA, *CUDA Programming Guide*: thread hierarchy, independent thread scheduling, compute capabilities,
#   <https://docs.nvidia.com/cuda/cuda-programming-guide/>
# - NVIDIA, *CUDA C++ Best Practices Guide*: coalesced access to global memory,
#   <https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/>
# - NVIDIA, *numba-cuda*, <https://nvidia.github.io/numba-cuda/>
# - E. Lindholm, J. Nickolls, S. Oberman, J. Montrym, "NVIDIA Tesla: A Unified Graphics and Computing
#   Architecture", IEEE Micro 28 (2), 2008: where SIMT comes from, <https://doi.org/10.1109/MM.2008.31>
# - M. Harris, "CUDA Pro Tip: Write Flexible Kernels with Grid-Stride Loops", NVIDIA blog, 2013,
#   <https://developer.nvidia.com/blog/cuda-pro-tip-write-flexible-kernels-grid-stride-loops/>
# - M. Harris, "Optimizing Parallel Reduction in CUDA", NVIDIA, 2007: the seven versions of the sum
# - V. Volkov, "Better Performance at Lower Occupancy", GTC 2010
# - S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for multicore
#   architectures", Communications of the ACM 52 (4), 2009, <https://doi.org/10.1145/1498765.1498785>
