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
# **3 to 4.5 hours.** You need labs 12 and 15 and part A. No GPU is needed.
#
# Part A cut layers into pieces. In this part whole layers go to different devices, and micro-batches move
# through them as on an assembly line. Then come experts, and finally everything at once: which rank should do
# what?
#
# By the end of this lab, you can
#
# 1. say for how long a pipeline idles, and how many micro-batches make that share small;
# 2. write an order of work that holds p micro-batches in memory instead of m;
# 3. say what interleaving and a split backward gain, and what each of them costs;
# 4. send tokens to their experts, and count the bytes;
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
# A training step can be cut along three axes: the samples, the layers, and the inside of a layer. A fourth
# thing to cut is the state that training keeps. A model is **sharded** if no device holds all of it.
#
# | way | what a device holds | what travels | lab |
# |---|---|---|---|
# | **data parallel** | the whole model, some samples and *their* activations | gradients, once per step | 15 |
# | **ZeRO, FSDP** | a share of weights, gradients and optimizer states | weights and gradients | 16 |
# | **tensor parallel** | a slice of every layer | activations, twice per layer and direction | 17 A |
# | **sequence, context parallel** | some tokens of every sample | keys and values, or activations | 17 A |
# | **pipeline parallel** | some whole layers, called a **stage** | activations, once per stage and direction | here |
# | **expert parallel** | some experts | tokens, to an expert and back | here |
#
# Some words are easily confused. Tensor parallelism cuts *inside* layers, and pipeline parallelism cuts
# *between* them. A **mini-batch** is what one optimizer step sees, and a pipeline cuts it into
# **micro-batches**. And `transformers.pipeline` runs a task such as translation, so it has nothing to do with
# stages.
#
# ## 2 · Filling and draining
#
# Stage 1 needs what stage 0 computes. With a single batch, only one device works while the others wait. With
# m micro-batches, device 0 can start the second while device 1 works on the first. **GPipe** (Huang et al.,
# 2019) runs all forwards and then all backwards.
#
# A **schedule** is an order of work for each device. `"F3"` is the forward of micro-batch 3, and `"B3"` is
# its backward. Each takes one **step** of time here. `simulate` starts an operation as soon as its device is
# free and its input is there. This is a model, and nothing is measured.
#
# **Predict.** There are four devices and 8 micro-batches. For what share of the time do the devices idle?

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
# **Step through it.** Drag the slider. You see which device works on what, which devices wait, and for how
# many micro-batches each holds activations at that moment.

# %%
from gpulab.plot.moving import PipelineSteps

PipelineSteps(theirs.slots)

# %% [markdown]
# **See.** The gaps are called the **bubble**. The pipeline fills at the left and drains at the right. In the middle,
# the last forwards leave the pipeline while the first backwards enter it. Device 0 waits there for its first
# gradient, and it idles at no other time.
#
# **Why.** With p devices and m micro-batches, each device works for 2 m steps, and all are done after 2 (m +
# p − 1) steps. So the idle share of the time is (p − 1) / (m + p − 1). Compared with the work, the extra time
# is (p − 1) / m. Guides often confuse the two. GPipe's authors call the bubble negligible if m is at least 4
# p.
#
# **Predict.** There are eight devices. How many micro-batches keep the idle share at or below 5 %?

# %%
gpulab.predict("parallel.enough", ...)

# %%
for p in (2, 4, 8, 16):
    shares = {f"m = {k} p": run(gpipe(p, k * p)).bubble for k in (1, 2, 4, 8, 16)}
    print(f"p = {p:2}  idle:", ", ".join(f"{name} {100 * share:.1f} %" for name, share in shares.items()))

