# exercise: experts.limited  fails: right  says: first wrong: one node is enough


def limited(scores, nodes, most, k):
    return sorted(sorted(range(len(scores)), key=lambda e: scores[e], reverse=True)[:k])
