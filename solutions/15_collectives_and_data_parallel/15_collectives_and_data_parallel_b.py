# ---
# jupyter:
#   gpulab:
#     lab: "15"
#     hours: 3
#     topics: [C15.1, C15.2, C15.3, C15.6, C15.7, C15.8, C15.9, C24.5]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 15 B · Data parallel training
#
# **2 to 3 hours.** You need part A (ranks, all-reduce) and lab 08 (where the time of a training step
# goes).
#
# Data parallelism is how most models are first trained on more than one GPU. Every rank has a whole copy of
# the model, a **replica**, and its own part of the batch. Each rank computes gradients on its part, an
# all-reduce averages them, and then all ranks take the same step. Weights, gradients and optimizer states
# therefore exist p times on p ranks. Activations do not, because each rank has only those of its own samples.
#
# By the end of this lab, you can
#
# 1. say when p ranks compute the same gradient as one process, and when they agree to the last bit;
# 2. give every rank its own samples, each of them once, in a new order in each epoch;
# 3. put gradients into buckets so that sending them hides behind the backward pass;
# 4. say what tied, frozen and unused parameters and accumulation require of the exchange;
# 5. choose a learning rate for a larger batch, and judge stale and compressed gradients.

# %%
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

import gpulab
from gpulab import distributed, plot

torch.set_num_threads(1)  # ranks share the cores of this machine
gpulab.start("15")

# %% [markdown]
# ## B1 · One gradient, many ranks
#
# In each step, a rank runs forward and backward on its own samples, all-reduces the gradient, and runs the
# optimizer. This has two advantages: the model's code stays as it is, and only one array is exchanged per
# step. It has two drawbacks as well. The model and the optimizer states must fit on one GPU (lab 16 divides
# them), and the batch grows with the number of ranks.
#
# ![Data parallel training: every rank has the whole model and a part of the batch. Gradients are averaged over all ranks, so every rank makes the same step.](drawings/data_parallel.svg)
#
# The loss of a batch is a mean over its samples, so its gradient is a mean as well. If each of p ranks has b
# samples, the mean of the ranks' gradients is the gradient of a global batch of B = p · b samples.
#
# The next cell computes the gradient of 64 samples twice: once in this process, and once on four ranks with
# 16 samples each.
#
# **Predict.** What percentage of the gradient's numbers agrees to the last bit?

# %%
gpulab.predict("parallel.bitwise", ...)


# %%
def small_model():
    torch.manual_seed(0)  # the same weights everywhere
    return nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 5))


def samples(count):
    numbers = torch.Generator().manual_seed(1)
    return torch.randn(count, 20, generator=numbers), torch.randint(0, 5, (count,), generator=numbers)


def gradient(x, y):
    model = small_model()
    F.cross_entropy(model(x), y).backward()
    return torch.cat([parameter.grad.flatten() for parameter in model.parameters()])


def averaged(count):
    rank, size = dist.get_rank(), dist.get_world_size()
    x, y = samples(count)
    mine = gradient(x.tensor_split(size)[rank], y.tensor_split(size)[rank])
    dist.all_reduce(mine)
    return mine / size


alone = gradient(*samples(64))
together = distributed.run(averaged, 4, 64)
print("all ranks have the same bits:", all(torch.equal(together[0], other) for other in together))
print(f"largest difference to one process: {(together[0] - alone).abs().max():.1e}")
gpulab.predict("parallel.bitwise", measured=100 * float((together[0] == alone).float().mean()))

# %% [markdown]
# **Why.** Floating-point sums depend on the order of their terms. Adding four partial sums takes the terms in a
# different order from one long sum, so the two are rounded differently. If all sums are exact, nothing is rounded and
# the results agree. The next cell shows this with small whole numbers and a number of samples that is a power of two:


# %%
def whole_gradient(x, y):
    weight = torch.arange(20.0, requires_grad=True)
    ((x @ weight - y) ** 2).mean().backward()
    return weight.grad


def whole_averaged():
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = whole_gradient(*(part.tensor_split(size)[rank] for part in whole_samples()))
    dist.all_reduce(mine)
    return mine / size


def whole_samples():
    numbers = torch.Generator().manual_seed(2)
    return (torch.randint(-9, 10, shape, generator=numbers).float() for shape in ((64, 20), (64,)))


same = torch.equal(distributed.run(whole_averaged, 4)[0], whole_gradient(*whole_samples()))
print("whole numbers: four ranks and one process agree to the last bit:", same)

# %% [markdown]
# *Among ranks*, however, all bits must agree in every step, because otherwise the replicas would drift apart.
# They do agree, because the all-reduce adds up each element in one place and copies the result from there to
# all ranks. (In part A, `to_everybody` does not do this, so its ranks differ.)
#
# Four ranks are **not** the same as one process with a larger batch if a layer looks at the batch. Batch norm
# computes its statistics on each rank alone, whereas `SyncBatchNorm` computes them over all ranks. Random numbers, as
# in dropout, make a difference, too. The detective at the end of this part meets a third case.
#
# ## B2 · Who gets which sample
#
# ![Who gets which sample: the order is shuffled by the epoch's seed, and rank r takes every third place, starting at place r. Places that are missing at the end are filled from the start.](drawings/sampler.svg)
#
# In each epoch every sample should be used once, by one rank, in a new random order. And no rank may run out
# of samples before the others, because they would wait for it in the all-reduce forever. PyTorch's
# `DistributedSampler` works like this:
#
# - All ranks shuffle in the same way, with the seed `seed + epoch`.
# - The order is extended with its own beginning, repeatedly if necessary, until its length is a multiple of
#   the number of ranks.
# - Rank r takes the elements r, r + p, r + 2p …
#
# The sampler does not notice that a new epoch begins. You must call `sampler.set_epoch(epoch)`, or else every
# epoch has the order of the first.
#
# **Predict.** There are 1,001 samples and 8 ranks. How many samples are used twice in an epoch?

