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
# **4.5 to 7 hours.** You need labs 10 and 15: mixed precision, collectives, `distributed.run`, `costs`.
# Section 8 uses recomputation (lab 08) and attention's scores (lab 12), and the table of recipes uses LoRA
# (lab 14). No GPU is needed.
#
# A model of 8 billion parameters has 16 GB of 16-bit weights, and training it takes 128 GB before the first
# activation is stored. In data parallel training every rank keeps all of that: the same weights, the same
# gradients and the same optimizer states. Sharded training keeps each of them only once over all ranks, and
# fetches a part when it is needed. In this lab you write these training steps for real ranks, and the lab
# counts their memory and traffic.
#
# By the end of this lab, you can
#
# 1. say where a training run's memory goes, and which part of it each ZeRO stage divides;
# 2. write an optimizer step that keeps 5.5 bytes per parameter instead of 16, with no more traffic;
# 3. use `fully_shard`, and explain each collective that it calls;
# 4. plan offload and recomputation within a memory limit;
# 5. read, check and complete a configuration of DeepSpeed, Megatron or NeMo.
#
# | sitting | sections | hours | what it is about |
# |---|---|---|---|
# | 1 | 1 to 7 | 2 to 3.5 | ZeRO's three stages, FSDP2, and offload to the host |
# | 2 | 8 to 10, detective, recap | 2 to 3.5 | activations, configurations of frameworks, and a bug to find |

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
# A system that trains in 16 bits with Adam, such as DeepSpeed or Megatron, keeps for each parameter
#
# | what | format | bytes |
# |---|---|---|
# | weight | 16 bits | 2 |
# | gradient | 16 bits | 2 |
# | **master weight** | FP32 | 4 |
# | first moment | FP32 | 4 |
# | second moment | FP32 | 4 |
#
# The last three are called the **optimizer states** in this lab. They take 12 bytes, six times as much as the
# 16-bit weight.
#
# Other setups come to similar sums. In plain FP32 there is no second copy of the weight: 4 + 4 + 8 bytes for
# weight, gradient and moments are also 16. PyTorch's AMP (lab 10) keeps weights, gradients and moments in
# FP32, which makes 16 bytes, and adds a 16-bit copy of each weight inside autocast. That is why lab 10 counts
# 18. Activations come on top of all this (section 8).
#
# **Predict.** GPT-3 has 175 billion parameters. How many GB do its weights, gradients and optimizer states
# take together, by the table?

# %%
gpulab.predict("shard.gpt3", ...)

# %% [markdown]
# The next cell runs a training step of a small model and counts the bytes that are alive after each part. It
# looks at all tensors that Python knows, and counts a storage once even if several tensors share it.
# `gc.freeze()` leaves out whatever existed before.

# %%
WIDTH, LAYERS = 128, 8
PARAMETERS = LAYERS * WIDTH**2


def alive():
    """Bytes of all tensors made since `gc.freeze()`, with gradients; a shared storage is counted once."""
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
gpulab.plot.bars(said, "bytes per parameter")

# %% [markdown]
# ## 2 · Three stages
#
# With DDP on N ranks, all of this is kept N times. **ZeRO**, the zero redundancy optimizer (S. Rajbhandari et
# al., 2019), removes the copies in three stages. Each rank owns one **shard**, which is an Nth of the
# parameters.
#
# - **Stage 1** divides the optimizer states. A rank updates only the parameters of its shard.
# - **Stage 2** also divides the gradients. A rank keeps the summed gradient of its shard, because its update
#   needs no other.
# - **Stage 3** also divides the weights. A layer's weights are gathered when the layer is computed, and
#   dropped afterwards.
#
# Whatever a stage does not divide stays whole. So in stages 1 and 2 every rank still has all 16-bit weights.
#
# **Predict.** On 64 ranks, by what factor is a rank's memory with stage 2 smaller than with DDP?

# %%
gpulab.predict("shard.seventh", ...)

# %% [markdown]
# **Do.** Write `memory(parameters, ranks, stage)`, the bytes that one rank keeps, without activations. About
# 5 lines.
#
# - Input: three whole numbers. `stage` is 0, 1, 2 or 3, where 0 is DDP. `parameters` is a multiple of
#   `ranks`.
# - Output: a whole number of bytes, by the table of section 1.
# - Full marks need every number right.


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
# **See.** This is the example of the ZeRO paper, a model with 7.5 billion parameters, on more and more ranks:

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
    "GB per rank",
    "Stages 1 and 2 level off at the weights and gradients that stay whole, while stage 3 keeps falling.",
    limits={"80 GB": 80},
    log_x=True,
    log_y=True,
)

# %% [markdown]
# **Why.** You will read that ZeRO-1 saves a factor of 4 and ZeRO-2 a factor of 8. These are the limits 16/4
# and 16/2, which would take infinitely many ranks. On 64 ranks the factors are 3.8 and 7.2. Only stage 3
# keeps on shrinking as ranks are added, and it pays for that with traffic (section 5).
#
# ## 3 · Cut evenly
#
# How should a model be cut into shards? The sizes of its tensors differ widely. If each rank gets whole
# tensors, the rank with the embedding holds far more than the others. If each tensor is cut into N pieces,
# small tensors become many tiny messages. DeepSpeed and the first FSDP therefore lay all tensors of a group
# end to end and cut this **flat** array. FSDP2 cuts each tensor by rows instead, because a tensor can then be
# used by itself.
#
# **Do.** Write `split(sizes, ranks)`, which cuts tensors into even shards. About 10 lines.
#
# - Input: `sizes`, a list with the number of elements of each tensor (0 is possible), and `ranks`.
# - Output: a list with one list per rank. It holds pieces `[tensor, start, stop]`, which are elements `start`
#   to `stop − 1` of that tensor. Tensors and elements are counted from 0.
# - Every element is in exactly one piece. No piece is empty, but a rank's list may be.
# - **Budget:** the longest share has ⌈total / ranks⌉ elements, and n tensors make at most n + ranks − 1
#   pieces.


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
gpulab.plot.bars({"the embedding alone": tensors[0], **shares}, "elements")

