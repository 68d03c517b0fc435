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
# **About three hours.** You need part A (ranks, all-reduce) and lab 08 (where the time of a training step goes).
#
# In **data parallel** training every rank has a whole copy of the model, a **replica**, and its own part of the
# batch. Each computes gradients on its part; an all-reduce averages them; all take the same step. Weights,
# gradients and optimizer states are there p times. Activations are not: each rank has those of its own samples.
#
# When you are through, you can
#
# 1. say when p ranks compute the same gradient as one process, and when to the last bit;
# 2. give every rank its samples, each once, in a new order each epoch;
# 3. put gradients into buckets so that sending them hides behind the backward pass;
# 4. say what tied, frozen and unused parameters and accumulation ask of the exchange;
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
# A step of every rank: forward and backward on its own samples; all-reduce of the gradient; the optimizer's step.
# In its favour: the model's code stays as it is, and one array is exchanged per step. Against it: model and
# optimizer must fit on one GPU (lab 16 shares them out), and the batch grows with the ranks.
#
# ![Data parallel training: every rank has the whole model and a part of the batch. Gradients are averaged over all ranks, so every rank makes the same step.](drawings/data_parallel.svg)
#
# The loss of a batch is a mean over its samples, so its gradient is a mean as well. With b samples on each rank, the
# mean of the ranks' gradients is that of a global batch B = p · b.
#
# The next cell computes the gradient of 64 samples, once in this process and once on four ranks with 16 each.
#
# **Predict.** How many percent of the gradient's numbers are the same to the last bit?

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
# **Why.** Floating-point sums depend on their order, and four partial sums are another order than one. The
# difference is rounding. Where all sums are exact, as with small whole numbers and a power of two of samples, there
# is none:


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
# *Among ranks* every bit must agree always, or the replicas drift apart. It does: each number of the sum is added up
# in one place and copied from there (in part A `to_everybody` does not, and its ranks differ).
#
# Four ranks are **not** one process with a larger batch where a layer looks at the batch (batch norm computes
# statistics per rank; `SyncBatchNorm` over all), or where random numbers are drawn (dropout). The detective meets
# a third case.
#
# ## B2 · Who gets which sample
#
# ![Who gets which sample: the order is shuffled by the epoch's seed, and rank r takes every third place from r on. What is missing at the end is filled from the start.](drawings/sampler.svg)
#
# In each epoch every sample should be used once, by one rank, in a new random order. No rank must run out
# before the others: its partners would wait in the all-reduce forever. PyTorch's `DistributedSampler` does it:
#
# - all ranks shuffle alike, with a seed that depends on the epoch: `seed + epoch`;
# - the order is made longer with its own beginning, again and again if need be, until its length is a multiple
#   of the number of ranks;
# - rank r takes the elements r, r + p, r + 2p …
#
# The sampler knows the epoch only if it is told, by `sampler.set_epoch(epoch)`. Without it every epoch has the
# order of the first.
#
# **Predict.** 1,001 samples, 8 ranks. How many samples are used twice in an epoch?

# %%
gpulab.predict("parallel.padded", ...)

# %% [markdown]
# **Do.** Write `indices(length, ranks, rank, seed, epoch)`: the list of samples of one rank in one epoch, in
# their order. The shuffled order is `np.random.default_rng(seed + epoch).permutation(length)`. About 4 lines.


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
# **See.** How often each pair of samples meets in a batch, over 20 epochs, with and without `set_epoch`. 24
# samples, 3 ranks with a batch of 4 each.

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
for ax, tell, colour in zip(axes, (True, False), ("#0064a4", "#d55e00"), strict=True):
    ax.hist(meetings(tell), bins=np.arange(-0.5, 21.5), color=colour)
    ax.set_title("with set_epoch" if tell else "without")
    ax.set(xlabel="meetings of a pair in 20 epochs", xticks=(0, 5, 10, 15, 20))
axes[0].set_ylabel("pairs of samples")
plot.picture(axes[0], "With set_epoch most pairs meet about ten times; without, always or never.")

