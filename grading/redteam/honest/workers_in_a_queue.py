# how: a list of the times at which each worker is free, and a loop in place of sum
# exercise: pytorch.epoch
def epoch(loads, step, workers, prefetch):
    if not workers:
        clock = 0
        for load in loads:
            clock += load + step
        return clock
    free = [0] * workers
    taken = []
    clock = 0
    for i, load in enumerate(loads):
        worker = i % workers
        begin = free[worker]
        if i >= workers * prefetch:
            begin = max(begin, taken[i - workers * prefetch])
        free[worker] = begin + load
        clock = max(clock, free[worker])
        taken.append(clock)
        clock += step
    return clock
