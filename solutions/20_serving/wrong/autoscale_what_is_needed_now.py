# exercise: cluster.autoscale  fails: service  says: minutes with too few


def autoscale(load, capacity, delay, ready):
    return [-(-now // capacity) for now in load]
