# ---
# jupyter:
#   gpulab:
#     lab: "00"
#     hours: 1
#     topics: [C20.4]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 00 · Start here
#
# **About one hour.** You know Python and NumPy arrays. You need no GPU: without one, `gpulab` runs what
# NVIDIA's own compiler makes of your code on a simulated GPU and counts what it does. With one, the same
# cells run on it.
#
# When you are through, you can
#
# 1. run a kernel, read the message of a failing one, and mend it;
# 2. read a report and name the source line that causes most of the memory traffic;
# 3. tell a counted, a modelled and a measured number apart;
# 4. refuse a benchmark that proves nothing, and say why.

# %%
import numpy as np

import gpulab
from gpulab import cuda

gpulab.start("00")

# %% [markdown]
# ## 1 · Run a kernel, break it, mend it
#
# A **kernel** is a function that many **threads** run at the same time. `@cuda.jit` hands it to the compiler.
# `twice[4, 256](…)` is a **launch**: it starts a **grid** of 4 **blocks** with 256 threads each. All threads
# run the same lines. What differs is `cuda.grid(1)`, a thread's number in the grid: 0, 1, 2 … 1023.
#
# The kernel below gives each thread one element. With 1,024 elements and 1,024 threads nobody is left over.


# %%
@cuda.jit
def twice(a, out):
    i = cuda.grid(1)
    out[i] = a[i] + a[i]


a = np.arange(1024, dtype=np.float32)
out = np.zeros_like(a)
twice[4, 256](a, out)
out[:5], out[-1]

# %% [markdown]
# **Predict.** The next cell runs the same 4 blocks of 256 threads on 1,000 elements. How many threads have no
# element?

# %%
gpulab.predict("start.idle", ...)

# %% tags=["raises-exception"]
a = np.arange(1000, dtype=np.float32)
out = np.zeros_like(a)
twice[4, 256](a, out)

# %% [markdown]
# Read the message from the top. It names the **kernel** and the **line**, then a **block** and a **thread**,
# then the **array** and the **index** that it does not have. Nothing after the error ran: a kernel that fails
# leaves no result.
#
# A real GPU is less kind. The same access may hit memory that belongs to another array and pass unnoticed, or
# it ends your program with "an illegal memory access was encountered" and no line. That is why checks run in
# the simulator, on every machine.
#
# **Do.** Write `double` so that it works for any number of elements. Threads without an element do nothing.
# The check launches enough blocks to cover all elements, of 256 threads and once of 128. Budget: each element
# stored once, 4 bytes. About 3 lines; `a.size` is the number of elements.


# %% nbgrader={"grade": false, "grade_id": "double", "locked": false, "schema_version": 3, "solution": true, "task": false}
@cuda.jit
def double(a, out):
    ### BEGIN SOLUTION
    i = cuda.grid(1)
    if i < a.size:
        out[i] = a[i] + a[i]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "double-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("start.double", double)

# %% [markdown]
# **See.** Which thread wrote which element, for a few more than 1,024: a cell is an element, its number the
# thread, its colour the block (there are four colours, so the fifth block is blue again). Below it, one load and
# one store of 32 threads; section 2 comes back to those.

# %%
gpulab.show("start.double", double)

# %% [markdown]
# **Watch it run.** The next figure stops your kernel after every line. Press play, or step with the arrow keys.
# Threads run in groups of 32, called **warps**, and each circle is one thread of a warp: full while it runs the
# marked line, hollow while it does not. This warp holds threads 992 to 1,023, but `a` has only 1,000 elements.
# Which circles become hollow, and at which line?

# %%
gpulab.need(double)
gpulab.trace(double[4, 256], a, out, threads=[999, 1000])

# %% [markdown]
# **Why.** A grid is made of whole blocks, so it nearly always has more threads than you have elements. The
# line `if i < a.size` is called a **guard**, and almost every kernel has one. Block sizes differ between
# programs and GPUs; the need for a guard does not.

