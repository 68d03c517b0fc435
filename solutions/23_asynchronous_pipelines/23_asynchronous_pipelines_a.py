# ---
# jupyter:
#   gpulab:
#     lab: "23"
#     hours: 3.5
#     topics: [C25.1, C25.2]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 23A · Asynchronous pipelines
#
# **Three to four hours.** You have done lab 07A and can write a CUDA C++ kernel, and you know shared memory,
# barriers and bank conflicts from labs 04 and 05. You need no GPU: the kernels of this part run on a simulated
# A100, those of part B on a simulated H100.
#
# A load from memory takes hundreds of cycles. So far you have hidden that time behind other warps. The fastest
# kernels of the last six years do something else: they send for their data long before they need them and compute
# in the meantime. This lab is about how a kernel keeps track of data that are still on their way.
#
# By the end you can
#
# 1. work out how many bytes must be on their way to keep a GPU's memory busy;
# 2. write a ring of slots that `cp.async` fills, with one barrier a tile;
# 3. let one warp copy and another one compute, with mbarriers instead of block barriers;
# 4. say which phase of an mbarrier a wait is for, and find a wait that is one round off.

# %%
import numpy as np

import gpulab
from gpulab import cupy as cp
from gpulab import hardware

gpulab.start("23")

# %% [markdown]
# ## 1 · How much must be on its way
#
# Imagine a delivery service that brings one parcel a second, and each parcel is on the road for a minute. If you
# order one parcel and wait for it before you order the next, you get one a minute. To get one every second, 60
# parcels must be on the road at any time. This is **Little's law**: what is on its way equals the rate times the
# time that each item takes.
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
# **Why.** In lab 04 you reached the same number of bytes with many warps, each with a load or two on its way. Every
# load needs a register for the data that it will bring, and every warp needs all of its registers, so warps are an
# expensive way to wait. A slot in shared memory needs neither.
#
# **Do.** Write `depth(bandwidth, latency, sms, blocks, tile)`, which returns the number of slots that each block
# needs.
#
# - `bandwidth` is in GB/s and `latency` in ns; both are integers, and so are all others.
# - `sms` SMs run `blocks` blocks each; a tile has `tile` bytes. All blocks share the bytes in flight equally.
# - A block's share is rounded up to whole tiles. One slot more is for the tile that the block is working on, which
#   has already arrived.
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
# **See.** What your function says of an A100 with two blocks on each SM. The smaller the tile, the more of them have to
# be on their way.

# %%
gpulab.need(depth)
gpulab.plot.bars(
    {f"tiles of {kib} KiB": depth(2039, 391, 108, 2, 1024 * kib) for kib in (1, 2, 4, 8)},
    "slots of each block",
)

# %% [markdown]
# ## 2 · A ring of slots
#
# An ordinary load brings its data into a register, and a second instruction stores it to shared memory. Between the
# two the thread waits. Since Ampere there is one instruction for both, **`cp.async`**: it tells the memory system
# where to read and where in shared memory to write, and the thread goes on at once.
#
# ![An ordinary load passes through a register and the thread waits for it. A cp.async goes from global to shared memory by itself, and the thread goes on.](drawings/without_registers.svg)
#
# CUDA C++ has three functions for it, in `<cuda_pipeline.h>`:
#
# | call | meaning |
# |---|---|
# | `__pipeline_memcpy_async(to, from, 16)` | this thread sends a copy of 4, 8 or 16 bytes |
# | `__pipeline_commit()` | the copies that it has sent since the last commit are one **group** |
# | `__pipeline_wait_prior(n)` | it waits until all but its `n` youngest groups have arrived |
#
# Groups belong to a thread. After its wait a thread sees what *it* has copied; what other threads have copied it may
# read behind a barrier.
#
# Run the cell. Its kernel copies one tile, waits for it, and adds to each `float4` of the tile the next one; to the last
# one it adds the first. So each `float4` is needed by two threads, and one of them has not copied it.


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
# The result is right, and nothing was gained: when a thread waits, all that it has sent is the tile that it waits
# for. The metric `async_bytes_in_flight` says so. It is the number of bytes of a thread that were still on their way
# at its waits, averaged over the bytes that it waited for.
#
# The remedy is a **ring**. With four slots, tile k goes into slot k mod 4. Three tiles are sent before the loop. In
# turn k the block waits for tile k only, reads it, and sends tile k + 3, into the slot that tile k − 1 has left.
#
# ![Four slots in a ring. While tile 4 is read in slot 0, the tiles 5 and 6 are on their way into slots 1 and 2, and tile 7 is sent into slot 3, which tile 3 has left.](drawings/ring.svg)
#
# **See.** What happens in each turn of the loop:

