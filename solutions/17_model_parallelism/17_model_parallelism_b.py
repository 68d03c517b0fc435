# ---
# jupyter:
#   gpulab:
#     lab: "17"
#     hours: 3
#     topics: [C16.2, C16.4, C16.5, C16.6, C16.7, C16.8]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 17 B · Model parallelism: across layers, and all together
#
# **About three hours.** You know labs 12 and 15 and part A. No GPU needed.
#
# Part A cut layers into pieces. Here whole layers go to different devices, and micro-batches flow through
# them as through an assembly line. Then experts, and then everything at once: which rank does what?
#
# When you are through, you can
#
# 1. say how long a pipeline idles, and how many micro-batches make that small;
# 2. write the order of work that holds p micro-batches instead of m;
# 3. say what interleaving and a split backward buy, and what each costs;
# 4. send tokens to their experts and count the bytes;
# 5. find the layout of a model on a cluster, and see what a wrong rank map costs.

# %%
import itertools
import time
from types import SimpleNamespace

import torch
import torch.distributed as dist

import gpulab
from gpulab import distributed, hardware
from gpulab.distributed import layouts
from gpulab.distributed.pipelines import Work, simulate

gpulab.start("17")

# %% [markdown]
# ## 1 · Ways to cut a model
#
# A training step has three axes to cut: the samples, the layers, the insides of a layer. A fourth is the
# state that training keeps. **Sharding** a model means that no device holds all of it.
#
# | way | what a device holds | what travels | lab |
# |---|---|---|---|
# | **data parallel** | the whole model, some samples and *their* activations | gradients, once a step | 15 |
# | **ZeRO, FSDP** | a share of weights, gradients and optimizer state | weights and gradients | 16 |
# | **tensor parallel** | a slice of every layer | activations, twice a layer and direction | 17 A |
# | **sequence, context parallel** | some tokens of every sample | keys and values, or activations | 17 A |
# | **pipeline parallel** | some whole layers, a **stage** | activations, once a stage and direction | here |
# | **expert parallel** | some experts | tokens, to an expert and back | here |
#
# Words that get mixed up: tensor parallelism cuts *inside* layers, pipeline parallelism *between* them. A
# **mini-batch** is what one optimizer step sees; a pipeline cuts it into **micro-batches**. And
# `transformers.pipeline` runs a task such as translation; it is not about stages.
#
# ## 2 · Filling and draining
#
# Stage 1 needs what stage 0 computes. With a single batch one device works and the others wait. With m
# micro-batches device 0 starts the second while device 1 works on the first. **GPipe** (Huang et al., 2019)
# runs all forwards, then all backwards.
#
# A **schedule** is an order of work for each device. `"F3"` is the forward of micro-batch 3, `"B3"` its
# backward. Take one **step** of time for each. `simulate` starts each operation as soon as its device is free
# and its input is there; that is a model, nothing is measured.
#
# **Predict.** Four devices, 8 micro-batches. For which share of the time do the devices idle?

# %%
gpulab.predict("parallel.idle", ...)


# %%
def gpipe(devices, batches):
    one = [f"F{i}" for i in range(batches)] + [f"B{i}" for i in range(batches)]
    return [one for _ in range(devices)]


def run(schedule, **options):
    return simulate([[Work(word[0], int(word[1:])) for word in order] for order in schedule], **options)


theirs = run(gpipe(4, 8))
gpulab.predict("parallel.idle", measured=100 * theirs.bubble)
gpulab.plot.schedule(theirs.slots, peaks=theirs.peak)

# %% [markdown]
# **Step through it.** Drag the slider to see who works on what, who waits, and how many micro-batches' activations
# each device holds at that moment.

# %%
from gpulab.plot.moving import PipelineSteps

PipelineSteps(theirs.slots)

# %% [markdown]
# **See.** The gaps are the **bubble**. The pipeline fills at the left and drains at the right. In the middle
# forwards drain and backwards fill: device 0 waits there for its first gradient, its only idle time.
#
# **Why.** With p devices and m micro-batches each device works 2 m steps, and all are through after 2 (m + p
# − 1). The idle share is (p − 1) / (m + p − 1); as an extra on the work it is (p − 1) / m. Guides mix the
# two. GPipe's authors call it negligible from m = 4 p on.
#
# **Predict.** Eight devices. How many micro-batches keep the idle share at or below 5 %?

# %%
gpulab.predict("parallel.enough", ...)