# %% [markdown]
# Without `set_epoch` two samples meet always or never: the batches are the same 20 times.
#
# Three more duties that one process did not have. The **loss** that you log is one rank's; average it over ranks
# (all of them call the all-reduce, part A's detective). **Checkpoints** are written by rank 0 alone, since all have
# the same weights; others wait at a barrier if they read them next. For **evaluation** padded samples count
# twice: divide sums by sums.
#
# ## B3 · When to send
#
# Backward produces gradients from the last layer to the first, long before it ends. Sending can start at once:
# messages travel while the next gradients are computed. What is left to wait for *after* backward is all that
# data parallelism costs.
#
# An all-reduce costs a latency whatever its size, so gradients are sent together, in **buckets**. A large bucket
# starts late, because it waits for its last gradient; many small ones pay the latency often. PyTorch's DDP fills
# buckets of 25 MiB (the first of 1 MiB) in the reverse order of registration (Li et al., 2020).
#
# **Predict.** Backward takes 100 ms. The embedding's gradient comes last and is a tenth of all bytes. An all-reduce
# of everything takes 40 ms, the latency is negligible. How many ms must one wait after backward, at least?

# %%
gpulab.predict("parallel.exposed", ...)

# %% [markdown]
# **Do.** Write `buckets(sizes, log, latency, rate)`.
#
# - `sizes`: bytes of each parameter that needs a gradient, by name. Frozen ones are not in it.
# - `log`: what happens in backward, a list of `[ms, name]`: at that time something was added to that gradient. A
#   **tied** parameter is used twice and stands there twice; its gradient is complete with the second. An **unused** one is not there: its gradient is zero,
#   known from the start, and must be sent all the same, because other ranks may have used it.
# - An all-reduce takes `latency` + bytes / `rate` ms. They run one after the other, in your order.
#
# Return the list of buckets, each a list of names, in the order in which they are sent. **Budget:** the waiting
# after backward at most 1.6 times the least possible. About 12 lines.


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
# **See.** Three plans for the backward pass of six layers (modelled). The last matrix, the embedding, is also the
# output layer here: tied.

# %%
gpulab.need(buckets)
MB = 1e6
log = [[6, "embedding"], *([6 + 5 * k, f"layer {6 - k}"] for k in range(1, 7)), [42, "embedding"]]
ready = {name: ms for ms, name in log}
sizes = {name: (12 if name == "embedding" else 8) * MB for name in ready}
LATENCY, RATE = 4.0, 3.2 * MB  # ms a message, bytes per ms


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
    caption="Each amber bar is an all-reduce; what lies right of the line, the end of backward, is waiting.",
)
picture.axes.axvline(log[-1][0], color="#767676", linestyle="--", linewidth=1)
picture

# %% [markdown]
# ## B4 · DDP from scratch
#
# PyTorch's wrapper for data parallel training is **DDP**, `torch.nn.parallel.DistributedDataParallel`. At the start
# it broadcasts rank 0's weights; after that the replicas stay equal, because all take the same steps. What it
# must cope with:
#
# - a **frozen** parameter has no gradient and is in no bucket;
# - a **tied** one is one tensor that the model uses twice, and has one gradient, the sum of both;
# - one that was **unused** on this rank has `.grad` None here, and perhaps not elsewhere;
# - all ranks must make the same calls with the same sizes, whatever they used.
#
# Here is a model with a tied matrix (`weights[0]`) and two branches, of which a rank uses one:


# %%
def loss(weights, x):
    tied, branch = weights[0], weights[1 + dist.get_rank() % 2]
    h = torch.tanh(x @ tied)
    for weight in weights[3:]:
        h = torch.tanh(h @ weight)
    return (h @ branch @ tied.T).square().mean()


