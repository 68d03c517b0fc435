# ---
# jupyter:
#   gpulab:
#     lab: "02"
#     hours: 3
#     topics: [C2.1, C2.2, C2.3, C2.4, C2.5, C2.6, C2.7, C2.8, C2.9, C2.10, C2.11, C2.12, C2.13, C3.1, C3.2, C3.3, C3.4, C3.5, C3.6, C3.8, C3.9, C3.10, C3.12, C6.1, C6.2, C6.3, C6.4, C6.5, C6.8, C6.9, C6.10, C6.11, C22.1, C22.2, C22.3, C22.4, C22.5, C23.1, C23.7, C23.8, C23.9]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 02 A · GPU architecture: what a data sheet tells
#
# **3 to 5 hours.** You need Python. Part A has no kernels and needs no GPU. Part B comes after labs 03
# and 04.
#
# Before you write fast code, you can find out how fast it may get. Four kinds of figures from a data sheet (units,
# clock, bandwidth, latency) and a division answer most questions. In this part you work with the data sheets of more
# than a dozen GPUs, and you measure the processor in front of you.
#
# By the end of this lab, you can
#
# 1. derive a peak from units and clock, and see through an advertised one;
# 2. say for a dtype and a GPU how many operations there must be for each byte;
# 3. name the least time of a matrix product, and what sets it;
# 4. compute how many bytes, and so how many warps, must be under way to keep a memory busy;
# 5. say when another processor, or a hundred of them, will not help.

# %%
from math import ceil

import numpy as np

import gpulab
from gpulab import hardware

gpulab.start("02")

# %% [markdown]
# ## 1 · Two answers to waiting
#
# A processor multiplies in 4 cycles, but it waits hundreds of cycles for DRAM. There are two answers to this problem.
#
# ![A CPU core gives most of its room to caches and to guessing what comes next, so that one thread waits little. A GPU's SM gives it to lanes and registers, so that another warp runs while one waits.](drawings/two_answers.svg)
#
# A **CPU** shortens the wait. Large caches keep data close, and **prefetchers** fill them ahead of time. Branches are
# predicted. **Out-of-order execution** looks ahead in a thread for instructions that can run already. A
# **superscalar** core starts several instructions per cycle, on vectors of 256 bits (AVX2) or 512 (AVX-512).
# **Hyper-threading** gives a core a second thread.
#
# A **GPU** uses the wait for other work. A **kernel** is the function that its threads run. An **SM** (streaming
# multiprocessor) is the GPU's core. It runs threads in groups of 32, called **warps**, and a thread's place in its
# warp is its **lane**. Thousands of threads are resident with all their registers, and when one warp waits, another
# one issues an instruction. So the caches can be small, and the chip's area goes into arithmetic and wide memory.
#
# **Predict.** An H100 keeps 2,048 threads on each of 132 SMs. An EPYC 9654 runs two on each of 96 cores. How many
# times as many threads does the GPU hold?

# %%
gpulab.predict("arch.threads", ...)

# %%
h100, epyc = hardware.find("H100"), hardware.cpu("EPYC 9654")
on_gpu = int(h100.sms) * h100.capability.max_threads
on_cpu = int(epyc.cores) * int(epyc.threads_per_core)
print(f"threads at once   {h100}: {on_gpu:,}   {epyc}: {on_cpu:,}")
print(f"last cache        {h100}: {h100.l2_bytes}   {epyc}: {epyc.l3_bytes}")
print(
    f"  for each thread {h100}: {float(h100.l2_bytes) / on_gpu:,.0f} B   {epyc}: {float(epyc.l3_bytes) / on_cpu:,.0f} B"
)
gpulab.predict("arch.threads", measured=on_gpu / on_cpu)

# %% [markdown]
# **Why.** A CPU thread has two megabytes of the last cache, and a GPU thread has 194 bytes. Neither design is better.
# A CPU is built for **latency**, the time until one result is there, and a GPU for **throughput**, the number of
# results per second. Which you need depends on how many independent things your program does.
#
# ### What becomes of an instruction
#
# ![An instruction of a warp: a scheduler picks a warp whose operands are ready, issues one instruction a cycle for its 32 lanes, and the lanes of a pipe carry it out.](drawings/instruction.svg)
#
# | step | a CPU core | an SM |
# |---|---|---|
# | fetch, decode | several per cycle, of one or two threads | one per cycle and scheduler, of one warp |
# | find work | rename registers, look ahead in a window | pick another warp whose operands are ready |
# | branch | predict, and undo when wrong | run both ways in turn where lanes differ |
# | execute | out of order, 4 to 16 lanes of a vector | in order, 32 lanes of a warp |
# | memory | a **TLB** keeps address translations; MESI or a similar protocol keeps all caches **coherent** | L1s are not coherent; L2 serves all SMs (PTX ISA, cache operators) |
# | finish | retire in program order | a scoreboard marks the result as ready |
# | change thread | the operating system saves registers: microseconds | nothing to save: possible in every cycle |
#
# M. Flynn (1966) classified machines by streams of instructions and data. **SISD** has one of each. **SIMD** applies
# one instruction to many data (a CPU's vectors). **MIMD** has many of both (a CPU's cores). NVIDIA calls its form
# **SIMT**: you write for one thread, 32 of them share an instruction, and each may go its own way at a price. A whole
# GPU is MIMD of SIMT.
#
# ### How GPUs came to compute
#
# Drawing runs the same small program for millions of pixels, so graphics cards became throughput machines.
#
# | year | what came | what it changed |
# |---|---|---|
# | 2001 | programs for vertices (E. Lindholm et al., SIGGRAPH 2001) | one unit of the card does what a programmer says |
# | 2004 | Brook (I. Buck et al., SIGGRAPH 2004) | general programs, carried out as if they were pictures: **GPGPU** |
# | 2006 | one kind of core for all programs (E. Lindholm et al., IEEE Micro, 2008) | the SM, with threads and shared memory |
# | 2007 | CUDA | C without the disguise |
# | 2012 | AlexNet wins an image contest (A. Krizhevsky et al., 2012) | deep learning moves to GPUs |
# | 2017 | tensor cores (NVIDIA V100 whitepaper) | matrix products get a unit of their own |
#
# AlexNet was trained for five to six days on two GeForce GTX 580. Each had 512 lanes for float32 at 1.544 GHz
# (NVIDIA, GeForce GTX 580 specifications). A lane does two operations per cycle, so both together had a peak of
# 2 · 512 · 2 · 1.544 GHz = 3.16 TFLOP/s.
#
# **Predict.** The lanes of one H100 have 66.9 TFLOP/s. If it reaches the same share of its peak as they did, how many
# hours does this training take?

# %%
gpulab.predict("arch.alexnet", ...)

# %%
then = 2 * 512 * 2 * 1.544e9  # two GTX 580, FLOP/s
work = 5.5 * 24 * then  # hours × FLOP/s: what was spent, if all of the peak had been used
lanes, cores = [(2010, 5.5 * 24)], []
for name in ("V100", "A100", "H100", "B200"):
    gpu = hardware.find(name)
    lanes.append((int(gpu.year), work / float(gpu.peak())))
    cores.append((int(gpu.year), work / float(gpu.peak("float16", tensor=True))))
    print(
        f"{name}: {lanes[-1][1]:5.1f} hours on float32 lanes, {60 * cores[-1][1]:4.0f} minutes on tensor cores"
    )
gpulab.predict("arch.alexnet", measured=work / float(h100.peak()))
gpulab.plot.lines(
    {"float32 lanes": lanes, "tensor cores, float16": cores},
    "year of the GPU (in 2010 there were two)",
    "hours for AlexNet",
    "Modelled from peaks: faster lanes turn the days of 2010 into hours, and tensor cores turn hours into minutes.",
    log_y=True,
)

# %% [markdown]
# **Why.** From a GTX 580 to an H100 the number of lanes grew from 512 to 16,896, which is 33-fold, but their clock only
# by 28 %. A tensor core is faster because it is built for one operation and a smaller type. Section 2 takes both
# apart.
#
# ## 2 · Where a peak comes from
#
# A GPU is built in levels. The chip has **GPCs** (graphics processing clusters), a GPC has **TPCs** (texture
# processing clusters), and a TPC has two **SMs**. An SM has four quarters. Each has a warp scheduler, a share of the
# registers and lanes, and one tensor core (from Ampere on; Volta and Turing had two).

# %%
print("          GPCs  TPCs   SMs   lanes per SM: float32  float64  int32   tensor cores per SM")
for name in ("V100", "A100", "H100", "B200", "RTX 4090"):
    gpu = hardware.find(name)
    counts = [str(x.value) if x is not None else "–" for x in (gpu.gpcs, gpu.tpcs, gpu.sms)]
    lanes = [int(gpu.lanes(dtype)) for dtype in ("float32", "float64", "int32")]
    print(
        f"{name:9}{counts[0]:>5}{counts[1]:>6}{counts[2]:>6}{lanes[0]:>23}{lanes[1]:>9}{lanes[2]:>7}{int(gpu.tensor_cores):>22}"
    )

