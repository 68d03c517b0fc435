# exercise: decode.speculate  fails: target passes  says: 4 passes


def speculate(draft, target, choose, text, ahead):
    place, guesses, q = len(text) - 1, [], []
    for i in range(ahead):
        q.append(draft([[text[-1], *guesses][-1]], place + i)[0])
        guesses.append(choose(q[i]))
    for i, token in enumerate(guesses):
        p = target([[text[-1], *guesses][i]], place + i)[0]
        keep = min(1, p[token] / q[i][token])
        if choose([keep, 1 - keep]) == 1:
            rest = [max(0, a - b) for a, b in zip(p, q[i], strict=True)]
            return [*guesses[:i], choose([r / sum(rest) for r in rest])]
    return [*guesses, choose(target([[text[-1], *guesses][-1]], place + ahead)[0])]
