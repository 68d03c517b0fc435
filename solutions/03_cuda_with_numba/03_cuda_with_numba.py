# ---
# jupyter:
#   gpulab:
#     lab: "03"
#     hours: 4.5
#     topics: [C5.1, C5.2, C5.3, C5.4, C5.5, C5.6, C5.7, C5.8, C5.9, C5.13, C5.14]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 03 · CUDA with numba
#
# **3.5 to 5.5 hours.** You have done lab 00 and know NumPy's arrays and broadcasting. You do not need a GPU.
#
# By the end of this lab, you can
#
# 1. assign every element of an array of any size and shape to a thread, under any launch;
# 2. predict from the order of the indices how many sectors an access moves, before you run it;
# 3. say what a branch costs, and arrange the work so that all threads of a warp take the same path;
# 4. choose how threads wait for each other: with a barrier inside a block, with a launch for the whole grid, and
#    not at all where no waiting is needed;
# 5. plan which data must be copied between host and device, and decide when the GPU is worth these copies.
#
# | sitting | sections | hours | what it is about |
# |---|---|---|---|
# | 1 | 1 to 5 | 1.5 to 2.5 | threads, indices and launches, and what a branch costs |
# | 2 | 6 to 9, detective, recap | 2 to 3 | threads that wait for each other, and copies between host and device |

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
# A kernel is one piece of code that thousands of threads run. Each of them must therefore work out which element
# of the data is its own.
#
# ![A grid of four blocks, a block of eight warps, and a warp of 32 lanes, each smaller one drawn out of the larger one.](drawings/grid.svg)
#
# A launch starts a **grid** of **blocks** of **threads**. The hardware runs the threads of a block in groups of
# 32, called **warps**. A thread finds its place in the grid from three numbers:
#
#     i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x      # cuda.grid(1) is the same
#
# They are the index of its block, the number of threads in a block, and its own index within the block. The
# launch `kernel[blocks, threads](…)` fixes how many blocks there are and how many threads each block has. CUDA
# C++ writes the same launch as `kernel<<<blocks, threads>>>(…);`, with three angle brackets and a semicolon.
#
# A thread is not a core. An **SM** (streaming multiprocessor, the part of a GPU that runs blocks) holds many
# warps at once, and in each cycle it issues instructions from warps that are ready.

# %% [markdown]
# **Predict.** How many blocks of 256 threads does it take to cover 1,025 elements?

# %%
gpulab.predict("basics.blocks", ...)

# %% [markdown]
# **Do.** Write `add_one(a, out)`, which adds one to every element of `a` and stores the results in `out`.
#
# - Input and output: the float32 arrays `a` and `out`, both of the same size, which may be any number.
# - Launch: enough blocks for all elements, and in most cases more threads than elements. A block has 256 threads
#   except in one case, so read the number from `cuda.blockDim.x`.
# - Compute the index yourself, without `cuda.grid`. Write the constant as `float32(1.0)`, which has the type of
#   the arrays. Section 6 says what a bare `1.0` costs.
# - Budget: each element loaded once and stored once.
# - Full marks: every case is correct and within the budget.
# - About 3 lines.


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
# **See.** The next picture shows one load and one store of a warp. Every thread has its own element, and
# neighbouring threads have neighbouring elements.

# %%
gpulab.need(add_one)
a = np.arange(1025, dtype=np.float32)
out = np.zeros_like(a)
report = gpulab.profile(add_one[5, 256], a, out)
gpulab.show(report)

# %% [markdown]
# **Why.** Each of the four levels is scheduled, shares data and waits in its own way:
#
# | level | size | how it runs | what its threads share | how they wait |
# |---|---|---|---|---|
# | thread | 1 | its own instructions, with its own program counter | nothing: its registers are private | – |
# | warp | 32 threads | together, while its threads take one path | registers, by shuffle | `cuda.syncwarp()` |
# | block | up to 1,024 threads | on one SM, from start to end | shared memory | `cuda.syncthreads()` |
# | grid | up to 2³¹ − 1 blocks along x | in any order, on all SMs | global memory | the end of the launch |
#
# A **shuffle** passes a value from a register of one lane to another lane (lab 05). **Shared memory** is small
# and fast, and each block has its own (the detective below uses it). The **compute capability** is the number of
# a GPU's generation, 8.0 for an A100. A block has the same limits of threads from 7.0 to 12.0, but its limit of
# shared memory and what an SM can hold at once differ (section 4).

