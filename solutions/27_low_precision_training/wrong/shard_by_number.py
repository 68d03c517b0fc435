# exercise: scaling.shard  fails: busiest rank  says: elements
def shard(shapes, ranks):
    return [i % ranks for i in range(len(shapes))]
