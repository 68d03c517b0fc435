# exercise: layout.compose  fails: right  says: should be
def compose(a, size, stride):
    picked = []
    for length, step in a:
        if stride >= length:
            stride //= length
            continue
        picked.append((length // stride, step * stride))
        size, stride = size // (length // stride), 1
        if size <= 1:
            break
    return picked
