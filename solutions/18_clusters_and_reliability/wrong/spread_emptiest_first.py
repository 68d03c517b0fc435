# exercise: cluster.spread  fails: busiest link  says: change its spine
from collections import Counter


def spread(flows, spines):
    load, chosen = Counter(), []
    for start, stop in flows:
        spine = min(range(spines), key=lambda s: max(load["up", start, s], load["down", stop, s]))
        load["up", start, spine] += 1
        load["down", stop, spine] += 1
        chosen.append(spine)
    return chosen
