# exercise: decode.speculate  fails: right  says: should be


def speculate(draft, target, choose, text, ahead):
    place, guesses, q = len(text) - 1, [], []
    for i in range(ahead):
        q.append(draft([[text[-1], *guesses][-1]], place + i)[0])
        guesses.append(choose(q[i]))
    p = target([text[-1], *guesses], place)
    for i, token in enumerate(guesses):
        best = p[i].index(max(p[i]))
        if best != token:
            return [*guesses[:i], best]
    return [*guesses, p[-1].index(max(p[-1]))]
