# ---
# jupyter:
#   gpulab:
#     lab: "20"
#     hours: 5
#     topics: [C6.10, C13.7, C13.11, C21.1, C21.2, C21.3, C21.7, C24.6]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 20 A · Serving: the engine
#
# **About five hours.** You need the roofline (lab 02) and, from lab 19, prefill, decode and a key-value cache in
# blocks. Clocks are virtual here and the times of steps modelled from data sheets; at the end the same engine runs a
# real small GPT on this machine and answers over HTTP. Part B is about the cluster around it.
#
# When you are through, you can
#
# 1. say how long requests wait at a load, and which load a limit allows;
# 2. measure a service so that no slow answer hides;
# 3. batch continuously, cut long prompts, preempt when memory runs out, and say what each costs;
# 4. use keys and values again where prompts begin alike;
# 5. run a language model behind HTTP and find the load that it bears.

# %%
import json
import urllib.request
from math import ceil, comb

import numpy as np

import gpulab
from gpulab import hardware, serving
from gpulab.plot import Span
from gpulab.serving import SLO, Machine, Request, Work, metrics, policies, queues, traces

gpulab.start("20")

# %% [markdown]
# ## 1 · Waiting
#
# Requests come at random: λ of them per second, none knowing of the others (a **Poisson process**). One server takes
# them in turn, s seconds each on average. It is busy for the share ρ = λ s of the time, its **utilisation**. Below 1
# it keeps up, and still there are queues, because requests come in heaps. With **cv**, the standard deviation of the
# service time over its mean, the mean wait is (F. Pollaczek 1930, A. Khinchine 1932)
#
# ![Requests wait in a queue. In each step the engine's policy decides who is admitted, who computes, and who has to give back its blocks.](drawings/service.svg)
#
#     W = ρ/(1 − ρ) · s · (1 + cv²)/2
#
# **M/M/1** is the name for random service times (exponential, cv = 1), **M/D/1** for equal ones (cv = 0). A request's
# **latency** is T = W + s. **Little's law** holds for any system that is stable: on average L = λ T requests are
# there.
#
# **Predict.** s = 1 s, cv = 1. At ρ = 0.5 the mean wait is 1 s. At ρ = 0.9?

# %%
gpulab.predict("serve.wait_at_90", ...)

# %% [markdown]
# **Do.** Write `queue(rate, service, cv, limit)`: a list of utilisation, mean latency, mean number of requests that
# are there, and the highest rate at which the mean latency is at most `limit` seconds (0 where none keeps it). From ρ
# = 1 on the queue grows for ever: latency and number are None. About 8 lines.


# %% nbgrader={"grade": false, "grade_id": "queue", "locked": false, "schema_version": 3, "solution": true, "task": false}
def queue(rate, service, cv, limit):
    ### BEGIN SOLUTION
    load = rate * service
    spread = service**2 * (1 + cv**2)
    wait = limit - service
    best = 2 * wait / (spread + 2 * wait * service) if wait > 0 else 0
    if load >= 1:
        return [load, None, None, best]
    latency = service + rate * spread / (2 * (1 - load))
    return [load, latency, rate * latency, best]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "queue-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("serve.queue", queue)


# %% [markdown]
# **See.** 40,000 requests played through one server, beside the formula.


# %%
def played(load, cv, count=40_000):
    """Mean latency in service times, from a simulation."""
    draws = np.random.default_rng(1)
    arrivals = np.cumsum(draws.exponential(1.0, count))
    services = draws.gamma(1 / cv**2, load * cv**2, count) if cv else np.full(count, load)
    served = queues.first_come_first_served(arrivals, services)
    return np.mean([each.latency for each in served]) / load


gpulab.need(queue)
loads = [0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9]
curves = {}
for cv in (0, 2):
    curves[f"cv {cv}, formula"] = [(load, queue(load, 1.0, cv, 10)[1]) for load in loads]
    curves[f"cv {cv}, played"] = [(load, played(load, cv)) for load in loads]
gpulab.plot.lines(
    curves,
    "utilisation",
    "mean latency, service times",
    "Latency explodes toward full load, and the more so the more service times differ.",
)

# %% [markdown]
# **Why.** Two knobs: load and variation. Outputs of language models differ by factors of a hundred, so a queue in
# front of one that serves them in turn would be the upper curve or worse. Batches change the server; the shape of the
# curve stays. "Run at 100 % utilisation" is a plan for endless queues, and "at 70 %" is no law either: the limit
# decides. The `GPU-Util` of `nvidia-smi` is not ρ: it is the share of time in which *some* kernel ran.
#
# ## 2 · What a client sees
#
# - **TTFT**, time to first token; **TPOT**, time per output token: (last − first) ÷ (tokens − 1).
# - **Throughput**: tokens of output per second. **Goodput**: requests per second that keep all limits of an **SLO**, a
#   service-level objective, such as TTFT ≤ 300 ms and TPOT ≤ 50 ms.
# - **p99**, the 99th percentile. Nearest rank: of n sorted values the one with number ⌈0.99 n⌉, counted from 1.
#   Percentiles of several servers cannot be averaged; their samples must be pooled.
#
# Who sends a request only after the answer to the last one (**closed loop**) stops asking when the service stalls.
# Real users do not (**open loop**). So the clock starts when a request was *due*, even if it was sent late. To forget
# that is called **coordinated omission** (G. Tene).
#
# **Predict.** The smallest number of samples for which p99 is not the slowest of all?

# %%
gpulab.predict("serve.samples_for_p99", ...)

# %% [markdown]
# **Do.** Write `measure(log, ttft, tpot)`. `log` has rows `[request, event, time]` in any order, times in whole
# milliseconds; events are `"due"`, `"sent"`, `"token"`, `"end"` and `"error"`. Return a list:
#
# 1. p50 of TTFT, 2. p99 of TTFT, 3. p99 of TPOT, all in ms; None without a value;
# 4. tokens per second, and 5. goodput with those two limits (≤) in ms, from the first `due` to the last event.
#
# A request with an error is in no percentile and keeps nothing; its tokens and its time count. One token has no TPOT
# and keeps any limit on it. About 22 lines.