# %%
for p in (2, 4, 8, 16):
    shares = {f"m = {k} p": run(gpipe(p, k * p)).bubble for k in (1, 2, 4, 8, 16)}
    print(f"p = {p:2}  idle:", ", ".join(f"{name} {100 * share:.1f} %" for name, share in shares.items()))

# %% [markdown]
# "Twice as many micro-batches as stages", as some guides advise, leaves 20 to 32 % of the time idle here. But
# m is bounded: the batch is given (lab 15), and very small micro-batches compute slowly.
#
# ## 3 · The same bubble with less memory
#
# Forward keeps activations until backward has used them. GPipe's device 0 holds all m micro-batches at once.
# But the last device could do B0 right behind F0, and then the gradient would be on its way.
#
# **1F1B** (PipeDream-Flush; Narayanan et al., 2021): a few forwards to fill the line, then one forward and
# one backward in turn, then the remaining backwards. Peaks stop growing with m.
#
# **Do.** Write `schedule(devices, batches)`: a list for each device of words `"F0"`, `"B0"`, …, each
# micro-batch once forward and once backward. `gpulab.plot.schedule(run(schedule(4, 8)).slots)` draws yours.
# **Budget** at (4, 8): 22 steps, as GPipe, and at most 4 micro-batches held. About 7 lines.


# %% nbgrader={"grade": false, "grade_id": "schedule", "locked": false, "schema_version": 3, "solution": true, "task": false}
def schedule(devices, batches):
    ### BEGIN SOLUTION
    orders = []
    for device in range(devices):
        warm = min(devices - 1 - device, batches)
        order = [f"F{i}" for i in range(warm)]
        for i in range(batches - warm):
            order += [f"F{warm + i}", f"B{i}"]
        orders.append(order + [f"B{i}" for i in range(batches - warm, batches)])
    return orders
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "schedule-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.schedule", schedule)

# %%
gpulab.need(schedule)
mine = run(schedule(4, 8))
gpulab.plot.schedule(mine.slots, peaks=mine.peak)

# %%
PipelineSteps(mine.slots)

# %% [markdown]
# **Why.** Device d must have p − d micro-batches under way before its first gradient is back. More do not
# make it faster. So 1F1B saves memory, not time: the same 22 steps. What it saves can be spent on larger m,
# and *that* shrinks the bubble.

# %% jupyter={"source_hidden": true}
gpulab.need(schedule)
peaks = {
    "GPipe": [(m, max(run(gpipe(4, m)).peak)) for m in (4, 8, 16, 32)],
    "1F1B": [(m, max(run(schedule(4, m)).peak)) for m in (4, 8, 16, 32)],
}
gpulab.plot.lines(
    peaks,
    "micro-batches in a step",
    "held by device 0 at most",
    "GPipe holds all micro-batches of a step, 1F1B never more than there are devices, here four.",
)

# %% [markdown]
# ## 4 · The slowest stage
#
# A pipeline moves at the pace of its slowest stage; all others wait for it in every round. Layers of a
# transformer are alike, but the first stage also has the embedding and the last one the head, a product with
# the whole vocabulary, and the loss.
#
# **Do.** Write `stages(times, devices)`. `times` are whole numbers, in the order of the layers. Cut them into
# consecutive stages, at least one layer each, so that the slowest is as fast as it can be. Return how many
# layers each stage has. There are at least as many layers as devices. **Budget:** the least possible. About
# 12 lines.


# %% nbgrader={"grade": false, "grade_id": "stages", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stages(times, devices):
    ### BEGIN SOLUTION
    def cut(limit):
        counts, filled = [0], 0
        for place, layer in enumerate(times):
            left, open_stages = len(times) - place, devices - len(counts)
            if counts[-1] and (filled + layer > limit or left <= open_stages):
                counts.append(0)
                filled = 0
            counts[-1] += 1
            filled += layer
        return counts

    limit = max(times)
    while len(cut(limit)) > devices:
        limit += 1
    return cut(limit)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "stages-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.stages", stages)

# %%
gpulab.need(stages)
layers = [2] + [4] * 22 + [18]  # an embedding, 22 layers, a head with the loss
for name, counts in (("equal counts", [6, 6, 6, 6]), ("yours", stages(layers, 4))):
    ends = list(itertools.accumulate(counts))
    took = [sum(layers[end - n : end]) for n, end in zip(counts, ends, strict=True)]
    print(f"{name:13} layers {counts}   times {took}   the pace is {max(took)}")

