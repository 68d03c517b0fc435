# exercise: decode.generate  fails: right  says: what `choose` gave is []


def generate(forward, choose, prompt, count, end):
    new = []
    tokens, place = prompt, 0
    while len(new) < count:
        row = forward(tokens, place)[-1]
        place += len(tokens)
        new.append(row.index(max(row)))
        if new[-1] == end:
            break
        tokens = new[-1:]
    return new
