# exercise: compress.amounts  fails: right  says: division by zero
def amounts(sparsities):
    found, before = [], 0.0
    for now in sparsities:
        found.append((now - before) / (1 - before))
        before = now
    return found
