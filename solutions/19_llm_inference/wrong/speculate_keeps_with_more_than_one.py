# exercise: decode.speculate  fails: right  says: entry 1 is


def speculate(draft, target, choose, text, ahead):
    place, guesses, q = len(text) - 1, [], []
    for i in range(ahead):
        q.append(draft([[text[-1], *guesses][-1]], place + i)[0])
        guesses.append(choose(q[i]))
    p = target([text[-1], *guesses], place)
    for i, token in enumerate(guesses):
        keep = p[i][token] / q[i][token]
        if choose([keep, 1 - keep]) == 1:
            rest = [max(0, a - b) for a, b in zip(p[i], q[i], strict=True)]
            return [*guesses[:i], choose([r / sum(rest) for r in rest])]
    return [*guesses, choose(p[-1])]