# %% [markdown]
# **Why.** The rank with the most memory in use decides whether a model fits. So an even cut is worth it, even
# if some tensors then lie on two ranks.
#
# ## 4 · ZeRO-2: the optimizer in between
#
# A DDP step all-reduces the gradients, and then each rank updates all weights. Lab 15 showed that a ring
# all-reduce has two halves: a reduce-scatter, after which each rank has the sum of one share, and an
# all-gather of these shares. ZeRO-2 runs the optimizer **between** the two halves:
#
#     reduce-scatter gradients → Adam on this rank's shard → all-gather 16-bit weights
#
# **Predict.** Four ranks use ring collectives. How many bytes per parameter does a rank send in one such
# step?

# %%
gpulab.predict("shard.traffic", ...)

# %% [markdown]
# **Do.** Write `zero2_step(gradient, master, momentum, variance, step)`. About 10 lines.
#
# - `gradient`: this rank's gradient of all parameters, FP16. Its length is a multiple of the ranks.
# - `master`, `momentum`, `variance`: FP32, this rank's shard only. Rank r has the r-th of equal parts. Change
#   them **in place**: `master = …` would only give a new tensor that name, and the caller's tensor would stay
#   as it was.
# - `step`: the number t of this step, counted from 1.
# - Output: the new weights of all parameters, FP16.
# - Allowed: `reduce_scatter`, `all_gather`, `all_reduce`, `broadcast`, sends and receives.
# - **Budget:** the busiest rank sends no more than an all-reduce of FP16 gradients takes.
#
# With g the **mean** of the ranks' gradients, Adam is
#
#     m ← 0.9 m + 0.1 g         v ← 0.999 v + 0.001 g²
#     master ← master − 0.01 · (m / (1 − 0.9^t)) / (√(v / (1 − 0.999^t)) + 1e-8)
#
# `dist.reduce_scatter(share, list_of_parts)` leaves the **sum** of all ranks' r-th parts in `share`.
# `dist.all_gather(list_of_parts, share)` fills the parts with the shares of all ranks. In both calls all
# tensors must have the same format. `t.chunk(n)` returns views, so whatever is gathered into them is in `t`.


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
# **See.** Is it still the same training? The next cell compares five steps on four ranks with five steps on
# one rank that is given the mean gradient. The gradients are whole numbers, so their sums and means are
# exact.

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
# And what does a rank keep? The next cell runs backward on four ranks and counts as in section 1. For stage
# 2, a **hook** on each weight reduce-scatters its gradient as soon as it is complete, keeps this rank's
# shard, and frees the rest.

# %%


def states(stage):
    """Bytes per parameter on this rank between backward and the optimizer's step, and the most before."""
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
    print(f"{name:7} {after:5.2f} B per parameter after backward, {worst:5.2f} at most during it")
gpulab.plot.bars(
    {name: after for name, (after, _, _) in kept.items()}, "bytes per parameter, measured on 4 ranks"
)

# %% [markdown]
# **Why.** With stage 2 a rank keeps 2 + (2 + 12)/4 = 5.5 bytes per parameter. The step that you wrote
# received the whole gradient at once, so by itself it is only ZeRO-1. The hook makes it ZeRO-2. Real systems
# send **buckets**, which are the gradients of several layers in one message. DeepSpeed's `reduce_bucket_size`
# is 5e8 elements by default. A bucket is alive in addition to the shards, so large buckets cost memory,
# whereas small ones cost messages.
#
# The check counted what your ranks sent, and it was not a byte more than with DDP. In this sense ZeRO-2 is free. It
# does cost overlap: its all-gather comes after the optimizer, where no backward work is left that could hide it.
#
# ## 5 · ZeRO-3: a layer when it is needed
#
# In stage 3 the weights are cut, too. Before a layer computes, its weights are all-gathered, and afterwards
# they are freed. Backward gathers them again. It then reduce-scatters the gradient, and each rank keeps its
# own rows of it. At any time no more than one layer is whole, or two if the next one is fetched ahead.
#
# ![ZeRO-3, a layer when it is needed: before a layer runs, its parts are gathered from all ranks; after it has run, a rank drops all parts except its own. The next layer is gathered while this one runs.](drawings/gather_layer.svg)
#
# **Predict.** Weights and gradients have 16 bits, and there are four ranks. How many bytes per parameter does
# a rank send in a ZeRO-3 step?

# %%
gpulab.predict("shard.again", ...)

