# ---
# jupyter:
#   gpulab:
#     lab: "17"
#     hours: 3
#     topics: [C16.1, C16.3]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 17 A · Model parallelism: inside a layer
#
# **1.5 to 3 hours.** You need labs 12 and 15: attention, collectives, `distributed.run`. No GPU is needed.
#
# In a large model, a single layer or its activations may not fit on one GPU. Then the layer itself must be
# cut: its matrices, its vocabulary, or its tokens. Each rank computes a part, and a few collectives make the
# parts add up to the same layer. In this lab you write these cuts for real ranks, and the network counts what
# you send.
#
# By the end of this lab, you can
#
# 1. cut two consecutive matrices so that one all-reduce is enough, and say which gradients need another;
# 2. compute a loss over a vocabulary that no rank has completely;
# 3. say what sequence parallelism saves, and what it does not;
# 4. pass keys and values round a ring, and compute attention block by block;
# 5. find a layer that is right on one rank and wrong on four.

# %%
import math

import torch
import torch.distributed as dist
import torch.nn.functional as F

import gpulab
from gpulab import distributed, hardware
from gpulab.distributed import costs

gpulab.start("17")

# %% [markdown]
# ## 1 · Two ways to cut a product
#
# There are two ways to share the product X · A among p ranks.
#
# - **Column parallel:** rank r has some *columns* of A. It computes the same columns of the result, and they
#   are complete. Put side by side, the columns of all ranks are X · A.
# - **Row parallel:** rank r has some *rows* of A, and needs only the same columns of X. Its result has the
#   full shape, but it is only one term of a sum. The terms of all ranks add up to X · A.
#
# Both cut inside a layer, which is called **tensor parallelism** (M. Shoeybi et al., "Megatron-LM", 2019). In
# the next cell, `distributed.run` starts four ranks. Each takes its part and shows what it has.

# %%
torch.manual_seed(0)
X, A = torch.randn(3, 8), torch.randn(8, 8)


def both_ways():
    rank, ranks = dist.get_rank(), dist.get_world_size()
    columns = X @ A.chunk(ranks, dim=1)[rank]
    rows = X.chunk(ranks, dim=1)[rank] @ A.chunk(ranks, dim=0)[rank]
    return columns, rows


parts = distributed.run(both_ways, 4)
side_by_side = torch.cat([columns for columns, _ in parts], dim=1)
added = sum(rows for _, rows in parts)
for name, part, whole in (("columns", parts[0][0], side_by_side), ("rows", parts[0][1], added)):
    print(
        f"{name:8} a rank has {tuple(part.shape)}, together off by {float((whole - X @ A).abs().max()):.1g}"
    )

# %% [markdown]
# ## 2 · Columns, then rows
#
# An MLP computes Y = gelu(X A) B. How should A be cut? If it is cut by rows, each rank has one term of the
# sum X A. But gelu needs the whole sum, because gelu(s + t) is not gelu(s) + gelu(t). If A is cut by columns,
# each rank has complete columns of the hidden layer, and gelu can be applied to them directly. These are also
# exactly the columns that a row-parallel B needs. So nothing is sent between the two products, and a single
# **all-reduce** adds up Y. No rank ever has the whole hidden layer.
#
# ![Two ranks share an MLP. A is cut by columns, so each rank has half of the hidden values; B is cut by rows, so each rank has a part of every sum. One all-reduce adds the parts.](drawings/column_then_row.svg)

# %% jupyter={"source_hidden": true}
TOKENS, WIDTH, HIDDEN = 64, 128, 512
gpulab.plot.parts(
    [
        ("X", (TOKENS, WIDTH), "whole"),
        "·",
        ("A", (WIDTH, HIDDEN), "columns"),
        "→",
        ("gelu(X A)", (TOKENS, HIDDEN), "columns"),
        "·",
        ("B", (HIDDEN, WIDTH), "rows"),
        "→",
        ("terms of Y", (TOKENS, WIDTH), "terms"),
    ],
    4,
    "Who has what on four ranks: up to the terms of Y, each rank needs only numbers of its own.",
)

