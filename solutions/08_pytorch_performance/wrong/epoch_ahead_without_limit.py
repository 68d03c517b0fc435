# exercise: pytorch.epoch  fails: right  says: one slow batch
def epoch(loads, step, workers, prefetch):
    if workers == 0:
        return sum(loads) + step * len(loads)
    loaded, done = [], 0
    for i, load in enumerate(loads):
        loaded.append((loaded[i - workers] if i >= workers else 0) + load)
        done = max(loaded[i], done) + step
    return done
