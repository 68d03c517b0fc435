# exercise: shard.memory  fails: right  says: 7.5
def memory(parameters, ranks, stage):
    share = parameters // ranks
    return [16 * parameters, 4 * share + 12 * parameters, 2 * parameters + 14 * share, 16 * share][stage]
