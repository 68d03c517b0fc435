# ---
# jupyter:
#   gpulab:
#     lab: "26"
#     hours: 3.5
#     topics: [C26.3, C26.4, C26.5]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 26B · Attention that leaves work out
#
# **2 to 3.5 hours.** You have done part A and lab 12A. You need no GPU: kernels run
# on a simulated **H100**, and the rest is PyTorch.
#
# A conversation of 128,000 tokens has 8 billion pairs of a query and a key in every head, and the whole cache
# has to be read for each new token. Faster kernels do not change that. Today's models therefore change
# attention itself: they skip blocks, choose a few keys, store a cache that is fifty times smaller, or replace
# the cache with a state of constant size.
#
# By the end you can
#
# 1. write a kernel that visits the blocks of a list and no others;
# 2. decode with a few blocks of the cache, and say how many bytes that saves;
# 3. decode from a cache of latent vectors without ever expanding it;
# 4. compute linear attention with the gated delta rule in chunks, and say what chunks cost and save;
# 5. find out whether a mask saves anything.

# %%
import numpy as np
import torch
import triton.language as tl

import gpulab
from gpulab import cuda, triton

D = 64  # numbers of a head in the kernels
torch.manual_seed(26)
gpulab.start("26", gpu="H100")

# %% [markdown]
# ## 4 · A list of blocks
#
# A mask says which keys each query may attend to: those before it, those in a window, or those of the same
# document. Each of these masks used to need a kernel of its own. FlexAttention separates the mask from the
# kernel. It divides queries and keys into blocks, here of 64 × 64 pairs, and determines once for each block
# whether any pair in it is *seen*, that is, allowed by the mask. The result is a **block mask**: for each
# block of queries, the list of the key blocks that it has to visit. A single kernel that walks through such
# lists serves all masks.
#
# ![A block mask. Each row of blocks visits its own block, every second block before it, and the first. The list of row 5 is 0, 1, 3, 5.](drawings/block_mask.svg)
#
# **Predict.** A causal mask with a window has 4,096 tokens. The window is 512 keys wide, the query's own among them.
# How many of the 64 · 64 = 4,096 blocks are visited? The first query of a block sees keys of eight blocks
# before its own.

# %%
gpulab.predict("modern.visited", ...)


# %%
def block_mask(seen):
    """Numbers of blocks and their lists, as a kernel takes them, from a mask (n, n) of what is seen."""
    blocks = len(seen) // 64
    any_seen = seen.reshape(blocks, 64, blocks, 64).any(axis=(1, 3))
    counts = any_seen.sum(1).astype(np.int32)
    lists = np.full((blocks, counts.max()), -1, np.int32)
    for row, there in enumerate(any_seen):
        lists[row, : counts[row]] = np.flatnonzero(there)
    return counts, lists


