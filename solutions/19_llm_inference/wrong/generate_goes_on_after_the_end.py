# exercise: decode.generate  fails: right  says: goes on after the end token


def generate(forward, choose, prompt, count, end):
    new = []
    tokens, place = prompt, 0
    for _ in range(count):
        rows = forward(tokens, place)
        place += len(tokens)
        new.append(choose(rows[-1]))
        tokens = new[-1:]
    return new
