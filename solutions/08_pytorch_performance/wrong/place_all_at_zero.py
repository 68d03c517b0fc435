# exercise: pytorch.place  fails: right  says: both are alive
def place(tensors):
    return [0] * len(tensors)
