# ---
# jupyter:
#   gpulab:
#     lab: "22"
#     hours: 5
#     topics: [C24.4]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 22A · Project: an attention kernel
#
# **3.5 to 6 hours.** You need lab 12, above all its part B, and lab 11 (Triton).
#
# A project has a specification, milestones, a referee and a leaderboard, but no instructions for the steps between
# them. You get up to 40 points for correctness, 40 for cost, and 20 for your report.
#
# By the end of this project, you can
#
# 1. write exact attention, forward and backward, for heads that share keys and for any length;
# 2. derive what a kernel has to move before you write it, and say what each tile size gains;
# 3. find the instructions that are not products, and remove them;
# 4. say what determinism costs in the backward pass;
# 5. report a result with its counts, its limits, and what you would do next.
#
# | sitting | sections | hours | what it is about |
# |---|---|---|---|
# | 1 | 1 and 2 | 1.5 to 2.5 | the specification, and the forward kernel |
# | 2 | 3 to 5, recap | 2.5 to 3.5 | the backward kernel, the leaderboard, and your report |

# %%
import math

import numpy as np
import torch
import triton.language as tl

import gpulab
from gpulab import cuda, device, leaderboard, plot, triton

D = 64  # numbers of a head
gpulab.start("22")

# %% [markdown]
# ## 1 · The specification
#
# **Shapes.** q and dout are (heads, n, 64), and k and v are (shared, m, 64). These four are float16. out, lse,
# shares, dq, dk and dv are float32. heads is a multiple of shared, and query head h uses key head h // (heads /
# shared). This is called **grouped-query attention**. n and m can be any lengths from 1 up.
#
# ![Grouped-query attention with 4 query heads and 2 key heads. Query heads 0 and 1 use key head 0, and query heads 2 and 3 use key head 1. The rows of a program are taken from all heads of a group, sorted by position.](drawings/grouped.svg)
#
# **Scale.** q is already divided by √d. Do not scale it again.
#
# **Causal** is 0 or 1. If it is 1, then m ≥ n, and query i sees key j if j ≤ i + m − n. If it is 0, every query sees
# all keys.
#
# **Exact.** In forward, logits can reach the hundreds, positive or negative. Results are compared with float64. The
# tolerance is 2e-3 in forward, and 5e-3 relative + 2e-2 absolute in backward.
#
# **Kernels** are written in Triton. The host code launches them. It may use shapes but not contents, and may not
# compute results itself. Every output initially holds garbage, so each element has to be written.
#
# **Counts.** The referee counts the bytes that loads request, the warp instructions, the spilled registers and the
# atomics. A count at or below the budget earns all of its points. Between the budget and the naive count, the points
# shrink on a logarithmic scale. On the leaderboard, *merit* is 0 at the naive count and 100 at the bound, which no
# kernel can beat.
#
# **Predict.** 8 query heads share one head of 200 keys, and there are 4 queries in each. With one program for each
# query head, how many bytes of keys and values are loaded?

# %%
gpulab.predict("attention_project.shared", ...)

# %% [markdown]
# **See.** The next cell computes how many bytes forward loads with R rows a program, in the causal case. It
# compares rows of one head with rows of all heads that share keys (a group). The rows of a group are sorted by
# position: row r is position r // g of head r % g, where g = heads / shared.