# %% nbgrader={"grade": false, "grade_id": "measure", "locked": false, "schema_version": 3, "solution": true, "task": false}
def measure(log, ttft, tpot):
    ### BEGIN SOLUTION
    due, tokens, failed = {}, {}, set()
    for request, event, time in log:
        if event == "due":
            due[request] = time
        if event == "token":
            tokens.setdefault(request, []).append(time)
        if event == "error":
            failed.add(request)
    first, pace, kept = [], [], 0
    for request in due.keys() - failed:
        times = sorted(tokens[request])
        first.append(times[0] - due[request])
        between = (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else 0
        if len(times) > 1:
            pace.append(between)
        kept += first[-1] <= ttft and between <= tpot

    def percentile(values, percent):
        return sorted(values)[ceil(percent * len(values) / 100) - 1] if values else None

    seconds = (max(time for _, _, time in log) - min(due.values())) / 1000
    rates = [sum(map(len, tokens.values())) / seconds, kept / seconds]
    return [percentile(first, 50), percentile(first, 99), percentile(pace, 99), *rates]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "measure-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("serve.measure", measure)

# %% [markdown]
# **See.** A server takes 10 ms for each request, and once, in the middle, 3 s. Four clients in a closed loop measure
# it, and an open loop at the same rate.

# %%
services = np.full(4000, 0.010)
services[2000] = 3.0
closed = queues.closed_loop(4, services, thinking=0.070)
rate = (len(closed) - 1) / (closed[-1].arrival - closed[0].arrival)
opened = queues.first_come_first_served(np.arange(4000) / rate, services)
both = {"closed loop": closed, "open loop": opened}
for name, served in both.items():
    slow = sum(each.latency > 0.1 for each in served)
    p99 = metrics.percentile([each.latency for each in served], 99)
    print(f"{name:12} {slow:4} of {len(served):,} requests took more than 100 ms   p99 {1000 * p99:5.0f} ms")
gpulab.plot.lines(
    {
        name: [
            (p, 1000 * metrics.percentile([e.latency for e in served], p)) for p in np.arange(92, 100, 0.1)
        ]
        for name, served in both.items()
    },
    "percentile",
    "latency, ms",
    "The same server with the same stall: in a closed loop it is seen by four requests and stays out of p99.",
    log_y=True,
)

# %% [markdown]
# **Why.** During the stall the four clients wait and send nothing, so a stall of any length costs four samples. The
# open loop goes on sending, and all of these wait.
#
# p99 needs samples *behind* it: of 1,000 there are ten. How much it moves from one measurement to the next, with
# latencies that are log-normal:

# %%
draws = np.random.default_rng(2)
for count in (50, 100, 1000, 10_000):
    seen = [metrics.percentile(np.exp(0.8 * draws.standard_normal(count)), 99) for _ in range(100)]
    low, high = np.quantile(seen, (0.05, 0.95))
    print(f"{count:6,} samples: p99 between {low:4.1f} and {high:4.1f} in nine measurements of ten")

# %% [markdown]
# ## 3 · The time of a step
#
# A decode step reads all weights once, whoever is in the batch, and for each request its own keys and values. It
# computes two FLOP per weight and request (of 8 billion weights 7.5: the table of embeddings is only looked up). So
# up to the roofline's ridge more requests cost (almost) no time. The model below takes max(FLOPs ÷ peak, bytes ÷
# bandwidth) of the data sheet: a bound that real engines come near to, not a measurement.
#
# **Predict.** Llama 3 8B, bfloat16, H100, short contexts: at which batch do arithmetic and reading take equally long?

# %%
gpulab.predict("serve.decode_batch", ...)

# %%
h100 = serving.times("Llama 3 8B", "H100")
batches = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]


def decode(times, batch, context):
    """One decode step: `batch` new tokens; pairs of a token and one that it looks at; cached ones that are read."""
    return times.seconds(Work(new=batch, pairs=batch * (context + 1), read=batch * context))


print(
    f"one request: {1000 * decode(h100, 1, 0):.2f} ms a token; ridge at {h100.peak / h100.bandwidth:.0f} FLOP/B"
)
gpulab.plot.lines(
    {
        f"context {context:,}": [(batch, batch / decode(h100, batch, context)) for batch in batches]
        for context in (0, 1024, 8192)
    },
    "requests in the batch",
    "tokens per second, modelled",
    "Without context the rate grows until the ridge; keys and values are each request's own, and no batch shares them.",
    log_x=True,
    log_y=True,
)

# %% [markdown]
# **Why.** With a long context the batch reads mostly keys and values, whose intensity does not grow with the batch:
# there decode stays memory-bound at any batch size.
#
# What no batch and no GPU makes faster is the serial part. **Amdahl**: if a share σ of a step's time stays as it is, n
# GPUs make it at most 1/(σ + (1 − σ)/n) times as fast. Here 1 ms of every step is scheduling and sampling on the CPU.
# If workers also wait for each other, N. Gunther's **universal scalability law**, n/(1 + σ(n − 1) + κ n(n − 1)), has a
# maximum: beyond it, more workers serve fewer. (max(t_data, t_gpu) of two overlapped stages is the bound of a
# *pipeline*, not Amdahl's law.)

# %%
slow = {
    f"{1000 * overhead:g} ms a step on the CPU": [
        (n, decode(serving.times("Llama 3 8B", "H100", overhead=overhead), 8, 500)
        / decode(serving.times("Llama 3 8B", "H100", gpus=n, overhead=overhead), 8, 500))
        for n in range(1, 9)
    ]
    for overhead in (0.0, 0.001)
}  # fmt: skip
gpulab.plot.lines(
    slow,
    "GPUs that share the model",
    "speed-up of a step, modelled",
    "A serial millisecond takes more than half of what eight GPUs could give.",
)

# %% [markdown]
# ## 4 · Batches
#
# `serving` has an engine on a virtual clock. In each step it asks a **policy** what to do, refuses what cannot be, and
# gives every running request a token.
#
# - **Static batching**: take as many requests as there are slots, and the next ones when all of these are through.
# - **Dynamic batching**: the same, but wait a little for company first. Good where every request takes the same time,
#   as for images.
# - **Continuous batching** (also *in-flight batching*): decide anew in every step (G.-I. Yu et al., "Orca", 2022).