# %% [markdown]
# **Do.** Write `gather_layers(x, slope, parts)`, a forward and a backward pass through layers that are
# sharded. About 20 lines.
#
# - The model starts with h = `x`, and each layer computes h ← tanh(h @ w).
# - `x`: this rank's batch (batch × width). `slope`: the gradient of this rank's loss with respect to its
#   output, of the same shape. `parts[i]`: this rank's rows of layer i's weight (width / ranks × width). All
#   are FP32.
# - Output: the list `[y, *slopes]`. `y` is this rank's output. For each layer, in the order of `parts`,
#   `slopes` has this rank's rows of the weight gradient, as the **mean** over all ranks.
# - Allowed: `all_gather`, `reduce_scatter`, `all_reduce`, sends and receives.
# - **Budget:** 1.5 times DDP's bytes. Gather one layer per all-gather, once for forward and again for
#   backward. The last layer may stay between the two.
#
# Backward for one layer: let inner = slope · (1 − h²), where h is the layer's output. Then the weight
# gradient is inputᵀ @ inner, and the slope for the layer before is inner @ wᵀ.


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
# The check sees messages but not memory. It concludes that a layer which is gathered again was not kept, because
# otherwise there would be no reason to gather it. Only a count on the rank itself can tell whether the layer was
# freed in between, and section 6 makes that count.
#
# **Why.** With half as much traffic again as DDP, the memory falls to 16/N bytes per parameter. Whether that traffic
# can be hidden depends on the batch. Gathering a layer takes the same time for one sample as for a thousand, but
# computing the layer does not. So ZeRO-3 needs a lot of work per gather. Accumulating gradients over micro-batches
# does not help, because each micro-batch gathers all layers again.
#
# ## 6 · FSDP2
#
# PyTorch's own ZeRO-3 is called **FSDP**, fully sharded data parallel. It appeared in FairScale in 2021 (whose
# README now keeps that version "for historical references"), and came to PyTorch as `FullyShardedDataParallel`, with
# flat arrays. **FSDP2**, the function `fully_shard`, replaces it. In FSDP2 each parameter is a **DTensor**, which is
# a tensor that knows over which mesh of ranks it is spread and along which axis it is cut.
#
# ![FSDP2 shards each parameter by rows: every rank has some rows of every matrix, and the parameter still knows its whole shape.](drawings/dtensor.svg)
#
# **Predict.** The model and Adam's moments are in FP32, and there are four ranks. How many bytes per
# parameter are alive on a rank after backward?

# %%
gpulab.predict("shard.fsdp", ...)

# %%
WIDE = 256


def with_fsdp(reshard):
    """A step with fully_shard: what is alive after each layer's forward, and between backward and Adam."""
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
    here = tuple(weight.to_local().shape)
    words = f"{type(weight).__name__} of {tuple(weight.shape)}, {weight.placements}, here {here}"
    return after / model_size(), [n / model_size() for n in seen], words


def model_size():
    return LAYERS * WIDE**2


full, keep = distributed.run(with_fsdp, 4, True), distributed.run(with_fsdp, 4, False)
print(full[0][2])
print(f"after backward: {full[0][0]:.2f} B per parameter")
gpulab.predict("shard.fsdp", measured=full[0][0])

# %% jupyter={"source_hidden": true}
gpulab.plot.lines(
    {
        "freed after forward": list(enumerate(full[0][1], 1)),
        "kept until backward": list(enumerate(keep[0][1], 1)),
    },
    "layer whose forward is done",
    "bytes per parameter, measured",
    "With reshard_after_forward, one layer is whole at a time. Without it, all are whole when forward ends.",
)

# %% [markdown]
# Both curves include 3 bytes per parameter of shards (12 bytes of weight and two moments, over four ranks),
# and half a byte for the output of the last all-gather (4 bytes of one layer in eight), which FSDP2 frees at
# the next gather. Without resharding, each layer that is kept adds another half byte.
#
# The next cell shows what travelled in the second step, from rank 0's calls. With rings, an all-gather of n
# bytes per rank makes a rank send (N − 1) n bytes, and a reduce-scatter of n bytes (N − 1)/N · n.

# %%


def traffic(ran):
    """Bytes that a rank sends in a step with rings, relative to DDP, and its number of calls."""
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
# **Why.** These are the names that you will meet in code:
#
# | FSDP 1: `ShardingStrategy` | FSDP2 | what it does |
# |---|---|---|
# | `FULL_SHARD` | `reshard_after_forward=True` | ZeRO-3 |
# | `SHARD_GRAD_OP` | `reshard_after_forward=False` | weights stay whole from forward to backward |
# | `NO_SHARD` | – (use DDP) | DDP |
# | `HYBRID_SHARD` | a mesh of two axes | shards inside a node, copies between nodes |
#
# None of them is ZeRO-1. `SHARD_GRAD_OP` is often called ZeRO-2, but it cuts weights between steps. In mixed
# precision (`MixedPrecisionPolicy(param_dtype=torch.bfloat16)`) the shards stay in FP32 and are cast before
# they are gathered. That halves the traffic, and memory is still 16 bytes over N. (PyTorch documentation,
# "torch.distributed.fsdp.fully_shard".)
#
# ## 7 · More room: host memory and disk
#
# Host memory is larger than a GPU's memory, and a disk is larger still, but the links to them are slow.
# **ZeRO-Offload** (2021) moves the optimizer states and Adam itself to the CPU. **ZeRO-Infinity** (2021) can
# also keep weights in host memory or on NVMe disks. It adds two ideas:
#
# - **Bandwidth-centric partitioning.** *Every* parameter is cut over all ranks. Each rank fetches its slice
#   over its own PCIe link, all at the same time, and an all-gather over NVLink puts the slices together.
# - **Memory-centric tiling.** A huge operator is cut into tiles that run one after the other, so only one
#   tile's weights are gathered at a time.

# %%
pcie, nvlink = (float(hardware.link(name).per_direction) for name in ("PCIe 5.0 ×16", "NVLink 4"))
one_owner = 1e9 / pcie + costs.tree_broadcast(costs.Network(0, nvlink), 8, 1e9)
sliced = 1e9 / 8 / pcie + costs.ring_all_gather(costs.Network(0, nvlink), 8, 1e9)
print(f"1 GB to 8 GPUs, modelled: by one owner {1e3 * one_owner:.1f} ms, in slices {1e3 * sliced:.1f} ms")

# A layer of 64 → 4,096 in eight tiles gives the same result with an eighth of its weights at a time.
numbers = torch.Generator().manual_seed(0)
x, w = torch.randn(4, 64, generator=numbers), torch.randn(64, 4096, generator=numbers)
tiled = torch.cat([x @ tile for tile in w.chunk(8, dim=1)], dim=1)
print(
    f"in tiles: off by at most {float((tiled - x @ w).abs().max()):.1g}, "
    f"with {w.chunk(8, dim=1)[0].numel() * 4:,} of {4 * w.numel():,} B of weights at a time"
)