# %%
gpulab.predict("parallel.padded", ...)

# %% [markdown]
# **Do.** Write `indices(length, ranks, rank, seed, epoch)`, the samples of one rank in one epoch. About 4
# lines.
#
# - Input: whole numbers. There is at least one sample, and there may be fewer samples than ranks.
# - The shuffled order is `np.random.default_rng(seed + epoch).permutation(length)`.
# - Output: a list of indices below `length`, in the order in which the rank uses them. It is equally long on
#   all ranks.


# %% nbgrader={"grade": false, "grade_id": "indices", "locked": false, "schema_version": 3, "solution": true, "task": false}
def indices(length, ranks, rank, seed, epoch):
    ### BEGIN SOLUTION
    order = np.random.default_rng(seed + epoch).permutation(length).tolist()
    total = -(-length // ranks) * ranks
    return [order[i % length] for i in range(rank, total, ranks)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "indices-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.indices", indices)

# %% [markdown]
# **See.** The next cell counts how often each pair of samples meets in the same global batch in 20 epochs,
# with and without `set_epoch`. There are 24 samples, and 3 ranks with a batch of 4 each.

# %%
gpulab.need(indices)


def meetings(tell_epoch):
    """How often two samples were in the same global batch."""
    together = np.zeros((24, 24))
    for epoch in range(20):
        of_rank = [indices(24, 3, rank, 7, epoch if tell_epoch else 0) for rank in range(3)]
        for start in range(0, 8, 4):
            batch = [sample for mine in of_rank for sample in mine[start : start + 4]]
            together[np.ix_(batch, batch)] += 1
    return together[np.triu_indices(24, 1)]


axes = plot.axes(7.2, 2.8, 1, 2, sharey=True)
for ax, tell, colour in zip(axes, (True, False), (plot.DEEP, plot.ALARM), strict=True):
    ax.hist(meetings(tell), bins=np.arange(-0.5, 21.5), color=colour)
    ax.set_title("with set_epoch" if tell else "without set_epoch")
    ax.set(xlabel="meetings of a pair in 20 epochs", xticks=(0, 5, 10, 15, 20))
axes[0].set_ylabel("pairs of samples")
plot.picture(axes[0], "With set_epoch most pairs meet about ten times. Without it, always or never.")

# %% [markdown]
# Without `set_epoch`, two samples meet either in every epoch or never, because the batches are the same 20
# times.
#
# Several ranks bring three more duties. The **loss** that you log is the loss of one rank, so average it over the
# ranks. All of them must call that all-reduce. **Checkpoints** are written by rank 0 alone, because all ranks have
# the same weights. If the others read a checkpoint next, they must wait at a barrier first. In **evaluation**, padded
# samples would count twice, so leave them out, and divide summed losses by summed counts.
#
# ## B3 · When to send
#
# Backward computes gradients from the last layer to the first, so the first gradients are complete long
# before it ends. They can be sent at once, and their messages travel while the next gradients are computed.
# So data parallelism costs only the waiting that is left *after* backward.
#
# Every all-reduce takes at least a fixed latency, whatever its size. So gradients are sent together, in **buckets**.
# The all-reduce of a large bucket starts late, because it waits for its last gradient. Many small buckets pay the
# latency many times. PyTorch's DDP uses buckets of 25 MiB (1 MiB for the first) and fills them in the reverse order
# of registration (Li et al., 2020).
#
# ![Buckets: the backward pass makes gradients from the last layer to the first. As soon as a bucket is full its all-reduce starts, while the backward pass goes on.](drawings/buckets.svg)
#
# **Predict.** Backward takes 100 ms. The embedding's gradient comes last and is a tenth of all bytes. One
# all-reduce of all bytes would take 40 ms, and the latency is negligible. How many ms must a rank wait after
# backward, at least?

# %%
gpulab.predict("parallel.exposed", ...)

# %% [markdown]
# **Do.** Write `buckets(sizes, log, latency, rate)`, which plans the buckets. About 12 lines.
#
# - `sizes`: a dictionary with the bytes of each parameter that needs a gradient. Frozen parameters are not in
#   it.
# - `log`: a list of `[ms, name]` in the order of time. At that time of backward, something was added to the
#   gradient of that name.
# - A **tied** parameter is used twice, so it is in `log` twice. Its gradient is complete only with the second
#   entry.
# - An **unused** parameter is not in `log`. Its gradient is zero and known from the start. It must be sent
#   all the same, because other ranks may have used the parameter.
# - An all-reduce takes `latency` + bytes / `rate` ms. Only one runs at a time, in your order, and it starts
#   when all gradients of its bucket are complete.
# - Output: the list of buckets in the order in which they are sent. Each is a list of names. Every name is in
#   exactly one bucket, and no bucket is empty.
# - **Budget:** the waiting after backward is at most 1.6 times the least possible.


# %% nbgrader={"grade": false, "grade_id": "buckets", "locked": false, "schema_version": 3, "solution": true, "task": false}
def buckets(sizes, log, latency, rate):
    ### BEGIN SOLUTION
    ready = dict.fromkeys(sizes, 0.0)
    for ms, name in log:
        ready[name] = ms
    waiting = sorted(sizes, key=lambda name: ready[name])
    plan, free = [], 0.0
    while waiting:
        free = max(free, ready[waiting[0]])
        bucket = [name for name in waiting if ready[name] <= free]
        waiting = waiting[len(bucket) :]
        plan.append(bucket)
        free += latency + sum(sizes[name] for name in bucket) / rate
    return plan
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "buckets-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.buckets", buckets)

