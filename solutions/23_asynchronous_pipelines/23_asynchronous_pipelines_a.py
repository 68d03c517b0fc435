# ---
# jupyter:
#   gpulab:
#     lab: "23"
#     hours: 3
#     topics: [C25.1, C25.2]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 23A · Asynchronous pipelines
#
# **2 to 3 hours.** You have done lab 07A and can write a CUDA C++ kernel, and you know shared memory,
# barriers and bank conflicts from labs 04 and 05. You need no GPU: the kernels of this part run on a simulated
# A100, those of part B on a simulated H100.
#
# A load from memory takes hundreds of cycles. So far you have hidden that time by running other warps. Since
# 2020, the fastest kernels have done something else: they request data long before they need it, and compute
# in the meantime. In this lab you learn how a kernel keeps track of data that is still on its way.
#
# By the end you can
#
# 1. work out how many bytes must be on their way to keep a GPU's memory busy;
# 2. write a ring of slots that `cp.async` fills, with one barrier a tile;
# 3. let one warp copy and another one compute, with mbarriers instead of block barriers;
# 4. say which phase of an mbarrier a wait is for, and find a wait that is off by one round.

# %%
import numpy as np

import gpulab
from gpulab import cupy as cp
from gpulab import hardware

gpulab.start("23")

# %% [markdown]
# ## 1 · How much must be on its way
#
# Imagine a delivery service that can bring one parcel a second, and each parcel is on the road for a minute.
# If you order one parcel and wait for it before you order the next, you get one a minute. To get one every
# second, 60 parcels must be on the road at any time. This is **Little's law**: the number of items on their
# way equals the rate of arrivals times the time that each item takes.
#
# ![If one parcel is ordered at a time, one arrives a minute. With sixty on the road, one arrives every second.](drawings/parcels.svg)
#
# Memory works in the same way. The rate is the bandwidth, the time is the latency of a load, and their product is
# the number of **bytes in flight** that a GPU needs to use its whole bandwidth.

# %%
for name in ("A100", "H100", "B200"):
    gpu = hardware.find(name)
    if gpu.dram_latency is None:
        print(f"{name}: {gpu.dram_bandwidth}, latency not published")
        continue
    seconds = float(gpu.dram_latency) / float(gpu.boost_clock)
    whole = float(gpu.dram_bandwidth) * seconds
    print(f"{name}: {gpu.dram_bandwidth} for {1e9 * seconds:.0f} ns: {whole / 1e3:,.0f} KB on their way")

# %% [markdown]
# The latency was measured, and the data sheet names its source: `hardware.find("A100").dram_latency`.
#
# **Predict.** An A100 brings 2,039 GB/s with a latency of 391 ns, and has 108 SMs. How many bytes must each SM have
# on their way? (A GB/s times a ns is a byte.)

# %%
gpulab.predict("async.flight", ...)

# %% [markdown]
# A block that copies **tiles** of 2 KiB can have several of them on their way, each in a **slot** of shared memory.
#
# **Predict.** Two blocks run on each SM. How many tiles of 2 KiB must each block have on their way, so that the two
# together reach the number above?

# %%
gpulab.predict("async.slots", ...)

# %% [markdown]
# **Why.** In lab 04 you had as many bytes on their way with many warps, each with a load or two. Every load
# occupies a register for the data that it will bring, and every warp occupies all of its registers while it
# waits. That makes warps an expensive way to wait. A slot in shared memory takes no registers at all.
#
# **Do.** Write `depth(bandwidth, latency, sms, blocks, tile)`, which returns the number of slots that each block
# needs.
#
# - All arguments are integers. `bandwidth` is in GB/s and `latency` in ns.
# - `sms` SMs run `blocks` blocks each; a tile has `tile` bytes. All blocks share the bytes in flight equally.
# - A block's share is rounded up to whole tiles. Add one slot for the tile that the block is working on,
#   which has already arrived.
#
# About 2 lines. The check asks about small tiles, about tiles so large that one is enough, and about shares that are
# a whole number of tiles.