# %% [markdown]
# Backward is the mirror image. Each gradient of A and B belongs to one rank. But every rank used X, so the
# gradient of X is a sum over ranks and needs one more all-reduce. Attention is cut in the same way: a rank
# has some of the heads, which are columns of the matrices for Q, K and V, and it has the matching rows of the
# output matrix.
#
# **Predict.** How many all-reduces does one transformer layer (attention and MLP) need, forward and backward
# together? A rank may add up several gradients of the same X before they are sent.

# %%
gpulab.predict("parallel.reduces", ...)

# %% [markdown]
# **Do.** Write `mlp(x, a, b, slope)`, which every rank runs. About 7 lines.
#
# - `x` (tokens × width) is the same on all ranks. `slope`, the gradient of the loss with respect to y, has
#   the shape of `x` and is also the same on all ranks.
# - `a` (width × columns) and `b` (columns × width) are this rank's parts. `x`, `a` and `b` have
#   `requires_grad` set. All tensors are FP32.
# - Output: the list `[y, dx, da, db]`. `y` and `dx` are complete on every rank. `da` and `db` are the
#   gradients of this rank's parts.
# - GELU is `F.gelu`. `dist.all_reduce(t)` replaces t in place by the sum over all ranks.
# - Allowed: `all_reduce`, `all_gather`, `reduce_scatter`, sends and receives.
# - **Budget:** the busiest rank sends no more than two all-reduces take.


# %% nbgrader={"grade": false, "grade_id": "mlp", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mlp(x, a, b, slope):
    ### BEGIN SOLUTION
    part = F.gelu(x @ a) @ b
    y = part.detach().clone()
    dist.all_reduce(y)
    part.backward(slope)
    dist.all_reduce(x.grad)
    return [y, x.grad, a.grad, b.grad]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "mlp-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.mlp", mlp)

# %% [markdown]
# **See.** The next cell runs the same layer on 1, 2 and 4 ranks, and lists all calls of rank 0:


# %%
def whole_layer():
    numbers = torch.Generator().manual_seed(1)
    x, slope = (torch.randn(TOKENS, WIDTH, generator=numbers) for _ in range(2))
    a = torch.randn(WIDTH, HIDDEN, generator=numbers) / WIDTH**0.5
    b = torch.randn(HIDDEN, WIDTH, generator=numbers) / HIDDEN**0.5
    return x, a, b, slope


# %%
gpulab.need(mlp)


def cut_layer():
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x, a, b, slope = whole_layer()
    a, b = a.chunk(ranks, 1)[rank].clone(), b.chunk(ranks, 0)[rank].clone()
    y, dx, _, _ = mlp(x.requires_grad_(), a.requires_grad_(), b.requires_grad_(), slope)
    return y, dx, a.numel() + b.numel()


alone = distributed.run(cut_layer, 1)[0]
held = {}
for ranks in (1, 2, 4):
    ran = distributed.run(cut_layer, ranks)
    off = max(float((ran[0][k] - alone[k]).abs().max()) for k in (0, 1))
    calls = [call for call in ran.calls if call.rank == 0]
    named = f"{ranks} rank{'s' * (ranks > 1)}"
    held[named] = ran[0][2]
    said = ", ".join(f"{call.operation} of {call.bytes:,} B" for call in calls)
    print(f"{named}: off by {off:.1g}; rank 0 calls {said}")
gpulab.plot.bars(
    held,
    "weights that a rank holds",
    caption="Each rank holds its share of both matrices, but the calls above do not shrink.",
)