# %% [markdown]
# ## 2 · Any number of elements: the grid-stride loop
#
# With one thread per element, the launch depends on the size of the data. A kernel that works under **any**
# launch is easier to tune. If it has fewer threads than elements, a thread can also keep values in registers from
# one element to the next.
#
# Such a kernel needs a loop. Lab 00 showed which to avoid: if each thread takes a chunk of neighbouring elements,
# the 32 threads of a warp read 32 different sectors. In a **grid-stride loop**, all threads of the grid take
# neighbours together and then step on by the number of threads in the grid, `cuda.gridsize(1)`. The end of the
# loop serves as the guard.
#
# The kernel to write is **SAXPY** (single-precision *a* times *x* plus *y*), a routine of **BLAS**, the interface
# that linear algebra libraries have shared since 1979.
#
# **Predict.** A launch of 16 blocks of 128 threads processes 98,304 elements. How many does each thread get?

# %%
gpulab.predict("basics.rounds", ...)

# %% [markdown]
# **Do.** Write `saxpy(alpha, x, y)`, which replaces `y` by `alpha · x + y`.
#
# - Input: the float32 number `alpha`, and float32 arrays `x` and `y` of the same size.
# - It must work for any size and under any launch, even one with a single thread.
# - Budget: 4 sectors for each 32 neighbours, with each element of `x` and `y` loaded once and each of `y` stored
#   once.
# - Full marks: every case is correct and within the budget.
# - About 2 lines.


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
# **See.** The picture shows one load and one store of a warp in your kernel. The table after it compares the
# chunked kernel with yours, on the same data and under the same launch.


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
# **Why.** Both kernels make the same requests and ask for the same bytes. Only the number of sectors differs, by
# a factor of 8. How much time that costs depends on the GPU's caches, because the chunked kernel needs each
# sector again in the next rounds of its loop. What a **request** moves is the same on every GPU since compute
# capability 6.0: each distinct 32-byte sector once, in whatever order the threads ask.

# %% [markdown]
# ## 3 · Two axes
#
# Images have rows and columns, so grids and blocks may have two axes as well, or three. `cuda.grid(2)` returns
# **(x, y)**, and x varies fastest: the 32 threads of a warp differ in x first. A NumPy array is stored row by
# row, so its **last** index varies fastest.
#
# Together, these two facts leave one good choice: x is the column, y is the row, and the element is
# `image[y, x]`. Under the same launch, `image[x, y]` is right only for square images. If you also turn the
# launch, so that x runs over the rows, the result is right for all images, but each thread of a warp is then in a
# different row.
#
# **Predict.** An image has 96 rows of 256 float32 pixels. A kernel reads `image[x, y]`. How many sectors does one
# load request move?

# %%
gpulab.predict("basics.swapped", ...)

# %% [markdown]
# **Do.** Write `brighten(image, gain, out)`, which multiplies each pixel by `gain` and limits the result to at
# most 1.
#
# - Input: the float32 array `image` of any shape, and the float32 number `gain`. `out` has the shape of `image`.
# - Launch: blocks are (32, 8), and the grid covers the columns with x and the rows with y.
# - Budget: 4 sectors for each 32 pixels of a row, both for loads and for stores, with each pixel loaded and
#   stored once.
# - Full marks: every case is correct and within the budget.
# - About 4 lines.


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
# **See.** The first picture shows which thread writes which pixel of a 20 × 37 image (the colour is the block).
# Below it are one load and one store of a warp at the size that is counted, 96 × 256.

# %%
gpulab.need(brighten)
gpulab.show("basics.brighten", brighten)

# %% [markdown]
# On a square image, the other order of the indices gives the same result. The next cell compares its counts with
# yours:


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
# **Why.** With x on the columns, a warp touches 128 neighbouring bytes. With x on the rows, its threads are 1,024
# bytes apart. If a row has 37 pixels, it takes 37 · 4 = 148 bytes, which is not a whole number of sectors. Most
# rows then begin in the middle of a sector, so 32 neighbours touch 5 sectors instead of 4. Lab 04 looks at that
# case.

