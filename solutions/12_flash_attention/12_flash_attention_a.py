# ---
# jupyter:
#   gpulab:
#     lab: "12"
#     hours: 3
#     topics: [C12.1, C12.2, C12.3, C12.4, C12.6, C12.8]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 12A · Attention and its bytes
#
# **2.5 to 4 hours.** You need lab 05 (softmax in one pass) and lab 08 (the ledger of a PyTorch program). Part B
# writes the kernels.
#
# Attention lets every token of a text look at every other token. For n tokens, each head computes n² scores. These
# are written to memory and read back, although they live for two operations only. Here you get the same result
# without ever storing them.
#
# By the end, you can
#
# 1. say what attention costs in FLOPs, bytes and memory, and which of these costs FlashAttention changes;
# 2. compute attention on separate parts of the keys and merge the results;
# 3. write attention tile by tile, for logits of any size, rows without a key, and any length;
# 4. visit only the tiles that a mask leaves;
# 5. tell which back end PyTorch's attention uses.

# %%
import math
from functools import cache
from itertools import pairwise

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import gpulab
from gpulab import hardware, plot

gpulab.start("12")

# %% [markdown]
# ## 1 · Attention, and its bytes
#
# ![Attention with all scores in memory: Q times K transposed gives n × n scores, softmax makes weights of them, and weights times V gives the output. The n × n matrices are the large part.](drawings/scores.svg)
#
# Each token sends out a **query** q, and every token j offers a **key** kⱼ to compare it with and a **value** vⱼ to
# return. The **score** q·kⱼ says how well the key fits the query. Softmax turns the scores of a query into weights,
# and the output is the weighted sum of the values. For all queries at once:
#
# > O = softmax(Q·Kᵀ / √d) · V
#
# Why divide by √d? If the numbers in q and k have variance 1, the score q·k, a sum of d products, has variance d. The
# factor 1/√d brings it back to 1, where softmax has a gradient. A model computes several **heads** of attention at
# once, each with its own d numbers per token (64 to 128). Heads are independent, so programs treat them as a batch
# dimension.
#
# In this lab **q comes scaled**: it is already divided by √d when your function receives it. Do not scale it again.
# (Dividing the n·d numbers of the queries costs less than dividing n·m scores.) From here on, S denotes the scores
# and P their softmax, for n queries and m keys.
#
# **Predict.** Take float32, n = m = 1,024 and d = 64. How many MB do the three operations (product, softmax, product)
# move in total, if each reads its inputs from memory and writes its output there?

# %%
gpulab.predict("attention.eager_bytes", ...)


# %%
def eager(q, k, v):
    return torch.softmax(q @ k.t(), dim=1) @ v


torch.manual_seed(12)
D = 64
q, k, v = torch.randn(1024, D) / math.sqrt(D), torch.randn(1024, D), torch.randn(1024, D)
in_three = gpulab.profile(eager, q, k, v)
for entry in in_three.entries:
    print(f"{entry.op:10}{entry.bytes / 1e6:8.2f} MB moved{entry.flops / 1e6:10.1f} MFLOP")
print(
    f"in all    {in_three.bytes / 1e6:8.2f} MB moved; at most {in_three.peak / 1e6:.2f} MB held beyond q, k and v"
)

# %% [markdown]
# **See.** How many of these bytes belong to S and P?

# %% jupyter={"source_hidden": true}
scores_alone = 4 * 4 * 1024 * 1024  # S and P, each written and read, 4 bytes a number
plot.bars(
    {"S and P": scores_alone / 1e6, "q, k, v and O": (in_three.bytes - scores_alone) / 1e6},
    "MB moved",
    caption=f"S and P are {100 * scores_alone / in_three.bytes:.0f} % of all bytes that three operations move.",
)

# %% [markdown]
# **Why.** The inputs and the output are only 1 MB together. All other bytes travel between the operations. Fusing
# neighbouring operations (lab 05) does not help directly, because softmax needs a whole row of scores before its
# first weight is final, and a row is as long as the text.
#
# ## 2 · When attention dominates
#
# Is attention the expensive part of a transformer? In a transformer of width H, the linear layers have 12·H² weights:
# 4·H² in attention's projections and 8·H² in the feed-forward network. Each weight costs a token 2 FLOPs, so the
# linear layers take 24·H² FLOPs per token. Computing the token's scores over n keys and using them takes another
# 4·n·H FLOPs.
#
# **Predict.** H = 768, as in GPT-2. From which n onwards do the scores cost more than the linear layers?

# %%
gpulab.predict("attention.crossover", ...)

# %% jupyter={"source_hidden": true}
lengths = [2**i for i in range(7, 18)]
plot.lines(
    {
        f"H = {width:,}": [(n, 100 * 4 * n * width / (4 * n * width + 24 * width**2)) for n in lengths]
        for width in (768, 4096, 12288)
    },
    "n, keys of each query",
    "share of FLOPs, %",
    "The share of scores and their use in a layer's FLOPs (derived): half at n = 6·H.",
    log_x=True,
)

