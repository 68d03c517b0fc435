# exercise: cluster.interval  fails: failures often  says: derivation


def interval(cost, restart, mtbf):
    return (2 * cost * mtbf) ** 0.5
