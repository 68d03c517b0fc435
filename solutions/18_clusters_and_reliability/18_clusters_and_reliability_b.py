# ---
# jupyter:
#   gpulab:
#     lab: "18"
#     hours: 3
#     topics: [C19.1, C19.2, C19.3, C19.4]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 18 B · Reliability: training through failures
#
# **2 to 3 hours.** You need lab 15 (ranks, all-gather, all-reduce), lab 16 (sharded state) and lab 09
# (the bits of FP32). Processes here are real, and are really killed. Failures of large machines are
# simulated.
#
# A run on thousands of GPUs meets many failures. In this part you save often enough, write checkpoints that
# survive a crash at any moment, and resume a run exactly.
#
# By the end of this lab, you can
#
# 1. say how often to save a checkpoint, and what failures still cost;
# 2. simulate a job through any list of failures;
# 3. write a checkpoint that is either complete or absent, wherever the machine stops;
# 4. resume a run so that it ends with the same bits;
# 5. continue with fewer ranks than before.

# %%
import hashlib
import inspect
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from math import exp, sqrt
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

import gpulab
from gpulab import distributed

gpulab.start("18")

# %% [markdown]
# ## B1 · How often to save
#
# A synchronous job stops when one of its GPUs fails. If a GPU fails after M₁ hours on average, n of them fail
# after M₁/n hours on average. This is the job's **MTBF**, the mean time between failures.
#
# **Predict.** One GPU, together with everything that belongs to it, fails once in 6 years. What is the MTBF
# of 16,384 of them, in hours?

# %%
gpulab.predict("cluster.mtbf", ...)

# %%
mtbf = 54 * 24 / 419
print(f"Llama 3 had 419 unplanned stops in 54 days on 16,384 GPUs (reference 4): one every {mtbf:.1f} h,")
print(f"so one GPU fails every {mtbf * 16_384 / 24 / 365.25:.1f} years")

# %% [markdown]
# A **checkpoint** is everything that is needed to continue. Saving one costs C seconds, in which nobody
# computes. A failure destroys whatever was computed since the last one, which is half the interval τ on
# average. With an MTBF of M seconds, the time lost per second of work is, to first order,
#
#     C/τ + τ/(2 M)        smallest at τ = √(2 C M)        (J. Young, 1974)
#
# If a second failure may come before the next checkpoint, use the exact formula. With restarts of R seconds, τ
# seconds of work and their save take on average (J. Daly, 2006):
#
#     M · exp(R/M) · (exp((τ + C)/M) − 1)
#
# **Predict.** C = 60 s, M = 24 h, R = 0. If you save every 10 minutes, how much time is lost, in % of the
# work?

# %%
gpulab.predict("cluster.ten_minutes", ...)

# %% [markdown]
# **Do.** Write `interval(cost, restart, mtbf)`. One line is enough for the first part of the budget, and
# about 7 for both.
#
# - Input: C, R and M in seconds (R may be 0).
# - Output: the best τ, which loses least time per second of work, a positive number.
# - **Budget:** with the numbers above, at most 2 % more loss than necessary. If M is only 2 to 3 times C, at most 0.5
#   %. In that case, minimise the last formula over τ. Does R move its lowest point?


# %% nbgrader={"grade": false, "grade_id": "interval", "locked": false, "schema_version": 3, "solution": true, "task": false}
def interval(cost, restart, mtbf):
    ### BEGIN SOLUTION
    def loss(tau):
        return (exp((tau + cost) / mtbf) - 1) / tau

    low, high = 1.0, 10 * sqrt(2 * cost * mtbf)
    while high - low > 0.01:
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if loss(a) < loss(b) else (a, high)
    return low
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "interval-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cluster.interval", interval)


# %%
def first_order(tau, cost, mtbf):
    """Time lost per second of work, in %."""
    return 100 * (cost / tau + tau / (2 * mtbf))


def exact(tau, cost, restart, mtbf):
    return 100 * (mtbf * exp(restart / mtbf) * (exp((tau + cost) / mtbf) - 1) / tau - 1)


C, M = 60, 86_400
gpulab.need(interval)
best = interval(C, 0, M)
for name, tau in (("every 10 minutes", 600), ("Young", sqrt(2 * C * M)), ("yours", best)):
    print(
        f"{name:17}{tau:6.0f} s   first order {first_order(tau, C, M):5.1f} %   exact {exact(tau, C, 0, M):5.1f} %"
    )

# %% jupyter={"source_hidden": true}
taus = [60 * 1.15**k for k in range(42)]
gpulab.plot.lines(
    {
        f"MTBF {hours} h": [
            (t / 60, exact(t, C, 0, 3600 * hours)) for t in taus if exact(t, C, 0, 3600 * hours) < 60
        ]
        for hours in (24, 3, 1)
    },
    "minutes between checkpoints of 60 s",
    "time lost, % of the work",
    "Each curve has a flat bottom, which is further to the left if failures are more frequent.",
    log_x=True,
)

