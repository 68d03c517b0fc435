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
# **3 to 4.5 hours.** You need lab 15 (ring and tree all-reduce, reduce-scatter, all-gather), lab 16 (16
# bytes per parameter) and lab 17 (tensor parallelism). Part A runs in a single process: networks are graphs
# here, and their times are modelled. Part B is about failures, with real processes.
#
# On thousands of GPUs, a training run is often limited by what lies between the GPUs. In this part you
# compute what a network can carry, and how many GPUs a model needs.
#
# By the end of this lab, you can
#
# 1. compare links whose makers count differently;
# 2. compute how much a network can carry, and find its narrowest place;
# 3. plan an all-reduce that spares the slow links;
# 4. explain why a network with enough links is still congested;
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
# Data sheets of links are hard to compare, because their makers count in three different ways.
#
# - **NVLink** is stated as the sum of *both directions* over *all links* of a GPU. NVLink 4 has 18 links of
#   25 GB/s in each direction. That is 450 GB/s one way, and 900 GB/s on the data sheet.
# - **PCIe** is stated in transfers per second and lane, or for 16 lanes in one direction. A transfer is one
#   bit. So PCIe 5.0's 32 GT/s are 4 GB/s per lane, of which the encoding uses 2 in 130 bits.
# - **InfiniBand** and Ethernet are stated in *bits* per second in one direction. NDR's 400 Gbit/s are 50
#   GB/s.
#
# In the next cell all rates are bytes per second in one direction. They come from `gpulab.hardware`, which
# has a source for each.
#
# **Predict.** Compare NVLink 4 and PCIe 5.0 ×16, both in one direction. How many times as fast is NVLink?

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
    caption="In one direction, NVLink is several times as fast as the PCIe of its time or any network card.",
)

# %% [markdown]
# **Why.** Many guides compare 900 with 64, but one number counts both directions and the other counts one. A
# factor of 7 is left. NVLink is also about ten times as fast as the links between nodes, and this whole lab
# is about that gap.
#
# NVLink carries loads, stores and atomics between GPUs. Hardware keeps caches coherent only between a GPU and
# a CPU that has NVLink too, such as POWER9, or Grace with **NVLink-C2C**. A **bridge** connects two PCIe
# cards by NVLink. In a server with eight GPUs, **NVSwitch** chips let each GPU use all of its links to reach
# any other GPU.
#
# A server with two CPUs has two memories (**NUMA**). A copy from the far CPU's memory crosses the link
# between the CPUs. So a rank is pinned to the cores, the memory and the network card that belong to the CPU
# of its GPU. `nvidia-smi topo -m` shows which these are.

# %%
memories = sorted(Path("/sys/devices/system/node").glob("node[0-9]*/cpulist"))
for memory in memories:
    print(f"{memory.parent.name}: cores {memory.read_text().strip()}")
print(f"memories that Linux shows on this machine: {len(memories)}")

# %% [markdown]
# ## 2 · What a network lets through
#
# A network is a graph of hosts, switches and links, where each link has a direction and a rate. A cable that
# works both ways counts as two links. The most that A can send to B on all paths together is called the
# **maximum flow**. A **cut** divides the nodes into a part with A and a part with B, and its rate is the sum
# of the links that lead from A's part to B's. The maximum flow equals the rate of the narrowest cut (L. Ford
# and D. Fulkerson, 1956). So a flow proves that a rate is possible, and a cut proves that more is not.
#
# ![Hosts, leaf switches and spine switches. If a leaf has as many links up as down, any half of the hosts can send to the other half at full speed. With half of the links up the network is oversubscribed 2 : 1.](drawings/fat_tree.svg)
#
# To compute it, find a path on which every link has some rate left, send as much as its narrowest link allows, and
# repeat. This alone may end too early, because a path over a link a → b can block two better paths, of which one
# needs only b and the other only a. One addition makes the result exact: a later path may **send back**, from b to a,
# what was sent over the link before.
#
# **Do.** Write `max_flow(links, source, sink)`. About 22 lines.
#
# - Input: `links`, a list of `[from, to, rate]`. Nodes are strings, and rates are whole numbers. Each link
#   works one way, and several links may lead from one node to the same other node.
# - Output: the maximum flow, a whole number. It is 0 if there is no path.


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
# Now look at whole clusters. Divide the hosts into two halves, and let one half send to the other. How much
# flows depends on the halves. The smallest flow over all halves is the **bisection bandwidth**. A network has
# **full** bisection if this equals half of the hosts times the rate at which one host sends. Then no half
# ever waits for the network. Below, a host counts with 50 GB/s, the rate of one link. (Hosts in a ring or
# torus have more links, but pass on what others send. Hosts with rails have NVLink, too.)
#
# These are the usual shapes:
#
# - **ring** and **torus**: hosts are linked to their neighbours, and there are no switches.
# - **leaf and spine**: leaf switches have hosts below, and each is linked to all spine switches above. A leaf
#   with more links down than up is **oversubscribed**.
# - **fat tree**: three levels of equal switches. With k ports each, they connect k³/4 hosts at full
#   bisection.
# - **dragonfly**: groups of routers, with a few long links between any two groups.
# - **rails**: GPU number i of every node is connected to the same switch, called rail i. (Section 4 shows
#   why.)
#
# **Predict.** Eight hosts form a ring. How many links does the narrowest cut into two halves cross?

