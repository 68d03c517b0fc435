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
# **About three hours.** You know labs 12 and 15: attention, collectives, `distributed.run`. No GPU needed.
#
# One layer of a large model fits on no GPU, or its activations do not. Then the layer itself is cut: its
# matrices, its vocabulary, its tokens. Each rank computes a part, and a few collectives make it the same
# layer. You write these cuts for real ranks, and the network counts what you send.
#
# When you are through, you can
#
# 1. cut two matrices in a row so that one all-reduce is enough, and say which gradients need another;
# 2. compute a loss over a vocabulary that no rank has;
# 3. say what sequence parallelism saves, and what it does not;
# 4. send keys and values round a ring and put attention together from blocks;
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
# X · A can be shared by p ranks in two ways.
#
# - **Column parallel**: rank r has some *columns* of A. It computes those columns of the result, complete.
#   Put side by side they are X · A.
# - **Row parallel**: rank r has some *rows* of A, and needs only the same columns of X. Its result has the
#   full shape but is one term of a sum. All ranks' terms added are X · A.
#
# Each cuts inside a layer: this is **tensor parallelism** (M. Shoeybi et al., "Megatron-LM", 2019). In the
# cell, `distributed.run` starts four ranks; each takes its part and shows what it has.

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
# An MLP is Y = gelu(X A) B. If A is cut by rows, gelu would need the sum first: gelu(s + t) is not gelu(s) +
# gelu(t). Cut A by columns, and each rank has complete columns of the hidden layer; gelu works on them as
# they are. They are the very columns that a row-parallel B needs. So nothing travels in between, and **one
# all-reduce** adds up Y. The hidden layer is never gathered on any rank.
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
    "Who has what on four ranks: up to the terms of Y each rank works with its own numbers alone.",
)

# %% [markdown]
# Backward mirrors it. B's and A's gradients belong to one rank each. But every rank used X, so the gradient
# of X is a sum over ranks: one all-reduce more. With attention it is the same: a rank has some heads, that is
# columns of the matrices for Q, K and V, and the matching rows of the output matrix.
#
# **Predict.** How many all-reduces has one transformer layer (attention and MLP), forward and backward
# together? A rank may add gradients of one X up before they travel.

# %%
gpulab.predict("parallel.reduces", ...)

# %% [markdown]
# **Do.** Write `mlp(x, a, b, slope)`, which every rank runs. `x` (tokens × width) and `slope`, the gradient
# of the loss with respect to y, are the same on all ranks; `a` (width × columns) and `b` (columns × width)
# are this rank's. `x`, `a` and `b` have `requires_grad` set. `dist.all_reduce(t)` replaces t by the sum over
# all ranks, in place. Return `[y, dx, da, db]`, y and dx complete on every rank, da and db for this rank's
# parts. GELU is `F.gelu`. **Budget:** the busiest rank sends no more than two all-reduces take. About 7
# lines.


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
# **See.** The same layer on 1, 2 and 4 ranks, and all calls of the network:


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
    held[f"{ranks} rank{'s' * (ranks > 1)}"] = ran[0][2]
    said = ", ".join(f"{call.operation} of {call.bytes:,} B" for call in calls)
    print(f"{ranks} ranks: off by {off:.1g}; rank 0 calls {said}")
gpulab.plot.bars(
    held,
    "weights that a rank holds",
    caption="Each rank holds its share of both matrices; the calls above stay as large as they were.",
)

# %% [markdown]
# **Why.** The weights shrink with the ranks; the all-reduces do not: they are as large as the activations,
# however many ranks there are. Megatron-LM puts them into two autograd functions around the layer: *f*, in
# front, copies forward and all-reduces backward; *g*, behind, all-reduces forward and copies backward.
# PyTorch's `parallelize_module` cuts a module so, with `ColwiseParallel` and `RowwiseParallel`. Dropout after
# Y needs the complete Y and the same random numbers on all ranks; dropout on the hidden columns needs
# different ones.
#
# ## 3 · Why it stays inside a node
#
# A layer's all-reduces stand between its products: nothing goes on before they are done, unless they are
# hidden on purpose (part B, Domino). So the link decides.
#
# Take nodes of 8 H100: 450 GB/s inside and 50 GB/s between, per GPU and direction, and 5 µs of latency a
# message. One ring over two nodes is as slow as its slowest link. In levels (lab 15) the eight links between
# the nodes share the work: a reduce-scatter inside, an all-reduce of each eighth between, an all-gather
# inside.
#
# **Predict.** An all-reduce of 100 MB, in levels: how many times as long does it take over 16 GPUs on two
# nodes as over 8 on one?

