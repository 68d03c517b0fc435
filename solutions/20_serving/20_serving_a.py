# ---
# jupyter:
#   gpulab:
#     lab: "20"
#     hours: 4
#     topics: [C6.10, C13.7, C13.11, C21.1, C21.2, C21.3, C21.7, C24.6]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 20 A · Serving: the engine
#
# **3 to 5 hours.** You need the roofline (lab 02) and, from lab 19, prefill, decode and a key-value cache in
# blocks. The clocks in this part are virtual, and the times of steps are modelled from data sheets. At the end, the
# same engine runs a small GPT on your machine and answers over HTTP. Part B is about the cluster around the engine.
#
# By the end of this part, you can
#
# 1. say how long requests wait at a given load, and how much load a latency limit allows;
# 2. measure a service in such a way that no slow answer stays hidden;
# 3. batch continuously, cut long prompts into pieces, preempt when memory runs out, and say what each costs;
# 4. reuse keys and values when prompts begin alike;
# 5. run a language model behind HTTP and find out how much load it can take.

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
# Users do not coordinate, so their requests arrive at random: λ of them per second on average, each independent of
# the others. That is a **Poisson process**. Suppose that one server handles them one after another and takes s
# seconds for each on average. It is then busy for the share ρ = λ s of the time, which is called its
# **utilisation**. As long as ρ is below 1 the server keeps up, and yet queues form, because requests arrive in
# clusters.
#
# ![Requests wait in a queue. In each step the engine's policy decides who is admitted, who computes, and who has to give back its blocks.](drawings/service.svg)
#
# How long the queue gets also depends on how much the service times vary. The measure for this is **cv**, the
# coefficient of variation: the standard deviation of the service time divided by its mean. The mean wait is
# (F. Pollaczek 1930, A. Khinchine 1932)
#
#     W = ρ/(1 − ρ) · s · (1 + cv²)/2
#
# A queue with random (exponential) service times, for which cv = 1, is called **M/M/1**. A queue with equal service
# times, for which cv = 0, is called **M/D/1**. The **latency** of a request is its wait plus its service: T = W + s.
# **Little's law** holds for every stable system: on average, L = λ T requests are in it.
#
# **Predict.** Let s = 1 s and cv = 1. At ρ = 0.5 the mean wait is 0.5/0.5 · 1 s · (1 + 1)/2 = 1 s. How long is it at
# ρ = 0.9?

# %%
gpulab.predict("serve.wait_at_90", ...)

# %% [markdown]
# **Do.** Write `queue(rate, service, cv, limit)`, which describes a queue by four numbers.
#
# - `rate` is λ in requests per second, `service` is s in seconds, and `limit` is a mean latency in seconds.
# - Output: a list of the utilisation, the mean latency in seconds, the mean number of requests in the system, and the
#   highest rate at which the mean latency is at most `limit`.
# - If ρ is 1 or more, the queue grows for ever, so the latency and the number are None.
# - The highest rate does not depend on `rate`. If no rate keeps the limit, it is 0.
#
# About 8 lines.


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
# **See.** The next cell simulates 40,000 requests at one server and draws the result beside the formula.


# %%
def simulated(load, cv, count=40_000):
    """Mean latency in units of the service time, from a simulation."""
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
    curves[f"cv {cv}, simulated"] = [(load, simulated(load, cv)) for load in loads]
gpulab.plot.lines(
    curves,
    "utilisation",
    "mean latency, service times",
    "Latency grows without bound toward full load, and it grows sooner the more the service times vary.",
)

# %% [markdown]
# **Why.** Load and variation determine the wait. The lengths of a language model's outputs differ by factors of a
# hundred, so a server that answered one request after another would be on the upper curve or above it. Batches change
# the server, but not the shape of the curve.
#
# "Run at 100 % utilisation" is therefore a plan for endless queues. "Run at 70 %" is no law either, because the
# right load follows from the latency limit. Do not confuse ρ with the `GPU-Util` of `nvidia-smi`, which is the
# share of time in which *some* kernel was running.
#
# ## 2 · What a client sees
#
# ![The life of a request. TTFT is the time from when it was due until its first token. TPOT is the mean time between its later tokens.](drawings/life.svg)
#
# - **TTFT** is the time to the first token. **TPOT** is the time per output token: (time of the last token − time of
#   the first) ÷ (tokens − 1).
# - **Throughput** is the number of output tokens per second.
# - An **SLO**, a service-level objective, states limits such as TTFT ≤ 300 ms and TPOT ≤ 50 ms. **Goodput** is the
#   number of requests per second that keep all these limits.
# - **p99** is the 99th percentile. By the nearest-rank rule, p99 of n values is number ⌈0.99 n⌉ of the sorted
#   values, counted from 1. Do not average the percentiles of several servers. Pool their samples and take the
#   percentile of all.
#
# A load generator is a **closed loop** if each client sends its next request only after the answer to its last one.
# Such clients stop asking while the service stalls. Real users do not, so they are an **open loop**. The clock
# therefore has to start when a request was *due*. If it starts when the request is sent, the wait before that is
# lost. This mistake is called **coordinated omission** (G. Tene).
#
# **Predict.** What is the smallest number of samples for which p99 is not the slowest sample?

