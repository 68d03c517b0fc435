# exercise: compress.amounts  fails: right  says: should be
def amounts(sparsities):
    return sparsities
