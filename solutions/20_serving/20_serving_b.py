# ---
# jupyter:
#   gpulab:
#     lab: "20"
#     hours: 4
#     topics: [C21.4, C21.5, C21.6]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 20 B · The cluster: who gets which GPU, and when
#
# **About four hours.** You need lab 02 A's words (SM, L2, bandwidth) and nothing of part A. Clusters are simulated,
# times are modelled; the manifests that you write are checked against the schema that Kubernetes publishes.
#
# When you are through, you can
#
# 1. cut GPUs into instances, and choose between four ways to share one;
# 2. say why a pod waits although GPUs are free, and pack so that it need not;
# 3. schedule gangs without deadlock, and let small jobs pass without harm;
# 4. divide a cluster fairly when tenants want different things;
# 5. scale replicas that need minutes to start, and write the manifest for them.

# %%
from fractions import Fraction
from math import comb

import gpulab
from gpulab import hardware
from gpulab.plot import Span
from gpulab.serving import cluster

gpulab.start("20")

# %% [markdown]
# ## B1 · GPUs in Kubernetes
#
# **Kubernetes** runs containers on many machines, its **nodes**. A **pod** is what it places: one container or
# several that share a network, on *one* node. What you want stands in a **manifest**; controllers keep it so.
#
# A GPU is an **extended resource**: a name and a whole number. NVIDIA's **device plugin** runs on each node and
# reports `nvidia.com/gpu: 8`. A pod states a *limit*; the request is the same number, because such resources cannot
# be overcommitted. The **scheduler** first *filters* nodes, then *scores* the rest, and binds the pod to the best.
# The filter asks: is there enough of everything? Has the node the **labels** (names with values) that the pod
# selects? Does the pod *tolerate* the node's **taints**, marks that keep all others away? The scheduler sees numbers,
# not GPUs: which of the eight a container gets, the node decides.
#
# **Dynamic Resource Allocation** (generally available since Kubernetes 1.34, 2025) lets a pod claim devices by their
# properties, share them, and leaves the choice of the device to the scheduler.
#
# **Predict.** 8 nodes of 8 GPUs, 3 free on each. How many pods of 2 GPUs can start?

# %%
gpulab.predict("cluster.free", ...)

# %% [markdown]
# **Fragments** like these come from the default score: it prefers nodes with the most processors and memory left, and
# does not look at GPUs unless told. That spreads, which suits web servers. The score `MostAllocated` takes the
# fullest node that fits. The same 20 small pods both ways:


# %%
def place(pods, nodes, fullest_first):
    """Put pods of some GPUs each on nodes of 8, one at a time; returns the node of each, None for none."""
    free, places = [8] * nodes, []
    for gpus in pods:
        fitting = [n for n in range(nodes) if free[n] >= gpus]
        score = (lambda n: free[n]) if fullest_first else (lambda n: -free[n])
        node = min(fitting, key=lambda n: (score(n), n), default=None)
        if node is not None:
            free[node] -= gpus
        places.append(node)
    return places, free


pods = [1, 2, 1, 1, 2, 1, 1, 1, 2, 1] * 2
counts = {}
for name, fullest in (("emptiest node first", False), ("fullest node first", True)):
    _, left = place(pods, 8, fullest)
    counts[name] = left.count(8)
    print(f"{name:20} free GPUs by node {left}, together {sum(left)}")
gpulab.plot.bars(
    counts,
    "nodes that are empty when a job for 8 GPUs comes",
    caption=f"Both have {sum(left)} GPUs free. Only packing leaves whole nodes.",
)

# %% [markdown]
# **Why.** A free GPU is worth something only together with others on its node. Packing keeps large holes; spreading
# survives the loss of a node better. Training wants the first, replicas of a service the second
# (`topologySpreadConstraints`).
#
# ## B2 · One GPU for several: slices that have places
#
# **MIG**, multi-instance GPU, cuts a GPU in hardware. A100 and H100 have 7 *compute slices* and 8 *memory slices*; an
# **instance** gets whole ones of both, with its own share of L2 and of bandwidth. `3g.40gb` is a profile: 3 compute
# slices, 40 GB, which are 4 memory slices of 10. Where an instance may *start* is fixed, too:

# %%
print("profile   compute  memory  may start at memory slice    SMs on an H100")
for name, profile in hardware.MIG_PROFILES.items():
    sms = profile.sms.get("H100")
    print(
        f"{name:9}{int(profile.compute):5}{int(profile.memory):9}    "
        f"{', '.join(map(str, profile.starts)):28}{int(sms) if sms else '–':>5}"
    )
print("source:", hardware.MIG_PROFILES["1g.10gb"].memory.source)

# %% [markdown]
# The SMs are as NVIDIA states them: no whole multiple of a compute slice, and not said for `1g.20gb`.
#
# **Predict.** Two `3g.40gb` lie on one GPU. How many `1g.10gb` fit beside them?

# %%
gpulab.predict("cluster.two_threes", ...)

# %% [markdown]
# **Do.** Write `mig(requests)`: names of profiles → a list with `[GPU, first memory slice]` for each, in the order of
# the requests. GPUs are numbered from 0. An instance takes its memory slices from its start on, and no slice belongs
# to two. (Who keeps to memory slices and starts never exceeds 7 compute slices.) **Budget:** the fewest GPUs that any
# plan needs; different numbers count. Try `3g, 2g, 2g` on paper first, then the same twice. The table is
# `hardware.MIG_PROFILES[name]`, with `.starts` and `int(….memory)`. About 20 lines.


