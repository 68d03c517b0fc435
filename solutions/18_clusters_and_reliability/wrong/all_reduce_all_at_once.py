# exercise: cluster.all_reduce  fails: right  says: only one per step


def all_reduce(nodes, per_node):
    p = nodes * per_node
    return [[[r, s, list(range(p)), "add"] for r in range(p) for s in range(p) if s != r]]