# %% [markdown]
# ## How a lab works
#
# | you see | you do |
#
# ![The round of a lab: predict a number, do the puzzle, check it, see what the run did. A failed check leads back to the puzzle.](drawings/round.svg)
#
# |---|---|
# | **Predict** | write down a number before you run anything; it is not graded, and the recap shows it again |
# | **Do** | fill in a cell. What is asked, the budget and the size of a good answer stand above it |
# | `gpulab.check(name, f)` | says how many points it earns, and what is missing |
# | `gpulab.hint(name)` | one step of help; the next one comes after another attempt |
# | `gpulab.show(…)`, `gpulab.profile(…)` | a picture, a report |
# | `gpulab.sanitize(…)` | what is wrong with a kernel, also where its result is right |
# | `gpulab.trace(…)` | your kernel to step through: which threads run each line, what they read and write |
# | `gpulab.watch()` | the same for the thread at which the last check failed |
#
# An exercise has points for being right, and where cost is the lesson, points for its **budget**: a limit on
# something that is counted. Your course grades with the same counts on sizes of its own, so a kernel made for
# the visible sizes gains nothing.
#
# **The sanitizer.** An index outside an array stops a kernel. Other mistakes leave no trace, not even in
# the result. `pull` moves every element one place to the left, in the array itself:


# %%
@cuda.jit
def pull(a):
    i = cuda.grid(1)
    if i + 1 < a.size:
        a[i] = a[i + 1]


a = np.arange(1000, dtype=np.float32)
pull[4, 256](a)
np.array_equal(a[:-1], np.arange(1, 1000))

# %%
gpulab.sanitize(pull[4, 256], a)

# %% [markdown]
# Read it like the message above: two threads, one element, one reads and one writes, and nothing says which of
# them comes first. A **data race**. Our simulator happened to let all threads read before any wrote; run in
# another order the same kernel gives another result, and a GPU picks an order of its own each time. `sanitize`
# tries several and looks at every access.
#
# When something does not run, find out what your machine has. The next cell does the same as `gpulab
# doctor` in a terminal.

# %%
import rich

from gpulab.doctor import diagnose

rich.print(diagnose())

# %% [markdown]
# ## 2 · One finding: the same answer, eight times the traffic
#
# Two kernels copy 262,144 numbers with 4,096 threads; `cuda.gridsize(1)` is that number of threads. In `chunks`
# each thread takes 64 neighbours, as you would share out work among the cores of a CPU. In `stripes` all
# threads take neighbours together and then step on by 4,096.
#
# ![Two ways to share 16 elements among 4 threads. In chunks, thread 0 takes elements 0 to 3, so in one step the four threads read elements that lie 4 apart. In stripes, the four threads read four neighbours in each step.](drawings/chunks_and_stripes.svg)
#
# Memory is not read number by number. It comes in **sectors** of 32 bytes, eight of our 4-byte numbers.
# Threads run in warps of 32, and one load of a warp is one **request**: the memory delivers every sector
# that any of its 32 threads needs.


# %%
@cuda.jit
def chunks(a, out):
    t = cuda.grid(1)
    share = a.size // cuda.gridsize(1)
    for i in range(t * share, (t + 1) * share):
        out[i] = a[i]


@cuda.jit
def stripes(a, out):
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        out[i] = a[i]


a = np.arange(262_144, dtype=np.float32)
out_chunks, out_stripes = np.zeros_like(a), np.zeros_like(a)
chunks[16, 256](a, out_chunks)
stripes[16, 256](a, out_stripes)
np.array_equal(out_chunks, out_stripes)

# %% [markdown]
# **Predict.** The outputs are equal. How many sectors does one request of a warp move in `chunks`, where the
# 32 threads read numbers that lie 64 apart? And in `stripes`, where they read 32 neighbours?