# %%
gpulab.predict("cluster.ring_cut", ...)


# %%
def bisection(topology):
    """The smallest flow between two halves of the hosts, and the half that sends it."""

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
    f"Hosts with crosses exchange at most {flow} GB/s with the others, half of what their four links carry.",
    half,
)

# %% jupyter={"source_hidden": true}
tree = topologies.fat_tree(4, RATE)
gpulab.plot.network(
    tree.hosts,
    tree.links,
    f"A fat tree of {len(tree.switches)} switches with 4 ports has as many links between two levels as "
    "hosts.",
)

# %% [markdown]
# **Why.** The flow between *any* two halves is only an upper limit for the bisection, and a convenient choice can
# flatter a network. So the smallest flow counts. For large networks it is derived from the shape, because nobody can
# try all halves. Full bisection costs switches and cables: a fat tree has three cables per host, and a ring has one.
# Large clusters save at the top level, because jobs can be placed so that they seldom cross it.
#
# ## 3 · Boards, racks, clusters
#
# ![A board with eight GPUs: each GPU has links to every NVSwitch chip, so any two of them talk at full speed. A network card for each GPU leads out of the node.](drawings/switch_planes.svg)
#
# | | what it is | its rates |
# |---|---|---|
# | **HGX H100** | eight GPUs on a board with NVSwitch | All links together have 8 × 900 GB/s = 7.2 TB/s in both directions. The bisection is 4 × 450 = 1.8 TB/s each way. The 16 PFLOP/s on its sheet are FP16 with sparsity, and half of that is dense |
# | **DGX SuperPOD** (H100) | nodes of eight GPUs, with a network card for each GPU | A 256-GPU NVLink network was announced. The pods that shipped have NDR InfiniBand between nodes (NVIDIA's reference architecture) |
# | **NVL72** | 72 Blackwell GPUs in a rack on one NVLink network | 72 × 1.8 = 130 TB/s, both ways. The fast domain grew from 8 to 72 GPUs, and the same hierarchy starts above it |

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

# %% [markdown]
# ### Switch chips
#
# A switch is one chip with a total rate, which is split into ports. Its number of ports is called its **radix**.
# Broadcom makes three families for Ethernet (Broadcom, announcements of Trident 5-X12 and Tomahawk 6; J. Byrne,
# "Tomahawk 5 Switches at 51.2Tbps", TechInsights, 2022):
#
# - **Tomahawk** has the highest rate, low latency and shallow buffers, and few other features. It is built for the
#   leaves and spines of large clusters.
# - **Trident** gives up some rate for features: it handles more protocols, holds longer lists of rules, and its
#   customers can program it. A Trident 5-X12 sits at the top of a rack, below spines of Tomahawk 5. It has a small
#   neural network on the chip, which recognises congestion.
# - **Jericho** has deep buffers, for networks of service providers.
#
# **InfiniBand** is an open standard of the IBTA. NVIDIA makes most of its switches since it bought Mellanox.
#
# The radix decides how many hosts two levels can connect. A leaf with k ports has k/2 hosts below and k/2 cables up,
# and a spine has k ports, so there are at most k leaves.
#
# **Predict.** A Tomahawk 5 has 51.2 Tbit/s, and hosts have 400 Gbit/s each. How many hosts do two levels of it
# connect at full bisection?

