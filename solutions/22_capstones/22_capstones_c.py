# ---
# jupyter:
#   gpulab:
#     lab: "22"
#     hours: 3.5
#     topics: [C24.6]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 22C · Project: an inference service
#
# **About three and a half hours.** You need lab 20 A (the engine, policies, goodput, preemption).
#
# You write the policy of a service that is judged by what its users get in time, under bursts, heavy tails, and somebody who
# wishes it ill. Correctness gives 40 points, goodput 40, what you write 20.
#
# When you are through, you can
#
# 1. keep a machine busy whose memory is short and whose requests do not say how long they get;
# 2. say what a step's tokens cost those who wait for their next one;
# 3. spend capacity on requests that can still be served in time;
# 4. read from a run which limit is broken, and why;
# 5. report what a service can promise, under which load, and what it cannot.

# %%
from dataclasses import replace
from itertools import pairwise

import gpulab
from gpulab import leaderboard, plot, serving
from gpulab.serving import metrics, traces

gpulab.start("22")

# %% [markdown]
# ## 1 · The specification
#
# **The machine** is an A100 with Llama 3 8B, modelled by its roofline (`gpulab.serving.machine`), one millisecond of
# overhead a step. It has 32 slots, and blocks of 16 tokens for keys and values: a request needs blocks for the tokens that
# it *has*, nobody reserves for you.
#
# **A policy** is a function of a `state`, decorated by `@serving.policy`. `state.waiting` and `state.running` hold requests
# with `number`, `arrival`, `prompt`, `most`, `made`, `left` (of the prompt, to go through the model), `tokens` (in the
# cache), `blocks`, `decodes` (nothing is left: a token a step), `preempted`; there are `state.now`, `state.free_blocks`, `state.free_slots` and
# `state.machine` with `slots`, `blocks`, `step_tokens`, `times` and `blocks_for(tokens)`.
#
# It returns a dictionary: `admit` (numbers), `preempt` (they lose their blocks; `left` becomes prompt + `made`), `prefill`
# (number → tokens of its prompt in this step; 0 waits; left out, all that is left goes through). Not everything may stand still.
#
# **The limits** (SLO): first token within 1 s, then 40 ms a token on average. A request that keeps both counts, any
# other counts nothing. **Goodput** is how many count. Everybody must be served, in time or not.
#
# **The traces** are drawn from seeds. Yours are public; the judge has others. A policy sees no output's length, and
# neither may your code look for it.

# %%
TIMES = serving.times("Llama 3 8B", "A100", overhead=0.001)
OFFLINE = serving.Machine(slots=32, blocks=400, times=TIMES)
ONLINE = serving.Machine(slots=32, blocks=2000, step_tokens=1024, times=TIMES)
SLO = serving.SLO(ttft=1.0, tpot=0.04)
print(f"weights are read in {1e3 * TIMES.weights / TIMES.bandwidth:.1f} ms")

# %% [markdown]
# **Predict.** How many tokens in a step take as long to compute, at the GPU's peak?

# %%
gpulab.predict("serving_project.tokens", ...)

# %% jupyter={"source_hidden": true}
sizes = [1, 32, 64, 128, 192, 256, 384, 512, 768, 1024]
plot.lines(
    {"a step": [(n, 1e3 * TIMES.seconds(serving.Work(new=n))) for n in sizes]},
    "tokens in a step",
    "ms (modelled)",
    "Up to the ridge tokens are free; a step of 1,024 makes everybody who waits for a next token wait 50 ms.",
)

# %% [markdown]
# ## 2 · Milestone 1: keep the machine busy
#
# No clock at first: 160 requests are there at the start, with Pareto lengths and `most` = 1,024. Whoever reserves blocks for
# all that might come can use few slots.
#
# **Predict.** 400 blocks of 16 tokens. With blocks reserved for a prompt of 96 tokens and 1,024 of output, how many of the
# 32 slots can be used?

# %%
gpulab.predict("serving_project.reserved", ...)