# %% [markdown]
# ## 4 · Choosing the launch
#
# The number of blocks follows from the size of the problem. For each axis separately, divide by the size of a
# block and round up.
#
# The size of a block is your choice, within two limits: a block has at most 1,024 threads, and a grid has at most
# 65,535 blocks along y and along z. How many blocks an SM holds at once depends on their threads, registers and
# shared memory. The **occupancy** is the number of warps on an SM divided by the most that fit. Over the whole
# GPU, there are SMs × blocks per SM places for blocks, which are called its **slots**. A grid with more blocks
# than slots runs in **waves**. If the last wave is nearly empty, it leaves most SMs idle.
#
# **Predict.** How many blocks of (16, 16) cover a 3620 × 3620 matrix?

# %%
gpulab.predict("basics.blocks_3620", ...)

# %% [markdown]
# **Do.** Write the host function `plan_launch(rows, cols, block, slots)`, which plans a launch over a matrix.
#
# - Input: the numbers `rows` and `cols`; the list `block`, which is `[bx, by]` with x along the columns; and the
#   number `slots`.
# - Output: the list `[grid_x, grid_y, idle, waves]`. It holds the number of blocks along x and along y (at least
#   one each), the number of threads in the grid that have no element, and the number of waves.
# - Return `None` if a block has more than 1,024 threads or `grid_y` would exceed 65,535.
# - Full marks: every answer is correct. Nothing is counted.
# - About 7 lines.


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
# **See.** The first picture shows how blocks of 256 threads of your `brighten` fill an SM of an A100. The second
# shows, for square matrices of growing size, which share of all slots has work, over all waves.

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
# **Why.** When the first wave is full, a few more blocks start a second one, and the share drops by half. The
# more waves there are, the less this matters. The picture assumes that all blocks take equally long. The GPU
# assigns blocks to SMs as these become free. The order is not documented, so a kernel must not depend on it.
# Blocks of one wave run at the same time and share the GPU's **L2** cache, so it pays if they read the same data.
# Since compute capability 9.0, a launch may ask for **clusters**: groups of blocks that run at the same time on
# neighbouring SMs.
#
# Threads per block, blocks, registers, shared memory, the order of the indices and the number type all act on
# each other, and no formula sets them all. Start with 128 or 256 threads per block, both multiples of 32, and
# count. Then change one thing at a time. High occupancy is a means, not an end: enough loads must be under way to
# hide their **latency**, the time from the request to the answer. Kernels that keep much data in registers
# achieve this with few warps. The next cell shows how few an A100's SM can then hold.

# %%
for registers in (32, 64, 128, 255):
    print(f"{registers:3} registers a thread: {hardware.occupancy(a100, 256, registers=registers)}")


# %% [markdown]
# ## 5 · Branches cost what the warp runs
#
# The threads of a warp do not always go the same way at an `if`, and that has a price. A warp issues one
# instruction for all of its threads that are at the same place in the code. A branch that separates them is
# **divergent**: the warp runs one path with some of its threads, then the other path with the rest, and the cost
# is the **sum of the paths that are taken**. A branch that sends all 32 threads the same way is **uniform** and
# costs only that path, whichever way other warps go.
#
# ![A warp at a branch: first the lanes that take it run and the others wait, then the other way round. Both paths take their time although each lane needs one.](drawings/divergence.svg)
#
# In the next kernel, the array holds a run of 16 plants, then a run of 16 animals, then 16 plants again, and so
# on. Plants grow and animals starve, for 64 steps each.


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
# The decorator `@cuda.jit(device=True)` makes a function that kernels can call.
#
# **Predict.** The kernel has two branches, the guard and the choice of the path. With 16,384 elements, what
# percentage of the branches is uniform?

# %%
gpulab.predict("basics.uniform", ...)

# %%
before = gpulab.profile(
    two_paths_by_lane[64, 256], np.full(16_384, 0.5, np.float32), np.zeros(16_384, np.float32)
)
before