# %% [markdown]
# **Why.** With more ranks, each has fewer weights, but the all-reduces do not shrink. They are as large as the
# activations, no matter how many ranks there are. Megatron-LM puts them into two autograd functions around the
# layer. *f* comes before the layer: it copies in forward and all-reduces in backward. *g* comes after the layer: it
# all-reduces in forward and copies in backward. PyTorch's `parallelize_module` cuts a module in this way, with
# `ColwiseParallel` and `RowwiseParallel`. Dropout after Y needs the complete Y and the same random numbers on all
# ranks, whereas dropout on the hidden columns needs different ones.
#
# ## 3 · Why it stays inside a node
#
# A layer's all-reduces lie between its products, and the next product cannot start before they are done.
# (Part B's Domino is a way to hide them.) So the speed of the link decides.
#
# Take nodes of 8 H100. Per GPU and direction, the links have 450 GB/s inside a node and 50 GB/s between
# nodes, and each message has a latency of 5 µs. A single ring over two nodes is as slow as its slowest link.
# It is better to work in levels (lab 15), where the eight links between the nodes share the work: a
# reduce-scatter inside the nodes, an all-reduce of each eighth between them, and an all-gather inside again.
#
# **Predict.** An all-reduce of 100 MB runs in levels over 16 GPUs on two nodes. How many times as long does
# it take as over 8 GPUs on one node?

# %%
gpulab.predict("parallel.across", ...)

# %%
LATENCY = 5e-6  # seconds per message, an assumption
inside = costs.Network(LATENCY, float(hardware.link("NVLink 4").per_direction))
between = costs.Network(LATENCY, float(hardware.link("InfiniBand NDR").per_direction))
one = costs.ring_all_reduce(inside, 8, 100e6)
flat = costs.ring_all_reduce(between, 16, 100e6)
levels = costs.hierarchical_all_reduce(inside, between, per_node=8, nodes=2, size=100e6)
gpulab.predict("parallel.across", measured=levels / one)
for name, seconds in (("8 GPUs", one), ("16, one ring", flat), ("16, in levels", levels)):
    print(f"{name:14}{1e3 * seconds:5.2f} ms, {seconds / one:.1f} times")


