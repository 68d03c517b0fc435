# exercise: pytorch.place  fails: arena  says: never alive together
def place(tensors):
    offsets, at = [], 0
    for size, _, _ in tensors:
        offsets.append(at)
        at += size
    return offsets
