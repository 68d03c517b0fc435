# ---
# jupyter:
#   gpulab:
#     lab: "00"
#     hours: 1.5
#     topics: [C20.4]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 00 · Start here
#
# **1.5 to 2 hours.** You need to know Python and NumPy arrays, but you do not need a GPU. On a machine without one,
# `gpulab` compiles your code with NVIDIA's own compiler, runs the result on a simulated GPU, and counts what it
# does. On a machine with a GPU, the same cells run on that GPU.
#
# After this lab, you can
#
# 1. run a kernel, read the message when one fails, and fix it;
# 2. read a report and name the source line that causes most of the memory traffic;
# 3. tell counted, modelled and measured numbers apart;
# 4. reject a benchmark that proves nothing, and say why.
#
# Every lab repeats this short round:
#
# ![The round of a lab: predict a number, do the puzzle, check it, see what the run did. A failed check leads back to the puzzle.](drawings/round.svg)

# %%
import numpy as np

import gpulab
from gpulab import cuda

gpulab.start("00")

# %% [markdown]
# ## 1 · Run a kernel, break it, mend it
#
# A GPU is fast because it does many things at the same time. You write a function, called a **kernel**, and many
# **threads** run it at once. The decorator `@cuda.jit` hands the function to the compiler, and `twice[4, 256](…)` is
# a **launch**. It starts a **grid** of 4 **blocks** with 256 threads each, so 4 · 256 = 1,024 threads in all. All of
# them run the same lines. What differs is the value of `cuda.grid(1)`, which is the thread's number in the grid: 0,
# 1, 2 … 1023.
#
# In the kernel below, each thread doubles one element. There are 1,024 elements and 1,024 threads, so no thread is
# left over.


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
# **Predict.** The cell after next runs the same 4 blocks of 256 threads on only 1,000 elements. How many threads
# have no element? Write your number in place of the `...` and run the cell.

# %%
gpulab.predict("start.idle", ...)

# %% tags=["raises-exception"]
a = np.arange(1000, dtype=np.float32)
out = np.zeros_like(a)
twice[4, 256](a, out)

# %% [markdown]
# Read the message from the top. It names the **kernel** and the **line** that failed, then the **block** and the
# **thread** that ran the line, and finally the **array** and the **index** that this array does not have. Nothing
# ran after the error, so a kernel that fails leaves no result.
#
# A real GPU is less helpful. The same access may hit memory that belongs to another array and go unnoticed, or it
# may end your program with "an illegal memory access was encountered" and name no line. That is why checks run in
# the simulator, on every machine.
#
# **Do.** Write the kernel `double`, which does the same as `twice` but works for any number of elements.
#
# - Input: the array `a`. Its number of elements is `a.size`.
# - Output: each element of `out` is twice the element of `a` in the same place.
# - Launch: the check starts enough blocks to cover all elements, of 256 threads and once of 128. Threads without an
#   element must do nothing.
# - Budget: each element is stored once, which takes 4 bytes.
# - Length: about 3 lines.


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
# **See.** The picture shows which thread wrote which element, for slightly more than 1,024 elements. Each cell is an
# element, its number is the thread that wrote it, and its colour is that thread's block. (There are only four
# colours, so the fifth block is blue again.) Below it are one load and one store of 32 threads, which section 2
# explains.

# %%
gpulab.show("start.double", double)

# %% [markdown]
# **Watch it run.** The next figure stops your kernel after every line. Press play, or step with the arrow keys.
# Threads run in groups of 32, called **warps**, and each circle is one thread of a warp. A circle is full while its
# thread runs the marked line, and hollow while it does not. The warp shown here holds threads 992 to 1,023, but `a`
# has only 1,000 elements. Which circles become hollow, and at which line?

# %%
gpulab.need(double)
gpulab.trace(double[4, 256], a, out, threads=[999, 1000])

# %% [markdown]
# **Why.** A grid consists of whole blocks, so it nearly always has more threads than you have elements. The line
# `if i < a.size` stops the surplus threads before they touch memory. It is called a **guard**, and almost every
# kernel has one. Block sizes differ between programs and GPUs, but the need for a guard does not.

