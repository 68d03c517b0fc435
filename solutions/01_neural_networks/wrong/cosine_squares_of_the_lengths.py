# exercise: neural.cosine  fails: right  says: should be
def cosine(u, v):
    dot = sum(x * y for x, y in zip(u, v))
    lengths = sum(x * x for x in u) * sum(y * y for y in v)
    return dot / lengths if lengths else 0.0
