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
# **3.5 to 5.5 hours.** You need the terms SM, L2 and bandwidth from lab 02 A, and nothing from part A. The clusters
# are simulated and the times are modelled. The manifests that you write are checked against the schema that
# Kubernetes publishes.
#
# By the end of this part, you can
#
# 1. divide GPUs into instances, and choose between four ways to share one;
# 2. explain why a pod waits although GPUs are free, and pack jobs so that none has to;
# 3. schedule gangs without deadlock, and let small jobs overtake others without delaying them;
# 4. divide a cluster fairly among tenants who want different things;
# 5. scale replicas that need minutes to start, and write the manifest for them.
#
# | sitting | sections | hours | what it is about |
# |---|---|---|---|
# | 1 | B1 to B5 | 1.5 to 2.5 | GPUs in Kubernetes: slices, shares, packing and gangs |
# | 2 | B6 to B8, detective, recap | 2 to 3 | fair shares, replicas that start slowly, and a manifest |

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
# **Kubernetes** runs containers on many machines, which it calls **nodes**. The smallest unit that it places is a
# **pod**: one container, or several that share a network, on *one* node. You describe what you want in a
# **manifest**, and controllers keep the cluster in that state.
#
# To Kubernetes, a GPU is an **extended resource**, which is no more than a name and a whole number. NVIDIA's **device
# plugin** runs on each node and reports, for example, `nvidia.com/gpu: 8`. A pod states a *limit*. Its request is the
# same number, because such resources cannot be overcommitted.
#
# The **scheduler** first *filters* the nodes, then *scores* those that remain, and assigns the pod to the best one.
# The filter asks three questions. Is there enough of every resource? Does the node have the **labels** (names with
# values) that the pod selects? Does the pod *tolerate* the node's **taints**, which are marks that keep all other
# pods away? The scheduler sees numbers rather than GPUs; which of the eight GPUs a container gets is decided on the
# node.
#
# A newer mechanism is **Dynamic Resource Allocation** (DRA), generally available since Kubernetes 1.34 (2025). With
# it, a pod requests devices by their properties and can share them, and the scheduler chooses the device.
#
# ![The scheduler takes a pod that waits. A filter removes the nodes that cannot run it, a score ranks those that remain, and the pod is assigned to the best node.](drawings/scheduler.svg)
#
# **Predict.** A cluster has 8 nodes with 8 GPUs each, and 3 GPUs are free on each node. How many pods with 2 GPUs can
# start?

# %%
gpulab.predict("cluster.free", ...)

# %% [markdown]
# Such **fragments** come from the default score, which prefers the nodes with the most free processors and memory
# and does not consider GPUs unless it is configured to. This score spreads the pods, which suits web servers. The
# score `MostAllocated` instead chooses the fullest node on which the pod fits. The next cell places the same 20
# small pods in both ways:


# %%
def place(pods, nodes, fullest_first):
    """Place pods, given by their GPUs, on nodes of 8, one at a time. Return the node of each, or None."""
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
    caption=f"Both ways leave {sum(left)} GPUs free. Only packing leaves whole nodes.",
)

# %% [markdown]
# **Why.** A free GPU is often useful only together with others on its node. Packing preserves large gaps, whereas
# spreading is safer when a node fails. Training needs packing. Replicas of a service need spreading, which
# Kubernetes offers as `topologySpreadConstraints`.
#
# ## B2 · One GPU for several: slices that have places
#
# A small model does not need a whole GPU. **MIG**, multi-instance GPU, divides a GPU in hardware. An A100 or H100 has
# 7 *compute slices* and 8 *memory slices*. An **instance** consists of whole slices of both kinds, with its own share
# of L2 and bandwidth. Its kind is called a profile: `3g.40gb` has 3 compute slices and 40 GB, which are 4 memory
# slices of 10 GB. An instance cannot *start* at every memory slice:

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
# The numbers of SMs are as NVIDIA states them. They are not multiples of a compute slice, and NVIDIA states none for
# `1g.20gb`.
#
# **Predict.** Two `3g.40gb` instances are on one GPU. How many `1g.10gb` instances fit beside them?