# %% nbgrader={"grade": false, "grade_id": "mig", "locked": false, "schema_version": 3, "solution": true, "task": false}
def mig(requests):
    ### BEGIN SOLUTION
    order = ["7g.80gb", "4g.40gb", "3g.40gb", "2g.20gb", "1g.20gb", "1g.10gb"]

    def on(gpus):
        """A plan for that many GPUs, None if there is none."""
        free, places = [set(range(8)) for _ in range(gpus)], [None] * len(requests)
        for i in sorted(range(len(requests)), key=lambda i: order.index(requests[i])):
            profile = hardware.MIG_PROFILES[requests[i]]
            for start, gpu in ((s, g) for s in reversed(profile.starts) for g in range(gpus)):
                taken = set(range(start, start + int(profile.memory)))
                if taken <= free[gpu]:
                    free[gpu] -= taken
                    places[i] = [gpu, start]
                    break
            else:
                return None
        return places

    gpus = 0
    while (places := on(gpus)) is None:
        gpus += 1
    return places
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "mig-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cluster.mig", mig)

# %%
gpulab.need(mig)
wanted = [
    "3g.40gb",
    "4g.40gb",
    "1g.10gb",
    "2g.20gb",
    "1g.10gb",
    "3g.40gb",
    "1g.20gb",
    "4g.40gb",
    "2g.20gb",
]
placed = mig(wanted)
memory = sum(int(hardware.MIG_PROFILES[name].memory) for name in wanted)
gpus = 1 + max(gpu for gpu, _ in placed)
gpulab.plot.mig_map(
    [
        (gpu, start, int(hardware.MIG_PROFILES[name].memory), name)
        for (gpu, start), name in zip(placed, wanted, strict=True)
    ],
    f"{memory} of {8 * gpus} memory slices on {gpus} GPUs. Equal colours are equal compute slices.",
    colour=lambda name: name[0],
)

# %% [markdown]
# **Why.** The sum of slices says only what is not possible. Large first, each at its *last* free start, keeps the
# places that others need: a `3g` at 0 would take two from `2g`, at 4 one. On a given number of GPUs that rule finds a
# plan if there is one. Opening GPUs one by one it may need more: the second `3g` goes to slice 0 of the first GPU
# while a slice 4 is still to come. Instances cannot be moved while they run, so a bad placement stays. Two `3g` waste
# a compute slice, seven `1g` a memory slice. In Kubernetes each profile is a resource of its own, `nvidia.com/mig-3g.40gb`, with the plugin's
# strategy `mixed`; with `single` all are equal and are called `nvidia.com/gpu`.
#
# ## B3 · Four ways to share one GPU
#
# | | time-slicing | MPS | MIG | vGPU |
# |---|---|---|---|---|
# | what runs at once | one process, for a slice of time | kernels of several processes | all instances | as time-slicing, or on MIG |
# | memory | nobody limits it | own address spaces; a limit can be set | slices of its own | a fixed part for each VM |
# | bandwidth, L2 | shared | shared | own | shared, own on MIG |
# | a neighbour's fault | no isolation promised | may end all clients | stays with it | stays in its VM |
# | parts | any number | any number | the profiles' | the profiles of its software |
# | in Kubernetes | `replicas` of the plugin | `replicas` of the plugin | resources by profile | a VM as node |
#
# As of November 2026, from references 1 to 4. Time-slicing and MPS cannot be had on the same GPU at once. `replicas:
# 4` only tells the scheduler that there are 4: two of them are no faster than one. Linux **cgroups** limit processors
# and host memory. NVIDIA's driver honours such a limit for GPU memory only with recent MPS (CUDA 13.4, controller
# `dmem`), and not with MIG.
#
# **Predict.** A request takes 8 ms alone and fills 40 % of the SMs. One neighbour always has work. How long does the
# request take with time slices of 2 ms, at worst?

# %%
gpulab.predict("cluster.neighbour", ...)

# %% [markdown]
# **See.** The model: time-slicing gives the whole GPU to one process after the other; MPS lets all run side by side
# and divides the SMs evenly once they are too few; `MIG 3g` has 3 of 7 slices for itself.

# %% jupyter={"source_hidden": true}
ways = ("time-slicing", "MPS", "MIG 3g")
latency = {way: [(n, cluster.shared_latency(way, n, 8.0, 0.4)) for n in range(5)] for way in ways}
gpulab.plot.lines(
    latency,
    "neighbours that always have work",
    "ms for a request of 8 ms, modelled",
    "MIG does not feel neighbours; MPS does once the SMs are full; with time-slicing each adds the request's own time.",
)