# %% [markdown]
# **See.** Here are three plans for the backward pass of six layers (modelled). The embedding is tied: its
# matrix is also the output layer.

# %%
gpulab.need(buckets)
MB = 1e6
log = [[6, "embedding"], *([6 + 5 * k, f"layer {6 - k}"] for k in range(1, 7)), [42, "embedding"]]
ready = {name: ms for ms, name in log}
sizes = {name: (12 if name == "embedding" else 8) * MB for name in ready}
LATENCY, RATE = 4.0, 3.2 * MB  # ms per message, bytes per ms


def play(plan, label):
    """When each bucket is on the network."""
    now, spans = 0.0, []
    for number, bucket in enumerate(plan, 1):
        start = max([now, *(ready[name] for name in bucket)])
        now = start + LATENCY + sum(sizes[name] for name in bucket) / RATE
        spans.append(plot.Span(label, start, now, str(number), "all-reduce"))
    return spans


passes = [
    plot.Span("backward", start, stop, name.replace("layer ", "L").replace("embedding", "emb."), "compute")
    for start, (stop, name) in zip([0, *(ms for ms, _ in log)], log, strict=False)
]
plans = {
    "one bucket": [list(sizes)],
    "one for each": [[name] for name in sorted(sizes, key=ready.get)],
    "yours": buckets(sizes, log, LATENCY, RATE),
}
picture = plot.timeline(
    [*passes, *(span for name, plan in plans.items() for span in play(plan, name))],
    "ms",
    caption="Amber bars are all-reduces. Whatever is to the right of the line, the end of backward, is "
    "waiting.",
)
picture.axes.axvline(log[-1][0], color=plot.INK, linestyle="--", linewidth=1)
picture

# %% [markdown]
# ## B4 · DDP from scratch
#
# PyTorch's wrapper for data parallel training is called **DDP**, `torch.nn.parallel.DistributedDataParallel`.
# At the start it broadcasts rank 0's weights. After that the replicas stay equal, because all ranks take the
# same steps. DDP must handle four things:
#
# - A **frozen** parameter has no gradient, so it is in no bucket.
# - A **tied** parameter is one tensor that the model uses twice. It has one gradient, which is the sum of
#   both uses.
# - An **unused** parameter has `.grad` None on this rank, but perhaps not on others.
# - All ranks must make the same calls with the same sizes, whatever they used.
#
# Here is a model with a tied matrix (`weights[0]`) and two branches (`weights[1]` and `weights[2]`), of which
# each rank uses only one:


# %%
def loss(weights, x):
    tied, branch = weights[0], weights[1 + dist.get_rank() % 2]
    h = torch.tanh(x @ tied)
    for weight in weights[3:]:
        h = torch.tanh(h @ weight)
    return (h @ branch @ tied.T).square().mean()


# %% [markdown]
# **Do.** Write `exchange(weights, x, capacity)`. About 15 lines.
#
# - Input: `weights`, a list of FP32 tensors that all need gradients; `x`, this rank's part of the batch,
#   FP32; and `capacity`, in bytes.
# - Run the backward pass of `loss(weights, x)`. Leave the mean over all ranks in each weight's `.grad`, where
#   a gradient that a rank does not have counts as zeros. Nothing is returned.
# - Go through `weights` in reverse order and fill buckets with at most `capacity` bytes of gradients each.
#   Start a new bucket only if the next gradient would not fit. A gradient that is larger than `capacity` is
#   alone in its bucket.
# - **Budget:** one `dist.all_reduce` for each bucket, and every gradient is sent once.
#
# ![Filling buckets: four gradients of 4, 3, 2 and 5 kB in reverse order, with a capacity of 8 kB. The first two share a bucket. The third would make it 9 kB, so it starts a new one.](drawings/filled.svg)
#
# After backward, buckets cost the same in any order, so the check cannot tell which order you chose. B5 needs
# the reverse one.


# %% nbgrader={"grade": false, "grade_id": "exchange", "locked": false, "schema_version": 3, "solution": true, "task": false}
def exchange(weights, x, capacity):
    ### BEGIN SOLUTION
    loss(weights, x).backward()
    filled = [[]]
    for weight in reversed(weights):
        if filled[-1] and sum(w.nbytes for w in filled[-1]) + weight.nbytes > capacity:
            filled.append([])
        filled[-1].append(weight)
    for bucket in filled:
        grads = [torch.zeros_like(w) if w.grad is None else w.grad for w in bucket]
        flat = torch.cat([grad.flatten() for grad in grads])
        dist.all_reduce(flat)
        parts = (flat / dist.get_world_size()).split([w.numel() for w in bucket])
        for weight, part in zip(bucket, parts, strict=True):
            weight.grad = part.view_as(weight)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "exchange-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.exchange", exchange)

