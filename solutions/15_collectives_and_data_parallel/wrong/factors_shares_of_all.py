# exercise: parallel.factors  fails: right  says: should be
def factors(counts):
    return [count / sum(counts) for count in counts]
