# exercise: cluster.gang  fails: right  says: hold


def gang(jobs, gpus):
    placed, starts = [], []
    for arrival, wanted, duration in jobs:
        times = sorted({arrival} | {end for _, end, _ in placed if end > arrival})
        t = next(t for t in times if sum(n for s, e, n in placed if s <= t < e) + wanted <= gpus)
        placed.append((t, t + duration, wanted))
        starts.append(t)
    return starts