# %% [markdown]
# An H100's SM also has 32 load/store units, 16 special function units (sine, reciprocal, …), 64 Ki registers of 4
# bytes, and 256 KiB of L1 and shared memory (NVIDIA H100 whitepaper).
#
# ### Peak, dense and sparse
#
# ![Structured sparsity keeps two of every four weights. Half as many values are stored, and two bits for each give its position among the four.](drawings/two_of_four.svg)
#
# Every lane starts one **FMA** (fused multiply-add) per cycle, and an FMA counts as two operations. So
#
# **peak = SMs × FMA per SM and cycle × 2 × clock**
#
# The next cell shows this for the float32 lanes of a few GPUs.

# %%
peaks = {}
for name in ("V100", "T4", "A100", "H100", "RTX 4090", "B200"):
    gpu = hardware.find(name)
    peaks[name] = float(gpu.peak()) / 1e12
    clock = float(gpu.boost_clock) / 1e9
    print(
        f"{name:9}{int(gpu.sms):4} SMs × {int(gpu.fp32_lanes):3} × 2 × {clock:.3f} GHz = {peaks[name]:5.1f} TFLOP/s"
    )
gpulab.plot.bars(
    peaks,
    "TFLOP/s in float32, on the ordinary lanes",
    caption="More SMs, more lanes in each and a higher clock all raise the peak of the float32 lanes.",
)

# %% [markdown]
# A **tensor core** starts many FMAs of a small matrix product D = A · B + C at once, and it adds in a wider type than
# it multiplies in. Tensor-core rates are stated for a **clock** of their own. For an H100 that is 1.83 GHz, while its
# lanes run at 1.98 (H100 whitepaper, which gives no reason).
#
# | rate of one tensor core | V100 | T4 | A100 | H100 | B200 |
# |---|---|---|---|---|---|
# | FMA per cycle in float16 | 64 | 64 | 256 | 512 | 1,024 |
# | new types | float16 | int8, int4 | bfloat16, tfloat32, float64 | float8, without int4 | float4, float6 |
#
# There are two traps. From Ampere on a tensor core can skip two zeros in every four weights (**2:4 sparsity**). This
# doubles the figure on the front page, but not your dense product. And a page may describe a **server with eight
# GPUs**.
#
# **Do.** Write `peak(sheet, dtype, advertised)`. About 5 lines.
#
# - Input: `sheet["sms"]` is the number of SMs. `sheet["units"][dtype]` has `fma_per_sm`, the FMA per SM and cycle,
#   and `clock`, the clock of these units in Hz. `advertised` is a rate in FLOP/s.
# - Output: `[rate, factor]`: the dense peak in FLOP/s, and the advertised rate divided by it, rounded to a whole
#   number. Return `None` if the sheet has no units for the dtype.