# %%
gpulab.predict("parallel.across", ...)

# %%
LATENCY = 5e-6  # seconds a message, an assumption
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
    "Products shrink with the ranks, all-reduces do not: from 16 ranks on they take most of the time (modelled).",
)

# %% [markdown]
# **Why.** On 8 ranks GPUs compute two thirds of the time, on 16 two fifths: twice the GPUs for a layer 1.2
# times as fast. And that is kind to 16: half as many columns make slower products, and a pipeline or more
# data parallelism uses the second node for far fewer bytes. Hence "tensor parallelism up to the size of a
# node" (D. Narayanan et al., 2021, takeaway 1). Where 72 GPUs share one NVLink domain (GB200 NVL72), the
# limit moves.
#
# ## 4 · A vocabulary in pieces
#
# ![A vocabulary in pieces: each of two ranks has half of the rows of the table. A word is found by the rank that has it, the other one adds zero, and the sum over ranks is the embedding.](drawings/vocabulary.svg)
#
# The embedding table and the head are vocabulary × width, in small models a large part of all weights. Cut by
# *words*, rank r has rows r · n to (r + 1) · n − 1. The **embedding** of a token that is not here is a zero
# row, and an all-reduce puts the right rows together:

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
# The **loss** needs more care. The logits are hidden · tableᵀ, one column a word: each rank has its words'
# and nobody has a whole row. The loss of a token is log Σ exp(logit) − logit of its label.
#
# **Predict.** Someone gathers all logits on all ranks. A better way exchanges three numbers a token by
# all-reduce. How many times as many bytes does the gathering take, for 50,304 words?

# %%
gpulab.predict("parallel.logits", ...)

# %% [markdown]
# **Do.** Write `loss(hidden, table, labels)`: the loss of each token, on every rank. `hidden` (tokens ×
# width) and `labels` (int64, numbers of words) are the same everywhere; `table` (words / ranks × width) is
# this rank's rows. Logits of ±1,000 must not overflow; `dist.all_reduce(t, op=dist.ReduceOp.MAX)` takes
# maxima. **Budget:** the busiest rank sends at most 8 bytes a token to each other rank, 24 at four ranks
# (12 at two). About 10 lines.


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
# **Why.** For one sequence of 8,192 tokens and 128,256 words (Llama 3's vocabulary) the logits in float32 are
# 4.2 GB. Cut, no rank ever holds more than its share of them, and what travels is three numbers a token, 98
# KB. Vocabularies are padded until each rank has as many rows; Megatron-LM pads to 128 rows a rank, or a
# multiple.
#
# ## 5 · Splitting the sequence
#
# Norms, dropout and residuals are not cut by tensor parallelism: each rank does them for all tokens and keeps
# all their activations. **Sequence parallelism** (V. Korthikanti et al., 2022) cuts these by *tokens*. In
# front of the column-parallel matrix an all-gather brings all tokens together; behind the row-parallel one a
# reduce-scatter adds up and leaves each rank its tokens. These two replace the all-reduce.
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
# **See.** What a layer keeps for its backward pass. By the paper's count it is 34 bytes for each token and
# unit of width, in 16 bits and with no scores stored (lab 12): 24 between the cut matrices, 10 for norms,
# dropout and inputs.

# %%
kept = {
    "tensor parallel": [(p, 10 + 24 / p) for p in (1, 2, 4, 8)],
    "and sequence parallel": [(p, 34 / p) for p in (1, 2, 4, 8)],
}
picture = gpulab.plot.lines(
    kept,
    "ranks",
    "bytes kept a token and unit of width",
    "Ten bytes stay on each rank until the tokens are cut, too: on 8 ranks three quarters of all (derived).",
    log_x=True,
)
picture.axes.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"])
picture.axes.minorticks_off()
picture