# %% [markdown]
# ## How a lab works
#
# | you see | what it is for |
# |---|---|
# | **Predict** | You write down a number before you run anything. It is not graded, and the recap shows it again. |
# | **Do** | You fill in a cell. The text above it gives the task, the budget, and the length of a good answer. |
# | `gpulab.check(name, f)` | says how many points your answer earns, and what is missing |
# | `gpulab.hint(name)` | gives you one step of help; the next one comes after another attempt |
# | `gpulab.show(…)`, `gpulab.profile(…)` | draw a picture of a run, and print a report on it |
# | `gpulab.sanitize(…)` | says what is wrong with a kernel, even where its result is right |
# | `gpulab.trace(…)` | lets you step through your kernel: which threads run each line, what they read and write |
# | `gpulab.watch()` | does the same for the thread at which the last check failed |
#
# An exercise gives points for a right answer. Where cost is the lesson, it also gives points for keeping within a
# **budget**, which is a limit on something that is counted. Your course grades with the same counts but at other
# sizes, so a kernel made for the visible sizes gains nothing.
#
# **The sanitizer.** An index outside an array stops a kernel, so you notice it. Other mistakes leave no trace, and
# even the result can look right. One of them is in the kernel `pull`, which moves every element one place to the
# left within the same array:


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
# Read this report like the message above. It names two threads and one element, which one thread reads and the other
# writes, and nothing determines which of them comes first. This is called a **data race**. Here, our simulator
# happened to let all threads read before any of them wrote. In a different order the same kernel gives a different
# result, and a GPU may pick a different order each time. That is why `sanitize` tries several orders and looks at
# every access.
#
# If something does not run, first find out what your machine has. The next cell does the same as the command
# `gpulab doctor` in a terminal.

# %%
import rich

from gpulab.doctor import diagnose

rich.print(diagnose())

# %% [markdown]
# ## 2 · One finding: the same answer, eight times the traffic
#
# The two kernels below copy the same 262,144 numbers with 4,096 threads, so each thread copies 262,144 / 4,096 = 64
# of them. (`cuda.gridsize(1)` is the number of threads in the grid.) The kernels differ in which numbers a thread
# takes. In `chunks`, each thread takes 64 neighbouring numbers, as you would share out work among the cores of a
# CPU. In `stripes`, all threads together take 4,096 neighbouring numbers, one each, and then move on by 4,096.
#
# ![Two ways to share 16 elements among 4 threads. In chunks, thread 0 takes elements 0 to 3, so in one step the four threads read elements that lie 4 apart. In stripes, the four threads read four neighbours in each step.](drawings/chunks_and_stripes.svg)
#
# The difference matters because memory is not read number by number. It comes in **sectors** of 32 bytes, each of
# which holds eight of our 4-byte numbers. Threads run in warps of 32, and one load of a warp is one **request**. For
# each request, the memory delivers every sector that any of the 32 threads needs.


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
# **Predict.** The outputs are equal. In `chunks`, the 32 threads of a warp read numbers that lie 64 apart. How many
# sectors does one request of the warp move? How many does it move in `stripes`, where the threads read 32
# neighbours?

# %%
gpulab.predict("start.sectors_chunks", ...)
gpulab.predict("start.sectors_stripes", ...)

# %%
slow = gpulab.profile(chunks[16, 256], a, out_chunks)
fast = gpulab.profile(stripes[16, 256], a, out_stripes)
slow

# %% [markdown]
# For now, read only three rows of the report: global loads, global stores and costliest line. **Ideal** is the least
# traffic that the same bytes could cause. You can ignore the rest until lab 03: AI (arithmetic intensity, the number
# of operations per byte), shared memory, occupancy and registers. NVVM is the name of NVIDIA's compiler.

# %%
slow.compare(fast)

