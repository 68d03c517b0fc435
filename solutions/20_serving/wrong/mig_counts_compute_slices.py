# exercise: cluster.mig  fails: right  says: needs it too
from gpulab import hardware


def mig(requests):
    used, plan = [], []
    for name in requests:
        compute, starts = int(name[0]), hardware.MIG_PROFILES[name].starts
        gpu = next((g for g, u in enumerate(used) if u + compute <= 7), len(used))
        used += [0] * (gpu == len(used))
        plan.append([gpu, min(starts, key=lambda s: abs(s - used[gpu]))])
        used[gpu] += compute
    return plan
