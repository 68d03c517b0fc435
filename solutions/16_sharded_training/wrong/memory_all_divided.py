# exercise: shard.memory  fails: right  says: memory(7500000000, 64, 1)
def memory(parameters, ranks, stage):
    return 16 * parameters // (ranks if stage else 1)