# %% [markdown]
# **Why.** A ring all-reduce *is* a reduce-scatter and an all-gather: no more bytes travel. But norms and dropout
# keep 1/p on each rank, and no token is computed twice. One trap: each rank's scale and bias of the norm see other
# tokens, so their gradients must be summed over the ranks; the columns' and rows' must not.
#
# ## 6 · Keys and values go round
#
# With a million tokens one layer's attention is too much for a GPU. **Context parallelism** cuts all of
# the model by tokens; only attention needs other ranks' keys and values. **Ring
# attention** (H. Liu et al., 2023): each rank keeps its queries and p − 1 times passes a block of keys and
# values on while it uses it. Nobody holds more than two.
#
# Lab 12's online softmax joins the blocks: for each query keep the largest score m, the sum s of exp(score − m), and the
# weighted sum o of values. If a block raises m, multiply old s and o by exp(old m − new m). The output is o / s.
#
# `dist.send` waits for its receiver; if all ranks send first, all wait. `dist.isend` returns at once a work with
# `.wait()`.
#
# **Do.** Write `ring(q, k, v)`: attention over all tokens, without a mask, for this rank's queries. All three
# are (tokens / ranks × width), one head; scores are divided by √width. Only sends and receives are allowed.
# **Budget:** p − 1 steps; in each a rank sends one block, keys and values in one message. About 20 lines.


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
# **See.** The messages of a run, from the network's record:

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
# The check sees what travels, not what you keep: gathering all blocks and then computing would pass. On a GPU
# that would defeat the purpose.
#
# When does the computing hide the sending? For c tokens a rank and a head of d numbers, a round is 4·c²·d
# FLOPs and a message of 4·c·d bytes (keys and values in 16 bits). So c must be at least FLOPs per second over
# bytes per second:

# %%
rate = float(hardware.find("H100").peak("float16", tensor=True))
for link in ("NVLink 4", "InfiniBand NDR"):
    print(
        f"{link:15}at least {rate / float(hardware.link(link).per_direction):6,.0f} tokens a rank, at an H100's peak"
    )

# %% [markdown]
# Where g query heads share keys (lab 12), a message is for g times as much work, and c may be g times as small.
#
# A language model masks the future: a query sees only keys before it. The ring is the same, but blocks above
# the diagonal need no work.
#
# **Predict.** Four ranks with consecutive tokens, causal mask. How many times the work of the first rank has
# the last one?

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
    """Pairs of a query and a key that a causal mask leaves to the rank with these tokens."""
    return sum(token + 1 for token in tokens)


found = {f"consecutive, rank {r}": pairs(straight[r]) for r in range(RANKS)}
gpulab.predict("parallel.causal", measured=found["consecutive, rank 3"] / found["consecutive, rank 0"])
(found["folded, every rank"],) = {pairs(tokens) for tokens in folded}
gpulab.plot.bars(
    found,
    "pairs of a query and a key",
    caption="With consecutive tokens all wait for the last rank; folded, each has the mean.",
)

# %% [markdown]
# **Why.** The ring waits for the busiest rank in each round. *Folded* (others say zigzag), rank r has the r-th
# piece from the front and the r-th from the back of 2 p pieces: all have the same work. Llama 3's trainers fold
# so, but gather all keys and values at once instead of passing them round: with grouped heads they are small
# (Grattafiori et al., 2024, section 3.3). Another way is DeepSpeed-Ulysses: an all-to-all turns a cut by
# tokens into a cut by heads, attention runs on whole sequences, and another all-to-all turns it back; it
# needs at least p heads.
#
# ## Detective · The layer that grows with the ranks
#
# A colleague's MLP with biases. "I tested it on four ranks against one process: equal up to rounding. After a
# day of training on four ranks I loaded the checkpoint on one, and the loss is different. Is it the
# checkpoint?"


# %%
def theirs(x, a, a_bias, b, b_bias):
    hidden = F.gelu(x @ a + a_bias)
    y = hidden @ b + b_bias
    dist.all_reduce(y)
    return y


