# exercise: scaling.shard  fails: busiest rank  says: elements
def shard(shapes, ranks):
    def cost(i):
        m, n = sorted(shapes[i])
        return 4 * m * m * n + 2 * m**3

    busy, chosen = [0] * ranks, [0] * len(shapes)
    for i in range(len(shapes)):
        chosen[i] = busy.index(min(busy))
        busy[chosen[i]] += cost(i)
    return chosen
