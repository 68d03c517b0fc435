# ---
# jupyter:
#   gpulab:
#     lab: "05"
#     hours: 5
#     topics: [C5.6, C5.9, C5.11, C5.12, C11.6, C12.3]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 05 · Reductions, scans, softmax
#
# **About five hours.** You need labs 03 and 04: launches, barriers, shared memory and its banks, sectors, and
# how to read a report.
#
# In a sum, every result depends on every input. Threads must talk to each other, and talking is what costs.
# This lab is about the cheapest ways to do it: within a warp, a block, and a whole grid.
#
# When you are through, you can
#
# 1. build a reduction or a scan from four stages (thread, warp, block, grid) and name the cost of each;
# 2. say what orders two accesses, and find with `gpulab.sanitize` where nothing does;
# 3. tell how wrong a sum in floating point can be, and make it better;
# 4. count, compact and rank with few atomics and no conflicts;
# 5. write a softmax and a norm that read each number once and cannot overflow.

# %%
import math

import numpy as np
from numba import float32, int32

import gpulab
from gpulab import cuda, hardware
from gpulab.plot import bars, lines, panels, shares

gpulab.start("05")

# %% [markdown]
# ## 1 · One number from many
#
# ![A block adds eight numbers in three levels. On each level half of the threads of the level before take part.](drawings/ladder.svg)
#
# A **reduction** makes one number from many with an operation such as + or max. If the operation is
# **associative**, `(a + b) + c = a + (b + c)`, pairs may be combined in a **tree**: all pairs at once, then all
# pairs of the results, and so on. Lab 03 built one for a block. Here are the first rungs of a well-known ladder
# (M. Harris, 2007):
#
# - `interleaved`: every second thread adds its neighbour, then every fourth;
# - `sequential`: the first half of the threads adds the second half, then a quarter;
# - `first_add`: adds two elements on the way into shared memory, so no thread is there only to load;
# - `unrolled`: states the size of the block, so the compiler can drop the loop; from 32 values on only one warp is
#   left, and only that one waits.
#
# **Predict.** In how many rounds does a tree add up 65,536 numbers, if every pair is added at once? And how
# many barriers does a warp of `interleaved` pass, with blocks of 256?

# %%
gpulab.predict("parallel.rounds", ...)
gpulab.predict("parallel.tree_barriers", ...)


# %%
@cuda.jit
def interleaved(a, sums):
    s = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    s[t] = a[cuda.grid(1)]
    cuda.syncthreads()
    distance = 1
    while distance < cuda.blockDim.x:
        if t % (2 * distance) == 0:
            s[t] += s[t + distance]
        cuda.syncthreads()
        distance *= 2
    if t == 0:
        sums[cuda.blockIdx.x] = s[0]


@cuda.jit
def sequential(a, sums):
    s = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    s[t] = a[cuda.grid(1)]
    cuda.syncthreads()
    distance = cuda.blockDim.x // 2
    while distance > 0:
        if t < distance:
            s[t] += s[t + distance]
        cuda.syncthreads()
        distance //= 2
    if t == 0:
        sums[cuda.blockIdx.x] = s[0]


@cuda.jit
def first_add(a, sums):
    s = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    i = 2 * cuda.blockDim.x * cuda.blockIdx.x + t
    s[t] = a[i] + a[i + cuda.blockDim.x]
    cuda.syncthreads()
    distance = cuda.blockDim.x // 2
    while distance > 0:
        if t < distance:
            s[t] += s[t + distance]
        cuda.syncthreads()
        distance //= 2
    if t == 0:
        sums[cuda.blockIdx.x] = s[0]


@cuda.jit
def unrolled(a, sums):
    s = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    i = 512 * cuda.blockIdx.x + t
    s[t] = a[i] + a[i + 256]
    cuda.syncthreads()
    for distance in (128, 64, 32):
        if t < distance:
            s[t] += s[t + distance]
        cuda.syncthreads()
    if t < 32:
        for distance in (16, 8, 4, 2, 1):
            if t < distance:
                s[t] += s[t + distance]
            cuda.syncwarp()
    if t == 0:
        sums[cuda.blockIdx.x] = s[0]


