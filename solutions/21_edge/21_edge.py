# ---
# jupyter:
#   gpulab:
#     lab: "21"
#     hours: 2
#     topics: [C22.6, C22.7, C22.8, C22.9, C22.10]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 21 · Edge: models on small devices
#
# **About two hours.** You need lab 13 (codes, scales, zero points, groups). Small devices are modelled here
# from their data sheets; what ONNX Runtime does is measured on your CPU.
#
# When you are through, you can
#
# 1. read the headline of a small device: which TOPS, and what they count;
# 2. choose bits, cache and context so that a model fits, and say how long a token takes at least;
# 3. choose a power mode by joules, not by watts;
# 4. keep a deadline with a model that is too slow for its camera;
# 5. export a model to ONNX, run it in int8, and compute its integers yourself;
# 6. prune and pack a network into a given number of bytes;
# 7. share a model between CPU and GPU so that no other placement is faster.

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
# An **edge device** computes where the data is: a robot's board, a phone, a laptop. CPU, GPU and often a unit for neural
# networks (**NPU**, on some Jetsons **DLA**) are one chip with one DRAM. Its headline is **TOPS**, 10¹² operations
# a second. Ask three questions of it:
#
# - *Which dtype?* A Jetson Orin counts int8, a Thor float4.
# - *Dense?* Headlines of the Jetsons count 2:4 sparsity (lab 14): twice what a dense model gets.
# - *Which unit?* An AGX Orin's 275 are 170 of the GPU and 105 of two DLAs. Your kernel runs on one of them.
#
# **Predict.** How many dense int8 TOPS has the GPU of an AGX Orin?

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
# **Why.** The Jetson family (2022 to 2025): *Orin Nano* and *Orin NX* for cameras and drones, *AGX Orin* and *Thor* for
# robots. "Super" is the Orin Nano with higher clocks: new software, not a new chip. *JetPack* is their software: Linux,
# CUDA, TensorRT; *DeepStream* builds video pipelines from it.
#
# Apple and Qualcomm state neither dtype nor sparsity, Intel only that sparsity is supported. Such numbers cannot be
# compared. The column that decides how fast a language model writes is another one: GB/s.
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
# Core ML, LiteRT (once TensorFlow Lite), OpenVINO, TensorRT, ExecuTorch, Windows ML and ONNX Runtime take a *graph* and
# bring kernels along: most models on small devices run through one of them. The same things have other names:
#
# | CUDA | HIP | OpenCL, SYCL | Metal | Vulkan, WebGPU |
# |---|---|---|---|---|
# | thread | thread | work-item | thread | invocation |
# | warp, 32 | wavefront, 32 or 64 | sub-group | SIMD-group | subgroup |
# | block | block | work-group | threadgroup | workgroup |
# | shared memory | LDS | **local** memory | threadgroup memory | shared, workgroup memory |
# | **local** memory | scratch | private memory | thread memory | private, function |

# %% [markdown]
# "Local" is a false friend: fast and shared in OpenCL, slow and private in CUDA. And a launch is counted differently:
#
# | interface | told | order of axes |
# |---|---|---|
# | CUDA, HIP, Metal (`dispatchThreadgroups`) | **groups**, size of a group | x, y, z |
# | Vulkan, WebGPU (`dispatchWorkgroups`) | **groups**; the size stands in the kernel | x, y, z |
# | OpenCL | **all items**, items of a group | x, y, z |
# | SYCL (`nd_range<3>`) | **all items**, items of a group | z, y, x: the last runs fastest |
#
# How large a group may be differs as well: 1,024 threads in CUDA, by default 256 in WebGPU; others are asked at run time.
#
# **Do.** Write `launch(api, threads, block, most)`. `threads` and `block` are [x, y, z]; there must be a thread for each
# element, in whole groups. Return the pair of lists [told, size of a group], each in the interface's order, or None if a
# group has more than `most` threads. The size is asked of Vulkan and WebGPU, too. `api` is "CUDA", "HIP", "Metal",
# "Vulkan", "WebGPU", "OpenCL" or "SYCL". About 7 lines.


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
# A model of 8 billion weights in float16 needs 16 GB. Your board has 8, and its system takes a part of them. Lab 13's
# formats help: with a 16-bit scale for each **group** of g weights, a weight costs bits + 16/g bits.
#
# ![Eight billion weights: 16 GB at 16 bits, 8 GB at eight, 4.5 GB at four bits with scales. A device with 8 GB has room for the last one only, and for a cache.](drawings/eight_gigabytes.svg)
#
# **Predict.** How many GB are 8 billion weights in 8 bits, groups of 64?

