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
# **About three hours.** You need lab 05 (softmax in one pass) and lab 08 (the ledger of a PyTorch program).
# Part B writes the kernels.
#
# Attention lets every token look at every other. Its scores, n² numbers for each head, live for two operations.
# Here you make them vanish, and get the same result.
#
# When you are through, you can
#
# 1. say what attention costs in FLOPs, bytes and memory, and which of them FlashAttention changes;
# 2. merge parts of attention that know nothing of each other;
# 3. write attention tile by tile that survives any logits, rows without a key, and any length;
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
# A **query** q asks, **keys** kⱼ answer with a **score** q·kⱼ, softmax turns the scores of a query into weights,
# and the output is the weighted sum of the **values** vⱼ:
#
# > O = softmax(Q·Kᵀ / √d) · V
#
# Numbers of variance 1 give a product of variance d; 1/√d brings it back to 1, where softmax has a gradient. A
# model does this in several **heads** at once, each with d numbers of its own (64 to 128). Heads are
# independent, a batch dimension.
#
# In this lab **q comes scaled**: dividing n·d queries costs less than dividing n·m scores. S are the scores, P
# their softmax; n queries, m keys.
#
# **Predict.** float32, n = m = 1,024, d = 64. How many MB do the three operations move (product, softmax, product),
# each reading its inputs and writing its output?

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
# **See.** Of all bytes, those of S and P.

# %% jupyter={"source_hidden": true}
scores_alone = 4 * 4 * 1024 * 1024  # S and P, each written and read, 4 bytes a number
plot.bars(
    {"S and P": scores_alone / 1e6, "q, k, v and O": (in_three.bytes - scores_alone) / 1e6},
    "MB moved",
    caption=f"S and P are {100 * scores_alone / in_three.bytes:.0f} % of all bytes that three operations move.",
)

# %% [markdown]
# **Why.** All that enters and leaves is 1 MB. What travels is between the operations. Fusing neighbours (lab 05)
# does not help at once: softmax needs a whole row before its first weight is final, and a row is as long as
# the text.
#
# ## 2 · When attention dominates
#
# In a transformer of width H a token costs 24·H² FLOPs in the linear layers (12·H² weights: 4 in attention's
# projections, 8 in the feed-forward, times 2), and 4·n·H for scores and their use over n keys.
#
# **Predict.** H = 768, as in GPT-2. From which n on do scores cost more than the linear layers?

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
# **Why.** "Attention is the bottleneck because it is quadratic" holds for long texts: below 6·H the linear layers
# cost more. With a causal mask half of the pairs go, and the border doubles. Bytes and memory are another
# matter. S of one head at n = 65,536 has 17 GB in float32, at any width.
#
# ## 3 · Parts that merge
#
# ![The keys are cut in two parts. Each part gives an output and the logarithm of its sum of exponentials; the merged output weighs the two by these.](drawings/parts_merge.svg)
#
# Lab 05 kept for a row the pair (m, s): the largest logit so far, and the sum of exp(x − m). Attention adds a
# third: the output so far. For a part of the keys let `out` be its attention output, and `lse` = m + log s,
# the **log-sum-exp** of its scores. exp(lse) is what the part weighs:
#
# > out = Σ exp(lseₚ) · outₚ / Σ exp(lseₚ), lse = log Σ exp(lseₚ)
#
# So keys can be cut anywhere: into tiles, among blocks of a launch, among GPUs.
#
# **Predict.** Merge (lse 2, out 1) with (lse 2 + log 3, out 5). What is out?

# %%
gpulab.predict("attention.merge", ...)