# %% [markdown]
# Some guides recommend twice as many micro-batches as stages. By this table, that leaves 20 to 32 % of the
# time idle. But m cannot grow freely, because the batch size is given (lab 15) and very small micro-batches
# run inefficiently.
#
# ## 3 · The same bubble with less memory
#
# Forward keeps activations until backward has used them. So GPipe's device 0 holds all m micro-batches at once. If
# the last device ran B0 directly after F0, the first gradient would be on its way much earlier.
#
# The schedule **1F1B** (one forward, one backward; PipeDream-Flush; Narayanan et al., 2021) does this. A device first
# runs a few forwards to fill the pipeline. Then it alternates one forward and one backward, and at the end it runs
# the remaining backwards. The number of micro-batches that it holds no longer grows with m.
#
# **Do.** Write `schedule(devices, batches)`. About 7 lines.
#
# - Input: two whole numbers of at least 1. There may be fewer micro-batches than devices.
# - Output: one list per device, with the words `"F0"`, `"B0"`, … in the order of its work. Each device runs
#   every micro-batch once forward and once backward.
# - **Budget:** 2 (m + p − 1) steps as with GPipe, and at most min(p, m) micro-batches held. At (4, 8) that is
#   22 steps and 4 micro-batches.
#
# `gpulab.plot.schedule(run(schedule(4, 8)).slots)` draws your schedule.


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
# **Why.** Before its first gradient is back, device d must have started p − d micro-batches. To start more
# would not make it faster. So 1F1B saves memory but no time: it takes the same 22 steps. The memory can be
# spent on a larger m, and *that* shrinks the bubble.

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
    "GPipe holds all micro-batches of a step. 1F1B never holds more than there are devices, here four.",
)

# %% [markdown]
# ## 4 · The slowest stage
#
# A pipeline moves at the pace of its slowest stage, because all others wait for it in every round. The layers
# of a transformer are alike. But the first stage also has the embedding, and the last one has the loss and
# the output layer (the head), which is a product with the whole vocabulary.
#
# **Do.** Write `stages(times, devices)`, which balances the stages. About 12 lines.
#
# - Input: `times`, a list of whole numbers, which are the times of the layers in their order, and `devices`.
#   There are at least as many layers as devices.
# - Output: a list with the number of layers of each stage, in order. Stages are consecutive, and each has at
#   least one layer.
# - **Budget:** the slowest stage is as fast as it can be.


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
# **Why.** Equal counts are 36 % slower here (38 against 28), in every micro-batch, although only one stage is
# too long. This is why Llama 3's trainers gave the first and the last stage one layer less (Grattafiori et
# al., 2024, section 3.3). Memory is uneven as well: with 1F1B, device 0 holds p micro-batches and the last
# device only one.
#
# ## 5 · On real processes
#
# Now four processes run the schedule. Each has its own stage and nothing else, and Gloo connects them. A rank
# goes through its order: it receives an input, computes, and sends the result on. Sends must not wait, so
# they use `isend`. Otherwise device 0 would send an activation while device 1 sends a gradient, and each
# would wait for the other to receive. The `tag` says which micro-batch a message belongs to.
#
# Your machine may have fewer cores than ranks, so each operation also sleeps for 20 ms. Apart from that, the
# times are real.

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
    first = layer(torch.zeros(1, WIDTH))  # a process's first backward loads libraries, so it is not timed
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
# Is it still the same training step? Compare it with one process that has all four stages and the whole
# mini-batch:

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
# **Why.** The gradients of micro-batches add up. So a pipeline that finishes all of them before the optimizer's step
# (a **flush**) computes what one device would, up to rounding. Over its 3 boundaries it sends 3 · 2 directions · 8
# micro-batches = 48 messages. That is far fewer bytes than tensor parallelism needs, and they go only to neighbours.
# So stages may lie on different nodes.
#
# PyTorch's own implementation is `torch.distributed.pipelining` (`ScheduleGPipe`, `Schedule1F1B`,
# `ScheduleInterleaved1F1B`, `ScheduleInterleavedZeroBubble`, …). Older guides import
# `torch.distributed.pipeline.sync.Pipe`, which was removed.
#
# ## 6 · Smaller pieces, smaller bubble
#
# Give each device two **chunks** of half as many layers. For example, with 16 layers on 4 devices, device 0
# gets layers 0–1 and 8–9. A micro-batch then goes round twice. An operation takes half as long, but filling
# the pipeline still takes only p − 1 operations, so it takes half the time. This is Megatron's
# **interleaved** schedule (Narayanan et al., 2021, who measured a throughput that was 10 % and more higher).
#
# **Predict.** There are four devices, 8 micro-batches and two chunks. What share of the time is idle now?

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
# Numbers with a prime mark belong to the second chunk.
#
# **Why.** With v chunks, the bubble is v times as small. The price is v times as many messages, and more
# memory: device 0 holds 11 halves, which is 5.5 micro-batches instead of 4.
#
# ## 7 · A backward in two halves
#
# Backward computes two things. The device before is waiting for the gradient of the *input* (**B**). But
# nobody waits for the gradient of the *weights* (**W**) until the optimizer runs. Each costs about as much as
# the forward. If they are separated, a micro-batch has three operations of one step each, and W can fill a
# hole in the schedule. This is called **zero bubble** scheduling (P. Qi et al., 2023).
#
# Activations are now held until W. If each W follows its B at once, (4, 8) takes 30 steps. (As a single
# operation of two steps, it took 33.) How long may W wait? In 1F1B, device d holds p − d micro-batches. If
# each device may hold p, there is room for some whose B is done and whose W is not.
#
# **Do.** Write `zero_bubble(devices, batches)`. About 10 lines.
#
# - Input: two whole numbers, with `batches` ≥ `devices` ≥ 1.
# - Output: as in `schedule`, with the words `"F0"`, `"B0"`, `"W0"`, …
# - **Budget:** 3 m + p − 1 steps, the least there is, and at most p micro-batches held. At (4, 8) that is 27
#   steps and 4 micro-batches.


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
# **Why.** The last device starts p − 1 steps late and then has 3 m steps of work. So an iteration that starts
# with empty devices takes at least 3 m + p − 1 steps. ZB-H2 needs twice the memory, but fills even that gap
# with the next iteration. DualPipe (DeepSeek-V3, 2024) feeds micro-batches from both ends.
#
# | schedule at (4, 8) | steps of time | idle | most micro-batches held by a device |
# |---|---|---|---|
# | GPipe, 1F1B | 33 (backward takes two) | 27.3 % | 8, 4 |
# | interleaved, v = 2 | 28.5 | 15.8 % | 5.5 |
# | zero bubble (ZB-H1) | 27 | 11.1 % | 4 |