# %% [markdown]
# **Why.** Equal counts are 36 % slower here, in every micro-batch, although only one stage is too long. That
# is why Llama 3's trainers gave the first and the last stage one layer less (Grattafiori et al., 2024,
# section 3.3). Memory is uneven as well: device 0 holds p micro-batches and the last one a single one.
#
# ## 5 · On real processes
#
# Now four processes, each with a stage of its own and nothing else, joined by gloo. A rank walks its order:
# it receives an input, computes, sends the result on. Sends must not wait (`isend`): device 0 sends an
# activation while device 1 sends a gradient, and if each waited for the other to receive, none would. The
# `tag` says which micro-batch a message belongs to.
#
# Your machine may have fewer cores than ranks, so each operation also sleeps for 20 ms. The times are real
# otherwise.

# %%
WIDTH, SAMPLES = 64, 8


def stage(rank):
    torch.manual_seed(rank)
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh())


def batch(number):
    return torch.randn(2, SAMPLES, WIDTH, generator=torch.Generator().manual_seed(number))  # input, target


def work_through(orders, batches):
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    layer, kept, sends, slots, held = stage(rank), {}, [], [], []
    first = layer(torch.zeros(1, WIDTH))  # the first backward of a process loads what it needs: not timed
    first.backward(torch.zeros_like(first))
    layer.zero_grad()
    dist.barrier()
    began = time.monotonic()
    for word in orders[rank]:
        kind, number = word[0], int(word[1:])
        message = torch.empty(SAMPLES, WIDTH)
        if kind == "F":
            if rank == 0:
                message = batch(number)[0]
            else:
                dist.recv(message, rank - 1, tag=number)
            start = time.monotonic() - began
            x = message.requires_grad_()
            y = layer(x)
            if rank == last:
                y = ((y - batch(number)[1]) ** 2).mean() / batches
            kept[number] = x, y
            held.append(len(kept))
            time.sleep(0.02)
            if rank < last:
                sends.append(dist.isend(y.detach(), rank + 1, tag=number))
        else:
            if rank < last:
                dist.recv(message, rank + 1, tag=number)
            start = time.monotonic() - began
            x, y = kept.pop(number)
            y.backward(None if rank == last else message)
            time.sleep(0.02)
            if rank > 0:
                sends.append(dist.isend(x.grad, rank - 1, tag=number))
        stop = time.monotonic() - began
        slots.append(
            SimpleNamespace(device=rank, work=Work(kind, number), start=1e3 * start, stop=1e3 * stop)
        )
    for send in sends:
        send.wait()
    return [p.grad for p in layer.parameters()], slots, max(held)


# %%
gpulab.need(schedule)
ran = distributed.run(work_through, 4, schedule(4, 8), 8)
slots = [slot for _, part, _ in ran for slot in part]
sent = sum(call.bytes for call in ran.calls if call.operation == "send")
print(f"{sent:,} B sent: {sent // (SAMPLES * WIDTH * 4)} messages of {SAMPLES * WIDTH * 4:,} B")
gpulab.plot.schedule(slots, "ms", peaks=[held for _, _, held in ran])

# %% [markdown]
# And is it the same training step? One process with all four stages, the whole mini-batch at once:

# %%
gpulab.need(schedule)
model = torch.nn.Sequential(*[stage(rank) for rank in range(4)])
inputs, targets = torch.cat([batch(i) for i in range(8)], 1)
((model(inputs) - targets) ** 2).mean().backward()
alone = [p.grad for p in model.parameters()]
piped = [gradient for gradients, _, _ in ran for gradient in gradients]
print(
    "largest difference of a gradient:",
    max(float((a - b).abs().max()) for a, b in zip(alone, piped, strict=True)),
)

# %% [markdown]
# **Why.** Gradients of micro-batches add up, so a pipeline with a flush computes what one device would, up to
# rounding. 3 boundaries · 2 directions · 8 micro-batches are 48 messages: far fewer bytes than tensor
# parallelism, and from one neighbour to the next only. That is why stages may lie on different nodes.
#
# PyTorch's own is `torch.distributed.pipelining` (`ScheduleGPipe`, `Schedule1F1B`, `ScheduleInterleaved1F1B`,
# `ScheduleInterleavedZeroBubble`, …). `torch.distributed.pipeline.sync.Pipe`, which older guides import, was
# removed.
#
# ## 6 · Smaller pieces, smaller bubble
#
# Give each device two **chunks** of half as many layers: with 16 layers on 4 devices, device 0 gets layers
# 0–1 and 8–9. A micro-batch goes round twice. An operation takes half as long, and filling still takes p − 1
# of them. That is Megatron's **interleaved** schedule (Narayanan et al., 2021, who measured 10 % and more in
# throughput).
#
# **Predict.** Four devices, 8 micro-batches, two chunks. Which share is idle now?