# %% [markdown]
# **Do.** Write `merge(outs, lses)` with shapes (parts, n, d) and (parts, n); return `out` (n, d) and `lse` (n).
# lses reach ±1,000. A part with no key for a row has out 0 and lse −∞ there; a row without any has out 0 and
# lse −∞. **Budget:** 4/3 of one read of all parts, so no tensor of their size. About 7 lines. Useful:
# `torch.where`, `clamp`, `torch.bmm`.


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
# **Why.** The differences are roundings. A model that makes one token has one query and a long cache of keys: too few
# rows for a GPU, so the keys are cut among blocks and merged (**split-KV**, "Flash-Decoding"; T. Dao et al., 2023).
# Several GPUs can hold a part of the keys each, and pass them round: **ring attention** (H. Liu et al., 2023).
#
# ## 4 · A tile at a time
#
# ![A tile at a time: a tile of queries stays, and the tiles of keys and values pass by. Of the scores only one tile exists at any moment, and the running maximum, sum and output are updated after each.](drawings/tiles.svg)
#
# Merging after each part divides and multiplies again. Keep the output **undivided**, with m and s.
# A tile of scores with maximum m′ makes
#
# > larger = max(m, m′), old = exp(m − larger), weights = exp(scores − larger)
#
# > s ← s · old + Σ weights, out ← out · old + weights · V
#
# and one division ends the row. By hand, with scores 0 and log 3 in the first tile, log 6 in the second, and values 1, 2
# and 4:
#
# | after tile | m | old | s | out |
# |---|---|---|---|---|
# | 1 | log 3 | 0 | 1/3 + 1 = 4/3 | 1/3 · 1 + 1 · 2 = 7/3 |
# | 2 | log 6 | 1/2 | 4/3 · 1/2 + 1 = 5/3 | 7/3 · 1/2 + 1 · 4 = 31/6 |
#
# out / s = 3.1, as all at once: (1 · 1 + 3 · 2 + 6 · 4) / (1 + 3 + 6).
#
# Loop over tiles of queries, and inside over tiles of keys: **FlashAttention**'s forward pass (T. Dao et al., 2022), in
# the order of its second version.
#
# **Do.** Write `tiled(q, k, v, tile)`; return `out` (n, d) and `lse` (n). n and m need not be multiples of `tile`.
# q comes scaled; logits reach ±1,000s. There may be one key, or none: then out is 0 and lse −∞. **Budget:** memory for
# the results and a few tiles; nothing of n × m, nor of n × tile. About 18 lines.


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
# **See.** What both hold at their worst moment, on tensors without contents (**fake tensors**, lab 08).

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
# **Why.** Memory is linear in n, plus a constant: the tiles. The arithmetic is not: every score is still computed,
# 4·n·m·d FLOPs, and a little more for rescaling. Each PyTorch operation here still writes its tile; a kernel keeps
# it on the chip. That is part B.
#
# In exact arithmetic any m would do: it cancels. In float32 exp(m − m′) is infinite as soon as m lies 88.7 above m′, and
# infinity over infinity is NaN. The maximum *so far* never falls, so no factor is above 1.
#
# ## Detective · One part less
#
# A prompt holds eight documents. Which of them does an answer rest on? One way to ask: attention without each. A
# colleague has the eight outputs and lses. Merging seven of them eight times seems a waste, so `steady` merges all
# once and takes one away:
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
# **Do.** Find which inputs break it, and which of the eight results (the next cell is free). Then mend it:
# `steady(outs, lses)`, shapes as for `merge`, two parts or more, all lses finite, up to ±1,000. Return `out` (parts, n,
# d) and `lse` (parts, n), each without its part. **Budget:** no more bytes than the first try moves. About 8 lines.

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
# **See.** The result without the first document, whose scores rise.

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
# **Why.** A float32 sum keeps 24 bits of its largest term. What the others add below that is gone, and no difference
# brings it back. If the part weighs e^16.6 = 2²⁴ times all others, the rest is 0, and 0 / 0 is NaN; float64 moves that
# to e^36.7. The results *without another* document stay right. Maxima and rounded sums can be merged, and cannot be
# taken apart. Merging the others costs no more: for a row, all results are one product of weights, with zeros on the
# diagonal, and outputs.
#
# ## 5 · Tiles and traffic
#
# On a GPU a block takes R queries, keeps them and their output on the chip, and streams all keys and values past
# them. From memory come q once, and k and v **once for each block**:
#
# > numbers moved = 2·n·d + n + ⌈n / R⌉ · 2·m·d
#
# **Predict.** The attention of section 1 with R = 128: how many MB?

# %%
gpulab.predict("attention.flash_bytes", ...)

# %% [markdown]
# Your `tiled` shows which tiles are wanted when. Counting those of k and v that its products take gives what a
# kernel with this order of loops has to load.


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
    picture.axes.plot(*zip(*points, strict=True), "o", color="#888888", markersize=5)
at_lengths(picture, sizes)

# %% [markdown]
# **Walk over the tiles.** 512 queries and 512 keys, tiles of 64. Watch what stays on the chip for a whole row of
# tiles and what comes anew with every tile.

# %%
from gpulab.plot.moving import AttentionWalk

AttentionWalk(queries=512, keys=512, width=64, tile=(64, 64))

# %% [markdown]
# **Why.** The traffic is quadratic, too, but divided by R, and R is limited by the chip: R rows of q and of the output
# and two tiles of keys fit into M numbers, so R grows like M / d and the traffic like **n²·d² / M** (Dao et al.,
# 2022, theorem 2). In three operations it is 4·n². With d = 64 blocks of 32 queries would save nothing: 2·d/R = 4.
# FlashAttention wins as long as d² is much less than M. Only the tile of *queries* counts; that of keys may be small.
#
# **See.** d² and M on an A100, in float16, as kernels keep their tiles.