# %%
gpulab.predict("cluster.two_threes", ...)

# %% [markdown]
# **Do.** Write `mig(requests)`, which places instances on as few GPUs as possible.
#
# - `requests` is a list of names of profiles, and may be empty. The table is `hardware.MIG_PROFILES[name]`, with the
#   possible starts in `.starts` and the number of memory slices in `int(….memory)`.
# - Output: for each request, in the same order, a list `[GPU, first memory slice]`. GPUs are numbered from 0.
# - An instance takes consecutive memory slices beginning at its start. No slice may belong to two instances. If you
#   respect memory slices and starts, the limit of 7 compute slices is kept automatically.
# - **Budget:** the number of different GPUs in the plan is the smallest possible.
#
# About 20 lines. First try `3g, 2g, 2g` on paper, and then the same three twice.


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
    f"The instances take {memory} of {8 * gpus} memory slices on {gpus} GPUs. Equal colours are equal numbers of compute slices.",
    colour=lambda name: name[0],
)

# %% [markdown]
# **Why.** The sum of the slices can show that a plan is impossible, but not that it is possible. Two rules preserve
# the places that other instances need: place large instances first, and each at its *last* free start. A `3g` that
# starts at 0 blocks two places for a `2g`, whereas a `3g` at 4 blocks only one. For a given number of GPUs, these
# rules find a plan whenever there is one.
#
# If you add a GPU only when an instance no longer fits, you may need more. The second `3g` then blocks two places at
# slice 0 of the first GPU, although it would block only one at slice 4 of a GPU that you add later. An instance
# cannot be moved while it runs, so a bad placement stays. Some slices remain unused in any case: two `3g` waste a
# compute slice, and seven `1g` waste a memory slice.
#
# In Kubernetes, each profile is a separate resource, such as `nvidia.com/mig-3g.40gb`, if the plugin's strategy is
# `mixed`. With `single`, all instances of a node have the same profile and are called `nvidia.com/gpu`.
#
# ## B3 · Four ways to share one GPU
#
# | | time-slicing | MPS | MIG | vGPU |
# |---|---|---|---|---|
# | what runs at once | one process, for a slice of time | kernels of several processes | all instances | as with time-slicing, or on MIG |
# | memory | shared, no limit | separate address spaces; a limit can be set | separate slices | a fixed part for each VM |
# | bandwidth, L2 | shared | shared | separate | shared; separate on MIG |
# | a neighbour's fault | no isolation promised | may end all clients | stays in its instance | stays in its VM |
# | number of parts | any | any | given by the profiles | given by the profiles of its software |
# | in Kubernetes | `replicas` of the plugin | `replicas` of the plugin | a resource for each profile | a VM as a node |
# | use it for | processes that are mostly idle, such as notebooks | trusted processes with small kernels | untrusted processes, guaranteed latency | virtual machines |
#
# The table shows the state of November 2026 (references 1 to 4). A GPU cannot combine time-slicing with MPS. The
# setting `replicas: 4` only makes the scheduler count 4 GPUs. A pod that gets two of them is not faster. Linux
# **cgroups** limit processors and host memory. NVIDIA's driver applies such a limit to GPU memory only with recent
# versions of MPS (CUDA 13.4, controller `dmem`), and not with MIG.
#
# **Predict.** A request takes 8 ms alone and occupies 40 % of the SMs. One neighbour always has work. How long does
# the request take at worst, if the GPU is time-sliced with slices of 2 ms?

# %%
gpulab.predict("cluster.neighbour", ...)

# %% [markdown]
# **See.** The model makes three assumptions. Time-slicing gives the whole GPU to one process after another. MPS
# runs all processes side by side, and divides the SMs evenly when there are too few of them. `MIG 3g` has 3 of 7
# slices for itself.

