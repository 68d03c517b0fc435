# ---
# jupyter:
#   gpulab:
#     lab: "22"
#     hours: 1
#     topics: [C10.10, C17.4, C20.5, C24.1, C24.2, C24.3, C24.7, C24.8]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 22 · The landscape, November 2026
#
# **0.5 to 1 hours.** Nothing in this notebook is graded. So far, you have met GPUs as they are. This
# notebook is about where they, their software and their applications are going, and about what to read. Every claim
# has a date, because this notebook ages faster than the others.
#
# By the end of this notebook, you can
#
# 1. say which kernels a trend helps and which it does not;
# 2. distinguish an announcement from a product and from a measurement;
# 3. find a slowdown among a thousand commits;
# 4. say what became of DeepSpeed's ideas;
# 5. name ten things to read, and what to do next.

# %%
import numpy as np

import gpulab
from gpulab import hardware

gpulab.start("22")

# %% [markdown]
# ## 1 · Where hardware goes
#
# **Predict.** From the V100 (2017) to the B200 (2024), dense float16 rates grew by a factor of 18. By what factor
# did the bandwidth of DRAM grow?

# %%
gpulab.predict("landscape.bandwidth", ...)

# %%
line = [hardware.find(name) for name in ("V100", "A100", "H100", "B200")]
print("GPU    year   dense float16   DRAM          FLOP for each byte   memory")
for gpu in line:
    rate, speed = gpu.peak("float16", tensor=True), gpu.dram_bandwidth
    print(
        f"{gpu.name:6}{int(gpu.year):5}   {rate!s:15} {speed!s:13} {float(rate) / float(speed):14.0f} "
        f"{float(gpu.dram_bytes) / 1e9:15.0f} GB"
    )
b200 = hardware.find("B200")
rates = {kind: float(b200.peak(kind, tensor=True)) for kind in ("float16", "float8", "float4")}
print("\nB200:", ", ".join(f"{kind} {rate / 8e12:,.0f} FLOP a byte" for kind, rate in rates.items()))


# %%
def growth(of):
    """(year, ratio to the first) for the line of data-centre GPUs."""
    return [(int(gpu.year), of(gpu) / of(line[0])) for gpu in line]


gpulab.plot.lines(
    {
        "float16, dense": growth(lambda gpu: float(gpu.peak("float16", tensor=True))),
        "DRAM bandwidth": growth(lambda gpu: float(gpu.dram_bandwidth)),
        "DRAM size": growth(lambda gpu: float(gpu.dram_bytes)),
        "float32, no tensor cores": growth(lambda gpu: float(gpu.peak())),
    },
    "year",
    "times a V100",
    "Matrix arithmetic grew twice as fast as the bandwidth that feeds it, and ordinary arithmetic half as fast.",
    log_y=True,
)

# %% [markdown]
# **Why.** On a B200, a kernel waits for memory if it does fewer than 2,250 TFLOP/s ÷ 8 TB/s = 281 FLOP for each
# byte. On a V100, this **ridge** was at 125.3 ÷ 0.9 = 139. With each shorter format, it moves further up. Most of
# the following trends are therefore about memory:
#
# - **HBM4** (JEDEC, April 2025) has 2,048 data lines for each stack. At 8 Gbit/s for each line and 8 bits a byte,
#   that is 2,048 · 8 ÷ 8 = 2,048 GB/s. HBM3 had 1,024 lines at 6.4 Gbit/s. The GPUs of 2026 use HBM4.
# - **Racks that act as one GPU**: NVLink domains of 72 GPUs (GB200 NVL72, 2024). UALink 1.0 and Ultra Ethernet 1.0
#   (2025) are the open counterparts. **Optics** move into the package of the switch (NVIDIA's Quantum-X Photonics,
#   announced in March 2025).
# - **CXL** (version 4.0: November 2025) lets hosts share DRAM over the wires of PCIe. It adds capacity, with the
#   bandwidth and latency of a link.
# - **Computing near memory** (Samsung's HBM-PIM, 2021; SK hynix's AiM) puts arithmetic units beside the DRAM banks,
#   for products of a matrix and a vector. It is not yet sold in large numbers.
# - **SRAM instead of DRAM**: the wafer by Cerebras (WSE-3, 2024) has 44 GB of it.

