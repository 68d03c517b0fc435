# ---
# jupyter:
#   gpulab:
#     lab: "18"
#     hours: 3
#     topics: [C18.1, C18.2, C18.3, C18.4, C18.5, C18.6, C18.7, C18.8, C18.9, C18.10, C23.4, C23.5, C23.6, C23.10]
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 18 A · Clusters: links, networks, and how many GPUs
#
# **About three hours.** You need lab 15 (ring and tree all-reduce, reduce-scatter, all-gather), lab 16 (16 bytes per
# parameter) and lab 17 (tensor parallelism). Part A runs on one processor: networks are graphs here, and their times
# are modelled. Part B is about failures, with real processes.
#
# When you are through, you can
#
# 1. compare links whose makers count differently;
# 2. compute what a network lets through, and find its narrowest place;
# 3. plan an all-reduce that spares the slow links;
# 4. say why a network with enough links is still congested;
# 5. work out how many GPUs a model needs, for training and for its users.

# %%
from collections import Counter, deque
from math import ceil
from pathlib import Path

import numpy as np

import gpulab
from gpulab import hardware
from gpulab.distributed import costs, topologies

gpulab.start("18")

# %% [markdown]
# ## 1 · Links: what the numbers count
#
# Three habits make data sheets of links hard to compare.
#
# - **NVLink** is stated as the sum of *both directions* over *all links* of a GPU. NVLink 4 is 18 links of 25 GB/s
#   each way: 450 GB/s one way, 900 GB/s on the sheet.
# - **PCIe** is stated per lane in transfers per second, or for 16 lanes in one direction. A transfer is one bit: PCIe
#   5.0's 32 GT/s are 4 GB/s a lane, of which its encoding takes 2 in 130 bits.
# - **InfiniBand** and Ethernet are stated in *bits* per second and one direction: NDR's 400 Gbit/s are 50 GB/s.
#
# Below all are bytes per second in one direction, from `gpulab.hardware`, which has a source for each.
#
# **Predict.** NVLink 4 against PCIe 5.0 ×16, both in one direction: how many times as fast?

# %%
gpulab.predict("cluster.nvlink_pcie", ...)

# %%
for name, link in hardware.LINKS.items():
    said = f"{float(link.stated) / 1e9:5,.0f} GB/s {'both ways' if link.both_directions else 'one way'}"
    rate = float(link.per_direction) / 1e9
    print(
        f"{name:15}{int(link.lanes):3} × {float(link.per_lane) / 1e9:6.2f} = {rate:4.0f} GB/s, "
        f"1 GB in {1e3 / rate:4.1f} ms   stated {said:21} {link.stated.source}"
    )

# %%
gpulab.plot.bars(
    {name: float(link.per_direction) / 1e9 for name, link in hardware.LINKS.items()},
    "GB/s in one direction",
    caption="In one direction NVLink is several times as fast as the PCIe of its time and any network card.",
)

# %% [markdown]
# **Why.** The "900 against 64" of many guides divides both directions by one. A factor of 7 is left, and it is the
# gap around which all of this lab is built: inside a node NVLink, between nodes about a tenth of that.
#
# NVLink carries loads, stores and atomics between GPUs. Caches are kept coherent by hardware only between a GPU and
# a CPU that has NVLink too: POWER9, or Grace with **NVLink-C2C**. A **bridge** joins two PCIe cards by NVLink; in a
# server of eight, **NVSwitch** chips let each GPU use all its links toward any other.
#
# A server with two CPUs has two memories (**NUMA**). A copy from the far CPU's memory crosses the link between the
# CPUs, so a rank is pinned to the cores, memory and network card that hang on its own CPU: `nvidia-smi topo -m`
# shows which.

# %%
memories = sorted(Path("/sys/devices/system/node").glob("node[0-9]*/cpulist"))
for memory in memories:
    print(f"{memory.parent.name}: cores {memory.read_text().strip()}")
print(f"memories that Linux shows on this machine: {len(memories)}")

# %% [markdown]
# ## 2 · What a network lets through
#
# A network is a graph: hosts, switches, and links, each with a direction and a rate. A cable that works both ways is two
# links. The most that A can send to B along all ways together is the **maximum flow**. It equals the narrowest **cut**:
# the least rate of the links that lead from A's part to B's (L. Ford and D. Fulkerson, 1956). So a flow proves that a
# rate is possible, and a cut that no more is.
#
# ![Hosts, leaf switches and spine switches. If a leaf has as many links up as down, any half of the hosts can send to the other half at full speed. With half of the links up the network is oversubscribed 2 : 1.](drawings/fat_tree.svg)
#
# To compute it, find a way on which every link has something left, send what its narrowest link takes, repeat. That may
# end too early: a way through the link s → t can block two better ones, of which one needs only t and the other only s.
# One addition makes it exact: what was sent over a link may be **sent back**, from t to s, by a later way.
#
# **Do.** Write `max_flow(links, source, sink)`. `links` has lists `[from, to, rate]`, one way, rates whole numbers.
# Several links may lead from one node to the same other. Returns the flow, 0 if there is no way. About 22 lines.