# %% [markdown]
# In this kernel, a load request serves all 32 lanes of a warp, but a store request serves only 16. Both paths
# need `a[i]`, so the compiler has moved that load in front of the branch, where all 32 lanes take part.
#
# **Do.** Write `two_paths(a, out)`, which computes the same result, but in which no warp takes both paths.
#
# - Input and output: float32 arrays of the same size. They may end in the middle of a run.
# - Launch: enough blocks of 256 threads for all elements.
# - Use `grow` and `decay` as they are.
# - Budget for divergent branches: one for every fifty warps, and always up to three if the array does not fill
#   its last block.
# - Budget for warp instructions: 285 for each warp that is launched. The last size has 512 warps, so its limit is
#   512 · 285 = 145,920.
# - Full marks: every case is correct and within the budgets.
# - About 10 lines.


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
# **See.** The next two pictures show the 32 lanes of one warp from start to end, first for `two_paths_by_lane`
# and then for your kernel. Coloured lanes run, and hollow ones wait.

# %%
gpulab.need(two_paths)
gpulab.show(before, view="lanes")
gpulab.show(after, view="lanes")

# %% [markdown]
# **Why.** The work per element is the same, yet 219,136 warp instructions have become 133,120. For each of the
# 512 warps, that is 428 before and 260 after, although your kernel also computes the new index. A store used to
# take two requests of 16 lanes, with 2 sectors each. Now it takes one request of 32 lanes, with 4 sectors. That
# is 512 · 4 = 2,048 sectors either way, because a run of 16 float32 numbers is 64 bytes, two whole sectors.
# Computing both paths and choosing one result would make every branch uniform, too, but each warp would still pay
# for both paths.
#
# The compiler and the hardware decide where threads meet again after a branch. Since compute capability 7.0,
# every thread has its own program counter, and a warp is **not** guaranteed to run in lockstep. Code that needs
# the threads of a warp together must say so, with `cuda.syncwarp()` or with an operation that names the lanes.

# %% [markdown]
# ### Your answer
#
# Answer in three to five sentences: what made `two_paths_by_lane` cost more than `two_paths`, and why would a version
# that computes both paths and selects one result hardly be cheaper, although its branches are all uniform? Use at
# least two counts from your own reports. A person reads your answer and gives 1 point for the cause and 1 point for
# counts from your reports that fit it.

# %% [markdown] nbgrader={"grade": true, "grade_id": "divergence-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** In `two_paths_by_lane`, 16 lanes of every warp grow and 16 decay, so each warp runs both paths one
# after the other with half of its lanes. My report counts 50 % uniform branches and 428 instructions per warp. In
# `two_paths`, each warp takes one path with all 32 lanes, and my report counts 100 % uniform branches and 260
# instructions. A version that selects has no divergent branch, but every warp still runs the instructions of both
# paths, so it stays above 410.
#
# **1 point** (cause, no counts): warps execute both sides of a divergent branch one after the other. When whole
# warps take one side, each of them executes only that side. A version that selects executes both.
#
# **0 points:** branches are slow on a GPU, and without them the kernel is faster.

# %% [markdown]
# ## End of sitting 1
#
# Your kernels now cover arrays of any size and shape, under a launch that you chose, and you know what a branch
# costs a warp. So far no thread has needed anything from another. In the second sitting threads read the same
# inputs, wait for each other, and work on data that must first be copied to the GPU.
#
# To go on another day, select this cell and choose *Run → Run All Above Selected Cell* first, because a new kernel
# does not know your functions yet.

# %%
gpulab.course.progress("03")

