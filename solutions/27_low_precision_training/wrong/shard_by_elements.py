# exercise: scaling.shard  fails: busiest rank  says: elements
def shard(shapes, ranks):
    def cost(i):
        return shapes[i][0] * shapes[i][1]

    busy, chosen = [0] * ranks, [0] * len(shapes)
    for i in sorted(range(len(shapes)), key=cost, reverse=True):
        chosen[i] = busy.index(min(busy))
        busy[chosen[i]] += cost(i)
    return chosen
