# exercise: edge.place  fails: right  says: MB, and it has


def place(layers, first, memory):
    return [1] * len(layers)
