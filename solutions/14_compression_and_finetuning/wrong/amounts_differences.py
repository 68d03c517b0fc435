# exercise: compress.amounts  fails: right  says: should be
def amounts(sparsities):
    return [now - before for before, now in zip([0.0, *sparsities], sparsities, strict=False)]