# %%
gpulab.predict("start.sectors_chunks", ...)
gpulab.predict("start.sectors_stripes", ...)

# %%
slow = gpulab.profile(chunks[16, 256], a, out_chunks)
fast = gpulab.profile(stripes[16, 256], a, out_stripes)
slow

# %% [markdown]
# For now read three rows: global loads, global stores, costliest line. **Ideal** is the least that the same
# bytes could take. AI with its FLOP/B (operations per byte), shared, occupancy and registers wait until lab 03.
# NVVM is the name of NVIDIA's compiler.

# %%
slow.compare(fast)

# %% [markdown]
# **See.** The costliest load and store of one warp. Eight cells in a frame are a sector, and only sectors that
# are fetched are drawn; on the left stands how far into the array they lie. Numbers are **lanes**, the places 0
# to 31 of the threads in their warp. A hollow cell is fetched and not asked for.

# %%
gpulab.show(slow)
gpulab.show(fast)

# %% [markdown]
# **Try it.** Here are the two loads on one scale: 32 lanes above, the sectors that they touch below. Drag the
# stride of `chunks` down from 64. At which stride does the load stop costing 32 sectors?

# %%
from gpulab.plot.moving import Pattern, WarpAccess

WarpAccess([Pattern(stride=1, title="stripes"), Pattern(stride=64, title="chunks")])

# %% [markdown]
# **Do.** A report has one row per source line. Write `worst_line(lines)`: each row is `[line, requests,
# sectors, bytes]`, where bytes are those that the threads asked for. Return three numbers for the line with
# the most sectors: its line number, its sectors per request, and how many percent of the bytes in its sectors
# were asked for. About 3 lines.


