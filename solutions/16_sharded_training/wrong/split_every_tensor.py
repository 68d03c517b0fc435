# exercise: shard.split  fails: pieces  says: 132
def split(sizes, ranks):
    pieces = [[] for _ in range(ranks)]
    for tensor, size in enumerate(sizes):
        for rank in range(ranks):
            start, stop = rank * size // ranks, (rank + 1) * size // ranks
            if start < stop:
                pieces[rank].append([tensor, start, stop])
    return pieces