# %% [markdown]
# If a layer has arrived before it is needed, its fetch costs no time. So it is fetched **ahead**, while another
# layer computes, although that takes a second place in memory. `carry_out(plan, layers, fetch, compute, room)`
# models such a program, which goes through a list of events:
#
# - `"fetch 3"` asks for layer 3, and the program continues at once. The link needs `fetch` steps for a layer,
#   and handles one layer after the other. The layer occupies one of the `room` places as soon as it is asked
#   for.
# - `"forward 3"` (`compute` steps) and `"backward 3"` (twice as many) wait until their layer has arrived. The
#   program waits until they are done.
# - `"evict 3"` frees the layer's place at once, because weights do not change before the optimizer's step.

# %%


def draw(plan, *asked):
    """The plan's timeline: F is forward, B is backward, and numbers are layers."""
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
# **Predict.** There are 12 layers, and room for 4. How many fetches do forward and backward take together, at
# least?

# %%
gpulab.predict("shard.fetches", ...)

# %% [markdown]
# **Do.** Write `offload(layers, fetch, compute, room)`, which returns a plan. About 20 lines.
#
# - Input: whole numbers. `layers` and `room` are at least 1, and `room` may exceed `layers`.
# - Output: a list of events as above, which runs all forwards 0 … L − 1 and then all backwards L − 1 … 0.
#   Layers may still be on the device at the end.
# - **Budget:** the plan is as short as the best one, and has as few fetches as possible.


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
# **See.** Now the same is measured on this machine. Eight layers of 16 MB lie in files that are mapped into
# memory. Each is read from disk (the page cache is asked to forget the files first) and then used. One thread
# reads ahead while another computes.

# %%
FILES, SIDE = 8, 2048


def forget(path):
    """Ask the system to drop a file from its page cache. If it cannot be asked, reads come from memory."""
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
# **Why.** At best, fetching ahead takes as long as the slower of the two activities, instead of their sum. A GPU
# computes faster than this machine, but its link is slower in proportion. While a single 16-bit weight crosses PCIe
# 5.0, an H100 at its dense peak could do the number of operations that the next cell prints. A token needs two of
# them for each weight, so half as many tokens must share a fetch to hide it.

# %%
rate = float(hardware.find("H100").peak("float16", tensor=True))
print(f"{2 / pcie * rate:,.0f} operations, so {rate / pcie:,.0f} tokens per fetch hide it")

# %% [markdown]
# ## End of sitting 1
#
# Your training steps now divide the optimizer states, the gradients and the weights among the ranks, and you can
# plan what moves to host memory. Only the activations are left. The second sitting reduces them, and then expresses
# all of this in the configurations of three frameworks.
#
# To go on another day, select this cell and choose *Run → Run All Above Selected Cell* first, because a new kernel
# does not know your functions yet.

# %%
gpulab.course.progress("16")

# %% [markdown]
# ## 8 · Activations
#
# ZeRO does not divide what backward needs from forward, because each rank has its own samples. A transformer
# layer with sequence length s, micro-batch b, width h and a heads keeps, in 16 bits and without any
# recomputation (V. Korthikanti et al., 2022),
#
#     bytes of a layer = s · b · h · (34 + 5 · a · s / h)
#
# The second term counts attention's scores and what softmax and dropout make of them. FlashAttention (lab 12)
# does not store them. The common estimate "batch × sequence × width × layers" is far too low, because it
# counts a single number per token and layer.
#
# **Predict.** GPT-3 has 96 layers, width 12,288 and 96 heads. How many GB do the activations of one sequence
# of 2,048 tokens take?

# %%
gpulab.predict("shard.activations", ...)

# %%


def activations(sequence, batch, width, heads):
    """Bytes that a layer keeps: everything, all but scores, or only its input."""
    unit = sequence * batch * width
    return unit * (34 + 5 * heads * sequence / width), 34 * unit, 2 * unit


gpt3 = [96 * size / 1e9 for size in activations(2048, 1, 12288, 96)]
gpulab.predict("shard.activations", measured=gpt3[0])
gpulab.plot.bars(
    dict(zip(("keep all", "all but scores", "only inputs"), gpt3, strict=True)),
    "GB per sequence, GPT-3",
    log=True,
)

# %% [markdown]
# Whatever is not kept must be computed again in backward (lab 08). There are three choices for each layer:
#
# | keep | bytes | FLOPs to do again |
# |---|---|---|
# | all | s b h (34 + 5 a s / h) | 0 |
# | all but scores | 34 s b h | 4 b s² h |
# | only the input | 2 s b h | 24 b s h² + 4 b s² h (a whole forward) |
#
# **Do.** Write `recompute(layers, batch, sequence, width, heads, memory)`, which picks a choice for each
# layer. About 10 lines.
#
# - Input: whole numbers. `memory` is in bytes, and always enough to keep the inputs of all layers.
# - Output: a list of three whole numbers, which say how many layers keep all, all but scores, and only their
#   input. Their sum is `layers`.
# - The bytes that these layers keep must fit into `memory`. What a layer needs while it is being recomputed
#   is not counted.
# - **Budget:** the fewest FLOPs to do again.


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
    """Percentage of a forward pass that is computed again if GPT-3's activations have so many bytes."""
    _, some, inputs = recompute(96, 1, 2048, 12288, 96, memory)
    scores, forward = 4 * 2048**2 * 12288, 24 * 2048 * 12288**2 + 4 * 2048**2 * 12288
    return 100 * (some * scores + inputs * forward) / (96 * forward)


gpulab.plot.lines(
    {"least recomputed": [(gb, share_again(gb * 10**9)) for gb in range(5, 281, 11)]},
    "GB for activations",
    "% of a forward pass",
    "Down to about 82 GB it is enough to drop scores, which is cheap. Below, whole layers are recomputed.",
)

