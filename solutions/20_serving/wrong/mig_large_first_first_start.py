# exercise: cluster.mig  fails: GPUs  says: GPUs more than needed
from gpulab import hardware


def mig(requests):
    def size(i):
        profile = hardware.MIG_PROFILES[requests[i]]
        return -int(profile.memory), -int(profile.compute)

    free, plan = [], [None] * len(requests)
    for i in sorted(range(len(requests)), key=size):
        profile = hardware.MIG_PROFILES[requests[i]]
        free.append(set(range(8)))
        for gpu, start in ((g, s) for g in range(len(free)) for s in profile.starts):
            taken = set(range(start, start + int(profile.memory)))
            if taken <= free[gpu]:
                free[gpu] -= taken
                plan[i] = [gpu, start]
                break
        if len(free[-1]) == 8:
            free.pop()
    return plan
