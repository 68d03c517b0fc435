# exercise: compress.ticket  fails: right  says: should be
def ticket(initial, trained, sparsity):
    order = sorted(abs(w) for layer in trained for w in layer)
    gone = round(sparsity * len(order))
    limit = order[gone - 1] if gone else -1.0
    return [[w if abs(w) > limit else 0.0 for w in layer] for layer in trained]