# %%
gpulab.predict("serve.samples_for_p99", ...)

# %% [markdown]
# **Do.** Write `measure(log, ttft, tpot)`, which computes these figures from a log.
#
# - `log` has rows `[request, event, time]` in any order. Times are whole milliseconds. Events are `"due"`, `"sent"`,
#   `"token"`, `"end"` and `"error"`. `ttft` and `tpot` are limits in milliseconds.
# - Output: a list of p50 of TTFT, p99 of TTFT, and p99 of TPOT, all in milliseconds, then tokens per second, and
#   goodput with the two limits (≤). A percentile without any value is None.
# - The two rates refer to the time from the first `due` to the last event of any kind.
# - A request with an error appears in no percentile and does not count for goodput. Its tokens and its time do count.
# - A request with a single token has no TPOT, so it keeps any limit on TPOT.
#
# About 22 lines.


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
# **See.** A server needs 10 ms for each request and once, halfway through, stalls for 3 s. The next cell measures it
# twice: with four clients in a closed loop, and with an open loop at the same rate.

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
    "The same server with the same stall: in a closed loop only four requests notice it, so p99 does not show it.",
    log_y=True,
)

# %% [markdown]
# **Why.** During the stall, the four clients wait and send nothing. A stall of any length therefore contributes only
# four slow samples. The open loop keeps sending, and every request that arrives during the stall has to wait.
#
# A percentile also needs enough samples *beyond* it. With 1,000 samples, only ten are slower than p99. The next cell
# shows how much p99 varies from one measurement to the next, with log-normal latencies:

# %%
draws = np.random.default_rng(2)
for count in (50, 100, 1000, 10_000):
    seen = [metrics.percentile(np.exp(0.8 * draws.standard_normal(count)), 99) for _ in range(100)]
    low, high = np.quantile(seen, (0.05, 0.95))
    print(f"{count:6,} samples: p99 between {low:4.1f} and {high:4.1f} in nine measurements of ten")

# %% [markdown]
# ## 3 · The time of a step
#
# To predict what an engine can do, you need the time of one step. A decode step reads all weights once, however many
# requests are in the batch. For each request it also reads that request's own keys and values. It computes two FLOP
# per weight and request. Of the model's 8 billion weights, only 7.5 billion take part. The others are the table of
# embeddings, from which a step merely looks up the rows of its tokens.
#
# As long as the arithmetic takes less time than the reading, additional requests cost almost no time. The ridge of
# the roofline is where this ends. The model below computes two times, FLOPs ÷ peak and bytes ÷ bandwidth, with the
# rates of the data sheet, and takes the larger. The result is a lower bound that real engines come close to. It is
# not a measurement.
#
# **Predict.** Take Llama 3 8B in bfloat16 on an H100, with short contexts. At which batch size does the arithmetic
# take as long as reading the weights?

# %%
gpulab.predict("serve.decode_batch", ...)

# %%
h100 = serving.times("Llama 3 8B", "H100")
batches = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]


def decode(times, batch, context):
    """Seconds of a decode step: `batch` new tokens, each of which attends to `context` cached tokens and itself."""
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
    "Without context, the rate grows up to the ridge. Keys and values belong to one request each, so a batch cannot share them.",
    log_x=True,
    log_y=True,
)

# %% [markdown]
# **Why.** With a long context, the batch reads mostly keys and values. Their arithmetic intensity does not grow with
# the batch, so decode stays memory-bound at any batch size.
#
# No batch and no number of GPUs makes the serial part of a step faster. **Amdahl's law** says how much that costs:
# if a share σ of a step's time cannot be divided, n GPUs make the step at most 1/(σ + (1 − σ)/n) times as fast. In
# the next cell, 1 ms of every step is scheduling and sampling on the CPU.
#
# If workers also have to wait for one another, N. Gunther's **universal scalability law** applies: n workers are
# n/(1 + σ(n − 1) + κ n(n − 1)) times as fast as one, where κ measures the waiting. This function has a maximum, and
# beyond it more workers achieve less. The formula max(t_data, t_gpu), which is sometimes called Amdahl's law, is
# something else: it is the bound of a *pipeline* whose two stages overlap.

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
    "One serial millisecond costs more than half of the speed-up of eight GPUs.",
)

# %% [markdown]
# ## 4 · Batches
#
# The package `serving` contains an engine on a virtual clock. In each step, the engine asks a **policy** what to do.
# It refuses a decision that cannot be carried out, and otherwise gives every running request one token. There are
# three common ways to form batches:
#
# - **Static batching** takes as many requests as there are slots, and takes the next ones only when all of these have
#   finished.
# - **Dynamic batching** does the same but first waits a little for more requests to arrive. This suits requests that
#   all take the same time, such as classifying images.
# - **Continuous batching**, also called *in-flight batching*, decides again in every step (G.-I. Yu et al., "Orca",
#   2022).

