# exercise: neural.labels  fails: right  says: its labels are
def labels(rows, side):
    longest = max(len(row) for row in rows)
    inputs, targets, look = [], [], []
    for row in rows:
        first = longest - len(row) if side == "left" else 0
        after = first + len(row)
        inputs.append([0] * first + row + [0] * (longest - after))
        targets.append([inputs[-1][i] if first <= i < after else -100 for i in range(longest)])
        look.append([list(range(first, i + 1)) if first <= i < after else [i] for i in range(longest)])
    return inputs, targets, look
