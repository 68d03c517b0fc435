# how: one walk over the tensors, cut wherever a rank's share is full
# exercise: shard.split
def split(sizes, ranks):
    share = (sum(sizes) + ranks - 1) // ranks
    result = [[] for _ in range(ranks)]
    rank, room = 0, share
    for tensor, size in enumerate(sizes):
        done = 0
        while done < size:
            if room == 0:
                rank, room = rank + 1, share
            take = min(room, size - done)
            result[rank].append([tensor, done, done + take])
            done += take
            room -= take
    return result
