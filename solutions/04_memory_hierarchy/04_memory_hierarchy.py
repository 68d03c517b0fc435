# ---
# jupyter:
#   gpulab:
#     lab: "04"
#     hours: 5
#     topics: [C4.1, C4.2, C4.3, C4.4, C4.5, C4.6, C4.7, C4.8, C4.9, C4.10, C4.11, C4.12, C4.13]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 04 · The memory hierarchy
#
# **4.5 to 7 hours.** This lab builds on lab 03: launches, shared memory, `cuda.syncthreads()`, and how to read
# a report.
#
# Most kernels spend their time waiting for bytes. How long they wait depends on which thread asks for which byte,
# and on where that byte is stored. In this lab every access to memory is counted, so you can see what memory does
# without a GPU and without a stopwatch.
#
# By the end of this lab, you can
#
# 1. predict how many sectors a warp's access moves before you run it;
# 2. arrange threads, or data, so that every byte that moves is used;
# 3. use a tile in shared memory, with its barriers in the right places and without bank conflicts;
# 4. say whether a value lives in a register or in local, shared, constant or global memory, and which threads can
#    see it;
# 5. name the memory that holds a kernel up, and cite the count that proves it.
#
# | sitting | sections | hours | what it is about |
# |---|---|---|---|
# | 1 | 1 to 7, first detective | 2 to 3 | sectors, and tiles in shared memory |
# | 2 | 8 to 14, second detective, recap | 2.5 to 4 | banks, registers, caches, and the memories beyond them |

# %%
import numpy as np

import gpulab
from gpulab import cuda, plot

gpulab.start("04")

# %% [markdown]
# ## 1 · Where bytes live
#
# A kernel uses the memories in this table. From top to bottom they get slower, and more threads can see them.
# They do not always get larger, however. The registers of one thread are the smallest store in the table, but all
# the registers of a GPU together hold at least as much as its shared memory and L1.
#
# | memory | who can see a value in it | how long the value stays | where the memory is |
# |---|---|---|---|
# | **registers** | one thread | until the thread ends | in the SM |
# | **shared memory** | one block | until the block ends | in the SM, in the same store as the L1 |
# | **L1 cache** | the blocks on one SM | until it is replaced | in the SM |
# | **L2 cache** | all SMs | until it is replaced | on the GPU's chip |
# | **global memory** | all threads and the host | until it is freed | DRAM beside the chip |
#
# Three more names stand for special ways of using DRAM. **Local memory** belongs to one thread, **constant
# memory** is read through a small cache of its own, and **texture memory** is read through the L1. If a GPU were
# a kitchen, registers would be the cook's hands, shared memory the worktop of one team, the caches the pantry,
# and DRAM the warehouse in the next street.
#
# **Predict.** An A100 has 108 SMs, and each SM has 65,536 registers of 4 bytes. How many MiB do all these
# registers hold together?

# %%
gpulab.predict("memory.all_registers", ...)

# %%
from gpulab import hardware

MIB, TB = 2**20, 1e12
print("            registers      shared          L2     DRAM  shared memory        DRAM")
for name in ("T4", "A100", "H100", "RTX 4090"):
    gpu = hardware.find(name)
    sms, limits = int(gpu.sms), gpu.capability
    sizes = (sms * limits.registers_per_sm * 4, sms * limits.shared_per_sm, float(gpu.l2_bytes))
    shared_rate = sms * 32 * 4 * float(gpu.boost_clock)  # in every SM 32 banks of 4 bytes per clock
    print(
        f"{name:8}" + "".join(f"{size / MIB:8.1f} MiB" for size in sizes),
        f"{float(gpu.dram_bytes) / 1e9:4.0f} GB",
        f"{shared_rate / TB:10.1f} TB/s{float(gpu.dram_bandwidth) / TB:7.2f} TB/s",
    )

a100 = hardware.find("A100")
print(f"\nA100, measured: L2 {a100.l2_seen}, DRAM {a100.dram_seen}   ({a100.l2_seen.source})")
gpulab.predict("memory.all_registers", measured=int(a100.sms) * a100.capability.registers_per_sm * 4 / MIB)

# %% [markdown]
# **See.** The figure shows how long one access to each level takes, against how much the level holds. Both axes
# are logarithmic.

# %% jupyter={"source_hidden": true}
ax = plot.axes(7, 3.4)
for name, colour, marker, drop in (("A100", plot.DEEP, "o", -11), ("H100", plot.ALARM, "s", 5)):
    gpu = hardware.find(name)
    levels = {
        "shared memory of an SM": (gpu.capability.shared_per_sm, gpu.shared_latency),
        "L2": (gpu.l2_bytes, gpu.l2_latency),
        "DRAM": (gpu.dram_bytes, gpu.dram_latency),
    }
    points = [(float(size), float(latency)) for size, latency in levels.values()]
    ax.plot(*zip(*points, strict=True), marker + "-", color=colour)
    ax.annotate(name, points[-1], xytext=(8, drop), textcoords="offset points", color=colour)
for level, point, offset in zip(levels, points, ((18, -14), (-26, 8), (-36, 8)), strict=True):
    ax.annotate(level, point, xytext=offset, textcoords="offset points", color=plot.INK)
ax.set(
    xscale="log",
    yscale="log",
    xlabel="bytes that the level holds",
    ylabel="latency (cycles)",
    ylim=(15, 1500),
)
print(gpu.dram_latency.source)
plot.picture(ax, "Shared memory answers soonest and holds least, DRAM the other way round.")

# %% [markdown]
# An access to DRAM takes more than twenty times as long as one to shared memory, but DRAM holds hundreds of
# thousands of times as much.
#
# **Why.** A large memory is far away, and finding a byte in it takes longer. The registers of all SMs together are
# as large as a cache, and on the T4 larger than its L2, because thousands of waiting threads keep their values
# there. Sizes differ between GPUs, but the order of the levels stays the same.
#
# ## 2 · Where bandwidth comes from
#
# **HBM** (high-bandwidth memory) is DRAM in stacks beside the GPU's chip, with very many wires at a moderate
# speed. **GDDR** has fewer wires and drives them faster. In both, bandwidth = bus width in bits ÷ 8 × bits per
# second per **pin**.
#
# ![The memories from the nearest to the farthest: registers of a thread, shared memory and L1 of an SM, L2 and DRAM of the GPU. Each is slower than the one before it, and more threads can see it.](drawings/levels.svg)
#
# DRAM cannot read one byte alone. A bank first copies a whole **row** into its **row buffer**, which is 1 KB in
# HBM2 (JEDEC JESD235, pseudo channel). Further bytes of an open row follow at full speed, but the row must be
# closed before another one can be opened. So DRAM works best when neighbouring bytes are read soon after one
# another. Accesses spread over all memory get less than the pins allow, even if they waste no byte. This lab
# counts bytes and sectors, but it does not model rows.
#
# **Predict.** The H100 (SXM5) has five stacks of 1,024 bits, so 5,120 pins (NVIDIA H100 whitepaper, 2022). Its
# bandwidth is in the table above. How many Gbit/s does one pin carry?

# %%
gpulab.predict("memory.pin_rate", ...)

# %%
pin_rate = float(hardware.find("H100").dram_bandwidth) * 8 / 5120
gpulab.predict("memory.pin_rate", measured=pin_rate / 1e9)

# %% [markdown]
# **Effective bandwidth** is what a program achieves: the bytes it reads plus the bytes it writes, divided by the
# time. **Utilisation** is effective bandwidth divided by the peak. The first has the unit B/s and the second has
# none, but older guides mix them up.
#
# **Predict.** Suppose that a copy of 2²⁸ float32 numbers took 1.21 ms on an A100. What is its effective bandwidth
# in GB/s, and what is its utilisation in percent?

# %%
gpulab.predict("memory.effective", ...)
gpulab.predict("memory.utilisation", ...)