# %%
def loaded(heads, shared, n, m, rows, together):
    """Bytes that forward loads: q once, and keys and values up to the position of each program's last row."""
    rows_of = heads // shared if together else 1
    groups = heads // rows_of
    total = heads * n
    for first in range(0, rows_of * n, rows):
        last = min((first + rows - 1) // rows_of, n - 1)
        total += groups * 2 * (last + 1 + m - n)
    return 2 * D * total


tiles = [16, 32, 64, 128, 256, 512]
curves = {}
for name, shape in {
    "8/1 heads, 4 × 200": (8, 1, 4, 200),
    "4/2 heads, 256 × 256": (4, 2, 256, 256),
}.items():
    for together, said in ((False, "one head"), (True, "a group")):
        points = [(rows, loaded(*shape, rows, together) / 1e3) for rows in tiles]
        curves[f"{name}, rows of {said}"] = points
picture = plot.lines(
    curves,
    "rows of a program",
    "kB loaded",
    "With few queries, a larger tile helps only if its rows come from several heads.",
    log_x=True,
    log_y=True,
)
picture.axes.set_xticks(tiles, tiles)
picture.axes.minorticks_off()
picture

# %% [markdown]
# **Why.** A tile of 128 rows is useful only if there are 128 rows to work on. Four queries of one head fill 4/128 =
# 1/32 of it. Together with the other seven heads that use the same keys, there are 8 · 4 = 32 rows, which fill a
# quarter, and the keys are loaded only once. Larger tiles load less, but a block's registers have to hold them:
# rows × 64 unfinished outputs, and rows × columns scores. If they no longer fit, the report shows `spill_bytes`.
#
# **Predict.** There are 4 query heads and 2 key heads, n = m = 256, causal, and 128 rows of a group in each program.
# Each program visits the keys up to those of its last row. In what percentage of the visited pairs does the query
# see the key?

# %%
gpulab.predict("attention_project.wasted", ...)

# %% [markdown]
# ## 2 · Milestone 1: forward
#
# **Do.** Write `forward(q, k, v, out, lse, causal)`, which launches your kernel and fills `out` and `lse`.
#
# - You may use `q.shape`. A `tl.constexpr` may depend on shapes and on `causal`.
# - **Budget**, bytes: heads that share keys load them once, even if there are few queries, and no program loads keys
#   that none of its rows sees. You may load 10 % more than programs with 128 rows need.
# - **Budget**, instructions: one for each pair of a query and a key that it sees.
# - **Budget**, registers: no spills.
#
# About 50 lines. The *naive* kernel is `blocks` of lab 12 with a second program index: 64 queries of one head, all
# keys, and a mask in every iteration.


# %% nbgrader={"grade": false, "grade_id": "forward", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def forward_kernel(
    q, k, v, out, lse, n, m,
    CAUSAL: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    ### BEGIN SOLUTION
    head, first = tl.program_id(1), tl.program_id(0) * ROWS
    index = first + tl.arange(0, ROWS)
    position = index // GROUP
    row = (head * GROUP + index % GROUP) * n + position
    there = position < n
    across = tl.arange(0, D)
    mine = tl.load(q + row[:, None] * D + across, mask=there[:, None], other=0.0)
    largest = tl.full((ROWS,), -float("inf"), tl.float32)  # of scores · log2(e)
    s = tl.zeros((ROWS,), tl.float32)
    total = tl.zeros((ROWS, D), tl.float32)
    first_end, last_end = m, m  # where the keys of the first and of the last row end
    if CAUSAL:
        first_end = first // GROUP + 1 + m - n
        last_end = tl.minimum((first + ROWS - 1) // GROUP, n - 1) + 1 + m - n
    whole = first_end // COLUMNS * COLUMNS
    k += head * m * D
    v += head * m * D
    for key in range(0, whole, COLUMNS):  # every row sees all of these
        at = (key + tl.arange(0, COLUMNS))[:, None] * D + across
        scores = tl.dot(mine, tl.trans(tl.load(k + at)))
        larger = tl.maximum(largest, tl.max(scores, 1) * 1.4426950408889634)
        weights = tl.exp2(scores * 1.4426950408889634 - larger[:, None])
        old = tl.exp2(largest - larger)
        s = s * old + tl.sum(weights, 1)
        total = tl.dot(weights.to(tl.float16), tl.load(v + at), total * old[:, None])
        largest = larger
    for key in range(whole, last_end, COLUMNS):
        column = key + tl.arange(0, COLUMNS)
        at, inside = column[:, None] * D + across, (column < m)[:, None]
        seen = column[None, :] < m
        if CAUSAL:
            seen = column[None, :] <= position[:, None] + m - n
        scores = tl.dot(mine, tl.trans(tl.load(k + at, mask=inside, other=0.0)))
        scores = tl.where(seen, scores, -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, 1) * 1.4426950408889634)
        weights = tl.exp2(scores * 1.4426950408889634 - larger[:, None])
        old = tl.exp2(largest - larger)
        s = s * old + tl.sum(weights, 1)
        values = tl.load(v + at, mask=inside, other=0.0)
        total = tl.dot(weights.to(tl.float16), values, total * old[:, None])
        largest = larger
    tl.store(out + row[:, None] * D + across, total / s[:, None], mask=there[:, None])
    tl.store(lse + row, (largest + tl.log2(s)) * 0.6931471805599453, mask=there)
    ### END SOLUTION


def forward(q, k, v, out, lse, causal):
    ### BEGIN SOLUTION
    (heads, n, d), (shared, m, _) = q.shape, k.shape
    group, rows = heads // shared, 128
    forward_kernel[(triton.cdiv(group * n, rows), shared)](
        q, k, v, out, lse, n, m, CAUSAL=causal, GROUP=group, D=d, ROWS=rows, COLUMNS=32, num_warps=4
    )
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "forward-check", "locked": true, "points": 40, "schema_version": 3, "solution": false, "task": false}
gpulab.check("attention_project.forward", forward)