# %% [markdown]
# **Why.** The model leaves out bandwidth and caches, which MPS shares, too. MIG buys its flat line with SMs that
# idle whenever their owner does. So: trusted processes with small kernels → MPS; strangers, or a promised
# latency → MIG; notebooks that mostly think → time-slicing.
#
# ## B4 · Bins with two sizes: GPUs and memory
#
# A node here has two **islands**: two processor sockets, each with 4 GPUs and host memory of its own. GPUs of an island
# talk over NVLink bridges or one PCIe switch; between islands they cross the link of the sockets. Kubernetes' *topology
# manager* can insist on one island (`single-numa-node`).
#
# Packing into as few bins as possible is NP-hard in general. **First fit decreasing** is the usual way: sort, then put
# each job into the first bin with room. *Decreasing* in what, when a job has two sizes? A job with 1 GPU may need more than
# half an island's memory; it leaves GPUs **stranded** if another such job comes next.
#
# **Do.** Write `pack(jobs, capacity)`. Return for each job a list of `[node, GPU]`. **Budget:** no job of up to 4 GPUs on
# two islands; the fewest nodes that any plan needs, which for these jobs first fit in the right order reaches. About 18
# lines.
#
# | | |
# |---|---|
# | a job | `[GPUs, GB of host memory for each GPU]`; 1, 2, 3, 4 or 8 GPUs, all of one node |
# | an island | 4 GPUs and `capacity` GB; a GPU's memory comes from its island, so that a job of 8 takes half from each |
# | a node | GPUs 0 to 3 are one island, 4 to 7 the other; nodes are numbered from 0 |


# %% nbgrader={"grade": false, "grade_id": "pack", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pack(jobs, capacity):
    ### BEGIN SOLUTION
    def share(i):
        gpus, memory = jobs[i]
        return max(gpus / 4, gpus * memory / capacity)

    plan, nodes = [None] * len(jobs), 0
    for i, (gpus, _) in enumerate(jobs):
        if gpus == 8:
            plan[i], nodes = [[nodes, gpu] for gpu in range(8)], nodes + 1
    islands = []  # GPUs that are taken, memory that is left
    for i in sorted((i for i in range(len(jobs)) if plan[i] is None), key=share, reverse=True):
        gpus, memory = jobs[i]
        at = 0
        while at < len(islands) and (islands[at][0] + gpus > 4 or islands[at][1] < gpus * memory):
            at += 1
        if at == len(islands):
            islands.append([0, capacity])
        first = 4 * (at % 2) + islands[at][0]
        plan[i] = [[nodes + at // 2, first + k] for k in range(gpus)]
        islands[at][0] += gpus
        islands[at][1] -= gpus * memory
    return plan
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "pack-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cluster.pack", pack)

# %% jupyter={"source_hidden": true}
gpulab.need(pack)
jobs = [[2, 20], [1, 150], [3, 25], [2, 10], [1, 140], [4, 12], [1, 8], [1, 160], [1, 30]]
packed = pack(jobs, 256)
gpulab.plot.mig_map(
    [
        (node, gpu, 1, f"{i} heavy" if memory > 128 else f"{i}")
        for i, (places, (_, memory)) in enumerate(zip(packed, jobs, strict=True))
        for node, gpu in places
    ],
    f"{sum(gpus for gpus, _ in jobs)} GPUs' worth of jobs, by number, on {1 + max(n for p in packed for n, _ in p)} nodes. The line parts the islands: no two heavy jobs share one.",
    row="node",
    column="GPU",
    colour=lambda name: "heavy" in name,
    border=4,
)

# %% [markdown]
# **Why.** The larger of the two shares is a job's **dominant share**: what it takes of the resource it takes most of.
# You meet it again in B6. A cluster with stranded GPUs looks half empty on a dashboard of GPUs, and full to the
# scheduler.
#
# ## B5 · Gangs
#
# A training job of 6 workers computes only when all 6 are there. The scheduler binds pods one at a time, and a pod
# that is bound keeps its GPU.
#
# **Predict.** 8 GPUs, two jobs of 6 workers with a GPU each, bound in turn. How many of the jobs ever begin?

# %%
gpulab.predict("cluster.deadlock", ...)

# %%
two = [(6, 6), (6, 6)]
stuck = cluster.pod_by_pod(two, 8, patience=12)
gangs = cluster.planned(two, [0, 6], 8)


def spans(run, wide=99):
    """A run's boxes: those of jobs with at least `wide` GPUs have a colour of their own."""
    size = {job: len({h.gpu for h in run.held if h.job == job}) for job in range(len(run.starts))}
    return [
        Span(
            f"GPU {h.gpu}",
            h.start,
            h.stop,
            f"job {h.job}",
            "wait" if not h.works else "wide" if size[h.job] >= wide else "narrow",
        )
        for h in sorted(run.held, key=lambda h: (h.gpu, h.start))
    ]


print(f"bound one by one: starts {stuck.starts}, GPUs working {100 * stuck.busy(8):.0f} % of the time")
print(f"as gangs:         starts {gangs.starts}, GPUs working {100 * gangs.busy(8):.0f} %")
gpulab.plot.timeline(
    spans(stuck),
    "minutes",
    caption="Every GPU is held, none works: each job has 4 of its 6 workers, and waits for the other's.",
)

# %% [markdown]
# **Gang scheduling** places all pods of a group or none. Kubernetes got it with add-ons first (Volcano, Kueue, the
# coscheduling plugin); in its own scheduler it came in 1.35 (December 2025) as alpha (reference 7).
#
# Gangs leave gaps: while a wide job waits for enough GPUs, some are idle. **Backfilling** (reference 6) lets later
# jobs into the gaps, if their durations are known and nobody in front is put off for it. Without that condition a
# stream of small jobs **starves** the wide one.
#
# **Do.** Write `gang(jobs, gpus)`. A job is `[arrival, GPUs, duration]`, whole numbers, in order of arrival. Return
# the start of each. From its start a job holds all its GPUs for its duration; one that ends at t makes room at t.
# Compare with the plan *in turn*: each job as early as it can, and none before the one in front of it. No job may
# start later than there; at the same time is fine. **Budget:** the sum of waiting times, at most 2 % more than
# backfilling in order of arrival needs. About 14 lines.


# %% nbgrader={"grade": false, "grade_id": "gang", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gang(jobs, gpus):
    ### BEGIN SOLUTION
    placed = []  # start, end, GPUs

    def in_use(t):
        return sum(wanted for start, end, wanted in placed if start <= t < end)

    starts = []
    for arrival, wanted, duration in jobs:
        for t in sorted({arrival} | {end for _, end, _ in placed if end > arrival}):
            moments = [t] + [start for start, _, _ in placed if t < start < t + duration]
            if all(in_use(moment) + wanted <= gpus for moment in moments):
                break
        placed.append((t, t + duration, wanted))
        starts.append(t)
    return starts
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "gang-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cluster.gang", gang)

