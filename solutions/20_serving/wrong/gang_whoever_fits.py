# exercise: cluster.gang  fails: right  says: if nobody had passed it


def gang(jobs, gpus):
    starts, t = [None] * len(jobs), 0
    while None in starts:
        for i, (arrival, wanted, _) in enumerate(jobs):
            used = sum(n for s, (_, n, d) in zip(starts, jobs) if s is not None and s <= t < s + d)
            if starts[i] is None and arrival <= t and used + wanted <= gpus:
                starts[i] = t
        t += 1
    return starts