# %%
gpulab.predict("edge.eight", ...)

# %% [markdown]
# For one user, each token reads all weights and the cache once, and computes next to nothing with them. So the least time
# of a token is
#
# **bytes read / bandwidth**
#
# **Predict.** 4 bits in groups of 64 are 4.25 bits. How many ms does a token take at least, on an Orin Nano Super's 102 GB/s?

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
    caption="Of the three formats only 4 bits leave room on a board of 8 GB: 16 GB become 4.25.",
)

# %% [markdown]
# Is that bound near the truth? NVIDIA measured Llama 3.1 8B in int4, one user: 14.0 and 19.14 tokens a second on an Orin
# Nano before and after "Super" (reference 1), 50.8 on a Thor (reference 2).

# %% jupyter={"source_hidden": true}
measured = {"Orin Nano": 14.0, "Orin Nano Super": 19.14, "Thor T5000": 50.8}
bound = {name: float(hardware.edge(name).dram_bandwidth) / 1e9 / EIGHT["int4"] for name in measured}
gpulab.plot.panels(
    {
        "tokens/s at most": bound,
        "tokens/s measured": measured,
        "% of the bound": {name: 100 * measured[name] / bound[name] for name in measured},
    },
    "NVIDIA's measurements reach 79 to 88 % of what memory allows: the bound is close.",
)

# %% [markdown]
# **Do.** Write `plan(model, device, need, formats, caches)`: what to run on a device that is too small.
#
# - `model`: `parameters` (in matrices), `table` (numbers of the input table, always 2 bytes each; a token reads one row,
#   which counts as nothing), `layers`, `kv_heads`, `head_dim`. The **cache** holds a key and a value of kv_heads × head_dim
#   numbers for each layer and each token of the context (lab 19).
# - `device`: `memory` and `reserved` for all else, in bytes, and `bandwidth` in B/s.
# - `need`: `context` in tokens, and `seconds` that a token at its end may take at most.
# - `formats` are [name, bits, group, loss], group 0 without scales; `caches` are [name, bits, loss]. A loss is in % of
#   perplexity; here they are inputs, lab 13 measures them.
#
# Of the pairs that fit and are in time return the one with the least sum of losses: [format, cache, bytes in memory
# without `reserved`, seconds per token], or None if there is none. About 15 lines.


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
# **Why.** Memory and time ask for the same: fewer bytes. Bits of weights come first; at long contexts the cache wants its
# share. Other ways to fewer bytes are **pruning** and **distilling** a smaller model (lab 14). A smaller model in more
# bits often beats a larger one in fewer than 4: measure both.
#
# ## 4 · Watts and joules
#
# A **power mode** caps clocks so that a module stays below some watts. The cap is no measured draw. On an AGX Orin modes
# also turn parts of the GPU off; and some lower the memory's clock, others do not.
#
# ![Watts are joules a second. A faster device at more watts may need fewer joules for an answer, because it is done sooner: energy is the area.](drawings/watts.svg)
#
# **Predict.** From the 50 W mode to the 30 W mode: by what factor does the least time of a token change?

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
# All times are modelled, at peak rates and in int8. Reading a prompt computes and follows the GPU; writing tokens waits for
# memory and follows the memory's clock. So by joules at the caps 15 W is best for writing, and 50 W for reading.
#
# What a battery pays is **energy**: power × time, also of the time between jobs. Finishing fast and then idling is called
# **race to idle**. Whether it pays depends on what idling costs, and sleeping costs joules to wake up.
#
# **Do.** A job comes every `period` seconds. Write `energy(modes, period, idle, sleep, battery)`. `modes` are [name, watts,
# seconds per job]; the job must be done by the end of the period, and some mode does it. The rest of the period takes `idle` watts,
# or sleep[0] watts and sleep[1] joules for waking. `battery` is in Wh. Return the choice of least energy: [mode, "idle"
# or "sleep", joules per period, hours on the battery]. About 8 lines.


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
    "Racing at 50 W takes the fewest joules while idling costs little; else the slow 15 W does.",
    limits={"50W, then asleep": energy(reading, 20.0, 1e9, [0.5, 120.0], 50.0)[2]},
)

