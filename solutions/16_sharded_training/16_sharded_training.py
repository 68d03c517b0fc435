# ---
# jupyter:
#   gpulab:
#     lab: "16"
#     hours: 5
#     topics: [C17.1, C17.2, C17.3, C17.4, C17.5, C17.6, C17.7, C17.8, C17.9, C17.10, C23.2, C23.3]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 16 · Sharded training
#
# **About five hours.** You know labs 10 and 15: mixed precision, collectives, `distributed.run`, `costs`. Section 8 uses
# recomputation (lab 08) and attention's scores (lab 12), the table of recipes LoRA (lab 14). No GPU needed.
#
# In data parallel training every rank keeps the same weights, the same gradients and the same optimizer states. It
# is the same sixteen bytes a parameter on each. Sharded training keeps each of them once, and fetches what it needs.
# You write the steps for real ranks, and their memory and traffic are counted.
#
# When you are through, you can
#
# 1. say where a training run's memory goes, and what each ZeRO stage divides;
# 2. write an optimizer step that keeps 5.5 bytes a parameter instead of 16, at no more traffic;
# 3. use `fully_shard`, and explain each call that it makes;
# 4. plan offload and recomputation within a memory limit;
# 5. read, check and complete a configuration of DeepSpeed, Megatron or NeMo.

# %%
import gc
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

import gpulab
from gpulab import distributed, hardware
from gpulab.distributed import costs
from gpulab.distributed.offload import carry_out
from gpulab.models.known import MODELS

gpulab.start("16")

# %% [markdown]
# ## 1 · Sixteen bytes
#
# ![What four ranks hold: weights, gradients and optimizer state on every rank; with ZeRO-1 a quarter of the optimizer state; with ZeRO-2 a quarter of the gradients too; with ZeRO-3 a quarter of everything.](drawings/zero.svg)
#
# Training with Adam in mixed precision (lab 10) keeps for each parameter
#
# | what | format | bytes |
# |---|---|---|
# | weight | 16 bits | 2 |
# | gradient | 16 bits | 2 |
# | **master weight** | float32 | 4 |
# | first moment | float32 | 4 |
# | second moment | float32 | 4 |
#
# The last three are the **optimizer states**, 12 bytes: six times the 16-bit weights. In pure float32 there is no
# second copy of the weights: 4 + 4 + 8 are 16 as well, and the moments are twice the weights. Activations come on top
# (section 8).
#
# **Predict.** GPT-3 has 175 billion parameters. How many GB are its weights, gradients and optimizer states together?

# %%
gpulab.predict("shard.gpt3", ...)

# %% [markdown]
# The cell below trains a step of a small model and counts what is alive: all tensors that Python knows, each
# storage once. `gc.freeze()` leaves out what was there before.

# %%
WIDTH, LAYERS = 128, 8
PARAMETERS = LAYERS * WIDTH**2


def alive():
    """Bytes of all tensors since `gc.freeze()`, gradients included, storages that are shared counted once."""
    found = {}
    for thing in gc.get_objects():
        if issubclass(type(thing), torch.Tensor):
            for tensor in (thing, thing.grad if thing.is_leaf else None):
                if tensor is not None:
                    local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
                    storage = local.untyped_storage()
                    found[storage.data_ptr()] = storage.nbytes()
    return sum(found.values())


def layers_of_half():
    return [(torch.randn(WIDTH, WIDTH) / WIDTH**0.5).half().requires_grad_() for _ in range(LAYERS)]


def one_rank():
    gc.freeze()
    layers, said = layers_of_half(), {}
    said["16-bit weights"] = alive() / PARAMETERS
    master = [layer.detach().float() for layer in layers]
    said["+ master weights"] = alive() / PARAMETERS
    moments = [torch.zeros_like(weight) for weight in 2 * master]
    said["+ two moments"] = alive() / PARAMETERS
    x = torch.randn(2, WIDTH).half()
    for layer in layers:
        x = x @ layer
    x.sum().backward()
    del x
    said["+ gradients"] = alive() / PARAMETERS
    return said, len(moments)


((said, _),) = distributed.run(one_rank, 1)
gpulab.plot.bars(said, "bytes a parameter")

# %% [markdown]
# ## 2 · Three stages
#
# On N ranks DDP keeps all of it N times. **ZeRO**, the zero redundancy optimizer (S. Rajbhandari et al., 2019), divides
# in stages. Rank r owns one **shard**, an Nth of the parameters.
#
# - **Stage 1** divides the optimizer states: a rank updates only its shard.
# - **Stage 2** divides the gradients, too: a rank keeps the sum of those that it needs.
# - **Stage 3** divides the weights, too: a layer is gathered when it is computed.
#
# What is not divided stays whole: in stages 1 and 2 every rank has all 16-bit weights.
#
# **Predict.** On 64 ranks: how many times less does a rank keep with stage 2 than with DDP?

# %%
gpulab.predict("shard.seventh", ...)

# %% [markdown]
# **Do.** Write `memory(parameters, ranks, stage)`: bytes that a rank keeps, without activations; stage 0 is DDP.
# `parameters` is a multiple of `ranks`; the answer is a whole number. About 5 lines.


# %% nbgrader={"grade": false, "grade_id": "memory", "locked": false, "schema_version": 3, "solution": true, "task": false}
def memory(parameters, ranks, stage):
    ### BEGIN SOLUTION
    share = parameters // ranks
    states = 12 * (share if stage >= 1 else parameters)
    gradients = 2 * (share if stage >= 2 else parameters)
    weights = 2 * (share if stage >= 3 else parameters)
    return states + gradients + weights
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "memory-check", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
gpulab.check("shard.memory", memory)

# %% [markdown]
# **See.** The example of the ZeRO paper, 7.5 billion parameters, on more and more ranks:

# %%
RANKS = [2**k for k in range(11)]
NAMES = ("DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3")
gpulab.need(memory)

