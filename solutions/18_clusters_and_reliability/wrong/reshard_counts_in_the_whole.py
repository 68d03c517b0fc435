# exercise: cluster.reshard  fails: right  says: first wrong: halved


def reshard(elements, old, new):
    held, wanted = -(-elements // old), -(-elements // new)
    plan = []
    for rank in range(new):
        start, stop = rank * wanted, min(elements, (rank + 1) * wanted)
        pieces = []
        for shard in range(old):
            low, high = max(start, shard * held), min(stop, (shard + 1) * held)
            if low < high:
                pieces.append([shard, low, high])
        plan.append(pieces)
    return plan
