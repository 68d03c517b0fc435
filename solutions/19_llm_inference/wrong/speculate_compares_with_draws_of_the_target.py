# exercise: decode.speculate  fails: tokens  says: With which probability does the rule keep


def speculate(draft, target, choose, text, ahead):
    place, guesses, q = len(text) - 1, [], []
    for i in range(ahead):
        q.append(draft([[text[-1], *guesses][-1]], place + i)[0])
        guesses.append(choose(q[i]))
    p = target([text[-1], *guesses], place)
    for i, token in enumerate(guesses):
        own = choose(p[i])
        if own != token:
            return [*guesses[:i], own]
    return [*guesses, choose(p[-1])]
