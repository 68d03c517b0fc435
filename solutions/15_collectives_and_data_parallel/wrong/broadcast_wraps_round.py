# exercise: collective.broadcast  fails: right  says: has the data already
def broadcast(ranks, root):
    rounds, have = [], 1
    while have < ranks:
        rounds.append([[(root + d) % ranks, (root + d + have) % ranks] for d in range(have)])
        have *= 2
    return rounds
