# exercise: layout.compose  fails: right  says: should be
def compose(a, size, stride):
    picked = []
    for length, step in a:
        if stride >= length:
            stride //= length
            continue
        taken = min(length // stride, size)
        picked.append((taken, step * stride))
        size //= taken
        if size == 1:
            break
    return picked