# %% [markdown]
# **See.** The pictures show the costliest load and the costliest store of one warp in each kernel. A frame of eight
# cells is one sector, and only the sectors that are fetched are drawn. The numbers on the left say how far into the
# array these sectors lie. The numbers in the cells are **lanes**: a thread's lane is its place in its warp, from 0
# to 31. A hollow cell is fetched although no thread asked for it.

# %%
gpulab.show(slow)
gpulab.show(fast)

# %% [markdown]
# **Try it.** The next figure shows the two loads on one scale, with the 32 lanes above and the sectors that they
# touch below. The stride is the distance between the numbers that neighbouring lanes read. Drag the stride of
# `chunks` down from 64. At which stride does the load stop costing 32 sectors?

# %%
from gpulab.plot.moving import Pattern, WarpAccess

WarpAccess([Pattern(stride=1, title="stripes"), Pattern(stride=64, title="chunks")])

# %% [markdown]
# **Do.** A report has one row for each source line. Write `worst_line(lines)`, which finds the line that moves the
# most sectors and says how well it uses them.
#
# - Input: `lines` is a list of rows `[line, requests, sectors, bytes]`. The bytes are those that the threads asked
#   for.
# - Output: three numbers for the line with the most sectors. They are its line number, its sectors per request, and
#   what percentage of the bytes in its sectors the threads asked for.
# - Length: about 3 lines.


