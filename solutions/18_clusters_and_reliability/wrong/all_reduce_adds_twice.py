# exercise: cluster.all_reduce  fails: right  says: would count twice


def all_reduce(nodes, per_node):
    p = nodes * per_node
    return [[[r, (r + 1) % p, list(range(p)), "add"] for r in range(p)] for _ in range(p - 1)]