# %%
def reserving(state):
    """First come, first served, with blocks reserved for the longest output."""
    machine = state.machine
    free = machine.blocks - sum(machine.blocks_for(r.prompt + r.most) for r in state.running)
    room = (machine.step_tokens or 10**9) - sum(r.decodes for r in state.running)
    admit, prefill = [], {}
    for request in state.running:
        if request.left:
            prefill[request.number] = max(0, min(request.left, room))
            room -= prefill[request.number]
    for request in state.waiting[: state.free_slots]:
        free -= machine.blocks_for(request.prompt + request.most)
        if free < 0:
            break
        admit.append(request.number)
        prefill[request.number] = max(0, min(request.left, room))
        room -= prefill[request.number]
    return {"admit": admit, "prefill": prefill}


crowd = [replace(r, arrival=0.0) for r in traces.heavy_tailed(40, 4, 22, prompt_limit=2048, most=1024)]
simple = {
    "static batches": serving.run(OFFLINE, crowd, serving.policies.static),
    "reserving": serving.run(OFFLINE, crowd, reserving),
}
for name, ran in simple.items():
    print(
        f"{name:15}{ran.end:6.1f} s, {sum(s.decoded for s in ran.steps) / len(ran.steps):5.1f} slots give a token, on average"
    )

# %% [markdown]
# **Do.** Write the policy `batch(state)`: all requests served, as fast as you can. Blocks come as tokens come; when the next
# tokens of all who run do not fit, somebody has to go (`preempt`). **Budget:** 120 % of our policy's time for all requests
# at once; static batches take 300 % and more. About 20 lines.


# %% nbgrader={"grade": false, "grade_id": "batch", "locked": false, "schema_version": 3, "solution": true, "task": false}
@serving.policy
def batch(state):
    ### BEGIN SOLUTION
    machine = state.machine
    needs = {r.number: machine.blocks_for(r.tokens + max(1, r.left)) for r in state.running}
    free = machine.blocks - sum(needs.values())
    preempt = []
    for request in reversed(state.running):
        if free >= 0:
            break
        preempt.append(request.number)
        free += needs[request.number]
    admit = []
    for request in sorted(state.waiting, key=lambda r: r.left)[: 0 if preempt else state.free_slots]:
        free -= machine.blocks_for(request.left + 1)
        if free < machine.blocks // 8 and (admit or state.running):
            break
        admit.append(request.number)
    return {"admit": admit, "preempt": preempt}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "batch-check", "locked": true, "points": 26, "schema_version": 3, "solution": false, "task": false}
gpulab.check("serving_project.batch", batch)


# %%
def in_use(ran):
    """(seconds, slots that gave a token), in pieces of a second."""
    found = {}
    for step in ran.steps:
        found.setdefault(int(step.start), []).append(len(step.gave))
    return [(second, sum(gave) / len(gave)) for second, gave in found.items()]


gpulab.need(batch)
mine = serving.run(OFFLINE, crowd, batch.decide)
print(f"yours: {mine.end:.1f} s; preempted {sum(life.preempted for life in mine.lives)} times")
plot.lines(
    {name: in_use(ran) for name, ran in {**simple, "yours": mine}.items()},
    "seconds since the start",
    "requests that get a token in a step",
    "A machine is as fast as its slots are full; at the end only the longest outputs are left.",
)

# %% [markdown]
# **Why.** A step costs nearly the same for 5 requests as for 32, because it reads the weights once. Blocks that are
# held for tokens that never come are slots that stand empty. The price of optimism is a preemption now and then: the
# tokens of one request go through the model twice.
#
# ## 3 · Milestone 2: goodput
#
# Now requests come when they want, and time counts. Three traces: **bursts** of three times the mean rate; **heavy tails**,
# where few requests bring most of the tokens; an **adversary**, who sends prompts of 4,096 to 8,192 tokens and long outputs right before
# crowds of short ones.
#
# **Predict.** Bursts, first come, first served with reserved blocks: of how many requests, in percent, are the limits
# kept?

# %%
gpulab.predict("serving_project.late", ...)


# %%
def with_bursts(seed):
    return traces.bursty(20, 8, seed, peak=3.0, burst=2.0, share=0.25)


TRACES = {
    "bursts": next(t for t in map(with_bursts, range(22, 99)) if len(t) >= 160),
    "heavy tails": traces.heavy_tailed(60, 7, 22),
    "adversary": traces.adversarial(15, 10, 22, long_prompt=8192),
}
first_come = {name: serving.run(ONLINE, trace, reserving) for name, trace in TRACES.items()}
gpulab.predict("serving_project.late", measured=100 * metrics.attainment(first_come["bursts"], SLO))
for name, ran in first_come.items():
    late = sum(metrics.ttft(life) > 1 for life in ran.lives)
    slow = sum(metrics.tpot(life) > 0.04 for life in ran.lives)
    print(f"{name:12}{len(ran.lives):4} requests: {100 * metrics.attainment(ran, SLO):3.0f} % in time, "
          f"{late} with a late first token, {slow} too slow after it")  # fmt: skip

