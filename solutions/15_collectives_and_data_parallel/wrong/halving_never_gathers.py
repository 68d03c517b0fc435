# exercise: collective.halving  fails: right  says: is missing
def halving(ranks):
    held = [list(range(ranks)) for _ in range(ranks)]
    rounds, distance = [], ranks // 2
    while distance:
        away = [[s for s in held[r] if (s ^ r) & distance] for r in range(ranks)]
        rounds.append([[r, r ^ distance, away[r], "add"] for r in range(ranks)])
        held = [[s for s in held[r] if s not in away[r]] for r in range(ranks)]
        distance //= 2
    return rounds
