# exercise: compress.pack24  fails: magnitude kept  says: Which two of the four numbers keep the most
def pack24(weights):
    values, metadata = [], []
    for row in weights:
        kept, bits = [], []
        for g in range(0, len(row), 4):
            first, second = sorted(sorted(range(4), key=lambda i: -row[g + i])[:2])
            kept += [row[g + first], row[g + second]]
            bits.append(first | second << 2)
        values.append(kept)
        metadata.append([low | high << 4 for low, high in zip(bits[::2], bits[1::2], strict=True)])
    return [values, metadata]
