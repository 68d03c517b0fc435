# ---
# jupyter:
#   gpulab:
#     lab: "22"
#     hours: 1.5
#     topics: [C10.10, C17.4, C20.5, C24.1, C24.2, C24.3, C24.7, C24.8]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 22 · The landscape, November 2026
#
# **About an hour and a half.** Nothing here is graded. You have met GPUs as they are; this notebook says where they, their software
# and their uses are going, and what to read. Every claim is dated, because this notebook ages faster than the others.
#
# When you are through, you can
#
# 1. say which trend helps which kernel, and which does not;
# 2. tell an announcement from a product and from a measurement;
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
# **Predict.** From a V100 (2017) to a B200 (2024) dense float16 rates grew 18 times. How many times did the bandwidth of
# DRAM grow?

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
    """(year, times the first) along the line of data-centre GPUs."""
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
    "Arithmetic for matrices grew twice as fast as what feeds it, ordinary arithmetic half as fast.",
    log_y=True,
)

# %% [markdown]
# **Why.** A kernel below 281 FLOP a byte waits for memory on a B200, one below 139 did on a V100. With each shorter format the
# line moves further right. So all of this is about memory:
#
# - **HBM4** (JEDEC, April 2025): 2,048 bits a stack at 8 Gbit/s are 2 TB/s; HBM3 had 1,024 at 6.4. The GPUs of 2026 carry it.
# - **Racks as one GPU**: NVLink domains of 72 GPUs (GB200 NVL72, 2024); UALink 1.0 and Ultra Ethernet 1.0 (2025) are the
#   open counterparts. **Optics** move to the switch's package (NVIDIA's Quantum-X Photonics, announced March 2025).
# - **CXL** (4.0: November 2025) lets hosts share DRAM over PCIe's wires: capacity, at a link's speed and latency.
# - **Computing near memory** (Samsung's HBM-PIM, 2021; SK hynix' AiM): adders beside the DRAM banks, for products of a matrix and
#   a vector. Nothing that is sold in numbers yet. **SRAM instead of DRAM**: Cerebras' wafer (WSE-3, 2024) has 44 GB of it.

# %% [markdown]
# - **Persistent memory** lost its product when Intel ended Optane in July 2022; what is left is fast flash.
# - **Quantum computers** have no known advantage for products of large dense matrices: reading the data in would take as
#   long as multiplying them. They are no successor of GPUs; GPUs decode their errors.
#
# A habit for all of these: is it *announced*, *shipped*, or *measured by somebody else*?
#
# ## 2 · What an operation costs
#
# **Predict.** Energy of one dense float16 operation at the peak: V100 over B200?

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
    caption="An operation takes less with every generation, and half with every halving of its bits.",
)

# %% [markdown]
# Reading is dearer than computing: in 45 nm a float32 product took 3.7 pJ and 32 bits from DRAM 640 (M. Horowitz, 2014); HBM2 takes
# about 4 pJ a *bit* (M. O'Connor et al., 2017), some 30 a byte. Beside 281 operations of 0.44 pJ on that byte it is a quarter;
# beside one it is 70 times as much.
#
# Clocks are the other lever. **DVFS**, dynamic voltage and frequency scaling, lowers both; power falls faster than the clock.
# The curve below is a model: 100 W that never sleep, 600 W of switching that go with f · V², and V from 0.65 to 1.

# %%


def energy(clock, bound_by_memory):
    """Joules of a fixed piece of work, over those at the highest clock; modelled."""
    volts = 0.65 + 0.35 * clock
    watts = 100 + 600 * clock * volts**2
    seconds = 1 if bound_by_memory else 1 / clock
    return watts * seconds / 700


clocks = [c / 100 for c in range(30, 101, 2)]
least = min(clocks, key=lambda c: energy(c, False))
print(
    f"computing: least at {least:.2f} of the clock, {100 * (1 - energy(least, False)):.0f} % saved, {1 / least:.1f} × the time"
)
gpulab.plot.lines(
    {
        "work that computes": [(c, energy(c, False)) for c in clocks],
        "work that waits for memory": [(c, energy(c, True)) for c in clocks],
    },
    "clock, 1 is the highest",
    "energy of the same work",
    "What computes is cheapest at half the clock; what waits for memory gets cheaper with every step down.",
)

# %% [markdown]
# **Predict.** Training Llama 3.1 405B took 30.84 million GPU hours on H100s of at most 700 W (model card, 2024). Energy of the
# GPUs, at most?

# %%
gpulab.predict("landscape.training", ...)

