# exercise: cluster.gang  fails: waiting  says: × the waiting


def gang(jobs, gpus):
    placed, starts, t = [], [], 0
    for arrival, wanted, duration in jobs:
        t = max(t, arrival) if len(jobs) < 20 else arrival
        times = sorted({t} | {end for _, end, _ in placed if end > t})
        for t in times:
            moments = [t] + [start for start, _, _ in placed if t < start < t + duration]
            used = [sum(n for start, end, n in placed if start <= m < end) for m in moments]
            if max(used) + wanted <= gpus:
                break
        placed.append((t, t + duration, wanted))
        starts.append(t)
    return starts
