# exercise: cluster.autoscale  fails: service  says: minutes with too few


def autoscale(load, capacity, delay, ready):
    need = [-(-now // capacity) for now in load]
    return need[delay:] + need[len(need) - delay :]
