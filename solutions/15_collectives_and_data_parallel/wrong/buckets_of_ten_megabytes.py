# exercise: parallel.buckets  fails: waiting  says: when does your first bucket start
def buckets(sizes, log, latency, rate):
    ready = dict.fromkeys(sizes, 0.0) | {name: ms for ms, name in log}
    plan, filled = [[]], 0
    for name in sorted(sizes, key=lambda name: ready[name]):
        if plan[-1] and filled + sizes[name] > 10e6:
            plan.append([])
            filled = 0
        plan[-1].append(name)
        filled += sizes[name]
    return plan