# %% [markdown]
# ## 8 · Experts
#
# A layer with a **mixture of experts** (MoE) has E MLPs, the **experts**, and a **router**. This is a small linear
# layer whose softmax picks the best expert for each token (top-1, as in Switch Transformer) or a few. The layer's
# output is the expert's output times its probability. Parameters grow with E, but the work per token does not:
# Mixtral 8x7B has 47 billion parameters and uses 13 billion for a token (Jiang et al., 2024). Experts are blocks of
# one layer, not models for different subjects.
#
# With **expert parallelism** each rank has one expert and its own tokens. One **all-to-all** takes the tokens
# to their experts, and another brings the results back: `dist.all_to_all_single(got, rows, coming, leaving)`.
# Without the last two arguments, all parts have the same size. Rank i's `coming[j]` must equal rank j's
# `leaving[i]`. A rank can count what leaves it, but only the others know what comes.
#
# | argument | meaning |
# |---|---|
# | `rows` | the first `leaving[0]` rows go to rank 0, the next `leaving[1]` to rank 1, … |
# | `got` | receives `coming[0]` rows from rank 0, then `coming[1]` from rank 1, … |
# | `coming`, `leaving` | lists of whole numbers, one for each rank; 0 is possible |
#
# **Do.** Write `dispatch(x, choice, weight, expert)`. About 12 lines.
#
# | argument | meaning |
# |---|---|
# | `x` | this rank's tokens (tokens × width, FP32) |
# | `choice` | the rank of each token's expert (tokens, int64) |
# | `weight` | the probability of each token's expert (tokens, FP32) |
# | `expert` | this rank's expert (width × width, FP32) |
#
# - Output: for each token, in the order of `x`, weight · relu(x · its expert).
# - Allowed: `all_to_all` (or `all_to_all_single`), `all_gather`, `all_reduce`, `reduce_scatter`, sends and
#   receives.
# - **Budget:** all ranks together send each token once there and once back, and 5 % more for counts.


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
# All ranks wait for the busiest expert. In the next cell there are 2,048 tokens around twelve directions,
# some of which are common, as words are in text. A fresh router distributes them over 8 experts.
#
# **Predict.** Direction k is 1/k times as common as the first one. Roughly how many times the mean load does
# the busiest expert have?

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
    """Percentage of the tokens that exceed a capacity of `factor` times the mean load."""
    return 100 * float((counts - factor * COUNT / EXPERTS).clamp(min=0).sum()) / COUNT


