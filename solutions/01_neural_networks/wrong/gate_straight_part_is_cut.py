# exercise: neural.gate  fails: right  says: hidden units give
def gate(outputs):
    t00, t01, t10, t11 = outputs
    return [t10 - t00, t01 - t00, 0, 1, 1, -1, 1, t11 - t10 - t01 + t00, t00]