# %%
machine = Machine(slots=8, blocks=10_000, reserve=True)  # every step takes one unit of time
requests = traces.alternating(64)  # outputs of 16, 256, 16, 256 … tokens; all may have 256
print(requests[0])

# %% [markdown]
# **Predict.** 64 requests, 8 slots, outputs of 16 and 256 tokens in turn, static batches. How many steps?

# %%
gpulab.predict("serve.static_steps", ...)

# %%
static = serving.run(machine, requests, policies.static)
print("static:", len(static.steps), "steps for", sum(r.output for r in requests), "tokens")

# %% [markdown]
# **Do.** Write `admit(queue, running, blocks, slots)`. It returns the numbers of the requests that start in this
# step, from the front of the queue; where one does not fit, nobody behind it starts. `queue` and `running` list
# requests with `.number`, `.prompt` and `.most` (tokens; how long the output gets nobody knows, `most` is its limit),
# `.made` and more; `blocks` and `slots` are those that are free. A request **reserves** blocks of 16 tokens for its
# prompt and the longest output. **Budget:** at most 1,270 steps; and in every step all start that fit. 6 lines.
#
# The decorator lets the check ask your policy step by step: each decision goes to an engine that only the check has,
# `decide`, and who came or is through comes back. A message names the step in which a decision cannot be carried out.
# `admit.decide` is what you give to an engine of your own.


# %% nbgrader={"grade": false, "grade_id": "admit", "locked": false, "schema_version": 3, "solution": true, "task": false}
@serving.admission
def admit(queue, running, blocks, slots):
    ### BEGIN SOLUTION
    chosen = []
    for request in queue[:slots]:
        blocks -= ceil((request.prompt + request.most) / 16)
        if blocks < 0:
            break
        chosen.append(request.number)
    return chosen
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "admit-check", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
gpulab.check("serve.admit", admit)


# %%
def spans(run):
    """Who is in which slot. Hollow: the slot waits for the batch to end."""
    found, stays = [], sorted(serving.stays(run), key=lambda stay: (stay.slot, stay.start))
    for stay in stays:
        row, kind = f"slot {stay.slot}", f"{stay.request.output} tokens"
        found.append(Span(row, stay.start, stay.stop, str(stay.request.output), kind))
    for slot in range(run.machine.slots):
        ends = [s.stop for s in stays if s.slot == slot]
        starts = [*[s.start for s in stays if s.slot == slot][1:], run.end]
        found += [
            Span(f"slot {slot}", a, b, "", "wait") for a, b in zip(ends, starts, strict=True) if b - a > 1
        ]
    return found


gpulab.plot.timeline(
    spans(static),
    "steps",
    caption="Static: a slot whose request is through (dashed) waits for the longest of its batch.",
)

# %%
gpulab.need(admit)
continuous = serving.run(machine, requests, admit.decide)
used = sum(r.output for r in requests) / 8 / len(continuous.steps)
print(f"continuous: {len(continuous.steps)} steps, slots busy for {100 * used:.0f} % of them")
for name, run in (("static", static), ("continuous", continuous)):
    told = metrics.summary(run)
    print(f"{name:10} median TTFT {told['TTFT p50']:5.0f} steps, median latency {told['latency p50']:5.0f}")
gpulab.plot.timeline(
    spans(continuous),
    "steps",
    caption="Continuous: a free slot is taken in the next step; only at the end some stay empty.",
)

# %% [markdown]
# **Step through it.** A smaller machine with four slots and 24 blocks of cache, served by your `admit`. A dashed
# block is reserved and still empty. Find a step in which a slot is free and somebody waits all the same. Why?

# %%
from gpulab.plot.moving import Batching

small = Machine(slots=4, blocks=24, reserve=True)
few = [Request(i, 0.0, prompt=16 * (1 + i % 3), output=(20, 70, 35, 90)[i % 4], most=96) for i in range(10)]
served = serving.run(small, few, admit.decide)
Batching(served, serving.stays(served))

# %% [markdown]
# **Why.** 8,704 tokens in 8 slots are 1,088 steps at least. First come, first served gets to within 6 % of that
# without knowing a length; the rest is the end, when the last long requests run alone. Who knew the lengths would
# start the long ones first.
#
# The same with requests that come one by one, outputs of all lengths, and the dynamic batcher that waits for eight or
# for 100 steps:

# %%
gpulab.need(admit)
mixed = traces.Lengths(prompt=16, prompt_spread=0, output=60, output_spread=0.8, output_limit=256)
for rate in (0.01, 0.05):
    come = traces.poisson(rate, 6000, 2, mixed)
    for name, policy in (
        ("static", policies.static),
        ("dynamic", policies.dynamic(8, 100)),
        ("continuous", admit.decide),
    ):
        told = metrics.summary(serving.run(machine, come, policy), percents=(50, 99))
        print(
            f"{rate:g} requests a step, {name:10}: TTFT p50 {told['TTFT p50']:5.0f} steps, latency p99 {told['latency p99']:5.0f}"
        )

# %% [markdown]
# Waiting for company fills batches and delays everybody: it pays where a batch is through at once. Batches by
# **tokens** instead of requests limit a step's work rather than its rows: the next section.
#
# ## 5 · Long prompts in pieces
#
# A prompt of thousands of tokens in one step makes everybody else wait for it. **Chunked prefill** cuts it: each step
# takes one token of every request that decodes, and fills up with a piece of a prompt (A. Agrawal et al.,
# "Sarathi-Serve", 2024).
#
# **Predict.** Llama 3 8B on an H100: for how long does the step with a whole prompt of 8,192 tokens last?

# %%
gpulab.predict("serve.stall", ...)