# %% jupyter={"source_hidden": true}
ways = ("time-slicing", "MPS", "MIG 3g")
latency = {way: [(n, cluster.shared_latency(way, n, 8.0, 0.4)) for n in range(5)] for way in ways}
gpulab.plot.lines(
    latency,
    "neighbours that always have work",
    "ms for a request of 8 ms, modelled",
    "Neighbours do not slow MIG down. They slow MPS down once the SMs are full, and with time-slicing each adds the request's own time.",
)

# %% [markdown]
# **Why.** The model leaves out bandwidth and caches, which MPS shares as well. The line of MIG is flat, but there is
# a price: when the owner of an instance is idle, the instance's SMs are idle, too.
#
# ## B4 · Bins with two sizes: GPUs and memory
#
# A node in this section has two **islands**: two processor sockets, each with 4 GPUs and its own host memory. The
# GPUs of an island communicate over NVLink bridges or one PCIe switch. Between islands, they have to cross the link
# between the sockets. Kubernetes' *topology manager* can insist that a pod stays on one island
# (`single-numa-node`).
#
# Packing jobs into as few bins as possible is NP-hard in general. The usual method is **first fit decreasing**: sort
# the jobs by size, and put each into the first bin with room. But what is the size of a job that needs GPUs and
# memory? A job with 1 GPU may need most of an island's memory. If another such job comes next, the other GPUs of the
# island may remain **stranded**: free, but without the memory to use them.
#
# **Predict.** Two jobs have 2 GPUs each and need hardly any memory. Two more have 1 GPU each and need more than half
# of an island's memory. How many islands does first fit take if it sorts by GPUs alone?

# %%
gpulab.predict("cluster.stranded", ...)

# %% [markdown]
# If the two jobs with much memory are placed first instead, two islands are enough. Each holds one of them and one
# job with 2 GPUs.
#
# **Do.** Write `pack(jobs, capacity)`, which places jobs on as few nodes as possible.
#
# - A job is `[GPUs, GB of host memory for each GPU]`. It has 1, 2, 3, 4 or 8 GPUs, all on one node.
# - An island has 4 GPUs and `capacity` GB. A GPU's memory comes from its island, so a job with 8 GPUs takes half of
#   its memory from each.
# - Nodes are numbered from 0. GPUs 0 to 3 of a node are one island, and GPUs 4 to 7 the other.
# - Output: for each job, a list with one `[node, GPU]` for each of its GPUs.
# - **Budget:** no job with up to 4 GPUs is on two islands, and the plan has the smallest possible number of nodes.
#   For these jobs, first fit in the right order achieves it.
#
# About 18 lines.


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
    islands = []  # for each island, GPUs in use and free memory
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
    f"Jobs for {sum(gpus for gpus, _ in jobs)} GPUs, by number, on {1 + max(n for p in packed for n, _ in p)} nodes. The line separates the islands: no two heavy jobs share one.",
    row="node",
    column="GPU",
    colour=lambda name: "heavy" in name,
    border=4,
)

# %% [markdown]
# **Why.** The larger of a job's two shares is its **dominant share**: its share of the resource of which it takes the
# largest part. You will meet it again in B6. A cluster with stranded GPUs looks half empty on a dashboard that shows
# GPUs, and yet is full for the scheduler.
#
# ## B5 · Gangs
#
# A training job with 6 workers can compute only when all 6 are running. However, the scheduler assigns pods one at a
# time, and an assigned pod keeps its GPU.
#
# **Predict.** A cluster has 8 GPUs. Two jobs of 6 workers each, with one GPU a worker, are assigned in turn, one
# pod of each at a time. How many of the jobs ever begin to compute?

# %%
gpulab.predict("cluster.deadlock", ...)

# %%
two = [(6, 6), (6, 6)]
stuck = cluster.pod_by_pod(two, 8, patience=12)
gangs = cluster.planned(two, [0, 6], 8)


