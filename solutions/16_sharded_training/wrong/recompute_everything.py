# exercise: shard.recompute  fails: recomputed  says: 68.9
def recompute(layers, batch, sequence, width, heads, memory):
    return [0, 0, layers]
