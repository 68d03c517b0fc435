# exercise: decode.speculate  fails: draft tokens  says: after which token does nobody ask


def speculate(draft, target, choose, text, ahead):
    place, guesses, q = len(text) - 1, [], []
    row = draft([text[-1]], place)[0]
    for i in range(ahead):
        token = choose(row)
        q.append(row)
        guesses.append(token)
        row = draft([token], place + 1 + i)[0]
    p = target([text[-1], *guesses], place)
    for i, token in enumerate(guesses):
        keep = min(1, p[i][token] / q[i][token])
        if choose([keep, 1 - keep]) == 1:
            rest = [max(0, a - b) for a, b in zip(p[i], q[i], strict=True)]
            return [*guesses[:i], choose([r / sum(rest) for r in rest])]
    return [*guesses, choose(p[-1])]
