# exercise: compress.merge  fails: right  says: should be
def merge(weight, a, b, scale, magnitude):
    total = weight + scale * (b @ a)
    return magnitude[:, None] * total / total.norm(dim=0, keepdim=True)
