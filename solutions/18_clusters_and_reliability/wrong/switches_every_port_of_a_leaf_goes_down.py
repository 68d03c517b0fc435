# exercise: cluster.switches  fails: right  says: first wrong: full
from math import ceil


def switches(hosts, ports):
    if hosts <= ports:
        return [1, 1]
    leaves = ceil(hosts / ports)
    spines = next((s for s in range(1, ports + 1) if ports % s == 0 and s >= leaves), None)
    return [2, leaves + spines] if spines else None