def spans(run, wide=99):
    """The spans of a run; jobs with at least `wide` GPUs have their own colour."""
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


print(f"assigned one by one: starts {stuck.starts}, GPUs working {100 * stuck.busy(8):.0f} % of the time")
print(f"as gangs:            starts {gangs.starts}, GPUs working {100 * gangs.busy(8):.0f} %")
gpulab.plot.timeline(
    spans(stuck),
    "minutes",
    caption="Every GPU is held, but none works: each job has 4 of its 6 workers and waits for GPUs that the other job holds.",
)

# %% [markdown]
# **Gang scheduling** places either all pods of a group or none. Kubernetes first had it through add-ons (Volcano,
# Kueue, the coscheduling plugin). In its own scheduler, it appeared as an alpha feature in version 1.35 (December
# 2025, reference 7).
#
# Gangs leave gaps: while a wide job waits for enough GPUs, some of them are idle. **Backfilling** (reference 6) lets
# later jobs use the gaps, provided that their durations are known and no earlier job is delayed. Without the second
# condition, a stream of small jobs **starves** the wide one, which means that the wide job never starts.
#
# **Do.** Write `gang(jobs, gpus)`, which plans when each job starts.
#
# - A job is `[arrival, GPUs, duration]`, all whole numbers. Jobs are in order of arrival. None needs more than `gpus`
#   GPUs.
# - Output: a list with the start of each job.
# - A job holds all of its GPUs from its start for its duration. If it ends at t, its GPUs can be used again at t.
# - Compare your plan with the plan *in turn*, in which each job starts as early as possible, but never before the job
#   in front of it. In your plan, no job may start later than in that one. The same time is fine.
# - **Budget:** the sum of waiting times is at most 2 % more than with backfilling in order of arrival.
#
# About 14 lines.


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
    caption="Narrow jobs that arrived later fill the gap before job 1, and have finished when it begins.",
)

# %% [markdown]
# **Why.** Durations are estimates. Users overstate them, because a job is killed when its time is up. When a job
# ends early, a gap opens, and the scheduler plans the queue again. Backfilling is called *conservative* if every job
# has a guaranteed start. **EASY** backfilling guarantees a start only to the first job in the queue, so it fills
# more gaps, but may delay other jobs.
#
# **Priorities** also change the order. With *preemption*, Kubernetes evicts pods of lower priority, and whatever
# those pods have not saved is lost (lab 18).

# %% [markdown]
# ## End of sitting 1
#
# You can cut a GPU into instances, pack jobs so that none waits without need, and start gangs without deadlock. All
# of this decided *where* a job runs. The second sitting decides who gets how much and when: fair shares among
# tenants, replicas that need minutes to start, and the manifest that asks for them.
#
# To go on another day, select this cell and choose *Run → Run All Above Selected Cell* first, because a new kernel
# does not know your functions yet.

# %%
gpulab.course.progress("20")

# %% [markdown]
# ## B6 · Who gets how much
#
# Each task of tenant A needs 1 GPU and 4 GB, and each task of tenant B needs 3 GPUs and 1 GB. The cluster has 9 GPUs
# and 18 GB. What is an equal share? As in B4, a tenant's *dominant share* is the largest of its shares of the
# resources. **Dominant resource fairness** (reference 5) equalises the dominant shares. It gives the next task to
# the tenant with the smallest dominant share ÷ weight, and repeats this until nothing fits.
#
# **Predict.** Both weights are 1. How many tasks does A get?

# %%
gpulab.predict("cluster.dominant", ...)

