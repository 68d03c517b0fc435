# exercise: decode.speculate  fails: right  says: they sum to


def speculate(draft, target, choose, text, ahead):
    place, guesses, q = len(text) - 1, [], []
    for i in range(ahead):
        q.append(draft([[text[-1], *guesses][-1]], place + i)[0])
        guesses.append(choose(q[i]))
    p = target([text[-1], *guesses], place)
    for i, token in enumerate(guesses):
        keep = min(1, p[i][token] / q[i][token])
        if choose([keep, 1 - keep]) == 1:
            return [*guesses[:i], choose([max(0, a - b) for a, b in zip(p[i], q[i], strict=True)])]
    return [*guesses, choose(p[-1])]