# %%
a100 = hardware.find("A100")
numbers = a100.capability.shared_per_block_optin // 2  # float16
for d in (64, 128, 256):
    print(
        f"d = {d:3}: d² is {d * d:6,}, shared memory of a block holds {numbers:,}: {100 * d * d / numbers:.0f} %"
    )

# %% [markdown]
# **Why.** The traffic goes like n² times this share: the wider a head, the fewer queries fit, and the less a tile saves.
#
# ## 6 · Exact
#
# FlashAttention is no approximation: it computes the same sums in another order. "Exact" does not mean the same bits.
#
# **See.** Errors against float64, in units of the largest output.


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
# **Why.** A logit of 1,000 has a spacing of 6·10⁻⁵ in float32, and exp makes an absolute error of x a relative one
# of the weight. No order of sums can cure that.
#
# ## 7 · Tiles that need no visit
#
# A **causal** mask lets a token see itself and what is before it. A **sliding window** w (Mistral 7B: 4,096; A. Jiang
# et al., 2023) leaves the last w of those, itself among them. Scores that are computed and then masked cost
# as much as others. But masks in stripes leave whole tiles empty.
#
# With a **cache** there are more keys than queries. The last query stands at the last key: query i is at position
# i + m − n. (A mask built with `triu(diagonal=1)` forgets that.)
#
# **Predict.** n = m, causal, a map of 8 by 8 tiles: 64 in all. How many need a visit?

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
# **Do.** Write `causal(q, k, v, window, tile)`; q comes scaled. Query i sees key j if i + m − n − window < j ≤ i + m − n.
# Return `out` and `lse`. A row that sees nothing (n > m) has out 0 and lse −∞. **Budget:** the FLOPs of the tiles that
# hold a visible pair, if tiles start at multiples of `tile`. About 25 lines, 18 of them from `tiled`. Useful:
# `torch.arange`, and `torch.where` or `masked_fill`.


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
# **Why.** Only tiles that the edge of the mask crosses need a mask at all: real kernels have two loops, and the long
# one has no comparison in it. A window makes attention linear in n. What a layer cannot see, the next can pass on.
#
# ## 8 · Fewer heads of keys
#
# When a model writes, it makes one token at a time. The keys and values of all before stay in a **KV cache** (lab 19),
# and each step reads all of it for one query a head: 2 FLOPs for each number of a key or value. Bytes decide.
#
# **Grouped-query attention** (GQA; J. Ainslie et al., 2023) lets several query heads share one head of keys and
# values; with a single one it is **multi-query attention** (MQA; N. Shazeer, 2019).
#
# **Predict.** Llama 3 8B has 32 layers, 32 query heads and 8 of keys, with 128 numbers each (A. Grattafiori et al., 2024,
# table 3), here of 16 bits. After 8,192 tokens, how many GB does a step read from the cache?

# %%
gpulab.predict("attention.cache", ...)

# %% [markdown]
# **Do.** Write `grouped(q, k, v)`; q (scaled) is (query heads, n, d), k and v (key heads, m, d), and heads 0 … g − 1 use
# key head 0. Return the output in q's shape; plain softmax is fine. **Budget:** k and v read once; queries and the
# output may be copied. About 4 lines.


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
# **Why.** Keys that are shared on the way to memory are read once for a whole group. Repeated with
# `repeat_interleave` first, they would be as many bytes again as with 32 heads, plus the copy.
#
# ## 9 · Many lengths in one batch
#
# A batch is a rectangle, texts are not. **Padding** fills up with tokens that are masked, and computed. A **varlen**
# kernel takes all sequences end to end, and where each starts (`cu_seqlens`): a block belongs to one sequence and
# stops at its end.
#
# **Predict.** Lengths 1,024, 256 and 64, padded to 1,024. How many percent of the pairs are in vain?

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
# **Why.** Which sequence a row is in decides which tiles exist: a mask in blocks along the diagonal, which again is
# stripes of whole tiles.
#
# ## 10 · PyTorch's own
#
# `torch.nn.functional.scaled_dot_product_attention` (**SDPA**) chooses among **back ends**: `MATH` (separate operations),
# `FLASH_ATTENTION`, `EFFICIENT_ATTENTION` (from xFormers, also with float32 and any mask) and `CUDNN_ATTENTION`. It
# scales by 1/√d itself. What a machine, a dtype or a mask rules out is skipped in silence; `sdpa_kernel` makes
# that an error:

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
# (The ledger counts what an operation reads and writes, each once: a fused one's tiles are inside. The two `mul` of
# `MATH` are the scale.)
#
# None of these knows a window. `flex_attention` (J. Dong et al., 2024) takes a mask as a **function** of two positions.
# `create_block_mask` asks it about all pairs once and keeps which tiles hold one; compiled for a GPU, a kernel visits
# those, and compares only in tiles that are seen in part. The window of 256 from section 7:

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
# It is the share that your `causal` computes. (Not compiled, `flex_attention` keeps all scores, and says so.)
#
# **Masks speak three languages.** SDPA's boolean mask has True for *takes part*; `nn.MultiheadAttention`'s
# `key_padding_mask` (`src_key_padding_mask` in `nn.TransformerEncoder`) has True for *ignored*; and a float mask is
# **added** to the scores in both. So a 1/0 mask of floats hides nothing:

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
seen = torch.ones(4, 4, dtype=torch.bool)
seen[0] = False
row = scaled_dot_product_attention(*(x[:, :, :4].float() for x in heads), attn_mask=seen)[0, 0, 0]
print(f"SDPA, a row that sees nothing: {row[:3].tolist()}")