# %% nbgrader={"grade": false, "grade_id": "max_flow", "locked": false, "schema_version": 3, "solution": true, "task": false}
def max_flow(links, source, sink):
    ### BEGIN SOLUTION
    left = {source: {}, sink: {}}
    for a, b, rate in links:
        left.setdefault(a, {})[b] = left.get(a, {}).get(b, 0) + rate
        left.setdefault(b, {}).setdefault(a, 0)  # to send back
    total = 0
    while True:
        came, queue = {source: None}, deque([source])
        while queue:
            here = queue.popleft()
            for node, rest in left[here].items():
                if rest > 0 and node not in came:
                    came[node] = here
                    queue.append(node)
        if sink not in came:
            return total
        way, node = [], sink
        while came[node] is not None:
            way.append((came[node], node))
            node = came[node]
        most = min(left[a][b] for a, b in way)
        for a, b in way:
            left[a][b] -= most
            left[b][a] += most
        total += most
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "max_flow-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cluster.max_flow", max_flow)

# %% [markdown]
# Now whole clusters. Part the hosts into two halves and let one send to the other: the flow depends on the halves.
# The smallest over all halves is the **bisection bandwidth**. A network has **full** bisection if that is half of
# the hosts times the rate at which one host sends: then no half waits for the network. Below a host counts with 50
# GB/s, one link. Hosts of a ring or torus have more, and pass on what others send; hosts on rails have NVLink, too.
#
# The usual shapes:
#
# - **ring** and **torus**: hosts linked to their neighbours, no switches;
# - **leaf and spine**: leaf switches with hosts below, each linked to all spines above. Leaves with more links down
#   than up are **oversubscribed**;
# - **fat tree**: three levels of equal switches. With k ports each they carry k³/4 hosts at full bisection;
# - **dragonfly**: groups of routers, a few long links between each two groups;
# - **rails**: GPU number i of every node hangs on the same switch, rail i (section 4 shows what for).
#
# **Predict.** Eight hosts in a ring. How many links does the best cut into two halves cross?

# %%
gpulab.predict("cluster.ring_cut", ...)


# %%
def bisection(topology):
    """The smallest flow between two halves of the hosts, and a half that has it."""

    both_ways = [link for a, b, rate in topology.links for link in ((a, b, rate), (b, a, rate))]

    def flow(half, others):
        ends = [("from", h, 10**6) for h in half] + [(h, "to", 10**6) for h in others]
        return max_flow([*both_ways, *ends], "from", "to")

    return min((flow(half, others), half) for half, others in topology.halves())


RATE = 50  # GB/s
eight = {
    "ring": topologies.ring(8, RATE),
    "torus, 2 × 4": topologies.torus(2, 4, RATE),
    "leaf and spine, 2 spines": topologies.leaf_spine(4, 2, 2, RATE),
    "leaf and spine, 1 spine": topologies.leaf_spine(4, 2, 1, RATE),
    "dragonfly, 4 groups": topologies.dragonfly(4, 1, 2, RATE),
    "rails, 2 nodes of 4": topologies.rails(2, 4, 9 * RATE, RATE),
}
gpulab.need(max_flow)
found = {name: bisection(topology) for name, topology in eight.items()}
for name, (flow, half) in found.items():
    t = eight[name]
    print(
        f"{name:26}{t.cables:4} cables {len(t.switches):3} switches   bisection {flow:4} GB/s   "
        f"{100 * flow / (4 * RATE):4.0f} % of 4 × {RATE}"
    )

# %%
gpulab.need(max_flow)
flow, half = found["leaf and spine, 1 spine"]
narrow = eight["leaf and spine, 1 spine"]
gpulab.plot.network(
    narrow.hosts,
    narrow.links,
    f"Hosts with crosses exchange at most {flow} GB/s with the others: half of what their four links carry.",
    half,
)

# %% jupyter={"source_hidden": true}
tree = topologies.fat_tree(4, RATE)
gpulab.plot.network(
    tree.hosts,
    tree.links,
    f"A fat tree of {len(tree.switches)} switches with 4 ports: as many links between any two levels as hosts.",
)