# %%
machine = Machine(slots=8, blocks=10_000, reserve=True)  # every step takes one unit of time
requests = traces.alternating(64)  # outputs of 16, 256, 16, 256 … tokens; each may have up to 256
print(requests[0])

# %% [markdown]
# **Predict.** 64 requests are waiting for 8 slots. Their outputs have 16 and 256 tokens alternately. How many steps
# do static batches take?

# %%
gpulab.predict("serve.static_steps", ...)

# %%
static = serving.run(machine, requests, policies.static)
print("static:", len(static.steps), "steps for", sum(r.output for r in requests), "tokens")

# %% [markdown]
# **Do.** Write `admit(queue, running, blocks, slots)`, a policy for continuous batching. The engine calls it in every
# step.
#
# - `queue` and `running` are lists of requests. A request has `.number`, `.prompt` (tokens), `.made` (tokens so far)
#   and `.most`, the limit on its output in tokens. Nobody knows how long the output will really be.
# - `blocks` and `slots` are the numbers of free blocks and free slots.
# - Each request **reserves** whole blocks of 16 tokens for its prompt and its longest possible output together. For
#   8 + 40 tokens, that is ⌈48/16⌉ = 3 blocks.
# - Output: the numbers of the requests that start in this step, taken from the front of the queue. If one does not
#   fit, none after it may start.
# - **Budget:** at most 1,270 steps for the 64 requests above. In every step, all requests that fit have to start.
#
# About 6 lines. The decorator lets the check ask your policy step by step. The check uses a separate engine, which
# carries out each decision and reports which requests have arrived or finished. If a decision cannot be carried out,
# the message names the step. In your own cells, pass `admit.decide` to an engine.


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
    """Which request is in which slot. Hollow spans: the slot waits for the batch to end."""
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
    caption="Static: a slot whose request has finished (dashed) waits for the longest request of its batch.",
)

# %%
gpulab.need(admit)
continuous = serving.run(machine, requests, admit.decide)
used = sum(r.output for r in requests) / 8 / len(continuous.steps)
print(f"continuous: {len(continuous.steps)} steps, slots busy for {100 * used:.0f} % of them")
for name, run in (("static", static), ("continuous", continuous)):
    summary = metrics.summary(run)
    print(
        f"{name:10} median TTFT {summary['TTFT p50']:5.0f} steps, median latency {summary['latency p50']:5.0f}"
    )
gpulab.plot.timeline(
    spans(continuous),
    "steps",
    caption="Continuous: a free slot is refilled in the next step. Slots stay empty only at the end.",
)

# %% [markdown]
# **Step through it.** The next cell runs your `admit` on a smaller machine with four slots and 24 blocks of cache. A
# dashed block is reserved but still empty. Find a step in which a slot is free and a request is waiting nevertheless.
# Why does it not start?

# %%
from gpulab.plot.moving import Batching

small = Machine(slots=4, blocks=24, reserve=True)
few = [Request(i, 0.0, prompt=16 * (1 + i % 3), output=(20, 70, 35, 90)[i % 4], most=96) for i in range(10)]
served = serving.run(small, few, admit.decide)
Batching(served, serving.stays(served))

# %% [markdown]
# **Why.** The outputs have 32 · 16 + 32 · 256 = 8,704 tokens, so 8 slots need at least 8,704 / 8 = 1,088 steps.
# First come, first served gets within 6 % of that without knowing any length. The rest is lost at the end, when
# the last long requests run alone.
#
# In the next cell, requests arrive one by one, and their outputs have many different lengths. The dynamic batcher
# waits until eight requests have arrived, but for at most 100 steps:

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
        summary = metrics.summary(serving.run(machine, come, policy), percents=(50, 99))
        print(
            f"{rate:g} requests a step, {name:10}: TTFT p50 {summary['TTFT p50']:5.0f} steps, latency p99 {summary['latency p99']:5.0f}"
        )

# %% [markdown]
# Waiting for more requests fills the batches but delays every request in them. It pays off only if all requests of a
# batch finish together. You can also limit the **tokens** of a batch instead of its requests. The work of a step
# depends on its tokens, so this limits the time of a step. The next section uses it.
#
# ## 5 · Long prompts in pieces
#
# If a prompt of thousands of tokens is processed in one step, every other user waits for that step. **Chunked
# prefill** cuts the prompt into pieces. Each step processes one token of every request that decodes, and then fills
# up with a piece of a prompt (A. Agrawal et al., "Sarathi-Serve", 2024).
#
# **Predict.** Llama 3 8B runs on an H100. How long does a step take that contains a whole prompt of 8,192 tokens?

# %%
gpulab.predict("serve.stall", ...)

