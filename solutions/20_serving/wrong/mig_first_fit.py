# exercise: cluster.mig  fails: GPUs  says: GPUs more than needed
from gpulab import hardware


def mig(requests):
    free, plan = [], []
    for name in requests:
        profile = hardware.MIG_PROFILES[name]
        free.append(set(range(8)))
        for gpu, start in ((g, s) for g in range(len(free)) for s in profile.starts):
            taken = set(range(start, start + int(profile.memory)))
            if taken <= free[gpu]:
                free[gpu] -= taken
                plan.append([gpu, start])
                break
        if len(free[-1]) == 8:
            free.pop()
    return plan
