# exercise: experts.limited  fails: right  says: first wrong: two of four


def limited(scores, nodes, most, k):
    each = len(scores) // nodes
    groups = [range(n * each, (n + 1) * each) for n in range(nodes)]
    chosen = sorted(groups, key=lambda group: sum(scores[e] for e in group), reverse=True)[:most]
    there = [expert for group in chosen for expert in group]
    return sorted(sorted(there, key=lambda e: scores[e], reverse=True)[:k])
