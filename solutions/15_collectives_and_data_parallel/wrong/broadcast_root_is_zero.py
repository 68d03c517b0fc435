# exercise: collective.broadcast  fails: right  says: does not have the data yet
def broadcast(ranks, root):
    rounds, have = [], 1
    while have < ranks:
        rounds.append([[d, d + have] for d in range(have) if d + have < ranks])
        have *= 2
    return rounds
