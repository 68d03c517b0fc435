# exercise: decode.buckets  fails: two crowds, a day  says: more rows


def buckets(steps, most):
    last = max(n for n, count in enumerate(steps) if count)
    powers = [2**i for i in range(10) if 2**i < last]
    return [*powers[max(0, len(powers) - most + 1) :], last] if most > 1 else [last]
