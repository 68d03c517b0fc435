# exercise: neural.accumulate  fails: right  says: no step follows
def accumulate(tokens, batch, room):
    plan = []
    for first in range(0, len(tokens), batch):
        rows = sorted(range(first, min(first + batch, len(tokens))), key=lambda row: -tokens[row])
        total = sum(tokens[row] for row in rows)
        while rows:
            fit = room // tokens[rows[0]]
            now, rows = rows[:fit], rows[fit:]
            plan.append([now, sum(tokens[row] for row in now) / total, False])
    return plan