# %% [markdown]
# **Do.** Write `chunk(state)`, a policy that sees the whole state of the engine and cuts prompts into pieces.
#
# - `state.waiting` and `state.running` are lists of requests as before. They also have `.left`, the tokens of the
#   prompt that are still to be processed, and `.decodes`, which is true if none are left.
# - `state.free_slots` is the number of free slots. There are always enough blocks.
# - `state.machine.times` has `.weights` in bytes, `.bandwidth` in B/s, `.peak` in FLOP/s, and `.per_token`, the FLOP
#   that a token takes. The FLOP of attention are not included. You may ignore them.
# - Output: `{"admit": numbers, "prefill": {number: tokens}}`. A prompt that `prefill` does not name waits. Without
#   the key `prefill`, all prompts are processed whole. Every request that decodes gets a token in any case.
# - **Budget:** no gap between two tokens of a request is longer than 1.5 × the time in which the weights are read,
#   and everything is done in at most 0.9 × the time that whole prompts take. Both have to hold on an H100, an L4,
#   an A100, and an H100 with weights of 4 bits.
#
# About 10 lines.


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
    "Each whole prompt interrupts the talk for about 100 ms. Pieces up to the ridge are hardly noticeable.",
    log_y=True,
    step=True,
)

# %% [markdown]
# **Why.** While a decode step reads weights, its tensor cores are mostly idle. A piece of a prompt fills this idle
# time, so prefill and decode in one step are even *faster* than one after the other. Pieces that are too small read
# the weights too often, and pieces that are too large stretch the gaps. The documents pay a little for the short
# gaps, because their first token comes later.
#
# Engines have a setting for the number of tokens in a step. In vLLM it is called `max_num_batched_tokens`, and
# chunking has been on by default since version 1 of its engine (reference 5).
#
# ## 6 · When memory runs out
#
# Reserving space for the longest possible output wastes most of the cache, because few outputs get that long.
# Engines therefore admit requests by what they need *now*. If the blocks run out later, a request is **preempted**,
# which means that it goes back to the queue. Its keys and values are then either thrown away and computed again
# later (**recompute**), or moved to the host's memory and back (**swap**).
#
# **Predict.** The keys and values of one token of Llama 3 8B take 128 KiB. An H100 is connected by PCIe 5.0, with
# 63 GB/s in each direction. How many times as long does it take to recompute a token as to move it out and back?

# %%
gpulab.predict("serve.swap_or_again", ...)

# %%
for gpu, model in (("H100", "Llama 3 8B"), ("H100", "Llama 2 7B"), ("L4", "Llama 3 8B")):
    times = serving.times(model, gpu)
    again, move = times.compute(Work(new=1)), 2 * times.token_bytes / times.link
    print(f"{model} on {gpu}: recompute {1e6 * again:6.1f} µs, out and back {1e6 * move:5.1f} µs per token")

# %% [markdown]
# On paper, moving is faster, except for Llama 2 7B, in which every query head has its own keys and values.
# Recomputing has two advantages nevertheless. Like the pieces of section 5, it can fill the idle time of steps that
# wait for memory, and it needs no space on the host. vLLM recomputes (reference 5).
#
# Here is a first policy for a machine without `reserve`. In it, `.tokens` is the number of a request's tokens that
# are in the cache. After the next step, a request holds blocks for `.tokens` + 1 tokens, or for `.tokens` + `.left`
# if it has a prompt to process. If there are not enough blocks for all, the policy throws out the largest request.


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
    summary = metrics.summary(run)
    print(
        f"{name:10} mean of {np.mean([len(s.gave) for s in run.steps]):4.1f} requests at a time, median latency {summary['latency p50']:5.1f} s"
    )


def at_a_time(run):
    return [(step.stop, len(step.gave)) for step in run.steps[::10]]


most = {name: max(len(step.gave) for step in run.steps) for name, run in held.items()}
gpulab.plot.lines(
    {name: at_a_time(run) for name, run in held.items()},
    "time, s, modelled",
    "requests that get a token",
    f"With admission as needed, the same memory serves up to {most['as needed']} requests at a time instead of "
    f"{most['reserved']}, and all are done after {held['as needed'].end:.0f} s instead of {held['reserved'].end:.0f} s.",
)

# %% [markdown]
# **Do.** Write a better policy, `preempt(state)`. Start from `evict_largest`.
#
# - Some requests are urgent: their `.priority` is 1 instead of 0. They arrive later than the others. `.arrival` is
#   the time at which a request arrived.
# - The blocks of a preempted request are free in the same step.
# - Output: `{"admit": numbers, "preempt": numbers}`, as in `evict_largest`.
# - **Budget**, for a crowd of 100 requests on an L4: at most 4 % of all tokens are computed twice, the mean latency
#   is at most 0.35 × that of reserving, and every urgent request gets its first token after at most 2 s.
#
# About 20 lines.


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
# **Why.** The policy combines three ideas. First, urgent requests are admitted before the others and preempted after
# them. Second, a few blocks stay free, so that running requests have space to grow until they finish. Third, among
# requests of the same priority, the victim is the one that arrived last. It has the least to lose, and the earliest
# requests run to their end.
#
# ## Detective · The faster engine
#
# A colleague serves a chatbot with `evict_largest` and reports: "We had 14 slots and memory to spare, so I raised
# the number of slots to 20. Tokens through the model are up by more than 40 %, the blocks are fuller, and half of
# the users see their first token sooner. A clear win."

