# exercise: compress.pack24  fails: magnitude kept  says: Which two of the four numbers keep the most
def pack24(weights):
    values = [[w for i, w in enumerate(row) if i % 4 < 2] for row in weights]
    metadata = [[0b0100_0100] * (len(row) // 8) for row in weights]
    return [values, metadata]
