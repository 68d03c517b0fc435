# exercise: compress.merge  fails: right  says: should be
def merge(weight, a, b, scale, magnitude):
    return weight + scale * (b @ a)