# %%
gpulab.need(gang)
queue = [[0, 5, 6], [0, 8, 4], [1, 2, 3], [1, 1, 9], [2, 1, 5], [3, 6, 3], [3, 2, 2], [4, 1, 2]]
mine = gang(queue, 8)
shape = [(gpus, duration) for _, gpus, duration in queue]
run = cluster.planned(shape, mine, 8)
waits = [start - arrival for start, (arrival, *_) in zip(mine, queue, strict=True)]
print(
    f"starts {mine}, waiting {waits}, together {sum(waits)}; GPUs working {100 * run.busy(8):.0f} % of the time"
)
gpulab.plot.timeline(
    spans(run, wide=5),
    "hours",
    caption="Narrow jobs that came later fill the gap in front of job 1, and are through when it begins.",
)

# %% [markdown]
# **Why.** Durations are estimates. Users state too much, because a job is ended when its time is up; gaps then open early,
# and the queue is planned anew. Backfilling is *conservative* if every job has a promised start. **EASY** promises one only
# to the first in the queue: more gaps are filled, and others may be put off. **Priorities** serve first, too: with
# *preemption* Kubernetes evicts pods of lower priority, and what they had not saved is lost (lab 18).
#
# ## B6 · Who gets how much
#
# Tenant A's tasks want 1 GPU and 4 GB each, tenant B's 3 GPUs and 1 GB. Of 9 GPUs and 18 GB, what is an equal share?
# **Dominant resource fairness** (reference 5) makes the *dominant shares* equal: again and again, the tenant with the
# smallest dominant share ÷ weight gets the next task. Here A gets 3 tasks, 12/18 of the memory, and B 2, 6/9 of the GPUs.
# Asking for too much gains nothing, and of n tenants each has at least 1/n of what matters most to it, up to whole tasks.
#
# If somebody filled the idle cluster before, tasks beyond the fair share are **preempted**, or others wait.
#
# **Do.** Write `fair(capacity, tenants)`, which returns `[tasks, preempted]` for each tenant. Fill from nothing; of equal
# tenants the first in the list is next. One whose next task does not fit gets no more; one that has running + waiting
# tasks wants no more. Compare exactly (`Fraction`): ties count. About 16 lines.
#
# | | |
# |---|---|
# | `capacity` | a number by resource |
# | a tenant's `task` | what a task needs, by resource |
# | `weight` | what its dominant share is divided by |
# | `running`, `waiting` | numbers of tasks |
# | `tasks`, `preempted` | how many it should have; how many of those that run are too many |


# %% nbgrader={"grade": false, "grade_id": "fair", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fair(capacity, tenants):
    ### BEGIN SOLUTION
    left, tasks = dict(capacity), [0] * len(tenants)
    wanting = {i for i, t in enumerate(tenants) if t["running"] + t["waiting"] > 0}

    def share(i):
        needs = tenants[i]["task"].items()
        return max(Fraction(tasks[i] * n, capacity[r]) for r, n in needs) / tenants[i]["weight"]

    while wanting:
        i = min(wanting, key=lambda i: (share(i), i))
        needs = tenants[i]["task"].items()
        if any(n > left[r] for r, n in needs):
            wanting.remove(i)
            continue
        tasks[i] += 1
        for r, n in needs:
            left[r] -= n
        if tasks[i] == tenants[i]["running"] + tenants[i]["waiting"]:
            wanting.remove(i)
    return [[n, max(0, t["running"] - n)] for n, t in zip(tasks, tenants, strict=True)]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "fair-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cluster.fair", fair)

# %%
gpulab.need(fair)
capacity = {"gpu": 64, "cpu": 768, "memory": 8192}
tenants = [
    {"task": {"gpu": 4, "cpu": 16, "memory": 256}, "weight": 1, "running": 16, "waiting": 8},  # training
    {"task": {"gpu": 1, "cpu": 32, "memory": 64}, "weight": 1, "running": 0, "waiting": 40},  # video
    {"task": {"gpu": 1, "cpu": 8, "memory": 512}, "weight": 1, "running": 0, "waiting": 40},  # search
]
names = ("training", "video", "search")


def dominant(tasks, tenant):
    return 100 * max(tasks * need / capacity[resource] for resource, need in tenant["task"].items())


result = fair(capacity, tenants)
for name, tenant, (tasks, preempted) in zip(names, tenants, result, strict=True):
    print(f"{name:9} runs {tenant['running']:2}, should have {tasks:2}, {preempted} preempted")
