# ---
# jupyter:
#   gpulab:
#     lab: "28"
#     hours: 3
#     topics: [C28.1, C28.2, C28.3, C28.4, C28.5]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 28A · Experts and symmetric memory
#
# **2.5 to 4 hours.** You have done lab 15 (collectives) and lab 17 (experts, one for each token). You need no
# GPU: ranks are processes of your machine, and the network between them counts every byte.
#
# A large mixture of experts has several hundred experts, and each token goes to eight of them. The experts do
# not fit on one node, so tokens travel, and the network between nodes is several times slower than the one
# inside. A layer that sends every copy of every token can spend most of its time waiting for that network.
# This part is about what large systems do: send less, spread the load, compute while others send, and write
# directly into each other's memory.
#
# By the end you can
#
# 1. count the rows that cross between nodes for a given routing, and send each token only once to a node;
# 2. choose experts so that a token visits few nodes;
# 3. decide which experts get copies and where these go;
# 4. hide the exchange of one micro-batch behind the computation of another;
# 5. write an all-reduce with one-sided puts, and say when one step is better than two.

# %%
import numpy as np
import torch
import torch.distributed as dist

import gpulab
from gpulab import distributed, hardware, plot
from gpulab.distributed import symmetric

gpulab.start("28")
torch.set_num_threads(1)

# %% [markdown]
# ## 1 · Rows that cross
#
# In lab 17 each rank had one expert, and a token chose one. Now a rank has several experts, a token chooses k of
# them, and ranks live on **nodes**. Inside a node GPUs are joined by NVLink, and each GPU has a network card to the
# outside. DeepEP, a library for this exchange, states about 160 GB/s of NVLink and 50 GB/s of InfiniBand for a GPU
# of an H800 node. So the number of rows that cross between nodes decides how long the exchange takes.
#
# **Dispatch** takes tokens to experts. **Combine** brings their results back and adds them up, each times its weight.
# A plain exchange sends a row for each chosen expert, even where several of them live on the same node.
#
# ![A token of node 0 has four experts on node 1. The plain exchange sends four rows over the network. The other sends one row to the rank of the same place, which passes it on inside the node.](drawings/once_to_a_node.svg)
#
# **Predict.** A token has 8 experts: two on each of 4 nodes, one of which is its own. How many rows cross
# between nodes for this token if each expert gets its own copy?

# %%
gpulab.predict("experts.rows", ...)

# %% [markdown]
# The next cell draws random experts for many tokens and counts the rows that cross, for 8 of 256 experts and
# different numbers of nodes.


# %%
def crossing(nodes, most=None, tokens=2000, experts=256, k=8, seed=0):
    """Rows that leave a node for each token: with one for each expert, and with one for each node."""
    numbers, each = np.random.default_rng(seed), experts // nodes
    copies = once = 0
    for _ in range(tokens):
        allowed = numbers.permutation(nodes)[: most or nodes]
        pool = np.concatenate([np.arange(n * each, (n + 1) * each) for n in allowed])
        away = numbers.permutation(pool)[:k] // each
        away = away[away != numbers.integers(nodes)]
        copies, once = copies + len(away), once + len(set(away))
    return copies / tokens, once / tokens


counted = {nodes: crossing(nodes) for nodes in (2, 4, 8, 16, 32)}
plot.lines(
    {
        "a row for each expert": [(n, row[0]) for n, row in counted.items()],
        "a row for each node": [(n, row[1]) for n, row in counted.items()],
        "at most 4 nodes, a row for each": [(n, crossing(n, min(4, n))[1]) for n in counted],
    },
    "nodes",
    "rows that cross, per token",
    "Sending a token once to each node saves most on few nodes. On many nodes the experts of a token rarely share one, unless routing makes them.",
)

# %% [markdown]
# ## 2 · At most so many nodes
#
# With many nodes, eight random experts lie on almost eight different nodes, and sending once to each saves
# little. **Node-limited routing** (DeepSeek-V3, section 2.1.2) therefore changes the choice itself: a token
# may use the experts of at most M nodes.
#
# Which nodes? The token will take about k / M experts from each. So a node is worth the sum of its k / M best
# scores. The M nodes with the largest sums are chosen, and then the k best experts on them.
#
# **Do.** Write `limited(scores, nodes, most, k)`.
#
# - Input: `scores` has one number for each expert. Experts are numbered node by node, equally many on each of
#   `nodes` nodes. `most` is M; it divides `k`. All scores are different.
# - Output: the numbers of the `k` chosen experts, sorted.
# - Length: about 8 lines.


