# exercise: pytorch.epoch  fails: right  says: should be
def epoch(loads, step, workers, prefetch):
    if workers == 0:
        return sum(loads) + step * len(loads)
    return max(sum(loads) // workers, step * len(loads))
