# exercise: shard.split  fails: longest share  says: 262,144
def split(sizes, ranks):
    pieces, filled = [[] for _ in range(ranks)], [0] * ranks
    for tensor in sorted(range(len(sizes)), key=lambda t: -sizes[t]):
        if sizes[tensor]:
            rank = filled.index(min(filled))
            pieces[rank].append([tensor, 0, sizes[tensor]])
            filled[rank] += sizes[tensor]
    return pieces
