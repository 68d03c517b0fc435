# how: a recursive depth-first search for augmenting paths
# exercise: cluster.max_flow
from collections import defaultdict


def max_flow(links, source, sink):
    rest = defaultdict(lambda: defaultdict(int))
    for a, b, rate in links:
        rest[a][b] += rate

    def push(node, amount, seen):
        if node == sink:
            return amount
        seen.add(node)
        for neighbour in list(rest[node]):
            if neighbour not in seen and rest[node][neighbour] > 0:
                sent = push(neighbour, min(amount, rest[node][neighbour]), seen)
                if sent:
                    rest[node][neighbour] -= sent
                    rest[neighbour][node] += sent
                    return sent
        return 0

    total = 0
    while sent := push(source, float("inf"), set()):
        total += sent
    return total
