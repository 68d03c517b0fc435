# exercise: shard.split  fails: right  says: no rank has element
def split(sizes, ranks):
    share = sum(sizes) // ranks
    pieces, first = [[] for _ in range(ranks)], 0
    for tensor, size in enumerate(sizes):
        for rank in range(ranks):
            start, stop = max(first, rank * share), min(first + size, (rank + 1) * share)
            if start < stop:
                pieces[rank].append([tensor, start - first, stop - first])
        first += size
    return pieces
