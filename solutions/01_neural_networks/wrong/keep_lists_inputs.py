# exercise: neural.keep  fails: right  says: is an input
def keep(tape, learn):
    return list(range(len(tape)))
