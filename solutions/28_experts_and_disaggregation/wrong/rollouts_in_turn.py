# exercise: fleet.rollouts  fails: above the least  says: which side waits, and for what


def rollouts(batches, times, stale):
    return list(range(batches))
