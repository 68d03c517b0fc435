# exercise: mixed.scaler  fails: right  says: there are 300 iterations
def scaler(overflows, scale, growth, backoff, interval):
    return [[scale, 0] for _ in overflows[1:]]