# %%
gpulab.predict("parallel.chunks", ...)


# %%
def interleaved(devices, batches, chunks):
    """Groups of `devices` micro-batches go through all chunks; batches must be a multiple of devices."""
    count, span = batches * chunks, devices * chunks

    def work(kind, k):
        group, place = divmod(k, span)
        chunk, number = divmod(place, devices)
        return Work(kind, group * devices + number, chunk if kind == "F" else chunks - 1 - chunk)

    orders = []
    for device in range(devices):
        warm = min(2 * (devices - 1 - device) + (chunks - 1) * devices, count)
        order = [work("F", k) for k in range(warm)]
        for k in range(count - warm):
            order += [work("F", warm + k), work("B", k)]
        orders.append(order + [work("B", k) for k in range(count - warm, count)])
    return orders


chunked = simulate(interleaved(4, 8, 2))
gpulab.predict("parallel.chunks", measured=100 * chunked.bubble)
gpulab.plot.schedule(chunked.slots, "half steps", peaks=chunked.peak)

# %% [markdown]
# A number with a stroke is the second chunk. **Why.** v chunks divide the bubble by v. The price: v times as
# many messages, and more memory. Device 0 holds 11 halves, which is 5.5 micro-batches instead of 4.
#
# ## 7 · A backward in two halves
#
# Backward computes two things: the gradient of the *input*, which the device before is waiting for (**B**),
# and that of the *weights*, which nobody waits for until the optimizer runs (**W**). Each costs about as much
# as the forward. Apart, they are three operations of one step each, and W can wait for a hole in the
# schedule. This is **zero bubble** scheduling (P. Qi et al., 2023).
#
# Activations are held until W. With W right behind its B, (4, 8) takes 30 steps; as one operation of two
# steps it took 33. How long may W wait? In 1F1B device d holds p − d micro-batches. Here each may hold p, so
# there is room for some whose B is done and whose W is still open.
#
# **Do.** Write `zero_bubble(devices, batches)` with words `"F0"`, `"B0"`, `"W0"`, …, for batches ≥ devices.
# **Budget** at (4, 8): 27 steps, the least there is, and at most 4 micro-batches held. About 10 lines.


# %% nbgrader={"grade": false, "grade_id": "zero_bubble", "locked": false, "schema_version": 3, "solution": true, "task": false}
def zero_bubble(devices, batches):
    ### BEGIN SOLUTION
    orders = []
    for device in range(devices):
        warm = devices - 1 - device
        order = [f"F{i}" for i in range(warm)]
        for i in range(batches):
            if warm + i < batches:
                order.append(f"F{warm + i}")
            order.append(f"B{i}")
            if i >= device:
                order.append(f"W{i - device}")
        orders.append(order + [f"W{i}" for i in range(batches - device, batches)])
    return orders
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "zero_bubble-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.zero_bubble", zero_bubble)

# %%
gpulab.need(zero_bubble)
halves = run(zero_bubble(4, 8))
gpulab.plot.schedule(halves.slots, peaks=halves.peak)

# %% [markdown]
# **Why.** The last device starts p − 1 steps late and has 3 m steps to do: an iteration that starts with empty devices
# takes at least 3 m + p − 1. In ZB-H2, for twice the memory, the next iteration fills even that. DualPipe (DeepSeek-V3,
# 2024) feeds micro-batches from both ends.
#
# | schedule, (4, 8) | steps of time | idle | held by a device at most |
# |---|---|---|---|
# | GPipe, 1F1B | 33 (backward takes two) | 27.3 % | 8, 4 |
# | interleaved, v = 2 | 28.5 | 15.8 % | 5.5 |
# | zero bubble (ZB-H1) | 27 | 11.1 % | 4 |