# %% [markdown]
# **Why.** Saving five times as often as necessary costs 10 % instead of 4 %. But near its lowest point the
# curve is flat. A factor of 1.5 in either direction hardly matters, so a rough MTBF is enough. At the best
# interval the loss is √(2CM)/M = √(2C/M), so it falls with the *root* of what a save costs. This is why
# asynchronous saving (B4) pays off.
#
# ## B2 · A failure simulator
#
# A formula makes assumptions, but a simulator can use a log of real failures. These are its rules:
#
# - The job needs `work` seconds. After each `interval` seconds of work it saves for `cost` seconds, but it
#   does not save at the end.
# - `failures` are times on the clock, ascending and in whole seconds. Whatever ends at second t is complete before a
#   failure at t.
# - A failure destroys everything since the last *finished* save. Then the restart takes `restart` seconds. A
#   failure during a restart makes it begin again. Failures after the end are ignored.
#
# **Do.** Write `replay(work, interval, cost, restart, failures)`. About 15 lines.
#
# - Input: whole numbers of seconds and a list of them, which may be empty.
# - Output: `[time on the clock when all work is done, seconds of work that were lost]`. Only work counts as
#   lost, not saving or restarting.


# %% nbgrader={"grade": false, "grade_id": "replay", "locked": false, "schema_version": 3, "solution": true, "task": false}
def replay(work, interval, cost, restart, failures):
    ### BEGIN SOLUTION
    clock = saved = lost = 0
    coming = list(failures)
    while saved < work:
        stretch = min(interval, work - saved)
        end = clock + stretch + (cost if saved + stretch < work else 0)
        if not coming or coming[0] >= end:
            clock, saved = end, saved + stretch
            continue
        failure = coming.pop(0)
        lost += min(stretch, failure - clock)
        clock = failure + restart
        while coming and coming[0] < clock:
            clock = coming.pop(0) + restart
    return [clock, lost]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "replay-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cluster.replay", replay)

# %% [markdown]
# **See.** The figure shows 60 days of work under random failures, with 20 histories for each interval, beside
# the formula.

# %%
gpulab.need(replay)
numbers = np.random.default_rng(1)
WORK = 60 * 86_400


def simulated(tau, histories=20):
    """Time lost, in % of the work, averaged over histories of random failures."""
    lost = []
    for _ in range(histories):
        failures = np.ceil(numbers.exponential(M, 200).cumsum()).astype(int).tolist()
        lost.append(100 * (replay(WORK, int(tau), C, 0, failures)[0] / WORK - 1))
    return float(np.mean(lost))


shown = [300, 600, 1200, 2400, 3220, 4800, 9600, 19_200]
points = [(tau / 60, simulated(tau)) for tau in shown]
print(f"simulated: every 10 minutes {points[1][1]:.1f} %, every {shown[4]} s {points[4][1]:.1f} %")
gpulab.plot.lines(
    {
        "simulated": points,
        "exact formula": [(tau / 60, exact(tau, C, 0, M)) for tau in shown],
        "first order": [(tau / 60, first_order(tau, C, M)) for tau in shown],
    },
    "minutes between checkpoints of 60 s, MTBF 24 h",
    "time lost, % of the work",
    "The simulated jobs lose as much time as the formulas say, and the flat bottom is near 54 minutes.",
    log_x=True,
)

# %% [markdown]
# ## B3 · A checkpoint that is there or not
#
# ![A checkpoint is written under another name, flushed to disk, and renamed. A reader finds the old one or the new one, but never half of one.](drawings/atomic_checkpoint.svg)
#
# A machine may stop between any two operations. Three properties of files make that dangerous:
#
# - Whatever was **written** is in memory until it is **synchronised** (`fsync`), and may be lost until then.
# - A change of **names** (create, rename, delete) is on the disk only after the folder above, `"."`, is
#   synchronised. A journal keeps their order, so a later change is never there without all earlier ones.
# - A **rename** happens completely or not at all. So it can make a whole checkpoint appear at once.
#
# At the next start, the loader takes the folder `step-N` with the largest N and trusts it. It ignores folders
# with other names, such as `step-N.tmp`, which a crash may have left behind.
#
# **Do.** Write `save(step, there, shards, keep)`, which returns the list of operations that save a step.
# About 10 lines.
#
# | input | meaning |
# |---|---|
# | `step`, `shards` | the step to save, and the number of its shards |
# | `there` | the names of the folders that exist; one may be a `.tmp` of this very step, with shards of more ranks than now |
# | `keep` | how many checkpoints to keep, the new one among them |
#
# | operation | meaning |
# |---|---|
# | `["write", "step-7.tmp/0"]` | writes shard 0; a folder appears with its first file |
# | `["sync", file]`, `["sync", "."]` | synchronises a file, or the names |
# | `["rename", folder, folder]` | from the first name to the second |
# | `["delete", folder]` | deletes a folder with its files |
#
# The check stops the machine after each operation, in the worst way, and tests whether the newest checkpoint loads.
# After the last operation the new one must survive. In the end the newest `keep` are there, and nothing else.
#
# **Budget:** at most `keep` + 1 folders at any time, if at most `keep` complete ones are there at the start.
# At most shards + 2 synchronisations, one more than necessary.


