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
# **3.5 to 5.5 hours.** You need lab 20 A (the engine, policies, goodput, preemption).
#
# You write the policy of a service that is judged by what its users receive in time, under bursts, heavy tails, and
# an adversary. You get up to 40 points for correctness, 40 for goodput, and 20 for what you write.
#
# By the end of this project, you can
#
# 1. keep a machine busy although its memory is short and its requests do not say how long their outputs will be;
# 2. say what the tokens of a step cost the requests that wait for their next token;
# 3. spend capacity on requests that can still be served in time;
# 4. read from a run which limit is broken, and why;
# 5. report what a service can promise, under which load, and what it cannot.
#
# | sitting | sections | hours | what it is about |
# |---|---|---|---|
# | 1 | 1 to 3 | 2 to 3.5 | the two policies, one for throughput and one for goodput |
# | 2 | detective, 4 and 5, recap | 1 to 2 | a service that is always in time, the leaderboard, and your report |

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
# **The machine** is an A100 with Llama 3 8B, modelled by its roofline (`gpulab.serving.machine`), with one
# millisecond of overhead a step. It has 32 slots, and blocks of 16 tokens for keys and values. A request needs
# blocks only for the tokens that it *has*. The engine reserves no blocks for later tokens.
#
# **A policy** is a function of a `state`, decorated with `@serving.policy`. `state` has `now`, `free_blocks`,
# `free_slots`, `machine` (with `slots`, `blocks`, `step_tokens`, `times` and `blocks_for(tokens)`), and the lists
# `waiting` and `running`. A request in these lists has:
#
# | field | meaning |
# |---|---|
# | `number`, `arrival`, `prompt` | its number, when it arrived, and the tokens of its prompt |
# | `most`, `made` | the limit on its output, and the output tokens so far |
# | `left`, `decodes` | the prompt's tokens still to be processed; whether none are left, so that it gets a token in each step |
# | `tokens`, `blocks` | its tokens and blocks in the cache |
# | `preempted` | how often it has been preempted |
#
# The policy returns a dictionary with up to three keys. `admit` lists the numbers of the requests that start.
# `preempt` lists those that lose their blocks; their `left` becomes `prompt` + `made`. `prefill` maps a number to
# the tokens of its prompt that this step processes: 0 means that the request waits. Without the key `prefill`, every
# prompt is processed whole. At least one request has to make progress.
#
# **The limits** (SLO): the first token within 1 s, then 40 ms a token on average. A request counts only if it keeps
# both limits. **Goodput** is the number of requests that count. Every request must be served, in time or not.
#
# **The traces** are drawn from seeds. Yours are public, and the judge has others. A policy does not see the length
# of an output, and your code must not look for it.

# %%
TIMES = serving.times("Llama 3 8B", "A100", overhead=0.001)
OFFLINE = serving.Machine(slots=32, blocks=400, times=TIMES)
ONLINE = serving.Machine(slots=32, blocks=2000, step_tokens=1024, times=TIMES)
SLO = serving.SLO(ttft=1.0, tpot=0.04)
print(f"weights are read in {1e3 * TIMES.weights / TIMES.bandwidth:.1f} ms")

# %% [markdown]
# **Predict.** How many tokens in a step take as long to compute, at the GPU's peak, as reading the weights?

# %%
gpulab.predict("serving_project.tokens", ...)

# %% jupyter={"source_hidden": true}
sizes = [1, 32, 64, 128, 192, 256, 384, 512, 768, 1024]
plot.lines(
    {"a step": [(n, 1e3 * TIMES.seconds(serving.Work(new=n))) for n in sizes]},
    "tokens in a step",
    "ms (modelled)",
    "Up to the ridge, tokens are free. A step of 1,024 makes every request wait 50 ms for its next token.",
)

# %% [markdown]
# ## 2 · Milestone 1: keep the machine busy
#
# At first, no request has a time limit, and only the total time counts. At the start, 160 requests are waiting.
# Their lengths follow a Pareto distribution, and `most` = 1,024. If you reserve blocks for the longest possible
# outputs, you can use only a few slots.
#
# **Predict.** There are 400 blocks of 16 tokens. If blocks are reserved for a prompt of 96 tokens and an output of
# 1,024, how many of the 32 slots can be used?

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
        f"{name:15}{ran.end:6.1f} s, {sum(s.decoded for s in ran.steps) / len(ran.steps):5.1f} slots give a token on average"
    )

