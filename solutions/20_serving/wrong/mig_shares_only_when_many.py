# exercise: cluster.mig  fails: GPUs  says: Do instances share GPUs?
from gpulab import hardware


def mig(requests):
    if len(requests) <= 20:
        return [[i, 0] for i in range(len(requests))]
    order = ["7g.80gb", "4g.40gb", "3g.40gb", "2g.20gb", "1g.20gb", "1g.10gb"]
    gpus = 0
    while True:
        free, plan = [set(range(8)) for _ in range(gpus)], [None] * len(requests)
        for i in sorted(range(len(requests)), key=lambda i: order.index(requests[i])):
            profile = hardware.MIG_PROFILES[requests[i]]
            for start, gpu in ((s, g) for s in reversed(profile.starts) for g in range(gpus)):
                taken = set(range(start, start + int(profile.memory)))
                if taken <= free[gpu]:
                    free[gpu] -= taken
                    plan[i] = [gpu, start]
                    break
        if None not in plan:
            return plan
        gpus += 1
