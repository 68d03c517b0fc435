# exercise: cluster.spread  fails: right  says: must be a whole number from 0


def spread(flows, spines):
    return [1 + n % spines for n in range(len(flows))]