# %% [markdown]
# In the end, both tenants have a dominant share of 2/3:
#
# | | GPUs for a task | memory for a task | larger | tasks | dominant share |
# |---|---|---|---|---|---|
# | **A** | 1/9 | 4/18 | memory | 3 | 3 · 4/18 = 2/3 |
# | **B** | 3/9 | 1/18 | GPUs | 2 | 2 · 3/9 = 2/3 |
#
# A tenant gains nothing by asking for more than it needs. If n tenants have equal weights and enough tasks, each has
# a dominant share of at least 1/n, apart from rounding to whole tasks. A tenant may have filled the cluster while
# nobody else wanted it. Then either its tasks beyond the fair share are **preempted**, or the other tenants have to
# wait.
#
# **Do.** Write `fair(capacity, tenants)`, which divides the cluster in this way.
#
# - `capacity` is a dictionary: the amount of each resource.
# - A tenant is a dictionary. `task` is the amount of each resource that a task needs, `weight` is the number by
#   which its dominant share is divided, and `running` and `waiting` are its numbers of tasks.
# - Output: for each tenant a list `[tasks, preempted]`: how many tasks it should have, and how many of its running
#   tasks are too many.
# - Start with an empty cluster, and add one task at a time. If tenants are equal, the first in the list is next.
# - A tenant whose next task does not fit gets no more tasks. A tenant wants no more than running + waiting tasks.
# - Compare exactly, with `Fraction`, because ties matter.
#
# About 16 lines.


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
    "The first tenant had all GPUs. Once dominant shares are equalised, each of the three has more than a third.",
)

# %% [markdown]
# **Why.** Each tenant gets more than a third, because the tenants want different things. In Kubernetes, **quotas**
# (`ResourceQuota`) are hard limits for a namespace, so B cannot have what A leaves unused. Queueing systems such as
# Kueue let B *borrow* it, and preempt B's tasks when A wants it back.
#
# ## B7 · Replicas that start slowly
#
# The **HorizontalPodAutoscaler** (reference 8) reads a metric every 15 s, averages it over the replicas, and asks for
#
#     ⌈replicas × metric ÷ target⌉        (no change if the ratio is within 10 % of 1)
#
# When it scales down, it uses the largest number that it has asked for during the last 5 minutes. By default, it can
# read only the use of processors and host memory. The utilisation of a GPU has to come through an exporter and an
# adapter. This utilisation is the share of time in which *any* kernel was running. It cannot exceed 100 %, and it is
# close to 100 % whether one user or a hundred keep the GPU busy.
#
# **Predict.** There are 8 replicas, and the target is a utilisation of 70 %. The load is four times what they can
# handle. The autoscaler asks again each time that all replicas it asked for are serving. How many times does it ask
# until there are enough?

# %%
gpulab.predict("cluster.desired", ...)

# %% [markdown]
# A new replica cannot serve at once. A node may have to start, an image of several GB has to be downloaded, and the
# weights have to be loaded. This time is called the **delay** of a *cold start*. If you know the load in advance,
# for example from yesterday's log, you can order replicas early enough.
#
# **Do.** Write `autoscale(load, capacity, delay, ready)`, which plans the replicas for a load that is known.
#
# - `load` lists the requests per minute for each minute. `capacity` is the number of requests per minute that a
#   replica can handle, and `delay` is in minutes. All are whole numbers.
# - `ready` is the number of replicas that already serve at minute 0. They are enough for the first `delay` minutes.
#   You pay for those that you keep.
# - Output: for each minute, how many replicas should exist.
# - A replica that is ordered in minute t costs from minute t, and serves from minute t + `delay`. If fewer replicas
#   are wanted, the newest are removed first, without delay.
# - **Budget:** there is no minute with too few serving replicas, and the sum of replica-minutes is the smallest
#   possible.
#
# About two lines.


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
    "With utilisation, the replicas grow by a factor of 10/7 per delay. With requests per replica, the autoscaler sees at "
    "once how many are missing. Your plan coincides with what is needed, so it is not drawn.",
    step=True,
)