# %% nbgrader={"grade": false, "grade_id": "depth", "locked": false, "schema_version": 3, "solution": true, "task": false}
def depth(bandwidth, latency, sms, blocks, tile):
    ### BEGIN SOLUTION
    in_flight = bandwidth * latency
    return -(-in_flight // (sms * blocks * tile)) + 1
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "depth-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("async.depth", depth)

# %% [markdown]
# **See.** The figure shows what your function returns for an A100 with two blocks on each SM. The smaller the
# tiles, the more of them have to be on their way.

# %%
gpulab.need(depth)
gpulab.plot.bars(
    {f"tiles of {kib} KiB": depth(2039, 391, 108, 2, 1024 * kib) for kib in (1, 2, 4, 8)},
    "slots of each block",
)

# %% [markdown]
# ## 2 · A ring of slots
#
# An ordinary load brings its data into a register, and a second instruction stores it to shared memory.
# Between the two, the thread waits. Since Ampere a single instruction does both, **`cp.async`**. It tells the
# memory system where to read and where in shared memory to write, and the thread continues at once.
#
# ![An ordinary load passes through a register and the thread waits for it. A cp.async goes from global to shared memory by itself, and the thread goes on.](drawings/without_registers.svg)
#
# Three functions of CUDA C++ are enough for it (`<cuda_pipeline.h>`):
#
# | call | meaning |
# |---|---|
# | `__pipeline_memcpy_async(to, from, 16)` | this thread starts a copy of 4, 8 or 16 bytes |
# | `__pipeline_commit()` | the copies that it has started since the last commit form one **group** |
# | `__pipeline_wait_prior(n)` | it waits until all of its groups but the `n` most recent have arrived |
#
# Groups belong to a thread. After its wait, a thread sees what *it* has copied. To read what other threads
# have copied, all of them have to wait for their own groups and then meet at a barrier.
#
# Run the next cells. The kernel copies one tile and waits for it. Then each thread adds two neighbouring `float4` of
# the tile; the last thread adds the last one and the first. So each `float4` is read by two threads, but only one of
# them has copied it.


# %%
SUM = r"""
#include <cuda_pipeline.h>

__device__ float4 sum(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
"""

# %%
ONE_TILE = (
    SUM
    + r"""
extern "C" __global__ void single(const float4* x, float4* out, int tiles) {
    __shared__ float4 slot[128];
    int t = threadIdx.x;
    x += blockIdx.x * tiles * 128;        // this block's tiles are contiguous
    out += blockIdx.x * tiles * 128;
    for (int k = 0; k < tiles; k++) {
        __pipeline_memcpy_async(&slot[t], &x[k * 128 + t], 16);
        __pipeline_commit();
        __pipeline_wait_prior(0);         // my own 16 bytes are there
        __syncthreads();                  // those of all threads are
        out[k * 128 + t] = sum(slot[t], slot[(t + 1) % 128]);
        __syncthreads();                  // all threads have read the slot: it may be overwritten
    }
}
"""
)


def expected(x):
    tiles = x.get().reshape(-1, 128, 4)
    return (tiles + np.roll(tiles, -1, axis=1)).reshape(-1)


single = cp.RawKernel(ONE_TILE, "single")
x = cp.asarray(np.arange(4 * 16 * 512, dtype=np.float32))
out = cp.empty_like(x)
report = gpulab.profile(single, (4,), (128,), (x, out, cp.int32(16)))
print("right:", np.array_equal(out.get(), expected(x)))
print("bytes of a thread in flight when it waits:", report["async_bytes_in_flight"])
print("barriers of a warp:", report["barriers_per_warp"])

# %% [markdown]
# The result is right, but nothing was gained: when a thread waits, the only copy that it has started is the one
# that it waits for. The metric `async_bytes_in_flight` shows this. At each wait it counts the bytes of the thread
# that may still be on their way *after* the wait. It then averages this count over all waits, and a wait for more
# bytes has more weight.
#
# The remedy is a **ring**. With four slots, tile k goes into slot k mod 4. The copies of three tiles are
# started before the loop. In iteration k the block waits only for tile k, reads it, and starts the copy of
# tile k + 3. That copy goes into the slot of tile k − 1, which all threads have finished reading.
#
# ![Four slots in a ring. While tile 4 is read in slot 0, the tiles 5 and 6 are on their way into slots 1 and 2, and tile 7 is sent into slot 3, which tile 3 has left.](drawings/ring.svg)
#
# **See.** What happens in each iteration of the loop:

# %%
for k in range(6):
    print(f"turn {k}: read tile {k} in slot {k % 4}, send tile {k + 3} into slot {(k + 3) % 4}")

# %% [markdown]
# The order of the steps within an iteration decides how many barriers are needed. A barrier right after the
# wait guarantees two things at once: all threads can read tile k, and all threads have finished the previous
# iteration. So the slot of tile k − 1 is free, and the next copy can be started right after that barrier.
#
# **Do.** Write `ring`, which computes what `single` does: in each tile of 128 `float4`, thread t writes
# `sum(tile[t], tile[(t + 1) % 128])`.
#
# - 128 threads a block; each copies one `float4` of every tile. A block has `tiles` tiles, at least one.
# - Four slots, filled by `__pipeline_memcpy_async`. `tiles` may be smaller than the number of slots.
# - An empty group counts as a group. If you commit in every iteration, even when no copy was started, the
#   number of groups after tile k's is always the same.
# - **Budget:** two tiles in flight after each wait (fewer at the end), one block barrier a tile, four slots
#   of shared memory, each element read and written once.
#
# About 14 lines.


# %% nbgrader={"grade": false, "grade_id": "ring", "locked": false, "schema_version": 3, "solution": true, "task": false}
ring = cp.RawKernel(
    SUM
    + r"""
extern "C" __global__ void ring(const float4* x, float4* out, int tiles) {
    __shared__ float4 slot[4][128];
    int t = threadIdx.x;
    x += blockIdx.x * tiles * 128;
    out += blockIdx.x * tiles * 128;
    // ### BEGIN SOLUTION
    for (int k = 0; k < 3; k++) {
        if (k < tiles) __pipeline_memcpy_async(&slot[k][t], &x[k * 128 + t], 16);
        __pipeline_commit();
    }
    for (int k = 0; k < tiles; k++) {
        __pipeline_wait_prior(2);
        __syncthreads();
        int next = k + 3;
        if (next < tiles) __pipeline_memcpy_async(&slot[next % 4][t], &x[next * 128 + t], 16);
        __pipeline_commit();
        out[k * 128 + t] = sum(slot[k % 4][t], slot[k % 4][(t + 1) % 128]);
    }
    // ### END SOLUTION
}
""",
    "ring",
)

# %% nbgrader={"grade": true, "grade_id": "ring-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("async.ring", ring)

# %% [markdown]
# **See.** Both kernels on the same 64 tiles. They read and write the same bytes, but they differ in the bytes
# that are on their way while they wait.

# %%
gpulab.need(ring)
in_flight = {}
for kernel in (single, ring):
    report = gpulab.profile(kernel, (4,), (128,), (x, out, cp.int32(16)))
    in_flight[kernel.name] = report["async_bytes_in_flight"]
    print(
        f"{kernel.name:6} {report['global_bytes']:7,} B   in flight {report['async_bytes_in_flight']:4.0f} B a thread"
        f"   {report['barriers_per_warp']:2.0f} barriers a warp   {report['shared_bytes']:5,} B shared"
    )
gpulab.plot.bars(in_flight, "bytes in flight of a thread when it waits", budget=29, more_is_better=True)

# %% [markdown]
# When does a block work, and when does it wait? `gpulab.timeline` takes the instructions that each warp
# executed and works out when it could have executed them, if an instruction took 4 cycles and a copy as long
# as the data sheet says. The first picture is the kernel with one tile at a time, the second is yours. Move
# the slider.

# %%
gpulab.timeline(single, (1,), (128,), (x, out, cp.int32(8)))

# %%
gpulab.need(ring)
gpulab.timeline(ring, (1,), (128,), (x, out, cp.int32(8)))

# %% [markdown]
# Each thread reads two neighbouring `float4`. Do the loads of a warp from shared memory have bank conflicts?

# %%
gpulab.show("async.ring", ring, view="banks")

# %% [markdown]
# **Why.** In a long loop each of the 128 threads still has 2 · 16 bytes in flight after a wait, which is 4
# KiB for the block. You know from section 1 that two such blocks are just enough for an A100's SM. The price
# is shared memory: four slots instead of one. The kernels of CUTLASS for Ampere contain this loop, and Triton
# generates it for `num_stages=4`. More slots are not always better, because other blocks cannot use the
# shared memory that they take.
#
# ## 3 · Two warps hand over tiles
#
# In the ring all threads do everything: they start copies, wait, meet at a barrier, and compute. A **barrier
# of the block** is a crude tool, because it also stops warps that have nothing to wait for. If one warp only
# brings tiles and another one only uses them, each has to wait for just one event: the **consumer** until a
# slot is full, the **producer** until the slot is empty again.
#
# ![The producer waits until a slot is empty, fills it and arrives at its full barrier. The consumer waits for full, reads the slot and arrives at its empty barrier.](drawings/full_and_empty.svg)
#
# For each of these events there is an **mbarrier**, a 64-bit word in shared memory that counts arrivals. When as many
# arrivals have come as it was initialised for, its **phase** is over. The next phase begins and expects the same
# number of arrivals again. A thread can arrive without waiting, and wait without arriving. A block barrier cannot
# separate arriving from waiting.
#
# | call (`namespace ptx = cuda::ptx`) | meaning |
# |---|---|
# | `ptx::mbarrier_init(&bar, n)` | each phase of `bar` expects n arrivals; one thread calls it, and a barrier of the block follows |
# | `ptx::mbarrier_arrive(&bar)` | one arrival; the thread goes on |
# | `ptx::mbarrier_test_wait_parity(&bar, p)` | whether the phase of parity p is over |
#
# The last function only tests the barrier. It does not wait. The next cell initialises a barrier for one arrival and
# asks it three times: when it is fresh, after one arrival, and after two.

# %%
ASK = r"""
#include <cuda/ptx>
namespace ptx = cuda::ptx;

extern "C" __global__ void ask(bool* over) {
    __shared__ unsigned long long bar;
    ptx::mbarrier_init(&bar, 1);
    for (int arrivals = 0; arrivals < 3; arrivals++) {
        over[2 * arrivals] = ptx::mbarrier_test_wait_parity(&bar, 0);
        over[2 * arrivals + 1] = ptx::mbarrier_test_wait_parity(&bar, 1);
        ptx::mbarrier_arrive(&bar);
    }
}
"""
over = cp.zeros((3, 2), cp.bool_)
cp.RawKernel(ASK, "ask")((1,), (1,), (over,))
for arrivals, (parity0, parity1) in enumerate(over.get()):
    print(
        f"after {arrivals} arrivals: phase of parity 0 over: {parity0!s:5}  phase of parity 1 over: {parity1}"
    )

# %% [markdown]
# Phases are numbered 0, 1, 2 …, but a wait names only the **parity** p of its phase: 0 for even, 1 for odd.
# The barrier compares p with the parity of the phase that it is in. If they are equal, that phase is not
# over, and the wait goes on. If they differ, the phase with parity p was the one before, so the wait ends. A
# fresh barrier is in phase 0. Therefore a wait for parity 1 ends at once, as if there had been a phase −1.
#
# ![Phases of an mbarrier in time: 0, 1, 2, 3. A wait for parity 0 during phase 0 goes on; during phase 1 it is over. A wait for parity 1 during phase 0 is over at once.](drawings/phases.svg)
#
# **Predict.** With two slots, tile k is in slot k mod 2. In which round is tile 9 written? Rounds count from 0.

# %%
gpulab.predict("async.rounds", ...)

# %% [markdown]
# A slot is filled once in each **round**, and the phases of its two mbarriers count the rounds. In round r
# the consumer waits for the end of phase r of `full`, whose parity is r mod 2. The producer may write in
# round r when the consumer has read the tile of round r − 1, so it waits for the end of phase r − 1 of
# `empty`. In round 0 this is phase −1, which never existed: its parity is 1, so the wait ends at once. A wait
# is a loop that asks: `while (!ptx::mbarrier_test_wait_parity(&bar, p)) {}`.
#
# **Do.** Write `handshake`, which reverses tiles: `out` has the elements of each tile of 128 floats from the
# last to the first. Each warp has one role.
#
# - 64 threads a block. Warp 0 (`threadIdx.x < 32`) loads each tile, one `float4` a lane, by an ordinary load and a
#   store to the slot. Warp 1 reads the slot from its last element to its first and writes `out`.
# - Two slots, so that warp 0 can be one tile ahead. `full[s]` and `empty[s]` are initialised for 32 arrivals, since
#   every lane arrives.
# - A block has `tiles` tiles, at least one. Wait with `mbarrier_test_wait_parity`, because `try_wait` needs an H100
#   or a later GPU.
# - A `float4` has four floats, `x`, `y`, `z` and `w`. They have to be reversed, too.
# - **Budget:** no warp both loads and writes global memory; each mbarrier serves every second tile; one block
#   barrier, after the initialisation; each element read and written once.
#
# About 16 lines.


# %% nbgrader={"grade": false, "grade_id": "handshake", "locked": false, "schema_version": 3, "solution": true, "task": false}
handshake = cp.RawKernel(
    r"""
#include <cuda/ptx>
namespace ptx = cuda::ptx;

extern "C" __global__ void handshake(const float4* x, float4* out, int tiles) {
    __shared__ float4 slot[2][32];
    __shared__ unsigned long long full[2], empty[2];
    int lane = threadIdx.x % 32;
    x += blockIdx.x * tiles * 32;
    out += blockIdx.x * tiles * 32;
    // ### BEGIN SOLUTION
    if (threadIdx.x < 2) {
        ptx::mbarrier_init(&full[threadIdx.x], 32);
        ptx::mbarrier_init(&empty[threadIdx.x], 32);
    }
    __syncthreads();
    for (int k = 0; k < tiles; k++) {
        int s = k % 2, parity = k / 2 & 1;
        if (threadIdx.x < 32) {
            while (!ptx::mbarrier_test_wait_parity(&empty[s], parity ^ 1)) {}
            slot[s][lane] = x[k * 32 + lane];
            ptx::mbarrier_arrive(&full[s]);
        } else {
            while (!ptx::mbarrier_test_wait_parity(&full[s], parity)) {}
            float4 v = slot[s][31 - lane];
            ptx::mbarrier_arrive(&empty[s]);
            out[k * 32 + lane] = make_float4(v.w, v.z, v.y, v.x);
        }
    }
    // ### END SOLUTION
}
""",
    "handshake",
)

# %% nbgrader={"grade": true, "grade_id": "handshake-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("async.handshake", handshake)

# %% [markdown]
# **See.** The two warps side by side, step by step: thread 0 produces, thread 32 consumes.

# %%
gpulab.need(handshake)
four = cp.asarray(np.arange(4 * 128, dtype=np.float32))
gpulab.trace(handshake, (1,), (64,), (four, cp.empty_like(four), cp.int32(4)), threads=[0, 32])

# %% [markdown]
# The same kernel in cycles. What does warp 0 wait for most of the time?

# %%
gpulab.need(handshake)
gpulab.timeline(handshake, (1,), (64,), (four, cp.empty_like(four), cp.int32(4)))

# %% [markdown]
# It waits for its own loads, because a warp stops where it first needs what an ordinary load brings. In part B, a
# producer starts copies and does not wait for them.
#
# The sanitizer looks at the kernel twice: as it is, and without the consumer's arrival.

# %%
tiles = cp.asarray(np.arange(2 * 6 * 128, dtype=np.float32))
result = cp.empty_like(tiles)
print(gpulab.sanitize(handshake, (2,), (64,), (tiles, result, cp.int32(6))))
forgetful = cp.RawKernel(handshake.code.replace("ptx::mbarrier_arrive(&empty[s]);", ""), "handshake")
if forgetful.code == handshake.code:
    print("Your kernel arrives at empty in another way: take that line out by hand.")
try:
    forgetful((2,), (64,), (tiles, result, cp.int32(6)))
except Exception as error:
    print(error)

# %% [markdown]
# **Why.** A GPU that runs the forgetful kernel hangs, and prints nothing. The simulator notices that no
# thread can continue, and names what each one waits for: which barrier, which phase, and how many arrivals
# are missing. Look at these three first whenever a pipeline hangs.
#
# Why may a consumer arrive at `empty` before it stores to `out`? Because the value is in a register by then,
# and the slot is no longer needed. The earlier a warp arrives, the earlier the producer can go on.
#
# ## Detective · Right with three tiles
#
# A colleague has written a kernel that adds up tiles: the k-th tile of `out` is the sum of the tiles 0 to k
# of `x`, element by element. It has three slots. "I was careful with the parities, and it passes all of my
# tests. The producer need not wait in the first round, so I skip that wait. On the large data set the GPU
# hangs now and then; I suppose the driver is old."


# %%
COLLEAGUE = r"""
#include <cuda/ptx>
namespace ptx = cuda::ptx;

extern "C" __global__ void running(const float4* x, float4* out, int tiles) {
    __shared__ float4 slot[3][32];
    __shared__ unsigned long long full[3], empty[3];
    int lane = threadIdx.x % 32;
    x += blockIdx.x * tiles * 32;
    out += blockIdx.x * tiles * 32;
    if (threadIdx.x < 3) {
        ptx::mbarrier_init(&full[threadIdx.x], 32);
        ptx::mbarrier_init(&empty[threadIdx.x], 32);
    }
    __syncthreads();
    float4 sum = make_float4(0, 0, 0, 0);
    for (int k = 0; k < tiles; k++) {
        int s = k % 3, round = k / 3;
        if (threadIdx.x < 32) {
            if (round > 0)
                while (!ptx::mbarrier_test_wait_parity(&empty[s], round & 1)) {}
            slot[s][lane] = x[k * 32 + lane];
            ptx::mbarrier_arrive(&full[s]);
        } else {
            while (!ptx::mbarrier_test_wait_parity(&full[s], round & 1)) {}
            float4 v = slot[s][lane];
            ptx::mbarrier_arrive(&empty[s]);
            sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
            out[k * 32 + lane] = sum;
        }
    }
}
"""
running = cp.RawKernel(COLLEAGUE, "running")


def right(kernel, tiles):
    values = np.random.default_rng(tiles).standard_normal((tiles, 128)).astype(np.float32)
    found = cp.empty(values.shape, cp.float32)
    kernel((1,), (64,), (cp.asarray(values), found, cp.int32(tiles)))
    return np.allclose(found.get(), values.cumsum(axis=0), atol=1e-5)


for tiles in (1, 2, 3):
    print(tiles, "tiles:", "right" if right(running, tiles) else "wrong")

# %% [markdown]
# **Do.** Find out what happens with four tiles, and correct the kernel. Use the first cell for experiments: run the
# kernel with more tiles, or under the sanitizer. Copy the colleague's lines into the second cell, and change the one
# that is wrong. Keep the roles, so that no warp both loads and writes global memory.

# %%
# Your experiment.


# %% nbgrader={"grade": false, "grade_id": "parity", "locked": false, "schema_version": 3, "solution": true, "task": false}
parity = cp.RawKernel(
    r"""
#include <cuda/ptx>
namespace ptx = cuda::ptx;

extern "C" __global__ void running(const float4* x, float4* out, int tiles) {
    __shared__ float4 slot[3][32];
    __shared__ unsigned long long full[3], empty[3];
    int lane = threadIdx.x % 32;
    x += blockIdx.x * tiles * 32;
    out += blockIdx.x * tiles * 32;
    // ### BEGIN SOLUTION
    if (threadIdx.x < 3) {
        ptx::mbarrier_init(&full[threadIdx.x], 32);
        ptx::mbarrier_init(&empty[threadIdx.x], 32);
    }
    __syncthreads();
    float4 sum = make_float4(0, 0, 0, 0);
    for (int k = 0; k < tiles; k++) {
        int s = k % 3, round = k / 3;
        if (threadIdx.x < 32) {
            if (round > 0)
                while (!ptx::mbarrier_test_wait_parity(&empty[s], (round & 1) ^ 1)) {}
            slot[s][lane] = x[k * 32 + lane];
            ptx::mbarrier_arrive(&full[s]);
        } else {
            while (!ptx::mbarrier_test_wait_parity(&full[s], round & 1)) {}
            float4 v = slot[s][lane];
            ptx::mbarrier_arrive(&empty[s]);
            sum = make_float4(sum.x + v.x, sum.y + v.y, sum.z + v.z, sum.w + v.w);
            out[k * 32 + lane] = sum;
        }
    }
    // ### END SOLUTION
}
""",
    "running",
)

# %% nbgrader={"grade": true, "grade_id": "parity-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("async.parity", parity)

# %% [markdown]
# ### Your answer
#
# In three to five sentences: for which phase of which barrier does the colleague's producer wait in round 1, for
# which one should it wait, and why can no test with three tiles show it? Cite one number that you observed. A person
# reads this: 1 point for the cause, 1 point for your number.

# %% [markdown] nbgrader={"grade": true, "grade_id": "parity-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** In round 1 the producer waits for parity 1 of `empty[0]`. That barrier is in phase 0, because the
# consumer has not read the slot yet, so a wait for parity 1 is over at once and the producer overwrites tile 0. It
# should wait for the end of phase 0, parity 0. With three tiles every slot is used once and the producer never waits;
# with four tiles my run stopped: the consumer waited at `full[0]`, which lacked 32 of 32 arrivals.
#
# **1 point** (cause without an observation): The parity must be that of the round before, since the producer waits for
# the consumer to have read the previous round.
#
# **0 points:** The barrier is not initialised for enough arrivals. Or: there is a `__syncthreads()` missing in the
# loop.

# %% [markdown]
# ## Beyond · As much in flight with less memory
#
# Open-ended and ungraded. Write a kernel that computes what `ring` does, with any number of slots and any tile size
# that you like. The figure of merit is **bytes of a block in flight at its waits over the bytes of shared memory that
# it has**, for 64 tiles of 512 floats in each of 4 blocks.
#
# | kernel | in flight / shared memory |
# |---|---|
# | `single` | 0 |
# | `ring` | the cell below |
# | bound | 1 |

# %%
gpulab.need(ring)
many = cp.asarray(np.random.default_rng(2).random(4 * 64 * 512, dtype=np.float32))


def merit(kernel, threads=128):
    sums = cp.empty_like(many)
    report = gpulab.profile(kernel, (4,), (threads,), (many, sums, cp.int32(64)))
    if not np.array_equal(sums.get(), expected(many)):
        return "wrong"
    return f"{threads * report['async_bytes_in_flight'] / report['shared_bytes']:.2f}"


merit(ring)

# %%
# Your kernel, then merit(…).

# %% [markdown]
# ## Recap
#
# <details><summary>1. A GPU has 4 TB/s and a latency of 500 ns. How many bytes must be on their way?</summary>
#
# 4,000 GB/s · 500 ns = 2,000,000 bytes.
# </details>
#
# <details><summary>2. Why do four slots leave only two tiles in flight after a wait, with one barrier a
# tile?</summary>
#
# One slot holds the tile that has just been waited for. Another one held the tile before it, and is refilled
# only after the barrier that follows the wait.
# </details>
#
# <details><summary>3. A thread has waited with <code>__pipeline_wait_prior(0)</code>. May it read what its neighbour
# has copied?</summary>
#
# Not yet. The wait is for its own groups; a barrier has to follow.
# </details>
#
# <details><summary>4. Which wait at a fresh mbarrier is over at once?</summary>
#
# A wait for parity 1. The barrier is in phase 0, so the phase before it, whose parity is 1, counts as over.
# </details>
#
# <details><summary>5. Producer and consumer hang. What do you look at?</summary>
#
# At which barrier each one waits, for which phase, and how many arrivals that phase lacks. If all are
# missing, no thread has arrived in it: an arrival was forgotten, or the wait has the wrong parity. If some
# are missing, the barrier was initialised for a different number.
# </details>

# %%
gpulab.recap("23")

# %% [markdown]
# ### Cheat sheet
#
# | to | write |
# |---|---|
# | know the bytes in flight | bandwidth · latency (GB/s · ns = bytes) |
# | start a copy of 16 bytes | `__pipeline_memcpy_async(&slot[s][t], &x[i], 16)` |
# | close a group, wait | `__pipeline_commit()`, `__pipeline_wait_prior(groups that may be on their way)` |
# | find a slot | tile k: slot k mod S, round k div S |
# | initialise an mbarrier | `ptx::mbarrier_init(&bar, arrivals)`, then `__syncthreads()` |
# | consumer's wait | `full[s]`, parity of round r: `r & 1` |
# | producer's wait | `empty[s]`, parity of round r − 1: `(r & 1) ^ 1` |
#
# ### Claims you will meet, and what is right
#
# - *cp.async makes a kernel faster.* Only if something else is done before the wait. If the wait follows at once,
#   it saves registers but no time.
# - *More stages are always better.* Beyond bandwidth · latency nothing more arrives per second, and shared memory for
#   slots lowers the number of blocks.
# - *`__pipeline_wait_prior(0)` is a barrier.* It waits for the thread's own copies. Those of other threads may not
#   have arrived.
# - *An mbarrier is a faster `__syncthreads()`.* It does something else: arriving and waiting are separate, and only the
#   threads that use it take part, not the whole block.
#
# ### References
#
# 1. J. D. C. Little, "A Proof for the Queuing Formula: L = λW", *Operations Research* 9, 1961.
# 2. NVIDIA, *CUDA Programming Guide*, asynchronous barriers and asynchronous data copies.
#    https://docs.nvidia.com/cuda/cuda-programming-guide/
# 3. NVIDIA, *Parallel Thread Execution ISA*, sections on `cp.async` and `mbarrier`.
#    https://docs.nvidia.com/cuda/parallel-thread-execution/
# 4. NVIDIA, *NVIDIA A100 Tensor Core GPU Architecture*, 2020 (asynchronous copy, asynchronous barrier).
# 5. NVIDIA, *CUTLASS: Efficient GEMM in CUDA*, on software pipelining.
#    https://docs.nvidia.com/cutlass/