# %% [markdown]
# **See.** When each request of the bursts came, and how long it waited for its first token.

# %% jupyter={"source_hidden": true}
plot.lines(
    {
        "first come, first served": [
            (life.request.arrival, metrics.ttft(life)) for life in first_come["bursts"].lives
        ],
        "limit": [(0, 1.0), (8, 1.0)],
    },
    "arrival, seconds",
    "time to first token, s",
    "Once the queue is longer than a second nobody behind is in time, though all are served in the end.",
)

# %% [markdown]
# **Do.** Write the policy `serve(state)`. At most 1,024 tokens in a step, prompts and outputs together
# (`machine.step_tokens`). **Budget**, on each of the three traces: 95 % of the requests that our policy serves in time;
# below 30 % there are no points for it. About 35 lines.


# %% nbgrader={"grade": false, "grade_id": "serve", "locked": false, "schema_version": 3, "solution": true, "task": false}
@serving.policy
def serve(state):
    ### BEGIN SOLUTION
    machine, times = state.machine, state.machine.times
    rate = times.peak / times.per_token  # tokens of prompts a second

    def order(request):
        hopeless = not request.made and state.now + request.left / rate > request.arrival + 1.0
        return hopeless, request.left, request.number

    needs = {r.number: machine.blocks_for(r.tokens + max(1, r.left)) for r in state.running}
    free, preempt = machine.blocks - sum(needs.values()), []
    for request in sorted(state.running, key=lambda r: (not order(r)[0], r.tokens)):
        if free >= 0:
            break
        preempt.append(request.number)
        free += needs[request.number]
    running = [r for r in state.running if r.number not in preempt]
    room = min(256, machine.step_tokens) - sum(r.decodes for r in running)
    prefill, admit = {}, []
    for request in sorted((r for r in running if r.left), key=order):
        prefill[request.number] = max(0, min(request.left, room))
        room -= prefill[request.number]
    for request in sorted(state.waiting, key=order):
        blocks = machine.blocks_for(request.left)
        if preempt or len(running) + len(admit) == machine.slots or room <= 0:
            break
        if blocks <= free - 60 or not (running or admit):
            admit.append(request.number)
            prefill[request.number] = min(request.left, room)
            room, free = room - prefill[request.number], free - blocks
    return {"admit": admit, "preempt": preempt, "prefill": prefill}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "serve-check", "locked": true, "points": 54, "schema_version": 3, "solution": false, "task": false}
gpulab.check("serving_project.serve", serve)

# %% jupyter={"source_hidden": true}
gpulab.need(serve)
yours = {name: serving.run(ONLINE, trace, serve.decide) for name, trace in TRACES.items()}
plot.panels(
    {
        f"in time, %: {name}": {
            who: 100 * metrics.attainment(runs[name], SLO)
            for who, runs in (("first come, first served", first_come), ("yours", yours))
        }
        for name in TRACES
    },
    "The same machine, the same requests: what counts is whose turn it is.",
)

# %% [markdown]
# **Why.** Throughput is hardly higher than before; the order is another. Requests that cannot be in time any more give way to
# those that can, and short ones go first, because each of them counts as much as a long one. That is what goodput asks
# for, and it is no fair service: a long prompt may wait until the burst is over.
#
# **See.** Who pays: time to first token by length of the prompt, in the adversary's trace.

# %%
gpulab.need(serve)


def by_length(ran):
    """Mean TTFT of the prompts up to so many tokens."""
    found, edges = [], [0, 64, 128, 256, 5500, 8192]
    for low, high in pairwise(edges):
        waits = [metrics.ttft(life) for life in ran.lives if low < life.request.prompt <= high]
        if waits:
            found.append((f"{low + 1:,} to {high:,}", sum(waits) / len(waits)))
    return dict(found)


plot.bars(
    by_length(yours["adversary"]),
    "mean time to first token, s",
    budget=1.0,
    caption="Who is served in time, and who pays for it, by length of the prompt (dashed: the limit).",
)