# %% [markdown]
# **Do.** Write `chunk(state)`, a policy on the whole state:
#
# - `state.waiting`, `state.running`: requests as before, also with `.left`, the tokens of the prompt still to process,
#   and `.decodes`, true when none is left; `state.free_slots`; blocks are ample here;
# - `state.machine.times`: `.weights` in bytes, `.bandwidth` in B/s, `.peak` in FLOP/s, `.per_token` in FLOP. Attention
#   comes on top; leave it out.
#
# Return `{"admit": numbers, "prefill": {number: tokens}}`; a prompt that `prefill` does not name waits. Without
# `prefill` all go whole. Whoever decodes gets a token. **Budget:** no gap between two tokens above 1.5 × the time of
# reading the weights; all done in at most 0.9 × the time that whole prompts take. On an H100, an L4, an A100, and an
# H100 with weights of 4 bits. About 10 lines.


# %% nbgrader={"grade": false, "grade_id": "chunk", "locked": false, "schema_version": 3, "solution": true, "task": false}
@serving.policy
def chunk(state):
    ### BEGIN SOLUTION
    times = state.machine.times
    free = int(times.weights / times.bandwidth * times.peak / times.per_token)
    admitted = state.waiting[: state.free_slots]
    free -= sum(request.decodes for request in state.running)
    pieces = {}
    for request in [*state.running, *admitted]:
        if request.left:
            pieces[request.number] = max(0, min(request.left, free))
            free -= pieces[request.number]
    return {"admit": [request.number for request in admitted], "prefill": pieces}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "chunk-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("serve.chunk", chunk)


# %%
def whole_prompts(state):
    return {"admit": [request.number for request in state.waiting[: state.free_slots]]}


talks = [Request(n, 0.0, 50, 300) for n in range(8)]
documents = [Request(8 + n, 0.3 + 0.15 * n, 6000, 20) for n in range(4)]
big = serving.fitting("Llama 3 8B", "H100", slots=32)


def gaps_of(run):
    """(time of a token, ms until the next one) of the first talk."""
    life = run.lives[0]
    return [(t, 1000 * gap) for t, gap in zip(life.tokens, metrics.gaps(life), strict=False)]


gpulab.need(chunk)
ran = {
    "whole prompts": serving.run(big, talks + documents, whole_prompts),
    "in pieces": serving.run(big, talks + documents, chunk.decide),
}
for name, run in ran.items():
    first = max(metrics.ttft(life) for life in run.lives[8:])
    print(f"{name:14} all done after {run.end:.2f} s, slowest TTFT of a document {1000 * first:4.0f} ms")
gpulab.plot.lines(
    {name: gaps_of(run) for name, run in ran.items()},
    "time, s",
    "gap between tokens, ms, modelled",
    "Each whole prompt stops the talk for about 100 ms; pieces up to the ridge are hardly noticed.",
    log_y=True,
    step=True,
)

# %% [markdown]
# **Why.** Decoding leaves the tensor cores idle while it reads weights. A piece of a prompt uses exactly that time,
# so the whole is even *faster* than one after the other. Smaller pieces read the weights too often; larger ones
# stretch the gaps. The documents pay a little: their first token comes later. Engines make this a setting,
# `max_num_batched_tokens` in vLLM, where chunking is on by default since its version 1 of the engine (reference 5).
#
# ## 6 · When memory runs out
#
# Reserving for the longest output wastes most of the cache: few get that long. So engines admit by what is needed
# *now* and have a way back: when the blocks run out, somebody is **preempted** and goes back to the queue. Either
# their keys and values are thrown away and their tokens go through the model again (**recompute**), or they move to
# the host's memory and back (**swap**).
#
# **Predict.** Llama 3 8B: keys and values of a token are 128 KiB. An H100 has PCIe 5.0, 63 GB/s in each direction. The
# time of recomputing a token over that of moving it out and back?

# %%
gpulab.predict("serve.swap_or_again", ...)

# %%
for gpu, model in (("H100", "Llama 3 8B"), ("H100", "Llama 2 7B"), ("L4", "Llama 3 8B")):
    times = serving.times(model, gpu)
    again, move = times.compute(Work(new=1)), 2 * times.token_bytes / times.link
    print(f"{model} on {gpu}: again {1e6 * again:6.1f} µs, out and back {1e6 * move:5.1f} µs per token")

# %% [markdown]
# The bus wins on paper, except for Llama 2 7B, where every head has its own keys and values. But a recompute can hide
# in steps that only read weights, as the pieces of section 5 do, and a copy needs room on the host. vLLM recomputes
# (reference 5).
#
# A first policy for a machine without `reserve`: `.tokens` counts those in the cache. After the next step a request
# holds blocks for `.tokens` + 1, or + `.left` if it has a prompt to process. If that is too much for all, the largest
# goes.


# %%
@serving.policy
def evict_largest(state):
    machine = state.machine

    def blocks_after(request):
        return machine.blocks_for(request.tokens + (request.left or 1))

    stay, gone = list(state.running), []
    need = sum(blocks_after(request) for request in stay)
    while need > machine.blocks:
        largest = max(stay, key=lambda request: request.tokens)
        stay.remove(largest)
        gone.append(largest.number)
        need -= blocks_after(largest)
    admitted = []
    for request in state.waiting[: machine.slots - len(stay)]:
        need += blocks_after(request)
        if need > machine.blocks:
            break
        admitted.append(request.number)
    return {"admit": admitted, "preempt": gone}


crowd = traces.Lengths(200, 0.5, 1024, 120, 0.8, 1024).draw(np.random.default_rng(5), [0.0] * 80)
l4 = serving.times("Llama 3 8B", "L4")

# %%
gpulab.need(admit)
held = {
    "reserved": serving.run(Machine(256, 800, reserve=True, times=l4), crowd, admit.decide),
    "as needed": serving.run(Machine(256, 800, times=l4), crowd, evict_largest.decide),
}
for name, run in held.items():
    told = metrics.summary(run)
    print(
        f"{name:10} mean of {np.mean([len(s.gave) for s in run.steps]):4.1f} at a time, median latency {told['latency p50']:5.1f} s"
    )


def at_a_time(run):
    return [(step.stop, len(step.gave)) for step in run.steps[::10]]