# %% nbgrader={"grade": false, "grade_id": "save", "locked": false, "schema_version": 3, "solution": true, "task": false}
def save(step, there, shards, keep):
    ### BEGIN SOLUTION
    new = f"step-{step}"
    left = [name for name in there if name.endswith(".tmp")]
    old = sorted((name for name in there if name not in left), key=lambda name: int(name[5:]))
    surplus, kept = old[: max(0, len(old) - keep)], old[max(0, len(old) - keep) :]
    return [
        *(["delete", name] for name in left + surplus),
        *(["write", f"{new}.tmp/{shard}"] for shard in range(shards)),
        *(["sync", f"{new}.tmp/{shard}"] for shard in range(shards)),
        ["rename", f"{new}.tmp", new],
        ["sync", "."],
        *(["delete", name] for name in kept[: max(0, len(kept) + 1 - keep)]),
    ]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "save-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cluster.save", save)

# %% [markdown]
# **Why.** If the contents are not synchronised, the rename may reach the disk before the data. Then there is a
# checkpoint with the right name and nothing in it. If the names are not synchronised at the end, `save` may report
# success and lose the name. Deleting old checkpoints first saves space but risks everything. Two more habits help in
# long runs. Keep some old checkpoints for good, because a fault that is noticed a week later is in all recent
# checkpoints. And store a checksum, because disks make errors, too. Only *reading a checkpoint back* proves that it
# is usable.
#
# ## B4 · A trainer that survives
#
# What must the checkpoint of a step hold? Everything that the next step depends on: the weights, both moments of
# Adam, the step (here Adam's corrections and `batch_of` follow from it), and the state of every random number
# generator, such as the one that draws dropout. In FP16 the loss scale belongs to the state, too.
#
# ![A trainer that survives: checkpoints at steps 0, 100 and 200. It dies at step 260 and continues from 200, so 60 steps are computed again.](drawings/resume.svg)
#
# The state below is **sharded**: each rank holds one part of weights and moments, as in lab 16, and saves
# only that part. Saving is **asynchronous**: the ranks copy their parts and continue, while a thread carries
# out your operations. These threads meet in their own process group, before and after the shards are written.
# Rank 0 does the rest.

# %%
INPUTS, HIDDEN, SAMPLES, BATCH = 16, 64, 960, 48
ELEMENTS = INPUTS * HIDDEN + 2 * HIDDEN + 1


def data():
    made = torch.Generator().manual_seed(5)
    x = torch.randn(SAMPLES, INPUTS, generator=made)
    return x, torch.tanh(x @ torch.randn(INPUTS, 1, generator=made))


def model(weights, x):
    """Two layers with dropout. All weights are in one vector."""
    edge = INPUTS * HIDDEN
    h = torch.relu(x @ weights[:edge].view(INPUTS, HIDDEN) + weights[edge : edge + HIDDEN])
    h = torch.nn.functional.dropout(h, 0.1)
    return h @ weights[edge + HIDDEN : -1, None] + weights[-1]