gpulab.plot.panels(
    {
        "dominant share now, %": {n: dominant(t["running"], t) for n, t in zip(names, tenants, strict=True)},
        "dominant share, fair, %": {
            n: dominant(r[0], t) for n, t, r in zip(names, tenants, result, strict=True)
        },
    },
    "The first to come had all GPUs; when dominant shares are equalised, three tenants have more than a third each.",
)

# %% [markdown]
# **Why.** More than a third each, because they want different things. In Kubernetes **quotas** (`ResourceQuota`) are
# hard limits per namespace: what A leaves unused, B cannot have. Queues such as Kueue's *borrow* instead, and take
# back by preemption.
#
# ## B7 · Replicas that start slowly
#
# The **HorizontalPodAutoscaler** (reference 8) looks every 15 s at a metric, a mean over replicas, and asks for
#
#     ⌈replicas × metric ÷ target⌉        (nothing, if the ratio is within 10 % of 1)
#
# It scales down to the highest wish of the last 5 minutes. Of itself it knows processors and host memory; a GPU's
# utilisation comes through an exporter and an adapter. That "utilisation" is the share of time in which *any* kernel
# ran: it ends at 100 %, and is near it with one busy user as with a hundred.
#
# **Predict.** 8 replicas, target 70 % utilisation; the load is four times what they can take. The autoscaler asks
# anew whenever all that it asked for serve. How many times, until there are enough?

# %%
gpulab.predict("cluster.desired", ...)

# %% [markdown]
# A replica is not ready when it is ordered: a node may have to be started, an image of several GB fetched, weights
# loaded. Call that the **delay** (a *cold start*). Whoever knows the load in advance, such as yesterday's by minute,
# can order in time.
#
# **Do.** Write `autoscale(load, capacity, delay, ready)`: `load` in requests per minute, `capacity` the requests per
# minute that a replica takes, `delay` in minutes, `ready` the replicas that serve at minute 0. Return for each minute
# how many replicas are to exist. One that is ordered in minute t is paid from t on and serves from t + delay; if
# fewer are wanted, the newest go first, at once. `ready` suffices for the first `delay` minutes; those that you keep
# without need you pay for. **Budget:** no minute with too few; the fewest replica-minutes. Two lines.


