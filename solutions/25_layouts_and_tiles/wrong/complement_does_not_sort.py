# exercise: layout.complement  fails: right  says: should be
def complement(tile, n):
    starts, end = [], 1
    for size, stride in tile:
        if stride > end:
            starts.append((stride // end, end))
        end = size * stride
    if n > end:
        starts.append((n // end, end))
    return starts or [(1, 0)]