# %%
users = traces.poisson(1.6, 60, 3, traces.Lengths(200, 0.5, 1024, 250, 0.5, 1024))
before = serving.run(Machine(14, 400, times=l4), users, evict_largest.decide)
after = serving.run(Machine(20, 400, times=l4), users, evict_largest.decide)
for name, run in (("14 slots", before), ("20 slots", after)):
    through = sum(step.tokens for step in run.steps) / run.end
    full = np.mean([step.blocks for step in run.steps]) / run.machine.blocks
    summary = metrics.summary(run)
    print(
        f"{name}: {through:.0f} tokens/s through the model, blocks {100 * full:.0f} % full, median TTFT {summary['TTFT p50']:.1f} s"
    )
gpulab.plot.lines(
    {
        name: list(zip([s.stop for s in run.steps], np.cumsum([s.tokens for s in run.steps]), strict=True))[::40]
        for name, run in (("14 slots", before), ("20 slots", after))
    },
    "time, s, modelled",
    "tokens through the model so far",
    "With 20 slots, the engine processes more tokens in the same time.",
)  # fmt: skip

# %% [markdown]
# **Do.** Is your colleague right? Each entry of `run.lives` holds `.tokens` (the times of its
# tokens), `.preempted` (how often it was thrown out) and `.recomputed` (how many tokens were computed again).
# `metrics.gaps(life)`, `metrics.throughput(run)` and `metrics.goodput(run, SLO(gap=1))` may help.

# %%
# Your experiment.

# %% [markdown]
# ### Your answer
#
# Answer in three to five sentences. Where do the additional tokens come from? Which count of your own proves it?
# Which users pay for it? What would you put on the dashboard instead? A person reads your answer: 1 point for the
# cause, 1 point for a count of your own.

# %% [markdown] nbgrader={"grade": true, "grade_id": "faster-engine-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** The blocks run out, and the engine preempts the largest request, whose prompt and output then go
# through the model again: 34,804 tokens were computed twice with 20 slots, against 10,790 with 14. The number of
# output tokens per second hardly changed (219 and 216). The users whose requests were thrown out pay for it: the
# longest gap between two tokens is 13 s, and eight users instead of three waited for more than two seconds in the
# middle of an answer. The dashboard should show output tokens per second, preemptions and gaps, or goodput with a
# limit on gaps. If you look only at the median latency (26.9 s, against 29.1 s with 14 slots), it is even a small
# win, so the choice of the limit decides.
#
# **1 point** (cause without a count): The engine preempts more often and computes the same tokens again.
#
# **0 points:** More slots mean a larger batch, which uses the GPU better.

# %% [markdown]
# ## 7 · Prompts that begin alike
#
# Many prompts begin as earlier ones did, because they share a system prompt, a set of examples, or the earlier turns
# of a conversation. The keys and values of a token depend only on that token and those before it, so they can be
# reused. A **prefix cache** keeps full blocks after use. It finds a block by a key, which must identify the block's
# tokens *and everything before them*. In vLLM, the key is a hash of both. In SGLang, it is a path in a radix tree
# (RadixAttention).
#
# **Do.** Write `prefix(prompts, capacity, size)`, which counts how many blocks are found in such a cache.
#
# - `prompts` is a list of prompts, in the order in which they arrive. A prompt is a list of token numbers and may be
#   empty. A block has `size` tokens, and the cache holds at most `capacity` blocks.
# - Output: a list with the number of hits for each prompt. Hits are counted from the front up to the first miss.
# - Only full blocks are cached. The last token of a prompt is always processed, because its logits are needed, so the
#   block that contains it is never a hit.
# - After each prompt, all of its full blocks are in the cache, including the last one, and count as used now.
# - As long as there are more than `capacity` blocks, remove one: the block that has been unused for longest. Of the
#   blocks that were last used by the same prompt, remove the one farthest from its start.
#
# About 12 lines.


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
# **See.** The next cell makes 150 prompts. Each begins with one of 12 system prompts of 256 tokens, some of which
# are more popular than others, and ends with 40 random tokens. What share of all blocks does a cache of a given size
# find?

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
    f"The system prompts are 12 × 16 = 192 blocks. A cache of 80 blocks already finds {100 * found[80]:.0f} % of all "
    "blocks, because some prompts are popular.",
)

