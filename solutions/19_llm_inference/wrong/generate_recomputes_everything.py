# exercise: decode.generate  fails: token-forwards  says: 4,064


def generate(forward, choose, prompt, count, end):
    new = []
    while len(new) < count:
        rows = forward(prompt + new, 0)
        new.append(choose(rows[-1]))
        if new[-1] == end:
            break
    return new