def layer_times(ranks, tokens=8192, width=8192):
    """Seconds of a layer, forward and backward: products at an H100's peak, four all-reduces. Modelled."""
    rate = float(hardware.find("H100").peak("float16", tensor=True))
    products = 6 * 12 * width**2 * tokens / ranks / rate
    inner, nodes = min(ranks, 8), -(-ranks // 8)
    return products, 4 * costs.hierarchical_all_reduce(inside, between, inner, nodes, 2 * tokens * width)


times = {f"{p} ranks": layer_times(p) for p in (2, 4, 8, 16, 32)}
gpulab.plot.panels(
    {
        "products, ms": {name: 1e3 * products for name, (products, _) in times.items()},
        "all-reduces, ms": {name: 1e3 * reduces for name, (_, reduces) in times.items()},
        "products' share of both, %": {name: 100 * times[name][0] / sum(times[name]) for name in times},
    },
    "Products shrink with the ranks, but all-reduces do not: with 16 ranks they take most of the time "
    "(modelled).",
)

# %% [markdown]
# **Why.** On 8 ranks, GPUs compute for two thirds of the time, but on 16 ranks for only two fifths. So twice as many
# GPUs make the layer only 1.2 times as fast. The model even flatters 16 ranks, because products with half as many
# columns run less efficiently. A pipeline or more data parallelism can use the second node with far fewer bytes.
# Hence the advice "tensor parallelism up to the size of a node" (D. Narayanan et al., 2021, takeaway 1). If 72 GPUs
# share one NVLink domain, as in GB200 NVL72, the limit is 72.
#
# ## 4 · A vocabulary in pieces
#
# ![A vocabulary in pieces: each of two ranks has half of the rows of the table. A word is found by the rank that has it, the other one adds zero, and the sum over ranks is the embedding.](drawings/vocabulary.svg)
#
# The embedding table and the output layer have vocabulary × width numbers each. In small models that is a
# large part of all weights. If the table is cut by *words* and each rank has n of them, rank r has the rows r
# · n to (r + 1) · n − 1. For a token that is not among them, its **embedding** on this rank is a row of
# zeros. An all-reduce then leaves the right rows on all ranks:

# %%
table = torch.randn(40, 6)


def embed():
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mine, rows = table.chunk(ranks)[rank], 40 // ranks
    tokens = torch.tensor([3, 39, 17, 3])
    here = (tokens >= rank * rows) & (tokens < (rank + 1) * rows)
    found = mine[(tokens - rank * rows).clamp(0, rows - 1)] * here[:, None]
    dist.all_reduce(found)
    return found


print("all rows right:", all(torch.equal(got, table[[3, 39, 17, 3]]) for got in distributed.run(embed, 4)))

# %% [markdown]
# The **loss** needs more care. The logits are hidden · tableᵀ, with one column per word. Each rank has the
# columns of its own words, and no rank has a whole row. The loss of a token is log Σ exp(logit) − logit of
# its label.
#
# **Predict.** One way is to gather all logits on all ranks. A better way all-reduces only three numbers per
# token. For 50,304 words, by what factor does gathering send more bytes?

# %%
gpulab.predict("parallel.logits", ...)

# %% [markdown]
# **Do.** Write `loss(hidden, table, labels)`, the loss of each token. About 10 lines.
#
# - `hidden` (tokens × width, FP32) and `labels` (tokens, int64, word numbers counted from 0) are the same on all
#   ranks.
# - `table` (words / ranks × width, FP32) has this rank's rows.
# - Output: a tensor with one loss per token, complete on every rank.
# - Logits of ±1,000 must not overflow. `dist.all_reduce(t, op=dist.ReduceOp.MAX)` takes maxima.
# - Allowed: `all_reduce`, `all_gather`, sends and receives.
# - **Budget:** for each token, the busiest rank sends at most 8 bytes to each other rank. That is 24 bytes on
#   four ranks. (On two ranks 12 are allowed.)


# %% nbgrader={"grade": false, "grade_id": "loss", "locked": false, "schema_version": 3, "solution": true, "task": false}
def loss(hidden, table, labels):
    ### BEGIN SOLUTION
    logits = hidden @ table.T
    largest = logits.max(dim=1).values
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    place = labels - dist.get_rank() * len(table)
    here = (place >= 0) & (place < len(table))
    own = logits.gather(1, place.clamp(0, len(table) - 1)[:, None])[:, 0]
    total = (logits - largest[:, None]).exp().sum(dim=1)
    both = torch.stack([total, torch.where(here, own, torch.zeros_like(own))])
    dist.all_reduce(both)
    return both[0].log() + largest - both[1]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "loss-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.loss", loss)

# %% [markdown]
# **Why.** For one sequence of 8,192 tokens and 128,256 words (Llama 3's vocabulary), the logits in FP32 take
# 4.2 GB. If the vocabulary is cut, no rank holds more than its share of them, and only three numbers per
# token are sent, which is 98 KB. Vocabularies are padded until all ranks have equally many rows. Megatron-LM
# pads to a multiple of 128 rows per rank.
#
# ## 5 · Splitting the sequence
#
# Tensor parallelism does not cut norms, dropout and residuals. Each rank computes them for all tokens, and keeps all
# of their activations. **Sequence parallelism** (V. Korthikanti et al., 2022) cuts these parts by *tokens*. Before
# the column-parallel matrix, an all-gather brings all tokens together. After the row-parallel one, a reduce-scatter
# adds up the terms and leaves each rank with its own tokens. The two replace the all-reduce.
#
# ![Sequence parallelism: between the tensor-parallel parts each rank keeps the activations of some tokens only. A gather puts the tokens together before a product, and a reduce-scatter takes them apart after it.](drawings/sequence.svg)


# %%
def cut_tokens():
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x, a, b, _ = whole_layer()
    mine = F.layer_norm(x.chunk(ranks)[rank], (WIDTH,))  # a norm of this rank's tokens only
    pieces = [torch.empty_like(mine) for _ in range(ranks)]
    dist.all_gather(pieces, mine)
    part = F.gelu(torch.cat(pieces) @ a.chunk(ranks, 1)[rank]) @ b.chunk(ranks, 0)[rank]
    y = torch.empty_like(mine)
    dist.reduce_scatter(y, list(part.chunk(ranks)))
    return y