fresh = load()
gpulab.predict("parallel.load", measured=float(fresh.max()) * EXPERTS / COUNT)
optimizer = torch.optim.Adam(router.parameters(), 0.01)
for _ in range(200):
    probabilities = router(tokens).softmax(dim=1)
    share = torch.bincount(probabilities.argmax(dim=1), minlength=EXPERTS) / COUNT
    balance = EXPERTS * (share * probabilities.mean(dim=0)).sum()  # 1 if all loads are equal
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
    "The same tokens with a fresh router and after 200 steps for balance. Each panel has its own scale.",
)

# %% [markdown]
# ![Experts with a capacity: each token is sent to the rank of its expert. The buffer of each expert has room for two tokens, so the third token for expert A is left out.](drawings/capacity.svg)
#
# **Why.** Switch Transformer adds 0.01 times `balance` to the loss. This is E · Σ share · mean probability, which is
# smallest when all experts have equal loads. (In the cell above only the router was trained.) Buffers have a
# **capacity**, and tokens beyond it are dropped, so only the residual carries them on. DeepSeek-V3 instead adds a
# bias to the router's scores and drops no tokens. Top-k sends each token k times.
#
# ## 9 · Three dimensions at once
#
# A large run combines tensor (t), pipeline (p) and data parallelism (d), with t · p · d = GPUs. Launchers
# number ranks node by node, so the **rank map** decides which groups share a node. In the order (tensor,
# data, pipeline), tensor varies fastest, so ranks 0 … t − 1 are a tensor group.
#
# `layouts.cost(model, cluster, layout)` models a step. (`help(layouts.cost)` shows formulas and sources.)
#
# | part | depends on |
# |---|---|
# | compute | 1 / (t · p · d); small micro-batches and thin slices run inefficiently |
# | bubble | (p − 1) / m |
# | tensor | 4 all-reduces of activations for each layer and micro-batch |
# | pipeline | 2 messages for each micro-batch |
# | data | one all-reduce of the gradients |
#
# A group with neighbours on two nodes runs at the speed between nodes. (Part A's levels are left out.) `memory`
# counts 16 bytes for each parameter of a GPU. For activations it counts 34/t bytes for each token, unit of width and
# layer of the stage, and this for each of the min(p, m) micro-batches under way.

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
# **Predict.** Take the same t, p and d on 4 nodes of 8 GPUs, but a bad order of the ranks. A link has 450
# GB/s inside a node and 50 GB/s between nodes. How many times as long does a step take?

# %%
gpulab.predict("parallel.rank_map", ...)

# %%
told("bad", bad)
slow, fast = (layouts.cost(model, cluster, x).seconds for x in (bad, good))
gpulab.predict("parallel.rank_map", measured=slow / fast)

# %% [markdown]
# Nothing looks wrong in the bad run. There is no error, the losses are the same, and every GPU is "busy". Only the
# order of the ranks differs.
#
# **Do.** Write `layout(model, cluster)`, which finds the fastest layout by `layouts.cost`. About 20 lines.
#
# - Input: two dictionaries with the keys of `model` and `cluster` above.
# - Output: a dictionary with the keys of `good`. It uses all GPUs, and its `memory` fits into
#   `cluster["memory"]`.
# - `micro` divides the batch of a replica. `layouts.cost` raises `layouts.NoLayout` if one number does not
#   divide another.
# - **Budget:** at most 1 % slower than the best layout. This includes clusters with a slow network, with a
#   single node, or with GPUs that need larger matrices (`half`).


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
    "seconds per step",
    caption="The good and the bad order have the same t, p and d. They differ only in where the ranks are.",
)

# %% [markdown]
# **Why.** Tensor parallelism communicates most, so it belongs inside a node. It also makes slices thinner, so
# more is not always better. Of the other two, the one that sends more bytes gets the rest of the node. In
# `good` that is data parallelism. Stages send half as many bytes, but between nodes, so they take longer.
# Memory decides how small t · p may be.
#
# Does the best layout depend on the cluster?