most = {name: max(len(step.gave) for step in run.steps) for name, run in held.items()}
gpulab.plot.lines(
    {name: at_a_time(run) for name, run in held.items()},
    "time, s, modelled",
    "requests that get a token",
    f"As needed, the same memory serves up to {most['as needed']} at a time instead of {most['reserved']}; all are through "
    f"after {held['as needed'].end:.0f} s instead of {held['reserved'].end:.0f} s.",
)

# %% [markdown]
# **Do.** Write a better one, `preempt(state)`. Some requests are urgent: `.priority` 1 instead of 0; they come later.
# `.arrival` says when one came. What a preempted request held is free in the same step.
# **Budget**, for a crowd of 100 on an L4: at most 4 % of all tokens are computed twice; mean latency at most 0.35 ×
# that of reserving; the slowest first token of an urgent request after at most 2 s. About 20 lines; start from
# `evict_largest`.


# %% nbgrader={"grade": false, "grade_id": "preempt", "locked": false, "schema_version": 3, "solution": true, "task": false}
@serving.policy
def preempt(state):
    ### BEGIN SOLUTION
    machine = state.machine

    def blocks_after(request):
        return machine.blocks_for(request.tokens + (request.left or 1))

    def rank(request):
        return -request.priority, request.arrival, request.number

    stay = sorted(state.running, key=rank)
    waiting = sorted(state.waiting, key=rank)
    admitted = [request for request in waiting if request.priority]
    need = sum(map(blocks_after, stay + admitted))
    gone = []
    while stay and (need > machine.blocks or len(stay) + len(admitted) > machine.slots):
        gone.append(stay.pop())
        need -= blocks_after(gone[-1])
    for request in [] if gone else waiting[len(admitted) :]:
        need += blocks_after(request)
        if need > 0.9 * machine.blocks or len(stay) + len(admitted) == machine.slots:
            break
        admitted.append(request)
    return {"admit": [r.number for r in admitted], "preempt": [r.number for r in gone]}
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "preempt-check", "locked": true, "points": 6, "schema_version": 3, "solution": false, "task": false}
gpulab.check("serve.preempt", preempt)

# %% [markdown]
# **Why.** Three ideas. Priority decides who goes first and who goes out. Some blocks stay free, so that those who run
# can end. And the victim is the one that came last: little is lost with it, and who was there first ends.
#
# ## Detective · The faster engine
#
# A colleague serves a chatbot with `evict_largest`. "We had 14 slots and memory to spare. I made it 20. Tokens through
# the model are up by more than 40 %, the blocks are fuller, half of the users see their first token sooner. A clear
# win."

# %%
users = traces.poisson(1.6, 60, 3, traces.Lengths(200, 0.5, 1024, 250, 0.5, 1024))
before = serving.run(Machine(14, 400, times=l4), users, evict_largest.decide)
after = serving.run(Machine(20, 400, times=l4), users, evict_largest.decide)
for name, run in (("14 slots", before), ("20 slots", after)):
    through = sum(step.tokens for step in run.steps) / run.end
    full = np.mean([step.blocks for step in run.steps]) / run.machine.blocks
    told = metrics.summary(run)
    print(
        f"{name}: {through:.0f} tokens/s through the model, blocks {100 * full:.0f} % full, median TTFT {told['TTFT p50']:.1f} s"
    )
gpulab.plot.lines(
    {
        name: list(zip([s.stop for s in run.steps], np.cumsum([s.tokens for s in run.steps]), strict=True))[::40]
        for name, run in (("14 slots", before), ("20 slots", after))
    },
    "time, s, modelled",
    "tokens through the model so far",
    "With 20 slots the engine processes more tokens in the same time.",
)  # fmt: skip

# %% [markdown]
# **Do.** Is it one? `run.lives` has a life for each request, with `.tokens` (the times of its tokens), `.preempted`
# (how often) and `.recomputed` (tokens); `metrics.gaps(life)`, `metrics.throughput(run)` and `metrics.goodput(run,
# SLO(gap=1))` may help. The cell is free.

# %%
# Your experiment.

# %% [markdown]
# ### Your answer
#
# In three to five sentences: where do the additional tokens come from, which of your own counts proves it, and who
# pays? What would you put on the dashboard instead? A person reads this: 1 point for the cause, 1 point for a count of
# your own.

# %% [markdown] nbgrader={"grade": true, "grade_id": "faster-engine-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** The blocks run out and the engine preempts the largest request, whose prompt and output go through the
# model again: 34,804 tokens were computed twice with 20 slots, 10,790 with 14. Tokens of output per second hardly
# changed (219 and 216). Those who were thrown out pay: the longest gap between two tokens is 13 s, and eight users
# waited for more than two seconds in mid-answer instead of three. On the dashboard belong output tokens per second,
# preemptions and the gaps, or goodput with a limit on gaps. By the median latency alone (26.9 s, 29.1 s with 14 slots)
# it even is a small win: the limit decides.
#
# **1 point** (cause without a count): The engine preempts more often and computes the same tokens again.
#
# **0 points:** More slots mean a larger batch, which uses the GPU better.

# %% [markdown]
# ## 7 · Prompts that begin alike
#
# System prompts, examples, the earlier turns of a conversation: many prompts begin as others did, and keys and values
# of a token depend only on what stands before it. A **prefix cache** keeps full blocks after use. A block's name must
# hold its tokens *and everything before them*: a hash of both (vLLM) or a path in a radix tree (SGLang's
# RadixAttention).
#
# The rules here: only full blocks are kept. Hits count from the front to the first miss. The last token of a prompt is
# always processed, because its logits are needed: a block that holds it is no hit. After each prompt all its full
# blocks are in the cache, used now. While there are more than `capacity`, one goes: the block unused for longest;
# among those last used by the same prompt the one farthest from its start.
#
# **Do.** Write `prefix(prompts, capacity, size)`: the number of blocks hit for each prompt, a list. Prompts are lists
# of token numbers, `size` the tokens of a block. About 12 lines.


