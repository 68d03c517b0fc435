# exercise: cluster.autoscale  fails: cost  says: replica-minutes


def autoscale(load, capacity, delay, ready):
    return [-(-max(load) // capacity)] * len(load)