# %%
for k in range(6):
    print(f"turn {k}: read tile {k} in slot {k % 4}, send tile {k + 3} into slot {(k + 3) % 4}")

# %% [markdown]
# The order within a turn decides how many barriers it takes. A barrier behind the wait says two things at once: tile
# k is there for all threads, and all threads have finished turn k − 1. So the slot of tile k − 1 is free, and the
# next tile can be sent right behind that barrier.
#
# **Do.** Write `ring`, which computes what `single` does: in each tile of 128 `float4`, thread t writes
# `sum(tile[t], tile[(t + 1) % 128])`.
#
# - 128 threads a block; each copies one `float4` of every tile. A block has `tiles` tiles, at least one.
# - Four slots, filled by `__pipeline_memcpy_async`. `tiles` may be smaller than the number of slots.
# - An empty group counts as a group. If you commit in every turn, sent or not, the number of groups behind tile k is
#   always the same.
# - **Budget:** two tiles in flight behind each wait (fewer at the end), one block barrier a tile, four slots of shared
#   memory, each element read and written once.
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
# **See.** Both kernels on the same 64 tiles. What they read and write is the same; what is on its way when they wait
# is not.

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
# When does a block work, and when does it wait? `gpulab.timeline` takes what each warp did, and works out when it could
# have done it if an instruction took 4 cycles and a copy as long as the data sheet says. First the kernel with one tile at
# a time, then yours. Move the slider.

# %%
gpulab.timeline(single, (1,), (128,), (x, out, cp.int32(8)))

# %%
gpulab.need(ring)
gpulab.timeline(ring, (1,), (128,), (x, out, cp.int32(8)))

# %% [markdown]
# Each thread reads two neighbours. Do its loads from shared memory meet in the same banks?

# %%
gpulab.show("async.ring", ring, view="banks")

# %% [markdown]
# **Why.** In a long loop each of the 128 threads has 2 · 16 bytes behind it when it waits, which is 4 KiB a block.
# You know from section 1 that two such blocks are just enough for an A100's SM. The price is shared memory: four
# slots instead of one. This is the loop inside CUTLASS's kernels for Ampere, and what Triton makes of
# `num_stages=4`. Deeper is not better without end, because shared memory that holds slots cannot hold other blocks.
#
# ## 3 · Two warps hand over tiles
#
# In the ring all threads do everything: they send, wait, meet and compute. A **barrier of the block** is a crude
# tool for that, since it stops warps which have nothing to wait for. If one warp only brings tiles and another one
# only uses them, each has to wait for one event: the **consumer** until a slot is full, the **producer** until it is
# empty again.
#
# ![The producer waits until a slot is empty, fills it and arrives at its full barrier. The consumer waits for full, reads the slot and arrives at its empty barrier.](drawings/full_and_empty.svg)
#
# Each of these events has an **mbarrier**, a 64-bit word in shared memory. It counts arrivals. When the number it was
# initialised with has arrived, its **phase** is over and the next one begins, with the count full again. A thread
# arrives without waiting, and waits without arriving; a block barrier cannot separate the two.
#
# | call (`namespace ptx = cuda::ptx`) | meaning |
# |---|---|
# | `ptx::mbarrier_init(&bar, n)` | `bar` counts n arrivals; one thread does it, and a barrier of the block follows |
# | `ptx::mbarrier_arrive(&bar)` | one arrival; the thread goes on |
# | `ptx::mbarrier_test_wait_parity(&bar, p)` | whether the phase of parity p is over |
#
# The last one asks and does not wait. The cell asks a barrier for one arrival: when it is fresh, after one arrival and
# after two.

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
# Phases are numbered 0, 1, 2 …, and a wait names only the **parity** of the one it is for: 0 for even, 1 for odd. The
# barrier knows the phase that it is in. If that phase has parity p, it is not over and the wait goes on. If it has
# the other parity, the phase with parity p was the one before, and the wait is over. For a fresh barrier, which is in
# phase 0, a wait for parity 1 is therefore over at once, as if there had been a phase −1.
#
# ![Phases of an mbarrier in time: 0, 1, 2, 3. A wait for parity 0 during phase 0 goes on; during phase 1 it is over. A wait for parity 1 during phase 0 is over at once.](drawings/phases.svg)
#
# **Predict.** With two slots, tile k is in slot k mod 2. In which round is tile 9 written? Rounds count from 0.

# %%
gpulab.predict("async.rounds", ...)