# %% [markdown]
# ## 8 · Experts
#
# A **mixture of experts** (MoE) has E MLPs in a layer, the **experts**, and a **router**: a small linear layer whose
# softmax picks for each token the best expert (top-1, as in Switch Transformer) or a few. The output is the
# expert's, times its probability. Parameters grow with E, the work for a token does not: Mixtral 8x7B has 47 billion
# and uses 13 for a token (Jiang et al., 2024). Experts are blocks of one layer, not models for subjects.
#
# With **expert parallelism** each rank has its expert and its own tokens. An **all-to-all** takes tokens to the
# experts, another one back: `dist.all_to_all_single(got, rows, coming, leaving)`. Without the last two all parts are of
# one size. Rank i's `coming[j]` must be rank j's `leaving[i]`. A rank can count what leaves it; only the others know what
# comes.
#
# | | |
# |---|---|
# | `rows` | the first `leaving[0]` rows go to rank 0, the next `leaving[1]` to rank 1, … |
# | `got` | gets `coming[0]` rows from rank 0, then `coming[1]` from rank 1, … |
# | `coming`, `leaving` | lists of whole numbers |
#
# **Do.** Write `dispatch(x, choice, weight, expert)`. `x` (tokens × width) are this rank's tokens, `choice` (int64) their
# experts, `weight` their probabilities; `expert` (width × width) is this rank's. Return for each token weight · relu(x ·
# its expert). **Budget:** all ranks together send each token once there and once back, and 5 % more for counts. About 12
# lines.


# %% nbgrader={"grade": false, "grade_id": "dispatch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def dispatch(x, choice, weight, expert):
    ### BEGIN SOLUTION
    order = torch.argsort(choice)
    leaving = torch.bincount(choice, minlength=dist.get_world_size())
    coming = torch.empty_like(leaving)
    dist.all_to_all_single(coming, leaving)
    leaving, coming = leaving.tolist(), coming.tolist()
    rows = torch.empty(sum(coming), x.shape[1])
    dist.all_to_all_single(rows, x[order], coming, leaving)
    back = torch.empty_like(x)
    dist.all_to_all_single(back, torch.relu(rows @ expert), leaving, coming)
    y = torch.empty_like(x)
    y[order] = back
    return weight[:, None] * y
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "dispatch-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.dispatch", dispatch)

# %% [markdown]
# All ranks wait for the busiest expert. Here are 2,048 tokens around twelve directions, of which some are
# common, as in text, and a fresh router with 8 experts.
#
# **Predict.** Direction k is 1/k times as common as the first. How many times the mean load has the busiest
# expert, roughly?

# %%
gpulab.predict("parallel.load", ...)

# %%
torch.manual_seed(3)
EXPERTS, COUNT = 8, 2048
common = 1 / torch.arange(1, 13).float()
kinds = torch.multinomial(common, COUNT, replacement=True)
tokens = torch.randn(12, 32)[kinds] + 0.5 * torch.randn(COUNT, 32)
router = torch.nn.Linear(32, EXPERTS, bias=False)


def load():
    return torch.bincount(router(tokens).argmax(dim=1), minlength=EXPERTS)


def dropped(counts, factor=1.25):
    """Share of the tokens beyond an expert's capacity, `factor` times the mean load."""
    return 100 * float((counts - factor * COUNT / EXPERTS).clamp(min=0).sum()) / COUNT


fresh = load()
gpulab.predict("parallel.load", measured=float(fresh.max()) * EXPERTS / COUNT)
optimizer = torch.optim.Adam(router.parameters(), 0.01)
for _ in range(200):
    probabilities = router(tokens).softmax(dim=1)
    share = torch.bincount(probabilities.argmax(dim=1), minlength=EXPERTS) / COUNT
    balance = EXPERTS * (share * probabilities.mean(dim=0)).sum()  # 1 when even
    optimizer.zero_grad()
    balance.backward()
    optimizer.step()
trained = load()
for name, counts in (("fresh", fresh), ("balanced", trained)):
    print(f"{name:9} {counts.tolist()}   beyond a capacity of 1.25 times the mean: {dropped(counts):.1f} %")
gpulab.plot.panels(
    {
        f"{name}: tokens": {f"expert {e}": int(count) for e, count in enumerate(counts)}
        for name, counts in (("fresh", fresh), ("balanced", trained))
    },
    "The same tokens, fresh and after 200 steps for balance. Each half has a scale of its own.",
)

