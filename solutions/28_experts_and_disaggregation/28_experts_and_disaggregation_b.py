# ---
# jupyter:
#   gpulab:
#     lab: "28"
#     hours: 3
#     topics: [C28.6, C28.7, C28.8, C28.9, C28.10, C28.11]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 28B · Fleets: pools, routers, rollouts, and what goes wrong
#
# **2.5 to 4 hours.** You have done labs 19 (caches, speculative decoding) and 20 (engines, queues). You need no
# GPU: times are modelled or on a virtual clock.
#
# One engine on one node is the subject of lab 20. A service that millions use is a fleet: some GPUs compute
# prompts and others decode, a router decides which replica sees which request, and beside them a training run
# may generate its own data with the same engines. At that size something is always broken, and the worst kind
# of broken is the kind that nobody notices.
#
# By the end you can
#
# 1. divide GPUs between prefill and decode for given limits, with the cache's transfer in the bill;
# 2. say why the router with the most cache hits may be the slowest;
# 3. verify a tree of guesses without changing what the model would say;
# 4. plan generation, training and weight syncs of a reinforcement learning run;
# 5. find and correct a flipped bit for less than a tenth of a percent of the work;
# 6. say which parts of which files a rank of another layout reads from a checkpoint.

# %%
import tempfile

import numpy as np
import torch
import torch.distributed as dist

import gpulab
from gpulab import distributed, plot, serving
from gpulab.serving import replicas

gpulab.start("28")
torch.set_num_threads(1)

# %% [markdown]
# ## 1 · Two kinds of work
#
# Prefill computes a whole prompt at once and is limited by arithmetic. Decode makes a token for each request
# and is limited by reading weights. On one GPU they disturb each other: while a prompt is computed, nobody
# gets a token. Lab 20 cut prompts into pieces so that the pause becomes short. **Disaggregation** separates
# them: one pool of GPUs only prefills, another only decodes, and keys and values travel from one to the other
# (Y. Zhong et al., "DistServe", 2024; R. Qin et al., "Mooncake", 2024).
#
# ![Together, a long prompt stands between two tokens of everybody else. Apart, one GPU computes prompts and sends keys and values; the other decodes without a pause.](drawings/apart.svg)
#
# **Predict.** A prompt of 8,000 tokens comes in and is computed whole, at 30 µs a token. A decode step takes
# 10 ms. How long is the longest gap between two tokens of a user on the same GPU?

# %%
gpulab.predict("fleet.gap", ...)

