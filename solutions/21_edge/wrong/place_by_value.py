# exercise: edge.place  fails: costly link  says: how often does your plan cross


def place(layers, first, memory):
    sides = [0] * len(layers)
    for i in sorted(range(len(layers)), key=lambda i: (layers[i][1] - layers[i][0]) / layers[i][2]):
        if layers[i][2] <= memory:
            sides[i], memory = 1, memory - layers[i][2]
    return sides
