# exercise: experts.place  fails: busiest GPU  says: the worst is as in text


def place(load, gpus, slots):
    held, busy = [[] for _ in range(gpus)], [0] * gpus
    for expert in sorted(range(len(load)), key=lambda e: load[e], reverse=True):
        gpu = min((g for g in range(gpus) if len(held[g]) < slots), key=lambda g: busy[g])
        held[gpu].append(expert)
        busy[gpu] += load[expert]
    return held
