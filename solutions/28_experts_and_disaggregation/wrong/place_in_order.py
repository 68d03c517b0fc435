# exercise: experts.place  fails: busiest GPU  says: naive 1.25


def place(load, gpus, slots):
    each = len(load) // gpus
    return [list(range(gpu * each, (gpu + 1) * each)) for gpu in range(gpus)]