# %% [markdown]
# ## 6 · A matrix product, the plain way
#
# The plain way to compute C = A · B is to have one thread for each element of C. Each thread walks along a row of
# A and down a column of B. An m × k matrix times a k × n matrix takes 2 · m · n · k operations, because each of
# the m · n elements takes k steps of one multiplication and one addition.
#
# ![An element of the product C is a row of A times a column of B: all neighbours in C's row read the same row of A.](drawings/product.svg)
#
# The thread keeps its sum in a **register**, a place that belongs to it alone and causes no memory traffic. Start
# the sum with `float32(0.0)` and not with `0.0`, because a Python float is a float64. The result would still pass
# the check, but each step would convert its product and add in float64, which many GPUs do at 1/32 or 1/64 of the
# float32 rate (section 9 shows the conversion and the rates).
#
# **Predict.** With x on the columns, a warp computes 32 neighbouring elements of a row of C. In each step it
# makes two load requests: one for an element of A, which is the same for all threads, and one for 32 neighbouring
# elements of B. How many sectors does a request move on average?

# %%
gpulab.predict("basics.matmul_sectors", ...)

# %% [markdown]
# **Do.** Write `matmul(a, b, c)`, which stores the matrix product of `a` and `b` in `c`.
#
# - Input and output: float32 matrices `a` of shape (m, k), `b` of shape (k, n) and `c` of shape (m, n).
# - Launch: blocks are (32, 8), and the grid covers the columns of `c` with x and the rows with y.
# - Budget: 5 sectors loaded for each round of a warp, no element loaded twice by a thread, and one store of 4
#   bytes for each element of `c`.
# - Full marks: every case is correct and within the budget.
# - About 6 lines.


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
# **See.** The next picture places your kernel under the **roofline** of an A100. This line shows how many
# operations per second a GPU can do at most, depending on how many operations it does for each byte of memory
# traffic. Left of the line's corner, the **ridge**, memory sets the limit. Right of it, arithmetic does. **DRAM**
# is the GPU's large memory.

# %%
gpulab.need(matmul)
once = 2 * m * n * k / (4 * (m * k + k * n + m * n))
points = [Point("as requested", naive["arithmetic_intensity"]), Point("each element once", once)]
roofline(points, "A100")

# %% [markdown]
# **Why.** Each step asks for 8 bytes and does 2 operations. That is 2 / 8 = 0.25 operations per byte, however
# large the matrices are. Counted on requested bytes, the kernel is therefore far left of the ridge. The second
# mark shows where the product would be if every element crossed to or from memory once. The real traffic to DRAM
# is smaller than the requested bytes, since caches catch most repeats, but the requests still have to be served.
# A block whose threads share its rows and columns needs far fewer requests. Labs 04 and 06 show how.
#
# The rate of a product is the number of its operations divided by its time. Below, the same loop is compiled for
# one core of this computer's CPU and compared with the library that NumPy calls:

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
# The first line is measured. The others are peaks from data sheets, and no kernel reaches a peak. The library
# does the same operations in another order: on pieces that stay in caches and registers, with vector
# instructions, on all cores. Lab 06 does something similar for a GPU. To time a product there, put
# `cuda.synchronize()` between the two clock readings, but no allocation, copy or creation of a library handle.

# %% [markdown]
# ## 7 · Waiting for each other
#
# Threads of one block can wait for each other at a **barrier**, `cuda.syncthreads()`. No thread goes on before
# all of them have arrived. An ordinary launch has no barrier between blocks. Blocks run in any order, and those
# that do not fit wait for others to end, so a kernel that waits for all of them could wait forever.
#
# ![Cells of a rod are computed from their neighbours. Within one launch some threads would already read new values; between two launches all threads are done, so each step reads one array and writes the other.](drawings/two_launches.svg)
#
# What orders the whole grid is the **end of a launch**. Launches on the same **stream**, a queue of work for the
# device, run one after the other, and each sees all that the previous one has written. (You have used one stream all
# along.) Python does not wait: a launch returns at once, whereas a copy back to the host waits.
#
# **Predict.** A rod of n cells cools: in each step, a cell's temperature moves towards that of its neighbours. A
# first program has one kernel that computes the step from `old` into `new`, and one that copies `new` back into
# `old`. How many bytes does it store per cell and step?

# %%
gpulab.predict("basics.two_writes", ...)