# %% [markdown]
# ## Detective · The service that is always in time
#
# A colleague runs another service on such an A100, with 16 slots: 24 short questions a second, and now and then somebody who
# has a long document summarised. "Shortest first, in small pieces: nobody who reads an answer waits more than 9 ms for the next
# token. 98 % in time. Support says that documents get no answer. They are long, that takes a while; and
# if it were too much for one GPU we would see it here."


# %%
def gentle(piece=64):
    """Shortest prompts first; a step has `piece` tokens, prompts and outputs together."""

    def decide(state):
        chosen = sorted(state.waiting, key=lambda r: r.left)[: state.free_slots]
        room = piece - sum(r.decodes for r in state.running)
        prefill = {}
        for request in sorted((r for r in (*state.running, *chosen) if r.left), key=lambda r: r.left):
            prefill[request.number] = min(request.left, room)
            room -= prefill[request.number]
        return {"admit": [r.number for r in chosen], "prefill": prefill}

    return decide


questions = traces.poisson(24, 20, 3, traces.Lengths(200, 0.5, 600, 40, 0.6, 200))
documents = traces.poisson(0.5, 20, 4, traces.Lengths(6000, 0.2, 8000, 40, 0.5, 200))
day = sorted([*questions, *documents], key=lambda r: r.arrival)
day = [replace(r, number=n) for n, r in enumerate(day)]
SMALL = serving.Machine(slots=16, blocks=2000, step_tokens=1024, times=TIMES)
shown = serving.run(SMALL, day, gentle())
waits = [metrics.ttft(life) for life in shown.lives]
print(f"{100 * metrics.attainment(shown, SLO):.0f} % of {len(day)} requests in time, median TTFT "
      f"{1e3 * metrics.percentile(waits, 50):.0f} ms, p95 {1e3 * metrics.percentile(waits, 95):.0f} ms; "
      f"{sum(len(s.gave) for s in shown.steps) / len(shown.steps):.1f} of 16 slots give a token")  # fmt: skip
first = sorted(life.tokens[0] for life in shown.lives)
plot.lines(
    {
        "came": [(life.request.arrival, n + 1) for n, life in enumerate(shown.lives)],
        "have their first token": [(time, n + 1) for n, time in enumerate(first)],
    },
    "seconds",
    "requests",
    "The dashboard: whoever comes has a first token, it seems, and no queue grows.",
)

# %% [markdown]
# **Do.** Is it too much for one GPU? `shown.lives` and `shown.steps` are there; `gentle` takes a piece of another size, and
# a trace may be longer, or one request alone. The cell is free.

# %%
# Your experiment.

# %% [markdown]
# ### Your answer
#
# In three to five sentences: who waits, and for what? Is it the GPU that has too little? Which count of your own shows it, and what
# would you change? A person reads this: 1 point for the cause, 1 point for counts of your own.

# %% [markdown] nbgrader={"grade": true, "grade_id": "in-time-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** All six documents wait for 3 to 8 s, and the longest of them, alone on the machine, has its first token after 0.9 s:
# they starve. They are admitted and hold slots, but the tokens of a step go to the shortest prompts, and of those there are always some.
# 64 tokens a step of 8.5 ms are 7,500 tokens a second, and 8,100 come (prompts and outputs). The GPU is not at its limit: up to the
# ridge, 153 tokens, a step takes as long. With pieces of 128 documents wait for 0.6 to 2.2 s, and the 99th percentile of the time
# per output token stays at 9 ms. With 64 and twice the time the longest wait is 22 s: it grows as long as the load lasts. 98 % in time hides
# it, because 1 % of the requests are documents. I would take larger pieces and let age count, and look at TTFT by length.
#
# **1 point** (cause without counts): Shortest first starves the documents, because pieces of 64 tokens serve less than comes.
#
# **0 points:** Long prompts take long. Or: the machine is overloaded, buy a second one.

# %% [markdown]
# ## 4 · The referee, and the leaderboard
#
# The clock is virtual and the engine the judge's: the same policy has the same goodput on every machine. The
# leaderboard counts the public traces; the judge's count for points.

# %%
gpulab.need(batch, serve)
leaderboard.enter("serving", "first version")

