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
# **4.5 to 7.5 hours.** You need labs 03 and 04: launches, barriers, shared memory and its banks, sectors, and how to
# read a report.
#
# In a sum every input contributes to the same result, so threads must exchange values, and the exchange is what
# costs. The same is true of a maximum, a histogram or a softmax. This lab shows the cheapest ways to exchange values
# within a warp, within a block, and across a whole grid.
#
# By the end of this lab, you can
#
# 1. build a reduction or a scan from four stages (thread, warp, block, grid) and name the cost of each;
# 2. say what puts two memory accesses in order, and use `gpulab.sanitize` to find where nothing does;
# 3. estimate how wrong a floating-point sum can be, and make it more exact;
# 4. count, compact and rank with few atomics and no conflicts;
# 5. write a softmax and a norm that read each number once and cannot overflow.
#
# | sitting | sections | hours | what it is about |
# |---|---|---|---|
# | 1 | 1 to 7, detectives | 2.5 to 4 | sums of a warp, a block and a grid; the order of a sum; scans and compaction |
# | 2 | 8 to 11, recap | 2 to 3.5 | histograms, softmax, and norms fused with their neighbours |

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
# A **reduction** makes one number from many with an operation such as + or max. If the operation is **associative**,
# so that `(a + b) + c = a + (b + c)`, you may combine the numbers in a **tree**: combine all pairs at the same time,
# then all pairs of the results, and so on.
#
# Lab 03 built such a tree for one block. The next cell has four versions of it, the first rungs of a well-known
# ladder (M. Harris, 2007). Each version changes one thing:
#
# - `interleaved`: every second thread adds its neighbour's number, then every fourth thread, and so on.
# - `sequential`: the first half of the threads adds the numbers of the second half, then the first quarter adds those
#   of the second quarter.
# - `first_add`: each thread adds two elements before it stores anything in shared memory, so no thread is there only
#   to load.
# - `unrolled`: the size of the block is a constant, so the compiler can unroll the loop. When 32 values are left,
#   only one warp still works, and only this warp has to synchronise.
#
# **Predict.** In how many rounds does a tree add 65,536 numbers, if each round adds every pair at the same time? And
# how many barriers does a warp of `interleaved` pass, with blocks of 256?

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
# **See.** The number of warp instructions on each rung. All of them add the same 65,536 numbers.

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
# **Watch it run.** These are the first two rungs with 64 threads, so two warps, shown side by side. In each round,
# look at which lanes are full. Both kernels do the same additions, but different lanes do them.

# %%
gpulab.trace(interleaved[1, 64], a, cuda.device_array(1, np.float32), threads=[0, 32])

# %%
gpulab.trace(sequential[1, 64], a, cuda.device_array(1, np.float32), threads=[0, 32])

# %% [markdown]
# **Why.** The number of additions is the same on every rung: 65,535 for one sum, minus the few that are left for the
# host. What shrinks is everything around the additions: tests, barriers, accesses to shared memory, and threads that
# run without anything to add.

# %% [markdown]
# ## Detective · The warp that was in step
#
# The last five rounds of a tree take place within one warp. A colleague therefore leaves out the `cuda.syncwarp()`
# that `unrolled` has there, and says: "A warp executes one instruction for all its lanes. No lane can run ahead." The
# kernel below sums every 32 elements, and its sums are right.


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
# **Why.** Many guides still say that the lanes of a warp run in lockstep. Since compute capability 7.0, however, each
# thread has its own program counter, and nothing guarantees that the lanes stay together (CUDA Programming Guide,
# "Independent Thread Scheduling"). You can rely only on what this table lists:
#
# | between | use | what it orders |
# |---|---|---|
# | lanes of a warp | `cuda.syncwarp()` | the warp's memory accesses before it and after it |
# | lanes of a warp | a shuffle or vote with a mask | the exchange of registers, but no memory accesses |
# | threads of a block | `cuda.syncthreads()` | the block's memory accesses before it and after it |
# | all blocks | the end of the launch | everything |
# | two blocks of one launch | the writer calls `cuda.threadfence()`, then an atomic; the reader an atomic, then `cuda.threadfence()` | the writes before the first fence and the reads after the second |
#
# A `cuda.syncwarp()` before each round would repair the kernel. But there is a better way.

