# exercise: decode.generate  fails: right  says: its first free place is 5


def generate(forward, choose, prompt, count, end):
    new = []
    tokens, place = prompt, 0
    while len(new) < count:
        rows = forward(tokens, place)
        new.append(choose(rows[-1]))
        if new[-1] == end:
            break
        tokens, place = new[-1:], len(prompt) + len(new)
    return new
