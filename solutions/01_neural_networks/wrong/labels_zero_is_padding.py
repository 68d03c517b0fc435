# exercise: neural.labels  fails: right  says: its labels are
def labels(rows, side):
    longest = max(len(row) for row in rows)
    inputs, targets, look = [], [], []
    for row in rows:
        pad = [0] * (longest - len(row))
        padded = pad + row if side == "left" else row + pad
        present = [token != 0 for token in padded]
        inputs.append(padded)
        targets.append(
            [
                padded[i + 1] if i + 1 < longest and present[i] and present[i + 1] else -100
                for i in range(longest)
            ]
        )
        look.append([[j for j in range(i + 1) if present[j]] if present[i] else [i] for i in range(longest)])
    return inputs, targets, look
