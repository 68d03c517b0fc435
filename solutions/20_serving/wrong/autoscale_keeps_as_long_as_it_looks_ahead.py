# exercise: cluster.autoscale  fails: cost  says: replica-minutes


def autoscale(load, capacity, delay, ready):
    return [-(-max(load[max(0, t - delay) : t + delay + 1]) // capacity) for t in range(len(load))]