# %% [markdown]
# **Why.** A metric that saturates hides how much is missing. At 100 % utilisation and a target of 70 %, the
# autoscaler asks for only 100/70 = 10/7 times the replicas, and each further step takes another delay. Scale on what
# is waiting instead: requests in flight, or the length of the queue (part A). Both reactive policies still fail at
# each rise, for one delay or longer. Only spare replicas or knowledge of the load in advance prevent that. Scaling
# to **zero** replicas is cheap, but the first user then waits for the whole delay.
#
# **Availability.** Suppose that a service needs n replicas, and each of them is available for the share a of the
# time, independently of the others. Then a single spare replica makes a large difference:


# %%
def available(needed, there, up):
    """The share of time in which at least `needed` of `there` replicas are up."""
    return sum(comb(there, k) * up**k * (1 - up) ** (there - k) for k in range(needed, there + 1))


for there in (8, 9, 10):
    share = available(8, there, 0.995)
    print(
        f"8 needed, {there:2} running: {100 * share:7.3f} %, {30 * 24 * 60 * (1 - share):6.1f} minutes a month with too few, "
        f"cost {there / 8:.3f}"
    )

# %% [markdown]
# Replicas are not independent if they share a node, a rack or a version. `topologySpreadConstraints` spread them
# over nodes and racks, and a `PodDisruptionBudget` limits how many of them maintenance may stop at the same time.
#
# ## B8 · A manifest
#
# Below is a complete manifest for a service that uses processors only. A **Deployment** keeps `replicas` pods of a
# template alive, whereas a **Job** runs pods until they succeed.
#
# ![A manifest states how many replicas there should be. The cluster starts that many pods, each with its own GPU, and replaces a pod that dies.](drawings/replicas.svg)

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
# A service with GPUs needs more than the schema knows:
#
# - GPUs are stated in `limits` as `nvidia.com/gpu`, as a whole number. The request is then the same.
# - Kubernetes itself does not taint nodes with GPUs, but cloud providers and administrators do. Here, as in
#   Google's cloud, nodes with GPUs are **tainted** with `nvidia.com/gpu=present:NoSchedule`. NVIDIA's GPU operator
#   labels them with `nvidia.com/gpu.product`. A pod has to tolerate the taint and select the label.
# - Processes exchange tensors through `/dev/shm`, a folder in memory with 64 MB by default. A volume `emptyDir` with
#   `medium: Memory` can be larger. Its contents count as memory of the container.
# - A `startupProbe` holds the other probes back while weights are loaded, for failureThreshold × periodSeconds. Then
#   the container is killed.
# - A rolling update with `maxSurge: 1` starts a new pod *before* it stops an old one. A full cluster has no GPU for
#   the new pod.
# - Without a tag, or with the tag `latest`, the image is whatever was pushed last.

# %% [markdown]
# **Do.** Write `manifest(service)`, which returns the text of a manifest for the dictionary `service`. An example is
# printed below.
#
# - The image is `image`, a colon, and `version`. There is one container.
# - Limits: `cpu`, `gpus`, and for memory the sum of `memory_gib` and `shm_gib`. Leave requests out, or make them
#   equal.
# - `/dev/shm` has a `sizeLimit` of `shm_gib`.
# - Tolerate the taint above by its key, and select `product` with `nodeSelector`.
#
# | `kind` | what it needs |
# |---|---|
# | `Deployment` | `pods` replicas without surge; startup and readiness probes of `/health` at `port`; the startup probe allows at least `load_seconds` and at most twice that |
# | `Job` (`apiVersion: batch/v1`) | `completions` and `parallelism` equal to `pods`; `restartPolicy`, beside `containers`, is `Never` or `OnFailure`; no selector, strategy or probes |
#
# YAML includes JSON, so `json.dumps` of dictionaries is fine. The check compares your text with the schema of
# Kubernetes 1.34, strictly: an unknown field is an error. About 45 lines.

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
# **Why.** To the schema, `limits` is a map of quantities, so `nvidia.com/gpu: 0.5` is valid. When you apply the
# manifest, Kubernetes' API server refuses this and some other mistakes. But the server accepts a missing toleration,
# a short probe and a small `/dev/shm`. The pod is then pending for ever, is killed while it loads, or dies under
# load because `/dev/shm` is full.
#
# ## Detective · A cluster with room
#
# The pod `rank-0`, which needs 4 H100s and 200 GiB of memory, has been pending since yesterday. The colleague who
# looks after the dashboard says: "22 GPUs are free, and terabytes of memory. It must be a bug in the scheduler. I
# would restart it."
#
# You may move *one* running pod to another node that can run it. No pod tolerates a taint. `product` is the label
# that a pod selects.


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
    caption="The dashboard: every node has free GPUs, and three nodes have four or more.",
)

