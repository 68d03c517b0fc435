# exercise: edge.place  fails: experts  says: most µs per MB


def place(layers, first, memory):
    sides = []
    for layer in layers:
        memory -= layer[2]
        sides.append(int(memory >= 0))
    return sides
