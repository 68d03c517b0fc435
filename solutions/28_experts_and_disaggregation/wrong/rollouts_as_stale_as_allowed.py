# exercise: fleet.rollouts  fails: above the least  says: the worst is a sync longer


def rollouts(batches, times, stale):
    return [max(0, batch - stale) for batch in range(batches)]
