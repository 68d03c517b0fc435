# exercise: parallel.schedule  fails: steps  says: 64 steps
def schedule(devices, batches):
    return [[word for i in range(batches) for word in (f"F{i}", f"B{i}")] for _ in range(devices)]