# %% [markdown]
# **Why.** Scores are 70 % of GPT-3's activations but only 3 % of its forward work, so they are dropped first.
# This is called **selective recomputation**. Recomputing whole layers adds a forward pass to a step that had
# one forward and a backward of twice the work, so it costs a third more in all. The settings are called
# `activation_checkpointing` in DeepSpeed and `--recompute-granularity selective` or `full` in Megatron.
#
# ## 9 · Configurations
#
# ![16 GPUs as a box: 2 in tensor parallel, 2 in the pipeline, and what is left, 16 ÷ (2 · 2) = 4, in data parallel. The global batch is micro-batch × accumulation × 4.](drawings/product_of_sizes.svg)
#
# **DeepSpeed** reads its settings from a JSON file. Its engine then does what you wrote above, in three
# calls:
#
#     engine, optimizer, _, _ = deepspeed.initialize(model=model, model_parameters=…, config="ds.json")
#     loss = engine(batch); engine.backward(loss); engine.step()
#
# `engine.step()` is called after every micro-batch, because the engine knows when an accumulation is
# complete. Every such file must satisfy one identity:
#
#     train_batch_size = train_micro_batch_size_per_gpu × gradient_accumulation_steps × data-parallel ranks
#
# Tensor parallelism cuts a copy of the model inside its layers, and pipeline parallelism cuts it between
# layers (lab 17). Together they spread one copy over tensor × pipeline GPUs. So the number of data-parallel
# ranks is the number of all GPUs divided by that product. Two of the three batch numbers determine the third.
# If a file gives all three, they may contradict each other.
#
# **Predict.** The batch is 1,536 and the micro-batch 1, on 1,024 GPUs with tensor 8 and pipeline 8. How many
# accumulation steps are there?

# %%
gpulab.predict("shard.accumulate", ...)

