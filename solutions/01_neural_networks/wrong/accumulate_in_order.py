# exercise: neural.accumulate  fails: passes, passes too many  says: short row
def accumulate(tokens, batch, room):
    plan = []
    for first in range(0, len(tokens), batch):
        rows = list(range(first, min(first + batch, len(tokens))))
        total = sum(tokens[row] for row in rows)
        while rows:
            fit = 1
            while fit < len(rows) and (fit + 1) * max(tokens[row] for row in rows[: fit + 1]) <= room:
                fit += 1
            now, rows = rows[:fit], rows[fit:]
            plan.append([now, sum(tokens[row] for row in now) / total, not rows])
    return plan