# %%
gpulab.need(layout)
long = {"layers": 24, "width": 2048, "heads": 16, "sequence": 8192, "batch": 256}
slow = cluster | {"between": 5e9}
others = {
    "as above": (model, cluster),
    "8 nodes of 4 GPUs": (model, cluster | {"nodes": 8, "per_node": 4}),
    "40 GB per GPU": (model, cluster | {"memory": 40e9}),
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
# **See.** Nodes with half as many GPUs change nothing here, because t = 2 and d = 2 fill a node of four. Less
# memory needs a larger t, and more memory allows t = 1. A slow network favours fewer stages and larger
# micro-batches, which means fewer and longer messages. The narrow model with long sequences has few weights
# and many activations. So its stages send more than its replicas, and `pipeline` moves into the node. The
# model is rough, but a search costs nothing, and its result can be measured.

# %% [markdown]
# ## 10 · Where the names belong
#
# **Megatron-LM** (NVIDIA) implements tensor, sequence and pipeline parallelism for transformers. Its library
# is called Megatron Core. In 2021 it trained a model of a trillion parameters on 3,072 A100 at 502 PFLOP/s
# (Narayanan et al.).
#
# **Predict.** What share of the GPUs' dense 16-bit peak is that?

# %%
gpulab.predict("parallel.megatron", ...)

# %%
a100 = hardware.find("A100")
gpulab.predict("parallel.megatron", measured=100 * 502e15 / 3072 / float(a100.peak("float16", tensor=True)))

# %% [markdown]
# **More than one data centre.** NVIDIA reports 96 % of one site's throughput for a model of 340 billion
# parameters that was trained in data centres far apart (NeMo 25.02 and Megatron Core 0.11; NVIDIA blog,
# 2025). Only data parallelism crosses the distance, with an all-reduce in levels (lab 18) and in chunks that
# overlap with backward.
#
# ### Who decides what to cut?
#
# In part A you knew which matrix to cut by columns and which by rows.
#
# ![Two ranks share an MLP. A is cut by columns, so each rank has half of the hidden values; B is cut by rows, so each rank has a part of every sum. One all-reduce adds the parts.](drawings/column_then_row.svg)
#
# **AutoTP** (DeepSpeed) makes this decision for a Hugging Face model, for inference and, since 0.16.4, for training
# with ZeRO 0 to 2. Its first version decided by the order and names of the layers: the last linear layer before a
# norm and layers called `o_proj` or `down_proj` are cut by rows, and all others by columns
# (`module_inject/auto_tp.py`). PyTorch's `parallelize_module` takes a plan that you have written out.
#
# Names are a guess. What must a plan obey? A tensor is **whole** (every rank has all of it) or **split** (every rank
# has some of its columns).
#
# | module | takes | gives |
# |---|---|---|
# | linear, `"column"` | a whole tensor | a split one |
# | linear, `"row"` | a split tensor | a whole one, after an all-reduce |
# | linear, `"whole"` | a whole tensor | a whole one; every rank holds all weights |
# | `each`: number by number, such as a GELU or a product | inputs that are all whole or all split | the same |
# | `heads`: attention | as `each`; split only if the ranks divide the heads | the same |
# | `rows`: a norm, a softmax, a sum with the block's input | whole tensors | a whole one |
#
# **Do.** Write `cut(modules, ranks)`, which finds the plan in which a rank holds the fewest weights.
#
# - **Input:** `modules` is a list in the order of the computation. Each is `[name, kind, inputs, size]`. `kind` is
#   `"linear"`, `"each"`, `"heads"` or `"rows"`. `inputs` lists names of earlier modules, or `"x"`, which is whole.
#   `size` is `[rows, columns]` of a linear layer's weights, which are its inputs and outputs. For `heads` it is the
#   number of heads, and otherwise 0.
# - **Output:** a dictionary with `"column"`, `"row"` or `"whole"` for the name of every linear layer.
# - **Columns** can be split only if `ranks` divides them.
# - **Budget:** the weights that a rank holds. Full marks need the least. There are at most eight layers to choose for.
#
# About 20 lines.


# %% nbgrader={"grade": false, "grade_id": "cut", "locked": false, "schema_version": 3, "solution": true, "task": false}
def cut(modules, ranks):
    ### BEGIN SOLUTION
    linears = [name for name, kind, *_ in modules if kind == "linear"]
    best, least = None, float("inf")
    for wishes in itertools.product(("column", "whole"), repeat=len(linears)):
        wish = dict(zip(linears, wishes, strict=True))
        split, ways, held = {"x": False}, {}, 0
        for name, kind, inputs, size in modules:
            states = {split[each] for each in inputs}
            if kind == "linear":
                ways[name] = "row" if True in states else wish[name]
                split[name] = ways[name] == "column"
                if split[name] and size[1] % ranks:
                    break
                held += size[0] * size[1] / (1 if ways[name] == "whole" else ranks)
            else:
                refused = kind == "rows" or (kind == "heads" and size % ranks)
                if len(states) > 1 or (True in states and refused):
                    break
                split[name] = True in states
        else:
            if held < least:
                best, least = ways, held
    return best
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "cut-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.cut", cut)