# %% nbgrader={"grade": false, "grade_id": "worst_line", "locked": false, "schema_version": 3, "solution": true, "task": false}
def worst_line(lines):
    ### BEGIN SOLUTION
    line, requests, sectors, asked = max(lines, key=lambda row: row[2])
    return [line, sectors / requests, 100 * asked / (32 * sectors)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "worst_line-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("start.worst_line", worst_line)

# %% [markdown]
# Now let your function read the two reports above.


# %%
def memory_lines(report):
    """The rows of a report that touch global memory, as worst_line wants them."""
    names = ("global_requests", "global_sectors", "global_bytes")
    rows = [[line.line, *(line.metrics[name] for name in names)] for line in report.lines]
    return [row for row in rows if row[1]]


gpulab.need(worst_line)
worst_line(memory_lines(slow)), worst_line(memory_lines(fast))

# %% [markdown]
# **Why.** In `chunks`, every thread of a warp needs a different sector and uses 4 of its 32 bytes, so seven eighths
# of what arrives is thrown away, at least for this request. In `stripes`, the warp uses every byte. Caches soften
# the difference on a real GPU, because the other bytes of a sector may still be in the cache when they are needed.
# How much they help depends on the GPU and on what else runs, but the counts depend on neither. Lab 04 starts from
# this finding.

# %% [markdown]
# ## 3 · How to measure honestly
#
# Every number in this course is obtained in one of three ways, and a report says which.
#
# | way | what it is | where it holds |
# |---|---|---|
# | **counted** | what the kernel did, in sectors, instructions or branches | on every machine, for one compiler |
# | **modelled** | counts combined with a GPU's data sheet | as far as the model holds; it is never a proof |
# | **measured** | time on a clock | on that machine, on that day, if you measured well |
#
# Budgets limit counts, so a slow laptop loses no points. Times come later, on real GPUs, and they mislead more
# easily than counts do:
#
# - The **first call** also compiles the kernel.
# - A launch **returns before the work is done**. Without `cuda.synchronize()`, which waits for the GPU, you time the
#   launch and not the kernel.
# - One run is an anecdote. Time several runs and use their **median**, which a single disturbed run does not move.
# - A time may be **too good** to be true. The bytes that a kernel moves need at least bytes / bandwidth seconds, so
#   doubt any shorter time.
#
# You can see the first point on any machine. The times below are measured on this computer, not on a GPU.

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
# **Do.** Write `honest_time(log)`, which says what a log of timings proves, if it proves anything.
#
# - Input: `log` is a dictionary. `times_us` is the list of the times of all calls in microseconds, the first call
#   first. `synchronised` says whether each time was taken after `cuda.synchronize()`. `bytes` is the number of bytes
#   that one call moves, and `peak_bytes_per_s` is the most that the GPU's memory can move per second.
# - Output: `[median in µs, bytes per second]`, both without the first call. The bytes per second follow from the
#   median.
# - Return `None` instead if the log proves nothing: fewer than three times are left after the first is dropped, the
#   times were not synchronised, or the bytes per second exceed the peak.
# - `statistics.median` is already imported.
# - Length: about 6 lines.

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
# GPU specifications are in `gpulab.hardware`, each with the document that states it. (The command `gpulab gpus` in a
# terminal prints them all.) The next cell looks up the most that an A100's memory can move per second.

# %%
from gpulab import hardware

a100 = hardware.find("A100")
print(f"{a100.dram_bandwidth}  ({a100.dram_bandwidth.source})")

# %% [markdown]
# **Predict.** A copy of 100,000,000 float32 numbers, of 4 bytes each, reads 400 MB and writes 400 MB. What is the
# shortest time, in microseconds, that an A100 can need for it?

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
# These four logs are made up to show the four cases. None of them was taken on a GPU.
#
# ![A launch returns at once while the kernel still runs on the GPU. A clock that is stopped when the launch returns measures only the launch; one that is stopped after waiting for the GPU measures the kernel.](drawings/clock.svg)
#
# **Why.** A log like *never waited* shows about 6 µs however large the array is, because that is the time of the
# launch alone. *Too good* shows 231 µs, but by the data sheet the copy takes at least 392 µs. Either the data were
# still in a cache, or part of the work was not done.
#
# A time can also be wrong in the other direction. One set of course notes says that a product of two 3620 × 3620
# matrices takes 26.8 ms on an RTX 4090, and concludes that the library reaches 3.5 TFLOP/s. Work out whether that is
# plausible:

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
# A tuned library does not run at 4 % of the peak. The loop that was timed did more than multiply. On every pass it
# also allocated memory, copied three matrices, and created the library's handle (its working state, which a real
# program creates once). So the 26.8 ms say little about the product.
#
# ## Detective · Twice as fast
#
# A colleague shows you `quick`, a copy that does "the same with half the requests". Both kernels run below, and
# their outputs agree in every element. This time the arrays are on the device, that is, on the GPU (real or
# simulated). `cuda.to_device` copies an array there, `cuda.device_array` only makes room for one, and `copy_to_host`
# brings one back.


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
# **Do.** Find out what is wrong with `quick`.
#
# 1. Compare the counts. `whole["global_store_bytes"]` is the number of bytes that `plain` stored, and `half[…]` is
#    the same for `quick`. You know how many bytes a copy must store.
# 2. Change the experiment above, but not the kernels, so that the output shows the fault. The cell below is free for
#    that.

# %%
# your experiment

# %% [markdown]
# ### Your answer
#
# Answer in two to four sentences: why did the two outputs agree, what does `quick` do instead of a copy, and which
# count from your own run gives it away? A person reads your answer and gives 1 point for the cause and 1 point for a
# count that you measured.

# %% [markdown] nbgrader={"grade": true, "grade_id": "detective-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** `quick` copies only the first half, because its guard is `2 * i < a.size`. The report therefore
# counts 200,000 bytes stored, but a copy of 100,000 float32 numbers must store 400,000. The outputs agreed because
# `target` still held what `plain` had written. With `target` filled with NaN first, 50,000 elements stay NaN.
#
# **1 point** (cause without a count): `quick` skips elements, and the old values from `plain` were still in
# `target`.
#
# **0 points:** `quick` is faster because it runs fewer instructions, or because the data were in the cache.

# %% [markdown]
# ## Beyond · The cheapest copy
#
# This task is open-ended and ungraded. Copy 2²⁰ float32 numbers with as few warp instructions as you can. The figure
# of merit is the number of warp instructions per 32 elements.
#
# | kernel | warp instructions per 32 elements |
# |---|---|
# | `plain`, the naive one | run the cell below |
# | ours, sixteen elements per thread | 12.1 (counted, NVVM 13.5) |
# | lower bound for 4-byte accesses | 2: one load and one store |

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
# Can you do it now? Answer each question first, and then open it.
#
# <details><summary>1 · A launch has 8 blocks of 128 threads, and the array has 1,000 elements. What does the guard
# look like, and how many threads does it stop?</summary>
#
# `if i < a.size:` stops 8 · 128 − 1,000 = 24 threads.
# </details>
#
# <details><summary>2 · A message says that thread (31, 0, 0) of block (3, 0, 0) wrote out[127], but out has 120
# elements. Blocks have 32 threads. What is wrong?</summary>
#
# The thread's number is 3 · 32 + 31 = 127, but there are only 120 elements. So the kernel has no guard, or its guard
# compares with the wrong number.
# </details>
#
# <details><summary>3 · A line makes 1,000 requests and moves 9,000 sectors for 128,000 bytes. How many sectors is
# that per request, and what percentage of their bytes was asked for?</summary>
#
# It is 9 sectors per request. The sectors hold 9,000 · 32 = 288,000 bytes, and 128,000 of those were asked for,
# which is 44 %.
# </details>
#
# <details><summary>4 · Which of these is counted, which modelled, which measured: 4.0 sectors per request; at
# least 392 µs, from bytes and bandwidth; 447 µs?</summary>
#
# The 4.0 sectors are counted, the 392 µs are modelled (the bandwidth is the data sheet's), and the 447 µs are
# measured.
# </details>
#
# <details><summary>5 · A benchmark reports 6 µs for a kernel, whatever the size of the array. What
# happened?</summary>
#
# Nobody waited for the kernel, so the time is that of the launch.
# </details>
#
# ### Cheat sheet
#
#     @cuda.jit                                   a kernel: compiled at its first call
#     kernel[blocks, threads](a, out)             a launch
#     i = cuda.grid(1)                            this thread's number in the grid
#     if i < a.size:                              the guard
#     for i in range(cuda.grid(1), n, cuda.gridsize(1)):
#                                                 a loop for any size and any launch
#     d = cuda.to_device(a); d.copy_to_host()     copy to the device and back
#     cuda.synchronize()                          wait for the device
#
#     gpulab.check(name, f)                       points, and what is missing
#     gpulab.hint(name)                           one step of help
#     r = gpulab.profile(kernel[b, t], …)         a report
#     r.lines  r.compare(s)  r["flops"]           its source lines, a comparison, one number
#     gpulab.show(r)                              a picture of its memory accesses
#     gpulab doctor · gpulab gpus                 this machine · data sheets, in a terminal
#
# ### What common guides get wrong
#
# - *"Launching a kernel costs 20 to 40 µs"*, *"less than 10 µs"*. A bare launch takes a few microseconds, and a
#   framework such as PyTorch adds its own time. The total depends on the machine, so measure it instead of quoting a
#   number.
# - *Start a clock, call, stop the clock.* Without a warm-up you time the compiler, and without `synchronize` you
#   time the launch. With allocations and copies between the two readings, you time everything but the kernel.
# - *"The library reaches 3.5 TFLOP/s"* for the 3620 × 3620 product above. The clock also ran while memory was
#   allocated and copied.
#
# ### References
#
# - NVIDIA, *CUDA Programming Guide*, <https://docs.nvidia.com/cuda/cuda-programming-guide/>
# - NVIDIA, *numba-cuda*, <https://nvidia.github.io/numba-cuda/>
# - NVIDIA, *Nsight Compute: Profiling Guide*, which lists the metrics by their names on a real GPU,
#   <https://docs.nvidia.com/nsight-compute/ProfilingGuide/>
# - T. Hoefler, R. Belli, "Scientific Benchmarking of Parallel Computing Systems", SC '15,
#   <https://doi.org/10.1145/2807591.2807644>
# - A. Georges, D. Buytaert, L. Eeckhout, "Statistically Rigorous Java Performance Evaluation", OOPSLA '07,
#   <https://doi.org/10.1145/1297027.1297033>