curves = {
    name: [(n, memory(7_500_000_000 // n * n, n, stage) / 1e9) for n in RANKS]
    for stage, name in enumerate(NAMES)
}
for name, curve in curves.items():
    print(f"{name:7} on 64 ranks: {dict(curve)[64]:6.1f} GB")
gpulab.plot.lines(
    curves,
    "ranks",
    "GB a rank",
    "Stages 1 and 2 level off at the weights and gradients that stay whole; stage 3 falls on.",
    limits={"80 GB": 80},
    log_x=True,
    log_y=True,
)

# %% [markdown]
# **Why.** "ZeRO-1 saves 4 ×, ZeRO-2 8 ×" are limits: 16/4 and 16/2 for infinitely many ranks. On 64 it is 3.8 and
# 7.2. Only stage 3 has no limit, and it pays in traffic (section 5).
#
# ## 3 · Cut evenly
#
# Tensors are of very different sizes. Give whole tensors to ranks, and the one with the embedding has most. Cut each
# tensor into N pieces, and small ones become many messages. DeepSpeed and the first FSDP lay all tensors of a group end
# to end and cut the **flat** array; FSDP2 cuts each tensor by rows, because it can then be used by itself.
#
# **Do.** Write `split(sizes, ranks)`. `sizes` says how many numbers each tensor has. Return for each rank a list of
# pieces `[tensor, start, stop]`, numbers `start` to `stop − 1` of a tensor, both counted from 0. Every number is in
# exactly one piece; a piece is never empty, a rank's list may be. **Budget:** the longest share is ⌈total / ranks⌉
# numbers; n tensors make at most n + ranks − 1 pieces. About 10 lines.


# %% nbgrader={"grade": false, "grade_id": "split", "locked": false, "schema_version": 3, "solution": true, "task": false}
def split(sizes, ranks):
    ### BEGIN SOLUTION
    share = -(-sum(sizes) // ranks)
    pieces = [[] for _ in range(ranks)]
    first = 0
    for tensor, size in enumerate(sizes):
        for rank in range(ranks):
            start = max(first, rank * share)
            stop = min(first + size, (rank + 1) * share)
            if start < stop:
                pieces[rank].append([tensor, start - first, stop - first])
        first += size
    return pieces
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "split-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("shard.split", split)

# %%
gpulab.need(split)

tensors = [
    4096 * 64,
    *4 * [64 * 192, 192, 64 * 64, 64, 64 * 256, 256, 256 * 64, 64],
]  # an embedding, four blocks
shares = {f"rank {r}": sum(b - a for _, a, b in share) for r, share in enumerate(split(tensors, 4))}
gpulab.plot.bars({"the embedding alone": tensors[0], **shares}, "numbers")

# %% [markdown]
# **Why.** The rank with the most memory decides what fits, so an even cut is worth a tensor that lies on two ranks.
#
# ## 4 · ZeRO-2: the optimizer in between
#
# A DDP step all-reduces gradients, and each rank updates all weights. Lab 15 showed what a ring all-reduce is: a
# reduce-scatter, after which each rank has the sum of one share, and an all-gather of the shares. ZeRO-2 puts the
# optimizer **in between**:
#
#     reduce-scatter gradients → Adam on the own shard → all-gather 16-bit weights
#
# **Predict.** On four ranks, how many bytes does a rank send in such a step, for each parameter? Collectives are rings.

# %%
gpulab.predict("shard.traffic", ...)

# %% [markdown]
# **Do.** Write `zero2_step(gradient, master, momentum, variance, step)`. `gradient` is this rank's, float16, of all
# parameters. The other tensors are float32 and hold this rank's shard only: rank r has the r-th of equal parts. Change
# them **in place** (`master = …` only names a new tensor, and the caller's stays as it was) and return the new weights
# of all parameters, float16. Adam on the mean gradient g, at step t:
#
#     m ← 0.9 m + 0.1 g         v ← 0.999 v + 0.001 g²
#     master ← master − 0.01 · (m / (1 − 0.9^t)) / (√(v / (1 − 0.999^t)) + 1e-8)
#
# `dist.reduce_scatter(share, list_of_parts)` leaves in `share` the sum of all ranks' r-th parts;
# `dist.all_gather(list_of_parts, share)` fills the parts with all ranks' shares; both want tensors of one format.
# `t.chunk(n)` gives views, so what is gathered into them is in t. **Budget:** the busiest rank sends no more than an
# all-reduce of float16 gradients takes. About 10 lines.


# %% nbgrader={"grade": false, "grade_id": "zero2_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
def zero2_step(gradient, master, momentum, variance, step):
    ### BEGIN SOLUTION
    ranks = dist.get_world_size()
    share = torch.empty(len(master), dtype=gradient.dtype)
    dist.reduce_scatter(share, list(gradient.chunk(ranks)))
    mean = share.float() / ranks
    momentum.mul_(0.9).add_(mean, alpha=0.1)
    variance.mul_(0.999).addcmul_(mean, mean, value=0.001)
    root = (variance / (1 - 0.999**step)).sqrt() + 1e-8
    master.sub_(0.01 * momentum / (1 - 0.9**step) / root)
    weights = torch.empty_like(gradient)
    dist.all_gather(list(weights.chunk(ranks)), master.half())
    return weights
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "zero2_step-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("shard.zero2_step", zero2_step)

# %% [markdown]
# **See.** First: is it the same training? Five steps on four ranks against one rank that gets the mean gradient. The
# gradients are whole numbers, so that sums and means are exact.

# %%
gpulab.need(zero2_step)


def five_steps():
    rank, ranks = dist.get_rank(), dist.get_world_size()
    numbers = torch.Generator().manual_seed(0)
    master = torch.randn(64, generator=numbers).chunk(ranks)[rank].clone()
    momentum, variance = torch.zeros_like(master), torch.zeros_like(master)
    for step in range(1, 6):
        gradients = 4 * torch.randint(-9, 10, (4, 64), generator=numbers)
        mine = gradients[rank] if ranks == 4 else gradients.float().mean(0)
        weights = zero2_step(mine.half(), master, momentum, variance, step)
    return weights


four, one = distributed.run(five_steps, 4), distributed.run(five_steps, 1)
print("the same bits as on one rank:", all(torch.equal(weights, one[0]) for weights in four))

# %% [markdown]
# Then: what does a rank keep? The cell runs backward on four ranks and counts, as in section 1. For stage 2, a **hook**
# on each weight sends its gradient off as soon as it is complete, keeps the shard, and frees the rest.

# %%


def states(stage):
    """Bytes a parameter on this rank between backward and the optimizer's step, and at the worst moment before."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    gc.freeze()
    layers = layers_of_half()
    share = PARAMETERS // ranks if stage >= 1 else PARAMETERS
    adam = [torch.zeros(share) for _ in range(3)]  # master weight, two moments
    shards, seen = [], []

    def reduce(layer):
        seen.append(alive())
        if stage >= 2:
            shard = torch.empty(layer.numel() // ranks, dtype=layer.dtype)
            dist.reduce_scatter(shard, list(layer.grad.flatten().chunk(ranks)))
            shards.append(shard)
            layer.grad = None

    for layer in layers:
        layer.register_post_accumulate_grad_hook(reduce)
    x = torch.randn(2, WIDTH, generator=torch.Generator().manual_seed(rank)).half()
    for layer in layers:
        x = x @ layer
    x.sum().backward()
    del x
    return alive() / PARAMETERS, max(seen) / PARAMETERS, len(adam)


kept = {name: distributed.run(states, 4, stage)[0] for stage, name in enumerate(NAMES[:3])}
for name, (after, worst, _) in kept.items():
    print(f"{name:7} {after:5.2f} B a parameter after backward, {worst:5.2f} at most")
gpulab.plot.bars(
    {name: after for name, (after, _, _) in kept.items()}, "bytes a parameter, measured on 4 ranks"
)

# %% [markdown]
# **Why.** 2 + (2 + 12)/4 = 5.5. The step that you wrote took the whole gradient at once; the hook is what makes it
# ZeRO-2 and not ZeRO-1. Real ones send **buckets**, several layers' gradients in one message: DeepSpeed's
# `reduce_bucket_size` is 5e8 numbers by default. A bucket is alive besides the shards, so larger ones cost memory, and
# smaller ones cost messages.
#
# The check's network counted what was sent: not a byte more than DDP. If all-reduce is replaced by nothing but its two
# halves, ZeRO-2 is free. What it costs is overlap: the all-gather comes after the optimizer, where there is no backward
# to hide it behind.
#
# ## 5 · ZeRO-3: a layer when it is needed
#
# Now weights are cut, too. Before a layer computes, its weights are all-gathered; afterwards they are freed. In
# backward they are gathered again. The gradient is reduce-scattered, and each rank keeps its rows. No more than one
# layer is whole at a time (two, if the next is fetched ahead).
#
# ![ZeRO-3, a layer when it is needed: before a layer runs, its parts are gathered from all ranks; after it has run, all but the own part is dropped. The next layer is gathered while this one runs.](drawings/gather_layer.svg)
#
# **Predict.** Weights and gradients in 16 bits, four ranks: how many bytes a parameter does a rank send in a step?

# %%
gpulab.predict("shard.again", ...)

# %% [markdown]
# **Do.** Write `gather_layers(x, slope, parts)`. The model is h ← tanh(h @ w) for each layer, first h is `x`. `x` is
# this rank's batch (batch × width), `slope` the gradient of its loss with respect to the output. `parts[i]` are this
# rank's rows of layer i (width / ranks × width). Return `[y, *slopes]`: this rank's output, and for each layer this
# rank's rows of the **mean** over ranks of the weight gradients.
#
# With inner = slope · (1 − h²), h a layer's output: the weight's gradient is inputᵀ @ inner, the slope for the layer
# before is inner @ wᵀ. **Budget:** 1.5 times DDP's bytes; each layer is gathered for forward and again for backward
# (the last one may stay), one layer an all-gather. About 20 lines.


# %% nbgrader={"grade": false, "grade_id": "gather_layers", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gather_layers(x, slope, parts):
    ### BEGIN SOLUTION
    ranks = dist.get_world_size()

    def whole(part):
        weights = torch.empty(len(part) * ranks, part.shape[1])
        dist.all_gather(list(weights.chunk(ranks)), part)
        return weights

    states = [x]
    for part in parts:
        weights = whole(part)
        states.append(torch.tanh(states[-1] @ weights))
    slopes = []
    for number in reversed(range(len(parts))):
        if number < len(parts) - 1:
            weights = whole(parts[number])
        inner = slope * (1 - states[number + 1] ** 2)
        mine = torch.empty_like(parts[number])
        dist.reduce_scatter(mine, list((states[number].T @ inner).chunk(ranks)))
        slopes.insert(0, mine / ranks)
        slope = inner @ weights.T
    return [states[-1], *slopes]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "gather_layers-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("shard.gather_layers", gather_layers)

# %% [markdown]
# The check sees messages, not memory. Who gathers a layer again has no need to keep it; whether it was freed in
# between only a count on the rank can say, and section 6 makes one.
#
# **Why.** Half more traffic than DDP buys 16/N bytes. Whether it is hidden depends on the batch: a layer's gather
# takes the same time for one sample as for a thousand, its products do not. So ZeRO-3 wants much work a gather:
# accumulating gradients over micro-batches does not help, because each of them gathers again.
#
# ## 6 · FSDP2
#
# PyTorch's own ZeRO-3 is **FSDP**, fully sharded data parallel. Its history in one line: FairScale had it first
# (2021; its README now calls that version one for historical references), `FullyShardedDataParallel` brought it into
# PyTorch with flat arrays, and **FSDP2**, `fully_shard`, replaces it: each parameter is a **DTensor**, a tensor that
# knows on which mesh of ranks it lies and along which axis it is cut.
#
# ![FSDP2 shards each parameter by rows: every rank has some rows of every matrix, and the parameter still knows its whole shape.](drawings/dtensor.svg)
#
# **Predict.** Model and Adam in float32, four ranks. How many bytes a parameter are alive on a rank after backward?

# %%
gpulab.predict("shard.fsdp", ...)

# %%
WIDE = 256


def with_fsdp(reshard):
    """A step with fully_shard: what is alive after each layer's forward, and between backward and optimizer."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    gc.freeze()
    layers = [torch.nn.Linear(WIDE, WIDE, bias=False) for _ in range(LAYERS)]
    model = torch.nn.Sequential(*layers)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for module in (*layers, model):  # layers first: each is a group that is gathered at once
        fully_shard(module, mesh=mesh, reshard_after_forward=reshard)
    adam = torch.optim.Adam(model.parameters())
    seen, x = [], torch.randn(2, WIDE)
    for layer in layers:
        layer.register_forward_hook(lambda *_: seen.append(alive()))
    for _ in range(2):  # Adam makes its moments in the first step
        adam.zero_grad()
        seen.clear()
        model(x).sum().backward()
        after = alive()
        adam.step()
    weight = layers[0].weight
    words = f"{type(weight).__name__} of {tuple(weight.shape)}, {weight.placements}, here {tuple(weight.to_local().shape)}"
    return after / model_size(), [n / model_size() for n in seen], words


def model_size():
    return LAYERS * WIDE**2


full, keep = distributed.run(with_fsdp, 4, True), distributed.run(with_fsdp, 4, False)
print(full[0][2])
print(f"after backward: {full[0][0]:.2f} B a parameter")
gpulab.predict("shard.fsdp", measured=full[0][0])

# %% jupyter={"source_hidden": true}
gpulab.plot.lines(
    {
        "freed after forward": list(enumerate(full[0][1], 1)),
        "kept until backward": list(enumerate(keep[0][1], 1)),
    },
    "layer whose forward is done",
    "bytes a parameter, measured",
    "With reshard_after_forward one layer is whole at a time; without it, all are when forward ends.",
)

# %% [markdown]
# Both curves hold 3 B of shards (weight, two moments) and half a byte of the last all-gather's output, which FSDP2
# frees at the next gather. What is kept comes on top, half a byte a layer.
#
# And what travelled, in the second step, by rank 0's calls. An all-gather of n bytes a rank makes it send (N − 1) n; a
# reduce-scatter of n bytes (N − 1)/N · n, with ring algorithms.

# %%


def traffic(ran):
    """Bytes that a rank sends in a step with rings, relative to DDP; and its calls."""
    mine = [call for call in ran.calls if call.rank == 0]
    mine = mine[len(mine) // 2 :]
    gathered = [call.bytes for call in mine if call.operation.startswith("all_gather")]
    reduced = [call.bytes for call in mine if call.operation.startswith("reduce_scatter")]
    sent = 3 * sum(gathered) + 0.75 * sum(reduced)
    return sent / (1.5 * 4 * model_size()), len(gathered), len(reduced)


for name, ran in (("freed", full), ("kept", keep)):
    ratio, gathers, scatters = traffic(ran)
    print(f"{name:6} {gathers} all-gathers, {scatters} reduce-scatters: {ratio:.2f} × DDP")

# %% [markdown]
# **Why.** The names that you meet:
#
# | FSDP 1: `ShardingStrategy` | FSDP2 | what |
# |---|---|---|
# | `FULL_SHARD` | `reshard_after_forward=True` | ZeRO-3 |
# | `SHARD_GRAD_OP` | `reshard_after_forward=False` | weights stay whole from forward to backward |
# | `NO_SHARD` | – (use DDP) | DDP |
# | `HYBRID_SHARD` | a mesh of two axes | shards inside a node, copies between nodes |
#
# There is no ZeRO-1 among them. `SHARD_GRAD_OP` is often called ZeRO-2, but between steps its weights are cut. In
# mixed precision (`MixedPrecisionPolicy(param_dtype=torch.bfloat16)`) the shards stay float32 and are cast before they
# are gathered: half the traffic, and the same 16 bytes over N. (PyTorch documentation, "torch.distributed.fsdp.fully_shard".)
#
# ## 7 · More room: host memory and disk
#
# Host memory is larger than a GPU's, a disk larger still; the links to them are slow. **ZeRO-Offload** (2021) moves optimizer
# states and Adam itself to the CPU. **ZeRO-Infinity** (2021) keeps weights there or on NVMe, and adds two ideas:
#
# - **Bandwidth-centric partitioning**: *every* parameter is cut over all ranks. Each rank fetches its slice over a PCIe
#   link of its own, all at once, and an all-gather over NVLink puts it together.
# - **Memory-centric tiling**: one huge operator is cut into tiles that run one after the other, and only a tile's
#   weights are gathered.

# %%
pcie, nvlink = (float(hardware.link(name).per_direction) for name in ("PCIe 5.0 ×16", "NVLink 4"))
one_owner = 1e9 / pcie + costs.tree_broadcast(costs.Network(0, nvlink), 8, 1e9)
sliced = 1e9 / 8 / pcie + costs.ring_all_gather(costs.Network(0, nvlink), 8, 1e9)
print(f"1 GB to 8 GPUs, modelled: by one owner {1e3 * one_owner:.1f} ms, in slices {1e3 * sliced:.1f} ms")

# a layer of 64 → 4,096 in eight tiles: the same result, an eighth of its weights at a time
numbers = torch.Generator().manual_seed(0)
x, w = torch.randn(4, 64, generator=numbers), torch.randn(64, 4096, generator=numbers)
tiled = torch.cat([x @ tile for tile in w.chunk(8, dim=1)], dim=1)
print(
    f"tiled: off by {float((tiled - x @ w).abs().max()):.1g}, {w.chunk(8, dim=1)[0].numel() * 4:,} of {4 * w.numel():,} B"
)

# %% [markdown]
# A fetch that nobody waits for costs nothing. So fetch **ahead**, while another layer computes; that takes a place in
# memory. `carry_out(plan, layers, fetch, compute, room)` is a model of it: a program goes through a list of events.
#
# - `"fetch 3"` asks for layer 3 and goes on at once; the link takes `fetch` steps a layer, one after the other. The
#   layer occupies one of `room` places from now on.
# - `"forward 3"` (`compute` steps) and `"backward 3"` (twice that) wait for their layer, and the program for them.
# - `"evict 3"` frees the place, at once: weights do not change before the step.

# %%


def draw(plan, *asked):
    """The plan's timeline: F is forward, B backward, numbers are layers."""
    spans = []
    for part in carry_out(plan, *asked).parts:
        row = "link" if part.what == "fetch" else "compute"
        label = f"{part.what[0].upper() if row == 'compute' else ''}{part.layer}"
        spans.append(gpulab.plot.Span(row, part.start, part.stop, label, part.what))
    return gpulab.plot.timeline(spans, "steps")


def one_by_one(layers, fetch, compute, room):
    uses = [f"forward {i}" for i in range(layers)] + [f"backward {i}" for i in reversed(range(layers))]
    return [event for use in uses for event in (f"fetch {use.split()[1]}", use, f"evict {use.split()[1]}")]


print(f"{carry_out(one_by_one(12, 3, 2, 4), 12, 3, 2, 4).time:.0f} steps")
draw(one_by_one(5, 3, 2, 2), 5, 3, 2, 2)

# %% [markdown]
# **Predict.** 12 layers, room for 4. How many fetches does it take at least, forward and backward?

# %%
gpulab.predict("shard.fetches", ...)

# %% [markdown]
# **Do.** Write `offload(layers, fetch, compute, room)`: a plan, a list of such events, that does all forwards 0 … L − 1
# and then all backwards L − 1 … 0. `room` is at least 1; layers that stay at the end are fine. **Budget:** as short as
# the best plan, with as few fetches as there can be. About 20 lines.


# %% nbgrader={"grade": false, "grade_id": "offload", "locked": false, "schema_version": 3, "solution": true, "task": false}
def offload(layers, fetch, compute, room):
    ### BEGIN SOLUTION
    uses = [*range(layers), *reversed(range(layers))]
    plan, here, coming = [], [], 0

    def next_use(layer, now):
        later = [place for place in range(now, len(uses)) if uses[place] == layer]
        return later[0] if later else len(uses)

    for now, layer in enumerate(uses):
        coming = max(coming, now)
        while coming < len(uses):
            if uses[coming] not in here:
                if len(here) == room:
                    last = max(here, key=lambda other: next_use(other, now))
                    if next_use(last, now) <= coming:
                        break
                    here.remove(last)
                    plan.append(f"evict {last}")
                here.append(uses[coming])
                plan.append(f"fetch {uses[coming]}")
            coming += 1
        plan.append(f"{'forward' if now < layers else 'backward'} {layer}")
    return plan
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "offload-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("shard.offload", offload)

# %%
gpulab.need(offload)

print(f"{carry_out(offload(12, 3, 2, 4), 12, 3, 2, 4).time:.0f} steps")
draw(offload(5, 3, 2, 2), 5, 3, 2, 2)

# %% [markdown]
# **See.** The same on this machine, measured: layers of 16 MB in files that are mapped into memory, read from disk
# (the page cache is asked to forget them), and used. One thread reads ahead while another computes.

# %%
FILES, SIDE = 8, 2048


def forget(path):
    """Ask the system to drop a file from its page cache. Where it cannot be asked, reads come from memory."""
    with open(path, "rb+") as file:
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def through(paths, ahead):
    """Forward through layers on disk; the spans of reads and products, in ms."""
    spans, began = [], time.perf_counter()

    def note(row, i, at):
        now = time.perf_counter()
        spans.append(gpulab.plot.Span(row, 1e3 * (at - began), 1e3 * (now - began), f"{i}", row))

    def read(i):
        at = time.perf_counter()
        layer = torch.from_numpy(np.array(np.memmap(paths[i], np.float32, "r", shape=(SIDE, SIDE))))
        note("disk", i, at)
        return layer

    x = torch.ones(32, SIDE)
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(read, 0)
        for i in range(FILES):
            layer = coming.result()
            if ahead and i + 1 < FILES:
                coming = reader.submit(read, i + 1)
            at = time.perf_counter()
            x = torch.tanh(x @ layer)
            note("compute", i, at)
            if not ahead and i + 1 < FILES:
                coming = reader.submit(read, i + 1)
    return sorted(spans, key=lambda span: (span.row != "disk", span.start)), time.perf_counter() - began


with tempfile.TemporaryDirectory() as folder:
    paths = [Path(folder, f"layer{i}") for i in range(FILES)]
    for path in paths:
        (np.random.default_rng(0).standard_normal((SIDE, SIDE), np.float32) / SIDE**0.5).tofile(path)
    took = {}
    for name, ahead in (("one after the other", False), ("fetched ahead", True)):
        for path in paths:
            forget(path)
        took[name] = through(paths, ahead)
for name, (_, seconds) in took.items():
    print(f"{name}: {1e3 * seconds:.0f} ms")
gpulab.plot.timeline(took["fetched ahead"][0], "ms")

# %% [markdown]
# **Why.** At best, fetching ahead takes as long as the slower of the two instead of their sum. A GPU's link is slower
# relative to its arithmetic. The time in which one 16-bit weight comes over PCIe 5.0 is that of so many operations of
# an H100 at its dense peak, two for each token that uses the weight:
#

# %%
rate = float(hardware.find("H100").peak("float16", tensor=True))
print(f"{2 / pcie * rate:,.0f} operations: {rate / pcie:,.0f} tokens a fetch hide it")

# %% [markdown]
# ## 8 · Activations
#
# What backward needs from forward is not divided by ZeRO: each rank has its own samples. For a transformer layer with
# sequence s, micro-batch b, width h and a heads, in 16 bits, nothing recomputed (V. Korthikanti et al., 2022):
#
#     bytes of a layer = s · b · h · (34 + 5 · a · s / h)
#
# The second term are the scores and what softmax and dropout make of them; FlashAttention (lab 12) does not store
# them. "Batch × sequence × width × layers" is far off: it counts one number a token and layer.
#
# **Predict.** GPT-3: 96 layers, width 12,288, 96 heads. One sequence of 2,048 tokens: how many GB?

# %%
gpulab.predict("shard.activations", ...)

# %%


def activations(sequence, batch, width, heads):
    """Bytes of a layer: with all, without scores, with its input alone."""
    unit = sequence * batch * width
    return unit * (34 + 5 * heads * sequence / width), 34 * unit, 2 * unit


gpt3 = [96 * size / 1e9 for size in activations(2048, 1, 12288, 96)]
gpulab.predict("shard.activations", measured=gpt3[0])
gpulab.plot.bars(
    dict(zip(("keep all", "without scores", "inputs alone"), gpt3, strict=True)),
    "GB a sequence, GPT-3",
    log=True,
)

# %% [markdown]
# What is not kept is computed again in backward (lab 08). Three choices a layer:
#
# | keep | bytes | FLOPs again |
# |---|---|---|
# | all | s b h (34 + 5 a s / h) | 0 |
# | all but scores | 34 s b h | 4 b s² h |
# | the input | 2 s b h | 24 b s h² + 4 b s² h (a whole forward) |
#
# **Do.** Write `recompute(layers, batch, sequence, width, heads, memory)`: how many of the layers keep all, all but
# scores, and their input, as a list of three numbers. Their bytes fit into `memory`, which is enough for inputs; the
# layer that is being recomputed is not counted. **Budget:** the fewest FLOPs again. About 10 lines.


# %% nbgrader={"grade": false, "grade_id": "recompute", "locked": false, "schema_version": 3, "solution": true, "task": false}
def recompute(layers, batch, sequence, width, heads, memory):
    ### BEGIN SOLUTION
    unit, scores = sequence * batch * width, 4 * batch * sequence**2 * width
    sizes = unit * (34 + 5 * heads * sequence / width), 34 * unit, 2 * unit
    again = 0, scores, 24 * unit * width + scores
    best = None
    for every in range(layers + 1):
        for some in range(layers + 1 - every):
            counts = [every, some, layers - every - some]
            if sum(n * size for n, size in zip(counts, sizes, strict=True)) <= memory:
                flops = sum(n * work for n, work in zip(counts, again, strict=True))
                best = min(best or (flops, counts), (flops, counts))
    return best[1]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "recompute-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("shard.recompute", recompute)

# %%
gpulab.need(recompute)


def share_again(memory):
    """Percent of a forward pass that is computed again for GPT-3's shape in so many bytes."""
    _, some, inputs = recompute(96, 1, 2048, 12288, 96, memory)
    scores, forward = 4 * 2048**2 * 12288, 24 * 2048 * 12288**2 + 4 * 2048**2 * 12288
    return 100 * (some * scores + inputs * forward) / (96 * forward)


gpulab.plot.lines(
    {"least recomputed": [(gb, share_again(gb * 10**9)) for gb in range(5, 281, 11)]},
    "GB for activations",
    "% of a forward pass",
    "Down to about 82 GB only scores are dropped, which is cheap; below, whole layers are computed again.",
)

# %% [markdown]
# **Why.** Scores are 70 % of GPT-3's activations and 3 % of its forward work, so they go first: **selective
# recomputation**. Whole layers cost about a third more work in all, because backward is twice a forward. In
# configurations: `activation_checkpointing` (DeepSpeed), `--recompute-granularity selective` or `full` (Megatron).
#
# ## 9 · Configurations
#
# ![16 GPUs as a box: 2 in tensor parallel, 2 in the pipeline, and what is left, 16 ÷ (2 · 2) = 4, in data parallel. The global batch is micro-batch × accumulation × 4.](drawings/product_of_sizes.svg)
#
# **DeepSpeed** takes a JSON file. Its engine does in three calls what you wrote above:
#
#     engine, optimizer, _, _ = deepspeed.initialize(model=model, model_parameters=…, config="ds.json")
#     loss = engine(batch); engine.backward(loss); engine.step()
#
# `engine.step()` after every micro-batch; the engine knows when an accumulation is complete. The first identity of all
# such files:
#
#     train_batch_size = train_micro_batch_size_per_gpu × gradient_accumulation_steps × data-parallel ranks
#
# Tensor and pipeline parallelism (lab 17) cut one copy of the model, inside layers and between them, over tensor ×
# pipeline GPUs. Data-parallel ranks are all GPUs over that. Two numbers give the third; three may contradict each other.
#
# **Predict.** Batch 1,536, micro-batch 1, 1,024 GPUs, tensor 8, pipeline 8: how many accumulation steps?

# %%
gpulab.predict("shard.accumulate", ...)

# %% [markdown]
# This file has a number of mistakes that common guides have, too. Which of them would stop a run, and which only slow it
# down?

# %%
COMMON = {
    "train_batch_size": 512,
    "train_micro_batch_size_per_gpu": 32,
    "gradient_accumulation_steps": 4,
    "fp16": {"enabled": True},
    "scheduler": {
        "type": "WarmupCosineLR",
        "params": {"warmup_min_lr": 0, "warmup_max_lr": 3e-4, "warmup_num_steps": 500},
    },
    "zero_optimization": {
        "stage": 2,
        "reduce_bucket_size": 1_000_000,
        "allgather_bucket_size": 100_000,
        "offload_param": {"device": "cpu"},
    },
}
SCHEDULERS = {  # the keys that each takes: deepspeed/runtime/lr_schedules.py, August 2026
    "WarmupLR": ("warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "warmup_type"),
    "WarmupDecayLR": ("total_num_steps", "warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "warmup_type"),
    "WarmupCosineLR": (
        "total_num_steps",
        "warmup_min_ratio",
        "warmup_num_steps",
        "cos_min_ratio",
        "warmup_type",
    ),
}

# %% [markdown]
# **Do.** Write `config(settings, gpus, tensor, pipeline)`. `settings` is such a dictionary; any part may be missing, but
# two of the three batch numbers are there. A scheduler has a `type` of the three, an offload has a `device`, and there
# are at least tensor × pipeline GPUs. Return `{"batch": […], "problems": […]}`.
#
# `batch` is the list of the three numbers in the order of the identity, the missing one worked out; or `None` if whole
# numbers cannot make it true, data-parallel ranks among them. `problems` is a sorted list of these words:
#
# | word | when |
# |---|---|
# | `batch` | the identity cannot hold |
# | `fp16 and bf16` | both have `enabled` true |
# | `offload_param` | its `device` is other than `none`, and the `stage` (0 if not given) is below 3 |
# | `offload_optimizer` | its `device` is other than `none`, and the stage is 0 |
# | `pipeline` | `pipeline` is above 1, and the stage is 2 or 3 |
# | `reduce_bucket_size`, `allgather_bucket_size` | given, and below 5,000,000, a hundredth of the default (a rule of ours) |
# | a key of the scheduler's `params` | its `type` does not take it |
#
# What `params` lacks is not among the words, although WarmupCosineLR also needs `total_num_steps`. All answers must be
# right. About 25 lines.


# %% nbgrader={"grade": false, "grade_id": "config", "locked": false, "schema_version": 3, "solution": true, "task": false}
def config(settings, gpus, tensor, pipeline):
    ### BEGIN SOLUTION
    ranks = gpus // (tensor * pipeline)
    train = settings.get("train_batch_size")
    micro = settings.get("train_micro_batch_size_per_gpu")
    steps = settings.get("gradient_accumulation_steps")
    if train is None:
        train = micro * steps * ranks
    elif micro is None:
        micro = train // (steps * ranks)
    elif steps is None:
        steps = train // (micro * ranks)
    holds = gpus % (tensor * pipeline) == 0 and train == micro * steps * ranks
    problems = [] if holds else ["batch"]
    if all(settings.get(kind, {}).get("enabled", False) for kind in ("fp16", "bf16")):
        problems.append("fp16 and bf16")
    zero = settings.get("zero_optimization", {})
    for what, least in (("offload_param", 3), ("offload_optimizer", 1)):
        if zero.get(what, {}).get("device", "none") != "none" and zero.get("stage", 0) < least:
            problems.append(what)
    if pipeline > 1 and zero.get("stage", 0) >= 2:
        problems.append("pipeline")
    for bucket in ("reduce_bucket_size", "allgather_bucket_size"):
        if bucket in zero and zero[bucket] < 5_000_000:
            problems.append(bucket)
    scheduler = settings.get("scheduler", {"params": {}})
    for key in scheduler["params"]:
        if key not in SCHEDULERS[scheduler["type"]]:
            problems.append(key)
    return {"batch": [train, micro, steps] if holds else None, "problems": sorted(problems)}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "config-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("shard.config", config)

# %%
gpulab.need(config)

for gpus in (4, 8):
    print(gpus, "GPUs:", config(COMMON, gpus, 1, 1))

# %% [markdown]
# **Why.** A file with all three numbers is good for one number of GPUs only; leave one out. DeepSpeed refuses wrong
# scheduler keys, a false identity, two formats at once, and pipelines with stage 2 or 3. `offload_param` is documented for
# stage 3 only. Small buckets are accepted, and every message pays its latency.

# %% [markdown]
# ### What else DeepSpeed has
#
# | feature | what | at most, by its makers |
# |---|---|---|
# | 1-bit Adam, 1-bit LAMB, 0/1 Adam | momentum is sent in a bit, errors kept (lab 15), between nodes | 5 ×, 4.6 ×, 26 × fewer bytes |
# | 3-D parallelism | ZeRO-1 with tensor and pipeline parallelism | – |
# | progressive layer dropping | layers are skipped at random, more often later | – |
# | DeepSpeed-Chat | reinforcement learning from human feedback (RLHF): a model that trains and generates in turn | – |
#
# (deepspeed.ai tutorials on 1-bit Adam, 1-bit LAMB and 0/1 Adam; August 2026.)

# %% [markdown]
# ### Megatron and DeepSpeed together
#
# ![Megatron and DeepSpeed together: inside a node the tensors are cut, between some nodes the layers, and over what is left DeepSpeed shards the optimizer's state.](drawings/together.svg)
#
# Megatron-LM brings tensor and pipeline parallelism (lab 17), DeepSpeed ZeRO and offload; the fork **Megatron-DeepSpeed**,
# which trained BLOOM, has both. Arguments of the one stand beside a JSON file of the other:
#
#     deepspeed pretrain_gpt.py --tensor-model-parallel-size 8 --pipeline-model-parallel-size 4 \
#         --micro-batch-size 1 --global-batch-size 1536 --deepspeed --deepspeed_config ds.json --zero-stage 1
#
# (Flags as in its `examples_deepspeed`, July 2025.) Pipelines go with ZeRO-1: each of a schedule's many backwards would
# reduce-scatter gradients or gather weights again. Megatron-LM's own ZeRO-1 is `--use-distributed-optimizer`.

# %% [markdown]
# ### NeMo: configuration in Python
#
# NeMo 1.0 was configured in YAML, **NeMo 2.0** (2024) in Python, above Megatron Core:
#
#     strategy = nl.MegatronStrategy(tensor_model_parallel_size=8, pipeline_model_parallel_size=4,
#                                    context_parallel_size=1, sequence_parallel=True)
#     trainer = nl.Trainer(devices=8, num_nodes=128, strategy=strategy, max_steps=1000)
#     data = llm.MockDataModule(seq_length=2048, micro_batch_size=1, global_batch_size=1536)
#
# *NeMo-Run* wraps such calls (`run.Partial`) and launches them. **AutoModel** trains Hugging
# Face models with FSDP2. By 2026 NVIDIA's guide leads to *Megatron Bridge*, with the same ideas. (NeMo Framework User Guide
# 25.02; "NeMo 2.0 to Megatron Bridge Migration Guide", 2026.)

# %% [markdown]
# ## 10 · Which framework, which recipe
#
# | you have | take |
# |---|---|
# | states fit on each GPU | DDP |
# | a PyTorch model, states fit over all GPUs | FSDP2 |
# | that, and host memory or NVMe must help | DeepSpeed ZeRO-3 with offload |
# | hundreds of GPUs, a standard transformer | Megatron Core: tensor × pipeline × data, ZeRO-1 |
# | code that uses FairScale | move it to FSDP2 |
#
# **LoRA** (lab 14) trains small low-rank matrices, its adapters, beside frozen weights, **QLoRA** beside weights
# in 4 bits. What is frozen has neither gradient nor states: 2 bytes or half a byte a parameter.
#
# **Predict.** All 70 billion parameters are trained. How many GPUs of 80 GB do the states alone take?

# %%
gpulab.predict("shard.seventy", ...)

# %%
gpulab.need(memory)

seventy = next(model for model in MODELS if model.name == "Llama 3 70B").stated
adapters = 0.01 * seventy  # LoRA with a hundredth of the parameters, an assumption
recipes = {  # GB on each of 8 GPUs, activations left out
    "full, DDP": memory(int(seventy), 1, 0),
    "full, ZeRO-3": memory(int(seventy), 8, 3),
    "LoRA, whole 16-bit weights": 2 * seventy + 16 * adapters,
    "LoRA, ZeRO-3": (2 * seventy + 16 * adapters) / 8,
    "QLoRA, whole 4-bit weights": seventy / 2 + 16 * adapters,
    "QLoRA, FSDP": (seventy / 2 + 16 * adapters) / 8,
}
gpulab.plot.bars(
    {name: size / 1e9 for name, size in recipes.items()}, "GB a GPU, 8 GPUs", budget=80, log=True
)

# %% [markdown]
# **Why.** A published recipe reads "ZeRO-2 for 70B": that works only because its weights are in 4 bits. ZeRO-2 divides
# no weights, and 140 GB of 16-bit ones fit on no GPU of 80 GB. FSDP can cut 4-bit weights if they are *stored* in a
# float format (`bnb_4bit_quant_storage=torch.bfloat16`), the same as all other tensors of the group; so two GPUs of 24
# GB tune 70B. (bitsandbytes documentation, "FSDP-QLoRA".) By the figure that is 46.2 / 2 = 23.1 GB each: 0.9 GB is
# left, so activations must be recomputed, for short sequences, or some states offloaded.
#
# **Decide.** Ungraded. Write a line for each, with a number, then open the answers.
#
# 1. 8 B parameters, all trained, one node of 8 GPUs with 80 GB.
# 2. 70 B, all trained, two such nodes, 400 Gbit/s a GPU between them.
# 3. 405 B from scratch on 2,048 GPUs.
#
# <details><summary>Answers</summary>
#
# 1. 128 GB of states: not DDP. FSDP2 over 8: 16 GB, the rest for activations.
# 2. 1,120 GB over 16 are 70 GB of 80: too tight for activations. Offload optimizer states to the host (12 of 16 bytes:
#    17.5 GB stay), or find more GPUs.
# 3. Tensor 8 inside a node, pipeline between nodes, ZeRO-1 over the rest: with ZeRO-3 alone each GPU would gather 810
#    GB twice a micro-batch.
# </details>
#
# ## Detective · A loss that depends on the ranks
#
# A colleague's ZeRO step with gradient clipping. "On one rank and on four the losses agree, step by step, as long as I
# do not clip. With clipping they part at once, and I clip to the same norm!"

# %%
DATA, FEATURES, RATE = 64, 16, 0.05
numbers = torch.Generator().manual_seed(3)
inputs = torch.randn(DATA, FEATURES, generator=numbers) * torch.linspace(0.2, 2, FEATURES)
targets = inputs @ torch.randn(FEATURES, generator=numbers)


def their_step(weights, gradient, limit):
    """Reduce-scatter, clip the mean gradient to a norm of `limit`, update the shard, all-gather."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    share = torch.empty(len(weights) // ranks)
    dist.reduce_scatter(share, list(gradient.chunk(ranks)))
    share /= ranks
    norm = share.norm()
    if norm > limit:
        share *= limit / norm
    new = torch.empty_like(weights)
    dist.all_gather(list(new.chunk(ranks)), weights.chunk(ranks)[rank] - RATE * share)
    return new


def gradient_of(weights):
    """Of the mean squared error of this rank's part of the data."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x, y = inputs.chunk(ranks)[rank], targets.chunk(ranks)[rank]
    return 2 * x.T @ (x @ weights - y) / len(x)


def their_losses(limit):
    weights, losses = torch.zeros(FEATURES), []
    for _ in range(30):
        weights = their_step(weights, gradient_of(weights), limit)
        losses.append(float((inputs @ weights - targets).square().mean()))
    return losses


ran = {(n, limit): distributed.run(their_losses, n, limit)[0] for n in (1, 4) for limit in (1e9, 4.0)}
for limit, name in ((1e9, "without clipping"), (4.0, "clipped to 4")):
    off = max(abs(a - b) for a, b in zip(ran[1, limit], ran[4, limit], strict=True))
    print(f"{name}: losses on 1 and 4 ranks differ by {off:.2g} at most")
gpulab.plot.lines(
    {f"{n} rank{'s' * (n > 1)}": list(enumerate(ran[n, 4.0], 1)) for n in (1, 4)},
    "step",
    "loss, clipped to 4",
    "With the same limit, four ranks take other steps than one. A lower loss does not make them the right ones.",
)

# %% [markdown]
# **Do.** Find the cause with your own numbers: run `their_step` from zero weights on one and on four ranks, and compare
# how far each weight moved with RATE times its gradient. Then write `clip(gradient, limit)`: `gradient` is this rank's
# shard of the mean gradient, shards may differ in length; return the shard of the gradient clipped to a norm of
# `limit` over all ranks, as a new tensor. A gradient of zeros stays one. **Budget:** 24 bytes from the busiest rank.
# About 5 lines. The first cell is for your experiment, ungraded; `gradient_of` and `their_step` run inside
# `distributed.run`.

# %%
# Your experiment.


# %% nbgrader={"grade": false, "grade_id": "clip", "locked": false, "schema_version": 3, "solution": true, "task": false}
def clip(gradient, limit):
    ### BEGIN SOLUTION
    square = gradient.square().sum()
    dist.all_reduce(square)
    norm = square.sqrt()
    return gradient * (limit / norm) if norm > limit else gradient
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "clip-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("shard.clip", clip)

# %% [markdown]
# ### Your answer
#
# In three to five sentences: what was wrong, why did it not show without clipping, and which numbers of your own
# experiment show it? Does the step still go in the gradient's direction? It is worth 2 points that no check gives; a
# person reads it: 1 point for the cause, 1 point for a number that you measured.

# %% [markdown] nbgrader={"grade": true, "grade_id": "clip-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** Each rank clips by the norm of its own shard, not of the whole gradient. Without clipping no norm is used,
# and on one rank the shard is the whole. From zero weights the gradient's norm is 21.7: on one rank every weight moves
# 0.185 times as far as unclipped (4 / 21.7), and the step is 4 · RATE long. On four ranks the shards' norms are 0.57,
# 4.1, 10.2 and 18.7, and the factors 1, 0.98, 0.39 and 0.21: the step is 6.95 · RATE long. Factors differ from shard to
# shard, so it no longer goes in the gradient's direction (cosine 0.88).
#
# **1 point** (cause without a number): Each rank clips by the norm of its own shard instead of the norm of all.
#
# **0 points:** Floating-point sums depend on their order. Or: the gradient is averaged twice.

# %% [markdown]
# ## Beyond · How far to shard
#
# Open-ended and ungraded. 32 GPUs in 4 nodes, 7 billion parameters, 14 GB in 16 bits. In **hybrid sharding** a group of
# GPUs shares one copy of the states: weights are gathered inside the group, gradients reduce-scattered there, and their
# shards are all-reduced between groups. Links inside a node and between nodes can work at the same time. Model a step
# of your own, as `hybrid` does; states must fit into 80 GB. The figure of merit is its communication.
#
# | way | ms |
# |---|---|
# | shard over all 32 | printed below |
# | shard over a node, all-reduce between | printed below |
# | yours | yours |
# | a reference | three collectives inside a node, everything between hidden behind them; printed below |
#
# The reference is no bound: with fewer collectives inside a node, or smaller groups, a step can be shorter.

# %%
nodes = {
    "inside": costs.Network(5e-6, float(hardware.link("NVLink 4").per_direction)),
    "between": costs.Network(5e-6, float(hardware.link("InfiniBand NDR").per_direction)),
}


def hybrid(group, size=14e9):
    """Seconds of a step: three collectives inside groups of so many GPUs, an all-reduce of shards between them."""
    network = nodes["inside"] if group <= 8 else nodes["between"]
    within = 3 * costs.ring_all_gather(network, group, size)
    return within + costs.ring_all_reduce(nodes["between"], 32 // group, size / group)


print(f"over all 32: {1e3 * hybrid(32):.0f} ms; over a node: {1e3 * hybrid(8):.0f} ms")
print(f"reference: {1e3 * 3 * costs.ring_all_gather(nodes['inside'], 8, 14e9):.0f} ms")

# %% [markdown]
# ## Recap
#
# <details><summary>1. What of the sixteen bytes does each stage divide?</summary>
#
# Stage 1 the 12 of the optimizer, stage 2 also the gradients' 2, stage 3 also the weights' 2.
# </details>
#
# <details><summary>2. Why is ZeRO-2 no more traffic than DDP?</summary>
#
# An all-reduce is a reduce-scatter and an all-gather. ZeRO-2 puts the optimizer in between, and gathers weights instead
# of gradients.
# </details>
#
# <details><summary>3. What are the 1.5 of ZeRO-3?</summary>
#
# Weights are gathered in forward and again in backward, gradients are reduce-scattered: three halves of an all-reduce.
# </details>
#
# <details><summary>4. Activations do not fit. What goes first?</summary>
#
# What is large and cheap to compute again: attention scores. Then whole layers, down to their inputs.
# </details>
#
# <details><summary>5. A file says batch 512, micro-batch 32, accumulation 4. On how many GPUs does it run?</summary>
#
# On four data-parallel ranks, and on no other number.
# </details>

# %%
gpulab.recap("16")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | states | 16 B a parameter: 2 + 2 + 12 in mixed precision, 4 + 4 + 8 in float32 |
# | stage 1, 2, 3 on N ranks | 4 + 12/N, 2 + 14/N, 16/N |
# | traffic of stage 1, 2 | as DDP, 2 (N − 1)/N · S |
# | of stage 3 | 1.5 × DDP |
# | FSDP2 | `fully_shard` on each layer, then on the model |
# | activations of a layer | s b h (34 + 5 a s / h) B in 16 bits |
# | recompute | scores first; all layers: a third more work |
# | offload | fetch ahead, keep the last layers at the turn |
# | batch | micro × accumulation × GPUs / (tensor · pipeline) |
# | clip | norm over all shards: all-reduce the sum of squares |
#
# ### Claims you will meet, and what is right
#
# - *ZeRO-1 takes O(P/N + G).* Weights stay whole: 4 Ψ + 12 Ψ/N.
# - *ZeRO-1 saves 4 ×, ZeRO-2 8 ×.* Only in the limit of many ranks.
# - *Optimizer states are two to three times the model.* Twice in float32; six times the 16-bit weights in mixed precision.
# - *GPT-3 in training is about 650 GB of weights.* 350 GB in 16 bits, 2.8 TB with everything.
# - *GPUs = 6 × parameters × bytes / memory.* 16 bytes a parameter, plus activations, which depend on batch and sequence,
#   rounded up.
# - *Switch FSDP between DDP, ZeRO-1 and ZeRO-2.* It has `FULL_SHARD`, `SHARD_GRAD_OP`, `NO_SHARD`, `HYBRID_SHARD`.
# - *FairScale for production.* Its FSDP lives on in PyTorch.
# - *`warmup_max_lr` for WarmupCosineLR.* That scheduler takes ratios of the optimizer's rate.
# - *Global batch = micro-batch × GPUs.* Times accumulation, and data-parallel ranks instead of GPUs.
# - *Activations are batch × sequence × width × layers.* Times 34 bytes and more: 275 GB for GPT-3, and not 5.
# - *1-bit Adam: up to 26 × within a node.* 5 × between nodes; 26 × is 0/1 Adam's.
#
# ### References
#
# 1. S. Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", 2019.
#    https://arxiv.org/abs/1910.02054
# 2. J. Ren et al., "ZeRO-Offload", 2021. https://arxiv.org/abs/2101.06840
# 3. S. Rajbhandari et al., "ZeRO-Infinity", 2021. https://arxiv.org/abs/2104.07857
# 4. Y. Zhao et al., "PyTorch FSDP", 2023. https://arxiv.org/abs/2304.11277
# 5. V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022.
#    https://arxiv.org/abs/2205.05198
# 6. DeepSpeed, "DeepSpeed Configuration JSON". https://www.deepspeed.ai/docs/config-json/
# 7. PyTorch, "fully_shard". https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html
# 8. NVIDIA, "NeMo 2.0 to Megatron Bridge Migration Guide".
#    https://docs.nvidia.com/nemo/megatron-bridge/latest/nemo2-migration-guide.html
