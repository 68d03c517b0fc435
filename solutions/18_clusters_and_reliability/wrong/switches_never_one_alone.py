# exercise: cluster.switches  fails: right  says: first wrong: one switch
from math import ceil


def switches(hosts, ports):
    half = ports // 2

    def spines(units):
        return next(s for s in range(1, half + 1) if half % s == 0 and 2 * s >= units)

    leaves, pods = ceil(hosts / half), ceil(hosts / half**2)
    if leaves <= ports:
        return [2, leaves + spines(leaves)]
    return [3, pods * ports + half * spines(pods)] if pods <= ports else None
