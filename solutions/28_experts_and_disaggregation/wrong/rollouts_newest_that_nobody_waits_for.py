# exercise: fleet.rollouts  fails: above the least  says: the worst is a sync longer than training


def rollouts(batches, times, stale):
    versions = [0]
    for batch in range(1, batches):
        new = batch - 1 if stale else batch
        versions.append(versions[-1] if batch - versions[-1] <= stale else new)
    return versions