# %% [markdown]
# **Why.** Switch Transformer adds `balance`, times 0.01, to the loss: E · Σ share · mean probability,
# smallest when even. Here it was trained alone. Buffers have a **capacity**; tokens beyond it are dropped,
# and only the residual carries them on. DeepSeek-V3 adds a bias to the router's scores instead, and drops
# none. Top-k sends each token k times.
#
# ## 9 · Three dimensions at once
#
# A large run combines tensor (t), pipeline (p) and data parallelism (d), t · p · d = GPUs. Launchers number
# ranks node by node, so the **rank map** decides which groups share a node. With the order (tensor, data,
# pipeline), tensor varies fastest: ranks 0 … t − 1 are a tensor group.
#
# `layouts.cost(model, cluster, layout)` models a step (`help(layouts.cost)` has formulas and sources):
#
# | part | grows with |
# |---|---|
# | compute | 1 / (t · p · d); small micro-batches and thin slices compute slowly |
# | bubble | (p − 1) / m |
# | tensor | 4 all-reduces of activations for each layer and micro-batch |
# | pipeline | 2 messages for each micro-batch |
# | data | one all-reduce of the gradients |
#
# A group with neighbours on two nodes runs at the speed between nodes (levels, part A, are left out). `memory` of a GPU: 16 B for each of its
# parameters, and 34 B, over t, for each token, unit of width and layer of its stage, for min(p, m)
# micro-batches under way.

# %%
h100, nvlink, network = hardware.find("H100"), hardware.link("NVLink 4"), hardware.link("InfiniBand NDR")
cluster = {
    "nodes": 4,
    "per_node": 8,
    "memory": float(h100.dram_bytes),
    "rate": 0.6 * float(h100.peak("float16", tensor=True)),  # 60 % for large matrices: an assumption
    "half": 500,  # tokens at which a slice reaches half of that: an assumption
    "inside": float(nvlink.per_direction),
    "between": float(network.per_direction),  # a network card for each GPU
    "latency": 5e-6,  # an assumption
}
model = {"layers": 48, "width": 8192, "heads": 64, "sequence": 4096, "batch": 128}
good = {"tensor": 4, "pipeline": 4, "data": 2, "micro": 1, "order": ("tensor", "data", "pipeline")}
bad = good | {"order": ("data", "pipeline", "tensor")}
for name, layout_ in (("good", good), ("bad", bad)):
    print(f"{name:5} tensor groups {layouts.groups((4, 4, 2), layout_['order'], 'tensor')[:3]} …")


def told(name, layout_):
    found = layouts.cost(model, cluster, layout_)
    parts = ", ".join(f"{part} {seconds:.2f}" for part, seconds in found.parts.items())
    print(f"{name:5}{found.seconds:6.2f} s = {parts};  {found.memory / 1e9:.0f} GB")


told("good", good)

# %% [markdown]
# **Predict.** Same t, p, d, on 4 nodes of 8 GPUs; only the order of the ranks is a bad one. A link inside
# a node has 450 GB/s, one between nodes 50. How many times as long does a step take?

# %%
gpulab.predict("parallel.rank_map", ...)

# %%
told("bad", bad)
slow, fast = (layouts.cost(model, cluster, x).seconds for x in (bad, good))
gpulab.predict("parallel.rank_map", measured=slow / fast)

# %% [markdown]
# Nothing is wrong in the bad run: no error, the same losses, every GPU "busy". Only the order differs.
#
# **Do.** Write `layout(model, cluster)`: the fastest layout by `layouts.cost` that fits into memory, as a
# dictionary like `good`. `micro` divides the batch of a replica; `layouts.cost` raises `layouts.NoLayout`
# where numbers do not go together. **Budget:** at most 1 % above the best, also where the network is slow, one
# node is all there is, or small matrices are slower (`half`). About 20 lines.


# %% nbgrader={"grade": false, "grade_id": "layout", "locked": false, "schema_version": 3, "solution": true, "task": false}
def layout(model, cluster):
    ### BEGIN SOLUTION
    gpus = cluster["nodes"] * cluster["per_node"]
    parts = [n for n in range(1, gpus + 1) if gpus % n == 0]
    micros = [n for n in range(1, model["batch"] + 1) if model["batch"] % n == 0]
    best, least = None, float("inf")
    for tensor, pipeline in itertools.product(parts, parts):
        for micro in micros:
            for order in itertools.permutations(layouts.WAYS):
                this = {
                    "tensor": tensor,
                    "pipeline": pipeline,
                    "data": gpus // (tensor * pipeline),
                    "micro": micro,
                    "order": order,
                }
                try:
                    cost = layouts.cost(model, cluster, this)
                except layouts.NoLayout:
                    continue
                if cost.memory <= cluster["memory"] and cost.seconds < least:
                    best, least = this, cost.seconds
    return best
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "layout-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.layout", layout)