# %% [markdown]
# **Why.** A row without a key has no defined softmax. SDPA says 0, as your `causal` does; the layer says NaN, which then
# spreads through everything. Padding rows should see at least themselves, or be thrown away.
#
# ## Written answer
#
# "With FlashAttention, attention costs are linear in the length", says a colleague. Which cost is, which is not, and why?
# Cite at least two counts of your own runs at two lengths. At most 120 words.

# %% [markdown] nbgrader={"grade": true, "grade_id": "linear-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** Memory is linear: with tiles of 64 my run holds 0.32 MB at 512 tokens and 0.58 MB at 1,024, because only
# a tile of scores exists. FLOPs are not: all n·m scores are computed, 69 and 275 MFLOP, four times as many at twice the
# length. Traffic is not either: with tiles of 128 the run streams 1.31 and 4.72 MB, because each block of queries loads
# all keys. It is less than the 17.8 MB of three operations by a factor, not by order.
#
# **1 point** (cause without counts): The scores are never stored, so memory is linear, but they are all computed.
#
# **0 points:** It skips scores, or approximates them.

# %% [markdown]
# ## Recap
#
# <details><summary>1. Scores of 32 heads at n = 8,192 in float16: how many bytes, in three operations?</summary>
#
# 32 · 8,192² · 2 = 4.3 GB for S, and as many for P.
# </details>
#
# <details><summary>2. Half of the keys are on another GPU. What has to be sent to merge?</summary>
#
# Its output and log-sum-exp: d + 1 numbers for each query.
# </details>
#
# <details><summary>3. All keys of a tile are masked for a row, the first of the row. What goes wrong in a plain online softmax?</summary>
#
# m stays −∞, and −∞ − (−∞) is NaN.
# </details>
#
# <details><summary>4. n = m = 16,384, window 1,024, tiles of 128. About which share of the tiles is visited?</summary>
#
# 9 of 128 in a row of tiles: 7 %.
# </details>
#
# <details><summary>5. <code>flash_sdp_enabled()</code> says True. Does your model use FlashAttention?</summary>
#
# It may. The function returns a switch, not the choice. Run under `sdpa_kernel([SDPBackend.FLASH_ATTENTION])` and see
# whether it raises.
# </details>

# %%
gpulab.recap("12")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | FLOPs of attention, a head | 4·n·m·d; half with a causal mask that is used |
# | scores pass the linear layers | at n = 6·H |
# | numbers moved in three operations | 4·n·m + 2·n·d + 2·m·d |
# | in one, R queries a block | 2·n·d + n + ⌈n/R⌉ · 2·m·d |
# | memory beyond the output | n (the log-sum-exps) |
# | two parts merge by | exp(lse) |
# | the maximum | so far, never of the tile |
# | one part less | merge the others; never all minus the part |
# | rows without keys | out 0, lse −∞; guard −∞ − (−∞) and 0/0 |
# | a mask of your own in PyTorch | `flex_attention`, compiled, with a block mask |
# | cached keys | query i stands at i + m − n |
#
# ### Claims you will meet, and what is right
#
# - *Attention scales quadratically.* FLOPs do. Memory is linear with FlashAttention or SDPA's fused back ends.
# - *FlashAttention has linear complexity.* Linear memory. FLOPs stay 4·n²·d; traffic is n²·d²/M.
# - *Attention is the bottleneck of transformers.* In FLOPs from n = 6·H on.
# - *`torch.backends.cuda.enable_flash_sdp(True)` enables cuDNN's attention.* It allows PyTorch's flash kernel. cuDNN's
#   is `enable_cudnn_sdp`, or `SDPBackend.CUDNN_ATTENTION`.
# - *`src_key_padding_mask=torch.ones(…)` keeps all tokens.* As booleans it ignores all of them; as floats it adds 1 to
#   every score, which changes nothing.
# - *Memory-efficient softmax: subtract, exponentiate, divide.* Written as three operations it holds three tensors of
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