# %% [markdown]
# **Why.** Where jobs are rare, waiting decides: sleep. Where they are frequent, joules per job do. Reading is 5.3 times as fast
# at 50 W as at 15 W, for 3.3 times the watts: racing wins while idling costs less than 6.9 W. Writing is at most 1.5 times as
# fast: 15 W wins by joules, 30 W by time, and 50 W by nothing. But caps are not draws: on an Orin Nano Super somebody measured
# (2026, reference 3), writing at 25 W, 36 to 47 % more tokens a second than at 15 W and 3 to 26 % more per joule; without a cap,
# fewer per joule again. Memory's clock rises by half from 15 to 25 W, and then no more.
#
# ## 5 · Deadlines
#
# A robot that sees the world of a second ago runs into things. **Real time** means that a result after its deadline is
# worth nothing, so what counts is the worst case, not the mean.
#
# **Predict.** A camera gives 30 frames a second, the model takes 40 ms a frame, frames wait in a queue. After one
# minute a frame is done. How old is it?

# %%
gpulab.predict("edge.age", ...)

# %% [markdown]
# The cure is to **drop**: keep one place for waiting, and let a newer frame take the place of an older one.
#
# **Do.** Write `deadline(arrivals, times, limit)`, all whole ms. Frame i arrives at arrivals[i] (ascending) and would run for
# times[i]. One frame runs at a time, to its end. What arrives meanwhile waits in the one place; who stood there is dropped.
# When a frame ends at t, the waiting one starts at t. What ends at t ends before what arrives at t: that finds the GPU
# free, or a waiting frame just started. Age is end − arrival; more than `limit` is late. Return [frames in time, frames late,
# frames dropped, greatest age of those done]. About 18 lines.


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
    "In a queue frames get older for ever; with one place for the newest the age stays bounded.",
    log_y=True,
)

# %% [markdown]
# **Why.** A queue only helps against short bursts; a model that is too slow on average makes it grow without end. With one
# place, a frame waits at most as long as the one before it runs, so its age is at most twice the longest run: a bound, which is
# what real time asks for. DeepStream and camera interfaces have such settings; look for *drop* and *latest*.
#
# ## 6 · ONNX: one file for many runtimes
#
# **ONNX** is a file format for graphs of operators, each with an exact definition. PyTorch writes it; ONNX Runtime,
# TensorRT, OpenVINO, Windows ML and others run it, each on its hardware (an *execution provider*). This section trains
# a small network, exports it, makes it int8 in two ways, and measures on your CPU.

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
# **Dynamic** quantisation stores int8 weights and works out each activation's scale when it is there. **Static** fixes
# activations' scales beforehand, from a **calibration** set: it need not look for them at run time, and is as good as that
# set is.
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
        found, "Measured on this CPU: int8 files are four times smaller, and as often right."
    )
    display(picture)  # noqa: F821

# %% [markdown]
# **Why.** One example reads every weight once, and a quarter of the bytes take less time; 256 examples use the CPU's int8
# instructions, where it has them. A CPU without them may even get slower, and static need not be faster than dynamic: measure
# where it will run.
#
# In the static file stand QuantizeLinear, DequantizeLinear and between them Gemm (a product and a bias); the runtime merges
# them into QGemm, which computes with integers only. Without the bias that is ONNX's operator **QLinearMatMul**. With codes a, b and their scales and zero points, a
# real value is scale · (code − zero). The output's code is
#
#     round( Σ (a − a_zero) · (b − b_zero)  ·  a_scale · b_scale / c_scale )  +  c_zero,    cut off to 0 … 255
#
# ONNX rounds halves to even, *before* it adds the zero point.
#
# **Do.** Write `matmul(a, a_scale, a_zero, b, b_scale, b_zero, c_scale, c_zero)` for codes in lists of rows, a uint8 of
# M × K, b int8 of K × N: the output's codes, M rows of whole numbers. About 8 lines.


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
# **See.** The real runtime on the same numbers: 64 × 48 codes times 48 × 32.

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
# **Why.** Exact integers make results portable: the same codes on a CPU, an NPU or a phone, up to ties of the float32
# factor. Devices without floating point store the factor as an integer and a shift (B. Jacob et al., 2018).
#
# ## 7 · Pruned and packed
#
# On a microcontroller every byte counts. Below is a small network of one hidden layer, `max(0, x @ W_in) @ W_out`. `model` has a
# column for each hidden unit: `model[:inputs, j]` are its incoming weights, `model[inputs:, j]` its outgoing ones, one for
# each output. Two steps make it small: **prune** units that hardly matter, then store the rest in 4 bits, two codes a byte.
#
# ![Pruned and packed: channels that matter little are taken out, the rest is stored in eight bits. The two multiply: half of the channels at a quarter of the bytes is an eighth.](drawings/pruned_packed.svg)
#
# Large weights do not make a unit matter: what counts is what it adds to the outputs, on data like those that will come.
#
# **Do.** Write `compress(model, x, inputs, limit)`, NumPy arrays, which returns a dictionary of arrays:
#
# | array | dtype | what it holds |
# |---|---|---|
# | `units` | uint8 | the numbers of the kept units (there are fewer than 256) |
# | `scales_in`, `scales_out` | float16 | one for each kept unit; one for each output |
# | `codes_in`, `codes_out` | uint8 | for incoming and for outgoing weights: byte (r, i) holds the codes of rows 2r (low half) and 2r + 1 (high half) of kept unit i |
#
# A weight is read as scale · (code − 8).
#
# **Budget:** at most `limit` bytes. A kept unit costs inputs/2 + outputs/2 + 3 (codes, number, scale), all else 2 · outputs + 97
# (names and shapes). And on fresh data an error (root mean square, of the outputs) of at most 0.85 times that of *all* units
# in 4 bits. About 18 lines.


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
# **Why.** Here the units with the largest weights are never active, and while they are there, they make the scales coarse for
# all others: pruned first, fewer bytes have *less* error than all of them in 4 bits. In large models the same thought is
# called activation-aware: AWQ (lab 13) for scales, Wanda (M. Sun et al., 2023) for pruning.
#
# ## 8 · Two processors, one model
#
# A model that is too large for the GPU's memory can run on both: some layers on the GPU, the others on the CPU, from its
# DRAM. `llama.cpp` does that with `--n-gpu-layers`.
#
# ![Two processors, one model: each change of sides sends the activations over the link and costs its latency. Few changes are better than the best processor for every layer.](drawings/two_processors.svg)
#
# **Predict.** Half of the layers move from the CPU to a GPU that reads 10 times as fast. How many times faster is a token,
# without transfers?