# %% [markdown]
# ## B5 · Hooks and overlap
#
# What is still missing is the overlap. Autograd can call a function as soon as a parameter's gradient is
# complete, which is called a **hook**: `parameter.register_post_accumulate_grad_hook(fn)`. For a tied
# parameter the hook is called once, after the last addend.
#
# The class below sends a bucket as soon as the hooks of all its parameters have been called. It sends with
# `async_op=True`, so the call returns at once, and `.wait()` waits until the all-reduce is done.


# %%
class Replica:
    """A model whose gradients are averaged over all ranks while backward runs."""

    def __init__(self, model, capacity=1 << 20):
        self.model, self.sync, self.calls = model, True, 0
        for tensor in model.state_dict().values():
            dist.broadcast(tensor, 0)
        wanted = [p for p in model.parameters() if p.requires_grad]  # with a tied one only once
        self.buckets = [[]]
        for parameter in reversed(wanted):
            if sum(p.nbytes for p in self.buckets[-1]) + parameter.nbytes > capacity and self.buckets[-1]:
                self.buckets.append([])
            self.buckets[-1].append(parameter)
        for parameter in wanted:
            parameter.register_post_accumulate_grad_hook(self.ready)
        self.start_again()

    def start_again(self):
        self.missing = [set(bucket) for bucket in self.buckets]
        self.under_way = []

    def ready(self, parameter):
        """Called by autograd when a gradient is complete."""
        if self.sync:
            for missing in self.missing:
                missing.discard(parameter)
            self.send()  # without sync, gradients add up in .grad and nothing is sent

    def send(self, all_of_them=False):
        """Send the next buckets whose gradients are there, in order."""
        while len(self.under_way) < len(self.buckets):
            number = len(self.under_way)
            if self.missing[number] and not all_of_them:
                return
            zeros = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.buckets[number]]
            flat = torch.cat([g.flatten() for g in zeros])
            self.under_way.append((flat, dist.all_reduce(flat, async_op=True)))
            self.calls += 1

    def finish(self):
        """After backward: send what is left, wait, and hand the averages out."""
        self.send(all_of_them=True)
        for bucket, (flat, work) in zip(self.buckets, self.under_way, strict=True):
            work.wait()
            parts = (flat / dist.get_world_size()).split([p.numel() for p in bucket])
            for parameter, part in zip(bucket, parts, strict=True):
                parameter.grad = part.view_as(parameter).clone()
        self.start_again()


# %% [markdown]
# Why does `send` never send a bucket out of turn, although a later one may be complete first? Ranks that use
# different branches complete their buckets in different orders. But the n-th all-reduce of one rank always
# meets the n-th of the others, so all must send in the same order.
#
# The next cell tests the class. Its model has a tied weight, a frozen layer, and branches, one of which no
# rank uses. (That branch's gradient becomes zeros here, but stays `None` in DDP.) The cell compares three
# steps with `Replica` and three with DDP.


# %%
class Awkward(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.body = nn.Embedding(30, 16), nn.Linear(16, 16)
        self.frozen = nn.Linear(16, 16)
        self.branches = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))
        self.frozen.requires_grad_(False)

    def forward(self, tokens, kind):
        h = torch.tanh(self.frozen(self.body(self.embedding(tokens))))
        return self.branches[kind](h) @ self.embedding.weight.T  # tied: used at both ends


def three_steps(ours):
    rank = dist.get_rank()
    torch.manual_seed(rank)  # on purpose: ranks start from different weights
    model = Awkward()
    if ours:
        replica = Replica(model, capacity=4096)
    else:
        wrapped = nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    for step in range(3):
        tokens = torch.randint(0, 30, (8,), generator=torch.Generator().manual_seed(100 * step + rank))
        logits = (model if ours else wrapped)(tokens, rank % 2)  # branch 2 is used by nobody
        F.cross_entropy(logits, tokens.roll(1)).backward()
        if ours:
            replica.finish()
        optimizer.step()
        optimizer.zero_grad()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


ours, theirs = distributed.run(three_steps, 2, True), distributed.run(three_steps, 2, False)
print("replicas agree to the last bit:", torch.equal(*ours), torch.equal(*theirs))
print("ours and PyTorch's agree to the last bit:", torch.equal(ours[0], theirs[0]))
sent = [c for c in ours.calls if c.operation == "all_reduce" and c.rank == 0]
print(f"all-reduces in 3 steps: {len(sent)}, of {sorted({c.bytes for c in sent})} bytes")

# %% [markdown]
# **Accumulating.** If M micro-batches are accumulated before each step (lab 01), only the last backward needs
# an exchange. DDP sends in every backward, unless you run it inside `with model.no_sync():`. In our class,
# `replica.sync = False` does the same.
#
# **Predict.** A step has 8 micro-batches, and `no_sync` is not used. By what factor are more bytes sent than
# needed?

# %%
gpulab.predict("parallel.syncs", ...)

# %% [markdown]
# **See.** Now the overlap is measured on 2 ranks. Added waits make the network slow, with 2 ms per message and 20
# MB/s (the all-reduce itself takes little time after that). In the first run all gradients are sent after backward,
# and in the second they are sent by hooks.


# %%
import time
from concurrent.futures import ThreadPoolExecutor