# %% [markdown]
# **Do.** Write `exchange(weights, x, capacity)`. `x` is this rank's part of the batch; all of `weights` need
# gradients. Run the backward pass of `loss(weights, x)`, and leave in each weight's `.grad` the mean over all ranks;
# unused counts as zeros. Fill
# buckets in the reverse order of `weights`, with at most `capacity` bytes of gradients each (a larger one is alone
# in its bucket). Start a new bucket only when the next gradient would not fit. Call `dist.all_reduce` once for
# each bucket. **Budget:** as many all-reduces as buckets, every gradient sent once. About 15 lines. (After backward
# any order of buckets costs the same, and the check cannot tell; B5 needs the reverse one.)
#
# ![Experts on ranks: each token is sent to the rank of its expert. A buffer has room for a fixed number of tokens, and what does not fit is left out.](drawings/capacity.svg)


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
# What is missing is the overlap. Autograd calls a **hook** of a parameter when its gradient is complete (once, for a
# tied one after its last addend):
# `parameter.register_post_accumulate_grad_hook(fn)`. The class below sends a bucket as soon as its last hook was
# called, with `async_op=True`: the call comes back at once, and `.wait()` waits for its end.
#
# ![Buckets: the backward pass makes gradients from the last layer to the first. As soon as a bucket is full its all-reduce starts, while the backward pass goes on.](drawings/buckets.svg)


# %%
class Replica:
    """A model whose gradients are averaged over all ranks while backward runs."""

    def __init__(self, model, capacity=1 << 20):
        self.model, self.sync, self.calls = model, True, 0
        for tensor in model.state_dict().values():
            dist.broadcast(tensor, 0)
        wanted = [p for p in model.parameters() if p.requires_grad]  # a tied one stands there once
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
            self.send()  # without sync gradients pile up in .grad, and nothing is sent

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
# Why does `send` never send a bucket out of turn, though a later one may be full first? Ranks that use different
# branches fill buckets in different orders, and the n-th all-reduce of one rank meets the n-th of the others.
#
# The test: a model with a tied weight, a frozen layer, and branches, one of which nobody uses (it gets zeros here,
# and stays `None` in DDP). Three steps with `Replica`, three with DDP.


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
# **Accumulating.** With M micro-batches before each step (lab 01) only the last backward needs to exchange. DDP
# sends in every backward unless it stands in `with model.no_sync():`. Set `replica.sync = False` for the same here.
#
# **Predict.** 8 micro-batches a step, no `no_sync`. How many times as many bytes are sent as needed?

# %%
gpulab.predict("parallel.syncs", ...)

# %% [markdown]
# **See.** Overlap, measured: 2 ranks, a slow network made by waiting (2 ms a message and 20 MB/s; the all-reduce
# itself then takes little). In the first run all gradients are sent after backward, in the second by hooks.


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
    caption="Above all gradients are sent after backward, below each when its hook is called. The first "
    "all-reduce of each run also waits for the other rank's gradient.",
)

# %% [markdown]
# ## B6 · Larger batches, larger steps
#
# Eight times as many ranks make the batch eight times as large, and an epoch has an eighth of the steps. If the
# learning rate stays, training gets an eighth as far.
#
# **Predict.** SGD with a batch of 16 and learning rate 0.05. Which rate for a batch of 128 gets as far in an epoch,
# if gradients hardly change from step to step?

# %%
gpulab.predict("parallel.rate", ...)

# %% [markdown]
# For SGD, eight steps of size η on slowly changing gradients are one step of 8 η on their mean: the **linear
# rule**, with a **warm-up** over the first epochs, while gradients change quickly (Goyal et al., 2017). For **Adam**
# and others that divide by the gradient's root mean square, the **square-root rule** fits: η · √8 (Malladi et al.,
# 2022). Both hold up to a largest batch only.

# %%
numbers = np.random.default_rng(0)
truth = numbers.standard_normal(30)
features = numbers.standard_normal((8192, 30))
labels = (features @ truth + numbers.standard_normal(8192) > 0).astype(float)


def sgd(batch, rate):
    """Logistic regression, one epoch; the loss on all samples after each 256."""
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
# Synchronous training waits for the slowest rank in every step. In **asynchronous** training a **parameter server**
# holds the weights. A worker fetches them, computes a gradient, sends it; the server applies it at once. By then
# others have changed the weights. How many updates came between is the gradient's **staleness**.
#
# **Predict.** 8 workers, all alike. What is the mean staleness, once all are under way?

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
    "The same learning rate, 0.15: the staler the gradients, the further the weight overshoots, until it runs away.",
)