# %%
gpulab.predict("cluster.two_levels", ...)

# %%
print("ports of one chip at       1,600  800  400  200 Gbit/s      hosts in two levels at 400 Gbit/s")
for name in ("Trident 5-X12", "Tomahawk 5", "Tomahawk 6"):
    chip = hardware.switch(name)
    gigabits = 8 * float(chip.per_direction) / 1e9
    fastest = 8 * float(chip.per_lane) / 1e9
    ports = [f"{gigabits / rate:.0f}" if rate <= fastest else "–" for rate in (1600, 800, 400, 200)]
    print(
        f"{name:14}{gigabits / 1e3:6.1f} Tbit/s {ports[0]:>8}{ports[1]:>5}{ports[2]:>5}{ports[3]:>5}"
        f"{int(gigabits / 400) ** 2 // 2:30,}"
    )

# %% [markdown]
# **Do.** Write `switches(hosts, ports)`, which counts the switches of the smallest network with full bisection.
# About 12 lines; `math.ceil` is imported.
#
# - Input: the number of hosts, and the even number of ports of each switch. A host has one port.
# - One level: a single switch, if it has enough ports.
# - Two levels: a leaf has ports/2 hosts, the last leaf perhaps fewer, and always ports/2 cables up. Each leaf has
#   the same number of cables to every spine, so the number of spines divides ports/2. Take the fewest spines
#   with enough ports.
# - Three levels: a **pod** has ports/2 leaves and ports/2 upper switches, hence (ports/2)² hosts, and is always
#   complete. There are ports/2 sets of spines. Upper switch j of every pod has ports/2 cables to set j, and all
#   pods share the spines of a set by the rule for leaves.
# - Output: `[levels, switches]` with the fewest levels, or `None` if three levels are not enough.


# %% nbgrader={"grade": false, "grade_id": "switches", "locked": false, "schema_version": 3, "solution": true, "task": false}
def switches(hosts, ports):
    ### BEGIN SOLUTION
    half = ports // 2

    def spines(units):
        """The fewest that divide the cables of a leaf or pod, and have ports for all of them."""
        return next(s for s in range(1, half + 1) if half % s == 0 and 2 * s >= units)

    if hosts <= ports:
        return [1, 1]
    leaves, pods = ceil(hosts / half), ceil(hosts / half**2)
    if leaves <= ports:
        return [2, leaves + spines(leaves)]
    if pods <= ports:
        return [3, pods * ports + half * spines(pods)]
    return None
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "switches-check", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
gpulab.check("cluster.switches", switches)

# %% jupyter={"source_hidden": true}
gpulab.need(switches)
radix = {"Trident 5-X12": 40, "Tomahawk 5": 128, "Tomahawk 6": 256}  # ports of 400 Gbit/s, from the table
gpulab.plot.lines(
    {
        f"{name}, {ports} ports": [(n, switches(n, ports)[1]) for n in range(32, 16_001, 32)]
        for name, ports in radix.items()
    },
    "hosts of 400 Gbit/s",
    "switch chips, full bisection",
    "Fewer ports mean more chips, and a jump where a level is added: at 800 hosts with 40 ports, at 8,192 with "
    "128.",
    step=True,
    log_y=True,
)

