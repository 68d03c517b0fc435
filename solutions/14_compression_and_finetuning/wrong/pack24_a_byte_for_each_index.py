# exercise: compress.pack24  fails: right  says: two groups in a byte
def pack24(weights):
    values, metadata = [], []
    for row in weights:
        kept, places = [], []
        for g in range(0, len(row), 4):
            pair = sorted(sorted(range(4), key=lambda i: -abs(row[g + i]))[:2])
            places += pair
            kept += [row[g + i] for i in pair]
        values.append(kept)
        metadata.append(places)
    return [values, metadata]