# %% [markdown]
# **Why.** A stale gradient keeps pushing after the valley is crossed. With curvature 1 and staleness τ the rate
# must stay below 2 sin(π / (4 τ + 2)): 2 for τ = 0, 0.209 for 7, 0.101 for 15 (Levin and May, 1976). So
# asynchronous training takes smaller steps, and its results change from run to run, because the order of updates
# does.
#
# ## B8 · Fewer bits
#
# Where the network is slow, gradients can be **compressed**. Two ways: send only the k largest numbers of each
# gradient (**top-k**), or only the signs and one scale (**1-bit**). Either way something is not sent. **Error
# feedback** keeps it: the rest goes into a memory, and the memory is added to the next gradient (Karimireddy et al.,
# 2019).
#
# **Predict.** Of a gradient of 1,669 float32 numbers a rank sends the 17 largest, about 1 %, each with its index as an
# int32. How many times fewer bytes are that?

# %%
gpulab.predict("parallel.topk", ...)

# %% [markdown]
# **Do.** Write `compress(gradient, memory, k)` for top-k with error feedback; all are lists of floats. Return
# `[sent, new memory]`; `sent` is a list of at most k pairs `[index, value]`. **Budget:** nothing is lost, that
# is, sent + new memory = gradient + memory, and the new memory's norm is as small as k numbers allow.
# About 5 lines.


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
    "With error feedback top 1 % and 1-bit learn almost as fast as all numbers; without memory top 1 % does not.",
)

# %% [markdown]
# **Why.** A number that is small in every step adds up in the memory until it is among the largest. Compressed
# gradients cannot be all-reduced as they are: sums of signs need more bits, and each rank has other indices. For
# Adam the second moments must be kept exact for a while: **1-bit Adam** runs plain Adam first, then freezes them
# (Tang et al., 2021; up to 5 × less communication in all; 0/1 Adam up to 26 ×, Lu et al., 2022). All of this pays between machines on
# slow networks, less over NVLink.
#
# ## B9 · How ranks start
#
# `torchrun --nproc-per-node 8 train.py` starts 8 processes on a machine and tells each who it is, by environment
# variables. They meet at a store at `MASTER_ADDR:MASTER_PORT`.
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
# `distributed.run` sets `RANK`, `WORLD_SIZE` and `LOCAL_RANK` too. `torch.multiprocessing.spawn` starts processes from
# Python; you set the variables yourself.

# %%
import os


