# exercise: compress.merge  fails: right  says: should be
def merge(weight, a, b, scale, magnitude):
    return magnitude[:, None] * (weight + scale * (b @ a)) / weight.norm(dim=1, keepdim=True)
