# exercise: pytorch.place  fails: right  says: share bytes
def place(tensors):
    offsets = [None] * len(tensors)
    for i in sorted(range(len(tensors)), key=lambda i: -tensors[i][0]):
        size, first, last = tensors[i]
        at = 0
        for start, stop in sorted(
            (offsets[k], offsets[k] + other)
            for k, (other, begin, end) in enumerate(tensors)
            if offsets[k] is not None and begin < last and first < end
        ):
            if at + size <= start:
                break
            at = max(at, stop)
        offsets[i] = at
    return offsets
