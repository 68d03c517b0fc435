# how: keeps the ranks in a heap
# exercise: scaling.shard
import heapq


def shard(shapes, ranks):
    cost = [4 * min(s) ** 2 * max(s) + 2 * min(s) ** 3 for s in shapes]
    heap, chosen = [(0, rank) for rank in range(ranks)], [0] * len(shapes)
    for i in sorted(range(len(shapes)), key=lambda i: -cost[i]):
        load, chosen[i] = heapq.heappop(heap)
        heapq.heappush(heap, (load + cost[i], chosen[i]))
    return chosen