# %% [markdown]
# ## 2 · Shuffles: from register to register
#
# ![A sum by shuffles: every lane takes the value of the lane four, two and one places further up and adds it. After three steps lane 0 has the sum of eight. No memory is used.](drawings/shuffle.svg)
#
# A **shuffle** passes the value of a register to another lane of the same warp, without using memory. Lane i
# receives:
#
#     cuda.shfl_down_sync(mask, value, k)    the value of lane i + k
#     cuda.shfl_up_sync(mask, value, k)      the value of lane i − k
#     cuda.shfl_xor_sync(mask, value, k)     the value of lane i ^ k
#
# A lane without such a partner gets its own value back. `mask` has one bit for each lane that takes part, so
# `0xFFFFFFFF` means all of them. Every lane in the mask must make the call, or the result is undefined. So never call
# a shuffle inside an `if` that some of these lanes skip. (A whole warp may skip it.)
#
# **Do.** Write the kernel `warp_sum(a, sums)`, which sums every 32 elements. About 6 lines.
#
# - Input: `a`, a one-dimensional float32 array.
# - Output: `sums`, float32. `sums[w]` is the sum of `a[32 * w]` to `a[32 * w + 31]`, or of those that exist.
# - Launch: one thread for each element, in blocks of 256.
# - **Budget:** no shared memory, 5 shuffles for each warp, and no more sectors than `a` has. Full marks need all
#   three.
# - Write `float32(0)` rather than `0`: `a[i] if … else 0` is a float64, and a float64 takes two shuffles.
# - Sizes include 100, 1,023 and 0.


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
# **Why.** A value that is passed by a shuffle never goes through memory, so there is nothing to put in order and no
# bank to conflict over. All 32 lanes add in each of the five rounds, which makes 5 · 32 = 160 additions instead of
# 31. The extra ones cost nothing, because those lanes would only wait.
#
# With `shfl_down` only lane 0 ends with the sum. With `shfl_xor` and the same distances all 32 lanes end with it, for
# the same price. On compute capability 8.0 and later a single instruction reduces *integers* over a warp
# (`redux.sync`), but sums of floats still need five shuffles.

# %% [markdown]
# ## 3 · The whole array in one launch
#
# ![A whole array in one launch: each thread adds many elements, each warp its lanes by shuffles, each block its warps in shared memory, and one atomic addition per block joins the blocks.](drawings/whole_array.svg)
#
# A tree over a whole array needs as many threads as there are pairs, and each of them does very little. So let each
# thread first add many elements in a register, with a **grid-stride loop** (lab 03). After that only a small tree is
# left:
#
#     threads over the array → lanes of a warp → warps of a block → blocks of the grid
#
# The last stage is the hard one, because the blocks of a launch cannot wait for each other at a barrier. A second
# launch can add their sums. Or each block can add its own sum with an **atomic**, `cuda.atomic.add(out, 0, value)`,
# which reads, adds and writes in one step that cannot be interrupted. Atomics on the same address are done one after
# another, so there should be few of them.
#
# **Predict.** With 8 blocks of 256 threads, how many atomics are needed if each *warp* adds its own sum?

# %%
gpulab.predict("parallel.warp_atomics", ...)

# %% [markdown]
# **Do.** Write the kernel `total(a, out)`, which adds up all of `a`. About 16 lines.
#
# - Input: `a`, a one-dimensional float32 array of small whole numbers, so that their sum is the same in any order.
# - Output: `out`, a float32 array of one element. `out[0]` is 0 before the launch and the sum afterwards.
# - Launch: 8 blocks of 256 threads, whatever the size.
# - **Budget:** each element loaded once, an equal share by each block, 8 atomics, and one barrier. Warps may not wait
#   for each other in any other way.
# - Full marks need the right sum and every part of this budget, at every size.
# - Sizes include 1, 65,539 and 0.


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
# **See.** The whole ladder. Its last two rungs are `shuffled`, which is `unrolled` with both stages of its tree done
# by shuffles, and your `total`.


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
# Shuffles alone cost *more* warp instructions than the tree, because all eight warps run all five rounds. In return
# they save barriers and shared memory. The largest gain is the last one: if each thread adds more elements, there are
# fewer trees.
#
# ![A block of eight warps: each warp adds its 32 lanes by shuffles, lane 0 of each stores the sum in shared memory, and after one barrier the first warp adds the eight.](drawings/two_stages.svg)
#
# **Why.** How many threads and blocks are best? The cell below tries your `total` with several launches. More blocks
# mean more trees and more atomics. Fewer blocks mean fewer warps to hide latency, and SMs without work. Threads,
# blocks, registers and shared memory all affect one another and all run into limits of the GPU. No formula gives the
# best setting, so people search for it. A good start for a large array is as many blocks as the GPU holds at once,
# and a loop for the rest.

# %%
gpulab.need(total)
per_32_elements = {}
print("blocks × threads   warp instructions per 32 elements   atomics")
for blocks in (2, 8, 32, 128, 256):
    report = gpulab.profile(total[blocks, 256], a, all_of_a)
    per_32_elements[f"{blocks} blocks"] = 32 * report["instructions"] / N
    print(f"{blocks:6} × 256{32 * report['instructions'] / N:33.1f}{report['global_atomics']:10}")
held = hardware.occupancy(a100, 256, report["registers"])
print(f"an A100 holds {int(a100.sms) * held.active_blocks} such blocks at once")
bars(
    per_32_elements,
    "warp instructions per 32 elements",
    caption="Each block builds a tree, so more blocks cost more instructions for the same sum.",
)