# %% [markdown]
# **See.** Here is the naive kernel, so that you can measure it beside yours at three shapes.


# %%
@triton.jit
def naive_kernel(
    q, k, v, out, lse, n, m, causal, group, D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    head = tl.program_id(1)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    across = tl.arange(0, D)
    there = (rows < n)[:, None]
    k += head // group * m * D
    v += head // group * m * D
    mine = tl.load(q + (head * n + rows[:, None]) * D + across, mask=there, other=0.0)
    largest = tl.full((ROWS,), -float("inf"), tl.float32)
    s = tl.zeros((ROWS,), tl.float32)
    total = tl.zeros((ROWS, D), tl.float32)
    for key in range(0, m, COLUMNS):
        columns = key + tl.arange(0, COLUMNS)
        inside = (columns < m)[:, None]
        keys = tl.load(k + columns[:, None] * D + across, mask=inside, other=0.0)
        values = tl.load(v + columns[:, None] * D + across, mask=inside, other=0.0)
        seen = (columns[None, :] < m) & ((causal == 0) | (columns[None, :] <= rows[:, None] + m - n))
        scores = tl.where(seen, tl.dot(mine, tl.trans(keys)), -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp(scores - larger[:, None])
        old = tl.exp(largest - larger)
        s = s * old + tl.sum(weights, 1)
        total = total * old[:, None] + tl.dot(weights.to(tl.float16), values)
        largest = larger
    tl.store(out + (head * n + rows[:, None]) * D + across, total / s[:, None], mask=there)
    tl.store(lse + head * n + rows, largest + tl.log(s), mask=rows < n)


def naive(q, k, v, out, lse, causal):
    (heads, n, d), (shared, m, _) = q.shape, k.shape
    sizes = {"D": d, "ROWS": 64, "COLUMNS": 32}
    naive_kernel[(triton.cdiv(n, 64), heads)](q, k, v, out, lse, n, m, causal, heads // shared, **sizes)


rng = np.random.default_rng(22)


def inputs(heads, shared, n, m):
    """q (already scaled), k and v on the device, and arrays for out and lse."""
    q = rng.standard_normal((heads, n, D)) / math.sqrt(D)
    k, v = rng.standard_normal((2, shared, m, D))
    made = [x.astype(np.float16) for x in (q, k, v)]
    return [
        cuda.to_device(x)
        for x in (*made, np.zeros((heads, n, D), np.float32), np.zeros((heads, n), np.float32))
    ]


SHAPES = {
    "few queries, 8/1 × 4 × 200": (8, 1, 4, 200),
    "causal, 2/1 × 192": (2, 1, 192, 192),
    "causal, 4/2 × 70 × 100": (4, 2, 70, 100),
}
simple = {name: gpulab.profile(naive, *inputs(*shape), 1) for name, shape in SHAPES.items()}

# %%
gpulab.need(forward)
mine = {name: gpulab.profile(forward, *inputs(*shape), 1) for name, shape in SHAPES.items()}
for name in SHAPES:
    rows = ", ".join(f"{r['blocks']} blocks, {r['spill_bytes']} B spilled" for r in (mine[name],))
    print(f"{name:28}{rows}, occupancy {mine[name]['occupancy']:.0f} %")
plot.panels(
    {
        "loaded, % of naive": {
            n: 100 * mine[n]["global_load_bytes"] / simple[n]["global_load_bytes"] for n in SHAPES
        },
        "instructions, % of naive": {
            n: 100 * mine[n]["instructions"] / simple[n]["instructions"] for n in SHAPES
        },
    },
    "Sharing keys between heads gains the most if there are few queries. Skipping tiles gains if there are many.",
)

# %% [markdown]
# **Why.** Causal attention needs only about half of the pairs, so the naive kernel pays twice in both counts. With
# larger shapes than these, the tiles on the diagonal are a smaller share of all tiles, so masks cost relatively
# less. Large tiles also have a disadvantage: with 128 rows in each program, there are few programs. An A100 has 108
# SMs, and with fewer blocks than that, some of them are idle. Real kernels then split the keys among several
# programs and merge their results (lab 19).

# %% [markdown]
# ## End of sitting 1
#
# The forward kernel computes attention exactly for any length, and the referee counts what it moves. Note now,
# while you remember them, the tile sizes that you tried and what each one gained, because the report asks for them.
# The second sitting is about the backward pass, which needs more products and one result that the forward pass
# stores.
#
# To go on another day, select this cell and choose *Run → Run All Above Selected Cell* first, because a new kernel
# does not know your functions yet.

# %%
gpulab.course.progress("22")

# %% [markdown]
# ## 3 · Milestone 2: backward
#
# Let S be the scores, P = exp(S − lse), and for each row shares = Σ dout · out. Then dS = P ∘ (dout · Vᵀ − shares),
# where ∘ multiplies element by element, and
#
# > dV = Pᵀ · dout, dK = dSᵀ · Q, dQ = dS · K
#
# Heads that share keys share the gradients of these keys, so dk and dv are sums over all heads of a group. It would
# be easiest to add them up with atomics in any order, but then the last bits would change from run to run. For this
# reason the specification requires **no atomics**.
#
# **Predict.** A single kernel that computes everything needs five products of tiles. How many are needed with one
# kernel for dk and dv and another for dq?

# %%
gpulab.predict("attention_project.products", ...)

# %% [markdown]
# **Do.** Write `backward(q, k, v, out, lse, dout, causal, shares, dq, dk, dv)`, which fills the last four arrays.
#
# - You may launch as many kernels as you like. Logits reach ±20.
# - **Budget**, atomics: none.
# - **Budget**, bytes: at most 10 % more than two loops need, if they go over tiles of 64 and skip the tiles beyond
#   the diagonal.
# - **Budget**, instructions: 2,000 for each 64 × 32 tile that such loops visit.
#
# About 90 lines.


# %% nbgrader={"grade": false, "grade_id": "backward", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def shares_kernel(out, dout, shares, rows, D: tl.constexpr, ROWS: tl.constexpr):
    ### BEGIN SOLUTION
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    there = row < rows
    at = row[:, None] * D + tl.arange(0, D)
    results = tl.load(out + at, mask=there[:, None], other=0.0)
    slopes = tl.load(dout + at, mask=there[:, None], other=0.0)
    tl.store(shares + row, tl.sum(results * slopes.to(tl.float32), 1), mask=there)
    ### END SOLUTION


@triton.jit
def keys_kernel(
    q, k, v, lse, dout, shares, dk, dv, n, m,
    CAUSAL: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    ### BEGIN SOLUTION
    head, first = tl.program_id(1), tl.program_id(0) * COLUMNS
    column = first + tl.arange(0, COLUMNS)
    across, inside = tl.arange(0, D), (column < m)[:, None]
    at = (head * m + column[:, None]) * D + across
    keys = tl.load(k + at, mask=inside, other=0.0)
    values = tl.load(v + at, mask=inside, other=0.0)
    sum_k = tl.zeros((COLUMNS, D), tl.float32)
    sum_v = tl.zeros((COLUMNS, D), tl.float32)
    start = 0
    if CAUSAL:
        start = tl.maximum(first + n - m, 0) * GROUP // ROWS * ROWS
    for begin in range(start, n * GROUP, ROWS):
        index = begin + tl.arange(0, ROWS)
        position = index // GROUP
        row = (head * GROUP + index % GROUP) * n + position
        there = position < n
        queries = tl.load(q + row[:, None] * D + across, mask=there[:, None], other=0.0)
        slope = tl.load(dout + row[:, None] * D + across, mask=there[:, None], other=0.0)
        weights = tl.exp(
            tl.dot(keys, tl.trans(queries)) - tl.load(lse + row, mask=there, other=float("inf"))[None, :]
        )
        if CAUSAL:
            weights = tl.where(column[:, None] <= position[None, :] + m - n, weights, 0.0)
        sum_v += tl.dot(weights.to(tl.float16), slope)
        share = tl.load(shares + row, mask=there, other=0.0)
        slopes = weights * (tl.dot(values, tl.trans(slope)) - share[None, :])
        sum_k += tl.dot(slopes.to(tl.float16), queries)
    tl.store(dk + at, sum_k, mask=inside)
    tl.store(dv + at, sum_v, mask=inside)
    ### END SOLUTION


@triton.jit
def queries_kernel(
    q, k, v, lse, dout, shares, dq, n, m,
    CAUSAL: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    ### BEGIN SOLUTION
    head, first = tl.program_id(1), tl.program_id(0) * ROWS
    index = first + tl.arange(0, ROWS)
    position = index // GROUP
    row = (head * GROUP + index % GROUP) * n + position
    there, across = position < n, tl.arange(0, D)
    at = row[:, None] * D + across
    queries = tl.load(q + at, mask=there[:, None], other=0.0)
    slope = tl.load(dout + at, mask=there[:, None], other=0.0)
    largest = tl.load(lse + row, mask=there, other=float("inf"))
    share = tl.load(shares + row, mask=there, other=0.0)
    result = tl.zeros((ROWS, D), tl.float32)
    end = m
    if CAUSAL:
        end = tl.minimum((first + ROWS - 1) // GROUP, n - 1) + 1 + m - n
    for begin in range(0, end, COLUMNS):
        column = begin + tl.arange(0, COLUMNS)
        from_, inside = (head * m + column[:, None]) * D + across, (column < m)[:, None]
        keys = tl.load(k + from_, mask=inside, other=0.0)
        values = tl.load(v + from_, mask=inside, other=0.0)
        seen = column[None, :] < m
        if CAUSAL:
            seen = column[None, :] <= position[:, None] + m - n
        weights = tl.where(seen, tl.exp(tl.dot(queries, tl.trans(keys)) - largest[:, None]), 0.0)
        slopes = weights * (tl.dot(slope, tl.trans(values)) - share[:, None])
        result += tl.dot(slopes.to(tl.float16), keys)
    tl.store(dq + at, result, mask=there[:, None])
    ### END SOLUTION


def backward(q, k, v, out, lse, dout, causal, shares, dq, dk, dv):
    ### BEGIN SOLUTION
    (heads, n, d), (shared, m, _) = q.shape, k.shape
    group = heads // shared
    sizes = {"CAUSAL": causal, "GROUP": group, "D": d}
    shares_kernel[(triton.cdiv(heads * n, 64),)](out, dout, shares, heads * n, D=d, ROWS=64)
    keys_kernel[(triton.cdiv(m, 64), shared)](
        q, k, v, lse, dout, shares, dk, dv, n, m, ROWS=32, COLUMNS=64, **sizes
    )
    queries_kernel[(triton.cdiv(group * n, 64), shared)](
        q, k, v, lse, dout, shares, dq, n, m, ROWS=64, COLUMNS=32, **sizes
    )
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "backward-check", "locked": true, "points": 40, "schema_version": 3, "solution": false, "task": false}
gpulab.check("attention_project.backward", backward)

# %% [markdown]
# **See.** The next cell compares forward and backward together with autograd, and shows how many instructions each
# takes.

# %%
gpulab.need(forward, backward)
heads, shared, n, m = 4, 2, 100, 128
on_device = inputs(heads, shared, n, m)
forward(*on_device, 1)
slope = rng.standard_normal((heads, n, D)).astype(np.float16)
room = [np.zeros(s, np.float32) for s in ((heads, n), (heads, n, D), (shared, m, D), (shared, m, D))]
results = [cuda.to_device(x) for x in room]
counted = gpulab.profile(backward, *on_device, cuda.to_device(slope), 1, *results)

leaves = [torch.from_numpy(x.copy_to_host()).double().requires_grad_() for x in on_device[:3]]
q, k, v = leaves[0], *(x.repeat_interleave(heads // shared, 0) for x in leaves[1:])
hidden = torch.arange(m) > torch.arange(n)[:, None] + m - n
exact = torch.softmax((q @ k.mT).masked_fill(hidden, -math.inf), -1) @ v
exact.backward(torch.from_numpy(slope).double())
for name, got, leaf in zip(("dq", "dk", "dv"), results[1:], leaves, strict=True):
    error = np.abs(got.copy_to_host() - leaf.grad.numpy()).max()
    print(f"{name}: largest error {error:.1e}, largest element {leaf.grad.abs().max():.1f}")
parts = {"forward": gpulab.profile(forward, *on_device, 1), "backward": counted}
pairs = heads * sum(i + 1 + m - n for i in range(n))
plot.bars(
    {name: report["instructions"] / pairs for name, report in parts.items()},
    "warp instructions for each pair that counts",
    caption="Backward has seven products, whereas forward has two, and it has masks in every tile.",
)

# %% [markdown]
# **Why.** One `mma` instruction performs 2,048 multiply-adds. For each pair, a product takes 64 of them, one for
# each element of a row. Forward has two products and backward with two loops has seven, so a pair needs 2 · 64 = 128
# multiply-adds in forward and 7 · 64 = 448 in backward. That is 128/2,048 = 1/16 and 448/2,048, about 1/5, of an
# instruction. The rest of each of your bars consists of loads, fragments that move through shared memory,
# exponentials and masks. That is the part that you can still reduce.
#
# ## 4 · The referee, and the leaderboard
#
# The checks above are the referee. Their counts are exact for a given PTX, so the same kernel gets the same score
# on every machine. `leaderboard.enter` puts the last counts on a board, which is stored with your progress. In a
# terminal, `gpulab leaderboard` shows it, `gpulab leaderboard --export FILE --as NAME` writes your entries for
# others, and `--import FILE` adds theirs.

# %%
gpulab.need(forward, backward)
leaderboard.enter("attention", "first version")

# %% [markdown]
# You can still try the following, roughly in this order. Enter each attempt under a name that tells it from the
# others.
#
# - Use tiles of 256 rows with 8 warps, which reduces the bytes.
# - Take 64 columns an iteration, which reduces the instructions.
# - In backward, leave out the masks in tiles away from the diagonal, and use `exp2`.
# - Load k and v through `tl.make_block_ptr`.
#
# On a GPU, the next cell measures your forward kernel beside PyTorch's fused attention.

# %%
if not device.uses_gpu():
    print(
        "No GPU here, so nothing was measured. On a GPU this cell times your kernel and PyTorch's fused attention."
    )
else:
    gpulab.need(forward)
    heads, shared, n = 32, 8, 4096
    arrays = [torch.randn(s, device="cuda").half() for s in ((heads, n, D), (shared, n, D), (shared, n, D))]
    arrays[0] /= math.sqrt(D)
    made = torch.empty(heads, n, D, device="cuda"), torch.empty(heads, n, device="cuda")
    batched = [x[None] for x in arrays]

    def library():
        torch.nn.functional.scaled_dot_product_attention(*batched, is_causal=True, scale=1.0, enable_gqa=True)

    for name, run in (("yours", lambda: forward(*arrays, *made, 1)), ("PyTorch", library)):
        seconds = triton.testing.do_bench(run) / 1e3
        print(
            f"{name:8}{2 * heads * n * n * D / seconds / 1e12:8.1f} TFLOP/s, causal, {heads}/{shared} heads × {n}"
        )

# %% [markdown]
# ## 5 · The report
#
# Write one page for a person who has to decide whether to use your kernels. **20 points:**
#
# | points | for |
# |---|---|
# | 5 | what is exact and how you know it: the shapes you tried, the errors, and what you compared with |
# | 5 | a derivation: the bytes or instructions of one of your kernels by formula, beside the count |
# | 5 | one decision with both counts: what you tried, what it gained, and what it cost elsewhere |
# | 5 | limits: where your kernels would be slow on a GPU, which count does not show it, and what you would do next |

# %% [markdown] nbgrader={"grade": true, "grade_id": "attention-report", "locked": false, "points": 20, "schema_version": 3, "solution": true, "task": false}
# **A report with full points says, for example:**
#
# *Exact.* Forward was compared with float64 at 7 shapes (1 to 8 query heads a key head, 10 × 17 to 192 × 192,
# causal and not, logits up to ±100) and is within 2e-3. Backward was compared with autograd in float64 at 4/2
# heads, 100 × 128: dq is within 3.4e-3, where elements reach 11.7, and dk and dv are within 1e-3, where they reach
# 1.9.
#
# *Derived.* Forward with 2/1 heads, 192 × 192: reading q once takes 49,152 B. Three programs of 128 rows see 64, 128
# and 192 keys. These are 384 keys, which take 384 · 2 · 64 · 2 B = 98,304 B. Together that is 147,456 B, and the
# check counted 147,456.
#
# *Decided.* 64 columns an iteration instead of 32 take 30,448 instructions instead of 33,124, but 253 registers a
# thread instead of 202. The maximum is 255, so a few more lines would spill. I kept 32.
#
# *Limits.* One head of keys and 128 rows make 3 blocks, but an A100 has 108 SMs. Counts do not show idle SMs. The
# next step is to split keys among programs if there are few blocks. In backward, masks in every tile cost one
# select for each score, although only tiles on the diagonal need them.
#
# *Points are taken off* for numbers without the shape they were counted at, for "faster" without a count, and for a
# derivation that differs from the count without an explanation.

# %% [markdown]
# ## Recap
#
# <details><summary>1. Why do rows of several heads in one program save bytes?</summary>
#
# They use the same keys, so one load serves g times as many rows. With few queries, they also fill the tile.
# </details>
#
# <details><summary>2. Why are rows sorted by position instead of by head?</summary>
#
# All rows of a tile then end at nearly the same key, so few tiles of keys are visited for only some of the rows.
# </details>
#
# <details><summary>3. What do larger tiles cost?</summary>
#
# They need more registers, up to spilling, they leave fewer blocks, and each tile has more pairs beyond the diagonal.
# </details>
#
# <details><summary>4. What does determinism cost here?</summary>
#
# Seven products instead of five, because scores and dP are computed twice: once for dq, and once for dk and dv.
# </details>
#
# <details><summary>5. Two kernels have the same counts. Are they equally fast?</summary>
#
# Not necessarily. Counts do not include latency, idle SMs or overlap. They state how much work a kernel has to do.
# </details>

# %%
gpulab.recap("22")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | bytes of forward, with R rows of a group | itemsize · d · (heads·n + shared · Σ 2 · keys of the last row) |
# | instructions of products | pairs · 2·d / 2,048 in forward, 7/2 of it in backward with two loops |
# | row r of a group of g heads | position r // g, head r % g |
# | keys without a mask | up to the first row's last key, rounded down to a tile |
# | dk, dv of a shared head | sums over all of its query heads |
# | no atomics | one program adds up each result |
#
# ### Claims you will meet, and what is right
#
# - *Grouped-query attention makes attention cheaper to compute.* The products are the same. The keys, the values
#   and the cache are smaller, and kernels that make use of it load them fewer times.
# - *FlashAttention is deterministic.* Its forward pass is. The backward pass adds dq with atomics unless you set the
#   library's flag `deterministic`, which is slower and needs more memory (its README).
# - *A fused kernel must be fast.* A fused kernel with few blocks leaves most of a large GPU idle.
#
# ### References
#
# 1. T. Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", 2023.
#    https://arxiv.org/abs/2307.08691
# 2. J. Ainslie et al., "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head Checkpoints", 2023.
#    https://arxiv.org/abs/2305.13245
# 3. Triton, tutorial "Fused Attention". https://triton-lang.org/main/getting-started/tutorials/06-fused-attention.html
# 4. README of flash-attention. https://github.com/Dao-AILab/flash-attention