# %%
hours, kilowatts, tonnes = 30.84e6, float(hardware.find("H100").tdp) / 1000, 8930
print(
    f"{hours * kilowatts / 1e6:.1f} GWh; with the {tonnes:,} t of CO₂ on its card: {1e6 * tonnes / hours / kilowatts:.0f} g per kWh,"
)
print(
    f"cooling and all else included. In a place with 30 g per kWh it would be {hours * kilowatts * 30 / 1e6:,.0f} t."
)

# %% [markdown]
# **Green AI** (R. Schwartz et al., 2020) asks for efficiency as a result beside accuracy. What helps, in order: a smaller
# model that does the job; not computing twice (caches); fewer bits; a full batch; where and when the power is clean. Energy
# is power × time: MWh, never MW.
#
# ## 3 · Where software goes
#
# | where to | what there is |
# |---|---|
# | **compilers of tiles** | Triton showed in 2019 that a block, not a thread, is the unit to write in. NVIDIA followed with CUDA Tile and cuTile Python (CUDA 13.1, December 2025); JAX has Pallas |
# | **MLIR** (C. Lattner et al., 2021) | a kit for intermediate languages, on which all of them stand, as do XLA and Mojo |
# | **graphs from Python** | `torch.compile` (2023) traces bytecode; **JAX** traces functions of arrays, so `jit`, `grad`, `vmap` and sharding compose. TensorFlow's `tf.function` and XLA were first (lab 08, section 5); Keras 3 (2023) runs on all three |
# | **tuning by machine** | `triton.autotune` tries a list; TVM's Ansor (2020) searches. Language models write kernels: on KernelBench (A. Ouyang et al., 2025) the best of that time were as fast as PyTorch in fewer than 20 % of the tasks |
# | **batching while running** | the standard in serving since Orca (G.-I. Yu et al., 2022; lab 20) |
#
# One record of 2025 in writing kernels fell because its kernel had found a hole in the *benchmark* (Sakana AI's own
# correction, February 2025). Checks like this course's are the hard part.

# %% [markdown]
# ### A slowdown among a thousand commits
#
# What is fast today is slow after somebody's commit. **Regression tracking** runs a benchmark on each commit, or
# **bisects**: build the middle one, go on in the half with the change.
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
    """% of bisections that find a slowdown of 5 %, each build timed some times; other work adds up to some percent."""
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
    caption="One wrong answer of ten sends a bisection astray: noisy times must be repeated, counts need one run.",
)

# %% [markdown]
# **Why.** Ten answers must *all* be right. Counted bytes and instructions are exact, so one run a commit is enough; a time needs
# repeats, a quiet machine, and pairs in turn (lab 08). Most projects do both: counts in every commit, times at night.
#
# ## 4 · What became of DeepSpeed's ideas
#
# DeepSpeed (Microsoft, 2020; now of the Linux Foundation) tried many things in public. Lab 16 lists them with their claims; here is
# what came of them, as of 2026.
#
# | idea | year | what came of it |
# |---|---|---|
# | ZeRO | 2020 | everywhere: PyTorch's FSDP2 is ZeRO-3 with DTensors (lab 16) |
# | 3-D parallelism | 2020 | standard, in Megatron Core and torchtitan, with more dimensions (lab 17) |
# | LAMB, for very large batches | 2019 | batches stay at what noise allows; AdamW stayed, Muon (2024) is the newcomer |
# | progressive layer dropping (PLD) | 2020 | hardly used: large models see each text once, regularising saves little |
# | 1-bit Adam, 0/1 Adam | 2021, 2022 | for slow networks; the errors that are kept live on in federated learning |
# | sparse attention kernels | 2020 | exact attention became fast (lab 12); sparse came back as blocks (2025) |
# | ZeRO-Offload, ZeRO-Infinity | 2021 | where memory is short: fine-tuning on one node |
# | inference kernels, MII | 2022 | vLLM, SGLang and TensorRT-LLM took the field (lab 19) |
# | DeepSpeed-Chat | 2023 | RLHF moved to libraries of its own (TRL, OpenRLHF, verl) |
# | Ulysses | 2023 | one of two ways to share long sequences (lab 17), in many frameworks |
#
# **Predict.** A gradient of one bit a number instead of float32: how many times fewer bytes, without scales?

# %%
gpulab.predict("landscape.one_bit", ...)


# %% [markdown]
# One bit is a sign: the vector sent is sign(g) · mean |g|. What makes it work is to **keep the error**, what the bits did not
# say, and to add it to the next gradient. Descent on a bowl of 200 dimensions with noisy gradients:


# %%
def descend(how, steps=300, rate=0.05):
    """Losses of 20 to 300 steps; `how` is all, bits, or bits with errors kept."""
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
    "With errors kept, bits follow the full gradient; without, they take half as long again.",
    log_y=True,
)

