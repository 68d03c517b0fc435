# exercise: decode.speculate  fails: draft tokens  says: What does the draft's cache hold already


def speculate(draft, target, choose, text, ahead):
    place, guesses, q = len(text) - 1, [], []
    for _ in range(ahead):
        q.append(draft([*text, *guesses], 0)[-1])
        guesses.append(choose(q[-1]))
    p = target([text[-1], *guesses], place)
    for i, token in enumerate(guesses):
        keep = min(1, p[i][token] / q[i][token])
        if choose([keep, 1 - keep]) == 1:
            rest = [max(0, a - b) for a, b in zip(p[i], q[i], strict=True)]
            return [*guesses[:i], choose([r / sum(rest) for r in rest])]
    return [*guesses, choose(p[-1])]
