# ---
# jupyter:
#   gpulab:
#     lab: "02"
#     hours: 1.5
#     topics: [C3.14, C5.8, C6.6]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 02 B · GPU architecture: what fits on an SM
#
# **1.5 to 2.5 hours.** You need part A, lab 03 (launches, blocks, reports) and lab 04 (shared memory,
# barriers, local memory).
#
# In part A you met Little's law, which says how many bytes must be under way. This part is about the warps that put
# them there. Which blocks share an SM, which warp issues next, and what keeps more blocks out?
#
# By the end of this lab, you can
#
# 1. say where the blocks of a launch go, and what the last wave costs;
# 2. compute the occupancy of any launch on any GPU, and name the limit;
# 3. explain with numbers how other warps hide a load;
# 4. make room on an SM, and tell when more room does not make anything faster.

# %%
import numpy as np

import gpulab
from gpulab import cuda, hardware

gpulab.start("02")

# %% [markdown]
# ## B1 · A grid meets the SMs
#
# A launch defines a grid of blocks, but not where they run. The **block scheduler** gives each SM as many blocks as
# fit, and whenever a block has finished, it sends the next one. A block stays on its SM to the end. Its warps are
# distributed over the SM's four quarters, and the **warp scheduler** of a quarter issues only for the warps of that
# quarter.
#
# The order in which blocks start is not guaranteed. So a block must not wait for another one unless all blocks fit at
# the same time. From compute capability 9.0 on, a **cluster** of blocks is placed within one GPC, where the blocks
# can reach each other's shared memory.
#
# The blocks that run at the same time are a **wave**. The last wave may be nearly empty, and the GPU still waits for
# it.
#
# **Predict.** 109 equal blocks run on an A100 with 108 SMs, one per SM at a time. What share of the places do they
# use, over all waves?

# %%
gpulab.predict("arch.tail", ...)