# %% [markdown]
# **Do.** Write the policy `batch(state)`, which serves all requests as fast as possible.
#
# - A request gets more blocks as its tokens grow. If the next tokens of all running requests do not fit, the policy
#   has to preempt one of them.
# - Output: a dictionary with `admit`, and `preempt` and `prefill` if you need them.
# - **Budget:** with all requests waiting at the start, at most 120 % of the time that our policy takes. Static
#   batches take 300 % or more.
#
# About 20 lines.


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
    """(second, mean number of slots that gave a token), for each second."""
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
    "The fuller the slots, the faster the machine. At the end, only the longest outputs are left.",
)

# %% [markdown]
# **Why.** A step costs nearly the same for 5 requests as for 32, because it reads the weights once. If blocks are
# held for tokens that never come, slots stay empty. The price of admitting more requests is an occasional
# preemption, after which the tokens of one request go through the model a second time.
#
# ## 3 · Milestone 2: goodput
#
# Now the requests arrive over time, and each has the limits of section 1. There are three traces: **bursts** of
# three times the mean rate; **heavy tails**, in which a few requests have most of the tokens; and an **adversary**,
# who sends prompts of 4,096 to 8,192 tokens and long outputs immediately before crowds of short requests.
#
# **Predict.** Consider the bursts, served first come, first served with reserved blocks. For what percentage of the
# requests are the limits kept?

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
# **See.** The next figure shows when each request of the bursts arrived, and how long it waited for its first token.

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
    "Once the queue is longer than a second, no later request is in time, although all are served in the end.",
)

# %% [markdown]
# **Do.** Write the policy `serve(state)`, which keeps the limits for as many requests as possible.
#
# - A step may have at most 1,024 tokens (`machine.step_tokens`), prompts and outputs together.
# - Every request must be served in the end.
# - **Budget**, on each of the three traces: 95 % of the number of requests that our policy serves in time. At 30 %
#   or less of that number, a trace earns no points.
#
# About 35 lines.


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
    "The same machine and the same requests: the order makes the difference.",
)

# %% [markdown]
# **Why.** Throughput is hardly higher than before, but the order has changed. Requests that can no longer be in time
# give way to those that can. Short requests go first, because each of them counts as much as a long one. This is what
# goodput rewards, and it is not fair: a long prompt may have to wait until the burst is over.
#
# **See.** Which requests pay for it? The next figure shows the time to the first token by length of the prompt, in
# the adversary's trace.

# %%
gpulab.need(serve)


def by_length(ran):
    """Mean TTFT of the prompts, by their number of tokens."""
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
    caption="Which requests are served in time, and which pay for it, by length of the prompt (dashed: the limit).",
)

# %% [markdown]
# ## End of sitting 1
#
# Two policies of yours run a service: one keeps the machine busy, and the other serves as many requests in time as
# it can. Note now which rules of yours gained goodput and which gained nothing, because the report asks for them.
# The second sitting starts with a service whose numbers look perfect, and ends with your report.
#
# To go on another day, select this cell and choose *Run → Run All Above Selected Cell* first, because a new kernel
# does not know your functions yet.

# %%
gpulab.course.progress("22")

# %% [markdown]
# ## Detective · The service that is always in time
#
# A colleague runs another service on such an A100, with 16 slots. It receives 24 short questions a second, and now
# and then a long document to summarise. "Shortest first, in small pieces: no user who reads an answer waits more
# than 9 ms for the next token. 98 % are in time. Support says that documents get no answer, but they are long, so
# that takes a while. And if it were too much for one GPU, we would see it here."


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
        "arrived": [(life.request.arrival, n + 1) for n, life in enumerate(shown.lives)],
        "have their first token": [(time, n + 1) for n, time in enumerate(first)],
    },
    "seconds",
    "requests",
    "The dashboard: every request seems to get its first token, and no queue grows.",
)

# %% [markdown]
# **Do.** Is it too much for one GPU? You can use `shown.lives` and `shown.steps`, call `gentle` with another size of
# pieces, make a trace longer, or run a single request alone. Use the next cell as you like.

# %%
# Your experiment.

# %% [markdown]
# ### Your answer
#
# Answer in three to five sentences. Which requests wait, and for what? Is it the GPU that is too slow? Which of your
# counts shows it, and what would you change? A person reads your answer: 1 point for the cause, 1 point for counts
# that you made.

# %% [markdown] nbgrader={"grade": true, "grade_id": "in-time-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** All six documents wait for 3 to 8 s, although the longest of them, alone on the machine, has its
# first token after 0.9 s: they starve. They are admitted and hold slots, but the tokens of each step go to the
# shortest prompts, and there are always some. 64 tokens in a step of 8.5 ms are 7,500 tokens a second, but 8,100
# arrive (prompts and outputs). The GPU is not at its limit: up to the ridge, 153 tokens, a step takes the same
# time. With pieces of 128, documents wait for 0.6 to 2.2 s, and the 99th percentile of the time per output token
# stays at 9 ms. With pieces of 64 and twice the duration, the longest wait is 22 s, so it grows as long as the load
# lasts. The 98 % hide this, because only 1 % of the requests are documents. I would take larger pieces, let age
# count, and look at TTFT by length.
#
# **1 point** (cause without counts): Shortest first starves the documents, because pieces of 64 tokens serve less
# than arrives.
#
# **0 points:** Long prompts take long. Or: the machine is overloaded, buy a second one.