x, a, b, _ = whole_layer()
right = F.gelu(F.layer_norm(x, (WIDTH,)) @ a) @ b
ran = distributed.run(cut_tokens, 4)
print(f"off by {float((torch.cat(list(ran)) - right).abs().max()):.1g}")
free = costs.Network(0.0, 1.0)  # no latency, 1 B/s: the seconds are bytes
size = TOKENS * WIDTH * 4
print(f"a rank sends for an all-reduce             {costs.ring_all_reduce(free, 4, size):9,.0f} B")
gather, scatter = costs.ring_all_gather(free, 4, size), costs.ring_reduce_scatter(free, 4, size)
print(f"for an all-gather and a reduce-scatter     {gather + scatter:9,.0f} B")

# %% [markdown]
# **See.** How much does a layer keep for backward? By the paper's count it is 34 bytes for each token and
# unit of width, in 16 bits and with no scores stored (lab 12). Of these, 24 lie between the cut matrices, and
# 10 belong to norms, dropout and inputs.

# %%
kept = {
    "tensor parallel": [(p, 10 + 24 / p) for p in (1, 2, 4, 8)],
    "and sequence parallel": [(p, 34 / p) for p in (1, 2, 4, 8)],
}
picture = gpulab.plot.lines(
    kept,
    "ranks",
    "bytes kept per token and unit of width",
    "Ten bytes stay until the tokens are cut, too. On 8 ranks they are three quarters of all (derived).",
    log_x=True,
)
picture.axes.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"])
picture.axes.minorticks_off()
picture

# %% [markdown]
# **Why.** A ring all-reduce *is* a reduce-scatter and an all-gather, so no more bytes are sent. But each rank
# keeps only 1/p of the activations of norms and dropout, and no token is computed twice. There is one trap.
# The scale and bias of a norm now see different tokens on each rank, so their gradients must be summed over
# the ranks. Those of the cut matrices must not.
#
# ## 6 · Keys and values go round
#
# With a million tokens, the attention of one layer is too much for one GPU. **Context parallelism** cuts the whole
# model by tokens. Only attention then needs keys and values of other ranks. In **ring attention** (H. Liu et al.,
# 2023) each rank keeps its queries. While it uses a block of keys and values, it also passes that block on to the
# next rank, p − 1 times in all. No rank holds more than two blocks.
#
# Lab 12's online softmax combines the blocks. For each query it keeps three things:
#
#     m = the largest score so far,   s = Σ exp(score − m),   o = Σ exp(score − m) · value
#     when a block raises m:          multiply the old s and o by exp(old m − new m)
#     after the last block:           output = o / s
#
# **Do.** Write `ring(q, k, v)`: attention over all tokens, without a mask, for this rank's queries. About 20
# lines.
#
# - `q`, `k`, `v`: this rank's tokens (tokens / ranks × width, FP32), one head. Divide the scores by √width.
# - Output: a tensor shaped like `q`.
# - Use sends and receives only. `dist.send` waits for its receiver, so if all ranks send first, all of them
#   wait. `dist.isend` returns a work at once, which has `.wait()`.
# - **Budget:** p − 1 steps. In each, a rank sends one block, with keys and values in one message.


# %% nbgrader={"grade": false, "grade_id": "ring", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ring(q, k, v):
    ### BEGIN SOLUTION
    rank, ranks = dist.get_rank(), dist.get_world_size()
    block = torch.stack([k, v])
    largest = torch.full((len(q), 1), -math.inf)
    total, out = torch.zeros(len(q), 1), torch.zeros_like(q)
    for turn in range(ranks):
        last = turn == ranks - 1
        if not last:
            work = dist.isend(block, (rank + 1) % ranks)
            coming = torch.empty_like(block)
        keys, values = block
        scores = q @ keys.T / math.sqrt(q.shape[1])
        new = torch.maximum(largest, scores.max(dim=1, keepdim=True).values)
        old, weights = (largest - new).exp(), (scores - new).exp()
        total = total * old + weights.sum(dim=1, keepdim=True)
        out = out * old + weights @ values
        largest = new
        if not last:
            dist.recv(coming, (rank - 1) % ranks)
            work.wait()
            block = coming
    return out / total
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "ring-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.ring", ring)