# %% nbgrader={"grade": false, "grade_id": "worst_line", "locked": false, "schema_version": 3, "solution": true, "task": false}
def worst_line(lines):
    ### BEGIN SOLUTION
    line, requests, sectors, asked = max(lines, key=lambda row: row[2])
    return [line, sectors / requests, 100 * asked / (32 * sectors)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "worst_line-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("start.worst_line", worst_line)

# %% [markdown]
# Now let it read the two reports above.


# %%
def memory_lines(report):
    """The rows of a report that touch global memory, as worst_line wants them."""
    names = ("global_requests", "global_sectors", "global_bytes")
    rows = [[line.line, *(line.metrics[name] for name in names)] for line in report.lines]
    return [row for row in rows if row[1]]


gpulab.need(worst_line)
worst_line(memory_lines(slow)), worst_line(memory_lines(fast))

# %% [markdown]
# **Why.** In `chunks` every thread of a warp needs another sector, and seven eighths of what arrives is
# thrown away, at least for this request. In `stripes` the warp uses every byte. Caches soften this on a real
# GPU, because the other bytes of a sector may still be there when they are needed; how much depends on the
# GPU and on what else runs. The counts do not depend on it. Lab 04 starts here.

# %% [markdown]
# ## 3 · How to measure honestly
#
# Every number in this course comes in one of three ways, and a report says which.
#
# | way | what it is | where it holds |
# |---|---|---|
# | **counted** | what the kernel did: sectors, instructions, branches | everywhere, for one compiler |
# | **modelled** | counts combined with a GPU's data sheet | as far as the model holds; never a proof |
# | **measured** | time on a clock | on that machine, that day, if you measured well |
#
# Budgets are on counts, so a slow laptop loses no points. Times come later, on real GPUs, and they mislead
# more easily than counts:
#
# - the **first call** compiles the kernel;
# - a launch **returns before the work is done**: without `cuda.synchronize()` you time the launch, not the
#   kernel;
# - one run is an anecdote: take several and their **median**, which a single disturbed run does not move;
# - a time may be **too good**: the bytes that a kernel moves need at least bytes / bandwidth seconds.
#
# The first point shows on any machine. The times below are those of this computer at work, not of a GPU.

# %%
from time import perf_counter


@cuda.jit
def triple(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = a[i] + a[i] + a[i]


times_ms = {}
for call in range(1, 7):
    start = perf_counter()
    triple[4, 256](a[:1000], out)
    cuda.synchronize()
    times_ms[f"call {call}"] = 1000 * (perf_counter() - start)

gpulab.plot.bars(
    times_ms,
    "ms on this computer",
    log=True,
    caption="The first call takes far longer than any other, because the compiler runs in it.",
)

# %% [markdown]
# **Do.** Write `honest_time(log)`. A log is a dictionary: `times_us` is the list of times of all calls in
# microseconds, the first call first; `synchronised` says whether each time was taken after
# `cuda.synchronize()`; `bytes` is what one call moves and `peak_bytes_per_s` what the GPU's memory can move
# at most. Return `[median in µs, bytes per second]`, without the first call. Return `None` if the log proves
# nothing: fewer than three times are left, it was not synchronised, or the bandwidth is beyond the peak.
# About 6 lines; `statistics.median` is at hand.

# %% nbgrader={"grade": false, "grade_id": "honest_time", "locked": false, "schema_version": 3, "solution": true, "task": false}
from statistics import median


def honest_time(log):
    ### BEGIN SOLUTION
    times = log["times_us"][1:]
    if len(times) < 3 or not log["synchronised"]:
        return None
    middle = median(times)
    bandwidth = log["bytes"] / (middle * 1e-6)
    return None if bandwidth > log["peak_bytes_per_s"] else [middle, bandwidth]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "honest_time-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("start.honest_time", honest_time)

# %% [markdown]
# The figures of GPUs stand in `gpulab.hardware`, each with the document that states it (`gpulab gpus` in a
# terminal prints them all). What an A100's memory can move at most:

# %%
from gpulab import hardware

a100 = hardware.find("A100")
print(f"{a100.dram_bandwidth}  ({a100.dram_bandwidth.source})")

# %% [markdown]
# **Predict.** A copy of 100,000,000 float32 numbers reads 400 MB and writes 400 MB. What is the shortest time
# that an A100 can need for it, in microseconds?

# %%
gpulab.predict("start.floor", ...)

# %%
floor_us = 800e6 / float(a100.dram_bandwidth) * 1e6
gpulab.predict("start.floor", measured=floor_us)

# %%
gpulab.need(honest_time)
logs = {
    "honest": {"times_us": [612_000.0, 447.1, 446.8, 448.0, 447.2, 1930.5], "synchronised": True},
    "never waited": {"times_us": [611_000.0, 6.1, 5.9, 6.0, 6.2, 6.0], "synchronised": False},
    "one run": {"times_us": [613_000.0, 447.0], "synchronised": True},
    "too good": {"times_us": [609_000.0, 231.4, 230.9, 231.0, 231.3], "synchronised": True},
}
for name, log in logs.items():
    log |= {"bytes": 800_000_000, "peak_bytes_per_s": float(a100.dram_bandwidth)}
    print(f"{name:<14}{honest_time(log)}")

# %% [markdown]
# These four logs are made up to show the four cases; none was taken on a GPU.
#
# ![A launch returns at once while the kernel still runs on the GPU. A clock that is stopped when the launch returns measures only the launch; one that is stopped after waiting for the GPU measures the kernel.](drawings/clock.svg)
#
# **Why.** A log like *never waited* shows about 6 µs however large the array is: that is the launch alone.
# *Too good* is 231 µs where the data sheet allows 392: the data were still in a cache, or part of the work
# was not done.
#
# A time can be wrong the other way, too. One set of course notes has a product of two 3620 × 3620 matrices take
# 26.8 ms on an RTX 4090, and concludes that the library reaches 3.5 TFLOP/s. Work it out:

# %%
flop = 2 * 3620**3  # a product of n × n matrices is n³ multiplications and as many additions
peak = float(hardware.find("RTX 4090").peak("float32"))
pcie = float(hardware.link("PCIe 4.0 ×16").per_direction)  # the bus to the GPU, bytes per second one way
matrix_bytes = 4 * 3620**2
print(
    f"{flop / 1e9:.1f} GFLOP in 26.8 ms is {flop / 26.8e-3 / 1e12:.2f} TFLOP/s, "
    f"{100 * flop / 26.8e-3 / peak:.0f} % of the peak"
)
print(f"at the peak the product takes {1e3 * flop / peak:.2f} ms")
print(f"copying three matrices over PCIe takes at least {1e3 * 3 * matrix_bytes / pcie:.1f} ms")

# %% [markdown]
# A tuned library does not run at 4 % of the peak. The loop that was timed also allocated memory, copied
# three matrices and created the library's handle (its working state, made once in a real program) on every
# pass, so the 26.8 ms say little about the product.
#
# ## Detective · Twice as fast
#
# A colleague shows you `quick`, a copy that does "the same with half the requests". Both kernels run below, and
# the outputs agree in every element. The arrays lie on the device here: `cuda.to_device` copies an array there,
# `cuda.device_array` only makes room for one, and `copy_to_host` brings one back.


# %%
@cuda.jit
def plain(a, out):
    i = cuda.grid(1)
    if i < a.size:
        out[i] = a[i]


@cuda.jit
def quick(a, out):
    i = cuda.grid(1)
    if 2 * i < a.size:
        out[i] = a[i]


n = 100_000
source = cuda.to_device(np.arange(n, dtype=np.float32))
target = cuda.device_array(n, np.float32)
blocks = -(-n // 256)  # n / 256, rounded up

plain[blocks, 256](source, target)
first = target.copy_to_host()
quick[blocks, 256](source, target)
second = target.copy_to_host()
np.array_equal(first, second)

# %%
whole = gpulab.profile(plain[blocks, 256], source, target)
half = gpulab.profile(quick[blocks, 256], source, target)
whole.compare(half)

# %% [markdown]
# **Do.** Find out what is wrong. `whole["global_store_bytes"]` is how many bytes `plain` stored, `half[…]`
# the same of `quick`; you know how many a copy must store. Then change the experiment above, not the
# kernels, so that the output shows the fault. The cell below is free.

# %%
# your experiment

# %% [markdown]
# ### Your answer
#
# In two to four sentences: why did the two outputs agree, what does `quick` do instead of a copy, and which
# count of your own gives it away? A person reads this: 1 point for the cause, 1 point for a count that you
# measured.

# %% [markdown] nbgrader={"grade": true, "grade_id": "detective-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** `quick` copies only the first half: its guard is `2 * i < a.size`, so the report counts
# 200,000 bytes stored where a copy of 100,000 float32 numbers must store 400,000. The outputs agreed because
# `target` still held what `plain` had written. With `target` filled with NaN first, 50,000 elements stay NaN.
#
# **1 point** (cause without a count): `quick` skips elements and the old values from `plain` were still in
# `target`.
#
# **0 points:** `quick` is faster because it runs fewer instructions, or because the data were in the cache.

# %% [markdown]
# ## Beyond · The cheapest copy
#
# Open-ended and ungraded. Copy 2²⁰ float32 numbers with as few warp instructions as you can. The figure of
# merit is instructions per 32 elements.
#
# | kernel | warp instructions per 32 elements |
# |---|---|
# | `plain`, the naive one | run the cell |
# | ours, sixteen elements per thread | 12.1 (counted, NVVM 13.5) |
# | bound for 4-byte accesses | 2: a load and a store |

# %%
big, big_out = np.ones(2**20, np.float32), np.zeros(2**20, np.float32)
for kernel, blocks in ((plain, 4096), (stripes, 216)):
    report = gpulab.profile(kernel[blocks, 256], big, big_out)
    print(f"{kernel.__name__:<9}{report['instructions'] / 2**15:6.1f} warp instructions per 32 elements")

# %% [markdown]
# ## Recap

# %%
gpulab.recap("00")

# %% [markdown]
# Can you do it now? Answer first, then open.
#
# <details><summary>1 · A launch has 8 blocks of 128 threads, the array 1,000 elements. What does the guard
# look like, and how many threads does it stop?</summary>
#
# `if i < a.size:` stops 8 · 128 − 1,000 = 24 threads.
# </details>
#
# <details><summary>2 · A message says: thread (31, 0, 0) of block (3, 0, 0) wrote out[127], out has 120
# elements. Blocks have 32 threads. What is wrong?</summary>
#
# The thread's number is 3 · 32 + 31 = 127, and there are 120 elements: the kernel has no guard, or compares
# with the wrong number.
# </details>
#
# <details><summary>3 · A line makes 1,000 requests and moves 9,000 sectors for 128,000 bytes. How many
# sectors per request, and how much of them was asked for?</summary>
#
# 9 sectors per request; 128,000 of 9,000 · 32 = 288,000 bytes, 44 %.
# </details>
#
# <details><summary>4 · Which of these is counted, which modelled, which measured: 4.0 sectors per request; at
# least 392 µs, from bytes and bandwidth; 447 µs?</summary>
#
# Counted; modelled (the bandwidth is the data sheet's); measured.
# </details>
#
# <details><summary>5 · A benchmark reports 6 µs for a kernel, whatever the size of the array. What
# happened?</summary>
#
# Nobody waited for the kernel: the time is that of the launch.
# </details>
#
# ### Cheat sheet
#
#     @cuda.jit                                   a kernel: compiled at its first call
#     kernel[blocks, threads](a, out)             a launch
#     i = cuda.grid(1)                            this thread's number in the grid
#     if i < a.size:                              the guard
#     for i in range(cuda.grid(1), n, cuda.gridsize(1)):
#                                                 any size under any launch
#     d = cuda.to_device(a); d.copy_to_host()     to the device and back
#     cuda.synchronize()                          wait for the device
#
#     gpulab.check(name, f)                       points, and what is missing
#     gpulab.hint(name)                           one step of help
#     r = gpulab.profile(kernel[b, t], …)         a report
#     r.lines  r.compare(s)  r["flops"]           per source line, beside another, one number
#     gpulab.show(r)                              a picture of its memory accesses
#     gpulab doctor · gpulab gpus                 this machine · data sheets, in a terminal
#
# ### What common guides get wrong
#
# - *"Launching a kernel costs 20 to 40 µs"*, *"less than 10 µs"*. A bare launch is a few microseconds; a
#   framework such as PyTorch adds its own. It depends on the machine: measure it, and do not quote.
# - *Start a clock, call, stop the clock.* Without a warm-up you time the compiler, without `synchronize` the
#   launch, with allocations and copies between the readings everything but the kernel.
# - *"The library reaches 3.5 TFLOP/s"* for the 3620 × 3620 product above: the clock ran over copies and
#   allocations as well.
#
# ### References
#
# - NVIDIA, *CUDA Programming Guide*, <https://docs.nvidia.com/cuda/cuda-programming-guide/>
# - NVIDIA, *numba-cuda*, <https://nvidia.github.io/numba-cuda/>
# - NVIDIA, *Nsight Compute: Profiling Guide*, the metrics by their names on a real GPU,
#   <https://docs.nvidia.com/nsight-compute/ProfilingGuide/>
# - T. Hoefler, R. Belli, "Scientific Benchmarking of Parallel Computing Systems", SC '15,
#   <https://doi.org/10.1145/2807591.2807644>
# - A. Georges, D. Buytaert, L. Eeckhout, "Statistically Rigorous Java Performance Evaluation", OOPSLA '07,
#   <https://doi.org/10.1145/1297027.1297033>