# %% [markdown]
# **Why.** A hit saves prefill but not decode, so it shortens TTFT. There are two traps. Anything that changes at the
# *front* of a prompt, such as the time of day, makes every block after it a different block. And if there are
# several replicas, the router has to send a conversation to the replica that has its blocks.
#
# ## 8 · Prefill here, decode there
#
# With pieces, prefill and decode share a GPU. **Disaggregation** separates them: some GPUs only prefill, others
# only decode, and the keys and values travel between them (Y. Zhong et al., "DistServe", 2024). Each side can use
# the batch size and the parallelism that suit it, and neither disturbs the other. The price is the transfer, and a
# ratio of GPUs that has to match the load.
#
# **Predict.** Llama 3 8B has read a prompt of 2,000 tokens. How long does it take to send the cache over NDR
# InfiniBand, with 50 GB/s in each direction?

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
    """One GPU for prompts and one for decoding: the lives of the requests as their users see them."""
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
    "Two H100s, modelled. Apart, no prompt interrupts a stream once it has moved. But all prompts queue at one GPU, all "
    "streams share the other, and the longest gap is the move between them.",
)

# %% [markdown]
# **Why.** Once prefill and decode are separated, TPOT no longer depends on the prompts, and TTFT no longer depends
# on the batch. With only two GPUs, the separation costs more than it gains, because one GPU has to do all of the
# prefill and the other all of the decoding. With many GPUs, it pays off if their ratio and the way in which the
# model is split suit each side. The model of this lab also flatters pieces, because it assumes that the reading and
# the computing of a step overlap perfectly.
#
# ## 9 · The same policies on a real model
#
# The engine works with anything that can carry out a step. `OnModel` runs each step on the small GPT of lab 13, on
# your machine: first all prompts together, then all requests that decode, padded to the same length. The seconds are
# now real. This GPT has learnt to write little stories, each of which ends with a question and its answer.
#
# **Predict.** How many times as many tokens per second do 8 slots give as 1 slot?

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
# **Why.** On this CPU, too, much of a step's cost does not depend on the batch. The texts do not depend on the
# batch either: a test of `gpulab` verifies that every request gets the same tokens as when it runs alone, whatever
# the policy does.
#
# ## 10 · A service over HTTP
#
# The last step is a real server: FastAPI and uvicorn on your machine's loopback interface, an engine in a thread,
# and your `admit` as its policy. Like nearly all servers of language models, it understands OpenAI's format: `POST
# /v1/completions`. If a request contains `"stream": true`, the tokens arrive one by one as **server-sent events**,
# which are lines of the form `data: {…}` and finally `data: [DONE]`. The handler is **asynchronous**: thousands of
# open connections wait in a single thread while the engine works in another.

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
# The load generator is an open loop: each request is sent at its time, whether or not earlier ones have been
# answered. Server and generator share your machine and one Python process, which slows both of them down.

# %%
start = "\nana lost a red kite near the mill. who"
gpulab.need(admit)
seen = {}
with http.Service(gpt, admit.decide, Machine(8, 100, reserve=True), most_waiting=40) as service:
    for rate in (10, 20, 40, 80, 160):
        times = traces.arrivals(rate, 1.5, np.random.default_rng([24, rate]))
        coming = [Request(n, at, len(start), 20) for n, at in enumerate(times)]
        answers = generator.open_loop(service.url, coming, [start] * len(coming))
        summary = metrics.summary(generator.as_run(answers), SLO(ttft=0.2))
        sent = len(answers) / 1.5
        seen[sent] = summary | {"away": sum(answer.status == 503 for answer in answers)}
        print(
            f"{sent:5.1f}/s: {len(answers):3} sent, {seen[sent]['away']:3} turned away   TTFT p50 "
            f"{1000 * summary['TTFT p50']:6.1f} ms, p99 {1000 * summary['TTFT p99']:6.1f} ms   {summary['tokens/s']:5.0f} tokens/s, "
            f"goodput {summary['goodput']:5.1f}/s"
        )
gpulab.plot.lines(
    {p: [(rate, 1000 * summary[f"TTFT {p}"]) for rate, summary in seen.items()] for p in ("p50", "p99")},
    "requests sent per second",
    "TTFT, ms, measured here",
    "The curve of section 1, measured: it climbs while the engine keeps up; then the queue decides, up to its limit of 40.",
    log_x=True,
    log_y=True,
)