# %% [markdown]
# ## Detective · The last block
#
# Atomic additions of floats arrive in any order, and the last digits of the sum depend on this order. A colleague
# wants one launch, no float atomics, and the same digits every time. Each block writes its sum to `partial` and then
# draws a **ticket** from an integer counter. The block that draws the last ticket knows that all others are done, so
# it adds up `partial`.


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
# **Do.** Run `gpulab.sanitize` and read what it found. Tickets are drawn with an atomic, so no block can draw the
# last one too early. What can be late all the same?
#
# The remedy that the message suggests would change the design. There is another one, with only two lines, in the
# table of the first detective. Try the writer's line alone as well. Then repair the kernel and run `gpulab.sanitize`
# again.

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
# In three to five sentences: which two accesses are not in any order, although every block draws its ticket after it
# has written? What do your two lines guarantee, and why did a year of tests not show the fault? Cite what your own
# two runs of `gpulab.sanitize` said. A person reads this: 1 point for the cause, 1 point for what your runs said.

# %% [markdown] nbgrader={"grade": true, "grade_id": "last-block-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** A block writes `partial[block]`, and the last block reads it. The ticket counts blocks, but it says
# nothing about their writes: another SM may see the new count before it sees the new partial sum.
# `cuda.threadfence()` between the write and the atomic makes the write visible to all blocks before the ticket is
# drawn. A second fence after the last ticket keeps the reads from returning older values. My first run named one
# race, between the write by thread 0 of block 0 and the read by thread 0 of the last block. With both fences nothing
# was found. Tests show the fault only if a write is slower than an atomic after it. That is rare, and it never
# happens in a simulator that writes at once.
#
# **1 point** (cause, but nothing from your own runs): Memory writes may become visible out of order, so one fence is
# needed before the atomic and one after it.
#
# **0 points:** The blocks run in the wrong order. Or: the atomic on `tickets` is not atomic enough.

# %% [markdown]
# ## 4 · Several sums at once
#
# While one warp waits, a GPU runs others. A thread can also hide waiting by itself, because instructions that do not
# need each other's results can be under way at the same time. This is called **instruction-level parallelism**
# (ILP). A sum in one variable offers none, because each addition must wait for the one before it, which takes about
# four cycles (measured on Volta, Jia et al. 2018). With four variables there are four chains of additions, and they
# can overlap. The compiler may move loads forward by itself, but it does not change the order of the additions,
# because that would change the result.
#
# ![A thread that loads one element waits after each load. A thread with four loads has four under way at a time, so fewer warps keep the memory busy.](drawings/in_flight.svg)
#
# How many bytes must be under way to keep memory busy? **Little's law** gives the answer: bandwidth × latency. A
# 4-byte load by all lanes of a warp has 128 bytes under way.
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
# **See.** How many warps each SM needs to keep its DRAM busy, against the number of loads that each lane has under
# way. This is modelled: Little's law with bandwidths from data sheets and measured latencies.

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
# **Why.** An SM's share of the bandwidth is 2,039 / 1.41 / 108 = 13.4 bytes per cycle. Over 552 cycles that is 7,390
# bytes, or 7,390 / 128 = 57.7 warps with one load per lane. An A100 can hold 64 warps per SM, so this is barely
# enough, and on an H100 it is not. With four loads per lane a quarter of the warps suffices, and each may use four
# times as many registers. So there are two ways to have enough under way: high occupancy, and ILP.
#
# Another question is the **instruction mix**, that is, which pipelines a kernel keeps busy. Besides its ordinary
# lanes an SM has 16 lanes for **special functions** (2ˣ, log₂, sine, reciprocal, 1/√x). That is a quarter of the
# float32 lanes of an A100 (CUDA C++ Best Practices Guide, "Throughput of Native Arithmetic Instructions"). Other
# special instructions do much work at once: FMA, shuffles, votes, `popc`, and the tensor cores of lab 06.


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
# Most instructions of a sum are arithmetic, but only one of them per element is the addition. The others compute
# indices and tests. Unrolling saves these.

# %% [markdown]
# ## 5 · The order of a sum
#
# A floating-point addition rounds its result, so it is **not** associative: a different order gives different last
# digits. A tree adds in a different order from a loop. Is its sum less exact?
#
# ![Four float32 numbers, 2²⁴, 1, 1 and 1, added in two orders. One after the other, every 1 is lost; as a tree two of them are added to each other first, and the sum is larger by 2.](drawings/orders.svg)
#
# Let u be half the distance from 1 to the next number, which is 2⁻²⁴ in float32. The relative error of adding n
# positive numbers is at most about (N. Higham, 1993):
#
# - n·u if they are added one after another;
# - log₂ n · u in a tree (**pairwise summation**);
# - 2u with **Kahan's** compensated sum, whatever n is.
#
# **Predict.** A float32 variable starts at 0, and 1.0 is added to it 20 million times. What is its value at the end?

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
# The figure shows the largest relative error of 48 sums. The tree, which makes a sum parallel, also makes it more
# exact.
#
# Where one thread must add many numbers alone, it can keep track of what rounding loses. Let `s` be the sum and `y`
# the next number. The new sum `t = s + y` is rounded. The amount that has really been added is `t - s`. So `(t - s) -
# y` is the amount by which *too much* was added, and the thread subtracts it from the next number.
#
# **Do.** Write the kernel `kahan(a, sums)`, which sums each column. About 9 lines.
#
# - Input: `a`, a float64 matrix. No GPU has a wider type, so you cannot avoid the problem by using one.
# - Output: `sums`, float64. `sums[c]` is the sum of column c, and 0 if there are no rows.
# - Launch: one thread for each column, in blocks of 64.
# - **Budget:** a relative error of at most 3.4 · 10⁻¹⁶, each number loaded once, and at most 4.4 floating-point
#   operations for each. Full marks need all three.
# - Sizes include 1,000 × 65, and a matrix without rows.


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
# **See.** How much the order changes a result. The next cell runs your `total` with its blocks in several orders.
# Each number occurs together with its negative, so the exact sum is 0.