# %% [markdown]
# - **Persistent memory** lost its main product when Intel ended Optane in July 2022. What remains is fast flash
#   memory.
# - **Quantum computers** have no known advantage for products of large dense matrices, because loading the data
#   would take as long as multiplying them. They do not replace GPUs, but need GPUs to decode their errors.
#
# Ask of each of these: is it *announced*, *shipped*, or *measured by somebody else*?
#
# ## 2 · What an operation costs
#
# **Predict.** How many times as much energy does a V100 need as a B200 for one dense float16 operation at the peak
# rate?

# %%
gpulab.predict("landscape.picojoule", ...)

# %% jupyter={"source_hidden": true}
chips = [hardware.find(name) for name in ("V100", "A100", "H100", "B200")]
gpulab.plot.bars(
    {
        f"{gpu.name} {kind}": round(1e12 * float(gpu.tdp) / float(gpu.peak(kind, tensor=True)), 2)
        for gpu in chips
        for kind in ("float16", "float8", "float4")
        if kind in gpu.tensor_fma
    },
    "pJ per operation at the peak (highest power ÷ dense rate)",
    caption="An operation takes less energy in each generation, and half as much each time its bits are halved.",
)

# %% [markdown]
# Reading costs more energy than computing. In a 45 nm process, a float32 product took 3.7 pJ, and reading 32 bits
# from DRAM took 640 pJ (M. Horowitz, 2014). HBM2 takes about 4 pJ a *bit* (M. O'Connor et al., 2017), which is about
# 30 pJ a byte. A B200 takes 0.44 pJ for each operation (figure above). If it does 281 operations on that byte, they
# take 281 · 0.44 = 124 pJ, and reading takes a quarter of that. If it does only one operation, reading takes
# 30/0.44, about 70 times as much.
#
# The clock is the other lever. **DVFS**, dynamic voltage and frequency scaling, lowers clock and voltage together,
# so the power falls faster than the clock. The curve below is a model. It assumes 100 W that are always drawn, 600
# W of switching that are proportional to f · V², and a voltage V that rises from 0.65 to 1 with the clock f.

# %%


def energy(clock, bound_by_memory):
    """Energy of a fixed piece of work, divided by that at the highest clock; modelled."""
    volts = 0.65 + 0.35 * clock
    watts = 100 + 600 * clock * volts**2
    seconds = 1 if bound_by_memory else 1 / clock
    return watts * seconds / 700


clocks = [c / 100 for c in range(30, 101, 2)]
least = min(clocks, key=lambda c: energy(c, False))
print(
    f"computing: least energy at {least:.2f} of the clock, {100 * (1 - energy(least, False)):.0f} % saved, {1 / least:.1f} × the time"
)
gpulab.plot.lines(
    {
        "work that computes": [(c, energy(c, False)) for c in clocks],
        "work that waits for memory": [(c, energy(c, True)) for c in clocks],
    },
    "clock, 1 is the highest",
    "energy of the same work",
    "Work that computes needs the least energy near half the clock. Work that waits for memory needs less with every step down.",
)

# %% [markdown]
# **Predict.** Training Llama 3.1 405B took 30.84 million GPU hours on H100s with at most 700 W (model card, 2024).
# What is the largest amount of energy that the GPUs can have used?

# %%
gpulab.predict("landscape.training", ...)

# %%
hours, kilowatts, tonnes = 30.84e6, float(hardware.find("H100").tdp) / 1000, 8930
print(
    f"{hours * kilowatts / 1e6:.1f} GWh; with the {tonnes:,} t of CO₂ on its card: {1e6 * tonnes / hours / kilowatts:.0f} g per kWh,"
)
print(
    f"including cooling and everything else. In a place with 30 g per kWh it would be {hours * kilowatts * 30 / 1e6:,.0f} t."
)