# %% [markdown]
# **Why.** The reach of two levels grows with the square of the radix, and a third level adds a cable and two hops.
# DeepSeek avoids it in another way. The eight NICs of a node belong to eight separate networks, so that each has
# an eighth of the ports (C. Zhao et al., *Insights into DeepSeek-V3*, 2025).
#
# ## 4 · All-reduce in levels
#
# Take N nodes of G GPUs, with fast links inside a node and one network card (**NIC**) per GPU to the outside.
# A ring over all p = N·G GPUs ignores this difference. Each of its steps waits for the slowest message, and
# most of the array leaves every node through its last GPU's NIC.
#
# ![All-reduce in levels: within each node every GPU sums a part, the parts are summed between nodes, and each node shares the result among its GPUs. Only the middle step crosses the network.](drawings/in_levels.svg)
#
# In **levels**, all NICs share the work. First comes a reduce-scatter inside each node, so that each GPU
# holds its node's sum of one part. Then GPUs of the same number all-reduce their parts between nodes, and an
# all-gather inside each node completes the result. If the network has rails, GPUs of the same number are on
# the same switch. Their messages take one hop, without a spine.
#
# A plan is a list of steps, and a step is a list of messages `[from, to, chunks, how]`. Ranks are numbered node by
# node, so rank r is GPU r mod G of node r // G. The array has p chunks, 0 … p − 1, and each rank starts with its own
# numbers in all of them. `how` says what the receiver does: `"add"` or `"copy"`. In a step, a rank sends at most one
# message and receives at most one. All messages carry what the sender held before the step. The next cell prints the
# ring over all for three ranks:


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
# **Do.** Write `all_reduce(nodes, per_node)`, which returns a plan in levels. About 14 lines.
#
# - Input: two whole numbers of at least 1.
# - Output: a plan as above. In the end, all ranks have the sum over all ranks in all p chunks. No rank's
#   numbers may be added twice. With a single rank, the plan is empty.
# - **Budget:** the busiest NIC sends 2(N − 1) chunks, the least possible, and there are at most 2(G − 1) +
#   2(N − 1) steps.


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
# **See.** The next cells show how much each plan sends through a NIC, and how long it takes by the α–β model.
# A message takes its latency plus bytes ÷ rate, and a step lasts as long as its slowest message. The rates
# are those of NVLink 4 and NDR. The latencies of 2 and 5 µs are inputs of the model. The second figure also
# shows lab 15's tree, which sends whole arrays up to one rank and down again, as 2 log₂ p messages one after
# the other.

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
    "With 4 nodes of 8 GPUs, a NIC sends a tenth of the chunks in levels, in a third of the steps.",
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
    "The levels beat a single ring at every size. For the smallest arrays a tree, with few messages, is "
    "faster.",
    log_x=True,
    log_y=True,
)

# %% [markdown]
# **Why.** Whatever the plan, a node must contribute its sum of the array and receive the other nodes' sums, so at
# least 2(N − 1)/N of the array must leave it. The ring over all sends little more than that, 62 chunks against 48 per
# node here. But it sends all of them through *one* NIC, whereas the levels spread them over all eight, with 6 chunks
# each. 62 against 6 is a factor of ten. NCCL (lab 15) avoids it in a different way: it runs several rings at once,
# which leave a node through different NICs. SHARP goes one step further and adds inside the switch.
#
# The same gap decides where the parallelisms of lab 17 belong. Tensor parallelism communicates in every
# layer, so it stays inside a node. Pipeline and data parallelism run between nodes.
#
# ## 5 · Congestion
#
# A switch sends each flow along one of several equal paths, which a hash of its addresses chooses (**ECMP**:
# equal-cost multi-path). In this way the packets of a flow stay in order. But training has few and huge
# flows, and hashes collide. Some links get three flows and others none, and every collective waits for the
# slowest flow.
#
# | name | what it does |
# |---|---|
# | **RDMA** | a NIC writes into another machine's memory without its CPU |
# | **GPUDirect RDMA** | the same, directly into GPU memory |
# | InfiniBand's credits | a sender sends only what the receiver has room for |
# | **RoCE v2** | carries RDMA over Ethernet, which may drop packets |
# | **PFC** (priority flow control) | pauses the neighbour before a buffer overflows |
# | **ECN** | marks packets so that senders slow down |
# | data-centre bridging | combines PFC, ECN and bandwidth shares per class |
#
# A pause by PFC stops all flows of its class behind the full port, even those to idle ports.
#
# **Predict.** Twelve leaves have 8 flows each, and each flow takes one of 8 spines at random. How many flows
# does the busiest uplink have on average?

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
    """Up to `degree` flows from each leaf, and up to `degree` to each leaf, in random order."""
    pairs = [(a, int(b)) for _ in range(degree) for a, b in enumerate(numbers.permutation(leaves)) if a != b]
    return [list(pairs[i]) for i in numbers.permutation(len(pairs))]


uplinks = [
    max(Counter((leaf, int(s)) for leaf in range(12) for s in numbers.integers(0, 8, 8)).values())
    for _ in range(2000)
]
gpulab.predict("cluster.hash", measured=float(np.mean(uplinks)))