# %% [markdown]
# **Why.** *Any* half gives an upper limit; a convenient one can flatter a network. So the smallest counts, and for large
# networks one proves it from the shape and does not try all halves. The price of full
# bisection is switches and cables: a fat tree has three cables a host, a ring one. Large clusters save at the top, where
# jobs can be placed so that they seldom cross it.
#
# ## 3 · Boards, racks, clusters, switch chips
#
# ![A board with eight GPUs: each GPU has links to every NVSwitch chip, so any two of them talk at full speed. A network card for each GPU leads out of the node.](drawings/switch_planes.svg)
#
# | | what it is | its rates |
# |---|---|---|
# | **HGX H100** | eight GPUs on a board with NVSwitch | together 8 × 900 GB/s = 7.2 TB/s of links, both directions; the bisection is 4 × 450 = 1.8 TB/s each way. The 16 PFLOP/s that go with it are float16 with sparsity; half of that is dense |
# | **DGX SuperPOD** (H100) | nodes of eight, a network card for each GPU | NDR InfiniBand between nodes in the pods that shipped; a 256-GPU NVLink network was announced (NVIDIA's reference architecture) |
# | **NVL72** | 72 Blackwell GPUs in a rack on one NVLink network: the fast domain grew from 8 to 72 | 72 × 1.8 = 130 TB/s, both ways; above it the same hierarchy starts |
# | **Switch chips** | a total rate, split into ports | 102.4 Tbit/s (Broadcom Tomahawk 6, 2025) are 64 ports of 1.6 Tbit/s, 128 of 800 Gbit/s or 512 of 200; Tomahawk 5 has half |
#
# Tomahawk has *shallow* buffers and low latency; Jericho of the same maker has deep buffers. InfiniBand is an open
# standard of the IBTA, of which NVIDIA, through Mellanox, makes most switches.

# %%
for board, gpus, name in (
    ("HGX A100", 8, "NVLink 3"),
    ("HGX H100", 8, "NVLink 4"),
    ("NVL72", 72, "NVLink 5"),
):
    one_way = float(hardware.link(name).per_direction)
    print(
        f"{board:9} {gpus:3} GPUs   all links, both ways {2 * gpus * one_way / 1e12:6.1f} TB/s   "
        f"bisection one way {gpus / 2 * one_way / 1e12:5.1f} TB/s"
    )
for ports in (64, 128):
    print(
        f"switches of {ports} ports: two levels {ports**2 // 2:,} hosts, fat tree of three {ports**3 // 4:,}"
    )

# %% [markdown]
# ## 4 · All-reduce in levels
#
# N nodes of G GPUs: fast links inside, one network card (**NIC**) per GPU to the outside. A ring over all p = N·G GPUs
# ignores that. Each step waits for the slowest message, and most of the array passes through every node's last NIC.
#
# ![All-reduce in levels: within each node every GPU sums a part, the parts are summed between nodes, and each node shares the result among its GPUs. Only the middle step crosses the network.](drawings/in_levels.svg)
#
# In **levels** all NICs share the work: reduce-scatter inside each node, so that each GPU holds its node's sum of one
# part; all-reduce of the parts between GPUs of the same number; all-gather inside. Those GPUs hang on the same switch if
# the network has rails: one hop, no spine.
#
# A plan is a list of steps, a step a list of messages `[from, to, chunks, how]`. Ranks are numbered node by node: rank
# r is GPU r mod G of node r // G. The array has p chunks, 0 … p − 1; each rank starts with its own numbers in all of
# them. `how` is `"add"` or `"copy"` at the receiver. In a step a rank sends at most one message and receives at most
# one, and all messages leave with what was there before the step. This is the ring over all:


# %%
def ring_over_all(nodes, per_node):
    p = nodes * per_node
    return [
        [[r, (r + 1) % p, [(r + first - t) % p], how] for r in range(p)]
        for how, first in (("add", 0), ("copy", 1))
        for t in range(p - 1)
    ]


ring_over_all(1, 3)

# %% [markdown]
# **Do.** Write `all_reduce(nodes, per_node)`: a plan in levels. **Budget:** the busiest NIC sends 2(N − 1) chunks, the
# least possible; at most 2(G − 1) + 2(N − 1) steps. No number may be added twice. About 14 lines.


# %% nbgrader={"grade": false, "grade_id": "all_reduce", "locked": false, "schema_version": 3, "solution": true, "task": false}
def all_reduce(nodes, per_node):
    ### BEGIN SOLUTION
    def rings(size, count, member, chunks):
        """`count` rings of `size` ranks side by side: the steps of a reduce-scatter, then of an all-gather."""
        return [
            [
                [member(ring, i), member(ring, (i + 1) % size), chunks(ring, (i + first - t) % size), how]
                for ring in range(count)
                for i in range(size)
            ]
            for how, first in (("add", 0), ("copy", 1))
            for t in range(size - 1)
        ]

    groups = [list(range(g * nodes, (g + 1) * nodes)) for g in range(per_node)]
    inside = rings(per_node, nodes, lambda node, i: node * per_node + i, lambda node, g: groups[g])
    # After the reduce-scatter GPU i holds its node's sum of group i + 1.
    between = rings(
        nodes, per_node, lambda gpu, n: n * per_node + gpu, lambda gpu, n: [groups[(gpu + 1) % per_node][n]]
    )
    return inside[: per_node - 1] + between + inside[per_node - 1 :]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "all_reduce-check", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cluster.all_reduce", all_reduce)

