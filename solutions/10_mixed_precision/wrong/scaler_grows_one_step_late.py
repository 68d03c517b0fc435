# exercise: mixed.scaler  fails: right  says: GradScaler
def scaler(overflows, scale, growth, backoff, interval):
    states, good = [], 0
    for overflow in overflows:
        if overflow:
            scale, good = scale * backoff, 0
        elif good == interval:
            scale, good = scale * growth, 0
        else:
            good += 1
        states.append([scale, good])
    return states