# %% nbgrader={"grade": false, "grade_id": "autoscale", "locked": false, "schema_version": 3, "solution": true, "task": false}
def autoscale(load, capacity, delay, ready):
    ### BEGIN SOLUTION
    need = [-(-now // capacity) for now in load]
    return [max(need[t : t + delay + 1]) for t in range(len(load))]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "autoscale-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cluster.autoscale", autoscale)

# %%
gpulab.need(autoscale)
CAPACITY, DELAY = 40, 6
day = [80 if t < 40 or 100 <= t < 150 else 320 if t < 100 else 200 for t in range(200)]
policies = {
    "GPU utilisation, 70 %": cluster.autoscaler(lambda load, n: min(1.0, load / (n * CAPACITY)), 0.7),
    "requests per replica": cluster.autoscaler(lambda load, n: load / n, 0.7 * CAPACITY),
}
runs = {name: cluster.scale(day, CAPACITY, DELAY, 3, policy) for name, policy in policies.items()}
plan = autoscale(day, CAPACITY, DELAY, 3)
runs["known in advance"] = cluster.scale(day, CAPACITY, DELAY, 3, lambda t, *_: plan[t])
for name, run in runs.items():
    print(f"{name:22} {run.minutes_over:3} minutes too few, {run.replica_minutes:5} replica-minutes")
gpulab.plot.lines(
    {
        "needed": [(t, -(-load // CAPACITY)) for t, load in enumerate(day)],
        **{name: list(enumerate(run.ready)) for name, run in runs.items() if name != "known in advance"},
    },
    "minute",
    "replicas that serve",
    "Utilisation climbs in steps of 10/7, each a delay apart; requests per replica tell at once what is missing. "
    "Your plan lies on what is needed, and is not drawn.",
    step=True,
)

# %% [markdown]
# **Why.** A metric that saturates hides how much is missing, and the delay multiplies the steps. Scale on what waits:
# requests in flight, or the queue (in lab 20 A). Both reactive policies still fail at each rise, for a delay or longer:
# headroom, or knowledge of the load, is the only cure. To **zero** replicas is cheap and makes the first user wait
# for the whole delay.
#
# **Availability.** If a service needs n replicas, and each is up a share a of the time, independently, one spare
# changes much:


# %%
def available(needed, there, up):
    """The share of time in which at least `needed` of `there` replicas are up."""
    return sum(comb(there, k) * up**k * (1 - up) ** (there - k) for k in range(needed, there + 1))


for there in (8, 9, 10):
    share = available(8, there, 0.995)
    print(
        f"8 needed, {there:2} there: {100 * share:7.3f} %, {30 * 24 * 60 * (1 - share):6.1f} minutes a month short, "
        f"cost {there / 8:.3f}"
    )

# %% [markdown]
# Independent they are not if they share a node, a rack or a version: `topologySpreadConstraints` and a
# `PodDisruptionBudget` are for that.
#
# ## B8 · A manifest
#
# A service on processors, complete. A **Deployment** keeps `replicas` pods of a template alive; a **Job** runs pods
# until they succeed.
#
# ![A manifest says how many replicas there should be. The cluster starts as many pods, each with a GPU of its own, and replaces one that dies.](drawings/replicas.svg)

# %%
print(
    """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: hello
spec:
  replicas: 2
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  selector:
    matchLabels: {app: hello}
  template:
    metadata:
      labels: {app: hello}
    spec:
      nodeSelector: {kubernetes.io/arch: amd64}
      tolerations:
      - {key: team, operator: Exists, effect: NoSchedule}
      containers:
      - name: server
        image: registry.example/hello:2.1.0
        ports:
        - {containerPort: 8080}
        resources:
          limits: {cpu: 2, memory: 4Gi}
        startupProbe:
          httpGet: {path: /health, port: 8080}
          periodSeconds: 5
          failureThreshold: 6
        readinessProbe:
          httpGet: {path: /health, port: 8080}
        volumeMounts:
        - {name: scratch, mountPath: /scratch}
      volumes:
      - name: scratch
        emptyDir: {sizeLimit: 1Gi}"""
)

# %% [markdown]
# What a service with GPUs needs, and the schema does not know:
#
# - GPUs stand in `limits` as `nvidia.com/gpu`, whole. A limit alone is the request as well.
# - Kubernetes itself taints no node for its GPUs. The cloud or the cluster's administrator does: here the nodes with
#   GPUs are **tainted** `nvidia.com/gpu=present:NoSchedule`, as on Google's. NVIDIA's GPU operator labels them
#   with `nvidia.com/gpu.product`. A pod tolerates the taint and selects the label.
# - Processes exchange tensors through `/dev/shm`, a folder in memory of 64 MB by default. A volume `emptyDir` with
#   `medium: Memory` is larger, and counts as memory of the container.
# - A `startupProbe` holds the others back while weights load, for failureThreshold × periodSeconds; then the
#   container is killed.
# - A rolling update with `maxSurge` 1 starts the new pod *first*. A full cluster has no GPU for it.
# - No tag, or `latest`, is whatever was pushed last.

# %% [markdown]
# **Do.** Write `manifest(service)`: the text of a manifest for the dictionary `service`, as printed below. `image`
# goes with `version` behind a colon. The limits: `cpu`, `gpus`, and `memory_gib` and `shm_gib` together; requests
# left out or equal. `/dev/shm` has `sizeLimit` `shm_gib`. The taint above is tolerated by its key, `product` selected
# with `nodeSelector`. One container.
#
# | `kind` | what it has |
# |---|---|
# | `Deployment` | `pods` replicas, no surge; startup and readiness probes of `/health` at `port`; the startup probe allows at least `load_seconds`, and at most twice that |
# | `Job` (`apiVersion: batch/v1`) | `completions` and `parallelism` are `pods`; `restartPolicy` beside `containers` is `Never` or `OnFailure`; no selector, strategy, probes |
#
# YAML contains JSON, so `json.dumps` of dictionaries is fine. The check holds your text to the schema of
# Kubernetes 1.34, strictly: a field that it does not know is an error. About 45 lines.

# %%
example = {
    "kind": "Deployment",
    "name": "chat",
    "image": "registry.example/llm/server",
    "version": "1.4.2",
    "pods": 2,
    "gpus": 4,
    "product": "NVIDIA-H100-80GB-HBM3",
    "cpu": 16,
    "memory_gib": 128,
    "shm_gib": 16,
    "port": 8000,
    "load_seconds": 300,
}
example


# %% nbgrader={"grade": false, "grade_id": "manifest", "locked": false, "schema_version": 3, "solution": true, "task": false}
def manifest(service):
    ### BEGIN SOLUTION
    s = service
    pod = f"""\
      nodeSelector: {{nvidia.com/gpu.product: {s["product"]}}}
      tolerations:
      - {{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}}
      volumes:
      - name: shm
        emptyDir: {{medium: Memory, sizeLimit: {s["shm_gib"]}Gi}}
      containers:
      - name: main
        image: {s["image"]}:{s["version"]}
        volumeMounts:
        - {{name: shm, mountPath: /dev/shm}}
        resources:
          limits:
            cpu: {s["cpu"]}
            memory: {s["memory_gib"] + s["shm_gib"]}Gi
            nvidia.com/gpu: {s["gpus"]}
"""
    if s["kind"] == "Job":
        return f"""\
apiVersion: batch/v1
kind: Job
metadata: {{name: {s["name"]}}}
spec:
  completions: {s["pods"]}
  parallelism: {s["pods"]}
  template:
    spec:
      restartPolicy: Never
{pod}"""
    return f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {s["name"]}}}
spec:
  replicas: {s["pods"]}
  selector:
    matchLabels: {{app: {s["name"]}}}
  strategy:
    rollingUpdate: {{maxSurge: 0, maxUnavailable: 1}}
  template:
    metadata:
      labels: {{app: {s["name"]}}}
    spec:
{pod}        ports:
        - {{containerPort: {s["port"]}}}
        startupProbe:
          httpGet: {{path: /health, port: {s["port"]}}}
          periodSeconds: 10
          failureThreshold: {-(-s["load_seconds"] // 10) + 2}
        readinessProbe:
          httpGet: {{path: /health, port: {s["port"]}}}
"""
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "manifest-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cluster.manifest", manifest)

# %% [markdown]
# **Why.** The schema knows that `limits` is a map of quantities; `nvidia.com/gpu: 0.5` is one. Kubernetes' API server
# refuses that one and others when you apply the manifest. A missing toleration, a short probe or a small `/dev/shm`
# it takes: the pod is Pending forever, killed while it loads, or dies under load because `/dev/shm` is full.
#
# ## Detective · A cluster with room
#
# `rank-0`, 4 H100s and 200 GiB of memory, has been Pending since yesterday. The colleague who looks after the
# dashboard: "22 GPUs are free and terabytes of memory. It must be a bug in the scheduler; I would restart it." You
# may move *one* running pod to a node where it can run on. Nobody tolerates a taint; `product` is what a pod selects.


# %%
H100, A100 = "NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB"
nodes = {
    "n0": {"gpus": 8, "memory": 1024, "product": H100, "taints": ["maintenance"]},
    "n1": {"gpus": 8, "memory": 1024, "product": H100, "taints": []},
    "n2": {"gpus": 8, "memory": 1024, "product": H100, "taints": []},
    "n3": {"gpus": 8, "memory": 1024, "product": H100, "taints": []},
    "n4": {"gpus": 8, "memory": 1024, "product": H100, "taints": []},
    "n5": {"gpus": 8, "memory": 1024, "product": A100, "taints": []},
}
running = [
    {"name": f"dev-{n}{i}", "node": f"n{n}", "gpus": 1, "memory": 32, "product": H100}
    for n in (2, 3, 4)
    for i in range(6)
]
running += [
    {"name": "tune-0", "node": "n1", "gpus": 4, "memory": 256, "product": H100},
    {"name": "etl-0", "node": "n1", "gpus": 0, "memory": 640, "product": None},
    {"name": "embed-0", "node": "n5", "gpus": 4, "memory": 320, "product": A100},
]
pending = {"name": "rank-0", "gpus": 4, "memory": 200, "product": H100}


def free(node, what):
    return nodes[node][what] - sum(pod[what] for pod in running if pod["node"] == node)


print(
    f"GPUs free: {sum(free(n, 'gpus') for n in nodes)}, memory free: {sum(free(n, 'memory') for n in nodes):,} GiB"
)
gpulab.plot.bars(
    {n: free(n, "gpus") for n in nodes},
    "free GPUs",
    caption="The dashboard: every node has free GPUs, three of them four or more.",
)

# %% [markdown]
# **Do.** Find out for each node why the scheduler's filter refuses it, and which one pod is in the way. `nodes`,
# `running`, `pending` and `free` are at your disposal. The cell is free.

# %%
# Your experiment.

# %% [markdown]
# ### Your answer
#
# In three to five sentences: why does no node take `rank-0`, which one pod would you move, where to, and why would
# moving one of the `dev` pods not help? A person reads this: 1 point for the pod and the reason, 1 point for numbers
# of your own.

# %% [markdown] nbgrader={"grade": true, "grade_id": "room-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** 8 of the 22 free GPUs are on n0, which is tainted for maintenance, 4 are A100s on n5, and 6 are
# fragments of two on n2, n3 and n4. The only node with 4 free H100s is n1, and it has 128 GiB left of the 200 that
# are asked for: `etl-0` holds 640 GiB and no GPU, so 4 GPUs are stranded. I would move `etl-0` to n5, which has 704
# GiB free; n2 to n4 have room, too. `tune-0` needs 4 H100s and has no other place. Moving one dev pod makes 3 free
# GPUs out of 2; it takes two.
#
# **1 point** (without numbers): On n1 the memory is full because of `etl-0`, so its GPUs cannot be used.
#
# **0 points:** The GPUs are fragmented, move a dev pod. Or: restart the scheduler.

# %% [markdown]
# ## Beyond · Wait less, and put nobody off
#
# Open-ended and ungraded. The queue below, 16 GPUs. The figure of merit is the sum of waiting times; nobody may start
# later than in turn. `gang` serves those gaps first that the earliest can use. That need not be the best order.
#
# | plan | waiting |
# |---|---|
# | in turn, nobody passes | 559 |
# | `gang` | the cell below |
# | ours: 400 random changes of the order in which jobs are placed | 220 |
# | bound: GPUs as one machine that may stop and go on, the shortest work first | the cell below |

# %%
gpulab.need(gang)
later = "0 9 12, 0 4 3, 1 12 8, 1 3 6, 2 2 14, 2 6 2, 3 16 3, 4 5 5, 4 1 9, 5 10 4, "
later += "6 3 3, 6 7 7, 8 2 2, 9 11 6, 9 4 4, 10 1 12, 11 8 3, 12 3 8, 13 14 2, 14 2 5"
later = [[int(number) for number in job.split()] for job in later.split(", ")]


def bound(jobs, gpus):
    """No plan's sum of waiting times is smaller: jobs share one machine of all GPUs, shortest rest first."""
    left, clock, ended = {}, 0.0, 0.0
    arrivals = sorted((arrival, i) for i, (arrival, *_) in enumerate(jobs))
    while arrivals or left:
        if not left:
            clock = max(clock, arrivals[0][0])
        while arrivals and arrivals[0][0] <= clock:
            i = arrivals.pop(0)[1]
            left[i] = jobs[i][1] * jobs[i][2] / gpus
        least = min(left, key=left.get)
        until = min(clock + left[least], arrivals[0][0] if arrivals else float("inf"))
        left[least] -= until - clock
        clock = until
        if left[least] < 1e-9:
            ended += clock
            del left[least]
    return max(0.0, ended - sum(arrival + duration for arrival, _, duration in jobs))


def in_turn(jobs, gpus):
    """When each would start if nobody might pass another."""
    placed, at = [], 0
    for arrival, wanted, duration in jobs:
        at = max(at, arrival)
        while sum(n for end, n in placed if end > at) + wanted > gpus:
            at = min(end for end, _ in placed if end > at)
        placed.append((at + duration, wanted))
    return [end - duration for (end, _), (_, _, duration) in zip(placed, jobs, strict=True)]


def waiting(starts):
    """The figure of merit. Raises ValueError for more GPUs than 16, and names those who are put off."""
    cluster.planned([(wanted, duration) for _, wanted, duration in later], starts, 16)
    put_off = [
        i for i, (start, latest) in enumerate(zip(starts, in_turn(later, 16), strict=True)) if start > latest
    ]
    if put_off:
        print(f"put off: jobs {put_off}")
    return sum(start - arrival for start, (arrival, *_) in zip(starts, later, strict=True))


print(f"in turn {waiting(in_turn(later, 16))}, gang {waiting(gang(later, 16))}, bound {bound(later, 16):.0f}")

# %%
# Your plan, a start for each job: print(waiting(plan))

# %% [markdown]
# ## Recap
#
# <details><summary>1. Requests: 3g.40gb, 4g.40gb. The 3g was put at slice 0 of GPU 0. What follows?</summary>
#
# The 4g starts at 0 only, so it needs a second GPU. At slice 4 the 3g would have left room for it.
# </details>
#
# <details><summary>2. 12 GPUs are free and a pod of 4 is Pending. Name four possible reasons.</summary>
#
# Fragments; a taint that is not tolerated; a label that does not fit; memory or processors used up where GPUs are
# free.
# </details>
#
# <details><summary>3. A wide job waits. When may a small one go first?</summary>
#
# If, by the durations, nobody in front starts later for it: it ends in time, or uses GPUs that are left beside the
# wide one.
# </details>
#
# <details><summary>4. 10 replicas at 100 % utilisation, target 50 %. What does the autoscaler ask for, and what is needed?</summary>
#
# 20. What is needed, the utilisation does not say: it ends at 100 %.
# </details>
#
# <details><summary>5. A manifest passes the schema, and its pod restarts every 30 seconds. Why?</summary>
#
# Its probe gives it 3 · 10 s, the default, and the weights load longer.
# </details>

# %%
gpulab.recap("20")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | GPUs in a manifest | `limits`, whole; request = limit |
# | MIG on A100, H100 | 7 compute, 8 memory slices; 4g starts at 0, 3g at 0 or 4, 2g at 0, 2, 4; last start first |
# | share one GPU | MPS: trusted, small kernels; MIG: strangers, latency; time-slicing: mostly idle |
# | pack | decreasing by dominant share, islands first |
# | gang | all pods or none |
# | backfill | into gaps, if nobody in front is put off |
# | fair | smallest dominant share ÷ weight is next |
# | autoscaler | ⌈replicas × metric ÷ target⌉, ±10 % nothing; metrics that do not saturate |
# | slow start | what is needed from now until now + delay |
# | `/dev/shm` | `emptyDir`, `medium: Memory`; counts as memory |
# | update on a full cluster | `maxSurge: 0` |
#
# ### Claims you will meet, and what is right
#
# - *GPUs are indivisible: one GPU per pod.* A pod may ask for many; parts come from MIG, time-slicing, MPS or DRA.
# - *Sharing means MPS and "model parallel sharing".* The second does not exist; MIG and time-slicing are missing.
# - *cgroups isolate GPU memory.* They limit processors, host memory and access to devices. Limits of GPU memory by
#   cgroup need MPS of CUDA 13.4.
# - *Time-slicing with 4 replicas gives each a quarter of the memory.* It gives each all of it, until it is full.
# - *MIG has 7 slices of everything.* 7 of compute, 8 of memory; two 3g fill the memory.
# - *Set GPU requests lower than limits.* Kubernetes refuses it.
# - *Scale on GPU utilisation.* It says that a kernel ran, and ends at 100 %.
# - *It passes the schema, so it runs.* The schema knows fields and types.
#
# ### References
#
# 1. NVIDIA, "Multi-Instance GPU User Guide", supported profiles.
#    https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
# 2. NVIDIA, "Multi-Process Service", with memory partitioning. https://docs.nvidia.com/deploy/mps/
# 3. NVIDIA, "Time-Slicing GPUs in Kubernetes" and "Multi-Process Service in Kubernetes", GPU Operator.
#    https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-sharing.html
# 4. Kubernetes, "Schedule GPUs" and "Dynamic Resource Allocation".
#    https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/
# 5. A. Ghodsi et al., "Dominant Resource Fairness: Fair Allocation of Multiple Resource Types", NSDI, 2011.
# 6. A. Mu'alem, D. Feitelson, "Utilization, Predictability, Workloads, and User Runtime Estimates in Scheduling the
#    IBM SP2 with Backfilling", IEEE Transactions on Parallel and Distributed Systems, 2001.
# 7. Kubernetes, "Gang Scheduling". https://kubernetes.io/docs/concepts/scheduling-eviction/gang-scheduling/
# 8. Kubernetes, "Horizontal Pod Autoscaling".
#    https://kubernetes.io/docs/concepts/workloads/autoscaling/horizontal-pod-autoscale/