# %% [markdown]
# **See.** What a plan's messages put on each NIC, and how long it takes by the α–β model: a step lasts as long as its
# slowest message, and a message latency + bytes ÷ rate. The rates are NVLink 4 and NDR; the latencies, 2 and 5 µs, are
# inputs of the model. The second figure also has lab 15's tree: whole arrays up to one rank and down again, 2 log₂ p
# messages one after the other.

# %%
fast = costs.Network(2e-6, float(hardware.link("NVLink 4").per_direction))
slow = costs.Network(5e-6, float(hardware.link("InfiniBand NDR").per_direction))


def modelled(plan, nodes, per_node, size):
    """Seconds for an array of `size` bytes."""
    chunk = size / (nodes * per_node)
    return sum(
        max((fast if a // per_node == b // per_node else slow).message(len(c) * chunk) for a, b, c, _ in step)
        for step in plan
        if step
    )


def busiest_nic(plan, per_node):
    sent = Counter()
    for step in plan:
        for a, b, chunks, _ in step:
            if a // per_node != b // per_node:
                sent[a] += len(chunks)
    return max(sent.values(), default=0)


N, G = 4, 8
gpulab.need(all_reduce)
plans = {"ring over all": ring_over_all(N, G), "in levels": all_reduce(N, G)}
gpulab.plot.panels(
    {
        "chunks through a NIC": {name: busiest_nic(plan, G) for name, plan in plans.items()},
        "steps": {name: len(plan) for name, plan in plans.items()},
        "ms for 1 GB, modelled": {name: 1e3 * modelled(plan, N, G, 1e9) for name, plan in plans.items()},
    },
    "4 nodes of 8 GPUs: in levels a NIC sends a tenth of the chunks in a third of the steps.",
)

# %%
gpulab.need(all_reduce)
agree = costs.hierarchical_all_reduce(fast, slow, G, N, 1e9)
print(
    f"1 GB: your plan {1e3 * modelled(plans['in levels'], N, G, 1e9):.3f} ms, closed formula {1e3 * agree:.3f} ms"
)
sizes = [10.0**e for e in np.arange(3, 10.1, 0.25)]
gpulab.plot.lines(
    {
        "ring over all": [(s / 1e6, 1e3 * modelled(plans["ring over all"], N, G, s)) for s in sizes],
        "tree over all": [(s / 1e6, 1e3 * costs.tree_all_reduce(slow, N * G, s)) for s in sizes],
        "in levels": [(s / 1e6, 1e3 * modelled(plans["in levels"], N, G, s)) for s in sizes],
    },
    "array, MB",
    "ms, modelled",
    "The levels win against the ring at every size; for the smallest a tree, with few messages, is a little faster.",
    log_x=True,
    log_y=True,
)

# %% [markdown]
# **Why.** A node has to give its sum of everything and get the others': 2(N − 1)/N of the array must leave it, whatever
# the plan. The ring over all sends little more than that per node, 62 chunks against 48 here, but all of it through *one*
# NIC; the levels spread it over all eight, 6 chunks each. That is the factor of ten. NCCL (lab 15) builds its rings and
# trees on this knowledge of the machine; SHARP goes one step further and adds inside the switch.
# The same gap places the parallelisms of lab 17: tensor parallelism, which talks in every layer, inside a node; pipeline and
# data parallelism between nodes.
#
# ## 5 · Congestion
#
# A switch sends each flow along one of several equal ways, chosen by a hash of its addresses (**ECMP**: equal-cost
# multi-path). Packets of a flow stay in order that way. Training has few and huge flows, and hashes collide: some links
# get three flows, others none, and every collective waits for the slowest flow.
#
# | name | what it does |
# |---|---|
# | **RDMA** | a NIC writes into another machine's memory without its CPU |
# | **GPUDirect RDMA** | the same, straight into GPU memory |
# | InfiniBand's credits | nothing is sent which the receiver can't hold |
# | **RoCE v2** | carries RDMA over Ethernet, which may drop packets |
# | **PFC** (priority flow control) | pauses the neighbour before a buffer overflows |
# | **ECN** | marks packets so that senders slow down |
# | data-centre bridging | PFC, ECN and bandwidth shares per class |
#
# A pause of PFC hits all flows of its class behind the full port, those to idle ports too.
#
# **Predict.** Twelve leaves with 8 flows each, 8 spines, each flow takes one by chance. Flows on the busiest uplink, on
# average?

# %%
gpulab.predict("cluster.hash", ...)

# %%
numbers = np.random.default_rng(0)


def busiest(choice, flows):
    links = Counter()
    for (start, stop), spine in zip(flows, choice, strict=True):
        links["up", start, spine] += 1
        links["down", spine, stop] += 1
    return max(links.values())


def random_flows(leaves, degree):
    """From each leaf up to `degree` flows, and to each, in any order."""
    pairs = [(a, int(b)) for _ in range(degree) for a, b in enumerate(numbers.permutation(leaves)) if a != b]
    return [list(pairs[i]) for i in numbers.permutation(len(pairs))]


uplinks = [
    max(Counter((leaf, int(s)) for leaf in range(12) for s in numbers.integers(0, 8, 8)).values())
    for _ in range(2000)
]
gpulab.predict("cluster.hash", measured=float(np.mean(uplinks)))

# %% [markdown]
# **Do.** Be the controller that knows all flows. `spread(flows, spines)`: `flows` has pairs `[from leaf, to leaf]`;
# return a spine number for each. A flow uses the link from its leaf up to the spine, and the one down to the other
# leaf; leaf and spine share one link. **Budget:** the busiest link carries no more flows than it must: with at most d
# flows from or to any leaf and s spines, ⌈d/s⌉. About 25 lines. Taking the emptiest spine for one flow after the other
# does not reach it.


# %% nbgrader={"grade": false, "grade_id": "spread", "locked": false, "schema_version": 3, "solution": true, "task": false}
def spread(flows, spines):
    ### BEGIN SOLUTION
    ends = Counter((side, flow[side]) for flow in flows for side in (0, 1))
    colours = max(ends.values(), default=1)
    taken = ({}, {})  # on the way up, on the way down: (leaf, colour) → flow
    colour = {}

    def put(flow, c):
        colour[flow] = c
        for side in (0, 1):
            taken[side][flows[flow][side], c] = flow

    for new, (start, stop) in enumerate(flows):
        a = next(c for c in range(colours) if (start, c) not in taken[0])
        b = next(c for c in range(colours) if (stop, c) not in taken[1])
        # Flows a, b, a, b … from `stop` on change their colours, and a is free at both ends.
        path, side, leaf, wanted = [], 1, stop, a
        while a != b and (leaf, wanted) in taken[side]:
            path.append(taken[side][leaf, wanted])
            side = 1 - side
            leaf = flows[path[-1]][side]
            wanted = a + b - wanted
        for flow in path:
            for side in (0, 1):
                del taken[side][flows[flow][side], colour[flow]]
        for flow in path:
            put(flow, a + b - colour[flow])
        put(new, a)
    return [colour[flow] % spines for flow in range(len(flows))]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "spread-check", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cluster.spread", spread)

# %% [markdown]
# **See.** The same traffic, 8 flows a leaf, with more and more spines. The busiest link sets the time of the step.

# %%
gpulab.need(spread)
curves = {"by chance": [], "emptiest first": [], "yours": []}
for spines in (1, 2, 4, 6, 8, 10, 12, 14, 16):
    trials = {name: [] for name in curves}
    for _ in range(20):
        flows = random_flows(12, 8)
        load, greedy = Counter(), []
        for start, stop in flows:
            s = min(range(spines), key=lambda s: max(load["up", start, s], load["down", stop, s]))
            load["up", start, s] += 1
            load["down", stop, s] += 1
            greedy.append(s)
        trials["by chance"].append(busiest(numbers.integers(0, spines, len(flows)), flows))
        trials["emptiest first"].append(busiest(greedy, flows))
        trials["yours"].append(busiest(spread(flows, spines), flows))
    for name, values in trials.items():
        curves[name].append((spines, float(np.mean(values))))
gpulab.plot.lines(
    curves,
    "spines",
    "flows on the busiest link",
    "With 8 spines the bisection is full, yet chance puts about four flows on one link; a plan needs one each.",
)

# %% [markdown]
# **Why.** Full bisection says that a good choice *exists*, for every traffic with at most d flows a leaf (D. König's theorem
# of 1916 about colouring). Real networks come near it otherwise: they spray packets, move flows off full links
# (adaptive routing), give a collective more flows, and place ranks so that traffic stays on its rail. Spare links
# and cards are planned in, because a broken link takes its flows with it.
#
# ## 6 · How many GPUs?
#
# **To serve** a model, weights and **KV cache** must fit: the keys and values of all tokens of all users, kept for the
# tokens to come (lab 19 builds one). Per token these are 2 × layers × KV heads × head_dim numbers. **KV heads** are heads
# of keys and values, head_dim numbers wide each; several heads of queries share one. Weights may be quantised: 4.25 bits
# each in MXFP4, scales included. Tensor parallelism over g GPUs shares the weights evenly, and the cache by whole heads:
# with more GPUs than KV heads, several hold copies of a head. "Parameters × bytes" alone, or without rounding up, is too
# small.
#
# ![What a card holds when it serves: the weights once, and a cache for every user. What is left after the weights, divided by the cache of a user, is the number of users.](drawings/memory_of_serving.svg)
#
# **Do.** Write `serve(model, memory, users, context)`. `memory` is bytes of a GPU, of which 90 % may be used. Return
# [bytes of all weights, bytes of the cache without copies, GPUs]: the first of 1, 2, 4, 8, 16 that divides `heads`, that
# divides `kv_heads` or is a multiple of it, and that leaves each GPU room for its share; None if there is none. About 10
# lines.
#
# | `model[…]` | |
# |---|---|
# | `parameters`, `weight_bits` | how many weights, and bits of each |
# | `layers`, `heads`, `kv_heads`, `head_dim` | as above; `heads` are those of queries |
# | `cache_bytes` | of each number in the cache |


# %% nbgrader={"grade": false, "grade_id": "serve", "locked": false, "schema_version": 3, "solution": true, "task": false}
def serve(model, memory, users, context):
    ### BEGIN SOLUTION
    weights = model["parameters"] * model["weight_bits"] / 8
    one_head = 2 * model["layers"] * model["head_dim"] * model["cache_bytes"] * users * context
    heads, kv_heads = model["heads"], model["kv_heads"]
    for g in (1, 2, 4, 8, 16):
        whole = heads % g == 0 and (kv_heads % g == 0 or g % kv_heads == 0)
        if whole and weights / g + one_head * max(1, kv_heads // g) <= 0.9 * memory:
            return [weights, kv_heads * one_head, g]
    return [weights, kv_heads * one_head, None]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "serve-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cluster.serve", serve)

# %% [markdown]
# **See.** Which size of which model fits which card, for 8 users with 4,096 tokens each and a float16 cache. The shapes
# are from the models' published configurations (references 8 and 9).

# %%
gpulab.need(serve)
shapes = {
    "Llama 2 7B": {"parameters": 6.74e9, "layers": 32, "heads": 32, "kv_heads": 32, "head_dim": 128},
    "Llama 3 8B": {"parameters": 8.03e9, "layers": 32, "heads": 32, "kv_heads": 8, "head_dim": 128},
    "Llama 2 70B": {"parameters": 68.98e9, "layers": 80, "heads": 64, "kv_heads": 8, "head_dim": 128},
    "Llama 3 405B": {"parameters": 405.85e9, "layers": 126, "heads": 128, "kv_heads": 8, "head_dim": 128},
}
cards = ("RTX 4090", "L40S", "A100", "H200", "B200")
print(f"{'':14}bits {'weights':>9} {'cache':>9}   GPUs of " + "  ".join(f"{card:>8}" for card in cards))
for name, shape in shapes.items():
    for bits in (16, 8, 4.25):
        model = shape | {"weight_bits": bits, "cache_bytes": 2}
        answers = [serve(model, float(hardware.find(card).dram_bytes), 8, 4096) for card in cards]
        weights, cache, _ = answers[0]
        counts = "  ".join(f"{n or '> 16':>8}" for *_, n in answers)
        print(f"{name:14}{bits:4} {weights / 1e9:6.1f} GB {cache / 1e9:6.1f} GB           {counts}")

# %% [markdown]
# **Why.** Llama 2 7B and Llama 3 8B differ little in weights and by four in cache: 32 KV heads against 8. Quantising
# weights does nothing for the cache.
#
# **To train**, count bytes and operations separately. State: 16 bytes per parameter with Adam in mixed precision (lab 16),
# over all GPUs if it is sharded. Work: 6 operations per active parameter and token, 2 forward and 4 backward (J. Kaplan
# et al., 2020). The share of the peak that becomes such operations is **MFU**, model FLOP/s utilisation.
#
# **Predict.** GPT-3 has 175 billion parameters, an H100 80 GB. How many H100s hold its training state, with 20 % of their
# memory kept for activations?

# %%
gpulab.predict("cluster.h100s", ...)

# %%
state = 16 * 175e9
h100 = hardware.find("H100")
superpod = 32 * 8
print(
    f"state {state / 1e12:.1f} TB, {ceil(state / (0.8 * float(h100.dram_bytes)))} H100s; "
    f"a SuperPOD of {superpod} has {superpod * float(h100.dram_bytes) / 1e12:.1f} TB: "
    f"{superpod * float(h100.dram_bytes) / state:.1f} times the state"
)

# %% [markdown]
# So memory asks for 44, and 3.14 · 10²³ operations (reference 7) in a month ask for several hundred. Time decides.
#
# ![How many GPUs? Two questions give two numbers, and the larger one counts: how many until everything fits, and how many until it is done in time.](drawings/how_many.svg)
#
# **Do.** Write `train(model, gpu, days, lost)`. `model` has `parameters`, `active` parameters per token (fewer in a
# mixture of experts), `tokens`, `bytes_per_parameter`; `gpu` has `memory`, of which 80 % hold state, `peak` in FLOP/s,
# `utilisation`, `per_node`. `lost` is the share of time lost to failures and saving. Return [GPUs, "memory" or "time",
# days]: GPUs in whole nodes; which of the two needed more GPUs before rounding (no case has a tie); and the days that
# those GPUs take. About 7 lines.


# %% nbgrader={"grade": false, "grade_id": "train", "locked": false, "schema_version": 3, "solution": true, "task": false}
def train(model, gpu, days, lost):
    ### BEGIN SOLUTION
    by_memory = model["bytes_per_parameter"] * model["parameters"] / (0.8 * gpu["memory"])
    rate = gpu["peak"] * gpu["utilisation"] * (1 - lost)
    gpu_days = 6 * model["active"] * model["tokens"] / rate / 86_400
    by_time = gpu_days / days
    gpus = gpu["per_node"] * ceil(max(by_memory, by_time) / gpu["per_node"])
    return [gpus, "memory" if by_memory > by_time else "time", gpu_days / gpus]
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "train-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cluster.train", train)

# %% [markdown]
# **See.** The formula against runs that were published: from parameters, tokens and GPU hours follows the share of the
# dense bfloat16 peak that became useful work. Sources by number; the GPU hours are what the makers state, or their GPUs
# times their days.

# %%
published = {
    # name: (active parameters, tokens, GPU hours, GPU)
    "GPT-3 175B plan (4)": (175e9, 300e9, 1024 * 34 * 24, "A100"),
    "BLOOM 176B (10)": (176e9, 366e9, 1_082_990, "A100"),
    "Llama 2 70B (8)": (69e9, 2e12, 1_720_320, "A100"),
    "Llama 3.1 405B (9)": (405e9, 15.6e12, 30.84e6, "H100"),
    "DeepSeek-V3 (11)": (37e9, 14.8e12, 2.664e6, "H100"),
}
share = {}
for name, (active, tokens, hours, gpu) in published.items():
    work, peak = 6 * active * tokens, float(hardware.roofline(gpu, "bfloat16").peak)
    share[name] = 100 * work / (hours * 3600 * peak)
    print(
        f"{name:21}{work:.2e} FLOP   {work / hours / 3600 / 1e12:4.0f} TFLOP/s per {gpu}   {share[name]:3.0f} %"
    )
gpulab.plot.bars(
    {name: round(value) for name, value in share.items()},
    "% of the dense bfloat16 peak, over all hours",
    caption="These published runs turned a third to less than half of the peak into useful work.",
)

# %% [markdown]
# **Why.** 32 to 43 % is what planned and finished runs got. The first two recomputed activations, a third more
# work that the formula does not count: 4 reports 140 TFLOP/s per GPU, and 105 · 8/6 = 140. Meta reports 38 to 43 % while
# Llama 3 ran; over all hours on its model card less is left. DeepSeek trained in float8 on H800s, whose arithmetic is that
# of an H100: in bfloat16 terms it had up to twice the peak. Whoever plans with the peak plans for a third of the time.
#
# ## 7 · What companies have said
#
# Claims with a date and a source; what is not published is not here.
#
# | who | when | what |
# |---|---|---|
# | **OpenAI** | 2020 | GPT-3 was trained on V100s in "a high-bandwidth cluster" of Microsoft (7) |
# | | 2021 | Kubernetes over 7,500 nodes, with full bisection ("Scaling Kubernetes to 7,500 nodes"). About GPT-4's cluster nothing is published; plans of several sites are press reports |
# | **Meta** | 2022 | RSC with 6,080 A100s at first, 16,000 when finished (blog) |
# | | 2024 | Llama 3 on up to 16,384 H100s of a RoCE cluster of 24,000; pods of 3,072 GPUs with full bisection, 1 : 7 oversubscription above (9) |
# | **Google** | 2023 | Gemini Ultra on TPUv4 pods in several data centres, synchronous in training steps (12) |
# | **ByteDance** | 2024 | 12,288 GPUs at 55 % MFU on a 175B model, with over 100 restarts (13) |
# | **Anthropic** | October 2025 | announces the use of up to a million TPUs ("Expanding our use of Google Cloud TPUs and Services"); no description of a network |
#
# **Storage** is part of a cluster. A token id takes 2 bytes (4 for vocabularies beyond 65,536): 15 trillion tokens are 60
# TB, and are read once. Checkpoints are harder: all at once, while GPUs wait. Llama 3's storage, 240 PB on 7,500 servers,
# sustains 2 TB/s and peaks at 7 (9).

# %%
tokens, bytes_each = 15.6e12, 4
reading = tokens * bytes_each / (54 * 86_400)
writing = 16 * 405e9 / 2e12
print(f"corpus {tokens * bytes_each / 1e12:.0f} TB, read at {reading / 1e6:.0f} MB/s over 54 days")
print(f"one checkpoint at 16 B per parameter: {16 * 405e9 / 1e12:.1f} TB, {writing:.1f} s at 2 TB/s")

# %% [markdown]
# ## Beyond · The fastest plan for 100 kB
#
# Open-ended and ungraded. For small arrays latency counts. Write a plan for 4 nodes of 8 GPUs that is fast at 100 kB by
# the model of section 4.
#
# | plan | µs, modelled |
# |---|---|
# | ring over all | the cell below |
# | in levels | the cell below |
# | ours | 21 |
# | bound: 3 steps inside and 2 between, no bytes | 16 |

# %%
gpulab.need(all_reduce)
for name, plan in plans.items():
    print(f"{name:14}{1e6 * modelled(plan, N, G, 1e5):6.0f} µs")

# %%
# Your plan, then 1e6 * modelled(plan, 4, 8, 1e5).

# %% [markdown]
# ## Recap
#
# <details><summary>1. A sheet says "NVLink 900 GB/s", another "InfiniBand 400G". What is the ratio, one way?</summary>
#
# 450 GB/s against 50 GB/s: 9.
# </details>
#
# <details><summary>2. You found halves of a cluster that exchange 800 GB/s. What do you know of its bisection?</summary>
#
# That it is at most 800 GB/s. Other halves may exchange less.
# </details>
#
# <details><summary>3. 16 nodes of 8 GPUs, an array of 1 GB. What does the busiest NIC send in levels?</summary>
#
# 2 · 15/16 of 1 GB over 8 NICs: 234 MB.
# </details>
#
# <details><summary>4. A network has full bisection, and a collective takes three times as long as planned. Why?</summary>
#
# Hashing put three flows on one link. Full bisection only says that another choice would have avoided it.
# </details>
#
# <details><summary>5. Why is "parameters × 2 bytes ÷ memory" too few GPUs to serve a model?</summary>
#
# The cache of all users is missing, some memory stays unused, and the number must be whole and share heads evenly.
# </details>

# %%
gpulab.recap("18")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | a link's rate | bytes, one direction: links × rate of a link |
# | flow between two places | the narrowest cut |
# | bisection | the smallest flow over *all* halves |
# | fat tree of k ports | k³/4 hosts, 5k²/4 switches, full bisection |
# | all-reduce in levels, per NIC | 2(N − 1)/N · size ÷ G |
# | flows on the busiest link, at best | ⌈flows a leaf ÷ spines⌉ |
# | cache | 2 × layers × KV heads × head_dim × bytes × tokens × users |
# | training state | 16 B per parameter |
# | training work | 6 × active parameters × tokens |
#
# ### Claims you will meet, and what is right
#
# - *NVLink is 14 times PCIe 5.0: 900 against 64 GB/s.* One counts both directions. 7 times.
# - *NVLink 4 has 100 GB/s per link.* 25 each way, 50 both; 18 links.
# - *NVLink keeps the caches of connected GPUs coherent.* Only between a GPU and a CPU with NVLink.
# - *Tomahawk switches have deep buffers.* Shallow. Jericho has deep ones.
# - *Rail-optimised: separate networks for separate kinds of traffic.* GPU i of every node on switch i.
# - *A SuperPOD is 256 GPUs on NVLink.* Announced so; shipped with InfiniBand between nodes of 8.
# - *InfiniBand is NVIDIA's.* An open standard; NVIDIA bought a maker.
# - *Training memory: 6 × parameters × bytes.* The parts that this sums leave out the weights; 16 B per parameter.
#
# ### References
#
# 1. L. Ford, D. Fulkerson, "Maximal Flow through a Network", 1956.
# 2. M. Al-Fares, A. Loukissas, A. Vahdat, "A Scalable, Commodity Data Center Network Architecture", SIGCOMM, 2008.
# 3. J. Kim, W. Dally, S. Scott, D. Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA, 2008.
# 4. D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM", 2021.
#    https://arxiv.org/abs/2104.04473
# 5. J. Kaplan et al., "Scaling Laws for Neural Language Models", 2020. https://arxiv.org/abs/2001.08361
# 6. NVIDIA, "DGX SuperPOD Reference Architecture: DGX H100", 2023.
# 7. T. Brown et al., "Language Models are Few-Shot Learners", 2020. https://arxiv.org/abs/2005.14165
# 8. H. Touvron et al., "Llama 2", 2023. https://arxiv.org/abs/2307.09288
# 9. A. Grattafiori et al., "The Llama 3 Herd of Models", 2024. https://arxiv.org/abs/2407.21783; GPU hours from the model
#    card of Llama 3.1.
# 10. A. S. Luccioni, S. Viguier, A.-L. Ligozat, "Estimating the Carbon Footprint of BLOOM", 2022.
#     https://arxiv.org/abs/2211.02001
# 11. DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024. https://arxiv.org/abs/2412.19437
# 12. Gemini Team, "Gemini: A Family of Highly Capable Multimodal Models", 2023. https://arxiv.org/abs/2312.11805
# 13. Z. Jiang et al., "MegaScale: Scaling Large Language Model Training to More Than 10,000 GPUs", 2024.
#     https://arxiv.org/abs/2402.15627