# %%
gpulab.need(layout)
rows = {
    "tensor over the node": good | {"tensor": 8, "pipeline": 2, "data": 2},
    "good": good,
    "bad order": bad,
}
rows |= {"yours": layout(model, cluster)}
for name, row in rows.items():
    found = layouts.cost(model, cluster, row)
    print(f"{name:21}{found.seconds:6.2f} s{found.memory / 1e9:5.0f} GB   {row}")
gpulab.plot.bars(
    {name: layouts.cost(model, cluster, row).seconds for name, row in rows.items()},
    "seconds a step",
    caption="Good and bad order have the same t, p and d: only which rank sits where differs.",
)

# %% [markdown]
# **Why.** Tensor parallelism talks most and belongs inside a node. It also thins the slices, so more of it is
# not better. Of the other two, the one that sends more bytes gets the rest of the node. In `good` these are
# the gradients; stages send half as many bytes, but between nodes, so theirs is the longer time. Memory
# decides how small t · p may be.
#
# Does the best layout depend on the cluster?

# %%
gpulab.need(layout)
long = {"layers": 24, "width": 2048, "heads": 16, "sequence": 8192, "batch": 256}
slow = cluster | {"between": 5e9}
others = {
    "as above": (model, cluster),
    "8 nodes of 4 GPUs": (model, cluster | {"nodes": 8, "per_node": 4}),
    "40 GB a GPU": (model, cluster | {"memory": 40e9}),
    "memory of an H200": (model, cluster | {"memory": float(hardware.find("H200").dram_bytes)}),
    "5 GB/s between nodes": (model, slow),
    "the same, narrow model": (long, slow),
}
print(f"{'':23}  t  p  d  micro  ranks in the order")
for name, (what, where) in others.items():
    found = layout(what, where)
    parts = "".join(f"{found[way]:3}" for way in layouts.WAYS)
    seconds = layouts.cost(what, where, found).seconds
    print(f"{name:23}{parts}{found['micro']:7}  {', '.join(found['order']):22}{seconds:6.2f} s")

# %% [markdown]
# **See.** Half as many GPUs in a node change nothing here: t = 2 and d = 2 fill a node of four. Less memory
# asks for larger t, more memory allows t = 1. A slow network asks for fewer stages and larger micro-batches:
# fewer and longer messages. The narrow model with long sequences has few weights and many activations, so its
# stages send more than its replicas, and `pipeline` moves into the node. The model is rough and a search costs
# nothing; what it proposes is then measured.

# %% [markdown]
# ## 10 · Where the names belong
#
# **Megatron-LM** (NVIDIA) is tensor, sequence and pipeline parallelism for transformers; its library is
# Megatron Core. In 2021 it trained a model of a trillion parameters on 3,072 A100 at 502 PFLOP/s (Narayanan
# et al.).
#
# **Predict.** What share of their dense 16-bit peak is that?

# %%
gpulab.predict("parallel.megatron", ...)

# %%
a100 = hardware.find("A100")
gpulab.predict("parallel.megatron", measured=100 * 502e15 / 3072 / float(a100.peak("float16", tensor=True)))

# %% [markdown]
# **More than one data centre.** NVIDIA reports 96 % of one site's throughput for a model of 340 billion
# parameters in data centres far apart, with NeMo 25.02 and Megatron Core 0.11 (NVIDIA blog, 2025). Only data
# parallelism crosses: an all-reduce by hierarchy (lab 18), in chunks that overlap with backward.
#
# **AutoTP** (DeepSpeed) finds in a Hugging Face model which linear layers to cut by columns and which by
# rows, and where the all-reduces go, for inference and, since 0.16.4, for training together with ZeRO.
# `parallelize_module` of PyTorch takes the same plan written out: `ColwiseParallel`, `RowwiseParallel`.
#
# **Domino** (DeepSpeed; G. Wang et al., 2024) cuts batch and weights of a tensor-parallel layer once more, so
# that one part computes while another is being reduced. Its headline says "communication-free"; its text says
# near-complete *hiding*. The bytes are all still there, and an operation that hides them must be there, too.
#
# ## Beyond · A pipeline with unequal times
#
# Open-ended and ungraded. Backward takes twice as long as forward, and a message takes a quarter of a
# forward. The figure of merit is the time of (4, 8), for at most 4 micro-batches held.
#
# | schedule | time |
# |---|---|
# | 1F1B | the cell below |
# | 1F1B with two more forwards at the start of each device | more memory: is it faster? |
# | yours | |
# | bound | the first activation's way to the last device, its 3 m, the last gradient's way back |