a100 = hardware.find("A100")
N = 65_536
numbers = np.random.default_rng(5).random(N, dtype=np.float32)
a = cuda.to_device(numbers)
ladder = {}
for kernel, share in ((interleaved, 256), (sequential, 256), (first_add, 512), (unrolled, 512)):
    of_blocks = cuda.device_array(N // share, np.float32)
    ladder[kernel.py_func.__name__] = gpulab.profile(kernel[N // share, 256], a, of_blocks)
    assert np.allclose(of_blocks.copy_to_host(), numbers.reshape(-1, share).sum(axis=1))

# %% [markdown]
# **See.** Warp instructions of each rung. All add the same 65,536 numbers.

# %%
bars({name: report["instructions"] for name, report in ladder.items()}, "warp instructions")

# %%
print("rung           barriers per warp   shared wavefronts   divergent branches")
for name, report in ladder.items():
    print(
        f"{name:15}{report['barriers_per_warp']:17.0f}{report['shared_wavefronts']:20,}"
        f"{report['divergent_branches']:21,}"
    )

# %% [markdown]
# **Watch it run.** The first two rungs with 64 threads, two warps side by side. In each round, look at which lanes
# are full: the additions are the same, but the lanes that do them are not.

# %%
gpulab.trace(interleaved[1, 64], a, cuda.device_array(1, np.float32), threads=[0, 32])

# %%
gpulab.trace(sequential[1, 64], a, cuda.device_array(1, np.float32), threads=[0, 32])

# %% [markdown]
# **Why.** The number of additions is the same on every rung: 65,535 for one sum, less the few that the host
# still has to do. What falls is everything around them: tests, barriers, trips to shared memory, threads that
# run with nothing to add.

# %% [markdown]
# ## Detective · The warp that was in step
#
# The last five rounds of a tree take place in one warp. So a colleague leaves out what `unrolled` has there:
# "A warp executes one instruction for all its lanes. Nobody can run ahead." The kernel below sums every 32
# elements. The sums are right.


# %%
@cuda.jit
def warp_sum_in_step(a, sums):
    s = cuda.shared.array(256, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    lane = t % 32
    s[t] = a[i] if i < a.size else float32(0)
    for distance in (16, 8, 4, 2, 1):
        if lane < distance:
            s[t] += s[t + distance]
    if lane == 0 and i < a.size:
        sums[i // 32] = s[t]


in_step = cuda.device_array(32, np.float32)
warp_sum_in_step[4, 256](a[:1024], in_step)
np.allclose(in_step.copy_to_host(), numbers[:1024].reshape(-1, 32).sum(axis=1))

# %%
gpulab.sanitize(warp_sum_in_step[4, 256], a[:1024], in_step)

# %% [markdown]
# **Why.** Many guides still say that a warp runs in lockstep. Since compute capability 7.0 each thread has its
# own program counter, and nothing promises that lanes stay together (CUDA Programming Guide, "Independent Thread
# Scheduling"). What you may rely on:
#
# | who waits | with | what it orders |
# |---|---|---|
# | lanes of a warp | `cuda.syncwarp()` | their accesses to memory before and after it |
# | lanes of a warp | a shuffle or vote with a mask | the exchange of registers, not memory |
# | threads of a block | `cuda.syncthreads()` | the block's accesses before and after it |
# | all blocks | the end of the launch | everything |
# | a block and another | `cuda.threadfence()`, then an atomic; there an atomic, then `cuda.threadfence()` | what one wrote before its fence, and what the other reads after its own |
#
# `cuda.syncwarp()` before each round would mend the kernel. There is something better.

# %% [markdown]
# ## 2 · Shuffles: from register to register
#
# ![A sum by shuffles: every lane takes the value of the lane four, two and one places further up and adds it. After three steps lane 0 has the sum of eight. No memory is used.](drawings/shuffle.svg)
#
# A **shuffle** hands a register's value to another lane of the warp, without memory:
#
#     cuda.shfl_down_sync(mask, value, k)    the value of lane i + k
#     cuda.shfl_up_sync(mask, value, k)      the value of lane i − k
#     cuda.shfl_xor_sync(mask, value, k)     the value of lane i ^ k
#
# `mask` has a bit for each lane that takes part; `0xFFFFFFFF` is all of them. Every lane named must call it, or
# the result is undefined: so never from inside an `if` that lanes of the mask skip. A whole warp may skip it. A
# lane without a partner gets its own value back. `a[i] if … else 0` is a float64, which takes two shuffles:
# write `float32(0)`.
#
# **Do.** Write `warp_sum(a, sums)`: `sums[w]` is the sum of the 32 elements from `32 · w` on, fewer at the end.
# The launch has a thread for each element, in blocks of 256. **Budget:** no shared memory, 5 shuffles for each
# warp, and no more sectors than `a` has. About 6 lines. Sizes include 100, 1,023 and 0.


# %% nbgrader={"grade": false, "grade_id": "warp_sum", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def warp_sum(a, sums):
    ### BEGIN SOLUTION
    i = cuda.grid(1)
    value = a[i] if i < a.size else float32(0)
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, distance)
    if i % 32 == 0 and i < a.size:
        sums[i // 32] = value
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "warp_sum-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.warp_sum", warp_sum)

# %%
gpulab.need(warp_sum)
of_each_warp = cuda.device_array(N // 32, np.float32)
in_memory = gpulab.profile(warp_sum_in_step[N // 256, 256], a, of_each_warp)
in_memory.compare(gpulab.profile(warp_sum[N // 256, 256], a, of_each_warp))

# %% [markdown]
# **Why.** A value passed by shuffle crosses no memory, so there is nothing to order and nothing to conflict.
# All 32 lanes add in all five rounds, 160 additions instead of 31; lanes that would wait do them for nothing.
# With `shfl_down` only lane 0 ends with the sum. With `shfl_xor` and the same distances all 32 lanes end with
# it, for the same price; you will want that soon. On compute capability 8.0 and later one instruction reduces
# *integers* over a warp (`redux.sync`); for sums of floats the five shuffles stay.

# %% [markdown]
# ## 3 · The whole array in one launch
#
# ![A whole array in one launch: each thread adds many elements, each warp its lanes by shuffles, each block its warps in shared memory, and one atomic addition per block joins the blocks.](drawings/whole_array.svg)
#
# A tree over all elements has as many threads as pairs, and each does next to nothing. Give each thread many
# elements first: a **grid-stride loop** (lab 03) adds them in a register. Then the tree is small:
#
#     threads over the array → lanes of a warp → warps of a block → blocks of the grid
#
# The blocks are the hard stage. A second launch can add their sums; or each block adds its own with an
# **atomic**, `cuda.atomic.add(out, 0, value)`: reading, adding and writing as one step that nobody interrupts.
# Atomics on one address are done one after another, so you want few.
#
# **Predict.** On 8 blocks of 256 threads, how many atomics would it be if each *warp* added its own sum?

# %%
gpulab.predict("parallel.warp_atomics", ...)

# %% [markdown]
# **Do.** Write `total(a, out)`: `out[0]`, which is 0 before, becomes the sum of `a`: whole numbers, so that the
# sum is the same in any order. The launch has 8 blocks of 256, whatever the size. **Budget:** each element
# loaded once, an equal share by each block, 8 atomics, one barrier and no other way to wait. About 16 lines.
# Sizes include 1, 65,539 and 0.


# %% nbgrader={"grade": false, "grade_id": "total", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def total(a, out):
    ### BEGIN SOLUTION
    of_warps = cuda.shared.array(8, float32)
    t = cuda.threadIdx.x
    value = float32(0)
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        value += a[i]
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, distance)
    if t % 32 == 0:
        of_warps[t // 32] = value
    cuda.syncthreads()
    if t < 32:
        value = of_warps[t] if t < 8 else float32(0)
        for distance in (4, 2, 1):
            value += cuda.shfl_down_sync(0xFFFFFFFF, value, distance)
        if t == 0:
            cuda.atomic.add(out, 0, value)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "total-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.total", total)

# %% [markdown]
# **See.** The whole ladder, with the shuffles and your `total` as its last two rungs. `shuffled` is `unrolled`
# with both stages of its tree done by shuffles.


# %%
@cuda.jit
def shuffled(a, sums):
    s = cuda.shared.array(8, float32)
    t = cuda.threadIdx.x
    i = 512 * cuda.blockIdx.x + t
    value = a[i] + a[i + 256]
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, distance)
    if t % 32 == 0:
        s[t // 32] = value
    cuda.syncthreads()
    if t < 8:
        value = s[t]
        for distance in (4, 2, 1):
            value += cuda.shfl_down_sync(0xFF, value, distance)
        if t == 0:
            sums[cuda.blockIdx.x] = value


gpulab.need(total)
all_of_a = cuda.to_device(np.zeros(1, np.float32))
rungs = ladder | {
    "shuffled": gpulab.profile(shuffled[N // 512, 256], a, cuda.device_array(N // 512, np.float32)),
    "total": gpulab.profile(total[8, 256], a, all_of_a),
}
panels(
    {
        "warp instructions": {name: report["instructions"] for name, report in rungs.items()},
        "shared wavefronts": {name: report["shared_wavefronts"] for name, report in rungs.items()},
        "barriers passed by warps": {name: report["barriers"] for name, report in rungs.items()},
    },
    "Shuffles save shared memory and barriers; more elements for each thread save instructions.",
)

# %% [markdown]
# Shuffles alone cost *more* warp instructions than the tree, because all eight warps run all five rounds. They
# save barriers and shared memory. The big step is the last one: more elements per thread, fewer trees.
#
# ![A block of eight warps: each warp adds its 32 lanes by shuffles, lane 0 of each stores the sum in shared memory, and after one barrier the first warp adds the eight.](drawings/two_stages.svg)
#
# **Why.** How many threads and blocks should it be? The cell below tries your `total` under several launches.
# More blocks mean more trees and atomics; fewer mean fewer warps to hide latency with, and SMs with nothing to
# do. Threads, blocks, registers and shared memory act on each other and on the limits of the GPU, and finding the
# best setting is a search: no formula does it. A good start for a large array: as many blocks as the GPU holds at
# once, and a loop for the rest.

# %%
gpulab.need(total)
print("blocks × threads   warp instructions per 32 elements   atomics")
for blocks in (2, 8, 32, 128, 256):
    report = gpulab.profile(total[blocks, 256], a, all_of_a)
    print(f"{blocks:6} × 256{32 * report['instructions'] / N:33.1f}{report['global_atomics']:10}")
held = hardware.occupancy(a100, 256, report["registers"])
print(f"an A100 holds {int(a100.sms) * held.active_blocks} such blocks at once")

# %% [markdown]
# ## Detective · The last block
#
# Atomics on floats come in any order, and with the order the last digits change. A colleague wants one launch,
# no float atomics, and the same digits every time. Each block writes its sum to `partial` and then draws a
# **ticket** from an integer counter. Who draws the last ticket knows that all others are done, and adds up.


# %%
@cuda.jit
def total_by_last_block(a, partial, tickets, out):
    s = cuda.shared.array(256, float32)
    t = cuda.threadIdx.x
    value = float32(0)
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        value += a[i]
    s[t] = value
    cuda.syncthreads()
    distance = 128
    while distance > 0:
        if t < distance:
            s[t] += s[t + distance]
        cuda.syncthreads()
        distance //= 2
    if t == 0:
        partial[cuda.blockIdx.x] = s[0]
        if cuda.atomic.add(tickets, 0, 1) == cuda.gridDim.x - 1:
            value = float32(0)
            for block in range(cuda.gridDim.x):
                value += partial[block]
            out[0] = value


partial, by_last = cuda.device_array(8, np.float32), cuda.to_device(np.zeros(1, np.float32))
total_by_last_block[8, 256](a, partial, cuda.to_device(np.zeros(1, np.int32)), by_last)
print(by_last.copy_to_host()[0], "and in float64:", numbers.sum(dtype=np.float64))

# %% [markdown]
# The sum is right. It has been right in every test for a year.
#
# **Do.** See what `gpulab.sanitize` says. Tickets are drawn with an atomic, so nobody can draw the last one too
# early. What is it that can be late all the same? The usual cure that is named would change the design; there is
# one of two lines, in the table of the first detective. Try the writer's line alone, too. Mend the kernel and
# sanitize again.

# %%
gpulab.sanitize(
    total_by_last_block[8, 256],
    a[:4096],
    cuda.device_array(8, np.float32),
    cuda.to_device(np.zeros(1, np.int32)),
    cuda.to_device(np.zeros(1, np.float32)),
)

# %%
# Your mended kernel, and gpulab.sanitize again.

# %% [markdown]
# ### Your answer
#
# In three to five sentences: which two accesses does nothing order, although every block draws its ticket
# after it has written? What do your lines promise, and why did a year of tests not show the fault? Cite
# what your own two runs of `gpulab.sanitize` said. A person reads this: 1 point for the cause, 1 point for
# what your runs said.

# %% [markdown] nbgrader={"grade": true, "grade_id": "last-block-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** A block writes `partial[block]`, and the last block reads it. The ticket counts blocks; it does
# not carry their writes along: another SM may see the new count before it sees the new partial sum.
# `cuda.threadfence()` between the write and the atomic makes the write visible to all blocks before the ticket
# is; a second one behind the last ticket keeps the reads from being older than it. My first run named one race,
# the write by thread 0 of block 0 and the read by thread 0 of the last block; with both fences nothing was found.
# Tests show it only if a write is slower than an atomic after it, which is rare, and never in a simulator that
# writes at once.
#
# **1 point** (cause without an own run): Memory writes may become visible out of order, so a fence is needed
# before the atomic and one behind it.
#
# **0 points:** The blocks run in the wrong order. Or: the atomic on `tickets` is not atomic enough.

# %% [markdown]
# ## 4 · Several sums at once
#
# A GPU hides waiting with other warps. A second source is the thread itself: instructions that do not need each
# other's results can be under way together. That is **instruction-level parallelism** (ILP). A sum in one
# variable has none in its additions: each waits for the one before, about four cycles (measured on Volta, Jia et
# al. 2018). Four variables make four chains. The compiler may load early by itself; the order of additions it
# leaves alone, because that would change the result.
#
# ![A thread that loads one element waits after each load. A thread with four loads has four under way at a time, so fewer warps keep the memory busy.](drawings/in_flight.svg)
#
# How many bytes must be under way? By **Little's law**: bandwidth × latency. One 4-byte load of a warp is 128
# bytes.
#
# **Predict.** An A100 moves 2,039 GB/s into 108 SMs at 1.41 GHz, and a load from DRAM takes 552 cycles. How many
# warps must each SM hold if every lane has one 4-byte load under way?

# %%
gpulab.predict("parallel.warps_in_flight", ...)


# %%
@cuda.jit
def one_chain(a, sums):
    value = float32(0)
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        value += a[i]
    sums[cuda.grid(1)] = value


@cuda.jit
def four_chains(a, sums):
    step = cuda.gridsize(1)
    v0 = v1 = v2 = v3 = float32(0)
    for i in range(cuda.grid(1), a.size, 4 * step):
        v0 += a[i]
        v1 += a[i + step]
        v2 += a[i + 2 * step]
        v3 += a[i + 3 * step]
    sums[cuda.grid(1)] = (v0 + v1) + (v2 + v3)


def warps_needed(gpu, loads):
    per_cycle = float(gpu.dram_bandwidth) / float(gpu.boost_clock) / int(gpu.sms)
    return per_cycle * float(gpu.dram_latency) / (32 * 4 * loads)


gpulab.predict("parallel.warps_in_flight", measured=warps_needed(a100, 1))
of_threads = cuda.device_array(2048, np.float32)
for kernel, chains in ((one_chain, 1), (four_chains, 4)):
    report = gpulab.profile(kernel[8, 256], a, of_threads)
    print(
        f"{report.name:12}{report['instructions']:8,} warp instructions, {report['registers']} registers; "
        f"longest chain of additions in a thread: {N // 2048 // chains + (chains > 1) * 2}"
    )

# %% [markdown]
# **See.** Warps that each SM needs to keep its DRAM busy, against the loads that a lane has under way (modelled:
# Little's law with figures from data sheets and measured latencies).

# %% jupyter={"source_hidden": true}
loads = range(1, 9)
needed = {name: [(k, warps_needed(hardware.find(name), k)) for k in loads] for name in ("A100", "H100")}
fit = a100.capability.max_warps
lines(
    needed,
    "4-byte loads under way in each lane",
    "warps per SM (modelled)",
    f"With one load for each lane an H100 needs more than the {fit} warps that fit, with four a quarter of that.",
    limits={f"{fit} warps fit": fit},
)

# %% [markdown]
# **Why.** With one load per lane even a full A100 barely suffices, and an H100 does not. With four, a quarter of
# the warps do, and each may use four times the registers. So high occupancy is one way to have enough under
# way, and ILP is the other.
#
# Last comes the **instruction mix**: which pipelines a kernel keeps busy. Beside the ordinary lanes an SM has 16
# lanes for **special functions** (2ˣ, log₂, sine, reciprocal, 1/√x), a quarter of the float32 lanes of an A100
# (CUDA C++ Best Practices Guide, "Throughput of Native Arithmetic Instructions"). Other special instructions do much at once: FMA, shuffles,
# votes, `popc`, and in lab 06 tensor cores.


# %%
@cuda.jit
def powers(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = math.exp(a[i])


gpulab.need(total)
mixed = {name: rungs[name] for name in ("interleaved", "unrolled", "shuffled", "total")}
mixed["four_chains"] = gpulab.profile(four_chains[8, 256], a, of_threads)
mixed["powers"] = gpulab.profile(powers[N // 256, 256], a, cuda.device_array(N, np.float32))
shares(
    {name: report.instruction_mix for name, report in mixed.items()},
    "warp instructions",
    "Most instructions of all these kernels are arithmetic, and in powers one in a few dozen is special.",
)

# %% [markdown]
# Most of a sum's instructions are arithmetic, yet only one of them per element is the addition. The others work
# out indices and tests. That is what unrolling saves.

# %% [markdown]
# ## 5 · The order of a sum
#
# A floating-point addition rounds, so it is **not** associative: another order gives other last digits. A tree
# is another order. Is it worse?
#
# ![Four float32 numbers, 2²⁴, 1, 1 and 1, added in two orders. One after the other, every 1 is lost; as a tree two of them are added to each other first, and the sum is larger by 2.](drawings/orders.svg)
#
# Let u be half the distance from 1 to the next number, 2⁻²⁴ in float32. Adding n positive numbers one after
# another errs by at most about n·u; a tree (**pairwise summation**) by log₂ n · u; **Kahan's** compensated sum by
# 2u, whatever n is (N. Higham, 1993).
#
# **Predict.** A float32 variable starts at 0, and 1.0 is added to it 20 million times. Where does it end?

# %%
gpulab.predict("parallel.ones", ...)

# %%
rng = np.random.default_rng(7)
samples = rng.random((2**15, 48), dtype=np.float32)
serial, kahan_sum, lost = np.zeros((3, 48), np.float32)
sizes = 2 ** np.arange(3, 16)
errors = {"one after another": [], "tree": [], "Kahan": []}


def tree(values):
    while len(values) > 1:
        values = values[: len(values) // 2] + values[len(values) // 2 :]
    return values[0]


for n, row in enumerate(samples, 1):
    serial += row
    corrected = row - lost
    following = kahan_sum + corrected
    lost = (following - kahan_sum) - corrected
    kahan_sum = following
    if n in sizes:
        exact = samples[:n].sum(axis=0, dtype=np.float64)
        for name, value in zip(errors, (serial, tree(samples[:n]), kahan_sum), strict=True):
            errors[name].append(np.abs(value / exact - 1).max())

# %% jupyter={"source_hidden": true}
curves = {name: list(zip(sizes, seen, strict=True)) for name, seen in errors.items()}
curves["bound n·u"] = [(n, n * 2.0**-24) for n in sizes]
lines(
    curves,
    "numbers added (float32)",
    "relative error",
    "One after another, the error grows with the number of additions; in a tree and with Kahan it hardly does.",
    log_x=True,
    log_y=True,
)

# %% [markdown]
# The largest relative error of 48 sums. The tree that makes a sum parallel also makes it more exact.
#
# Where a thread must add many numbers alone, it can carry along what rounding loses. With `s` the sum and `y`
# the next number: `t = s + y` is rounded; what arrived is `t - s`; so `(t - s) - y` is how much *too much*
# arrived. The next number is corrected by it.
#
# **Do.** Write `kahan(a, sums)`: `sums[c]` is the sum of column `c`. The numbers are float64, and no GPU has a
# wider type to hide in. A thread adds a column; blocks have 64. **Budget:** right to 3.4 · 10⁻¹⁶, each number
# loaded once, at most 4.4 operations for it. About 9 lines. Sizes include 1,000 × 65 and no rows.


# %% nbgrader={"grade": false, "grade_id": "kahan", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def kahan(a, sums):
    ### BEGIN SOLUTION
    column = cuda.grid(1)
    if column < a.shape[1]:
        s = 0.0
        lost = 0.0
        for row in range(a.shape[0]):
            y = a[row, column] - lost
            t = s + y
            lost = (t - s) - y
            s = t
        sums[column] = s
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "kahan-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.kahan", kahan)

# %% [markdown]
# **See.** What the order does to a run: your `total` in several orders of blocks. Each number comes with its
# negative, so the exact sum is 0.

# %%
gpulab.need(total)
pairs = np.random.default_rng(2).permutation(np.concatenate([numbers[: N // 2], -numbers[: N // 2]]))
gpulab.sanitize(total[8, 256], cuda.to_device(pairs), cuda.to_device(np.zeros(1, np.float32)))

# %% [markdown]
# **Why.** Nothing is wrong with it, and still two runs may differ in the last digit: eight atomics arrive in any
# order. If results must repeat bit for bit, fix the order: a second launch, or the mended last block. A compiler
# that may reorder additions ("fast math") gives up Kahan's sum as well, because in exact arithmetic `lost` is
# always 0.

# %% [markdown]
# ## 6 · Scans
#
# A **scan** gives every element the sum of all up to it: 3 1 4 → 3 4 8. It is **inclusive**; an **exclusive**
# scan leaves the element itself out: 0 3 4. Scans place things: where does my output start, if those before me
# write so many?
#
# ![An inclusive scan of eight numbers by doubling: in each step every place adds what stands one, two and four places to its left.](drawings/scan.svg)
#
# Hillis and Steele (1986): in round k each thread adds the value 2ᵏ places to its left. log₂ n rounds, about n
# log₂ n additions. Blelloch (1990): a tree up, then the same tree down, in about 2n additions and twice the
# rounds. The first takes fewer **steps**, the second less **work**.
#
# **Predict.** How many additions does the scan of Hillis and Steele do over 256 elements?

# %%
gpulab.predict("parallel.hillis_steele", ...)


# %%
@cuda.jit
def hillis_steele(a, out):
    s = cuda.shared.array((2, 256), float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    s[0, t] = a[i]
    cuda.syncthreads()
    side, distance = 0, 1
    while distance < 256:
        value = s[side, t]
        if t >= distance:
            value += s[side, t - distance]
        s[1 - side, t] = value
        cuda.syncthreads()
        side, distance = 1 - side, 2 * distance
    out[i] = s[side, t]


@cuda.jit
def blelloch(a, out):
    s = cuda.shared.array(256, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    s[t] = a[i]
    cuda.syncthreads()
    distance = 1
    while distance < 256:  # up: the last of each stretch gets the sum of the stretch
        k = 2 * distance * (t + 1) - 1
        if k < 256:
            s[k] += s[k - distance]
        cuda.syncthreads()
        distance *= 2
    distance = 64
    while distance > 0:  # down: the middle of each next stretch gets what stands before it
        k = 2 * distance * (t + 1) - 1
        if k + distance < 256:
            s[k + distance] += s[k]
        cuda.syncthreads()
        distance //= 2
    out[i] = s[t]


whole = cuda.to_device(np.floor(9 * numbers[:4096]))
scanned = cuda.device_array(4096, np.float32)
scans = {kernel: gpulab.profile(kernel[16, 256], whole, scanned) for kernel in (hillis_steele, blelloch)}
print("per block        additions   barriers   shared wavefronts   bank conflicts (ways)")
for report in scans.values():
    print(
        f"{report.name:16}{report['flops'] / 16:10,.0f}{report['barriers_per_warp']:11.0f}"
        f"{report['shared_wavefronts'] / 16:20,.0f}{report['bank_conflict_ways']:24.1f}"
    )

# %% [markdown]
# **See.** One of Blelloch's reads: lanes a power of two apart, so most of them share a few banks.

# %%
gpulab.show(scans[blelloch], view="banks")

# %% [markdown]
# **Try it.** In each round of the way up the lanes are twice as far apart as in the round before. Drag the second
# stride through 4, 8, 16 and 32. What would a padding of one word do?

# %%
from gpulab.plot.moving import Pattern, WarpAccess

WarpAccess([Pattern(stride=2, title="first round"), Pattern(stride=4, title="second round")], banks=True)

# %% [markdown]
# A warp has no use for "less work" if the lanes that save it stand idle beside those that do not. So inside a
# warp Hillis and Steele win, with `shfl_up` and without memory. Between the warps a handful of totals is left.
#
# **Do.** Write `scan(a, out)`: an inclusive scan *of each block's 256 elements*, int32. The launch has a thread
# for each element. **Budget:** each element loaded once, one barrier, 40 wavefronts of shared memory per block.
# About 17 lines. Sizes include 1, 257, 1,000 and 0.


# %% nbgrader={"grade": false, "grade_id": "scan", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def scan(a, out):
    ### BEGIN SOLUTION
    of_warps = cuda.shared.array(8, int32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    lane, warp = t % 32, t // 32
    value = a[i] if i < a.size else int32(0)
    for distance in (1, 2, 4, 8, 16):
        left = cuda.shfl_up_sync(0xFFFFFFFF, value, distance)
        if lane >= distance:
            value += left
    if lane == 31:
        of_warps[warp] = value
    cuda.syncthreads()
    for w in range(warp):
        value += of_warps[w]
    if i < a.size:
        out[i] = value
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "scan-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.scan", scan)

# %% [markdown]
# **Why.** One barrier, because the warps hand over once. A longer array takes three launches: scan the blocks,
# scan the blocks' totals, add to each block what stands before it. That reads and writes everything twice;
# the open task at the end does it in one pass.

# %% [markdown]
# ## 7 · Compaction
#
# **Compaction** keeps some elements, side by side and in their order. It is the heart of filters, of sampling,
# of dropping masked tokens. Each kept element needs its place: how many are kept before it. That is an exclusive
# scan of zeros and ones.
#
# For zeros and ones a warp has something faster. `cuda.ballot_sync(mask, condition)` gives every lane a number
# whose bit i says what lane i answered. `cuda.popc(x)` counts the ones in x, and `cuda.lanemask_lt()` has the bits
# of the lanes below one's own. For a whole block, `cuda.syncthreads_count(1 if condition else 0)` counts the ones
# and is a barrier, too.
#
# **Predict.** Lanes 1, 2 and 4 answer yes. What is the place of lane 4's element in its warp, counted from 0?

# %%
gpulab.predict("parallel.rank", ...)

# %% [markdown]
# **Do.** Write the host function `compact(a, out, count)`: the elements above 0, in order, at the start of `out`,
# and their number in `count[0]`; both hold zeros before. Device arrays; at most 65,536 elements, so at most 256
# blocks of 256, and one launch of your `scan` can take their counts. Temporary arrays: `cuda.device_array(blocks,
# np.int32)`. **Budget:** 8.8 bytes loaded and 2.3 stored for each element, where half are kept; no block loads more
# than 512 elements twice. About 28 lines with two kernels. Sizes include 1, 33, 65,535 and 0.


# %% nbgrader={"grade": false, "grade_id": "compact", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def count_kept(a, kept):
    ### BEGIN SOLUTION
    i = cuda.grid(1)
    number = cuda.syncthreads_count(1 if i < a.size and a[i] > 0 else 0)
    if cuda.threadIdx.x == 0:
        kept[cuda.blockIdx.x] = number
    ### END SOLUTION


@cuda.jit
def move_kept(a, ends, out, count):
    ### BEGIN SOLUTION
    of_warps = cuda.shared.array(8, int32)
    before = cuda.shared.array(1, int32)
    t, i, block = cuda.threadIdx.x, cuda.grid(1), cuda.blockIdx.x
    value = a[i] if i < a.size else float32(0)
    votes = cuda.ballot_sync(0xFFFFFFFF, value > 0)
    if t % 32 == 0:
        of_warps[t // 32] = cuda.popc(votes)
    if t == 0:
        before[0] = ends[block - 1] if block > 0 else 0
        if block == cuda.gridDim.x - 1:
            count[0] = ends[block]
    cuda.syncthreads()
    place = before[0] + cuda.popc(votes & cuda.lanemask_lt())
    for w in range(t // 32):
        place += of_warps[w]
    if value > 0:
        out[place] = value
    ### END SOLUTION


def compact(a, out, count):
    ### BEGIN SOLUTION
    blocks = max(1, -(-a.size // 256))
    kept, ends = cuda.device_array(blocks, np.int32), cuda.device_array(blocks, np.int32)
    count_kept[blocks, 256](a, kept)
    scan[1, 256](kept, ends)
    move_kept[blocks, 256](a, ends, out, count)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "compact-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.compact", compact)

# %% [markdown]
# **See.** Who writes what, for 1,000 elements: the colour is the block, and the hatched rest keeps its zeros.

# %%
gpulab.need(compact)
gpulab.show("parallel.compact", compact, view="threads")

# %% [markdown]
# **Why.** Reading `a` twice is cheaper than writing a flag and a place for each element and reading both again.
# If the order of what is kept does not matter, each warp can draw its places from a counter with one atomic:
# one launch, `a` read once, another order in every run.

# %% [markdown]
# ## 8 · Histograms
#
# A **histogram** counts values in bins. Threads that meet in a bin need atomics. With all counts in global
# memory every element is an atomic there, and real data make it worse: most values fall into few bins, and
# lanes of a warp that update one address are served one after another, an **atomic conflict** for each lane
# beyond the first.
#
# ![Left, all threads count in one histogram in global memory, and they queue at popular bins. Right, each block counts in a histogram of its own in shared memory and adds it to the global one at the end.](drawings/histogram.svg)
#
# **Privatisation**: give each block bins of its own in shared memory and add them to the result once. The same
# idea a second time: give each *lane* a copy. Then no two lanes of a warp ever meet. An atomic on two axes takes a
# tuple: `cuda.atomic.add(s, (b, lane), 1)`. In the end a warp adds the copies of one bin, each lane its own, and
# again no two lanes meet in a bank.
#
# **Predict.** 64 bins of 4 bytes with a copy for each of 32 lanes: how many bytes of shared memory?

# %%
gpulab.predict("parallel.copies", ...)


# %%
@cuda.jit
def histogram_plain(values, counts):
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(counts, values[i], 1)


values = cuda.to_device(np.minimum(63, rng.geometric(0.2, 32_768) - 1).astype(np.int32))
counts = cuda.to_device(np.zeros(64, np.int32))
plain = gpulab.profile(histogram_plain[8, 256], values, counts)
print(f"{plain['global_atomics']:,} global atomics, {plain['atomic_conflicts']:,} conflicts")
print("the fullest bins:", counts.copy_to_host()[:8])

# %% [markdown]
# **Do.** Write `histogram(values, counts)`: `counts`, 64 zeros before, gets how often each of 0 … 63 occurs in
# `values`, int32. The launch has 8 blocks of 256. **Budget:** each value loaded once, an equal share by each block,
# 64 × 8 global atomics, no atomic conflict, no bank conflict, a warp's 32 values at once. About 18 lines. Sizes
# include 1, 5,001 and 0.


# %% nbgrader={"grade": false, "grade_id": "histogram", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def histogram(values, counts):
    ### BEGIN SOLUTION
    bins = cuda.shared.array((64, 32), int32)
    t = cuda.threadIdx.x
    lane, warp = t % 32, t // 32
    for b in range(warp, 64, 8):
        bins[b, lane] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(bins, (values[i], lane), 1)
    cuda.syncthreads()
    for b in range(warp, 64, 8):
        number = bins[b, lane]
        for distance in (16, 8, 4, 2, 1):
            number += cuda.shfl_down_sync(0xFFFFFFFF, number, distance)
        if lane == 0:
            cuda.atomic.add(counts, b, number)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "histogram-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.histogram", histogram)

# %% [markdown]
# **See.** Atomics and conflicts, before and after.

# %% jupyter={"source_hidden": true}
gpulab.need(histogram)
mine = gpulab.profile(histogram[8, 256], values, cuda.to_device(np.zeros(64, np.int32)))
kernels = {"histogram_plain": plain, "yours": mine}
panels(
    {
        "global atomics": {name: report["global_atomics"] for name, report in kernels.items()},
        "shared atomics": {name: report["shared_atomics"] for name, report in kernels.items()},
        "atomic conflicts": {name: report["atomic_conflicts"] for name, report in kernels.items()},
    },
    "The atomics have moved into shared memory, and no lanes of a warp meet.",
)

# %% [markdown]
# **Why.** An atomic still costs more than an addition, but it is local and nobody waits. Eight warps of the block
# share each lane's copy, so they still need atomics. Copies cost room: with 4,096 bins they do not fit, and
# one copy per block, or per warp, has to do. If the bins do not fit at all, sort first.

# %% [markdown]
# ## 9 · Softmax
#
# Softmax turns a row of logits x into shares: exp(xᵢ) / Σ exp(xⱼ). exp grows fast: in float32 it overflows soon,
# and infinity over infinity is NaN. Subtracting the row's maximum m first changes nothing in exact arithmetic
# and makes every exponent at most 0:
#
# > softmaxᵢ = exp(xᵢ − m) / Σ exp(xⱼ − m)
#
# So the obvious kernel passes over the row three times: maximum, sum, result.
#
# **Predict.** From which logit on is exp(x) too large for float32?

# %%
gpulab.predict("parallel.overflow", ...)


# %%
@cuda.jit
def softmax_three_passes(x, out):
    s = cuda.shared.array(256, float32)
    t, row = cuda.threadIdx.x, cuda.blockIdx.x
    value = float32(-math.inf)
    for column in range(t, x.shape[1], 256):
        value = max(value, x[row, column])
    s[t] = value
    cuda.syncthreads()
    distance = 128
    while distance > 0:
        if t < distance:
            s[t] = max(s[t], s[t + distance])
        cuda.syncthreads()
        distance //= 2
    largest = s[0]
    cuda.syncthreads()
    value = float32(0)
    for column in range(t, x.shape[1], 256):
        value += math.exp(x[row, column] - largest)
    s[t] = value
    cuda.syncthreads()
    distance = 128
    while distance > 0:
        if t < distance:
            s[t] += s[t + distance]
        cuda.syncthreads()
        distance //= 2
    whole = s[0]
    cuda.syncthreads()
    for column in range(t, x.shape[1], 256):
        out[row, column] = math.exp(x[row, column] - largest) / whole


logits = cuda.to_device(rng.uniform(-1000, 1000, (64, 256)).astype(np.float32))
of_rows = cuda.device_array((64, 256), np.float32)
three_passes = gpulab.profile(softmax_three_passes[64, 256], logits, of_rows)
print(
    f"loads per element {three_passes['global_load_bytes'] / 4 / logits.size:.0f}, "
    f"barriers {three_passes['barriers_per_warp']:.0f}, rows sum to 1: "
    f"{np.allclose(of_rows.copy_to_host().sum(axis=1), 1)}"
)

# %% [markdown]
# ![Online softmax reads the logits once. It keeps the largest one so far, m, and the sum s of exp(x − m); when a larger one comes, s is scaled down by exp(old m − new m).](drawings/online_softmax.svg)
#
# **Maximum and sum in one pass.** Keep m, the largest logit *so far*, and s, the sum of exp(x − m) so far. When a
# larger logit m′ comes, s was measured against the wrong m; multiply it by exp(m − m′). In the same way two parts
# of a row merge:
#
# > m = max(m₁, m₂), s = s₁ · exp(m₁ − m) + s₂ · exp(m₂ − m)
#
# This **merge** is associative. So all of this lab's trees work on pairs (m, s), and parts of a row may lie on
# different lanes, blocks or GPUs. It is called **online softmax** (Milakov and Gimelshein, 2018), and
# FlashAttention is built on it (lab 12). A part with no elements is (−∞, 0); take care that it does not merge to
# NaN.
#
# **Predict.** Merge (m = 3, s = 2) with (m = 5, s = 1). What is s?

# %%
gpulab.predict("parallel.merge", ...)

# %% [markdown]
# **Do.** Write `logsumexp(x, out)`: `out[row] = m + log(s)`, the logarithm of Σ exp(x). A warp for each row, in
# blocks of 256; rows of any length. Logits lie between −1,000 and 1,000, and some are −∞ (masked); a row of
# nothing but −∞ has −∞. **Budget:** each logit loaded once; the operations of one exponential in float32 for each
# (13 with the step around it) and of 320 for merging 32 lanes, plus 20 %; at the last size at most 72
# instructions of a thread for each logit. In float64 an exponential costs three times as much. About 22 lines. Sizes include 3 × 1, 10 × 33 and no rows.


# %% nbgrader={"grade": false, "grade_id": "logsumexp", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def logsumexp(x, out):
    ### BEGIN SOLUTION
    row, lane = cuda.grid(1) // 32, cuda.threadIdx.x % 32
    if row < x.shape[0]:
        m, s = float32(-math.inf), float32(0)
        for column in range(lane, x.shape[1], 32):
            value = x[row, column]
            if value > float32(-math.inf):
                smaller = math.exp(-abs(value - m))  # the larger of the two has e⁰
                if value > m:
                    s = s * smaller + float32(1)
                    m = value
                else:
                    s += smaller
        for distance in (16, 8, 4, 2, 1):
            other_m = cuda.shfl_xor_sync(0xFFFFFFFF, m, distance)
            other_s = cuda.shfl_xor_sync(0xFFFFFFFF, s, distance)
            both = max(m, other_m)
            if both > float32(-math.inf):
                s = s * math.exp(m - both) + other_s * math.exp(other_m - both)
            m = both
        if lane == 0:
            out[row] = m + math.log(s)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "logsumexp-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.logsumexp", logsumexp)

# %% [markdown]
# With it a softmax takes two passes: `exp(x - logsumexp)` needs one more look at x. That is the best for rows of
# any length. A short row can stay where it is: 256 logits are 8 for each lane of a warp, and 8 numbers fit into
# registers (lab 04: `cuda.local.array(8, float32)` stays there if all its indices are known at compile time). Then
# one pass is left.
#
# ![How often softmax reads its logits. Three passes: one for the maximum, one for the sum, one to divide. With the online sum two: maximum and sum together, then the division.](drawings/passes.svg)
#
# **Do.** Write `row_softmax(x, out)` for rows of at most 256 columns. A warp for each row, in blocks of 256.
# **Budget:** each logit loaded once, no barrier, no local memory, and in all no more sectors than the two arrays
# have. About 20 lines. Sizes include 1 × 1, 9 × 33 and 10 × 5.


# %% nbgrader={"grade": false, "grade_id": "row_softmax", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def row_softmax(x, out):
    ### BEGIN SOLUTION
    row, lane = cuda.grid(1) // 32, cuda.threadIdx.x % 32
    held = cuda.local.array(8, float32)
    if row < x.shape[0]:
        largest = float32(-math.inf)
        for k in range(8):
            column = lane + 32 * k
            held[k] = x[row, column] if column < x.shape[1] else float32(-math.inf)
            largest = max(largest, held[k])
        for distance in (16, 8, 4, 2, 1):
            largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, distance))
        whole = float32(0)
        for k in range(8):
            held[k] = math.exp(held[k] - largest)
            whole += held[k]
        for distance in (16, 8, 4, 2, 1):
            whole += cuda.shfl_xor_sync(0xFFFFFFFF, whole, distance)
        for k in range(8):
            column = lane + 32 * k
            if column < x.shape[1]:
                out[row, column] = held[k] / whole
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "row_softmax-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.row_softmax", row_softmax)


# %%
@cuda.jit
def softmax_second_pass(x, of_row, out):
    row, lane = cuda.grid(1) // 32, cuda.threadIdx.x % 32
    if row < x.shape[0]:
        shift = of_row[row]
        for column in range(lane, x.shape[1], 32):
            out[row, column] = math.exp(x[row, column] - shift)


def softmax_two_passes(x, out):
    of_row = cuda.device_array(x.shape[0], np.float32)
    logsumexp[-(-x.shape[0] // 8), 256](x, of_row)
    softmax_second_pass[-(-x.shape[0] // 8), 256](x, of_row, out)


gpulab.need(logsumexp, row_softmax)
two_passes = gpulab.profile(softmax_two_passes, logits, of_rows)
one_pass = gpulab.profile(row_softmax[8, 256], logits, of_rows)
softmaxes = {"three passes": three_passes, "two passes": two_passes, "one pass": one_pass}
three_passes.compare(one_pass)

# %% [markdown]
# **Why.** The barriers are gone because all who share a row are lanes of one warp. The logit stays in a register
# between its three uses. The price is registers, and a limit on the row. For longer rows a block takes a row and
# keeps it in shared memory; its warps hand over twice, for the maximum and for the sum.
#
# The exponentials are next. Special functions have 16 lanes in an SM:

# %%
exponentials = 16 * int(a100.sms) * float(a100.boost_clock)  # per second; Best Practices Guide: 16 lanes
elements = float(a100.dram_bandwidth) / 8  # per second: 4 bytes in, 4 bytes out
print(
    f"A100: {exponentials / 1e12:.1f} · 10¹² exponentials a second, {elements / 1e12:.2f} · 10¹² elements through DRAM"
)

# %% [markdown]
# A softmax on its own waits for memory. One that is fused into attention, whose logits never reach memory, may
# well wait for its exponentials.

# %% [markdown]
# ## 10 · Norms, and fusing with the neighbours
#
# **Layer norm** gives each row mean 0 and variance 1 and multiplies by a weight for each column: (x − mean) /
# √(variance + ε) · weight. **RMS norm** leaves out the mean: x / √(mean of x² + ε) · weight, one sum instead of
# two. In a transformer the input of a norm is itself a sum, x + residual, that is needed again later.
#
# ![Apart, an addition writes its result to DRAM and a norm reads it again. Fused, the sum stays in registers: one load and one store of everything in between are saved.](drawings/fused.svg)
#
# **Fusing** means doing in one kernel what several would do, so that what lies between them never goes to memory.
#
# Beware of "variance = mean of x² − mean²" in float32. Numbers near 1,000 have squares near 10⁶, where float32 goes
# in steps of 1/16: a variance of 1 drowns. This is **cancellation**. With the row in registers a second look at it
# is free. A column that does not exist brings 0 to the first sum, but (0 − mean)² to the second: leave it out.
#
# **Predict.** One kernel adds; another computes a layer norm in three passes (mean, variance, result) and reads
# the weight. How many bytes do they load for each element?

# %%
gpulab.predict("parallel.unfused", ...)

# %% [markdown]
# **Do.** Write `add_norm(x, residual, weight, summed, out)`: `summed = x + residual`, `out` its layer norm times
# `weight`, with ε = 10⁻⁵. Rows of at most 256, a warp for each, in blocks of 256. The numbers lie around 1,000.
# **Budget:** 12 bytes loaded, 8 stored for each element. About 26 lines, most of them from `row_softmax`. Sizes
# include 1 × 2, 9 × 33 and no rows.


# %% nbgrader={"grade": false, "grade_id": "add_norm", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def add_norm(x, residual, weight, summed, out):
    ### BEGIN SOLUTION
    row, lane = cuda.grid(1) // 32, cuda.threadIdx.x % 32
    columns = x.shape[1]
    held = cuda.local.array(8, float32)
    if row < x.shape[0]:
        mean = float32(0)
        for k in range(8):
            column = lane + 32 * k
            held[k] = float32(0)
            if column < columns:
                held[k] = x[row, column] + residual[row, column]
                summed[row, column] = held[k]
            mean += held[k]
        for distance in (16, 8, 4, 2, 1):
            mean += cuda.shfl_xor_sync(0xFFFFFFFF, mean, distance)
        mean /= float32(columns)
        variance = float32(0)
        for k in range(8):
            if lane + 32 * k < columns:
                held[k] -= mean
                variance += held[k] * held[k]
        for distance in (16, 8, 4, 2, 1):
            variance += cuda.shfl_xor_sync(0xFFFFFFFF, variance, distance)
        scale = float32(1) / math.sqrt(variance / float32(columns) + float32(1e-5))
        for k in range(8):
            column = lane + 32 * k
            if column < columns:
                out[row, column] = held[k] * scale * weight[column]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "add_norm-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.add_norm", add_norm)

# %% [markdown]
# **Activations** fuse most easily: each element on its own. The gate of many transformers is silu(a) · b with
# silu(a) = a / (1 + exp(−a)). And a kernel that knows its **mask** can leave out what is masked: in
# *block-sparse* attention the scores of a row exist only in some blocks of columns, and a list says which.
#
# **Predict.** A kernel for silu and one for the product move 20 bytes for each element. How many does one for both?

# %%
gpulab.predict("parallel.gate", ...)


# %%
@cuda.jit
def silu(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = a[i] / (float32(1) + math.exp(-a[i]))


@cuda.jit
def multiply(a, b, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = a[i] * b[i]


@cuda.jit
def gate(a, b, out):
    i = cuda.grid(1)
    if i < a.size:
        value = a[i]
        out[i] = value / (float32(1) + math.exp(-value)) * b[i]


def gate_in_two(a, b, out):
    between = cuda.device_array_like(a)
    silu[N // 256, 256](a, between)
    multiply[N // 256, 256](between, b, out)


@cuda.jit
def block_sparse_softmax(x, listed, out):
    """Softmax of each row over the blocks of 32 columns that `listed[row // 32]` names; a warp per row."""
    row, lane = cuda.grid(1) // 32, cuda.threadIdx.x % 32
    held = cuda.local.array(4, float32)
    largest = float32(-math.inf)
    for k in range(4):
        held[k] = x[row, 32 * listed[row // 32, k] + lane]
        largest = max(largest, held[k])
    for distance in (16, 8, 4, 2, 1):
        largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, distance))
    whole = float32(0)
    for k in range(4):
        held[k] = math.exp(held[k] - largest)
        whole += held[k]
    for distance in (16, 8, 4, 2, 1):
        whole += cuda.shfl_xor_sync(0xFFFFFFFF, whole, distance)
    for k in range(4):
        out[row, 32 * listed[row // 32, k] + lane] = held[k] / whole


gpulab.need(row_softmax)
b, gated = cuda.to_device(numbers[::-1].copy()), cuda.device_array(N, np.float32)
scores = cuda.to_device(rng.standard_normal((256, 256)).astype(np.float32))
window = np.arange(4) + np.clip(np.arange(8) - 2, 0, 4)[:, None]  # four blocks around the diagonal
listed, of_scores = cuda.to_device(window.astype(np.int32)), cuda.to_device(np.zeros((256, 256), np.float32))
fusions = {
    "silu, then multiply": gpulab.profile(gate_in_two, a, b, gated),
    "gate": gpulab.profile(gate[N // 256, 256], a, b, gated),
    "softmax of all 8 blocks": gpulab.profile(row_softmax[32, 256], scores, of_scores),
    "softmax of 4 blocks": gpulab.profile(block_sparse_softmax[32, 256], scores, listed, of_scores),
}
bars({name: 32 * r["global_sectors"] / N for name, r in fusions.items()}, "bytes moved per element")

# %% [markdown]
# **Why.** Fusing saves a store and a load of everything in between; block sparsity saves what is not listed, if the
# blocks are whole sectors. A mask that is applied after the load saves nothing. Compilers fuse elementwise
# operations for you (lab 11); what they seldom find by themselves is a better algorithm, such as the online
# softmax.

# %% [markdown]
# ## 11 · Where to tune first
#
# Four levels, in the order in which they pay:
#
# 1. **Algorithm**: fewer passes, less work. Online softmax, one scan instead of a sort.
# 2. **Memory**: fewer bytes and whole sectors; a level closer. Registers instead of three reads.
# 3. **Execution**: who works and who waits. Barriers, divergence, atomics, the launch, enough under way.
# 4. **Instructions**: unrolling, one exponential instead of two.
#
# A gain on a higher level often removes the problem of a lower one: nobody needs to tune the barriers of a kernel
# that has none. And a change pays only where the limit is: after each step, ask again which unit is busiest.
#
# **See.** The three versions of softmax, by counts of each level.

# %% jupyter={"source_hidden": true}
gpulab.need(logsumexp, row_softmax)
size = logits.size
panels(
    {
        "loads per element": {k: r["global_load_bytes"] / 4 / size for k, r in softmaxes.items()},
        "barriers per warp": {k: r["barriers_per_warp"] for k, r in softmaxes.items()},
        "instructions per warp\nand 32 elements": {
            k: 32 * r["instructions"] / size for k, r in softmaxes.items()
        },
        "exponentials per element": {k: r["special_functions"] / size for k, r in softmaxes.items()},
    },
    "A better algorithm and a closer memory leave nothing to save on barriers.",
)

# %% [markdown]
# **Why.** The step from three passes to two is one of the algorithm, and on rows as short as these it costs more
# exponentials than it saves: merging 32 lanes takes 320, and the row has 256. On rows of thousands the merging
# does not matter. The step from two passes to one is one of memory, and it makes the merging unnecessary.

# %% [markdown]
# ## Beyond · A scan in one pass
#
# Open-ended and ungraded. Scan 65,536 int32 numbers. The plain way takes three launches and moves every element
# four times. **Decoupled look-back** (Merrill and Garland, 2016) takes one: a block scans its part and publishes
# its sum; looks back, block by block, adding sums until one knows the sum of *everything* up to its end; and
# publishes its own. Blocks take their part by ticket, so that nobody waits for a block that has not started. Mind
# what you learnt from the last block.
#
# The figure of merit is **bytes per element** that threads ask of global memory: loads, stores and atomics.
#
# | kernel | bytes per element |
# |---|---|
# | three launches | the cell below |
# | ours, blocks of 256, one element per thread | 8.9 |
# | bound | 8: each element loaded once, stored once |

# %%
integers = rng.integers(0, 9, N).astype(np.int32)
to_scan, result = cuda.to_device(integers), cuda.device_array(N, np.int32)


@cuda.jit
def last_of_each_block(scanned, ends):
    block = cuda.grid(1)
    if block < ends.size:
        ends[block] = scanned[min(256 * block + 255, scanned.size - 1)]


@cuda.jit
def add_what_is_before(ends, scanned):
    i, block = cuda.grid(1), cuda.blockIdx.x
    if block > 0 and i < scanned.size:
        scanned[i] += ends[block - 1]


def scan_in_three_launches(a, out):
    ends, sums = cuda.device_array(N // 256, np.int32), cuda.device_array(N // 256, np.int32)
    scan[N // 256, 256](a, out)
    last_of_each_block[1, 256](out, ends)
    scan[1, 256](ends, sums)
    add_what_is_before[N // 256, 256](sums, out)


def merit(run):
    """`run(a, out)` is host code that launches what it needs."""
    result.copy_to_device(np.full(N, -1, np.int32))
    report = gpulab.profile(run, to_scan, result)
    right = np.array_equal(result.copy_to_host(), np.cumsum(integers))
    return f"{(report['global_bytes'] + report['global_atomic_bytes']) / N:.1f}" if right else "wrong"


gpulab.need(scan)
merit(scan_in_three_launches)


# %%
# Your scan in one launch, then merit(…). Does gpulab.sanitize find anything?

# %% [markdown]
# **Top-k**, if you want more: the 8 largest of each row of 1,024, for sampling from a language model. Eight passes,
# each finding the largest below the last, load 32 bytes per element; the bound is 4. Hold the row in registers, 32
# numbers for each lane, and let the warp elect its maximum eight times.

# %% [markdown]
# ## Recap
#
# <details><summary>1. Name the four stages of a sum over a large array, and what each uses.</summary>
#
# Threads over the array: a grid-stride loop and a register. Lanes of a warp: five shuffles. Warps of a block: one
# number each in shared memory and one barrier. Blocks: an atomic, a second launch, or the last block with fences.
# </details>
#
# <details><summary>2. Lane 0 writes to shared memory, lane 1 of the same warp reads it in the next line. What is
# missing?</summary>
#
# `cuda.syncwarp()`, or a shuffle instead of memory. Lanes of a warp are not guaranteed to run in step.
# </details>
#
# <details><summary>3. A sum of a million float32 numbers differs in the sixth digit between two programs. Which one
# is wrong?</summary>
#
# Perhaps neither: they add in different orders. One after another may err by up to n·u, a tree by log₂ n · u. Compare
# both with a sum in float64.
# </details>
#
# <details><summary>4. A histogram of an image that is mostly sky is much slower than that of noise. Why, and
# what helps?</summary>
#
# Lanes of a warp meet in one bin, and their atomics are served one after another. A private copy for each lane, or
# as many as fit.
# </details>
#
# <details><summary>5. Two halves of a row have (m, s) = (10, 4) and (−∞, 0). What is their merge?</summary>
#
# (10, 4): 4 · e⁰ + 0 · e^(−∞).
# </details>

# %%
gpulab.recap("05")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | sum over a warp | 5 × `shfl_down_sync` (lane 0 has it) or `shfl_xor_sync` (all have it) |
# | scan over a warp | 5 × `shfl_up_sync`, lanes below the distance do not add |
# | rank among lanes | `popc(ballot_sync(mask, keep) & lanemask_lt())` |
# | count over a block | `syncthreads_count(1 if keep else 0)` |
# | lanes exchange through memory | `syncwarp()` between writing and reading |
# | block hands data to block in one launch | write, `threadfence()`, atomic; there: atomic, `threadfence()`, read |
# | largest error of a sum | n·u one after another, log₂ n · u in a tree, 2u with Kahan |
# | scans of n | Hillis–Steele: log₂ n steps, n log₂ n work; Blelloch: 2 log₂ n steps, 2n work |
# | histogram | bins per block, a copy per lane, one atomic per bin and block |
# | merge of (m, s) | m = max; s = s₁ e^(m₁ − m) + s₂ e^(m₂ − m); empty is (−∞, 0) |
# | row of 256 | a warp, 8 registers per lane, no barrier |
# | variance | subtract the mean first |
#
# ### Claims you will meet, and what is right
#
# - *A warp synchronises by itself, so the last five rounds need no barrier.* Not since compute capability 7.0: use
#   `syncwarp` or shuffles.
# - *Shuffles make a reduction faster because they are fewer instructions.* Here they were more. They save barriers
#   and shared memory.
# - *Blelloch's scan is better because it does less work.* Less work in more steps; inside a warp the steps count.
# - *A parallel sum is less exact.* A tree is more exact than a loop; it is only not the same.
# - *Data-parallel and serial results are identical.* Up to the order of additions, and no further.
# - *A softmax is memory-efficient if it is written "in place".* Written as array expressions it makes a temporary
#   for the difference, the exponentials and the result; what helps is one kernel that reads once.
# - *The maximum is subtracted to make softmax more exact.* It is there against overflow.

# %% [markdown]
# ### References
#
# 1. M. Harris, "Optimizing Parallel Reduction in CUDA", NVIDIA, 2007.
# 2. NVIDIA, *CUDA Programming Guide*: warp shuffle functions, memory fence functions, independent thread
#    scheduling. https://docs.nvidia.com/cuda/cuda-programming-guide/
# 3. N. Higham, "The Accuracy of Floating Point Summation", SIAM J. Sci. Comput. 14 (4), 1993.
#    https://doi.org/10.1137/0914050
# 4. W. D. Hillis, G. L. Steele, "Data Parallel Algorithms", Communications of the ACM 29 (12), 1986.
#    https://doi.org/10.1145/7902.7903
# 5. G. Blelloch, "Prefix Sums and Their Applications", CMU-CS-90-190, 1990.
# 6. D. Merrill, M. Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", NVIDIA NVR-2016-002, 2016.
# 7. M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018.
#    https://arxiv.org/abs/1805.02867
# 8. Z. Jia, M. Maggioni, B. Staiger, D. Scarpazza, "Dissecting the NVIDIA Volta GPU Architecture via
#    Microbenchmarking", 2018. https://arxiv.org/abs/1804.06826