# %%
moved = 2 * 4 * 2**28  # every element is read and written
peak = float(hardware.find("A100").dram_bandwidth)
gpulab.predict("memory.effective", measured=moved / 1.21e-3 / 1e9)
gpulab.predict("memory.utilisation", measured=100 * moved / 1.21e-3 / peak)
print(f"the least time that the peak allows: {1e3 * moved / peak:.2f} ms")
print(f"utilisation that a measured kernel reached: {100 * float(a100.dram_seen) / peak:.0f} %")

# %% [markdown]
# **Why.** No program reaches the peak, because DRAM must be refreshed, rows must be opened, and the bus must be
# switched from reading to writing. If you measure a time below the least time, not all bytes went to DRAM.
#
# ## 3 · Thirty-two bytes at a time
#
# When a warp runs a load, its 32 lanes submit their 32 addresses together. This is one **request**. Memory moves
# in **sectors**: blocks of 32 bytes that start at a multiple of 32 and always move as a whole. A request costs as
# many sectors as it touches. The order of the lanes does not matter, and two lanes that use the same sector pay
# for it once (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory"). An access that needs few
# sectors is called **coalesced**.
#
# ![32 neighbouring float32 numbers are 128 bytes: four sectors of 32 bytes, each used by eight lanes. If the first address is moved by one element, five sectors are touched.](drawings/sectors.svg)
#
# **Efficiency** is the number of bytes asked for, divided by the number of bytes moved. With 4-byte loads the
# worst case is a separate sector for each lane. Each lane then uses 4 of 32 bytes, so the efficiency is 4 ÷ 32 =
# 12.5 %, and no pattern makes it lower.
#
# **Predict.** All 32 lanes of a warp load the same 4-byte word. How many sectors does the request move?

# %%
gpulab.predict("memory.same_word", ...)

# %% [markdown]
# **Do.** Write `sectors(addresses, size)`, which counts the sectors that one request moves. About 4 lines.
#
# - Input: `addresses` is a list with the byte address of each lane that asks. It may be empty. `size` is the
#   number of bytes that each of these lanes wants, starting at its address.
# - Output: the number of sectors that the request moves.
# - A record of 12 bytes may span two sectors.
# - Full marks need the right number for every request. Nothing else is counted.