# %%
gpulab.need(cut)
from gpulab.exercises.lab_17_model_parallelism import block

shares = {}
for said, kind, heads in (
    ("attention, 8 heads", "attention", 8),
    ("attention, 6 heads", "attention", 6),
    ("gated MLP", "gated", 8),
    ("latent attention", "latent", 8),
):
    modules = block(kind, 1024, 512 if kind == "latent" else 4096, heads)
    ways = cut(modules, 4)
    weights = {name: size[0] * size[1] for name, what, _, size in modules if what == "linear"}
    held = sum(n / (1 if ways[name] == "whole" else 4) for name, n in weights.items())
    shares[said] = 100 * held / sum(weights.values())
    print(f"{said:20}", ", ".join(f"{name} {way}" for name, way in ways.items()))
gpulab.plot.bars(
    shares,
    "% of a block's weights on each of 4 ranks",
    budget=25,
    caption="A quarter is the least. Six heads cannot be dealt to four ranks, and a norm in between keeps a layer whole.",
)

# %% [markdown]
# **Why.** A layer cut by columns leaves a split tensor, and the next linear layer, cut by rows, makes it whole again
# with one all-reduce. Whatever lies between them must not mix columns. A rule that knows only names and norms cuts
# the usual blocks as your search does, but it would cut the router of a mixture of experts by columns, although a
# softmax follows. Such cases need exceptions, and `auto_tp.py` lists some for single models.
#
# ### Hiding the all-reduce
#
# The all-reduces remain, and the next product cannot start before them. **Domino** (DeepSpeed; G. Wang et al., 2024)
# therefore cuts the batch, so that one part computes while another is being reduced. It can also cut the weights
# further.
#
# **Predict.** A layer has two products of 4 ms, and after each an all-reduce of 2 ms: 12 ms in all. Now the batch is
# cut in halves, and products and all-reduces take half as long each. Products run one after the other, and so do
# all-reduces. How many ms does the layer take?

# %%
gpulab.predict("parallel.domino", ...)


# %%
def overlapped(parts, product=4.0, reduce=2.0, products=2):
    """Spans of one layer whose batch is cut into `parts`, all-reduces beside the products."""
    spans, reduced, computing, sending = [], [0.0] * parts, 0.0, 0.0
    for number in range(products):
        for part in range(parts):
            start = max(computing, reduced[part])
            computing = start + product / parts
            begins = max(computing, sending)
            sending = reduced[part] = begins + reduce / parts
            said = f"{number + 1}{'abcd'[part]}"
            spans.append(gpulab.plot.Span("products", start, computing, said, f"part {'abcd'[part]}"))
            spans.append(gpulab.plot.Span("all-reduces", begins, sending, said, f"part {'abcd'[part]}"))
    return spans


def layer_time(parts, **times):
    return max(span.stop for span in overlapped(parts, **times))


gpulab.predict("parallel.domino", measured=layer_time(2))
for reduce in (2.0, 6.0):
    print(
        f"all-reduces of {reduce:.0f} ms:",
        ", ".join(f"{layer_time(n, reduce=reduce):g} ms in {n} part{'s' * (n > 1)}" for n in (1, 2, 4)),
    )
gpulab.plot.timeline(
    overlapped(2),
    "ms",
    caption="While half b is computed, half a is reduced. Only the last all-reduce has nothing to hide behind.",
)