# %% [markdown]
# **Do.** Find out for each node why the scheduler's filter rejects it, and which single pod is in the way. You can
# use `nodes`, `running`, `pending` and `free`. Use the next cell as you like.

# %%
# Your experiment.

# %% [markdown]
# ### Your answer
#
# Answer in three to five sentences. Why does no node accept `rank-0`? Which pod would you move, and where to? Why
# would it not help to move one of the `dev` pods? A person reads your answer: 1 point for the pod and the reason, 1
# point for numbers from your experiment.

# %% [markdown] nbgrader={"grade": true, "grade_id": "room-answer", "locked": false, "points": 2, "schema_version": 3, "solution": true, "task": false}
# **2 points:** Of the 22 free GPUs, 8 are on n0, which is tainted for maintenance, 4 are A100s on n5, and 6 are
# fragments of two on n2, n3 and n4. The only node with 4 free H100s is n1, but it has only 128 GiB of memory left,
# and 200 GiB are needed. `etl-0` holds 640 GiB there and no GPU, so 4 GPUs are stranded. I would move `etl-0` to
# n5, which has 704 GiB free; n2 to n4 have room, too. `tune-0` needs 4 H100s itself and fits nowhere else. Moving
# one dev pod turns 2 free GPUs into 3, so two would have to move.
#
# **1 point** (without numbers): On n1, the memory is full because of `etl-0`, so its GPUs cannot be used.
#
# **0 points:** The GPUs are fragmented, move a dev pod. Or: restart the scheduler.

# %% [markdown]
# ## Beyond · Wait less without delaying anyone
#
# This task is open-ended and ungraded. Plan the queue below for 16 GPUs. The figure of merit is the sum of waiting
# times, and no job may start later than in turn. `gang` fills gaps in order of arrival, which need not be the best
# order.
#
# | plan | sum of waiting times |
# |---|---|
# | in turn, no job passes another | 559 |
# | `gang` | printed by the next cell |
# | ours: 400 random changes to the order in which jobs are placed | 220 |
# | bound: all GPUs as one machine that can interrupt jobs, shortest remaining work first | printed by the next cell |

# %%
gpulab.need(gang)
later = "0 9 12, 0 4 3, 1 12 8, 1 3 6, 2 2 14, 2 6 2, 3 16 3, 4 5 5, 4 1 9, 5 10 4, "
later += "6 3 3, 6 7 7, 8 2 2, 9 11 6, 9 4 4, 10 1 12, 11 8 3, 12 3 8, 13 14 2, 14 2 5"
later = [[int(number) for number in job.split()] for job in later.split(", ")]


def bound(jobs, gpus):
    """A lower bound of the waiting: one machine with all GPUs runs the shortest remaining job first."""
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
    """When each job would start if no job could pass another."""
    placed, at = [], 0
    for arrival, wanted, duration in jobs:
        at = max(at, arrival)
        while sum(n for end, n in placed if end > at) + wanted > gpus:
            at = min(end for end, _ in placed if end > at)
        placed.append((at + duration, wanted))
    return [end - duration for (end, _), (_, _, duration) in zip(placed, jobs, strict=True)]


