# exercise: decode.buckets  fails: right  says: the largest graph holds


def buckets(steps, most):
    return sorted(sorted(range(1, len(steps)), key=lambda n: -steps[n])[:most])
