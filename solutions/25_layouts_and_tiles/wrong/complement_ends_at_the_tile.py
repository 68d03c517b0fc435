# exercise: layout.complement  fails: right  says: should be
def complement(tile, n):
    starts, end = [], 1
    for stride, size in sorted((stride, size) for size, stride in tile if size > 1):
        if stride > end:
            starts.append((stride // end, end))
        end = size * stride
    return starts or [(1, 0)]
