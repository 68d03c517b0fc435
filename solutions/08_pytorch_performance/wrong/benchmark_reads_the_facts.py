# exercise: pytorch.benchmark  fails: right  says: not subscriptable
def benchmark(machine):
    return machine["launch"] + machine["cold"]
