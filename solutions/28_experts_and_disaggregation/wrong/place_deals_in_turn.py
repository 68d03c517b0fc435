# exercise: experts.place  fails: busiest GPU  says: the worst is of all sizes


def place(load, gpus, slots):
    copies = [1] * len(load)
    for _ in range(gpus * slots - len(load)):
        more = [e for e in range(len(load)) if copies[e] < gpus]
        copies[max(more, key=lambda e: load[e] / copies[e])] += 1
    order = sorted(range(len(load)), key=lambda e: load[e] / copies[e], reverse=True)
    dealt = [expert for expert in order for _ in range(copies[expert])]
    return [dealt[gpu::gpus] for gpu in range(gpus)]