# %% [markdown]
# **Do.** Write the host function `diffuse(rod, out, steps)` and the kernel `one_step` that it launches. In each
# step, every inner cell becomes
#
#     new[i] = old[i] + 0.25 * (old[i - 1] - 2 * old[i] + old[i + 1])
#
# and the two end cells stay as they are.
#
# - Input: the float32 array `rod`, which must not change, and the number `steps`, at least one.
# - Output: `out` holds the rod after `steps` steps.
# - Both arrays are **device arrays**: they are in the GPU's memory, and a launch uses them there without a copy.
#   `cuda.device_array_like(out)` makes another one, still empty.
# - Budget: each step writes each cell once, 4 bytes.
# - Full marks: every case is correct and within the budget.
# - About 18 lines, including the kernel.


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
# **See.** A hot spot spreads along the rod. In the code, `cuda.to_device` copies an array in, and `copy_to_host`
# copies it back. Each line shows the rod after the number of steps in its label, with one launch of the kernel
# for each step.

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
# **Why.** If one array is both read and written in the same launch, there is a **race**: a cell may read its
# neighbour before or after the neighbour's block has moved on, and nothing fixes which. The same mistake occurs
# in sums, when each block writes its result into the array that other blocks still read. Such a sum comes out
# right as long as one block does all the work. Two arrays that take turns cost memory but no time.

# %% [markdown]
# ## Detective · A sum that is right today
#
# The kernel below adds the 256 elements of each block in **shared memory**, a small memory that the threads of a
# block have in common. Its author left the barrier out of the loop, "because a warp runs in lockstep anyway". Run
# the cell to see that the sums are right nevertheless.
#
# ![A sum of eight numbers as a tree: four additions, then two, then one. There is a barrier between the levels, because each level reads what other threads wrote.](drawings/tree.svg)


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
# Unless you ask otherwise, the simulator runs all warps of a block side by side, and a GPU may happen to do
# nearly the same. Now hand the kernel to the check. The check also runs one case with one warp after the other,
# and it watches shared memory.

# %%
gpulab.check("basics.block_sum", suspicious_sum, attempt=False)

# %% [markdown]
# The check found two threads that touch the same element. `gpulab.watch()` runs that case again and lets you step
# through the code with these two threads. Step into the loop. Is there any line at which one of the two must wait
# for the other?

# %%
gpulab.watch()

# %% [markdown]
# Shared memory has 32 **banks**, and neighbouring words are in neighbouring banks. Threads of a warp that want
# different words of one bank cause a bank conflict: the words are served one after the other, in as many
# **wavefronts** as the conflict has **ways**. Two different words make a two-way conflict, which takes two
# wavefronts.
#
# **Do.** Write `block_sum(a, sums)`, a correct and cheap version of the kernel.
#
# - Input: the float32 array `a` with any number of elements.
# - Output: `sums`, one float32 sum for each block.
# - Launch: enough blocks of 256 threads for all elements.
# - Budget for loads: each element of `a` once.
# - Budget for divergent branches: 8 for each block, and 8 more if the last block is not full.
# - Budget for warp instructions: 1,000 for each block.
# - Budget for bank conflicts: none.
# - The last size has 32 blocks, so it may take 256 divergent branches and 32,000 warp instructions.
# - Full marks: every case is correct and within the budgets.
# - About 13 lines.


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
# **Watch it run.** The next figure follows threads 0 and 64 of your own kernel, so it shows warps 0 and 2 side by
# side. Squares are lanes that wait at a barrier. What is the first round in which warp 2 has nothing left to add?

# %%
gpulab.trace(block_sum[8, 256], values, sums, threads=[0, 64])

# %% [markdown]
# **Why.** `t % (2 * stride) == 0` picks every second thread, then every fourth, so all eight warps work for five
# rounds, with fewer and fewer lanes. `t < stride` picks the first half, then the first quarter, so whole warps
# have nothing to do and only the last five rounds split one. One thread that adds all 256 numbers splits a single
# warp, but for 256 rounds, not 8.
#
# The barrier is outside the `if`, because CUDA asks all threads of a block to reach the same one. Inside it, the sum
# may still be right, since a barrier does not wait for threads that have returned, but CUDA does not guarantee this.
# With another barrier after the loop, some threads would wait there, others inside the `if`.
#
# The order of threads inside one warp is not guaranteed, either (lab 05).