# %% [markdown]
# What can still be won: the size of the pieces by what those who decode can bear (40 ms a token on average leaves more than 256
# tokens for a step now and then); preempting somebody who is hopeless before blocks run out; an estimate of outputs from those that are
# through; in bursts giving up on requests earlier.
#
# ## 5 · The report
#
# One page to whoever sells this service. **18 points:**
#
# | points | for |
# |---|---|
# | 5 | what you promise, in numbers: which share in time, under which load, on which traces |
# | 5 | one decision of your policy, switched off: goodput with and without it on all three traces |
# | 5 | who pays: which requests are worse off than with first come, first served, by how much |
# | 3 | limits: what the model of the machine leaves out, what a real adversary would do next, when you would add a machine instead |

# %% [markdown] nbgrader={"grade": true, "grade_id": "serving-report", "locked": false, "points": 18, "schema_version": 3, "solution": true, "task": false}
# **A report with full points says, for example:**
#
# *Promise.* On one A100, Llama 3 8B, first token in a second and 40 ms after it: 55 % in time on bursts, 93 % on heavy
# tails, 95 % on the adversary's; first come, first served has 16, 14 and 35 %. In bursts of 60 a second we promise nothing.
#
# *Decided.* Without "hopeless last" (order by length only) 42 % are in time on bursts, 92 % on heavy tails, 95 % on the
# adversary's. It matters in bursts, where the queue holds many that are late; elsewhere hardly anybody is.
#
# *Who pays.* The adversary's five prompts above 5,500 tokens wait for 2.1 s on average and 3.0 s at most, before 1.1 and 2.4 s. Under
# steady overload the longest would starve; we would let age count.
#
# *Limits.* Times are a roofline: real steps are slower, and more so with many short pieces. Whoever knows the policy splits a long
# prompt into short ones. In bursts half of the requests are late with our policy, too: that takes another machine, no other policy.
#
# *Points are taken off* for goodput without its load, for means where the tail is the question, for a policy that
# knows the outputs.

# %% [markdown]
# ## Recap
#
# <details><summary>1. Why does a step of 1,024 tokens of prompts hurt those who decode?</summary>
#
# It takes as long as its arithmetic, about 50 ms, and they get one token in it. The ridge is at about 150 tokens.
# </details>
#
# <details><summary>2. Why not reserve blocks for the longest output?</summary>
#
# Most outputs are short: blocks stand empty, and with them slots. Preempting somebody now and then costs less.
# </details>
#
# <details><summary>3. Whom do you preempt?</summary>
#
# Who is late anyway; else who has the fewest tokens in the cache, because they are computed again.
# </details>
#
# <details><summary>4. A policy doubles goodput. Has throughput grown?</summary>
#
# Not necessarily. The same tokens in another order may bring more requests in time.
# </details>
#
# <details><summary>5. What is wrong with shortest first?</summary>
#
# Under steady overload long requests never get their turn.
# </details>

# %%
gpulab.recap("22")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | a step's time | the slower of weights and caches over bandwidth, and FLOPs over peak |
# | tokens that cost no time | peak / bandwidth · bytes of a parameter / 2 |
# | blocks of a request | its tokens after the step / 16, rounded up |
# | hopeless | now + left / (tokens a second) > arrival + limit |
# | goodput | requests that keep all limits |
#
# ### Claims you will meet, and what is right
#
# - *Maximise throughput, and latency follows.* Throughput is highest with long queues and large steps; both break limits.
# - *First come, first served is fair, so it is best.* Under overload it makes everybody late.
# - *Goodput above all.* A service that is judged by it alone drops long requests. Say who pays.
#
# ### References
#
# 1. Y. Zhong et al., "DistServe: Disaggregating Prefill and Decoding for Goodput-optimized Large Language Model Serving",
#    OSDI 2024. https://arxiv.org/abs/2401.09670
# 2. A. Agrawal et al., "Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve", OSDI 2024.
#    https://arxiv.org/abs/2403.02310
# 3. W. Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention", SOSP 2023.
#    https://arxiv.org/abs/2309.06180
# 4. G.-I. Yu et al., "Orca: A Distributed Serving System for Transformer-Based Generative Models", OSDI 2022.
#    https://www.usenix.org/conference/osdi22/presentation/yu
# 5. Y. Wang et al., "BurstGPT: A Real-world Workload Dataset to Optimize LLM Serving Systems", 2024.
#    https://arxiv.org/abs/2401.17644