# %% [markdown]
# **Do.** Play the controller that knows all flows: write `spread(flows, spines)`. About 25 lines.
#
# - Input: `flows`, a list of pairs `[from leaf, to leaf]` (whole numbers), perhaps empty, and `spines`, at
#   least 1.
# - Output: a list with a spine number from 0 for each flow, in the same order.
# - A flow uses the link from its leaf up to the spine, and the link from the spine down to the other leaf.
#   There is one link up and one down between each leaf and each spine.
# - **Budget:** the busiest link carries as few flows as possible. If at most d flows start or end at any leaf
#   and there are s spines, that is ⌈d/s⌉. Taking the emptiest spine for one flow after the other does not
#   reach it.


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
# **See.** The figure has the same kind of traffic, 8 flows per leaf, with more and more spines. The busiest
# link determines the time of a step.

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
    "With 8 spines the bisection is full, but chance puts about four flows on one link. A plan puts one on "
    "each.",
)

# %% [markdown]
# **Why.** Full bisection says that a good choice *exists* for every traffic with at most d flows per leaf (a
# consequence of D. König's theorem of 1916 about colouring). Real networks come close by other means: they
# spray packets over all paths, move flows away from full links (adaptive routing), split a collective into
# more flows, and keep traffic on its rail. Spare links and cards are planned in, because the flows of a
# broken link must go elsewhere.
#
# ## 6 · How many GPUs?
#
# **To serve** a model, its weights and its **KV cache** must fit. The cache holds the keys and values of all tokens
# of all users, for the tokens to come (lab 19 builds one). Per token the cache has 2 × layers × KV heads × head_dim
# numbers. A **KV head** is a head of keys and values that several heads of queries may share. Weights may be
# quantised, for example to 4.25 bits each in MXFP4, scales included. Tensor parallelism over g GPUs divides the
# weights evenly, but it divides the cache by whole heads. With more GPUs than KV heads, several GPUs hold copies of a
# head.
#
# ![What a card holds when it serves: the weights once, and a cache for every user. What is left after the weights, divided by the cache of a user, is the number of users.](drawings/memory_of_serving.svg)
#
# **Do.** Write `serve(model, memory, users, context)`. About 10 lines.
#
# - Output: `[bytes of all weights, bytes of the cache without copies, GPUs]`. GPUs is the first g of 1, 2, 4,
#   8, 16 that divides `heads`, that divides `kv_heads` or is a multiple of it, and that leaves each GPU
#   enough room for its share. If there is none, it is None.
#
# | input | meaning |
# |---|---|
# | `model["parameters"]`, `model["weight_bits"]` | how many weights, and the bits of each |
# | `model["layers"]`, `["heads"]`, `["kv_heads"]`, `["head_dim"]` | as above; `heads` are those of queries |
# | `model["cache_bytes"]` | the bytes of each number in the cache |
# | `memory` | the bytes of a GPU, of which 90 % may be used |
# | `users`, `context` | how many users there are, and the tokens of each |


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
# **See.** The table shows how many GPUs of each kind a model needs, for 8 users with 4,096 tokens each and an
# FP16 cache. The shapes are from the models' published configurations (references 8 and 9).

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
# **Why.** Llama 2 7B and Llama 3 8B have similar weights, but their caches differ by a factor of four: 32 KV
# heads against 8. Quantising the weights does not change the cache.
#
# **To train**, count bytes and operations separately. The state takes 16 bytes per parameter with Adam in
# mixed precision (lab 16), divided over all GPUs if it is sharded. The work is 6 operations per active
# parameter and token, 2 for forward and 4 for backward (J. Kaplan et al., 2020). The share of the peak that
# becomes such operations is called **MFU**, model FLOP/s utilisation.
#
# **Predict.** GPT-3 has 175 billion parameters, and an H100 has 80 GB. How many H100s hold its training
# state, if 20 % of their memory is kept for activations?

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
# So memory asks for 44 GPUs. But to do the 3.14 · 10²³ operations of its training (reference 7) in a month,
# several hundred are needed. Time decides.
#
# ![How many GPUs? Two questions give two numbers, and the larger one counts: how many until everything fits, and how many until it is done in time.](drawings/how_many.svg)
#
# **Do.** Write `train(model, gpu, days, lost)`. About 7 lines.
#
# | input | meaning |
# |---|---|
# | `model["parameters"]`, `model["bytes_per_parameter"]` | the state that must fit |
# | `model["active"]`, `model["tokens"]` | parameters that compute for a token (fewer than all in a mixture of experts), and tokens |
# | `gpu["memory"]` | bytes, of which 80 % hold state |
# | `gpu["peak"]`, `gpu["utilisation"]` | FLOP/s, and the share of it that becomes work |
# | `gpu["per_node"]` | GPUs in a node |
# | `days`, `lost` | the time available, and the share of it that failures and saving take |
#
# - Output: `[GPUs, "memory" or "time", days]`. GPUs is the smallest number of whole nodes that satisfies
#   both, as a number of GPUs. The word says which of the two needed more GPUs before rounding (there is never
#   a tie). The last number is how many days these GPUs take.


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
# **See.** Now compare the formula with runs that were published. Parameters, tokens and GPU hours give the
# share of the dense BF16 peak that became useful work. Numbers in brackets are references. The GPU hours are
# stated by the makers, or are their GPUs times their days.

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
    caption="These published runs turned between a third and less than half of the peak into useful work.",
)