row, column = np.mgrid[:1024, :1024]
masks = {
    "causal": column <= row,
    "window of 256": (column <= row) & (column > row - 256),
    "documents of 320": (column <= row) & (column // 320 == row // 320),
}
gpulab.plot.heat_maps(
    {name: mask.reshape(16, 64, 16, 64).mean(axis=(1, 3)) for name, mask in masks.items()},
    "block of queries",
    "block of keys",
    "The share of pairs in each block that are seen: 0 is skipped, 1 needs no mask, all others are masked pair by pair.",
)

# %% [markdown]
# In most of the visited blocks every pair is seen, so no mask needs to be applied there. FlexAttention
# therefore keeps two lists, one of full and one of partial blocks. In this exercise one list is enough,
# because the only partial blocks are those on the diagonal.
#
# **Do.** Write `blocks(q, k, v, counts, lists, out)`, which launches your kernel `blocks_kernel` with one
# program for every 64 queries.
#
# - `q`, `k` and `v` are (n, 64) in float16, and n is a multiple of 64. q is already scaled so that scores are
#   in base 2. Do not scale it again.
# - `counts[r]` is the number of blocks that the queries 64·r to 64·r + 63 visit, and `lists[r]` begins with
#   the numbers of these blocks. The rest of the list is filled with −1. No list is empty, and lists may skip
#   blocks anywhere.
# - In block r itself, query i sees the keys j ≤ i. In all other blocks on the list every query sees every key.
# - `out` is (n, 64) in float32.
# - **Budget:** the bytes of q, and of K and V in the blocks listed, with 10 % for the lists; the operations of
#   these blocks, with 10 % for the softmax.
#
# About 26 lines. `lists.shape[1]` is the length of a row.


# %% nbgrader={"grade": false, "grade_id": "blocks", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def blocks_kernel(q, k, v, counts, lists, out, most, D: tl.constexpr):
    ### BEGIN SOLUTION
    program = tl.program_id(0)
    rows = program * 64 + tl.arange(0, 64)
    across = tl.arange(0, D)
    mine = tl.load(q + rows[:, None] * D + across)
    largest = tl.full((64,), -float("inf"), tl.float32)
    s = tl.zeros((64,), tl.float32)
    total = tl.zeros((64, D), tl.float32)
    for turn in range(tl.load(counts + program)):
        block = tl.load(lists + program * most + turn)
        columns = block * 64 + tl.arange(0, 64)
        keys = tl.load(k + columns[:, None] * D + across)
        values = tl.load(v + columns[:, None] * D + across)
        scores = tl.dot(mine, tl.trans(keys))
        if block == program:
            scores = tl.where(columns[None, :] <= rows[:, None], scores, -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp2(scores - larger[:, None])
        old = tl.exp2(largest - larger)
        s = s * old + tl.sum(weights, 1)
        total = total * old[:, None] + tl.dot(weights.to(tl.float16), values)
        largest = larger
    tl.store(out + rows[:, None] * D + across, total / s[:, None])
    ### END SOLUTION


def blocks(q, k, v, counts, lists, out):
    ### BEGIN SOLUTION
    blocks_kernel[(q.shape[0] // 64,)](q, k, v, counts, lists, out, lists.shape[1], D=64)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "blocks-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("modern.blocks", blocks)

# %% [markdown]
# **See.** What your kernel loads for lists of different lengths: 512 queries that visit their own block and the last 1,
# 2, 4 or all of the blocks before it.

# %%
gpulab.need(blocks)
numbers = np.random.default_rng(26)
q, k, v = (cuda.to_device((numbers.standard_normal((512, D)) / 3).astype(np.float16)) for _ in range(3))
out = cuda.to_device(np.zeros((512, D), np.float32))
row, column = np.mgrid[:512, :512]
loaded = {}
for before in (1, 2, 4, 8):
    counts, lists = block_mask((column <= row) & (column // 64 >= row // 64 - before))
    report = gpulab.profile(blocks, q, k, v, *map(cuda.to_device, (counts, lists)), out)
    loaded[f"{before} before, {counts.sum()} blocks"] = report["global_load_bytes"] / 1024
gpulab.plot.bars(
    loaded, "KB loaded", caption="What is loaded grows with the number of blocks, and with nothing else."
)

# %% [markdown]
# **Why.** The kernel does not depend on the mask, so a new mask needs no new kernel. But the size of the
# blocks limits what is saved: a mask that sees one key in each block of 64 has to visit all blocks. A block
# mask saves only blocks that are entirely empty.
#
# ## 5 · Choose blocks, then read them
#
# For each new token, attention reads the whole cache, although most keys get a weight near 0. Native Sparse
# Attention (DeepSeek, 2025) lets each step choose what to read. One vector summarises the keys of each block
# of 64; here it is their mean. The query is compared with the means first, and then only the most promising
# blocks are read.
#
# ![Four steps: q is compared with the means, softmax and the sum over heads give one number for each block, the best blocks are chosen, and attention reads only these.](drawings/choose.svg)
#
# All heads that share a cache of keys and values choose together. If each head chose for itself, their
# choices together would cover much of the cache, and reading the cache is what costs time.
#
# **Predict.** The cache has 65,536 keys and as many values. What percentage of them does a step read, with the means of
# blocks of 64 (means of keys only) and 16 blocks chosen?

# %%
gpulab.predict("modern.chosen", ...)

# %% [markdown]
# **Do.** Write `select(q, k, v, means, keep)` in PyTorch.
#
# - `q` is (h, d): the queries of h heads for one new token, already scaled. `k` and `v` are (m, d), shared by all
#   heads; m is a multiple of 64. `means` is (m / 64, d). All in float32, and scores are exponents of e.
# - The worth of a block is the softmax of q · meansᵀ over the blocks, summed over the heads. The `keep`
#   blocks with the largest worth are read.
# - Output: (h, d), ordinary attention over the keys of these blocks.
# - **Budget:** the bytes of the chosen blocks, copied and read, and those of the means. No operation may read all keys.
#
# About 5 lines. Useful: `topk(keep).indices`; a tensor indexed with them.


# %% nbgrader={"grade": false, "grade_id": "select", "locked": false, "schema_version": 3, "solution": true, "task": false}
def select(q, k, v, means, keep):
    ### BEGIN SOLUTION
    worth = torch.softmax(q @ means.t(), dim=1).sum(0)
    best = worth.topk(keep).indices
    keys, values = (x.view(-1, 64, x.shape[1])[best].flatten(0, 1) for x in (k, v))
    return torch.softmax(q @ keys.t(), dim=1) @ values
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "select-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("modern.select", select)

# %% [markdown]
# **See.** Bytes that a step moves as the cache grows, with all keys and with eight blocks.

# %%
gpulab.need(select)


def whole(q, k, v):
    return torch.softmax(q @ k.t(), dim=1) @ v


bytes_of = {"all keys": [], "eight blocks": []}
for m in (1024, 2048, 4096, 8192, 16384):
    one, cached_k, cached_v = torch.randn(8, 64) / 8, torch.randn(m, 64), torch.randn(m, 64)
    means = cached_k.view(-1, 64, 64).mean(1)
    bytes_of["all keys"].append((m, gpulab.profile(whole, one, cached_k, cached_v).bytes / 1e6))
    bytes_of["eight blocks"].append(
        (m, gpulab.profile(select, one, cached_k, cached_v, means, 8).bytes / 1e6)
    )
gpulab.plot.lines(
    bytes_of,
    "keys in the cache",
    "MB moved in a step",
    "With 1,024 keys choosing costs more than it saves. From then on only the means grow with the cache.",
    log_x=True,
    log_y=True,
)

# %% [markdown]
# **Why.** PyTorch copies the chosen blocks before it multiplies them, which triples their bytes: they are
# read, written, and read again. A kernel like your `blocks` walks through the list instead. The means still
# grow with the cache, but 128 times more slowly than keys and values do.
#
# Whole blocks are chosen because memory is fast at reading contiguous bytes. Single keys of 128 bytes from
# all over the cache would take far more requests for the same bytes. The model has to be trained with the
# choice; otherwise it needs keys that it can no longer read.
#
# ## 6 · A cache that is never expanded
#
# DeepSeek-V2 shrinks the cache itself. Each token stores one **latent** vector c of r numbers. Every head has
# two weight matrices of its own, K and V, of d × r numbers. For a token with the latent c, the head's key is
# K·c and its value is V·c. This is **multi-head latent attention** (MLA). In addition, each token stores one
# short key that carries its position and is shared by all heads.
#
# **Predict.** DeepSeek-V3 has 128 heads, with keys and values of 128 numbers each. Its latent has 512 numbers, its
# shared key
# 64. By which factor is its cache smaller than one of all keys and values?

# %%
gpulab.predict("modern.latent", ...)

# %% [markdown]
# That factor would be lost if each step expanded the latents to the keys and values of all heads. This is not
# necessary, because matrix products can be regrouped:
#
# > score = q · (K c) = (Kᵀ q) · c
#
# > output = Σ weight · (V c) = V · (Σ weight · c)
#
# On the right-hand sides, K is multiplied by one query and V by one sum, whatever the number of tokens. The
# matrices are **absorbed** into the query and the output, and all heads attend to the same m latents.
#
# ![Left: every latent is expanded to keys and values of all heads. Right: the query is brought to the space of the latents, attention sums latents, and the sum is brought back.](drawings/absorbed.svg)
#
# Here is one head by hand, with d = 1, r = 2, K = (2, 1), q = 3 and c = (1, 4). Expanded, the key is 2 · 1 + 1 · 4 = 6
# and the score 18. Absorbed, the query is 3 · (2, 1) = (6, 3) and the score 6 · 1 + 3 · 4 = 18.
#
# **Do.** Write `absorb(q, q_place, latent, k_place, w_k, w_v)` in PyTorch, a step of decoding.
#
# - `q` is (h, d) and `q_place` is (h, e), both already scaled. `latent` is (m, r), `k_place` is (m, e). `w_k` and `w_v`
#   are (h, d, r). All in float32.
# - The score of head h and key j is `q[h] @ (w_k[h] @ latent[j]) + q_place[h] @ k_place[j]`. Weights are the softmax of
#   the scores over j, to the base e.
# - Output: (h, d). For each head it is Σ weight · (`w_v[h] @ latent[j]`).
# - **Budget:** the latents are read twice and each matrix once; keys and values of single heads are never
#   computed; matrix FLOPs of the absorbed form.
#
# About 4 lines. Useful: `torch.bmm`.


# %% nbgrader={"grade": false, "grade_id": "absorb", "locked": false, "schema_version": 3, "solution": true, "task": false}
def absorb(q, q_place, latent, k_place, w_k, w_v):
    ### BEGIN SOLUTION
    absorbed = torch.bmm(q.unsqueeze(1), w_k).squeeze(1)
    weights = torch.softmax(absorbed @ latent.t() + q_place @ k_place.t(), dim=1)
    return torch.bmm(w_v, (weights @ latent).unsqueeze(2)).squeeze(2)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "absorb-check", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
gpulab.check("modern.absorb", absorb)

# %% [markdown]
# **See.** The bytes of both forms for 16 heads, and what a cache of all keys and values would read.

# %%
gpulab.need(absorb)


def expand(q, q_place, latent, k_place, w_k, w_v):
    keys, values = (torch.matmul(latent, w.transpose(1, 2)) for w in (w_k, w_v))
    scores = torch.bmm(keys, q.unsqueeze(2)).squeeze(2) + q_place @ k_place.t()
    return torch.bmm(torch.softmax(scores, dim=1).unsqueeze(1), values).squeeze(1)


h, d, r, e, m = 16, 32, 64, 16, 2048
given = [torch.randn(*shape) / 4 for shape in ((h, d), (h, e), (m, r), (m, e), (h, d, r), (h, d, r))]
print("largest difference:", (absorb(*given) - expand(*given)).abs().max().item())
gpulab.plot.bars(
    {
        "absorbed": gpulab.profile(absorb, *given).bytes / 1e6,
        "expanded in each step": gpulab.profile(expand, *given).bytes / 1e6,
        "all keys and values cached": 4 * 2 * h * m * d / 1e6,
    },
    "MB moved in a step",
    caption="Expanding writes and reads the keys and values of all heads; the absorbed form reads latents only.",
)

# %% [markdown]
# **Why.** Absorbed attention takes more FLOPs for each pair of a query and a key: a score sums over r numbers
# instead of d, in DeepSeek-V3 over 512 instead of 128. Decoding has FLOPs to spare, because it waits for
# memory (lab 19). A prompt is limited by FLOPs, so prompts are computed in the expanded form. Because the
# heads share one cache, 128 queries are multiplied with each latent that is read, which is enough rows for
# the tensor cores.
#
# ## 7 · A state instead of a cache
#
# Without softmax, attention would need no cache at all. Its output Σ vⱼ (kⱼ · q) equals S·q with S = Σ vⱼ
# kⱼᵀ, so only the matrix S, the **state**, has to be kept. This is **linear attention**. S has d × d numbers,
# however long the text is.
#
# **Predict.** Keys and values have 128 numbers. For how many tokens is a cache as large as the state?

# %%
gpulab.predict("modern.state", ...)

# %% [markdown]
# If everything is added to S and nothing is ever removed, later values blur the earlier ones. The **gated
# delta rule** (S. Yang et al., 2024) forgets in two ways. First, the whole state decays by a factor α.
# Second, before a token writes its value, the rule looks up what S already returns for the key, and writes
# only the difference:
#
# > S ← α·S, then S ← S + β·(v − S·k)·kᵀ, and the output is S·q.
#
# The model computes α and β, both between 0 and 1, from the token. Here is one step with d = 1, where S = 2,
# α = 0.5, k = 1, v = 5 and β = 1. The state decays to 0.5 · 2 = 1. The key returns 1, so the difference is 5
# − 1 = 4. S becomes 1 + 4 = 5, and the key now returns its new value exactly.
#
# The next cell has the rule as a loop. Its test writes two values under the same key and then reads that key.


# %%
def steps(q, k, v, alpha, beta):
    """The gated delta rule token by token; the state is (values, keys)."""
    state, outs = torch.zeros(v.shape[1], k.shape[1]), []
    for t in range(len(q)):
        state = alpha[t] * state
        state = state + torch.outer(beta[t] * (v[t] - state @ k[t]), k[t])
        outs.append(state @ q[t])
    return torch.stack(outs)


key, ones = torch.tensor([[0.6, 0.8]]).repeat(2, 1), torch.ones(2)
print("what the key returns:", steps(key, key, torch.tensor([[7.0, 1.0], [5.0, 2.0]]), ones, ones))

# %% [markdown]
# The second value, (5, 2), has replaced the first one, (7, 1). Without the look-up, the key would return
# their sum, (12, 3).
#
# Computed token by token, the rule reads and writes d × d numbers for each token, and it offers no product of
# two matrices to the tensor cores. Therefore tokens are processed in **chunks** of C. What happens inside a
# chunk is computed for all of its tokens at once, and only the state passes from one chunk to the next.
#
# ![The state passes from chunk to chunk. Within a chunk, each token reads the state at its start and what earlier tokens of the chunk wrote.](drawings/chunks.svg)
#
# Let xᵢ be what token i writes, so that the state gains xᵢ·kᵢᵀ, and let gᵢ be the sum of log α from the start of the
# chunk to token i. Before token i writes, its key finds two things:
#
# - the state S from the start of the chunk, decayed by exp(gᵢ);
# - what each earlier token j of the chunk wrote, decayed by exp(gᵢ − gⱼ).
#
# **See.** These decays in a chunk of 16 tokens. The ninth token has α = 0.05, so it forgets nearly
# everything.

# %%
alpha = np.full(16, 0.95)
alpha[8] = 0.05
g = np.cumsum(np.log(alpha))
gpulab.plot.heat_maps(
    {"decay": np.tril(np.exp(np.minimum(g[:, None] - g, 0)))},
    "token i, which reads",
    "token j, which wrote",
    "What is left of token j when token i reads: little of the tokens before the ninth for all that come after it.",
)

# %% [markdown]
# With both, a token writes
#
# > xᵢ = βᵢ·(vᵢ − exp(gᵢ)·S·kᵢ − Σ_{j<i} exp(gᵢ − gⱼ)·(kⱼ·kᵢ)·xⱼ)
#
# Each xᵢ depends only on earlier ones. These are C linear equations with a triangular matrix, (I + L)·X = B, where X
# has the rows xᵢ and
#
# > Lᵢⱼ = βᵢ·exp(gᵢ − gⱼ)·(kᵢ·kⱼ) for j < i, and 0 otherwise; row i of B is βᵢ·(vᵢ − exp(gᵢ)·S·kᵢ).
#
# The output reads the same two things as the key, its own token included:
#
# > oᵢ = exp(gᵢ)·S·qᵢ + Σ_{j≤i} exp(gᵢ − gⱼ)·(kⱼ·qᵢ)·xⱼ
#
# At the end of the chunk, S becomes exp(g)·S + Σⱼ exp(g − gⱼ)·xⱼ·kⱼᵀ, where g belongs to the last token.
#
# **Do.** Write `chunk(q, k, v, alpha, beta, size)` in PyTorch.
#
# - `q`, `k` and `v` are (n, d), `alpha` and `beta` are (n), all in float32. Each key is a unit vector. S
#   starts as zeros; its rows belong to the values and its columns to the keys. `size` is the number of tokens
#   in a chunk; the last chunk may be shorter.
# - α can be as small as 10⁻⁵, so exp(−gⱼ) may overflow. Use exp(gᵢ − gⱼ), whose exponent is never positive
#   for j ≤ i. For j > i it can overflow, and infinity times 0 is not 0.
# - Output: (n, d).
# - **Budget:** the state is read and written once for each chunk; matrix FLOPs of chunks of `size`.
#
# About 14 lines. Useful: `torch.cumsum`, `tril`, and `torch.linalg.solve_triangular(A, B, upper=False)`, which returns
# X with A·X = B.


# %% nbgrader={"grade": false, "grade_id": "chunk", "locked": false, "schema_version": 3, "solution": true, "task": false}
def chunk(q, k, v, alpha, beta, size):
    ### BEGIN SOLUTION
    state, outs = torch.zeros(k.shape[1], v.shape[1]), []
    for rows in zip(*(x.split(size) for x in (q, k, v, alpha, beta)), strict=True):
        queries, keys, values, a, b = rows
        g = torch.cumsum(torch.log(a), 0)
        since_start, b = torch.exp(g)[:, None], b[:, None]
        decay = torch.exp(g[:, None] - g).tril()
        lower = (b * (keys @ keys.t()) * decay).tril(-1)
        found = b * (values - since_start * (keys @ state))
        x = torch.linalg.solve_triangular(torch.eye(len(b)) + lower, found, upper=False)
        outs.append(since_start * (queries @ state) + ((queries @ keys.t()) * decay) @ x)
        to_end = torch.exp(g[-1] - g)[:, None]
        state = torch.exp(g[-1]) * state + (keys * to_end).t() @ x
    return torch.cat(outs)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "chunk-check", "locked": true, "points": 7, "schema_version": 3, "solution": false, "task": false}
gpulab.check("modern.chunk", chunk)

# %% [markdown]
# **See.** Bytes and FLOPs of 256 tokens with heads of 64 numbers, for several sizes of chunks and token by token.

# %%
gpulab.need(chunk)

tokens = [torch.randn(256, 64) / 8, torch.nn.functional.normalize(torch.randn(256, 64), dim=1)]
tokens += [torch.randn(256, 64), 1 - torch.rand(256) / 5, torch.rand(256)]
reports = {"token by token": gpulab.profile(steps, *tokens)}
for size in (16, 32, 64, 256):
    reports[f"chunks of {size}"] = gpulab.profile(chunk, *tokens, size)
gpulab.plot.panels(
    {
        "MB moved": {name: report.bytes / 1e6 for name, report in reports.items()},
        "MFLOP": {name: report.flops / 1e6 for name, report in reports.items()},
    },
    "Chunks of 16 move an eighth of the bytes for a tenth more arithmetic; a single chunk for all tokens is as costly as attention.",
)

# %% [markdown]
# **Why.** For each token, the state takes 6·d² matrix FLOPs in either form, and the pairs within a chunk add
# 6·d·C. If C equals d, the FLOPs double. This is worth it, because matrix products run on tensor cores, which
# on an H100 are 15 times as fast as the float32 lanes, and because the state is read and written C times less
# often. Chunks of 64 are common.
#
# Today's models mix both kinds of layers. In Qwen3-Next, three of four layers use the gated delta rule. The
# fourth is attention with a cache, which can find single tokens that a state of constant size has lost.
#
# ## Detective · A mask that costs what it saves
#
# A colleague has written a causal kernel. It takes a mask from the caller, "so that it works for any mask",
# and skips the blocks beyond the diagonal. "It does half of the work, and yet it loads more bytes than the
# same kernel without a mask."


# %%
@triton.jit
def masked_kernel(q, k, v, mask, out, n, D: tl.constexpr, MASKED: tl.constexpr):
    program = tl.program_id(0)
    rows = program * 64 + tl.arange(0, 64)
    across = tl.arange(0, D)
    mine = tl.load(q + rows[:, None] * D + across)
    largest = tl.full((64,), -float("inf"), tl.float32)
    s = tl.zeros((64,), tl.float32)
    total = tl.zeros((64, D), tl.float32)
    end = n
    if MASKED:
        end = (program + 1) * 64
    for first in range(0, end, 64):
        columns = first + tl.arange(0, 64)
        keys = tl.load(k + columns[:, None] * D + across)
        values = tl.load(v + columns[:, None] * D + across)
        scores = tl.dot(mine, tl.trans(keys))
        if MASKED:
            seen = tl.load(mask + rows[:, None] * n + columns[None, :])
            scores = tl.where(seen != 0, scores, -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp2(scores - larger[:, None])
        old = tl.exp2(largest - larger)
        s = s * old + tl.sum(weights, 1)
        total = total * old[:, None] + tl.dot(weights.to(tl.float16), values)
        largest = larger
    tl.store(out + rows[:, None] * D + across, total / s[:, None])


def colleague(q, k, v, mask, out, masked=True):
    n = q.shape[0]
    masked_kernel[(n // 64,)](q, k, v, mask, out, n, D=64, MASKED=masked)


lower = cuda.to_device(np.tril(np.ones((512, 512), np.int32)))
for masked in (False, True):
    report = gpulab.profile(colleague, q, k, v, lower, out, masked)
    print(f"{'causal' if masked else 'all pairs':10}{report['global_load_bytes']:>10,} bytes loaded")

# %% [markdown]
# **Do.** Find out where the bytes go. Then write `mask(q, k, v, mask, out)`, which launches a kernel of your own.
# It computes the same and loads fewer bytes. The first cell is yours: profile, and count by hand.
#
# - `q`, `k` and `v` are (n, 64) in float16, q for scores in base 2; n is a multiple of 64. `mask` is (n, n) in int32, 1
#   where key j ≤ query i and 0 elsewhere. It is always this causal mask.
# - `out` is (n, 64) in float32.
# - **Budget:** the bytes of q once, and of K and V up to the diagonal; the operations of these blocks, with 10 %
#   for the softmax.

# %%
# Your experiment.


# %% nbgrader={"grade": false, "grade_id": "mask", "locked": false, "schema_version": 3, "solution": true, "task": false}
@triton.jit
def mask_kernel(q, k, v, out, D: tl.constexpr):
    ### BEGIN SOLUTION
    program = tl.program_id(0)
    rows = program * 64 + tl.arange(0, 64)
    across = tl.arange(0, D)
    mine = tl.load(q + rows[:, None] * D + across)
    largest = tl.full((64,), -float("inf"), tl.float32)
    s = tl.zeros((64,), tl.float32)
    total = tl.zeros((64, D), tl.float32)
    for first in range(0, (program + 1) * 64, 64):
        columns = first + tl.arange(0, 64)
        keys = tl.load(k + columns[:, None] * D + across)
        values = tl.load(v + columns[:, None] * D + across)
        scores = tl.dot(mine, tl.trans(keys))
        scores = tl.where(columns[None, :] <= rows[:, None], scores, -float("inf"))
        larger = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp2(scores - larger[:, None])
        old = tl.exp2(largest - larger)
        s = s * old + tl.sum(weights, 1)
        total = total * old[:, None] + tl.dot(weights.to(tl.float16), values)
        largest = larger
    tl.store(out + rows[:, None] * D + across, total / s[:, None])
    ### END SOLUTION


def mask(q, k, v, mask, out):
    ### BEGIN SOLUTION
    mask_kernel[(q.shape[0] // 64,)](q, k, v, out, D=64)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "mask-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("modern.mask", mask)

# %% [markdown]
# ### Your answer
#
# Answer in three to five sentences. What loads the bytes that skipping should have saved, why are they just
# as many, and what does your kernel do instead? Cite the bytes of K and V and the bytes of the mask that are
# loaded for a block of 64 × 64 pairs, and one count of your own. A person reads your answer and gives 1 point
# for the cause and 1 point for the numbers.

# %% [markdown] nbgrader={"grade": true, "grade_id": "mask-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** The kernel skips the blocks beyond the diagonal, but in each block that it visits it loads the mask. A
# block of K and V is 2 · 64 · 64 · 2 = 16,384 bytes, and its mask, 64 · 64 numbers of int32, is 16,384 bytes as well.
# So it visits half of the blocks for twice the bytes each. Mine compares row and column numbers, which are in
# registers. At 512 queries it loads 655,360 bytes, where all pairs load 1,114,112 and the colleague's 1,245,184.
#
# **1 point** (cause without numbers): The mask is read from memory in every block and is as large as K and V, so
# skipping saves nothing.
#
# **0 points:** The blocks beyond the diagonal are not skipped. Or: the comparison takes too long.

# %% [markdown]
# ## Beyond · Chunks in a kernel
#
# Open-ended and ungraded. PyTorch writes every intermediate of `chunk` to memory. A kernel keeps the state and a chunk
# on the chip. Write one in Triton, for d = 64 and chunks of 16, without the triangular solve first (linear attention
# with decay: β = 1, and x = v). The figure of merit is **bytes for each token**.
#
# | form | bytes for each token |
# |---|---|
# | token by token, in PyTorch | the cell below |
# | your `chunk`, chunks of 16 | the cell below |
# | bound: q, k, v and out once, in float32 | 1,024 |

# %%
gpulab.need(chunk)
for name in ("token by token", "chunks of 16"):
    print(f"{name:16}{reports[name].bytes / 256:>10,.0f}")

# %%
# Your kernel.

# %% [markdown]
# ## Recap
#
# <details><summary>1. A mask sees one key of every 64. How many blocks does a block mask save?</summary>
#
# None, because every block contains a pair that is seen.
# </details>
#
# <details><summary>2. Why do all heads of a group choose the same blocks?</summary>
#
# They share the cache, so a step reads every block that any of them has chosen.
# </details>
#
# <details><summary>3. How does latent attention decode without keys and values?</summary>
#
# The query is multiplied by the key matrix once, attention sums latents, and the sum is multiplied by the value matrix.
# </details>
#
# <details><summary>4. What do chunks save, and what do they cost?</summary>
#
# The state is read and written once for C tokens, and products become matrix products. The pairs within a chunk cost
# 6·d·C FLOPs for each token.
# </details>
#
# <details><summary>5. How many bytes may a mask have before it costs what it saves?</summary>
#
# If half of the blocks are skipped: as many bytes for each block as K and V have. With more, the mask costs
# more than skipping saves.
# </details>

# %%
gpulab.recap("26")

# %% [markdown]
# ### Cheat sheet
#
# | to | do |
# |---|---|
# | use any mask in one kernel | list the blocks that hold a seen pair, walk through the list |
# | decode sparsely | score block means, sum over heads, `topk`, read whole blocks |
# | decode from latents | (Kᵀ q) · c for scores, V · Σ weight · c for the output |
# | write the delta rule in chunks | a triangular system for what is written, two products for what is read |
# | keep decays finite | exp(gᵢ − gⱼ), never exp(gᵢ) / exp(gⱼ) |
#
# ### Claims you will meet, and what is right
#
# - *Sparse attention is faster in proportion to the pairs it leaves out.* It is faster only in proportion to
#   the whole blocks that it leaves out.
# - *MLA saves computation.* It saves the cache. A pair costs more FLOPs in the absorbed form.
# - *Linear attention is attention without softmax, and as good.* Its state has a fixed size, so it must forget; the
#   gated delta rule chooses what.
# - *Linear attention is fast because it takes fewer FLOPs.* Token by token it takes the fewest, and is slow. Chunks
#   make it fast.
#
# ### References
#
# 1. J. Dong, B. Feng, D. Guessous, Y. Liang, H. He, "Flex Attention: A Programming Model for Generating Optimized Attention
#    Kernels", 2024. https://arxiv.org/abs/2412.05496
# 2. J. Yuan et al., "Native Sparse Attention: Hardware-Aligned and Natively Trainable Sparse Attention", 2025.
#    https://arxiv.org/abs/2502.11089
# 3. DeepSeek-AI, "DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model", 2024.
#    https://arxiv.org/abs/2405.04434
# 4. DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024. https://arxiv.org/abs/2412.19437
# 5. S. Yang, J. Kautz, A. Hatamizadeh, "Gated Delta Networks: Improving Mamba2 with Delta Rule", 2024.
#    https://arxiv.org/abs/2412.06464
# 6. S. Yang, B. Wang, Y. Zhang, Y. Shen, Y. Kim, "Parallelizing Linear Transformers with the Delta Rule over Sequence Length",
#    2024. https://arxiv.org/abs/2406.06484
# 7. Qwen Team, *Qwen3-Next-80B-A3B-Instruct*, 2025, the layers' order.
#    https://huggingface.co/Qwen/Qwen3-Next-80B-A3B-Instruct
