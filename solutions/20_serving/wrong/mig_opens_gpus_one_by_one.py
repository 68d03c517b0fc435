# exercise: cluster.mig  fails: GPUs  says: the worst is many threes and twos
from gpulab import hardware


def mig(requests):
    order = ["7g.80gb", "4g.40gb", "3g.40gb", "2g.20gb", "1g.20gb", "1g.10gb"]
    free, plan = [], [None] * len(requests)

    def room(profile):
        for start in reversed(profile.starts):
            for gpu, slices in enumerate(free):
                if slices >= set(range(start, start + int(profile.memory))):
                    return gpu, start
        free.append(set(range(8)))
        return len(free) - 1, profile.starts[-1]

    for i in sorted(range(len(requests)), key=lambda i: order.index(requests[i])):
        profile = hardware.MIG_PROFILES[requests[i]]
        gpu, start = room(profile)
        free[gpu] -= set(range(start, start + int(profile.memory)))
        plan[i] = [gpu, start]
    return plan