# %% jupyter={"source_hidden": true}
llama, tokens = serving.times("Llama 3 70B", "H100", gpus=4), np.array([500, 1000, 2000, 4000, 8000, 16000])
work = [llama.seconds(serving.Work(new=int(n), pairs=int(n) ** 2 // 2)) for n in tokens]
step = llama.seconds(serving.Work(new=32, read=32 * 2000))
moved = tokens * llama.token_bytes / 50e9  # one network card of 400 Gbit/s for the pool: an assumption
plot.lines(
    {
        "gap on a shared GPU": [(int(n), 1e3 * (w + step)) for n, w in zip(tokens, work, strict=True)],
        "transfer of the cache": [(int(n), 1e3 * float(m)) for n, m in zip(tokens, moved, strict=True)],
        "gap on a decode GPU": [(int(n), 1e3 * step) for n in tokens],
    },
    "tokens of the prompt",
    "ms",
    "Modelled for Llama 3 70B on four H100: the transfer is paid once per request, a shared GPU's gap by everybody who decodes there.",
    log_x=True,
    log_y=True,
)

# %% [markdown]
# **Do.** Write `pools(load, times, limits)`, the policy that divides GPUs.
#
# - Input: `load` has `rate` (requests per second), `prompt` and `output` (tokens of each). `times` has
#   seconds: `prefill` for a prompt token, `step` for a decode step without requests, `request` more for each
#   request in the step, `transfer` for a prompt token's keys and values. `limits` has seconds: `first` for
#   the first token on average, `between` for the longest gap between two tokens.
# - Output: `["together", N]` or `["apart", P, D]`, whichever meets both limits with fewer GPUs. At least one of the
#   two ways is possible. If both need equally many GPUs, return either.
# - Counted: GPUs beyond the least. Length: about 20 lines.
#
# The rules, with T = prompt · prefill:
#
# | | apart | together |
# |---|---|---|
# | busy with prompts | u = rate · T / P | u = rate · T / N |
# | mean wait of a prompt (M/D/1, lab 20) | u / (2 (1 − u)) · T | the same |
# | first token | wait + T + prompt · transfer | wait + T |
# | a decode step | step / (1 − rate · output · request / D) | the same with N · (1 − u) for D |
# | longest gap | a decode step | a decode step + T |
#
# In the row of the decode step, "the same" means step / (1 − rate · output · request / (N · (1 − u))), because
# together only the share 1 − u of each GPU's time is left for decoding. If u or the fraction behind "1 −" is 1
# or more, there are too few GPUs.
#
# The rule for the step follows from Little's law: a GPU has rate / D · output · s requests at a time, where s is
# the time of a step. Put that number of requests into s = step + requests · request, and solve for s.


# %% nbgrader={"grade": false, "grade_id": "pools", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pools(load, times, limits):
    ### BEGIN SOLUTION
    rate, seconds, infinite = load["rate"], load["prompt"] * times["prefill"], float("inf")
    transfer = load["prompt"] * times["transfer"]

    def first(gpus):
        busy = rate * seconds / gpus
        return infinite if busy >= 1 else busy / (2 * (1 - busy)) * seconds + seconds

    def step(gpus):
        share = infinite if gpus <= 0 else rate * load["output"] * times["request"] / gpus
        return infinite if share >= 1 else times["step"] / (1 - share)

    def together(gpus):
        gap = step(gpus - rate * seconds) + seconds
        return first(gpus) <= limits["first"] and gap <= limits["between"]

    def least(holds):
        return next((gpus for gpus in range(1, 2000) if holds(gpus)), infinite)

    n = least(together)
    p = least(lambda gpus: first(gpus) + transfer <= limits["first"])
    d = least(lambda gpus: step(gpus) <= limits["between"])
    return ["together", n] if n <= p + d else ["apart", p, d]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "pools-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("fleet.pools", pools)

# %%
gpulab.need(pools)
times = {"prefill": 3e-5, "step": 0.008, "request": 2e-4, "transfer": 1e-5}
limits, rows = {"first": 0.8, "between": 0.05}, {}
for prompt in (200, 500, 1000, 2000, 4000):
    plan = pools({"rate": 30, "prompt": prompt, "output": 200}, times, limits)
    rows[f"{prompt:,} tokens, {plan[0]}"] = float(sum(plan[1:]))
plot.bars(
    rows,
    "GPUs for 30 requests a second",
    caption="Your plans: short prompts fit between two tokens, so both kinds of work share the GPUs; long prompts need pools of their own.",
)

# %% [markdown]
# **Why.** Neither way is always better. Together, every GPU's spare time is useful to both kinds of work, and
# nothing travels. Apart, each limit is met by a separate pool, whose GPUs may even be of another type. The transfer
# counts against the first token, so with a slow network you need more prefill GPUs, or cannot meet the limit at
# all.
#
# ## Detective · The router with the best hits
#
# Several replicas serve the same model, and each has its own cache of prompts (lab 20). A request whose
# beginning is cached somewhere should go there. A colleague writes a router that does it, and reports: "My
# router sends each request to the replica with the longest cached beginning. Nobody has a better hit rate.
# Yet users wait for seconds, although the four replicas together have only 70 % of the work that they could do."
#
# `replicas.run` has four replicas, which compute 100 blocks of prompts a second each. The router gets the
# blocks of the prompt and, for each replica, the numbers of its cached blocks and how many blocks are still
# `queued` there. A block's number stands for its tokens *and all before them*.


# %%
def theirs(blocks, replicas_):
    def match(replica):
        cached = set(replica["cached"])
        return next((n for n, block in enumerate(blocks) if block not in cached), len(blocks))

    return max(range(4), key=lambda r: (match(replicas_[r]), -replicas_[r]["queued"]))


def in_turn():
    count = [-1]

    def route(blocks, replicas_):
        count[0] += 1
        return count[0] % 4

    return route


requests = replicas.traffic("a popular start", np.random.default_rng(0))
print(f"{'router':10}{'hits':>8}{'first token, mean':>20}{'slowest':>10}")
for name, router in (("theirs", theirs), ("in turn", in_turn())):
    ran = replicas.run(requests, router)
    print(f"{name:10}{100 * ran.hits:6.1f} %{ran.mean:18.2f} s{max(ran.first):8.2f} s")

# %% [markdown]
# The hit rates are almost equal, and the router that pays no attention to the cache is far faster. Find out why.
# For each request, `ran` has `ran.replica`, `ran.first` (seconds), `ran.found` (cached blocks) and `ran.blocks`.
# Then do the same with `"conversations"` in place of `"a popular start"`, where each request repeats what was said
# before.

# %%
# Your experiments:

# %% [markdown]
# **Do.** Write `route(blocks, replicas)`, a better router.
#
# - Input: as above; `replicas` is a list of `{"cached": [...], "queued": number of blocks}`.
# - Output: the number of a replica.
# - Counted: the mean time to the first token, at most 1.1 times that of the best router we know, on four
#   kinds of traffic. Length: about 6 lines.


# %% nbgrader={"grade": false, "grade_id": "route", "locked": false, "schema_version": 3, "solution": true, "task": false}
def route(blocks, replicas):
    ### BEGIN SOLUTION
    def work(replica):
        cached = set(replica["cached"])
        known = next((n for n, block in enumerate(blocks) if block not in cached), len(blocks))
        return replica["queued"] + len(blocks) - known

    return min(range(len(replicas)), key=lambda r: work(replicas[r]))
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "route-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("fleet.route", route)

# %%
gpulab.need(route)
compared = {}
for kind in ("a popular start", "conversations"):
    requests = replicas.traffic(kind, np.random.default_rng(0))
    routers = {"longest match": theirs, "in turn": in_turn(), "yours": route}
    compared[f"{kind}, s"] = {name: replicas.run(requests, router).mean for name, router in routers.items()}
plot.panels(
    compared,
    "Mean time to the first token. The longest match fails where one start is popular, turns fail where conversations have histories.",
)

# %% [markdown]
# ### Your answer
#
# Answer in three to five sentences. Why do users wait with the colleague's router, although the replicas
# together have time left, and why does its hit rate not show it? Why is sending requests in turn no
# remedy? Cite, from your own experiments, how many requests the busiest replica got and the hit rates of both
# routers for conversations. A person reads your answer and gives 1 point for the cause and 1 point for the
# numbers.

# %% [markdown] nbgrader={"grade": true, "grade_id": "route-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** The popular start is cached first on one replica, so the longest match sends every request with
# it there: 184 of 240 requests go to one of four replicas, whose queue grows without end while others idle. The
# hit rate counts cached blocks and not waiting: 80.5 %, against 79.2 % in turn. But in turn, conversations lose
# their caches: 27 % hits instead of 75 %, which is more work than four replicas can do. What must be small is
# the queue plus what is not cached.
#
# **1 point** (cause without numbers): One replica gets almost all requests, because only it has the popular
# start.
#
# **0 points:** The cache is too small. Or: the hit rate is wrong.

# %% [markdown]
# ## 2 · A tree of guesses
#
# Lab 19 verified one chain of guesses. The first wrong guess ends the round and all after it are wasted. A
# **tree** has several guesses for the same place, the **siblings**, and one pass of the target scores all of
# them: each node sees only its ancestors, by a mask. EAGLE-3 drafts such trees with a small head on the
# target's hidden states; the multi-token-prediction (MTP) modules of DeepSeek-V3 draft a chain.
#
# ![A tree with two guesses behind the text, and one guess behind each. The first sibling is judged against p; if it is not kept, the second is judged against what is left of p.](drawings/tree.svg)
#
# How should siblings be judged? The first one as in lab 19: keep token t with probability min(1, p(t) /
# q(t)). If it is not kept, the next token must come from what is left of p: max(0, p − q), divided by its sum.
# Call this the new p, and judge the second sibling against it in the same way. This is multi-step speculative sampling (X. Miao et
# al., "SpecInfer", 2023). It keeps the target's distribution for the same reason as a single guess does.
#
# **Predict.** p = (0.5, 0.3, 0.2) and q = (0.2, 0.3, 0.5). Two siblings are drawn independently from q. In
# what percentage of rounds is one of them kept? (One guess is kept in 70 %. If the first is not kept, what is
# left of p is (1, 0, 0).)

# %%
gpulab.predict("fleet.kept", ...)

# %% [markdown]
# **Do.** Write `verify(tree, q, p, choose)`.
#
# - Input: `tree` is a list of nodes `[parent, token]`; a parent comes before its children, and −1 is the text
#   itself. Row `p[0]` has the target's probabilities behind the text, `p[i + 1]` those behind node i; `q`
#   likewise the draft's. The children of a place were drawn independently from its row of q, in the order of
#   the tree; two may have the same token.
# - `choose(probabilities)` draws an index, as in lab 19. It is your only source of chance.
# - Output: the tokens of this round: the kept ones, and one more, drawn from what is left of p at the place
#   where no child was kept (or from p itself, where there is none).
# - Counted: the distribution must be exactly the target's, and a round must bring as many tokens on average as
#   this rule does.
# - Length: about 15 lines.


# %% nbgrader={"grade": false, "grade_id": "verify", "locked": false, "schema_version": 3, "solution": true, "task": false}
def verify(tree, q, p, choose):
    ### BEGIN SOLUTION
    node, row, kept = -1, p[0], []
    while True:
        for child, (parent, token) in enumerate(tree):
            if parent != node:
                continue
            keep = min(1.0, row[token] / q[node + 1][token])
            if choose([keep, 1 - keep]) == 0:
                kept.append(token)
                node, row = child, p[child + 1]
                break
            left = [max(0.0, a - b) for a, b in zip(row, q[node + 1], strict=True)]
            row = [x / sum(left) for x in left]
        else:
            return [*kept, choose(row)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "verify-check", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
gpulab.check("fleet.verify", verify)

# %%
gpulab.need(verify)
numbers, V = np.random.default_rng(0), 16
curves = {"verify": [], "draw, then look": []}
for siblings in (1, 2, 3, 4, 6, 8):
    kept = looked = 0
    for _ in range(1500):
        p, noise = numbers.dirichlet(np.full(V, 0.5)), numbers.dirichlet(np.full(V, 0.5))
        q = 0.5 * p + 0.5 * noise
        guesses = [int(t) for t in numbers.choice(V, siblings, p=q)]

        def choose(row):
            return int(numbers.choice(len(row), p=np.array(row) / sum(row)))

        kept += len(verify([[-1, t] for t in guesses], [q.tolist()] * 9, [p.tolist()] * 9, choose)) - 1
        looked += choose(p) in guesses
    curves["verify"].append((siblings, 100 * kept / 1500))
    curves["draw, then look"].append((siblings, 100 * looked / 1500))
plot.lines(
    curves,
    "siblings",
    "% of rounds in which a guess is kept",
    "Both keep the target's distribution. Judging against q keeps more than drawing from p and looking whether the token was guessed.",
)

# %% [markdown]
# **Why.** Each further sibling helps less than the one before, and each takes a row of the target's pass. With few
# requests a pass has room for dozens of rows for free; a full batch has none (lab 19's `draft_length`).
#
# ## 3 · Learning from its own answers
#
# In reinforcement learning with language models the training data are the model's own answers, the
# **rollouts**. A batch is generated by a serving engine, **rewards** score it, the trainer makes a step, and
# the new weights go back to the engine: a **sync**. Generation is decoding, so it often takes most of the
# time. For a model of 10¹² parameters on thousands of GPUs, a sync of about 20 s is reported (Mooncake's
# documentation, 2025).
#
# If the engine and the trainer take turns, one of them is always idle. If the engine generates batch k + 1 while
# batch k is trained, both work, but the rollouts come from weights that are a version older. This **staleness**
# makes them slightly wrong data, which the loss corrects by a ratio of probabilities, and so one allows only a
# little.
#
# ![In turn: generate, train and sync follow one another, and one of both rows is always idle. One behind: generation of the next batch and training overlap, and a sync stops both.](drawings/rollouts.svg)
#
# **Predict.** A batch takes 20 s to generate, 3 s for its rewards and 24 s to train, and a sync takes 15 s. How
# long do 6 batches take in turn, with a sync between any two of them?

# %%
gpulab.predict("fleet.turns", ...)

# %% [markdown]
# **Do.** Write `rollouts(batches, times, stale)`, which fills the schedule.
#
# - Input: `times` has whole seconds: `generate`, `reward`, `train` for a batch, and `sync`.
# - Output: a list with the **version** of the weights that generates each batch. Version v exists when
#   batches 0 to v − 1 are trained. Batch k may have versions k − `stale` to k, and versions never fall.
# - The engine generates batches in order. Before the first batch of a new version it syncs: this starts when
#   the engine is free and the trainer has finished that version, and stops both for `sync` seconds.
# - The trainer trains batches in order, each as soon as its rewards are there and the trainer is free. If your
#   list has a sync of version v, batch v is trained after that sync and not before, even if the trainer is free.
# - Counted: the time until the last batch is trained, at most 2 % above the least. There are at most 7
#   batches.
# - Length: about 22 lines. Trying all lists is allowed.


# %% nbgrader={"grade": false, "grade_id": "rollouts", "locked": false, "schema_version": 3, "solution": true, "task": false}
def rollouts(batches, times, stale):
    ### BEGIN SOLUTION
    def end(versions):
        generator = trainer = trained = 0
        scored = []
        for version in versions:
            if version > trained:
                for done in range(trained, version):
                    trainer = max(trainer, scored[done]) + times["train"]
                trained = version
                generator = trainer = max(generator, trainer) + times["sync"]
            generator += times["generate"]
            scored.append(generator + times["reward"])
        for done in range(trained, batches):
            trainer = max(trainer, scored[done]) + times["train"]
        return trainer

    lists = [[]]
    for batch in range(batches):
        lists = [
            [*before, version]
            for before in lists
            for version in range(max(before[-1] if before else 0, batch - stale), batch + 1)
        ]
    return min(lists, key=end)
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "rollouts-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("fleet.rollouts", rollouts)

# %%
gpulab.need(rollouts)
TIMES = {"generate": 20, "reward": 3, "train": 24, "sync": 15}


def spans(versions, title):
    """The schedule of a list of versions, by the rules above."""
    generator = trainer = trained = 0
    scored, found = [], []

    def train(upto):
        nonlocal trainer, trained
        while trained < upto:
            start = max(trainer, scored[trained])
            trainer, trained = start + TIMES["train"], trained + 1
            found.append(plot.Span(f"{title}: trainer", start, trainer, str(trained - 1), "work on a batch"))

    for batch, version in enumerate(versions):
        if version > trained:
            train(version)
            start = max(generator, trainer)
            generator = trainer = start + TIMES["sync"]
            for row in ("engine", "trainer"):
                found.append(plot.Span(f"{title}: {row}", start, generator, "sync", "sync"))
        start, generator = generator, generator + TIMES["generate"]
        found.append(plot.Span(f"{title}: engine", start, generator, str(batch), "work on a batch"))
        scored.append(generator + TIMES["reward"])
    train(len(versions))
    return found


plot.timeline(
    [s for stale in (0, 1, 2) for s in spans(rollouts(6, TIMES, stale), f"stale {stale}")],
    "s",
    caption="Your schedules for six batches: with more staleness both sides wait less, and fewer syncs are needed.",
)

# %% [markdown]
# **Why.** Staleness buys two things: the sides no longer wait for each other, and a sync can serve several
# batches. Answers also differ in length, and the longest of a batch keeps an engine waiting with nearly empty
# steps; systems therefore let an answer continue across a sync, under two versions.
#
# ## 4 · A flipped bit
#
# Memory is protected by ECC; the arithmetic of a GPU is not, or hardly. A chip with a defect may return a
# wrong product now and then, without any error. This is **silent data corruption**. H. Dixit et al. (2021)
# describe how a large fleet met it.
#
# A product can check itself. Append to A a row with the sums of its columns, and to B a column with the sums
# of its rows. Then the product of both has the sums of C's columns in its last row, and the sums of its rows
# in its last column. This is **algorithm-based fault tolerance** (ABFT; K.-H. Huang and J. Abraham, 1984).
#
# ![C with a row and a column of checksums. A wrong element makes exactly one row sum and one column sum wrong, and lies where they cross.](drawings/checksums.svg)
#
# **Predict.** By what percentage do the checksums increase the work for 4,096 × 4,096 matrices?

# %%
gpulab.predict("fleet.checksums", ...)

# %% [markdown]
# **Do.** Write `mend(c, tolerance)`.
#
# - Input: `c`, a list of m + 1 rows of n + 1 numbers: a product with checksums, made in float32. At most one
#   of its numbers had one bit flipped; this number may be a checksum, and it may have become as large as
#   10³⁸.
# - A sum is off if it differs by more than `tolerance`; smaller differences are rounding. A flip whose size is
#   close to the tolerance may put a row off and no column: then leave the product as it is.
# - Output: the product without its checksums, m rows of n numbers, with the right number in the place of the
#   wrong one.
# - Length: about 9 lines.


# %% nbgrader={"grade": false, "grade_id": "mend", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mend(c, tolerance):
    ### BEGIN SOLUTION
    def wrong(lines):
        return [i for i, line in enumerate(lines) if abs(sum(line[:-1]) - line[-1]) > tolerance]

    product = [row[:-1] for row in c[:-1]]
    rows, columns = wrong(c), wrong(list(zip(*c, strict=True)))
    if rows and columns and rows[0] < len(product) and columns[0] < len(product[0]):
        i, j = rows[0], columns[0]
        product[i][j] = c[i][-1] - sum(x for n, x in enumerate(c[i][:-1]) if n != j)
    return product
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "mend-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("fleet.mend", mend)

# %%
gpulab.need(mend)
numbers = np.random.default_rng(0)
a, b = (numbers.standard_normal((64, 64)).astype(np.float32) for _ in range(2))
c = np.vstack([a, a.sum(0)]) @ np.hstack([b, b.sum(1, keepdims=True)])
rounding = max(np.abs(c[:, :-1].sum(1) - c[:, -1]).max(), np.abs(c[:-1].sum(0) - c[-1]).max())
tolerance, found = 4 * float(rounding), []
i, j = np.argwhere((np.abs(c[:-1, :-1]) > 0.5) & (np.abs(c[:-1, :-1]) < 1))[
    0
]  # between 1 and 2, bit 30 makes NaN
for bit in range(32):
    hurt = c.copy()
    hurt.view(np.uint32)[i, j] ^= np.uint32(1 << bit)
    with np.errstate(all="ignore"):
        error = float(np.abs(hurt[i, j] - c[i, j]))
        after = abs(mend([[float(x) for x in row] for row in hurt], tolerance)[i][j] - c[i, j])
    found.append((bit, max(error, 1e-9), max(float(after), 1e-9)))
ax = plot.axes(6.6, 3.0)
ax.plot([f[0] for f in found], [f[1] for f in found], marker="o", color=plot.ALARM)
ax.plot([f[0] for f in found], [f[2] for f in found], marker="o", color=plot.DEEP)
ax.axhline(tolerance, color=plot.INK, linestyle=":", linewidth=0.8)
ax.annotate("flipped", (25.5, 1e12), color=plot.ALARM)
ax.annotate("after your mend", (17, 1e-11), color=plot.DEEP)
ax.set(yscale="log", xlabel="bit that flips", ylabel="error of the element", ylim=(1e-14, 1e42))
plot.picture(
    ax,
    "Flips above the tolerance (dotted) are found and mended down to rounding; smaller ones hide in it and do no more harm than it does.",
)

# %% [markdown]
# **Why.** The tolerance is the weak point: rounding of the sums must stay below it, and flips below it stay. In
# BF16 or FP8 the checksums should therefore be kept in float32. And a chip that is wrong once will be wrong again,
# so a correction only buys the time to take it out of service.
#
# ## 5 · A checkpoint for another layout
#
# Lab 18 restarted a run from a checkpoint. After a failure fewer GPUs may be left, or serving needs another layout
# than training. If each rank wrote only its own shard, how are the shards put together?
# `torch.distributed.checkpoint` stores with each chunk **where in the whole tensor it lies**. Another layout then
# reads the parts it needs, and no rank ever holds everything.


# %%
def save(place):
    import torch.distributed.checkpoint as dcp
    from torch.distributed.tensor import Shard, distribute_tensor, init_device_mesh

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    whole = torch.arange(96.0).view(12, 8)
    dcp.save({"w": distribute_tensor(whole, mesh, [Shard(0)])}, checkpoint_id=place)


def load(place):
    import torch.distributed.checkpoint as dcp
    from torch.distributed.tensor import Shard, init_device_mesh, zeros

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    state = {"w": zeros(12, 8, device_mesh=mesh, placements=[Shard(1)])}
    dcp.load(state, checkpoint_id=place)
    return state["w"].to_local()


with tempfile.TemporaryDirectory() as place:
    distributed.run(save, 4, place)
    from torch.distributed.checkpoint import FileSystemReader

    for chunk in FileSystemReader(place).read_metadata().state_dict_metadata["w"].chunks:
        print("a chunk starts at", tuple(chunk.offsets), "and has the size", tuple(chunk.sizes))
    parts = distributed.run(load, 2, place)
whole = torch.cat([parts[0], parts[1]], 1)
print("saved by rows on 4 ranks, read by columns on 2:", torch.equal(whole, torch.arange(96.0).view(12, 8)))

# %% jupyter={"source_hidden": true}
ax = plot.axes(4.2, 3.2)
for rank in range(4):
    ax.axhspan(3 * rank, 3 * rank + 3, color=plot.DEEP, alpha=0.1 + 0.06 * rank)
    ax.annotate(f"file of rank {rank}", (0.2, 3 * rank + 1.7), color=plot.INK)
ax.axvspan(4, 8, fill=False, edgecolor=plot.ALARM, linewidth=2.5)
ax.annotate("new rank 1", (5.2, 1.7), color=plot.ALARM)
ax.set(xlim=(0, 8), ylim=(12, 0), xlabel="column", ylabel="row")
plot.picture(
    ax, "What rank 1 of the new layout needs: the right half of each of the four files, and nothing else."
)

# %% [markdown]
# **Do.** Write `reads(saved, wanted)`, the plan of one rank.
#
# - Input: `saved` is a list of chunks `[file, [row, column], [rows, columns]]`: where in the whole matrix a
#   chunk starts, and its size. `wanted` is the box `[[row, column], [rows, columns]]` that this rank needs.
# - Output: a list of pieces `[file, start in the chunk, size, start in the box]`, the last three as `[row,
#   column]` pairs. Together they fill the box, each number once. What a chunk and the box share is one piece; a
#   chunk that shares nothing has none.
# - Length: about 8 lines.


# %% nbgrader={"grade": false, "grade_id": "reads", "locked": false, "schema_version": 3, "solution": true, "task": false}
def reads(saved, wanted):
    ### BEGIN SOLUTION
    (r, c), (height, width) = wanted
    pieces = []
    for name, (row, column), (h, w) in saved:
        top, left = max(r, row), max(c, column)
        rows, columns = min(r + height, row + h) - top, min(c + width, column + w) - left
        if rows > 0 and columns > 0:
            pieces.append([name, [top - row, left - column], [rows, columns], [top - r, left - c]])
    return pieces
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "reads-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("fleet.reads", reads)

# %% [markdown]
# ## Beyond · A router that knows less
#
# This task is open-ended and ungraded. A real router does not see the caches: it remembers what it sent where,
# and guesses what was evicted. The **figure of merit** is the mean time to the first token for each kind of
# traffic, in units of `route`'s. Naive, in turn: 1 where nothing is shared, about 20 for conversations.
# Reference, with everything known: 1. The bound is not known, and 1 can be beaten: sometimes it is better to
# keep a request away from a cache that the next one needs.

# %%
gpulab.need(route)
for kind in ("all new", "conversations", "both", "a popular start"):
    requests = replicas.traffic(kind, np.random.default_rng(1))
    print(f"{kind:17}{replicas.run(requests, route).mean:8.3f} s")

# %% [markdown]
# ## Recap
#
# <details><summary>1. When are separate pools for prefill and decode worth the transfer between them?</summary>
#
# When a prompt is too long to be computed between two tokens, and the network brings its cache fast enough for the
# first token.
# </details>
#
# <details><summary>2. What should a router minimise when its replicas have caches?</summary>
#
# What is queued at the replica plus what it would have to compute, because that is the wait.
# </details>
#
# <details><summary>3. Why is the second sibling judged against what is left of p?</summary>
#
# The first has already given each token min(p, q). Only the rest may still be given, or some tokens come too
# often.
# </details>
#
# <details><summary>4. What does staleness buy, and what does it cost?</summary>
#
# Both sides work at the same time and syncs become fewer; the data come from older weights.
# </details>
#
# <details><summary>5. Why must a corrected number not be computed from the wrong one?</summary>
#
# The wrong one may be 10³⁸, and a difference from it keeps no digit of the right value.
# </details>

# %%
gpulab.recap("28")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | longest gap on a shared GPU | a decode step and a whole prompt, or a piece of it |
# | first token with pools | wait + prompt + transfer of its cache |
# | where to send a request | least (queued + not cached) |
# | siblings in a tree | min(1, p/q), then p ← max(0, p − q), normalised |
# | version of batch k | k − stale to k; a sync stops both sides |
# | ABFT of an m × n product | 1/m + 1/n more work; one error is found and corrected |
# | reading a checkpoint | the intersections of two boxes |
#
# ### Claims you will meet, and what is right
#
# - *Disaggregation makes serving cheaper.* It meets two limits at once; with short prompts it needs more GPUs.
# - *The higher the hit rate, the better the router.* A hit that waits in a queue is slower than a miss beside
#   it.
# - *Verifying a tree is the same as looking whether the sampled token is in it.* That is right, and keeps
#   fewer guesses.
# - *ECC protects against flipped bits.* In memory. A wrong product is stored with the right ECC.
#
# ### References
#
# 1. Y. Zhong et al., "DistServe: Disaggregating Prefill and Decoding for Goodput-optimized Large Language
#    Model Serving", 2024. https://arxiv.org/abs/2401.09670
# 2. R. Qin et al., "Mooncake: A KVCache-centric Disaggregated Architecture for LLM Serving", 2024.
#    https://arxiv.org/abs/2407.00079
# 3. X. Miao et al., "SpecInfer: Accelerating Large Language Model Serving with Tree-based Speculative
#    Inference and Verification", 2024. https://arxiv.org/abs/2305.09781
# 4. Y. Li et al., "EAGLE-3", 2025. https://arxiv.org/abs/2503.01840
# 5. K.-H. Huang, J. Abraham, "Algorithm-Based Fault Tolerance for Matrix Operations", IEEE Transactions on
#    Computers C-33, 1984. https://doi.org/10.1109/TC.1984.1676475
# 6. H. Dixit et al., "Silent Data Corruptions at Scale", 2021. https://arxiv.org/abs/2102.11245
# 7. PyTorch, "Distributed Checkpoint". https://docs.pytorch.org/docs/stable/distributed.checkpoint.html
