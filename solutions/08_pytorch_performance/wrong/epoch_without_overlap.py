# exercise: pytorch.epoch  fails: right  says: even
def epoch(loads, step, workers, prefetch):
    return sum(loads) // max(workers, 1) + step * len(loads)