# %% [markdown]
# **Why.** In a model of many layers even that last all-reduce hides behind the next layer. Domino's headline says
# "communication-free", but its text says near-complete *hiding*. All bytes are still sent, and if they take longer
# than the products, as with 6 ms, the excess stays visible. More parts also make products thinner, which the model
# above ignores and a GPU does not.
#
# **Colossal-AI** is another library that combines all of this. Its `Booster` wraps model and optimizer in a *plugin*:
# `HybridParallelPlugin` joins tensor, pipeline and data parallelism, and `GeminiPlugin` is ZeRO-3 in chunks that move
# between GPU and host memory. Its tensor parallelism comes in 1, 2, 2.5 and 3 dimensions. (Colossal-AI
# documentation, "Booster API", "Booster Plugins" and "Quick Demo".)
#
# ## Beyond · A pipeline with unequal times
#
# This task is open-ended and ungraded. Backward takes twice as long as forward, and a message takes a quarter
# of a forward. The figure of merit is the time of (4, 8), with at most 4 micro-batches held.
#
# | schedule | time |
# |---|---|
# | 1F1B | printed below |
# | 1F1B with two more forwards at the start of each device | needs more memory: is it faster? |
# | yours | |
# | bound: the first activation's way to the last device, that device's 3 m, and the last gradient's way back | printed below |

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
# No. Both take 2 (m + p − 1) steps. It holds p micro-batches instead of m, and the memory that this frees may
# be spent on a larger m.
# </details>
#
# <details><summary>2. What does interleaving cost?</summary>
#
# It sends v times as many messages and holds more activations: 5.5 micro-batches instead of 4 at (4, 8) with
# v = 2.
# </details>
#
# <details><summary>3. Why can W wait, and what must not wait?</summary>
#
# Nobody needs the gradient of the weights before the optimizer runs. B must not wait, because the device
# before needs it.
# </details>
#
# <details><summary>4. Are experts models for different tasks?</summary>
#
# No. They are feed-forward blocks of one layer. They are trained together with a router, which picks among
# them for each token.
# </details>
#
# <details><summary>5. Which group must not cross nodes, and why?</summary>
#
# The tensor group, because it all-reduces activations four times for each layer and micro-batch.
# </details>

# %%
gpulab.recap("17")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | idle share of a pipeline | (p − 1) / (m + p − 1); with v chunks (p − 1) / (v m + p − 1) |
# | extra time over the work | (p − 1) / m |
# | micro-batches held | GPipe m; 1F1B min(p − d, m) on device d |
# | zero bubble, least steps | 3 m + p − 1 if F, B and W take one step each |
# | slowest stage | it sets the pace; embedding and head count as layers |
# | MoE, bytes that a rank sends | about 2 · k · its tokens · width · bytes · (ranks − 1) / ranks, for top-k |
# | rank map | tensor inside a node; next to it data or pipeline, whichever sends more bytes |
# | which matrix to cut how | by columns, then what mixes no columns, then by rows: one all-reduce |
# | memory | 16 B · parameters / (t · p) + 34 B · tokens · width · layers / (t · p) · min(p, m) |
#
# ### Claims you will meet, and what is right
#
# - *1F1B reduces the bubble.* It reduces memory.
# - *Twice as many micro-batches as stages are enough.* With four or more stages, 27 to 33 % of the time is
#   then idle. With four times as many micro-batches it is 16 to 20 %.
# - *Peak memory of a pipeline is micro-batch size × number of micro-batches.* That is GPipe's.
# - *`torch.distributed.pipeline.sync.Pipe(model, balance=…)`.* It was removed, and `balance` belonged to
#   torchgpipe and FairScale. Today's module is `torch.distributed.pipelining`.
# - *Tensor parallelism splits the layers across GPUs.* It splits each layer. Pipelines split the list of
#   layers.
# - *Experts are models trained for different tasks.* They are blocks that are trained jointly and chosen
#   token by token.
# - *Domino makes tensor parallelism free of communication.* It hides communication behind computation.
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
# 8. DeepSpeed, "Domino: Communication-Free LLM Training Engine", `blogs/deepspeed-domino`.
#    https://github.com/deepspeedai/DeepSpeed
# 9. Colossal-AI, "Booster API" and "Booster Plugins". https://colossalai.org/docs/basics/booster_plugins
# 10. PyTorch, "Pipeline Parallelism". https://docs.pytorch.org/docs/stable/distributed.pipelining.html
