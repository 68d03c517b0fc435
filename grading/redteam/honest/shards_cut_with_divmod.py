# how: each piece found with divmod, from element to element across the old shards
# exercise: cluster.reshard
def reshard(elements, old, new):
    held = -(-elements // old)
    wanted = -(-elements // new)
    plan = []
    for rank in range(new):
        at, end = min(rank * wanted, elements), min((rank + 1) * wanted, elements)
        pieces = []
        while at < end:
            shard, start = divmod(at, held)
            stop = min(held, start + end - at)
            pieces.append((shard, start, stop))
            at += stop - start
        plan.append(pieces)
    return plan