# %% [markdown]
# ## 4 · The referee, and the leaderboard
#
# The clock is virtual and the engine belongs to the judge, so the same policy has the same goodput on every machine.
# The leaderboard uses the public traces. The points come from the judge's traces.

# %%
gpulab.need(batch, serve)
leaderboard.enter("serving", "first version")

# %% [markdown]
# Here is what you can still improve:
#
# - Choose the size of pieces by what decoding requests can bear. The limit of 40 ms a token is an average, so now
#   and then a step may have more than 256 tokens.
# - Preempt a hopeless request before blocks run out.
# - Estimate the lengths of outputs from requests that have finished.
# - In bursts, give up on requests earlier.
#
# ## 5 · The report
#
# Write one page for the person who sells this service. **18 points:**
#
# | points | for |
# |---|---|
# | 5 | what you promise, in numbers: which share in time, under which load, on which traces |
# | 5 | one decision of your policy, switched off: goodput with and without it on all three traces |
# | 5 | who pays: which requests are worse off than with first come, first served, and by how much |
# | 3 | limits: what the model of the machine leaves out, what a real adversary would do next, and when you would add a machine instead |

# %% [markdown] nbgrader={"grade": true, "grade_id": "serving-report", "locked": false, "points": 18, "schema_version": 3, "solution": true, "task": false}
# **A report with full points says, for example:**
#
# *Promise.* On one A100 with Llama 3 8B, with the first token within a second and 40 ms a token after it: 55 % in
# time on bursts, 93 % on heavy tails, and 95 % on the adversary's trace. First come, first served has 16, 14 and
# 35 %. During bursts of 60 requests a second, we promise nothing.
#
# *Decided.* Without "hopeless last" (order by length only), 42 % are in time on bursts, 92 % on heavy tails, and 95
# % on the adversary's. It matters in bursts, where many requests in the queue are late. In the other traces, hardly
# any are.
#
# *Who pays.* The adversary's five prompts above 5,500 tokens wait for 2.1 s on average and 3.0 s at most, instead
# of 1.1 and 2.4 s. Under steady overload the longest would starve, so we would let age count.
#
# *Limits.* The times are a roofline: real steps are slower, especially with many short pieces. An adversary who
# knows the policy splits a long prompt into short ones. In bursts, nearly half of the requests are late even with
# our policy. That takes another machine, not another policy.
#
# *Points are taken off* for goodput without its load, for means where the tail is the question, and for a policy that
# knows the outputs.

# %% [markdown]
# ## Recap
#
# <details><summary>1. Why does a step with 1,024 tokens of prompts hurt requests that decode?</summary>
#
# The step takes as long as its arithmetic, about 50 ms, and each of them gets only one token in it. The ridge is at
# about 150 tokens.
# </details>
#
# <details><summary>2. Why not reserve blocks for the longest output?</summary>
#
# Most outputs are short, so reserved blocks stay empty, and slots stay empty because no blocks are free. Preempting
# a request now and then costs less.
# </details>
#
# <details><summary>3. Which request do you preempt?</summary>
#
# One that is late anyway. If there is none, the one with the fewest tokens in the cache, because they are computed
# again.
# </details>
#
# <details><summary>4. A policy doubles goodput. Has throughput grown?</summary>
#
# Not necessarily. The same tokens in another order may bring more requests in time.
# </details>
#
# <details><summary>5. What is wrong with shortest first?</summary>
#
# Under steady overload, long requests never get their turn.
# </details>

# %%
gpulab.recap("22")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | time of a step | the larger of (weights and caches) ÷ bandwidth and FLOPs ÷ peak |
# | tokens that cost no time | peak / bandwidth · bytes of a parameter / 2 |
# | blocks of a request | its tokens after the step / 16, rounded up |
# | hopeless | now + left / (tokens a second) > arrival + limit |
# | goodput | the number of requests that keep all limits |
#
# ### Claims you will meet, and what is right
#
# - *Maximise throughput, and latency follows.* Throughput is highest with long queues and large steps, and both break
#   limits.
# - *First come, first served is fair, so it is best.* Under overload, it makes everybody late.
# - *Goodput above all.* A service that is judged by goodput alone drops long requests. Say who pays.
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