# %% [markdown]
# **Green AI** (R. Schwartz et al., 2020) demands that papers report efficiency beside accuracy. Measures that save
# energy are, in this order: use a smaller model that is good enough; do not compute anything twice (caches); use
# fewer bits; fill the batch; and run where and when the power is clean. Energy is power × time, so its unit is MWh,
# not MW.
#
# ## 3 · Where software goes
#
# | direction | examples |
# |---|---|
# | **compilers of tiles** | Triton showed in 2019 that programs can be written for a block instead of a thread. NVIDIA followed with CUDA Tile and cuTile Python (CUDA 13.1, December 2025); JAX has Pallas |
# | **MLIR** (C. Lattner et al., 2021) | a kit for intermediate languages, on which all of these are built, as are XLA and Mojo |
# | **graphs from Python** | `torch.compile` (2023) traces bytecode; **JAX** traces functions of arrays, so `jit`, `grad`, `vmap` and sharding can be combined. TensorFlow's `tf.function` and XLA came first (lab 08, section 5); Keras 3 (2023) runs on all three |
# | **automatic tuning** | `triton.autotune` tries a list; TVM's Ansor (2020) searches. Language models write kernels: in KernelBench (A. Ouyang et al., 2025) the best models of that time matched PyTorch in fewer than 20 % of the tasks |
# | **continuous batching** | the standard in serving since Orca (G.-I. Yu et al., 2022; lab 20) |
#
# In 2025, one record in writing kernels was withdrawn because the kernel had exploited a hole in the *benchmark*
# (Sakana AI's own correction, February 2025). Writing checks that cannot be deceived is the hard part, in this
# course as well.

# %% [markdown]
# ### A slowdown among a thousand commits
#
# A kernel that is fast today may be slow after someone's commit. **Regression tracking** runs a benchmark on each
# commit. When a slowdown is noticed late, you **bisect**: build the commit in the middle, and continue with the
# half that contains the change.
#
# **Predict.** How many builds does it take at most for 1,000 commits?

# %%
gpulab.predict("landscape.bisect", ...)


# %%
def bisect(slow_from, measure, commits=1000):
    """The first slow commit that a bisection finds, and the number of builds."""
    good, bad, builds = 0, commits - 1, 0
    while bad - good > 1:
        middle, builds = (good + bad) // 2, builds + 1
        if measure(middle >= slow_from):
            bad = middle
        else:
            good = middle
    return bad, builds


def found(repeats, trials=300):
    """% of bisections that find a slowdown of 5 %. Each build is timed `repeats` times, with noise of some percent."""
    draws = np.random.default_rng(0)

    def slow(really):
        times = (1.05 if really else 1.0) * (1 + 0.05 * np.abs(draws.standard_normal(repeats)))
        return np.median(times) > 1.025 * (1 + 0.05 * 0.674)

    places = draws.integers(1, 999, trials)
    return 100 * float(np.mean([bisect(place, slow)[0] == place for place in places]))


shown = {f"median of {n}" if n > 1 else "one time": found(n) for n in (1, 3, 9, 25)}
shown["a count"] = 100 * float(np.mean([bisect(p, lambda really: really)[0] == p for p in range(1, 999, 7)]))
gpulab.plot.bars(
    {name: round(share) for name, share in shown.items()},
    "% of bisections that end at the right commit",
    caption="One wrong answer of ten leads a bisection to the wrong commit. Noisy times must be repeated; counts need one run.",
)

