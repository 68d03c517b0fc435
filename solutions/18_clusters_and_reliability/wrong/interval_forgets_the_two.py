# exercise: cluster.interval  fails: lost time, 24 h  says: more loss than the least


def interval(cost, restart, mtbf):
    return (cost * mtbf) ** 0.5