def who():
    return {name: os.environ.get(name) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE")}


print(list(distributed.run(who, 2)))

# %% [markdown]
# ## Detective · The run that four ranks made worse
#
# A colleague trains a language model on four ranks. Sequences are padded to one length, and labels of padding are
# -100, which `cross_entropy` ignores. "The loss falls, the replicas agree, every rank gets four sequences. But it
# learns worse than one process with the same global batch."


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
# That is no rounding. **Do.** Find the cause in this cell before you read on. What could you change in `batch`,
# one thing at a time, so that the difference goes away?

# %%
# Your experiment.

# %% [markdown]
# **Mend it.** Write `factors(counts)`: `counts[r]` is how many labels other than -100 rank r has in this step. Return
# the list of numbers by which each rank must multiply its own gradient before the *average over ranks*, so that the
# result is the gradient of one process. A rank may have no labels (its loss is NaN then, but its gradient here is 0);
# not all have none. About 2 lines.


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
    dist.all_reduce(counts)  # everybody learns all counts
    mine = factors(counts.tolist())[rank] * masked_gradient(x, y)
    dist.all_reduce(mine)
    return mine / size


gpulab.need(factors)
error = (distributed.run(mended, 4)[0] - alone).norm() / alone.norm()
print(f"mended: the gradients differ by {100 * error:.5f} %")

# %% [markdown]
# ### Your answer
#
# In three to five sentences: why did four ranks compute another gradient than one process? How much did a label of
# the rank with the fewest weigh, against one of the rank with the most? Which number of your experiment shows it?
# A person reads this: 1 point for the cause, 1 point for a number that you computed.

# %% [markdown] nbgrader={"grade": true, "grade_id": "factors-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** Each rank takes the mean over its own real labels, and the ranks' means are averaged with equal
# weight. The ranks have 128, 80, 24 and 8 labels, so a label of the last rank weighs 1/8 against 1/128: 16 times
# as much. The averaged gradient differs from the right one by the percentage printed in the detective's first
# cell; with the factors 4 · n / 240 it agrees up to rounding.
#
# **1 point** (cause without a number): The mean of means is not the mean if ranks have different numbers of labels.
#
# **0 points:** Floating-point sums depend on their order. Or: the learning rate must be scaled.

# %% [markdown]
# ## Beyond · A training pipeline of your own
#
# Open-ended and ungraded. Put it together: your sampler, `Replica` with a copy of your own all-reduce from part A in
# the place of `dist.all_reduce` (send after backward; yours has no `async_op`), factors, two micro-batches a step, a
# warm-up. Train `small_model` on four ranks for two epochs of `samples(500)`. The figure of merit is the bytes that the
# busiest rank sends in a step, with weights that agree with one process to six digits. `results.bytes_sent` counts
# your own messages only; the function below charges `dist.all_reduce` with what a ring sends.


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
# Your pipeline.

# %% [markdown]
# ## Recap of lab 15
#
# <details><summary>1. When are p ranks the same as one process with the whole batch?</summary>
#
# When all count the same number of samples or labels (or weigh by it), no layer looks at the batch, and random
# numbers agree: then up to the order of additions.
# </details>
#
# <details><summary>2. What goes wrong without <code>set_epoch</code>?</summary>
#
# Nothing that one sees: every epoch has the same order and the same batches.
# </details>
#
# <details><summary>3. Why buckets, and why not one?</summary>
#
# Each all-reduce costs a latency; one for everything starts when backward has ended.
# </details>
#
# <details><summary>4. A parameter is used on one rank only. What must the others do?</summary>
#
# Send zeros for it, in the same bucket, in the same order. DDP needs `find_unused_parameters=True` for that.
# </details>
#
# <details><summary>5. What does error feedback promise?</summary>
#
# Nothing is lost, only late: what is not sent stays in the memory.
# </details>

# %%
gpulab.recap("15")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | reduce-scatter, all-gather | (p − 1) / p · S bytes from each rank |
# | all-reduce | both: 2 (p − 1) / p · S; ring 2 (p − 1) messages, halving 2 log2 p |
# | broadcast | ⌈log2 p⌉ rounds |
# | α–β model | a message takes α + n / β |
# | deadlock | every rank makes the same collective calls in the same order |
# | samples | same permutation on all ranks from seed + epoch; pad; `order[rank::ranks]` |
# | unequal counts | factor p · n / Σ n before the average |
# | overlap | send while backward runs; the last bucket cannot hide |
# | batch × k | SGD: rate × k with warm-up; Adam: rate × √k |
# | p asynchronous workers | mean staleness p − 1 |
#
# ### Claims you will meet, and what is right
#
# - *Data parallel training gives identical results.* Up to the order of additions, and only with equal counts, no
#   batch norm per rank, and agreeing random numbers.
# - *A ring all-reduce sends a constant volume.* 2 (p − 1) / p · S per rank, which tends to 2 S.
# - *A tree all-reduce costs 2 log2 p · S.* That is the tree without pipelining, with ⌈log2 p⌉ where p is no power of
#   two; NCCL's sends large arrays through it in pieces.
# - *The square-root rule keeps training the same,* with `lr * world_size` and AdamW in the code below it. Linear with
#   warm-up is for SGD, square root for Adam.
# - *`torch.cuda.set_device(os.environ["LOCAL_RANK"])`.* It is a string: `int(…)`.
# - *Back ends are NCCL, Gloo, MPI and TCP.* TCP is what Gloo sends over. MPI needs PyTorch built from source.
# - *1-bit Adam saves up to 26 ×, within a machine.* Up to 5 ×; 26 × is 0/1 Adam; both are for networks between
#   machines.
# - *Accumulation works under DDP as it is.* It does, and sends M times: use `no_sync()` for all but the last.
#
# ### References
#
# 1. R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of Collective Communication Operations in MPICH", 2005.
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
