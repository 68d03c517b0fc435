# exercise: cluster.spread  fails: busiest link  says: × the least


def spread(flows, spines):
    return [(7 * start + 13 * stop + 5 * n * n) % spines for n, (start, stop) in enumerate(flows)]
