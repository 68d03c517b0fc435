# exercise: decode.buckets  fails: two crowds, a day  says: more rows


def buckets(steps, most):
    last = max(n for n, count in enumerate(steps) if count)
    return sorted({-(-last * (i + 1) // most) for i in range(most)})
