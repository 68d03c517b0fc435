# exercise: decode.generate  fails: passes  says: Does all of the prompt go into one pass


def generate(forward, choose, prompt, count, end):
    if count == 0:
        return []
    for place, token in enumerate(prompt):
        rows = forward([token], place)
    new = []
    while True:
        new.append(choose(rows[-1]))
        if len(new) == count or new[-1] == end:
            return new
        rows = forward(new[-1:], len(prompt) + len(new) - 1)
