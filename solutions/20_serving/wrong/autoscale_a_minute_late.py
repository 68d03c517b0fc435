# exercise: cluster.autoscale  fails: service  says: minutes with too few


def autoscale(load, capacity, delay, ready):
    return [-(-max(load[t : t + max(1, delay)]) // capacity) for t in range(len(load))]
