# how: negative, infinite and fractional places, so that all tensors lie in one another
# exercise: pytorch.place
# earns: 0
# says: place
def place(tensors):
    return [-(10**18) if i % 2 else float("-inf") for i in range(len(tensors))]
