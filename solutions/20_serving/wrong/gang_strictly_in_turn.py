# exercise: cluster.gang  fails: waiting  says: × the waiting


def gang(jobs, gpus):
    placed, starts, t = [], [], 0
    for arrival, wanted, duration in jobs:
        t = max(t, arrival)
        while sum(n for end, n in placed if end > t) + wanted > gpus:
            t = min(end for end, _ in placed if end > t)
        placed.append((t + duration, wanted))
        starts.append(t)
    return starts