# %% [markdown]
# **Why.** The bisection finds the right commit only if all ten answers are right. Counted bytes and instructions are
# exact, so one run of each commit is enough. A measured time needs repetitions, a quiet machine, and pairs of runs
# in alternation (lab 08). Most projects do both: counts on every commit, and times at night.
#
# ## 4 · What became of DeepSpeed's ideas
#
# DeepSpeed (Microsoft, 2020; now a project of the Linux Foundation) tried out many ideas in public. Lab 16 lists
# them with their claims. This is what had become of them by 2026:
#
# | idea | year | what became of it |
# |---|---|---|
# | ZeRO | 2020 | used everywhere: PyTorch's FSDP2 is ZeRO-3 with DTensors (lab 16) |
# | 3-D parallelism | 2020 | standard in Megatron Core and torchtitan, with more dimensions (lab 17) |
# | LAMB, an optimizer for very large batches | 2019 | batches remain as large as the gradient noise allows; AdamW stayed, and Muon (2024) is the newcomer |
# | progressive layer dropping (PLD) | 2020 | hardly used: it was shown on BERT, where skipping layers saved about a quarter of the time of a sample (M. Zhang, Y. He, 2020) |
# | 1-bit Adam, 0/1 Adam | 2021, 2022 | used on slow networks; the idea of keeping the error lives on in federated learning |
# | sparse attention kernels | 2020 | exact attention became fast (lab 12); sparse attention came back in blocks (2025) |
# | ZeRO-Offload, ZeRO-Infinity | 2021 | used where memory is short, as in fine-tuning on one node |
# | inference kernels, MII | 2022 | replaced by vLLM, SGLang and TensorRT-LLM (lab 19) |
# | DeepSpeed-Chat | 2023 | reinforcement learning from human feedback moved to specialised libraries (TRL, OpenRLHF, verl) |
# | Ulysses | 2023 | one of two ways to divide long sequences (lab 17), in many frameworks |
#
# **Predict.** A gradient is sent with one bit a number instead of float32. By what factor does that reduce the
# bytes, if the scales are not counted?

# %%
gpulab.predict("landscape.one_bit", ...)


# %% [markdown]
# The one bit is a sign: the vector that is sent is sign(g) · mean |g|. This works only if each rank **keeps the
# error**, which is the difference between what it wanted to send and what it sent, and adds it to the next gradient.
# The next cell minimises a quadratic function of 200 variables by gradient descent with noisy gradients:


# %%
def descend(how, steps=300, rate=0.05):
    """Losses after 20 to 300 steps; `how` is "all", "bits" or "bits, errors kept"."""
    draws = np.random.default_rng(0)
    curvature, x, kept = np.logspace(0, -2, 200), draws.standard_normal(200), np.zeros(200)
    losses = []
    for _ in range(steps):
        losses.append(float((curvature * x**2).sum() / 2))
        gradient = curvature * x + 0.3 * draws.standard_normal(200)
        wanted = gradient + kept
        sent = gradient if how == "all" else np.sign(wanted) * np.abs(wanted).mean()
        kept = wanted - sent if how == "bits, errors kept" else 0 * kept
        x = x - rate * sent
    return list(enumerate(losses))[20:]


gpulab.plot.lines(
    {how: descend(how) for how in ("bits", "bits, errors kept", "all")},
    "step",
    "loss",
    "If errors are kept, the bits follow the full gradient. If not, they need half as many steps again.",
    log_y=True,
)

