# exercise: cluster.interval  fails: lost time, 24 h  says: 172.7


def interval(cost, restart, mtbf):
    return 600
