# exercise: experts.place  fails: busiest GPU  says: the worst is several are popular


def place(load, gpus, slots):
    copies = [1] * len(load)
    for _ in range(gpus * slots - len(load)):
        more = [e for e in range(len(load)) if copies[e] < gpus]
        copies[max(more, key=lambda e: load[e])] += 1
    held, busy = [[] for _ in range(gpus)], [0] * gpus
    for expert in sorted(range(len(load)), key=lambda e: load[e] / copies[e], reverse=True):
        for _ in range(copies[expert]):
            free = [g for g in range(gpus) if len(held[g]) < slots and expert not in held[g]]
            if free:
                gpu = min(free, key=lambda g: busy[g])
                held[gpu].append(expert)
                busy[gpu] += load[expert] / copies[expert]
    return held