# %% [markdown]
# ## 8 · Copies
#
# A GPU has its own memory, so a program copies data in (`cuda.to_device`), launches kernels and copies results
# out (`copy_to_host`). If you pass NumPy arrays to a kernel, numba copies each in before every launch **and**
# back after it, because it cannot know what the kernel changes.
#
# ![A program's time: copy in, kernel, copy out. With one kernel the copies take most of it; with many kernels on the same data they are paid once.](drawings/copies.svg)
#
# Copies are slow: PCIe 4.0 with 16 lanes carries at most 31.5 GB/s each way (16 GT/s · 16 lanes · 128/130 / 8
# bits per byte), and an A100's memory about 65 times that. What stays on the device costs nothing.
#
# **Predict.** Three kernels run in turn, each with two arrays: x → y, y → z, z → w. You pass NumPy arrays to all
# of them. How many copies is that?

# %%
gpulab.predict("basics.copies", ...)

# %% [markdown]
# **Do.** Write the host function `plan_copies(steps, results)`, which lists the fewest copies that make a program
# work.
#
# - Input: `steps`, a list of `[where, reads, writes]`, in which `where` is either `"gpu"` or `"host"` and the
#   other two are lists of array names; and `results`, a list of array names.
# - Output: the list of copies in order, each as `["to_device", name]` or `["to_host", name]`.
# - At first, the newest version of every array is on the host. A step that writes an array writes all of it.
# - A copy happens right before the step that reads the array, and only if the newest version is not there yet.
#   Several copies before one step are in the order of `reads`.
# - After the last step, each array of `results` must be on the host. The copies for this are in the order of
#   `results`.
# - Full marks: every answer is correct. Nothing is counted.
# - About 14 lines.


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
# **See.** The next picture shows what the copies do to the time of a whole program, in which 10 million elements
# go through `s` kernels. Each kernel reads and writes every element once. The time is modelled for an A100 and
# PCIe 4.0: it is bytes divided by bandwidth, and nothing overlaps. The lowest line is the time of the kernels by
# themselves.

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
# **Why.** The GPU is worth the trip if the time that it saves is more than the time that the copies cost:
#
# > T(CPU) − T(GPU) > T(copy in) + T(copy out)
#
# A GPU loses at adding two vectors as long as the vectors start and end on the host. It wins when they are
# already on the device, however little arithmetic there is, because the GPU's memory is faster than the CPU's.
# The rule "Little arithmetic per byte belongs on the CPU" therefore holds for data that have to be copied, but
# not for data that are already on the device. Copies from **pinned** memory (`cuda.pinned_array`) can run at the
# same time as kernels. Lab 07 uses that.

# %% [markdown]
# ## 9 · From your line to the machine
#
# `@cuda.jit` compiles a kernel at its first call, for the types of that call, in three steps. First, numba turns
# Python into LLVM's intermediate form. Next, NVIDIA's compiler NVVM turns that form into **PTX**, an instruction set
# that outlives GPUs: newer ones accept it as well. Finally, `ptxas` turns PTX into **SASS**, the machine code of one
# generation of GPUs. The driver can do the last step on a GPU that is newer than your compiler. Compilers also drop old GPUs:
# CUDA 13 no longer compiles for compute capability 7.0 (V100).
#
# ![From a line of Python to the machine: numba types it, NVVM makes PTX, which the driver of the same or a newer GPU can compile, and ptxas makes SASS, the code of one architecture.](drawings/to_machine.svg)
#
# Without a GPU, the course runs the PTX. PTX is text, so the next cell can search that of two kernels for
# instructions on float64.


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
# A single `0.0` made every addition a float64 addition, and each of them needs a conversion (`cvt`) as well. What
# that costs depends on the GPU, because its SMs have fewer lanes for float64 than for float32. The next cell
# lists both.

# %%
for name in hardware.names():
    gpu = hardware.find(name)
    single, double = int(gpu.fp32_lanes), int(gpu.fp64_lanes)
    print(
        f"{name:<9}{single:>4} float32 and {double:>2} float64 lanes per SM: 1/{single // double} of the rate"
    )