# %% [markdown]
# **Why.** Runs that were planned and finished got 32 to 43 %. The first two recomputed activations, which is which is
# a third more work that the formula does not count: reference 4 reports 140 TFLOP/s per GPU, and 105 · 8/6 =
# 140. Meta reports 38 to 43 % while Llama 3 was running. Over all the hours of its model card the share is lower.
#      DeepSeek trained in FP8 on H800s, which compute as fast as H100s, so it had up to twice the BF16 peak. A plan that assumes the peak underestimates the time by a factor of two to three.
#
# ## 7 · What companies have said
#
# These are claims with a date and a source. Anything unpublished is left out.
#
# ![GPUs of clusters that companies have described: 16,000 in Meta's RSC, 12,288 in ByteDance's, 24,000 in Meta's cluster for Llama 3, of which a run used up to 16,384.](drawings/claimed_sizes.svg)
#
# | who | when | what |
# |---|---|---|
# | **OpenAI** | 2020 | GPT-3 was trained on V100s in "a high-bandwidth cluster" of Microsoft (7) |
# | | 2021 | Kubernetes over 7,500 nodes, with full bisection ("Scaling Kubernetes to 7,500 nodes"). Nothing is published about GPT-4's cluster, and plans of several sites are press reports |
# | **Meta** | 2022 | RSC with 6,080 A100s at first, and 16,000 when finished (blog) |
# | | 2024 | Llama 3 on up to 16,384 H100s of a RoCE cluster of 24,000. Pods of 3,072 GPUs have full bisection, with 1 : 7 oversubscription above (9) |
# | **Google** | 2023 | Gemini Ultra on TPUv4 pods in several data centres, with synchronous training steps (12) |
# | **ByteDance** | 2024 | 12,288 GPUs at 55 % MFU on a 175B model; another run of weeks on over 10,000 GPUs was restarted over 100 times (13) |
# | **Anthropic** | October 2025 | announces the use of up to a million TPUs ("Expanding our use of Google Cloud TPUs and Services"), without a description of the network |
#
# **Storage** is part of a cluster. A token id takes 2 bytes, or 4 if the vocabulary has more than 65,536
# entries. So 15 trillion tokens are 60 TB, but they are read only once. Checkpoints are harder, because all
# ranks write at once while the GPUs wait. Llama 3's storage, 240 PB on 7,500 servers, sustains 2 TB/s and
# peaks at 7 TB/s (9).

# %%
tokens, bytes_each = 15.6e12, 4
reading = tokens * bytes_each / (54 * 86_400)
writing = 16 * 405e9 / 2e12
print(f"corpus {tokens * bytes_each / 1e12:.0f} TB, read at {reading / 1e6:.0f} MB/s over 54 days")
print(f"one checkpoint at 16 B per parameter: {16 * 405e9 / 1e12:.1f} TB, {writing:.1f} s at 2 TB/s")