# %% [markdown]
# **Why.** The knee is at the load that uses up the engine's tokens per second. Beyond it, the queue of an open loop
# grows for as long as the load lasts. A service then has to turn some requests away, or it serves none of them well.
# It turns them away with the status `503` and the header `Retry-After`. Here, `most_waiting` sets the longest queue.
# Goodput can fall even though throughput does not, so you have to measure both.
#
# ## 11 · Servers, and what each is for
#
# You have now built the parts of a server for language models yourself. The projects that you can install cover four
# layers: an **engine** runs the model, a **server** speaks HTTP, a **layer above** routes requests to several
# engines, and a **package** is a container in which all of this is ready to run.
#
# ![Four layers. A router such as Dynamo or Ray Serve sends each request to one of several servers. A server speaks HTTP in OpenAI's format. In it, an engine such as vLLM or SGLang batches and runs the model on a GPU. A package is a container with server, engine and model.](drawings/servers.svg)
#
# As of November 2026, the projects describe themselves as follows (references 5 to 10).
#
# | project | what it is | choose it for |
# |---|---|---|
# | **vLLM** | engine and server: paged cache, prefix cache, pieces, continuous batches; many models, chips of many makers | the usual first choice |
# | **SGLang** | engine and server: radix tree of prefixes, structured output | shared prefixes, agents |
# | **TensorRT-LLM** | NVIDIA's engine, now built on PyTorch, with kernels for NVIDIA's GPUs | the last few per cent on NVIDIA's GPUs |
# | **Triton Inference Server** | a server for models of any framework, with a dynamic batcher; it runs an engine as a back end; now part of the Dynamo family | many kinds of models side by side |
# | **Dynamo** | NVIDIA's layer above engines: routes by cached prefixes, separates prefill and decode | many nodes |
# | **NIM** | NVIDIA's containers: a model with vLLM or SGLang (as of version 2.1) | buying instead of tuning |
# | **TGI** | Hugging Face's engine and server, in maintenance mode since December 2025 | what already runs on it |
# | **llama.cpp** | engine and server in C++ for CPUs and small GPUs, with quantised models; Ollama wraps it | one machine, few users |
# | **Ray Serve** | replicas, routing and scaling in Python; runs vLLM or another engine | several models, pipelines |
#
# An engine serves *one base model*, possibly with several LoRA adapters. Several models need several engines behind
# a router. Here is one in front of three servers on your machine. Two have the small GPT, and one has a copy of it
# whose weights were rounded to four bits. The router knows names and addresses, and whether a server answers.

# %%
import copy
from collections import Counter
from contextlib import ExitStack
from itertools import cycle

import torch


def answers(url):
    try:
        with urllib.request.urlopen(url + "/health", timeout=5) as health:
            return health.status == 200
    except OSError:  # nobody listens there, or it says that it is ending
        return False


class Router:
    """A name leads to servers that take turns; one that does not answer is left out."""

    def __init__(self, servers):
        self.servers, self.turns = servers, {model: cycle(places) for model, places in servers.items()}
        self.sent = Counter()

    def complete(self, body):
        for _ in self.servers[body["model"]]:
            place = next(self.turns[body["model"]])
            if answers(place.url):
                self.sent[place] += 1
                return json.loads(lines_of(place.url + "/v1/completions", body)[0])["choices"][0]["text"]
        raise RuntimeError(f"no server for {body['model']!r} answers")


rounded = copy.deepcopy(gpt)
with torch.no_grad():
    for weight in rounded.parameters():
        if weight.ndim == 2:
            step = weight.abs().max() / 7
            weight.copy_((weight / step).round() * step)

gpulab.need(admit)
sent = {}
with ExitStack() as stack:
    names = {}
    for name, model in (("stories, first", gpt), ("stories, second", gpt), ("four bits", rounded)):
        names[stack.enter_context(http.Service(model, admit.decide, Machine(8, 100, reserve=True)))] = name
    first, second, third = names
    router = Router({"stories": [first, second], "four bits": [third]})
    for model in router.servers:
        print(f"{model:10}", router.complete(question | {"model": model}).strip())
    for when in ("all three serve", "the first is gone"):
        router.sent.clear()
        for _ in range(8):
            router.complete(question | {"model": "stories"})
        sent[when] = {name: router.sent[place] for place, name in names.items()}
        first.close()
for when, counts in sent.items():
    print(f"{when:18}", counts)
gpulab.plot.bars(
    {f"{name}: {when}": counts[name] for when, counts in sent.items() for name in list(counts)[:2]},
    "requests for the model stories",
    caption="Two servers take turns; when one is gone, the router sends everything to the other, and no client notices.",
)

# %% [markdown]
# **Predict.** How many of the nine rows contain an engine of their own, that is, run a language model without
# the help of another row?

# %%
gpulab.predict("serve.engines", ...)

# %% [markdown]
# **Why.** vLLM, SGLang, TensorRT-LLM, TGI and llama.cpp contain the engine. Triton, Dynamo, NIM and Ray Serve need
# one of them. If you compare "NIM" with "vLLM", or "Ray Serve" with "SGLang", you may therefore compare an engine
# with itself. What differs is the part that routes, scales and packages.
#
# ## 12 · What it costs, and how often it is available
#
# The **cost** of a million output tokens, if the GPU is in use all the time, is
#
#     price per hour ÷ (tokens per second × 3,600) × 10⁶
#
# Use the throughput that *keeps the SLO*. If the GPU is used for only a share of the time, divide by that share, too.
#
# The **availability** of a part is MTBF/(MTBF + MTTR), where MTBF is the mean time between failures and MTTR the
# mean time to repair. Suppose that a service has n replicas and needs k of them, that each is available for the
# share a of the time, and that they fail independently. Then the service is available for the share
#
#     P = Σ (i = k … n) C(n, i) aⁱ (1 − a)ⁿ⁻ⁱ
#
# In practice, replicas rarely fail independently: a bad release stops all of them at once.
#
# ![A service needs four replicas. With none to spare, one failure is enough to stop it. With two to spare, two may fail and four are still there.](drawings/spares.svg)

