# exercise: collective.halving  fails: rounds  says: 30 rounds
def halving(ranks):
    add = [[[r, (r + 1) % ranks, [(r - s) % ranks], "add"] for r in range(ranks)] for s in range(1, ranks)]
    copy = [[[r, (r + 1) % ranks, [(r - s) % ranks], "copy"] for r in range(ranks)] for s in range(ranks - 1)]
    return add + copy