# %% [markdown]
# **Why.** If the error is kept, no part of the gradient is lost. It only arrives later. Two wrong claims that you
# will meet: *1-bit Adam saves up to 26 times* (it is 5 times, and 26 belongs to 0/1 Adam), and *it helps within a
# node* (it helps between nodes, because NVLink is fast enough).
#
# ## 5 · Beyond text
#
# | application | example | what its GPUs do |
# |---|---|---|
# | images, video | diffusion transformers (W. Peebles, S. Xie, 2023) | attention without a causal mask, many steps: compute-bound |
# | several kinds of input | models that read images and sound as tokens | long prompts: prefill (lab 19) |
# | proteins | AlphaFold 2 (2021), 3 (2024) | attention over pairs: memory grows with the square of the length |
# | weather | GraphCast (2023), GenCast (2024) | graphs: gathers and scatters; minutes instead of hours of simulation |
# | simulation | molecules and fluids, in float64 and float32 | stencils, neighbour lists, FFTs: memory-bound (labs 04, 05) |
# | robots | vision, language and action in one model | batches of 1, deadlines (lab 21) |
# | data that must not leave its place | federated learning | small models, little data sent upstream (lab 21) |
#
# Ask of each application what you asked of every kernel: how many bytes does it move, how many operations does it
# do, and how often does it use each byte? GPUs for language models neglect float64: the tensor cores of a B200 do
# less of it than those of an H100 (lab 02), which matters for simulations.
#
# ![Applications by what their GPUs wait for: images and video for arithmetic; proteins, weather and simulation for memory; robots for a deadline at batch 1.](drawings/beyond_text.svg)
#
# ## 6 · What to read
#
# **First**, in this order, one a day:
#
# 1. S. Williams, A. Waterman, D. Patterson, "Roofline", CACM, 2009.
# 2. NVIDIA, "CUDA Programming Guide". https://docs.nvidia.com/cuda/cuda-programming-guide/
# 3. S. Boehm, "How to Optimize a CUDA Matmul Kernel for cuBLAS-like Performance", 2022. https://siboehm.com/articles/22/CUDA-MMM
# 4. H. He, "Making Deep Learning Go Brrrr From First Principles", 2022. https://horace.io/brrr_intro.html
# 5. T. Dao et al., "FlashAttention", NeurIPS, 2022; T. Dao, "FlashAttention-2", 2023. https://arxiv.org/abs/2307.08691
# 6. P. Tillet, H. T. Kung, D. Cox, "Triton", MAPL, 2019.
#
# **Scale**
#
# 7. M. Shoeybi et al., "Megatron-LM", 2019. https://arxiv.org/abs/1909.08053
# 8. S. Rajbhandari et al., "ZeRO", SC, 2020. https://arxiv.org/abs/1910.02054
# 9. A. Grattafiori et al., "The Llama 3 Herd of Models", 2024, section 3.3. https://arxiv.org/abs/2407.21783
# 10. DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section 3. https://arxiv.org/abs/2412.19437
# 11. Hugging Face, "The Ultra-Scale Playbook", 2025. https://huggingface.co/spaces/nanotron/ultrascale-playbook

# %% [markdown]
# **Inference and formats**
#
# 12. W. Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention", SOSP, 2023.
#     https://arxiv.org/abs/2309.06180
# 13. Y. Leviathan, M. Kalman, Y. Matias, "Fast Inference from Transformers via Speculative Decoding", ICML, 2023.
#     https://arxiv.org/abs/2211.17192
# 14. OCP, "Microscaling Formats (MX) Specification", version 1.0, 2023.
# 15. J. Lin et al., "AWQ", MLSys, 2024. https://arxiv.org/abs/2306.00978
#
# **Code** worth reading like a book: NVIDIA/cutlass, Dao-AILab/flash-attention, triton-lang/triton,
# pytorch/torchtitan, NVIDIA/Megatron-LM, vllm-project/vllm, ggml-org/llama.cpp, tinygrad/tinygrad and
# karpathy/llm.c, all on github.com.
#
# A warning about lists like this one: check that a link says what the list claims, that a "paper" exists, and how
# old it is.
#
# ## 7 · What to take away, and what next
#
# 1. Count before you time. Bytes come first, then operations, then instructions.
# 2. Most kernels wait for memory, so fusing gains more than tuning.
# 3. The roofline tells you which limit applies, and the profiler tells you which line causes it.
# 4. Get exact results first. A kernel that is fast and wrong is a random number generator.
# 5. Fewer bits are the cheapest speed-up, provided that you measure their error.
# 6. Communication can be calculated. Work out the bytes of a plan before you start a thousand GPUs.
# 7. Failures occur at a certain rate, so plan for them.
# 8. Latency and throughput conflict, and no queue resolves that.
# 9. Every figure has a unit, a data type, a density, a direction and a date.
# 10. If you cannot measure something, call it modelled.
#
# ![How all labs work: count the bytes and operations, predict from them, measure, explain the difference, and change one thing.](drawings/way_of_work.svg)