def one_step(overlap):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(400, 400) for _ in range(6)])
    x = torch.randn(2000, 400)
    network, spans = ThreadPoolExecutor(1), []  # one message after the other, in the same order everywhere

    def slow_all_reduce(tensor):
        start = time.monotonic()
        time.sleep(0.002 + tensor.nbytes / 20e6)
        dist.all_reduce(tensor)
        spans.append(["network", start, time.monotonic()])

    def backward_and_send():
        under_way = []

        def hook(parameter):
            under_way.append(network.submit(slow_all_reduce, parameter.grad))

        parameters = list(model.parameters())
        handles = [p.register_post_accumulate_grad_hook(hook) for p in parameters if overlap]
        loss = model(x).square().mean()
        start = time.monotonic()
        loss.backward()
        spans.append(["backward", start, time.monotonic()])
        if not overlap:
            for parameter in reversed(parameters):
                hook(parameter)
        for future in under_way:
            future.result()
        for handle in handles:
            handle.remove()
        return start

    backward_and_send()  # to warm up
    model.zero_grad()
    spans.clear()
    dist.barrier()
    start = backward_and_send()
    return [[row, 1e3 * (a - start), 1e3 * (b - start)] for row, a, b in spans]


spans = []
for overlap, name in ((False, "afterwards"), (True, "by hooks")):
    found = distributed.run(one_step, 2, overlap)[0]
    spans += [plot.Span(f"{name}: {row}", a, b, "", row) for row, a, b in sorted(found, key=lambda s: s[0])]
    print(f"sending {name}: {max(b for _, _, b in found):.0f} ms from the start of backward (measured)")
plot.timeline(
    spans,
    "ms",
    caption="In the upper rows all gradients are sent after backward, in the lower rows each when its hook is "
    "called. The first all-reduce of each run also waits for the other rank's gradient.",
)

# %% [markdown]
# ## B6 · Larger batches, larger steps
#
# With eight times as many ranks the batch is eight times as large, so an epoch has only an eighth of the
# steps. If the learning rate stays the same, training gets only an eighth as far per epoch.
#
# **Predict.** SGD runs with a batch of 16 and a learning rate of 0.05. With which rate does a batch of 128
# get as far in an epoch, if gradients hardly change from step to step?

# %%
gpulab.predict("parallel.rate", ...)

# %% [markdown]
# Consider SGD and gradients that change slowly. Then eight steps of size η are about the same as one step of
# size 8 η on the mean of the eight gradients. This is the **linear rule**. In the first epochs gradients
# change quickly, so the rate is raised gradually, in a **warm-up** (Goyal et al., 2017). **Adam** and its
# relatives divide by the gradient's root mean square, and for them the **square-root rule** fits: η · √8
# (Malladi et al., 2022). Both rules hold only up to some largest batch.

# %%
numbers = np.random.default_rng(0)
truth = numbers.standard_normal(30)
features = numbers.standard_normal((8192, 30))
labels = (features @ truth + numbers.standard_normal(8192) > 0).astype(float)


def sgd(batch, rate):
    """Logistic regression for one epoch: the loss on all samples, after every 256 samples."""
    weights, curve = np.zeros(30), []
    for start in range(0, 8192, batch):
        x, y = features[start : start + batch], labels[start : start + batch]
        weights -= rate * x.T @ (1 / (1 + np.exp(-x @ weights)) - y) / batch
        if (start + batch) % 256 == 0:
            logits = features @ weights
            curve.append((start + batch, float((np.logaddexp(0, logits) - labels * logits).mean())))
    return curve


plot.lines(
    {
        "batch 16, 0.05": sgd(16, 0.05),
        "batch 128, 0.05 × 8": sgd(128, 0.4),
        "batch 128, 0.05 × √8": sgd(128, 0.05 * 8**0.5),
        "batch 128, 0.05": sgd(128, 0.05),
    },
    "samples seen",
    "loss on all samples",
    "SGD: with the rate times eight, a batch eight times as large learns as much from each sample.",
)

# %% [markdown]
# ## B7 · Not waiting for the slowest
#
# Synchronous training waits for the slowest rank in every step. **Asynchronous** training does not. A
# **parameter server** holds the weights. A worker fetches them, computes a gradient and sends it back, and
# the server applies it at once. By then, other workers have changed the weights. The number of updates in
# between is the gradient's **staleness**.
#
# **Predict.** There are 8 equally fast workers. What is the mean staleness, once all of them are under way?

# %%
gpulab.predict("parallel.staleness", ...)

# %%
import heapq


def staleness(workers, updates, spread, seed=0):
    """The staleness of each update; a gradient takes 1 ± spread."""
    numbers, version, found = np.random.default_rng(seed), 0, []
    queue = [(1 + spread * numbers.uniform(-1, 1), worker, 0) for worker in range(workers)]
    heapq.heapify(queue)
    while len(found) < updates:
        now, worker, fetched = heapq.heappop(queue)
        found.append(version - fetched)
        version += 1
        heapq.heappush(queue, (now + 1 + spread * numbers.uniform(-1, 1), worker, version))
    return found


found = staleness(8, 5000, 0.5)[100:]
print(f"8 workers: mean staleness {np.mean(found):.2f}, largest {max(found)}")


def delayed(late, rate=0.15, steps=80):
    """The way to the minimum, 0, of a parabola with curvature 1 when every gradient is `late` updates old."""
    path = [1.0] * (late + 1)
    for _ in range(steps):
        path.append(path[-1] - rate * path[-1 - late])
    return list(enumerate(path[late:]))


