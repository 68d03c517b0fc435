# exercise: neural.accumulate  fails: right  says: is in no pass
def accumulate(tokens, batch, room):
    plan = []
    for first in range(0, len(tokens) - batch + 1, batch):
        rows = sorted(range(first, first + batch), key=lambda row: -tokens[row])
        total = sum(tokens[row] for row in rows)
        while rows:
            fit = room // tokens[rows[0]]
            now, rows = rows[:fit], rows[fit:]
            plan.append([now, sum(tokens[row] for row in now) / total, not rows])
    return plan
