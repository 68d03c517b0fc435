# exercise: parallel.schedule  fails: peak micro-batches  says: naive 8
def schedule(devices, batches):
    one = [f"F{i}" for i in range(batches)] + [f"B{i}" for i in range(batches)]
    return [one for _ in range(devices)]
