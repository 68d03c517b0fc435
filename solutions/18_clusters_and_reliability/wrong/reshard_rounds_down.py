# exercise: cluster.reshard  fails: right  says: first wrong: the same


def reshard(elements, old, new):
    plan = []
    for rank in range(new):
        start, stop = rank * elements // new, (rank + 1) * elements // new
        pieces = []
        for shard in range(old):
            first = shard * elements // old
            low, high = max(start, first), min(stop, (shard + 1) * elements // old)
            if low < high:
                pieces.append([shard, low - first, high - first])
        plan.append(pieces)
    return plan
