# exercise: cluster.all_reduce  fails: NIC traffic  says: NICs send


def all_reduce(nodes, per_node):
    p = nodes * per_node
    return [
        [[r, (r + 1) % p, [(r + first - t) % p], how] for r in range(p)]
        for how, first in (("add", 0), ("copy", 1))
        for t in range(p - 1)
    ]