# %% [markdown]
# The phases of a slot's two barriers count its rounds. In round r the consumer waits for the end of phase r of
# `full`, whose parity is r mod 2. The producer may write in round r when the consumer has read round r − 1, so it
# waits for the end of phase r − 1 of `empty`. In round 0 that is the phase −1 that was never there: parity 1, over at
# once. A wait is a loop that asks: `while (!ptx::mbarrier_test_wait_parity(&bar, p)) {}`.
#
# **Do.** Write `handshake`, which turns tiles around: `out` has each tile of 128 floats from its last element to its
# first. Each warp has one role.
#
# - 64 threads a block. Warp 0 (`threadIdx.x < 32`) loads each tile, one `float4` a lane, by an ordinary load and a
#   store to the slot. Warp 1 reads the slot from its last element to its first and writes `out`.
# - Two slots, so that warp 0 can be one tile ahead. `full[s]` and `empty[s]` are initialised for 32 arrivals, since
#   every lane arrives.
# - A block has `tiles` tiles, at least one. Wait by `mbarrier_test_wait_parity`: `try_wait` exists from the
#   H100 on.
# - **Budget:** no warp both loads and writes global memory; each mbarrier serves every second tile; one block barrier,
#   behind the initialisation; each element read and written once.
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
# And in cycles. What does warp 0 wait for most of the time?

# %%
gpulab.need(handshake)
gpulab.timeline(handshake, (1,), (64,), (four, cp.empty_like(four), cp.int32(4)))

# %% [markdown]
# It waits for its own loads, because an ordinary load stops the warp that needs its data. Part B has
# copies that a producer sends and forgets.
#
# What the sanitizer says of the kernel, and what it says when the consumer forgets to arrive:

# %%
tiles = cp.asarray(np.arange(2 * 6 * 128, dtype=np.float32))
result = cp.empty_like(tiles)
print(gpulab.sanitize(handshake, (2,), (64,), (tiles, result, cp.int32(6))))
forgetful = cp.RawKernel(handshake.code.replace("ptx::mbarrier_arrive(&empty[s]);", ""), "handshake")
try:
    forgetful((2,), (64,), (tiles, result, cp.int32(6)))
except Exception as error:
    print(error)

# %% [markdown]
# **Why.** A GPU that runs the forgetful kernel hangs, and prints nothing. The simulator sees that no thread can go on
# any more and names what each one waits for: which barrier, which phase, how many arrivals are missing. Look at these
# three numbers first whenever a pipeline hangs.
#
# Why does the store of `out` come after the arrival at `empty`? Because the value is in a register by then. A warp that
# arrives as early as possible lets the producer go on as early as possible.
#
# ## Detective · Right with three tiles
#
# A colleague has written a kernel that adds up tiles: the k-th tile of `out` is the sum of the tiles 0 to k of `x`,
# element by element. It has three slots. "I was careful with the parities, and it passes all of my tests. The
# producer need not wait in the first round, so I skip that. On the large data set the GPU hangs now and then; I
# suppose the driver is old."


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
# **Do.** Find out what happens with four tiles, and correct the kernel. The first cell is free: run it with more
# tiles, ask the sanitizer. The second one takes the kernel: copy the colleague's lines into it and change the one that
# is wrong. The roles stay as they are, so no warp both loads and writes global memory.

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
# <details><summary>2. Why do four slots leave only two tiles in flight behind a wait, with one barrier a
# tile?</summary>
#
# One slot holds the tile that is waited for, and one is that of the tile before, which is refilled behind the barrier,
# after the wait.
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
# That for parity 1: the barrier is in phase 0, so the last phase with parity 1 counts as over.
# </details>
#
# <details><summary>5. Producer and consumer stand still. What do you look at?</summary>
#
# At which barrier each one waits, in which phase, and how many arrivals that phase lacks. All are missing if no thread
# arrived in it, which points to a wrong parity; some are missing if the count of the initialisation is wrong.
# </details>

# %%
gpulab.recap("23")

# %% [markdown]
# ### Cheat sheet
#
# | to | write |
# |---|---|
# | know the bytes in flight | bandwidth · latency (GB/s · ns = bytes) |
# | send 16 bytes | `__pipeline_memcpy_async(&slot[s][t], &x[i], 16)` |
# | close a group, wait | `__pipeline_commit()`, `__pipeline_wait_prior(groups that may be on their way)` |
# | find a slot | tile k: slot k mod S, round k div S |
# | initialise an mbarrier | `ptx::mbarrier_init(&bar, arrivals)`, then `__syncthreads()` |
# | consumer's wait | `full[s]`, parity of round r: `r & 1` |
# | producer's wait | `empty[s]`, parity of round r − 1: `(r & 1) ^ 1` |
#
# ### Claims you will meet, and what is right
#
# - *cp.async makes a kernel faster.* Only if something else is done before the wait. Sent and waited for at once, it
#   saves registers and no time.
# - *More stages are always better.* Beyond bandwidth · latency nothing more arrives per second, and shared memory for
#   slots lowers the number of blocks.
# - *`__pipeline_wait_prior(0)` is a barrier.* It waits for the thread's own copies. Others may not have arrived.
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