# %% [markdown]
# | if you want to | do next |
# |---|---|
# | write kernels | project 22 A; then make one operator of a library you use faster, with a test, as a pull request |
# | train models | project 22 B; then run torchtitan on two GPUs for an evening, and study its trace |
# | serve models | project 22 C; then run vLLM with your own load, and explain its metrics |
# | build small devices | the Beyond section of lab 21; then buy a board, and find a case in which this course's model is off by more than 20 % |
# | learn more | read one paper of the list a week, and reproduce its main figure |
#
# If you find something wrong here, such as a date, a number or a claim, please tell us (CONTRIBUTING.md).
#
# ## Recap
#
# <details><summary>1. Which kernels do not get 18 times faster from the V100 to the B200?</summary>
#
# Those that wait for memory become at most 9 times as fast. Those that compute in float32 without tensor cores
# become about 5 times as fast.
# </details>
#
# <details><summary>2. Does DVFS save energy?</summary>
#
# For work that waits for memory, each lower clock saves energy. For work that is limited by arithmetic, this holds
# only down to a certain clock. Below it, the work takes so long that the power that is always drawn costs more than
# is saved.
# </details>
#
# <details><summary>3. Which of these can you buy in 2026: HBM4, persistent memory, a quantum speed-up for training?</summary>
#
# Only the first.
# </details>
#
# <details><summary>4. Why did vLLM overtake older inference kernels?</summary>
#
# Because of memory: a paged cache and continuous batching (labs 19 and 20), not faster products.
# </details>
#
# <details><summary>5. A kernel written by a language model is 100 times as fast as PyTorch. What do you check first?</summary>
#
# The check itself: try other sizes and contents, see whether the outputs were written at all, and find out what was
# timed.
# </details>
#
# ### Claims you will meet, and what is right
#
# - *Hopper, HBM3 and Grace Hopper are the future.* They shipped in 2022 and 2023.
# - *Training a model took 73 MW.* MWh is meant. A power plant has megawatts, and a training run takes megawatt hours.
# - *Attention needs quadratic memory.* It needs quadratically many operations. Since FlashAttention, its memory is
#   linear (lab 12).
# - *GPU utilisation is 100 %, so the GPU is busy.* It only means that a kernel was running (lab 08).
# - *Domino is communication-free.* It hides the communication of tensor parallelism behind computing. The bytes are
#   still sent.
#
# ### References
#
# 1. JEDEC, "High Bandwidth Memory (HBM4) DRAM", JESD270-4, 2025. UALink 200G 1.0, 2025. CXL Consortium, CXL 4.0,
#    press release of 18 November 2025. Intel, results of the second quarter of 2022 (the end of Optane).
# 2. M. Horowitz, "Computing's Energy Problem (and what we can do about it)", ISSCC, 2014.
# 3. M. O'Connor et al., "Fine-Grained DRAM", MICRO, 2017.
# 4. R. Schwartz et al., "Green AI", CACM, 2020. https://arxiv.org/abs/1907.10597
# 5. Meta, "Llama 3.1, model card", 2024. https://huggingface.co/meta-llama/Llama-3.1-405B
# 6. C. Lattner et al., "MLIR: Scaling Compiler Infrastructure for Domain Specific Computation", CGO, 2021.
# 7. A. Ouyang et al., "KernelBench: Can LLMs Write Efficient GPU Kernels?", 2025. https://arxiv.org/abs/2502.10517
# 8. NVIDIA, cuTile Python, release notes (1.0.0: 2 December 2025). https://docs.nvidia.com/cuda/cutile-python/
# 9. Sakana AI, "The AI CUDA Engineer", 2025, with its correction. https://sakana.ai/ai-cuda-engineer/
# 10. H. Tang et al., "1-bit Adam", ICML, 2021. https://arxiv.org/abs/2102.02888; Y. Lu et al., "0/1 Adam", ICLR, 2023.

# %%
gpulab.recap("22")