# %% [markdown]
# **Why.** The costs are equal where 4·n·H = 24·H², at n = 6·H. Below that length the linear layers cost more, so
# "attention is the bottleneck because it is quadratic" holds only for long texts. With a causal mask half of the
# pairs disappear, and the crossover moves to 12·H. Bytes and memory are another matter: at n = 65,536 the scores of
# one head in float32 take 4 · 65,536² bytes, or 17 GB, whatever the width.
#
# ## 3 · Parts that merge
#
# ![The keys are cut in two parts. Each part gives an output and the logarithm of its sum of exponentials; the merged output weighs the two by these.](drawings/parts_merge.svg)
#
# You need not store all scores if you can handle a part of the keys at a time and merge the results. For the softmax
# of a row, lab 05 kept a pair (m, s): the largest logit so far, and the sum of exp(x − m). Attention adds a third
# item, the output so far. For a part of the keys, let `out` be its attention output, and let `lse` = m + log s be the
# **log-sum-exp** of its scores. In the merged result, part p has the weight exp(lseₚ):
#
# > out = Σ exp(lseₚ) · outₚ / Σ exp(lseₚ), lse = log Σ exp(lseₚ)
#
# So the keys can be cut anywhere: into tiles, among the blocks of a launch, or among GPUs.
#
# **Predict.** One part has lse 2 and out 1, another has lse 2 + log 3 and out 5. What is out after merging them?

# %%
gpulab.predict("attention.merge", ...)

# %% [markdown]
# Merging is useful in practice. A model that generates one token has a single query and a long cache of keys. One
# query gives a GPU too few rows, so the keys are divided among blocks and the results merged (**split-KV**,
# "Flash-Decoding"; T. Dao et al., 2023). Several GPUs can also hold a part of the keys each and pass the parts round:
# **ring attention** (H. Liu et al., 2023).
#
# **Do.** Write `merge(outs, lses)`, which merges the results of several parts.
#
# - Input: `outs` (parts, n, d) and `lses` (parts, n). The lses reach ±1,000. Where a part has no key for a row, its
#   out is 0 and its lse is −∞.
# - Output: `out` (n, d) and `lse` (n). A row without any key gets out 0 and lse −∞.
# - **Budget:** at most 4/3 of the bytes that reading all parts once takes. This leaves no room for a tensor of their
#   size.
# - About 7 lines. Useful: `torch.where`, `clamp`, `torch.bmm`.
#
# In all tasks of this part, tensors are float32, and full marks need correct results within the budget. You may use
# PyTorch's views and copies, arithmetic, sums, maxima, `logsumexp` and matrix products. `softmax` and
# `scaled_dot_product_attention` are refused, because they are what you write.


# %% nbgrader={"grade": false, "grade_id": "merge", "locked": false, "schema_version": 3, "solution": true, "task": false}
def merge(outs, lses):
    ### BEGIN SOLUTION
    largest = lses.amax(0)
    largest = torch.where(largest > -math.inf, largest, 0.0)
    weights = torch.exp(lses - largest)
    whole = weights.sum(0)
    shares = weights / whole.clamp(min=1)
    out = torch.bmm(shares.t().unsqueeze(1), outs.transpose(0, 1)).squeeze(1)
    return out, largest + torch.log(whole)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "merge-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("attention.merge", merge)


# %%
def by_parts(parts):
    """The attention of q on k and v, from parts of the keys that do not know of each other."""
    scores = [q @ keys.t() for keys in k.chunk(parts)]
    outs = [torch.softmax(s, dim=1) @ values for s, values in zip(scores, v.chunk(parts), strict=True)]
    return merge(torch.stack(outs), torch.stack([torch.logsumexp(s, dim=1) for s in scores]))


gpulab.need(merge)
whole = eager(q, k, v)
for parts in (1, 2, 8, 64):
    print(
        f"{parts:3} parts: largest difference from the whole {(by_parts(parts)[0] - whole).abs().max():.1e}"
    )

# %% [markdown]
# **Why.** The differences are rounding errors.
#
# ## 4 · A tile at a time
#
# ![A tile at a time: a tile of queries stays, and the tiles of keys and values pass by. Of the scores only one tile exists at any moment, and the running maximum, sum and output are updated after each.](drawings/tiles.svg)
#
# Merging after each tile would divide the output by a sum, only to multiply it by that sum again. It is cheaper to
# keep the output **undivided**, together with m and s. A tile of scores with maximum m′ then updates all three:
#
# > larger = max(m, m′), old = exp(m − larger), weights = exp(scores − larger)
#
# > s ← s · old + Σ weights, out ← out · old + weights · V, m ← larger
#
# After the last tile, a single division by s ends the row. Here is a row worked by hand, with scores 0 and log 3 in
# the first tile, log 6 in the second, and values 1, 2 and 4:
#
# | after tile | m | old | weights | s | out |
# |---|---|---|---|---|---|
# | 1 | log 3 | exp(−∞) = 0 | 1/3 and 1 | 1/3 + 1 = 4/3 | 1/3 · 1 + 1 · 2 = 7/3 |
# | 2 | log 6 | exp(log 3 − log 6) = 1/2 | 1 | 4/3 · 1/2 + 1 = 5/3 | 7/3 · 1/2 + 1 · 4 = 31/6 |
#
# So out / s = 3.1, the same as for all keys at once: (1 · 1 + 3 · 2 + 6 · 4) / (1 + 3 + 6).
#
# A loop over tiles of queries, with a loop over tiles of keys inside it, is the forward pass of **FlashAttention**
# (T. Dao et al., 2022), in the loop order of its second version.
#
# **Do.** Write `tiled(q, k, v, tile)` with these two loops.
#
# - Input: q (n, d), already scaled; k and v (m, d). n and m need not be multiples of `tile`. Logits reach thousands
#   (±1,000s).
# - Output: `out` (n, d) and `lse` (n). A single key must work, too. With no key, out is 0 and lse −∞.
# - **Budget:** memory for the results and a few tiles; no tensor of n × m or n × tile numbers.
# - About 18 lines.


