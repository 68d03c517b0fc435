# ---
# jupyter:
#   gpulab:
#     lab: "21"
#     hours: 3.5
#     topics: [C22.6, C22.7, C22.8, C22.9, C22.10]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 21 · Edge: models on small devices
#
# **3 to 5 hours.** You need lab 13 (codes, scales, zero points, groups). The small devices in this lab are
# modelled from their data sheets. What ONNX Runtime does is measured on your CPU.
#
# By the end of this lab, you can
#
# 1. read the headline figure of a small device: which TOPS, and what they count;
# 2. choose bits, cache and context so that a model fits, and say how long a token takes at least;
# 3. choose a power mode by joules rather than by watts;
# 4. meet deadlines with a model that is too slow for its camera;
# 5. export a model to ONNX, run it in int8, and compute its integers yourself;
# 6. prune a network and pack it into a given number of bytes;
# 7. divide a model between CPU and GPU so that no other placement is faster.

# %%
import logging
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import torch

import gpulab
from gpulab import hardware

torch.set_num_threads(1)  # the runtimes below are measured with one thread as well
gpulab.start("21")

# %% [markdown]
# ## 1 · What TOPS count
#
# ![What TOPS count: a multiply-add is two operations. 1,000 multiply-adds a cycle at 1 GHz are 2 · 10¹² operations a second: 2 TOPS, if all units are busy all the time.](drawings/tops.svg)
#
# An **edge device** computes where the data is: in a robot, a phone or a laptop. Its CPU, its GPU and often a
# unit for neural networks are one chip and share one DRAM. Such a unit is called an **NPU**, or **DLA** on
# some Jetsons. The headline figure of a device is its **TOPS**, 10¹² operations a second. Ask three questions
# about it:
#
# - *Which data type?* A Jetson Orin's figure counts int8, whereas a Thor's counts float4.
# - *Dense or sparse?* The headlines of the Jetsons assume 2:4 sparsity (lab 14), so a dense model gets half
#   of them.
# - *Which unit?* Of an AGX Orin's 275 TOPS, 170 belong to the GPU and 105 to two DLAs. Your kernel runs on
#   only one of them.
#
# **Predict.** How many dense int8 TOPS does the GPU of an AGX Orin have?

# %%
gpulab.predict("edge.tops", ...)

# %%
print("device               memory    GB/s   headline                                         dense")
for each in hardware.EDGE.values():
    rate = f"{float(each.advertised) / 1e12:5,.0f} T {each.advertised.note}" if each.advertised else "-"
    dense = f"{float(each.dense) / 1e12:7,.1f} T" if each.dense else "not stated"
    memory, speed = float(each.dram_bytes) / 1e9, float(each.dram_bandwidth) / 1e9
    print(f"{each.name:20}{memory:4.0f} GB{speed:8.1f}   {rate:48} {dense}")
orin = hardware.find("AGX Orin")
print(f"\nAGX Orin, its GPU alone: {orin.peak('int8', tensor=True)} int8, dense")

# %% [markdown]
# **Why.** Only 170 / 2 = 85 TOPS of the headline are dense int8 on the GPU. Apple and Qualcomm state neither
# data type nor sparsity, and Intel only says that sparsity is supported, so do not compare them.
# How fast a language model writes depends on another column anyway: GB/s.
#
# <details><summary>The names of the Jetson family</summary>
#
# The family of 2022 to 2025 has four members: *Orin Nano* and *Orin NX* for cameras and drones, and *AGX Orin* and *Thor*
# for robots. The "Super" version is the Orin Nano with higher clocks: it is new software, not a new chip. NVIDIA's
# software for these boards is *JetPack*, which contains Linux, CUDA and TensorRT. *DeepStream* builds video pipelines on
# top of it.
# </details>
#
# ## 2 · One GPU, many interfaces
#
# ![One GPU, many interfaces: CUDA, OpenCL, Vulkan, Metal and WebGPU end in the same hardware. Which are there depends on the device.](drawings/interfaces.svg)
#
# | interface | by | runs on | kernels in |
# |---|---|---|---|
# | CUDA | NVIDIA | NVIDIA | C++ |
# | HIP, of ROCm | AMD | AMD, NVIDIA | C++, names as in CUDA |
# | SYCL | Khronos; DPC++ is Intel's compiler | Intel, NVIDIA, AMD, CPUs | C++ |
# | OpenCL | Khronos | nearly all, many phones | OpenCL C |
# | Vulkan | Khronos | desktops, Android | SPIR-V, from GLSL and others |
# | Metal | Apple | Apple | Metal C++; MLX and PyTorch's `mps` use it |
# | WebGPU | W3C | browsers, through Vulkan, Metal or Direct3D 12 | WGSL |
# | Triton | OpenAI, open source | NVIDIA, AMD; Intel with its own back end | Python, blocks (lab 11) |
#
# Most models on small devices run through Core ML, LiteRT (formerly TensorFlow Lite), OpenVINO, TensorRT,
# ExecuTorch, Windows ML or ONNX Runtime. These take a *graph* and bring their own kernels. If you write
# kernels yourself, you meet the same concepts under different names:
#
# | CUDA | HIP | OpenCL, SYCL | Metal | Vulkan, WebGPU |
# |---|---|---|---|---|
# | thread | thread | work-item | thread | invocation |
# | warp, 32 | wavefront, 32 or 64 | sub-group | SIMD-group | subgroup |
# | block | block | work-group | threadgroup | workgroup |
# | shared memory | LDS | **local** memory | threadgroup memory | shared, workgroup memory |
# | **local** memory | scratch | private memory | thread memory | private, function |

# %% [markdown]
# "Local" is a false friend: local memory is fast and shared in OpenCL, but slow and private in CUDA. How a
# launch states its size differs, too:
#
# | interface | the launch states | order of axes |
# |---|---|---|
# | CUDA, HIP, Metal (`dispatchThreadgroups`) | the number of **groups**, and the size of a group | x, y, z |
# | Vulkan, WebGPU (`dispatchWorkgroups`) | the number of **groups**; the kernel itself states their size | x, y, z |
# | OpenCL | the number of **all items**, and the items of a group | x, y, z |
# | SYCL (`nd_range<3>`) | the number of **all items**, and the items of a group | z, y, x: the last varies fastest |
#
# The largest group has 1,024 threads in CUDA and by default 256 in WebGPU; for the others, ask at run time.
#
# **Do.** Write `launch(api, threads, block, most)`, which returns what a launch through this interface has to
# state.
#
# - `api` is "CUDA", "HIP", "Metal", "Vulkan", "WebGPU", "OpenCL" or "SYCL".
# - `threads` and `block` are lists [x, y, z]. There must be a thread for each element, so
#   round up to whole groups on every axis.
# - Output: a pair of lists [stated number, size of a group], also for Vulkan and WebGPU. Each is in the
#   interface's order of axes, and the first has groups or items, as the table says.
# - If a group has more than `most` threads, return None.
#
# About 7 lines.