# %%
price = 3.00  # $ per GPU and hour: an input; look up your own price
for batch in (1, 8, 64):
    rate = batch / decode(h100, batch, 1000)
    print(
        f"batch {batch:3}: {rate:7,.0f} tokens/s, {price / rate / 3600 * 1e6:6.2f} $ per million tokens, modelled"
    )
one = 700 / (700 + 4)  # fails every 700 hours, takes 4 hours to replace: inputs, too
for spare in (0, 1, 2):
    n = 4 + spare
    there = sum(comb(n, i) * one**i * (1 - one) ** (n - i) for i in range(4, n + 1))
    print(
        f"4 replicas and {spare} spare: available {100 * there:.4f} % of the time, down {8766 * (1 - there):6.2f} h a year"
    )

# %% [markdown]
# ## Beyond · Goodput against an adversary
#
# This task is open-ended and ungraded, and capstone C of lab 22 continues it. Every five seconds, the trace sends
# long prompts with long outputs immediately before a crowd of short ones. The SLO is a TTFT of at most 0.5 s and no
# gap above 50 ms. The figure of merit is the share of requests that keep it.
#
# | policy | share that keeps the SLO |
# |---|---|
# | static batches | printed by the next cell |
# | whole prompts, first come, first served | printed by the next cell |
# | ours: short prompts first, pieces up to the ridge | printed by the next cell |
# | bound | 100 % |

# %%
attack = traces.adversarial(30, 20, 1)
hit = serving.fitting("Llama 3 8B", "A100", slots=128)


def short_first(state):
    """Pieces up to the ridge; prompts with the fewest tokens left come first."""
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
    summary = metrics.summary(run, SLO(ttft=0.5, gap=0.05))
    print(
        f"{name:14} {100 * summary['SLO kept']:5.1f} % keep the SLO, goodput {summary['goodput']:5.1f}/s, TTFT p99 {summary['TTFT p99']:6.2f} s"
    )

# %%
# Your policy.

# %% [markdown]
# ## Recap
#
# <details><summary>1. The mean service time is 100 ms, cv is 2, and 8 requests arrive per second. What is the mean latency?</summary>
#
# ρ = 8 · 0.1 = 0.8, so W = 0.8/0.2 · 0.1 · (1 + 4)/2 = 1 s and T = 1.1 s. On average, 8 · 1.1 = 8.8 requests are in
# the system.
# </details>
#
# <details><summary>2. A benchmark with 16 clients in a loop reports p99 = 80 ms. What do you ask?</summary>
#
# Whether the clock starts when a request was due or when it was sent, and how many samples there were. In a closed
# loop, a stall of any length produces only 16 slow samples.
# </details>
#
# <details><summary>3. Which part of a decode step is shared by a larger batch, and which is not?</summary>
#
# Reading the weights is shared. Reading keys and values is not, because each request has its own.
# </details>
#
# <details><summary>4. How large may a piece of a prompt be without making a step longer?</summary>
#
# It may have as many tokens as the ridge allows, (weight bytes ÷ bandwidth) × peak ÷ FLOP per token, minus the
# number of requests that decode.
# </details>
#
# <details><summary>5. When does preemption cost nothing, and what does it always cost?</summary>
#
# Tokens that are computed again may hide in steps that wait for memory. The stream of the preempted request always
# stalls.
# </details>

# %%
gpulab.recap("20")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | how long is the mean wait? | ρ/(1 − ρ) · s · (1 + cv²)/2 |
# | how many requests are in the system? | λ · latency |
# | p99 of n samples | sorted, number ⌈0.99 n⌉; n ≫ 100; pool samples, never average percentiles |
# | least time of a decode step | (weights + keys and values) ÷ bandwidth |
# | tokens that a step computes for free | ridge × bytes per weight ÷ 2 |
# | continuous batching | refill slots in every step |
# | blocks | admit by need, keep some free, preempt the latest arrival |
# | prefix cache | a block's key covers everything before it, too; full blocks only |
# | what to report | goodput under the SLO, preemptions and gaps, instead of tokens through the model |
#
# ### Claims you will meet, and what is right
#
# - *T = max(t_data, t_gpu) is Amdahl's law.* It is the bound of a pipeline that overlaps. Amdahl's law is about the
#   serial share.
# - *TGI is the server to start with, and it serves several models.* It is in maintenance mode, and a server has one
#   base model.
# - *Higher GPU utilisation means a better service.* `GPU-Util` counts time in which any kernel runs, and recomputing
#   tokens is work, too.
# - *Dynamic batching is what language models need.* It suits requests that all take equally long. Language models
#   need continuous batching.
# - *The p99 of a service is the mean of its replicas' p99.* Percentiles cannot be averaged.
# - *Decoding is limited by the latency of data transfers.* It is limited by bandwidth: bytes of weights and cache ÷
#   B/s.
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
