# exercise: shard.memory  fails: right  says: memory(1000, 1, 0)
def memory(parameters, ranks, stage):
    share = parameters // ranks
    states = 8 * (share if stage >= 1 else parameters)
    gradients = 2 * (share if stage >= 2 else parameters)
    weights = 2 * (share if stage >= 3 else parameters)
    return states + gradients + weights
