# exercise: mixed.scaler  fails: right  says: states; there are
def scaler(overflows, scale, growth, backoff, interval):
    return [[scale, 0] for _ in overflows[1:]]
