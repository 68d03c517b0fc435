# exercise: compress.pack24  fails: right  says: values
def pack24(weights):
    values, metadata = [], []
    for row in weights:
        kept, bits = [], []
        for g in range(0, len(row), 4):
            first, second = sorted(sorted(range(4), key=lambda i: -abs(row[g + i]))[:2])
            kept += [w for w in (row[g + first], row[g + second]) if w != 0]
            bits.append(first | second << 2)
        values.append(kept)
        metadata.append([low | high << 4 for low, high in zip(bits[::2], bits[1::2], strict=True)])
    return [values, metadata]