def batch_of(step):
    """The samples of a step. Each epoch has its own order, which follows from its number."""
    a_epoch = SAMPLES // BATCH
    order = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(step // a_epoch))
    return order[step % a_epoch * BATCH :][:BATCH]


def carry_out(folder, operation, content=None):
    verb, path, *to = operation
    path = folder / path
    if verb == "write":
        path.parent.mkdir(exist_ok=True)
        torch.save(content, path)
    elif verb == "sync":
        handle = os.open(path, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)
    elif verb == "rename":
        path.rename(folder / to[0])
    else:
        shutil.rmtree(path)


def save_together(folder, operations, content, rank, group):
    """Each rank carries out the operations that name its shard, and rank 0 those before and after."""
    shards = [i for i, operation in enumerate(operations) if "/" in operation[1]]
    first, last = min(shards), max(shards) + 1
    mine = [o for o in operations[first:last] if o[1].endswith(f"/{rank}")]
    for part in (operations[:first] * (rank == 0), mine, operations[last:] * (rank == 0)):
        for operation in part:
            carry_out(folder, operation, content)
        dist.barrier(group=group)


def newest(folder):
    steps = [int(path.name[5:]) for path in folder.glob("step-*") if path.suffix != ".tmp"]
    return max(steps, default=0)


def load(folder, rank, world):
    """This rank's part of the newest checkpoint, saved by as many ranks as now; or of a new start."""
    step = newest(folder)
    share = -(-ELEMENTS // world)
    if step:
        state = torch.load(folder / f"step-{step}" / str(rank))
    else:
        weights = 0.2 * torch.randn(ELEMENTS, generator=torch.Generator().manual_seed(7))
        weights = weights[rank * share : (rank + 1) * share].clone()
        generator = torch.Generator().manual_seed(rank).get_state()
        state = {"weights": weights, "m": 0 * weights, "v": 0 * weights, "dropout": generator}
    return step, state


# %%
def train(folder, steps, every, wait_for_disk=False, die_after=None, loader=load):
    """Train to `steps`, saving every `every` steps. die_after = (rank, seconds) kills a rank then."""
    folder, rank, world = Path(folder), dist.get_rank(), dist.get_world_size()
    if die_after and die_after[0] == rank:
        threading.Timer(die_after[1], os.kill, (os.getpid(), signal.SIGKILL)).start()
    group = dist.new_group(backend="gloo")  # for the threads that save
    x, y = data()
    start, state = loader(folder, rank, world)
    torch.set_rng_state(state["dropout"])
    if rank == 0:
        print(f"step {start} loaded", flush=True)
    share = -(-ELEMENTS // world)
    mine = slice(rank * share, (rank + 1) * share)
    writer, waited = None, 0.0
    for step in range(start, steps):
        part = torch.zeros(share)
        part[: len(state["weights"])] = state["weights"]
        parts = [torch.empty(share) for _ in range(world)]
        dist.all_gather(parts, part)
        weights = torch.cat(parts)[:ELEMENTS].requires_grad_()
        samples = batch_of(step)[rank::world]
        loss = ((model(weights, x[samples]) - y[samples]) ** 2).mean()
        (gradient,) = torch.autograd.grad(loss, weights)
        dist.all_reduce(gradient)
        gradient = gradient[mine] / world
        state["m"] = 0.9 * state["m"] + 0.1 * gradient
        state["v"] = 0.99 * state["v"] + 0.01 * gradient**2
        m, v = state["m"] / (1 - 0.9 ** (step + 1)), state["v"] / (1 - 0.99 ** (step + 1))
        state["weights"] = state["weights"] - 0.003 * m / (v.sqrt() + 1e-8)
        if rank == 0 and step % 10 == 9:
            print(f"step {step + 1} loss {loss.item():.4f}", flush=True)
        if (step + 1) % every == 0:
            began = time.perf_counter()
            if writer:
                writer.join()  # at most one save is under way
            state["dropout"] = torch.get_rng_state()
            content = {name: tensor.clone() for name, tensor in state.items()}
            there = [sorted(path.name for path in folder.glob("step-*"))]
            dist.broadcast_object_list(there)
            operations = save(step + 1, there[0], world, 2)
            writer = threading.Thread(target=save_together, args=(folder, operations, content, rank, group))
            writer.start()
            if wait_for_disk:
                writer.join()
            waited += time.perf_counter() - began
    if writer:
        writer.join()
    return state["weights"].numpy(), waited


# %%
gpulab.need(save)
STEPS, EVERY, RANKS = 300, 20, 2


def bits(results):
    """The weights of all ranks as bytes."""
    return np.concatenate([weights for weights, _ in results]).view(np.uint8)


def digest(results):
    return hashlib.sha256(bits(results).tobytes()).hexdigest()[:16]


def on_disk(folder):
    """The names of the checkpoints and of unfinished ones, the oldest first."""
    return [path.name for path in sorted(folder.glob("step-*"), key=lambda path: int(path.stem[5:]))]


quiet_lines = []
with tempfile.TemporaryDirectory() as folder:
    quiet = distributed.run(train, RANKS, folder, STEPS, EVERY, show=quiet_lines.append)
print(f"undisturbed: {STEPS} steps, digest of the weights {digest(quiet)}")

# %% [markdown]
# The next cell kills a rank with `SIGKILL`: without warning or clean-up, at a random moment, on a random
# rank. The other ranks are then killed as well. The cell notes the time of everything that the ranks print.

# %%
gpulab.need(save)
chance = np.random.default_rng()
attempts = []  # for each of them: (seconds since the first start, step), from its start to its end
with tempfile.TemporaryDirectory() as folder:
    began = time.monotonic()

    def note(line):
        words = line.split()
        if "step" in words:
            attempts[-1].append((time.monotonic() - began, int(words[words.index("step") + 1])))

    for attempt in range(7):
        moment = float(chance.uniform(0.1, 0.9)) if attempt < 6 else None
        die = None if moment is None else (int(chance.integers(RANKS)), moment)
        resumed = newest(Path(folder))
        attempts.append([(time.monotonic() - began, resumed)])
        try:
            survivor = distributed.run(train, RANKS, folder, STEPS, EVERY, False, die, show=note)
        except distributed.RanksStopped as stopped:
            attempts[-1].append((time.monotonic() - began, attempts[-1][-1][1]))
            left = ", ".join(on_disk(Path(folder))) or "nothing"
            print(f"from step {resumed:3}: {str(stopped).split('.')[0]:36} on disk: {left}")
        else:
            break
    print(f"from step {resumed:3}: {STEPS} steps done, digest of the weights {digest(survivor)}")
print("bits that differ:", np.unpackbits(bits(quiet) ^ bits(survivor)).sum(), "of", 8 * bits(quiet).size)

# %% jupyter={"source_hidden": true}
gpulab.need(save)
gpulab.plot.attempts(
    attempts,
    "seconds since the first start",
    "step",
    f"{len(attempts) - 1} kills (crosses): each attempt (dot, number) continues from the newest checkpoint.",
)

# %% [markdown]
# **Why.** The digests agree, so both runs end with the same bits. The flat stretches are restarts. If a kill
# left a folder with `.tmp`, it is a save that was under way, and nobody will ever load it. Killing a process
# does not test the `fsync`s, because the operating system stays alive and keeps what was written. Only the
# check could test them, with its model of the disk.
#
# Now we leave one thing out of the state. A run resumes at step 140, but draws dropout from a generator that starts
# again from its seed. The weights are FP32 and end with slightly different values.
#
# **Predict.** At step 300, what percentage of the weights' bits differs from the undisturbed run's?

# %%
gpulab.predict("cluster.forgets", ...)

# %%
gpulab.need(save)


def forgets(folder, rank, world):
    """As `load`, but the generator of dropout starts again."""
    step, state = load(folder, rank, world)
    return step, state | {"dropout": torch.Generator().manual_seed(rank).get_state()}


def train_and_forget(folder, steps, every):
    return train(folder, steps, every, loader=forgets)


odd_lines = []
with tempfile.TemporaryDirectory() as folder:
    distributed.run(train, RANKS, folder, 140, EVERY, show=None)
    odd = distributed.run(train_and_forget, RANKS, folder, STEPS, EVERY, show=odd_lines.append)
print("undisturbed:      ", quiet_lines[-1])
print("without generator:", odd_lines[-1])
gpulab.predict("cluster.forgets", measured=100 * float(np.unpackbits(bits(quiet) ^ bits(odd)).mean()))

# %% [markdown]
# **Why.** A third of all bits differ, and nothing warned you: there was no error, and the loss looks like any
# other. Only a comparison of bits shows that something is missing in a checkpoint.
#
# **See.** Next, what does saving cost the training, with and without waiting for the disk? The times are
# measured here and now.

# %%
gpulab.need(save)
waits = {}
for name, wait in (("waiting for the disk", True), ("in the background", False)):
    with tempfile.TemporaryDirectory() as folder:
        result = distributed.run(train, RANKS, folder, 100, 10, wait, show=None)
    waits[name] = 1e3 * result[0][1] / 10
gpulab.plot.bars(
    {name: round(value, 1) for name, value in waits.items()},
    "ms that training stands still per save",
    caption="In the background, training waits only for the copy, for names, and for a save that is not "
    "done.",
)

# %% [markdown]
# **Why.** With saving in the background, only the copy and the agreement on names are left, and a wait if the
# last save is not finished. In B1's terms C has become smaller, so it pays to save more often, and less is
# lost. The price is memory for the copy.
#
# ## B5 · Elastic: other ranks than before
#
# A node fails at night, and there is no spare. **Elastic** training continues with the ranks that are left.
# But the shards on disk were cut for p ranks, and now q ranks must read them. This is called **resharding**.
# A vector of n elements in p shards has ⌈n/p⌉ elements in each, except that the last shards may have fewer or
# none.
#
# ![A checkpoint of four ranks is read by three. The file says which elements each part has, so every new rank reads what it needs from one or two parts.](drawings/resharded.svg)
#
# **Do.** Write `reshard(elements, old, new)`. About 12 lines.
#
# - Input: whole numbers: the n elements, and the old and new numbers of ranks.
# - Output: one list per new rank, with the pieces `[shard, start, stop]` that it reads, in the order of the
#   elements. `start` and `stop` count inside the old shard. Pieces are as long as possible, and none is
#   empty. A rank without elements has an empty list.


# %% nbgrader={"grade": false, "grade_id": "reshard", "locked": false, "schema_version": 3, "solution": true, "task": false}
def reshard(elements, old, new):
    ### BEGIN SOLUTION
    held, wanted = -(-elements // old), -(-elements // new)
    plan = []
    for rank in range(new):
        start, stop = rank * wanted, min(elements, (rank + 1) * wanted)
        pieces = []
        for shard in range(old):
            low, high = max(start, shard * held), min(stop, (shard + 1) * held)
            if low < high:
                pieces.append([shard, low - shard * held, high - shard * held])
        plan.append(pieces)
    return plan
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "reshard-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cluster.reshard", reshard)

# %% [markdown]
# `torchrun` starts ranks and watches them. An **agent** runs on each node. The agents meet at a
# **rendezvous**, agree on who takes part, and start their ranks with `RANK` and `WORLD_SIZE`. If a rank ends
# with an error or an agent no longer answers, all ranks are stopped. The remaining agents meet again and
# start new ranks, with a different world size if the job allows it: `--nnodes=1:2` means one to two nodes.
# The training code has a single duty. When it starts, it must continue from the newest checkpoint.
#
# In the next cell, two agents on this machine play the two nodes. Soon after step 40, node 1 is killed, and
# its rank ends with its agent. A step takes milliseconds, so rank 0 is some steps further by then. The script
# is the trainer from above with a different loader.


# %%
def load_resharded(folder, rank, world):
    """This rank's part of the newest checkpoint, no matter how many ranks saved it."""
    step = newest(folder)
    if not step:
        return load(folder, rank, world)
    files = sorted((folder / f"step-{step}").iterdir(), key=lambda path: int(path.name))
    shards = [torch.load(file) for file in files]
    pieces = reshard(ELEMENTS, len(shards), world)[rank]
    state = {
        name: torch.cat([shards[shard][name][start:stop] for shard, start, stop in pieces])
        for name in ("weights", "m", "v")
    }
    state["dropout"] = shards[min(rank, len(shards) - 1)]["dropout"]
    return step, state


def script(folder):
    """The functions of this notebook as a program for torchrun."""
    parts = [
        data,
        model,
        batch_of,
        carry_out,
        save_together,
        newest,
        load,
        reshard,
        load_resharded,
        save,
        train,
        end_with_the_agent,
    ]
    return "\n\n".join(
        [
            "import os, shutil, signal, threading, time\nfrom pathlib import Path",
            "import torch, torch.distributed as dist",
            f"INPUTS, HIDDEN, SAMPLES, BATCH, ELEMENTS = {INPUTS}, {HIDDEN}, {SAMPLES}, {BATCH}, {ELEMENTS}",
            *(inspect.getsource(part) for part in parts),
            "end_with_the_agent()\ntorch.set_num_threads(1)\ndist.init_process_group('gloo')",
            "print('rank', dist.get_rank(), 'of', dist.get_world_size(), flush=True)",
            f"train({str(folder)!r}, 400, 20, loader=load_resharded)\nprint('done', flush=True)",
        ]
    )


def agent(number, port, program, log):
    """One node: torchrun with one rank, in its own process group, with its output in a file."""
    rendezvous = (
        f"is_host={int(number == 0)},last_call_timeout=3,keep_alive_interval=1,keep_alive_max_attempt=2"
    )
    options = (
        "--nnodes=1:2 --nproc-per-node=1 --max-restarts=3 --monitor-interval=0.1 --rdzv-backend=c10d "
        f"--rdzv-endpoint=127.0.0.1:{port} --rdzv-id=lab18 --rdzv-conf={rendezvous} --local-addr=127.0.0.1"
    )
    return subprocess.Popen(
        [sys.executable, "-m", "torch.distributed.run", *options.split(), str(program)],
        stdout=log.open("w"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env=os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1", "TORCHELASTIC_ERROR_FILE": ""},
    )


def end_with_the_agent():
    """A lost node has neither agent nor ranks, so a rank ends as soon as its agent has ended."""
    parent = os.getppid()

    def watch():
        while os.getppid() == parent:
            time.sleep(0.02)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def wait_for(condition, seconds):
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    return condition()


# %%
def elastic():
    """Train on two nodes, kill one after step 40, and return what each node printed."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        program = Path(folder, "program.py")
        program.write_text(script(folder))
        logs = [Path(folder, f"node {n}.log") for n in (0, 1)]
        nodes = [agent(n, port, program, log) for n, log in enumerate(logs)]
        try:
            if wait_for(lambda: "step 40 " in logs[0].read_text() + logs[1].read_text(), 60):
                nodes[1].kill()
                wait_for(lambda: "done" in logs[0].read_text(), 60)
        finally:
            for node in nodes:  # node 0 would wait five minutes for node 1 to leave
                node.kill()
                node.wait()
        return [log.read_text().splitlines() for log in logs]


def told(lines):
    """The ranks that a node started, and the steps that they reported."""
    found = []
    for line in lines:
        if line.startswith("rank "):
            found.append([line, []])
        elif line.startswith("step "):
            found[-1][1].append(int(line.split()[1]))
    return [f"{rank}, steps {steps[0]} to {steps[-1]}" if steps else rank for rank, steps in found]


gpulab.need(save, reshard)
story = elastic()
whole = "done" in story[0]
for n, lines in enumerate(story):
    print(f"node {n}", *(told(lines) if whole else lines[-20:]), sep="\n  ")
if not whole:
    print(
        "The nodes did not end in time. Run this cell again. The lines above are the last ones of each node."
    )

# %% [markdown]
# **Why.** Node 0's rank cannot reach the other one and stops with an error. The agents' rendezvous starts
# again. Then a single rank reads both shards of the newest checkpoint and continues. (Only rank 0 reports its
# steps.)
#
# The batch is still 48 samples, because each rank takes `samples[rank::world]`. With a fixed batch per rank,
# a smaller world would change the batch size. But the bits differ, because sums have a different order and
# dropout has different generators. Exact results need the same number of ranks.
#
# Large jobs rarely shrink. They keep spare nodes, replace the broken one, and restart within minutes, which
# is R in B1. Llama 3's makers report more than 90 % effective time with 466 stops in 54 days: 419 failures
# (B1's MTBF) and 47 planned stops (reference 4).
#
# ## Detective · The lucky run
#
# A colleague trains on 1,000 documents, which are read once, in order, ten per step. "There were three
# crashes, and nothing was lost. Weights, momentum and step come back bit for bit; I compared them. The loss
# curve continues where it was. If anything, the run with crashes trained *better*."


# %%
FEATURES = 100


def documents(count, seed):
    """The data: 100 features and a noisy target for each document."""
    draws = np.random.default_rng(seed)
    truth = 0.3 * np.random.default_rng(99).standard_normal(FEATURES)
    features = draws.standard_normal((count, FEATURES))
    return features, features @ truth + draws.standard_normal(count)


corpus, held_out = documents(1000, 0), documents(1000, 1)


def batches():
    """The numbers of the documents in the corpus, ten at a time."""
    for first in range(0, 1000, 10):
        yield np.arange(first, first + 10)


def mean_loss(weights, texts):
    return float(np.mean((texts[0] @ weights - texts[1]) ** 2))


def colleague(crashes, steps=100, every=10):
    """Train with crashes before these steps: final weights, losses by step, numbers of all documents read."""
    saved = (0, np.zeros(FEATURES), np.zeros(FEATURES))
    losses, read = {}, []
    for crash in (*crashes, None):
        step, weights, momentum = saved  # continue from the checkpoint
        stream = batches()
        while step < steps and step != crash:
            rows = next(stream)
            read.extend(rows.tolist())
            x, y = corpus[0][rows], corpus[1][rows]
            error = x @ weights - y
            losses[step] = float(np.mean(error**2))
            momentum = 0.9 * momentum + x.T @ error / len(rows)
            weights = weights - 0.002 * momentum
            step += 1
            if step % every == 0:
                saved = (step, weights, momentum)
    return weights, losses, read


smooth, crashed = colleague([]), colleague([35, 62, 88])
for name, (_, losses, _) in (("undisturbed", smooth), ("three crashes", crashed)):
    print(
        f"{name:14} {len(losses)} steps, mean loss of the last 20: {np.mean([losses[s] for s in range(80, 100)]):.2f}"
    )
gpulab.plot.lines(
    {
        name: [(s, float(np.mean([losses[t] for t in range(max(0, s - 9), s + 1)]))) for s in range(100)]
        for name, (_, losses, _) in (("undisturbed", smooth), ("three crashes", crashed))
    },
    "step",
    "loss, mean of the last 10 steps",
    "The run with crashes continues where it was, and ends with the smaller loss.",
    log_y=True,
)

# %% [markdown]
# **Do.** Was it luck? Each run returns its final weights, its losses by step, and the numbers of the
# documents that it read. `mean_loss(weights, held_out)` is the loss on documents that neither run trained on.
# The next cell is for your experiment and is not graded.

# %%
# Your experiment.

# %% [markdown]
# ### Your answer
#
# Answer in three to five sentences. What is missing in the checkpoint, which of your counts proves it, and why did
# the loss curve look better instead of worse? How would you repair it?
#
# A person reads this and gives 1 point for the cause, and 1 point for a count that you made.

# %% [markdown] nbgrader={"grade": true, "grade_id": "lucky-run-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** The place in the data is not saved, so after each crash the corpus is read from document 0
# again. Only 350 of the 1,000 documents were ever read, 650 never, and the first 200 were read four times
# (`np.bincount` of the third result). The training loss is lower because the model has met those documents
# before. On held-out documents it is worse, 1.70 against 1.33. I would save the number of documents read
# together with the step, and continue from there.
#
# **1 point** (cause without a count): The data loader starts again at the beginning after a crash.
#
# **0 points:** Crashes act like a restart of the learning rate and help. Or: the momentum was lost.

# %% [markdown]
# ## Beyond · Checkpoints in two places
#
# This task is open-ended and ungraded. Most of Llama 3's failures took only one node. A copy of the state in another
# node's memory costs 5 s to make, and survives those failures. But 1 failure in 10 takes more than one node and needs
# the checkpoint on disk, which costs 60 s. The MTBF is 3.1 h, and a restart takes 120 s in both cases. Choose when to
# save where. The figure of merit is the time lost, in % of the work.
#
# | plan | time lost, % |
# |---|---|
# | disk only, at its best interval | printed below |
# | ours: memory every 6 minutes, disk every hour | 7.5 |
# | bound: restarts alone | printed below |
#
# Write a simulator of both kinds of failure, starting from `replay`, and find a good pair of intervals.

# %%
gpulab.need(interval)
hours = 3.1 * 3600
print(
    f"disk only {exact(interval(60, 120, hours), 60, 120, hours):.1f} %, restarts alone {100 * 120 / hours:.1f} %"
)

# %%
# Your plan.

# %% [markdown]
# ## Recap
#
# <details><summary>1. Saving takes 30 s, the MTBF is 6 h. How often do you save, and how much is lost?</summary>
#
# Every √(2 · 30 · 21,600) = 1,138 s, which is 19 minutes. The loss is √(2 · 30/21,600) = 5.3 %.
# </details>
#
# <details><summary>2. Twice the GPUs, the same cost of a save. What happens to the lost time?</summary>
#
# The MTBF halves, so the loss grows by a factor of √2.
# </details>
#
# <details><summary>3. A checkpoint is written under its final name, shard by shard. What may the loader find?</summary>
#
# A folder with the right name, in which shards are missing or empty.
# </details>
#
# <details><summary>4. What besides weights and moments must be saved for the same bits?</summary>
#
# The step, every random number generator, the place in the data, and the loss scale if there is one. The
# number of ranks must also be the same.
# </details>
#
# <details><summary>5. One of 16 ranks dies under torchrun with --nnodes=1:2. What happens to the other 15?</summary>
#
# Their agents stop them, meet again, and start new ranks, which begin with the newest checkpoint.
# </details>

# %%
gpulab.recap("18")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | MTBF of n parts | MTBF of one ÷ n |
# | best interval | √(2 · cost · MTBF), as long as MTBF ≫ cost |
# | time lost there | √(2 · cost ÷ MTBF), plus restart ÷ MTBF |
# | save | write to `.tmp`, sync each file, rename, sync the folder above, delete old ones |
# | state | weights, moments, step, generators, place in the data, loss scale |
# | asynchronous | copy, continue, and write in a thread with its own process group |
# | other ranks | reshard; make the batch independent of the ranks; the bits are not the same |
# | torchrun | `--nnodes=MIN:MAX --max-restarts=N --rdzv-backend=c10d --rdzv-endpoint=HOST:PORT` |
#
# ### Claims you will meet, and what is right
#
# - *T = T_compute + T_checkpoint + T_recovery × P(failure).* This has no interval, so there is nothing to
#   choose. Use C/τ + τ/(2M) + R/M.
# - *Save every 10 minutes to be safe.* Safe from what? At C = 60 s and M = 24 h it loses 10 % instead of 4 %.
# - *Save model and optimizer, and you can resume.* The step, the generators and the place in the data are
#   missing.
# - *`torch.save(…, path)` and then delete the old file.* This is neither atomic nor durable. And since
#   PyTorch 2.6, `torch.load` by default loads only weights and no other Python objects.
# - *Elastic training gives the same result.* It is the same up to rounding and noise, if the batch stays the
#   same.
#
# ### References
#
# 1. J. Young, "A First Order Approximation to the Optimum Checkpoint Interval", 1974.
# 2. J. Daly, "A Higher Order Estimate of the Optimum Checkpoint Interval for Restart Dumps", 2006.
# 3. T. Pillai et al., "All File Systems Are Not Created Equal: On the Complexity of Crafting Crash-Consistent
#    Applications", OSDI, 2014.
# 4. A. Grattafiori et al., "The Llama 3 Herd of Models", 2024, section 3.3.4.
#    https://arxiv.org/abs/2407.21783
# 5. J. Mohan, A. Phanishayee, V. Chidambaram, "CheckFreq: Frequent, Fine-Grained DNN Checkpointing", FAST,
#    2021.
# 6. Z. Wang et al., "Gemini: Fast Failure Recovery in Distributed Training with In-Memory Checkpoints", SOSP,
#    2023.
# 7. PyTorch, "torchrun (Elastic Launch)". https://docs.pytorch.org/docs/stable/elastic/run.html