# %% nbgrader={"grade": false, "grade_id": "tiled", "locked": false, "schema_version": 3, "solution": true, "task": false}
def tiled(q, k, v, tile):
    ### BEGIN SOLUTION
    outs, lses = [], []
    for rows in q.split(tile):
        m = torch.full((len(rows),), -math.inf)
        s = torch.zeros(len(rows))
        out = torch.zeros(len(rows), v.shape[1])
        for first in range(0, len(k), tile):
            scores = rows @ k[first : first + tile].t()
            larger = torch.maximum(m, scores.amax(1))
            weights = torch.exp(scores - larger[:, None])
            old = torch.exp(m - larger)
            s = s * old + weights.sum(1)
            out = out * old[:, None] + weights @ v[first : first + tile]
            m = larger
        outs.append(out / s.clamp(min=1)[:, None])
        lses.append(m + torch.log(s))
    return torch.cat(outs), torch.cat(lses)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "tiled-check", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
gpulab.check("attention.tiled", tiled)

# %% [markdown]
# **See.** How much memory do the three operations and your `tiled` hold at their worst moment? The next cells run
# them on tensors without contents (**fake tensors**, lab 08).

# %%
fake = FakeTensorMode()


@cache
def on_shapes(fn, n, *more):
    """The ledger of fn on n queries and n keys."""
    with fake:
        return gpulab.profile(fn, *(torch.empty(n, D) for _ in range(3)), *more)


def at_lengths(picture, sizes):
    """The same picture with a mark at each length on its axis."""
    picture.axes.set_xticks(sizes, [f"{n:,}" for n in sizes])
    picture.axes.minorticks_off()
    return picture


sizes = [128, 256, 512, 1024]

# %% jupyter={"source_hidden": true}
gpulab.need(tiled)
held = {
    "three operations": [(n, on_shapes(eager, n).peak / 1e6) for n in sizes],
    "tiles of 64": [(n, on_shapes(tiled, n, 64).peak / 1e6) for n in sizes],
}
at_lengths(
    plot.lines(
        held,
        "n, queries and keys",
        "memory beyond q, k, v, in MB",
        "Twice the length takes four times the memory in three operations; with tiles twice for the results, "
        "and the tiles stay as they are (counted).",
        log_x=True,
        log_y=True,
    ),
    sizes,
)

# %%
gpulab.need(tiled)
for n in (512, 1024):
    report = on_shapes(tiled, n, 64)
    print(f"tiles of 64, n = {n:5,}: {report.peak / 1e6:.2f} MB held, {report.flops / 1e6:.0f} MFLOP")

# %% [markdown]
# **Why.** With tiles, memory is linear in n, plus a constant for the tiles. The arithmetic is not: every score is
# still computed, which takes 4·n·m·d FLOPs, and rescaling adds a little more. Here each PyTorch operation still
# writes its tile to memory. A kernel keeps the tile on the chip, as you will see in part B.
#
# In exact arithmetic you could subtract any m, because it cancels. Suppose that in float32 you subtracted each tile's
# own maximum m′. The sum so far would then be multiplied by exp(m − m′), which is infinite as soon as m lies 88.7
# above m′, and infinity over infinity is NaN. The maximum *so far* never falls, so no factor is above 1.
#
# ## Detective · One part less
#
# A prompt holds eight documents. Which of them does an answer rest on? One way to find out is to compute attention
# without each of them in turn. A colleague has the eight outputs and lses already. Merging seven of the outputs,
# eight times over, seems wasteful, so `steady` merges all eight once and then takes one away:
#
# > out without p = (Σ weightⱼ · outⱼ − weightₚ · outₚ) / (Σ weightⱼ − weightₚ)
#
# In exact arithmetic that is right. Its test passes.


# %%
def steady_first_try(outs, lses):
    largest = lses.amax(0)
    weights = torch.exp(lses - largest)
    weighted = weights[:, :, None] * outs
    rest = weights.sum(0) - weights
    out = (weighted.sum(0) - weighted) / rest[:, :, None]
    return out, largest + torch.log(rest)


def documents(scale=1, raised=0):
    """Outputs and log-sum-exps of eight documents of 128 keys, and in float64 the attention without each.

    All scores are multiplied by `scale`; then those of the first document are raised.
    """
    scores = scale * (q[:64] @ k.t()).double()
    scores[:, :128] += raised
    parts, values = scores.chunk(8, dim=1), v.double().chunk(8)
    outs = [torch.softmax(s, dim=1) @ x for s, x in zip(parts, values, strict=True)]
    lses = [torch.logsumexp(s, dim=1) for s in parts]
    exact = []
    for p in range(8):
        others = torch.cat(parts[:p] + parts[p + 1 :], dim=1)
        exact.append(torch.softmax(others, dim=1) @ torch.cat(values[:p] + values[p + 1 :]))
    return torch.stack(outs).float(), torch.stack(lses).float(), torch.stack(exact)


