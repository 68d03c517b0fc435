# exercise: cluster.interval  fails: right  says: positive number of seconds


def interval(cost, restart, mtbf):
    return cost // mtbf