# %% [markdown]
# ## Beyond · The fastest plan for 100 kB
#
# This task is open-ended and ungraded. For small arrays, latency matters most. Write a plan for 4 nodes of 8
# GPUs that is fast at 100 kB by the model of section 4.
#
# | plan | µs, modelled |
# |---|---|
# | ring over all | printed below |
# | in levels | printed below |
# | ours | 21 |
# | bound: 3 steps inside and 2 between, without any bytes | 16 |

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
# 450 GB/s over 50 GB/s, which is 9.
# </details>
#
# <details><summary>2. You found halves of a cluster that exchange 800 GB/s. What do you know of its bisection?</summary>
#
# It is at most 800 GB/s, because other halves may exchange less.
# </details>
#
# <details><summary>3. 16 nodes of 8 GPUs, an array of 1 GB. What does the busiest NIC send in levels?</summary>
#
# 2 · 15/16 of 1 GB, divided over 8 NICs, is 234 MB.
# </details>
#
# <details><summary>4. A network has full bisection, and a collective takes three times as long as planned. Why?</summary>
#
# The hash put three flows on one link. Full bisection only says that another choice would have avoided it.
# </details>
#
# <details><summary>5. Why is "parameters × 2 bytes ÷ memory" too few GPUs to serve a model?</summary>
#
# The cache of all users is missing, some memory must stay free, and the number must be whole and divide the
# heads.
# </details>

# %%
gpulab.recap("18")

# %% [markdown]
# ### Cheat sheet
#
# | question | rule |
# |---|---|
# | a link's rate | in bytes and one direction: number of links × rate of a link |
# | flow between two places | the narrowest cut |
# | bisection | the smallest flow over *all* halves |
# | fat tree of switches with k ports | k³/4 hosts, 5k²/4 switches, full bisection |
# | all-reduce in levels, per NIC | 2(N − 1)/N · size ÷ G |
# | flows on the busiest link, at best | ⌈flows per leaf ÷ spines⌉ |
# | cache | 2 × layers × KV heads × head_dim × bytes × tokens × users |
# | training state | 16 B per parameter |
# | training work | 6 × active parameters × tokens |
#
# ### Claims you will meet, and what is right
#
# - *NVLink is 14 times PCIe 5.0: 900 against 64 GB/s.* One number counts both directions. It is 7 times.
# - *NVLink 4 has 100 GB/s per link.* A link has 25 GB/s each way, 50 both ways, and there are 18 links.
# - *NVLink keeps the caches of connected GPUs coherent.* Only between a GPU and a CPU with NVLink.
# - *Tomahawk switches have deep buffers.* They have shallow ones. Jericho has deep ones.
# - *Rail-optimised means separate networks for separate kinds of traffic.* It means that GPU i of every node
#   is on switch i.
# - *A SuperPOD is 256 GPUs on NVLink.* It was announced like that, but shipped with InfiniBand between nodes of 8.
# - *InfiniBand is NVIDIA's.* It is an open standard, and NVIDIA bought a maker.
# - *Training memory: 6 × parameters × bytes.* The parts that are added up here leave out the weights. It is 16 B per
#   parameter.
#
# ### References
#
# 1. L. Ford, D. Fulkerson, "Maximal Flow through a Network", 1956.
# 2. M. Al-Fares, A. Loukissas, A. Vahdat, "A Scalable, Commodity Data Center Network Architecture", SIGCOMM,
#    2008.
# 3. J. Kim, W. Dally, S. Scott, D. Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA, 2008.
# 4. D. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM",
#    2021. https://arxiv.org/abs/2104.04473
# 5. J. Kaplan et al., "Scaling Laws for Neural Language Models", 2020. https://arxiv.org/abs/2001.08361
# 6. NVIDIA, "DGX SuperPOD Reference Architecture: DGX H100", 2023.
# 7. T. Brown et al., "Language Models are Few-Shot Learners", 2020. https://arxiv.org/abs/2005.14165
# 8. H. Touvron et al., "Llama 2", 2023. https://arxiv.org/abs/2307.09288
# 9. A. Grattafiori et al., "The Llama 3 Herd of Models", 2024. https://arxiv.org/abs/2407.21783; GPU hours
#    from the model card of Llama 3.1.
# 10. A. S. Luccioni, S. Viguier, A.-L. Ligozat, "Estimating the Carbon Footprint of BLOOM", 2022.
#     https://arxiv.org/abs/2211.02001
# 11. DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024. https://arxiv.org/abs/2412.19437
# 12. Gemini Team, "Gemini: A Family of Highly Capable Multimodal Models", 2023.
#     https://arxiv.org/abs/2312.11805
# 13. Z. Jiang et al., "MegaScale: Scaling Large Language Model Training to More Than 10,000 GPUs", 2024.
#     https://arxiv.org/abs/2402.15627