# %%
times = {"F": 1.0, "B": 2.0}
gpulab.need(schedule)
print(
    "1F1B:", run(schedule(4, 8), times=times, message=0.25).makespan, "  bound:", 3 * 1.25 + 3 * 8 + 3 * 2.25
)

# %%
# Your schedule: run(…, times=times, message=0.25)

# %% [markdown]
# ## Recap
#
# <details><summary>1. Does 1F1B have a smaller bubble than GPipe?</summary>
#
# No. Both take 2 (m + p − 1) steps. It holds p micro-batches instead of m, and that memory may buy a larger
# m.
# </details>
#
# <details><summary>2. What does interleaving cost?</summary>
#
# v times as many messages, and more activations held: 5.5 micro-batches instead of 4 at (4, 8) with v = 2.
# </details>
#
# <details><summary>3. Why can W wait, and what must not wait?</summary>
#
# Nobody needs the weights' gradient before the optimizer. B must not wait: the device before needs it.
# </details>
#
# <details><summary>4. Are experts models for different tasks?</summary>
#
# No. They are feed-forward blocks of one layer, trained together with a router that picks for each token.
# </details>
#
# <details><summary>5. Which group must not cross nodes, and why?</summary>
#
# The tensor group: it reduces activations four times for each layer and micro-batch.
# </details>

# %%
gpulab.recap("17")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | idle share of a pipeline | (p − 1) / (m + p − 1); with v chunks (p − 1) / (v m + p − 1) |
# | extra over the work | (p − 1) / m |
# | activations held | GPipe m, 1F1B min(p − d, m) on device d |
# | zero bubble, least steps | 3 m + p − 1 with F, B and W of one step |
# | slowest stage | is the pace: embedding and head count as layers |
# | MoE, bytes a rank sends | about 2 · k · its tokens · width · bytes · (ranks − 1) / ranks, for top-k |
# | rank map | tensor inside a node, next to it data or pipeline: whichever sends more bytes |
# | memory | 16 B · parameters / (t · p) + 34 B · tokens · width · layers / (t · p) · min(p, m) |
#
# ### Claims you will meet, and what is right
#
# - *1F1B reduces the bubble.* It reduces memory.
# - *Twice as many micro-batches as stages are enough.* From four stages on 27 to 33 % of the time is idle
#   then; at four times as many it is 16 to 20 %.
# - *Peak memory of a pipeline is micro-batch size × number of micro-batches.* That is GPipe.
# - *`torch.distributed.pipeline.sync.Pipe(model, balance=…)`.* Removed; `balance` was torchgpipe's and
#   FairScale's. Today it is `torch.distributed.pipelining`.
# - *Tensor parallelism splits the layers across GPUs.* It splits each layer; pipelines split the list of
#   layers.
# - *Experts are models trained for different tasks.* They are blocks trained jointly, chosen token by token.
# - *Domino makes tensor parallelism free of communication.* It hides it behind computation.
#
# ### References
#
# 1. Y. Huang et al., "GPipe", 2019. https://arxiv.org/abs/1811.06965
# 2. D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM",
#    2021. https://arxiv.org/abs/2104.04473
# 3. P. Qi et al., "Zero Bubble Pipeline Parallelism", 2023. https://arxiv.org/abs/2401.10241
# 4. W. Fedus et al., "Switch Transformers", 2021. https://arxiv.org/abs/2101.03961
# 5. A. Grattafiori et al., "The Llama 3 Herd of Models", 2024, section 3.3. https://arxiv.org/abs/2407.21783
# 6. G. Wang et al., "Domino", 2024. https://arxiv.org/abs/2409.15241
# 7. DeepSpeed, tutorials "Automatic Tensor Parallelism" for inference and for training.
#    https://www.deepspeed.ai/tutorials/autotp-training
# 8. PyTorch, "Pipeline Parallelism". https://docs.pytorch.org/docs/stable/distributed.pipelining.html