# %% nbgrader={"grade": false, "grade_id": "prefix", "locked": false, "schema_version": 3, "solution": true, "task": false}
def prefix(prompts, capacity, size):
    ### BEGIN SOLUTION
    used, hits = {}, []
    for now, prompt in enumerate(prompts):
        blocks = [tuple(prompt[:end]) for end in range(size, len(prompt) + 1, size)]
        found = 0
        while found < (len(prompt) - 1) // size and blocks[found] in used:
            found += 1
        hits.append(found)
        for block in blocks:
            used[block] = now
        while len(used) > capacity:
            del used[min(used, key=lambda block: (used[block], -len(block)))]
    return hits
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "prefix-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("serve.prefix", prefix)

# %% [markdown]
# **See.** 150 prompts: one of 12 system prompts of 256 tokens, some more popular than others, and 40 tokens of one's
# own. How much of them is found in caches of different sizes?

# %%
draws = np.random.default_rng(4)
systems = [draws.integers(0, 50_000, 256).tolist() for _ in range(12)]
popular = 1 / np.arange(1, 13)
asked = [
    [*systems[draws.choice(12, p=popular / popular.sum())], *draws.integers(0, 50_000, 40).tolist()]
    for _ in range(150)
]
gpulab.need(prefix)
all_blocks = sum(len(prompt) // 16 for prompt in asked)
found = {
    blocks: sum(prefix(asked, blocks, 16)) / all_blocks for blocks in (10, 20, 40, 80, 120, 160, 200, 250)
}
gpulab.plot.lines(
    {"found": [(blocks, 100 * share) for blocks, share in found.items()]},
    "cache, blocks of 16 tokens",
    "blocks found, % of all",
    f"The system prompts are 12 × 16 = 192 blocks; 80 blocks of cache already find {100 * found[80]:.0f} % of all, because "
    "some are popular.",
)

# %% [markdown]
# **Why.** A hit saves prefill, not decode, and shortens TTFT. Two traps: anything that changes at the *front* of a
# prompt, such as the time of day, makes every block behind it another one; and with several replicas the router must
# send a conversation to where its blocks are.
#
# ## 8 · Prefill here, decode there
#
# Pieces make prefill and decode share a GPU politely. **Disaggregation** parts them: some GPUs only prefill, others
# only decode, and keys and values travel between (Y. Zhong et al., "DistServe", 2024). Each side gets the batch and
# the layout that suit it, and neither disturbs the other. The price is the transfer, and a ratio of GPUs that must fit
# the load.
#
# **Predict.** Llama 3 8B, a prompt of 2,000 tokens: how long is its cache on the way over NDR InfiniBand, 50 GB/s in
# each direction?

# %%
gpulab.predict("serve.transfer", ...)

# %%
load = traces.poisson(14, 20, 8, traces.Lengths(2000, 0.4, 8000, 200, 0.6, 1024))
wire = float(hardware.link("InfiniBand NDR").per_direction)
print(
    f"2,000 tokens are {2000 * h100.token_bytes / 1e6:.0f} MB: {1000 * 2000 * h100.token_bytes / wire:.1f} ms"
)


def one_prompt_at_a_time(state):
    return {"admit": [state.waiting[0].number]} if state.waiting and not state.running else {}


def apart(requests, machine):
    """A GPU for prompts, a GPU for decoding: the lives as their users see them."""
    prompts = [Request(r.number, r.arrival, r.prompt, 1) for r in requests]
    firsts = {
        life.request.number: life.tokens[0]
        for life in serving.run(machine, prompts, one_prompt_at_a_time).lives
    }
    moved = [
        Request(
            r.number,
            firsts[r.number] + r.prompt * h100.token_bytes / wire,
            r.prompt,
            r.output - 1,
            cached=r.prompt,
        )
        for r in requests
        if r.output > 1
    ]
    rest = {life.request.number: life.tokens for life in serving.run(machine, moved, whole_prompts).lives}
    return [serving.Life(r, tokens=[firsts[r.number], *rest.get(r.number, [])]) for r in requests]


gpulab.need(chunk)
pair = [r for r in load if r.number % 2 == 0], [r for r in load if r.number % 2]
setups = {
    "two, whole prompts": [life for half in pair for life in serving.run(big, half, whole_prompts).lives],
    "two, in pieces": [life for half in pair for life in serving.run(big, half, chunk.decide).lives],
    "apart": apart(load, serving.fitting("Llama 3 8B", "H100")),
}
shown = {"TTFT p99, ms": {}, "TPOT p99, ms": {}, "longest gap, ms": {}}
for name, lives in setups.items():
    shown["TTFT p99, ms"][name] = 1000 * metrics.percentile(map(metrics.ttft, lives), 99)
    shown["TPOT p99, ms"][name] = 1000 * metrics.percentile(map(metrics.tpot, lives), 99)
    shown["longest gap, ms"][name] = 1000 * max(max(metrics.gaps(life), default=0) for life in lives)
gpulab.plot.panels(
    shown,
    "Two H100s, modelled. Apart, no prompt stops a stream once it is there; but all prompts queue at one GPU, all streams "
    "share the other, and the longest gap is the way between them.",
)

# %% [markdown]
# **Why.** Parting makes TPOT independent of prompts and TTFT of the batch. With two GPUs it costs more than it gives:
# each does one half of the work alone. With many, in a ratio and with a split of the model that fit each side, it
# pays. The model also flatters pieces: in it a step's reading and computing overlap perfectly.
#
# ## 9 · The same policies on a real model
#
# The engine does not care who carries a step out. `OnModel` runs it on the small GPT of lab 13, on this machine:
# prompts together, then all that decode together, with padding. Seconds are real now. It has learnt little stories
# that end in a question and its answer.
#
# **Predict.** Tokens per second with 8 slots over those with 1?

# %%
gpulab.predict("serve.batched", ...)

# %%
from gpulab.models import pretrained, text
from gpulab.serving.model import OnModel

gpt = pretrained.trained()
stories = text.Stories(7)
prompts = {}
for n in range(16):
    story = "\n" + next(stories)
    prompts[n] = text.encode(story[: story.index("?") + 2] if n % 2 else story[:12])
trace = [Request(n, 0.0, len(tokens), 80 - len(tokens)) for n, tokens in prompts.items()]

gpulab.need(admit)
rates = {}
for slots in (1, 4, 8):
    on_model = OnModel(gpt, prompts, stop=text.encode("\n")[0])
    real = serving.run(Machine(slots, 1000, reserve=True), trace, admit.decide, execute=on_model)
    rates[slots] = metrics.throughput(real)
    print(f"{slots} slots: {len(real.steps):4} steps, {rates[slots]:6.0f} tokens/s")
for n in (0, 1):
    print(repr(text.decode(prompts[n])), "→", repr(text.decode(on_model.tokens[n])))
gpulab.predict("serve.batched", measured=rates[8] / rates[1])

# %% [markdown]
# **Why.** On this CPU, too, a step costs much that does not depend on the batch. The texts do not depend on it either:
# a test of `gpulab` holds every request to the tokens that it gets alone, whatever a policy does.
#
# ## 10 · A service over HTTP
#
# Now a real server: FastAPI and uvicorn on this machine's loopback, an engine in a thread, your `admit` as its policy.
# It speaks OpenAI's form, as nearly all servers do: `POST /v1/completions`. With `"stream": true` tokens come as
# **server-sent events**, lines `data: {…}` and at last `data: [DONE]`. The handler is **asynchronous**: thousands of
# open connections wait in one thread while the engine works in another.

# %%
from gpulab.serving import http
from gpulab.serving import load as generator


def lines_of(url, body):
    """What the server sends, line by line."""
    sent = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(sent, timeout=30) as answer:
        return answer.read().decode().split("\n")


gpulab.need(admit)
with http.Service(gpt, admit.decide, Machine(8, 100, reserve=True)) as service:
    question = {"prompt": "\nana lost a red kite near the mill. who lost a red kite? ", "max_tokens": 8}
    print(json.loads(lines_of(service.url + "/v1/completions", question)[0])["choices"][0])
    for line in [
        line for line in lines_of(service.url + "/v1/completions", question | {"stream": True}) if line
    ][:3]:
        print(line[:100], "…")

# %% [markdown]
# The generator of load is open-loop: each request leaves at its time, whether or not the others are back. Server and
# generator share this machine and one Python process, which both slows.

# %%
start = "\nana lost a red kite near the mill. who"
gpulab.need(admit)
seen = {}
with http.Service(gpt, admit.decide, Machine(8, 100, reserve=True), most_waiting=40) as service:
    for rate in (10, 20, 40, 80, 160):
        times = traces.arrivals(rate, 1.5, np.random.default_rng([24, rate]))
        coming = [Request(n, at, len(start), 20) for n, at in enumerate(times)]
        answers = generator.open_loop(service.url, coming, [start] * len(coming))
        told = metrics.summary(generator.as_run(answers), SLO(ttft=0.2))
        sent = len(answers) / 1.5
        seen[sent] = told | {"away": sum(answer.status == 503 for answer in answers)}
        print(
            f"{sent:5.1f}/s: {len(answers):3} sent, {seen[sent]['away']:3} sent away   TTFT p50 "
            f"{1000 * told['TTFT p50']:6.1f} ms, p99 {1000 * told['TTFT p99']:6.1f} ms   {told['tokens/s']:5.0f} tokens/s, "
            f"goodput {told['goodput']:5.1f}/s"
        )
gpulab.plot.lines(
    {p: [(rate, 1000 * told[f"TTFT {p}"]) for rate, told in seen.items()] for p in ("p50", "p99")},
    "requests sent per second",
    "TTFT, ms, measured here",
    "Section 1's curve, measured: it climbs while the engine keeps up; then the queue decides, up to its limit of 40.",
    log_x=True,
    log_y=True,
)

# %% [markdown]
# **Why.** The knee is where the engine's tokens per second are used up. Beyond it an open loop makes the queue grow as
# long as it lasts; a service must send somebody away (`503` with `Retry-After`; here `most_waiting`) or serve nobody
# well. Goodput can fall although throughput does not: that is why the two are not the same.
#
# ## 11 · Servers, by what they are for
#
# As of November 2026, from the projects' own pages (references 5 to 10).
#
# | server | what it is | for |
# |---|---|---|
# | **vLLM** | engine and server: paged and prefix cache, pieces, continuous batches; many models and makers of chips | the usual first choice |
# | **SGLang** | engine and server: radix tree of prefixes, structured output | shared prefixes, agents |
# | **TensorRT-LLM** | NVIDIA's engine, built on PyTorch by now: kernels for its own GPUs | the last per cent on NVIDIA |
# | **Triton Inference Server** | serves models of any framework, with a dynamic batcher; part of Dynamo's family today | many kinds of models side by side |
# | **Dynamo** | NVIDIA's layer above engines: routing by cache, prefill and decode apart | many nodes |
# | **NIM** | NVIDIA's containers: a model and vLLM or SGLang (its version 2.1), ready-made | to buy rather than to tune |
# | **TGI** | Hugging Face's server; in maintenance mode since December 2025 | what runs on it already |
# | **llama.cpp**, Ollama | engine in C++ for CPUs and small GPUs, quantised models; Ollama wraps it | one machine, few users |
# | **Ray Serve** | replicas, routing, scaling in Python; vLLM or another engine inside | several models, pipelines |
#
# A server of language models serves *one base model* per engine (with LoRA adapters on top); several models are
# several engines behind a router.
#
# ## 12 · What it costs, and how often it is there
#
# **Cost** per million tokens of output = price per hour ÷ (tokens per second × 3,600 × share of the time in use) ×
# 10⁶, at the throughput that *keeps the SLO*. Below, all the time is in use. **Availability** of a part is MTBF/(MTBF
# + MTTR): mean time between failures, mean time to repair. If n replicas are enough of which k must work, and they
# fail independently, P = Σ (i = k … n) C(n, i) aⁱ (1 − a)ⁿ⁻ⁱ. They rarely do: a bad release stops all at once.

# %%
price = 3.00  # $ per GPU and hour: an input, look up your own
for batch in (1, 8, 64):
    rate = batch / decode(h100, batch, 1000)
    print(
        f"batch {batch:3}: {rate:7,.0f} tokens/s, {price / rate / 3600 * 1e6:6.2f} $ per million tokens, modelled"
    )
one = 700 / (700 + 4)  # fails every 700 hours, 4 hours to replace: inputs, too
for spare in (0, 1, 2):
    n = 4 + spare
    there = sum(comb(n, i) * one**i * (1 - one) ** (n - i) for i in range(4, n + 1))
    print(
        f"4 replicas and {spare} spare: there {100 * there:.4f} % of the time, away {8766 * (1 - there):6.2f} h a year"
    )

# %% [markdown]
# ## Beyond · Goodput against an adversary
#
# Open-ended and ungraded; capstone C of lab 22 goes on from here. The trace sends, every five seconds, long prompts
# and long outputs right before a crowd of short ones. SLO: TTFT 0.5 s, no gap above 50 ms. Figure of merit: requests
# that keep it.
#
# | policy | keep the SLO |
# |---|---|
# | static batches | the cell below |
# | whole prompts, first come, first served | the cell below |
# | ours: short prompts first, pieces up to the ridge | the cell below |
# | bound | 100 % |

# %%
attack = traces.adversarial(30, 20, 1)
hit = serving.fitting("Llama 3 8B", "A100", slots=128)


def short_first(state):
    """Pieces up to the ridge, those with the least left first."""
    times = state.machine.times
    free = int(times.weights / times.bandwidth * times.peak / times.per_token)
    free -= sum(request.decodes for request in state.running)
    admitted = sorted(state.waiting, key=lambda request: request.left)[: state.free_slots]
    pieces = {}
    for request in sorted([*state.running, *admitted], key=lambda request: request.left):
        if request.left:
            pieces[request.number] = max(0, min(request.left, free))
            free -= pieces[request.number]
    return {"admit": [request.number for request in admitted], "prefill": pieces}


for name, tried in (
    ("static", policies.static),
    ("whole prompts", whole_prompts),
    ("short first", short_first),
):
    run = serving.run(hit, attack, tried)
    told = metrics.summary(run, SLO(ttft=0.5, gap=0.05))
    print(
        f"{name:14} {100 * told['SLO kept']:5.1f} % keep the SLO, goodput {told['goodput']:5.1f}/s, TTFT p99 {told['TTFT p99']:6.2f} s"
    )

# %%
# Your policy.

# %% [markdown]
# ## Recap
#
# <details><summary>1. Service 100 ms, cv 2, 8 requests per second. How long is the mean latency?</summary>
#
# ρ = 0.8; W = 4 · 0.1 · (1 + 4)/2 = 1 s; T = 1.1 s. On average 8 · 1.1 = 8.8 requests are there.
# </details>
#
# <details><summary>2. A benchmark with 16 clients in a loop reports p99 = 80 ms. What do you ask?</summary>
#
# Whether the clock starts when a request was due or when it was sent, and how many samples there were: a stall of any
# length costs a closed loop 16 of them.
# </details>
#
# <details><summary>3. Which part of a decode step does a larger batch share, and which not?</summary>
#
# Reading the weights, not the keys and values.
# </details>
#
# <details><summary>4. How large may a piece of a prompt be without stretching a step?</summary>
#
# Up to the ridge: weight bytes ÷ bandwidth × peak ÷ FLOP per token, less the requests that decode.
# </details>
#
# <details><summary>5. When does preemption cost nothing, and what does it always cost?</summary>
#
# Tokens computed again can hide in steps that wait for memory. The stream that was thrown out stalls.
# </details>

# %%
gpulab.recap("20")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | how long is the wait? | ρ/(1 − ρ) · s · (1 + cv²)/2 |
# | how many are there? | λ · latency |
# | p99 of n samples | sorted, number ⌈0.99 n⌉; n ≫ 100; pool, never average |
# | least time of a decode step | (weights + keys and values) ÷ bandwidth |
# | free tokens of a step | ridge × bytes per weight ÷ 2 |
# | continuous batching | refill slots in every step |
# | blocks | admit by need, keep some free, last in goes out |
# | prefix cache | a block's name holds all before it; full blocks only |
# | what to report | goodput under the SLO, preemptions, gaps; not tokens through the model |
#
# ### Claims you will meet, and what is right
#
# - *T = max(t_data, t_gpu) is Amdahl's law.* It is the bound of an overlapped pipeline. Amdahl is about the serial
#   share.
# - *TGI is the server to start with; it serves several models.* It is in maintenance mode, and one base model per
#   server.
# - *Higher GPU utilisation means a better service.* `GPU-Util` counts time with any kernel, and recomputed tokens are
#   work, too.
# - *Dynamic batching is what language models need.* It is for requests of equal length; these need continuous
#   batching.
# - *Latency p99 of the service is the mean of the replicas' p99.* Percentiles do not average.
# - *Decoding waits for data transfers' latency.* For bandwidth: bytes of weights and cache over B/s.
#
# ### References
#
# 1. J. Little, "A Proof for the Queuing Formula: L = λW", Operations Research 9 (3), 1961.
# 2. G.-I. Yu et al., "Orca: A Distributed Serving System for Transformer-Based Generative Models", OSDI, 2022.
# 3. A. Agrawal et al., "Taming Throughput-Latency Tradeoff in LLM Inference with Sarathi-Serve", OSDI, 2024.
#    https://arxiv.org/abs/2403.02310
# 4. Y. Zhong et al., "DistServe: Disaggregating Prefill and Decoding for Goodput-optimized Large Language Model Serving",
#    OSDI, 2024. https://arxiv.org/abs/2401.09670
# 5. vLLM, "Optimization and Tuning" and "Automatic Prefix Caching". https://docs.vllm.ai
# 6. L. Zheng et al., "SGLang: Efficient Execution of Structured Language Model Programs", 2024.
#    https://arxiv.org/abs/2312.07104
# 7. NVIDIA, "Dynamo" and "TensorRT-LLM" documentation. https://docs.nvidia.com/dynamo
# 8. Hugging Face, text-generation-inference, README. https://github.com/huggingface/text-generation-inference
# 9. Ray, "Serving LLMs". https://docs.ray.io/en/latest/serve/llm/index.html
# 10. llama.cpp, server. https://github.com/ggml-org/llama.cpp
# 11. N. Gunther, "Guerrilla Capacity Planning", 2007.
