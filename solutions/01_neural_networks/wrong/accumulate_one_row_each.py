# exercise: neural.accumulate  fails: passes  says: naive
def accumulate(tokens, batch, room):
    plan = []
    for row, own in enumerate(tokens):
        first = row // batch * batch
        total = sum(tokens[first : first + batch])
        plan.append([[row], own / total, row + 1 == len(tokens) or (row + 1) % batch == 0])
    return plan
