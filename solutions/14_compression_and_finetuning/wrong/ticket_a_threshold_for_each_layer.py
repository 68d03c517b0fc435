# exercise: compress.ticket  fails: right  says: should be
def ticket(initial, trained, sparsity):
    found = []
    for start, end in zip(initial, trained, strict=True):
        order = sorted(range(len(end)), key=lambda i: abs(end[i]))
        gone = set(order[: round(sparsity * len(end))])
        found.append([0.0 if i in gone else w for i, w in enumerate(start)])
    return found
