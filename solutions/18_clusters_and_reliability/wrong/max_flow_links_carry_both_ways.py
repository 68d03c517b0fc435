# exercise: cluster.max_flow  fails: right  says: first wrong: a chain
from collections import deque


def max_flow(links, source, sink):
    left = {source: {}, sink: {}}
    for a, b, rate in links:
        for x, y in ((a, b), (b, a)):
            left.setdefault(x, {})[y] = left.get(x, {}).get(y, 0) + rate
    total = 0
    while True:
        came, queue = {source: None}, deque([source])
        while queue:
            here = queue.popleft()
            for node, rest in left[here].items():
                if rest and node not in came:
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
