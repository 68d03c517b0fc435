# exercise: neural.cosine  fails: right  says: should be
def cosine(u, v):
    return sum(x * y for x, y in zip(u, v))
