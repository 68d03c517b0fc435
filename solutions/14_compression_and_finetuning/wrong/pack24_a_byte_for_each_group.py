# exercise: compress.pack24  fails: right  says: 2 bytes of metadata; 2 groups need 1
def pack24(weights):
    values, metadata = [], []
    for row in weights:
        kept, bits = [], []
        for g in range(0, len(row), 4):
            first, second = sorted(sorted(range(4), key=lambda i: -abs(row[g + i]))[:2])
            kept += [row[g + first], row[g + second]]
            bits.append(first | second << 2)
        values.append(kept)
        metadata.append(bits)
    return [values, metadata]