def error(fn, outs, lses, exact):
    """For each document: how many numbers without it are not finite, and the largest error of the others."""
    made = fn(outs, lses)[0]
    for p, (got, wanted) in enumerate(zip(made, exact, strict=True)):
        fine = got.isfinite()
        largest = (got - wanted)[fine].abs().max() if fine.any() else math.nan
        print(
            f"without document {p}: {(~fine).sum():5} not finite, largest error of the others {largest:.1e}"
        )


error(steady_first_try, *documents())

# %% [markdown]
# **Do.** Find out which inputs break this function, and which of its eight results are then wrong. The next cell is
# free for your experiments. Then write a `steady(outs, lses)` that works.
#
# - Input: `outs` (parts, n, d) and `lses` (parts, n), as for `merge`. There are two parts or more, and all lses are
#   finite, up to ±1,000.
# - Output: `out` (parts, n, d) and `lse` (parts, n). Entry p is the result without part p.
# - **Budget:** no more bytes than the first try moves.
# - About 8 lines.

# %%
# Your experiments: error(steady_first_try, *documents(…)), with other scales, or scores raised.


# %% nbgrader={"grade": false, "grade_id": "steady", "locked": false, "schema_version": 3, "solution": true, "task": false}
def steady(outs, lses):
    ### BEGIN SOLUTION
    own = torch.eye(len(outs), dtype=torch.bool)[:, :, None]
    others = torch.where(own, -math.inf, lses)  # [p, j]: what j weighs in result p
    largest = others.amax(1)
    weights = torch.exp(others - largest[:, None])
    whole = weights.sum(1)
    shares = weights / whole[:, None]
    out = torch.bmm(shares.permute(2, 0, 1), outs.transpose(0, 1)).transpose(0, 1)
    return out, largest + torch.log(whole)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "steady-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("attention.steady", steady)

# %% [markdown]
# **See.** The scores of the first document rise. What is the error of the result without it?

# %%
gpulab.need(steady)
curves = {"first try": [], "mended": []}
for name, fn in (("first try", steady_first_try), ("mended", steady)):
    for raised in range(0, 31, 2):
        outs, lses, exact = documents(raised=raised)
        got = fn(outs, lses)[0][0]
        if not got.isfinite().all():
            print(f"{name}, raised by {raised}: {(~got.isfinite()).sum():,} of {got.numel():,} not finite")
            break
        curves[name].append((raised, (got - exact[0]).abs().max().item()))
plot.lines(
    curves,
    "how much the scores of the first document are raised",
    "largest error without it",
    "Taking away costs a digit for each 2.3 (counted). The line stops where results are not finite.",
    log_y=True,
)

# %% [markdown]
# **Why.** A float32 sum keeps 24 bits, counted from its largest term. What the other terms add below those bits is
# lost, and no subtraction brings it back. If one part weighs e^16.6 = 2²⁴ times as much as all others, the rest is 0
# after the subtraction, and 0 / 0 is NaN. Float64 moves that point to e^36.7. The results *without another document*
# stay right, because they keep the heavy part.
#
# Maxima and rounded sums can be merged, but they cannot be taken apart. Merging the others costs no more: for each
# row, all results together are one matrix product: a table of weights, with zeros on its diagonal, times the outputs.
#
# ## 5 · Tiles and traffic
#
# How many bytes does tiling save? On a GPU a block takes R queries, keeps them and their output on the chip, and
# streams all keys and values past them. So q is loaded once in total, but k and v **once for each block**. With the
# output and the n log-sum-exps that are stored, this makes
#
# > numbers moved = 2·n·d + n + ⌈n / R⌉ · 2·m·d
#
# **Predict.** How many MB does the attention of section 1 move with R = 128?

# %%
gpulab.predict("attention.flash_bytes", ...)

# %% [markdown]
# Your `tiled` shows which tiles are needed and when. If you add up the tiles of k and v that its products take, you
# know what a kernel with the same loops has to load.


# %%
def streamed(n, tile):
    """Bytes that a kernel with the loops of `tiled` moves: the tiles of k and v, and q, out and lse once."""
    products = [entry for entry in on_shapes(tiled, n, tile).entries if entry.matrix_flops]
    return 4 * (sum(math.prod(entry.shapes[-1]) for entry in products) + 2 * n * D + n)


gpulab.need(tiled)
for n in (512, 1024):
    print(f"{n:5,} queries, tiles of 128: {streamed(n, 128) / 1e6:.2f} MB")
