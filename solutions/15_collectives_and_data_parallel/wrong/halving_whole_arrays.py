# exercise: collective.halving  fails: shares sent  says: 64 shares
def halving(ranks):
    rounds, distance = [], 1
    while distance < ranks:
        rounds.append([[r, r ^ distance, list(range(ranks)), "add"] for r in range(ranks)])
        distance *= 2
    return rounds