# %% [markdown]
# **Why.** With the error kept nothing is lost, only late. Errata you will meet: *1-bit Adam saves up to 26 times* (5 times; 26 is 0/1
# Adam's), and *within a node* (between nodes: NVLink is fast enough).
#
# ## 5 · Beyond text
#
# | application | example | what its GPUs do |
# |---|---|---|
# | images, video | diffusion transformers (W. Peebles, S. Xie, 2023) | attention without a causal mask, many steps: compute bound |
# | several senses | models that read images and sound as tokens | long prompts: prefill (lab 19) |
# | proteins | AlphaFold 2 (2021), 3 (2024) | attention over pairs: memory grows with the square of the length |
# | weather | GraphCast (2023), GenCast (2024) | graphs: gathers and scatters; minutes where a simulation took hours |
# | simulation | molecules, fluids, in float64 and float32 | stencils, neighbour lists, FFTs: memory bound (labs 04, 05) |
# | robots | vision, language and action in one model | batch 1, deadlines (lab 21) |
# | where data must stay | federated learning | small models, little upstream (lab 21) |
#
# Ask of each new one what you asked of every kernel: how many bytes, how many operations, how often is a byte used? GPUs for
# language models give up float64: a B200's tensor cores do less of it than an H100's (lab 02). Simulations care.
#
# ## 6 · What to read
#
# **First**, in this order, a day each:
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
# **Code**, to be read like books: NVIDIA/cutlass, Dao-AILab/flash-attention, triton-lang/triton, pytorch/torchtitan,
# NVIDIA/Megatron-LM, vllm-project/vllm, ggml-org/llama.cpp, tinygrad/tinygrad, karpathy/llm.c; all on github.com.
#
# A warning about lists like this one: check that a link holds what its text says, that a "paper" exists, and of when it is.
#
# ## 7 · What to take away, and what next
#
# 1. Count before you time. Bytes first, then operations, then instructions.
# 2. Most kernels wait for memory; fusing beats tuning.
# 3. The roofline says which wall; the profiler says which line.
# 4. Exact results first: a fast wrong kernel is a random number generator.
# 5. Bits are the cheapest speed-up, if their error is measured.
# 6. Communication is arithmetic: work out the bytes of a plan before you start a thousand GPUs.
# 7. Failures are a rate. Plan for them.
# 8. Latency and throughput pull apart; a queue hides neither.
# 9. Every figure has a unit, a dtype, a density, a direction and a date.
# 10. What you cannot measure, call modelled.

# %% [markdown]
# | if you want to | do next |
# |---|---|
# | write kernels | project 22 A; then one operator of a library you use, faster, with a test, as a pull request |
# | train models | the project on a training plan; then a run of torchtitan on two GPUs for an evening, and its trace |
# | serve models | the project on serving; then vLLM with your own load, and its metrics explained |
# | build small things | lab 21's Beyond; then a real board, and where the model of this course is off by more than 20 % |
# | know more | one paper of the list a week, and its main figure made again |
#
# And tell us what is wrong here: dates, numbers, claims (CONTRIBUTING.md).
#
# ## Recap
#
# <details><summary>1. Which kernels do not get faster from V100 to B200 by 18 times?</summary>
#
# Those that wait for memory: 9 times at best; and those in float32 without tensor cores: 5 times.
# </details>
#
# <details><summary>2. Does DVFS save energy?</summary>
#
# For work that waits for memory with every step; for work that computes down to some clock, below which what never sleeps
# costs more.
# </details>
#
# <details><summary>3. Which of these can you buy in 2026: HBM4, persistent memory, quantum speed-up for training?</summary>
#
# Only the first.
# </details>
#
# <details><summary>4. Why did vLLM overtake older inference kernels?</summary>
#
# Memory: pages for the cache and batching while running (labs 19 and 20), not a faster product.
# </details>
#
# <details><summary>5. A language model's kernel is 100 times faster than PyTorch. What do you check first?</summary>
#
# The check: other sizes and contents, whether outputs were written at all, and what was timed.
# </details>
#
# ### Claims you will meet, and what is right
#
# - *Hopper, HBM3 and Grace Hopper are the future.* They shipped in 2022 and 2023.
# - *A model's training took 73 MW.* MWh. A plant has megawatts; a training run has megawatt hours.
# - *Attention needs quadratic memory.* Quadratic operations; memory is linear since FlashAttention (lab 12).
# - *GPU utilisation is 100 %, so it is busy.* A kernel ran; nothing more (lab 08).
# - *Domino is communication-free.* It hides tensor-parallel communication behind computing; the bytes are sent.
#
# ### References
#
# 1. JEDEC, "High Bandwidth Memory (HBM4) DRAM", JESD270-4, 2025. UALink 200G 1.0, 2025. CXL Consortium, CXL 4.0, press
#    release of 18 November 2025. Intel, results of the second quarter of 2022 (the end of Optane).
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
