# exercise: fleet.rollouts  fails: above the least  says: does every batch need a sync


def rollouts(batches, times, stale):
    versions = [0]
    for batch in range(1, batches):
        versions.append(versions[-1] if batch - versions[-1] <= stale else batch)
    return versions