# %%
gpulab.need(total)
pairs = np.random.default_rng(2).permutation(np.concatenate([numbers[: N // 2], -numbers[: N // 2]]))
gpulab.sanitize(total[8, 256], cuda.to_device(pairs), cuda.to_device(np.zeros(1, np.float32)))

# %% [markdown]
# **Why.** Your kernel has no error, and still two runs may differ in the last digit, because the eight atomics arrive
# in any order. If results must repeat bit for bit, fix the order, with a second launch or with the repaired last
# block.
#
# A compiler that may reorder additions ("fast math") also removes Kahan's correction, because in exact arithmetic
# `(t - s) - y` is always 0.

# %% [markdown]
# ## 6 · Scans
#
# Suppose many threads write results of different lengths into one array. Each thread must know where its part begins,
# which is the total length of all parts before it. A **scan** computes such sums for all elements at once.
#
# An **inclusive** scan gives each element the sum of all elements up to and including itself: 3 1 4 → 3 4 8. An
# **exclusive** scan leaves out the element itself: 3 1 4 → 0 3 4.
#
# ![An inclusive scan of eight numbers by doubling: in the three steps every place adds the value one, two and then four places to its left.](drawings/scan.svg)
#
# There are two well-known ways to compute a scan in parallel:
#
# - **Hillis and Steele** (1986): in round k each thread adds the value 2ᵏ places to its left. This takes log₂ n
#   rounds and about n log₂ n additions.
# - **Blelloch** (1990): a tree upwards, then the same tree downwards. This takes about 2n additions, but twice as
#   many rounds.
#
# The first takes fewer **steps**, and the second does less **work**.
#
# **Predict.** How many additions does the scan of Hillis and Steele do for 256 elements? In round k, the first 2ᵏ
# threads have nothing to add.

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
    while distance > 0:  # down: the middle of each next stretch gets the sum of everything before it
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
# **See.** One of the reads in Blelloch's scan. The lanes read words that are a power of two apart, so most of them
# share a few banks.

# %%
gpulab.show(scans[blelloch], view="banks")

# %% [markdown]
# **Try it.** In each round of the upward tree, the lanes read words twice as far apart as in the round before. Drag
# the second stride through 4, 8, 16 and 32. What would a padding of one word change?

# %%
from gpulab.plot.moving import Pattern, WarpAccess

WarpAccess([Pattern(stride=2, title="first round"), Pattern(stride=4, title="second round")], banks=True)

# %% [markdown]
# Less work does not help a warp if the lanes that save it are idle while the others go on. So within a warp Hillis
# and Steele win, with `shfl_up` and without memory. Across the eight warps of a block only eight totals are left to
# add.
#
# **Do.** Write the kernel `scan(a, out)`, an inclusive scan *of each block's 256 elements*. About 17 lines.
#
# - Input and output: one-dimensional int32 arrays of the same size. Each block starts again at 0.
# - Launch: one thread for each element, in blocks of 256.
# - **Budget:** each element loaded once, one barrier, and 40 wavefronts of shared memory per block. Full marks need
#   all three.
# - Sizes include 1, 257, 1,000 and 0.


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
# **See.** Your scan beside the other two, for the same blocks of 256.

# %%
gpulab.need(scan)
whole_numbers, scanned_numbers = (
    cuda.to_device(np.floor(9 * numbers[:4096]).astype(np.int32)),
    cuda.device_array(4096, np.int32),
)
reports = {
    r.name: r for r in (*scans.values(), gpulab.profile(scan[16, 256], whole_numbers, scanned_numbers))
}
panels(
    {
        "barriers per warp": {name: r["barriers_per_warp"] for name, r in reports.items()},
        "shared wavefronts per block": {name: r["shared_wavefronts"] / 16 for name, r in reports.items()},
    },
    "With shuffles inside the warps, a scan needs one barrier, and shared memory only for eight totals.",
)

# %% [markdown]
# **Why.** One barrier is enough, because the warps pass on their totals only once. An array longer than a block takes
# three launches: scan each block, scan the blocks' totals, and add to each block the sum of all blocks before it.
# That reads and writes everything twice. The open task at the end does it in one pass.

# %% [markdown]
# ## 7 · Compaction
#
# **Compaction** keeps some elements, side by side and in their order. Filters, sampling, and the removal of masked
# tokens all need it. The place of each kept element is the number of elements that are kept before it. That is an
# exclusive scan of zeros and ones.
#
# For zeros and ones a warp has something faster than a general scan:
#
# - `cuda.ballot_sync(mask, condition)` gives every lane the same number, in which bit i is 1 if lane i's condition is
#   true.
# - `cuda.popc(x)` counts the ones in x.
# - `cuda.lanemask_lt()` is a number with a 1 for each lane below the calling lane.
# - `cuda.syncthreads_count(1 if condition else 0)` counts the ones of a whole block, and it is a barrier as well.
#
# **Predict.** The condition is true in lanes 1, 2 and 4. What is the place of lane 4's element among those of its
# warp, counted from 0?

# %%
gpulab.predict("parallel.rank", ...)

# %% [markdown]
# **Do.** Write the host function `compact(a, out, count)`, which copies the elements of `a` that are greater than 0,
# in their order, to the start of `out`. About 28 lines, with two kernels.
#
# - Input: `a`, a one-dimensional float32 device array of at most 65,536 elements. That is at most 256 blocks of 256,
#   so one block of your `scan` can take all their counts.
# - Output: `out`, float32, as long as `a`, and `count`, one int32. `count[0]` becomes the number of kept elements.
#   Both contain zeros before the call, and the rest of `out` keeps them.
# - For temporary arrays use `cuda.device_array(blocks, np.int32)`.
# - **Budget:** 8.8 bytes loaded and 2.3 bytes stored per element if half are kept. No block may load more than 512
#   elements twice.
# - Full marks need the right result and every part of this budget. Sizes include 1, 33, 65,535 and 0.


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
# **See.** Which thread writes which element, for 1,000 elements. The colour is the block, and the hatched rest keeps
# its zeros.

# %%
gpulab.need(compact)
gpulab.show("parallel.compact", compact, view="threads")

# %% [markdown]
# **Why.** Reading `a` twice is cheaper than writing a flag and a place for each element and then reading both again.
# If the order of the kept elements does not matter, each warp can reserve its places from a counter with one atomic.
# Then one launch reads `a` once, but the order differs in every run.

# %% [markdown]
# ## End of sitting 1
#
# You have built a sum from a warp up to a whole grid in one launch, made it more exact, and turned it into a scan
# that compacts an array. The second sitting applies these parts: to counts in a histogram, and then to softmax and
# the norms of a transformer, which read each number once.
#
# To go on another day, select this cell and choose *Run → Run All Above Selected Cell* first, because a new kernel
# does not know your functions yet.

# %%
gpulab.course.progress("05")

# %% [markdown]
# ## 8 · Histograms
#
# A **histogram** counts how many values fall into each bin. Several threads may add to the same bin, so they need
# atomics. If all counts are in global memory, every element costs a global atomic. Real data make this worse, because
# most values fall into few bins. When lanes of a warp update the same address, they are served one after another, and
# each lane beyond the first is an **atomic conflict**.
#
# ![Left, all threads count in one histogram in global memory, and they queue at popular bins. Right, each block counts in a histogram of its own in shared memory and adds it to the global one at the end.](drawings/histogram.svg)
#
# **Privatisation** means that each block counts in bins of its own, in shared memory, and adds them to the result
# once. The same idea works a second time: give each *lane* its own copy of the bins. Then two lanes of a warp never
# meet at an address. An atomic on an array with two axes takes a tuple, `cuda.atomic.add(s, (b, lane), 1)`. At the
# end a warp adds up the 32 copies of a bin. Each lane reads the copy with its own number, so no two lanes meet in a
# bank either.
#
# **Predict.** There are 64 bins of 4 bytes, with a copy for each of 32 lanes. How many bytes of shared memory is
# that?

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
# **Do.** Write the kernel `histogram(values, counts)`, which counts how often each of the numbers 0 to 63 occurs.
# About 18 lines.
#
# - Input: `values`, a one-dimensional int32 array of numbers from 0 to 63.
# - Output: `counts`, 64 int32 numbers, which are 0 before the launch.
# - Launch: 8 blocks of 256 threads, whatever the size.
# - **Budget:** each value loaded once, an equal share by each block, 64 × 8 global atomics, no atomic conflict and no
#   bank conflict. A warp must count its 32 values together, not in turns.
# - Full marks need the right counts and every part of this budget, at every size. Sizes include 1, 5,001 and 0.


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
# **See.** Atomics and conflicts of the plain histogram and of yours.

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
# **Why.** An atomic still costs more than a plain addition, but the atomics of this loop stay within the SM, and no
# lane waits for another. Atomics are still needed, because the eight warps of a block share each lane's copy. Copies
# take space: with 4,096 bins they do not fit, and you must use one copy per block or per warp. If even one copy does
# not fit, sort the values first.
#
# **Measured.** An H100 counted numbers into 256 bins, in CUDA C++. Nsight Compute measured the durations on
# 27 November 2026; `gpulab.modelled` worked out the others from the same machine code.
#
# | histogram on an H100 | numbers | modelled | measured |
# |---|---|---|---|
# | in global memory | 1,048,576 | 231.2 µs | 291.2 µs |
# | in shared memory, one copy per block | 2,097,152 | 16.1 µs | 16.2 µs |
#
# Twice the numbers take an eighteenth of the time. In global memory, atomics on one line of the L2 wait for each other,
# whichever SM they come from.

# %% [markdown]
# ## 9 · Softmax
#
# Softmax turns a row of logits x into shares that add up to 1: exp(xᵢ) / Σ exp(xⱼ). The exponential grows so fast
# that it soon overflows in float32, and infinity divided by infinity is NaN. So subtract the row's maximum m first.
# In exact arithmetic this changes nothing, and every exponent becomes at most 0:
#
# > softmaxᵢ = exp(xᵢ − m) / Σ exp(xⱼ − m)
#
# The obvious kernel therefore passes over the row three times: for the maximum, for the sum, and for the result.
#
# **Predict.** What is the smallest logit for which exp(x) is too large for float32?

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
# **Maximum and sum in one pass.** Keep two numbers: m, the largest logit *so far*, and s, the sum of exp(x − m) so
# far. When a larger logit m′ appears, every term of s was computed with the old maximum. Multiplying s by exp(m − m′)
# corrects all of them at once. Two parts of a row merge in the same way:
#
# > m = max(m₁, m₂), s = s₁ · exp(m₁ − m) + s₂ · exp(m₂ − m)
#
# This **merge** is associative. So all trees of this lab also work on pairs (m, s), and the parts of a row may be on
# different lanes, blocks or GPUs. The method is called **online softmax** (Milakov and Gimelshein, 2018), and
# FlashAttention is built on it (lab 12).
#
# An empty part is (−∞, 0). Merging two empty parts must not give NaN, although −∞ − (−∞) is NaN.
#
# **Predict.** Merge (m = 3, s = 2) with (m = 5, s = 1). What is s?

# %%
gpulab.predict("parallel.merge", ...)

# %% [markdown]
# **Do.** Write the kernel `logsumexp(x, out)`, which computes the logarithm of Σ exp(x) for each row. About 22 lines.
#
# - Input: `x`, a float32 matrix. Logits are between −1,000 and 1,000, and some are −∞ (masked). Rows have any length.
# - Output: `out`, float32, one number for each row: `m + log(s)`. If every logit of a row is −∞, so is the result.
# - Launch: one warp for each row, in blocks of 256 threads.
# - **Budget:** each logit loaded once. One float32 exponential for each logit (13 operations with the step around
#   it), and 320 exponentials for each row, because 32 lanes merge in 5 rounds: 5 · 32 · 2. 20 % more is allowed. At
#   the last size, at most 72 thread instructions for each logit.
# - Keep all numbers in float32, because an exponential in float64 costs three times as much.
# - Full marks need the right result and every part of this budget. Sizes include 3 × 1, 10 × 33 and no rows.


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
# With `logsumexp` a softmax takes two passes, because `exp(x - logsumexp)` reads x once more. For rows of any length
# that is the best you can do. A short row, however, can stay in registers: 256 logits are 8 for each lane of a warp.
# (An array from `cuda.local.array(8, float32)` stays in registers if all its indices are known at compile time, as
# lab 04 showed.) Then one pass is enough.
#
# ![How often softmax reads its logits. Three passes: one for the maximum, one for the sum, one to divide. With the online sum two: maximum and sum together, then the division.](drawings/passes.svg)
#
# **Do.** Write the kernel `row_softmax(x, out)`. About 20 lines.
#
# - Input: `x`, a float32 matrix with at most 256 columns and logits between −1,000 and 1,000.
# - Output: `out`, float32, of the same shape: the softmax of each row.
# - Launch: one warp for each row, in blocks of 256 threads.
# - **Budget:** each logit loaded once, no barrier, no local memory, and in all no more sectors than the two arrays
#   have. Full marks need all four.
# - Sizes include 1 × 1, 9 × 33 and 10 × 5.


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
# **Why.** The barriers are gone because all threads that share a row are lanes of one warp. Each logit stays in a
# register between its three uses. The price is registers, and a limit on the length of a row. For longer rows a block
# takes one row and keeps it in shared memory. Its warps then exchange values twice, once for the maximum and once for
# the sum.
#
# After memory, the exponentials may be the next limit. An SM has 16 lanes for special functions:

# %%
exponentials = 16 * int(a100.sms) * float(a100.boost_clock)  # per second; Best Practices Guide: 16 lanes
elements = float(a100.dram_bandwidth) / 8  # per second: 4 bytes in, 4 bytes out
print(
    f"A100: {exponentials / 1e12:.1f} · 10¹² exponentials a second, {elements / 1e12:.2f} · 10¹² elements through DRAM"
)

# %% [markdown]
# A separate softmax kernel is limited by memory. A softmax that is fused into attention never writes its logits to
# memory, so it may well be limited by its exponentials.

# %% [markdown]
# ## 10 · Norms, and fusing with the neighbours
#
# **Layer norm** gives each row mean 0 and variance 1, and then multiplies each column by a weight: (x − mean) /
# √(variance + ε) · weight. **RMS norm** leaves out the mean: x / √(mean of x² + ε) · weight. It needs one sum instead
# of two. In a transformer the input of a norm is itself a sum, x + residual, which is needed again later.
#
# ![Apart, an addition writes its result to DRAM and a norm reads it again. Fused, the sum stays in registers: one load and one store of everything in between are saved.](drawings/fused.svg)
#
# **Fusing** means that one kernel does the work of several, so that the results between them never go to memory.
#
# Do not compute the variance as mean of x² − mean² in float32. Numbers near 1,000 have squares near 10⁶, where
# neighbouring float32 numbers are 1/16 apart, so a variance of 1 is lost in rounding. This is called
# **cancellation**. Subtract the mean first, and then square. The row is in registers, so a second look at it costs no
# load.
#
# **Predict.** One kernel adds x and residual. Another computes a layer norm in three passes over the sum (mean,
# variance, result), and also reads the weight. How many bytes do both together load for each element?

# %%
gpulab.predict("parallel.unfused", ...)

# %% [markdown]
# **Do.** Write the kernel `add_norm(x, residual, weight, summed, out)`. About 26 lines, most of them from
# `row_softmax`.
#
# - Input: `x` and `residual`, float32 matrices with at most 256 columns, and `weight`, one float32 number for each
#   column. The numbers of `x` are around 1,000.
# - Output: `summed = x + residual`, and `out`, its layer norm times `weight`, with ε = 10⁻⁵. Both are float32.
# - Launch: one warp for each row, in blocks of 256 threads.
# - A column that does not exist adds 0 to the first sum, but it would add (0 − mean)² to the second. Leave it out
#   there.
# - **Budget:** 12 bytes loaded and 8 bytes stored for each element. Full marks need both.
# - Sizes include 1 × 2, 9 × 33 and no rows.


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
# **Activations** are the easiest to fuse, because each element is computed on its own. The gate of many transformers
# is silu(a) · b with silu(a) = a / (1 + exp(−a)).
#
# A kernel that knows its **mask** can leave out what is masked. In *block-sparse* attention the scores of a row exist
# only in some blocks of columns, and a list says in which.
#
# **Predict.** A kernel for silu and another for the product together move 20 bytes for each element. How many bytes
# does one kernel for both move?

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
# **Why.** Fusing saves a store and a load of everything in between. Block sparsity saves what is not in the list,
# provided the blocks are whole sectors. A mask that is applied after the load saves nothing. Compilers fuse
# elementwise operations for you (lab 11). But they seldom find a better algorithm by themselves, such as the online
# softmax.

# %% [markdown]
# ## 11 · Where to tune first
#
# There are four levels to tune. This is the order in which they usually gain most:
#
# 1. **Algorithm**: fewer passes and less work. Examples are the online softmax, or one scan instead of a sort.
# 2. **Memory**: fewer bytes, whole sectors, and data one level closer. An example is a row in registers instead of
#    three reads.
# 3. **Execution**: which threads work and which wait. This covers barriers, divergence, atomics, the launch, and
#    enough work under way.
# 4. **Instructions**: unrolling, or one exponential instead of two.
#
# A gain on a higher level often removes the problem of a lower one. For example, a kernel without barriers has no
# barriers to tune. And a change helps only where the limit is, so ask after each step which unit is busiest now.
#
# **See.** The three versions of softmax, with one count for each level.

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
# **Why.** Going from three passes to two is a gain in the algorithm. On rows as short as these, however, it costs
# more exponentials than it saves: merging 32 lanes takes 320, and the row has only 256 logits. On rows of thousands
# of logits the merging does not matter. Going from two passes to one is a gain in memory, and it makes the merging
# unnecessary.

# %% [markdown]
# ## Beyond · A scan in one pass
#
# Open-ended and ungraded. Scan 65,536 int32 numbers. The usual way takes three launches and moves every element four
# times. **Decoupled look-back** (Merrill and Garland, 2016) takes one launch. Each block scans its own part and
# publishes its sum. Then it looks back, block by block, and adds these sums, until it reaches a block that already
# knows the sum of *everything* up to its end. Finally it publishes its own sum of everything. Blocks draw their part
# by ticket, so that no block waits for one that has not started. Remember what the last block taught you.
#
# The figure of merit is **bytes per element** that threads ask of global memory, in loads, stores and atomics.
#
# | kernel | bytes per element |
# |---|---|
# | three launches | printed by the cell below |
# | ours, blocks of 256, one element per thread | 9.5 |
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
# **Top-k**, if you want more: find the 8 largest numbers of each row of 1,024, as sampling from a language model
# does. Eight passes that each find the largest number below the last one load 8 · 4 = 32 bytes per element, and the
# bound is 4. Keep the row in registers, 32 numbers for each lane, and let the warp find its maximum eight times.

# %% [markdown]
# ## Recap
#
# <details><summary>1. Name the four stages of a sum over a large array, and what each uses.</summary>
#
# The threads walk over the array with a grid-stride loop and a register. The lanes of a warp use five shuffles. The
# warps of a block use one number each in shared memory, and one barrier. The blocks use an atomic, a second launch,
# or the last block with fences.
# </details>
#
# <details><summary>2. Lane 0 writes to shared memory, and lane 1 of the same warp reads it in the next line. What is
# missing?</summary>
#
# `cuda.syncwarp()` is missing, or a shuffle in place of the memory. The lanes of a warp are not guaranteed to run in
# step.
# </details>
#
# <details><summary>3. A sum of a million float32 numbers differs in the sixth digit between two programs. Which one
# is wrong?</summary>
#
# Perhaps neither is: they add in different orders. One after another the error can reach n·u, and in a tree log₂ n ·
# u. Compare both with a sum in float64.
# </details>
#
# <details><summary>4. A histogram of an image that is mostly sky is much slower than that of noise. Why, and
# what helps?</summary>
#
# The lanes of a warp meet in one bin, and their atomics are served one after another. A private copy for each lane
# helps, or as many copies as fit.
# </details>
#
# <details><summary>5. Two halves of a row have (m, s) = (10, 4) and (−∞, 0). What is their merge?</summary>
#
# It is (10, 4), because s = 4 · e⁰ + 0 · e^(−∞) = 4.
# </details>

# %%
gpulab.recap("05")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | sum over a warp | 5 × `shfl_down_sync` (lane 0 has it) or `shfl_xor_sync` (all lanes have it) |
# | scan over a warp | 5 × `shfl_up_sync`; lanes below the distance do not add |
# | rank among lanes | `popc(ballot_sync(mask, keep) & lanemask_lt())` |
# | count over a block | `syncthreads_count(1 if keep else 0)` |
# | lanes exchange values through memory | `syncwarp()` between writing and reading |
# | one block passes data to another in the same launch | the writer: write, `threadfence()`, atomic; the reader: atomic, `threadfence()`, read |
# | largest error of a sum | n·u one after another, log₂ n · u in a tree, 2u with Kahan |
# | scans of n | Hillis–Steele: log₂ n steps, n log₂ n work; Blelloch: 2 log₂ n steps, 2n work |
# | histogram | bins per block, a copy per lane, one atomic per bin and block |
# | merge of (m, s) | m = max; s = s₁ e^(m₁ − m) + s₂ e^(m₂ − m); empty is (−∞, 0) |
# | row of 256 | a warp, 8 registers per lane, no barrier |
# | variance | subtract the mean first |
#
# ### Claims you will meet, and what is right
#
# - *A warp synchronises by itself, so the last five rounds need no barrier.* This has not been true since compute
#   capability 7.0. Use `syncwarp` or shuffles.
# - *Shuffles make a reduction faster because they are fewer instructions.* Here they were more. They save barriers
#   and shared memory.
# - *Blelloch's scan is better because it does less work.* It does less work in more steps, and inside a warp the
#   steps count.
# - *A parallel sum is less exact.* A tree is more exact than a loop. Its result merely differs.
# - *Data-parallel and serial results are identical.* They are identical only up to the order of the additions.
# - *A softmax is memory-efficient if it is written "in place".* Written as array expressions, it makes temporary
#   arrays for the difference, the exponentials and the result. What helps is one kernel that reads once.
# - *The maximum is subtracted to make softmax more exact.* It is subtracted to avoid overflow.

# %% [markdown]
# ### References
#
# 1. M. Harris, "Optimizing Parallel Reduction in CUDA", NVIDIA, 2007.
# 2. NVIDIA, *CUDA Programming Guide*: warp shuffle functions, memory fence functions, independent thread scheduling.
#    https://docs.nvidia.com/cuda/cuda-programming-guide/
# 3. N. Higham, "The Accuracy of Floating Point Summation", SIAM J. Sci. Comput. 14 (4), 1993.
#    https://doi.org/10.1137/0914050
# 4. W. D. Hillis, G. L. Steele, "Data Parallel Algorithms", Communications of the ACM 29 (12), 1986.
#    https://doi.org/10.1145/7902.7903
# 5. G. Blelloch, "Prefix Sums and Their Applications", CMU-CS-90-190, 1990.
# 6. D. Merrill, M. Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", NVIDIA NVR-2016-002, 2016.
# 7. M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018. https://arxiv.org/abs/1805.02867
# 8. Z. Jia, M. Maggioni, B. Staiger, D. Scarpazza, "Dissecting the NVIDIA Volta GPU Architecture via
#    Microbenchmarking", 2018. https://arxiv.org/abs/1804.06826