curves = {"three operations": [(n, on_shapes(eager, n).bytes / 1e6) for n in sizes]}
counted = {32: [(n, streamed(n, 32) / 1e6) for n in sizes[:3]]}  # 1,024 would take long: 1,024 tiles
counted[128] = [(n, streamed(n, 128) / 1e6) for n in sizes]
for rows in counted:
    curves[f"R = {rows}"] = [(n, 4 * (2 * n * D + n + -(-n // rows) * 2 * n * D) / 1e6) for n in sizes]
picture = plot.lines(
    curves,
    "n, queries and keys",
    "MB moved",
    "Dots: counted. Lines for R: the formula. All grow with n²; R = 128 saves most, R = 32 nothing.",
    log_x=True,
    log_y=True,
)
for points in counted.values():
    picture.axes.plot(*zip(*points, strict=True), "o", color=plot.INK, markersize=5)
at_lengths(picture, sizes)

# %% [markdown]
# **Walk over the tiles.** This walk has 512 queries and 512 keys, in tiles of 64. Watch what stays on the chip for a
# whole row of tiles, and what is loaded again with every tile.

# %%
from gpulab.plot.moving import AttentionWalk

AttentionWalk(queries=512, keys=512, width=64, tile=(64, 64))

# %% [markdown]
# **Why.** The traffic is quadratic, too, but divided by R: for n = m its largest term is (2·d/R) · n² numbers. The
# chip limits R, because R rows of q and of the output, with a tile of keys and one of values, must fit into M
# numbers. So R grows like M / d, and the traffic like **n²·d² / M** (Dao et al., 2022, theorem 2). Three operations
# move 4·n² numbers for the scores. With d = 64 blocks of 32 queries would save nothing: 2·d/R = 4. FlashAttention
# wins as long as d² is much less than M. Only the tile of *queries* counts, so the tile of keys may be small.
#
# **See.** How large is d² compared with M on an A100? Kernels keep their tiles in float16.

# %%
a100 = hardware.find("A100")
numbers = a100.capability.shared_per_block_optin // 2  # float16
for d in (64, 128, 256):
    print(
        f"d = {d:3}: d² is {d * d:6,}, shared memory of a block holds {numbers:,}: {100 * d * d / numbers:.0f} %"
    )

# %% [markdown]
# **Why.** The traffic is proportional to n² times this percentage. The wider a head is, the fewer queries fit on the
# chip, and the less a tile saves.
#
# ## 6 · Exact
#
# FlashAttention is no approximation: it computes the same sums in another order. But rounding depends on the order,
# so "exact" does not mean the same bits.
#
# **See.** Errors of both versions against float64, as fractions of the largest output.


# %%
def distance(got, exact):
    return ((got - exact).abs().max() / exact.abs().max()).item()


gpulab.need(tiled)
errors = {}
for said, scale in (("logits of ±4", 1), ("logits of ±1,000", 250)):
    for n in sizes:
        inputs = scale * q[:n], k[:n], v[:n]
        exact = eager(*(x.double() for x in inputs))
        errors.setdefault(f"three operations, {said}", []).append((n, distance(eager(*inputs), exact)))
        errors.setdefault(f"tiles of 64, {said}", []).append((n, distance(tiled(*inputs, 64)[0], exact)))
at_lengths(
    plot.lines(
        errors,
        "n, queries and keys",
        "largest error over largest output",
        "Tiles are as exact as three operations. Large logits are hard for both: their lines lie on each other.",
        log_x=True,
        log_y=True,
    ),
    sizes,
)

# %% [markdown]
# **Why.** Float32 numbers near 1,000 are 6·10⁻⁵ apart, so a logit of 1,000 is known no better than that. The
# exponential turns an absolute error of the logit into a relative error of its weight. No order of summation can cure
# that.
#
# ## 7 · Tiles that need no visit
#
# Many models restrict which tokens a token sees. A **causal** mask lets it see itself and the tokens before it. A
# **sliding window** w (Mistral 7B: 4,096; A. Jiang et al., 2023) leaves the last w of those, including itself. Scores
# that are computed and then masked cost as much as others. But masks that form stripes leave whole tiles empty, and
# an empty tile can be skipped.
#
# With a **cache** there are more keys than queries. The last query belongs to the last key, so query i is at position
# i + m − n. (A mask built with `triu(diagonal=1)` forgets that shift.)
#
# **Predict.** With n = m and a causal mask, take a map of 8 by 8 tiles, 64 in all. How many of them need a visit?

# %%
gpulab.predict("attention.tiles", ...)


# %%
def counted_pairs(n, m, tile, window):
    """The share of pairs that are seen, for each tile."""
    behind = np.arange(n)[:, None] + m - n - np.arange(m)
    seen = (behind >= 0) & (behind < window)
    return seen.reshape(n // tile, tile, m // tile, tile).mean(axis=(1, 3))


plot.tile_map(counted_pairs(64, 64, 8, 64), "tile of queries", "tile of keys", title="causal")

# %%
plot.tile_map(
    counted_pairs(32, 64, 8, 20), "tile of queries", "tile of keys", title="half in a cache, window 20"
)

# %% [markdown]
# **Do.** Write `causal(q, k, v, window, tile)`, which skips the empty tiles.
#
# - Input: q (n, d), already scaled; k and v (m, d). Query i sees key j if i + m − n − window < j ≤ i + m − n.
#   Without a window, `window` is 1,000,000, which leaves out no key.
# - Output: `out` (n, d) and `lse` (n). A row that sees nothing (possible if n > m) has out 0 and lse −∞.
# - **Budget:** the FLOPs of the tiles that hold a visible pair, where tiles start at multiples of `tile`.
# - About 25 lines, 18 of them from `tiled`. Useful: `torch.arange`, and `torch.where` or `masked_fill`.


# %% nbgrader={"grade": false, "grade_id": "causal", "locked": false, "schema_version": 3, "solution": true, "task": false}
def causal(q, k, v, window, tile):
    ### BEGIN SOLUTION
    outs, lses = [], []
    for first in range(0, len(q), tile):
        rows = q[first : first + tile]
        start = first + len(k) - len(q)
        m = torch.full((len(rows),), -math.inf)
        s = torch.zeros(len(rows))
        out = torch.zeros(len(rows), v.shape[1])
        for key in range(max(0, start - window + 1) // tile * tile, start + len(rows), tile):
            keys = k[key : key + tile]
            behind = start + torch.arange(len(rows))[:, None] - (key + torch.arange(len(keys)))
            scores = torch.where((behind >= 0) & (behind < window), rows @ keys.t(), -math.inf)
            larger = torch.maximum(m, scores.amax(1))
            shift = torch.where(larger > -math.inf, larger, 0.0)
            weights = torch.exp(scores - shift[:, None])
            old = torch.exp(m - shift)
            s = s * old + weights.sum(1)
            out = out * old[:, None] + weights @ v[key : key + tile]
            m = larger
        outs.append(out / s.clamp(min=1)[:, None])
        lses.append(m + torch.log(s))
    return torch.cat(outs), torch.cat(lses)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "causal-check", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
gpulab.check("attention.causal", causal)

# %%
gpulab.need(tiled, causal)
all_pairs = on_shapes(tiled, 1024, 64)["matrix_flops"]
for name, window in (("causal", 1024), ("window of 256", 256), ("window of 64", 64)):
    flops = on_shapes(causal, 1024, window, 64)["matrix_flops"]
    print(f"{name:14} {100 * flops / all_pairs:5.1f} % of the products' FLOPs over all pairs")

# %% [markdown]
# **Why.** Only tiles that the edge of the mask crosses need a mask at all. Real kernels therefore have two loops, and
# the long one contains no comparison. A window makes attention linear in n. Information from further back still
# arrives, because each layer passes it on by up to one window.
#
# ## 8 · Fewer heads of keys
#
# When a model writes, it makes one token at a time. The keys and values of all earlier tokens stay in a **KV cache**
# (lab 19). Each step reads the whole cache for one query per head, and spends only 2 FLOPs on each number it reads.
# So bytes decide how long a step takes.
#
# To read fewer bytes, **grouped-query attention** (GQA; J. Ainslie et al., 2023) lets several query heads share one
# head of keys and values. If all query heads share a single one, it is **multi-query attention** (MQA; N. Shazeer,
# 2019).
#
# **Predict.** Llama 3 8B has 32 layers, each with 32 query heads and 8 heads of keys and values, of 128 numbers each
# (A. Grattafiori et al., 2024, table 3). Let a number have 16 bits. After 8,192 tokens, how many GB does a step read
# from the cache?

# %%
gpulab.predict("attention.cache", ...)

# %% [markdown]
# **Do.** Write `grouped(q, k, v)`, in which g query heads share each key head.
#
# - Input: q (query heads, n, d), already scaled; k and v (key heads, m, d). Query heads 0 … g − 1 use key head 0, the
#   next g use key head 1, and so on.
# - Output: the attention output, in q's shape. Here `torch.softmax` is allowed.
# - **Budget:** k and v are read once; queries and the output may be copied.
# - About 4 lines.


# %% nbgrader={"grade": false, "grade_id": "grouped", "locked": false, "schema_version": 3, "solution": true, "task": false}
def grouped(q, k, v):
    ### BEGIN SOLUTION
    heads, n, d = q.shape
    together = q.reshape(len(k), heads // len(k) * n, d)
    weights = torch.softmax(torch.bmm(together, k.transpose(1, 2)), -1)
    return torch.bmm(weights, v).reshape(heads, n, d)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "grouped-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("attention.grouped", grouped)

# %%
gpulab.need(grouped)
step = {}
with fake:
    for key_heads in (32, 8, 1):
        cache = [torch.empty(key_heads, 8192, 128, dtype=torch.float16) for _ in range(2)]
        step[f"{key_heads} key head{'s' * (key_heads > 1)}"] = gpulab.profile(
            grouped, torch.empty(32, 1, 128, dtype=torch.float16), *cache
        )
plot.bars(
    {name: report.bytes / 1e6 for name, report in step.items()},
    "MB moved by one layer for one token",
    caption="Fewer heads of keys, fewer bytes: nearly all that moves is the cache.",
)

# %% [markdown]
# **Why.** A shared key head is read once for its whole group. If keys are first repeated with `repeat_interleave`, as
# many bytes are read as with 32 key heads, and the copy comes on top.
#
# ## 9 · Many lengths in one batch
#
# A batch is a rectangle, but texts differ in length. **Padding** fills them up with tokens that are masked but still
# computed. A **varlen** kernel takes all sequences end to end, with a list of where each starts (`cu_seqlens`). A
# block then belongs to one sequence and stops at its end.
#
# **Predict.** Sequences of 1,024, 256 and 64 tokens are padded to 1,024. What percentage of the computed pairs is
# wasted?

# %%
gpulab.predict("attention.packed", ...)


# %%
def varlen(q, k, v, starts, tile):
    """Attention within each sequence; sequence i is rows starts[i] … starts[i + 1] − 1."""
    parts = [slice(a, b) for a, b in pairwise(starts)]
    return torch.cat([tiled(q[part], k[part], v[part], tile)[0] for part in parts])


gpulab.need(tiled)
starts = [0, 256, 320, 336]  # a smaller batch of the same shape: 256, 64 and 16 tokens
batch = q[:336], k[:336], v[:336]
packed = gpulab.profile(varlen, *batch, starts, 32)["matrix_flops"]
padded = 3 * gpulab.profile(tiled, q[:256], k[:256], v[:256], 32)["matrix_flops"]
print(
    f"packed {packed / 1e6:.1f} MFLOP, padded {padded / 1e6:.1f} MFLOP: {100 * (1 - packed / padded):.0f} % in vain"
)

# %% [markdown]
# **Why.** A row's sequence decides which tiles exist for it. The result is a mask with blocks along the diagonal,
# which again leaves stripes of whole tiles.
#
# ## 10 · PyTorch's own
#
# `torch.nn.functional.scaled_dot_product_attention` (**SDPA**) chooses among **back ends**:
#
# | back end | what it is |
# |---|---|
# | `MATH` | separate operations |
# | `FLASH_ATTENTION` | PyTorch's FlashAttention kernel |
# | `EFFICIENT_ATTENTION` | the kernel from xFormers, which also takes float32 and any mask |
# | `CUDNN_ATTENTION` | cuDNN's attention |
#
# SDPA scales by 1/√d itself. It silently skips a back end that the machine, the dtype or the mask rules out.
# `sdpa_kernel` turns that into an error:

# %%
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

where = "cuda" if torch.cuda.is_available() else "cpu"
dtype = torch.float16 if where == "cuda" else torch.float32  # CUDA's flash back end takes 16 bits only
heads = [x[None, None].to(where, dtype) for x in (q * math.sqrt(D), k, v)]
for backend in ("MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION"):
    try:
        with sdpa_kernel([getattr(SDPBackend, backend)]):
            report = gpulab.profile(scaled_dot_product_attention, *heads)
        names = ", ".join(report.by_op)
        print(f"{backend:20}{report.bytes / 1e6:6.1f} MB, {report.peak / 1e6:5.2f} MB held   {names}")
    except RuntimeError as error_there:
        print(f"{backend:20}not here: {str(error_there).splitlines()[0][:60]}…")

# %% [markdown]
# (The ledger counts once what an operation reads and writes, and does not see the tiles inside a fused one. The two
# `mul` of `MATH` are the scaling.)
#
# None of these back ends knows a window. `flex_attention` (J. Dong et al., 2024) takes a mask as a **function** of
# two positions. `create_block_mask` evaluates this function for all pairs once and records which tiles hold a visible
# one. Compiled for a GPU, a kernel visits only those tiles, and compares positions only in tiles that are partly
# visible. Here is the window of 256 from section 7:

# %%
from torch.nn.attention.flex_attention import create_block_mask


def in_window(_batch, _head, query, key):
    return (key <= query) & (query - key < 256)


found = create_block_mask(in_window, None, None, 1024, 1024, device="cpu", BLOCK_SIZE=64)
partly, wholly = int(found.kv_num_blocks.sum()), int(found.full_kv_num_blocks.sum())
print(
    f"{wholly} tiles seen whole and {partly} in part, of {16 * 16}: {100 * (wholly + partly) / 16**2:.1f} % are visited"
)

# %% [markdown]
# This is the share that your `causal` computes. (If it is not compiled, `flex_attention` keeps all scores, and says
# so.)
#
# **Masks speak three languages.** What a mask means depends on where you pass it:
#
# | mask | meaning |
# |---|---|
# | boolean mask of SDPA | True: the pair *takes part* |
# | boolean `key_padding_mask` of `nn.MultiheadAttention` | True: the key is *ignored* |
# | boolean `src_key_padding_mask` of `nn.TransformerEncoder` | True: the key is *ignored* |
# | float mask, in all of them | it is **added** to the scores |
#
# ![The last two of four keys are padding, said three times: to SDPA as true for what takes part, to MultiheadAttention as true for what is ignored, and as numbers that are added to the scores, 0 and minus infinity.](drawings/masks.svg)
#
# So a 1/0 mask of floats hides nothing:

# %%
layer = torch.nn.MultiheadAttention(8, 2, batch_first=True)
tokens = torch.randn(1, 4, 8)
for name, padding in (
    ("True, True at the end", torch.tensor([[False, False, True, True]])),
    ("1.0, 1.0, 0.0, 0.0", torch.tensor([[1.0, 1.0, 0.0, 0.0]])),
    ("True everywhere", torch.ones(1, 4, dtype=torch.bool)),
):
    weights = layer(tokens, tokens, tokens, key_padding_mask=padding)[1][0, 0]
    print(f"{name:24} weights of query 0: {[round(w, 2) for w in weights.tolist()]}")
seen = torch.ones(4, 4, dtype=torch.bool, device=heads[0].device)
seen[0] = False
row = scaled_dot_product_attention(*(x[:, :, :4].float() for x in heads), attn_mask=seen)[0, 0, 0]
print(f"SDPA, a row that sees nothing: {row[:3].tolist()}")

# %% [markdown]
# **Why.** Softmax is not defined for a row without a key. SDPA returns 0, as your `causal` does. The layer returns
# NaN, which then spreads through everything. Padding rows should see at least themselves, or be thrown away.
#
# ## Written answer
#
# "With FlashAttention, attention costs are linear in the length", says a colleague. Which cost is linear, which is
# not, and why? Cite at least two counts of your own runs, each at two lengths. At most 120 words.

# %% [markdown] nbgrader={"grade": true, "grade_id": "linear-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** Memory is linear: with tiles of 64 my run holds 0.32 MB at 512 tokens and 0.58 MB at 1,024, because
# only one tile of scores exists at a time. FLOPs are not linear: all n·m scores are computed, which took 69 and 275
# MFLOP, four times as many at twice the length. Traffic is not linear either: with tiles of 128 the run streams 1.31
# and 4.72 MB, because each block of queries loads all keys. That is less than the 17.8 MB of three operations, but
# only by a factor: it grows in the same order.
#
# **1 point** (the cause without counts): The scores are never stored, so memory is linear, but they are all computed.
#
# **0 points:** It skips scores, or approximates them.

# %% [markdown]
# ## Recap
#
# <details><summary>1. Three operations, 32 heads, n = 8,192, float16: how many bytes do the scores take?</summary>
#
# 32 · 8,192² · 2 = 4.3 GB for S, and as many again for P.
# </details>
#
# <details><summary>2. Half of the keys are on another GPU. What must it send for the results to be merged?</summary>
#
# Its output and its log-sum-exp, which are d + 1 numbers for each query.
# </details>
#
# <details><summary>3. In a row's first tile all keys are masked. What goes wrong in a plain online softmax?</summary>
#
# m stays −∞, and −∞ − (−∞) is NaN.
# </details>
#
# <details><summary>4. n = m = 16,384, window 1,024, tiles of 128. About what share of the tiles is visited?</summary>
#
# The 128 queries of a tile together see 1,024 + 127 keys, which lie in 9 tiles. That is 9 of 128 in a row of tiles:
# 7 %.
# </details>
#
# <details><summary>5. <code>flash_sdp_enabled()</code> returns True. Does your model use FlashAttention?</summary>
#
# It may. The function returns the state of a switch, not the choice that SDPA made. Run your model under
# `sdpa_kernel([SDPBackend.FLASH_ATTENTION])` and see whether it raises an error.
# </details>

# %%
gpulab.recap("12")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | FLOPs of attention, for one head | 4·n·m·d; half of that if the kernel makes use of a causal mask |
# | from which length do scores cost more FLOPs than the linear layers? | n = 6·H |
# | numbers moved by three operations | 4·n·m + 2·n·d + 2·m·d |
# | numbers moved by one kernel with R queries to a block | 2·n·d + n + ⌈n/R⌉ · 2·m·d |
# | memory needed beyond the output | n numbers (the log-sum-exps) |
# | weight of a part when parts are merged | exp(lse) |
# | which maximum to subtract | the largest score so far, never the maximum of the tile |
# | the result without one part | merge the others; never subtract the part from the whole |
# | rows without keys | out 0, lse −∞; guard −∞ − (−∞) and 0/0 |
# | a mask of your own in PyTorch | `flex_attention`, compiled, with a block mask |
# | position of query i when keys are cached | i + m − n |
#
# ### Claims you will meet, and what is right
#
# - *Attention scales quadratically.* Its FLOPs do. Its memory is linear with FlashAttention or SDPA's fused back
#   ends.
# - *FlashAttention has linear complexity.* It has linear memory. FLOPs stay 4·n²·d, and traffic is n²·d²/M.
# - *Attention is the bottleneck of transformers.* In FLOPs it is, but only from n = 6·H onwards.
# - *`torch.backends.cuda.enable_flash_sdp(True)` enables cuDNN's attention.* It allows PyTorch's flash kernel. The
#   switch for cuDNN's is `enable_cudnn_sdp`, or you choose it with `SDPBackend.CUDNN_ATTENTION`.
# - *`src_key_padding_mask=torch.ones(…)` keeps all tokens.* As a boolean mask it ignores all of them. As a float mask
#   it adds 1 to every score, which changes nothing.
# - *Memory-efficient softmax: subtract, exponentiate, divide.* Written as three operations, it holds three tensors of
#   the size of the scores.
#
# ### References
#
# 1. T. Dao, D. Fu, S. Ermon, A. Rudra, C. Ré, "FlashAttention", NeurIPS 2022. https://arxiv.org/abs/2205.14135
# 2. T. Dao, "FlashAttention-2", 2023. https://arxiv.org/abs/2307.08691
# 3. M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018. https://arxiv.org/abs/1805.02867
# 4. M. Rabe, C. Staats, "Self-attention Does Not Need O(n²) Memory", 2021. https://arxiv.org/abs/2112.05682
# 5. J. Ainslie et al., "GQA", EMNLP 2023. https://arxiv.org/abs/2305.13245
# 6. N. Shazeer, "Fast Transformer Decoding: One Write-Head is All You Need", 2019. https://arxiv.org/abs/1911.02150
# 7. H. Liu, M. Zaharia, P. Abbeel, "Ring Attention with Blockwise Transformers", 2023. https://arxiv.org/abs/2310.01889
# 8. J. Dong et al., "Flex Attention: A Programming Model for Generating Optimized Attention Kernels", 2024.
#    https://arxiv.org/abs/2412.05496
# 9. PyTorch documentation, `scaled_dot_product_attention`, `torch.nn.attention.sdpa_kernel`.
#    https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