# %%
def used(blocks, per_sm, sms):
    """The share of the places for blocks that is used, over all waves."""
    places = per_sm * sms
    return blocks / (-(-blocks // places) * places)


sms = int(hardware.find("A100").sms)
gpulab.plot.lines(
    {
        f"{n} block{'s' * (n > 1)} per SM": [(b, 100 * used(b, n, sms)) for b in range(1, 1081)]
        for n in (1, 4)
    },
    "blocks of equal work",
    "places used, %",
    "After each full wave the share falls, most where a wave is large, and the more waves there are the less it falls.",
)

# %% [markdown]
# **Why.** One block too many doubles the time of a launch of 108 blocks. If there are ten waves, it costs only a
# tenth. Smaller blocks make finer waves, and a grid-stride loop with as many blocks as fit has only one wave. On an
# H100 the same grid has different waves, so never build the number of SMs into a kernel.
#
# ## B2 · Occupancy
#
# **Occupancy** is the number of warps resident on an SM, divided by the number that it can hold. A block moves in as
# a whole, and four things may run out:
#
# - **warps**: a block has threads ÷ 32 of them, rounded up;
# - **blocks**: an SM holds a fixed number, however small they are;
# - **registers**: a warp takes 32 × registers per thread, rounded up to a step of 256. Each of the four quarters has
#   a quarter of the SM's registers, so whole warps must fit into a quarter;
# - **shared memory**: a block takes its own bytes plus what the driver keeps (1 KiB from 8.0 on), rounded up to a
#   step.
#
# Each of these limits allows a whole number of blocks, and the smallest decides.
#
# **Predict.** A kernel uses 33 registers per thread on an A100, which has 65,536 registers in four quarters. How many
# warps have room?

# %%
gpulab.predict("arch.register_step", ...)

# %% [markdown]
# **Do.** Write `active_blocks(sm, threads, registers, shared)`, which says how many blocks are resident on an SM.
# About 10 lines.
#
# - Input: `sm` is a dictionary with the limits `warps`, `blocks`, `registers` and `shared` of an SM; the steps
#   `register_step` and `shared_step`; `shared_kept`, the bytes that the driver keeps for each block; and the limits
#   of a launch, `threads_per_block` and `registers_per_thread`.
# - A block has `threads` threads with `registers` registers each, and `shared` bytes of shared memory.
# - Output: a whole number of blocks, and 0 for a launch beyond the two limits of a launch.


# %% nbgrader={"grade": false, "grade_id": "active_blocks", "locked": false, "schema_version": 3, "solution": true, "task": false}
def active_blocks(sm, threads, registers, shared):
    ### BEGIN SOLUTION
    def up(value, step):
        return -(-value // step) * step

    warps = -(-threads // 32)
    warp_registers = up(32 * registers, sm["register_step"])
    if threads > sm["threads_per_block"] or registers > sm["registers_per_thread"]:
        return 0
    limits = [sm["warps"] // warps, sm["blocks"], 4 * (sm["registers"] // 4 // warp_registers) // warps]
    block_shared = up(shared + sm["shared_kept"], sm["shared_step"])
    if block_shared:
        limits.append(sm["shared"] // block_shared)
    return min(limits)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "active_blocks-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("arch.active_blocks", active_blocks)

# %% [markdown]
# Compare it with `hardware.occupancy`, for every compute capability. (The tests of that function compare it with
# NVIDIA's own header, `cuda_occupancy.h`.) The list shows launches for which the two differ.

# %%
gpulab.need(active_blocks)


def limits(cap):
    return {
        "warps": cap.max_warps,
        "blocks": cap.max_blocks,
        "registers": cap.registers_per_sm,
        "shared": cap.shared_per_sm,
        "register_step": cap.register_granule,
        "shared_step": cap.shared_granule,
        "shared_kept": cap.shared_reserved,
        "threads_per_block": cap.max_threads_per_block,
        "registers_per_thread": cap.max_registers_per_thread,
    }


launches = [
    (cap, threads, registers, shared)
    for cap in hardware.TABLE.values()
    for threads in (32, 100, 256, 384, 1024)
    for registers in (16, 33, 64, 168, 255)
    for shared in (0, 4224, 49_152, 101_376)
]
differ = [
    (str(cap), *launch)
    for cap, *launch in launches
    if active_blocks(limits(cap), *launch) != hardware.occupancy(cap, *launch).active_blocks
]
print(f"{len(launches)} launches on {len(hardware.TABLE)} capabilities, {len(differ)} differ")
differ[:3]

# %% [markdown]
# **See.** Warps per SM against registers per thread, for blocks of 128 threads.

# %% jupyter={"source_hidden": true}
gpulab.need(active_blocks)
gpulab.plot.lines(
    {
        f"{cc}, {name}": [
            (r, 4 * active_blocks(limits(hardware.capability(cc)), 128, r, 0)) for r in range(1, 161)
        ]
        for cc, name in (("8.0", "A100"), ("8.9", "RTX 4090"), ("7.5", "T4"))
    },
    "registers per thread",
    "warps per SM",
    "From 33 registers on an A100 loses warps in steps; a T4 starts at 32 warps and keeps them up to 64.",
    step=True,
    names_at="start",
)

# %% [markdown]
# **Why.** One register more can cost a whole step, but often it changes nothing. Registers are the most common limit,
# so the compiler's choice matters. You can limit it with `@cuda.jit(max_registers=…)`. The numbers differ between
# compute capabilities, but the rules do not. An SM holds 64 warps on V100, A100, H100 and B200, 48 on GeForce from
# Ampere on, and 32 on Turing.
#
# ## B3 · Who issues next
#
# In each cycle a warp scheduler looks for a warp of its quarter whose next instruction can start, because its
# operands are ready and its unit is free. Then it issues that instruction for 32 lanes. A warp waits about 4 cycles
# for an addition, and hundreds for DRAM. This costs nothing while another warp is ready. All registers of all warps
# stay in place, so changing from one warp to another is free. Only if no warp is ready is the cycle lost. This is
# **latency hiding**, and it is the reason for keeping many warps resident.
#
# NVIDIA does not publish which of the ready warps goes first. Papers model the rule as *greedy, then oldest*.
#
# **Predict.** Each instruction depends on the one before it and takes 4 cycles. How many warps does one scheduler
# need in order to issue in every cycle?

# %%
gpulab.predict("arch.busy", ...)

# %% [markdown]
# **Do.** Be the scheduler: write `issue(programs)`. About 12 lines.
#
# - Input: one list for each warp, with the latency in cycles of each of its instructions.
# - One instruction starts per cycle. The next instruction of a warp must wait until the one before it has finished.
# - Output: a list of warp numbers, in the order in which they issue. Each warp appears once for each of its
#   instructions. The check executes this order, and if a warp is not ready when its turn comes, all wait.
# - **Budget:** at most 1.1 × the bound. The bound is the number of instructions or the longest warp's sum of
#   latencies, whichever is larger.


# %% nbgrader={"grade": false, "grade_id": "issue", "locked": false, "schema_version": 3, "solution": true, "task": false}
def issue(programs):
    ### BEGIN SOLUTION
    ready = [0] * len(programs)
    done = [0] * len(programs)
    order, cycle = [], 0
    while True:
        waiting = [w for w, program in enumerate(programs) if done[w] < len(program)]
        if not waiting:
            return order
        warp = next((w for w in waiting if ready[w] <= cycle), None)
        if warp is None:
            cycle = min(ready[w] for w in waiting)
            continue
        order.append(warp)
        ready[warp] = cycle + programs[warp][done[warp]]
        done[warp] += 1
        cycle += 1
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "issue-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("arch.issue", issue)

# %% [markdown]
# **See.** Four warps with two loads of 60 cycles each, first in order and then in your order. (Real loads take longer
# and would not fit the picture.)

# %%
gpulab.need(issue)


def carried_out(order, programs):
    """When each instruction starts and when its result is there: (warp, start, end), in cycles."""
    ready, done, cycle, found = [0] * len(programs), [0] * len(programs), 0, []
    for warp in order:
        cycle = max(cycle, ready[warp])
        ready[warp] = cycle + programs[warp][done[warp]]
        found.append((warp, cycle, ready[warp]))
        done[warp] += 1
        cycle += 1
    return found


def spans(order, programs):
    return [
        gpulab.plot.Span(
            f"warp {warp}",
            start,
            end,
            "load" if end - start > 4 else "",
            "wait" if end - start > 4 else "arithmetic",
        )
        for warp, start, end in sorted(carried_out(order, programs))
    ]


programs = [[4, 4, 60, 4, 4, 4, 60, 4, 4]] * 4
in_order = [warp for warp, program in enumerate(programs) for _ in program]
for order in (in_order, issue(programs)):
    print(max(end for _, _, end in carried_out(order, programs)), "cycles")
serial = gpulab.plot.timeline(spans(in_order, programs), "cycles")
serial.say_first("One warp after the other.")
serial

# %%
gpulab.need(issue)
shared = gpulab.plot.timeline(spans(issue(programs), programs), "cycles")
shared.say_first("Any warp that is ready.")
shared

# %% [markdown]
# **Why.** All the latencies are still there. But now they overlap, and four warps take hardly longer than one. Any
# rule that takes a ready warp comes close to the bound. What matters is that there is one.
#
# ## B4 · How many warps hide a load?
#
# Now use the counts of real kernels. Both kernels below copy an array. `copy_four` asks for four numbers before it
# needs the first, so each lane has four **independent loads** under way. The simulator counts what a warp executes,
# the data sheet says how long a load takes, and your own scheduler combines the two. So instructions are counted, and
# time is modelled.


# %%
@cuda.jit
def copy_one(a, b):
    i = cuda.blockIdx.x * 256 + cuda.threadIdx.x
    if i < a.size:
        b[i] = a[i]


@cuda.jit
def copy_four(a, b):
    i = cuda.blockIdx.x * 1024 + cuda.threadIdx.x
    if i + 768 < a.size:
        w, x, y, z = a[i], a[i + 256], a[i + 512], a[i + 768]
        b[i], b[i + 256], b[i + 512], b[i + 768] = w, x, y, z


a = cuda.to_device(np.arange(65_536, dtype=np.float32))
b = cuda.device_array_like(a)
one = gpulab.profile(copy_one[256, 256], a, b)
four = gpulab.profile(copy_four[64, 256], a, b)
for name, report in (("one load", one), ("four loads", four)):
    per_warp = report["instructions"] / report["warps"]
    print(
        f"{name:11}{per_warp:4.0f} instructions per warp, {report['registers']} registers, "
        f"occupancy {report['occupancy']:.0f} %"
    )

# %%
a100 = hardware.find("A100")
latency = round(float(a100.dram_latency))
share = float(a100.dram_bandwidth) / int(a100.sms) / float(a100.boost_clock) / 4  # of one scheduler


def delivered(report, warps, loads):
    """Bytes per cycle for `warps` warps of one scheduler, four rounds each; DRAM gives no more than a share."""
    others = round(report["instructions"] / report["warps"]) - loads
    before, after = [4] * (others // 2), [4] * (others - others // 2)
    together = [1] * (loads - 1) + [
        latency
    ]  # loads start a cycle apart; only the last one's result is awaited
    programs = [(before + together + after) * 4] * warps
    cycles = max(end for _, _, end in carried_out(issue(programs), programs))
    return min(share, 4 * warps * loads * 32 * 4 / cycles)


gpulab.need(issue)
gpulab.plot.lines(
    {
        "one load per lane": [(w, delivered(one, w, 1)) for w in range(1, 17)],
        "four loads per lane": [(w, delivered(four, w, 4)) for w in range(1, 17)],
    },
    "warps of one scheduler (an SM has four; 16 warps each is full occupancy)",
    "bytes loaded per cycle",
    "With one load per lane not even 16 warps fill an A100's memory; with four loads five or six do.",
    limits={"share of the DRAM": share},
)

# %% [markdown]
# The next figure shows the same from the other side: the bytes under way per SM. The horizontal lines are what
# Little's law asks of one SM.


# %%
def under_way(name):
    gpu = hardware.find(name)
    return float(gpu.dram_bandwidth) / int(gpu.sms) * float(gpu.dram_latency) / float(gpu.boost_clock) / 1024


gpulab.plot.lines(
    {f"{size} B per lane": [(w, w * 32 * size / 1024) for w in range(0, 65, 4)] for size in (4, 8, 16)},
    "resident warps per SM, each with one load under way",
    "KiB under way",
    "64 warps of 4-byte loads fill an A100 and not an H100; with 16 bytes 18 warps fill both.",
    limits={name: under_way(name) for name in ("A100", "H100")},
)

# %% [markdown]
# **Why.** More warps, wider loads, and several independent loads before the first use all have the same effect: they
# put more bytes under way. So occupancy is one means among others, and not the aim. The matrix products of CUBLAS
# became 1.6 times as fast when their occupancy fell from 67 to 33 %, with more values in registers and more work per
# thread (V. Volkov, 2010). "Above 50 %" is not a rule.
#
# ## B5 · Make room
#
# There are several signals, one in each row of a matrix, and they have sudden jumps. For each row and each t from 0
# to 127 we want the largest |a[row, i + 1] − a[row, i]| over i = t, t + 128, t + 256, … The version below loads each
# row once into shared memory, "to be safe".


# %%
@cuda.jit
def jumps_row(a, out):
    row = cuda.shared.array(8192, np.float32)
    r, t = cuda.blockIdx.x, cuda.threadIdx.x
    for i in range(t, a.shape[1], 128):
        row[i] = a[r, i]
    cuda.syncthreads()
    most = np.float32(0)
    for i in range(t, a.shape[1] - 1, 128):
        most = max(most, abs(row[i + 1] - row[i]))
    out[r, t] = most


# %% [markdown]
# **Predict.** A block of 128 threads uses 32 KiB of shared memory. How many warps are resident on an SM of an A100,
# which has 164 KiB?

# %%
gpulab.predict("arch.row_occupancy", ...)

# %%
signals = cuda.to_device(np.random.default_rng(3).standard_normal((8, 8192)).astype(np.float32))
largest = cuda.device_array((8, 128), np.float32)
crowded = gpulab.profile(jumps_row[8, 128], signals, largest)
fits = hardware.occupancy("A100", 128, crowded["registers"], crowded["shared_bytes"])
gpulab.predict("arch.row_occupancy", measured=fits.active_warps)
gpulab.plot.occupancy(fits)

# %% [markdown]
# **Do.** Write the kernel `jumps(a, out)`. About 13 lines.
#
# - Input: `a`, float32, one signal per row. A row may have any length.
# - Output: `out`, float32 of shape (rows, 128). Where a thread has no pair, its result is 0.
# - Launch: one block of 128 threads for each row.
# - **Budget:** each element loaded about once, and at most 2,048 bytes of shared memory per block. Full marks need
#   both, and the right result without a race.


# %% nbgrader={"grade": false, "grade_id": "jumps", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def jumps(a, out):
    ### BEGIN SOLUTION
    tile = cuda.shared.array(129, np.float32)
    r, t = cuda.blockIdx.x, cuda.threadIdx.x
    columns = a.shape[1]
    most = np.float32(0)
    for left in range(0, columns, 128):
        if left + t < columns:
            tile[t] = a[r, left + t]
        if t == 0 and left + 128 < columns:
            tile[128] = a[r, left + 128]
        cuda.syncthreads()
        if left + t + 1 < columns:
            most = max(most, abs(tile[t + 1] - tile[t]))
        cuda.syncthreads()
    out[r, t] = most
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "jumps-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("arch.jumps", jumps)

# %%
gpulab.need(jumps)
roomy = gpulab.profile(jumps[8, 128], signals, largest)
gpulab.plot.occupancy(hardware.occupancy("A100", 128, roomy["registers"], roomy["shared_bytes"]))

# %% [markdown]
# **Why.** Shared memory pays off where several threads need a byte soon after one another. Here 128 threads need only
# a piece of 129 elements at a time. The tile costs barriers in every round. With 16 resident warps there would hardly
# be another warp to run while a block waits at a barrier, but with 64 there is. On a GPU with less shared memory,
# such as a T4, there would be no room for a second row.
#
# ## Detective · The full house
#
# A colleague computes 48 features of each sample in registers and correlates them. The report says 50 % occupancy.
# "With one argument to the compiler it is 100 %. The results are the same to the last bit, the sectors are the same,
# and even the instructions are the same. Free speed!"


# %%
def features(a, out):
    i = cuda.grid(1)
    x = a[i]
    f = cuda.local.array(48, np.float32)
    for k in range(48):
        f[k] = x * np.float32(k + 1) + np.float32(0.5)
    total = np.float32(0)
    for k in range(48):
        total += f[k] * f[47 - k]
    for k in range(48):
        total += f[k] * f[(k + 7) % 48] * total
    out[i] = total


samples = cuda.to_device(np.random.default_rng(0).random(8192).astype(np.float32))
first, second = cuda.device_array(8192, np.float32), cuda.device_array(8192, np.float32)
half = gpulab.profile(cuda.jit(features)[32, 256], samples, first)
full = gpulab.profile(cuda.jit(max_registers=32)(features)[32, 256], samples, second)
print("the same results:", np.array_equal(first.copy_to_host(), second.copy_to_host()))
for metric in ("occupancy", "global_sectors", "instructions"):
    print(f"{metric:16}{half[metric]:10,.0f}{full[metric]:10,.0f}")

# %% [markdown]
# **Do.** Is it free? Where are the values that no longer have a register? `half` and `full` are whole reports, and
# `gpulab.profile.METRICS` lists what they can tell you. Compare what you find with the 8 bytes per thread that the
# kernel loads and stores for its task. The sectors and instructions above are counted in PTX. Registers are assigned
# later, by ptxas. The second cell is free.

# %%
print(f"registers per thread {half['registers']:10,.0f}{full['registers']:10,.0f}")

# %%
# Your experiment.

# %% [markdown]
# ### Your answer
#
# In three to five sentences: what does the full house cost, which of your own counts proves it, and why could neither
# the results nor the sectors show it? Would you keep the argument? A person reads this: 1 point for the cause, 1
# point for a count that you looked up.

# %% [markdown] nbgrader={"grade": true, "grade_id": "full-house-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** The kernel needs 59 registers and was given 32, so ptxas spills: the report's `spill_bytes` went from
# 0 to 552 bytes per thread, stores and loads in local memory, against 8 bytes of real data: 69 times as much.
# Spilling happens after PTX, so the counted sectors and instructions do not show it. The results are the same because
# the values come back unchanged. The kernel is bound by arithmetic and has plenty of independent instructions, so it
# did not need more warps. I would leave the argument out.
#
# **1 point** (cause without a count): With 32 registers the values no longer fit, so they go to local memory, which
# is slower.
#
# **0 points:** Higher occupancy is always better. Or: 100 % occupancy leaves no room for the caches.

# %% [markdown]
# ## Beyond · Gather rows
#
# Open-ended and ungraded. `out` gets the rows of a table whose numbers are in `index`. A row has 64 float32 numbers,
# and all arrays are one-dimensional. Choose launch and kernel. The figure of merit is **load requests per row**,
# which is how often you ask. Fewer requests for the same bytes mean that each has more bytes under way.
#
# | kernel | load requests per row |
# |---|---|
# | one thread per number, 4-byte loads | printed by the cell below |
# | `complex128`: two 8-byte loads, and the index in every lane | 1.50 |
# | ours | 1.03 |
# | bound | 256 B of 512 B a request, and 1/32 for the index: 0.53 |
#
# numba loads a `complex128` in two halves (lab 04, section 5).

# %%
ROWS, WANTED = 512, 1024
numbers = np.random.default_rng(4)
table = cuda.to_device(numbers.random(ROWS * 64).astype(np.float32))
index = cuda.to_device(numbers.integers(0, ROWS, WANTED).astype(np.int32))
gathered = cuda.device_array(WANTED * 64, np.float32)
expected = table.copy_to_host().reshape(ROWS, 64)[index.copy_to_host()].ravel()


@cuda.jit
def gather_plain(table, index, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = table[64 * index[i // 64] + i % 64]


def merit(launch):
    gathered.copy_to_device(np.full(WANTED * 64, np.nan, np.float32))
    report = gpulab.profile(launch, table, index, gathered)
    right = np.array_equal(gathered.copy_to_host(), expected)
    return f"{report['global_load_requests'] / WANTED:.2f}" if right else "wrong"


merit(gather_plain[256, 256])


# %%
# Your `gather`, then merit(gather[…, …]).

# %% [markdown]
# ## Recap
#
# <details><summary>1. A grid has 216 blocks, and an A100 holds two per SM. How many waves are there, and how many with 217?</summary>
#
# 108 · 2 = 216, so there is one wave. With 217 blocks there are two, and in the second one block runs alone.
# </details>
#
# <details><summary>2. Blocks have 256 threads, 65 registers per thread and no shared memory. How many fit on an SM of an H100?</summary>
#
# 65 · 32 = 2,080 registers are rounded up to 2,304 per warp. A quarter's 16,384 hold 7 warps, so the SM holds 28. 28
# ÷ 8 is 3 blocks.
# </details>
#
# <details><summary>3. A kernel has 25 % occupancy. Is that bad?</summary>
#
# You cannot tell. It is not if its warps have enough loads and independent instructions under way.
# </details>
#
# <details><summary>4. What does it cost to change from one warp to another?</summary>
#
# It costs nothing, because all resident warps keep their registers. On a CPU the operating system must save and load
# them.
# </details>
#
# <details><summary>5. Capping registers raised occupancy, but the kernel got slower. What do you look at?</summary>
#
# Look at the report's `spill_bytes`.
# </details>

# %%
gpulab.recap("02")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | waves | blocks ÷ (SMs × blocks per SM), rounded up |
# | warps of a block | threads ÷ 32, rounded up |
# | registers of a warp | 32 × registers, in steps of 256; whole warps in each quarter |
# | shared memory of a block | bytes + 1 KiB, in steps of 128 B (before 8.0: no KiB, steps of 256 B) |
# | blocks per SM | the least that warps, blocks, registers and shared memory allow |
# | occupancy | resident warps / warps that an SM holds (64, 48 or 32) |
# | warps to hide arithmetic | latency of an instruction: 4 per scheduler |
# | warps to hide DRAM | bandwidth per SM × latency ÷ (32 × bytes per lane) |
# | more bytes under way | more warps, wider loads, or loads that do not wait for each other |
#
# ### Claims you will meet, and what is right
#
# - *Warps are scheduled round-robin, with priority for those that wait for memory; 32 to 48 are active.* The rule is
#   not published. At most 64, 48 or 32 warps are resident.
# - *Occupancy = registers of the SM / (registers × threads).* This leaves out warps, steps, quarters, the driver's
#   KiB and the limit of blocks.
# - *At most as many threads per block as an SM holds.* A block has at most 1,024 threads, although an SM holds up to
#   2,048.
# - *Aim for more than 50 % occupancy.* Aim for enough bytes and instructions under way.
# - *An SM has two schedulers.* From Volta on it has four.
#
# ### References
#
# 1. NVIDIA, *CUDA Programming Guide*, "Compute Capabilities".
#    https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html
# 2. NVIDIA, `cuda_occupancy.h`, part of the CUDA Toolkit.
# 3. V. Volkov, "Better Performance at Lower Occupancy", GPU Technology Conference, 2010.
# 4. V. Volkov, "Understanding Latency Hiding on GPUs", dissertation, UC Berkeley, 2016.
# 5. T. Rogers, M. O'Connor, T. Aamodt, "Cache-Conscious Wavefront Scheduling", MICRO, 2012.
# 6. Z. Jia, M. Maggioni, B. Staiger, D. Scarpazza, "Dissecting the NVIDIA Volta GPU Architecture via
#    Microbenchmarking", 2018. https://arxiv.org/abs/1804.06826
