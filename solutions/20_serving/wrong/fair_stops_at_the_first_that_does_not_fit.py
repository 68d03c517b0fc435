# exercise: cluster.fair  fails: right  says: first wrong: one is out
from fractions import Fraction


def fair(capacity, tenants):
    left, tasks = dict(capacity), [0] * len(tenants)
    wanting = {i for i, t in enumerate(tenants) if t["running"] + t["waiting"] > 0}

    def share(i):
        needs = tenants[i]["task"].items()
        return max(Fraction(tasks[i] * n, capacity[r]) for r, n in needs) / tenants[i]["weight"]

    while wanting:
        i = min(wanting, key=lambda i: (share(i), i))
        needs = tenants[i]["task"].items()
        if any(n > left[r] for r, n in needs):
            break
        tasks[i] += 1
        for r, n in needs:
            left[r] -= n
        if tasks[i] == tenants[i]["running"] + tenants[i]["waiting"]:
            wanting.remove(i)
    return [[n, max(0, t["running"] - n)] for n, t in zip(tasks, tenants)]
