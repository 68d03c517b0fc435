# exercise: parallel.factors  fails: right  says: should be
def factors(counts):
    return [sum(counts) / (len(counts) * max(count, 1)) for count in counts]
