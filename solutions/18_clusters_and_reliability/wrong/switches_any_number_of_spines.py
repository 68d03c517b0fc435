# exercise: cluster.switches  fails: right  says: first wrong: two levels
from math import ceil


def switches(hosts, ports):
    half = ports // 2
    if hosts <= ports:
        return [1, 1]
    leaves, pods = ceil(hosts / half), ceil(hosts / half**2)
    if leaves <= ports:
        return [2, leaves + ceil(leaves / 2)]
    return [3, pods * ports + half * ceil(pods / 2)] if pods <= ports else None