# %% nbgrader={"grade": false, "grade_id": "limited", "locked": false, "schema_version": 3, "solution": true, "task": false}
def limited(scores, nodes, most, k):
    ### BEGIN SOLUTION
    each = len(scores) // nodes
    groups = [range(n * each, (n + 1) * each) for n in range(nodes)]

    def worth(group):
        return sum(sorted((scores[e] for e in group), reverse=True)[: k // most])

    chosen = sorted(groups, key=worth, reverse=True)[:most]
    there = [expert for group in chosen for expert in group]
    return sorted(sorted(there, key=lambda e: scores[e], reverse=True)[:k])
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "limited-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("experts.limited", limited)

# %%
gpulab.need(limited)
numbers, lost = np.random.default_rng(1), {}
for most in (1, 2, 4, 8):
    given_up = []
    for _ in range(200):
        scores = numbers.random(256)
        best = np.sort(scores)[-8:].sum()
        given_up.append(1 - scores[limited(scores.tolist(), 8, most, 8)].sum() / best)
    lost[f"at most {most}"] = 100 * float(np.mean(given_up))
plot.bars(
    lost,
    "% of the best eight scores' sum that is given up",
    caption="What the limit costs with random scores: with one of eight nodes a few percent, with four next to nothing.",
)

# %% [markdown]
# ## 3 · Once to each node
#
# Now the exchange itself. A token's row goes once to each node that it needs, to the rank with the **same
# place** in that node. This rank passes it on inside the node, to each rank that has one of the chosen
# experts. On the way back it adds up the weighted results of its node, so that one row of sums returns.
#
# Why the same place? If all rows of a node went through one rank, its network card would carry the load of
# all, while the others idle.
#
# The next cell has the part that you wrote in lab 17: `exchange(parts)` sends `parts[r]` to rank r and
# returns the list of what came, by rank. Parts are float32 tensors (rows × columns), equally wide on all
# ranks; a part may have 0 rows.


# %%
def exchange(parts):
    leaving = [len(part) for part in parts]
    coming = torch.empty(len(parts), dtype=torch.int64)
    dist.all_to_all_single(coming, torch.tensor(leaving))
    got = torch.empty(int(coming.sum()), parts[0].shape[1])
    dist.all_to_all_single(got, torch.cat(parts), coming.tolist(), leaving)
    return list(got.split(coming.tolist()))


# %% [markdown]
# **Do.** Write `dispatch(x, choice, weight, expert, per_node)`, which runs on every rank.
#
# - Input: `x` (tokens × width) are this rank's tokens, `choice` (tokens × k, int64) their experts, all
#   different, and `weight` (tokens × k) the weights. `expert` (4 × width × width) are this rank's experts:
#   rank r has experts 4 r to 4 r + 3. Ranks are numbered node by node, `per_node` in each.
# - Output (tokens × width): for each token the sum over its experts of weight · relu(x · expert).
# - You may call `exchange`, which is defined above, and `all_to_all`, `all_gather`, `all_reduce`,
#   `reduce_scatter`, `broadcast`, sends and receives.
# - Counted: the bytes between nodes, with a row there and a row of sums back for each token and each other
#   node that has one of its experts; and the busiest network card. Up to 64 bytes more for each token are
#   allowed, which is room for its weights. Bytes inside a node are free.
# - Hint for the weights: a dense table of tokens × all experts, zero where an expert is not chosen, can
#   travel behind the rows: `torch.cat([rows, columns], 1)`.
# - Length: about 30 lines.


# %% nbgrader={"grade": false, "grade_id": "dispatch", "locked": false, "schema_version": 3, "solution": true, "task": false}
def dispatch(x, choice, weight, expert, per_node):
    ### BEGIN SOLUTION
    rank, size = dist.get_rank(), dist.get_world_size()
    width, nothing = x.shape[1], torch.empty(0, dtype=torch.int64)
    gates = torch.zeros(len(x), size * len(expert)).scatter_(1, choice, weight)
    by_node = gates.view(len(x), size // per_node, -1)

    rows = [nothing] * size  # of my tokens, to the rank of my place in each node
    for node in range(size // per_node):
        rows[node * per_node + rank % per_node] = by_node[:, node].any(1).nonzero().flatten()
    arrived = exchange([torch.cat([x[r], by_node[r, peer // per_node]], 1) for peer, r in enumerate(rows)])
    tokens = torch.cat(arrived)
    x_here, gates_here = tokens[:, :width], tokens[:, width:].view(-1, per_node, len(expert))

    passed = [nothing] * size  # of these tokens, to the ranks of my node
    for place in range(per_node):
        peer = rank - rank % per_node + place
        passed[peer] = gates_here[:, place].any(1).nonzero().flatten()
    work = exchange(
        [torch.cat([x_here[r], gates_here[r, peer % per_node]], 1) for peer, r in enumerate(passed)]
    )
    results = [
        torch.einsum("te,etw->tw", part[:, width:], torch.relu(part[:, :width] @ expert)) for part in work
    ]

    sums = torch.zeros(len(tokens), width)
    for r, part in zip(passed, exchange(results), strict=True):
        sums.index_add_(0, r, part)
    y = torch.zeros_like(x)
    for r, part in zip(rows, exchange(list(sums.split([len(a) for a in arrived]))), strict=True):
        y.index_add_(0, r, part)
    return y
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "dispatch-check", "locked": true, "points": 7, "schema_version": 3, "solution": false, "task": false}
gpulab.check("experts.dispatch", dispatch)

# %% [markdown]
# **See.** The next cell models the time of both networks for 4,096 tokens of 7,168 numbers on each GPU, eight
# experts, four nodes of eight GPUs. It sends one byte for a number on the way there and two on the way back,
# which is DeepEP's setting. The rows are those of section 1.

# %%
tokens, width, nodes = 4096, 7168, 4
inside, between = 160e9, 50e9  # B/s for a GPU of an H800 node, as DeepEP's documentation states them
away, once = crossing(nodes)
row = 3 * width  # bytes: one a number there, two back
times = {
    "a row for each expert": {"network": tokens * away * row / between, "NVLink": 0.0},
    "a row for each node": {"network": tokens * once * row / between, "NVLink": tokens * 8 * row / inside},
}
plot.panels(
    {
        f"{part}, ms": {name: 1e3 * found[part] for name, found in times.items()}
        for part in ("network", "NVLink")
    },
    "Modelled time of dispatch and combine. What the network no longer carries goes over NVLink, which has room for it.",
)

# %% [markdown]
# **Why.** Both networks work at the same time, so the longer of the two decides. NVLink is 160 / 50 = 3.2
# times as fast here. So inside a node a row can go to three ranks in the time that it takes to cross once. On
# a rack where 72 GPUs share one NVLink domain, a "node" is the whole rack, and the network card is needed far
# less.
#
# ## 4 · Wide expert parallelism
#
# In serving, a decode step is short of tokens, not of bandwidth between nodes. An expert's weights must be
# read from DRAM in each step, whether it serves one token or a hundred. With more GPUs in the group, each
# holds fewer experts and each expert collects tokens from more GPUs. This is **wide expert parallelism**.
#
# **Predict.** A layer has 256 experts and a token chooses 8. On each of 64 GPUs 32 requests decode, one token
# each. How many tokens does an expert get on average?

# %%
gpulab.predict("experts.tokens", ...)

# %%
h100 = hardware.find("H100")
experts, k, width, hidden, local = 256, 8, 7168, 2048, 32
weights = 3 * width * hidden  # bytes of one expert in FP8
wide = {"reading weights": [], "computing": []}
for gpus in (8, 16, 32, 64, 128, 256):
    tokens = gpus * local * k / experts
    wide["reading weights"].append((gpus, 1e6 * experts / gpus * weights / float(h100.dram_bandwidth)))
    flops = 2 * weights * tokens * experts / gpus
    wide["computing"].append((gpus, 1e6 * flops / float(h100.peak("float8", tensor=True))))
plot.lines(
    wide,
    "GPUs in the group, 32 requests on each",
    "µs a layer",
    "Modelled for an H100: the work of a GPU stays the same, and the weights that it reads fall with the size of the group.",
    log_x=True,
    log_y=True,
)

# %% [markdown]
# **Why.** With eight GPUs, each reads 32 experts, and each expert gets eight tokens. With 64 GPUs, each reads 4
# experts, and each expert gets 64 tokens. So a GPU reads an eighth of the bytes for as many requests, and has room
# for more. The price is an exchange among 64 GPUs in each layer, whose *latency* counts now. DeepEP has separate
# kernels for it, which skip the step inside the node.
#
# ## 5 · Copies of popular experts
#
# All GPUs of a layer wait for the busiest. Experts are not equally popular, and training for balance (lab 17) does
# not make them equally popular in tomorrow's text. But a popular expert can exist more than once: its tokens are then
# divided evenly among its copies. DeepSeek calls these **redundant experts**; their places are worked out from recent
# counts.
#
# **Do.** Write `place(load, gpus, slots)`.
#
# - Input: `load` has the number of tokens of each expert. Each of `gpus` GPUs has `slots` slots for one
#   expert each. There are at least as many slots as experts.
# - Output: a list with one list of experts for each GPU. Each expert is at least on one GPU, and on no GPU
#   twice.
# - Counted: the load of the busiest GPU, at most 1.1 times the mean. Several experts may be popular, and slots
#   may stay empty.
# - Length: about 14 lines.


# %% nbgrader={"grade": false, "grade_id": "place", "locked": false, "schema_version": 3, "solution": true, "task": false}
def place(load, gpus, slots):
    ### BEGIN SOLUTION
    copies = [1] * len(load)
    for _ in range(gpus * slots - len(load)):
        more = [e for e in range(len(load)) if copies[e] < gpus]
        copies[max(more, key=lambda e: load[e] / copies[e])] += 1
    held, busy = [[] for _ in range(gpus)], [0.0] * gpus
    for expert in sorted(range(len(load)), key=lambda e: load[e] / copies[e], reverse=True):
        for _ in range(copies[expert]):
            free = [g for g in range(gpus) if len(held[g]) < slots and expert not in held[g]]
            if free:
                gpu = min(free, key=lambda g: busy[g])
                held[gpu].append(expert)
                busy[gpu] += load[expert] / copies[expert]
    return held
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "place-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("experts.place", place)

# %%
gpulab.need(place)
load = [int(4000 / rank) for rank in range(1, 65)]


def busiest(held):
    copies = np.bincount([expert for gpu in held for expert in gpu], minlength=len(load))
    sums = [sum(load[expert] / copies[expert] for expert in gpu) for gpu in held]
    return max(sums) / np.mean(sums)


compared = {"in order, no copies": busiest([list(range(8 * g, 8 * g + 8)) for g in range(8)])}
compared |= {f"{slots} slots, yours": busiest(place(load, 8, slots)) for slots in (8, 9, 10, 12)}
plot.bars(
    compared,
    "load of the busiest GPU, × the mean",
    budget=1.1,
    caption="64 experts of uneven load on 8 GPUs. One more slot for each GPU is enough for copies of the most popular.",
)

# %% [markdown]
# ## 6 · Two micro-batches
#
# Even a good exchange takes time, and during it a GPU's tensor cores idle. The remedy is a second
# micro-batch: while one is on the network, the other computes. DeepSeek-V3 serves and trains this way.
#
# A layer has four parts: **A**ttention and **E**xperts compute; **D**ispatch and **C**ombine send. In each
# micro-batch the order is A, D, E, C, then A of the next layer. Only one part computes at a time, and only
# one sends.
#
# ![Two rows, computing and sending. One micro-batch alone leaves a gap in one row whenever the other works; with two micro-batches both rows are full.](drawings/two_batches.svg)
#
# **Predict.** All four parts take equally long, and there are many layers. How long do two alternating
# micro-batches take, as a percentage of the time that they take one after the other?

# %%
gpulab.predict("experts.hidden", ...)

# %% [markdown]
# **Do.** Write `overlap(layers, times)`.
#
# - Input: `times` has the times of `"attention"`, `"dispatch"`, `"experts"` and `"combine"` of one
#   micro-batch in one layer, as whole numbers. You may not need them.
# - Output: two lists of words, one of the parts that compute and one of the parts that send, each in order.
#   `"A0.1"` is the attention of layer 0 for micro-batch 1, `"D0.1"` its dispatch, `"E0.1"` its experts, `"C0.1"`
#   its combine.
# - A part starts when its resource is free, when its place in the list has come, and when the part before it
#   is done.
# - Counted: the time until all is done, at most 2 % above the least of all orders.
# - Length: about 5 lines.


# %% nbgrader={"grade": false, "grade_id": "overlap", "locked": false, "schema_version": 3, "solution": true, "task": false}
def overlap(layers, times):
    ### BEGIN SOLUTION
    return [
        [f"{kind}{layer}.{batch}" for layer in range(layers) for kind in kinds for batch in (0, 1)]
        for kinds in ("AE", "DC")
    ]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "overlap-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("experts.overlap", overlap)

# %% jupyter={"source_hidden": true}
gpulab.need(overlap)
TIMES, BEFORE = {"A": 10, "D": 4, "E": 9, "C": 6}, {"D": "A", "E": "D", "C": "E"}
orders = overlap(3, dict(zip(("attention", "dispatch", "experts", "combine"), TIMES.values(), strict=True)))
spans, done, free, queues = [], {}, [0, 0], [list(order) for order in orders]
while any(queues):
    for resource, queue in enumerate(queues):
        word = queue[0] if queue else "A0.0"
        kind, layer, batch = word[0], int(word[1:-2]), word[-1]
        before = f"{BEFORE[kind]}{word[1:]}" if kind in BEFORE else f"C{layer - 1}.{batch}"
        if queue and (before in done or (kind == "A" and layer == 0)):
            start = max(free[resource], done.get(before, 0))
            done[word] = free[resource] = start + TIMES[kind]
            name = ("computes", "sends")[resource]
            spans.append(plot.Span(name, start, done[word], kind, f"micro-batch {batch}"))
            queue.pop(0)
plot.timeline(
    spans,
    "units",
    caption="Your orders for three layers: when the two micro-batches (in two colours) compute and send.",
)

# %% [markdown]
# **Why.** The busier of the two resources, here the one that computes, never waits once it has begun. The four times
# need not be equal for that. Only where one part takes several times as long as another can a different order be a
# few percent faster.
#
# ## 7 · Puts and flags
#
# So far a message needed two ranks: one sends, and the other receives. With **symmetric memory** each rank allocates
# the same buffer and knows the addresses of the buffers of all other ranks. Inside a node, a kernel can then store
# into another GPU's memory directly. This is a one-sided **put**. The receiver only tests a **flag**, which the
# sender raises after its data. PyTorch has this as `torch.distributed._symmetric_memory`; NVSHMEM offers it across
# nodes.
#
# `symmetric.Memory` offers it on the counted network of this lab:
#
# | | |
# |---|---|
# | `memory = symmetric.Memory(slots, numbers, dtype)` | the same on all ranks; `memory.slots` is this rank's own, zeros at first |
# | `memory.put(peer, slot, row)` | writes a whole row into a slot of rank `peer` and raises its flag; goes on at once |
# | `memory.wait((peer, slot), …)` | for each pair, waits until rank `peer` has put into slot `slot` of this rank |
# | `memory.quiet()` | waits until all puts of this rank have arrived |
#
# Until a rank has waited for a flag, it sees nothing of that put. Real hardware may behave like this at worst. Here
# it always does, so a program that reads too early fails every time.
#
# ![Rank 0 puts a row into a slot of rank 1's memory and raises its flag. Rank 1 waits for the flag and reads the slot. Nobody calls receive.](drawings/put_and_flag.svg)

# %% [markdown]
# The simplest all-reduce with it is the **one-shot** all-reduce: each rank puts its whole array into every
# other rank's memory, and then each adds everything up itself.
#
# **Do.** Write `one_shot(x)`.
#
# - Input: `x`, int32, of the same length on all ranks.
# - Output: the sum over all ranks, int32. (`sum` of an int32 tensor is int64, unless you say
#   `dtype=x.dtype`.)
# - Counted: steps, the longest chain of messages that waited for one another: 1. Wait for all flags in *one*
#   call.
# - Your own array needs no put: assign it to a row of `memory.slots`.
# - Call `memory.quiet()` before you return.
# - Length: about 9 lines.


# %% nbgrader={"grade": false, "grade_id": "one_shot", "locked": false, "schema_version": 3, "solution": true, "task": false}
def one_shot(x):
    ### BEGIN SOLUTION
    rank, size = dist.get_rank(), dist.get_world_size()
    memory = symmetric.Memory(size, len(x), x.dtype)
    others = [peer for peer in range(size) if peer != rank]
    for peer in others:
        memory.put(peer, rank, x)
    memory.slots[rank] = x
    memory.wait(*[(peer, peer) for peer in others])
    memory.quiet()
    return memory.slots.sum(0, dtype=x.dtype)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "one_shot-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("experts.one_shot", one_shot)

# %% [markdown]
# All ranks add slot by slot, in the same order. So with floating-point numbers, too, all of them get the same
# bits.
#
# ## 8 · Two shots
#
# One shot sends (p − 1) · S bytes from each rank. The **two-shot** all-reduce sends less: in the first step each rank
# collects one share of all arrays and adds it up, and in the second it puts the sum into the memory of every rank.
# That is a reduce-scatter and an all-gather, as in a ring, but every message goes directly to the rank that needs it.
#
# ![What a rank sends on four ranks. One shot: its whole array of S bytes to each of the three others, in one step. Two shots: a quarter to each, then its quarter of the sum to each: two steps, and half of the bytes.](drawings/shots.svg)
#
# **Do.** Write `two_shot(x)`.
#
# - Input and output as before. The length of `x` need not be a multiple of the number of ranks; pad it with zeros
#   (`torch.nn.functional.pad`).
# - Counted: bytes of the busiest sender, two shares to each other rank; and steps: 2.
# - Length: about 16 lines.


# %% nbgrader={"grade": false, "grade_id": "two_shot", "locked": false, "schema_version": 3, "solution": true, "task": false}
def two_shot(x):
    ### BEGIN SOLUTION
    rank, size = dist.get_rank(), dist.get_world_size()
    others = [peer for peer in range(size) if peer != rank]
    share = -(-len(x) // size)
    shares = torch.nn.functional.pad(x, (0, share * size - len(x))).view(size, share)
    memory = symmetric.Memory(2 * size, share, x.dtype)
    for peer in others:
        memory.put(peer, rank, shares[peer])
    memory.slots[rank] = shares[rank]
    memory.wait(*[(peer, peer) for peer in others])
    mine = memory.slots[:size].sum(0, dtype=x.dtype)
    for peer in others:
        memory.put(peer, size + rank, mine)
    memory.slots[size + rank] = mine
    memory.wait(*[(peer, size + peer) for peer in others])
    memory.quiet()
    return memory.slots[size:].flatten()[: len(x)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "two_shot-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("experts.two_shot", two_shot)

# %%
gpulab.need(one_shot, two_shot)
array = torch.arange(1000, dtype=torch.int32)
sent = {}
for name, function in (("one shot", one_shot), ("two shots", two_shot)):
    sent[name] = sum(c.bytes for c in distributed.run(function, 4, array).calls if c.operation == "send") / 4
plot.bars(
    sent,
    "bytes that a rank sends for 4,000 bytes on 4 ranks",
    caption="Two shots send half as much on four ranks, for one step more.",
)

# %% [markdown]
# ## 9 · A switch that adds
#
# Since the generation of the H100, NVLink switches can do arithmetic. `multimem.ld_reduce` loads one address
# from *all* GPUs, and the switch returns their sum. `multimem.st` stores once, and the switch copies it to all
# GPUs. With both, an all-reduce of S bytes on p GPUs needs no slots: each GPU loads the reduced share of S / p
# bytes, and stores it back to all.
#
# How many bytes does a GPU send? Each of the p GPUs loads its share, and each load makes every GPU send S / p bytes
# to the switch. That makes p · S / p = S bytes in all. Storing its share of the sum adds another S / p.
#
# **Predict.** On 8 GPUs, how many times as many bytes does a GPU send in a two-shot all-reduce without the
# switch?

# %%
gpulab.predict("experts.multimem", ...)

# %% [markdown]
# **Do.** Write `fastest(ranks, size, latency, rate, switch)`, which chooses the fastest way. It needs only arithmetic
# and no network.
#
# - Input: `size` bytes on `ranks` ranks, `latency` seconds for a step, `rate` bytes/s that a rank can send,
#   and whether the `switch` adds.
# - A way takes steps · latency + bytes that a rank sends / rate. One shot has 1 step; two shots have 2; with
#   the switch (only if `switch` is true) it is also 2.
# - Output: `[name, seconds]`, where the name is `"one-shot"`, `"two-shot"` or `"multimem"`.
# - Length: about 5 lines.


# %% nbgrader={"grade": false, "grade_id": "fastest", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fastest(ranks, size, latency, rate, switch):
    ### BEGIN SOLUTION
    ways = {"one-shot": (1, ranks - 1), "two-shot": (2, 2 * (ranks - 1) / ranks)}
    if switch:
        ways["multimem"] = 2, (ranks + 1) / ranks
    times = {name: steps * latency + times * size / rate for name, (steps, times) in ways.items()}
    return list(min(times.items(), key=lambda row: row[1]))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "fastest-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("experts.fastest", fastest)

# %% jupyter={"source_hidden": true}
gpulab.need(fastest)
rate = float(hardware.link("NVLink 4").per_direction)
sizes = np.geomspace(1e3, 1e9, 40)
plot.lines(
    {
        name: [(s / 1e3, 1e6 * fastest(8, float(s), 2e-6, rate, switch)[1]) for s in sizes]
        for name, switch in (("without the switch", False), ("with it", True))
    },
    "kB",
    "µs",
    "Modelled for 8 GPUs on NVLink 4 and 2 µs a step (assumed): up to about 150 kB one shot is fastest, and the switch gains only beyond that.",
    log_x=True,
    log_y=True,
)

# %% [markdown]
# ## Beyond · Dispatch without waiting for counts
#
# This task is open-ended and ungraded. `exchange` sends counts before it sends rows, so the rows wait for an
# additional message. In decoding that doubles the latency. DeepEP's low-latency kernels give each pair of ranks a
# buffer with room for the most rows that can come, and the count travels in the flag. The **figure of merit** is the
# number of exchanges that wait for one another. Naive, a send for each row: hundreds. Reference: 8, counted in the
# next cell. Bound: 4, because a row takes two hops there and two back.

# %%
gpulab.need(dispatch)
generator = torch.Generator().manual_seed(0)
options = (torch.rand(16, 8, generator=generator), torch.randn(4, 64, 64, generator=generator))
chosen = torch.stack([torch.randperm(16, generator=generator)[:8] for _ in range(16)])
ran = distributed.run(dispatch, 4, torch.randn(16, 64, generator=generator), chosen, *options, 2)
print(f"{len([c for c in ran.calls if c.rank == 0])} collectives on each rank, one behind the other")

# %% [markdown]
# ## Recap
#
# <details><summary>1. Why does a token's row go to the rank of the same place in the other node?</summary>
#
# This way, all network cards of a node carry the same load. The rank there passes the row on over NVLink.
# </details>
#
# <details><summary>2. What is a node worth in node-limited routing, and why not its best score?</summary>
#
# The sum of its k / M best scores, because about as many experts are taken from each of M nodes.
# </details>
#
# <details><summary>3. Why does serving use more GPUs for the same experts?</summary>
#
# Each GPU then reads fewer experts in a step, and each expert serves more tokens for the same reading.
# </details>
#
# <details><summary>4. What does a copy of an expert cost, and what does it bring?</summary>
#
# It costs memory for its weights on one more GPU. In return, half of its tokens leave the busiest GPU.
# </details>
#
# <details><summary>5. When is one shot better than two?</summary>
#
# For small arrays, where a step's latency costs more than the additional bytes.
# </details>

# %%
gpulab.recap("28")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | rows that cross for a token | one there and one back for each other node that it visits |
# | node-limited routing | the M nodes with the largest sums of k / M best scores |
# | tokens of an expert | GPUs · tokens · k / experts |
# | places of experts | copies by load per copy, then the largest first to the emptiest GPU |
# | two micro-batches | about the longer of computing and sending |
# | one-shot, two-shot all-reduce | 1 step and (p − 1) S; 2 steps and 2 (p − 1)/p · S |
# | with a switch that adds | 2 steps and (p + 1)/p · S |
#
# ### Claims you will meet, and what is right
#
# - *Top-8 routing sends eight rows for each token.* One for each node is enough, and the sums come back as
#   one.
# - *More GPUs make a layer's exchange slower, so expert groups should be small.* In decoding, reading weights
#   costs more than the exchange until the group is large.
# - *The ring is optimal.* In bytes it is. For small arrays the number of steps decides: one instead of 2 (p − 1).
#
# ### References
#
# 1. DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, sections 2.1.2 and 3.2.
#    https://arxiv.org/abs/2412.19437
# 2. C. Zhao et al., "Insights into DeepSeek-V3: Scaling Challenges and Reflections on Hardware for AI
#    Architectures", 2025. https://arxiv.org/abs/2505.09343
# 3. DeepEP, documentation. https://github.com/deepseek-ai/DeepEP
# 4. PyTorch, "PyTorch Symmetric Memory". https://docs.pytorch.org/docs/stable/symmetric_memory.html
# 5. NVIDIA, "Parallel Thread Execution ISA", multimem instructions.
#    https://docs.nvidia.com/cuda/parallel-thread-execution/
