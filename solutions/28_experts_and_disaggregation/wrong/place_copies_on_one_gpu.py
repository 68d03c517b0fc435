# exercise: experts.place  fails: right  says: twice, which relieves nobody


def place(load, gpus, slots):
    copies = [1] * len(load)
    for _ in range(gpus * slots - len(load)):
        more = max(range(len(load)), key=lambda e: load[e] / copies[e])
        copies[more] += 1
    all_copies = [e for e in range(len(load)) for _ in range(copies[e])]
    return [all_copies[g * slots : (g + 1) * slots] for g in range(gpus)]