plot.lines(
    {f"staleness {late}": delayed(late) for late in (0, 3, 7, 15)},
    "updates",
    "weight (the minimum is at 0)",
    "At the same rate, 0.15, the weight overshoots further the staler the gradients, and in the end "
    "diverges.",
)

# %% [markdown]
# **Why.** A stale gradient keeps pushing in the old direction after the minimum is passed. For a parabola
# with curvature 1 and staleness τ, the rate must stay below 2 sin(π / (4 τ + 2)). That is 2 for τ = 0, 0.209
# for τ = 7, and 0.101 for τ = 15 (Levin and May, 1976). So asynchronous training must take smaller steps. Its
# results also change from run to run, because the order of updates does.
#
# ## B8 · Fewer bits
#
# If the network is slow, gradients can be **compressed**. One way is to send only the k largest numbers of
# each gradient (**top-k**), and another is to send only the signs and a single scale (**1-bit**). In both
# cases something is not sent. **Error feedback** does not lose it: the rest is kept in a memory, which is
# added to the next gradient (Karimireddy et al., 2019).
#
# **Predict.** A gradient has 1,669 FP32 numbers. A rank sends the 17 largest, which are about 1 %, each with
# its index as an INT32. By what factor are that fewer bytes than the whole gradient?

# %%
gpulab.predict("parallel.topk", ...)

# %% [markdown]
# **Do.** Write `compress(gradient, memory, k)` for top-k with error feedback. About 5 lines.
#
# - Input: `gradient` and `memory`, lists of floats of the same length, and `k`, which may exceed that length.
# - Output: `[sent, new memory]`. `sent` is a list of at most k pairs `[index, value]`, with no index twice.
#   The new memory is as long as the gradient.
# - **Budget:** nothing is lost, so for each element sent + new memory = gradient + memory. And the norm of
#   the new memory is as small as k numbers allow.


# %% nbgrader={"grade": false, "grade_id": "compress", "locked": false, "schema_version": 3, "solution": true, "task": false}
def compress(gradient, memory, k):
    ### BEGIN SOLUTION
    total = [g + m for g, m in zip(gradient, memory, strict=True)]
    largest = sorted(range(len(total)), key=lambda i: -abs(total[i]))[:k]
    sent = [[i, total[i]] for i in largest]
    for i in largest:
        total[i] = 0.0
    return [sent, total]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "compress-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.compress", compress)

# %%
gpulab.need(compress)


def top_k(total, memory):
    sent, memory = compress(total.tolist(), memory.tolist(), 17)  # 1 % of 1,669 numbers
    out = np.zeros_like(total)
    for i, value in sent:
        out[i] = value
    return out, np.array(memory)


def top_k_forgetful(total, memory):
    return top_k(total, 0 * memory)[0], memory


def one_bit(total, memory):
    total = total + memory
    out = np.sign(total) * np.abs(total).mean()
    return out, total - out


def train(compressor, steps=150, workers=4, rate=0.5):
    """Loss on all samples after each step; the workers are simulated one after the other."""
    model, (x, y) = small_model(), samples(512)
    y = x[:, :5].argmax(1)  # something that can be learned
    parameters = list(model.parameters())
    memories, losses = [np.zeros(1669) for _ in range(workers)], []
    for step in range(steps):
        mean = np.zeros(1669)
        for worker in range(workers):
            rows = slice(128 * worker + 32 * (step % 4), 128 * worker + 32 * (step % 4) + 32)
            model.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            mine = torch.cat([p.grad.flatten() for p in parameters]).double().numpy()
            out, memories[worker] = compressor(mine, memories[worker])
            mean += out / workers
        parts = torch.from_numpy(mean).float().split([p.numel() for p in parameters])
        with torch.no_grad():
            for parameter, part in zip(parameters, parts, strict=True):
                parameter -= rate * part.view_as(parameter)
            losses.append((step + 1, F.cross_entropy(model(x), y).item()))
    return losses


plot.lines(
    {
        "all, 6,676 B": train(lambda total, memory: (total, memory)),
        "1-bit, 213 B": train(one_bit),
        "top 1 %, 136 B": train(top_k),
        "top 1 %, no memory": train(top_k_forgetful),
    },
    "step",
    "loss on all samples",
    "With error feedback, top 1 % and 1-bit learn almost as fast as all numbers. Without it, top 1 % does "
    "not.",
)

# %% [markdown]
# **Why.** A number that is small in every step adds up in the memory until it is among the largest, and then
# it is sent. Compressed gradients cannot simply be all-reduced, because sums of signs need more than one bit,
# and because each rank has other indices. Adam also needs exact second moments for a while. So **1-bit Adam**
# starts as plain Adam and then freezes them (Tang et al., 2021; up to 5 times less communication in all, and
# up to 26 times with 0/1 Adam, Lu et al., 2022). All this pays off between machines on slow networks, and
# less over NVLink.
#
# ## B9 · How ranks start
#
# `torchrun --nproc-per-node 8 train.py` starts 8 processes on a machine. Environment variables give each
# process its rank, and the address `MASTER_ADDR:MASTER_PORT` of a store at which all of them meet.
#
# ![How ranks start: a launcher starts the processes and gives each a rank and an address. All meet at that address, and from then on they know each other.](drawings/rendezvous.svg)
#
# ```python
# import os
#
# import torch
# import torch.distributed as dist
#
# local_rank = int(os.environ["LOCAL_RANK"])  # a string until you convert it
# torch.cuda.set_device(local_rank)  # which GPU of this machine
# dist.init_process_group("nccl")  # reads RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
# model = torch.nn.parallel.DistributedDataParallel(model.cuda(), device_ids=[local_rank])
# …
# dist.destroy_process_group()
# ```
#
# `distributed.run` also sets `RANK`, `WORLD_SIZE` and `LOCAL_RANK`. `torch.multiprocessing.spawn` starts
# processes from Python, but you must set the variables yourself.

