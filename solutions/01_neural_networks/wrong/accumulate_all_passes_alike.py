# exercise: neural.accumulate  fails: right  says: of the gradient
def accumulate(tokens, batch, room):
    plan = []
    for first in range(0, len(tokens), batch):
        rows = sorted(range(first, min(first + batch, len(tokens))), key=lambda row: -tokens[row])
        passes = []
        while rows:
            fit = room // tokens[rows[0]]
            passes.append(rows[:fit])
            rows = rows[fit:]
        plan += [[now, 1 / len(passes), now is passes[-1]] for now in passes]
    return plan
