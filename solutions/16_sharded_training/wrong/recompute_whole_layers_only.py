# exercise: shard.recompute  fails: recomputed  says: 49
def recompute(layers, batch, sequence, width, heads, memory):
    unit = sequence * batch * width
    large, small = unit * (34 + 5 * heads * sequence / width), 2 * unit
    kept = min(layers, int((memory - layers * small) / (large - small)))
    return [kept, 0, layers - kept]
