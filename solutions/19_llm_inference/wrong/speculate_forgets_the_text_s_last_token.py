# exercise: decode.speculate  fails: right  says: should be


def speculate(draft, target, choose, text, ahead):
    place, guesses, q = len(text) - 1, [], []
    for i in range(ahead):
        q.append(draft([[text[-1], *guesses][-1]], place + i)[0])
        guesses.append(choose(q[i]))
    p = target([*guesses, text[-1]], place)
    for i, token in enumerate(guesses):
        keep = min(1, p[i][token] / q[i][token])
        if choose([keep, 1 - keep]) == 1:
            rest = [max(0, a - b) for a, b in zip(p[i], q[i], strict=True)]
            whole = sum(rest) or 1
            return [*guesses[:i], choose([r / whole for r in rest] if sum(rest) else p[i])]
    return [*guesses, choose(p[-1])]
