# exercise: cluster.switches  fails: right  says: first wrong: three levels
from math import ceil


def switches(hosts, ports):
    half = ports // 2
    if hosts <= ports:
        return [1, 1]
    leaves = ceil(hosts / half)
    if leaves <= ports:
        return [2, leaves + next(s for s in range(1, half + 1) if half % s == 0 and 2 * s >= leaves)]
    return [3, 5 * half**2] if hosts <= half**2 * ports else None