# %% [markdown]
# The file in the next cell has several mistakes that common guides have, too. Which of them would stop a run,
# and which would only slow it down?

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
SCHEDULERS = {  # the keys that each type takes: deepspeed/runtime/lr_schedules.py, August 2026
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
# **Do.** Write `config(settings, gpus, tensor, pipeline)`, which checks such a file. About 25 lines.
#
# - `settings` is a dictionary like `COMMON`. Any part of it may be missing, but at least two of the three
#   batch numbers are given. A `scheduler` always has `params` and one of the three types, and an offload
#   always has a `device`.
# - `gpus`, `tensor` and `pipeline` are whole numbers, and there are at least tensor × pipeline GPUs.
# - Output: `{"batch": […], "problems": […]}`. `batch` lists the three numbers in the order of the identity,
#   with a missing one worked out. It is `None` if no whole numbers satisfy the identity. The data-parallel
#   ranks must be whole, too. `problems` is a sorted list of words from this table:
#
# | word | when |
# |---|---|
# | `batch` | the identity cannot hold |
# | `fp16 and bf16` | both have `enabled` true |
# | `offload_param` | its `device` is not `none`, and the `stage` (0 if not given) is below 3 |
# | `offload_optimizer` | its `device` is not `none`, and the stage is 0 |
# | `pipeline` | `pipeline` is above 1, and the stage is 2 or 3 |
# | `reduce_bucket_size`, `allgather_bucket_size` | given, and below 5,000,000, a hundredth of the default (our own rule) |
# | a key of the scheduler's `params` | its `type` does not take this key |
#
# Keys that `params` lacks are not reported, although WarmupCosineLR also needs `total_num_steps`. Full marks
# need every answer right.


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
# **Why.** A file that gives all three batch numbers is valid for a single number of GPUs, so leave one out.
# DeepSpeed refuses wrong scheduler keys, a false identity, both formats at once, and pipelines with stage 2
# or 3. `offload_param` is documented for stage 3 only. Small buckets are accepted, but each message pays its
# latency.

# %% [markdown]
# ### What else DeepSpeed has
#
# | feature | what it does | its makers' best case |
# |---|---|---|
# | 1-bit Adam, 1-bit LAMB, 0/1 Adam | send the momentum in one bit per number between nodes, and keep the errors (lab 15) | 5, 4.6 and 26 times fewer bytes |
# | 3-D parallelism | combines ZeRO-1 with tensor and pipeline parallelism | – |
# | progressive layer dropping | skips layers at random, more often as training goes on | – |
# | DeepSpeed-Chat | reinforcement learning from human feedback (RLHF): a model trains and generates in turn | – |
#
# (deepspeed.ai tutorials on 1-bit Adam, 1-bit LAMB and 0/1 Adam; August 2026.)

# %% [markdown]
# ### Megatron and DeepSpeed together
#
# ![Megatron and DeepSpeed together: inside a node the tensors are cut, between some nodes the layers, and over what is left DeepSpeed shards the optimizer's state.](drawings/together.svg)
#
# Megatron-LM has tensor and pipeline parallelism (lab 17), and DeepSpeed has ZeRO and offload. The fork
# **Megatron-DeepSpeed**, which trained BLOOM, has both. Megatron's settings are arguments of the command, and
# DeepSpeed's are in a JSON file:
#
#     deepspeed pretrain_gpt.py --tensor-model-parallel-size 8 --pipeline-model-parallel-size 4 \
#         --micro-batch-size 1 --global-batch-size 1536 --deepspeed --deepspeed_config ds.json --zero-stage 1
#
# (Flags as in its `examples_deepspeed`, July 2025.) Pipelines are combined with ZeRO-1 only, because a step has many
# backward passes. With stage 2 each of them would reduce-scatter gradients, and with stage 3 each would also gather
# the weights. Megatron-LM's own ZeRO-1 is called `--use-distributed-optimizer`.
#
# The JSON file repeats numbers of the command, and neither states the number of data-parallel ranks. So the file can
# be worked out from the command and the number of GPUs. **NeMo 2.0**, which is built on Megatron Core, takes the
# same numbers as arguments of Python objects. For the command above with `--seq-length 2048 --bf16`, on 1,024 GPUs,
# they are:

# %%
EXAMPLE = {
    "deepspeed": {
        "train_batch_size": 1536,
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 48,
        "zero_optimization": {"stage": 1},
        "bf16": {"enabled": True},
    },
    "strategy": {  # nl.MegatronStrategy
        "tensor_model_parallel_size": 8,
        "pipeline_model_parallel_size": 4,
        "sequence_parallel": False,
    },
    "trainer": {"devices": 8, "num_nodes": 128},  # nl.Trainer; devices are those of a node
    "data": {"seq_length": 2048, "micro_batch_size": 1, "global_batch_size": 1536},  # llm.MockDataModule
}

# %% [markdown]
# **Do.** Write `translate(command, gpus)` for nodes of 8 GPUs.
#
# - **Input:** `command` is the list of words after the program's name, such as `["--micro-batch-size", "1",
#   "--bf16"]`. A value may also be joined to its flag, as in `"--zero-stage=1"`. No value begins with `--`. `gpus`
#   is a multiple of 8.
# - **Flags:** those of the command above, and `--seq-length`, `--sequence-parallel`, `--bf16` or `--fp16`, and
#   others that do not matter. The two sizes for tensors and pipelines are 1 if they are missing. Micro-batch,
#   batch, length and stage are always given.
# - **Output:** a dictionary like `EXAMPLE`. `"bf16"` or `"fp16"` is in `"deepspeed"` only if its flag is
#   given.
# - **Or `None`**, if the command cannot run: tensor × pipeline does not divide the GPUs, the batch does not divide
#   into micro-batches for all data-parallel ranks, or a pipeline is combined with a stage above 1.
#
# Full marks need every answer right. About 30 lines.


# %% nbgrader={"grade": false, "grade_id": "translate", "locked": false, "schema_version": 3, "solution": true, "task": false}
def translate(command, gpus):
    ### BEGIN SOLUTION
    words = [part for word in command for part in word.split("=", 1)]
    flags = {}
    for word in words:
        if word.startswith("--"):
            flag = word
            flags[flag] = True
        else:
            flags[flag] = word
    tensor = int(flags.get("--tensor-model-parallel-size", 1))
    pipeline = int(flags.get("--pipeline-model-parallel-size", 1))
    micro, batch = int(flags["--micro-batch-size"]), int(flags["--global-batch-size"])
    stage, ranks = int(flags["--zero-stage"]), gpus // (tensor * pipeline)
    if gpus % (tensor * pipeline) or batch % (micro * ranks) or (pipeline > 1 and stage > 1):
        return None
    deepspeed = {
        "train_batch_size": batch,
        "train_micro_batch_size_per_gpu": micro,
        "gradient_accumulation_steps": batch // (micro * ranks),
        "zero_optimization": {"stage": stage},
    }
    for kind in ("bf16", "fp16"):
        if f"--{kind}" in flags:
            deepspeed[kind] = {"enabled": True}
    strategy = {
        "tensor_model_parallel_size": tensor,
        "pipeline_model_parallel_size": pipeline,
        "sequence_parallel": "--sequence-parallel" in flags,
    }
    data = {
        "seq_length": int(flags["--seq-length"]),
        "micro_batch_size": micro,
        "global_batch_size": batch,
    }
    trainer = {"devices": 8, "num_nodes": gpus // 8}
    return {"deepspeed": deepspeed, "strategy": strategy, "trainer": trainer, "data": data}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "translate-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("shard.translate", translate)

# %%
gpulab.need(translate)

BLOOM_LIKE = [
    "--pipeline-model-parallel-size",
    "4",
    "--micro-batch-size",
    "1",
    "--global-batch-size",
    "1536",
    "--seq-length",
    "2048",
    "--bf16",
    "--zero-stage",
    "1",
    "--tensor-model-parallel-size",
]
print("1,024 GPUs as above is the example:", translate([*BLOOM_LIKE, "8"], 1024) == EXAMPLE)
steps = {}
for gpus in (128, 256, 512, 1000, 1024, 2048):
    made = translate([*BLOOM_LIKE, "8"], gpus)
    steps[f"{gpus:,} GPUs"] = made["deepspeed"]["gradient_accumulation_steps"] if made else 0
gpulab.plot.bars(
    steps,
    "accumulation steps",
    caption="Twice the GPUs, half the steps. 1,000 GPUs cannot be divided by 8 · 4, so nothing runs.",
)

# %% [markdown]
# **Why.** A command, a file and an object say the same thing, and each of them leaves out something that follows
# from the number of GPUs. If a number is written down twice, as the batch here, the two can contradict each other
# after the next change. So generate one of them from the other.

# %% [markdown]
# ### NeMo: configuration in Python
#
# NeMo 1.0 was configured in YAML, and its models read it with defaults, as in
# `cfg.get('tensor_model_parallel_size', 1)` (`megatron_base_model.py`). **NeMo 2.0** (2024) is configured in
# Python, as in `strategy` above. What difference does that make?
#
# **Predict.** A YAML file says `tensor_model_paralel_size: 8`. How many ranks share a layer?

# %%
gpulab.predict("shard.typo", ...)

# %%
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Strategy:  # ours, in the manner of nl.MegatronStrategy
    tensor_model_parallel_size: int = 1
    pipeline_model_parallel_size: int = 1


from_yaml = {"tensor_model_paralel_size": 8}  # what a reader of YAML returns
gpulab.predict("shard.typo", measured=from_yaml.get("tensor_model_parallel_size", 1))
try:
    Strategy(tensor_model_paralel_size=8)
except TypeError as error:
    print("Python, before anything is launched:", error)

gpulab.need(memory)
seventy_billion, gpus, base = 70_000_000_000, 512, Strategy(pipeline_model_parallel_size=4)
needs = {}
for tensor in (1, 2, 4, 8):
    strategy = replace(base, tensor_model_parallel_size=tensor)
    cut = strategy.tensor_model_parallel_size * strategy.pipeline_model_parallel_size
    needs[f"tensor {tensor}, pipeline 4"] = memory(seventy_billion // cut, gpus // cut, 1) / 1e9
gpulab.plot.bars(
    needs,
    "GB for states per GPU, 70 billion parameters on 512 GPUs, ZeRO-1",
    budget=80,
    caption="A loop in Python makes four configurations and says which of them leave room for activations.",
)

# %% [markdown]
# **Why.** No code reads the misspelt key, so the run starts without tensor parallelism. A constructor, by contrast,
# rejects an argument that it does not know. A configuration in Python can also be computed: a loop makes variants,
# and a function that checks memory or the batch runs before a GPU is rented.
#
# *NeMo-Run* wraps such calls (`run.Partial`) and launches them. **AutoModel** trains Hugging Face models with
# FSDP2. By 2026 NVIDIA's guide recommends moving to *Megatron Bridge*, which has the same ideas. (NeMo
# Framework User Guide 25.02; "NeMo 2.0 to Megatron Bridge Migration Guide", 2026.)

# %% [markdown]
# ## 10 · Which framework, which recipe
#
# | your situation | use |
# |---|---|
# | all states fit on each GPU | DDP |
# | a PyTorch model whose states fit over all GPUs together | FSDP2 |
# | the same, but host memory or NVMe must help | DeepSpeed ZeRO-3 with offload |
# | hundreds of GPUs and a standard transformer | Megatron Core: tensor × pipeline × data, ZeRO-1 |
# | code that uses FairScale | move it to FSDP2 |
#
# Fine-tuning is far cheaper. **LoRA** (lab 14) trains small matrices, its adapters, beside frozen weights,
# and **QLoRA** does so beside weights in 4 bits. A frozen weight has no gradient and no states, so it takes
# only 2 bytes, or half a byte.
#
# **Predict.** All 70 billion parameters of a model are trained. How many GPUs of 80 GB are needed for the
# sixteen bytes alone?

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
    {name: size / 1e9 for name, size in recipes.items()}, "GB per GPU, 8 GPUs", budget=80, log=True
)

# %% [markdown]
# **Why.** A published recipe reads "ZeRO-2 for 70B". That can only work because its weights have 4 bits. ZeRO-2
# divides no weights, and 140 GB of 16-bit weights do not fit on a GPU of 80 GB. FSDP can cut 4-bit weights as well,
# provided they are *stored* in the float format of all other tensors in the group
# (`bnb_4bit_quant_storage=torch.bfloat16`). In this way two GPUs of 24 GB can fine-tune a 70B model (bitsandbytes
# documentation, "FSDP-QLoRA"). According to the figure each of them holds 46.2 / 2 = 23.1 GB, which leaves 0.9 GB.
# So sequences must be short and activations recomputed, or some states offloaded.
#
# **Decide.** Ungraded. Write down one line with a number for each case, then open the answers.
#
# 1. 8 B parameters, all trained, on one node of 8 GPUs with 80 GB each.
# 2. 70 B parameters, all trained, on two such nodes, with 400 Gbit/s per GPU between them.
# 3. 405 B parameters from scratch on 2,048 GPUs.
#
# <details><summary>Answers</summary>
#
# 1. The states take 128 GB, so DDP is impossible. With FSDP2 over 8 GPUs they take 16 GB each, and the rest
#    is free for activations.
# 2. 1,120 GB over 16 GPUs are 70 GB of 80, which is too tight for activations. Offload the optimizer states
#    to the host. These are 12 of the 16 bytes, so 17.5 GB stay on each GPU. Otherwise find more GPUs.
# 3. Use tensor 8 inside a node, a pipeline between nodes, and ZeRO-1 over the rest. With ZeRO-3 alone, each
#    GPU would gather 810 GB twice per micro-batch.
# </details>
#
# ## Detective · A loss that depends on the ranks
#
# A colleague shows you her ZeRO step with gradient clipping. "Without clipping, the losses on one rank and on
# four agree at every step. With clipping they differ from the start, although I clip to the same norm!"

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
    """The gradient of the mean squared error of this rank's part of the data."""
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
    "With the same limit, four ranks take other steps than one rank. A lower loss does not make them right.",
)

# %% [markdown]
# **Do.** Find the cause with numbers that you compute. From zero weights, run `their_step` on one rank and on four,
# and compare how far each weight moved with RATE times its gradient. The next cell is for this experiment and is not
# graded. Call `gradient_of` and `their_step` inside `distributed.run`.
#
# Then write `clip(gradient, limit)`. About 5 lines.
#
# - Input: `gradient`, this rank's shard of the mean gradient, FP32. Shards may differ in length. `limit` is a
#   positive float.
# - Output: this rank's shard of the gradient clipped to a norm of `limit` over **all** ranks, as a new
#   tensor. A gradient that is no longer than `limit` is returned unchanged, and a gradient of zeros stays
#   zero.
# - Allowed: `all_reduce`, `all_gather`, sends and receives.
# - **Budget:** the busiest rank sends at most 24 bytes.

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
# Answer in three to five sentences. What was wrong, why did it not show without clipping, and which numbers from your
# experiment show it? Does the step still go in the gradient's direction?
#
# The answer is worth 2 points, which a person gives: 1 point for the cause, and 1 point for a number that you
# measured.

# %% [markdown] nbgrader={"grade": true, "grade_id": "clip-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** Each rank clips by the norm of its own shard instead of the norm of the whole gradient.
# Without clipping no norm is used, and on one rank the shard is the whole gradient, so nothing shows. From
# zero weights the gradient's norm is 21.7. On one rank every weight moves 0.185 times as far as without
# clipping (4 / 21.7), and the step is 4 · RATE long. On four ranks the shards' norms are 0.57, 4.1, 10.2 and
# 18.7, so their factors are 1, 0.98, 0.39 and 0.21, and the step is 6.95 · RATE long. The factors differ from
# shard to shard, so the step no longer goes in the gradient's direction (cosine 0.88).
#
# **1 point** (cause without a number): Each rank clips by the norm of its own shard instead of the norm of
# all shards together.
#
# **0 points:** Floating-point sums depend on their order. Or: the gradient is averaged twice.

# %% [markdown]
# ## Beyond · How far to shard
#
# This task is open-ended and ungraded. You have 32 GPUs in 4 nodes and a model of 7 billion parameters, which
# are 14 GB in 16 bits. In **hybrid sharding** a group of GPUs shares one copy of the states. Weights are
# gathered inside the group and gradients are reduce-scattered there. Then the shards of the gradients are
# all-reduced between groups. Links inside a node and links between nodes can be busy at the same time.
#
# Model a step of your own, as `hybrid` does. The states must fit into 80 GB. The figure of merit is the time
# for communication.
#
# | way | ms |
# |---|---|
# | shard over all 32 | printed below |
# | shard over a node, all-reduce between nodes | printed below |
# | yours | yours |
# | a reference: three collectives inside a node, with everything between nodes hidden behind them | printed below |
#
# The reference is not a bound. With fewer collectives inside a node, or with smaller groups, a step can be
# shorter.

# %%
nodes = {
    "inside": costs.Network(5e-6, float(hardware.link("NVLink 4").per_direction)),
    "between": costs.Network(5e-6, float(hardware.link("InfiniBand NDR").per_direction)),
}


def hybrid(group, size=14e9):
    """Seconds of a step: three collectives inside groups of `group` GPUs, an all-reduce of shards between."""
    network = nodes["inside"] if group <= 8 else nodes["between"]
    within = 3 * costs.ring_all_gather(network, group, size)
    return within + costs.ring_all_reduce(nodes["between"], 32 // group, size / group)


print(f"over all 32: {1e3 * hybrid(32):.0f} ms; over a node: {1e3 * hybrid(8):.0f} ms")
print(f"reference: {1e3 * 3 * costs.ring_all_gather(nodes['inside'], 8, 14e9):.0f} ms")

# %% [markdown]
# ## Recap
#
# <details><summary>1. Which of the sixteen bytes does each stage divide?</summary>
#
# Stage 1 divides the optimizer's 12, stage 2 also the gradient's 2, and stage 3 also the weight's 2.
# </details>
#
# <details><summary>2. Why does ZeRO-2 need no more traffic than DDP?</summary>
#
# An all-reduce is a reduce-scatter and an all-gather. ZeRO-2 runs the optimizer between these two, and
# gathers weights instead of gradients.
# </details>
#
# <details><summary>3. Why does ZeRO-3 need 1.5 times DDP's traffic?</summary>
#
# Weights are gathered in forward and again in backward, and gradients are reduce-scattered. Each of the three
# is half an all-reduce.
# </details>
#
# <details><summary>4. Activations do not fit. What do you drop first?</summary>
#
# Whatever is large and cheap to compute again, which means attention's scores. After that, whole layers
# except for their inputs.
# </details>
#
# <details><summary>5. Batch 512, micro-batch 32, accumulation 4: on how many GPUs does this run?</summary>
#
# On four data-parallel ranks and no other number, because 512 / (32 · 4) = 4.
# </details>

# %%
gpulab.recap("16")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | states | 16 B per parameter: 2 + 2 + 12 in 16-bit training, 4 + 4 + 8 in FP32; 18 B with AMP |
# | stages 1, 2, 3 on N ranks | 4 + 12/N, 2 + 14/N, 16/N bytes per parameter |
# | traffic of stages 1 and 2 | as DDP: 2 (N − 1)/N · S |
# | traffic of stage 3 | 1.5 × DDP |
# | FSDP2 | `fully_shard` on each layer, then on the model |
# | activations of a layer | s b h (34 + 5 a s / h) B in 16 bits |
# | recompute | scores first; recomputing all layers costs a third more work |
# | offload | fetch ahead; keep the last layers for the start of backward |
# | batch | micro-batch × accumulation × GPUs / (tensor · pipeline) |
# | clip | use the norm over all shards: all-reduce the sum of squares |
#
# ### Claims you will meet, and what is right
#
# - *ZeRO-1 takes O(P/N + G).* The weights stay whole: 4 Ψ + 12 Ψ/N bytes for Ψ parameters.
# - *ZeRO-1 saves 4 ×, ZeRO-2 8 ×.* Only in the limit of many ranks.
# - *Optimizer states are two to three times the model.* Twice in FP32, but six times the 16-bit weights in
#   16-bit training.
# - *GPT-3 in training has about 650 GB of weights.* It has 350 GB in 16 bits, and 2.8 TB with gradients and
#   states.
# - *GPUs = 6 × parameters × bytes / memory.* Take 16 bytes per parameter, add the activations, which depend
#   on batch and sequence, and round up.
# - *FSDP can be switched between DDP, ZeRO-1 and ZeRO-2.* It has `FULL_SHARD`, `SHARD_GRAD_OP`, `NO_SHARD`
#   and `HYBRID_SHARD`.
# - *FairScale is the choice for production.* Its FSDP lives on in PyTorch.
# - *WarmupCosineLR takes `warmup_max_lr`.* That scheduler takes ratios of the optimizer's rate.
# - *Global batch = micro-batch × GPUs.* Multiply by accumulation, too, and count data-parallel ranks instead
#   of GPUs.
# - *Activations are batch × sequence × width × layers.* Multiply that by 34 bytes and more: GPT-3 has 275 GB
#   per sequence, not 5.
# - *1-bit Adam: up to 26 × within a node.* It is 5 × between nodes. The 26 × are 0/1 Adam's.
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
