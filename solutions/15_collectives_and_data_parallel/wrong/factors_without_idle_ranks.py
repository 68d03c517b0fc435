# exercise: parallel.factors  fails: right  says: should be
def factors(counts):
    working = sum(count > 0 for count in counts)
    return [working * count / sum(counts) for count in counts]