# %%
import os


def who():
    return {name: os.environ.get(name) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE")}


print(list(distributed.run(who, 2)))

# %% [markdown]
# ## Detective · The run that four ranks made worse
#
# A colleague trains a language model on four ranks. His sequences are padded to the same length, and the
# labels of padding are -100, which `cross_entropy` ignores. "The loss falls, the replicas agree, and every
# rank gets four sequences. But the model learns worse than in one process with the same global batch."


# %%
def batch():
    """16 sequences of up to 32 tokens for four ranks; sorted by length, as data sets often are."""
    numbers = torch.Generator().manual_seed(3)
    lengths = torch.tensor([32] * 4 + [20] * 4 + [6] * 4 + [2] * 4)
    x = torch.randn(16, 32, 20, generator=numbers)
    y = torch.randint(0, 5, (16, 32), generator=numbers)
    y[torch.arange(32) >= lengths[:, None]] = -100
    return x, y


def masked_gradient(x, y):
    model = small_model()
    F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=-100).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def theirs():
    rank, size = dist.get_rank(), dist.get_world_size()
    x, y = (part.tensor_split(size)[rank] for part in batch())
    mine = masked_gradient(x, y)
    dist.all_reduce(mine)
    return mine / size


alone, together = masked_gradient(*batch()), distributed.run(theirs, 4)[0]
error = (together - alone).norm() / alone.norm()
print(f"four ranks against one process: the gradients differ by {100 * error:.0f} %")

# %% [markdown]
# Such a difference cannot be rounding. **Do.** Find the cause in this cell before you read on. Change one
# thing at a time in `batch`. Which change makes the difference disappear?

# %%
# Your experiment.

# %% [markdown]
# **Do.** Now repair it. Write `factors(counts)`. About 2 lines.
#
# - Input: `counts`, a list in which `counts[r]` is how many labels other than -100 rank r has in this step. A
#   count may be 0, but not all of them. (A rank without labels has the loss NaN, but its gradient is 0 here.)
# - Output: a list of floats, one for each rank. Each rank multiplies its own gradient by its factor. The
#   **average over ranks** of these products must be the gradient that one process computes from all labels.


# %% nbgrader={"grade": false, "grade_id": "factors", "locked": false, "schema_version": 3, "solution": true, "task": false}
def factors(counts):
    ### BEGIN SOLUTION
    return [len(counts) * count / sum(counts) for count in counts]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "factors-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.factors", factors)


# %%
def mended():
    rank, size = dist.get_rank(), dist.get_world_size()
    x, y = (part.tensor_split(size)[rank] for part in batch())
    counts = torch.zeros(size)
    counts[rank] = (y != -100).sum()
    dist.all_reduce(counts)  # now every rank knows all counts
    mine = factors(counts.tolist())[rank] * masked_gradient(x, y)
    dist.all_reduce(mine)
    return mine / size


gpulab.need(factors)
error = (distributed.run(mended, 4)[0] - alone).norm() / alone.norm()
print(f"with your factors the gradients differ by {100 * error:.5f} %")

# %% [markdown]
# ### Your answer
#
# Answer in three to five sentences. Why did four ranks compute a different gradient from one process? How much did a
# label of the rank with the fewest labels weigh, compared with a label of the rank with the most? Which number from
# your experiment shows it?
#
# A person reads this and gives 1 point for the cause, and 1 point for a number that you computed.

# %% [markdown] nbgrader={"grade": true, "grade_id": "factors-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** Each rank takes the mean over its own real labels, and the ranks' means are averaged with equal
# weight. The ranks have 128, 80, 24 and 8 labels. So a label of the last rank weighs 1/8 and a label of the first
# 1/128, a factor of 16. The averaged gradient differs from the right one by the percentage that the detective's first
# cell prints. With the factors 4 · n / 240 the two agree up to rounding.
#
# **1 point** (cause without a number): The mean of means is not the mean if ranks have different numbers of
# labels.
#
# **0 points:** Floating-point sums depend on their order. Or: the learning rate must be scaled.

# %% [markdown]
# ## Beyond · A training pipeline of your own
#
# This task is open-ended and ungraded. Combine the parts of this lab: your sampler, `Replica`, the factors,
# two micro-batches per step, and a warm-up. Instead of `dist.all_reduce`, use a copy of your own all-reduce
# from part A. It has no `async_op`, so send after backward. Train `small_model` on four ranks for two epochs
# of `samples(500)`.
#
# The figure of merit is the number of bytes that the busiest rank sends in a step, while the weights agree
# with those of one process to six digits. `results.bytes_sent` counts only your own messages. The function
# below adds what a ring sends for each `dist.all_reduce`.


# %%
def busiest(results, steps):
    """Bytes that the busiest rank sends in a step."""
    size, charged = len(results), list(results.bytes_sent)
    for call in results.calls:
        if call.operation == "all_reduce":
            charged[call.rank] += 2 * (size - 1) / size * call.bytes
    return max(charged) / steps


