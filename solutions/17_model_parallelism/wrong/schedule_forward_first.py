# exercise: parallel.schedule  fails: peak micro-batches  says: 8 micro-batches budget 4
def schedule(devices, batches):
    one = [f"F{i}" for i in range(batches)] + [f"B{i}" for i in range(batches)]
    return [one for _ in range(devices)]
