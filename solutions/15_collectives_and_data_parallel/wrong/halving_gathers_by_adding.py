# exercise: collective.halving  fails: right  says: it would count twice
def halving(ranks):
    held = [list(range(ranks)) for _ in range(ranks)]
    rounds, distance = [], ranks // 2
    while distance:
        away = [[s for s in held[r] if (s ^ r) & distance] for r in range(ranks)]
        rounds.append([[r, r ^ distance, away[r], "add"] for r in range(ranks)])
        held = [[s for s in held[r] if s not in away[r]] for r in range(ranks)]
        distance //= 2
    distance = 1
    while distance < ranks:
        rounds.append([[r, r ^ distance, held[r], "add"] for r in range(ranks)])
        held = [held[r] + held[r ^ distance] for r in range(ranks)]
        distance *= 2
    return rounds