# %% nbgrader={"grade": false, "grade_id": "sectors", "locked": false, "schema_version": 3, "solution": true, "task": false}
def sectors(addresses, size):
    ### BEGIN SOLUTION
    touched = set()
    for address in addresses:
        touched.update(range(address // 32, (address + size - 1) // 32 + 1))
    return len(touched)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "sectors-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("memory.sectors", sectors)

# %% [markdown]
# ## 4 · Stride and shift
#
# You now have a model of what a request costs, and here is an experiment to test it. In one warp, lane `i` loads
# element `shift + stride * i`. The array starts at a multiple of 256 bytes, as all device arrays do.


# %%
@cuda.jit
def strided(a, b, stride, shift):
    i = cuda.grid(1)
    b[i] = a[shift + stride * i]


# %% [markdown]
# **Predict.** How many sectors does the load move with a stride of 2 and no shift? And how many with a stride of
# 1 and a shift of 1?

# %%
gpulab.predict("memory.stride_2", ...)
gpulab.predict("memory.shift_1", ...)

# %%
a = cuda.to_device(np.arange(640, dtype=np.float32))
b = cuda.device_array(32, np.float32)


def counted(stride, shift):
    return gpulab.profile(strided[1, 32], a, b, stride, shift)["global_load_sectors"]


by_stride = {stride: counted(stride, 0) for stride in range(1, 17)}
by_shift = {shift: counted(1, shift) for shift in range(17)}

# %% jupyter={"source_hidden": true}
axes = plot.axes(9, 3.2, 1, 2, sharey=True)
for ax, values, name in ((axes[0], by_stride, "stride"), (axes[1], by_shift, "shift")):
    ax.bar(list(values), list(values.values()), color=plot.DEEP, width=0.7)
    ax.axhline(4, color=plot.ALARM, linewidth=1.2)
    ax.set(xlabel=f"{name} (elements of 4 B)", xticks=range(0, 17, 4))
axes[0].set(ylabel="sectors per request", ylim=(0, 36))
axes[0].annotate("a sector for each lane", (12, 32.6), ha="center", color=plot.INK)
axes[1].annotate(
    "the least possible: 4", (8, 4), xytext=(0, 14), textcoords="offset points", ha="center", color=plot.ALARM
)
plot.picture(
    axes[0], "A stride costs more with each step, up to 32 sectors; a shift costs one more, or none."
)

# %% [markdown]
# Each step in stride costs four more sectors, until at a stride of 8 every lane has a sector of its own. A shift
# costs one more sector, or none if it is a multiple of 8.
#
# **Try it.** Drag the sliders. Can a shift make a load with stride 2 more expensive? What changes if an element
# has 16 bytes?

# %%
from gpulab.plot.moving import Pattern, WarpAccess

WarpAccess([Pattern(stride=2)])

# %% [markdown]
# Now compare your own function with these counts. The cell lists the strides and shifts for which they disagree.

# %%
gpulab.need(sectors)
[s for s in by_stride if sectors([4 * s * lane for lane in range(32)], 4) != by_stride[s]] + [
    s for s in by_shift if sectors([4 * (s + lane) for lane in range(32)], 4) != by_shift[s]
]

# %% [markdown]
# **Do.** Write the kernel `copy(a, b)`, which makes `b` equal to `a`. About 2 lines.
#
# - Input and output: `a` and `b` are one-dimensional float32 arrays of the same size.
# - Launch: 1,024 threads, whatever the size, so in a large array each thread copies several elements.
# - **Budget:** as many sectors loaded as `a` has, and as many stored as `b` has. That is 4 for each 32 elements.
# - Full marks need the right result and this budget, for loads, for stores and for both together, at every size.
# - Sizes include 1,023, 65,539 and 0.


# %% nbgrader={"grade": false, "grade_id": "copy", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def copy(a, b):
    ### BEGIN SOLUTION
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = a[i]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "copy-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("memory.copy", copy)

# %% [markdown]
# **See.** The picture shows one load and one store of one warp. Each row is 128 bytes of memory, each group of
# eight cells is a sector, and the number in a cell is the lane that wants it.

# %%
gpulab.need(copy)
gpulab.show("memory.copy", copy, view="accesses")

# %% [markdown]
# **Why.** On a CPU you would give each core one stretch of the array, so that it walks along its own cache lines.
# On a GPU the 32 lanes of a warp load at the same moment, so neighbouring elements should belong to neighbouring
# lanes. The rule of 32-byte sectors holds for compute capability 6.0 and later.
#
# ## 5 · Wider loads
#
# A lane can load up to 16 bytes with one instruction (from Blackwell on, 32 bytes of global memory). With wider
# loads a copy moves the same bytes and sectors in fewer requests, so a warp spends fewer instructions on asking.
#
# In CUDA C++ one 16-byte instruction loads a `float4`, as in lab 07. numba's arrays have no such elements, but
# you can **view** the same bytes as wider ones: `a.view(np.float64)` takes two floats at a time. Nothing is
# computed, so the 8 bytes need not make sense as one number. The address must be a multiple of the width.
#
# **Predict.** How many sectors does one request move when the 32 lanes load 32 neighbouring elements of 8 bytes?

# %%
gpulab.predict("memory.wide_sectors", ...)


# %%
@cuda.jit
def copy_4(a, b):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        b[i] = a[i]


@cuda.jit
def copy_8(a, b):
    pairs, out = a.view(np.float64), b.view(np.float64)
    for i in range(cuda.grid(1), pairs.size, cuda.gridsize(1)):
        out[i] = pairs[i]


@cuda.jit
def copy_16(a, b):
    fours, out = a.view(np.complex128), b.view(np.complex128)
    for i in range(cuda.grid(1), fours.size, cuda.gridsize(1)):
        out[i] = fours[i]


a = cuda.to_device(np.arange(65536, dtype=np.float32))
b = cuda.device_array_like(a)
print("bytes per lane   requests   sectors per request   sectors")
for width, kernel in ((4, copy_4), (8, copy_8), (16, copy_16)):
    report = gpulab.profile(kernel[4, 256], a, b)
    print(
        f"{width:14}{report['global_load_requests']:11,}{report['global_load_sectors_per_request']:22.1f}"
        f"{report['global_load_sectors']:10,}"
    )

# %% [markdown]
# **See.** Look at the last row. A `complex128` has 16 bytes, yet the requests did not halve again and the sectors
# doubled. Find out why before you read on. How many load instructions does the compiler generate for one complex
# number, and how far apart are the lanes in each of them?
#
# **Why.** numba loads the real part and then the imaginary part, with two 8-byte loads whose lanes are 16 bytes
# apart. Each load uses half of every sector that it touches. The second load most likely finds its sectors in the
# L1, but it asks for them again. A wide type does not guarantee a wide load, so check the report.
#
# The read-only load `__ldg`, which older guides recommend, is neither a wide load nor a prefetch. It reads
# through the L1's read-only path, and compilers emit it by themselves where they can prove that nothing writes
# the data.
#
# ## 6 · A tile in shared memory
#
# In a direct transpose, one access always goes the wrong way: if neighbouring lanes read along a row, they write
# down a column.


# %%
@cuda.jit
def transpose_plain(a, out):
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        out[x, y] = a[y, x]


# %% [markdown]
# **Predict.** How many sectors does one store request of `transpose_plain` move when a row of `out` has 96
# elements?

# %%
gpulab.predict("memory.column", ...)

# %%
matrix = cuda.to_device(np.arange(96 * 128, dtype=np.float32).reshape(96, 128))
turned = cuda.device_array((128, 96), np.float32)
plain = gpulab.profile(transpose_plain[(4, 3), (32, 32)], matrix, turned)
plain

# %% [markdown]
# **See.** These are the load and the store of one warp, both from the same source line.

# %%
gpulab.show(plain)

# %% [markdown]
# **Do.** Write the kernel `transpose(a, out)`. Shared memory has no sectors, so turn the tile there: the block
# copies 32 × 32 elements into shared memory along rows of `a`, waits, and writes them along rows of `out`. About
# 10 lines.
#
# - Input: `a`, a float32 matrix.
# - Output: `out`, its transpose. If `a` has the shape (rows, columns), `out` has (columns, rows).
# - Launch: blocks of (32, 32) threads over `a`, where x counts the columns of `a` and y its rows.
# - **Budget:** as many sectors loaded as `a` has, and as many stored as `out` has. That is 4 for each 32
#   elements.
# - Full marks need the right result and this budget, for loads, for stores and for both together, at every size.
# - Sizes include 1025 × 33 and 0 × 5.
#
# ![A transpose through shared memory: the warp reads a row of the tile from global memory, a barrier follows, the warp reads a column of the tile in shared memory and writes it as a row. Both global accesses run along rows.](drawings/turned_tile.svg)


# %% nbgrader={"grade": false, "grade_id": "transpose", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def transpose(a, out):
    ### BEGIN SOLUTION
    tile = cuda.shared.array((32, 32), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * 32 + tx
    y = cuda.blockIdx.x * 32 + ty
    if x < a.shape[0] and y < a.shape[1]:
        out[y, x] = tile[tx, ty]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "transpose-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("memory.transpose", transpose)

# %%
gpulab.need(transpose)
plain.compare(gpulab.profile(transpose[(4, 3), (32, 32)], matrix, turned))

# %% [markdown]
# **Watch it run.** The trace shows two warps of one block of your kernel, each with one row of the tile. Compare
# the cells of the tile that a warp writes before the barrier with the cells that it reads after it.

# %%
one_tile = cuda.to_device(np.arange(32 * 32, dtype=np.float32).reshape(32, 32))
gpulab.trace(transpose[(1, 1), (32, 32)], one_tile, cuda.device_array((32, 32), np.float32), threads=[0, 32])

# %% [markdown]
# **Why.** The walk along a column has moved from global to shared memory, where any word is as near as any other.
# This is nearly true, but the report has a new line about banks, which section 8 explains.
#
# ## Detective · The tile that came too early
#
# `centre` should subtract from every element the mean of its tile of 64. In this first attempt, each block loops
# over several tiles. Run it: the result agrees with NumPy in every element.


# %%
@cuda.jit
def centre_first_try(a, out):
    tile = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    for first in range(cuda.blockIdx.x * 64, a.size, cuda.gridDim.x * 64):
        width = min(64, a.size - first)
        if t < width:
            tile[t] = a[first + t]
        cuda.syncthreads()
        total = np.float32(0)
        for k in range(width):
            total += tile[k]
        if t < width:
            out[first + t] = tile[t] - total / np.float32(width)


a = np.random.default_rng(4).random(4096).astype(np.float32)
out = np.zeros_like(a)
centre_first_try[2, 64](a, out)
np.abs(out - (a.reshape(-1, 64) - a.reshape(-1, 64).mean(axis=1, keepdims=True)).ravel()).max()

# %% [markdown]
# On another GPU, with different timing, it can be wrong. The block has two warps, and the simulator ran them in
# step. `gpulab.sanitize` reruns a kernel and records which threads read and write each word, and what orders
# these accesses. It could also tell you the cure, but that is left to you.

# %%
gpulab.sanitize(centre_first_try[2, 64], a, out, cures=False)

# %% [markdown]
# The report names two accesses that nothing orders, although a barrier separates their lines. To which iteration of
# the loop does each belong, and what would the slower warp read?
#
# **Do.** Work out which warp does what too early, and which warp that harms. Then write the corrected kernel
# `centre(a, out)`.
#
# - Input and output: one-dimensional float32 arrays of the same size. The last tile may be shorter.
# - Launch: 2 blocks of 64 threads.
# - **Budget:** each element loaded once and stored once, so 4 bytes per element, each way.
# - Full marks need this and the right result, without a race, at every size.
# - Sizes include 63, 1,025 and 0.


# %% nbgrader={"grade": false, "grade_id": "centre", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def centre(a, out):
    ### BEGIN SOLUTION
    tile = cuda.shared.array(64, np.float32)
    t = cuda.threadIdx.x
    for first in range(cuda.blockIdx.x * 64, a.size, cuda.gridDim.x * 64):
        width = min(64, a.size - first)
        if t < width:
            tile[t] = a[first + t]
        cuda.syncthreads()
        total = np.float32(0)
        for k in range(width):
            total += tile[k]
        if t < width:
            out[first + t] = tile[t] - total / np.float32(width)
        cuda.syncthreads()
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "centre-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("memory.centre", centre)

# %% [markdown]
# **Why.** A tile in a loop needs two barriers: one between writing and reading, and one between reading and the
# next writing. The first is hard to forget, because without it the result is often wrong at once. Without the
# second it is right whenever the warps happen to keep step, but nothing guarantees that they do.
#
# A barrier inside an `if` that some threads skip is an error. However, a barrier does not wait for threads that
# have *returned* (CUDA Programming Guide, "Synchronization Functions"). The check mentions this but takes no
# point. Do not rely on it, because a thread that has returned cannot help to fill the next tile. Put the `if`
# around the work, not around the barrier.
#
# ## 7 · Records and columns
#
# Points (x, y, z) can be stored as an **array of structures** (AoS: x y z x y z …) or as a **structure of
# arrays** (SoA: all x, then all y, then all z).
#
# ![Records keep x, y and z of a point side by side, so lanes that want x skip y and z. Columns keep all x together, so lanes that want x read neighbours.](drawings/records.svg)
#
# A kernel that reads the x of 32 neighbouring points finds them 12 bytes apart in the first layout, but side by
# side in the second.
#
# **Predict.** How many sectors does one request for x move in the array of structures, with 4-byte numbers?

# %%
gpulab.predict("memory.record", ...)


# %%
@cuda.jit
def unpack_plain(points, xs, ys, zs):
    i = cuda.grid(1)
    if i < xs.size:
        xs[i] = points[3 * i]
        ys[i] = points[3 * i + 1]
        zs[i] = points[3 * i + 2]


points = cuda.to_device(np.arange(3 * 4096, dtype=np.float32))
columns = [cuda.device_array(4096, np.float32) for _ in range(3)]
unpacked_plainly = gpulab.profile(unpack_plain[16, 256], points, *columns)
unpacked_plainly

# %% [markdown]
# **Do.** If you can choose the layout, choose columns. Often you cannot, because the data come as records. Write
# the kernel `unpack(points, xs, ys, zs)`, which turns records into columns. About 10 lines.
#
# - Input: `points`, a one-dimensional float32 array with x, y and z of each point in turn.
# - Output: `xs`, `ys` and `zs`, three float32 arrays with one number per point.
# - Launch: blocks of 256 threads, one thread per point. Let each block stage its 256 points in shared memory,
#   loading them as if they were any 768 floats.
# - **Budget:** as many sectors loaded as the points have, which is 4 for each 32 numbers. Loads and stores together
#   may move no more sectors than the points and the columns have.
# - Full marks need the right result and both parts of this budget, at every size.
# - Sizes include 1,023 and 0.


# %% nbgrader={"grade": false, "grade_id": "unpack", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def unpack(points, xs, ys, zs):
    ### BEGIN SOLUTION
    staged = cuda.shared.array(768, np.float32)
    t = cuda.threadIdx.x
    first = cuda.blockIdx.x * 768
    for k in range(t, 768, 256):
        if first + k < points.size:
            staged[k] = points[first + k]
    cuda.syncthreads()
    i = cuda.grid(1)
    if i < xs.size:
        xs[i] = staged[3 * t]
        ys[i] = staged[3 * t + 1]
        zs[i] = staged[3 * t + 2]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "unpack-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("memory.unpack", unpack)

# %%
gpulab.need(unpack)
unpacked_plainly.compare(gpulab.profile(unpack[16, 256], points, *columns))

# %% [markdown]
# **Why.** The plain kernel asks for the same sectors three times, once each for x, y and z. Caches may answer the
# second and third time, so DRAM need not see those requests, but the L1 does all the work three times either way.
# A kernel that needs only x gets no help from a cache, because two thirds of what it moves is y and z. Staging
# has a price, too: compare the instructions.

# %% [markdown]
# ## End of sitting 1
#
# You can predict the sectors of an access, and a tile in shared memory gives your transpose whole sectors on both
# sides. Its rows still collide in shared memory, which is where the second sitting begins. After that it looks at
# the other places for data: registers, constant memory, caches, and the memory outside the GPU.
#
# To go on another day, select this cell and choose *Run → Run All Above Selected Cell* first, because a new kernel
# does not know your functions yet.

# %%
gpulab.course.progress("04")

# %% [markdown]
# ## 8 · Thirty-two banks
#
# Shared memory is divided into 32 **banks**. Word `w`, which is four bytes, is in bank `w % 32`. In one pass,
# called a **wavefront**, each bank delivers one word. If the lanes of a request want *different words of the same
# bank*, the request takes several wavefronts. This is a **bank conflict**, and n words in one bank make it n-way.
# Lanes that want the same word share it (**broadcast**), which costs nothing.
#
# ![Shared memory has 32 banks, each one word wide; eight of them are drawn. Neighbouring words are in different banks and are served at once. If a row of a tile has as many words as there are banks, a whole column is in one bank; if the row has one word more, the column is spread over all banks.](drawings/banks.svg)
#
# With 8 bytes per lane, 32 lanes want 64 words, more than one pass can deliver. So lanes 0–15 go first, then
# lanes 16–31. With 16 bytes there are four groups of eight lanes. Each group is counted by itself.
#
# **Do.** Write `ways(addresses, size)`, which counts the wavefronts of one request. About 9 lines.
#
# - Input: `addresses` has 32 entries, one per lane: its byte address in shared memory, or `None` if it does not
#   ask. `size` is 4, 8 or 16 bytes per lane.
# - Output: the number of wavefronts. Full marks need it right for every request.


# %% nbgrader={"grade": false, "grade_id": "ways", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ways(addresses, size):
    ### BEGIN SOLUTION
    wavefronts = 0
    group = 32 * 4 // size
    for first in range(0, 32, group):
        words_of_bank = [set() for _ in range(32)]
        for address in addresses[first : first + group]:
            if address is not None:
                for word in range(address // 4, (address + size) // 4):
                    words_of_bank[word % 32].add(word)
        wavefronts += max(len(words) for words in words_of_bank)
    return wavefronts
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "ways-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("memory.ways", ways)

# %% [markdown]
# **Predict.** A warp reads one column of a tile whose rows are 34 words long, so its lanes are 34 words apart.
# How many wavefronts does this request take?

# %%
gpulab.predict("memory.rows_of_34", ...)

# %%
gpulab.need(ways)
{length: ways([4 * length * lane for lane in range(32)], 4) for length in range(30, 38)}

# %% [markdown]
# **Do.** Your `transpose` writes its tile along rows, which takes 1 wavefront per request, and reads it down a
# column, which takes 32. Its accesses to shared memory are (1 + 32) ÷ 2 = 16.5-way on average, and 32-way on the
# worst line. Write the kernel again as `padded(a, out)`, with no bank conflict. Only one number changes.
#
# - Input, output, launch and sizes are those of `transpose`.
# - **Budget:** in total no more sectors than the two arrays have, and two wavefronts for each warp of a block:
#   one to write the tile, and one to read it.
# - Full marks need the right result and both parts of this budget, at every size.


# %% nbgrader={"grade": false, "grade_id": "padded", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def padded(a, out):
    ### BEGIN SOLUTION
    tile = cuda.shared.array((32, 33), np.float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    if x < a.shape[1] and y < a.shape[0]:
        tile[ty, tx] = a[y, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * 32 + tx
    y = cuda.blockIdx.x * 32 + ty
    if x < a.shape[0] and y < a.shape[1]:
        out[y, x] = tile[tx, ty]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "padded-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("memory.padded", padded)

# %% [markdown]
# **See.** These pictures show one read of the tile, and which bank serves which lane in which wavefront. The
# first is of your `transpose`, the second of `padded`.

# %%
gpulab.need(transpose, padded)
gpulab.show("memory.transpose", transpose, view="banks")
gpulab.show("memory.padded", padded, view="banks")

# %% [markdown]
# **Measured.** This is what the counts are worth. An H100 transposed 2,048 × 2,048 floats in CUDA C++, with blocks of
# 32 × 8 threads. Nsight Compute measured the durations on 27 November 2026; `gpulab.modelled` worked out the others
# from the same machine code.
#
# | transpose on an H100 | sectors stored | wavefronts read | modelled | measured |
# |---|---|---|---|---|
# | from global memory to global memory | 4,194,304 | none | 74.0 µs | 80.2 µs |
# | through a tile of 32 × 32 words | 524,288 | 4,194,304 | 20.9 µs | 24.4 µs |
# | through a tile of 32 × 33 words | 524,288 | 131,072 | 10.6 µs | 11.4 µs |
#
# With an eighth of the sectors the transpose is 3.3 times as fast, and without conflicts 2.1 times as fast again.
#
# **Try it.** Here are the same two reads on one scale, with 32 lanes at the top, 32 banks at the bottom, and a
# row for each wavefront. Try other strides and paddings. Which strides have no conflict without any padding?

# %%
WarpAccess(
    [Pattern(stride=32, title="rows of 32 words"), Pattern(stride=32, padding=1, title="rows of 33 words")],
    banks=True,
)

# %% [markdown]
# **Why.** With rows of 33 words, a step down a column is a step of one bank, because 33 % 32 = 1. The 33rd column
# holds no data. It costs 32 · 4 = 128 bytes per tile and saves 31 of the 32 wavefronts. Any odd length works,
# whereas even lengths share a factor with 32. All GPUs since compute capability 5.0 have 32 banks of four bytes.
#
# ## 9 · Neighbours
#
# A **stencil** computes each output from an input and its neighbours, as in convolutions, blurs and the
# simulation of heat. Here `out[y, x]` is the sum of the 3 × 3 elements around `a[y, x]`, divided by 9. Elements
# outside the image count as zero. Neighbouring outputs share most of their inputs, so without a tile each input
# is loaded nine times.
#
# A tile for 32 × 8 outputs needs a rim of inputs around it, which is called its **halo**. The rim is one element
# wide on every side, so tile and halo have (32 + 2) × (8 + 2) = 34 × 10 elements in all.
#
# **Predict.** How many bytes per output does a block of 32 × 8 load if it loads its tile and halo once?

# %%
gpulab.predict("memory.halo", ...)

# %% [markdown]
# Take care at the edges, because a wrong index does not always leave the array. Elements are stored row after
# row, so one step beyond the end of a row is the start of the next. In addition, numba counts a negative index
# from the end, as Python does.
#
# **Do.** Write the kernel `blur(a, out)`, which computes this stencil. About 16 lines.
#
# - Input and output: `a` and `out` are float32 images of the same shape.
# - Launch: blocks of (32, 8) threads over the image, where x counts the columns and y the rows.
# - **Budget:** the bytes loaded may exceed those of all tiles with their halos by at most 10 %, and each output is
#   stored once.
# - Full marks need the right result and both parts of this budget, at every size.
# - Sizes include 1025 × 33, 7 × 31, 1 × 1 and 0 × 5.


# %% nbgrader={"grade": false, "grade_id": "blur", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def blur(a, out):
    ### BEGIN SOLUTION
    tile = cuda.shared.array((10, 34), np.float32)
    rows, cols = a.shape
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = cuda.blockIdx.x * 32 - 1, cuda.blockIdx.y * 8 - 1
    for k in range(ty * 32 + tx, 340, 256):
        y, x = top + k // 34, left + k % 34
        if 0 <= y < rows and 0 <= x < cols:
            tile[k // 34, k % 34] = a[y, x]
        else:
            tile[k // 34, k % 34] = 0
    cuda.syncthreads()
    x, y = cuda.grid(2)
    if x < cols and y < rows:
        total = np.float32(0)
        for dy in range(3):
            for dx in range(3):
                total += tile[ty + dy, tx + dx]
        out[y, x] = total / np.float32(9)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "blur-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("memory.blur", blur)

# %% [markdown]
# **See.** The picture shows one load and one store of one warp. Do the lanes of the load run past the end of a
# row of the tile and continue in the next row of the image? If so, the request touches more sectors than its
# bytes would fill. That is the price of a tile that is 34 elements wide.

# %%
gpulab.need(blur)
gpulab.show("memory.blur", blur, view="accesses")

# %% [markdown]
# **Why.** The larger the tile, the smaller the share of its halo. With 64 × 16 outputs a block loads 66 · 18 · 4
# ÷ (64 · 16) = 4.6 bytes per output, but with 8 × 8 it loads 6.3. However, larger tiles take more shared memory,
# so fewer blocks fit on an SM. This trade-off is at the heart of every convolution and every matrix product.
#
# ## 10 · Registers, and the memory that is local in name only
#
# A variable of a kernel lives in a **register** if the compiler can arrange it. Registers have a few banks of
# their own, from which an instruction reads its operands, and the compiler picks register numbers so that
# operands seldom collide (Jia et al. 2018 measured two banks of 64 bits on Volta).
#
# A register has no address. A thread's own array can therefore be in registers only if every index is known when
# the kernel is compiled. Otherwise the array goes to **local memory**, which is private to the thread, but is in
# DRAM, behind the same caches as everything else. Values also go to local memory when there are too few
# registers. This is called a **spill**. The report shows both.
#
# ![A register has a name and no address. An array whose index is known only at run time needs addresses, so it is kept in local memory, which is a part of DRAM behind the caches. Four named variables stay in registers.](drawings/ring_or_names.svg)
#
# `smooth` gives every element the mean of itself and the three elements above it. This version keeps the last
# four rows in a ring, where each new value replaces the oldest.


# %%
@cuda.jit
def smooth_ring(a, out):
    ring = cuda.local.array(4, np.float32)
    column = cuda.grid(1)
    if column < a.shape[1]:
        for k in range(4):
            ring[k] = 0
        for row in range(a.shape[0]):
            ring[row % 4] = a[row, column]
            out[row, column] = (ring[0] + ring[1] + ring[2] + ring[3]) * np.float32(0.25)


# %% [markdown]
# **Predict.** For each element `smooth_ring` writes one entry of the ring and reads four. How many bytes of local
# memory is that per element?
#
# (Clearing the ring costs each thread 16 bytes more, once. With 64 rows in each of the 256 columns, that is 16 ÷
# 64 = 0.25 bytes per element, so the report says 20.25 B for each.)

# %%
gpulab.predict("memory.ring", ...)

# %%
rows = cuda.to_device(np.random.default_rng(5).random((64, 256)).astype(np.float32))
smoothed = cuda.device_array_like(rows)
ring = gpulab.profile(smooth_ring[2, 128], rows, smoothed)
ring

# %% [markdown]
# **Do.** Write the kernel `smooth(a, out)`. About 9 lines.
#
# - Input and output: `a` and `out` are float32 matrices of the same shape. Rows above the first count as 0.
# - Launch: one thread per column, in blocks of 128.
# - **Budget:** each element loaded once, no byte of local memory, and each output stored once.
# - Full marks need the right result and this budget, at every size.
# - Sizes include 1 × 1, 33 × 257 and 0 × 5.


# %% nbgrader={"grade": false, "grade_id": "smooth", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def smooth(a, out):
    ### BEGIN SOLUTION
    column = cuda.grid(1)
    if column < a.shape[1]:
        w0 = w1 = w2 = np.float32(0)
        for row in range(a.shape[0]):
            w3 = w2
            w2 = w1
            w1 = w0
            w0 = a[row, column]
            out[row, column] = (w0 + w1 + w2 + w3) * np.float32(0.25)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "smooth-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("memory.smooth", smooth)

# %%
gpulab.need(smooth)
ring.compare(gpulab.profile(smooth[2, 128], rows, smoothed))

# %% [markdown]
# **Why.** The index in `ring[row % 4]` changes from iteration to iteration, so the compiler needs an address, and
# only memory has addresses. With four names, no address is needed.
#
# The price of registers is occupancy. An SM has 65,536 registers, so 64 registers per thread leave room for 65,536
# ÷ 64 = 1,024 threads, and 255 leave only 256. Fewer resident warps hide less latency. How many you need is the
# subject of lab 05.

# %%
print("registers per thread   resident warps per SM (A100, blocks of 128)")
for registers in (32, 40, 64, 96, 128, 255):
    held = hardware.occupancy("A100", 128, registers)
    print(f"{registers:12}{held.active_warps:18} of {held.max_warps}")

# %% [markdown]
# ## 11 · Constant memory
#
# **Constant memory** holds 64 KB that a kernel can only read. Each SM keeps a part of it, 8 KB, in a cache of its
# own (CUDA Programming Guide, "Compute Capabilities"). It is made for one case: *all lanes read the same
# address*. Then one word is fetched for all 32 lanes. If the lanes read different addresses, the request is split
# into one part for each different address, and the parts are served one after another. In global memory,
# different addresses in one sector would cost nothing extra.
#
# **Predict.** Lane `i` reads `weights[i % 9]` from constant memory. Into how many parts is the request split?

# %%
gpulab.predict("memory.constant_parts", ...)

# %%
WEIGHTS = np.array([1, 4, 6, 4, 1], dtype=np.float32) / 16


@cuda.jit
def filter_constant(a, out, taps):
    weights = cuda.const.array_like(WEIGHTS)
    i = cuda.grid(1)
    total = np.float32(0)
    for k in range(taps):
        total += weights[k] * a[i + k]
    out[i] = total


@cuda.jit
def filter_global(a, weights, out, taps):
    i = cuda.grid(1)
    total = np.float32(0)
    for k in range(taps):
        total += weights[k] * a[i + k]
    out[i] = total


a = cuda.to_device(np.arange(1028, dtype=np.float32))
out = cuda.device_array(1024, np.float32)
in_constant = gpulab.profile(filter_constant[4, 256], a, out, 5)
in_global = gpulab.profile(filter_global[4, 256], a, cuda.to_device(WEIGHTS), out, 5)
print("kernel            constant requests   global load requests")
for report in (in_constant, in_global):
    print(f"{report.name:18}{report['const_requests']:17}{report['global_load_requests']:23}")

# %% [markdown]
# **Why.** Both kernels read 5 weights per warp. Weights in constant memory bypass the load path of global memory,
# which is then free for `a`. With a loop of fixed length, the compiler would write them into the instructions.
# Every kernel uses constant memory, because its arguments are stored there.
#
# ## 12 · Caches
#
# ![A cache line of 128 bytes consists of four sectors with a common tag. A miss fetches only the sectors that were asked for.](drawings/line.svg)
#
# This lab counts what warps *ask for*. Less reaches L2 and DRAM if a cache has the data. On all recent GPUs
# (Nsight Compute documentation, "Memory Tables"; CUDA Programming Guide):
#
# - A line is 128 bytes, or four sectors. A miss fetches only the sectors needed.
# - Each SM has an L1 that knows nothing of the others. Blocks exchange data through the **L2**, which all SMs
#   share. Memory is **coherent** there, and writes go through the L1 to it.
# - The L2 is cut into slices, each beside a memory controller. An A100's has two halves, and the far one is
#   slower (NVIDIA A100 whitepaper).
# - Textures are read through the L1. Which line is replaced is not published, but it is not strictly the oldest
#   (Jia et al. 2018).
#
# Can a cache rescue the blocked copy, in which each lane walks along its own stretch? Each sector serves eight
# steps, *if it stays cached*. Below, warps take turns, one step each, on an L1 that replaces the least recently
# used line.
#
# **Predict.** Each lane is busy with one line of 128 bytes. How many warps can an A100's L1 serve like this, if
# all its 192 KiB are cache?

# %%
gpulab.predict("memory.warps_that_fit", ...)

# %%
from collections import OrderedDict


def fetched_per_element(warps, cache_bytes, steps=32):
    """Sectors that an LRU cache of 128-byte lines fetches for a blocked copy, per element loaded."""
    lines, fetched = OrderedDict(), 0
    for step in range(steps):
        for lane in range(32 * warps):
            line, sector = lane, step // 8  # each lane owns one line of 32 elements
            held = lines.pop(line, set())
            fetched += sector not in held
            held.add(sector)
            lines[line] = held
            if len(lines) > cache_bytes // 128:
                lines.popitem(last=False)
    return fetched / (steps * 32 * warps)


l1 = int(hardware.find("A100").l1_bytes)
gpulab.predict("memory.warps_that_fit", measured=l1 / (32 * 128))
resident = [8, 16, 24, 32, 40, 48, 52, 56, 64]
needed = [32 * fetched_per_element(warps, l1) for warps in resident]

# %% jupyter={"source_hidden": true}
ax = plot.axes(7, 3)
ax.plot(resident, needed, "o-", color=plot.DEEP)
ax.axhline(4, color=plot.ALARM, linewidth=1.2)
ax.annotate(
    "every byte that moves is used", (8, 4), xytext=(0, -13), textcoords="offset points", color=plot.ALARM
)
ax.annotate(
    "every lane fetches its sector\nagain for every element",
    (resident[6], needed[6]),
    xytext=(-10, 0),
    textcoords="offset points",
    ha="right",
    va="center",
    color=plot.INK,
)
ax.set(xlabel="warps that take turns on one SM", ylabel="sectors fetched\nper 32 elements", ylim=(0, 36))
plot.picture(
    ax, "Up to 48 warps the cache keeps all that will be needed again; a few more, and it keeps none of it."
)

# %% [markdown]
# With up to 48 warps the same code moves the fewest sectors possible, but with a few more it moves eight times as
# many.
#
# **Why.** All lines are used in turn, again and again. If the cache is slightly too small for this cycle, each
# line is gone by the time it is needed. More warps usually help, but here they made it worse. A real L1 shares
# its store with shared memory and does not replace strictly by age, so its step is less sharp, and where the step
# lies depends on the GPU. The striped copy needs no cache. Arrange accesses so that each request uses what it
# moves, and count on caches for the rest.
#
# ## 13 · Outside the GPU's own memory
#
# **Host memory.** Data come from the host over PCIe or NVLink. The GPU's copy engines fetch them by **DMA**
# (direct memory access), without the CPU, from **pinned** pages, which the operating system may not move. If the
# data are in ordinary pages, the driver first copies them into a pinned buffer. Farther out are the local disk
# and then storage on the network. A good loader keeps all these stages busy at once.
#
# ![Memory outside the GPU: another GPU's over NVLink, the host's over PCIe. Each link is narrower than the GPU's own DRAM.](drawings/links.svg)
#
# **Predict.** A model has 7 billion weights of 2 bytes. How many times as long does it take to bring them over
# PCIe 4.0 ×16, at no more than 31.5 GB/s, as to read them once from an A100's DRAM, at no more than 2,039 GB/s?

# %%
gpulab.predict("memory.host_link", ...)

# %%
weights = 7e9 * 2
pcie_lane = 16e9 * 128 / 130 / 8  # PCI-SIG, PCIe 4.0: 16 GT/s a lane, 128 of 130 bits are data
ways_in = {
    "DRAM of the GPU": float(hardware.find("A100").dram_bandwidth),
    "host memory, PCIe 4.0 ×16": 16 * pcie_lane,
    "NVMe disk, PCIe 4.0 ×4": 4 * pcie_lane,
    "network storage, 10 Gbit/s": 10e9 / 8,
}
for name, rate in ways_in.items():
    print(f"{name:28}{rate / 1e9:8.1f} GB/s at most{weights / rate:10.3f} s")
gpulab.predict("memory.host_link", measured=ways_in["DRAM of the GPU"] / ways_in["host memory, PCIe 4.0 ×16"])

# %% [markdown]
# ## 14 · One address space, compressed memory, slices, and CPUs
#
# **Unified memory** gives CPU and GPU one pointer. CUDA 6 (2014) moved whole allocations at each launch. Since
# Pascal and CUDA 8, pages **migrate** when a processor touches them, so allocations may exceed the GPU's memory
# (**oversubscription**). Each first touch costs a page fault unless `cudaMemPrefetchAsync` moved the page before.
# Where NVLink connects CPU and GPU (POWER9, Grace), hardware keeps memory coherent without migration (CUDA
# Programming Guide, "Unified Memory").
#
# ![One address space: pages are in the host's memory until the GPU touches one. Then that page is moved to the GPU, which waits for it.](drawings/pages.svg)
#
# ### Compressed memory and slices
#
# Since the A100, the L2 can keep data compressed, for up to 4 × the bandwidth and 2 × the L2 space (NVIDIA A100
# whitepaper), but no larger memory. Programs must request it per allocation (`CU_MEM_ALLOCATION_COMP_GENERIC` of
# `cuMemCreate`). NVIDIA has not published the method. The following one is a simple form of *base-delta* (G.
# Pekhimenko et al., PACT, 2012), and shows which data can be compressed at all.
#
# A line has 32 words of 4 bytes, which take 4 sectors. Store the first word, the **base**, and for every word its
# difference from the base. If all differences fit into one byte, the line takes 4 + 32 = 36 bytes, so 2 sectors.
#
# **Do.** Write `compressed(words)`. About 8 lines.
#
# - Input: the 32 words of a line, as a list of whole numbers.
# - Output: the sectors that the line takes, in the smallest form that holds it:
#     - all words equal: the base alone;
#     - all differences −128 … 127: the base and 32 differences of 1 byte;
#     - all differences −32,768 … 32,767: the base and 32 differences of 2 bytes;
#     - otherwise the words as they are.


# %% nbgrader={"grade": false, "grade_id": "compressed", "locked": false, "schema_version": 3, "solution": true, "task": false}
def compressed(words):
    ### BEGIN SOLUTION
    differences = [word - words[0] for word in words]
    low, high = min(differences), max(differences)
    if low == high == 0:
        return 1
    if low >= -128 and high <= 127:
        return 2
    if low >= -32_768 and high <= 32_767:
        return 3
    return 4
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "compressed-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("memory.compressed", compressed)

# %% [markdown]
# **Predict.** After a relu, many numbers are zero. Suppose that 90 % of an array are zero, at random places. What
# percentage of its lines of 32 numbers consists of zeros only?

# %%
gpulab.predict("memory.zero_lines", ...)

# %%
gpulab.need(compressed)
numbers = np.random.default_rng(9)
N = 32 * 500
normal = numbers.standard_normal(N).astype(np.float32)
arrays = {
    "zeros": np.zeros(N, np.float32),
    "0, 1, 2, 3, …": np.arange(N, dtype=np.int32),
    "sorted indices below a million": np.sort(numbers.integers(0, 10**6, N)).astype(np.int32),
    "bytes of a picture, as int32": numbers.integers(0, 256, N).astype(np.int32),
    "90 % zeros at random": np.where(numbers.random(N) < 0.9, 0, normal).astype(np.float32),
    "90 % zeros in whole lines": np.where(np.repeat(numbers.random(N // 32) < 0.9, 32), 0, normal),
    "weights": normal,
}
lines_of = {name: array.view(np.int32).reshape(-1, 32).tolist() for name, array in arrays.items()}
moved = {name: [compressed(words) for words in lines] for name, lines in lines_of.items()}
all_zero = np.mean([not any(words) for words in lines_of["90 % zeros at random"]])
gpulab.predict("memory.zero_lines", measured=100 * all_zero)
gpulab.plot.bars(
    {name: round(4 * len(sectors) / sum(sectors), 2) for name, sectors in moved.items()},
    "times the bandwidth, if only the compressed sectors move",
    caption="Zeros help if whole lines are zero; weights in float32, whose last bits are random, do not shrink.",
)

# %% [markdown]
# **Why.** What counts is what the words of one line have in common. Ninety per cent of zeros are worth hardly
# anything if nearly every line contains a number that is not zero. For weights, smaller types are the better
# compression (lab 13).
#
# **MIG** (multi-instance GPU) cuts a data-centre GPU into up to seven instances, each with its own SMs and slices
# of L2, memory controllers and DRAM, so one tenant's memory traffic cannot slow another's (NVIDIA MIG User
# Guide). An A100 has 8 memory slices. The profile `1g.10gb` gets one of them with 14 SMs, and `3g.40gb` gets four
# with 42 SMs.
#
# **Predict.** Seven tenants have one `1g.10gb` each. What percentage of the A100's bandwidth do they have together?

# %%
gpulab.predict("memory.slices", ...)

# %%
gpu = hardware.find("A100")
profiles = {name: p for name, p in hardware.MIG_PROFILES.items() if "A100" in p.sms}
sms = {name: int(p.sms["A100"]) / int(gpu.sms) for name, p in profiles.items()}
memory = {name: int(p.memory) / 8 for name, p in profiles.items()}
gpulab.predict("memory.slices", measured=100 * 7 * memory["1g.10gb"])
ridge = float(gpu.peak()) / float(gpu.dram_bandwidth)
gpulab.plot.panels(
    {
        "of the SMs, %": {name: 100 * share for name, share in sms.items()},
        "DRAM, GB/s": {name: share * float(gpu.dram_bandwidth) / 1e9 for name, share in memory.items()},
        "L2, MiB": {name: share * float(gpu.l2_bytes) / 2**20 for name, share in memory.items()},
        "float32 ridge, FLOP/B": {name: ridge * sms[name] / memory[name] for name in profiles},
    },
    "3g.40gb has half of the memory with 39 % of the SMs: it suits kernels that are bound by memory.",
)

# %% [markdown]
# **Why.** SMs and memory are cut in different proportions, so the ridge of the roofline (lab 03) differs between
# profiles, and a kernel may be bound by memory in one and by arithmetic in another. One eighth of the memory has no
# owner when seven small tenants share the GPU. Where instances may lie on a GPU is a puzzle, and lab 20 solves it.
#
# **CPU habits.** A CPU core hides latency with large caches, prefetching and reordering, so give it contiguous
# data, blocked to fit the cache, and keep threads off each other's lines. A GPU hides latency with other warps,
# so give neighbouring lanes neighbouring words, and stage reused data in shared memory.
#
# ## Detective · Fast on paper
#
# A colleague sums the rows of a matrix. The first version uses one thread per row. The second loads tiles along
# rows and sums them in shared memory. "An eighth of the sectors, every branch uniform, the same sums. As fast as
# memory allows."


# %%
@cuda.jit
def row_sums_plain(a, sums):
    row = cuda.grid(1)
    total = np.float32(0)
    for k in range(a.shape[1]):
        total += a[row, k]
    sums[row] = total


@cuda.jit
def row_sums(a, sums):
    tile = cuda.shared.array((32, 32), np.float32)
    t = cuda.threadIdx.x
    first = cuda.blockIdx.x * 32
    total = np.float32(0)
    for left in range(0, a.shape[1], 32):
        for k in range(32):
            tile[k, t] = a[first + k, left + t]
        cuda.syncthreads()
        for k in range(32):
            total += tile[t, k]
        cuda.syncthreads()
    sums[first + t] = total


a = cuda.to_device(np.random.default_rng(6).random((256, 256)).astype(np.float32))
sums_plain, sums = cuda.device_array(256, np.float32), cuda.device_array(256, np.float32)
before = gpulab.profile(row_sums_plain[8, 32], a, sums_plain)
after = gpulab.profile(row_sums[8, 32], a, sums)
print("the same sums:", np.array_equal(sums_plain.copy_to_host(), sums.copy_to_host()))
for metric in ("global_load_sectors", "branch_efficiency"):
    print(f"{metric:20}{before[metric]:10,.0f}{after[metric]:10,.0f}")

# %% [markdown]
# **Do.** Is it that fast? Everything the colleague says is true, so look for the count that nobody mentioned.
# `after` is a whole report.
#
# Take one tile of 32 × 32 and one SM. At the SM's share of the A100's DRAM bandwidth, fetching its 4,096 bytes
# takes the number of cycles printed below. Every other unit of the SM must be done with the tile in that time.
# Name the unit that is not, and count its cycles. Shared memory serves one wavefront per cycle, and a warp issues
# at most one instruction per cycle.
#
# Then change one number in `row_sums` and look again. The second cell is free for that.

# %%
bytes_per_cycle = float(a100.dram_bandwidth) / float(a100.boost_clock) / int(a100.sms)
print(f"DRAM needs {32 * 32 * 4 / bytes_per_cycle:.0f} cycles per tile (modelled)")

# %%
# Your experiment.

# %% [markdown]
# ### Your answer
#
# In three to five sentences, say what holds `row_sums` up, which of your own counts proves it, and why neither
# the sums nor the sectors could show it. A person reads this: 1 point for the cause, 1 point for a count that you
# measured.

# %% [markdown] nbgrader={"grade": true, "grade_id": "fast-on-paper-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** The lanes read `tile[t, k]`, 32 words apart, so all 32 words are in one bank. This is a 32-way
# conflict. The report counts 67,584 wavefronts where 4,096 would do. That is 1,056 cycles per tile, against the
# 306 that DRAM needs. With rows of 33 words there are 4,096 wavefronts, and DRAM is the limit again. The sums are
# the same because a conflict only delays. The sectors are counted in global memory, so they cannot show what
# happens in shared memory.
#
# **1 point** (cause without a count): The tile has 32-way bank conflicts when it is read down a column, and
# padding its rows to 33 words helps.
#
# **0 points:** It uses too much shared memory. Or: it is limited by global memory, because it reads all elements.

# %% [markdown]
# ## Beyond · Pooling embeddings
#
# Open-ended and ungraded. A recommender averages rows of a large table: `out[bag]` is the mean of the rows
# `table[index[bag, k]]` for k = 0 … 7. Rows have 64 float32 numbers and can lie anywhere. Write a kernel and
# choose its launch. The figure of merit is **sectors plus requests, per bag**, for loads and stores. It counts
# what moves and how often you ask.
#
# | kernel | sectors + requests per bag |
# |---|---|
# | one thread per bag | printed by the cell below |
# | one warp per bag, 4-byte loads | 106 |
# | ours, 4-byte loads too, each index loaded once | 91.2 |
# | lower bound | 73 sectors (8 · 8 for the rows, 1 for the indices, 8 for the output) + 2,336 B at 512 B per request = 77.6 |

# %%
BAGS, ROWS = 256, 2048
numbers = np.random.default_rng(7)
table = cuda.to_device(numbers.random((ROWS, 64)).astype(np.float32))
index = cuda.to_device(numbers.integers(0, ROWS, (BAGS, 8)).astype(np.int32))
pooled = cuda.device_array((BAGS, 64), np.float32)
expected = table.copy_to_host()[index.copy_to_host()].mean(axis=1)


@cuda.jit
def pool_plain(table, index, out):
    bag = cuda.grid(1)
    if bag < out.shape[0]:
        for column in range(out.shape[1]):
            total = np.float32(0)
            for k in range(8):
                total += table[index[bag, k], column]
            out[bag, column] = total * np.float32(0.125)


def merit(launch):
    pooled.copy_to_device(np.full((BAGS, 64), np.nan, np.float32))
    report = gpulab.profile(launch, table, index, pooled)
    right = np.allclose(pooled.copy_to_host(), expected, rtol=1e-5)
    return f"{(report['global_sectors'] + report['global_requests']) / BAGS:.1f}" if right else "wrong"


merit(pool_plain[8, 32])


# %%
# Your `pool`, then merit(pool[…, …]).

# %% [markdown]
# ## Recap
#
# <details><summary>1. A warp loads every third element of a float32 array that starts at a multiple of 256.
# How many sectors does this request move?</summary>
#
# It moves 12. The lanes span 32 · 12 = 384 bytes, which is 384 ÷ 32 = 12 sectors, and every one of them is
# touched.
# </details>
#
# <details><summary>2. Your loads need 4 sectors per request, but your stores need 32. What do you try
# first?</summary>
#
# Find the index that changes from lane to lane, and make it the last index of the array that you store to. If
# loads and stores cannot both have it, turn a tile in shared memory.
# </details>
#
# <details><summary>3. A loop fills a tile, waits at a barrier, and uses the tile. What is missing, and why do tests
# seldom show it?</summary>
#
# A barrier before the tile is filled again is missing. Tests show it only if one warp runs ahead of another.
# </details>
#
# <details><summary>4. A kernel keeps eight values in <code>cuda.local.array</code> and indexes it with its
# loop variable. Where do these values live?</summary>
#
# They live in registers if the compiler unrolls the loop, because all indices are then known. Otherwise they live
# in local memory, which is DRAM behind the caches. The local bytes in the report tell you which.
# </details>
#
# <details><summary>5. The global accesses are ideal, but the kernel is still slow. Which count do you look
# at?</summary>
#
# Compare the wavefronts of shared memory with the ideal. Then look at the local bytes, and then at the occupancy.
# </details>

# %%
gpulab.recap("04")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | sectors of a request | number of different `address // 32`; 4-byte lanes: 4 at best, 32 at worst, 5 if shifted |
# | which index runs fastest | the last one, so let `threadIdx.x` run over it |
# | effective bandwidth | (bytes read + bytes written) / time; divided by the peak it is utilisation |
# | DRAM's peak bandwidth | bus width in bits / 8 × bits per second per pin |
# | bank of a word | `(address // 4) % 32`; wavefronts = the most *different* words in one bank |
# | shared accesses of 8 and 16 bytes | 8 bytes: two groups of 16 lanes; 16 bytes: four groups of 8 |
# | reading a column of a tile | make the rows 33 words long |
# | reusing a tile in a loop | fill, barrier, use, barrier |
# | tile with a halo of width r | (w + 2r)(h + 2r) loads for w · h outputs |
# | an array of your own in registers | only if all indices are known at compile time |
# | constant memory | use one address for all lanes; different addresses are served in turn |
#
# ### Claims you will meet, and what is right
#
# - *A warp must read consecutive words, in order, or the access is serialised.* Only the number of sectors counts
#   (compute capability 6.0 and later).
# - *Strided access drops to 3 % efficiency.* With 4-byte words the lowest efficiency is 4 / 32 = 12.5 %.
# - *Lanes in the same bank conflict.* They conflict only if they want different words of that bank. Many slides
#   show the example `s[2 * tid]` with an array of 32 floats. There the conflict is 2-way, and the index runs out
#   of the array.
# - *`__ldg` prefetches.* It does not. It reads through the read-only path. To prefetch, use `cp.async` or TMA, or
#   load early.
# - *Effective bandwidth is bytes / (time × peak).* That is utilisation.
# - *The constant cache has 64 KB.* That is the size of constant memory. An SM caches 8 KB of it (CUDA Programming
#   Guide).
# - *An H100 has six stacks of HBM and 6,144 bits.* The full chip does, but the product has five stacks and 5,120
#   bits (NVIDIA H100 whitepaper).
# - *Unified memory could oversubscribe from CUDA 6 on; compression is automatic.* Neither is true, as section 14
#   explains.
# - *Shared memory takes one or two cycles; an SM's shared memory delivers 19 TB/s; an SM has 20 KB of registers;
#   the L2 is slower than DRAM.* The cell below prints what the data sheets give.

# %%
for name in ("A100", "H100", "H200"):
    gpu = hardware.find(name)
    per_sm = 128 * float(gpu.boost_clock)  # 32 banks × 4 B
    all_sms = per_sm * int(gpu.sms)
    print(
        f"{name}  latency: shared memory {gpu.shared_latency}, L2 {gpu.l2_latency}, DRAM {gpu.dram_latency}"
    )
    print(f"      shared memory: {per_sm / 1e9:.0f} GB/s in one SM, {all_sms / 1e12:.1f} TB/s in all")
    print(
        f"      shared memory of an SM: {gpu.capability.shared_per_sm // 1024} of {gpu.l1_bytes} with the L1"
    )
    print(f"      L2 {gpu.l2_bytes}; DRAM {float(gpu.dram_bytes) / 1e9:.0f} GB at {gpu.dram_bandwidth}")

# %% [markdown]
# ### References
#
# 1. NVIDIA, *CUDA C++ Best Practices Guide*, "Memory Optimizations".
#    https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/
# 2. NVIDIA, *CUDA Programming Guide*, "Compute Capabilities".
#    https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html
# 3. M. Harris, "An Efficient Matrix Transpose in CUDA C/C++", NVIDIA Technical Blog, 2013.
# 4. Z. Jia, M. Maggioni, B. Staiger, D. Scarpazza, "Dissecting the NVIDIA Volta GPU Architecture via
#    Microbenchmarking", 2018. https://arxiv.org/abs/1804.06826
# 5. W. Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via Microbenchmarking",
#    2024. https://arxiv.org/abs/2402.13499
# 6. NVIDIA, *A100 Tensor Core GPU Architecture*, whitepaper, 2020, and *H100 Tensor Core GPU Architecture*,
#    whitepaper, 2022.
# 7. JEDEC, *High Bandwidth Memory (HBM) DRAM*, JESD235.
# 8. V. Volkov, "Better Performance at Lower Occupancy", GPU Technology Conference, 2010.