# %% [markdown]
# **See.** These are the messages of a run, as the network recorded them:

# %%
gpulab.need(ring)


def some_tokens():
    numbers = torch.Generator().manual_seed(dist.get_rank())
    return ring(*(torch.randn(16, 16, generator=numbers) for _ in range(3)))


sends = [
    [c for c in distributed.run(some_tokens, 4).calls if (c.rank, c.operation) == (r, "send")]
    for r in range(4)
]
gpulab.plot.messages(
    [[(c.rank, c.peer, c.bytes) for c in round_] for round_ in zip(*sends, strict=True)], 4, "B"
)

# %% [markdown]
# The check sees what is sent but not what you keep. A program that gathers all blocks and then computes would
# pass, but on a GPU that would defeat the purpose.
#
# When does computing hide the sending? With c tokens per rank and a head of d numbers, a round computes 4 ·
# c² · d FLOPs and sends 4 · c · d bytes (keys and values in 16 bits). So it computes c FLOPs for each byte.
# The sending is hidden if c is at least the GPU's FLOPs per second over the link's bytes per second:

# %%
rate = float(hardware.find("H100").peak("float16", tensor=True))
for link in ("NVLink 4", "InfiniBand NDR"):
    print(
        f"{link:15}at least {rate / float(hardware.link(link).per_direction):6,.0f} tokens per rank, "
        "at an H100's peak"
    )

# %% [markdown]
# If g query heads share keys (lab 12), a message serves g times as much work, and c may be g times as small.
#
# A language model masks the future, so a query sees only its own and earlier keys. The ring stays the same,
# but blocks above the diagonal need no work.
#
# **Predict.** Four ranks have consecutive tokens and a causal mask. How many times as much work as the first
# rank does the last one have?

# %%
gpulab.predict("parallel.causal", ...)