# %%
gpulab.predict("edge.layers", ...)

# %% [markdown]
# Each change of sides sends the activations over the link. That is little data and mostly latency, once per crossing and
# token. Layers are not alike, either: in a **mixture of experts** a token reads all of the attention and, say, an eighth of the
# experts. Which bytes deserve the GPU?
#
# **Do.** Write `place(layers, first, memory)`. `layers` are [µs on the CPU, µs on the GPU, MB that it takes on the GPU, µs to
# send its output to the other side]. The chain begins and ends on the CPU; sending its input takes `first` µs. The GPU has
# `memory` MB, all whole numbers. Return a list with 0 (CPU) or 1 (GPU) for each layer, such that no placement is faster.
# **Budget:** the least time, exactly. It can be had without trying all 2ⁿ placements. About 14 lines.


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
    "From the front loses up to 120 µs: little saved. Most µs per MB up to 176: too many crossings.",
)

# %% [markdown]
# **Why.** With little memory the layers that save most go alone; with more, neighbours join them, because a layer between
# two GPU layers saves two crossings. In a mixture of experts all bytes of attention are read and few of the experts': so
# `llama.cpp` can keep experts on the CPU (`--cpu-moe`), and a small GPU helps a large model. Where CPU and GPU share one DRAM, no memory is gained and nothing is sent; there the GPU
# helps with prompts, and the bandwidth is the same for both.
#
# ## 9 · Learning where the data is
#
# Phones hold data that must not leave them. In **federated learning** a server sends the model to clients, each trains on its
# own data for some steps, and only weights come back. **FedAvg** (H. B. McMahan et al., 2017) averages them, each client
# weighted by its number of samples. Upstream is slow, so replies may be quantised.
#
# **Do.** Write `federated(weights, replies, bits)`. `replies` has for each client that got the model [samples, its weights],
# or None if it fell silent. Return [new weights, bytes down, bytes up]: down 4 bytes a weight to each client, up `bits` a
# weight, each reply in whole bytes. Without samples the weights stay. About 7 lines.


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
    "20 local steps get further with the same bytes, less so where clients know only their own classes.",
)

# %% [markdown]
# **Why.** With one step FedAvg *is* ordinary training on all data, however they are shared. With more, clients whose data differ pull apart
# (*client drift*). Weights can still betray data: secure aggregation and noise (differential privacy) come on top.
#
# Google's TPUs (`hardware.accelerator("TPU v5e")`) train such models in data centres; its Edge TPU of 2019 runs
# int8 models at 4 TOPS and 2 W (Coral data sheet). Compute at the edge for latency, privacy or when the network is
# away; in the cloud when a model does not fit, or when the device would mostly idle.
#
# ## Detective · The benchmark that nobody could reproduce
#
# A colleague's camera needs 30 frames a second. "The board does 40. I ran the benchmark for a minute after a warm-up, three
# times, ten minutes apart: 40.0, 40.0, 40.0. In the housing it starts well, and later drops every third frame. Must be the
# camera's driver." The board is simulated here, second by second.


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
    "A minute on the desk: 40 frames a second, as steady as can be.",
    limits={"needed": 30},
)