# %% [markdown]
# **PyTorch sees the same machine.** A tensor lives on a device. `.to("cuda")` copies it in, and `.cpu()` copies it
# out. Operations launch kernels and return at once, so timing needs `torch.cuda.synchronize()`. PyTorch keeps freed
# memory for later. `memory_allocated()` is the memory that tensors use, whereas `memory_reserved()` is all that
# PyTorch holds. `empty_cache()` returns the memory that no tensor uses to the driver, but it frees no tensor.
#
# Your kernel can become an operator of PyTorch, which is called an **extension**. In the next cell, `torch.library`
# registers your `saxpy` with the types of its arguments and with the argument that it changes. PyTorch needs no more
# than this to call it from a graph. Lab 07 shows other ways.

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
# This section is open-ended and ungraded. For each pixel, the Mandelbrot set asks how many steps of z ← z² + c
# stay within |z| ≤ 2. Neighbouring pixels need similar numbers of steps, and a warp runs as long as its slowest
# lane. Which 32 pixels should a warp take? You may change the launch and the kernel, but every pixel must run its
# steps. The figure of merit is the number of warp instructions.
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
# In this table, `mandelbrot (1)` is `wide` and `mandelbrot (2)` is `tall`. Blocks of (32, 8) make warps of 32 × 1
# pixels, and blocks of (8, 32) make warps of 8 × 4. The bound in the next picture is the number of instructions
# that a kernel would need if all lanes of every warp ended together. It is the instructions of `wide` times its
# average number of active lanes, divided by 32.

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
# Can you do it now? Answer each question first, then open it.
#
# <details><summary>1 · Write the index and the guard for a volume of shape (depth, rows, cols), with a
# three-dimensional launch.</summary>
#
# `x, y, z = cuda.grid(3)`, then `if z < v.shape[0] and y < v.shape[1] and x < v.shape[2]:` and `v[z, y, x]`. The
# last index is x.
# </details>
#
# <details><summary>2 · A warp of 32 threads along x reads <code>a[x, 0]</code> of a float32 array with 100
# columns. How many sectors does the request move?</summary>
#
# The threads are 100 · 4 = 400 bytes apart, so it moves 32 sectors. `a[0, x]` would take 4, or 5 where the row
# does not begin at the start of a sector.
# </details>
#
# <details><summary>3 · Half of the warps take a path of 100 instructions, and the other half take one of 300.
# What does the branch cost on average? What does it cost if half of the lanes of every warp take each
# path?</summary>
#
# In the first case, it costs 200 instructions per warp on average. In the second case, it costs 100 + 300 = 400,
# because each warp then runs both paths.
# </details>
#
# <details><summary>4 · Block 7 needs a value that block 2 computes. What do you do?</summary>
#
# You use two launches. The first computes the values, and the second uses them. A barrier does not help, because
# it holds only the threads of one block.
# </details>
#
# <details><summary>5 · The CPU needs 8 ms for a step, the GPU needs 1 ms, and copying in and out takes 5 ms each.
# Does the GPU pay?</summary>
#
# It does not pay for one step, which saves 8 − 1 = 7 ms but costs 10 ms of copies. It does pay for two steps on
# data that stay on the device, because they save 14 ms for the same copies.
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
# - *"The threads of a warp run in lockstep, so no barrier is needed among them."* This has not been true since
#   compute capability 7.0 (2017).
# - *"A warp that diverges is twice as slow."* Its cost is the sum of the paths taken, and a path that no thread
#   takes costs nothing. Two uniform warps, one on each path, together run as many instructions as **each** of two
#   divergent warps would.
# - *A boolean mask in PyTorch shows warp divergence.* It does not. It gathers the chosen elements, and it waits
#   for the device to know how many there are.
# - *"A thread runs on a CUDA core."* Warps are issued to pipelines, and a thread has no core of its own.
# - *"Occupancy above 50 %."* What matters is that enough work is under way to hide latency. How many warps that
#   takes depends on how much work each of them has under way.
# - *`kernel<<blocks, threads>>(…)`* in CUDA C++ does not compile, because a launch takes three angle brackets.
# - *"Use the GPU if the speed-up is larger than the transfer."* A speed-up is a ratio and cannot be compared with
#   a time. Section 8 has the rule.
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