# %%
RANKS, TOKENS_ = 4, 64
straight = [list(range(r * TOKENS_ // RANKS, (r + 1) * TOKENS_ // RANKS)) for r in range(RANKS)]
half = TOKENS_ // RANKS // 2
folded = [
    [*range(r * half, (r + 1) * half), *range(TOKENS_ - (r + 1) * half, TOKENS_ - r * half)]
    for r in range(RANKS)
]


def pairs(tokens):
    """Pairs of a query and a key for which the rank with these tokens must compute under a causal mask."""
    return sum(token + 1 for token in tokens)


found = {f"consecutive, rank {r}": pairs(straight[r]) for r in range(RANKS)}
gpulab.predict("parallel.causal", measured=found["consecutive, rank 3"] / found["consecutive, rank 0"])
(found["folded, every rank"],) = {pairs(tokens) for tokens in folded}
gpulab.plot.bars(
    found,
    "pairs of a query and a key",
    caption="With consecutive tokens all ranks wait for the last one. Folded, each of them has the mean.",
)

# %% [markdown]
# **Why.** In each round the ring waits for the busiest rank. The remedy is to *fold* the sequence (others say
# zigzag): cut it into 2 p pieces and give rank r the r-th piece from the front and the r-th from the back.
# Then all ranks have the same work. Llama 3's trainers fold in this way, but they gather all keys and values
# at once instead of passing them round, because with grouped heads they are small (Grattafiori et al., 2024,
# section 3.3). Another way is DeepSpeed-Ulysses. An all-to-all turns a cut by tokens into a cut by heads,
# attention runs on whole sequences, and another all-to-all turns the cut back. It needs at least p heads.
#
# ## Detective · The layer that grows with the ranks
#
# A colleague has written an MLP with biases. "I tested it on four ranks against one process, and they were
# equal up to rounding. After a day of training on four ranks I loaded the checkpoint on one, and the loss is
# different. Is it the checkpoint?"


# %%
def theirs(x, a, a_bias, b, b_bias):
    hidden = F.gelu(x @ a + a_bias)
    y = hidden @ b + b_bias
    dist.all_reduce(y)
    return y


def their_test(trained):
    """The layer on all ranks of this run, with biases of size `trained`: 0.0 for fresh ones."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x, a, b, _ = whole_layer()
    numbers = torch.Generator().manual_seed(2)
    a_bias, b_bias = (trained * torch.randn(n, generator=numbers) for n in (HIDDEN, WIDTH))
    return theirs(x, a.chunk(ranks, 1)[rank], a_bias.chunk(ranks)[rank], b.chunk(ranks, 0)[rank], b_bias)


one, four = distributed.run(their_test, 1, 0.0)[0], distributed.run(their_test, 4, 0.0)[0]
print(f"fresh weights, 4 ranks against 1: off by {float((four - one).abs().max()):.1g}")

# %% [markdown]
# **Do.** Find the cause with numbers. `their_test` takes a factor for the size of the biases. Use the next cell for
# this. Then write `biased(x, a, a_bias, b, b_bias)`, which must be right on any number of ranks. About 4 lines.
#
# - `x` (tokens × width) and `b_bias` (width) are the same on all ranks.
# - `a` (width × columns), `a_bias` (columns) and `b` (columns × width) are this rank's parts. All tensors are
#   FP32.
# - Output: y (tokens × width), complete on every rank.
# - Allowed: `all_reduce`, `all_gather`, `broadcast`, sends and receives.
# - **Budget:** one all-reduce.

# %%
# Your experiment.


# %% nbgrader={"grade": false, "grade_id": "biased", "locked": false, "schema_version": 3, "solution": true, "task": false}
def biased(x, a, a_bias, b, b_bias):
    ### BEGIN SOLUTION
    y = F.gelu(x @ a + a_bias) @ b
    dist.all_reduce(y)
    return y + b_bias
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "biased-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("parallel.biased", biased)

# %% [markdown]
# ### Your answer
#
# Answer in three to five sentences. What was wrong, why did the colleague's test not see it, and which number from
# your experiment shows it? What happens to the loss on one rank, and why did training on four ranks work all the
# same?
#
# A person reads this and gives 1 point for the cause, and 1 point for a number that you measured.

# %% [markdown] nbgrader={"grade": true, "grade_id": "biased-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** Every rank adds the bias of the row-parallel layer before the all-reduce, so the bias is counted once
# for each rank, which is four times here. Fresh biases are zero, and four times zero is zero, so the test could not
# see it. With `their_test` at 1.0, the output on four ranks differs from the output on one rank by exactly three
# times `b_bias` (4 − 1), which is up to 8.2. Training on four ranks works all the same, because the optimizer learns
# a bias that is a quarter of the right one. If the checkpoint is loaded on one rank, this bias is four times too
# small, so the loss is worse.
#
# **1 point** (cause without a number): The bias is added before the all-reduce, so it is added four times.
#
# **0 points:** The checkpoint was cut wrongly. Or: all-reduce rounds differently on four ranks.

# %% [markdown]
# ## Beyond · Blocks that nobody needs
#
# This task is open-ended and ungraded. With a causal mask and consecutive tokens, rank 0's queries need no
# block of other ranks. Send each block only to the ranks that need it, in as few steps as you can. The figure
# of merit is the number of bytes that all ranks send together, for 4 ranks with 16 tokens of width 16 each.
#
# | way | bytes |
# |---|---|
# | the full ring | printed below |
# | yours | yours |
# | bound: only the p − 1 − r ranks after rank r need its block | half of the ring's |

# %%
gpulab.need(ring)


def causal_ring(q, k, v):
    return ring(q, k, v)  # yours: with the mask, and with fewer messages


def tokens_of(rank):
    numbers = torch.Generator().manual_seed(rank)
    return [torch.randn(16, 16, generator=numbers) for _ in range(3)]


def causal_run():
    return causal_ring(*tokens_of(dist.get_rank()))


q, k, v = (torch.cat(parts)[None] for parts in zip(*map(tokens_of, range(4)), strict=True))
masked = F.scaled_dot_product_attention(q, k, v, is_causal=True)[0]
ran = distributed.run(causal_run, 4)
off = float((torch.cat(list(ran)) - masked).abs().max())
print(f"{sum(ran.bytes_sent):,} B; off by {off:.1g} from masked attention (the full ring has no mask)")

# %% [markdown]
# ## Recap
#
# <details><summary>1. Why is the first matrix cut by columns and the second by rows?</summary>
#
# Complete columns of the hidden layer can go through GELU, and they are what the rows of the second matrix
# need. The other order would need a sum before GELU.
# </details>
#
# <details><summary>2. Which gradients of a tensor-parallel MLP are all-reduced?</summary>
#
# The gradient of its input, over the tensor group. The gradients of the weights belong to one rank each.
# </details>
#
# <details><summary>3. Does sequence parallelism save traffic?</summary>
#
# No. An all-gather and a reduce-scatter send as many bytes as the all-reduce that they replace. It saves
# memory.
# </details>
#
# <details><summary>4. What must a rank know for a loss over a cut vocabulary?</summary>
#
# The maximum of the row, its sum of exponentials, and the logit of the label. It needs no other logit.
# </details>
#
# <details><summary>5. Where is the bias of a row-parallel layer added?</summary>
#
# After the all-reduce, once. The bias of a column-parallel layer is cut like its columns and added before.
# </details>

# %%
gpulab.recap("17")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | MLP, attention | cut by columns (or heads), then by rows; one all-reduce forward, one backward |
# | a layer | 4 all-reduces of tokens · width · 2 B |
# | bytes that a rank sends for a ring all-reduce | 2 (p − 1)/p · size |
# | memory | weights 1/p; activations between the cut matrices 1/p |
# | sequence parallel | all-gather + reduce-scatter instead of the all-reduce; sum the norms' gradients |
# | bytes kept per token and unit of width | 34 on one GPU; tensor parallel 10 + 24/p; with sequence parallel 34/p |
# | vocabulary parallel | maximum, sum of exponentials, label's logit: 3 numbers per token |
# | ring attention | p − 1 rounds, each with one block of keys and values; combine by maximum, sum, output |
# | sending is hidden | if a rank has at least FLOP/s ÷ B/s tokens |
# | causal mask | fold: rank r has the r-th piece from the front and from the back |
# | bias of a row-parallel layer | after the all-reduce |
# | where to use tensor parallelism | inside a node |
#
# ### Claims you will meet, and what is right
#
# - *Tensor parallelism splits the model's layers across GPUs.* It splits each layer. Pipelines split the list
#   of layers.
# - *Dropout after the MLP needs the full hidden layer on each rank.* It needs the full output Y, which is the sum of
#   the parts. The hidden layer gelu(X A) is never gathered.
# - *Data parallelism replicates weights and activations.* It replicates weights. Activations belong to
#   different samples on each rank.
# - *Sequence parallelism reduces communication.* It reduces memory, at the same traffic.
#
# ### References
#
# 1. M. Shoeybi et al., "Megatron-LM", 2019. https://arxiv.org/abs/1909.08053
# 2. D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM",
#    2021. https://arxiv.org/abs/2104.04473
# 3. V. Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", 2022.
#    https://arxiv.org/abs/2205.05198
# 4. H. Liu et al., "Ring Attention with Blockwise Transformers for Near-Infinite Context", 2023.
#    https://arxiv.org/abs/2310.01889
# 5. S. A. Jacobs et al., "DeepSpeed Ulysses", 2023. https://arxiv.org/abs/2309.14509
# 6. A. Grattafiori et al., "The Llama 3 Herd of Models", 2024, section 3.3. https://arxiv.org/abs/2407.21783
# 7. PyTorch, "Tensor Parallelism". https://docs.pytorch.org/docs/stable/distributed.tensor.parallel.html