print(f"one dist.all_reduce of the gradient: {busiest(distributed.run(averaged, 4, 64), 1):,.0f} bytes")

# %% [markdown]
# | version | bytes per step |
# |---|---|
# | to everybody, in every micro-batch | 2 · 3 · 6,676 |
# | to everybody, once a step | 3 · 6,676 |
# | reference: your ring, once a step | 1.5 · 6,676 |
# | bound without compression | 1.5 · 6,676 |

# %%
# Your pipeline. Put the bytes of its busiest rank in a step into `mine`.
mine = None

# %% jupyter={"source_hidden": true}
known = {"every micro-batch": 2 * 3 * 6676, "once a step": 3 * 6676, "ring and bound": 1.5 * 6676}
plot.bars(
    known | ({"yours": mine} if mine else {}),
    "bytes per step",
    caption="Your pipeline appears here as soon as `mine` has a value.",
)

# %% [markdown]
# ## Recap of lab 15
#
# <details><summary>1. When do p ranks compute the same as one process with the whole batch?</summary>
#
# They do if all of them have the same number of samples or labels (or weight their gradients accordingly), if no
# layer looks at the batch, and if random numbers agree. Then the results are equal up to the order of additions.
# </details>
#
# <details><summary>2. What goes wrong without <code>set_epoch</code>?</summary>
#
# Nothing that you would notice: every epoch has the same order and the same batches.
# </details>
#
# <details><summary>3. Why are gradients sent in buckets, and why not in a single one?</summary>
#
# Each all-reduce costs a latency, so one for each gradient is slow. A single one for everything can start
# only when backward has ended.
# </details>
#
# <details><summary>4. A parameter is used on one rank only. What must the other ranks do?</summary>
#
# They send zeros for it, in the same bucket and in the same order. DDP does so with
# `find_unused_parameters=True`.
# </details>
#
# <details><summary>5. What does error feedback promise?</summary>
#
# Nothing is lost. What is not sent stays in the memory and is sent later.
# </details>

# %%
gpulab.recap("15")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | reduce-scatter or all-gather | each rank sends (p − 1) / p · S bytes |
# | all-reduce | both of them: 2 (p − 1) / p · S; a ring has 2 (p − 1) messages in a row, halving has 2 log2 p |
# | broadcast | ⌈log2 p⌉ rounds |
# | α–β model | a message of n bytes takes α + n / β |
# | no deadlock | every rank makes the same collective calls in the same order |
# | samples | the same permutation on all ranks, from seed + epoch; pad; then `order[rank::ranks]` |
# | unequal counts | multiply by p · n / Σ n before the average |
# | overlap | send while backward runs; the last bucket cannot hide |
# | batch × k | SGD: rate × k with warm-up; Adam: rate × √k |
# | p asynchronous workers | mean staleness p − 1 |
#
# ### Claims you will meet, and what is right
#
# - *Data parallel training gives identical results.* They agree up to the order of additions, and only with
#   equal counts, without batch norm per rank, and with agreeing random numbers.
# - *A ring all-reduce sends a constant volume.* It sends 2 (p − 1) / p · S per rank, which tends to 2 S.
# - *A tree all-reduce costs 2 log2 p · S.* That is the tree without pipelining, with ⌈log2 p⌉ if p is not a
#   power of two. NCCL sends large arrays through its trees in pieces.
# - *The square-root rule keeps training the same,* with `lr * world_size` and AdamW in the code below it. The
#   linear rule with warm-up is for SGD, and the square-root rule is for Adam.
# - *`torch.cuda.set_device(os.environ["LOCAL_RANK"])`.* The variable is a string: use `int(…)`.
# - *Back ends are NCCL, Gloo, MPI and TCP.* TCP is what Gloo sends over. MPI needs PyTorch built from source.
# - *1-bit Adam saves up to 26 ×, within a machine.* It saves up to 5 ×. The 26 × are 0/1 Adam's. Both are
#   meant for networks between machines.
# - *Accumulation works under DDP as it is.* It does, but it sends M times as much. Use `no_sync()` for all
#   micro-batches except the last.
#
# ### References
#
# 1. R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH",
#    2005.
# 2. S. Jeaugey, "Massively Scale Your Deep Learning Training with NCCL 2.4", NVIDIA, 2019.
# 3. R. Graham et al., "Scalable Hierarchical Aggregation Protocol (SHArP)", COM-HPC 2016.
# 4. S. Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020.
#    https://arxiv.org/abs/2006.15704
# 5. P. Goyal et al., "Accurate, Large Minibatch SGD", 2017. https://arxiv.org/abs/1706.02677
# 6. S. Malladi et al., "On the SDEs and Scaling Rules for Adaptive Gradient Algorithms", 2022.
#    https://arxiv.org/abs/2205.10287
# 7. B. Levin, R. May, "A note on difference-delay equations", Theoretical Population Biology, 1976.
# 8. S. P. Karimireddy et al., "Error Feedback Fixes SignSGD and other Gradient Compression Schemes", 2019.
#    https://arxiv.org/abs/1901.09847
# 9. H. Tang et al., "1-bit Adam", 2021. https://arxiv.org/abs/2102.02888
# 10. Y. Lu et al., "Maximizing Communication Efficiency for Large-scale Training via 0/1 Adam", 2022.
#     https://arxiv.org/abs/2202.06009