# %% nbgrader={"grade": false, "grade_id": "peak", "locked": false, "schema_version": 3, "solution": true, "task": false}
def peak(sheet, dtype, advertised):
    ### BEGIN SOLUTION
    unit = sheet["units"].get(dtype)
    if unit is None:
        return None
    rate = sheet["sms"] * unit["fma_per_sm"] * 2 * unit["clock"]
    return [rate, round(advertised / rate)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "peak-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("arch.peak", peak)

# %% [markdown]
# Now use it to read some advertisements, from NVIDIA's data sheets of H100, A100, DGX H100, DGX B200 and L40S.

# %%
gpulab.need(peak)


def sheet_of(name):
    gpu = hardware.find(name)
    units = {"float32": {"fma_per_sm": int(gpu.fp32_lanes), "clock": float(gpu.boost_clock)}}
    for dtype, rate in gpu.tensor_fma.items():
        units[dtype] = {"fma_per_sm": int(rate), "clock": float(gpu.tensor_clock)}
    return {"sms": int(gpu.sms), "units": units}


for name, dtype, claim in (
    ("H100", "float16", 1979e12),
    ("H100", "float8", 3958e12),
    ("A100", "float16", 312e12),
    ("H100", "float8", 32e15),
    ("B200", "float4", 144e15),
    ("L40S", "float8", 1466e12),
):
    rate, factor = peak(sheet_of(name), dtype, claim)
    print(
        f"{name:5}{dtype:9}{claim / 1e12:9,.0f} TFLOP/s advertised{rate / 1e12:9,.0f} dense, one GPU   factor {factor}"
    )

# %% [markdown]
# **Why.** A factor of 2 is sparsity, 8 is a server, and 16 is both. Well-tuned matrix products reach about 87 % of
# the dense float16 peak on an A100, 80 % on an H100, 78 % on a B200 and 51 % on an MI300X (S. Bekman, *Machine
# Learning Engineering*, "Maximum Achievable Matmul FLOPS"). The rest is lost to power limits, clocks under load, and
# the last wave of tiles. **Utilisation** is the rate that is reached, divided by the peak. Always say which peak.
#
# ### A unit for rays
#
# Not every unit of a GPU has a place in a peak. To **trace rays** means to follow the light back from each pixel to
# the first thing that it meets. Testing all things in a scene for each ray would take too long. So things are put
# into boxes, and pairs of boxes into larger boxes, up to one box around the scene. This tree is called a **BVH**
# (bounding volume hierarchy). A ray that misses a box skips everything inside.
#
# **Predict.** 4,096 balls make a tree with 12 levels below the root. A ray tests the outermost box, and whenever it
# meets a box, it tests the two inside. How many boxes does a ray test?

# %%
gpulab.predict("arch.boxes", ...)

# %%
numbers = np.random.default_rng(8)
BALLS = 4096
centres = numbers.random((BALLS, 3))
boxes = np.zeros((2 * BALLS, 2, 3))  # box n holds boxes 2n and 2n + 1; from 4,096 on a box holds one ball


def build(balls, n):
    points = centres[balls]
    boxes[n] = points.min(0) - 0.01, points.max(0) + 0.01
    if len(balls) > 1:
        in_order = balls[points[:, int(np.ptp(points, axis=0).argmax())].argsort()]
        build(in_order[: len(balls) // 2], 2 * n)
        build(in_order[len(balls) // 2 :], 2 * n + 1)


def tested(start, direction):
    """The boxes that a ray tests, in order."""
    found, todo = [], [1]
    while todo:
        n = todo.pop()
        found.append(n)
        sides = (boxes[n] - start) / direction
        if sides.min(0).max() <= sides.max(0).min() and n < BALLS:
            todo += [2 * n + 1, 2 * n]
    return found


def through_neighbours():
    """32 rays from one eye through 8 × 4 pixels."""
    x, y = numbers.random(2) * 0.9 - 0.45
    return [([0.5, 0.5, -1.0], [x + 0.005 * (i % 8), y + 0.005 * (i // 8), 1.0]) for i in range(32)]


def after_a_bounce():
    """32 rays from anywhere to anywhere."""
    return [(numbers.random(3), numbers.normal(size=3)) for _ in range(32)]


build(np.arange(BALLS), 1)
per_ray, at_work, apart = {}, {}, {}
for name, rays in (("neighbouring pixels", through_neighbours), ("after a bounce", after_a_bounce)):
    warps = [[tested(*ray) for ray in rays()] for _ in range(12)]
    counts = np.array([[len(walk) for walk in warp] for warp in warps])
    per_ray[name] = counts.mean()
    at_work[name] = 100 * counts.sum() / (32 * counts.max(axis=1).sum())
    apart[name] = np.mean(
        [len({w[i] for w in warp if i < len(w)}) for warp in warps for i in range(max(map(len, warp)))]
    )
gpulab.predict("arch.boxes", measured=per_ray["neighbouring pixels"])
gpulab.plot.panels(
    {"boxes per ray": per_ray, "lanes at work, %": at_work, "different boxes per step": apart},
    "Counted for warps of 32 rays: those that have bounced end at different times, and read from more places.",
)

# %% [markdown]
# **Why.** The tree saves nearly all tests, but it does not suit a warp. Some lanes end early, and in every step the
# others read boxes from different places in memory. So NVIDIA built the **RT core**, one per SM: a unit that walks the
# tree by itself, while the warps do something else (NVIDIA Turing whitepaper). A100, H100 and B200 have none, and
# A100s have no connector for a screen either, because they are built for servers that compute (NVIDIA A100 and H100
# whitepapers). A product of matrices has no rays to trace. For rendering, data centres have the L40S, with RT
# cores (NVIDIA L40S data sheet).
#
# ## 3 · The memory wall
#
# Arithmetic has become cheaper faster than bandwidth has. If you divide a peak by the bandwidth, you get the number
# of operations that there must be for each byte before arithmetic becomes the limit. This number is called the
# **ridge**.
#
# **Predict.** A V100 has 125 TFLOP/s in float16 and 900 GB/s. A B200 has 2,250 TFLOP/s and 8 TB/s. By which factor
# has the ridge grown?

# %%
gpulab.predict("arch.wall", ...)

# %%
first, last = hardware.roofline("V100", "float16"), hardware.roofline("B200", "float16")
gpulab.predict("arch.wall", measured=last.ridge / first.ridge)
print(
    f"peak {last.peak / first.peak:.1f} ×, bandwidth {last.bandwidth / first.bandwidth:.1f} ×, in seven years"
)

# %% [markdown]
# **See.** The ridge of several GPUs and dtypes. A float16 kernel needs far more operations per byte than a float32
# kernel, because its arithmetic is faster, not because it moves more.

# %%
gpulab.plot.ridges(
    ["V100", "T4", "A100", "H100", "H200", "B200", "RTX 4090"], ["float64", "float32", "float16", "float8"]
)

# %% [markdown]
# **Why.** This is the **memory wall**. The H200 is an H100 with more and faster memory, and it moves the wall back by
# 30 %. On every GPU of the figure, a float32 program with two operations per byte leaves most of the lanes idle.
#
# Large models have met three more walls. *Memory*: GPT-2 had 1.5 billion parameters (2019), and GPT-3 had 175 billion
# (Brown et al., 2020). In float16 that is 350 GB, more than any GPU held. *Communication*: what does not fit on one
# GPU must be exchanged with others, over links with about a tenth of the bandwidth of DRAM. *Latency*: a model writes
# one token after the other, however many GPUs it has.
#
# ## 4 · The roofline
#
# **Arithmetic intensity** is the number of operations divided by the bytes that move to and from DRAM. With it, two
# bounds form a roof (S. Williams et al., 2009):
#
# **rate ≤ min(peak, intensity × bandwidth)**
#
# The three levels of BLAS, a standard library of linear algebra, differ in intensity. Vectors have n numbers,
# matrices n × n, and a number has b bytes:
#
# | level | example | operations | bytes | intensity, float32 |
# |---|---|---|---|---|
# | 1 | y = a · x + y | 2n | 3nb | 1/6 |
# | 2 | y = A · x | 2n² | n²b | 1/2 |
# | 3 | C = A · B | 2n³ | 3n²b | n/6 |
#
# Only the intensity of level 3 grows with n. A language model that writes one token after the other works on level 2.
#
# **Predict.** An A100 with 2.039 TB/s computes c = a + b in float32. What is the highest rate, in TFLOP/s?

# %%
gpulab.predict("arch.add", ...)

# %%
a100 = hardware.roofline("A100", "float32")
gpulab.predict("arch.add", measured=a100.attainable(1 / 12) / 1e12)
print(f"{100 * a100.attainable(1 / 12) / a100.peak:.1f} % of the float32 peak")

# %% [markdown]
# **Do.** Write `bound(product, gpu)`. About 6 lines.
#
# - Input: `product` is a dictionary with the sizes `m`, `n`, `k` (A is m × k, B is k × n), a `dtype` and `bytes`, the
#   bytes per element. `gpu` has `dram_bandwidth` in B/s, and `peak`, a dictionary of FLOP/s by dtype.
# - Each of the three matrices moves once.
# - Output: `[intensity, what, seconds]`: the intensity in FLOP/B, `"memory"` or `"compute"`, and the least time.
#   Exactly on the ridge it is `"compute"`.


# %% nbgrader={"grade": false, "grade_id": "bound", "locked": false, "schema_version": 3, "solution": true, "task": false}
def bound(product, gpu):
    ### BEGIN SOLUTION
    m, n, k = product["m"], product["n"], product["k"]
    flops = 2 * m * n * k
    moved = product["bytes"] * (m * k + k * n + m * n)
    arithmetic = flops / gpu["peak"][product["dtype"]]
    traffic = moved / gpu["dram_bandwidth"]
    return [flops / moved, "memory" if arithmetic < traffic else "compute", max(arithmetic, traffic)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "bound-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("arch.bound", bound)

# %%
gpulab.need(bound)
BYTES = {"float16": 2, "float32": 4}


def plain(name):
    gpu = hardware.find(name)
    return {
        "dram_bandwidth": float(gpu.dram_bandwidth),
        "peak": {dtype: hardware.roofline(gpu, dtype).peak for dtype in BYTES},
    }


points = []
for label, m, n, k, dtype in (
    ("1024³", 1024, 1024, 1024, "float32"),
    ("1024³ (16 bit)", 1024, 1024, 1024, "float16"),
    ("8192³ (16 bit)", 8192, 8192, 8192, "float16"),
    ("matrix × vector", 8192, 1, 8192, "float16"),
    ("matrix × 64 vectors", 8192, 64, 8192, "float16"),
):
    product = {"m": m, "n": n, "k": k, "dtype": dtype, "bytes": BYTES[dtype]}
    intensity, what, seconds = bound(product, plain("A100"))
    print(f"{label:22}{intensity:9.1f} FLOP/B   {what:8}{1e6 * seconds:10.1f} µs at least")
    points.append(gpulab.plot.Point(label, intensity, None, dtype))
points.append(gpulab.plot.Point("a + b", 1 / 12, None, "float32"))
gpulab.plot.roofline(points, "A100")

# %% [markdown]
# A hollow mark lies on its roof, because it is the most that this product can reach. Each dtype has its own roof.
#
# **Why.** A product of given sizes can be compute bound in float32 but closer to memory bound in float16: the bytes
# are halved, but the roof is raised by more than that. Part of the traffic may come from a cache, which has a slope
# of its own (lab 04). On another GPU the marks keep their intensity, and the roof moves.
#
# ### What holds a program up
#
# | what is busy | the program is | what helps |
# |---|---|---|
# | DRAM, near its bandwidth | **memory bound** | fewer bytes: fusion, smaller types, reuse |
# | arithmetic, near its peak | **compute bound** | fewer operations, tensor cores, smaller types |
# | a link to another GPU | **communication bound** | less to send, or sending while computing |
# | disk or data loader | **input bound** | prefetching, more workers |
# | nothing | **latency bound** | more work under way, fewer and larger launches |
#
# If the utilisation of a unit is *high*, the program is bound by this unit. Some guides read it the other way round,
# and they are wrong.
#
# ## 5 · This computer under its own roof
#
# The model is not only for GPUs. `gpulab.bench` measures the processor in front of you: a copy by all cores for the
# bandwidth, and a matrix product for the rate. It takes the fastest of five runs, because other programs can only
# slow a run down.
#
# **Predict.** Where is the float32 ridge of this CPU? The server CPUs in section 9 have 16 to 29 FLOP/B at their base
# clocks.

# %%
gpulab.predict("arch.ridge_here", ...)

# %%
from gpulab import bench

copied, product = bench.bandwidth(), bench.flops()
here = hardware.Roofline("this CPU", "float32", product.rate, copied.rate)
print("copy          ", copied)
print("matrix product", product)
gpulab.predict("arch.ridge_here", measured=here.ridge)

# %% [markdown]
# The next cell measures programs between a copy and a product. Each number of an array goes through 4, 16, 64, …
# steps y = y · x + c before it is stored. A step has 2 operations, and a number moves 8 bytes.

# %%
between = [
    gpulab.plot.Point(f"{count} steps", 2 * count / 8, bench.steps(count).rate)
    for count in (4, 16, 64, 256, 1024)
]
gpulab.plot.roofline(between, here)

# %% [markdown]
# **Why.** The marks climb along the slope and then bend to the flat part. With more operations per byte the rate is
# higher, until arithmetic is the limit. A mark slightly above the roof is not a mistake, because the roof is measured
# as well, and other programs run beside yours. Far below the ridge, nothing that you do to the arithmetic helps.
# These numbers hold for this machine on this day.
#
# ## 6 · Little's law
#
# A memory with a latency delivers at its full rate only if enough requests are under way. J. Little (1961) found how
# many: **what is under way = rate × time**. For example, one car per second enters a road, and each needs 60 seconds
# to drive along it. Then 1 · 60 = 60 cars are on the road.
#
# ![Little's law as a pipe: the bytes that are under way are the bandwidth, its width, times the latency, its length.](drawings/little.svg)
#
# **Predict.** An H100 has 3,350 GB/s and a DRAM latency of 688 cycles at 1.98 GHz. How many kilobytes must be under
# way in the whole GPU?

# %%
gpulab.predict("arch.under_way", ...)

# %%
seconds = float(h100.dram_latency) / float(h100.boost_clock)
gpulab.predict("arch.under_way", measured=float(h100.dram_bandwidth) * seconds / 1e3)
print(f"latency {1e9 * seconds:.0f} ns   ({h100.dram_latency.source}; {h100.dram_latency.note})")

# %% [markdown]
# **Do.** Write `warps_needed(gpu, bytes_per_lane)`, which says how many warps per SM keep the memory busy if each
# lane has one load under way. About 3 lines.
#
# - Input: `gpu` has `sms`, `clock` in Hz, `dram_bandwidth` in B/s and `dram_latency` in cycles. `bytes_per_lane` is
#   the size of the load.
# - Each SM takes an equal share of the bandwidth.
# - Output: a whole number of warps, rounded up.


# %% nbgrader={"grade": false, "grade_id": "warps_needed", "locked": false, "schema_version": 3, "solution": true, "task": false}
def warps_needed(gpu, bytes_per_lane):
    ### BEGIN SOLUTION
    per_cycle = gpu["dram_bandwidth"] / gpu["sms"] / gpu["clock"]
    under_way = per_cycle * gpu["dram_latency"]
    return -int(-under_way // (32 * bytes_per_lane))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "warps_needed-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("arch.warps_needed", warps_needed)

# %%
gpulab.need(warps_needed)
print("GPU        4 B  8 B  16 B per lane   an SM holds")
for gpu in hardware.ALL:
    if gpu.dram_latency is not None:
        figures = {
            "sms": int(gpu.sms),
            "clock": float(gpu.boost_clock),
            "dram_bandwidth": float(gpu.dram_bandwidth),
            "dram_latency": float(gpu.dram_latency),
        }
        needed = [warps_needed(figures, width) for width in (4, 8, 16)]
        full = "   4 B cannot fill it" if needed[0] > gpu.capability.max_warps else ""
        print(f"{gpu.name:9}{needed[0]:5}{needed[1]:5}{needed[2]:5}{gpu.capability.max_warps:23} warps{full}")

# %% [markdown]
# **Why.** On an H100 one 4-byte load per lane is not enough, however many warps you launch: 69 are needed, and 64
# fit. With 16 bytes per lane, or with four independent loads before the first use, 18 are enough. So full occupancy
# is neither necessary nor sufficient. Bandwidth has grown faster than latency has fallen, so each generation needs
# more bytes under way. The L40S and similar GPUs need few, because their memory is slower.
#
# ### Waiting in line
#
# Little's law holds for people too: the requests under way in a service are the requests per second times the seconds
# that each takes. How long each takes depends on how busy the server is. Suppose that requests arrive at random, take
# random times, and are served one after the other. Then the mean time, including waiting, is service time / (1 −
# **utilisation**) (the M/M/1 queue; L. Kleinrock, *Queueing Systems*, 1975). A **percentile** tells more than a mean:
# 99 % of requests are done within the 99th percentile.
#
# ![Waiting time over utilisation: flat for a long time, then steep. At 50 % nobody waits long, and near 100 % the line grows without end.](drawings/queue.svg)

# %%
print("busy    mean    half of them   99 %    (in service times)")
for busy in (0.1, 0.5, 0.8, 0.9, 0.95):
    mean = 1 / (1 - busy)
    print(f"{busy:4.0%}{mean:8.1f}{mean * np.log(2):12.1f}{mean * np.log(100):12.1f}")

# %% [markdown]
# A server that is busy 90 % of the time keeps one request in a hundred for 46 service times or longer. Free capacity
# is the price of short waits, and lab 20 weighs the two against each other.
#
# ## 7 · What speed-up is possible
#
# Suppose a share s of a program's time cannot be spread over several processors. With n processors the rest takes (1
# − s)/n, so the speed-up is **1 / (s + (1 − s)/n)** (G. Amdahl, 1967). It never exceeds 1/s.
#
# J. Gustafson (1988) turned the question around. People with more processors solve larger problems in the same time.
# If s is the serial share of *that* run, one processor would take **s + (1 − s) · n** times as long. Both laws are
# right, but they answer different questions: is the problem fixed, or the time?
#
# **Predict.** A program is serial for 5 % of its time. What is the most that any number of GPUs can speed it up?

# %%
gpulab.predict("arch.amdahl", ...)

# %% [markdown]
# **Do.** Write `processors(serial, target)`. About 8 lines; `math.ceil` is imported.
#
# - Input: the serial share, from 0 to 1 (both included), and the speed-up that is wanted.
# - Output: `[by Amdahl, by Gustafson]`, the fewest processors with at least this speed-up by each law. Where no
#   number is enough, it is `None`.
# - One processor has a speed-up of 1, so a target of 1 needs one processor, even with a serial share of 1.


# %% nbgrader={"grade": false, "grade_id": "processors", "locked": false, "schema_version": 3, "solution": true, "task": false}
def processors(serial, target):
    ### BEGIN SOLUTION
    if target <= 1:
        return [1, 1]
    left = 1 / target - serial
    amdahl = ceil((1 - serial) / left) if left > 0 else None
    gustafson = ceil((target - serial) / (1 - serial)) if serial < 1 else None
    return [amdahl, gustafson]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "processors-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("arch.processors", processors)

# %%
gpulab.plot.speedup([0.01, 0.05, 0.2])

# %% [markdown]
# **Why.** Suppose a kernel becomes 50 × as fast, but the program spends half of its time elsewhere. Then the program
# becomes 1 / (0.5 + 0.5/50) = 1.96 × as fast. So profile first, and port afterwards. A service whose requests pass a
# serial stage of 20 ms serves at most 50 a second, however many GPUs come after that stage. Amdahl's law does not
# apply to a pipeline whose stages overlap. It runs at the pace of its slowest stage.
#
# ## 8 · When offloading pays
#
# To **offload** work means to hand it to the GPU: copy in, start, compute, copy out. It pays off when
#
# **T_cpu > T_start + T_in + T_gpu + T_out**
#
# There are three ways to share work: *offload*, where the CPU waits; a *pipeline*, where pieces are copied while
# others are computed; and *cooperation*, where the CPU takes its part of the items. Data that are already on the GPU,
# because another kernel left them there, need no copy. Never compare a speed-up, which has no unit, with seconds.
#
# **Predict.** c = a + b on an A100 takes 12 bytes of DRAM traffic per element. From host memory over PCIe 4.0 ×16
# (31.5 GB/s each way, both ways at once), 8 bytes come in per element. How many times longer does it take?

# %%
gpulab.predict("arch.copy_share", ...)

# %%
pcie = hardware.link("PCIe 4.0 ×16")
dram = float(hardware.find("A100").dram_bandwidth)
gpulab.predict("arch.copy_share", measured=(8 / float(pcie.per_direction)) / (12 / dram))
print("links, GB/s in one direction")
for link in hardware.LINKS.values():
    both = f"   stated as {float(link.stated) / 1e9:,.0f}, both directions" if link.both_directions else ""
    print(f"  {link.name:16}{float(link.per_direction) / 1e9:7.1f}{both}")

# %% [markdown]
# **Do.** Write `break_even(job)`, which finds the number of items from which the GPU is faster. About 5 lines.
#
# - Input: a dictionary. For each item it has `cpu_s` and `gpu_s` in seconds, and `bytes_in` and `bytes_out`. For the
#   whole job it has `link`, in B/s one way; `overhead_s`, seconds that are paid once; and `resident`, which is true
#   if the data need no copy.
# - Copies and kernel do not overlap.
# - Output: the smallest whole number of items, at least 1, for which the GPU takes less time than the CPU. At a tie
#   the GPU is not faster. Return `None` if there is no such number.


# %% nbgrader={"grade": false, "grade_id": "break_even", "locked": false, "schema_version": 3, "solution": true, "task": false}
def break_even(job):
    ### BEGIN SOLUTION
    moved = 0 if job["resident"] else job["bytes_in"] + job["bytes_out"]
    gain = job["cpu_s"] - job["gpu_s"] - moved / job["link"]
    if gain <= 0:
        return None
    return max(1, int(job["overhead_s"] / gain) + 1)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "break_even-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("arch.break_even", break_even)

# %% [markdown]
# **See.** A matrix product of n × n × n in float32 and a sum of two vectors, on an EPYC 9654 and on an A100. Each
# takes the time of its roofline, and starting on the GPU takes 20 µs (an assumption). This is modelled from data
# sheets.

# %%
cpu = hardware.Roofline("EPYC 9654", "float32", float(epyc.peak()), float(epyc.dram_bandwidth))


def offloaded(flops, moved, copied):
    """Speed-up of the offloaded work: the CPU's time over the GPU's with copies of `copied` bytes one way."""
    by_cpu = max(flops / cpu.peak, moved / cpu.bandwidth)
    by_gpu = 20e-6 + max(flops / a100.peak, moved / a100.bandwidth) + copied / float(pcie.per_direction)
    return by_cpu / by_gpu


sides = [2**k for k in range(6, 15)]
side = next(n for n in range(64, 16_384) if offloaded(2 * n**3, 12 * n * n, 12 * n * n) >= 1)
gpulab.plot.lines(
    {
        "product, copied": [(n * n, offloaded(2 * n**3, 12 * n * n, 12 * n * n)) for n in sides],
        "product, resident": [(n * n, offloaded(2 * n**3, 12 * n * n, 0)) for n in sides],
        "sum, copied": [(n * n, offloaded(n * n, 12 * n * n, 12 * n * n)) for n in sides],
        "sum, resident": [(n * n, offloaded(n * n, 12 * n * n, 0)) for n in sides],
    },
    "elements of a matrix or a vector",
    "CPU time / GPU time",
    f"Copied sums never pay; a copied product pays from {side:,} a side ({side**2 / 1e6:.1f} million elements), "
    "resident data sooner.",
    limits={"break-even": 1},
    log_x=True,
    log_y=True,
)

# %% [markdown]
# **Why.** A sum has too few operations for its bytes to be worth carrying over a link. But low intensity alone does
# not make work better for the CPU. If the data are resident, the GPU wins there too, because of its bandwidth. CPUs
# keep work that is small, serial, full of branches, or waiting for the operating system. These thresholds hold for
# these machines and this link. A kernel that keeps its speed on another GPU, and not only its results, has
# **performance portability**. To know it, measure again.
#
# ## 9 · Side by side
#
# Now read whole data sheets. A dash means that no source states the figure.

# %%
hardware.compare("V100", "A100", "H100 PCIe", "H100", "B200")

# %%
print("CPU         cores  base clock  float64      float32      DRAM         L3")
for cpu_sheet in hardware.CPUS.values():
    print(
        f"{cpu_sheet.name:12}{int(cpu_sheet.cores):5}{cpu_sheet.base_clock!s:>12}",
        f"{float(cpu_sheet.peak('float64')) / 1e12:6.2f} TFLOP/s {float(cpu_sheet.peak()) / 1e12:5.2f} TFLOP/s",
        f"{float(cpu_sheet.dram_bandwidth) / 1e9:6.1f} GB/s  {cpu_sheet.l3_bytes}",
    )

# %% [markdown]
# A CPU's peak is cores × FLOP per cycle and core × clock. With two 256-bit FMA units a core does 2 · 8 · 2 = 32 FLOP
# per cycle in float32. Its bandwidth is channels × 8 bytes × transfers per second. In float64 an EPYC 9654 has a
# ninth of the rate of an H100's ordinary lanes, and it has a seventh of the H100's bandwidth. The large gap is in
# float16.
#
# ### Peak and seen
#
# No program reaches the full bandwidth, because DRAM must be refreshed, rows must be opened, and the bus must change
# direction. The figure shows what share of the peak a kernel that reads and writes has reached (Erlangen National
# High Performance Computing Center, gpu-benches; for the T4 Jia et al., 2019).

# %%
seen = {
    g.name: round(100 * float(g.dram_seen) / float(g.dram_bandwidth)) for g in hardware.ALL if g.dram_seen
}
chip = hardware.accelerator("MI300X")
seen["MI300X"] = round(100 * float(chip.dram_seen) / float(chip.dram_bandwidth))
gpulab.plot.bars(seen, "% of the peak bandwidth")

# %% [markdown]
# The **bandwidth utilisation** of a kernel is the bandwidth that it reaches, divided by the peak. Compare it with the
# shares above, not with 100 %.
#
# ### Boards and generations
#
# - **H100 or A100.** The H100 has more SMs, more lanes and a higher clock. It also has **clusters**, blocks of one
#   GPC that can read each other's shared memory.
# - **SXM or PCIe.** The H100 card has 114 SMs, lower clocks, half the power, and memory as fast as an A100's. A
#   board's name says little, so look for SMs, clocks and watts.
# - **First editions.** V100 first came with 16 GB and A100 with 40 GB. The larger ones followed.
# - **B200.** Two dies, joined by 10 TB/s (NVIDIA), act as one GPU with 208 billion transistors and float4. Its
#   ordinary lanes compute about as fast as an H100's. Its bandwidth per watt is 1.67 × as good.
#
# ### Two processors, one address space
#
# In a **GH200**, a Grace CPU and an H100 are joined by NVLink-C2C, with 450 GB/s each way. Both use the same
# addresses, and the hardware keeps them **coherent**: each reads what the other has written, and no program has to
# copy it (NVIDIA Grace Hopper whitepaper). So a model may be larger than the GPU's memory. The remaining weights stay
# with the CPU. The GPU reads them over the link, seven times as fast as over PCIe 5.0, but far more slowly than from
# its own memory.
#
# **Predict.** The weights of a model take 140 GB. 96 GB of them are in the GPU's memory (4 TB/s), and 44 GB are with
# the CPU. The GPU reads both parts at the same time. How many milliseconds does it take?

# %%
gpulab.predict("arch.superchip", ...)

# %% [markdown]
# Does the GPU's memory have to be full before the CPU's is used?
#
# **Do.** Write `split(weights, machine)`, which divides the weights so that they are read in the least time. About 8
# lines.
#
# - Input: the bytes of the weights, and a dictionary. `gpu_memory` and `cpu_memory` are in bytes. `gpu_bandwidth`, of
#   the GPU's own memory, and `link`, of the link to the CPU's memory, are in B/s.
# - Every byte is read once. Both parts are read at the same time. Any number of bytes may go to either memory.
# - Output: `[own, seconds]`: the bytes in the GPU's memory, and the time until all have been read. Return `None` if
#   both memories together are too small.


# %% nbgrader={"grade": false, "grade_id": "split", "locked": false, "schema_version": 3, "solution": true, "task": false}
def split(weights, machine):
    ### BEGIN SOLUTION
    own_rate, link = machine["gpu_bandwidth"], machine["link"]
    if weights > machine["gpu_memory"] + machine["cpu_memory"]:
        return None
    own = weights * own_rate / (own_rate + link)  # both parts take equally long
    own = max(own, weights - machine["cpu_memory"])
    own = min(own, machine["gpu_memory"])
    return [own, max(own / own_rate, (weights - own) / link)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "split-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("arch.split", split)

# %%
gpulab.need(split)
gh200 = hardware.superchip("GH200")
machines = {
    "GH200": {
        "gpu_memory": float(gh200.gpu_bytes),
        "gpu_bandwidth": float(gh200.gpu_bandwidth),
        "cpu_memory": float(gh200.cpu_bytes),
        "link": float(gh200.link.per_direction),
    },
    "H100, PCIe 5.0": {
        "gpu_memory": float(h100.dram_bytes),
        "gpu_bandwidth": float(h100.dram_bandwidth),
        "cpu_memory": 480e9,  # as much as a GH200's
        "link": float(hardware.link("PCIe 5.0 ×16").per_direction),
    },
}
as_predicted = max(96e9 / machines["GH200"]["gpu_bandwidth"], 44e9 / machines["GH200"]["link"])
gpulab.predict("arch.superchip", measured=1e3 * as_predicted)
reads = {
    name: {f"{w} GB": split(1e9 * w, machine) for w in (50, 100, 140, 280)}
    for name, machine in machines.items()
}
gpulab.plot.panels(
    {
        **{f"{name}: ms": {w: 1e3 * t for w, (_, t) in row.items()} for name, row in reads.items()},
        "GH200: GB in the GPU's memory": {w: own / 1e9 for w, (own, _) in reads["GH200"].items()},
    },
    "Time to read weights once: where they exceed an H100's 80 GB, a GH200 is 8 to 14 times as fast.",
)

# %% [markdown]
# **Why.** While one memory is read, the other could be read too, so as long as there is room their rates add up: a
# GH200 reads 50 GB in 11.2 ms instead of 12.5. Once the GPU's memory is full, the link alone decides, and a
# GH200's is seven times as fast as PCIe 5.0. All this is modelled. A kernel must request both parts at the same
# time to come close.
#
# ## 10 · Energy and money
#
# A watt is a joule per second, so power divided by rate is energy per operation. This is the cleanest way to compare
# chips, provided you say which rate.
#
# **Predict.** An H100 may draw 700 W. How many picojoules does one dense float16 operation take at its peak?

# %%
gpulab.predict("arch.picojoule", ...)

# %%
gpulab.predict("arch.picojoule", measured=1e12 * float(h100.tdp) / float(h100.peak("float16", tensor=True)))
print("GPU       float32        float16, dense   float32 per area and power")
for name in ("V100", "A100", "H100", "RTX 4090", "RTX 5090", "T4", "B200"):
    gpu = hardware.find(name)
    plain_rate, tensor_rate = float(gpu.peak()), float(gpu.peak("float16", tensor=True))
    area = (
        f"{plain_rate / 1e9 / float(gpu.die_area) / float(gpu.tdp):7.3f} GFLOP/s/mm²/W"
        if gpu.die_area
        else "  die: not stated"
    )
    print(
        f"{name:9}{plain_rate / 1e9 / float(gpu.tdp):7.0f} GFLOP/s/W{tensor_rate / 1e9 / float(gpu.tdp):7.0f} GFLOP/s/W  {area}"
    )

# %%
power = {name: hardware.find(name) for name in ("V100", "T4", "A100", "L4", "H100", "B200")}
gpulab.plot.bars(
    {name: round(float(g.peak("float16", tensor=True)) / 1e9 / float(g.tdp)) for name, g in power.items()},
    "GFLOP/s per watt, float16 dense",
)

# %% [markdown]
# ### What a token costs
#
# **Predict.** How many H100s with 80 GB hold the weights of a model with 70 billion parameters in float16, in 80 % of
# their memory?

# %%
gpulab.predict("arch.weights", ...)

# %% [markdown]
# ![16 GB of weights, read once for every token at 2 TB/s: 8 ms on one GPU. Two GPUs read half each, in 4 ms, and four a quarter each, in 2 ms.](drawings/weights_shared.svg)
#
# **Weights** take parameters × bytes per parameter. They alone decide the least number of GPUs that a model needs.
# Caches and activations come in addition (labs 16 to 19). Each step of a language model makes one token for each
# request of the batch, and it reads all weights once, whatever the batch is. If g GPUs share the weights, the least
# time of a step is
#
# **max( weights / (g · bandwidth), 2 · parameters · batch / (g · peak) )**
#
# **Do.** Write `cheapest(model, offers)`. About 12 lines.
#
# - Input: `model` has `parameters`, `bytes_per_parameter` and `batch`. Each offer in the list has, for one GPU,
#   `name`, `memory` (B), `bandwidth` (B/s), `peak` (FLOP/s), `watts` and `price_per_hour` ($).
# - From each offer take as few GPUs as hold the weights in 80 % of their memory. One step makes `batch` tokens, and
#   all GPUs draw their full power.
# - Output, for the offer that costs the least money: `[name, GPUs, $ per million tokens, kWh per million tokens]`.


# %% nbgrader={"grade": false, "grade_id": "cheapest", "locked": false, "schema_version": 3, "solution": true, "task": false}
def cheapest(model, offers):
    ### BEGIN SOLUTION
    weights = model["parameters"] * model["bytes_per_parameter"]
    answers = []
    for offer in offers:
        gpus = ceil(weights / (0.8 * offer["memory"]))
        reading = weights / (gpus * offer["bandwidth"])
        computing = 2 * model["parameters"] * model["batch"] / (gpus * offer["peak"])
        step = max(reading, computing)
        gpu_hours = gpus * step * 1e6 / model["batch"] / 3600
        money = gpu_hours * offer["price_per_hour"]
        answers.append([offer["name"], gpus, money, gpu_hours * offer["watts"] / 1000])
    return min(answers, key=lambda answer: answer[2])
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "cheapest-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("arch.cheapest", cheapest)

# %% [markdown]
# Prices change from month to month, so they are an input. The ones below are made up. Put in today's.

# %%
gpulab.need(cheapest)
prices = {"L40S": 0.8, "A100": 1.2, "H100": 2.4, "H200": 3.5, "B200": 6.5}  # $ per hour, made up
offers = [
    {
        "name": name,
        "memory": float(gpu.dram_bytes),
        "bandwidth": float(gpu.dram_bandwidth),
        "peak": float(gpu.peak("float16", tensor=True)),
        "watts": float(gpu.tdp),
        "price_per_hour": prices[name],
    }
    for name, gpu in ((name, hardware.find(name)) for name in prices)
]
for billions in (7, 70):
    for batch in (1, 32, 1024):
        job = {"parameters": billions * 1e9, "bytes_per_parameter": 2, "batch": batch}
        name, gpus, dollars, kwh = cheapest(job, offers)
        print(
            f"{billions:3} B parameters, batch {batch:5}: {gpus} × {name:5}{dollars:9.3f} $ {kwh:8.3f} kWh per million tokens"
        )

# %% [markdown]
# **Why.** At batch 1 you pay for bandwidth, because you read all weights for one token. With a large batch you pay
# for arithmetic. Then a token costs less than a hundredth, and another GPU may be the cheapest.
#
# **Energy of training** is GPU-hours × power. Llama 2 70B took 1,720,320 hours on A100s of at most 400 W (Touvron et
# al., 2023, table 2). That is 1,720,320 h · 0.4 kW = 688 MWh, an energy and not a power. The table states 291 t of
# CO₂, which is 0.42 kg per kWh. GPT-3 took an estimated 1,287 MWh (Patterson et al., 2021), so using a tenth less
# would have saved over 100 MWh.
#
# ### Which GPU for which work
#
# ![The same parts under two names: a streaming multiprocessor is AMD's compute unit, a warp of 32 is a wavefront of 64 or 32, shared memory is the local data share, and CUDA is HIP.](drawings/other_names.svg)
#
# | work | what decides | look at |
# |---|---|---|
# | serving a small model | memory, price, power | T4, L4, L40S |
# | serving a large model | bandwidth, memory, links between GPUs | H100, H200, B200 |
# | fine-tuning | memory for 16 B per trained parameter | one to eight A100 or H100 |
# | training from scratch | dense peak, links between GPUs and servers | H100, H200, B200 with NVLink and InfiniBand |
# | float64 simulation | float64 rate, bandwidth | A100, H100; not a GeForce |
#
# ## 11 · Other makers
#
# The model of this lab holds for all makers. Only the names differ.

# %%
print("name         maker    units                        bfloat16, dense   DRAM              ridge")
for chip in hardware.ACCELERATORS.values():
    rate = chip.dense.get("bfloat16") or chip.dense.get("float16")
    memory = f"{float(chip.dram_bytes) / 1e9:4.0f} GB {float(chip.dram_bandwidth) / 1e9:6,.0f} GB/s"
    ridge = f"{float(rate) / float(chip.dram_bandwidth):6.0f} FLOP/B" if rate else "     –"
    print(f"{chip.name:12} {chip.maker:8} {chip.units!s:29}{rate or '–'!s:>13}   {memory} {ridge}")

# %% [markdown]
# - **AMD.** A *compute unit* (CU) is the SM. A *wavefront* is the warp, with 64 lanes on CDNA (data centre) and 32 or
#   64 on RDNA (graphics). *LDS* is shared memory. An MI300X has 304 CUs on eight dies and 256 MiB of Infinity Cache.
#   It has no CPU, but an MI300A has one.
# - **Intel.** The Max 1550 is a GPU (see below). Gaudi 3 is not: it has matrix engines, 64 vector cores and 24
#   Ethernet ports.
# - **Google.** A TPU has a few very large matrix units and no warps, and a compiler plans every move. The units are
#   128 × 128 up to the v5p, and 256 × 256 since the v6e (Google Cloud, "TPU v6e").
#
# **NVIDIA or AMD**, dense and per GPU. Read the table row by row: neither of them wins everywhere.

# %%
b200, mi300x = hardware.find("B200"), hardware.accelerator("MI300X")
rows = {
    "float64, vector": (b200.peak("float64"), mi300x.vector["float64"]),
    "float64, matrix": (b200.peak("float64", tensor=True), mi300x.dense["float64"]),
    "float32, vector": (b200.peak(), mi300x.vector["float32"]),
    "float16, matrix": (b200.peak("float16", tensor=True), mi300x.dense["float16"]),
    "float8, matrix": (b200.peak("float8", tensor=True), mi300x.dense["float8"]),
    "bandwidth": (b200.dram_bandwidth, mi300x.dram_bandwidth),
    "memory": (b200.dram_bytes, mi300x.dram_bytes),
    "power": (b200.tdp, mi300x.tdp),
}
print(f"{'':17}{'B200':>16}{'MI300X':>16}     ratio")
for label, (ours, theirs) in rows.items():
    shown = [f"{float(x) / 1e9:.0f} GB" if x.unit == "B" else str(x) for x in (ours, theirs)]
    print(f"{label:17}{shown[0]:>16}{shown[1]:>16}{float(ours) / float(theirs):10.2f}")
per_cycle = float(mi300x.dram_bandwidth) / int(mi300x.units) / float(mi300x.clock)
waves = per_cycle * float(mi300x.dram_latency) / (64 * 4)
print(
    f"\nLittle's law: {waves:.0f} wavefronts of 64 lanes with a 4-byte load each fill an MI300X, per compute unit"
)

# %% [markdown]
# The B200 came a year later, and it draws a third more power. So far programs reach less of an MI300X's peak (51 %,
# see section 2), because software is part of a machine.
#
# ### Intel's GPUs
#
# Intel's GPU for data centres, the Max 1550 (Ponte Vecchio), has 128 **Xe-cores** on two stacks of chips. An Xe-core
# is the SM. It has 8 vector engines of 512 bits, 8 matrix engines, and 512 KiB of L1 that doubles as shared memory
# (Intel, *Data Center GPU Max Series Technical Overview*). The warp is called a **sub-group**, and has 16 or 32 lanes.
# The float64 of this GPU is as fast as its float32, which suits simulations.
#
# **Predict.** An Xe-core does 256 float64 operations per clock (Intel Architecture Day 2021). The clock is 1.6 GHz.
# What is the peak of the Max 1550?

# %%
gpulab.predict("arch.max_1550", ...)

# %%
intel = hardware.accelerator("Max 1550")
gpulab.predict("arch.max_1550", measured=float(intel.vector["float64"]) / 1e12)
three = {
    "Max 1550": (intel.vector["float64"], intel.dense["bfloat16"], intel.dram_bandwidth, intel.cache_bytes),
    "H100": (h100.peak("float64"), h100.peak("bfloat16", tensor=True), h100.dram_bandwidth, h100.l2_bytes),
    "MI300X": (mi300x.vector["float64"], mi300x.dense["bfloat16"], mi300x.dram_bandwidth, mi300x.cache_bytes),
}
scales = {"float64, TFLOP/s": 1e12, "bfloat16, TFLOP/s": 1e12, "DRAM, GB/s": 1e9, "last cache, MiB": 2**20}
gpulab.plot.panels(
    {
        unit: {name: float(row[column]) / scale for name, row in three.items()}
        for column, (unit, scale) in enumerate(scales.items())
    },
    "A Max 1550 beats an H100 in float64 on ordinary lanes and in cache, not in bfloat16 on matrix units.",
)

# %% [markdown]
# An H100 also multiplies float64 on its tensor cores, at twice the rate of its lanes, and then it is ahead.
#
# **Arc** is Intel's line for graphics. Its Xe-cores have matrix engines as well, and each has a unit for rays. An Arc
# B580 has 20 of them, and 12 GB at 456 GB/s for 190 W (Intel, Arc B580 specifications). An L4 has twice the memory and
# two thirds of the bandwidth. PyTorch calls all of Intel's GPUs `xpu`.
#
# ### Spikes and light
#
# Two kinds of machine leave the usual processor behind. Both are research so far.
#
# - **Neuromorphic** chips imitate nerves. A neuron sends a *spike* to others when something has changed, and does
#   nothing otherwise. Its memory is beside it. Intel's Hala Point has 1,152 Loihi 2 chips with 1.15 billion neurons.
#   It does up to 20 · 10¹⁵ operations per second, and draws at most 2,600 W. Intel also states more than 15 · 10¹²
#   8-bit operations per second and watt (Intel, "Intel Builds World's Largest Neuromorphic System", 2024).
# - **Optical** processors multiply by changing the strength of light, which takes hardly any energy. Turning numbers
#   into light and back does. Lightmatter's has run BERT and ResNet (S. Ahmed et al., *Nature*, 2025), with 65.5 · 10¹²
#   16-bit operations per second at 78 W, and 1.6 W for the light (Lightmatter, "A New Kind of Computer", 2025).

# %%
per_watt = {
    "H100, int8": float(h100.peak("int8", tensor=True)) / float(h100.tdp),
    "H100, float16": float(h100.peak("float16", tensor=True)) / float(h100.tdp),
    "Hala Point, 8 bits": 20e15 / 2600,
    "Lightmatter, 16 bits": 65.5e12 / (78 + 1.6),
}
gpulab.plot.bars(
    {name: round(rate / 1e12, 1) for name, rate in per_watt.items()},
    "10¹² operations per second and watt, dense",
    caption="Peak divided by power: Hala Point gives 7.7, an H100 2.8 with 8 bits, and the optical processor 0.8.",
)

# %% [markdown]
# **Why.** Intel's own two figures for Hala Point give 7.7, and not 15. So the 15 must belong to another load, at
# another power. For every efficiency, ask whether it was measured together with the peak printed beside it. Light is
# already in use for links, because it loses little over long distances.
#
# ## 12 · In your pocket and on your desk
#
# In phones and laptops, CPU and GPU share one DRAM. So nothing is copied, but tens to hundreds of GB/s must be enough
# for everything together.
#
# ![Three places for a GPU: a card with memory of its own behind PCIe, a laptop's chip that shares memory with the CPU, and a phone's with a few watts.](drawings/pocket.svg)
#
# Phones draw in **tiles**. The simplest way to draw takes one thing after the other, wherever it is on the screen.
# Then depths and colours go to DRAM and back, unless a cache holds them. Arm's Mali and Qualcomm's Adreno first sort
# all things by the tile of the screen that they fall on. They draw one tile after the other on the chip, and store
# only the finished colours (Arm, *Tile-based rendering*; Mali's tiles have 16 × 16 pixels).
#
# **Predict.** A screen has 1080 × 2400 pixels and shows 120 pictures per second. Every pixel is drawn three times,
# because things hide other things. Each time, 4 bytes of depth are read, 4 are written, and 4 bytes of colour are
# written. How many GB/s is that without tiles?

# %%
gpulab.predict("arch.frames", ...)

# %%
pixels = 1080 * 2400 * 120  # per second
phone = hardware.edge("Snapdragon 8 Elite")
traffic = {"without tiles": pixels * 3 * 12, "with tiles": pixels * 4}  # bytes per second
gpulab.predict("arch.frames", measured=traffic["without tiles"] / 1e9)
for name, rate in traffic.items():
    print(
        f"{name:14}{rate / 1e9:5.1f} GB/s, {100 * rate / float(phone.dram_bandwidth):4.1f} % of the DRAM of a {phone}"
    )
print(f"a tile of 16 × 16 pixels takes {16 * 16 * 8:,} B on the chip, a whole picture {1080 * 2400 * 8:,} B")
shown = ["Snapdragon 8 Elite", "M4", "Snapdragon X Elite", "Core Ultra 7 258V", "Ryzen AI Max+ 395", "M4 Max"]
gpulab.plot.bars(
    {
        **{
            f"{name} ({hardware.edge(name).kind})": float(hardware.edge(name).dram_bandwidth) / 1e9
            for name in shown
        },
        "RTX 4090 (card)": float(hardware.find("RTX 4090").dram_bandwidth) / 1e9,
        "H100 (server)": float(h100.dram_bandwidth) / 1e9,
    },
    "GB/s of DRAM",
    caption="A phone's memory has a fortieth of an H100's bandwidth, and CPU, GPU and screen share it.",
    log=True,
)

# %% [markdown]
# **Why.** Tiles save nine tenths of this traffic, and with it battery, because the chip's own memory takes less energy
# than DRAM. It is the idea of lab 04's tiles in shared memory.
#
# - **Phones.** Arm's largest GPUs have a unit for rays in each core. From 2022 to 2024 they were called
#   **Immortalis**, and since 2025 *Mali Ultra* (Arm, "Mali G1-Ultra"). The first unit took 4 % of the core's area
#   (Arm, announcement of the Immortalis-G715, 2022). Neural networks often run on a separate unit, an **NPU**.
# - **Laptops.** An Intel or AMD GPU on the CPU's chip shares its DRAM. An RTX 4060 Laptop draws 35 to 115 W,
#   depending on the maker of the laptop (NVIDIA, laptop specifications). So a card's name does not tell you its
#   figures.
#
# ### Apple: one memory
#
# In Apple's chips, CPU, GPU and a third unit share one *unified memory*. The third is the **Neural Engine**, Apple's
# NPU. Apple states 11 · 10¹² operations per second for the M1's and 38 · 10¹² for the M4's, but not of which dtype
# (Apple, 2020 and 2024). Programs reach it through Core ML only (as of 2025), so PyTorch's `mps` device means the GPU. Apple states
# FLOP/s for a few of its GPUs (2.6 TFLOP/s of float32 for the M1's). For most it states neither FLOP/s nor watts, so
# any GFLOP/s per watt for those is an estimate.
#
# An M3 Ultra has up to 512 GB of unified memory with 819 GB/s, a quarter of an H100's bandwidth (Apple, Mac Studio
# specifications, 2025).
#
# **Predict.** An H100 holds 80 GB of a model's weights, and reads the rest from its host over PCIe 5.0 (63 GB/s).
# Above how many GB of weights is an M3 Ultra faster?

# %%
gpulab.predict("arch.overtake", ...)

# %%
gpulab.need(split)
ultra, m4 = hardware.accelerator("M3 Ultra"), hardware.accelerator("M4 Max")
sizes = range(16, 561, 4)  # GB
curves = {
    name: [(w, 1e3 * found[1]) for w in sizes if (found := split(1e9 * w, machine))]
    for name, machine in machines.items()
}
for chip in (ultra, m4):
    curves[str(chip)] = [
        (w, 1e12 * w / float(chip.dram_bandwidth)) for w in sizes if 1e9 * w <= float(chip.dram_bytes)
    ]
link, shared = machines["H100, PCIe 5.0"]["link"], float(ultra.dram_bandwidth)
gpulab.predict("arch.overtake", measured=80 * shared / (shared - link))
gpulab.plot.lines(
    curves,
    "weights, GB",
    "ms to read them once, modelled",
    "Beyond its 80 GB an H100 waits for PCIe; a GH200 stays ahead of an M3 Ultra up to about 210 GB.",
    log_y=True,
)

# %% [markdown]
# **Why.** A large memory of middling speed beats a fast one that is too small. This is what unified memory is good for:
# one user, a large model, and no batch. With a batch the arithmetic counts, and there an H100 is far ahead.
#
# **Jetson** boards for robots share one memory, too. The "275 TOPS" of an AGX Orin are int8 with 2:4 sparsity, and
# they add up the GPU and the DLA, a separate unit for neural networks.

# %%
orin = hardware.find("AGX Orin")
dense = orin.peak("int8", tensor=True)
print(
    f"AGX Orin: {dense} int8, dense, on its GPU; advertised 275, which is {275e12 / float(dense):.1f} × as much"
)
print(
    f"weights read per second, 8 billion in 4 bits: {float(orin.dram_bandwidth) / 4e9:.0f} × on the Orin,",
    f"{float(m4.dram_bandwidth) / 4e9:.0f} × on an M4 Max, {float(h100.dram_bandwidth) / 4e9:.0f} × on an H100",
)

# %% [markdown]
# ## Detective · A kernel far below the peak
#
# A colleague has placed a kernel on the roofline of an A100 SXM with 80 GB, and is alarmed. The kernel adds a bias to
# 100 million float32 numbers, in place, and took 0.47 ms.


# %%
def efficiency(elements, seconds):
    peak_flops = 312e12
    bandwidth = 1935e9
    flops, moved = elements, 8 * elements
    roof = min(peak_flops, flops / moved * bandwidth)
    return {
        "of the peak, %": 100 * flops / seconds / peak_flops,
        "ridge, FLOP/B": peak_flops / bandwidth,
        "of the roof, %": 100 * flops / seconds / roof,
    }


efficiency(100_000_000, 0.47e-3)

# %% [markdown]
# "0.07 % of the peak! We should use tensor cores." Every line of the arithmetic is right. But two of the figures do
# not belong to this kernel or this board, and the first row of the answer means nothing. Which figures are they, and
# how good is the kernel really?
#
# `hardware.find("A100").dram_bandwidth` and the other figures of this sheet help. An addition is one operation, not
# an FMA. Correct the two figures and look again. Then open the answer.

# %%
# Your experiment.

# %% [markdown]
# <details><summary>The answer</summary>
#
# 312 TFLOP/s is the float16 rate of the tensor cores. An addition in float32 runs on the ordinary lanes, which have
# 19.5 TFLOP/s, and their ridge is 9.6 FLOP/B, not 161. 1,935 GB/s belongs to the PCIe card with 80 GB, and the SXM
# module has 2,039. At 1/8 FLOP/B the kernel is memory bound, so its share of any peak says nothing. It moves 800 MB
# in 0.47 ms, which is 1,702 GB/s. That is 83 % of the SXM module's bandwidth, and about what a benchmark reaches
# (1,737 GB/s, see `hardware.find("A100").dram_seen`). There is nothing to gain, except by fusing the kernel with its
# neighbours.
# </details>
#
# ## Beyond · Two workers
#
# Open-ended and ungraded. Some items suit the CPU, and some the GPU, and both may work at the same time. `tasks`
# lists for each task its seconds on the CPU and on the GPU, including copies. Write `share(tasks)`, which returns a
# list with `True` for each task that goes to the GPU. The figure of merit is the time until both are done.
#
# | plan | seconds |
# |---|---|
# | all on the GPU | printed by the cell below |
# | each where it is faster | printed by the cell below |
# | ours | 3.73 |
# | bound (one task may be cut) | 3.68 |

# %%
numbers = np.random.default_rng(2)
on_cpu = numbers.uniform(0.02, 0.4, 60)
tasks = list(zip(on_cpu.tolist(), (on_cpu / numbers.lognormal(0.8, 0.9, 60)).tolist(), strict=True))


def makespan(tasks, on_gpu):
    cpu_time = sum(cpu for (cpu, _), there in zip(tasks, on_gpu, strict=True) if not there)
    gpu_time = sum(gpu for (_, gpu), there in zip(tasks, on_gpu, strict=True) if there)
    return max(cpu_time, gpu_time)


print(f"all on the GPU            {makespan(tasks, [True] * len(tasks)):.2f} s")
print(f"each where it is faster   {makespan(tasks, [gpu < cpu for cpu, gpu in tasks]):.2f} s")


# %%
# Your `share`, then makespan(tasks, share(tasks)).

# %% [markdown]
# ## Recap
#
# <details><summary>1. A GPU of 100 SMs with 128 float32 lanes each runs at 2 GHz. What is its peak?</summary>
#
# 100 · 128 · 2 · 2 · 10⁹ = 51.2 TFLOP/s.
# </details>
#
# <details><summary>2. An advertisement gives an H100 3,958 TFLOP/s. What would you ask?</summary>
#
# Ask which dtype it is, and whether it is dense or sparse. It is float8 with 2:4 sparsity. Dense it is half of that,
# and in float16 a quarter.
# </details>
#
# <details><summary>3. A float32 kernel has 2 FLOP per byte. Will a GPU with twice the FLOP/s help?</summary>
#
# No. 2 FLOP/B is below every float32 ridge in section 3, so only bandwidth or fewer bytes help.
# </details>
#
# <details><summary>4. Why can a memory-bound kernel be slow at full occupancy?</summary>
#
# Because what counts is the bytes under way. On an H100, 64 warps with one 4-byte load per lane are too few.
# </details>
#
# <details><summary>5. Half of a program runs 100 × as fast on a GPU. How much faster is the program?</summary>
#
# It is 1 / (0.5 + 0.5/100) = 1.98 × as fast.
# </details>

# %%
gpulab.recap("02")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | peak of a GPU | SMs × FMA per SM and cycle × 2 × clock |
# | peak of a CPU | cores × FLOP per cycle and core × base clock |
# | advertised tensor rates | halve them for dense products; divide by 8 for a server |
# | ridge | peak / bandwidth, of the same dtype and unit |
# | rate at an intensity | min(peak, intensity × bandwidth) |
# | intensity | a + b: 1/12, y = A · x: 1/2, n × n product: n/6 (float32) |
# | bytes under way | bandwidth × latency |
# | speed-up, fixed problem | 1 / (s + (1 − s)/n) |
# | speed-up, fixed time | s + (1 − s) · n |
# | offload | when T_cpu > T_start + T_in + T_gpu + T_out |
# | energy per operation | power / rate |
# | weights | parameters × bytes per parameter |
# | weights in two memories | max(own / bandwidth, rest / link); best where both take equally long |
# | bandwidth of a link | ask whether it counts one direction or both |
#
# ### Claims you will meet, and what is right
#
# - *H100: 4 RT cores, 16 load/store units, 4 SFUs per SM.* It has none, 32 and 16 (NVIDIA H100 whitepaper).
# - *128 cores for float32 or int32; 128 for float64.* An H100's SM has 128 lanes for float32, 64 for int32 and 64 for
#   float64.
# - *A tensor core does a 4 × 4 × 4 product.* Volta's did. In float16 an H100's starts 512 FMAs per cycle.
# - *H100: INT8 7,916, INT4 15,833 TOPS; TF32 165.* INT8 is 1,979 dense, there is no INT4, and TF32 is 495 dense.
# - *Single-cycle FMA.* Each lane issues one per cycle, but the result comes about 4 cycles later.
# - *B200: FP64 90, FP32 180 TFLOPS.* That is a superchip of two GPUs. One has 37 and 75.
# - *GPUs do 2–10 GFLOPS/mm²/W; an H100 0.9 GFLOPS/W.* See the table in section 10: an H100 has 0.117 and 96.
# - *Low intensity is for CPUs.* This holds only if the bytes must cross a link.
# - *CPUs use 10–30 % of their bandwidth.* No source is given. Your own copy in section 5 is a measurement.
# - *GEMV has moderate intensity.* It has 0.5 FLOP/B in float32, whatever its size.
# - *AMD wavefronts have 32 threads; MI300X has CPU cores.* They have 64 on CDNA, and the MI300A has the cores.
# - *Ponte Vecchio: 128 Xe-cores per tile.* It has 128 in all.
# - *T = max(t_data, t_gpu) is Amdahl's law.* It is the bound of a pipeline.