def waiting(starts):
    """The figure of merit. Raises ValueError for more than 16 GPUs, and names jobs that are delayed."""
    cluster.planned([(wanted, duration) for _, wanted, duration in later], starts, 16)
    delayed = [
        i for i, (start, latest) in enumerate(zip(starts, in_turn(later, 16), strict=True)) if start > latest
    ]
    if delayed:
        print(f"delayed: jobs {delayed}")
    return sum(start - arrival for start, (arrival, *_) in zip(starts, later, strict=True))


print(f"in turn {waiting(in_turn(later, 16))}, gang {waiting(gang(later, 16))}, bound {bound(later, 16):.0f}")

# %%
# Your plan, a start for each job: print(waiting(plan))

# %% [markdown]
# ## Recap
#
# <details><summary>1. Requests are 3g.40gb and 4g.40gb. The 3g was placed at slice 0 of GPU 0. What follows?</summary>
#
# A 4g can start only at 0, so it needs a second GPU. If the 3g were at slice 4, there would be room for the 4g.
# </details>
#
# <details><summary>2. 12 GPUs are free, and a pod with 4 GPUs is pending. Name four possible reasons.</summary>
#
# Fragments; a taint that the pod does not tolerate; a label that does not match; no memory or processors left where
# GPUs are free.
# </details>
#
# <details><summary>3. A wide job waits. When may a small job start before it?</summary>
#
# If, according to the durations, no earlier job starts later because of it: the small job ends in time, or it uses
# GPUs that the wide job leaves free.
# </details>
#
# <details><summary>4. 10 replicas have a utilisation of 100 %, and the target is 50 %. What does the autoscaler ask for, and what is needed?</summary>
#
# It asks for 20. The utilisation does not show how many are needed, because it cannot exceed 100 %.
# </details>
#
# <details><summary>5. A manifest passes the schema, but its pod restarts every 30 seconds. Why?</summary>
#
# Its startup probe allows the default of 3 · 10 s, and loading the weights takes longer.
# </details>

# %%
gpulab.recap("20")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | GPUs in a manifest | in `limits`, a whole number; request = limit |
# | MIG on A100 and H100 | 7 compute slices, 8 memory slices; a 4g starts at 0, a 3g at 0 or 4, a 2g at 0, 2 or 4; use the last start first |
# | share one GPU | MPS: trusted processes, small kernels; MIG: untrusted processes, guaranteed latency; time-slicing: mostly idle processes |
# | pack | by decreasing dominant share, into islands |
# | gang | all pods or none |
# | backfill | into gaps, if no earlier job is delayed |
# | fair | the smallest dominant share ÷ weight is next |
# | autoscaler | ⌈replicas × metric ÷ target⌉, no change within 10 %; use metrics that do not saturate |
# | slow start | what is needed between now and now + delay |
# | `/dev/shm` | `emptyDir` with `medium: Memory`; counts as memory |
# | update on a full cluster | `maxSurge: 0` |
#
# ### Claims you will meet, and what is right
#
# - *GPUs are indivisible: one GPU per pod.* A pod can ask for many. Parts of a GPU come from MIG, time-slicing, MPS
#   or DRA.
# - *Sharing means MPS and "model parallel sharing".* The second does not exist, and MIG and time-slicing are missing.
# - *cgroups isolate GPU memory.* They limit processors, host memory and access to devices. Limiting GPU memory by
#   cgroup requires the MPS of CUDA 13.4.
# - *Time-slicing with 4 replicas gives each a quarter of the memory.* It gives all of the memory to each, until it is
#   full.
# - *MIG has 7 slices of everything.* It has 7 of compute and 8 of memory, and two 3g fill the memory.
# - *Set GPU requests lower than limits.* Kubernetes refuses it.
# - *Scale on GPU utilisation.* It only says that a kernel was running, and cannot exceed 100 %.
# - *It passes the schema, so it runs.* The schema knows only fields and types.
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