# %% [markdown]
# **Do.** What happens, when, and is the driver to blame? In the housing it is 45 °C. The cell is free.

# %%
# Your experiment.

# %% [markdown]
# ### Your answer
#
# In three to five sentences: what slows the board, why did three trials not show it, which counts of your own prove it, and
# which setting or change keeps 30 frames a second? A person reads this: 1 point for the cause, 1 point for a count of
# your own.

# %% [markdown] nbgrader={"grade": true, "grade_id": "benchmark-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** The board gets hot and lowers its clock (thermal throttling). On the desk that begins after 333 s and ends at
# 34 frames a second; a trial lasts 65 s, and in ten minutes the board cools. In the housing, `board(3600, 45)` throttles from
# second 135 on and settles at 20 frames a second: every third is missing. No clock helps there: at 85 °C only
# (85 − 45)/2.4 = 16.7 W may be drawn, and 30 frames need 5 + 23 · 0.75 = 22.3 W. With cooling of 1.75 K/W and the clock capped
# at 0.75 it stays at 30. Or a smaller model. A benchmark must run until the temperature stands still, in the housing.
#
# **1 point** (cause without a count): It overheats after a while and throttles.
#
# **0 points:** The camera's driver drops frames. Or: a memory leak.

# %% [markdown]
# ## Beyond · Thirty billion weights and a small GPU
#
# Open-ended and ungraded. Qwen3-30B-A3B has 48 layers; in each, attention and 128 experts, of which a token reads 8. All
# in 4.25 bits; the GPU has 4.5 GB free at 256 GB/s, the CPU's DRAM 90 GB/s. How often experts are chosen differs, and in some
# layers few do nearly all: made up. In a layer both sides compute their experts at the same time; if a token needs
# experts of the side without the attention, that costs 30 µs more. Choose what goes to the GPU. Figure of merit: ms per token.
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
# Which dtype, dense or with 2:4 sparsity, and on which unit. Then: how many GB/s.
# </details>
#
# <details><summary>2. 7 billion weights in 4 bits, groups of 32, at 120 GB/s: bytes, and ms per token?</summary>
#
# 4.5 bits: 3.94 GB, at least 33 ms.
# </details>
#
# <details><summary>3. Which power mode for writing text, which for reading long prompts?</summary>
#
# Writing follows the memory's clock. On an AGX Orin 30 W is as fast as any cap, and by caps 15 W needs fewer joules. Reading
# follows the GPU: 50 W is faster, and by caps needs fewer joules as well, unless waiting costs much.
# </details>
#
# <details><summary>4. A model takes 50 ms, frames come every 33 ms. What to do?</summary>
#
# Keep only the newest: about 20 frames a second, none older than 100 ms. A queue grows for ever.
# </details>
#
# <details><summary>5. What does an int8 runtime do after the sum of products?</summary>
#
# Multiply by a_scale · b_scale / c_scale, round to even, add the zero point, cut off.
# </details>

# %%
gpulab.recap("21")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | bits of a weight | bits + 16 / group |
# | cache | 2 · layers · kv_heads · head_dim · context · bytes |
# | least ms of a token | (weights + cache) / bandwidth; NVIDIA reached 79 to 88 % of it |
# | joules of a job | watts · seconds + idle · (period − seconds) |
# | sleep pays | (idle − asleep) · rest > joules to wake |
# | deadline | one place, the newest takes it; age ≤ 2 · longest run |
# | benchmark | until the temperature stands still |
# | int8 | round(Σ (a − za)(b − zb) · sa · sb / sc) + zc, halves to even |
# | two processors | µs saved per MB, and crossings |
#
# ### Claims you will meet, and what is right
#
# - *AGX Orin has 275 TOPS, Thor 2,070.* int8 on GPU and DLA, and float4; both with sparsity. Half of it dense, and 85 on
#   Orin's GPU alone.
# - *67 TOPS instead of 40: "Super" is a faster chip.* The same module with higher clocks and a higher power mode.
# - *More TOPS, more tokens.* One user's tokens follow GB/s: Orin Nano to Super, 1.5 times the bandwidth, 1.37 times the
#   tokens.
# - *8-bit weights of an 8B model take 8 GB.* 8.25 with scales of groups of 64, and the cache and system come on top.
# - *The 30 W mode draws 30 W.* It is a cap. What was drawn must be measured (`tegrastats`).
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
# 6. B. Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference", CVPR, 2018.
# 7. H. B. McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS, 2017.
# 8. Khronos, "SYCL 2020 Specification"; W3C, "WebGPU", limits: https://www.w3.org/TR/webgpu/#limits
