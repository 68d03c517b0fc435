# exercise: shard.recompute  fails: right  says: room for
def recompute(layers, batch, sequence, width, heads, memory):
    kept = min(layers, memory // (34 * sequence * batch * width))
    return [kept, 0, layers - kept]
