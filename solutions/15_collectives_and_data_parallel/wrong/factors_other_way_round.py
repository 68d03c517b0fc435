# exercise: parallel.factors  fails: right  says: should be
def factors(counts):
    return [sum(counts) / (len(counts) * count) for count in counts]