def their_test(trained):
    """The layer on this world, with fresh biases (zeros) or trained ones."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    x, a, b, _ = whole_layer()
    numbers = torch.Generator().manual_seed(2)
    a_bias, b_bias = (trained * torch.randn(n, generator=numbers) for n in (HIDDEN, WIDTH))
    return theirs(x, a.chunk(ranks, 1)[rank], a_bias.chunk(ranks)[rank], b.chunk(ranks, 0)[rank], b_bias)


one, four = distributed.run(their_test, 1, 0.0)[0], distributed.run(their_test, 4, 0.0)[0]
print(f"fresh weights, 4 ranks against 1: off by {float((four - one).abs().max()):.1g}")

# %% [markdown]
# **Do.** Find the cause with numbers: `their_test` takes how large the biases are. Then write `biased(x, a,
# a_bias, b, b_bias)`, right on any number of ranks. `x` and `b_bias` are the same on all, the others are this
# rank's. **Budget:** one all-reduce. About 4 lines. The first cell is free.

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
# In three to five sentences: what was wrong, why did the colleague's test not see it, and which number of
# your own experiment shows it? What would have happened to the loss on one rank, and why did training on four
# ranks work all the same? A person reads this: 1 point for the cause, 1 point for a number that you measured.

# %% [markdown] nbgrader={"grade": true, "grade_id": "biased-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** The bias of the row-parallel layer is added on each rank before the all-reduce, so it is
# counted once for each rank, four times here. Fresh biases are zero, and four times zero is zero: the test
# could not see it. With `their_test` at 1.0 the output on four ranks differs from that on one by exactly
# three times `b_bias` (4 − 1), up to 8.2. On four ranks training still works, because the optimizer finds a
# bias of a quarter of what it should be; loaded on one rank it is then four times too small.
#
# **1 point** (cause without a number): The bias is added before the all-reduce, so it is added four times.
#
# **0 points:** The checkpoint was cut wrongly. Or: all-reduce rounds differently on four ranks.

# %% [markdown]
# ## Beyond · Blocks that nobody needs
#
# Open-ended and ungraded. With a causal mask and consecutive tokens, rank 0's queries need no other block.
# Send each block only to ranks that need it, in as few steps as you can. The figure of merit is the bytes of
# all ranks together, for 4 ranks of 16 tokens of width 16.
#
# | way | bytes |
# |---|---|
# | the full ring | printed below |
# | yours | yours |
# | bound | block r is needed by the p − 1 − r ranks behind it: half of the ring's |

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
# <details><summary>1. Why columns first and rows second?</summary>
#
# Complete columns of the hidden layer can go through GELU, and they are what the rows need. The other order
# needs a sum before GELU.
# </details>
#
# <details><summary>2. Which gradients of a tensor-parallel MLP are all-reduced?</summary>
#
# That of its input, over the tensor group. Those of the weights belong to one rank each.
# </details>
#
# <details><summary>3. Does sequence parallelism save traffic?</summary>
#
# No. An all-gather and a reduce-scatter are as many bytes as the all-reduce that they replace. It saves
# memory.
# </details>
#
# <details><summary>4. What must a rank know for a loss over a cut vocabulary?</summary>
#
# The row's maximum, its sum of exponentials, and the label's logit. No other logit.
# </details>
#
# <details><summary>5. Where does the bias of a row-parallel layer go?</summary>
#
# Behind the all-reduce, once. A column-parallel bias is cut with its columns and added at once.
# </details>

# %%
gpulab.recap("17")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | MLP, attention | columns (or heads), then rows; an all-reduce forward, one backward |
# | a layer | 4 all-reduces of tokens · width · 2 B |
# | bytes a rank sends for a ring all-reduce | 2 (p − 1)/p · size |
# | weights | 1 / p; activations between the cut matrices 1 / p |
# | sequence parallel | all-gather + reduce-scatter for the all-reduce; norm gradients are summed |
# | kept a token and unit of width | 34 B; tensor parallel 10 + 24/p; with sequence parallel 34/p |
# | vocabulary parallel | max, sum of exp, label's logit: 3 numbers a token |
# | ring attention | p − 1 rounds, one block of keys and values each; merge by max, sum, output |
# | its sending is hidden | from FLOP/s ÷ B/s tokens a rank on |
# | causal | fold: piece r from the front and from the back |
# | bias of rows | after the all-reduce |
# | where | inside a node |
#
# ### Claims you will meet, and what is right
#
# - *Tensor parallelism splits the model's layers across GPUs.* It splits each layer; pipelines split the
#   list.
# - *Dropout behind the MLP needs the full hidden layer on each rank.* It needs the full output Y, the sum of
#   the parts. The hidden layer gelu(X A) is never gathered.
# - *Data parallelism replicates weights and activations.* Weights, yes; activations are of different samples.
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
