# exercise: cluster.all_reduce  fails: NIC traffic  says: 24


def all_reduce(nodes, per_node):
    every = list(range(nodes * per_node))
    plan = []
    for g in reversed(range(1, per_node)):
        plan.append([[n * per_node + g, n * per_node + g - 1, every, "add"] for n in range(nodes)])
    groups = [every[n * per_node : (n + 1) * per_node] for n in range(nodes)]
    for how, first in (("add", 0), ("copy", 1)):
        for t in range(nodes - 1):
            plan.append(
                [
                    [n * per_node, (n + 1) % nodes * per_node, groups[(n + first - t) % nodes], how]
                    for n in range(nodes)
                ]
            )
    for g in range(1, per_node):
        plan.append([[n * per_node + g - 1, n * per_node + g, every, "copy"] for n in range(nodes)])
    return plan