# %% nbgrader={"grade": false, "grade_id": "launch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def launch(api, threads, block, most):
    ### BEGIN SOLUTION
    if block[0] * block[1] * block[2] > most:
        return None
    told = [-(-n // b) for n, b in zip(threads, block, strict=True)]
    if api in ("OpenCL", "SYCL"):
        told = [groups * b for groups, b in zip(told, block, strict=True)]
    return [told[::-1], block[::-1]] if api == "SYCL" else [told, block]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "launch-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("edge.launch", launch)

# %% [markdown]
# ## 3 · Eight billion weights in eight gigabytes
#
# A model of 8 billion weights in float16 needs 16 GB. Your board has 8 GB, and the operating system takes a
# part of them. The formats of lab 13 help: if each **group** of g weights shares a 16-bit scale, a weight
# costs bits + 16/g bits.
#
# ![Eight billion weights: 16 GB at 16 bits, 8 GB at eight, 4.5 GB at four bits with scales. A device with 8 GB has room for the last one only, and for a cache.](drawings/eight_gigabytes.svg)
#
# **Predict.** How many GB do 8 billion weights take in 8 bits with groups of 64?

# %%
gpulab.predict("edge.eight", ...)

# %% [markdown]
# With a single user, each token reads all weights and the cache once and does very little arithmetic with
# them. Reading therefore sets the least time of a token:
#
# **bytes read / bandwidth**
#
# **Predict.** With 4 bits and groups of 64, a weight takes 4.25 bits. How many milliseconds does a token take
# at least on an Orin Nano Super, whose bandwidth is 102 GB/s?

# %%
gpulab.predict("edge.token", ...)


# %%
def gigabytes(parameters, bits, group=0):
    return parameters * (bits + (16 / group if group else 0)) / 8 / 1e9


EIGHT = {"float16": gigabytes(8e9, 16), "int8": gigabytes(8e9, 8, 64), "int4": gigabytes(8e9, 4, 64)}
boards = [
    "Raspberry Pi 5",
    "Snapdragon 8 Elite",
    "Orin Nano Super",
    "M4",
    "AGX Orin 64 GB",
    "Thor T5000",
    "M4 Max",
]
print("ms per token at least      " + "".join(f"{name:>9} {size:5.2f} GB" for name, size in EIGHT.items()))
for name in boards:
    device = hardware.edge(name)
    room, speed = float(device.dram_bytes) / 1e9, float(device.dram_bandwidth) / 1e9
    cells = (
        f"{1e3 * size / speed:15.1f}   " if size < room else f"{'does not fit':>15}   "
        for size in EIGHT.values()
    )
    print(f"{name:20}{room:4.0f} GB", *cells)

# %% jupyter={"source_hidden": true}
gpulab.plot.bars(
    EIGHT,
    "GB for 8 billion weights",
    budget=8,
    caption="Of the three formats, only 4 bits fit on a board with 8 GB: 16 GB become 4.25 GB.",
)

# %% [markdown]
# Is this bound close to reality? NVIDIA measured Llama 3.1 8B in int4 with one user. On an Orin Nano it wrote
# 14.0 tokens a second, and 19.14 with the "Super" software (reference 1). A Thor reached 50.8 (reference 2).

# %% jupyter={"source_hidden": true}
measured = {"Orin Nano": 14.0, "Orin Nano Super": 19.14, "Thor T5000": 50.8}
bound = {name: float(hardware.edge(name).dram_bandwidth) / 1e9 / EIGHT["int4"] for name in measured}
gpulab.plot.panels(
    {
        "tokens/s at most": bound,
        "tokens/s measured": measured,
        "% of the bound": {name: 100 * measured[name] / bound[name] for name in measured},
    },
    "NVIDIA's measurements reach 79 to 88 % of what memory allows, so the bound is close.",
)

# %% [markdown]
# **Do.** Write `plan(model, device, need, formats, caches)`, which chooses what to run on a device that is
# too small.
#
# - `model` has `parameters` (numbers in matrices), `table` (numbers of the input table), `layers`, `kv_heads`
#   and `head_dim`. The table always takes 2 bytes a number. A token reads only one of its rows, which counts
#   as nothing.
# - The **cache** holds, for each layer and each token of the context, a key and a value of kv_heads ×
#   head_dim numbers (lab 19).
# - `device` has `memory` and `reserved` (for everything else), both in bytes, and `bandwidth` in bytes a
#   second.
# - `need` has `context` in tokens, and `seconds`, the most that a token at the end of the context may take.
# - `formats` are lists [name, bits, group, loss]; group 0 means that there are no scales. `caches` are lists
#   [name, bits, loss]. A loss is the increase of perplexity in percent. Here losses are given; lab 13
#   measures them.
# - Output: of all pairs that fit into memory and are fast enough, the one with the smallest sum of losses, as
#   [format, cache, bytes in memory without `reserved`, seconds per token]. If there is none, return None.
#
# About 15 lines.


# %% nbgrader={"grade": false, "grade_id": "plan", "locked": false, "schema_version": 3, "solution": true, "task": false}
def plan(model, device, need, formats, caches):
    ### BEGIN SOLUTION
    numbers = 2 * model["layers"] * model["kv_heads"] * model["head_dim"] * need["context"]
    best, least = None, float("inf")
    for name, bits, group, loss in formats:
        weights = model["parameters"] * (bits + (16 / group if group else 0)) / 8
        for cache, cache_bits, cache_loss in caches:
            kept = numbers * cache_bits / 8
            size = weights + 2 * model["table"] + kept
            seconds = (weights + kept) / device["bandwidth"]
            fits = size <= device["memory"] - device["reserved"] and seconds <= need["seconds"]
            if fits and loss + cache_loss < least:
                best, least = [name, cache, size, seconds], loss + cache_loss
    return best
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "plan-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("edge.plan", plan)

# %%
gpulab.need(plan)
llama = {"parameters": 7.505e9, "table": 0.525e9, "layers": 32, "kv_heads": 8, "head_dim": 128}
formats = [
    ["float16", 16, 0, 0.0],
    ["int8", 8, 64, 0.1],
    ["int6", 6, 64, 0.4],
    ["int4", 4, 64, 1.5],
    ["int3", 3, 64, 6.0],
]
caches = [["float16", 16, 0.0], ["int8", 8, 0.25], ["int4", 4, 1.75]]
nano = {"memory": 8e9, "reserved": 1.5e9, "bandwidth": float(hardware.edge("Orin Nano Super").dram_bandwidth)}
print("Llama 3.1 8B on an Orin Nano Super, 1.5 GB reserved; losses made up")
for context in (2048, 8192, 16_384, 32_768, 65_536):
    found = plan(llama, nano, {"context": context, "seconds": 1.0}, formats, caches)
    said = (
        "nothing fits"
        if found is None
        else f"{found[0]:8}cache {found[1]:8}{found[2] / 1e9:5.2f} GB{1e3 * found[3]:6.1f} ms"
    )
    print(f"{context:7,} tokens   {said}")

# %% [markdown]
# **Why.** Memory and time both demand the same thing: fewer bytes. The bits of the weights matter most, and
# at long contexts the cache needs its share. Other ways to save bytes are **pruning**, and **distilling** a
# smaller model (lab 14). A smaller model with more bits often beats a larger one with fewer than 4, so
# measure both.
#
# ## 4 · Watts and joules
#
# A **power mode** limits the clocks so that a module stays below a certain number of watts. The limit is not
# what the module draws. On an AGX Orin the modes also switch parts of the GPU off, and some of them lower the
# memory's clock while others do not.
#
# ![Watts are joules a second. A faster device at more watts may need fewer joules for an answer, because it is done sooner: energy is the area.](drawings/watts.svg)
#
# **Predict.** You switch from the 50 W mode to the 30 W mode. By what factor does the least time of a token
# change?

# %%
gpulab.predict("edge.modes", ...)

# %%
weights, prompt = 4.25e9, 512
operations = int(orin.tensor_fma["int8"]) * 2  # per clock and SM, dense
print(
    "mode        SMs  GPU MHz  GB/s  token, ms  prompt of 512 tokens, s  at most: J per token  J per prompt"
)
for mode in hardware.edge("AGX Orin 64 GB").modes:
    token = weights / float(mode.dram_bandwidth)
    reading = 2 * 8e9 * prompt / (int(mode.sms) * float(mode.gpu_clock) * operations)
    most = [f"{float(mode.watts) * s:.2f}" if mode.watts else "no cap" for s in (token, reading)]
    print(
        f"{mode.name:10}{int(mode.sms):5}{float(mode.gpu_clock) / 1e6:9.0f}{float(mode.dram_bandwidth) / 1e9:6.0f}"
        f"{1e3 * token:11.1f}{reading:25.2f}{most[0]:>22}{most[1]:>14}"
    )

# %% [markdown]
# All times here are modelled, at peak rates and in int8. Reading a prompt is limited by arithmetic, so its time
# follows the GPU's clock. Writing tokens is limited by memory, so its time follows the memory's clock. If a module
# drew exactly its limit, the 15 W mode would need the fewest joules for writing, and 50 W for reading.
#
# What a battery has to supply is **energy**, which is power × time and includes the time between jobs. To
# finish quickly and then idle is called **race to idle**. Whether it pays depends on what idling costs. A
# device can also sleep, but waking up costs joules.
#
# **Do.** A job arrives every `period` seconds. Write `energy(modes, period, idle, sleep, battery)`, which
# finds the cheapest way to serve these jobs.
#
# - `modes` are lists [name, watts, seconds per job]. A job must be done by the end of its period; at least
#   one mode is fast enough.
# - In the rest of the period the device either idles at `idle` watts, or sleeps at sleep[0] watts and then
#   needs sleep[1] joules to wake up.
# - `battery` is its capacity in Wh.
# - Output: the choice with the least energy, as [mode, "idle" or "sleep", joules per period, hours on the
#   battery].
#
# About 8 lines.


# %% nbgrader={"grade": false, "grade_id": "energy", "locked": false, "schema_version": 3, "solution": true, "task": false}
def energy(modes, period, idle, sleep, battery):
    ### BEGIN SOLUTION
    found = []
    for name, watts, seconds in modes:
        if seconds <= period:
            rest = period - seconds
            found.append((watts * seconds + idle * rest, name, "idle"))
            found.append((watts * seconds + sleep[0] * rest + sleep[1], name, "sleep"))
    joules, name, how = min(found)
    return [name, how, joules, battery * period / joules]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "energy-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("edge.energy", energy)

# %%
gpulab.need(energy)
# Two jobs in three modes: seconds as above, watts at the cap. Idle watts and sleep are made up.
writing, reading = [], []
for mode in hardware.edge("AGX Orin 64 GB").modes:
    if mode.watts:
        rate = int(mode.sms) * float(mode.gpu_clock) * operations
        writing.append([mode.name, float(mode.watts), 100 * weights / float(mode.dram_bandwidth)])
        reading.append([mode.name, float(mode.watts), 2 * 8e9 * 8192 / rate])
never = [0.0, 1e9]  # a sleep that nobody wakes from
for name, job in (("100 tokens written", writing), ("8,192 tokens read", reading)):
    best = [energy(job, 20.0, idle, never, 50.0)[0] for idle in (2.0, 5.0, 8.0)]
    print(f"{name} every 20 s, no sleep: least energy with 2, 5, 8 W idle: {', '.join(best)}")
for p in (20.0, 60.0, 300.0):
    mode, how, joules, hours = energy(reading, p, 5.0, [0.5, 120.0], 50.0)
    print(
        f"8,192 tokens read every {p:3.0f} s, 5 W idle: {mode}, {how}, {joules:.0f} J, {hours:.0f} h with 50 Wh"
    )
gpulab.plot.lines(
    {name: [(w, watts * s + w * (20 - s)) for w in range(13)] for name, watts, s in reading},
    "watts while idling (made up)",
    "J for 8,192 tokens read every 20 s",
    "Racing at 50 W takes the fewest joules as long as idling costs little; beyond that, 15 W does.",
    limits={"50W, then asleep": energy(reading, 20.0, 1e9, [0.5, 120.0], 50.0)[2]},
)

# %% [markdown]
# **Why.** If jobs are rare, the waiting decides, and sleep wins. If they are frequent, the joules per job
# decide.
#
# - Reading is 5.3 times as fast at 50 W as at 15 W and takes 3.3 times the watts. Racing therefore wins as
#   long as idling costs less than 6.9 W.
# - Writing is at most 1.5 times as fast. By joules 15 W is best, by time 30 W, and 50 W by neither.
#
# However, a limit is not what the module draws. A benchmark measured an Orin Nano Super in 2026 (reference 3). In
# writing, the 25 W mode gave 36 to 47 % more tokens a second than the 15 W mode, and 3 to 26 % more tokens per
# joule. Without a limit it gave fewer per joule again. The reason is that the memory's clock rises by half from 15
# to 25 W and does not rise any further.
#
# ## 5 · Deadlines
#
# A robot that sees the world as it was a second ago runs into things. **Real time** means that a result is
# worthless after its deadline. What counts is therefore the worst case and not the mean.
#
# **Predict.** A camera delivers 30 frames a second, the model takes 40 ms for each, and frames wait in a
# queue. After one minute a frame is finished. How old is it?

# %%
gpulab.predict("edge.age", ...)

# %% [markdown]
# The remedy is to **drop** frames: keep only one waiting place, and let a newer frame replace the one that
# waits there.
#
# **Do.** Write `deadline(arrivals, times, limit)`, which simulates this rule.
#
# - Frame i arrives at `arrivals[i]` and needs `times[i]` to run. All numbers are whole milliseconds, arrivals
#   are in ascending order, and there is at least one frame.
# - One frame runs at a time, and it runs to its end. A frame that arrives meanwhile takes the waiting place;
#   if another frame is waiting there, that one is dropped.
# - When a frame ends at time t, the waiting frame starts at t.
# - If a frame ends and another arrives at the same t, the end comes first. So the arriving frame finds either
#   a free GPU, or a GPU on which the waiting frame has just started.
# - The age of a frame is its end − its arrival. A frame whose age exceeds `limit` is late.
# - Output: [frames in time, frames late, frames dropped, greatest age of the finished frames].
#
# About 18 lines.


# %% nbgrader={"grade": false, "grade_id": "deadline", "locked": false, "schema_version": 3, "solution": true, "task": false}
def deadline(arrivals, times, limit):
    ### BEGIN SOLUTION
    ages, dropped, free, waiting = [], 0, 0, None
    for frame, now in enumerate(arrivals):
        if waiting is not None and free <= now:
            free += times[waiting]
            ages.append(free - arrivals[waiting])
            waiting = None
        if free <= now:
            free = now + times[frame]
            ages.append(free - now)
        else:
            dropped += waiting is not None
            waiting = frame
    if waiting is not None:
        ages.append(free + times[waiting] - arrivals[waiting])
    late = sum(age > limit for age in ages)
    return [len(ages) - late, late, dropped, max(ages)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "deadline-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("edge.deadline", deadline)


# %%
def queued(arrivals, times):
    """(second of the end, age in ms) of each frame where all wait in a queue."""
    free, points = 0, []
    for at, needed in zip(arrivals, times, strict=True):
        free = max(free, at) + needed
        points.append((free / 1000, free - at))
    return points


gpulab.need(deadline)
arrivals = [round(i * 1000 / 30) for i in range(1800)]
numbers = np.random.default_rng(0)
times = [int(t) for t in np.where(numbers.random(1800) < 0.98, 40, 120)]  # now and then something else runs
oldest = [(s, deadline(arrivals[: 30 * s], times[: 30 * s], 100)[3]) for s in range(1, 61)]
print("in time, late, dropped, oldest:", deadline(arrivals, times, 100))
gpulab.plot.lines(
    {"queue": queued(arrivals, times)[:1500:10], "newest only: greatest age so far": oldest},
    "seconds since the start",
    "age of a frame when it is done, ms",
    "In a queue, frames grow ever older; with one place for the newest, their age stays bounded.",
    log_y=True,
)

# %% [markdown]
# **Why.** A queue only helps against short bursts. If the model is too slow on average, the queue grows
# without end. With a single place, a frame waits at most as long as the frame before it runs, so its age is
# at most twice the longest run. Such a bound is what real time requires. DeepStream and camera interfaces
# have settings for this; look for *drop* and *latest*.
#
# ## 6 · ONNX: one file for many runtimes
#
# **ONNX** is a file format for graphs of operators, each of which is defined exactly. PyTorch writes such
# files. ONNX Runtime, TensorRT, OpenVINO, Windows ML and others run them, each on its own hardware (ONNX
# Runtime calls this an *execution provider*). In this section you train a small network, export it, convert
# it to int8 in two ways, and measure it on your CPU.

# %%
try:
    import onnx
    import onnxruntime
    import onnxscript
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_dynamic, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    print(
        f"ONNX {onnx.__version__}, ONNX Runtime {onnxruntime.__version__}, onnxscript {onnxscript.__version__}"
    )
except ImportError as missing:
    onnx = None
    print(
        f"{missing}. This section's cells need: pip install onnx onnxscript onnxruntime. All else runs without."
    )

# %% jupyter={"source_hidden": true}
FEATURES, WIDTH, CLASSES = 64, 1024, 10
with torch.random.fork_rng():
    torch.manual_seed(0)
    teacher = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 64), torch.nn.Tanh(), torch.nn.Linear(64, CLASSES)
    )
    examples = torch.randn(12_000, FEATURES)
    labels = teacher(examples).argmax(1)
    wide = [torch.nn.Linear(FEATURES, WIDTH), torch.nn.ReLU()]
    wide += [layer for _ in range(2) for layer in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())]
    network = torch.nn.Sequential(*wide, torch.nn.Linear(WIDTH, CLASSES))
    optimizer = torch.optim.AdamW(network.parameters(), 1e-3)
    for _ in range(100):
        batch = torch.randint(0, 10_000, (128,))
        loss = torch.nn.functional.cross_entropy(network(examples[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
held_out, truth = examples[10_000:], labels[10_000:]
print(f"{sum(p.numel() for p in network.parameters()):,} weights,", end=" ")
print(
    f"{100 * float((network(held_out).argmax(1) == truth).float().mean()):.1f} % of 2,000 held-out examples right"
)

# %% [markdown]
# **Dynamic** quantisation stores int8 weights and computes the scale of each activation when the activation
# is there. **Static** quantisation fixes the scales of activations beforehand, from a **calibration** set. It
# saves work at run time, but it is only as good as that set.
#
# **Predict.** How many times smaller is the int8 file?

# %%
gpulab.predict("edge.int8", ...)


# %%
def session(path, optimised=None):
    """A runtime with one thread, on the CPU. Where `optimised` is given, the graph that it runs is written there."""
    options = onnxruntime.SessionOptions()
    if optimised:
        options.optimized_model_filepath = str(optimised)
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def median_ms(run, x, times=50):
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        run(x)
        spent.append(1e3 * (time.perf_counter() - start))
    return float(np.median(spent))


def exported(folder):
    """Files with float32, dynamic int8 and static int8 weights, by name."""
    paths = {name: folder / f"{name}.onnx" for name in ("float32", "prepared", "dynamic int8", "static int8")}
    logging.disable(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network.eval(),
            (held_out[:2],),
            paths["float32"],
            input_names=["x"],
            output_names=["y"],
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            external_data=False,
            verbose=False,
        )
        quant_pre_process(paths["float32"], paths["prepared"])
        quantize_dynamic(paths["prepared"], paths["dynamic int8"], weight_type=QuantType.QInt8)

        class Calibration(CalibrationDataReader):
            batches = iter([{"x": examples[i : i + 64].numpy()} for i in range(0, 512, 64)])

            def get_next(self):
                return next(self.batches, None)

        quantize_static(
            paths["prepared"],
            paths["static int8"],
            Calibration(),
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
    logging.disable(logging.NOTSET)
    del paths["prepared"]
    return paths


if onnx:
    with tempfile.TemporaryDirectory() as folder:
        found = {"MB": {}, "ms, one example": {}, "ms, 256 examples": {}, "% right": {}}
        for name, path in exported(Path(folder)).items():
            optimised = path.with_suffix(".optimised")
            runtime = session(path, optimised)

            def run(x, runtime=runtime):
                return runtime.run(None, {"x": x})[0]

            found["MB"][name] = path.stat().st_size / 1e6
            found["ms, one example"][name] = median_ms(run, held_out[:1].numpy(), 200)
            found["ms, 256 examples"][name] = median_ms(run, held_out[:256].numpy(), 10)
            found["% right"][name] = 100 * float((run(held_out.numpy()).argmax(1) == truth.numpy()).mean())
        in_file, run_by = (
            ", ".join(sorted({node.op_type for node in onnx.load(file).graph.node}))
            for file in (path, optimised)
        )
    smaller = found["MB"]["float32"] / found["MB"]["static int8"]
    gpulab.predict("edge.int8", measured=smaller)
    print("operators of the static file:", in_file)
    print("what the runtime makes of it: ", run_by)
    picture = gpulab.plot.panels(
        found, "Measured on this CPU: the int8 files are four times smaller and right as often."
    )
    display(picture)  # noqa: F821

# %% [markdown]
# **Why.** A single example reads every weight once, so a quarter of the bytes takes less time. With 256
# examples, the int8 instructions of the CPU help, if it has them. A CPU without them may even get slower, and
# static quantisation need not be faster than dynamic. Measure on the machine that will run the model.
#
# The static file contains QuantizeLinear and DequantizeLinear, and between them Gemm, which is a product and
# a bias. The runtime merges these into QGemm, which computes with integers only. Without the bias, this is
# ONNX's operator **QLinearMatMul**. Its inputs are codes a and b with their scales and zero points: a code
# stands for the real value scale · (code − zero). The code of the output is
#
#     round( Σ (a − a_zero) · (b − b_zero)  ·  a_scale · b_scale / c_scale )  +  c_zero,    clipped to 0 … 255
#
# ONNX rounds halves to even, and it does so *before* it adds the zero point.
#
# **Do.** Write `matmul(a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero)`, which computes the output's
# codes.
#
# - `a` is a list of M rows of K whole numbers from 0 to 255 (uint8), and `b` a list of K rows of N whole
#   numbers from −128 to 127 (int8). Each matrix has one scale and one zero point.
# - Output: M lists of N whole numbers from 0 to 255.
#
# About 8 lines.


# %% nbgrader={"grade": false, "grade_id": "matmul", "locked": false, "schema_version": 3, "solution": true, "task": false}
def matmul(a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero):
    ### BEGIN SOLUTION
    factor = a_scale * b_scale / c_scale
    rows = []
    for row in a:
        sums = [sum((x - a_zero) * (b[k][n] - b_zero) for k, x in enumerate(row)) for n in range(len(b[0]))]
        rows.append([min(255, max(0, round(total * factor) + c_zero)) for total in sums])
    return rows
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "matmul-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("edge.matmul", matmul)

# %% [markdown]
# **See.** The next cell gives the same numbers to the real runtime: 64 × 48 codes times 48 × 32.

# %%
gpulab.need(matmul)
if onnx:
    draws = np.random.default_rng(4)
    a, b = (
        draws.integers(0, 256, (64, 48), dtype=np.uint8),
        draws.integers(-128, 128, (48, 32), dtype=np.int8),
    )
    values = (a, 0.02, 131, b, 0.005, 0, 0.11, 120)
    names = ["a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "c_scale", "c_zero"]
    types = [np.uint8, np.float32, np.uint8, np.int8, np.float32, np.int8, np.float32, np.uint8]
    fixed = [
        onnx.numpy_helper.from_array(np.asarray(value, kind), name)
        for name, value, kind in zip(names[1:], values[1:], types[1:], strict=True)
    ]
    node = onnx.helper.make_node("QLinearMatMul", names, ["c"])
    codes = onnx.TensorProto.UINT8
    ends = [onnx.helper.make_tensor_value_info(name, codes, None) for name in ("a", "c")]
    made = onnx.helper.make_model(
        onnx.helper.make_graph([node], "one product", ends[:1], ends[1:], fixed),
        opset_imports=[onnx.helper.make_opsetid("", 20)],
        ir_version=10,
    )
    theirs = onnxruntime.InferenceSession(made.SerializeToString()).run(None, {"a": a})[0]
    yours = np.array(matmul(a.tolist(), *values[1:3], b.tolist(), *values[4:]))
    print(
        f"{(theirs == yours).sum():,} of {theirs.size:,} codes equal; they range from {theirs.min()} to {theirs.max()}"
    )

# %% [markdown]
# **Why.** Integers are exact, so the results are portable: a CPU, an NPU and a phone compute the same codes,
# except where the float32 factor leads to a tie. Devices without floating point store the factor as an
# integer and a shift (B. Jacob et al., 2018).
#
# ## 7 · Pruned and packed
#
# On a microcontroller every byte counts. This section shrinks a network with one hidden layer, `max(0, x @
# W_in) @ W_out`. Its array `model` has a column for each hidden unit: `model[:inputs, j]` are the incoming
# weights of unit j, and `model[inputs:, j]` its outgoing weights, one for each output. First **prune** the
# units that hardly matter, then store the rest in 4 bits, two codes to a byte.
#
# ![Pruned and packed: units that matter little are taken out, and the rest is stored in four bits instead of 32. The two multiply: half of the units at an eighth of the bytes is a sixteenth.](drawings/pruned_packed.svg)
#
# Large weights alone do not make a unit matter. What counts is how much it adds to the outputs on data like those to
# come.
#
# **Do.** Write `compress(model, x, inputs, limit)`. Its arguments are NumPy arrays and whole numbers: `model`
# as above, `x` with a row of `inputs` numbers for each example, and `limit` in bytes. Return a dictionary of
# arrays:
#
# | array | dtype | what it holds |
# |---|---|---|
# | `units` | uint8 | the numbers of the kept units (there are fewer than 256) |
# | `scales_in`, `scales_out` | float16 | one for each kept unit; one for each output |
# | `codes_in`, `codes_out` | uint8 | for incoming and for outgoing weights: byte (r, i) holds the codes of rows 2r (low half) and 2r + 1 (high half) of kept unit i |
#
# A weight is read as scale · (code − 8), with codes from 0 to 15.
#
# **Budget:**
#
# - The size is at most `limit` bytes. A kept unit costs inputs/2 + outputs/2 + 3 bytes (codes, number,
#   scale), and everything else costs 2 · outputs + 97 bytes (scales, names, shapes).
# - On fresh data, the root-mean-square error of the outputs is at most 0.85 times that of *all* units in 4
#   bits.
#
# About 18 lines.


# %% nbgrader={"grade": false, "grade_id": "compress", "locked": false, "schema_version": 3, "solution": true, "task": false}
def compress(model, x, inputs, limit):
    ### BEGIN SOLUTION
    outputs = len(model) - inputs
    active = np.maximum(x @ model[:inputs], 0)
    part = np.sqrt((active**2).mean(0)) * np.linalg.norm(model[inputs:], axis=0)
    room = (limit - 97 - 2 * outputs) // (inputs // 2 + outputs // 2 + 3)
    units = np.sort(np.argsort(-part)[:room])

    def packed(weights, axis):
        scales = (np.abs(weights).max(axis, keepdims=True) / 7).astype(np.float16)
        scales[scales == 0] = 1
        codes = (np.clip(np.round(weights / scales), -8, 7) + 8).astype(np.uint8)
        return scales.ravel(), codes[::2] | codes[1::2] << 4

    scales_in, codes_in = packed(model[:inputs, units], 0)
    scales_out, codes_out = packed(model[inputs:, units], 1)
    return {
        "units": units.astype(np.uint8),
        "scales_in": scales_in,
        "codes_in": codes_in,
        "scales_out": scales_out,
        "codes_out": codes_out,
    }
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "compress-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("edge.compress", compress)

# %% [markdown]
# **Why.** In this network the units with the largest weights are never active. As long as they are there,
# they make the scales coarse for all the others. Once they are pruned, the smaller network has *less* error
# than all units in 4 bits. For large models the same idea is called activation-aware: AWQ (lab 13) applies it
# to scales, and Wanda (M. Sun et al., 2023) to pruning.
#
# ## 8 · Two processors, one model
#
# A model that is too large for the GPU's memory can run on both processors: some layers on the GPU, and the
# others on the CPU, which reads them from its own DRAM. `llama.cpp` does this with `--n-gpu-layers`.
#
# ![Two processors, one model: each change of sides sends the activations over the link and costs its latency. Few changes are better than the best processor for every layer.](drawings/two_processors.svg)
#
# **Predict.** Half of the layers move from the CPU to a GPU that reads 10 times as fast. By what factor does
# a token get faster, without transfers?

# %%
gpulab.predict("edge.layers", ...)

# %% [markdown]
# Whenever the next layer is on the other side, the activations cross the link. They are little data, so a
# crossing costs mostly latency, once for each token. The layers are not all alike, either: in a **mixture of
# experts** a token reads all of the attention but only, say, an eighth of the experts. Which bytes deserve
# the GPU?
#
# **Do.** Write `place(layers, first, memory)`, which finds the fastest placement.
#
# - `layers` are lists [µs on the CPU, µs on the GPU, MB that the layer takes on the GPU, µs to send its
#   output to the other side].
# - The chain begins and ends on the CPU. If the first layer is on the GPU, sending the input takes `first`
#   µs.
# - The GPU has `memory` MB. All numbers are whole.
# - Output: a list with 0 (CPU) or 1 (GPU) for each layer, such that no placement that fits is faster.
# - **Budget:** exactly the least time. You can find it without trying all 2ⁿ placements.
#
# About 14 lines.


# %% nbgrader={"grade": false, "grade_id": "place", "locked": false, "schema_version": 3, "solution": true, "task": false}
def place(layers, first, memory):
    ### BEGIN SOLUTION
    table, send = {(0, 0): (0, [])}, first  # (side, memory used) → least time, how
    for cpu, gpu, size, after in layers:
        further = {}
        for (side, used), (spent, plan) in table.items():
            for here, own in ((0, cpu), (1, gpu)):
                key = here, used + here * size
                total = spent + own + (send if here != side else 0)
                if key[1] <= memory and (key not in further or total < further[key][0]):
                    further[key] = total, [*plan, here]
        table, send = further, after
    return min((spent + send * side, plan) for (side, _), (spent, plan) in table.items())[1]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "place-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("edge.place", place)


# %%
def time_of(sides, layers, first):
    total, side, send = 0, 0, first
    for here, (cpu, gpu, _, after) in zip(sides, layers, strict=True):
        total, side, send = total + (gpu if here else cpu) + send * (here != side), here, after
    return total + send * side


def from_the_front(layers, memory):
    """As many layers as fit, beginning with the first: --n-gpu-layers."""
    fit = [sum(layer[2] for layer in layers[: n + 1]) <= memory for n in range(len(layers))]
    return [int(f) for f in fit]


def by_value(layers, memory):
    """Layers that save most µs for each MB first, while there is room."""
    sides = [0] * len(layers)
    for i in sorted(range(len(layers)), key=lambda i: (layers[i][1] - layers[i][0]) / layers[i][2]):
        if layers[i][2] <= memory:
            sides[i], memory = 1, memory - layers[i][2]
    return sides


gpulab.need(place)
chain = [[72 if i in (5, 7, 9, 11) else 32, 10, 3, 22] for i in range(17)]  # made up; four layers save most
gpulab.plot.lines(
    {
        name: [(m, time_of(how(chain, m), chain, 22)) for m in range(0, 31, 3)]
        for name, how in (
            ("from the front", from_the_front),
            ("most µs per MB first", by_value),
            ("yours", lambda layers, memory: place(layers, 22, memory)),
        )
    },
    "GPU memory, MB (17 layers of 3 MB, 22 µs for each crossing)",
    "µs per token",
    "From the front, a token takes up to 120 µs longer than yours; by µs per MB, up to 176 µs.",
)

# %% [markdown]
# **Why.** With little memory, the layers that save most move to the GPU alone. With more memory, their
# neighbours join them, because a layer between two GPU layers saves two crossings. In a mixture of experts, a
# token reads all bytes of attention but few of the experts'. Therefore `llama.cpp` can keep the experts on
# the CPU (`--cpu-moe`), and a small GPU then helps a large model. If CPU and GPU share one DRAM, nothing is
# sent and no memory is gained. The GPU still helps with prompts, but both have the same bandwidth.
#
# ## 9 · Learning where the data is
#
# Phones hold data that must not leave them. In **federated learning** a server sends the model to clients. Each
# client trains on its own data, and only its weights come back. **FedAvg** (H. B. McMahan et al., 2017) averages
# them, weighted by each client's number of samples. Replies may be quantised, because the upload is slow.
#
# **Do.** Write `federated(weights, replies, bits)`, one round of FedAvg.
#
# - `weights` is a list of numbers. `replies` has an entry for each client that received the model: [samples,
#   its weights], or None if it did not answer.
# - Sending the model down takes 4 bytes a weight for each client, whether it answers or not. A reply takes
#   `bits` bits a weight and is rounded up to whole bytes.
# - Output: [new weights, bytes down, bytes up]. If no samples were seen, the weights stay as they are.
#
# About 7 lines.


# %% nbgrader={"grade": false, "grade_id": "federated", "locked": false, "schema_version": 3, "solution": true, "task": false}
def federated(weights, replies, bits):
    ### BEGIN SOLUTION
    heard = [reply for reply in replies if reply]
    samples = sum(count for count, _ in heard)
    new = weights
    if samples:
        new = [sum(count * theirs[i] for count, theirs in heard) / samples for i in range(len(weights))]
    up = -(-len(weights) * bits // 8)
    return [new, 4 * len(weights) * len(replies), up * len(heard)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "federated-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("edge.federated", federated)


# %%
def gradient_steps(weights, x, y, steps):
    """Steps of logistic regression, weights as one list of FEATURES × CLASSES."""
    w = np.array(weights).reshape(x.shape[1], -1)
    for _ in range(steps):
        scores = np.exp(x @ w - (x @ w).max(1, keepdims=True))
        scores /= scores.sum(1, keepdims=True)
        scores[np.arange(len(y)), y] -= 1
        w = w - x.T @ scores / len(y)
    return w.ravel().tolist()


def rounds(shares, steps, count=30):
    """(MB sent up, % right) after each round, every client training for some steps on its share."""
    weights, sent, points = [0.0] * (16 * CLASSES), 0, []
    for _ in range(count):
        replies = [[len(rows), gradient_steps(weights, task[rows], target[rows], steps)] for rows in shares]
        weights, _, up = federated(weights, replies, 32)
        sent += up
        right = (task[2000:] @ np.array(weights).reshape(16, -1)).argmax(1) == target[2000:]
        points.append((sent / 1e6, 100 * float(right.mean())))
    return points


gpulab.need(federated)
draws = np.random.default_rng(8)
target = draws.integers(0, CLASSES, 4000)
task = draws.standard_normal((4000, 16)) + 1.2 * draws.standard_normal((CLASSES, 16))[target]
task *= np.logspace(0, -2, 16)  # some features are a hundred times as large as others
mixed_rows = np.array_split(np.arange(2000), 10)  # every client has all classes
own_rows = np.array_split(np.argsort(target[:2000], kind="stable"), 10)  # every client has one or two
gpulab.plot.lines(
    {
        "mixed, 20 steps": rounds(mixed_rows, 20),
        "own classes, 20 steps": rounds(own_rows, 20),
        "1 step, either": rounds(own_rows, 1),
    },
    "MB sent up by ten clients",
    "% of held-out examples right",
    "20 local steps get further with the same bytes, but less so if clients have one or two classes.",
)

# %% [markdown]
# **Why.** With one local step, FedAvg *is* ordinary training on all data, however the data are divided. With
# more steps, clients whose data differ pull in different directions, which is called *client drift*. Weights
# can still reveal data, so secure aggregation and noise (differential privacy) are added in practice.
#
# Google's TPUs (`hardware.accelerator("TPU v5e")`) train such models in data centres. Its Edge TPU of 2019
# runs int8 models at 4 TOPS and 2 W (Coral data sheet). Compute at the edge for latency, for privacy, or when
# the network may be away. Compute in the cloud when a model does not fit, or when the device would mostly
# idle.
#
# ## Detective · The benchmark that nobody could reproduce
#
# A colleague's camera needs 30 frames a second. "The board does 40. I ran the benchmark for a minute after a
# warm-up, three times, ten minutes apart: 40.0, 40.0, 40.0. In its housing it starts well, but later it drops
# every third frame. It must be the camera's driver." The next cell simulates the board, second by second.


# %%
def board(seconds, ambient=25.0, clock=1.0, cooling=2.4):
    """(second, frames/s, °C) of a run that starts cold; `clock` is a cap, `cooling` in K/W: less is better."""
    degrees, now, log = ambient, clock, []
    for second in range(seconds):
        watts = 5 + 23 * now
        degrees += (ambient + cooling * watts - degrees) / 150
        if degrees > 85:
            now = max(0.1, now - 0.02)
        elif degrees < 84:
            now = min(clock, now + 0.02)
        log.append((second, 40 * now, degrees))
    return log


for trial in range(3):
    log = board(65)[5:]
    print(f"trial {trial + 1}: {np.mean([frames for _, frames, _ in log]):.1f} frames/s")
gpulab.plot.lines(
    {"frames/s": [(second, frames) for second, frames, _ in board(65)]},
    "seconds",
    "frames per second",
    "One minute on the desk: 40 frames a second, without a change.",
    limits={"needed": 30},
)

# %% [markdown]
# **Do.** Find out what happens and when, and whether the driver is to blame. Inside the housing it is 45 °C.
# The next cell is yours.

# %%
# Your experiment.

# %% [markdown]
# ### Your answer
#
# Answer in three to five sentences. What slows the board down? Why did three trials not show it? Which numbers that
# you measured prove it? Which setting or change keeps 30 frames a second? A person reads your answer and gives 1
# point for the cause and 1 point for a number that you found yourself.

# %% [markdown] nbgrader={"grade": true, "grade_id": "benchmark-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** The board gets hot and lowers its clock (thermal throttling). On the desk this begins after 333 s and
# settles at 34 frames a second; a trial lasts only 65 s, and in the ten minutes between trials the board cools down.
# In the housing, `board(3600, 45)` throttles after second 135 and settles at 20 frames a second, so every third frame
# is missing. No clock helps there: at 85 °C the board may draw only (85 − 45)/2.4 = 16.7 W, but 30 frames need
# 5 + 23 · 0.75 = 22.3 W. With cooling of 1.75 K/W and the clock limited to 0.75 it keeps 30 frames; a smaller model
# would help as well. A benchmark must run in the housing until the temperature no longer changes.
#
# **1 point** (the cause without a number): It overheats after a while and throttles.
#
# **0 points:** The camera's driver drops frames. Or: there is a memory leak.

# %% [markdown]
# ## Beyond · Thirty billion weights and a small GPU
#
# This task is open-ended and ungraded. Qwen3-30B-A3B has 48 layers. Each has attention and 128 experts, of
# which a token reads 8. All weights take 4.25 bits. The GPU has 4.5 GB free at 256 GB/s, and the CPU's DRAM
# delivers 90 GB/s. Experts are not chosen equally often, and in some layers a few do nearly all the work
# (these frequencies are made up). In a layer, both sides compute their experts at the same time. If a token
# needs experts on the side without the attention, that costs 30 µs more. Choose what goes to the GPU. The
# figure of merit is the time per token in ms.
#
# | placement | ms per token |
# |---|---|
# | whole layers from the front | 13.2 |
# | attention, and as many experts of each layer | 7.6 |
# | ours | 6.7 |
# | bound: all bytes at both rates at once, no link | 4.2 |

# %%
BITS = 4.25 / 8
# Bytes: queries and output of 32 heads of 128, keys and values of 4; three matrices of 2,048 × 768.
ATTENTION, EXPERT = BITS * 2048 * (2 * 4096 + 2 * 512), BITS * 3 * 2048 * 768
ROOM, GPU, CPU, LINK = 4.5e9, 256e9, 90e9, 30e-6
busy = 4 + 9 * (7 * np.arange(48) % 12)  # about how many experts of a layer do most
chance = 1 / (1 + np.exp((np.arange(128) - busy[:, None]) / 8))
chance *= 8 / chance.sum(1, keepdims=True)  # that a token needs an expert of a layer, the most chosen first


def layer_seconds(chances, on_gpu, experts):
    here, there = chances[:experts], chances[experts:]  # on the GPU, on the CPU
    gpu, cpu = here.sum() * EXPERT / GPU, there.sum() * EXPERT / CPU
    if on_gpu:
        return ATTENTION / GPU + max(gpu, cpu + LINK * (1 - np.prod(1 - there)))
    return ATTENTION / CPU + max(cpu, gpu + LINK * (1 - np.prod(1 - here)))


def token_ms(attention, experts):
    """For each layer: is its attention on the GPU (1 or 0), and how many of its experts, the most chosen first?"""
    used = sum(attention) * ATTENTION + sum(experts) * EXPERT
    assert used <= ROOM, f"{used / 1e9:.2f} GB do not fit"
    return 1e3 * sum(map(layer_seconds, chance, attention, experts))


fit = int(ROOM // (ATTENTION + 128 * EXPERT))
each = int((ROOM / 48 - ATTENTION) // EXPERT)
print(
    f"whole layers from the front: {token_ms([1] * fit + [0] * (48 - fit), [128] * fit + [0] * (48 - fit)):.1f} ms"
)
print(f"as many experts of each:     {token_ms([1] * 48, [each] * 48):.1f} ms")
print(f"bound:                       {1e3 * 48 * (ATTENTION + 8 * EXPERT) / (GPU + CPU):.1f} ms")

# %%
# Your placement.

# %% [markdown]
# ## Recap
#
# <details><summary>1. A board advertises 100 TOPS. What do you ask?</summary>
#
# Which data type, dense or with 2:4 sparsity, and on which unit? Then ask how many GB/s it has.
# </details>
#
# <details><summary>2. How many bytes are 7 billion weights in 4 bits with groups of 32, and how long does a token take at 120 GB/s?</summary>
#
# A weight takes 4.5 bits, so the weights are 3.94 GB, and a token takes at least 33 ms.
# </details>
#
# <details><summary>3. Which power mode is best for writing text, and which for reading long prompts?</summary>
#
# Writing follows the memory's clock. On an AGX Orin 30 W is as fast as any limit, and if the limits were
# drawn in full, 15 W would need fewer joules. Reading follows the GPU: 50 W is fastest and needs fewer joules
# as well, unless waiting costs much.
# </details>
#
# <details><summary>4. A model takes 50 ms, and frames come every 33 ms. What do you do?</summary>
#
# Keep only the newest frame. That gives about 20 frames a second, none of them older than 100 ms. A queue
# would grow for ever.
# </details>
#
# <details><summary>5. What does an int8 runtime do with the sum of products?</summary>
#
# It multiplies the sum by a_scale · b_scale / c_scale, rounds to the nearest whole number with halves to even, adds
# the zero point, and clips. </details>

# %%
gpulab.recap("21")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | bits of a weight | bits + 16 / group |
# | cache | 2 · layers · kv_heads · head_dim · context · bytes |
# | least time of a token | (weights + cache) / bandwidth; NVIDIA reached 79 to 88 % of it |
# | joules of a job | watts · seconds + idle · (period − seconds) |
# | when sleep pays | (idle − asleep) · rest > joules to wake up |
# | deadline | one waiting place, which the newest frame takes; age ≤ 2 · longest run |
# | benchmark | run until the temperature no longer changes |
# | int8 | round(Σ (a − za)(b − zb) · sa · sb / sc) + zc, halves to even |
# | two processors | µs saved per MB, and the number of crossings |
#
# ### Claims you will meet, and what is right
#
# - *AGX Orin has 275 TOPS, Thor 2,070.* The first figure is int8 on GPU and DLA, the second float4, and both
#   assume sparsity. Half of each is dense, and 85 of Orin's are on its GPU.
# - *67 TOPS instead of 40: "Super" is a faster chip.* It is the same module with higher clocks and a higher
#   power mode.
# - *More TOPS give more tokens.* The tokens of a single user follow GB/s. From Orin Nano to Super, bandwidth
#   grows 1.5 times and tokens 1.37 times.
# - *The weights of an 8B model take 8 GB in 8 bits.* They take 8.25 GB with scales for groups of 64, and the
#   cache and the system come on top.
# - *The 30 W mode draws 30 W.* That is its limit. What a module draws must be measured (`tegrastats`).
# - *SYCL is Intel's.* It is a Khronos standard; DPC++ is Intel's compiler for it.
#
# ### References
#
# 1. NVIDIA, "NVIDIA Jetson Orin Nano Developer Kit Gets a 'Super' Boost", 2024.
# 2. NVIDIA, "TensorRT Edge-LLM, Performance Benchmarks", version 0.4.0, 2025.
#    https://nvidia.github.io/TensorRT-Edge-LLM/user_guide/performance/performance-benchmarks.html
# 3. "Tiny LLM Benchmark: Jetson Orin Nano Super 8GB, Four Power Modes × Eight Models", Smolhub, 2026.
#    https://www.smolhub.com/posts/jetson-nano-super-benchmark-non-reasoning/
# 4. NVIDIA, "Jetson Linux Developer Guide, Platform Power and Performance", 2024.
# 5. ONNX, "QuantizeLinear" and "QLinearMatMul". https://onnx.ai/onnx/operators/
# 6. B. Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only
#    Inference", CVPR, 2018.
# 7. H. B. McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data",
#    AISTATS, 2017.
# 8. Khronos, "SYCL 2020 Specification"; W3C, "WebGPU", limits: https://www.w3.org/TR/webgpu/#limits
