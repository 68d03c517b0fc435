# exercise: cluster.mig  fails: right  says: cannot start


def mig(requests):
    size = {"1g.10gb": 1, "1g.20gb": 2, "2g.20gb": 2, "3g.40gb": 4, "4g.40gb": 4, "7g.80gb": 8}
    used, plan = [], []
    for name in requests:
        gpu = next((g for g, u in enumerate(used) if u + size[name] <= 8), len(used))
        used += [0] * (gpu == len(used))
        plan.append([gpu, used[gpu]])
        used[gpu] += size[name]
    return plan
