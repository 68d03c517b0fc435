# exercise: edge.place  fails: experts  says: × the least


def place(layers, first, memory):
    def time(sides):
        total, side, send = 0, 0, first
        for here, (cpu, gpu, _, after) in zip(sides, layers):
            total, side, send = total + (gpu if here else cpu) + send * (here != side), here, after
        return total + send * side

    n, best = len(layers), [0] * len(layers)
    for start in range(n):
        for stop in range(start + 1, n + 1):
            if sum(layer[2] for layer in layers[start:stop]) <= memory:
                best = min(best, [int(start <= i < stop) for i in range(n)], key=time)
    return best
